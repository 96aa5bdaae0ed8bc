//! What placing each I/O buffer by itself gains over the paper's patterns, over all scenarios: ratios of schedulable-utilisation area.
//!
//! Why it exists: mc2-rts20, section 6.1, leaves this question open because its mixed-integer program would explode. Arguments: samples for
//! each of the 648 x 40 cells (16 if none is given), how many scenarios to step over (1), by how much row conflicts of devices in a bank are
//! stronger than in the study (1), and by how much a copy from a bank of level C is less slow (1).

use bulkhead_analysis::mc2::best_placement::Gain;
use bulkhead_analysis::mc2::parameters::{ParameterError, StudyParameters};
use bulkhead_analysis::mc2::study::Study;
use bulkhead_analysis::mc2::task_system::SCENARIOS;
use rayon::prelude::*;
use std::time::Instant;

fn main() -> Result<(), ParameterError> {
    let mut numbers = std::env::args().skip(1).map(|a| a.parse().ok());
    let samples = numbers.next().flatten().unwrap_or(16);
    let step = numbers.next().flatten().unwrap_or(1u64).max(1) as usize;
    let stronger = numbers.next().flatten().unwrap_or(1);
    let faster = numbers.next().flatten().unwrap_or(1).max(1);
    let mut parameters = StudyParameters::default();
    parameters.dma_bank.low *= stronger;
    parameters.dma_bank.high *= stronger;
    parameters.copy_inflation /= faster;
    parameters.copy_inflation_average /= faster;
    let study = Study::new(parameters)?;
    let points = study.parameters().utilisation_points;
    for (name, optimised) in [("C", false), ("O", true)] {
        let begin = Instant::now();
        let sums: Vec<Gain> = (0..SCENARIOS)
            .into_par_iter()
            .step_by(step)
            .map_init(
                || study.judge(),
                |judge, scenario| {
                    let mut sum = Gain::default();
                    for point in 0..points {
                        sum.add(&study.gain(judge, scenario, point, 0..samples, optimised)?);
                    }
                    Ok(sum)
                },
            )
            .collect::<Result<_, ParameterError>>()?;
        let mut sum = Gain::default();
        sums.iter().for_each(|s| sum.add(s));
        let ratio = |count: u64| (count as f64 / sum.own as f64 - 1.0) * 100.0;
        println!(
            "{name}: {} systems; area over {name}|C+A/B-ALL: best of four patterns for each system +{:.3} %, best place for each buffer \
             +{:.3} % (at most +{:.3} %); greatest gain in a scenario +{:.2} %; {:.0} us a system",
            sum.samples,
            ratio(sum.pattern),
            ratio(sum.best),
            ratio(sum.at_most),
            sums.iter()
                .filter(|s| s.own > 0)
                .map(|s| (s.best as f64 / s.own as f64 - 1.0) * 100.0)
                .fold(0.0, f64::max),
            begin.elapsed().as_secs_f64() * 1e6 / sum.samples as f64,
        );
    }
    Ok(())
}
