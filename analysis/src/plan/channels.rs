//! Latency of channels and chains, messages in queues, bytes in buffers.
//!
//! Why it exists: data can be late for reasons other than late tasks. What it deliberately does not know: where response times come from.
//!
//! Sampling: a message may come just after the port was read, so one polling period and the reader's jitter precede the reader's response,
//! as in [`crate::schedulability::one_shot`]. Queue: in a window of length t each writer puts in at most `(t + R_w + transfer) / T_w + 1`
//! messages and the reader takes at least `(t - R_r) / T_r - 1`. If the sum of `T_r / T_w` of all writers is at most 1, the difference is largest at its start, so at
//! most B = `R_r / T_r + 1`, and `(R_w + transfer) / T_w + 1` for each writer, messages wait. A message is taken at the latest by the B-th job that arrives after it,
//! because the reader takes messages in the order in which they were put in.
//!
//! Notified: a message releases its reader. The reader's jobs arrive at least a period apart, which is no longer than the writer's, and a
//! release is at most the reader's jitter before the end of its period. If the k-th message of a writer arrives at `k T + J` at the latest,
//! and each of the reader's jobs ends within a period of its release, then the k-th job is also released by `k T + J`: by then the message
//! of job k - 1 has arrived, that job has ended, and its period is over (a greedy shaper costs no delay: J.-Y. Le Boudec, P. Thiran,
//! *Network Calculus*, 2001, theorem 1.5.2). So a message takes the writer's response, the transfer, and the reader's response from its
//! release. A writer that is itself released by messages may be released earlier than a period after its previous job, by its jitter; a
//! bound that counts from there adds that.
//!
//! Parallel section: a task writes slices and waits within its job for the results of its helpers, which wait within their jobs for slices.
//! All are released together. A response R and a cost C contain the wait W, after which a job gives up. A job that hands out slices has
//! done so by `R - W`, and a helper has its slice then; the helper ends by `R_h - W_h` if it did not wait, or `C_h - W_h` after the slice.
//!
//! Without a bound, it is certain that an item may never arrive or that more and more wait: a task has no time, a reader is slower or may never look. Or nobody knows,
//! and nothing is judged: no cost is known, a lock may be taken for too long, or a job may end after its period.
//!
//! Assumptions: readers are strictly periodic (otherwise polled channels and buffers have no bound) or released by messages; a job writes
//! at most once, before its end, and reads after its start.

use bulkhead_model::tasks::{Channel, ChannelKind, Direction, Parallel, TaskSystem, Unbounded};
use bulkhead_model::units::Time;

use super::prepare::nanoseconds;
use super::{Constraint, Kind, Unit};
use crate::exact::{Exact, floor, integer, ratio};

/// Bounds of channels, queues, buffers and chains. `responses`: of each task, from arrival.
pub fn constraints(system: &TaskSystem, responses: &[Option<u64>], all: &mut Vec<Constraint>) {
    for (index, channel) in system.channels.iter().enumerate() {
        if channel.parallel.is_some() {
            let mut constraint = Constraint::new(
                Kind::Channel,
                &channel.name,
                handed(system, index, responses),
                Some(nanoseconds(system.tasks[channel.to].wait)),
                Unit::Nanoseconds,
                "slices and results of a parallel section, within the reader's wait",
            );
            // The helper answers the slice.
            let is_result = channel.parallel == Some(Parallel::Result);
            let slice = system.partner(index).filter(|_| is_result);
            let route: Vec<usize> = slice.into_iter().chain([index]).collect();
            explain(&mut constraint, system, &route, responses);
            all.push(constraint);
            continue;
        }
        let mut constraint = Constraint::new(
            Kind::Channel,
            &channel.name,
            beginning(system, channel.from, responses)
                .and_then(|r| r.checked_add(hop(system, index, responses)?)),
            channel.deadline.map(nanoseconds),
            Unit::Nanoseconds,
            match (channel.notify, channel.kind) {
                (true, _) => "notification (greedy shaper: Le Boudec and Thiran 2001)",
                (false, ChannelKind::Sampling) => "polled sampling port (Davare et al. 2007)",
                (false, ChannelKind::Queue) => "queue, one message a job",
            },
        );
        if channel.kind == ChannelKind::Queue {
            let mut queue = Constraint::new(
                Kind::Queue,
                &channel.name,
                backlog(system, index, responses),
                Some(u64::from(channel.slots)),
                Unit::Count,
                "most messages that wait",
            );
            explain(&mut queue, system, &[index], responses);
            // The queue's own channel says what waits in it.
            if channel.joins.is_none() {
                all.push(queue);
            }
        }
        explain(&mut constraint, system, &[index], responses);
        // Where nothing is required, nothing is reported.
        if channel.deadline.is_some() || constraint.bound.is_some() {
            all.push(constraint);
        }
    }
    for flow in &system.flows {
        let route = system.route(flow.from, flow.to).ok();
        let bound = route.as_ref().and_then(|route| {
            route
                .iter()
                .try_fold(beginning(system, flow.from, responses)?, |sum, &channel| {
                    sum.checked_add(hop(system, channel, responses)?)
                })
        });
        let mut constraint = Constraint::new(
            Kind::Flow,
            &flow.name,
            bound,
            flow.deadline.map(nanoseconds),
            Unit::Nanoseconds,
            "responses and waits along the chain (Davare et al. 2007)",
        );
        match route.as_deref() {
            // It ends where it begins.
            Some([]) => constraint.explain(system.tasks[flow.from].unbounded.as_ref()),
            Some(route) => explain(&mut constraint, system, route, responses),
            None => {}
        }
        if flow.deadline.is_some() || constraint.bound.is_some() {
            all.push(constraint);
        }
    }
    for device in &system.devices {
        let (Some(rate), Some(task), Some(buffer)) = (device.rate, device.task, device.buffer)
        else {
            continue;
        };
        let periodic = responses[task].filter(|_| system.periodic);
        let bytes = periodic.and_then(|response| {
            let wait = u128::from(response) + u128::from(nanoseconds(system.tasks[task].period));
            let both = if device.direction == Direction::Both {
                2
            } else {
                1
            };
            let bytes = u128::from(rate.0).checked_mul(wait)?.checked_mul(both)?;
            u64::try_from(bytes.div_ceil(1_000_000_000)).ok()
        });
        all.push(Constraint::new(
            Kind::Buffer,
            &device.name,
            bytes,
            Some(buffer.0),
            Unit::Bytes,
            "data of one period and one response of its task",
        ));
    }
}

