// Three tasks that pass messages, and a timer: samples come each millisecond, are averaged by tens, and are written.
//
// On fibers, so that no right is needed. The most urgent task runs first whenever it has something to do.
#include "try.h"
#include <hairspring_exec.h>

enum { SAMPLES = 50, BLOCK = 10 };
static const int64_t PERIOD_NS = 1000000;

static hs_exec_task sampler, averager, writer;
static int samples, averages, early;
static int64_t first_ns;

// The timer's procedure runs above all tasks and only wakes one.
static void on_timer(void *argument, const hs_exec_expiry *expiry)
{
    (void)argument;
    early += hs_exec_now_ns() < expiry->deadline_ns;
    hs_exec_wake(sampler);
}

// The most urgent: one sample for each wake.
static void sample(void *argument, const hs_exec_message *message)
{
    (void)argument, (void)message;
    for (uint64_t value = 0; value < SAMPLES; value++) {
        // The only other outcome is the end of the run, at which a task returns.
        if (hs_exec_wait(HS_EXEC_FOREVER) != HS_OK)
            return;
        samples++;
        TRY(hs_exec_send(averager, 0, &(hs_exec_message){ .words = { value } }));
    }
}

// Is started with a message, and takes the rest of a block itself.
static void average(void *argument, const hs_exec_message *message)
{
    (void)argument;
    hs_exec_message next;
    uint64_t sum = message->words[0];
    for (int taken = 1; taken < BLOCK; taken++) {
        if (hs_exec_receive(HS_EXEC_ANY, HS_EXEC_FOREVER, &next) != HS_OK)
            return;
        sum += next.words[0];
    }
    TRY(hs_exec_send(writer, 0, &(hs_exec_message){ .words = { sum / BLOCK } }));
}

static void write_down(void *argument, const hs_exec_message *message)
{
    (void)argument;
    averages++;
    fprintf(stderr, "average %d is %d\n", averages, (int)message->words[0]);
    if (averages == SAMPLES / BLOCK)
        TRY(hs_exec_stop());
}

int main(void)
{
    hs_exec *exec;
    hs_exec_timer timer;
    hs_exec_finish finish = { .size = sizeof finish };
    hs_exec_task_options options = { .size = sizeof options, .name = "sampler", .entry = sample, .priority = 10 };
    TRY(hs_exec_new(NULL, &exec));
    TRY(hs_exec_task_new(exec, &options, &sampler));
    options = (hs_exec_task_options){
        .size = sizeof options, .name = "averager", .entry = average, .priority = 20, .mailboxes = { BLOCK, 0, 0, 0 }
    };
    TRY(hs_exec_task_new(exec, &options, &averager));
    options.name = "writer";
    options.entry = write_down;
    options.priority = 30;
    TRY(hs_exec_task_new(exec, &options, &writer));
    TRY(hs_exec_timer_new(exec, "clock", on_timer, NULL, &timer));
    TRY(hs_exec_task_start(sampler));
    first_ns = hs_exec_now_ns() + PERIOD_NS;
    TRY(hs_exec_timer_start_periodic_ns(timer, first_ns, PERIOD_NS));
    TRY(hs_exec_run(exec, INT64_C(10000000000), &finish));
    printf("samples %d\n", samples);
    printf("averages %d\n", averages);
    printf("early %d\n", early);
    printf("stopped %s\n", finish.stopped == HS_EXEC_ASKED ? "asked" : "otherwise");
    printf("mishaps %d\n", (int)finish.mishaps);
    TRY(hs_exec_free(exec));
    return 0;
}
