//! From the description's task to the tests' task: the cost that a job really needs.
//!
//! Why it exists: overheads, ways, regulation and locks lengthen a job; every test wants one number. What it deliberately
//! does not know: schedulability.
//!
//! A job pays for two scheduling decisions, one that starts it and one that ends it; its release interrupts whatever runs, even if that is
//! more urgent, so releases of all tasks of a processor are [`handlers`] like those of devices (A. Burns, K. Tindell, A. Wellings,
//! *Effective analysis for engineering real-time fixed priority schedulers*, IEEE Transactions on Software Engineering 21(5), 1995). A
//! decision is not interrupted: one for a less urgent task delays a job. The decision after the job itself is counted, but comes after its
//! end.
//!
//! A regulated processor stalls as a whole ([`crate::schedulability::memguard`]): once at the beginning of a busy period, because others
//! spent the budget, which affects every task; after that in proportion to the accesses of the running jobs, and each job pays for its
//! own. Sections and memory phases stall according to the accesses that they can make.
//!
//! A job that holds the memory mutex waits for it, spinning ([`crate::schedulability::memory_mutex`]); the phase with its wait
//! is not preempted, so it blocks others.

use bulkhead_model::tasks::{MutexOrder, Policy, Task as Described, TaskSystem};
use bulkhead_model::units;

use crate::schedulability::memguard::Regulation;
use crate::schedulability::memory_mutex::{self, Phases};
use crate::schedulability::task::LIMIT;
use crate::schedulability::{Task, TaskError, fixed_priority, handlers, threshold};

/// Whole nanoseconds of a description's time.
pub fn nanoseconds(time: units::Time) -> u64 {
    time.nanoseconds()
}

/// A time of a description.
pub fn time(nanoseconds: u64) -> units::Time {
    units::Time(nanoseconds.saturating_mul(1000))
}

/// Ways that a task may use: those of its processor, or of level C.
pub fn ways(system: &TaskSystem, index: usize) -> u32 {
    let task = &system.tasks[index];
    let shared = system.policy == Policy::Mc2 && task.criticality >= 'C';
    let core = if shared { None } else { task.core };
    system.share(core).and_then(|share| share.ways).unwrap_or(0)
}

/// The two scheduling decisions of a job.
pub fn decisions(system: &TaskSystem) -> u64 {
    nanoseconds(system.overheads.schedule).saturating_mul(2)
}

/// Interrupts that a processor handles: minimum inter-arrival time, and handler with entry.
pub fn interrupts(system: &TaskSystem, core: u32) -> Vec<(u64, u64)> {
    let entry = nanoseconds(system.overheads.interrupt);
    system
        .devices
        .iter()
        .filter(|device| device.core == core)
        .filter_map(|device| device.interrupts)
        .map(|(period, cost)| (nanoseconds(period), nanoseconds(cost).saturating_add(entry)))
        .collect()
}

/// Releases of the tasks `members`.
pub fn releases(system: &TaskSystem, members: impl Iterator<Item = usize>) -> Vec<Task> {
    let cost = nanoseconds(system.overheads.release);
    let release = |index: usize| {
        let task = &system.tasks[index];
        handlers::handler(cost, nanoseconds(task.period).max(1))
            .with_jitter(nanoseconds(task.jitter))
    };
    members.map(release).filter(|h| h.cost > 0).collect()
}

/// What precedes the tasks `members` of a processor: interrupts, their releases, and the stall in progress when a busy period begins.
/// Their deadlines are late enough for every test.
pub fn handlers(system: &TaskSystem, core: u32, members: &[usize]) -> Result<Vec<Task>, TaskError> {
    let devices = interrupts(system, core).into_iter();
    let mut all: Vec<Task> = devices
        .filter(|&(_, cost)| cost > 0)
        .map(|(distance, cost)| handlers::handler(cost, distance))
        .collect();
    all.extend(releases(system, members.iter().copied()));
    if let Some(Some(regulation)) = regulation(system, core, members)? {
        all.push(handlers::once(regulation.longest_stall()));
    }
    all.retain(|handler| handler.cost > 0);
    Ok(all)
}

/// How a processor with the tasks `members` is regulated. Outer `None`: not at all, or no task there accesses the memory. Inner `None`: it
/// has no budget, so a stall may last forever.
pub fn regulation(
    system: &TaskSystem,
    core: u32,
    members: &[usize],
) -> Result<Option<Option<Regulation>>, TaskError> {
    let Some(guard) = system.memguard else {
        return Ok(None);
    };
    if members
        .iter()
        .all(|&index| system.tasks[index].accesses == 0)
    {
        return Ok(None);
    }
    let budget = system.share(Some(core)).and_then(|share| share.budget);
    let regulation = budget.map(|budget| Regulation {
        budget,
        period: nanoseconds(guard.period),
        access: nanoseconds(guard.access),
    });
    if let Some(regulation) = &regulation {
        regulation.validate()?;
    }
    Ok(Some(regulation))
}

