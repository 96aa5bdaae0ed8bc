//! Random use against a simple reference model, and conservation laws under concurrency.

use super::world::*;
use bulkhead_abi::dtu::*;
use proptest::prelude::*;

const SLOTS: usize = 4;
const CREDITS: u8 = 3;
/// Slots for replies at a sender; fewer than credits, so replies can be refused.
const REPLY_SLOTS: usize = 2;

#[derive(Clone, Copy, Debug)]
enum Step {
    Send {
        sender: u16,
        wants_reply: bool,
    },
    Fetch,
    Reply(usize),
    Acknowledge(usize),
    TakeReply(u16),
    /// Lets this many actions of the chip happen (concurrent test only).
    Wait(u8),
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        4 => (1u16..4, any::<bool>()).prop_map(|(sender, wants_reply)| Step::Send { sender, wants_reply }),
        4 => Just(Step::Fetch),
        3 => (0..SLOTS).prop_map(Step::Reply),
        2 => (0..SLOTS).prop_map(Step::Acknowledge),
        2 => (1u16..4).prop_map(Step::TakeReply),
        3 => (0u8..12).prop_map(Step::Wait),
    ]
}

/// The shares of each sender's gate: none; or tiles 1 and 2 have endpoints of one gate, and tile 3 has another gate.
const SHARES: [[u32; 4]; 2] = [[0; 4], [0, 0b0101, 0b0101, 0b0010]];

/// Tiles 1 to 3 send to tile 0, which uses no privilege here.
fn world(shares: [u32; 4]) -> World {
    let mut world = World::new(&config());
    world.set(0, 8, receive_at(0x4000, SLOTS as u8, 64, 16));
    for tile in 1..TILES {
        let Endpoint::Send(send) = send_to(0, 8, CREDITS, 64) else {
            panic!("a send endpoint")
        };
        let shares = shares[usize::from(tile)];
        world.set(tile, 8, SendEndpoint { shares, ..send }.into());
        world.set(
            tile,
            9,
            receive_at(0x4000, REPLY_SLOTS as u8, 64, NO_ENDPOINT),
        );
    }
    world
}

#[derive(Clone, Copy, Debug)]
struct Message {
    sender: u16,
    number: u8,
    wants_reply: bool,
}

#[derive(Debug, Default)]
struct Model {
    credits: [u8; 4],
    unread: Vec<Message>,
    /// Fetched messages and their offsets.
    held: Vec<(u64, Message)>,
    /// Replies waiting at the senders.
    replies: [usize; 4],
}

fn credits(world: &World, tile: u16) -> u8 {
    match world.endpoint(tile, 8) {
        Endpoint::Send(send) => send.credits,
        other => panic!("{other:?}"),
    }
}

