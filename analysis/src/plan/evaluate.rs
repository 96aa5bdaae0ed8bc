//! The bounds of a complete system: one test for each policy.
//!
//! Why it exists: each policy has its own test with its own notion of order, levels and processors. What it deliberately does not know: how
//! a system was completed. See the parent module.

use std::collections::{BTreeMap, BTreeSet};

use bulkhead_model::tasks::{MutexOrder, Policy, Section, TaskSystem};

use super::prepare::{self, nanoseconds};
use super::tables::{build_table, first_arrivals, table_processor};
use super::{Constraint, Kind, PlanError, Unit, channels, levels, resources, slices, tardy};
use crate::exact::{Exact, ceiling, integer};
use crate::schedulability::global_edf::Nearest;
use crate::schedulability::sporadic_table::Paid;
use crate::schedulability::task::LIMIT;
use crate::schedulability::three_phase::{PhaseError, PhasedTask, Tdma};
use crate::schedulability::utilisation::{compare, compare_with};
use crate::schedulability::{
    Task, TaskError, edf, edf_response, fixed_priority, global_edf, global_fixed_priority,
    harmonic, periodic, three_phase, threshold,
};

/// The results for a task.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Known {
    /// Longest time from arrival to completion.
    pub response: Option<u64>,
    /// The deadline is certainly met, even if no response time is known.
    pub met: bool,
}

/// Jobs within busy periods, times tasks, up to which response times under EDF are computed; beyond, only the verdict.
const EDF_WORK: u64 = 200_000;
/// Maximum tasks for which the slowest of the global EDF tests is tried; it compares sums of fractions for each pair of tasks.
const BAK_TASKS: usize = 100;

/// Everything that must hold, in the order useful to a reader: tasks, processors, channels, resources.
pub fn constraints(system: &TaskSystem) -> Result<Vec<Constraint>, PlanError> {
    let mut all = Vec::new();
    let mut responses = vec![None; system.tasks.len()];
    let judged = match system.policy {
        Policy::GlobalFixedPriority | Policy::GlobalEdf => global(system, &mut all)?,
        Policy::GlobalEdfSoft => soft(system, &mut all, &mut responses)?,
        Policy::Mc2 => levels::constraints(system, &mut all, &mut responses)?,
        _ => by_processor(system)?,
    };
    let method = method(system.policy);
    let mut above = None;
    for (index, known) in judged {
        let task = &system.tasks[index];
        // A task in time is done by its deadline, even if no number is known.
        let in_time = known.met.then(|| nanoseconds(task.deadline));
        responses[index] = known.response.or(in_time);
        let mut constraint = Constraint::new(
            Kind::Response,
            &task.name,
            known.response,
            Some(nanoseconds(task.deadline)),
            Unit::Nanoseconds,
            method,
        );
        constraint.judge(constraint.holds() || (known.met && known.response.is_none()));
        constraint.note = note(system, index);
        if known.response.is_none() {
            constraint.note = constraint.note.or_else(|| ended(system, index, above));
            above = above.or(Some(index));
        }
        constraint.explain(task.unbounded.as_ref());
        all.push(constraint);
    }
    // Tasks in file order, regardless of the test's order.
    all.sort_by_key(|c| system.task(&c.subject));
    capacities(system, &mut all)?;
    channels::constraints(system, &responses, &mut all);
    resources::constraints(system, &mut all);
    Ok(all)
}

/// A note for the reader about a task without a bound.
fn note(system: &TaskSystem, index: usize) -> Option<String> {
    let task = &system.tasks[index];
    let ways = prepare::ways(system, index);
    if task.cost_at(task.criticality, ways).is_none() && task.uses_ways() {
        return Some(format!(
            "no cost is known with {ways} ways; it needs {}",
            task.least_ways(task.criticality)
        ));
    }
    None
}

/// Why a test that also bounds late tasks has no bound for this one; `above`: a more important task without a bound.
fn ended(system: &TaskSystem, index: usize, above: Option<usize>) -> Option<String> {
    let name = |task: usize| &system.tasks[task].name;
    let period = system.tasks[index].period;
    let at_period = || format!("more than its period of {period}, at which the test ends");
    match (system.policy, above) {
        (Policy::ThreePhase, _) | (Policy::GlobalFixedPriority, None) => Some(at_period()),
        (Policy::GlobalFixedPriority, Some(above)) => Some(format!(
            "it depends on `{}`, which has no bound",
            name(above)
        )),
        _ => None,
    }
}

