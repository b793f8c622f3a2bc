// The executive from C: each service on each back-end, and everything that can be done wrong, with its outcome.
#define _GNU_SOURCE
#include "exec_check.h"
#include <pthread.h>
#include <string.h>

static hs_exec *exec;
static hs_exec_task low, high, mail;
static hs_exec_semaphore semaphore;
static hs_exec_resource resource;
static hs_exec_events events;
static hs_exec_exchange exchange;
static hs_exec_pool *pool;
static hs_exec_queue *queue;
static hs_exec_timer timer;
static hs_exec_interrupt *interrupt;
static int backend, seen, expiries, arrivals;

// ---- every service ----

static void on_timer(void *argument, const hs_exec_expiry *expiry)
{
    CHECK(argument == &timer && expiry->deadline_ns <= hs_exec_now_ns() && hs_exec_by() == HS_EXEC_BY_TIMER);
    IS(HS_E_CALLER, hs_exec_wait(HS_EXEC_NO_WAIT));
    IS(HS_E_CALLER, hs_exec_yield());
    if (++expiries == 3) {
        IS(HS_OK, hs_exec_timer_stop(timer));
        IS(HS_OK, hs_exec_wake(low));
    }
}

static void on_interrupt(void *argument, const hs_exec_arrival *arrival)
{
    CHECK(argument == &interrupt && arrival->count == 1 && hs_exec_by() == HS_EXEC_BY_INTERRUPT);
    IS(HS_E_CALLER, hs_exec_wait(HS_EXEC_NO_WAIT));
    // Allowed here; the task is not suspended.
    IS(HS_E_STATE, hs_exec_task_resume(low));
    arrivals++;
    IS(HS_OK, hs_exec_semaphore_signal(semaphore));
}

static void waits(void *argument, const hs_exec_message *message)
{
    CHECK(argument == NULL && message == NULL);
    IS(HS_OK, hs_exec_wait(PATIENCE));
    __atomic_fetch_add(&seen, 1, __ATOMIC_SEQ_CST);
    IS(HS_OK, hs_exec_task_suspend(high));
    __atomic_fetch_add(&seen, 1, __ATOMIC_SEQ_CST);
    // Holds the resource when the other asks for it.
    IS(HS_OK, hs_exec_reserve(resource, PATIENCE));
    IS(HS_OK, hs_exec_signal(low, 1));
    IS(HS_OK, hs_exec_delay_ns(2 * MS));
    IS(HS_OK, hs_exec_release(resource));
}

static void acknowledges(void *argument, const hs_exec_message *message)
{
    CHECK(argument == NULL && message->words[0] == 1 && message->words[3] == 4);
    hs_exec_message next;
    IS(HS_OK, hs_exec_acknowledge(77));
    IS(HS_OK, hs_exec_receive(HS_EXEC_ANY, PATIENCE, &next));
    CHECK(next.words[0] == 5);
    IS(HS_E_EMPTY, hs_exec_acknowledge(0));
    IS(HS_E_TIMED_OUT, hs_exec_receive(0, HS_EXEC_NO_WAIT, &next));
    __atomic_fetch_add(&seen, 1, __ATOMIC_SEQ_CST);
}

static void sends_two(void *argument, const hs_exec_message *message)
{
    CHECK(argument == NULL && message == NULL);
    hs_exec_message one = { .words = { 11 } };
    IS(HS_OK, hs_exec_queue_send(queue, &one, PATIENCE));
    one.words[0] = 12;
    IS(HS_OK, hs_exec_queue_send(queue, &one, PATIENCE));
}

static void is_cancelled(void *argument, const hs_exec_message *message)
{
    CHECK(argument == NULL && message == NULL);
    IS(HS_E_CANCELLED, hs_exec_wait(HS_EXEC_FOREVER));
    CHECK(strstr(hs_last_error(), "broke off"));
}

