// The executive's objects from C, on each back-end: mutexes, conditions, pipes, broadcasts, selectors, tickers, results. Each is used, and each of its
// calls is made with handles of every wrong kind and from every wrong place.
#include "task_check.h"
#include <string.h>

struct objects {
    hs_exec_mutex *mutex, *low_ceiling;
    hs_exec_condition *condition;
    hs_exec_pipe *pipe;
    hs_exec_broadcast *broadcast;
    hs_exec_subscriber *subscriber;
    hs_exec_selector *selector, *second;
    hs_exec_ticker *ticker;
    hs_exec_queue *queue;
};

static struct objects ours, theirs;
static hs_exec_task test;
static hs_exec_timer timer;
static int ready, code, in_procedure;

static void make(hs_exec *of, struct objects *o)
{
    IS(HS_E_RANGE, hs_exec_mutex_new(of, HS_EXEC_PROTOCOL_CEILING, 64, &o->mutex));
    IS(HS_E_RANGE, hs_exec_mutex_new(of, 3, 0, &o->mutex));
    IS(HS_OK, hs_exec_mutex_new(of, HS_EXEC_PROTOCOL_INHERIT, 0, &o->mutex));
    IS(HS_OK, hs_exec_mutex_new(of, HS_EXEC_PROTOCOL_CEILING, 20, &o->low_ceiling));
    IS(HS_OK, hs_exec_condition_new(of, &o->condition));
    IS(HS_E_RANGE, hs_exec_pipe_new(of, 0, &o->pipe));
    IS(HS_E_RANGE, hs_exec_pipe_new(of, (size_t)-1, &o->pipe));
    IS(HS_OK, hs_exec_pipe_new(of, 8, &o->pipe));
    IS(HS_E_RANGE, hs_exec_broadcast_new(of, 0, &o->broadcast));
    IS(HS_OK, hs_exec_broadcast_new(of, 2, &o->broadcast));
    IS(HS_OK, hs_exec_subscriber_new(of, o->broadcast, &o->subscriber));
    IS(HS_OK, hs_exec_selector_new(of, &o->selector));
    IS(HS_OK, hs_exec_selector_new(of, &o->second));
    IS(HS_OK, hs_exec_ticker_new(of, &o->ticker));
    IS(HS_OK, hs_exec_queue_new(of, 2, &o->queue));
    IS(HS_E_NULL, hs_exec_condition_new(of, NULL));
}

// Every call with these handles is refused with the code.
static void refused(const struct objects *o, int wanted)
{
    hs_exec_message one = { .words = { 1 } };
    hs_exec_tick tick = { .size = sizeof tick };
    const void *objects[] = { o->queue };
    char byte = 0;
    size_t count;
    IS(wanted, hs_exec_mutex_lock(o->mutex, HS_EXEC_NO_WAIT, NULL));
    IS(wanted, hs_exec_mutex_unlock(o->mutex));
    IS(wanted, hs_exec_condition_wait(o->condition, o->mutex, HS_EXEC_NO_WAIT, NULL));
    IS(wanted, hs_exec_condition_notify(o->condition));
    IS(wanted, hs_exec_pipe_write(o->pipe, &byte, 1, HS_EXEC_NO_WAIT, &count));
    IS(wanted, hs_exec_pipe_write(o->pipe, &byte, 1, MS, &count));
    IS(wanted, hs_exec_pipe_write_all(o->pipe, &byte, 1, MS));
    IS(wanted, hs_exec_pipe_read(o->pipe, &byte, 1, HS_EXEC_NO_WAIT, &count));
    IS(wanted, hs_exec_pipe_read(o->pipe, &byte, 1, MS, &count));
    IS(wanted, hs_exec_pipe_count(o->pipe, &count));
    IS(wanted, hs_exec_broadcast_send(o->broadcast, &one));
    IS(wanted, hs_exec_broadcast_latest(o->broadcast, &one));
    IS(wanted, hs_exec_subscriber_next(o->subscriber, HS_EXEC_NO_WAIT, &one, NULL));
    IS(wanted, hs_exec_selector_wait(o->selector, objects, 1, HS_EXEC_NO_WAIT, &count));
    IS(wanted, hs_exec_ticker_start(o->ticker, MS));
    IS(wanted, hs_exec_ticker_next(o->ticker, &tick));
}

