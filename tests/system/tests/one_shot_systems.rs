//! Described systems of the one-shot RTOS: built, placed, booted, measured beside their bounds, or refused with a reason.

use bulkhead_analysis::plan::{Kind, files};
use bulkhead_report::result::{IncidentKind, RunResult};
use bulkhead_report::verdict::Judgement;
use bulkhead_runner::oneshot::OneShot;
use bulkhead_runner::paradigm::Paradigm;
use bulkhead_runner::programs::Library;
use bulkhead_runner::progress::Silent;
use bulkhead_runner::run::{self, Finished, Options};
use std::fmt::Write;

/// A folder with files: their names and texts.
pub fn folder_with(files: &[(&str, &str)]) -> tempfile::TempDir {
    let folder = tempfile::tempdir().expect("a folder");
    for (name, text) in files {
        std::fs::write(folder.path().join(name), text).expect("it is written");
    }
    folder
}

pub fn run(
    system: &std::path::Path,
    overrides: &[&str],
) -> Result<Finished, bulkhead_runner::Error> {
    let options = Options {
        system: system.to_path_buf(),
        overrides: overrides.iter().map(|one| (*one).to_owned()).collect(),
        ..Options::default()
    };
    run::run(&options, &Silent)
}

/// Runs a description that is in no file yet.
pub fn described(name: &str, text: &str) -> Result<Finished, bulkhead_runner::Error> {
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join(format!("{name}.xml"));
    std::fs::write(&file, text).expect("it is written");
    run(&file, &[])
}

/// Everything that was seen is within its bound, and nothing went wrong.
pub fn holds(result: &RunResult) {
    let failed = result.verdict.promises().iter();
    let failed: Vec<_> = failed
        .filter(|one| one.judgement != Judgement::Held)
        .collect();
    assert!(failed.is_empty(), "{failed:#?}");
    for variant in &result.variants {
        assert_eq!(variant.incidents, [], "{:?}", variant.end);
        for request in &variant.requests {
            let bound = request.bound.as_ref().expect("a bound");
            assert!(
                request.count > 0 && request.worst <= bound.ticks,
                "{request:?}"
            );
        }
    }
}

/// Costs, periods, ports and other cores are not in what is built: an image with another budget differs in the budget's bytes alone, and one of a larger system
/// in none.
#[test]
fn systems_of_the_same_tasks_share_what_is_built() {
    let built = |cost: u64, more: &str| {
        let text = format!(
            r#"<system name="shared" paradigm="one-shot" platform="epiphany3" duration="2ms">
            <task name="source" program="one-shot::pipeline::Source" core="0" priority="1" period="2ms" cost="{cost}us"/>
            <task name="sink" program="one-shot::pipeline::Sink" core="5" priority="1" period="1ms" cost="10us"/>
            <channel name="events" from="source" to="sink" size="16B"/>{more}</system>"#
        );
        let all = elves(&text, ".".as_ref());
        let source = all.into_iter().find(|one| one.0.contains("Source"));
        source.expect("the image of core 0")
    };
    let (short, long) = (built(10, ""), built(300, ""));
    assert_ne!(short.0, long.0);
    let pairs = short.1.iter().zip(&long.1).enumerate();
    let places: Vec<usize> = pairs
        .filter(|(_, (a, b))| a != b)
        .map(|one| one.0)
        .collect();
    let (first, last) = (places.first(), places.last());
    let distance = last.expect("another budget") - first.expect("another budget");
    assert!(distance < size_of::<u32>(), "{places:?}");
    assert_eq!(short.1.len(), long.1.len());
    let more = r#"<task name="o" program="one-shot::pipeline::Other" core="3" priority="1" period="5ms" cost="10us"/>"#;
    let beside = built(10, more);
    assert_eq!(beside.0, short.0);
    assert!(beside.1 == short.1, "it depends on other cores");
}