static void services(void *argument, const hs_exec_message *message)
{
    CHECK(argument == &low && message == NULL && hs_exec_by() == HS_EXEC_BY_TASK);
    hs_exec_task self;
    hs_exec_message one = { .words = { 1, 2, 3, 4 } }, got;
    uint32_t bits, value;
    void *block, *blocks[3];
    IS(HS_OK, hs_exec_self(&self));
    CHECK(self.id == low.id);

    // Time: never early.
    int64_t before = hs_exec_now_ns();
    IS(HS_OK, hs_exec_delay_ns(MS));
    CHECK(hs_exec_now_ns() - before >= MS);
    IS(HS_OK, hs_exec_delay_until_ns(before + 3 * MS));
    CHECK(hs_exec_now_ns() - before >= 3 * MS);
    IS(HS_OK, hs_exec_work_ns(1000));
    IS(HS_OK, hs_exec_preempt_point());
    IS(HS_OK, hs_exec_yield());

    // Wakes: one is kept.
    IS(HS_E_TIMED_OUT, hs_exec_wait(HS_EXEC_NO_WAIT));
    CHECK(strstr(hs_last_error(), "limit passed"));
    IS(HS_E_TIMED_OUT, hs_exec_wait(MS));
    IS(HS_OK, hs_exec_wake(self));
    IS(HS_E_OVERFLOW, hs_exec_wake(self));
    IS(HS_OK, hs_exec_wait(HS_EXEC_NO_WAIT));
    IS(HS_OK, hs_exec_wake(self));
    IS(HS_OK, hs_exec_wake_reset());
    IS(HS_E_TIMED_OUT, hs_exec_wait(HS_EXEC_NO_WAIT));

    // Timer.
    IS(HS_OK, hs_exec_timer_start_periodic_ns(timer, hs_exec_now_ns() + MS, MS));
    IS(HS_OK, hs_exec_wait(PATIENCE));
    CHECK(expiries == 3);
    IS(HS_OK, hs_exec_timer_start_ns(timer, hs_exec_now_ns() + 3600 * 1000 * MS));
    IS(HS_OK, hs_exec_timer_stop(timer));
    IS(HS_E_RANGE, hs_exec_timer_start_periodic_ns(timer, 1, 0));

    // Interrupt.
    if (backend != HS_EXEC_SIM) {
        IS(HS_OK, hs_exec_interrupt_post(interrupt));
        IS(HS_OK, hs_exec_semaphore_wait(semaphore, PATIENCE));
        CHECK(arrivals == 1);
    }

    // A more urgent task; suspended, resumed; inheritance.
    IS(HS_E_STATE, hs_exec_wake(high));
    IS(HS_OK, hs_exec_task_start(high));
    IS(HS_OK, hs_exec_delay_ns(MS));
    IS(HS_OK, hs_exec_wake(high));
    IS(HS_OK, hs_exec_delay_ns(MS));
    CHECK(__atomic_load_n(&seen, __ATOMIC_SEQ_CST) == 1);
    IS(HS_OK, hs_exec_task_resume(high));
    IS(HS_OK, hs_exec_signals_wait(1, 0, PATIENCE, &bits));
    CHECK(bits == 1 && __atomic_load_n(&seen, __ATOMIC_SEQ_CST) == 2);
    IS(HS_E_NOT_OWNER, hs_exec_release(resource));
    IS(HS_E_TIMED_OUT, hs_exec_reserve(resource, HS_EXEC_NO_WAIT));
    IS(HS_OK, hs_exec_reserve(resource, PATIENCE));
    IS(HS_OK, hs_exec_reserve(resource, PATIENCE));
    IS(HS_OK, hs_exec_release(resource));
    IS(HS_OK, hs_exec_release(resource));
    IS(HS_OK, hs_exec_task_set_priority(self, 41));
    IS(HS_OK, hs_exec_task_set_priority(self, 40));
    IS(HS_E_STATE, hs_exec_task_resume(self));

    // Semaphore, events, exchange, mail, blocks.
    IS(HS_OK, hs_exec_semaphore_signal(semaphore));
    IS(HS_E_OVERFLOW, hs_exec_semaphore_signal(semaphore));
    IS(HS_OK, hs_exec_semaphore_wait_at(semaphore, 3, MS));
    IS(HS_E_TIMED_OUT, hs_exec_events_wait_at(events, 0x80, 0, 3, HS_EXEC_NO_WAIT, NULL));
    IS(HS_E_TIMED_OUT, hs_exec_fetch_at(exchange, 3, HS_EXEC_NO_WAIT, &got));
    IS(HS_OK, hs_exec_reserve_at(resource, 3, MS));
    IS(HS_OK, hs_exec_release(resource));
    IS(HS_E_RANGE, hs_exec_reserve_at(resource, 64, MS));
    IS(HS_E_RANGE, hs_exec_fetch_at(exchange, -1, MS, &got));
    IS(HS_E_RANGE, hs_exec_events_wait_at(events, 1, 0, 64, MS, NULL));
    IS(HS_E_TIMED_OUT, hs_exec_semaphore_wait(semaphore, MS));
    IS(HS_OK, hs_exec_events_signal(events, 6));
    IS(HS_OK, hs_exec_events_wait(events, 6, HS_EXEC_ALL, HS_EXEC_NO_WAIT, &bits));
    CHECK(bits == 6);
    IS(HS_OK, hs_exec_events_wait(events, 2, HS_EXEC_TAKE, HS_EXEC_NO_WAIT, NULL));
    IS(HS_E_TIMED_OUT, hs_exec_events_wait(events, 6, HS_EXEC_ALL, MS, &bits));
    IS(HS_OK, hs_exec_events_clear(events, 4));
    IS(HS_E_TIMED_OUT, hs_exec_events_wait(events, 4, 0, HS_EXEC_NO_WAIT, &bits));
    IS(HS_E_RANGE, hs_exec_events_wait(events, 0, 0, MS, &bits));
    IS(HS_E_RANGE, hs_exec_events_wait(events, 1, 4, MS, &bits));
    IS(HS_OK, hs_exec_post(exchange, 0, &one));
    IS(HS_E_FULL, hs_exec_post(exchange, 0, &one));
    IS(HS_E_RANGE, hs_exec_post(exchange, 1, &one));
    IS(HS_E_RANGE, hs_exec_post(exchange, 4, &one));
    one.words[3] = 9;
    IS(HS_OK, hs_exec_fetch(exchange, HS_EXEC_NO_WAIT, &got));
    CHECK(got.words[0] == 1 && got.words[3] == 4);
    IS(HS_E_TIMED_OUT, hs_exec_fetch(exchange, MS, &got));
    one.words[3] = 4;
    IS(HS_OK, hs_exec_send_wait(mail, 0, &one, PATIENCE, &value));
    CHECK(value == 77);
    one.words[0] = 5;
    IS(HS_OK, hs_exec_send(mail, 0, &one));
    IS(HS_E_RANGE, hs_exec_receive(0, HS_EXEC_NO_WAIT, &got));
    for (int number = 0; number < 3; number++) {
        IS(HS_OK, hs_exec_pool_take(pool, &blocks[number]));
        memset(blocks[number], number, 100);
    }
    IS(HS_E_EMPTY, hs_exec_pool_take(pool, &block));
    IS(HS_OK, hs_exec_pool_give(pool, blocks[1]));
    IS(HS_E_STATE, hs_exec_pool_give(pool, blocks[1]));
    IS(HS_E_RANGE, hs_exec_pool_give(pool, (char *)blocks[0] + 1));
    IS(HS_E_RANGE, hs_exec_pool_give(pool, &block));
    IS(HS_OK, hs_exec_pool_take(pool, &block));
    CHECK(block == blocks[1] && ((char *)blocks[0])[99] == 0 && ((char *)blocks[2])[0] == 2);
    for (int number = 0; number < 3; number++)
        IS(HS_OK, hs_exec_pool_give(pool, blocks[number]));

    // A queue whose sender waits for room; a run that is waited for; a wait that is broken off.
    uint32_t count;
    int32_t how, waited;
    hs_exec_task_info info = { .size = sizeof info };
    hs_exec_task sender = task(exec, 30, sends_two, 0);
    IS(HS_E_TIMED_OUT, hs_exec_queue_receive(queue, HS_EXEC_NO_WAIT, &got));
    IS(HS_E_TIMED_OUT, hs_exec_queue_receive(queue, MS, &got));
    IS(HS_OK, hs_exec_task_start(sender));
    IS(HS_OK, hs_exec_delay_ns(2 * MS));
    IS(HS_OK, hs_exec_task_look(sender, &info));
    CHECK(info.state == HS_EXEC_WAITING && info.priority == 30 && info.effective == 30 && info.wait_ends_ns > hs_exec_now_ns());
    IS(HS_OK, hs_exec_queue_count(queue, &count));
    CHECK(count == 1);
    IS(HS_E_FULL, hs_exec_queue_send(queue, &one, HS_EXEC_NO_WAIT));
    IS(HS_E_TIMED_OUT, hs_exec_queue_send(queue, &one, MS));
    IS(HS_OK, hs_exec_queue_receive(queue, PATIENCE, &got));
    CHECK(got.words[0] == 11);
    IS(HS_OK, hs_exec_queue_receive(queue, PATIENCE, &got));
    CHECK(got.words[0] == 12);
    IS(HS_OK, hs_exec_task_join(sender, PATIENCE, &how));
    CHECK(how == HS_EXEC_RETURNED);
    IS(HS_E_DEADLOCK, hs_exec_task_join(self, PATIENCE, &how));
    IS(HS_OK, hs_exec_queue_send(queue, &one, PATIENCE));
    IS(HS_OK, hs_exec_queue_clear(queue));
    IS(HS_OK, hs_exec_queue_count(queue, &count));
    CHECK(count == 0);
    hs_exec_task sleeper = task(exec, 30, is_cancelled, 0);
    IS(HS_E_STATE, hs_exec_task_cancel_wait(sleeper, NULL));
    IS(HS_OK, hs_exec_task_start(sleeper));
    IS(HS_OK, hs_exec_delay_ns(2 * MS));
    IS(HS_OK, hs_exec_task_cancel_wait(sleeper, &waited));
    CHECK(waited == 1);
    IS(HS_OK, hs_exec_task_join(sleeper, PATIENCE, NULL));
    IS(HS_OK, hs_exec_task_look(sleeper, &info));
    CHECK(info.state == HS_EXEC_IDLE && info.wait_ends_ns == -1);
    info.size = 8;
    IS(HS_E_RANGE, hs_exec_task_look(sleeper, &info));
    IS(HS_OK, hs_exec_semaphore_signal(semaphore));
    IS(HS_OK, hs_exec_semaphore_count(semaphore, &count));
    CHECK(count == 1);

    // Created and deleted during the run.
    hs_exec_task made = task(exec, 50, waits, 0);
    IS(HS_OK, hs_exec_task_delete(made));
    IS(HS_E_FREED, hs_exec_task_start(made));
    IS(HS_E_STATE, hs_exec_task_delete(self));
    IS(HS_E_BUSY, hs_exec_run(exec, 0, NULL));
    IS(HS_E_CALLER, hs_exec_free(exec));
    IS(HS_OK, hs_exec_delay_ns(5 * MS));
    IS(HS_OK, hs_exec_stop());
    IS(HS_E_KILLED, hs_exec_wait(HS_EXEC_FOREVER));
}