/// The test behind a policy's response times.
fn method(policy: Policy) -> &'static str {
    match policy {
        Policy::FixedPriority | Policy::RateMonotonic => {
            "response times (Joseph and Pandya 1986; Audsley et al. 1993; Tindell et al. 1994)"
        }
        Policy::Threshold => "preemption thresholds (Wang and Saksena 1999; Keskin et al. 2010)",
        Policy::NonPreemptive | Policy::OneShot => {
            "non-preemptive response times (George et al. 1996; Davis et al. 2007)"
        }
        Policy::Edf => "processor demand (Zhang and Burns 2009), response times (Spuri 1996)",
        Policy::Table => "time-triggered table",
        Policy::GlobalFixedPriority => "global fixed priority (Guan et al. 2009)",
        Policy::GlobalEdf => "global EDF: GFB, BCL, BAK",
        Policy::GlobalEdfSoft => "tardiness (Devi and Anderson 2008)",
        Policy::Mc2 => "MC2 (Mollison et al. 2010)",
        Policy::ThreePhase => {
            "three phases with TDMA (mpsoc-ecrts19, Equation 1; Wasly and Pellizzoni 2014)"
        }
        Policy::TimeSlice => "round robin in slices, quotas as caps",
    }
}

/// Tasks by processor, in the order of the file.
pub fn members(system: &TaskSystem) -> BTreeMap<u32, Vec<usize>> {
    let mut all: BTreeMap<u32, Vec<usize>> = BTreeMap::new();
    for (index, task) in system.tasks.iter().enumerate() {
        if let Some(core) = task.core {
            all.entry(core).or_default().push(index);
        }
    }
    all
}

fn by_processor(system: &TaskSystem) -> Result<Vec<(usize, Known)>, PlanError> {
    let mut all = Vec::new();
    // If lower processors get the memory mutex first, the wait for them assumes jobs that are in time.
    let mut late = false;
    for (core, members) in members(system) {
        let mut known = processor(system, core, &members)?;
        let phases = members
            .iter()
            .any(|&index| system.tasks[index].memory_phase.0 > 0);
        if system.mutex == Some(MutexOrder::Core) && phases {
            if late {
                known = vec![Known::default(); members.len()];
            }
            late |= !in_time(system, &members, &known);
        }
        all.extend(members.iter().copied().zip(known));
    }
    let placed: BTreeSet<usize> = all.iter().map(|entry| entry.0).collect();
    let unplaced = (0..system.tasks.len()).filter(|index| !placed.contains(index));
    all.extend(unplaced.map(|index| (index, Known::default())));
    // Nothing is required of a task without a cost.
    if system.policy == Policy::TimeSlice {
        all.retain(|(index, _)| system.tasks[*index].criticality_cost().is_some());
    }
    Ok(all)
}

/// A task's own cost, whatever its ways.
pub trait OwnCost {
    /// At its own level, with all ways.
    fn criticality_cost(&self) -> Option<bulkhead_model::units::Time>;
}

impl OwnCost for bulkhead_model::tasks::Task {
    fn criticality_cost(&self) -> Option<bulkhead_model::units::Time> {
        self.cost_at(self.criticality, u32::MAX)
    }
}

/// Response times and verdicts of the tasks `members` alone on processor `core`, in order.
///
/// # Errors
/// [`PlanError`] if a task is beyond what the test covers.
pub fn processor(
    system: &TaskSystem,
    core: u32,
    members: &[usize],
) -> Result<Vec<Known>, PlanError> {
    let wrong = |error: &TaskError| PlanError::of(error, system, members);
    if system.policy == Policy::TimeSlice {
        return slices::processor(system, members).map_err(|error| wrong(&error));
    }
    // Nothing on a processor has a bound if one task has no cost.
    let Some(tasks) = prepared(system, members)? else {
        return Ok(vec![Known::default(); members.len()]);
    };
    crate::schedulability::validate(&tasks).map_err(|error| wrong(&error))?;
    let handlers = handlers(system, core, members)?;
    if let Some(known) = exactly(system, core, members, &tasks).map_err(|error| wrong(&error))? {
        return Ok(known);
    }
    match system.policy {
        Policy::Edf => edf_processor(&tasks, &handlers).map_err(|error| wrong(&error)),
        Policy::Table => {
            let alone = prepare::alone(system, members).map_err(|error| wrong(&error))?;
            let alone = alone.unwrap_or_default();
            let paid = |(task, alone): (&Task, &Task)| Paid {
                cost: task.cost - alone.cost,
                life: task.period.max(task.deadline),
            };
            let paid: Vec<Paid> = tasks.iter().zip(&alone).map(paid).collect();
            table_processor(system, core, members, &tasks, &paid)
        }
        Policy::ThreePhase => phased(system, core, members, &tasks),
        _ => {
            let order = order(system, members);
            fixed(system, members, &tasks, &order, &handlers).map_err(|error| wrong(&error))
        }
    }
}

