//! The mixed-criticality kernel with its tables, simulated unit by unit, never exceeds its bounds.
//!
//! Why it exists: the schedulers' simulator in the library knows only processors. This one also has slots that stay where they are when
//! jobs end early. The simulation shares no formula with the analyses.

use bulkhead_analysis::schedulability::mc2::{self, LevelTask, Overheads, Processor, System};
use bulkhead_analysis::schedulability::{Task, Time, sporadic_table};
use bulkhead_random::Random;
use proptest::prelude::*;

#[derive(Clone, Debug)]
struct Job {
    task: usize,
    arrived: u64,
    left: Time,
}

/// When jobs arrive.
enum Arrivals {
    /// Levels A and B with the tables, level C from these offsets on, all exactly a period apart.
    Periodic(Vec<u64>),
    /// All at random times at least a period apart, half of them exactly that; drawn from the seed for each task. A job that arrives within
    /// a slot waits for the next one or gets the rest, as configured.
    Sporadic { seed: u64, waits: bool },
}

impl Arrivals {
    /// All arrivals of a task, which is the only one with this number.
    fn of(&self, number: u64, task: &LevelTask, offset: Option<usize>) -> Vec<u64> {
        let mut all = Vec::new();
        match self {
            Self::Periodic(offsets) => {
                let offset = offset.and_then(|i| offsets.get(i)).copied().unwrap_or(0);
                all.extend((offset..END).step_by(task.period as usize));
            }
            Self::Sporadic { seed, .. } => {
                let mut random = Random::new(seed.wrapping_mul(1000) + number);
                let mut at = random.below(2 * task.period);
                while at < END {
                    all.push(at);
                    let more = [0, random.below(task.period)][random.below(2) as usize];
                    at += task.period + more;
                }
            }
        }
        all
    }
}

/// Ticks of a simulation.
const END: u64 = 1600;

fn arrive(
    queue: &mut Vec<Job>,
    tasks: &[LevelTask],
    arrivals: &[Vec<u64>],
    level: usize,
    now: u64,
) {
    for (i, t) in tasks.iter().enumerate() {
        if t.costs[level] > 0 && arrivals[i].binary_search(&now).is_ok() {
            queue.push(Job {
                task: i,
                arrived: now,
                left: t.costs[level],
            });
        }
    }
}

/// Runs the first unit of a job; its response if that was the last.
fn run(queue: &mut Vec<Job>, index: usize, now: u64) -> Option<(usize, u64)> {
    queue[index].left -= 1;
    if queue[index].left > 0 {
        return None;
    }
    let job = queue.remove(index);
    Some((job.task, now + 1 - job.arrived))
}

/// Longest responses of levels A and B (for each processor) and of level C.
type Seen = (Vec<Vec<u64>>, Vec<Vec<u64>>, Vec<u64>);

/// The kernel's three levels with all costs as estimated by `level`: level A only in the slots of its table, level B by rate-monotonic
/// priority in what that leaves, level C by global earliest deadline first on the free processors.
fn kernel(system: &System, arrivals: &Arrivals, level: usize) -> Seen {
    let tables: Vec<_> = (0..system.processors.len())
        .map(|p| mc2::table(system, p).unwrap())
        .collect();
    let mut a: Vec<Vec<Job>> = vec![Vec::new(); tables.len()];
    let mut b = a.clone();
    let mut c: Vec<Job> = Vec::new();
    let mut seen: Seen = (
        system
            .processors
            .iter()
            .map(|p| vec![0; p.a.len()])
            .collect(),
        system
            .processors
            .iter()
            .map(|p| vec![0; p.b.len()])
            .collect(),
        vec![0; system.c.len()],
    );
    let note = |list: &mut Vec<u64>, ended: Option<(usize, u64)>| {
        if let Some((task, response)) = ended {
            list[task] = list[task].max(response);
        }
    };
    let mut number = 0;
    let mut list = |tasks: &[LevelTask], is_c: bool| -> Vec<Vec<u64>> {
        let one = |(i, task): (usize, &LevelTask)| {
            number += 1;
            arrivals.of(number, task, is_c.then_some(i))
        };
        tasks.iter().enumerate().map(one).collect()
    };
    let of_c = list(&system.c, true);
    let of_ab: Vec<_> = system
        .processors
        .iter()
        .map(|p| (list(&p.a, false), list(&p.b, false)))
        .collect();
    let waits = matches!(arrivals, Arrivals::Sporadic { waits: true, .. });
    for now in 0..END {
        let mut free = 0;
        arrive(&mut c, &system.c, &of_c, level, now);
        for (p, processor) in system.processors.iter().enumerate() {
            arrive(&mut a[p], &processor.a, &of_ab[p].0, level, now);
            arrive(&mut b[p], &processor.b, &of_ab[p].1, level, now);
            let at = now % tables[p].length.max(1);
            let slots = &mut tables[p].slots.iter();
            let slot = slots.find(|s| s.start <= at && at < s.start + s.length);
            let job = slot.and_then(|s| {
                let since = now - (at - s.start);
                let is_served = |j: &Job| j.task == s.task && !(waits && j.arrived > since);
                a[p].iter().position(is_served)
            });
            if let Some(job) = job {
                let ended = run(&mut a[p], job, now);
                note(&mut seen.0[p], ended);
                continue;
            }
            let first = (0..b[p].len()).min_by_key(|&j| {
                let job = &b[p][j];
                (processor.b[job.task].period, job.task, job.arrived)
            });
            match first {
                Some(job) => {
                    let ended = run(&mut b[p], job, now);
                    note(&mut seen.1[p], ended);
                }
                None => free += 1,
            }
        }
        // A task's jobs one after the other, by deadline.
        let mut order: Vec<usize> = (0..c.len())
            .filter(|&j| !c[..j].iter().any(|o| o.task == c[j].task))
            .collect();
        order.sort_by_key(|&j| (c[j].arrived + system.c[c[j].task].period, c[j].task));
        order.truncate(free);
        order.sort_unstable();
        for &j in order.iter().rev() {
            let ended = run(&mut c, j, now);
            note(&mut seen.2, ended);
        }
    }
    seen
}

