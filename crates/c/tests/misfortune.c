// Bad luck with the executive, each kind in a process of its own: what a task must not do, what happens to threads and processes behind the
// library's back, and the outcome that the reference states.
#define _GNU_SOURCE
#include "exec_check.h"
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

static hs_exec *exec, *second;
static hs_exec_task low, high;
static hs_exec_semaphore semaphore;
static hs_exec_resource resource;
static hs_exec_mutex *mutex;
static hs_exec_interrupt *interrupt;
static int backend;
static volatile int seen;
static jmp_buf home;

#define BODY(name) static void name(void *argument, const hs_exec_message *message)
#define NOTHING (void)argument, (void)message

#ifdef __SANITIZE_ADDRESS__
enum { JUMPS = 0 };
// The library has a handler of its own for a stack that has overflowed, and that one is tested. A task that ended with its thread leaves what it had.
const char *__asan_default_options(void);
const char *__asan_default_options(void)
{
    return "handle_segv=0:handle_sigbus=0:detect_leaks=0";
}
#elif defined __SANITIZE_THREAD__
enum { JUMPS = 0 };
const char *__tsan_default_options(void);
const char *__tsan_default_options(void)
{
    return "handle_segv=0:handle_sigbus=0:handle_abort=0:report_thread_leaks=0:die_after_fork=0";
}
#else
enum { JUMPS = 1 };
#endif

// ThreadSanitizer knows nothing of switches between stacks.
#ifdef __SANITIZE_THREAD__
enum { FIBERS = 0 };
#else
enum { FIBERS = 1 };
#endif

// What a child said on both outputs, and how it ended. 99 is a scenario that came to its end.
static int child(void (*scenario)(void), char *said, size_t room)
{
    int ends[2], status;
    CHECK(!pipe(ends) && !fflush(stdout));
    pid_t id = fork();
    CHECK(id >= 0);
    if (id == 0) {
        struct rlimit none = { 0, 0 };
        setrlimit(RLIMIT_CORE, &none);
        dup2(ends[1], 1), dup2(ends[1], 2);
        close(ends[0]), close(ends[1]);
        scenario();
        _exit(99);
    }
    close(ends[1]);
    size_t got = 0;
    for (ssize_t more; (more = read(ends[0], said + got, room - 1 - got)) > 0;)
        got += (size_t)more;
    said[got] = 0;
    close(ends[0]);
    CHECK(waitpid(id, &status, 0) == id);
    return status;
}

static void runs(void (*entry)(void *, const hs_exec_message *))
{
    exec = fresh(backend);
    low = task(exec, 5, entry, 0);
    IS(HS_OK, hs_exec_semaphore_new(exec, 0, 9, &semaphore));
    IS(HS_OK, hs_exec_resource_new(exec, HS_EXEC_PROTOCOL_INHERIT, 0, &resource));
    IS(HS_OK, hs_exec_mutex_new(exec, HS_EXEC_PROTOCOL_INHERIT, 0, &mutex));
    IS(HS_OK, hs_exec_task_start(low));
    run(exec);
}

// ---- a task ends in a wrong way ----

BODY(leaves_owning)
{
    NOTHING;
    IS(HS_OK, hs_exec_reserve(resource, PATIENCE));
    IS(HS_OK, hs_exec_mutex_lock(mutex, PATIENCE, NULL));
    seen++;
}

static void returning(void)
{
    const char *text;
    hs_exec_task whose;
    runs(leaves_owning);
    IS(HS_OK, hs_exec_mishap(exec, 0, &whose, &text));
    CHECK(whose.id == low.id && strstr(text, "returned while it owned resources"));
    // Its resources are free again, and it can run again.
    IS(HS_OK, hs_exec_task_start(low));
    run(exec);
    CHECK(seen == 2);
    IS(HS_OK, hs_exec_free(exec));
}

BODY(exits)
{
    NOTHING;
    printf("good bye\n");
    exit(7);
}

static void exiting(void)
{
    runs(exits);
}

