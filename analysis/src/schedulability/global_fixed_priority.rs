//! Preemptive global fixed priorities on identical processors: response-time bounds.
//!
//! Method: N. Guan, M. Stigge, W. Yi, G. Yu, *New response time bounds for fixed priority multiprocessor scheduling*, RTSS 2009, the
//! analysis for constrained deadlines: at most `processors - 1` tasks carry work of a job into the analysed window, which is where the
//! bound of M. Bertogna and M. Cirinei (RTSS 2007) is improved.
//!
//! Assumptions: sporadic tasks, deadlines within periods, any task may run on any processor but a job on one at a time, no
//! overheads. Jitter and blocking are not covered. Sufficient.

use super::fixed_priority::STEPS_MAX;
use super::task::{self, Task, TaskError, Time, validate_constrained};

/// Bounds on response times by decreasing priority, also of tasks that miss their deadlines. `None` from the first task on whose
/// bound exceeds its period, because the bounds of lower tasks rest on one carried-in job of each.
///
/// # Errors
/// [`TaskError`] if a parameter is out of range or not covered.
pub fn response_times(tasks: &[Task], processors: usize) -> Result<Vec<Option<Time>>, TaskError> {
    check(tasks, processors)?;
    let mut known = Analysis::default();
    let mut all: Vec<_> = tasks
        .iter()
        .map_while(|t| known.add(t, processors).map(Some))
        .collect();
    all.resize(tasks.len(), None);
    Ok(all)
}

/// Whether the bound of every task is within its deadline.
///
/// # Errors
/// [`TaskError`] if a parameter is out of range or not covered.
pub fn schedulable(tasks: &[Task], processors: usize) -> Result<bool, TaskError> {
    check(tasks, processors)?;
    let mut known = Analysis::default();
    Ok(tasks
        .iter()
        .all(|t| known.add(t, processors).is_some_and(|r| r <= t.deadline)))
}

fn check(tasks: &[Task], processors: usize) -> Result<(), TaskError> {
    if processors == 0 {
        return Err(TaskError::Zero("the number of processors"));
    }
    validate_constrained(tasks)?;
    task::refuse(tasks, &[task::JITTER, task::BLOCKING])
}

/// A task that has been analysed.
#[derive(Clone, Copy, Debug)]
struct Known {
    cost: Time,
    period: Time,
    response: Time,
}

/// Work of a task in the window: without and with a job carried in.
#[derive(Clone, Copy, Debug)]
struct Work {
    without: Time,
    with: Time,
}

/// The tasks analysed so far, by decreasing priority, and memory to be reused.
#[derive(Debug, Default)]
struct Analysis {
    tasks: Vec<Known>,
    work: Vec<Work>,
}

impl Analysis {
    /// Analyses the next task; `None` if it may take longer than its period.
    fn add(&mut self, task: &Task, processors: usize) -> Option<Time> {
        let cost = task.cost;
        let mut window = cost;
        if window > task.period {
            return None;
        }
        // As many tasks as processors never wait.
        if self.tasks.len() >= processors {
            // A job that responds within `window` leaves `room` in which the others do not fill all processors.
            let longest = task.period - cost + 1;
            let mut room = 1;
            let mut steps = 0;
            while let Some(next) = self.next_room(cost, room, processors) {
                steps += 1;
                if next > longest || steps > STEPS_MAX / 10 {
                    return None;
                }
                room = next;
            }
            window = cost + room - 1;
        }
        self.tasks.push(Known {
            cost,
            period: task.period,
            response: window,
        });
        Some(window)
    }

