//! Processors with their own tasks: fixed priorities, thresholds, without preemption, earliest deadline first.
//!
//! Unit by unit. On a processor, in this order: during a stall nothing happens; the kernel finishes what it has begun;
//! handlers and releases run in the order of their requests; then the scheduler chooses the job to run, and a switch takes
//! its time. A job pays one decision when it starts and one when it ends, and one each time it is blocked midway and
//! released again. A job's body has places where it touches the memory, enters and leaves sections, and holds the memory
//! mutex.

use std::collections::VecDeque;

use bulkhead_model::tasks::{MutexOrder, Policy, TaskSystem};

use crate::arrivals::{self, Arrival, Span, ns};
use crate::random::Random;

/// What is at a place of a job's body.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Mark {
    Leave(usize),
    EndPhase,
    Enter(usize),
    BeginPhase,
    Access,
}

struct Job {
    /// Of the system; none for whatever the description calls `blocking`.
    task: Option<usize>,
    arrival: u64,
    number: usize,
    cost: u64,
    done: u64,
    began: u64,
    started: bool,
    marks: Vec<(u64, Mark)>,
    next: usize,
    held: Vec<usize>,
    in_phase: bool,
    /// Of a blocker: it runs before tasks from this rank on.
    ceiling: usize,
}

enum Operation {
    Handler,
    Release(Arrival),
    Decision,
}

struct Core {
    number: u32,
    pending: VecDeque<(Operation, u64)>,
    operation: Option<(Operation, u64)>,
    ready: Vec<Job>,
    current: Option<usize>,
    after_end: bool,
    stalled: bool,
    used: u64,
    spinning: bool,
    granted: bool,
}

struct Mutex {
    order: Option<MutexOrder>,
    holder: Option<u32>,
    queue: Vec<(u64, u32)>,
}

/// Longest responses in one run.
pub fn run(system: &TaskSystem, random: &mut Random) -> Vec<u64> {
    let span = arrivals::span(system, random);
    let jobs = arrivals::jobs(system, span, random);
    Processors::run(system, span, jobs, random).worst
}

/// All jobs that ended in a run with these arrivals, in the order of their ends.
pub fn ended(
    system: &TaskSystem,
    span: Span,
    jobs: Vec<Arrival>,
    random: &mut Random,
) -> Vec<Ended> {
    Processors::run(system, span, jobs, random).ended
}

/// A job that is over.
#[derive(Clone, Copy, Debug)]
pub struct Ended {
    pub task: usize,
    pub arrival: u64,
    /// When its body began, decisions not included.
    pub began: u64,
    pub end: u64,
}

/// One run of a system.
struct Processors<'a> {
    system: &'a TaskSystem,
    /// Position of each task by priority on its processor; smaller goes first.
    rank: Vec<usize>,
    /// The rank before which tasks may preempt a job that has started.
    threshold: Vec<usize>,
    resources: Vec<&'a str>,
    /// Sections raise their holder's priority immediately, not only when a job waits.
    immediate: bool,
    /// Where regulation periods begin.
    phase: u64,
    jobs: usize,
    now: u64,
    worst: Vec<u64>,
    ended: Vec<Ended>,
}

impl<'a> Processors<'a> {
    fn run(system: &'a TaskSystem, span: Span, jobs: Vec<Arrival>, random: &mut Random) -> Self {
        let mut order: Vec<usize> = (0..system.tasks.len()).collect();
        let monotonic = system.policy == Policy::RateMonotonic;
        order.sort_by_key(|&i| {
            let t = &system.tasks[i];
            if monotonic {
                (0, t.period, i)
            } else {
                (t.priority.unwrap_or(0), t.period, i)
            }
        });
        let mut rank = vec![0; order.len()];
        for (position, &task) in order.iter().enumerate() {
            rank[task] = position;
        }
        let threshold = (0..order.len())
            .map(|i| match (system.policy, system.tasks[i].threshold) {
                (Policy::NonPreemptive | Policy::OneShot, _) => 0,
                (Policy::Threshold, Some(t)) => order
                    .iter()
                    .filter(|&&o| system.tasks[o].priority.is_some_and(|p| p < t))
                    .count(),
                _ => rank[i],
            })
            .collect();
        let mut resources: Vec<&str> = system
            .tasks
            .iter()
            .flat_map(|t| t.sections.iter().map(|s| s.resource.as_str()))
            .collect();
        resources.sort_unstable();
        resources.dedup();
        let period = system.memguard.map_or(1, |guard| ns(guard.period));
        let mut this = Self {
            system,
            rank,
            threshold,
            resources,
            immediate: random.one_in(2),
            phase: random.below(period),
            jobs: 0,
            now: 0,
            worst: vec![0; system.tasks.len()],
            ended: Vec::new(),
        };
        this.follow(span, jobs.into(), random);
        this
    }

