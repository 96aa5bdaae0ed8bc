//! How far applications have come towards their start, and which is next.
//!
//! Why it exists: a start takes dozens of system calls and pages. A more critical application must not wait for all of them, so the manager
//! takes one piece at a time and keeps each application's progress in its state. What it deliberately does not know: what a piece does.

use core::cmp::Reverse;

/// The parts of an application's start, in order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Part {
    /// Create its activity.
    Create,
    /// Open a receive endpoint of its own.
    Receive,
    /// The device of its tile.
    Device,
    /// Introduce it to its pager.
    Pager,
    /// Tell its senders that it receives.
    Tell,
    /// A gate to send.
    Send,
    /// A memory gate.
    Memory,
    /// Map or fill a piece of its memory.
    Fill,
    /// It runs.
    Run,
}

/// Number of [`Part`]s.
const PARTS: usize = Part::Run as usize + 1;

impl Part {
    const ALL: [Self; PARTS] = [
        Self::Create,
        Self::Receive,
        Self::Device,
        Self::Pager,
        Self::Tell,
        Self::Send,
        Self::Memory,
        Self::Fill,
        Self::Run,
    ];
}

/// A piece of the start: the part, and the piece's number in it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Place {
    /// The part.
    pub part: Part,
    /// Counted from 0.
    pub number: usize,
}

impl Place {
    /// The first piece of all.
    pub const BEGIN: Self = Self::first(Part::Create);

    /// The first piece of a part.
    pub const fn first(part: Part) -> Self {
        Self { part, number: 0 }
    }

    /// The piece after this one, where `pieces` gives the number of pieces in a part; the last part is [`Part::Run`].
    pub fn after(self, pieces: impl Fn(Part) -> usize) -> Self {
        let next = Self {
            number: self.number + 1,
            ..self
        };
        next.found(pieces)
    }

    /// This piece if its part has it, otherwise the first existing piece after it.
    pub fn found(self, pieces: impl Fn(Part) -> usize) -> Self {
        if self.part == Part::Run || self.number < pieces(self.part) {
            return self;
        }
        let mut later = Part::ALL.into_iter().filter(|part| *part > self.part);
        let next = later.find(|part| *part == Part::Run || pieces(*part) > 0);
        Self::first(next.unwrap_or(Part::Run))
    }
}

/// How far an application or manager has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Phase {
    /// This piece is next. At the first piece the application has failed and is to be restarted.
    Comes(Place),
    /// It waits for a gate or a service, and then continues with this piece.
    Waits(Place),
    /// It runs.
    Runs,
    /// It has ended with its pager, and waits for the pager to come back.
    Paused,
    /// It has ended or will never run.
    Over,
}

/// What to do next for an application.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Work {
    /// Connect the send gate with this number again.
    Connect(usize),
    /// Give it the service behind the send gate with this number.
    Give(usize),
    /// Do a piece of its start.
    Piece(Place),
}

/// What remains to be done for an application. It has at most 32 send gates, because all of its credits together are fewer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Progress {
    /// How far it is.
    pub phase: Phase,
    /// A bit for each send gate whose receiver has come back.
    connect: u32,
    /// A bit for each send gate whose service is available and has not been given.
    give: u32,
}

impl Progress {
    /// Only the phase, with no other work.
    pub const fn new(phase: Phase) -> Self {
        let (connect, give) = (0, 0);
        Self {
            phase,
            connect,
            give,
        }
    }

    /// Whether it has an activity.
    pub fn is_there(&self) -> bool {
        match self.phase {
            Phase::Comes(place) | Phase::Waits(place) => place != Place::BEGIN,
            Phase::Runs => true,
            Phase::Paused | Phase::Over => false,
        }
    }

    /// A gate must be connected again, if the activity exists; gates of a later activity are connected anyway.
    pub fn reconnect(&mut self, gate: usize) {
        if self.is_there() {
            self.connect |= bit(gate);
        }
    }

    /// The service behind a gate is available; a later activity gets it anyway.
    pub fn serve(&mut self, gate: usize) {
        if self.is_there() {
            self.give |= bit(gate);
        }
    }

