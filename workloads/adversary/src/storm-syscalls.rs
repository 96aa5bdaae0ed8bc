//! Random system calls with random arguments, most of them plausible; in the end it revokes everything, and all quota must be back.
//!
//! Arguments: `rounds` (1000), `seed` (1), `shared` (0; 1: others use the tile, so only kernel memory is compared). Exit code: 0 if nothing was lost.
#![no_std]
#![no_main]

use bulkhead_lib::abi::syscall::{
    SEL_ACTIVITY, SEL_FREE, SEL_KERNEL_MEMORY, SEL_MEMORY, SEL_TILE, SYSCALL_WORDS, Syscall,
};
use bulkhead_lib::{argument, println, syscall};
use bulkhead_random::Random;

bulkhead_lib::main!(main);

/// A selector in use, a size, a small number, or any number.
fn word(random: &mut Random) -> u64 {
    match random.next() % 8 {
        0..3 => u64::from(SEL_FREE) + random.next() % 8,
        3 => random.next() % 4,
        4 => 1 << (random.next() % 20),
        5 => random.next() % 32,
        6 => u64::MAX,
        _ => random.next(),
    }
}

fn left() -> [syscall::Results; 2] {
    [SEL_TILE, SEL_KERNEL_MEMORY].map(|selector| {
        let query = Syscall::Query { selector };
        syscall::call(&query).unwrap_or_default()
    })
}

/// Calls that would only end the attack: they wait for ever, end the caller, or discard what it needs to query its quota.
fn ends(call: &Syscall) -> bool {
    match *call {
        Syscall::WaitEvent { .. } | Syscall::SemaphoreDown { .. } => true,
        Syscall::Stop { activity } => activity < SEL_FREE,
        // With a copy of its own capability it would end itself, and rightly.
        Syscall::Delegate { source, .. } | Syscall::Obtain { source, .. } => source == SEL_ACTIVITY,
        Syscall::Revoke { selector, .. } => selector < SEL_FREE,
        // Asks the caller itself, which cannot answer; it would wait until its own patience ends.
        Syscall::OpenSession { .. } => true,
        _ => false,
    }
}

fn main() -> u64 {
    let rounds: u64 = argument::value("rounds", 1000);
    let mut random = Random::new(argument::value("seed", 1));
    let before = left();
    let (mut made, mut done) = (0u64, 0u64);
    while made < rounds {
        let mut words: [u64; SYSCALL_WORDS] = core::array::from_fn(|_| word(&mut random));
        words[0] = random.next() % 28;
        let Ok(call) = Syscall::decode(&words) else {
            continue;
        };
        if ends(&call) {
            continue;
        }
        made += 1;
        done += u64::from(syscall::call(&call).is_ok());
    }
    for selector in 0..1024 {
        // The initial capabilities stay, but not what it derived from them: an endpoint onto its memory has no selector.
        let keep = u8::from(selector <= SEL_MEMORY);
        let _ = syscall::call(&Syscall::Revoke { selector, keep });
    }
    // Where another activity uses the same tile capability, its quota changes when that activity ends.
    let after = left();
    let from = usize::from(argument::value("shared", 0u8) != 0);
    let lost = after[from..] != before[from..];
    if lost {
        println!("before {before:?}, after {after:?}");
    }
    println!(
        "{made} calls, {done} done, quota {}",
        if lost { "lost" } else { "whole" }
    );
    u64::from(lost)
}
