// The porting layer of rtos-benchmark on hs_exec_*, for a checkout of the suite. Compiled with all of its tests and with bench_port.h before each source;
// HS_BACKEND is `fibers` or `threads`. Before the suite's report it prints the mean cost of two stamps, which is in all figures.
//
// A mutex is a resource with inheritance, which nests; malloc is a heap of the executive; the timer's interrupt is an interrupt procedure on a timerfd. A
// service that fails ends the program with a sentence, so a row that is reported has done what the executive says that it did.
#define _GNU_SOURCE
#include <hairspring_exec.h>
#include <stdlib.h>
#include <string.h>
#include <sys/timerfd.h>
#include <time.h>
#include "bench_api.h"

enum { MOST = 4, HEAP_BYTES = 4096, BLOCKS = 8, TICK_NS = 1000000, SECOND_NS = 1000000000 };

static hs_exec *exec;
static struct {
    hs_exec_task task;
    void (*entry)(void *);
    void *argument;
    bool exists, started;
} threads[MOST];
static struct {
    hs_exec_semaphore semaphore;
    bool exists;
} semaphores[MOST];
static hs_exec_resource mutexes[MOST];
static hs_exec_queue *queues[MOST];
static hs_exec_heap *heap;
static int timer = -1;
static uint64_t aborted;

static void must(const char *what, int code)
{
    if (code != HS_OK) {
        fprintf(stderr, "%s: %s: %s\n", what, hs_error_name(code), hs_last_error());
        exit(2);
    }
}

static int done(const char *what, int code)
{
    must(what, code);
    return BENCH_SUCCESS;
}

static bench_time_t clock_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (bench_time_t)now.tv_sec * SECOND_NS + (bench_time_t)now.tv_nsec;
}

// The timer's interrupt.

static void no_handler(void *argument)
{
    (void)argument;
}

static bench_isr_handler_t handler = no_handler;

static void expires(void *argument, const hs_exec_arrival *arrival)
{
    (void)argument, (void)arrival;
    handler(NULL);
}

static void set_timer(bench_time_t due_ns)
{
    struct itimerspec at = { .it_value = { (time_t)(due_ns / SECOND_NS), (long)(due_ns % SECOND_NS) } };
    if (timerfd_settime(timer, TFD_TIMER_ABSTIME, &at, NULL)) {
        perror("timerfd_settime");
        exit(2);
    }
}

bench_isr_handler_t bench_timer_isr_get(void)
{
    return handler;
}

void bench_timer_isr_set(bench_isr_handler_t new_handler)
{
    handler = new_handler;
}

void bench_timer_isr_restore(bench_isr_handler_t old_handler)
{
    set_timer(0);
    handler = old_handler;
}

bench_time_t bench_timer_isr_expiry_set(uint32_t usec)
{
    bench_time_t due_ns = clock_ns() + (bench_time_t)usec * 1000;
    set_timer(due_ns);
    return due_ns;
}

bench_time_t bench_timer_cycles_diff(bench_time_t trigger, bench_time_t sample)
{
    return sample - trigger;
}

bench_time_t bench_timer_cycles_get(void)
{
    return clock_ns();
}

uint32_t bench_timer_cycles_per_second(void)
{
    return SECOND_NS;
}

uint32_t bench_timer_cycles_per_tick(void)
{
    return TICK_NS;
}

// Stamps.

void bench_timing_init(void) {}

void bench_timing_start(void) {}

void bench_timing_stop(void) {}

bench_time_t bench_timing_counter_get(void)
{
    return clock_ns();
}

bench_time_t bench_timing_cycles_get(bench_time_t *time_start, bench_time_t *time_end)
{
    return *time_end - *time_start;
}

bench_time_t bench_timing_cycles_to_ns(bench_time_t cycles)
{
    return cycles;
}

void bench_sync_ticks(void)
{
    int64_t now_ns = hs_exec_now_ns();
    must("delay", hs_exec_delay_until_ns(now_ns - now_ns % TICK_NS + TICK_NS));
}

