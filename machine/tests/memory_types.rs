//! Svpbmt: pages whose accesses pass the caches, on a tile with private caches and on a cluster.

use crate::common::*;
use bulkhead_abi::memory_map::{MEMORY_BASE, PMP_WINDOW_SIZE};
use bulkhead_machine::config::{MemoryConfig, PlatformConfig, PlatformKind};
use bulkhead_machine::ledger::Level;
use bulkhead_machine::machine::{Machine, Outcome, RunLimit};
use bulkhead_machine::noc::Transaction;
use bulkhead_machine::types::{Tick, TileId};

const MSTATUS: u32 = 0x300;
const MTVEC: u32 = 0x305;
const MCAUSE: u32 = 0x342;
/// The root table: entries of one GiB.
const ROOT: u64 = 0x8_0000;
/// Where programs leave words.
const RESULT: u64 = MEMORY_BASE + 0x9_0000;
const DATA: u64 = 0x20_0000;
/// Virtual addresses of the memory's first byte, by what the entry says.
const CACHED: u64 = 2 << 30;
const UNCACHED: u64 = 3 << 30;
const ORDERED: u64 = 4 << 30;
const RESERVED: u64 = 5 << 30;
/// Leads to a next table, with a memory type.
const POINTER: u64 = 6 << 30;
/// The bit behind the memory types, which is that of another extension.
const OTHER: u64 = 7 << 30;
/// The memory's second GiB, past the caches.
const PORT: u64 = 8 << 30;

const FETCH_ACCESS: u64 = 1;
const SUPERVISOR_CALL: u64 = 9;
const FETCH_PAGE: u64 = 12;
const LOAD_MISALIGNED: u64 = 4;
const LOAD_ACCESS: u64 = 5;
const STORE_MISALIGNED: u64 = 6;
const STORE_ACCESS: u64 = 7;
const LOAD_PAGE: u64 = 13;

fn tables(machine: &mut Machine) {
    let leaf = MEMORY_BASE >> 12 << 10 | 0xCF;
    let mut root = [0u64; 9];
    root[2] = leaf;
    root[3] = leaf | 1 << 61;
    root[4] = leaf | 2 << 61;
    root[5] = leaf | 3 << 61;
    root[6] = (MEMORY_BASE + ROOT) >> 12 << 10 | 1 | 1 << 61;
    root[7] = leaf | 1 << 63;
    root[8] = (MEMORY_BASE + (1 << 30)) >> 12 << 10 | 0xCF | 1 << 61;
    let bytes: Vec<u8> = root.iter().flat_map(|entry| entry.to_le_bytes()).collect();
    machine
        .load_tile(0, MEMORY_BASE + ROOT, &bytes)
        .expect("memory");
}

/// Data accesses of what follows are those of supervisor mode, with memory types if `types`. A trap stores its cause as the first result
/// and ends the program. Uses `T0`.
fn translated(types: bool) -> Program {
    let mut p = Program::default();
    let over = p.here();
    p.word(0);
    let trap = p.here();
    p.csr(2, MCAUSE, ZERO)
        .word(MCAUSE << 20 | 2 << 12 | T0 << 7 | 0x73);
    p.li(T1, RESULT).sd(T0, T1, 0).word(FENCE).spin();
    let on = p.here();
    p.patch_jump(over, on);
    // auipc
    p.word(T0 << 7 | 0x17);
    let back = (on.index() - trap.index()) as i32 * 4;
    p.addi(T0, T0, -back).csr(1, MTVEC, T0);
    p.translation(MEMORY_BASE + ROOT, types).as_supervisor();
    p
}

/// What follows makes its accesses in machine mode, without translation.
fn direct(p: &mut Program) {
    p.li(T1, 1 << 17).csr(3, MSTATUS, T1);
}

/// Stores `T0` as result number `at`, without translation, and goes on with it.
fn result(p: &mut Program, at: u64) {
    direct(p);
    p.li(T1, RESULT + 8 * at).sd(T0, T1, 0);
    p.li(T1, 1 << 17 | 1 << 11).csr(1, MSTATUS, T1);
}

fn single() -> PlatformConfig {
    platform(PlatformKind::Bare, 1)
}

fn machine_of(config: &PlatformConfig, programs: &[Program]) -> Machine {
    let mut machine = Machine::new(config).expect("valid");
    tables(&mut machine);
    for (port, program) in programs.iter().enumerate() {
        let mut whole = Program::default();
        whole.words_of(program).word(FENCE).spin();
        start_hart(
            &mut machine,
            (0, port),
            &whole,
            0x1_0000 * (port as u64 + 1),
        );
    }
    machine
}

