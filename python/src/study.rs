//! The study of the mixed-criticality kernel: parameters, scenarios, cells, generated systems.
//!
//! Why it exists: a cell (a scenario and a point on the horizontal axis) is the unit of work for threads and workers; its result
//! depends on nothing but what is handed over here. What it deliberately does not know: who does which cell, and files.

use crate::convert::{self, each, natural, run};
use crate::errors::{self, StudyError};
use bulkhead_analysis::mc2::generate::Stream;
use bulkhead_analysis::mc2::parameters::StudyParameters;
use bulkhead_analysis::mc2::schemes::Scheme;
use bulkhead_analysis::mc2::statistics;
use bulkhead_analysis::mc2::study;
use bulkhead_analysis::mc2::task_system::{CATEGORIES, SCENARIOS, Scenario, matching};
use pyo3::prelude::*;
use serde_json::Value;
use std::collections::BTreeSet;

/// Samples, and schedulable ones by scheme.
type Counts = (u64, [u64; 9]);

/// A parameter set with its tables.
#[pyclass(frozen, module = "bulkhead._native")]
struct Study(study::Study);

fn scheme_list(values: &Bound<'_, PyAny>) -> PyResult<Vec<Scheme>> {
    each(values, "schemes", |position, value| {
        let most = Scheme::ALL.len() as u64 - 1;
        let index = natural(value, &|| format!("schemes[{position}]"), most)?;
        Ok(Scheme::ALL[index as usize])
    })
}

#[pymethods]
impl Study {
    #[new]
    fn new(py: Python<'_>, parameters: &str) -> PyResult<Self> {
        let parameters = read(parameters)?;
        run(py, errors::study, || study::Study::new(parameters)).map(Self)
    }

    /// Judges cells of one scenario to the confidence that the parameters ask for.
    fn cells(
        &self,
        py: Python<'_>,
        scenario: &Bound<'_, PyAny>,
        points: &Bound<'_, PyAny>,
        schemes: &Bound<'_, PyAny>,
    ) -> PyResult<Vec<Counts>> {
        let scenario = convert::index(scenario, "the scenario")?;
        let points = convert::naturals(points, "points")?;
        let schemes = scheme_list(schemes)?;
        run(py, errors::study, || {
            let mut judge = self.0.judge();
            points
                .iter()
                .map(|&point| {
                    let counts = self
                        .0
                        .run_to_confidence(&mut judge, scenario, point, &schemes)?;
                    Ok::<_, bulkhead_analysis::mc2::parameters::ParameterError>((
                        counts.samples,
                        counts.schedulable,
                    ))
                })
                .collect()
        })
    }

    /// A generated system as JSON, and the verdict of each scheme on it.
    fn system(
        &self,
        py: Python<'_>,
        scenario: &Bound<'_, PyAny>,
        point: &Bound<'_, PyAny>,
        sample: &Bound<'_, PyAny>,
    ) -> PyResult<(String, [bool; 9])> {
        let index = convert::index(scenario, "the scenario")?;
        let last = self.0.parameters().utilisation_points - 1;
        let point = natural(point, &|| "the point".to_owned(), last)?;
        let sample = convert::time(sample, "the sample")?;
        run(py, errors::study, || {
            let parameters = self.0.parameters();
            let scenario = Scenario::from_index(index).map_err(|e| e.to_string())?;
            let mut stream = Stream::new(parameters.seed, index, point, sample);
            let mut judge = self.0.judge();
            let utilisation = parameters.utilisation(point);
            let curves = self.0.curves();
            judge.generate(parameters, curves, scenario, utilisation, &mut stream);
            let text = serde_json::to_string(&judge.system).map_err(|e| e.to_string())?;
            let verdicts = Scheme::ALL.map(|scheme| judge.judge(parameters, curves, scheme));
            Ok::<_, String>((text, verdicts))
        })
    }
}

fn read(text: &str) -> PyResult<StudyParameters> {
    serde_json::from_str(text).map_err(|e| StudyError::new_err(format!("parameters: {e}")))
}

