// Ours beside C's own, in turns: beside BLOCKS DELAYS prints one JSON object, as beside.py does.
#define _GNU_SOURCE
#include <hairspring.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

enum { BLOCK = 1000, REQUEST_NS = 10000000 };

static volatile int64_t sink;

static int64_t clock_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return now.tv_sec * INT64_C(1000000000) + now.tv_nsec;
}

__attribute__((noinline)) static void nothing(void)
{
    __asm__ volatile("");
}

static void print(const char *name, const double *samples, int count, const char *end)
{
    printf("\"%s\":[", name);
    for (int n = 0; n < count; n++)
        printf("%s%.3f", n ? "," : "", samples[n]);
    printf("]%s", end);
}

// A block of calls less the loop without one.
#define SAMPLE(call)                                                       \
    ({                                                                     \
        int64_t before = clock_ns();                                       \
        for (int round = 0; round < BLOCK; round++)                        \
            sink = (call);                                                 \
        int64_t between = clock_ns();                                      \
        for (int round = 0; round < BLOCK; round++)                        \
            sink = round;                                                  \
        (double)(2 * between - before - clock_ns()) / BLOCK;               \
    })

int main(int count, char **arguments)
{
    int blocks = count == 3 ? atoi(arguments[1]) : 0, delays = count == 3 ? atoi(arguments[2]) : 0;
    hs_timebase *timebase;
    hs_long_delay *longs, *tuned;
    if (blocks <= 0 || delays <= 0 || hs_calibrate(&timebase) != HS_OK || hs_long_delay_new(timebase, &longs) != HS_OK ||
        hs_long_delay_new(timebase, &tuned) != HS_OK || hs_long_delay_tune(tuned, REQUEST_NS, NULL) != HS_OK) {
        fprintf(stderr, "%s\n", hs_last_error());
        return 1;
    }
    double *now = calloc((size_t)blocks, sizeof *now), *clock = calloc((size_t)blocks, sizeof *clock);
    double *late = calloc((size_t)delays, sizeof *late), *slept = calloc((size_t)delays, sizeof *slept);
    double *exact = calloc((size_t)delays, sizeof *exact), *told = calloc((size_t)delays, sizeof *told);
    double *empty = calloc((size_t)delays, sizeof *empty);
    if (!now || !clock || !late || !slept || !exact || !told || !empty)
        return 1;
    for (int n = 0; n < blocks; n++) {
        now[n] = SAMPLE(hs_now_ns(timebase));
        clock[n] = SAMPLE(clock_ns());
    }
    const struct timespec request = {0, REQUEST_NS};
    for (int n = 0; n < delays; n++) {
        hs_report report;
        int64_t before = clock_ns();
        if (hs_long_delay_ns(longs, REQUEST_NS, &report) != HS_OK)
            return 1;
        late[n] = (double)(clock_ns() - before - REQUEST_NS);
        told[n] = (double)report.late_ns;
        before = clock_ns();
        if (hs_long_delay_ns(tuned, REQUEST_NS, NULL) != HS_OK)
            return 1;
        exact[n] = (double)(clock_ns() - before - REQUEST_NS);
        before = clock_ns();
        nanosleep(&request, NULL);
        slept[n] = (double)(clock_ns() - before - REQUEST_NS);
        nanosleep(&request, NULL);
        before = clock_ns();
        nothing();
        empty[n] = (double)(clock_ns() - before);
        nanosleep(&request, NULL);
    }
    printf("{");
    print("now", now, blocks, ",");
    print("clock", clock, blocks, ",");
    print("told", told, delays, ",");
    print("long", late, delays, ",");
    print("tuned", exact, delays, ",");
    print("empty", empty, delays, ",");
    print("sleep", slept, delays, "}\n");
    hs_long_delay_free(tuned);
    hs_long_delay_free(longs);
    hs_timebase_free(timebase);
    return 0;
}
