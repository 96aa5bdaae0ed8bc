/*
 * Tasks that write over the records of other cores: those of clocks while they wait for the time, and a port's.
 *
 * Why they exist: every core of such a chip can do this, so the kernel must tell it. What they deliberately do not know: whether anybody notices.
 * Windows of cores are at fixed addresses. Those that write over clock records do it to the cores 1 and 5, in jobs that never end.
 */
#include "bulkhead_oneshot.h"

/* The words of a record: what the core asks for, the time, and the way of the message. */
struct record {
    volatile uint64_t ready, sent, way;
};

/* Windows of cores by row and column, 1 MiB each from 4 GiB on; the record is 40 bytes below the port records. */
#define RECORD(core) ((struct record *)(0x100000000u + ((uint64_t)(core) << 20) + 0x7E00 - 40))

/* The cores 1 and 5 as rows and columns. */
static const uint64_t victims[] = {0x001, 0x041};

enum { MESSAGES = 4, DONE = 5, NUMBER = 15, LATE = 1 << 20 };

static uint64_t fold(uint64_t so_far, uint64_t word)
{
    uint64_t mixed = (so_far ^ word) * 0x9E3779B97F4A7C15u;
    return mixed ^ (mixed >> 32);
}

/* The value of a message, as the kernel computes it. */
static uint64_t check(uint64_t core, uint64_t request, uint64_t sent, uint64_t way)
{
    return fold(fold(fold(fold(1, core), request), sent), way) >> 36;
}

struct liar { uint64_t rounds; };

/* Writes a time without looking at what was asked for. */
static bh_done blind(struct liar *self, bh_job job)
{
    for (;; self->rounds++)
        for (int victim = 0; victim < 2; victim++) {
            struct record *record = RECORD(victims[victim]);
            uint64_t number = 1 + self->rounds % MESSAGES;
            record->sent = (uint64_t)LATE << 4 | number;
            record->way = 1 << 4 | number;
        }
    return bh_end(job);
}

/* Reads what was asked for, and answers before the master can: a time that is wrong by LATE counts, with the right value. */
static bh_done answers(struct liar *self, bh_job job)
{
    for (;; self->rounds++)
        for (int victim = 0; victim < 2; victim++) {
            struct record *record = RECORD(victims[victim]);
            uint64_t request = record->ready, number = request & NUMBER;
            if (number < 1 || number > MESSAGES)
                continue;
            uint64_t sent = ((request >> 4) + LATE) << 4 | number;
            record->sent = sent;
            record->way = check(victims[victim], request, sent, 1) << 36 | 1 << 4 | number;
        }
    return bh_end(job);
}

/* Says that all begin at a time that never comes, with the right value. */
static bh_done never(struct liar *self, bh_job job)
{
    for (;; self->rounds++)
        for (int victim = 0; victim < 2; victim++) {
            struct record *record = RECORD(victims[victim]);
            uint64_t receipt = record->ready, sent = ~(uint64_t)0 << 4 | DONE;
            if ((receipt & NUMBER) != DONE)
                continue;
            record->sent = sent;
            record->way = check(victims[victim], receipt, sent, 0) << 36 | DONE;
        }
    return bh_end(job);
}

/* Says in the names of the victims that they have their time. */
static bh_done content(struct liar *self, bh_job job)
{
    for (;; self->rounds++)
        for (int victim = 0; victim < 2; victim++)
            RECORD(victims[victim])->ready = self->rounds << 8 | 15 << 4 | DONE;
    return bh_end(job);
}

/* Leaves nothing in the records. */
static bh_done blank(struct liar *self, bh_job job)
{
    for (;; self->rounds++)
        for (int victim = 0; victim < 2; victim++) {
            struct record *record = RECORD(victims[victim]);
            record->ready = record->sent = record->way = 0;
        }
    return bh_end(job);
}

/* Cores that never start, whose part `slow` plays. */
static const uint64_t silent[] = {0x001, 0x002, 0x003, 0x040, 0x041, 0x042};

enum { SILENT = sizeof silent / sizeof silent[0], PAUSE = 540000 };

/* Asks for each message in the name of a core that never starts, but only 0.9 ms after the one before. */
static bh_done slow(struct liar *self, bh_job job)
{
    uint64_t last[SILENT] = {0}, since[SILENT] = {0};
    for (;; self->rounds++)
        for (int core = 0; core < SILENT; core++) {
            struct record *record = RECORD(silent[core]);
            uint64_t number = record->sent & NUMBER;
            if (number != last[core]) {
                last[core] = number;
                since[core] = bh_cycles();
            }
            if (number < MESSAGES && bh_cycles() - since[core] > PAUSE)
                record->ready = self->rounds << 4 | (number + 1);
        }
    return bh_end(job);
}

BH_TASK(slow, struct liar, slow, {0})

struct dying { bh_help help; uint64_t samples[136], slices; };

/* A helper that takes the lock of port 1 of core 5, which is for its result, says that there is one, and dies. */
static bh_done dies(struct dying *self, bh_job job)
{
    if (bh_slice(&self->help, self->samples, sizeof self->samples) > 0 && ++self->slices == 3) {
        volatile uint32_t *record = (volatile uint32_t *)(0x100000000u + (0x041ull << 20) + 0x7E00 + 32);
        while (__atomic_exchange_n(&record[0], 1, __ATOMIC_ACQUIRE) != 0) {}
        record[1] = 1;
        __builtin_trap();
    }
    return bh_next_section(job);
}

BH_TASK(dies, struct dying, dies, {.help = BH_HELP(0, 0)})
BH_TASK(blind, struct liar, blind, {0})
BH_TASK(answers, struct liar, answers, {0})
BH_TASK(never, struct liar, never, {0})
BH_TASK(content, struct liar, content, {0})
BH_TASK(blank, struct liar, blank, {0})
