//! The study: splitting, repetition, and the direction of the effect of more resources.

use super::*;
use crate::mc2::task_system::matching;
use proptest::prelude::*;

fn study() -> Study {
    Study::new(StudyParameters::default()).expect("valid")
}

#[test]
fn wrong_questions_have_answers() {
    let parameters = StudyParameters::default();
    let error = |scenario, point| {
        run_cell(&parameters, scenario, point, 0..1, &Scheme::ALL)
            .expect_err("refused")
            .to_string()
    };
    insta::assert_snapshot!(error(648, 0), @"scenario 648 does not exist; there are 648, counted from 0");
    insta::assert_snapshot!(error(0, 60), @"point on the horizontal axis 60 does not exist; there are 60, counted from 0");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(12))]

    /// However a cell is split, and whichever other schemes are requested, each scheme's count is the same.
    #[test]
    fn splitting_changes_nothing(
        scenario in 0usize..648,
        point in 8u64..30,
        cut in 0u64..24,
        mask in 1u32..512,
    ) {
        let study = study();
        let mut judge = study.judge();
        let whole = study.run(&mut judge, scenario, point, 0..24, &Scheme::ALL).expect("exists");
        let some: Vec<Scheme> = Scheme::ALL.into_iter().filter(|s| mask >> s.index() & 1 == 1).collect();
        let mut parts = Counts::default();
        // The second part first, in fresh memory.
        for range in [cut..24, 0..cut] {
            parts.add(&run_cell(study.parameters(), scenario, point, range, &some).expect("exists"));
        }
        prop_assert_eq!(parts.samples, 24);
        for scheme in some {
            prop_assert_eq!(parts.schedulable[scheme.index()], whole.schedulable[scheme.index()]);
        }
    }
}

/// Sampling stops at a batch, as soon as all shares are known, and not before.
#[test]
fn sampling_stops_when_all_is_known() {
    let study = study();
    let mut judge = study.judge();
    let scenario =
        matching("C-Light,Short,Medium,Slow,Large,High,Many").expect("matches")[0].index();
    for point in [4, 20, 35] {
        let counts = study
            .run_to_confidence(&mut judge, scenario, point, &Scheme::ALL)
            .expect("exists");
        let parameters = study.parameters();
        assert!(
            counts.known(parameters, &Scheme::ALL)
                && counts.samples.is_multiple_of(parameters.batch)
        );
        let mut before = Counts::default();
        while before.samples + parameters.batch < counts.samples {
            let next = before.samples..before.samples + parameters.batch;
            before.add(
                &study
                    .run(&mut judge, scenario, point, next, &Scheme::ALL)
                    .expect("exists"),
            );
            assert!(!before.known(parameters, &Scheme::ALL));
        }
    }
}

/// The same digits on every host, in every build: a change here changes every published result.
#[test]
fn golden_counts() {
    let parameters = StudyParameters::default();
    let lines: Vec<String> = [(0, 24), (100, 25), (321, 36), (647, 26)]
        .into_iter()
        .map(|(scenario, point)| {
            let counts =
                run_cell(&parameters, scenario, point, 0..64, &Scheme::ALL).expect("exists");
            format!("{scenario} {point} {:?}", counts.schedulable)
        })
        .collect();
    insta::assert_snapshot!(lines.join("\n"), @"
    0 24 [39, 46, 63, 46, 46, 46, 63, 63, 63]
    100 25 [12, 19, 12, 23, 19, 20, 17, 13, 13]
    321 36 [27, 27, 48, 28, 28, 27, 50, 50, 50]
    647 26 [46, 45, 32, 51, 48, 47, 47, 41, 39]
    ");
    insta::assert_snapshot!(parameters.hash(), @"5aaf3073c207e9300a1863259466c166cd8293389744748a55ae2b4818044f20");
}
