//! Accesses that should be stopped, for programs that test the isolation.
//!
//! Why it exists: such programs must do, in user mode, what no honest program does. What it deliberately does not know: the
//! expected outcome. If the isolation holds, each of these ends the activity or reaches only its own memory. Rust cannot promise
//! anything about a program that overwrites itself, and need not, because it harms only itself.

use core::arch::asm;

/// Loads 8 bytes from anywhere.
#[inline(never)]
pub fn load(address: u64) -> u64 {
    let value;
    // SAFETY: a load changes nothing; the point is that the hardware decides.
    unsafe { asm!("ld {0}, 0({1})", out(reg) value, in(reg) address, options(nostack)) };
    value
}

/// Stores 8 bytes anywhere.
#[inline(never)]
pub fn store(address: u64, value: u64) {
    // SAFETY: see the module; callers use addresses outside of what the program itself holds.
    unsafe { asm!("sd {0}, 0({1})", in(reg) value, in(reg) address, options(nostack)) };
}

/// Jumps anywhere.
#[inline(never)]
pub fn jump(address: u64) {
    // SAFETY: see the module; what is there, if anything, is called like a function.
    unsafe { asm!("jalr {0}", in(reg) address, clobber_abi("C")) };
}

/// Reads a register of machine mode.
#[inline(never)]
pub fn machine_register() {
    // SAFETY: traps in user mode.
    unsafe { asm!("csrr {0}, mstatus", out(reg) _, options(nostack)) };
}

/// A breakpoint.
#[inline(never)]
pub fn breakpoint() {
    // SAFETY: traps.
    unsafe { asm!("ebreak", options(nostack)) };
}

/// A call to TileMux with a number that does not exist.
#[inline(never)]
pub fn unknown_call() {
    // SAFETY: traps; TileMux ends the activity.
    unsafe { asm!("ecall", in("a7") 0xFFFF_u64, lateout("a0") _, options(nostack)) };
}
