//! A system that cannot be started is explained, and the run ends.

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
