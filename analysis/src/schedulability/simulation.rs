//! An exact discrete-event simulator of schedulers, to test the analyses against.
//!
//! Why it exists: a bound that is below what a real schedule does is wrong, whatever its proof says. The simulator knows
//! releases and policies only; it shares no formula with the tests. Every job runs for its whole cost. It serves small
//! systems and makes no attempt to be fast.

use super::task::{Task, Time};

/// The policy.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Policy {
    /// The task that is listed first, preemptively.
    FixedPriority,
    /// The task that is listed first; a started job runs to its end.
    NonPreemptive,
    /// The task that is listed first; once started, a job is preempted only by tasks before this index (one for each task,
    /// at most its own index: 0 is not preemptible at all).
    Threshold(Vec<usize>),
    /// The job with the earliest deadline, preemptively; ties by index.
    EarliestDeadline,
}

/// The results of a simulation, for each task.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Outcome {
    /// Longest time from arrival to completion of any job that completed.
    pub responses: Vec<Time>,
    /// Whether a job completed after its deadline, or was late at the end.
    pub missed: Vec<bool>,
}

/// A part of a schedule: a job of `task` runs on `processor`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize)]
pub struct Segment {
    /// Index of the task.
    pub task: usize,
    /// Number of the processor; jobs are put on any that is free.
    pub processor: usize,
    /// From the common release on.
    pub start: Time,
    /// The first moment after it.
    pub end: Time,
}

/// A number of processors under a policy, all of them shared by all tasks.
#[derive(Clone, Debug)]
pub struct Simulation {
    policy: Policy,
    processors: usize,
}

#[derive(Clone, Copy, Debug)]
struct Job {
    task: usize,
    left: Time,
    started: bool,
}

impl Simulation {
    /// At least one processor.
    pub fn new(policy: Policy, processors: usize) -> Self {
        Self {
            policy,
            processors: processors.max(1),
        }
    }

    /// Releases all tasks at 0 and as often as possible until `horizon`. The first job is released as late as its jitter
    /// allows and the others as early as they may, which is the worst case of a single processor.
    pub fn synchronous(&self, tasks: &[Task], horizon: Time) -> Outcome {
        self.run(tasks, Self::from(tasks, &[], horizon), horizon, &mut |_| {})
    }

    /// What runs when, if the first job of each task arrives at its moment in `first` (0 for those that it does not name) less the task's
    /// jitter, and the others as early as they may: with all of them 0, the releases of [`Self::synchronous`]. Segments are in the order of
    /// their start, each as long as a job runs on a processor without a break. Jobs that were released before `horizon` run to their end,
    /// also after it.
    pub fn schedule(
        &self,
        tasks: &[Task],
        first: &[Time],
        horizon: Time,
    ) -> (Vec<Segment>, Outcome) {
        let mut all: Vec<Segment> = Vec::new();
        let releases = Self::from(tasks, first, horizon);
        let outcome = self.run(tasks, releases, horizon, &mut |segment: Segment| {
            let same = all.iter_mut().rev().take(self.processors).find(|last| {
                last.end == segment.start
                    && (last.task, last.processor) == (segment.task, segment.processor)
            });
            match same {
                Some(last) => last.end = segment.end,
                None => all.push(segment),
            }
        });
        (all, outcome)
    }

    fn from(tasks: &[Task], first: &[Time], horizon: Time) -> Vec<Release> {
        let releases = tasks.iter().enumerate().flat_map(|(index, task)| {
            let first = first.get(index).copied().unwrap_or(0);
            (0u64..)
                .map(move |k| first.saturating_add(k.saturating_mul(task.period)))
                // Times are shifted by the jitter: an arrival lies `jitter` before the release that it may be late for.
                .map(move |arrival| (arrival, arrival.saturating_sub(task.jitter)))
                .take_while(move |(_, release)| *release < horizon)
                .map(move |(arrival, release)| Release {
                    release: release.into(),
                    task: index,
                    arrival: i128::from(arrival) - i128::from(task.jitter),
                })
        });
        releases.collect()
    }

