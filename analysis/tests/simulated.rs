//! The mixed-criticality kernel with its tables, simulated unit by unit, never exceeds its bounds.
//!
//! Why it exists: the schedulers' simulator in the library knows processors only. This one also needs slots that stay where they are when
//! jobs end early. The simulation shares no formula with the analyses.

use bulkhead_analysis::schedulability::Time;
use bulkhead_analysis::schedulability::mc2::{self, LevelTask, Overheads, Processor, System};
use proptest::prelude::*;

#[derive(Clone, Debug)]
struct Job {
    task: usize,
    arrived: u64,
    left: Time,
}

fn arrive(queue: &mut Vec<Job>, tasks: &[LevelTask], offsets: &[u64], level: usize, now: u64) {
    for (i, t) in tasks.iter().enumerate() {
        let offset = offsets.get(i).copied().unwrap_or(0);
        if now >= offset && (now - offset).is_multiple_of(t.period) && t.costs[level] > 0 {
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

/// The kernel's three levels with all costs as `level` estimates them: level A in the slots of its table only, level B by
/// rate-monotonic priority in what that leaves, level C by global earliest deadline first on the processors that are free.
fn kernel(system: &System, offsets: &[u64], level: usize) -> Seen {
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
    for now in 0..1600u64 {
        let mut free = 0;
        arrive(&mut c, &system.c, offsets, level, now);
        for (p, processor) in system.processors.iter().enumerate() {
            arrive(&mut a[p], &processor.a, &[], level, now);
            arrive(&mut b[p], &processor.b, &[], level, now);
            let slot = tables[p].slots.iter().find(|s| {
                let at = now % tables[p].length.max(1);
                s.start <= at && at < s.start + s.length
            });
            let job = slot.and_then(|s| a[p].iter().position(|j| j.task == s.task));
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
                    interrupts: Vec::new(),
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

fn within_bounds(system: &System, offsets: &[u64]) -> Result<(), TestCaseError> {
    let guarantees = mc2::analyse(system).unwrap();
    if !guarantees.a.iter().all(|&a| a) {
        return Ok(());
    }
    let (a, _, _) = kernel(system, offsets, 0);
    for (seen, processor) in a.iter().zip(&system.processors) {
        for (seen, task) in seen.iter().zip(&processor.a) {
            prop_assert!(*seen <= task.period);
        }
    }
    let (_, b, _) = kernel(system, offsets, 1);
    for (bounds, seen) in guarantees.b.iter().zip(&b) {
        for (bound, seen) in bounds.iter().zip(seen) {
            prop_assert!(
                bound.is_none_or(|b| *seen <= b),
                "level B: {} > {:?}",
                seen,
                bound
            );
        }
    }
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
        let (_, _, c) = kernel(system, offsets, 2);
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

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    #[test]
    fn harmonic_kernel_keeps_its_guarantees(
        system in systems(&[10, 20], &[20, 40]),
        offsets in prop::collection::vec(0u64..40, 5),
    ) {
        within_bounds(&system, &offsets)?;
    }

    #[test]
    fn any_kernel_keeps_its_guarantees(
        system in systems(&[8, 10, 12, 15], &[8, 12, 15, 20, 30]),
        offsets in prop::collection::vec(0u64..40, 5),
    ) {
        within_bounds(&system, &offsets)?;
    }
}
