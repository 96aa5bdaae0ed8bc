/* Periodic tasks as the paper's for Table 3: each puts a line on the console, sets a flag, computes its next activation and delays until then. */
#include "bulkhead_oneshot.h"

struct periodic {
    bh_releases releases;
    const char *line;
    volatile bool has_run;
};

static bh_done run(struct periodic *self, bh_job job)
{
    bh_print(self->line);
    self->has_run = true;
    return bh_next(&self->releases, job);
}

BH_TASK(p1, struct periodic, run, {.line = "task 1"})
BH_TASK(p2, struct periodic, run, {.line = "task 2"})
BH_TASK(p3, struct periodic, run, {.line = "task 3"})
BH_TASK(p4, struct periodic, run, {.line = "task 4"})
BH_TASK(p5, struct periodic, run, {.line = "task 5"})
BH_TASK(p6, struct periodic, run, {.line = "task 6"})
