//! Waits of requests at the gates of a service, as reported by the receiver's unit.
//!
//! Why it exists: the unit knows for whom a receiver works and which requests wait meanwhile; the ledger has a resource for that. What it
//! deliberately does not know: how the unit knows.

use super::{Ledger, Resource};
use crate::types::{Owner, Tick, TileId};

/// The party that a receiver works for, or the sender of a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Party {
    /// An activity.
    Activity(Owner),
    /// The device of the receiver's tile.
    Device,
}

/// An interval in which a request waited and its receiver worked for the same party.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Unfetched {
    /// The sender of the request.
    pub victim: Owner,
    /// The party that its receiver worked for.
    pub culprit: Party,
    /// The receiver.
    pub server: Owner,
    /// Ticks of the same interval reported earlier.
    pub so_far: Tick,
    /// Ticks that are new.
    pub ticks: Tick,
}

/// How long requests waited to be fetched on a tile.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RequestsTime {
    /// The tile of the receivers.
    pub tile: TileId,
    /// Ticks from when requests were stored until they were fetched, summed over all requests.
    pub waited: Tick,
}

impl Ledger {
    /// Books an interval in which a request waited to be fetched.
    pub fn unfetched(&mut self, wait: &Unfetched) {
        let (culprit, resource) = match wait.culprit {
            Party::Activity(culprit) => (culprit, Resource::Service(wait.server)),
            Party::Device => (wait.server, Resource::DeviceService(wait.server)),
        };
        match wait.so_far {
            0 => self.book(wait.victim, culprit, resource, wait.ticks),
            so_far => self.lengthen(wait.victim, culprit, resource, (so_far, wait.ticks)),
        }
    }

    /// Ticks booked for requests that waited on a tile.
    pub(crate) fn requests_of(&self, tile: TileId) -> Tick {
        let bookings = self.bookings.iter();
        let here = bookings.filter(|one| {
            matches!(one.resource, Resource::Service(at) | Resource::DeviceService(at) if at.tile == tile)
        });
        here.map(|one| one.ticks).sum()
    }
}
