/*
 * A producer and a consumer on two cores of the one-shot RTOS, after the example of the M2OS-mc paper (appendix A): the consumer owns the port and
 * polls it, the producer waits until there is one and then writes an item in each period.
 *
 * Beside them: `other` and `teller`, as the tasks of these names in Rust (src/pipeline.rs).
 */
#include "bulkhead_oneshot.h"

struct item {
    uint64_t number;
    uint64_t square;
};

struct producer {
    bh_output items;
    bh_releases releases;
    uint64_t number;
};

static bh_done produce(struct producer *self, bh_job job)
{
    struct item item = {self->number + 1, (self->number + 1) * (self->number + 1)};
    int ready = bh_is_ready(&self->items, sizeof item);
    if (ready > 0) {
        self->number = item.number;
        bh_flow_begin(item.number);
        ready = bh_put(&self->items, &item, sizeof item);
    }
    if (ready < 0)
        bh_print("no item went out");
    return bh_next(&self->releases, job);
}

BH_TASK(producer, struct producer, produce, {.items = BH_OUTPUT(0)})

struct consumer {
    bh_input items;
    bh_releases releases;
};

static bh_done consume(struct consumer *self, bh_job job)
{
    struct item item;
    int taken = bh_take(&self->items, &item, sizeof item);
    if (taken > 0) {
        bh_flow_end(item.number);
        bh_print_number(item.square == item.number * item.number ? "item " : "broken item ", item.number);
    } else if (taken < 0) {
        bh_print("no item came in");
    }
    return bh_next(&self->releases, job);
}

BH_TASK(consumer, struct consumer, consume, {.items = BH_INPUT(0)})

/* Cycles for each tick of the period: a twenty-fifth of 1 ms at 600 MHz. */
#define SHARE 24000

static void work(void)
{
    uint64_t start = bh_cycles();
    while (bh_cycles() - start < bh_period() * SHARE)
        ;
}

struct periodic {
    bh_releases releases;
};

static bh_done other(struct periodic *self, bh_job job)
{
    work();
    return bh_next(&self->releases, job);
}

BH_TASK(other, struct periodic, other, {{0}})

static bh_done teller(struct periodic *self, bh_job job)
{
    bh_print_number("period ", bh_period());
    work();
    return bh_next(&self->releases, job);
}

BH_TASK(teller, struct periodic, teller, {{0}})
