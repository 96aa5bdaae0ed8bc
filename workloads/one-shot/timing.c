/* A timing event that sets itself again and releases a task, until the task cancels it. */
#include "bulkhead_oneshot.h"

static bh_suspension due;

static void ring(void);

static bh_timing_event event = BH_TIMING_EVENT(ring);

static void ring(void)
{
    bh_set_event(&event, bh_now() + 3);
    bh_set_true(&due);
}

struct told {
    uint64_t jobs;
};

static bh_done tell(struct told *self, bh_job job)
{
    if (self->jobs == 0)
        bh_set_event(&event, bh_now() + 3);
    else
        bh_print_number("told at ", bh_now());
    self->jobs += 1;
    if (self->jobs == 7) {
        bool first = bh_cancel_event(&event), second = bh_cancel_event(&event);
        bh_print(first && !second ? "cancelled, once" : "not cancelled");
    }
    return bh_wait(&due, job);
}

BH_TASK(told, struct told, tell, {0})
