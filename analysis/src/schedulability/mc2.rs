//! The mixed-criticality kernel's three guaranteed levels together, each with its own cost estimates.
//!
//! Model: mc2-rts20, section 2, after M. Mollison, J. Erickson, J. Anderson, S. Baruah, J. Scoredos, *Mixed-criticality
//! real-time scheduling for multicore systems*, 2010: level A runs from a table on its processor, level B by rate-monotonic
//! priority below it, level C by global earliest deadline first in what both leave, with bounded tardiness. Each level is
//! judged with costs as its own level estimates them (S. Vestal, RTSS 2007).
//!
//! Overheads: a job's cost grows by two scheduling decisions (when it starts and when it ends) and its release; tasks on
//! processors with interrupts also lose what interrupts take at most in a period (as mc2-rts20, section 6.1, does for levels A
//! and B).
//!
//! Assumptions: implicit deadlines; levels A and B strictly periodic from time 0 (section 2 of the paper), unless a processor says how long jobs
//! of level A live ([`Processor::lives`]), level C sporadic;
//! tasks of higher levels keep to the costs of the level that is judged (otherwise only their own level is guaranteed), and
//! level A's costs are not less at level A than at level B. Slots stay where they are when jobs end early: where the period
//! of a task of level A does not divide those of level B, one of its jobs may reach late into a busy period of level B,
//! which counts as release jitter.

use super::table::{self, Table};
use super::tardiness::{self, Supply};
use super::task::{Task, TaskError, Time};
use super::utilisation::enclosure;
use super::{edf, fixed_priority, handlers};
use crate::exact::{Exact, integer, ratio};
use num_traits::{Signed, Zero};

/// A task with its cost at each level.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LevelTask {
    /// Period and deadline.
    pub period: Time,
    /// Cost as estimated by levels A, B and C. Nothing is required of a level above its own criticality.
    pub costs: [Time; 3],
}

/// Tasks of one processor by level.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Processor {
    /// Level A.
    pub a: Vec<LevelTask>,
    /// Level B.
    pub b: Vec<LevelTask>,
    /// Interrupts handled here: minimum inter-arrival time and longest handler.
    pub interrupts: Vec<(Time, Time)>,
    /// If jobs of levels A and B arrive at arbitrary times at least a period apart: how long each task of level A takes in the slots of the
    /// table ([`super::sporadic_table`]), `None` without a bound. If empty, they follow the table, and level A is done within its periods.
    pub lives: Option<Vec<Option<Time>>>,
}

impl Processor {
    /// The longest life of a task of level A; `None` if it has no bound.
    fn life(&self, task: usize) -> Option<Time> {
        let period = self.a.get(task).map_or(0, |task| task.period);
        match &self.lives {
            None => Some(period),
            Some(lives) => Some(period.max((*lives.get(task)?)?)),
        }
    }
}

/// Costs of the kernel itself.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Overheads {
    /// A scheduling decision with its context switch.
    pub schedule: Time,
    /// A release.
    pub release: Time,
}

/// A whole system.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct System {
    /// The processors with their tasks of levels A and B.
    pub processors: Vec<Processor>,
    /// Level C.
    pub c: Vec<LevelTask>,
    /// Costs of the kernel.
    pub overheads: Overheads,
}

/// The guarantees.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Guarantees {
    /// For each processor: every job of level A meets its deadline.
    pub a: Vec<bool>,
    /// For each processor: response times of level B (as listed), `None` where there is no bound.
    pub b: Vec<Vec<Option<Time>>>,
    /// Tardiness of level C, if it is bounded.
    pub c: Option<Vec<Time>>,
}

impl Guarantees {
    /// Levels A and B meet all deadlines and level C has bounded tardiness.
    pub fn schedulable(&self, system: &System) -> bool {
        let b = self
            .b
            .iter()
            .zip(&system.processors)
            .all(|(responses, processor)| {
                responses
                    .iter()
                    .zip(&processor.b)
                    .all(|(r, t)| r.is_some_and(|r| r <= t.period))
            });
        self.a.iter().all(|&a| a) && b && self.c.is_some()
    }
}

const A: usize = 0;
const B: usize = 1;
const C: usize = 2;

