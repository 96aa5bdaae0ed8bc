//! Tiles that write to one memory, with each kind of controller.
//!
//! Chips without data transfer units: every tile repeatedly writes its own part of the memory, in lines that evict each other
//! from its caches. The tests check the final contents of memory, which tile waited for which, and how long everything took.

use crate::common::*;
use bulkhead_abi::memory_map::MEMORY_BASE;
use bulkhead_machine::config::PlatformKind;
use bulkhead_machine::ledger::Resource;
use bulkhead_machine::machine::{Machine, Outcome, RunLimit};
use bulkhead_machine::types::{Tick, TileId};
use std::collections::BTreeSet;

const TILES: TileId = 4;
/// Bytes that a tile writes: twice its second level.
const PART: u64 = 128 << 10;
const LINE: u64 = 64;

fn part(tile: TileId) -> u64 {
    0x10_0000 * (u64::from(tile) + 1)
}

/// Adds 1 to the first word of each line of the tile's part, twice, and flushes every line at the end.
fn writer(tile: TileId) -> Program {
    let mut p = Program::default();
    let each = |p: &mut Program, work: &dyn Fn(&mut Program)| {
        p.li(S0, MEMORY_BASE + part(tile))
            .li(S1, MEMORY_BASE + part(tile) + PART);
        let line = p.here();
        work(p);
        p.addi(S0, S0, LINE as i32).branch(1, S0, S1, line);
    };
    for _ in 0..2 {
        each(&mut p, &|p| {
            p.ld(T0, S0, 0).addi(T0, T0, 1).sd(T0, S0, 0);
        });
    }
    each(&mut p, &|p| {
        p.cbo(CBO_FLUSH, S0);
    });
    p.word(FENCE).word(WFI).spin();
    p
}

/// Runs all writers to their end. Returns the end time.
fn written(controller: usize) -> (Machine, Tick) {
    let mut config = platform(PlatformKind::Bare, TILES);
    other_controller(&mut config, controller);
    let mut machine = Machine::new(&config).expect("valid");
    for tile in 0..TILES {
        writer(tile).start_at(&mut machine, tile, u64::from(tile) * 0x1000);
    }
    let limit = RunLimit { ticks: 40_000_000 };
    let Outcome::Idle { at } = machine.run(limit, None) else {
        panic!("the writers do not end");
    };
    (machine, at)
}

#[test]
fn what_was_written_is_in_memory_and_every_wait_is_somebodys() {
    let mut ends = Vec::new();
    for controller in 0..CONTROLLERS {
        let (machine, end) = written(controller);
        let memory = machine.memory(MEMORY).expect("it exists");
        for tile in 0..TILES {
            for line in (part(tile)..part(tile) + PART).step_by(LINE as usize) {
                let word = &memory[line as usize..line as usize + 8];
                let word = u64::from_le_bytes(word.try_into().expect("eight bytes"));
                assert_eq!(word, 2, "tile {tile}, line {line:#x}, {controller}");
            }
        }
        // Except for refreshes, the culprit is an existing tile other than the victim.
        let mut resources = BTreeSet::new();
        for booking in machine.ledger().bookings() {
            let refresh = booking.resource == Resource::Refresh(MEMORY);
            assert!(booking.victim.tile < TILES && booking.culprit.tile < TILES);
            assert!(!refresh || booking.victim == booking.culprit);
            resources.insert(booking.resource.to_string());
        }
        let seen = |name: &str| resources.iter().any(|resource| resource.contains(name));
        assert!(seen("queue"), "{resources:?}");
        assert_eq!(seen("open row"), controller != 3, "{resources:?}");
        assert!(seen("refresh"));
        ends.push(end);
    }
    let [in_order, first_ready, late_writes, slots] = ends[..] else {
        panic!("four runs");
    };
    println!("{in_order} {first_ready} {late_writes} {slots}");
    // Half the accesses are writes, so the bus keeps turning around unless writes come in drains; slots close every row.
    assert!(late_writes < first_ready && first_ready <= in_order && in_order < slots);
}
