//! Folders and results of studies: the same files as the command's, by the same code.
//!
//! Why it exists: a study begun by the command can continue in Python and on a cluster, and the other way round. What it
//! deliberately does not know: how cells are counted.

use crate::convert::run;
use crate::errors::{self, StudyError};
use bulkhead_analysis::mc2::parameters::StudyParameters;
use bulkhead_analysis::mc2::schemes::Scheme;
use bulkhead_analysis::mc2::study::Counts;
use bulkhead_analysis::mc2::task_system::Scenario;
use bulkhead_experiments::study::{self, Folder, Identity, ScenarioCounts, StudyResult};
use bulkhead_runner::Error;
use pyo3::exceptions::PyOSError;
use pyo3::prelude::*;
use std::path::PathBuf;

/// Samples, and schedulable ones by scheme, for each point.
type Points = Vec<(u64, [u64; 9])>;

/// The exception for an error of the runner.
fn raise(error: &Error) -> PyErr {
    match error {
        Error::Input { cause, remedy } => StudyError::new_err(format!("{cause}; {remedy}")),
        Error::File { path, source } => {
            PyOSError::new_err((source.raw_os_error(), source.to_string(), path.clone()))
        }
        other => StudyError::new_err(other.to_string()),
    }
}

fn wrong(error: impl std::fmt::Display) -> PyErr {
    StudyError::new_err(error.to_string())
}

fn identity(text: &str) -> PyResult<Identity> {
    serde_json::from_str(text).map_err(wrong)
}

fn counts(scenario: usize, points: &Points) -> PyResult<ScenarioCounts> {
    let point = |&(samples, schedulable): &(u64, [u64; 9])| Counts {
        samples,
        schedulable,
    };
    Ok(ScenarioCounts {
        scenario: Scenario::from_index(scenario).map_err(wrong)?,
        points: points.iter().map(point).collect(),
    })
}

/// What makes two runs the same study, as JSON. `pattern` if a single one says which scenarios; otherwise `call` says how
/// the study was asked for.
#[pyfunction]
fn study_identity(
    parameters: &str,
    schemes: Vec<usize>,
    scenarios: Vec<usize>,
    pattern: Option<&str>,
    quick: bool,
    call: &str,
) -> PyResult<String> {
    let parameters: StudyParameters = serde_json::from_str(parameters).map_err(wrong)?;
    let schemes: Vec<Scheme> = schemes
        .into_iter()
        .filter_map(|index| Scheme::ALL.get(index).copied())
        .collect();
    let scenarios = scenarios
        .into_iter()
        .map(Scenario::from_index)
        .collect::<Result<Vec<_>, _>>()
        .map_err(wrong)?;
    // The command can change the seed and the precision, but no other parameter.
    let mut plain = StudyParameters {
        seed: parameters.seed,
        ..StudyParameters::default()
    };
    if quick {
        study::quick(&mut plain);
    }
    let command = match pattern {
        Some(pattern) if plain == parameters => {
            study::command(pattern, &schemes, quick, parameters.seed)
        }
        _ => call.to_owned(),
    };
    let identity = Identity::new(&parameters, &schemes, &scenarios, &command);
    serde_json::to_string(&identity).map_err(wrong)
}

/// Parameters of reduced precision, as JSON.
#[pyfunction]
fn study_quick(parameters: &str) -> PyResult<(String, String)> {
    let mut parameters: StudyParameters = serde_json::from_str(parameters).map_err(wrong)?;
    study::quick(&mut parameters);
    parameters.validate().map_err(wrong)?;
    let text = serde_json::to_string(&parameters).map_err(wrong)?;
    Ok((text, parameters.hash()))
}

/// The scenarios of a quick study among these.
#[pyfunction]
fn study_thinned(scenarios: Vec<usize>) -> PyResult<Vec<usize>> {
    let all = scenarios
        .into_iter()
        .map(Scenario::from_index)
        .collect::<Result<Vec<_>, _>>()
        .map_err(wrong)?;
    let some = study::thinned(&all, study::QUICK);
    Ok(some.iter().map(Scenario::index).collect())
}

/// A folder that a study is kept in.
#[pyclass(frozen, module = "bulkhead._native")]
struct StudyFolder {
    folder: Folder,
    identity: Identity,
}

#[pymethods]
impl StudyFolder {
    /// Begins a study in the folder, or goes on with the one that is there if it is the same.
    #[new]
    fn new(path: PathBuf, identity_text: &str) -> PyResult<Self> {
        let mut identity = identity(identity_text)?;
        let folder = if path.join(study::IDENTITY).exists() {
            let folder = Folder::resume(&path, &identity).map_err(|e| raise(&e))?;
            identity.command = Folder::identity(&path).map_err(|e| raise(&e))?.command;
            folder
        } else {
            Folder::create(&path, &identity).map_err(|e| raise(&e))?
        };
        Ok(Self { folder, identity })
    }

    /// The identity, with how the study was first asked for.
    fn identity(&self) -> PyResult<String> {
        serde_json::to_string(&self.identity).map_err(wrong)
    }

    /// Counts of a scenario, if they are there whole.
    fn kept(&self, scenario: usize) -> PyResult<Option<Points>> {
        let scenario = Scenario::from_index(scenario).map_err(wrong)?;
        let points = self.identity.parameters.utilisation_points;
        let plain = |counts: ScenarioCounts| {
            let points = counts.points.iter();
            points.map(|p| (p.samples, p.schedulable)).collect()
        };
        Ok(self.folder.kept(scenario, points).map(plain))
    }

    /// Keeps the counts of a scenario; when this returns they are in the folder.
    #[allow(clippy::needless_pass_by_value)]
    fn keep(&self, scenario: usize, points: Points) -> PyResult<()> {
        let counts = counts(scenario, &points)?;
        self.folder.keep(&counts).map_err(|e| raise(&e))
    }
}

/// A finished study.
#[pyclass(frozen, module = "bulkhead._native")]
struct StudySummary(StudyResult);

#[pymethods]
impl StudySummary {
    #[new]
    fn new(identity_text: &str, all: Vec<(usize, Points)>) -> PyResult<Self> {
        let counts = all
            .iter()
            .map(|(scenario, points)| counts(*scenario, points))
            .collect::<PyResult<Vec<_>>>()?;
        study::result(identity(identity_text)?, counts)
            .map(Self)
            .map_err(|e| raise(&e))
    }

    /// Areas and ratios, as `bulkhead study mc2 --json` prints them.
    fn json(&self) -> PyResult<String> {
        serde_json::to_string(&self.0).map_err(wrong)
    }

    /// The tables that the command prints.
    fn text(&self) -> PyResult<String> {
        study::table(&self.0).map_err(|e| raise(&e))
    }

    /// The command's `counts.csv`.
    fn csv(&self) -> String {
        study::csv(&self.0)
    }

    /// Writes every file that the command writes.
    fn write(&self, py: Python<'_>, folder: PathBuf) -> PyResult<()> {
        let written = run(py, errors::study, || {
            Ok::<_, String>(study::write(&folder, &self.0))
        })?;
        written.map_err(|e| raise(&e))
    }
}

/// Adds the functions to the module.
pub fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_class::<StudyFolder>()?;
    module.add_class::<StudySummary>()?;
    module.add_function(wrap_pyfunction!(study_identity, module)?)?;
    module.add_function(wrap_pyfunction!(study_quick, module)?)?;
    module.add_function(wrap_pyfunction!(study_thinned, module)?)
}
