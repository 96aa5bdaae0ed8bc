//! The kernel's uninterrupted pieces of work, in cycles: each call next to a storm of calls and large revocations, and how long a caller of
//! the highest priority waits meanwhile.

use bulkhead_abi::syscall::Number;
use bulkhead_analysis::kernel;
use bulkhead_system_tests::{Report, boot_text};
use std::collections::BTreeMap;

/// The kernel's markers: `WORK_BEGINS` and `WORK_ENDS` of its module `bounds`.
const WORK: (u16, u16) = (0x100, 0x101);
/// The kernel's tile.
const KERNEL: u16 = 0;
/// The most cycles of the longest piece of the kernel's work on `tiled-gem5`.
const LONGEST: u64 = 8000;

fn names() -> BTreeMap<u64, String> {
    let calls = (0..64).filter_map(|code| {
        let number = Number::from_code(code)?;
        Some((code, format!("`{number:?}`")))
    });
    let others = [
        (64, "a step of a job"),
        (65, "the answer of a server"),
        (66, "the answer of a TileMux"),
        (67, "a notification of a TileMux"),
        (68, "a late reply"),
        (69, "a text or line on the console"),
        (70, "questions to servers"),
    ];
    let others = others.map(|(code, name)| (code, name.to_owned()));
    calls.chain(others).collect()
}

/// `high` calls the kernel with the highest priority; `others` have the lowest.
fn system(others: &str) -> String {
    format!(
        r#"<system name="calls" platform="./shared.xml" duration="400ms" manager-tile="1">
  <domain name="important" criticality="A">
    <app name="high" tile="2" program="latency/syscall"><argument name="runs" value="8000"/><argument name="pause" value="5us"/></app>
  </domain>
  <domain name="others">{others}</domain>
</system>"#
    )
}

const STORM: &str = r#"
    <app name="tree" tile="3" program="adversary/tree"><argument name="rounds" value="2"/><limit kernel-memory="180KiB"/></app>
    <app name="s1" tile="4" program="adversary/storm-syscalls"><argument name="rounds" value="3000"/><argument name="seed" value="1"/></app>
    <app name="s2" tile="5" program="adversary/storm-syscalls"><argument name="rounds" value="3000"/><argument name="seed" value="2"/><argument name="shared" value="1"/></app>
    <app name="s3" tile="5" program="adversary/storm-syscalls"><argument name="rounds" value="3000"/><argument name="seed" value="3"/><argument name="shared" value="1"/></app>
    <app name="files" tile="6" program="tiled/files" memory="1MiB" background="true"><argument name="limit" value="1ms"/>
      <rgate name="priority-0" slot-size="320B"/><rgate name="priority-1" slots="8" slot-size="320B"/><mgate name="disk" size="2MiB"/></app>
    <app name="client" tile="7" program="service/file-client"><argument name="folder" value="a"/><argument name="session" value="yes"/><sgate name="files" to="files" gate="priority-0"/></app>"#;

fn worst_wait(report: &Report) -> u64 {
    assert_eq!(report.code, Some(0), "{}", report.console);
    let calls = report.spans(2);
    assert_eq!(calls.len(), 8000);
    calls[100..].iter().copied().max().unwrap_or(0)
}

#[test]
fn no_piece_of_work_takes_long_and_the_important_wait_for_one() {
    let alone = &boot_text(&system(""), &[])[0];
    let beside = &boot_text(&system(STORM), &[])[0];
    let (alone, waited) = (worst_wait(alone), worst_wait(beside));
    for name in ["tree", "s1", "s2", "s3", "client"] {
        assert_eq!(beside.stopped(name), Some("exit 0"), "{}", beside.console);
    }
    println!("{:?}", beside.printed("tree"));
    let mut seen: BTreeMap<u64, (u64, u64)> = BTreeMap::new();
    for (what, cycles) in beside.work(WORK.0, WORK.1, KERNEL) {
        let entry = seen.entry(what).or_default();
        *entry = (entry.0 + 1, entry.1.max(cycles));
    }
    let names = names();
    for (what, (times, worst)) in &seen {
        let name = names.get(what).map_or("an unknown call", String::as_str);
        println!("| {name} | {times} | {worst} |");
    }
    let longest = seen.values().map(|(_, worst)| *worst).max().unwrap_or(0);
    println!(
        "the longest piece {longest} cycles; high priority: worst call {waited}, alone {alone}"
    );
    // It did meet others' work.
    assert!(waited > 2 * alone, "{waited} cycles");
    // What bounds assume for each kind. Within the time of one more call, the important caller has its answer.
    for (what, (_, worst)) in &seen {
        let name = names.get(what);
        assert!(*worst <= kernel::piece(*what), "{name:?}: {worst} cycles");
    }
    assert!(longest <= kernel::PIECE_CYCLES, "{longest} cycles");
    assert!(longest <= LONGEST, "{longest} cycles");
    assert!(waited <= alone + 2 * longest, "{waited} cycles");
}

