//! Task systems from and to the formats of other tools.
//!
//! Why it exists: the field's tools read SchedCAT's XML, and everything reads comma-separated values. What it deliberately
//! does not know: files. Both formats have bare integers, counted in `unit`s.

use bulkhead_model::tasks::{Policy, Task, TaskSystem};
use bulkhead_model::units::{Size, Time};
use thiserror::Error;

use crate::schedulability::schedcat::{self, Entry, SchedcatError};
use crate::schedulability::task::LIMIT;

/// Why there is no conversion.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum ExchangeError {
    /// The text is wrong.
    #[error(transparent)]
    Schedcat(#[from] SchedcatError),
    /// A file holds no task set, or an empty one.
    #[error("there is no task in it")]
    Empty,
    /// A file holds several task sets and none was chosen, or the chosen one does not exist.
    #[error("it holds {0} task sets")]
    Several(usize),
    /// A time is beyond 52 days.
    #[error("task {task}: {what} does not fit: it is longer than 52 days")]
    TooLong {
        /// Position of the task, from 1.
        task: usize,
        /// Which time.
        what: &'static str,
    },
    /// A processor that does not exist.
    #[error("task {task} is on processor {processor}, but there are {processors}")]
    Processor {
        /// Position of the task, from 1.
        task: usize,
        /// Its processor.
        processor: u64,
        /// How many there are.
        processors: u32,
    },
    /// A time is not a multiple of the unit.
    #[error("the {what} of `{name}`, {time}, is not a multiple of {unit}")]
    NotWhole {
        /// The task.
        name: String,
        /// Which time.
        what: &'static str,
        /// The time.
        time: Time,
        /// The unit.
        unit: Time,
    },
    /// A task has no cost.
    #[error("`{0}` has no cost")]
    NoCost(String),
    /// Nothing bounds the cost of a task.
    #[error("nothing bounds the cost of `{name}`: {why}")]
    Unbounded {
        /// The task.
        name: String,
        /// Why.
        why: String,
    },
}

fn no_cost(task: &Task) -> ExchangeError {
    let name = task.name.clone();
    match &task.unbounded {
        Some(unbounded) => ExchangeError::Unbounded {
            name,
            why: unbounded.why().to_owned(),
        },
        None => ExchangeError::NoCost(name),
    }
}

/// Reads SchedCAT's XML. `set`: which task set of the file, from 0; with `None` there must be exactly one. `unit`: the time
/// that one unit of the file means. Without `processors`, as many as the partitions name.
///
/// # Errors
/// [`ExchangeError`].
pub fn from_schedcat(
    name: &str,
    text: &str,
    set: Option<usize>,
    unit: Time,
    policy: Policy,
    processors: Option<u32>,
) -> Result<TaskSystem, ExchangeError> {
    let mut sets = schedcat::read(name, text)?;
    let index = match (set, sets.len()) {
        (_, 0) => return Err(ExchangeError::Empty),
        (None, 1) => 0,
        (Some(index), count) if index < count => index,
        (_, count) => return Err(ExchangeError::Several(count)),
    };
    let entries = sets.swap_remove(index);
    if entries.is_empty() {
        return Err(ExchangeError::Empty);
    }
    let named = entries.iter().filter_map(|entry| entry.partition).max();
    let count = processors.unwrap_or_else(|| {
        named.map_or(1, |last| {
            u32::try_from(last.saturating_add(1).min(1024)).unwrap_or(1024)
        })
    });
    let ids: std::collections::BTreeSet<u64> = entries.iter().filter_map(|e| e.id).collect();
    let unique = ids.len() == entries.len();
    let tasks = entries
        .iter()
        .enumerate()
        .map(|(position, entry)| {
            let number = if unique { entry.id } else { None };
            let number = number.unwrap_or(position as u64 + 1);
            task(entry, position, number, unit, policy, count)
        })
        .collect::<Result<_, _>>()?;
    Ok(TaskSystem::new(plain(name), count, policy, tasks))
}

fn task(
    entry: &Entry,
    position: usize,
    number: u64,
    unit: Time,
    policy: Policy,
    processors: u32,
) -> Result<Task, ExchangeError> {
    let convert = |value: u64, what: &'static str| {
        let time = value.checked_mul(unit.0).map(Time);
        time.filter(|time| time.0 / 1000 <= LIMIT)
            .ok_or(ExchangeError::TooLong {
                task: position + 1,
                what,
            })
    };
    let core = match entry.partition {
        Some(core) if !policy.is_global() => {
            let there = u32::try_from(core).ok().filter(|core| *core < processors);
            Some(there.ok_or(ExchangeError::Processor {
                task: position + 1,
                processor: core,
                processors,
            })?)
        }
        _ => None,
    };
    Ok(Task {
        deadline: convert(entry.task.deadline, "the deadline")?,
        core,
        working_set: Size(entry.working_set.unwrap_or(0)),
        ..Task::new(
            format!("task-{number}"),
            convert(entry.task.cost, "the cost")?,
            convert(entry.task.period, "the period")?,
        )
    })
}

/// Derives a name valid in descriptions from a file name.
fn plain(file: &str) -> String {
    let stem = file.rsplit(['/', '\\']).next().unwrap_or(file);
    let stem = stem.split('.').next().unwrap_or(stem);
    let name: String = stem
        .chars()
        .map(|c| if c.is_ascii_alphanumeric() { c } else { '-' })
        .take(bulkhead_model::grammar::NAME_MAX)
        .collect();
    if name.starts_with(|c: char| c.is_ascii_alphabetic()) {
        name
    } else {
        "tasks".to_owned()
    }
}

/// The tasks in the form of SchedCAT and CSV, in units.
///
/// # Errors
/// [`ExchangeError`] if a time is no multiple of the unit, or a task has no cost.
pub fn entries(system: &TaskSystem, unit: Time) -> Result<Vec<Entry>, ExchangeError> {
    let convert = |task: &Task, what: &'static str, time: Time| {
        if time.0.is_multiple_of(unit.0.max(1)) {
            Ok(time.0 / unit.0.max(1))
        } else {
            Err(ExchangeError::NotWhole {
                name: task.name.clone(),
                what,
                time,
                unit,
            })
        }
    };
    let entry = |(index, task): (usize, &Task)| {
        let ways = super::prepare::ways(system, index);
        let cost = task
            .cost_at(task.criticality, ways)
            .ok_or_else(|| no_cost(task))?;
        Ok(Entry {
            task: crate::schedulability::Task::constrained(
                convert(task, "cost", cost)?,
                convert(task, "period", task.period)?,
                convert(task, "deadline", task.deadline)?,
            ),
            id: Some(index as u64 + 1),
            partition: task.core.map(u64::from),
            working_set: (task.working_set.0 > 0).then_some(task.working_set.0),
        })
    };
    system.tasks.iter().enumerate().map(entry).collect()
}
