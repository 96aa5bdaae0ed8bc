//! Rights end: a right given for an endpoint in one configuration does not work after the endpoint is reconfigured.

use super::latencies::channel;
use super::world::*;
use crate::noc::packet::PacketKind;
use crate::types::Tick;
use bulkhead_abi::dtu::*;
use proptest::prelude::*;
use std::collections::BTreeSet;

/// Tile 1 has sent a message over endpoint 8, to be answered at its endpoint 9, and tile 2 has fetched it. Returns its offset.
fn asked(world: &mut World, credits: u8) -> u64 {
    channel(world, credits, 256);
    let send = Command::new(Opcode::Send, 8, 9);
    assert_eq!(world.execute(1, send, BASE, 1, 0xbad).0, DtuError::None);
    world.fetch(2, 8).expect("a message")
}

fn credits(world: &World) -> u8 {
    match world.endpoint(1, 8) {
        Endpoint::Send(send) => send.credits,
        other => panic!("{other:?}"),
    }
}

fn reply(world: &mut World, offset: u64) -> DtuError {
    let command = Command::new(Opcode::Reply, 8, offset as u32);
    world.execute(2, command, BASE, 1, 0).0
}

#[test]
fn a_right_to_reply_does_not_reach_who_receives_there_now() {
    // With counted credits and with unlimited ones.
    for credits_max in [2, UNLIMITED_CREDITS] {
        let mut world = World::new(&config());
        let offset = asked(&mut world, credits_max);
        // A neighbour receives at the same endpoint.
        world.set(1, 9, Endpoint::Invalid);
        world.set(1, 9, receive_at(0x5000, 4, 256, NO_ENDPOINT));
        assert_eq!(reply(&mut world, offset), DtuError::ReceiverGone);
        assert_eq!(world.fetch(1, 9), None);
        assert_eq!(world.bytes(1, 0x5000, 64), [0; 64]);
        // The receiver can still free the slot, and the right disappears with it.
        let acknowledge = Command::new(Opcode::Acknowledge, 8, offset as u32);
        assert_eq!(world.execute(2, acknowledge, 0, 0, 0).0, DtuError::None);
        assert_eq!(reply(&mut world, offset), DtuError::BadMessage);
    }
}

/// An empty reply asks whether the sender's endpoint is as it was. It has no other effect: the message and the right to answer it stay.
#[test]
fn an_empty_reply_shows_whether_the_sender_is_there() {
    let is_there = |world: &mut World, offset: u64| {
        let command = Command::new(Opcode::Reply, 8, offset as u32);
        // The address is no data: nothing is translated or read.
        let error = world.execute(2, command, u64::MAX, 0, 0).0;
        assert!(error == DtuError::BadSize || error == DtuError::ReceiverGone);
        error == DtuError::BadSize
    };
    for credits_max in [2, UNLIMITED_CREDITS] {
        for end in ["answered", "gone", "a neighbour's", "its own again"] {
            let mut world = World::new(&config());
            let offset = asked(&mut world, credits_max);
            let before = world.endpoint(2, 8);
            for _ in 0..3 {
                assert!(is_there(&mut world, offset));
            }
            assert_eq!(world.endpoint(2, 8), before);
            assert_eq!(world.fetch(1, 9), None);
            if credits_max == 2 {
                assert_eq!(credits(&world), 1);
            }
            match end {
                "answered" => {
                    assert_eq!(reply(&mut world, offset), DtuError::None);
                    assert!(world.fetch(1, 9).is_some());
                    let again = Command::new(Opcode::Reply, 8, offset as u32);
                    let error = world.execute(2, again, BASE, 0, 0).0;
                    assert_eq!(error, DtuError::BadMessage);
                    continue;
                }
                "gone" => world.set(1, 9, Endpoint::Invalid),
                "a neighbour's" => world.set(1, 9, receive_at(0x5000, 4, 256, NO_ENDPOINT)),
                _ => world.set(1, 9, world.endpoint(1, 9)),
            }
            assert!(!is_there(&mut world, offset), "{end}");
            if end != "gone" {
                assert_eq!(world.fetch(1, 9), None);
            }
            let acknowledge = Command::new(Opcode::Acknowledge, 8, offset as u32);
            assert_eq!(world.execute(2, acknowledge, 0, 0, 0).0, DtuError::None);
        }
    }
    // Without a right to reply, there is nobody to ask.
    let mut world = World::new(&config());
    channel(&mut world, 2, 256);
    let send = Command::new(Opcode::Send, 8, u32::from(NO_ENDPOINT));
    assert_eq!(world.execute(1, send, BASE, 1, 0).0, DtuError::None);
    let offset = world.fetch(2, 8).expect("a message");
    let command = Command::new(Opcode::Reply, 8, offset as u32);
    let error = world.execute(2, command, BASE, 0, 0).0;
    assert_eq!(error, DtuError::NoReply);
}

