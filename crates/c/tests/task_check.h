// What the checks of the executive's objects share: the executive, and short ways to start a task, to let it wait and to end it.
#ifndef TASK_CHECK_H
#define TASK_CHECK_H

#include "exec_check.h"

static hs_exec *exec;

// Until the task waits. A wait that never comes ends the test by the limit of the run.
static void until_waits(hs_exec_task task)
{
    hs_exec_task_info info = { .size = sizeof info };
    do {
        IS(HS_OK, hs_exec_delay_ns(MS));
        IS(HS_OK, hs_exec_task_look(task, &info));
    } while (info.state != HS_EXEC_WAITING);
}

static hs_exec_task started(int priority, void (*entry)(void *, const hs_exec_message *))
{
    hs_exec_task made = task(exec, priority, entry, 0);
    IS(HS_OK, hs_exec_task_start(made));
    return made;
}

static void ended(hs_exec_task task, int wanted)
{
    int32_t how;
    IS(HS_OK, hs_exec_task_join(task, PATIENCE, &how));
    // A killed task that is more urgent is idle before the caller joins it.
    CHECK(how == wanted || (wanted == HS_EXEC_KILLED && how == HS_EXEC_RETURNED));
    IS(HS_OK, hs_exec_task_delete(task));
}

#define BODY(name) static void name(void *argument, const hs_exec_message *message)
#define NOTHING (void)argument, (void)message

#endif
