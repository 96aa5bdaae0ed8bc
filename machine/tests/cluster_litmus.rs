//! Litmus tests on the harts of a cluster (RISC-V memory model, RVWMO). Caches are coherent, so nothing is flushed.
//!
//! Each test runs with many random starts: waits, lines of the variables, which hart has a line beforehand, and occasionally a second
//! level that is too small. What the model forbids never happens. The relaxed outcomes that must appear were fixed before the first run,
//! from what the pipeline does: a store that misses waits in the store buffer while later loads and stores hit, and a load that misses
//! does not keep later accesses from hitting. So without fences SB, MP, LB, S, R and 2+2W must appear; WRC and IRIW may; coherence of one
//! place is never broken.
//!
//! For harts that execute out of order, the outcomes were also fixed before their first run: SB and MP must appear, including MP whose
//! first load has a late address; LB never, because a store becomes visible when it retires, after the loads before it have their values;
//! S, R, 2+2W, WRC and IRIW may.
//!
//! Out of order, MP whose reader has only a branch between its loads must appear, too: the branch is predicted. (Fixed before its first run.)
//!
//! Each hart may also be in a cluster of its own, coherent with the others. What is forbidden stays so; SB and MP without fences must appear
//! in order, because nothing of the pipeline is different. That was fixed before the first run, too.

use crate::common::litmus::*;
use crate::common::shapes;

/// How many of many starts end in an outcome.
fn count(
    (out_of_order, apart): (bool, bool),
    threads: &[&[Do]],
    cases: u32,
    wanted: impl Fn(&[u64]) -> bool,
) -> u32 {
    let starts = starts(threads.len(), out_of_order, apart);
    count_starts(starts, cases, |start| wanted(&outcome(threads, start)))
}

const CASES: u32 = 300;

fn never(threads: &[&[Do]], forbidden: impl Fn(&[u64]) -> bool) {
    never_of(CASES, threads, forbidden);
}

/// [`never`] with fewer starts, for the many variants of a shape.
fn never_either(threads: &[&[Do]], forbidden: impl Fn(&[u64]) -> bool) {
    never_of(CASES / 6, threads, forbidden);
}

fn never_of(cases: u32, threads: &[&[Do]], forbidden: impl Fn(&[u64]) -> bool) {
    for chip in [(false, false), (true, false), (false, true), (true, true)] {
        let seen = count(chip, threads, cases, &forbidden);
        assert_eq!(seen, 0, "{threads:?}, out of order and apart: {chip:?}");
    }
}

/// Both pipelines show an outcome.
fn shows(threads: &[&[Do]], relaxed: impl Fn(&[u64]) -> bool) {
    shows_in_order(threads, &relaxed);
    shows_apart(threads, &relaxed);
    shows_out_of_order(threads, &relaxed);
}

fn shows_in_order(threads: &[&[Do]], relaxed: impl Fn(&[u64]) -> bool) {
    let seen = count((false, false), threads, 2 * CASES, relaxed);
    assert!(seen > 0, "{threads:?} does not show its relaxed outcome");
}

/// In order, between clusters.
fn shows_apart(threads: &[&[Do]], relaxed: impl Fn(&[u64]) -> bool) {
    let seen = count((false, true), threads, 2 * CASES, relaxed);
    assert!(
        seen > 0,
        "{threads:?} does not show its relaxed outcome between clusters"
    );
}

fn shows_out_of_order(threads: &[&[Do]], relaxed: impl Fn(&[u64]) -> bool) {
    let seen = count((true, false), threads, 2 * CASES, relaxed);
    assert!(
        seen > 0,
        "{threads:?} does not show its relaxed outcome out of order"
    );
}

/// Out of order, a store waits until the loads before it have their values, because it becomes visible when it retires.
fn never_out_of_order(threads: &[&[Do]], outcome: impl Fn(&[u64]) -> bool) {
    let seen = count((true, false), threads, CASES, outcome);
    assert_eq!(seen, 0, "{threads:?} out of order");
}

#[test]
fn store_buffering() {
    let both_old = |o: &[u64]| o[..2] == [0, 0];
    never(&[&[W(X, 1), F, R(Y)], &[W(Y, 1), F, R(X)]], both_old);
    never(&[&[Add(X, 1), R(Y)], &[Add(Y, 1), R(X)]], |o| {
        [o[1], o[3]] == [0, 0]
    });
    shows(&[&[W(X, 1), R(Y)], &[W(Y, 1), R(X)]], both_old);
}

