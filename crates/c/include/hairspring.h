// hairspring.h: exact delays, a calibrated time base, profiles, real-time settings and timing data sheets.
//
// Written by `cargo xtask gen` from crates/c; do not edit.
//
// Conventions
//   * A function that returns `int` returns HS_OK or a negative code, the same in every version; hs_strerror() names
//     it, hs_last_error() has the whole sentence. Where there is an error, nothing is written to where results go.
//   * Names end in their unit: _ns, _us (a double), _ppm, _hz, _bytes.
//   * Handles are opaque; each is given back with the function *_free of its kind. NULL, a handle of another kind, and
//     one of the last 1,024 that were freed are told: an error, not a crash. So is the address of other memory that may
//     be read; one that may not is a crash, as with free().
//   * Where a call takes a `report`, it may be NULL; other results may where their function says so.
//   * A time base may be used by any number of threads. A handle that changes when it is used (long delay, profile,
//     real-time settings) belongs to one call at a time: a second thread gets HS_E_BUSY.
//   * A delay is never early; how late it was is a number in its report.
//   * In the child of a fork all handles go on working; one that was in use at the moment of the fork by another thread
//     stays HS_E_BUSY there.
//   * Nothing unwinds out of the library: a bug in it is HS_E_PANIC.
//   * "Real-time safe" says that a call neither allocates nor locks nor asks the kernel, except for sleep in a delay
//     that sleeps. An error allocates its sentence.


#ifndef HAIRSPRING_H
#define HAIRSPRING_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

// Success.
#define HS_OK 0

// A pointer is NULL that must not be, or is not aligned for its type.
#define HS_E_NULL -1

// Not a handle of this kind: NULL, a handle of another kind, or other memory.
#define HS_E_HANDLE -2

// The handle has been freed.
#define HS_E_FREED -3

// The handle is in use by another call, in another thread.
#define HS_E_BUSY -4

// The handle belongs to another thread, or to the process that forked this one.
#define HS_E_THREAD -5

// The number is NaN.
#define HS_E_NAN -6

// The number is negative.
#define HS_E_NEGATIVE -7

// The number is outside its range; a delay of more than 100 days counts as a mistake.
#define HS_E_RANGE -8

// A delay of more than 100 ms is not polled; use a long delay.
#define HS_E_TOO_LONG_TO_POLL -9

// The instants belong to different epochs or time bases.
#define HS_E_EPOCH -10

// The delay was cancelled, or another task broke off the wait.
#define HS_E_CANCELLED -11

// The counter and the kernel's clock did not advance together.
#define HS_E_CALIBRATION -12

// A file could not be opened, read or mapped.
#define HS_E_IO -13

// A text is not UTF-8.
#define HS_E_TEXT -14

// A file is not a sheet.
#define HS_E_SHEET -15

// The command `hairspring` could not be run, or failed.
#define HS_E_COMMAND -16

// The window is read-only.
#define HS_E_READ_ONLY -17

// A span was ended that had not begun.
#define HS_E_ORDER -18

// Nothing has this name or number.
#define HS_E_NOT_FOUND -19

// The system refused to restore a setting.
#define HS_E_REFUSED -20

// The limit of a wait passed first.
#define HS_E_TIMED_OUT -21

// The calling task has been killed, or the run ends; it must return from its function.
#define HS_E_KILLED -22

// The call is not for this caller: a task, a procedure, or the program around them.
#define HS_E_CALLER -23

// No room: the queue, the envelopes or the ring are full.
#define HS_E_FULL -24

// Nothing to take: no free block, or no sender that waits.
#define HS_E_EMPTY -25

// The task, block or ticker is in another state: idle, in a run, suspended, not in use, not started.
#define HS_E_STATE -26

// A count is at its limit: starts, a kept wake, units, nested reservations.
#define HS_E_OVERFLOW -27

// The wait would never end: what is waited for waits for the caller.
#define HS_E_DEADLOCK -28

// The resource or mutex belongs to another task, or to none.
#define HS_E_NOT_OWNER -29

// A task is more urgent than the ceiling of the resource.
#define HS_E_CEILING -30

// The receiver was killed, or returned, without an acknowledgement.
#define HS_E_NOT_ACKNOWLEDGED -31

// The executive has as many objects of this kind as it may, or the system has no more threads.
#define HS_E_TOO_MANY -32

// A bug in the library; please report it.
#define HS_E_PANIC -99

