// A client that does everything wrong: what it may not do must come back as an error, never as a crash.
//
// Run as it is, under AddressSanitizer and under valgrind. Prints the number of its checks; the first that does not hold is told with its
// line and ends it. Argument: a folder to write to.
#define _GNU_SOURCE
#include "check.h"
#include "long_delays.h"
#include <inttypes.h>
#include <math.h>
#include <pthread.h>
#include <sched.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static void texts(void)
{
    CHECK(!strcmp(hs_strerror(HS_OK), "no error"));
    CHECK(!strcmp(hs_error_name(HS_E_NAN), "NAN"));
    CHECK(!strcmp(hs_error_name(4711), "UNKNOWN") && strlen(hs_strerror(4711)));
    CHECK(strlen(hs_version()) >= 5);
    CHECK(!strcmp(hs_verdict_name(HS_VERDICT_CLEAN), "clean"));
    CHECK(!strcmp(hs_verdict_name(HS_VERDICT_PREEMPTED), "preempted"));
    CHECK(!strcmp(hs_verdict_name(-1), "") && !strcmp(hs_verdict_name(10), ""));
}

static void numbers(hs_timebase *timebase)
{
    hs_report report = { .late_ns = -77 };
    IS(HS_E_NEGATIVE, hs_delay_ns(timebase, -1, &report));
    IS(HS_E_NEGATIVE, hs_delay_ns(timebase, INT64_MIN, &report));
    IS(HS_E_TOO_LONG_TO_POLL, hs_delay_ns(timebase, 100000001, &report));
    IS(HS_E_RANGE, hs_delay_ns(timebase, INT64_MAX, &report));
    IS(HS_E_NAN, hs_delay_us(timebase, NAN, &report));
    IS(HS_E_NEGATIVE, hs_delay_us(timebase, -0.001, &report));
    IS(HS_E_RANGE, hs_delay_us(timebase, INFINITY, &report));
    IS(HS_E_NEGATIVE, hs_delay_us(timebase, -INFINITY, &report));
    IS(HS_E_RANGE, hs_delay_us(timebase, 1e300, &report));
    IS(HS_E_NEGATIVE, hs_delay_polling_ns(timebase, 1000, -1, &report));
    CHECK(report.late_ns == -77);
    CHECK(strstr(hs_last_error(), "negative"));
    IS(HS_OK, hs_delay_us(timebase, 0.0, &report));
    IS(HS_OK, hs_delay_us(timebase, 10.5, NULL));
    int64_t before = hs_now_ns(timebase);
    IS(HS_OK, hs_delay_ns(timebase, 20000, &report));
    int64_t after = hs_now_ns(timebase);
    CHECK(report.requested_ns == 20000 && report.late_ns >= 0 && report.actual_ns == 20000 + report.late_ns);
    CHECK(after - before >= 20000);
    // Longer than valgrind takes for the code of it.
    IS(HS_OK, hs_delay_polling_ns(timebase, 50000000, 100000, &report));
    CHECK(report.late_ns >= 0 && report.budget_spent && report.slept_ns > 0);
    hs_timebase *other = NULL;
    IS(HS_E_NAN, hs_calibrate_to(NAN, 0, &other));
    IS(HS_E_NEGATIVE, hs_calibrate_to(-1.0, 0, &other));
    IS(HS_E_NEGATIVE, hs_calibrate_to(1.0, -1, &other));
    CHECK(other == NULL);
    IS(HS_OK, hs_calibrate_to(1e9, 0, &other));
    IS(HS_OK, hs_timebase_free(other));
}