/// What a system without a file needs to be built: the contents of its images, by core.
fn elves(text: &str, base: &std::path::Path) -> Vec<(String, Vec<u8>)> {
    let options = bulkhead_model::LoadOptions::default();
    let system = bulkhead_model::load_system_text("elves", text, &options).expect("valid");
    let root = bulkhead_runner::place::root().expect("a checkout");
    let library = Library::new(&root, base).expect("cargo works");
    let programs = OneShot.build(&library, &[&system]).expect("it builds");
    programs
        .into_iter()
        .map(|one| (one.name, one.elf))
        .collect()
}

/// Which tasks messages release, and how many rings a core accepts, is not in what is built, except for the number of these tasks: cores that differ in nothing else
/// have the same code.
#[test]
fn told_tasks_of_any_number_share_what_is_built() {
    // Of two readers of core 5, this one is told by another core's task, which is told itself if there is one before it.
    let of_core_5 = |told: u8, before: &str| {
        let writer = if before.is_empty() { "Source" } else { "Stage" };
        let text = format!(
            r#"<system name="told" paradigm="one-shot" platform="epiphany3" duration="2ms">
            <task name="sink-0" program="one-shot::pipeline::Sink" core="5" priority="1" period="2ms" cost="10us"/>
            <task name="sink-1" program="one-shot::pipeline::Sink" core="5" priority="2" period="2ms" cost="10us"/>
            <task name="writer" program="one-shot::pipeline::{writer}" core="1" priority="1" period="2ms" cost="10us"/>
            <task name="other" program="one-shot::pipeline::Source" core="2" priority="1" period="2ms" cost="10us"/>
            <channel name="told" from="writer" to="sink-{told}" size="16B" notify="true"/>
            <channel name="polled" from="other" to="sink-{}" size="16B"/>{before}</system>"#,
            1 - told
        );
        let all = elves(&text, ".".as_ref());
        let mut sinks = all.into_iter().filter(|one| one.0.contains("Sink"));
        sinks.next().expect("the image of core 5")
    };
    let before = r#"<task name="first" program="one-shot::pipeline::Source" core="0" priority="1" period="2ms" cost="10us"/>
        <channel name="first" from="first" to="writer" size="16B" notify="true"/>"#;
    let usual = of_core_5(0, "");
    for (other, task, rings) in [(of_core_5(1, ""), 1, 2), (of_core_5(0, before), 0, 3)] {
        let told = format!(" of [{task}], {rings} rings in a tick");
        assert!(other.0.contains(&told), "{} is not{told}", other.0);
        assert_ne!(usual.0, other.0);
        assert_eq!(usual.1.len(), other.1.len());
        // The budgets of two tasks, 4 bytes each; the number of a task, 1 byte; rings, 4 bytes.
        let pairs = usual.1.iter().zip(&other.1);
        let differ = pairs.filter(|(one, other)| one != other).count();
        assert!((1..=13).contains(&differ), "{differ} bytes: {}", other.0);
    }
}

