//! Time-triggered tables of one processor: construction and check.
//!
//! Methods: the table of a hyperperiod as the schedule of earliest deadline first over its jobs, which finds a table
//! whenever there is one (M. Dertouzos, *Control robotics: the procedural control of physical processes*, IFIP 1974); tables
//! of frames within which nothing is preempted (T. Baker, A. Shaw, *The cyclic executive model and Ada*, RTSS 1988).
//!
//! Assumptions: strictly periodic tasks, independent; with offsets ([`build_at`]), whose tables hold from the first whole
//! repetition on, because earlier slots find no jobs. [`check`] knows nothing of how a table was made.

use super::task::{Task, TaskError, Time, common_divisor, common_multiple, validate};
use serde::{Deserialize, Serialize};
use thiserror::Error;

/// Jobs that a table may have; more would be a table that no system holds.
pub const JOBS_MAX: u64 = 1_000_000;

/// The longest table: what is added to its length stays below 64 bits.
const LENGTH_MAX: Time = 1 << 60;

/// A part of a table: `task` runs from `start` for `length`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Slot {
    /// Start, from the start of the table.
    pub start: Time,
    /// Length, positive.
    pub length: Time,
    /// Index of the task.
    pub task: usize,
}

/// A table that repeats forever.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Table {
    /// Length; a multiple of all periods.
    pub length: Time,
    /// Slots by start.
    pub slots: Vec<Slot>,
}

/// The time that the kernel's decisions take from a table's slots. A job has a turn in each slot that serves it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Turns {
    /// For each slot, what a turn that begins with it loses; nothing where there is no entry.
    pub first: Vec<Time>,
    /// What a turn that begins later in its slot loses; not less than any of `first`.
    pub later: Time,
}

/// A mistake in a table, or the reason why there is none.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum TableError {
    /// A task is wrong.
    #[error(transparent)]
    Task(#[from] TaskError),
    /// The hyperperiod has too many jobs.
    #[error("the table would have more than {JOBS_MAX} jobs")]
    TooLong,
    /// There is no table: this job cannot be done by its deadline.
    #[error("job {job} of task {task} cannot be done by {deadline}")]
    Impossible {
        /// The task.
        task: usize,
        /// Number of the job.
        job: u64,
        /// Its absolute deadline.
        deadline: Time,
    },
    /// A slot is empty, ends behind the table, starts before the end of the one before, or names no task.
    #[error("slot {0} is empty, overlaps the one before, leaves the table or names no task")]
    BadSlot(usize),
    /// The table's length is no multiple of a task's period.
    #[error("the table's length is not a multiple of the period of task {0}")]
    BadLength(usize),
    /// A job does not get what it needs between arrival and deadline.
    #[error("job {job} of task {task} gets {got} of {cost} by {deadline}")]
    Short {
        /// The task.
        task: usize,
        /// Number of the job.
        job: u64,
        /// The time that it gets by then.
        got: Time,
        /// The time that it needs.
        cost: Time,
        /// Its absolute deadline.
        deadline: Time,
    },
}

/// A preemptive table for `tasks`, all first released at 0, deadlines within periods.
///
/// # Errors
/// [`TableError::Impossible`] if there is no table at all; others if the input is out of range.
pub fn build(tasks: &[Task]) -> Result<Table, TableError> {
    build_at(tasks, &vec![0; tasks.len()])
}

