//! Requests waiting at a service: the right culprit is named, and no tick is lost.

use super::super::env::Observation;
use super::super::unfetched::{Place, Requests};
use super::world::*;
use crate::ledger::{Ledger, Party, Resource, Unfetched};
use crate::types::{Owner, Tick};
use bulkhead_abi::dtu::*;
use proptest::prelude::*;
use std::collections::BTreeMap;

const SERVER: u16 = 7;

/// A server on tile 2 with two gates (endpoints 8 and 9) and a gate for answers. Tiles 0, 1 and 3 may send to the first, tile 3 to the
/// second.
fn service() -> World {
    let mut world = World::new(&config());
    for (endpoint, offset) in [(8, 0x1000), (9, 0x2000)] {
        let Endpoint::Receive(receive) = receive_at(offset, 4, 256, 10 + 4 * (endpoint - 8)) else {
            unreachable!()
        };
        let gate = Endpoint::Receive(ReceiveEndpoint {
            activity: SERVER,
            ..receive
        });
        world.set(2, endpoint, gate);
    }
    for tile in [0, 1, 3] {
        world.set(tile, 8, send_to(2, 8, 4, 256));
        world.set(tile, 10, receive_at(0x3000, 4, 256, NO_ENDPOINT));
    }
    world.set(3, 9, send_to(2, 9, 4, 256));
    world.switch(2, SERVER, 0);
    world.map(2, SERVER, 0x5000, 0x4000, TLB_READ | TLB_WRITE);
    world
}

fn send(world: &mut World, tile: u16, endpoint: u16) {
    let command = Command::new(Opcode::Send, endpoint, 10);
    assert_eq!(world.execute(tile, command, BASE, 8, 0).0, DtuError::None);
}

fn reply(world: &mut World, endpoint: u16, offset: u64) {
    let command = Command::new(Opcode::Reply, endpoint, offset as u32);
    let (error, _) = world.execute(2, command, 0x5000, 8, 0);
    assert_eq!(error, DtuError::None);
}

/// When each message was stored, and each command of the server ended.
fn moments(world: &World, wanted: impl Fn(&Observation) -> bool) -> Vec<Tick> {
    let log = world.chip.log.iter();
    let here = log.filter(|(_, tile, what)| *tile == 2 && wanted(what));
    here.map(|(at, ..)| *at).collect()
}

fn waits(world: &World) -> Vec<(u16, Party, Tick)> {
    let log = world.chip.log.iter();
    let waits = log.filter_map(|(_, _, what)| match what {
        Observation::Unfetched(wait) => {
            assert_eq!(wait.server, Owner::new(2, SERVER));
            Some((wait.victim.tile, wait.culprit, wait.ticks))
        }
        _ => None,
    });
    waits.collect()
}

fn of(tile: u16) -> Party {
    Party::Activity(Owner::new(tile, TILEMUX_ACTIVITY))
}

/// Tile 0 has the privileged unit. The TileMux of tile 2 receives requests at endpoint 4.
#[test]
fn only_the_kernels_unit_says_who_asked() {
    let mut world = World::new(&config());
    world.set(2, 4, receive_at(0x1000, 4, 256, 10));
    for tile in [0, 1] {
        world.set(tile, 8, send_to(2, 4, 4, 256));
        world.set(tile, 10, receive_at(0x3000, 4, 256, NO_ENDPOINT));
    }
    let (pager, innocent) = (Owner::new(3, 9), Owner::new(3, 11));
    // The kernel names the activity with its next message, and only with that one.
    world.units[0].asks_for(Some(pager));
    send(&mut world, 0, 8);
    assert_eq!(world.units[2].take_asker(), Some(pager));
    assert_eq!(world.units[2].take_asker(), None);
    send(&mut world, 0, 8);
    assert_eq!(world.units[2].take_asker(), None);
    // An earlier statement no longer applies.
    world.units[0].asks_for(Some(pager));
    world.units[0].asks_for(None);
    send(&mut world, 0, 8);
    assert_eq!(world.units[2].take_asker(), None);
    // A compromised TileMux makes the same claim and is not believed.
    world.units[1].asks_for(Some(innocent));
    send(&mut world, 1, 8);
    assert_eq!(world.units[2].take_asker(), None);
}

/// An answer is not a request, whatever the kernel has just said.
#[test]
fn an_answer_names_nobody_who_asked() {
    let mut world = World::new(&config());
    world.set(0, 8, receive_at(0x1000, 4, 256, 10));
    world.set(2, 8, send_to(0, 8, 4, 256));
    world.set(2, 9, receive_at(0x2000, 4, 256, NO_ENDPOINT));
    let command = Command::new(Opcode::Send, 8, 9);
    assert_eq!(world.execute(2, command, BASE, 8, 0).0, DtuError::None);
    let offset = world.fetch(0, 8).expect("a message");
    world.units[0].asks_for(Some(Owner::new(3, 9)));
    let command = Command::new(Opcode::Reply, 8, offset as u32);
    assert_eq!(world.execute(0, command, BASE, 8, 0).0, DtuError::None);
    assert_eq!(world.units[2].take_asker(), None);
}

