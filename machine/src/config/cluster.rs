//! A cluster: harts whose first levels are kept coherent by a shared second level.
//!
//! What it deliberately does not know: the protocol.

use super::{
    CacheConfig, ConfigError, MemoryConfig, PlatformConfig, PlatformKind, TileConfig,
    validate_cache,
};
use crate::hart::{HartConfig, QosRange};
use crate::types::{Tick, TileId};

/// Maximum number of harts of a cluster.
pub const CLUSTER_HARTS: usize = 8;

/// The harts of a tile, in addition to the tile's own parameters: each has first levels of its own, and all share the tile's second level.
/// Latencies are in cycles of the second level.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ClusterConfig {
    /// The number of the hart (`mhartid`, below 4096) at each port of the second level, 1 to 8. Ties are decided by port, never by number.
    pub harts: Vec<u16>,
    /// From a first level to the second level, at least 1.
    pub up: u64,
    /// From the second level to a first level, at least 1. What a hit costs in between is the second level's latency.
    pub down: u64,
    /// Banks of the second level, by the number of the line: a power of two, at most 64.
    pub banks: u32,
    /// How long a request occupies its bank.
    pub occupancy: u64,
    /// Cycles of a hart for which a reservation holds its line against others, from its load-reserved on; at least 1.
    pub hold: u64,
    /// Whether the second level's miss registers are divided equally among the harts.
    pub divided_registers: bool,
    /// For each port the ways of the second level that its requests may fill when the machine starts: bit i is way i. Ports without an
    /// entry, and those whose entry is 0, may fill all. Programs change them ([`bulkhead_abi::memory_map::LOCKDOWN_BASE`]).
    pub fills: Vec<u64>,
    /// The second level has a capacity controller ([`bulkhead_abi::memory_map::CAPACITY_BASE`]) instead of lockdown registers. A port with
    /// an entry in `fills` that is not 0 then has [`ClusterConfig::rcid_of`] as its only legal RCID, whose limit is that entry.
    pub capacity: Option<CapacityConfig>,
    /// Its caches are coherent with those of all other clusters that set this.
    pub coherent: bool,
    /// For each port a core of another kind than the tile's. Ports without an entry, and those with `None`, have the tile's.
    pub cores: Vec<Option<CoreConfig>>,
}

/// A capacity controller at the second level of a cluster, and what `srmcfg` of its harts may hold (Ssqosid, CBQRI).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CapacityConfig {
    /// RCIDs, numbered from 0: a power of two, at most 256.
    pub rcids: u16,
    /// MCIDs, numbered from 0: a power of two, at most 256.
    pub mcids: u16,
    /// Bit i: the hart at port i reaches the controller's registers.
    pub programmers: u8,
}

/// A hart with its first levels, of another kind than the tile's.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CoreConfig {
    /// The hart. Its lines are as long as those of the second level.
    pub hart: HartConfig,
    /// First-level instruction cache.
    pub l1i: CacheConfig,
    /// First-level data cache.
    pub l1d: CacheConfig,
}

impl ClusterConfig {
    /// A cluster of this many harts, numbered from 0, with the parameters of [`ClusterConfig::default`].
    pub fn of(harts: u16) -> Self {
        Self {
            harts: (0..harts).collect(),
            ..Self::default()
        }
    }
}

impl ClusterConfig {
    /// The only legal RCID of a port that has ways of its own when the machine starts.
    pub fn rcid_of(port: usize) -> u16 {
        port as u16 + 1
    }

    /// The values that `srmcfg` of the hart at a port may hold. `None`: there is no such register.
    pub fn qos(&self, port: usize) -> Option<QosRange> {
        let capacity = self.capacity.as_ref()?;
        let own = self.fills.get(port).is_some_and(|fills| *fills != 0);
        Some(QosRange {
            rcids: capacity.rcids,
            mcids: capacity.mcids,
            only: own.then(|| Self::rcid_of(port)),
        })
    }
}

/// Two harts; two cycles up and two down; two banks, each occupied for two cycles; reservations as Rocket has them.
impl Default for ClusterConfig {
    fn default() -> Self {
        Self {
            harts: vec![0, 1],
            up: 2,
            down: 2,
            banks: 2,
            occupancy: 2,
            hold: 80,
            divided_registers: false,
            fills: Vec::new(),
            capacity: None,
            coherent: false,
            cores: Vec::new(),
        }
    }
}

