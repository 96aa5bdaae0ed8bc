//! Pipes: what goes in comes out, as fast as transfers, and ends on both sides.

use bulkhead_system_tests::{Report, boot_text};

fn run(text: &str) -> Report {
    let mut reports = boot_text(text, &[]);
    assert_eq!(reports.len(), 1);
    reports.remove(0)
}

/// 50 pieces of 32 KiB through a pipe, and the same blocks by transfers.
const SPEED: &str = r#"<system name="pipe" platform="PLATFORM" duration="100ms" manager-tile="1">
  <domain name="d">
    <app name="writer" tile="2" program="service/pipe-writer"><argument name="bytes" value="1638400"/><sgate name="pipe" to="reader" credits="4"/>
      REGION1</app>
    <app name="reader" tile="3" program="service/pipe-reader"><argument name="bytes" value="1638400"/><rgate name="pipe" slots="4" slot-size="SLOT"/>
      REGION2</app>
  </domain>
  <domain name="raw">
    <app name="blocks" tile="4" program="service/blocks"><argument name="block" value="BLOCK"/><argument name="count" value="50"/><mgate name="region" size="64KiB"/></app>
  </domain>
  <variant name="pipe"><without domain="raw"/></variant>
  <variant name="raw"><without domain="d"/></variant>
</system>"#;

/// Throughput of a pipe by that of transfers with its blocks, in hundredths, and both.
fn speed(platform: &str, region: bool) -> u64 {
    let bytes = 1_638_400;
    let (region1, region2, slot, block) = match region {
        true => (
            r#"<mgate name="pipe-region" size="160KiB"/>"#,
            r#"<mgate name="pipe-region" of="writer/pipe-region" size="160KiB" rights="r"/>"#,
            "64B",
            32 * 1024,
        ),
        false => ("", "", "2KiB", 2016),
    };
    let text = SPEED
        .replace("PLATFORM", platform)
        .replace("REGION1", region1)
        .replace("REGION2", region2)
        .replace("SLOT", slot)
        .replace("BLOCK", &block.to_string());
    let reports = boot_text(&text, &[]);
    for report in &reports {
        assert_eq!(report.code, Some(0), "{}", report.console);
    }
    let (pipe, raw) = (reports[0].spans(3)[0], reports[1].spans(4));
    // A piece is written and read; both sides work at once, so the slower transfer counts. The first piece is not measured.
    let transfer = raw[0].max(raw[1]) * (bytes - block) / (50 * block);
    println!(
        "{platform}, pieces of {block}: pipe {pipe} cycles, transfers {transfer}: {:.2}",
        transfer as f64 / pipe as f64
    );
    transfer * 100 / pipe
}

#[test]
fn a_pipe_through_a_region_is_nearly_as_fast_as_transfers() {
    for platform in ["tiled-gem5", "tiled-fpga"] {
        let hundredths = speed(platform, true);
        assert!(hundredths >= 80, "{platform}: {hundredths} %");
    }
}

#[test]
fn a_pipe_of_messages_is_as_fast_as_its_messages() {
    // On the FPGA's platform the commands for a message take longer than a transfer of as many bytes.
    for (platform, least) in [("tiled-gem5", 80), ("tiled-fpga", 40)] {
        let hundredths = speed(platform, false);
        assert!(hundredths >= least, "{platform}: {hundredths} %");
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

#[test]
fn a_stream_of_odd_pieces_arrives_whole_through_a_region() {
    for (step, read) in [(333, 127), (9000, 127), (333, 20000), (9000, 9000)] {
        let text = format!(
            r#"<system name="odd" platform="tiled-gem5" duration="100ms" manager-tile="1">
  <domain name="d">
    <app name="writer" tile="2" program="service/pipe-writer"><argument name="bytes" value="70011"/><argument name="step" value="{step}"/><sgate name="pipe" to="reader" credits="2"/>
      <mgate name="pipe-region" size="24KiB" rights="w"/></app>
    <app name="reader" tile="3" program="service/pipe-reader"><argument name="bytes" value="70011"/><argument name="step" value="{read}"/><rgate name="pipe" slots="2" slot-size="64B"/>
      <mgate name="pipe-region" of="writer/pipe-region" size="24KiB" rights="r"/></app>
  </domain>
</system>"#
        );
        let report = run(&text);
        assert_eq!(report.code, Some(0), "{step}, {read}: {}", report.console);
    }
}

#[test]
fn a_reader_without_the_region_says_so() {
    let text = r#"<system name="half" platform="tiled-gem5" duration="100ms" manager-tile="1">
  <domain name="d">
    <app name="writer" tile="2" program="service/pipe-writer" background="true"><argument name="bytes" value="4096"/><sgate name="pipe" to="reader" credits="2"/>
      <mgate name="pipe-region" size="24KiB"/></app>
    <app name="reader" tile="3" program="service/pipe-reader"><argument name="bytes" value="4096"/><rgate name="pipe" slots="2" slot-size="64B"/></app>
  </domain>
</system>"#;
    let report = run(text);
    assert_eq!(
        report.stopped("reader"),
        Some("exit 1"),
        "{}",
        report.console
    );
    let printed = report.printed("reader");
    assert!(printed[0].starts_with("the pipe: "), "{printed:?}");
}
