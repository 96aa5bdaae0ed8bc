//! Strictly periodic tasks with offsets on one processor: exact response times by following the schedule until it repeats.
//!
//! Why it exists: the other tests take arrivals as sporadic, so that offsets cannot help; where the k-th job of a task arrives
//! exactly k periods after its offset, tasks that never meet do not disturb each other.
//!
//! Method: J. Leung, M. Merrill, *A note on preemptive scheduling of periodic, real-time tasks*, Information Processing Letters 11(3),
//! 1980: the schedule of a deterministic policy repeats with the hyperperiod once all tasks have arrived. It is followed from time 0 until
//! the remaining work is the same at the same point of two hyperperiods. This proves that everything repeats from there on, whatever the
//! deadlines are.
//!
//! Assumptions: preemptive, independent, jobs of a task in their order, no jitter, no blocking. Jobs that need less than their
//! cost are never worse (fixed priorities and earliest deadline first are sustainable on one processor). Exact.

use super::task::{Task, TaskError, Time, common_multiple, validate};
use super::utilisation::compare_with;
use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};

/// Maximum jobs followed; a longer hyperperiod is left to tests that do not need one.
pub const JOBS_MAX: u64 = 20_000;

/// Which job goes first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Order {
    /// The task that is listed first.
    FixedPriority,
    /// The earliest absolute deadline. Of several jobs with the same deadline, any may go first.
    EarliestDeadline,
}

/// Longest response times. The outer `None`: the schedule is too long to be followed ([`JOBS_MAX`]); an inner one: the task (with
/// fixed priorities: together with those before it) needs more than the processor.
///
/// # Errors
/// [`TaskError`] if a parameter is out of range, an offset is missing, or a task has jitter or blocking.
pub fn response_times(
    tasks: &[Task],
    offsets: &[Time],
    order: Order,
) -> Result<Option<Vec<Option<Time>>>, TaskError> {
    validate(tasks)?;
    for (index, task) in tasks.iter().enumerate() {
        let what = match offsets.get(index) {
            None => "a task without an offset",
            Some(offset) if *offset > super::task::LIMIT => {
                return Err(TaskError::TooLarge {
                    task: index,
                    what: "offset",
                });
            }
            Some(_) if task.jitter > 0 => "jitter",
            Some(_) if task.blocking > 0 => "blocking",
            Some(_) => continue,
        };
        return Err(TaskError::NotCovered { task: index, what });
    }
    // Backlog grows forever only if demand exceeds capacity.
    let bounded = match order {
        Order::FixedPriority => (0..tasks.len())
            .take_while(|&last| compare_with(&tasks[..=last], 1).is_le())
            .count(),
        Order::EarliestDeadline if compare_with(tasks, 1).is_gt() => 0,
        Order::EarliestDeadline => tasks.len(),
    };
    let (tasks_bounded, offsets) = (&tasks[..bounded], &offsets[..bounded]);
    let responses = match order {
        Order::FixedPriority => follow(tasks_bounded, offsets, order, None),
        // The task whose response is examined goes last among those with the same deadline.
        Order::EarliestDeadline => (0..bounded)
            .map(|last| Some(follow(tasks_bounded, offsets, order, Some(last))?[last]))
            .collect(),
    };
    let Some(responses) = responses else {
        return Ok(None);
    };
    let mut all: Vec<Option<Time>> = responses.into_iter().map(Some).collect();
    all.resize(tasks.len(), None);
    Ok(Some(all))
}

/// The least common multiple of positive periods, unless a hyperperiod has more than [`JOBS_MAX`] jobs.
pub fn hyperperiod(periods: impl Iterator<Item = Time> + Clone) -> Option<Time> {
    let length = common_multiple(periods.clone())?;
    let jobs = periods.fold(0u64, |sum, period| {
        sum.saturating_add(length / period.max(1))
    });
    (jobs <= JOBS_MAX && length < 1 << 60).then_some(length)
}

/// A task in the schedule: when its next job arrives, and its jobs that have arrived, each with its arrival and what is left.
struct Running {
    next: Time,
    jobs: VecDeque<(Time, Time)>,
}

