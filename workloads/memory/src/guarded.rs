//! Copies from one half of its memory to the other for ever, within a budget of cache misses for each period, as MemGuard keeps it.
//!
//! Arguments: `bytes` in all; `budget`: misses of the second level for each period (0: no limit); `period` in counts of the platform's timer
//! (`<timebase>`). A copied line is two misses, and a third transfer when the modified line goes to memory, which the budget does not count.
#![no_std]
#![no_main]

use bulkhead_bare::arch::regulator::regulate;
use bulkhead_bare::{Program, entry};

entry!(main);

fn main(program: &Program) {
    // The other harts of a program with several harts have nothing to do.
    if program.rank > 0 {
        return;
    }
    let memory = program.memory.part(0, program.value("bytes", 1 << 20));
    let budget: u64 = program.value("budget", 0);
    if budget > 0 {
        regulate(program, budget, program.value("period", 1000));
    }
    loop {
        memory.copy();
    }
}
