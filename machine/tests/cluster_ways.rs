//! Which ways of a cluster's second level each hart fills, and which lines the fills replace, in closed form.

use crate::common::*;
use bulkhead_abi::memory_map::{LOCKDOWN_BASE, LOCKDOWN_FIRST, MEMORY_BASE};
use bulkhead_machine::cache::CacheStatistics;
use bulkhead_machine::config::{PlatformConfig, Replacement};
use bulkhead_machine::ledger::{Level, Resource};
use bulkhead_machine::machine::{Machine, Outcome, RunLimit};

/// Sets of the second level. Lines that are this many lines apart share a set, in the first level as well.
const SETS: u64 = 256;
const WAYS: u64 = 4;
/// In a set of its own.
const RESULT: u64 = MEMORY_BASE + 0xF_0000 + 64 * 200;

/// A chip whose first level has one way, so that lines of one set never stay there.
fn chip(harts: u16, replacement: Replacement, fills: &[u64]) -> PlatformConfig {
    let mut config = cluster(harts);
    let tile = &mut config.tiles[0];
    let l1d = tile.l1d.as_mut().expect("a first level");
    (l1d.size, l1d.ways) = (4 << 10, 1);
    let l2 = tile.l2.as_mut().expect("a second level");
    (l2.size, l2.ways) = (SETS * WAYS * 64, WAYS as u32);
    l2.replacement = replacement;
    tile.cluster.as_mut().expect("a cluster").fills = fills.to_vec();
    config
}

/// The address of a line in a set without programs. Each hart has its own lines.
fn line(port: usize, set: u64, number: u64) -> u64 {
    MEMORY_BASE + 0x10_0000 * (1 + port as u64) + 64 * (180 + set + SETS * number)
}

/// Loads this many lines of one set in turn, each after the previous one.
fn turns(port: usize, lines: u64, rounds: i32) -> Program {
    let mut p = Program::default();
    p.li(S2, 64 * SETS).addi(S1, ZERO, rounds);
    let again = p.here();
    p.li(S0, line(port, 0, 0));
    for _ in 0..lines {
        p.ld(T0, S0, 0).addi(T0, T0, 0).add(S0, S0, S2);
    }
    p.addi(S1, S1, -1).branch(1, S1, ZERO, again).word(WFI);
    p
}

fn run(config: &PlatformConfig, programs: &[Program]) -> Machine {
    let mut machine = Machine::new(config).expect("valid");
    for (port, program) in programs.iter().enumerate() {
        start_port(&mut machine, port, program, 0x1_0000 * (port as u64 + 1));
    }
    let end = machine.run(RunLimit { ticks: 50_000_000 }, None);
    assert!(matches!(end, Outcome::Idle { .. }), "{end:?}");
    machine
}

/// What the second level did for a hart.
fn second(machine: &Machine, port: u16) -> CacheStatistics {
    let all = machine.statistics().caches;
    let own = |c: &&bulkhead_machine::statistics::CacheReport| {
        c.level == Level::L2 && c.owner.activity == port
    };
    all.iter().find(own).expect("it asked").counters
}

/// Misses of ten more rounds.
fn misses(config: &PlatformConfig, program: impl Fn(i32) -> Program) -> u64 {
    let after = |rounds| second(&run(config, &[program(rounds)]), 0).misses;
    after(20) - after(10)
}

/// A hart that uses as many lines of a set as it has ways has no more misses; with one line more, least recently used always misses.
#[test]
fn a_hart_has_as_many_lines_as_ways() {
    for replacement in [Replacement::Lru, Replacement::TreePlru, Replacement::Random] {
        for (mask, ways) in [(0, 4), (0b1, 1), (0b1000, 1), (0b0110, 2), (0b1011, 3)] {
            let config = chip(1, replacement, &[mask]);
            for lines in 1..=ways {
                let more = misses(&config, |rounds| turns(0, lines, rounds));
                // The first level keeps a single line.
                assert_eq!(more, 0, "{replacement:?}, ways {mask:#b}, {lines} lines");
            }
            let more = misses(&config, |rounds| turns(0, ways + 1, rounds));
            match replacement {
                Replacement::Lru => assert_eq!(more, 10 * (ways + 1), "ways {mask:#b}"),
                _ => assert!(more > 0, "{replacement:?}, ways {mask:#b}"),
            }
        }
    }
}

