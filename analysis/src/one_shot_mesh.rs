//! The mesh of a one-shot system in cycles: hops, routes, packets, and the traffic on links.
//!
//! Why it exists: bounds of ports, and of what rivals add to them, use the same links. What it deliberately does not know: which core sends
//! what.

use bulkhead_model::platform::{Platform, Topology};
use bulkhead_model::units::{Frequency, Time};
use std::collections::BTreeMap;

/// Stores of an earlier write of the same core that may still be in transit when a write begins: the lock's, and a ring.
pub(crate) const BEHIND: u64 = 2;

/// Turns of an atomic operation at a memory.
const ATOMIC: u64 = 2;

/// Maximum cycles of its clock that a side of a round needs until it accepts an arrival.
const EDGES: u64 = 2;

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
    /// Maximum cycles of a core that a request waits for the access in progress at a memory: a fetch or an atomic operation.
    pub(crate) access: u64,
    /// Maximum cycles of a core until both sides of a round accept an arrival.
    edges: u64,
    /// Cycles of a core from a request's turn to its answer, beyond the first of the memory's.
    latency: u64,
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
        let clock = clocks.max().unwrap_or(Frequency(1));
        let mut mesh = Self {
            platform,
            columns,
            clock,
            access: 0,
            edges: 2 * EDGES,
            latency: 0,
        };
        let memories = platform
            .tiles
            .iter()
            .filter_map(|tile| tile.local_memory.as_ref());
        for memory in memories {
            let of_core = |cycles: u64| converted(cycles, memory.clock.frequency, clock);
            let fetch = u64::from(memory.fetch.div_ceil(memory.width.max(1)));
            mesh.access = mesh.access.max(of_core(fetch.max(ATOMIC)));
            mesh.edges = mesh.edges.max(EDGES + of_core(EDGES));
            let latency = of_core(memory.latency.into()).saturating_sub(of_core(1));
            mesh.latency = mesh.latency.max(latency);
        }
        mesh
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
        converted(cycles, self.platform.network.clock.frequency, self.clock)
    }

    /// Cycles of a core from a request of eight bytes to its answer over this many hops, without other traffic.
    pub(crate) fn round(&self, hops: u64) -> u64 {
        // Each side accepts an arrival at its next edge; the memory serves an atomic operation in two cycles.
        self.there_and_back(hops) + self.edges + self.access + self.latency
    }

    /// Cycles of a core on the network, in both directions.
    fn there_and_back(&self, hops: u64) -> u64 {
        let network = &self.platform.network;
        let way = 2 * u64::from(network.interface)
            + (hops + 1) * u64::from(network.router + network.link)
            + self.packet(8);
        self.core_cycles(2 * way)
    }

    /// Cycles by which stores in a row take longer than `each`, because only as many may be under way as the core's store buffer has places: the
    /// store after those waits for the first one's acknowledgement.
    pub(crate) fn stalls(&self, core: u16, hops: u64, stores: u64, each: u64) -> u64 {
        let buffer = self
            .platform
            .tile(core)
            .map_or(1, |tile| tile.pipeline.store_buffer);
        stalls(buffer.into(), self.round(hops), stores, each)
    }

    /// The least cycles of the same; at least 1.
    pub(crate) fn shortest_round(&self, hops: u64) -> u64 {
        self.there_and_back(hops).max(1)
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

/// Cycles of one clock in cycles of another one, rounded up.
fn converted(cycles: u64, from: Frequency, to: Frequency) -> u64 {
    let exact = u128::from(cycles) * u128::from(to.0);
    u64::try_from(exact.div_ceil(u128::from(from.0.max(1)))).unwrap_or(u64::MAX)
}

/// See [`Mesh::stalls`]: a store may be issued `each` cycles after the one before it, and when the one that is as many before it as there are places
/// has its acknowledgement, after a `round`.
fn stalls(places: u64, round: u64, stores: u64, each: u64) -> u64 {
    let places = places.max(1);
    // The last stores of an earlier operation may be under way. Each wait for an acknowledgement skips as many stores as there are places.
    let most = (stores + BEHIND) / places;
    let waits = match round > places.saturating_mul(each) {
        true => most,
        false => most.min(1),
    };
    let longest = waits.saturating_mul(round) + BEHIND * each * waits.min(1);
    longest.saturating_sub(waits.saturating_mul(places) * each)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Stores one by one, beside the bound.
    #[test]
    fn stores_wait_for_places_no_longer_than_is_counted() {
        for places in 1..=9 {
            for round in 1..80 {
                for stores in [1, 2, 3, 7, 8, 9, 40, 131] {
                    const EACH: u64 = 6;
                    // The last stores of an earlier operation are issued at 0.
                    let mut issued = vec![0; BEHIND as usize];
                    for store in issued.len()..issued.len() + stores as usize {
                        let freed = store.checked_sub(places as usize);
                        let freed = freed.map_or(0, |earlier| issued[earlier] + round);
                        issued.push((issued[store - 1] + EACH).max(freed));
                    }
                    let longer = issued[issued.len() - 1].saturating_sub(stores * EACH);
                    let bound = stalls(places, round, stores, EACH);
                    assert!(
                        longer <= bound,
                        "{places}, {round}, {stores}: {longer}, {bound}"
                    );
                    let near = longer + (BEHIND + 1) * round.max(EACH * places);
                    assert!(
                        bound <= near,
                        "{places}, {round}, {stores}: {longer}, {bound}"
                    );
                }
            }
        }
    }
}
