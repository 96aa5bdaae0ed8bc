//! Shares: all endpoints of a gate together occupy as many of the receiver's slots as the gate has shares, and no others.

use super::world::*;
use bulkhead_abi::dtu::*;

/// The gates of a receiver with four slots: one that a hostile program has, an honest client's, and one that has no shares.
const HOSTILE: u32 = 0b0011;
const HONEST: u32 = 0b1100;

/// An endpoint of a gate that leads to endpoint 8 of tile 0.
fn gate(shares: u32) -> Endpoint {
    SendEndpoint::of_gate(TILEMUX_ACTIVITY, (0, 8), (7, shares), 64).into()
}

/// Tile 0 receives. Tiles 1 and 2 have two endpoints each of one gate; tile 3 has one of another gate.
fn world() -> World {
    let mut world = World::new(&config());
    world.set(0, 8, receive_at(0x4000, 4, 64, 16));
    for (tile, endpoint, shares) in [
        (1, 8, HOSTILE),
        (1, 9, HOSTILE),
        (2, 8, HOSTILE),
        (2, 9, HOSTILE),
        (3, 8, HONEST),
    ] {
        world.set(tile, endpoint, gate(shares));
    }
    world
}

fn send(world: &mut World, tile: u16, endpoint: u16) -> DtuError {
    let command = Command::new(Opcode::Send, endpoint, NO_ENDPOINT.into());
    world.execute(tile, command, BASE, 1, 0).0
}

fn acknowledge(world: &mut World, offset: u64) {
    let command = Command::new(Opcode::Acknowledge, 8, offset as u32);
    assert_eq!(world.execute(0, command, 0, 0, 0).0, DtuError::None);
}

fn credits(world: &World, tile: u16, endpoint: u16) -> u8 {
    match world.endpoint(tile, endpoint) {
        Endpoint::Send(send) => send.credits,
        other => panic!("{other:?}"),
    }
}

#[test]
fn all_endpoints_of_a_gate_together_occupy_its_slots() {
    let mut world = world();
    let mut sent = 0;
    for (tile, endpoint) in [(1, 8), (1, 9), (2, 8), (2, 9)].repeat(3) {
        match send(&mut world, tile, endpoint) {
            DtuError::None => sent += 1,
            // Its own credits were given back.
            DtuError::NoSpace => assert_ne!(credits(&world, tile, endpoint), 0),
            other => panic!("{other:?}"),
        }
    }
    assert_eq!(sent, 2);
    assert_eq!(send(&mut world, 3, 8), DtuError::None);
    assert_eq!(send(&mut world, 3, 8), DtuError::None);
}

#[test]
fn an_endpoint_that_is_configured_again_has_no_more_slots() {
    let mut world = world();
    assert_eq!(send(&mut world, 1, 8), DtuError::None);
    assert_eq!(send(&mut world, 1, 8), DtuError::None);
    for _ in 0..3 {
        world.set(1, 8, Endpoint::Invalid);
        world.set(1, 8, gate(HOSTILE));
        assert_eq!(credits(&world, 1, 8), 2);
        assert_eq!(send(&mut world, 1, 8), DtuError::NoSpace);
    }
    // The receiver holds one message and has not seen the other one.
    let offset = world.fetch(0, 8).expect("a message");
    assert_eq!(send(&mut world, 1, 8), DtuError::NoSpace);
    acknowledge(&mut world, offset);
    assert_eq!(send(&mut world, 1, 8), DtuError::None);
    assert_eq!(send(&mut world, 1, 8), DtuError::NoSpace);
    assert_eq!(send(&mut world, 3, 8), DtuError::None);
}

/// A gate was revoked, and its shares belong to another one, while its messages are still in the buffer: only the new gate waits for them.
#[test]
fn the_next_gate_waits_for_what_the_last_one_left() {
    let mut world = world();
    assert_eq!(send(&mut world, 1, 8), DtuError::None);
    assert_eq!(send(&mut world, 1, 8), DtuError::None);
    world.set(1, 8, Endpoint::Invalid);
    // It has one old share and one of its own.
    world.set(2, 9, gate(0b0110));
    world.set(3, 8, gate(0b1000));
    assert_eq!(send(&mut world, 2, 9), DtuError::None);
    assert_eq!(send(&mut world, 2, 9), DtuError::NoSpace);
    assert_eq!(send(&mut world, 3, 8), DtuError::None);
    // The first message had the first share, which the new gate does not have.
    let first = world.fetch(0, 8).expect("a message");
    acknowledge(&mut world, first);
    assert_eq!(send(&mut world, 2, 9), DtuError::NoSpace);
    let second = world.fetch(0, 8).expect("a message");
    acknowledge(&mut world, second);
    assert_eq!(send(&mut world, 2, 9), DtuError::None);
}

/// A share comes back with its slot however the slot becomes free.
#[test]
fn shares_come_back_with_their_slots() {
    let mut world = world();
    world.set(1, 10, receive_at(0x5000, 4, 64, NO_ENDPOINT));
    for _ in 0..6 {
        let ask = Command::new(Opcode::Send, 8, 10);
        assert_eq!(world.execute(1, ask, BASE, 1, 0).0, DtuError::None);
        let offset = world.fetch(0, 8).expect("a message");
        let answer = Command::new(Opcode::Reply, 8, offset as u32);
        assert_eq!(world.execute(0, answer, BASE, 1, 0).0, DtuError::None);
        let answer = world.fetch(1, 10).expect("an answer");
        let command = Command::new(Opcode::Acknowledge, 10, answer as u32);
        assert_eq!(world.execute(1, command, 0, 0, 0).0, DtuError::None);
    }
    // The receive endpoint is reconfigured: its messages are gone, and their shares are free.
    for _ in 0..2 {
        assert_eq!(send(&mut world, 1, 8), DtuError::None);
        assert_eq!(send(&mut world, 1, 8), DtuError::None);
        assert_eq!(send(&mut world, 1, 9), DtuError::NoSpace);
        world.set(0, 8, receive_at(0x4000, 4, 64, 16));
        world.set(1, 8, gate(HOSTILE));
    }
    // The window to the buffer is closed, so nothing can be stored.
    world.set(0, 0, Endpoint::Invalid);
    for _ in 0..3 {
        assert_eq!(send(&mut world, 1, 8), DtuError::ReceiverGone);
    }
    world.set(0, 0, share(0));
    assert_eq!(send(&mut world, 1, 8), DtuError::None);
    assert_eq!(send(&mut world, 1, 8), DtuError::None);
}

/// Without shares, as in the system's own channels, only the slots count.
#[test]
fn a_gate_without_shares_may_fill_the_buffer() {
    let mut world = world();
    world.set(1, 8, gate(0));
    for _ in 0..4 {
        assert_eq!(send(&mut world, 1, 8), DtuError::None);
    }
    assert_eq!(send(&mut world, 1, 8), DtuError::NoSpace);
    assert_eq!(send(&mut world, 3, 8), DtuError::NoSpace);
}

#[test]
fn the_receiver_does_not_see_shares() {
    let mut world = world();
    assert_eq!(send(&mut world, 3, 8), DtuError::None);
    let offset = world.fetch(0, 8).expect("a message");
    // Bytes 12 to 15 of the header.
    assert_eq!(world.bytes(0, 0x4000 + offset + 12, 4), [0; 4]);
}