/// Response times from the schedule itself, if arrivals are periodic, only costs delay tasks, and the schedule repeats soon enough.
fn exactly(
    system: &TaskSystem,
    core: u32,
    members: &[usize],
    tasks: &[Task],
) -> Result<Option<Vec<Known>>, TaskError> {
    let (by, order) = match system.policy {
        Policy::FixedPriority | Policy::RateMonotonic => {
            (periodic::Order::FixedPriority, order(system, members))
        }
        Policy::Edf => (
            periodic::Order::EarliestDeadline,
            (0..members.len()).collect(),
        ),
        _ => return Ok(None),
    };
    let Some(offsets) = prepare::offsets(system, core, members) else {
        return Ok(None);
    };
    // Releases precede all tasks, each at the moment of its job.
    let in_file = prepare::releases(system, members.iter().copied());
    let releases = in_file
        .iter()
        .zip(&offsets)
        .map(|(task, first)| (*task, *first));
    let in_order = order
        .iter()
        .map(|&position| (tasks[position], offsets[position]));
    let (sorted, first): (Vec<Task>, Vec<u64>) = releases.chain(in_order).unzip();
    let Some(responses) = periodic::response_times(&sorted, &first, by)? else {
        return Ok(None);
    };
    let mut known = vec![Known::default(); members.len()];
    for (&position, response) in order.iter().zip(responses.into_iter().skip(in_file.len())) {
        known[position] = Known {
            response,
            met: false,
        };
    }
    Ok(Some(known))
}

/// Positions in `members` by decreasing priority. Tasks without a priority come last, by deadline.
pub fn order(system: &TaskSystem, members: &[usize]) -> Vec<usize> {
    let mut order: Vec<usize> = (0..members.len()).collect();
    let key = |position: usize| {
        let task = &system.tasks[members[position]];
        let priority = match system.policy {
            Policy::RateMonotonic => 0,
            _ => task.priority.unwrap_or(u32::MAX),
        };
        let span = if system.policy == Policy::RateMonotonic {
            task.period
        } else {
            task.deadline
        };
        (priority, span, position)
    };
    order.sort_by_key(|&position| key(position));
    order
}

/// How many of the tasks before `rank` of an order may preempt a started job of the task there: those whose priority is above its
/// threshold.
pub fn preempting(system: &TaskSystem, members: &[usize], order: &[usize], rank: usize) -> usize {
    let task = |rank: usize| &system.tasks[members[order[rank]]];
    let Some(threshold) = task(rank).threshold else {
        return rank;
    };
    let before = (0..rank).filter(|&other| task(other).priority.is_some_and(|its| its < threshold));
    before.count()
}

fn fixed(
    system: &TaskSystem,
    members: &[usize],
    tasks: &[Task],
    order: &[usize],
    handlers: &[Task],
) -> Result<Vec<Known>, TaskError> {
    let Some(sections) = sections(system, members, order)? else {
        return Ok(vec![Known::default(); members.len()]);
    };
    // Handlers are tasks before all others.
    let mut sorted: Vec<Task> = handlers.to_vec();
    let handlers = sorted.len();
    sorted.extend(order.iter().enumerate().map(|(rank, &position)| {
        let task = tasks[position];
        Task {
            blocking: task.blocking.saturating_add(sections[rank]),
            ..task
        }
    }));
    let responses = match system.policy {
        Policy::FixedPriority | Policy::RateMonotonic => fixed_priority::response_times(&sorted)?,
        policy => {
            // A decision for a lower task is not interrupted, even if the job that it starts may be preempted at once.
            let decision = nanoseconds(system.overheads.schedule);
            let above = sorted.len().saturating_sub(1);
            for task in sorted.iter_mut().take(above).skip(handlers) {
                task.blocking = task.blocking.max(decision);
            }
            let mut thresholds: Vec<usize> = (0..handlers).collect();
            for rank in 0..order.len() {
                thresholds.push(match policy {
                    Policy::Threshold => handlers + preempting(system, members, order, rank),
                    _ => handlers,
                });
            }
            threshold::response_times(&sorted, &thresholds)?
        }
    };
    let mut known = vec![Known::default(); members.len()];
    for (rank, &position) in order.iter().enumerate() {
        known[position].response = match system.told_by(members[position]) {
            Some(_) => threshold::from_release(&sorted, handlers + rank)?,
            None => responses[handlers + rank],
        };
    }
    Ok(known)
}

