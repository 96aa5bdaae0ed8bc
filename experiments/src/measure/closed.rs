//! What the parameters of a platform say about the costs of accesses, without running anything.
//!
//! Why it exists: a measured curve without an expectation shows nothing. The formulas are those of the pages of timing, clusters and local
//! memories. What it deliberately does not know: the machine, and what was measured.

use bulkhead_model::platform::{Cache, Memory, Network, Platform, Replacement, Tile, Topology};

/// Costs of a chip's first tile, in cycles of its hart.
pub struct Costs<'a> {
    platform: &'a Platform,
    tile: &'a Tile,
}

impl<'a> Costs<'a> {
    /// Of a tile.
    pub fn new(platform: &'a Platform, tile: &'a Tile) -> Self {
        Self { platform, tile }
    }

    fn hertz(&self) -> f64 {
        self.tile.pipeline.clock.frequency.0 as f64
    }

    /// A load that the first level, or a local memory, serves.
    pub fn first(&self) -> f64 {
        f64::from(self.tile.pipeline.load_to_use)
    }

    /// A load that the second level serves.
    pub fn second(&self) -> Option<f64> {
        let l2 = self.tile.l2.as_ref()?;
        let ways = self.tile.cluster.as_ref();
        let ways = ways.map_or(0, |cluster| cluster.up + cluster.down);
        Some(f64::from(l2.latency + ways))
    }

    /// Cycles of the hart for a packet with so many bytes of payload that meets nobody.
    fn packet(&self, payload: u32, routers: u32) -> f64 {
        let net: &Network = &self.platform.network;
        let sent = (payload + net.header).div_ceil(net.width);
        let cycles = 2 * net.interface + routers * (net.link + net.router) + net.link + sent;
        f64::from(cycles) * self.hertz() / net.clock.frequency.0 as f64
    }

    fn last(&self) -> Option<&Cache> {
        self.tile.l2.as_ref().or(self.tile.l1d.as_ref())
    }

    /// A load that the first memory serves whose row is open, or another one is.
    pub fn memory(&self, is_open: bool) -> Option<f64> {
        self.memory_of(self.platform.memories.first()?, is_open)
    }

    /// The same of any memory.
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
        Some(above + self.packet(0, routers) + chips + self.packet(line, routers))
    }

    /// How long a bank takes at least from one row to the next, where all of a range is in one bank, and the controller says so (tRAS and tRP).
    pub fn row_cycle(&self) -> Option<f64> {
        let memory = self.platform.memories.first()?;
        memory.dram.bank_bytes(memory.size.0)?;
        let active = memory.dram.controller.as_ref()?.row_active;
        let cycles = f64::from(active + memory.dram.precharge);
        let hart = cycles * self.hertz() / memory.dram.clock.frequency.0 as f64;
        Some(self.refreshed(hart))
    }

    /// The cost of an access to memory among many, of which some come while memory is refreshed.
    pub fn refreshed(&self, cost: f64) -> f64 {
        cost / self.there()
    }

    /// The part of its time that a memory is there for requests: the rest is refresh.
    fn there(&self) -> f64 {
        let dram = self.platform.memories.first().map(|memory| &memory.dram);
        dram.filter(|dram| dram.refresh_interval > 0)
            .map_or(1.0, |dram| {
                1.0 - f64::from(dram.refresh) / f64::from(dram.refresh_interval)
            })
    }

    /// A load of a chain in random order over `bytes`, each line once a round; `rows`: the rows of each bank that the set has.
    pub fn chain(&self, bytes: u64, rows: f64) -> Option<f64> {
        let l1 = self.tile.l1d.as_ref()?;
        let open = 1.0 / rows.max(1.0);
        let memory = open * self.memory(true)? + (1.0 - open) * self.memory(false)?;
        let memory = self.refreshed(memory);
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

    /// Misses that a hart has under way at most.
    pub fn overlap(&self) -> u32 {
        let own = self.tile.l1d.as_ref().map_or(u32::MAX, |l1| l1.mshrs);
        let shared = self.tile.l2.as_ref().map_or(u32::MAX, |l2| l2.mshrs);
        own.min(shared).min(self.tile.pipeline.load_buffer)
    }

    /// Rows of each bank that a range of `bytes` covers where rows go round the banks, or blocks are banks.
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

    /// A load of eight bytes from the local memory of a tile `hops` away.
    pub fn remote(&self, hops: u32) -> Option<f64> {
        let local = self.tile.local_memory.as_ref()?;
        let clock = local.clock.frequency.0 as f64;
        let service = f64::from(local.latency) * self.hertz() / clock;
        // Both sides take an arrival at the next edge of their clocks.
        let there = self.packet(8, hops + 1).ceil();
        let back = self.packet(0, hops + 1).ceil();
        Some(there + service + back)
    }
}

/// Hops between two routers of a mesh.
pub fn hops(columns: u16, from: u16, to: u16) -> u32 {
    let columns = columns.max(1);
    let apart = |a: u16, b: u16| u32::from(a.abs_diff(b));
    apart(from / columns, to / columns) + apart(from % columns, to % columns)
}

/// Which part of the accesses of a chain over `bytes`, each line once a round, hits in a cache. With an order of use, all lines of a set stay or
/// none does. With a random one, a line stays while the other accesses of a round that miss choose other ways:
/// `h = (1 - 1/ways) ^ ((lines - 1) (1 - h))` for `lines` of a set.
fn hits(cache: &Cache, bytes: u64) -> f64 {
    let ways = f64::from(cache.ways);
    let lines = bytes as f64 / (cache.sets() * u64::from(cache.line)) as f64;
    if lines <= ways {
        return 1.0;
    }
    match cache.replacement {
        Replacement::Random | Replacement::RandomAny => {
            // The equation has a solution below 1 if there are more lines than ways; from 0 the steps lead to it.
            let mut h = 0.0f64;
            for _ in 0..10_000 {
                h = (1.0 - 1.0 / ways).powf((lines - 1.0) * (1.0 - h));
            }
            h
        }
        _ => 0.0,
    }
}
