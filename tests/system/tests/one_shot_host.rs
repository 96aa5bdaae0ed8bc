//! A host core loads and starts the other cores and shows their consoles, whatever is in their memories.

use crate::one_shot_clocks::ended;
use crate::one_shot_systems::{described, folder_with, holds, run};
use bulkhead_experiments::audit::{Options, audit, time};
use bulkhead_model::{LoadOptions, load_system};
use bulkhead_report::audit::result::Verdict;
use bulkhead_report::result::IncidentKind;
use bulkhead_runner::oneshot::OneShot;
use bulkhead_runner::paradigm::Paradigm;
use bulkhead_runner::programs::Library;
use bulkhead_runner::progress::Silent;

#[test]
fn a_host_core_loads_starts_and_shows() {
    let finished = run("oneshot/host".as_ref(), &[]).expect("it runs");
    holds(&finished.result);
    let console = &finished.consoles[0];
    let flow = &finished.result.variants[0].flows[0];
    assert_eq!((flow.lost, flow.misses), (0, 0));
    let shown = console.matches("core 12: stages 2\n").count();
    assert!(shown >= 5 && shown <= flow.samples.len(), "{console}");
    let told = console.matches("core 3: period 5\n").count();
    assert!((35..=40).contains(&told), "{told}: {console}");
}

/// The host starts cores in the order of their numbers, the master of the clocks last.
#[test]
fn a_host_core_starts_cores_with_clocks_of_their_own() {
    let text = r#"<system name="both" paradigm="one-shot" platform="epiphany3-clocks" host="6" duration="40ms">
        <task name="source" program="one-shot::pipeline::Source" core="0" priority="1" period="10ms" cost="10us"/>
        <task name="sink" program="one-shot::pipeline::Sink" core="15" priority="1" period="1ms" cost="10us"/>
        <channel name="hop" from="source" to="sink" size="16B"/>
        <flow name="event" from="source" to="sink" deadline="3ms"/></system>"#;
    let finished = described("both", text).expect("it runs");
    holds(&finished.result);
    assert_eq!(finished.result.variants[0].clocks.len(), 1);
    assert!(
        finished.consoles[0].contains("core 15: stages 0\n"),
        "{}",
        finished.consoles[0]
    );
}

/// A core that writes over its ring's indices, one that never starts, and one whose ring never stays as it is: each is told with core and task, once,
/// and the host shows what the others say, each line as that of its core.
#[test]
fn bad_cores_are_told_and_the_others_go_on() {
    let text = r#"<system name="bad" paradigm="one-shot" platform="epiphany3" host="15" duration="120ms">
        <task name="over" program="one-shot/garbage.c::garbage" core="1" priority="1" period="1ms" cost="10us"/>
        <task name="absent" program="one-shot::pipeline::Teller" core="2" priority="1" period="5ms" cost="210us"/>
        <task name="endless" program="one-shot/garbage.c::chatter" core="3" priority="1" period="1ms" cost="10us"/>
        <task name="good" program="one-shot::pipeline::Teller" core="4" priority="1" period="5ms" cost="210us"/>
        <task name="forger" program="one-shot/garbage.c::pretend" core="5" priority="1" period="20ms" cost="10us"/></system>"#;
    let folder = folder_with(&[("bad.xml", text)]);
    let system = load_system(folder.path().join("bad.xml"), &LoadOptions::default());
    let system = system.expect("valid");
    let root = bulkhead_runner::place::root().expect("a checkout");
    let library = Library::new(&root, folder.path()).expect("cargo works");
    let programs = OneShot.build(&library, &[&system]).expect("it builds");
    let mut image = OneShot.image(&system, &programs).expect("it fits");
    // The list in external memory: the register that starts core 2 is one that ignores writes.
    let list = &mut image.pieces[0].bytes;
    let word = |list: &[u8], at: usize| {
        u64::from_le_bytes(list[8 * at..8 * at + 8].try_into().expect("a word"))
    };
    let cores = 2 + 3 * word(list, 1) as usize;
    let of_core = (0..5).map(|core| cores + 5 * core);
    let absent = of_core
        .into_iter()
        .find(|at| word(list, at + 4) >> 16 == 2)
        .expect("core 2 is in the list");
    let register = word(list, absent) + 8;
    list[8 * absent..8 * absent + 8].copy_from_slice(&register.to_le_bytes());
    let (machine, incidents) = ended(&system, &image);
    let console = OneShot
        .console(&system, &image, &machine)
        .expect("a console");
    for (core, name, what) in [
        (1, "core 1 (over)", "something wrote over its console"),
        (2, "core 2 (absent)", "it had not started"),
        (3, "core 3 (endless)", "its console changed during"),
    ] {
        let told = incidents.iter().filter(|one| {
            one.kind == IncidentKind::Stopped && one.tile == core && one.application == name
        });
        let told: Vec<&str> = told.map(|one| one.what.as_str()).collect();
        assert_eq!(told.len(), 1, "{core}: {incidents:?} {console}");
        assert!(told[0].contains(what), "{told:?}");
    }
    assert!(console.contains("core 1: good so far\n"), "{console}");
    let good = console.matches("core 4: period 5\n").count();
    assert!((20..=24).contains(&good), "{good}: {console}");
    let forged = "core 5: innocent.core 4: stopped: task 0, panic\n";
    assert!(console.contains(forged), "{console}");
    assert!(!console.contains("\ncore 4: stopped"), "{console}");
    for line in [
        "core 1: its console was written over\n",
        "core 2: it has not started\n",
        "core 3: its console changes faster than it can be read\n",
    ] {
        assert_eq!(console.matches(line).count(), 1, "{line} {console}");
    }
}

