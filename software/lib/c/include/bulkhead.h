/*
 * Applications of the tiled OS in C.
 *
 * An application is `int main(void)`; its result is the exit code. Gates are those of the description, opened by name;
 * they and messages are small numbers here. Functions that give an `int` give a negative number on failure: one of the codes
 * below. `main` may return it: the report shows a negative exit code as such.
 *
 * A wrong number is an error. A wrong pointer is the application's own fault and stops it alone.
 */
#ifndef BULKHEAD_H
#define BULKHEAD_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* What the data transfer unit refuses: the errors in its reference. */
enum {
    BH_INVALID_ENDPOINT = -1,    /* the gate is closed: its right was taken away */
    BH_FOREIGN_ENDPOINT = -2,    /* the endpoint now belongs to another activity */
    BH_TRANSLATION_FAULT = -3,   /* the memory may not be read, or not be written */
    BH_BAD_SIZE = -4,            /* larger than a message may be, or empty */
    BH_NO_CREDITS = -5,          /* too many messages under way */
    BH_NO_SPACE = -6,            /* the receiver has no free slot */
    BH_RECEIVER_GONE = -7,       /* the receiver no longer exists */
    BH_OUT_OF_BOUNDS = -8,       /* outside of the memory gate */
    BH_NO_PERMISSION = -9,       /* the gate does not allow this direction */
    BH_BAD_MESSAGE = -10,        /* not a message that was received */
    BH_NO_REPLY = -11,           /* the message cannot be answered, or was */
    BH_ABORTED = -12,            /* the command was aborted */
    BH_UNKNOWN_COMMAND = -13,
    BH_TARGET_REFUSED = -14,     /* the target is no tile, or refused the access */
    BH_BUSY = -15,
    BH_WOKEN = -16,
};

