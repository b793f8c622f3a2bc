// What may be called from a signal handler: hs_long_delay_cancel() and hs_long_delay_resume(), whatever they are given.
//
// Symptom: a handler that cancelled a delay whose handle had been freed hung now and then. The error's sentence was formatted and kept, and
// what the signal had interrupted held the allocator's lock. Here the program's own malloc counts calls from within the handler.
#define _GNU_SOURCE
#include <hairspring.h>
#include <signal.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/time.h>

void *__libc_malloc(size_t bytes);
void *__libc_calloc(size_t count, size_t bytes);
void *__libc_realloc(void *memory, size_t bytes);
void __libc_free(void *memory);

static volatile sig_atomic_t in_handler, calls;

static void count(void)
{
    if (in_handler)
        calls++;
}

void *malloc(size_t bytes)
{
    count();
    return __libc_malloc(bytes);
}

void *calloc(size_t number, size_t bytes)
{
    count();
    return __libc_calloc(number, bytes);
}

void *realloc(void *memory, size_t bytes)
{
    count();
    return __libc_realloc(memory, bytes);
}

void free(void *memory)
{
    count();
    __libc_free(memory);
}

static int checks;

#define CHECK(holds)                                                   \
    do {                                                               \
        checks++;                                                      \
        if (!(holds)) {                                                \
            fprintf(stderr, "line %d: not so: %s\n", __LINE__, #holds); \
            return 1;                                                  \
        }                                                              \
    } while (0)

static hs_long_delay *given;
static volatile sig_atomic_t cancelled, resumed;

static void handler(int number)
{
    (void)number;
    in_handler = 1;
    resumed = hs_long_delay_resume(given);
    cancelled = hs_long_delay_cancel(given);
    in_handler = 0;
}

int main(void)
{
    hs_timebase *timebase;
    hs_long_delay *freed, *alive;
    uint64_t garbage[32] = { 1, 2, 3 };
    struct sigaction action = { .sa_handler = handler };
    CHECK(!sigaction(SIGUSR1, &action, NULL) && !sigaction(SIGALRM, &action, NULL));
    CHECK(hs_calibrate(&timebase) == HS_OK);
    CHECK(hs_long_delay_new(timebase, &freed) == HS_OK && hs_long_delay_new(timebase, &alive) == HS_OK);
    CHECK(hs_long_delay_free(freed) == HS_OK);
    // That the counter counts.
    in_handler = 1;
    CHECK(hs_long_delay_ns(freed, 1, NULL) == HS_E_FREED);
    in_handler = 0;
    CHECK(calls > 0 && strstr(hs_last_error(), "freed"));
    calls = 0;
    hs_long_delay_ns(alive, -1, NULL);
    const struct {
        void *handle;
        int code;
    } cases[] = { { freed, HS_E_FREED }, { NULL, HS_E_HANDLE }, { garbage, HS_E_HANDLE }, { timebase, HS_E_HANDLE }, { alive, HS_OK } };
    for (size_t number = 0; number < sizeof cases / sizeof *cases; number++) {
        given = cases[number].handle;
        CHECK(!raise(SIGUSR1));
        CHECK(cancelled == cases[number].code && resumed == cases[number].code);
        CHECK(calls == 0 && strstr(hs_last_error(), "negative"));
    }
    // The delay that the handler interrupts is the one that it cancels.
    CHECK(hs_long_delay_resume(alive) == HS_OK);
    struct itimerval timer = { .it_value.tv_usec = 20000, .it_interval.tv_usec = 20000 };
    CHECK(!setitimer(ITIMER_REAL, &timer, NULL));
    CHECK(hs_long_delay_ns(alive, INT64_C(3600000000000), NULL) == HS_E_CANCELLED);
    timer = (struct itimerval){ 0 };
    CHECK(!setitimer(ITIMER_REAL, &timer, NULL) && calls == 0);
    CHECK(hs_long_delay_free(alive) == HS_OK && hs_timebase_free(timebase) == HS_OK);
    printf("checks %d\n", checks);
    return 0;
}
