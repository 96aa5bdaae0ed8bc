//! Litmus tests: what threads of different tiles may see of each other's accesses (RISC-V memory model, RVWMO).
//!
//! Six kinds of chips. Caches of tiles and of clusters are not coherent with each other, so a store is followed by a flush of its line, and a load comes after one. On a mesh of local
//! memories, each variable is in the memory of some tile, be it that of a thread that uses it or not, or in external memory. The two harts of a tile share its caches,
//! and need no flush. Nor does anybody where variables are in tightly coupled memories or on pages past the caches. Each test runs with many random starts,
//! places of its variables and old lines in the caches. What the model forbids never happens; without fences the outcomes show
//! that only late stores, or reads that overtake writes, explain.

use crate::common::litmus::{
    ADDRESS, Do, Do::*, FOUND, VARIABLES, X, Y, chosen, count_starts, lines, perform,
};
use crate::common::*;
use bulkhead_abi::memory_map::{EXTERNAL_MEMORY, MEMORY_BASE, TCM_BASE, TCM_WINDOW};
use bulkhead_machine::config::{Channels, LocalMemoryConfig, PlatformKind};
use bulkhead_machine::machine::{Machine, Outcome, RunLimit};
use proptest::prelude::*;

/// The first of the lines that are in external memory on a mesh.
const EXTERNAL: u64 = 48;
const DATA: u64 = 0x8_0000;
/// Bytes between the programs of threads that share a memory.
const CODE: u64 = 0x1_0000;
/// The table of [`Chip::Uncached`], whose entries are of one GiB, and the address where it has memory past the caches.
const ROOT: u64 = MEMORY_BASE + 0x6_0000;
const UNCACHED: u64 = 3 << 30;

/// Where the variables are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Chip {
    /// In one memory, behind caches.
    Caches,
    /// In the local memories of a mesh of 2 x 2 tiles, and in its external memory.
    Mesh,
    /// In the memory of one tile; each of its two harts runs a thread.
    Harts,
    /// In one memory, behind the caches of two clusters, or of a cluster and a tile beside it.
    Clusters,
    /// In the tightly coupled memories of four tiles, which only harts in order may have.
    Coupled,
    /// On pages past the caches of the harts of [`Chip::Clusters`], where LR and SC fault.
    Uncached,
}
const CHIPS: [Chip; 6] = [
    Chip::Caches,
    Chip::Mesh,
    Chip::Harts,
    Chip::Clusters,
    Chip::Coupled,
    Chip::Uncached,
];
/// Where nothing is flushed, because all threads reach one copy.
const ONE_COPY: [Chip; 4] = [Chip::Mesh, Chip::Harts, Chip::Coupled, Chip::Uncached];
/// Kinds of the markers with which the first thread of [`Chip::Harts`] reports its loads; the second thread's follow.
const LOADED: u32 = 0x100;
const LOADS: u32 = 16;

impl Chip {
    /// Whether it can run these threads.
    fn runs(self, threads: &[&[Do]], out_of_order: bool) -> bool {
        let reserves = |op: &Do| matches!(op, Acquire(_) | Reserved(..));
        match self {
            Chip::Caches | Chip::Mesh | Chip::Clusters => true,
            Chip::Harts => threads.len() <= 2,
            Chip::Coupled => !out_of_order,
            Chip::Uncached => !threads.iter().any(|ops| ops.iter().any(reserves)),
        }
    }

    fn address(self, line: u64) -> u64 {
        match self {
            Chip::Caches | Chip::Harts | Chip::Clusters => MEMORY_BASE + DATA + line * 64,
            Chip::Mesh if line >= EXTERNAL => EXTERNAL_MEMORY + line * 0x40,
            // Two variables of one tile are in different banks or in the same one.
            Chip::Mesh => window(line & 1, line >> 1 & 1) + 0x1000 + (line >> 2) * 0x200,
            Chip::Coupled => TCM_BASE + (line & 3) * TCM_WINDOW + (line >> 2) * 0x40,
            Chip::Uncached => UNCACHED + DATA + line * 64,
        }
    }
}

/// One start: rounds that each thread waits, lines of the variables, lines that are in a thread's cache beforehand, whether reads and
/// writes have separate networks, which controller the memory has if it has a queue, and how many credits links have if they need them.
#[derive(Clone, Debug)]
struct Start {
    wait: [i32; 4],
    lines: [u64; VARIABLES],
    old: [u8; 4],
    split: bool,
    controller: Option<usize>,
    out_of_order: bool,
    credits: Option<u32>,
}