static void wrong_handles(void)
{
    static uint64_t zeros[16];
    struct objects none = { 0 }, other, memory;
    refused(&none, HS_E_HANDLE);
    void *anything = zeros;
    memory = (struct objects){ anything, anything, anything, anything, anything, anything, anything, anything, anything, anything };
    refused(&memory, HS_E_HANDLE);
    // Each handle in the place of another kind.
    other = (struct objects){ (void *)ours.queue, (void *)ours.queue, (void *)ours.mutex, (void *)ours.condition, (void *)ours.pipe,
        (void *)ours.broadcast, (void *)ours.subscriber, (void *)ours.subscriber, (void *)ours.selector, (void *)ours.ticker };
    refused(&other, HS_E_HANDLE);
    refused(&theirs, HS_E_HANDLE);
}

static void wrong_arguments(void)
{
    hs_exec_message one = { .words = { 1 } };
    const void *objects[HS_EXEC_MOST_SELECTED + 1] = { ours.queue, ours.mutex };
    char byte = 0;
    size_t count;
    IS(HS_E_NEGATIVE, hs_exec_mutex_lock(ours.mutex, -1, NULL));
    IS(HS_E_NEGATIVE, hs_exec_condition_wait(ours.condition, ours.mutex, -1, NULL));
    IS(HS_E_NEGATIVE, hs_exec_pipe_write(ours.pipe, &byte, 1, -1, &count));
    IS(HS_E_NEGATIVE, hs_exec_pipe_write_all(ours.pipe, &byte, 1, -1));
    IS(HS_E_NEGATIVE, hs_exec_pipe_read(ours.pipe, &byte, 1, -1, &count));
    IS(HS_E_NEGATIVE, hs_exec_subscriber_next(ours.subscriber, -1, &one, NULL));
    IS(HS_E_NEGATIVE, hs_exec_selector_wait(ours.selector, objects, 1, -1, &count));
    IS(HS_E_NULL, hs_exec_pipe_write(ours.pipe, NULL, 1, MS, &count));
    IS(HS_E_NULL, hs_exec_pipe_write(ours.pipe, &byte, 1, MS, NULL));
    IS(HS_E_NULL, hs_exec_pipe_read(ours.pipe, NULL, 1, MS, &count));
    IS(HS_E_NULL, hs_exec_pipe_count(ours.pipe, NULL));
    IS(HS_E_NULL, hs_exec_broadcast_send(ours.broadcast, NULL));
    IS(HS_E_NULL, hs_exec_broadcast_latest(ours.broadcast, NULL));
    IS(HS_E_NULL, hs_exec_subscriber_next(ours.subscriber, MS, NULL, NULL));
    IS(HS_E_NULL, hs_exec_selector_wait(ours.selector, NULL, 1, MS, &count));
    IS(HS_E_NULL, hs_exec_selector_wait(ours.selector, objects, 1, MS, NULL));
    IS(HS_E_RANGE, hs_exec_selector_wait(ours.selector, objects, 0, MS, &count));
    IS(HS_E_RANGE, hs_exec_selector_wait(ours.selector, objects, HS_EXEC_MOST_SELECTED + 1, MS, &count));
    IS(HS_E_HANDLE, hs_exec_selector_wait(ours.selector, objects, 2, MS, &count));
    objects[1] = theirs.pipe;
    IS(HS_E_HANDLE, hs_exec_selector_wait(ours.selector, objects, 2, MS, &count));
    objects[0] = objects[1] = ours.subscriber;
    IS(HS_E_BUSY, hs_exec_selector_wait(ours.selector, objects, 2, MS, &count));
    IS(HS_E_RANGE, hs_exec_ticker_start(ours.ticker, 0));
    IS(HS_E_NULL, hs_exec_task_result(test, NULL));
}

// ---- mutexes ----

BODY(locks_until_woken)
{
    NOTHING;
    IS(HS_OK, hs_exec_mutex_lock(ours.mutex, PATIENCE, NULL));
    if (hs_exec_wait(PATIENCE) == HS_OK)
        IS(HS_OK, hs_exec_mutex_unlock(ours.mutex));
}

