//! Parallel sections of tasks in Ada: the same numbers as in Rust and C, faster on more cores, and told when they fail.

use crate::one_shot_ada::has_gnat;
use crate::one_shot_systems::{folder_with, holds, run};
use bulkhead_experiments::reproduce::m2os::parallel::Work;
use bulkhead_report::result::Incident;
use bulkhead_runner::run::Finished;
use std::fmt::Write;

/// A filter in Ada takes at most this long on one core, in microseconds: as measured, rounded up.
const FILTER: u64 = 2400;

/// A filter of 2048 samples on this many cores.
fn filter(cores: u64, asker: &str, part: &str) -> String {
    let (own, helping) = (FILTER / cores + 250, FILTER / cores + 100);
    let wait = if cores > 1 { r#" wait="4ms""# } else { "" };
    let mut text = format!(
        r#"<system name="filter" paradigm="one-shot" platform="epiphany3" duration="59ms">
        <task name="task" program="{asker}" core="5" priority="1" period="10ms" cost="{own}us"{wait}/>"#
    );
    let (slice, result) = (2 * (32 + 2048 / cores), 4096 / cores);
    for number in 1..cores {
        let core = [1, 4, 6][number as usize - 1];
        let _ = write!(
            text,
            r#"<task name="helper-{number}" program="{part}" core="{core}" priority="1" period="10ms" cost="{helping}us" wait="3ms"/>
            <channel name="slice-{number}" from="task" to="helper-{number}" size="{slice}B"/>
            <channel name="result-{number}" from="helper-{number}" to="task" size="{result}B" answers="slice-{number}"/>"#
        );
    }
    text + "</system>"
}

fn in_folder(text: &str) -> Finished {
    let folder = folder_with(&[
        ("sums.ads", SPEC),
        ("sums.adb", include_str!("data/sums.adb.in")),
        ("system.xml", text),
    ]);
    run(&folder.path().join("system.xml"), &[]).expect("it runs")
}

const SPEC: &str = "package Sums is\n   task Asker;\n   task Twice;\n   task Leaves;\n   task Part;\n   task Dies;\n   task Greedy;\nend Sums;\n";

/// Numbers behind a text on the console, also if they are told as signed ones.
fn numbers(finished: &Finished, what: &str) -> Vec<u64> {
    let lines = finished.consoles[0].lines();
    let told = lines.filter_map(|line| line.strip_prefix(what)?.parse::<i128>().ok());
    told.map(|one| one as u64).collect()
}

/// Blocks that the filter tells are those of a plain computation; the first one is missing if helpers were not asked.
fn filtered(finished: &Finished, first: u64) {
    let blocks = numbers(finished, "core 5: block ");
    assert_eq!(blocks, (first..=6).collect::<Vec<_>>());
    let digests = Work::Filter.digests(6);
    assert_eq!(
        numbers(finished, "core 5: digest "),
        digests[first as usize - 1..]
    );
}

/// The longest section, in ticks of the machine, without the first one.
fn longest(finished: &Finished) -> u64 {
    let spans = &finished.result.variants[0].spans[0];
    let asked = spans.samples.iter().filter(|sample| sample.number > 1);
    asked.map(|sample| sample.latency).max().expect("sections")
}

#[test]
fn a_filter_in_ada_is_right_and_faster_on_more_cores() {
    if !has_gnat() {
        return;
    }
    let mut sections = Vec::new();
    for cores in [1, 2, 4] {
        let unit = format!("one-shot/filter_on_{cores}.adb::On.");
        let text = filter(cores, &format!("{unit}Filter"), &format!("{unit}Part"));
        let finished = in_folder(&text);
        holds(&finished.result);
        filtered(&finished, if cores == 1 { 1 } else { 2 });
        sections.push(longest(&finished));
    }
    println!("longest sections on 1, 2 and 4 cores: {sections:?}");
    // The filter's loop is at another place of a line in each image, so one core needs 18 or 21 cycles for a multiplication: two cores are 1.57 to 2.31 times as fast as one, by
    // the order of functions in the images. From two to four cores it was 1.98 each time.
    assert!(10 * sections[0] > 14 * sections[1], "{sections:?}");
    assert!(10 * sections[1] > 18 * sections[2], "{sections:?}");
}

#[test]
fn ada_and_rust_share_a_section() {
    if !has_gnat() {
        return;
    }
    let ada = "one-shot/filter_on_4.adb::On.";
    let rust = "one-shot::parallel::filter::";
    for text in [
        filter(4, &format!("{ada}Filter"), &format!("{rust}Part4")),
        filter(4, &format!("{rust}Filter4"), &format!("{ada}Part")),
    ] {
        let finished = in_folder(&text);
        holds(&finished.result);
        filtered(&finished, 2);
    }
}

/// A task and its three helpers.
fn sums(asker: &str, parts: [&str; 3]) -> String {
    let mut text = format!(
        r#"<system name="section" paradigm="one-shot" platform="epiphany3" duration="50ms">
        <task name="asker" program="{asker}" core="5" priority="1" period="5ms" cost="200us" wait="1500us"/>"#
    );
    for (number, (core, part)) in [1, 4, 10].into_iter().zip(parts).enumerate() {
        let number = number + 1;
        let _ = write!(
            text,
            r#"<task name="part-{number}" program="{part}" core="{core}" priority="1" period="5ms" cost="100us" wait="1000us"/>
            <channel name="slice-{number}" from="asker" to="part-{number}" size="128B"/>
            <channel name="result-{number}" from="part-{number}" to="asker" size="8B" answers="slice-{number}"/>"#
        );
    }
    text + "</system>"
}

const PART: &str = "sums.adb::Part";

/// Returns the rounds whose sums are there; all of them are right.
fn summed(finished: &Finished) -> Vec<u64> {
    let rounds = numbers(finished, "core 5: round ");
    let sums: Vec<u64> = rounds
        .iter()
        .map(|round| (0..64).map(|at| (100 * round + at).pow(2)).sum())
        .collect();
    assert_eq!(numbers(finished, "core 5: sum "), sums);
    rounds
}

#[test]
fn ada_and_c_share_a_section() {
    if !has_gnat() {
        return;
    }
    let c = "one-shot/parallel.c::part";
    for text in [
        sums("sums.adb::Asker", [PART, c, PART]),
        sums("one-shot/parallel.c::asker", [PART; 3]),
    ] {
        let finished = in_folder(&text);
        holds(&finished.result);
        let rounds = summed(&finished);
        assert_eq!(rounds, (2..=10).collect::<Vec<_>>());
        let console = &finished.consoles[0];
        assert_eq!(console.lines().count(), 2 * rounds.len(), "{console}");
    }
}

fn of<'a>(finished: &'a Finished, who: &str) -> Vec<&'a Incident> {
    let all = finished.result.variants[0].incidents.iter();
    all.filter(|one| one.application == who).collect()
}

