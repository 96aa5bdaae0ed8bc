//! A periodic task that computes: each job is a span from its release to its completion, and a job of the task.
//!
//! Needs a `<task>`. Arguments: `jobs` (20), `iterations` of a generator in each job (10000). Each iteration takes the same
//! time on an undisturbed hart.
#![no_std]
#![no_main]

use bulkhead_lib::task::PeriodicTask;
use bulkhead_lib::{argument, marker};

bulkhead_lib::main!(main);

fn main() -> u64 {
    let jobs: u64 = argument::value("jobs", 20);
    let iterations: u64 = argument::value("iterations", 10_000);
    let mut task = PeriodicTask::from_environment();
    let mut state = 1u64;
    for _ in 0..jobs {
        let job = task.next_job();
        marker::span_begin(job);
        for _ in 0..iterations {
            // splitmix64
            state = state.wrapping_add(0x9E37_79B9_7F4A_7C15);
            state = (state ^ state >> 30).wrapping_mul(0xBF58_476D_1CE4_E5B9);
            state ^= state >> 27;
        }
        state = core::hint::black_box(state);
        marker::span_end(job);
        task.complete();
    }
    marker::check(state);
    u64::from(task.misses() > 0)
}
