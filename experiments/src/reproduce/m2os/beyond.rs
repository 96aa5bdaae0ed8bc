//! Beyond the paper: its Tables 5 and 6 on 1024 cores, queues beside sampling ports, doorbells beside polling, rivals at a port's core, and the same tasks in three languages.
//!
//! Why it exists: the paper leaves queues, notification and larger chips to the future, and its kernel has one language. What it
//! deliberately does not know: what would be good; it judges only that nothing went wrong and that bounds hold.

use bulkhead_report::distribution::distribution;
use bulkhead_report::result::{Distribution, VariantResult};
use bulkhead_report::verdict::{Judgement, Promise};
use bulkhead_runner::ada_programs;
use bulkhead_runner::error::Error;
use bulkhead_runner::oneshot::measured::{Spans, spans};
use bulkhead_runner::progress::Progress;
use bulkhead_runner::run::{self, Finished};
use serde::Serialize;
use std::fmt::Write;

/// Maximum cycles of a program.
const CYCLES: u64 = 2_000_000_000;
/// The chip of 1024 cores.
const LARGE: &str = "epiphany5";
/// Tiles of it, and their hops from the first one; the programs `far-times` and `far-trips` have the same list.
pub const FAR: [(u16, u64); 8] = [
    (1, 1),
    (2, 2),
    (4, 4),
    (8, 8),
    (16, 16),
    (31, 31),
    (15 * 32 + 31, 46),
    (31 * 32 + 31, 62),
];
/// Operations of `far-times` and `far-trips`: number, name, and answers of which each takes 3 cycles a hop. A round trip waits for two
/// writes and for none of its reads; each side sees the other's item when the data is there, before the acknowledgement.
const OPERATIONS: [(u64, &str, Option<u64>); 6] = [
    (2, "write 8 bytes", Some(2)),
    (3, "read 8 bytes", Some(4)),
    (4, "write 40 bytes", Some(2)),
    (5, "read 40 bytes", Some(5)),
    (8, "round trip of 8 bytes", None),
    (9, "round trip of 40 bytes", None),
];
/// Cycles of a hop there and back.
const HOP: u64 = 3;

/// A comparison: each row is a case, and each column a figure of it.
#[derive(Clone, Debug, Serialize)]
pub struct Comparison {
    /// Its title.
    pub title: String,
    /// The names of the figures.
    pub columns: Vec<String>,
    /// Names of cases, and their figures.
    pub rows: Vec<(String, Vec<String>)>,
}

fn comparison(title: &str, columns: &[&str]) -> Comparison {
    Comparison {
        title: title.to_owned(),
        columns: columns.iter().map(|&one| one.to_owned()).collect(),
        rows: Vec::new(),
    }
}

/// Runs all.
///
/// # Errors
/// If a program or system cannot be run.
pub fn beyond(progress: &dyn Progress) -> Result<(Vec<Comparison>, Vec<Promise>), Error> {
    let mut promises = Vec::new();
    let all = vec![
        far(progress, &mut promises)?,
        queues(progress)?,
        doorbells(progress, &mut promises)?,
        rivals(progress, &mut promises)?,
        languages(progress, &mut promises)?,
    ];
    Ok((all, promises))
}

/// Cycles of a span.
fn of(spans: &Spans, number: u64) -> Result<Distribution, Error> {
    let cycles = spans.get(&number).filter(|all| !all.is_empty());
    let cycles = cycles.ok_or_else(|| Error::Machine(format!("span {number} was not seen")))?;
    Ok(distribution(cycles.iter().copied()))
}

/// Tables 5 and 6 on 1024 cores.
fn far(progress: &dyn Progress, promises: &mut Vec<Promise>) -> Result<Comparison, Error> {
    let beside = |first: &'static str, other: &'static str| -> Vec<(u16, &str)> {
        let others = FAR.iter().map(|far| (far.0, other));
        [(0, first)].into_iter().chain(others).collect()
    };
    let times = beside("one-shot/far-times", "one-shot/port-owner");
    let trips = beside("one-shot/far-trips", "one-shot/port-answer");
    let mut seen = spans(LARGE, &times, CYCLES, progress)?;
    seen.extend(spans(LARGE, &trips, CYCLES, progress)?);
    let mut table = comparison(
        "Tables 5 and 6 on 1024 cores (epiphany5), in cycles: least, average and greatest by hops",
        &["1", "2", "4", "8", "16", "31", "46", "62"],
    );
    for (operation, name, answers) in OPERATIONS {
        let mut cells = Vec::new();
        let mut least = Vec::new();
        for (place, _) in FAR.iter().enumerate() {
            let one = of(&seen, 10 * operation + place as u64 + 1)?;
            least.push(one.min);
            cells.push(format!("{}; {:.0}; {}", one.min, one.mean, one.max));
        }
        if let Some(answers) = answers {
            // A hop takes one and a half cycles in each direction, so a whole number of them may be one off for each answer.
            let grown = least[FAR.len() - 1] - least[0];
            let expected = answers * HOP * (FAR[FAR.len() - 1].1 - FAR[0].1);
            promises.push(Promise::judged(
                "",
                format!("1024 cores, {name}: 61 more hops add {grown} cycles; {answers} answers need {expected}"),
                grown.abs_diff(expected) <= answers,
            ));
        }
        table.rows.push((name.to_owned(), cells));
    }
    Ok(table)
}

