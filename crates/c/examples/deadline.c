// Works for a time nobody knows beforehand, and is done at a fixed one.
#include "try.h"

int main(void)
{
    hs_timebase *timebase;
    hs_instant start, deadline, done;
    hs_report report;
    int64_t worked_ns, left_ns;
    TRY(hs_calibrate(&timebase));
    TRY(hs_now(timebase, &start));
    deadline = start;
    deadline.monotonic_ns += 10000000;

    volatile double sum = 0;
    for (int term = 1; term <= 100000; term++)
        sum = sum + 1.0 / term;

    TRY(hs_now_ordered(timebase, &done));
    TRY(hs_difference_ns(&done, &start, &worked_ns));
    TRY(hs_difference_ns(&deadline, &done, &left_ns));
    TRY(hs_delay_until(timebase, &deadline, &report));
    printf("worked_ns %" PRId64 "\n", worked_ns);
    printf("left_ns %" PRId64 "\n", left_ns);
    printf("late_ns %" PRId64 "\n", report.late_ns);
    TRY(hs_timebase_free(timebase));
    return 0;
}
