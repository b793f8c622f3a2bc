// The end of a long delay: rehearsed, then polled. A part of objects.h.
#ifndef LONG_DELAY_H
#define LONG_DELAY_H

#include <time.h>

// How long before the end of a long delay the rehearsal is: it takes some 20 us when all is cold.
#define AHEAD_NS INT64_C(100000)

static int64_t kernel_clock_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return now.tv_sec * INT64_C(1000000000) + now.tv_nsec;
}

// A long delay leaves the caches cold, and it would be some microseconds before Tcl has noticed its end. So the library ends it a little
// earlier, Tcl does then what it is about to do, for nothing, and the rest is polled. It is never early: the rest is what the kernel's
// clock leaves of the request when the rehearsal is over. A trace on what is rehearsed may run anything, and even delete the object,
// whose handle is not used after that.
static int long_delay(struct object *object, Tcl_Interp *interp, int64_t request_ns, hs_report *report)
{
    int64_t lead_ns = 0;
    int code = hs_long_delay_lead_ns(object->handle, &lead_ns);
    int64_t start_ns = kernel_clock_ns();
    int64_t early_ns = request_ns > AHEAD_NS && request_ns - AHEAD_NS > lead_ns ? AHEAD_NS : 0;
    if (code == HS_OK)
        code = hs_long_delay_ns(object->handle, request_ns - early_ns, report);
    if (code != HS_OK || early_ns == 0)
        return code;
    hs_report *end, *rehearsed;
    Tcl_Obj *value = new_report(&rehearsed);
    Tcl_EvalObjEx(interp, object->package->rehearsal, 0);
    return_report(interp, HS_OK, value);
    value = new_report(&end);
    int64_t passed_ns = kernel_clock_ns() - start_ns;
    int64_t rest_ns = request_ns - lead_ns - passed_ns;
    if (rest_ns > 0) {
        code = hs_delay_ns(object->poller, rest_ns, end);
        // The verdict is on the end, as with every long delay.
        end->slept_ns = report->slept_ns + end->slept_ns;
        end->polled_ns = report->polled_ns + end->polled_ns;
        end->window_ns = report->window_ns;
        *report = *end;
        passed_ns += report->actual_ns;
    }
    report->requested_ns = request_ns;
    report->actual_ns = passed_ns;
    report->late_ns = passed_ns - request_ns;
    Tcl_DecrRefCount(value);
    return code;
}

static int long_delay_us_of(struct object *object, Tcl_Interp *interp, double request_us, hs_report *report)
{
    // What is no time, or more than can be asked for, is the library's to refuse.
    if (!(request_us >= 0 && request_us < 1e15))
        return hs_long_delay_us(object->handle, request_us, report);
    int64_t request_ns = (int64_t)(request_us * 1e3);
    return long_delay(object, interp, request_ns + ((double)request_ns < request_us * 1e3), report);
}

#endif
