//! The large-scale schedulability study of the mixed-criticality kernel: all cores, checkpoints, results.
//!
//! Why it exists: `analysis` counts the systems of any range of samples; this module distributes the work to threads, keeps the
//! counts, and writes the output. What it deliberately does not know: tasks, costs and schemes beyond their names.

mod curves;
mod folder;
mod output;
mod placement;
mod sensitivity;
mod summary;
mod variants;

pub use folder::{Folder, IDENTITY, Identity};
pub use output::{csv, page, table, write};
pub use placement::{PlacementGain, placement, placement_table, placement_work};
pub use sensitivity::{Sensitivity, Variation, sensitivity, sensitivity_page, sensitivity_table};
pub use summary::{Area, AreaFigure, Comparison, Figures, Observation, ScenarioCounts};
pub use variants::{VariantRow, Variants, variants, variants_page, variants_table};

pub use bulkhead_analysis::mc2::parameters::StudyParameters;
pub use bulkhead_analysis::mc2::schemes::Scheme;
pub use bulkhead_analysis::mc2::study::Study;
pub use bulkhead_analysis::mc2::task_system::{Scenario, matching};
pub use bulkhead_analysis::mc2::variants::{VARIANTS, Variant, named};

use bulkhead_analysis::mc2::parameters::ParameterError;
use bulkhead_runner::error::Error;
use rayon::prelude::*;
use serde::{Deserialize, Serialize};
use std::path::PathBuf;

/// The study to make.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Request {
    /// Scenarios, in any order.
    pub scenarios: Vec<Scenario>,
    /// Schemes, in the paper's order.
    pub schemes: Vec<Scheme>,
    /// Parameters.
    pub parameters: StudyParameters,
    /// Threads; as many as the host has if absent.
    pub threads: Option<usize>,
    /// Folder for everything.
    pub folder: PathBuf,
    /// The folder holds a study to continue.
    pub resume: bool,
    /// How the study was requested.
    pub command: String,
}

/// Result of a study.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct StudyResult {
    /// The identity of the study.
    pub identity: Identity,
    /// Scenarios.
    pub scenarios: usize,
    /// Systems that were generated and judged.
    pub systems: u64,
    /// Largest half width of the 95 % confidence interval of any point and scheme, as a share.
    pub widest: f64,
    /// Curves above zero at the right end of the horizontal axis: their areas are cut off.
    pub cut_off: usize,
    /// Areas.
    pub areas: Vec<Area>,
    /// Ratios beside the paper's.
    pub comparisons: Vec<Comparison>,
    /// In how many scenarios the paper's observations hold.
    pub observations: Vec<Observation>,
    /// All counts; they are in separate files.
    #[serde(skip)]
    pub counts: Vec<ScenarioCounts>,
}

/// A parameter of a study that does not exist or is out of range.
pub fn bad_parameter(error: ParameterError) -> Error {
    Error::input(
        error.to_string(),
        "`bulkhead study mc2 --help` shows what there is",
    )
}

/// Maximum scenarios of a quick study.
pub const QUICK: usize = 50;

/// The command that requests a study, without options that change no result (folder, threads). However a study was requested, even
/// from Python, its files carry the same line.
pub fn command(pattern: &str, schemes: &[Scheme], quick: bool, seed: u64) -> String {
    let mut text = "bulkhead study mc2".to_owned();
    if pattern.trim() != "*" {
        text += &format!(" --scenarios '{}'", pattern.trim());
    }
    if schemes.len() < Scheme::ALL.len() {
        let names: Vec<&str> = schemes.iter().map(|scheme| scheme.name()).collect();
        text += &format!(" --schemes '{}'", names.join(","));
    }
    if quick {
        text += " --quick";
    }
    if seed != StudyParameters::default().seed {
        text += &format!(" --seed {seed}");
    }
    text
}

/// The thinner selection of `--quick` and of sensitivity runs: every n-th scenario, so that each choice of each category appears
/// about as often as in the whole.
pub fn thinned(scenarios: &[Scenario], most: usize) -> Vec<Scenario> {
    if scenarios.len() <= most {
        return scenarios.to_vec();
    }
    // A stride without a common divisor with the numbers of choices (2 and 3).
    let mut stride = scenarios.len().div_ceil(most);
    while stride.is_multiple_of(2) || stride.is_multiple_of(3) {
        stride += 1;
    }
    scenarios.iter().copied().step_by(stride).collect()
}

/// Reduced precision: every other point, 0.1 instead of 0.05.
pub fn quick(parameters: &mut StudyParameters) {
    parameters.utilisation_step *= 2;
    parameters.utilisation_points /= 2;
    parameters.half_width *= 2;
}

