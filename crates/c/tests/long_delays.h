// Long delays: what they refuse, their leads, and in two calls. A part of client.c.
#ifndef LONG_DELAYS_H
#define LONG_DELAYS_H

#include "check.h"
#include <math.h>
#include <time.h>

// How late a delay of 1 ms is as its caller sees it.
static int64_t seen_late_ns(hs_long_delay *long_delay)
{
    struct timespec before, after;
    clock_gettime(CLOCK_MONOTONIC, &before);
    IS(HS_OK, hs_long_delay_ns(long_delay, 1000000, NULL));
    clock_gettime(CLOCK_MONOTONIC, &after);
    return (after.tv_sec - before.tv_sec) * INT64_C(1000000000) + after.tv_nsec - before.tv_nsec - 1000000;
}

// A tuned delay is early now and then, a plain one never. Where the machine is disturbed another round is due.
static void tuned(hs_timebase *timebase)
{
    hs_long_delay *plain, *tuned;
    int early = 0;
    IS(HS_OK, hs_long_delay_new(timebase, &plain));
    IS(HS_OK, hs_long_delay_new(timebase, &tuned));
    for (int round = 0; round < 10 && early == 0; round++) {
        int64_t lead_ns = -1, in_force_ns;
        IS(HS_OK, hs_long_delay_tune(tuned, 1000000, &lead_ns));
        IS(HS_OK, hs_long_delay_lead_ns(tuned, &in_force_ns));
        CHECK(lead_ns > 0 && lead_ns == in_force_ns);
        for (int pair = 0; pair < 51; pair++) {
            CHECK(seen_late_ns(plain) >= 0);
            early += seen_late_ns(tuned) < 0;
        }
    }
    CHECK(early > 0);
    IS(HS_OK, hs_long_delay_tune(plain, 0, NULL));
    int64_t lead_ns;
    IS(HS_OK, hs_long_delay_tune(plain, 3000000, &lead_ns));
    CHECK(lead_ns > 0);
    IS(HS_E_NEGATIVE, hs_long_delay_tune(plain, -1, NULL));
    IS(HS_E_RANGE, hs_long_delay_tune(plain, INT64_MAX, NULL));
    IS(HS_OK, hs_long_delay_free(plain));
    IS(HS_OK, hs_long_delay_free(tuned));
}

// Each calibration is an epoch of its own, so a deadline shows by which time base a long delay goes.
static void adopted(hs_timebase *timebase)
{
    hs_long_delay *long_delay;
    hs_timebase *other;
    hs_instant before, after;
    hs_report report;
    int64_t lead_ns, left_ns;
    IS(HS_OK, hs_long_delay_new(timebase, &long_delay));
    IS(HS_OK, hs_long_delay_set_lead_ns(long_delay, 500));
    IS(HS_OK, hs_calibrate(&other));
    IS(HS_OK, hs_now(timebase, &before));
    IS(HS_OK, hs_now(other, &after));
    before.monotonic_ns += 1000000000; // It must not have passed when its delay begins, and valgrind is slow.
    after.monotonic_ns += 3000000;
    IS(HS_E_EPOCH, hs_long_delay_until(long_delay, &after, &report));
    IS(HS_E_HANDLE, hs_long_delay_adopt(long_delay, NULL));
    IS(HS_E_HANDLE, hs_long_delay_adopt(NULL, other));
    // A delay between its two calls goes on by the kernel's clock; one until an instant has no end any more.
    IS(HS_OK, hs_long_delay_begin_until(long_delay, &before, &left_ns));
    IS(HS_OK, hs_long_delay_begin_ns(long_delay, 1000000, -1, &left_ns));
    IS(HS_OK, hs_long_delay_adopt(long_delay, other));
    IS(HS_OK, hs_timebase_free(other));
    IS(HS_OK, hs_long_delay_finish(long_delay, &report));
    IS(HS_E_EPOCH, hs_long_delay_finish(long_delay, &report));
    IS(HS_E_EPOCH, hs_long_delay_until(long_delay, &before, &report));
    IS(HS_OK, hs_long_delay_until(long_delay, &after, &report));
    IS(HS_OK, hs_long_delay_lead_ns(long_delay, &lead_ns));
    CHECK(lead_ns == 500);
    IS(HS_OK, hs_long_delay_free(long_delay));
}

