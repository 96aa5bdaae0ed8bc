//! Cores of the one-shot RTOS with timers of their own: whatever their offsets and drifts are, no clock is more wrong after its synchronisation than
//! its bound says.

use crate::one_shot_systems::{drawn, folder_with, holds, run};
use bulkhead_model::{LoadOptions, System, load_system};
use bulkhead_random::Random;
use bulkhead_report::result::{ClockResult, IncidentKind, RunResult};
use bulkhead_runner::image::BootImage;
use bulkhead_runner::oneshot::OneShot;
use bulkhead_runner::paradigm::{Paradigm, Said};
use bulkhead_runner::programs::Library;
use bulkhead_runner::progress::Silent;
use bulkhead_runner::run::{Finished, Options};
use std::fmt::Write;

/// A count of the timers takes four ticks of the machine on these platforms.
const COUNT: u64 = 4;

fn clocks(result: &RunResult) -> &[ClockResult] {
    &result.variants[0].clocks
}

/// Errors and bounds of a run for readers, in counts: the largest of each, and the smallest bound.
fn summary(all: &[ClockResult]) -> String {
    let most = |of: &dyn Fn(&ClockResult) -> u64| all.iter().map(of).max().unwrap_or(0) / COUNT;
    format!(
        "synchronised: {} of {}, at the end: {} of {}",
        most(&|one| one.synchronised.error),
        most(&|one| one.synchronised.bound),
        most(&|one| one.end.error),
        most(&|one| one.end.bound)
    )
}

#[test]
fn sixteen_clocks_follow_one() {
    let finished = run("oneshot/clocks".as_ref(), &[]).expect("it runs");
    let result = &finished.result;
    holds(result);
    let all = clocks(result);
    println!("oneshot/clocks, in counts: {}", summary(all));
    assert_eq!(all.len(), 15);
    // The way of a message is known to some tens of counts: without the synchronisation, clocks differ by up to 24 million.
    assert!(
        all.iter().all(|one| one.synchronised.bound < 200 * COUNT),
        "{all:?}"
    );
    assert!(
        all.iter()
            .any(|one| one.correction.unsigned_abs() > 20_000_000)
    );
    let flow = &result.variants[0].flows[0];
    assert_eq!((flow.lost, flow.misses), (0, 0));
    assert!(flow.samples.len() >= 5);
    let text = bulkhead_report::table::summary(result);
    assert!(
        text.contains("Clocks of cores beside the clock that they follow"),
        "{text}"
    );
}

/// Offsets up to a second, drifts up to a hundredth, on all cores of a mesh of 4 by 4. Images do not depend on them.
#[test]
fn no_error_exceeds_its_bound() {
    let mut random = Random::new(15);
    for round in 0..drawn(3) {
        let mut changes = vec!["@duration=8ms".to_owned()];
        changes.extend(chip(random.next(), 10_000));
        let changes: Vec<&str> = changes.iter().map(String::as_str).collect();
        let finished = run("oneshot/clocks".as_ref(), &changes).expect("it runs");
        let all = clocks(&finished.result);
        println!("round {round}, in counts: {}", summary(all));
        assert_eq!(all.len(), 15);
        for one in all {
            assert!(
                one.synchronised.error <= one.synchronised.bound,
                "{changes:?} {one:?}"
            );
            assert!(one.end.error <= one.end.bound, "{changes:?} {one:?}");
        }
        assert_eq!(finished.result.variants[0].incidents, [], "{changes:?}");
        let options = LoadOptions {
            overrides: changes.iter().map(|one| (*one).to_owned()).collect(),
            ..LoadOptions::default()
        };
        foretold(
            &load_system("oneshot/clocks", &options).expect("valid"),
            all,
        );
    }
}

/// Changes that give all sixteen cores another timer: offsets up to a second, drifts up to so many parts per million.
pub fn chip(seed: u64, drift: u64) -> Vec<String> {
    let mut random = Random::new(seed);
    let mut changes = Vec::new();
    for tile in 0..16 {
        let offset = random.below(1_000_000_000);
        let drift = random.below(2 * drift + 1) as i64 - drift as i64;
        changes.push(format!("platform/tile[{tile}]@clock-offset={offset}ns"));
        changes.push(format!("platform/tile[{tile}]@clock-drift={drift}ppm"));
    }
    changes
}

/// Runs a system with other timers; only one of its variants, if one is named.
fn on_chip(
    (system, variant): (&str, Option<&str>),
    more: &[&str],
    seed: u64,
    drift: u64,
) -> Finished {
    let mut changes = vec!["@platform=epiphany3-clocks".to_owned()];
    changes.extend(more.iter().map(|one| (*one).to_owned()));
    changes.extend(chip(seed, drift));
    let options = Options {
        system: system.into(),
        overrides: changes,
        variants: variant.map(str::to_owned).into_iter().collect(),
        ..Options::default()
    };
    bulkhead_runner::run::run(&options, &Silent).expect("it runs")
}

