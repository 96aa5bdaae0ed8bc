/*
 * Applications of the tiled OS in C.
 *
 * An application defines `int main(void)`; its return value is the exit code. A program opens the gates of its description by
 * name. Gates, messages and tasks are small numbers here. A function that returns an `int` returns a negative number if it
 * fails: one of the codes below. If `main` returns such a code, the report names it.
 *
 * A wrong number is an error. A wrong pointer is a fault, which stops only this application.
 */
#ifndef BULKHEAD_H
#define BULKHEAD_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Errors of the data transfer unit (docs/reference/dtu.md). */
enum {
    BH_INVALID_ENDPOINT = -1,    /* the gate is closed: its receiver has ended, or its right was revoked */
    BH_FOREIGN_ENDPOINT = -2,    /* the endpoint now belongs to another activity */
    BH_TRANSLATION_FAULT = -3,   /* this program may not read or write the memory */
    BH_BAD_SIZE = -4,            /* the message is empty or too large */
    BH_NO_CREDITS = -5,          /* too many messages of this gate are unanswered */
    BH_NO_SPACE = -6,            /* the receiver has no free slot; `bh_send`, `bh_call` and `bh_ask` wait for one instead */
    BH_RECEIVER_GONE = -7,       /* the receiver no longer exists */
    BH_OUT_OF_BOUNDS = -8,       /* the access ends beyond the memory gate */
    BH_NO_PERMISSION = -9,       /* the gate does not allow this direction */
    BH_BAD_MESSAGE = -10,        /* this is not a received message */
    BH_NO_REPLY = -11,           /* the message wants no answer, or has one already */
    BH_ABORTED = -12,            /* the command was aborted */
    BH_UNKNOWN_COMMAND = -13,    /* the unit has no such command */
    BH_TARGET_REFUSED = -14,     /* the target is not a tile, or refused the access */
    BH_BUSY = -15,               /* the unit performs another command */
    BH_WOKEN = -16,              /* a message arrived before the tile fell asleep */
};

/* Errors of this library. */
enum {
    BH_BAD_ARGUMENT = -100, /* there is no such gate, message or task, or too much data */
    BH_NOT_FOUND = -101,    /* the description does not contain it */
    BH_NOTHING = -102,      /* the time is over, or there is no further entry */
    BH_TOO_MANY = -103,     /* more than 32 things of a kind at once */
    BH_SERVICE = -200,      /* a service failed: this minus its status */
};

/* Statuses of services. */
enum {
    BH_STATUS_UNKNOWN_OPERATION = 1,
    BH_STATUS_BAD_REQUEST = 2,
    BH_STATUS_TOO_LONG = 3,
    BH_STATUS_TOO_MANY = 4,
    BH_STATUS_NOT_FOUND = 5,
    BH_STATUS_EXISTS = 6,
    BH_STATUS_NO_SPACE = 7,
    BH_STATUS_NOT_A_FOLDER = 8,
    BH_STATUS_IS_A_FOLDER = 9,
    BH_STATUS_NOT_EMPTY = 10,
    BH_STATUS_INVALID_HANDLE = 11,
    BH_STATUS_NO_RIGHTS = 12,
    BH_STATUS_CLOSED = 13,
    BH_STATUS_CORRUPT = 14,
    BH_STATUS_BUSY = 15,
    BH_STATUS_TRANSFER = 16,
    BH_STATUS_BAD_REPLY = 17,
    BH_STATUS_TIMEOUT = 18,
    BH_STATUS_TOO_BIG = 19,
};

/* The largest message, in bytes. */
#define BH_MESSAGE_MAX 2016

/* Prints a line. The console shows it with the application's name before it. */
void bh_print(const char *line);
/* Nanoseconds since reset, the same on all tiles. */
uint64_t bh_now(void);
/* Sleeps until the clock shows this time, as `bh_now` returns it. */
void bh_sleep_until(uint64_t nanoseconds);
/* Ends the application with this exit code. */
void bh_exit(int code);

/* Copies the text of an argument and returns its length. */
int bh_argument(const char *name, char *value, size_t size);
/* Returns an argument that is a number, or `otherwise` if the description does not contain it. */
uint64_t bh_number(const char *name, uint64_t otherwise);

/* Open gates of the description by their names. */
int bh_send_gate(const char *name);
int bh_receive_gate(const char *name);
int bh_memory_gate(const char *name);

/* Sends a message. Waits until the gate has a credit and the receiver a free slot of this gate. */
int bh_send(int gate, const void *data, size_t length);
/* Waits for a free slot of the receiver, sends a message and waits for the answer. Returns the length of the answer, and copies at
   most `size` bytes of it. A receiver that only finishes the message gives an answer of length 0. */
int bh_call(int gate, const void *data, size_t length, void *answer, size_t size);

/* Waits for a message and returns it. */
int bh_receive(int gate);
/* Waits for a message at any of these gates, or until the clock shows `until` nanoseconds (0: forever). The first gate has the
   highest priority. Writes the index of the gate to `which` unless it is null. */
int bh_wait(const int *gates, size_t count, uint64_t until, int *which);
/* The length of a message in bytes, the label of the gate that sent it, and its data. */
int bh_length(int message);
uint64_t bh_label(int message);
int bh_copy(int message, void *target, size_t size);
/* Returns 1 if a reply to a message could still arrive, 0 if its sender has ended. Always 1 for a message that nobody can answer. A
   program that keeps messages for a long time should ask now and then and drop those whose senders have ended: a kept message takes
   a slot from the next activity that has the sender's gate. */
int bh_awaited(int message);
/* Answer, finish or drop each message exactly once. `bh_reply` and `bh_finish` return the sender's credit; `bh_finish` sends no
   data. After `bh_drop`, the sender permanently has one credit less. */
