// TRY(call): ends the program with the library's own sentence when a call fails.
#ifndef TRY_H
#define TRY_H

#include <hairspring.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#define TRY(call)                                     \
    do {                                              \
        if ((call) != HS_OK) {                        \
            fprintf(stderr, "%s\n", hs_last_error()); \
            exit(1);                                  \
        }                                             \
    } while (0)

static inline int compare_ns(const void *one, const void *other)
{
    int64_t left = *(const int64_t *)one, right = *(const int64_t *)other;
    return (left > right) - (left < right);
}

// The median of so many numbers, which are sorted.
static inline int64_t median_ns(int64_t *numbers_ns, size_t count)
{
    qsort(numbers_ns, count, sizeof *numbers_ns, compare_ns);
    return numbers_ns[count / 2];
}

#endif
