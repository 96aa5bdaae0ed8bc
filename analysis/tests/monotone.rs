//! More load is never better: every analysis for which that holds, with more cost, shorter periods and added tasks.
//!
//! Why it exists: a planner searches, and a test that accepts more when something gets worse would mislead it. Deadlines stay where
//! periods shrink. What is not listed is not monotone by nature: bin packing (anomalies), Han and Tyan's transformation in periods
//! (10 and 20 are harmonic, 9 and 20 are not), Devi and Anderson's tardiness in the least cost, which it subtracts, Baker's test of
//! global earliest deadline first (on one processor (2, 13, 11), (7, 19), (3, 34, 29) is refused, and accepted with a first cost of
//! 3). `schedulability::mc2` and `schedulability::memory_banks` have such tests beside the code.

use bulkhead_analysis::exact::{integer, ratio};
use bulkhead_analysis::schedulability::memguard::{self, Regulation};
use bulkhead_analysis::schedulability::memory_mutex::{self, Phases};
use bulkhead_analysis::schedulability::one_shot::{self, Flow, PlacedTask};
use bulkhead_analysis::schedulability::preemption_delay::{self, CacheSets, CacheTask};
use bulkhead_analysis::schedulability::tardiness::{self, Supply};
use bulkhead_analysis::schedulability::three_phase::{self, PhasedTask, Tdma};
use bulkhead_analysis::schedulability::{
    Task, edf, edf_response, fixed_priority, global_edf, global_fixed_priority, harmonic, table,
    threshold,
};
use proptest::prelude::*;

type Bounds = Vec<Option<u64>>;

/// By decreasing priority, deadlines within periods.
fn systems() -> impl Strategy<Value = Vec<Task>> {
    prop::collection::vec((1u64..8, 12u64..60, 0u64..20), 1..6).prop_map(|parts| {
        let mut tasks: Vec<Task> = parts
            .into_iter()
            .map(|(c, t, d)| Task::constrained(c, t, t - d.min(t / 2)))
            .collect();
        tasks.sort_by_key(|t| t.deadline);
        tasks
    })
}

/// One unit more cost; one unit less period (and deadline in `tasks` as in the result, so that only the period differs).
fn heavier(tasks: &[Task], index: usize) -> Vec<Task> {
    let mut tasks = tasks.to_vec();
    tasks[index].cost += 1;
    tasks
}

/// The same system with a deadline that the shorter period allows, and then with that period.
fn faster(tasks: &[Task], index: usize) -> (Vec<Task>, Vec<Task>) {
    let mut before = tasks.to_vec();
    let shorter = before[index].period - 1;
    before[index].deadline = before[index].deadline.min(shorter);
    let mut after = before.clone();
    after[index].period = shorter;
    (before, after)
}

/// A task more, of the highest priority.
fn longer(tasks: &[Task]) -> Vec<Task> {
    let mut all = vec![Task::new(1, 12)];
    all.extend(tasks);
    all
}

fn not_better(before: &[Option<u64>], after: &[Option<u64>]) -> Result<(), TestCaseError> {
    prop_assert_eq!(before.len(), after.len());
    for (b, a) in before.iter().zip(after) {
        prop_assert!(
            a.is_none() || b.is_some_and(|b| Some(b) <= *a),
            "{:?} became {:?}",
            b,
            a
        );
    }
    Ok(())
}

/// A verdict as a bound: schedulable is 0, anything else is `None`.
fn verdict(good: bool) -> Bounds {
    vec![good.then_some(0)]
}