BODY(locks_once)
{
    NOTHING;
    int32_t abandoned = -1;
    IS(HS_OK, hs_exec_mutex_lock(ours.mutex, PATIENCE, &abandoned));
    CHECK(abandoned == 0);
    IS(HS_OK, hs_exec_mutex_unlock(ours.mutex));
}

BODY(keeps_it)
{
    NOTHING;
    IS(HS_OK, hs_exec_mutex_lock(ours.mutex, PATIENCE, NULL));
}

BODY(is_above_the_ceiling)
{
    NOTHING;
    IS(HS_E_CEILING, hs_exec_mutex_lock(ours.low_ceiling, PATIENCE, NULL));
}

static void mutexes(void)
{
    int32_t abandoned = -1;
    hs_exec_task_info info = { .size = sizeof info };
    IS(HS_E_NOT_OWNER, hs_exec_mutex_unlock(ours.mutex));
    IS(HS_OK, hs_exec_mutex_lock(ours.mutex, HS_EXEC_NO_WAIT, &abandoned));
    CHECK(abandoned == 0);
    IS(HS_E_DEADLOCK, hs_exec_mutex_lock(ours.mutex, PATIENCE, NULL));
    IS(HS_OK, hs_exec_mutex_unlock(ours.mutex));
    IS(HS_E_NOT_OWNER, hs_exec_mutex_unlock(ours.mutex));

    // Inheritance: the owner runs at the waiter's priority.
    hs_exec_task holder = started(40, locks_until_woken);
    until_waits(holder);
    IS(HS_E_TIMED_OUT, hs_exec_mutex_lock(ours.mutex, HS_EXEC_NO_WAIT, NULL));
    IS(HS_E_TIMED_OUT, hs_exec_mutex_lock(ours.mutex, MS, NULL));
    IS(HS_E_NOT_OWNER, hs_exec_mutex_unlock(ours.mutex));
    hs_exec_task waiter = started(10, locks_once);
    until_waits(waiter);
    IS(HS_OK, hs_exec_task_look(holder, &info));
    CHECK(info.priority == 40 && info.effective == 10);
    IS(HS_OK, hs_exec_wake(holder));
    ended(waiter, HS_EXEC_RETURNED);
    ended(holder, HS_EXEC_RETURNED);

    // An owner that is gone is told, once: one that returned, and one that was killed.
    ended(started(10, keeps_it), HS_EXEC_RETURNED);
    IS(HS_OK, hs_exec_mutex_lock(ours.mutex, PATIENCE, &abandoned));
    CHECK(abandoned == 1);
    IS(HS_OK, hs_exec_mutex_unlock(ours.mutex));
    IS(HS_OK, hs_exec_mutex_lock(ours.mutex, PATIENCE, &abandoned));
    CHECK(abandoned == 0);
    IS(HS_OK, hs_exec_mutex_unlock(ours.mutex));
    holder = started(10, locks_until_woken);
    until_waits(holder);
    IS(HS_OK, hs_exec_task_kill(holder));
    ended(holder, HS_EXEC_KILLED);
    IS(HS_OK, hs_exec_mutex_lock(ours.mutex, PATIENCE, &abandoned));
    CHECK(abandoned == 1);
    IS(HS_OK, hs_exec_mutex_unlock(ours.mutex));

    // A ceiling: the owner runs at it, and a more urgent task is refused.
    IS(HS_OK, hs_exec_mutex_lock(ours.low_ceiling, PATIENCE, NULL));
    IS(HS_OK, hs_exec_task_look(test, &info));
    CHECK(info.priority == 30 && info.effective == 20);
    IS(HS_OK, hs_exec_mutex_unlock(ours.low_ceiling));
    ended(started(10, is_above_the_ceiling), HS_EXEC_RETURNED);
}

// ---- conditions ----

BODY(waits_until_ready)
{
    NOTHING;
    IS(HS_OK, hs_exec_mutex_lock(ours.mutex, PATIENCE, NULL));
    while (!ready)
        IS(HS_OK, hs_exec_condition_wait(ours.condition, ours.mutex, PATIENCE, NULL));
    ready++;
    IS(HS_OK, hs_exec_mutex_unlock(ours.mutex));
}

