//! Calls itself until its stack is full.
#![no_std]
#![no_main]

bulkhead_lib::main!(main);

fn main() -> u64 {
    deeper(core::hint::black_box(1))
}

fn deeper(depth: u64) -> u64 {
    let frame = core::hint::black_box([depth; 32]);
    if depth == 0 {
        return frame[0];
    }
    // The addition keeps the call from becoming a loop.
    deeper(core::hint::black_box(depth + 1)) + frame[31]
}
