//! The costs of accesses that follow from a platform's parameters, without running anything.
//!
//! Why it exists: a measured curve without an expectation shows nothing. The formulas are those of the book's pages on timing, clusters and
//! local memories. What it deliberately does not know: the machine, and what was measured.

use bulkhead_model::platform::{
    Cache, Engine, Memory, Network, Platform, Replacement, Tile, Topology,
};

/// Loads of a chain in a turn of the loop of `memory/measure`.
const TURN: u32 = 32;

/// Costs of a chip's first tile, in cycles of its hart.
pub struct Costs<'a> {
    pub(super) platform: &'a Platform,
    pub(super) tile: &'a Tile,
}

impl<'a> Costs<'a> {
    /// The costs of a tile.
    pub fn new(platform: &'a Platform, tile: &'a Tile) -> Self {
        Self { platform, tile }
    }

    pub(super) fn hertz(&self) -> f64 {
        self.tile.pipeline.clock.frequency.0 as f64
    }

    /// A load served by the first level or a local memory.
    pub fn first(&self) -> f64 {
        f64::from(self.tile.pipeline.load_to_use)
    }

    /// A load served by the second level.
    pub fn second(&self) -> Option<f64> {
        let l2 = self.tile.l2.as_ref()?;
        let ways = self.tile.cluster.as_ref();
        let ways = ways.map_or(0, |cluster| cluster.up + cluster.down);
        Some(f64::from(l2.latency + ways))
    }

    /// Cycles of the hart for a packet with this many bytes of payload that meets no other packet.
    fn packet(&self, payload: u32, routers: u32) -> f64 {
        let net: &Network = &self.platform.network;
        let sent = (payload + net.header).div_ceil(net.width);
        let cycles = 2 * net.interface + routers * (net.link + net.router) + net.link + sent;
        f64::from(cycles) * self.hertz() / net.clock.frequency.0 as f64
    }

    pub(super) fn last(&self) -> Option<&Cache> {
        self.tile.l2.as_ref().or(self.tile.l1d.as_ref())
    }

    /// A load that the first memory serves, with its row open or with another one open.
    pub fn memory(&self, is_open: bool) -> Option<f64> {
        self.memory_of(self.platform.memories.first()?, is_open)
    }

    /// The same for any memory.
    pub fn memory_of(&self, memory: &Memory, is_open: bool) -> Option<f64> {
        let (dram, line) = (&memory.dram, self.last()?.line);
        let row = if is_open {
            0
        } else {
            dram.precharge + dram.activate
        };
        let bursts = line.div_ceil(dram.burst);
        let burst = dram.burst.div_ceil(2 * dram.bus);
        let chips = dram.frontend + row + dram.cas + bursts * burst;
        let chips = f64::from(chips) * self.hertz() / dram.clock.frequency.0 as f64;
        let above = self.second().unwrap_or(0.0);
        let routers = match self.platform.network.topology {
            Topology::Crossbar => 1,
            Topology::StarMesh { columns, .. } | Topology::Mesh { columns, .. } => {
                hops(columns, self.tile.router, memory.router) + 1
            }
        };
        let coherent = self.tile.cluster.as_ref().is_some_and(|one| one.coherent);
        let others = match coherent {
            true => self.question(routers, Some(self.tile.id)),
            false => 0.0,
        };
        Some(above + self.packet(0, routers) + others + chips + self.packet(line, routers))
    }

    /// The cost of asking the coherent clusters, except the one that asks, before memory answers: the way there, the look-up and the way
    /// back, without the line. They are asked at once.
    fn question(&self, routers: u32, except: Option<u16>) -> f64 {
        let coherent = |tile: &&Tile| tile.cluster.as_ref().is_some_and(|one| one.coherent);
        let tiles = self.platform.tiles.iter().filter(coherent);
        let others = tiles.filter(|tile| Some(tile.id) != except);
        let looks = others.filter_map(|tile| {
            let latency = f64::from(tile.l2.as_ref()?.latency);
            Some(latency * self.hertz() / tile.pipeline.clock.frequency.0 as f64)
        });
        looks.fold(0.0, f64::max) + 2.0 * self.packet(0, routers)
    }