static void instants(hs_timebase *timebase)
{
    hs_instant earlier, later;
    hs_report report;
    int64_t difference_ns, bound_ns;
    IS(HS_OK, hs_now(timebase, &earlier));
    IS(HS_OK, hs_now_ordered(timebase, &later));
    IS(HS_OK, hs_difference_ns(&later, &earlier, &difference_ns));
    CHECK(difference_ns > -1000); // The first of the two is unordered.
    later = earlier;
    later.monotonic_ns += 100000;
    IS(HS_OK, hs_delay_until(timebase, &later, &report));
    CHECK(report.late_ns >= 0 && hs_now_ns(timebase) >= later.monotonic_ns);
    IS(HS_OK, hs_delay_until(timebase, &earlier, &report));
    CHECK(report.late_ns > 0 && report.actual_ns == 0);
    later.monotonic_ns = INT64_MAX;
    IS(HS_E_TOO_LONG_TO_POLL, hs_delay_until(timebase, &later, &report));
    IS(HS_OK, hs_timebase_offset_bound_ns(timebase, &earlier, &bound_ns));
    CHECK(bound_ns > 0);
    later.epoch++;
    IS(HS_E_EPOCH, hs_delay_until(timebase, &later, &report));
    IS(HS_E_EPOCH, hs_difference_ns(&later, &earlier, &difference_ns));
    IS(HS_E_EPOCH, hs_timebase_offset_bound_ns(timebase, &later, &bound_ns));
}

static void nulls(hs_timebase *timebase)
{
    hs_instant now;
    hs_report report;
    int64_t number;
    IS(HS_E_NULL, hs_calibrate(NULL));
    IS(HS_E_NULL, hs_now(timebase, NULL));
    IS(HS_E_NULL, hs_difference_ns(NULL, NULL, &number));
    IS(HS_E_NULL, hs_delay_until(timebase, NULL, &report));
    IS(HS_E_NULL, hs_timebase_trust(timebase, NULL));
    IS(HS_E_NULL, hs_timebase_refine(timebase, NULL, NULL));
    IS(HS_E_NULL, hs_sheet_read(NULL, NULL));
    IS(HS_E_NULL, hs_real_time_apply(NULL, NULL, NULL));
    IS(HS_E_NULL, hs_now(timebase, (hs_instant *)((char *)&now + 1)));
    IS(HS_E_HANDLE, hs_now(NULL, &now));
    IS(HS_E_HANDLE, hs_delay_ns(NULL, 1, &report));
    IS(HS_E_HANDLE, hs_long_delay_ns(NULL, 1, &report));
    IS(HS_E_HANDLE, hs_profile_start(NULL));
    IS(HS_E_HANDLE, hs_window_read_u32(NULL, 0, &(uint32_t){ 0 }));
    CHECK(hs_now_ns(NULL) == HS_ABSENT_NS && isnan(hs_now_us(NULL)));
    IS(HS_OK, hs_timebase_free(NULL));
    IS(HS_OK, hs_long_delay_free(NULL));
    IS(HS_OK, hs_profile_free(NULL));
    IS(HS_OK, hs_real_time_free(NULL));
    IS(HS_OK, hs_window_free(NULL));
    IS(HS_OK, hs_sheet_free(NULL));
}

static void strangers(hs_timebase *timebase)
{
    hs_profile *profile;
    hs_long_delay *long_delay;
    hs_report report;
    uint64_t garbage[32] = { 1, 2, 3 };
    IS(HS_OK, hs_profile_new(timebase, 1, &profile));
    IS(HS_OK, hs_long_delay_new(timebase, &long_delay));
    IS(HS_E_HANDLE, hs_delay_ns((hs_timebase *)profile, 1, &report));
    IS(HS_E_HANDLE, hs_profile_start((hs_profile *)timebase));
    IS(HS_E_HANDLE, hs_long_delay_ns((hs_long_delay *)profile, 1, &report));
    IS(HS_E_HANDLE, hs_timebase_free((hs_timebase *)profile));
    IS(HS_E_HANDLE, hs_timebase_free((hs_timebase *)garbage));
    IS(HS_E_HANDLE, hs_delay_ns((hs_timebase *)((char *)timebase + 4), 1, &report));
    CHECK(hs_now_ns((hs_timebase *)garbage) == HS_ABSENT_NS);
    IS(HS_OK, hs_profile_free(profile));
    IS(HS_OK, hs_long_delay_free(long_delay));
    IS(HS_E_FREED, hs_profile_start(profile));
    IS(HS_E_FREED, hs_profile_free(profile));
    IS(HS_E_FREED, hs_long_delay_ns(long_delay, 1, &report));
    CHECK(strstr(hs_last_error(), "freed"));
    hs_timebase *other;
    IS(HS_OK, hs_calibrate(&other));
    IS(HS_OK, hs_long_delay_new(other, &long_delay));
    IS(HS_OK, hs_timebase_free(other));
    CHECK(hs_now_ns(other) == HS_ABSENT_NS);
    // What was made from a time base outlives it.
    IS(HS_OK, hs_long_delay_ns(long_delay, 1000000, &report));
    CHECK(report.late_ns >= 0);
    // Many more handles than are remembered.
    for (int n = 0; n < 3000; n++) {
        hs_window *window;
        IS(HS_OK, hs_window_open("/proc/self/exe", 0, &window));
        IS(HS_OK, hs_window_free(window));
        IS(HS_E_FREED, hs_window_free(window));
    }
    IS(HS_OK, hs_long_delay_free(long_delay));
}

