//! How fast the simulator is, in million instructions a second and as a ratio to QEMU's translator. Both are measured in
//! seconds of processor time, the best of three, so that other work on the computer disturbs little.
//!
//! `cargo bench -p bulkhead-machine --bench speed [kernel...]`

mod hart_alone;
mod programs;

fn main() {
    let wanted: Vec<String> = std::env::args()
        .skip(1)
        .filter(|argument| !argument.starts_with('-'))
        .collect();
    let chosen = |kernel: &&programs::Kernel| {
        wanted.is_empty() || wanted.iter().any(|name| name == kernel.name)
    };
    println!(
        "{:10} {:>14} {:>10} {:>10} {:>8}",
        "kernel", "instructions", "MIPS", "QEMU MIPS", "QEMU/us"
    );
    let startup = programs::qemu_seconds("empty", 1);
    for kernel in programs::KERNELS.iter().filter(chosen) {
        let program = programs::build(kernel.name, kernel.rounds);
        let (instructions, seconds) = programs::best_of_three(|| hart_alone::run(&program));
        let mips = instructions as f64 / seconds / 1e6;
        // QEMU runs as many rounds more as it takes to see it.
        let qemu = match (
            startup,
            programs::qemu_seconds(kernel.name, kernel.rounds * kernel.qemu_factor),
        ) {
            (Some(startup), Some(seconds)) => {
                (instructions * kernel.qemu_factor) as f64 / (seconds - startup) / 1e6
            }
            _ => f64::NAN,
        };
        println!(
            "{:10} {instructions:14} {mips:10.1} {qemu:10.0} {:8.1}",
            kernel.name,
            qemu / mips
        );
    }
}
