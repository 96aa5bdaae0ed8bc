/* Sporadic events: a timing event at each tick, and jobs that are at least four ticks apart. */
#include "bulkhead_oneshot.h"

static bh_events events = BH_EVENTS(4);
static uint64_t lost;

static void ring(void);

static bh_timing_event event = BH_TIMING_EVENT(ring);

static void ring(void)
{
    if (!bh_arrive(&events))
        lost += 1;
    bh_set_event(&event, bh_now() + 1);
}

struct heard {
    uint64_t jobs;
};

static bh_done hear(struct heard *self, bh_job job)
{
    if (self->jobs == 0)
        bh_set_event(&event, bh_now() + 1);
    else
        bh_print_number("heard at ", bh_now());
    self->jobs += 1;
    if (self->jobs == 6) {
        bh_print_number("lost ", lost);
        bh_cancel_event(&event);
    }
    return bh_await(&events, job);
}

BH_TASK(heard, struct heard, hear, {0})