static int deeper(int depth)
{
    volatile char room[1024];
    room[depth % 1024] = (char)depth;
    return depth > 1000000 ? 0 : deeper(depth + 1) + room[depth % 1024];
}

BODY(goes_nowhere)
{
    NOTHING;
    seen++;
}

BODY(overflows)
{
    NOTHING;
    seen = deeper(0);
}

static void overflowing(void)
{
    runs(overflows);
}

static void overflowing_its_own(void)
{
    hs_exec_task_options options = { .size = sizeof options, .entry = overflows, .stack_bytes = 256 * 1024 };
    exec = fresh(backend);
    IS(HS_OK, hs_exec_task_new(exec, &options, &low));
    IS(HS_OK, hs_exec_task_start(low));
    run(exec);
}

// More memory than the process may have: on fibers told when the stack is needed, on threads when the task is created.
static void asking_for_too_much(void)
{
    const char *text;
    struct rlimit most = { (rlim_t)1 << 36, (rlim_t)1 << 36 };
    hs_exec_task_options options = { .size = sizeof options, .entry = goes_nowhere, .stack_bytes = (size_t)1 << 45 };
    CHECK(!setrlimit(RLIMIT_AS, &most));
    exec = fresh(backend);
    high = task(exec, 5, goes_nowhere, 0);
    if (backend == HS_EXEC_FIBERS) {
        IS(HS_OK, hs_exec_task_new(exec, &options, &low));
        IS(HS_OK, hs_exec_task_start(low));
        CHECK(run(exec).mishaps == 1);
        IS(HS_OK, hs_exec_mishap(exec, 0, NULL, &text));
        CHECK(strstr(text, "no memory for a stack of 35184372088832 bytes"));
    } else {
        IS(HS_E_TOO_MANY, hs_exec_task_new(exec, &options, &low));
    }
    // The others go on.
    IS(HS_OK, hs_exec_task_start(high));
    CHECK(run(exec).mishaps == 0 && seen == 1);
    IS(HS_OK, hs_exec_free(exec));
}

BODY(goes_on)
{
    NOTHING;
    hs_exec_stop();
    for (;;)
        hs_exec_wait(HS_EXEC_FOREVER);
}

static void going_on(void)
{
    runs(goes_on);
}

BODY(ends_its_thread)
{
    NOTHING;
    pthread_exit(NULL);
}

static void ending_its_thread(void)
{
    runs(ends_its_thread);
}

// ---- jumps ----

BODY(jumps_inside)
{
    NOTHING;
    jmp_buf here;
    volatile int jumped = 0;
    if (setjmp(here) == 0) {
        IS(HS_OK, hs_exec_delay_ns(MS));
        jumped = 1;
        longjmp(here, 1);
    }
    CHECK(jumped == 1);
    IS(HS_OK, hs_exec_delay_ns(MS));
    IS(HS_E_TIMED_OUT, hs_exec_semaphore_wait(semaphore, MS));
    seen++;
}

static void jumping_inside(void)
{
    runs(jumps_inside);
    CHECK(seen == 1);
    IS(HS_OK, hs_exec_free(exec));
}

BODY(jumps_out)
{
    NOTHING;
    IS(HS_OK, hs_exec_delay_ns(MS));
    longjmp(home, 1);
}

BODY(sees)
{
    NOTHING;
    IS(HS_OK, hs_exec_delay_ns(MS));
    seen++;
}

// The run is lost, and with it the executive; everything says so, and another executive works.
static void jumping_out(void)
{
    if (setjmp(home) == 0) {
        runs(jumps_out);
        CHECK(!"it came back");
    }
    CHECK(hs_exec_by() == HS_EXEC_BY_OUTSIDE);
    IS(HS_E_CALLER, hs_exec_wait(HS_EXEC_NO_WAIT));
    IS(HS_E_CALLER, hs_exec_delay_ns(MS));
    IS(HS_E_CALLER, hs_exec_mutex_lock(mutex, HS_EXEC_NO_WAIT, NULL));
    IS(HS_E_BUSY, hs_exec_task_start(low));
    IS(HS_E_BUSY, hs_exec_semaphore_signal(semaphore));
    IS(HS_E_BUSY, hs_exec_run(exec, 0, NULL));
    IS(HS_E_BUSY, hs_exec_free(exec));
    runs(sees);
    CHECK(seen == 1);
    IS(HS_OK, hs_exec_free(exec));
}