static void print_stamps(void)
{
    bench_time_t sum_ns = 0;
    for (int turn = 0; turn < ITERATIONS; turn++) {
        bench_time_t start = bench_timing_counter_get(), end = bench_timing_counter_get();
        sum_ns += bench_timing_cycles_get(&start, &end);
    }
    printf("stamps %.1f\n", (double)sum_ns / ITERATIONS);
}

// Threads.

static void runs(void *thread, const hs_exec_message *message)
{
    (void)message;
    size_t id = (size_t)thread;
    threads[id].entry(threads[id].argument);
}

int bench_thread_create(int thread_id, const char *thread_name, int priority, void (*entry_function)(void *), void *args)
{
    // It has ended. Where the suite calls bench_collect_resources() it is deleted there, outside of what is timed.
    if (threads[thread_id].exists)
        must("delete a thread", hs_exec_task_delete(threads[thread_id].task));
    hs_exec_task_options options = { .size = sizeof options, .name = thread_name, .entry = runs, .priority = priority };
    options.argument = (void *)(size_t)thread_id;
    threads[thread_id].entry = entry_function;
    threads[thread_id].argument = args;
    threads[thread_id].exists = true;
    threads[thread_id].started = false;
    return done("create a thread", hs_exec_task_new(exec, &options, &threads[thread_id].task));
}

void bench_thread_start(int thread_id)
{
    threads[thread_id].started = true;
    must("start a thread", hs_exec_task_start(threads[thread_id].task));
}

int bench_thread_spawn(int thread_id, const char *thread_name, int priority, void (*entry_function)(void *), void *args)
{
    bench_thread_create(thread_id, thread_name, priority, entry_function, args);
    bench_thread_start(thread_id);
    return BENCH_SUCCESS;
}

void bench_thread_suspend(int thread_id)
{
    must("suspend a thread", hs_exec_task_suspend(threads[thread_id].task));
}

void bench_thread_resume(int thread_id)
{
    must("resume a thread", hs_exec_task_resume(threads[thread_id].task));
}

void bench_thread_set_priority(int priority)
{
    hs_exec_task self;
    must("find the calling thread", hs_exec_self(&self));
    must("set a priority", hs_exec_task_set_priority(self, priority));
}

// Kills a thread in the middle of its run, and waits until it has returned.
void bench_thread_abort(int thread_id)
{
    must("kill a thread", hs_exec_task_kill(threads[thread_id].task));
    must("join a thread", hs_exec_task_join(threads[thread_id].task, HS_EXEC_FOREVER, NULL));
    aborted++;
}

// The functions of the suite's threads return right after it, which ends them.
void bench_thread_exit(void) {}

void bench_collect_resources(void)
{
    for (size_t id = 0; id < MOST; id++)
        if (threads[id].exists && threads[id].started && hs_exec_task_delete(threads[id].task) == HS_OK)
            threads[id].exists = false;
}

void bench_yield(void)
{
    must("yield", hs_exec_yield());
}

// Objects. An id that is used again is another object.

int bench_sem_create(int sem_id, int initial_count, int maximum_count)
{
    if (semaphores[sem_id].exists)
        must("delete a semaphore", hs_exec_semaphore_delete(semaphores[sem_id].semaphore));
    semaphores[sem_id].exists = true;
    return done("create a semaphore", hs_exec_semaphore_new(exec, (uint32_t)initial_count, (uint32_t)maximum_count, &semaphores[sem_id].semaphore));
}

void bench_sem_give(int sem_id)
{
    int told = hs_exec_semaphore_signal(semaphores[sem_id].semaphore);
    // One at its limit stays there.
    if (told != HS_E_OVERFLOW)
        must("give a semaphore", told);
}

void bench_sem_give_from_isr(int sem_id)
{
    bench_sem_give(sem_id);
}

int bench_sem_take(int sem_id)
{
    return done("take a semaphore", hs_exec_semaphore_wait(semaphores[sem_id].semaphore, HS_EXEC_FOREVER));
}

int bench_mutex_create(int mutex_id)
{
    return done("create a mutex", hs_exec_resource_new(exec, HS_EXEC_PROTOCOL_INHERIT, 0, &mutexes[mutex_id]));
}

