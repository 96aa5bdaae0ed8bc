//! Visiting parts in the other order, and calling tiles otherwise, change nothing where tiles reach each other's coupled memories.

use crate::cluster_tile::tile_tests::common::*;
use crate::config::{LocalMemoryConfig, PlatformConfig};
use crate::machine::{Machine, Outcome, RunLimit};
use crate::types::{Tick, TileId};
use bulkhead_abi::memory_map::{MEMORY_BASE, TCM_BASE, TCM_WINDOW};

const UNTIL: RunLimit = RunLimit { ticks: 60_000 };

fn chip(ports: u32) -> PlatformConfig {
    let mut config = clusters(&[0, 2, 0, 1]);
    for tile in config.tiles.iter_mut().filter(|t| t.cluster.is_none()) {
        tile.tcm = vec![LocalMemoryConfig {
            size: 0x4000,
            cycle: 2,
            banks: 1,
            ports,
            latency: 3,
            ..LocalMemoryConfig::default()
        }];
    }
    config
}

/// Adds to words of both memories, and to memory, with a stride of its own.
fn traffic(seed: u64) -> Program {
    let mut p = Program::default();
    p.li(S0, TCM_BASE + 0x1000 + (seed % 2) * TCM_WINDOW);
    p.li(S1, 8 * (2 * seed + 1))
        .li(S2, 0x1F8)
        .li(A1, MEMORY_BASE + 0x40_0000);
    p.addi(S3, ZERO, 0).addi(T2, ZERO, 1);
    let again = p.here();
    p.add(T0, S0, S3)
        .amo(0, 0, T1, T0, T2)
        .ld(T1, T0, 8)
        .sd(T1, T0, 16);
    p.add(T0, A1, S3).sd(T1, T0, 0);
    p.add(S3, S3, S1).and(S3, S3, S2).jump(again);
    p
}

fn run(config: &PlatformConfig, names: [TileId; 4], backwards: bool) -> Machine {
    let mut machine = Machine::new(config).expect("valid");
    machine.visit_harts_backwards(backwards);
    let harts = [(0, 0), (1, 0), (1, 1), (2, 0), (3, 0)];
    for (number, (tile, port)) in (0..).zip(harts) {
        let hart = (names[tile], port);
        start_hart(&mut machine, hart, &traffic(number), 0x1000 * (number + 1));
    }
    assert_eq!(machine.run(UNTIL, None), Outcome::Limit);
    machine
}

#[test]
fn the_order_in_which_the_host_visits_parts_changes_nothing() {
    for ports in [1, 2] {
        let config = chip(ports);
        let [forth, back] = [false, true].map(|way| run(&config, [0, 1, 2, 3], way));
        let remote: u64 = forth.local_memories().iter().map(|one| one.1.remote).sum();
        assert!(remote > 500, "{remote}");
        assert_eq!(forth.digest(), back.digest(), "{ports}");
    }
}

#[test]
fn the_numbers_of_tiles_change_no_tick() {
    let counted = |names: [TileId; 4]| {
        let mut config = chip(1);
        for (tile, name) in config.tiles.iter_mut().zip(names) {
            tile.id = name;
        }
        let machine = run(&config, names, false);
        let harts = machine.statistics().harts;
        let mut times: Vec<(usize, Tick, u64)> = harts
            .iter()
            .map(|hart| {
                let place = names.iter().position(|name| *name == hart.tile).unwrap();
                (place, hart.counters.stall_load, hart.counters.instructions)
            })
            .collect();
        times.sort_unstable();
        times
    };
    assert_eq!(counted([0, 1, 2, 3]), counted([7, 3, 9, 1]));
}

/// An interrupt of an engine goes to the controller of such a tile, and not to its memories.
#[test]
fn an_interrupt_is_no_request_for_the_memories() {
    let mut config = interrupts::interrupted_chip(&[0, 2], &[0, 1]);
    config.tiles[0].tcm = chip(1).tiles[0].tcm.clone();
    let mut machine = Machine::new(&config).expect("valid");
    let programs = interrupts::rounds(&[0, 2], 5, true);
    for (number, (hart, program)) in (1..).zip(&programs) {
        start_hart(&mut machine, *hart, program, 0x1_0000 * number);
    }
    let end = machine.run(RunLimit { ticks: 20_000_000 }, None);
    assert!(matches!(end, Outcome::Idle { .. }), "{end:?}");
}
