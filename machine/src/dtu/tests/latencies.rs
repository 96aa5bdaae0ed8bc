//! Closed forms: every expected tick is derived in a comment. A cycle is 2 ticks.

use super::world::*;
use crate::dtu::{DtuResource, Observation};
use bulkhead_abi::dtu::*;

/// Sender on tile 1 (send endpoint 8, reply endpoint 9), receiver on tile 2 (endpoint 8, rights to reply from 16).
pub fn channel(world: &mut World, credits: u8, message_size: u16) {
    world.set(1, 8, send_to(2, 8, credits, message_size));
    world.set(1, 9, receive_at(0x4000, 4, message_size, NO_ENDPOINT));
    world.set(2, 8, receive_at(0x4000, 4, message_size, 16));
}

#[test]
fn send_of_one_byte() {
    for pending in [false, true] {
        let mut world = World::new(&config());
        world.chip.pending = pending;
        channel(&mut world, 1, 256);
        // Start-up 21 cycles = 42, one local block 20, hop 10, receipt 20 cycles = 40, header and byte in one block 20,
        // answer 10.
        let send = Command::new(Opcode::Send, 8, 9);
        let done = world.execute(1, send, BASE, 1, 0);
        assert_eq!(done, (DtuError::None, 42 + 20 + 10 + 40 + 20 + 10));
    }
}

#[test]
fn round_trip_of_one_byte() {
    let mut world = World::new(&config());
    channel(&mut world, 1, 256);
    world.execute(1, Command::new(Opcode::Send, 8, 9), BASE, 1, 77);
    let arrived = world.chip.now - 10;
    assert_eq!(arrived, 42 + 20 + 10 + 40 + 20);
    // Fetch: 8 cycles.
    let start = world.chip.now;
    assert_eq!(world.fetch(2, 8), Some(0));
    assert_eq!(world.chip.now - start, 16);
    // Reply: 25 cycles = 50, then as the message: 20 + 10 + 40 + 20 + 10.
    let reply = Command::new(Opcode::Reply, 8, 0);
    assert_eq!(world.execute(2, reply, BASE, 1, 0), (DtuError::None, 150));
    let start = world.chip.now;
    assert_eq!(world.fetch(1, 9), Some(0));
    // Acknowledgement: 10 cycles.
    let ack = world.execute(1, Command::new(Opcode::Acknowledge, 9, 0), 0, 0, 0);
    assert_eq!(ack, (DtuError::None, 20));
    assert_eq!(world.chip.now - start, 16 + 20);
}

#[test]
fn the_tlb_adds_its_latency() {
    let mut world = World::new(&config());
    channel(&mut world, 1, 256);
    let Endpoint::Send(mut send) = world.endpoint(1, 8) else {
        panic!()
    };
    send.activity = 5;
    world.set(1, 8, Endpoint::Send(send));
    world.map(1, 5, 0x1000_0000, 0, TLB_READ);
    world.switch(1, 5, 0);
    // 3 cycles more than without translation.
    let send = Command::new(Opcode::Send, 8, u32::from(NO_ENDPOINT));
    let done = world.execute(1, send, 0x1000_0010, 1, 0);
    assert_eq!(done, (DtuError::None, 142 + 6));
    // A miss ends the command after the start-up: (21 + 3) cycles.
    let miss = world.execute(1, send, 0x1000_1010, 1, 0);
    assert_eq!(miss, (DtuError::TranslationFault, 48));
}