#[test]
fn a_reply_under_way_does_not_reach_who_receives_there_now() {
    let mut world = World::new(&config());
    let offset = asked(&mut world, 2);
    let command = Command::new(Opcode::Reply, 8, offset as u32);
    world.command(2, command, BASE, 1, 0);
    while !world
        .chip
        .sent
        .iter()
        .any(|(_, p)| p.source == 2 && !p.kind.is_response())
    {
        assert!(world.step());
    }
    world.set(1, 9, receive_at(0x5000, 4, 256, NO_ENDPOINT));
    world.run();
    assert_eq!(world.error(2), DtuError::ReceiverGone);
    assert_eq!(world.fetch(1, 9), None);
}

#[test]
fn a_credit_does_not_reach_a_channel_that_was_made_since() {
    let mut world = World::new(&config());
    let offset = asked(&mut world, 2);
    // Another channel to the same tile; one credit of it is in use.
    world.set(1, 8, send_to(2, 8, 2, 256));
    let send = Command::new(Opcode::Send, 8, u32::from(NO_ENDPOINT));
    assert_eq!(world.execute(1, send, BASE, 1, 0).0, DtuError::None);
    // The reply arrives because its endpoint is unchanged; the credit goes to no endpoint.
    assert_eq!(reply(&mut world, offset), DtuError::None);
    assert!(world.fetch(1, 9).is_some());
    assert_eq!(credits(&world), 1);
}

/// A refused message returns its credit only to the endpoint that it left, never to another one configured there meanwhile.
#[test]
fn the_credit_of_a_refused_message_does_not_reach_a_channel_that_was_made_since() {
    for is_new in [false, true] {
        let mut world = World::new(&config());
        channel(&mut world, 2, 256);
        // No activity receives there.
        world.set(2, 8, Endpoint::Invalid);
        let send = Command::new(Opcode::Send, 8, u32::from(NO_ENDPOINT));
        world.command(1, send, BASE, 1, 0);
        while !world.chip.sent.iter().any(|(_, p)| p.source == 1) {
            assert!(world.step());
        }
        assert_eq!(credits(&world), 1);
        if is_new {
            let Endpoint::Send(other) = send_to(2, 9, 2, 256) else {
                panic!("a send endpoint")
            };
            world.set(
                1,
                8,
                Endpoint::Send(SendEndpoint {
                    credits: 1,
                    ..other
                }),
            );
        }
        world.run();
        assert_eq!(world.error(1), DtuError::ReceiverGone);
        assert_eq!(credits(&world), if is_new { 1 } else { 2 });
    }
}

/// A receive endpoint that is taken away leaves no right to reply for the next endpoint there.
#[test]
fn rights_to_reply_go_with_their_endpoint() {
    let mut world = World::new(&config());
    asked(&mut world, 2);
    let rights = |world: &World| {
        let all = (16..20).map(|index| world.endpoint(2, index));
        all.filter(|right| *right != Endpoint::Invalid).count()
    };
    assert_eq!(rights(&world), 1);
    let command = external_command(ExternalOpcode::InvalidateEndpoint, 8, 1);
    world.external(2, EXTERNAL_COMMAND, command);
    assert_eq!(world.endpoint(2, 8), Endpoint::Invalid);
    assert_eq!(rights(&world), 0);
}

