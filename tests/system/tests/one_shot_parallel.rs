//! Parallel sections: results, bounds, and helpers that fail.

use crate::one_shot_systems::{described, holds, run};
use bulkhead_experiments::reproduce::m2os::parallel::{Work, told};
use bulkhead_report::result::{Incident, VariantResult};
use bulkhead_runner::new;
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
    let unfit = match program.contains("::") {
        true => format!(r#"<task name="helper-2" program="{program}""#),
        false => format!(r#"<task name="helper-2" program="one-shot::parallel::unfit::{program}""#),
    };
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
    let what = "jobs waited for `result-2` in vain: `helper-2` on core 4 sent nothing";
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

/// A helper takes the lock of the port for its result, writes that there is one, and dies. The asker gives up on that port in each job; everything else goes on.
#[test]
fn a_helper_that_dies_with_a_lock_is_told_and_the_others_go_on() {
    let finished = with_helper("one-shot/liar.c::dies");
    let variant = &finished.result.variants[0];
    others_go_on(variant);
    let told = of(variant, "helper-2");
    assert!(
        told.iter().any(|one| one.what.contains("liar.c")),
        "{told:?}"
    );
    let console = &finished.consoles[0];
    let fails = console.matches("core 5: its port fails\n").count();
    println!("the port failed in {fails} jobs: {:?}", variant.incidents);
    assert!(fails >= 5, "{console}");
    // No block is whole without that helper, and none is wrong.
    assert_eq!(right(&finished), [0; 0]);
}

/// A task in C and its three helpers.
fn section_in_c(asker: &str, part: &str) -> String {
    let mut text = format!(
        r#"<system name="section" paradigm="one-shot" platform="epiphany3" duration="50ms">
        <task name="asker" program="one-shot/parallel.c::{asker}" core="5" priority="1" period="5ms" cost="200us" wait="1500us"/>"#,
    );
    for (number, core) in [(1, 1), (2, 4), (3, 10)] {
        text += &format!(
            r#"<task name="part-{number}" program="one-shot/parallel.c::{part}" core="{core}" priority="1" period="5ms" cost="100us" wait="1000us"/>
            <channel name="slice-{number}" from="asker" to="part-{number}" size="128B"/>
            <channel name="result-{number}" from="part-{number}" to="asker" size="8B" answers="slice-{number}"/>"#
        );
    }
    text + "</system>"
}

/// In Rust, whoever begins a section in a job gives the job away.
#[test]
fn a_second_section_in_a_job_of_rust_does_not_compile() {
    let folder = tempfile::tempdir().expect("a folder");
    let root = bulkhead_runner::place::root().expect("the checkout is there");
    let own = folder.path().join("twice");
    new::create(&own, &root, new::Language::Rust, new::Kind::OneShot).expect("the folder is new");
    let source = own.join("tasks/src/lib.rs");
    let text = std::fs::read_to_string(&source).expect("it is there");
    let twice = "
        struct Twice(bulkhead_oneshot::parallel::Helpers<[u64; 4], [u64; 4], 1>);
        impl bulkhead_oneshot::Task for Twice {
            fn run(&mut self, job: bulkhead_oneshot::Job) -> bulkhead_oneshot::Done {
                let (first, _) = self.0.begin(job);
                let (second, _) = self.0.begin(job);
                if bulkhead_oneshot::time::now() > 5 { first.next() } else { second.next() }
            }
        }";
    std::fs::write(&source, text + twice).expect("it is written");
    let Err(error) = run(&own.join("system.xml"), &[]) else {
        panic!("it is built");
    };
    let error = format!("{error:?}");
    assert!(error.contains("use of moved value: `job`"), "{error}");
}

/// Whoever begins a second section in a job of C, or waits for a second slice, is stopped with file and line; also if it called `bh_next_section` in between and goes on.
/// A job that ends otherwise than by `bh_next_section` is stopped in the task's next section.
#[test]
fn a_second_section_in_a_job_of_c_is_refused() {
    for (asker, part, whose, said) in [
        ("twice", "part", "asker", "core 5: first 1\n"),
        ("keeps", "part", "asker", "core 5: first 1\n"),
        ("leaves", "part", "asker", "core 5: first 1\n"),
        ("asker", "greedy", "part-1", "core 1: slice 0\n"),
        ("asker", "goes", "part-1", "core 1: slice 0\n"),
    ] {
        let finished = described("section", &section_in_c(asker, part)).expect("it runs");
        let (variant, console) = (&finished.result.variants[0], &finished.consoles[0]);
        assert_eq!(console.matches(said).count(), 1, "{console}");
        let told = of(variant, whose);
        let what =
            "a second section, but bh_next_section has not ended the job of the first one at ";
        assert!(
            told.len() == 1 && told[0].what.contains(what) && told[0].what.contains("parallel.c:"),
            "{told:?}"
        );
    }
}

/// A section in C: the same sums as on one core, and no bound exceeded, with one timer and with timers of their own.
#[test]
fn a_section_in_c_keeps_its_bounds() {
    let text = section_in_c("asker", "part");
    for platform in ["epiphany3", "epiphany3-clocks"] {
        let text = text.replace("\"epiphany3\"", &format!("\"{platform}\""));
        let finished = described("section", &text).expect("it runs");
        holds(&finished.result);
        let console = &finished.consoles[0];
        let of = |what: &str| -> Vec<u64> {
            let lines = console.lines();
            lines
                .filter_map(|line| line.strip_prefix(what)?.parse().ok())
                .collect()
        };
        let (rounds, sums) = (of("core 5: round "), of("core 5: sum "));
        assert!(rounds.len() >= 8, "{console}");
        for (round, sum) in rounds.iter().zip(&sums) {
            let numbers = (0..64).map(|at| 100 * round + at);
            assert_eq!(*sum, numbers.map(|one| one * one).sum::<u64>(), "{round}");
        }
        assert_eq!(
            console.matches("core").count(),
            rounds.len() * 2,
            "{console}"
        );
    }
}
