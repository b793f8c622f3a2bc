// Who keeps the CPU and what tasks use, from C: stacks of their own size, thresholds, the scheduler's lock, time slices, calls that switch nothing, and
// accounts of CPU time, switches and stacks, on each back-end and with everything that can be done wrong.
#include "exec_check.h"
#include <stdatomic.h>
#include <stddef.h>
#include <string.h>

static hs_exec *exec;
static hs_exec_task urgent, middle, low;
static hs_exec_timer timer;
static int backend, expiries;

#define BODY(name) static void name(void *argument, const hs_exec_message *message)
#define NOTHING (void)argument, (void)message

// What happened, one letter each. Atomic, because one task ends and a less urgent one goes on without a call in between that the compiler, or
// ThreadSanitizer, knows of.
static char order[64];

static char first_note(void)
{
    return __atomic_load_n(&order[0], __ATOMIC_RELAXED);
}

static void note(char what)
{
    static int number;
    int at = first_note() ? __atomic_add_fetch(&number, 1, __ATOMIC_RELAXED) : 0;
    __atomic_store_n(&number, at, __ATOMIC_RELAXED);
    __atomic_store_n(&order[at], what, __ATOMIC_RELAXED);
}

BODY(notes_u)
{
    NOTHING;
    note('u');
}

BODY(notes_m)
{
    NOTHING;
    note('m');
}

static hs_exec_task with(hs_exec_task_options options)
{
    hs_exec_task made;
    options.size = sizeof options;
    IS(HS_OK, hs_exec_task_new(exec, &options, &made));
    return made;
}

// ---- thresholds and the lock ----

BODY(holds_off)
{
    NOTHING;
    int before = -1;
    if (first_note()) {
        // The lock of the run before ended with it.
        IS(HS_E_STATE, hs_exec_scheduler_unlock());
        IS(HS_OK, hs_exec_task_start(urgent));
        note('z');
        return;
    }
    IS(HS_OK, hs_exec_timer_start_ns(timer, hs_exec_now_ns()));
    IS(HS_E_RANGE, hs_exec_set_threshold(64, &before));
    IS(HS_E_RANGE, hs_exec_set_threshold(-1, &before));
    IS(HS_E_STATE, hs_exec_scheduler_unlock());
    CHECK(strstr(hs_last_error(), "has not locked") && before == -1);
    IS(HS_OK, hs_exec_set_threshold(10, &before));
    CHECK(before == HS_EXEC_NO_THRESHOLD);
    IS(HS_OK, hs_exec_task_start(middle));
    IS(HS_OK, hs_exec_task_start(urgent));
    note('a');
    IS(HS_OK, hs_exec_set_threshold(HS_EXEC_NO_THRESHOLD, &before));
    CHECK(before == 10);
    note('b');
    IS(HS_OK, hs_exec_scheduler_lock());
    IS(HS_OK, hs_exec_scheduler_lock());
    IS(HS_OK, hs_exec_task_start(middle));
    IS(HS_OK, hs_exec_task_start(urgent));
    note('c');
    IS(HS_OK, hs_exec_scheduler_unlock());
    note('d');
    // It is for after the lock.
    IS(HS_OK, hs_exec_set_threshold(10, &before));
    CHECK(before == HS_EXEC_NO_THRESHOLD);
    note('e');
    IS(HS_OK, hs_exec_scheduler_unlock());
    note('f');
    IS(HS_OK, hs_exec_set_threshold(HS_EXEC_NO_THRESHOLD, &before));
    CHECK(before == 10);
    IS(HS_E_STATE, hs_exec_scheduler_unlock());
    // While it waits others run, lock or not.
    IS(HS_OK, hs_exec_scheduler_lock());
    IS(HS_OK, hs_exec_task_start(middle));
    note('g');
    IS(HS_OK, hs_exec_delay_ns(50 * MS));
    note('h');
    // It returns with the scheduler locked.
}

