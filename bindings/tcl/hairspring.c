// Hairspring for Tcl: `package require hairspring`.
//
// The nouns are those of C. Subcommands of `hairspring` make the objects; each object is a command with these methods:
//
//     hairspring calibrate ?-bound_ppm P -patience_ns N?   a time base:  now_ns now_us now calibration trust refine
//                                                          delay_ns delay_us delay_until destroy
//     hairspring long_delay TIMEBASE                       delay_ns delay_us delay_until tune adopt lead_ns budget_ns window_ns destroy
//     hairspring profile TIMEBASE ?-ordered BOOLEAN?       start stop run summary adopt destroy
//     hairspring real_time ?-policy P -priority N -cpu N -lock_memory BOOLEAN -slack_ns N -idle_ns N?
//                                                          grants destroy
//     hairspring window FILE ?-writable BOOLEAN?           bytes read write destroy
//     hairspring read_sheet FILE                           json contents rows row destroy
//     hairspring take_sheet ?-only IDS -quick BOOLEAN?     the same; runs the command, a minute or more
//     hairspring timer TIMEBASE NS COMMAND ?-repeat BOOLEAN?
//                                                          calls COMMAND, with planned_ns, late_ns and missed appended, after NS
//                                                          or every NS:  cancel state destroy
//     hairspring difference_ns LATER EARLIER               of two instants, as `now` of a time base gives them: {ns epoch}
//     hairspring now_ns TIMEBASE, delay_us TIMEBASE US     the two most common calls without a method call
//     hairspring version
//
// A delay returns a dictionary, the report; so does `row`, a figure with unit, number and spread or the reason why it is absent, and `refine`:
// {timebase NAME continuity KIND by_ns N}, where the kinds suspended, stepped and distrusted begin a new epoch. Absent figures
// have no key. An error of the library has the error code
// {HAIRSPRING NAME}, NAME as in HS_E_NAME; an argument that is not a number has Tcl's own code. No command enters the event loop;
// a timer calls its command from there.
//
// One object belongs to the interpreter that made it, and so to its thread.
#define _POSIX_C_SOURCE 200112L
#define USE_TCL_STUBS
#include "objects.h"

#define COMMAND(name) static int name(ClientData data, Tcl_Interp *interp, int count, Tcl_Obj *const words[])

// Options follow the required arguments in pairs. Returns the index of the next option in `names`, or -1 at the end.
static int next_option(Tcl_Interp *interp, int count, Tcl_Obj *const words[], int *at, const char *const names[], int *option)
{
    *option = -1;
    if (*at == count)
        return TCL_OK;
    if (Tcl_GetIndexFromObj(interp, words[*at], names, "option", TCL_EXACT, option) != TCL_OK)
        return TCL_ERROR;
    if (*at + 1 == count) {
        Tcl_SetObjResult(interp, Tcl_ObjPrintf("value for \"%s\" missing", names[*option]));
        Tcl_SetErrorCode(interp, "TCL", "WRONGARGS", (char *)NULL);
        return TCL_ERROR;
    }
    *at += 2;
    return TCL_OK;
}

// Checks the number of arguments: exactly this many, or at least this many if options may follow.
static int have_words(Tcl_Interp *interp, int count, Tcl_Obj *const words[], int number, int options, const char *usage)
{
    if (options ? count > number : count == number + 1)
        return TCL_OK;
    Tcl_WrongNumArgs(interp, 1, words, usage);
    return TCL_ERROR;
}

COMMAND(calibrate)
{
    static const char *const names[] = { "-bound_ppm", "-patience_ns", NULL };
    double bound_ppm = 0;
    int64_t patience_ns = 1000000000;
    int at = 1, option, bound = 0;
    hs_timebase *timebase;
    while (next_option(interp, count, words, &at, names, &option) == TCL_OK) {
        if (option < 0) {
            TRY(bound ? hs_calibrate_to(bound_ppm, patience_ns, &timebase) : hs_calibrate(&timebase));
            return new_object(data, interp, &timebase_noun, timebase);
        }
        bound |= option == 0;
        if (option == 0 ? Tcl_GetDoubleFromObj(interp, words[at - 1], &bound_ppm) : get_wide(interp, words[at - 1], &patience_ns))
            break;
    }
    return TCL_ERROR;
}

COMMAND(new_long_delay)
{
    struct object *timebase;
    hs_long_delay *made;
    if (have_words(interp, count, words, 1, 0, "timebase") != TCL_OK || get_object(interp, words[1], &timebase_noun, &timebase) != TCL_OK)
        return TCL_ERROR;
    TRY(hs_long_delay_new(timebase->handle, &made));
    return new_object(data, interp, &long_delay_noun, made);
}