    /// Minimum time of a bank from one row to the next, if all of a range is in one bank and the controller has this limit (tRAS and tRP).
    pub fn row_cycle(&self) -> Option<f64> {
        let memory = self.platform.memories.first()?;
        memory.dram.bank_bytes(memory.size.0)?;
        let active = memory.dram.controller.row_active;
        let cycles = f64::from(active + memory.dram.precharge);
        let hart = cycles * self.hertz() / memory.dram.clock.frequency.0 as f64;
        Some(self.refreshed(hart))
    }

    /// The cost of one of many accesses to memory, some of which arrive during a refresh.
    pub fn refreshed(&self, cost: f64) -> f64 {
        let first = self.platform.memories.first();
        first.map_or(cost, |memory| cost / there(memory))
    }

    /// The same for any memory.
    pub fn refreshed_of(&self, memory: &Memory, cost: f64) -> f64 {
        cost / there(memory)
    }

    /// A load of a chain in random order over `bytes`, each line once per round. `rows`: the rows of each bank that the set occupies.
    pub fn chain(&self, bytes: u64, rows: f64) -> Option<f64> {
        let open = 1.0 / rows.max(1.0);
        let memory = open * self.memory(true)? + (1.0 - open) * self.memory(false)?;
        self.chain_beyond(bytes, self.refreshed(memory))
    }

    /// The same if a load that no cache serves takes `memory` cycles.
    pub fn chain_beyond(&self, bytes: u64, memory: f64) -> Option<f64> {
        let l1 = self.tile.l1d.as_ref()?;
        let first = hits(l1, bytes);
        let below = match (&self.tile.l2, self.second()) {
            (Some(l2), Some(cost)) => {
                let second = hits(l2, bytes);
                second * cost + (1.0 - second) * memory
            }
            _ => memory,
        };
        Some(first * self.first() + (1.0 - first) * below)
    }

    /// Maximum outstanding misses of a hart.
    pub fn overlap(&self) -> u32 {
        let own = self.tile.l1d.as_ref().map_or(u32::MAX, |l1| l1.mshrs);
        let shared = self.tile.l2.as_ref().map_or(u32::MAX, |l2| l2.mshrs);
        own.min(shared).min(self.tile.pipeline.load_buffer)
    }

    /// Rows of each bank that a range of `bytes` covers, whether rows are interleaved over the banks or banks are blocks.
    pub fn rows(&self, bytes: u64) -> f64 {
        let memory = self.platform.memories.first();
        memory.map_or(1.0, |memory| {
            let dram = &memory.dram;
            let banks = match dram.bank_bytes(memory.size.0) {
                Some(_) => 1,
                None => u64::from(dram.banks),
            };
            bytes as f64 / (dram.row.0 * banks) as f64
        })
    }

    /// A memory's own time for an access of this many bytes whose row is open, in cycles of the hart: until the answer leaves, and for how
    /// long the next one must wait.
    fn chips(&self, memory: &Memory, bytes: u64) -> (f64, f64) {
        let dram = &memory.dram;
        let hart = self.hertz() / dram.clock.frequency.0 as f64;
        let bursts = bytes.div_ceil(dram.burst.into()) as f64;
        let data = bursts * f64::from(dram.burst.div_ceil(2 * dram.bus));
        let all = f64::from(dram.frontend + dram.cas) + data;
        (all * hart, data * hart)
    }

    /// A transfer of a DMA engine from one memory to another over a crossbar, from the store that starts it to the load that sees its end:
    /// the first burst there and back, and the others behind it at the pace of the slowest of the engine, the links, the memories, and the
    /// bursts that may be under way. Rows stay open, the load sees the end at once, and no cache has a line that a coherent engine accesses.
    pub fn transfer(
        &self,
        engine: &Engine,
        (from, to): (&Memory, &Memory),
        bytes: u64,
    ) -> Option<f64> {
        if self.platform.network.topology != Topology::Crossbar {
            return None;
        }
        let dma = &engine.dma;
        let cycle = self.hertz() / dma.clock.frequency.0 as f64;
        let burst = u64::from(dma.burst.max(8));
        let small = burst.min(bytes) as u32;
        let register = self.packet(8, 1) + f64::from(engine.registers) * cycle;
        let start = self.packet(8, 1) + f64::from(dma.startup) * cycle;
        let (read, reads) = self.chips(from, small.into());
        let (write, writes) = self.chips(to, small.into());
        let asks = match engine.coherent {
            true => self.question(1, None),
            false => 0.0,
        };
        let first = self.packet(0, 1) + asks + read + self.packet(small, 1);
        let second = self.packet(small, 1) + asks + write + self.packet(0, 1);
        let net = &self.platform.network;
        let link = f64::from((small + net.header).div_ceil(net.width));
        let link = link * self.hertz() / net.clock.frequency.0 as f64;
        let beats = f64::from(small.div_ceil(dma.width)) * cycle;
        let window = (first + second) / f64::from(dma.outstanding);
        let pace = [reads, writes, link, beats, window];
        let pace = pace.into_iter().fold(0.0, f64::max);
        let bursts = bytes.div_ceil(burst) as f64;
        Some(start + first + second + (bursts - 1.0) * pace + register + self.packet(8, 1))
    }