fn thread(chip: Chip, ops: &[Do], start: &Start, number: usize) -> Program {
    let mut p = Program::default();
    match (chip, number) {
        (Chip::Harts, 0) => p.start_second(CODE * 2),
        (Chip::Uncached, _) => p.translation(ROOT, true).as_supervisor(),
        _ => &mut p,
    };
    let flush = |p: &mut Program, address: u32| {
        if matches!(chip, Chip::Caches | Chip::Clusters) {
            p.cbo(CBO_FLUSH, address);
        }
    };
    for (variable, line) in start.lines.iter().enumerate() {
        p.li(ADDRESS + variable as u32, chip.address(*line));
        if start.old[number] >> variable & 1 != 0 {
            p.ld(T0, ADDRESS + variable as u32, 0);
        }
    }
    p.word(FENCE);
    if chip == Chip::Harts {
        // They begin together.
        let flag = |of: usize| MEMORY_BASE + DATA - 128 + of as u64 * 64;
        p.li(T0, flag(number)).addi(T1, ZERO, 1).sd(T1, T0, 0);
        p.li(T0, flag(1 - number));
        let other = p.here();
        p.ld(T1, T0, 0).branch(0, T1, ZERO, other);
    }
    // What follows is fetched before the wait begins, so that no line of instructions comes between the accesses of short threads.
    p.jump_to_line().addi(T2, ZERO, start.wait[number] + 1);
    let wait = p.here();
    p.addi(T2, T2, -1).branch(1, T2, ZERO, wait);
    let found = perform(&mut p, ops, &flush);
    if chip == Chip::Harts {
        // A marker does not wait for the value that it reports.
        p.word(FENCE);
        for (at, from) in (FOUND..found).enumerate() {
            p.marker(from, LOADED + number as u32 * LOADS + at as u32);
        }
    }
    p.word(WFI);
    p
}

fn coupled(ports: u32) -> LocalMemoryConfig {
    LocalMemoryConfig {
        size: 0x4000,
        cycle: 2,
        banks: 2,
        ports,
        width: 8,
        latency: 3,
        guard: 0,
    }
}

/// The tile and the port of a thread on [`Chip::Clusters`].
fn place(number: usize) -> (u16, usize) {
    (number as u16 % 2, number / 2)
}

