//! The tiled OS on caches that hold the bytes of memory.

use bulkhead_system_tests::{boot, boot_lines};

const LOOP: &str = include_str!("../systems/loop.xml");

/// What was printed, without how long the worst job took: some lines come at other moments than with flat memory (decision record 0003).
fn without_times(console: &str) -> Vec<&str> {
    let mut kept = Vec::new();
    for line in console.lines() {
        match line.split_once(", worst latency ") {
            Some((before, _)) => kept.push(before),
            None => kept.push(line),
        }
    }
    kept
}

/// What the applications do, and how they end, does not depend on where bytes are.
#[test]
fn a_system_does_on_lines_what_it_does_on_flat_memory() {
    let flat = boot("loop.xml").remove(0);
    let lines = boot_lines(LOOP);
    assert_eq!(flat.code, lines.code, "{}\n{}", flat.console, lines.console);
    let printed = [&flat, &lines].map(|report| without_times(&report.console));
    assert_eq!(printed[0], printed[1]);
    assert!(printed[0].contains(&"[actuator] 10 jobs, 0 deadline misses"));
}
