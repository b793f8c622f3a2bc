// Deleting objects of the executive while tasks wait for them, and timers on the time of day: every outcome, on every back-end.
#include "task_check.h"
#include <string.h>

static hs_exec_task test;
static hs_exec_timer timer;
static hs_exec_day_timer *day, *their_day;
static int on_day_runs;
static int64_t day_due;
static uint64_t day_missed;

// ---- day timers ----

static void on_day(void *argument, const hs_exec_day_expiry *expiry)
{
    CHECK(argument == &on_day_runs);
    CHECK(hs_exec_time_of_day_ns() >= expiry->due_unix_ns && expiry->late_ns >= 0);
    day_due = expiry->due_unix_ns, day_missed = expiry->missed;
    on_day_runs++;
    IS(HS_E_CALLER, hs_exec_delay_ns(MS));
    IS(HS_OK, hs_exec_wake(test));
}

static void day_timers(void)
{
    int64_t due = hs_exec_time_of_day_ns() + 2 * MS;
    IS(HS_E_NEGATIVE, hs_exec_day_timer_start_ns(day, -1, 0));
    IS(HS_E_NEGATIVE, hs_exec_day_timer_start_ns(day, due, -1));
    IS(HS_E_HANDLE, hs_exec_day_timer_start_ns((hs_exec_day_timer *)exec, due, 0));
    IS(HS_E_HANDLE, hs_exec_day_timer_start_ns(their_day, due, 0));
    IS(HS_E_HANDLE, hs_exec_day_timer_stop(their_day));
    IS(HS_OK, hs_exec_day_timer_start_ns(day, due, 0));
    IS(HS_OK, hs_exec_wait(PATIENCE));
    CHECK(on_day_runs == 1 && day_due == due && day_missed == 0);
    // Every hour since 1970: at once, for all of them.
    IS(HS_OK, hs_exec_day_timer_start_ns(day, 0, 3600 * 1000 * MS));
    IS(HS_OK, hs_exec_wait(PATIENCE));
    CHECK(on_day_runs == 2 && day_due % (3600 * 1000 * MS) == 0 && day_missed == (uint64_t)(day_due / (3600 * 1000 * MS)));
    IS(HS_OK, hs_exec_day_timer_stop(day));
    IS(HS_OK, hs_exec_day_timer_stop(day));
}

// ---- deletion ----

static hs_exec_semaphore semaphore;
static hs_exec_resource resource;
static hs_exec_events events;
static hs_exec_exchange exchange;
static hs_exec_pool *pool;
static struct { hs_exec_mutex *mutex; hs_exec_condition *condition; hs_exec_pipe *pipe; hs_exec_broadcast *broadcast;
    hs_exec_subscriber *subscriber; hs_exec_selector *selector; hs_exec_queue *queue; } mine;
static int turned_away;

#define TURNED_AWAY(name, call)                                    \
    BODY(name)                                                     \
    {                                                              \
        NOTHING;                                                   \
        hs_exec_message got;                                       \
        char byte;                                                 \
        size_t count;                                              \
        (void)got, (void)byte, (void)count;                        \
        IS(HS_E_FREED, call);                                      \
        __atomic_fetch_add(&turned_away, 1, __ATOMIC_RELAXED);     \
    }
TURNED_AWAY(waits_for_semaphore, hs_exec_semaphore_wait(semaphore, HS_EXEC_FOREVER))
TURNED_AWAY(waits_for_events, hs_exec_events_wait(events, 1, 0, HS_EXEC_FOREVER, NULL))
TURNED_AWAY(waits_for_exchange, hs_exec_fetch(exchange, HS_EXEC_FOREVER, &got))
TURNED_AWAY(waits_for_message, hs_exec_queue_receive(mine.queue, HS_EXEC_FOREVER, &got))
TURNED_AWAY(waits_for_byte, hs_exec_pipe_read(mine.pipe, &byte, 1, HS_EXEC_FOREVER, &count))
TURNED_AWAY(waits_for_broadcast, hs_exec_subscriber_next(mine.subscriber, HS_EXEC_FOREVER, &got, NULL))