/// The kernel's view of tile 1: the endpoint with a packet in transit.
fn under_way(world: &mut World) -> u64 {
    world.read(1, UNDER_WAY)
}

/// The kernel invalidates this many endpoints of tile 1.
fn invalidate(world: &mut World, endpoint: u16, count: u16) {
    let command = external_command(ExternalOpcode::InvalidateEndpoint, endpoint, count);
    world.external(1, EXTERNAL_COMMAND, command);
}

#[test]
fn what_left_is_told_until_it_is_answered() {
    let none = u64::from(NO_ENDPOINT);
    for opcode in [Opcode::Send, Opcode::Read, Opcode::Write] {
        // The endpoint stays or is taken away; in the last case the command is also aborted.
        for (taken, aborted) in [(false, false), (true, false), (true, true)] {
            let mut world = World::new(&config());
            channel(&mut world, 2, 256);
            if opcode != Opcode::Send {
                let all = TLB_READ | TLB_WRITE;
                world.set(1, 8, memory_at(MEMORY_TILE, 3 * SHARE, 4096, all));
            }
            let argument = u32::from(NO_ENDPOINT);
            world.command(1, Command::new(opcode, 8, argument), BASE, 200, 0);
            let left = |world: &World| world.chip.sent.iter().any(|(_, p)| p.source == 1);
            while !left(&world) {
                assert_eq!(under_way(&mut world), none);
                assert!(world.step());
            }
            assert_eq!(under_way(&mut world), 8);
            if taken {
                invalidate(&mut world, 8, 1);
            }
            if aborted {
                world.write(1, PRIVILEGED_COMMAND, PrivilegedOpcode::AbortCommand as u64);
            }
            let mut told = 0;
            while under_way(&mut world) == 8 {
                told += 1;
                assert!(world.step());
            }
            assert!(told > 1);
            assert_eq!(under_way(&mut world), none);
            // The effect on the memory or the receiver has already happened.
            let before = world.chip.memory.clone();
            world.run();
            if opcode != Opcode::Read {
                assert_eq!(world.chip.memory, before);
            }
        }
    }
}

#[test]
fn nothing_is_told_of_what_waits_for_its_tokens() {
    let mut world = World::new(&config());
    world.set(1, 8, memory_at(MEMORY_TILE, 3 * SHARE, 4096, TLB_WRITE));
    world.units[1].set_bucket(0, 0, 1, 512, 512);
    world.command(1, Command::new(Opcode::Write, 8, 0), BASE, 2048, 0);
    world.run_until(2000);
    // The first chunk is answered and the second waits for a long time; nothing has to wait with it.
    assert_eq!(under_way(&mut world), u64::from(NO_ENDPOINT));
    invalidate(&mut world, 8, 1);
    world.run();
    assert_eq!(world.error(1), DtuError::InvalidEndpoint);
    assert_eq!(world.bytes(3, 512, 1), [0]);
}

#[test]
fn endpoints_are_invalidated_in_a_row() {
    let mut world = World::new(&config());
    let offset = asked(&mut world, 2);
    for endpoint in [10, 11, 12] {
        world.set(1, endpoint, memory_at(MEMORY_TILE, SHARE, 64, TLB_READ));
    }
    invalidate(&mut world, 9, 3);
    world.run();
    let left: Vec<u16> = (4..32)
        .filter(|endpoint| !matches!(world.endpoint(1, *endpoint), Endpoint::Invalid))
        .collect();
    assert_eq!(left, [8, 12]);
    assert_eq!(reply(&mut world, offset), DtuError::ReceiverGone);
    // None, and more than exist.
    let hostile = external_command(ExternalOpcode::InvalidateEndpoint, 30, u16::MAX);
    for command in [
        external_command(ExternalOpcode::InvalidateEndpoint, 8, 0),
        hostile,
    ] {
        world.external(1, EXTERNAL_COMMAND, command);
    }
    assert!(matches!(world.endpoint(1, 8), Endpoint::Send(_)));
    assert!(matches!(world.endpoint(1, 12), Endpoint::Memory(_)));
}

