//! Pagers: heaps page by page, files in memory, and the fate of the clients of failed pagers.

use bulkhead_system_tests::{Blow, Report, Strike, boot_struck, boot_text};

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

/// The most cycles that a fault takes on `tiled-gem5` for the only client of a pager: usually, and at worst, while the kernel has other
/// work; and for a page of an open file. These are the promises in docs/promises.md.
const USUAL: u64 = 11_000;
const WORST: u64 = 30_000;
const FILE: u64 = 16_000;

#[test]
fn the_catalogs_system_works_and_its_faults_are_bounded() {
    let text = std::fs::read_to_string(concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/../../catalog/systems/pager.xml"
    ))
    .expect("the catalog");
    let mut reports = boot_text(&text, &[]);
    // The same once more; the reader of the file begins when the other client has all of its pages.
    let (before, reader) = text
        .split_once("program=\"paging/mapped\"")
        .expect("the reader");
    let later = reader.replacen("value=\"2000\"", "value=\"4000\"", 1);
    reports.extend(boot_text(
        &format!("{before}program=\"paging/mapped\"{later}"),
        &[],
    ));
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
    let (file, file_alone) = (spans(1, 5), spans(4, 5));
    for (who, times) in [
        ("one client of the pager", &alone),
        ("beside a client that reads a file", &shared),
        ("that client's pages of the file", &file),
        ("the same when nobody else asks", &file_alone),
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
    // Except the first one, for which the file is opened, and the second one, which came to be printed.
    assert!(file_alone[6] <= FILE, "{file_alone:?}");
    // Next to another client that asks without a pause, each waits for one fault of that client.
    assert!(file[6] <= FILE + USUAL, "{file:?}");
    // Faults are answered in order: each waits for at most one fault of the other client.
    assert!(shared[31] <= WORST + file[7], "{shared:?} {file:?}");
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
        // One client next to the victim on its tile, and one elsewhere, with a good pager.
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
        // Without a pager its next page never comes.
        let ended = report.stopped("victim").is_some();
        assert_eq!(ended, how == "ends", "{how}: {}", report.console);
    }
}

/// The kernel's markers (`WORK_BEGINS` and `WORK_ENDS` of its module `bounds`), its tile, and the numbers of work that is not a call: the
/// answer of a TileMux, a notification; and how many notifications it takes before anything else.
const WORK: (u16, u16) = (0x100, 0x101);
const KERNEL: u16 = 0;
const ANSWER: u64 = 66;
const NOTIFICATION: u64 = 67;
const HEARD: u64 = 4;

/// Callers of the kernel with the lowest priority, as hostile as possible.
const STORM: &str = r#"
    <app name="tree" tile="5" program="adversary/tree" background="true"><argument name="rounds" value="2"/><limit kernel-memory="180KiB"/></app>
    <app name="s1" tile="6" program="adversary/storm-syscalls" background="true"><argument name="rounds" value="3000"/><argument name="seed" value="1"/></app>
    <app name="s2" tile="7" program="adversary/storm-syscalls" background="true"><argument name="rounds" value="3000"/><argument name="seed" value="2"/></app>"#;

/// The bound of a fault is the sum of its parts: its time without others; twice the longest wait for a piece of the kernel's work, because
/// the kernel handles a call and an answer for it; and the same for each other client whose fault came earlier.
#[test]
fn a_fault_beside_hostile_neighbours_is_bounded_by_its_parts() {
    let client = |name: &str, tile: u16, start: u64| {
        touch(name, tile, "pager=\"pager\"").replace(
            "<argument name=\"print\"",
            &format!("<argument name=\"start\" value=\"{start}\"/><argument name=\"print\""),
        )
    };
    let faults = |clients: &str, others: &str| {
        let pager = PAGER.replace("ARGUMENTS", "");
        let victim = client("victim", 4, 7000);
        let text = format!(
            r#"<system name="pagers" platform="./shared.xml" duration="200ms" manager-tile="1">
                 <domain name="own" criticality="A">{pager}{victim}{clients}</domain><domain name="others">{others}</domain></system>"#
        );
        let report = run(&text);
        assert_eq!(report.code, Some(0), "{}", report.console);
        let spans = report.spans(4);
        assert_eq!(spans.len(), 16);
        let (mut call, mut answer, mut notification) = (0, 0, 0);
        for (what, cycles) in report.work(WORK.0, WORK.1, KERNEL) {
            let longest = match what {
                ANSWER => &mut answer,
                NOTIFICATION => &mut notification,
                _ => &mut call,
            };
            *longest = cycles.max(*longest);
        }
        // One piece of work, the notifications before, and one answer for each other caller of the kernel.
        let wait = call + HEARD * notification + 4 * answer;
        (spans.into_iter().max().unwrap_or(0), wait)
    };
    let (quiet, _) = faults("", "");
    println!("a fault alone: {quiet} cycles");
    // The others begin a little earlier and continue next to it.
    let rivals = client("r1", 5, 6999).replace("value=\"16\"", "value=\"24\"")
        + &client("r2", 6, 6998).replace("value=\"16\"", "value=\"24\"");
    for (others, count, storm) in [("", 0, STORM), (rivals.as_str(), 2, "")] {
        let (worst, wait) = faults(others, storm);
        let bound = (1 + count) * (quiet + 2 * wait);
        println!(
            "beside {count} clients and a storm of calls ({}): {worst} of at most {bound} cycles, {wait} a wait",
            !storm.is_empty()
        );
        assert!(worst <= bound, "{worst} {bound}");
        // The neighbours had an effect.
        assert!(worst > quiet, "{worst} {quiet}");
    }
}