#[test]
fn a_request_waits_for_whoever_is_served() {
    let mut world = service();
    send(&mut world, 0, 8);
    let first = world.fetch(2, 8).expect("a message");
    // While the server works for tile 0, tile 1 waits at the same gate and tile 3 at the other.
    send(&mut world, 1, 8);
    send(&mut world, 3, 9);
    reply(&mut world, 8, first);
    let own = world.chip.now + 500;
    world.run_until(own);
    let second = world.fetch(2, 9).expect("a message");
    let third = world.fetch(2, 8).expect("a message");
    world.run();
    let stored = moments(&world, |o| matches!(o, Observation::MessageStored { .. }));
    let ends = |wanted: Opcode| {
        moments(
            &world,
            |o| matches!(o, Observation::CommandEnd { opcode, .. } if *opcode == wanted),
        )
    };
    let (fetched, replied) = (ends(Opcode::Fetch), ends(Opcode::Reply)[0]);
    let itself = Party::Activity(Owner::new(2, SERVER));
    let expected = [
        // Tile 0's request was fetched by an idle server.
        (0, itself, fetched[0] - stored[0]),
        (1, of(0), replied - stored[1]),
        (3, of(0), replied - stored[2]),
        (1, itself, fetched[1] - replied),
        (3, itself, fetched[1] - replied),
        // The second gate's message was taken first, and the server has not given it back.
        (1, of(3), fetched[2] - fetched[1]),
    ];
    assert_eq!(waits(&world), expected);
    assert_eq!(
        world.units[2].requests_waited(world.chip.now),
        expected.iter().map(|wait| wait.2).sum::<Tick>()
    );
    // A request that is put aside counts as no client's work: once the third is freed, the server works for itself although it keeps the
    // second.
    let free = Command::new(Opcode::Acknowledge, 8, third as u32);
    assert_eq!(world.execute(2, free, 0, 0, 0).0, DtuError::None);
    send(&mut world, 1, 8);
    let before = waits(&world).len();
    reply(&mut world, 9, second);
    world.fetch(2, 8).expect("a message");
    assert!(
        waits(&world)[before..]
            .iter()
            .all(|wait| wait.1 == itself && wait.0 == 1)
    );
}

#[test]
fn answers_and_what_tilemux_gets_are_no_requests() {
    let mut world = service();
    send(&mut world, 1, 8);
    let request = world.fetch(2, 8).expect("a message");
    reply(&mut world, 8, request);
    world.run_until(world.chip.now + 1000);
    // The client's gate for answers belongs to its TileMux here. Nothing waits there for the ledger, not even if it is fetched late.
    world.fetch(1, 10).expect("an answer");
    assert_eq!(world.units[1].requests_waited(world.chip.now), 0);
    let count = waits(&world).len();
    send(&mut world, 3, 8);
    world.fetch(2, 8).expect("a message");
    assert_eq!(waits(&world).len(), count + 1);
}

#[test]
fn an_endpoint_that_is_configured_anew_ends_waits_and_work() {
    let mut world = service();
    send(&mut world, 0, 8);
    world.fetch(2, 8).expect("a message");
    send(&mut world, 1, 8);
    send(&mut world, 3, 9);
    let stored = moments(&world, |o| matches!(o, Observation::MessageStored { .. }));
    let gone = world.chip.now + 100;
    world.run_until(gone);
    let invalidate = ExternalOpcode::InvalidateEndpoint as u64 | 8 << 8 | 1 << 24;
    world.external(2, EXTERNAL_COMMAND, invalidate);
    let end = gone + 1000;
    world.run_until(end);
    world.fetch(2, 9).expect("a message");
    let now = moments(&world, |o| matches!(o, Observation::CommandEnd { .. }));
    let now = *now.last().expect("ended");
    let itself = Party::Activity(Owner::new(2, SERVER));
    let all = waits(&world);
    assert_eq!(
        all[1..],
        [
            (1, of(0), gone - stored[1]),
            (3, of(0), gone - stored[2]),
            (3, itself, now - gone),
        ]
    );
    assert_eq!(
        world.units[2].requests_waited(world.chip.now),
        all.iter().map(|wait| wait.2).sum::<Tick>()
    );
}

/// One step at a tile.
#[derive(Clone, Debug)]
enum Step {
    Pass(Tick),
    Store {
        place: Place,
        receiver: u16,
        sender: u16,
    },
    Fetch(Place),
    GiveBack(Place),
    Sleep(u16),
    Configure(u16),
    Settle,
}

