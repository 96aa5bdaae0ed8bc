//! Hostile clients and a hostile peer leave nothing behind. When all clients are gone and time has passed, each table is as at the start,
//! and the next client gets as much as the first one did.

use super::*;
use crate::tests::{HERE, Pair, THERE, Wire, cases, options, owner as alone, request};
use crate::tests_fuzz::owner;
use proptest::prelude::*;

/// What a service owns for its clients; empty if nothing is owned. Sockets are counted where they are entered and where the protocols have them.
fn owned(stack: &mut Stack<Wire, u32>) -> [usize; 7] {
    [
        stack.entries.iter().flatten().count(),
        stack.sockets.iter().count(),
        (0..8)
            .map(|label| stack.sockets_on(alone(label).client))
            .sum(),
        stack.waiting.len(),
        stack.done.len(),
        stack.backlog.len(),
        stack.card().out(),
    ]
}

/// How many sockets clients get one after the other, each taking as many as it can; the first has `first`'s number.
fn capacity(stack: &mut Stack<Wire, u32>, first: u16) -> Vec<usize> {
    let taken = (first..first + 20).map(|activity| {
        let whose = Owner {
            activity,
            ..alone(activity - first)
        };
        let mut count = 0;
        loop {
            stack.request(whose, request(BIND, 0), &[], 0, 0);
            match stack.take() {
                Some((_, answer)) if answer.reply.status == 0 => count += 1,
                _ => return count,
            }
        }
    });
    taken.collect()
}

#[derive(Clone, Debug)]
enum Act {
    /// The side, the activity, the operation, the socket, the port, whether it waits without end, the bytes.
    Ask(usize, u16, u64, usize, u16, bool, usize),
    /// A client is gone.
    Forget(usize, u16),
    /// This many forged openings arrive for a port, or meaningless bytes.
    Forge(u32, u16),
    Noise(Vec<u8>),
    /// This many ticks, in which this percentage of frames is lost.
    Wait(u32, u64),
}

fn act() -> impl Strategy<Value = Act> {
    let operation = prop_oneof![
        4 => prop::sample::select([BIND, LISTEN, CONNECT, ACCEPT].to_vec()),
        4 => prop::sample::select([SEND, SEND_TO, RECEIVE, RECEIVE_FROM, CLOSE].to_vec()),
        1 => any::<u64>(),
    ];
    let ask = (
        0usize..2,
        0u16..4,
        operation,
        0usize..12,
        1u16..4,
        any::<bool>(),
        0usize..1500,
    );
    prop_oneof![
        16 => ask.prop_map(|(side, a, o, s, p, w, d)| Act::Ask(side, a, o, s, p, w, d)),
        1 => (0usize..2, 0u16..4).prop_map(|(side, activity)| Act::Forget(side, activity)),
        3 => (1u32..6, 1u16..4).prop_map(|(count, port)| Act::Forge(count, port)),
        1 => prop::collection::vec(any::<u8>(), 0..80).prop_map(Act::Noise),
        4 => (1u32..40, 0u64..60).prop_map(|(ticks, loss)| Act::Wait(ticks, loss)),
    ]
}

proptest! {
    #![proptest_config(cases())]

    #[test]
    fn all_is_back_when_the_hostile_are_gone(acts in prop::collection::vec(act(), 1..80)) {
        let mut pair = Pair::new(0);
        let mut handles: [Vec<u64>; 2] = [Vec::new(), Vec::new()];
        for (item, act) in acts.into_iter().enumerate() {
            match act {
                Act::Ask(side, activity, operation, socket, port, waits, bytes) => {
                    let known = &handles[side];
                    let socket = known.get(socket % known.len().max(1)).copied().unwrap_or(0);
                    let until = if waits { 0 } else { pair.now + 3_000_000 };
                    let address = [THERE, HERE][side];
                    let length = bytes as u16;
                    let asked = Request { port, length, until, address, ..request(operation, socket) };
                    let now = pair.now;
                    pair.stacks[side].request(owner(activity), asked, &alloc::vec![7; bytes], item as u32, now);
                }
                Act::Forget(side, activity) => {
                    let now = pair.now;
                    pair.stacks[side].forget(activity, now);
                }
                Act::Forge(count, port) => pair.forge(count, port),
                Act::Noise(bytes) => pair.stacks[1].card().arrived.push_back(bytes),
                Act::Wait(ticks, loss) => {
                    pair.loss = loss;
                    (0..ticks).for_each(|_| pair.tick());
                }
            }
            pair.tick();
            for (side, known) in handles.iter_mut().enumerate() {
                for (_, answer) in pair.answers[side].drain(..) {
                    // Handles, counts and lengths: a value that is not a handle counts as an unknown handle.
                    known.push(answer.reply.value);
                }
            }
        }
        let now = pair.now;
        for stack in &mut pair.stacks {
            (0..4).for_each(|activity| stack.forget(activity, now));
            prop_assert_eq!(stack.waiting(), 0);
        }
        // Lingering connections send their last segments, or give up.
        pair.loss = 0;
        for _ in 0..200 {
            pair.now += 1_000_000_000;
            pair.tick();
            pair.answers.iter_mut().for_each(Vec::clear);
        }
        for stack in &mut pair.stacks {
            prop_assert_eq!(owned(stack), [0; 7]);
            let mut fresh = Stack::new(Wire::default(), options(HERE), 0);
            prop_assert_eq!(capacity(stack, 100), capacity(&mut fresh, 100));
        }
    }
}

/// Time for frames belongs to a channel: a client that has used up its time and ends its session gets no more of it in the next session.
#[test]
fn a_new_session_pays_the_debt_of_the_one_before() {
    let terms = Terms {
        limit: u64::MAX,
        budget: 3_000,
        period: 1_000_000,
    };
    let counted = |sessions: u16| {
        let mut pair = Pair::new(0);
        pair.stacks[1].options.arrivals = terms;
        pair.stacks[1].accounts = Accounts::new(&pair.stacks[1].options, pair.now);
        let client = pair.call(0, 3, request(BIND, 0), &[]).reply.value;
        pair.stacks[0].greet(THERE);
        (0..4).for_each(|_| pair.tick());
        // Each reading of the clock takes a microsecond, so a frame takes some; all in one period.
        pair.slow(1_000);
        let (now, mut served) = (pair.now, 0);
        for activity in 10..10 + sessions {
            let whose = Owner {
                activity,
                ..alone(5)
            };
            let bind = Request {
                port: 7,
                ..request(BIND, 0)
            };
            pair.stacks[1].request(whose, bind, &[], 0, now);
            let bound = pair.stacks[1].take().expect("an answer").1.reply;
            assert_eq!(bound.status, 0);
            for _ in 0..8 {
                let send = Request {
                    address: THERE,
                    port: 7,
                    ..request(SEND_TO, client)
                };
                pair.stacks[0].request(alone(3), send, b"more", 1, now);
                pair.stacks[0].step(now, 0);
                let frames = core::mem::take(&mut pair.stacks[0].card().left);
                pair.stacks[1].card().arrived.extend(frames);
                pair.stacks[1].step(now, 8);
            }
            loop {
                let receive = request(RECEIVE_FROM, bound.value);
                pair.stacks[1].request(whose, receive, &[], 2, now);
                match pair.stacks[1].take() {
                    Some(_) => served += 1,
                    None => break,
                }
            }
            pair.stacks[1].forget(activity, now);
        }
        served
    };
    let (one, four) = (counted(1), counted(4));
    assert!((1..8).contains(&one), "{one}");
    assert_eq!(four, one);
}
