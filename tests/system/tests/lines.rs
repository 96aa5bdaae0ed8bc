//! The tiled OS on caches that hold the bytes of memory.

use bulkhead_system_tests::{Report, boot, boot_lines, boot_text};

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

/// What is stored is in memory, and what is written to memory is loaded, when lines have been written back; on lines, not before.
#[test]
fn applications_write_back_lines_of_memory_that_others_reach() {
    let text = r#"<system name="past-caches" platform="tiled-gem5" duration="20ms"><domain name="d">
  <app name="past" tile="2" program="sharing/past-caches"/></domain></system>"#;
    let old = |report: &Report| {
        assert_eq!(report.code, Some(0), "{}", report.console);
        let said = report.printed("past")[0].split(' ');
        let numbers = said.filter_map(|word| word.parse().ok());
        numbers.collect::<Vec<u32>>()
    };
    if std::env::var_os("BULKHEAD_LINES").is_none() {
        assert_eq!(old(&boot_text(text, &[]).remove(0)), [0, 0]);
    }
    assert_eq!(old(&boot_lines(text)), [512, 512]);
}

/// Pages that are taken back are read by their pager past the caches of the client: TileMux writes their lines back.
#[test]
fn a_page_goes_and_comes_back_through_the_caches() {
    let text = r#"<system name="pages" platform="tiled-gem5" duration="120ms" manager-tile="1"><domain name="d">
  <app name="files" tile="2" program="tiled/files" memory="1MiB" background="true"><argument name="limit" value="1ms"/>
    <rgate name="priority-0" slots="8" slot-size="320B"/><mgate name="disk" size="2MiB"/></app>
  <app name="pager" tile="3" program="tiled/pager" background="true"><argument name="pages" value="24"/>
    <rgate name="faults" slots="4" slot-size="64B"/><rgate name="requests" slots="4" slot-size="320B"/><sgate name="files" to="files"/></app>
  <app name="client" tile="4" program="paging/churn" memory="512KiB" pager="pager"><sgate name="files" to="files"/><sgate name="pager" to="pager" gate="requests"/></app>
</domain></system>"#;
    let report = boot_lines(text);
    assert_eq!(report.code, Some(0), "{}", report.console);
    assert!(report.printed("client")[0].contains("of its own"));
}
