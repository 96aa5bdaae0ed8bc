//! Verdicts, plans and repairs for task systems: which constraints hold, what was open, and what would help.
//!
//! Why it exists: a user asks whether tasks fit, not which test to call. This module chooses the test for a policy, passes
//! it the description's values, and fills in what the description leaves open. Every verdict comes from a test of
//! [`crate::schedulability`] or from counting. What it deliberately does not know: files, terminals, the simulated chip.
//!
//! [`plan`] completes a system and judges it; a complete system is only judged. [`repair::repairs`] searches for the
//! smallest changes that make a failing system pass.

mod assign;
mod channels;
mod complete;
pub mod cores;
mod divide;
mod evaluate;
pub mod exchange;
pub mod files;
mod input;
pub mod instant;
mod levels;
mod notes;
pub mod one_shot;
mod prepare;
pub mod repair;
mod resources;
mod slices;
pub mod system;
mod tables;
mod tardy;

pub use crate::judgement::Judgement;
pub use complete::plan;
pub use input::InputError;

use bulkhead_model::tasks::{TIME_MAX, TaskSystem, Unbounded};
use serde::Serialize;
use thiserror::Error;

use crate::schedulability::TaskError;
use crate::schedulability::table::TableError;

/// Nanoseconds.
pub type Nanoseconds = u64;

/// The kind of a constraint.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Kind {
    /// From arrival to completion of a task's jobs.
    Response,
    /// Time from deadline to completion of a task's jobs.
    Tardiness,
    /// Work against processors.
    Capacity,
    /// Ways of the last-level cache.
    Ways,
    /// Page colours.
    Colours,
    /// Memory banks.
    Banks,
    /// Memory accesses per regulation period.
    Budget,
    /// Bytes per second of the devices.
    Bandwidth,
    /// Latency of a channel.
    Channel,
    /// Messages in a queue.
    Queue,
    /// Bytes in a device's buffer.
    Buffer,
    /// Latency of a chain.
    Flow,
    /// Computing time promised to an application on a shared tile.
    Quota,
    /// Processors whose tasks hold a resource: the priority ceiling protocol works on only one.
    Section,
}

/// The unit of a constraint's numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Unit {
    /// Nanoseconds.
    Nanoseconds,
    /// Millionths of a processor, rounded up; the verdict is exact.
    Millionths,
    /// Things.
    Count,
    /// Bytes.
    Bytes,
    /// Bytes a second.
    BytesPerSecond,
}

/// One thing that must hold.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Constraint {
    /// Its kind.
    pub kind: Kind,
    /// Its subject: a task, a channel, `processor 0`.
    pub subject: String,
    /// The worst case; `None`: there is no bound.
    pub bound: Option<u64>,
    /// The allowed maximum; `None`: anything, as long as there is a bound.
    pub limit: Option<u64>,
    /// The unit of both.
    pub unit: Unit,
    /// Whether it holds, if anybody knows.
    #[serde(rename = "holds", serialize_with = "Judgement::as_holds")]
    pub judgement: Judgement,
    /// The method that gave the bound.
    pub method: &'static str,
    /// A note for the reader; why it was not judged, if it was not.
    pub note: Option<String>,
}

impl Constraint {
    /// A bound compared with a limit; it holds if there is a bound within the limit.
    fn new(
        kind: Kind,
        subject: impl Into<String>,
        bound: Option<u64>,
        limit: Option<u64>,
        unit: Unit,
        method: &'static str,
    ) -> Self {
        let holds = bound.is_some_and(|bound| limit.is_none_or(|limit| bound <= limit));
        Self {
            kind,
            subject: subject.into(),
            bound,
            limit,
            unit,
            judgement: Judgement::of(holds),
            method,
            note: None,
        }
    }

    /// It was judged.
    fn judge(&mut self, holds: bool) {
        self.judgement = Judgement::of(holds);
    }

