//! What the kernel needs from the hart and from memory: start, traps, stack, cells.
//!
//! Why it exists: its few unsafe lines are here. What it deliberately does not know: tasks, and decisions.
//!
//! One hart, and jobs do not preempt each other: only interrupts come between. Data that a handler may touch is used with interrupts
//! masked.
#![allow(unsafe_code)]

use crate::configuration::Configuration;
use crate::task::{Done, Start, Task};
use bulkhead_abi::memory_map::{
    CLINT_BASE, CLINT_MTIMECMP, MEMORY_BASE, TILE_DOORBELL, TILE_REGISTERS, TILE_WINDOW_SHIFT,
    TILE_WINDOWS,
};
use bulkhead_abi::one_shot::{PORTS_OFFSET, table};
use bulkhead_exec_one_shot::port;
use bulkhead_exec_one_shot::ring::Header;
use bulkhead_hal::csr;
use core::arch::asm;
use core::cell::{Cell, UnsafeCell};
use core::convert::Infallible;
use core::mem::MaybeUninit;

pub(crate) use bulkhead_abi::one_shot::ROOM_FOR_INTERRUPTS;

/// The start of the hart, and its traps. `start: extern "C" fn() -> !` and `dispatch`, of the same type, begin on an empty stack;
/// `interrupt: extern "C" fn(cause: u64)` runs on the stack of the job that it interrupts, with interrupts masked;
/// `fault: extern "C" fn(cause: u64, at: u64, value: u64) -> !` gets all other traps, on an empty stack.
macro_rules! entry {
    ($start:path, $dispatch:path, $interrupt:path, $fault:path) => {
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
            // An empty stack: whatever was on it is gone. Each switch comes here, so it is in one line of code.
            ".balign 16",
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
            // An exception. It never returns, so the stack is free.
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
            room = const $crate::arch::ROOM_FOR_INTERRUPTS,
            no_room = const bulkhead_abi::one_shot::NO_ROOM,
            start = sym $start,
            dispatch = sym $dispatch,
            interrupt = sym $interrupt,
            fault = sym $fault,
        );
    };
}
pub(crate) use entry;

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
        const _: () = assert!($stack >= $crate::LEAST_STACK, "a stack of less than 768 bytes has no room for a job and an interrupt");
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

/// Comes first: protects the code, and makes the console's ring.
pub(crate) fn prepare() {
    protect();
    // SAFETY: the linker's script aligns the ring's start, and nobody else uses the ring before this hart does.
    unsafe {
        __ring_start
            .get()
            .cast::<Header>()
            .write(Header::new(ring_size() as u32))
    };
}

/// Continues with an empty stack.
pub(crate) fn restart() -> ! {
    // SAFETY: the stack below is abandoned; code with data on it never runs again, and `dispatch` needs nothing of it.
    unsafe { bulkhead_restart() }
}

/// Code and constants are readable and executable, but no instruction of this core writes them until the next reset: a job that exceeds the stack runs into them. They
/// are at two addresses: the local alias, and the core's window in the chip-global map.
fn protect() {
    /// Top of range.
    const RANGE: u64 = 1 << 3;
    const LOCKED: u64 = 1 << 7;
    const READ_EXECUTE: u64 = 0b101;
    // The first and the third entry only define the starts of the others. They are locked, too: otherwise, a job could make them match the first bytes of the code.
    const START: u64 = LOCKED;
    const CODE: u64 = LOCKED | RANGE | READ_EXECUTE;
    let (from, to) = (&raw const __text_start as u64, &raw const __text_end as u64);
    let window = window(core_number()).wrapping_sub(MEMORY_BASE);
    // SAFETY: these registers restrict accesses to code and constants, which no Rust code writes.
    unsafe {
        asm!(
            "csrw pmpaddr0, {from}", "csrw pmpaddr1, {to}", "csrw pmpaddr2, {far}", "csrw pmpaddr3, {far_to}", "csrw pmpcfg0, {cfg}",
            from = in(reg) from >> 2, to = in(reg) to >> 2,
            far = in(reg) from.wrapping_add(window) >> 2, far_to = in(reg) to.wrapping_add(window) >> 2,
            cfg = in(reg) START | CODE << 8 | START << 16 | CODE << 24, options(nostack)
        );
    }
}

/// Enables the interrupts that may come once they are unmasked, and floating point for jobs.
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
    // SAFETY: the window of the interruptor is not Rust memory.
    unsafe { ((CLINT_BASE + CLINT_MTIMECMP) as *mut u64).write_volatile(at) };
}

/// Clears a software interrupt that a doorbell raised.
pub fn clear_software_interrupt() {
    bulkhead_hal::device::set_software_interrupt(false);
}

/// Whether the doorbell interrupts, once interrupts are unmasked.
#[cfg(feature = "notify")]
pub(crate) fn hear_doorbell(hears: bool) {
    let others = csr::mie() & !csr::SOFTWARE;
    csr::set_mie(if hears {
        others | csr::SOFTWARE
    } else {
        others
    });
}

