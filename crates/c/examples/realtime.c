// Asks for a real-time policy and locked memory, and prints what the system granted.
#include "try.h"

int main(void)
{
    hs_wishes wishes = { .size = sizeof(hs_wishes), .policy = HS_POLICY_FIFO, .priority = 50, .cpu = -1, .lock_memory = true };
    hs_real_time *real_time;
    hs_grants grants = { .size = sizeof grants };
    TRY(hs_real_time_apply(&wishes, &real_time, &grants));
    int fifo = grants.policy == HS_GRANTED, locked = grants.lock_memory == HS_GRANTED;
    printf("policy %s\n", fifo ? "fifo" : "other");
    printf("priority %d\n", fifo ? wishes.priority : 0);
    printf("memory_locked %s\n", locked ? "yes" : "no");
    printf("granted %s\n", fifo && locked ? "all" : fifo || locked ? "some" : "none");
    if (grants.refusal)
        fprintf(stderr, "%s\n", grants.refusal);
    TRY(hs_real_time_free(real_time)); // and back to what was before
    return 0;
}
