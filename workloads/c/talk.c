/*
 * Sockets in C: sends datagrams to an echo and a stream to a sink.
 *
 * Gates: `network` (send). Arguments: `host` (2): the last number of the other side's address, `runs` (10). Ports: 7 of the
 * echo, 9 of the sink, which answers with a checksum of eight bytes.
 */
#include "bulkhead.h"

#define MILLISECOND 1000000u

static int datagrams(int network, struct bh_remote to, uint64_t runs)
{
    int socket = bh_udp(network, 0);
    if (socket < 0)
        return 1;
    for (uint64_t run = 0; run < runs;) {
        uint64_t answer = 0;
        struct bh_remote from;
        if (bh_send_to(socket, &to, &run, sizeof(run)) < 0)
            return 2;
        int length = bh_receive_from(socket, &answer, sizeof(answer), bh_now() + 2 * MILLISECOND, &from);
        /* The other side may still be starting, and what was asked twice may be answered twice. */
        if (length == BH_SERVICE - BH_STATUS_TIMEOUT && bh_now() < 100 * MILLISECOND)
            continue;
        if (length != (int)sizeof(answer) || from.port != to.port || from.address[3] != to.address[3])
            return 3;
        if (answer == run)
            run++;
    }
    return bh_socket_close(socket) < 0 ? 4 : 0;
}

static int stream(int network, struct bh_remote to)
{
    static uint8_t data[8 + 5000];
    uint64_t sum = 0xFFFFFFFF, answer = 0;
    int socket, got = 0;
    /* The length goes first. */
    data[0] = 5000 & 0xFF;
    data[1] = 5000 >> 8;
    for (size_t i = 8; i < sizeof(data); i++) {
        data[i] = (uint8_t)(i * 7);
        sum = (sum ^ data[i]) * 0x100000001B3;
    }
    to.port = 9;
    socket = bh_tcp_connect(network, &to, bh_now() + 20 * MILLISECOND);
    if (socket < 0)
        return 5;
    if (bh_tcp_send(socket, data, sizeof(data), 0) < 0)
        return 6;
    while (got < (int)sizeof(answer)) {
        int count = bh_tcp_receive(socket, (uint8_t *)&answer + got, sizeof(answer) - (size_t)got, 0);
        if (count <= 0)
            return 7;
        got += count;
    }
    if (answer != sum)
        return 8;
    return bh_socket_close(socket) < 0 ? 9 : 0;
}

int main(void)
{
    struct bh_remote to = { { 0, 0, 0, 0 }, 7 };
    int network = bh_network("network");
    if (network < 0 || bh_address(network, to.address) < 0)
        return 20;
    to.address[3] = (uint8_t)bh_number("host", 2);
    int failed = datagrams(network, to, bh_number("runs", 10));
    return failed ? failed : stream(network, to);
}
