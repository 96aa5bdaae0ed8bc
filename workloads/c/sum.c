/*
 * A client in C: writes numbers to memory by transfers, reads them back, and adds them up with the help of a server.
 *
 * Gates: `adder` (send), `numbers` (memory). Arguments: `count` (100).
 */
#include "bulkhead.h"

struct numbers {
    uint64_t first;
    uint64_t second;
};

enum { ADD = 1, SUBTRACT = 77 };

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
        struct numbers numbers = { sum, values[i] };
        bh_span_begin(i);
        int done = bh_ask(adder, ADD, &numbers, sizeof(numbers), &sum, sizeof(sum));
        bh_span_end(i);
        if (done < 0) {
            bh_print("the adder failed");
            return 1;
        }
    }
    bh_free(values);
    /* A failure of the server is a number, and so is an answer that is too short. */
    if (bh_ask(adder, SUBTRACT, NULL, 0, NULL, 0) != BH_SERVICE - BH_STATUS_UNKNOWN_OPERATION ||
        bh_ask(adder, ADD, &sum, sizeof(sum), NULL, 0) != BH_SERVICE - BH_STATUS_BAD_REQUEST)
        return 1;
    print_number("the sum is ", sum);
    return sum == count * (count + 1) / 2 ? 0 : 1;
}
