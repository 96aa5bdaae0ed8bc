//! Interference in the banks and on the bus of a memory: how much longer tasks take because other cores use the same DRAM.
//!
//! Method: after H. Kim, D. de Niz, B. Andersson, M. Klein, O. Mutlu, R. Rajkumar, *Bounding memory interference delay in
//! COTS-based multi-core systems*, RTAS 2014: a *request-driven* bound (what one request can meet, times the requests of the
//! task) and a *job-driven* bound (what all others can request while the job is there); each holds, so the smaller one counts.
//! Banks that a core has for itself suffer from the others only on the bus (inter-bank); in shared banks a request also waits
//! for those that came before it (intra-bank) and for row hits that overtake it.
//!
//! Memory: each bank serves one request at a time, the oldest first, except that a row hit may overtake; a request opens its row for at
//! most `open` (precharge, activate, column access), then waits for the bus, which serves in the order of readiness, then
//! transfers for at most `transfer`, and only then is the bank free.
//!
//! Assumptions: preemptive fixed priorities on each core, deadlines within periods, no jitter; a core has one outstanding request and
//! waits for it, even when a task is preempted; costs contain each access at `open + transfer`, so nothing is added for rows that
//! others close; the job-driven bound relies on the other cores' tasks meeting their deadlines, see [`analyse`]. Refresh is not in it.
//! The order of arrival decides nothing but ties.

use super::fixed_priority::STEPS_MAX;
use super::task::{Task, TaskError, Time, validate_constrained};

/// The memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Memory {
    /// Banks; positive.
    pub banks: usize,
    /// Longest time from the start of a request's service to the moment at which it is ready for the bus.
    pub open: Time,
    /// Longest transfer on the bus.
    pub transfer: Time,
    /// Maximum number of row hits that overtake a request; 0 in a controller that serves banks strictly in order.
    pub overtaking: u64,
}

/// A task with its memory accesses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MemoryTask {
    /// Cost alone, with each access at its longest.
    pub task: Task,
    /// Maximum accesses of a job.
    pub accesses: u64,
}

/// The tasks of a core.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Core {
    /// Banks that its tasks use.
    pub banks: Vec<usize>,
    /// By decreasing priority.
    pub tasks: Vec<MemoryTask>,
}

/// Which bound may be used.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Driven {
    /// By requests alone.
    Request,
    /// The smaller of the two.
    Both,
}

/// How much later than alone one request of `core` can be done.
///
/// # Errors
/// [`TaskError`] if a parameter is out of range.
pub fn request_delay(memory: &Memory, cores: &[Core], core: usize) -> Result<Time, TaskError> {
    check(memory, cores, core)?;
    let sharing = (0..cores.len())
        .filter(|&q| q != core && share(cores, core, q))
        .count() as u64;
    // Each other core has at most one request in front of ours on the bus, each other bank too.
    let other_banks = memory.banks as u64 - 1;
    let own_bus = other_banks
        .min(cores.len() as u64 - 1)
        .saturating_mul(memory.transfer);
    if sharing == 0 {
        return Ok(own_bus);
    }
    // While another request holds our bank, ours does not compete on the bus.
    let before = (other_banks.min(cores.len() as u64 - 2) + 1).saturating_mul(memory.transfer);
    let waiting = sharing.saturating_mul(before.saturating_add(memory.open));
    let overtaken = memory.overtaking.saturating_mul(before);
    Ok(waiting.saturating_add(overtaken).saturating_add(own_bus))
}

/// How much later than alone the requests of `core` in a window of length `window` are done in all, whatever their number.
///
/// # Errors
/// [`TaskError`] if a parameter is out of range.
pub fn window_delay(
    memory: &Memory,
    cores: &[Core],
    core: usize,
    window: Time,
) -> Result<Time, TaskError> {
    check(memory, cores, core)?;
    Ok(in_window(memory, cores, core, window))
}

/// Response times on one core; `None` where this analysis finds none within the deadline.
///
/// # Errors
/// [`TaskError`] if a parameter is out of range or not covered.
pub fn response_times(
    memory: &Memory,
    cores: &[Core],
    core: usize,
    driven: Driven,
) -> Result<Vec<Option<Time>>, TaskError> {
    let each = request_delay(memory, cores, core)?;
    let tasks = &cores[core].tasks;
    Ok((0..tasks.len())
        .map(|i| response(memory, cores, core, i, each, driven))
        .collect())
}

