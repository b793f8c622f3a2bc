// Memory of the executive on every back-end: blocks of any size of a heap, who gets them, what is refused, and what a killed task leaves; and circular lists.
#include "task_check.h"
#include <stdint.h>
#include <string.h>

static hs_exec_heap *heap, *own, *their_heap;
static hs_exec_task test;
static hs_exec_timer timer;
static int in_procedure, ends;
static hs_exec_task killed;
static char given[2][4100];

static hs_exec_heap_use measured(hs_exec_heap *of)
{
    hs_exec_heap_use use = { .size = sizeof use };
    IS(HS_OK, hs_exec_heap_measure(of, &use));
    return use;
}

// Every call with this handle is refused with the code.
static void refused(hs_exec_heap *of, int wanted)
{
    hs_exec_heap_use use = { .size = sizeof use };
    void *block = given;
    size_t bytes;
    IS(wanted, hs_exec_heap_get(of, 1, HS_EXEC_NO_WAIT, &block));
    IS(wanted, hs_exec_heap_get(of, 1, MS, &block));
    IS(wanted, hs_exec_heap_free(of, block));
    IS(wanted, hs_exec_heap_free(of, NULL));
    IS(wanted, hs_exec_heap_block_bytes(of, block, &bytes));
    IS(wanted, hs_exec_heap_measure(of, &use));
    IS(wanted, hs_exec_heap_delete(of));
}

static void arguments(void)
{
    static uint64_t zeros[16];
    hs_exec_heap_use use = { 0 };
    void *block;
    refused(NULL, HS_E_HANDLE);
    refused((hs_exec_heap *)zeros, HS_E_HANDLE);
    refused((hs_exec_heap *)exec, HS_E_HANDLE);
    refused(their_heap, HS_E_HANDLE);
    IS(HS_E_NEGATIVE, hs_exec_heap_get(heap, 1, -1, &block));
    IS(HS_E_NULL, hs_exec_heap_get(heap, 1, MS, NULL));
    IS(HS_E_RANGE, hs_exec_heap_get(heap, 1025, HS_EXEC_NO_WAIT, &block));
    IS(HS_E_RANGE, hs_exec_heap_get(heap, SIZE_MAX, MS, &block));
    IS(HS_E_RANGE, hs_exec_heap_measure(heap, &use));
    IS(HS_E_NULL, hs_exec_heap_measure(heap, NULL));
    IS(HS_E_NULL, hs_exec_heap_block_bytes(heap, given, NULL));
}

static void blocks(void)
{
    void *first, *second, *third;
    size_t bytes;
    IS(HS_OK, hs_exec_heap_get(heap, 1, HS_EXEC_NO_WAIT, &first));
    IS(HS_OK, hs_exec_heap_get(heap, 1000, MS, &second));
    CHECK((uintptr_t)first % 16 == 0 && (uintptr_t)second % 16 == 0);
    memset(first, 1, 16);
    memset(second, 2, 1008);
    CHECK(*(char *)first == 1 && ((char *)first)[15] == 1 && *(char *)second == 2);
    IS(HS_OK, hs_exec_heap_block_bytes(heap, second, &bytes));
    CHECK(bytes == 1008);
    IS(HS_E_STATE, hs_exec_heap_block_bytes(heap, (char *)second + 16, &bytes));
    IS(HS_E_EMPTY, hs_exec_heap_get(heap, 1, HS_EXEC_NO_WAIT, &third));
    IS(HS_E_TIMED_OUT, hs_exec_heap_get(heap, 1, MS, &third));
    hs_exec_heap_use use = measured(heap);
    CHECK(use.bytes == 1024 && use.free_bytes == 0 && use.largest_bytes == 0 && use.least_free_bytes == 0);
    CHECK(use.blocks == 2 && use.most_blocks == 8);
    // Wrong addresses change nothing.
    IS(HS_E_STATE, hs_exec_heap_free(heap, (char *)second + 16));
    IS(HS_E_RANGE, hs_exec_heap_free(heap, (char *)second + 1));
    IS(HS_E_RANGE, hs_exec_heap_free(heap, given));
    IS(HS_E_RANGE, hs_exec_heap_free(heap, NULL));
    CHECK(strstr(hs_last_error(), "no block of this heap"));
    IS(HS_E_STATE, hs_exec_heap_delete(heap));
    IS(HS_OK, hs_exec_heap_free(heap, first));
    IS(HS_E_STATE, hs_exec_heap_free(heap, first));
    IS(HS_OK, hs_exec_heap_free(heap, second));
    // The two are one again.
    IS(HS_OK, hs_exec_heap_get(heap, 1024, HS_EXEC_NO_WAIT, &first));
    IS(HS_OK, hs_exec_heap_free(heap, first));
    // Memory of the program.
    IS(HS_OK, hs_exec_heap_get(own, 4000, HS_EXEC_NO_WAIT, &first));
    CHECK((char *)first > given[0] && (char *)first + 4000 <= given[0] + sizeof given[0] && (uintptr_t)first % 16 == 0);
    IS(HS_OK, hs_exec_heap_free(own, first));
    CHECK(measured(own).free_bytes == measured(own).bytes && measured(own).bytes >= 4080);
}

