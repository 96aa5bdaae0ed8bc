//! A processor that follows its table: in each slot, the slot's task runs its oldest job, and no other task runs. Jobs come with the table, or, if the
//! system does not say so, at any times at least a period apart.
//!
//! A slot begins with a decision if another job ran before, or none; the end of a job is followed by one, and so is the end of a slot whose
//! job is not done, unless another begins there. A decision in progress at a slot's end continues. Releases interrupt whatever runs.

use std::collections::VecDeque;

use bulkhead_model::tasks::TaskSystem;

use crate::arrivals::{self, Lengths, ns};
use crate::random::Random;

pub fn run(system: &TaskSystem, random: &mut Random) -> Vec<u64> {
    let lengths = Lengths::of(random);
    let mut worst = vec![0; system.tasks.len()];
    for table in &system.tables {
        let length = ns(table.length);
        let (decision, release) = (ns(system.overheads.schedule), ns(system.overheads.release));
        let latest = system.tasks.iter().map(|t| ns(t.offset)).max().unwrap_or(0);
        // Tables hold from the first whole repetition on after everybody has come.
        let from = (latest / length + 1) * length;
        let end = from + 3 * length;
        let mut jobs: Vec<VecDeque<(u64, u64)>> = vec![VecDeque::new(); system.tasks.len()];
        let mut releasing: VecDeque<(usize, u64)> = VecDeque::new();
        let (mut kernel, mut running): (u64, Option<(usize, u64)>) = (0, None);
        let arrivals: Vec<Vec<u64>> = (0..system.tasks.len())
            .map(|index| {
                let first = ns(system.tasks[index].offset);
                arrivals::beside_a_table(system, index, first, end, random)
            })
            .collect();
        // A job that comes within a slot of its task gets the rest of it, or waits for the next one.
        let waits = !system.periodic && random.one_in(2);
        let mut now = 0;
        // Jobs that came in the measured span are followed to their end.
        while now < end + length {
            for (index, task) in system.tasks.iter().enumerate() {
                let comes = task.core == Some(table.core);
                if comes && arrivals[index].binary_search(&now).is_ok() {
                    kernel += release;
                    releasing.push_back((index, now));
                }
            }
            if kernel == 0 {
                while let Some((index, arrival)) = releasing.pop_front() {
                    let cost = ns(system.tasks[index].cost.unwrap());
                    let job = (cost * lengths.part(random)).div_ceil(1000).max(1);
                    jobs[index].push_back((arrival, job));
                }
                let place = now % length;
                let slot = table
                    .slots
                    .iter()
                    .find(|s| ns(s.start) <= place && place < ns(s.start) + ns(s.length))
                    .filter(|s| {
                        let begin = now - (place - ns(s.start));
                        let first = jobs[s.task].front();
                        first.is_some_and(|job| !waits || job.0 <= begin)
                    })
                    .map(|s| s.task);
                let next = slot.map(|task| (task, jobs[task][0].0));
                if next.is_some() && next != running {
                    running = next;
                    kernel = decision;
                } else if next.is_none() && running.take().is_some() {
                    // The slot ended before its job.
                    kernel = decision;
                }
                if kernel == 0
                    && let Some((task, arrival)) = next
                {
                    let job = &mut jobs[task][0];
                    job.1 -= 1;
                    if job.1 == 0 {
                        jobs[task].pop_front();
                        if arrival >= from {
                            worst[task] = worst[task].max(now + 1 - arrival);
                        }
                        running = None;
                        kernel = decision;
                    }
                    now += 1;
                    continue;
                }
            }
            kernel = kernel.saturating_sub(1);
            now += 1;
        }
        for (task, list) in jobs.iter().enumerate() {
            for &(arrival, _) in list.iter().filter(|job| job.0 >= from) {
                worst[task] = worst[task].max(now - arrival);
            }
        }
    }
    worst
}