COMMAND(profile)
{
    static const char *const names[] = { "-ordered", NULL };
    struct object *timebase;
    hs_profile *made;
    int at = 2, option, ordered = 1;
    if (have_words(interp, count, words, 1, 1, "timebase ?-ordered boolean?") != TCL_OK ||
        get_object(interp, words[1], &timebase_noun, &timebase) != TCL_OK)
        return TCL_ERROR;
    while (next_option(interp, count, words, &at, names, &option) == TCL_OK) {
        if (option < 0) {
            TRY(hs_profile_new(timebase->handle, ordered, &made));
            return new_object(data, interp, &profile_noun, made);
        }
        if (Tcl_GetBooleanFromObj(interp, words[at - 1], &ordered) != TCL_OK)
            break;
    }
    return TCL_ERROR;
}

COMMAND(real_time)
{
    static const char *const names[] = { "-policy", "-priority", "-cpu", "-lock_memory", "-slack_ns", "-idle_ns", NULL };
    static const char *const policies[] = { "keep", "other", "fifo", "round_robin", NULL };
    hs_wishes wishes = { .size = sizeof(hs_wishes), .policy = HS_POLICY_KEEP, .cpu = -1 };
    hs_real_time *made;
    int at = 1, option, good = TCL_OK, lock = 0;
    while (good == TCL_OK && next_option(interp, count, words, &at, names, &option) == TCL_OK) {
        Tcl_Obj *value = words[at - 1];
        switch (option) {
        case 0: good = Tcl_GetIndexFromObj(interp, value, policies, "policy", TCL_EXACT, &wishes.policy); break;
        case 1: good = Tcl_GetIntFromObj(interp, value, &wishes.priority); break;
        case 2: good = Tcl_GetIntFromObj(interp, value, &wishes.cpu); break;
        case 3: good = Tcl_GetBooleanFromObj(interp, value, &lock); break;
        case 4: good = get_wide(interp, value, &wishes.slack_ns); break;
        case 5:
            good = get_wide(interp, value, &wishes.idle_ns);
            // 0 turns idle states off.
            if (!wishes.idle_ns)
                wishes.idle_ns = HS_IDLE_OFF;
            break;
        default:
            wishes.lock_memory = lock;
            TRY(hs_real_time_apply(&wishes, &made, NULL));
            return new_object(data, interp, &real_time_noun, made);
        }
    }
    return TCL_ERROR;
}

COMMAND(window)
{
    static const char *const names[] = { "-writable", NULL };
    hs_window *made;
    int at = 2, option, writable = 0;
    if (have_words(interp, count, words, 1, 1, "file ?-writable boolean?") != TCL_OK)
        return TCL_ERROR;
    while (next_option(interp, count, words, &at, names, &option) == TCL_OK) {
        if (option < 0) {
            TRY(hs_window_open(Tcl_GetString(words[1]), writable, &made));
            return new_object(data, interp, &window_noun, made);
        }
        if (Tcl_GetBooleanFromObj(interp, words[at - 1], &writable) != TCL_OK)
            break;
    }
    return TCL_ERROR;
}

COMMAND(read_sheet)
{
    hs_sheet *made;
    if (have_words(interp, count, words, 1, 0, "file") != TCL_OK)
        return TCL_ERROR;
    TRY(hs_sheet_read(Tcl_GetString(words[1]), &made));
    return new_object(data, interp, &sheet_noun, made);
}

COMMAND(take_sheet)
{
    static const char *const names[] = { "-only", "-quick", NULL };
    const char *only = NULL;
    hs_sheet *made;
    int at = 1, option, quick = 0;
    while (next_option(interp, count, words, &at, names, &option) == TCL_OK) {
        if (option < 0) {
            TRY(hs_sheet_take(only, quick, &made));
            return new_object(data, interp, &sheet_noun, made);
        }
        if (option == 0)
            only = Tcl_GetString(words[at - 1]);
        else if (Tcl_GetBooleanFromObj(interp, words[at - 1], &quick) != TCL_OK)
            break;
    }
    return TCL_ERROR;
}

