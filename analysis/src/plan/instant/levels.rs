//! The picture of the mixed-criticality kernel: tables, below them rate-monotonic priorities, below them global earliest deadline
//! first, and finally tasks without a promise.
//!
//! What it deliberately does not know: [`crate::plan::levels`], the bounds.

use std::collections::VecDeque;

use bulkhead_model::tasks::TaskSystem;

use super::stage::{Coming, Stage};
use super::{CriticalInstant, Part};
use crate::plan::prepare::{self, nanoseconds};

struct Job {
    coming: Coming,
    /// In the order of release.
    number: usize,
    left: u64,
    started: bool,
}

/// A processor.
#[derive(Default)]
struct Core {
    /// The work of the kernel that comes before anything else: how long, and the job that results.
    kernel: VecDeque<(u64, Option<Coming>)>,
    running: Option<usize>,
    interrupts: Vec<(u64, u64)>,
}

struct World<'a> {
    system: &'a TaskSystem,
    stage: Stage,
    cores: Vec<Core>,
    jobs: Vec<Job>,
    released: usize,
    now: u64,
}

/// The picture.
///
/// # Errors
/// Why there is none.
pub fn picture(system: &TaskSystem, tasks: &[usize]) -> Result<CriticalInstant, String> {
    let cores = (0..system.processors).map(|core| Core {
        interrupts: prepare::interrupts(system, core),
        ..Core::default()
    });
    let mut world = World {
        system,
        stage: Stage::new(system, tasks.to_vec(), |own| own.max('C'))?,
        cores: cores.collect(),
        jobs: Vec::new(),
        released: 0,
        now: 0,
    };
    while world.now < world.stage.length {
        world.come();
        world.choose();
        world.pass();
    }
    let mut notes = vec![
        "Jobs of all levels run for what level C estimates; levels A and B are judged with estimates of their own, which are longer.",
        "With several processors, jobs that all come at once need not be the worst case, so a response may be longer than here.",
    ];
    if !system.periodic && !system.tables.is_empty() {
        notes.push("Jobs of level A come with the table here. They need not: bounds count that they just miss their slots.");
    }
    Ok(world.stage.finish(notes))
}

