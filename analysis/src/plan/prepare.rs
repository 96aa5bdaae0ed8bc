//! From the description's task to the tests' task: the cost that a job really needs.
//!
//! Why it exists: overheads, ways, regulation and locks lengthen a job; every test wants one number. What it deliberately
//! does not know: schedulability.
//!
//! A job pays two scheduling decisions and its release (mc2-rts20, section 6.2). A job on a regulated processor stalls
//! ([`crate::schedulability::memguard`]). A job that holds the memory mutex waits for it, spinning
//! ([`crate::schedulability::memory_mutex`]); the phase with its wait is not preempted, so it blocks others.

use bulkhead_model::tasks::{MutexOrder, Policy, TaskSystem};
use bulkhead_model::units;

use crate::schedulability::memguard::{self, Regulation};
use crate::schedulability::memory_mutex::{self, Phases};
use crate::schedulability::task::LIMIT;
use crate::schedulability::{Task, TaskError, threshold};

/// Whole nanoseconds of a time of a description.
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

/// What the kernel does for a job.
pub fn kernel(system: &TaskSystem) -> u64 {
    let overheads = &system.overheads;
    nanoseconds(overheads.schedule)
        .saturating_mul(2)
        .saturating_add(nanoseconds(overheads.release))
}

/// Interrupts that a processor handles: least distance, and handler with entry.
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

/// The cost of a task as `level` estimates it, without anything that others do to it. `None`: no estimate for its ways.
pub fn cost(system: &TaskSystem, index: usize, level: char) -> Option<u64> {
    system.tasks[index]
        .cost_at(level, ways(system, index))
        .map(nanoseconds)
}

/// A task with its whole cost at its own level, as the tests want it. `None`: there is no estimate for its ways, or a wait
/// without a bound. Blocking by sections is not in it: that depends on priorities.
pub fn task(system: &TaskSystem, index: usize) -> Result<Option<Task>, TaskError> {
    let task = &system.tasks[index];
    let Some(alone) = cost(system, index, task.criticality) else {
        return Ok(None);
    };
    let mut cost = alone.saturating_add(kernel(system));
    if let Some(guard) = system.memguard {
        let budget = system.share(task.core).and_then(|share| share.budget);
        if task.accesses > 0 {
            let Some(budget) = budget else {
                return Ok(None);
            };
            let regulation = Regulation {
                budget,
                period: nanoseconds(guard.period),
                access: nanoseconds(guard.access),
            };
            match memguard::stall(task.accesses, &regulation)? {
                Some(stall) => cost = cost.saturating_add(stall),
                None => return Ok(None),
            }
        }
    }
    if task.memory_phase.0 > 0 && system.mutex.is_some() {
        match mutex_wait(system, task.core)? {
            Some(wait) => cost = cost.saturating_add(wait),
            None => return Ok(None),
        }
    }
    Ok(Some(Task {
        cost: cost.min(LIMIT),
        period: nanoseconds(task.period),
        deadline: nanoseconds(task.deadline),
        jitter: nanoseconds(task.jitter),
        blocking: nanoseconds(task.blocking),
    }))
}

/// First arrivals of the tasks `members` of a processor, if they arrive periodically and nothing but their costs delays them.
pub fn offsets(system: &TaskSystem, core: u32, members: &[usize]) -> Option<Vec<u64>> {
    let plain = |&index: &usize| {
        let task = &system.tasks[index];
        task.jitter.0 == 0
            && task.blocking.0 == 0
            && task.sections.is_empty()
            && (task.memory_phase.0 == 0 || system.mutex.is_none())
    };
    let all = system.periodic && members.iter().all(plain) && interrupts(system, core).is_empty();
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
    let on = |core: u32| {
        let users = system.tasks.iter().filter(move |t| t.core == Some(core));
        users
            .map(|t| nanoseconds(t.memory_phase))
            .max()
            .unwrap_or(0)
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
            // A phase of a lower processor may be under way. Higher ones go first as often as they ask: once in each job of
            // each of their tasks, between its release and its deadline. So the wait is that of a non-preemptive task.
            let lower = (core + 1..system.processors).map(on).max().unwrap_or(0);
            let mut tasks: Vec<Task> = system
                .tasks
                .iter()
                .filter(|t| t.core.is_some_and(|c| c < core) && t.memory_phase.0 > 0)
                .map(|t| {
                    Task::new(nanoseconds(t.memory_phase), nanoseconds(t.period))
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