/// Blocking by critical sections and memory phases of lower-priority tasks, by rank. Under the priority ceiling protocol a job waits once
/// for the longest section whose ceiling reaches its priority, and once for a memory phase including its wait. Both include the stalls of
/// their accesses. `None`: one of them has no bound.
fn sections(
    system: &TaskSystem,
    members: &[usize],
    order: &[usize],
) -> Result<Option<Vec<u64>>, TaskError> {
    let task = |rank: usize| &system.tasks[members[order[rank]]];
    let mut ceilings: BTreeMap<&str, usize> = BTreeMap::new();
    for rank in (0..order.len()).rev() {
        for section in &task(rank).sections {
            ceilings.insert(&section.resource, rank);
        }
    }
    let phases =
        system.mutex.is_some() && members.iter().any(|&i| system.tasks[i].memory_phase.0 > 0);
    let wait = match members.first().filter(|_| phases) {
        Some(&index) => match prepare::mutex_wait(system, system.tasks[index].core)? {
            Some(wait) => wait,
            None => return Ok(None),
        },
        None => 0,
    };
    // With its stalls; nothing for nothing.
    let part = |rank: usize, length: u64| -> Result<Option<u64>, TaskError> {
        if length == 0 {
            return Ok(Some(0));
        }
        let stall = prepare::stall(system, members[order[rank]], length)?;
        Ok(stall.map(|stall| length.saturating_add(stall)))
    };
    let mut all = Vec::with_capacity(order.len());
    for rank in 0..order.len() {
        let (mut longest, mut longest_phase) = (0u64, 0u64);
        for lower in rank + 1..order.len() {
            let there = |section: &&Section| {
                let ceiling = ceilings.get(section.resource.as_str());
                ceiling.is_some_and(|&ceiling| ceiling <= rank)
            };
            for section in task(lower).sections.iter().filter(there) {
                let Some(section) = part(lower, nanoseconds(section.length))? else {
                    return Ok(None);
                };
                longest = longest.max(section);
            }
            if phases && task(lower).memory_phase.0 > 0 {
                let Some(phase) = part(lower, nanoseconds(task(lower).memory_phase))? else {
                    return Ok(None);
                };
                longest_phase = longest_phase.max(phase.saturating_add(wait));
            }
        }
        all.push(longest.saturating_add(longest_phase));
    }
    Ok(Some(all))
}

fn edf_processor(tasks: &[Task], handlers: &[Task]) -> Result<Vec<Known>, TaskError> {
    let met = edf::schedulable_with(tasks, handlers)?;
    let all = [tasks, handlers].concat();
    let busy = if compare_with(&all, 1).is_gt() {
        None
    } else {
        edf::busy_period(&all, super::NANOSECONDS_MAX)
    };
    let work = busy.map_or(u64::MAX, |busy| {
        let jobs: u64 = tasks.iter().fold(0, |sum, t| {
            sum.saturating_add((busy + t.jitter) / t.period + 1)
        });
        let each = (tasks.len() as u64).saturating_mul(all.len() as u64);
        jobs.saturating_mul(each)
    });
    let responses = if work <= EDF_WORK {
        edf_response::response_times_with(tasks, handlers)?
    } else {
        vec![None; tasks.len()]
    };
    // Demand decides exactly, even with jitter, where response times are only bounds.
    let within = |(response, task): (Option<u64>, &Task)| Known {
        response: response.map(|response| {
            if met {
                response.min(task.deadline)
            } else {
                response
            }
        }),
        met,
    };
    Ok(responses.into_iter().zip(tasks).map(within).collect())
}