static void every_service(int kind)
{
    backend = kind;
    seen = expiries = arrivals = 0;
    exec = fresh(kind);
    hs_exec_task_options options = { .size = sizeof options, .entry = services, .argument = &low, .priority = 40 };
    IS(HS_OK, hs_exec_task_new(exec, &options, &low));
    high = task(exec, 10, waits, 0);
    mail = task(exec, 20, acknowledges, 4);
    IS(HS_OK, hs_exec_semaphore_new(exec, 0, 1, &semaphore));
    IS(HS_E_OVERFLOW, hs_exec_semaphore_new(exec, 2, 1, &semaphore));
    IS(HS_OK, hs_exec_resource_new(exec, HS_EXEC_PROTOCOL_INHERIT, 0, &resource));
    IS(HS_OK, hs_exec_events_new(exec, 0, &events));
    IS(HS_OK, hs_exec_exchange_new(exec, 1, 0, 0, 0, &exchange));
    IS(HS_OK, hs_exec_pool_new(exec, 3, 100, &pool));
    IS(HS_E_RANGE, hs_exec_queue_new(exec, 0, &queue));
    IS(HS_OK, hs_exec_queue_new(exec, 1, &queue));
    IS(HS_OK, hs_exec_timer_new(exec, NULL, on_timer, &timer, &timer));
    IS(HS_OK, hs_exec_interrupt_new(exec, "i", HS_EXEC_SOFTWARE, -1, on_interrupt, &interrupt, &interrupt));
    IS(HS_OK, hs_exec_task_start(low));
    hs_exec_finish finish = run(exec);
    CHECK(finish.stopped == HS_EXEC_ASKED && __atomic_load_n(&seen, __ATOMIC_SEQ_CST) == 3 && hs_exec_by() == HS_EXEC_BY_OUTSIDE);
    IS(HS_OK, hs_exec_free(exec));
    IS(HS_E_FREED, hs_exec_interrupt_post(interrupt));
    IS(HS_E_CALLER, hs_exec_task_start(low));
}