BODY(waits_in_vain)
{
    NOTHING;
    IS(HS_OK, hs_exec_mutex_lock(ours.mutex, PATIENCE, NULL));
    code = hs_exec_condition_wait(ours.condition, ours.mutex, HS_EXEC_FOREVER, NULL);
    if (code == HS_E_CANCELLED)
        IS(HS_OK, hs_exec_mutex_unlock(ours.mutex));
    else
        IS(HS_E_NOT_OWNER, hs_exec_mutex_unlock(ours.mutex));
}

static void conditions(void)
{
    hs_exec_task first = started(10, waits_until_ready), second = started(11, waits_until_ready);
    until_waits(first);
    until_waits(second);
    // Both have left the mutex while they wait.
    IS(HS_OK, hs_exec_mutex_lock(ours.mutex, HS_EXEC_NO_WAIT, NULL));
    IS(HS_OK, hs_exec_condition_notify(ours.condition));
    ready = 1;
    IS(HS_OK, hs_exec_mutex_unlock(ours.mutex));
    ended(first, HS_EXEC_RETURNED);
    ended(second, HS_EXEC_RETURNED);
    CHECK(ready == 3);

    IS(HS_E_NOT_OWNER, hs_exec_condition_wait(ours.condition, ours.mutex, MS, NULL));
    IS(HS_OK, hs_exec_mutex_lock(ours.mutex, PATIENCE, NULL));
    int32_t abandoned = -1;
    IS(HS_E_TIMED_OUT, hs_exec_condition_wait(ours.condition, ours.mutex, MS, &abandoned));
    CHECK(abandoned == 0);
    IS(HS_OK, hs_exec_mutex_unlock(ours.mutex));

    hs_exec_task vain = started(10, waits_in_vain);
    until_waits(vain);
    IS(HS_OK, hs_exec_task_cancel_wait(vain, NULL));
    ended(vain, HS_EXEC_RETURNED);
    CHECK(code == HS_E_CANCELLED);
    vain = started(10, waits_in_vain);
    until_waits(vain);
    IS(HS_OK, hs_exec_task_kill(vain));
    ended(vain, HS_EXEC_KILLED);
    CHECK(code == HS_E_KILLED);
}

// ---- pipes ----

static const char TEXT[] = "twenty-five bytes of text";

BODY(writes_it_all)
{
    NOTHING;
    IS(HS_OK, hs_exec_pipe_write_all(ours.pipe, TEXT, 25, PATIENCE));
}

static void pipes(void)
{
    char read[32];
    size_t count = 99, all = 0;
    IS(HS_E_TIMED_OUT, hs_exec_pipe_read(ours.pipe, read, sizeof read, HS_EXEC_NO_WAIT, &count));
    IS(HS_E_TIMED_OUT, hs_exec_pipe_read(ours.pipe, read, sizeof read, MS, &count));
    IS(HS_OK, hs_exec_pipe_read(ours.pipe, read, 0, PATIENCE, &count));
    CHECK(count == 0);
    IS(HS_OK, hs_exec_pipe_write(ours.pipe, TEXT, 25, PATIENCE, &count));
    CHECK(count == 8);
    IS(HS_E_FULL, hs_exec_pipe_write(ours.pipe, TEXT, 1, HS_EXEC_NO_WAIT, &count));
    IS(HS_E_TIMED_OUT, hs_exec_pipe_write(ours.pipe, TEXT, 1, MS, &count));
    IS(HS_E_TIMED_OUT, hs_exec_pipe_write_all(ours.pipe, TEXT, 1, MS));
    IS(HS_OK, hs_exec_pipe_read(ours.pipe, read, 5, PATIENCE, &count));
    CHECK(count == 5 && !memcmp(read, "twent", 5));
    IS(HS_OK, hs_exec_pipe_count(ours.pipe, &count));
    CHECK(count == 3);
    IS(HS_OK, hs_exec_pipe_read(ours.pipe, read, sizeof read, HS_EXEC_NO_WAIT, &count));
    CHECK(count == 3 && !memcmp(read, "y-f", 3));
    // A writer that waits for room, piece by piece.
    hs_exec_task writer = started(40, writes_it_all);
    while (all < 25) {
        IS(HS_OK, hs_exec_pipe_read(ours.pipe, read + all, sizeof read - all, PATIENCE, &count));
        CHECK(count > 0 && count <= 8);
        all += count;
    }
    CHECK(all == 25 && !memcmp(read, TEXT, 25));
    ended(writer, HS_EXEC_RETURNED);
}