    /// Releases with random distances and jitters until `horizon`; mostly the densest that is allowed.
    pub fn random(&self, tasks: &[Task], horizon: Time, seed: u64) -> Outcome {
        let mut random = Random(seed | 1);
        let mut list = Vec::new();
        for (index, task) in tasks.iter().enumerate() {
            let mut arrival = if random.below(2) == 0 {
                0
            } else {
                random.below(2 * task.period)
            };
            let mut last = 0;
            while arrival < horizon {
                let late = match random.below(3) {
                    0 => 0,
                    1 => task.jitter,
                    _ => random.below(task.jitter + 1),
                };
                // Jobs of a task are released in the order of their arrival.
                last = last.max(arrival + late);
                list.push(Release {
                    release: last.into(),
                    task: index,
                    arrival: arrival.into(),
                });
                let gap = if random.below(4) == 0 {
                    random.below(task.period)
                } else {
                    0
                };
                arrival += task.period + gap;
            }
        }
        self.run(tasks, list, horizon, &mut |_| {})
    }

    fn run(
        &self,
        tasks: &[Task],
        mut releases: Vec<Release>,
        horizon: Time,
        record: &mut dyn FnMut(Segment),
    ) -> Outcome {
        releases.sort_by_key(|r| (r.release, r.task, r.arrival));
        let mut outcome = Outcome {
            responses: vec![0; tasks.len()],
            missed: vec![false; tasks.len()],
        };
        let mut jobs: Vec<(Job, i128)> = Vec::new();
        let mut now: i128 = 0;
        let mut next = 0;
        loop {
            while releases.get(next).is_some_and(|r| r.release <= now) {
                let r = releases[next];
                let job = Job {
                    task: r.task,
                    left: tasks[r.task].cost,
                    started: false,
                };
                jobs.push((job, r.arrival));
                next += 1;
            }
            let until = releases.get(next).map(|r| r.release);
            if jobs.is_empty() {
                match until {
                    Some(at) => now = at,
                    None => break,
                }
                continue;
            }
            let chosen = self.choose(tasks, &jobs);
            let first_end = chosen.iter().map(|&c| jobs[c].0.left).min().unwrap_or(0);
            let mut step = i128::from(first_end);
            if let Some(until) = until {
                step = step.min(until - now);
            }
            now += step;
            for (processor, &c) in chosen.iter().enumerate() {
                record(Segment {
                    task: jobs[c].0.task,
                    processor,
                    start: (now - step) as Time,
                    end: now as Time,
                });
            }
            for &c in &chosen {
                jobs[c].0.left -= step as Time;
                jobs[c].0.started = true;
            }
            jobs.retain(|(job, arrival)| {
                if job.left == 0 {
                    let response = (now - arrival) as Time;
                    outcome.responses[job.task] = outcome.responses[job.task].max(response);
                    outcome.missed[job.task] |= response > tasks[job.task].deadline;
                }
                job.left > 0
            });
            if now > i128::from(horizon) * 4 {
                // Overload: what is left is late forever.
                for (job, arrival) in &jobs {
                    outcome.missed[job.task] |=
                        now - arrival > i128::from(tasks[job.task].deadline);
                }
                break;
            }
        }
        outcome
    }

