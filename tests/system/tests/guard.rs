//! Guards at local memories: adversaries on other cores break things without them, and change nothing but time with them.

use crate::one_shot_systems::{folder_with, holds};
use bulkhead_analysis::plan::files;
use bulkhead_experiments::audit::{Options, audit, time};
use bulkhead_report::audit::result::{AttackResult, DomainResult, Verdict};
use bulkhead_report::verdict::Judgement;
use bulkhead_runner::progress::Silent;
use bulkhead_runner::{new, run};
use std::path::Path;

/// The control loop of the catalog's system next to these attacks, or all, its first task twice as often, so that two milliseconds suffice.
fn checked(variant: &str, searches: u32, attacks: &[&str]) -> DomainResult {
    checked_in("oneshot/guarded".as_ref(), Some(variant), searches, attacks)
}

/// The same of a description with this loop, without variants or of one of them.
fn checked_in(
    system: &Path,
    variant: Option<&str>,
    searches: u32,
    attacks: &[&str],
) -> DomainResult {
    let options = Options {
        overrides: vec!["task[sensor]@period=1ms".to_owned()],
        variant: variant.map(str::to_owned),
        domains: vec!["control".to_owned()],
        searches,
        time: time("1200us").expect("a time"),
        attacks: attacks.iter().map(|one| (*one).to_owned()).collect(),
        ..Options::new(system)
    };
    let mut result = match audit(&options, &Silent) {
        Ok(finished) => finished.result,
        Err(error) => panic!("{error}"),
    };
    result.domains.remove(0)
}

fn named<'a>(domain: &'a DomainResult, name: &str) -> &'a AttackResult {
    let mut all = domain.attacks.iter();
    all.find(|one| one.name == name)
        .expect("the library has it")
}

#[test]
fn without_guards_every_core_breaks_the_system_and_is_named() {
    // The others, and those drawn at random: ./bulkhead test --catalog, and the page's commands.
    let attacks = [
        "reads of all memories",
        "locks held for ever",
        "starts of harts",
        "writes to the code",
        "writes to the table of tasks and ports",
        "writes to the state of port 0",
        "writes anywhere from the start",
    ];
    let open = checked("open", 0, &attacks);
    assert_eq!(
        (open.ruling.verdict(), open.ruling.judgement()),
        (Verdict::Broken, Judgement::Failed)
    );
    assert_eq!(open.tiles, [0, 5, 10]);
    assert_eq!(open.attackers.len(), 13);
    assert!(open.attackers.contains(&"core 3 (source)".to_owned()));
    let harm = |name: &str, what: &str| {
        let attack = named(&open, name);
        assert!(
            attack.harm.iter().any(|one| one.contains(what)),
            "{name}: {:?}",
            attack.harm
        );
        let first = attack.first.as_ref().expect("a difference");
        assert!(open.tiles.contains(&first.tile), "{first:?}");
        assert_eq!(attack.refused, 0);
    };
    harm("writes to the code", "its code was written over");
    harm("writes to the table of tasks and ports", "stopped");
    harm(
        "writes to the state of port 0",
        "state of port 0 was written over",
    );
    harm("locks held for ever", "no item");
    harm("starts of harts", "jobs ended");
    // Before any port is open, it can be made another one.
    let early = named(&open, "writes anywhere from the start");
    assert!(!early.harm.is_empty(), "{early:?}");
    // An attack that writes nothing only delays.
    let reads = named(&open, "reads of all memories");
    assert!(reads.harm.is_empty() && reads.slowdown > 1000, "{reads:?}");
    assert!(
        open.account
            .iter()
            .any(|one| one.culprit.starts_with("core "))
    );
}

