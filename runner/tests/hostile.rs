//! Hostile descriptions: whatever a file says, `check`, `plan`, `run` and `audit` refuse it with a reason, or judge it. None of them panics, and
//! nothing holds without a number that says so.
//!
//! Descriptions of the catalog are changed at random, element by element and attribute by attribute: something is deleted, duplicated,
//! moved, nested deeply, emptied, given another's name, or given an extreme number. This test covers everything that happens before a
//! machine runs, in one process. `BULKHEAD_HOSTILE=10000 cargo test -p bulkhead-runner --test hostile` tries more of them.

use bulkhead_analysis::plan::files::{self, Meaning};
use bulkhead_analysis::plan::system::complete;
use bulkhead_analysis::plan::{Constraint, InputError};
use bulkhead_model::tree::Element;
use bulkhead_model::{LoadOptions, canonical, description, load_system};
use bulkhead_random::Random;
use bulkhead_report::plan as report;
use bulkhead_report::verdict::{Outcome, exit};
use bulkhead_runner::Error;
use bulkhead_runner::run;
use bulkhead_runner::tiled::{admission, requests};
use rayon::iter::{IntoParallelIterator, ParallelIterator};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};

/// Files of every test run.
const CASES: u64 = 300;
/// One in this many is also planned and repaired, which judges it some hundred times.
const PLANNED: u64 = 150;

/// What a hostile author writes in place of a number, a unit or a name.
const VALUES: [&str; 40] = [
    "",
    " ",
    "0",
    "1",
    "-1",
    "2",
    "00",
    "0x10",
    "1e9",
    "NaN",
    "0ns",
    "1ps",
    "1ns",
    "999999999999h",
    "18446744073709551615",
    "18446744073709551616",
    "18446744073709551615ps",
    "18446744s",
    "5124095h",
    "0B",
    "1B",
    "0MiB",
    "16EiB",
    "17179869183GiB",
    "1B/s",
    "0B/s",
    "17179869183GiB/s",
    "18446744073709551615B/s",
    "0Hz",
    "1Hz",
    "18446744073GHz",
    "0%",
    "1%",
    "100%",
    "65535",
    "65536",
    "none",
    "true",
    "../../../etc/passwd",
    "\u{202e}x",
];

/// Numbers that keep the unit of the previous value.
const NUMBERS: [&str; 8] = [
    "0",
    "1",
    "2",
    "255",
    "65535",
    "4294967295",
    "9223372036854775807",
    "18446744073709551615",
];

fn catalog() -> Vec<PathBuf> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../catalog");
    let mut all = Vec::new();
    for folder in [
        "systems",
        "systems/m3",
        "systems/network",
        "systems/oneshot",
        "tasks",
    ] {
        let files = std::fs::read_dir(root.join(folder)).expect("the catalog is there");
        let files = files.map(|file| file.expect("it can be read").path());
        all.extend(files.filter(|path| path.extension().is_some_and(|ending| ending == "xml")));
    }
    all.sort();
    all
}

fn count(element: &Element) -> u64 {
    1 + element.children.iter().map(count).sum::<u64>()
}

/// The element with this number, in file order.
fn nth<'e>(element: &'e mut Element, number: &mut u64) -> Option<&'e mut Element> {
    if *number == 0 {
        return Some(element);
    }
    *number -= 1;
    element
        .children
        .iter_mut()
        .find_map(|child| nth(child, number))
}

fn any<'e>(root: &'e mut Element, random: &mut Random) -> &'e mut Element {
    let mut number = random.below(count(root));
    nth(root, &mut number).expect("it was counted")
}

fn one_of<'a, T>(random: &mut Random, all: &'a [T]) -> &'a T {
    &all[random.below(all.len() as u64) as usize]
}

/// Every deadline becomes one microsecond.
fn tighten(element: &mut Element) {
    for attribute in &mut element.attributes {
        if attribute.name == "deadline" {
            attribute.value = "1us".to_owned();
        }
    }
    element.children.iter_mut().for_each(tighten);
}

