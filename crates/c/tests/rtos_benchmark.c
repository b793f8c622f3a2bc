// The 32 rows of rtos-benchmark after its contract, on the executive: how long a basic service takes, and whether it did what it is for. The text is
// ours; what is timed, and from where to where, is that of the suite.
//
//     rtos_benchmark fibers|threads ITERATIONS
//
// Prints the cost of two stamps, then a line for each row: its name, mean, least and most in ns, and `ok`, `n/a`, or `wrong` with the number of
// iterations whose postcondition did not hold. Then how many rows passed of how many. Ends with 1 if a row is wrong. The stamps' cost is in the figures,
// as in the suite. Where the system refuses real-time priority to threads, the rows have no meaning: it prints `strict 0` and ends with 0.
//
// During the interrupt's latency a thread spins without a call. On fibers no interrupt is served there: the row is n/a.
//
// A thread is created anew in each iteration and deleted after its end. The recursive mutex with inheritance is a resource; malloc is a heap of the
// executive; the interrupt is a timer of the kernel (timerfd) with an interrupt procedure.
#define _GNU_SOURCE
#include <hairspring_exec.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/timerfd.h>
#include <time.h>
#include <unistd.h>

// Priorities: the main task, those beside it, and the one to which it lowers itself so that all others run.
enum { HIGH = 20, MAIN = 21, LOW = 22, LAST = 23 };
enum { BLOCK_BYTES = 128, HEAP_BYTES = 4096, AHEAD_NS = 100000, GIVE_UP_NS = 500000000 };

enum row {
    SPAWN, CREATE, START, SUSPEND, RESUME,
    SPAWN_SWITCH, START_SWITCH, SUSPEND_SWITCH, RESUME_SWITCH, TERMINATE_SWITCH,
    LOCK, UNLOCK, LOCK_AGAIN, UNLOCK_AGAIN, UNLOCK_WAITER, UNLOCK_SWITCH, PEND, PEND_INHERIT,
    GIVE, TAKE, GIVE_SWITCH, TAKE_SWITCH,
    YIELD, YIELD_SWITCH,
    ALLOCATE, FREE,
    QUEUE_CREATE, SEND, RECEIVE, SEND_SWITCH, RECEIVE_SWITCH,
    LATENCY, ROWS
};

static const char *const NAMES[ROWS] = {
    "thread_spawn", "thread_create", "thread_start", "thread_suspend", "thread_resume",
    "thread_spawn_switch", "thread_start_switch", "thread_suspend_switch", "thread_resume_switch", "thread_terminate_switch",
    "mutex_lock", "mutex_unlock", "mutex_lock_recursive", "mutex_unlock_recursive", "mutex_unlock_waiter", "mutex_unlock_switch",
    "mutex_pend", "mutex_pend_inheritance",
    "semaphore_give", "semaphore_take", "semaphore_give_switch", "semaphore_take_switch",
    "yield", "yield_switch",
    "malloc", "free",
    "queue_create", "queue_send", "queue_receive", "queue_send_switch", "queue_receive_switch",
    "interrupt_latency",
};

static struct {
    uint64_t count, wrong;
    int64_t sum_ns, least_ns, most_ns;
} rows[ROWS];

static hs_exec *exec;
static hs_exec_task self;
static hs_exec_resource mutex;
static hs_exec_semaphore semaphore;
static hs_exec_queue *queue;
static hs_exec_heap *heap;
static hs_exec_interrupt *interrupt;
static int timer = -1;
static uint64_t iterations;
static volatile int64_t begun_ns, due_ns;
// What a helper has done, which the main task checks.
static volatile uint64_t done, handled, spun, found_spinning, unserved;

#define TRY(call)                                                                         \
    do {                                                                                  \
        int told = (call);                                                                \
        if (told != HS_OK) {                                                              \
            fprintf(stderr, "%s: %s: %s\n", #call, hs_error_name(told), hs_last_error()); \
            exit(2);                                                                      \
        }                                                                                 \
    } while (0)

#define BODY(name) static void name(void *argument, const hs_exec_message *message)
#define NOTHING (void)argument, (void)message

static int64_t clock_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return now.tv_sec * INT64_C(1000000000) + now.tv_nsec;
}

static void begin(void)
{
    begun_ns = clock_ns();
}