/// Says why items that take these channels have no bound, if a constraint on them has none, and whether that is a failure.
fn explain(
    constraint: &mut Constraint,
    system: &TaskSystem,
    route: &[usize],
    responses: &[Option<u64>],
) {
    if constraint.bound.is_none() {
        constraint.explain(endless(system, route, responses).as_ref());
    }
}

/// Why items that take these channels have no bound. What is certain comes first. `None`: a task on the way has none, which its own constraint explains, or with
/// sporadic arrivals a reader may never come.
fn endless(system: &TaskSystem, route: &[usize], responses: &[Option<u64>]) -> Option<Unbounded> {
    let channels = || route.iter().map(|&one| &system.channels[one]);
    // Whoever writes into a queue keeps the others' messages waiting.
    let ports = route.iter().flat_map(|&one| system.sharing(one));
    let ports: Vec<&Channel> = ports.map(|one| &system.channels[one]).collect();
    let ends = ports.iter().flat_map(|one| [one.from, one.to]);
    let tasks: Vec<usize> = ends.collect();
    let reasons = || {
        tasks
            .iter()
            .filter_map(|&task| system.tasks[task].unbounded.as_ref())
    };
    let mut certain = reasons().filter(|one| matches!(one, Unbounded::Overloaded(_)));
    if let Some(why) = certain.next() {
        return Some(why.clone());
    }
    let polled = || {
        route
            .iter()
            .filter(|&&one| !system.channels[one].notify && system.channels[one].parallel.is_none())
    };
    let queued = || polled().filter(|&&one| system.channels[one].kind == ChannelKind::Queue);
    if let Some(&queue) = queued().find(|&&one| slower(system, one)) {
        let writers = match system.sharing(queue).len() {
            2.. => "its writers together",
            _ => "the writer",
        };
        let reader = match route {
            [_] => "the reader".to_owned(),
            _ => format!("the reader of {}", system.channels[queue].name),
        };
        let why = format!("{reader} is slower than {writers}");
        return Some(Unbounded::Overloaded(why));
    }
    let readers = || polled().map(|&one| system.channels[one].to);
    if let Some(reader) = readers().find(|&task| system.told_by(task).is_some()) {
        let why = format!(
            "only other messages release `{}`, so it may never look",
            system.tasks[reader].name
        );
        return Some(Unbounded::Overloaded(why));
    }
    let has_time =
        |task: &usize| responses[*task].is_some() || system.tasks[*task].unbounded.is_some();
    if !tasks.iter().all(has_time) || (!system.periodic && polled().next().is_some()) {
        return None;
    }
    let unknown = reasons().chain(ports.iter().filter_map(|one| one.unbounded.as_ref()));
    if let Some(why) = unknown.into_iter().next() {
        return Some(why.clone());
    }
    // Their bounds are those of jobs that end within their periods.
    let mut early = channels().filter(|one| one.notify || one.parallel.is_some());
    early.find_map(|one| {
        let late = |task: &usize| {
            responses[*task]
                .is_some_and(|response| response > nanoseconds(system.tasks[*task].period))
        };
        let late = [one.from, one.to].into_iter().find(late)?;
        let what = match one.notify {
            true => "items that release their reader",
            false => "parallel sections",
        };
        Some(Unbounded::Unknown(format!(
            "a job of `{}` may end after its period, and bounds of {what} hold for earlier ones",
            system.tasks[late].name
        )))
    })
}

