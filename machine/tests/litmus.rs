//! Litmus tests: what threads of different tiles may see of each other's accesses (RISC-V memory model, RVWMO).
//!
//! Four kinds of chips. Caches of tiles and of clusters are not coherent with each other, so a store is followed by a flush of its line, and a load comes after one. On a mesh of local
//! memories, each variable is in the memory of some tile, be it that of a thread that uses it or not, or in external memory. The two harts of a tile share its caches,
//! and need no flush. Each test runs with many random starts,
//! places of its variables and old lines in the caches. What the model forbids never happens; without fences the outcomes show
//! that only late stores, or reads that overtake writes, explain.

mod common;

use bulkhead_abi::memory_map::{EXTERNAL_MEMORY, MEMORY_BASE};
use bulkhead_machine::config::{Channels, PlatformKind};
use bulkhead_machine::machine::{Machine, Outcome, RunLimit};
use common::*;
use proptest::prelude::*;
use proptest::test_runner::{Config, TestRunner};

/// Lines in which variables may be.
const LINES: u64 = 64;
/// The first of the lines that are in external memory on a mesh.
const EXTERNAL: u64 = 48;
const DATA: u64 = 0x8_0000;
/// Bytes between the programs of threads that share a memory.
const CODE: u64 = 0x1_0000;
/// Registers of a thread: addresses of the variables, the values of its loads, a value.
const ADDRESS: u32 = 18;
const FOUND: u32 = 24;
const VALUE: u32 = 30;

/// What a thread does; variables and results are numbered.
#[derive(Clone, Copy, Debug)]
enum Do {
    /// Stores a value.
    W(u32, u32),
    /// Loads.
    R(u32),
    /// Loads from an address that depends on the previous load's value.
    RDependent(u32),
    /// Stores a value that depends on the previous load's value.
    WDependent(u32, u32),
    /// Stores a value to an address that depends on the previous load's value.
    WAddress(u32, u32),
    /// Stores a value after a branch on the previous load's value.
    WControl(u32, u32),
    /// Stores a value to each half of a variable, in one access.
    Both(u32, u32),
    /// Stores a value to a half of a variable.
    WHalf(u32, u64, u32),
    /// Loads a half.
    RHalf(u32, u64),
    /// Loads with LR and acquire semantics.
    Acquire(u32),
    /// Adds nothing, with acquire semantics; the old value is a result.
    AcquireAdd(u32),
    /// Swaps with release semantics, like a store-release.
    Release(u32, u32),
    /// Adds with LR and SC until it succeeds; the old value is a result.
    Reserved(u32, u32),
    /// Adds with acquire and release semantics; the old value is a result.
    Add(u32, u32),
    /// A fence of everything.
    F,
    /// A fence of these: see [`PRECEDING`].
    Fence(u32),
}
use Do::*;

impl Do {
    fn finds(&self) -> bool {
        matches!(
            self,
            RHalf(..) | R(_) | RDependent(_) | Add(..) | Acquire(_) | AcquireAdd(_) | Reserved(..)
        )
    }
}

/// Fences by what must come before and after them, as the instruction's upper bits: reads are 2, writes 1.
const PRECEDING: u32 = 24;
const FOLLOWING: u32 = 20;
const WW: Do = Fence(1 << PRECEDING | 1 << FOLLOWING);
const WR: Do = Fence(1 << PRECEDING | 2 << FOLLOWING);
const RR: Do = Fence(2 << PRECEDING | 2 << FOLLOWING);
const RW: Do = Fence(2 << PRECEDING | 1 << FOLLOWING);
/// All but a read after a write.
const TSO: Do = Fence(8 << 28 | 3 << PRECEDING | 3 << FOLLOWING);

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
}
const CHIPS: [Chip; 4] = [Chip::Caches, Chip::Mesh, Chip::Harts, Chip::Clusters];
/// Kinds of the markers with which the first thread of [`Chip::Harts`] reports its loads; the second thread's follow.
const LOADED: u32 = 0x100;
const LOADS: u32 = 16;

impl Chip {
    fn address(self, line: u64) -> u64 {
        match self {
            Chip::Caches | Chip::Harts | Chip::Clusters => MEMORY_BASE + DATA + line * 64,
            Chip::Mesh if line >= EXTERNAL => EXTERNAL_MEMORY + line * 0x40,
            // Two variables of one tile are in different banks or in the same one.
            Chip::Mesh => window(line & 1, line >> 1 & 1) + 0x1000 + (line >> 2) * 0x200,
        }
    }
}