/// Runs programs for a while; they end in loops.
fn run(config: &PlatformConfig, programs: &[Program]) -> Machine {
    let mut machine = machine_of(config, programs);
    assert_eq!(
        machine.run(RunLimit { ticks: 400_000 }, None),
        Outcome::Limit
    );
    machine
}

fn word(machine: &Machine, address: u64) -> u64 {
    let mut word = [0; 8];
    machine.peek(0, address, &mut word).expect("memory");
    u64::from_le_bytes(word)
}

fn results(machine: &Machine, count: u64) -> Vec<u64> {
    (0..count)
        .map(|at| word(machine, RESULT + 8 * at))
        .collect()
}

/// The cause of the trap of one access; 0: there was none.
fn cause(config: &PlatformConfig, types: bool, access: impl Fn(&mut Program)) -> u64 {
    let mut p = translated(types);
    access(&mut p);
    results(&run(config, &[p]), 1)[0]
}

fn load(at: u64) -> impl Fn(&mut Program) {
    move |p| {
        p.li(S0, at + DATA).ld(T0, S0, 0).addi(T0, T0, 0);
    }
}

/// The encodings: with `menvcfg.PBMTE`, types 0 to 2 are legal in leaves, and 3 and every type of a pointer are page faults; without it, every
/// type is.
#[test]
fn legal_and_reserved_encodings() {
    for config in [single(), cluster(1)] {
        for (at, with, without) in [
            (CACHED, 0, 0),
            (UNCACHED, 0, LOAD_PAGE),
            (ORDERED, 0, LOAD_PAGE),
            (RESERVED, LOAD_PAGE, LOAD_PAGE),
            (POINTER, LOAD_PAGE, LOAD_PAGE),
            (OTHER, LOAD_PAGE, LOAD_PAGE),
        ] {
            assert_eq!(cause(&config, true, load(at)), with, "{at:#x}");
            assert_eq!(cause(&config, false, load(at)), without, "{at:#x}");
        }
    }
}

/// Instructions are fetched through the cache only: those of a page past the caches are refused, and those of a wrong entry are a page fault.
#[test]
fn instructions_past_the_caches_are_refused() {
    for config in [single(), cluster(1)] {
        for (at, expected) in [
            (CACHED, SUPERVISOR_CALL),
            (UNCACHED, FETCH_ACCESS),
            (ORDERED, FETCH_ACCESS),
            (PORT, FETCH_ACCESS),
            (RESERVED, FETCH_PAGE),
            (POINTER, FETCH_PAGE),
            (OTHER, FETCH_PAGE),
        ] {
            let found = cause(&config, true, |p| {
                // An ECALL, which memory has, too.
                p.li(S0, CACHED + DATA).addi(T0, ZERO, 0x73).sd(T0, S0, 0);
                p.cbo(CBO_FLUSH, S0).word(FENCE).word(0x100f);
                p.li(T0, at + DATA).csr(1, 0x341, T0).mret();
            });
            assert_eq!(found, expected, "{at:#x}");
        }
    }
}

/// What past the caches is refused: misaligned accesses, reservations, zeroing of lines.
#[test]
fn what_needs_a_cache_is_refused() {
    for config in [single(), cluster(1)] {
        for at in [UNCACHED, ORDERED] {
            let of = |access: &dyn Fn(&mut Program)| {
                cause(&config, true, |p| {
                    p.li(S0, at + DATA);
                    access(p);
                })
            };
            assert_eq!(of(&|p| _ = p.ld(T0, S0, 1)), LOAD_MISALIGNED);
            assert_eq!(of(&|p| _ = p.sd(T0, S0, 4)), STORE_MISALIGNED);
            assert_eq!(of(&|p| _ = p.lr(T0, S0)), LOAD_ACCESS);
            assert_eq!(of(&|p| _ = p.sc(T0, S0, T1)), STORE_ACCESS);
            assert_eq!(of(&|p| _ = p.cbo(CBO_ZERO, S0)), STORE_ACCESS);
            assert_eq!(of(&|p| _ = p.amo(0, 0, T0, S0, T1)), 0);
            // Flushing the lines behind another address is what software needs.
            assert_eq!(of(&|p| _ = p.cbo(CBO_FLUSH, S0)), 0);
            // Nothing is there.
            assert_eq!(
                cause(&config, true, |p| {
                    p.li(S0, at + (32 << 20)).ld(T0, S0, 0);
                }),
                LOAD_ACCESS
            );
        }
    }
}