    /// A load of eight bytes from a tightly coupled memory of another tile, over a crossbar.
    pub fn coupled(&self, of: &Tile) -> Option<f64> {
        if self.platform.network.topology != Topology::Crossbar {
            return None;
        }
        let memory = of.tcm.first()?;
        let above = match (&self.tile.cluster, &self.tile.l2) {
            (Some(cluster), _) => f64::from(cluster.up + cluster.down),
            (None, Some(l2)) => f64::from(l2.latency),
            (None, None) => 0.0,
        };
        let service = f64::from(memory.latency) * self.hertz() / memory.clock.frequency.0 as f64;
        Some(above + self.packet(0, 1) + service + self.packet(8, 1))
    }

    /// A load that hits the first level, as the mean of a chain of [`TURN`] of them: the loop's own two instructions and its jump are issued while the
    /// last load is under way.
    pub fn first_in_turn(&self) -> f64 {
        let (loads, each) = (f64::from(TURN), self.first());
        let end = 3.0 + f64::from(self.tile.pipeline.jump_penalty);
        ((loads - 1.0) * each + each.max(end)) / loads
    }

    /// A load of eight bytes from the local memory of a tile `hops` away.
    pub fn remote(&self, hops: u32) -> Option<f64> {
        let local = self.tile.local_memory.as_ref()?;
        let clock = local.clock.frequency.0 as f64;
        let service = f64::from(local.latency) * self.hertz() / clock;
        // Both sides accept an arrival at the next edge of their clocks.
        let there = self.packet(8, hops + 1).ceil();
        let back = self.packet(0, hops + 1).ceil();
        Some(there + service + back)
    }
}

/// The share of time for which a memory serves requests; the rest is refresh.
pub(super) fn there(memory: &Memory) -> f64 {
    let dram = &memory.dram;
    match dram.refresh_interval {
        0 => 1.0,
        interval => 1.0 - f64::from(dram.refresh) / f64::from(interval),
    }
}

/// Hops between two routers of a mesh.
pub fn hops(columns: u16, from: u16, to: u16) -> u32 {
    let columns = columns.max(1);
    let apart = |a: u16, b: u16| u32::from(a.abs_diff(b));
    apart(from / columns, to / columns) + apart(from % columns, to % columns)
}

/// The share of the accesses of a chain over `bytes`, each line once per round, that hits in a cache. If replacement follows the order of
/// use, all lines of a set stay or none do. If it is random, a line stays while the other missing accesses of a round choose other ways:
/// `h = (1 - 1/ways) ^ ((lines - 1) (1 - h))` for `lines` of a set.
pub(super) fn hits(cache: &Cache, bytes: u64) -> f64 {
    let span = cache.sets() * u64::from(cache.line);
    hits_of(cache, bytes as f64 / span as f64)
}

/// The same for a set of the cache that so many of the lines share.
pub(super) fn hits_of(cache: &Cache, lines: f64) -> f64 {
    let ways = f64::from(cache.ways);
    if lines <= ways {
        return 1.0;
    }
    match cache.replacement {
        Replacement::Random | Replacement::RandomAny => {
            // The equation has a solution below 1 if there are more lines than ways; iteration from 0 converges to it.
            let mut h = 0.0f64;
            for _ in 0..10_000 {
                h = (1.0 - 1.0 / ways).powf((lines - 1.0) * (1.0 - h));
            }
            h
        }
        _ => 0.0,
    }
}