/// One start: rounds that each thread waits, lines of the variables, lines that are in a thread's cache beforehand, whether reads and
/// writes have separate networks, which controller the memory has if it has a queue, and how many credits links have if they need them.
#[derive(Clone, Debug)]
struct Start {
    wait: [i32; 4],
    lines: [u64; 3],
    old: [u8; 4],
    split: bool,
    controller: Option<usize>,
    out_of_order: bool,
    credits: Option<u32>,
}

fn thread(chip: Chip, ops: &[Do], start: &Start, number: usize) -> Program {
    let mut p = Program::default();
    if (chip, number) == (Chip::Harts, 0) {
        p.start_second(CODE * 2);
    }
    let flush = |p: &mut Program, address| {
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
    let mut found = FOUND;
    for op in ops {
        match *op {
            W(variable, value) => {
                let address = ADDRESS + variable;
                p.addi(VALUE, ZERO, value as i32).sd(VALUE, address, 0);
                flush(&mut p, address);
            }
            WDependent(variable, value) => {
                let address = ADDRESS + variable;
                p.xor(T1, found - 1, found - 1).addi(T1, T1, value as i32);
                p.sd(T1, address, 0);
                flush(&mut p, address);
            }
            WAddress(variable, value) => {
                p.xor(T1, found - 1, found - 1)
                    .add(T1, T1, ADDRESS + variable);
                p.addi(VALUE, ZERO, value as i32).sd(VALUE, T1, 0);
                flush(&mut p, T1);
            }
            WControl(variable, value) => {
                let address = ADDRESS + variable;
                let at = p.here();
                p.word(0);
                let on = p.here();
                p.patch_branch(at, 1, found - 1, ZERO, on);
                p.addi(VALUE, ZERO, value as i32).sd(VALUE, address, 0);
                flush(&mut p, address);
            }
            Both(variable, value) => {
                p.addi(VALUE, ZERO, value as i32).slli(T1, VALUE, 32);
                p.or(T1, T1, VALUE).sd(T1, ADDRESS + variable, 0);
                flush(&mut p, ADDRESS + variable);
            }
            WHalf(variable, half, value) => {
                let address = ADDRESS + variable;
                p.addi(VALUE, ZERO, value as i32)
                    .sw(VALUE, address, 4 * half);
                flush(&mut p, address);
            }
            RHalf(variable, half) => {
                flush(&mut p, ADDRESS + variable);
                p.lw(found, ADDRESS + variable, 4 * half);
                found += 1;
            }
            Acquire(variable) => {
                flush(&mut p, ADDRESS + variable);
                p.amo(2, 2, found, ADDRESS + variable, ZERO);
                found += 1;
            }
            AcquireAdd(variable) => {
                flush(&mut p, ADDRESS + variable);
                p.amo(0, 2, found, ADDRESS + variable, ZERO);
                found += 1;
            }
            Release(variable, value) => {
                let address = ADDRESS + variable;
                flush(&mut p, address);
                p.addi(VALUE, ZERO, value as i32);
                p.amo(1, 1, ZERO, address, VALUE);
                flush(&mut p, address);
            }
            Reserved(variable, value) => {
                let address = ADDRESS + variable;
                let again = p.here();
                p.lr(found, address).addi(T1, found, value as i32);
                p.sc(VALUE, address, T1).branch(1, VALUE, ZERO, again);
                found += 1;
            }
            R(variable) => {
                flush(&mut p, ADDRESS + variable);
                p.ld(found, ADDRESS + variable, 0);
                found += 1;
            }
            RDependent(variable) => {
                p.xor(T1, found - 1, found - 1)
                    .add(T1, T1, ADDRESS + variable);
                flush(&mut p, T1);
                p.ld(found, T1, 0);
                found += 1;
            }
            Add(variable, value) => {
                let address = ADDRESS + variable;
                flush(&mut p, address);
                p.addi(VALUE, ZERO, value as i32);
                p.amo(0, 3, found, address, VALUE);
                flush(&mut p, address);
                found += 1;
            }
            F => {
                p.word(FENCE);
            }
            Fence(of) => {
                p.word(of | 0x0f);
            }
        }
    }
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
        Chip::Clusters if threads.len() == 2 && start.old[3] == 0 => clusters(&[1, 0]),
        Chip::Clusters => clusters(&[2, 2]),
    };
    match chip {
        Chip::Caches | Chip::Harts | Chip::Clusters if start.split => {
            config.network.channels = Channels::Split;
        }
        Chip::Caches | Chip::Harts | Chip::Clusters => {}
        Chip::Mesh => {
            for tile in &mut config.tiles {
                let memory = tile.local_memory.as_mut().unwrap();
                memory.ports = 1 + u32::from(start.split);
            }
        }
    }
    if start.out_of_order {
        for tile in &mut config.tiles {
            tile.hart.interval = Some(OUT_OF_ORDER);
        }
    }
    config.network.credits = start.credits;
    if let Some(which) = start.controller {
        queued(&mut config, which);
    }
    let mut machine = match chip {
        Chip::Harts => chip_of(&config),
        Chip::Caches | Chip::Mesh | Chip::Clusters => Machine::new(&config).unwrap(),
    };
    for (number, ops) in threads.iter().enumerate() {
        let program = thread(chip, ops, start, number);
        let code = CODE * (number as u64 + 1);
        match chip {
            Chip::Caches => program.start_at(&mut machine, number as u16, code),
            Chip::Mesh => program.start_at(&mut machine, number as u16, 0),
            Chip::Clusters => start_hart(&mut machine, place(number), &program, code),
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
            Chip::Clusters if place(number).1 > 0 => {
                let (tile, port) = place(number);
                machine.cluster_hart(tile, port).unwrap()
            }
            Chip::Clusters => machine.hart(place(number).0).unwrap(),
            _ => machine.hart(number as u16).unwrap(),
        };
        seen.extend((0..loads.count()).map(|n| hart.register(FOUND as usize + n)));
    }
    for line in start.lines {
        let mut word = [0; 8];
        match chip {
            Chip::Caches | Chip::Clusters => {
                let at = (DATA + line * 64) as usize;
                word.copy_from_slice(&machine.memory(MEMORY).unwrap()[at..at + 8]);
            }
            Chip::Mesh | Chip::Harts => machine.peek(0, chip.address(line), &mut word).unwrap(),
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
        (0..LINES, 1..LINES, 1..LINES),
        prop::array::uniform4(0u8..8),
        any::<bool>(),
        (prop::option::of(0..CONTROLLERS), prop::option::of(1u32..3)),
    );
    let starts = starts.prop_map(
        |(wait, (first, second, third), old, split, (controller, credits))| Start {
            out_of_order,
            wait,
            // The third one may have the line behind the others.
            lines: [
                first,
                (first + second) % LINES,
                (first + if third == second { LINES } else { third }) % (2 * LINES),
            ],
            old,
            split,
            controller,
            credits,
        },
    );
    let mut runner = TestRunner::new_with_rng(
        Config {
            failure_persistence: None,
            ..Config::with_cases(cases)
        },
        proptest::test_runner::TestRng::deterministic_rng(
            proptest::test_runner::RngAlgorithm::ChaCha,
        ),
    );
    let found = std::cell::Cell::new(0);
    runner
        .run(&starts, |start| {
            let seen = outcome(chip, threads, &start);
            found.set(found.get() + u32::from(wanted(&seen)));
            Ok(())
        })
        .unwrap();
    found.get()
}

const CASES: u32 = 250;
const X: u32 = 0;
const Y: u32 = 1;
const Z: u32 = 2;

fn never(threads: &[&[Do]], forbidden: impl Fn(&[u64]) -> bool) {
    never_on(&CHIPS, CASES, threads, forbidden);
}

/// [`never`] with fewer starts, for the many variants of a shape.
fn never_either(threads: &[&[Do]], forbidden: impl Fn(&[u64]) -> bool) {
    never_on(&CHIPS, CASES / 5, threads, forbidden);
}

fn never_on(chips: &[Chip], cases: u32, threads: &[&[Do]], forbidden: impl Fn(&[u64]) -> bool) {
    for &chip in chips {
        if chip == Chip::Harts && threads.len() > 2 {
            continue;
        }
        let seen = count(chip, threads, cases, &forbidden);
        assert_eq!(seen, 0, "{chip:?}, {threads:?}");
        let seen = count_of(true, chip, threads, cases / 2, &forbidden);
        assert_eq!(seen, 0, "{chip:?}, {threads:?}, out of order");
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

/// Control dependencies order stores, and address dependencies also stores to any later place (rules 9, 11 and 13).
#[test]
fn dependencies_order_stores() {
    let both_new = |o: &[u64]| o[..2] == [1, 1];
    never_either(
        &[&[R(X), WControl(Y, 1)], &[R(Y), WControl(X, 1)]],
        both_new,
    );
    never_either(
        &[&[R(X), WAddress(Y, 1)], &[R(Y), WAddress(X, 1)]],
        both_new,
    );
    never_either(
        &[&[R(X), WControl(Y, 1)], &[R(Y), WAddress(X, 1)]],
        both_new,
    );
    let threads: [&[Do]; 2] = [
        &[R(X), RDependent(Z), W(Y, 1)],
        &[R(Y), RDependent(Z), W(X, 1)],
    ];
    never_either(&threads, |o| [o[0], o[2]] == [1, 1]);
    for last in [WControl(X, 1), WAddress(X, 1)] {
        never_either(&[&[W(X, 2), F, W(Y, 1)], &[R(Y), last]], |o| {
            o[..2] == [1, 2]
        });
    }
}

/// A fence of some accesses orders these.
#[test]
fn weaker_fences_order_what_they_name() {
    let old = |o: &[u64]| o[..2] == [1, 0];
    never_either(&[&[W(X, 1), WW, W(Y, 1)], &[R(Y), RR, R(X)]], old);
    never_either(&[&[W(X, 1), TSO, W(Y, 1)], &[R(Y), TSO, R(X)]], old);
    never_either(&[&[W(X, 1), WW, W(Y, 1)], &[R(Y), RDependent(X)]], old);
    never_either(&[&[W(X, 1), WR, R(Y)], &[W(Y, 1), WR, R(X)]], |o| {
        o[..2] == [0, 0]
    });
    for fence in [RW, TSO] {
        never_either(&[&[R(X), fence, W(Y, 1)], &[R(Y), fence, W(X, 1)]], |o| {
            o[..2] == [1, 1]
        });
        never_either(&[&[W(X, 2), WW, W(Y, 1)], &[R(Y), fence, W(X, 1)]], |o| {
            o[..2] == [1, 2]
        });
    }
    never_either(&[&[W(X, 1), WW, W(Y, 1)], &[W(Y, 2), WR, R(X)]], |o| {
        [o[0], o[2]] == [0, 2]
    });
    for fence in [WW, TSO] {
        never_either(
            &[&[W(X, 1), fence, W(Y, 2)], &[W(Y, 1), fence, W(X, 2)]],
            |o| o[..2] == [1, 1],
        );
    }
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
    let no_flush = [Chip::Mesh, Chip::Harts];
    let late: [&[Do]; 2] = [&[Release(X, 1), Acquire(Y)], &[Release(Y, 1), Acquire(X)]];
    never_on(&no_flush, CASES, &late, |o| o[..2] == [0, 0]);
    let late: [&[Do]; 2] = [
        &[Release(X, 1), AcquireAdd(Y)],
        &[Release(Y, 1), AcquireAdd(X)],
    ];
    never_on(&no_flush, CASES, &late, |o| o[..2] == [0, 0]);
    let r: [&[Do]; 2] = [&[W(X, 1), Release(Y, 1)], &[Release(Y, 2), Acquire(X)]];
    never_on(&no_flush, CASES, &r, |o| [o[0], o[2]] == [0, 2]);
}

/// Three and four threads: every store becomes visible to all others at once, so what orders two threads orders all.
#[test]
fn what_orders_two_threads_orders_all() {
    let all_old = |o: &[u64]| o[..4] == [1, 0, 1, 0];
    let readers: [[[Do; 3]; 2]; 2] = [
        [[R(X), RR, R(Y)], [R(Y), RR, R(X)]],
        [[R(X), TSO, R(Y)], [R(Y), TSO, R(X)]],
    ];
    for [one, other] in readers {
        never_either(&[&[W(X, 1)], &[W(Y, 1)], &one, &other], all_old);
    }
    let readers = [
        [[R(X), RDependent(Y)], [R(Y), RDependent(X)]],
        [[Acquire(X), R(Y)], [Acquire(Y), R(X)]],
    ];
    for [one, other] in readers {
        never_either(&[&[W(X, 1)], &[W(Y, 1)], &one, &other], all_old);
    }
    // WRC, RWC and WWC.
    let old = |o: &[u64]| o[..3] == [1, 1, 0];
    for write in [WControl(Y, 1), WAddress(Y, 1), Release(Y, 1)] {
        never_either(&[&[W(X, 1)], &[R(X), write], &[R(Y), RDependent(X)]], old);
    }
    never_either(
        &[&[W(X, 1)], &[Acquire(X), W(Y, 1)], &[Acquire(Y), R(X)]],
        old,
    );
    let reads = |o: &[u64]| o[..3] == [1, 0, 0];
    never_either(&[&[W(X, 1)], &[R(X), F, R(Y)], &[W(Y, 1), F, R(X)]], reads);
    never_either(
        &[&[W(X, 1)], &[R(X), RDependent(Y)], &[W(Y, 1), WR, R(X)]],
        reads,
    );
    let writes = |o: &[u64]| o[..3] == [2, 1, 2];
    never_either(
        &[&[W(X, 2)], &[R(X), F, W(Y, 1)], &[R(Y), F, W(X, 1)]],
        writes,
    );
    never_either(
        &[
            &[W(X, 2)],
            &[R(X), WDependent(Y, 1)],
            &[R(Y), WControl(X, 1)],
        ],
        writes,
    );
    // ISA2.
    never_either(
        &[
            &[W(X, 1), F, W(Y, 1)],
            &[R(Y), F, W(Z, 1)],
            &[R(Z), F, R(X)],
        ],
        old,
    );
    never_either(
        &[
            &[W(X, 1), WW, W(Y, 1)],
            &[R(Y), WDependent(Z, 1)],
            &[R(Z), RDependent(X)],
        ],
        old,
    );
    never_either(
        &[
            &[W(X, 1), Release(Y, 1)],
            &[Acquire(Y), Release(Z, 1)],
            &[Acquire(Z), R(X)],
        ],
        old,
    );
}

/// Where harts reach one copy of a word, LR and SC of all of them are atomic, beside atomic operations and stores.
#[test]
fn conditional_stores_are_atomic() {
    let chips = [Chip::Mesh, Chip::Harts];
    let old = |o: &[u64]| o[1..3] == [1, 0];
    let never = |threads: &[&[Do]], forbidden: &dyn Fn(&[u64]) -> bool| {
        never_on(&chips, CASES / 2, threads, forbidden);
    };
    // The old value of the writer's operation comes first.
    never(&[&[W(X, 1), F, Reserved(Y, 1)], &[R(Y), F, R(X)]], &old);
    never(&[&[Reserved(X, 1)], &[Reserved(X, 2)]], &|o| o[2] != 3);
    never(&[&[Reserved(X, 1)], &[Add(X, 2)]], &|o| o[2] != 3);
    never(&[&[Reserved(X, 1)], &[W(X, 2)]], &|o| {
        !matches!(o[1], 2 | 3)
    });
    let sum = |o: &[u64]| o[3] != 6;
    never(&[&[Reserved(X, 1)], &[Reserved(X, 2)], &[Add(X, 3)]], &sum);
}

/// Accesses of four and eight bytes at one place: each is made at once, and a thread has its own bytes.
#[test]
fn accesses_of_two_sizes() {
    const BOTH: u64 = 1 << 32 | 1;
    // Of an aligned store, nobody sees one half.
    never_either(&[&[Both(X, 1)], &[RHalf(X, 1), RR, RHalf(X, 0)]], |o| {
        o[..2] == [1, 0]
    });
    never_either(&[&[Both(X, 1)], &[RHalf(X, 0), RR, R(X)]], |o| {
        o[0] == 1 && o[1] != BOTH
    });
    never_either(&[&[Both(X, 1)], &[R(X)]], |o| o[0] != 0 && o[0] != BOTH);
    // Two loads that have bytes in common are made in order.
    never_either(&[&[Both(X, 1)], &[R(X), RHalf(X, 1)]], |o| {
        o[0] == BOTH && o[1] == 0
    });
    never_either(&[&[Both(X, 1)], &[RHalf(X, 0), R(X)]], |o| {
        o[0] == 1 && o[1] != BOTH
    });
    // Two halves in order.
    for fence in [F, WW] {
        never_either(&[&[WHalf(X, 0, 1), fence, WHalf(X, 1, 1)], &[R(X)]], |o| {
            o[0] == 1 << 32
        });
    }
    // Own bytes, and at the end all of them; where caches write whole lines back, threads must not share one like this.
    let one_copy = [Chip::Mesh, Chip::Harts];
    let own = [[WHalf(X, 0, 1), R(X)], [WHalf(X, 1, 1), R(X)]];
    never_on(&one_copy, CASES / 2, &[&own[0], &own[1]], |o| {
        o[0] & 1 == 0 || o[1] >> 32 == 0 || o[2] != BOTH
    });
    let own: [&[Do]; 2] = [&[Both(X, 1), RHalf(X, 1)], &[WHalf(X, 1, 2)]];
    never_on(&one_copy, CASES / 2, &own, |o| o[0] == 0);
    // A message of one half, with a flag of eight bytes.
    never_either(
        &[&[WHalf(X, 1, 1), WW, Both(Y, 1)], &[RHalf(Y, 1), RR, R(X)]],
        |o| o[0] == 1 && o[1] != 1 << 32,
    );
}
