//! What a cluster costs compared with a tile that has the same caches for one hart: cycles of the chip, and time of the host.
//!
//! The second level answers after 12 cycles on both; on the cluster, these include two for each direction. To count the
//! host's instructions, run `valgrind --tool=cachegrind --cache-sim=no BINARY one KERNEL ROUNDS HARTS` (0: the tile without a
//! cluster), twice; or `BINARY together busy|sharing|mixed HARTS TICKS`, all harts at once, which also prints the machine's
//! digest.
//!
//! `cargo bench -p bulkhead-machine --bench cluster [kernel...]`

#[path = "../tests/common/mod.rs"]
mod common;
#[allow(dead_code)] // Other benches use the rest.
mod programs;
#[allow(dead_code)] // Other benches use the rest.
mod whole;

use bulkhead_abi::memory_map::MEMORY_BASE;
use bulkhead_machine::config::{ClusterConfig, PlatformConfig};
use bulkhead_machine::machine::{Machine, RunLimit};
use common::{Program, S0, S1, S2, S3, T0, T1, T2, ZERO};
use programs::{KERNELS, Kernel, best_of_three, build};
use std::time::Instant;

/// The chip of `single`; with a cluster of this many harts, if any.
fn chip(harts: u16) -> PlatformConfig {
    let mut config = whole::platform(1, false);
    let tile = &mut config.tiles[0];
    tile.hart.hardware_ad = false;
    if harts != 0 {
        let l2 = tile.l2.as_mut().expect("a second level");
        l2.latency = 8;
        tile.cluster = Some(ClusterConfig {
            banks: 4,
            occupancy: 4,
            ..ClusterConfig::of(harts)
        });
    }
    config
}

/// An endless loop that loads and stores its own memory.
fn busy(port: u64) -> Program {
    let mut p = Program::default();
    p.li(S0, MEMORY_BASE + 0x10_0000 + 0x1000 * port);
    let again = p.here();
    p.ld(T0, S0, 0).addi(T0, T0, 1).sd(T0, S0, 0);
    p.addi(T1, T1, 3).xor(T2, T1, T0).branch(1, T2, ZERO, again);
    p.jump(again);
    p
}

/// An endless loop that adds to a word shared by all harts.
fn sharing(_: u64) -> Program {
    let mut p = Program::default();
    p.li(S0, MEMORY_BASE + 0x10_0000).addi(T0, ZERO, 1);
    let again = p.here();
    p.amo(0, 0, ZERO, S0, T0).jump(again);
    p
}

/// A loop through 48 KiB of its own memory with occasional stores, and an addition to a word shared by all harts in each
/// round.
fn mixed(port: u64) -> Program {
    let mut p = Program::default();
    p.li(S0, MEMORY_BASE + 0x10_0000).addi(S3, ZERO, 1);
    let round = p.here();
    p.li(S1, MEMORY_BASE + 0x20_0000 + 0x10_0000 * port);
    p.li(S2, 48 << 10).amo(0, 0, ZERO, S0, S3);
    let again = p.here();
    p.ld(T0, S1, 0).addi(T0, T0, 1).sd(T0, S1, 8);
    p.ld(T1, S1, 64).addi(S1, S1, 128).addi(S2, S2, -128);
    p.branch(1, S2, ZERO, again).jump(round);
    p
}

/// A machine on which all harts run this program.
fn together(harts: u16, program: fn(u64) -> Program) -> Machine {
    let mut machine = Machine::new(&chip(harts)).expect("valid");
    for port in 0..usize::from(harts.max(1)) {
        let (program, at) = (program(port as u64), 0x1000 * (port as u64 + 1));
        match harts {
            0 => program.start_at(&mut machine, 0, at),
            _ => common::start_port(&mut machine, port, &program, at),
        }
    }
    machine
}

/// Million instructions per second of this many harts, the best of three.
fn rate(harts: u16, program: fn(u64) -> Program, ticks: u64) -> f64 {
    let run = || {
        let mut machine = together(harts, program);
        let begin = Instant::now();
        machine.run(RunLimit { ticks }, None);
        whole::instructions(&machine) as f64 / begin.elapsed().as_secs_f64() / 1e6
    };
    (0..3).map(|_| run()).fold(0.0, f64::max)
}

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    if let [one, kernel, rounds, harts] = &arguments[..]
        && one == "one"
    {
        let program = build(kernel, rounds.parse().expect("rounds"));
        let config = chip(harts.parse().expect("harts"));
        let (instructions, ticks) = whole::run_on(&config, &program);
        println!("{kernel} {rounds} {harts}: {instructions} instructions, {ticks} ticks");
        return;
    }
    if let [mode, program, harts, ticks] = &arguments[..]
        && mode == "together"
    {
        let program = match &program[..] {
            "busy" => busy,
            "sharing" => sharing,
            "mixed" => mixed,
            _ => panic!("{program} is not busy, sharing or mixed"),
        };
        let mut machine = together(harts.parse().expect("harts"), program);
        let ticks = ticks.parse().expect("ticks");
        machine.run(RunLimit { ticks }, None);
        let (instructions, digest) = (whole::instructions(&machine), machine.digest());
        println!("{instructions} instructions, digest {digest:02x?}");
        return;
    }
    let wanted = |kernel: &&Kernel| {
        let mut names = arguments.iter().filter(|name| !name.starts_with('-'));
        arguments.iter().all(|name| name.starts_with('-')) || names.any(|n| n == kernel.name)
    };
    println!(
        "One hart, alone in a tile and in a cluster: cycles, and million instructions a second."
    );
    println!(
        "{:10} {:>12} {:>12} {:>8} {:>8}",
        "kernel", "alone", "cluster", "alone", "cluster"
    );
    for kernel in KERNELS.iter().filter(wanted) {
        let program = build(kernel.name, kernel.rounds);
        let measure = |harts| {
            let config = chip(harts);
            let mut ticks = 0;
            let (instructions, seconds) = best_of_three(|| {
                let run = whole::run_on(&config, &program);
                ticks = run.1;
                run.0
            });
            (ticks / 4, instructions as f64 / seconds / 1e6)
        };
        let (alone, cluster) = (measure(0), measure(1));
        println!(
            "{:10} {:12} {:12} {:8.1} {:8.1}",
            kernel.name, alone.0, cluster.0, alone.1, cluster.1
        );
    }
    println!(
        "\nMillion instructions a second of all harts, with separate data and with one shared word."
    );
    for harts in [0, 1, 2, 4, 8] {
        let separate = rate(harts, busy, 400_000_000 / u64::from(harts.max(1)));
        let shared = rate(harts, sharing, 40_000_000);
        println!("{harts} {separate:8.1} {shared:8.1}");
    }
}