static void on_timer(void *argument, const hs_exec_expiry *expiry)
{
    (void)argument, (void)expiry;
    IS(HS_E_CALLER, hs_exec_scheduler_lock());
    IS(HS_E_CALLER, hs_exec_scheduler_unlock());
    IS(HS_E_CALLER, hs_exec_set_threshold(10, NULL));
    expiries++;
}

static void thresholds(void)
{
    memset(order, 0, sizeof order);
    exec = fresh(backend);
    urgent = task(exec, 5, notes_u, 0);
    middle = task(exec, 15, notes_m, 0);
    low = task(exec, 30, holds_off, 0);
    IS(HS_E_CALLER, hs_exec_scheduler_lock());
    IS(HS_E_CALLER, hs_exec_scheduler_unlock());
    IS(HS_E_CALLER, hs_exec_set_threshold(10, NULL));
    IS(HS_OK, hs_exec_timer_new(exec, "t", on_timer, NULL, &timer));
    expiries = 0;
    IS(HS_OK, hs_exec_task_start(low));
    IS(HS_OK, hs_exec_task_start(low));
    hs_exec_finish finish = run(exec);
    CHECK(finish.stopped == HS_EXEC_FINISHED && finish.mishaps == 0 && expiries == 1);
    // Without the right to real-time priorities Linux chooses.
    if (finish.strict && strcmp(order, "uambcdeufmgmhuz"))
        fprintf(stderr, "on back-end %d: %s\n", backend, order);
    CHECK(!finish.strict || !strcmp(order, "uambcdeufmgmhuz"));
    IS(HS_OK, hs_exec_free(exec));
}

BODY(starts_urgent)
{
    NOTHING;
    IS(HS_OK, hs_exec_task_start(urgent));
    note('p');
}

BODY(is_killed_locked)
{
    NOTHING;
    IS(HS_OK, hs_exec_scheduler_lock());
    IS(HS_E_KILLED, hs_exec_wait(HS_EXEC_FOREVER));
    // The lock lasts until the run ends, or is undone before.
    IS(HS_OK, hs_exec_task_start(urgent));
    note('x');
    IS(HS_OK, hs_exec_scheduler_unlock());
}

BODY(kills_low)
{
    NOTHING;
    IS(HS_OK, hs_exec_task_kill(low));
    IS(HS_OK, hs_exec_task_join(low, PATIENCE, NULL));
    note('k');
}

static void in_options(void)
{
    hs_exec_task made;
    hs_exec_task_options options = { .size = sizeof options, .entry = starts_urgent, .priority = 30, .has_threshold = 2 };
    memset(order, 0, sizeof order);
    exec = fresh(backend);
    urgent = task(exec, 5, notes_u, 0);
    IS(HS_E_RANGE, hs_exec_task_new(exec, &options, &made));
    CHECK(strstr(hs_last_error(), "0 or 1"));
    options.has_threshold = 1;
    options.threshold = 64;
    IS(HS_E_RANGE, hs_exec_task_new(exec, &options, &made));
    options.threshold = -1;
    IS(HS_E_RANGE, hs_exec_task_new(exec, &options, &made));
    options.threshold = 0;
    made = with(options);
    // A program that was compiled with the header of the first version: what lies behind its structure is not looked at.
    options.size = offsetof(hs_exec_task_options, stack_bytes);
    options.has_threshold = 77;
    IS(HS_OK, hs_exec_task_new(exec, &options, &middle));
    IS(HS_OK, hs_exec_task_start(made));
    hs_exec_finish finish = run(exec);
    CHECK(finish.stopped == HS_EXEC_FINISHED && (!finish.strict || !strcmp(order, "pu")));
    IS(HS_OK, hs_exec_task_start(middle));
    finish = run(exec);
    CHECK(finish.stopped == HS_EXEC_FINISHED && (!finish.strict || !strcmp(order, "puup")));
    memset(order, 0, sizeof order);
    low = task(exec, 30, is_killed_locked, 0);
    IS(HS_OK, hs_exec_task_start(low));
    IS(HS_OK, hs_exec_task_start(task(exec, 40, kills_low, 0)));
    finish = run(exec);
    CHECK(finish.stopped == HS_EXEC_FINISHED && finish.mishaps == 1 && (!finish.strict || !strcmp(order, "xuk")));
    IS(HS_OK, hs_exec_free(exec));
}

