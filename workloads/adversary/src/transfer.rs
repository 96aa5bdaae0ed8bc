//! A hog of the network and the memory: transfers by the DTU for ever.
//!
//! Gates: `region` (memory).
#![no_std]
#![no_main]

extern crate alloc;

use alloc::boxed::Box;
use bulkhead_lib::gate::MemoryGate;

bulkhead_lib::main!(main);

#[repr(C, align(4096))]
struct Page([u8; 4096]);

fn main() -> u64 {
    let region = MemoryGate::named("region");
    let mut page = Box::new(Page([0; 4096]));
    let length = (region.size() as usize).min(page.0.len());
    loop {
        for offset in (0..region.size()).step_by(length) {
            // A refused transfer is tried again: that is what an adversary does.
            let _ = region.read(offset, &mut page.0[..length]);
            let _ = region.write(offset, &page.0[..length]);
        }
    }
}