impl PlatformConfig {
    /// The tiles with a cluster.
    pub fn clusters(&self) -> impl Iterator<Item = (&TileConfig, &ClusterConfig)> {
        let all = self.tiles.iter();
        all.filter_map(|tile| Some((tile, tile.cluster.as_ref()?)))
    }

    /// The numbers of the tiles whose clusters are coherent with each other.
    pub fn coherent(&self) -> Vec<TileId> {
        let coherent = self.clusters().filter(|(_, cluster)| cluster.coherent);
        coherent.map(|(tile, _)| tile.id).collect()
    }

    /// Bytes of a line of the coherent clusters; 0 if there are none.
    pub fn coherent_line(&self) -> u32 {
        let mut coherent = self.clusters().filter(|(_, cluster)| cluster.coherent);
        let l2 = coherent.find_map(|(tile, _)| tile.l2.as_ref());
        l2.map_or(0, |l2| l2.line)
    }

    /// Whether a DMA engine or a peripheral is coherent with them.
    fn has_coherent_device(&self) -> bool {
        let peripherals = self.peripherals.iter().map(|one| one.coherent);
        let mut all = self
            .engines
            .iter()
            .map(|one| one.coherent)
            .chain(peripherals);
        all.any(|coherent| coherent)
    }

    /// Checks what the machine relies on for clusters and the tiles beside them.
    pub(super) fn validate_clusters(&self) -> Result<(), ConfigError> {
        let fail = |tile: &TileConfig, what: &str| {
            Err(ConfigError {
                platform: self.name.clone(),
                what: format!("tile {}: {what}", tile.id),
            })
        };
        for (tile, cluster) in self.clusters() {
            if self.kind != PlatformKind::Bare {
                return fail(tile, "cluster: needs a bare platform");
            }
            if let Err(what) = validate_cluster(tile, cluster) {
                return fail(tile, &format!("cluster: {what}"));
            }
        }
        let coherent = self.clusters().filter(|(_, cluster)| cluster.coherent);
        let lines = coherent.filter_map(|(tile, _)| Some((tile, tile.l2.as_ref()?.line)));
        let lines: Vec<_> = lines.collect();
        let device = self.has_coherent_device();
        if let [(tile, _)] = lines[..]
            && !device
        {
            return fail(
                tile,
                "cluster: no other cluster or device is coherent with it",
            );
        }
        if let Some((tile, _)) = lines.iter().find(|(_, line)| *line != lines[0].1) {
            return fail(tile, "cluster: coherent clusters have lines of one length");
        }
        let two_names =
            |memory: &&MemoryConfig| memory.dropped != 0 || !memory.second_port_of.is_empty();
        if let (Some((tile, _)), Some(memory)) =
            (lines.first(), self.memories.iter().find(two_names))
        {
            let what = format!(
                "cluster: coherent, but memory {} gives a byte two addresses, which are two lines",
                memory.id
            );
            return fail(tile, &what);
        }
        let capacity = self
            .clusters()
            .filter_map(|(_, cluster)| cluster.capacity.as_ref());
        for one in capacity {
            let mut memories = self.memories.iter();
            let fewer = |memory: &&MemoryConfig| {
                let bandwidth = memory.dram.bandwidth.as_ref();
                bandwidth.is_some_and(|b| b.rcids < one.rcids || b.mcids < one.mcids)
            };
            if let Some(memory) = memories.find(fewer) {
                return Err(ConfigError {
                    platform: self.name.clone(),
                    what: format!("memory {}: fewer identifiers than a cluster has", memory.id),
                });
            }
        }
        // Chips with a cluster have no cables: when a part ends the run, the others run up to the same moment.
        let cards = self.tiles.iter().find(|tile| tile.network_card.is_some());
        match (self.clusters().next(), cards) {
            (Some(_), Some(tile)) => fail(tile, "a chip with a cluster has no network cards"),
            _ => Ok(()),
        }
    }
}

