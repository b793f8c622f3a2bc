// The timer: a command that the interpreter calls at its times. Included by objects.h.
//
// Each timer has a thread, so that the interpreter can do other work meanwhile. Thread and interpreter take turns:
//
//     thread of the timer                              thread of the interpreter
//       waits on a condition, until 2 ms before
//       begins a long delay
//       queues the event, 100 to 500 us before  ────►  finishes the long delay: polls to the planned time
//       waits on the condition                         calls the command
//                                               ◄────  plans the next call
//
// The waking of the interpreter takes tens of microseconds. The long delay learns how long, and leaves so much to the interpreter. So the
// call is late only if the interpreter was busy or woke later than usual. It is never early by CLOCK_MONOTONIC.
//
// `turn` says to whom the long delay and the event belong. So at most one event of a timer is queued, and a command that takes long, or
// enters the event loop, is not called again meanwhile. The condition can be signalled at any time; only a long delay under way must be
// waited for, up to 2 ms.
#ifndef TIMER_H
#define TIMER_H

#include <pthread.h>
#include <signal.h>
#include <unistd.h>

#define TIMER_MOST_NS (INT64_C(100) * 86400 * 1000000000)
// How long before the planned time the long delay begins: enough for a late wake-up from the condition.
#define TIMER_END_NS INT64_C(2000000)
// The thread calls only the library and two functions of Tcl. Small, because locked memory contains the whole stack.
#define TIMER_STACK_BYTES (256 * 1024)

struct timer_event {
    Tcl_Event header;
    struct object *object;
};

struct timer {
    struct object *object;
    Tcl_Interp *interp;
    // A list of words; the planned time, the lateness and the missed periods are appended.
    Tcl_Obj *command;
    hs_long_delay *long_delay;
    int64_t period_ns, planned_ns, calls, missed, missed_since;
    int repeat;
    // The process and the thread of the interpreter. In the child of a fork there is no thread of the timer.
    pid_t process;
    Tcl_ThreadId owner, thread;
    // Whether the thread exists, and the next in the list of all; written under `running_lock`.
    int running;
    struct timer *next;
    pthread_mutex_t lock;
    pthread_cond_t changed;
    // Guarded by `lock`.
    enum { TURN_OF_THREAD, TURN_OF_INTERPRETER } turn;
    int ending;
    // Belong to the one whose turn it is.
    struct timer_event *event;
    int waited;
};

static pthread_mutex_t running_lock = PTHREAD_MUTEX_INITIALIZER;
static struct timer *running_timers;

static int timer_event(Tcl_Event *header, int flags);

static void wait_until(struct timer *timer, int64_t until_ns)
{
    struct timespec until = { .tv_sec = until_ns / 1000000000, .tv_nsec = until_ns % 1000000000 };
    pthread_cond_timedwait(&timer->changed, &timer->lock, &until);
}

static Tcl_ThreadCreateType timer_thread(ClientData data)
{
    struct timer *timer = data;
    sigset_t all;
    sigfillset(&all);
    pthread_sigmask(SIG_BLOCK, &all, NULL);
    pthread_mutex_lock(&timer->lock);
    while (!timer->ending) {
        if (timer->turn == TURN_OF_INTERPRETER) {
            pthread_cond_wait(&timer->changed, &timer->lock);
            continue;
        }
        int64_t now_ns = kernel_clock_ns(), left_ns = timer->planned_ns - now_ns;
        if (left_ns > TIMER_END_NS) {
            wait_until(timer, timer->planned_ns - TIMER_END_NS);
            continue;
        }
        pthread_mutex_unlock(&timer->lock);
        timer->waited = hs_long_delay_begin_ns(timer->long_delay, left_ns > 0 ? left_ns : 0, now_ns, &left_ns);
        pthread_mutex_lock(&timer->lock);
        if (timer->ending)
            break;
        struct timer_event *event = timer->event;
        timer->event = NULL;
        timer->turn = TURN_OF_INTERPRETER;
        Tcl_ThreadQueueEvent(timer->owner, &event->header, TCL_QUEUE_TAIL);
        Tcl_ThreadAlert(timer->owner);
    }
    pthread_mutex_unlock(&timer->lock);
    TCL_THREAD_CREATE_RETURN;
}

// Gives the turn to the thread.
static void plan_call(struct timer *timer, int64_t planned_ns)
{
    struct timer_event *event = (struct timer_event *)ckalloc(sizeof *event);
    *event = (struct timer_event){ .header = { .proc = timer_event }, .object = timer->object };
    pthread_mutex_lock(&timer->lock);
    timer->event = event;
    timer->planned_ns = planned_ns;
    timer->turn = TURN_OF_THREAD;
    pthread_cond_signal(&timer->changed);
    pthread_mutex_unlock(&timer->lock);
}

