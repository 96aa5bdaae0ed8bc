//! Bare-metal kernels of the speed benchmark: one program for QEMU and for the machine.
//!
//! The kernel and its rounds are chosen at build time (`--cfg kernel="..."`, environment variable `ROUNDS`). It ends
//! through the test finisher at 0x100000, with a failure if the result differs from the one that is known by
//! construction.
#![no_std]
#![no_main]

use core::hint::black_box;

core::arch::global_asm!(
    ".section .text.start, \"ax\"",
    ".globl start",
    "start:",
    "la sp, stack_top",
    "li t0, 0x2000", // FS = initial
    "csrs mstatus, t0",
    "call {main}",
    "li t0, 0x100000",
    "li t1, 0x5555",
    "beqz a0, 1f",
    "li t1, 0x13333",
    "1: sw t1, 0(t0)",
    "2: j 2b",
    main = sym main,
);

#[panic_handler]
fn panic(_: &core::panic::PanicInfo) -> ! {
    loop {}
}

const fn rounds() -> u64 {
    let text = env!("ROUNDS").as_bytes();
    let (mut value, mut i) = (0, 0);
    while i < text.len() {
        value = value * 10 + (text[i] - b'0') as u64;
        i += 1;
    }
    value
}

fn random(state: &mut u64) -> u64 {
    *state ^= *state << 13;
    *state ^= *state >> 7;
    *state ^= *state << 17;
    *state
}

/// Returns 0 if the kernel's own check holds.
extern "C" fn main() -> u64 {
    let mut failed = 0;
    for round in 0..rounds() {
        failed |= kernel(black_box(round + 1));
    }
    failed
}

#[cfg(kernel = "empty")]
fn kernel(_: u64) -> u64 {
    0
}

/// Integer arithmetic and branches: the lengths of Collatz sequences.
#[cfg(kernel = "integer")]
fn kernel(round: u64) -> u64 {
    let mut longest = 0;
    for start in 1..3000u64 {
        let mut value = start + (round & 1) * 3000;
        let mut length = 0u64;
        while value != 1 {
            value = if value & 1 == 0 { value >> 1 } else { 3 * value + 1 };
            length += 1;
        }
        longest = longest.max(length);
    }
    (longest < 100) as u64
}

/// Comparison sort of 4096 words: data-dependent branches.
#[cfg(kernel = "sort")]
fn kernel(round: u64) -> u64 {
    let mut data = [0u64; 4096];
    let mut state = round;
    data.iter_mut().for_each(|word| *word = random(&mut state));
    black_box(&mut data).sort_unstable();
    !data.is_sorted() as u64
}

/// Table-driven CRC-32 over 16 KiB.
#[cfg(kernel = "crc")]
fn kernel(round: u64) -> u64 {
    let mut table = [0u32; 256];
    for (index, entry) in table.iter_mut().enumerate() {
        *entry = (0..8).fold(index as u32, |c, _| if c & 1 != 0 { c >> 1 ^ 0xedb8_8320 } else { c >> 1 });
    }
    let crc = |data: &[u8]| !data.iter().fold(!0u32, |crc, byte| crc >> 8 ^ table[(crc as u8 ^ byte) as usize]);
    let mut data = [0u8; 16384];
    let mut state = round;
    data.iter_mut().for_each(|byte| *byte = random(&mut state) as u8);
    black_box(crc(black_box(&data)));
    // The check value of CRC-32 (ISO-HDLC).
    (crc(black_box(b"123456789")) != 0xcbf4_3926) as u64
}

/// Double-precision product of 48 x 48 matrices.
#[cfg(kernel = "matrix")]
fn kernel(round: u64) -> u64 {
    const N: usize = 48;
    let (mut a, mut b, mut c) = ([[0.0f64; N]; N], [[0.0f64; N]; N], [[0.0f64; N]; N]);
    for i in 0..N {
        for j in 0..N {
            a[i][j] = (i * j + round as usize) as f64 * 0.25;
            b[i][j] = (i == j) as u64 as f64;
        }
    }
    let (x, y) = (black_box(&a), black_box(&b));
    for i in 0..N {
        for j in 0..N {
            c[i][j] = (0..N).fold(0.0, |sum, k| sum + x[i][k] * y[k][j]);
        }
    }
    (black_box(&c) != &a) as u64
}

/// Copies 256 KiB: more than the first level holds.
#[cfg(kernel = "copy")]
fn kernel(round: u64) -> u64 {
    let mut data = [0u64; 65536];
    let (source, target) = data.split_at_mut(32768);
    source.iter_mut().step_by(64).for_each(|word| *word = round);
    for _ in 0..4 {
        black_box(&mut *target).copy_from_slice(black_box(&*source));
    }
    (target[32704] != round) as u64
}

/// Follows a random chain through 512 KiB: each load depends on the previous one.
#[cfg(kernel = "chase")]
fn kernel(round: u64) -> u64 {
    const N: usize = 65536;
    let mut next = [0u64; N];
    // A permutation with one cycle (full period of a linear congruential generator modulo a power of two).
    for (index, entry) in next.iter_mut().enumerate() {
        *entry = (index as u64 * 40_501 + 12_345) % N as u64;
    }
    let next = black_box(&next);
    let mut at = round % N as u64;
    for _ in 0..N {
        at = next[at as usize];
    }
    (at != round % N as u64) as u64
}
