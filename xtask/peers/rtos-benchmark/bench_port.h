// What rtos-benchmark asks of a port's header. The suite includes headers of the systems that it knows, so this one is put before each of its sources by the
// compiler's option `-include`, and the suite stays as it is.
#ifndef HS_BENCH_PORT_H
#define HS_BENCH_PORT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

// Nanoseconds of CLOCK_MONOTONIC.
typedef unsigned long long bench_time_t;

// The suite's priorities are those of the executive: 0 is the most urgent.
#define BENCH_LAST_PRIORITY 23
#define PRINTF(...) printf(__VA_ARGS__)
#define ARG_UNUSED(argument) ((void)(argument))
#define __weak __attribute__((weak))

#define RTOS_HAS_THREAD_SPAWN 1
#define RTOS_HAS_THREAD_CREATE_START 1
#define RTOS_HAS_SUSPEND_RESUME 1
#define RTOS_HAS_MESSAGE_QUEUE 1
#define RTOS_HAS_MAIN_ENTRY_POINT 1

#endif
