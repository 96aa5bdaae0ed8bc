//! What the kernel needs from the hart and from memory: start, traps, stack, cells.
//!
//! Why it exists: its few unsafe lines are here. What it deliberately does not know: tasks, and decisions.
//!
//! One hart, and jobs do not preempt each other: only interrupts come between. Whatever a handler may touch is used with interrupts masked.
#![allow(unsafe_code)]

use crate::configuration::Configuration;
use crate::kernel;
use crate::task::{Done, Start, Task};
use bulkhead_abi::memory_map::{CLINT_BASE, CLINT_MTIMECMP};
use bulkhead_exec_one_shot::ring::Header;
use bulkhead_hal::csr;
use core::arch::asm;
use core::cell::{Cell, UnsafeCell};

/// Bytes of the stack that a job must leave for interrupts: registers, the kernel's way to a message, and a small handler.
const ROOM_FOR_INTERRUPTS: usize = 448;
/// Cause of a job that has not left them; the specification leaves this number to platforms.
const NO_ROOM: u64 = 24;

core::arch::global_asm!(
    ".section .text.start, \"ax\"",
    ".globl _start",
    "_start:",
    ".option push",
    ".option norelax",
    "    la gp, __global_pointer$",
    ".option pop",
    "    la t0, __bss_start",
    "    la t1, __bss_end",
    "1:  bgeu t0, t1, 2f",
    "    sd zero, 0(t0)",
    "    addi t0, t0, 8",
    "    j 1b",
    "2:  la t0, bulkhead_trap",
    "    csrw mtvec, t0",
    "    la sp, __stack_top",
    "    j {start}",
    // An empty stack: whatever was on it is gone.
    "bulkhead_restart:",
    "    la sp, __stack_top",
    "    j {dispatch}",
    ".balign 4",
    "bulkhead_trap:",
    "    csrw mscratch, t0",
    "    csrr t0, mcause",
    "    bgez t0, 3f",
    // On the stack of the job, if that has left room for handlers.
    "    la t0, __stack_bottom + {room}",
    "    bltu sp, t0, 4f",
    "    csrr t0, mscratch",
    "    addi sp, sp, -128",
    "    sd ra, 0(sp)",
    "    sd t0, 8(sp)",
    "    sd t1, 16(sp)",
    "    sd t2, 24(sp)",
    "    sd a0, 32(sp)",
    "    sd a1, 40(sp)",
    "    sd a2, 48(sp)",
    "    sd a3, 56(sp)",
    "    sd a4, 64(sp)",
    "    sd a5, 72(sp)",
    "    sd a6, 80(sp)",
    "    sd a7, 88(sp)",
    "    sd t3, 96(sp)",
    "    sd t4, 104(sp)",
    "    sd t5, 112(sp)",
    "    sd t6, 120(sp)",
    // Handlers use no floating point, whose registers are the job's: an attempt is a mistake and traps.
    "    li t0, 0x6000",
    "    csrc mstatus, t0",
    "    csrr a0, mcause",
    "    call {interrupt}",
    "    li t0, 0x6000",
    "    csrs mstatus, t0",
    "    ld ra, 0(sp)",
    "    ld t0, 8(sp)",
    "    ld t1, 16(sp)",
    "    ld t2, 24(sp)",
    "    ld a0, 32(sp)",
    "    ld a1, 40(sp)",
    "    ld a2, 48(sp)",
    "    ld a3, 56(sp)",
    "    ld a4, 64(sp)",
    "    ld a5, 72(sp)",
    "    ld a6, 80(sp)",
    "    ld a7, 88(sp)",
    "    ld t3, 96(sp)",
    "    ld t4, 104(sp)",
    "    ld t5, 112(sp)",
    "    ld t6, 120(sp)",
    "    addi sp, sp, 128",
    "    mret",
    // An exception. Nobody returns from it, so the stack is free.
    "3:  la sp, __stack_top",
    "    csrr a0, mcause",
    "    csrr a1, mepc",
    "    csrr a2, mtval",
    "    j {fault}",
    // No room: the job has too much on the stack.
    "4:  mv a2, sp",
    "    la sp, __stack_top",
    "    li a0, {no_room}",
    "    csrr a1, mepc",
    "    j {fault}",
    room = const ROOM_FOR_INTERRUPTS,
    no_room = const NO_ROOM,
    start = sym start,
    dispatch = sym dispatch,
    interrupt = sym interrupt,
    fault = sym fault,
);

#[allow(improper_ctypes)] // Its name crosses no language.
unsafe extern "C" {
    static bulkhead_system: Configuration;
    static __text_start: u8;
    static __text_end: u8;
    static __ring_start: UnsafeCell<u8>;
    static __ring_end: UnsafeCell<u8>;
    fn bulkhead_restart() -> !;
}