fn validate_cluster(tile: &TileConfig, cluster: &ClusterConfig) -> Result<(), String> {
    let fail = |what: &str| Err(what.to_owned());
    let other = tile.dtu.is_some() || tile.second_hart || tile.accelerator.is_some();
    if other || tile.network_card.is_some() || tile.local_memory.is_some() {
        return fail("has harts and caches, and no other unit, card or memory");
    }
    let Some(l2) = &tile.l2 else {
        return fail("needs an l2 cache, which the harts share");
    };
    if l2.cycle == 0 || l2.latency == 0 {
        return fail("the l2 cache has a latency of at least 1");
    }
    if !(1..=CLUSTER_HARTS).contains(&cluster.harts.len()) {
        return fail("1 to 8 harts are possible");
    }
    let mut numbers = cluster.harts.clone();
    numbers.sort_unstable();
    numbers.dedup();
    if numbers.len() != cluster.harts.len() || numbers.last().is_some_and(|n| *n >= 4096) {
        return fail("the numbers of the harts differ and are below 4096");
    }
    if cluster.up == 0 || cluster.down == 0 || cluster.hold == 0 {
        return fail("up, down and hold must be at least 1");
    }
    if !cluster.banks.is_power_of_two() || cluster.banks > 64 {
        return fail("banks must be a power of two, at most 64");
    }
    if cluster.divided_registers && !(l2.mshrs as usize).is_multiple_of(cluster.harts.len()) {
        return fail("the l2 cache's miss registers cannot be divided equally among the harts");
    }
    let ways = u64::MAX >> (64 - l2.ways.clamp(1, 64));
    if cluster.fills.len() > cluster.harts.len() {
        return fail("ways are given to more harts than there are");
    }
    if cluster.fills.iter().any(|fills| fills & !ways != 0) {
        return fail("a hart may fill ways that the l2 cache has only");
    }
    if let Some(capacity) = &cluster.capacity {
        let legal = |count: u16| count.is_power_of_two() && count <= 256;
        if !legal(capacity.rcids) || !legal(capacity.mcids) {
            return fail("RCIDs and MCIDs must be powers of two, at most 256");
        }
        let own = cluster.fills.iter().rposition(|fills| *fills != 0);
        if own.is_some_and(|port| ClusterConfig::rcid_of(port) >= capacity.rcids) {
            return fail(
                "a hart with ways of its own has the RCID behind its port's number, which is too large",
            );
        }
    }
    if cluster.cores.len() > cluster.harts.len() {
        return fail("more cores than harts");
    }
    for (port, core) in cluster.cores.iter().enumerate() {
        let Some(core) = core else { continue };
        let checked = core.hart.check();
        checked.map_err(|what| format!("hart {port}: {what}"))?;
        for (name, cache) in [("l1i", &core.l1i), ("l1d", &core.l1d)] {
            validate_cache(cache).map_err(|what| format!("hart {port}: {name}: {what}"))?;
            if cache.line != l2.line || core.hart.line != l2.line {
                return Err(format!(
                    "hart {port}: {name}: lines of {} bytes, but the l2 cache's have {}",
                    cache.line, l2.line
                ));
            }
        }
    }
    let all = (0..cluster.harts.len()).filter_map(|port| cluster.core(tile, port));
    if all.into_iter().any(|core| core.hart.hardware_ad) {
        return fail(
            "the walker must leave accessed and dirty bits to traps (it reads shared lines)",
        );
    }
    Ok(())
}

/// The core at a port of a cluster.
#[derive(Clone, Copy, Debug)]
pub struct Core<'a> {
    /// The hart.
    pub hart: &'a HartConfig,
    /// First-level instruction cache.
    pub l1i: &'a CacheConfig,
    /// First-level data cache.
    pub l1d: &'a CacheConfig,
}

impl ClusterConfig {
    /// The core at a port of this cluster, which is `tile`'s. `None`: the tile has no first levels.
    pub fn core<'a>(&'a self, tile: &'a TileConfig, port: usize) -> Option<Core<'a>> {
        if let Some(Some(core)) = self.cores.get(port) {
            return Some(Core {
                hart: &core.hart,
                l1i: &core.l1i,
                l1d: &core.l1d,
            });
        }
        Some(Core {
            hart: &tile.hart,
            l1i: tile.l1i.as_ref()?,
            l1d: tile.l1d.as_ref()?,
        })
    }
}

impl TileConfig {
    /// Ticks of the second level's latencies; 0 without one.
    pub(crate) fn second_level(&self, cycles: u64) -> Tick {
        self.l2.as_ref().map_or(0, |l2| cycles * l2.cycle)
    }
}
