//! When a tile does something next, as the windows see it.
//!
//! Why it exists: a window looks at these numbers of all tiles, and at a tile itself only if it runs. What it deliberately does not know: what tiles do.

use crate::tile::{Announced, Moments, Tile};
use crate::types::Tick;

/// When a tile acts next.
#[derive(Clone, Copy, Debug)]
pub(super) struct Times {
    /// Its next event or block.
    pub next: Tick,
    /// When it hands over its next packets at the earliest.
    pub packets: Announced,
    /// Its next event.
    pub event: Tick,
    /// Changes with the tiles that its unit can send to.
    pub rights: u64,
    /// When it sends something to another processing tile at the earliest, as known when the window began.
    pub sends: Tick,
    /// From something that wakes its hart to a packet of that hart for another tile: 0 if the hart does not sleep.
    pub wakes: Tick,
    /// From a message that arrives to a packet that the hart sends another tile because of it.
    pub hears: Tick,
}

impl Times {
    #[inline]
    pub fn of(tile: &Tile, moments: Moments) -> Self {
        let Moments {
            next,
            announced,
            event,
            wakes,
            hears,
        } = moments;
        Self {
            next,
            packets: announced,
            event,
            rights: tile.rights(),
            sends: announced.command,
            wakes,
            hears,
        }
    }

    /// A tile that has ended the run does nothing more.
    pub fn ended(tile: &Tile) -> Self {
        let never = Tick::MAX;
        Self {
            next: never,
            packets: Announced {
                packet: never,
                command: never,
                message: never,
            },
            event: never,
            rights: tile.rights(),
            sends: never,
            wakes: 0,
            hears: 0,
        }
    }

    /// Something will arrive at this moment.
    pub fn arrives(&mut self, at: Tick) {
        self.next = self.next.min(at);
        self.packets.packet = self.packets.packet.min(at);
        self.packets.command = self.packets.command.min(at);
        self.packets.message = self.packets.message.min(at);
        self.event = self.event.min(at);
    }
}
