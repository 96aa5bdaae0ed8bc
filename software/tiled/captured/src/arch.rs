//! Entry and traps of the attacker's hart.
//!
//! Why it exists: its few unsafe lines are here. What it deliberately does not know: what is attacked.
#![allow(unsafe_code)]

core::arch::global_asm!(
    ".section .text.start, \"ax\"",
    ".globl _start",
    "_start:",
    "    fence.i",
    "    csrw mie, zero",
    "    la sp, captured_stack",
    "    la t0, 1f",
    "    csrw mtvec, t0",
    "    call {main}",
    "2:  j 2b",
    // Counts the trap and continues after the instruction.
    ".balign 4",
    "1:  addi sp, sp, -16",
    "    sd t0, 0(sp)",
    "    sd t1, 8(sp)",
    "    la t0, captured_traps",
    "    ld t1, 0(t0)",
    "    addi t1, t1, 1",
    "    sd t1, 0(t0)",
    "    csrr t0, mepc",
    "    lhu t1, 0(t0)",
    "    andi t1, t1, 3",
    "    addi t0, t0, 2",
    "    addi t1, t1, -3",
    "    bnez t1, 3f",
    "    addi t0, t0, 2",
    "3:  csrw mepc, t0",
    "    ld t0, 0(sp)",
    "    ld t1, 8(sp)",
    "    addi sp, sp, 16",
    "    mret",
    main = sym crate::main,
);

unsafe extern "C" {
    safe static captured_traps: u64;
}

/// Traps that were taken.
pub fn traps() -> u64 {
    bulkhead_user::probe::load(&raw const captured_traps as u64)
}
