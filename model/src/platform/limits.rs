//! What limits the harts of a cluster at their second level.
//!
//! Why it exists: a platform divides the ways of a shared cache when it starts, and says whether programs can divide them again. What it
//! deliberately does not know: the cache.

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

/// The ways of the second level that a hart's fills may use.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Partition {
    /// The hart.
    pub hart: u32,
    /// The first way.
    pub first: u32,
    /// How many ways.
    pub ways: u32,
}
