//! The order in which the host visits harts changes nothing; and what an access costs, in closed form.

use crate::config::dram::ControllerConfig;
use crate::config::{PlatformConfig, PlatformKind};
use crate::ledger::Resource;
use crate::machine::{Machine, Outcome, RunLimit};
use crate::types::{Tick, TileId};
use common::*;

#[path = "../../tests/common/mod.rs"]
pub(crate) mod common;

const DATA: u64 = bulkhead_abi::memory_map::MEMORY_BASE + 0x8_0000;
const LIMIT: RunLimit = RunLimit { ticks: 5_000_000 };

/// Harts that add to counters, in turns of different lengths, and print.
fn contending(port: usize) -> Program {
    let mut p = Program::default();
    p.li(S0, DATA)
        .li(S2, DATA + 4096)
        .li(S3, bulkhead_abi::memory_map::UART_BASE);
    p.addi(S1, ZERO, 60).addi(T2, ZERO, 65 + port as i32);
    let again = p.here();
    let retry = p.here();
    p.lr(T0, S0).addi(T0, T0, 1).sc(T1, S0, T0);
    p.branch(1, T1, ZERO, retry);
    p.amo(0, 0, T0, S2, S1)
        .sd(T0, S2, 64 + 8 * (port as u64 % 3));
    p.word(T2 << 20 | S3 << 15 | 0x23);
    for line in 0..port as u64 {
        p.ld(T0, S0, 64 * line + 64).sd(T0, S2, 128 + 64 * line);
    }
    p.addi(S1, S1, -1).branch(1, S1, ZERO, again).word(WFI);
    p
}

#[test]
fn the_order_in_which_the_host_visits_harts_changes_nothing() {
    for (harts, pipeline) in [2, 3, 8]
        .into_iter()
        .flat_map(|h| PIPELINES.map(|p| (h, p)))
    {
        let run = |backwards: bool| {
            let mut machine = Machine::new(&pipelined(cluster(harts), pipeline)).unwrap();
            machine.visit_harts_backwards(backwards);
            for port in 0..usize::from(harts) {
                start_port(
                    &mut machine,
                    port,
                    &contending(port),
                    0x1000 * (port as u64 + 1),
                );
            }
            let end = machine.run(LIMIT, None);
            assert!(matches!(end, Outcome::Idle { .. }), "{end:?}");
            (machine.digest(), machine.statistics())
        };
        assert_eq!(run(false), run(true), "{harts} harts, {pipeline:?}");
    }
}

#[test]
fn the_order_in_which_the_host_visits_coherent_clusters_changes_nothing() {
    let chips = [&[1, 1][..], &[2, 3], &[2, 0, 2, 1]];
    for (harts, pipeline) in chips.into_iter().flat_map(|h| PIPELINES.map(|p| (h, p))) {
        let run = |backwards: bool| {
            let mut machine = Machine::new(&pipelined(coherent(harts), pipeline)).unwrap();
            machine.visit_harts_backwards(backwards);
            let mut number = 0;
            for (tile, harts) in harts.iter().enumerate() {
                for port in 0..usize::from(*harts) {
                    number += 1;
                    let hart = (tile as TileId, port);
                    start_hart(
                        &mut machine,
                        hart,
                        &contending(number),
                        0x1000 * number as u64,
                    );
                }
            }
            let end = machine.run(LIMIT, None);
            assert!(matches!(end, Outcome::Idle { .. }), "{end:?}");
            (machine.digest(), machine.statistics())
        };
        assert_eq!(run(false), run(true), "{harts:?}, {pipeline:?}");
    }
}

const BEGIN: u32 = 0x100;
const END: u32 = 0x101;
/// The register with the address of the line.
const ADDRESS: u32 = S0;
/// A word that says that the other hart is ready, in a line of its own.
const READY: u64 = DATA - 64;
/// In a bank of the memory that nothing else uses.
const LINE: u64 = DATA + 5 * 8192;

