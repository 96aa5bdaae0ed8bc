//! The tiled OS on caches that hold the bytes of memory.

use bulkhead_system_tests::{boot, boot_lines};

const LOOP: &str = include_str!("../systems/loop.xml");

/// What the applications and the kernel print does not depend on where bytes are.
#[test]
fn a_system_does_on_lines_what_it_does_on_flat_memory() {
    let flat = boot("loop.xml").remove(0);
    let lines = boot_lines(LOOP);
    assert_eq!(flat.code, lines.code, "{}\n{}", flat.console, lines.console);
    assert_eq!(flat.console, lines.console);
}
