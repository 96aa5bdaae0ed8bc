/*
 * A task that sums the squares of 64 numbers with three helpers on other cores.
 *
 * Why they exist: a parallel section in C. What they deliberately do not know: the cores of the helpers.
 */
#include "bulkhead_oneshot.h"

enum { WORDS = 16, HELPERS = 3 };

static uint64_t squares(const uint64_t *numbers)
{
    uint64_t sum = 0;
    for (int at = 0; at < WORDS; at++)
        sum += numbers[at] * numbers[at];
    return sum;
}

struct asker {
    bh_helper helpers[HELPERS];
    uint64_t numbers[HELPERS + 1][WORDS];
    uint64_t round;
};

static bh_done asker(struct asker *self, bh_job job)
{
    bh_section section;
    uint64_t result, missing = 0;
    self->round++;
    for (int part = 0; part <= HELPERS; part++)
        for (int at = 0; at < WORDS; at++)
            self->numbers[part][at] = 100 * self->round + WORDS * part + at;
    if (bh_begin(&section, self->helpers, HELPERS) < 0)
        bh_print("no section");
    for (size_t helper = 0; helper < HELPERS; helper++)
        if (bh_hand(&section, helper, self->numbers[helper + 1], sizeof self->numbers[0]) < 0)
            bh_print_number("no slice for ", helper);
    uint64_t sum = squares(self->numbers[0]);
    for (size_t helper = 0; helper < HELPERS; helper++)
        if (bh_collect(&section, helper, &result, sizeof result) > 0)
            sum += result;
        else
            missing++;
    if (missing == 0) {
        bh_print_number("round ", self->round);
        bh_print_number("sum ", sum);
    }
    /* The bounds rely on it. */
    if (bh_hand(&section, 0, self->numbers[0], sizeof self->numbers[0]) != BH_ORDER)
        bh_print("a slice after a result");
    return bh_next_section(job);
}

struct part {
    bh_help help;
};

static bh_done part(struct part *self, bh_job job)
{
    uint64_t numbers[WORDS], result;
    if (bh_slice(&self->help, numbers, sizeof numbers) > 0) {
        result = squares(numbers);
        if (bh_give(&self->help, &result, sizeof result) <= 0)
            bh_print("no result went out");
        if (bh_give(&self->help, &result, sizeof result) != BH_NOT_ASKED)
            bh_print("a result twice");
    }
    return bh_next_section(job);
}

/* A second section in a job: the kernel stops the task, because bounds count one wait of each job. */
static bh_done twice(struct asker *self, bh_job job)
{
    bh_section first, second;
    bh_print_number("first ", bh_begin(&first, self->helpers, HELPERS) > 0);
    bh_print_number("second ", bh_begin(&second, self->helpers, HELPERS) > 0);
    return bh_next_section(job);
}

/* A second slice in a job: the same. */
static bh_done greedy(struct part *self, bh_job job)
{
    uint64_t numbers[WORDS];
    for (int slices = 0; slices < 2; slices++)
        bh_print_number("slice ", bh_slice(&self->help, numbers, sizeof numbers) > 0);
    return bh_next_section(job);
}

BH_TASK(twice, struct asker, twice, {.helpers = {BH_HELPER(0, 0), BH_HELPER(1, 1), BH_HELPER(2, 2)}})
BH_TASK(greedy, struct part, greedy, {.help = BH_HELP(0, 0)})
BH_TASK(asker, struct asker, asker, {.helpers = {BH_HELPER(0, 0), BH_HELPER(1, 1), BH_HELPER(2, 2)}})
BH_TASK(part, struct part, part, {.help = BH_HELP(0, 0)})