/// The same for tasks that are first released at `offsets`. Once all have arrived the schedule repeats with the hyperperiod
/// (J. Leung, M. Merrill, Information Processing Letters 11(3), 1980), so the third one is the table.
///
/// # Errors
/// As [`build`]; an offset that is missing is not covered.
pub fn build_at(tasks: &[Task], offsets: &[Time]) -> Result<Table, TableError> {
    super::task::validate_constrained(tasks)?;
    refuse_lateness(tasks)?;
    let offsets = phases(tasks, offsets)?;
    let length = hyperperiod(tasks)?;
    if offsets.iter().all(|&offset| offset == 0) {
        let slots = schedule(tasks, &offsets, length, length)?;
        return Ok(Table { length, slots });
    }
    let begin = 2 * length;
    let slots = schedule(tasks, &offsets, length, begin + length)?;
    let clipped = slots.into_iter().filter_map(|slot| {
        let start = slot.start.max(begin);
        let end = (slot.start + slot.length).min(begin + length);
        (start < end).then(|| Slot {
            start: start - begin,
            length: end - start,
            ..slot
        })
    });
    let table = Table {
        length,
        slots: clipped.collect(),
    };
    // With more work than time, three hyperperiods may pass before a job is late; the table then lacks the postponed work.
    match check_at(&table, tasks, &offsets, &Turns::default()) {
        Err(TableError::Short {
            task,
            job,
            deadline,
            ..
        }) => Err(TableError::Impossible {
            task,
            job,
            deadline,
        }),
        other => other.map(|()| table),
    }
}

/// Offsets within periods: before the first arrival a table's slots find no job.
fn phases(tasks: &[Task], offsets: &[Time]) -> Result<Vec<Time>, TaskError> {
    let phase = |(task, one): (usize, &Task)| match offsets.get(task) {
        Some(offset) => Ok(offset % one.period),
        None => Err(TaskError::NotCovered {
            task,
            what: "a task without an offset",
        }),
    };
    tasks.iter().enumerate().map(phase).collect()
}

/// The schedule of earliest deadline first over all jobs that arrive before `horizon`.
fn schedule(
    tasks: &[Task],
    offsets: &[Time],
    length: Time,
    horizon: Time,
) -> Result<Vec<Slot>, TableError> {
    let mut jobs: Vec<(Time, Time, usize, u64, Time)> = Vec::new();
    for (index, task) in tasks.iter().enumerate() {
        for job in 0..horizon / length * (length / task.period) {
            let arrival = offsets[index] + job * task.period;
            jobs.push((arrival, arrival + task.deadline, index, job, task.cost));
        }
    }
    jobs.sort_unstable();
    let mut ready = std::collections::BTreeSet::new();
    let mut slots: Vec<Slot> = Vec::new();
    let (mut now, mut next) = (0, 0);
    while next < jobs.len() || !ready.is_empty() {
        while let Some(&(_, deadline, task, job, cost)) = jobs.get(next).filter(|j| j.0 <= now) {
            ready.insert((deadline, task, job, cost));
            next += 1;
        }
        let until = jobs.get(next).map(|j| j.0);
        let Some((deadline, task, job, left)) = ready.pop_first() else {
            now = until.unwrap_or(now);
            continue;
        };
        let run = until.map_or(left, |u| left.min(u - now));
        let same = slots
            .last_mut()
            .filter(|s| s.task == task && s.start + s.length == now);
        match same {
            Some(last) => last.length += run,
            None => slots.push(Slot {
                start: now,
                length: run,
                task,
            }),
        }
        now += run;
        if now > deadline || (left > run && now >= deadline) {
            return Err(TableError::Impossible {
                task,
                job,
                deadline,
            });
        }
        if left > run {
            ready.insert((deadline, task, job, left - run));
        }
    }
    Ok(slots)
}

/// Whether every job of `tasks` gets its cost between arrival and deadline, in every repetition.
///
/// # Errors
/// The first thing that is wrong with the table.
pub fn check(table: &Table, tasks: &[Task]) -> Result<(), TableError> {
    check_at(table, tasks, &vec![0; tasks.len()], &Turns::default())
}