proptest! {
    /// However endpoints are configured between a message and its reply, the reply arrives exactly if its endpoint was not touched,
    /// and the credit comes back exactly if the reply arrives and the channel was not touched.
    #[test]
    fn a_reply_arrives_where_its_message_left_or_nowhere(
        touched in prop::collection::vec(4u16..24, 0..6),
        while_under_way in any::<bool>(),
    ) {
        let mut world = World::new(&config());
        let offset = asked(&mut world, 3);
        if while_under_way {
            world.command(2, Command::new(Opcode::Reply, 8, offset as u32), BASE, 1, 0);
            while !world.chip.sent.iter().any(|(_, p)| p.source == 2 && !p.kind.is_response()) {
                prop_assert!(world.step());
            }
        }
        for &endpoint in &touched {
            let as_it_was = match endpoint {
                8 => send_to(2, 8, 1, 256),
                9 => receive_at(0x5000, 4, 256, NO_ENDPOINT),
                _ => memory_at(MEMORY_TILE, SHARE, 64, TLB_READ),
            };
            world.set(1, endpoint, Endpoint::Invalid);
            world.set(1, endpoint, as_it_was);
        }
        let before = credits(&world);
        let error = if while_under_way {
            world.run();
            world.error(2)
        } else {
            reply(&mut world, offset)
        };
        let arrived = !touched.contains(&9);
        prop_assert_eq!(error, if arrived { DtuError::None } else { DtuError::ReceiverGone });
        prop_assert_eq!(world.fetch(1, 9).is_some(), arrived);
        let back = arrived && !touched.contains(&8);
        prop_assert_eq!(credits(&world), before + u8::from(back));
    }
}

/// The right under test.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Right {
    /// A send endpoint, with credits or without a limit.
    Send(u8),
    /// A right to reply to a message whose sender has this many credits.
    Reply(u8),
    /// Memory that its holder may write, and memory that it may read.
    Write,
    Read,
    /// Messages in the holder's receive endpoint.
    Receive,
    /// A page that the unit may write for an activity.
    Translation,
}

/// How the right ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum End {
    /// Revoked or deactivated: the endpoint is invalid.
    Revoked,
    /// The endpoint now belongs to a neighbour and has the same kind.
    Reused,
    /// The endpoint now belongs to a neighbour and has another kind.
    ReusedOtherwise,
    /// The owner died: its hart was stopped and restarted with other software.
    Dead,
    /// The other end was restarted: its endpoint was configured again, as before.
    Restarted,
}

const NEIGHBOUR: u16 = 6;
/// Where the neighbour's messages go. The memory was given away and then belongs to another owner.
const NEW_BUFFER: u64 = 0x6000;
const LENT: u64 = 3 * SHARE;

/// Closes an endpoint as the kernel does: makes it invalid, then waits until nothing is in transit.
fn close(world: &mut World, tile: u16, endpoint: u16) {
    let command = external_command(ExternalOpcode::InvalidateEndpoint, endpoint, 1);
    world.external(tile, EXTERNAL_COMMAND, command);
    while world.read(tile, UNDER_WAY) == u64::from(endpoint) {
        assert!(world.step(), "it is answered some time");
    }
}

/// A neighbour's endpoint, of the kind that a right needs or of another.
fn neighbours(receives: bool) -> Endpoint {
    match receives {
        true => Endpoint::Receive(ReceiveEndpoint {
            activity: NEIGHBOUR,
            reply_endpoints: NO_ENDPOINT,
            buffer: BASE + NEW_BUFFER,
            slot_size: 256,
            slots: 4,
            ..ReceiveEndpoint::default()
        }),
        false => Endpoint::Send(SendEndpoint {
            activity: NEIGHBOUR,
            target_tile: 3,
            target_endpoint: 9,
            credits: 1,
            credits_max: 3,
            message_size: 256,
            credit_endpoint: NO_ENDPOINT,
            ..SendEndpoint::default()
        }),
    }
}

