// The checks of the client: each is counted, and the first that does not hold is told with its line and ends the program.
#ifndef CHECK_H
#define CHECK_H

#include <hairspring.h>
#include <stdio.h>
#include <stdlib.h>

static int checks;

#define CHECK(holds)                                                                                  \
    do {                                                                                              \
        __atomic_fetch_add(&checks, 1, __ATOMIC_RELAXED);                                             \
        if (!(holds)) {                                                                               \
            fprintf(stderr, "line %d: not so: %s (%s)\n", __LINE__, #holds, hs_last_error());         \
            exit(1);                                                                                  \
        }                                                                                             \
    } while (0)

#define IS(code, call)                                                                                           \
    do {                                                                                                         \
        int told = (call);                                                                                       \
        __atomic_fetch_add(&checks, 1, __ATOMIC_RELAXED);                                                        \
        if (told != (code)) {                                                                                    \
            fprintf(stderr, "line %d: %s is %s, not " #code " (%s)\n", __LINE__, #call, hs_error_name(told), hs_last_error()); \
            exit(1);                                                                                             \
        }                                                                                                        \
    } while (0)

#endif
