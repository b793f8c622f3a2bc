// The objects of the package: a command for each handle, with the methods of its noun. Included by hairspring.c.
#ifndef OBJECTS_H
#define OBJECTS_H

#include "report.h"
#include <stdlib.h>
#include <time.h>

// Tcl 9 counts in Tcl_Size, Tcl 8.6 in int.
#ifndef TCL_SIZE_MAX
typedef int Tcl_Size;
#endif

// State of an interpreter.
struct package {
    // The number of objects made, for their names.
    unsigned long made;
    // The script that a long delay evaluates shortly before its end, and the words of a long delay of zero.
    Tcl_Obj *rehearsal;
    Tcl_Obj *nothing[3];
};

// An object: the handle of one noun.
struct object {
    struct package *package;
    const struct noun *noun;
    void *handle;
    Tcl_Command token;
    // The command and the running calls, because a script that a call evaluates may delete the command.
    int users;
};

typedef int method_call(struct object *object, Tcl_Interp *interp, int count, Tcl_Obj *const words[]);

struct method {
    const char *name;
    method_call *call;
    // The number of words after the name, and their names.
    int words;
    const char *usage;
};

struct noun {
    const char *name;
    const struct method *methods;
    void (*free)(void *handle);
    // Called when the command is deleted, perhaps during a call; NULL if nothing goes on between calls.
    void (*end)(void *handle);
};

static int failed(Tcl_Interp *interp, int code)
{
    Tcl_SetObjResult(interp, Tcl_NewStringObj(hs_last_error(), -1));
    Tcl_SetErrorCode(interp, "HAIRSPRING", hs_error_name(code), (char *)NULL);
    return TCL_ERROR;
}

#define TRY(call)                         \
    do {                                  \
        int code = (call);                \
        if (code != HS_OK)                \
            return failed(interp, code);  \
    } while (0)

static int return_wide(Tcl_Interp *interp, Tcl_WideInt value)
{
    Tcl_SetObjResult(interp, Tcl_NewWideIntObj(value));
    return TCL_OK;
}

static int return_object(Tcl_Interp *interp, Tcl_Obj *value)
{
    Tcl_SetObjResult(interp, value);
    return TCL_OK;
}

static int64_t kernel_clock_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return now.tv_sec * INT64_C(1000000000) + now.tv_nsec;
}

static int get_wide(Tcl_Interp *interp, Tcl_Obj *word, int64_t *value)
{
    Tcl_WideInt wide;
    if (Tcl_GetWideIntFromObj(interp, word, &wide) != TCL_OK)
        return TCL_ERROR;
    *value = wide;
    return TCL_OK;
}

// Returns the report if the delay succeeded.
static int return_report(Tcl_Interp *interp, int code, Tcl_Obj *value)
{
    if (code == HS_OK)
        Tcl_SetObjResult(interp, value);
    Tcl_DecrRefCount(value);
    return code == HS_OK ? TCL_OK : failed(interp, code);
}

static Tcl_Obj *instant_object(const hs_instant *instant)
{
    Tcl_Obj *parts[] = { Tcl_NewWideIntObj(instant->monotonic_ns), Tcl_NewWideIntObj(instant->epoch) };
    return Tcl_NewListObj(2, parts);
}

static int get_instant(Tcl_Interp *interp, Tcl_Obj *word, hs_instant *instant)
{
    Tcl_Size count;
    Tcl_Obj **parts;
    int64_t epoch;
    if (Tcl_ListObjGetElements(interp, word, &count, &parts) != TCL_OK)
        return TCL_ERROR;
    if (count != 2) {
        Tcl_SetObjResult(interp, Tcl_ObjPrintf("expected an instant {ns epoch} but got \"%s\"", Tcl_GetString(word)));
        Tcl_SetErrorCode(interp, "TCL", "VALUE", "INSTANT", (char *)NULL);
        return TCL_ERROR;
    }
    if (get_wide(interp, parts[0], &instant->monotonic_ns) != TCL_OK || get_wide(interp, parts[1], &epoch) != TCL_OK)
        return TCL_ERROR;
    if (epoch < 0 || epoch > UINT32_MAX) {
        Tcl_SetObjResult(interp, Tcl_ObjPrintf("expected an epoch number but got \"%s\"", Tcl_GetString(parts[1])));
        Tcl_SetErrorCode(interp, "HAIRSPRING", "EPOCH", (char *)NULL);
        return TCL_ERROR;
    }
    instant->epoch = (uint32_t)epoch;
    return TCL_OK;
}

