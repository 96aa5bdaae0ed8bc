//! The machine's counters under the names of a result.
//!
//! What it deliberately does not know: which of them matter.

use crate::names::Names;
use crate::observed::Observed;
use bulkhead_machine::cache::CacheStatistics;
use bulkhead_machine::device::network::CardCounters;
use bulkhead_machine::hart::statistics::HartStatistics;
use bulkhead_machine::ledger::Level;
use bulkhead_machine::statistics::{HartReport, MemoryReport, Statistics};
use bulkhead_model::System;
use bulkhead_report::result::{Counter, TileResult};

/// Every processing tile, then every memory tile. The harts of a cluster count as one tile.
pub fn of_tiles(system: &System, names: &Names, seen: &Observed) -> Vec<TileResult> {
    let statistics = &seen.statistics;
    let is_cluster = |tile: u16| {
        let found = system.platform.tile(tile);
        found.is_some_and(|tile| tile.cluster.is_some())
    };
    let harts = &statistics.harts;
    let harts = harts.chunk_by(|a, b| a.tile == b.tile && is_cluster(a.tile));
    let tiles = harts.filter_map(|harts| {
        let all: Vec<_> = harts.iter().collect();
        let tile = all.first()?.tile;
        let counters = match all[..] {
            [hart] => of_tile(statistics, hart),
            _ => of_cluster(statistics, &all),
        };
        let card = of_card(&seen.network_cards, tile);
        Some(TileResult {
            tile,
            applications: names.on_tile(tile),
            instructions: all.iter().map(|hart| hart.counters.instructions).sum(),
            counters: counters.into_iter().chain(card).collect(),
        })
    });
    let memories = statistics.memories.iter().map(|memory| TileResult {
        tile: memory.tile,
        applications: vec!["memory".to_owned()],
        instructions: 0,
        counters: of_memory(memory),
    });
    tiles.chain(memories).collect()
}

/// Counters of a processing tile with one hart, or of one of its harts with the caches that they share: first the hart, then caches summed
/// over all owners.
pub fn of_tile(statistics: &Statistics, hart: &HartReport) -> Vec<Counter> {
    let mut all = of_hart(statistics, hart);
    for level in [Level::L1i, Level::L1d, Level::L2] {
        let here = of_level(statistics, hart.tile, level, None);
        all.extend(of_cache(level, here, &hart.counters));
    }
    all
}

/// Counters of a cluster: each hart (`hart 1 loads`) with its first levels, and the shared second level. `harts`: by port.
pub fn of_cluster(statistics: &Statistics, harts: &[&HartReport]) -> Vec<Counter> {
    let mut all = Vec::new();
    for (port, hart) in (0u16..).zip(harts) {
        let name = |counter: Counter| Counter {
            name: format!("hart {port} {}", counter.name),
            ..counter
        };
        let instructions = counter("instructions", hart.counters.instructions);
        let own = std::iter::once(instructions).chain(of_hart(statistics, hart));
        all.extend(own.map(name));
        for level in [Level::L1i, Level::L1d] {
            let own = of_level(statistics, hart.tile, level, Some(port));
            all.extend(of_cache(level, own, &hart.counters).into_iter().map(name));
        }
    }
    if let [first, ..] = harts {
        let shared = of_level(statistics, first.tile, Level::L2, None);
        all.extend(of_cache(Level::L2, shared, &first.counters));
    }
    all
}

fn of_hart(statistics: &Statistics, hart: &HartReport) -> Vec<Counter> {
    let c = &hart.counters;
    let cycle = hart.cycle.max(1);
    vec![
        counter("cycles", statistics.ticks / cycle),
        counter("branches", c.branches),
        counter("mispredictions", c.mispredictions),
        counter("loads", c.loads),
        counter("stores", c.stores),
        counter("device accesses", c.device_accesses),
        counter("instruction TLB misses", c.fetch_tlb_misses),
        counter("data TLB misses", c.data_tlb_misses),
        counter("page walks", c.walks),
        counter("traps", c.traps),
        counter("interrupts", c.interrupts),
        counter("cycles waiting for instructions", c.stall_fetch / cycle),
        counter("cycles waiting for loads", c.stall_load / cycle),
        counter("cycles waiting for stores", c.stall_store / cycle),
        counter("cycles of address translation", c.stall_translation / cycle),
        counter("cycles asleep", c.slept / cycle),
    ]
}

/// The caches of one level of a tile, summed over all owners or for one activity (a cluster's port).
fn of_level(
    statistics: &Statistics,
    tile: u16,
    level: Level,
    activity: Option<u16>,
) -> CacheStatistics {
    let mut sum = CacheStatistics::default();
    for cache in &statistics.caches {
        let own = activity.is_none_or(|activity| cache.owner.activity == activity);
        if cache.owner.tile == tile && cache.level == level && own {
            sum.hits += cache.counters.hits;
            sum.misses += cache.counters.misses;
            sum.misses_by_others += cache.counters.misses_by_others;
            sum.write_backs += cache.counters.write_backs;
        }
    }
    sum
}

fn of_cache(level: Level, cache: CacheStatistics, hart: &HartStatistics) -> Vec<Counter> {
    let name = match level {
        Level::L1i => "l1i",
        Level::L1d => "l1d",
        Level::L2 => "l2",
    };
    // A hart does not ask its first level again for the line that it used last (see `machine::cache`), so hits there follow from its own
    // counts. Fetches are counted in lines, and only their misses are meaningful. A unit that misses there has no such counts, so there
    // can be more misses than accesses of the hart.
    let hits = match level {
        Level::L1i => None,
        Level::L1d => Some((hart.loads + hart.stores).saturating_sub(cache.misses)),
        Level::L2 => Some(cache.hits),
    };
    let mut all = Vec::new();
    if hits.unwrap_or(0) + cache.misses > 0 {
        if let Some(hits) = hits {
            all.push(counter(format!("{name}.hits"), hits));
        }
        all.push(counter(format!("{name}.misses"), cache.misses));
        all.push(counter(
            format!("{name}.misses by others"),
            cache.misses_by_others,
        ));
        all.push(counter(format!("{name}.write-backs"), cache.write_backs));
    }
    all
}

/// Counters of a tile's network card, if it has one that did something.
pub fn of_card(cards: &[(u16, CardCounters)], tile: u16) -> Vec<Counter> {
    let card = cards.iter().find(|(of, _)| *of == tile).map(|(_, c)| *c);
    let Some(c) = card.filter(|c| *c != CardCounters::default()) else {
        return Vec::new();
    };
    vec![
        counter("frames sent", c.sent),
        counter("bytes sent", c.sent_bytes),
        counter("frames received", c.received),
        counter("bytes received", c.received_bytes),
        counter("frames dropped", c.dropped),
        counter("frames malformed", c.malformed),
        counter("mistakes of the driver", c.broken),
    ]
}

/// Counters of a memory tile.
pub fn of_memory(memory: &MemoryReport) -> Vec<Counter> {
    let c = &memory.counters;
    vec![
        counter("reads", c.reads),
        counter("writes", c.writes),
        counter("bytes read", c.read_bytes),
        counter("bytes written", c.written_bytes),
        counter("row hits", c.row_hits),
        counter("row misses", c.row_misses),
        counter("row conflicts", c.row_conflicts),
        counter("refreshes", c.refreshes),
    ]
}

/// A counter as it appears in a result.
fn counter(name: impl Into<String>, value: u64) -> Counter {
    Counter {
        name: name.into(),
        value,
    }
}