// ---- slices ----

static int counts[3];

BODY(takes_turns)
{
    (void)message;
    // Only if the others get the CPU can this end.
    for (int round = 1; round <= 2; round++) {
        __atomic_store_n((int *)argument, round, __ATOMIC_SEQ_CST);
        for (int other = 0; other < 3; other++)
            while (__atomic_load_n(&counts[other], __ATOMIC_SEQ_CST) < round)
                IS(HS_OK, hs_exec_work_ns(20000));
    }
}

static void slices(void)
{
    hs_exec_options options = { .size = sizeof options, .backend = backend, .cpu = -1, .slice_ns = -1 };
    IS(HS_E_NEGATIVE, hs_exec_new(&options, &exec));
    options.slice_ns = 99999;
    IS(HS_E_RANGE, hs_exec_new(&options, &exec));
    CHECK(strstr(hs_last_error(), "at least 100"));
    options.slice_ns = MS;
    IS(HS_OK, hs_exec_new(&options, &exec));
    for (int me = 0; me < 3; me++) {
        counts[me] = 0;
        IS(HS_OK, hs_exec_task_start(with((hs_exec_task_options){ .entry = takes_turns, .argument = &counts[me], .priority = 20 })));
    }
    hs_exec_finish finish = run(exec);
    CHECK(finish.stopped == HS_EXEC_FINISHED && finish.mishaps == 0);
    IS(HS_OK, hs_exec_free(exec));
}

// ---- what tasks use ----

static hs_exec_task_usage usage_of(hs_exec_task whose)
{
    hs_exec_task_usage usage = { .size = sizeof usage };
    IS(HS_OK, hs_exec_task_measure(whose, &usage));
    return usage;
}

// The smallest stack does not hold the frames of AddressSanitizer.
#ifdef __SANITIZE_ADDRESS__
enum { DEEP_BYTES = 600000, SMALL_BYTES = 65536 };
#else
enum { DEEP_BYTES = 600000, SMALL_BYTES = 1 };
#endif

static int digs(void)
{
    volatile char room[DEEP_BYTES];
    for (size_t at = 0; at < sizeof room; at += 1024)
        room[at] = 1;
    // The library still knows its task, and switches.
    CHECK(hs_exec_by() == HS_EXEC_BY_TASK);
    IS(HS_OK, hs_exec_delay_ns(MS));
    return room[0] + room[DEEP_BYTES / 1024 * 1024];
}

BODY(goes_deep)
{
    NOTHING;
    CHECK(digs() == 2);
}

BODY(works)
{
    NOTHING;
    hs_exec_task self;
    IS(HS_OK, hs_exec_work_ns(2 * MS));
    IS(HS_OK, hs_exec_delay_ns(MS));
    IS(HS_OK, hs_exec_self(&self));
    CHECK(usage_of(self).stack_bytes > 0);
}

