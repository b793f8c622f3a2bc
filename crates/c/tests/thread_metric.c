// The eight tests of basic services of Thread-Metric after its contract, on the executive: how often a thing is done in a while, and whether the
// counters agree. Its text is ours; names of tests, priorities and what is counted are those of the suite.
//
//     thread_metric fibers|threads DURATION_MS [TEST]
//
// Prints a line for each test: its name, the count, and `ok`, `n/a`, or `wrong` and what does not agree. Then how many passed of how many. Ends with
// 1 if a test is wrong: if its counters do not agree, or count nothing.
//
// Basic is a loop without a call, which the more urgent reporter must preempt. On fibers nothing preempts it: it gives up after three times the
// duration, and is n/a there.
//
// Messages are of 32 bytes, four words of 8, where 32-bit machines copy 16. A thread that suspends itself is a task in hs_exec_task_suspend(). The
// interrupt is software, posted by the interrupted task; how often a switch followed at its exit is printed as `preempted`.
#define _GNU_SOURCE
#include <hairspring_exec.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { WORDS = 1024 };
enum { THREADS = 5, REPORTER = 2, BLOCK_BYTES = 128, BLOCKS = 16 };

static hs_exec *exec;
static hs_exec_task threads[THREADS];
static hs_exec_exchange queue;
static hs_exec_semaphore semaphore;
static hs_exec_pool *pool;
static hs_exec_interrupt *interrupt;
static volatile uint64_t counters[THREADS], handled, preempted, faults;
static int64_t duration_ns;
// The time is up: what fails from now on, fails because tasks have ended.
static volatile int ended;
// The reporter did not preempt the loop.
static volatile int unreported;

#define TRY(call)                                                                     \
    do {                                                                              \
        int told = (call);                                                            \
        if (told != HS_OK) {                                                          \
            fprintf(stderr, "%s: %s: %s\n", #call, hs_error_name(told), hs_last_error()); \
            exit(2);                                                                  \
        }                                                                             \
    } while (0)

// In a task that runs until the end of the run: at it the calls say so, and the task returns.
#define OR_RETURN(call)                          \
    do {                                         \
        int told = (call);                       \
        if (told != HS_OK) {                     \
            faults += !ended;                    \
            return;                              \
        }                                        \
    } while (0)

static size_t own(void *argument)
{
    return (size_t)(uintptr_t)argument;
}

static int64_t clock_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return now.tv_sec * INT64_C(1000000000) + now.tv_nsec;
}

// Basic: passes over an array, without a call of the executive.
static void computes(void *argument, const hs_exec_message *message)
{
    static volatile uint64_t words[WORDS];
    int64_t begun = clock_ns();
    (void)message;
    while (!ended) {
        for (size_t number = 0; number < WORDS; number++)
            words[number] += counters[own(argument)] ^ number;
        counters[own(argument)]++;
        if (clock_ns() - begun > 3 * duration_ns) {
            unreported = 1;
            hs_exec_stop();
            return;
        }
    }
}

// Cooperative: five of one priority that give way to each other.
static void gives_way(void *argument, const hs_exec_message *message)
{
    (void)message;
    for (;;) {
        OR_RETURN(hs_exec_yield());
        // A wait would be told of the end of the run; this is none.
        if (ended)
            return;
        counters[own(argument)]++;
    }
}

// The contract's resume: it starts a thread that has not begun, and continues one that has suspended itself.
static int resume(hs_exec_task task)
{
    int told = hs_exec_task_resume(task);
    return told == HS_E_STATE ? hs_exec_task_start(task) : told;
}

// Preemptive: each resumes the next more urgent, which runs at once, and suspends itself; the least urgent begins again.
static void resumes(void *argument, const hs_exec_message *message)
{
    (void)message;
    size_t number = own(argument);
    for (;;) {
        if (number + 1 < THREADS)
            OR_RETURN(resume(threads[number + 1]));
        counters[number]++;
        if (number > 0)
            OR_RETURN(hs_exec_task_suspend(threads[number]));
        else if (ended)
            return;
    }
}

// Interrupt: the handler gives the semaphore, which its thread takes.
static void on_interrupt(void *argument, const hs_exec_arrival *arrival)
{
    (void)argument, (void)arrival;
    handled++;
    faults += hs_exec_semaphore_signal(semaphore) != HS_OK && !ended;
}