BODY(is_jumped_into)
{
    NOTHING;
    if (setjmp(home) == 0) {
        hs_exec_wait(HS_EXEC_FOREVER);
        return;
    }
    // Still the other task for the library, which sees that this is not its stack.
    IS(HS_E_CALLER, hs_exec_wait(HS_EXEC_NO_WAIT));
}

BODY(jumps_into_another)
{
    NOTHING;
    IS(HS_OK, hs_exec_task_start(high));
    longjmp(home, 1);
}

static void jumping_into_another(void)
{
    exec = fresh(backend);
    low = task(exec, 20, jumps_into_another, 0);
    high = task(exec, 10, is_jumped_into, 0);
    IS(HS_OK, hs_exec_task_start(low));
    run(exec);
}

// ---- cancelled threads ----

BODY(is_cancelled)
{
    NOTHING;
    CHECK(!pthread_cancel(pthread_self()));
    // Each is a place at which a thread is cancelled.
    usleep(1000);
    pthread_testcancel();
    IS(HS_OK, hs_exec_delay_ns(MS));
    usleep(1000);
    seen++;
}

static void *cancelled_runner(void *argument)
{
    runs(is_cancelled);
    CHECK(seen == 1);
    IS(HS_OK, hs_exec_free(exec));
    seen = 2;
    // On fibers it is this thread that was cancelled, and now it is.
    pthread_testcancel();
    return argument;
}

static void cancelling(void)
{
    pthread_t thread;
    void *result;
    CHECK(!pthread_create(&thread, NULL, cancelled_runner, &semaphore) && !pthread_join(thread, &result));
    CHECK(seen == 2 && result == (backend == HS_EXEC_FIBERS ? PTHREAD_CANCELED : (void *)&semaphore));
}

static void *leaves_an_executive(void *argument)
{
    exec = fresh(backend);
    low = task(exec, 5, sees, 0);
    return argument;
}

static void orphaned(void)
{
    pthread_t thread;
    CHECK(!pthread_create(&thread, NULL, leaves_an_executive, NULL) && !pthread_join(thread, NULL));
    IS(HS_E_CALLER, hs_exec_task_start(low));
    IS(HS_E_THREAD, hs_exec_run(exec, 0, NULL));
    IS(HS_E_THREAD, hs_exec_free(exec));
}

// ---- forks ----

static int child_of(pid_t id)
{
    int status = -1;
    CHECK(id > 0 && waitpid(id, &status, 0) == id);
    return status;
}

BODY(forks)
{
    NOTHING;
    IS(HS_OK, hs_exec_delay_ns(MS));
    pid_t id = fork();
    if (id == 0) {
        // No call of the executive does anything.
        CHECK(hs_exec_by() == HS_EXEC_BY_OUTSIDE);
        IS(HS_E_CALLER, hs_exec_wait(HS_EXEC_NO_WAIT));
        IS(HS_E_CALLER, hs_exec_delay_ns(MS));
        IS(HS_E_CALLER, hs_exec_stop());
        IS(HS_E_CALLER, hs_exec_mutex_lock(mutex, HS_EXEC_NO_WAIT, NULL));
        CHECK(hs_exec_wake(low) == HS_E_BUSY || hs_exec_wake(low) == HS_E_CALLER);
        IS(HS_E_BUSY, hs_exec_run(exec, 0, NULL));
        IS(HS_E_BUSY, hs_exec_free(exec));
        _exit(5);
    }
    int status = child_of(id);
    CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 5);
    // The parent goes on.
    IS(HS_OK, hs_exec_delay_ns(MS));
    id = fork();
    if (id == 0)
        return;
    status = child_of(id);
    CHECK(WIFSIGNALED(status) && WTERMSIG(status) == SIGABRT);
    IS(HS_OK, hs_exec_delay_ns(MS));
    seen++;
}