/// The slots of the DMA engine. `None`: a processor has none.
fn tdma(system: &TaskSystem) -> Option<Tdma> {
    let overhead = nanoseconds(system.tdma?);
    let slots: Vec<u64> = (0..system.processors)
        .map(|core| {
            system
                .share(Some(core))
                .and_then(|share| share.slot)
                .map_or(0, nanoseconds)
        })
        .collect();
    let usable = slots.iter().map(|s| s.saturating_sub(overhead)).collect();
    Some(Tdma { slots, usable })
}

fn phased(
    system: &TaskSystem,
    core: u32,
    members: &[usize],
    tasks: &[Task],
) -> Result<Vec<Known>, PlanError> {
    let none = vec![Known::default(); members.len()];
    let Some(tdma) = tdma(system) else {
        return Ok(none);
    };
    let order = order(system, members);
    let sorted: Vec<PhasedTask> = order
        .iter()
        .map(|&position| {
            let task = &system.tasks[members[position]];
            PhasedTask {
                task: tasks[position],
                load: nanoseconds(task.load),
                unload: nanoseconds(task.unload),
            }
        })
        .collect();
    let responses = match three_phase::response_times(&sorted, &tdma, core as usize) {
        Ok(responses) => responses,
        Err(PhaseError::NoSlot(_)) => return Ok(none),
        Err(PhaseError::Task(error)) => {
            let sorted: Vec<usize> = order.iter().map(|&position| members[position]).collect();
            return Err(PlanError::of(&error, system, &sorted));
        }
    };
    let mut known = none;
    for (&position, response) in order.iter().zip(responses) {
        known[position].response = response;
    }
    Ok(known)
}

fn global(
    system: &TaskSystem,
    constraints: &mut Vec<Constraint>,
) -> Result<Vec<(usize, Known)>, PlanError> {
    let all: Vec<usize> = (0..system.tasks.len()).collect();
    let order: Vec<usize> = if system.policy == Policy::GlobalFixedPriority {
        order(system, &all)
    } else {
        all
    };
    let Some(tasks) = prepared(system, &order)? else {
        return Ok(order.into_iter().map(|i| (i, Known::default())).collect());
    };
    let wrong = |error: TaskError| PlanError::of(&error, system, &order);
    let known: Vec<Known> = if system.policy == Policy::GlobalFixedPriority {
        global_fixed_priority::response_times(&tasks, system.processors as usize)
            .map_err(wrong)?
            .into_iter()
            .map(|response| Known {
                response,
                met: false,
            })
            .collect()
    } else {
        let processors = u64::from(system.processors);
        // On one processor the exact test is available.
        let met = if processors == 1 {
            edf::schedulable(&tasks).map_err(wrong)?
        } else {
            global_edf::gfb(&tasks, processors).map_err(wrong)?
                || global_edf::bcl(&tasks, processors).map_err(wrong)?
                || (tasks.len() <= BAK_TASKS
                    && global_edf::bak(&tasks, processors).map_err(wrong)?)
        };
        if !met && processors > 1 {
            let nearest = global_edf::nearest(&tasks, processors, BAK_TASKS).map_err(wrong)?;
            let named = |index: usize| system.tasks[order[index]].name.as_str();
            constraints.extend(nearest.map(|nearest| by_how_much(&nearest, named)));
        }
        vec![
            Known {
                response: None,
                met
            };
            tasks.len()
        ]
    };
    Ok(order.into_iter().zip(known).collect())
}

/// By how much the nearest of global EDF's three tests fails: the one that would accept first if costs fell.
fn by_how_much<'a>(nearest: &Nearest, named: impl Fn(usize) -> &'a str) -> Constraint {
    let millionths = |share: &Exact| ceiling(&(share * integer(1_000_000)));
    let asked = millionths(&nearest.asked).unwrap_or(u64::MAX);
    // The allowed value is rounded down, so that it never looks as if it held.
    let allowed = millionths(&nearest.allowed)
        .unwrap_or(0)
        .min(asked.saturating_sub(1));
    let (subject, method) = match nearest.test {
        "gfb" => (
            "densities of all tasks".to_owned(),
            "density test (Goossens, Funk, Baruah 2003)",
        ),
        "bak" => (
            "load of all tasks".to_owned(),
            "load in a window (Baker 2003)",
        ),
        _ => (
            "work that delays a task".to_owned(),
            "interference within the slack (Bertogna, Cirinei, Lipari 2005)",
        ),
    };
    let mut constraint = Constraint::new(
        Kind::Capacity,
        subject,
        Some(asked),
        Some(allowed),
        Unit::Millionths,
        method,
    );
    let of = nearest.task.map(named);
    let of = of.map_or(String::new(), |name| {
        format!(", which `{name}` fails by most")
    });
    constraint.note = Some(format!(
        "the nearest of three tests, none of which accepts{of}"
    ));
    constraint
}

