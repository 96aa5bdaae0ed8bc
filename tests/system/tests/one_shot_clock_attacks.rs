//! Cores that write over the clock records of others while those wait for the time: it is told with core, tasks and place, no core takes a wrong time
//! without a word, and all others have the right one.

use crate::one_shot_clocks::ended;
use bulkhead_abi::memory_map::MEMORY_BASE;
use bulkhead_abi::one_shot::clock::{RECORD, SERVED};
use bulkhead_machine::machine::Machine;
use bulkhead_model::{LoadOptions, System, load_system_text};
use bulkhead_report::result::Incident;
use bulkhead_runner::image::BootImage;
use bulkhead_runner::oneshot::OneShot;
use bulkhead_runner::paradigm::Paradigm;
use bulkhead_runner::programs::Library;

/// The core of the liar, and those whose records it writes over. It is near them, because each link on the way of its messages takes time of the host.
const LIAR: u16 = 6;
const VICTIMS: [u16; 2] = [1, 5];
/// Whoever waits for the time loses patience after 20 ticks of a millisecond.
const DURATION: &str = "21ms";
/// Cores with tasks.
const CORES: [u16; 6] = [0, 1, 2, 5, 9, 12];

fn image(text: &str, overrides: &[&str]) -> (System, BootImage) {
    let overrides = overrides.iter().map(|one| (*one).to_owned()).collect();
    let options = LoadOptions {
        overrides,
        ..LoadOptions::default()
    };
    let system = load_system_text("attacked", text, &options).expect("valid");
    let root = bulkhead_runner::place::root().expect("a checkout");
    let library = Library::new(&root, std::path::Path::new(".")).expect("cargo works");
    let programs = OneShot.build(&library, &[&system]).expect("it builds");
    let image = OneShot.image(&system, &programs).expect("it fits");
    (system, image)
}

/// Six cores that synchronise their clocks.
fn honest(overrides: &[&str]) -> (System, BootImage) {
    on_cores(&CORES, overrides)
}

/// Cores that synchronise their clocks.
fn on_cores(cores: &[u16], overrides: &[&str]) -> (System, BootImage) {
    let tasks: String = cores
        .iter()
        .map(|core| {
            format!(
                r#"<task name="t{core}" program="one-shot::pipeline::Other" core="{core}" priority="1" period="1ms" cost="260us"/>"#
            )
        })
        .collect();
    let text = format!(
        r#"<system name="attacked" paradigm="one-shot" platform="epiphany3-clocks" duration="{DURATION}">{tasks}</system>"#
    );
    image(&text, overrides)
}

/// The same beside a task of `liar.c` on a core of its own, which starts at once.
fn beside(liar: &str, overrides: &[&str]) -> (System, BootImage) {
    let (system, mut all) = honest(overrides);
    add(liar, &mut all);
    (system, all)
}

fn add(liar: &str, all: &mut BootImage) {
    let text = format!(
        r#"<system name="liar" paradigm="one-shot" platform="epiphany3" duration="{DURATION}">
        <task name="liar" program="one-shot/liar.c::{liar}" core="{LIAR}" priority="1" period="1ms" cost="1us"/></system>"#
    );
    let (_, own) = image(&text, &[]);
    all.tiles.extend(own.tiles);
    all.starts.extend(own.starts);
}

/// Each core with a clock that is more wrong than it says; nothing, if none is. Cores that keep their own time are not among them.
fn wrong(system: &System, machine: &Machine) -> Vec<u16> {
    let markers = bulkhead_runner::observed::markers(machine);
    let measured = bulkhead_runner::oneshot::results::measured(system, &markers, machine.now());
    let is_wrong = |one: &&bulkhead_report::result::ClockResult| one.end.error > one.end.bound;
    let all = measured.clocks.iter().filter(is_wrong);
    all.map(|one| one.core).collect()
}

/// The cores that follow the master.
fn synchronised(system: &System, machine: &Machine) -> Vec<u16> {
    let markers = bulkhead_runner::observed::markers(machine);
    let measured = bulkhead_runner::oneshot::results::measured(system, &markers, machine.now());
    measured.clocks.iter().map(|one| one.core).collect()
}

fn said<'a>(incidents: &'a [Incident], core: u16, what: &str) -> Option<&'a Incident> {
    let mut all = incidents.iter().filter(|one| one.tile == core);
    all.find(|one| one.what.contains(what))
}

/// Runs the liar for as long as somebody waits: whatever it does, nobody has a wrong time, all others follow the master, and each victim is told with its tasks and the place.
fn told(liar: &str, words: &[&str]) -> (System, Machine, Vec<Incident>) {
    told_within(DURATION, liar, words)
}

fn told_within(duration: &str, liar: &str, words: &[&str]) -> (System, Machine, Vec<Incident>) {
    let (system, image) = beside(liar, &[&format!("@duration={duration}")]);
    let (machine, incidents) = ended(&system, &image);
    assert_eq!(wrong(&system, &machine), [0; 0], "{liar}: {incidents:?}");
    let follow = synchronised(&system, &machine);
    println!("{liar}: {follow:?} follow core 0");
    for core in CORES.iter().filter(|core| !VICTIMS.contains(core)) {
        assert!(*core == 0 || follow.contains(core), "{liar}: {follow:?}");
        assert!(
            incidents.iter().all(|one| one.tile != *core),
            "{incidents:?}"
        );
    }
    for victim in VICTIMS {
        for word in words {
            let incident = said(&incidents, victim, word);
            let incident = incident.unwrap_or_else(|| panic!("{liar}: {word}: {incidents:?}"));
            assert!(
                incident.what.contains(&format!("`t{victim}`")),
                "{incident:?}"
            );
        }
    }
    (system, machine, incidents)
}

