//! Shapes of litmus tests that every kind of chip runs: what RVWMO forbids, whatever the chip is.
//!
//! Why it exists: what the memory model forbids does not depend on where a variable is. Each function gives its shapes to `never`, which runs them
//! on the chips and with the starts of its program. What it does not know: chips, starts, and relaxed outcomes that a chip must show.

use super::litmus::*;

/// Control dependencies order stores, and address dependencies also stores to any later place (rules 9, 11 and 13).
pub fn dependencies_order_stores(never: impl Fn(&[&[Do]], &dyn Fn(&[u64]) -> bool)) {
    let both_new = |o: &[u64]| o[..2] == [1, 1];
    never(
        &[&[R(X), WControl(Y, 1)], &[R(Y), WControl(X, 1)]],
        &both_new,
    );
    never(
        &[&[R(X), WAddress(Y, 1)], &[R(Y), WAddress(X, 1)]],
        &both_new,
    );
    never(
        &[&[R(X), WControl(Y, 1)], &[R(Y), WAddress(X, 1)]],
        &both_new,
    );
    let threads: [&[Do]; 2] = [
        &[R(X), RDependent(Z), W(Y, 1)],
        &[R(Y), RDependent(Z), W(X, 1)],
    ];
    never(&threads, &|o| [o[0], o[2]] == [1, 1]);
    for last in [WControl(X, 1), WAddress(X, 1)] {
        never(&[&[W(X, 2), F, W(Y, 1)], &[R(Y), last]], &|o| {
            o[..2] == [1, 2]
        });
    }
}

/// A fence of some accesses orders these.
pub fn weaker_fences_order_what_they_name(never: impl Fn(&[&[Do]], &dyn Fn(&[u64]) -> bool)) {
    let old = |o: &[u64]| o[..2] == [1, 0];
    never(&[&[W(X, 1), WW, W(Y, 1)], &[R(Y), RR, R(X)]], &old);
    never(&[&[W(X, 1), TSO, W(Y, 1)], &[R(Y), TSO, R(X)]], &old);
    never(&[&[W(X, 1), WW, W(Y, 1)], &[R(Y), RDependent(X)]], &old);
    never(&[&[W(X, 1), WR, R(Y)], &[W(Y, 1), WR, R(X)]], &|o| {
        o[..2] == [0, 0]
    });
    for fence in [RW, TSO] {
        never(&[&[R(X), fence, W(Y, 1)], &[R(Y), fence, W(X, 1)]], &|o| {
            o[..2] == [1, 1]
        });
        never(&[&[W(X, 2), WW, W(Y, 1)], &[R(Y), fence, W(X, 1)]], &|o| {
            o[..2] == [1, 2]
        });
    }
    never(&[&[W(X, 1), WW, W(Y, 1)], &[W(Y, 2), WR, R(X)]], &|o| {
        [o[0], o[2]] == [0, 2]
    });
    for fence in [WW, TSO] {
        never(
            &[&[W(X, 1), fence, W(Y, 2)], &[W(Y, 1), fence, W(X, 2)]],
            &|o| o[..2] == [1, 1],
        );
    }
}