// ---- who gets a block ----

static void wait_for(size_t bytes)
{
    void *block;
    IS(HS_OK, hs_exec_heap_get(own, bytes, PATIENCE, &block));
    __atomic_fetch_add(&ends, 1, __ATOMIC_RELAXED);
    IS(HS_OK, hs_exec_heap_free(own, block));
}
BODY(wants_much) { NOTHING; wait_for(4000); }
BODY(wants_little) { NOTHING; wait_for(16); }

static void waiting(void)
{
    void *block, *other;
    IS(HS_OK, hs_exec_heap_get(own, 3000, HS_EXEC_NO_WAIT, &block));
    hs_exec_task much = started(10, wants_much);
    until_waits(much);
    // There is room for it, but another stands before it.
    IS(HS_E_EMPTY, hs_exec_heap_get(own, 16, HS_EXEC_NO_WAIT, &other));
    hs_exec_task little = started(5, wants_little);
    until_waits(little);
    CHECK(ends == 0);
    IS(HS_OK, hs_exec_heap_free(own, block));
    ended(much, HS_EXEC_RETURNED);
    ended(little, HS_EXEC_RETURNED);
    CHECK(ends == 2);
}

// ---- killed tasks ----

BODY(waits_until_killed)
{
    NOTHING;
    void *block = NULL;
    IS(HS_E_KILLED, hs_exec_heap_get(own, 4000, HS_EXEC_FOREVER, &block));
    CHECK(block == NULL);
    __atomic_fetch_add(&ends, 1, __ATOMIC_RELAXED);
}

BODY(holds_until_killed)
{
    NOTHING;
    void *block;
    IS(HS_OK, hs_exec_heap_get(own, 2000, HS_EXEC_FOREVER, &block));
    IS(HS_E_KILLED, hs_exec_wait(HS_EXEC_FOREVER));
    // A destructor has no place in C: the task frees what it has.
    IS(HS_OK, hs_exec_heap_free(own, block));
    __atomic_fetch_add(&ends, 1, __ATOMIC_RELAXED);
}

static void kills(void)
{
    hs_exec_heap_use before = measured(own);
    ends = 0;
    hs_exec_task holds = started(10, holds_until_killed);
    until_waits(holds);
    hs_exec_task waits = started(11, waits_until_killed);
    until_waits(waits);
    IS(HS_OK, hs_exec_task_kill(waits));
    ended(waits, HS_EXEC_KILLED);
    IS(HS_OK, hs_exec_task_kill(holds));
    ended(holds, HS_EXEC_KILLED);
    // Killed when its block has been granted, and before it runs.
    void *block;
    IS(HS_OK, hs_exec_heap_get(own, 2000, HS_EXEC_NO_WAIT, &block));
    killed = started(40, waits_until_killed);
    until_waits(killed);
    IS(HS_OK, hs_exec_task_suspend(killed));
    IS(HS_OK, hs_exec_heap_free(own, block));
    IS(HS_OK, hs_exec_task_kill(killed));
    ended(killed, HS_EXEC_KILLED);
    CHECK(ends == 3 && measured(own).free_bytes == before.free_bytes && measured(own).blocks == 0);
}