// ---- objects -------------------------------------------------------------------------------------------------------------------------

static void release(struct object *object)
{
    if (--object->users > 0)
        return;
    object->noun->free(object->handle);
    ckfree((char *)object);
}

static int call_object(ClientData data, Tcl_Interp *interp, int count, Tcl_Obj *const words[])
{
    struct object *object = data;
    int index;
    if (count < 2) {
        Tcl_WrongNumArgs(interp, 1, words, "method ?argument ...?");
        return TCL_ERROR;
    }
    if (Tcl_GetIndexFromObjStruct(interp, words[1], object->noun->methods, sizeof(struct method), "method", TCL_EXACT, &index) != TCL_OK)
        return TCL_ERROR;
    const struct method *method = &object->noun->methods[index];
    if (count - 2 != method->words) {
        Tcl_WrongNumArgs(interp, 2, words, method->usage);
        return TCL_ERROR;
    }
    object->users++;
    int code = method->call(object, interp, count - 2, words + 2);
    release(object);
    return code;
}

static void delete_object(ClientData data)
{
    struct object *object = data;
    if (object->noun->end)
        object->noun->end(object->handle);
    release(object);
}

// Makes the object command of a handle, and returns its name.
static int new_object(struct package *package, Tcl_Interp *interp, const struct noun *noun, void *handle)
{
    Tcl_Obj *name = NULL;
    Tcl_CmdInfo taken;
    do {
        if (name)
            Tcl_DecrRefCount(name);
        name = Tcl_ObjPrintf("::hairspring::%s%lu", noun->name, ++package->made);
        Tcl_IncrRefCount(name);
    } while (Tcl_GetCommandInfo(interp, Tcl_GetString(name), &taken));
    struct object *object = (struct object *)ckalloc(sizeof *object);
    *object = (struct object){ .package = package, .noun = noun, .handle = handle, .users = 1 };
    object->token = Tcl_CreateObjCommand(interp, Tcl_GetString(name), call_object, object, delete_object);
    Tcl_SetObjResult(interp, name);
    Tcl_DecrRefCount(name);
    return TCL_OK;
}

static int destroy(struct object *object, Tcl_Interp *interp, int count, Tcl_Obj *const words[])
{
    (void)count, (void)words;
    Tcl_DeleteCommandFromToken(interp, object->token);
    return TCL_OK;
}

// Finds the object that a word names, if it is one of this noun.
static int get_object(Tcl_Interp *interp, Tcl_Obj *word, const struct noun *noun, struct object **object)
{
    Tcl_CmdInfo info;
    if (Tcl_GetCommandInfo(interp, Tcl_GetString(word), &info) && info.objProc == call_object) {
        *object = info.objClientData;
        if ((*object)->noun == noun)
            return TCL_OK;
    }
    Tcl_SetObjResult(interp, Tcl_ObjPrintf("expected a %s but got \"%s\"", noun->name, Tcl_GetString(word)));
    Tcl_SetErrorCode(interp, "HAIRSPRING", "HANDLE", (char *)NULL);
    return TCL_ERROR;
}

// ---- delays --------------------------------------------------------------------------------------------------------------------------

#define METHOD(name) static int name(struct object *object, Tcl_Interp *interp, int count, Tcl_Obj *const words[])
#define UNUSED_WORDS (void)count, (void)words

