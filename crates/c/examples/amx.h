// The names that a program in the style of AMX 86 calls, on hs_exec_*: enough of them for bottling_amx.c. A layer like this is the first step of a
// port: the program runs with it nearly as it was. The numbers of the statuses are this layer's own.
#ifndef AMX_H
#define AMX_H

#include "try.h"
#include <hairspring_exec.h>
#include <string.h>

enum { AEROK, AERTMO, AERMBF, AERTNW, AERERR };
enum { AMX_MOST = 16, AMX_TICK_NS = 10000000 };

typedef int AMXID;

// What AMX kept in the tables of a system's configuration.
static hs_exec *amx;
static struct amx_task {
    hs_exec_task task;
    void (*procedure)(int32_t *message);
} amx_tasks[AMX_MOST];
static struct amx_timer {
    hs_exec_timer timer;
    void (*procedure)(AMXID timer, void *argument);
    void *argument;
    int period;
} amx_timers[AMX_MOST];
static int amx_task_count, amx_timer_count;

static int amx_status(int code)
{
    switch (code) {
    case HS_OK: return AEROK;
    case HS_E_TIMED_OUT: return AERTMO;
    case HS_E_FULL: return AERMBF;
    case HS_E_OVERFLOW: return AERTNW;
    default: return AERERR;
    }
}

// ---- set-up: AMX reads it from tables ----

static void amx_begin(int backend)
{
    hs_exec_options options = { .size = sizeof options, .backend = backend, .cpu = -1 };
    TRY(hs_exec_new(&options, &amx));
}

static void amx_run_task(void *argument, const hs_exec_message *message)
{
    const struct amx_task *task = argument;
    // 12 bytes, as in AMX, which are the task's own.
    int32_t copy[3] = { 0 };
    if (message)
        memcpy(copy, message->words, sizeof copy);
    task->procedure(copy);
}

static AMXID amx_task(const char *tag, void (*procedure)(int32_t *), int priority, uint16_t room)
{
    struct amx_task *task = &amx_tasks[amx_task_count++];
    hs_exec_task_options options = { .size = sizeof options, .name = tag, .entry = amx_run_task, .argument = task, .priority = priority };
    options.mailboxes[0] = options.mailboxes[1] = room;
    task->procedure = procedure;
    TRY(hs_exec_task_new(amx, &options, &task->task));
    return amx_task_count;
}

// ---- the calls ----

static inline int ajtrig(AMXID task)
{
    return amx_status(hs_exec_task_start(amx_tasks[task - 1].task));
}

static inline int ajsend(AMXID task, const int32_t *message, int priority)
{
    hs_exec_message copy = { { 0 } };
    memcpy(copy.words, message, 3 * sizeof *message);
    return amx_status(hs_exec_send(amx_tasks[task - 1].task, priority, &copy));
}

static inline int ajwait(void)
{
    return amx_status(hs_exec_wait(HS_EXEC_FOREVER));
}

static inline int ajwatm(int ticks)
{
    return amx_status(hs_exec_wait((int64_t)ticks * AMX_TICK_NS));
}

static inline int ajwake(AMXID task)
{
    return amx_status(hs_exec_wake(amx_tasks[task - 1].task));
}

static inline int ajtkwatm(int ticks)
{
    return amx_status(hs_exec_delay_ns((int64_t)ticks * AMX_TICK_NS));
}

static void amx_run_timer(void *argument, const hs_exec_expiry *expiry)
{
    const struct amx_timer *timer = argument;
    (void)expiry;
    timer->procedure((AMXID)(timer - amx_timers) + 1, timer->argument);
}

static inline int ajtmcre(AMXID *timer, const char *tag, void (*procedure)(AMXID, void *), int period, void *argument)
{
    struct amx_timer *made = &amx_timers[amx_timer_count++];
    *made = (struct amx_timer){ .procedure = procedure, .argument = argument, .period = period };
    *timer = amx_timer_count;
    return amx_status(hs_exec_timer_new(amx, tag, amx_run_timer, made, &made->timer));
}

// The ticks until it expires; 0 stops it.
static inline int ajtmwr(AMXID timer, int ticks)
{
    const struct amx_timer *one = &amx_timers[timer - 1];
    if (ticks == 0)
        return amx_status(hs_exec_timer_stop(one->timer));
    int64_t first = hs_exec_now_ns() + (int64_t)ticks * AMX_TICK_NS;
    if (one->period == 0)
        return amx_status(hs_exec_timer_start_ns(one->timer, first));
    return amx_status(hs_exec_timer_start_periodic_ns(one->timer, first, (int64_t)one->period * AMX_TICK_NS));
}

#endif
