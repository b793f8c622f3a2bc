// The value that a delay returns. Included by hairspring.c.
//
// Work after a delay would make its caller late. So the value that a delay returns is made before the delay and holds the report
// of the C library; it becomes a dictionary at the first access.
#ifndef REPORT_H
#define REPORT_H

#include <hairspring.h>
#include <string.h>
#include <tcl.h>

static void put(Tcl_Obj *dictionary, const char *key, Tcl_Obj *value)
{
    Tcl_DictObjPut(NULL, dictionary, Tcl_NewStringObj(key, -1), value);
}

static void put_wide(Tcl_Obj *dictionary, const char *key, Tcl_WideInt value)
{
    // An absent value has no key.
    if (value != HS_ABSENT_NS)
        put(dictionary, key, Tcl_NewWideIntObj(value));
}

static void report_free(Tcl_Obj *value)
{
    ckfree((char *)value->internalRep.otherValuePtr);
}

static void report_string(Tcl_Obj *value)
{
    const hs_report *report = value->internalRep.otherValuePtr;
    Tcl_Obj *dictionary = Tcl_NewDictObj(), *gaps = Tcl_NewDictObj();
    put_wide(dictionary, "requested_ns", report->requested_ns);
    put_wide(dictionary, "actual_ns", report->actual_ns);
    put_wide(dictionary, "late_ns", report->late_ns);
    put_wide(dictionary, "slept_ns", report->slept_ns);
    put_wide(dictionary, "polled_ns", report->polled_ns);
    put_wide(dictionary, "window_ns", report->window_ns);
    put_wide(dictionary, "overslept_ns", report->overslept_ns);
    put(dictionary, "verdict", Tcl_NewStringObj(hs_verdict_name(report->verdict), -1));
    put(dictionary, "migrated", Tcl_NewBooleanObj(report->migrated));
    put(dictionary, "budget_spent", Tcl_NewBooleanObj(report->budget_spent));
    put(dictionary, "rerated", Tcl_NewBooleanObj(report->rerated));
    put(dictionary, "throttled", Tcl_NewBooleanObj(report->throttled));
    for (int cause = 0; cause < HS_CAUSES; cause++) {
        const hs_gaps *seen = &report->gaps[cause];
        if (seen->count == 0)
            continue;
        Tcl_Obj *entry = Tcl_NewDictObj();
        put_wide(entry, "count", seen->count);
        put_wide(entry, "total_ns", seen->total_ns);
        put_wide(entry, "longest_ns", seen->longest_ns);
        put(gaps, hs_verdict_name(HS_VERDICT_INTERRUPTED + cause), entry);
    }
    put(dictionary, "gaps", gaps);
    Tcl_IncrRefCount(dictionary);
    const char *text = Tcl_GetString(dictionary);
    value->length = dictionary->length;
    value->bytes = memcpy(ckalloc((size_t)value->length + 1), text, (size_t)value->length + 1);
    Tcl_DecrRefCount(dictionary);
}

static void report_copy(Tcl_Obj *from, Tcl_Obj *to);

static const Tcl_ObjType report_type = { .name = "hairspring report",
                                         .freeIntRepProc = report_free,
                                         .dupIntRepProc = report_copy,
                                         .updateStringProc = report_string };

static void report_copy(Tcl_Obj *from, Tcl_Obj *to)
{
    to->internalRep.otherValuePtr = memcpy(ckalloc(sizeof(hs_report)), from->internalRep.otherValuePtr, sizeof(hs_report));
    to->typePtr = &report_type;
}

// A value for a report that is not written yet.
static Tcl_Obj *new_report(hs_report **report)
{
    Tcl_Obj *value = Tcl_NewObj();
    Tcl_InvalidateStringRep(value);
    *report = memset(ckalloc(sizeof **report), 0, sizeof **report);
    value->internalRep.otherValuePtr = *report;
    value->typePtr = &report_type;
    Tcl_IncrRefCount(value);
    return value;
}

#endif
