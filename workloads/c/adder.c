/*
 * A server in C: adds two numbers. Answers the example service's requests, so that clients in Rust can ask it, too.
 *
 * Gates: `priority-0` and, if given, `priority-1` (receive). It never ends.
 */
#include "bulkhead.h"

struct request {
    uint64_t operation;
    uint64_t first;
    uint64_t second;
};

struct answer {
    uint64_t status; /* 0: success */
    uint64_t sum;
};

enum { NOTHING = 0, ADD = 1 };
enum { UNKNOWN_OPERATION = 1, BAD_REQUEST = 2 };

int main(void)
{
    int gates[2] = { bh_receive_gate("priority-0"), bh_receive_gate("priority-1") };
    size_t count = gates[1] < 0 ? 1 : 2;
    if (gates[0] < 0) {
        bh_print("no <rgate name=\"priority-0\"> in the description");
        return 1;
    }
    for (;;) {
        int message = bh_wait(gates, count, 0, NULL);
        if (message < 0)
            return 1;
        struct request request = { 0 };
        struct answer answer = { 0, 0 };
        int length = bh_copy(message, &request, sizeof(request));
        if (length < (int)sizeof(request.operation))
            answer.status = BAD_REQUEST;
        else if (request.operation == ADD && length == (int)sizeof(request))
            answer.sum = request.first + request.second;
        else if (request.operation != NOTHING)
            answer.status = request.operation == ADD ? BAD_REQUEST : UNKNOWN_OPERATION;
        bh_reply(message, &answer, sizeof(answer));
    }
}
