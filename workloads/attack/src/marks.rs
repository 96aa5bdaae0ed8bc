//! Emits markers without end until the simulator has no room left for the markers of its tile, neither its own nor its neighbours'.
#![no_std]
#![no_main]

use bulkhead_lib::marker;

bulkhead_lib::main!(main);

fn main() -> u64 {
    for number in 0.. {
        marker::span_begin(number);
        marker::span_end(number);
    }
    0
}