// Runs the preparation before it reads its words.
#define DELAY(name, type, get, first, call)                     \
    METHOD(name)                                                \
    {                                                           \
        (void)count;                                            \
        first;                                                  \
        hs_report *report;                                      \
        type request;                                           \
        if (get(interp, words[0], &request) != TCL_OK)          \
            return TCL_ERROR;                                   \
        Tcl_Obj *value = new_report(&report);                   \
        int code = (call);                                      \
        return return_report(interp, code, value);              \
    }
DELAY(timebase_delay_ns, int64_t, get_wide, , hs_delay_ns(object->handle, request, report))
DELAY(timebase_delay_us, double, Tcl_GetDoubleFromObj, , hs_delay_us(object->handle, request, report))
DELAY(timebase_delay_until, hs_instant, get_instant, , hs_delay_until(object->handle, &request, report))

#include "long_delay.h"

#define START int64_t start_ns = kernel_clock_ns(), left_ns = 0
#define BEGIN(kind, ...) rehearsed(object, interp, hs_long_delay_begin_##kind(object->handle, __VA_ARGS__, &left_ns), &left_ns, report)
DELAY(long_delay_ns, int64_t, get_wide, START, BEGIN(ns, request, start_ns))
DELAY(long_delay_us, double, Tcl_GetDoubleFromObj, START, BEGIN(us, request, start_ns))
DELAY(long_delay_until, hs_instant, get_instant, int64_t left_ns = 0, BEGIN(until, &request))

// ---- the time base -------------------------------------------------------------------------------------------------------------------

static const struct noun timebase_noun, long_delay_noun, profile_noun, real_time_noun, window_noun, sheet_noun, timer_noun;

METHOD(timebase_now_ns)
{
    UNUSED_WORDS;
    return return_wide(interp, hs_now_ns(object->handle));
}

METHOD(timebase_now_us)
{
    UNUSED_WORDS;
    return return_object(interp, Tcl_NewDoubleObj(hs_now_us(object->handle)));
}

METHOD(timebase_now)
{
    UNUSED_WORDS;
    hs_instant now;
    TRY(hs_now(object->handle, &now));
    return return_object(interp, instant_object(&now));
}

METHOD(timebase_calibration)
{
    UNUSED_WORDS;
    hs_calibration known;
    TRY(hs_timebase_calibration(object->handle, &known));
    Tcl_Obj *result = Tcl_NewDictObj();
    put(result, "frequency_hz", Tcl_NewDoubleObj(known.frequency_hz));
    put(result, "bound_ppm", Tcl_NewDoubleObj(known.bound_ppm));
    put_wide(result, "baseline_ns", known.baseline_ns);
    put(result, "discipline_ppm", Tcl_NewDoubleObj(known.discipline_ppm));
    put_wide(result, "wall_ns", known.wall_ns);
    put_wide(result, "cpu_ns", known.cpu_ns);
    put_wide(result, "skew_ns", known.skew_ns);
    put_wide(result, "epoch", known.epoch);
    return return_object(interp, result);
}

METHOD(timebase_trust)
{
    UNUSED_WORDS;
    hs_trust trust;
    TRY(hs_timebase_trust(object->handle, &trust));
    Tcl_Obj *result = Tcl_NewDictObj(), *reasons = Tcl_NewListObj(0, NULL);
    put(result, "trusted", Tcl_NewBooleanObj(trust.trusted));
    put(result, "guest", Tcl_NewBooleanObj(trust.guest));
    put(result, "source", Tcl_NewStringObj(trust.source == HS_SOURCE_COUNTER ? "counter" : "kernel_clock", -1));
    put(result, "text", Tcl_NewStringObj(trust.text, -1));
    const char *text;
    for (uint32_t index = 0; hs_timebase_reason(object->handle, index, &text) == HS_OK; index++)
        Tcl_ListObjAppendElement(NULL, reasons, Tcl_NewStringObj(text, -1));
    put(result, "reasons", reasons);
    return return_object(interp, result);
}

