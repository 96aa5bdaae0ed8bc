//! Closed forms of a memory's ports, and reservations.

use super::*;

const A: Owner = Owner::new(1, 0);
const B: Owner = Owner::new(2, 0);
const HART: Owner = Owner::new(0, 0);

fn memory(ports: u32) -> LocalMemory {
    // Four banks of 8 KiB, 3 ticks per cycle, 8 bytes per cycle.
    let config = LocalMemoryConfig {
        cycle: 3,
        ports,
        ..LocalMemoryConfig::default()
    };
    LocalMemory::new(&config, 0)
}

/// The start of a network request's turn, and the recorded waits.
fn remote(
    memory: &mut LocalMemory,
    now: Tick,
    offset: u64,
    owner: Owner,
) -> (Tick, Vec<(Owner, Tick)>) {
    let mut waits = Vec::new();
    let start = memory.remote(
        now,
        offset,
        RemoteOperation::Load,
        owner,
        |_, holder, ticks| {
            waits.push((holder, ticks));
        },
    );
    (start, waits)
}

#[test]
fn each_before_is_waited_for_as_long_as_it_has_the_port() {
    let mut memory = memory(1);
    assert_eq!(remote(&mut memory, 30, 0, A), (30, vec![]));
    // At 31 the next edge is 33, when A has just finished.
    assert_eq!(remote(&mut memory, 31, 8, B), (33, vec![]));
    assert_eq!(remote(&mut memory, 33, 0, A), (36, vec![(B, 3)]));
    assert_eq!(remote(&mut memory, 34, 0, B), (39, vec![(A, 3)]));
    // The request at 40 is served at 42; B has the port until then.
    let (start, waits) = remote(&mut memory, 36, 0, A);
    assert_eq!((start, waits), (42, vec![(A, 3), (B, 3)]));
    // Another bank is free.
    assert_eq!(remote(&mut memory, 36, 0x2000, A), (36, vec![]));
}

#[test]
fn one_port_is_shared_and_two_are_not() {
    let mut ledger = Ledger::new();
    let mut one = memory(1);
    assert_eq!(one.own(30, 0, 16, HART, &mut ledger), 30);
    // A fetch of 16 bytes takes two cycles.
    assert_eq!(remote(&mut one, 30, 0, A), (36, vec![(HART, 6)]));
    assert_eq!(one.own(33, 8, 8, HART, &mut ledger), 39);
    let booked: Vec<_> = ledger
        .bookings()
        .iter()
        .map(|b| (b.culprit, b.ticks))
        .collect();
    assert_eq!(booked, [(HART, 3), (A, 3)]);
    let mut two = memory(2);
    assert_eq!(two.own(30, 0, 16, HART, &mut ledger), 30);
    assert_eq!(remote(&mut two, 30, 0, A), (30, vec![]));
    assert_eq!(remote(&mut two, 30, 0, B), (33, vec![(A, 3)]));
}

#[test]
fn any_store_ends_a_reservation() {
    let mut memory = memory(1);
    let conditional = RemoteOperation::Conditional(7);
    memory.perform(A, 0x40, 8, RemoteOperation::Reserve);
    memory.perform(B, 0x40, 8, RemoteOperation::Reserve);
    // A write to another word does not matter, not even to the one in which a misaligned store
    // ends.
    memory.write(0x3c, 4, 1);
    assert_eq!(memory.perform(A, 0x40, 8, conditional), 0);
    assert_eq!(memory.perform(B, 0x40, 8, conditional), 1);
    memory.perform(A, 0x40, 4, RemoteOperation::Reserve);
    memory.write(0x3c, 8, 0);
    assert_eq!(memory.perform(A, 0x40, 4, conditional), 1);
    // A tile has one reservation.
    memory.perform(A, 0x40, 8, RemoteOperation::Reserve);
    memory.perform(A, 0x80, 8, RemoteOperation::Reserve);
    assert_eq!(memory.perform(A, 0x40, 8, conditional), 1);
}

#[test]
fn atomics_are_those_of_the_instruction_set() {
    let mut memory = memory(1);
    memory.write(8, 8, 0xFFFF_FFFF_8000_0000);
    // amomax.w of -2^31 and 1; amomaxu.w of the same.
    assert_eq!(
        memory.perform(A, 8, 4, RemoteOperation::Modify(20, 1)),
        0x8000_0000
    );
    assert_eq!(memory.read(8, 8), 0xFFFF_FFFF_0000_0001);
    memory.write(8, 4, 0x8000_0000);
    memory.perform(A, 8, 4, RemoteOperation::Modify(28, 1));
    assert_eq!(memory.read(8, 8), 0xFFFF_FFFF_8000_0000);
    // amoadd.d
    assert_eq!(
        memory.perform(A, 8, 8, RemoteOperation::Modify(0, 1 << 31)),
        0xFFFF_FFFF_8000_0000
    );
    assert_eq!(memory.read(8, 8), 0);
}