    fn follow(&mut self, span: Span, mut releases: VecDeque<Arrival>, random: &mut Random) {
        let system = self.system;
        let mut interrupts: Vec<(u64, u32, u64)> = Vec::new();
        for device in &system.devices {
            if let Some((distance, cost)) = device.interrupts {
                let cost = ns(cost) + ns(system.overheads.interrupt);
                for at in arrivals::interrupts(ns(distance), span, random) {
                    interrupts.push((at, device.core, cost));
                }
            }
        }
        interrupts.sort_unstable();
        let mut interrupts: VecDeque<_> = interrupts.into();
        let mut cores: Vec<Core> = (0..system.processors)
            .map(|number| Core {
                number,
                pending: VecDeque::new(),
                operation: None,
                ready: Vec::new(),
                current: None,
                after_end: false,
                stalled: false,
                used: 0,
                spinning: false,
                granted: false,
            })
            .collect();
        let mut mutex = Mutex {
            order: system.mutex,
            holder: None,
            queue: Vec::new(),
        };
        while self.now < span.end {
            while interrupts.front().is_some_and(|i| i.0 <= self.now) {
                let (_, core, cost) = interrupts.pop_front().unwrap();
                let pending = &mut cores[core as usize].pending;
                if random.one_in(2) {
                    pending.push_front((Operation::Handler, cost));
                } else {
                    pending.push_back((Operation::Handler, cost));
                }
            }
            while releases.front().is_some_and(|r| r.release <= self.now) {
                let arrival = releases.pop_front().unwrap();
                let core = &mut cores[system.tasks[arrival.task].core.unwrap() as usize];
                let release = ns(system.overheads.release);
                core.pending
                    .push_back((Operation::Release(arrival), release));
            }
            if mutex.holder.is_none() && !mutex.queue.is_empty() {
                let first = match mutex.order {
                    Some(MutexOrder::Core) => {
                        mutex.queue.iter().enumerate().min_by_key(|(_, q)| q.1)
                    }
                    _ => mutex.queue.iter().enumerate().min_by_key(|(_, q)| q.0),
                };
                let (_, core) = mutex.queue.remove(first.unwrap().0);
                mutex.holder = Some(core);
                cores[core as usize].granted = true;
            }
            // The processor that checks first changes, so that none is favoured.
            let first = random.below(cores.len() as u64) as usize;
            for turn in 0..cores.len() {
                let index = (first + turn) % cores.len();
                self.tick(&mut cores[index], &mut mutex, random);
            }
            self.now += 1;
        }
        for core in &cores {
            for job in &core.ready {
                if let Some(task) = job.task {
                    self.worst[task] = self.worst[task].max(self.now - job.arrival);
                }
            }
        }
    }

    fn tick(&mut self, core: &mut Core, mutex: &mut Mutex, random: &mut Random) {
        let regulation = self.system.memguard;
        if let Some(guard) = regulation
            && (self.now + self.phase).is_multiple_of(ns(guard.period))
        {
            core.used = 0;
            core.stalled = false;
        }
        loop {
            if core.stalled {
                return;
            }
            if core.operation.is_none()
                && let Some((operation, cost)) = core.pending.pop_front()
            {
                core.operation = Some((operation, cost));
            }
            if let Some((operation, left)) = &mut core.operation {
                let spent = *left > 0;
                *left = left.saturating_sub(1);
                if *left == 0 {
                    if let Operation::Release(arrival) = operation {
                        let job = self.job(*arrival, random);
                        core.ready.push(job);
                    }
                    core.operation = None;
                }
                if spent {
                    return;
                }
                continue;
            }
            let Some(index) = self.choose(core) else {
                core.current = None;
                match self.blocker(core, random) {
                    Some(job) => core.ready.push(job),
                    None => return,
                }
                continue;
            };
            let decision = ns(self.system.overheads.schedule);
            let number = core.ready[index].number;
            if core.current != Some(number) {
                let job = &mut core.ready[index];
                let pays = job.task.is_some() && (!job.started || !core.after_end);
                job.started = true;
                core.current = Some(number);
                core.after_end = false;
                if pays && decision > 0 {
                    core.operation = Some((Operation::Decision, decision));
                    continue;
                }
            }
            if !self.pass_marks(core, index, mutex) {
                if core.spinning {
                    return;
                }
                continue;
            }
            let job = &mut core.ready[index];
            if job.done == 0 {
                job.began = self.now;
            }
            job.done += 1;
            if job.done == job.cost {
                // What is at the very end.
                let held_mutex = job.in_phase;
                let job = core.ready.remove(index);
                if held_mutex {
                    mutex.holder = None;
                    core.granted = false;
                }
                core.current = None;
                core.after_end = true;
                if let Some(task) = job.task {
                    self.worst[task] = self.worst[task].max(self.now + 1 - job.arrival);
                    self.ended.push(Ended {
                        task,
                        arrival: job.arrival,
                        began: job.began,
                        end: self.now + 1,
                    });
                    if decision > 0 {
                        core.operation = Some((Operation::Decision, decision));
                    }
                }
            } else {
                // Sections and phases end with their last unit.
                let (done, next) = (job.done, job.next);
                if let Some(&(at, Mark::EndPhase)) = job.marks.get(next)
                    && at == done
                {
                    job.next += 1;
                    job.in_phase = false;
                    core.granted = false;
                    mutex.holder = None;
                }
            }
            return;
        }
    }

