//! Pipes: what goes in comes out, as fast as transfers, and ends on both sides.

use bulkhead_system_tests::{Report, boot_text};

fn run(text: &str) -> Report {
    let mut reports = boot_text(text, &[]);
    assert_eq!(reports.len(), 1);
    reports.remove(0)
}

/// 200 pieces of 2016 bytes through a pipe and by transfers.
const SPEED: &str = r#"<system name="pipe" platform="PLATFORM" duration="100ms" manager-tile="1">
  <domain name="d">
    <app name="writer" tile="2" program="service/pipe-writer"><argument name="bytes" value="403200"/><sgate name="pipe" to="reader" credits="4"/></app>
    <app name="reader" tile="3" program="service/pipe-reader"><argument name="bytes" value="403200"/><rgate name="pipe" slots="4" slot-size="2KiB"/></app>
  </domain>
  <domain name="raw">
    <app name="blocks" tile="4" program="service/blocks"><argument name="count" value="200"/><mgate name="region" size="4KiB"/></app>
  </domain>
  <variant name="pipe"><without domain="raw"/></variant>
  <variant name="raw"><without domain="d"/></variant>
</system>"#;

#[test]
fn a_pipe_is_nearly_as_fast_as_transfers() {
    // Tenths of the throughput of transfers. On the FPGA's platform the commands for a piece take longer than its transfer.
    for (platform, tenths) in [("tiled-gem5", 8), ("tiled-fpga", 4)] {
        let reports = boot_text(&SPEED.replace("PLATFORM", platform), &[]);
        for report in &reports {
            assert_eq!(report.code, Some(0), "{}", report.console);
        }
        let (pipe, raw) = (reports[0].spans(3)[0], reports[1].spans(4));
        // A piece is written and read; both sides work at once, so the slower transfer counts.
        let transfer = raw[0].max(raw[1]);
        println!(
            "{platform}: pipe {pipe} cycles, writing {}, reading {}: {:.2}",
            raw[0],
            raw[1],
            transfer as f64 / pipe as f64
        );
        assert!(
            transfer * 10 >= pipe * tenths,
            "{pipe} cycles, {transfer} by transfers"
        );
    }
}

#[test]
fn a_stream_of_odd_pieces_arrives_whole() {
    let text = r#"<system name="odd" platform="tiled-gem5" duration="100ms" manager-tile="1">
  <domain name="d">
    <app name="writer" tile="2" program="service/pipe-writer"><argument name="bytes" value="20011"/><argument name="step" value="333"/><sgate name="pipe" to="reader" credits="2"/></app>
    <app name="reader" tile="3" program="service/pipe-reader"><argument name="bytes" value="20011"/><argument name="step" value="127"/><rgate name="pipe" slots="2" slot-size="512B"/></app>
  </domain>
</system>"#;
    let report = run(text);
    assert_eq!(report.code, Some(0), "{}", report.console);
}
