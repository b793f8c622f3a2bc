// The header as C++ sees it.
#include <hairspring.h>

int main()
{
    hs_timebase *timebase = nullptr;
    hs_report report;
    bool good = hs_calibrate(&timebase) == HS_OK && hs_delay_us(timebase, 5.0, &report) == HS_OK && report.late_ns >= 0;
    return good && hs_timebase_free(timebase) == HS_OK ? 0 : 1;
}
