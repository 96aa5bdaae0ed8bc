//! Random requests of several activities, some of which share a channel, against a model that only records each activity's
//! requests.

use crate::protocol::*;
use crate::tests::{HERE, Wire, cases, options, request};
use crate::{Options, Stack, Status};
use alloc::vec::Vec;
use bulkhead_common::waiting::{Client, Owner};
use proptest::prelude::*;
use proptest::test_runner::TestCaseResult;
use std::collections::{BTreeMap, BTreeSet};

/// Activities by the labels of their channels: the second has a child.
const LABELS: [u64; 4] = [0, 1, 1, 2];

/// A neighbour's address, and tricky ones: nobody's, its own, broadcast, multicast, this host's, another network's.
const ADDRESSES: [[u8; 4]; 9] = [
    [10, 0, 0, 2],
    [10, 0, 0, 2],
    HERE,
    [0; 4],
    [255; 4],
    [10, 0, 0, 255],
    [224, 0, 0, 1],
    [127, 0, 0, 1],
    [192, 168, 0, 1],
];

pub fn owner(activity: u16) -> Owner {
    let label = LABELS[usize::from(activity)];
    let client = Client { priority: 0, label };
    Owner { client, activity }
}

#[derive(Clone, Debug)]
pub enum Step {
    Ask(u16, u64, usize, u16, u16, usize),
    Forget(u16),
    /// Nanoseconds.
    Wait(u64),
}

pub fn step() -> impl Strategy<Value = Step> {
    let operation = prop_oneof![
        3 => prop::sample::select([BIND, LISTEN, CONNECT].to_vec()),
        6 => 0u64..13,
        1 => any::<u64>(),
    ];
    let port = || prop_oneof![4 => 0u16..4, 1 => any::<u16>()];
    let ask = (
        0u16..4,
        operation,
        0usize..12,
        port(),
        any::<u16>(),
        0usize..2000,
    );
    prop_oneof![
        12 => ask.prop_map(|(a, o, s, p, l, d)| Step::Ask(a, o, s, p, l, d)),
        1 => (0u16..4).prop_map(Step::Forget),
        2 => (0u64..2_000_000_000).prop_map(Step::Wait),
    ]
}

/// What an activity may expect.
#[derive(Default)]
struct Model {
    /// The activities that wait for answers, and for which answers.
    asked: BTreeMap<u32, u16>,
    /// Sockets and their owners.
    sockets: BTreeMap<u64, u16>,
    ports: BTreeMap<(bool, u16), u64>,
}

struct World {
    stack: Stack<Wire, u32>,
    model: Model,
    now: u64,
    most: usize,
}

impl World {
    fn step(&mut self) {
        self.stack.step(self.now, 3);
        self.stack.card().left.clear();
        self.answers();
    }

    /// Every answer belongs to a question that was asked and not yet answered.
    fn answers(&mut self) {
        while let Some((item, answer)) = self.stack.take() {
            assert!(self.model.asked.remove(&item).is_some(), "answered twice");
            assert!(answer.data.len() <= DATA);
            assert_eq!(answer.data.len(), usize::from(answer.reply.length));
        }
        assert_eq!(self.stack.waiting(), self.model.asked.len());
    }

