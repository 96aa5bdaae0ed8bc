//! Raw transfers for comparison: writes blocks into memory, reads them from it.
//!
//! Gates: `region` (memory). Arguments: `block` (2016), `count` (100). Spans: 1 is writing, 2 is reading.
#![no_std]
#![no_main]

use bulkhead_lib::gate::MemoryGate;
use bulkhead_lib::pages::Pages;
use bulkhead_lib::{argument, marker};

bulkhead_lib::main!(main);

fn main() -> u64 {
    let region = MemoryGate::named("region");
    let block: usize = argument::value("block", 2016);
    let count: u64 = argument::value("count", 100);
    let mut buffer = Pages::new(block.div_ceil(4096));
    let data = &mut buffer.bytes_mut()[..block];
    for (span, write) in [(1, true), (2, false)] {
        for round in 0..=count {
            // The first one is cold.
            if round == 1 {
                marker::span_begin(span);
            }
            let outcome = if write {
                region.write(0, data)
            } else {
                region.read(0, data)
            };
            if outcome.is_err() {
                return 1;
            }
        }
        marker::span_end(span);
    }
    0
}