/// All attacks, and one that is drawn, by two adversaries on five cores; by thirteen on sixteen, those that most often found something, and all of them in
/// `./bulkhead test --fuzz`.
#[test]
fn with_guards_attacks_change_nothing_but_time() {
    let mut text = include_str!("../../../catalog/systems/oneshot/guarded.xml").to_owned();
    for (from, to) in [
        (r#"platform="epiphany3""#, r#"platform="./small.xml""#),
        (r#"core="10""#, r#"core="4""#),
        (r#"core="12""#, r#"core="2""#),
    ] {
        assert!(text.contains(from), "{from}");
        text = text.replace(from, to);
    }
    let (six, first) = (small(""), tile_of(0, 4, ""));
    assert!(six.contains(&first), "{six}");
    let five = six.replace(&first, &tile_of(0, 3, ""));
    let folder = folder_with(&[("small.xml", &five), ("system.xml", &text)]);
    let system = folder.path().join("system.xml");
    let few = checked_in(&system, Some("guarded"), 1, &[]);
    assert_eq!(few.attackers.len(), 2);
    assert!(few.attacks.len() >= 15, "{}", few.attacks.len());
    only_delayed(&few);
    let many = match tries_all() {
        true => checked("guarded", 1, &[]),
        false => checked("guarded", 0, &SOME),
    };
    assert_eq!(many.attackers.len(), 13);
    only_delayed(&many);
}

/// Guards refuse all attacks that touch the domain's cores, and these exceed no bound.
fn only_delayed(guarded: &DomainResult) {
    for attack in &guarded.attacks {
        assert_eq!(attack.harm, [] as [&str; 0], "{}", attack.name);
        let touches = !attack.name.contains("across the mesh") && !attack.name.contains("external");
        assert_eq!(attack.refused > 0, touches, "{}", attack.name);
    }
    assert_ne!(
        guarded.ruling.verdict(),
        Verdict::Broken,
        "{:?}",
        guarded.reasons
    );
    for one in &guarded.requests {
        let bound = one.bound.as_ref().expect("a bound");
        assert!(one.attacked <= bound.ticks, "{one:?}");
    }
}

/// The rules are exactly the system's needs: they refuse nothing and change no tick. The writers of channels that release their
/// readers may ring, too: rings are part of the description.
fn without_a_refusal(overrides: &[&str]) {
    let overrides = overrides.iter().map(|text| (*text).to_owned());
    let options = run::Options {
        system: "oneshot/guarded".into(),
        overrides: overrides.chain(["@duration=30ms".to_owned()]).collect(),
        ..run::Options::default()
    };
    let result = run::run(&options, &Silent).expect("it runs").result;
    let [open, guarded] = &result.variants[..] else {
        panic!("two variants");
    };
    assert_eq!(
        (&open.incidents[..], &guarded.incidents[..]),
        (&[][..], &[][..])
    );
    assert_eq!(open.digest, guarded.digest);
}

#[test]
fn a_guard_that_refuses_nothing_changes_no_tick() {
    without_a_refusal(&[]);
    without_a_refusal(&[
        "channel[readings]@notify=true",
        "task[controller]@period=2ms",
        "channel[commands]@notify=true",
        "task[actuator]@period=2ms",
    ]);
}

/// The tiles of `epiphany3`.
const TILES: &str = r#"<tile id="0" count="16" router="0" pipeline="ecore" local-memory="sram" dma="mover" exit="true" uart="true"/>"#;

/// So many of these tiles, with these numbers and `more` attributes.
fn tile_of(id: u16, count: u16, more: &str) -> String {
    let numbers = format!(r#"<tile id="{id}" count="{count}" router="{id}""#);
    let with = TILES.replace(r#"<tile id="0" count="16" router="0""#, &numbers);
    with.replace("/>", &format!("{more}/>"))
}

/// A chip of six cores with guards. `clock`: attributes of tile 4.
fn small(clock: &str) -> String {
    let platform = include_str!("../../../catalog/platforms/epiphany3.xml");
    let tiles = tile_of(0, 4, "") + &tile_of(4, 1, clock) + &tile_of(5, 1, "");
    let mut small = platform.to_owned();
    for (from, to) in [
        (r#"name="epiphany3""#, r#"name="small""#),
        (r#"columns="4" rows="4""#, r#"columns="3" rows="2""#),
        (r#"router="7""#, r#"router="2""#),
        (r#"fetch="16B""#, r#"fetch="16B" guard="64""#),
        (TILES, &tiles),
    ] {
        assert!(small.contains(from), "{from}");
        small = small.replacen(from, to, 1);
    }
    small
}

/// The kinds of attack that most often found something: floods of the mesh and of memories, rings, writes. In every run; all others, too, in `./bulkhead test --fuzz`,
/// and with `BULKHEAD_ONE_SHOT_ATTACKS=all cargo test --release -p bulkhead-system-tests -- guard::with_guards guard::beside`.
const SOME: [&str; 4] = [
    "reads of all memories",
    "exchanges across the mesh",
    "doorbells",
    "writes anywhere",
];

/// Whether all attacks are tried.
fn tries_all() -> bool {
    match std::env::var("BULKHEAD_ONE_SHOT_ATTACKS") {
        Err(_) => false,
        Ok(which) => {
            assert_eq!(which, "all", "BULKHEAD_ONE_SHOT_ATTACKS");
            true
        }
    }
}

/// A system on the small chip, beside all attacks on its domain, or [`SOME`] and `more`; and what `check` says of its bounds.
fn on_small(clock: &str, text: &str, window: &str, more: &[&str]) -> (DomainResult, String) {
    let folder = folder_with(&[("small.xml", &small(clock)), ("system.xml", text)]);
    let system = folder.path().join("system.xml");
    let alone = crate::one_shot_systems::run(&system, &[]).expect("it runs");
    holds(&alone.result);
    let assumed = files::assumed(&system, &[]).expect("valid");
    let assumed = assumed.expect("a one-shot system");
    for request in &alone.result.variants[0].requests {
        let bound = request.bound.as_ref().expect("a bound");
        assert!(bound.covers.contains(&assumed), "{request:?}");
    }
    let options = Options {
        searches: 0,
        time: time(window).expect("a time"),
        attacks: match tries_all() {
            true => Vec::new(),
            false => SOME
                .iter()
                .chain(more)
                .map(|one| (*one).to_owned())
                .collect(),
        },
        ..Options::new(system)
    };
    let mut result = match audit(&options, &Silent) {
        Ok(finished) => finished.result,
        Err(error) => panic!("{error}"),
    };
    (result.domains.remove(0), assumed)
}

/// Guards keep rivals from slices, results, helpers and clocks; floods only delay them, and within the bounds. Floods from reset on also delay the messages with the
/// time, so the clocks of the second chip are more wrong than without.
#[test]
fn with_guards_attacks_only_delay_a_parallel_section() {
    let mut text = String::from(
        r#"<system name="section" paradigm="one-shot" platform="./small.xml" duration="11ms">
        <task name="asker" domain="work" program="one-shot/parallel.c::asker" core="0" priority="1" period="2ms" cost="150us" wait="1200us"/>"#,
    );
    for (number, core) in [(1, 1), (2, 3), (3, 4)] {
        text += &format!(
            r#"<task name="part-{number}" domain="work" program="one-shot/parallel.c::part" core="{core}" priority="1" period="2ms" cost="80us" wait="1000us"/>
            <channel name="slice-{number}" from="asker" to="part-{number}" size="128B"/>
            <channel name="result-{number}" from="part-{number}" to="asker" size="8B" answers="slice-{number}"/>"#
        );
    }
    text += "</system>";
    let of_its_own = r#" clock-offset="300us" clock-drift="20ppm" source="assumption: a test""#;
    for (clock, more) in [("", &[][..]), (of_its_own, &["messages with the time"])] {
        // The second section begins 2 ms after the first one, and ends within 0.2 ms.
        let (domain, assumed) = on_small(clock, &text, "2200us", more);
        assert_eq!(
            assumed,
            "bounds hold whatever cores without tasks, and those of other domains, do"
        );
        assert_eq!(domain.attackers.len(), 2);
        let requests = domain.requests.iter();
        let handed = requests.filter(|one| one.kind.starts_with("handed over") && one.alone > 0);
        assert_eq!(handed.count(), 6, "{:?}", domain.requests);
        for attack in &domain.attacks {
            assert_eq!(attack.harm, [] as [&str; 0], "{}", attack.name);
        }
        for one in &domain.requests {
            let bound = one.bound.as_ref().expect("a bound");
            assert!(one.attacked <= bound.ticks, "{one:?}");
        }
        // A selection is never called bounded, even if it found nothing.
        let verdict = match tries_all() {
            true => Verdict::Bounded,
            false => Verdict::NotJudged,
        };
        assert_eq!(domain.ruling.verdict(), verdict);
        assert_eq!(domain.reasons, [] as [&str; 0]);
    }
}

/// No bound says for how long floods keep a ring on its way. So nothing is judged by the bounds that hold without floods, and the reason is said.
#[test]
fn beside_floods_a_told_task_has_no_bound() {
    let text = r#"<system name="told" paradigm="one-shot" platform="./small.xml" duration="4ms">
        <task name="source" domain="work" program="one-shot::pipeline::Source" core="0" priority="1" period="1ms" cost="10us"/>
        <task name="sink" domain="work" program="one-shot::pipeline::Sink" core="4" priority="1" period="1ms" cost="10us"/>
        <channel name="events" from="source" to="sink" size="16B" notify="true"/>
        <flow name="event" from="source" to="sink"/></system>"#;
    let (domain, assumed) = on_small("", text, "1200us", &[]);
    let why = "nothing bounds for how long floods of the mesh keep a ring of events on its way";
    assert!(assumed.contains(why), "{assumed}");
    for attack in &domain.attacks {
        assert_eq!(attack.harm, [] as [&str; 0], "{}", attack.name);
    }
    let verdict = domain.ruling.verdict();
    assert_eq!(verdict, Verdict::Unbounded, "{:?}", domain.reasons);
    assert!(
        domain.reasons.iter().any(|one| one.contains(why)),
        "{:?}",
        domain.reasons
    );
    let requests = domain
        .requests
        .iter()
        .map(|one| (&one.bound, &one.unbounded));
    let flows = domain.flows.iter().map(|one| (&one.bound, &one.unbounded));
    let all: Vec<_> = requests.chain(flows).collect();
    assert!(all.len() >= 5, "{all:?}");
    for (bound, unbounded) in all {
        let said = unbounded.as_deref().unwrap_or_default();
        assert!(bound.is_none() && said.contains(why), "{bound:?} {said}");
    }
}

/// Alone, the first item is lost, because the reader's port is not open yet, and the writer tries again a period later. Beside an attack from reset on, the writer is late
/// enough: all items come a period earlier, and the audit says no more than that.
#[test]
fn an_item_that_comes_a_period_earlier_breaks_nothing() {
    let system = r#"<system name="idle" paradigm="one-shot" platform="epiphany3" duration="50ms">
        <task name="sender" domain="good" program="tasks.c::sender" core="0" priority="1" period="5ms" cost="10us"/>
        <task name="receiver" domain="good" program="tasks.c::receiver" core="5" priority="1" period="1ms" cost="10us"/>
        <task name="idle" domain="bad" program="idle.c::idle" core="1" priority="1" period="5ms" cost="200us"/>
        <channel name="numbers" from="sender" to="receiver" size="8B"/>
        <flow name="number" from="sender" to="receiver" deadline="3ms"/></system>"#;
    let idle = "#include \"bulkhead_oneshot.h\"\nstruct idle { bh_releases releases; };\n\
        static bh_done go(struct idle *self, bh_job job) { return bh_next(&self->releases, job); }\nBH_TASK(idle, struct idle, go, {0})\n";
    let folder = tempfile::tempdir().expect("a folder");
    let made = folder.path().join("made");
    let root = bulkhead_runner::place::root().expect("the checkout");
    new::create(&made, &root, new::Language::C, new::Kind::OneShot).expect("made");
    std::fs::write(made.join("idle.c"), idle).expect("written");
    let file = made.join("system.xml");
    std::fs::write(&file, system).expect("written");
    let options = Options {
        overrides: vec!["platform/local-memory[sram]@guard=64".to_owned()],
        domains: vec!["good".to_owned()],
        searches: 0,
        time: time("12ms").expect("a time"),
        attacks: vec!["locks held for ever from the start".to_owned()],
        ..Options::new(&file)
    };
    let result = audit(&options, &Silent).expect("it is audited").result;
    let good = &result.domains[0];
    let attack = named(good, "locks held for ever from the start");
    assert_eq!(attack.harm, [] as [&str; 0]);
    assert!(attack.slowdown > 1000 && !attack.identical);
    assert_ne!(good.ruling.verdict(), Verdict::Broken, "{:?}", good.reasons);
}
