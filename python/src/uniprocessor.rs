//! Tests of one processor.
//!
//! Knows which arguments each test takes; documentation for users is in `package/bulkhead/analysis.py`.

use crate::convert::{self, each, natural, run};
use crate::errors;
use bulkhead_analysis::schedulability::preemption_delay::{self, Approach, CacheSets, CacheTask};
use bulkhead_analysis::schedulability::simulation::{Policy, Simulation};
use bulkhead_analysis::schedulability::table::{self, Slot, Table};
use bulkhead_analysis::schedulability::{
    Task, Time, edf, edf_response, fixed_priority, harmonic, threshold, utilisation, validate,
};
use num_bigint::BigInt;
use pyo3::prelude::*;

/// Cache sets that a task may name: far more than a cache has.
const CACHE_SETS_MAX: u64 = 1 << 20;

/// Jobs that a simulation may have. Under overload all of them wait at once and every step looks at each: the square of
/// this is seconds.
const SIMULATED_JOBS_MAX: u64 = 10_000;

type Responses = Vec<Option<Time>>;

/// Checks one number; for the dataclasses.
#[pyfunction]
fn check_natural(value: &Bound<'_, PyAny>, what: &str) -> PyResult<u64> {
    natural(value, &|| what.to_owned(), u64::MAX)
}

#[pyfunction]
fn check_tasks(py: Python<'_>, tasks: &Bound<'_, PyAny>) -> PyResult<()> {
    let tasks = convert::tasks(tasks)?;
    run(py, errors::task, || validate(&tasks))
}

#[pyfunction]
fn total_utilisation(py: Python<'_>, tasks: &Bound<'_, PyAny>) -> PyResult<(BigInt, BigInt)> {
    let tasks = convert::tasks(tasks)?;
    run(py, errors::task, || {
        validate(&tasks)?;
        let sum = utilisation::utilisation(&tasks);
        Ok::<_, bulkhead_analysis::schedulability::TaskError>((
            sum.numer().clone(),
            sum.denom().clone(),
        ))
    })
}

#[pyfunction]
fn fixed_priority_response_times(py: Python<'_>, tasks: &Bound<'_, PyAny>) -> PyResult<Responses> {
    let tasks = convert::tasks(tasks)?;
    run(py, errors::task, || fixed_priority::response_times(&tasks))
}

#[pyfunction]
fn fixed_priority_schedulable(py: Python<'_>, tasks: &Bound<'_, PyAny>) -> PyResult<bool> {
    let tasks = convert::tasks(tasks)?;
    run(py, errors::task, || fixed_priority::schedulable(&tasks))
}

fn thresholds(values: &Bound<'_, PyAny>) -> PyResult<Vec<usize>> {
    each(values, "thresholds", |position, value| {
        let most = convert::TASKS_MAX as u64;
        Ok(natural(value, &|| format!("thresholds[{position}]"), most)? as usize)
    })
}

#[pyfunction]
fn threshold_response_times(
    py: Python<'_>,
    tasks: &Bound<'_, PyAny>,
    levels: &Bound<'_, PyAny>,
) -> PyResult<Responses> {
    let (tasks, levels) = (convert::tasks(tasks)?, thresholds(levels)?);
    run(py, errors::task, || {
        threshold::response_times(&tasks, &levels)
    })
}

#[pyfunction]
fn non_preemptive_response_times(py: Python<'_>, tasks: &Bound<'_, PyAny>) -> PyResult<Responses> {
    let tasks = convert::tasks(tasks)?;
    run(py, errors::task, || threshold::non_preemptive(&tasks))
}

#[pyfunction]
fn edf_schedulable(py: Python<'_>, tasks: &Bound<'_, PyAny>) -> PyResult<bool> {
    let tasks = convert::tasks(tasks)?;
    run(py, errors::task, || edf::schedulable(&tasks))
}

#[pyfunction]
fn edf_response_times(py: Python<'_>, tasks: &Bound<'_, PyAny>) -> PyResult<Responses> {
    let tasks = convert::tasks(tasks)?;
    run(py, errors::task, || edf_response::response_times(&tasks))
}

#[pyfunction]
fn harmonic_schedulable(py: Python<'_>, tasks: &Bound<'_, PyAny>) -> PyResult<bool> {
    let tasks = convert::tasks(tasks)?;
    run(py, errors::task, || harmonic::schedulable(&tasks))
}

fn sets(task: &Bound<'_, PyAny>, position: usize, name: &str) -> PyResult<CacheSets> {
    let values = task.getattr(name)?;
    let what = format!("task {position}: {name}");
    let sets = each(&values, &what, |_, value| {
        Ok(natural(value, &|| what.clone(), CACHE_SETS_MAX)? as usize)
    })?;
    Ok(CacheSets::of(sets))
}

/// `approach`: 0 the lesser of both, 1 ECB-union, 2 UCB-union.
#[pyfunction]
fn preemption_delay_response_times(
    py: Python<'_>,
    tasks: &Bound<'_, PyAny>,
    reload: &Bound<'_, PyAny>,
    approach: u8,
) -> PyResult<Responses> {
    let tasks: Vec<CacheTask> = each(tasks, "tasks", |position, task| {
        Ok(CacheTask {
            task: convert::task(position, task)?,
            evicting: sets(task, position, "evicting")?,
            useful: sets(task, position, "useful")?,
        })
    })?;
    let limit = bulkhead_analysis::schedulability::task::LIMIT;
    let reload = natural(reload, &|| "reload".to_owned(), limit)?;
    run(py, errors::task, || match approach {
        1 => preemption_delay::with_approach(&tasks, reload, Approach::EcbUnion),
        2 => preemption_delay::with_approach(&tasks, reload, Approach::UcbUnion),
        _ => preemption_delay::response_times(&tasks, reload),
    })
}

