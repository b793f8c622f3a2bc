// Opens a shutter for 100 ms, reads a light meter in the middle, and waits exactly for the rest.
//
// The meter takes 20 ms. All that is printed but the first has elapsed; whatever happens, the shutter does not stay open.
#define _GNU_SOURCE
#include "try.h"
#include <time.h>

static const int64_t EXPOSURE_NS = 100000000;

// Stands for the shutter: a line of a parallel port, a socket.
static volatile int shutter_line;

static void shutter(int open)
{
    shutter_line = open;
}

// TRY() ends the program from anywhere.
static void close_shutter(void)
{
    shutter(0);
}

// Stands for the instrument that reads the light, which answers after a time nobody knows beforehand.
static void read_light(void)
{
    nanosleep(&(struct timespec){ .tv_nsec = 20000000 }, NULL);
}

static int64_t between_ns(const hs_instant *earlier, const hs_instant *later)
{
    int64_t difference_ns;
    TRY(hs_difference_ns(later, earlier, &difference_ns));
    return difference_ns;
}

int main(void)
{
    hs_timebase *timebase;
    hs_long_delay *long_delay;
    hs_instant opened, half, end, from, to, over;
    hs_report report;
    TRY(hs_calibrate(&timebase));
    TRY(hs_long_delay_new(timebase, &long_delay));
    if (atexit(close_shutter))
        return 1;

    shutter(1);
    TRY(hs_now_ordered(timebase, &opened));
    half = end = opened;
    half.monotonic_ns += EXPOSURE_NS / 2;
    end.monotonic_ns += EXPOSURE_NS;
    TRY(hs_long_delay_until(long_delay, &half, NULL));
    TRY(hs_now_ordered(timebase, &from));
    read_light();
    TRY(hs_now_ordered(timebase, &to));
    TRY(hs_long_delay_until(long_delay, &end, &report));
    TRY(hs_now_ordered(timebase, &over));
    shutter(0);

    int64_t measured_ns = between_ns(&opened, &over);
    printf("asked_ns %" PRId64 "\n", EXPOSURE_NS);
    printf("measured_exp_time_ns %" PRId64 "\n", measured_ns);
    printf("first_half_ns %" PRId64 "\n", between_ns(&opened, &from));
    printf("reading_ns %" PRId64 "\n", between_ns(&from, &to));
    printf("rest_ns %" PRId64 "\n", between_ns(&to, &over));
    printf("late_ns %" PRId64 "\n", measured_ns - EXPOSURE_NS);
    printf("verdict %s\n", hs_verdict_name(report.verdict));
    TRY(hs_long_delay_free(long_delay));
    TRY(hs_timebase_free(timebase));
    return 0;
}