// ---- broadcasts ----

BODY(hears_nothing)
{
    NOTHING;
    hs_exec_message heard;
    IS(HS_E_CANCELLED, hs_exec_subscriber_next(ours.subscriber, HS_EXEC_FOREVER, &heard, NULL));
}

static void broadcasts(void)
{
    hs_exec_message one = { { 0, 0, 0, 9 } }, heard;
    uint64_t missed = 99;
    IS(HS_E_EMPTY, hs_exec_broadcast_latest(ours.broadcast, &heard));
    IS(HS_E_TIMED_OUT, hs_exec_subscriber_next(ours.subscriber, HS_EXEC_NO_WAIT, &heard, &missed));
    IS(HS_E_TIMED_OUT, hs_exec_subscriber_next(ours.subscriber, MS, &heard, &missed));
    for (one.words[0] = 1; one.words[0] <= 3; one.words[0]++)
        IS(HS_OK, hs_exec_broadcast_send(ours.broadcast, &one));
    IS(HS_OK, hs_exec_broadcast_latest(ours.broadcast, &heard));
    CHECK(heard.words[0] == 3 && heard.words[3] == 9);
    IS(HS_OK, hs_exec_subscriber_next(ours.subscriber, PATIENCE, &heard, &missed));
    CHECK(heard.words[0] == 2 && missed == 1);
    IS(HS_OK, hs_exec_subscriber_next(ours.subscriber, HS_EXEC_NO_WAIT, &heard, &missed));
    CHECK(heard.words[0] == 3 && heard.words[3] == 9 && missed == 0);
    // One task at a time.
    hs_exec_task other = started(10, hears_nothing);
    until_waits(other);
    IS(HS_E_BUSY, hs_exec_subscriber_next(ours.subscriber, HS_EXEC_NO_WAIT, &heard, NULL));
    IS(HS_OK, hs_exec_task_cancel_wait(other, NULL));
    ended(other, HS_EXEC_RETURNED);
}

// ---- selectors ----

BODY(writes_a_byte)
{
    NOTHING;
    size_t count;
    IS(HS_OK, hs_exec_pipe_write(ours.pipe, "x", 1, PATIENCE, &count));
}

BODY(selects_until_cancelled)
{
    NOTHING;
    const void *objects[] = { ours.queue };
    size_t index;
    IS(HS_E_CANCELLED, hs_exec_selector_wait(ours.second, objects, 1, HS_EXEC_FOREVER, &index));
}

static void selectors(void)
{
    const void *objects[] = { ours.queue, ours.pipe, ours.subscriber };
    hs_exec_message one = { { 4 } };
    char byte;
    size_t index = 99, count;
    IS(HS_E_TIMED_OUT, hs_exec_selector_wait(ours.selector, objects, 3, HS_EXEC_NO_WAIT, &index));
    IS(HS_E_TIMED_OUT, hs_exec_selector_wait(ours.selector, objects, 3, MS, &index));
    IS(HS_OK, hs_exec_broadcast_send(ours.broadcast, &one));
    IS(HS_OK, hs_exec_selector_wait(ours.selector, objects, 3, PATIENCE, &index));
    CHECK(index == 2);
    IS(HS_OK, hs_exec_queue_send(ours.queue, &one, HS_EXEC_NO_WAIT));
    IS(HS_OK, hs_exec_selector_wait(ours.selector, objects, 3, HS_EXEC_NO_WAIT, &index));
    CHECK(index == 0);
    IS(HS_OK, hs_exec_queue_receive(ours.queue, HS_EXEC_NO_WAIT, &one));
    IS(HS_OK, hs_exec_subscriber_next(ours.subscriber, HS_EXEC_NO_WAIT, &one, NULL));
    // Nothing is left, until a less urgent task writes.
    hs_exec_task writer = started(40, writes_a_byte);
    IS(HS_OK, hs_exec_selector_wait(ours.selector, objects, 3, PATIENCE, &index));
    CHECK(index == 1);
    IS(HS_OK, hs_exec_pipe_read(ours.pipe, &byte, 1, HS_EXEC_NO_WAIT, &count));
    CHECK(byte == 'x');
    ended(writer, HS_EXEC_RETURNED);
    // An object is waited for by one selector at a time, and a selector used by one task.
    hs_exec_task other = started(10, selects_until_cancelled);
    until_waits(other);
    IS(HS_E_BUSY, hs_exec_selector_wait(ours.selector, objects, 3, MS, &index));
    IS(HS_E_BUSY, hs_exec_selector_wait(ours.second, objects + 1, 2, MS, &index));
    IS(HS_OK, hs_exec_task_cancel_wait(other, NULL));
    ended(other, HS_EXEC_RETURNED);
    IS(HS_E_TIMED_OUT, hs_exec_selector_wait(ours.selector, objects, 3, MS, &index));
}

