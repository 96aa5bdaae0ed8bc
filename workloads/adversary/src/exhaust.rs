//! Allocates until its heap is exhausted.
#![no_std]
#![no_main]

extern crate alloc;

use alloc::vec::Vec;

bulkhead_lib::main!(main);

fn main() -> u64 {
    let mut hoard: Vec<Vec<u8>> = Vec::new();
    loop {
        hoard.push(core::hint::black_box(Vec::with_capacity(4096)));
    }
}