/// Cargo says what must be built again. An image that comes to others of its package leaves them as they are, and a changed task is built again.
#[test]
fn an_image_is_compiled_once() {
    let root = bulkhead_runner::place::root().expect("a checkout");
    let package = format!("once-{}", std::process::id());
    let task = |name: &str, more: &str| {
        format!(
            "pub struct {name}(Releases);\nimpl Described for {name} {{ const FIRST: Self = Self(Releases::new()); }}\n\
             impl Task for {name} {{ fn run(&mut self, job: Job) -> Done {{ {more} self.0.next(job) }} }}\n"
        )
    };
    let source = |more: &str| {
        format!(
            "#![no_std]\nuse bulkhead_oneshot::described::{{Described, Releases}};\nuse bulkhead_oneshot::{{Done, Job, Task, console}};\n\
             pub fn say() {{ console::line(\"said\"); }}\n{}{}",
            task("One", more),
            task("Two", "")
        )
    };
    let manifest = format!(
        "[package]\nname = \"{package}\"\nversion = \"0.1.0\"\nedition = \"2024\"\n[workspace]\n[dependencies]\nbulkhead-oneshot = {{ path = {:?} }}\n",
        root.join("software/oneshot")
    );
    let folder = tempfile::tempdir().expect("a folder");
    let tasks = folder.path().join("tasks");
    std::fs::create_dir_all(tasks.join("src")).expect("made");
    std::fs::write(tasks.join("Cargo.toml"), manifest).expect("written");
    std::fs::write(tasks.join("src/lib.rs"), source("")).expect("written");
    let of = |task: &str| {
        let text = format!(
            r#"<system name="once" paradigm="one-shot" platform="epiphany3" duration="2ms">
            <task name="t" program="tasks::{task}" core="0" priority="1" period="1ms" cost="10us"/></system>"#
        );
        elves(&text, folder.path()).remove(0).1
    };
    // Where Cargo puts images, and when each was linked.
    let linked = || {
        let generated = root.join("target/generated");
        let packages = std::fs::read_dir(generated.join("one-shot")).expect("packages");
        let mut own = packages
            .map(|one| one.expect("a package").path())
            .filter(|one| {
                let manifest = std::fs::read_to_string(one.join("Cargo.toml"));
                manifest.is_ok_and(|text| text.contains(&package))
            });
        let own = own.next().expect("the package of these images");
        let sources = std::fs::read_dir(own.join("src")).expect("sources");
        let mut all = std::collections::BTreeMap::new();
        for source in sources {
            let source = source.expect("a source").path();
            let name = source.file_stem().expect("a name").to_owned();
            let image = generated
                .join("build/riscv64gc-unknown-none-elf/chip")
                .join(&name);
            let found = std::fs::metadata(image).expect("it was built");
            all.insert(name, found.modified().expect("a time"));
        }
        (own, all)
    };
    let first = of("One");
    let (_, one) = linked();
    assert_eq!(one.len(), 1);
    assert!(of("One") == first);
    assert_eq!(linked().1, one, "nothing has changed");
    of("Two");
    let (own, both) = linked();
    assert_eq!(both.len(), 2);
    let unchanged = |all: &std::collections::BTreeMap<_, _>| {
        one.iter().all(|(name, time)| all.get(name) == Some(time))
    };
    assert!(unchanged(&both), "{one:?} {both:?}");
    assert!(of("One") == first);
    assert_eq!(linked().1, both, "an image of before is wanted again");
    std::fs::write(tasks.join("src/lib.rs"), source("say();")).expect("written");
    assert!(of("One") != first, "the task has changed");
    assert!(!unchanged(&linked().1));
    std::fs::remove_dir_all(own).expect("no other system has this package");
}

#[test]
fn a_flow_over_sixteen_cores() {
    let finished = run("oneshot/pipeline".as_ref(), &[]).expect("it runs");
    let result = &finished.result;
    holds(result);
    let variant = &result.variants[0];
    let flow = &variant.flows[0];
    // No event is lost or comes twice, and each has passed every stage.
    assert_eq!((flow.through.len(), flow.lost, flow.misses), (14, 0, 0));
    let numbers: Vec<u64> = flow.samples.iter().map(|sample| sample.number).collect();
    assert_eq!(numbers, (1..=numbers.len() as u64).collect::<Vec<_>>());
    assert!(numbers.len() >= 12);
    let lines = finished.consoles[0].lines();
    let told: Vec<&str> = lines.filter(|line| line.starts_with("core 12: ")).collect();
    assert_eq!(told.len(), numbers.len());
    assert!(
        told.iter().all(|line| *line == "core 12: stages 14"),
        "{told:?}"
    );
    // Every kind of operation was seen, each with a bound of its own.
    for kind in ["response", "write", "read"] {
        assert!(
            variant.requests.iter().any(|one| one.kind == kind),
            "{kind}"
        );
    }
}