/// Another hart's fills evict a hart's lines, and the ledger says so, unless each hart has its own ways. The choice is random: with least
/// recently used, a hart that hits more often than the other one fills would keep its lines even without its own ways.
#[test]
fn fills_of_another_hart_reach_ways_that_both_may_fill() {
    let beside = |fills: &[u64]| {
        let config = chip(2, Replacement::Random, fills);
        run(&config, &[turns(0, 2, 1000), turns(1, 8, 100)])
    };
    let evictions = |machine: &Machine| {
        let bookings = machine.ledger().bookings();
        let by_sets = |b: &&bulkhead_machine::ledger::Booking| {
            b.victim.activity == 0
                && b.culprit.activity == 1
                && b.resource == Resource::CacheSet(Level::L2)
        };
        bookings
            .iter()
            .filter(by_sets)
            .map(|b| b.count)
            .sum::<u64>()
    };
    let alone = second(
        &run(&chip(2, Replacement::Random, &[]), &[turns(0, 2, 1000)]),
        0,
    );
    let shared = beside(&[]);
    let by_others = second(&shared, 0).misses_by_others;
    assert!(by_others > 50, "{by_others}");
    assert_eq!(evictions(&shared), by_others);
    let apart = beside(&[0b0011, 0b1100]);
    assert_eq!(second(&apart, 0).misses, alone.misses);
    assert_eq!(
        (second(&apart, 0).misses_by_others, evictions(&apart)),
        (0, 0)
    );
}

/// A hit is a hit in any way: a line brought by another hart stays readable.
#[test]
fn a_hart_hits_in_ways_that_it_may_not_fill() {
    let config = chip(2, Replacement::Lru, &[0b0001, 0b1110]);
    let mut reader = Program::default();
    // Until the other hart is done and its lines are in the second level.
    let (flag, shared) = (RESULT, line(1, 0, 0));
    reader.li(S3, flag);
    let wait = reader.here();
    reader.ld(T0, S3, 0).branch(0, T0, ZERO, wait);
    reader.li(S0, shared).li(S2, 64 * SETS);
    for _ in 0..3 {
        reader.ld(T0, S0, 0).addi(T0, T0, 0).add(S0, S0, S2);
    }
    reader.word(WFI);
    let writer = || {
        let mut p = Program::default();
        p.li(S0, shared).li(S2, 64 * SETS);
        for _ in 0..3 {
            p.ld(T0, S0, 0).addi(T0, T0, 0).add(S0, S0, S2);
        }
        p.li(S3, flag).addi(T1, ZERO, 1).sd(T1, S3, 0).word(WFI);
        p
    };
    // The same number of instructions without the loads.
    let mut idle = Program::default();
    idle.li(S3, flag);
    let wait = idle.here();
    idle.ld(T0, S3, 0).branch(0, T0, ZERO, wait);
    while idle.bytes().len() + 4 < reader.bytes().len() {
        idle.addi(ZERO, ZERO, 0);
    }
    idle.word(WFI);
    let with = second(&run(&config, &[reader, writer()]), 0);
    let without = second(&run(&config, &[idle, writer()]), 0);
    // Three more loads and no more misses.
    assert_eq!(with.misses, without.misses);
}

fn store_word(p: &mut Program, value: u32, base: u32, offset: u32) {
    p.word(
        (offset >> 5 & 0x7F) << 25 | value << 20 | base << 15 | 2 << 12 | (offset & 31) << 7 | 0x23,
    );
}

fn load_word(p: &mut Program, to: u32, base: u32) {
    p.word(base << 15 | 2 << 12 | to << 7 | 0x03);
}

