//! Prints one line in each period, and measures how long it takes until the kernel has it on the console.
//!
//! Arguments: `runs` (60), `period` (100us). Each line is a span.
#![no_std]
#![no_main]

use bulkhead_lib::{argument, marker, println, time};

bulkhead_lib::main!(main);

fn main() -> u64 {
    let runs: u64 = argument::value("runs", 60);
    let period: u64 = argument::time("period", 100_000);
    let mut next = time::now();
    for run in 0..runs {
        time::sleep_until(next);
        marker::span_begin(run);
        println!("line {run}");
        marker::span_end(run);
        next = (next + period).max(time::now());
    }
    0
}
