//! What limits the harts of a cluster at their second level.
//!
//! Why it exists: a platform divides the ways of a shared cache when it starts, and says whether programs can divide them again. What it
//! deliberately does not know: the cache.

use crate::writer::Writer;
use serde::Serialize;

/// A capacity controller (CBQRI) of a second level, and the identifiers that harts give their requests (Ssqosid).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Capacity {
    /// Resource-control identifiers; a power of two.
    pub rcids: u32,
    /// Monitoring-counter identifiers; a power of two.
    pub mcids: u32,
    /// The only hart that reaches the registers; `None`: all do.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub programmer: Option<u32>,
}

/// A share of the bandwidth of memories, when the machine starts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Share {
    /// Slots of each window that it has before others.
    pub reserved: u32,
    /// Its weight for other slots; 0: it has none.
    pub weight: u32,
}

impl Default for Share {
    /// What a bandwidth controller gives an identifier after a reset.
    fn default() -> Self {
        Self {
            reserved: 0,
            weight: 1,
        }
    }
}

impl Share {
    /// Whether it is the share after a reset.
    pub fn is_default(&self) -> bool {
        *self == Self::default()
    }

    /// Writes what differs from that share, as attributes of the open element.
    pub(crate) fn write(self, writer: &mut Writer) {
        let usual = Self::default();
        let reserved = (self.reserved != usual.reserved).then_some(self.reserved);
        let weight = (self.weight != usual.weight).then_some(self.weight);
        writer
            .optional("reserved", reserved)
            .optional("weight", weight);
    }
}

/// The ways of the second level that a hart's fills may use.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Partition {
    /// The hart.
    pub hart: u32,
    /// The first way.
    pub first: u32,
    /// How many ways.
    pub ways: u32,
    /// Its share of each memory with a bandwidth controller.
    #[serde(skip_serializing_if = "Share::is_default")]
    pub share: Share,
}
