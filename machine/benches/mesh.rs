//! What tiles of a mesh cost the host: busy tiles alone, busy tiles among a thousand idle ones, a thousand busy ones, and a thousand that
//! wake up every millisecond. In nanoseconds of wall time per instruction, the best of three.
//!
//! `cargo bench -p bulkhead-machine --bench mesh`

#[path = "../tests/common/mod.rs"]
mod common;

use bulkhead_abi::memory_map::{CLINT_BASE, CLINT_MTIMECMP, MEMORY_BASE};
use bulkhead_machine::config::PlatformConfig;
use bulkhead_machine::machine::{Machine, RunLimit};
use common::*;
use std::time::Instant;

/// An endless loop that loads and stores its own memory.
fn busy() -> Program {
    let mut p = Program::default();
    p.li(S0, MEMORY_BASE + 0x4000);
    let again = p.here();
    p.ld(T0, S0, 0).addi(T0, T0, 1).sd(T0, S0, 0);
    p.addi(T1, T1, 3).xor(T2, T1, T0).jump(again);
    p
}

/// Wakes up every millisecond, counts to 100 and sleeps.
fn mostly_idle() -> Program {
    let mut p = Program::default();
    p.addi(T0, ZERO, 0x80).csr(1, 0x304, T0);
    p.li(S0, CLINT_BASE + CLINT_MTIMECMP);
    p.li(S1, 600_000).addi(S2, ZERO, 0);
    let again = p.here();
    p.add(S2, S2, S1).sd(S2, S0, 0).addi(T1, ZERO, 100);
    let count = p.here();
    p.addi(T1, T1, -1).branch(1, T1, ZERO, count);
    p.word(WFI).jump(again);
    p
}

/// Seconds and instructions of a run.
fn run(config: &PlatformConfig, program: &Program, tiles: &[u16], ticks: u64) -> (f64, u64) {
    let once = || {
        let mut machine = Machine::new(config).expect("valid");
        for &tile in tiles {
            program.start(&mut machine, tile);
        }
        let start = Instant::now();
        machine.run(RunLimit { ticks }, None);
        let seconds = start.elapsed().as_secs_f64();
        let harts = machine.statistics().harts;
        (seconds, harts.iter().map(|h| h.counters.instructions).sum())
    };
    let runs: [(f64, u64); 3] = std::array::from_fn(|_| once());
    let best = runs.iter().map(|run| run.0).fold(f64::MAX, f64::min);
    (best, runs[0].1)
}

fn main() {
    let sixteen: Vec<u16> = (0..16).collect();
    let spread: Vec<u16> = (0..16).map(|i| i * 64).collect();
    let all: Vec<u16> = (0..1024).collect();
    let (small, large) = (mesh(4, 4), mesh(32, 32));
    let say = |what: &str, (seconds, instructions): (f64, u64)| {
        let each = seconds * 1e9 / instructions as f64;
        println!("{what:44} {instructions:12} instructions {each:8.1} ns each {seconds:8.2} s");
    };
    say("1 busy tile of 16", run(&small, &busy(), &[0], 20_000_000));
    say(
        "16 busy tiles of 16",
        run(&small, &busy(), &sixteen, 2_000_000),
    );
    say(
        "16 busy tiles of 1024",
        run(&large, &busy(), &spread, 2_000_000),
    );
    say("1024 busy tiles", run(&large, &busy(), &all, 50_000));
    let tenth = 120_000_000;
    say(
        "1024 tiles awake each millisecond, 0.1 s",
        run(&large, &mostly_idle(), &all, tenth),
    );
}
