//! The policy `realtime` alone, simulated and compared with the response-time analysis and with the definition of a
//! budget.

use bulkhead_analysis::schedulability::fixed_priority::response_times;
use bulkhead_analysis::schedulability::task::Task;
use bulkhead_exec::account::Budget;
use bulkhead_exec::tile::{Cost, Decision, Policy, Scheduler};
use proptest::prelude::*;

/// Nanoseconds of a unit: far above the shortest run.
const UNIT: u64 = 100_000;

/// Releases jobs with random distances of at least a period and random costs of at most the budget, for this many units;
/// returns the longest response of each task.
fn simulate(tasks: &[Task], distances: &[u64], shares: &[u64], end: u64) -> Vec<u64> {
    let mut scheduler = Scheduler::<8>::new(Policy::Realtime, 1 << 40);
    for (number, task) in tasks.iter().enumerate() {
        scheduler.add(number);
        let budget = Budget {
            amount: task.cost,
            period: task.period,
        };
        assert!(scheduler.set_budget(number, budget, (tasks.len() - number) as u8, 0));
    }
    // For each task: next release, number of jobs so far, remaining work and release of the present job.
    let mut states: Vec<(u64, usize, u64, u64)> = tasks.iter().map(|_| (0, 0, 0, 0)).collect();
    let mut worst = vec![0; tasks.len()];
    let mut now = 0;
    while now < end {
        let mut next = end;
        for (number, state) in states.iter_mut().enumerate() {
            if state.2 == 0 && state.0 <= now {
                let task = &tasks[number];
                let index = state.1 * tasks.len() + number;
                state.3 = state.0;
                state.2 = (task.cost * shares[index % shares.len()] / 4).max(1);
                state.0 += task.period + distances[index % distances.len()] * UNIT / 3;
                state.1 += 1;
                scheduler.set_ready(number, true, state.3);
            }
            if state.2 == 0 {
                next = next.min(state.0);
            }
        }
        match scheduler.decide(now) {
            Decision::Run { member, until } => {
                let stop = until.unwrap_or(end).min(next).min(now + states[member].2);
                scheduler.charge(member, Cost::Run, now, stop);
                states[member].2 -= stop - now;
                now = stop;
                if states[member].2 == 0 {
                    worst[member] = worst[member].max(now - states[member].3);
                    scheduler.set_ready(member, false, now);
                }
            }
            Decision::Idle { until } => now = until.unwrap_or(end).min(next).max(now + 1),
        }
    }
    worst
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, failure_persistence: None, ..ProptestConfig::default() })]
    /// An application that keeps to its budget responds within the bound, whatever distances and costs its jobs have.
    #[test]
    fn responses_are_within_the_bound(
        tasks in proptest::collection::vec((1u64..8, 0u64..50), 1..6),
        distances in proptest::collection::vec(0u64..9, 1..12), shares in proptest::collection::vec(1u64..=4, 1..12)
    ) {
        let tasks: Vec<Task> = tasks.iter().map(|(cost, spare)| Task::new(cost * UNIT, (cost + spare) * UNIT)).collect();
        let bounds = response_times(&tasks).unwrap();
        let seen = simulate(&tasks, &distances, &shares, 3000 * UNIT);
        for ((bound, seen), task) in bounds.iter().zip(&seen).zip(&tasks) {
            if let Some(bound) = bound.filter(|bound| *bound <= task.period) {
                prop_assert!(*seen <= bound, "{seen} above {bound} for {task:?}");
            }
        }
    }

    /// All are released together with their full cost: the bound of the most urgent ones is exact.
    #[test]
    fn together_the_bound_is_reached(tasks in proptest::collection::vec((1u64..8, 20u64..60), 1..4)) {
        let tasks: Vec<Task> = tasks.iter().map(|(cost, spare)| Task::new(cost * UNIT, (cost + spare) * UNIT)).collect();
        let bounds = response_times(&tasks).unwrap();
        let seen = simulate(&tasks, &[0], &[4], 3000 * UNIT);
        for ((bound, seen), task) in bounds.iter().zip(&seen).zip(&tasks) {
            if let Some(bound) = bound.filter(|bound| *bound <= task.period) {
                prop_assert_eq!(*seen, bound);
            }
        }
    }
}