/// The tests' tasks in this order. `None`: one of them has no cost.
pub fn prepared(system: &TaskSystem, order: &[usize]) -> Result<Option<Vec<Task>>, PlanError> {
    prepare::tasks(system, order).map_err(|error| PlanError::of(&error, system, &[]))
}

/// What precedes the tasks `members` of a processor; nothing if the policy's test makes jobs pay for it.
fn handlers(system: &TaskSystem, core: u32, members: &[usize]) -> Result<Vec<Task>, PlanError> {
    if matches!(system.policy, Policy::Table | Policy::ThreePhase) {
        return Ok(Vec::new());
    }
    prepare::handlers(system, core, members).map_err(|error| PlanError::of(&error, system, &[]))
}

/// A tardiness as a constraint, and the response that follows from it.
pub fn late(
    system: &TaskSystem,
    index: usize,
    tardiness: Option<u64>,
    all: &mut Vec<Constraint>,
    responses: &mut [Option<u64>],
) {
    let task = &system.tasks[index];
    let limit = nanoseconds(task.tardiness);
    responses[index] = tardiness.and_then(|late| late.checked_add(nanoseconds(task.deadline)));
    let mut constraint = Constraint::new(
        Kind::Tardiness,
        &task.name,
        tardiness,
        (limit > 0).then_some(limit),
        Unit::Nanoseconds,
        method(system.policy),
    );
    constraint.note = note(system, index).or_else(|| {
        let unbounded = tardiness.is_none().then(|| unbounded(system));
        unbounded.flatten()
    });
    all.push(constraint);
}

/// Why no task has a bound on its tardiness.
fn unbounded(system: &TaskSystem) -> Option<String> {
    let mut all = Vec::new();
    capacities(system, &mut all).ok()?;
    let over = all.iter().find(|c| c.fails());
    Some(match over {
        Some(over) => format!(
            "no bound exists: the load of {} is {} % of {} %",
            over.subject,
            percent(over.bound?),
            percent(over.limit?)
        ),
        None => {
            "this test finds no bound: the tasks with the largest utilisations leave no capacity"
                .to_owned()
        }
    })
}

/// Millionths as a percentage, rounded up.
fn percent(millionths: u64) -> u64 {
    millionths.div_ceil(10_000)
}

fn soft(
    system: &TaskSystem,
    all: &mut Vec<Constraint>,
    responses: &mut [Option<u64>],
) -> Result<Vec<(usize, Known)>, PlanError> {
    let order: Vec<usize> = (0..system.tasks.len()).collect();
    let bounds = tardy::bounds(system, &order)?;
    for index in order {
        late(
            system,
            index,
            bounds.as_ref().map(|bounds| bounds[index]),
            all,
            responses,
        );
    }
    Ok(Vec::new())
}

/// Work against processors: exact verdicts, shares in millionths rounded up for the reader.
fn capacities(system: &TaskSystem, all: &mut Vec<Constraint>) -> Result<(), PlanError> {
    if system.policy == Policy::TimeSlice {
        return Ok(());
    }
    if system.policy == Policy::Mc2 {
        levels::capacities(system, all);
        return Ok(());
    }
    let alone = |list: &[usize]| {
        prepare::alone(system, list).map_err(|error| PlanError::of(&error, system, &[]))
    };
    // A one-time event is not load.
    let pairs = |handlers: &[Task]| -> Vec<(u64, u64)> {
        let often = handlers.iter().filter(|handler| handler.period < LIMIT);
        often
            .map(|handler| (handler.period, handler.cost))
            .collect()
    };
    if system.policy.is_global() {
        let list: Vec<usize> = (0..system.tasks.len()).collect();
        if let Some(tasks) = alone(&list)? {
            let releases = pairs(&prepare::releases(system, list.into_iter()));
            let one = capacity("all processors", &tasks, &releases, system.processors);
            all.push(one);
        }
        return Ok(());
    }
    for (core, members) in members(system) {
        let Some(tasks) = alone(&members)? else {
            continue;
        };
        let handlers = prepare::handlers(system, core, &members);
        let handlers = pairs(&handlers.map_err(|error| PlanError::of(&error, system, &[]))?);
        let mut one = capacity(&format!("processor {core}"), &tasks, &handlers, 1);
        if system.policy == Policy::RateMonotonic && harmonic::is_harmonic(&tasks) {
            one.note = Some("harmonic periods: the whole processor can be used".to_owned());
        }
        all.push(one);
    }
    Ok(())
}