static void add(enum row row, int64_t taken_ns)
{
    rows[row].least_ns = !rows[row].count || taken_ns < rows[row].least_ns ? taken_ns : rows[row].least_ns;
    rows[row].most_ns = taken_ns > rows[row].most_ns ? taken_ns : rows[row].most_ns;
    rows[row].sum_ns += taken_ns;
    rows[row].count++;
}

static void end(enum row row)
{
    add(row, clock_ns() - begun_ns);
}

static void expect(enum row row, int holds)
{
    rows[row].wrong += !holds;
}

static hs_exec_task made(int priority, void (*entry)(void *, const hs_exec_message *))
{
    hs_exec_task task;
    hs_exec_task_options options = { .size = sizeof options, .entry = entry, .priority = priority };
    TRY(hs_exec_task_new(exec, &options, &task));
    return task;
}

static hs_exec_task spawned(int priority, void (*entry)(void *, const hs_exec_message *))
{
    hs_exec_task task = made(priority, entry);
    TRY(hs_exec_task_start(task));
    return task;
}

static hs_exec_task_info look(hs_exec_task task)
{
    hs_exec_task_info info = { .size = sizeof info };
    TRY(hs_exec_task_look(task, &info));
    return info;
}

// Lowers the main task below its helpers, which run until they wait or end, and raises it again.
static void let_others_run(void)
{
    TRY(hs_exec_task_set_priority(self, LAST));
    TRY(hs_exec_task_set_priority(self, MAIN));
}

BODY(counts)
{
    NOTHING;
    done++;
}

static void threads_without_switch(void)
{
    done = 0;
    hs_exec_task task;
    begin();
    task = made(LOW, counts);
    end(CREATE);
    expect(CREATE, look(task).state == HS_EXEC_IDLE && done == 0);
    begin();
    TRY(hs_exec_task_start(task));
    end(START);
    expect(START, look(task).state == HS_EXEC_READY && done == 0);
    begin();
    TRY(hs_exec_task_suspend(task));
    end(SUSPEND);
    let_others_run();
    expect(SUSPEND, look(task).suspended && done == 0);
    begin();
    TRY(hs_exec_task_resume(task));
    end(RESUME);
    expect(RESUME, !look(task).suspended && done == 0);
    let_others_run();
    expect(RESUME, done == 1);
    TRY(hs_exec_task_delete(task));
    begin();
    task = spawned(LOW, counts);
    end(SPAWN);
    expect(SPAWN, look(task).state == HS_EXEC_READY && done == 1);
    let_others_run();
    expect(SPAWN, done == 2);
    TRY(hs_exec_task_delete(task));
}

BODY(is_spawned)
{
    NOTHING;
    hs_exec_task own;
    end(SPAWN_SWITCH);
    done = 1;
    TRY(hs_exec_self(&own));
    begin();
    TRY(hs_exec_task_suspend(own));
    end(RESUME_SWITCH);
    done = 2;
    begin();
}

BODY(is_started)
{
    NOTHING;
    end(START_SWITCH);
    done = 3;
}

static void threads_with_switch(void)
{
    done = 0;
    begin();
    hs_exec_task task = spawned(HIGH, is_spawned);
    end(SUSPEND_SWITCH);
    expect(SPAWN_SWITCH, done == 1);
    expect(SUSPEND_SWITCH, look(task).suspended);
    begin();
    TRY(hs_exec_task_resume(task));
    end(TERMINATE_SWITCH);
    expect(RESUME_SWITCH, done == 2);
    expect(TERMINATE_SWITCH, look(task).state == HS_EXEC_IDLE);
    TRY(hs_exec_task_delete(task));
    task = made(HIGH, is_started);
    begin();
    TRY(hs_exec_task_start(task));
    expect(START_SWITCH, done == 3);
    TRY(hs_exec_task_delete(task));
}

// The row that ends when the helper has the mutex, or ROWS for none.
static enum row has_it;

BODY(pends)
{
    NOTHING;
    begin();
    TRY(hs_exec_reserve(mutex, HS_EXEC_FOREVER));
    if (has_it != ROWS)
        end(has_it);
    done++;
    TRY(hs_exec_release(mutex));
}