impl World<'_> {
    fn level(&self, job: &Job) -> char {
        self.task(job).criticality
    }

    fn task(&self, job: &Job) -> &bulkhead_model::tasks::Task {
        &self.system.tasks[self.stage.tasks[job.coming.task]]
    }

    fn start(&mut self, coming: Coming) {
        self.released += 1;
        self.jobs.push(Job {
            coming,
            number: self.released,
            left: self.stage.costs[coming.task],
            started: false,
        });
    }

    /// Handles arrivals of this moment, and work that the kernel has finished.
    fn come(&mut self) {
        let release = nanoseconds(self.system.overheads.release);
        let now = self.now;
        for core in &mut self.cores {
            for (distance, cost) in &core.interrupts {
                if now.is_multiple_of((*distance).max(1)) {
                    core.kernel.push_back((*cost, None));
                }
            }
        }
        for (number, coming) in self.stage.released(now).into_iter().enumerate() {
            let core = self.system.tasks[self.stage.tasks[coming.task]].core;
            let core = core.map_or(number, |core| core as usize) % self.cores.len();
            self.cores[core].kernel.push_back((release, Some(coming)));
        }
        for core in 0..self.cores.len() {
            while let Some((0, job)) = self.cores[core].kernel.front().copied() {
                self.cores[core].kernel.pop_front();
                if let Some(job) = job {
                    self.start(job);
                }
            }
        }
    }

    /// A task's jobs run in sequence.
    fn is_first(&self, job: &Job) -> bool {
        let mut others = self.jobs.iter();
        !others.any(|o| o.coming.task == job.coming.task && o.number < job.number)
    }

    fn is_below(&self, number: Option<usize>) -> bool {
        let job = self.jobs.iter().find(|job| Some(job.number) == number);
        job.is_none_or(|job| self.level(job) >= 'C')
    }

    /// The job of levels A and B that a processor runs.
    fn important(&self, core: u32) -> Option<usize> {
        let mut tables = self.system.tables.iter();
        let table = tables.find(|table| table.core == core && table.length.0 > 0);
        let slot = table.and_then(|table| {
            let place = self.now % nanoseconds(table.length);
            let mut slots = table.slots.iter();
            slots.find(|slot| {
                let start = nanoseconds(slot.start);
                (start..start + nanoseconds(slot.length)).contains(&place)
            })
        });
        let own = slot.and_then(|slot| {
            let jobs = self.jobs.iter();
            let own = jobs.filter(|job| self.stage.tasks[job.coming.task] == slot.task);
            own.map(|job| job.number).min()
        });
        let second = || {
            let jobs = self.jobs.iter().filter(|job| self.is_first(job));
            let here =
                jobs.filter(|job| self.level(job) == 'B' && self.task(job).core == Some(core));
            let first = here.min_by_key(|job| (self.task(job).period, job.coming.task));
            first.map(|job| job.number)
        };
        own.or_else(second)
    }

    fn choose(&mut self) {
        let number = |core: usize| u32::try_from(core).unwrap_or(u32::MAX);
        for core in 0..self.cores.len() {
            if !self.cores[core].kernel.is_empty() {
                continue;
            }
            let next = self.important(number(core)).or_else(|| {
                // A running job of level C may continue.
                let running = self.cores[core].running;
                let mut jobs = self.jobs.iter();
                running.filter(|n| jobs.any(|j| j.number == *n && self.level(j) >= 'C'))
            });
            self.cores[core].running = next;
        }
        let is_free = |core: &Core| core.kernel.is_empty() && self.is_below(core.running);
        let (free, others): (Vec<usize>, Vec<usize>) =
            (0..self.cores.len()).partition(|&core| is_free(&self.cores[core]));
        let stuck: Vec<usize> = others
            .iter()
            .filter_map(|&c| self.cores[c].running)
            .collect();
        let able = self.jobs.iter().filter(|job| {
            self.level(job) >= 'C' && !stuck.contains(&job.number) && self.is_first(job)
        });
        let mut able: Vec<&Job> = able.collect();
        // Tasks without a promise come last.
        able.sort_by_key(|job| {
            let task = self.task(job);
            let implicit = job.coming.release.saturating_add(nanoseconds(task.period));
            (task.criticality.max('C'), implicit, job.number)
        });
        able.truncate(free.len());
        let mut chosen: Vec<usize> = able.iter().map(|job| job.number).collect();
        for &core in &free {
            let core = &mut self.cores[core];
            match core.running.filter(|n| chosen.contains(n)) {
                Some(n) => chosen.retain(|other| *other != n),
                None => core.running = None,
            }
        }
        for &core in &free {
            let core = &mut self.cores[core];
            if core.running.is_none() {
                core.running = chosen.pop();
            }
        }
    }

    /// Lets time pass until something changes.
    fn pass(&mut self) {
        let decision = nanoseconds(self.system.overheads.schedule);
        let running: Vec<Option<usize>> = self.cores.iter().map(|core| core.running).collect();
        for job in &mut self.jobs {
            if !job.started && running.contains(&Some(job.number)) {
                job.started = true;
                job.left += decision;
            }
        }
        let end = self
            .next()
            .clamp(self.now + 1, self.stage.length.max(self.now + 1));
        let (start, passed) = (self.now, end - self.now);
        for number in 0..self.cores.len() {
            let core = &mut self.cores[number];
            let processor = u32::try_from(number).unwrap_or(u32::MAX);
            if let Some((left, _)) = core.kernel.front_mut() {
                *left -= passed.min(*left);
                self.stage.kernel(processor, (start, end));
                continue;
            }
            let Some(job) = self
                .jobs
                .iter_mut()
                .find(|job| Some(job.number) == core.running)
            else {
                continue;
            };
            job.left -= passed.min(job.left);
            self.stage
                .job(job.coming, processor, (start, end), Part::Runs);
            if job.left == 0 {
                self.stage.done(job.coming, end);
                let done = job.number;
                self.jobs.retain(|job| job.number != done);
                core.running = None;
                if decision > 0 {
                    core.kernel.push_front((decision, None));
                }
            }
        }
        self.now = end;
    }

    /// When something changes next.
    fn next(&self) -> u64 {
        let now = self.now;
        let mut next = self.stage.next_release();
        for core in &self.cores {
            for (distance, _) in &core.interrupts {
                let distance = (*distance).max(1);
                next = next.min((now / distance + 1) * distance);
            }
            let job = || {
                self.jobs
                    .iter()
                    .find(|job| Some(job.number) == core.running)
            };
            let left = match core.kernel.front() {
                Some((left, _)) => Some(*left),
                None => job().map(|job| job.left),
            };
            next = next.min(left.map_or(u64::MAX, |left| now + left));
        }
        for table in self.system.tables.iter().filter(|table| table.length.0 > 0) {
            let length = nanoseconds(table.length);
            let place = now % length;
            let bounds = table.slots.iter().flat_map(|slot| {
                let start = nanoseconds(slot.start);
                [start, start + nanoseconds(slot.length)]
            });
            let bound = bounds.filter(|at| *at > place).min().unwrap_or(length);
            next = next.min(now + bound - place);
        }
        next
    }
}