/// The others go on, and the section ends within its bound without the helper.
#[test]
fn a_helper_in_ada_that_dies_is_told() {
    if !has_gnat() {
        return;
    }
    let finished = in_folder(&sums("sums.adb::Asker", [PART, "sums.adb::Dies", PART]));
    let dead = of(&finished, "part-2");
    let mut lines = include_str!("data/sums.adb.in").lines();
    let raise = lines.position(|line| line.contains("raise Program_Error"));
    let line = 1 + raise.expect("a line");
    assert!(
        dead.iter()
            .any(|one| one.what.contains(&format!("exception at sums.adb:{line}"))),
        "{dead:?}"
    );
    let asker = of(&finished, "asker");
    let what = "jobs waited for `result-2` in vain: `part-2` on core 4 sent nothing";
    assert!(asker.iter().any(|one| one.what.contains(what)), "{asker:?}");
    assert_eq!(summed(&finished), [2, 3]);
    let late = numbers(&finished, "core 5: late: ");
    assert!(
        !late.is_empty() && late.iter().all(|one| *one == 1),
        "{late:?}"
    );
    for request in &finished.result.variants[0].requests {
        if request.kind == "response" && request.application != "part-2" {
            let bound = request.bound.as_ref().expect("a bound").ticks;
            assert!(request.count >= 8 && request.worst <= bound, "{request:?}");
        }
    }
}

/// A second section or slice in a job, and a section after a job that ended otherwise, stop the task with file and line.
#[test]
fn a_second_section_in_a_job_of_ada_is_refused() {
    if !has_gnat() {
        return;
    }
    for (asker, part, whose) in [
        ("Twice", "Part", "asker"),
        ("Leaves", "Part", "asker"),
        ("Asker", "Greedy", "part-1"),
    ] {
        let part = format!("sums.adb::{part}");
        let finished = in_folder(&sums(&format!("sums.adb::{asker}"), [&*part; 3]));
        let told = of(&finished, whose);
        let what = "a second section, but Next_Section has not ended the job of the first one at sums.adb:";
        assert!(
            told.len() == 1 && told[0].what.contains(what),
            "{asker}, {part}: {:?}",
            finished.result.variants[0].incidents
        );
    }
}