static void deletion(void)
{
    hs_exec_message one = { { 1 } };
    void *block;
    size_t count;
    // A task makes them.
    IS(HS_OK, hs_exec_mutex_new(exec, HS_EXEC_PROTOCOL_INHERIT, 0, &mine.mutex));
    IS(HS_OK, hs_exec_condition_new(exec, &mine.condition));
    IS(HS_OK, hs_exec_pipe_new(exec, 8, &mine.pipe));
    IS(HS_OK, hs_exec_broadcast_new(exec, 2, &mine.broadcast));
    IS(HS_OK, hs_exec_subscriber_new(exec, mine.broadcast, &mine.subscriber));
    IS(HS_OK, hs_exec_selector_new(exec, &mine.selector));
    IS(HS_OK, hs_exec_queue_new(exec, 2, &mine.queue));
    IS(HS_OK, hs_exec_semaphore_new(exec, 0, 1, &semaphore));
    IS(HS_OK, hs_exec_resource_new(exec, HS_EXEC_PROTOCOL_INHERIT, 0, &resource));
    IS(HS_OK, hs_exec_events_new(exec, 0, &events));
    IS(HS_OK, hs_exec_exchange_new(exec, 1, 1, 1, 1, &exchange));
    IS(HS_OK, hs_exec_pool_new(exec, 2, 32, &pool));
    hs_exec_task waiting[] = { started(10, waits_for_semaphore), started(10, waits_for_events), started(10, waits_for_exchange),
        started(10, waits_for_message), started(10, waits_for_byte), started(10, waits_for_broadcast) };
    for (size_t number = 0; number < 6; number++)
        until_waits(waiting[number]);
    IS(HS_OK, hs_exec_semaphore_delete(semaphore));
    IS(HS_OK, hs_exec_events_delete(events));
    IS(HS_OK, hs_exec_exchange_delete(exchange));
    IS(HS_OK, hs_exec_queue_delete(mine.queue));
    IS(HS_OK, hs_exec_pipe_delete(mine.pipe));
    IS(HS_OK, hs_exec_broadcast_delete(mine.broadcast));
    for (size_t number = 0; number < 6; number++)
        ended(waiting[number], HS_EXEC_RETURNED);
    CHECK(turned_away == 6);
    // What is in use stays.
    IS(HS_OK, hs_exec_reserve(resource, PATIENCE));
    IS(HS_E_STATE, hs_exec_resource_delete(resource));
    CHECK(strstr(hs_last_error(), "wait until it is released"));
    IS(HS_OK, hs_exec_release(resource));
    IS(HS_OK, hs_exec_resource_delete(resource));
    IS(HS_OK, hs_exec_mutex_lock(mine.mutex, PATIENCE, NULL));
    IS(HS_E_STATE, hs_exec_mutex_delete(mine.mutex));
    IS(HS_OK, hs_exec_mutex_unlock(mine.mutex));
    IS(HS_OK, hs_exec_mutex_delete(mine.mutex));
    IS(HS_OK, hs_exec_pool_take(pool, &block));
    IS(HS_E_STATE, hs_exec_pool_delete(pool));
    IS(HS_OK, hs_exec_pool_give(pool, block));
    IS(HS_OK, hs_exec_pool_delete(pool));
    IS(HS_OK, hs_exec_condition_delete(mine.condition));
    IS(HS_OK, hs_exec_selector_delete(mine.selector));
    // Each is gone for good.
    IS(HS_E_FREED, hs_exec_semaphore_delete(semaphore));
    IS(HS_E_FREED, hs_exec_semaphore_signal(semaphore));
    IS(HS_E_FREED, hs_exec_resource_delete(resource));
    IS(HS_E_FREED, hs_exec_reserve(resource, PATIENCE));
    IS(HS_E_FREED, hs_exec_events_signal(events, 1));
    IS(HS_E_FREED, hs_exec_post(exchange, 0, &one));
    IS(HS_E_FREED, hs_exec_queue_send(mine.queue, &one, HS_EXEC_NO_WAIT));
    IS(HS_E_FREED, hs_exec_queue_send(mine.queue, &one, PATIENCE));
    IS(HS_E_FREED, hs_exec_queue_delete(mine.queue));
    IS(HS_E_FREED, hs_exec_pipe_write(mine.pipe, "x", 1, PATIENCE, &count));
    IS(HS_E_FREED, hs_exec_broadcast_send(mine.broadcast, &one));
    IS(HS_E_FREED, hs_exec_subscriber_next(mine.subscriber, PATIENCE, &one, NULL));
    IS(HS_E_FREED, hs_exec_mutex_lock(mine.mutex, PATIENCE, NULL));
    IS(HS_E_FREED, hs_exec_mutex_delete(mine.mutex));
    IS(HS_E_FREED, hs_exec_condition_notify(mine.condition));
    IS(HS_E_FREED, hs_exec_pool_take(pool, &block));
    IS(HS_E_FREED, hs_exec_pool_delete(pool));
    IS(HS_E_FREED, hs_exec_selector_delete(mine.selector));
    // In the slots of those that are gone there is room for others.
    for (int number = 0; number < 70000; number++) {
        IS(HS_OK, hs_exec_semaphore_new(exec, 1, 1, &semaphore));
        IS(HS_OK, hs_exec_semaphore_wait(semaphore, HS_EXEC_NO_WAIT));
        IS(HS_OK, hs_exec_semaphore_delete(semaphore));
    }
    IS(HS_OK, hs_exec_timer_delete(timer));
    IS(HS_E_FREED, hs_exec_timer_start_ns(timer, 0));
    IS(HS_OK, hs_exec_day_timer_delete(day));
    IS(HS_E_FREED, hs_exec_day_timer_start_ns(day, 0, 0));
}