/// An access past the caches sees memory: not what a cache keeps, and what another access past them stored. Software mends that with
/// flushes.
#[test]
fn accesses_reach_memory_and_no_cache() {
    for config in [single(), cluster(1)] {
        let mut p = translated(true);
        p.li(S0, CACHED + DATA).li(S1, UNCACHED + DATA);
        // 1 in the cache only.
        p.addi(T0, ZERO, 1).sd(T0, S0, 0).word(FENCE).ld(T0, S1, 0);
        p.addi(S2, T0, 0);
        p.cbo(CBO_FLUSH, S0).word(FENCE).ld(T0, S1, 0);
        p.addi(S3, T0, 0);
        // The cache has the line again; 7 is in memory only.
        p.ld(T0, S0, 0).word(FENCE);
        p.addi(T0, ZERO, 7).sd(T0, S1, 0).word(FENCE);
        p.ld(A1, S1, 0).ld(T2, S0, 0).addi(T2, T2, 0);
        p.cbo(CBO_FLUSH, S0).word(FENCE).ld(S0, S0, 0);
        for (at, register) in [S2, S3, A1, T2, S0].into_iter().enumerate() {
            p.addi(T0, register, 0);
            result(&mut p, at as u64);
        }
        assert_eq!(results(&run(&config, &[p]), 5), [0, 1, 7, 1, 7]);
    }
}

/// A second port has the bytes of both memories behind it, past the caches, too.
#[test]
fn a_second_port_has_the_bytes_of_the_memories_behind_it() {
    const SIZE: u64 = 1 << 20;
    const LATER: u64 = MEMORY_BASE + (1 << 30);
    for mut config in [single(), cluster(1)] {
        let mut add = |id: TileId, size: u64, behind: &[TileId]| {
            config.memories.push(MemoryConfig {
                dropped: 0,
                id,
                dram: config.memories[0].dram.clone(),
                size,
                router: 0,
                second_port_of: behind.to_vec(),
            });
        };
        add(MEMORY + 1, SIZE, &[]);
        add(MEMORY + 2, SIZE, &[]);
        add(MEMORY + 3, 2 * SIZE, &[MEMORY + 1, MEMORY + 2]);
        let mut p = translated(true);
        // The second memory behind the port, in the last window.
        p.li(S0, PORT + PMP_WINDOW_SIZE + SIZE + 64);
        p.addi(T0, ZERO, 5).sd(T0, S0, 0).word(FENCE);
        p.addi(T2, ZERO, 2).amo(0, 0, T1, S0, T2).word(FENCE);
        p.ld(T0, S0, 0);
        result(&mut p, 0);
        let machine = run(&config, &[p]);
        assert_eq!(results(&machine, 1), [7]);
        assert_eq!(word(&machine, LATER + 64), 7);
    }
}

/// Each access is one of memory, booked as such; none takes a place in a cache.
#[test]
fn nothing_is_allocated() {
    for config in [single(), cluster(1)] {
        let program = |at: u64, loads: usize| {
            let mut p = translated(true);
            p.li(S0, at + DATA);
            for _ in 0..loads {
                p.ld(T0, S0, 0).addi(T0, T0, 0);
            }
            p
        };
        let counted = |at, loads| {
            let machine = run(&config, &[program(at, loads)]);
            let statistics = machine.statistics();
            let data = statistics.caches.iter().filter(|c| c.level == Level::L1d);
            let misses: u64 = data.map(|c| c.counters.misses + c.counters.hits).sum();
            let remote = machine.ledger().latencies();
            let remote = remote
                .iter()
                .filter(|l| l.transaction == Transaction::RemoteLoad);
            (misses, remote.map(|l| l.total.count()).sum::<u64>())
        };
        // The walk reads through the cache.
        let (walk, _) = counted(UNCACHED, 1);
        assert_eq!(counted(UNCACHED, 8), (walk, 8));
        assert_eq!(counted(ORDERED, 8), (walk, 8));
        assert_eq!(counted(CACHED, 8).1, 0);
    }
}

const BEGIN: u32 = 0x100;

