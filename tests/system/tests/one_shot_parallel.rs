//! Parallel sections: results, bounds, and helpers that fail.

use crate::one_shot_systems::{described, holds, run};
use bulkhead_experiments::reproduce::m2os::parallel::{Work, told};
use bulkhead_report::result::{Incident, VariantResult};
use bulkhead_runner::run::Finished;

/// All blocks that the console shows are those of a plain computation; returns their numbers.
pub fn right(finished: &Finished) -> Vec<usize> {
    let digests = Work::Filter.digests(12);
    let told = told(&finished.consoles[0]);
    for (block, digest) in &told {
        assert_eq!(digests[block - 1], *digest, "block {block}");
    }
    told.into_iter().map(|(block, _)| block).collect()
}

#[test]
fn four_cores_filter_what_one_would() {
    let finished = run("oneshot/parallel".as_ref(), &[]).expect("it runs");
    holds(&finished.result);
    // The first job asks nobody.
    assert_eq!(right(&finished), (2..=10).collect::<Vec<_>>());
}

/// The system of the catalog with another program as its second helper, next to another task on the asker's
/// core.
fn with_helper(program: &str) -> Finished {
    let text = include_str!("../../../catalog/systems/oneshot/parallel.xml");
    let helper = r#"<task name="helper-2" program="one-shot::parallel::filter::Part4""#;
    let unfit = format!(r#"<task name="helper-2" program="one-shot::parallel::unfit::{program}""#);
    let other = r#"<task name="other" program="one-shot::pipeline::Other" core="5" priority="2" period="1ms" cost="45us" deadline="5ms"/>
  <task name="helper-2""#;
    let text = text
        .replace(helper, &unfit)
        .replace(r#"<task name="helper-2""#, other);
    assert!(text.contains(&unfit["<task ".len()..]) && text.contains("other"));
    described("parallel", &text).expect("it runs")
}

fn of<'a>(variant: &'a VariantResult, who: &str) -> Vec<&'a Incident> {
    let all = variant.incidents.iter();
    all.filter(|one| one.application == who).collect()
}

/// Whatever a helper does, all other responses are within their bounds.
fn others_go_on(variant: &VariantResult) {
    for request in &variant.requests {
        if request.kind == "response" && request.application != "helper-2" {
            let bound = request.bound.as_ref().expect("a bound").ticks;
            assert!(request.count >= 9 && request.worst <= bound, "{request:?}");
        }
    }
}

#[test]
fn a_helper_that_does_not_answer_is_told_and_the_others_go_on() {
    let finished = with_helper("Silent");
    let variant = &finished.result.variants[0];
    others_go_on(variant);
    let told = of(variant, "filter");
    assert_eq!(told.len(), 1, "{:?}", variant.incidents);
    let what = "jobs waited for `result-2` and got nothing: `helper-2` on core 4 wrote nothing";
    assert!(told[0].what.contains(what), "{}", told[0].what);
    // Slices are handed out from the second job on, and every second one is not answered.
    assert_eq!(right(&finished), [2, 4, 6, 8, 10]);
}

#[test]
fn a_helper_that_stops_is_missed_in_each_job_and_no_more() {
    let finished = with_helper("Stopping");
    let variant = &finished.result.variants[0];
    others_go_on(variant);
    assert_eq!(of(variant, "filter").len(), 1, "{:?}", variant.incidents);
    assert!(
        of(variant, "helper-2")[0].what.contains("a helper stops")
            || of(variant, "helper-2")[0].what.contains("unfit.rs")
    );
    assert_eq!(right(&finished), [2, 3]);
}

#[test]
fn a_result_that_comes_too_late_is_not_taken_for_the_next_one() {
    let finished = with_helper("Tardy");
    let variant = &finished.result.variants[0];
    others_go_on(variant);
    assert_eq!(of(variant, "filter").len(), 1, "{:?}", variant.incidents);
    // The late result of block 3 is in the port when block 4 begins.
    assert_eq!(right(&finished), [2, 4, 6, 8, 10]);
}