static void profiles(hs_timebase *timebase)
{
    hs_profile *profile;
    hs_summary summary;
    int64_t span_ns;
    IS(HS_OK, hs_profile_new(timebase, 0, &profile));
    IS(HS_OK, hs_profile_summary(profile, &summary));
    CHECK(summary.count == 0 && summary.first_ns == HS_ABSENT_NS && summary.median_ns == HS_ABSENT_NS);
    IS(HS_E_ORDER, hs_profile_stop(profile, &span_ns));
    for (int n = 0; n < 5; n++) {
        IS(HS_OK, hs_profile_start(profile));
        IS(HS_OK, hs_delay_ns(timebase, 20000, NULL));
        IS(HS_OK, hs_profile_stop(profile, &span_ns));
        CHECK(span_ns >= 20000);
    }
    IS(HS_E_ORDER, hs_profile_stop(profile, NULL));
    // A span within a span ends first, and is not longer.
    int64_t inner_ns, outer_ns;
    IS(HS_OK, hs_profile_start(profile));
    IS(HS_OK, hs_profile_start(profile));
    IS(HS_OK, hs_delay_ns(timebase, 20000, NULL));
    IS(HS_OK, hs_profile_stop(profile, &inner_ns));
    IS(HS_OK, hs_profile_stop(profile, &outer_ns));
    CHECK(inner_ns >= 20000 && outer_ns >= inner_ns);
    // Of what is too deep the outermost is forgotten.
    hs_profile *deep;
    IS(HS_OK, hs_profile_new(timebase, 0, &deep));
    for (int n = 0; n < 17; n++)
        IS(HS_OK, hs_profile_start(deep));
    for (int n = 0; n < 16; n++)
        IS(HS_OK, hs_profile_stop(deep, NULL));
    IS(HS_E_ORDER, hs_profile_stop(deep, NULL));
    IS(HS_OK, hs_profile_free(deep));
    IS(HS_OK, hs_profile_summary(profile, &summary));
    CHECK(summary.count == 7 && summary.min_ns >= 20000 && summary.max_ns >= summary.median_ns);
    CHECK(summary.call_cost_ns > 0);
    IS(HS_OK, hs_profile_free(profile));
}

// The first span is kept in ticks, so the rate of the adopted time base converts it.
static void profile_adopts(hs_timebase *timebase)
{
    hs_profile *profile;
    hs_timebase *successor;
    hs_summary before, after;
    hs_calibration old, fresh;
    IS(HS_OK, hs_profile_new(timebase, 1, &profile));
    IS(HS_OK, hs_profile_start(profile));
    IS(HS_OK, hs_delay_ns(timebase, 100000000, NULL));
    IS(HS_OK, hs_profile_stop(profile, NULL));
    IS(HS_OK, hs_profile_summary(profile, &before));
    IS(HS_OK, hs_timebase_refine(timebase, &successor, NULL));
    IS(HS_OK, hs_timebase_calibration(timebase, &old));
    IS(HS_OK, hs_timebase_calibration(successor, &fresh));
    IS(HS_E_HANDLE, hs_profile_adopt(profile, NULL));
    IS(HS_OK, hs_profile_start(profile));
    IS(HS_OK, hs_profile_adopt(profile, successor));
    IS(HS_OK, hs_profile_stop(profile, NULL));
    IS(HS_OK, hs_timebase_free(successor));
    IS(HS_OK, hs_profile_summary(profile, &after));
    CHECK(after.count == 2);
    CHECK(fabs(after.first_ns - before.first_ns * (old.frequency_hz / fresh.frequency_hz)) <= 2);
    IS(HS_OK, hs_profile_free(profile));
}

