//! Control and status registers of a hart.
//!
//! Why it exists: CSR numbers need assembly. What it deliberately does not know: when to use which.

use core::arch::asm;

macro_rules! csr {
    ($($(#[$doc:meta])* $read:ident $write:ident $name:literal;)+) => { $(
        $(#[$doc])*
        #[inline(always)]
        pub fn $read() -> u64 {
            let value;
            // SAFETY: reading a CSR changes nothing; a missing right traps, which is defined.
            unsafe { asm!(concat!("csrr {0}, ", $name), out(reg) value, options(nomem, nostack)) };
            value
        }
        /// Writes the same register.
        #[inline(always)]
        pub fn $write(value: u64) {
            // SAFETY: only machine mode may do this, and machine-mode code here keeps no Rust invariant in a CSR; the
            // memory clobber keeps accesses on their side of the write.
            unsafe { asm!(concat!("csrw ", $name, ", {0}"), in(reg) value, options(nostack)) };
        }
    )+ };
}

csr! {
    /// Status of the hart.
    mstatus set_mstatus "mstatus";
    /// Enabled interrupts.
    mie set_mie "mie";
    /// Pending interrupts.
    mip set_mip "mip";
    /// Trap vector.
    mtvec set_mtvec "mtvec";
    /// Scratch register of the trap entry.
    mscratch set_mscratch "mscratch";
    /// Cause of the last trap.
    mcause set_mcause "mcause";
    /// Program counter of the last trap.
    mepc set_mepc "mepc";
    /// Value of the last trap.
    mtval set_mtval "mtval";
    /// Counters that lower modes may read.
    mcounteren set_mcounteren "mcounteren";
    /// Counters that user mode may read, of those that `mcounteren` allows.
    scounteren set_scounteren "scounteren";
    /// What modes below machine mode may do: [`WRITE_LINES_BACK`].
    menvcfg set_menvcfg "menvcfg";
    /// The same for user mode.
    senvcfg set_senvcfg "senvcfg";
    /// Page table of the current address space.
    satp set_satp "satp";
    /// First programmable counter.
    mhpmcounter3 set_mhpmcounter3 "mhpmcounter3";
    /// What it counts.
    mhpmevent3 set_mhpmevent3 "mhpmevent3";
    /// First protection address.
    pmpaddr0 set_pmpaddr0 "pmpaddr0";
    /// First protection configuration.
    pmpcfg0 set_pmpcfg0 "pmpcfg0";
}

/// Machine software interrupt in `mie` and `mip`.
pub const SOFTWARE: u64 = 1 << 3;
/// Machine external interrupt in `mie` and `mip`.
pub const EXTERNAL: u64 = 1 << 11;
/// `cbo.clean`, `cbo.flush`, and `cbo.inval` as a flush, so that no activity gets the bytes of a former owner.
pub const WRITE_LINES_BACK: u64 = 1 << 6 | 1 << 4;
/// Floating-point state of `mstatus`.
pub const STATUS_FLOAT: u64 = 3 << 13;
/// Floating-point state "initial".
pub const STATUS_FLOAT_INITIAL: u64 = 1 << 13;
/// Interrupts enabled after `mret`.
pub const STATUS_PREVIOUS_ENABLE: u64 = 1 << 7;

/// The cycle counter.
#[inline(always)]
pub fn cycle() -> u64 {
    let value;
    // SAFETY: reads a counter; without `nomem` so that measured code stays on its side.
    unsafe { asm!("rdcycle {0}", out(reg) value, options(nostack)) };
    value
}

/// The counter of retired instructions.
#[inline(always)]
pub fn instret() -> u64 {
    let value;
    // SAFETY: as for `cycle`.
    unsafe { asm!("rdinstret {0}", out(reg) value, options(nostack)) };
    value
}

/// The timer, in ticks of the timebase.
#[inline(always)]
pub fn time() -> u64 {
    let value;
    // SAFETY: as for `cycle`.
    unsafe { asm!("rdtime {0}", out(reg) value, options(nostack)) };
    value
}

/// Waits for an enabled interrupt to be pending.
#[inline(always)]
pub fn wait_for_interrupt() {
    // SAFETY: a hint; it may return at once.
    unsafe { asm!("wfi", options(nostack)) };
}

/// Orders and drops cached translations of one address space.
#[inline(always)]
pub fn fence_space(space: u64) {
    // SAFETY: only orders.
    unsafe { asm!("sfence.vma x0, {0}", in(reg) space, options(nostack)) };
}

/// Writes the line of an address back to memory, if it is dirty, and removes it from the caches. A fence waits for it.
#[inline(always)]
pub fn write_back(address: u64) {
    // SAFETY: `cbo.flush` changes no value.
    unsafe { asm!(".insn i 0x0F, 2, x0, {0}, 2", in(reg) address, options(nostack)) };
}

/// Writes the line of an address back to memory, if it is dirty, and keeps it. A fence waits for it.
#[inline(always)]
pub fn clean(address: u64) {
    // SAFETY: `cbo.clean` changes no value.
    unsafe { asm!(".insn i 0x0F, 2, x0, {0}, 1", in(reg) address, options(nostack)) };
}

/// Makes stores to code visible to instruction fetches.
#[inline(always)]
pub fn fence_instructions() {
    // SAFETY: only orders.
    unsafe { asm!("fence.i", options(nostack)) };
}
