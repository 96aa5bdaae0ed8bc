//! Figures that the tiled OS must reach, and properties that hold exactly to the cycle.

use bulkhead_system_tests::boot_text;

fn catalog(name: &str) -> String {
    let path = format!(
        "{}/../../catalog/systems/{name}",
        env!("CARGO_MANIFEST_DIR")
    );
    std::fs::read_to_string(path).expect("the system is in the catalog")
}

#[test]
fn round_trip_is_within_a_quarter_of_the_paper() {
    // m3-rtas24, Section V-A: 316 cycles on S-RISCV and 526 on the FPGA, without outliers.
    for (platform, paper) in [("tiled-2ghz", 316), ("tiled-star", 526)] {
        let text = catalog("m3/roundtrip.xml").replace(
            "platform=\"tiled-2ghz\"",
            &format!("platform=\"{platform}\""),
        );
        let reports = boot_text(&text, &[]);
        let report = &reports[0];
        assert_eq!(report.code, Some(0), "{}", report.console);
        let mut spans = report.spans(2);
        assert_eq!(spans.len(), 1000);
        // The first run is cold; it is the worst.
        assert_eq!(spans.iter().max(), Some(&spans[0]));
        spans.sort_unstable();
        let median = spans[500];
        assert!(
            median * 4 >= paper * 3 && median * 4 <= paper * 5,
            "{median} cycles, {paper} in the paper"
        );
    }
}

const COMPUTE: &str = r#"<system name="compute" platform="tiled-gem5" duration="50ms" manager-tile="1">
  <domain name="measured"><app name="compute" tile="2" program="bandwidth/compute"><argument name="runs" value="20"/></app></domain>
  <domain name="others">
    <app name="copy" tile="3" program="adversary/memcpy" memory="4MiB" background="true"/>
    <app name="transfer" tile="4" program="adversary/transfer" background="true"><mgate name="region" size="64KiB"/></app>
    <app name="spin" tile="5" program="adversary/spin" background="true"/>
    <app name="chatter" tile="6" program="adversary/chatter" background="true"/>
  </domain>
  <variant name="alone"><without domain="others"/></variant>
  <variant name="beside"/>
</system>"#;

#[test]
fn computation_is_never_disturbed_to_the_cycle() {
    let reports = boot_text(COMPUTE, &[]);
    // The warm-up run loads the code; after it everything is in the tile.
    assert_eq!(reports[0].spans(2)[1..], reports[1].spans(2)[1..]);
    assert_eq!(reports[0].spans(2).len(), 21);
}

#[test]
fn equal_systems_run_equally() {
    let once = boot_text(COMPUTE, &["chatter@tile=7"]);
    let again = boot_text(COMPUTE, &["chatter@tile=7"]);
    assert_eq!(once[1].digest, again[1].digest);
    assert_ne!(once[0].digest, once[1].digest);
}

#[test]
fn a_processor_quota_holds() {
    let text = r#"<system name="quota" platform="./shared.xml" duration="200ms" manager-tile="1">
  <domain name="d">
    <app name="free" tile="2" program="bandwidth/compute"><argument name="runs" value="100"/></app>
    <app name="limited" tile="2" program="adversary/spin" background="true"><cpu quota="10%" period="1ms"/></app>
  </domain>
</system>"#;
    let reports = boot_text(text, &[]);
    let spans = reports[0].spans(2);
    let (total, least): (u64, u64) = (
        spans.iter().sum(),
        spans[1..].iter().copied().min().unwrap_or(0),
    );
    // Alone each would take `least`. The other may have 10 %, in each period at once: 200000 cycles of 1 ms at 2 GHz.
    let alone = least * spans.len() as u64;
    assert!(
        total * 9 <= alone * 10 + 10 * 200_000 + alone / 5,
        "{total} cycles, {alone} alone"
    );
    assert!(
        total * 20 > alone * 21,
        "the other ran, too: {total} cycles, {alone} alone"
    );
}