/// One case: the right is used after its end, or is in use when it ends. Endpoint 8 of tile 1 is used; its partner is endpoint 9 or 10
/// of `far`, which may be the same tile.
fn case(right: Right, end: End, far: u16, under_way: bool) {
    let what = format!("{right:?} {end:?} tile {far} under way {under_way}");
    let mut world = World::new(&config());
    let receiver = |slots| receive_at(0x4000, slots, 256, 16);
    world.set(far, 9, receiver(4));
    // The right's user, and the endpoint whose end ends the right.
    let (mut user, mut ends) = ((1, 8), (1, 8));
    let write = match right {
        Right::Send(credits) => {
            world.set(1, 8, send_to(far, 9, credits, 256));
            if end == End::Restarted {
                ends = (far, 9);
            }
            Command::new(Opcode::Send, 8, u32::from(NO_ENDPOINT))
        }
        Right::Reply(credits) => {
            world.set(1, 8, send_to(far, 9, credits, 256));
            world.set(1, 10, receive_at(0x5000, 4, 256, NO_ENDPOINT));
            let ask = Command::new(Opcode::Send, 8, 10);
            assert_eq!(world.execute(1, ask, BASE, 1, 0xbad).0, DtuError::None);
            let offset = world.fetch(far, 9).expect("a message") as u32;
            (user, ends) = ((far, 9), (1, 10));
            Command::new(Opcode::Reply, 9, offset)
        }
        Right::Write | Right::Read => {
            let rights = [TLB_READ, TLB_WRITE][usize::from(right == Right::Write)];
            world.set(1, 8, memory_at(MEMORY_TILE, LENT, 4096, rights));
            let opcode = match right {
                Right::Write => Opcode::Write,
                _ => Opcode::Read,
            };
            Command::new(opcode, 8, 0)
        }
        Right::Receive => {
            world.set(far, 8, send_to(1, 9, 4, 256));
            world.set(1, 9, receiver(4));
            let send = Command::new(Opcode::Send, 8, u32::from(NO_ENDPOINT));
            assert_eq!(world.execute(far, send, BASE, 1, 0).0, DtuError::None);
            ends = (1, 9);
            Command::new(Opcode::Fetch, 9, 0)
        }
        Right::Translation => {
            world.set(1, 9, memory_at(MEMORY_TILE, LENT, 4096, TLB_READ));
            let Endpoint::Memory(mut memory) = world.endpoint(1, 9) else {
                panic!()
            };
            memory.activity = 5;
            world.set(1, 9, Endpoint::Memory(memory));
            world.map(1, 5, 0x1000_0000, NEW_BUFFER, TLB_WRITE);
            world.switch(1, 5, 0);
            Command::new(Opcode::Read, 9, 0)
        }
    };
    let address = match right {
        Right::Translation => 0x1000_0000,
        _ => BASE + 0x100,
    };
    world.bytes(user.0, 0x100, 64).fill(0x77);
    if under_way {
        let sent = world.chip.sent.len();
        world.command(user.0, write, address, 64, 0);
        let left = |world: &World| {
            let mut since = world.chip.sent[sent..].iter();
            since.any(|(_, p)| p.source == user.0 && !p.kind.is_response())
        };
        while !left(&world) && world.units[usize::from(user.0)].running.is_some() {
            assert!(world.step(), "{what}");
        }
    }
    // The kernel ends the right. What it leads to goes after the right itself.
    if end == End::Dead {
        world.external(ends.0, EXTERNAL_COMMAND, ExternalOpcode::StopHart as u64);
    }
    if end == End::Restarted && matches!(right, Right::Send(_)) {
        close(&mut world, 1, 8);
    }
    if right == Right::Translation {
        // TileMux aborts what runs and waits for it; then the page goes to another owner.
        world.write(1, PRIVILEGED_COMMAND, PrivilegedOpcode::AbortCommand as u64);
        while world.units[1].running.is_some() {
            assert!(world.step(), "{what}");
        }
        world.write(
            1,
            PRIVILEGED_COMMAND,
            PrivilegedOpcode::InvalidateTlb as u64,
        );
    } else {
        close(&mut world, ends.0, ends.1);
    }
    // From now on everything belongs to another owner.
    let new = match (right, end) {
        (Right::Translation, _) | (_, End::Revoked | End::Dead) => None,
        (Right::Reply(_) | Right::Receive, End::Restarted) => {
            Some(receive_at(NEW_BUFFER, 4, 256, NO_ENDPOINT))
        }
        (Right::Send(_), End::Restarted) => Some(receive_at(NEW_BUFFER, 4, 256, NO_ENDPOINT)),
        (Right::Write | Right::Read, End::Restarted) => None,
        (Right::Reply(_) | Right::Receive, End::Reused) => Some(neighbours(true)),
        (_, End::Reused) => Some(neighbours(false)),
        (Right::Reply(_) | Right::Receive, End::ReusedOtherwise) => Some(neighbours(false)),
        (_, End::ReusedOtherwise) => Some(neighbours(true)),
    };
    if let Some(new) = new {
        world.set(ends.0, ends.1, new);
    }
    world.bytes(ends.0, NEW_BUFFER, 1024).fill(0);
    world.bytes(3, 0, 4096).fill(0x55);
    let mut before = world.endpoint(ends.0, ends.1);
    world.run();
    // The old user tries now, and again later.
    for _ in 0..2 {
        if right == Right::Translation {
            world.switch(1, 5, 0);
        }
        let (error, _) = world.execute(user.0, write, address, 64, 0);
        let nothing_there = right == Right::Receive
            && end == End::Restarted
            && world.read(1, ARGUMENT) == NO_MESSAGE;
        assert!(error != DtuError::None || nothing_there, "{what}");
    }
    if let (Endpoint::Receive(new), Endpoint::Receive(old)) =
        (world.endpoint(ends.0, ends.1), &mut before)
    {
        // A fetch that finds nothing may rotate.
        old.position = new.position;
    }
    assert_eq!(world.endpoint(ends.0, ends.1), before, "{what}");
    assert_eq!(world.bytes(ends.0, NEW_BUFFER, 1024), [0; 1024], "{what}");
    assert_eq!(world.bytes(3, 0, 4096), [0x55; 4096], "{what}");
}