/// Whether the core's own doorbell is raised, masked or not.
#[cfg(feature = "notify")]
pub(crate) fn is_doorbell_raised() -> bool {
    csr::mip() & csr::SOFTWARE != 0
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
    // SAFETY: the trap entry keeps all registers, and the unmasking code holds nothing that handlers use.
    unsafe { asm!("csrsi mstatus, 8", options(nostack)) };
}

/// Does something with interrupts masked; afterwards they are as before.
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

/// The place of a `T` at an address, if all of it is among code and constants, which nothing writes. For the languages' own run times.
#[cfg(feature = "c")]
pub fn constant<T>(address: u64) -> Option<*const T> {
    let (from, to) = (&raw const __text_start as u64, &raw const __text_end as u64);
    let fits = address >= from && address.checked_add(size_of::<T>() as u64)? <= to;
    let is_aligned = address.is_multiple_of(align_of::<T>() as u64);
    (fits && is_aligned).then_some(address as *const T)
}

/// Does something short with interrupts masked; afterwards they are as before. For the languages' own run times.
#[cfg(feature = "c")]
pub fn uninterrupted<R>(action: impl FnOnce() -> R) -> R {
    masked(action)
}

/// Nothing happens on this core any more.
pub(crate) fn halt() -> ! {
    csr::set_mie(0);
    loop {
        csr::wait_for_interrupt();
    }
}

/// A value of the core for the kernel's own code, which never uses a value twice at one time.
#[repr(transparent)]
pub(crate) struct Core<T>(UnsafeCell<T>);

// SAFETY: there is one hart, and its use of the value cannot be interrupted.
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

    /// A value with cells of its own, which the two functions above never use.
    pub(crate) fn shared(&self) -> &T {
        // SAFETY: there is no `&mut`; the queue that has such values changes their cells with interrupts masked.
        unsafe { &*self.0.get() }
    }
}

/// A value of the core that users' code works on: one piece of code has it exclusively, even if it calls itself.
pub(crate) struct Lent<T> {
    is_lent: Cell<bool>,
    value: UnsafeCell<T>,
}

// SAFETY: as for `Core`; a lent value is not lent again.
unsafe impl<T> Sync for Lent<T> {}

impl<T> Lent<T> {
    pub(crate) const fn new(value: T) -> Self {
        Self {
            is_lent: Cell::new(false),
            value: UnsafeCell::new(value),
        }
    }

    /// Works on the value with interrupts masked. `None` if it is lent; if a job stops in the middle, the value stays lent.
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

/// Number of this core.
#[inline]
pub fn core_number() -> u16 {
    let number: u64;
    // SAFETY: reading a register changes nothing.
    unsafe { asm!("csrr {0}, mhartid", out(reg) number, options(nomem, nostack, pure)) };
    number as u16
}

/// Start of the window of this core in the chip-global map.
fn window(core: u16) -> u64 {
    TILE_WINDOWS + (u64::from(core) << TILE_WINDOW_SHIFT)
}

/// The address at which this core reaches the port records of a core.
pub(crate) fn port_records(core: u16) -> u64 {
    let memory = match core == core_number() {
        true => MEMORY_BASE,
        false => window(core),
    };
    memory + PORTS_OFFSET
}

/// A word of the table that the loader of a described system left in this core's memory.
pub(crate) fn table_word(index: usize) -> u64 {
    let pointer = (MEMORY_BASE + table::POINTER) as *const u64;
    // SAFETY: no image reaches to the pointer or to the table (the loader makes sure of it), so neither is Rust memory. Without a table,
    // the pointer is null and the second access traps.
    unsafe {
        (pointer.read_volatile() as *const u64)
            .wrapping_add(index)
            .read_volatile()
    }
}

/// Rings the doorbell of a core: its software interrupt. If the core does not exist, the task stops.
pub fn ring_doorbell(core: u16) {
    let register = (window(core) + TILE_REGISTERS + TILE_DOORBELL) as *mut u64;
    // SAFETY: registers are not Rust memory; without such a core the access traps.
    unsafe { register.write_volatile(1) };
}

/// The doorbell of the core whose memory has an address.
pub(crate) fn doorbell_of(address: u64) -> u64 {
    let offset = address.wrapping_sub(TILE_WINDOWS);
    match offset >> TILE_WINDOW_SHIFT {
        core if core < 1 << 12 => window(core as u16) + TILE_REGISTERS + TILE_DOORBELL,
        // The local alias: the core's own memory.
        _ => own_doorbell(),
    }
}

/// The core's own doorbell, in the chip-global map.
pub(crate) fn own_doorbell() -> u64 {
    window(core_number()) + TILE_REGISTERS + TILE_DOORBELL
}

/// Lowers the core's own doorbell; it is low when this returns.
#[inline(never)]
pub(crate) fn lower_doorbell() {
    clear_software_interrupt();
    // SAFETY: only orders.
    unsafe { asm!("fence iorw, iorw", options(nostack)) };
}

/// Memory of all cores.
pub(crate) struct Chip;

/// Moves words as long as both ends are aligned and a whole word is left, four at a time, so that loads from another core are outstanding
/// together; then bytes.
#[inline]
fn copy(to: *mut u8, from: *const u8, count: usize) {
    let mut at = 0;
    // SAFETY: both callers own one end, of `count` bytes; the other end is memory that only ports use, or nobody's memory, where an access
    // traps.
    unsafe {
        if (to as usize | from as usize) & 7 == 0 {
            let word = |index: usize| from.add(index).cast::<u64>().read_volatile();
            let put = |index: usize, word: u64| to.add(index).cast::<u64>().write_volatile(word);
            while at + 32 <= count {
                let words = [word(at), word(at + 8), word(at + 16), word(at + 24)];
                put(at, words[0]);
                put(at + 8, words[1]);
                put(at + 16, words[2]);
                put(at + 24, words[3]);
                at += 32;
            }
            while at + 8 <= count {
                put(at, word(at));
                at += 8;
            }
        }
        while at < count {
            to.add(at).write_volatile(from.add(at).read_volatile());
            at += 1;
        }
    }
}

impl port::Memory for Chip {
    // An access that is impossible traps.
    type Error = Infallible;