// ---- tickers ----

BODY(ticks_for_ever)
{
    NOTHING;
    IS(HS_OK, hs_exec_ticker_start(ours.ticker, 3600 * 1000 * MS));
    IS(HS_E_CANCELLED, hs_exec_ticker_next(ours.ticker, NULL));
}

static void tickers(void)
{
    hs_exec_tick first = { .size = sizeof first }, later = { .size = sizeof later };
    IS(HS_E_STATE, hs_exec_ticker_next(ours.ticker, &first));
    CHECK(strstr(hs_last_error(), "the ticker is not started"));
    int64_t before = hs_exec_now_ns();
    IS(HS_OK, hs_exec_ticker_start(ours.ticker, 2 * MS));
    IS(HS_OK, hs_exec_ticker_next(ours.ticker, &first));
    CHECK(first.number == 1 + first.missed && first.due_ns >= before + 2 * MS && first.late_ns >= 0);
    CHECK(hs_exec_now_ns() >= first.due_ns);
    // Five periods: at least four ticks have passed besides the one that is told.
    IS(HS_OK, hs_exec_delay_ns(10 * MS));
    IS(HS_OK, hs_exec_ticker_next(ours.ticker, &later));
    CHECK(later.missed >= 4 && later.number == first.number + 1 + later.missed);
    CHECK(later.due_ns == first.due_ns + (int64_t)(later.number - first.number) * 2 * MS);
    first.size = 8;
    IS(HS_E_RANGE, hs_exec_ticker_next(ours.ticker, &first));
    hs_exec_task other = started(10, ticks_for_ever);
    until_waits(other);
    IS(HS_E_BUSY, hs_exec_ticker_next(ours.ticker, NULL));
    IS(HS_OK, hs_exec_task_cancel_wait(other, NULL));
    ended(other, HS_EXEC_RETURNED);
}

// ---- results ----

BODY(leaves_a_result)
{
    NOTHING;
    IS(HS_OK, hs_exec_delay_ns(MS));
    IS(HS_OK, hs_exec_task_set_result(UINT64_C(0x123456789abcdef0)));
}

static void results(void)
{
    uint64_t result = 1;
    int32_t how;
    hs_exec_task leaver = task(exec, 40, leaves_a_result, 0);
    IS(HS_OK, hs_exec_task_result(leaver, &result));
    CHECK(result == 0);
    IS(HS_OK, hs_exec_task_start(leaver));
    IS(HS_OK, hs_exec_task_join(leaver, PATIENCE, &how));
    IS(HS_OK, hs_exec_task_result(leaver, &result));
    CHECK(how == HS_EXEC_RETURNED && result == UINT64_C(0x123456789abcdef0));
    IS(HS_OK, hs_exec_task_delete(leaver));
    IS(HS_E_FREED, hs_exec_task_result(leaver, &result));
    leaver.id = 0;
    IS(HS_E_HANDLE, hs_exec_task_result(leaver, &result));
    // For the program after the run.
    IS(HS_OK, hs_exec_task_set_result(77));
}

// ---- from a procedure ----