/// The default parameters with some values replaced, all as JSON; and their hash.
#[pyfunction]
fn study_parameters(changes: &str) -> PyResult<(String, String)> {
    let wrong = |e: &dyn std::fmt::Display| StudyError::new_err(format!("parameters: {e}"));
    let changes: Value = serde_json::from_str(changes).map_err(|e| wrong(&e))?;
    let mut whole = serde_json::to_value(StudyParameters::default()).map_err(|e| wrong(&e))?;
    let (Some(changes), Some(fields)) = (changes.as_object(), whole.as_object_mut()) else {
        return Err(wrong(&"must be a mapping from names to values"));
    };
    for (name, value) in changes {
        let Some(field) = fields.get_mut(name) else {
            let names: Vec<&str> = fields.keys().map(String::as_str).collect();
            return Err(wrong(&format!(
                "there is no `{name}`; there are {}",
                names.join(", ")
            )));
        };
        *field = value.clone();
        // One by one, so that the message can name the parameter.
        serde_json::from_value::<StudyParameters>(Value::Object(fields.clone()))
            .map_err(|e| wrong(&format!("`{name}`: {e}")))?;
    }
    let parameters: StudyParameters = serde_json::from_value(whole).map_err(|e| wrong(&e))?;
    parameters
        .validate()
        .map_err(|e| StudyError::new_err(e.to_string()))?;
    let text = serde_json::to_string(&parameters).map_err(|e| wrong(&e))?;
    Ok((text, parameters.hash()))
}

/// Numbers of the scenarios that any of the patterns matches, in order.
#[pyfunction]
fn study_scenarios(patterns: Vec<String>) -> PyResult<Vec<usize>> {
    let mut all = BTreeSet::new();
    for pattern in &patterns {
        let found = matching(pattern).map_err(|e| StudyError::new_err(e.to_string()))?;
        all.extend(found.iter().map(Scenario::index));
    }
    Ok(all.into_iter().collect())
}

/// Names of a scenario's choices, its tuple and its name for files.
#[pyfunction]
fn study_scenario(index: &Bound<'_, PyAny>) -> PyResult<(Vec<&'static str>, String, String)> {
    let last = SCENARIOS as u64 - 1;
    let index = natural(index, &|| "the scenario".to_owned(), last)? as usize;
    let scenario = Scenario::from_index(index).map_err(|e| StudyError::new_err(e.to_string()))?;
    let choices = scenario
        .0
        .iter()
        .zip(CATEGORIES)
        .map(|(&choice, (_, names))| names[usize::from(choice)]);
    Ok((choices.collect(), scenario.name(), scenario.file_name()))
}

/// Numbers of schemes by their names.
#[pyfunction]
fn study_schemes(names: Vec<String>) -> PyResult<Vec<usize>> {
    let mut all = BTreeSet::new();
    for name in &names {
        let scheme = Scheme::parse(name).map_err(|e| StudyError::new_err(e.to_string()))?;
        all.insert(scheme.index());
    }
    Ok(all.into_iter().collect())
}

/// The share of schedulable systems and half the width of its confidence interval.
#[pyfunction]
fn study_interval(schedulable: u64, samples: u64) -> (f64, f64) {
    statistics::interval(schedulable, samples)
}

/// Area under a curve of shares, in processors.
#[pyfunction]
fn study_area(shares: Vec<f64>, step: f64) -> f64 {
    statistics::area(&shares, step)
}

/// Adds the functions to the module.
pub fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add("SCHEMES", Scheme::ALL.map(Scheme::name).to_vec())?;
    module.add("CATEGORIES", CATEGORIES.map(|(name, _)| name).to_vec())?;
    module.add_class::<Study>()?;
    module.add_function(wrap_pyfunction!(study_parameters, module)?)?;
    module.add_function(wrap_pyfunction!(study_scenarios, module)?)?;
    module.add_function(wrap_pyfunction!(study_scenario, module)?)?;
    module.add_function(wrap_pyfunction!(study_schemes, module)?)?;
    module.add_function(wrap_pyfunction!(study_interval, module)?)?;
    module.add_function(wrap_pyfunction!(study_area, module)?)
}
