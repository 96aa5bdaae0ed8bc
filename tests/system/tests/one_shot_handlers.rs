//! Handlers of timing events in bounds: a core whose description does not state them has none, one whose description does has one that holds.

use crate::one_shot_systems::{folder_with, holds, run};
use bulkhead_report::result::VariantResult;
use bulkhead_report::verdict::Judgement;
use bulkhead_runner::run::Finished;

/// A handler of some 300 000 cycles that comes in the middle of the job of `long_one`, which sends to a reader on another core; and a task that sets nothing.
const TASKS: &str = r#"#include "bulkhead_oneshot.h"
static volatile uint64_t turns;
static void ring(void)
{
    for (int turn = 0; turn < 20000; turn++)
        turns++;
}
static bh_timing_event event = BH_TIMING_EVENT(ring);
struct plain { bh_releases releases; uint64_t jobs; bh_output output; bh_input input; };
static bh_done long_one_job(struct plain *self, bh_job job)
{
    bh_set_event(&event, bh_now() + 1);
    for (volatile int turn = 0; turn < 60000; turn++) { }
    self->jobs++;
    bh_put(&self->output, &self->jobs, sizeof self->jobs);
    return bh_next(&self->releases, job);
}
BH_TASK(long_one, struct plain, long_one_job, {.output = BH_OUTPUT(0)})
static bh_done short_one_job(struct plain *self, bh_job job)
{
    return bh_next(&self->releases, job);
}
BH_TASK(short_one, struct plain, short_one_job, {0})
static bh_done reader_job(struct plain *self, bh_job job)
{
    uint64_t item;
    if (bh_take(&self->input, &item, sizeof item) > 0)
        bh_print_number("got ", item);
    return bh_next(&self->releases, job);
}
BH_TASK(reader, struct plain, reader_job, {.input = BH_INPUT(0)})
"#;

/// `cost`: of the long job; `stated`: what its task states.
fn handled(cost: &str, stated: &str) -> Finished {
    let text = format!(
        r#"<system name="handled" paradigm="one-shot" platform="epiphany3" duration="60ms">
        <task name="short" program="tasks.c::short_one" core="0" priority="1" period="10ms" cost="10us"/>
        <task name="long" program="tasks.c::long_one" core="0" priority="2" period="10ms" cost="{cost}" {stated}/>
        <task name="reader" program="tasks.c::reader" core="1" priority="1" period="1ms" cost="15us"/>
        <task name="other" program="workloads.c::other" core="9" priority="1" period="5ms" cost="10us"/>
        <channel name="items" from="long" to="reader" size="8B"/></system>"#
    );
    let other = "#include \"bulkhead_oneshot.h\"\nstruct other { bh_releases releases; };\n\
        static bh_done go(struct other *self, bh_job job) { return bh_next(&self->releases, job); }\nBH_TASK(other, struct other, go, {0})\n";
    let files = [
        ("tasks.c", TASKS),
        ("workloads.c", other),
        ("system.xml", &text),
    ];
    let folder = folder_with(&files);
    run(&folder.path().join("system.xml"), &[]).expect("it runs")
}

/// The worst response of a task and its bound, in ticks.
fn response(variant: &VariantResult, task: &str) -> (u64, Option<u64>) {
    let mut all = variant.requests.iter();
    let found = all.find(|one| one.kind == "response" && one.application == task);
    let found = found.expect("it has responses");
    (found.worst, found.bound.as_ref().map(|bound| bound.ticks))
}

#[test]
fn a_core_with_handlers_that_nobody_states_is_not_judged() {
    let finished = handled("2ms", "");
    let variant = &finished.result.variants[0];
    // Its budget does not pay for the handler.
    assert_eq!(variant.incidents, []);
    for task in ["short", "long", "reader"] {
        assert_eq!(response(variant, task).1, None, "{task}");
    }
    assert!(response(variant, "other").1.is_some());
    for promise in finished.result.verdict.promises() {
        let observed = promise.what.contains("jobs late of");
        let other = promise.what.contains("other");
        match observed || other {
            true => assert_eq!(promise.judgement, Judgement::Held, "{promise:?}"),
            false => assert!(
                format!("{promise:?}")
                    .contains("core 0 sets timing events, and no task of it states"),
                "{promise:?}"
            ),
        }
    }
}

/// A bound that counts the handler, and a budget that does not: the job itself takes less than its cost, and more with the handler.
#[test]
fn a_stated_handler_is_in_the_bound_and_not_in_the_budget() {
    let finished = handled("2ms", r#"handlers="700us" handlers-apart="10ms""#);
    holds(&finished.result);
    let variant = &finished.result.variants[0];
    let (worst, bound) = response(variant, "long");
    let cycle = finished.result.cycle_ticks;
    println!(
        "long: {} of {:?} cycles",
        worst / cycle,
        bound.map(|one| one / cycle)
    );
    println!("reader: {:?}", response(variant, "reader"));
    // More than its cost: the handler was in its job.
    assert!(worst / cycle > 2000 * 600, "{}", worst / cycle);
}

/// A statement that is too short, or says that the ticks are further apart than they are: nothing is called held of which a bound is asked, and the run says why.
#[test]
fn handlers_that_take_longer_than_stated_are_told() {
    for (stated, when) in [
        (r#"handlers="200us" handlers-apart="10ms""#, "in tick 1,"),
        (
            r#"handlers="300us" handlers-apart="20ms""#,
            "in ticks 1 to 13,",
        ),
    ] {
        let finished = handled("2ms", stated);
        let variant = &finished.result.variants[0];
        let [told] = &variant.incidents[..] else {
            panic!("{:?}", variant.incidents);
        };
        let begin = "handlers of timing events on core 0 took ";
        assert!(
            told.application == "core 0" && told.what.starts_with(begin),
            "{told:?}"
        );
        assert!(
            told.what.contains(when) && told.what.contains("where its tasks state"),
            "{told:?}"
        );
        for promise in finished.result.verdict.promises() {
            let observed = promise.what.contains("jobs late of");
            match observed {
                true => assert_eq!(promise.judgement, Judgement::Held, "{promise:?}"),
                false => assert!(format!("{promise:?}").contains(begin), "{promise:?}"),
            }
        }
    }
}
