// A bottling station: the last step of a port from AMX 86. The book's page "Porting from AMX" goes through it.
//
//     bottling [sim|fibers|threads]
#include "try.h"
#include <hairspring_exec.h>
#include <string.h>

enum { BOTTLES = 4, LEAKING = 3, FULL_GRAMS = 20 };
static const int64_t MS = 1000000;

static hs_exec_task filler, writer;
static hs_exec_timer belt, scale;
// The scale's procedure and the filler share these; a procedure never runs in the middle of a task's access on one CPU, and on several both are atomic.
static int current, valve, grams;
static int brought, written;

#define GET(variable) __atomic_load_n(&(variable), __ATOMIC_SEQ_CST)
#define SET(variable, value) __atomic_store_n(&(variable), (value), __ATOMIC_SEQ_CST)

static void weigh(void *argument, const hs_exec_expiry *expiry)
{
    (void)argument;
    if (!GET(valve) || GET(current) == LEAKING)
        return;
    // Periods without a run of their own are told, so none is missing in the weight.
    int before = GET(grams), after = before + 1 + (int)expiry->missed;
    SET(grams, after);
    if (before < FULL_GRAMS && after >= FULL_GRAMS)
        TRY(hs_exec_wake(filler));
}

static void bring(void *argument, const hs_exec_expiry *expiry)
{
    hs_exec_message bottle = { .words = { (uint64_t)++brought } };
    (void)argument, (void)expiry;
    TRY(hs_exec_send(filler, 0, &bottle));
    if (brought == BOTTLES)
        TRY(hs_exec_timer_stop(belt));
}

static void fill(void *argument, const hs_exec_message *bottle)
{
    hs_exec_message report = { .words = { bottle->words[0] } };
    (void)argument;
    SET(current, (int)bottle->words[0]);
    SET(grams, 0);
    // HS_E_KILLED from a wait is the end of the run: close the valve and return.
    if (hs_exec_delay_ns(20 * MS) != HS_OK)
        return;
    SET(valve, 1);
    int ended = hs_exec_wait(500 * MS);
    SET(valve, 0);
    if (ended != HS_OK && ended != HS_E_TIMED_OUT)
        return;
    report.words[1] = ended == HS_OK;
    report.words[2] = (uint64_t)GET(grams);
    TRY(hs_exec_send(writer, 0, &report));
}

static void write_down(void *argument, const hs_exec_message *report)
{
    (void)argument;
    printf("bottle %d %s with %d g\n", (int)report->words[0], report->words[1] ? "full" : "given up", (int)report->words[2]);
    if (++written == BOTTLES)
        TRY(hs_exec_stop());
}

static hs_exec_task task(hs_exec *exec, const char *name, void (*entry)(void *, const hs_exec_message *), int priority)
{
    hs_exec_task made;
    hs_exec_task_options options = { .size = sizeof options, .name = name, .entry = entry, .priority = priority, .mailboxes = { 4, 0, 0, 0 } };
    TRY(hs_exec_task_new(exec, &options, &made));
    return made;
}

int main(int count, char **arguments)
{
    const char *where = count > 1 ? arguments[1] : "sim";
    hs_exec *exec;
    hs_exec_options options = { .size = sizeof options, .backend = HS_EXEC_SIM, .cpu = -1 };
    hs_exec_finish finish = { .size = sizeof finish };
    if (!strcmp(where, "fibers"))
        options.backend = HS_EXEC_FIBERS;
    if (!strcmp(where, "threads"))
        options.backend = HS_EXEC_THREADS_UP;
    TRY(hs_exec_new(&options, &exec));
    filler = task(exec, "filler", fill, 10);
    writer = task(exec, "writer", write_down, 20);
    TRY(hs_exec_timer_new(exec, "scale", weigh, NULL, &scale));
    TRY(hs_exec_timer_new(exec, "belt", bring, NULL, &belt));
    int64_t begin = hs_exec_now_ns();
    TRY(hs_exec_timer_start_periodic_ns(belt, begin + 800 * MS, 800 * MS));
    TRY(hs_exec_timer_start_periodic_ns(scale, begin + 10 * MS, 10 * MS));
    TRY(hs_exec_run(exec, HS_EXEC_FOREVER, &finish));
    const char *text;
    for (size_t index = 0; hs_exec_mishap(exec, index, NULL, &text) == HS_OK; index++)
        fprintf(stderr, "%s\n", text);
    TRY(hs_exec_free(exec));
    return 0;
}
