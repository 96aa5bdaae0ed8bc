/*
 * Tasks of several cores that make entries for one log, and the task that keeps it, as the tasks of these names in Rust (src/several.rs).
 */
#include "bulkhead_oneshot.h"

struct entry {
    uint64_t number, not, again;
};

struct writer {
    bh_output entries;
    bh_releases releases;
    uint64_t number;
};

static bh_done make(struct writer *self, bh_job job)
{
    struct entry entry;
    if (bh_is_ready(&self->entries, sizeof entry) > 0) {
        self->number++;
        entry = (struct entry){self->number, ~self->number, self->number};
        bh_flow_begin(self->number);
        int put = bh_put(&self->entries, &entry, sizeof entry);
        if (put == BH_FULL)
            bh_print_number("no place for entry ", self->number);
        else if (put < 0)
            bh_print("the queue failed");
    }
    return bh_next(&self->releases, job);
}

BH_TASK(first, struct writer, make, {.entries = BH_OUTPUT(0), .number = 1000000})
BH_TASK(second, struct writer, make, {.entries = BH_OUTPUT(0), .number = 2000000})
BH_TASK(third, struct writer, make, {.entries = BH_OUTPUT(0), .number = 3000000})

struct keeper {
    bh_input entries;
    bh_releases releases;
};

static bh_done keep(struct keeper *self, bh_job job)
{
    struct entry entry;
    int taken = bh_take(&self->entries, &entry, sizeof entry);
    if (taken > 0 && entry.number == entry.again && entry.number == ~entry.not) {
        bh_flow_end(entry.number);
        bh_print_number("entry ", entry.number);
    } else if (taken > 0) {
        bh_print("parts of two entries");
    } else if (taken < 0) {
        bh_print("the queue failed");
    }
    return bh_next(&self->releases, job);
}

BH_TASK(keeper, struct keeper, keep, {.entries = BH_INPUT(0)})