fn follow(
    tasks: &[Task],
    offsets: &[Time],
    order: Order,
    last: Option<usize>,
) -> Option<Vec<Time>> {
    let length = hyperperiod(tasks.iter().map(|task| task.period))?;
    let start = offsets.iter().copied().max().unwrap_or(0);
    let mut worst = vec![0; tasks.len()];
    let mut state: Vec<Running> = offsets
        .iter()
        .map(|&next| Running {
            next,
            jobs: VecDeque::new(),
        })
        .collect();
    let mut arrivals: BinaryHeap<Reverse<(Time, usize)>> = offsets
        .iter()
        .enumerate()
        .map(|(index, &next)| Reverse((next, index)))
        .collect();
    // First jobs of tasks, by who goes first.
    let mut ready: BinaryHeap<Reverse<(Time, bool, usize)>> = BinaryHeap::new();
    let key = |index: usize, arrival: Time| match order {
        Order::FixedPriority => (0, false, index),
        Order::EarliestDeadline => (arrival + tasks[index].deadline, last == Some(index), index),
    };
    let (mut now, mut seen) = (0u64, 0u64);
    let mut look = start;
    let mut before: Option<Vec<Vec<Time>>> = None;
    while let Some(&Reverse((next, _))) = arrivals.peek() {
        // Run until the next arrival or the next look, whichever is sooner.
        let until = next.min(look);
        while now < until {
            let Some(&Reverse((.., index))) = ready.peek() else {
                now = until;
                break;
            };
            let (arrival, left) = state[index]
                .jobs
                .front_mut()
                .map(|job| (job.0, &mut job.1))?;
            let run = (*left).min(until - now);
            *left -= run;
            now += run;
            if *left == 0 {
                worst[index] = worst[index].max(now - arrival);
                ready.pop();
                state[index].jobs.pop_front();
                if let Some(&(arrival, _)) = state[index].jobs.front() {
                    ready.push(Reverse(key(index, arrival)));
                }
            }
        }
        if now == look {
            // Jobs that arrive now are not in the state: they arrive in each hyperperiod.
            let left: Vec<Vec<Time>> = state
                .iter()
                .map(|one| one.jobs.iter().map(|job| job.1).collect())
                .collect();
            if before.as_ref() == Some(&left) {
                return Some(worst);
            }
            before = Some(left);
            look = look.checked_add(length)?;
        }
        while let Some(&Reverse((arrival, index))) = arrivals.peek() {
            if arrival > now {
                break;
            }
            arrivals.pop();
            seen += 1;
            // A few hyperperiods are enough in every case known; more is too much work.
            if seen > 4 * JOBS_MAX {
                return None;
            }
            let task = &tasks[index];
            if state[index].jobs.is_empty() {
                ready.push(Reverse(key(index, arrival)));
            }
            state[index].jobs.push_back((arrival, task.cost));
            state[index].next = arrival.checked_add(task.period)?;
            arrivals.push(Reverse((state[index].next, index)));
        }
    }
    // Without tasks there is nothing to follow.
    Some(worst)
}

#[cfg(test)]
mod tests {
    use super::super::{edf, fixed_priority};
    use super::*;
    use proptest::prelude::*;

    fn fixed(tasks: &[Task], offsets: &[Time]) -> Vec<Option<Time>> {
        response_times(tasks, offsets, Order::FixedPriority)
            .unwrap()
            .unwrap()
    }

    /// By hand: two tasks of cost 2 and period 4 that never meet, then a second one too long for the gap.
    #[test]
    fn offsets_keep_tasks_apart() {
        let tasks = [Task::new(2, 4), Task::new(2, 4)];
        assert_eq!(fixed(&tasks, &[0, 0]), [Some(2), Some(4)]);
        assert_eq!(fixed(&tasks, &[0, 2]), [Some(2), Some(2)]);
        // Arriving at 1, the second waits one unit.
        assert_eq!(fixed(&tasks, &[0, 1]), [Some(2), Some(3)]);
        let over = [Task::new(2, 4), Task::new(3, 4)];
        assert_eq!(fixed(&over, &[0, 2]), [Some(2), None]);
        assert_eq!(
            response_times(&over, &[0, 2], Order::EarliestDeadline).unwrap(),
            Some(vec![None, None])
        );
    }

    /// Tasks that the synchronous test refuses and offsets make schedulable: the second task's deadline of 3 holds only if it
    /// does not meet the first. By hand: at 0 the first runs 2; at 2 the second runs 2, and so on in a period of 6.
    #[test]
    fn offsets_decide() {
        let tasks = [Task::new(2, 6), Task::constrained(2, 6, 3), Task::new(2, 6)];
        assert_eq!(fixed(&tasks, &[0, 0, 0])[1], Some(4));
        assert_eq!(fixed(&tasks, &[0, 2, 4]), [Some(2), Some(2), Some(2)]);
        assert!(!edf::schedulable(&[tasks[1]; 2]).unwrap());
        let edf = response_times(&[tasks[1]; 2], &[0, 3], Order::EarliestDeadline).unwrap();
        assert_eq!(edf, Some(vec![Some(2), Some(2)]));
    }

