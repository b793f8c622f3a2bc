// By how many percent a delay is longer than asked for, from 1 us to 10 ms.
#include "try.h"

enum { CALLS = 21 };

int main(void)
{
    static const struct {
        const char *name;
        int64_t request_ns;
    } steps[] = { { "1us", 1000 }, { "10us", 10000 }, { "100us", 100000 }, { "1ms", 1000000 }, { "10ms", 10000000 } };
    hs_timebase *timebase;
    hs_report report;
    int64_t late_ns[CALLS];
    TRY(hs_calibrate(&timebase));
    for (size_t step = 0; step < sizeof steps / sizeof *steps; step++) {
        for (int call = 0; call < CALLS; call++) {
            TRY(hs_delay_ns(timebase, steps[step].request_ns, &report));
            late_ns[call] = report.late_ns;
        }
        double percent = 100.0 * (double)median_ns(late_ns, CALLS) / (double)steps[step].request_ns;
        printf("error_at_%s_percent %.6f\n", steps[step].name, percent);
    }
    TRY(hs_timebase_free(timebase));
    return 0;
}
