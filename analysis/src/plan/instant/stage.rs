//! Shared by the simulations of pictures: arriving releases, and what was seen.
//!
//! Why it exists: every picture has the same releases and the same rows. What it deliberately does not know: which job runs.

use std::collections::VecDeque;

use bulkhead_model::tasks::TaskSystem;

use super::{CriticalInstant, JOBS, JOBS_EACH, Part, Row, Run, jobs, readable};
use crate::plan::prepare::{self, nanoseconds};
use crate::schedulability::Task;

/// A job that comes.
#[derive(Clone, Copy, Debug)]
pub struct Coming {
    /// Index in [`Stage::tasks`].
    pub task: usize,
    /// When it is released.
    pub release: u64,
    /// When it must be done.
    pub due: u64,
    /// Number of the job of its task.
    pub number: u64,
}

/// A picture in the making: all first jobs are released at 0, as late as their jitter allows, and further ones as early as they
/// may.
pub struct Stage {
    /// Indices of its tasks, one row each.
    pub tasks: Vec<usize>,
    /// Costs of jobs without additions, in the order of [`Self::tasks`].
    pub costs: Vec<u64>,
    /// Length of the picture.
    pub length: u64,
    /// Jobs, by release.
    pub coming: VecDeque<Coming>,
    parameters: Vec<Task>,
    kernel: bool,
    runs: Vec<Run>,
    responses: Vec<u64>,
    first_jobs: usize,
    /// When the last of the first jobs was done.
    first_done: u64,
}

impl Stage {
    /// A picture of these tasks, with costs at the level that `level` gives for a task: its own, or a common one.
    ///
    /// # Errors
    /// Why there is no picture, in words.
    pub fn new(
        system: &TaskSystem,
        tasks: Vec<usize>,
        level: impl Fn(char) -> char,
    ) -> Result<Self, String> {
        let mut costs = Vec::new();
        let mut parameters = Vec::new();
        for &index in &tasks {
            let task = &system.tasks[index];
            let Some(cost) = prepare::cost(system, index, level(task.criticality)) else {
                return Err(format!("`{}` has no bounded cost", task.name));
            };
            costs.push(cost.max(1));
            parameters.push(Task {
                cost,
                period: nanoseconds(task.period).max(1),
                deadline: nanoseconds(task.deadline),
                jitter: nanoseconds(task.jitter),
                blocking: 0,
            });
        }
        // The first deadlines, and a little of what follows them.
        let due = parameters
            .iter()
            .map(|t| t.deadline.saturating_sub(t.jitter));
        let due = due.max().unwrap_or(1).max(1);
        let most = JOBS.max(JOBS_EACH * parameters.len() as u64);
        let mut length = due.saturating_add(due / 8);
        while length > 1 && jobs(&parameters, length) > most {
            length = length.div_ceil(2);
        }
        if jobs(&parameters, length) > most {
            let why = "too many releases, each late by many periods, may come at once";
            return Err(why.to_owned());
        }
        let of = |(task, its): (usize, &Task)| {
            let its = *its;
            let all = (0u64..).map(move |number| {
                let arrival = number.saturating_mul(its.period);
                Coming {
                    task,
                    release: arrival.saturating_sub(its.jitter),
                    due: arrival
                        .saturating_add(its.deadline)
                        .saturating_sub(its.jitter),
                    number,
                }
            });
            all.take_while(move |coming| coming.release < length)
        };
        let mut coming: Vec<Coming> = parameters.iter().enumerate().flat_map(of).collect();
        coming.sort_by_key(|coming| (coming.release, coming.task, coming.number));
        let overheads = &system.overheads;
        let all = [overheads.schedule, overheads.release, overheads.interrupt];
        Ok(Self {
            kernel: all.iter().any(|time| time.0 > 0) || !system.devices.is_empty(),
            responses: vec![0; tasks.len()],
            first_jobs: 0,
            first_done: 0,
            runs: Vec::new(),
            coming: coming.into(),
            tasks,
            costs,
            length,
            parameters,
        })
    }

    /// Takes the jobs released by now.
    pub fn released(&mut self, now: u64) -> Vec<Coming> {
        let count = self.coming.iter().take_while(|job| job.release <= now);
        let count = count.count();
        self.coming.drain(..count).collect()
    }

    /// When the next job is released.
    pub fn next_release(&self) -> u64 {
        self.coming.front().map_or(u64::MAX, |job| job.release)
    }

    fn draw(
        &mut self,
        row: usize,
        processor: u32,
        (start, end): (u64, u64),
        part: Part,
        late: bool,
    ) {
        let end = end.min(self.length);
        if start >= end {
            return;
        }
        let same = self.runs.iter_mut().rev().take(8).find(|run| {
            (run.row, run.processor, run.part, run.late, run.end)
                == (row, processor, part, late, start)
        });
        match same {
            Some(run) => run.end = end,
            None => self.runs.push(Run {
                row,
                processor,
                start,
                end,
                part,
                late,
            }),
        }
    }

    /// The kernel has a processor.
    pub fn kernel(&mut self, processor: u32, time: (u64, u64)) {
        self.draw(0, processor, time, Part::Runs, false);
    }

    /// A job has a processor, or is moved.
    pub fn job(&mut self, job: Coming, processor: u32, (start, end): (u64, u64), part: Part) {
        let row = job.task + usize::from(self.kernel);
        let late = start.max(job.due).min(end);
        self.draw(row, processor, (start, late), part, false);
        self.draw(row, processor, (late, end), part, true);
    }

    /// A job is done.
    pub fn done(&mut self, job: Coming, now: u64) {
        let task = &self.parameters[job.task];
        let arrival = job.number.saturating_mul(task.period);
        let response = now.saturating_add(task.jitter).saturating_sub(arrival);
        self.responses[job.task] = self.responses[job.task].max(response);
        if job.number == 0 {
            self.first_jobs += 1;
            self.first_done = self.first_done.max(now);
        }
    }

    /// The picture; `all`: every released job, taken or not.
    pub fn finish(self, notes: Vec<&'static str>) -> CriticalInstant {
        // Responses are those of the whole simulation.
        let least = self.first_done.saturating_add(self.first_done / 8);
        let length = self.length.min(readable(&self.parameters).max(least));
        let mut rows = Vec::new();
        if self.kernel {
            rows.push(Row::default());
        }
        for (position, &task) in self.tasks.iter().enumerate() {
            let its = &self.parameters[position];
            let arrivals = (0u64..).map(|number| number.saturating_mul(its.period));
            let arrivals = arrivals.take_while(|at| at.saturating_sub(its.jitter) < length);
            let arrivals: Vec<u64> = arrivals.collect();
            let due = arrivals
                .iter()
                .map(|at| (at + its.deadline).saturating_sub(its.jitter));
            rows.push(Row {
                task: Some(task),
                releases: arrivals
                    .iter()
                    .map(|at| at.saturating_sub(its.jitter))
                    .collect(),
                deadlines: due.filter(|due| *due <= length).collect(),
                response: Some(self.responses[position]).filter(|response| *response > 0),
            });
        }
        let mut runs = self.runs;
        runs.retain(|run| run.start < length);
        for run in &mut runs {
            run.end = run.end.min(length);
        }
        CriticalInstant {
            rows,
            runs,
            length,
            cut: length < self.length || self.first_jobs < self.tasks.len(),
            notes,
        }
    }
}