#[test]
fn message_passing() {
    let old = |o: &[u64]| o[..2] == [1, 0];
    never(&[&[W(X, 1), F, W(Y, 1)], &[R(Y), F, R(X)]], old);
    never(&[&[W(X, 1), F, W(Y, 1)], &[R(Y), RDependent(X)]], old);
    never(&[&[W(X, 1), Release(Y, 1)], &[Acquire(Y), R(X)]], old);
    never(&[&[W(X, 1), F, Reserved(Y, 1)], &[R(Y), F, R(X)]], |o| {
        o[1..3] == [1, 0]
    });
    let new = |o: &[u64]| o[..2] == [1, 1];
    shows(&[&[W(X, 1), F, W(Y, 1)], &[R(Y), F, R(X)]], new);
    shows(&[&[W(X, 1), W(Y, 1)], &[R(Y), R(X)]], old);
    // Loads overtake a load whose address is late.
    let late: [&[Do]; 2] = [&[W(X, 1), F, W(Y, 1)], &[RLate(Y), R(X)]];
    shows_out_of_order(&late, old);
    never(&[&[W(X, 1), F, W(Y, 1)], &[RLate(Y), F, R(X)]], old);
}

#[test]
fn load_buffering() {
    let both_new = |o: &[u64]| o[..2] == [1, 1];
    never(&[&[R(X), F, W(Y, 1)], &[R(Y), F, W(X, 1)]], both_new);
    let dependent: [&[Do]; 2] = [&[R(X), WDependent(Y, 1)], &[R(Y), WDependent(X, 1)]];
    never(&dependent, both_new);
    let plain: [&[Do]; 2] = [&[R(X), W(Y, 1)], &[R(Y), W(X, 1)]];
    shows_in_order(&plain, both_new);
    never_out_of_order(&plain, both_new);
}

#[test]
fn s_and_r() {
    let s = |o: &[u64]| o[0] == 1 && o[1] == 2;
    never(&[&[W(X, 2), F, W(Y, 1)], &[R(Y), F, W(X, 1)]], s);
    never(&[&[W(X, 2), F, W(Y, 1)], &[R(Y), WDependent(X, 1)]], s);
    shows_in_order(&[&[W(X, 2), W(Y, 1)], &[R(Y), W(X, 1)]], s);
    let r = |o: &[u64]| o[0] == 0 && o[2] == 2;
    never(&[&[W(X, 1), F, W(Y, 1)], &[W(Y, 2), F, R(X)]], r);
    shows_in_order(&[&[W(X, 1), W(Y, 1)], &[W(Y, 2), R(X)]], r);
}

#[test]
fn two_and_two_writes() {
    let crossed = |o: &[u64]| o[..2] == [1, 1];
    never(&[&[W(X, 1), F, W(Y, 2)], &[W(Y, 1), F, W(X, 2)]], crossed);
    shows_in_order(&[&[W(X, 1), W(Y, 2)], &[W(Y, 1), W(X, 2)]], crossed);
}

#[test]
fn independent_reads_of_independent_writes() {
    let split = |o: &[u64]| o[..4] == [1, 0, 1, 0];
    never(
        &[&[W(X, 1)], &[W(Y, 1)], &[R(X), F, R(Y)], &[R(Y), F, R(X)]],
        split,
    );
}

#[test]
fn writes_to_reads_are_cumulative() {
    let old = |o: &[u64]| o[..3] == [1, 1, 0];
    never(&[&[W(X, 1)], &[R(X), F, W(Y, 1)], &[R(Y), F, R(X)]], old);
    never(
        &[
            &[W(X, 1)],
            &[R(X), WDependent(Y, 1)],
            &[R(Y), RDependent(X)],
        ],
        old,
    );
}