// Ends the thread and waits for it. The caller holds `running_lock`.
static void join_timer(struct timer *timer)
{
    struct timer **place = &running_timers;
    while (*place && *place != timer)
        place = &(*place)->next;
    if (!*place)
        return;
    *place = timer->next;
    timer->running = 0;
    if (timer->process != getpid())
        return;
    pthread_mutex_lock(&timer->lock);
    timer->ending = 1;
    pthread_cond_signal(&timer->changed);
    pthread_mutex_unlock(&timer->lock);
    int result;
    Tcl_JoinThread(timer->thread, &result);
}

// At the end of the process no thread may queue an event any more.
static void join_all_timers(ClientData data)
{
    (void)data;
    pthread_mutex_lock(&running_lock);
    while (running_timers)
        join_timer(running_timers);
    pthread_mutex_unlock(&running_lock);
}

// An event that is being served has no procedure.
static int is_event_of(Tcl_Event *header, ClientData data)
{
    return header->proc == timer_event && ((struct timer_event *)header)->object == data;
}

static void end_timer(void *handle)
{
    struct timer *timer = handle;
    pthread_mutex_lock(&running_lock);
    join_timer(timer);
    pthread_mutex_unlock(&running_lock);
    Tcl_DeleteEvents(is_event_of, timer->object);
}

static void free_timer(void *handle)
{
    struct timer *timer = handle;
    Tcl_DecrRefCount(timer->command);
    hs_long_delay_free(timer->long_delay);
    if (timer->event)
        ckfree((char *)timer->event);
    // In the child of a fork the thread that is not there may hold them.
    if (timer->process == getpid()) {
        pthread_mutex_destroy(&timer->lock);
        pthread_cond_destroy(&timer->changed);
    }
    ckfree((char *)timer);
}

// Polls to the planned time and calls the command. Returns its code.
static int call_command(struct timer *timer)
{
    Tcl_Interp *interp = timer->interp;
    Tcl_Obj *words = Tcl_DuplicateObj(timer->command);
    Tcl_IncrRefCount(words);
    Tcl_ListObjAppendElement(NULL, words, Tcl_NewWideIntObj(timer->planned_ns));
    int code = TCL_OK, waited = timer->waited;
    if (waited == HS_OK && (waited = hs_long_delay_finish(timer->long_delay, NULL)) != HS_OK)
        code = failed(interp, waited);
    else if (waited != HS_OK) {
        // The sentence belongs to the other thread.
        Tcl_SetObjResult(interp, Tcl_ObjPrintf("failed to wait for the time of a timer: %s", hs_error_name(waited)));
        Tcl_SetErrorCode(interp, "HAIRSPRING", hs_error_name(waited), (char *)NULL);
        code = TCL_ERROR;
    } else {
        timer->calls++;
        timer->missed += timer->missed_since;
        Tcl_ListObjAppendElement(NULL, words, Tcl_NewWideIntObj(kernel_clock_ns() - timer->planned_ns));
        Tcl_ListObjAppendElement(NULL, words, Tcl_NewWideIntObj(timer->missed_since));
        code = Tcl_EvalObjEx(interp, words, TCL_EVAL_GLOBAL);
    }
    Tcl_DecrRefCount(words);
    return code;
}

static int timer_event(Tcl_Event *header, int flags)
{
    struct object *object = ((struct timer_event *)header)->object;
    struct timer *timer = object->handle;
    if (!(flags & TCL_TIMER_EVENTS))
        return 0;
    if (timer->process != getpid())
        return 1;
    Tcl_Interp *interp = timer->interp;
    // The command may destroy the timer and delete the interpreter.
    object->users++;
    Tcl_Preserve(interp);
    int code = call_command(timer);
    if (code != TCL_OK || !timer->repeat)
        end_timer(timer);
    if (code != TCL_OK && !Tcl_InterpDeleted(interp)) {
        Tcl_AddErrorInfo(interp, "\n    (command of a hairspring timer)");
        Tcl_BackgroundException(interp, code);
    }
    if (timer->running) {
        int64_t over_ns = kernel_clock_ns() - timer->planned_ns;
        timer->missed_since = over_ns > 0 ? over_ns / timer->period_ns : 0;
        plan_call(timer, timer->planned_ns + (timer->missed_since + 1) * timer->period_ns);
    }
    Tcl_Release(interp);
    release(object);
    return 1;
}

