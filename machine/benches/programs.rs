//! Builds the target programs and runs them under QEMU.

use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::time::Instant;

pub struct Kernel {
    pub name: &'static str,
    pub rounds: u64,
    pub qemu_factor: u64,
}

const fn kernel(name: &'static str, rounds: u64, qemu_factor: u64) -> Kernel {
    Kernel {
        name,
        rounds,
        qemu_factor,
    }
}

pub const KERNELS: [Kernel; 6] = [
    kernel("integer", 60, 20),
    kernel("sort", 120, 10),
    kernel("crc", 120, 20),
    kernel("matrix", 60, 2),
    kernel("copy", 60, 20),
    kernel("chase", 60, 20),
];

/// Builds a kernel with this many rounds. Returns the path of the program.
pub fn build(kernel: &str, rounds: u64) -> PathBuf {
    let folder = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("benches/programs");
    let output = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(format!("{kernel}-{rounds}"));
    let source = folder.join("kernels.rs");
    let written = |path: &PathBuf| path.metadata().and_then(|data| data.modified()).ok();
    if written(&output) > written(&source) {
        return output;
    }
    let status = Command::new(std::env::var_os("RUSTC").unwrap_or("rustc".into()))
        .args([
            "--edition",
            "2024",
            "--target",
            "riscv64gc-unknown-none-elf",
            "-C",
            "opt-level=2",
        ])
        .args([
            "-C",
            "panic=abort",
            "-A",
            "warnings",
            "--cfg",
            &format!("kernel=\"{kernel}\""),
        ])
        .arg("-C")
        .arg(format!("link-arg=-T{}", folder.join("link.ld").display()))
        .arg("-o")
        .args([&output, &source])
        .env("ROUNDS", rounds.to_string())
        .status()
        .expect("rustc runs");
    assert!(status.success(), "the program does not build");
    output
}

/// Processor seconds of this thread, or wall-clock seconds if the system does not report them.
pub fn processor_seconds(origin: Instant) -> f64 {
    std::fs::read_to_string("/proc/thread-self/schedstat")
        .ok()
        .and_then(|text| text.split_whitespace().next()?.parse::<f64>().ok())
        .map_or_else(
            || origin.elapsed().as_secs_f64(),
            |nanoseconds| nanoseconds / 1e9,
        )
}

/// The result of a function, and the least processor time of three calls.
pub fn best_of_three<T>(mut function: impl FnMut() -> T) -> (T, f64) {
    let origin = Instant::now();
    let mut once = || {
        let start = processor_seconds(origin);
        let result = function();
        (result, processor_seconds(origin) - start)
    };
    let (result, first) = once();
    (result, first.min(once().1).min(once().1))
}

/// Processor seconds that QEMU takes for a kernel; `None` without QEMU.
pub fn qemu_seconds_once(kernel: &str, rounds: u64) -> Option<f64> {
    let program = build(kernel, rounds);
    let output = Command::new("bash")
        .args(["-c", r#"TIMEFORMAT=%U; time qemu-system-riscv64 -machine virt -bios none -display none -serial none -kernel "$0""#])
        .arg(&program)
        .stdin(Stdio::null())
        .output()
        .ok()?;
    let text = String::from_utf8_lossy(&output.stderr);
    let seconds = text.split_whitespace().last()?.parse::<f64>().ok();
    assert!(
        output.status.success() || output.status.code() == Some(127),
        "{kernel} failed under QEMU: {text}"
    );
    seconds.filter(|_| output.status.success())
}

/// The best of three.
pub fn qemu_seconds(kernel: &str, rounds: u64) -> Option<f64> {
    (0..3)
        .map(|_| qemu_seconds_once(kernel, rounds))
        .try_fold(f64::INFINITY, |best, seconds| Some(best.min(seconds?)))
}