#[test]
fn every_right_ends_in_every_way() {
    let mut cases = 0;
    for right in [
        Right::Send(2),
        Right::Send(UNLIMITED_CREDITS),
        Right::Reply(2),
        Right::Reply(UNLIMITED_CREDITS),
        Right::Write,
        Right::Read,
        Right::Receive,
        Right::Translation,
    ] {
        for end in [
            End::Revoked,
            End::Reused,
            End::ReusedOtherwise,
            End::Dead,
            End::Restarted,
        ] {
            for far in [1, 2] {
                for under_way in [false, true] {
                    case(right, end, far, under_way);
                    cases += 1;
                }
            }
        }
    }
    println!("{cases} cases");
}

/// A kernel stores the words of a right and frees the message's slot. Written into another receive endpoint's right, they answer the
/// same caller; if its endpoint was reconfigured since then, they answer no one.
#[test]
fn the_words_of_a_right_are_the_right() {
    for touched in [false, true] {
        let mut world = World::new(&config());
        let offset = asked(&mut world, 2);
        let right = (0..32)
            .map(|index| (index, world.endpoint(2, index)))
            .find(|(_, endpoint)| matches!(endpoint, Endpoint::Send(send) if send.reply));
        let (_, right) = right.expect("a right to reply");
        let acknowledge = Command::new(Opcode::Acknowledge, 8, offset as u32);
        assert_eq!(world.execute(2, acknowledge, 0, 0, 0).0, DtuError::None);
        if touched {
            world.set(1, 9, receive_at(0x5000, 4, 256, NO_ENDPOINT));
        }
        // As if the message were in a slot of endpoint 20, whose right is endpoint 21.
        let Endpoint::Receive(mut parked) = receive_at(0x6000, 1, 256, 21) else {
            panic!("a receive endpoint");
        };
        parked.occupied = 1;
        world.set(2, 20, Endpoint::Receive(parked));
        world.set(2, 21, right);
        let command = Command::new(Opcode::Reply, 20, 0);
        let error = world.execute(2, command, BASE, 1, 0).0;
        let expected = match touched {
            true => DtuError::ReceiverGone,
            false => DtuError::None,
        };
        assert_eq!(error, expected);
        assert_eq!(world.fetch(1, 9).is_some(), !touched);
    }
}