/// Events that doorbells tell, over seven cores whose clocks drift apart by up to twice so much.
#[test]
fn told_readers_with_clocks_of_their_own_keep_their_bounds() {
    for (seed, drift) in [(1, 100), (2, 1000), (4, 10_000)] {
        let deadline = ["flow[event]@deadline=25ms"];
        let notify = ("oneshot/notify", Some("notification"));
        let finished = on_chip(notify, &deadline, seed, drift);
        let told = &finished.result.variants[0];
        assert_eq!(told.incidents, [], "{seed}");
        let flow = &told.flows[0];
        let bound = flow.bound.as_ref().expect("a bound").ticks;
        println!(
            "{drift} ppm: {} events of {} ticks at most, bound {bound}",
            flow.samples.len(),
            flow.latency.max
        );
        assert_eq!(flow.lost, 0);
        assert!(flow.samples.len() >= 8 && flow.latency.max <= bound);
        for request in &told.requests {
            let bound = request.bound.as_ref().expect("a bound");
            assert!(request.worst <= bound.ticks, "{seed}: {request:?}");
        }
    }
}

/// Four cores filter what one would, although their clocks drift apart; a slice takes no more than its bound, and no job waits in vain.
#[test]
fn a_parallel_section_with_clocks_of_its_own_keeps_its_bounds() {
    for (seed, drift) in [(1, 100), (2, 1000), (3, 5000)] {
        let wait = ["task[helper-*]@wait=1600us", "task[filter]@wait=2500us"];
        let finished = on_chip(("oneshot/parallel", None), &wait, seed, drift);
        let variant = &finished.result.variants[0];
        assert_eq!(variant.incidents, [], "{seed}");
        let blocks = crate::one_shot_parallel::right(&finished);
        assert!(blocks.len() >= 8, "{blocks:?}");
        for request in &variant.requests {
            let bound = request.bound.as_ref().expect("a bound");
            assert!(request.worst <= bound.ticks, "{seed}: {request:?}");
        }
        let handed = variant
            .requests
            .iter()
            .filter(|one| one.kind == "handed over");
        for one in handed {
            println!(
                "{drift} ppm: {} {}: {} of {:?}",
                one.application,
                one.to,
                one.worst,
                one.bound.as_ref().map(|b| b.ticks)
            );
        }
    }
}

/// What `check` says before a run is at least what kernels say in it: on random chips, and up to 62 hops away (see `far_corners_follow_one_clock`).
fn foretold(system: &System, all: &[ClockResult]) {
    let one_shot = system.one_shot.as_ref().expect("it is one");
    let bounds = bulkhead_analysis::one_shot_clocks::clock_bounds(one_shot, &system.platform);
    let ticks = |time: bulkhead_model::units::Time| {
        let per_second = u128::from(system.platform.ticks_per_second());
        (u128::from(time.0) * per_second).div_ceil(1_000_000_000_000) as u64
    };
    let (mut least, mut most) = (u64::MAX, 0);
    for one in all {
        let bound = bounds.iter().find(|bound| bound.core == one.core);
        let bound = bound.and_then(|bound| bound.error.within());
        let bound = bound.expect("it follows another core, and both are like epiphany3's");
        assert!(one.end.bound <= ticks(bound.end), "{one:?} {bound:?}");
        let share = one.end.bound * 100 / ticks(bound.end);
        (least, most) = (least.min(share), most.max(share));
    }
    println!("the kernel's bound at the end, of the one before the run: {least} to {most} %");
}

/// A mesh of 32 by 32: the corners, and the core next to the master, up to 62 hops away.
#[test]
fn far_corners_follow_one_clock() {
    let platform = include_str!("../../../catalog/platforms/epiphany5.xml");
    let (before, after) = platform
        .split_once("  <tile id=\"0\" count=\"1024\"")
        .expect("the tiles");
    let (_, after) = after.split_once("/>\n").expect("their end");
    let mut random = Random::new(5);
    let corners = [0, 1, 31, 500, 992, 1023];
    let mut tiles = String::new();
    let mut next = 0;
    let mut put = |first: u32, count: u32, more: &str| {
        if count > 0 {
            let _ = writeln!(
                tiles,
                "  <tile id=\"{first}\" router=\"{first}\" count=\"{count}\" pipeline=\"ecore\" local-memory=\"sram\" dma=\"mover\" exit=\"true\" uart=\"true\"{more}/>"
            );
        }
    };
    for corner in corners {
        put(next, corner - next, "");
        let (offset, drift) = (random.below(1_000_000_000), random.below(401) as i64 - 200);
        put(
            corner,
            1,
            &format!(
                " clock-offset=\"{offset}ns\" clock-drift=\"{drift}ppm\" source=\"assumption: a test\""
            ),
        );
        next = corner + 1;
    }
    let mut system = String::from(
        r#"<system name="far" paradigm="one-shot" platform="./far.xml" duration="6ms">"#,
    );
    for corner in corners {
        let _ = write!(
            system,
            r#"<task name="t{corner}" program="one-shot::pipeline::Other" core="{corner}" priority="1" period="1ms" cost="60us"/>"#
        );
    }
    let platform = format!("{before}{tiles}{after}").replace("name=\"epiphany5\"", "name=\"far\"");
    let folder = folder_with(&[
        ("far.xml", &platform),
        ("system.xml", &(system + "</system>")),
    ]);
    let finished = run(&folder.path().join("system.xml"), &[]).expect("it runs");
    let all = clocks(&finished.result);
    println!("1024 cores, corners, in counts: {}", summary(all));
    for one in all {
        println!("core {}: {:?}", one.core, one.synchronised);
    }
    assert_eq!(all.len(), corners.len() - 1);
    let system = load_system(folder.path().join("system.xml"), &LoadOptions::default());
    foretold(&system.expect("valid"), all);
    holds(&finished.result);
}

