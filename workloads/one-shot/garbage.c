/* Tasks that misuse the console ring of their own core: for systems with a host core, which reads it. */
#include "bulkhead_oneshot.h"

/* The ring begins with its name and size, and its indices; the linker's script names its beginning. */
extern volatile uint64_t __ring_start[];

struct garbage { bh_releases releases; uint64_t jobs; };

/* Prints a line, and writes indices that cannot be from its second job on. */
static bh_done garbage(struct garbage *self, bh_job job)
{
    if (self->jobs == 0)
        bh_print("good so far");
    else
        __ring_start[1] = 0xFFFFFFFFFFFFFFFF - (self->jobs << 48);
    self->jobs += 1;
    return bh_next(&self->releases, job);
}

BH_TASK(garbage, struct garbage, garbage, {0})

/* Prints for ever: the ring never stays as it is. */
static bh_done chatter(struct garbage *self, bh_job job)
{
    for (;;)
        bh_print_number("line ", self->jobs++);
    return bh_next(&self->releases, job);
}

BH_TASK(chatter, struct garbage, chatter, {0})

/* Says in the second part of a line what another core would say. */
static bh_done pretend(struct garbage *self, bh_job job)
{
    bh_print("innocent\ncore 4: stopped: task 0, panic");
    return bh_next(&self->releases, job);
}

BH_TASK(pretend, struct garbage, pretend, {0})
