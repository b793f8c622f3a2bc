// Waits 100 ms, asleep for all but the last stretch.
#include "try.h"

int main(void)
{
    hs_timebase *timebase;
    hs_long_delay *long_delay;
    hs_report report;
    TRY(hs_calibrate(&timebase));
    TRY(hs_long_delay_new(timebase, &long_delay)); // learns how late the kernel wakes this thread
    TRY(hs_long_delay_ns(long_delay, 100000000, &report));
    printf("asked_ns %" PRId64 "\n", report.requested_ns);
    printf("actual_ns %" PRId64 "\n", report.actual_ns);
    printf("slept_ns %" PRId64 "\n", report.slept_ns);
    printf("polled_ns %" PRId64 "\n", report.polled_ns);
    printf("late_ns %" PRId64 "\n", report.late_ns);
    printf("verdict %s\n", hs_verdict_name(report.verdict));
    TRY(hs_long_delay_free(long_delay));
    TRY(hs_timebase_free(timebase));
    return 0;
}
