/*
 * Keeps the first request until its sender has ended, and then answers all others at once.
 *
 * Gates: `priority-0` (receive). It ends with 0 after the first answer, or with 1 if the sender has not ended after `patience`
 * milliseconds (50).
 */
#include "bulkhead.h"

enum { MILLISECOND = 1000000 };

int main(void)
{
    const uint64_t nothing = 0;
    uint64_t end = bh_now() + bh_number("patience", 50) * MILLISECOND;
    int gate = bh_receive_gate("priority-0");
    int kept = bh_receive(gate);
    if (kept < 0 || bh_awaited(kept) != 1) {
        bh_print("the first sender does not wait");
        return 1;
    }
    while (bh_awaited(kept) != 0) {
        if (bh_now() > end) {
            bh_print("the first sender has not ended");
            return 1;
        }
        bh_sleep_until(bh_now() + MILLISECOND);
    }
    bh_print("the first sender has ended");
    if (bh_drop(kept) < 0 || bh_awaited(kept) >= 0)
        return 1;
    return bh_done(bh_receive(gate), &nothing, sizeof(nothing)) < 0;
}