/// Routers with room for one packet: everything arrives, later, and the ledger says for whom a packet waited; nothing is called bounded.
#[test]
fn packets_that_wait_for_room_have_no_bounds() {
    let one = "platform/network@credits=1";
    let system = std::path::Path::new("oneshot/queue");
    let wide = run(system, &[]).expect("it runs").result;
    let narrow = run(system, &[one]).expect("it runs").result;
    let (wide, variant) = (&wide.variants[0], &narrow.variants[0]);
    assert_eq!(variant.incidents, [], "{:?}", variant.end);
    for (flow, before) in variant.flows.iter().zip(&wide.flows) {
        assert_eq!(flow.latency.count, before.latency.count);
        assert!(before.bound.is_some() && flow.bound.is_none(), "{flow:?}");
        let why = flow.unbounded.as_deref();
        assert!(
            why.is_some_and(|why| why.contains("credits=\"1\"")),
            "{why:?}"
        );
    }
    assert!(
        variant
            .requests
            .iter()
            .all(|request| request.bound.is_none())
    );
    let bounds = narrow.verdict.promises().iter();
    let mut bounds = bounds.filter(|one| one.what.contains("bound"));
    assert!(bounds.all(|one| one.judgement == Judgement::NotJudged));
}

#[test]
fn two_runs_are_the_same() {
    let digest = |_| {
        let finished = run("oneshot/pipeline".as_ref(), &["@duration=40ms"]).expect("it runs");
        finished.result.variants[0].digest.clone()
    };
    assert_eq!(digest(0), digest(1));
}

#[test]
fn a_job_that_takes_longer_than_its_cost_is_told() {
    let changes = ["@duration=20ms", "task[other-3]@cost=100us"];
    let finished = run("oneshot/pipeline".as_ref(), &changes).expect("it runs");
    let incidents = &finished.result.variants[0].incidents;
    assert_eq!(incidents.len(), 1, "{incidents:?}");
    assert_eq!(incidents[0].kind, IncidentKind::Stopped);
    assert_eq!(
        (incidents[0].tile, &*incidents[0].application),
        (3, "other-3")
    );
    assert!(finished.result.has_accident());
}

/// Every sample takes longer than 1 us. A flow may miss what a task on its way may, and no other one.
#[test]
fn a_flow_may_miss_what_a_task_on_its_way_may() {
    let judged = |allowing: &str| {
        let misses = format!("task[{allowing}]@misses=99");
        let changes = ["@duration=35ms", "flow[item]@deadline=1us", &misses];
        let finished = run("oneshot/pair".as_ref(), &changes).expect("it runs");
        let verdict = &finished.result.verdict;
        let mut promises = verdict.promises().iter();
        let late = promises
            .find(|one| one.what.starts_with("flow item: ") && one.what.contains(" late of "));
        let late = late.expect("a promise of the flow");
        assert!(!late.what.contains(": 0 late"), "{}", late.what);
        late.judgement
    };
    assert_eq!(judged("consumer"), Judgement::Held);
    assert_eq!(judged("producer"), Judgement::Held);
    assert_eq!(judged("other"), Judgement::Failed);
}

