//! Schedules for pictures: what runs when if everything arrives at once.
//!
//! Why it exists: a bound is a number; the busy period behind it shows its composition. The schedules come from [`Simulation`], which
//! shares no formula with the tests, so a picture that contradicts a bound would be a finding. What it deliberately does not know: how
//! pictures are drawn. It names what no simulation here can follow.

use bulkhead_model::tasks::{Policy, Table, TaskSystem};

use super::evaluate::{members, order, preempting};
use super::prepare::{self, nanoseconds};
use super::{Nanoseconds, PlanError};
use crate::schedulability::Task;
use crate::schedulability::simulation::{Policy as Simulated, Segment, Simulation};

mod levels;
mod phases;
mod slices;
mod stage;

/// Maximum tasks of one picture.
const TASKS_MAX: usize = 60;
/// Maximum jobs of one picture: this many per task, but at least [`JOBS`]; more would be too narrow to see.
const JOBS_EACH: u64 = 4;
const JOBS: u64 = 400;
/// Jobs of the task with the shortest period that fit side by side, unless a first job or the busy period takes longer.
const JOBS_ROW: u64 = 24;
/// Maximum steps of the iteration towards the end of a busy period.
const STEPS: usize = 1000;

/// A part of a job.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Part {
    /// It has the processor.
    Runs,
    /// Its code and data are loaded into the local memory.
    Loads,
    /// Its data leaves the local memory.
    Unloads,
}

/// A part of the schedule.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Run {
    /// Index in [`CriticalInstant::rows`].
    pub row: usize,
    /// Number of the processor.
    pub processor: u32,
    /// From the beginning of the picture.
    pub start: Nanoseconds,
    /// The first moment after it.
    pub end: Nanoseconds,
    /// The part of the job.
    pub part: Part,
    /// The deadline of its job is over.
    pub late: bool,
}

/// The picture's data about a task.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Row {
    /// Index of the task; `None`: releases, interrupts and the first stall of a regulated processor, which precede every task.
    pub task: Option<usize>,
    /// When its jobs are released.
    pub releases: Vec<Nanoseconds>,
    /// When they must be done.
    pub deadlines: Vec<Nanoseconds>,
    /// The longest response of a job released in the picture; `None`: none completed, or nothing was simulated.
    pub response: Option<Nanoseconds>,
}

/// A schedule.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CriticalInstant {
    /// The most urgent first.
    pub rows: Vec<Row>,
    /// Which job runs when, until [`Self::length`].
    pub runs: Vec<Run>,
    /// Length of the picture.
    pub length: Nanoseconds,
    /// The picture is incomplete: the first busy period or a first deadline extends beyond its end.
    pub cut: bool,
    /// Notes for the reader.
    pub notes: Vec<&'static str>,
}

/// The schedule of a processor, or of all of them together.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Group {
    /// The processor; `None`: all together.
    pub processor: Option<u32>,
    /// Its tasks.
    pub tasks: Vec<usize>,
    /// The schedule, or why there is none.
    pub schedule: Result<CriticalInstant, String>,
}

/// The schedules of a complete system, by processor.
///
/// # Errors
/// [`PlanError`] if a task is beyond what the tests cover.
pub fn instants(system: &TaskSystem) -> Result<Vec<Group>, PlanError> {
    let together = system.policy.is_global() || system.policy == Policy::Mc2;
    let groups: Vec<(Option<u32>, Vec<usize>)> = if together {
        vec![(None, (0..system.tasks.len()).collect())]
    } else {
        let by_processor = members(system).into_iter();
        by_processor
            .map(|(core, tasks)| (Some(core), tasks))
            .collect()
    };
    let group = |(processor, tasks): (Option<u32>, Vec<usize>)| {
        Ok(Group {
            schedule: schedule(system, processor, &tasks)?,
            processor,
            tasks,
        })
    };
    groups.into_iter().map(group).collect()
}