/// The values loaded, in thread order, and the final values of the variables.
fn outcome(chip: Chip, threads: &[&[Do]], start: &Start) -> Vec<u64> {
    let mut config = match chip {
        Chip::Caches => platform(PlatformKind::Bare, threads.len() as u16),
        Chip::Mesh => mesh(2, 2),
        Chip::Harts => two_harts(),
        // Threads of odd numbers are on the second one.
        Chip::Clusters | Chip::Uncached if threads.len() == 2 && start.old[3] == 0 => {
            clusters(&[1, 0])
        }
        Chip::Clusters | Chip::Uncached => clusters(&[2, 2]),
        Chip::Coupled => clusters(&[0; 4]),
    };
    small_memories(&mut config);
    match chip {
        _ if chip != Chip::Mesh && start.split => config.network.channels = Channels::Split,
        Chip::Caches | Chip::Harts | Chip::Clusters | Chip::Uncached | Chip::Coupled => {}
        Chip::Mesh => {
            for tile in &mut config.tiles {
                let memory = tile.local_memory.as_mut().unwrap();
                memory.ports = 1 + u32::from(start.split);
            }
        }
    }
    if chip == Chip::Coupled {
        for tile in &mut config.tiles {
            tile.tcm = vec![coupled(1 + u32::from(start.old[3] & 1))];
        }
    }
    if start.out_of_order {
        for tile in &mut config.tiles {
            tile.hart.interval = Some(OUT_OF_ORDER);
        }
    }
    config.network.credits = start.credits;
    if let Some(which) = start.controller {
        other_controller(&mut config, which);
    }
    let mut machine = match chip {
        Chip::Harts => chip_of(&config),
        _ => Machine::new(&config).unwrap(),
    };
    if chip == Chip::Uncached {
        // Not cacheable (NC) and for everybody.
        let leaf = MEMORY_BASE >> 12 << 10 | 0xCF | 1 << 61;
        let entry = ROOT + 8 * (UNCACHED >> 30);
        machine.load_tile(0, entry, &leaf.to_le_bytes()).unwrap();
    }
    for (number, ops) in threads.iter().enumerate() {
        let program = thread(chip, ops, start, number);
        let code = CODE * (number as u64 + 1);
        match chip {
            Chip::Caches | Chip::Coupled => program.start_at(&mut machine, number as u16, code),
            Chip::Mesh => program.start_at(&mut machine, number as u16, 0),
            Chip::Clusters | Chip::Uncached => {
                start_hart(&mut machine, place(number), &program, code)
            }
            Chip::Harts if number == 0 => program.start_at(&mut machine, 0, code),
            Chip::Harts => {
                let loaded = machine.load_tile(0, MEMORY_BASE + code, &program.bytes());
                loaded.unwrap();
            }
        }
    }
    let end = machine.run(RunLimit { ticks: 1_000_000 }, None);
    assert!(matches!(end, Outcome::Idle { .. }), "{end:?}");
    let mut seen = Vec::new();
    for (number, ops) in threads.iter().enumerate() {
        let loads = ops.iter().filter(|op| op.finds());
        if chip == Chip::Harts {
            let markers = machine.markers();
            let first = LOADED + number as u32 * LOADS;
            let found = (first..).take(loads.count()).map(|kind| {
                let marker = markers.iter().find(|m| u32::from(m.kind) == kind);
                marker.expect("the thread has ended").value
            });
            seen.extend(found);
            continue;
        }
        let hart = match chip {
            Chip::Clusters | Chip::Uncached if place(number).1 > 0 => {
                let (tile, port) = place(number);
                machine.cluster_hart(tile, port).unwrap()
            }
            Chip::Clusters | Chip::Uncached => machine.hart(place(number).0).unwrap(),
            _ => machine.hart(number as u16).unwrap(),
        };
        seen.extend((0..loads.count()).map(|n| hart.register(FOUND as usize + n)));
    }
    for line in start.lines {
        let mut word = [0; 8];
        match chip {
            Chip::Caches | Chip::Clusters | Chip::Uncached => {
                let at = (DATA + line * 64) as usize;
                word.copy_from_slice(&machine.memory(MEMORY).unwrap()[at..at + 8]);
            }
            Chip::Mesh | Chip::Harts | Chip::Coupled => {
                machine.peek(0, chip.address(line), &mut word).unwrap()
            }
        }
        seen.push(u64::from_le_bytes(word));
    }
    seen
}

/// How many of many starts end in an outcome.
fn count(chip: Chip, threads: &[&[Do]], cases: u32, wanted: impl Fn(&[u64]) -> bool) -> u32 {
    count_of(false, chip, threads, cases, wanted)
}

/// [`count`] for harts that execute in order or out of order.
fn count_of(
    out_of_order: bool,
    chip: Chip,
    threads: &[&[Do]],
    cases: u32,
    wanted: impl Fn(&[u64]) -> bool,
) -> u32 {
    let starts = (
        prop::array::uniform4(0i32..40),
        lines(),
        prop::array::uniform4(0u8..8),
        any::<bool>(),
        (prop::option::of(0..CONTROLLERS), prop::option::of(1u32..3)),
    );
    let starts = starts.prop_map(|(wait, lines, old, split, (controller, credits))| Start {
        out_of_order,
        wait,
        lines: chosen(lines),
        old,
        split,
        controller,
        credits,
    });
    count_starts(starts, cases, |start| {
        wanted(&outcome(chip, threads, start))
    })
}

const CASES: u32 = 250;

fn never(threads: &[&[Do]], forbidden: impl Fn(&[u64]) -> bool) {
    never_on(&CHIPS, CASES, threads, forbidden);
}

/// [`never`] with fewer starts, for the many variants of a shape.
fn never_either(threads: &[&[Do]], forbidden: impl Fn(&[u64]) -> bool) {
    never_on(&CHIPS, CASES / 5, threads, forbidden);
}

