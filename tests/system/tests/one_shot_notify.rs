//! Tasks that messages release: bounds, a core that rings for ever, queues.

use crate::one_shot_systems::{described, draw, drawn, folder_with, holds, run};
use bulkhead_analysis::one_shot::Interrupts;
use bulkhead_report::result::{RequestResult, VariantResult};
use std::fmt::Write;

/// The longest of a kind, in ticks of the machine, and its bound.
fn longest(variant: &VariantResult, kind: &str) -> (u64, u64) {
    let all = variant.requests.iter().filter(|one| one.kind == kind);
    let bound = |one: &RequestResult| one.bound.as_ref().map_or(u64::MAX, |bound| bound.ticks);
    all.map(|one| (one.worst, bound(one)))
        .max()
        .expect("there is one")
}

#[test]
fn a_flow_that_is_told_is_faster_than_one_that_polls() {
    let finished = run("oneshot/notify".as_ref(), &[]).expect("it runs");
    let result = &finished.result;
    holds(result);
    let [polling, told] = &result.variants[..] else {
        panic!("two variants");
    };
    let of = |variant: &VariantResult| {
        let flow = &variant.flows[0];
        assert_eq!((flow.lost, flow.misses), (0, 0), "{}", variant.name);
        assert!(flow.latency.count >= 9, "{}", flow.latency.count);
        let bound = flow.bound.as_ref().expect("a bound").ticks;
        let jobs: u64 = variant.tasks.iter().map(|task| task.jobs).sum();
        println!(
            "{}: least {}, most {} of {bound} ticks, {jobs} jobs",
            variant.name, flow.latency.min, flow.latency.max
        );
        (flow.latency.max, bound, jobs)
    };
    let (polled, told_flow) = (of(polling), of(told));
    // A tick a hop, or nothing: six hops.
    assert!(5 * told_flow.0 < polled.0 && 3 * told_flow.1 < polled.1);
    assert!(3 * told_flow.2 < polled.2);
    assert!(polling.requests.iter().all(|one| one.kind != "notice"));
    let (worst, bound) = longest(told, "notice");
    println!("notice: {worst} of {bound} ticks");
}

/// The victim's core has a reader, and other work of higher and lower priority; its neighbour in the row rings for ever.
fn rung(by: &str) -> String {
    format!(
        r#"<system name="rung" paradigm="one-shot" platform="epiphany3" duration="30ms">
          <task name="source" program="one-shot::pipeline::Source" core="14" priority="1" period="2ms" cost="10us"/>
          <task name="above" program="one-shot::pipeline::Other" core="6" priority="1" period="3ms" cost="125us"/>
          <task name="sink" program="one-shot::pipeline::Sink" core="6" priority="2" period="2ms" cost="10us"/>
          <task name="below" program="one-shot::pipeline::Other" core="6" priority="3" period="5ms" cost="205us"/>
          <task name="neighbour" program="{by}" core="7" priority="1" period="5ms" cost="205us"/>
          <channel name="events" from="source" to="sink" size="16B" notify="true"/>
          <flow name="event" from="source" to="sink"/></system>"#
    )
}

#[test]
fn who_rings_for_ever_takes_no_more_than_was_planned() {
    let peaceful = described("rung", &rung("one-shot::pipeline::Other")).expect("it runs");
    holds(&peaceful.result);
    let attacked = described("rung", &rung("one-shot::hostile::Ringer")).expect("it runs");
    let variant = &attacked.result.variants[0];
    let responses = |variant: &VariantResult, name: &str| {
        let mut all = variant.requests.iter();
        let found = all.find(|one| one.kind == "response" && one.application == name);
        let found = found.expect("a response");
        assert!(found.count > 0);
        (found.worst, found.bound.as_ref().expect("a bound").ticks)
    };
    for name in ["above", "sink", "below"] {
        let (worst, bound) = responses(variant, name);
        let before = responses(&peaceful.result.variants[0], name);
        println!(
            "{name}: {worst} of {bound} ticks, {} beside no attack",
            before.0
        );
        assert!(
            worst <= bound && bound == before.1,
            "{name}: {worst} of {bound}"
        );
    }
    // No message is lost, and none is delivered twice.
    let flow = &variant.flows[0];
    assert_eq!(flow.lost, 0);
    assert!(flow.latency.count >= 12, "{}", flow.latency.count);
    let told: Vec<(&str, &str)> = variant
        .incidents
        .iter()
        .map(|one| (&*one.application, &*one.what))
        .collect();
    println!("{told:#?}");
    let rings = told
        .iter()
        .filter(|one| one.0 == "core 6")
        .collect::<Vec<_>>();
    let [(_, what)] = rings[..] else {
        panic!("{told:?}");
    };
    assert!(
        what.starts_with("its doorbell rang more than 2 times in a tick"),
        "{what}"
    );
    // The attacker rang first, then the honest writer.
    assert!(
        what.contains("it was rung by core 7 ") && what.contains(", core 14 "),
        "{what}"
    );
    assert!(attacked.result.has_accident());
    let broken = attacked.result.verdict.promises().iter();
    let broken: Vec<&str> = broken
        .filter(|one| one.judgement == bulkhead_report::verdict::Judgement::Failed)
        .map(|one| &*one.what)
        .collect();
    println!("broken: {broken:#?}");
}