static void interrupts(void *argument, const hs_exec_message *message)
{
    (void)message;
    for (;;) {
        OR_RETURN(hs_exec_interrupt_post(interrupt));
        OR_RETURN(hs_exec_preempt_point());
        OR_RETURN(hs_exec_semaphore_wait(semaphore, HS_EXEC_FOREVER));
        counters[own(argument)]++;
    }
}

// Interrupt preemption: the handler resumes the more urgent of two, which suspends itself. The first resume starts it.
static void on_preempting(void *argument, const hs_exec_arrival *arrival)
{
    (void)argument, (void)arrival;
    handled++;
    faults += resume(threads[1]) != HS_OK && !ended;
}

static void is_resumed(void *argument, const hs_exec_message *message)
{
    (void)message;
    for (;;) {
        counters[own(argument)]++;
        OR_RETURN(hs_exec_task_suspend(threads[own(argument)]));
    }
}

static void is_interrupted(void *argument, const hs_exec_message *message)
{
    (void)message;
    for (;;) {
        uint64_t before = counters[1];
        OR_RETURN(hs_exec_interrupt_post(interrupt));
        // The post may reach a thread of its own; nothing is counted before it has been served.
        while (counters[1] == before) {
            if (ended)
                return;
            OR_RETURN(hs_exec_preempt_point());
        }
        preempted++;
        counters[own(argument)]++;
    }
}

static void messages(void *argument, const hs_exec_message *message)
{
    (void)message;
    hs_exec_message sent = { .words = { 0x11112222, 0x33334444, 0x55556666, 0 } }, got;
    for (;;) {
        OR_RETURN(hs_exec_post(queue, 0, &sent));
        uint64_t expected = sent.words[3]++;
        OR_RETURN(hs_exec_fetch(queue, HS_EXEC_FOREVER, &got));
        faults += got.words[3] != expected || got.words[0] != sent.words[0];
        counters[own(argument)]++;
    }
}

static void synchronises(void *argument, const hs_exec_message *message)
{
    (void)message;
    for (;;) {
        OR_RETURN(hs_exec_semaphore_wait(semaphore, HS_EXEC_FOREVER));
        OR_RETURN(hs_exec_semaphore_signal(semaphore));
        counters[own(argument)]++;
    }
}

static void allocates(void *argument, const hs_exec_message *message)
{
    (void)message;
    void *block;
    for (;;) {
        OR_RETURN(hs_exec_pool_take(pool, &block));
        OR_RETURN(hs_exec_pool_give(pool, block));
        if (ended)
            return;
        counters[own(argument)]++;
    }
}

// The most urgent task: lets the others run for the duration.
static void reports(void *argument, const hs_exec_message *message)
{
    (void)argument, (void)message;
    if (hs_exec_delay_ns(duration_ns) == HS_OK) {
        ended = 1;
        hs_exec_stop();
    }
}

static hs_exec_task thread(int priority, void (*entry)(void *, const hs_exec_message *), size_t number)
{
    hs_exec_task made;
    hs_exec_task_options options = { .size = sizeof options, .entry = entry, .argument = (void *)(uintptr_t)number, .priority = priority };
    TRY(hs_exec_task_new(exec, &options, &made));
    return made;
}

struct test {
    const char *name;
    void (*entries[THREADS])(void *, const hs_exec_message *);
    int priorities[THREADS];
    void (*handler)(void *, const hs_exec_arrival *);
    // Whether the counters must agree, whether the handler's is one of them, and whether all but the first are started by being resumed.
    int agree, counted_by_handler, resumed;
};

static const struct test TESTS[] = {
    { "basic", { computes }, { 10 }, NULL, 0, 0, 0 },
    { "cooperative", { gives_way, gives_way, gives_way, gives_way, gives_way }, { 3, 3, 3, 3, 3 }, NULL, 1, 0, 0 },
    { "preemptive", { resumes, resumes, resumes, resumes, resumes }, { 10, 9, 8, 7, 6 }, NULL, 1, 0, 1 },
    { "interrupt", { interrupts }, { 10 }, on_interrupt, 1, 1, 0 },
    { "interrupt_preemption", { is_interrupted, is_resumed }, { 10, 3 }, on_preempting, 1, 1, 1 },
    { "message", { messages }, { 10 }, NULL, 0, 0, 0 },
    { "synchronisation", { synchronises }, { 10 }, NULL, 0, 0, 0 },
    { "memory", { allocates }, { 10 }, NULL, 0, 0, 0 },
};

