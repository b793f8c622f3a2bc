// Calibrates the counter, and says how far it can be trusted.
#include "try.h"

int main(void)
{
    hs_timebase *timebase;
    hs_calibration calibration;
    hs_trust trust;
    TRY(hs_calibrate_to(1.0, 1000000000, &timebase)); // to 1 ppm: some 100 ms
    TRY(hs_timebase_calibration(timebase, &calibration));
    TRY(hs_timebase_trust(timebase, &trust));
    printf("frequency_hz %.0f\n", calibration.frequency_hz);
    printf("bound_ppm %.3f\n", calibration.bound_ppm);
    printf("trust %s\n", trust.text);
    TRY(hs_timebase_free(timebase));
    return 0;
}
