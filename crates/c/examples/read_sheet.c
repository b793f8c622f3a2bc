// What is in a timing data sheet: read_sheet [FILE]
#include "try.h"

int main(int count, char **arguments)
{
    const char *path = count > 1 ? arguments[1] : "sheets/historic/fermilab-2007.json";
    hs_sheet *sheet;
    hs_contents contents;
    TRY(hs_sheet_read(path, &sheet));
    TRY(hs_sheet_contents(sheet, &contents));
    printf("host %s\n", contents.host);
    printf("chapters %" PRIu32 "\n", contents.chapters);
    printf("rows %" PRIu32 "\n", contents.rows);
    printf("absent %" PRIu32 "\n", contents.absent);
    TRY(hs_sheet_free(sheet));
    return 0;
}