static void windows(const char *folder)
{
    char path[4096];
    hs_window *window = NULL;
    uint32_t value;
    size_t bytes;
    snprintf(path, sizeof path, "%s/window", folder);
    FILE *file = fopen(path, "w");
    CHECK(file);
    for (uint32_t word = 0; word < 4; word++)
        CHECK(fwrite(&word, sizeof word, 1, file) == 1);
    CHECK(fputc(0, file) == 0); // A last word that is not whole.
    fclose(file);
    IS(HS_E_IO, hs_window_open("/no/such/file", 1, &window));
    IS(HS_E_IO, hs_window_open(folder, 1, &window));
    IS(HS_E_RANGE, hs_window_open("/dev/null", 0, &window));
    IS(HS_E_TEXT, hs_window_open("\xff\xfe", 0, &window));
    IS(HS_E_NULL, hs_window_open(NULL, 0, &window));
    CHECK(window == NULL);
    IS(HS_OK, hs_window_open(path, 1, &window));
    IS(HS_OK, hs_window_bytes(window, &bytes));
    CHECK(bytes == 16);
    IS(HS_OK, hs_window_read_u32(window, 12, &value));
    CHECK(value == 3);
    IS(HS_E_RANGE, hs_window_read_u32(window, 16, &value));
    IS(HS_E_RANGE, hs_window_read_u32(window, 2, &value));
    IS(HS_E_RANGE, hs_window_read_u32(window, SIZE_MAX - 3, &value));
    IS(HS_E_RANGE, hs_window_write_u32(window, 16, 1));
    IS(HS_OK, hs_window_write_u32(window, 8, 0x12345678));
    IS(HS_OK, hs_window_free(window));
    IS(HS_E_FREED, hs_window_read_u32(window, 0, &value));
    IS(HS_OK, hs_window_open(path, 0, &window));
    IS(HS_OK, hs_window_read_u32(window, 8, &value));
    CHECK(value == 0x12345678);
    IS(HS_E_READ_ONLY, hs_window_write_u32(window, 8, 1));
    IS(HS_OK, hs_window_free(window));
    // A file that is cut while it is mapped is an error, not the end of the process.
    for (int writable = 0; writable < 2; writable++) {
        CHECK(!truncate(path, 16));
        IS(HS_OK, hs_window_open(path, writable, &window));
        IS(HS_OK, hs_window_read_u32(window, 8, &value));
        CHECK(!truncate(path, 0));
        IS(HS_E_IO, hs_window_read_u32(window, 8, &value));
        CHECK(strstr(hs_last_error(), "was truncated"));
        IS(writable ? HS_E_IO : HS_E_READ_ONLY, hs_window_write_u32(window, 8, 1));
        IS(HS_OK, hs_window_free(window));
    }
    // A pipe that nobody writes to is an error at once.
    snprintf(path, sizeof path, "%s/pipe", folder);
    CHECK(!mkfifo(path, 0600));
    IS(HS_E_RANGE, hs_window_open(path, 0, &window));
    IS(HS_E_RANGE, hs_window_open(path, 1, &window));
    CHECK(!unlink(path));
}