int bench_mutex_lock(int mutex_id)
{
    return done("lock a mutex", hs_exec_reserve(mutexes[mutex_id], HS_EXEC_FOREVER));
}

int bench_mutex_unlock(int mutex_id)
{
    return done("unlock a mutex", hs_exec_release(mutexes[mutex_id]));
}

void *bench_malloc(size_t size)
{
    void *block;
    must("allocate", hs_exec_heap_get(heap, size, HS_EXEC_NO_WAIT, &block));
    return block;
}

void bench_free(void *ptr)
{
    must("free", hs_exec_heap_free(heap, ptr));
}

int bench_message_queue_create(int mq_id, const char *mq_name, size_t msg_max_num, size_t msg_max_len)
{
    (void)mq_name;
    if (msg_max_len > sizeof(hs_exec_message))
        return BENCH_ERROR;
    return done("create a queue", hs_exec_queue_new(exec, (uint32_t)msg_max_num, &queues[mq_id]));
}

int bench_message_queue_send(int mq_id, char *msg_ptr, size_t msg_len)
{
    hs_exec_message message = { .words = { 0 } };
    memcpy(&message, msg_ptr, msg_len);
    return done("send", hs_exec_queue_send(queues[mq_id], &message, HS_EXEC_FOREVER));
}

int bench_message_queue_receive(int mq_id, char *msg_ptr, size_t msg_len)
{
    hs_exec_message message;
    must("receive", hs_exec_queue_receive(queues[mq_id], HS_EXEC_FOREVER, &message));
    memcpy(msg_ptr, &message, msg_len);
    return BENCH_SUCCESS;
}

int bench_message_queue_delete(int mq_id, const char *mq_name)
{
    (void)mq_name;
    return done("delete a queue", hs_exec_queue_delete(queues[mq_id]));
}

// The run.

static void runs_the_suite(void *tests, const hs_exec_message *message)
{
    (void)message;
    ((void (*)(void *))tests)(NULL);
    must("stop the run", hs_exec_stop());
}

void bench_test_init(void (*test_init_function)(void *))
{
    const char *backend = getenv("HS_BACKEND");
    hs_exec_options options = { .size = sizeof options, .cpu = -1, .watchdog_ns = -1 };
    options.backend = backend && !strcmp(backend, "threads") ? HS_EXEC_THREADS_UP : HS_EXEC_FIBERS;
    hs_exec_task_options all = { .size = sizeof all, .entry = runs_the_suite, .argument = (void *)test_init_function, .priority = BENCH_LAST_PRIORITY };
    hs_exec_finish finish = { .size = sizeof finish };
    hs_exec_interrupt *interrupt;
    hs_exec_task task;
    // What was reported is to be read also when a test never ends.
    setvbuf(stdout, NULL, _IOLBF, 0);
    print_stamps();
    if ((timer = timerfd_create(CLOCK_MONOTONIC, TFD_NONBLOCK | TFD_CLOEXEC)) < 0) {
        perror("timerfd_create");
        exit(2);
    }
    must("make an executive", hs_exec_new(&options, &exec));
    must("create the heap", hs_exec_heap_new(exec, NULL, HEAP_BYTES, BLOCKS, HS_EXEC_HEAP_ARRIVAL, &heap));
    must("attach the timer", hs_exec_interrupt_new(exec, "timer", HS_EXEC_COUNTER, timer, expires, NULL, &interrupt));
    must("create a task", hs_exec_task_new(exec, &all, &task));
    must("start a task", hs_exec_task_start(task));
    must("run", hs_exec_run(exec, HS_EXEC_FOREVER, &finish));
    // On fibers no system is asked: their order is strict.
    if (options.backend == HS_EXEC_THREADS_UP && !finish.strict) {
        fprintf(stderr, "the system refuses real-time priorities\n");
        exit(2);
    }
    // Each abort is one.
    if (finish.stopped != HS_EXEC_ASKED || finish.mishaps != aborted) {
        fprintf(stderr, "the run ended by %d with %llu mishaps for %llu aborts\n", finish.stopped, (unsigned long long)finish.mishaps,
                (unsigned long long)aborted);
        exit(2);
    }
}
