//! Calls itself until its stack is full.
//!
//! Arguments: `depth`: how often, at some hundred bytes each; without it, without end.
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
    // The addition keeps the call from becoming a loop.
    deeper(core::hint::black_box(left - 1)).wrapping_add(frame[31])
}