static void long_delays(hs_timebase *timebase)
{
    hs_long_delay *long_delay;
    hs_report report;
    int64_t lead_ns = -1, window_ns;
    IS(HS_OK, hs_long_delay_new(timebase, &long_delay));
    IS(HS_E_NAN, hs_long_delay_us(long_delay, NAN, &report));
    IS(HS_E_NEGATIVE, hs_long_delay_ns(long_delay, -1, &report));
    IS(HS_E_RANGE, hs_long_delay_ns(long_delay, INT64_MAX, &report));
    IS(HS_E_NEGATIVE, hs_long_delay_set_lead_ns(long_delay, -1));
    IS(HS_E_NEGATIVE, hs_long_delay_set_budget_ns(long_delay, -1));
    IS(HS_OK, hs_long_delay_us(long_delay, 20000.0, &report));
    CHECK(report.late_ns >= 0 && report.slept_ns > 0);
    tuned(timebase);
    adopted(timebase);
    IS(HS_OK, hs_long_delay_set_lead_ns(long_delay, 500));
    IS(HS_OK, hs_long_delay_lead_ns(long_delay, &lead_ns));
    CHECK(lead_ns == 500);
    IS(HS_OK, hs_long_delay_set_lead_ns(long_delay, 0));
    IS(HS_OK, hs_long_delay_set_budget_ns(long_delay, 100000));
    IS(HS_OK, hs_long_delay_window_ns(long_delay, 5000000, &window_ns));
    CHECK(window_ns > 0 && window_ns <= 100000);
    hs_instant deadline;
    IS(HS_OK, hs_now(timebase, &deadline));
    deadline.monotonic_ns += 3000000;
    IS(HS_OK, hs_long_delay_until(long_delay, &deadline, &report));
    CHECK(hs_now_ns(timebase) >= deadline.monotonic_ns);
    deadline.epoch ^= 1;
    IS(HS_E_EPOCH, hs_long_delay_until(long_delay, &deadline, &report));
    // In two calls: however long the caller takes between them, it is never early, and its report is on the whole.
    int64_t left_ns = -1;
    IS(HS_E_ORDER, hs_long_delay_finish(long_delay, &report));
    IS(HS_E_NEGATIVE, hs_long_delay_begin_ns(long_delay, -1, -1, &left_ns));
    IS(HS_E_NAN, hs_long_delay_begin_us(long_delay, NAN, -1, &left_ns));
    IS(HS_E_NULL, hs_long_delay_begin_ns(long_delay, 1, -1, NULL));
    IS(HS_E_EPOCH, hs_long_delay_begin_until(long_delay, &deadline, &left_ns));
    CHECK(left_ns == -1);
    IS(HS_E_ORDER, hs_long_delay_finish(long_delay, &report));
    for (int64_t request_ns = 0; request_ns < 8000000; request_ns = request_ns * 3 + 1000) {
        for (int busy_ns = 0; busy_ns <= 1000000; busy_ns += 250000) {
            struct timespec since;
            clock_gettime(CLOCK_MONOTONIC, &since);
            int64_t since_ns = since.tv_sec * INT64_C(1000000000) + since.tv_nsec;
            IS(HS_OK, hs_long_delay_begin_ns(long_delay, request_ns, since_ns, &left_ns));
            CHECK(left_ns >= 0 && left_ns <= request_ns);
            IS(HS_OK, hs_delay_ns(timebase, busy_ns, NULL));
            IS(HS_OK, hs_long_delay_finish(long_delay, &report));
            struct timespec over;
            clock_gettime(CLOCK_MONOTONIC, &over);
            CHECK(over.tv_sec * INT64_C(1000000000) + over.tv_nsec - since_ns >= request_ns);
            CHECK(report.requested_ns == request_ns && report.late_ns >= 0 && report.actual_ns == request_ns + report.late_ns);
            CHECK(report.polled_ns <= report.actual_ns && report.slept_ns <= report.actual_ns);
            // What the caller took beyond the end has made it late, and is not called clean.
            CHECK(left_ns == 0 || report.late_ns >= busy_ns - left_ns);
            CHECK(left_ns == 0 || busy_ns - left_ns < 2000 || report.verdict != HS_VERDICT_CLEAN);
            IS(HS_OK, hs_now(timebase, &deadline));
            deadline.monotonic_ns += request_ns;
            IS(HS_OK, hs_long_delay_begin_until(long_delay, &deadline, &left_ns));
            IS(HS_OK, hs_delay_ns(timebase, busy_ns, NULL));
            IS(HS_OK, hs_long_delay_finish(long_delay, &report));
            CHECK(hs_now_ns(timebase) >= deadline.monotonic_ns && report.late_ns >= 0 && report.requested_ns <= request_ns);
        }
    }
    // What is done for nothing before the end may be such a delay itself.
    int64_t none_ns;
    IS(HS_OK, hs_long_delay_begin_ns(long_delay, 3000000, -1, &left_ns));
    IS(HS_OK, hs_long_delay_begin_ns(long_delay, 0, -1, &none_ns));
    IS(HS_OK, hs_long_delay_finish(long_delay, &report));
    CHECK(none_ns == 0 && report.requested_ns == 0);
    IS(HS_OK, hs_long_delay_finish(long_delay, &report));
    CHECK(report.requested_ns == 3000000 && report.late_ns >= 0);
    IS(HS_E_ORDER, hs_long_delay_finish(long_delay, &report));
    IS(HS_OK, hs_long_delay_cancel(long_delay));
    IS(HS_E_CANCELLED, hs_long_delay_begin_ns(long_delay, 2000000, -1, &left_ns));
    IS(HS_E_CANCELLED, hs_long_delay_ns(long_delay, 2000000, &report));
    IS(HS_OK, hs_long_delay_resume(long_delay));
    IS(HS_OK, hs_long_delay_ns(long_delay, 2000000, &report));
    IS(HS_OK, hs_long_delay_free(long_delay));
}

#endif
