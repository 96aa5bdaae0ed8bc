//! Workload 1, computation: no memory accesses beyond the first-level caches.
//!
//! Arguments: those of `role`; `iterations` of a generator for each run (10000).
#![no_std]
#![no_main]

mod role;

use bulkhead_lib::{argument, marker};

bulkhead_lib::main!(main);

fn main() -> u64 {
    let iterations: u64 = argument::value("iterations", 10_000);
    let mut state = 0x9E37_79B9_7F4A_7C15u64;
    let code = role::run(|| {
        for _ in 0..iterations {
            // splitmix64
            state = state.wrapping_add(0x9E37_79B9_7F4A_7C15);
            state = (state ^ state >> 30).wrapping_mul(0xBF58_476D_1CE4_E5B9);
            state = (state ^ state >> 27).wrapping_mul(0x94D0_49BB_1331_11EB);
            state ^= state >> 31;
        }
        state = core::hint::black_box(state);
    });
    marker::check(state);
    code
}