/// Response times of all cores. The job-driven bound counts the others' jobs by their deadlines: it is used only if with it all
/// deadlines are met (then none can be the first to be missed); otherwise only the request-driven bound is used.
///
/// # Errors
/// [`TaskError`] if a parameter is out of range or not covered.
pub fn analyse(memory: &Memory, cores: &[Core]) -> Result<Vec<Vec<Option<Time>>>, TaskError> {
    let with = |driven| {
        (0..cores.len())
            .map(|core| response_times(memory, cores, core, driven))
            .collect::<Result<Vec<_>, _>>()
    };
    let both = with(Driven::Both)?;
    if both.iter().flatten().all(Option::is_some) {
        return Ok(both);
    }
    with(Driven::Request)
}

fn share(cores: &[Core], p: usize, q: usize) -> bool {
    cores[p].banks.iter().any(|b| cores[q].banks.contains(b))
}

fn check(memory: &Memory, cores: &[Core], core: usize) -> Result<(), TaskError> {
    if memory.banks == 0 {
        return Err(TaskError::Zero("the number of banks"));
    }
    if core >= cores.len() {
        return Err(TaskError::Zero("the number of cores"));
    }
    for here in cores {
        let tasks: Vec<Task> = here.tasks.iter().map(|t| t.task).collect();
        validate_constrained(&tasks)?;
        for (task, t) in here.tasks.iter().enumerate() {
            let what = match t {
                _ if t.task.jitter > 0 => "jitter",
                _ if t.accesses > 0 && here.banks.is_empty() => "accesses without a bank",
                _ if here.banks.iter().any(|&b| b >= memory.banks) => "a bank that does not exist",
                _ => continue,
            };
            return Err(TaskError::NotCovered { task, what });
        }
    }
    Ok(())
}

/// Each request of another core takes the bus once, and the bank as well if it is shared.
fn in_window(memory: &Memory, cores: &[Core], core: usize, window: Time) -> Time {
    let mut sum = 0u64;
    for (q, other) in cores.iter().enumerate() {
        if q == core {
            continue;
        }
        let each = if share(cores, core, q) {
            memory.open.saturating_add(memory.transfer)
        } else {
            memory.transfer
        };
        for t in &other.tasks {
            // Jobs present at some time of the window arrived at most a deadline before it.
            let jobs = window
                .saturating_add(t.task.deadline)
                .div_ceil(t.task.period);
            sum = sum.saturating_add(jobs.saturating_mul(t.accesses).saturating_mul(each));
        }
    }
    sum
}

fn response(
    memory: &Memory,
    cores: &[Core],
    core: usize,
    index: usize,
    each: Time,
    driven: Driven,
) -> Option<Time> {
    let tasks = &cores[core].tasks;
    let own = &tasks[index];
    // A lower-priority task may have an outstanding request, which is waited for.
    let pending = tasks[index + 1..].iter().any(|t| t.accesses > 0);
    let blocking = if pending {
        memory.open.saturating_add(memory.transfer)
    } else {
        0
    };
    let mut response = own.task.cost;
    for _ in 0..STEPS_MAX / 10 {
        let mut work = own
            .task
            .cost
            .saturating_add(own.task.blocking)
            .saturating_add(blocking);
        let mut requests = own.accesses.saturating_add(u64::from(pending));
        for t in &tasks[..index] {
            let jobs = response.div_ceil(t.task.period);
            work = work.saturating_add(jobs.saturating_mul(t.task.cost));
            requests = requests.saturating_add(jobs.saturating_mul(t.accesses));
        }
        let by_requests = requests.saturating_mul(each);
        let delay = match driven {
            Driven::Request => by_requests,
            Driven::Both if requests == 0 => 0,
            Driven::Both => by_requests.min(in_window(memory, cores, core, response)),
        };
        let next = work.saturating_add(delay);
        if next > own.task.deadline {
            return None;
        }
        if next <= response {
            return Some(response);
        }
        response = next;
    }
    None
}

#[cfg(test)]
#[path = "memory_banks_tests.rs"]
mod tests;