#[test]
fn a_queue_that_tells_its_reader_loses_nothing() {
    let changes = ["channel[readings]@notify=true", "task[keeper]@period=4ms"];
    let finished = run("oneshot/queue".as_ref(), &changes).expect("it runs");
    holds(&finished.result);
    let lines = finished.consoles[0].lines();
    let numbers: Vec<u64> = lines
        .filter_map(|line| line.strip_prefix("core 9: item ")?.parse().ok())
        .collect();
    assert_eq!(numbers, (1..=numbers.len() as u64).collect::<Vec<_>>());
    assert!(numbers.len() >= 48, "{}", numbers.len());
}

/// The paper's producer and consumer in C: the same file, with messages that release the consumer.
#[test]
fn a_task_in_c_is_told() {
    let changes = ["channel[items]@notify=true", "task[consumer]@period=10ms"];
    let polled = run("oneshot/pair".as_ref(), &[]).expect("it runs");
    let told = run("oneshot/pair".as_ref(), &changes).expect("it runs");
    holds(&told.result);
    let of = |result: &bulkhead_report::result::RunResult| {
        let variant = &result.variants[0];
        let flow = &variant.flows[0];
        assert_eq!((flow.lost, flow.misses), (0, 0));
        let numbers: Vec<u64> = flow.samples.iter().map(|sample| sample.number).collect();
        (numbers, flow.latency.max)
    };
    let (polled, told) = (of(&polled.result), of(&told.result));
    println!("in C: polled {} ticks, told {}", polled.1, told.1);
    // The first items come earlier, because the consumer is ready as soon as its core is.
    assert_eq!(told.0, (1..=told.0.len() as u64).collect::<Vec<_>>());
    assert!(told.0.len() >= polled.0.len() && 3 * told.1 < polled.1);
}

/// Chains of released and polling tasks over cores drawn at random, next to other work: measurements are within their bounds.
#[test]
fn systems_with_notification_drawn_at_random_keep_their_bounds() {
    keep_their_bounds("epiphany3", |_| Vec::new());
}

/// The same on chips whose cores have timers of their own: offsets up to a second, drifts up to a thousandth, ten times those of a poor quartz crystal.
#[test]
fn systems_with_notification_keep_their_bounds_with_clocks_of_their_own() {
    keep_their_bounds("epiphany3-clocks", |seed| {
        crate::one_shot_clocks::chip(seed, 1000)
    });
}

