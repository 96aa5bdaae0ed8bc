/*
 * A client in C: writes numbers to memory by transfers, reads them back, and adds them up with the help of a server.
 *
 * Gates: `adder` (send), `numbers` (memory). Arguments: `count` (100).
 */
#include "bulkhead.h"

struct request {
    uint64_t operation;
    uint64_t first;
    uint64_t second;
};

struct answer {
    uint64_t status;
    uint64_t sum;
};

static void print_number(const char *before, uint64_t number)
{
    char line[64];
    size_t at = sizeof(line) - 1;
    line[at] = 0;
    do {
        line[--at] = (char)('0' + number % 10);
        number /= 10;
    } while (number);
    size_t length = 0;
    while (before[length])
        length++;
    while (length)
        line[--at] = before[--length];
    bh_print(&line[at]);
}

int main(void)
{
    uint64_t count = bh_number("count", 100);
    int adder = bh_send_gate("adder");
    int numbers = bh_memory_gate("numbers");
    if (adder < 0 || numbers < 0) {
        bh_print("gates are missing in the description");
        return 1;
    }
    uint64_t bytes = count * sizeof(uint64_t);
    uint64_t *values = bh_allocate(bytes);
    if (!values)
        return 1;
    for (uint64_t i = 0; i < count; i++)
        values[i] = i + 1;
    if (bh_write(numbers, 0, values, bytes) < 0)
        return 1;
    for (uint64_t i = 0; i < count; i++)
        values[i] = 0;
    if (bh_read(numbers, 0, values, bytes) < 0)
        return 1;
    /* Beyond the end of the region nothing is read. */
    if (bh_read(numbers, bh_memory_size(numbers), values, 8) != BH_OUT_OF_BOUNDS)
        return 1;
    uint64_t sum = 0;
    for (uint64_t i = 0; i < count; i++) {
        struct request request = { 1, sum, values[i] };
        struct answer answer = { 1, 0 };
        bh_span_begin(i);
        int length = bh_call(adder, &request, sizeof(request), &answer, sizeof(answer));
        bh_span_end(i);
        if (length != (int)sizeof(answer) || answer.status != 0) {
            bh_print("the adder failed");
            return 1;
        }
        sum = answer.sum;
    }
    bh_free(values);
    print_number("the sum is ", sum);
    return sum == count * (count + 1) / 2 ? 0 : 1;
}
