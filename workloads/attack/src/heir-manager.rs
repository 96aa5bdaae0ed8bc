//! A manager that starts nothing from its description. On every tile that it has, it starts its own children one after the other, as urgent
//! and with as much processor time as it can get, each with another wish. Each makes a check marker of its number: 100 times the tile, plus
//! 1, ...
#![no_std]
#![no_main]

mod child;
mod heirs;
mod window;

use bulkhead_lib::abi::syscall::{SEL_FREE, SEL_KERNEL_MEMORY, SEL_TILES};
use bulkhead_lib::{println, time};
use child::revoke;
use heirs::{Heir, Wish};

bulkhead_lib::main!(main);

/// Children on each tile.
const CHILDREN: u16 = 5;
/// Nanoseconds that each child but the last may live.
const LIFE: u64 = 8_000_000;
/// The first of its own selectors, after those that it was given.
const FIRST: u16 = SEL_FREE + 100;

fn main() -> u64 {
    let mut selector = FIRST;
    let mut next = || {
        selector += 3;
        selector
    };
    for tile in 0..16 {
        for memory in 0..16 {
            let window = next();
            if !window::show(tile, memory, window) {
                continue;
            }
            let mut started = 0;
            for number in 0..CHILDREN {
                let heir = Heir {
                    selector: next(),
                    tile: SEL_TILES + tile,
                    purse: SEL_KERNEL_MEMORY,
                    memory: window,
                    code: 0,
                    reply: 4096 + 256 * u64::from(number),
                    name: "heir",
                    number: 100 * u64::from(tile) + u64::from(number) + 1,
                    wish: [
                        Wish::Any,
                        Wish::Period,
                        Wish::Tenth,
                        Wish::Urgent,
                        Wish::Grandchild,
                    ][usize::from(number % CHILDREN)],
                };
                let runs = heir.start();
                started += u32::from(runs);
                if runs && number + 1 < CHILDREN {
                    // The next child must find all the time that this one had.
                    time::sleep_until(time::now() + LIFE);
                    for selector in [heir.selector, heir.selector + 2] {
                        revoke(selector);
                    }
                }
            }
            println!("started {started} children on tile {tile}");
        }
    }
    loop {
        core::hint::spin_loop();
    }
}