METHOD(timebase_refine)
{
    UNUSED_WORDS;
    static const char *const kinds[] = { "continued", "rerated", "suspended", "stepped", "distrusted" };
    hs_timebase *successor;
    hs_continuity continuity;
    TRY(hs_timebase_refine(object->handle, &successor, &continuity));
    new_object(object->package, interp, &timebase_noun, successor);
    Tcl_Obj *result = Tcl_NewDictObj();
    put(result, "timebase", Tcl_GetObjResult(interp));
    put(result, "continuity", Tcl_NewStringObj(kinds[continuity.kind], -1));
    put_wide(result, "by_ns", continuity.by_ns);
    return return_object(interp, result);
}

static const struct method timebase_methods[] = {
    { "calibration", timebase_calibration, 0, NULL },
    { "delay_ns", timebase_delay_ns, 1, "ns" },
    { "delay_until", timebase_delay_until, 1, "instant" },
    { "delay_us", timebase_delay_us, 1, "us" },
    { "destroy", destroy, 0, NULL },
    { "now", timebase_now, 0, NULL },
    { "now_ns", timebase_now_ns, 0, NULL },
    { "now_us", timebase_now_us, 0, NULL },
    { "refine", timebase_refine, 0, NULL },
    { "trust", timebase_trust, 0, NULL },
    { NULL, NULL, 0, NULL },
};

// ---- the long delay ------------------------------------------------------------------------------------------------------------------

// The number of delays for `tune`, as in the library: this many if they take at most a second, otherwise fewer, but at least 11.
#define TUNE_DELAYS 51
#define TUNE_DELAYS_LEAST 11
#define TUNE_TIME_NS INT64_C(1000000000)

static int ascending(const void *one, const void *other)
{
    int64_t left = *(const int64_t *)one, right = *(const int64_t *)other;
    return (left > right) - (left < right);
}

// The library's own tuning finds the lead for a caller in C. So this function times commands as a script calls them.
METHOD(long_delay_tune)
{
    (void)count;
    int64_t late_ns[TUNE_DELAYS], request_ns, delays = TUNE_DELAYS;
    if (get_wide(interp, words[0], &request_ns) != TCL_OK)
        return TCL_ERROR;
    if (request_ns > TUNE_TIME_NS / TUNE_DELAYS)
        delays = request_ns > TUNE_TIME_NS / TUNE_DELAYS_LEAST ? TUNE_DELAYS_LEAST : TUNE_TIME_NS / request_ns;
    TRY(hs_long_delay_set_lead_ns(object->handle, 0));
    Tcl_Obj *parts[] = { Tcl_NewObj(), Tcl_NewStringObj("delay_ns", -1), words[0] };
    Tcl_GetCommandFullName(interp, object->token, parts[0]);
    Tcl_Obj *script = Tcl_NewListObj(3, parts);
    Tcl_IncrRefCount(script);
    int code = TCL_OK;
    for (int64_t delay = 0; code == TCL_OK && delay < delays; delay++) {
        int64_t start_ns = kernel_clock_ns();
        code = Tcl_EvalObjEx(interp, script, TCL_EVAL_GLOBAL);
        late_ns[delay] = kernel_clock_ns() - start_ns - request_ns;
    }
    Tcl_DecrRefCount(script);
    if (code != TCL_OK)
        return TCL_ERROR;
    qsort(late_ns, (size_t)delays, sizeof *late_ns, ascending);
    int64_t lead_ns = late_ns[delays / 2] > 0 ? late_ns[delays / 2] : 0;
    TRY(hs_long_delay_set_lead_ns(object->handle, lead_ns));
    return return_wide(interp, lead_ns);
}

#define SETTING(name, call)                             \
    METHOD(name)                                        \
    {                                                   \
        (void)count;                                    \
        int64_t ns;                                     \
        if (get_wide(interp, words[0], &ns) != TCL_OK)  \
            return TCL_ERROR;                           \
        TRY(call);                                      \
        return TCL_OK;                                  \
    }
SETTING(long_delay_lead_ns, hs_long_delay_set_lead_ns(object->handle, ns))
SETTING(long_delay_budget_ns, hs_long_delay_set_budget_ns(object->handle, ns))