fn step() -> impl Strategy<Value = Step> {
    let place = || (0u16..4, (0u64..3).prop_map(|slot| slot * 64));
    prop_oneof![
        4 => (1u64..20).prop_map(Step::Pass),
        4 => (place(), 0u16..5).prop_map(|(place, sender)| Step::Store { place, receiver: place.0 / 2, sender }),
        4 => place().prop_map(Step::Fetch),
        3 => place().prop_map(Step::GiveBack),
        1 => (0u16..2).prop_map(Step::Sleep),
        1 => (0u16..4).prop_map(Step::Configure),
        1 => Just(Step::Settle),
    ]
}

/// The module's rule, tick by tick.
#[derive(Default)]
struct ByTick {
    waiting: BTreeMap<Place, (u16, Party)>,
    works: BTreeMap<u16, (Place, Party)>,
    sums: BTreeMap<(Owner, Owner, Resource), Tick>,
}

impl ByTick {
    fn pass(&mut self) {
        for (receiver, sender) in self.waiting.values() {
            let Party::Activity(victim) = sender else {
                continue;
            };
            let server = Owner::new(2, *receiver);
            let (culprit, resource) = match self.works.get(receiver) {
                None => (server, Resource::Service(server)),
                Some((_, Party::Activity(client))) => (*client, Resource::Service(server)),
                Some((_, Party::Device)) => (server, Resource::DeviceService(server)),
            };
            *self.sums.entry((*victim, culprit, resource)).or_default() += 1;
        }
    }
}

fn sender_of(number: u16) -> Party {
    match number {
        0 => Party::Device,
        tile => Party::Activity(Owner::new(tile, 1)),
    }
}

impl ByTick {
    /// A slot holds one message until it is given back.
    fn is_free(&self, place: Place) -> bool {
        !self.works.values().any(|work| work.0 == place) && !self.waiting.contains_key(&place)
    }
}

/// What the unit does at a step, except settling.
fn play(
    requests: &mut Requests,
    now: Tick,
    step: &Step,
    model: &ByTick,
    tell: &mut dyn FnMut(Unfetched),
) {
    match *step {
        Step::Store {
            place,
            receiver,
            sender,
        } if model.is_free(place) => {
            requests.stored(now, place, receiver, sender_of(sender));
        }
        Step::Fetch(place) => requests.fetched(now, place, tell),
        Step::GiveBack(place) => requests.given_back(now, place.0 / 2, place, tell),
        Step::Sleep(receiver) => requests.sleeps(now, receiver, tell),
        Step::Configure(endpoint) => requests.configured(now, endpoint, tell),
        Step::Store { .. } | Step::Pass(_) | Step::Settle => {}
    }
}

proptest! {
    /// Random histories: the recorded waits equal those found tick by tick, however often they were reported meanwhile.
    #[test]
    fn random_histories_equal_the_rule_tick_by_tick(steps in prop::collection::vec(step(), 1..120)) {
        let mut requests = Requests::new(2);
        let (mut ledger, mut model, mut now) = (Ledger::new(), ByTick::default(), 0);
        let (mut unseen, mut once) = (Requests::new(2), Ledger::new());
        for step in steps {
            play(&mut unseen, now, &step, &model, &mut |wait| once.unfetched(&wait));
            play(&mut requests, now, &step, &model, &mut |wait| ledger.unfetched(&wait));
            match step {
                Step::Pass(ticks) => {
                    (0..ticks).for_each(|_| model.pass());
                    now += ticks;
                }
                Step::Store { place, receiver, sender } => {
                    if model.is_free(place) {
                        model.waiting.insert(place, (receiver, sender_of(sender)));
                    }
                }
                Step::Fetch(place) => {
                    if let Some((receiver, sender)) = model.waiting.remove(&place) {
                        model.works.insert(receiver, (place, sender));
                    }
                }
                Step::GiveBack(place) => {
                    let receiver = place.0 / 2;
                    if model.works.get(&receiver).is_some_and(|(at, who)| *at == place && *who != Party::Device) {
                        model.works.remove(&receiver);
                    }
                }
                Step::Sleep(receiver) => {
                    if model.works.get(&receiver).is_some_and(|(_, who)| *who == Party::Device) {
                        model.works.remove(&receiver);
                    }
                }
                Step::Configure(endpoint) => {
                    model.waiting.retain(|place, _| place.0 != endpoint);
                    model.works.retain(|_, work| work.0.0 != endpoint);
                }
                Step::Settle => requests.settle(now, &mut |wait| ledger.unfetched(&wait)),
            }
        }
        requests.settle(now, &mut |wait| ledger.unfetched(&wait));
        let booked: BTreeMap<_, _> = ledger.bookings().iter()
            .map(|one| ((one.victim, one.culprit, one.resource), one.ticks))
            .collect();
        prop_assert_eq!(&booked, &model.sums);
        prop_assert_eq!(requests.waited(now), model.sums.values().sum::<Tick>());
        prop_assert_eq!(ledger.requests_of(2), model.sums.values().sum::<Tick>());
        unseen.settle(now, &mut |wait| once.unfetched(&wait));
        prop_assert_eq!(once.bookings(), ledger.bookings());
    }
}