/// Queues compared with sampling ports, with nothing else outstanding.
fn queues(progress: &dyn Progress) -> Result<Comparison, Error> {
    const TILES: [u16; 7] = [0, 1, 2, 3, 7, 11, 15];
    let queues = TILES.map(|tile| (tile, "one-shot/queue-times"));
    let ports = TILES.map(|tile| match tile {
        0 => (0, "one-shot/port-times"),
        tile => (tile, "one-shot/port-owner"),
    });
    let queues = spans(super::PLATFORM, &queues, CYCLES, progress)?;
    let ports = spans(super::PLATFORM, &ports, CYCLES, progress)?;
    let mut table = comparison(
        "Queues beside sampling ports: average cycles for 8 bytes, on the own core and by hops",
        &["own", "1", "2", "3", "4", "5", "6"],
    );
    for (name, seen, operation) in [
        ("sampling port: write", &ports, 2),
        ("queue: put", &queues, 1),
        ("sampling port: read", &ports, 3),
        ("queue: take", &queues, 2),
    ] {
        let cells: Result<Vec<String>, Error> = (0..7)
            .map(|hops| Ok(format!("{:.1}", of(seen, 10 * operation + hops)?.mean)))
            .collect();
        table.rows.push((name.to_owned(), cells?));
    }
    Ok(table)
}

/// Runs a description, or a system of the catalog.
fn described(
    name: &str,
    text: Option<String>,
    progress: &dyn Progress,
    promises: &mut Vec<Promise>,
) -> Result<Finished, Error> {
    let options = run::Options {
        system: name.into(),
        text,
        ..run::Options::default()
    };
    let finished = run::run(&options, progress)?;
    let held = finished.result.verdict.promises().iter();
    let held = held.filter(|one| one.judgement != Judgement::Held).count() == 0;
    let variants = &finished.result.variants;
    let is_quiet = variants.iter().all(|one| one.incidents.is_empty());
    promises.push(Promise::judged(
        "",
        format!("{name}: everything within its bound, and nothing went wrong"),
        held && is_quiet,
    ));
    Ok(finished)
}

/// The longest of the requests of a kind, in cycles, with the bound of the longest.
fn longest(finished: &Finished, variant: &VariantResult, kind: &str, of: &str) -> [String; 2] {
    let all = variant.requests.iter();
    let all = all.filter(|one| one.kind == kind && one.application.starts_with(of));
    let cycles = |ticks| finished.result.cycles(ticks).to_string();
    match all.max_by_key(|one| one.worst) {
        Some(one) => [
            cycles(one.worst),
            one.bound
                .as_ref()
                .map_or("-".to_owned(), |bound| cycles(bound.ticks)),
        ],
        None => ["-".to_owned(), "-".to_owned()],
    }
}

/// Polling beside notification, over seven cores.
fn doorbells(progress: &dyn Progress, promises: &mut Vec<Promise>) -> Result<Comparison, Error> {
    let finished = described("oneshot/notify", None, progress, promises)?;
    let mut table = comparison(
        "Polling beside notification: an event over seven cores of epiphany3, 200 ms (oneshot/notify)",
        &["longest (us)", "bound (us)", "jobs of all tasks"],
    );
    for variant in &finished.result.variants {
        let Some(flow) = variant.flows.first() else {
            continue;
        };
        let microseconds = |ticks| format!("{:.1}", finished.result.microseconds(ticks));
        let jobs: u64 = variant.tasks.iter().map(|task| task.jobs).sum();
        let bound = flow
            .bound
            .as_ref()
            .map_or("-".to_owned(), |bound| microseconds(bound.ticks));
        let cells = vec![microseconds(flow.latency.max), bound, jobs.to_string()];
        table.rows.push((variant.name.clone(), cells));
    }
    Ok(table)
}

