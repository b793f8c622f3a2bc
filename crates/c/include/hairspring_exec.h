// hairspring_exec.h: an executive: tasks with priorities, and what they wait for. For Linux.
//
// Written by `cargo xtask gen` from crates/c; do not edit.
//
// Conventions, besides those of hairspring.h
//   * Priority 0 is the most urgent, 63 the least. Limits are in ns: HS_EXEC_NO_WAIT, HS_EXEC_FOREVER, or a time from now; times
//     are those of hs_exec_now_ns().
//   * An executive belongs to the thread that made it. "From anywhere in its executive" says: from its tasks, timer procedures and
//     interrupt procedures while it runs, and from its thread while it does not. Other threads and signal handlers post interrupts, and
//     make no other call. A call from elsewhere is HS_E_CALLER.
//   * Tasks, timers and objects are ids, passed by value. One of another kind or another executive, or none, is HS_E_HANDLE; a deleted
//     one is HS_E_FREED. All others (pools, heaps, circular lists, queues, mutexes, conditions, pipes, broadcasts, subscribers, selectors, tickers, day timers,
//     interrupts) are handles, are made before or between runs or by a task, interrupts
//     not by a task, and go with their executive. Memory of a handle goes with the executive, also if the object was deleted before.
//   * A call that readies a more urgent task switches to it before it returns; in a procedure, when the procedure is done.
//   * A task's function returns at the end of its run. Nothing unwinds through functions in C: a killed task, and every task in
//     the middle of a run when the run ends, gets HS_E_KILLED from every call that waits, and must return. One that goes on for
//     100,000 such calls ends the process with a sentence and SIGABRT.
//   * A task may call exit(). It must not longjmp() out of its function, nor throw through it, nor end its thread.
//   * A task that overflows its stack meets a guard page: SIGSEGV. On fibers a sentence on standard error names the task.
//   * On fibers all tasks share one thread: errno, thread-local variables and hs_last_error() are all tasks'. A task that blocks in
//     the kernel blocks all. A task calls from its own stack: to a coroutine of the program inside of it, calls are HS_E_CALLER.
//   * In the child of a fork there is no executive of the parent: calls are HS_E_CALLER, HS_E_BUSY or HS_E_THREAD, and a task that
//     returns ends the child by SIGABRT. The child may make executives of its own.
//   * A thread is not cancelled while it runs an executive. docs/c/executive.md has the outcome of every misfortune.


#ifndef HAIRSPRING_EXEC_H
#define HAIRSPRING_EXEC_H

#include "hairspring.h"

// Fibers on the calling thread: a switch takes nanoseconds, and happens in calls only.
#define HS_EXEC_FIBERS 0

// A thread of the kernel for each task, all on one CPU: a task is preempted anywhere.
#define HS_EXEC_THREADS_UP 1

// A thread of the kernel for each task, on all CPUs.
#define HS_EXEC_THREADS_SMP 2

// Virtual time: each run is the same to the nanosecond. For tests.
#define HS_EXEC_SIM 3

// A limit: do not wait.
#define HS_EXEC_NO_WAIT 0

// A limit: wait for as long as it takes.
#define HS_EXEC_FOREVER INT64_MAX

// A run ended because it was asked to.
#define HS_EXEC_ASKED 0

// A run ended because its time was up.
#define HS_EXEC_TIME_UP 1

// A run ended because nothing could happen any more: all tasks are idle.
#define HS_EXEC_FINISHED 2

// A run ended because some task waits and nothing can end its wait.
#define HS_EXEC_STUCK 3

// The caller is outside of the executives' tasks and procedures.
#define HS_EXEC_BY_OUTSIDE 0

// The caller is a task.
#define HS_EXEC_BY_TASK 1

// The caller is a timer procedure.
#define HS_EXEC_BY_TIMER 2

// The caller is an interrupt procedure.
#define HS_EXEC_BY_INTERRUPT 3

// The run returned.
#define HS_EXEC_RETURNED 0

// The run was killed.
#define HS_EXEC_KILLED 1

// The run panicked: a task in Rust.
#define HS_EXEC_PANICKED 2

// The task is idle.
#define HS_EXEC_IDLE 0

// The task runs, or could if no more urgent one did.
#define HS_EXEC_READY 1

// The task waits.
#define HS_EXEC_WAITING 2

// The task is dead.
#define HS_EXEC_DEAD 3

// In `how` of a wait for bits: all of them, not any.
#define HS_EXEC_ALL 1

// In `how` of a wait for the bits of a group: clear those that ended the wait.
#define HS_EXEC_TAKE 2

// In hs_exec_set_threshold(): any more urgent task preempts the caller.
#define HS_EXEC_NO_THRESHOLD 63

// Any urgency, in hs_exec_receive().
#define HS_EXEC_ANY -1

// A resource without a protocol against priority inversion, as in AMX.
#define HS_EXEC_PROTOCOL_NONE 0

// The owner runs at the priority of its most urgent waiter.
#define HS_EXEC_PROTOCOL_INHERIT 1

// The owner runs at the ceiling from the moment it reserves.
#define HS_EXEC_PROTOCOL_CEILING 2

// Tasks wait for a block in the order in which they came.
#define HS_EXEC_HEAP_ARRIVAL 0

// Tasks wait for a block in the order of their priority.
#define HS_EXEC_HEAP_PRIORITY 1

// The most objects of one wait.
#define HS_EXEC_MOST_SELECTED 16

// Set off by hs_exec_interrupt_post() alone; `descriptor` is not looked at.
#define HS_EXEC_SOFTWARE 0

// Set off for each read of at most 4 KiB from a descriptor; the data are dropped.
#define HS_EXEC_READABLE 1

// Set off for each read of an eventfd or timerfd, with the count that was read.
#define HS_EXEC_COUNTER 2

// An executive. Belongs to the thread that made it.
typedef struct hs_exec hs_exec;

// The newest messages, for any number of subscribers. Lives as long as its executive; only its tasks and procedures
// use it.
typedef struct hs_exec_broadcast hs_exec_broadcast;

// A condition: tasks wait for it, and leave a mutex while they wait. Lives as long as its executive; only its tasks
// and procedures use it.
typedef struct hs_exec_condition hs_exec_condition;

// A timer on the time of day. Lives as long as its executive.
typedef struct hs_exec_day_timer hs_exec_day_timer;

// A memory with blocks of any size. Lives as long as its executive; only its tasks and procedures use it.
typedef struct hs_exec_heap hs_exec_heap;

// An interrupt procedure that is attached to its source. Lives as long as its executive; any thread may post it.
typedef struct hs_exec_interrupt hs_exec_interrupt;

// A circular list. Lives as long as its executive; only its tasks and procedures use it, and the program between runs.
typedef struct hs_exec_list hs_exec_list;

// A mutex: one task at a time owns it. Lives as long as its executive; only its tasks use it.
typedef struct hs_exec_mutex hs_exec_mutex;

// A stream of bytes. Lives as long as its executive; only its tasks and procedures use it.
typedef struct hs_exec_pipe hs_exec_pipe;

// A pool of blocks. Lives as long as its executive; only its tasks and procedures use it.
typedef struct hs_exec_pool hs_exec_pool;

// A queue of messages, first in, first out. Lives as long as its executive; only its tasks and procedures use it.
typedef struct hs_exec_queue hs_exec_queue;

// Waits for the first of several objects. Lives as long as its executive; one task at a time uses it.
typedef struct hs_exec_selector hs_exec_selector;

// A listener of a broadcast, with its own place among the messages. Lives as long as its executive; one task at a time
// uses it.
typedef struct hs_exec_subscriber hs_exec_subscriber;