#[test]
fn coherence_of_one_place() {
    never(&[&[W(X, 1)], &[R(X), R(X)]], |o| o[..2] == [1, 0]);
    never(&[&[W(X, 1), W(X, 2)], &[R(X), R(X), R(X)]], |o| {
        !o[..3].is_sorted() || o[3] != 2
    });
    // The address of the first load is late, so out of order the second one is made first and must be repeated.
    never(&[&[W(X, 1)], &[RLate(X), R(X)]], |o| o[..2] == [1, 0]);
    never(&[&[W(X, 1), W(X, 2)], &[RLate(X), RLate(X), R(X)]], |o| {
        !o[..3].is_sorted() || o[3] != 2
    });
    // A thread sees its own store, and others agree on the order of two.
    never(&[&[W(X, 1), R(X)], &[W(X, 2), R(X)]], |o| {
        o[0] == 0 || o[1] == 0
    });
    never(
        &[&[W(X, 1)], &[W(X, 2)], &[R(X), R(X)], &[R(X), R(X)]],
        |o| [o[0], o[1]] == [1, 2] && [o[2], o[3]] == [2, 1],
    );
}

#[test]
fn atomic_operations_are_atomic() {
    let sum = |o: &[u64]| o[o.len() - VARIABLES] != 6;
    never(&[&[Add(X, 1)], &[Add(X, 2)], &[Reserved(X, 3)]], sum);
    never(
        &[&[Reserved(X, 1)], &[Reserved(X, 2)], &[Reserved(X, 3)]],
        sum,
    );
    // A store between load-reserved and store-conditional makes the latter fail: 2 or 3 at the end, never 1.
    never(&[&[Reserved(X, 1)], &[W(X, 2)]], |o| !matches!(o[1], 2 | 3));
}

#[test]
fn dependencies_order_stores() {
    shapes::dependencies_order_stores(|threads, forbidden| never_either(threads, forbidden));
}

#[test]
fn weaker_fences_order_what_they_name() {
    shapes::weaker_fences_order_what_they_name(|threads, forbidden| {
        never_either(threads, forbidden)
    });
}

/// Acquire and release, without any fence, in every shape.
#[test]
fn acquire_and_release_order() {
    let old = |o: &[u64]| o[..2] == [1, 0];
    never_either(&[&[W(X, 1), Release(Y, 1)], &[Acquire(Y), R(X)]], old);
    never_either(
        &[&[Release(X, 1), Acquire(Y)], &[Release(Y, 1), Acquire(X)]],
        |o| o[..2] == [0, 0],
    );
    let late: [&[Do]; 2] = [
        &[Release(X, 1), AcquireAdd(Y)],
        &[Release(Y, 1), AcquireAdd(X)],
    ];
    never(&late, |o| o[..2] == [0, 0]);
    for first in [[Acquire(X), W(Y, 1)], [R(X), Release(Y, 1)]] {
        for second in [[Acquire(Y), W(X, 1)], [R(Y), Release(X, 1)]] {
            never_either(&[&first, &second], |o| o[..2] == [1, 1]);
        }
    }
    for second in [[Acquire(Y), W(X, 1)], [R(Y), Release(X, 1)]] {
        never_either(&[&[W(X, 2), Release(Y, 1)], &second], |o| o[..2] == [1, 2]);
    }
    never_either(
        &[&[W(X, 1), Release(Y, 1)], &[Release(Y, 2), Acquire(X)]],
        |o| [o[0], o[2]] == [0, 2],
    );
    never_either(
        &[&[W(X, 1), Release(Y, 2)], &[W(Y, 1), Release(X, 2)]],
        |o| o[..2] == [1, 1],
    );
}

/// Branches are predicted, so loads behind them are made early; a branch orders no loads.
#[test]
fn a_branch_on_a_value_orders_no_loads() {
    let late: [&[Do]; 2] = [&[W(X, 1), F, W(Y, 1)], &[R(Y), RControl(X)]];
    shows_out_of_order(&late, |o| o[..2] == [1, 0]);
    never_either(&[&[W(X, 1), F, W(Y, 1)], &[R(Y), F, RControl(X)]], |o| {
        o[..2] == [1, 0]
    });
}

#[test]
fn what_orders_two_threads_orders_all() {
    shapes::what_orders_two_threads_orders_all(|threads, forbidden| {
        never_either(threads, forbidden)
    });
}

/// Accesses of one, two or four bytes, and of eight, at one place. One and two bytes have fewer starts.
#[test]
fn accesses_of_two_sizes() {
    for (bytes, cases) in [(1, CASES / 24), (2, CASES / 24), (4, CASES / 6)] {
        shapes::accesses_of_two_sizes(bytes, |threads, forbidden| {
            never_of(cases, threads, forbidden);
        });
        shapes::parts_of_two_threads(bytes, |threads, forbidden| {
            never_of(cases, threads, forbidden);
        });
    }
}