fn level_tasks(periods: &'static [u64], most: u64) -> impl Strategy<Value = Vec<LevelTask>> {
    prop::collection::vec((1u64..=most, prop::sample::select(periods)), 0..3).prop_map(|parts| {
        parts
            .into_iter()
            .map(|(c, period)| LevelTask {
                period,
                costs: [2 * c, c + c / 2, c],
            })
            .collect()
    })
}

fn systems(a: &'static [u64], b: &'static [u64]) -> impl Strategy<Value = System> {
    (
        prop::collection::vec((level_tasks(a, 3), level_tasks(b, 6)), 1..3),
        prop::collection::vec((1u64..6, 10u64..60), 0..5),
    )
        .prop_map(|(processors, c)| System {
            processors: processors
                .into_iter()
                .map(|(a, b)| Processor {
                    a,
                    b,
                    ..Processor::default()
                })
                .collect(),
            c: c.into_iter()
                .map(|(cost, period)| LevelTask {
                    period,
                    costs: [0, 0, cost],
                })
                .collect(),
            overheads: Overheads::default(),
        })
}

fn within_bounds(system: &System, arrivals: &Arrivals) -> Result<(), TestCaseError> {
    let guarantees = mc2::analyse(system).unwrap();
    let bounds_of_a: Vec<Vec<Option<Time>>> = system
        .processors
        .iter()
        .map(|p| match &p.lives {
            Some(lives) => lives.clone(),
            None => p.a.iter().map(|task| Some(task.period)).collect(),
        })
        .collect();
    let has_tables = (0..system.processors.len()).all(|p| mc2::table(system, p).is_ok());
    if !has_tables {
        return Ok(());
    }
    let within = |level, bounds: &[Vec<Option<Time>>], seen: &[Vec<u64>]| {
        for (bound, seen) in bounds.iter().flatten().zip(seen.iter().flatten()) {
            let holds = bound.is_none_or(|b| *seen <= b);
            prop_assert!(holds, "level {}: {} > {:?}", level, seen, bound);
        }
        Ok(())
    };
    within('A', &bounds_of_a, &kernel(system, arrivals, 0).0)?;
    within('B', &guarantees.b, &kernel(system, arrivals, 1).1)?;
    let met = guarantees
        .b
        .iter()
        .zip(&system.processors)
        .all(|(bounds, p)| {
            bounds
                .iter()
                .zip(&p.b)
                .all(|(b, t)| b.is_some_and(|b| b <= t.period))
        });
    if let (Some(bounds), true) = (&guarantees.c, met) {
        let (_, _, c) = kernel(system, arrivals, 2);
        for ((bound, seen), task) in bounds.iter().zip(&c).zip(&system.c) {
            prop_assert!(
                seen.saturating_sub(task.period) <= *bound,
                "level C: {} > {}",
                seen,
                bound
            );
        }
    }
    Ok(())
}

/// The same system with jobs that need not follow the tables.
fn sporadic(mut system: System) -> System {
    let all: Vec<Option<Vec<Option<Time>>>> = (0..system.processors.len())
        .map(|p| {
            let tasks = system.processors[p].a.iter();
            let tasks: Vec<Task> = tasks.map(|t| Task::new(t.costs[0], t.period)).collect();
            let table = mc2::table(&system, p).ok()?;
            Some(sporadic_table::response_times(
                &table,
                &tasks,
                &[],
                &Default::default(),
            ))
        })
        .collect();
    for (processor, lives) in system.processors.iter_mut().zip(all) {
        processor.lives = Some(lives.unwrap_or_else(|| vec![None; processor.a.len()]));
    }
    system
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    #[test]
    fn harmonic_kernel_keeps_its_guarantees(
        system in systems(&[10, 20], &[20, 40]),
        offsets in prop::collection::vec(0u64..40, 5),
    ) {
        within_bounds(&system, &Arrivals::Periodic(offsets))?;
    }

    #[test]
    fn any_kernel_keeps_its_guarantees(
        system in systems(&[8, 10, 12, 15], &[8, 12, 15, 20, 30]),
        offsets in prop::collection::vec(0u64..40, 5),
    ) {
        within_bounds(&system, &Arrivals::Periodic(offsets))?;
    }

    /// Jobs of all levels arrive whenever they may.
    #[test]
    fn a_kernel_whose_jobs_come_at_any_times_keeps_its_guarantees(
        system in systems(&[8, 10, 12, 15, 20], &[8, 12, 15, 20, 30, 40]),
        seed in any::<u64>(),
        waits in any::<bool>(),
    ) {
        within_bounds(&sporadic(system), &Arrivals::Sporadic { seed, waits })?;
    }
}