    fn ask(&mut self, item: u32, activity: u16, mut asked: Request, data: &[u8]) {
        let whose = owner(activity);
        let before = self.stack.sockets_on(whose.client);
        let opens = matches!(asked.operation, BIND | LISTEN | CONNECT);
        asked.address = ADDRESSES[usize::from(asked.length) % ADDRESSES.len()];
        self.stack.request(whose, asked, data, item, self.now);
        let Some((answered, answer)) = self.stack.take() else {
            self.model.asked.insert(item, activity);
            return;
        };
        assert_eq!(answered, item);
        let status = answer.reply.status;
        if opens && before >= self.most {
            assert_eq!(status, Status::TooMany.code());
        }
        let mine = self.model.sockets.get(&asked.socket) == Some(&activity);
        match asked.operation {
            BIND | LISTEN if status == 0 => {
                let key = (
                    asked.operation == BIND,
                    match asked.operation {
                        BIND => answer.reply.port,
                        _ => asked.port,
                    },
                );
                // Several sockets may listen at a port of one activity.
                let other = self.model.ports.insert(key, answer.reply.value);
                let other = other.and_then(|socket| self.model.sockets.get(&socket));
                assert!(other.is_none_or(|other| key.0 != (*other == activity) && !key.0));
                let old = self.model.sockets.insert(answer.reply.value, activity);
                assert_eq!(old, None, "a handle is given twice");
            }
            CLOSE => {
                assert!(mine || status != 0, "a socket of somebody else");
                if status == 0 {
                    self.model.sockets.remove(&asked.socket);
                    self.model.ports.retain(|_, socket| *socket != asked.socket);
                }
            }
            SEND | SEND_TO | RECEIVE | RECEIVE_FROM | ACCEPT if !mine => {
                assert_ne!(status, 0, "a socket of somebody else");
            }
            _ => {}
        }
    }

    fn forget(&mut self, activity: u16) {
        self.stack.forget(activity, self.now);
        self.model.asked.retain(|_, of| *of != activity);
        let gone: BTreeSet<u64> = self
            .model
            .sockets
            .iter()
            .filter(|(_, of)| **of == activity)
            .map(|(s, _)| *s)
            .collect();
        self.model.sockets.retain(|_, of| *of != activity);
        self.model.ports.retain(|_, socket| !gone.contains(socket));
        assert_eq!(self.stack.sockets_of(activity), 0);
    }
}

/// A story of several activities, each of which may have this many sockets.
fn story(steps: Vec<Step>, most: usize) -> TestCaseResult {
    let options = Options {
        sockets: most,
        buffer: 512,
        ..options(HERE)
    };
    let mut world = World {
        stack: Stack::new(Wire::default(), options, 0),
        model: Model::default(),
        now: 1_000_000,
        most,
    };
    for (item, step) in steps.into_iter().enumerate() {
        match step {
            Step::Ask(activity, operation, socket, port, length, bytes) => {
                // A known handle, or an unknown one.
                let handles: Vec<u64> = world.model.sockets.keys().copied().collect();
                let socket = handles
                    .get(socket)
                    .copied()
                    .unwrap_or(socket as u64 * 0x101);
                let until = if port % 2 == 0 {
                    0
                } else {
                    world.now + 1_000_000
                };
                let asked = Request {
                    port,
                    length,
                    until,
                    ..request(operation, socket)
                };
                world.ask(item as u32, activity, asked, &alloc::vec![7; bytes]);
            }
            Step::Forget(activity) => world.forget(activity),
            Step::Wait(time) => world.now += time,
        }
        world.step();
        for label in 0..3 {
            let client = Client { priority: 0, label };
            prop_assert!(world.stack.sockets_on(client) <= most);
        }
    }
    (0..4).for_each(|activity| world.forget(activity));
    prop_assert_eq!(world.stack.waiting(), 0);
    // Sockets that linger go, too.
    for _ in 0..200 {
        world.now += 1_000_000_000;
        world.step();
    }
    prop_assert_eq!((world.stack.sockets(), world.stack.pending()), (0, 0));
    Ok(())
}

proptest! {
    #![proptest_config(cases())]

    #[test]
    fn sockets_belong_to_who_opened_them_and_end_with_him(
        steps in prop::collection::vec(step(), 1..120),
        most in 1usize..6,
    ) {
            story(steps, most)?;
        }
}

#[test]
fn guided_network() {
    bulkhead_fuzz::target("network", |bytes| {
        let most = bytes.draw(&(1usize..6));
        story(bytes.story(&step(), 120), most)
    });
}
