//! Foreground and background of the interference experiment (m3-rtas24, Section V-C).
//!
//! Why it exists: each of the four workloads runs in both roles. What it deliberately does not know: the workloads.
//!
//! Arguments: `runs` (100; 0: for ever, not measured), `warmup` (1).

use bulkhead_lib::{argument, marker};

/// Runs `work` as the arguments say: `warmup` and then `runs` times with a span around each, or for ever.
pub fn run(mut work: impl FnMut()) -> u64 {
    let runs: u64 = argument::value("runs", 100);
    if runs == 0 {
        loop {
            work();
        }
    }
    let warmup: u64 = argument::value("warmup", 1);
    for run in 0..warmup + runs {
        if run == warmup {
            marker::measure_begin(runs);
        }
        marker::span_begin(run);
        work();
        marker::span_end(run);
    }
    marker::measure_end(runs);
    0
}
