//! The simulator's speed, in million instructions per second and as a ratio to QEMU's translator. Both are measured in
//! seconds of processor time, the best of three, so that other work on the computer has little effect.
//!
//! `cargo bench -p bulkhead-machine --bench speed [kernel...]`
//!
//! `... --bench speed -- --beside OTHER [kernel...]` runs this build and another one in turn; OTHER is the program of this bench that another
//! checkout built. (A checkout that is older than this option first gets the files of this folder.)

mod beside;
mod hart_alone;
mod programs;
mod whole;

use programs::{KERNELS, Kernel, best_of_three, build, qemu_seconds};

fn main() {
    let mut wanted: Vec<String> = std::env::args().skip(1).collect();
    wanted.retain(|argument| argument != "--bench");
    let named = |name: &str| {
        let found = KERNELS.iter().find(|kernel| kernel.name == name);
        found.unwrap_or_else(|| panic!("there is no kernel {name:?}"))
    };
    match wanted.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        ["--once", kernel, tiles] => {
            return beside::once(named(kernel), tiles.parse().expect("a number of tiles"));
        }
        ["--beside", other, ref kernels @ ..] => {
            let kernels = match kernels {
                [] => KERNELS.iter().collect(),
                some => some.iter().map(|name| named(name)).collect::<Vec<_>>(),
            };
            return beside::compare(other, &kernels);
        }
        _ => {}
    }
    let chosen =
        |kernel: &&Kernel| wanted.is_empty() || wanted.iter().any(|name| name == kernel.name);
    println!(
        "One hart: every timing model on, and the hart on a minimal bus; QEMU is measured beside it."
    );
    println!(
        "{:10} {:>14} {:>8} {:>10} {:>10} {:>14}",
        "kernel", "instructions", "MIPS", "hart alone", "QEMU MIPS", "QEMU / machine"
    );
    let startup = qemu_seconds("empty", 1);
    let mut worst: f64 = 0.0;
    for kernel in KERNELS.iter().filter(chosen) {
        let program = build(kernel.name, kernel.rounds);
        let (instructions, seconds) = best_of_three(|| whole::run(&program));
        let (_, alone) = best_of_three(|| hart_alone::run(&program));
        let mips = |instructions: u64, seconds: f64| instructions as f64 / seconds / 1e6;
        // QEMU runs enough additional rounds that its start does not matter, and its start time is subtracted as well.
        let qemu = match (
            startup,
            qemu_seconds(kernel.name, kernel.rounds * kernel.qemu_factor),
        ) {
            (Some(startup), Some(seconds)) => {
                mips(instructions * kernel.qemu_factor, seconds - startup)
            }
            _ => f64::NAN,
        };
        let speed = mips(instructions, seconds);
        worst = worst.max(qemu / speed);
        println!(
            "{:10} {instructions:14} {speed:8.1} {:10.1} {qemu:10.0} {:14.1}",
            kernel.name,
            mips(instructions, alone),
            qemu / speed
        );
    }
    println!("worst ratio: {worst:.1}");
    println!();
    println!(
        "Tiles with units, each with memory of its own in one memory tile: instructions of all in a second."
    );
    println!(
        "{:10} {:>8} {:>8} {:>8}",
        "kernel", "1 tile", "8 tiles", "ratio"
    );
    for kernel in KERNELS.iter().filter(chosen) {
        let program = build(kernel.name, 1_000_000);
        let speed = |tiles, milliseconds| {
            let (instructions, seconds) =
                best_of_three(|| whole::run_tiles(&program, tiles, milliseconds));
            instructions as f64 / seconds / 1e6
        };
        // The same simulated span for both, so that the start of the programs has the same weight.
        let (one, eight) = (speed(1, 20), speed(8, 20));
        println!(
            "{:10} {one:8.1} {eight:8.1} {:8.2}",
            kernel.name,
            eight / one
        );
    }
}