    /// Something has changed about a receiver of this application: if the application waits, it checks again.
    pub fn wake(&mut self) {
        self.phase = match self.phase {
            Phase::Waits(place) => Phase::Comes(place),
            // A gate that was missing before may exist now.
            Phase::Comes(place) if place.part == Part::Send => {
                Phase::Comes(Place::first(Part::Send))
            }
            phase => phase,
        };
    }

    /// The next work: first what it lost while it runs, then the rest of its start.
    pub fn next(&self) -> Option<Work> {
        match (self.connect, self.give, self.phase) {
            (0, 0, Phase::Comes(place)) => Some(Work::Piece(place)),
            (0, 0, _) => None,
            (0, give, _) => Some(Work::Give(give.trailing_zeros() as usize)),
            (connect, ..) => Some(Work::Connect(connect.trailing_zeros() as usize)),
        }
    }

    /// A gate that was handled needs no more work.
    pub fn done(&mut self, work: Work) {
        match work {
            Work::Connect(gate) => self.connect &= !bit(gate),
            Work::Give(gate) => self.give &= !bit(gate),
            Work::Piece(_) => {}
        }
    }
}

fn bit(gate: usize) -> u32 {
    1u32.checked_shl(gate as u32).unwrap_or(0)
}

/// The application whose piece is next, from all applications with their priorities and restart counts: the most important one. Among
/// equals, the gates of running applications come first, then the application that has come furthest (so at most one per priority has begun
/// to be filled), then the one with the fewest restarts.
pub fn turn<'a>(all: impl Iterator<Item = (u8, u32, &'a Progress)>) -> Option<usize> {
    let open = all
        .enumerate()
        .filter_map(|(index, (priority, restarts, progress))| {
            let place = match progress.next()? {
                Work::Piece(place) => Some(place),
                _ => None,
            };
            let last = Reverse((restarts, index));
            Some((priority, place.is_none(), place, last))
        });
    open.max().map(|(.., Reverse((_, index)))| index)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeSet;

    /// The number of pieces of each part.
    type Way = [usize; PARTS];

    fn pieces(way: &Way) -> impl Fn(Part) -> usize + '_ {
        |part| way[part as usize]
    }

    #[test]
    fn whoever_is_more_important_waits_for_one_piece() {
        let [low, high] = [
            Phase::Comes(Place {
                part: Part::Fill,
                number: 3,
            }),
            Phase::Comes(Place::BEGIN),
        ];
        let all = [(0, Progress::new(low)), (2, Progress::new(high))];
        let turn = |all: &[(u8, Progress)]| turn(all.iter().map(|(p, progress)| (*p, 0, progress)));
        assert_eq!(turn(&all), Some(1));
        // Among equals, the one that has begun.
        assert_eq!(turn(&[all[0], (0, all[1].1)]), Some(0));
        assert_eq!(turn(&[(0, Progress::new(Phase::Runs))]), None);
        // An application that fails over and over does not hold up its equals.
        let often = [(0, 5, &all[1].1), (0, 4, &all[1].1)];
        assert_eq!(super::turn(often.into_iter()), Some(1));
    }

    #[test]
    fn gates_of_those_that_live_come_first() {
        let mut runs = Progress::new(Phase::Runs);
        runs.reconnect(31);
        runs.serve(2);
        assert_eq!(runs.next(), Some(Work::Connect(31)));
        runs.done(Work::Connect(31));
        assert_eq!(runs.next(), Some(Work::Give(2)));
        runs.done(Work::Give(2));
        assert_eq!(runs.next(), None);
        // A failed application gets everything when its new activity is created.
        let mut failed = Progress::new(Phase::Comes(Place::BEGIN));
        failed.serve(1);
        assert_eq!(failed.next(), Some(Work::Piece(Place::BEGIN)));
    }

    #[test]
    fn a_gate_that_was_looked_at_is_looked_at_again() {
        let number = 4;
        let part = Part::Send;
        let mut comes = Progress::new(Phase::Comes(Place { part, number }));
        comes.wake();
        assert_eq!(comes.phase, Phase::Comes(Place::first(part)));
        let mut fills = Progress::new(Phase::Comes(Place::first(Part::Fill)));
        fills.wake();
        assert_eq!(fills.phase, Phase::Comes(Place::first(Part::Fill)));
    }

    proptest! {
        #[test]
        fn every_piece_comes_once_and_in_order(mut way in any::<[u8; PARTS]>().prop_map(|way| way.map(|n| usize::from(n % 5)))) {
            way[0] = 1;
            way[PARTS - 1] = 1;
            let all = Part::ALL.into_iter().flat_map(|part| (0..way[part as usize]).map(move |number| Place { part, number }));
            let mut place = Place::BEGIN;
            for expected in all {
                prop_assert_eq!(place, expected);
                place = place.after(pieces(&way));
            }
        }

        /// News of gates in any order, beside two sets: nothing that an application lost is forgotten while it lives, what it lost comes before what it
        /// gets, and both before its start; nobody works for an application that is not there.
        #[test]
        fn news_of_gates_are_kept_until_they_are_handled(
            steps in prop::collection::vec((0u8..6, 0usize..32), 0..120),
        ) {
            let mut progress = Progress::new(Phase::Comes(Place::BEGIN));
            let [mut lost, mut served] = [(); 2].map(|()| BTreeSet::new());
            for (step, gate) in steps {
                match step {
                    0 => progress.reconnect(gate),
                    1 => progress.serve(gate),
                    2 => progress.wake(),
                    3 => if let Some(work) = progress.next() {
                        progress.done(work);
                        match work {
                            Work::Connect(gate) => prop_assert!(lost.remove(&gate)),
                            Work::Give(gate) => prop_assert!(lost.is_empty() && served.remove(&gate)),
                            Work::Piece(_) => prop_assert!(lost.is_empty() && served.is_empty()),
                        }
                    },
                    // It runs, or ends: what a later activity needs comes with its start.
                    4 => progress.phase = Phase::Runs,
                    _ => {
                        progress = Progress::new(if gate < 16 { Phase::Paused } else { Phase::Over });
                        lost.clear();
                        served.clear();
                    }
                }
                if progress.is_there() {
                    match step {
                        0 => { lost.insert(gate); }
                        1 => { served.insert(gate); }
                        _ => {}
                    }
                }
                let next = progress.next();
                match (lost.first(), served.first()) {
                    (Some(&gate), _) => prop_assert_eq!(next, Some(Work::Connect(gate))),
                    (None, Some(&gate)) => prop_assert_eq!(next, Some(Work::Give(gate))),
                    (None, None) => prop_assert!(!matches!(next, Some(Work::Connect(_) | Work::Give(_)))),
                }
            }
        }

        /// Applications fail at any time: no piece goes to an application less important than one that is starting, at most one per
        /// priority is being filled, and in the end all of them run.
        #[test]
        fn the_most_important_is_next_whenever_others_fail(
            apps in prop::collection::vec((0u8..3, any::<[u8; PARTS]>()), 1..8),
            failures in prop::collection::vec((0usize..40, 0usize..8), 0..20),
        ) {
            let ways: Vec<Way> = apps.iter().map(|(_, way)| way.map(|n| usize::from(n % 4).max(1))).collect();
            let mut all: Vec<(u8, Progress)> = apps.iter().map(|(priority, _)| (*priority, Progress::new(Phase::Comes(Place::BEGIN)))).collect();
            let count = all.len();
            for step in 0.. {
                for (_, app) in failures.iter().filter(|(at, app)| *at == step && *app < count) {
                    all[*app].1 = Progress::new(Phase::Comes(Place::BEGIN));
                }
                let Some(index) = turn(all.iter().map(|(p, progress)| (*p, 0, progress))) else {
                    if step >= 40 { break }
                    continue;
                };
                let on_the_way = all.iter().filter(|(_, progress)| progress.next().is_some());
                prop_assert_eq!(on_the_way.map(|(priority, _)| *priority).max(), Some(all[index].0));
                let Some(Work::Piece(place)) = all[index].1.next() else { unreachable!() };
                all[index].1.phase = match place.part {
                    Part::Run => Phase::Runs,
                    _ => Phase::Comes(place.after(pieces(&ways[index]))),
                };
                for priority in 0..3 {
                    let fills = all.iter().filter(|(p, progress)| {
                        let begun = Place { part: Part::Fill, number: 1 };
                        *p == priority && matches!(progress.phase, Phase::Comes(at) if at.part == Part::Fill && at >= begun)
                    });
                    prop_assert!(fills.count() <= 1);
                }
            }
            prop_assert!(all.iter().all(|(_, progress)| progress.phase == Phase::Runs));
        }
    }
}