COMMAND(timer)
{
    static const char *const names[] = { "-repeat", NULL };
    struct object *timebase;
    int64_t period_ns;
    Tcl_Size command_words;
    int at = 4, option, repeat = 0;
    if (have_words(interp, count, words, 3, 1, "timebase ns command ?-repeat boolean?") != TCL_OK ||
        get_object(interp, words[1], &timebase_noun, &timebase) != TCL_OK || get_wide(interp, words[2], &period_ns) != TCL_OK ||
        Tcl_ListObjLength(interp, words[3], &command_words) != TCL_OK)
        return TCL_ERROR;
    while (next_option(interp, count, words, &at, names, &option) == TCL_OK) {
        if (option < 0)
            return new_timer(data, interp, timebase, period_ns, words[3], command_words, repeat);
        if (Tcl_GetBooleanFromObj(interp, words[at - 1], &repeat) != TCL_OK)
            break;
    }
    return TCL_ERROR;
}

COMMAND(difference_ns)
{
    (void)data;
    hs_instant later, earlier;
    int64_t difference_ns;
    if (have_words(interp, count, words, 2, 0, "later earlier") != TCL_OK || get_instant(interp, words[1], &later) != TCL_OK ||
        get_instant(interp, words[2], &earlier) != TCL_OK)
        return TCL_ERROR;
    TRY(hs_difference_ns(&later, &earlier, &difference_ns));
    return return_wide(interp, difference_ns);
}

COMMAND(now_ns)
{
    (void)data;
    struct object *timebase;
    if (have_words(interp, count, words, 1, 0, "timebase") != TCL_OK || get_object(interp, words[1], &timebase_noun, &timebase) != TCL_OK)
        return TCL_ERROR;
    return return_wide(interp, hs_now_ns(timebase->handle));
}

COMMAND(delay_us)
{
    (void)data;
    struct object *timebase;
    if (have_words(interp, count, words, 2, 0, "timebase us") != TCL_OK || get_object(interp, words[1], &timebase_noun, &timebase) != TCL_OK)
        return TCL_ERROR;
    return timebase_delay_us(timebase, interp, count - 2, words + 2);
}

COMMAND(version)
{
    (void)data;
    if (have_words(interp, count, words, 0, 0, NULL) != TCL_OK)
        return TCL_ERROR;
    return return_object(interp, Tcl_NewStringObj(hs_version(), -1));
}

static void delete_package(ClientData data, Tcl_Interp *interp)
{
    (void)interp;
    struct package *package = data;
    Tcl_DecrRefCount(package->rehearsal);
    for (int word = 0; word < 3; word++)
        Tcl_DecrRefCount(package->nothing[word]);
    ckfree((char *)package);
}

DLLEXPORT int Hairspring_Init(Tcl_Interp *interp)
{
    static const struct {
        const char *name;
        Tcl_ObjCmdProc *call;
    } commands[] = {
        { "calibrate", calibrate },   { "delay_us", delay_us },     { "difference_ns", difference_ns }, { "long_delay", new_long_delay },
        { "now_ns", now_ns },         { "profile", profile },       { "read_sheet", read_sheet },       { "real_time", real_time },
        { "take_sheet", take_sheet }, { "timer", timer },           { "version", version },             { "window", window },
    };
    if (!Tcl_InitStubs(interp, "8.6-", 0))
        return TCL_ERROR;
    struct package *package = (struct package *)ckalloc(sizeof *package);
    package->made = 0;
    // A command with a result and a variable for it: the usual code after a delay.
    package->rehearsal = Tcl_NewStringObj("set ::hairspring::rehearsed [::hairspring::difference_ns {0 0} {0 0}]", -1);
    Tcl_IncrRefCount(package->rehearsal);
    package->nothing[0] = Tcl_NewStringObj("long_delay", -1);
    package->nothing[1] = Tcl_NewStringObj("delay_ns", -1);
    package->nothing[2] = Tcl_NewWideIntObj(0);
    for (int word = 0; word < 3; word++)
        Tcl_IncrRefCount(package->nothing[word]);
    Tcl_SetAssocData(interp, "hairspring", delete_package, package);

    Tcl_Namespace *namespace = Tcl_CreateNamespace(interp, "::hairspring", NULL, NULL);
    if (!namespace)
        return TCL_ERROR;
    for (size_t command = 0; command < sizeof commands / sizeof *commands; command++) {
        Tcl_Obj *name = Tcl_ObjPrintf("::hairspring::%s", commands[command].name);
        Tcl_IncrRefCount(name);
        Tcl_CreateObjCommand(interp, Tcl_GetString(name), commands[command].call, package, NULL);
        Tcl_DecrRefCount(name);
        if (Tcl_Export(interp, namespace, commands[command].name, 0) != TCL_OK)
            return TCL_ERROR;
    }
    Tcl_CreateEnsemble(interp, "::hairspring", namespace, TCL_ENSEMBLE_PREFIX);
    return Tcl_PkgProvide(interp, "hairspring", hs_version());
}