/// The image's configuration, its stack and its ring, where the kernel and the linker's script look for them.
#[doc(hidden)]
#[macro_export]
macro_rules! image {
    ($system:path, $stack:expr, $ring:expr) => {
        const _: () = assert!($stack >= 768, "a stack of less than 768 bytes has no room for a job and an interrupt");
        ::core::arch::global_asm!(
            ".globl bulkhead_system",
            ".set bulkhead_system, {system}",
            ".section .stack, \"aw\", @nobits",
            ".balign 16",
            ".space {stack}",
            ".section .ring, \"aw\", @nobits",
            ".balign 8",
            ".space {ring} + 16",
            ".text",
            system = sym $system,
            stack = const $stack as usize,
            ring = const $ring as u16,
        );
    };
}

/// The configuration of the image.
pub(crate) fn system() -> &'static Configuration {
    // SAFETY: `image!` defines this name for a static of this type, once in each image, or the linker refuses.
    unsafe { &bulkhead_system }
}

extern "C" fn start() -> ! {
    protect();
    // SAFETY: the linker's script has the ring's start aligned, and nobody else uses it before this hart does.
    unsafe {
        __ring_start
            .get()
            .cast::<Header>()
            .write(Header::new(ring_size() as u32))
    };
    kernel::start(system())
}

extern "C" fn dispatch() -> ! {
    kernel::dispatch(system())
}

extern "C" fn interrupt(cause: u64) {
    kernel::interrupt(system(), cause);
}

extern "C" fn fault(cause: u64, at: u64, value: u64) -> ! {
    kernel::fault(system(), cause, at, value)
}

/// Goes on with an empty stack.
pub(crate) fn restart() -> ! {
    // SAFETY: the stack below is abandoned; whoever had something on it never runs again, and `dispatch` needs nothing of it.
    unsafe { bulkhead_restart() }
}

/// Code and constants can be read and executed, and not be written by anybody until the next reset: a job that needs more than the stack
/// meets them.
fn protect() {
    /// Top of range.
    const RANGE: u64 = 1 << 3;
    const LOCKED: u64 = 1 << 7;
    const READ_EXECUTE: u64 = 0b101;
    // The first entry only says where the second one begins.
    let second = (LOCKED | RANGE | READ_EXECUTE) << 8;
    let (from, to) = (&raw const __text_start as u64, &raw const __text_end as u64);
    // SAFETY: these registers restrict accesses to code and constants, which no Rust code writes.
    unsafe {
        asm!(
            "csrw pmpaddr0, {from}", "csrw pmpaddr1, {to}", "csrw pmpcfg0, {cfg}",
            from = in(reg) from >> 2, to = in(reg) to >> 2, cfg = in(reg) second, options(nostack)
        );
    }
}

/// The interrupts that may come, once they are unmasked; and floating point is there for jobs.
pub(crate) fn allow_interrupts(software: bool, external: bool) {
    const TIMER: u64 = 1 << 7;
    let mut allowed = TIMER;
    if software {
        allowed |= csr::SOFTWARE;
    }
    if external {
        allowed |= csr::EXTERNAL;
    }
    csr::set_mie(allowed);
    csr::set_mstatus(csr::mstatus() | csr::STATUS_FLOAT);
}

/// Sets when the timer interrupts.
#[inline]
pub(crate) fn set_timer(at: u64) {
    // SAFETY: the window of the interruptor is no Rust memory.
    unsafe { ((CLINT_BASE + CLINT_MTIMECMP) as *mut u64).write_volatile(at) };
}

/// Takes a software interrupt away that was raised by a doorbell.
pub fn clear_software_interrupt() {
    bulkhead_hal::device::set_software_interrupt(false);
}

/// Rings the own doorbell.
pub fn raise_software_interrupt() {
    bulkhead_hal::device::set_software_interrupt(true);
}

/// Bit of `mstatus`: interrupts may come.
const ENABLED: u64 = 1 << 3;

/// Masks interrupts.
#[inline(always)]
pub(crate) fn mask() {
    // SAFETY: fewer interrupts break nothing; the memory clobber keeps accesses on their side.
    unsafe { asm!("csrci mstatus, 8", options(nostack)) };
}

/// Unmasks interrupts.
#[inline(always)]
pub(crate) fn unmask() {
    // SAFETY: the trap entry keeps all registers, and whoever unmasks holds nothing that handlers use.
    unsafe { asm!("csrsi mstatus, 8", options(nostack)) };
}

