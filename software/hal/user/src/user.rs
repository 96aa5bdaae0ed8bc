//! What an application in user mode needs from assembly: its entry and calls to TileMux.
//!
//! Why it exists: both need registers by name. What it deliberately does not know: the meaning of the calls.

use bulkhead_abi::environment::{ENVIRONMENT_BASE, ENVIRONMENT_SIZE, Environment};
use bulkhead_abi::message::{HEADER_SIZE, Header};
use bulkhead_abi::tilemux::Ecall;
use core::arch::asm;

/// Calls TileMux.
#[inline(always)]
pub fn ecall(call: Ecall, first: u64, second: u64) -> u64 {
    let result;
    // SAFETY: TileMux preserves all registers but a0, and touches only memory of this activity that it names in
    // the call, for reading.
    unsafe {
        asm!("ecall", in("a7") call as u64, inlateout("a0") first => result, in("a1") second, options(nostack));
    }
    result
}

/// The environment page.
#[inline(always)]
pub fn environment() -> &'static Environment {
    // SAFETY: the loader of an activity maps this page before the activity starts, read-only and for its whole life; every bit
    // pattern is a valid `Environment`. TileMux changes `shared` only, which is read through `is_shared`.
    unsafe { &*(ENVIRONMENT_BASE as *const Environment) }
}

/// The whole environment page, for its tables.
pub fn environment_bytes() -> &'static [u8; ENVIRONMENT_SIZE] {
    // SAFETY: as for `environment`.
    unsafe { &*(ENVIRONMENT_BASE as *const [u8; ENVIRONMENT_SIZE]) }
}

/// Whether other activities live on this tile now.
#[inline(always)]
pub fn is_shared() -> bool {
    // SAFETY: as for `environment`; volatile because TileMux may change it at any time.
    unsafe { (&raw const (*(ENVIRONMENT_BASE as *const Environment)).shared).read_volatile() != 0 }
}

/// Gives the activity's heap, as its environment says, to the allocator. Called once, before anything allocates.
pub fn give_heap(heap: &crate::heap::LocalHeap, environment: &Environment) {
    // SAFETY: the loader mapped this region for the heap alone, and this runs once at the start.
    unsafe { heap.give(environment.heap_start, environment.heap_size) };
}

/// Prints bytes to the tile's console.
pub fn print(bytes: &[u8]) {
    while ecall(Ecall::Print, bytes.as_ptr() as u64, bytes.len() as u64) == 2 {
        ecall(Ecall::Yield, 0, 0);
    }
}

/// Memory that the activity's pager has just given to it.
pub fn pages(address: u64, size: u64) -> &'static mut [u8] {
    // SAFETY: the pager, whom this activity trusts with its memory as it trusts its loader, gives each range once, behind everything
    // that the loader mapped, and every bit pattern is a valid byte. A wrong answer ends in a fault.
    unsafe { core::slice::from_raw_parts_mut(address as *mut u8, size as usize) }
}

/// Header and payload of a message in a receive buffer of this activity.
///
/// The result is valid until the message is acknowledged; callers tie its lifetime to a type that does so. Receive buffers
/// are mapped read-only for the whole life of the activity, and every bit pattern is a valid header, so a wrong
/// address inside of them gives nonsense, and elsewhere a fault that ends the activity.
#[inline(always)]
pub fn message<'a>(address: u64) -> (&'a Header, &'a [u8]) {
    // SAFETY: the unit wrote the header, guarantees that a payload of this length is in the same slot, and does not write to the
    // slot before the acknowledgement.
    unsafe {
        let header = &*(address as *const Header);
        let payload = core::slice::from_raw_parts(
            (address as *const u8).add(HEADER_SIZE),
            header.length.into(),
        );
        (header, payload)
    }
}

/// The first eight bytes of a message's payload, if it has as many. One load, because slots are aligned, and started
/// before the length is known, because a slot holds at least 32 bytes of payload.
#[inline(always)]
pub fn message_word(address: u64) -> Option<u64> {
    let (header, _) = message(address);
    // SAFETY: as for `message`; the payload begins at a multiple of 32 bytes. Volatile, so that it stays in front.
    let word = unsafe {
        (address as *const u8)
            .add(HEADER_SIZE)
            .cast::<u64>()
            .read_volatile()
    };
    (header.length >= 8).then_some(word)
}

/// Length of a message's payload in bytes, and its first word, which means nothing if it is shorter. Both are outstanding at the
/// same time.
#[inline(always)]
pub fn message_start(address: u64) -> (u16, u64) {
    // SAFETY: as for `message` and `message_word`. Volatile, so that what follows does not come first.
    unsafe {
        let header = address as *const Header;
        let word = (address as *const u8).add(HEADER_SIZE).cast::<u64>();
        let word = word.read_volatile();
        ((&raw const (*header).length).read_volatile(), word)
    }
}

/// The label of a message.
#[inline(always)]
pub fn message_label(address: u64) -> u64 {
    // SAFETY: as for `message`. Volatile, so that what follows does not come first.
    unsafe { (&raw const (*(address as *const Header)).label).read_volatile() }
}

/// The whole words of a message's payload. Slots are aligned to 64 bytes and the header has 32, so the payload can be read as words.
#[inline(always)]
pub fn message_words<'a>(address: u64) -> &'a [u64] {
    let (header, _) = message(address);
    // SAFETY: as for `message`; every bit pattern is a number.
    unsafe {
        let words = (address as *const u8).add(HEADER_SIZE).cast();
        core::slice::from_raw_parts(words, usize::from(header.length) / 8)
    }
}

/// Defines the entry of an application in the crate that uses it: `_start` calls `bulkhead_start` of `lib`.
#[macro_export]
macro_rules! user_entry {
    ($main:path) => {
        ::core::arch::global_asm!(
            ".section .text.start, \"ax\"",
            ".globl _start",
            "_start:",
            "    mv s0, zero",
            "    mv ra, zero",
            "    call {start}",
            "    unimp",
            start = sym $main,
        );
    };
}