static void sheets(const char *folder)
{
    char path[4096];
    hs_sheet *sheet = NULL;
    hs_contents contents;
    const char *json;
    hs_row row = { 0 }, found;
    uint32_t absent = 0;
    snprintf(path, sizeof path, "%s/no-sheet", folder);
    FILE *file = fopen(path, "w");
    CHECK(file);
    fputs("{\"schema\": \"something\"}", file);
    fclose(file);
    IS(HS_E_IO, hs_sheet_read("/no/such/file", &sheet));
    IS(HS_E_SHEET, hs_sheet_read(path, &sheet));
    IS(HS_E_TEXT, hs_sheet_read("/proc/self/exe", &sheet));
    setenv("HAIRSPRING", "/no/such/command", 1);
    IS(HS_E_COMMAND, hs_sheet_take(NULL, 1, &sheet));
    CHECK(strstr(hs_last_error(), "/no/such/command"));
    setenv("HAIRSPRING", "false", 1);
    IS(HS_E_COMMAND, hs_sheet_take(NULL, 1, &sheet));
    setenv("HAIRSPRING", "echo", 1);
    IS(HS_E_SHEET, hs_sheet_take("clocks", 1, &sheet));
    CHECK(sheet == NULL);
    IS(HS_OK, hs_sheet_read("sheets/historic/fermilab-2007.json", &sheet));
    IS(HS_OK, hs_sheet_contents(sheet, &contents));
    CHECK(contents.chapters > 0 && contents.rows > 0 && strlen(contents.host));
    IS(HS_OK, hs_sheet_json(sheet, &json));
    CHECK(strstr(json, "hairspring.sheet/1"));
    IS(HS_E_NOT_FOUND, hs_sheet_find(sheet, "no.such.row", &row));
    IS(HS_E_NULL, hs_sheet_find(sheet, NULL, &row));
    IS(HS_E_NOT_FOUND, hs_sheet_row(sheet, contents.rows, &row));
    CHECK(row.id == NULL);
    // No row is naked: a figure has unit, method and number, one that is absent has its reason.
    for (uint32_t index = 0; index < contents.rows; index++) {
        IS(HS_OK, hs_sheet_row(sheet, index, &row));
        IS(HS_OK, hs_sheet_find(sheet, row.id, &found));
        CHECK(found.id == row.id && strlen(row.label));
        CHECK(row.reason ? !row.unit && !row.method && isnan(row.median) : strlen(row.unit) && strlen(row.method) && row.n > 0);
        CHECK(isnan(row.median) || isnan(row.min) || row.min <= row.median);
        absent += row.reason != NULL;
    }
    CHECK(absent == contents.absent && absent > 0);
    IS(HS_OK, hs_sheet_free(sheet));
}

static long locked_kb(void)
{
    char line[256];
    long kb = -1;
    FILE *status = fopen("/proc/self/status", "r");
    CHECK(status != NULL);
    while (kb < 0 && fgets(line, sizeof line, status))
        sscanf(line, "VmLck: %ld", &kb);
    fclose(status);
    return kb;
}

static int writable(const char *path)
{
    return !access(path, W_OK);
}

// What the kernel shows of its limit on idle states; -1 if it shows nothing.
static int idle_us(void)
{
    int most_us = -1;
    FILE *file = fopen("/dev/cpu_dma_latency", "rb");
    if (file) {
        if (fread(&most_us, sizeof most_us, 1, file) != 1)
            most_us = -1;
        fclose(file);
    }
    return most_us;
}

static void *holding(void *argument)
{
    hs_wishes wishes = { .size = sizeof(hs_wishes), .policy = HS_POLICY_FIFO, .priority = 3, .cpu = -1, .lock_memory = true, .slack_ns = 1 };
    hs_grants grants = { .size = sizeof grants };
    IS(HS_OK, hs_real_time_apply(&wishes, argument, &grants));
    return grants.lock_memory == HS_GRANTED ? argument : NULL;
}