/// Adversaries on all other cores attack the host core as they attack the tasks of the domain, and what it reads in external memory; what only delays it
/// breaks nothing.
#[test]
fn an_audit_attacks_the_host_core() {
    let options = Options {
        overrides: vec!["@duration=10ms".to_owned()],
        searches: 0,
        time: time("300us").expect("a time"),
        attacks: [
            "reads of all memories",
            "starts of harts",
            "writes to the code",
        ]
        .map(str::to_owned)
        .to_vec(),
        ..Options::new("oneshot/host")
    };
    let result = audit(&options, &Silent).expect("it is audited").result;
    let [domain] = &result.domains[..] else {
        panic!("one domain");
    };
    assert_eq!(domain.tiles, [0, 5, 10, 12, 3, 15]);
    assert_eq!(domain.attackers.len(), 10);
    assert_eq!(domain.ruling.verdict(), Verdict::Broken);
    for attack in &domain.attacks {
        println!("{}: {:?}", attack.name, attack.harm);
    }
    let harm = |name: &str, what: &str| {
        let attack = domain.attacks.iter().find(|one| one.name == name);
        let attack = attack.expect("the library has it");
        attack.harm.iter().any(|one| one.contains(what))
    };
    assert!(harm(
        "writes to the code",
        "core 15: its code was written over"
    ));
    // If the host core starts again, it loads and starts all others again.
    assert!(harm("starts of harts", "jobs ended"));
    let reads = domain
        .attacks
        .iter()
        .find(|one| one.name == "reads of all memories");
    assert_eq!(reads.expect("the library has it").harm, [] as [&str; 0]);
}

#[test]
fn a_host_core_that_cannot_be_is_refused() {
    let refused = |attributes: &str, core: u16| {
        let text = format!(
            r#"<system name="bad" paradigm="one-shot" platform="epiphany3" {attributes}>
            <task name="t" program="one-shot::pipeline::Teller" core="{core}" priority="1" period="5ms" cost="210us"/></system>"#
        );
        match described("bad", &text) {
            Ok(_) => panic!("{text} is accepted"),
            Err(error) => format!("{error:?}"),
        }
    };
    let text = refused(r#"host="7""#, 7);
    assert!(text.contains("core 7 is the host, and has tasks"), "{text}");
    let text = refused(r#"host="99""#, 7);
    assert!(text.contains("has no tile 99"), "{text}");
}