// ---- circular lists ----

static hs_exec_list *list, *their_list;

static void list_refused(hs_exec_list *of, int wanted)
{
    uint64_t value = 0;
    size_t count;
    IS(wanted, hs_exec_list_add_top(of, &value));
    IS(wanted, hs_exec_list_add_bottom(of, &value));
    IS(wanted, hs_exec_list_remove_top(of, &value));
    IS(wanted, hs_exec_list_remove_bottom(of, &value));
    IS(wanted, hs_exec_list_count(of, &count));
    IS(wanted, hs_exec_list_delete(of));
}

static void lists(void)
{
    static uint64_t zeros[16];
    size_t count;
    list_refused(NULL, HS_E_HANDLE);
    list_refused((hs_exec_list *)zeros, HS_E_HANDLE);
    list_refused((hs_exec_list *)heap, HS_E_HANDLE);
    list_refused(their_list, HS_E_HANDLE);
    IS(HS_E_RANGE, hs_exec_list_new(exec, 0, 4, &list));
    IS(HS_E_RANGE, hs_exec_list_new(exec, 16777217, 4, &list));
    IS(HS_E_RANGE, hs_exec_list_new(exec, 4, 0, &list));
    IS(HS_E_RANGE, hs_exec_list_new(exec, 4, 3, &list));
    IS(HS_E_RANGE, hs_exec_list_new(exec, 4, 16, &list));
    for (size_t bytes = 1; bytes <= 8; bytes *= 2) {
        // What lies beside the slot stays.
        unsigned char in[4][8], out[10];
        for (int number = 0; number < 4; number++)
            memset(in[number], 17 * (number + 1), 8);
        IS(HS_OK, hs_exec_list_new(exec, 3, bytes, &list));
        IS(HS_E_NULL, hs_exec_list_add_top(list, NULL));
        IS(HS_E_EMPTY, hs_exec_list_remove_top(list, out));
        IS(HS_E_EMPTY, hs_exec_list_remove_bottom(list, out));
        IS(HS_OK, hs_exec_list_add_bottom(list, in[1]));
        IS(HS_OK, hs_exec_list_add_bottom(list, in[2]));
        IS(HS_OK, hs_exec_list_add_top(list, in[0]));
        IS(HS_E_FULL, hs_exec_list_add_top(list, in[3]));
        IS(HS_E_FULL, hs_exec_list_add_bottom(list, in[3]));
        IS(HS_E_NULL, hs_exec_list_remove_top(list, NULL));
        IS(HS_E_NULL, hs_exec_list_count(list, NULL));
        IS(HS_OK, hs_exec_list_count(list, &count));
        CHECK(count == 3);
        int order[] = { 0, 2, 1 };
        for (int number = 0; number < 3; number++) {
            memset(out, 0xee, sizeof out);
            if (number == 1)
                IS(HS_OK, hs_exec_list_remove_bottom(list, out));
            else
                IS(HS_OK, hs_exec_list_remove_top(list, out));
            CHECK(memcmp(out, in[order[number]], bytes) == 0 && out[bytes] == 0xee);
        }
        IS(HS_OK, hs_exec_list_delete(list));
        list_refused(list, HS_E_FREED);
    }
    IS(HS_OK, hs_exec_list_new(exec, 1, 2, &list));
}

// ---- procedures, and the end ----

static void on_timer(void *argument, const hs_exec_expiry *expiry)
{
    (void)argument, (void)expiry;
    void *block;
    IS(HS_E_CALLER, hs_exec_heap_get(heap, 16, MS, &block));
    IS(HS_E_CALLER, hs_exec_heap_new(exec, NULL, 64, 1, 0, &heap));
    IS(HS_OK, hs_exec_heap_get(heap, 16, HS_EXEC_NO_WAIT, &block));
    IS(HS_OK, hs_exec_heap_free(heap, block));
    uint16_t value = 7;
    IS(HS_OK, hs_exec_list_add_top(list, &value));
    IS(HS_E_FULL, hs_exec_list_add_top(list, &value));
    in_procedure++;
    IS(HS_OK, hs_exec_wake(test));
}

