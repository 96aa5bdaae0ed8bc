/*
 * Tasks of the one-shot RTOS in C.
 *
 * A task has fields, which survive from job to job, and a function that runs one job. The job's last statement returns what the task waits
 * for next. All tasks share one stack: nothing on it survives a job, and no operation here waits within a job.
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
 * A description names the task by the file and the task's name: program="blink.c::blink".
 *
 * The build refuses a job that may end without saying what its task waits for, a call whose answer to that is not used, a pointer to a local
 * variable that may be kept for longer than the job, and arrays whose length is known only at run time.
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

/* How many tasks of an image may run the same code. The build defines it. */
#ifndef BH_COPIES
#define BH_COPIES 1
#endif

/* Defines the task `name`: the type of its fields, the function that runs its jobs, and the initial value of its fields. */
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
extern const bh_ending bh_ending_wait, bh_ending_await, bh_ending_call, bh_ending_next, bh_ending_section;

/* The task is ready again at this tick; at once if the tick has passed. */
BH_MUST_RETURN static inline bh_done bh_delay_until(bh_job job, uint64_t tick)
{
    (void)job;
    return (bh_done){BH_DELAY, tick};
}

/* The task never runs again. The kernel tells the host by a marker, which expects no further job then. */
BH_MUST_RETURN static inline bh_done bh_end(bh_job job)
{
    (void)job;
    return (bh_done){BH_END, 0};
}

/* Periodic releases without drift. Initialise it with {0}: the first job is the first release. */
typedef struct {
    uint64_t bh_at;
} bh_releases;

/* If messages release the task (`notify` of a channel), the next message releases it instead. The build defines BH_NOTIFY for such an image. */
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

/* A condition that one task waits for. It must be static; {0} initialises it to false. */
typedef struct {
    uint64_t bh_private[4];
} bh_suspension;

/* Releases the waiting task; if none waits, the next task that waits continues at once. */
void bh_set_true(bh_suspension *object);
void bh_set_false(bh_suspension *object);
bool bh_is_true(bh_suspension *object);

/* For bh_wait only. */
void bh_make_suspension(bh_suspension *object);

/* The task is ready again when the object is true; this makes it false again. If a second task waits for the same object, it stops for good. */
BH_MUST_RETURN static inline bh_done bh_wait(bh_suspension *object, bh_job job)
{
    (void)job;
    bh_make_suspension(object);
    return (bh_done){(uintptr_t)&bh_ending_wait, (uintptr_t)object};
}

/* Events that release the jobs of one task. It must be static; BH_EVENTS(minimum) initialises it. Jobs are released at least `minimum` ticks apart, however fast
 * events arrive; with 0, each event releases a job at once. One event is kept in the meantime. */
typedef struct {
    uint64_t bh_minimum;
    uint64_t bh_private[5];
} bh_events;
#define BH_EVENTS(minimum) {(minimum), {0}}

/* An event arrives. Returns false if it is lost, because one is kept already. */
bool bh_arrive(bh_events *events);
/* The task waits for the next event. If a second task waits for the same events, it stops for good. */
BH_MUST_RETURN static inline bh_done bh_await(bh_events *events, bh_job job)
{
    (void)job;
    return (bh_done){(uintptr_t)&bh_ending_await, (uintptr_t)events};
}

/* Data that tasks and the actions of timing events share. Its entries are served in their order. Barriers, bodies and actions run with interrupts
 * masked: they must be short, use no floating point and no channels, and access the data only through their parameters.
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

/* Changes the data, and then serves the tasks that wait at open entries. Returns false, and does nothing, if the object is in use: an action, body or barrier of
 * its own called it, or stopped in the middle. */
bool bh_update(bh_protected *object, void (*action)(void *data, void *argument), void *argument);

/* The task is ready again once the entry's barrier has been true and its body has run. The task stops for good if another task waits at this entry, if there is no
 * such entry, or if the object is in use. */
BH_MUST_RETURN static inline bh_done bh_call(bh_protected *object, size_t entry, uint64_t parameter, bh_job job)
{
    (void)job;
    object->bh_called = entry;
    object->bh_parameter = parameter;
    return (bh_done){(uintptr_t)&bh_ending_call, (uintptr_t)object};
}

/* An action at a tick, without a task. It must be static; BH_TIMING_EVENT(action) initialises it. The timer's interrupt calls the action between any two
 * instructions of a job. So the action must be short and use no floating point, channels or console; it may set suspension objects and timing events. */
typedef struct {
    void (*bh_action)(void);
    uint64_t bh_private[6];
} bh_timing_event;
#define BH_TIMING_EVENT(action) {(action), {0}}

/* Sets the event for a tick, in place of an earlier one. If the tick has passed, the event happens at the next tick. */
void bh_set_event(bh_timing_event *event, uint64_t tick);
/* Cancels the event. Returns whether it was set. */
bool bh_cancel_event(bh_timing_event *event);

/* Write a line of at most 254 bytes to the console of this core; the second function adds a number in decimal. */
void bh_print(const char *line);
void bh_print_number(const char *text, uint64_t number);