/* What this library refuses. */
enum {
    BH_BAD_ARGUMENT = -100, /* no such gate, message, task..., or too much data */
    BH_NOT_FOUND = -101,    /* the description does not give it */
    BH_NOTHING = -102,      /* the time was over; no further entry */
    BH_TOO_MANY = -103,     /* more than 32 things of a kind at once */
    BH_SERVICE = -200,      /* what a service says: this minus its status */
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

/* Most bytes of a message. */
#define BH_MESSAGE_MAX 2016

/* Prints a line with the application's name before it. */
void bh_print(const char *line);
/* Nanoseconds since reset, the same on all tiles. */
uint64_t bh_now(void);
/* Sleeps until the clock shows this. */
void bh_sleep_until(uint64_t nanoseconds);
/* Ends the application. */
void bh_exit(int code);

/* Copies an argument's text; gives its length. */
int bh_argument(const char *name, char *value, size_t size);
/* An argument that is a number. */
uint64_t bh_number(const char *name, uint64_t otherwise);

/* Open gates of the description. */
int bh_send_gate(const char *name);
int bh_receive_gate(const char *name);
int bh_memory_gate(const char *name);

/* Sends a message; waits for a credit if need be. */
int bh_send(int gate, const void *data, size_t length);
/* Asks and waits; gives the length of the answer, of which at most `size` bytes are copied. */
int bh_call(int gate, const void *data, size_t length, void *answer, size_t size);

/* Waits for a message; gives it. */
int bh_receive(int gate);
/* Waits for a message of any of these gates, the first having the highest priority, or until the clock shows `until`
   nanoseconds (0: for ever). `which`, if not null, gets the index of the gate. */
int bh_wait(const int *gates, size_t count, uint64_t until, int *which);
/* Bytes of a message, the label of the channel that it came over, and its data. */
int bh_length(int message);
uint64_t bh_label(int message);
int bh_copy(int message, void *target, size_t size);
/* Each message is to be answered, finished or dropped, once. An answer gives the sender its credit back, and so does
   `bh_finish`, which answers nothing. After `bh_drop` the sender stays one credit poorer. */
int bh_reply(int message, const void *data, size_t length);
int bh_finish(int message);
int bh_drop(int message);

/* Typed messages, as the library in Rust has them: a request is a number that says what is asked, and a layout without
   padding; an answer is a status (0: success) and a layout. Failures are BH_SERVICE minus the status, see BH_STATUS_*. */
int bh_ask(int gate, uint64_t operation, const void *request, size_t length, void *reply, size_t size);
/* What a request asks; UINT64_MAX if it does not say so. */
uint64_t bh_operation(int message);
/* Its body; a failure if it is too short. */
int bh_body(int message, void *target, size_t size);
/* Answers with success, or with a failure that is a BH_STATUS_*. */
int bh_done(int message, const void *reply, size_t length);
int bh_fail(int message, int status);

/* Several threads of control on one loop. `bh_run` calls these functions when a message or a moment has come, and
   returns the code given to `bh_stop`. A gate that was named earlier comes first; a null function takes a gate away. Functions
   may do everything, but while one waits, no other is called. */
int bh_on_message(int gate, void (*call)(int message, void *context), void *context);
/* Once, when the clock shows this; gives a number, by which it can be taken back. */
int bh_at(uint64_t nanoseconds, void (*call)(void *context), void *context);
int bh_not_at(int timer);
int bh_run(void);
void bh_stop(int code);

/* Memory that the data transfer unit reads and writes. */
uint64_t bh_memory_size(int gate);
int bh_read(int gate, uint64_t offset, void *target, size_t length);
int bh_write(int gate, uint64_t offset, const void *data, size_t length);

/* Files of the service behind a send gate or session; bytes are transferred over a session. Failures of the service are
   BH_SERVICE minus its status: BH_SERVICE - BH_STATUS_NOT_FOUND is "there is no such file". */
int bh_mount(const char *name);
/* Several services in one tree of names, as the argument `mounts` says, such as "/:files /maps:maps". */
int bh_mounts(void);
/* Bytes of a file. */
int64_t bh_file_size(int mount, const char *path);
/* Reads from an offset on; gives the number of bytes, 0 at the end. */
int bh_file_read(int mount, const char *path, uint64_t offset, void *target, size_t length);
/* Writes from an offset on and makes the file if there is none; kept when it returns. */
int bh_file_write(int mount, const char *path, uint64_t offset, const void *data, size_t length);
int bh_file_remove(int mount, const char *path);
int bh_folder(int mount, const char *path);
/* Copies the name of the entry of a folder with this index; gives its length, BH_NOTHING behind the last one. */
int bh_entry(int mount, const char *path, size_t index, char *name, size_t size);

/* Pipes: a stream of bytes from one application to another, over a send gate and a receive gate (and a region, if both
   have the memory gate NAME-region). The end of a stream is what `bh_pipe_close` says. */
int bh_pipe_writer(const char *name);
/* Writes everything; what does not fill a piece waits for more, or for `bh_pipe_flush`. */
int bh_pipe_write(int pipe, const void *data, size_t length);
int bh_pipe_flush(int pipe);
int bh_pipe_close(int pipe);
int bh_pipe_reader(const char *name);
/* Waits for data; gives the number of bytes, 0 at the end. */
int bh_pipe_read(int pipe, void *target, size_t size);

/* Sockets of the network service behind a send gate. Those that wait do so until the clock shows `until` (0: for ever). */
struct bh_remote {
    uint8_t address[4];
    uint16_t port;
};
int bh_network(const char *name);
int bh_address(int network, uint8_t address[4]);
/* Datagrams; port 0: any. A datagram has at most BH_DATAGRAM_MAX bytes. */
#define BH_DATAGRAM_MAX 1472
int bh_udp(int network, uint16_t port);
int bh_send_to(int socket, const struct bh_remote *to, const void *data, size_t length);
int bh_receive_from(int socket, void *target, size_t size, uint64_t until, struct bh_remote *from);
/* Streams. A socket that listens becomes the connection that it accepts. `bh_tcp_receive` gives 0 at the end. */
int bh_tcp_connect(int network, const struct bh_remote *to, uint64_t until);
int bh_tcp_listen(int network, uint16_t port);
int bh_tcp_accept(int socket, uint64_t until, struct bh_remote *from);
int bh_tcp_send(int socket, const void *data, size_t length, uint64_t until);
int bh_tcp_receive(int socket, void *target, size_t size, uint64_t until);
int bh_socket_close(int socket);

/* The periodic task that the description gives this application (`<task period="1ms" deadline="400us"/>`). Releases are
   multiples of the period, so tasks of the same period on different tiles are released together. */
int bh_task(void);
/* Sleeps until the next release; gives the number of the job, from 1 on. A release that has passed is not skipped. */
int64_t bh_next_job(int task);
/* Ends the job: 1 if its deadline was met, 0 if not. */
int bh_complete(int task);
/* When the current job was released, in nanoseconds since reset. */
uint64_t bh_release(int task);

/* Measurements, which cost nothing on the model. A span is a stretch of time on this tile, with the same number at its beginning
   and its end. A flow may begin on one tile and end on another one; the description's `<flow>` gives it a deadline. */
void bh_span_begin(uint64_t id);
void bh_span_end(uint64_t id);
void bh_flow_begin(uint64_t id);
void bh_flow_end(uint64_t id);
/* A value to compare between runs. */
void bh_check(uint64_t value);

/* Memory of the application's heap; null if there is none left. */
void *bh_allocate(size_t size);
void bh_free(void *memory);

#ifdef __cplusplus
}
#endif

#endif