    /// Passes what comes before the next unit of a job; false if the job cannot continue now.
    fn pass_marks(&self, core: &mut Core, index: usize, mutex: &mut Mutex) -> bool {
        loop {
            let job = &core.ready[index];
            let Some(&(at, mark)) = job.marks.get(job.next) else {
                return true;
            };
            if at > job.done {
                return true;
            }
            match mark {
                Mark::Leave(resource) => core.ready[index].held.retain(|&r| r != resource),
                Mark::Enter(resource) => core.ready[index].held.push(resource),
                Mark::EndPhase => {
                    core.ready[index].in_phase = false;
                    core.granted = false;
                    mutex.holder = None;
                }
                Mark::BeginPhase => {
                    if mutex.order.is_some() && !core.granted {
                        if mutex.holder.is_none() && mutex.queue.is_empty() {
                            mutex.holder = Some(core.number);
                            core.granted = true;
                        } else {
                            if !core.spinning {
                                mutex.queue.push((self.now, core.number));
                                core.spinning = true;
                            }
                            return false;
                        }
                    }
                    core.spinning = false;
                    core.ready[index].in_phase = true;
                }
                Mark::Access => {
                    let share = self.system.share(Some(core.number));
                    let budget = share.and_then(|s| s.budget).unwrap_or(u64::MAX);
                    if self.system.memguard.is_some() {
                        if core.used >= budget {
                            core.stalled = true;
                            return false;
                        }
                        core.used += 1;
                    }
                }
            }
            core.ready[index].next += 1;
            // What was left or ended may let another job go first.
            if matches!(mark, Mark::Leave(_) | Mark::EndPhase) {
                return false;
            }
        }
    }

    fn ceiling(&self, resource: usize) -> usize {
        let name = self.resources[resource];
        let users = self.system.tasks.iter().enumerate();
        users
            .filter(|(_, t)| t.sections.iter().any(|s| s.resource == name))
            .map(|(i, _)| self.rank[i])
            .min()
            .unwrap_or(usize::MAX)
    }

    /// Which job should run: an index of the ready jobs.
    fn choose(&self, core: &Core) -> Option<usize> {
        let current = core
            .ready
            .iter()
            .position(|j| Some(j.number) == core.current);
        if let Some(index) = current
            && (core.spinning || core.ready[index].in_phase)
        {
            return Some(index);
        }
        // Jobs of a task run in their order.
        let first = |index: &usize| {
            let job = &core.ready[*index];
            job.task.is_none()
                || !core
                    .ready
                    .iter()
                    .any(|o| o.task == job.task && o.number < job.number)
        };
        let key = |index: &usize| -> (u64, usize) {
            let job = &core.ready[*index];
            let Some(task) = job.task else {
                return ((2 * job.ceiling) as u64, 0);
            };
            if self.system.policy == Policy::Edf {
                return (
                    job.arrival + ns(self.system.tasks[task].deadline),
                    job.number,
                );
            }
            let mut level = 2 * self.rank[task] + 1;
            if job.started && self.threshold[task] < self.rank[task] {
                level = 2 * self.threshold[task];
            }
            if self.immediate {
                for &resource in &job.held {
                    level = level.min(2 * self.ceiling(resource));
                }
            }
            (level as u64, job.number)
        };
        let mut best = (0..core.ready.len()).filter(first).min_by_key(key)?;
        // Under inheritance, a job that is refused a resource lets the holder run.
        for _ in 0..core.ready.len() {
            let job = &core.ready[best];
            let wants = job.marks.get(job.next).filter(|(at, _)| *at <= job.done);
            let (Some((_, Mark::Enter(_))), Some(task), false) = (wants, job.task, self.immediate)
            else {
                break;
            };
            let holder = (0..core.ready.len())
                .filter(|&other| other != best)
                .flat_map(|other| {
                    core.ready[other]
                        .held
                        .iter()
                        .map(move |&r| (self.ceiling(r), other))
                })
                .min();
            match holder {
                Some((ceiling, other)) if ceiling <= self.rank[task] => best = other,
                _ => break,
            }
        }
        Some(best)
    }