// prctl takes five arguments, whether a request uses them or not.
static int timer_slack(void) { return prctl(PR_GET_TIMERSLACK, 0L, 0L, 0L, 0L); }
// Handles are freed in any order; what is in force is the most recent wish of a handle that has not been freed.
static void settings(void)
{
    int slack = timer_slack(), policy = sched_getscheduler(0);
    hs_real_time *handles[3];
    for (int first = 0; first < 3; first++)
        for (int way = 1; way < 3; way++) {
            hs_grants grants = { .size = sizeof grants };
            int held[3] = { 1, 1, 1 }, granted = 1;
            for (int n = 0; n < 3; n++) {
                hs_wishes wishes = { .size = sizeof(hs_wishes), .policy = HS_POLICY_FIFO, .priority = 10 + n, .cpu = -1, .slack_ns = 1000 + n };
                IS(HS_OK, hs_real_time_apply(&wishes, &handles[n], &grants));
                granted &= grants.policy == HS_GRANTED;
            }
            for (int n = 0; n < 3; n++) {
                int freed = (first + n * way) % 3, latest = 2;
                IS(HS_OK, hs_real_time_free(handles[freed]));
                IS(HS_E_FREED, hs_real_time_free(handles[freed]));
                held[freed] = 0;
                while (latest >= 0 && !held[latest])
                    latest--;
                struct sched_param parameters;
                CHECK(!sched_getparam(0, &parameters));
                if (granted && latest >= 0)
                    CHECK(sched_getscheduler(0) == SCHED_FIFO && parameters.sched_priority == 10 + latest);
                else
                    CHECK(timer_slack() == (latest < 0 ? slack : 1000 + latest));
            }
            CHECK(sched_getscheduler(0) == policy && timer_slack() == slack);
        }

    // A thread that ended without freeing: its settings ended with it, but the memory stayed locked, and nobody could free the handle.
    pthread_t id;
    void *locked;
    long before_kb = locked_kb();
    hs_grants grants = { .size = sizeof grants };
    CHECK(!pthread_create(&id, NULL, holding, &handles[0]));
    CHECK(!pthread_join(id, &locked));
#ifndef __SANITIZE_ADDRESS__ // It makes mlockall() do nothing.
    CHECK(!locked || locked_kb() > before_kb);
#endif
    IS(HS_OK, hs_real_time_grants(handles[0], &grants));
    IS(HS_OK, hs_real_time_free(handles[0]));
    IS(HS_E_FREED, hs_real_time_free(handles[0]));
    CHECK(locked_kb() == before_kb && sched_getscheduler(0) == policy && timer_slack() == slack);
}

struct shared {
    hs_timebase *timebase;
    hs_long_delay *long_delay;
    hs_profile *profile;
    hs_real_time *real_time;
    int busy;
};

// Everything that several threads may do at once to the same handles.
static void *thread(void *argument)
{
    struct shared *shared = argument;
    hs_report report;
    hs_grants grants = { .size = sizeof grants };
    for (int n = 0; n < 20; n++) {
        int64_t before = hs_now_ns(shared->timebase);
        IS(HS_OK, hs_delay_ns(shared->timebase, 1000, &report));
        CHECK(hs_now_ns(shared->timebase) - before >= 1000 && report.late_ns >= 0);
        int code = hs_long_delay_ns(shared->long_delay, 1000000, &report);
        CHECK(code == HS_OK || code == HS_E_BUSY);
        if (code == HS_E_BUSY)
            __atomic_fetch_add(&shared->busy, 1, __ATOMIC_RELAXED);
        code = hs_profile_start(shared->profile);
        CHECK(code == HS_OK || code == HS_E_BUSY);
        code = hs_profile_stop(shared->profile, NULL);
        CHECK(code == HS_OK || code == HS_E_BUSY || code == HS_E_ORDER);
    }
    IS(HS_E_THREAD, hs_real_time_grants(shared->real_time, &grants));
    IS(HS_E_THREAD, hs_real_time_free(shared->real_time));
    return NULL;
}

static void *waiting(void *argument)
{
    struct shared *shared = argument;
    int code;
    // The other thread is told that it waits by being refused.
    while ((code = hs_long_delay_ns(shared->long_delay, 60000000000, NULL)) == HS_E_BUSY)
        ;
    IS(HS_E_CANCELLED, code);
    return NULL;
}