METHOD(long_delay_adopt)
{
    (void)count;
    struct object *successor;
    if (get_object(interp, words[0], &timebase_noun, &successor) != TCL_OK)
        return TCL_ERROR;
    TRY(hs_long_delay_adopt(object->handle, successor->handle));
    return TCL_OK;
}

METHOD(long_delay_window_ns)
{
    (void)count;
    int64_t request_ns, window_ns;
    if (get_wide(interp, words[0], &request_ns) != TCL_OK)
        return TCL_ERROR;
    TRY(hs_long_delay_window_ns(object->handle, request_ns, &window_ns));
    return return_wide(interp, window_ns);
}

static const struct method long_delay_methods[] = {
    { "adopt", long_delay_adopt, 1, "timebase" },
    { "budget_ns", long_delay_budget_ns, 1, "ns" },
    { "delay_ns", long_delay_ns, 1, "ns" },
    { "delay_until", long_delay_until, 1, "instant" },
    { "delay_us", long_delay_us, 1, "us" },
    { "destroy", destroy, 0, NULL },
    { "lead_ns", long_delay_lead_ns, 1, "ns" },
    { "tune", long_delay_tune, 1, "ns" },
    { "window_ns", long_delay_window_ns, 1, "ns" },
    { NULL, NULL, 0, NULL },
};

// ---- the profile ---------------------------------------------------------------------------------------------------------------------

METHOD(profile_adopt)
{
    (void)count;
    struct object *successor;
    if (get_object(interp, words[0], &timebase_noun, &successor) != TCL_OK)
        return TCL_ERROR;
    TRY(hs_profile_adopt(object->handle, successor->handle));
    return TCL_OK;
}

METHOD(profile_start)
{
    UNUSED_WORDS;
    TRY(hs_profile_start(object->handle));
    return TCL_OK;
}

METHOD(profile_stop)
{
    UNUSED_WORDS;
    int64_t span_ns;
    TRY(hs_profile_stop(object->handle, &span_ns));
    return return_wide(interp, span_ns);
}

// Evaluates a script as one span and returns its result. The script may delete the profile.
METHOD(profile_run)
{
    (void)count;
    hs_profile *profile = object->handle;
    TRY(hs_profile_start(profile));
    int code = Tcl_EvalObjEx(interp, words[0], 0);
    int told = hs_profile_stop(profile, NULL);
    return code == TCL_OK && told != HS_OK ? failed(interp, told) : code;
}

METHOD(profile_summary)
{
    UNUSED_WORDS;
    hs_summary summary;
    TRY(hs_profile_summary(object->handle, &summary));
    Tcl_Obj *result = Tcl_NewDictObj();
    put_wide(result, "count", (Tcl_WideInt)summary.count);
    put_wide(result, "first_ns", summary.first_ns);
    put_wide(result, "min_ns", summary.min_ns);
    put_wide(result, "median_ns", summary.median_ns);
    put_wide(result, "max_ns", summary.max_ns);
    put_wide(result, "mean_ns", summary.mean_ns);
    put_wide(result, "call_cost_ns", summary.call_cost_ns);
    return return_object(interp, result);
}

static const struct method profile_methods[] = {
    { "adopt", profile_adopt, 1, "timebase" },
    { "destroy", destroy, 0, NULL },
    { "run", profile_run, 1, "script" },
    { "start", profile_start, 0, NULL },
    { "stop", profile_stop, 0, NULL },
    { "summary", profile_summary, 0, NULL },
    { NULL, NULL, 0, NULL },
};

// ---- real-time settings --------------------------------------------------------------------------------------------------------------

