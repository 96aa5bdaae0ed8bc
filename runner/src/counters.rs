//! The machine's counters under the names of a result.
//!
//! What it deliberately does not know: which of them matter.

use bulkhead_machine::device::network::CardCounters;
use bulkhead_machine::ledger::Level;
use bulkhead_machine::statistics::{HartReport, MemoryReport, Statistics};
use bulkhead_report::result::Counter;

/// Counters of a processing tile: hart, then caches over all owners.
pub fn of_tile(statistics: &Statistics, hart: &HartReport) -> Vec<Counter> {
    let c = &hart.counters;
    let cycle = hart.cycle.max(1);
    let mut all = vec![
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
    ];
    for (level, name) in [(Level::L1i, "l1i"), (Level::L1d, "l1d"), (Level::L2, "l2")] {
        let here = statistics
            .caches
            .iter()
            .filter(|cache| cache.owner.tile == hart.tile && cache.level == level);
        let (mut hits, mut misses, mut by_others, mut write_backs) = (0, 0, 0, 0);
        for cache in here {
            hits += cache.counters.hits;
            misses += cache.counters.misses;
            by_others += cache.counters.misses_by_others;
            write_backs += cache.counters.write_backs;
        }
        // A hart does not ask its first level again for the line that it used last (see `machine::cache`), so what hits
        // there follows from its own counts; fetches are counted in lines, and only their misses mean something.
        let hits = match level {
            Level::L1i => None,
            Level::L1d => Some((c.loads + c.stores).saturating_sub(misses)),
            Level::L2 => Some(hits),
        };
        if hits.unwrap_or(0) + misses > 0 {
            if let Some(hits) = hits {
                all.push(counter(format!("{name}.hits"), hits));
            }
            all.push(counter(format!("{name}.misses"), misses));
            all.push(counter(format!("{name}.misses by others"), by_others));
            all.push(counter(format!("{name}.write-backs"), write_backs));
        }
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

/// A counter as it is in a result.
fn counter(name: impl Into<String>, value: u64) -> Counter {
    Counter {
        name: name.into(),
        value,
    }
}
