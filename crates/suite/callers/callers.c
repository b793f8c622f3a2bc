// Measures the cost of calls from C: callers-c FILE CALLS [pointer]
//
// FILE (8 KiB) is mapped; the program reads the first word of its first page and writes that of its second, so each first access
// maps a page. CALLS is the total number of calls of each kind. With `pointer` the program calls each function through a pointer,
// as programs do that load the library at run time.
//
// Prints one JSON object. `first_ns` is the first call of its kind in this process, between two readings of clock_gettime (on
// Windows of QueryPerformanceCounter, in steps of 100 ns). It includes the cost of a reading: `stamp_ns`, the median of two
// readings with nothing between them. `later_ns` are samples. `now`, `word_read` and `word_write` take less than a stamp, so one
// sample is a block of calls between two stamps, divided by their number (`block`). For `delay_1us` one sample is one call
// between two readings of hs_now_ns. No overhead is subtracted.
#define _GNU_SOURCE
#include <hairspring.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#ifdef _WIN32
#include <windows.h>
#endif

enum { BLOCK = 100, STAMPS = 101 };

#define TRY(call)                                     \
    do {                                              \
        if ((call) != HS_OK) {                        \
            fprintf(stderr, "%s\n", hs_last_error()); \
            exit(1);                                  \
        }                                             \
    } while (0)

static volatile int64_t sink;

#ifdef _WIN32
static const char *const LANGUAGE = "dll";

static int64_t stamp_ns(void)
{
    LARGE_INTEGER count, rate;
    QueryPerformanceCounter(&count);
    QueryPerformanceFrequency(&rate);
    return (int64_t)((double)count.QuadPart * 1e9 / (double)rate.QuadPart);
}
#else
static const char *const LANGUAGE = "c";

static int64_t stamp_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return now.tv_sec * INT64_C(1000000000) + now.tv_nsec;
}
#endif

static int compare(const void *one, const void *other)
{
    int64_t left = *(const int64_t *)one, right = *(const int64_t *)other;
    return (left > right) - (left < right);
}

static int64_t stamp_cost_ns(void)
{
    int64_t costs_ns[STAMPS];
    for (int n = 0; n < STAMPS; n++) {
        int64_t before = stamp_ns();
        costs_ns[n] = stamp_ns() - before;
    }
    qsort(costs_ns, STAMPS, sizeof *costs_ns, compare);
    return costs_ns[STAMPS / 2];
}

static void print(const char *name, int block, int64_t first_ns, const double *later_ns, int samples)
{
    printf(",\"%s\":{\"block\":%d,\"first_ns\":%" PRId64 ",\"later_ns\":[", name, block, first_ns);
    for (int n = 0; n < samples; n++)
        printf("%s%.2f", n ? "," : "", later_ns[n]);
    printf("]}");
}

// One kind of call: `call` once, then in blocks of `size` between two readings of the library's own clock.
#define MEASURE(name, size, call)                                                     \
    do {                                                                              \
        int samples = calls / (size) > 0 ? calls / (size) : 1;                        \
        int64_t before = stamp_ns();                                                  \
        call;                                                                         \
        int64_t first_ns = stamp_ns() - before;                                       \
        for (int sample = 0; sample < samples; sample++) {                            \
            before = hs_now_ns(timebase);                                             \
            for (int n = 0; n < (size); n++)                                          \
                call;                                                                 \
            later_ns[sample] = (double)(hs_now_ns(timebase) - before) / (double)(size); \
        }                                                                             \
        print(name, size, first_ns, later_ns, samples);                               \
    } while (0)

#define MEASURE_ALL(now, delay, read, write)                             \
    do {                                                                 \
        uint32_t word;                                                   \
        MEASURE("now", BLOCK, sink = now(timebase));                     \
        MEASURE("delay_1us", 1, TRY(delay(timebase, 1000, NULL)));       \
        MEASURE("word_read", BLOCK, TRY(read(window, 0, &word)));        \
        MEASURE("word_write", BLOCK, TRY(write(window, 4096, 0x5a5a5a5a))); \
    } while (0)

int main(int count, char **arguments)
{
    int pointer = count == 4 && !strcmp(arguments[3], "pointer");
    int calls = count >= 3 ? atoi(arguments[2]) : 0;
    if ((count != 3 && !pointer) || calls <= 0) {
        fprintf(stderr, "usage: callers-c FILE CALLS [pointer]\n");
        return 2;
    }
    hs_timebase *timebase;
    hs_window *window;
    double *later_ns = malloc((size_t)calls * sizeof *later_ns);
    if (!later_ns)
        return 1;
    memset(later_ns, 1, (size_t)calls * sizeof *later_ns); // Touches each page now, so that no measurement includes a page fault.
    TRY(hs_calibrate(&timebase));
    TRY(hs_window_open(arguments[1], 1, &window));
    printf("{\"language\":\"%s\",\"stamp_ns\":%" PRId64, pointer ? "c_pointer" : LANGUAGE, stamp_cost_ns());
    if (pointer) {
        // Volatile, so that the compiler cannot resolve the pointers.
        int64_t (*volatile now)(const hs_timebase *) = hs_now_ns;
        int (*volatile delay)(const hs_timebase *, int64_t, hs_report *) = hs_delay_ns;
        int (*volatile read)(const hs_window *, size_t, uint32_t *) = hs_window_read_u32;
        int (*volatile write)(const hs_window *, size_t, uint32_t) = hs_window_write_u32;
        MEASURE_ALL(now, delay, read, write);
    } else {
        MEASURE_ALL(hs_now_ns, hs_delay_ns, hs_window_read_u32, hs_window_write_u32);
    }
    printf("}\n");
    free(later_ns);
    TRY(hs_window_free(window));
    TRY(hs_timebase_free(timebase));
    return 0;
}
