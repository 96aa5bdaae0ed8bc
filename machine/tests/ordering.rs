//! In which order tiles that share memory see each other's accesses.
//!
//! Chips without data transfer units: every tile has the whole memory, through caches that know nothing of those of other tiles.

mod common;

use bulkhead_abi::memory_map::MEMORY_BASE;
use bulkhead_machine::machine::{Machine, RunLimit};
use bulkhead_machine::types::{Tick, TileId};
use common::*;

/// The flag, in a line of its own.
const FLAG: u64 = MEMORY_BASE + 0x8_0000;
const BEFORE: u32 = 0x100;
const SEEN: u32 = 0x101;
const LIMIT: RunLimit = RunLimit { ticks: 200_000 };

/// Stores 1 to the flag after so many rounds of a loop.
fn writer(rounds: i32) -> Program {
    let mut p = Program::default();
    p.li(S0, FLAG).addi(S1, ZERO, 1).sd(ZERO, S0, 0);
    p.addi(T2, ZERO, rounds);
    let wait = p.here();
    p.addi(T2, T2, -1).branch(1, T2, ZERO, wait);
    p.marker(ZERO, BEFORE).sd(S1, S0, 0).spin();
    p
}

/// Looks at the flag until it is set.
fn reader() -> Program {
    let mut p = Program::default();
    p.li(S0, FLAG);
    let look = p.here();
    p.ld(T0, S0, 0).branch(0, T0, ZERO, look);
    p.marker(T0, SEEN).spin();
    p
}

/// Uses nothing but its own first-level caches.
fn spinner() -> Program {
    let mut p = Program::default();
    p.spin();
    p
}

fn marked(machine: &Machine, tile: TileId, kind: u32) -> Tick {
    let markers = machine.markers();
    let mut own = markers
        .iter()
        .filter(|m| m.tile == tile && u32::from(m.kind) == kind);
    own.next().expect("the program came there").tick
}

/// Ticks from the moment before the store to the moment at which the reader has seen it.
fn seen_after(rounds: i32, writing: TileId, reading: TileId, busy: Option<TileId>) -> i64 {
    let mut machine = bare_chip(3);
    writer(rounds).start_at(&mut machine, writing, 0x1_0000);
    reader().start_at(&mut machine, reading, 0x2_0000);
    if let Some(busy) = busy {
        spinner().start_at(&mut machine, busy, 0x3_0000);
    }
    machine.run(LIMIT, None);
    marked(&machine, reading, SEEN) as i64 - marked(&machine, writing, BEFORE) as i64
}

/// What is wrong while first-level hits use one flat memory (decision record 0003): a reader sees what a writer has not stored
/// yet, and when it sees it depends on a tile that shares nothing.
#[test]
fn flat_memory_is_seen_before_its_time() {
    let seen = |busy| (1000..1020).map(move |rounds| seen_after(rounds, 0, 1, busy));
    assert!(seen(None).min() < Some(0));
    assert!(!seen(None).eq(seen(Some(2))));
}