/// Clocks without phases: everything but the harts and caches (two ticks) has two ticks a cycle, too; and no refresh.
fn in_phase(mut config: PlatformConfig) -> PlatformConfig {
    config.network.cycle = 2;
    let mut controller = ControllerConfig::ddr3(2);
    controller.timing.refresh_interval = 0;
    config.memories[0].dram = controller.into();
    config
}

/// Ticks from the issue of a load to that of the instruction after the one that needs its value, after `own`.
fn timed(own: impl Fn(&mut Program)) -> Program {
    let mut p = Program::default();
    // The first round is for the instruction cache, and uses another line.
    p.li(S2, READY).li(ADDRESS, DATA).addi(S1, ZERO, 2);
    let round = p.here();
    own(&mut p);
    let wait = p.here();
    p.ld(T0, S2, 0).branch(0, T0, ZERO, wait).word(FENCE);
    p.addi(T2, ZERO, 500);
    let rest = p.here();
    p.addi(T2, T2, -1).branch(1, T2, ZERO, rest);
    p.marker(ZERO, BEGIN)
        .ld(T1, ADDRESS, 0)
        .addi(T1, T1, 0)
        .marker(T1, END);
    p.li(ADDRESS, LINE)
        .addi(S1, S1, -1)
        .branch(1, S1, ZERO, round)
        .word(WFI);
    p
}

fn took(machine: &mut Machine) -> Tick {
    let end = machine.run(LIMIT, None);
    assert!(matches!(end, Outcome::Idle { .. }), "{end:?}");
    let markers = machine.markers();
    let at = |kind| {
        let found = markers.iter().rfind(|m| u32::from(m.kind) == kind);
        found.expect("the program comes there").tick
    };
    at(END) - at(BEGIN)
}

/// The cost of a load on hart 0 of a cluster, after `first` on hart 1 and `own` on hart 0.
fn cost(first: impl Fn(&mut Program), own: impl Fn(&mut Program)) -> Tick {
    let mut other = Program::default();
    other.li(ADDRESS, LINE);
    first(&mut other);
    other
        .word(FENCE)
        .li(S2, READY)
        .addi(S1, ZERO, 1)
        .sd(S1, S2, 0)
        .word(WFI);
    let mut machine = Machine::new(&in_phase(cluster(2))).unwrap();
    start_port(&mut machine, 0, &timed(own), 0x1000);
    start_port(&mut machine, 1, &other, 0x2000);
    took(&mut machine)
}

/// The same on a tile with the same caches for one hart.
fn cost_alone(own: impl Fn(&mut Program)) -> Tick {
    let mut machine = Machine::new(&in_phase(platform(PlatformKind::Bare, 1))).unwrap();
    machine.load_tile(0, READY, &[1]).unwrap();
    timed(own).start_at(&mut machine, 0, 0x1000);
    took(&mut machine)
}

fn nothing(_: &mut Program) {}

fn load(p: &mut Program) {
    p.ld(T1, ADDRESS, 0);
}

fn store(p: &mut Program) {
    p.sd(ADDRESS, ADDRESS, 0);
}

/// The line leaves a first level of 4 ways and 64 sets, and stays in the second level (256 sets).
fn load_and_evict(p: &mut Program) {
    load(p);
    p.li(T1, 4096).add(T0, ADDRESS, ZERO);
    for _ in 0..4 {
        p.add(T0, T0, T1).ld(T2, T0, 0);
    }
}

/// The figures of `cluster`: load-to-use, way up, look-up and way down, in ticks.
const USE: Tick = 2 * 2;
const UP: Tick = 2 * 2;
const LOOK: Tick = 2 * 12;
const DOWN: Tick = 2 * 2;
/// The cycle of the marker before the load, and that of the instruction that uses its value.
const CYCLES: Tick = 2 * 2;