/// The utilisation of tasks and interrupts against processors.
pub fn capacity(
    subject: &str,
    tasks: &[Task],
    interrupts: &[(u64, u64)],
    processors: u32,
) -> Constraint {
    let parts = || {
        let handlers = interrupts.iter().map(|&(period, cost)| (cost, period));
        tasks.iter().map(|t| (t.cost, t.period)).chain(handlers)
    };
    let millionths = parts().fold(0u128, |sum, (cost, period)| {
        sum + (u128::from(cost) * 1_000_000_000).div_ceil(u128::from(period.max(1)))
    });
    let bound = u64::try_from(millionths.div_ceil(1000)).unwrap_or(u64::MAX);
    let mut constraint = Constraint::new(
        Kind::Capacity,
        subject,
        Some(bound),
        Some(u64::from(processors) * 1_000_000),
        Unit::Millionths,
        "utilisation, compared exactly",
    );
    constraint.judge(compare(parts(), u64::from(processors)).is_le());
    constraint
}

/// Whether the tasks `members` meet their deadlines alone on processor `core`: the verdict of [`processor`], without response times if
/// there is a faster test. Level C does not count.
///
/// # Errors
/// [`PlanError`] if a task is beyond what the test covers.
pub fn meets(system: &TaskSystem, core: u32, members: &[usize]) -> Result<bool, PlanError> {
    if system.policy == Policy::Mc2 {
        return levels::meets(system, core, members);
    }
    let wrong = |error: TaskError| PlanError::of(&error, system, members);
    let quick =
        system.mutex.is_none() && members.iter().all(|&i| system.tasks[i].sections.is_empty());
    match system.policy {
        Policy::Edf | Policy::Table => {
            let Some(tasks) = prepared(system, members)? else {
                return Ok(false);
            };
            let handlers = handlers(system, core, members)?;
            // Synchronous arrival is the worst case; but a table may need more pieces than two decisions pay for, and jobs may miss it.
            let more = system.overheads.schedule.0 > 0 || !system.periodic;
            let table = system.policy == Policy::Table && more;
            if !table && edf::schedulable_with(&tasks, &handlers).map_err(wrong)? {
                return Ok(true);
            }
            if system.policy == Policy::Table {
                if !system.periodic {
                    // A table that jobs need not follow may exist and yet be insufficient.
                    let known = processor(system, core, members);
                    return Ok(known.is_ok_and(|known| in_time(system, members, &known)));
                }
                let offsets = first_arrivals(system, members);
                return Ok(build_table(system, core, &tasks, &offsets).is_ok());
            }
            Ok(exactly(system, core, members, &tasks)
                .map_err(wrong)?
                .is_some_and(|known| in_time(system, members, &known)))
        }
        Policy::FixedPriority | Policy::RateMonotonic if quick => {
            let Some(tasks) = prepared(system, members)? else {
                return Ok(false);
            };
            let mut all = handlers(system, core, members)?;
            // The end of a handler does not matter.
            for handler in &mut all {
                handler.deadline = LIMIT;
            }
            all.extend(order(system, members).into_iter().map(|p| tasks[p]));
            if fixed_priority::schedulable(&all).map_err(wrong)? {
                return Ok(true);
            }
            Ok(exactly(system, core, members, &tasks)
                .map_err(wrong)?
                .is_some_and(|known| in_time(system, members, &known)))
        }
        _ => {
            let known = processor(system, core, members)?;
            Ok(in_time(system, members, &known))
        }
    }
}

fn in_time(system: &TaskSystem, members: &[usize], known: &[Known]) -> bool {
    members.iter().zip(known).all(|(&index, known)| {
        let deadline = nanoseconds(system.tasks[index].deadline);
        known.met || known.response.is_some_and(|response| response <= deadline)
    })
}
