//! The memory path seen through both pipelines: how long a load waits, by the size of the working set, for dependent and for independent
//! loads.
//!
//! A chain of loads cannot overlap, so both pipelines see the same latency, up to a few cycles. Independent loads that miss overlap out of
//! order as far as the cache has miss registers.

use crate::common::*;
use bulkhead_abi::memory_map::MEMORY_BASE;
use bulkhead_machine::config::{PlatformConfig, PlatformKind};
use bulkhead_machine::hart::IntervalConfig;
use bulkhead_machine::machine::{Machine, Outcome, RunLimit};

const DATA: u64 = 0x10_0000;
const LOADS: u64 = 512;

fn chip(interval: Option<IntervalConfig>, misses: u32) -> PlatformConfig {
    let mut config = platform(PlatformKind::Bare, 1);
    let tile = &mut config.tiles[0];
    tile.hart.interval = interval;
    tile.hart.load_buffer = 16;
    tile.l1d.as_mut().unwrap().mshrs = misses;
    tile.l2.as_mut().unwrap().mshrs = 2 * misses;
    config
}

const OUT_OF_ORDER: IntervalConfig = IntervalConfig {
    width: 4,
    window: 128,
    load_queue: 32,
    store_queue: 16,
    alus: 3,
    memory_ports: 2,
    float_units: 2,
};

/// Half-cycles per load of a walk over lines of `size` bytes, after one warm-up round. `chain`: each load gives the next address;
/// otherwise each value is used at once, and the addresses are computed.
fn walk(config: &PlatformConfig, size: u64, chain: bool) -> u64 {
    let lines = size / 64;
    let time = |loads: u64| {
        let mut p = Program::default();
        let start = MEMORY_BASE + DATA;
        p.li(S0, start).li(S1, start).addi(S2, ZERO, 0);
        p.li(T1, lines + loads).li(T2, 64 * 37).li(A0, size - 1);
        let round = p.here();
        match chain {
            true => p.ld(S0, S0, 0),
            false => p.ld(A1, S0, 0).add(S3, S3, A1).addi(S2, S2, 0),
        };
        if !chain {
            // The next line: 37 lines further, within the working set.
            p.add(T0, T0, T2).and(T0, T0, A0).add(S0, S1, T0);
        }
        p.addi(T1, T1, -1).branch(1, T1, ZERO, round).word(WFI);
        let mut machine = Machine::new(config).unwrap();
        for line in 0..lines {
            let next = start + (line + 37) % lines * 64;
            let at = DATA + line * 64;
            machine
                .load_memory(MEMORY, at, &next.to_le_bytes())
                .unwrap();
        }
        p.start_at(&mut machine, 0, 0);
        let end = machine.run(RunLimit { ticks: 50_000_000 }, None);
        assert!(matches!(end, Outcome::Idle { .. }), "{end:?}");
        machine.hart(0).unwrap().time()
    };
    (time(2 * LOADS) - time(LOADS)) / LOADS
}

#[test]
fn both_pipelines_see_the_same_latency() {
    let (in_order, out_of_order) = (chip(None, 8), chip(Some(OUT_OF_ORDER), 8));
    for size in [4 << 10, 32 << 10, 1 << 20] {
        let (one, other) = (walk(&in_order, size, true), walk(&out_of_order, size, true));
        println!("chain of {size} bytes: {one} in order, {other} out of order");
        assert!(one.abs_diff(other) <= 8, "{size}: {one}, {other}");
    }
}

#[test]
fn independent_misses_overlap_as_far_as_there_are_registers() {
    let size = 1 << 20;
    let one = walk(&chip(None, 8), size, false);
    let single = walk(&chip(Some(OUT_OF_ORDER), 1), size, false);
    assert!(single.abs_diff(one) <= 20, "{one} in order, {single}");
    for misses in [2, 4, 8] {
        let other = walk(&chip(Some(OUT_OF_ORDER), misses), size, false);
        println!("independent, {misses} registers: {one} in order, {other} out of order");
        // A miss of each register at a time; banks and the link are shared by more and more of them.
        let due = single / u64::from(misses);
        assert!(
            (due..=due + due / 8).contains(&other),
            "{misses}: {single}, {other}"
        );
    }
}

/// A marker records the value that its register gets, also if a load that misses has not brought it yet.
#[test]
fn a_marker_has_the_value_that_a_load_brings() {
    let single = |interval| chip(interval, 4);
    let clustered = |interval| {
        let mut config = cluster(2);
        config.tiles[0].hart.interval = interval;
        config.tiles[0].hart.load_buffer = 16;
        config
    };
    for interval in [None, Some(OUT_OF_ORDER)] {
        for config in [single(interval), clustered(interval)] {
            let mut p = Program::default();
            p.li(S0, MEMORY_BASE + DATA).addi(T1, ZERO, 1);
            p.ld(T1, S0, 0).marker(T1, 0x100);
            p.ld(T1, S0, 64).marker(T1, 0x101).word(WFI);
            let mut machine = Machine::new(&config).unwrap();
            for (line, value) in [(0, 77u64), (1, 78)] {
                let bytes = value.to_le_bytes();
                machine
                    .load_memory(MEMORY, DATA + 64 * line, &bytes)
                    .unwrap();
            }
            start_hart(&mut machine, (0, 0), &p, 0x1_0000);
            let end = machine.run(RunLimit { ticks: 1_000_000 }, None);
            assert!(matches!(end, Outcome::Idle { .. }), "{end:?}");
            let markers = machine.markers();
            let values: Vec<u64> = markers.iter().map(|marker| marker.value).collect();
            assert_eq!(values, [77, 78], "{interval:?}");
        }
    }
}
