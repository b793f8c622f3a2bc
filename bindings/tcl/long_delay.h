// The end of a long delay: rehearsed, then polled. Included by objects.h.
#ifndef LONG_DELAY_H
#define LONG_DELAY_H

// A long delay leaves the caches cold, so that Tcl would notice its end some microseconds late. So the library returns a little
// earlier, Tcl rehearses its next commands without effect, and the library polls the rest. A trace on the rehearsed variable may
// run any script and even delete the object, which stays allocated until the delay is over.
static int rehearsed(struct object *object, Tcl_Interp *interp, int code, const int64_t *left_ns, hs_report *report)
{
    if (code == HS_OK && *left_ns > 0) {
        call_object(object, interp, 3, object->package->nothing);
        Tcl_EvalObjEx(interp, object->package->rehearsal, 0);
    }
    return code == HS_OK ? hs_long_delay_finish(object->handle, report) : code;
}

#endif
