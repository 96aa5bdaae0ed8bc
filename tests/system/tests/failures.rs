//! A system that cannot be started is explained, and the run ends.

use bulkhead_runner::progress::Silent;
use bulkhead_runner::run;
use bulkhead_system_tests::boot_text;

#[test]
fn a_program_without_room_is_explained() {
    let text = r#"<system name="small" platform="tiled-gem5" duration="50ms" manager-tile="1">
  <domain name="d"><app name="big" tile="2" program="control/controller" memory="16KiB">
    <rgate name="input"/><sgate name="actuator" to="big"/>
  </app></domain>
</system>"#;
    let reports = boot_text(text, &[]);
    assert_eq!(reports[0].code, Some(2));
    let lines = reports[0].printed("root");
    assert!(
        lines
            .iter()
            .any(|line| line.starts_with("`big` needs at least ")),
        "{}",
        reports[0].console
    );
}

/// Before anything starts, `run` says what a manager would say on the chip, and how much memory is enough, to the page. Before the fix, a program
/// that needs more memory than it has kept all applications from starting.
#[test]
fn what_has_no_room_is_refused_before_anything_starts() {
    let big = |gates: &str, bytes: u64| {
        format!(
            r#"<domain name="d"><app name="big" tile="2" program="control/controller" memory="{bytes}B">{gates}<sgate name="actuator" to="big"/></app></domain>"#
        )
    };
    let of = |which: usize, bytes: u64| {
        let inside = match which {
            0 => big(r#"<rgate name="input"/>"#, bytes),
            1 => {
                let slots = r#"<rgate name="input" slots="3" slot-size="2KiB"/><sgate name="more" to="big" credits="2"/>"#;
                big(slots, bytes)
            }
            _ => format!(
                r#"<manager name="below" tile="3" program="tiled/network" memory="{bytes}B"><domain name="d">
  <app name="child" tile="4" program="adversary/spin" background="true"/></domain></manager>"#
            ),
        };
        format!(
            r#"<system name="small" platform="tiled-2ghz" duration="20ms" manager-tile="1">{inside}</system>"#
        )
    };
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("system.xml");
    // Room for the smallest program, so that only the built program shows how much is missing.
    let all = [
        ("application `big`", 28 << 10),
        ("application `big`", 36 << 10),
        ("manager `below`", 64 << 10),
    ];
    for (which, (who, memory)) in all.into_iter().enumerate() {
        std::fs::write(&path, of(which, memory)).expect("written");
        let options = run::Options {
            system: path.clone(),
            ..run::Options::default()
        };
        let error = run::run(&options, &Silent).err().expect("it has no room");
        assert_eq!(error.code(), 2, "{error}");
        let said = error.to_string();
        let begin = format!("the {who} has {memory} bytes of memory: ");
        assert!(said.starts_with(&begin), "{said}");
        let needed = said.rsplit(' ').next().and_then(|last| last.parse().ok());
        let needed: u64 = needed.expect("a number of bytes");
        let is_refused = |bytes: u64| {
            let report = boot_text(&of(which, bytes), &[]).remove(0);
            let name = who.split(' ').next_back().unwrap_or_default();
            let said = format!("{name} needs at least ");
            report.console.contains(&said)
        };
        let around = [needed - 4096, needed].map(is_refused);
        assert_eq!(around, [true, false], "{said}");
    }
}

#[test]
fn a_gate_that_is_missing_is_named() {
    let text = r#"<system name="gateless" platform="tiled-gem5" duration="50ms" manager-tile="1">
  <domain name="d"><app name="ping" tile="2" program="latency/ping"/></domain>
</system>"#;
    let reports = boot_text(text, &[]);
    assert_eq!(reports[0].code, Some(3));
    assert_eq!(reports[0].stopped("ping"), Some("panic"));
    assert!(
        reports[0]
            .console
            .contains(r#"no <sgate name="pong"> in the description"#)
    );
}
