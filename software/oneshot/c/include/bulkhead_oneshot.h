/*
 * Tasks of the one-shot RTOS in C.
 *
 * A task has fields, which survive from job to job, and a function that runs one job. The job's last statement returns what the task waits
 * for. All tasks share one stack: nothing on it survives a job, and no operation here waits on it.
 *
 *     struct blink { bh_releases releases; };
 *
 *     static bh_done blink(struct blink *self, bh_job job)
 *     {
 *         bh_print("blink");
 *         return bh_next(&self->releases, job);
 *     }
 *
 *     BH_TASK(blink, struct blink, blink, {0})
 *
 * A description names it by the file and the task's name: program="blink.c::blink".
 *
 * The build refuses a job that may end without saying what its task waits for, a call whose answer to that is not used, a pointer to a local
 * variable that the compiler sees leave the job, and arrays whose length is known only at run time.
 */
#ifndef BULKHEAD_ONESHOT_H
#define BULKHEAD_ONESHOT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define BH_MUST_RETURN __attribute__((warn_unused_result))

/* The job that runs. Pass it to the operation that ends it. */
typedef struct {
    uint64_t bh_private;
} bh_job;

/* What the task waits for. Return it from the job. */
typedef struct {
    uint64_t bh_kind;
    uint64_t bh_value;
} bh_done;

/* What BH_TASK defines. */
typedef struct {
    bh_done (*run)(void *fields, bh_job job);
    void *fields;
    size_t size;
    size_t copies;
} bh_task;

/* How many tasks of an image may be the same; the build says so. */
#ifndef BH_COPIES
#define BH_COPIES 1
#endif

/* Defines the task `name`: the type of its fields, the function of its jobs, and the fields that its first job finds. */
#define BH_TASK(name, type, function, ...)                                                    \
    static type bh_fields_##name[BH_COPIES] = {[0 ... BH_COPIES - 1] = __VA_ARGS__};           \
    static bh_done bh_run_##name(void *fields, bh_job job)                                     \
    {                                                                                         \
        return function((type *)fields, job);                                                 \
    }                                                                                         \
    const bh_task bh_task_##name = {bh_run_##name, bh_fields_##name, sizeof(type), BH_COPIES};

/* Time: ticks of 1 ms, the same on all cores; cycles of this core; the period of the running task in ticks. */
uint64_t bh_now(void);
uint64_t bh_cycles(void);
uint64_t bh_period(void);
/* Number of this core: row << 6 | column. */
uint16_t bh_core(void);

/* What ends a job: one of these words, or the address of one of these constants. An image has only the code behind constants that its files name. */
#define BH_DELAY 0x79616c65645f6862
#define BH_END 0x646e655f68622121
typedef struct {
    void (*bh_private)(void);
    uint64_t bh_mark;
} bh_ending;
extern const bh_ending bh_ending_wait, bh_ending_await, bh_ending_call, bh_ending_next;

/* The task is ready again at a tick; at once if it has come. */
BH_MUST_RETURN static inline bh_done bh_delay_until(bh_job job, uint64_t tick)
{
    (void)job;
    return (bh_done){BH_DELAY, tick};
}

/* The task never runs again. */
BH_MUST_RETURN static inline bh_done bh_end(bh_job job)
{
    (void)job;
    return (bh_done){BH_END, 0};
}

/* Periodic releases without drift. Begin with {0}: the first release is the first job. */
typedef struct {
    uint64_t bh_at;
} bh_releases;

/* A task that messages release (`notify` of a channel) is released by the next one instead; the build defines BH_NOTIFY for its image. */
#ifdef BH_NOTIFY
BH_MUST_RETURN static inline bh_done bh_next(bh_releases *releases, bh_job job)
{
    (void)job;
    return (bh_done){(uintptr_t)&bh_ending_next, (uintptr_t)releases};
}
#else
BH_MUST_RETURN static inline bh_done bh_next(bh_releases *releases, bh_job job)
{
    if (releases->bh_at == 0)
        releases->bh_at = bh_now();
    releases->bh_at += bh_period();
    return bh_delay_until(job, releases->bh_at);
}
#endif

/* A condition that one task waits for. Static; begins with {0}: false. */
typedef struct {
    uint64_t bh_private[4];
} bh_suspension;

/* Releases the task that waits, or lets the next one go on. */
void bh_set_true(bh_suspension *object);
void bh_set_false(bh_suspension *object);
bool bh_is_true(bh_suspension *object);

/* For bh_wait only. */
void bh_make_suspension(bh_suspension *object);

/* The task is ready again when the object is true, which is false then. A second task that waits for it stops for good. */
BH_MUST_RETURN static inline bh_done bh_wait(bh_suspension *object, bh_job job)
{
    (void)job;
    bh_make_suspension(object);
    return (bh_done){(uintptr_t)&bh_ending_wait, (uintptr_t)object};
}

/* Events that release the jobs of one task. Static; begins with BH_EVENTS(minimum): jobs are released at least so many ticks apart, however fast events come; 0: each
 * event releases a job at once. One event is kept in the meantime. */