// ---- done wrong ----

static hs_exec_task other_task;
static hs_exec_semaphore other_units;
static hs_exec_events other_bits;
static hs_exec *other;

static void ids(void *argument, const hs_exec_message *message)
{
    (void)argument, (void)message;
    hs_exec_task wrong = { 0 };
    IS(HS_E_HANDLE, hs_exec_wake(wrong));
    wrong.id = semaphore.id;
    IS(HS_E_HANDLE, hs_exec_wake(wrong));
    IS(HS_E_HANDLE, hs_exec_task_suspend(wrong));
    IS(HS_E_HANDLE, hs_exec_wake(other_task));
    wrong.id = low.id ^ 0xfff;
    IS(HS_E_FREED, hs_exec_wake(wrong));
    IS(HS_E_NULL, hs_exec_send(mail, 0, NULL));
    // All that the calls would need is there: a unit, room for one, and bits.
    hs_exec_semaphore strange = { other_bits.id };
    hs_exec_events strangers = { other_units.id };
    uint32_t came[2];
    IS(HS_OK, hs_exec_semaphore_signal(semaphore));
    IS(HS_E_HANDLE, hs_exec_semaphore_signal(other_units));
    IS(HS_E_HANDLE, hs_exec_semaphore_wait(other_units, 0));
    IS(HS_E_HANDLE, hs_exec_semaphore_signal(strange));
    IS(HS_E_HANDLE, hs_exec_semaphore_wait(strange, 0));
    IS(HS_E_NEGATIVE, hs_exec_semaphore_wait(semaphore, -1));
    IS(HS_E_HANDLE, hs_exec_events_signal(other_bits, 1));
    IS(HS_E_HANDLE, hs_exec_events_wait(other_bits, 1, 0, 0, came));
    IS(HS_E_HANDLE, hs_exec_events_signal(strangers, 1));
    IS(HS_OK, hs_exec_events_signal(events, 1));
    IS(HS_E_NEGATIVE, hs_exec_events_wait(events, 1, HS_EXEC_TAKE, -1, came));
    IS(HS_E_RANGE, hs_exec_events_wait(events, 0, HS_EXEC_ALL, 0, came));
    IS(HS_E_RANGE, hs_exec_events_wait(events, 1, 4, 0, came));
    IS(HS_E_NULL, hs_exec_events_wait(events, 1, HS_EXEC_TAKE, 0, (uint32_t *)((char *)came + 1)));
    IS(HS_OK, hs_exec_events_wait(events, 1, HS_EXEC_TAKE, 0, NULL));
    IS(HS_E_TIMED_OUT, hs_exec_events_wait(events, 1, HS_EXEC_TAKE, 0, came));
    IS(HS_OK, hs_exec_semaphore_wait(semaphore, 0));
    IS(HS_E_TIMED_OUT, hs_exec_semaphore_wait(semaphore, 0));
    IS(HS_E_NEGATIVE, hs_exec_wait(-1));
    IS(HS_E_NEGATIVE, hs_exec_delay_ns(-1));
    IS(HS_E_RANGE, hs_exec_task_set_priority(low, 64));
    IS(HS_E_HANDLE, hs_exec_pool_take((hs_exec_pool *)exec, NULL));
}

