//! Random programs of two and three threads on harts of clusters and meshes, against the axioms of RVWMO.
//!
//! Why it exists: litmus tests have the shapes that somebody thought of. Here, programs are random, and what they may find is computed from
//! the specification (RISC-V Unprivileged ISA, "RVWMO": preserved program order, load value and atomicity axioms) by trying every global
//! order of their accesses. Every outcome of the machine must be one of those. What it does not know: accesses that overlap in part,
//! and how the machine works.

use crate::common::litmus::*;
use proptest::prelude::*;
use proptest::test_runner::{RngAlgorithm, TestRng, TestRunner};
use std::collections::BTreeSet;

/// An access of a thread.
#[derive(Clone, Debug)]
struct Access {
    thread: usize,
    variable: u32,
    reads: bool,
    /// What it writes: a value, or a value more than it reads.
    writes: Option<Write>,
    acquires: bool,
    releases: bool,
    /// Accesses on whose values its address, its data and whether it is made depend (numbers among all accesses).
    address: Option<usize>,
    data: Option<usize>,
    control: Vec<usize>,
    /// The load-reserved of a store-conditional.
    pair: Option<usize>,
    /// Fences of its thread that are before it.
    fences: usize,
}

#[derive(Clone, Copy, Debug)]
enum Write {
    Value(u64),
    Add(u64),
    /// A value more than its load-reserved has read.
    Conditional(u64),
}

/// What a fence orders: whether reads and writes before it come before reads and writes after it.
#[derive(Clone, Copy, Debug)]
struct Ordered([[bool; 2]; 2]);

/// All accesses, thread by thread in program order, and each thread's fences.
fn accesses(threads: &[Vec<Do>]) -> (Vec<Access>, Vec<Vec<Ordered>>) {
    let (mut all, mut fences) = (Vec::new(), Vec::new());
    for (thread, ops) in threads.iter().enumerate() {
        let (mut found, mut control, mut own) = (None, Vec::new(), Vec::new());
        for op in ops {
            let mut access = Access {
                thread,
                variable: 0,
                reads: op.finds(),
                writes: None,
                acquires: false,
                releases: false,
                address: None,
                data: None,
                control: Vec::new(),
                pair: None,
                fences: own.len(),
            };
            if let WControl(..) | RControl(_) = op {
                control.extend(found);
            }
            match *op {
                F => {
                    own.push(Ordered([[true; 2]; 2]));
                    continue;
                }
                Fence(bits) => {
                    let has = |shift: u32, bit: u32| bits >> shift & bit != 0;
                    let [before, after] =
                        [PRECEDING, FOLLOWING].map(|shift| [has(shift, 2), has(shift, 1)]);
                    let mut all = before.map(|one| after.map(|other| one && other));
                    if bits >> 28 == 8 {
                        all[1][0] = false;
                    }
                    own.push(Ordered(all));
                    continue;
                }
                R(v) | RLate(v) => access.variable = v,
                RControl(v) => access.variable = v,
                RDependent(v) => (access.variable, access.address) = (v, found),
                W(v, value) | WControl(v, value) => {
                    access.variable = v;
                    access.writes = Some(Write::Value(value.into()));
                }
                WDependent(v, value) => {
                    (access.variable, access.data) = (v, found);
                    access.writes = Some(Write::Value(value.into()));
                }
                WAddress(v, value) => {
                    (access.variable, access.address) = (v, found);
                    access.writes = Some(Write::Value(value.into()));
                }
                Add(v, value) => {
                    access.variable = v;
                    access.writes = Some(Write::Add(value.into()));
                    (access.acquires, access.releases) = (true, true);
                }
                Acquire(v) => (access.variable, access.acquires) = (v, true),
                AcquireAdd(v) => {
                    (access.variable, access.acquires) = (v, true);
                    access.writes = Some(Write::Add(0));
                }
                Release(v, value) => {
                    (access.variable, access.releases) = (v, true);
                    access.reads = true;
                    access.writes = Some(Write::Value(value.into()));
                }
                Reserved(v, _) => access.variable = v,
                All(..) | WPart(..) | RPart(..) => panic!("{op:?} is not drawn"),
            }
            access.control = control.clone();
            if op.finds() {
                found = Some(all.len());
            }
            all.push(access);
            if let Reserved(v, value) = *op {
                // The pair that succeeds. The loop ends when it has, so what follows depends on it.
                let load = all.len() - 1;
                let conditional = Access {
                    variable: v,
                    reads: false,
                    writes: Some(Write::Conditional(value.into())),
                    data: Some(load),
                    pair: Some(load),
                    ..all[load].clone()
                };
                control.push(all.len());
                all.push(conditional);
            }
        }
        fences.push(own);
    }
    (all, fences)
}