static void on_timer(void *argument, const hs_exec_expiry *expiry)
{
    (void)argument, (void)expiry;
    hs_exec_message one = { { 5 } };
    hs_exec_tick tick = { .size = sizeof tick };
    const void *objects[] = { ours.queue };
    char byte = 'y';
    size_t count;
    IS(HS_E_CALLER, hs_exec_mutex_lock(ours.mutex, HS_EXEC_NO_WAIT, NULL));
    IS(HS_E_CALLER, hs_exec_mutex_unlock(ours.mutex));
    IS(HS_E_CALLER, hs_exec_condition_wait(ours.condition, ours.mutex, MS, NULL));
    IS(HS_E_CALLER, hs_exec_pipe_write(ours.pipe, &byte, 1, MS, &count));
    IS(HS_E_CALLER, hs_exec_pipe_write_all(ours.pipe, &byte, 1, MS));
    IS(HS_E_CALLER, hs_exec_pipe_read(ours.pipe, &byte, 1, MS, &count));
    IS(HS_E_CALLER, hs_exec_subscriber_next(ours.subscriber, HS_EXEC_NO_WAIT, &one, NULL));
    IS(HS_E_CALLER, hs_exec_selector_wait(ours.selector, objects, 1, HS_EXEC_NO_WAIT, &count));
    IS(HS_E_CALLER, hs_exec_ticker_start(ours.ticker, MS));
    IS(HS_E_CALLER, hs_exec_ticker_next(ours.ticker, &tick));
    // Objects are made from outside and by tasks.
    IS(HS_E_CALLER, hs_exec_pipe_new(exec, 8, &ours.pipe));
    IS(HS_E_CALLER, hs_exec_task_set_result(1));
    IS(HS_OK, hs_exec_pipe_write(ours.pipe, &byte, 1, HS_EXEC_NO_WAIT, &count));
    IS(HS_OK, hs_exec_pipe_read(ours.pipe, &byte, 1, HS_EXEC_NO_WAIT, &count));
    IS(HS_OK, hs_exec_pipe_count(ours.pipe, &count));
    IS(HS_OK, hs_exec_broadcast_send(ours.broadcast, &one));
    IS(HS_OK, hs_exec_broadcast_latest(ours.broadcast, &one));
    IS(HS_OK, hs_exec_condition_notify(ours.condition));
    in_procedure++;
    IS(HS_OK, hs_exec_wake(test));
}

BODY(tests)
{
    NOTHING;
    wrong_handles();
    wrong_arguments();
    mutexes();
    conditions();
    pipes();
    broadcasts();
    selectors();
    tickers();
    IS(HS_OK, hs_exec_timer_start_ns(timer, hs_exec_now_ns() + MS));
    IS(HS_OK, hs_exec_wait(PATIENCE));
    CHECK(in_procedure == 1);
    results();
}

int main(void)
{
    CHECK(sizeof(hs_exec_tick) == 40 && offsetof(hs_exec_tick, missed) == 24 && offsetof(hs_exec_tick, late_ns) == 32);
    for (size_t number = 0; number < sizeof BACKENDS / sizeof *BACKENDS; number++) {
        uint64_t result;
        ready = code = in_procedure = 0;
        hs_exec *other = fresh(BACKENDS[number]);
        exec = fresh(BACKENDS[number]);
        make(exec, &ours);
        make(other, &theirs);
        // From outside, before a run.
        refused(&ours, HS_E_CALLER);
        IS(HS_E_CALLER, hs_exec_task_set_result(1));
        IS(HS_E_HANDLE, hs_exec_subscriber_new(exec, theirs.broadcast, &ours.subscriber));
        IS(HS_E_HANDLE, hs_exec_subscriber_new(exec, NULL, &ours.subscriber));
        IS(HS_E_HANDLE, hs_exec_pipe_new((hs_exec *)ours.pipe, 8, &ours.pipe));
        test = task(exec, 30, tests, 0);
        IS(HS_OK, hs_exec_timer_new(exec, "t", on_timer, NULL, &timer));
        IS(HS_OK, hs_exec_task_start(test));
        hs_exec_finish finish = run(exec);
        CHECK(finish.stopped == HS_EXEC_FINISHED && in_procedure == 1);
        IS(HS_OK, hs_exec_task_result(test, &result));
        CHECK(result == 77);
        IS(HS_OK, hs_exec_free(exec));
        IS(HS_OK, hs_exec_free(other));
        refused(&ours, HS_E_FREED);
        refused(&theirs, HS_E_FREED);
    }
    printf("checks %d\n", checks);
    return 0;
}