fn schedule(
    system: &TaskSystem,
    processor: Option<u32>,
    tasks: &[usize],
) -> Result<Result<CriticalInstant, String>, PlanError> {
    if tasks.len() > TASKS_MAX {
        let count = tasks.len();
        return Ok(Err(format!("{count} tasks are too many for a picture")));
    }
    match (system.policy, processor) {
        (Policy::Table, Some(core)) => return Ok(table(system, core, tasks)),
        (Policy::Mc2, _) => return Ok(levels::picture(system, tasks)),
        (Policy::ThreePhase, Some(core)) => return Ok(phases::picture(system, core, tasks)),
        (Policy::TimeSlice, Some(core)) => return Ok(slices::picture(system, core, tasks)),
        _ => {}
    }
    simulated(system, processor, tasks)
}

/// Rows by importance under fixed priorities, in file order under EDF, after the handlers of the processor.
fn simulated(
    system: &TaskSystem,
    processor: Option<u32>,
    tasks: &[usize],
) -> Result<Result<CriticalInstant, String>, PlanError> {
    let wrong = |error: &crate::schedulability::TaskError| PlanError::of(error, system, tasks);
    let edf = matches!(
        system.policy,
        Policy::Edf | Policy::GlobalEdf | Policy::GlobalEdfSoft
    );
    let order: Vec<usize> = if edf {
        (0..tasks.len()).collect()
    } else {
        order(system, tasks)
    };
    let sorted: Vec<usize> = order.iter().map(|&position| tasks[position]).collect();
    let costs = |members: &[usize]| prepare::tasks(system, members).map_err(|error| wrong(&error));
    let Some(own) = costs(&sorted)? else {
        let lacks = |&&index: &&usize| matches!(costs(&[index]), Ok(None));
        let name = sorted
            .iter()
            .find(lacks)
            .map_or("a task", |&index| system.tasks[index].name.as_str());
        return Ok(Err(format!("`{name}` has no bounded cost")));
    };
    let mut all = match processor {
        Some(core) => prepare::handlers(system, core, tasks).map_err(|error| wrong(&error))?,
        None => Vec::new(),
    };
    for handler in all.iter_mut().filter(|_| edf) {
        // Before every task that is in time.
        handler.deadline = 0;
    }
    let handlers = all.len();
    all.extend(own);
    let mut first = vec![0; handlers];
    let offsets = processor.and_then(|core| prepare::offsets(system, core, tasks));
    let offset = |index: usize| match (&offsets, tasks.iter().position(|&t| t == index)) {
        (Some(offsets), Some(position)) => offsets[position],
        _ => 0,
    };
    first.extend(sorted.iter().map(|&index| offset(index)));
    let policy = match system.policy {
        _ if edf => Simulated::EarliestDeadline,
        Policy::NonPreemptive | Policy::OneShot => {
            Simulated::Threshold((0..all.len()).map(|rank| rank.min(handlers)).collect())
        }
        Policy::Threshold => {
            let own =
                (0..sorted.len()).map(|rank| handlers + preempting(system, tasks, &order, rank));
            Simulated::Threshold((0..handlers).chain(own).collect())
        }
        _ => Simulated::FixedPriority,
    };
    let processors = processor.map_or(system.processors, |_| 1);
    let busy = busy_period(&all, processors);
    let due = all.iter().zip(&first).skip(handlers);
    let due = due.map(|(task, first)| (first + task.deadline).saturating_sub(task.jitter));
    let due = due.max().unwrap_or(1).max(1);
    // If the processor never becomes idle, what is late begins after the last first deadline.
    let wanted = busy.map_or(due.saturating_add(due / 4), |busy| busy.max(due));
    let most = JOBS.max(JOBS_EACH * all.len() as u64);
    // The busy period takes precedence over late deadlines.
    let mut length = match busy {
        Some(busy) if jobs(&all, wanted) > most => busy.max(1),
        Some(busy) => wanted.min(busy.max(readable(&all[handlers..]))),
        None => wanted,
    };
    while length > 1 && jobs(&all, length) > most {
        length = length.div_ceil(2);
    }
    if jobs(&all, length) > most {
        let why = "too many releases, each late by many periods, may come at once";
        return Ok(Err(why.to_owned()));
    }
    let simulation = Simulation::new(policy, processors as usize);
    let (segments, outcome) = simulation.schedule(&all, &first, length);
    let mut rows: Vec<Row> = Vec::new();
    let kernel = usize::from(handlers > 0);
    if kernel > 0 {
        rows.push(Row::default());
    }
    for (rank, &index) in sorted.iter().enumerate() {
        let (task, first) = (&all[handlers + rank], first[handlers + rank]);
        let arrivals = (0..).map(|k| first + k * task.period);
        let arrivals: Vec<u64> = arrivals
            .take_while(|arrival| arrival.saturating_sub(task.jitter) < length)
            .collect();
        let released = arrivals.iter().map(|a| a.saturating_sub(task.jitter));
        let due = arrivals
            .iter()
            .filter_map(|a| (a + task.deadline).checked_sub(task.jitter));
        rows.push(Row {
            task: Some(index),
            releases: released.collect(),
            deadlines: due.filter(|due| *due <= length).collect(),
            response: Some(outcome.responses[handlers + rank]).filter(|response| *response > 0),
        });
    }
    let core = |number: usize| processor.unwrap_or(u32::try_from(number).unwrap_or(u32::MAX));
    let mut runs = Vec::new();
    let mut executed = vec![0; all.len()];
    for segment in &segments {
        let index = segment.task;
        let row = index.checked_sub(handlers).map_or(0, |rank| rank + kernel);
        let due = |work: u64| {
            let job = work / all[index].cost.max(1);
            let arrival = first[index].saturating_add(job.saturating_mul(all[index].period));
            let due = arrival.saturating_add(all[index].deadline);
            due.saturating_sub(all[index].jitter)
        };
        for (start, end, late) in pieces(segment, executed[index], all[index].cost, due) {
            if start < length {
                runs.push(Run {
                    row,
                    processor: core(segment.processor),
                    start,
                    end: end.min(length),
                    part: Part::Runs,
                    late: late && index >= handlers,
                });
            }
        }
        executed[index] += segment.end - segment.start;
    }
    Ok(Ok(CriticalInstant {
        rows,
        runs,
        length,
        cut: length < wanted || busy.is_none(),
        notes: notes(system, processor, tasks, offsets.is_some()),
    }))
}

