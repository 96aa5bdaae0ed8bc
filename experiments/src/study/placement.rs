//! What placing each I/O buffer individually gains over the paper's patterns.
//!
//! Why it exists: mc2-rts20, section 6.1, leaves this question open because its mixed-integer program would explode. A fixed number
//! of systems for every cell is judged with all placements; the sums over all cells are schedulable-utilisation areas.

use super::{bad_parameter, pool, thinned};
use bulkhead_analysis::mc2::best_placement::Gain;
use bulkhead_analysis::mc2::parameters::StudyParameters;
use bulkhead_analysis::mc2::study::Study;
use bulkhead_analysis::mc2::task_system::Scenario;
use bulkhead_report::table::{plain, render};
use bulkhead_runner::error::Error;
use rayon::prelude::*;
use serde::Serialize;

/// Maximum scenarios for the variants with other costs.
const VARIANT_SCENARIOS: usize = 72;

/// Costs: how much stronger row conflicts of devices in a bank are than in the study, and how much less slow a copy from a bank of
/// level C is.
const COSTS: [(u64, u64); 3] = [(1, 1), (8, 4), (30, 8)];

/// One row: one kind of message under one kind of costs.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct PlacementGain {
    /// Message buffers: `C` in banks of level C, `O` optimised.
    pub messages: &'static str,
    /// Row conflicts of devices are this many times as strong as in the study.
    pub conflicts: u64,
    /// Copies from banks of level C are this many times less slow.
    pub copies: u64,
    /// Scenarios.
    pub scenarios: usize,
    /// The counts.
    pub gain: Gain,
    /// Area divided by that of `x|C+A/B-ALL`, in percent: with the best of the four patterns for each system.
    pub pattern: f64,
    /// With the best place for each buffer.
    pub best: f64,
    /// Proved upper bound of that value.
    pub at_most: f64,
    /// The greatest value of a single scenario.
    pub greatest: f64,
}

fn percent(count: u64, base: u64) -> f64 {
    if base == 0 {
        0.0
    } else {
        (count as f64 / base as f64 - 1.0) * 100.0
    }
}

/// Judges `samples` systems of each cell of the scenarios. `done` receives the number of finished scenarios and the total.
///
/// # Errors
/// [`Error`] for parameters out of range.
pub fn placement(
    parameters: &StudyParameters,
    scenarios: &[Scenario],
    samples: u64,
    threads: Option<usize>,
    done: &(dyn Fn() + Sync),
) -> Result<Vec<PlacementGain>, Error> {
    let mut rows = Vec::new();
    for (conflicts, copies) in COSTS {
        let mut parameters = parameters.clone();
        parameters.dma_bank.low *= conflicts;
        parameters.dma_bank.high *= conflicts;
        parameters.copy_inflation /= copies;
        parameters.copy_inflation_average /= copies;
        let study = Study::new(parameters).map_err(bad_parameter)?;
        let some = if conflicts == 1 {
            scenarios.to_vec()
        } else {
            thinned(scenarios, VARIANT_SCENARIOS)
        };
        for (messages, optimised) in [("C", false), ("O", true)] {
            let each = pool(threads)?.install(|| {
                some.par_iter()
                    .map_init(
                        || study.judge(),
                        |judge, scenario| {
                            let mut sum = Gain::default();
                            for point in 0..study.parameters().utilisation_points {
                                let index = scenario.index();
                                sum.add(
                                    &study
                                        .gain(judge, index, point, 0..samples, optimised)
                                        .map_err(bad_parameter)?,
                                );
                            }
                            done();
                            Ok(sum)
                        },
                    )
                    .collect::<Result<Vec<Gain>, Error>>()
            })?;
            let mut gain = Gain::default();
            for one in &each {
                gain.add(one);
            }
            rows.push(PlacementGain {
                messages,
                conflicts,
                copies,
                scenarios: some.len(),
                gain,
                pattern: percent(gain.pattern, gain.own),
                best: percent(gain.best, gain.own),
                at_most: percent(gain.at_most, gain.own),
                greatest: each
                    .iter()
                    .map(|g| percent(g.best, g.own))
                    .fold(0.0, f64::max),
            });
        }
    }
    Ok(rows)
}

/// How many scenarios [`placement`] processes in total.
pub fn placement_work(scenarios: &[Scenario]) -> usize {
    2 * (scenarios.len() + (COSTS.len() - 1) * thinned(scenarios, VARIANT_SCENARIOS).len())
}

/// The rows as text.
pub fn placement_table(rows: &[PlacementGain]) -> String {
    let mut table = plain(&[
        "over",
        "conflicts x",
        "copies /",
        "systems",
        "best pattern",
        "best places",
        "at most",
        "in one scenario",
    ]);
    for row in rows {
        table.add_row(vec![
            format!("{}|C+A/B-ALL", row.messages),
            row.conflicts.to_string(),
            row.copies.to_string(),
            row.gain.samples.to_string(),
            format!("+{:.3} %", row.pattern),
            format!("+{:.3} %", row.best),
            format!("+{:.3} %", row.at_most),
            format!("+{:.1} %", row.greatest),
        ]);
    }
    render(&table)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::{AtomicUsize, Ordering};

    #[test]
    fn rows_are_consistent() {
        let parameters = StudyParameters {
            utilisation_points: 12,
            ..StudyParameters::default()
        };
        let scenarios = [100, 400].map(|i| Scenario::from_index(i).expect("exists"));
        let heard = AtomicUsize::new(0);
        let count = || {
            heard.fetch_add(1, Ordering::Relaxed);
        };
        let rows = placement(&parameters, &scenarios, 2, Some(2), &count).expect("valid");
        assert_eq!(heard.into_inner(), placement_work(&scenarios));
        assert_eq!(rows.len(), 2 * COSTS.len());
        for row in &rows {
            assert_eq!(row.gain.samples, 2 * 12 * 2);
            assert!(
                row.pattern <= row.best
                    && row.best <= row.at_most
                    && row.best <= row.greatest + 1e-9
            );
        }
        assert_eq!(
            rows,
            placement(&parameters, &scenarios, 2, Some(1), &|| ()).expect("valid")
        );
        assert!(placement_table(&rows).contains("O|C+A/B-ALL"));
    }
}
