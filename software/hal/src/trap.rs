//! Entry and exit of machine mode for a multiplexer of user-mode activities.
//!
//! Why it exists: saving registers needs assembly. What it deliberately does not know: what a trap means. Traps from machine mode
//! itself are faults of that software and go to its `machine_fault` function.
//!
//! While an activity runs, `mscratch` holds the address of its [`Context`]; in machine mode it is zero.

use core::arch::asm;

/// The registers of an activity that is not running.
#[repr(C)]
#[derive(Clone, Debug)]
pub struct Context {
    /// `x0` is the program counter.
    pub registers: [u64; 32],
    /// `mstatus`.
    pub status: u64,
    /// Floating-point control and status.
    pub float_status: u64,
    /// Floating-point registers.
    pub float: [u64; 32],
}

/// Index of `sp` in [`Context::registers`].
pub const SP: usize = 2;
/// Index of `a0`.
pub const A0: usize = 10;
/// Index of `a1`.
pub const A1: usize = 11;
/// Index of `a7`.
pub const A7: usize = 17;

impl Context {
    /// All zero: user mode, interrupts on, floating point in its initial state.
    pub const fn new() -> Self {
        Self {
            registers: [0; 32],
            status: crate::csr::STATUS_PREVIOUS_ENABLE | crate::csr::STATUS_FLOAT_INITIAL,
            float_status: 0,
            float: [0; 32],
        }
    }

    /// The program counter.
    pub const fn pc(&self) -> u64 {
        self.registers[0]
    }

    /// Saves the hart's floating-point registers.
    pub fn save_float(&mut self) {
        enable_float();
        // SAFETY: stores into `float`, which has room for the 32 registers.
        unsafe {
            asm!(
                ".irp n,0,1,2,3,4,5,6,7,8,9,10,11,12,13,14,15,16,17,18,19,20,21,22,23,24,25,26,27,28,29,30,31",
                "fsd f\\n, 8*\\n({0})",
                ".endr",
                "frcsr {1}",
                in(reg) self.float.as_mut_ptr(), out(reg) self.float_status, options(nostack)
            );
        }
    }

    /// Restores the hart's floating-point registers.
    pub fn restore_float(&self) {
        enable_float();
        // SAFETY: loads from `float`. The registers belong to the activity that runs next; code in machine mode uses
        // none of them, so they are not declared as changed.
        unsafe {
            asm!(
                ".irp n,0,1,2,3,4,5,6,7,8,9,10,11,12,13,14,15,16,17,18,19,20,21,22,23,24,25,26,27,28,29,30,31",
                "fld f\\n, 8*\\n({0})",
                ".endr",
                "fscsr {1}",
                in(reg) self.float.as_ptr(), in(reg) self.float_status, options(nostack)
            );
        }
    }
}

impl Default for Context {
    fn default() -> Self {
        Self::new()
    }
}

fn enable_float() {
    crate::csr::set_mstatus(crate::csr::mstatus() | crate::csr::STATUS_FLOAT_INITIAL);
}

/// Defines `trap_entry` and `trap_resume` in the crate that uses it.
///
/// `handler: extern "C" fn(&mut Context, cause: u64, value: u64) -> *const Context` runs on the stack that ends at the symbol
/// `stack`, and returns the context to resume. `fault: extern "C" fn() -> !` gets traps of machine mode. The first and the last
/// instruction are markers: they divide the hart's time between the activities and their multiplexer to the tick.
#[macro_export]
macro_rules! trap_entry {
    ($handler:path, $fault:path, $stack:literal) => {
        ::core::arch::global_asm!(
            ".section .text.trap, \"ax\"",
            ".globl trap_entry",
            ".globl trap_resume",
            ".balign 64",
            "trap_entry:",
            "    slti x0, x0, {enters}",
            "    csrrw t6, mscratch, t6",
            "    beqz t6, 9f",
            ".irp n,1,2,3,4,5,6,7,8,9,10,11,12,13,14,15,16,17,18,19,20,21,22,23,24,25,26,27,28,29,30",
            "    sd x\\n, 8*\\n(t6)",
            ".endr",
            "    csrr t5, mscratch",
            "    sd t5, 8*31(t6)",
            "    csrw mscratch, zero",
            "    csrr t5, mepc",
            "    sd t5, 0(t6)",
            "    csrr t5, mstatus",
            "    sd t5, 256(t6)",
            // Machine mode uses no floating point; an attempt is a fault and must trap.
            "    li t5, 0x6000",
            "    csrc mstatus, t5",
            concat!("    la sp, ", $stack),
            "    mv a0, t6",
            "    csrr a1, mcause",
            "    csrr a2, mtval",
            "    call {handler}",
            "trap_resume:",
            "    mv t6, a0",
            "    ld t5, 0(t6)",
            "    csrw mepc, t5",
            "    ld t5, 256(t6)",
            "    csrw mstatus, t5",
            "    csrw mscratch, t6",
            ".irp n,1,2,3,4,5,6,7,8,9,10,11,12,13,14,15,16,17,18,19,20,21,22,23,24,25,26,27,28,29,30",
            "    ld x\\n, 8*\\n(t6)",
            ".endr",
            "    ld t6, 8*31(t6)",
            "    slti x0, x0, {leaves}",
            "    mret",
            "9:",
            concat!("    la sp, ", $stack),
            "    call {fault}",
            handler = sym $handler,
            fault = sym $fault,
            enters = const $crate::abi::marker::MarkerKind::MuxEnters as u16,
            leaves = const $crate::abi::marker::MarkerKind::MuxLeaves as u16,
        );
    };
}