// The version of the header, first part. hs_version() has that of the library.
#define HS_VERSION_MAJOR 0

// Second part.
#define HS_VERSION_MINOR 1

// Third part.
#define HS_VERSION_PATCH 0

// Stands for an absent time: a figure that was not taken, or a reading through an invalid handle.
#define HS_ABSENT_NS INT64_MIN

// Time is taken from the CPU's counter.
#define HS_SOURCE_COUNTER 0

// Time is taken from the kernel's clock, because the counter is not trusted: right, but slower to read.
#define HS_SOURCE_KERNEL_CLOCK 1

// Same epoch, longer baseline.
#define HS_CONTINUED 0

// Same epoch; the kernel's clock changed its rate, so the baseline begins anew.
#define HS_RERATED 1

// A new epoch: the machine was suspended.
#define HS_SUSPENDED 2

// A new epoch: the kernel's clock and the counter have diverged.
#define HS_STEPPED 3

// A new epoch: the kernel no longer trusts the counter.
#define HS_DISTRUSTED 4

// No disturbance was detected.
#define HS_VERDICT_CLEAN 0

// The thread was moved to another CPU.
#define HS_VERDICT_MIGRATED 1

// The kernel woke the thread after the deadline.
#define HS_VERDICT_OVERSLEPT 2

// The polling budget was spent; the rest was slept out.
#define HS_VERDICT_BUDGET_SPENT 3

// An interrupt.
#define HS_VERDICT_INTERRUPTED 4

// An interrupt or the hypervisor: on a guest the two look alike.
#define HS_VERDICT_INTERRUPTED_OR_STOLEN 5

// The hypervisor.
#define HS_VERDICT_STOLEN 6

// A disturbance of unknown cause.
#define HS_VERDICT_UNKNOWN 7

// The thread was taken off its CPU, or handled a signal.
#define HS_VERDICT_PREEMPTED 8

// The kernel's clock did not run at the rate that the time base knows: refine it.
#define HS_VERDICT_RERATED 9

// The number of causes of gaps. `gaps` of a report has one entry for each, at the verdict's number minus
// HS_VERDICT_INTERRUPTED.
#define HS_CAUSES 5

// Leaves the policy unchanged.
#define HS_POLICY_KEEP 0

// The ordinary policy of the system (SCHED_OTHER).
#define HS_POLICY_OTHER 1

// Runs until it blocks or a higher priority is ready; priority 1 to 99.
#define HS_POLICY_FIFO 2

// As HS_POLICY_FIFO, but round-robin among equal priorities; priority 1 to 99.
#define HS_POLICY_ROUND_ROBIN 3

// In hs_wishes.idle_ns: no idle states at all; CPUs without work poll.
#define HS_IDLE_OFF 1

// The setting was not asked for.
#define HS_NOT_ASKED 0

// It is in force.
#define HS_GRANTED 1

// The system refused it.
#define HS_REFUSED 2

// Delays that sleep first and poll at the end, and learn how late the kernel wakes the thread. One thread at a time.
typedef struct hs_long_delay hs_long_delay;

// The spans of one piece of code. One thread at a time.
typedef struct hs_profile hs_profile;

// Settings in force. The handle belongs to the thread that made it; once that thread has ended, to any thread.
typedef struct hs_real_time hs_real_time;

// A sheet that was read. Never changes; any number of threads may use it.
typedef struct hs_sheet hs_sheet;

// A calibrated time base. Never changes; any number of threads may use it.
typedef struct hs_timebase hs_timebase;

// A mapped file. Any number of threads may use it.
typedef struct hs_window hs_window;

// How a successor continues its predecessor.
typedef struct hs_continuity {
    // HS_CONTINUED to HS_DISTRUSTED.
    int kind;
    // How long the machine was suspended, or by how much the clocks have diverged; otherwise 0.
    int64_t by_ns;
} hs_continuity;

// The calibrated rate.
typedef struct hs_calibration {
    // The rate of the time source.
    double frequency_hz;
    // The largest error against the kernel's clock in parts per million: a hard bound.
    double bound_ppm;
    // The length of the measurement.
    int64_t baseline_ns;
    // The rate of CLOCK_MONOTONIC_RAW against CLOCK_MONOTONIC, in parts per million.
    double discipline_ppm;
    // The wall time of the first calibration,
    int64_t wall_ns;
    // and its CPU time.
    int64_t cpu_ns;
    // The assumed largest distance between the counters of two CPUs.
    int64_t skew_ns;
    // The present epoch.
    uint32_t epoch;
} hs_calibration;