/// The same for tasks that are first released at `offsets`, in slots that lose something to decisions.
///
/// # Errors
/// As [`check`]; an offset that is missing is not covered.
pub fn check_at(
    table: &Table,
    tasks: &[Task],
    offsets: &[Time],
    turns: &Turns,
) -> Result<(), TableError> {
    validate(tasks)?;
    refuse_lateness(tasks)?;
    let offsets = phases(tasks, offsets)?;
    let mut free = 0;
    for (index, slot) in table.slots.iter().enumerate() {
        let end = slot
            .start
            .checked_add(slot.length)
            .filter(|&e| e <= table.length);
        let sound = slot.length > 0 && slot.start >= free && slot.task < tasks.len();
        let Some(end) = end.filter(|_| sound) else {
            return Err(TableError::BadSlot(index));
        };
        free = end;
    }
    if table.length > LENGTH_MAX {
        return Err(TableError::TooLong);
    }
    for (index, task) in tasks.iter().enumerate() {
        if table.length == 0 || !table.length.is_multiple_of(task.period) {
            return Err(TableError::BadLength(index));
        }
        let own = Served::new(table, index, turns);
        // Jobs are served in order. What a job has not got by its deadline is missing; beyond one table nothing new
        // happens, because a job that meets its deadline within its period leaves nothing over.
        if task.deadline > task.period {
            return Err(TaskError::ArbitraryDeadline { task: index }.into());
        }
        for job in 0..table.length / task.period {
            let arrival = offsets[index] + job * task.period;
            let deadline = arrival + task.deadline;
            let got = own
                .pieces(arrival, deadline)
                .map(|(_, length)| length)
                .sum::<Time>();
            if got < task.cost {
                return Err(TableError::Short {
                    task: index,
                    job,
                    got,
                    cost: task.cost,
                    deadline,
                });
            }
        }
    }
    Ok(())
}

/// Longest response times of the tasks under a table that [`check`] accepts.
pub fn response_times(table: &Table, tasks: &[Task]) -> Vec<Time> {
    response_times_at(table, tasks, &[], &Turns::default())
}

/// The same for tasks that are first released at `offsets`, in slots that lose something to decisions; offsets that are missing are 0.
pub fn response_times_at(
    table: &Table,
    tasks: &[Task],
    offsets: &[Time],
    turns: &Turns,
) -> Vec<Time> {
    let of = |(index, task): (usize, &Task)| {
        let jobs = table.length / task.period.max(1);
        let own = Served::new(table, index, turns);
        let offset = offsets
            .get(index)
            .map_or(0, |offset| offset % task.period.max(1));
        let finish = |job: u64| {
            let arrival = offset + job * task.period;
            let mut left = task.cost;
            for (start, got) in own.pieces(arrival, arrival + task.period) {
                if got >= left && got > 0 {
                    return start + left - arrival;
                }
                left -= got;
            }
            task.period
        };
        (0..jobs).map(finish).max().unwrap_or(0)
    };
    tasks.iter().enumerate().map(of).collect()
}

/// The slots of one task, by start.
struct Served {
    /// Start, what a turn that begins with it loses, and end.
    slots: Vec<(Time, Time, Time)>,
    later: Time,
    length: Time,
}

impl Served {
    fn new(table: &Table, task: usize, turns: &Turns) -> Self {
        let all = table.slots.iter().enumerate();
        let own = all.filter(|(_, slot)| slot.task == task);
        let lost = |index: usize| turns.first.get(index).copied().unwrap_or(0);
        Self {
            slots: own
                .map(|(index, slot)| (slot.start, lost(index), slot.start + slot.length))
                .collect(),
            later: turns.later,
            length: table.length,
        }
    }

    /// The time that a job arriving at `from` (before the end of the table) has until `until` (within the next repetition), as starts and
    /// lengths.
    fn pieces(&self, from: Time, until: Time) -> impl Iterator<Item = (Time, Time)> + '_ {
        let first = self.slots.partition_point(|slot| slot.2 <= from);
        let here = self.slots[first..].iter().map(|slot| (0, slot));
        let again = self.slots.iter().map(|slot| (self.length, slot));
        let turn = move |(shift, slot): (Time, &(Time, Time, Time))| {
            let start = slot.0 + shift;
            let begin = if start < from {
                from + self.later
            } else {
                start + slot.1
            };
            (start.max(from), begin, (slot.2 + shift).min(until))
        };
        here.chain(again)
            .map(turn)
            .take_while(|piece| piece.0 < piece.2)
            .filter(|piece| piece.1 < piece.2)
            .map(|(_, begin, end)| (begin, end - begin))
    }
}

fn refuse_lateness(tasks: &[Task]) -> Result<(), TaskError> {
    match tasks.iter().position(|t| t.jitter > 0 || t.blocking > 0) {
        Some(task) => Err(TaskError::NotCovered {
            task,
            what: "jitter or blocking",
        }),
        None => Ok(()),
    }
}

