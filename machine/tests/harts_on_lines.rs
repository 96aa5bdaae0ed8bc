//! Two harts of a tile: they see each other's stores and end each other's reservations, and whatever they do, memory ends up as the
//! programs say.

use crate::common::*;
use bulkhead_abi::memory_map::MEMORY_BASE;
use bulkhead_machine::config::{CacheConfig, Replacement};
use bulkhead_machine::machine::{Machine, Outcome, RunLimit};
use bulkhead_machine::types::Tick;
use proptest::prelude::*;

/// Where the programs of both harts and their data are in the tile's memory.
const FIRST: u64 = 0x1_0000;
const SECOND: u64 = 0x4_0000;
const DATA: u64 = MEMORY_BASE + 0x8_0000;
const FOUND: u32 = 0x100;
const WORDS: u64 = 0x3000 / 8;

/// Runs both programs to their ends, in windows of this length if one is given.
fn run(programs: [&Program; 2], small: bool, window: Option<Tick>) -> Machine {
    let mut config = two_harts();
    if small {
        let tile = &mut config.tiles[0];
        let cache = |cache: &mut Option<CacheConfig>, size, ways, replacement| {
            let cache = cache.as_mut().expect("it has one");
            (cache.size, cache.ways, cache.replacement) = (size, ways, replacement);
        };
        cache(&mut tile.l1d, 1 << 10, 2, Replacement::Lru);
        cache(&mut tile.l1i, 1 << 10, 2, Replacement::Random);
        cache(&mut tile.l2, 4 << 10, 4, Replacement::TreePlru);
    }
    let mut machine = chip_of(&config);
    let second = programs[1].bytes();
    let loaded = machine.load_tile(0, MEMORY_BASE + SECOND, &second);
    loaded.expect("memory");
    programs[0].start_at(&mut machine, 0, FIRST);
    let mut ticks = window.unwrap_or(20_000_000);
    loop {
        let end = machine.run(RunLimit { ticks }, None);
        match end {
            Outcome::Limit if ticks < 20_000_000 => ticks += window.unwrap_or(ticks),
            Outcome::Idle { .. } => return machine,
            end => panic!("{end:?} at {ticks}"),
        }
    }
}

fn found(machine: &Machine) -> Vec<u64> {
    let markers = machine.markers();
    let found = markers.iter().filter(|m| u32::from(m.kind) == FOUND);
    found.map(|m| m.value).collect()
}

/// Reserves a word, waits, and stores to it if the reservation still exists.
fn reserver(rounds: u64) -> Program {
    let mut p = Program::default();
    p.start_second(SECOND).li(S0, DATA);
    // The line is present beforehand.
    p.ld(T0, S0, 0).word(FENCE).amo(2, 0, T1, S0, ZERO);
    p.li(T2, rounds);
    let wait = p.here();
    p.addi(T2, T2, -1).branch(1, T2, ZERO, wait);
    p.amo(3, 0, T0, S0, T1).marker(T0, FOUND).word(WFI).spin();
    p
}

/// Stores the value that a word already has.
fn same_again(offset: u64, twice: bool) -> Program {
    let mut p = Program::default();
    p.li(S0, DATA).ld(T0, S0, offset).word(FENCE);
    if twice {
        // The second store finds its line known and dirty.
        p.sd(T0, S0, offset).li(T2, 900);
        let wait = p.here();
        p.addi(T2, T2, -1).branch(1, T2, ZERO, wait);
    }
    p.sd(T0, S0, offset).word(WFI).spin();
    p
}

/// A reservation belongs to the line: a store of the other hart ends it whatever the value, even if that hart had written the line before.
#[test]
fn a_store_of_the_other_hart_ends_a_reservation() {
    const KEPT: u64 = 0;
    const LOST: u64 = 1;
    let outcome = |rounds, second: &Program| {
        let machine = run([&reserver(rounds), second], false, None);
        found(&machine)
    };
    let mut quiet = Program::default();
    quiet.word(WFI).spin();
    assert_eq!(outcome(4000, &quiet), [KEPT]);
    assert_eq!(outcome(4000, &same_again(8, false)), [LOST]);
    assert_eq!(outcome(4000, &same_again(8, true)), [LOST]);
    assert_eq!(outcome(4000, &same_again(64, true)), [KEPT]);
}

/// Both count with load-reserved and store-conditional and with an atomic operation, in words of one line.
fn counter(first: bool) -> Program {
    let mut p = Program::default();
    if first {
        p.start_second(SECOND);
    }
    p.li(S0, DATA).addi(S3, S0, 8).addi(S2, ZERO, 1);
    p.li(S1, 300);
    let again = p.here();
    p.amo(0, 0, ZERO, S0, S2);
    let retry = p.here();
    p.amo(2, 0, T0, S3, ZERO).addi(T0, T0, 1);
    p.amo(3, 0, T1, S3, T0).branch(1, T1, ZERO, retry);
    p.addi(S1, S1, -1).branch(1, S1, ZERO, again);
    p.word(WFI).spin();
    p
}

#[test]
fn no_count_is_lost() {
    for small in [false, true] {
        for window in [None, Some(13)] {
            let machine = run([&counter(true), &counter(false)], small, window);
            let mut counts = [0; 16];
            machine.peek(0, DATA, &mut counts).expect("tile");
            let count = |at: usize| u64::from_le_bytes(*counts[at..].first_chunk().expect("16"));
            assert_eq!((count(0), count(8)), (600, 600), "{small} {window:?}");
        }
    }
}