/// Judges every level.
///
/// # Errors
/// [`TaskError`] if a parameter is out of range.
pub fn analyse(system: &System) -> Result<Guarantees, TaskError> {
    if system.processors.is_empty() {
        return Err(TaskError::Zero("the number of processors"));
    }
    let mut guarantees = Guarantees {
        a: Vec::new(),
        b: Vec::new(),
        c: None,
    };
    let mut supplies = Vec::new();
    let mut everywhere: Vec<Task> = Vec::new();
    let mut bounded = true;
    for processor in &system.processors {
        let cost = |level: usize| {
            move |task: &LevelTask| inflated(task, level, &system.overheads, &processor.interrupts)
        };
        // A table exists exactly if earliest deadline first meets all deadlines.
        let a: Vec<Task> = processor.a.iter().map(cost(A)).collect();
        let in_time = (0..a.len()).all(|task| processor.life(task) == Some(a[task].period));
        guarantees.a.push(edf::schedulable(&a)? && in_time);
        // The longest life of each, unless one of them has no bound: then nothing below has one.
        let lives: Option<Vec<Time>> = (0..a.len()).map(|task| processor.life(task)).collect();
        let mut order: Vec<usize> = (0..processor.b.len()).collect();
        order.sort_by_key(|&i| processor.b[i].period);
        let mut b = vec![None; processor.b.len()];
        for (position, &index) in order.iter().enumerate() {
            let Some(lives) = &lives else { break };
            // The table does by any time after a common release at most what highest priorities would do. A busy period of
            // level B may begin with any of these releases; a task of level A that is not released then may still have an
            // old job in a later slot.
            let here = &order[..=position];
            let mut above: Vec<Task> = processor
                .a
                .iter()
                .zip(lives)
                .map(|(t, life)| {
                    let task = cost(B)(t);
                    let together = processor.lives.is_none()
                        && here
                            .iter()
                            .all(|&h| processor.b[h].period.is_multiple_of(task.period));
                    let late = if together {
                        0
                    } else {
                        life.saturating_sub(task.cost)
                    };
                    task.with_jitter(late)
                })
                .collect();
            above.extend(here.iter().map(|&h| cost(B)(&processor.b[h])));
            b[index] = fixed_priority::response_times(&above)?.pop().flatten();
        }
        guarantees.b.push(b);
        // Handlers take from level C whether or not a task of a higher level is present, and hold up the job that they interrupt.
        let handlers = processor.interrupts.iter().filter(|one| one.1 > 0);
        everywhere.extend(
            handlers
                .clone()
                .map(|&(distance, cost)| handlers::handler(cost, distance)),
        );
        let tasks = processor.a.iter().chain(&processor.b);
        let above: Vec<Task> = tasks
            .map(|t| inflated(t, C, &system.overheads, &[]))
            .chain(handlers.map(|&(distance, handler)| Task::new(handler, distance)))
            .collect();
        super::validate(&above)?;
        let Some(lives) = lives else {
            bounded = false;
            continue;
        };
        let lives = lives
            .into_iter()
            .chain(above[a.len()..].iter().map(|t| t.period));
        supplies.push(supply_of(above.iter().zip(lives)));
    }
    if !bounded || supplies.iter().any(|s| s.rate.is_negative()) {
        return Ok(guarantees);
    }
    let c: Vec<Task> = system
        .c
        .iter()
        .map(|t| inflated(t, C, &system.overheads, &[]))
        .collect();
    guarantees.c = tardiness::with_handlers(&c, &supplies, &everywhere)?;
    Ok(guarantees)
}

/// The table of a processor's level A, with costs as that level estimates them.
///
/// # Errors
/// [`table::TableError`] if there is none.
pub fn table(system: &System, processor: usize) -> Result<Table, table::TableError> {
    let Some(here) = system.processors.get(processor) else {
        return Err(TaskError::NotCovered {
            task: processor,
            what: "a processor that does not exist",
        }
        .into());
    };
    let tasks: Vec<Task> = here
        .a
        .iter()
        .map(|t| inflated(t, A, &system.overheads, &here.interrupts))
        .collect();
    table::build(&tasks)
}

/// The cost at `level` with the kernel's work for a job, and with the interrupts of a period.
fn inflated(
    task: &LevelTask,
    level: usize,
    overheads: &Overheads,
    interrupts: &[(Time, Time)],
) -> Task {
    let kernel = overheads
        .schedule
        .saturating_mul(2)
        .saturating_add(overheads.release);
    let handlers: Vec<Task> = interrupts
        .iter()
        .map(|&(distance, cost)| handlers::handler(cost, distance))
        .collect();
    let alone = Task::new(task.costs[level].saturating_add(kernel), task.period);
    handlers::pays(&alone, &handlers, task.period)
}

