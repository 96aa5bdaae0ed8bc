//! Contexts, memory and entry of TileMux.
//!
//! Why it exists: its few unsafe lines are here. What it deliberately does not know: which activity runs, and why.
//!
//! There is one hart, and traps are off in machine mode, so code here runs alone.
#![allow(unsafe_code)]

use crate::TileMux;
use bulkhead_abi::message::{HEADER_SIZE, Header};
use bulkhead_abi::tilemux::{TILEMUX_CONFIG, TileMuxConfig, TilePolicy};
use bulkhead_abi::words::Words;
use bulkhead_exec::tile::Policy;
use bulkhead_hal::csr;
use bulkhead_hal::trap::{Context, SP};
use bulkhead_tilemux::mux::{ACTIVITIES, Entry, Registers};
use core::cell::UnsafeCell;

pub use bulkhead_hal::csr::wait_for_interrupt;

core::arch::global_asm!(
    ".section .text.start, \"ax\"",
    ".globl _start",
    "_start:",
    "    la sp, tilemux_stack",
    "    call {start}",
    start = sym start,
);

core::arch::global_asm!(
    ".section .text.second, \"ax\"",
    ".globl second_start",
    "second_start:",
    "    la sp, tilemux_second_stack",
    // A trap of this hart is a fault: it loops in place.
    "    la t0, 1f",
    "    csrw mtvec, t0",
    "    j {serve}",
    ".balign 4",
    "1:  j 1b",
    serve = sym crate::second::serve,
);

bulkhead_hal::trap_entry!(trap, fault, "tilemux_stack");

/// A value of the one hart.
struct Local<T>(UnsafeCell<T>);

// SAFETY: there is one hart, and code in machine mode is never interrupted.
unsafe impl<T> Sync for Local<T> {}

static TILEMUX: Local<Option<TileMux>> = Local(UnsafeCell::new(None));
static CONTEXTS: Local<[Context; ACTIVITIES]> =
    Local(UnsafeCell::new([const { Context::new() }; ACTIVITIES]));

/// Outgoing data; aligned so that it never crosses a page.
#[repr(C, align(256))]
struct Out([u8; 256]);
static OUT: Local<Out> = Local(UnsafeCell::new(Out([0; 256])));

/// The activity to resume.
pub enum Resume {
    /// The activity that trapped.
    Same,
    /// The activity in this place.
    Place(usize),
}

extern "C" fn start() -> ! {
    // SAFETY: the kernel placed the configuration before it started this hart; every bit pattern is valid.
    let config = unsafe { (TILEMUX_CONFIG as *const TileMuxConfig).read_volatile() };
    unsafe extern "C" {
        safe fn trap_entry();
        safe fn second_start();
        fn trap_resume(context: *const Context) -> !;
    }
    csr::set_mscratch(0);
    csr::set_mtvec(trap_entry as *const () as u64);
    let second = config.harts > 1;
    // Only a second hart raises software interrupts.
    csr::set_mie(csr::EXTERNAL | csr::SOFTWARE);
    // Applications may read cycle, time and instret.
    csr::set_mcounteren(7);
    csr::set_scounteren(7);
    // They know which of their memory others reach past the caches.
    csr::set_menvcfg(csr::WRITE_LINES_BACK);
    csr::set_senvcfg(csr::WRITE_LINES_BACK);
    // Page tables alone decide what user mode can reach, so one entry here allows everything.
    csr::set_pmpaddr0(u64::MAX >> 10);
    csr::set_pmpcfg0(0x1f);
    let policy = match TilePolicy::from_code(config.policy) {
        Some(TilePolicy::Realtime) => Policy::Realtime,
        _ => Policy::Throughput,
    };
    // SAFETY: runs once, before the first trap.
    let tilemux = unsafe { &mut *TILEMUX.0.get() };
    let times = (config.slice.max(1), config.distance);
    let tilemux = tilemux.insert(TileMux::new(policy, times, config.line));
    if second {
        bulkhead_hal::dtu::start_second(second_start as *const () as u64);
    }
    let Resume::Place(place) = tilemux.dispatch(Registers::Kept) else {
        panic!("nobody to resume")
    };
    // SAFETY: the context holds the registers of an activity that the kernel started.
    unsafe { trap_resume(context(place)) }
}

