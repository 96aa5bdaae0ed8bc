//! Activities that die at any moment of sessions with real services: whoever depends on them is told, all others finish their work.
//!
//! A test strikes the hart of a tile at a moment: its activity goes on where nothing is. The matrix over every point of a script, with
//! all quota counted, is in the kernel's own tests; here are real servers, clients and units.

use bulkhead_system_tests::{Blow, Report, Strike, boot_struck, boot_text};

/// A file service and its client over a session, a server and its client, a pipe. Two tiles each.
const SYSTEM: &str = r#"<system name="kills" platform="tiled-gem5" duration="100ms" manager-tile="1"><domain name="d">
  <app name="files" tile="2" program="tiled/files" memory="1MiB" background="true"><argument name="limit" value="1ms"/>
    <rgate name="priority-0" slot-size="320B"/><rgate name="priority-1" slots="8" slot-size="320B"/><mgate name="disk" size="2MiB"/></app>
  <app name="file-client" tile="3" program="service/file-client"><argument name="folder" value="a"/><argument name="session" value="yes"/><sgate name="files" to="files" gate="priority-0"/></app>
  <app name="server" tile="4" program="service/example" background="true"><rgate name="priority-0"/><rgate name="priority-1"/></app>
  <app name="client" tile="5" program="service/client"><argument name="runs" value="2000"/><sgate name="service" to="server" gate="priority-0"/></app>
  <app name="writer" tile="6" program="service/pipe-writer"><argument name="bytes" value="403200"/><sgate name="pipe" to="reader" credits="4"/></app>
  <app name="reader" tile="7" program="service/pipe-reader" background="true"><argument name="bytes" value="403200"/><rgate name="pipe" slots="4" slot-size="2KiB"/></app>
</domain></system>"#;

/// Victims by tile; who depends on whom, by pairs of tiles.
const NAMES: [&str; 8] = [
    "",
    "",
    "files",
    "file-client",
    "server",
    "client",
    "writer",
    "reader",
];

/// Those that end by themselves.
const ENDING: [u16; 3] = [3, 5, 6];

/// Kills the activity of a tile at a moment; whether it was there to be killed.
fn kill(tile: u16, at: u64) -> bool {
    let how = Blow::Crash;
    let report = boot_struck(SYSTEM, Strike { at, tile, how });
    let console = &report.console;
    let name = NAMES[usize::from(tile)];
    // Nobody waits for ever, the run comes to its end.
    assert!(
        matches!(report.code, Some(0 | 3)),
        "{name} at {at} ns:\n{console}"
    );
    let cause = report.stopped(name);
    let struck = cause == Some("instruction page fault at 0x0, value 0x0");
    for other in ENDING.into_iter().filter(|other| *other != tile) {
        let ended = report.stopped(NAMES[usize::from(other)]);
        if other / 2 != tile / 2 {
            assert_eq!(ended, Some("exit 0"), "{name} at {at} ns:\n{console}");
        } else {
            // Its partner finished before, or ended by itself and said why.
            let name = NAMES[usize::from(other)];
            let said = !report.printed(name).is_empty();
            assert!(
                ended == Some("exit 0") || ended == Some("exit 1") && said,
                "{name}: {console}"
            );
        }
    }
    struck
}

/// The end of a run without a death, in nanoseconds.
fn length(report: &Report) -> u64 {
    assert_eq!(report.code, Some(0), "{}", report.console);
    report.statistics.ticks / report.cycle / 2
}

fn sweep(points: u64) {
    let alone = &boot_text(SYSTEM, &[])[0];
    let end = length(alone);
    let begin = (2..8)
        .filter_map(|tile| alone.began(tile))
        .min()
        .unwrap_or(0)
        / 2;
    let (mut runs, mut deaths) = (0, 0);
    for tile in 2..8 {
        for point in 0..points {
            let at = begin + (end - begin) * (2 * point + u64::from(tile % 2)) / (2 * points);
            runs += 1;
            deaths += u64::from(kill(tile, at));
        }
    }
    println!("{runs} moments from {begin} to {end} ns, {deaths} deaths, nobody else harmed");
    assert!(deaths > 0);
}

#[test]
fn nobody_else_is_harmed_when_an_activity_dies() {
    sweep(2);
}

/// `cargo test --release -p bulkhead-system-tests --test kills -- --ignored --nocapture`.
#[test]
#[ignore = "many runs"]
fn nobody_else_is_harmed_whenever_an_activity_dies() {
    sweep(40);
}