static void mutexes(void)
{
    begin();
    TRY(hs_exec_reserve(mutex, HS_EXEC_FOREVER));
    end(LOCK);
    begin();
    TRY(hs_exec_reserve(mutex, HS_EXEC_FOREVER));
    end(LOCK_AGAIN);
    begin();
    expect(LOCK_AGAIN, hs_exec_release(mutex) == HS_OK);
    end(UNLOCK_AGAIN);
    begin();
    // Still owned after the inner unlock.
    expect(LOCK, hs_exec_release(mutex) == HS_OK);
    end(UNLOCK);
    int told = hs_exec_release(mutex);
    expect(UNLOCK, told == HS_E_NOT_OWNER);
    expect(UNLOCK_AGAIN, told == HS_E_NOT_OWNER);

    // A less urgent task waits.
    done = 0;
    has_it = ROWS;
    TRY(hs_exec_reserve(mutex, HS_EXEC_FOREVER));
    hs_exec_task task = spawned(LOW, pends);
    let_others_run();
    expect(UNLOCK_WAITER, look(task).state == HS_EXEC_WAITING);
    begin();
    TRY(hs_exec_release(mutex));
    end(UNLOCK_WAITER);
    expect(UNLOCK_WAITER, done == 0);
    let_others_run();
    expect(UNLOCK_WAITER, done == 1);
    TRY(hs_exec_task_delete(task));

    // A more urgent one waits: the owner inherits its priority until it unlocks.
    has_it = UNLOCK_SWITCH;
    TRY(hs_exec_reserve(mutex, HS_EXEC_FOREVER));
    task = spawned(HIGH, pends);
    end(PEND_INHERIT);
    expect(PEND_INHERIT, look(task).state == HS_EXEC_WAITING && look(self).effective == HIGH);
    begin();
    TRY(hs_exec_release(mutex));
    expect(UNLOCK_SWITCH, done == 2 && look(self).effective == MAIN);
    TRY(hs_exec_task_delete(task));

    // One of the owner's priority waits.
    has_it = ROWS;
    TRY(hs_exec_reserve(mutex, HS_EXEC_FOREVER));
    task = spawned(MAIN, pends);
    TRY(hs_exec_yield());
    end(PEND);
    expect(PEND, look(task).state == HS_EXEC_WAITING && look(self).effective == MAIN && done == 2);
    TRY(hs_exec_release(mutex));
    let_others_run();
    expect(PEND, done == 3);
    TRY(hs_exec_task_delete(task));
}

static uint32_t units(void)
{
    uint32_t count;
    TRY(hs_exec_semaphore_count(semaphore, &count));
    return count;
}

BODY(takes)
{
    NOTHING;
    begin();
    TRY(hs_exec_semaphore_wait(semaphore, HS_EXEC_FOREVER));
    end(GIVE_SWITCH);
    done = 1;
}

static void semaphores(void)
{
    done = 0;
    begin();
    TRY(hs_exec_semaphore_signal(semaphore));
    end(GIVE);
    expect(GIVE, units() == 1);
    begin();
    TRY(hs_exec_semaphore_wait(semaphore, HS_EXEC_FOREVER));
    end(TAKE);
    expect(TAKE, units() == 0);
    hs_exec_task task = spawned(HIGH, takes);
    end(TAKE_SWITCH);
    expect(TAKE_SWITCH, look(task).state == HS_EXEC_WAITING && done == 0);
    begin();
    TRY(hs_exec_semaphore_signal(semaphore));
    expect(GIVE_SWITCH, done == 1 && units() == 0);
    TRY(hs_exec_task_delete(task));
}

BODY(is_given_way)
{
    NOTHING;
    end(YIELD_SWITCH);
    done++;
}

static void yields(void)
{
    done = 0;
    begin();
    TRY(hs_exec_yield());
    end(YIELD);
    expect(YIELD, done == 0);
    hs_exec_task task = spawned(MAIN, is_given_way);
    expect(YIELD_SWITCH, done == 0);
    begin();
    TRY(hs_exec_yield());
    expect(YIELD_SWITCH, done == 1);
    TRY(hs_exec_task_delete(task));
}

static uint64_t blocks_in_use(void)
{
    hs_exec_heap_use use = { .size = sizeof use };
    TRY(hs_exec_heap_measure(heap, &use));
    return use.blocks;
}

