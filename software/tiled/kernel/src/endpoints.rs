//! Which endpoint of a tile's unit belongs to whom, and where send endpoints lead.
//!
//! Why it exists: when an activity stops, its endpoints and those that lead to it must go. What it deliberately does not
//! know: registers.
//!
//! An endpoint that received is not used again: a right to reply that another tile still holds must not reach a new owner.

use alloc::vec::Vec;

/// What an endpoint is used for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Use {
    /// Free.
    Free,
    /// The system's own: memory windows, TileMux.
    Reserved,
    /// Sends to an endpoint of a tile.
    Send {
        /// Owner.
        activity: u16,
        /// Tile of the receiver.
        target_tile: u16,
        /// Endpoint of the receiver.
        target_endpoint: u16,
    },
    /// Receives.
    Receive {
        /// Owner.
        activity: u16,
        /// Slots.
        slots: u8,
        /// Bytes of a slot.
        slot_size: u16,
        /// Credits given out to senders so far.
        credits: u16,
    },
    /// Holds rights to reply of a receive endpoint.
    Reply {
        /// Owner.
        activity: u16,
    },
    /// Reads and writes memory.
    Memory {
        /// Owner.
        activity: u16,
    },
    /// Received once; never used again.
    Retired,
}

impl Use {
    /// The owner, if it is an activity's.
    pub const fn owner(&self) -> Option<u16> {
        match *self {
            Use::Send { activity, .. }
            | Use::Receive { activity, .. }
            | Use::Reply { activity }
            | Use::Memory { activity } => Some(activity),
            Use::Free | Use::Reserved | Use::Retired => None,
        }
    }
}

/// The endpoints of one unit.
#[derive(Clone, Debug)]
pub struct EndpointTable(Vec<Use>);

impl EndpointTable {
    /// `count` endpoints of which the first `reserved` are the system's.
    pub fn new(count: u16, reserved: u16) -> Self {
        let mut uses = Vec::new();
        uses.resize(count.into(), Use::Free);
        for entry in uses.iter_mut().take(reserved.into()) {
            *entry = Use::Reserved;
        }
        Self(uses)
    }

    /// First of `count` free endpoints in a row; they stay free until [`set`](Self::set).
    pub fn find(&self, count: usize) -> Option<u16> {
        let mut rows = self.0.windows(count.max(1));
        let first = rows.position(|row| row.iter().all(|entry| *entry == Use::Free))?;
        u16::try_from(first).ok()
    }

    /// Says what an endpoint is used for.
    pub fn set(&mut self, endpoint: u16, entry: Use) {
        if let Some(place) = self.0.get_mut(usize::from(endpoint)) {
            *place = entry;
        }
    }

    /// What an endpoint is used for; one that does not exist is reserved.
    pub fn get(&self, endpoint: u16) -> Use {
        let entry = self.0.get(usize::from(endpoint));
        entry.copied().unwrap_or(Use::Reserved)
    }

    /// Takes back all endpoints that `gone` names; returns their numbers.
    pub fn take_back(&mut self, gone: impl Fn(&Use) -> bool) -> Vec<u16> {
        let mut numbers = Vec::new();
        for (number, entry) in self.0.iter_mut().enumerate() {
            if gone(entry) {
                *entry = match entry {
                    Use::Receive { .. } => Use::Retired,
                    _ => Use::Free,
                };
                numbers.push(number as u16);
            }
        }
        numbers
    }
}