#[test]
fn what_a_load_costs_in_each_state_of_its_line() {
    assert_eq!(cost(nothing, load), USE + CYCLES);
    assert_eq!(cost(nothing, load_and_evict), UP + LOOK + DOWN + CYCLES);
    // Another hart has it alone: the way to that hart and back.
    let probed = UP + LOOK + DOWN + UP + DOWN + CYCLES;
    assert_eq!(cost(load, nothing), probed);
    assert_eq!(cost(store, nothing), probed);
    // It had the line alone, and no longer has it.
    assert_eq!(cost(load_and_evict, nothing), probed);
    // A tile for one hart has neither ways up nor down.
    assert_eq!(cost_alone(load), USE + CYCLES);
    assert_eq!(cost_alone(load_and_evict), LOOK + CYCLES);
    assert_eq!(cost(nothing, nothing), UP + cost_alone(nothing) + DOWN);
}

#[test]
fn requests_of_one_moment_have_their_banks_by_port() {
    // All harts load lines of one bank at the same time, again and again; the code is the same, so they stay together.
    let program = |port: u64| {
        let mut p = Program::default();
        p.li(S0, DATA + 128 * port).addi(S1, ZERO, 4);
        let again = p.here();
        p.ld(T0, S0, 0).addi(T0, T0, 0).addi(S1, S1, -1);
        p.branch(1, S1, ZERO, again).word(WFI);
        p
    };
    let mut machine = Machine::new(&in_phase(cluster(4))).unwrap();
    for port in 0..4 {
        start_port(
            &mut machine,
            port,
            &program(port as u64),
            0x1000 * (port as u64 + 1),
        );
    }
    let end = machine.run(LIMIT, None);
    assert!(matches!(end, Outcome::Idle { .. }), "{end:?}");
    // The first fetch of all is in bank 0: each waits for the two cycles of every lower port.
    let bookings = machine.ledger().bookings();
    for victim in 0..4 {
        for culprit in 0..victim {
            let found = bookings.iter().find(|b| {
                let (of, by) = (b.victim.activity, b.culprit.activity);
                let bank = matches!(b.resource, Resource::ClusterBank { bank: 0, .. });
                (of, by) == (victim, culprit) && bank
            });
            assert!(
                found.is_some_and(|b| b.ticks >= 4),
                "{victim} {culprit} {bookings:?}"
            );
        }
    }
}

/// The host visits harts and parts in both orders.
fn visits_change_nothing(config: &PlatformConfig, programs: &[((TileId, usize), Program)]) {
    let run = |backwards: bool| {
        let mut machine = Machine::new(config).unwrap();
        machine.visit_harts_backwards(backwards);
        for (i, (hart, program)) in programs.iter().enumerate() {
            start_hart(&mut machine, *hart, program, 0x1_0000 * (i as u64 + 1));
        }
        let end = machine.run(LIMIT, None);
        assert!(matches!(end, Outcome::Idle { .. }), "{end:?}");
        (machine.digest(), machine.statistics())
    };
    assert_eq!(run(false), run(true), "{config:?}");
}

/// Interrupts come from outside, and their lines to several harts.
#[test]
fn the_order_in_which_the_host_visits_harts_and_parts_changes_no_interrupt() {
    use common::interrupts;
    let chips = [&[3, 0, 2][..], &[0, 0], &[4]];
    for (harts, pipeline) in chips.into_iter().flat_map(|h| PIPELINES.map(|p| (h, p))) {
        let tiles: Vec<TileId> = (0..harts.len() as TileId).collect();
        let config = pipelined(interrupts::interrupted_chip(harts, &tiles), pipeline);
        visits_change_nothing(&config, &interrupts::rounds(harts, 20, true));
    }
}

/// Harts of all tiles interrupt each other.
#[test]
fn the_order_in_which_the_host_visits_harts_and_parts_changes_no_ring() {
    use common::doorbells;
    let chips = [&[3, 0, 2][..], &[0, 0, 0], &[4]];
    for (harts, pipeline) in chips.into_iter().flat_map(|h| PIPELINES.map(|p| (h, p))) {
        let config = pipelined(doorbells::chip_with_bells(harts), pipeline);
        visits_change_nothing(&config, &doorbells::ring_round(&config, 20, true));
    }
}
