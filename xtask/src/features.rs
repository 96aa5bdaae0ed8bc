//! Whether all optimised programs ask the same features of the packages that they share.
//!
//! Why it exists: Cargo compiles a package, and all that depend on it, once for each set of features. With one set, machine, model, analysis and runner are
//! compiled once for the command, the Python package and all tests that are optimised. What it deliberately does not know: why somebody wants a feature.

use crate::steps::cargo;
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::process::Command;

/// What is built with optimisation, each by itself, and whether with tests.
const PROGRAMS: [(&str, bool); 5] = [
    ("bulkhead", false),
    ("bulkhead-python", false),
    ("bulkhead-system-tests", true),
    ("bulkhead-conformance", true),
    ("bulkhead-optimiser-tests", true),
];

/// Packages with their versions, and the sets of features that a program asks of each: one for itself, and perhaps another one for build scripts and macros.
type Asked = BTreeMap<String, BTreeSet<String>>;

/// Reads lines of a package, its version and its features in brackets.
fn asked(tree: &str) -> Asked {
    let mut all = Asked::new();
    for line in tree.lines() {
        let Some((package, features)) = line.trim_end_matches(" (*)").rsplit_once(" [") else {
            continue;
        };
        let features = features.trim_end_matches(']').to_owned();
        all.entry(package.to_owned()).or_default().insert(features);
    }
    all
}

/// A line for each package of which two programs ask different features.
fn differences(programs: &[(&str, Asked)]) -> Vec<String> {
    let names: BTreeSet<&String> = programs.iter().flat_map(|(_, all)| all.keys()).collect();
    let differs = |name: &&&String| {
        let mut sets = programs.iter().filter_map(|(_, all)| all.get(**name));
        let first = sets.next();
        sets.any(|other| Some(other) != first)
    };
    let line = |name: &String| {
        let of = |(program, all): &(&str, Asked)| {
            let sets: Vec<&str> = all.get(name)?.iter().map(String::as_str).collect();
            Some(format!("{program} [{}]", sets.join("] and [")))
        };
        let all: Vec<String> = programs.iter().filter_map(of).collect();
        format!("{name}: {}", all.join(", "))
    };
    names
        .iter()
        .filter(differs)
        .map(|name| line(name))
        .collect()
}

/// Asks Cargo for the features and compares them.
///
/// # Errors
/// If Cargo fails.
pub fn run(root: &Path) -> Result<bool, String> {
    let mut programs = Vec::new();
    for (program, tested) in PROGRAMS {
        let edges = if tested {
            "normal,build,dev"
        } else {
            "normal,build"
        };
        let output = Command::new(cargo())
            .args(["tree", "--locked", "--prefix", "none", "--no-dedupe"])
            .args(["--format", "{p} [{f}]", "--edges", edges])
            .args(["--package", program])
            .current_dir(root)
            .output()
            .map_err(|error| format!("cannot run cargo: {error}"))?;
        if !output.status.success() {
            return Err(String::from_utf8_lossy(&output.stderr).into_owned());
        }
        programs.push((program, asked(&String::from_utf8_lossy(&output.stdout))));
    }
    let lines = differences(&programs);
    for line in &lines {
        eprintln!("features: {line}");
    }
    if lines.is_empty() {
        println!("features: {} programs ask the same", programs.len());
    } else {
        eprintln!(
            "features: add what is missing to features/Cargo.toml, or these packages are compiled more than once"
        );
    }
    Ok(lines.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_feature_that_one_program_asks_alone_is_a_difference() {
        let one =
            asked("a v1 [std]\nb v2 []\nmacro v1 (proc-macro) [] (*)\nmacro v1 (proc-macro) []\n");
        let other = asked("b v2 []\nc v1 [x]");
        assert_eq!(differences(&[("p", one.clone()), ("q", other)]), [""; 0]);
        let other = asked("a v1 [alloc,std]\na v1 [std]");
        let expected = "a v1: p [std], q [alloc,std] and [std]";
        assert_eq!(differences(&[("p", one), ("q", other)]), [expected]);
    }
}
