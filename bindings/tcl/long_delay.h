// The end of a long delay: rehearsed, then polled. A part of objects.h.
#ifndef LONG_DELAY_H
#define LONG_DELAY_H

// A long delay leaves the caches cold, and it would be some microseconds before Tcl has noticed its end. So the library comes back a little
// before, Tcl does for nothing what it is about to do, and the library polls the rest. A trace on what is rehearsed may run anything, and
// even delete the object, which stays until the delay is over.
static int rehearsed(struct object *object, Tcl_Interp *interp, int code, const int64_t *left_ns, hs_report *report)
{
    if (code == HS_OK && *left_ns > 0) {
        call_object(object, interp, 3, object->package->nothing);
        Tcl_EvalObjEx(interp, object->package->rehearsal, 0);
    }
    return code == HS_OK ? hs_long_delay_finish(object->handle, report) : code;
}

#endif
