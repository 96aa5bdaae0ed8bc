//! Plans and verdicts for descriptions of task systems.
//!
//! Why it exists: what `bulkhead plan` and `bulkhead check` answer, as values. What it deliberately does not know: how a
//! plan comes about, and terminals.

use crate::convert::{natural, run};
use crate::errors::{self, DescriptionError, FileError};
use bulkhead_analysis::plan::files::{self, Format, Meaning};
use bulkhead_analysis::plan::system::complete as system_plan;
use bulkhead_analysis::plan::{self, repair};
use bulkhead_model::TaskSystem;
use bulkhead_report as report;
use bulkhead_runner::Error;
use pyo3::exceptions::PyOSError;
use pyo3::prelude::*;
use std::path::PathBuf;

/// A task system as it was given, and the complete one with its constraints.
#[pyclass(frozen, module = "bulkhead._native")]
struct Plan {
    given: TaskSystem,
    plan: plan::Plan,
}

/// The exception for an error of the runner.
fn raise(error: impl Into<Error>) -> PyErr {
    match error.into() {
        Error::Description(errors) => DescriptionError::new_err(errors.to_string()),
        Error::Input { cause, remedy } => DescriptionError::new_err(format!("{cause}; {remedy}")),
        Error::File { path, source } => {
            PyOSError::new_err((source.raw_os_error(), source.to_string(), path))
        }
        other => FileError::new_err(other.to_string()),
    }
}

/// A plan and its verdict, as the command prints them.
fn json(plan: &impl serde::Serialize, verdict: &report::verdict::Verdict) -> PyResult<String> {
    let value = report::plan::with_verdict(plan, verdict);
    let value = value.map_err(|e| DescriptionError::new_err(e.to_string()))?;
    Ok(value.to_string())
}

#[pymethods]
impl Plan {
    /// Everything as JSON, as `bulkhead plan --json` prints it.
    fn json(&self) -> PyResult<String> {
        json(&self.plan, &report::plan::verdict(&self.plan))
    }

    /// What `bulkhead plan` prints.
    fn text(&self) -> String {
        report::plan::summary(&self.plan)
    }

    /// Positions of the constraints that fail, the worst first.
    fn failures(&self) -> Vec<usize> {
        let place = |wanted: &plan::Constraint| {
            self.plan
                .constraints
                .iter()
                .position(|one| std::ptr::eq(one, wanted))
        };
        self.plan.failures().into_iter().filter_map(place).collect()
    }

    /// Single changes with which all would hold, as JSON, the relatively least first.
    fn repairs(&self, py: Python<'_>) -> PyResult<String> {
        let found = run(py, errors::task, || {
            Ok::<_, String>(repair::repairs(&self.given, &self.plan))
        })?;
        serde_json::to_string(&found).map_err(|e| DescriptionError::new_err(e.to_string()))
    }

    /// The complete system in a format: 0 XML, 1 SchedCAT, 2 CSV.
    fn export(&self, format: u8, unit: Option<&str>) -> PyResult<String> {
        let format = match format {
            1 => Format::Schedcat,
            2 => Format::Csv,
            _ => Format::Xml,
        };
        files::unit(unit)
            .and_then(|unit| files::export(&self.plan.system, format, unit))
            .map_err(raise)
    }
}

/// Completes and judges a task system; `None` for a `<system>`.
#[pyfunction]
fn plan_file(
    py: Python<'_>,
    path: PathBuf,
    overrides: Vec<String>,
    policy: Option<String>,
    processors: Option<&Bound<'_, PyAny>>,
    unit: Option<String>,
    set: Option<&Bound<'_, PyAny>>,
) -> PyResult<Option<Plan>> {
    let count = |value: &Bound<'_, PyAny>, what: &str| {
        natural(value, &|| what.to_owned(), u64::from(u32::MAX))
    };
    let processors = processors.map(|v| count(v, "processors")).transpose()?;
    let set = set.map(|v| count(v, "task_set")).transpose()?;
    let meaning = Meaning {
        policy,
        processors: processors.map(|n| n as u32),
        unit,
        set: set.map(|n| n as usize),
    };
    // The error is made into an exception outside, where the interpreter is at hand.
    let found = run(py, errors::task, || {
        let given = files::load(&path, &overrides, &meaning);
        Ok::<_, String>(given.and_then(|given| {
            let planned = |given: TaskSystem| {
                let plan = files::planned(&given)?;
                Ok(Plan { given, plan })
            };
            given.map(planned).transpose()
        }))
    })?;
    found.map_err(raise)
}

/// A system with a chip, and what was chosen where it was open.
#[pyclass(frozen, module = "bulkhead._native")]
struct SystemPlan {
    path: PathBuf,
    overrides: Vec<String>,
    plan: system_plan::SystemPlan,
}

#[pymethods]
impl SystemPlan {
    /// Everything as JSON, as `bulkhead plan --json` prints it.
    fn json(&self) -> PyResult<String> {
        json(&self.plan, &report::plan::system_verdict(&self.plan.runs))
    }

    /// What `bulkhead plan` prints.
    fn text(&self) -> String {
        report::plan::system(&self.plan)
    }

    /// The description with what was chosen.
    fn export(&self) -> PyResult<String> {
        system_plan::completed(&self.path, &self.overrides, &self.plan).map_err(raise)
    }

    /// Single changes with which all would hold, as JSON, the relatively least first.
    fn repairs(&self, py: Python<'_>) -> PyResult<String> {
        let found = run(py, errors::task, || {
            Ok::<_, String>(system_plan::repairs(&self.path, &self.overrides))
        })?;
        let found = found.map_err(raise)?;
        serde_json::to_string(&found).map_err(|e| DescriptionError::new_err(e.to_string()))
    }
}

/// Judges a `<system>`; with `complete`, also chooses what it leaves open.
#[pyfunction]
fn system_file(
    py: Python<'_>,
    path: PathBuf,
    overrides: Vec<String>,
    complete: bool,
) -> PyResult<SystemPlan> {
    let found = run(py, errors::task, || {
        let plan = if complete {
            system_plan::planned(&path, &overrides)
        } else {
            system_plan::judged(&path, &overrides)
        };
        Ok::<_, String>(plan.map(|plan| SystemPlan {
            path,
            overrides,
            plan,
        }))
    })?;
    found.map_err(raise)
}

/// Names of the task systems of the catalog.
#[pyfunction]
fn plan_names() -> Vec<String> {
    files::names()
}

/// Adds the functions to the module.
pub fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_class::<Plan>()?;
    module.add_class::<SystemPlan>()?;
    module.add_function(wrap_pyfunction!(system_file, module)?)?;
    module.add_function(wrap_pyfunction!(plan_file, module)?)?;
    module.add_function(wrap_pyfunction!(plan_names, module)?)
}
