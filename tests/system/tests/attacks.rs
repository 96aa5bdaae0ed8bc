//! Hostile programs beside honest ones: a control loop, the most important caller of the kernel, a file service and its client. Whatever
//! they do, the honest ones do all that they do alone, nobody who is trusted panics, and everything is back at the end.

use bulkhead_abi::marker::MarkerKind;
use bulkhead_system_tests::{Report, boot_booked};

/// The kernel's markers of its pieces of work, and its tile.
const WORK: (u16, u16, u16) = (0x100, 0x101, 0);
/// Cycles of a piece of the kernel's work at most.
const LONGEST: u64 = 8000;
/// Jobs of the loop, calls of the important one.
const JOBS: usize = 12;
const CALLS: usize = 800;

/// The honest ones, and what stands beside them.
fn system(others: &str, sharing: &str) -> String {
    format!(
        r#"<system name="attacks" platform="./shared.xml" duration="150ms" manager-tile="1">
  <domain name="control" criticality="A">
    <app name="sensor" tile="2" program="control/sensor">
      <argument name="samples" value="{JOBS}"/><task period="1ms" deadline="400us"/>
      <sgate name="controller" to="controller" credits="2"/><mgate name="frame" size="64KiB" rights="r"/>
    </app>
    <app name="controller" tile="3" program="control/controller">
      <rgate name="input" slots="4" slot-size="256B"/><sgate name="actuator" to="actuator" credits="2"/>
    </app>
    <app name="actuator" tile="4" program="control/actuator"><rgate name="input" slots="4" slot-size="256B"/></app>
    <app name="high" tile="5" program="latency/syscall"><argument name="runs" value="{CALLS}"/><argument name="pause" value="10us"/></app>
  </domain>
  <domain name="service" criticality="C">
    <app name="files" tile="6" program="tiled/files" memory="1MiB" background="true"><argument name="limit" value="1ms"/>
      <rgate name="priority-0" slot-size="320B"/><rgate name="priority-1" slots="8" slot-size="320B"/><mgate name="disk" size="2MiB"/></app>
    <app name="client" tile="6" program="service/file-client"><argument name="folder" value="honest"/><argument name="rounds" value="2"/><argument name="session" value="yes"/><sgate name="files" to="files" gate="priority-0"/></app>{sharing}
  </domain>
  {others}
</system>"#
    )
}

/// A hostile application on tile 7.
fn hostile(name: &str, kind: &str, seed: u64, purse: &str) -> String {
    format!(
        r#"<app name="{name}" tile="7" program="attack/hostile" background="true"><argument name="kind" value="{kind}"/><argument name="seed" value="{seed}"/><limit endpoints="24" page-tables="40" kernel-memory="{purse}"/><sgate name="files" to="files" gate="priority-1"/></app>"#
    )
}