    /// `None` if the others do not fill `room`; else the least room that is still possible.
    ///
    /// The published iteration moves by single ticks while more tasks than processors fill the room. Work never shrinks with the window, so
    /// the work in the current one says how far the room must grow at least, and no solution is skipped.
    fn next_room(&mut self, cost: Time, room: Time, processors: usize) -> Option<Time> {
        let window = cost + room - 1;
        self.work.clear();
        for t in &self.tasks {
            // Without carry-in: jobs released at the start and as early as possible.
            let (full, rest) = (window / t.period, window % t.period);
            let without = full * t.cost + rest.min(t.cost);
            // With carry-in: the last job ends as early as it can, the first as late as it may.
            let body = window.saturating_sub(t.cost);
            let (full, rest) = (body / t.period, body % t.period);
            let carried = (rest + t.response).saturating_sub(t.period).min(t.cost - 1);
            self.work.push(Work {
                without,
                with: full * t.cost + t.cost + carried,
            });
        }
        // The tasks that gain most from a carried-in job have one: put them first.
        let carriers = (processors - 1).min(self.work.len());
        let gain = |w: &Work| w.with.min(room).saturating_sub(w.without.min(room));
        if carriers > 0 && carriers < self.work.len() {
            self.work
                .select_nth_unstable_by(carriers - 1, |a, b| gain(b).cmp(&gain(a)));
        }
        for (index, work) in self.work.iter_mut().enumerate() {
            if index < carriers {
                work.without = work.with.max(work.without);
            }
        }
        // From here on `without` is the work that counts.
        let processors = processors as Time;
        let mut next = room;
        loop {
            let (mut below, mut filling, mut least) = (0u64, 0u64, Time::MAX);
            for work in &self.work {
                if work.without < next {
                    // Too much work is never room; sums of thousands of tasks may leave 64 bits.
                    below = below.saturating_add(work.without);
                } else {
                    filling += 1;
                    least = least.min(work.without);
                }
            }
            let filled = filling.saturating_mul(next).saturating_add(below);
            if filled < processors.saturating_mul(next) {
                return (next > room).then_some(next);
            }
            // Up to `least` the same tasks fill the room.
            let enough = if filling < processors {
                below / (processors - filling) + 1
            } else {
                Time::MAX
            };
            next = enough.min(least.saturating_add(1)).max(next + 1);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::fixed_priority;
    use super::super::simulation::{Policy, Simulation};
    use super::*;
    use proptest::prelude::*;

    /// Worked example of Guan et al. 2009: two processors.
    #[test]
    fn worked_example() {
        let tasks = [(1, 4), (1, 5), (3, 9), (9, 18)].map(|(c, t)| Task::new(c, t));
        assert_eq!(response_times(&tasks, 2).unwrap(), [1, 1, 4, 15].map(Some));
        // The same on three, as SchedCAT's implementation says.
        assert_eq!(response_times(&tasks, 3).unwrap(), [1, 1, 3, 12].map(Some));
    }

    #[test]
    fn refuses_what_it_does_not_cover() {
        assert!(response_times(&[Task::new(1, 4)], 0).is_err());
        assert!(response_times(&[Task::constrained(1, 4, 5)], 2).is_err());
        assert!(response_times(&[Task::new(1, 4).with_jitter(1)], 2).is_err());
        // After a task that may be late, nothing is known.
        let tasks = [Task::new(3, 4), Task::new(3, 4), Task::new(1, 100)];
        assert_eq!(response_times(&tasks, 1).unwrap(), [Some(3), None, None]);
    }

    fn systems() -> impl Strategy<Value = Vec<Task>> {
        let period = prop::sample::select(vec![4u64, 5, 6, 8, 10, 12, 15, 20, 24]);
        let task =
            (1u64..8, period, 1u64..25).prop_map(|(c, t, d)| Task::constrained(c, t, d.min(t)));
        prop::collection::vec(task, 1..8)
    }

    /// The iteration as published: one step of `cost + interference / processors` at a time, followed up to the period, as for a task whose
    /// deadline that is.
    fn as_published(tasks: &[Task], processors: usize) -> Vec<Option<Time>> {
        let mut known: Vec<Known> = Vec::new();
        for task in tasks {
            let mut window = task.cost;
            while known.len() >= processors && window <= task.period {
                let cap = window - task.cost + 1;
                let (mut sum, mut gains) = (0, Vec::new());
                for t in &known {
                    let without =
                        (window / t.period * t.cost + (window % t.period).min(t.cost)).min(cap);
                    let body = window.saturating_sub(t.cost);
                    let early = (body % t.period)
                        .saturating_sub(t.period - t.response)
                        .min(t.cost - 1);
                    let with = (body / t.period * t.cost + t.cost + early).min(cap);
                    sum += without;
                    gains.push(with.saturating_sub(without));
                }
                gains.sort_unstable_by(|a, b| b.cmp(a));
                sum += gains.iter().take(processors - 1).sum::<u64>();
                let next = task.cost + sum / processors as u64;
                if next <= window {
                    break;
                }
                window = next;
            }
            if window > task.period {
                break;
            }
            known.push(Known {
                cost: task.cost,
                period: task.period,
                response: window,
            });
        }
        (0..tasks.len())
            .map(|i| known.get(i).map(|k| k.response))
            .collect()
    }

    proptest! {
        #[test]
        fn equals_the_published_iteration(
            parts in prop::collection::vec((1u64..200, 50u64..900, 1u64..900), 1..12),
            processors in 1usize..5,
        ) {
            let tasks: Vec<_> = parts.iter().map(|&(c, t, d)| Task::constrained(c, t, d.min(t))).collect();
            let published = as_published(&tasks, processors);
            let in_time = published.iter().zip(&tasks).all(|(r, t)| r.is_some_and(|r| r <= t.deadline));
            prop_assert_eq!(response_times(&tasks, processors).unwrap(), published);
            prop_assert_eq!(schedulable(&tasks, processors).unwrap(), in_time);
        }

        #[test]
        fn no_simulation_is_worse(tasks in systems(), processors in 1usize..4, seed: u64) {
            let bounds = response_times(&tasks, processors).unwrap();
            let simulation = Simulation::new(Policy::FixedPriority, processors);
            for outcome in [simulation.random(&tasks, 1500, seed), simulation.synchronous(&tasks, 1000)] {
                for (bound, seen) in bounds.iter().zip(&outcome.responses) {
                    if let Some(bound) = bound { prop_assert!(seen <= bound, "{} > {}", seen, bound); }
                }
            }
        }

        /// On one processor nobody carries in, and the bound is the exact response time.
        #[test]
        fn exact_on_one_processor(tasks in systems()) {
            let exact = fixed_priority::response_times(&tasks).unwrap();
            for ((bound, exact), task) in response_times(&tasks, 1).unwrap().into_iter().zip(exact).zip(&tasks) {
                let Some(bound) = bound else { break };
                prop_assert_eq!(Some(bound), exact);
                prop_assert!(bound <= task.period);
            }
        }

        #[test]
        fn more_is_worse_and_more_processors_are_not(tasks in systems(), processors in 1usize..4, which in any::<prop::sample::Index>()) {
            let before = response_times(&tasks, processors).unwrap();
            let more = response_times(&tasks, processors + 1).unwrap();
            let mut heavier = tasks.clone();
            heavier[which.index(tasks.len())].cost += 1;
            let after = response_times(&heavier, processors).unwrap();
            for i in 0..tasks.len() {
                if let Some(b) = before[i] {
                    prop_assert!(after[i].is_none_or(|a| a >= b));
                    prop_assert!(more[i].is_some_and(|m| m <= b));
                }
            }
        }
    }
}
