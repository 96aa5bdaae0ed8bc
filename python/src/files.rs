//! Task systems from and to files' texts.
//!
//! Knows the shape in which entries cross the border; the formats are the library's.

use crate::convert::{self, each, run};
use crate::errors;
use bulkhead_analysis::schedulability::schedcat::{self, Entry};
use bulkhead_analysis::schedulability::validate;
use bulkhead_model::input;
use pyo3::prelude::*;
use std::io::ErrorKind;
use std::path::PathBuf;

/// Cost, period, deadline, number, processor, working set.
type Plain = (u64, u64, u64, Option<u64>, Option<u64>, Option<u64>);

/// The text of a file that somebody named.
#[pyfunction]
fn read_text(py: Python<'_>, path: PathBuf) -> PyResult<String> {
    py.detach(|| input::read_text(&path))
        .map_err(|error| match error.kind() {
            ErrorKind::InvalidInput | ErrorKind::InvalidData => {
                errors::file(format!("{}: {error}", path.display()))
            }
            // What the system says is Python's OSError of the same kind.
            _ => error.into(),
        })
}

#[pyfunction]
fn schedcat_read(py: Python<'_>, name: &str, text: &str) -> PyResult<Vec<Vec<Plain>>> {
    let sets = run(py, errors::file, || schedcat::read(name, text))?;
    let plain = |e: &Entry| {
        let t = e.task;
        (
            t.cost,
            t.period,
            t.deadline,
            e.id,
            e.partition,
            e.working_set,
        )
    };
    Ok(sets
        .iter()
        .map(|set| set.iter().map(plain).collect())
        .collect())
}

/// Writes tasks with the optional attributes `id`, `partition` and `working_set`, as XML or CSV.
#[pyfunction]
fn schedcat_write(py: Python<'_>, tasks: &Bound<'_, PyAny>, csv: bool) -> PyResult<String> {
    let entries = each(tasks, "tasks", |position, task| {
        let optional = |name: &str| match task.getattr(name) {
            Ok(value) if !value.is_none() => {
                let what = || format!("task {position}: {name}");
                convert::natural(&value, &what, u64::MAX).map(Some)
            }
            _ => Ok(None),
        };
        let plain = convert::task(position, task)?;
        if plain.jitter > 0 || plain.blocking > 0 {
            return Err(errors::file(format!(
                "task {position}: the format has neither jitter nor blocking"
            )));
        }
        Ok(Entry {
            task: plain,
            id: optional("id")?,
            partition: optional("partition")?,
            working_set: optional("working_set")?,
        })
    })?;
    run(py, errors::task, || {
        let plain: Vec<_> = entries.iter().map(|e| e.task).collect();
        validate(&plain).map(|()| {
            if csv {
                schedcat::write_csv(&entries)
            } else {
                schedcat::write(&entries)
            }
        })
    })
}

/// Adds the functions to the module.
pub fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_function(wrap_pyfunction!(read_text, module)?)?;
    module.add_function(wrap_pyfunction!(schedcat_read, module)?)?;
    module.add_function(wrap_pyfunction!(schedcat_write, module)?)
}
