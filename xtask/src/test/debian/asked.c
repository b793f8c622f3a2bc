/* Tells which limits a program asks for: preloaded, it prints each call of setrlimit, and makes it. For systems whose root may not raise limits,
 * where a session asks in vain. */
#define _GNU_SOURCE
#include <stdio.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

int setrlimit(__rlimit_resource_t which, const struct rlimit *limit) {
    fprintf(stderr, "asked %d %lu %lu\n", (int)which, (unsigned long)limit->rlim_cur, (unsigned long)limit->rlim_max);
    return (int)syscall(SYS_prlimit64, 0, (int)which, limit, NULL);
}
