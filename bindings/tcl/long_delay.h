// The end of a long delay: rehearsed, then polled. A part of objects.h.
#ifndef LONG_DELAY_H
#define LONG_DELAY_H

// How long before the end of a long delay the rehearsal is, at least and at most: twice what it takes, which is some 40 us when all is cold,
// and more on a slow machine.
#define AHEAD_LEAST_NS INT64_C(100000)
#define AHEAD_MOST_NS INT64_C(500000)
// How late a delay may be without a reason.
#define GAP_NS 1000

// A long delay leaves the caches cold, and it would be some microseconds before Tcl has noticed its end. So the library ends it a little
// earlier, Tcl does then what it is about to do, for nothing, and the rest is polled. A trace on what is rehearsed may run anything, and
// even delete the object, which stays until the delay is over.
static void rehearse(struct object *object, Tcl_Interp *interp)
{
    int64_t start_ns = kernel_clock_ns();
    call_object(object, interp, 3, object->package->nothing);
    Tcl_EvalObjEx(interp, object->package->rehearsal, 0);
    // Learns quickly that it takes longer, for then delays are late, and slowly that it does not.
    int64_t took_ns = kernel_clock_ns() - start_ns;
    if (took_ns > AHEAD_MOST_NS)
        took_ns = AHEAD_MOST_NS;
    object->rehearsal_ns += (took_ns - object->rehearsal_ns) / (took_ns > object->rehearsal_ns ? 2 : 16);
}

static int64_t ahead_ns(const struct object *object)
{
    int64_t ns = 2 * object->rehearsal_ns;
    return ns < AHEAD_LEAST_NS ? AHEAD_LEAST_NS : ns > AHEAD_MOST_NS ? AHEAD_MOST_NS : ns;
}

// The report on a delay in two parts, so much later than asked and than its lead allows: the verdict is on the end, as with every long
// delay. What of its lateness nothing explains was the rehearsal.
static void join(hs_report *report, const hs_report *end, int64_t request_ns, int64_t late_ns, int64_t over_ns)
{
    const hs_report begin = *report;
    *report = *end;
    report->slept_ns += begin.slept_ns;
    report->polled_ns += begin.polled_ns;
    report->window_ns = begin.window_ns;
    report->requested_ns = request_ns;
    report->actual_ns = request_ns + late_ns;
    report->late_ns = late_ns;
    if (over_ns > GAP_NS && report->verdict == HS_VERDICT_CLEAN) {
        report->verdict = HS_VERDICT_UNKNOWN;
        report->gaps[HS_VERDICT_UNKNOWN - HS_VERDICT_INTERRUPTED] =
            (hs_gaps){ .count = 1, .total_ns = over_ns, .longest_ns = over_ns };
    }
}

// It is never early: the rest is what the kernel's clock leaves of the request, counted from when the command came in, when the
// rehearsal is over.
static int long_delay(struct object *object, Tcl_Interp *interp, int64_t start_ns, int64_t request_ns, hs_report *report)
{
    int64_t lead_ns = 0;
    int code = hs_long_delay_lead_ns(object->handle, &lead_ns);
    int64_t early_ns = ahead_ns(object);
    if (request_ns < early_ns || request_ns - early_ns <= lead_ns)
        early_ns = 0;
    if (code == HS_OK)
        code = hs_long_delay_ns(object->handle, request_ns - early_ns, report);
    if (code != HS_OK || early_ns == 0)
        return code;
    hs_report end;
    code = hs_delay_ns(object->timebase->handle, 0, &end);
    rehearse(object, interp);
    int64_t passed_ns = kernel_clock_ns() - start_ns;
    int64_t rest_ns = request_ns - lead_ns - passed_ns;
    if (rest_ns <= 0) {
        end = *report;
        end.slept_ns = end.polled_ns = 0;
    }
    // A short delay goes by the counter; what ends the whole is the kernel's clock.
    while (rest_ns > 0 && code == HS_OK) {
        code = hs_delay_ns(object->timebase->handle, rest_ns, &end);
        passed_ns = kernel_clock_ns() - start_ns;
        rest_ns = request_ns - lead_ns - passed_ns;
    }
    join(report, &end, request_ns, passed_ns - request_ns, passed_ns - request_ns + lead_ns);
    return code;
}

static int long_delay_until_of(struct object *object, Tcl_Interp *interp, hs_instant deadline, hs_report *report)
{
    // Before the machine was started there is no time, and what overflows.
    const int64_t early_ns = ahead_ns(object);
    if (deadline.monotonic_ns < early_ns)
        return hs_long_delay_until(object->handle, &deadline, report);
    int64_t lead_ns = 0;
    hs_instant early = { .monotonic_ns = deadline.monotonic_ns - early_ns, .epoch = deadline.epoch };
    int code = hs_long_delay_lead_ns(object->handle, &lead_ns);
    if (code == HS_OK)
        code = hs_long_delay_until(object->handle, &early, report);
    if (code != HS_OK)
        return code;
    int64_t late_ns = report->late_ns - early_ns;
    int64_t request_ns = report->requested_ns > 0 ? report->requested_ns + early_ns : late_ns < 0 ? -late_ns : 0;
    hs_report end = *report;
    end.slept_ns = end.polled_ns = 0;
    if (late_ns < 0 && lead_ns < -late_ns) {
        deadline.monotonic_ns -= lead_ns;
        hs_delay_until(object->timebase->handle, &early, &end);
        rehearse(object, interp);
        code = hs_delay_until(object->timebase->handle, &deadline, &end);
        late_ns = end.late_ns - lead_ns;
    }
    // What had passed before is nobody's gap.
    join(report, &end, request_ns, late_ns, request_ns > 0 && late_ns > -lead_ns ? late_ns + lead_ns : 0);
    if (request_ns == 0)
        report->actual_ns = 0;
    return code;
}

static int long_delay_us_of(struct object *object, Tcl_Interp *interp, int64_t start_ns, double request_us, hs_report *report)
{
    // What is no time, or more than can be asked for, is the library's to refuse.
    if (!(request_us >= 0 && request_us < 1e15))
        return hs_long_delay_us(object->handle, request_us, report);
    int64_t request_ns = (int64_t)(request_us * 1e3);
    return long_delay(object, interp, start_ns, request_ns + ((double)request_ns < request_us * 1e3), report);
}

#endif