enum outcome { WRONG, OK, NOT_HERE };

static enum outcome run(const struct test *test, int backend)
{
    hs_exec_options options = { .size = sizeof options, .backend = backend, .cpu = -1, .watchdog_ns = -1 };
    hs_exec_finish finish = { .size = sizeof finish };
    memset((void *)counters, 0, sizeof counters);
    handled = preempted = faults = 0;
    ended = unreported = 0;
    TRY(hs_exec_new(&options, &exec));
    TRY(hs_exec_exchange_new(exec, 10, 0, 0, 0, &queue));
    TRY(hs_exec_semaphore_new(exec, test->handler ? 0 : 1, 1, &semaphore));
    TRY(hs_exec_pool_new(exec, BLOCKS, BLOCK_BYTES, &pool));
    if (test->handler)
        TRY(hs_exec_interrupt_new(exec, test->name, HS_EXEC_SOFTWARE, -1, test->handler, NULL, &interrupt));
    size_t count = 0;
    for (; count < THREADS && test->entries[count]; count++)
        threads[count] = thread(test->priorities[count], test->entries[count], count);
    TRY(hs_exec_task_start(thread(REPORTER, reports, 0)));
    // The more urgent first, so that each waits before the one that wants it there.
    for (size_t number = test->resumed ? 1 : count; number-- > 0;)
        TRY(hs_exec_task_start(threads[number]));
    TRY(hs_exec_run(exec, HS_EXEC_FOREVER, &finish));
    uint64_t sum = 0, least = UINT64_MAX, most = 0;
    for (size_t number = 0; number < count; number++) {
        sum += counters[number];
        least = counters[number] < least ? counters[number] : least;
        most = counters[number] > most ? counters[number] : most;
    }
    if (test->counted_by_handler) {
        least = handled < least ? handled : least;
        most = handled > most ? handled : most;
    }
    // Around an average that differs by at most one from each, the extremes differ by at most two. Without real-time priority Linux chooses, and a
    // thread can be resumed before it has suspended itself.
    int agree = !test->agree || !finish.strict || most - least <= 2;
    int ordered = !test->agree || finish.strict;
    int good = sum > 0 && (faults == 0 || !ordered) && agree && !unreported && finish.stopped == HS_EXEC_ASKED;
    // Without a call in the loop only a thread of the kernel is preempted.
    int not_here = unreported && backend == HS_EXEC_FIBERS;
    const char *word = not_here ? "n/a" : good ? "ok" : "wrong";
    printf("%s %" PRIu64 " %s", test->name, not_here ? 0 : test->counted_by_handler ? handled : sum, word);
    if (!ordered)
        printf(" without strict priority");
    if (test->handler == on_preempting)
        printf(" preempted %" PRIu64, preempted);
    if (!good && !not_here)
        printf(" faults %" PRIu64 " least %" PRIu64 " most %" PRIu64, faults, least, most);
    printf("\n");
    TRY(hs_exec_free(exec));
    return not_here ? NOT_HERE : good ? OK : WRONG;
}

int main(int count, char **arguments)
{
    int wrong = 0, passed = 0, ran = 0;
    if (count < 3 || (duration_ns = atoll(arguments[2]) * 1000000) <= 0) {
        fprintf(stderr, "usage: thread_metric fibers|threads DURATION_MS [TEST]\n");
        return 2;
    }
    int backend = !strcmp(arguments[1], "threads") ? HS_EXEC_THREADS_UP : HS_EXEC_FIBERS;
    for (size_t number = 0; number < sizeof TESTS / sizeof *TESTS; number++)
        if (count < 4 || !strcmp(arguments[3], TESTS[number].name)) {
            enum outcome outcome = run(&TESTS[number], backend);
            wrong += outcome == WRONG;
            passed += outcome == OK;
            ran++;
        }
    printf("passed %d of %d\n", passed, ran);
    return wrong || !ran ? 1 : 0;
}
