// The sheet: its contents, and its rows with unit, number and spread, or why they are absent. Included by objects.h.
#ifndef SHEET_H
#define SHEET_H

METHOD(sheet_json)
{
    UNUSED_WORDS;
    const char *json;
    TRY(hs_sheet_json(object->handle, &json));
    return return_object(interp, Tcl_NewStringObj(json, -1));
}

METHOD(sheet_contents)
{
    UNUSED_WORDS;
    hs_contents contents;
    TRY(hs_sheet_contents(object->handle, &contents));
    Tcl_Obj *result = Tcl_NewDictObj();
    put(result, "host", Tcl_NewStringObj(contents.host, -1));
    put_wide(result, "chapters", contents.chapters);
    put_wide(result, "rows", contents.rows);
    put_wide(result, "absent", contents.absent);
    return return_object(interp, result);
}

METHOD(sheet_rows)
{
    UNUSED_WORDS;
    hs_row row;
    Tcl_Obj *result = Tcl_NewListObj(0, NULL);
    for (uint32_t index = 0; hs_sheet_row(object->handle, index, &row) == HS_OK; index++)
        Tcl_ListObjAppendElement(NULL, result, Tcl_NewStringObj(row.id, -1));
    return return_object(interp, result);
}

static void put_text(Tcl_Obj *dictionary, const char *key, const char *text)
{
    if (text)
        put(dictionary, key, Tcl_NewStringObj(text, -1));
}

static void put_number(Tcl_Obj *dictionary, const char *key, double number)
{
    // An absent value has no key.
    if (number == number)
        put(dictionary, key, Tcl_NewDoubleObj(number));
}

METHOD(sheet_row)
{
    (void)count;
    hs_row row;
    TRY(hs_sheet_find(object->handle, Tcl_GetString(words[0]), &row));
    Tcl_Obj *result = Tcl_NewDictObj();
    put_text(result, "label", row.label);
    put_text(result, "unit", row.unit);
    put_text(result, "method", row.method);
    if (!row.reason)
        put_wide(result, "n", (Tcl_WideInt)row.n);
    put_number(result, "min", row.min);
    put_number(result, "q1", row.q1);
    put_number(result, "median", row.median);
    put_number(result, "q3", row.q3);
    put_number(result, "p99", row.p99);
    put_number(result, "max", row.max);
    put_text(result, "reason", row.reason);
    put_text(result, "remedy", row.remedy);
    return return_object(interp, result);
}

static const struct method sheet_methods[] = {
    { "contents", sheet_contents, 0, NULL },
    { "destroy", destroy, 0, NULL },
    { "json", sheet_json, 0, NULL },
    { "row", sheet_row, 1, "id" },
    { "rows", sheet_rows, 0, NULL },
    { NULL, NULL, 0, NULL },
};

#endif
