//! Has a memory gate for memory that it also loads from and stores to, as an activity on another tile may have: accesses through the gate
//! bypass the caches of its tile. Each side sees the other's writes after lines have been written back, and, where caches hold data, not
//! before.
//!
//! It prints how many words were old before that, each way, and ends with 0, or 1 if a word was old afterwards.
#![no_std]
#![no_main]

use bulkhead_lib::abi::environment::ENVIRONMENT_BASE;
use bulkhead_lib::abi::syscall::{SEL_FREE, SEL_MEMORY, Syscall, SyscallError};
use bulkhead_lib::gate::MemoryGate;
use bulkhead_lib::{lines, println, syscall};
use core::sync::atomic::{AtomicU64, Ordering::Relaxed};

bulkhead_lib::main!(main);

const WORDS: usize = 512;

#[repr(C, align(4096))]
struct Page([AtomicU64; WORDS]);

/// Not zero, so it is in the part of the program that is loaded.
static PAGE: Page = Page([const { AtomicU64::new(1) }; WORDS]);

/// The word at this place, as each side writes it.
fn word(at: usize, turn: u64) -> u64 {
    at as u64 ^ turn << 32
}

fn gate() -> Result<MemoryGate, SyscallError> {
    syscall::call(&Syscall::DeriveMemory {
        source: SEL_MEMORY,
        target: SEL_FREE,
        offset: &raw const PAGE as u64 - ENVIRONMENT_BASE,
        size: size_of::<Page>() as u64,
        rights: 3,
    })?;
    let (endpoint, size) = syscall::activate(SEL_FREE)?;
    Ok(MemoryGate::new(endpoint, size))
}

/// Words in memory that are not this turn's.
fn old_in_memory(gate: &MemoryGate, turn: u64) -> usize {
    let mut seen = [0; 8 * WORDS];
    if gate.read(0, &mut seen).is_err() {
        return WORDS;
    }
    let words = seen.as_chunks().0.iter().enumerate();
    let old = |(at, bytes): &(usize, &[u8; 8])| u64::from_le_bytes(**bytes) != word(*at, turn);
    words.filter(old).count()
}

/// Loaded words that are not this turn's.
fn old_here(turn: u64) -> usize {
    let words = PAGE.0.iter().enumerate();
    words
        .filter(|(at, here)| here.load(Relaxed) != word(*at, turn))
        .count()
}

fn main() -> u64 {
    let gate = match gate() {
        Ok(gate) => gate,
        Err(error) => {
            println!("no gate: {error:?}");
            return 1;
        }
    };
    for (at, here) in PAGE.0.iter().enumerate() {
        here.store(word(at, 2), Relaxed);
    }
    let before = old_in_memory(&gate, 2);
    lines::write_back(&PAGE);
    let after = old_in_memory(&gate, 2);

    // Its lines are in the caches again.
    let kept = old_here(2);
    let mut bytes = [0; 8 * WORDS];
    for (at, there) in bytes.as_chunks_mut().0.iter_mut().enumerate() {
        *there = word(at, 3).to_le_bytes();
    }
    let written = gate.write(0, &bytes).is_ok();
    let stale = old_here(3);
    lines::write_back(&PAGE);
    let fresh = old_here(3);
    println!("{before} words were old in memory, and {stale} in the caches");
    u64::from(after + kept + fresh > 0 || !written)
}
