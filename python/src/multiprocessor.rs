//! Tests of several processors.
//!
//! Knows which arguments each test takes; documentation for users is in `package/bulkhead/analysis.py`.

use crate::convert::{self, each, run};
use crate::errors;
use bulkhead_analysis::exact::integer;
use bulkhead_analysis::schedulability::partitioning::{self, Fit, Order, Partition};
use bulkhead_analysis::schedulability::tardiness::{self, Supply};
use bulkhead_analysis::schedulability::{
    Time, edf, fixed_priority, global_edf, global_fixed_priority, harmonic,
};
use pyo3::prelude::*;

/// `test`: 0 any of the three, 1 GFB, 2 BAK, 3 BCL.
#[pyfunction]
fn global_edf_schedulable(
    py: Python<'_>,
    tasks: &Bound<'_, PyAny>,
    processors: &Bound<'_, PyAny>,
    test: u8,
) -> PyResult<bool> {
    let (tasks, processors) = (convert::tasks(tasks)?, convert::processors(processors)?);
    run(py, errors::task, || match test {
        1 => global_edf::gfb(&tasks, processors),
        2 => global_edf::bak(&tasks, processors),
        3 => global_edf::bcl(&tasks, processors),
        _ => global_edf::schedulable(&tasks, processors),
    })
}

#[pyfunction]
fn global_fixed_priority_response_times(
    py: Python<'_>,
    tasks: &Bound<'_, PyAny>,
    processors: &Bound<'_, PyAny>,
) -> PyResult<Vec<Option<Time>>> {
    let (tasks, processors) = (convert::tasks(tasks)?, convert::processors(processors)?);
    run(py, errors::task, || {
        global_fixed_priority::response_times(&tasks, processors as usize)
    })
}

#[pyfunction]
fn global_fixed_priority_schedulable(
    py: Python<'_>,
    tasks: &Bound<'_, PyAny>,
    processors: &Bound<'_, PyAny>,
) -> PyResult<bool> {
    let (tasks, processors) = (convert::tasks(tasks)?, convert::processors(processors)?);
    run(py, errors::task, || {
        global_fixed_priority::schedulable(&tasks, processors as usize)
    })
}

#[pyfunction]
fn tardiness_bounds(
    py: Python<'_>,
    tasks: &Bound<'_, PyAny>,
    processors: &Bound<'_, PyAny>,
) -> PyResult<Option<Vec<Time>>> {
    let (tasks, processors) = (convert::tasks(tasks)?, convert::processors(processors)?);
    run(py, errors::task, || tardiness::bounds(&tasks, processors))
}

/// `supplies` are pairs (rate, shortage).
#[pyfunction]
fn tardiness_with_supply(
    py: Python<'_>,
    tasks: &Bound<'_, PyAny>,
    supplies: &Bound<'_, PyAny>,
) -> PyResult<Option<Vec<Time>>> {
    let tasks = convert::tasks(tasks)?;
    let supplies = each(supplies, "supplies", |position, supply| {
        let what = format!("supplies[{position}]");
        let parts = each(supply, &what, |_, value| convert::rational(value, &what))?;
        let [rate, shortage] = &parts[..] else {
            return Err(errors::task(format!("{what} must have rate and shortage")));
        };
        if *rate < integer(0) || *rate > integer(1) {
            return Err(errors::task(format!(
                "{what}: the rate must be from 0 to 1"
            )));
        }
        if *shortage < integer(0) {
            return Err(errors::task(format!(
                "{what}: the shortage must not be negative"
            )));
        }
        Ok(Supply {
            rate: rate.clone(),
            shortage: shortage.clone(),
        })
    })?;
    run(py, errors::task, || {
        tardiness::with_supply(&tasks, &supplies)
    })
}

/// `fit`: 0 first, 1 best, 2 worst; `test`: 0 EDF, 1 fixed priority, 2 harmonic. Gives each task's processor and, if it
/// failed, the first task that fits nowhere.
#[pyfunction]
fn partition(
    py: Python<'_>,
    tasks: &Bound<'_, PyAny>,
    processors: &Bound<'_, PyAny>,
    fit: u8,
    decreasing: bool,
    test: u8,
) -> PyResult<(Vec<Option<usize>>, Option<usize>)> {
    let (tasks, processors) = (convert::tasks(tasks)?, convert::processors(processors)?);
    let fit = match fit {
        0 => Fit::First,
        1 => Fit::Best,
        _ => Fit::Worst,
    };
    let order = if decreasing {
        Order::DecreasingUtilisation
    } else {
        Order::Given
    };
    let accepts = match test {
        0 => edf::schedulable,
        1 => fixed_priority::schedulable,
        _ => harmonic::schedulable,
    };
    let found = run(py, errors::task, || {
        partitioning::partition(&tasks, processors as usize, fit, order, accepts)
    })?;
    Ok(match found {
        Partition::Complete(all) => (all.into_iter().map(Some).collect(), None),
        Partition::Failed { task, placed } => (placed, Some(task)),
    })
}

/// Adds the functions to the module.
pub fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_function(wrap_pyfunction!(global_edf_schedulable, module)?)?;
    module.add_function(wrap_pyfunction!(
        global_fixed_priority_response_times,
        module
    )?)?;
    module.add_function(wrap_pyfunction!(global_fixed_priority_schedulable, module)?)?;
    module.add_function(wrap_pyfunction!(tardiness_bounds, module)?)?;
    module.add_function(wrap_pyfunction!(tardiness_with_supply, module)?)?;
    module.add_function(wrap_pyfunction!(partition, module)?)
}