/// Three and four threads: every store becomes visible to all others at once, so what orders two threads orders all.
pub fn what_orders_two_threads_orders_all(never: impl Fn(&[&[Do]], &dyn Fn(&[u64]) -> bool)) {
    let all_old = |o: &[u64]| o[..4] == [1, 0, 1, 0];
    let readers: [[[Do; 3]; 2]; 2] = [
        [[R(X), RR, R(Y)], [R(Y), RR, R(X)]],
        [[R(X), TSO, R(Y)], [R(Y), TSO, R(X)]],
    ];
    for [one, other] in readers {
        never(&[&[W(X, 1)], &[W(Y, 1)], &one, &other], &all_old);
    }
    let readers = [
        [[R(X), RDependent(Y)], [R(Y), RDependent(X)]],
        [[Acquire(X), R(Y)], [Acquire(Y), R(X)]],
    ];
    for [one, other] in readers {
        never(&[&[W(X, 1)], &[W(Y, 1)], &one, &other], &all_old);
    }
    // WRC, RWC and WWC.
    let old = |o: &[u64]| o[..3] == [1, 1, 0];
    for write in [WControl(Y, 1), WAddress(Y, 1), Release(Y, 1)] {
        never(&[&[W(X, 1)], &[R(X), write], &[R(Y), RDependent(X)]], &old);
    }
    never(
        &[&[W(X, 1)], &[Acquire(X), W(Y, 1)], &[Acquire(Y), R(X)]],
        &old,
    );
    let reads = |o: &[u64]| o[..3] == [1, 0, 0];
    never(&[&[W(X, 1)], &[R(X), F, R(Y)], &[W(Y, 1), F, R(X)]], &reads);
    never(
        &[&[W(X, 1)], &[R(X), RDependent(Y)], &[W(Y, 1), WR, R(X)]],
        &reads,
    );
    let writes = |o: &[u64]| o[..3] == [2, 1, 2];
    never(
        &[&[W(X, 2)], &[R(X), F, W(Y, 1)], &[R(Y), F, W(X, 1)]],
        &writes,
    );
    never(
        &[
            &[W(X, 2)],
            &[R(X), WDependent(Y, 1)],
            &[R(Y), WControl(X, 1)],
        ],
        &writes,
    );
    // ISA2.
    never(
        &[
            &[W(X, 1), F, W(Y, 1)],
            &[R(Y), F, W(Z, 1)],
            &[R(Z), F, R(X)],
        ],
        &old,
    );
    never(
        &[
            &[W(X, 1), WW, W(Y, 1)],
            &[R(Y), WDependent(Z, 1)],
            &[R(Z), RDependent(X)],
        ],
        &old,
    );
    never(
        &[
            &[W(X, 1), Release(Y, 1)],
            &[Acquire(Y), Release(Z, 1)],
            &[Acquire(Z), R(X)],
        ],
        &old,
    );
}

/// Accesses of a part of a variable and of all eight bytes: each is made at once.
pub fn accesses_of_two_sizes(bytes: u64, never: impl Fn(&[&[Do]], &dyn Fn(&[u64]) -> bool)) {
    let (first, last) = (Part::first(bytes), Part::last(bytes));
    let everywhere: u64 = (0..8 / bytes)
        .map(|n| Part { bytes, number: n }.one())
        .sum();
    // Of an aligned store, nobody sees one part.
    never(
        &[&[All(X, bytes, 1)], &[RPart(X, last), RR, RPart(X, first)]],
        &|o| o[..2] == [1, 0],
    );
    never(&[&[All(X, bytes, 1)], &[RPart(X, first), RR, R(X)]], &|o| {
        o[0] == 1 && o[1] != everywhere
    });
    never(&[&[All(X, bytes, 1)], &[R(X)]], &|o| {
        o[0] != 0 && o[0] != everywhere
    });
    // Two loads that have bytes in common are made in order.
    never(&[&[All(X, bytes, 1)], &[R(X), RPart(X, last)]], &|o| {
        o[0] == everywhere && o[1] == 0
    });
    never(&[&[All(X, bytes, 1)], &[RPart(X, first), R(X)]], &|o| {
        o[0] == 1 && o[1] != everywhere
    });
    // Two parts in order.
    for fence in [F, WW] {
        never(
            &[&[WPart(X, first, 1), fence, WPart(X, last, 1)], &[R(X)]],
            &|o| o[0] == last.one(),
        );
    }
    // A message of one part, with a flag of eight bytes.
    never(
        &[
            &[WPart(X, last, 1), WW, All(Y, bytes, 1)],
            &[RPart(Y, last), RR, R(X)],
        ],
        &|o| o[0] == 1 && o[1] != last.one(),
    );
}

/// Two threads that store parts of one variable: own bytes, and at the end all of them. Where caches write whole lines back without being coherent,
/// threads must not share one like this.
pub fn parts_of_two_threads(bytes: u64, never: impl Fn(&[&[Do]], &dyn Fn(&[u64]) -> bool)) {
    let (first, last) = (Part::first(bytes), Part::last(bytes));
    let own = [[WPart(X, first, 1), R(X)], [WPart(X, last, 1), R(X)]];
    never(&[&own[0], &own[1]], &|o| {
        o[0] & first.one() == 0 || o[1] & last.one() == 0 || o[2] != first.one() | last.one()
    });
    never(
        &[&[All(X, bytes, 1), RPart(X, last)], &[WPart(X, last, 2)]],
        &|o| o[0] == 0,
    );
}
