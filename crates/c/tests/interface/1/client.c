// A program of the interface's first version: compiled with the headers beside it and linked with a library of that version, and run with the library of
// today. This file stays as it is, as those headers do.
#include <hairspring_exec.h>
#include <hairspring_tap.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int checks;

#define CHECK(holds)                                                                              \
    do {                                                                                          \
        checks++;                                                                                 \
        if (!(holds)) {                                                                           \
            fprintf(stderr, "line %d: not so: %s (%s)\n", __LINE__, #holds, hs_last_error());     \
            exit(1);                                                                              \
        }                                                                                         \
    } while (0)

static const int64_t PATIENCE = INT64_C(20000000000);
static hs_exec_task reader, writer;
static hs_exec_queue *queue;
static hs_exec_semaphore semaphore;
static hs_exec_timer timer;
static int expiries, messages;

static void on_timer(void *argument, const hs_exec_expiry *expiry)
{
    CHECK(argument == &timer && expiry->deadline_ns <= hs_exec_now_ns());
    expiries++;
    CHECK(hs_exec_semaphore_signal(semaphore) == HS_OK);
}

static void reads(void *argument, const hs_exec_message *message)
{
    CHECK(argument == &reader && message == NULL);
    hs_exec_message got;
    for (uint64_t number = 0; number < 5; number++) {
        CHECK(hs_exec_queue_receive(queue, PATIENCE, &got) == HS_OK);
        CHECK(got.words[0] == number && got.words[3] == number + 3);
        messages++;
    }
}

static void writes(void *argument, const hs_exec_message *message)
{
    CHECK(argument == &writer && message == NULL);
    // Something behind the structure must stay.
    struct { hs_exec_task_info info; uint64_t behind; } look = { .info = { .size = sizeof look.info }, .behind = 77 };
    int32_t how = -1;
    CHECK(hs_exec_semaphore_wait(semaphore, PATIENCE) == HS_OK);
    for (uint64_t number = 0; number < 5; number++) {
        hs_exec_message one = { .words = { number, 0, 0, number + 3 } };
        CHECK(hs_exec_queue_send(queue, &one, PATIENCE) == HS_OK);
    }
    CHECK(hs_exec_task_join(reader, PATIENCE, &how) == HS_OK && how == HS_EXEC_RETURNED);
    CHECK(hs_exec_task_look(reader, &look.info) == HS_OK);
    CHECK(look.info.state == HS_EXEC_IDLE && look.info.priority == 20 && look.info.wait_ends_ns == -1 && look.behind == 77);
    CHECK(hs_exec_stop() == HS_OK);
}

int main(void)
{
    hs_exec *exec;
    hs_timebase *timebase;
    hs_report report;
    struct { hs_exec_finish finish; uint64_t behind; } end = { .finish = { .size = sizeof end.finish }, .behind = 77 };
    hs_exec_options options = { .size = sizeof options, .backend = HS_EXEC_FIBERS, .cpu = -1, .stack_bytes = 65536 };
    hs_exec_task_options task = { .size = sizeof task, .name = "reader", .entry = reads, .argument = &reader, .priority = 20 };
    CHECK(!strncmp(hs_error_name(HS_E_TIMED_OUT), "TIMED_OUT", 9));
    CHECK(hs_calibrate(&timebase) == HS_OK);
    CHECK(hs_delay_ns(timebase, 10000, &report) == HS_OK && report.late_ns >= 0);
    CHECK(hs_timebase_free(timebase) == HS_OK);
    CHECK(hs_exec_new(&options, &exec) == HS_OK);
    CHECK(hs_exec_task_new(exec, &task, &reader) == HS_OK);
    task.name = "writer";
    task.entry = writes;
    task.argument = &writer;
    task.priority = 30;
    CHECK(hs_exec_task_new(exec, &task, &writer) == HS_OK);
    CHECK(hs_exec_queue_new(exec, 2, &queue) == HS_OK);
    CHECK(hs_exec_semaphore_new(exec, 0, 1, &semaphore) == HS_OK);
    CHECK(hs_exec_timer_new(exec, "timer", on_timer, &timer, &timer) == HS_OK);
    CHECK(hs_exec_timer_start_ns(timer, hs_exec_now_ns() + 1000000) == HS_OK);
    CHECK(hs_exec_task_start(reader) == HS_OK && hs_exec_task_start(writer) == HS_OK);
    CHECK(hs_exec_run(exec, PATIENCE, &end.finish) == HS_OK);
    CHECK(end.finish.stopped == HS_EXEC_ASKED && end.finish.mishaps == 0 && end.behind == 77);
    CHECK(expiries == 1 && messages == 5);
    CHECK(hs_exec_free(exec) == HS_OK);
    printf("checks %d\n", checks);
    return 0;
}
