//! Rights end: whatever was given for an endpoint as it was does not work on the endpoint as it is.

use super::latencies::channel;
use super::world::*;
use bulkhead_abi::dtu::*;
use proptest::prelude::*;

/// Tile 1 has sent a message over endpoint 8 that is to be answered at its endpoint 9, and tile 2 has fetched it. Gives its offset.
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
    // With credits that are counted, and with unlimited ones.
    for credits_max in [2, UNLIMITED_CREDITS] {
        let mut world = World::new(&config());
        let offset = asked(&mut world, credits_max);
        // A neighbour receives at the same endpoint.
        world.set(1, 9, Endpoint::Invalid);
        world.set(1, 9, receive_at(0x5000, 4, 256, NO_ENDPOINT));
        assert_eq!(reply(&mut world, offset), DtuError::ReceiverGone);
        assert_eq!(world.fetch(1, 9), None);
        assert_eq!(world.bytes(1, 0x5000, 64), [0; 64]);
        // The receiver frees the slot and is not held up; the right is gone with it.
        let acknowledge = Command::new(Opcode::Acknowledge, 8, offset as u32);
        assert_eq!(world.execute(2, acknowledge, 0, 0, 0).0, DtuError::None);
        assert_eq!(reply(&mut world, offset), DtuError::BadMessage);
    }
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
    // The reply arrives, because its endpoint is as it was; the credit is nobody's.
    assert_eq!(reply(&mut world, offset), DtuError::None);
    assert!(world.fetch(1, 9).is_some());
    assert_eq!(credits(&world), 1);
}

/// What the kernel reads of tile 1: the endpoint of which something is under way.
fn under_way(world: &mut World) -> u64 {
    world.read(1, UNDER_WAY)
}

/// The kernel invalidates so many endpoints of tile 1.
fn invalidate(world: &mut World, endpoint: u16, count: u16) {
    world.set(0, 8, memory_at(1, 0, 0x1_0000, TLB_READ | TLB_WRITE));
    world.bytes(0, 0, 8).copy_from_slice(
        &external_command(ExternalOpcode::InvalidateEndpoint, endpoint, count).to_le_bytes(),
    );
    let write = Command::new(Opcode::Write, 8, 0);
    world.command(0, write, BASE, 8, EXTERNAL_COMMAND);
    while !matches!(world.endpoint(1, endpoint), Endpoint::Invalid) {
        assert!(world.step());
    }
}

#[test]
fn what_left_is_told_until_it_is_answered() {
    let none = u64::from(NO_ENDPOINT);
    for opcode in [Opcode::Send, Opcode::Read, Opcode::Write] {
        // The endpoint stays, is taken away, or the command is aborted besides.
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
            // What the memory or the receiver did with it is done.
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
    // The first chunk is answered, the second waits for a long time; nobody has to wait with it.
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
    // None, and more than there are.
    let hostile = external_command(ExternalOpcode::InvalidateEndpoint, 30, u16::MAX);
    for command in [
        external_command(ExternalOpcode::InvalidateEndpoint, 8, 0),
        hostile,
    ] {
        world.units[0].set_endpoint(8, memory_at(1, 0, 0x1_0000, TLB_WRITE));
        world.bytes(0, 0, 8).copy_from_slice(&command.to_le_bytes());
        let write = Command::new(Opcode::Write, 8, 0);
        assert_eq!(
            world.execute(0, write, BASE, 8, EXTERNAL_COMMAND).0,
            DtuError::None
        );
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