#[test]
fn a_time_that_nobody_asked_for_is_told_and_not_used() {
    // The victims give up after four false messages, and the master on them after ten ticks. Then the others begin.
    let words = ["wrote over its clock record (+0x7de0)"];
    told_within("16ms", "blind", &words);
}

#[test]
fn a_time_that_another_core_answers_is_told_and_not_used() {
    let (system, machine, _) = told(
        "answers",
        &[
            "it took a time that core 0 did not send",
            "core 0 did not send it the time to begin",
        ],
    );
    let follow = synchronised(&system, &machine);
    assert!(VICTIMS.iter().all(|core| !follow.contains(core)));
}

#[test]
fn a_begin_that_never_comes_is_told_and_nobody_waits_for_it() {
    told("never", &["it found the time at which all begin"]);
}

#[test]
fn a_core_that_others_speak_for_is_told() {
    told("content", &["did not"]);
}

#[test]
fn a_record_that_is_emptied_again_and_again_is_told() {
    told(
        "blank",
        &["core 0 did not send it the time within 20 ticks"],
    );
}

/// Somebody asks for messages in the name of six cores that never start, so slowly that the master would wait for almost a tick before each. It has
/// no more than a tick for each core, and core 12 comes after all of them in its list.
#[test]
fn cores_that_ask_slowly_keep_no_other_core_from_its_time() {
    let silent = [1, 2, 3, 4, 5, 6];
    let all = [&[0][..], &silent, &[12]].concat();
    // The master gives up after ten ticks.
    let (system, mut image) = on_cores(&all, &["@duration=14ms"]);
    image.starts.retain(|start| !silent.contains(&start.tile));
    add("slow", &mut image);
    let (machine, incidents) = ended(&system, &image);
    assert_eq!(synchronised(&system, &machine), [12], "{incidents:?}");
    assert_eq!(wrong(&system, &machine), [0; 0]);
    for core in silent {
        let what = "it was not ready for synchronisation, or did not continue it";
        assert!(said(&incidents, core, what).is_some(), "{incidents:?}");
    }
}

/// The list of the master is the loader's or nobody's.
#[test]
fn a_master_with_another_list_tells_nobody_the_time() {
    for (place, value) in [
        (RECORD + SERVED, 5),
        (RECORD + SERVED, 2_000),
        (RECORD - 8, 0x41_0041),
    ] {
        let (system, mut image) = honest(&[]);
        let mut pieces = image.tiles.iter_mut();
        let piece = pieces.find(|one| one.tile == 0 && one.address == MEMORY_BASE + place);
        piece.expect("the loader's word").bytes = u64::to_le_bytes(value).to_vec();
        let (machine, incidents) = ended(&system, &image);
        assert_eq!(wrong(&system, &machine), [0; 0]);
        assert!(
            said(
                &incidents,
                0,
                "the list of cores before its clock record (+0x7dd8)"
            )
            .is_some(),
            "{incidents:?}"
        );
        for core in CORES.iter().skip(1) {
            let what = "core 0 did not send it the time";
            assert!(said(&incidents, *core, what).is_some(), "{incidents:?}");
        }
    }
}

/// A guard admits the master at the words that it needs, and nobody else: the same attacks change no clock, and no message is refused to the master.
#[test]
fn a_guard_keeps_liars_from_the_records() {
    // All have their time after four ticks at most: nobody has to lose patience.
    let guard = ["platform/local-memory[sram]@guard=2", "@duration=8ms"];
    for liar in ["answers", "never", "blank"] {
        let (system, image) = beside(liar, &guard);
        let (machine, incidents) = ended(&system, &image);
        // The liar's own job never ends.
        assert!(
            incidents.iter().all(|one| one.tile == LIAR),
            "{incidents:?}"
        );
        assert_eq!(synchronised(&system, &machine), CORES[1..]);
        assert_eq!(wrong(&system, &machine), [0; 0]);
        let refused = machine.refused();
        assert!(!refused.is_empty(), "{liar}");
        assert!(
            refused
                .iter()
                .all(|(core, one)| VICTIMS.contains(core) && one.from == LIAR),
            "{refused:?}"
        );
    }
}

/// Guards refuse nothing that the synchronisation needs, and change no tick of it.
#[test]
fn guards_change_no_clock() {
    let of = |overrides: &[&str]| {
        let (system, image) = honest(overrides);
        let (machine, incidents) = ended(&system, &image);
        assert_eq!(incidents, []);
        assert_eq!(machine.refused(), []);
        let markers = bulkhead_runner::observed::markers(&machine);
        bulkhead_runner::oneshot::results::measured(&system, &markers, machine.now()).clocks
    };
    // As above.
    let duration = "@duration=8ms";
    let guard = "platform/local-memory[sram]@guard=2";
    assert_eq!(of(&[duration]), of(&[duration, guard]));
}
