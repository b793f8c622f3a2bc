// What the checks of the executive share: its back-ends, and short ways to make an executive and a task.
#ifndef EXEC_CHECK_H
#define EXEC_CHECK_H

#include "check.h"
#include <hairspring_exec.h>

// ThreadSanitizer knows nothing of switches between stacks.
#ifdef __SANITIZE_THREAD__
static const int BACKENDS[] = { HS_EXEC_THREADS_UP, HS_EXEC_THREADS_SMP };
#else
static const int BACKENDS[] = { HS_EXEC_FIBERS, HS_EXEC_THREADS_UP, HS_EXEC_THREADS_SMP, HS_EXEC_SIM };
#endif
static const int64_t MS = 1000000, PATIENCE = INT64_C(20000000000);

static hs_exec *fresh(int kind)
{
    hs_exec *made;
    hs_exec_options options = { .size = sizeof options, .backend = kind, .cpu = -1 };
    IS(HS_OK, hs_exec_new(&options, &made));
    return made;
}

static hs_exec_task task(hs_exec *of, int priority, void (*entry)(void *, const hs_exec_message *), int room)
{
    hs_exec_task made;
    hs_exec_task_options options = { .size = sizeof options, .name = "t", .entry = entry, .priority = priority };
    options.mailboxes[0] = (uint16_t)room;
    IS(HS_OK, hs_exec_task_new(of, &options, &made));
    return made;
}

static hs_exec_finish run(hs_exec *of)
{
    hs_exec_finish finish = { .size = sizeof finish };
    IS(HS_OK, hs_exec_run(of, PATIENCE, &finish));
    return finish;
}

#endif