fn below(apps: &str) -> String {
    format!(r#"<domain name="hostile" criticality="E">{apps}</domain>"#)
}

/// What a run showed.
struct Seen {
    /// Kind and cycles of the longest piece of work.
    what: u64,
    longest: u64,
    /// Of the important one's calls.
    worst: u64,
    report: Report,
}

/// Nobody honest noticed anything. Returns the longest piece of the kernel's work and the worst call of the important one, in cycles.
fn unharmed(text: &str) -> Result<Seen, String> {
    let report = boot_booked(text);
    let console = &report.console;
    let fail = |what: String| Err(format!("{what}\n{console}"));
    if !matches!(report.code, Some(0 | 3)) || console.contains("kernel: panicked") {
        return fail(format!("ended with {:?}", report.code));
    }
    for name in ["sensor", "controller", "actuator", "high", "client"] {
        if report.stopped(name) != Some("exit 0") {
            return fail(format!("{name}: {:?}", report.stopped(name)));
        }
    }
    let run = console.split("kernel: books: ").next().unwrap_or_default();
    for name in ["(files)", "(root)"] {
        let dead = |line: &&str| {
            line.contains(name) && line.contains(" stopped: ") && !line.contains("exit 0")
        };
        if let Some(line) = run.lines().find(dead) {
            return fail(line.to_owned());
        }
    }
    if console.contains("its tile was lost") {
        return fail("a tile was lost".to_owned());
    }
    if report.flows().len() != JOBS || !report.values(MarkerKind::DeadlineMiss, 4).is_empty() {
        return fail("the loop missed something".to_owned());
    }
    if !console.contains("kernel: books: all is there that was there at boot") {
        return fail("something is missing at the end".to_owned());
    }
    // When the last of them ends, the kernel closes its books, which is no piece of work for anybody.
    let last = (2..6).filter_map(|tile| report.last(tile)).max();
    let work = report.work_until(WORK.0, WORK.1, WORK.2, last.unwrap_or(0));
    let longest = work.iter().max_by_key(|(_, cycles)| *cycles);
    let (what, longest) = longest.copied().unwrap_or_default();
    let worst = report.spans(5).iter().copied().skip(20).max().unwrap_or(0);
    Ok(Seen {
        what,
        longest,
        worst,
        report,
    })
}

/// All of these, and all that went wrong in any.
fn all(cases: impl IntoIterator<Item = (String, String)>) {
    let alone = unharmed(&system("", "")).unwrap_or_else(|error| panic!("alone: {error}"));
    let (mut longest, mut worst, mut count, mut wrong) = (0, 0, 0, String::new());
    for (name, text) in cases {
        count += 1;
        let failed = match unharmed(&text) {
            Ok(seen) => {
                let said = seen
                    .report
                    .console
                    .lines()
                    .rfind(|l| l.contains(" rounds, "));
                println!(
                    "{name}: longest {}, worst {}, {said:?}",
                    seen.longest, seen.worst
                );
                longest = longest.max(seen.longest);
                worst = worst.max(seen.worst);
                let late = seen.worst > alone.worst + 2 * LONGEST || seen.longest > LONGEST;
                let (what, longest, worst) = (seen.what, seen.longest, seen.worst);
                late.then(|| {
                    format!("a piece of kind {what} took {longest} cycles, a call {worst}")
                })
            }
            Err(error) => Some(error),
        };
        if let Some(failed) = failed {
            wrong += &format!("{name}: {failed}\n");
        }
    }
    println!(
        "{count} runs: longest piece {longest} cycles, worst call {worst}, alone {}",
        alone.worst
    );
    assert!(wrong.is_empty(), "{wrong}");
}

/// Each kind of attack by itself, with a small purse: findings 1 to 6, 8 and 10 of the audit.
#[test]
#[ignore = "written, not yet seen to pass: see the open points"]
fn each_attack_leaves_the_honest_alone() {
    const KINDS: [(&str, &str); 12] = [
        ("children", "4KiB"),
        ("living", "32KiB"),
        ("replies", "8KiB"),
        ("services", "8KiB"),
        ("buckets", "16KiB"),
        ("pager", "16KiB"),
        ("revoke", "64KiB"),
        ("waits", "16KiB"),
        ("tells", "16KiB"),
        ("copies", "8KiB"),
        ("files", "16KiB"),
        ("calls", "32KiB"),
    ];
    all(KINDS.map(|(kind, purse)| {
        let two = hostile("h1", kind, 1, purse) + &hostile("h2", kind, 2, purse);
        (kind.to_owned(), system(&below(&two), ""))
    }));
}

/// Finding 9: who waits in the kernel takes no place from others.
#[test]
#[ignore = "written, not yet seen to pass: see the open points"]
fn forty_that_wait_leave_room_for_a_manager() {
    for sleepers in [14, 40] {
        let apps: String = (0..sleepers)
            .map(|n| {
                let tile = 5 + n % 3;
                format!(
                    r#"<app name="s{n}" tile="{tile}" program="attack/hostile" background="true"><argument name="kind" value="sleeps"/><limit kernel-memory="1KiB"/></app>"#
                )
            })
            .collect();
        let text = format!(
            r#"<system name="sleepers" platform="./shared.xml" duration="150ms" manager-tile="1">{}
<manager name="unrelated" tile="2"><domain name="e">
  <app name="ping" tile="3" program="latency/ping"><argument name="runs" value="2000"/><sgate name="pong" to="pong"/></app>
  <app name="pong" tile="4" program="latency/pong" background="true"><rgate name="input"/></app>
</domain></manager></system>"#,
            below(&apps)
        );
        let report = boot_booked(&text);
        assert_eq!(report.code, Some(0), "{}", report.console);
        assert_eq!(report.stopped("ping"), Some("exit 0"), "{}", report.console);
        let closed = "kernel: books: all is there that was there at boot";
        assert!(report.console.contains(closed), "{}", report.console);
    }
}

/// The pairs of hostile programs that a seed says.
fn pair(seed: u64) -> String {
    let purse = ["4KiB", "16KiB", "64KiB", "48KiB"][(seed % 4) as usize];
    let first = hostile("h1", "random", 2 * seed + 1, purse);
    match seed % 3 {
        0 => system(
            &below(&(first + &hostile("h2", "random", 2 * seed + 2, "16KiB"))),
            "",
        ),
        1 => {
            // On the tile of the file service.
            let second = hostile("h2", "random", 2 * seed + 2, purse);
            system(
                &below(&first),
                &second.replace(r#"tile="7""#, r#"tile="6""#),
            )
        }
        _ => system(
            &format!(
                r#"{}<manager name="greedy" tile="7" program="attack/hostile"><limit endpoints="60" page-tables="80" kernel-memory="64KiB" memory="4MiB"/><domain name="nobody" criticality="E"><app name="nobody" tile="7" program="adversary/spin" background="true"/></domain></manager>"#,
                below(&first)
            ),
            "",
        ),
    }
}

/// `BULKHEAD_PAIRS=1000 cargo test --release -p bulkhead-system-tests attacks::pairs -- --ignored --nocapture`; `BULKHEAD_PAIRS_SEED` (1) is
/// the first one.
#[test]
#[ignore = "written, not yet seen to pass: see the open points"]
fn pairs_of_hostile_programs_leave_the_honest_alone() {
    let number = |name, otherwise| {
        std::env::var(name).map_or(otherwise, |text| text.parse().expect("a number"))
    };
    let first: u64 = number("BULKHEAD_PAIRS_SEED", 1);
    let pairs = first..first + number("BULKHEAD_PAIRS", 6);
    all(pairs.map(|seed| (format!("pair {seed}"), pair(seed))));
}
