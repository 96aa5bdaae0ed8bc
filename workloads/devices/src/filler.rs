//! Copies memory while its accelerator fills memory: a hart and a device that load memory together.
//!
//! Arguments: `device`, the name of the accelerator (the loader gives the address of its registers for `<attach>`); `bytes`, half of which
//! are copied to the other half; `fill`, bytes behind them that one command of the accelerator fills. The program puts commands into the device's queue until it
//! is full, copies a sixteenth, and looks again; so the device has always work, if its queue lasts longer than that. After `passes` over
//! all bytes it waits for the device, looks at what was filled, and ends the run; 0: it never does.
#![no_std]
#![no_main]

use bulkhead_bare::arch::{Registers, fence};
use bulkhead_bare::hal::abi::peripheral::{
    CAPACITY, COMMAND, DESTINATION, FILL, LENGTH, QUEUED, REFUSED, SOURCE,
};
use bulkhead_bare::hal::{device, marker};
use bulkhead_bare::{Program, entry};

entry!(main);

/// Parts of a pass.
const PARTS: u64 = 16;
/// What the memory is filled with.
const WORD: u64 = 0x5EED_F111_5EED_F111;

fn main(program: &Program) {
    // The other harts of a program with several harts have nothing to do.
    if program.rank > 0 {
        return;
    }
    let name = program.argument("device").unwrap_or("accelerator");
    let unit = Registers::at(program.value(name, 0));
    let bytes: u64 = program.value("bytes", 1 << 16);
    let fill: u64 = program.value("fill", bytes);
    let passes: u64 = program.value("passes", 0);
    let filled = program.memory.part(bytes, fill);
    // The program has no line of it, so none can be written over what the device writes.
    unit.set(SOURCE, WORD);
    unit.set(DESTINATION, filled.base());
    unit.set(LENGTH, fill);
    fence();
    let capacity = unit.get(CAPACITY);
    let (mut done, part) = (0, bytes / PARTS);
    while passes == 0 || done < passes {
        for number in 0..PARTS {
            while unit.get(QUEUED) < capacity {
                unit.set(COMMAND, FILL);
                // A load may overtake a store to another register.
                fence();
            }
            program.memory.part(number * part, part).copy();
        }
        done += 1;
    }
    while unit.get(QUEUED) > 0 {}
    let wrong = (0..fill).step_by(8).find(|at| filled.get(*at) != WORD);
    assert!(wrong.is_none(), "a wrong word at {wrong:?}");
    marker::check(unit.get(REFUSED));
    device::exit(0);
}
