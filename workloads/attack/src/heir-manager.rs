//! A manager that starts nothing from its description, but its own children on every tile that it has: as urgent and with as much processor
//! time as it can get, one after the other, each with another wish. Each makes a check marker of its number: 100 times the tile, and 1, ...
#![no_std]
#![no_main]

mod heirs;

use bulkhead_lib::abi::syscall::{SEL_FREE, SEL_KERNEL_MEMORY, SEL_MEMORIES, SEL_TILES, Syscall};
use bulkhead_lib::gate::MemoryGate;
use bulkhead_lib::{println, syscall, time};
use heirs::{CODE, Heir, Wish};

bulkhead_lib::main!(main);

/// Children on each tile.
const CHILDREN: u16 = 5;
/// Nanoseconds that each but the last may live.
const LIFE: u64 = 8_000_000;
/// Where it puts what it makes, behind what it was given.
const FIRST: u16 = SEL_FREE + 100;

/// Writes what children do into memory.
fn fill(memory: u16) -> bool {
    let Ok((endpoint, size)) = syscall::activate(memory) else {
        return false;
    };
    let gate = MemoryGate::new(endpoint, size);
    let code = CODE.map(u32::to_le_bytes);
    let written = gate.write(0, code.as_flattened()).is_ok();
    let request = Syscall::Deactivate {
        gate: memory,
        endpoint: gate.endpoint(),
    };
    syscall::call(&request).is_ok() && written
}

fn main() -> u64 {
    let mut selector = FIRST;
    let mut next = || {
        selector += 3;
        selector
    };
    for tile in 0..16 {
        for memory in 0..16 {
            let window = next();
            let request = Syscall::CutMemory {
                source: SEL_MEMORIES + memory,
                target: window,
                size: 32768,
            };
            if syscall::call(&request).is_err() {
                continue;
            }
            let shown = [40, 0].iter().any(|tables| {
                let request = Syscall::ConfigureTile {
                    tile: SEL_TILES + tile,
                    memory: window,
                    tables: *tables,
                };
                syscall::call(&request).is_ok()
            });
            if !shown || !fill(window) {
                let request = Syscall::Revoke {
                    selector: window,
                    keep: 0,
                };
                let _ = syscall::call(&request);
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
                    // The next one shall find all the time that this one had.
                    time::sleep_until(time::now() + LIFE);
                    for selector in [heir.selector, heir.selector + 2] {
                        let request = Syscall::Revoke { selector, keep: 0 };
                        let _ = syscall::call(&request);
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