/// Systems drawn at random on a platform that these changes make of another one.
fn keep_their_bounds(platform: &str, changes: impl Fn(u64) -> Vec<String>) {
    let mut judged = [0, 0];
    for seed in 11..11 + drawn(3) {
        let mut state = seed;
        let mut text = format!(
            r#"<system name="told-{seed}" paradigm="one-shot" platform="{platform}" duration="120ms">"#
        );
        let (mut tasks, mut channels) = (Vec::new(), String::new());
        for chain in 0..3 {
            let length = 2 + draw(&mut state, 3);
            let mut period = 1 + draw(&mut state, 10);
            for place in 0..=length {
                let core = draw(&mut state, 16);
                let polls = place > 0 && draw(&mut state, 4) == 0;
                let kind = match place {
                    0 => "Source",
                    _ if place == length => "Sink",
                    _ => "Stage",
                };
                if polls {
                    period = 1;
                }
                tasks.push((format!("t{chain}-{place}"), kind, core, period, 10));
                if place > 0 {
                    let _ = write!(
                        channels,
                        r#"<channel name="c{chain}-{place}" from="t{chain}-{}" to="t{chain}-{place}" size="16B" notify="{}"/>"#,
                        place - 1,
                        !polls
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
            tasks.push((
                format!("other-{number}"),
                "Other",
                core,
                period,
                period * 41,
            ));
        }
        let mut priorities = [0; 16];
        for (name, kind, core, period, cost) in tasks {
            priorities[core as usize] += 1;
            let _ = write!(
                text,
                r#"<task name="{name}" program="one-shot::pipeline::{kind}" core="{core}" priority="{}" period="{period}ms" cost="{cost}us"/>"#,
                priorities[core as usize]
            );
        }
        let folder = folder_with(&[("told.xml", &(text + &channels + "</system>"))]);
        let changes = changes(seed);
        let changes: Vec<&str> = changes.iter().map(String::as_str).collect();
        let finished = run(&folder.path().join("told.xml"), &changes).expect("it runs");
        let variant = &finished.result.variants[0];
        assert_eq!(variant.incidents, [], "{seed}");
        // Not all of these systems keep their deadlines by their bounds, and a request without a bound cannot exceed one.
        for request in &variant.requests {
            let bound = request.bound.as_ref().map(|bound| bound.ticks);
            assert!(
                bound.is_none_or(|bound| request.worst <= bound),
                "{seed}: {request:?}"
            );
            judged[usize::from(bound.is_some())] += 1;
        }
        for flow in &variant.flows {
            let bound = flow.bound.as_ref().map(|bound| bound.ticks);
            assert!(
                bound.is_none_or(|bound| flow.latency.max <= bound),
                "{seed}: {flow:?}"
            );
            judged[usize::from(bound.is_some())] += 1;
        }
    }
    println!("{platform}, without and with a bound: {judged:?}");
    assert!(judged[1] > 8 * judged[0]);
}

/// Interrupts as the analysis counts them, seen by three jobs that only read the clock, each for longer than a tick: the tick alone, with a ring of an honest
/// writer, and with all rings that the core accepts in a tick at once.
#[test]
fn interrupts_take_no_longer_than_the_analysis_says() {
    let text = |by: &str, notify: bool, readers: u64| {
        let mut text = format!(
            r#"<system name="watched" paradigm="one-shot" platform="epiphany3" duration="24ms">
              <task name="watcher" program="one-shot::watch::Watcher" core="6" priority="9" period="11ms" cost="1120us"/>
              <task name="neighbour" program="{by}" core="7" priority="1" period="15ms" cost="615us"/>"#
        );
        for reader in 0..readers {
            let _ = write!(
                text,
                r#"<task name="source-{reader}" program="one-shot::pipeline::Source" core="{reader}" priority="1" period="1ms" cost="10us"/>
                <task name="sink-{reader}" program="one-shot::pipeline::Sink" core="6" priority="{}" period="1ms" cost="10us"/>
                <channel name="events-{reader}" from="source-{reader}" to="sink-{reader}" size="16B" notify="{notify}"/>"#,
                reader + 1
            );
        }
        text + "</system>"
    };
    let longest = |text: &str| {
        let finished = described("watched", text).expect("it runs");
        let lines = finished.consoles[0].lines();
        let said = lines.filter_map(|line| line.strip_prefix("core 6: longest ")?.parse().ok());
        let said: Option<u64> = said.max();
        said.expect("it said something")
    };
    let (polite, hostile) = ("one-shot::pipeline::Other", "one-shot::hostile::Ringer");
    for readers in [1, 4] {
        let text_of = |by, notify| text(by, notify, readers);
        let system =
            bulkhead_model::load_system_text("w", &text_of(polite, true), &Default::default());
        let system = system.expect("valid");
        let one_shot = system.one_shot.as_ref().expect("it is one");
        let bound = Interrupts::of(one_shot, &system.platform, 6);
        let quiet = longest(&text_of(polite, false));
        let told = longest(&text_of(polite, true));
        let attacked = longest(&text_of(hostile, true));
        println!(
            "{readers} readers: {quiet} cycles at a tick without notification, {told} with it, {attacked} attacked; {bound:?}"
        );
        assert!(quiet <= bound.tick, "{quiet} of {}", bound.tick);
        assert!(
            attacked <= bound.tick + bound.rings,
            "{attacked} of {bound:?}"
        );
        assert!(told <= attacked);
    }
}