#[test]
fn nothing_is_stored_after_the_buffer_was_taken_away() {
    for pending in [false, true] {
        let mut cut = 0;
        // The buffer is taken away after any number of steps.
        for steps in 1.. {
            let mut world = World::new(&config());
            world.chip.pending = pending;
            channel(&mut world, 1, 2048);
            world.bytes(1, 0, 2000).fill(0xAB);
            let send = Command::new(Opcode::Send, 8, NO_ENDPOINT.into());
            world.command(1, send, BASE, 2000, 0);
            for _ in 0..steps {
                world.step();
            }
            if world.read(1, COMMAND) & 0xFF == 0 {
                break;
            }
            let taken = external_command(ExternalOpcode::InvalidateEndpoint, 8, 1);
            world.external(2, EXTERNAL_COMMAND, taken);
            let before = world.bytes(2, 0x4000, 2048).to_vec();
            world.run();
            let stored = before.iter().filter(|byte| **byte == 0xAB).count();
            cut += usize::from((1..2000).contains(&stored));
            assert!(world.bytes(2, 0x4000, 2048) == before, "{steps}");
            let told = if stored == 2000 {
                [DtuError::None, DtuError::ReceiverGone]
            } else {
                [DtuError::ReceiverGone; 2]
            };
            assert!(told.contains(&world.error(1)), "{steps}");
        }
        assert!(cut > 3, "{cut}");
    }
}

/// The answers to the kernel since a packet: when, and whether refused.
fn answers(world: &World, since: usize) -> Vec<(Tick, bool)> {
    let sent = world.chip.sent[since..].iter();
    sent.filter_map(|(at, packet)| match packet.kind {
        PacketKind::WriteResponse { error } => Some((*at, error)),
        _ => None,
    })
    .collect()
}

#[test]
fn a_register_says_when_lines_are_written_back() {
    let write_back = |lines| external_command(ExternalOpcode::WriteBack, 0, lines);
    for pending in [false, true] {
        let mut world = World::new(&config());
        world.chip.pending = pending;
        world.external(1, EXTERNAL_ARGUMENT, BASE + 100);
        let (begin, since) = (world.chip.now, world.chip.sent.len());
        world.external(1, EXTERNAL_COMMAND, write_back(5));
        // One at a time, and not too many.
        world.external(1, EXTERNAL_COMMAND, write_back(1));
        assert_eq!(answers(&world, since), [(begin, false), (begin, true)]);
        let mut end = begin;
        while world.read(1, WRITING_BACK) != 0 {
            assert!(world.step(), "it ends");
            end = world.chip.now;
        }
        // Four lines at a time, then one. Lines in transit are asked for twice.
        let rounds = if pending { 4 } else { 2 };
        assert_eq!(end, begin + rounds * LOCAL);
        let lines: BTreeSet<u64> = world.chip.written_back.iter().map(|w| w.1).collect();
        let expected = (1..6).map(|line| BASE + 64 * line);
        assert_eq!(
            lines,
            expected.collect(),
            "the line of the address comes first"
        );
        let since = world.chip.sent.len();
        for (address, lines) in [(BASE, WRITE_BACK_LINES + 1), (u64::MAX, 1)] {
            world.external(1, EXTERNAL_ARGUMENT, address);
            world.external(1, EXTERNAL_COMMAND, write_back(lines));
        }
        let refused: Vec<bool> = answers(&world, since).iter().map(|a| a.1).collect();
        assert_eq!(refused, [false, true, false, true]);
        // With nothing to do, it completes immediately.
        world.external(1, EXTERNAL_ARGUMENT, BASE);
        let since = world.chip.sent.len();
        world.external(1, EXTERNAL_COMMAND, write_back(0));
        assert_eq!(answers(&world, since), [(world.chip.now, false)]);
        assert_eq!(world.read(1, WRITING_BACK), 0);
    }
}
