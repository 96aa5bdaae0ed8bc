//! Pagers: heaps page by page, files in memory, and what becomes of the clients of pagers that fail.

use bulkhead_system_tests::{Report, boot_text};

fn run(text: &str) -> Report {
    let mut reports = boot_text(text, &[]);
    assert_eq!(reports.len(), 1);
    reports.remove(0)
}

fn system(apps: &str) -> String {
    format!(
        r#"<system name="pagers" platform="./shared.xml" duration="20ms" manager-tile="1"><domain name="d">{apps}</domain></system>"#
    )
}

const PAGER: &str = r#"<app name="pager" tile="3" program="tiled/pager" background="true">ARGUMENTS<rgate name="faults" slots="4" slot-size="64B"/></app>"#;

fn touch(name: &str, tile: u16, more: &str) -> String {
    format!(
        r#"<app name="{name}" tile="{tile}" program="paging/touch" memory="512KiB" {more}><argument name="pages" value="16"/><argument name="print" value="1"/></app>"#
    )
}

/// A fault takes so many cycles on `tiled-gem5` at most for the only client of a pager: usually, and at worst, while the kernel has other
/// work. What docs/promises.md promises.
const USUAL: u64 = 15_000;
const WORST: u64 = 30_000;

#[test]
fn the_catalogs_system_works_and_its_faults_are_bounded() {
    let reports = boot_text(
        &std::fs::read_to_string(concat!(
            env!("CARGO_MANIFEST_DIR"),
            "/../../catalog/systems/pager.xml"
        ))
        .expect("the catalog"),
        &[],
    );
    for report in &reports {
        assert_eq!(report.code, Some(0), "{}", report.console);
    }
    let spans = |report: usize, tile: u16| {
        let mut spans = reports[report].spans(tile);
        spans.sort_unstable();
        spans
    };
    let (alone, shared, lazy) = (spans(0, 4), spans(1, 4), spans(2, 6));
    assert_eq!((alone.len(), shared.len(), lazy.len()), (32, 32, 32));
    let file = spans(1, 5);
    for (who, times) in [
        ("one client of the pager", &alone),
        ("beside a client that reads a file", &shared),
        ("that client's pages of the file", &file),
        ("TileMux alone", &lazy),
    ] {
        println!(
            "first use of a page, {who}: {} to {} cycles, median {}",
            times[0],
            times[times.len() - 1],
            times[times.len() / 2]
        );
    }
    assert!(alone[16] <= USUAL && alone[31] <= WORST, "{alone:?}");
    // Faults are answered in order: whoever comes waits for the other client's at most.
    assert!(shared[31] <= alone[31] + file[7], "{shared:?} {file:?}");
    assert!(alone[16] > lazy[16]);
    let printed = reports[1].printed("mapped");
    assert_eq!(printed, ["a text that nobody has looked at"]);
}

#[test]
fn text_and_transfers_of_pages_that_nobody_has_used() {
    for more in ["", "heap=\"lazy\"", "pager=\"pager\""] {
        let region = r#"<mgate name="region" size="4KiB"/></app>"#;
        let apps =
            PAGER.replace("ARGUMENTS", "") + &touch("touch", 4, more).replace("</app>", region);
        let report = run(&system(&apps));
        assert_eq!(report.code, Some(0), "{more}: {}", report.console);
        assert!(
            report
                .printed("touch")
                .iter()
                .any(|l| l.contains("printed")),
            "{}",
            report.console
        );
    }
}

#[test]
fn clients_share_a_tile_with_each_other_and_with_their_pager() {
    let apps = PAGER
        .replace("tile=\"3\"", "tile=\"4\"")
        .replace("ARGUMENTS", r#"<argument name="around" value="4"/>"#)
        + &touch("a", 4, "pager=\"pager\"")
        + &touch("b", 4, "pager=\"pager\"")
        + &touch("c", 5, "pager=\"pager\"");
    let report = run(&system(&apps));
    assert_eq!(report.code, Some(0), "{}", report.console);
    for name in ["a", "b", "c"] {
        assert!(
            report.printed(name).contains(&"16 pages"),
            "{}",
            report.console
        );
    }
}

#[test]
fn who_wants_more_than_its_pages_ends_alone() {
    let greedy = touch("greedy", 5, "pager=\"pager\" background=\"true\"")
        .replace("value=\"16\"", "value=\"40\"");
    let apps = PAGER.replace("ARGUMENTS", r#"<argument name="pages" value="30"/>"#)
        + &touch("modest", 4, "pager=\"pager\"")
        + &greedy;
    let report = run(&system(&apps));
    assert_eq!(report.code, Some(0), "{}", report.console);
    assert!(report.console.contains("NoQuota"), "{}", report.console);
    let stopped = report.stopped("greedy");
    assert!(
        stopped.is_some_and(|why| why.starts_with("store page fault")),
        "{}",
        report.console
    );
}

#[test]
fn a_pager_that_fails_takes_its_own_clients_only() {
    let bad = r#"<app name="bad" tile="6" program="paging/bad-pager" background="true"><argument name="how" value="HOW"/><rgate name="faults" slots="4" slot-size="64B"/></app>"#;
    for how in ["silent", "ends", "lies"] {
        // One client beside the victim on its tile, one elsewhere, with a good pager.
        let apps = PAGER.replace("ARGUMENTS", "")
            + &bad.replace("HOW", how)
            + &touch("victim", 5, "pager=\"bad\" background=\"true\"")
            + &touch("beside", 5, "pager=\"pager\"")
            + &touch("elsewhere", 4, "pager=\"pager\"");
        let report = run(&system(&apps));
        assert_eq!(report.code, Some(0), "{how}: {}", report.console);
        for name in ["beside", "elsewhere"] {
            let lines = report.printed(name);
            assert!(lines.contains(&"16 pages"), "{how}: {lines:?}");
        }
        assert!(report.printed("victim").is_empty(), "{how}");
        // Without a pager its next page does not come.
        let ended = report.stopped("victim").is_some();
        assert_eq!(ended, how == "ends", "{how}: {}", report.console);
    }
}