// The ticks of a task's loop. Lives as long as its executive; one task at a time uses it.
typedef struct hs_exec_ticker hs_exec_ticker;

// Options of an executive. Zero in all fields except size, and a cpu of -1, select fibers and the default sizes.
typedef struct hs_exec_options {
    // sizeof(struct hs_exec_options): by it a later library recognizes the header of this one.
    size_t size;
    // HS_EXEC_FIBERS to HS_EXEC_SIM.
    int32_t backend;
    // The CPU of fibers and of HS_EXEC_THREADS_UP; negative: any for fibers, the last one for threads.
    int32_t cpu;
    // With fibers the HS_POLICY_… of the calling thread during a run; HS_POLICY_KEEP stands for HS_POLICY_OTHER.
    int32_t policy;
    // 1 to 99 with HS_POLICY_FIFO and HS_POLICY_ROUND_ROBIN.
    int32_t priority;
    // The most messages in all mailboxes and exchanges together, up to 65,534; 0: 1,024.
    uint32_t envelopes;
    // Zero.
    uint32_t reserved;
    // The stack of each task, at least 4,096, with a guard page below; 0: 65,536.
    size_t stack_bytes;
    // The CPU time that a task may use without a call before it loses its real-time priority; 0: 1 s; negative: no
    // limit.
    int64_t watchdog_ns;
    // The time slice among ready tasks of equal priority, at least 100,000; 0: a task keeps the CPU until it waits,
    // yields or returns. On fibers a slice ends at the first call after it.
    int64_t slice_ns;
    // 1: count the CPU time and the switches of each task for hs_exec_task_measure(); 0: do not. On fibers and in
    // virtual time it costs a reading of the clock in each call. On threads the system counts them anyway.
    int32_t measure_usage;
    // Zero.
    uint32_t padding;
} hs_exec_options;

// The report of a run.
typedef struct hs_exec_finish {
    // sizeof(struct hs_exec_finish), set by the caller.
    size_t size;
    // HS_EXEC_ASKED to HS_EXEC_STUCK.
    int32_t stopped;
    // Whether strict priority held: 1, or 0 if the system refused real-time priority or a CPU.
    int32_t strict;
    // Number of mishaps; hs_exec_mishap() returns the first 64 or more.
    uint64_t mishaps;
    // Interrupts that found their ring full and were lost.
    uint64_t interrupts_lost;
    // Periods of timers that passed without a run of their procedure.
    uint64_t timer_overruns;
    // The longest time that a procedure kept the CPU, if the watchdog did not allow it; else 0. On fibers.
    int64_t procedure_ran_away_ns;
} hs_exec_finish;

// A task. All zero: none.
typedef struct hs_exec_task {
    // Of the library.
    uint64_t id;
} hs_exec_task;

// A message: 32 bytes, copied when it is sent and when it is received.
typedef struct hs_exec_message {
    // The program's.
    uint64_t words[4];
} hs_exec_message;

// Options of a task. With zero in all fields except size, entry and priority, hs_exec_task_start() starts the task.
typedef struct hs_exec_task_options {
    // sizeof(struct hs_exec_task_options): by it a later library recognizes the header of this one.
    size_t size;
    // Its name in reports; NULL: "task". Copied.
    const char *name;
    // The function of the task. It runs once for each start, and returns at the end of the run. `message` is the
    // message that started the run, or NULL for a task without mailboxes; it lives until the function returns.
    void (*entry)(void *argument, const struct hs_exec_message *message);
    // Handed to the function.
    void *argument;
    // The room of its mailboxes by urgency, in messages. With any, the task is started by hs_exec_send() and by
    // nothing else.
    uint16_t mailboxes[4];
    // 0, the most urgent, to 63.
    int32_t priority;
    // Zero.
    uint32_t reserved;
    // Its stack in bytes, rounded up to pages, with a guard page below; 0: that of the executive. Less than 16,384
    // gets as much. With memory in `stack`: the bytes there.
    size_t stack_bytes;
    // 1: each run begins with the threshold in the next field, as after hs_exec_set_threshold(); 0: with none.
    int32_t has_threshold;
    // 0 to 63. Looked at if has_threshold is 1.
    int32_t threshold;
    // Memory of the program for its stack, readable and writable; NULL: the library's. Its lowest whole page is the
    // guard page, and what was in it is lost. It is the program's again when hs_exec_task_delete() returns HS_OK, or
    // with the executive.
    void *stack;
} hs_exec_task_options;

// A task as it is now.
typedef struct hs_exec_task_info {
    // sizeof(struct hs_exec_task_info), set by the caller.
    size_t size;
    // HS_EXEC_IDLE to HS_EXEC_DEAD.
    int32_t state;
    // 1 if it is suspended.
    int32_t suspended;
    // 1 if it was killed and has not returned yet.
    int32_t killed;
    // Its own priority.
    int32_t priority;
    // The priority that it runs at: its own, or a more urgent one because of a resource.
    int32_t effective;
    // Starts that are pending.
    uint32_t starts;
    // Messages that wait in its mailboxes.
    uint64_t messages;
    // When its wait ends by time, or -1.
    int64_t wait_ends_ns;
} hs_exec_task_info;

// CPU time and stack that a task has used since it was created. -1 in a field: not known.
typedef struct hs_exec_task_usage {
    // sizeof(struct hs_exec_task_usage), set by the caller.
    size_t size;
    // The time for which it had the CPU. On fibers and in virtual time with the procedures that its calls served; -1
    // there, unless hs_exec_options.measure_usage is 1.
    int64_t cpu_ns;
    // How often it was given the CPU; on threads, how often its thread left it. -1 as above.
    int64_t switches;
    // The size of its stack, on threads with what the library needs of it; -1 before its first run.
    int64_t stack_bytes;
    // The most of it that was ever used, to the page; -1 before its first run. A page that the system has swapped out
    // does not count.
    int64_t stack_used_bytes;
} hs_exec_task_usage;

// A message exchange: four queues, by urgency. All zero: none.
typedef struct hs_exec_exchange {
    // Of the library.
    uint64_t id;
} hs_exec_exchange;

// A counting semaphore. All zero: none.
typedef struct hs_exec_semaphore {
    // Of the library.
    uint64_t id;
} hs_exec_semaphore;

// A resource that one task at a time owns. All zero: none.
typedef struct hs_exec_resource {
    // Of the library.
    uint64_t id;
} hs_exec_resource;

// A group of 32 event bits. All zero: none.
typedef struct hs_exec_events {
    // Of the library.
    uint64_t id;
} hs_exec_events;

// How a heap is used.
typedef struct hs_exec_heap_use {
    // sizeof(struct hs_exec_heap_use), set by the caller.
    size_t size;
    // Bytes that it has.
    uint64_t bytes;
    // Bytes that are free.
    uint64_t free_bytes;
    // The largest block that would be given now if no task waited.
    uint64_t largest_bytes;
    // The fewest bytes that were ever free.
    uint64_t least_free_bytes;
    // Blocks in use.
    uint64_t blocks;
    // Most blocks that can be in use.
    uint64_t most_blocks;
} hs_exec_heap_use;

// A tick that has come.
typedef struct hs_exec_tick {
    // sizeof(struct hs_exec_tick), set by the caller.
    size_t size;
    // Its number, from 1.
    uint64_t number;
    // When it was due.
    int64_t due_ns;
    // Ticks before it that passed while the task did something else.
    uint64_t missed;
    // How long after it was due the task runs.
    int64_t late_ns;
} hs_exec_tick;

