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