// The verdict on the counter.
typedef struct hs_trust {
    // Whether the counter is trusted and used.
    bool trusted;
    // Whether this is a virtual machine, where the hypervisor can take time away unseen.
    bool guest;
    // HS_SOURCE_…: the time source.
    int source;
    // The number of reasons of hs_timebase_reason().
    uint32_t reasons;
    // A summary in one line; lives as long as the time base.
    const char *text;
} hs_trust;

// A moment on the scale of a time base.
typedef struct hs_instant {
    // The reading of CLOCK_MONOTONIC (on Windows: of the performance counter) that it stands for.
    int64_t monotonic_ns;
    // The epoch: the unbroken stretch of the scale to which it belongs. Instants of different epochs have no
    // difference.
    uint32_t epoch;
} hs_instant;

// Gaps of one cause, in which the thread did not run.
typedef struct hs_gaps {
    // How many gaps,
    uint32_t count;
    // their total length,
    int64_t total_ns;
    // and the length of the longest.
    int64_t longest_ns;
} hs_gaps;

// The report of a delay.
typedef struct hs_report {
    // The requested time.
    int64_t requested_ns;
    // How long it took.
    int64_t actual_ns;
    // Actual minus requested; negative only if a lead was set.
    int64_t late_ns;
    // Time asleep in the kernel.
    int64_t slept_ns;
    // Time spent polling.
    int64_t polled_ns;
    // How long before the deadline polling was planned to begin; 0 for a delay that polls throughout.
    int64_t window_ns;
    // How late after the deadline the kernel woke the thread.
    int64_t overslept_ns;
    // HS_VERDICT_…: the gravest disturbance.
    int verdict;
    // The thread was moved to another CPU.
    bool migrated;
    // The polling budget was spent, and the rest was slept out.
    bool budget_spent;
    // The longest gap looks like the kernel's throttling of real-time threads.
    bool throttled;
    // The kernel's clock did not run at the rate that the time base knows: refine it.
    bool rerated;
    // The gaps by cause: interrupted, interrupted or stolen, stolen, unknown, preempted.
    struct hs_gaps gaps[HS_CAUSES];
} hs_report;

// The figures of a profile; HS_ABSENT_NS for a figure without samples.
typedef struct hs_summary {
    // Spans in all, the first included.
    uint64_t count;
    // The first span, which is longer because caches are cold.
    int64_t first_ns;
    // The shortest of the other spans,
    int64_t min_ns;
    // their median,
    int64_t median_ns;
    // the longest,
    int64_t max_ns;
    // and their arithmetic mean.
    int64_t mean_ns;
    // The median of an empty span between hs_profile_start() and hs_profile_stop(); every figure above contains it.
    int64_t call_cost_ns;
} hs_summary;

// Requests to the system for the calling thread. Zero in all fields except size and cpu requests nothing.
typedef struct hs_wishes {
    // sizeof(struct hs_wishes): by this size a later library recognizes the version of the header.
    size_t size;
    // HS_POLICY_…
    int policy;
    // 1 to 99 with HS_POLICY_FIFO and HS_POLICY_ROUND_ROBIN; else ignored.
    int priority;
    // The CPU to stay on, from 0; negative: any.
    int cpu;
    // Whether to lock the memory of the process; any byte but 0 means yes.
    bool lock_memory;
    // The timer slack, from 1; 0 or negative leaves it unchanged.
    int64_t slack_ns;
    // The longest time that any CPU of the machine may take to leave an idle state, HS_IDLE_OFF or whole microseconds;
    // 0 or negative leaves it unchanged. The limit belongs to the process and ends with it, also after SIGKILL.
    int64_t idle_ns;
} hs_wishes;

// Result of each setting: HS_NOT_ASKED, HS_GRANTED or HS_REFUSED.
typedef struct hs_grants {
    // sizeof(struct hs_grants), set by the caller.
    size_t size;
    // The policy with its priority.
    int policy;
    // The CPU.
    int cpu;
    // The lock of the memory.
    int lock_memory;
    // The timer slack.
    int slack;
    // The limit on idle states.
    int idle;
    // The first refusal with its remedy, NULL if there was none; lives as long as the handle.
    const char *refusal;
} hs_grants;

