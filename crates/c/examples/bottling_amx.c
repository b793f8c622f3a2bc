// A bottling station in the style of AMX 86: step one of a port, on the layer of names in amx.h. The book's page "Porting from AMX" goes through it.
#include "amx.h"

enum { BOTTLES = 4, LEAKING = 3, FULL_GRAMS = 20, LIMIT = 50 };

static AMXID starter, filler, writer, belt, scale;
static int brought, current, valve, grams, written;

// Timer Procedure, each tick: the scale under the bottle.
static void weigh(AMXID timer, void *unused)
{
    (void)timer, (void)unused;
    if (valve && current != LEAKING && ++grams == FULL_GRAMS)
        ajwake(filler);
}

// Timer Procedure, each 80 ticks: the belt brings a bottle.
static void bring(AMXID timer, void *unused)
{
    int32_t message[3] = { ++brought, 0, 0 };
    (void)unused;
    ajsend(filler, message, 0);
    if (brought == BOTTLES)
        ajtmwr(timer, 0);
}

// Is triggered once, and starts the timers.
static void start(int32_t *message)
{
    (void)message;
    ajtmwr(belt, 80);
    ajtmwr(scale, 1);
}

// Is started by each bottle. The valve takes two ticks to open.
static void fill(int32_t *message)
{
    int32_t report[3] = { message[0], 0, 0 };
    current = message[0];
    grams = 0;
    ajtkwatm(2);
    valve = 1;
    report[1] = ajwatm(LIMIT) == AEROK;
    valve = 0;
    report[2] = grams;
    ajsend(writer, report, 0);
}

// The least urgent: what was done.
static void write_down(int32_t *report)
{
    printf("bottle %d %s with %d g\n", (int)report[0], report[1] ? "full" : "given up", (int)report[2]);
    if (++written == BOTTLES)
        ajtmwr(scale, 0);
}

int main(void)
{
    amx_begin(HS_EXEC_SIM);
    filler = amx_task("FILL", fill, 10, 4);
    writer = amx_task("WRIT", write_down, 20, 4);
    starter = amx_task("STAR", start, 30, 0);
    ajtmcre(&scale, "SCAL", weigh, 1, NULL);
    ajtmcre(&belt, "BELT", bring, 80, NULL);
    ajtrig(starter);
    TRY(hs_exec_run(amx, HS_EXEC_FOREVER, NULL));
    TRY(hs_exec_free(amx));
    return 0;
}