/// Whether an access precedes a later one of its thread, whatever values they find (rules 1, 4 to 11 and 13).
fn preserved(all: &[Access], fences: &[Vec<Ordered>], a: usize, b: usize) -> bool {
    let (one, other) = (&all[a], &all[b]);
    let stores = other.writes.is_some();
    let fence = fences[one.thread][one.fences..other.fences].iter();
    let is = |access: &Access, write: usize| match write {
        0 => access.reads,
        _ => access.writes.is_some(),
    };
    let mut fence =
        fence.flat_map(|Ordered(of)| (0..4).map(move |k| (k / 2, k % 2, of[k / 2][k % 2])));
    let annotated = |access: &Access| access.acquires || access.releases;
    let between = || (a + 1..b).any(|m| all[m].address == Some(a));
    (stores && one.variable == other.variable)
        || fence.any(|(before, after, orders)| orders && is(one, before) && is(other, after))
        || one.acquires
        || other.releases
        || (annotated(one) && annotated(other))
        || other.pair == Some(a)
        || other.address == Some(a)
        || other.data == Some(a)
        || (stores && other.control.contains(&a))
        || (stores && between())
}

/// Everything that the axioms allow: the values found, in thread order, and the final values.
fn allowed(threads: &[Vec<Do>]) -> BTreeSet<Vec<u64>> {
    let (all, fences) = accesses(threads);
    let n = all.len();
    let mut before = vec![Vec::new(); n];
    for b in 0..n {
        for a in (0..b).filter(|a| all[*a].thread == all[b].thread) {
            if preserved(&all, &fences, a, b) {
                before[b].push(a);
            }
        }
    }
    let mut outcomes = BTreeSet::new();
    extend(&all, &before, &mut Vec::new(), &mut outcomes);
    outcomes
}

/// Tries every global order that begins with `order`.
fn extend(
    all: &[Access],
    before: &[Vec<usize>],
    order: &mut Vec<usize>,
    outcomes: &mut BTreeSet<Vec<u64>>,
) {
    if order.len() == all.len() {
        outcomes.extend(outcome_of(all, order));
        return;
    }
    for next in 0..all.len() {
        if !order.contains(&next) && before[next].iter().all(|one| order.contains(one)) {
            order.push(next);
            extend(all, before, order, outcomes);
            order.pop();
        }
    }
}

/// The outcome of a global order, if the rules that depend on values (2, 3 and 12) hold in it.
fn outcome_of(all: &[Access], order: &[usize]) -> Option<Vec<u64>> {
    let n = all.len();
    let mut place = vec![0; n];
    for (at, access) in order.iter().enumerate() {
        place[*access] = at;
    }
    let same = |a: usize, b: usize| all[a].thread == all[b].thread;
    // Where each read finds its value: the last write in the global order of those that are before it there or in its program.
    let source = |b: usize| {
        let writes = (0..n).filter(|a| {
            let earlier = place[*a] < place[b] || (same(*a, b) && *a < b);
            *a != b && all[*a].writes.is_some() && all[*a].variable == all[b].variable && earlier
        });
        writes.max_by_key(|a| place[*a])
    };
    let sources: Vec<Option<usize>> = (0..n).map(source).collect();
    for b in 0..n {
        if !all[b].reads {
            continue;
        }
        for a in (0..b).filter(|a| same(*a, b)) {
            let ordered = place[a] < place[b];
            let alike = all[a].variable == all[b].variable;
            let written =
                (a + 1..b).any(|m| all[m].writes.is_some() && all[m].variable == all[b].variable);
            let two_loads = all[a].reads && alike && !written && sources[a] != sources[b];
            let is_atomic = all[a].reads || all[a].pair.is_some();
            let atomic = is_atomic && all[a].writes.is_some() && sources[b] == Some(a);
            let forwarded = (a + 1..b).any(|m| {
                let depends = all[m].address == Some(a) || all[m].data == Some(a);
                all[m].writes.is_some() && depends && sources[b] == Some(m)
            });
            if (two_loads || atomic || forwarded) && !ordered {
                return None;
            }
        }
        // Nothing comes between the two parts of an atomic operation: it is one access here, so the last write before it is its source.
        if all[b].writes.is_some() && sources[b].is_some_and(|a| place[a] > place[b]) {
            return None;
        }
    }
    // No other thread's write is between what a load-reserved reads and its store-conditional.
    for b in 0..n {
        let Some(load) = all[b].pair else { continue };
        let from = sources[load].map_or(0, |a| place[a] + 1);
        let between = order[from.min(place[b])..place[b]].iter();
        let mut writes = between.filter(|a| all[**a].writes.is_some());
        if from > place[b] || writes.any(|a| all[*a].variable == all[b].variable && !same(*a, b)) {
            return None;
        }
    }
    let mut values = vec![0; n];
    let mut written = vec![0; n];
    for b in order.iter().copied() {
        // A value that a thread has from its own later write is known without the global order.
        let of = |a: usize, written: &[u64]| match all[a].writes {
            Some(Write::Value(value)) => value,
            _ => written[a],
        };
        values[b] = sources[b].map_or(0, |a| of(a, &written));
        written[b] = match all[b].writes {
            Some(Write::Add(value)) => values[b] + value,
            Some(Write::Conditional(value)) => values[all[b].pair.expect("a pair")] + value,
            Some(Write::Value(value)) => value,
            None => 0,
        };
    }
    let found =
        (0..n).filter(|b| all[*b].reads && !matches!(all[*b].writes, Some(Write::Value(_))));
    let mut outcome: Vec<u64> = found.map(|b| values[b]).collect();
    for variable in 0..VARIABLES as u32 {
        let writes = (0..n).filter(|a| all[*a].writes.is_some() && all[*a].variable == variable);
        outcome.push(writes.max_by_key(|a| place[*a]).map_or(0, |a| written[a]));
    }
    Some(outcome)
}