// Structures of a header that is newer than the library: they pass as long as they ask for nothing new.
static void sizes(void)
{
    struct { hs_exec_task_options known; uint64_t more[2]; } tasks = { .known = { .size = sizeof tasks, .entry = ids, .priority = 7 } };
    struct { hs_exec_options known; uint64_t more; } options = { .known = { .size = sizeof options, .cpu = -1 } };
    struct { hs_exec_task_info known; uint64_t more; } info = { .known = { .size = sizeof info }, .more = 7 };
    hs_exec_task made;
    hs_exec *newer;
    IS(HS_OK, hs_exec_task_new(exec, &tasks.known, &made));
    tasks.more[1] = 1;
    IS(HS_E_RANGE, hs_exec_task_new(exec, &tasks.known, &made));
    CHECK(strstr(hs_last_error(), "use a newer library"));
    tasks.known.size = SIZE_MAX;
    IS(HS_E_RANGE, hs_exec_task_new(exec, &tasks.known, &made));
    IS(HS_OK, hs_exec_new(&options.known, &newer));
    IS(HS_OK, hs_exec_free(newer));
    options.more = 1;
    IS(HS_E_RANGE, hs_exec_new(&options.known, &newer));
    IS(HS_OK, hs_exec_task_look(made, &info.known));
    CHECK(info.known.size == sizeof info && info.known.priority == 7 && info.known.wait_ends_ns == -1 && info.more == 0);
}