#[test]
fn a_long_message_travels_in_chunks() {
    let mut world = World::new(&config());
    channel(&mut world, 1, 2048);
    world
        .bytes(1, 0, 2016)
        .iter_mut()
        .enumerate()
        .for_each(|(i, b)| *b = i as u8);
    // 2016 bytes of payload: chunks of 480, 512, 512, 512 bytes. Blocks of 64 bytes from offset 0: the chunks' borders are
    // 480, 992, 1504: 8 + 9 + 9 + 9 blocks (480 is not a multiple of 64, so each border splits one block: 35 accesses).
    // Four at a time, 20 ticks each: ceil(35 / 4) = 9 rounds = 180 ticks until the last one is read.
    // Receipt: 40, storing 2048 bytes = 32 blocks = 8 rounds = 160. Hops 10 + 10.
    let send = Command::new(Opcode::Send, 8, 9);
    let done = world.execute(1, send, BASE, 2016, 0);
    assert_eq!(done, (DtuError::None, 42 + 180 + 10 + 40 + 160 + 10));
    let expected: Vec<u8> = (0..2016u32).map(|i| i as u8).collect();
    assert_eq!(world.bytes(2, 0x4000 + 32, 2016), expected);
    // The chunks left as soon as their data was available. Chunk 0: 8 blocks = 2 rounds. Chunk 1: blocks 9 to 17 end in
    // round 5 (17 / 4). Chunk 2: block 26, round 7. Chunk 3: block 35, round 9.
    let times: Vec<_> = world
        .chip
        .sent
        .iter()
        .filter(|(_, p)| p.source == 1)
        .map(|&(at, _)| at)
        .collect();
    assert_eq!(times, [42 + 40, 42 + 100, 42 + 140, 42 + 180]);
    let bytes: Vec<_> = world
        .chip
        .sent
        .iter()
        .map(|(_, p)| p.kind.payload_bytes())
        .collect();
    assert_eq!(bytes, [512, 512, 512, 512, 0]);
}

#[test]
fn memory_read_and_write() {
    let mut world = World::new(&config());
    world.set(
        1,
        8,
        memory_at(MEMORY_TILE, 2 * SHARE, 8192, TLB_READ | TLB_WRITE),
    );
    // Read of 64 bytes: 20 cycles = 40, hop 10, memory 100, hop 10, one block 20.
    let read = world.execute(1, Command::new(Opcode::Read, 8, 0), BASE, 64, 0);
    assert_eq!(read, (DtuError::None, 180));
    // Write of 64 bytes: 14 cycles = 28, one block 20, hop 10, memory 100, hop 10.
    let write = world.execute(1, Command::new(Opcode::Write, 8, 0), BASE, 64, 0);
    assert_eq!(write, (DtuError::None, 168));
    // Read of a page: 8 chunks, all requested at 40; all answered at 160; 64 blocks = 16 rounds = 320 ticks.
    let read = world.execute(1, Command::new(Opcode::Read, 8, 0), BASE, 4096, 0);
    assert_eq!(read, (DtuError::None, 40 + 120 + 320));
}

#[test]
fn outstanding_chunks_are_bounded() {
    let mut world = World::new(&with_outstanding(1));
    world.set(
        1,
        8,
        memory_at(MEMORY_TILE, 2 * SHARE, 8192, TLB_READ | TLB_WRITE),
    );
    // One chunk at a time: each spends 120 in transit and 8 blocks = 2 rounds = 40.
    let read = world.execute(1, Command::new(Opcode::Read, 8, 0), BASE, 2048, 0);
    assert_eq!(read, (DtuError::None, 40 + 4 * 160));
    // A message is not answered chunk by chunk: 4 chunks of 2, 3, 3, 3 rounds (8, 9, 9, 9 blocks), in sequence.
    channel(&mut world, 1, 2048);
    let send = world.execute(1, Command::new(Opcode::Send, 8, 9), BASE, 2016, 0);
    assert_eq!(send, (DtuError::None, 42 + 11 * 20 + 10 + 40 + 160 + 10));
}