/// A task that traps, and one that never gives its core back. Nothing of them, of the others on that core, or of the flow through them counts as held
/// only because it was good until then.
#[test]
fn nothing_of_a_task_that_is_gone_holds() {
    let folder = tempfile::tempdir().expect("a folder");
    let source = |at_five: &str| {
        format!(
            r#"#include "bulkhead_oneshot.h"
struct sender {{ bh_output numbers; bh_releases releases; uint64_t sent; }};
static bh_done send(struct sender *self, bh_job job)
{{
    uint64_t number = self->sent + 1;
    if (number == 5) {{ {at_five} }}
    if (bh_is_ready(&self->numbers, sizeof number) > 0) {{
        bh_flow_begin(number);
        if (bh_put(&self->numbers, &number, sizeof number) > 0)
            self->sent = number;
    }}
    return bh_next(&self->releases, job);
}}
BH_TASK(sender, struct sender, send, {{.numbers = BH_OUTPUT(0)}})
struct receiver {{ bh_input numbers; bh_releases releases; }};
static bh_done receive(struct receiver *self, bh_job job)
{{
    uint64_t number;
    if (bh_take(&self->numbers, &number, sizeof number) > 0)
        bh_flow_end(number);
    return bh_next(&self->releases, job);
}}
BH_TASK(receiver, struct receiver, receive, {{.numbers = BH_INPUT(0)}})
struct other {{ bh_releases releases; }};
static bh_done idle(struct other *self, bh_job job)
{{
    return bh_next(&self->releases, job);
}}
BH_TASK(other, struct other, idle, {{0}})
"#
        )
    };
    let text = r#"<system name="gone" paradigm="one-shot" platform="epiphany3" duration="60ms">
        <task name="sender" program="tasks.c::sender" core="0" priority="1" period="5ms" cost="10us"/>
        <task name="other" program="tasks.c::other" core="0" priority="2" period="5ms" cost="10us"/>
        <task name="receiver" program="tasks.c::receiver" core="5" priority="1" period="1ms" cost="10us"/>
        <channel name="numbers" from="sender" to="receiver" size="8B"/>
        <flow name="number" from="sender" to="receiver" deadline="3ms"/></system>"#;
    let file = folder.path().join("gone.xml");
    std::fs::write(&file, text).expect("it is written");
    let all = [
        ("", None, ["Held", "Held", "Held"]),
        (
            "*(volatile int *)0 = 1;",
            Some(IncidentKind::Crash),
            ["NotJudged", "Failed", "Held"],
        ),
        (
            "for (;;) __asm__ volatile(\"\");",
            Some(IncidentKind::Unfinished),
            ["NotJudged", "Failed", "Failed"],
        ),
        ("return bh_end(job);", None, ["Held", "Held", "Held"]),
        (
            "*(volatile uint32_t *)0x100000 = 0x5555;",
            Some(IncidentKind::Unfinished),
            ["NotJudged", "NotJudged", "NotJudged"],
        ),
    ];
    for (at_five, incident, [flow, sender, other]) in all {
        std::fs::write(folder.path().join("tasks.c"), source(at_five)).expect("it is written");
        let finished = run(&file, &[]).expect("it runs");
        let incidents = finished.result.variants[0].incidents.iter();
        let kinds: Vec<_> = incidents.map(|one| one.kind).collect();
        assert_eq!(
            incident.is_some(),
            !kinds.is_empty(),
            "{at_five}: {kinds:?}"
        );
        let only_one = kinds.iter().filter(|one| Some(**one) == incident).count();
        assert_eq!(only_one, usize::from(incident.is_some()), "{kinds:?}");
        let judged = |what: &str| {
            let promises = finished.result.verdict.promises().iter();
            let mut found =
                promises.filter(|one| one.what.starts_with(what) && one.what.contains(" late of "));
            format!("{:?}", found.next().expect("a promise").judgement)
        };
        let seen = ["flow number", "task sender", "task other"].map(judged);
        assert_eq!(seen, [flow, sender, other], "{at_five}");
        assert_eq!(finished.code() != 0, incident.is_some(), "{at_five}");
    }
}

/// Bounds count one access of a job to each of its channels, for the job and for all that wait for it.
#[test]
fn a_job_that_writes_more_often_than_bounds_count_leaves_them_open() {
    let folder = tempfile::tempdir().expect("a folder");
    let text = r#"<system name="often" paradigm="one-shot" platform="epiphany3" duration="20ms">
        <task name="sender" program="tasks.c::sender" core="0" priority="1" period="5ms" cost="99us"/>
        <task name="receiver" program="tasks.c::receiver" core="5" priority="1" period="1ms" cost="10us"/>
        <channel name="numbers" from="sender" to="receiver" size="8B"/></system>"#;
    let file = folder.path().join("often.xml");
    std::fs::write(&file, text).expect("it is written");
    for writes in [1, 2] {
        let source = format!(
            r#"#include "bulkhead_oneshot.h"
struct sender {{ bh_output numbers; bh_releases releases; }};
static bh_done send(struct sender *self, bh_job job)
{{
    uint64_t number = 7;
    for (int i = 0; i < {writes}; i++)
        (void)!bh_put(&self->numbers, &number, sizeof number);
    return bh_next(&self->releases, job);
}}
BH_TASK(sender, struct sender, send, {{.numbers = BH_OUTPUT(0)}})
struct receiver {{ bh_input numbers; bh_releases releases; }};
static bh_done receive(struct receiver *self, bh_job job)
{{
    uint64_t number;
    (void)!bh_take(&self->numbers, &number, sizeof number);
    return bh_next(&self->releases, job);
}}
BH_TASK(receiver, struct receiver, receive, {{.numbers = BH_INPUT(0)}})
"#
        );
        std::fs::write(folder.path().join("tasks.c"), source).expect("it is written");
        let finished = run(&file, &[]).expect("it runs");
        if writes == 1 {
            holds(&finished.result);
            continue;
        }
        let requests = &finished.result.variants[0].requests;
        assert!(
            requests.iter().all(|one| one.bound.is_none()),
            "{requests:?}"
        );
        let why = "a job of `sender` wrote `numbers` 2 times, but bounds count one access";
        assert!(
            requests
                .iter()
                .all(|one| one.unbounded.as_deref() == Some(why)),
            "{requests:?}"
        );
    }
}