static void forking_inside(void)
{
    runs(forks);
    CHECK(seen == 1);
    IS(HS_OK, hs_exec_free(exec));
}

static void forking_outside(void)
{
    runs(sees);
    CHECK(seen == 1);
    pid_t id = fork();
    if (id == 0) {
        hs_exec_finish finish = { .size = sizeof finish };
        IS(HS_E_THREAD, hs_exec_task_start(low));
        IS(HS_E_THREAD, hs_exec_run(exec, 0, &finish));
        CHECK(strstr(hs_last_error(), "make another"));
        IS(HS_E_THREAD, hs_exec_free(exec));
        IS(HS_E_THREAD, hs_exec_mutex_new(exec, HS_EXEC_PROTOCOL_NONE, 0, &mutex));
        // One of its own works.
        runs(sees);
        CHECK(seen == 2);
        IS(HS_OK, hs_exec_free(exec));
        _exit(5);
    }
    int status = child_of(id);
    CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 5);
    IS(HS_OK, hs_exec_task_start(low));
    run(exec);
    CHECK(seen == 2);
    IS(HS_OK, hs_exec_free(exec));
}

// ---- two executives ----

BODY(waits_inside)
{
    NOTHING;
    // Its own calls work; those about the outer executive do not.
    IS(HS_OK, hs_exec_delay_ns(MS));
    IS(HS_E_HANDLE, hs_exec_wake(low));
    IS(HS_E_HANDLE, hs_exec_semaphore_signal(semaphore));
    IS(HS_E_HANDLE, hs_exec_mutex_lock(mutex, PATIENCE, NULL));
    seen++;
}

BODY(runs_another)
{
    NOTHING;
    hs_exec_task inner;
    second = fresh(HS_EXEC_SIM);
    inner = task(second, 5, waits_inside, 0);
    // A task of one executive is the outside of none: it starts nothing in the other before that runs.
    IS(HS_E_HANDLE, hs_exec_task_start(inner));
    // Nor does it run it.
    IS(HS_OK, hs_exec_delay_ns(MS));
    seen++;
}

static void one_makes_another(void)
{
    runs(runs_another);
    CHECK(seen == 1);
    if (backend != HS_EXEC_FIBERS) {
        // It belongs to the task's thread.
        IS(HS_E_THREAD, hs_exec_run(second, 0, NULL));
        IS(HS_E_THREAD, hs_exec_free(second));
        IS(HS_OK, hs_exec_free(exec));
        return;
    }
    hs_exec_task inner = task(second, 5, waits_inside, 0);
    IS(HS_OK, hs_exec_task_start(inner));
    run(second);
    CHECK(seen == 2);
    IS(HS_OK, hs_exec_free(second));
    IS(HS_OK, hs_exec_free(exec));
}

static hs_exec_interrupt *bell;

static void on_bell(void *argument, const hs_exec_arrival *arrival)
{
    (void)arrival;
    IS(HS_OK, hs_exec_wake(*(hs_exec_task *)argument));
}

BODY(answers)
{
    NOTHING;
    for (int number = 0; number < 20; number++) {
        IS(HS_OK, hs_exec_wait(PATIENCE));
        IS(HS_OK, hs_exec_interrupt_post(interrupt));
    }
    // Without this the run would wait for one more interrupt.
    IS(HS_OK, hs_exec_stop());
}

BODY(asks)
{
    NOTHING;
    IS(HS_E_HANDLE, hs_exec_wake(high));
    for (int number = 0; number < 20; number++) {
        IS(HS_OK, hs_exec_interrupt_post(bell));
        IS(HS_OK, hs_exec_wait(PATIENCE));
        seen++;
    }
    IS(HS_OK, hs_exec_stop());
}

static void *make_second(void *argument)
{
    second = fresh(backend);
    high = task(second, 5, answers, 0);
    IS(HS_OK, hs_exec_interrupt_new(second, "bell", HS_EXEC_SOFTWARE, -1, on_bell, &high, &bell));
    IS(HS_OK, hs_exec_task_start(high));
    pthread_barrier_wait(argument);
    CHECK(run(second).stopped == HS_EXEC_ASKED);
    IS(HS_OK, hs_exec_free(second));
    return NULL;
}