fn change(root: &mut Element, random: &mut Random) {
    match random.below(11) {
        0 => {
            let parent = any(root, random);
            if !parent.children.is_empty() {
                let at = random.below(parent.children.len() as u64) as usize;
                parent.children.remove(at);
            }
        }
        1 => {
            let parent = any(root, random);
            if !parent.children.is_empty() {
                let at = random.below(parent.children.len() as u64) as usize;
                let copy = parent.children[at].clone();
                parent.children.insert(at, copy);
            }
        }
        2 => any(root, random).children.clear(),
        3 => {
            // Something goes where it does not belong.
            let moved = any(root, random).clone();
            any(root, random).children.push(moved);
        }
        4 => {
            let parent = any(root, random);
            for _ in 0..1 + random.below(40) {
                let mut outer = parent.clone();
                outer.children = vec![parent.clone()];
                *parent = outer;
                if count(parent) > 200 {
                    break;
                }
            }
        }
        5 => {
            let name = any(root, random).identity().map(str::to_owned);
            let other = any(root, random);
            let mut attributes = other.attributes.iter_mut();
            if let (Some(name), Some(attribute)) = (name, attributes.find(|one| one.name == "name"))
            {
                attribute.value = name;
            }
        }
        6 => {
            let element = any(root, random);
            if !element.attributes.is_empty() {
                let at = random.below(element.attributes.len() as u64) as usize;
                element.attributes.remove(at);
            }
        }
        // Every deadline becomes hard to meet, so that judgements also fail.
        7 => tighten(root),
        kind => {
            let element = any(root, random);
            if element.attributes.is_empty() {
                return;
            }
            let at = random.below(element.attributes.len() as u64) as usize;
            let value = &mut element.attributes[at].value;
            let unit = value.trim_start_matches(|c: char| c.is_ascii_digit() || c == '.');
            *value = match (kind, unit.len() < value.len()) {
                (10, _) | (_, false) => (*one_of(random, &VALUES)).to_owned(),
                _ => format!("{}{unit}", one_of(random, &NUMBERS)),
            };
        }
    }
}

/// A constraint that holds has a number that says so.
fn is_judged(constraint: &Constraint) -> bool {
    let within = match (constraint.bound, constraint.limit) {
        (Some(bound), Some(limit)) => bound <= limit,
        (Some(_), None) => true,
        (None, _) => false,
    };
    !constraint.holds() || within
}

fn refused(error: InputError) -> String {
    let error = Error::from(error);
    assert_eq!(error.code(), exit::BAD_INPUT, "{error}");
    error.to_string()
}

/// What all commands do with a file before a machine runs. Returns why it was refused, or its outcome.
fn tried(path: &Path, deep: bool) -> Result<Outcome, String> {
    if let Some(tasks) = files::load(path, &[], &Meaning::default()).map_err(refused)? {
        let plan = files::planned(&tasks).map_err(refused)?;
        assert!(
            plan.constraints.iter().all(is_judged),
            "{:?}",
            plan.constraints
        );
        if deep {
            files::judged(&tasks).map_err(refused)?;
        }
        return Ok(report::verdict(&plan).outcome());
    }
    let options = LoadOptions::default();
    let system = load_system(path, &options).map_err(|errors| errors.to_string())?;
    let runs = complete::runs(&system).map_err(refused)?;
    for run in &runs {
        let mut all = run.verdict.all();
        assert!(all.all(is_judged), "{:?}", run.verdict);
    }
    for (name, variant) in run::variants(&system, &[]).map_err(|error| error.to_string())? {
        if let Err(error) = admission::check(&name, &variant) {
            assert!(!error.to_string().is_empty());
        }
        requests::of_system(&variant);
        canonical::for_chip(&variant);
    }
    if deep {
        complete::planned(path, &[]).map_err(refused)?;
        complete::repairs(path, &[]).map_err(refused)?;
    }
    Ok(report::system_verdict(&runs).outcome())
}

#[test]
fn nothing_panics_and_nothing_holds_that_was_not_judged() {
    let cases = std::env::var("BULKHEAD_HOSTILE").ok();
    let cases = cases.map_or(CASES, |count| count.parse().expect("a number"));
    let originals = catalog();
    let folder = tempfile::tempdir().expect("a folder can be made");
    let outcome = |number: u64| {
        let path = folder.path().join(format!("hostile-{number}.xml"));
        let mut random = Random::new(number * 7919 + 1);
        let original = one_of(&mut random, &originals);
        let mut tree =
            description(original, &LoadOptions::default()).expect("the catalog's are valid");
        for _ in 0..1 + random.below(3) {
            change(&mut tree, &mut random);
        }
        let text = canonical::description(&tree);
        std::fs::write(&path, &text).expect("it can be written");
        let deep = number.is_multiple_of(PLANNED);
        let begin = std::time::Instant::now();
        let found = catch_unwind(AssertUnwindSafe(|| tried(&path, deep)));
        let found =
            found.unwrap_or_else(|_| panic!("case {number}, from {}:\n{text}", original.display()));
        if begin.elapsed().as_secs() > 0 {
            println!(
                "case {number}, from {}: {:?}",
                original.display(),
                begin.elapsed()
            );
        }
        std::fs::remove_file(&path).expect("it was written");
        match found {
            Ok(Outcome::Held) => 0,
            Ok(Outcome::Failed) => 1,
            Ok(Outcome::NothingJudged) => 2,
            Err(_) => 3,
        }
    };
    let found: Vec<usize> = (0..cases).into_par_iter().map(outcome).collect();
    let mut outcomes = [0_u64; 4];
    for one in found {
        outcomes[one] += 1;
    }
    println!("held, failed, nothing judged, refused: {outcomes:?}");
    assert!(
        outcomes.iter().all(|count| *count > 0),
        "{outcomes:?}: not much was tried"
    );
}