/// From the common release of a section's jobs until a slice or result has arrived. A reader whose job begins immediately waits this long.
fn handed(system: &TaskSystem, channel: usize, responses: &[Option<u64>]) -> Option<u64> {
    // From the release to the end of a job that waits for nothing: its response includes the wait.
    let without = |task: usize| {
        let one = &system.tasks[task];
        let response = responses[task].filter(|response| *response <= nanoseconds(one.period))?;
        response.checked_sub(nanoseconds(one.wait))
    };
    let one = &system.channels[channel];
    let core = |task: usize| system.tasks[task].core;
    if !system.periodic || core(one.from) == core(one.to) {
        return None;
    }
    let written = without(one.from)?;
    let transfer = transfer(one)?;
    if one.parallel == Some(Parallel::Slice) {
        return written.checked_add(transfer);
    }
    // The helper's job has the slice when it begins, or continues when the slice arrives.
    let slice = handed(system, system.partner(channel)?, responses)?;
    let rest = nanoseconds(system.tasks[one.from].cost.unwrap_or(Time(0)))
        .checked_sub(nanoseconds(system.tasks[one.from].wait))?;
    written.max(slice.checked_add(rest)?).checked_add(transfer)
}

/// Whether the reader of a polled channel polls once in each of its periods. It may never poll if its jobs arrive at arbitrary times, or if
/// other messages release it.
fn looks(system: &TaskSystem, channel: &Channel) -> bool {
    system.periodic && system.told_by(channel.to).is_none()
}

/// Whether messages of all writers together arrive faster than they are taken.
fn slower(system: &TaskSystem, channel: usize) -> bool {
    let period = |task: usize| nanoseconds(system.tasks[task].period);
    let reader = period(system.channels[channel].to);
    let sharing = system.sharing(channel).into_iter();
    // For each job of the reader, the jobs of all writers.
    let jobs = sharing.map(|one| ratio(reader, period(system.channels[one].from)));
    let all: Option<Exact> = jobs.sum();
    all.is_none_or(|all| all > integer(1))
}

/// From the release of a job to its end, and how much later a period may end after the next release.
fn beginning(system: &TaskSystem, task: usize, responses: &[Option<u64>]) -> Option<u64> {
    let early = system
        .told_by(task)
        .map_or(0, |_| nanoseconds(system.tasks[task].jitter));
    responses[task]?.checked_add(early)
}

/// How long a message is on its way, in nanoseconds, if that has a bound.
fn transfer(channel: &Channel) -> Option<u64> {
    channel
        .unbounded
        .is_none()
        .then(|| nanoseconds(channel.transfer))
}

/// From the end of the writing job to the end of the reading job.
fn hop(system: &TaskSystem, index: usize, responses: &[Option<u64>]) -> Option<u64> {
    let channel = &system.channels[index];
    let reader = &system.tasks[channel.to];
    let period = nanoseconds(reader.period);
    let wait = match channel.kind {
        _ if channel.notify => {
            let writer = nanoseconds(system.tasks[channel.from].period);
            responses[channel.from].filter(|response| *response <= writer)?;
            responses[channel.to].filter(|response| *response <= period)?;
            0
        }
        _ if !looks(system, channel) => return None,
        ChannelKind::Sampling => period.checked_add(nanoseconds(reader.jitter))?,
        ChannelKind::Queue => backlog(system, index, responses)?.checked_mul(period)?,
    };
    transfer(channel)?
        .checked_add(wait)?
        .checked_add(responses[channel.to]?)
}

/// Maximum messages waiting in a queue, of all its writers.
fn backlog(system: &TaskSystem, index: usize, responses: &[Option<u64>]) -> Option<u64> {
    let channel = &system.channels[index];
    // A notified reader whose clock is slower is only slower by the drift, which is a part of the transfer.
    if slower(system, index) && !channel.notify {
        return None;
    }
    if channel.notify {
        // A message is present at most from the writer's release until the reader's job ends.
        let stay = beginning(system, channel.from, responses)?
            .checked_add(hop(system, index, responses)?)?;
        return Some(stay.div_ceil(nanoseconds(system.tasks[channel.from].period).max(1)));
    }
    if !looks(system, channel) {
        return None;
    }
    let period = |task: usize| nanoseconds(system.tasks[task].period);
    let mut most = integer(1) + ratio(responses[channel.to]?, period(channel.to))?;
    for one in system.sharing(index) {
        let one = &system.channels[one];
        let write = integer(beginning(system, one.from, responses)?) + integer(transfer(one)?);
        most += integer(1) + write / integer(period(one.from));
    }
    floor(&most)
}