static void threads(hs_timebase *timebase)
{
    struct shared shared = { .timebase = timebase };
    hs_wishes wishes = { .size = sizeof(hs_wishes), .policy = HS_POLICY_KEEP, .cpu = -1, .slack_ns = 1 };
    hs_grants grants = { .size = sizeof grants };
    pthread_t ids[4], id;
    IS(HS_OK, hs_long_delay_new(timebase, &shared.long_delay));
    IS(HS_OK, hs_profile_new(timebase, 1, &shared.profile));
    IS(HS_OK, hs_real_time_apply(&wishes, &shared.real_time, &grants));
    CHECK(grants.slack == HS_GRANTED && grants.policy == HS_NOT_ASKED && !grants.refusal);
    for (int n = 0; n < 4; n++)
        CHECK(!pthread_create(&ids[n], NULL, thread, &shared));
    for (int n = 0; n < 4; n++)
        CHECK(!pthread_join(ids[n], NULL));
    CHECK(shared.busy > 0);

    // A delay of a minute in another thread: its handle is busy, cannot be freed, and the delay can be ended.
    CHECK(!pthread_create(&id, NULL, waiting, &shared));
    int64_t lead_ns;
    int code;
    while ((code = hs_long_delay_lead_ns(shared.long_delay, &lead_ns)) == HS_OK)
        usleep(1000); // So that the other has its turn, also where threads run one at a time.
    IS(HS_E_BUSY, code);
    IS(HS_E_BUSY, hs_long_delay_free(shared.long_delay));

    // A child that was made meanwhile has handles that work, and one that stays busy.
    pid_t child = fork();
    if (child == 0) {
        hs_report report;
        hs_timebase *own;
        hs_long_delay *long_delay;
        IS(HS_OK, hs_delay_ns(timebase, 100000, &report));
        CHECK(report.late_ns >= 0 && hs_now_ns(timebase) > 0);
        IS(HS_E_BUSY, hs_long_delay_ns(shared.long_delay, 1000000, &report));
        IS(HS_OK, hs_profile_start(shared.profile));
        IS(HS_OK, hs_profile_stop(shared.profile, NULL));
        IS(HS_OK, hs_calibrate(&own));
        IS(HS_OK, hs_long_delay_new(own, &long_delay));
        IS(HS_OK, hs_long_delay_ns(long_delay, 1000000, &report));
        CHECK(report.late_ns >= 0);
        IS(HS_OK, hs_long_delay_free(long_delay));
        IS(HS_OK, hs_timebase_free(own));
        IS(HS_OK, hs_real_time_free(shared.real_time));
        _exit(0);
    }
    int status;
    CHECK(child > 0 && waitpid(child, &status, 0) == child);
    CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 0);

    IS(HS_OK, hs_long_delay_cancel(shared.long_delay));
    CHECK(!pthread_join(id, NULL));
    IS(HS_OK, hs_real_time_free(shared.real_time));
    IS(HS_OK, hs_profile_free(shared.profile));
    IS(HS_OK, hs_long_delay_free(shared.long_delay));
}