/// An operation of a thread: what, and of which variable. The values that are written differ.
fn operations() -> impl Strategy<Value = (u8, u32)> {
    (0u8..25, 0u32..2)
}

/// Threads of two or three accesses, and fences between them.
fn programs() -> impl Strategy<Value = Vec<Vec<Do>>> {
    let thread = || prop::collection::vec(operations(), 2..5);
    let two = prop::collection::vec(thread(), 2..=2);
    let three = prop::collection::vec(prop::collection::vec(operations(), 1..3), 3..=3);
    prop_oneof![3 => two, 1 => three].prop_map(|threads| {
        let mut value = 0;
        let own = |ops: Vec<(u8, u32)>| {
            let (mut found, mut all) = (false, Vec::new());
            for (what, variable) in ops {
                value += 1;
                let depends = |op: Do, plain: Do| if found { op } else { plain };
                let plain = W(variable, value);
                let op = match what {
                    0..4 => R(variable),
                    4..8 => plain,
                    8 => depends(RDependent(variable), RLate(variable)),
                    9 => depends(RControl(variable), R(variable)),
                    10 => depends(WDependent(variable, value), plain),
                    11 => depends(WAddress(variable, value), plain),
                    12 => depends(WControl(variable, value), plain),
                    13 => Add(variable, 16 * value),
                    14 => Acquire(variable),
                    15 => AcquireAdd(variable),
                    16 | 17 => Release(variable, value),
                    18 => RLate(variable),
                    19 => F,
                    20 => WW,
                    21 => RR,
                    22 => [WR, RW][variable as usize],
                    23 => Reserved(variable, 16 * value),
                    _ => TSO,
                };
                found |= op.finds();
                all.push(op);
            }
            all
        };
        threads.into_iter().map(own).collect()
    })
}

