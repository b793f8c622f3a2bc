// A program in C on hairspring.dll, for the tests: time, delays that are never early by QueryPerformanceCounter, errors at the
// door, a mapped file, and a sheet taken by the command beside it. Its argument names a file that it may make and remove.

#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <windows.h>

#include "hairspring.h"

static int failures, checks;

static void check(int holds, int line, const char *what) {
    checks++;
    if (!holds) {
        failures++;
        printf("line %d: not so: %s (%s)\n", line, what, hs_last_error());
    }
}
#define CHECK(what) check((what), __LINE__, #what)

// The reference, and its step.
static int64_t clock_ns(void) {
    LARGE_INTEGER count, rate;
    QueryPerformanceCounter(&count);
    QueryPerformanceFrequency(&rate);
    return (int64_t)((__int128)count.QuadPart * 1000000000 / rate.QuadPart);
}

static int64_t step_ns(void) {
    LARGE_INTEGER rate;
    QueryPerformanceFrequency(&rate);
    return 1000000000 / rate.QuadPart + 1;
}

static void time_and_delays(hs_timebase *timebase) {
    const int64_t step = step_ns();
    for (int i = 0; i < 10000; i++) {
        hs_instant now;
        int64_t bound;
        const int64_t before = clock_ns();
        CHECK(hs_now_ordered(timebase, &now) == HS_OK);
        const int64_t after = clock_ns();
        CHECK(hs_timebase_offset_bound_ns(timebase, &now, &bound) == HS_OK);
        CHECK(before - bound - step <= now.monotonic_ns && now.monotonic_ns <= after + bound + step);
    }
    const double first_us = hs_now_us(timebase);
    CHECK(fabs((double)hs_now_ns(timebase) / 1e3 - first_us) < 1e6);
    for (int64_t request = 0; request < 40000; request += 13) {
        hs_report report;
        const int64_t before = clock_ns();
        CHECK(hs_delay_ns(timebase, request, &report) == HS_OK);
        // Each of the two readings is cut to a step.
        CHECK(clock_ns() - before + step >= request);
        CHECK(report.requested_ns == request && report.late_ns >= 0 && report.actual_ns >= request);
    }
    CHECK(hs_delay_us(timebase, 12.5, NULL) == HS_OK);

    hs_long_delay *slow;
    CHECK(hs_long_delay_new(timebase, &slow) == HS_OK);
    for (int64_t request = 0; request < 12000000; request += 777777) {
        hs_report report;
        const int64_t before = clock_ns();
        CHECK(hs_long_delay_ns(slow, request, &report) == HS_OK);
        CHECK(clock_ns() - before >= request && report.late_ns >= 0);
    }
    CHECK(hs_long_delay_free(slow) == HS_OK);
}

static void errors(hs_timebase *timebase) {
    hs_report report;
    hs_timebase *freed;
    CHECK(hs_delay_us(timebase, NAN, &report) == HS_E_NAN);
    CHECK(hs_delay_ns(timebase, -1, &report) == HS_E_NEGATIVE);
    CHECK(hs_delay_us(timebase, 1e6, &report) == HS_E_TOO_LONG_TO_POLL && strlen(hs_last_error()) > 0);
    CHECK(hs_delay_ns(NULL, 1, &report) == HS_E_HANDLE);
    CHECK(hs_calibrate(NULL) == HS_E_NULL);
    CHECK(hs_calibrate(&freed) == HS_OK && hs_timebase_free(freed) == HS_OK);
    CHECK(hs_delay_ns(freed, 1, &report) == HS_E_FREED && hs_now_ns(freed) == HS_ABSENT_NS);
    CHECK(strlen(hs_strerror(HS_E_NAN)) > 0 && strcmp(hs_error_name(HS_E_NAN), "NAN") == 0);
}

static void window(const char *path) {
    uint32_t words[4] = {1, 2, 3, 4}, value = 0;
    FILE *file = fopen(path, "wb");
    CHECK(file != NULL && fwrite(words, sizeof words, 1, file) == 1 && fclose(file) == 0);
    hs_window *window;
    CHECK(hs_window_open(path, 1, &window) == HS_OK);
    CHECK(hs_window_read_u32(window, 8, &value) == HS_OK && value == 3);
    CHECK(hs_window_write_u32(window, 8, 0xfeedu) == HS_OK);
    CHECK(hs_window_read_u32(window, 8, &value) == HS_OK && value == 0xfeedu);
    CHECK(hs_window_read_u32(window, 16, &value) == HS_E_RANGE);
    CHECK(hs_window_free(window) == HS_OK);
    file = fopen(path, "rb");
    CHECK(file != NULL && fread(words, sizeof words, 1, file) == 1 && fclose(file) == 0);
    CHECK(words[2] == 0xfeedu && words[3] == 4);
    CHECK(remove(path) == 0);
}

static void profile_and_settings(hs_timebase *timebase) {
    hs_profile *profile;
    hs_summary summary;
    CHECK(hs_profile_new(timebase, 1, &profile) == HS_OK);
    for (int i = 0; i < 100; i++) {
        CHECK(hs_profile_start(profile) == HS_OK && hs_delay_ns(timebase, 2000, NULL) == HS_OK);
        CHECK(hs_profile_stop(profile, NULL) == HS_OK);
    }
    CHECK(hs_profile_summary(profile, &summary) == HS_OK && summary.count == 100 && summary.min_ns >= 2000);
    CHECK(hs_profile_free(profile) == HS_OK);
    hs_real_time *settings;
    hs_grants grants = { .size = sizeof grants };
    const hs_wishes wishes = {.size = sizeof(hs_wishes), .policy = HS_POLICY_FIFO, .priority = 50, .cpu = 0, .lock_memory = true};
    CHECK(hs_real_time_apply(&wishes, &settings, &grants) == HS_OK);
    CHECK(grants.cpu == HS_GRANTED && grants.slack == HS_NOT_ASKED);
    // Wine answers that it has set the class, and its host does not schedule by it: that is no grant.
    CHECK(grants.policy == HS_REFUSED && grants.lock_memory == HS_REFUSED && grants.refusal != NULL);
    CHECK(hs_real_time_free(settings) == HS_OK);
}

static void sheet(void) {
    hs_sheet *sheet;
    hs_contents contents;
    hs_row row;
    CHECK(hs_sheet_take("clocks.read.now.later", 1, &sheet) == HS_OK);
    CHECK(hs_sheet_contents(sheet, &contents) == HS_OK && contents.rows == 1 && contents.absent == 0);
    // Less than the empty loop is told as nothing, which happens where the CPUs are busy.
    CHECK(hs_sheet_find(sheet, "clocks.read.now.later", &row) == HS_OK && row.median >= 0 && !strcmp(row.unit, "ns"));
    CHECK(hs_sheet_find(sheet, "clocks.read.nothing", &row) == HS_E_NOT_FOUND);
    CHECK(hs_sheet_free(sheet) == HS_OK);
}

int main(int count, char **words) {
    hs_timebase *timebase;
    if (count < 2 || hs_calibrate_to(1.0, 200000000, &timebase) != HS_OK) {
        printf("no time base: %s\n", hs_last_error());
        return 2;
    }
    CHECK(strlen(hs_version()) > 0);
    time_and_delays(timebase);
    errors(timebase);
    window(words[1]);
    profile_and_settings(timebase);
    sheet();
    CHECK(hs_timebase_free(timebase) == HS_OK);
    printf("%d checks, %d failures\n", checks, failures);
    return failures > 0;
}
