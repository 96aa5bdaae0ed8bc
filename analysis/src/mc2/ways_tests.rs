//! The way optimiser against every possible plan, on problems small enough to enumerate.

use super::*;
use proptest::prelude::*;

/// Calls `each` with every way to hand out at most `left` ways to `count` regions.
fn every(count: usize, left: usize, plan: &mut Vec<usize>, each: &mut dyn FnMut(&[usize])) {
    if plan.len() == count {
        return each(plan);
    }
    for ways in 0..=left {
        plan.push(ways);
        every(count, left - ways, plan, each);
        plan.pop();
    }
}

/// The definition, word by word: all plans, the constraints, the order.
fn brute_force(problem: &WayProblem) -> Option<WayPlan> {
    let count = problem.processors.len();
    type Key = (u64, i128, Vec<usize>);
    let mut best: Option<(Key, WayPlan)> = None;
    every(count + 2, problem.ways, &mut Vec::new(), &mut |ways| {
        let (locked, processors, level_c) = (ways[0], &ways[1..=count], ways[count + 1]);
        if !problem.locked.contains(&locked) || level_c < problem.minimum_level_c {
            return;
        }
        let mut rate = 0u64;
        for (table, &own) in problem.processors.iter().zip(processors) {
            let at = problem.index(locked, own);
            if [table.a[at], table.ab_b[at], table.ab_c[at]]
                .iter()
                .any(|&u| u > ONE)
            {
                return;
            }
            rate += ONE - table.ab_c[at];
        }
        let at = problem.index(locked, level_c);
        let (total, largest) = (problem.c_total[at], problem.c_largest[at]);
        if total > rate || (largest > 0 && largest >= rate) {
            return;
        }
        let key = (total, -i128::from(rate - total), ways.to_vec());
        if best.as_ref().is_none_or(|(b, _)| key < *b) {
            let plan = WayPlan {
                locked,
                processors: processors.to_vec(),
                level_c,
                objective: total,
                slack: rate - total,
            };
            best = Some((key, plan));
        }
    });
    best.map(|(_, plan)| plan)
}

/// A number shared by many entries, so that ties are common; a few are too large.
fn entry() -> impl Strategy<Value = u64> {
    prop_oneof![
        8 => (0u64..=9).prop_map(|n| n * (ONE / 8)),
        2 => 0..2 * ONE,
        1 => Just(u64::MAX),
    ]
}

fn table(size: usize) -> impl Strategy<Value = Vec<u64>> {
    prop::collection::vec(entry(), size)
}

/// Makes a table decrease along both indices.
fn fall(table: &mut [u64], stride: usize) {
    for at in 0..table.len() {
        if at >= stride {
            table[at] = table[at].min(table[at - stride]);
        }
        if at % stride > 0 {
            table[at] = table[at].min(table[at - 1]);
        }
    }
}

