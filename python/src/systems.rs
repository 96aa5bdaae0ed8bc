//! Tests of whole systems: the mixed-criticality kernel's levels, three-phase tasks, one-shot flows, memory.
//!
//! Knows which arguments each test takes; documentation for users is in `package/bulkhead/analysis.py`.

use crate::convert::{self, each, index, naturals, run, time};
use crate::errors;
use crate::uniprocessor::{Slots, parts};
use bulkhead_analysis::schedulability::mc2::{self, LevelTask, Overheads, Processor, System};
use bulkhead_analysis::schedulability::memguard::{self, Regulation};
use bulkhead_analysis::schedulability::memory_mutex::{self, Phases};
use bulkhead_analysis::schedulability::one_shot::{self, Flow, PlacedTask};
use bulkhead_analysis::schedulability::three_phase::{self, PhasedTask, Tdma};
use bulkhead_analysis::schedulability::{Task, Time, task::LIMIT, validate};
use pyo3::prelude::*;

fn level_tasks(items: &Bound<'_, PyAny>, what: &str) -> PyResult<Vec<LevelTask>> {
    each(items, what, |position, task| {
        let period = convert::field(task, position, "period")?;
        let costs = naturals(
            &task.getattr("costs")?,
            &format!("{what}: task {position}: costs"),
        )?;
        let [a, b, c] = costs[..] else {
            return Err(errors::task(format!(
                "{what}: task {position}: there must be three costs, for levels A, B and C"
            )));
        };
        Ok(LevelTask {
            period,
            costs: [a, b, c],
        })
    })
}

fn system(value: &Bound<'_, PyAny>) -> PyResult<System> {
    let processors = each(
        &value.getattr("processors")?,
        "processors",
        |number, processor| {
            let interrupts = convert::pairs(
                &processor.getattr("interrupts")?,
                &format!("processor {number}: interrupts"),
            )?;
            for &(distance, handler) in &interrupts {
                if distance == 0 || distance > LIMIT || handler > LIMIT {
                    return Err(errors::task(format!(
                        "processor {number}: an interrupt's distance must be from 1 to {LIMIT}, its handler at most that"
                    )));
                }
            }
            Ok(Processor {
                a: level_tasks(&processor.getattr("a")?, "level A")?,
                b: level_tasks(&processor.getattr("b")?, "level B")?,
                interrupts,
                // Levels A and B are strictly periodic here, as in the paper.
                lives: None,
            })
        },
    )?;
    let overheads = Overheads {
        schedule: time(&value.getattr("schedule_overhead")?, "schedule_overhead")?,
        release: time(&value.getattr("release_overhead")?, "release_overhead")?,
    };
    Ok(System {
        processors,
        c: level_tasks(&value.getattr("c")?, "level C")?,
        overheads,
    })
}

type Guarantees = (Vec<bool>, Vec<Vec<Option<Time>>>, Option<Vec<Time>>, bool);

#[pyfunction]
fn mc2_analyse(py: Python<'_>, value: &Bound<'_, PyAny>) -> PyResult<Guarantees> {
    let system = system(value)?;
    run(py, errors::task, || {
        mc2::analyse(&system).map(|found| {
            let all = found.schedulable(&system);
            (found.a, found.b, found.c, all)
        })
    })
}

#[pyfunction]
fn mc2_table(
    py: Python<'_>,
    value: &Bound<'_, PyAny>,
    processor: &Bound<'_, PyAny>,
) -> PyResult<(Time, Slots)> {
    let (system, processor) = (system(value)?, index(processor, "the processor")?);
    run(py, errors::table, || mc2::table(&system, processor)).map(parts)
}

fn tdma(slots: &Bound<'_, PyAny>, usable: &Bound<'_, PyAny>) -> PyResult<Tdma> {
    Ok(Tdma {
        slots: naturals(slots, "slots")?,
        usable: naturals(usable, "usable")?,
    })
}

#[pyfunction]
fn memory_time(
    py: Python<'_>,
    slots: &Bound<'_, PyAny>,
    usable: &Bound<'_, PyAny>,
    core: &Bound<'_, PyAny>,
    unload: &Bound<'_, PyAny>,
    load: &Bound<'_, PyAny>,
) -> PyResult<Option<Time>> {
    let (tdma, core) = (tdma(slots, usable)?, index(core, "the core")?);
    let limited = |value, what: &str| convert::natural(value, &|| what.to_owned(), LIMIT);
    let (unload, load) = (limited(unload, "unload")?, limited(load, "load")?);
    run(py, errors::task, || tdma.memory_time(core, unload, load))
}

