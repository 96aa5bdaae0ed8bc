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
//!
//! **Messages.** If all endpoints of `k` that lead to tiles are for messages, what it sends at `t` of its own accord is a message, from a command that takes
//! longer to start than others, unless it got another endpoint since, which is the second case above. A message gives the unit that it reaches no endpoint
//! but a right to answer, which leads back to the sender, and its hart does what it would do without the message until the unit has accepted it. So what
//! that unit sends a third tile because of the message comes from a command that its hart starts then, whether the hart slept before or not.

use super::times::Times;
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
    /// Messages, to those that have it among their senders.
    Messages,
    /// Anything, to those that have it among their senders.
    Some,
    All,
}

/// Which tiles can send to which.
#[derive(Debug, Default)]
pub(super) struct Reach {
    known: Vec<Known>,
    /// For each tile, those that can send to it. Tiles that can send to all are not among them.
    senders: Vec<Vec<usize>>,
    /// For each tile, those to which it can send; none if these are all.
    targets: Vec<Vec<usize>>,
}

/// What the tiles announce when a window begins.
#[derive(Debug)]
pub(super) struct Announced {
    /// One way from tile to tile.
    across: Tick,
    /// When the first of them acts.
    pub(super) first: Tick,
    /// When the first of them may hand over a packet.
    pub(super) packet: Tick,
    /// When they may hand over a packet for another one. Whoever can send to nobody yet has an event first.
    anybody: Earliest,
    /// When something may arrive because of them at a tile that none of their endpoints leads to: one way after an event, or after a packet of one that can
    /// send to all; two ways after any other packet, and what whoever it reaches needs to send something itself. Or the moment up to which a tile
    /// may run beside them, if that is earlier.
    felt: Earliest,
}

impl Announced {
    /// Something will arrive at a tile at this moment.
    pub(super) fn arrives(&mut self, tile: usize, at: Tick) {
        self.first = self.first.min(at);
        self.packet = self.packet.min(at);
        self.anybody.add(tile, at);
        self.felt.add(tile, later(at, self.across));
    }

    /// When another tile may hand over a packet for anybody.
    pub(super) fn anybody_but(&self, tile: usize) -> Tick {
        self.anybody.but(tile)
    }
}

/// What is known of a tile's endpoints.
#[derive(Clone, Copy, Debug)]
struct Known {
    /// What its rights were counted as when they were last examined.
    rights: u64,
    sends: Sends,
    /// From a message of this tile that arrives to a packet that is sent because of it; never, if it can send to nobody in particular.
    hears: Tick,
}

impl Reach {
    /// A window begins. `across`: one way from tile to tile. `targets` says to which tiles one of them can send, in any order, and whether only messages,
    /// or `None` for all; it is asked if a tile's rights have changed.
    #[inline]
    pub(super) fn begin(
        &mut self,
        times: &mut [Times],
        across: Tick,
        targets: impl Fn(usize) -> Option<Vec<(usize, bool)>>,
    ) -> Announced {
        let mut announced = Announced {
            across,
            first: Tick::MAX,
            packet: Tick::MAX,
            anybody: Earliest::NEVER,
            felt: Earliest::NEVER,
        };
        for tile in 0..times.len() {
            let one = &times[tile];
            let known = match self.known.get(tile) {
                Some(known) if known.rights == one.rights => *known,
                _ => self.examine(tile, times, targets(tile)),
            };
            let one = &mut times[tile];
            let own = match known.sends {
                Sends::Messages => one.packets.message,
                _ => one.packets.command,
            };
            one.sends = own;
            let (next, packet, event) = (one.next, one.packets.packet, one.event);
            if next == Tick::MAX {
                // Nor has it anything to announce.
                continue;
            }
            announced.first = announced.first.min(next);
            announced.packet = announced.packet.min(packet);
            // When it sends something to somebody, and when this has the effect of a packet for all.
            let (sent, everywhere) = match known.sends {
                Sends::Nobody => (event, event),
                Sends::Messages => (own.min(event), event.min(later(own, known.hears + across))),
                Sends::Some => {
                    let wakes = self.targets[tile].iter().map(|&to| times[to].wakes).min();
                    let wakes = wakes.unwrap_or_else(|| {
                        panic!("tile {tile} can send to some tiles, and nobody knows to which: {self:?}")
                    });
                    (own.min(event), event.min(later(own, wakes + across)))
                }
                Sends::All => (own.min(event), own.min(event)),
            };
            announced.anybody.add(tile, sent);
            let ahead = later(next, AHEAD * across);
            announced
                .felt
                .add(tile, later(everywhere, across).min(ahead));
        }
        announced
    }

    /// From now on, a tile can send to these. Tiles are first examined in their order.
    #[cold]
    fn examine(
        &mut self,
        tile: usize,
        times: &[Times],
        targets: Option<Vec<(usize, bool)>>,
    ) -> Known {
        for senders in &mut self.senders {
            senders.retain(|from| *from != tile);
        }
        if self.targets.len() <= tile {
            self.targets.resize(tile + 1, Vec::new());
        }
        self.targets[tile].clear();
        let others = targets.map(|mut all| {
            all.retain(|(to, _)| *to != tile);
            all
        });
        let sends = match others {
            None => Sends::All,
            Some(others) if others.is_empty() => Sends::Nobody,
            Some(others) => {
                let messages = others.iter().all(|(_, messages)| *messages);
                for (to, _) in others {
                    if self.senders.len() <= to {
                        self.senders.resize(to + 1, Vec::new());
                    }
                    if !self.senders[to].contains(&tile) {
                        self.senders[to].push(tile);
                        self.targets[tile].push(to);
                    }
                }
                match messages {
                    true => Sends::Messages,
                    false => Sends::Some,
                }
            }
        };
        let hears = self.targets[tile].iter().map(|&to| times[to].hears);
        let now = Known {
            rights: times[tile].rights,
            sends,
            hears: hears.fold(Tick::MAX, Tick::min),
        };
        match self.known.get_mut(tile) {
            Some(known) => *known = now,
            None => self.known.push(now),
        }
        now
    }

    /// The earliest arrival at a tile of something that does not exist yet and that it has not asked for, or the moment up to which it may run beside others that
    /// act, if that is earlier. `arrival`: when what exists may arrive at others.
    #[inline]
    pub(super) fn uncalled(
        &self,
        tile: usize,
        (times, announced): (&[Times], &Announced),
        arrival: Tick,
    ) -> Tick {
        let senders = self.senders.get(tile).map_or(&[][..], Vec::as_slice);
        let direct = senders.iter().map(|&from| times[from].sends);
        let one_way = direct.fold(arrival, Tick::min);
        later(one_way, announced.across).min(announced.felt.but(tile))
    }
}

#[cfg(test)]
#[path = "reach_tests.rs"]
mod tests;
