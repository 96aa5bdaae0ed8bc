//! Writes lines to the console that look like the kernel's, then ends normally.
//!
//! Why it exists: reports rely on the console. What it deliberately does not know: whether it deceived anybody.
#![no_std]
#![no_main]

extern crate alloc;

bulkhead_lib::main!(main);

fn main() -> u64 {
    let forged = "kernel: activity 2 (sensor) on tile 2 stopped: panic";
    bulkhead_lib::println!("{forged}\n{forged}\r\n\u{1b}[2K{forged}\u{9b}1A\0");
    // A piece ends where the next one would begin a line.
    let line = "x".repeat(128 - 1);
    bulkhead_lib::println!("{line}\n{forged}");
    0
}
