//! The buffer search against every possible placement, with the way optimiser for each.

use super::super::ways::WayProblem;
use super::*;
use proptest::prelude::*;

/// A task. The first tasks of a processor have buffers.
#[derive(Clone, Debug)]
struct ModelTask {
    level_a: bool,
    /// Utilisation with all ways, in 64ths of [`ONE`].
    base: u64,
    /// How much longer it takes with each way less than `needs`, in percent.
    ways: u64,
    needs: u64,
    /// How much longer it takes if its buffer is in a bank of level C, in percent.
    slower: u64,
    load: Load,
}

#[derive(Clone, Debug)]
struct Model {
    ways: usize,
    minimum: usize,
    locked: RangeInclusive<usize>,
    tasks: Vec<Vec<ModelTask>>,
    loads: Vec<Vec<Load>>,
    c: u64,
}

/// Interference in percent caused by a rate: rising, with decreasing slope.
fn disturbed(rate: u64) -> u64 {
    120 * rate / (rate + 20)
}

impl BufferModel for Model {
    fn ways(&self) -> usize {
        self.ways
    }
    fn minimum_level_c(&self) -> usize {
        self.minimum
    }
    fn locked(&self) -> RangeInclusive<usize> {
        self.locked.clone()
    }
    fn processors(&self) -> usize {
        self.tasks.len()
    }
    fn loads(&self, processor: usize) -> &[Load] {
        &self.loads[processor]
    }
    fn demand(&self, processor: usize, places: &[Place], table: &mut ProcessorTable) {
        let loads = self.loads(processor);
        let own: u64 = places
            .iter()
            .zip(loads)
            .filter(|(p, _)| **p == Place::Own)
            .map(|(_, l)| l[0])
            .sum();
        let stride = self.ways + 1;
        table.a = vec![0; stride * stride];
        table.ab_b = vec![0; stride * stride];
        table.ab_c = vec![0; stride * stride];
        for at in 0..stride * stride {
            let (locked, ways) = ((at / stride) as u64, (at % stride) as u64);
            for (i, t) in self.tasks[processor].iter().enumerate() {
                let missing = t.needs.saturating_sub(ways);
                let slower = if places.get(i) == Some(&Place::LevelC) {
                    t.slower
                } else {
                    0
                };
                let percent = 100
                    + t.ways * missing
                    + slower
                    + disturbed(own)
                    + 20u64.saturating_sub(5 * locked);
                let cost = (t.base * (ONE / 64)) * percent / 100;
                if t.level_a {
                    table.a[at] += cost * 3 / 2;
                }
                table.ab_b[at] += cost;
                table.ab_c[at] += cost / 2;
            }
        }
    }
    fn level_c(&self, [rate, copying]: Load, total: &mut Vec<u64>, largest: &mut Vec<u64>) {
        let stride = self.ways + 1;
        *total = (0..stride * stride)
            .map(|at| {
                (self.c * (ONE / 64))
                    * (100 + 10 * (self.ways - at % stride) as u64 + disturbed(rate) + copying)
                    / 100
            })
            .collect();
        *largest = total.iter().map(|u| u / 2).collect();
    }
}

/// All placements, each with the best ways.
fn brute_force(model: &Model) -> Option<(u64, u64)> {
    let counts: Vec<usize> = (0..model.processors())
        .map(|p| model.loads(p).len())
        .collect();
    let buffers: usize = counts.iter().sum();
    let mut best: Option<(u64, u64)> = None;
    for mask in 0..1u32 << buffers {
        let (mut bit, mut load) = (0, [0; 2]);
        let mut problem = WayProblem::new(model.ways, model.processors());
        problem.minimum_level_c = model.minimum;
        problem.locked = model.locked.clone();
        for (p, count) in counts.iter().enumerate() {
            let places: Vec<Place> = (bit..bit + count)
                .map(|b| {
                    if mask >> b & 1 == 1 {
                        Place::LevelC
                    } else {
                        Place::Own
                    }
                })
                .collect();
            bit += count;
            for (place, r) in places.iter().zip(model.loads(p)) {
                load = if *place == Place::LevelC {
                    plus(load, *r)
                } else {
                    load
                };
            }
            model.demand(p, &places, &mut problem.processors[p]);
        }
        model.level_c(load, &mut problem.c_total, &mut problem.c_largest);
        if let Some(plan) = problem.solve()
            && best.is_none_or(|(u, s)| (plan.objective, u64::MAX - plan.slack) < (u, u64::MAX - s))
        {
            best = Some((plan.objective, plan.slack));
        }
    }
    best
}

