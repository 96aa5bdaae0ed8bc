//! Calls itself until its stack is full.
//!
//! Arguments: `depth`: number of calls, some hundred bytes each (default: without end).
#![no_std]
#![no_main]

use bulkhead_lib::argument;

bulkhead_lib::main!(main);

fn main() -> u64 {
    deeper(argument::value("depth", u64::MAX));
    0
}

fn deeper(left: u64) -> u64 {
    let frame = core::hint::black_box([left; 32]);
    if left == 0 {
        return frame[0];
    }
    // The addition keeps the compiler from turning the call into a loop.
    deeper(core::hint::black_box(left - 1)).wrapping_add(frame[31])
}