static void *elsewhere(void *argument)
{
    (void)argument;
    IS(HS_E_CALLER, hs_exec_wake(low));
    IS(HS_E_CALLER, hs_exec_wait(0));
    IS(HS_E_THREAD, hs_exec_run(exec, 0, NULL));
    IS(HS_E_THREAD, hs_exec_free(exec));
    return NULL;
}

static void wrong(int kind)
{
    exec = fresh(kind);
    other = fresh(kind);
    low = task(exec, 5, ids, 0);
    mail = task(exec, 6, acknowledges, 1);
    other_task = task(other, 5, ids, 0);
    IS(HS_OK, hs_exec_semaphore_new(exec, 0, 1, &semaphore));
    IS(HS_OK, hs_exec_semaphore_new(other, 1, 2, &other_units));
    IS(HS_OK, hs_exec_events_new(exec, 0, &events));
    IS(HS_OK, hs_exec_events_new(other, 1, &other_bits));
    IS(HS_E_CALLER, hs_exec_wait(0));
    IS(HS_E_CALLER, hs_exec_stop());
    IS(HS_E_CALLER, hs_exec_semaphore_wait(semaphore, 0));
    IS(HS_E_HANDLE, hs_exec_task_start((hs_exec_task){ 0 }));
    IS(HS_E_STATE, hs_exec_wake(low));
    IS(HS_E_HANDLE, hs_exec_run((hs_exec *)&exec, 0, NULL));
    IS(HS_E_NEGATIVE, hs_exec_run(exec, -1, NULL));
    hs_exec_finish finish = { .size = 1 };
    IS(HS_E_RANGE, hs_exec_run(exec, 0, &finish));
    hs_exec_options options = { .size = 8 };
    IS(HS_E_RANGE, hs_exec_new(&options, &other));
    options = (hs_exec_options){ .size = sizeof options, .backend = 9 };
    IS(HS_E_RANGE, hs_exec_new(&options, &other));
    hs_exec_task_options task_options = { .size = sizeof task_options };
    IS(HS_E_NULL, hs_exec_task_new(exec, &task_options, &low));
    task_options.entry = ids;
    task_options.priority = 64;
    IS(HS_E_RANGE, hs_exec_task_new(exec, &task_options, &low));
    sizes();
    pthread_t thread;
    CHECK(!pthread_create(&thread, NULL, elsewhere, NULL) && !pthread_join(thread, NULL));
    IS(HS_OK, hs_exec_task_start(low));
    finish = run(exec);
    // The mailbox's task is idle, and so is all else.
    CHECK(finish.stopped == HS_EXEC_FINISHED && finish.mishaps == 0);
    IS(HS_OK, hs_exec_free(exec));
    IS(HS_OK, hs_exec_free(other));
    IS(HS_E_FREED, hs_exec_run(exec, 0, NULL));
}

