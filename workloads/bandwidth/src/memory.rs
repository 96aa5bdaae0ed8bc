//! Workload 2, memory accesses: copies between two places that together do not fit the tile's caches.
//!
//! Arguments: those of `role`; `size`, bytes copied in each run (65536). Half of the heap is copied to the other half, piece
//! by piece, so the application's memory must be larger than the second-level cache.
#![no_std]
#![no_main]

extern crate alloc;

mod role;

use alloc::vec;
use bulkhead_lib::{argument, environment, println};

bulkhead_lib::main!(main);

fn main() -> u64 {
    let size: usize = argument::value("size", 65_536);
    // Room for the allocator's own data is left.
    let half = (environment().heap_size as usize / 2).saturating_sub(4096);
    if size == 0 || half < size {
        println!("the heap is too small for pieces of {size} bytes");
        return 1;
    }
    let source = vec![1u8; half];
    let mut target = vec![0u8; half];
    let mut at = 0;
    role::run(|| {
        if at + size > half {
            at = 0;
        }
        target[at..at + size].copy_from_slice(core::hint::black_box(&source[at..at + size]));
        core::hint::black_box(&mut target);
        at += size;
    })
}
