//! Copies within one cache colour, again and again: a rival that keeps to its colour, or takes that of others.
//!
//! Arguments: `bytes` in all, of which half are copied to the other half. They are the `length` bytes from `first` on of each `period`, as in
//! `memory/measure`; each such block is copied within itself. `remote`: the address of the memory, in hexadecimal, instead of the program's
//! own; `extent`: its bytes, with the gaps. `passes` over all bytes, after which the program ends the run; 0: it never does. In contrast to
//! `memory/measure`, nothing is prepared, so it disturbs others from its first access on.
#![no_std]
#![no_main]

use bulkhead_bare::arch::Memory;
use bulkhead_bare::hal::{device, marker};
use bulkhead_bare::{Program, entry};

entry!(main);

fn main(program: &Program) {
    // The other harts of a program with several harts have nothing to do.
    if program.rank > 0 {
        return;
    }
    let bytes: u64 = program.value("bytes", 1 << 16);
    let memory = match program.argument("remote") {
        None => program.memory,
        Some(text) => {
            let Ok(address) = u64::from_str_radix(text, 16) else {
                panic!("remote is no hexadecimal address");
            };
            Memory::of_others(address, program.value("extent", bytes))
        }
    };
    let period: u64 = program.value("period", 4096);
    let length: u64 = program.value("length", period);
    let first: u64 = program.value("first", 0);
    let passes: u64 = program.value("passes", 0);
    assert!(
        length > 0 && bytes.is_multiple_of(length),
        "{bytes} bytes are no multiple of the {length} bytes of a block"
    );
    // To the first address in the colour.
    let skipped = memory.base().next_multiple_of(period) - memory.base() + first;
    let mut done = 0;
    loop {
        for block in 0..bytes / length {
            memory.part(skipped + block * period, length).copy();
        }
        done += 1;
        if done == passes {
            marker::check(bytes * passes);
            device::exit(0);
        }
    }
}