/// Does something with interrupts masked; they are as before then.
#[inline(always)]
pub(crate) fn masked<R>(action: impl FnOnce() -> R) -> R {
    let before: u64;
    // SAFETY: as for `mask`.
    unsafe { asm!("csrrci {0}, mstatus, 8", out(reg) before, options(nostack)) };
    let result = action();
    // SAFETY: as for `unmask`, if they were unmasked before.
    unsafe { asm!("csrs mstatus, {0}", in(reg) before & ENABLED, options(nostack)) };
    result
}

/// Nothing happens on this core any more.
pub(crate) fn halt() -> ! {
    csr::set_mie(0);
    loop {
        csr::wait_for_interrupt();
    }
}

/// A value of the core that its kernel uses; what is done with it is the kernel's own code, which uses no value twice at once.
pub(crate) struct Core<T>(UnsafeCell<T>);

// SAFETY: there is one hart, and what it does with the value cannot be interrupted.
unsafe impl<T> Sync for Core<T> {}

impl<T> Core<T> {
    pub(crate) const fn new(value: T) -> Self {
        Self(UnsafeCell::new(value))
    }

    /// Uses the value with interrupts masked.
    #[inline(always)]
    pub(crate) fn with<R>(&self, action: impl FnOnce(&mut T) -> R) -> R {
        masked(|| self.masked(action))
    }

    /// Uses the value where interrupts are masked already.
    #[inline(always)]
    pub(crate) fn masked<R>(&self, action: impl FnOnce(&mut T) -> R) -> R {
        // SAFETY: see the type.
        action(unsafe { &mut *self.0.get() })
    }

    /// A value with cells of its own, which is never used by the two functions above.
    pub(crate) fn shared(&self) -> &T {
        // SAFETY: there is no `&mut`; the queue that has such values changes their cells with interrupts masked.
        unsafe { &*self.0.get() }
    }
}

/// A value of the core that code of users works on: who works on it has it alone, even if that code calls itself.
pub(crate) struct Lent<T> {
    is_lent: Cell<bool>,
    value: UnsafeCell<T>,
}

// SAFETY: as for `Core`; what is lent is not lent again.
unsafe impl<T> Sync for Lent<T> {}

impl<T> Lent<T> {
    pub(crate) const fn new(value: T) -> Self {
        Self {
            is_lent: Cell::new(false),
            value: UnsafeCell::new(value),
        }
    }

    /// Works on the value with interrupts masked. None if it is lent; if a job stops in the middle, it stays so.
    #[inline(always)]
    pub(crate) fn with<R>(&self, action: impl FnOnce(&mut T) -> R) -> Option<R> {
        masked(|| {
            if self.is_lent.replace(true) {
                return None;
            }
            // SAFETY: the flag says that nobody else has it.
            let result = action(unsafe { &mut *self.value.get() });
            self.is_lent.set(false);
            Some(result)
        })
    }
}

/// The attributes of a task.
#[doc(hidden)]
pub struct Attributes<T>(UnsafeCell<T>);

// SAFETY: only jobs use them, one after the other, on one hart: see `run`.
unsafe impl<T> Sync for Attributes<T> {}

impl<T: Task> Attributes<T> {
    /// What the first job finds.
    pub const fn new(value: T) -> Self {
        Self(UnsafeCell::new(value))
    }

    /// Runs one job.
    #[inline(always)]
    pub fn run(&self, start: Start) -> Done {
        let job = start.job();
        // SAFETY: the kernel makes one `Start` when it starts a job, and no other before that job is over; handlers of interrupts have
        // none. So no two of these references live at once.
        let attributes = unsafe { &mut *self.0.get() };
        attributes.run(job)
    }
}

fn ring_size() -> usize {
    let (from, to) = (__ring_start_address(), &raw const __ring_end as usize);
    (to - from).saturating_sub(size_of::<Header>())
}

fn __ring_start_address() -> usize {
    &raw const __ring_start as usize
}

/// The console ring: for whoever has masked interrupts.
pub(crate) fn ring() -> (&'static Header, &'static mut [u8]) {
    // SAFETY: `start` wrote the header; the linker's script has the area behind it. Both callers use what they get with interrupts masked
    // and keep nothing of it.
    unsafe {
        let header = __ring_start.get().cast::<Header>();
        let area = core::slice::from_raw_parts_mut(header.add(1).cast::<u8>(), ring_size());
        (&*header, area)
    }
}

#[panic_handler]
fn panic(info: &core::panic::PanicInfo) -> ! {
    let (file, line) = info.location().map_or(("", 0), |at| (at.file(), at.line()));
    kernel::panicked(system(), file, line)
}