/// What the axioms say of shapes whose answer is known.
#[test]
fn the_axioms_know_the_shapes() {
    let (x, y) = (0, 1);
    let may = |threads: &[&[Do]], found: &[u64]| {
        let threads: Vec<Vec<Do>> = threads.iter().map(|ops| ops.to_vec()).collect();
        allowed(&threads)
            .iter()
            .any(|one| one[..found.len()] == *found)
    };
    let sb = |fence: Option<Do>| {
        let of = |a, b| [Some(W(a, 1)), fence, Some(R(b))];
        let [one, other] =
            [of(x, y), of(y, x)].map(|ops| ops.into_iter().flatten().collect::<Vec<_>>());
        may(&[&one, &other], &[0, 0])
    };
    assert_eq!(
        [None, Some(TSO), Some(WW), Some(WR), Some(F)].map(sb),
        [true, true, true, false, false]
    );
    assert!(!may(
        &[&[Release(x, 1), Acquire(y)], &[Release(y, 1), Acquire(x)]],
        &[0, 0]
    ));
    assert!(may(
        &[&[Release(x, 1), R(y)], &[Release(y, 1), R(x)]],
        &[0, 0]
    ));
    let mp = |reader: &[Do]| may(&[&[W(x, 1), WW, W(y, 1)], reader], &[1, 0]);
    assert!(mp(&[R(y), R(x)]) && mp(&[R(y), RControl(x)]) && mp(&[R(y), WW, R(x)]));
    assert!(!mp(&[R(y), RDependent(x)]) && !mp(&[Acquire(y), R(x)]) && !mp(&[R(y), RR, R(x)]));
    let lb =
        |write: fn(u32, u32) -> Do| may(&[&[R(x), write(y, 1)], &[R(y), write(x, 1)]], &[1, 1]);
    assert!(lb(W) && !lb(WDependent) && !lb(WAddress) && !lb(WControl) && !lb(Release));
    assert!(may(&[&[R(x), R(x), W(y, 1)], &[R(y), W(x, 1)]], &[1, 1, 1]));
    assert!(!may(
        &[&[R(x), RDependent(x), W(y, 1)], &[R(y), WDependent(x, 1)]],
        &[1, 1, 1]
    ));
    // One place: two loads are in order, and a thread has its own store.
    assert!(!may(&[&[W(x, 1)], &[R(x), R(x)]], &[1, 0]));
    assert!(!may(&[&[W(x, 1), R(x)], &[]], &[0]));
    let iris: [&[Do]; 4] = [&[W(x, 1)], &[W(y, 1)], &[R(x), RR, R(y)], &[R(y), RR, R(x)]];
    assert!(!may(&iris, &[1, 0, 1, 0]) && may(&iris, &[1, 0, 1, 1]));
    // Store forwarding: a thread may have its own store before all others do.
    let forwards: [&[Do]; 2] = [
        &[W(x, 1), R(x), RDependent(y)],
        &[W(y, 1), R(y), RDependent(x)],
    ];
    assert!(may(&forwards, &[1, 0, 1, 0]));
    for add in [Add, Reserved] {
        assert!(!may(&[&[Add(x, 1)], &[add(x, 2)]], &[0, 0]));
        assert!(!may(&[&[add(x, 1)], &[add(x, 2)]], &[1, 1]));
        // The store of another thread comes before or after, and not between.
        assert!(
            may(&[&[add(x, 1)], &[W(x, 4)]], &[4, 5]) && may(&[&[add(x, 1)], &[W(x, 4)]], &[0, 4])
        );
        assert!(!may(&[&[add(x, 1)], &[W(x, 4)]], &[0, 1]));
    }
    // A pair orders nothing else.
    assert!(may(
        &[&[Reserved(x, 1), R(y)], &[W(y, 1), F, R(x)]],
        &[0, 0, 0]
    ));
}

/// Whatever the program, and whatever the chip: in order and out of order, in one cluster, in several, and on a mesh of local memories.
#[test]
fn every_outcome_of_random_programs_is_allowed() {
    let chips = [(false, false), (true, false), (false, true), (true, true)];
    let cases = programs().prop_flat_map(move |threads| {
        let number = threads.len();
        let of = move |(out, apart)| prop::collection::vec(starts(number, out, apart), 3);
        let on_mesh = [false, true].map(|out| of((out, false)));
        (Just(threads), chips.map(of), on_mesh)
    });
    let config = ProptestConfig {
        failure_persistence: None,
        ..ProptestConfig::with_cases(programs_to_try())
    };
    let random = TestRng::deterministic_rng(RngAlgorithm::ChaCha);
    let mut runner = TestRunner::new_with_rng(config, random);
    let relaxed = std::cell::Cell::new(0);
    let done = runner.run(&cases, |(threads, starts, on_mesh)| {
        let allowed = allowed(&threads);
        let slices: Vec<&[Do]> = threads.iter().map(Vec::as_slice).collect();
        let on_mesh = on_mesh.into_iter().flatten();
        let on_mesh = on_mesh.map(|start| Start {
            mesh: true,
            ..start
        });
        for start in starts.into_iter().flatten().chain(on_mesh) {
            let seen = outcome(&slices, &start);
            let lawful = allowed.contains(&seen);
            prop_assert!(lawful, "{seen:?} is not one of {allowed:?}: {start:?}");
        }
        relaxed.set(relaxed.get() + usize::from(allowed.len() > 1));
        Ok(())
    });
    done.unwrap();
    let (relaxed, all) = (relaxed.get(), programs_to_try() as usize);
    println!("{relaxed} of {all} programs have several outcomes");
    assert!(2 * relaxed > all);
}

/// How many programs are tried.
fn programs_to_try() -> u32 {
    let given = std::env::var("PROPTEST_CASES");
    given.map_or(250, |cases| cases.parse().expect("a number"))
}