// ---- killed ----

static void waits_for_ever(void *argument, const hs_exec_message *message)
{
    (void)argument, (void)message;
    IS(HS_E_KILLED, hs_exec_wait(HS_EXEC_FOREVER));
    // Every call that waits says so, again and again; those that do not wait work.
    IS(HS_E_KILLED, hs_exec_delay_ns(MS));
    IS(HS_E_KILLED, hs_exec_semaphore_wait(semaphore, HS_EXEC_FOREVER));
    IS(HS_OK, hs_exec_semaphore_signal(semaphore));
    seen++;
}

static void kills(void *argument, const hs_exec_message *message)
{
    (void)argument, (void)message;
    hs_exec_task self;
    IS(HS_OK, hs_exec_task_start(high));
    IS(HS_OK, hs_exec_delay_ns(MS));
    IS(HS_OK, hs_exec_task_kill(high));
    IS(HS_OK, hs_exec_semaphore_wait(semaphore, PATIENCE));
    IS(HS_OK, hs_exec_delay_ns(MS));
    CHECK(seen == 1);
    // It can be started again; the end of the run kills it once more.
    IS(HS_OK, hs_exec_task_start(high));
    IS(HS_OK, hs_exec_delay_ns(MS));
    IS(HS_OK, hs_exec_self(&self));
    IS(HS_E_KILLED, hs_exec_task_kill(self));
    IS(HS_E_KILLED, hs_exec_delay_ns(MS));
}

static void killed(int kind)
{
    const char *text;
    hs_exec_task whose;
    seen = 0;
    exec = fresh(kind);
    low = task(exec, 40, kills, 0);
    high = task(exec, 10, waits_for_ever, 0);
    IS(HS_OK, hs_exec_semaphore_new(exec, 0, 9, &semaphore));
    IS(HS_OK, hs_exec_task_start(low));
    hs_exec_finish finish = run(exec);
    CHECK(finish.stopped == HS_EXEC_STUCK && seen == 2 && finish.mishaps >= 2);
    IS(HS_OK, hs_exec_mishap(exec, 0, &whose, &text));
    CHECK(whose.id == high.id && strstr(text, "t: killed"));
    IS(HS_E_NOT_FOUND, hs_exec_mishap(exec, 1000, NULL, &text));
    IS(HS_OK, hs_exec_free(exec));
}

