//! Cores and tasks whose jobs stop coming: nothing of them counts as held, and the run names them.

use crate::one_shot_systems::{folder_with, run};
use bulkhead_experiments::audit::{Options, audit, time};
use bulkhead_report::result::{Incident, VariantResult};
use bulkhead_report::verdict::Judgement;
use bulkhead_runner::progress::Silent;
use bulkhead_runner::run::Finished;

/// What the bodies of jobs use: the window of a core on a mesh of four columns.
const HEAD: &str = r#"#include "bulkhead_oneshot.h"
struct t { bh_releases releases; uint64_t n; };
static inline volatile uint64_t *window(uint64_t core, uint64_t at)
{
    return (volatile uint64_t *)(0x100000000ull + (((core / 4) << 6 | (core % 4)) << 20) + at);
}
static bh_done plain(struct t *self, bh_job job)
{
    bh_print_number("job ", ++self->n);
    return bh_next(&self->releases, job);
}
BH_TASK(plain, struct t, plain, {0})
"#;

/// A run of tasks `odd` and `plain` in C: each third job of `odd` does this instead of nothing.
fn with(tasks: &str, odd: &str) -> Finished {
    let source = format!(
        "{HEAD}static bh_done odd(struct t *self, bh_job job)\n{{\n    if (++self->n == 3) {{ {odd} }}\n    return bh_next(&self->releases, job);\n}}\n\
         BH_TASK(odd, struct t, odd, {{0}})\n"
    );
    let text = format!(
        r#"<system name="s" paradigm="one-shot" platform="epiphany3" duration="100ms">{tasks}</system>"#
    );
    let folder = folder_with(&[("s.xml", &text), ("tasks.c", &source)]);
    run(&folder.path().join("s.xml"), &[]).expect("it runs")
}

/// Both tasks on core 0.
const TOGETHER: &str = r#"<task name="odd" program="tasks.c::odd" core="0" priority="1" period="5ms" cost="300us"/>
    <task name="other" program="tasks.c::plain" core="0" priority="2" period="5ms" cost="10us"/>"#;

/// One task on each of two cores.
const APART: &str = r#"<task name="odd" program="tasks.c::odd" core="1" priority="1" period="5ms" cost="300us"/>
    <task name="other" program="tasks.c::plain" core="5" priority="1" period="5ms" cost="10us"/>"#;

fn variant(finished: &Finished) -> &VariantResult {
    &finished.result.variants[0]
}

fn jobs(finished: &Finished, task: &str) -> [u64; 3] {
    let mut tasks = variant(finished).tasks.iter();
    let found = tasks.find(|one| one.application == task).expect("a task");
    [found.jobs, found.misses, found.missing]
}

/// The judgement of a promise whose text begins so, and contains this.
fn judged(finished: &Finished, begin: &str, word: &str) -> Judgement {
    let mut promises = finished.result.verdict.promises().iter();
    let found = promises.find(|one| one.what.starts_with(begin) && one.what.contains(word));
    found
        .unwrap_or_else(|| panic!("{:#?}", finished.result.verdict))
        .judgement
}

fn incident<'f>(finished: &'f Finished, core: u16, words: &[&str]) -> &'f Incident {
    let all = &variant(finished).incidents;
    let named = |one: &&Incident| one.tile == core && words.iter().all(|w| one.what.contains(w));
    all.iter()
        .find(named)
        .unwrap_or_else(|| panic!("{words:?}: {all:#?}"))
}

/// No promise that names the task is held.
fn nothing_holds(finished: &Finished, task: &str) {
    let promises = finished.result.verdict.promises().iter();
    let held: Vec<_> = promises
        .filter(|one| one.judgement == Judgement::Held)
        .filter(|one| one.what.split([' ', ':']).any(|word| word == task))
        .collect();
    assert!(held.is_empty(), "{held:#?}");
}