/// A file service, a pager with its gate for requests, and clients that use more pages than they may have.
fn churning(pager: &str, clients: &str) -> String {
    system(&format!(
        r#"<app name="files" tile="2" program="tiled/files" memory="1MiB" background="true"><argument name="limit" value="1ms"/>
             <rgate name="priority-0" slots="8" slot-size="320B"/><mgate name="disk" size="2MiB"/></app>
           <app name="pager" tile="3" program="tiled/pager" background="true">{pager}
             <rgate name="faults" slots="4" slot-size="64B"/><rgate name="requests" slots="4" slot-size="320B"/><sgate name="files" to="files"/></app>{clients}"#
    ))
    .replace("20ms", "120ms")
}

fn churn(name: &str, tile: u16, arguments: &str) -> String {
    format!(
        r#"<app name="{name}" tile="{tile}" program="paging/churn" memory="512KiB" pager="pager">{arguments}
             <sgate name="files" to="files"/><sgate name="pager" to="pager" gate="requests"/></app>"#
    )
}

#[test]
fn pages_go_and_come_back_and_hold_what_they_should() {
    for (around, seed) in [(1, 1), (4, 2)] {
        let pager = format!(
            r#"<argument name="pages" value="24"/><argument name="around" value="{around}"/>"#
        );
        let seed = format!(r#"<argument name="seed" value="{seed}"/>"#);
        let other = r#"<argument name="seed" value="9"/><argument name="file" value="other"/>"#;
        let clients = churn("a", 4, &seed) + &churn("b", 5, other);
        let report = run(&churning(&pager, &clients));
        assert_eq!(report.code, Some(0), "{}", report.console);
        for name in ["a", "b"] {
            let lines = report.printed(name);
            assert!(lines[0].contains("of its own"), "{lines:?}");
        }
    }
}

#[test]
fn clients_share_unchanged_pages_of_a_file() {
    let pager = |more: &str| format!(r#"<argument name="pages" value="24"/>{more}"#);
    // Twelve frames for a file of 24 pages: a page that one client needs may cost another client one.
    let few = r#"<mgate name="shared" size="48KiB"/>"#;
    let enough = r#"<mgate name="shared" size="96KiB"/>"#;
    for (shared, together) in [("", false), (few, false), (enough, false), (enough, true)] {
        let own = |seed: u64, make: u64| {
            format!(
                r#"<argument name="seed" value="{seed}"/><argument name="make" value="{make}"/>"#
            )
        };
        let clients = churn("a", 4, &own(1, 1))
            + &churn("b", if together { 4 } else { 5 }, &own(2, 0))
            + &churn("c", 6, &own(3, 0));
        let report = run(&churning(&pager(shared), &clients));
        assert_eq!(report.code, Some(0), "{}", report.console);
        let mut frames = [0, 0];
        for name in ["a", "b", "c"] {
            let line = report.printed(name)[0];
            let numbers = line.split(|c: char| !c.is_ascii_digit());
            let numbers: Vec<u64> = numbers.filter_map(|n| n.parse().ok()).collect();
            frames[0] += numbers[0];
            frames[1] += numbers[2];
        }
        println!(
            "shared memory {shared}: {} pages of their own, {} shared",
            frames[0], frames[1]
        );
        assert_eq!(frames[1] > 0, !shared.is_empty(), "{}", report.console);
    }
}

#[test]
fn a_pager_that_is_killed_comes_back_with_its_clients_or_they_end_with_a_word() {
    let restart = r#"<service restart="on-failure" restarts="3"/>"#;
    let steady = r#"<argument name="steps" value="200"/>"#;
    let renewed = format!("{restart}{steady}");
    let (mut again, mut ended) = (0, 0);
    for (pager, client) in [
        (restart, renewed.as_str()),
        ("", &renewed),
        (restart, steady),
    ] {
        let clients = churn("a", 4, client)
            + &churn("b", 5, client).replace(
                "value=\"200\"/>",
                "value=\"200\"/><argument name=\"file\" value=\"other\"/>",
            )
            + &touch("beside", 6, "heap=\"lazy\"");
        let text = churning(pager, &clients);
        let whole = run(&text);
        assert_eq!(whole.code, Some(0), "{}", whole.console);
        let end = whole.statistics.ticks / whole.cycle / 2;
        let begin = whole.began(4).unwrap_or(0) / 2;
        for point in 1..8 {
            let (at, tile, how) = (begin + (end - begin) * point / 8, 3, Blow::Crash);
            let report = boot_struck(&text, Strike { at, tile, how });
            let console = &report.console;
            assert!(matches!(report.code, Some(0 | 3)), "at {at} ns:\n{console}");
            if report
                .stopped("pager")
                .is_none_or(|why| !why.contains("0x0"))
            {
                continue;
            }
            assert!(report.printed("beside").contains(&"16 pages"), "{console}");
            let both = !pager.is_empty() && client.contains("restart");
            for name in ["a", "b"] {
                let done = report
                    .printed(name)
                    .iter()
                    .any(|line| line.contains("of its own"));
                let told = console.contains(&format!("`{name}` ends: its pager `pager` has ended"));
                // It had finished before, came back with the pager, or was told to end.
                assert!(done || told && !both, "{name} at {at} ns:\n{console}");
                again += u32::from(both && told && done);
                ended += u32::from(!done);
            }
        }
    }
    println!("clients that came back with their pager: {again}; that ended with it: {ended}");
    assert!(again > 0 && ended > 0);
}

/// The most cycles of a fault that needs no file, beside three clients of the pager whose file service ends: 1 ms. It may wait for a call of
/// the pager that was under way, and the kernel ends that call when it has removed what the service had. The service itself comes back
/// after some milliseconds, or clients wait for it for 60 ms.
const OUTAGE: u64 = 2_000_000;

/// The file service of a pager is killed in the middle, with and without coming back. Clients that need no file get their pages, although
/// another client asks the pager for files without a pause; nobody gets a page with wrong contents; the pager does not end.
#[test]
fn a_pager_whose_file_service_is_killed_serves_those_who_need_no_file() {
    let (mut again, mut ended, mut worst) = (0, 0, 0);
    for restart in ["", r#"<service restart="on-failure" restarts="3"/>"#] {
        let steady = |file: &str| {
            format!(r#"<argument name="steps" value="200"/><argument name="file" value="{file}"/>"#)
        };
        let mapper = r#"<app name="mapper" tile="7" program="paging/mapper" memory="512KiB" pager="pager" background="true"><sgate name="pager" to="pager" gate="requests"/></app>"#;
        // From the moment of the blow on, `beside` uses new pages.
        let text = |from: u64| {
            let start = format!(
                r#"<argument name="start" value="{}"/><argument name="pages""#,
                from / 1000
            );
            let clients = churn("a", 4, &steady("a"))
                + &churn("b", 5, &steady("b"))
                + &touch("beside", 6, "pager=\"pager\"")
                    .replace(r#"<argument name="pages""#, &start)
                + mapper;
            churning("", &clients).replace(
                "<mgate name=\"disk\"",
                &format!("{restart}<mgate name=\"disk\""),
            )
        };
        let whole = run(&text(0));
        assert_eq!(whole.code, Some(0), "{}", whole.console);
        let end = whole.statistics.ticks / whole.cycle / 2;
        let begin = whole.began(4).unwrap_or(0) / 2;
        for point in 1..5 {
            let (at, tile, how) = (begin + (end - begin) * point / 5, 2, Blow::Crash);
            let report = boot_struck(&text(at), Strike { at, tile, how });
            let console = &report.console;
            assert!(matches!(report.code, Some(0 | 3)), "at {at} ns:\n{console}");
            let whole = report
                .stopped("pager")
                .is_none_or(|why| why == "stopped by its manager");
            assert!(whole, "at {at} ns:\n{console}");
            assert!(!console.contains("is wrong"), "at {at} ns:\n{console}");
            if report
                .stopped("files")
                .is_none_or(|why| !why.contains("0x0"))
            {
                continue;
            }
            assert!(
                report.printed("beside").contains(&"16 pages"),
                "at {at} ns:\n{console}"
            );
            worst = worst.max(report.spans(6).into_iter().max().unwrap_or(0));
            for name in ["a", "b"] {
                match report
                    .printed(name)
                    .iter()
                    .any(|line| line.contains("of its own"))
                {
                    true => again += 1,
                    false => ended += 1,
                }
            }
        }
    }
    println!(
        "clients with files that went on: {again}; that ended: {ended}; worst fault beside them: {worst} cycles"
    );
    assert!(again > 0 && ended > 0);
    // Its fault waits for one of each other client, which may open a file; nobody's fault waits for the file service to come back.
    assert!(worst <= OUTAGE, "{worst}");
}

/// Pagers that answer for activities that have ended, all at the same moments, take no page and no text from their neighbours. From
/// outside, the test cannot see whether an answer of the honest pager ever found no room; an attacker's answer did not.
#[test]
fn late_answers_for_nobody_cost_no_other_client_its_page_or_its_voice() {
    let text = std::fs::read_to_string(concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/systems/late-answers.xml"
    ))
    .expect("the system");
    let report = run(&text);
    // The attack took place.
    for name in ["late-3", "late-5", "late-6"] {
        let said = report.printed(name);
        println!("{name}: {:?}", said.last());
        assert!(said.len() >= 5, "{}", report.console);
    }
    assert_eq!(report.code, Some(0), "{}", report.console);
    for client in ["client-1", "client-2"] {
        assert!(
            report.printed(client).contains(&"600 pages"),
            "{}",
            report.console
        );
    }
    assert_eq!(report.printed("talker").last(), Some(&"line 499"));
}
