//! Task systems made to keep an analysis busy forever: every test answers quickly.
//!
//! Why it exists: descriptions and task-set files come from users. Windows of 2^52 units with periods of one unit, utilisations of
//! exactly one and within a hair of it, and costs far above everything must lead to a verdict or to "no bound", not to a hang.

use bulkhead_analysis::schedulability::memory_banks::{self, Core, Memory, MemoryTask};
use bulkhead_analysis::schedulability::memory_mutex::{self, Phases};
use bulkhead_analysis::schedulability::one_shot::{self, PlacedTask};
use bulkhead_analysis::schedulability::preemption_delay::{self, CacheSets, CacheTask};
use bulkhead_analysis::schedulability::three_phase::{self, PhasedTask, Tdma};
use bulkhead_analysis::schedulability::{
    Task, batch, edf, edf_response, fixed_priority, global_edf, global_fixed_priority, harmonic,
    table, tardiness, threshold,
};
use std::time::{Duration, Instant};

const HUGE: u64 = 1 << 52;

fn systems() -> Vec<Vec<Task>> {
    let sets: [&[(u64, u64)]; 9] = [
        // Nothing is left for the second, ever.
        &[(1, 1), (1, HUGE)],
        // Half is left, after 2^51 arrivals.
        &[(1, 2), (HUGE / 2 - 1, HUGE)],
        // One part in 10^13 is left (Sylvester's numbers), so a window grows by next to nothing in each step.
        &[
            (1, 2),
            (1, 3),
            (1, 7),
            (1, 43),
            (1, 1807),
            (1, 3_263_443),
            (1000, HUGE),
        ],
        &[(999_999, 1_000_000), (1 << 30, HUGE)],
        &[((1 << 26) - 1, 1 << 26), (1 << 20, HUGE)],
        &[(HUGE, HUGE), (1, HUGE)],
        &[(HUGE, 1), (1, 1)],
        &[(1, 2), (1, 3), (1, 6), (1, HUGE)],
        &[
            (3, 7),
            (5, 11),
            (1, 13),
            (1_000_000_007, HUGE - 1),
            (1_000_000_009, HUGE - 3),
        ],
    ];
    let mut all: Vec<Vec<Task>> = sets
        .iter()
        .map(|set| set.iter().map(|&(c, t)| Task::new(c, t)).collect())
        .collect();
    // The same with deadlines just within periods: no short cut for implicit ones.
    let mut tight = all.clone();
    for task in tight.iter_mut().flatten() {
        task.deadline = (task.period - task.period / 64).max(1);
    }
    all.extend(tight);
    all
}

fn soon(name: &str, analysis: impl Fn(&[Task])) {
    for (i, tasks) in systems().iter().enumerate() {
        let begin = Instant::now();
        analysis(tasks);
        let took = begin.elapsed();
        assert!(
            took < Duration::from_secs(60),
            "{name} on system {i}: {took:?}"
        );
    }
}

#[test]
fn fixed_priorities() {
    soon("response times", |t| {
        drop(fixed_priority::response_times(t))
    });
    soon("schedulable", |t| drop(fixed_priority::schedulable(t)));
    soon("batch", |t| drop(batch::fixed_priority(&[t.to_vec()])));
}

#[test]
fn thresholds() {
    soon("non-preemptive", |t| drop(threshold::non_preemptive(t)));
}

#[test]
fn earliest_deadline() {
    soon("demand", |t| drop(edf::schedulable(t)));
}

#[test]
fn earliest_deadline_responses() {
    soon("responses", |t| drop(edf_response::response_times(t)));
}

#[test]
fn global() {
    soon("global fixed priority", |t| {
        drop(global_fixed_priority::response_times(t, 2))
    });
    soon("one processor", |t| {
        drop(global_fixed_priority::response_times(t, 1))
    });
    soon("global earliest deadline", |t| {
        drop(global_edf::schedulable(t, 2))
    });
    soon("tardiness", |t| drop(tardiness::bounds(t, 2)));
}

#[test]
fn tables_and_harmonic() {
    soon("table", |t| drop(table::build(t)));
    soon("frames", |t| drop(table::frame_lengths(t)));
    soon("harmonic", |t| drop(harmonic::schedulable(t)));
}

#[test]
fn caches() {
    soon("caches", |t| {
        let tasks: Vec<CacheTask> = t
            .iter()
            .map(|&task| CacheTask {
                task,
                evicting: CacheSets::of([0]),
                useful: CacheSets::of([]),
            })
            .collect();
        drop(preemption_delay::response_times(&tasks, 1));
    });
}

#[test]
fn phases() {
    soon("three phases", |t| {
        let tasks: Vec<PhasedTask> = t
            .iter()
            .map(|&task| PhasedTask {
                task,
                load: 0,
                unload: 0,
            })
            .collect();
        let tdma = Tdma {
            slots: vec![1],
            usable: vec![1],
        };
        drop(three_phase::response_times(&tasks, &tdma, 0));
    });
    soon("one shot", |t| {
        let tasks: Vec<PlacedTask> = t.iter().map(|&task| PlacedTask { task, core: 0 }).collect();
        drop(one_shot::response_times(&tasks));
    });
    soon("memory mutex", |t| {
        let cores: Vec<Phases> = t
            .iter()
            .map(|t| Phases {
                longest: t.cost,
                distance: t.period.max(t.cost),
            })
            .collect();
        drop(memory_mutex::by_priority(&cores, cores.len() - 1));
    });
}

#[test]
fn banks() {
    soon("banks", |t| {
        let tasks: Vec<MemoryTask> = t
            .iter()
            .map(|&task| MemoryTask { task, accesses: 1 })
            .collect();
        let core = Core {
            banks: vec![0],
            tasks,
        };
        let memory = Memory {
            banks: 1,
            open: 0,
            transfer: 0,
            overtaking: 0,
        };
        drop(memory_banks::analyse(&memory, &[core.clone(), core]));
    });
}