static void deletion(void)
{
    void *block;
    IS(HS_OK, hs_exec_heap_get(heap, 16, MS, &block));
    IS(HS_E_STATE, hs_exec_heap_delete(heap));
    IS(HS_OK, hs_exec_heap_free(heap, block));
    IS(HS_OK, hs_exec_heap_delete(heap));
    refused(heap, HS_E_FREED);
    // A task makes another.
    IS(HS_OK, hs_exec_heap_new(exec, NULL, 64, 1, HS_EXEC_HEAP_PRIORITY, &heap));
    IS(HS_OK, hs_exec_heap_get(heap, 64, MS, &block));
}

BODY(tests)
{
    NOTHING;
    arguments();
    blocks();
    waiting();
    kills();
    lists();
    IS(HS_OK, hs_exec_timer_start_ns(timer, hs_exec_now_ns() + MS));
    IS(HS_OK, hs_exec_wait(PATIENCE));
    uint16_t value = 0;
    IS(HS_OK, hs_exec_list_remove_bottom(list, &value));
    CHECK(in_procedure == 1 && value == 7);
    deletion();
}

int main(void)
{
    CHECK(sizeof(hs_exec_heap_use) == 56 && offsetof(hs_exec_heap_use, blocks) == 40);
    for (size_t number = 0; number < sizeof BACKENDS / sizeof *BACKENDS; number++) {
        in_procedure = ends = 0;
        hs_exec *other = fresh(BACKENDS[number]);
        exec = fresh(BACKENDS[number]);
        IS(HS_E_RANGE, hs_exec_heap_new(exec, NULL, 15, 1, 0, &heap));
        IS(HS_E_RANGE, hs_exec_heap_new(exec, NULL, SIZE_MAX, 1, 0, &heap));
        IS(HS_E_RANGE, hs_exec_heap_new(exec, NULL, 64, 0, 0, &heap));
        IS(HS_E_RANGE, hs_exec_heap_new(exec, NULL, 64, 32768, 0, &heap));
        IS(HS_E_RANGE, hs_exec_heap_new(exec, NULL, 64, 1, 2, &heap));
        IS(HS_E_NULL, hs_exec_heap_new(exec, NULL, 64, 1, 0, NULL));
        IS(HS_OK, hs_exec_heap_new(exec, NULL, 1024, 8, HS_EXEC_HEAP_ARRIVAL, &heap));
        IS(HS_OK, hs_exec_heap_new(exec, given[0] + 1, sizeof given[0] - 1, 8, HS_EXEC_HEAP_ARRIVAL, &own));
        IS(HS_OK, hs_exec_heap_new(other, NULL, 64, 8, HS_EXEC_HEAP_PRIORITY, &their_heap));
        IS(HS_OK, hs_exec_list_new(other, 2, 2, &their_list));
        // From outside, before a run. Lists need none.
        uint16_t value = 3;
        IS(HS_OK, hs_exec_list_add_top(their_list, &value));
        IS(HS_OK, hs_exec_list_remove_top(their_list, &value));
        void *block;
        IS(HS_E_CALLER, hs_exec_heap_get(heap, 1, HS_EXEC_NO_WAIT, &block));
        IS(HS_E_CALLER, hs_exec_heap_free(heap, given));
        CHECK(measured(heap).free_bytes == 1024);
        test = task(exec, 30, tests, 0);
        IS(HS_OK, hs_exec_timer_new(exec, "t", on_timer, NULL, &timer));
        IS(HS_OK, hs_exec_task_start(test));
        hs_exec_finish finish = run(exec);
        CHECK(finish.stopped == HS_EXEC_FINISHED && in_procedure == 1);
        IS(HS_E_STATE, hs_exec_heap_delete(heap));
        IS(HS_OK, hs_exec_heap_delete(own));
        IS(HS_OK, hs_exec_free(exec));
        IS(HS_OK, hs_exec_free(other));
        refused(heap, HS_E_FREED);
        refused(their_heap, HS_E_FREED);
        list_refused(list, HS_E_FREED);
        list_refused(their_list, HS_E_FREED);
    }
    printf("checks %d\n", checks);
    return 0;
}