/// `oneshot/clocks` for this duration, where the core of one tile never starts.
fn without(duration: &str, tile: u16) -> (System, BootImage) {
    let changes = LoadOptions {
        overrides: vec![format!("@duration={duration}")],
        ..LoadOptions::default()
    };
    let system = load_system("oneshot/clocks", &changes).expect("valid");
    let root = bulkhead_runner::place::root().expect("a checkout");
    let library = Library::new(&root, std::path::Path::new(".")).expect("cargo works");
    let programs = OneShot.build(&library, &[&system]).expect("it builds");
    let mut image: BootImage = OneShot.image(&system, &programs).expect("it fits");
    image.starts.retain(|start| start.tile != tile);
    (system, image)
}

/// One core never starts: the master gives up on it, which is told, and the others have their time.
#[test]
fn a_core_that_never_starts_keeps_no_clock_from_being_right() {
    let (system, image) = without("16ms", 5);
    let (machine, incidents) = ended(&system, &image);
    let told: Vec<(u16, &str)> = incidents
        .iter()
        .map(|one| (one.tile, one.what.as_str()))
        .collect();
    assert!(incidents.iter().all(|one| one.tile == 5), "{incidents:?}");
    assert!(
        told.iter()
            .any(|(_, what)| what.contains("core 0 waited at most 10 ticks")),
        "{told:?}"
    );
    assert!(
        incidents
            .iter()
            .any(|one| one.kind == IncidentKind::Unfinished),
        "{told:?}"
    );
    let markers = bulkhead_runner::observed::markers(&machine);
    let end = machine.now();
    let measured = bulkhead_runner::oneshot::results::measured(&system, &markers, end);
    assert_eq!(measured.clocks.len(), 14);
    for one in &measured.clocks {
        assert!(one.end.error <= one.end.bound, "{one:?}");
    }
}

/// The master never starts: nobody waits for more than 20 ticks, and each core tells it.
#[test]
fn without_a_master_each_core_keeps_its_own_time() {
    let (system, image) = without("21ms", 0);
    let (_, incidents) = ended(&system, &image);
    for core in 1..16 {
        let of_core: Vec<_> = incidents.iter().filter(|one| one.tile == core).collect();
        assert_eq!(of_core.len(), 1, "{of_core:?}");
        assert!(
            of_core[0].what.contains("core 0 did not send it the time"),
            "{of_core:?}"
        );
    }
}

/// Runs an image to the end of its system's duration; what went wrong.
pub fn ended(
    system: &System,
    image: &BootImage,
) -> (
    bulkhead_machine::machine::Machine,
    Vec<bulkhead_report::result::Incident>,
) {
    let mut machine = bulkhead_runner::boot::boot(&OneShot, system, image).expect("it boots");
    let per_second = u128::from(system.platform.ticks_per_second());
    let ticks = u128::from(system.duration.0) * per_second / 1_000_000_000_000;
    let limit = bulkhead_machine::machine::RunLimit {
        ticks: ticks as u64,
    };
    let outcome = machine.run(limit, None);
    assert!(
        matches!(outcome, bulkhead_machine::machine::Outcome::Limit),
        "{outcome:?}"
    );
    let markers = bulkhead_runner::observed::markers(&machine);
    let console = OneShot.console(system, image, &machine).expect("a console");
    let said = Said {
        names: &OneShot.names(system, &markers),
        console: &console,
        markers: &markers,
        running: &[],
        rings: &[],
        refused: &[],
        starts: &machine.starts(),
        prospects: &machine.prospects(),
        until: machine.now(),
        end: &bulkhead_report::result::End::Duration,
        ended_by: None,
    };
    let incidents = OneShot.incidents(system, &said, &|_, _| None);
    (machine, incidents)
}