#[test]
fn an_image_that_does_not_fit_says_how_many_bytes_each_part_has() {
    let mut text = String::from(
        r#"<system name="large" paradigm="one-shot" platform="epiphany3" duration="2ms">
          <task name="sink" program="one-shot::pipeline::Sink" core="1" priority="1" period="1ms" cost="9us" stack="16KiB"/>"#,
    );
    let few = text.clone();
    // More than the whole memory is told in the same way.
    for (count, bytes) in [(4, "16"), (10, "41")] {
        text = few.clone();
        for number in 0..count {
            let _ = write!(
                text,
                r#"<task name="source-{number}" program="one-shot::pipeline::Source" core="0" priority="{}" period="1ms" cost="9us"/>
               <channel name="c{number}" from="source-{number}" to="sink" size="4KiB"/>"#,
                number + 1
            );
        }
        let error = described("large", &(text + "</system>"))
            .map(drop)
            .expect_err("32 KiB");
        let text = error.to_string();
        assert!(text.starts_with("core 1 (`sink`) needs "), "{text}");
        assert!(
            text.contains(&format!(
                "bytes of its 32768: table and data of ports {bytes}"
            )),
            "{text}"
        );
        assert!(
            text.contains("the stack 16384") && text.contains("port records 512"),
            "{text}"
        );
    }
}

/// All readings arrive, in their order. If the reader is too slow, the queue gets full, and the writer and the run say so.
#[test]
fn queues_keep_all_items_in_order_or_tell_what_they_lose() {
    let finished = run("oneshot/queue".as_ref(), &[]).expect("it runs");
    holds(&finished.result);
    let variant = &finished.result.variants[0];
    let queue = &variant.quotas[0];
    assert_eq!((&*queue.of, queue.limit), ("readings", 4));
    assert!((1..=3).contains(&queue.used), "{queue:?}");
    let lines = finished.consoles[0].lines();
    let numbers: Vec<u64> = lines
        .filter_map(|line| line.strip_prefix("core 9: item ")?.parse().ok())
        .collect();
    let first = numbers[0];
    assert_eq!(
        numbers,
        (first..first + numbers.len() as u64).collect::<Vec<_>>()
    );
    assert!(numbers.len() >= 40, "{numbers:?}");
    // A reader that is too slow has no bound, and its writer is told of each item.
    let slow = run("oneshot/queue".as_ref(), &["task[keeper]@period=7ms"]).expect("it runs");
    let variant = &slow.result.variants[0];
    assert_eq!(variant.quotas[0].used, 5);
    let told = variant.incidents.iter().map(|one| one.what.as_str());
    let told: Vec<&str> = told
        .filter(|what| what.contains("did not fit into the queue readings, which has 4 places"))
        .collect();
    assert_eq!(told.len(), 1, "{:?}", variant.incidents);
    assert!(slow.consoles[0].contains("core 0: no place for item "));
}

/// A plain generator: its state is the seed.
pub fn draw(state: &mut u64, below: u64) -> u64 {
    *state = state
        .wrapping_mul(6_364_136_223_846_793_005)
        .wrapping_add(1_442_695_040_888_963_407);
    (*state >> 33) % below
}