/// Least common multiple of all periods.
fn hyperperiod(tasks: &[Task]) -> Result<Time, TableError> {
    let length =
        common_multiple(tasks.iter().map(|task| task.period)).ok_or(TableError::TooLong)?;
    let jobs = tasks
        .iter()
        .try_fold(0u64, |sum, t| sum.checked_add(length / t.period));
    match jobs {
        Some(jobs) if jobs <= JOBS_MAX && length <= LENGTH_MAX => Ok(length),
        _ => Err(TableError::TooLong),
    }
}

/// Frame lengths for a table of frames, each job of at most a frame: every frame holds the longest cost, divides the
/// hyperperiod, and leaves a whole frame between every arrival and deadline: `2 f - gcd(f, T) <= D`.
///
/// # Errors
/// [`TableError`] if the input is out of range.
pub fn frame_lengths(tasks: &[Task]) -> Result<Vec<Time>, TableError> {
    validate(tasks)?;
    let length = hyperperiod(tasks)?;
    let longest = tasks.iter().map(|t| t.cost).max().unwrap_or(1);
    let most = tasks.iter().map(|t| t.deadline).min().unwrap_or(1);
    let fits = |f: Time| {
        tasks
            .iter()
            .all(|t| 2 * f - common_divisor(f, t.period) <= t.deadline)
    };
    let mut all = Vec::new();
    let mut divisor = 1;
    while divisor * divisor <= length && divisor <= 1 << 26 {
        if length.is_multiple_of(divisor) {
            all.extend(
                [divisor, length / divisor]
                    .into_iter()
                    .filter(|&f| f >= longest && f <= most && fits(f)),
            );
        }
        divisor += 1;
    }
    all.sort_unstable();
    all.dedup();
    Ok(all)
}

#[cfg(test)]
mod tests {
    use super::super::{edf, periodic};
    use super::*;
    use proptest::prelude::*;

    /// (1, 4), (2, 8) and (1, 8, deadline 4), by hand: ties go to the task that is listed first.
    #[test]
    fn by_hand() {
        let tasks = [Task::new(1, 4), Task::new(2, 8), Task::constrained(1, 8, 4)];
        let table = build(&tasks).unwrap();
        let slots =
            [(0, 1, 0), (1, 1, 2), (2, 2, 1), (4, 1, 0)].map(|(start, length, task)| Slot {
                start,
                length,
                task,
            });
        assert_eq!(
            table,
            Table {
                length: 8,
                slots: slots.to_vec()
            }
        );
        check(&table, &tasks).unwrap();
        assert_eq!(response_times(&table, &tasks), [1, 4, 2]);
    }

    #[test]
    fn names_what_is_wrong() {
        let tasks = [Task::new(2, 4), Task::constrained(3, 8, 4)];
        assert_eq!(
            build(&tasks),
            Err(TableError::Impossible {
                task: 1,
                job: 0,
                deadline: 4
            })
        );
        let tasks = [Task::new(2, 4)];
        let slot = |start, length| Slot {
            start,
            length,
            task: 0,
        };
        let check = |length, slots: &[Slot]| {
            check(
                &Table {
                    length,
                    slots: slots.to_vec(),
                },
                &tasks,
            )
        };
        assert_eq!(check(6, &[slot(0, 2)]), Err(TableError::BadLength(0)));
        assert_eq!(
            check(4, &[slot(0, 1), slot(0, 1)]),
            Err(TableError::BadSlot(1))
        );
        assert_eq!(check(4, &[slot(3, 2)]), Err(TableError::BadSlot(0)));
        assert_eq!(
            check(8, &[slot(0, 2), slot(7, 1)]),
            Err(TableError::Short {
                task: 0,
                job: 1,
                got: 1,
                cost: 2,
                deadline: 8
            })
        );
        assert!(
            build(&[
                Task::new(1, 999_999_937),
                Task::new(1, 999_999_929),
                Task::new(1, 2)
            ])
            .is_err()
        );
    }