/// What tasks that meet their implicit deadlines leave: in a window of length t each of them runs for at most `U t + 2 C (1 - U)`, which is
/// reached by two jobs that run back to back, late and early.
pub fn supply(above: &[Task]) -> Supply {
    supply_of(above.iter().map(|task| (task, task.period)))
}

/// The same for tasks whose jobs are done a life after their arrival, which may be later than their period: `U (t + L - C) + C (1 - U)`.
fn supply_of<'a>(above: impl Iterator<Item = (&'a Task, Time)> + Clone) -> Supply {
    let share = |t: &Task| ratio(t.cost, t.period).unwrap_or_else(Exact::zero);
    let rate = integer(1) - enclosure(above.clone().map(|(t, _)| share(t))).1;
    let short = |(t, life): (&Task, Time)| {
        let later = integer(life) - integer(t.period);
        let timely = integer(2 * t.cost) * (integer(1) - share(t)).max(Exact::zero());
        timely + share(t) * later.max(Exact::zero())
    };
    let shortage = enclosure(above.map(short)).1;
    Supply { rate, shortage }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn task(costs: [Time; 3], period: Time) -> LevelTask {
        LevelTask { period, costs }
    }

    /// Two processors by hand. The first: level A (4, 2, 1 of 10), level B (-, 5, 2 of 20). B responds within 2 + 5 = 7.
    /// Level C: rate 1 - 1/10 - 1/10 and 1, shortage 2 * 9/10 + 4 * 9/10 = 5.4; two tasks of (1, 10): x = (1 + 10.8 + 0)
    /// / (1.8 - 0.1 - 0.1) = 7.375; tardiness 8.375.
    #[test]
    fn by_hand() {
        let system = System {
            processors: vec![
                Processor {
                    a: vec![task([4, 2, 1], 10)],
                    b: vec![task([0, 5, 2], 20)],
                    interrupts: vec![],
                    lives: None,
                },
                Processor::default(),
            ],
            c: vec![task([0, 0, 1], 10); 2],
            overheads: Overheads::default(),
        };
        let guarantees = analyse(&system).unwrap();
        assert_eq!(guarantees.a, [true, true]);
        assert_eq!(guarantees.b, [vec![Some(7)], vec![]]);
        assert_eq!(guarantees.c, Some(vec![9, 9]));
        assert!(guarantees.schedulable(&system));
        assert_eq!(table(&system, 0).unwrap().slots.len(), 1);
        assert!(table(&system, 2).is_err() && analyse(&System::default()).is_err());
    }

    /// An interrupt of 1 every 5 adds 3 to a job of period 10 (10 / 5 + 1), the kernel 2 * 1 + 1.
    #[test]
    fn overheads_by_hand() {
        let plain = inflated(
            &task([4, 4, 4], 10),
            B,
            &Overheads {
                schedule: 1,
                release: 1,
            },
            &[(5, 1)],
        );
        assert_eq!(plain, Task::new(10, 10));
    }

    proptest! {
        /// More of anything never helps.
        #[test]
        fn monotone(
            costs in prop::collection::vec((1u64..5, prop::sample::select(vec![20u64, 40, 80])), 3..8),
            overhead in 0u64..2,
        ) {
            let tasks: Vec<_> = costs.iter().map(|&(c, t)| task([2 * c, c + 1, c], t)).collect();
            let (ab, c) = tasks.split_at(2);
            let system = |ab: &[LevelTask], overhead| System {
                processors: vec![
                    Processor { a: vec![ab[0]], b: vec![ab[1]], ..Processor::default() },
                    Processor { b: vec![ab[1]], ..Processor::default() },
                ],
                c: c.to_vec(),
                overheads: Overheads { schedule: overhead, release: 0 },
            };
            let base = analyse(&system(ab, overhead)).unwrap();
            let mut heavier = ab.to_vec();
            heavier[0].costs = heavier[0].costs.map(|c| c + 1);
            for worse in [analyse(&system(&heavier, overhead)).unwrap(), analyse(&system(ab, overhead + 1)).unwrap()] {
                for (b, w) in base.b.iter().flatten().zip(worse.b.iter().flatten()) {
                    prop_assert!(w.is_none() || b.is_some_and(|b| b <= w.unwrap()));
                }
                if let Some(w) = worse.c {
                    let b = base.c.clone().unwrap_or_default();
                    prop_assert!(b.len() == w.len() && b.iter().zip(&w).all(|(b, w)| b <= w));
                }
            }
        }
    }
}
