// A loop with a period of 2 ms: absolute deadlines do not add up their lateness.
#include "try.h"

enum { CYCLES = 50 };
static const int64_t PERIOD_NS = 2000000;

int main(void)
{
    hs_timebase *timebase;
    hs_long_delay *long_delay;
    hs_instant deadline;
    hs_report report;
    int64_t late_ns[CYCLES];
    int missed = 0;
    TRY(hs_calibrate(&timebase));
    TRY(hs_long_delay_new(timebase, &long_delay));
    TRY(hs_now(timebase, &deadline));
    for (int cycle = 0; cycle < CYCLES; cycle++) {
        deadline.monotonic_ns += PERIOD_NS;
        TRY(hs_long_delay_until(long_delay, &deadline, &report));
        late_ns[cycle] = report.late_ns;
        // A deadline that had passed before the wait began was missed.
        missed += report.slept_ns + report.polled_ns == 0;
    }
    int64_t median = median_ns(late_ns, CYCLES);
    printf("cycles %d\n", CYCLES);
    printf("period_ns %" PRId64 "\n", PERIOD_NS);
    printf("least_late_ns %" PRId64 "\n", late_ns[0]);
    printf("median_late_ns %" PRId64 "\n", median);
    printf("most_late_ns %" PRId64 "\n", late_ns[CYCLES - 1]);
    printf("missed %d\n", missed);
    TRY(hs_long_delay_free(long_delay));
    TRY(hs_timebase_free(timebase));
    return 0;
}