fn check(
    name: &str,
    tasks: &[Task],
    index: usize,
    analysis: impl Fn(&[Task]) -> Bounds,
) -> Result<(), TestCaseError> {
    let before = analysis(tasks);
    let fail = |e: TestCaseError, what: &str| TestCaseError::fail(format!("{name}, {what}: {e}"));
    not_better(&before, &analysis(&heavier(tasks, index))).map_err(|e| fail(e, "cost"))?;
    let (slow, fast) = faster(tasks, index);
    not_better(&analysis(&slow), &analysis(&fast)).map_err(|e| fail(e, "period"))?;
    let more = analysis(&longer(tasks));
    not_better(&before, &more[more.len() - before.len()..]).map_err(|e| fail(e, "an added task"))
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    #[test]
    fn one_processor(tasks in systems(), which in any::<prop::sample::Index>(), levels in prop::collection::vec(0usize..6, 6)) {
        let index = which.index(tasks.len());
        check("fixed priority", &tasks, index, |t| fixed_priority::response_times(t).unwrap())?;
        check("non-preemptive", &tasks, index, |t| threshold::non_preemptive(t).unwrap())?;
        check("threshold", &tasks, index, |t| {
            // The thresholds of a task stay those of the same tasks when one is added in front.
            let shift = t.len() - tasks.len();
            let thresholds: Vec<usize> = (0..t.len()).map(|i| if i < shift { 0 } else { levels[i - shift].min(i - shift) + shift }).collect();
            threshold::response_times(t, &thresholds).unwrap()
        })?;
        check("earliest deadline", &tasks, index, |t| verdict(edf::schedulable(t).unwrap()))?;
        check("earliest deadline, response", &tasks, index, |t| edf_response::response_times(t).unwrap())?;
    }

    #[test]
    fn several_processors(tasks in systems(), which in any::<prop::sample::Index>(), processors in 1usize..4) {
        let index = which.index(tasks.len());
        check("global fixed priority", &tasks, index, |t| global_fixed_priority::response_times(t, processors).unwrap())?;
        check("GFB", &tasks, index, |t| verdict(global_edf::gfb(t, processors as u64).unwrap()))?;
        check("BCL", &tasks, index, |t| verdict(global_edf::bcl(t, processors as u64).unwrap()))?;
    }

    #[test]
    fn harmonic_in_cost_and_tasks(parts in prop::collection::vec((1u64..6, 8u64..50), 1..6), which in any::<prop::sample::Index>()) {
        let mut tasks: Vec<_> = parts.iter().map(|&(c, t)| Task::new(c, t)).collect();
        tasks.sort_by_key(|t| t.period);
        if !harmonic::schedulable(&tasks).unwrap() {
            prop_assert!(!harmonic::schedulable(&heavier(&tasks, which.index(tasks.len()))).unwrap());
        }
    }

    #[test]
    fn tables(parts in prop::collection::vec((1u64..5, prop::sample::select(vec![6u64, 8, 12, 24])), 1..5), which in any::<prop::sample::Index>()) {
        let tasks: Vec<_> = parts.iter().map(|&(c, t)| Task::new(c, t)).collect();
        let exists = |t: &[Task]| table::build(t).is_ok();
        if !exists(&tasks) {
            prop_assert!(!exists(&heavier(&tasks, which.index(tasks.len()))));
            prop_assert!(!exists(&longer(&tasks)));
        }
    }

    #[test]
    fn tardiness_in_what_is_left(
        parts in prop::collection::vec((1u64..8, 12u64..60), 1..6),
        supplies in prop::collection::vec((1u64..8, 0u64..9), 1..4),
        which in any::<prop::sample::Index>(),
    ) {
        let tasks: Vec<_> = parts.iter().map(|&(c, t)| Task::new(c, t)).collect();
        let supplies: Vec<_> = supplies.iter().map(|&(r, s)| Supply { rate: ratio(r, 8).unwrap(), shortage: integer(s) }).collect();
        let of = |tasks: &[Task], supplies: &[Supply]| -> Bounds {
            let implicit: Vec<Task> = tasks.iter().map(|t| Task::new(t.cost, t.period)).collect();
            match tardiness::with_supply(&implicit, supplies).unwrap() {
                Some(bounds) => bounds.into_iter().map(Some).collect(),
                None => vec![None; tasks.len()],
            }
        };
        check("tardiness", &tasks, which.index(tasks.len()), |t| of(t, &supplies))?;
        let mut less = supplies.clone();
        let index = which.index(less.len());
        less[index].rate = &less[index].rate - ratio(1, 16).unwrap();
        not_better(&of(&tasks, &supplies), &of(&tasks, &less))?;
        let mut later = supplies.clone();
        later[index].shortage = &later[index].shortage + integer(1);
        not_better(&of(&tasks, &supplies), &of(&tasks, &later))?;
    }

    #[test]
    fn caches(
        parts in prop::collection::vec((1u64..5, 12u64..60, prop::collection::vec(0usize..12, 0..5), 0usize..5), 1..5),
        which in any::<prop::sample::Index>(),
        reload in 0u64..3,
    ) {
        let mut parts = parts;
        parts.sort_by_key(|p| p.1);
        let plain: Vec<Task> = parts.iter().map(|p| Task::new(p.0, p.1)).collect();
        let of = |tasks: &[Task], reload: u64| {
            let shift = tasks.len() - parts.len();
            let tasks: Vec<CacheTask> = tasks.iter().enumerate().map(|(i, &task)| {
                let none = (0, 0, vec![0, 1], 0);
                let (_, _, sets, useful) = if i < shift { &none } else { &parts[i - shift] };
                CacheTask {
                    task,
                    evicting: CacheSets::of(sets.iter().copied()),
                    useful: CacheSets::of(sets.iter().copied().take(*useful)),
                }
            }).collect();
            preemption_delay::response_times(&tasks, reload).unwrap()
        };
        check("preemption delay", &plain, which.index(plain.len()), |t| of(t, reload))?;
        not_better(&of(&plain, reload), &of(&plain, reload + 1))?;
    }

    #[test]
    fn phases(
        parts in prop::collection::vec((1u64..6, 100u64..400, 0u64..4, 0u64..4), 1..5),
        which in any::<prop::sample::Index>(),
    ) {
        let mut parts = parts;
        parts.sort_by_key(|p| p.1);
        let plain: Vec<Task> = parts.iter().map(|p| Task::new(p.0, p.1)).collect();
        let tdma = Tdma { slots: vec![3, 3, 3], usable: vec![2, 2, 2] };
        check("three phases", &plain, which.index(plain.len()), |tasks| {
            let shift = tasks.len() - parts.len();
            let tasks: Vec<PhasedTask> = tasks.iter().enumerate().map(|(i, &task)| {
                let (load, unload) = if i < shift { (1, 1) } else { (parts[i - shift].2, parts[i - shift].3) };
                // The added task must leave room for others.
                let task = if i < shift { Task::new(1, 90) } else { task };
                PhasedTask { task, load, unload }
            }).collect();
            three_phase::response_times(&tasks, &tdma, 1).unwrap()
        })?;
    }

    #[test]
    fn one_shot_flows(
        parts in prop::collection::vec((1u64..5, 20u64..60, 0usize..2), 2..5),
        which in any::<prop::sample::Index>(),
        transfer in 0u64..4,
    ) {
        let plain: Vec<Task> = parts.iter().map(|p| Task::new(p.0, p.1)).collect();
        let of = |tasks: &[Task], transfer: u64| -> Bounds {
            let shift = tasks.len() - parts.len();
            let tasks: Vec<PlacedTask> = tasks.iter().enumerate()
                .map(|(i, &task)| PlacedTask { task, core: if i < shift { 0 } else { parts[i - shift].2 } }).collect();
            let flow = Flow { tasks: (shift..tasks.len()).collect(), transfers: vec![transfer; parts.len() - 1] };
            vec![one_shot::flow_bounds(&tasks, &[flow]).unwrap()[0].as_ref().map(|b| b.latency)]
        };
        // A shorter period polls more often, which may make a flow faster: only cost and added tasks count.
        let before = of(&plain, transfer);
        not_better(&before, &of(&heavier(&plain, which.index(plain.len())), transfer))?;
        not_better(&before, &of(&longer(&plain), transfer))?;
        not_better(&before, &of(&plain, transfer + 1))?;
    }

    #[test]
    fn memory(
        phases in prop::collection::vec((1u64..8, 0u64..40), 1..5),
        which in any::<prop::sample::Index>(),
        accesses in 0u64..60,
        budget in 1u64..9,
        period in 20u64..60,
    ) {
        let cores: Vec<Phases> = phases.iter().map(|&(l, gap)| Phases { longest: l, distance: l + gap }).collect();
        let index = which.index(cores.len());
        let mut longer = cores.clone();
        longer[index].longest += 1;
        longer[index].distance += 1;
        let mut denser = longer.clone();
        denser[index].distance -= u64::from(denser[index].distance > denser[index].longest);
        let mut more = cores.clone();
        more.push(Phases { longest: 2, distance: 50 });
        let mut longer_only = cores.clone();
        longer_only[index].distance += 1;
        for core in 0..cores.len() {
            let fifo = |c: &[Phases]| vec![memory_mutex::fifo(c, core).ok()];
            let priority = |c: &[Phases]| vec![memory_mutex::by_priority(c, core).unwrap()];
            for of in [&fifo as &dyn Fn(&[Phases]) -> Bounds, &priority] {
                not_better(&of(&longer_only), &of(&longer))?;
                not_better(&of(&longer), &of(&denser))?;
                not_better(&of(&cores), &of(&more))?;
            }
        }
        let regulation = Regulation { budget, period, access: 1 };
        let stall = |n, r: &Regulation| vec![memguard::stall(n, r).unwrap()];
        let base = stall(accesses, &regulation);
        not_better(&base, &stall(accesses + 1, &regulation))?;
        not_better(&base, &stall(accesses, &Regulation { period: period + 1, ..regulation }))?;
        not_better(&stall(accesses, &Regulation { budget: budget + 1, ..regulation }), &base)?;
    }
}
