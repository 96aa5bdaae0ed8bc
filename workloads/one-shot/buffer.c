/* The tasks of src/buffer.rs in C. */
#include "bulkhead_oneshot.h"

enum { PUT, GET, CLEARED };

struct buffer {
    uint64_t places[2];
    uint64_t count;
    uint64_t taken;
};

static bool has_room(const void *data)
{
    return ((const struct buffer *)data)->count < 2;
}

static void put(void *data, uint64_t item)
{
    struct buffer *buffer = data;
    buffer->places[buffer->count & 1] = item;
    buffer->count += 1;
}

static bool has_some(const void *data)
{
    return ((const struct buffer *)data)->count > 0;
}

static void get(void *data, uint64_t unused)
{
    struct buffer *buffer = data;
    (void)unused;
    buffer->taken = buffer->places[0];
    buffer->places[0] = buffer->places[1];
    buffer->count -= 1;
}

static bool is_empty(const void *data)
{
    return ((const struct buffer *)data)->count == 0;
}

static void nothing(void *data, uint64_t unused)
{
    (void)data;
    (void)unused;
}

static struct buffer data;
BH_PROTECTED(buffer, &data, BH_ENTRY(has_room, put), BH_ENTRY(has_some, get), BH_ENTRY(is_empty, nothing))

static void look(void *data, void *taken)
{
    *(uint64_t *)taken = ((struct buffer *)data)->taken;
}

struct getter {
    bool has_called;
    bh_releases releases;
};

static bh_done get_one(struct getter *self, bh_job job)
{
    uint64_t taken = 0;
    self->has_called = !self->has_called;
    if (self->has_called)
        return bh_call(&buffer, GET, 0, job);
    if (!bh_update(&buffer, look, &taken))
        bh_print("the buffer is in use");
    bh_print_number("got ", taken);
    return bh_next(&self->releases, job);
}

BH_TASK(getter, struct getter, get_one, {0})

struct putter {
    uint64_t items;
    bh_releases releases;
};

static bh_done put_three(struct putter *self, bh_job job)
{
    self->items += 1;
    if (self->items % 4 == 0) {
        bh_print("all are in");
        return bh_next(&self->releases, job);
    }
    bh_print_number("puts ", self->items);
    return bh_call(&buffer, PUT, self->items, job);
}

BH_TASK(putter, struct putter, put_three, {0})

struct watcher {
    bool has_called;
    bh_releases releases;
};

static bh_done watch(struct watcher *self, bh_job job)
{
    self->has_called = !self->has_called;
    if (self->has_called)
        return bh_call(&buffer, CLEARED, 0, job);
    bh_print("is empty");
    return bh_next(&self->releases, job);
}

BH_TASK(watcher, struct watcher, watch, {0})
