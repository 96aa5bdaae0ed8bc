//! A periodic task that works on its memory: each job copies one half of a buffer to the other, line by line.
//!
//! Needs a `<task>`. Arguments: `jobs` (40), `warmup` (2), `bytes` of the buffer (64KiB: 65536). Each job is a span from its release
//! to its completion.
#![no_std]
#![no_main]

extern crate alloc;

use alloc::vec;
use bulkhead_lib::task::PeriodicTask;
use bulkhead_lib::{argument, marker};

bulkhead_lib::main!(main);

/// Words of a cache line.
const LINE: usize = 8;

fn main() -> u64 {
    let jobs: u64 = argument::value("jobs", 40);
    let warmup: u64 = argument::value("warmup", 2);
    let bytes: usize = argument::value("bytes", 65536);
    let mut buffer = vec![1u64; (bytes / 8).max(2 * LINE)];
    let mut task = PeriodicTask::from_environment();
    for number in 0..warmup + jobs {
        let job = task.next_job();
        if number == warmup {
            marker::measure_begin(jobs);
        }
        marker::span_begin(job);
        let half = buffer.len() / 2;
        let (from, to) = buffer.split_at_mut(half);
        for (from, to) in from.chunks_exact(LINE).zip(to.chunks_exact_mut(LINE)) {
            to.copy_from_slice(from);
        }
        core::hint::black_box(&buffer);
        marker::span_end(job);
        task.complete();
    }
    marker::measure_end(jobs);
    0
}
