//! Two builds of the simulator in turn: kernel by kernel, pair by pair, with QEMU between them.
//!
//! Why it exists: a computer that others use changes its speed within seconds, so two tables that were printed one after the other do not compare
//! builds. A pair runs within seconds, and QEMU beside it. The other build is this bench of another checkout; an old one gets this folder's
//! files first.

use crate::programs::{Kernel, build, qemu_seconds_once};
use crate::whole;
use std::process::Command;
use std::time::Instant;

/// Pairs of each kernel.
const PAIRS: usize = 15;
/// Simulated time of many tiles.
const MILLISECONDS: u64 = 8;

/// What a process of `speed` measures once, and prints as instructions and seconds of processor time.
pub fn once(kernel: &Kernel, tiles: u16) {
    let origin = Instant::now();
    let program = build(
        kernel.name,
        if tiles == 0 { kernel.rounds } else { 1_000_000 },
    );
    let start = crate::programs::processor_seconds(origin);
    let instructions = match tiles {
        0 => whole::run(&program),
        _ => whole::run_tiles(&program, tiles, MILLISECONDS),
    };
    println!(
        "{instructions} {}",
        crate::programs::processor_seconds(origin) - start
    );
}

/// Nanoseconds of one instruction, of a process of its own.
fn measure(binary: &str, kernel: &Kernel, tiles: u16) -> f64 {
    let output = Command::new(binary)
        .args(["--once", kernel.name, &tiles.to_string()])
        .output()
        .unwrap_or_else(|error| panic!("{binary}: {error}"));
    let text = String::from_utf8_lossy(&output.stdout);
    let mut words = text.split_whitespace();
    let mut next = || words.next()?.parse::<f64>().ok();
    match (next(), next()) {
        (Some(instructions), Some(seconds)) => seconds * 1e9 / instructions,
        _ => panic!("{binary} says {text:?}, not instructions and seconds"),
    }
}

fn median(values: &mut [f64]) -> f64 {
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}

/// Prints this build beside another one.
pub fn compare(other: &str, kernels: &[&Kernel]) {
    let own = std::env::current_exe().expect("a process has a file");
    let own = own.to_str().expect("its path is text");
    println!(
        "This build and {other} in turn, {PAIRS} pairs: nanoseconds of an instruction, least; ratios pair by pair."
    );
    println!(
        "{:10} {:>8} {:>8} {:>8} {:>14} {:>8} {:>14} {:>8} {:>8}",
        "kernel",
        "this",
        "other",
        "QEMU",
        "this / other",
        "least",
        "this / QEMU",
        "least",
        "8 of 1"
    );
    let startup = (0..5).filter_map(|_| qemu_seconds_once("empty", 1));
    let startup = startup.fold(f64::INFINITY, f64::min);
    for kernel in kernels {
        let mut pairs = Vec::new();
        for _ in 0..PAIRS {
            let this = measure(own, kernel, 0);
            let that = measure(other, kernel, 0);
            let rounds = kernel.rounds * kernel.qemu_factor;
            let qemu = qemu_seconds_once(kernel.name, rounds).map_or(f64::NAN, |s| s - startup);
            let eight = measure(own, kernel, 1) / measure(own, kernel, 8);
            pairs.push([this, that, qemu, eight]);
        }
        // QEMU says no instructions; the machine does, of the same program with fewer rounds.
        let instructions = whole::run(&build(kernel.name, kernel.rounds)) * kernel.qemu_factor;
        for pair in &mut pairs {
            pair[2] *= 1e9 / instructions as f64;
        }
        let least = |k: usize| pairs.iter().map(|p| p[k]).fold(f64::INFINITY, f64::min);
        let ratio =
            |k: usize, l: usize| median(&mut pairs.iter().map(|p| p[k] / p[l]).collect::<Vec<_>>());
        let mut eights: Vec<f64> = pairs.iter().map(|p| p[3]).collect();
        println!(
            "{:10} {:8.2} {:8.2} {:8.3} {:14.3} {:8.3} {:14.1} {:8.1} {:8.2}",
            kernel.name,
            least(0),
            least(1),
            least(2),
            ratio(0, 1),
            least(0) / least(1),
            ratio(0, 2),
            least(0) / least(2),
            median(&mut eights)
        );
    }
}
