// An exposure of 100 ms with a reading of the light in its middle, whose time is taken from the rest.
#include "try.h"

static const int64_t EXPOSURE_NS = 100000000;

// Stands for the shutter: a line of a parallel port, a socket.
static volatile int shutter_line;

static void shutter(int open)
{
    shutter_line = open;
}

// Stands for the instrument that reads the light, which answers after a time nobody knows beforehand.
static void read_light(const hs_timebase *timebase)
{
    TRY(hs_delay_us(timebase, 3000.0, NULL));
}

int main(void)
{
    hs_timebase *timebase;
    hs_long_delay *long_delay;
    hs_profile *profile;
    hs_instant opened, closed, end, now;
    hs_report report;
    int64_t reading_ns, rest_ns, measured_ns;
    TRY(hs_calibrate(&timebase));
    TRY(hs_long_delay_new(timebase, &long_delay));
    TRY(hs_profile_new(timebase, 1, &profile));

    shutter(1);
    TRY(hs_now_ordered(timebase, &opened));
    end = opened;
    end.monotonic_ns += EXPOSURE_NS;
    TRY(hs_long_delay_ns(long_delay, EXPOSURE_NS / 2, NULL));
    TRY(hs_profile_start(profile));
    read_light(timebase);
    TRY(hs_profile_stop(profile, &reading_ns));
    TRY(hs_now(timebase, &now));
    TRY(hs_difference_ns(&end, &now, &rest_ns));
    TRY(hs_long_delay_until(long_delay, &end, &report));
    TRY(hs_now_ordered(timebase, &closed));
    shutter(0);

    TRY(hs_difference_ns(&closed, &opened, &measured_ns));
    printf("asked_ns %" PRId64 "\n", EXPOSURE_NS);
    printf("measured_exp_time_ns %" PRId64 "\n", measured_ns);
    printf("reading_ns %" PRId64 "\n", reading_ns);
    printf("rest_ns %" PRId64 "\n", rest_ns);
    printf("late_ns %" PRId64 "\n", measured_ns - EXPOSURE_NS);
    printf("verdict %s\n", hs_verdict_name(report.verdict));
    TRY(hs_profile_free(profile));
    TRY(hs_long_delay_free(long_delay));
    TRY(hs_timebase_free(timebase));
    return 0;
}