// Two threads, each with an executive of its own; interrupts go both ways.
static void two_at_once(void)
{
    pthread_t thread;
    pthread_barrier_t made;
    CHECK(!pthread_barrier_init(&made, NULL, 2));
    exec = fresh(backend);
    low = task(exec, 5, asks, 0);
    IS(HS_OK, hs_exec_interrupt_new(exec, "answer", HS_EXEC_SOFTWARE, -1, on_bell, &low, &interrupt));
    CHECK(!pthread_create(&thread, NULL, make_second, &made));
    pthread_barrier_wait(&made);
    IS(HS_OK, hs_exec_task_start(low));
    CHECK(run(exec).stopped == HS_EXEC_ASKED);
    CHECK(!pthread_join(thread, NULL) && seen == 20);
    IS(HS_OK, hs_exec_free(exec));
}

// ---- the table ----

struct misfortune {
    const char *name;
    void (*scenario)(void);
    // The exit status, or the negative number of the signal.
    int end;
    // In what it says, on fibers; NULL: nothing is said of it.
    const char *sentence;
    int on_threads;
    // It leaves a stack without a word, which AddressSanitizer takes for an overflow, or limits memory: not tried under a sanitizer.
    int jumps;
};

static const struct misfortune MISFORTUNES[] = {
    { "returns as an owner", returning, 99, NULL, 1, 0 },
    { "exits", exiting, 7, "good bye", 1, 0 },
    { "overflows its stack", overflowing, -SIGSEGV, "has overflowed its stack of 65536 bytes", 1, 0 },
    { "overflows a stack of its own size", overflowing_its_own, -SIGSEGV, "has overflowed its stack of 262144 bytes", 1, 0 },
    // A sanitizer itself has more than the limit.
    { "asks for too large a stack", asking_for_too_much, 99, NULL, 1, 1 },
    { "goes on after its kill", going_on, -SIGABRT, "must return from its function", 1, 0 },
    { "ends its thread", ending_its_thread, -SIGABRT, NULL, 1, 0 },
    { "jumps inside its function", jumping_inside, 99, NULL, 1, 0 },
    // Between threads C itself leaves jumps undefined.
    { "jumps out of its function", jumping_out, 99, NULL, 0, 1 },
    { "jumps into another task", jumping_into_another, -SIGABRT, "after a jump from another", 0, 1 },
    { "is cancelled", cancelling, 99, NULL, 1, 0 },
    { "outlives its thread", orphaned, 99, NULL, 1, 0 },
    { "forks in a task", forking_inside, 99, "in the child of a fork", 1, 0 },
    { "forks between runs", forking_outside, 99, NULL, 1, 0 },
    { "makes another executive", one_makes_another, 99, NULL, 1, 0 },
    { "is one of two", two_at_once, 99, NULL, 1, 0 },
};

int main(int count, char **arguments)
{
    static char said[65536];
    (void)arguments;
    CHECK(count <= 2);
    for (size_t number = 0; number < sizeof MISFORTUNES / sizeof *MISFORTUNES; number++) {
        const struct misfortune *one = &MISFORTUNES[number];
        if (one->jumps && !JUMPS)
            continue;
        for (int threads = !FIBERS; threads <= one->on_threads; threads++) {
            backend = threads ? HS_EXEC_THREADS_UP : HS_EXEC_FIBERS;
            int status = child(one->scenario, said, sizeof said);
            int end = WIFSIGNALED(status) ? -WTERMSIG(status) : WEXITSTATUS(status);
            int told = !one->sentence || (threads && one->end == -SIGSEGV) || strstr(said, one->sentence);
            if (end != one->end || !told)
                fprintf(stderr, "%s, on %s: ended with %d, not %d: %s\n", one->name, threads ? "threads" : "fibers", end, one->end, said);
            CHECK(end == one->end && told);
        }
    }
    printf("checks %d\n", checks);
    return 0;
}