static void allocations(void)
{
    void *block;
    begin();
    TRY(hs_exec_heap_get(heap, BLOCK_BYTES, HS_EXEC_NO_WAIT, &block));
    end(ALLOCATE);
    memset(block, 0x5a, BLOCK_BYTES);
    expect(ALLOCATE, blocks_in_use() == 1);
    begin();
    TRY(hs_exec_heap_free(heap, block));
    end(FREE);
    expect(FREE, blocks_in_use() == 0);
}

static uint32_t queued(void)
{
    uint32_t count;
    TRY(hs_exec_queue_count(queue, &count));
    return count;
}

BODY(receives)
{
    NOTHING;
    hs_exec_message got;
    TRY(hs_exec_queue_receive(queue, HS_EXEC_FOREVER, &got));
    end(SEND_SWITCH);
    done = got.words[3];
}

BODY(sends)
{
    NOTHING;
    hs_exec_message second = { .words = { 0, 0, 0, 9 } };
    TRY(hs_exec_queue_send(queue, &second, HS_EXEC_FOREVER));
    end(RECEIVE_SWITCH);
    done = 8;
}

static void queues(void)
{
    hs_exec_message sent = { .words = { 0, 0, 0, 7 } }, got = { .words = { 0 } };
    done = 0;
    begin();
    TRY(hs_exec_queue_new(exec, 1, &queue));
    end(QUEUE_CREATE);
    expect(QUEUE_CREATE, queued() == 0);
    begin();
    TRY(hs_exec_queue_send(queue, &sent, HS_EXEC_FOREVER));
    end(SEND);
    expect(SEND, queued() == 1);
    begin();
    TRY(hs_exec_queue_receive(queue, HS_EXEC_FOREVER, &got));
    end(RECEIVE);
    expect(RECEIVE, queued() == 0 && got.words[3] == 7);
    // A more urgent task waits for a message,
    hs_exec_task task = spawned(HIGH, receives);
    begin();
    TRY(hs_exec_queue_send(queue, &sent, HS_EXEC_FOREVER));
    expect(SEND_SWITCH, done == 7 && queued() == 0);
    TRY(hs_exec_task_delete(task));
    // and one for room.
    TRY(hs_exec_queue_send(queue, &sent, HS_EXEC_FOREVER));
    task = spawned(HIGH, sends);
    expect(RECEIVE_SWITCH, look(task).state == HS_EXEC_WAITING);
    begin();
    TRY(hs_exec_queue_receive(queue, HS_EXEC_FOREVER, &got));
    expect(RECEIVE_SWITCH, done == 8 && got.words[3] == 7);
    TRY(hs_exec_queue_receive(queue, HS_EXEC_NO_WAIT, &got));
    expect(RECEIVE_SWITCH, got.words[3] == 9);
    TRY(hs_exec_task_delete(task));
    TRY(hs_exec_queue_delete(queue));
    expect(QUEUE_CREATE, hs_exec_queue_send(queue, &sent, HS_EXEC_NO_WAIT) == HS_E_FREED);
}

static void expires(void *argument, const hs_exec_arrival *arrival)
{
    (void)argument, (void)arrival;
    if (spun && !handled) {
        add(LATENCY, clock_ns() - due_ns);
        found_spinning = 1;
    }
    handled++;
}

// Spins without a call until the interrupt has been served, or for so long that it will not be.
BODY(spins)
{
    NOTHING;
    while (!handled && clock_ns() - due_ns < GIVE_UP_NS)
        spun++;
    unserved += !handled;
}

// One interrupt; returns whether it found the thread spinning. On a busy machine the first start of a thread can take longer than the interrupt.
static int is_interrupted(int64_t ahead_ns)
{
    handled = spun = found_spinning = 0;
    hs_exec_task task = made(LOW, spins);
    due_ns = clock_ns() + ahead_ns;
    struct itimerspec at = { .it_value = { due_ns / 1000000000, due_ns % 1000000000 } };
    if (timerfd_settime(timer, TFD_TIMER_ABSTIME, &at, NULL)) {
        perror("timerfd_settime");
        exit(2);
    }
    TRY(hs_exec_task_start(task));
    let_others_run();
    TRY(hs_exec_task_delete(task));
    return found_spinning || unserved;
}