static void real_times(void)
{
    hs_real_time *real_time = NULL;
    hs_grants grants = { .size = sizeof grants };
    hs_wishes wishes = { .size = sizeof(hs_wishes), .policy = 7, .cpu = -1 };
    IS(HS_E_RANGE, hs_real_time_apply(&wishes, &real_time, &grants));
    wishes = (hs_wishes){ .size = sizeof(hs_wishes), .policy = HS_POLICY_FIFO, .priority = 0, .cpu = -1 };
    IS(HS_E_RANGE, hs_real_time_apply(&wishes, &real_time, &grants));
    wishes.priority = 100;
    IS(HS_E_RANGE, hs_real_time_apply(&wishes, &real_time, &grants));
    CHECK(real_time == NULL);
    wishes = (hs_wishes){ .size = sizeof(hs_wishes), .policy = HS_POLICY_KEEP, .cpu = 100000 };
    IS(HS_OK, hs_real_time_apply(&wishes, &real_time, &grants));
    CHECK(grants.cpu == HS_REFUSED && grants.refusal && strlen(grants.refusal));
    IS(HS_OK, hs_real_time_free(real_time));
    IS(HS_E_FREED, hs_real_time_free(real_time));
    // A structure of another header.
    wishes.size -= 8;
    IS(HS_E_RANGE, hs_real_time_apply(&wishes, &real_time, &grants));
    wishes.size += 8;
    grants.size = 0;
    IS(HS_E_RANGE, hs_real_time_apply(&wishes, &real_time, &grants));
    grants.size = sizeof grants;
    // Idle states off, and on again; without the right to it a refusal that says what to do.
    wishes = (hs_wishes){ .size = sizeof(hs_wishes), .cpu = -1, .idle_ns = HS_IDLE_OFF };
    IS(HS_OK, hs_real_time_apply(&wishes, &real_time, &grants));
    CHECK(grants.idle == (writable("/dev/cpu_dma_latency") ? HS_GRANTED : HS_REFUSED));
    CHECK(grants.idle == HS_GRANTED ? idle_us() == 0 : strstr(grants.refusal, "udev") != NULL);
    IS(HS_OK, hs_real_time_free(real_time));
    // A byte that is no boolean, as other languages have it for one: it asks for the lock.
    wishes = (hs_wishes){ .size = sizeof(hs_wishes), .policy = HS_POLICY_KEEP, .cpu = -1 };
    for (int byte = 0; byte < 256; byte += 51) {
        memset((char *)&wishes + offsetof(hs_wishes, lock_memory), byte, 1);
        IS(HS_OK, hs_real_time_apply(&wishes, &real_time, &grants));
        CHECK((grants.lock_memory == HS_NOT_ASKED) == (byte == 0));
        IS(HS_OK, hs_real_time_free(real_time));
    }
}

static void time_bases(hs_timebase *timebase)
{
    hs_timebase *successor;
    hs_continuity continuity;
    hs_calibration calibration, refined;
    hs_trust trust;
    const char *text;
    IS(HS_OK, hs_timebase_calibration(timebase, &calibration));
    CHECK(calibration.frequency_hz > 1e6 && calibration.bound_ppm >= 0 && calibration.baseline_ns >= 4000000);
    IS(HS_OK, hs_timebase_refine(timebase, &successor, &continuity));
    IS(HS_OK, hs_timebase_calibration(successor, &refined));
    CHECK(continuity.kind != HS_CONTINUED || refined.epoch == calibration.epoch);
    IS(HS_OK, hs_timebase_trust(timebase, &trust));
    CHECK(trust.text && trust.reasons > 0);
    for (uint32_t index = 0; index < trust.reasons; index++) {
        IS(HS_OK, hs_timebase_reason(timebase, index, &text));
        CHECK(text[0] == '+' || text[0] == '-');
    }
    IS(HS_E_NOT_FOUND, hs_timebase_reason(timebase, trust.reasons, &text));
    IS(HS_OK, hs_timebase_free(successor));
}

/* valgrind does not always extend the stack for the frame of a signal, so the pages below are mapped before one comes. */
static void touch_stack(void) {
    volatile char below[64 * 1024];
    for (size_t at = 0; at < sizeof below; at += 1024)
        below[at] = 0;
}

int main(int count, char **arguments)
{
    touch_stack();
    hs_timebase *timebase;
    CHECK(count == 2);
    IS(HS_OK, hs_calibrate(&timebase));
    texts();
    time_bases(timebase);
    numbers(timebase);
    instants(timebase);
    nulls(timebase);
    strangers(timebase);
    long_delays(timebase);
    profiles(timebase);
    profile_adopts(timebase);
    windows(arguments[1]);
    sheets(arguments[1]);
    real_times();
    threads(timebase);
    settings();
    IS(HS_OK, hs_timebase_free(timebase));
    printf("checks %d\n", checks);
    return 0;
}