    /// Indices of the jobs that run now. A task's jobs run in sequence.
    fn choose(&self, tasks: &[Task], jobs: &[(Job, i128)]) -> Vec<usize> {
        let mut order: Vec<usize> = (0..jobs.len())
            .filter(|&i| !jobs[..i].iter().any(|(j, _)| j.task == jobs[i].0.task))
            .collect();
        order.sort_by_key(|&i| {
            let (job, arrival) = &jobs[i];
            match &self.policy {
                Policy::FixedPriority => (job.task as i128, 0),
                Policy::NonPreemptive => (
                    if job.started { -1 } else { job.task as i128 },
                    job.task as i128,
                ),
                // A started job competes with its threshold, before tasks of that index.
                Policy::Threshold(levels) if job.started => (2 * levels[job.task] as i128 - 1, 0),
                Policy::Threshold(_) => (2 * job.task as i128, 0),
                Policy::EarliestDeadline => (
                    arrival + i128::from(tasks[job.task].deadline),
                    job.task as i128,
                ),
            }
        });
        order.truncate(self.processors);
        order
    }
}

#[derive(Clone, Copy, Debug)]
struct Release {
    release: i128,
    task: usize,
    arrival: i128,
}

/// A small generator of our own, so that a failing case is its seed.
struct Random(u64);

impl Random {
    fn below(&mut self, bound: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 11) % bound.max(1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// (2, 5) and (4, 9) from 0: 0-2 first, 2-5 second, 5-7 first, 7-8 second: responses 2 and 8.
    #[test]
    fn fixed_priority_by_hand() {
        let tasks = [Task::new(2, 5), Task::new(4, 9)];
        let outcome = Simulation::new(Policy::FixedPriority, 1).synchronous(&tasks, 45);
        assert_eq!(outcome.responses, [2, 8]);
        // Without preemption the second runs 2-6, so the first job that comes at 5 ends at 8.
        let outcome = Simulation::new(Policy::NonPreemptive, 1).synchronous(&tasks, 9);
        assert_eq!(outcome.responses, [3, 6]);
        // Two processors: no job waits.
        let outcome = Simulation::new(Policy::FixedPriority, 2).synchronous(&tasks, 45);
        assert_eq!(outcome.responses, [2, 4]);
    }

    /// The schedule of the example above, as a picture needs it.
    #[test]
    fn segments_by_hand() {
        let tasks = [Task::new(2, 5), Task::new(4, 9)];
        let (found, outcome) = Simulation::new(Policy::FixedPriority, 1).schedule(&tasks, &[], 9);
        assert_eq!(outcome.responses, [2, 8]);
        let found: Vec<_> = found.iter().map(|s| (s.task, s.start, s.end)).collect();
        assert_eq!(found, [(0, 0, 2), (1, 2, 5), (0, 5, 7), (1, 7, 8)]);
        let (both, _) = Simulation::new(Policy::FixedPriority, 2).schedule(&tasks, &[], 5);
        let both: Vec<_> = both
            .iter()
            .map(|s| (s.task, s.processor, s.start, s.end))
            .collect();
        assert_eq!(both, [(0, 0, 0, 2), (1, 1, 0, 2), (1, 0, 2, 4)]);
        // The second arrives one later: the same schedule, and a response of one less.
        let (later, outcome) =
            Simulation::new(Policy::FixedPriority, 1).schedule(&tasks, &[0, 1], 9);
        let later: Vec<_> = later.iter().map(|s| (s.task, s.start, s.end)).collect();
        assert_eq!(later, [(0, 0, 2), (1, 2, 5), (0, 5, 7), (1, 7, 8)]);
        assert_eq!(outcome.responses, [2, 7]);
    }

    /// Deadlines 5 and 3: the second goes first.
    #[test]
    fn earliest_deadline_by_hand() {
        let tasks = [Task::constrained(2, 10, 5), Task::constrained(2, 10, 3)];
        let outcome = Simulation::new(Policy::EarliestDeadline, 1).synchronous(&tasks, 10);
        assert_eq!(
            (outcome.responses, outcome.missed),
            (vec![4, 2], vec![false, false])
        );
        let late = [Task::constrained(2, 10, 2), Task::constrained(2, 10, 2)];
        assert_eq!(
            Simulation::new(Policy::EarliestDeadline, 1)
                .synchronous(&late, 10)
                .missed,
            [false, true]
        );
    }
}
