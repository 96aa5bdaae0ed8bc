/*
 * Applications of the tiled OS in C.
 *
 * An application is `int main(void)`; its result is the exit code. Gates are those of the description, opened by name;
 * they and messages are small numbers here. Functions that give an `int` give a negative number on failure: an error of
 * the unit (-1 to -16, the codes of the reference of the data transfer unit) or one of the codes below.
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

#define BH_NO_CREDITS (-5)     /* too many messages under way */
#define BH_RECEIVER_GONE (-7)  /* nobody is there any more */
#define BH_OUT_OF_BOUNDS (-8)  /* outside of the memory gate */
#define BH_NO_PERMISSION (-9)  /* the gate does not allow this direction */
#define BH_BAD_ARGUMENT (-100) /* no such gate or message, or too much data */
#define BH_NOT_FOUND (-101)    /* the description does not give it */
#define BH_NOTHING (-102)      /* the time was over */
#define BH_TOO_MANY (-103)     /* more than 32 gates or messages at once */

/* Bytes of a message at most. */
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
/* Each message is to be answered once, which gives the sender its credit back, or dropped. */
int bh_reply(int message, const void *data, size_t length);
int bh_drop(int message);

/* Memory that the data transfer unit reads and writes. */
uint64_t bh_memory_size(int gate);
int bh_read(int gate, uint64_t offset, void *target, size_t length);
int bh_write(int gate, uint64_t offset, const void *data, size_t length);

/* Files of the service behind a send gate or session; bytes are transferred over a session. Failures of the service are
   BH_SERVICE minus its status (see `Status` of the library): BH_SERVICE - 5 is "there is no such file". */
#define BH_SERVICE (-200)
int bh_mount(const char *name);
/* Bytes of a file. */
int64_t bh_file_size(int mount, const char *path);
/* Reads from an offset on; gives the number of bytes, 0 at the end. */
int bh_file_read(int mount, const char *path, uint64_t offset, void *target, size_t length);
/* Writes from an offset on and makes the file if there is none; kept when it returns. */
int bh_file_write(int mount, const char *path, uint64_t offset, const void *data, size_t length);
int bh_file_remove(int mount, const char *path);
int bh_folder(int mount, const char *path);

/* Measurements, which cost nothing on the model: a span of time on this tile, a value to compare. */
void bh_span_begin(uint64_t id);
void bh_span_end(uint64_t id);
void bh_check(uint64_t value);

/* Memory of the application's heap; null if there is none left. */
void *bh_allocate(size_t size);
void bh_free(void *memory);

#ifdef __cplusplus
}
#endif

#endif