    #[test]
    fn refuses_what_it_does_not_cover() {
        let one = [Task::new(1, 4)];
        assert!(response_times(&one, &[], Order::FixedPriority).is_err());
        assert!(response_times(&one, &[u64::MAX], Order::FixedPriority).is_err());
        let late = [one[0].with_jitter(1)];
        assert!(response_times(&late, &[0], Order::FixedPriority).is_err());
        // A hyperperiod beyond reach.
        let long = [Task::new(1, 1_000_003), Task::new(1, 1_000_033)];
        assert_eq!(
            response_times(&long, &[0, 5], Order::FixedPriority),
            Ok(None)
        );
        assert_eq!(
            response_times(&[], &[], Order::FixedPriority),
            Ok(Some(vec![]))
        );
    }

    /// Unit by unit, as the definition has it, over many hyperperiods.
    fn unit_by_unit(tasks: &[Task], offsets: &[Time], order: Order) -> Vec<Time> {
        (0..tasks.len())
            .map(|observed| observe(tasks, offsets, order, observed))
            .collect()
    }

    /// The longest response of one task, which goes last of those with the same deadline.
    fn observe(tasks: &[Task], offsets: &[Time], order: Order, observed: usize) -> Time {
        let mut worst = vec![0; tasks.len()];
        let mut jobs: Vec<(usize, Time, Time)> = Vec::new();
        for now in 0..2_000u64 {
            for (index, task) in tasks.iter().enumerate() {
                if now >= offsets[index] && (now - offsets[index]).is_multiple_of(task.period) {
                    jobs.push((index, now, task.cost));
                }
            }
            let first = |job: &&mut (usize, Time, Time)| match order {
                Order::FixedPriority => (job.0 as u64, job.1, 0),
                Order::EarliestDeadline => (
                    job.1 + tasks[job.0].deadline,
                    u64::from(job.0 == observed),
                    job.1,
                ),
            };
            if let Some(job) = jobs.iter_mut().min_by_key(first) {
                job.2 -= 1;
                if job.2 == 0 {
                    worst[job.0] = worst[job.0].max(now + 1 - job.1);
                }
            }
            jobs.retain(|job| job.2 > 0);
        }
        worst[observed]
    }

    fn systems() -> impl Strategy<Value = Vec<(Task, Time)>> {
        let period = prop::sample::select(vec![2u64, 3, 4, 5, 6, 8, 10, 12, 15]);
        let task = (1u64..5, period, 1u64..30, 0u64..20)
            .prop_map(|(c, t, d, o)| (Task::constrained(c, t, d), o));
        prop::collection::vec(task, 1..5)
    }

    proptest! {
        #[test]
        fn equals_the_definition(system in systems()) {
            let (tasks, offsets): (Vec<Task>, Vec<Time>) = system.into_iter().unzip();
            for order in [Order::FixedPriority, Order::EarliestDeadline] {
                let found = response_times(&tasks, &offsets, order).unwrap().unwrap();
                let seen = unit_by_unit(&tasks, &offsets, order);
                for (found, seen) in found.iter().zip(seen) {
                    if let Some(found) = found { prop_assert_eq!(*found, seen); }
                }
            }
        }

        /// The synchronous case is the worst, and all offsets 0 are that case.
        #[test]
        fn never_worse_than_sporadic(system in systems()) {
            let (tasks, offsets): (Vec<Task>, Vec<Time>) = system.into_iter().unzip();
            let sporadic = fixed_priority::response_times(&tasks).unwrap();
            for (exact, bound) in fixed(&tasks, &offsets).iter().zip(&sporadic) {
                prop_assert!(bound.is_none() || exact.is_some_and(|e| e <= bound.unwrap()));
            }
            prop_assert_eq!(fixed(&tasks, &vec![0; tasks.len()]), sporadic);
            if edf::schedulable(&tasks).unwrap() {
                let found = response_times(&tasks, &offsets, Order::EarliestDeadline).unwrap().unwrap();
                prop_assert!(found.iter().zip(&tasks).all(|(r, t)| r.is_some_and(|r| r <= t.deadline)));
            }
        }

        /// Jobs that end early are never worse: each cost one less.
        #[test]
        fn sustainable(system in systems()) {
            let (tasks, offsets): (Vec<Task>, Vec<Time>) = system.into_iter().unzip();
            let lighter: Vec<Task> = tasks.iter().map(|t| Task { cost: (t.cost - 1).max(1), ..*t }).collect();
            for (light, heavy) in fixed(&lighter, &offsets).iter().zip(fixed(&tasks, &offsets)) {
                prop_assert!(heavy.is_none() || light.is_some_and(|l| l <= heavy.unwrap()));
            }
        }
    }
}
