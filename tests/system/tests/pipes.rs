//! Pipes: what goes in comes out, as fast as with transfers, and ends on both sides.

use bulkhead_system_tests::{Blow, Report, Strike, boot_struck, boot_text};

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

/// A pipe's throughput as a percentage of that of transfers with its blocks, and both throughputs.
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

/// Whatever a writer sends, its reader ends with an error or with what it got, and always reports it.
#[test]
fn a_writer_that_lies_harms_only_what_it_writes() {
    for (seed, region) in [(1, false), (2, true), (3, true), (4, true)] {
        let (own, of) = match region {
            true => (
                r#"<mgate name="pipe-region" size="24KiB"/>"#,
                r#"<mgate name="pipe-region" of="writer/pipe-region" size="24KiB" rights="r"/>"#,
            ),
            false => ("", ""),
        };
        let report = run(&format!(
            r#"<system name="tongue" platform="tiled-gem5" duration="100ms" manager-tile="1"><domain name="d">
  <app name="writer" tile="2" program="attack/forked-tongue" background="true"><argument name="seed" value="{seed}"/><rgate name="answers" slots="4" slot-size="64B"/><sgate name="pipe" to="reader" gate="pipe" credits="2"/>{own}</app>
  <app name="reader" tile="3" program="service/pipe-reader"><argument name="bytes" value="100000"/><argument name="step" value="127"/><rgate name="pipe" slots="2" slot-size="512B"/>{of}</app>
</domain></system>"#
        ));
        let end = report.stopped("reader");
        assert_eq!(end, Some("exit 1"), "{seed}: {}", report.console);
        assert!(!report.printed("reader").is_empty(), "{}", report.console);
        assert!(!report.printed("writer").is_empty(), "{}", report.console);
    }
}

/// A pipe of messages, or through a region, between tiles 2 and 3; one end never reaches its own end.
fn endless(region: bool, (written, read): (u64, u64)) -> String {
    let (region1, region2, slot) = match region {
        true => (
            r#"<mgate name="pipe-region" size="24KiB"/>"#,
            r#"<mgate name="pipe-region" of="writer/pipe-region" size="24KiB" rights="r"/>"#,
            "64B",
        ),
        false => ("", "", "512B"),
    };
    format!(
        r#"<system name="endless" platform="./shared.xml" duration="100ms" manager-tile="1"><domain name="d">
  <app name="writer" tile="2" program="service/pipe-writer"><argument name="bytes" value="{written}"/><argument name="step" value="333"/><sgate name="pipe" to="reader" credits="2"/>{region1}</app>
  <app name="reader" tile="3" program="service/pipe-reader"><argument name="bytes" value="{read}"/><argument name="step" value="127"/><rgate name="pipe" slots="2" slot-size="{slot}"/>{region2}</app>
  <app name="neighbour" tile="TILE" program="service/clock" background="true"><sgate name="timer" to="timer" gate="priority-0"/></app>
  <app name="timer" tile="4" program="tiled/timer" background="true"><rgate name="priority-0"/></app>
</domain></system>"#
    )
}

/// The other end of a pipe dies: the survivor is told within a tenth of the time for which it could have waited.
#[test]
fn an_end_of_a_pipe_hears_that_the_other_one_died() {
    const MANY: u64 = 1 << 40;
    for region in [false, true] {
        // The survivor alone on its tile, or next to another application.
        for shared in [false, true] {
            for (victim, survivor) in [(2, "reader"), (3, "writer")] {
                let beside = if shared { 5 - victim } else { 5 };
                let text = endless(region, (MANY, MANY)).replace("TILE", &beside.to_string());
                let strike = Strike {
                    at: 5_000_000,
                    tile: victim,
                    how: Blow::Crash,
                };
                let report = boot_struck(&text, strike);
                let case = format!("region {region}, shared {shared}: {}", report.console);
                // The root manager ends the run when both have ended.
                assert_eq!(report.code, Some(3), "{case}");
                assert_eq!(report.stopped(survivor), Some("exit 1"), "{case}");
                assert_eq!(
                    report.printed(survivor).last(),
                    Some(&"the pipe: closed"),
                    "{case}"
                );
                let end = report.statistics.ticks / report.cycle / 2;
                assert!(end < 20_000_000, "{end} ns, {case}");
            }
        }
    }
}

/// Data written before the end is read, and a part is never taken for the whole.
#[test]
fn a_reader_gets_all_that_was_written_before_its_writer_ended() {
    // The writer ends without closing: an adversary that sends three messages and faults.
    let text = r#"<system name="part" platform="tiled-gem5" duration="100ms" manager-tile="1"><domain name="d">
  <app name="writer" tile="2" program="service/pipe-writer"><argument name="bytes" value="3000"/><argument name="step" value="480"/><argument name="fail" value="1440"/><sgate name="pipe" to="reader" credits="4"/></app>
  <app name="reader" tile="3" program="service/pipe-reader"><argument name="bytes" value="1440"/><argument name="step" value="480"/><rgate name="pipe" slots="4" slot-size="512B"/></app>
</domain></system>"#;
    let report = run(text);
    assert_eq!(
        report.stopped("writer"),
        Some("panic"),
        "{}",
        report.console
    );
    let printed = report.printed("reader");
    assert_eq!(
        printed,
        ["1440 bytes came", "the pipe: closed"],
        "{}",
        report.console
    );
}

/// The stage before a streaming unit ends without ending its stream: the unit passes on what came, ends with an error, and so does the
/// stage after it. In the other direction, units before a stage that died end, too.
#[test]
fn ends_of_pipes_that_are_units_hear_it_too() {
    let chain = r#"<system name="broken" platform="tiled-accelerated" duration="100ms" manager-tile="1"><domain name="d">
  <app name="writer" tile="2" program="service/pipe-writer"><argument name="bytes" value="20000"/><argument name="step" value="480"/><argument name="fail" value="14400"/><sgate name="pipe" to="copy" credits="2"/></app>
  <app name="copy" tile="7" program="accelerator/unit"><rgate name="input" slots="2" slot-size="512B"/><sgate name="output" to="reader" credits="3"/></app>
  <app name="reader" tile="3" program="service/pipe-reader"><argument name="bytes" value="14400"/><argument name="step" value="127"/><rgate name="pipe" slots="3" slot-size="512B"/></app>
</domain></system>"#;
    let report = run(chain);
    let console = &report.console;
    assert_eq!(report.code, Some(3), "{console}");
    assert_eq!(report.stopped("copy"), Some("exit 257"), "{console}");
    let printed = report.printed("reader");
    assert_eq!(
        printed,
        ["14400 bytes came", "the pipe: closed"],
        "{console}"
    );
    // A unit between two programs, one of which dies while the stream runs.
    let endless = chain.replace("20000", "1099511627776");
    let endless = endless.replace("\"14400\"", "\"1099511627776\"");
    for (victim, others) in [(2, ["copy", "reader"]), (3, ["writer", "copy"])] {
        let strike = Strike {
            at: 5_000_000,
            tile: victim,
            how: Blow::Crash,
        };
        let report = boot_struck(&endless, strike);
        assert_eq!(report.code, Some(3), "{}", report.console);
        for name in others {
            let cause = report.stopped(name);
            let told = cause.is_some_and(|cause| cause.starts_with("exit ") && cause != "exit 0");
            assert!(told, "{name}: {}", report.console);
        }
    }
}
