//! All counters of a machine, as plain values in a fixed order.
//!
//! Why it exists: reports, tests and the digest of a run read one structure instead of the parts. It does not know what the numbers
//! mean; each part documents its own counters.

use crate::cache::CacheStatistics;
use crate::dram::DramStatistics;
use crate::hart::HartStatistics;
use crate::ledger::Level;
use crate::noc::{LinkStatistics, Node};
use crate::types::{Owner, Tick, TileId};

/// Counters of a run.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct Statistics {
    /// The moment up to which the machine has run.
    pub ticks: Tick,
    /// Markers dropped because a tile made too many.
    pub markers_lost: u64,
    /// Harts, by tile; a tile's second hart follows its first.
    pub harts: Vec<HartReport>,
    /// Caches, by tile, level and owner.
    pub caches: Vec<CacheReport>,
    /// Memory tiles, by number.
    pub memories: Vec<MemoryReport>,
    /// Links, by number.
    pub links: Vec<LinkReport>,
}

/// Counters of a hart.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HartReport {
    /// The tile.
    pub tile: TileId,
    /// Ticks per cycle of the hart.
    pub cycle: Tick,
    /// The counters.
    pub counters: HartStatistics,
}

/// Counters of a cache for one owner.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CacheReport {
    /// The cache.
    pub level: Level,
    /// Tile and activity.
    pub owner: Owner,
    /// The counters.
    pub counters: CacheStatistics,
}

/// Counters of a memory tile.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MemoryReport {
    /// The tile.
    pub tile: TileId,
    /// The counters.
    pub counters: DramStatistics,
}

/// Counters of a link.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LinkReport {
    /// Number, as in the ledger.
    pub link: u16,
    /// Where it starts.
    pub from: Node,
    /// Where it ends.
    pub to: Node,
    /// With split channels: 0 reads, 1 writes and messages.
    pub plane: usize,
    /// The counters.
    pub counters: LinkStatistics,
}