/// How many random systems, or chips, a test draws. Most need about ten images of their own, so it is a few in every run; `./bulkhead test --fuzz` draws more, and so does
/// `BULKHEAD_ONE_SHOT_SYSTEMS=12 cargo test --release -p bulkhead-system-tests -- one_shot_systems::systems one_shot_notify::systems one_shot_clocks::no_error --nocapture`.
pub fn drawn(usual: u64) -> u64 {
    std::env::var("BULKHEAD_ONE_SHOT_SYSTEMS")
        .map_or(usual, |number| number.parse().expect("a number"))
}

/// Chains over cores drawn at random, which share links and cores, beside other work: what is seen is within its bound.
#[test]
fn systems_drawn_at_random_keep_their_bounds() {
    for seed in 1..=drawn(2) {
        let mut state = seed;
        let mut text = format!(
            r#"<system name="drawn-{seed}" paradigm="one-shot" platform="epiphany3" duration="120ms">"#
        );
        let mut priorities = [0; 16];
        let mut task = |text: &mut String,
                        name: &str,
                        kind: &str,
                        core: u64,
                        period: u64,
                        cost: u64| {
            priorities[core as usize] += 1;
            let _ = write!(
                text,
                r#"<task name="{name}" program="one-shot::pipeline::{kind}" core="{core}" priority="{}" period="{period}ms" cost="{cost}us"/>"#,
                priorities[core as usize]
            );
        };
        let mut channels = String::new();
        for chain in 0..3 {
            let length = 2 + draw(&mut state, 3);
            let period = 25 + draw(&mut state, 10);
            for place in 0..=length {
                let core = draw(&mut state, 16);
                let (kind, period) = match place {
                    0 => ("Source", period),
                    _ if place == length => ("Sink", 1),
                    _ => ("Stage", 1),
                };
                task(
                    &mut text,
                    &format!("t{chain}-{place}"),
                    kind,
                    core,
                    period,
                    10,
                );
                if place > 0 {
                    let _ = write!(
                        channels,
                        r#"<channel name="c{chain}-{place}" from="t{chain}-{}" to="t{chain}-{place}" size="16B"/>"#,
                        place - 1
                    );
                }
            }
            let _ = write!(
                channels,
                r#"<flow name="f{chain}" from="t{chain}-0" to="t{chain}-{length}"/>"#
            );
        }
        for number in 0..4 {
            let core = draw(&mut state, 16);
            let period = 5 + draw(&mut state, 5);
            task(
                &mut text,
                &format!("other-{number}"),
                "Other",
                core,
                period,
                period * 41,
            );
        }
        let finished = described("drawn", &(text + &channels + "</system>"));
        holds(&finished.expect("it runs").result);
    }
}

/// 64 chains of 32 cores, two over each row of the chip, so that each of 1024 cores has two tasks in each tick: a second of simulated time. The host's
/// time is printed and no part of the result.
#[test]
#[ignore = "minutes; a promise with a command of its own"]
fn a_thousand_cores_for_a_second() {
    let mut text = String::from(
        r#"<system name="thousand" paradigm="one-shot" platform="epiphany5" duration="1s">"#,
    );
    let mut joined = String::new();
    for chain in 0..64u64 {
        for place in 0..32 {
            // Along the row and back.
            let column = if chain % 2 == 0 { place } else { 31 - place };
            let core = chain / 2 * 32 + column;
            let kind = match place {
                0 => "Source",
                31 => "Sink",
                _ => "Stage",
            };
            let _ = write!(
                text,
                r#"<task name="t{chain}-{place}" program="one-shot::pipeline::{kind}" core="{core}" priority="{}" period="1ms" cost="10us"/>"#,
                chain % 2 + 1
            );
            if place > 0 {
                let _ = write!(
                    joined,
                    r#"<channel name="c{chain}-{place}" from="t{chain}-{}" to="t{chain}-{place}" size="16B"/>"#,
                    place - 1
                );
            }
        }
        let _ = write!(
            joined,
            r#"<flow name="f{chain}" from="t{chain}-0" to="t{chain}-31"/>"#
        );
    }
    let begin = std::time::Instant::now();
    let finished = described("thousand", &(text + &joined + "</system>")).expect("it runs");
    println!(
        "1024 cores for a second: {:.0} s of the host",
        begin.elapsed().as_secs_f64()
    );
    holds(&finished.result);
    assert_eq!(finished.result.verdict.promises().len(), 10_176);
}

