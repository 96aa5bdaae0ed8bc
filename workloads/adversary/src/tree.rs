//! Makes as many capabilities as it can, all derived from one, many of them active, and revokes the first one; over and over.
//!
//! Arguments: `rounds` (3), `every` (8): one capability in this many is active, `shared` (0; 1: others use the tile, so only kernel memory
//! is compared). Exit code: 0 if all quota was back after each round.
#![no_std]
#![no_main]

use bulkhead_lib::abi::syscall::{
    SEL_FREE, SEL_KERNEL_MEMORY, SEL_MEMORY, SEL_TILE, SELECTORS, Syscall,
};
use bulkhead_lib::{argument, marker, println, syscall};

bulkhead_lib::main!(main);

fn left() -> [syscall::Results; 2] {
    [SEL_TILE, SEL_KERNEL_MEMORY].map(|selector| {
        let query = Syscall::Query { selector };
        syscall::call(&query).unwrap_or_default()
    })
}

/// Makes the tree; returns its number of capabilities.
fn grow(every: u16) -> u16 {
    for target in SEL_FREE..SELECTORS {
        let derive = Syscall::DeriveMemory {
            source: match target {
                SEL_FREE => SEL_MEMORY,
                // A bush of many branches of some length.
                _ if target % 16 == 0 => SEL_FREE,
                _ => target - 1,
            },
            target,
            offset: 0,
            size: 64,
            rights: 1,
        };
        match syscall::call(&derive) {
            Ok(_) => {}
            // Selectors that the manager uses, or nothing left to pay with.
            Err(_) if target > SEL_FREE => return target - SEL_FREE,
            Err(_) => return 0,
        }
        if target % every == 0 {
            let _ = syscall::activate(target);
        }
    }
    SELECTORS - SEL_FREE
}

fn main() -> u64 {
    let rounds: u64 = argument::value("rounds", 3);
    let every = argument::value("every", 8u16).max(1);
    let from = usize::from(argument::value("shared", 0u8) != 0);
    let before = left();
    for round in 0..rounds {
        let made = grow(every);
        marker::span_begin(round);
        let revoke = Syscall::Revoke {
            selector: SEL_FREE,
            keep: 0,
        };
        let done = syscall::call(&revoke);
        marker::span_end(round);
        if done.is_err() || left()[from..] != before[from..] {
            println!("round {round}: {done:?}, quota was lost or made");
            return 1;
        }
        println!("{made} capabilities revoked");
    }
    0
}