// Why the procedure of a day timer runs.
typedef struct hs_exec_day_expiry {
    // When it was due, in ns since 1970 (UTC); the last time, if more than one has passed.
    int64_t due_unix_ns;
    // How late it is, by the clock of the time of day.
    int64_t late_ns;
    // How far that clock was set forward, or back (negative), since the start of the timer or its last run, at least;
    // a suspend counts, too. 0: no step was seen.
    int64_t stepped_ns;
    // Expirations before this one that had no run of their own.
    uint64_t missed;
    // All that it missed since it was started.
    uint64_t overruns;
} hs_exec_day_expiry;

// Why a timer procedure runs.
typedef struct hs_exec_expiry {
    // When the timer was due.
    int64_t deadline_ns;
    // Expirations before this one that had no run of their own.
    uint64_t missed;
    // All that it missed since it was started.
    uint64_t overruns;
} hs_exec_expiry;

// A timer. All zero: none.
typedef struct hs_exec_timer {
    // Of the library.
    uint64_t id;
} hs_exec_timer;

// Why an interrupt procedure runs.
typedef struct hs_exec_arrival {
    // The time of the post, or when a descriptor had been read.
    int64_t at_ns;
    // How often its source fired.
    uint64_t count;
} hs_exec_arrival;

#ifdef __cplusplus
extern "C" {
#endif // __cplusplus

// Makes an executive. `options` may be NULL: fibers. Free it with hs_exec_free() in the same thread. From a task of
// another executive, too. HS_E_RANGE (also of a size that is not set), HS_E_NEGATIVE (of the time slice), HS_E_REFUSED
// (no threads or memory; or a shadow stack, which threads alone work with).
int hs_exec_new(const struct hs_exec_options *options,
                struct hs_exec **exec);

// Runs the tasks until hs_exec_stop(), for `limit_ns` (HS_EXEC_FOREVER: no limit), or until nothing can happen any
// more. Blocks. Tasks in the middle of a run are killed at the end: their calls return HS_E_KILLED, and they must
// return. Tasks and objects stay for another run. `finish` may be NULL. From outside, in the thread that made it.
// HS_E_NEGATIVE, HS_E_THREAD, HS_E_BUSY (it runs), HS_E_RANGE (the size in `finish` is not set).
int hs_exec_run(struct hs_exec *exec,
                int64_t limit_ns,
                struct hs_exec_finish *finish);

// One thing that went wrong in the latest run, from 0: a task that was killed, returned as an owner or ran away; an
// interrupt source that lost arrivals; a setting that the system refused. `task` is all zero if it is not about a
// task; it may be NULL. The text lives until the next run. HS_E_NOT_FOUND after the last.
int hs_exec_mishap(const struct hs_exec *exec,
                   size_t index,
                   struct hs_exec_task *task,
                   const char **text);

// Ends the run. From a task, which then must return; from a timer or interrupt procedure. HS_E_CALLER.
int hs_exec_stop(void);

// Returns the kind of the caller, HS_EXEC_BY_OUTSIDE to HS_EXEC_BY_INTERRUPT. From anywhere.
int hs_exec_by(void);

// The time of the caller's executive: CLOCK_MONOTONIC, or virtual time with HS_EXEC_SIM. From outside:
// CLOCK_MONOTONIC.
int64_t hs_exec_now_ns(void);

// The time of day of the caller's executive, in ns since 1970 (UTC): CLOCK_REALTIME, or virtual time with HS_EXEC_SIM.
// From outside: CLOCK_REALTIME. It can be set; spans are those of hs_exec_now_ns().
int64_t hs_exec_time_of_day_ns(void);

// Frees an executive with all its tasks and objects. From outside, in the thread that made it. NULL is allowed.
// HS_E_FREED, HS_E_BUSY (it runs), HS_E_THREAD, HS_E_CALLER (a task calls).
int hs_exec_free(struct hs_exec *exec);

// Creates a task, idle. From outside before or between runs, and from a task of the executive. Allocates. HS_E_NULL
// (no entry), HS_E_RANGE (also of a size that is not set, and of memory for the stack without 16,384 bytes above its
// lowest whole page), HS_E_TOO_MANY (on threads also without memory for the stack; on fibers a stack is allocated at
// the first start, and one that cannot be is a mishap of the run), HS_E_BUSY (it runs), HS_E_THREAD, HS_E_CALLER.
int hs_exec_task_new(struct hs_exec *exec,
                     const struct hs_exec_task_options *options,
                     struct hs_exec_task *task);

// Starts an idle task. A task that is not idle runs again after its run, once for each start. From anywhere in its
// executive, and from outside between runs. HS_E_OVERFLOW, HS_E_FREED, HS_E_HANDLE.
int hs_exec_task_start(struct hs_exec_task task);

// Wakes a task from hs_exec_wait(). If it does not wait, one wake is kept for it. From anywhere in its executive.
// HS_E_OVERFLOW (one is kept already), HS_E_STATE (it is idle), HS_E_FREED, HS_E_HANDLE.
int hs_exec_wake(struct hs_exec_task task);

// Waits for hs_exec_wake(). A wake that came before is taken at once. For tasks. HS_E_TIMED_OUT, HS_E_KILLED,
// HS_E_NEGATIVE, HS_E_CALLER.
int hs_exec_wait(int64_t limit_ns);

// Discards a kept wake. For tasks. HS_E_CALLER.
int hs_exec_wake_reset(void);

// Waits for this long, never less; 0 returns at once. For tasks. HS_E_NEGATIVE, HS_E_KILLED, HS_E_CALLER.
int hs_exec_delay_ns(int64_t span_ns);

// Waits until the executive's time is `at_ns`, never less; a time that has passed returns at once. For tasks.
// HS_E_NEGATIVE, HS_E_KILLED, HS_E_CALLER.
int hs_exec_delay_until_ns(int64_t at_ns);

// Gives the CPU to the other ready tasks of the same priority. For tasks. HS_E_CALLER.
int hs_exec_yield(void);

// Serves what is due and lets more urgent tasks run: for long computations on fibers. For tasks. HS_E_CALLER.
int hs_exec_preempt_point(void);

// Uses this much CPU time; in virtual time, lets it pass. More urgent tasks preempt it. For tasks. HS_E_NEGATIVE,
// HS_E_CALLER.
int hs_exec_work_ns(int64_t span_ns);

// Keeps the floating-point control words of this run apart from those of other code. A task calls it before it changes
// them. For tasks. HS_E_CALLER.
int hs_exec_keep_control_words(void);

// The calling task. HS_E_CALLER.
int hs_exec_self(struct hs_exec_task *task);

// Suspends a task, or the caller, until hs_exec_task_resume(). On threads another task goes on until its next call.
// For tasks. HS_E_STATE, HS_E_FREED, HS_E_KILLED, HS_E_HANDLE, HS_E_CALLER.
int hs_exec_task_suspend(struct hs_exec_task task);

// Resumes a suspended task. From anywhere in its executive. HS_E_STATE, HS_E_FREED, HS_E_HANDLE.
int hs_exec_task_resume(struct hs_exec_task task);

// Sets the priority of a task, 0 to 63; it goes to the end of the list of its new one. For tasks. HS_E_RANGE,
// HS_E_CEILING, HS_E_FREED, HS_E_HANDLE, HS_E_CALLER.
int hs_exec_task_set_priority(struct hs_exec_task task, int priority);

// Kills a task: its waits return HS_E_KILLED, and its function must return. It can be started again. A task that kills
// itself gets HS_E_KILLED from this call. For tasks. HS_E_FREED, HS_E_HANDLE, HS_E_CALLER.
int hs_exec_task_kill(struct hs_exec_task task);

// Waits until the present run of another task is over, and stores in `how` how it ended: HS_EXEC_RETURNED to
// HS_EXEC_PANICKED. Returns at once if the task is idle, with HS_EXEC_RETURNED: how earlier runs ended,
// hs_exec_mishap() returns. `how` may be NULL. For tasks. HS_E_TIMED_OUT, HS_E_DEADLOCK (the caller itself),
// HS_E_CANCELLED, HS_E_KILLED, HS_E_FREED, HS_E_NEGATIVE, HS_E_HANDLE, HS_E_CALLER.
int hs_exec_task_join(struct hs_exec_task task, int64_t limit_ns, int32_t *how);

// Breaks off the wait of another task: its call returns HS_E_CANCELLED. `waited` is 0 if it did not wait, and may be
// NULL. For tasks. HS_E_STATE (it is idle), HS_E_FREED, HS_E_HANDLE, HS_E_CALLER.
int hs_exec_task_cancel_wait(struct hs_exec_task task,
                             int32_t *waited);

// Returns the state of a task. From anywhere in its executive, and from outside between runs. HS_E_RANGE (the size is
// not set), HS_E_NULL, HS_E_FREED, HS_E_HANDLE.
int hs_exec_task_look(struct hs_exec_task task,
                      struct hs_exec_task_info *info);

// Deletes an idle task; its id is refused from then on. For tasks. HS_E_STATE (it is in the middle of a run),
// HS_E_FREED, HS_E_HANDLE, HS_E_CALLER.
int hs_exec_task_delete(struct hs_exec_task task);

// Sets signal bits of a task. From anywhere in its executive. HS_E_STATE (it is idle), HS_E_FREED, HS_E_HANDLE.
int hs_exec_signal(struct hs_exec_task task,
                   uint32_t bits);

// Waits for any of these signals of the caller, or with HS_EXEC_ALL in `how` for all, and clears them. `came` may be
// NULL. For tasks. HS_E_TIMED_OUT, HS_E_RANGE (no bits), HS_E_KILLED, HS_E_NEGATIVE, HS_E_CALLER.
int hs_exec_signals_wait(uint32_t mask,
                         int how,
                         int64_t limit_ns,
                         uint32_t *came);

// Lets only tasks more urgent than `priority` (0 to 63) preempt the calling task, until it sets another threshold or
// its run ends; HS_EXEC_NO_THRESHOLD: any more urgent task. `before` gets the threshold that was in force, and may be
// NULL. While the scheduler is locked by the caller, the threshold takes effect at the last unlock. Procedures run as
// ever. While the task waits, other tasks run; it is ready again at its threshold, if that is more urgent than its
// priority. On several CPUs the others run on. For tasks. HS_E_RANGE, HS_E_NULL, HS_E_CALLER.
int hs_exec_set_threshold(int priority,
                          int *before);

// Lets no other task preempt the calling task, until hs_exec_scheduler_unlock() or the end of its run. Locks nest:
// each needs its unlock. Procedures run as ever. While the task waits, other tasks run. On several CPUs the others run
// on. For tasks. HS_E_OVERFLOW (locked 4,294,967,295 times), HS_E_CALLER.
int hs_exec_scheduler_lock(void);

// Undoes one hs_exec_scheduler_lock(). With the last, more urgent tasks that became ready meanwhile run before this
// returns. For tasks. HS_E_STATE (this run has not locked the scheduler), HS_E_CALLER.
int hs_exec_scheduler_unlock(void);

// Returns the CPU time and the stack that a task has used. Makes system calls: one for each 64 pages of the stack.
// From anywhere in its executive, and from outside between runs. HS_E_RANGE (the size is not set), HS_E_NULL,
// HS_E_FREED, HS_E_HANDLE.
int hs_exec_task_measure(struct hs_exec_task task,
                         struct hs_exec_task_usage *usage);

// Sends a message to a task's mailbox of an urgency, 0 to 3; starts the task if it is idle. From anywhere in its
// executive. HS_E_FULL, HS_E_RANGE (it has no such mailbox), HS_E_NULL, HS_E_FREED, HS_E_HANDLE.
int hs_exec_send(struct hs_exec_task task,
                 int urgency_number,
                 const struct hs_exec_message *message);

// Sends a message and waits until the receiver has acknowledged it; `value` is that of the acknowledgement and may be
// NULL. After a time-out the message stays in the mailbox. For tasks. HS_E_TIMED_OUT, HS_E_NOT_ACKNOWLEDGED,
// HS_E_DEADLOCK (to itself), HS_E_KILLED, HS_E_NEGATIVE, HS_E_CALLER, and those of hs_exec_send().
int hs_exec_send_wait(struct hs_exec_task task,
                      int urgency_number,
                      const struct hs_exec_message *message,
                      int64_t limit_ns,
                      uint32_t *value);

// Waits for mail of one urgency, or of HS_EXEC_ANY, in the caller's own mailboxes; acknowledges the message before.
// For tasks with mailboxes. HS_E_TIMED_OUT, HS_E_RANGE, HS_E_NULL, HS_E_KILLED, HS_E_NEGATIVE, HS_E_CALLER.
int hs_exec_receive(int urgency_number,
                    int64_t limit_ns,
                    struct hs_exec_message *message);

// Acknowledges the message received last with a value, if its sender waits. For tasks. HS_E_EMPTY (it does not wait),
// HS_E_CALLER.
int hs_exec_acknowledge(uint32_t value);

// Creates an exchange with room for `urgency_0` to `urgency_3` messages. From outside before or between runs, and from
// a task of the executive. Allocates. HS_E_NULL, HS_E_TOO_MANY, HS_E_BUSY, HS_E_THREAD, HS_E_CALLER.
int hs_exec_exchange_new(struct hs_exec *exec,
                         uint16_t urgency_0,
                         uint16_t urgency_1,
                         uint16_t urgency_2,
                         uint16_t urgency_3,
                         struct hs_exec_exchange *exchange);

// Deletes an exchange and its messages; its id is HS_E_FREED from then on. Tasks that wait for it get HS_E_FREED. From
// anywhere in its executive. HS_E_FREED, HS_E_HANDLE, HS_E_CALLER.
int hs_exec_exchange_delete(struct hs_exec_exchange exchange);

// Sends a message to an exchange: the first waiter gets it, or else the next task that fetches. Never waits. From
// anywhere in its executive. HS_E_FULL, HS_E_RANGE, HS_E_NULL, HS_E_HANDLE.
int hs_exec_post(struct hs_exec_exchange exchange,
                 int urgency_number,
                 const struct hs_exec_message *message);

// Waits for a message of an exchange, the most urgent first. For tasks. HS_E_TIMED_OUT, HS_E_NULL, HS_E_KILLED,
// HS_E_NEGATIVE, HS_E_HANDLE, HS_E_CALLER.
int hs_exec_fetch(struct hs_exec_exchange exchange,
                  int64_t limit_ns,
                  struct hs_exec_message *message);

// The same, but waits at a priority given for this wait, 0 to 63. HS_E_RANGE besides.
int hs_exec_fetch_at(struct hs_exec_exchange exchange,
                     int priority,
                     int64_t limit_ns,
                     struct hs_exec_message *message);

// Creates a semaphore with a count of units and the limit that it may reach. From outside before or between runs, and
// from a task of the executive. Allocates. HS_E_OVERFLOW (the count is above the limit), HS_E_TOO_MANY, HS_E_BUSY,
// HS_E_THREAD, HS_E_CALLER.
int hs_exec_semaphore_new(struct hs_exec *exec,
                          uint32_t count,
                          uint32_t limit,
                          struct hs_exec_semaphore *semaphore);

// Gives a semaphore one unit. From anywhere in its executive. HS_E_OVERFLOW (it is at its limit), HS_E_HANDLE.
int hs_exec_semaphore_signal(struct hs_exec_semaphore semaphore);

// Takes one unit of a semaphore; waiters get theirs in the order of their priorities. For tasks. HS_E_TIMED_OUT,
// HS_E_KILLED, HS_E_NEGATIVE, HS_E_HANDLE, HS_E_CALLER.
int hs_exec_semaphore_wait(struct hs_exec_semaphore semaphore,
                           int64_t limit_ns);

// The same, but waits at a priority given for this wait, 0 to 63. HS_E_RANGE besides.
int hs_exec_semaphore_wait_at(struct hs_exec_semaphore semaphore, int priority, int64_t limit_ns);

// The units of a semaphore. From anywhere in its executive, and from outside between runs. HS_E_NULL, HS_E_HANDLE.
int hs_exec_semaphore_count(struct hs_exec_semaphore semaphore,
                            uint32_t *count);

// Deletes a semaphore; its id is HS_E_FREED from then on. Tasks that wait for it get HS_E_FREED. From anywhere in its
// executive. HS_E_FREED, HS_E_HANDLE, HS_E_CALLER.
int hs_exec_semaphore_delete(struct hs_exec_semaphore semaphore);

// Creates a resource with HS_EXEC_PROTOCOL_…; `ceiling` (0 to 63) is looked at with HS_EXEC_PROTOCOL_CEILING only.
// From outside before or between runs, and from a task of the executive. Allocates. HS_E_RANGE, HS_E_TOO_MANY,
// HS_E_BUSY, HS_E_THREAD, HS_E_CALLER.
int hs_exec_resource_new(struct hs_exec *exec,
                         int protocol_number,
                         int ceiling,
                         struct hs_exec_resource *resource);

// Reserves a resource; reservations nest, and each needs its hs_exec_release(). For tasks. HS_E_TIMED_OUT,
// HS_E_DEADLOCK, HS_E_CEILING, HS_E_OVERFLOW, HS_E_KILLED, HS_E_NEGATIVE, HS_E_HANDLE, HS_E_CALLER.
int hs_exec_reserve(struct hs_exec_resource resource, int64_t limit_ns);

// The same, but waits at a priority given for this wait, 0 to 63. HS_E_RANGE besides.
int hs_exec_reserve_at(struct hs_exec_resource resource, int priority, int64_t limit_ns);

// Releases a resource once. For tasks. HS_E_NOT_OWNER, HS_E_HANDLE, HS_E_CALLER.
int hs_exec_release(struct hs_exec_resource resource);

// Deletes a resource that no task owns; its id is HS_E_FREED from then on. From anywhere in its executive. HS_E_STATE
// (a task owns it), HS_E_FREED, HS_E_HANDLE, HS_E_CALLER.
int hs_exec_resource_delete(struct hs_exec_resource resource);

// Creates a group of 32 event bits with these set. From outside before or between runs, and from a task of the
// executive. Allocates. HS_E_TOO_MANY, HS_E_BUSY, HS_E_THREAD, HS_E_CALLER.
int hs_exec_events_new(struct hs_exec *exec,
                       uint32_t set,
                       struct hs_exec_events *events);

// Sets bits of a group. From anywhere in its executive. HS_E_HANDLE.
int hs_exec_events_signal(struct hs_exec_events events, uint32_t bits);

// Clears bits of a group. From anywhere in its executive. HS_E_HANDLE.
int hs_exec_events_clear(struct hs_exec_events events, uint32_t bits);

// Deletes a group of events; its id is HS_E_FREED from then on. Tasks that wait for it get HS_E_FREED. From anywhere
// in its executive. HS_E_FREED, HS_E_HANDLE, HS_E_CALLER.
int hs_exec_events_delete(struct hs_exec_events events);

// Waits for any of these bits of a group, with HS_EXEC_ALL in `how` for all; HS_EXEC_TAKE clears those that ended the
// wait. `came` may be NULL. For tasks. HS_E_TIMED_OUT, HS_E_RANGE (no bits), HS_E_KILLED, HS_E_NEGATIVE, HS_E_HANDLE,
// HS_E_CALLER.
int hs_exec_events_wait(struct hs_exec_events events,
                        uint32_t mask,
                        int how,
                        int64_t limit_ns,
                        uint32_t *came);

// The same, but waits at a priority given for this wait, 0 to 63.
int hs_exec_events_wait_at(struct hs_exec_events events,
                           uint32_t mask,
                           int how,
                           int priority,
                           int64_t limit_ns,
                           uint32_t *came);

// Creates a pool of `blocks` blocks (1 to 65,535), aligned to 16 bytes. From outside before or between runs, and from
// a task of the executive. Allocates. The pool is freed with its executive. HS_E_RANGE, HS_E_TOO_MANY, HS_E_BUSY,
// HS_E_THREAD, HS_E_CALLER.
int hs_exec_pool_new(struct hs_exec *exec,
                     uint16_t blocks,
                     size_t block_bytes,
                     struct hs_exec_pool **pool);

// Deletes a pool of which all blocks have been given back. It is HS_E_FREED from then on; its memory is freed with the
// executive. From anywhere in its executive. HS_E_STATE (a block is in use), HS_E_FREED, HS_E_HANDLE, HS_E_CALLER.
int hs_exec_pool_delete(struct hs_exec_pool *pool);

// Takes a block of a pool. Its contents are what the last user left. From tasks and procedures of the executive.
// HS_E_EMPTY, HS_E_NULL, HS_E_HANDLE, HS_E_CALLER.
int hs_exec_pool_take(struct hs_exec_pool *pool,
                      void **block);

// Gives a block back to its pool. From tasks and procedures of the executive. HS_E_STATE (it is not in use),
// HS_E_RANGE (no block of this pool), HS_E_HANDLE, HS_E_CALLER.
int hs_exec_pool_give(struct hs_exec_pool *pool, void *block);

// Creates a queue with room for 1 to 16,777,216 messages. From outside before or between runs, and from a task of the
// executive. Allocates. The queue is freed with its executive. HS_E_RANGE, HS_E_TOO_MANY, HS_E_BUSY, HS_E_THREAD,
// HS_E_CALLER.
int hs_exec_queue_new(struct hs_exec *exec,
                      uint32_t messages,
                      struct hs_exec_queue **queue);

// Sends a message; a task waits for room, up to the limit. Procedures use HS_EXEC_NO_WAIT. HS_E_FULL (no room, and
// HS_EXEC_NO_WAIT), HS_E_TIMED_OUT, HS_E_CANCELLED, HS_E_KILLED, HS_E_NEGATIVE, HS_E_NULL, HS_E_HANDLE, HS_E_CALLER.
int hs_exec_queue_send(struct hs_exec_queue *queue,
                       const struct hs_exec_message *message,
                       int64_t limit_ns);

// Takes the first message; a task waits for one, up to the limit. Procedures use HS_EXEC_NO_WAIT. HS_E_TIMED_OUT,
// HS_E_CANCELLED, HS_E_KILLED, HS_E_NEGATIVE, HS_E_NULL, HS_E_HANDLE, HS_E_CALLER.
int hs_exec_queue_receive(struct hs_exec_queue *queue,
                          int64_t limit_ns,
                          struct hs_exec_message *message);

// How many messages are in a queue. From tasks and procedures of the executive. HS_E_NULL, HS_E_HANDLE, HS_E_CALLER.
int hs_exec_queue_count(struct hs_exec_queue *queue,
                        uint32_t *count);

// Drops the messages in a queue, and lets the tasks go on that wait for room. From tasks and procedures of the
// executive. HS_E_HANDLE, HS_E_CALLER.
int hs_exec_queue_clear(struct hs_exec_queue *queue);

// Deletes a queue and its messages. Tasks that wait for it get HS_E_FREED. It is HS_E_FREED from then on; the memory
// of the handle is freed with the executive. From anywhere in its executive. HS_E_FREED, HS_E_HANDLE, HS_E_CALLER.
int hs_exec_queue_delete(struct hs_exec_queue *queue);

// Creates a mutex with HS_EXEC_PROTOCOL_…; `ceiling` (0 to 63) is looked at with HS_EXEC_PROTOCOL_CEILING only. From
// outside before or between runs, and from a task of the executive. Allocates. The mutex is freed with its executive.
// HS_E_RANGE, HS_E_TOO_MANY, HS_E_BUSY, HS_E_THREAD, HS_E_CALLER.
int hs_exec_mutex_new(struct hs_exec *exec,
                      int protocol_number,
                      int ceiling,
                      struct hs_exec_mutex **mutex);

// Locks a mutex; waiters get it in the order of their priorities. It does not nest. `abandoned` is 1 if the owner
// before returned, or was killed, without hs_exec_mutex_unlock(): what the mutex protects may be half changed.
// `abandoned` may be NULL. For tasks. HS_E_TIMED_OUT (also with HS_EXEC_NO_WAIT), HS_E_DEADLOCK (the caller owns it,
// or its owner waits for the caller), HS_E_CEILING, HS_E_CANCELLED, HS_E_KILLED, HS_E_NEGATIVE, HS_E_NULL, HS_E_FREED,
// HS_E_HANDLE, HS_E_CALLER.
int hs_exec_mutex_lock(struct hs_exec_mutex *mutex,
                       int64_t limit_ns,
                       int32_t *abandoned);

// Unlocks a mutex. A more urgent task that waits for it runs before this returns. For tasks. HS_E_NOT_OWNER,
// HS_E_FREED, HS_E_HANDLE, HS_E_CALLER.
int hs_exec_mutex_unlock(struct hs_exec_mutex *mutex);

// Deletes a mutex that no task has locked. It is HS_E_FREED from then on; the memory of the handle is freed with the
// executive. From anywhere in its executive. HS_E_STATE (a task has it locked), HS_E_FREED, HS_E_HANDLE, HS_E_CALLER.
int hs_exec_mutex_delete(struct hs_exec_mutex *mutex);

// Creates a condition. From outside before or between runs, and from a task of the executive. Allocates. The condition
// is freed with its executive. HS_E_TOO_MANY, HS_E_BUSY, HS_E_THREAD, HS_E_CALLER.
int hs_exec_condition_new(struct hs_exec *exec,
                          struct hs_exec_condition **condition);

// Unlocks the mutex, waits for hs_exec_condition_notify(), and locks the mutex again; `limit_ns` is for the wait
// alone. No notification that comes after the unlocking is missed. Look again at what was waited for: another task may
// have been faster. The caller owns the mutex again after HS_OK, HS_E_TIMED_OUT and HS_E_CANCELLED, and after no other
// code. `abandoned` is as in hs_exec_mutex_lock(), and may be NULL. For tasks. HS_E_NOT_OWNER (the caller does not own
// the mutex, which stays as it is), HS_E_DEADLOCK and HS_E_CEILING (of the locking), HS_E_KILLED, HS_E_NEGATIVE,
// HS_E_NULL, HS_E_FREED, HS_E_HANDLE, HS_E_CALLER.
int hs_exec_condition_wait(struct hs_exec_condition *condition,
                           struct hs_exec_mutex *mutex,
                           int64_t limit_ns,
                           int32_t *abandoned);

// Lets all tasks go on that wait for a condition; each locks its mutex in turn. From tasks and procedures of the
// executive. HS_E_FREED, HS_E_HANDLE, HS_E_CALLER.
int hs_exec_condition_notify(struct hs_exec_condition *condition);

// Deletes a condition. Tasks that wait for it get HS_E_FREED. It is HS_E_FREED from then on; the memory of the handle
// is freed with the executive. From anywhere in its executive. HS_E_FREED, HS_E_HANDLE, HS_E_CALLER.
int hs_exec_condition_delete(struct hs_exec_condition *condition);

// Creates a pipe with room for `capacity` bytes, 1 to 1,073,741,824. From outside before or between runs, and from a
// task of the executive. Allocates. The pipe is freed with its executive. HS_E_RANGE, HS_E_TOO_MANY, HS_E_BUSY,
// HS_E_THREAD, HS_E_CALLER.
int hs_exec_pipe_new(struct hs_exec *exec,
                     size_t capacity,
                     struct hs_exec_pipe **pipe);

// Writes as many of the bytes as there is room for, and stores their number in `written`; a task waits until there is
// room for one. Procedures use HS_EXEC_NO_WAIT. With no bytes it returns at once. On threads it copies under the
// executive's lock: keep pieces short. HS_E_FULL (no room, and HS_EXEC_NO_WAIT), HS_E_TIMED_OUT, HS_E_CANCELLED,
// HS_E_KILLED, HS_E_NEGATIVE, HS_E_NULL, HS_E_FREED, HS_E_HANDLE, HS_E_CALLER.
int hs_exec_pipe_write(struct hs_exec_pipe *pipe,
                       const void *bytes,
                       size_t count,
                       int64_t limit_ns,
                       size_t *written);

// Writes all of the bytes, and waits for room as often as it must; `limit_ns` is for all together. After an error some
// may have been written. For tasks. HS_E_TIMED_OUT, HS_E_CANCELLED, HS_E_KILLED, HS_E_NEGATIVE, HS_E_NULL, HS_E_FREED,
// HS_E_HANDLE, HS_E_CALLER.
int hs_exec_pipe_write_all(struct hs_exec_pipe *pipe,
                           const void *bytes,
                           size_t count,
                           int64_t limit_ns);

// Reads the bytes that are there, up to `most`, and stores their number in `count`; a task waits until there is one.
// Procedures use HS_EXEC_NO_WAIT. With `most` = 0 it returns at once. HS_E_TIMED_OUT (also with HS_EXEC_NO_WAIT),
// HS_E_CANCELLED, HS_E_KILLED, HS_E_NEGATIVE, HS_E_NULL, HS_E_FREED, HS_E_HANDLE, HS_E_CALLER.
int hs_exec_pipe_read(struct hs_exec_pipe *pipe,
                      void *bytes,
                      size_t most,
                      int64_t limit_ns,
                      size_t *count);

// How many bytes are in a pipe. From tasks and procedures of the executive. HS_E_NULL, HS_E_FREED, HS_E_HANDLE,
// HS_E_CALLER.
int hs_exec_pipe_count(struct hs_exec_pipe *pipe,
                       size_t *count);

// Deletes a pipe and its bytes. Tasks that wait for it get HS_E_FREED. It is HS_E_FREED from then on; the memory of
// the handle is freed with the executive. From anywhere in its executive. HS_E_FREED, HS_E_HANDLE, HS_E_CALLER.
int hs_exec_pipe_delete(struct hs_exec_pipe *pipe);

// Creates a broadcast that keeps the newest 1 to 16,777,216 messages for slow subscribers. With 1 it is the latest
// value of something. From outside before or between runs, and from a task of the executive. Allocates. The broadcast
// is freed with its executive. HS_E_RANGE, HS_E_TOO_MANY, HS_E_BUSY, HS_E_THREAD, HS_E_CALLER.
int hs_exec_broadcast_new(struct hs_exec *exec,
                          uint32_t messages,
                          struct hs_exec_broadcast **broadcast);

// Sends a message to all subscribers; the oldest makes room. Never waits. From tasks and procedures of the executive.
// HS_E_NULL, HS_E_FREED, HS_E_HANDLE, HS_E_CALLER.
int hs_exec_broadcast_send(struct hs_exec_broadcast *broadcast,
                           const struct hs_exec_message *message);

// The newest message. From tasks and procedures of the executive. HS_E_EMPTY (none has been sent), HS_E_NULL,
// HS_E_FREED, HS_E_HANDLE, HS_E_CALLER.
int hs_exec_broadcast_latest(struct hs_exec_broadcast *broadcast, struct hs_exec_message *message);

// Deletes a broadcast. Its subscribers that wait get HS_E_FREED. It is HS_E_FREED from then on; the memory of the
// handle is freed with the executive. From anywhere in its executive. HS_E_FREED, HS_E_HANDLE, HS_E_CALLER.
int hs_exec_broadcast_delete(struct hs_exec_broadcast *broadcast);

// Creates a subscriber that hears what is sent from now on. From outside before or between runs, and from a task of
// the executive. Allocates. The subscriber is freed with its executive. HS_E_HANDLE (also of a broadcast of another
// executive), HS_E_FREED, HS_E_BUSY, HS_E_THREAD, HS_E_CALLER.
int hs_exec_subscriber_new(struct hs_exec *exec,
                           struct hs_exec_broadcast *broadcast,
                           struct hs_exec_subscriber **subscriber);

// Waits for the oldest message that the subscriber has not heard and that is still there. `missed` is the number of
// messages before it that came too fast, and may be NULL. For tasks. HS_E_TIMED_OUT (also with HS_EXEC_NO_WAIT),
// HS_E_BUSY (another task uses the subscriber), HS_E_CANCELLED, HS_E_KILLED, HS_E_NEGATIVE, HS_E_NULL, HS_E_FREED,
// HS_E_HANDLE, HS_E_CALLER.
int hs_exec_subscriber_next(struct hs_exec_subscriber *subscriber,
                            int64_t limit_ns,
                            struct hs_exec_message *message,
                            uint64_t *missed);

// Creates a heap of `bytes` bytes (16 to 1,073,741,824), for at most `blocks` blocks in use (1 to 32,767). With
// `memory` = NULL the library allocates them, else the heap has the whole units of 16 bytes in the program's memory,
// which the program uses through blocks only until the heap is deleted or its executive is freed. Tasks wait in the
// `order` HS_EXEC_HEAP_ARRIVAL or HS_EXEC_HEAP_PRIORITY. From outside before or between runs, and from a task of the
// executive. Allocates; its records take 2 bytes for each 16 and 48 for each block. The heap is freed with its
// executive. HS_E_RANGE, HS_E_TOO_MANY, HS_E_BUSY, HS_E_THREAD, HS_E_CALLER.
int hs_exec_heap_new(struct hs_exec *exec,
                     void *memory,
                     size_t bytes,
                     size_t blocks,
                     int order,
                     struct hs_exec_heap **heap);

// Gets a block of at least `bytes` bytes, aligned to 16; a task waits until there is one and it is first in line. Its
// contents are what the last user left. Procedures use HS_EXEC_NO_WAIT. Getting and freeing take constant time. A
// request can be refused although a free area is up to an eighth larger. A killed task that waits gets none, and frees
// what it has before it returns. HS_E_EMPTY (none, or a task waits, and HS_EXEC_NO_WAIT), HS_E_TIMED_OUT, HS_E_RANGE
// (larger than the heap), HS_E_CANCELLED, HS_E_KILLED, HS_E_NEGATIVE, HS_E_NULL, HS_E_FREED, HS_E_HANDLE, HS_E_CALLER.
int hs_exec_heap_get(struct hs_exec_heap *heap,
                     size_t bytes,
                     int64_t limit_ns,
                     void **block);

// Frees a block, and gives blocks to the tasks that wait and have one now. Takes constant time, and more for each such
// task. From tasks and procedures of the executive. A block that was freed before is HS_E_STATE, unless another block
// begins at its address by then. HS_E_STATE (no block in use begins there), HS_E_RANGE (no address of a block of this
// heap), HS_E_FREED, HS_E_HANDLE, HS_E_CALLER.
int hs_exec_heap_free(struct hs_exec_heap *heap,
                      void *block);

// Returns the size of a block in use: the requested size, rounded up to a multiple of 16. From tasks and procedures of
// the executive. HS_E_STATE (no block in use begins there), HS_E_NULL, HS_E_FREED, HS_E_HANDLE, HS_E_CALLER.
int hs_exec_heap_block_bytes(struct hs_exec_heap *heap,
                             const void *block,
                             size_t *bytes);

// Returns how a heap is used. From anywhere in its executive. HS_E_RANGE (the size is not set), HS_E_NULL, HS_E_FREED,
// HS_E_HANDLE, HS_E_CALLER.
int hs_exec_heap_measure(struct hs_exec_heap *heap,
                         struct hs_exec_heap_use *usage);

// Deletes a heap of which no block is in use; while none is, no task waits for one. It is HS_E_FREED from then on. The
// program's memory is the program's again; the library's is freed with the executive. From anywhere in its executive.
// HS_E_STATE (a block is in use), HS_E_FREED, HS_E_HANDLE, HS_E_CALLER.
int hs_exec_heap_delete(struct hs_exec_heap *heap);

// Creates a circular list of `slots` slots (1 to 16,777,216) of 1, 2, 4 or 8 bytes. From outside before or between
// runs, and from a task of the executive. Allocates. The list is freed with its executive. HS_E_RANGE, HS_E_BUSY,
// HS_E_THREAD, HS_E_CALLER.
int hs_exec_list_new(struct hs_exec *exec,
                     size_t slots,
                     size_t slot_bytes,
                     struct hs_exec_list **list);

// Adds a value at the top: the bytes of one slot at `value`. Never waits, takes constant time. From anywhere in its
// executive. HS_E_FULL, HS_E_NULL, HS_E_FREED, HS_E_HANDLE, HS_E_CALLER.
int hs_exec_list_add_top(struct hs_exec_list *list,
                         const void *value);

// Adds a value at the bottom: the bytes of one slot at `value`. Never waits, takes constant time. From anywhere in its
// executive. HS_E_FULL, HS_E_NULL, HS_E_FREED, HS_E_HANDLE, HS_E_CALLER.
int hs_exec_list_add_bottom(struct hs_exec_list *list,
                            const void *value);

// Removes the value at the top and copies the bytes of one slot to `value`. Never waits, takes constant time. From
// anywhere in its executive. HS_E_EMPTY, HS_E_NULL, HS_E_FREED, HS_E_HANDLE, HS_E_CALLER.
int hs_exec_list_remove_top(struct hs_exec_list *list,
                            void *value);

// Removes the value at the bottom and copies the bytes of one slot to `value`. Never waits, takes constant time. From
// anywhere in its executive. HS_E_EMPTY, HS_E_NULL, HS_E_FREED, HS_E_HANDLE, HS_E_CALLER.
int hs_exec_list_remove_bottom(struct hs_exec_list *list,
                               void *value);

// How many values are in a list. From anywhere in its executive. HS_E_NULL, HS_E_FREED, HS_E_HANDLE, HS_E_CALLER.
int hs_exec_list_count(struct hs_exec_list *list,
                       size_t *count);

// Deletes a list and its values. It is HS_E_FREED from then on; its memory is freed with the executive. From anywhere
// in its executive. HS_E_FREED, HS_E_HANDLE, HS_E_CALLER.
int hs_exec_list_delete(struct hs_exec_list *list);

// Creates a selector. From outside before or between runs, and from a task of the executive. Allocates. The selector
// is freed with its executive. HS_E_TOO_MANY, HS_E_BUSY, HS_E_THREAD, HS_E_CALLER.
int hs_exec_selector_new(struct hs_exec *exec,
                         struct hs_exec_selector **selector);

// Waits until one of up to HS_EXEC_MOST_SELECTED objects has something to take: a hs_exec_queue with a message, a
// hs_exec_pipe with bytes, a hs_exec_subscriber with a message that it has not heard. `index` is its place in
// `objects`, the first if there are several. Nothing is taken: take with HS_EXEC_NO_WAIT, and wait again if another
// task was faster. For tasks. HS_E_TIMED_OUT (also with HS_EXEC_NO_WAIT), HS_E_BUSY (another task uses the selector,
// one of the subscribers, or another selector for one of the objects), HS_E_RANGE (no objects or too many),
// HS_E_CANCELLED, HS_E_KILLED, HS_E_NEGATIVE, HS_E_NULL, HS_E_FREED, HS_E_HANDLE, HS_E_CALLER.
int hs_exec_selector_wait(struct hs_exec_selector *selector,
                          const void *const *objects,
                          size_t count,
                          int64_t limit_ns,
                          size_t *index);

// Deletes a selector that no task uses. It is HS_E_FREED from then on; the memory of the handle is freed with the
// executive. For tasks. HS_E_BUSY (another task uses it), HS_E_FREED, HS_E_HANDLE, HS_E_CALLER.
int hs_exec_selector_delete(struct hs_exec_selector *selector);

// Creates a ticker, stopped. From outside before or between runs, and from a task of the executive. Allocates. The
// ticker is freed with its executive. HS_E_BUSY, HS_E_THREAD, HS_E_CALLER.
int hs_exec_ticker_new(struct hs_exec *exec,
                       struct hs_exec_ticker **ticker);

// Starts a ticker, or starts it anew: its first tick is one period from now, and tick n is due n periods from now. For
// tasks. HS_E_RANGE (a period of zero or less), HS_E_BUSY (another task uses it), HS_E_FREED, HS_E_HANDLE,
// HS_E_CALLER.
int hs_exec_ticker_start(struct hs_exec_ticker *ticker,
                         int64_t period_ns);

// Waits for the next tick, never less. Of those that have passed meanwhile it returns the last, at once. `tick` may be
// NULL. After an error the tick is still to come. For tasks. HS_E_STATE (it is not started), HS_E_RANGE (the size in
// `tick` is not set), HS_E_BUSY (another task uses it), HS_E_CANCELLED, HS_E_KILLED, HS_E_NULL, HS_E_FREED,
// HS_E_HANDLE, HS_E_CALLER.
int hs_exec_ticker_next(struct hs_exec_ticker *ticker,
                        struct hs_exec_tick *tick);

// Creates a timer on the time of day (CLOCK_REALTIME), stopped. Its procedure runs above all tasks, must be short, and
// may make the calls that are for anywhere; `expiry` lives until it returns. From outside before or between runs, and
// from a task of the executive. `name` may be NULL. Allocates. The timer is freed with its executive. HS_E_NULL,
// HS_E_TOO_MANY, HS_E_BUSY, HS_E_THREAD, HS_E_CALLER.
int hs_exec_day_timer_new(struct hs_exec *exec,
                          const char *name,
                          void (*procedure)(void *argument, const struct hs_exec_day_expiry *expiry),
                          void *argument,
                          struct hs_exec_day_timer **timer);

// Starts a day timer, or starts it anew: it expires when the clock of the time of day shows `first_unix_ns` (ns since
// 1970, UTC), and then once per period; a period of 0: once. A time that has passed comes at once. It is never early
// by that clock. A clock that is set back makes it wait; one that is set forward past the time lets it expire within a
// second. From anywhere in its executive. HS_E_NEGATIVE, HS_E_FREED, HS_E_HANDLE, HS_E_CALLER.
int hs_exec_day_timer_start_ns(struct hs_exec_day_timer *timer,
                               int64_t first_unix_ns,
                               int64_t period_ns);

// Stops a day timer, if it runs. From anywhere in its executive. HS_E_FREED, HS_E_HANDLE, HS_E_CALLER.
int hs_exec_day_timer_stop(struct hs_exec_day_timer *timer);

// Deletes a day timer, also from its own procedure. It is HS_E_FREED from then on; the memory of the handle is freed
// with the executive. From anywhere in its executive. HS_E_FREED, HS_E_HANDLE, HS_E_CALLER.
int hs_exec_day_timer_delete(struct hs_exec_day_timer *day_timer);

// Leaves a result of this run for the tasks that join it. A later run leaves its own in its place. For tasks.
// HS_E_CALLER.
int hs_exec_task_set_result(uint64_t result);

// The result that a run of a task left last; 0 if none did. Call it after hs_exec_task_join(), which returns how the
// run ended. From anywhere in its executive, and from outside between runs. HS_E_NULL, HS_E_FREED, HS_E_HANDLE.
int hs_exec_task_result(struct hs_exec_task task,
                        uint64_t *result);

// Creates a timer, stopped. Its procedure runs above all tasks, must be short, and may make the calls that are for
// anywhere; `expiry` lives until it returns. From outside before or between runs, and from a task of the executive.
// `name` may be NULL. Allocates. HS_E_NULL, HS_E_TOO_MANY, HS_E_BUSY, HS_E_THREAD, HS_E_CALLER.
int hs_exec_timer_new(struct hs_exec *exec,
                      const char *name,
                      void (*procedure)(void *argument, const struct hs_exec_expiry *expiry),
                      void *argument,
                      struct hs_exec_timer *timer);

// Starts a timer that expires once, when the executive's time is `at_ns`. From anywhere in its executive.
// HS_E_NEGATIVE, HS_E_FREED, HS_E_HANDLE.
int hs_exec_timer_start_ns(struct hs_exec_timer timer, int64_t at_ns);

// Starts a timer that expires at `first_ns` and then once per period (1 or more), without drift. From anywhere in its
// executive. HS_E_NEGATIVE, HS_E_RANGE, HS_E_FREED, HS_E_HANDLE.
int hs_exec_timer_start_periodic_ns(struct hs_exec_timer timer,
                                    int64_t first_ns,
                                    int64_t period_ns);

// Stops a timer, if it runs. From anywhere in its executive. HS_E_FREED, HS_E_HANDLE.
int hs_exec_timer_stop(struct hs_exec_timer timer);

// Deletes a timer; its id is refused from then on. From anywhere in its executive, also from its own procedure.
// HS_E_FREED, HS_E_HANDLE, HS_E_CALLER.
int hs_exec_timer_delete(struct hs_exec_timer timer);

// Attaches an interrupt procedure to HS_EXEC_SOFTWARE, or to a descriptor, which is duplicated. It runs above all
// tasks, must be short, and may make the calls that are for anywhere; `arrival` lives until it returns. `name` may be
// NULL. From outside before or between runs. It is freed with its executive. HS_E_NULL, HS_E_RANGE, HS_E_REFUSED (no
// thread or descriptor), HS_E_BUSY, HS_E_THREAD, HS_E_CALLER.
int hs_exec_interrupt_new(struct hs_exec *exec,
                          const char *name,
                          int source,
                          int descriptor,
                          void (*procedure)(void *argument, const struct hs_exec_arrival *arrival),
                          void *argument,
                          struct hs_exec_interrupt **interrupt);

// Sets an interrupt off. Never blocks. From anywhere: tasks, other threads, signal handlers; it returns a code and
// leaves hs_last_error() as it is. HS_E_FULL (its ring is full; the arrival is lost and counted), HS_E_HANDLE,
// HS_E_FREED.
int hs_exec_interrupt_post(const struct hs_exec_interrupt *interrupt);

#ifdef __cplusplus
}  // extern "C"
#endif  // __cplusplus

#endif  /* HAIRSPRING_EXEC_H */