    /// When no job wants to run: something that the description calls `blocking`.
    fn blocker(&mut self, core: &Core, random: &mut Random) -> Option<Job> {
        let here = |i: &usize| self.system.tasks[*i].core == Some(core.number);
        let longest = (0..self.system.tasks.len())
            .filter(here)
            .map(|i| ns(self.system.tasks[i].blocking))
            .max()?;
        if longest == 0 || !random.one_in(4) {
            return None;
        }
        let length = random.between(1, longest);
        // It may hold up tasks that allow for it, down to the lowest: from the rank below which all do.
        let mut ceiling = usize::MAX;
        let mut ranks: Vec<usize> = (0..self.system.tasks.len()).filter(here).collect();
        ranks.sort_by_key(|&i| std::cmp::Reverse(self.rank[i]));
        for i in ranks {
            if ns(self.system.tasks[i].blocking) < length {
                break;
            }
            ceiling = self.rank[i];
        }
        if ceiling == usize::MAX {
            return None;
        }
        self.jobs += 1;
        Some(Job {
            task: None,
            arrival: self.now,
            number: self.jobs,
            cost: length,
            done: 0,
            began: 0,
            started: true,
            marks: Vec::new(),
            next: 0,
            held: Vec::new(),
            in_phase: false,
            ceiling,
        })
    }

    /// A job with its places.
    fn job(&mut self, arrival: Arrival, random: &mut Random) -> Job {
        self.jobs += 1;
        let task = &self.system.tasks[arrival.task];
        let cost = arrival.needs(ns(task.cost.unwrap())).max(1);
        let mut marks = Vec::new();
        // Sections and the phase, one after the other, with what is left of the cost between them.
        let mut parts: Vec<(u64, Mark, Mark)> = task
            .sections
            .iter()
            .filter(|s| s.length.0 > 0)
            .map(|s| {
                let resource = self
                    .resources
                    .iter()
                    .position(|r| *r == s.resource)
                    .unwrap();
                (ns(s.length), Mark::Enter(resource), Mark::Leave(resource))
            })
            .collect();
        if task.memory_phase.0 > 0 {
            parts.push((ns(task.memory_phase), Mark::BeginPhase, Mark::EndPhase));
        }
        let parts = random.shuffled(parts);
        let mut spare = cost.saturating_sub(parts.iter().map(|p| p.0).sum());
        let mut at = 0;
        for (length, begin, end) in parts {
            if at + length > cost {
                break;
            }
            let gap = random.below(spare + 1);
            spare -= gap;
            at += gap;
            marks.push((at, begin));
            at += length;
            if at < cost {
                marks.push((at, end));
            }
        }
        if let Some(guard) = self.system.memguard {
            // Those that take no time are anywhere, as many as there are.
            let each = ns(guard.access);
            let most = match each {
                0 => task.accesses,
                _ => task.accesses.min(cost / each),
            };
            // At the begin, at the end, or anywhere.
            let style = random.below(3);
            let mut free = match each {
                0 => cost - 1,
                _ => cost - most * each,
            };
            let mut at = if style == 1 { free } else { 0 };
            for _ in 0..most {
                if style == 2 {
                    let gap = random.below(free / 2 + 1);
                    free -= gap;
                    at += gap;
                }
                marks.push((at, Mark::Access));
                at += each;
            }
        }
        marks.sort_unstable();
        Job {
            task: Some(arrival.task),
            arrival: arrival.arrival,
            number: self.jobs,
            cost,
            done: 0,
            began: 0,
            started: false,
            marks,
            next: 0,
            held: Vec::new(),
            in_phase: false,
            ceiling: usize::MAX,
        }
    }
}
