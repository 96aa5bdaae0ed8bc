//! How far tiles with data transfer units may run ahead of each other: who can send what to whom.
//!
//! Why it exists: a unit sends to another tile only through an endpoint that leads there, and only the kernel's unit or an arriving message gives it
//! one. So the endpoints are the edges of the graph of tiles, and the time along its edges is the length of a window. A tile that no endpoint leads to
//! hears of others only through a third one, so two ways across the network are between them. What it deliberately does not know: what is sent, and what
//! exists on the network already (the fabric knows that).
//!
//! **Why it is sound.** Tile `k` sends tile `i` something of its own accord at `t`. Either its unit had an endpoint that leads to `i` when the window began;
//! then `t` is no earlier than the command that `k` has announced. Or it got the endpoint since, from an event of its own: one that it knew, which is no
//! later than `t`, or one that a packet brought. That packet was on the network when the window began, or a third tile sent it, no earlier than that tile's
//! announced command, one way before it arrived at `k`. If the hart of `k` slept, it had to wake up and start a command first. If `i` itself sent it, the packet has ended its window ([`Tile::run`](crate::tile::Tile::run)).
//! Answers are no concern: a tile that waits for one is treated as if everybody reached it.

use super::Times;
use crate::types::{Tick, later};

/// How far a tile that nobody can reach runs ahead of the others, in ways from tile to tile: another one may end the run, and what this one does beyond
/// that moment is for nothing.
const AHEAD: Tick = 16;

/// The two earliest of the moments of all tiles.
#[derive(Clone, Copy, Debug)]
struct Earliest {
    first: Tick,
    second: Tick,
    who: usize,
}

impl Earliest {
    const NEVER: Self = Self {
        first: Tick::MAX,
        second: Tick::MAX,
        who: usize::MAX,
    };

    fn add(&mut self, who: usize, at: Tick) {
        if at < self.first {
            (self.second, self.first, self.who) = (self.first, at, who);
        } else {
            self.second = self.second.min(at);
        }
    }

    /// The earliest moment of all tiles but this one.
    fn but(&self, who: usize) -> Tick {
        if who == self.who {
            self.second
        } else {
            self.first
        }
    }
}

/// To whom a tile can send of its own accord.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Sends {
    Nobody,
    /// To those that have it among their senders.
    Some,
    All,
}

/// Which tiles can send to which.
#[derive(Debug, Default)]
pub(super) struct Reach {
    /// What each tile's rights were counted as when they were last examined, and what was found.
    known: Vec<(u64, Sends)>,
    /// For each tile, those that can send to it. Tiles that can send to all are not among them.
    senders: Vec<Vec<usize>>,
    /// For each tile, those to which it can send; none if these are all.
    targets: Vec<Vec<usize>>,
}

/// What the tiles announce when a window begins.
#[derive(Debug)]
pub(super) struct Announced {
    /// When the first of them acts.
    pub(super) first: Tick,
    /// When the first of them may hand over a packet.
    pub(super) packet: Tick,
    /// When those that can send to all may send something to another one.
    everywhere: Earliest,
    /// The same, of all that can send to another one at all.
    anybody: Earliest,
    /// The same, and what the hart of whoever is reached then needs to send something itself.
    answered: Earliest,
    /// The next events.
    events: Earliest,
    /// When the tiles act next.
    acts: Earliest,
}

impl Announced {
    /// Something will arrive at a tile at this moment.
    pub(super) fn arrives(&mut self, tile: usize, at: Tick) {
        self.first = self.first.min(at);
        self.packet = self.packet.min(at);
        self.events.add(tile, at);
        self.acts.add(tile, at);
    }

    /// When another tile may hand over a packet for anybody. Whoever can send to nobody yet has an event first.
    pub(super) fn anybody_but(&self, tile: usize) -> Tick {
        self.anybody.but(tile).min(self.events.but(tile))
    }
}

