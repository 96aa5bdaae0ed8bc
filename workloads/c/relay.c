/*
 * Pipes in C: hands on what it reads.
 *
 * Gates: `input` (receive), `output` (send), each with its region if there is one. A check value: the sum of the bytes.
 */
#include "bulkhead.h"

int main(void)
{
    static char data[3000];
    uint64_t sum = 0;
    int input = bh_pipe_reader("input");
    int output = bh_pipe_writer("output");
    if (input < 0 || output < 0)
        return 1;
    for (;;) {
        int count = bh_pipe_read(input, data, sizeof(data));
        if (count < 0)
            return 2;
        if (count == 0)
            break;
        for (int i = 0; i < count; i++)
            sum += (uint8_t)data[i];
        if (bh_pipe_write(output, data, (size_t)count) < 0)
            return 3;
    }
    bh_check(sum);
    /* Without a close the reader would wait for more. */
    return bh_pipe_close(output) < 0 ? 4 : 0;
}