static void latencies(void)
{
    if (unserved)
        return;
    // Twice as long ahead each time, to 26 ms.
    for (int attempt = 0; attempt < 20; attempt++)
        if (is_interrupted((int64_t)AHEAD_NS << (attempt < 8 ? attempt : 8)))
            break;
    expect(LATENCY, handled == 1 && found_spinning && !unserved);
}

static void (*const TESTS[])(void) = {
    threads_without_switch, threads_with_switch, mutexes, semaphores, yields, allocations, queues, latencies,
};

BODY(runs_all)
{
    NOTHING;
    TRY(hs_exec_self(&self));
    for (size_t test = 0; test < sizeof TESTS / sizeof *TESTS; test++)
        for (uint64_t turn = 0; turn < iterations; turn++)
            TESTS[test]();
    TRY(hs_exec_stop());
}

// The cost of two stamps, which is in all figures.
static void print_stamps(void)
{
    int64_t sum_ns = 0;
    for (uint64_t turn = 0; turn < iterations; turn++) {
        begin();
        sum_ns += clock_ns() - begun_ns;
    }
    printf("stamps %.1f\n", (double)sum_ns / (double)iterations);
}

BODY(stops)
{
    NOTHING;
    TRY(hs_exec_stop());
}

// Whether the executive has strict priority, by a run of a task that does nothing else.
static int is_strict(void)
{
    hs_exec_finish finish = { .size = sizeof finish };
    TRY(hs_exec_task_start(made(MAIN, stops)));
    TRY(hs_exec_run(exec, HS_EXEC_FOREVER, &finish));
    return finish.strict;
}

int main(int count, char **arguments)
{
    if (count != 3 || (iterations = strtoull(arguments[2], NULL, 10)) == 0) {
        fprintf(stderr, "usage: rtos_benchmark fibers|threads ITERATIONS\n");
        return 2;
    }
    int backend = !strcmp(arguments[1], "threads") ? HS_EXEC_THREADS_UP : HS_EXEC_FIBERS;
    hs_exec_options options = { .size = sizeof options, .backend = backend, .cpu = -1, .watchdog_ns = -1 };
    hs_exec_finish finish = { .size = sizeof finish };
    if ((timer = timerfd_create(CLOCK_MONOTONIC, TFD_NONBLOCK | TFD_CLOEXEC)) < 0) {
        perror("timerfd_create");
        return 2;
    }
    TRY(hs_exec_new(&options, &exec));
    TRY(hs_exec_resource_new(exec, HS_EXEC_PROTOCOL_INHERIT, 0, &mutex));
    TRY(hs_exec_semaphore_new(exec, 0, 1, &semaphore));
    TRY(hs_exec_heap_new(exec, NULL, HEAP_BYTES, 8, HS_EXEC_HEAP_ARRIVAL, &heap));
    TRY(hs_exec_interrupt_new(exec, "timer", HS_EXEC_COUNTER, timer, expires, NULL, &interrupt));
    // On fibers no system is asked: their order is strict.
    if (backend == HS_EXEC_THREADS_UP && !is_strict()) {
        printf("strict 0\n");
        return 0;
    }
    TRY(hs_exec_task_start(made(MAIN, runs_all)));
    TRY(hs_exec_run(exec, HS_EXEC_FOREVER, &finish));
    print_stamps();
    int passed = 0, wrong = finish.stopped != HS_EXEC_ASKED || finish.mishaps;
    for (size_t row = 0; row < ROWS; row++) {
        // Without a call only a thread of the kernel is preempted.
        if (row == LATENCY && unserved && backend == HS_EXEC_FIBERS) {
            printf("%s 0 0 0 n/a\n", NAMES[row]);
            continue;
        }
        int good = rows[row].count == iterations && !rows[row].wrong;
        printf("%s %.1f %" PRId64 " %" PRId64, NAMES[row], (double)rows[row].sum_ns / (double)(rows[row].count ? rows[row].count : 1),
               rows[row].least_ns, rows[row].most_ns);
        if (good)
            printf(" ok\n");
        else
            printf(" wrong %" PRIu64 " of %" PRIu64 "\n", rows[row].wrong, rows[row].count);
        passed += good;
        wrong += !good;
    }
    printf("passed %d of %d\n", passed, ROWS);
    TRY(hs_exec_free(exec));
    return wrong ? 1 : 0;
}
