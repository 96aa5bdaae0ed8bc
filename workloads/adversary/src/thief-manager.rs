//! A resource manager that searches for others' data: it tries to open every module through each of its capabilities, reads all memory
//! that it can name, and writes to memory that it may only read.
//!
//! In a description: `<manager program="adversary/thief-manager">`. Others' data begin with "only for others"; its own resources may be
//! called `own`. It starts nothing, and ends with 0.
#![no_std]
#![no_main]

extern crate alloc;

use alloc::vec;
use bulkhead_lib::abi::syscall::{
    MAP_READ, MAP_WRITE, ObjectKind, REPORT_DONE, SEL_DESCRIPTION, SEL_FREE, SEL_MEMORY, SELECTORS,
    Syscall, module_key,
};
use bulkhead_lib::gate::MemoryGate;
use bulkhead_lib::{println, syscall};

bulkhead_lib::main!(main);

/// The selector for whatever it gets.
const TARGET: u16 = SEL_FREE + 390;
/// Bytes of each memory that it searches.
const LOOK: usize = 4096;

fn main() -> u64 {
    let names = [
        "system.xml",
        "data:secret",
        "data:own",
        "tiled/resmgr",
        "tiled/tilemux",
        "tiled/kernel",
    ];
    for name in names {
        let mut opened = 0;
        for selector in 0..SELECTORS {
            let request = Syscall::OpenModule {
                modules: selector,
                target: TARGET,
                key: module_key(name.as_bytes()),
            };
            if syscall::call(&request).is_ok() {
                opened += 1;
                give_back();
            }
        }
        println!("{name}: opened {opened} times");
    }
    let (mut read, mut found, mut written, mut derived) = (0, 0, 0, 0);
    for selector in 0..SELECTORS {
        // Its own memory and description are its own.
        if selector == SEL_MEMORY || selector == SEL_DESCRIPTION {
            continue;
        }
        let Ok([kind, _, size, ..]) = syscall::call(&Syscall::Query { selector }) else {
            continue;
        };
        if kind != ObjectKind::Memory as u64 {
            continue;
        }
        let Ok((endpoint, _)) = syscall::activate(selector) else {
            continue;
        };
        read += 1;
        let gate = MemoryGate::new(endpoint, size);
        let mut bytes = vec![0; LOOK.min(size as usize)];
        if gate.read(0, &mut bytes).is_ok() {
            let is_theirs = |window: &[u8]| window.iter().rev().eq(b"srehto rof ylno");
            found += bytes.windows(15).filter(|window| is_theirs(window)).count();
        }
        // The next module follows the end.
        let mut beyond = [0; 8];
        found += usize::from(gate.read(size, &mut beyond).is_ok());
        if (SEL_FREE..TARGET).contains(&selector) {
            written += usize::from(gate.write(0, &[0; 8]).is_ok());
            for (offset, size, rights) in [
                (0, size, MAP_READ | MAP_WRITE),
                (0, size + 4096, MAP_READ),
                (size, 4096, MAP_READ),
            ] {
                let request = Syscall::DeriveMemory {
                    source: selector,
                    target: TARGET,
                    offset,
                    size,
                    rights,
                };
                if syscall::call(&request).is_ok() {
                    derived += 1;
                    give_back();
                }
            }
        }
        let _ = syscall::call(&Syscall::Deactivate {
            gate: selector,
            endpoint,
        });
    }
    println!("read {read} memories");
    println!("found {found}, wrote {written}, derived {derived}");
    // Claims that everything below it that should end has ended.
    let value = REPORT_DONE;
    let _ = syscall::call(&Syscall::Report { value });
    0
}

fn give_back() {
    let _ = syscall::call(&Syscall::Revoke {
        selector: TARGET,
        keep: 0,
    });
}