METHOD(real_time_grants)
{
    UNUSED_WORDS;
    static const char *const fates[] = { "not_asked", "granted", "refused" };
    hs_grants grants = { .size = sizeof grants };
    TRY(hs_real_time_grants(object->handle, &grants));
    Tcl_Obj *result = Tcl_NewDictObj();
    put(result, "policy", Tcl_NewStringObj(fates[grants.policy], -1));
    put(result, "cpu", Tcl_NewStringObj(fates[grants.cpu], -1));
    put(result, "lock_memory", Tcl_NewStringObj(fates[grants.lock_memory], -1));
    put(result, "slack", Tcl_NewStringObj(fates[grants.slack], -1));
    put(result, "idle", Tcl_NewStringObj(fates[grants.idle], -1));
    if (grants.refusal)
        put(result, "refusal", Tcl_NewStringObj(grants.refusal, -1));
    return return_object(interp, result);
}

// Reports settings that the system does not restore; deletes the object in any case.
METHOD(real_time_destroy)
{
    hs_real_time *handle = object->handle;
    object->handle = NULL;
    destroy(object, interp, count, words);
    TRY(hs_real_time_free(handle));
    return TCL_OK;
}

static const struct method real_time_methods[] = {
    { "destroy", real_time_destroy, 0, NULL },
    { "grants", real_time_grants, 0, NULL },
    { NULL, NULL, 0, NULL },
};

// ---- the window ----------------------------------------------------------------------------------------------------------------------

METHOD(window_bytes)
{
    UNUSED_WORDS;
    size_t bytes;
    TRY(hs_window_bytes(object->handle, &bytes));
    return return_wide(interp, (Tcl_WideInt)bytes);
}

// An offset; a negative one is outside every window.
static int get_offset(Tcl_Interp *interp, Tcl_Obj *word, size_t *offset_bytes)
{
    int64_t offset;
    if (get_wide(interp, word, &offset) != TCL_OK)
        return TCL_ERROR;
    *offset_bytes = (size_t)offset;
    return TCL_OK;
}

METHOD(window_read)
{
    (void)count;
    size_t offset_bytes;
    uint32_t value;
    if (get_offset(interp, words[0], &offset_bytes) != TCL_OK)
        return TCL_ERROR;
    TRY(hs_window_read_u32(object->handle, offset_bytes, &value));
    return return_wide(interp, value);
}

METHOD(window_write)
{
    (void)count;
    size_t offset_bytes;
    int64_t value;
    if (get_offset(interp, words[0], &offset_bytes) != TCL_OK || get_wide(interp, words[1], &value) != TCL_OK)
        return TCL_ERROR;
    if (value < 0 || value > UINT32_MAX) {
        Tcl_SetObjResult(interp, Tcl_ObjPrintf("expected a 32-bit word but got \"%s\"", Tcl_GetString(words[1])));
        Tcl_SetErrorCode(interp, "HAIRSPRING", "RANGE", (char *)NULL);
        return TCL_ERROR;
    }
    TRY(hs_window_write_u32(object->handle, offset_bytes, (uint32_t)value));
    return TCL_OK;
}

static const struct method window_methods[] = {
    { "bytes", window_bytes, 0, NULL },
    { "destroy", destroy, 0, NULL },
    { "read", window_read, 1, "offset" },
    { "write", window_write, 2, "offset value" },
    { NULL, NULL, 0, NULL },
};

#include "sheet.h"
#include "timer.h"

#define FREES(noun) \
    static void free_##noun(void *handle) { hs_##noun##_free(handle); }
FREES(timebase)
FREES(long_delay)
FREES(profile)
FREES(real_time)
FREES(window)
FREES(sheet)

static const struct noun timebase_noun = { "timebase", timebase_methods, free_timebase, NULL };
static const struct noun long_delay_noun = { "long_delay", long_delay_methods, free_long_delay, NULL };
static const struct noun profile_noun = { "profile", profile_methods, free_profile, NULL };
static const struct noun real_time_noun = { "real_time", real_time_methods, free_real_time, NULL };
static const struct noun window_noun = { "window", window_methods, free_window, NULL };
static const struct noun sheet_noun = { "sheet", sheet_methods, free_sheet, NULL };
static const struct noun timer_noun = { "timer", timer_methods, free_timer, end_timer };

#endif
