// The porting layer of Thread-Metric on hs_exec_*, for a checkout of the suite that runs on hosts: it has tm_api.h, and reads TM_TEST_DURATION and
// TM_TEST_CYCLES. Compiled with one of its tests and with what reports; HS_BACKEND is `fibers` or `threads`.
//
// Suspending oneself is hs_exec_task_suspend(), not a wait with a kept wake. Messages have four `unsigned long`, 32 bytes here. The interrupt is software: the
// interrupted thread posts it, and goes on when its handler, and what that readied, have run.
#include <hairspring_exec.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "tm_api.h"

enum { MOST = 16, BLOCK_BYTES = 128, POOL_BYTES = 2048, SECOND_NS = 1000000000 };

static hs_exec *exec;
static hs_exec_task threads[MOST];
static hs_exec_queue *queues[MOST];
static hs_exec_semaphore semaphores[MOST];
static hs_exec_pool *pools[MOST];
static hs_exec_interrupt *interrupt;
static volatile unsigned long handled;

void tm_main(void);
// A test has one of them.
__attribute__((weak)) void tm_interrupt_handler(void);
__attribute__((weak)) void tm_interrupt_preemption_handler(void);

static int done(int code)
{
    return code == HS_OK ? TM_SUCCESS : TM_ERROR;
}

static void must(int code)
{
    if (code != HS_OK) {
        fprintf(stderr, "%s: %s\n", hs_error_name(code), hs_last_error());
        exit(2);
    }
}

static void handles(void *argument, const hs_exec_arrival *arrival)
{
    (void)argument, (void)arrival;
    if (tm_interrupt_preemption_handler)
        tm_interrupt_preemption_handler();
    else if (tm_interrupt_handler)
        tm_interrupt_handler();
    handled++;
}

void tm_initialize(void (*initialize)(void))
{
    const char *backend = getenv("HS_BACKEND");
    hs_exec_options options = { .size = sizeof options, .cpu = -1, .watchdog_ns = -1 };
    options.backend = backend && !strcmp(backend, "threads") ? HS_EXEC_THREADS_UP : HS_EXEC_FIBERS;
    must(hs_exec_new(&options, &exec));
    must(hs_exec_interrupt_new(exec, "interrupt", HS_EXEC_SOFTWARE, -1, handles, NULL, &interrupt));
    // No thread runs before the run.
    initialize();
    must(hs_exec_run(exec, HS_EXEC_FOREVER, NULL));
}

static void runs(void *entry, const hs_exec_message *message)
{
    (void)message;
    ((void (*)(void))entry)();
}

int tm_thread_create(int thread_id, int priority, void (*entry_function)(void))
{
    hs_exec_task_options options = { .size = sizeof options, .entry = runs, .argument = (void *)entry_function, .priority = priority };
    return done(hs_exec_task_new(exec, &options, &threads[thread_id]));
}

int tm_thread_resume(int thread_id)
{
    int told = hs_exec_task_resume(threads[thread_id]);
    return done(told == HS_E_STATE ? hs_exec_task_start(threads[thread_id]) : told);
}

int tm_thread_suspend(int thread_id)
{
    return done(hs_exec_task_suspend(threads[thread_id]));
}

void tm_thread_relinquish(void)
{
    hs_exec_yield();
}

void tm_thread_sleep(int seconds)
{
    hs_exec_delay_ns((int64_t)seconds * SECOND_NS);
}

int tm_queue_create(int queue_id)
{
    return done(hs_exec_queue_new(exec, 10, &queues[queue_id]));
}

int tm_queue_send(int queue_id, unsigned long *message_ptr)
{
    hs_exec_message message;
    memcpy(&message, message_ptr, sizeof message);
    return done(hs_exec_queue_send(queues[queue_id], &message, HS_EXEC_NO_WAIT));
}

int tm_queue_receive(int queue_id, unsigned long *message_ptr)
{
    hs_exec_message message;
    int told = hs_exec_queue_receive(queues[queue_id], HS_EXEC_NO_WAIT, &message);
    memcpy(message_ptr, &message, sizeof message);
    return done(told);
}

int tm_semaphore_create(int semaphore_id)
{
    return done(hs_exec_semaphore_new(exec, 1, 1, &semaphores[semaphore_id]));
}

int tm_semaphore_get(int semaphore_id)
{
    return done(hs_exec_semaphore_wait(semaphores[semaphore_id], HS_EXEC_NO_WAIT));
}

int tm_semaphore_put(int semaphore_id)
{
    return done(hs_exec_semaphore_signal(semaphores[semaphore_id]));
}

int tm_memory_pool_create(int pool_id)
{
    return done(hs_exec_pool_new(exec, POOL_BYTES / BLOCK_BYTES, BLOCK_BYTES, &pools[pool_id]));
}

int tm_memory_pool_allocate(int pool_id, unsigned char **memory_ptr)
{
    void *block;
    int told = hs_exec_pool_take(pools[pool_id], &block);
    *memory_ptr = block;
    return done(told);
}

int tm_memory_pool_deallocate(int pool_id, unsigned char *memory_ptr)
{
    return done(hs_exec_pool_give(pools[pool_id], memory_ptr));
}

void tm_cause_interrupt(void)
{
    unsigned long before = handled;
    must(hs_exec_interrupt_post(interrupt));
    while (handled == before)
        hs_exec_preempt_point();
}

void tm_cause_interrupt_sync(void)
{
    if (tm_interrupt_handler)
        tm_interrupt_handler();
}

void tm_putchar(int c)
{
    putchar(c);
}

int main(void)
{
    setvbuf(stdout, NULL, _IONBF, 0);
    tm_report_init();
    tm_main();
    return 0;
}