// The contents of a sheet in numbers.
typedef struct hs_contents {
    // The name of the host; its CPU if the name was left out; or "unknown". Lives as long as the sheet.
    const char *host;
    // Chapters.
    uint32_t chapters;
    // Rows,
    uint32_t rows;
    // and how many of them are absent.
    uint32_t absent;
} hs_contents;

// A row of a sheet: a figure with its unit, its number of samples and their spread, or the reason for its absence.
typedef struct hs_row {
    // Its id, such as "delays.minimum.fifo.2us.late". This and the other texts live as long as the sheet.
    const char *id;
    // Its label, for people.
    const char *label;
    // The unit of all numbers, as in the sheet's JSON: "ns", "bytes_per_s"; NULL if the figure is absent.
    const char *unit;
    // The method of the samples: "stamp", "diff", "rate", "count", "derived"; NULL if the figure is absent.
    const char *method;
    // The number of samples,
    uint64_t n;
    // the minimum; this and the following are NaN if there are too few samples or the figure is absent.
    double min;
    // The first quartile,
    double q1;
    // the median,
    double median;
    // the third quartile,
    double q3;
    // the 99th percentile,
    double p99;
    // and the maximum.
    double max;
    // Why the figure is absent; NULL if it is present.
    const char *reason;
    // How to get it; NULL if nothing helps or the figure is present.
    const char *remedy;
} hs_row;