/// What a hart does to its own words, every second word of a line.
#[derive(Clone, Copy, Debug)]
enum Do {
    /// Adds a number to a word, and the word to a sum.
    Change(u64, i32),
    /// Only adds a word to the sum.
    Look(u64),
    /// Adds to the first word, which all share.
    Count,
    /// Manages a word's line, or fetches it ahead.
    Manage(u32, u64),
    Prefetch(u64),
    Fence,
}

fn operations() -> impl Strategy<Value = Vec<Do>> {
    let word = || 1..WORDS / 2;
    let one = prop_oneof![
        8 => (word(), -99..99).prop_map(|(at, by)| Do::Change(at, by)),
        4 => word().prop_map(Do::Look),
        1 => Just(Do::Count),
        1 => (prop::sample::select(vec![CBO_CLEAN, CBO_FLUSH]), word()).prop_map(|(how, at)| Do::Manage(how, at)),
        1 => word().prop_map(Do::Prefetch),
        1 => Just(Do::Fence),
    ];
    prop::collection::vec(one, 1..400)
}

fn program(of: usize, operations: &[Do]) -> Program {
    let mut p = Program::default();
    if of == 0 {
        p.start_second(SECOND);
    }
    // Bases of 1 KiB each.
    const BASES: [u32; 12] = [8, 9, 18, 19, 20, 21, 22, 23, 24, 25, 26, 27];
    for (base, start) in BASES.into_iter().zip((DATA..).step_by(1024)) {
        p.li(base, start);
    }
    p.addi(T2, ZERO, 0).addi(A1, ZERO, 3);
    let again = p.here();
    for one in operations {
        let place = |at: u64| {
            let byte = (2 * at + of as u64) * 8;
            (BASES[(byte / 1024) as usize], byte % 1024)
        };
        match *one {
            Do::Change(at, by) => {
                let (base, offset) = place(at);
                p.ld(T0, base, offset).addi(T0, T0, by).add(T2, T2, T0);
                p.sd(T0, base, offset);
            }
            Do::Look(at) => {
                let (base, offset) = place(at);
                p.ld(T0, base, offset).add(T2, T2, T0);
            }
            Do::Count => {
                p.amo(0, 0, ZERO, BASES[0], A1);
            }
            Do::Manage(how, at) => {
                let (base, offset) = place(at);
                p.addi(T1, base, offset as i32).cbo(how, T1);
            }
            Do::Prefetch(at) => {
                let (base, offset) = place(at);
                // PREFETCH.R: its offset has no low bits.
                p.word((offset as u32 & !31) << 20 | 1 << 20 | base << 15 | 6 << 12 | 0x13);
            }
            Do::Fence => {
                p.word(FENCE);
            }
        }
    }
    // Three rounds. The way back is too long for a branch.
    p.addi(A1, A1, -1);
    let end = p.here();
    p.addi(ZERO, ZERO, 0).jump_far(again);
    let out = p.here();
    p.patch_branch(end, 0, A1, ZERO, out);
    p.marker(T2, FOUND).word(WFI).spin();
    p
}

/// What both programs leave in memory and what they load, in the order of their lengths: each hart alone changes its own words, and all
/// counts add up.
fn expected(programs: [&[Do]; 2]) -> (Vec<u8>, Vec<u64>) {
    let mut words = vec![0u64; WORDS as usize];
    let mut sums = Vec::new();
    for (of, operations) in programs.into_iter().enumerate() {
        let mut sum = 0u64;
        for count in [3, 2, 1] {
            for one in operations {
                match *one {
                    Do::Change(at, by) => {
                        let word = &mut words[2 * at as usize + of];
                        *word = word.wrapping_add_signed(by.into());
                        sum = sum.wrapping_add(*word);
                    }
                    Do::Look(at) => sum = sum.wrapping_add(words[2 * at as usize + of]),
                    Do::Count => words[0] += count,
                    Do::Manage(..) | Do::Prefetch(_) | Do::Fence => {}
                }
            }
        }
        sums.push(sum);
    }
    sums.sort_unstable();
    (words.into_iter().flat_map(u64::to_le_bytes).collect(), sums)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(60))]
    #[test]
    fn memory_ends_as_the_programs_say(
        first in operations(), second in operations(), small in any::<bool>(), window in 5u64..300,
    ) {
        let programs = [program(0, &first), program(1, &second)];
        let of = |window| {
            let machine = run([&programs[0], &programs[1]], small, window);
            let mut data = vec![0; 8 * WORDS as usize];
            machine.peek(0, DATA, &mut data).expect("tile");
            let mut sums = found(&machine);
            sums.sort_unstable();
            let times: Vec<Tick> = machine.markers().iter().map(|m| m.tick).collect();
            (data, sums, times)
        };
        let (whole, pieces) = (of(None), of(Some(window)));
        let (data, sums) = expected([&first, &second]);
        prop_assert_eq!(&whole.1, &sums);
        prop_assert!(whole.0 == data);
        // The length of a window changes nothing, not even times.
        prop_assert!(pieces == whole);
    }
}