/// The verdict of `check`, and that of a run in which no job is ever late.
#[test]
fn an_overloaded_core_fails_whichever_command_judges_it() {
    let text = r#"<system name="overloaded" paradigm="one-shot" platform="epiphany3" duration="30ms">
        <task name="other" program="one-shot/pair.c::other" core="1" priority="1" period="5ms" cost="5500us"/>
        <task name="light" program="one-shot/pair.c::other" core="2" priority="1" period="5ms" cost="210us"/></system>"#;
    let system = bulkhead_model::load_system_text("overloaded", text, &Default::default());
    let system = system.expect("valid");
    let one_shot = system.one_shot.as_ref().expect("it is one");
    let bounds = bulkhead_analysis::plan::one_shot::bounds(one_shot, &system.platform);
    let checked = bulkhead_analysis::plan::plan(&bounds.tasks).expect("it can be judged");
    assert!(!checked.schedulable);
    let result = described("overloaded", text).expect("it runs").result;
    let failed = result.verdict.promises().iter();
    let failed: Vec<&str> = failed
        .filter(|one| one.judgement == Judgement::Failed)
        .map(|one| one.what.as_str())
        .collect();
    let what =
        "task other: no bound within the deadline: its core, or a core on its path, is overloaded";
    assert_eq!(failed, [what]);
}

/// What is known of a queue and its flow is the same for `check` and for a run: that its reader is slower, or nothing.
#[test]
fn a_queue_without_a_bound_is_judged_alike_by_check_and_run() {
    let (waits, slow) = ("platform/network@credits=2", "keeper@period=5ms");
    for (change, why) in [
        (waits, "nothing bounds waits for room"),
        (slow, "the reader is slower than the writer"),
    ] {
        let changes = [change, "@duration=20ms"];
        let set: Vec<String> = changes.iter().map(|one| (*one).to_owned()).collect();
        let tasks = files::load("oneshot/queue".as_ref(), &set, &Default::default());
        let tasks = tasks.expect("valid").expect("they are tasks");
        let checked = bulkhead_analysis::plan::plan(&tasks).expect("it can be judged");
        let of = |kind| {
            let mut all = checked.constraints.iter();
            all.find(|one| one.kind == kind).expect("one")
        };
        let result = run("oneshot/queue".as_ref(), &changes)
            .expect("it runs")
            .result;
        let promises = result.verdict.promises();
        let (found, texts) = match change == slow {
            true => (
                Judgement::Failed,
                [
                    "queue readings: no bound within 4 places",
                    "flow reading: no bound within the deadline",
                ],
            ),
            false => (
                Judgement::NotJudged,
                [
                    "queue readings: a bound within 4 places",
                    "flow reading: a bound within its deadline",
                ],
            ),
        };
        for (kind, text) in [Kind::Queue, Kind::Flow].into_iter().zip(texts) {
            let constraint = of(kind);
            assert_eq!(constraint.judgement, found, "{constraint:?}");
            assert!(
                constraint
                    .note
                    .as_ref()
                    .is_some_and(|note| note.contains(why))
            );
            let promise = promises.iter().find(|one| one.what.starts_with(text));
            let promise = promise.unwrap_or_else(|| panic!("{text} in {promises:#?}"));
            assert_eq!(promise.judgement, found, "{promise:?}");
            let said = promise.because.as_ref().unwrap_or(&promise.what);
            assert!(said.contains(why), "{promise:?}");
        }
        let failed = promises
            .iter()
            .any(|one| one.judgement == Judgement::Failed);
        assert_eq!(
            (failed, !checked.schedulable),
            (change == slow, change == slow)
        );
    }
}
