/*
 * A server in C: adds two numbers. Answers the example service's requests, so that clients in Rust can ask it, too.
 *
 * Gates: `priority-0` and, if given, `priority-1` (receive). Argument: `until` (0): when it ends, in milliseconds; 0 is never.
 */
#include "bulkhead.h"

struct numbers {
    uint64_t first;
    uint64_t second;
};

enum { NOTHING = 0, ADD = 1 };

static void serve(int message, void *context)
{
    struct numbers numbers;
    uint64_t sum = 0;
    uint64_t *served = context;
    ++*served;
    switch (bh_operation(message)) {
    case NOTHING:
        break;
    case ADD:
        if (bh_body(message, &numbers, sizeof(numbers)) < 0) {
            bh_fail(message, BH_STATUS_BAD_REQUEST);
            return;
        }
        sum = numbers.first + numbers.second;
        break;
    default:
        bh_fail(message, BH_STATUS_UNKNOWN_OPERATION);
        return;
    }
    bh_done(message, &sum, sizeof(sum));
}

static void over(void *context)
{
    const uint64_t *served = context;
    bh_check(*served);
    bh_stop(0);
}

int main(void)
{
    static uint64_t served;
    uint64_t until = bh_number("until", 0);
    int important = bh_receive_gate("priority-0");
    int other = bh_receive_gate("priority-1");
    if (bh_on_message(important, serve, &served) < 0) {
        bh_print("no <rgate name=\"priority-0\"> in the description");
        return 1;
    }
    if (other >= 0)
        bh_on_message(other, serve, &served);
    if (until > 0)
        bh_at(until * 1000000, over, &served);
    return bh_run();
}
