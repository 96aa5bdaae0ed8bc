//! Tiles and applications in the hands of attackers, tiles that do not answer, activities that die at any moment: nobody else is
//! affected.

use bulkhead_abi::marker::MarkerKind;
use bulkhead_abi::tilemux::PRINT_REPLY_SLOTS;
use bulkhead_system_tests::{Blow, Report, Strike, boot_struck, boot_text, control};

/// Jobs of the loop.
const JOBS: usize = 65;

/// A control loop over three tiles, a client that calls the kernel all the time, and on tile 5 a caller whose receiver on tile 6 takes
/// its message and ends 3 ms later: then the kernel sends a request to tile 5. The state of tile 5 must affect nobody else.
fn system() -> String {
    format!(
        r#"<system name="captured" platform="tiled-gem5" duration="100ms" manager-tile="1">
  <domain name="control" criticality="A">
    {}
  </domain>
  <domain name="other">
    <app name="calls" tile="7" program="latency/syscall"><argument name="runs" value="22000"/></app>
    <app name="ping" tile="5" program="latency/ping" background="true"><sgate name="pong" to="deaf"/></app>
    <app name="deaf" tile="6" program="adversary/deaf"><argument name="delay" value="3ms"/><rgate name="input"/></app>
  </domain>
</system>"#,
        control::apps(JOBS)
    )
}

/// Only tile 5 was affected. Returns the worst of the other client's calls to the kernel, in cycles.
fn unharmed(report: &Report) -> u64 {
    assert_eq!(report.code, Some(0), "{}", report.console);
    for name in control::LOOP.iter().chain(&["calls", "deaf"]) {
        assert_eq!(report.stopped(name), Some("exit 0"), "{}", report.console);
    }
    assert!(control::kept_up(report, JOBS));
    let calls = report.spans(7);
    assert_eq!(calls.len(), 22_000);
    calls[100..].iter().copied().max().unwrap_or(0)
}

#[test]
fn a_captured_tile_gets_nothing_and_delays_nobody() {
    let reports = boot_text(&system(), &[]);
    let alone = unharmed(&reports[0]);
    println!("worst call of another tile: {alone} cycles with a tile that answers");
    // Half a millisecond after its start, at 2 GHz.
    let at = reports[0].began(5).expect("it starts") / 2 + 500_000;
    for kind in 0..4 {
        let strike = Strike {
            at,
            tile: 5,
            how: Blow::Capture(kind),
        };
        let report = boot_struck(&system(), strike);
        let worst = unharmed(&report);
        let counts: Vec<(u64, u64)> = report
            .values(MarkerKind::Check, 5)
            .iter()
            .map(|value| (value >> 32, value & 0xFFFF_FFFF))
            .collect();
        let of = |code| counts.iter().find(|c| c.0 == code).map(|c| c.1);
        println!(
            "attack {kind}: {:?} of {:?} attempts refused; worst call of another tile {worst} cycles",
            of(8),
            of(7)
        );
        for code in 1..=6 {
            assert_eq!(of(code), Some(0), "attack {kind}, code {code}: {counts:?}");
        }
        assert!(of(8) > Some(10_000));
        // Half a second would be a billion cycles.
        assert!(worst <= 2 * alone, "{worst} cycles, {alone} alone");
        if kind == 3 {
            // One answer more than there was room for: the kernel keeps it, and the tile may print again.
            let room = Some(u64::from(PRINT_REPLY_SLOTS));
            assert!(of(9) >= room && of(10) == Some(1), "{counts:?}");
        }
        // Nothing but the tile itself is lost.
        assert_eq!(
            report.stopped("ping"),
            // One of the lies was true: that its own activity has stopped.
            Some(match kind {
                1 => "panic",
                _ => "its tile was lost",
            }),
            "{}",
            report.console
        );
    }
}

/// An application that forges and repeats messages, next to a neighbour on its tile that has gates of its own.
#[test]
fn forged_and_repeated_messages_are_refused() {
    let text = r#"<system name="forged" platform="./shared.xml" duration="100ms" manager-tile="1"><domain name="d">
  <app name="repeater" tile="2" program="adversary/repeater"><rgate name="input"/><sgate name="judge" to="judge"/></app>
  <app name="neighbour" tile="2" program="latency/ping"><argument name="runs" value="200"/><sgate name="pong" to="pong" gate="input"/></app>
  <app name="caller" tile="3" program="latency/ping"><argument name="runs" value="20"/><sgate name="pong" to="repeater"/></app>
  <app name="judge" tile="4" program="latency/pong" background="true"><rgate name="input" slots="1"/></app>
  <app name="pong" tile="5" program="latency/pong" background="true"><rgate name="input" slots="1"/></app>
</domain></system>"#;
    let reports = boot_text(text, &[]);
    let report = &reports[0];
    println!("{:?}", report.printed("repeater"));
    assert_eq!(report.code, Some(0), "{}", report.console);
    for name in ["repeater", "neighbour", "caller"] {
        assert_eq!(report.stopped(name), Some("exit 0"), "{}", report.console);
    }
    // Each call had one answer.
    assert_eq!(report.spans(3).len(), 20);
}

/// An application with a service, a pager and a manager on tile 5; the applications that depend on them, and others that do not, are
/// elsewhere.
const BEFORE_ITS_START: &str = r#"<domain name="other">
    <app name="server" tile="5" program="service/fragile" background="true"><service restart="on-failure" restarts="2"/><rgate name="priority-0" slots="4"/></app>
    <app name="asker" tile="6" program="service/persistent"><session name="service" to="server"/></app>
    <app name="pager" tile="5" program="tiled/pager" background="true" memory="256KiB"><argument name="pages" value="8"/><rgate name="faults" slots="2"/><rgate name="requests" slots="2"/></app>
    <app name="paged" tile="7" program="adversary/witness" memory="256KiB" pager="pager"><argument name="rounds" value="3"/></app>
    <app name="calls" tile="7" program="latency/syscall"><argument name="runs" value="2000"/></app>
  </domain>
  <manager name="m" tile="5"><domain name="e">
    <app name="below" tile="6" program="adversary/witness"><argument name="rounds" value="3"/></app>
  </domain></manager>"#;

#[test]
fn a_tile_that_is_lost_before_anybody_starts_there_costs_nobody_else() {
    let text = format!(
        r#"<system name="lost" platform="./shared.xml" duration="200ms" manager-tile="1"><domain name="control" criticality="A">{}</domain>{BEFORE_ITS_START}</system>"#,
        control::apps(JOBS)
    );
    let alone = boot_text(&text, &[]).remove(0);
    assert_eq!(alone.code, Some(0), "{}", alone.console);
    // In nanoseconds: the first moment is before any activity is made on the tile; then they are made, filled and started.
    let begun = alone.began(7).expect("it starts") / 2;
    for part in [6, 7, 9, 11] {
        let strike = Strike {
            at: begun * part / 12,
            tile: 5,
            how: Blow::Capture(0),
        };
        let report = boot_struck(&text, strike);
        let given_up = "`server` is not started: the kernel refused to ";
        assert!(report.console.contains(given_up), "{}", report.console);
        // Applications that needed the tile have failed.
        assert_eq!(report.code, Some(3), "{strike:?}: {}", report.console);
        for name in control::LOOP.iter().chain(&["calls"]) {
            assert_eq!(report.stopped(name), Some("exit 0"), "{}", report.console);
        }
        assert!(control::kept_up(&report, JOBS), "{}", report.console);
        let closed = "kernel: books: all is there that was there at boot";
        assert!(report.console.contains(closed), "{}", report.console);
    }
}
