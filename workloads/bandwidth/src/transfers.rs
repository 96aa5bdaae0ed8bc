//! Workload 4, transfers: the DTU reads and writes a region of memory.
//!
//! Gates: `region` (memory, 8 KiB in the paper). Arguments: those of `role`; `rounds` over the region in each run (50).
#![no_std]
#![no_main]

extern crate alloc;

mod role;

use alloc::boxed::Box;
use bulkhead_lib::argument;
use bulkhead_lib::gate::MemoryGate;

bulkhead_lib::main!(main);

/// One transfer.
#[repr(C, align(4096))]
struct Page([u8; 4096]);

fn main() -> u64 {
    let region = MemoryGate::named("region");
    let rounds: u64 = argument::value("rounds", 50);
    let mut page = Box::new(Page([0; 4096]));
    role::run(|| {
        for _ in 0..rounds {
            for offset in (0..region.size()).step_by(page.0.len()) {
                let length = (region.size() - offset).min(page.0.len() as u64) as usize;
                let part = &mut page.0[..length];
                let read = region.read(offset, part);
                if let Err(error) = read.and_then(|()| region.write(offset, part)) {
                    panic!("a transfer failed: {error:?}");
                }
            }
        }
    })
}
