//! When a tile acts next, and when its packets may leave.
//!
//! Why it exists: other tiles run ahead of a tile as far as these moments allow. It does not know how far that is.

use super::Tile;
use crate::config::TileConfig;
use crate::types::{Tick, later};

/// When a tile hands over its next packets at the earliest.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Announced {
    /// The next one.
    pub packet: Tick,
    /// The next one for another processing tile.
    pub command: Tick,
    /// The next one that is a message for another processing tile.
    pub message: Tick,
}

/// When a tile acts next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Moments {
    /// Its next event or block.
    pub next: Tick,
    /// Its next packets.
    pub announced: Announced,
    /// Its next event.
    pub event: Tick,
    /// From something that wakes its harts to a packet of theirs for another processing tile: 0 if they do not sleep.
    pub wakes: Tick,
    /// From a message that arrives to a packet for another processing tile that its harts send because of it.
    pub hears: Tick,
}

impl Tile {
    /// When the tile acts next, and what it may then do to others: a hart's miss leaves after the second-level look-up, and a command of the unit after its
    /// start-up.
    #[inline]
    pub fn moments(&self) -> Moments {
        self.moments_of(self.hart_time(), self.local.next_event())
    }

    /// The same, of when the harts act next and when the next event is.
    #[inline]
    pub(super) fn moments_of(&self, hart: Tick, event: Tick) -> Moments {
        Moments {
            next: hart.min(event),
            announced: Announced {
                packet: later(hart, self.local.hart_lookahead).min(event),
                command: later(hart, self.command_lookahead).min(event),
                message: later(hart, self.message_lookahead).min(event),
            },
            event,
            wakes: match hart {
                Tick::MAX => self.command_lookahead,
                _ => 0,
            },
            hears: self.hears,
        }
    }
}

/// Minimum time from a miss of the hart to its packet.
pub(super) fn miss_lookahead(config: &TileConfig) -> Tick {
    config.l2.as_ref().map_or(0, |c| c.latency * c.cycle)
}

/// Minimum time from a hart's write to a register of the unit until the command's packet. Harts without units reach each other
/// through memory, so they must not be far apart either.
pub(super) fn command_lookahead(config: &TileConfig) -> Tick {
    config.dtu.as_ref().map_or(miss_lookahead(config), |d| {
        d.read.min(d.write).min(d.send).min(d.reply) * d.cycle
    })
}

/// The same until a message leaves: only two commands send one.
pub(super) fn message_lookahead(config: &TileConfig) -> Tick {
    let unit = config.dtu.as_ref();
    unit.map_or(miss_lookahead(config), |d| d.send.min(d.reply) * d.cycle)
}

/// From the arrival of a message until the unit does anything with it but answer. A streaming unit looks for something to do at each event.
pub(super) fn acceptance(config: &TileConfig) -> Tick {
    match (&config.dtu, &config.accelerator) {
        (Some(unit), None) => unit.receive * unit.cycle,
        _ => 0,
    }
}
