//! Speed of the study: the cost of a generated system with all nine schemes, and the gain from a second thread, in one run.
//!
//! The work: every 13th scenario (50, each choice of each category about equally often) at every second point of the axis, 16
//! samples each. One thread and two alternate, so both meet the same disturbances; the best of three rounds counts.

use bulkhead_analysis::mc2::parameters::StudyParameters;
use bulkhead_analysis::mc2::schemes::Scheme;
use bulkhead_analysis::mc2::study::{Counts, Study};
use bulkhead_analysis::mc2::task_system::SCENARIOS;
use rayon::prelude::*;
use std::time::{Duration, Instant};

const SAMPLES: u64 = 16;
const ROUNDS: usize = 3;

fn cells(study: &Study) -> Vec<(usize, u64)> {
    (0..SCENARIOS)
        .step_by(13)
        .flat_map(|scenario| {
            (0..study.parameters().utilisation_points)
                .step_by(2)
                .map(move |point| (scenario, point))
        })
        .collect()
}

fn work(study: &Study, cells: &[(usize, u64)], threads: usize) -> (Duration, Counts) {
    let pool = rayon::ThreadPoolBuilder::new()
        .num_threads(threads)
        .build()
        .expect("threads start");
    let begin = Instant::now();
    let counts = pool.install(|| {
        cells
            .par_iter()
            .map_init(
                || study.judge(),
                |judge, &(scenario, point)| {
                    study
                        .run(judge, scenario, point, 0..SAMPLES, &Scheme::ALL)
                        .expect("the cell exists")
                },
            )
            .reduce(Counts::default, |mut sum, one| {
                sum.add(&one);
                sum
            })
    });
    (begin.elapsed(), counts)
}

fn main() {
    // `cargo test` builds and runs benches, too, where they only have to run.
    let measured = std::env::args().any(|a| a == "--bench");
    let study = Study::new(StudyParameters::default()).expect("valid");
    let mut cells = cells(&study);
    if !measured {
        cells.truncate(4);
    }
    let mut best = [Duration::MAX; 2];
    let mut seen = Vec::new();
    for _ in 0..if measured { ROUNDS } else { 1 } {
        for (threads, best) in [1, 2].into_iter().zip(&mut best) {
            let (time, counts) = work(&study, &cells, threads);
            *best = time.min(*best);
            seen.push(counts);
        }
    }
    assert!(
        seen.iter().all(|c| *c == seen[0]),
        "threads must not change digits"
    );
    let systems = seen[0].samples;
    let each = best[0].as_secs_f64() / systems as f64;
    println!("systems, each judged under nine schemes: {systems}");
    println!("one thread: {:.1} us a system", each * 1e6);
    println!(
        "two threads over one: {:.2} (1.8 or more is promised)",
        best[0].as_secs_f64() / best[1].as_secs_f64()
    );
    for (scheme, good) in Scheme::ALL.iter().zip(seen[0].schedulable) {
        println!("{:<12} {:.4}", scheme.name(), good as f64 / systems as f64);
    }
}