static int refuse_timer(Tcl_Interp *interp, const char *name, const char *why)
{
    Tcl_SetObjResult(interp, Tcl_ObjPrintf("failed to start a timer: %s", why));
    Tcl_SetErrorCode(interp, "HAIRSPRING", name, (char *)NULL);
    return TCL_ERROR;
}

// Starts the thread. The timer has its object already, because an event names it.
static int start_timer(struct timer *timer, Tcl_Interp *interp)
{
    static int exit_handler;
    pthread_mutex_lock(&running_lock);
    if (!exit_handler++)
        Tcl_CreateExitHandler(join_all_timers, NULL);
    plan_call(timer, kernel_clock_ns() + timer->period_ns);
    timer->running =
        Tcl_CreateThread(&timer->thread, timer_thread, timer, TIMER_STACK_BYTES, TCL_THREAD_JOINABLE) == TCL_OK;
    if (timer->running) {
        timer->next = running_timers;
        running_timers = timer;
    }
    pthread_mutex_unlock(&running_lock);
    if (timer->running)
        return TCL_OK;
    return refuse_timer(interp, "IO", "the system gives it no thread; end others, or raise the limits on threads and memory");
}

// Makes a timer that calls `command` after `period_ns`, and starts it.
static int new_timer(struct package *package, Tcl_Interp *interp, struct object *timebase, int64_t period_ns, Tcl_Obj *command,
                     Tcl_Size command_words, int repeat)
{
    hs_long_delay *long_delay;
    struct object *object;
    if (command_words == 0)
        return refuse_timer(interp, "RANGE", "the command of a timer has no words");
    if (period_ns < 0)
        return refuse_timer(interp, "NEGATIVE", "the time of a timer is negative");
    if (period_ns > TIMER_MOST_NS || (repeat && period_ns == 0))
        return refuse_timer(interp, "RANGE", "the time of a timer is at most 100 days, and a period at least 1 ns");
    if (!Tcl_GetVar2(interp, "tcl_platform", "threaded", TCL_GLOBAL_ONLY))
        return refuse_timer(interp, "REFUSED", "this Tcl was built without threads; use one that has tcl_platform(threaded)");
    TRY(hs_long_delay_new(timebase->handle, &long_delay));
    struct timer *timer = (struct timer *)ckalloc(sizeof *timer);
    *timer = (struct timer){ .interp = interp, .command = command, .long_delay = long_delay, .period_ns = period_ns, .repeat = repeat,
                             .process = getpid(), .owner = Tcl_GetCurrentThread() };
    Tcl_IncrRefCount(command);
    pthread_condattr_t monotonic;
    pthread_condattr_init(&monotonic);
    pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
    pthread_cond_init(&timer->changed, &monotonic);
    pthread_condattr_destroy(&monotonic);
    pthread_mutex_init(&timer->lock, NULL);
    new_object(package, interp, &timer_noun, timer);
    if (get_object(interp, Tcl_GetObjResult(interp), &timer_noun, &object) != TCL_OK)
        return TCL_ERROR;
    timer->object = object;
    if (start_timer(timer, interp) == TCL_OK)
        return TCL_OK;
    Tcl_DeleteCommandFromToken(interp, object->token);
    return TCL_ERROR;
}

// Ends the timer: no call follows. The object stays, with its counts. Takes at most 2 ms. The command may cancel its own timer. It is no error
// to cancel a timer that has ended.
METHOD(timer_cancel)
{
    UNUSED_WORDS;
    (void)interp;
    end_timer(object->handle);
    return TCL_OK;
}

// What the timer was made with, whether it still runs, how often it has called its command, and how many periods have passed without a call.
METHOD(timer_state)
{
    UNUSED_WORDS;
    const struct timer *timer = object->handle;
    Tcl_Obj *result = Tcl_NewDictObj();
    put(result, "running", Tcl_NewBooleanObj(timer->running));
    put(result, "repeat", Tcl_NewBooleanObj(timer->repeat));
    put_wide(result, "period_ns", timer->period_ns);
    put_wide(result, "calls", timer->calls);
    put_wide(result, "missed", timer->missed);
    return return_object(interp, result);
}

static const struct method timer_methods[] = {
    { "cancel", timer_cancel, 0, NULL },
    { "destroy", destroy, 0, NULL },
    { "state", timer_state, 0, NULL },
    { NULL, NULL, 0, NULL },
};

#endif