/// Slots of a table: start, length, task.
pub type Slots = Vec<(Time, Time, usize)>;

#[pyfunction]
fn table_build(py: Python<'_>, tasks: &Bound<'_, PyAny>) -> PyResult<(Time, Slots)> {
    let tasks = convert::tasks(tasks)?;
    run(py, errors::table, || table::build(&tasks)).map(parts)
}

/// A table as plain numbers.
pub fn parts(table: Table) -> (Time, Slots) {
    let slots = table.slots.iter().map(|s| (s.start, s.length, s.task));
    (table.length, slots.collect())
}

fn whole(length: &Bound<'_, PyAny>, slots: &Bound<'_, PyAny>) -> PyResult<Table> {
    let slots = each(slots, "slots", |position, slot| {
        let what = format!("slots[{position}]");
        let [start, length, task] = convert::naturals(slot, &what)?[..] else {
            return Err(errors::table(format!(
                "{what} must have start, length and task"
            )));
        };
        let task = usize::try_from(task).unwrap_or(usize::MAX);
        Ok(Slot {
            start,
            length,
            task,
        })
    })?;
    let length = convert::time(length, "the table's length")?;
    Ok(Table { length, slots })
}

/// Longest response times under the table, once it is found to be right.
#[pyfunction]
fn table_check(
    py: Python<'_>,
    length: &Bound<'_, PyAny>,
    slots: &Bound<'_, PyAny>,
    tasks: &Bound<'_, PyAny>,
) -> PyResult<Vec<Time>> {
    let (table, tasks) = (whole(length, slots)?, convert::tasks(tasks)?);
    run(py, errors::table, || {
        table::check(&table, &tasks)?;
        Ok::<_, table::TableError>(table::response_times(&table, &tasks))
    })
}

#[pyfunction]
fn frame_lengths(py: Python<'_>, tasks: &Bound<'_, PyAny>) -> PyResult<Vec<Time>> {
    let tasks = convert::tasks(tasks)?;
    run(py, errors::table, || table::frame_lengths(&tasks))
}

/// `policy`: 0 fixed priority, 1 non-preemptive, 2 with thresholds, 3 earliest deadline first.
#[pyfunction]
fn simulate(
    py: Python<'_>,
    tasks: &Bound<'_, PyAny>,
    policy: u8,
    levels: &Bound<'_, PyAny>,
    processors: &Bound<'_, PyAny>,
    horizon: &Bound<'_, PyAny>,
    seed: Option<&Bound<'_, PyAny>>,
) -> PyResult<(Vec<Time>, Vec<bool>)> {
    let (tasks, levels) = (convert::tasks(tasks)?, thresholds(levels)?);
    let processors = convert::processors(processors)? as usize;
    let limit = bulkhead_analysis::schedulability::task::LIMIT;
    let horizon = natural(horizon, &|| "the horizon".to_owned(), limit)?;
    let seed = seed.map(|s| convert::time(s, "the seed")).transpose()?;
    let outcome = run(py, errors::task, || {
        validate(&tasks).map_err(|e| e.to_string())?;
        if processors == 0 {
            return Err("the number of processors must be positive".to_owned());
        }
        let bad = |(index, &level): (usize, &usize)| level > index;
        if policy == 2 && (levels.len() != tasks.len() || levels.iter().enumerate().any(bad)) {
            return Err("there must be one threshold for each task, at most its index".to_owned());
        }
        let jobs = |t: &Task| (horizon.saturating_add(t.jitter)) / t.period + 1;
        let jobs = tasks
            .iter()
            .fold(0u64, |sum, t| sum.saturating_add(jobs(t)));
        if jobs > SIMULATED_JOBS_MAX {
            return Err(format!(
                "the simulation would have more than {SIMULATED_JOBS_MAX} jobs; shorten the horizon"
            ));
        }
        let policy = match policy {
            0 => Policy::FixedPriority,
            1 => Policy::NonPreemptive,
            2 => Policy::Threshold(levels),
            _ => Policy::EarliestDeadline,
        };
        let simulation = Simulation::new(policy, processors);
        Ok(match seed {
            None => simulation.synchronous(&tasks, horizon),
            Some(seed) => simulation.random(&tasks, horizon, seed),
        })
    })?;
    Ok((outcome.responses, outcome.missed))
}

/// Adds the functions to the module.
pub fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_function(wrap_pyfunction!(check_natural, module)?)?;
    module.add_function(wrap_pyfunction!(check_tasks, module)?)?;
    module.add_function(wrap_pyfunction!(total_utilisation, module)?)?;
    module.add_function(wrap_pyfunction!(fixed_priority_response_times, module)?)?;
    module.add_function(wrap_pyfunction!(fixed_priority_schedulable, module)?)?;
    module.add_function(wrap_pyfunction!(threshold_response_times, module)?)?;
    module.add_function(wrap_pyfunction!(non_preemptive_response_times, module)?)?;
    module.add_function(wrap_pyfunction!(edf_schedulable, module)?)?;
    module.add_function(wrap_pyfunction!(edf_response_times, module)?)?;
    module.add_function(wrap_pyfunction!(harmonic_schedulable, module)?)?;
    module.add_function(wrap_pyfunction!(preemption_delay_response_times, module)?)?;
    module.add_function(wrap_pyfunction!(table_build, module)?)?;
    module.add_function(wrap_pyfunction!(table_check, module)?)?;
    module.add_function(wrap_pyfunction!(frame_lengths, module)?)?;
    module.add_function(wrap_pyfunction!(simulate, module)?)
}