// ---- interrupts from threads of the program ----

enum { POSTERS = 2, POSTS = 1000 };
static _Atomic int accepted, refused, ended;

static void *posts(void *argument)
{
    for (int number = 0; number < POSTS; number++) {
        int code = hs_exec_interrupt_post(interrupt);
        CHECK(code == HS_OK || code == HS_E_FULL);
        ++*(code == HS_OK ? &accepted : &refused);
    }
    ended++;
    return argument;
}

static void on_post(void *argument, const hs_exec_arrival *arrival)
{
    CHECK(argument == &interrupt && arrival->count == 1);
    arrivals++;
    IS(HS_OK, hs_exec_semaphore_signal(semaphore));
}

static void takes(void *argument, const hs_exec_message *message)
{
    (void)argument, (void)message;
    pthread_t threads[POSTERS];
    for (int number = 0; number < POSTERS; number++)
        CHECK(!pthread_create(&threads[number], NULL, posts, NULL));
    // An arrival that is lost ends the run by its limit.
    for (int taken = 0; ended < POSTERS || taken < accepted;)
        taken += hs_exec_semaphore_wait(semaphore, MS) == HS_OK;
    for (int number = 0; number < POSTERS; number++)
        CHECK(!pthread_join(threads[number], NULL));
    IS(HS_OK, hs_exec_stop());
}

// Each post that is not refused arrives once, and what the procedure wrote the task reads.
static void posted(int kind)
{
    accepted = refused = ended = arrivals = 0;
    exec = fresh(kind);
    low = task(exec, 40, takes, 0);
    IS(HS_OK, hs_exec_semaphore_new(exec, 0, UINT32_MAX, &semaphore));
    IS(HS_OK, hs_exec_interrupt_new(exec, "post", HS_EXEC_SOFTWARE, -1, on_post, &interrupt, &interrupt));
    IS(HS_OK, hs_exec_task_start(low));
    hs_exec_finish finish = run(exec);
    CHECK(finish.stopped == HS_EXEC_ASKED && arrivals == accepted && accepted + refused == POSTERS * POSTS);
    CHECK(finish.interrupts_lost == (uint64_t)refused);
    IS(HS_OK, hs_exec_free(exec));
}

int main(int count, char **arguments)
{
    (void)arguments;
    CHECK(count <= 2);
    CHECK(HS_VERSION_MAJOR >= 0 && !strncmp(hs_version(), "0.1.", 4));
    CHECK(sizeof(hs_exec_options) == 64 && offsetof(hs_exec_options, stack_bytes) == 32 && offsetof(hs_exec_options, watchdog_ns) == 40);
    CHECK(sizeof(hs_exec_finish) == 48 && offsetof(hs_exec_finish, mishaps) == 16);
    CHECK(sizeof(hs_exec_task_options) == 72 && offsetof(hs_exec_task_options, mailboxes) == 32 && offsetof(hs_exec_task_options, priority) == 40);
    CHECK(sizeof(hs_exec_message) == 32 && sizeof(hs_exec_task) == 8 && sizeof(hs_exec_expiry) == 24 && sizeof(hs_exec_arrival) == 16);
    CHECK(sizeof(hs_exec_task_info) == 48 && offsetof(hs_exec_task_info, messages) == 32 && offsetof(hs_exec_task_info, wait_ends_ns) == 40);
    for (size_t number = 0; number < sizeof BACKENDS / sizeof *BACKENDS; number++) {
        every_service(BACKENDS[number]);
        wrong(BACKENDS[number]);
        killed(BACKENDS[number]);
        // In virtual time nothing comes from outside.
        if (BACKENDS[number] != HS_EXEC_SIM)
            posted(BACKENDS[number]);
    }
    printf("checks %d\n", checks);
    return 0;
}