static void usages(int measured)
{
    hs_exec_options options = { .size = sizeof options, .backend = backend, .cpu = -1, .measure_usage = 2 };
    IS(HS_E_RANGE, hs_exec_new(&options, &exec));
    options.measure_usage = measured;
    IS(HS_OK, hs_exec_new(&options, &exec));
    int counted = measured || backend == HS_EXEC_THREADS_UP || backend == HS_EXEC_THREADS_SMP;
    hs_exec_task deep = with((hs_exec_task_options){ .entry = goes_deep, .priority = 10, .stack_bytes = 1 << 20 });
    hs_exec_task small = with((hs_exec_task_options){ .entry = works, .priority = 20, .stack_bytes = SMALL_BYTES });
    hs_exec_task mail = with((hs_exec_task_options){ .entry = goes_deep, .priority = 20, .stack_bytes = 1 << 20, .mailboxes = { 1 } });
    hs_exec_message one = { { 0 } };
    if (backend == HS_EXEC_FIBERS || backend == HS_EXEC_SIM)
        CHECK(usage_of(deep).stack_bytes == -1 && usage_of(deep).stack_used_bytes == -1);
    IS(HS_OK, hs_exec_task_start(deep));
    IS(HS_OK, hs_exec_task_start(small));
    IS(HS_OK, hs_exec_send(mail, 0, &one));
    hs_exec_finish finish = run(exec);
    CHECK(finish.stopped == HS_EXEC_FINISHED && finish.mishaps == 0);
    hs_exec_task_usage of_deep = usage_of(deep), of_small = usage_of(small), of_mail = usage_of(mail);
    CHECK(of_deep.stack_bytes >= 1 << 20 && of_deep.stack_used_bytes >= DEEP_BYTES && of_deep.stack_used_bytes <= of_deep.stack_bytes);
    CHECK(of_mail.stack_used_bytes >= DEEP_BYTES && of_small.stack_bytes >= 16384 && of_small.stack_used_bytes > 0);
    CHECK(counted ? of_small.cpu_ns >= 2 * MS && of_small.switches >= 1 : of_small.cpu_ns == -1 && of_small.switches == -1);
    // Of another header: shorter is refused, longer gets zeros.
    struct { hs_exec_task_usage known; uint64_t more; } longer = { .known = { .size = sizeof longer }, .more = 7 };
    IS(HS_OK, hs_exec_task_measure(deep, &longer.known));
    CHECK(longer.more == 0 && longer.known.stack_bytes == of_deep.stack_bytes);
    longer.known.size = 8;
    IS(HS_E_RANGE, hs_exec_task_measure(deep, &longer.known));
    IS(HS_E_NULL, hs_exec_task_measure(deep, NULL));
    longer.known.size = sizeof longer;
    IS(HS_E_FREED, hs_exec_task_measure((hs_exec_task){ deep.id ^ 0xfff }, &longer.known));
    IS(HS_E_HANDLE, hs_exec_task_measure((hs_exec_task){ 0 }, &longer.known));
    IS(HS_OK, hs_exec_free(exec));
    IS(HS_E_CALLER, hs_exec_task_measure(deep, &longer.known));
}

// ---- stacks of the program ----

static char stack[256 * 1024];
static int on_stack;

BODY(runs_on_stack)
{
    NOTHING;
    // Not a variable: AddressSanitizer may put it elsewhere.
    const char *frame = __builtin_frame_address(0);
    IS(HS_OK, hs_exec_delay_ns(1000));
    on_stack += frame >= stack && frame < stack + sizeof stack;
}

static void on_own_stacks(void)
{
    hs_exec_task made;
    hs_exec_task_options options = { .size = sizeof options, .entry = runs_on_stack, .priority = 30, .stack = stack, .stack_bytes = 16384 };
    exec = fresh(backend);
    on_stack = 0;
    // Too small above the lowest whole page.
    IS(HS_E_RANGE, hs_exec_task_new(exec, &options, &made));
    CHECK(strstr(hs_last_error(), "6 pages"));
    memset(stack, 1, sizeof stack);
    options.stack_bytes = sizeof stack;
    IS(HS_OK, hs_exec_task_new(exec, &options, &made));
    IS(HS_OK, hs_exec_task_start(made));
    IS(HS_OK, hs_exec_task_start(made));
    hs_exec_finish finish = run(exec);
    CHECK(finish.stopped == HS_EXEC_FINISHED && finish.mishaps == 0 && on_stack == 2);
    IS(HS_OK, hs_exec_free(exec));
    memset(stack, 2, sizeof stack);
    // Another task on it, which never runs.
    exec = fresh(backend);
    IS(HS_OK, hs_exec_task_new(exec, &options, &made));
    IS(HS_OK, hs_exec_free(exec));
    memset(stack, 3, sizeof stack);
}