    /// Baker and Shaw's conditions by hand: costs 1, periods 4, 5 and 20 with deadlines as periods: frames of 2 (4 - 2 <= 4,
    /// 4 - 1 <= 5), not of 4 (8 - 1 > 5).
    #[test]
    fn frames_by_hand() {
        let tasks = [Task::new(1, 4), Task::new(1, 5), Task::new(2, 20)];
        assert_eq!(frame_lengths(&tasks).unwrap(), [2]);
    }

    /// By hand: two tasks of cost 2, period 4 and deadline 2 fit only if they arrive apart; the second's slot lies across the end.
    #[test]
    fn offsets_by_hand() {
        let tasks = [Task::constrained(2, 4, 2), Task::constrained(2, 4, 2)];
        assert!(build(&tasks).is_err());
        let table = build_at(&tasks, &[1, 7]).unwrap();
        let slot = |start, length, task| Slot {
            start,
            length,
            task,
        };
        assert_eq!(
            (table.length, table.slots.clone()),
            (4, vec![slot(0, 1, 1), slot(1, 2, 0), slot(3, 1, 1)])
        );
        check_at(&table, &tasks, &[1, 7], &Turns::default()).unwrap();
        assert!(check_at(&table, &tasks, &[2, 7], &Turns::default()).is_err());
        assert_eq!(
            response_times_at(&table, &tasks, &[1, 7], &Turns::default()),
            [2, 2]
        );
        assert!(build_at(&tasks, &[1]).is_err());
        // 13 of 12: offsets and late deadlines hide it for three hyperperiods.
        let over = [
            Task::constrained(5, 12, 11),
            Task::constrained(1, 6, 5),
            Task::constrained(6, 12, 8),
        ];
        assert!(matches!(
            build_at(&over, &[13, 14, 9]),
            Err(TableError::Impossible { .. })
        ));
    }

    proptest! {
        /// With offsets a table is found whenever the schedule itself is in time, and it gives the same response times or better
        /// ones than deadlines ask.
        #[test]
        fn offsets_agree_with_the_schedule(parts in prop::collection::vec(
            (1u64..7, prop::sample::select(vec![4u64, 5, 6, 8, 10, 12]), 1u64..20, 0u64..30), 1..5)) {
            let tasks: Vec<_> = parts.iter().map(|&(c, t, d, _)| Task::constrained(c, t, d.min(t))).collect();
            let offsets: Vec<_> = parts.iter().map(|p| p.3).collect();
            let exact = periodic::response_times(&tasks, &offsets, periodic::Order::EarliestDeadline).unwrap().unwrap();
            let good = exact.iter().zip(&tasks).all(|(r, t)| r.is_some_and(|r| r <= t.deadline));
            match build_at(&tasks, &offsets) {
                Ok(table) => {
                    prop_assert!(good);
                    check_at(&table, &tasks, &offsets, &Turns::default()).unwrap();
                    for (r, t) in response_times_at(&table, &tasks, &offsets, &Turns::default()).iter().zip(&tasks) {
                        prop_assert!(*r <= t.deadline && *r >= t.cost);
                    }
                }
                Err(_) => prop_assert!(!good),
            }
        }

        /// There is a table exactly if processor demand fits (synchronous periodic tasks are the worst sporadic ones).
        #[test]
        fn found_whenever_there_is_one(parts in prop::collection::vec(
            (1u64..7, prop::sample::select(vec![4u64, 5, 6, 8, 10, 12, 15, 20]), 1u64..20), 1..6)) {
            let tasks: Vec<_> = parts.iter().map(|&(c, t, d)| Task::constrained(c, t, d.min(t))).collect();
            match build(&tasks) {
                Ok(table) => {
                    prop_assert!(edf::schedulable(&tasks).unwrap());
                    check(&table, &tasks).unwrap();
                    for (r, t) in response_times(&table, &tasks).iter().zip(&tasks) {
                        prop_assert!(*r <= t.deadline && *r >= t.cost);
                    }
                }
                Err(_) => prop_assert!(!edf::schedulable(&tasks).unwrap()),
            }
        }
    }
}
