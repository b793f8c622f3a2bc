// Waits at least 50 us by polling, and says how late it was and what disturbed it.
#include "try.h"

int main(void)
{
    hs_timebase *timebase;
    hs_report report;
    TRY(hs_calibrate(&timebase));
    TRY(hs_delay_us(timebase, 50.0, &report));
    printf("asked_ns %" PRId64 "\n", report.requested_ns);
    printf("actual_ns %" PRId64 "\n", report.actual_ns);
    printf("late_ns %" PRId64 "\n", report.late_ns);
    printf("verdict %s\n", hs_verdict_name(report.verdict));
    TRY(hs_timebase_free(timebase));
    return 0;
}