/// Releases are due at 0, 5, ... 95 ms: 20 jobs, of which `done` have ended and `late` are late.
fn all_are_counted(finished: &Finished, task: &str) {
    let [done, late, missing] = jobs(finished, task);
    assert_eq!(done + late + missing, 20, "{done} {late} {missing}");
    assert!(done < 6, "{done}");
    assert_eq!(
        judged(finished, &format!("task {task}"), " late of "),
        Judgement::Failed
    );
    nothing_holds(finished, task);
}

/// Whatever keeps a core from counting ticks: its jobs are counted as missing, whether another core keeps the run awake or not.
#[test]
fn a_core_that_counts_no_ticks_is_dead() {
    let never = "*(volatile uint64_t *)0x02004000 = ~0ull;";
    let disabled = "__asm__ volatile(\"csrw mie, zero\");";
    let waits = "__asm__ volatile(\"csrw mie, zero\\n1: wfi\\nj 1b\");";
    let beside = format!(
        r#"{TOGETHER}<task name="beside" program="tasks.c::plain" core="3" priority="1" period="5ms" cost="10us"/>"#
    );
    for (odd, words) in [
        (never, ["its timer is not set", "no job was under way"]),
        (
            disabled,
            ["interrupts of its timer", "no job was under way"],
        ),
        (
            waits,
            ["interrupts of its timer", "a job of `odd` was under way"],
        ),
    ] {
        for tasks in [TOGETHER, &beside] {
            let finished = with(tasks, odd);
            assert_eq!(finished.code(), 4, "{odd}");
            assert_eq!(
                variant(&finished).incidents.len(),
                1,
                "{:#?}",
                variant(&finished).incidents
            );
            incident(&finished, 0, &words);
            incident(&finished, 0, &["`odd`, `other`"]);
            all_are_counted(&finished, "odd");
            all_are_counted(&finished, "other");
            if tasks != TOGETHER {
                assert_eq!(jobs(&finished, "beside"), [20, 0, 0]);
                assert_eq!(
                    judged(&finished, "task beside", " late of "),
                    Judgement::Held
                );
            }
        }
    }
}

/// The victim's memory is zeros: its console is gone, but it ran.
#[test]
fn a_core_whose_memory_is_zeros_is_dead() {
    let finished = with(
        APART,
        "for (uint64_t at = 0; at < 0x8000; at += 8) *window(5, at) = 0;",
    );
    assert_eq!(finished.code(), 4);
    incident(&finished, 5, &["it counts no ticks any more", "`other`"]);
    all_are_counted(&finished, "other");
    let console = &finished.consoles[0];
    assert!(
        console.contains("core 5: its console was written over"),
        "{console}"
    );
    assert!(!console.contains("never started"), "{console}");
    assert_eq!(jobs(&finished, "odd"), [20, 0, 0]);
}

#[test]
fn a_hart_that_another_core_starts_again_is_told() {
    let finished = with(APART, "*window(5, 0xf0008) = 0x80000000;");
    assert_eq!(finished.code(), 4);
    let told = incident(
        &finished,
        5,
        &["core 1 (tasks: `odd`) started its hart", "(tasks: `other`)"],
    );
    assert!(told.at.is_some());
    nothing_holds(&finished, "other");
    assert_eq!(judged(&finished, "task odd", " late of "), Judgement::Held);
    // A core without tasks runs what nobody described.
    let finished = with(APART, "*window(9, 0xf0008) = 0x80000000;");
    assert!(
        finished.code() == 4
            || finished.result.variants[0].end != bulkhead_report::result::End::Duration
    );
    incident(
        &finished,
        9,
        &["core 1 (tasks: `odd`) started its hart", "no description"],
    );
}

/// A task that is always ready keeps those of less urgency from ever running.
#[test]
fn a_task_that_never_ran_is_told() {
    let source = format!(
        "{HEAD}static bh_done odd(struct t *self, bh_job job)\n{{\n    return bh_delay_until(job, 0);\n}}\nBH_TASK(odd, struct t, odd, {{0}})\n"
    );
    let text = format!(
        r#"<system name="s" paradigm="one-shot" platform="epiphany3" duration="20ms">{TOGETHER}</system>"#
    );
    let folder = folder_with(&[("s.xml", &text), ("tasks.c", &source)]);
    let finished = run(&folder.path().join("s.xml"), &[]).expect("it runs");
    // Due when the core begins, and 5 and 10 ms later; the deadline of the fourth lies after the end.
    assert_eq!(jobs(&finished, "other"), [0, 0, 3]);
    assert_eq!(
        judged(&finished, "task other", " late of "),
        Judgement::Failed
    );
    nothing_holds(&finished, "other");
    assert_eq!(finished.code(), 3);
}

