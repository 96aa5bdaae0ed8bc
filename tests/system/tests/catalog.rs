//! Every system of the catalog has its filed verdicts, or the change log says why not.
//!
//! `check` and `plan` judge all of it in every run. Runs and audits take long, so they are ignored: `./bulkhead test --catalog`, or only some systems of it
//! with `BULKHEAD_CATALOG=quickstart,m3/storm`.

use bulkhead_analysis::plan::files;
use bulkhead_analysis::plan::system::complete;
use bulkhead_experiments::audit;
use bulkhead_model::{LoadOptions, Root, root, system_names, task_system_names};
use bulkhead_report::plan as report;
use bulkhead_report::verdict::Verdict;
use bulkhead_runner::progress::Silent;
use bulkhead_runner::run;
use bulkhead_system_tests::filed::{compare, line, without_numbers};
use std::fmt::Display;
use std::path::Path;
use std::time::Instant;

/// Simulated time of an audit from the start of the attack: four periods of the usual loops.
const WINDOW: &str = "4ms";

fn lines(code: u8, verdict: &Verdict) -> Vec<String> {
    let promises = verdict.promises().iter().map(line);
    std::iter::once(format!("exit code {code}"))
        .chain(promises)
        .collect()
}

/// Refusals are filed, too.
fn refused(error: impl Display) -> Vec<String> {
    let text = error.to_string();
    vec![without_numbers(&format!(
        "refused: {}",
        text.lines().next().unwrap_or_default()
    ))]
}

fn differences(names: Vec<String>, command: &str, judge: impl Fn(&str) -> Vec<String>) {
    let all: Vec<String> = names
        .into_iter()
        .filter_map(|name| compare(&name, command, &judge(&name)).err())
        .collect();
    assert!(all.is_empty(), "{}", all.join("\n"));
}

fn all_names() -> Vec<String> {
    let options = LoadOptions::default();
    let mut all = system_names(&options);
    all.extend(task_system_names(&options));
    all
}

fn checked(name: &str) -> Result<Verdict, Vec<String>> {
    let path = Path::new(name);
    if let Some(tasks) = files::load(path, &[], &files::Meaning::default()).map_err(refused)? {
        let judged = files::judged(&tasks).map_err(refused)?;
        return Ok(report::verdict(&judged.plan));
    }
    let system = bulkhead_model::load_system(path, &LoadOptions::default()).map_err(refused)?;
    Ok(report::system_verdict(
        &complete::runs(&system).map_err(refused)?,
    ))
}

fn planned(name: &str) -> Result<Verdict, Vec<String>> {
    let path = Path::new(name);
    if let Some(tasks) = files::load(path, &[], &files::Meaning::default()).map_err(refused)? {
        return Ok(report::verdict(&files::planned(&tasks).map_err(refused)?));
    }
    let plan = complete::planned(path, &[]).map_err(refused)?;
    Ok(report::system_verdict(&plan.runs))
}

fn of(verdict: Result<Verdict, Vec<String>>) -> Vec<String> {
    verdict.map_or_else(
        |refused| refused,
        |verdict| lines(verdict.code(false), &verdict),
    )
}

#[test]
fn check_judges_the_catalog_as_filed() {
    differences(all_names(), "check", |name| of(checked(name)));
}

#[test]
fn plan_judges_the_catalog_as_filed() {
    differences(all_names(), "plan", |name| of(planned(name)));
}

/// The requested systems; all by default.
fn wanted() -> Vec<String> {
    let all = system_names(&LoadOptions::default());
    let Ok(wish) = std::env::var("BULKHEAD_CATALOG") else {
        return all;
    };
    let wanted: Vec<String> = wish.split(',').map(str::to_owned).collect();
    for name in &wanted {
        assert!(
            all.contains(name),
            "BULKHEAD_CATALOG: no system `{name}`; there are {}",
            all.join(", ")
        );
    }
    wanted
}

fn timed(name: &str, what: &str, judge: impl FnOnce() -> Vec<String>) -> Vec<String> {
    let begin = Instant::now();
    let lines = judge();
    println!(
        "{what} {name}: {}, {:.0} s",
        lines[0],
        begin.elapsed().as_secs_f64()
    );
    lines
}

fn ran(name: &str) -> Vec<String> {
    let options = run::Options {
        system: name.into(),
        ..run::Options::default()
    };
    let finished = match run::run(&options, &Silent) {
        Ok(finished) => finished,
        Err(error) => return refused(error),
    };
    let mut all = lines(finished.code(), &finished.result.verdict);
    for variant in &finished.result.variants {
        let happened = variant.incidents.iter();
        all.extend(happened.map(|one| {
            without_numbers(&format!(
                "happened: {}: {}: {:?}",
                variant.name, one.application, one.kind
            ))
        }));
    }
    all
}

/// The same for a one-shot system, whose adversaries flood 15 cores at once: a millisecond of that takes the host longer than four on
/// tiles. All its kernels have a tick in each millisecond, in which jobs are released and rings are accepted, so an attack meets each of
/// them once.
const TICK_WINDOW: &str = "1ms";

fn audited(name: &str) -> Vec<String> {
    let is_one_shot = root(name, &LoadOptions::default()) == Root::OneShot;
    let window = if is_one_shot { TICK_WINDOW } else { WINDOW };
    let options = audit::Options {
        searches: 0,
        time: audit::time(window).expect("a time"),
        ..audit::Options::new(name)
    };
    match audit::audit(&options, &Silent) {
        Ok(finished) => lines(finished.code(), &finished.result.verdict()),
        Err(error) => refused(error),
    }
}

#[test]
#[ignore = "minutes: ./bulkhead test --catalog"]
fn runs_of_the_catalog_are_judged_as_filed() {
    differences(wanted(), "run", |name| timed(name, "run", || ran(name)));
}

#[test]
#[ignore = "an hour: ./bulkhead test --catalog"]
fn audits_of_the_catalog_are_judged_as_filed() {
    differences(wanted(), "audit", |name| {
        timed(name, "audit", || audited(name))
    });
}