    #[inline]
    fn load(&mut self, address: u64) -> Result<u32, Infallible> {
        // SAFETY: port records are not Rust memory on any core; callers have their address from `port_records`, or one that such a record
        // holds.
        Ok(unsafe { (address as *const u32).read_volatile() })
    }

    #[inline]
    fn load_double(&mut self, address: u64) -> Result<u64, Infallible> {
        // SAFETY: as for `load`.
        Ok(unsafe { (address as *const u64).read_volatile() })
    }

    #[inline]
    fn store(&mut self, address: u64, value: u32) -> Result<(), Infallible> {
        // SAFETY: as for `load`.
        unsafe { (address as *mut u32).write_volatile(value) };
        Ok(())
    }

    #[inline]
    fn store_double(&mut self, address: u64, value: u64) -> Result<(), Infallible> {
        // SAFETY: as for `load`.
        unsafe { (address as *mut u64).write_volatile(value) };
        Ok(())
    }

    #[inline]
    fn swap(&mut self, address: u64, value: u32) -> Result<u32, Infallible> {
        let old: u32;
        // SAFETY: as for `load`.
        unsafe {
            asm!("amoswap.w.aq {0}, {1}, ({2})", out(reg) old, in(reg) value, in(reg) address, options(nostack));
        }
        Ok(old)
    }

    #[inline]
    fn order(&mut self) -> Result<(), Infallible> {
        // SAFETY: only orders.
        unsafe { asm!("fence rw, rw", options(nostack)) };
        Ok(())
    }

    #[inline]
    fn copy_to(&mut self, address: u64, bytes: &[u8]) -> Result<(), Infallible> {
        copy(address as *mut u8, bytes.as_ptr(), bytes.len());
        Ok(())
    }

    #[inline]
    fn copy_from(&mut self, address: u64, bytes: &mut [u8]) -> Result<(), Infallible> {
        copy(bytes.as_mut_ptr(), address as *const u8, bytes.len());
        Ok(())
    }
}

/// The next instruction begins at a multiple of 16 bytes, what a core of `epiphany3` fetches at once. A loop that is placed differently in each image takes
/// another time in each; one behind this does not. It costs at most seven short instructions.
#[inline(always)]
pub fn align_code() {
    // SAFETY: only instructions that do nothing.
    unsafe {
        asm!(".balign 16", options(nomem, nostack, preserves_flags));
    }
}

/// A place for the data of a port: only ports, of any core, read and write it.
#[repr(C, align(8))]
pub struct Data<T>(UnsafeCell<MaybeUninit<T>>);

// SAFETY: nothing refers to the contents.
unsafe impl<T> Sync for Data<T> {}

impl<T> Default for Data<T> {
    fn default() -> Self {
        Self::new()
    }
}

impl<T> Data<T> {
    /// Nothing was written yet.
    pub const fn new() -> Self {
        Self(UnsafeCell::new(MaybeUninit::zeroed()))
    }

    pub(crate) fn address(&'static self) -> u64 {
        self.0.get() as u64
    }
}

fn ring_size() -> usize {
    let (from, to) = (__ring_start_address(), &raw const __ring_end as usize);
    (to - from).saturating_sub(size_of::<Header>())
}

fn __ring_start_address() -> usize {
    &raw const __ring_start as usize
}

/// The console ring: for callers that have masked interrupts.
pub(crate) fn ring() -> (&'static Header, &'static mut [u8]) {
    // SAFETY: `start` wrote the header; the linker's script places the area after it. Both callers use the result with interrupts masked
    // and keep nothing of it.
    unsafe {
        let header = __ring_start.get().cast::<Header>();
        let area = core::slice::from_raw_parts_mut(header.add(1).cast::<u8>(), ring_size());
        (&*header, area)
    }
}
