//! The moments of a window beside a search over all ways that something can take.

use super::*;
use proptest::prelude::*;

const ACROSS: Tick = 100;
/// From the arrival of something at a tile that sleeps to what it sends.
const WAKES: Tick = 30;

/// A tile: when its next event is, when its hart may send something, and to whom it can send (bits; `None`: to all).
type Drawn = (Tick, Tick, Option<u8>);

fn moment() -> impl Strategy<Value = Tick> {
    prop_oneof![2 => 0..1000u64, 1 => Just(Tick::MAX)]
}

/// The same tiles three times, with other moments and rights.
fn chips() -> impl Strategy<Value = Vec<(Tick, Vec<Drawn>)>> {
    let tile = || (moment(), moment(), prop::option::weighted(0.8, any::<u8>()));
    (2..6usize).prop_flat_map(move |count| {
        prop::collection::vec((moment(), prop::collection::vec(tile(), count)), 3)
    })
}

/// What tiles announce, and to whom they can send.
fn tiles(drawn: &[Drawn], turn: u64) -> (Vec<Times>, Vec<Option<Vec<usize>>>) {
    let times = drawn.iter().map(|&(event, hart, _)| Times {
        next: event.min(hart),
        packet: event.min(hart),
        command: event.min(hart),
        event,
        rights: turn,
        announced: 0,
        wakes: match hart {
            Tick::MAX => WAKES,
            _ => 0,
        },
    });
    let some = |bits: u8| (0..drawn.len()).filter(|to| bits >> to & 1 != 0).collect();
    let targets = drawn.iter().map(|one| one.2.map(some));
    (times.collect(), targets.collect())
}

/// The earliest arrival at `to` of something that does not exist yet: the shortest way in the graph of tiles. With an announced command, a tile sends to
/// whom its endpoints lead; whoever was reached by something, or has an event, sends to anybody.
fn shortest(times: &[Times], targets: &[Option<Vec<usize>>], to: usize, arrival: Tick) -> Tick {
    let reaches =
        |from: usize, to: usize| targets[from].as_ref().is_none_or(|all| all.contains(&to));
    // When each tile may send with an endpoint that it does not have now. What the tile itself causes ends its window anyway.
    let mut free: Vec<Tick> = times.iter().map(|one| one.event.min(arrival)).collect();
    for _ in times {
        for tile in 0..times.len() {
            for from in (0..times.len()).filter(|from| ![tile, to].contains(from)) {
                let sent = match reaches(from, tile) {
                    true => times[from].command.min(free[from]),
                    false => free[from],
                };
                free[tile] = free[tile].min(later(sent, ACROSS + times[tile].wakes));
            }
        }
    }
    let others = (0..times.len()).filter(|from| *from != to);
    let sent = others.map(|from| match reaches(from, to) {
        true => times[from].command.min(free[from]),
        false => free[from],
    });
    later(sent.min().unwrap_or(Tick::MAX), ACROSS)
}

proptest! {
    #[test]
    fn no_window_is_longer_than_the_shortest_way(chip in chips()) {
        let mut reach = Reach::default();
        for (turn, (arrival, drawn)) in (0..).zip(&chip) {
            let (mut times, targets) = tiles(drawn, turn);
            let announced = reach.begin(&mut times, |tile| targets[tile].clone());
            for to in 0..times.len() {
                let uncalled = reach.uncalled(to, (&times, &announced), *arrival, ACROSS);
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
        packet: command,
        command,
        event: Tick::MAX,
        rights: 0,
        announced: 0,
        wakes: match command {
            Tick::MAX => WAKES,
            _ => 0,
        },
    };
    // The kernel sleeps; two programs that can call it compute.
    let mut times = [busy(Tick::MAX), busy(20), busy(30)];
    let mut reach = Reach::default();
    let announced = reach.begin(&mut times, |tile| (tile != 0).then(|| vec![0]));
    let uncalled = |tile, arrival| reach.uncalled(tile, (&times, &announced), arrival, ACROSS);
    assert_eq!(uncalled(0, Tick::MAX), 120);
    assert_eq!(uncalled(1, Tick::MAX), 260);
    assert_eq!(uncalled(2, Tick::MAX), 250);
    // Something that exists may arrive at the kernel, which may send something then.
    assert_eq!(uncalled(2, 50), 150);
}
