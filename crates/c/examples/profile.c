// How long a function takes, call by call.
#include "try.h"

static volatile double sink;

static void function(void)
{
    double sum = 0;
    for (int term = 1; term <= 100; term++)
        sum += 1.0 / term;
    sink = sum;
}

int main(void)
{
    hs_timebase *timebase;
    hs_profile *profile;
    hs_summary summary;
    TRY(hs_calibrate(&timebase));
    TRY(hs_profile_new(timebase, 1, &profile));
    for (int call = 0; call < 1000; call++) {
        TRY(hs_profile_start(profile));
        function();
        TRY(hs_profile_stop(profile, NULL));
    }
    TRY(hs_profile_summary(profile, &summary));
    printf("calls %" PRIu64 "\n", summary.count);
    printf("min_ns %" PRId64 "\n", summary.min_ns);
    printf("median_ns %" PRId64 "\n", summary.median_ns);
    printf("max_ns %" PRId64 "\n", summary.max_ns);
    TRY(hs_profile_free(profile));
    TRY(hs_timebase_free(timebase));
    return 0;
}