/// Its core counts ticks, and the task waits for what never happens: nobody knows how many jobs it should have had.
#[test]
fn a_task_that_waits_for_nothing_is_not_judged() {
    let source = format!(
        "{HEAD}static bh_suspension never;\nstatic bh_done odd(struct t *self, bh_job job)\n{{\n    if (++self->n < 3) return bh_next(&self->releases, job);\n    \
         return bh_wait(&never, job);\n}}\nBH_TASK(odd, struct t, odd, {{0}})\n"
    );
    let text = format!(
        r#"<system name="s" paradigm="one-shot" platform="epiphany3" duration="100ms">{TOGETHER}</system>"#
    );
    let folder = folder_with(&[("s.xml", &text), ("tasks.c", &source)]);
    let finished = run(&folder.path().join("s.xml"), &[]).expect("it runs");
    assert_eq!(jobs(&finished, "odd"), [3, 0, 17]);
    let promises = finished.result.verdict.promises().iter();
    let why = promises.filter_map(|one| one.because.as_deref());
    assert!(
        why.clone()
            .any(|why| why.contains("`odd` had no job in 17")),
        "{:?}",
        why.collect::<Vec<_>>()
    );
    nothing_holds(&finished, "odd");
    assert_eq!(jobs(&finished, "other"), [20, 0, 0]);
    assert_eq!(finished.code(), 0);
}

/// Code of a task makes markers that only the kernel makes, in the name of its neighbour, which waits for nothing after three jobs: it retires, it is
/// released by an event, or it has all of its jobs. None of that counts, and nothing of the core is held.
#[test]
fn what_a_task_says_in_the_name_of_its_neighbour_does_not_count() {
    const RETIRES: &str = "if (++self->n == 3) { MARK(0x7E1, 1); MARK(0x7F6, 0); MARK(0x7E1, 0); }";
    const EVENT: &str = "if (++self->n == 3) { MARK(0x7F5, 2); }";
    const PLAYS: &str = "if (++self->n > 3) { MARK(0x7E0, 2); MARK(0x7E2, 0); MARK(0x7E1, 1); MARK(0x7E2, 1); MARK(0x7E1, 0); }";
    for (forges, count) in [(RETIRES, 3), (EVENT, 1), (PLAYS, 17 * 5)] {
        let source = format!(
            "{HEAD}#define MARK(kind, value) __asm__ volatile(\"slti x0, %0, \" #kind :: \"r\"((uint64_t)(value)))\nstatic bh_suspension never;\n\
             static bh_done odd(struct t *self, bh_job job)\n{{\n    {forges}\n    return bh_next(&self->releases, job);\n}}\nBH_TASK(odd, struct t, odd, {{0}})\n\
             static bh_done waits(struct t *self, bh_job job)\n{{\n    if (++self->n < 3) return bh_next(&self->releases, job);\n    return bh_wait(&never, job);\n}}\n\
             BH_TASK(waits, struct t, waits, {{0}})\n"
        );
        let text = r#"<system name="s" paradigm="one-shot" platform="epiphany3" duration="100ms">
            <task name="odd" program="tasks.c::odd" core="0" priority="1" period="5ms" cost="300us"/>
            <task name="other" program="tasks.c::waits" core="0" priority="2" period="5ms" cost="10us"/>
            <task name="beside" program="tasks.c::plain" core="3" priority="1" period="5ms" cost="10us"/></system>"#;
        let folder = folder_with(&[("s.xml", text), ("tasks.c", &source)]);
        let finished = run(&folder.path().join("s.xml"), &[]).expect("it runs");
        assert_eq!(finished.code(), 4, "{forges}");
        let made = format!("made {count} markers that only the kernel makes");
        let told = incident(&finished, 0, &[&made, "`odd`, `other`", "odd", "tasks.c"]);
        assert!(told.at.is_some());
        assert_eq!(jobs(&finished, "odd"), [20, 0, 0], "{forges}");
        assert_eq!(jobs(&finished, "other"), [3, 0, 17], "{forges}");
        nothing_holds(&finished, "odd");
        nothing_holds(&finished, "other");
        assert_eq!(
            judged(&finished, "task beside", " late of "),
            Judgement::Held
        );
    }
}