fn task() -> impl Strategy<Value = ModelTask> {
    let shares = (any::<bool>(), 1u64..16, 0u64..20, 0u64..5);
    (shares, 0u64..60, 1u64..20, 0u64..8).prop_map(
        |((level_a, base, ways, needs), slower, rate, copying)| ModelTask {
            level_a,
            base,
            ways,
            needs,
            slower,
            load: [rate, copying],
        },
    )
}

fn model() -> impl Strategy<Value = Model> {
    (
        prop::collection::vec((prop::collection::vec(task(), 0..5), 0usize..4), 1..4),
        3usize..7,
        0usize..3,
        0usize..3,
        1u64..120,
    )
        .prop_map(|(processors, ways, minimum, locked, c)| {
            let loads = processors
                .iter()
                .map(|(tasks, with)| tasks.iter().take(*with).map(|t| t.load).collect())
                .collect();
            Model {
                ways,
                minimum,
                locked: 0..=locked,
                tasks: processors.into_iter().map(|(tasks, _)| tasks).collect(),
                loads,
                c,
            }
        })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]

    #[test]
    fn equals_brute_force(model in model()) {
        let search = best(&model, u64::MAX);
        prop_assert!(search.complete);
        let found = search.plan.as_ref().map(|p| (p.ways.objective, p.ways.slack));
        prop_assert_eq!(found, brute_force(&model));
        prop_assert_eq!(feasible(&model, u64::MAX).plan.is_some(), found.is_some());
        prop_assert_eq!(search.least, found.map(|f| f.0));
        // The plan is consistent: its places with the way optimiser give no less, and its ways fit.
        if let Some(plan) = &search.plan {
            let mut problem = WayProblem::new(model.ways, model.processors());
            problem.minimum_level_c = model.minimum;
            problem.locked = model.locked.clone();
            let mut load = [0; 2];
            for (p, places) in plan.places.iter().enumerate() {
                prop_assert_eq!(places.len(), model.loads(p).len());
                prop_assert!(places.iter().all(|p| *p != Place::Open));
                model.demand(p, places, &mut problem.processors[p]);
                load = places.iter().zip(model.loads(p)).filter(|(p, _)| **p == Place::LevelC).fold(load, |sum, (_, l)| plus(sum, *l));
            }
            model.level_c(load, &mut problem.c_total, &mut problem.c_largest);
            let again = problem.solve().expect("the plan's own places have a plan");
            prop_assert_eq!((again.objective, again.slack), (plan.ways.objective, plan.ways.slack));
            let used = plan.ways.locked + plan.ways.level_c + plan.ways.processors.iter().sum::<usize>();
            prop_assert!(used <= model.ways && plan.ways.level_c >= model.minimum);
        }
    }

    /// With a limit the plan may be worse, but the bound stays below the exact answer and the plan above it.
    #[test]
    fn a_limit_keeps_its_promise(model in model(), limit in 1u64..12) {
        let exact = best(&model, u64::MAX);
        let limited = best(&model, limit);
        if let Some(exact) = exact.least {
            prop_assert!(limited.least.is_some_and(|least| least <= exact));
            prop_assert!(limited.plan.is_none_or(|p| p.ways.objective >= exact));
        } else {
            prop_assert!(limited.plan.is_none());
        }
    }
}

/// One processor, two ways. The task needs 40/64 and takes 60 % longer from level C's bank; its device causes 40 % interference at
/// home. Both places fit with two ways; level C, which would otherwise be disturbed, decides for the processor's own bank.
#[test]
fn by_hand() {
    let model = Model {
        ways: 3,
        minimum: 1,
        locked: 0..=0,
        tasks: vec![vec![ModelTask {
            level_a: false,
            base: 40,
            ways: 0,
            needs: 0,
            slower: 60,
            load: [10, 0],
        }]],
        loads: vec![vec![[10, 0]]],
        c: 16,
    };
    let search = best(&model, u64::MAX);
    let plan = search.plan.unwrap();
    // 40/64 * (1 + 0.4 + 0.2) is the whole processor; 40/64 * (1 + 0.6 + 0.2) would be more than a processor.
    assert_eq!(plan.places, [vec![Place::Own]]);
    assert_eq!((plan.ways.processors[0], plan.ways.level_c), (0, 3));
    assert_eq!(plan.ways.objective, ONE / 4);
}