#[pyfunction]
fn three_phase_response_times(
    py: Python<'_>,
    tasks: &Bound<'_, PyAny>,
    slots: &Bound<'_, PyAny>,
    usable: &Bound<'_, PyAny>,
    core: &Bound<'_, PyAny>,
) -> PyResult<Vec<Option<Time>>> {
    let tasks = each(tasks, "tasks", |position, task| {
        let phase = |name: &str| {
            convert::natural(
                &task.getattr(name)?,
                &|| format!("task {position}: {name}"),
                LIMIT,
            )
        };
        Ok(PhasedTask {
            task: convert::task(position, task)?,
            load: phase("load")?,
            unload: phase("unload")?,
        })
    })?;
    let (tdma, core) = (tdma(slots, usable)?, index(core, "the core")?);
    run(py, errors::task, || {
        three_phase::response_times(&tasks, &tdma, core)
    })
}

fn placed(tasks: &Bound<'_, PyAny>) -> PyResult<Vec<PlacedTask>> {
    each(tasks, "tasks", |position, task| {
        let core = index(&task.getattr("core")?, &format!("task {position}: core"))?;
        Ok(PlacedTask {
            task: convert::task(position, task)?,
            core,
        })
    })
}

#[pyfunction]
fn one_shot_response_times(
    py: Python<'_>,
    tasks: &Bound<'_, PyAny>,
) -> PyResult<Vec<Option<Time>>> {
    let tasks = placed(tasks)?;
    run(py, errors::task, || one_shot::response_times(&tasks))
}

/// `flows` are pairs (indices of tasks, transfers).
#[pyfunction]
fn one_shot_flow_bounds(
    py: Python<'_>,
    tasks: &Bound<'_, PyAny>,
    flows: &Bound<'_, PyAny>,
) -> PyResult<Vec<Option<(Time, bool)>>> {
    let tasks = placed(tasks)?;
    let flows = each(flows, "flows", |number, flow| {
        let part = |name: &str| naturals(&flow.getattr(name)?, &format!("flow {number}: {name}"));
        let transfers = part("transfers")?;
        if let Some(long) = transfers.iter().find(|t| **t > LIMIT) {
            return Err(errors::task(format!(
                "flow {number}: a transfer of {long} is above {LIMIT}"
            )));
        }
        let indices = part("tasks")?.into_iter();
        Ok(Flow {
            tasks: indices
                .map(|i| usize::try_from(i).unwrap_or(usize::MAX))
                .collect(),
            transfers,
        })
    })?;
    let bounds = run(py, errors::task, || one_shot::flow_bounds(&tasks, &flows))?;
    let plain = |b: one_shot::FlowBound| (b.latency, b.lossless);
    Ok(bounds.into_iter().map(|b| b.map(plain)).collect())
}

#[pyfunction]
fn memguard_stall(
    py: Python<'_>,
    accesses: &Bound<'_, PyAny>,
    budget: &Bound<'_, PyAny>,
    period: &Bound<'_, PyAny>,
    access: &Bound<'_, PyAny>,
) -> PyResult<Option<Time>> {
    let accesses = time(accesses, "accesses")?;
    let regulation = Regulation {
        budget: time(budget, "the budget")?,
        period: time(period, "the period")?,
        access: time(access, "access")?,
    };
    run(py, errors::task, || memguard::stall(accesses, &regulation))
}

/// `cores` are pairs (longest phase, minimum inter-arrival time); by core priority or in order of arrival.
#[pyfunction]
fn memory_mutex_wait(
    py: Python<'_>,
    cores: &Bound<'_, PyAny>,
    core: &Bound<'_, PyAny>,
    by_priority: bool,
) -> PyResult<Option<Time>> {
    let cores: Vec<Phases> = convert::pairs(cores, "cores")?
        .into_iter()
        .map(|(longest, distance)| Phases { longest, distance })
        .collect();
    let core = index(core, "the core")?;
    run(py, errors::task, || {
        // The library checks parameters of tasks; a phase is one.
        let tasks: Vec<Task> = cores
            .iter()
            .map(|p| Task::new(p.longest.max(1), p.distance.max(1)))
            .collect();
        validate(&tasks)?;
        if by_priority {
            memory_mutex::by_priority(&cores, core)
        } else {
            memory_mutex::fifo(&cores, core).map(Some)
        }
    })
}

/// Adds the functions to the module.
pub fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_function(wrap_pyfunction!(mc2_analyse, module)?)?;
    module.add_function(wrap_pyfunction!(mc2_table, module)?)?;
    module.add_function(wrap_pyfunction!(memory_time, module)?)?;
    module.add_function(wrap_pyfunction!(three_phase_response_times, module)?)?;
    module.add_function(wrap_pyfunction!(one_shot_response_times, module)?)?;
    module.add_function(wrap_pyfunction!(one_shot_flow_bounds, module)?)?;
    module.add_function(wrap_pyfunction!(memguard_stall, module)?)?;
    module.add_function(wrap_pyfunction!(memory_mutex_wait, module)?)
}
