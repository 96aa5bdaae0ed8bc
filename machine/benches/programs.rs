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

/// Builds a kernel with so many rounds and gives the path of the program.
pub fn build(kernel: &str, rounds: u64) -> PathBuf {
    let folder = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("benches/programs");
    let output = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(format!("{kernel}-{rounds}"));
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
        .args([&output, &folder.join("kernels.rs")])
        .env("ROUNDS", rounds.to_string())
        .status()
        .expect("rustc runs");
    assert!(status.success(), "the program does not build");
    output
}

/// Seconds that QEMU takes for a kernel, the best of three; `None` without QEMU.
pub fn qemu_seconds(kernel: &str, rounds: u64) -> Option<f64> {
    let program = build(kernel, rounds);
    let once = || {
        let start = Instant::now();
        let status = Command::new("qemu-system-riscv64")
            .args([
                "-machine", "virt", "-bios", "none", "-display", "none", "-serial", "none",
                "-kernel",
            ])
            .arg(&program)
            .stdin(Stdio::null())
            .status()
            .ok()?;
        assert!(status.success(), "{kernel} failed under QEMU");
        Some(start.elapsed().as_secs_f64())
    };
    (0..3)
        .map(|_| once())
        .try_fold(f64::INFINITY, |best, seconds| Some(best.min(seconds?)))
}