/// Maximum stall of the accesses within this part of a task's cost, besides the stall in progress. `None`: no bound.
pub fn stall(system: &TaskSystem, index: usize, part: u64) -> Result<Option<u64>, TaskError> {
    let task = &system.tasks[index];
    let Some(core) = task.core.filter(|_| task.accesses > 0) else {
        return Ok(Some(0));
    };
    Ok(match regulation(system, core, &[index])? {
        None => Some(0),
        Some(None) => None,
        Some(Some(regulation)) => {
            let most = match regulation.access {
                0 => u64::MAX,
                // One access that began before this part may end in it.
                access => part.div_ceil(access).saturating_add(1),
            };
            regulation.stalls(task.accesses.min(most))
        }
    })
}

/// The cost of a task as estimated by `level`, without the effects of others. `None`: no estimate for its ways.
pub fn cost(system: &TaskSystem, index: usize, level: char) -> Option<u64> {
    system.tasks[index]
        .cost_at(level, ways(system, index))
        .map(nanoseconds)
}

/// A task with its whole cost at its own level, in the form that the tests need. `None`: there is no estimate for its ways, a wait has no
/// bound, or the cost exceeds what any test counts. Excludes blocking by sections, which depends on priorities, and [`handlers`].
pub fn task(system: &TaskSystem, index: usize) -> Result<Option<Task>, TaskError> {
    let task = &system.tasks[index];
    let Some(alone) = cost(system, index, task.criticality) else {
        return Ok(None);
    };
    let mut cost = alone.saturating_add(decisions(system));
    // A task that enters a section may be refused once and released again: two more decisions, which hold up all lower tasks.
    let refused = |(other, its): (usize, &Described)| {
        other != index && its.core == task.core && !its.sections.is_empty()
    };
    if !task.sections.is_empty() && system.tasks.iter().enumerate().any(refused) {
        cost = cost.saturating_add(decisions(system));
    }
    match stall(system, index, u64::MAX)? {
        Some(stall) => cost = cost.saturating_add(stall),
        None => return Ok(None),
    }
    if task.memory_phase.0 > 0 && system.mutex.is_some() {
        match mutex_wait(system, task.core)? {
            Some(wait) => cost = cost.saturating_add(wait),
            None => return Ok(None),
        }
    }
    // Longer than any test counts, and than any deadline.
    if cost > LIMIT {
        return Ok(None);
    }
    Ok(Some(Task {
        cost,
        period: nanoseconds(task.period),
        deadline: nanoseconds(task.deadline),
        jitter: nanoseconds(task.jitter),
        blocking: nanoseconds(task.blocking),
    }))
}

/// First arrivals of the tasks `members` of a processor, if they arrive periodically and only their costs delay them.
pub fn offsets(system: &TaskSystem, core: u32, members: &[usize]) -> Option<Vec<u64>> {
    let plain = |&index: &usize| {
        let task = &system.tasks[index];
        task.jitter.0 == 0
            && task.blocking.0 == 0
            && task.sections.is_empty()
            && (task.memory_phase.0 == 0 || system.mutex.is_none())
            // The start of a stall is unknown.
            && (task.accesses == 0 || system.memguard.is_none())
    };
    // A release precedes all tasks, which only fixed priorities can express.
    let sayable = system.policy != Policy::Edf || system.overheads.release.0 == 0;
    let all = system.periodic
        && sayable
        && members.iter().all(plain)
        && interrupts(system, core).is_empty();
    all.then(|| {
        let first = members.iter().map(|&index| system.tasks[index].offset);
        first.map(nanoseconds).collect()
    })
}

/// Longest wait for the memory mutex on a processor. `None`: no bound.
pub fn mutex_wait(system: &TaskSystem, core: Option<u32>) -> Result<Option<u64>, TaskError> {
    let (Some(order), Some(core)) = (system.mutex, core) else {
        return Ok(Some(0));
    };
    let Some(phases) = phases(system)? else {
        return Ok(None);
    };
    let on = |core: u32| {
        let there = system.tasks.iter().zip(&phases);
        let there = there.filter(|(task, _)| task.core == Some(core));
        there.map(|(_, phase)| *phase).max().unwrap_or(0)
    };
    match order {
        MutexOrder::Fifo => {
            let phases: Vec<Phases> = (0..system.processors)
                .map(|core| Phases {
                    longest: on(core),
                    distance: 1,
                })
                .collect();
            memory_mutex::fifo(&phases, core as usize).map(Some)
        }
        MutexOrder::Core => {
            // A phase of a lower processor may be in progress. Higher processors go first as often as they ask: once in each job of each
            // of their tasks, between its release and its deadline. So the wait is that of a non-preemptive task.
            let lower = (core + 1..system.processors).map(on).max().unwrap_or(0);
            let before = system.tasks.iter().zip(&phases);
            let mut tasks: Vec<Task> = before
                .filter(|(t, _)| t.core.is_some_and(|c| c < core) && t.memory_phase.0 > 0)
                .map(|(t, &phase)| {
                    Task::new(phase, nanoseconds(t.period))
                        .with_jitter(nanoseconds(t.deadline.min(t.period)))
                })
                .collect();
            let own = on(core).max(1);
            tasks.push(Task::new(own, LIMIT).with_blocking(lower));
            let response = threshold::non_preemptive(&tasks)?.pop().flatten();
            Ok(response.map(|response| response.saturating_sub(own)))
        }
    }
}

