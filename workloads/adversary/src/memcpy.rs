//! A memory hog: copies between two halves of its heap for ever, as fast as it can.
//!
//! With memory larger than the tile's caches every line is read from and written to main memory.
#![no_std]
#![no_main]

extern crate alloc;

use alloc::vec;
use bulkhead_lib::environment;

bulkhead_lib::main!(main);

fn main() -> u64 {
    // Room for the allocator's own data is left.
    let half = (environment().heap_size as usize / 2).saturating_sub(4096);
    let mut source = vec![1u8; half];
    let mut target = vec![0u8; half];
    loop {
        target.copy_from_slice(core::hint::black_box(&source));
        core::mem::swap(&mut source, &mut target);
    }
}