typedef struct {
    uint64_t bh_minimum;
    uint64_t bh_private[5];
} bh_events;
#define BH_EVENTS(minimum) {(minimum), {0}}

/* An event. False: it is lost, because one is kept already. */
bool bh_arrive(bh_events *events);
/* The task waits for the next event. A second task that waits for them stops for good. */
BH_MUST_RETURN static inline bh_done bh_await(bh_events *events, bh_job job)
{
    (void)job;
    return (bh_done){(uintptr_t)&bh_ending_await, (uintptr_t)events};
}

/* Data that tasks and the actions of timing events share, with entries, which are served in their order. Barriers, bodies and actions run with interrupts
 * masked: they are short, use no floating point and no channels, and do not touch the data in another way.
 *
 *     static bool has_some(const void *data) { return ((const struct box *)data)->count > 0; }
 *     static void take(void *data, uint64_t most) { ... }
 *     static struct box box;
 *     BH_PROTECTED(shared, &box, BH_ENTRY(has_some, take))
 */
typedef struct {
    bool (*bh_barrier)(const void *data);
    void (*bh_body)(void *data, uint64_t parameter);
    uint64_t bh_private[2];
} bh_entry;
#define BH_ENTRY(barrier, body) {(barrier), (body), {0}}

typedef struct {
    void *bh_data;
    bh_entry *bh_entries;
    size_t bh_count;
    uint64_t bh_lent;
    uint64_t bh_called;
    uint64_t bh_parameter;
} bh_protected;

/* Defines the object `name` of this data, with its entries; the first one is entry 0. */
#define BH_PROTECTED(name, data, ...)                                                         \
    static bh_entry bh_entries_##name[] = {__VA_ARGS__};                                       \
    static bh_protected name = {(data), bh_entries_##name,                                     \
                                sizeof bh_entries_##name / sizeof(bh_entry), 0, 0, 0};

/* Changes the data, and serves whoever waits at entries that are open then. False: nothing was done, because the object is in use: an action, body or barrier of its
 * own called it, or stopped in the middle. */
bool bh_update(bh_protected *object, void (*action)(void *data, void *argument), void *argument);

/* The task is ready again once the entry's barrier held and its body has run. It stops for good if another task waits at this entry, there is no such entry, or the
 * object is in use. */
BH_MUST_RETURN static inline bh_done bh_call(bh_protected *object, size_t entry, uint64_t parameter, bh_job job)
{
    (void)job;
    object->bh_called = entry;
    object->bh_parameter = parameter;
    return (bh_done){(uintptr_t)&bh_ending_call, (uintptr_t)object};
}

/* Something that is done at a tick, without a task. Static; begins with BH_TIMING_EVENT(action). The action is called by the timer's interrupt, between
 * any two instructions of a job: it is short, uses no floating point, no channels and no console, and may set suspension objects and timing events. */
typedef struct {
    void (*bh_action)(void);
    uint64_t bh_private[6];
} bh_timing_event;
#define BH_TIMING_EVENT(action) {(action), {0}}

/* Sets it for a tick; one that has come: the next one. A former tick is forgotten. */
void bh_set_event(bh_timing_event *event, uint64_t tick);
/* Takes it back; whether it was set. */
bool bh_cancel_event(bh_timing_event *event);

/* Writes a line to the console of this core, at most 254 bytes; the second one with a number in decimal behind it. */
void bh_print(const char *line);
void bh_print_number(const char *text, uint64_t number);

/* Channels of the description, which number those of a task in the order of the file. They are fields of the task. */
typedef struct {
    uint64_t bh_private[9];
} bh_input;
typedef struct {
    uint64_t bh_private[9];
} bh_output;
#define BH_INPUT(number) {{(number)}}
#define BH_OUTPUT(number) {{(number)}}

/* The description has no such channel, or items of another size. */
#define BH_SIZE -1
/* Whoever took the channel's lock has not given it back. */
#define BH_LOCKED -2
/* Each place of the queue has an item that nobody has taken. */
#define BH_FULL -3
/* The task that reads the channel has stopped for good. */
#define BH_CLOSED -4

/* Makes the port ready before the first item is asked for: 1, or 0 if it was. */
int bh_open(bh_input *input, size_t size);
/* Takes a new item, of a queue the oldest one: 1 if there was one, 0 if not. It never waits: who expects an item asks in its next job again. */
int bh_take(bh_input *input, void *item, size_t size);
/* Whether the reader takes items already: 1 or 0. */
int bh_is_ready(bh_output *output, size_t size);
/* Writes an item over the last one, read or not, or behind those that wait in a queue: 1, or 0 if nobody takes items yet. */
int bh_put(bh_output *output, const void *item, size_t size);

/* Markers for measurements; a flow begins in one task and ends in another one, with the same number. */
void bh_flow_begin(uint64_t number);
void bh_flow_end(uint64_t number);
void bh_span_begin(uint64_t number);
void bh_span_end(uint64_t number);

#endif