    /// If there is a reason, nothing bounds it.
    fn explain(&mut self, why: Option<&Unbounded>) {
        let Some(why) = why else { return };
        self.bound = None;
        self.judgement = match why {
            Unbounded::Overloaded(_) => Judgement::Failed,
            Unbounded::Unknown(_) => Judgement::NotJudged,
        };
        self.note = Some(why.why().to_owned());
    }

    /// It was judged, and holds.
    pub fn holds(&self) -> bool {
        self.judgement == Judgement::Held
    }

    /// It was judged, and does not hold.
    pub fn fails(&self) -> bool {
        self.judgement == Judgement::Failed
    }

    /// The amount by which it fails; `None` if it holds or there is no bound.
    pub fn excess(&self) -> Option<u64> {
        match (self.bound, self.limit) {
            (Some(bound), Some(limit)) if self.fails() => bound.checked_sub(limit),
            _ => None,
        }
    }
}

/// Something that was open and is now decided.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Choice {
    /// The open thing, such as `processors of tasks`.
    pub what: &'static str,
    /// How it was decided.
    pub how: String,
}

/// A system with everything decided, and whether it holds.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Plan {
    /// The complete system.
    pub system: TaskSystem,
    /// The choices that were open; empty if there were none.
    pub choices: Vec<Choice>,
    /// Everything that must hold.
    pub constraints: Vec<Constraint>,
    /// Nothing that was judged fails. This does not say that anything was judged.
    pub schedulable: bool,
    /// Parts of the description that no bound uses.
    pub notes: Vec<String>,
}

impl Plan {
    /// The failures, the worst first: missing bounds come before others, then by excess over the limit.
    pub fn failures(&self) -> Vec<&Constraint> {
        let mut failed: Vec<&Constraint> = self.constraints.iter().filter(|c| c.fails()).collect();
        failed.sort_by_key(|c| {
            let share = c.excess().map(|excess| {
                u128::from(excess) * 1_000_000 / u128::from(c.limit.unwrap_or(1).max(1))
            });
            // Capacity explains the others.
            (
                c.kind != Kind::Capacity,
                share.is_some(),
                std::cmp::Reverse(share),
            )
        });
        failed
    }
}

/// Why there is no verdict.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum PlanError {
    /// A task is beyond what a test covers.
    #[error("task `{name}`: {what}")]
    Task {
        /// The task.
        name: String,
        /// The mistake.
        what: String,
    },
    /// There is nothing to judge.
    #[error("{0}")]
    Other(String),
}

impl PlanError {
    /// An error of a test over the tasks `members` of `system`.
    fn of(error: &TaskError, system: &TaskSystem, members: &[usize]) -> Self {
        let index = match error {
            TaskError::NotPositive { task, .. }
            | TaskError::TooLarge { task, .. }
            | TaskError::ArbitraryDeadline { task }
            | TaskError::NotCovered { task, .. } => members.get(*task),
            TaskError::Zero(_) => None,
        };
        let text = error.to_string();
        match index.and_then(|&index| system.tasks.get(index)) {
            Some(task) => Self::Task {
                name: task.name.clone(),
                what: text
                    .split_once(": ")
                    .map_or(text.clone(), |(_, what)| what.to_owned()),
            },
            None => Self::Other(text),
        }
    }

    /// The same for tables.
    fn of_table(error: &TableError, system: &TaskSystem, members: &[usize]) -> Self {
        match error {
            TableError::Task(error) => Self::of(error, system, members),
            other => Self::Other(other.to_string()),
        }
    }
}

/// Longest time in a description, in nanoseconds.
pub const NANOSECONDS_MAX: Nanoseconds = TIME_MAX.0 / 1000;

/// The cost of a task at its own level with everything that lengthens a job, its release included, in nanoseconds, but
/// without blocking, interrupts and what is done for others. `None`: there is no estimate for its ways, or a wait has no
/// bound.
pub fn whole_cost(system: &TaskSystem, index: usize) -> Option<Nanoseconds> {
    prepare::task(system, index).ok().flatten().map(|task| {
        task.cost
            .saturating_add(prepare::nanoseconds(system.overheads.release))
    })
}