#[test]
fn the_bucket_delays_chunks_and_books_the_wait() {
    let mut world = World::new(&config());
    world.set(
        1,
        8,
        memory_at(MEMORY_TILE, 2 * SHARE, 8192, TLB_READ | TLB_WRITE),
    );
    // 2^20 B/s, refill every 2000 ticks: 1048576 * 2000 / 4e9 = 0.524288 bytes. Amount 512: the first chunk of the read
    // leaves at 40, the second needs ceil(512 / 0.524288) = 977 refills after the grid point 0: tick 1_954_000.
    world.units[1].set_bucket(0, 0, 1 << 20, 512, 4096);
    let read = world.execute(1, Command::new(Opcode::Read, 8, 0), BASE, 1024, 0);
    let sent: Vec<_> = world.chip.sent.iter().map(|&(at, _)| at).collect();
    assert_eq!(sent, [40, 1_954_000]);
    assert_eq!(read, (DtuError::None, 1_954_000 + 120 + 2 * 20));
    let waits: Vec<_> = world
        .chip
        .log
        .iter()
        .filter_map(|&(_, _, o)| match o {
            Observation::Wait {
                victim,
                culprit,
                resource: DtuResource::Bucket,
                from,
                until,
            } => {
                assert_eq!(victim, culprit);
                Some((from, until))
            }
            _ => None,
        })
        .collect();
    assert_eq!(waits, [(40, 1_954_000)]);
    let account = world.chip.sent[1].1.account;
    // The request begins when its tokens are available.
    assert_eq!((account.started, account.waited), (1_954_000, 0));
    // Cache misses draw from the same bucket. Level after the read: 977 * 0.524288 - 512 = 0.229; a line of 64 bytes
    // needs ceil(63.771 / 0.524288) = 122 more refills after the one at 1_954_000.
    let later = 1_954_000 + 122 * 2000;
    assert_eq!(world.units[1].ask(1_954_000, 64), Err(later));
    assert_eq!(world.units[1].ask(later, 64), Ok(()));
}

#[test]
fn the_receive_unit_makes_messages_wait() {
    let mut world = World::new(&config());
    channel(&mut world, 1, 256);
    world.set(3, 8, send_to(2, 8, 1, 256));
    let send = Command::new(Opcode::Send, 8, u32::from(NO_ENDPOINT));
    world.command(1, send, BASE, 1, 0);
    world.command(3, send, BASE, 1, 0);
    world.run();
    // Both arrive at 72; tile 1 was first. It holds the unit for 60 ticks, until 132.
    let waits: Vec<_> = world
        .chip
        .log
        .iter()
        .filter_map(|&(_, _, o)| match o {
            Observation::Wait {
                victim,
                culprit,
                resource: DtuResource::DtuReceive,
                from,
                until,
            } => Some((victim.tile, culprit.tile, from, until)),
            _ => None,
        })
        .collect();
    assert_eq!(waits, [(3, 1, 72, 132)]);
    // Account of the second answer: 60 waited, 60 served.
    let (at, answer) = world.chip.sent.last().expect("answer");
    assert_eq!((*at, answer.destination), (192, 3));
    assert_eq!((answer.account.service, answer.account.waited), (60, 60));
}

#[test]
fn a_transfer_of_the_tile_makes_messages_wait() {
    let mut world = World::new(&config());
    channel(&mut world, 1, 256);
    world.set(
        2,
        9,
        memory_at(MEMORY_TILE, 3 * SHARE, 4096, TLB_READ | TLB_WRITE),
    );
    let send = Command::new(Opcode::Send, 8, u32::from(NO_ENDPOINT));
    // Tile 2 writes 4096 bytes. Its blocks are read from 28 on, four per 20 ticks, until all 64 have begun at 28 + 15 * 20
    // = 328. A message to be stored at 112 waits until the port is free at 348.
    world.command(2, Command::new(Opcode::Write, 9, 0), BASE, 4096, 0);
    world.command(1, send, BASE, 1, 0);
    world.run();
    let waits: Vec<_> = (world.chip.log.iter())
        .filter_map(|&(_, tile, o)| match o {
            Observation::Wait {
                victim,
                culprit,
                from,
                until,
                ..
            } => Some((tile, victim.tile, culprit.tile, from, until)),
            _ => None,
        })
        .collect();
    assert_eq!(waits, [(2, 1, 2, 112, 348)]);
    // Sent at 62, arrived at 72; the receipt (40) and one block (20) are service.
    let answer = world.chip.sent.iter().find(|(_, p)| p.destination == 1);
    let account = answer.map(|(at, p)| (*at, p.account.service, p.account.waited));
    assert_eq!(account, Some((368, 60, 236)));
}