/// The jobs of a segment, each split into its parts in time and late: begin, end, and whether it is late. The work that the task did
/// before, and the due time of the job that does this work, determine which jobs these are.
fn pieces(
    segment: &Segment,
    mut executed: u64,
    cost: u64,
    due: impl Fn(u64) -> u64,
) -> Vec<(u64, u64, bool)> {
    let mut all: Vec<(u64, u64, bool)> = Vec::new();
    let mut start = segment.start;
    while start < segment.end {
        let left = cost.max(1) - executed % cost.max(1);
        let due = due(executed);
        let mut end = segment.end.min(start.saturating_add(left));
        if start < due && due < end {
            end = due;
        }
        all.push((start, end, start >= due));
        executed += end - start;
        start = end;
    }
    all
}

/// The end of the first busy period, if the iteration finds one; several processors are treated as one that is correspondingly faster.
fn busy_period(all: &[Task], processors: u32) -> Option<Nanoseconds> {
    let demand = |length: u64| -> u64 {
        let of = |task: &Task| {
            let jobs = length
                .saturating_add(task.jitter)
                .div_ceil(task.period.max(1));
            jobs.max(1).saturating_mul(task.cost)
        };
        let sum = all.iter().map(of).fold(0, u64::saturating_add);
        sum.div_ceil(u64::from(processors.max(1)))
    };
    let mut busy = 1;
    for _ in 0..STEPS {
        let next = demand(busy);
        if next <= busy {
            return Some(busy);
        }
        busy = next;
    }
    None
}

