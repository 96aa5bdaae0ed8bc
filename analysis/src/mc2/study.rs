//! The study: how many generated systems each scheme can schedule, by scenario and utilisation.
//!
//! Why it exists: `bulkhead study mc2` and the Python package call the same functions and get the same digits however they
//! split the work. A *cell* is a scenario and a point on the horizontal axis; its samples are numbered, and [`Study::run`]
//! counts any range of them. [`Study::run_to_confidence`] adds ranges in order until the shares are known well enough; to split
//! a cell, merge with [`Counts::add`] batch by batch and ask [`Counts::known`] after each.
//!
//! It deliberately knows no files, no threads and no progress.

use super::generate::Stream;
use super::inflation::Curves;
use super::judge::Judge;
use super::parameters::{ParameterError, StudyParameters};
use super::schemes::Scheme;
use super::statistics;
use super::task_system::Scenario;
use serde::{Deserialize, Serialize};
use std::ops::Range;

/// The counts of a cell.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Counts {
    /// Systems that were judged.
    pub samples: u64,
    /// Schedulable ones by scheme, in the order of [`Scheme::ALL`]; 0 for schemes that were not requested.
    pub schedulable: [u64; 9],
}

impl Counts {
    /// Adds what was counted in other samples of the same cell.
    pub fn add(&mut self, other: &Self) {
        self.samples += other.samples;
        for (sum, one) in self.schedulable.iter_mut().zip(other.schedulable) {
            *sum += one;
        }
    }

    /// Whether the share of each scheme is known as well as the parameters require.
    pub fn known(&self, parameters: &StudyParameters, schemes: &[Scheme]) -> bool {
        self.samples >= parameters.most_samples
            || schemes.iter().all(|s| {
                statistics::known(
                    self.schedulable[s.index()],
                    self.samples,
                    parameters.half_width,
                )
            })
    }

    /// Share of schedulable systems, 0 to 1.
    pub fn share(&self, scheme: Scheme) -> f64 {
        statistics::interval(self.schedulable[scheme.index()], self.samples).0
    }
}

/// A parameter set with its tables.
#[derive(Clone, Debug)]
pub struct Study {
    parameters: StudyParameters,
    curves: Curves,
}

impl Study {
    /// Prepares a study.
    ///
    /// # Errors
    /// [`ParameterError`] if a parameter is out of range.
    pub fn new(parameters: StudyParameters) -> Result<Self, ParameterError> {
        parameters.validate()?;
        let curves = Curves::new(&parameters);
        Ok(Self { parameters, curves })
    }

    /// Its parameters.
    pub fn parameters(&self) -> &StudyParameters {
        &self.parameters
    }

    /// Its curves.
    pub fn curves(&self) -> &Curves {
        &self.curves
    }

    /// Memory for [`Self::run`]; keep one per thread.
    pub fn judge(&self) -> Judge {
        Judge::new(&self.parameters)
    }

    /// Judges samples of a cell.
    ///
    /// # Errors
    /// [`ParameterError::Missing`] if there is no such scenario or point.
    pub fn run(
        &self,
        judge: &mut Judge,
        scenario: usize,
        utilisation_index: u64,
        samples: Range<u64>,
        schemes: &[Scheme],
    ) -> Result<Counts, ParameterError> {
        let chosen = Scenario::from_index(scenario)?;
        if utilisation_index >= self.parameters.utilisation_points {
            return Err(ParameterError::Missing {
                what: "point on the horizontal axis",
                found: utilisation_index,
                count: self.parameters.utilisation_points,
            });
        }
        let utilisation = self.parameters.utilisation(utilisation_index);
        let mut counts = Counts::default();
        for sample in samples {
            let mut stream = Stream::new(self.parameters.seed, scenario, utilisation_index, sample);
            judge.generate(
                &self.parameters,
                &self.curves,
                chosen,
                utilisation,
                &mut stream,
            );
            counts.samples += 1;
            for &scheme in schemes {
                let good = judge.judge(&self.parameters, &self.curves, scheme);
                counts.schedulable[scheme.index()] += u64::from(good);
            }
        }
        Ok(counts)
    }

    /// Judges samples of a cell, batch by batch, until all shares are known well enough.
    ///
    /// # Errors
    /// As [`Self::run`].
    pub fn run_to_confidence(
        &self,
        judge: &mut Judge,
        scenario: usize,
        utilisation_index: u64,
        schemes: &[Scheme],
    ) -> Result<Counts, ParameterError> {
        let mut counts = Counts::default();
        while !counts.known(&self.parameters, schemes) {
            let next = counts.samples..counts.samples + self.parameters.batch;
            counts.add(&self.run(judge, scenario, utilisation_index, next, schemes)?);
        }
        Ok(counts)
    }
}

/// Judges samples of a cell: the same as [`Study::run`], for callers that keep nothing between calls.
///
/// # Errors
/// As [`Study::new`] and [`Study::run`].
pub fn run_cell(
    parameters: &StudyParameters,
    scenario: usize,
    utilisation_index: u64,
    samples: Range<u64>,
    schemes: &[Scheme],
) -> Result<Counts, ParameterError> {
    let study = Study::new(parameters.clone())?;
    study.run(
        &mut study.judge(),
        scenario,
        utilisation_index,
        samples,
        schemes,
    )
}

#[cfg(test)]
#[path = "study_tests.rs"]
mod tests;