#[test]
fn sleep_ends_with_the_message_or_the_timeout() {
    let mut world = World::new(&config());
    channel(&mut world, 1, 256);
    let sleep = Command::new(Opcode::Sleep, NO_ENDPOINT, 0);
    world.command(2, sleep, 0, 0, 0);
    world.execute(1, Command::new(Opcode::Send, 8, 9), BASE, 1, 0);
    assert_eq!(world.error(2), DtuError::None);
    let woken = world
        .chip
        .log
        .iter()
        .find(|e| e.1 == 2 && matches!(e.2, Observation::CommandEnd { .. }));
    // When the message is in the buffer, as in `send_of_one_byte`.
    assert_eq!(woken.map(|e| e.0), Some(132));
    assert_eq!(world.chip.harts[2].wakes, 1);
    // There is an unread message: no sleep at all.
    assert_eq!(world.execute(2, sleep, 0, 0, 0), (DtuError::None, 0));
    world.fetch(2, 8);
    // 100 ns at 4 ticks per nanosecond.
    assert_eq!(world.execute(2, sleep, 0, 0, 100), (DtuError::Woken, 400));
}

#[test]
fn time_and_timer() {
    let mut world = World::new(&config());
    world.run_until(10);
    // 10 ticks at 4 per nanosecond: 2.5, rounded down.
    assert_eq!(world.read(1, TIME), 2);
    world.write(1, PRIVILEGED_ARGUMENT, 25);
    world.write(1, PRIVILEGED_COMMAND, PrivilegedOpcode::SetTimer as u64);
    world.run_until(110);
    assert!(!world.chip.harts[1].interrupt);
    world.run_until(111);
    assert!(world.chip.harts[1].interrupt);
    assert_eq!(world.read(1, TIMER_EXPIRED), 1);
    world.write(1, TIMER_EXPIRED, 1);
    assert!(!world.chip.harts[1].interrupt);
    // Rearmed before it expires: only the last setting counts; 0 disarms.
    for nanoseconds in [5, 10, 0] {
        world.write(1, PRIVILEGED_ARGUMENT, nanoseconds);
        world.write(1, PRIVILEGED_COMMAND, PrivilegedOpcode::SetTimer as u64);
    }
    world.run();
    assert_eq!(world.read(1, TIMER_EXPIRED), 0);
}

/// Moments are registers, so software that sets them again and again leaves nothing behind.
#[test]
fn moments_that_are_set_again_replace_each_other() {
    let mut world = World::new(&config());
    for turn in 0..100_u64 {
        // Each is earlier than the one before.
        world.write(1, PRIVILEGED_ARGUMENT, 1_000_000 - turn);
        world.write(1, PRIVILEGED_COMMAND, PrivilegedOpcode::SetTimer as u64);
        let wait = Awaited::new(3, 0, 0).after(256 * (1000 - turn));
        world.write(1, AWAITED, wait.0);
        assert!(
            world.chip.pending() <= 2,
            "{turn}: {}",
            world.chip.pending()
        );
    }
    world.run_until(4_000_000 - 4 * 99);
    assert_eq!(world.read(1, TIMER_EXPIRED), 0);
    world.run_until(4_000_000);
    assert_eq!(world.read(1, TIMER_EXPIRED), 1);
    assert_eq!(world.chip.pending(), 0);
}

fn with_outstanding(outstanding: u32) -> crate::config::DtuConfig {
    crate::config::DtuConfig {
        outstanding,
        ..config()
    }
}