/// Maximum length of a picture in which the jobs of every task can be distinguished.
fn readable(tasks: &[Task]) -> Nanoseconds {
    let shortest = tasks.iter().map(|task| task.period).min();
    shortest.unwrap_or(u64::MAX).saturating_mul(JOBS_ROW).max(1)
}

/// Jobs that are released before `length`.
fn jobs(all: &[Task], length: u64) -> u64 {
    let of = |task: &Task| {
        length
            .saturating_add(task.jitter)
            .div_ceil(task.period.max(1))
    };
    all.iter().map(of).fold(0, u64::saturating_add)
}

/// Notes on what is missing from the picture of these tasks, or where it need not be the worst case.
fn notes(
    system: &TaskSystem,
    processor: Option<u32>,
    tasks: &[usize],
    offsets: bool,
) -> Vec<&'static str> {
    let mut all = Vec::new();
    let any = |of: fn(&bulkhead_model::tasks::Task) -> bool| {
        tasks.iter().any(|&index| of(&system.tasks[index]))
    };
    if offsets && any(|task| task.offset.0 > 0) {
        all.push(
            "The picture begins with the system; jobs arrive with the offsets of the description.",
        );
    }
    if processor.is_none() && system.processors > 1 {
        all.push(
            "With several processors, jobs that all come at once need not be the worst case, so a response may be longer than here.",
        );
    }
    if system.policy == Policy::Edf && !offsets {
        all.push(
            "Under EDF the longest response of a task may belong to other releases; all at once is the worst case for deadlines.",
        );
    }
    if matches!(
        system.policy,
        Policy::NonPreemptive | Policy::OneShot | Policy::Threshold
    ) {
        all.push(
            "A less important job that has just begun may delay the first jobs; the bounds include this, the picture does not.",
        );
    }
    if any(|task| !task.sections.is_empty() || task.blocking.0 > 0) {
        all.push("Bounds count blocking by less important tasks; the picture does not have it.");
    }
    all
}

/// The first round of a table, or its beginning. Jobs that need not follow the table arrive just after their slots have begun, and the
/// second round shows when they are served.
fn table(system: &TaskSystem, core: u32, tasks: &[usize]) -> Result<CriticalInstant, String> {
    let table = system.tables.iter().find(|table| table.core == core);
    let Some(table) = table.filter(|table| table.length.0 > 0) else {
        return Err("there is no table".to_owned());
    };
    let all: Vec<Task> = tasks
        .iter()
        .map(|&index| {
            let task = &system.tasks[index];
            Task::constrained(
                1,
                nanoseconds(task.period).max(1),
                nanoseconds(task.deadline),
            )
        })
        .collect();
    let turns: u64 = if system.periodic { 1 } else { 2 };
    let whole = nanoseconds(table.length).saturating_mul(turns);
    let most = JOBS.max(JOBS_EACH * all.len() as u64);
    let mut length = whole;
    while length > 1 && jobs(&all, length) > most {
        length = length.div_ceil(2);
    }
    let row = |(task, &index): (&Task, &usize)| {
        let first = match system.periodic {
            true => nanoseconds(system.tasks[index].offset),
            false => just_missed(table, index),
        };
        let arrivals = (0..).map(|k| first + k * task.period);
        let releases: Vec<u64> = arrivals.take_while(|at| *at < length).collect();
        let due = releases.iter().map(|at| at + task.deadline);
        Row {
            task: Some(index),
            deadlines: due.filter(|due| *due <= length).collect(),
            releases,
            response: None,
        }
    };
    let all_turns = (0..turns).flat_map(|turn| table.slots.iter().map(move |slot| (turn, slot)));
    let slots = all_turns.filter_map(|(turn, slot)| {
        let start = turn * nanoseconds(table.length) + nanoseconds(slot.start);
        Some(Run {
            row: tasks.iter().position(|&index| index == slot.task)?,
            processor: core,
            start,
            end: start.saturating_add(nanoseconds(slot.length)).min(length),
            part: Part::Runs,
            late: false,
        })
    });
    Ok(CriticalInstant {
        rows: all.iter().zip(tasks).map(row).collect(),
        runs: slots.filter(|run| run.start < length).collect(),
        length,
        cut: length < whole,
        notes: match system.periodic {
            true => vec![SLOTS],
            false => vec![SLOTS, MISSED],
        },
    })
}