fn problem() -> impl Strategy<Value = WayProblem> {
    (1usize..7, 0usize..4, any::<bool>())
        .prop_flat_map(|(ways, count, monotone)| {
            let size = (ways + 1) * (ways + 1);
            (
                prop::collection::vec((table(size), table(size), table(size)), count),
                table(size),
                table(size),
                0..=ways,
                (0..=ways, 0..=ways),
                Just((ways, monotone)),
            )
        })
        .prop_map(
            |(tables, c_total, c_largest, minimum, locked, (ways, monotone))| {
                let mut problem = WayProblem {
                    ways,
                    processors: tables
                        .into_iter()
                        .map(|(a, ab_b, ab_c)| ProcessorTable { a, ab_b, ab_c })
                        .collect(),
                    c_total,
                    c_largest,
                    minimum_level_c: minimum / 2,
                    locked: locked.0 / 2..=locked.1,
                };
                if monotone {
                    for p in &mut problem.processors {
                        for t in [&mut p.a, &mut p.ab_b, &mut p.ab_c] {
                            fall(t, ways + 1);
                        }
                    }
                    fall(&mut problem.c_total, ways + 1);
                    fall(&mut problem.c_largest, ways + 1);
                }
                problem
            },
        )
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]

    #[test]
    fn equals_brute_force(problem in problem()) {
        prop_assert_eq!(problem.solve(), brute_force(&problem));
    }

    /// State left behind by an earlier problem changes nothing.
    #[test]
    fn memory_does_not_matter(first in problem(), second in problem()) {
        let (mut scratch, mut plan) = (Scratch::default(), WayPlan::default());
        first.solve_into(&mut scratch, &mut plan);
        let found = second.solve_into(&mut scratch, &mut plan);
        prop_assert_eq!(found.then_some(plan), second.solve());
    }

    /// One more way never makes the answer worse (tables of the larger problem agree with those of the smaller one).
    #[test]
    fn more_ways_never_hurt(large in problem()) {
        let ways = large.ways - 1;
        let smaller = |table: &[u64]| -> Vec<u64> {
            table.chunks(large.ways + 1).take(ways + 1).flat_map(|row| &row[..=ways]).copied().collect()
        };
        let small = WayProblem {
            ways,
            processors: large.processors.iter().map(|p| ProcessorTable {
                a: smaller(&p.a),
                ab_b: smaller(&p.ab_b),
                ab_c: smaller(&p.ab_c),
            }).collect(),
            c_total: smaller(&large.c_total),
            c_largest: smaller(&large.c_largest),
            ..large.clone()
        };
        if let Some(plan) = small.solve() {
            prop_assert!(large.solve().is_some_and(|l| l.objective <= plan.objective));
        }
    }
}

/// Two processors, four ways. Levels A and B of the first need two ways, those of the second one; one is left for level C.
/// If level C needed more than the processors then leave, the second would have to get less, which it cannot: no plan.
#[test]
fn by_hand() {
    let half = ONE / 2;
    let mut problem = WayProblem::new(4, 2);
    for own in 0..=4 {
        let at = problem.index(0, own);
        problem.processors[0].a[at] = if own < 2 { ONE + 1 } else { ONE };
        problem.processors[1].ab_b[at] = if own < 1 { 2 * ONE } else { half };
        problem.processors[0].ab_c[at] = half;
        problem.processors[1].ab_c[at] = half;
        problem.c_total[at] = half - own as u64 * (ONE / 16);
    }
    problem.minimum_level_c = 1;
    let plan = problem.solve().unwrap();
    assert_eq!((plan.processors.as_slice(), plan.level_c), (&[2, 1][..], 1));
    assert_eq!(
        (plan.objective, plan.slack),
        (half - ONE / 16, half + ONE / 16)
    );
    problem.c_largest.fill(ONE);
    assert_eq!(
        problem.solve(),
        None,
        "tardiness asks for more than what is left"
    );
    problem.c_largest.fill(ONE - 1);
    assert!(problem.solve().is_some());
    problem.minimum_level_c = 2;
    assert_eq!(problem.solve(), None, "no way is left for the system");
    problem.minimum_level_c = 5;
    assert_eq!(problem.solve(), None);
}

/// Tables of the wrong size, empty ranges, no processors: an answer, never a panic.
#[test]
fn odd_problems() {
    let mut problem = WayProblem::new(3, 2);
    assert_eq!(problem.solve().unwrap().slack, 2 * ONE);
    problem.processors[1].ab_b.truncate(2);
    assert!(problem.solve().is_some());
    problem.processors[1].ab_b.clear();
    assert_eq!(problem.solve(), None);
    let mut problem = WayProblem::new(0, 0);
    assert_eq!(problem.solve(), Some(WayPlan::default()));
    problem.locked = 1..=usize::MAX;
    assert_eq!(problem.solve(), None);
    problem.locked = 0..=usize::MAX;
    problem.c_total.clear();
    assert_eq!(problem.solve(), None);
    problem.c_total.push(1);
    assert_eq!(problem.solve(), None);
}