/// Maximum time of each task's memory phase from begin to end, including what precedes it and stalls; 0 without one. `None`: no bound.
fn phases(system: &TaskSystem) -> Result<Option<Vec<u64>>, TaskError> {
    let mut longest = vec![0; system.tasks.len()];
    for (index, task) in system.tasks.iter().enumerate() {
        let alone = nanoseconds(task.memory_phase);
        let Some(core) = task.core.filter(|_| alone > 0) else {
            continue;
        };
        let Some(stall) = stall(system, index, alone)? else {
            return Ok(None);
        };
        let members: Vec<usize> = (0..system.tasks.len())
            .filter(|&other| system.tasks[other].core == Some(core))
            .collect();
        let mut all = handlers(system, core, &members)?;
        let whole = alone.saturating_add(stall);
        if whole > LIMIT {
            return Ok(None);
        }
        all.push(Task::new(whole, LIMIT));
        match fixed_priority::response_times(&all)?.pop().flatten() {
            Some(phase) => longest[index] = phase,
            None => return Ok(None),
        }
    }
    Ok(Some(longest))
}

/// The tests' tasks `members`, each with its own cost. `None`: one of them has none.
pub fn alone(system: &TaskSystem, members: &[usize]) -> Result<Option<Vec<Task>>, TaskError> {
    members.iter().map(|&index| task(system, index)).collect()
}

/// The tests' tasks `members`, each with its whole cost, where all of them share processors. Under policies whose tests do not handle
/// handlers, each job also pays for the releases that may occur in its life. `None`: one of them has no cost, or a cost beyond what the
/// tests count.
pub fn tasks(system: &TaskSystem, members: &[usize]) -> Result<Option<Vec<Task>>, TaskError> {
    let Some(mut all) = alone(system, members)? else {
        return Ok(None);
    };
    let pays =
        system.policy.is_global() || matches!(system.policy, Policy::Table | Policy::ThreePhase);
    if pays && system.overheads != Default::default() {
        // Their tests handle no response beyond the period.
        let lives: Vec<u64> = all
            .iter()
            .map(|task| task.period.max(task.deadline))
            .collect();
        all = with_releases(system, members, &all, &lives);
    }
    let countable = all.iter().all(|task| task.cost <= LIMIT);
    Ok(countable.then_some(all))
}

/// `tasks`, the tests' tasks for `members`, each of which pays for its own release and for those of the others in its life. Where
/// processors are shared, each job that may go first may displace it to a processor where a decision for a less urgent task is in
/// progress, so it pays for one more decision. Costs may exceed what the tests count.
pub fn with_releases(
    system: &TaskSystem,
    members: &[usize],
    tasks: &[Task],
    lives: &[u64],
) -> Vec<Task> {
    let release = nanoseconds(system.overheads.release);
    let decision = nanoseconds(system.overheads.schedule);
    let fixed = system.policy == Policy::GlobalFixedPriority;
    let one = |(position, task): (usize, &Task)| {
        let others = members.iter().enumerate();
        let others = others.filter(|&(other, _)| other != position);
        let other = |(other, &index): (usize, &usize)| {
            let its = &system.tasks[index];
            // Under fixed priorities, `members` are in priority order.
            let displaces = system.policy.is_global() && (!fixed || other < position);
            let cost = release.saturating_add(if displaces { decision } else { 0 });
            handlers::handler(cost, nanoseconds(its.period).max(1))
                .with_jitter(nanoseconds(its.jitter))
        };
        let others: Vec<Task> = others.map(other).filter(|h| h.cost > 0).collect();
        // Its own releases: as many as its life may contain.
        let own = lives[position]
            .saturating_add(task.jitter)
            .div_ceil(task.period.max(1))
            .max(1)
            .saturating_mul(release);
        let paid = handlers::pays(task, &others, lives[position]);
        Task {
            cost: paid.cost.saturating_add(own),
            ..paid
        }
    };
    tasks.iter().enumerate().map(one).collect()
}
