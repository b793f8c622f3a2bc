// Calls of an executive's tasks from C: services fibers|threads CPU SPAN_NS prints a line `key ns` for each pair of calls that
// xtask/peers/src/executive/from_c.rs makes from Rust. A pair without proof that it did its work ends the program.
#include <hairspring_exec.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { HIGH = 16, LOW = 48, CHUNK = 512, REAL_TIME = 60 };

static hs_exec_task high, receiver;
static hs_exec_semaphore semaphore;
static hs_exec_events events;
static hs_exec_exchange exchange;
static hs_exec_timer timer;
static hs_exec_queue *queue;
static hs_exec_mutex *mutex;
static hs_exec_pool *pool;
static int64_t span_ns, far_ns;
static volatile uint64_t woken, received;

#define TRY(call)                                                                         \
    do {                                                                                  \
        int told = (call);                                                                \
        if (told != HS_OK) {                                                              \
            fprintf(stderr, "%s: %s: %s\n", #call, hs_error_name(told), hs_last_error()); \
            exit(1);                                                                      \
        }                                                                                 \
    } while (0)

#define BODY(name) static void name(void *argument, const hs_exec_message *message)
#define NOTHING (void)argument, (void)message

// Repeats a pair of calls for an eighth of the span, then for the span, and prints the time of one.
#define TIME(key, pair)                                                             \
    do {                                                                            \
        int64_t began = 0, now = 0;                                                 \
        uint64_t count = 0, failed = 0;                                             \
        for (int part = 8; part > 0; part -= 7) {                                   \
            began = hs_exec_now_ns();                                               \
            count = failed = 0;                                                     \
            do {                                                                    \
                for (int turn = 0; turn < CHUNK; turn++, count++)                   \
                    failed += !(pair);                                              \
                now = hs_exec_now_ns();                                             \
            } while (now < began + span_ns / part);                                 \
        }                                                                           \
        if (failed) {                                                               \
            fprintf(stderr, key ": %" PRIu64 " of %" PRIu64 " failed\n", failed, count); \
            exit(1);                                                                \
        }                                                                           \
        printf(key " %.3f\n", (double)(now - began) / (double)count);               \
    } while (0)

BODY(waits)
{
    NOTHING;
    while (hs_exec_wait(HS_EXEC_FOREVER) == HS_OK)
        woken++;
}

BODY(receives)
{
    (void)argument;
    received = message->words[0];
}

static void expires(void *argument, const hs_exec_expiry *expiry)
{
    (void)argument, (void)expiry;
}

BODY(measures)
{
    NOTHING;
    hs_exec_message sent = { .words = { 0 } }, got;
    uint32_t came;
    void *block;
    TIME("semaphore", hs_exec_semaphore_signal(semaphore) == HS_OK && hs_exec_semaphore_wait(semaphore, HS_EXEC_FOREVER) == HS_OK);
    TIME("events", hs_exec_events_signal(events, 1) == HS_OK &&
                       hs_exec_events_wait(events, 1, HS_EXEC_TAKE, HS_EXEC_FOREVER, &came) == HS_OK);
    TIME("exchange", (sent.words[0]++, hs_exec_post(exchange, 0, &sent) == HS_OK) &&
                         hs_exec_fetch(exchange, HS_EXEC_FOREVER, &got) == HS_OK && got.words[0] == sent.words[0]);
    TIME("queue", (sent.words[0]++, hs_exec_queue_send(queue, &sent, HS_EXEC_FOREVER) == HS_OK) &&
                      hs_exec_queue_receive(queue, HS_EXEC_FOREVER, &got) == HS_OK && got.words[0] == sent.words[0]);
    TIME("mutex", hs_exec_mutex_lock(mutex, HS_EXEC_FOREVER, NULL) == HS_OK && hs_exec_mutex_unlock(mutex) == HS_OK);
    TIME("pool", hs_exec_pool_take(pool, &block) == HS_OK && hs_exec_pool_give(pool, block) == HS_OK);
    TIME("timer", hs_exec_timer_start_ns(timer, far_ns) == HS_OK && hs_exec_timer_stop(timer) == HS_OK);
    uint64_t number = woken;
    TIME("wake", hs_exec_wake(high) == HS_OK && woken == ++number);
    TIME("send", (sent.words[0]++, hs_exec_send(receiver, 0, &sent) == HS_OK) && received == sent.words[0]);
    TRY(hs_exec_stop());
}

int main(int count, char **arguments)
{
    if (count != 4) {
        fprintf(stderr, "usage: services fibers|threads CPU SPAN_NS\n");
        return 2;
    }
    int threads = !strcmp(arguments[1], "threads");
    span_ns = strtoll(arguments[3], NULL, 10);
    hs_exec *exec;
    hs_exec_options options = { .size = sizeof options, .cpu = atoi(arguments[2]), .backend = threads ? HS_EXEC_THREADS_UP : HS_EXEC_FIBERS };
    options.policy = threads ? HS_POLICY_KEEP : HS_POLICY_FIFO;
    options.priority = REAL_TIME;
    TRY(hs_exec_new(&options, &exec));
    far_ns = hs_exec_now_ns() + INT64_C(3600000000000);
    TRY(hs_exec_semaphore_new(exec, 0, 1, &semaphore));
    TRY(hs_exec_events_new(exec, 0, &events));
    TRY(hs_exec_exchange_new(exec, 8, 0, 0, 0, &exchange));
    TRY(hs_exec_queue_new(exec, 8, &queue));
    TRY(hs_exec_mutex_new(exec, HS_EXEC_PROTOCOL_INHERIT, 0, &mutex));
    TRY(hs_exec_pool_new(exec, 8, 32, &pool));
    TRY(hs_exec_timer_new(exec, NULL, expires, NULL, &timer));
    hs_exec_task low;
    hs_exec_task_options task = { .size = sizeof task, .entry = waits, .priority = HIGH };
    TRY(hs_exec_task_new(exec, &task, &high));
    task.entry = measures;
    task.priority = LOW;
    TRY(hs_exec_task_new(exec, &task, &low));
    task.entry = receives;
    task.priority = HIGH;
    task.mailboxes[0] = 8;
    TRY(hs_exec_task_new(exec, &task, &receiver));
    TRY(hs_exec_task_start(high));
    TRY(hs_exec_task_start(low));
    hs_exec_finish finish = { .size = sizeof finish };
    TRY(hs_exec_run(exec, INT64_C(20000000000) + 20 * span_ns, &finish));
    if (finish.stopped != HS_EXEC_ASKED || !finish.strict) {
        fprintf(stderr, "the run ended as %d, strict %d: %s\n", finish.stopped, finish.strict, hs_last_error());
        return 1;
    }
    TRY(hs_exec_free(exec));
    return 0;
}
