//! Parallel sections against a simulation, unit by unit: no slice or result comes later than its bound.
//!
//! The analysis receives costs that contain the wait of a section, like those of described systems.

use bulkhead_analysis::plan::{Kind, plan};
use bulkhead_model::tasks::{Channel, ChannelKind, Parallel, Policy, Task, TaskSystem};
use bulkhead_model::units::{Size, Time};
use proptest::prelude::*;

/// A unit of time, in picoseconds: a microsecond.
const UNIT: u64 = 1_000_000;

/// A task of the simulation. The first one hands out after `before` of its cost; helpers follow, then others.
#[derive(Clone, Debug)]
struct Simulated {
    core: usize,
    priority: u32,
    period: u64,
    offset: u64,
    /// Without waiting.
    cost: u64,
    wait: u64,
}

/// A job that runs.
#[derive(Clone, Debug)]
struct Running {
    task: usize,
    /// Its period's number.
    number: u64,
    /// Remaining computation before it hands out or waits, and after that.
    left: [u64; 2],
    waited: u64,
}

/// When each slice and result arrived, from the release: the longest of each helper.
fn simulate(tasks: &[Simulated], helpers: usize, before: u64, horizon: u64) -> Vec<[u64; 2]> {
    let cores = tasks.iter().map(|task| task.core).max().unwrap_or(0) + 1;
    let mut ready: Vec<(usize, u64)> = Vec::new();
    let mut running: Vec<Option<Running>> = vec![None; cores];
    // Numbers of the periods whose slice and result were written last.
    let mut slices: Vec<Option<u64>> = vec![None; helpers];
    let mut results: Vec<Option<u64>> = vec![None; helpers];
    let mut longest = vec![[0; 2]; helpers];
    let period = tasks[0].period;
    for now in 0..horizon {
        for (index, task) in tasks.iter().enumerate() {
            if now >= task.offset && (now - task.offset).is_multiple_of(task.period) {
                ready.push((index, (now - task.offset) / task.period));
            }
        }
        for (core, slot) in running.iter_mut().enumerate() {
            // A job with nothing to wait for and nothing left to do ends immediately, and the next one begins in the same
            // unit.
            let waiting = loop {
                if slot.is_none() {
                    *slot = begin(tasks, helpers, before, core, &mut ready);
                }
                let Some(job) = slot else { break None };
                let one = &tasks[job.task];
                let is_helper = (1..=helpers).contains(&job.task);
                let waits = match job.task {
                    0 => job.left == [0, 0] && results.iter().any(|r| *r != Some(job.number)),
                    // A helper waits first.
                    _ if is_helper => {
                        job.left[1] == one.cost && slices[job.task - 1] != Some(job.number)
                    }
                    _ => false,
                };
                let patient = waits && job.waited < one.wait;
                let over = if is_helper { waits } else { job.left == [0, 0] };
                if over && !patient {
                    *slot = None;
                    continue;
                }
                break Some(patient);
            };
            let (Some(job), Some(waits)) = (slot.as_mut(), waiting) else {
                continue;
            };
            if waits {
                job.waited += 1;
                continue;
            }
            let is_asker = job.task == 0;
            let is_helper = (1..=helpers).contains(&job.task);
            let helper = job.task.wrapping_sub(1);
            if job.left[0] > 0 {
                job.left[0] -= 1;
            } else if job.left[1] > 0 {
                job.left[1] -= 1;
            }
            if is_asker && job.left[0] == 0 {
                for (one, slice) in slices.iter_mut().enumerate() {
                    if *slice != Some(job.number) {
                        *slice = Some(job.number);
                        longest[one][0] = longest[one][0].max(now + 1 - job.number * period);
                    }
                }
            }
            if job.left == [0, 0] && !is_asker {
                if is_helper {
                    results[helper] = Some(job.number);
                    longest[helper][1] = longest[helper][1].max(now + 1 - job.number * period);
                }
                *slot = None;
            }
        }
    }
    longest
}

