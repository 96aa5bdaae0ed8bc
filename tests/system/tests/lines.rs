//! The tiled OS on caches that hold data.

use bulkhead_abi::marker::MarkerKind;
use bulkhead_system_tests::{Blow, Report, Strike, boot_struck, boot_text};

/// After lines have been written back, stores are in memory, and loads see what was written to memory; not before.
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
    assert_eq!(old(&boot_text(text, &[]).remove(0)), [512, 512]);
}

/// When pages are taken back, their pager reads them past the caches of the client: TileMux writes their lines back.
#[test]
fn a_page_goes_and_comes_back_through_the_caches() {
    let text = r#"<system name="pages" platform="tiled-gem5" duration="120ms" manager-tile="1"><domain name="d">
  <app name="files" tile="2" program="tiled/files" memory="1MiB" background="true"><argument name="limit" value="1ms"/>
    <rgate name="priority-0" slots="8" slot-size="320B"/><mgate name="disk" size="2MiB"/></app>
  <app name="pager" tile="3" program="tiled/pager" background="true"><argument name="pages" value="24"/>
    <rgate name="faults" slots="4" slot-size="64B"/><rgate name="requests" slots="4" slot-size="320B"/><sgate name="files" to="files"/></app>
  <app name="client" tile="4" program="paging/churn" memory="512KiB" pager="pager"><sgate name="files" to="files"/><sgate name="pager" to="pager" gate="requests"/></app>
</domain></system>"#;
    let report = boot_text(text, &[]).remove(0);
    assert_eq!(report.code, Some(0), "{}", report.console);
    assert!(report.printed("client")[0].contains("of its own"));
}

/// A manager with tiles 4 and 5, which it shares with others, gives the same memory to one child after the other.
fn owners() -> String {
    let spin = |name: &str, tile: u16| {
        format!(r#"<app name="{name}" tile="{tile}" program="adversary/spin" background="true"/>"#)
    };
    format!(
        r#"<system name="owners" platform="./shared.xml" duration="100ms" manager-tile="1">
  <domain name="others">{}{}</domain>
  <manager name="owners" tile="3" program="attack/new-owner">
    <limit endpoints="40" page-tables="60" kernel-memory="64KiB" memory="4MiB"/>
    <cpu quota="50%" period="1ms"/>
    <domain name="below">{}{}</domain>
  </manager>
</system>"#,
        spin("near", 4),
        spin("far", 5),
        spin("below-near", 4),
        spin("below-far", 5)
    )
}

/// A former owner of memory leaves nothing in the caches that enters it later, and nothing that the next owner sees.
#[test]
fn dirty_lines_end_with_their_owner() {
    let report = boot_text(&owners(), &[]).remove(0);
    println!("{}", report.console);
    assert_eq!(report.printed("owners").len(), 4, "{}", report.console);
    assert_eq!(
        report.stopped("owners"),
        Some("exit 0"),
        "{}",
        report.console
    );
    // The hoarder stored, and the other lines were evicted; the second owner stored, and its successors found no line of it.
    assert_eq!(report.values(MarkerKind::Check, 4), [16, 48]);
    assert_eq!(report.values(MarkerKind::Check, 5), [32, 0, 0]);
}

/// The same with the first owner's tile in the hands of an attacker, which stores to the memory until its window closes and then evicts all
/// lines. It agrees to everything that the kernel asks, so it continues to the end.
#[test]
fn dirty_lines_of_a_captured_tile_end_with_its_windows() {
    let text = owners();
    let began = boot_text(&text, &[]).remove(0).began(4);
    let strike = Strike {
        // Half a millisecond after the hoarder has stored, at 2 GHz.
        at: began.expect("it runs") / 2 + 500_000,
        tile: 4,
        how: Blow::Capture(4),
    };
    let report = boot_struck(&text, strike);
    println!("{}", report.console);
    assert_eq!(
        report.stopped("owners"),
        Some("exit 0"),
        "{}",
        report.console
    );
    let stores = report.values(MarkerKind::Check, 4);
    let stores = stores.iter().find(|check| **check >> 32 == 11);
    let stores = stores.map_or(0, |check| check & 0xFFFF_FFFF);
    assert!(stores > 10_000, "no attack: {}", report.console);
    assert_eq!(report.values(MarkerKind::Check, 5), [32, 0, 0]);
}