/* Channels of the description. They are fields of the task. Inputs and outputs of a task are numbered in the order of the file. */
typedef struct {
    uint64_t bh_private[9];
} bh_input;
typedef struct {
    uint64_t bh_private[9];
} bh_output;
#define BH_INPUT(number) {{(number)}}
#define BH_OUTPUT(number) {{(number)}}

/* The description has no such channel, or its items have another size. */
#define BH_SIZE -1
/* Another task holds the channel's lock and does not release it. */
#define BH_LOCKED -2
/* The queue is full of items that its reader has not taken. */
#define BH_FULL -3
/* The task that reads the channel has stopped for good. */
#define BH_CLOSED -4

/* Makes the port ready before the task asks for its first item. Returns 1, or 0 if the port was ready already. */
int bh_open(bh_input *input, size_t size);
/* Takes a new item; from a queue, the oldest one. Returns 1 if there was one, 0 if not. It never waits: a task that expects an item asks again in its next job. */
int bh_take(bh_input *input, void *item, size_t size);
/* Returns 1 if the reader takes items already, 0 if not. */
int bh_is_ready(bh_output *output, size_t size);
/* Writes an item: in place of the last one, read or not, or to the end of a queue. Returns 1, or 0 if the reader does not take items yet. */
int bh_put(bh_output *output, const void *item, size_t size);

/* Parallel sections: a task hands slices of its work to helpers on other cores and waits for their results within its job, for as long as the `wait` of its
 * description allows. Slices and results are aligned words: their sizes are multiples of 8 bytes, and so are their addresses. Helpers are fields of the task;
 * each has an output for slices and an input for results, by their numbers. A section is a local variable of the job.
 *
 *     struct work { bh_helper helpers[3]; ... };
 *     bh_section section;
 *     if (bh_begin(&section, self->helpers, 3) > 0)
 *         for (size_t helper = 0; helper < 3; helper++)
 *             bh_hand(&section, helper, &self->slices[helper], sizeof self->slices[helper]);
 *     ... the task's own part ...
 *     bh_collect(&section, helper, &self->results[helper], sizeof self->results[helper])
 */
typedef struct {
    uint64_t bh_private[19];
} bh_helper;
#define BH_HELPER(slices, results) {{(uint64_t)(results) << 32 | (slices)}}
typedef struct {
    bh_helper *bh_helpers;
    size_t bh_count;
    uint64_t bh_private[2];
} bh_section;
/* The other side of a helper: its input brings slices, its output takes results. It is a field of the helper's task. */
typedef struct {
    uint64_t bh_private[19];
} bh_help;
#define BH_HELP(slices, results) {{(uint64_t)(results) << 32 | (slices)}}

/* The other side was not asked: it has not begun yet. */
#define BH_NOT_ASKED 0
/* It did not come in the time that the description allows. */
#define BH_LATE -6
/* All slices must be handed out before the first result is awaited. */
#define BH_ORDER -7

/* Begins the section of this job. Returns 1, or an error. The first one of a task only makes its ports ready. A second one before a job of the task has ended
 * with bh_next_section (even if the first one failed) stops the task, with file and line on the console, because bounds count one wait of each job. So a
 * job that has begun a section and ends in another way stops its task in its next section, and one that keeps the value of bh_next_section and begins again
 * stops it at once. */
#define bh_begin(section, helpers, count) bh_begin_at(section, helpers, count, __FILE__, __LINE__)
int bh_begin_at(bh_section *section, bh_helper *helpers, size_t count, const char *file, uint64_t line);
/* Hands a slice to a helper. Returns 1, BH_NOT_ASKED if the helper has not begun yet, or an error. */
int bh_hand(bh_section *section, size_t helper, const void *slice, size_t size);
/* Waits for a helper's result. Returns 1, BH_NOT_ASKED, BH_LATE, or an error; then the result does not change. */
int bh_collect(bh_section *section, size_t helper, void *result, size_t size);
/* Waits for the slice of this job. Returns 1, BH_NOT_ASKED in the first job, BH_LATE, or an error. A second one stops the task, as above. */
#define bh_slice(help, slice, size) bh_slice_at(help, slice, size, __FILE__, __LINE__)
int bh_slice_at(bh_help *help, void *slice, size_t size, const char *file, uint64_t line);
/* Gives the result of the slice. Returns 1, BH_NOT_ASKED if no slice waits for one, or an error. */
int bh_give(bh_help *help, const void *result, size_t size);

/* Ends a job of a task in a section: the next one is released at the next multiple of the period, on all cores in the same tick. */
BH_MUST_RETURN static inline bh_done bh_next_section(bh_job job)
{
    (void)job;
    return (bh_done){(uintptr_t)&bh_ending_section, 0};
}

/* Markers for measurements. A flow begins in one task and ends in another, with the same number. */
void bh_flow_begin(uint64_t number);
void bh_flow_end(uint64_t number);
void bh_span_begin(uint64_t number);
void bh_span_end(uint64_t number);

#endif
