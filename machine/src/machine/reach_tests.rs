//! The moments of a window beside a search over all ways that something can take.

use super::*;
use crate::tile;
use proptest::prelude::*;

const ACROSS: Tick = 100;
/// From the arrival of something at a tile that sleeps to what it sends.
const WAKES: Tick = 30;
/// From the arrival of a message to what its hart sends because of it.
const HEARS: Tick = 70;
/// How much longer a message takes to start.
const SENDS: Tick = 20;

/// A tile: when its next event is, when its hart may send something, and to whom it can send messages, and anything (bits; `None`: anything to all).
type Drawn = (Tick, Tick, Option<(u8, u8)>);
/// To whom a tile can send, and whether only messages.
type Targets = Option<Vec<(usize, bool)>>;

fn moment() -> impl Strategy<Value = Tick> {
    prop_oneof![2 => 0..1000u64, 1 => Just(Tick::MAX)]
}

/// The same tiles three times, with other moments and rights.
fn chips() -> impl Strategy<Value = Vec<(Tick, Vec<Drawn>)>> {
    let bits = || (any::<u8>(), prop_oneof![2 => Just(0), 1 => any::<u8>()]);
    let tile = move || (moment(), moment(), prop::option::weighted(0.8, bits()));
    (2..6usize).prop_flat_map(move |count| {
        prop::collection::vec((moment(), prop::collection::vec(tile(), count)), 3)
    })
}

/// What tiles announce, and to whom they can send.
fn tiles(drawn: &[Drawn], turn: u64) -> (Vec<Times>, Vec<Targets>) {
    let times = drawn.iter().map(|&(event, hart, _)| Times {
        next: event.min(hart),
        packets: tile::Announced {
            packet: event.min(hart),
            command: event.min(hart),
            message: event.min(later(hart, SENDS)),
        },
        event,
        rights: turn,
        sends: 0,
        wakes: match hart {
            Tick::MAX => WAKES,
            _ => 0,
        },
        hears: HEARS,
    });
    let some = |(messages, anything): (u8, u8)| {
        let of = |bits: u8, kind: bool| {
            let all = (0..drawn.len()).filter(move |to| bits >> to & 1 != 0);
            all.map(move |to| (to, kind))
        };
        of(messages, true).chain(of(anything, false)).collect()
    };
    let targets = drawn.iter().map(|one| one.2.map(some));
    (times.collect(), targets.collect())
}

/// The earliest arrival at `to` of something that does not exist yet: the shortest way in the graph of tiles. With an announced command, a tile sends to
/// whom its endpoints lead, and messages only if they are for messages. A tile that has an event, or was reached by anything else than a message, sends
/// anything to anybody. One that has heard a message sends with its endpoints.
fn shortest(times: &[Times], targets: &[Targets], to: usize, arrival: Tick) -> Tick {
    let leads = |from: usize, to: usize, messages: bool| match &targets[from] {
        None => !messages,
        Some(all) => all.contains(&(to, messages)),
    };
    // What the tile itself causes ends its window anyway.
    let mut free: Vec<Tick> = times.iter().map(|one| one.event.min(arrival)).collect();
    let mut heard = vec![Tick::MAX; times.len()];
    // When one tile may hand over something for another one, and when a message.
    let anything =
        |free: &[Tick], heard: &[Tick], from: usize, to: usize| match leads(from, to, false) {
            true => free[from].min(heard[from]).min(times[from].packets.command),
            false => free[from],
        };
    let message = |heard: &[Tick], from: usize, to: usize| match leads(from, to, true) {
        true => heard[from].min(times[from].packets.message),
        false => Tick::MAX,
    };
    for _ in times {
        for tile in 0..times.len() {
            for from in (0..times.len()).filter(|from| ![tile, to].contains(from)) {
                let sent = anything(&free, &heard, from, tile);
                free[tile] = free[tile].min(later(sent, ACROSS + times[tile].wakes));
                let sent = message(&heard, from, tile);
                heard[tile] = heard[tile].min(later(sent, ACROSS + HEARS));
            }
        }
    }
    let others = (0..times.len()).filter(|from| *from != to);
    let sent = others.map(|from| {
        let anything = anything(&free, &heard, from, to);
        anything.min(message(&heard, from, to))
    });
    later(sent.min().unwrap_or(Tick::MAX), ACROSS)
}

proptest! {
    #[test]
    fn no_window_is_longer_than_the_shortest_way(chip in chips()) {
        let mut reach = Reach::default();
        for (turn, (arrival, drawn)) in (0..).zip(&chip) {
            let (mut times, targets) = tiles(drawn, turn);
            let announced = reach.begin(&mut times, ACROSS, |tile| targets[tile].clone());
            for to in 0..times.len() {
                let uncalled = reach.uncalled(to, (&times, &announced), *arrival);
                prop_assert!(uncalled <= shortest(&times, &targets, to, *arrival));
                let others = (0..times.len()).filter(|tile| *tile != to);
                let next = others.map(|tile| times[tile].next).min().unwrap_or(Tick::MAX);
                let one_way = later(announced.anybody_but(to).min(*arrival), ACROSS);
                prop_assert!(uncalled >= one_way.min(later(next, AHEAD * ACROSS)));
                prop_assert!(uncalled <= later(next, AHEAD * ACROSS));
            }
        }
    }
}

#[test]
fn a_tile_that_only_the_kernel_reaches_is_two_ways_from_the_others() {
    let busy = |command| Times {
        next: command,
        packets: tile::Announced {
            packet: command,
            command,
            message: later(command, SENDS),
        },
        event: Tick::MAX,
        rights: 0,
        sends: 0,
        wakes: match command {
            Tick::MAX => WAKES,
            _ => 0,
        },
        hears: HEARS,
    };
    // The kernel sleeps; two programs that can call it compute. A message takes 20 ticks longer to start than another packet, and is heard after 70.
    for (messages, kernel, two_ways) in [(true, 140, 310), (false, 120, 250)] {
        let mut times = [busy(Tick::MAX), busy(20), busy(30)];
        let mut reach = Reach::default();
        let announced = reach.begin(&mut times, ACROSS, |tile| {
            (tile != 0).then(|| vec![(0, messages)])
        });
        let uncalled = |tile, arrival| reach.uncalled(tile, (&times, &announced), arrival);
        assert_eq!(uncalled(0, Tick::MAX), kernel);
        assert_eq!(uncalled(1, Tick::MAX), two_ways + 10);
        assert_eq!(uncalled(2, Tick::MAX), two_ways);
        // Something that exists may arrive at the kernel, which may send something then.
        assert_eq!(uncalled(2, 50), 150);
    }
}