/// Ticks of this many loads of different lines, at most four, whose values nobody needs in between.
fn loads(config: &PlatformConfig, at: u64, count: u32) -> Tick {
    let mut p = translated(true);
    // The page is translated before.
    p.li(S0, at + DATA).ld(T0, S0, 0).word(FENCE);
    p.marker(ZERO, BEGIN);
    for line in 0..count {
        p.ld([T0, T1, T2, A1][line as usize], S0, 256 * u64::from(line));
    }
    p.word(FENCE).marker(ZERO, BEGIN);
    let machine = run(config, &[p]);
    let own: Vec<Tick> = machine.markers().iter().map(|marker| marker.tick).collect();
    own[1] - own[0]
}

/// Loads of pages of type NC overlap, as far as the hart's buffer has room for loads; those of type IO are made one after the other, so each
/// takes as long as the first one does alone.
#[test]
fn ordered_accesses_wait_for_each_other() {
    for mut config in [single(), cluster(1)] {
        config.tiles[0].hart.load_buffer = 4;
        config.memories[0].dram.controller.timing.refresh_interval = 0;
        let of = |at| [1, 2, 3, 4].map(|count| loads(&config, at, count));
        let (uncached, ordered) = (of(UNCACHED), of(ORDERED));
        println!("{uncached:?} {ordered:?}");
        let (alone, more) = (ordered[0], |of: [Tick; 4]| {
            [1, 2, 3].map(|i| of[i] - of[i - 1])
        });
        assert_eq!(uncached[0], alone);
        // One more takes the time of its data on the memory's bus; or it takes the whole way, up to edges of the clocks of network and memory.
        let dram = &config.memories[0].dram;
        let data = dram.controller.timing.burst;
        assert_eq!(more(uncached), [data; 3]);
        let edges = config.network.cycle + dram.controller.timing.cycle;
        let whole = alone - edges..=alone;
        assert!(
            more(ordered).iter().all(|one| whole.contains(one)),
            "{ordered:?}"
        );
    }
}

/// Atomic operations past the caches are made by the memory, so those of several harts are exact.
#[test]
fn atomic_operations_of_harts_are_exact() {
    let adds = |rounds| {
        let mut p = translated(true);
        p.li(S0, UNCACHED + DATA)
            .addi(S1, ZERO, rounds)
            .addi(T2, ZERO, 1);
        let again = p.here();
        p.amo(0, 0, ZERO, S0, T2).addi(S1, S1, -1);
        p.branch(1, S1, ZERO, again);
        p
    };
    let machine = run(&cluster(3), &[adds(50), adds(60), adds(70)]);
    assert_eq!(word(&machine, MEMORY_BASE + DATA), 180);
    waits_are_booked(&machine);
}

/// A message through pages that are not cached needs no flush: data, then a flag; the reader sees the data with the flag.
#[test]
fn a_message_needs_fences_and_no_flush() {
    let mut writer = translated(true);
    writer
        .li(S0, UNCACHED + DATA)
        .addi(T0, ZERO, 5)
        .sd(T0, S0, 0)
        .word(FENCE)
        .addi(T0, ZERO, 1)
        .sd(T0, S0, 1024);
    let mut reader = translated(true);
    reader.li(S0, UNCACHED + DATA);
    let wait = reader.here();
    reader.ld(T0, S0, 1024).branch(0, T0, ZERO, wait);
    reader.word(FENCE).ld(T0, S0, 0);
    result(&mut reader, 0);
    for swapped in [false, true] {
        let mut programs = [&writer, &reader].map(|program| {
            let mut copy = Program::default();
            copy.words_of(program);
            copy
        });
        if swapped {
            programs.reverse();
        }
        assert_eq!(results(&run(&cluster(2), &programs), 1), [5]);
    }
}

/// Two harts that load, store and add past the caches and through them, in windows of any length.
#[test]
fn the_length_of_a_window_changes_nothing() {
    let program = |port: u64| {
        let mut p = translated(true);
        p.li(S0, UNCACHED + DATA)
            .li(S2, CACHED + DATA + 4096 * (1 + port))
            .li(S3, ORDERED + DATA + 512)
            .addi(T2, ZERO, 3);
        let again = p.here();
        p.amo(0, 0, T0, S0, T2).ld(T1, S2, 0).sd(T0, S2, 8);
        p.sd(T1, S3, 8 * port)
            .ld(A1, S3, 8)
            .sd(A1, S0, 64 + 8 * port);
        p.branch(0, ZERO, ZERO, again);
        p
    };
    let config = cluster(2);
    let programs = || [program(0), program(1)];
    pieces_change_nothing(|| machine_of(&config, &programs()), 200_000);
}