#ifdef __cplusplus
extern "C" {
#endif // __cplusplus

// The meaning of a code in a few words; never NULL. Lives as long as the process.
const char *hs_strerror(int code);

// The name of a code without `HS_E_`: "NAN" for HS_E_NAN, "UNKNOWN" for an invalid code; never NULL. Lives as long as
// the process.
const char *hs_error_name(int code);

// The sentence of the latest error in the calling thread, with its remedy; "" if there was none; never NULL. The next
// error in this thread overwrites it. It lives as long as the thread.
const char *hs_last_error(void);

// The version of the library, such as "0.1.0". Lives as long as the process.
const char *hs_version(void);

// Calibrates the counter against the kernel's clock. Sleeps 4 to 5 ms; the bound is then about 10 ppm. Free the time
// base with hs_timebase_free(). HS_E_CALIBRATION.
int hs_calibrate(struct hs_timebase **timebase);

// Calibrates until the bound is at most `bound_ppm` (positive), or for `patience_ns` (0 or more), sleeping meanwhile:
// 1 ppm takes about 100 ms. HS_E_NAN, HS_E_NEGATIVE, HS_E_CALIBRATION.
int hs_calibrate_to(double bound_ppm,
                    int64_t patience_ns,
                    struct hs_timebase **timebase);

// Looks at the kernel's clock again and makes a successor with a longer baseline, hence a smaller bound. The successor
// continues the scale without a step. Free each of the two. Takes some 20 us and opens a file; takes 4 to 5 ms if a
// new epoch begins. `continuity` may be NULL.
int hs_timebase_refine(const struct hs_timebase *timebase,
                       struct hs_timebase **successor,
                       struct hs_continuity *continuity);

// Frees a time base; long delays and profiles made from it stay usable. NULL is allowed. HS_E_FREED, HS_E_BUSY.
int hs_timebase_free(struct hs_timebase *timebase);

// Rate of the time base, with its bounds.
int hs_timebase_calibration(const struct hs_timebase *timebase, struct hs_calibration *calibration);

// The verdict on the counter, with its evidence.
int hs_timebase_trust(const struct hs_timebase *timebase, struct hs_trust *trust);

// One piece of evidence, from 0: "+ …" speaks for the counter, "- …" against it. Lives as long as the time base.
// HS_E_NOT_FOUND after the last.
int hs_timebase_reason(const struct hs_timebase *timebase,
                       uint32_t index,
                       const char **text);

// The largest distance of an instant of this time base from the kernel's clock, in nanoseconds. HS_E_EPOCH.
int hs_timebase_offset_bound_ns(const struct hs_timebase *timebase,
                                const struct hs_instant *at,
                                int64_t *offset_bound_ns);

// The time now, on the scale of CLOCK_MONOTONIC: the cheapest call. Real-time safe. HS_ABSENT_NS if the handle is
// invalid; hs_last_error() says why. The result has no epoch, so use hs_now() for differences across a suspend.
int64_t hs_now_ns(const struct hs_timebase *timebase);

// The same in microseconds, for languages without 64-bit integers; exact to a nanosecond for the first 100 days after
// the start of the machine. NaN if the handle is invalid.
double hs_now_us(const struct hs_timebase *timebase);

// The time now as an instant. Real-time safe.
int hs_now(const struct hs_timebase *timebase, struct hs_instant *now);

// The time now, read after every earlier instruction has completed. Real-time safe.
int hs_now_ordered(const struct hs_timebase *timebase, struct hs_instant *now);

// How much later one instant is than another, in nanoseconds; negative if it is earlier. Real-time safe. HS_E_EPOCH.
int hs_difference_ns(const struct hs_instant *later,
                     const struct hs_instant *earlier,
                     int64_t *difference_ns);

// The word for a verdict, such as "clean"; "" for an invalid number; never NULL. Lives as long as the process.
const char *hs_verdict_name(int verdict);

// Waits at least this long (0 to 100,000,000 ns) by polling: never early, late by a poll step unless disturbed. From
// 20 us on, a reading of the kernel's clock confirms the end. Below that, a change of the kernel's rate since the
// calibration can make the delay early by the change times the request, 10 ns at 500 ppm. Real-time safe; uses the
// whole CPU. `report` may be NULL. HS_E_NEGATIVE, HS_E_TOO_LONG_TO_POLL, HS_E_RANGE.
int hs_delay_ns(const struct hs_timebase *timebase,
                int64_t request_ns,
                struct hs_report *report);

// The same in microseconds (0 to 100,000), rounded up to a nanosecond. Also HS_E_NAN.
int hs_delay_us(const struct hs_timebase *timebase, double request_us, struct hs_report *report);

// Waits until an instant, at most 100 ms ahead, by polling; one that has passed returns at once, with its lateness.
// Real-time safe. HS_E_EPOCH, HS_E_TOO_LONG_TO_POLL.
int hs_delay_until(const struct hs_timebase *timebase,
                   const struct hs_instant *deadline,
                   struct hs_report *report);

// Waits at least this long and polls for at most `budget_ns` (0 or more). Then it sleeps for the rest, and the report
// says so. Set a budget above 100 ms to poll for long on purpose. HS_E_NEGATIVE, HS_E_TOO_LONG_TO_POLL, HS_E_RANGE.
int hs_delay_polling_ns(const struct hs_timebase *timebase,
                        int64_t request_ns,
                        int64_t budget_ns,
                        struct hs_report *report);

// Makes a long delay. It learns how late the kernel wakes this thread, by some 10 ms of short sleeps. Free it with
// hs_long_delay_free(); the time base may be freed before.
int hs_long_delay_new(const struct hs_timebase *timebase,
                      struct hs_long_delay **long_delay);

// Lets a long delay use the successor that hs_timebase_refine() made of its time base. Its lead, its budget and what
// it has learned stay. The successor may be freed afterwards. Deadlines of a former epoch are then refused. HS_E_BUSY.
int hs_long_delay_adopt(struct hs_long_delay *long_delay,
                        const struct hs_timebase *successor);

// Gives a long delay back. NULL is allowed. HS_E_FREED, HS_E_BUSY.
int hs_long_delay_free(struct hs_long_delay *long_delay);

// Waits at least this long (0 to 100 days) by the kernel's clock. Sleeps, and polls only the end. Never early without
// a lead. `report` may be NULL. HS_E_NEGATIVE, HS_E_RANGE, HS_E_CANCELLED.
int hs_long_delay_ns(struct hs_long_delay *long_delay,
                     int64_t request_ns,
                     struct hs_report *report);

// The same in microseconds, rounded up to a nanosecond. Also HS_E_NAN.
int hs_long_delay_us(struct hs_long_delay *long_delay, double request_us, struct hs_report *report);

// Waits until an instant of its time base (minus the lead). Returns at once, with the lateness, if the instant has
// passed. HS_E_EPOCH, HS_E_RANGE, HS_E_CANCELLED.
int hs_long_delay_until(struct hs_long_delay *long_delay,
                        const struct hs_instant *deadline,
                        struct hs_report *report);

// Finds the lead with which the median of delays of this length is exact for their caller, and sets it. Delays then
// lie around the target instead of after it. After a longer sleep the thread sees the end later, so a lead is valid
// for its length only. Takes 51 delays; above 20 ms as many as fit into a second, at least 11. `lead_ns` may be NULL.
// HS_E_NEGATIVE, HS_E_RANGE, HS_E_CANCELLED.
int hs_long_delay_tune(struct hs_long_delay *long_delay,
                       int64_t request_ns,
                       int64_t *lead_ns);

// Ends every delay earlier by this lead (0 or more), so delays may be early. 0 makes them guaranteed minima again.
// HS_E_NEGATIVE.
int hs_long_delay_set_lead_ns(struct hs_long_delay *long_delay,
                              int64_t lead_ns);

// The present lead.
int hs_long_delay_lead_ns(const struct hs_long_delay *long_delay, int64_t *lead_ns);

// Limits the CPU time that one delay may spend polling, to 5,000 to 100,000,000 ns; values outside are clamped. The
// default is half of the request, 200 us to 1 ms. HS_E_NEGATIVE.
int hs_long_delay_set_budget_ns(struct hs_long_delay *long_delay,
                                int64_t budget_ns);

// How long before its deadline a delay of this length would now begin to poll. HS_E_NEGATIVE.
int hs_long_delay_window_ns(const struct hs_long_delay *long_delay, int64_t request_ns, int64_t *window_ns);

// Cancels the delay under way, and every delay until hs_long_delay_resume(), with HS_E_CANCELLED. May be called from
// any thread or from a signal handler; it returns a code and leaves hs_last_error() as it is. The delay ends at most
// 100 ms later, or at once if a signal wakes its thread. A delay that already polls ends regularly. HS_E_HANDLE,
// HS_E_FREED.
int hs_long_delay_cancel(const struct hs_long_delay *long_delay);

// Allows delays again after hs_long_delay_cancel(). May be called from any thread or from a signal handler.
int hs_long_delay_resume(const struct hs_long_delay *long_delay);

// Begins a delay of at least this long (0 to 100 days) that hs_long_delay_finish() ends. Sleeps, and returns shortly
// before the end: 100 to 500 us, twice the time that the caller took recently. The caller then rehearses its next
// action without effect, so that its code is in the caches. `left_ns` is the time left, 0 if there is no time to
// rehearse. The delay counts from `since_ns`, a reading of CLOCK_MONOTONIC, or from now if that is negative. Such
// delays nest 16 deep; beyond that the outermost is forgotten. HS_E_NEGATIVE, HS_E_RANGE, HS_E_CANCELLED.
int hs_long_delay_begin_ns(struct hs_long_delay *long_delay,
                           int64_t request_ns,
                           int64_t since_ns,
                           int64_t *left_ns);

// The same in microseconds, rounded up to a nanosecond. HS_E_NAN besides.
int hs_long_delay_begin_us(struct hs_long_delay *long_delay,
                           double request_us,
                           int64_t since_ns,
                           int64_t *left_ns);

// The same until an instant of its time base. Returns at once if the instant has passed. HS_E_EPOCH, HS_E_RANGE,
// HS_E_CANCELLED.
int hs_long_delay_begin_until(struct hs_long_delay *long_delay,
                              const struct hs_instant *deadline,
                              int64_t *left_ns);

// Ends the delay that hs_long_delay_begin_*() began last, and reports on the whole delay. HS_E_ORDER (none has begun).
int hs_long_delay_finish(struct hs_long_delay *long_delay,
                         struct hs_report *report);

// Makes an empty profile: allocates some 300 KiB and measures the cost of its own calls. With `ordered` 0 the CPU may
// move code across the stamps, which is cheaper; otherwise each stamp waits for every earlier instruction. Free it
// with hs_profile_free(); the time base may be freed before.
int hs_profile_new(const struct hs_timebase *timebase,
                   int ordered,
                   struct hs_profile **profile);

// Lets a profile use the successor that hs_timebase_refine() made of its time base. Its rate also converts the spans
// recorded so far. The successor may be freed afterwards. If it takes time from another source, spans under way are
// forgotten. HS_E_BUSY.
int hs_profile_adopt(struct hs_profile *profile,
                     const struct hs_timebase *successor);

// Begins a span. Spans nest 16 deep; beyond that the outermost is forgotten. Real-time safe.
int hs_profile_start(struct hs_profile *profile);

// Ends the span that began last and records it. `span_ns` may be NULL. Real-time safe. HS_E_ORDER (none has begun).
int hs_profile_stop(struct hs_profile *profile,
                    int64_t *span_ns);

// The figures so far.
int hs_profile_summary(const struct hs_profile *profile, struct hs_summary *summary);

// Frees a profile. NULL is allowed. HS_E_FREED, HS_E_BUSY.
int hs_profile_free(struct hs_profile *profile);

// Applies settings to the calling thread until hs_real_time_free(). A refusal is not an error: hs_real_time_grants()
// reports it, and the other settings are applied. Handles can be freed in any order: for each setting, the newest wish
// whose handle is not freed is in force. `grants` may be NULL. HS_E_RANGE (also of a size that is not set),
// HS_E_THREAD (the thread is ending).
int hs_real_time_apply(const struct hs_wishes *wishes,
                       struct hs_real_time **real_time,
                       struct hs_grants *grants);

// Reports which wishes were granted. HS_E_RANGE (the size is not set), HS_E_THREAD (another thread made the handle and
// has not ended).
int hs_real_time_grants(const struct hs_real_time *real_time,
                        struct hs_grants *grants);

// Restores the settings. When a thread has freed all of its handles, its settings are those from before the first.
// When the thread that made the handle has ended, any thread may free it, which releases the memory lock and the limit
// on idle states. NULL is allowed. HS_E_THREAD (another thread made the handle and has not ended), HS_E_REFUSED (the
// system refused to restore a setting; the handle is freed, and the rest restored), HS_E_FREED.
int hs_real_time_free(struct hs_real_time *real_time);

// Maps a whole file of at most a GiB: an ordinary file, or the memory of an enabled PCI card
// (/sys/bus/pci/devices/…/resource0). Writes go to the file. With `writable` 0 the window is read-only. If the file is
// truncated or the card disappears, accesses return HS_E_IO. On Linux a SIGBUS handler does that; the first window
// installs it, and it passes other faults on. A process has at most 256 windows. On Windows no process can truncate a
// mapped file. HS_E_IO, HS_E_RANGE (shorter than a word).
int hs_window_open(const char *path,
                   int writable,
                   struct hs_window **window);

// Its size in bytes; a multiple of the word.
int hs_window_bytes(const struct hs_window *window, size_t *bytes);

// Reads the word at an offset of bytes (a multiple of 4 within the window), by one load, in the byte order of the
// machine. Real-time safe. HS_E_RANGE, HS_E_IO.
int hs_window_read_u32(const struct hs_window *window,
                       size_t offset_bytes,
                       uint32_t *value);

// Writes the word at an offset of bytes (a multiple of 4 within the window), by one store. Real-time safe. HS_E_RANGE,
// HS_E_READ_ONLY, HS_E_IO.
int hs_window_write_u32(const struct hs_window *window,
                        size_t offset_bytes,
                        uint32_t value);

// Frees a window. NULL is allowed. HS_E_FREED, HS_E_BUSY.
int hs_window_free(struct hs_window *window);

// Takes a sheet of this machine. Runs the command `hairspring` (in PATH, or named by the environment variable
// HAIRSPRING) in a process of its own, so that the caller's threads, memory and settings do not disturb it, and waits
// a minute or more. `only` lists the prefixes of the ids to measure, separated by commas, or is NULL for all rows. A
// nonzero `quick` takes a quarter of the time. HS_E_COMMAND, HS_E_SHEET.
int hs_sheet_take(const char *only,
                  int quick,
                  struct hs_sheet **sheet);

// Reads a sheet that was written as JSON. HS_E_IO, HS_E_TEXT, HS_E_SHEET.
int hs_sheet_read(const char *path, struct hs_sheet **sheet);

// The JSON of the sheet, as written; lives as long as the sheet.
int hs_sheet_json(const struct hs_sheet *sheet, const char **json);

// Contents of a sheet.
int hs_sheet_contents(const struct hs_sheet *sheet, struct hs_contents *contents);

// The row with this number, from 0, in reading order. HS_E_NOT_FOUND after the last.
int hs_sheet_row(const struct hs_sheet *sheet, uint32_t index, struct hs_row *row);

// The row with this id. An absent one is found, with its reason. HS_E_NOT_FOUND.
int hs_sheet_find(const struct hs_sheet *sheet, const char *id, struct hs_row *row);

// Frees a sheet. NULL is allowed. HS_E_FREED, HS_E_BUSY.
int hs_sheet_free(struct hs_sheet *sheet);

#ifdef __cplusplus
}  // extern "C"
#endif  // __cplusplus

#endif  /* HAIRSPRING_H */