/// Registers do at run time what the description does at the start; a value that would lock every way is ignored.
#[test]
fn software_locks_ways() {
    let locking = |locked: u64, lines, rounds| {
        let mut p = Program::default();
        p.li(S3, LOCKDOWN_BASE + LOCKDOWN_FIRST).li(T1, locked);
        store_word(&mut p, T1, S3, 0);
        // Every way: refused.
        p.addi(T2, ZERO, -1);
        store_word(&mut p, T2, S3, 0);
        load_word(&mut p, T1, S3);
        p.li(S3, RESULT).sd(T1, S3, 0);
        p.words_of(&turns(0, lines, rounds));
        p
    };
    let config = chip(1, Replacement::Lru, &[]);
    for (locked, ways) in [(0b1110, 1), (0b1010, 2), (0b0001, 3), (0, 4)] {
        for lines in 1..=4 {
            let more = misses(&config, |rounds| locking(locked, lines, rounds));
            let expected = if lines > ways { 10 * lines } else { 0 };
            assert_eq!(more, expected, "{locked:#b} is locked, {lines} lines");
        }
        let machine = run(&config, &[locking(locked, 1, 1)]);
        let mut value = [0; 8];
        machine.peek(0, RESULT, &mut value).expect("memory");
        assert_eq!(u64::from_le_bytes(value), locked);
    }
}

/// Locking data does not lock instructions, and a hart that locks another hart's ways limits only that hart.
#[test]
fn each_hart_and_kind_has_a_register_of_its_own() {
    let config = chip(2, Replacement::Lru, &[]);
    for (offset, limited) in [(0, true), (4, false), (8, false), (12, false)] {
        let more = misses(&config, |rounds| {
            let mut p = Program::default();
            p.li(S3, LOCKDOWN_BASE + LOCKDOWN_FIRST)
                .addi(T1, ZERO, 0b1110);
            store_word(&mut p, T1, S3, offset);
            p.words_of(&turns(0, 2, rounds));
            p
        });
        assert_eq!(more, if limited { 20 } else { 0 }, "register {offset}");
    }
    // Nothing answers after the last hart.
    let mut p = Program::default();
    p.li(S3, LOCKDOWN_BASE + LOCKDOWN_FIRST);
    store_word(&mut p, ZERO, S3, 16);
    p.word(WFI);
    let mut machine = Machine::new(&config).expect("valid");
    start_port(&mut machine, 0, &p, 0x1_0000);
    let end = machine.run(RunLimit { ticks: 1_000_000 }, None);
    assert!(!matches!(end, Outcome::Idle { .. }), "{end:?}");
}

/// A program that flushes a line before it brings another one keeps all others if invalid ways come first.
#[test]
fn invalidation_drives_allocation() {
    let sets = 16;
    let program = || {
        let mut p = Program::default();
        for set in 0..sets {
            p.li(S2, 64 * SETS).li(S0, line(0, set, 0));
            for _ in 0..WAYS {
                p.ld(T0, S0, 0).addi(T0, T0, 0).add(S0, S0, S2);
            }
            // The third line is flushed, and the fifth arrives.
            p.li(T1, line(0, set, 2)).cbo(2, T1).word(FENCE);
            p.ld(T0, S0, 0).addi(T0, T0, 0);
        }
        // All others are used again.
        for set in 0..sets {
            for number in [0, 1, 3, 4] {
                p.li(S0, line(0, set, number));
                p.ld(T0, S0, 0).addi(T0, T0, 0);
            }
        }
        p.word(WFI);
        p
    };
    // Includes the misses of instructions, which are the same for all.
    let missed = |replacement| {
        let machine = run(&chip(1, replacement, &[]), &[program()]);
        second(&machine, 0).misses
    };
    let lru = missed(Replacement::Lru);
    assert_eq!(missed(Replacement::Random), lru);
    assert_eq!(missed(Replacement::TreePlru), lru);
    let any = missed(Replacement::RandomAny);
    assert!(
        any > lru + sets / 2,
        "{any} misses, {lru} if invalid ways come first"
    );
}
