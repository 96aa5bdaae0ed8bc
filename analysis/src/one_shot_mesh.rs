//! The mesh of a one-shot system in cycles: hops, routes, packets, and the traffic on links.
//!
//! Why it exists: bounds of ports, and of what rivals add to them, use the same links. What it deliberately does not know: which core sends
//! what.

use bulkhead_model::platform::{Platform, Topology};
use bulkhead_model::units::{Frequency, Time};
use std::collections::BTreeMap;

/// Maximum cycles that a request waits for the access in progress at a memory: a fetch or an atomic operation.
pub(crate) const ACCESS: u64 = 2;

/// Maximum cycles that both sides of a round need until they accept an arrival.
const EDGES: u64 = 2 + 2;

/// The load of a channel's writes: on links, in network cycles, and on the memory of the reader's core.
#[derive(Clone, Debug, Default)]
pub struct Load {
    pub(crate) links: BTreeMap<Link, u64>,
    /// Accesses to the memory of each tile.
    pub(crate) memories: BTreeMap<u16, u64>,
    pub(crate) requests: u64,
}

/// Plane, and the nodes at both ends: a router, or a tile from [`TILES`] on.
pub(crate) type Link = (u8, u32, u32);
const TILES: u32 = 1 << 16;

impl Load {
    pub(crate) fn add(&mut self, other: &Self) {
        for (link, work) in &other.links {
            *self.links.entry(*link).or_default() += work;
        }
        for (tile, accesses) in &other.memories {
            *self.memories.entry(*tile).or_default() += accesses;
        }
    }
}

/// The network, and the cores' clock.
pub(crate) struct Mesh<'a> {
    pub(crate) platform: &'a Platform,
    columns: u16,
    clock: Frequency,
}

impl<'a> Mesh<'a> {
    pub(crate) fn new(platform: &'a Platform) -> Self {
        let columns = match platform.network.topology {
            Topology::Mesh { columns, .. } | Topology::StarMesh { columns, .. } => columns.max(1),
            Topology::Crossbar => 1,
        };
        let clocks = platform
            .tiles
            .iter()
            .map(|tile| tile.pipeline.clock.frequency);
        Self {
            platform,
            columns,
            clock: clocks.max().unwrap_or(Frequency(1)),
        }
    }

    pub(crate) fn cycles(&self, time: Time) -> u64 {
        let cycles = (u128::from(time.0) * u128::from(self.clock.0)).div_ceil(1_000_000_000_000);
        u64::try_from(cycles).unwrap_or(u64::MAX)
    }

    pub(crate) fn time(&self, cycles: u64) -> Time {
        Time::of_cycles(cycles, self.clock).unwrap_or(Time(u64::MAX))
    }

    pub(crate) fn place(&self, tile: u16) -> (u16, u16) {
        let router = self.platform.tile(tile).map_or(0, |tile| tile.router);
        (router / self.columns, router % self.columns)
    }

    pub(crate) fn hops(&self, from: u16, to: u16) -> u64 {
        let ((row, column), (other_row, other_column)) = (self.place(from), self.place(to));
        u64::from(row.abs_diff(other_row) + column.abs_diff(other_column))
    }

    /// Cycles of a core that this many network cycles take.
    pub(crate) fn core_cycles(&self, cycles: u64) -> u64 {
        let network = self.platform.network.clock.frequency.0.max(1);
        let exact = u128::from(cycles) * u128::from(self.clock.0);
        u64::try_from(exact.div_ceil(u128::from(network))).unwrap_or(u64::MAX)
    }

    /// Cycles of a core from a request of eight bytes to its answer over this many hops, without other traffic.
    pub(crate) fn round(&self, hops: u64) -> u64 {
        let network = &self.platform.network;
        let way = 2 * u64::from(network.interface)
            + (hops + 1) * u64::from(network.router + network.link)
            + self.packet(8);
        // Each side accepts an arrival at its next edge; the memory serves an atomic operation in two cycles.
        self.core_cycles(2 * way) + EDGES + ACCESS
    }

    /// The least cycles of the same; at least 1.
    pub(crate) fn shortest_round(&self, hops: u64) -> u64 {
        self.round(hops).saturating_sub(EDGES + ACCESS).max(1)
    }

    /// Cycles of a link for a packet of this many bytes.
    pub(crate) fn packet(&self, bytes: u32) -> u64 {
        let network = &self.platform.network;
        u64::from((bytes + network.header).div_ceil(network.width.max(1)))
    }

    /// Cycles of a link for the longest packet of a hart's access on a plane.
    pub(crate) fn cycles_of(&self, plane: u8) -> u64 {
        let interval = u64::from(self.platform.network.read_interval.unwrap_or(0));
        match plane {
            0 => interval.max(self.packet(8)),
            1 => self.packet(8),
            _ => self.packet(0),
        }
    }

    /// Links from a tile to another one: along the row first.
    pub(crate) fn way(&self, from: u16, to: u16) -> Vec<(u32, u32)> {
        let router = |tile| self.platform.tile(tile).map_or(0, |tile| tile.router);
        self.links((from, router(from)), (to, router(to)))
    }

    /// The same between two tiles or memories, each with its router.
    pub(crate) fn links(
        &self,
        (from, begin): (u16, u16),
        (to, end): (u16, u16),
    ) -> Vec<(u32, u32)> {
        let (mut row, mut column) = (begin / self.columns, begin % self.columns);
        let (last_row, last_column) = (end / self.columns, end % self.columns);
        let router =
            |row: u16, column: u16| u32::from(row) * u32::from(self.columns) + u32::from(column);
        let mut way = vec![(TILES + u32::from(from), router(row, column))];
        while (row, column) != (last_row, last_column) {
            let at = router(row, column);
            if column != last_column {
                column = if column < last_column {
                    column + 1
                } else {
                    column - 1
                };
            } else {
                row = if row < last_row { row + 1 } else { row - 1 };
            }
            way.push((at, router(row, column)));
        }
        way.push((router(row, column), TILES + u32::from(to)));
        way
    }
}
