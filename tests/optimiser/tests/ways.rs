//! The exact way optimiser against HiGHS: the same verdict, the same least utilisation and the same slack on random problems.
//!
//! `BULKHEAD_WAY_PROBLEMS` sets their number. Where HiGHS's Python package is unavailable, the comparison says so and is skipped,
//! unless `CI` is set: then it must run. `analysis/src/mc2/ways_tests.rs` compares with brute force everywhere.

use bulkhead_analysis::mc2::ways::{Scratch, WayPlan};
use bulkhead_optimiser_tests::{Answer, Instance, Random, python, reference};
use std::collections::BTreeMap;
use std::io::Write;
use std::path::Path;
use std::time::Instant;

/// Ten seconds on two idle cores, less than a minute on busy ones.
const PROBLEMS: usize = 4000;

/// Bypasses the test harness, which shows no output of tests that pass.
fn say(text: &str) {
    // A closed standard error must not fail the test.
    let _ = writeln!(std::io::stderr(), "{text}");
}

#[test]
fn equals_highs() {
    let target = Path::new(env!("CARGO_TARGET_TMPDIR"));
    let python = match python(target) {
        Ok(python) => python,
        Err(reason) if std::env::var_os("CI").is_some() => panic!("{reason}"),
        Err(reason) => {
            say(&format!("skipped: {reason}"));
            return;
        }
    };
    let count = std::env::var("BULKHEAD_WAY_PROBLEMS")
        .ok()
        .and_then(|n| n.parse().ok())
        .unwrap_or(PROBLEMS);
    let mut random = Random(2020);
    let instances: Vec<Instance> = (0..count).map(|_| Instance::draw(&mut random)).collect();
    let problems: Vec<_> = instances.iter().map(Instance::problem).collect();
    let (mut scratch, mut plan) = (Scratch::default(), WayPlan::default());
    // Each is timed as the best of three: the first call also pays for reading the tables from memory.
    let mut ours = Vec::new();
    let mut seconds = Vec::new();
    for (instance, problem) in instances.iter().zip(&problems) {
        let mut best = f64::MAX;
        let mut answer: Answer = None;
        for _ in 0..3 {
            let begin = Instant::now();
            let found = problem.solve_into(&mut scratch, &mut plan);
            best = best.min(begin.elapsed().as_secs_f64());
            answer = instance.answer(found.then(|| plan.clone()));
        }
        ours.push(answer);
        seconds.push(best);
    }
    let theirs = reference(&python, target, &instances).unwrap();
    assert_eq!(theirs.answers.len(), count);
    let mut kinds: BTreeMap<&str, (usize, usize, f64, f64)> = BTreeMap::new();
    for i in 0..count {
        assert_eq!(
            ours[i], theirs.answers[i],
            "problem {i}: {:?}",
            instances[i]
        );
        let kind = kinds.entry(instances[i].kind).or_default();
        kind.0 += 1;
        kind.1 += usize::from(ours[i].is_some());
        kind.2 += seconds[i];
        kind.3 += theirs.seconds[i];
    }
    for (kind, (count, solved, ours, highs)) in kinds {
        say(&format!(
            "{kind}: {count} problems equal, {solved} with a plan; {:.2} us each, HiGHS {:.0} us: {:.0} times faster",
            ours / count as f64 * 1e6,
            highs / count as f64 * 1e6,
            highs / ours
        ));
        assert!(
            solved * 10 > count && solved < count,
            "{kind}: {solved} of {count} have a plan"
        );
    }
}