impl Reach {
    /// A window begins. `targets` says to which tiles one of them can send, in any order, or `None` for all; it is asked if a tile's rights have changed.
    #[inline]
    pub(super) fn begin(
        &mut self,
        times: &mut [Times],
        targets: impl Fn(usize) -> Option<Vec<usize>>,
    ) -> Announced {
        let mut announced = Announced {
            first: Tick::MAX,
            packet: Tick::MAX,
            everywhere: Earliest::NEVER,
            anybody: Earliest::NEVER,
            answered: Earliest::NEVER,
            events: Earliest::NEVER,
            acts: Earliest::NEVER,
        };
        for tile in 0..times.len() {
            let one = &mut times[tile];
            let sends = match self.known.get(tile) {
                Some(&(rights, sends)) if rights == one.rights => sends,
                _ => self.examine(tile, one.rights, targets(tile)),
            };
            one.announced = one.command;
            let command = one.command;
            announced.first = announced.first.min(one.next);
            announced.packet = announced.packet.min(one.packet);
            announced.events.add(tile, one.event);
            announced.acts.add(tile, one.next);
            match sends {
                Sends::Nobody => {}
                Sends::Some => {
                    let targets = self.targets[tile].iter();
                    let wakes = targets.map(|&to| times[to].wakes).min();
                    let wakes = wakes.unwrap_or_else(|| {
                        panic!("tile {tile} can send to some tiles, and nobody knows to which: {self:?}")
                    });
                    announced.anybody.add(tile, command);
                    announced.answered.add(tile, later(command, wakes));
                }
                Sends::All => {
                    announced.everywhere.add(tile, command);
                    announced.anybody.add(tile, command);
                    announced.answered.add(tile, command);
                }
            }
        }
        announced
    }

    /// From now on, a tile can send to these. Tiles are first examined in their order.
    #[cold]
    fn examine(&mut self, tile: usize, rights: u64, targets: Option<Vec<usize>>) -> Sends {
        for senders in &mut self.senders {
            senders.retain(|from| *from != tile);
        }
        if self.targets.len() <= tile {
            self.targets.resize(tile + 1, Vec::new());
        }
        self.targets[tile].clear();
        let others = targets.map(|mut all| {
            all.retain(|to| *to != tile);
            all
        });
        let sends = match others {
            None => Sends::All,
            Some(others) if others.is_empty() => Sends::Nobody,
            Some(others) => {
                for to in others {
                    if self.senders.len() <= to {
                        self.senders.resize(to + 1, Vec::new());
                    }
                    if !self.senders[to].contains(&tile) {
                        self.senders[to].push(tile);
                        self.targets[tile].push(to);
                    }
                }
                Sends::Some
            }
        };
        match self.known.get_mut(tile) {
            Some(known) => *known = (rights, sends),
            None => self.known.push((rights, sends)),
        }
        sends
    }

    /// The earliest arrival at a tile of something that does not exist yet and that it has not asked for, or the moment up to which it may run beside others that
    /// act, if that is earlier. `arrival`: when what exists may arrive at others; `across`: one way from tile to tile.
    #[inline]
    pub(super) fn uncalled(
        &self,
        tile: usize,
        (times, announced): (&[Times], &Announced),
        arrival: Tick,
        across: Tick,
    ) -> Tick {
        let senders = self.senders.get(tile).map_or(&[][..], Vec::as_slice);
        let direct = senders.iter().map(|&from| times[from].announced).min();
        // Without a sender, nothing is ever sent here directly.
        let one_way = direct
            .unwrap_or(Tick::MAX)
            .min(announced.everywhere.but(tile))
            .min(announced.events.but(tile))
            .min(arrival);
        let two_ways = later(announced.answered.but(tile), across);
        let ahead = later(announced.acts.but(tile), AHEAD * across);
        later(one_way.min(two_ways), across).min(ahead)
    }
}

#[cfg(test)]
#[path = "reach_tests.rs"]
mod tests;