fn receive(world: &World) -> ReceiveEndpoint {
    match world.endpoint(0, 8) {
        Endpoint::Receive(receive) => receive,
        other => panic!("{other:?}"),
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, ..ProptestConfig::default() })]

    #[test]
    fn behaves_like_the_model(steps in prop::collection::vec(step(), 1..80), gates in 0..SHARES.len()) {
        let shares = SHARES[gates];
        let mut world = world(shares);
        let mut model = Model { credits: [CREDITS; 4], ..Model::default() };
        let mut number = 0u8;
        for step in steps {
            match step {
                Step::Send { sender, wants_reply } => {
                    number = number.wrapping_add(1);
                    world.bytes(sender, 0, 1)[0] = number;
                    let reply = if wants_reply { 9 } else { NO_ENDPOINT };
                    let command = Command::new(Opcode::Send, 8, reply.into());
                    let error = world.execute(sender, command, BASE, 1, 0).0;
                    let all = model.unread.iter().chain(model.held.iter().map(|h| &h.1));
                    let full = all.clone().count() == SLOTS;
                    let own = shares[usize::from(sender)];
                    let of_gate = all.filter(|m| shares[usize::from(m.sender)] == own).count();
                    let full = full || own != 0 && of_gate == own.count_ones() as usize;
                    let credits = &mut model.credits[usize::from(sender)];
                    let expected = match (*credits, full) {
                        (0, _) => DtuError::NoCredits,
                        (_, true) => DtuError::NoSpace,
                        _ => DtuError::None,
                    };
                    prop_assert_eq!(error, expected);
                    if error == DtuError::None {
                        *credits -= 1;
                        model.unread.push(Message { sender, number, wants_reply });
                    }
                }
                Step::Fetch => {
                    let offset = world.fetch(0, 8);
                    prop_assert_eq!(offset.is_some(), !model.unread.is_empty());
                    if let Some(offset) = offset {
                        let number = world.bytes(0, 0x4000 + offset + 32, 1)[0];
                        let index = model.unread.iter().position(|m| m.number == number);
                        prop_assert!(index.is_some(), "an unknown message");
                        prop_assert!(model.held.iter().all(|h| h.0 != offset), "a slot used twice");
                        let message = model.unread.remove(index.unwrap_or(0));
                        model.held.push((offset, message));
                    }
                }
                Step::Reply(which) => {
                    let found = model.held.get(which).copied();
                    let offset = found.map_or(64 * which as u64 + 1, |h| h.0);
                    let command = Command::new(Opcode::Reply, 8, offset as u32);
                    let error = world.execute(0, command, BASE, 1, 0).0;
                    let full = found.map(|h| model.replies[usize::from(h.1.sender)] == REPLY_SLOTS);
                    let expected = match (found, full) {
                        (None, _) => DtuError::BadMessage,
                        (Some((_, m)), _) if !m.wants_reply => DtuError::NoReply,
                        (_, Some(true)) => DtuError::NoSpace,
                        _ => DtuError::None,
                    };
                    prop_assert_eq!(error, expected);
                    if let (DtuError::None, Some((_, message))) = (error, found) {
                        model.held.remove(which);
                        model.credits[usize::from(message.sender)] += 1;
                        model.replies[usize::from(message.sender)] += 1;
                    }
                }
                Step::Acknowledge(which) => {
                    let found = model.held.get(which).copied();
                    let offset = found.map_or(64 * which as u64 + 1, |h| h.0);
                    let command = Command::new(Opcode::Acknowledge, 8, offset as u32);
                    let error = world.execute(0, command, 0, 0, 0).0;
                    let expected = if found.is_some() { DtuError::None } else { DtuError::BadMessage };
                    prop_assert_eq!(error, expected);
                    if found.is_some() {
                        model.held.remove(which);
                    }
                }
                Step::TakeReply(tile) => {
                    let offset = world.fetch(tile, 9);
                    let waiting = &mut model.replies[usize::from(tile)];
                    prop_assert_eq!(offset.is_some(), *waiting != 0);
                    if let Some(offset) = offset {
                        *waiting -= 1;
                        let command = Command::new(Opcode::Acknowledge, 9, offset as u32);
                        prop_assert_eq!(world.execute(tile, command, 0, 0, 0).0, DtuError::None);
                    }
                }
                Step::Wait(_) => {}
            }
            for tile in 1..TILES {
                prop_assert_eq!(credits(&world, tile), model.credits[usize::from(tile)]);
            }
            let unread = CurrentActivity(world.read(0, CURRENT_ACTIVITY)).messages();
            prop_assert_eq!(usize::from(unread), model.unread.len());
            let state = receive(&world);
            prop_assert_eq!(state.unread.count_ones() as usize, model.unread.len());
            let occupied = model.unread.len() + model.held.len();
            prop_assert_eq!(state.occupied.count_ones() as usize, occupied);
            // Exactly the messages that asked for a reply have a right.
            let rights = (16..20).filter(|&i| world.endpoint(0, i) != Endpoint::Invalid).count();
            let wanted = model.unread.iter().chain(model.held.iter().map(|h| &h.1));
            prop_assert_eq!(rights, wanted.filter(|m| m.wants_reply).count());
        }
    }

    /// All tiles issue commands at once. When everything is quiet, no credit has been created or lost, except those of
    /// messages acknowledged without a reply.
    #[test]
    fn credits_are_conserved(
        steps in prop::collection::vec(step(), 1..120),
        pending: bool,
        aborts in prop::collection::vec((0usize..120, 0u16..4), 0..6),
        gates in 0..SHARES.len(),
    ) {
        let shares = SHARES[gates];
        let mut world = world(shares);
        world.chip.pending = pending;
        let mut acknowledged = [0u32; 4];
        for (index, step) in steps.into_iter().enumerate() {
            match step {
                Step::Send { sender, wants_reply } => {
                    let reply = if wants_reply { 9 } else { NO_ENDPOINT };
                    world.command(sender, Command::new(Opcode::Send, 8, reply.into()), BASE, 1, 0);
                }
                Step::Fetch => {
                    world.command(0, Command::new(Opcode::Fetch, 8, 0), 0, 0, 0);
                }
                Step::Reply(slot) => {
                    let command = Command::new(Opcode::Reply, 8, slot as u32 * 64);
                    world.command(0, command, BASE, 1, 0);
                }
                Step::Acknowledge(slot) => {
                    // Run alone so that it can be counted.
                    world.run();
                    let offset = slot as u64 * 64;
                    let sender = world.bytes(0, 0x4000 + offset + 4, 2)[0];
                    let command = Command::new(Opcode::Acknowledge, 8, offset as u32);
                    if world.execute(0, command, 0, 0, 0).0 == DtuError::None {
                        acknowledged[usize::from(sender)] += 1;
                    }
                }
                Step::TakeReply(tile) => {
                    world.run();
                    if let Some(offset) = world.fetch(tile, 9) {
                        let command = Command::new(Opcode::Acknowledge, 9, offset as u32);
                        world.execute(tile, command, 0, 0, 0);
                    }
                }
                Step::Wait(count) => {
                    for _ in 0..count {
                        world.step();
                    }
                }
            }
            for (_, tile) in aborts.iter().filter(|(at, _)| *at == index) {
                world.write(*tile, PRIVILEGED_COMMAND, PrivilegedOpcode::AbortCommand as u64);
            }
        }
        world.run();
        let state = receive(&world);
        let mut occupied = [0u32; 4];
        for slot in (0..SLOTS as u64).filter(|slot| state.occupied >> slot & 1 != 0) {
            let sender = world.bytes(0, 0x4000 + slot * 64 + 4, 2)[0];
            occupied[usize::from(sender)] += 1;
        }
        for tile in 1..TILES {
            let index = usize::from(tile);
            let sum = u32::from(credits(&world, tile)) + occupied[index] + acknowledged[index];
            prop_assert_eq!(sum, u32::from(CREDITS), "tile {}", tile);
            if shares[index] != 0 {
                let all = (1..4).filter(|i| shares[*i] == shares[index]);
                let of_gate: u32 = all.map(|i| occupied[i]).sum();
                prop_assert!(of_gate <= shares[index].count_ones());
            }
        }
        let unread = CurrentActivity(world.read(0, CURRENT_ACTIVITY)).messages();
        prop_assert_eq!(u32::from(unread), state.unread.count_ones());
    }
}