fn never_on(chips: &[Chip], cases: u32, threads: &[&[Do]], forbidden: impl Fn(&[u64]) -> bool) {
    for &chip in chips {
        for (out_of_order, cases) in [(false, cases), (true, cases / 2)] {
            if chip.runs(threads, out_of_order) {
                let seen = count_of(out_of_order, chip, threads, cases, &forbidden);
                assert_eq!(
                    seen, 0,
                    "{chip:?}, {threads:?}, out of order: {out_of_order}"
                );
            }
        }
    }
}

#[test]
fn store_buffering() {
    let forbidden = |o: &[u64]| o[..2] == [0, 0];
    never(&[&[W(X, 1), F, R(Y)], &[W(Y, 1), F, R(X)]], forbidden);
    // Harts that share a cache access it in program order, so their late stores are never visible.
    for chip in [Chip::Caches, Chip::Mesh, Chip::Clusters] {
        let threads: [&[Do]; 2] = [&[W(X, 1), R(Y)], &[W(Y, 1), R(X)]];
        for out_of_order in [false, true] {
            // Flushes leave little time: a few starts of a thousand, and one between two clusters.
            let seen = count_of(out_of_order, chip, &threads, 4 * CASES, forbidden);
            let may = chip == Chip::Clusters && out_of_order;
            assert!(
                seen > 0 || may,
                "stores are never late: {chip:?}, {out_of_order}"
            );
        }
    }
}

#[test]
fn message_passing() {
    let forbidden = |o: &[u64]| o[..2] == [1, 0];
    never(&[&[W(X, 1), F, W(Y, 1)], &[R(Y), F, R(X)]], forbidden);
    never(&[&[W(X, 1), F, W(Y, 1)], &[R(Y), RDependent(X)]], forbidden);
    for chip in CHIPS {
        let threads: [&[Do]; 2] = [&[W(X, 1), F, W(Y, 1)], &[R(Y), F, R(X)]];
        let both = count(chip, &threads, CASES, |o| o[..2] == [1, 1]);
        assert!(both > 0, "the message never comes: {chip:?}");
    }
    // A store to another tile arrives late, and a load from another tile is served late.
    let threads: [&[Do]; 2] = [&[W(X, 1), W(Y, 1)], &[R(Y), R(X)]];
    assert!(count(Chip::Mesh, &threads, 4 * CASES, forbidden) > 0);
}

#[test]
fn load_buffering() {
    let forbidden = |o: &[u64]| o[..2] == [1, 1];
    never(&[&[R(X), F, W(Y, 1)], &[R(Y), F, W(X, 1)]], forbidden);
    // A hart continues with a store while a load is outstanding: its request waits behind another one, because a link takes one every 16
    // cycles. (Of two that arrive in one tick, the memory takes the load first.)
    let threads: [&[Do]; 2] = [&[R(X), R(X), W(Y, 1)], &[R(Y), R(Y), W(X, 1)]];
    let seen = |o: &[u64]| (o[1], o[3]) == (1, 1);
    assert!(count(Chip::Mesh, &threads, 4 * CASES, seen) > 0);
}

#[test]
fn s_and_r() {
    never(&[&[W(X, 2), F, W(Y, 1)], &[R(Y), F, W(X, 1)]], |o| {
        o[0] == 1 && o[1] == 2
    });
    never(&[&[W(X, 1), F, W(Y, 1)], &[W(Y, 2), F, R(X)]], |o| {
        o[0] == 0 && o[2] == 2
    });
}

#[test]
fn two_and_two_writes() {
    never(&[&[W(X, 1), F, W(Y, 2)], &[W(Y, 1), F, W(X, 2)]], |o| {
        o[..2] == [1, 1]
    });
}

#[test]
fn independent_reads_of_independent_writes() {
    never(
        &[&[W(X, 1)], &[W(Y, 1)], &[R(X), F, R(Y)], &[R(Y), F, R(X)]],
        |o| o[..4] == [1, 0, 1, 0],
    );
}

#[test]
fn writes_to_reads_are_cumulative() {
    never(&[&[W(X, 1)], &[R(X), F, W(Y, 1)], &[R(Y), F, R(X)]], |o| {
        o[..3] == [1, 1, 0]
    });
}