/// Activities with eleven creators above them, all with the longest names: their texts, and the lines about their ends, come in pieces as
/// short as all others.
#[test]
fn a_deep_activity_with_long_names_makes_no_long_piece() {
    const DEPTH: usize = 10;
    let name = |what: &str, number: usize| {
        format!("{what}-{number:0>width$}", width = 31 - what.len() - 1)
    };
    let manager = |depth: usize| {
        format!(
            r#"<manager name="{}" tile="{}" memory="2MiB">"#,
            name("manager", depth),
            3 + depth % 5
        )
    };
    let managers: String = (1..=DEPTH).map(manager).collect();
    let talker = |number: usize| {
        format!(
            r#"<app name="{}" tile="{}" program="attack/talker"><argument name="runs" value="200"/></app>"#,
            name("talker", number),
            4 + number % 2
        )
    };
    let talkers: String = (1..=4).map(talker).collect();
    let close = "</manager>".repeat(DEPTH);
    let text = system(&format!(
        r#"<app name="s1" tile="3" program="adversary/storm-syscalls"><argument name="rounds" value="3000"/><argument name="seed" value="1"/></app>
        </domain>{managers}<domain name="below">{talkers}</domain>{close}<domain name="more">"#
    ));
    let report = &boot_text(&text, &[])[0];
    for number in 1..=4 {
        let talker = name("talker", number);
        assert!(
            report.printed(&talker).contains(&"line 199"),
            "{}",
            report.console
        );
    }
    let work = report.work(WORK.0, WORK.1, KERNEL);
    let texts = work
        .iter()
        .filter(|(what, _)| *what == 69)
        .map(|(_, cycles)| *cycles);
    let (pieces, worst) = texts.fold((0, 0), |(n, worst), cycles| (n + 1, cycles.max(worst)));
    println!("{pieces} pieces of text, the longest {worst} cycles");
    assert!(pieces > 1000, "{pieces}");
    assert!(worst <= LONGEST, "{worst} cycles");
}

/// Next to twelve programs that start and stop children on five tiles, the kernel takes the steps of a revocation by the most important
/// caller one after the other: no answer or notification of a TileMux and no reply to a less important caller comes in between.
#[test]
fn nothing_comes_between_the_steps_of_the_most_important() {
    let raider = |number: u16| {
        format!(
            r#"<app name="h{number}" tile="{}" program="attack/raider" background="true"><argument name="kind" value="children"/><argument name="seed" value="{number}"/><limit endpoints="12" page-tables="40" kernel-memory="32KiB"/></app>"#,
            3 + number % 5
        )
    };
    let raiders: String = (0..12).map(raider).collect();
    let text = format!(
        r#"<system name="steps" platform="./shared.xml" duration="200ms" manager-tile="1">
  <domain name="important" criticality="A">
    <app name="high" tile="2" program="latency/syscall"><argument name="kind" value="copies"/><argument name="runs" value="40"/><argument name="pause" value="500us"/><limit kernel-memory="64KiB"/></app>
  </domain>
  <domain name="others" criticality="E">{raiders}</domain>
</system>"#
    );
    let report = &boot_text(&text, &[])[0];
    assert_eq!(report.code, Some(0), "{}", report.console);
    let kinds = report.work(WORK.0, WORK.1, KERNEL);
    let others = kinds.iter().filter(|(what, _)| [66, 67].contains(what));
    let others = others.count();
    let revocations = report.work_during(WORK.0, KERNEL, 2);
    assert_eq!(revocations.len(), 40);
    let mut between = 0;
    for pieces in &revocations {
        let steps = pieces.iter().filter(|what| **what == 64).count();
        assert!(steps > 200, "{steps}");
        // Work in progress when the call came, and work after its end, is not between its steps.
        let call = pieces
            .iter()
            .position(|what| *what == Number::Revoke as u64);
        let first = call.expect("the call") + 1;
        let last = pieces.iter().rposition(|what| *what == 64).unwrap_or(0);
        let foreign = pieces[first..last]
            .iter()
            .filter(|what| **what != 64)
            .count();
        between += usize::from(foreign > 0);
    }
    println!(
        "{others} answers and notifications; something came between the steps of {between} of 40 revocations"
    );
    // Several for each revocation, if they could come at any time.
    assert!(others > 200, "no attack: {others}");
    assert_eq!(between, 0);
}

/// An invalidation concerns only its caller: the most important caller activates memory next to four programs that revoke 150 endpoints
/// each, over and over. In an audit with another program it had waited for 486 us, when every configuration waited for the last
/// invalidation.
#[test]
fn who_configures_waits_for_no_revocation_of_others() {
    let text = |others: &str| {
        format!(
            r#"<system name="revocations" platform="tiled-gem5" duration="400ms" manager-tile="1">
  <domain name="important" criticality="A">
    <app name="high" tile="2" program="latency/syscall"><argument name="runs" value="1000"/><argument name="kind" value="memory"/><argument name="pause" value="9us"/></app>
  </domain>
  <domain name="others">{others}</domain>
</system>"#
        )
    };
    let tree = |tile: u16| {
        format!(
            r#"<app name="tree{tile}" tile="{tile}" program="adversary/tree" background="true"><argument name="rounds" value="1000"/><argument name="every" value="1"/><limit kernel-memory="40KiB"/></app>"#
        )
    };
    let trees: String = (3..7).map(tree).collect();
    let worst = |others: &str| {
        let report = &boot_text(&text(others), &[])[0];
        assert_eq!(report.code, Some(0), "{}", report.console);
        let spans = report.spans(2);
        assert_eq!(spans.len(), 3000);
        // Derive, activate, revoke; the first rounds take place while the others start.
        let steps = report.work(WORK.0, WORK.1, KERNEL);
        let steps = steps.iter().filter(|(what, _)| *what == 64).count();
        let of = |call: usize| {
            let calls = spans.iter().skip(300 + call).step_by(3);
            calls.copied().max().unwrap_or(0)
        };
        ([0, 1, 2].map(of), steps)
    };
    let (alone, _) = worst("");
    let (beside, steps) = worst(&trees);
    println!("alone {alone:?}, beside {beside:?} cycles, {steps} steps of revocations");
    assert!(steps > 3000, "{steps} steps");
    for (alone, beside) in alone.into_iter().zip(beside) {
        assert!(
            beside <= alone + 2 * LONGEST,
            "{beside} cycles, alone {alone}"
        );
    }
}
