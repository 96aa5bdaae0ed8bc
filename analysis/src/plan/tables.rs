//! Tables of processors, from the description or built, with the decisions that start their slots.
//!
//! Why it exists: a table is made once and followed forever, so what its slots lose must be counted in advance. What it deliberately does
//! not know: what tasks cost. The tables themselves are in [`crate::schedulability::table`].

use bulkhead_model::tasks::{Policy, TaskSystem};

use super::PlanError;
use super::evaluate::Known;
use super::prepare::{self, nanoseconds};
use crate::schedulability::sporadic_table::{self, Paid};
use crate::schedulability::table::{self, Slot, Table, TableError, Turns};
use crate::schedulability::task::LIMIT;
use crate::schedulability::{Task, periodic};

/// Why there is no table for these periods.
pub fn too_long() -> String {
    format!(
        "the periods have no common multiple that a table could hold: it would need more than {} jobs, or more than 52 days",
        periodic::JOBS_MAX
    )
}

/// Rounds in which a table is rebuilt because its jobs have more pieces than in the last one.
const TABLE_ROUNDS: usize = 24;

/// The table of a processor, unless it would be too long to write down. Each piece of a job loses time to [decisions](turns), so the table
/// is built for as many pieces as its jobs have; a job alone has two decisions in its cost.
///
/// # Errors
/// Those of [`table::build`].
pub fn build_table(
    system: &TaskSystem,
    core: u32,
    tasks: &[Task],
    offsets: &[u64],
) -> Result<Table, TableError> {
    let length = periodic::hyperperiod(tasks.iter().map(|task| task.period));
    if length.is_none_or(|length| length > super::NANOSECONDS_MAX) {
        return Err(TableError::TooLong);
    }
    let decision = nanoseconds(system.overheads.schedule);
    let mut longer = tasks.to_vec();
    let mut failed = None;
    for _ in 0..TABLE_ROUNDS {
        let table = table::build_at(&longer, offsets)?;
        let turns = turns(system, core, &table);
        match table::check_at(&table, &bare(system, tasks), offsets, &turns) {
            Ok(()) => return Ok(table),
            Err(TableError::Short {
                task,
                job,
                deadline,
                ..
            }) => {
                longer[task].cost = longer[task].cost.saturating_add(decision).min(LIMIT);
                failed = Some(TableError::Impossible {
                    task,
                    job,
                    deadline,
                });
            }
            Err(error) => return Err(error),
        }
    }
    Err(failed.unwrap_or(TableError::TooLong))
}

/// The time that decisions take from the slots of a processor's table. Each turn begins with one, and another one may be in progress then,
/// because decisions are not interrupted. Below a table of `mc2` that is a decision for whatever runs there, at any time. Otherwise it
/// follows the end of a job, or the end of a slot that comes before its job's end; so it is over when the next slot begins a decision
/// later, unless handlers delay it.
fn turns(system: &TaskSystem, core: u32, table: &Table) -> Turns {
    let decision = nanoseconds(system.overheads.schedule);
    let delayed = system.policy == Policy::Mc2
        || system.overheads.release.0 > 0
        || !prepare::interrupts(system, core).is_empty();
    let both = decision.saturating_mul(2);
    let first = |(index, slot): (usize, &Slot)| {
        // The end of the last slot is one repetition earlier.
        let gap = match index {
            0 => {
                let last = table.slots.last();
                let end = last.map_or(0, |last| last.start + last.length);
                slot.start + table.length.saturating_sub(end)
            }
            _ => {
                let before = &table.slots[index - 1];
                slot.start.saturating_sub(before.start + before.length)
            }
        };
        match delayed || gap < decision {
            true => both,
            false => decision,
        }
    };
    Turns {
        first: table.slots.iter().enumerate().map(first).collect(),
        later: both,
    }
}

/// Tasks without their two decisions, which [`turns`] count.
fn bare(system: &TaskSystem, tasks: &[Task]) -> Vec<Task> {
    let bare = |task: &Task| Task {
        cost: task.cost.saturating_sub(prepare::decisions(system)).max(1),
        ..*task
    };
    tasks.iter().map(bare).collect()
}

/// First arrivals of `members`.
pub fn first_arrivals(system: &TaskSystem, members: &[usize]) -> Vec<u64> {
    let offset = |&index: &usize| nanoseconds(system.tasks[index].offset);
    members.iter().map(offset).collect()
}

/// The description's table of a processor, with tasks numbered as in `members`.
fn table_of(system: &TaskSystem, core: u32, members: &[usize]) -> Option<Table> {
    let table = system.tables.iter().find(|table| table.core == core)?;
    Some(Table {
        length: nanoseconds(table.length),
        slots: table
            .slots
            .iter()
            .map(|slot| Slot {
                start: nanoseconds(slot.start),
                length: nanoseconds(slot.length),
                task: members
                    .iter()
                    .position(|&index| index == slot.task)
                    .unwrap_or(usize::MAX),
            })
            .collect(),
    })
}

/// The results for the tasks `members` under the table of their processor, whose costs contain what they pay for others (`paid`).
///
/// # Errors
/// [`PlanError`] if a task is beyond what tables cover, or the table would be too long.
pub fn table_processor(
    system: &TaskSystem,
    core: u32,
    members: &[usize],
    tasks: &[Task],
    paid: &[Paid],
) -> Result<Vec<Known>, PlanError> {
    let none = || vec![Known::default(); tasks.len()];
    let offsets = first_arrivals(system, members);
    let bare = bare(system, tasks);
    let known = |table: &Table| -> Vec<Known> {
        let turns = turns(system, core, table);
        if !system.periodic {
            let responses = sporadic_table::response_times(table, &bare, paid, &turns);
            let known = |response| Known {
                response,
                met: false,
            };
            return responses.into_iter().map(known).collect();
        }
        table::response_times_at(table, &bare, &offsets, &turns)
            .into_iter()
            .map(|response| Known {
                response: Some(response),
                met: true,
            })
            .collect()
    };
    match table_of(system, core, members) {
        Some(table) => {
            // Reading a description has already refused overlapping slots.
            match table::check_at(&table, &bare, &offsets, &turns(system, core, &table)) {
                Ok(()) => Ok(known(&table)),
                Err(TableError::Task(error)) => Err(PlanError::of(&error, system, members)),
                Err(_) => Ok(none()),
            }
        }
        None => match build_table(system, core, tasks, &offsets) {
            Ok(table) => Ok(known(&table)),
            Err(table::TableError::Impossible { .. }) => Ok(none()),
            // Level A is also judged without a table if its jobs follow it; only response times are then missing.
            Err(table::TableError::TooLong) if system.policy == Policy::Mc2 => {
                let met = Known {
                    response: None,
                    met: system.periodic,
                };
                Ok(vec![met; tasks.len()])
            }
            Err(TableError::TooLong) => Err(PlanError::Other(too_long())),
            Err(error) => Err(PlanError::of_table(&error, system, members)),
        },
    }
}