#[test]
fn coherence_of_one_place() {
    never(&[&[W(X, 1)], &[R(X), R(X)]], |o| o[..2] == [1, 0]);
    never(&[&[W(X, 1), W(X, 2)], &[R(X), R(X), R(X)]], |o| {
        !o[..3].is_sorted() || o[3] != 2
    });
    // A thread sees its own store.
    never(&[&[W(X, 1), R(X)], &[W(X, 2), R(X)]], |o| {
        o[0] == 0 || o[1] == 0
    });
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

/// Acquire and release, without any fence. Where a release is a store into a cache, the flush of its line is no part of it, so what must become
/// visible before a later load (SB, R) is tested where there are no flushes.
#[test]
fn acquire_and_release_order() {
    let old = |o: &[u64]| o[..2] == [1, 0];
    never_either(&[&[W(X, 1), Release(Y, 1)], &[Acquire(Y), R(X)]], old);
    for first in [[Acquire(X), W(Y, 1)], [R(X), Release(Y, 1)]] {
        for second in [[Acquire(Y), W(X, 1)], [R(Y), Release(X, 1)]] {
            never_either(&[&first, &second], |o| o[..2] == [1, 1]);
        }
    }
    for second in [[Acquire(Y), W(X, 1)], [R(Y), Release(X, 1)]] {
        let s = |o: &[u64]| o[..2] == [1, 2];
        never_either(&[&[W(X, 2), Release(Y, 1)], &second], s);
    }
    let crossed: [&[Do]; 2] = [&[W(X, 1), Release(Y, 2)], &[W(Y, 1), Release(X, 2)]];
    never_either(&crossed, |o| o[..2] == [1, 1]);
    let late: [&[Do]; 2] = [&[Release(X, 1), Acquire(Y)], &[Release(Y, 1), Acquire(X)]];
    never_on(&ONE_COPY, CASES, &late, |o| o[..2] == [0, 0]);
    let late: [&[Do]; 2] = [
        &[Release(X, 1), AcquireAdd(Y)],
        &[Release(Y, 1), AcquireAdd(X)],
    ];
    never_on(&ONE_COPY, CASES, &late, |o| o[..2] == [0, 0]);
    let r: [&[Do]; 2] = [&[W(X, 1), Release(Y, 1)], &[Release(Y, 2), Acquire(X)]];
    never_on(&ONE_COPY, CASES, &r, |o| [o[0], o[2]] == [0, 2]);
}

#[test]
fn what_orders_two_threads_orders_all() {
    shapes::what_orders_two_threads_orders_all(|threads, forbidden| {
        never_either(threads, forbidden)
    });
}

/// Where harts reach one copy of a word, LR and SC of all of them are atomic, beside atomic operations and stores; and atomic operations order
/// what is before and behind them.
#[test]
fn conditional_stores_are_atomic() {
    let old = |o: &[u64]| o[1..3] == [1, 0];
    let never = |threads: &[&[Do]], forbidden: &dyn Fn(&[u64]) -> bool| {
        never_on(&ONE_COPY, CASES / 2, threads, forbidden);
    };
    // The old value of the writer's operation comes first.
    never(&[&[W(X, 1), F, Reserved(Y, 1)], &[R(Y), F, R(X)]], &old);
    never(&[&[Reserved(X, 1)], &[Reserved(X, 2)]], &|o| o[2] != 3);
    never(&[&[Reserved(X, 1)], &[Add(X, 2)]], &|o| o[2] != 3);
    never(&[&[Reserved(X, 1)], &[W(X, 2)]], &|o| {
        !matches!(o[1], 2 | 3)
    });
    never(&[&[Add(X, 1)], &[Add(X, 2)]], &|o| o[2] != 3);
    never(&[&[Add(X, 1), R(Y)], &[Add(Y, 1), R(X)]], &|o| {
        [o[1], o[3]] == [0, 0]
    });
    let sum = |o: &[u64]| o[3] != 6;
    never(&[&[Reserved(X, 1)], &[Reserved(X, 2)], &[Add(X, 3)]], &sum);
}

/// Accesses of one, two or four bytes, and of eight, at one place. One and two bytes have fewer starts.
#[test]
fn accesses_of_two_sizes() {
    for (bytes, fewer) in [(1, 4), (2, 4), (4, 1)] {
        shapes::accesses_of_two_sizes(bytes, |threads, forbidden| {
            never_on(&CHIPS, CASES / 5 / fewer, threads, forbidden);
        });
        shapes::parts_of_two_threads(bytes, |threads, forbidden| {
            never_on(&ONE_COPY, CASES / 2 / fewer, threads, forbidden);
        });
    }
}
