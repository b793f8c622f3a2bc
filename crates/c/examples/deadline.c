// Works, then waits for the rest until a deadline 5 ms after the start.
#include "try.h"

int main(void)
{
    hs_timebase *timebase;
    hs_long_delay *long_delay;
    hs_instant start, deadline, done;
    hs_report report;
    int64_t worked_ns, left_ns;
    TRY(hs_calibrate(&timebase));
    TRY(hs_long_delay_new(timebase, &long_delay));
    TRY(hs_now(timebase, &start));
    deadline = start;
    deadline.monotonic_ns += 5000000;

    volatile double sum = 0;
    for (int term = 1; term <= 10000; term++)
        sum = sum + 1.0 / term;

    TRY(hs_now_ordered(timebase, &done));
    TRY(hs_difference_ns(&done, &start, &worked_ns));
    TRY(hs_difference_ns(&deadline, &done, &left_ns));
    TRY(hs_long_delay_until(long_delay, &deadline, &report));
    printf("worked_ns %" PRId64 "\n", worked_ns);
    printf("left_ns %" PRId64 "\n", left_ns);
    printf("late_ns %" PRId64 "\n", report.late_ns);
    TRY(hs_long_delay_free(long_delay));
    TRY(hs_timebase_free(timebase));
    return 0;
}