int bh_reply(int message, const void *data, size_t length);
int bh_finish(int message);
int bh_drop(int message);

/* Typed messages, with the same layout as in the Rust library. A request is the number of an operation and a struct without
   padding; an answer is a status (0: success) and a struct. A failure is BH_SERVICE minus the status, see BH_STATUS_*. */
int bh_ask(int gate, uint64_t operation, const void *request, size_t length, void *reply, size_t size);
/* The operation that a message asks for; UINT64_MAX if the message is too short to contain one. */
uint64_t bh_operation(int message);
/* Copies the body of a request. Fails if the body is shorter than `size`. */
int bh_body(int message, void *target, size_t size);
/* Answer a request with success, or with a failure (BH_STATUS_*). */
int bh_done(int message, const void *reply, size_t length);
int bh_fail(int message, int status);

/* Several handlers in one loop. `bh_run` calls a function when its message has arrived or its time has come, and returns the
   code that was passed to `bh_stop`. A gate that was registered earlier comes first; a null function removes a gate. A function
   may do anything, but while it waits, `bh_run` calls no other function. */
int bh_on_message(int gate, void (*call)(int message, void *context), void *context);
/* Calls a function once, when the clock shows this time. Returns a number with which `bh_not_at` cancels it. */
int bh_at(uint64_t nanoseconds, void (*call)(void *context), void *context);
int bh_not_at(int timer);
int bh_run(void);
void bh_stop(int code);

/* Memory gates: the data transfer unit reads and writes their memory. */
uint64_t bh_memory_size(int gate);
int bh_read(int gate, uint64_t offset, void *target, size_t length);
int bh_write(int gate, uint64_t offset, const void *data, size_t length);

/* Files of the service behind a send gate or a session. Failures of the service are BH_SERVICE minus its status:
   BH_SERVICE - BH_STATUS_NOT_FOUND means that there is no such file. */
int bh_mount(const char *name);
/* Joins several services into one tree of names, as the argument `mounts` says, such as "/:files /maps:maps". */
int bh_mounts(void);
/* The size of a file in bytes. */
int64_t bh_file_size(int mount, const char *path);
/* Reads at an offset. Returns the number of bytes; 0 at the end of the file. */
int bh_file_read(int mount, const char *path, uint64_t offset, void *target, size_t length);
/* Writes at an offset, and creates the file if there is none. When it returns, the data is permanent. */
int bh_file_write(int mount, const char *path, uint64_t offset, const void *data, size_t length);
int bh_file_remove(int mount, const char *path);
/* Creates a folder. */
int bh_folder(int mount, const char *path);
/* Copies the name of a folder's entry with this index, and returns its length; BH_NOTHING after the last entry. */
int bh_entry(int mount, const char *path, size_t index, char *name, size_t size);

/* Pipes: a stream of bytes from one application to another, over a send gate and a receive gate (and through a region, if both
   applications have the memory gate NAME-region). `bh_pipe_close` ends the stream. */
int bh_pipe_writer(const char *name);
/* Writes all data. Data that does not fill a piece waits for more data or for `bh_pipe_flush`. */
int bh_pipe_write(int pipe, const void *data, size_t length);
int bh_pipe_flush(int pipe);
int bh_pipe_close(int pipe);
int bh_pipe_reader(const char *name);
/* Waits for data. Returns the number of bytes; 0 at the end of the stream. */
int bh_pipe_read(int pipe, void *target, size_t size);

/* Sockets of the network service behind a send gate. Calls that wait give up when the clock shows `until` (0: never). */
struct bh_remote {
    uint8_t address[4];
    uint16_t port;
};
int bh_network(const char *name);
int bh_address(int network, uint8_t address[4]);
/* Datagrams of at most BH_DATAGRAM_MAX bytes. Port 0 means any port. */
#define BH_DATAGRAM_MAX 1472
int bh_udp(int network, uint16_t port);
int bh_send_to(int socket, const struct bh_remote *to, const void *data, size_t length);
int bh_receive_from(int socket, void *target, size_t size, uint64_t until, struct bh_remote *from);
/* Streams. A listening socket becomes the connection that it accepts. `bh_tcp_receive` returns 0 at the end of the stream. */
int bh_tcp_connect(int network, const struct bh_remote *to, uint64_t until);
int bh_tcp_listen(int network, uint16_t port);
int bh_tcp_accept(int socket, uint64_t until, struct bh_remote *from);
int bh_tcp_send(int socket, const void *data, size_t length, uint64_t until);
int bh_tcp_receive(int socket, void *target, size_t size, uint64_t until);
int bh_socket_close(int socket);

/* The periodic task of this application in the description (`<task period="1ms" deadline="400us"/>`). Releases are at multiples of
   the period, so tasks with the same period on different tiles are released together. */
int bh_task(void);
/* Sleeps until the next release, and returns the number of the job; the first is 1. It does not skip a release that has passed. */
int64_t bh_next_job(int task);
/* Ends the job. Returns 1 if the job met its deadline, 0 if not. */
int bh_complete(int task);
/* The time at which the current job was released, in nanoseconds since reset. */
uint64_t bh_release(int task);

/* Measurements, which take no time on the model. A span begins and ends on this tile, with the same number. A flow may begin on one
   tile and end on another; the description's `<flow>` gives it a deadline. */
void bh_span_begin(uint64_t id);
void bh_span_end(uint64_t id);
void bh_flow_begin(uint64_t id);
void bh_flow_end(uint64_t id);
/* Records a value, which runs can compare. */
void bh_check(uint64_t value);

/* Memory of the application's heap. Returns null if the heap has no block of this size left. */
void *bh_allocate(size_t size);
void bh_free(void *memory);

#ifdef __cplusplus
}
#endif

#endif