/// The most urgent job of a core that is ready; the oldest one of its task.
fn begin(
    tasks: &[Simulated],
    helpers: usize,
    before: u64,
    core: usize,
    ready: &mut Vec<(usize, u64)>,
) -> Option<Running> {
    let here = ready.iter().enumerate();
    let here = here.filter(|(_, (task, _))| tasks[*task].core == core);
    let (place, _) = here.min_by_key(|(_, (task, number))| (tasks[*task].priority, *number))?;
    let (task, number) = ready.remove(place);
    let cost = tasks[task].cost;
    let first = match task {
        0 => before.min(cost),
        _ if task <= helpers => 0,
        _ => cost,
    };
    Some(Running {
        task,
        number,
        left: [first, cost - first],
        waited: 0,
    })
}

fn described(tasks: &[Simulated], helpers: usize) -> TaskSystem {
    let of = |(index, task): (usize, &Simulated)| Task {
        core: Some(task.core as u32),
        priority: Some(task.priority),
        wait: Time(task.wait * UNIT),
        ..Task::new(
            format!("t{index}"),
            Time((task.cost + task.wait) * UNIT),
            Time(task.period * UNIT),
        )
    };
    let list = tasks.iter().enumerate().map(of).collect();
    let mut system = TaskSystem::new("parallel", helpers as u32 + 1, Policy::OneShot, list);
    system.periodic = true;
    for helper in 1..=helpers {
        for (parallel, from, to) in [(Parallel::Slice, 0, helper), (Parallel::Result, helper, 0)] {
            system.channels.push(Channel {
                name: format!("{parallel:?}{helper}"),
                from,
                to,
                size: Size(8),
                kind: ChannelKind::Sampling,
                slots: 1,
                notify: false,
                parallel: Some(parallel),
                joins: None,
                transfer: Time(0),
                unbounded: None,
                deadline: None,
            });
        }
    }
    system
}

proptest! {
    #[test]
    fn nothing_is_handed_over_later_than_its_bound(
        helpers in 1usize..4,
        costs in prop::collection::vec(1u64..8, 4),
        waits in prop::collection::vec(1u64..30, 4),
        before in 0u64..8,
        others in prop::collection::vec((0usize..4, 1u64..8, 15u64..60, 0u64..60, any::<bool>()), 0..5),
        period in 30u64..60,
    ) {
        let mut tasks: Vec<Simulated> = (0..=helpers)
            .map(|index| Simulated {
                core: index,
                priority: 5,
                period,
                offset: 0,
                cost: costs[index],
                wait: waits[index],
            })
            .collect();
        for (place, (core, cost, period, offset, urgent)) in others.into_iter().enumerate() {
            let priority = if urgent { place as u32 } else { 10 + place as u32 } + 1;
            tasks.push(Simulated {
                core: core % (helpers + 1),
                priority: if priority == 5 { 9 } else { priority },
                period,
                offset: offset % period,
                cost,
                wait: 0,
            });
        }
        // The kernel's priorities differ on each core.
        let mut seen = std::collections::BTreeSet::new();
        prop_assume!(tasks.iter().all(|task| seen.insert((task.core, task.priority))));
        let system = described(&tasks, helpers);
        let planned = plan(&system).expect("it is planned");
        let bound = |name: String| {
            let mut all = planned.constraints.iter();
            let one = all.find(|one| one.kind == Kind::Channel && one.subject == name);
            let one = one.expect("a constraint");
            (one.bound.map(|bound| bound.div_ceil(1000)), one.holds())
        };
        let longest = simulate(&tasks, helpers, before, 20 * period);
        for (helper, [slice, result]) in longest.into_iter().enumerate() {
            let (slices, in_time) = bound(format!("Slice{}", helper + 1));
            let (results, _) = bound(format!("Result{}", helper + 1));
            if let Some(most) = slices {
                prop_assert!(slice <= most, "slice {helper}: {slice} > {most}");
            }
            if let Some(most) = results.filter(|_| in_time) {
                prop_assert!(result <= most, "result {helper}: {result} > {most}");
            }
        }
    }
}