static void never(void *argument, const hs_exec_expiry *expiry)
{
    (void)argument, (void)expiry;
    CHECK(!"it was deleted before");
}

BODY(tests)
{
    NOTHING;
    day_timers();
    deletion();
}

int main(void)
{
    for (size_t number = 0; number < sizeof BACKENDS / sizeof *BACKENDS; number++) {
        on_day_runs = turned_away = 0;
        hs_exec *other = fresh(BACKENDS[number]);
        exec = fresh(BACKENDS[number]);
        test = task(exec, 30, tests, 0);
        IS(HS_OK, hs_exec_timer_new(exec, "t", never, NULL, &timer));
        IS(HS_E_NULL, hs_exec_day_timer_new(exec, "d", NULL, NULL, &day));
        IS(HS_OK, hs_exec_day_timer_new(exec, "d", on_day, &on_day_runs, &day));
        IS(HS_OK, hs_exec_day_timer_new(other, NULL, on_day, &on_day_runs, &their_day));
        // From outside, too; it is started anew in the run.
        IS(HS_OK, hs_exec_day_timer_start_ns(day, INT64_MAX, 0));
        IS(HS_OK, hs_exec_day_timer_start_ns(their_day, INT64_MAX, 0));
        IS(HS_OK, hs_exec_task_start(test));
        hs_exec_finish finish = run(exec);
        CHECK(finish.stopped == HS_EXEC_FINISHED && on_day_runs == 2 && turned_away == 6);
        IS(HS_OK, hs_exec_free(exec));
        IS(HS_OK, hs_exec_free(other));
        IS(HS_E_FREED, hs_exec_day_timer_start_ns(their_day, 0, 0));
        IS(HS_E_FREED, hs_exec_day_timer_stop(their_day));
        IS(HS_E_FREED, hs_exec_queue_delete(mine.queue));
    }
    printf("checks %d\n", checks);
    return 0;
}