const SLOTS: &str =
    "The picture shows the slots of the table, whether or not a job uses them to their end.";
const MISSED: &str = "Jobs need not come with the table. Here each task's first job comes just after the slot that is followed by the longest time without a \
     slot of its own, and the others come a period after each other; a job that waits for its slot may be served in the second turn of the table.";

/// The start of the slot after which a task waits longest for its next one.
fn just_missed(table: &Table, task: usize) -> u64 {
    let own = table.slots.iter().filter(|slot| slot.task == task);
    let starts: Vec<u64> = own.map(|slot| nanoseconds(slot.start)).collect();
    let next = |(number, start): (usize, &u64)| match starts.get(number + 1) {
        Some(next) => next - start,
        None => starts[0] + nanoseconds(table.length) - start,
    };
    let gaps = starts.iter().enumerate().map(|one| (next(one), *one.1));
    let longest = gaps.max_by_key(|gap| (gap.0, std::cmp::Reverse(gap.1)));
    longest.map_or(0, |gap| gap.1)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plan::{Kind, plan};
    use bulkhead_model::{LoadOptions, catalog, load_tasks, load_tasks_text};

    fn drawn(inside: &str) -> (TaskSystem, Vec<Group>) {
        let text = format!("<task-system name=\"s\">{inside}</task-system>");
        let system = load_tasks_text("case", &text, &LoadOptions::default()).expect("valid");
        let system = plan(&system).expect("covered").system;
        let groups = instants(&system).expect("covered");
        (system, groups)
    }

    /// (2, 5) and (4, 9): 0-2 first, 2-5 second, 5-7 first, 7-8 second, and the first deadline of the second is at 9.
    #[test]
    fn the_busy_period_by_hand() {
        let (system, groups) = drawn(
            "<processors count=\"1\" policy=\"fixed-priority\"/>\
             <task name=\"a\" period=\"5us\" cost=\"2us\"/><task name=\"b\" period=\"9us\" cost=\"4us\"/>",
        );
        let picture = groups[0].schedule.as_ref().expect("a picture");
        let runs: Vec<_> = picture
            .runs
            .iter()
            .map(|r| (r.row, r.start, r.end))
            .collect();
        assert_eq!(
            runs,
            [
                (0, 0, 2000),
                (1, 2000, 5000),
                (0, 5000, 7000),
                (1, 7000, 8000)
            ]
        );
        assert_eq!((picture.length, picture.cut), (9000, false));
        assert_eq!(picture.rows[0].releases, [0, 5000]);
        assert_eq!(picture.rows[0].deadlines, [5000]);
        assert_eq!(picture.rows[1].response, Some(8000));
        assert_eq!(system.tasks[picture.rows[1].task.unwrap()].name, "b");
    }

    /// Tasks that demand more than the capacity have an endless busy period.
    #[test]
    fn endless_busy_periods_are_cut() {
        let (_, groups) = drawn(
            "<processors count=\"1\" policy=\"edf\"/>\
             <task name=\"a\" period=\"5us\" cost=\"4us\"/><task name=\"b\" period=\"90ms\" cost=\"40ms\"/>",
        );
        let picture = groups[0].schedule.as_ref().expect("a picture");
        assert!(
            picture.cut && picture.runs.len() < 2000,
            "{}",
            picture.runs.len()
        );
        assert!(picture.runs.iter().all(|run| run.end <= picture.length));
    }

    /// (4, 10, D=3) alone is late from 3 to 4, and so is its second job from 13 to 14.
    #[test]
    fn late_parts_are_told_apart() {
        let (_, groups) = drawn(
            "<processors count=\"1\" policy=\"fixed-priority\"/>\
             <task name=\"a\" period=\"10us\" deadline=\"3us\" cost=\"4us\"/><task name=\"b\" period=\"30us\" cost=\"9us\"/>",
        );
        let picture = groups[0].schedule.as_ref().expect("a picture");
        let late: Vec<_> = picture.runs.iter().filter(|run| run.late).collect();
        let late: Vec<_> = late.iter().map(|r| (r.row, r.start, r.end)).collect();
        assert_eq!(
            late,
            [(0, 3000, 4000), (0, 13000, 14000), (0, 23000, 24000)]
        );
    }

    fn runs(picture: &CriticalInstant) -> Vec<(usize, u64, u64)> {
        let runs = picture.runs.iter();
        runs.map(|run| (run.row, run.start, run.end)).collect()
    }

    /// Two tasks of 2 us in slices of 1 us alternate; with decisions of 100 ns, a row precedes theirs.
    #[test]
    fn slices_by_hand() {
        let tasks = "<task name=\"a\" period=\"9us\" cost=\"2us\"/><task name=\"b\" period=\"9us\" cost=\"2us\"/>";
        let policy = "<processors count=\"1\" policy=\"time-slice\" slice=\"1us\"/>";
        let (_, groups) = drawn(&format!("{policy}{tasks}"));
        let picture = groups[0].schedule.as_ref().expect("a picture");
        let turns = [(0, 0, 1), (1, 1, 2), (0, 2, 3), (1, 3, 4)];
        let turns = turns.map(|(row, start, end)| (row, start * 1000, end * 1000));
        assert_eq!(runs(picture)[..4], turns);
        let responses: Vec<_> = picture.rows.iter().map(|row| row.response).collect();
        assert_eq!(responses, [Some(3000), Some(4000)]);
        let overheads = "<overheads schedule=\"100ns\"/>";
        let (_, groups) = drawn(&format!("{policy}{overheads}{tasks}"));
        let picture = groups[0].schedule.as_ref().expect("a picture");
        assert_eq!(
            runs(picture)[..3],
            [(0, 0, 100), (1, 100, 1100), (0, 1100, 1200)]
        );
    }

    /// Alternating slots of 10 us with 2 us of each for programming; the processor loads 16 us in two of its slots, runs, and unloads.
    #[test]
    fn phases_by_hand() {
        let (_, groups) = drawn(
            "<processors count=\"2\" policy=\"three-phase\"/><tdma overhead=\"2us\"/>\
             <share core=\"0\" slot=\"10us\"/><share core=\"1\" slot=\"10us\"/>\
             <task name=\"a\" period=\"300us\" cost=\"5us\" load=\"16us\" unload=\"8us\" core=\"0\"/>\
             <task name=\"b\" period=\"300us\" cost=\"5us\" load=\"8us\" unload=\"8us\" core=\"1\"/>",
        );
        let picture = groups[0].schedule.as_ref().expect("a picture");
        let parts = picture.runs.iter().take(4);
        let parts: Vec<_> = parts
            .map(|r| (r.part, r.start / 1000, r.end / 1000))
            .collect();
        let expected = [
            (Part::Loads, 2, 10),
            (Part::Loads, 22, 30),
            (Part::Runs, 30, 35),
            (Part::Unloads, 42, 50),
        ];
        assert_eq!(parts, expected);
        assert_eq!(picture.rows[0].response, Some(50_000));
        let other = groups[1].schedule.as_ref().expect("a picture");
        assert_eq!(runs(other)[0], (0, 12_000, 20_000));
    }

    /// Level A in its slot, B below it, C on what both processors have left.
    #[test]
    fn levels_by_hand() {
        let (system, groups) = drawn(
            "<processors count=\"2\" policy=\"mc2\"/>\
             <task name=\"a\" period=\"10us\" cost=\"2us\" criticality=\"A\" core=\"0\"/>\
             <task name=\"b\" period=\"10us\" cost=\"3us\" criticality=\"B\" core=\"0\"/>\
             <task name=\"c\" period=\"20us\" cost=\"4us\" criticality=\"C\"/>\
             <task name=\"d\" period=\"30us\" cost=\"6us\" criticality=\"C\"/>",
        );
        let picture = groups[0].schedule.as_ref().expect("a picture");
        let table = &system.tables[0];
        let slot = nanoseconds(table.slots[0].start);
        let of = |row: usize| picture.runs.iter().filter(move |run| run.row == row);
        assert_eq!(of(0).next().map(|run| run.start), Some(slot));
        // No two run at once, and C runs only where A and B do not.
        for (number, one) in picture.runs.iter().enumerate() {
            let mut others = picture.runs[..number].iter();
            let clash = others
                .find(|o| o.processor == one.processor && o.start < one.end && one.start < o.end);
            assert_eq!(clash, None, "{one:?}");
        }
        let first: u64 = of(2)
            .take_while(|run| run.start < 20_000)
            .map(|r| r.end - r.start)
            .sum();
        assert_eq!(first, 4000);
        assert_eq!(picture.rows[2].response, Some(4000));
        assert!(picture.rows.iter().all(|row| row.response.is_some()));
    }

    /// Costs 2 and 3, periods 4 and 6: the first task has [0, 2), [5, 7), [8, 10), the second one [2, 5), [7, 8), [10, 12). After their
    /// first slots both wait longest.
    #[test]
    fn jobs_that_need_not_come_with_a_table_miss_it() {
        let releases = |arrivals: &str| {
            let (_, groups) = drawn(&format!(
                "<processors count=\"1\" policy=\"table\" {arrivals}/>\
                 <task name=\"a\" period=\"4us\" cost=\"2us\"/><task name=\"b\" period=\"6us\" cost=\"3us\"/>"
            ));
            let picture = groups[0].schedule.as_ref().expect("a picture");
            let rows = picture.rows.iter().map(|row| row.releases.clone());
            (picture.length, rows.collect::<Vec<_>>(), picture.runs.len())
        };
        let (length, rows, runs) = releases("");
        assert_eq!((length, runs), (24_000, 12));
        assert_eq!(rows[0], [0, 4000, 8000, 12_000, 16_000, 20_000]);
        assert_eq!(rows[1], [2000, 8000, 14_000, 20_000]);
        let (length, rows, runs) = releases("arrivals=\"periodic\"");
        assert_eq!((length, runs), (12_000, 6));
        assert_eq!(rows[1], [0, 6000]);
    }

    /// A response in a picture belongs to a real schedule, so it is no longer than the bound.
    #[test]
    fn no_picture_of_the_catalog_contradicts_a_bound() {
        let mut compared = 0;
        let names = catalog::TASKS.iter().map(|(name, _)| *name);
        for name in names {
            let plan = plan(&load_tasks(name, &LoadOptions::default()).expect("valid"));
            let plan = plan.expect("covered");
            for group in instants(&plan.system).expect("covered") {
                let Ok(picture) = group.schedule else {
                    continue;
                };
                for row in picture.rows.iter().filter(|row| row.response.is_some()) {
                    let Some(task) = row.task else { continue };
                    let subject = &plan.system.tasks[task].name;
                    let bound = plan
                        .constraints
                        .iter()
                        .find(|c| c.kind == Kind::Response && c.subject == *subject);
                    if let Some(bound) = bound.and_then(|c| c.bound) {
                        assert!(row.response <= Some(bound), "{name}: {subject}");
                        compared += 1;
                    }
                }
            }
        }
        assert!(compared >= 20, "{compared}");
    }
}