/// Writers on these cores, in this order: the one that is checked first.
const WRITERS: [u16; 13] = [0, 3, 12, 5, 10, 1, 2, 4, 7, 8, 11, 13, 14];

/// Writers of other cores to ports of one core, each its own, all released in the same tick.
fn against(rivals: usize) -> String {
    let mut text = String::from(
        "<system name=\"rivals\" paradigm=\"one-shot\" platform=\"epiphany3\" duration=\"40ms\">\n",
    );
    // Writing to a string cannot fail.
    for (number, core) in WRITERS.iter().take(rivals + 1).enumerate() {
        let _ = writeln!(
            text,
            "  <task name=\"writer-{number}\" program=\"one-shot::pipeline::Source\" core=\"{core}\" priority=\"1\" period=\"2ms\" cost=\"10us\"/>\n  \
             <task name=\"reader-{number}\" program=\"one-shot::pipeline::Sink\" core=\"15\" priority=\"{}\" period=\"1ms\" cost=\"10us\"/>",
            number + 1
        );
    }
    for number in 0..=rivals {
        let _ = writeln!(
            text,
            "  <channel name=\"c-{number}\" from=\"writer-{number}\" to=\"reader-{number}\" size=\"16B\"/>"
        );
    }
    text + "</system>\n"
}

fn rivals(progress: &dyn Progress, promises: &mut Vec<Promise>) -> Result<Comparison, Error> {
    let mut table = comparison(
        "Contention: a write of 16 bytes over six hops of epiphany3, while others write to the same core in the same tick, in cycles",
        &["longest", "bound"],
    );
    for count in [0, 1, 3, 6, 12] {
        let name = format!("rivals-{count}.xml");
        let finished = described(&name, Some(against(count)), progress, promises)?;
        let variant = &finished.result.variants[0];
        let cells = longest(&finished, variant, "write", "writer-0");
        table.rows.push((format!("{count} others"), cells.to_vec()));
    }
    Ok(table)
}

/// Six tasks on a core in a language. `#`: the number of an instance in Ada.
fn tellers(program: &str) -> String {
    let mut text = String::from(
        "<system name=\"tellers\" paradigm=\"one-shot\" platform=\"epiphany3\" duration=\"70ms\">\n",
    );
    for (number, period) in [5, 7, 10, 14, 20, 35].into_iter().enumerate() {
        let program = program.replace('#', &number.to_string());
        // Writing to a string cannot fail.
        let _ = writeln!(
            text,
            "  <task name=\"t{number}\" program=\"{program}\" core=\"0\" priority=\"{}\" period=\"{period}ms\" cost=\"{}us\"/>",
            number + 1,
            43 * period
        );
    }
    text + "</system>\n"
}

fn languages(progress: &dyn Progress, promises: &mut Vec<Promise>) -> Result<Comparison, Error> {
    let mut table = comparison(
        "Rust, C and Ada: the same six tasks on a core of epiphany3, 70 ms",
        &["jobs", "longest response (cycles)", "bound", "console"],
    );
    let mut first: Option<String> = None;
    for (name, program) in [
        ("Rust", "one-shot::pipeline::Teller"),
        ("C", "one-shot/pair.c::teller"),
        ("Ada", "one-shot/tellers.adb::T#.Teller"),
    ] {
        if name == "Ada" && !ada_programs::is_there() {
            let cells = ["-", "-", "-", "no GNAT for RISC-V here"];
            let cells = cells.map(str::to_owned).to_vec();
            table.rows.push((name.to_owned(), cells));
            continue;
        }
        let text = tellers(program);
        let file = format!("tellers-{name}.xml");
        let finished = described(&file, Some(text), progress, promises)?;
        let variant = &finished.result.variants[0];
        let jobs: u64 = variant.tasks.iter().map(|task| task.jobs).sum();
        let [worst, bound] = longest(&finished, variant, "response", "t");
        let console = finished.consoles.first().cloned().unwrap_or_default();
        let is_same = first.get_or_insert_with(|| console.clone()) == &console;
        promises.push(Promise::judged(
            "",
            format!("six tasks in {name}: the same lines in the same order as in Rust"),
            is_same,
        ));
        let lines = format!("{} lines", console.lines().count());
        table
            .rows
            .push((name.to_owned(), vec![jobs.to_string(), worst, bound, lines]));
    }
    Ok(table)
}