/// A handler of a timing event in Ada that never ends.
#[test]
fn a_handler_that_never_ends_is_told() {
    let body = "with Ada.Real_Time; use Ada.Real_Time;\nwith Ada.Real_Time.Timing_Events; use Ada.Real_Time.Timing_Events;\nwith System;\n\
        package body Tasks is\n   Next : Time := Clock;\n   Event : Timing_Event;\n\
        protected Bell with Interrupt_Priority => System.Interrupt_Priority'Last is\n      procedure Ring (Event : in out Timing_Event);\n   end Bell;\n\
        protected body Bell is\n      procedure Ring (Event : in out Timing_Event) is\n      begin\n         loop null; end loop;\n      end Ring;\n   end Bell;\n\
        task body T is\n   begin\n      loop\n         Set_Handler (Event, Milliseconds (2), Bell.Ring'Access);\n         Next := Next + Milliseconds (5);\n         \
        delay until Next;\n      end loop;\n   end T;\nend Tasks;\n";
    let text = r#"<system name="s" paradigm="one-shot" platform="epiphany3" duration="100ms">
        <task name="t" program="tasks.adb::T" core="0" priority="1" period="5ms" cost="20us"/></system>"#;
    let folder = folder_with(&[
        ("s.xml", text),
        ("tasks.adb", body),
        ("tasks.ads", "package Tasks is\n   task T;\nend Tasks;\n"),
    ]);
    let finished = run(&folder.path().join("s.xml"), &[]).expect("it runs");
    assert_eq!(finished.code(), 4);
    let told = incident(&finished, 0, &["a handler does not end", "`t`"]);
    assert!(told.what.to_lowercase().contains("ring"), "{told:?}");
    nothing_holds(&finished, "t");
}

/// With a period of 5 ms, no job ends in the millisecond that is compared; in six, one does.
#[test]
fn a_domain_without_a_job_in_the_compared_time_is_not_judged() {
    let text = r#"<system name="s" paradigm="one-shot" platform="epiphany3" duration="20ms">
        <task name="one" domain="good" program="tasks.c::plain" core="0" priority="1" period="5ms" cost="10us"/>
        <task name="two" domain="good" program="tasks.c::plain" core="0" priority="2" period="20ms" cost="10us"/></system>"#;
    let folder = folder_with(&[("s.xml", text), ("tasks.c", HEAD)]);
    let of = |compared: &str| {
        let options = Options {
            overrides: vec!["platform/local-memory[sram]@guard=64".to_owned()],
            time: time(compared).expect("a time"),
            // Any: the verdict is about the domain's own jobs. This one is soon simulated, because all share one link.
            attacks: vec!["stores to external memory".to_owned()],
            searches: 0,
            ..Options::new(folder.path().join("s.xml"))
        };
        let mut result = match audit(&options, &Silent) {
            Ok(finished) => finished.result,
            Err(error) => panic!("{error}"),
        };
        result.domains.remove(0)
    };
    let short = of("1ms");
    assert_eq!(short.ruling.judgement(), Judgement::NotJudged);
    let why = short.ruling.because().unwrap_or_default();
    assert!(
        why.contains("none of its jobs ended in the 1.00 ms"),
        "{why}"
    );
    let long = of("6ms");
    let why = long.ruling.because().unwrap_or_default();
    assert!(why.starts_with("only"), "{why}");
    assert!(
        long.notes
            .iter()
            .any(|one| one.contains("No job of two ended")),
        "{:?}",
        long.notes
    );
}