extern "C" fn trap(context: &mut Context, cause: u64, value: u64) -> *const Context {
    // SAFETY: `start` filled it before any activity could trap; nobody else borrows it (see the module).
    let tilemux = unsafe { &mut *TILEMUX.0.get() };
    let Some(tilemux) = tilemux else {
        panic!("a trap before the start")
    };
    let same: *const Context = context;
    match tilemux.trap(cause, value) {
        Resume::Same => same,
        Resume::Place(place) => self::context(place),
    }
}

extern "C" fn fault() -> ! {
    panic!("a trap of TileMux itself")
}

/// A fault of TileMux stops its tile; no other tile is harmed, and the kernel's next request gets no answer.
#[panic_handler]
fn panic(_: &core::panic::PanicInfo) -> ! {
    bulkhead_hal::marker::activity_fault(csr::mcause());
    csr::set_mie(0);
    loop {
        wait_for_interrupt();
    }
}

/// The registers of the activity in a place.
pub fn context<'a>(place: usize) -> &'a mut Context {
    // SAFETY: see the module; callers keep a context only until the next call.
    unsafe { &mut (*CONTEXTS.0.get())[place] }
}

/// Number of the address space of a place; 0 stays free.
const fn space(place: usize) -> u64 {
    place as u64 + 1
}

/// A new activity starts in this place.
pub fn start_context(place: usize, entry: Entry) {
    let context = context(place);
    *context = Context::new();
    context.registers[0] = entry.entry;
    context.registers[SP] = entry.stack;
    // Its tables and its program are new; a former activity in this place had the same number of an address space.
    csr::fence_space(space(place));
    csr::fence_instructions();
}

/// A page of the activity in this place was mapped.
pub fn mapped(place: usize) {
    csr::fence_space(space(place));
}

/// Switches the hart's registers that are not saved at every trap to the next activity.
pub fn switch(previous: Option<usize>, next: usize, satp: u64) {
    if let Some(previous) = previous {
        park(previous);
    }
    context(next).restore_float();
    csr::set_satp(satp | space(next) << 44);
}

/// The activity in this place does not run for a while.
pub fn park(place: usize) {
    let context = context(place);
    if context.status & csr::STATUS_FLOAT == csr::STATUS_FLOAT {
        context.save_float();
    }
}

/// Reads a word of this tile's memory.
pub fn read_word(physical: u64) -> u64 {
    // SAFETY: addresses come from page tables that TileMux built in memory that the kernel gave to it for that.
    unsafe { (physical as *const u64).read_volatile() }
}

/// Writes a word of this tile's memory.
pub fn write_word(physical: u64, value: u64) {
    // SAFETY: as for `read_word`.
    unsafe { (physical as *mut u64).write_volatile(value) }
}

/// Writes 4 bytes of an environment page.
pub fn write_half(physical: u64, value: u32) {
    // SAFETY: the address was translated by an activity's page table, and TileMux's own memory is in none.
    unsafe { (physical as *mut u32).write_volatile(value) }
}

/// Reads a byte of an activity's memory.
pub fn read_byte(physical: u64) -> u8 {
    // SAFETY: as for `write_half`.
    unsafe { (physical as *const u8).read_volatile() }
}

/// The label of a fetched message.
pub fn message_label(address: u64) -> u64 {
    // SAFETY: as for `message_words`.
    unsafe { (*(address as *const Header)).label }
}

/// The payload of a fetched message.
pub fn message_words(address: u64) -> Words<8> {
    let mut words = Words::new();
    // SAFETY: the unit wrote header and payload there, in a slot that is larger than eight words and a header.
    unsafe {
        let length = (*(address as *const Header)).length;
        let payload = (address as *const u8).add(HEADER_SIZE).cast::<u64>();
        for index in 0..usize::from(length / 8).min(8) {
            words.push(&[payload.add(index).read_volatile()]);
        }
    }
    words
}

/// Copies data to a place from which the unit can send it.
pub fn out(data: &[u8]) -> &'static [u8] {
    // SAFETY: see the module; every caller is done with the data, because commands complete, before the next call.
    let out = unsafe { &mut *OUT.0.get() };
    let out = &mut out.0[..data.len()];
    out.copy_from_slice(data);
    out
}