/// Threads of the host, or as requested.
fn pool(threads: Option<usize>) -> Result<rayon::ThreadPool, Error> {
    rayon::ThreadPoolBuilder::new()
        .num_threads(threads.unwrap_or(0))
        .build()
        .map_err(|error| Error::Machine(format!("threads cannot be started: {error}")))
}

/// Counts one scenario, its points on all threads of the pool.
fn scenario(
    study: &Study,
    scenario: Scenario,
    schemes: &[Scheme],
) -> Result<ScenarioCounts, ParameterError> {
    let points = (0..study.parameters().utilisation_points as usize)
        .into_par_iter()
        // Work is uneven along the axis, so pieces are small.
        .with_max_len(4)
        .map_init(
            || study.judge(),
            |judge, point| study.run_to_confidence(judge, scenario.index(), point as u64, schemes),
        )
        .collect::<Result<Vec<_>, _>>()?;
    Ok(ScenarioCounts { scenario, points })
}

/// Counts scenarios without any file; `done` is told about each.
pub fn count(
    study: &Study,
    scenarios: &[Scenario],
    schemes: &[Scheme],
    threads: Option<usize>,
    done: &(dyn Fn() + Sync),
) -> Result<Vec<ScenarioCounts>, Error> {
    let counted = pool(threads)?
        .install(|| {
            scenarios
                .par_iter()
                .map(|&one| {
                    let counts = scenario(study, one, schemes);
                    done();
                    counts
                })
                .collect::<Result<Vec<_>, _>>()
        })
        .map_err(bad_parameter)?;
    Ok(counted)
}

/// Runs a study, or the rest of one, and keeps every scenario as soon as it is counted. `done` receives the number of counted
/// scenarios and the total.
///
/// # Errors
/// [`Error`] for bad input, a folder that holds another study, and files that cannot be written.
pub fn run(request: &Request, done: &(dyn Fn(usize, usize) + Sync)) -> Result<StudyResult, Error> {
    let study = Study::new(request.parameters.clone()).map_err(bad_parameter)?;
    let mut scenarios = request.scenarios.clone();
    scenarios.sort_unstable();
    scenarios.dedup();
    let identity = Identity::new(
        &request.parameters,
        &request.schemes,
        &scenarios,
        &request.command,
    );
    let folder = if request.resume {
        Folder::resume(&request.folder, &identity)?
    } else {
        Folder::create(&request.folder, &identity)?
    };
    let points = request.parameters.utilisation_points;
    let kept: Vec<ScenarioCounts> = scenarios
        .iter()
        .filter_map(|&s| folder.kept(s, points))
        .collect();
    let left: Vec<Scenario> = scenarios
        .iter()
        .copied()
        .filter(|s| kept.binary_search_by_key(s, |c| c.scenario).is_err())
        .collect();
    let counted = std::sync::atomic::AtomicUsize::new(kept.len());
    done(kept.len(), scenarios.len());
    let fresh = pool(request.threads)?.install(|| {
        left.par_iter()
            .map(|&one| {
                let counts = scenario(&study, one, &request.schemes).map_err(bad_parameter)?;
                folder.keep(&counts)?;
                let so_far = counted.fetch_add(1, std::sync::atomic::Ordering::Relaxed) + 1;
                done(so_far, scenarios.len());
                Ok(counts)
            })
            .collect::<Result<Vec<_>, Error>>()
    })?;
    let mut counts = kept;
    counts.extend(fresh);
    counts.sort_by_key(|c| c.scenario);
    result(identity, counts)
}

/// Sums up counts, which are in scenario order.
///
/// # Errors
/// [`Error::Machine`] if the paper's figures cannot be read.
pub fn result(identity: Identity, counts: Vec<ScenarioCounts>) -> Result<StudyResult, Error> {
    let schemes = &identity.schemes;
    let widest = counts
        .iter()
        .flat_map(|c| &c.points)
        .flat_map(|p| {
            schemes.iter().map(|s| {
                bulkhead_analysis::mc2::statistics::interval(p.schedulable[s.index()], p.samples).1
            })
        })
        .fold(0.0, f64::max);
    let cut_off = counts
        .iter()
        .filter_map(|c| c.points.last())
        .map(|p| {
            schemes
                .iter()
                .filter(|s| p.schedulable[s.index()] > 0)
                .count()
        })
        .sum();
    Ok(StudyResult {
        scenarios: counts.len(),
        systems: counts
            .iter()
            .flat_map(|c| &c.points)
            .map(|p| p.samples)
            .sum(),
        widest,
        cut_off,
        areas: summary::areas(&identity.parameters, &counts, schemes),
        comparisons: summary::comparisons(&identity.parameters, &counts, schemes)?,
        observations: summary::observations(&identity.parameters, &counts, schemes),
        identity,
        counts,
    })
}

#[cfg(test)]
#[path = "tests.rs"]
mod tests;