// ---- calls that switch nothing ----

static hs_exec_semaphore units;
static hs_exec_events bits;
// Set by the thread that keeps the time.
static atomic_int came;

static void comes(void *argument, const hs_exec_expiry *expiry)
{
    (void)argument, (void)expiry;
    came = 1;
}

static int quick_call(int number)
{
    uint32_t set = 0;
    switch (number) {
    case 0: return hs_exec_semaphore_signal(units);
    case 1: return hs_exec_semaphore_wait(units, HS_EXEC_FOREVER);
    case 2: return hs_exec_events_signal(bits, 4);
    default: return hs_exec_events_wait(bits, 6, 0, HS_EXEC_FOREVER, &set) == HS_OK && set == 4 ? HS_OK : HS_E_PANIC;
    }
}

// A call that has all it wants serves what is due, too: a task that makes no other call does not keep a timer from its time.
BODY(calls_quickly)
{
    NOTHING;
    for (int number = 0; number < 4; number++) {
        int told = HS_OK;
        int64_t began = hs_exec_now_ns();
        came = 0;
        IS(HS_OK, hs_exec_timer_start_ns(timer, began + MS));
        while (!came && told == HS_OK && hs_exec_now_ns() < began + PATIENCE / 5)
            told = quick_call(number);
        CHECK(told == HS_OK && came);
    }
}

static void quick_calls(void)
{
    exec = fresh(backend);
    low = task(exec, 40, calls_quickly, 0);
    // Units for each wait, and room for each signal.
    IS(HS_OK, hs_exec_semaphore_new(exec, UINT32_MAX / 2, UINT32_MAX, &units));
    IS(HS_OK, hs_exec_events_new(exec, 0, &bits));
    IS(HS_OK, hs_exec_timer_new(exec, NULL, comes, NULL, &timer));
    IS(HS_OK, hs_exec_task_start(low));
    hs_exec_finish finish = run(exec);
    CHECK(finish.stopped == HS_EXEC_FINISHED && finish.mishaps == 0);
    IS(HS_OK, hs_exec_free(exec));
}

int main(void)
{
    CHECK(sizeof(hs_exec_options) == 64 && offsetof(hs_exec_options, slice_ns) == 48 && offsetof(hs_exec_options, measure_usage) == 56);
    CHECK(sizeof(hs_exec_task_options) == 72 && offsetof(hs_exec_task_options, stack) == 64 && offsetof(hs_exec_task_options, stack_bytes) == 48);
    CHECK(offsetof(hs_exec_task_options, has_threshold) == 56 && offsetof(hs_exec_task_options, threshold) == 60);
    CHECK(sizeof(hs_exec_task_usage) == 40 && offsetof(hs_exec_task_usage, cpu_ns) == 8 && offsetof(hs_exec_task_usage, switches) == 16);
    CHECK(offsetof(hs_exec_task_usage, stack_bytes) == 24 && offsetof(hs_exec_task_usage, stack_used_bytes) == 32);
    for (size_t number = 0; number < sizeof BACKENDS / sizeof *BACKENDS; number++) {
        backend = BACKENDS[number];
        // On several CPUs tasks run side by side, and the order is none.
        if (backend != HS_EXEC_THREADS_SMP) {
            thresholds();
            in_options();
        }
        slices();
        on_own_stacks();
        usages(0);
        usages(1);
        // In virtual time these calls take no time.
        if (backend != HS_EXEC_SIM)
            quick_calls();
    }
    printf("checks %d\n", checks);
    return 0;
}
