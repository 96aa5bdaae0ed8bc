//! Tiles of a mesh share decoded code ([`SharedBlocks`](bulkhead_machine::hart::SharedBlocks)). No tile may notice: each runs what is in its
//! own memory, as if it were alone. Here tiles have the same code, nearly the same, and code that changes while others run it.

use crate::common::*;
use bulkhead_abi::memory_map::MEMORY_BASE;
use bulkhead_machine::machine::{Machine, RunLimit};
use bulkhead_machine::types::TileId;

const FENCE_I: u32 = 0x0000_100f;
/// Where programs keep their results.
const RESULT: u64 = 0x6000;
const LIMIT: RunLimit = RunLimit { ticks: 20_000 };

/// `addi T0, T0, value` as an instruction.
fn add(value: u32) -> u32 {
    value << 20 | T0 << 15 | T0 << 7 | 0x13
}

/// Adds `value` 50 times. With `change`, the program replaces that instruction after each 10 times by one that adds one more, with or without
/// a fence. The result is stored after each round.
fn counts(value: u32, change: bool, fence: bool) -> Program {
    let mut p = Program::default();
    p.li(S0, MEMORY_BASE + RESULT).addi(T0, ZERO, 0);
    p.li(S2, u64::from(add(value)) << 32 | u64::from(add(0)));
    p.li(S3, 1 << 52).addi(T2, ZERO, 5);
    // The pair of instructions that is replaced is aligned to eight bytes, and so is the place of its address.
    let outer = p.here();
    p.addi(T1, ZERO, 10);
    if p.here().index() % 2 == 1 {
        p.addi(ZERO, ZERO, 0);
    }
    let pair = p.here();
    p.word(add(0)).word(add(value));
    p.addi(T1, T1, -1).branch(1, T1, ZERO, pair);
    p.sd(T0, S0, 0).addi(S0, S0, 8);
    if change {
        p.add(S2, S2, S3).sd(S2, A1, 0);
    }
    if fence {
        p.word(FENCE_I);
    }
    p.addi(T2, T2, -1).branch(1, T2, ZERO, outer);
    p.word(WFI);
    p
}

/// The program of a tile, and where it lies.
type Placed = (TileId, u64, Program);

/// Where the pair of instructions lies in a program of [`counts`].
fn pair(program: &Program) -> u64 {
    let bytes = program.bytes();
    let words = bytes.chunks_exact(4);
    let at = words
        .into_iter()
        .position(|word| word == add(0).to_le_bytes());
    4 * at.expect("the program has the pair") as u64
}

/// What each tile has stored and counted, when these tiles run.
fn seen(programs: &[Placed]) -> Vec<(TileId, Vec<u64>, String)> {
    let mut machine = Machine::new(&mesh(8, 8)).unwrap();
    for (tile, offset, program) in programs {
        program.start_at(&mut machine, *tile, *offset);
        let place = MEMORY_BASE + offset + pair(program);
        machine
            .start_hart(*tile, MEMORY_BASE + offset, 0, place)
            .unwrap();
    }
    machine.run(LIMIT, None);
    let harts = machine.statistics().harts;
    let of = |(tile, _, _): &Placed| {
        let mut bytes = [0; 40];
        let there = machine.peek(*tile, MEMORY_BASE + RESULT, &mut bytes);
        there.unwrap();
        let (words, _) = bytes.as_chunks::<8>();
        let words = words.iter().map(|word| u64::from_le_bytes(*word));
        let counters = harts.iter().find(|hart| hart.tile == *tile);
        (*tile, words.collect(), format!("{counters:?}"))
    };
    programs.iter().map(of).collect()
}

/// All tiles together do what each does alone. Returns what they stored.
fn as_alone(programs: &[Placed]) -> Vec<Vec<u64>> {
    let together = seen(programs);
    for (index, one) in together.iter().enumerate() {
        let alone = seen(&programs[index..=index]);
        assert_eq!(*one, alone[0]);
    }
    together.into_iter().map(|(_, words, _)| words).collect()
}

/// The sums after each of five rounds of ten, when `add` is added and grows by `more` after each round.
fn sums(add: u64, more: u64) -> Vec<u64> {
    let sum = |rounds: u64| (0..=rounds).map(|round| 10 * (add + more * round)).sum();
    (0..5).map(sum).collect()
}

#[test]
fn each_tile_runs_its_own_code() {
    // The same code, code that differs in one instruction, and more kinds of code than there are groups.
    let values = |tile: u16| u32::from(tile.saturating_sub(20)) + 1;
    let programs: Vec<Placed> = (0..64)
        .map(|tile| (tile, 0, counts(values(tile), false, false)))
        .collect();
    for (tile, words) in as_alone(&programs).into_iter().enumerate() {
        assert_eq!(words, sums(values(tile as u16).into(), 0), "tile {tile}");
    }
}

#[test]
fn code_changes_in_one_tile_only() {
    let program = |tile: u16| counts(1, tile % 3 == 1, true);
    let programs: Vec<Placed> = (0..12).map(|tile| (tile, 0, program(tile))).collect();
    for (tile, words) in as_alone(&programs).into_iter().enumerate() {
        assert_eq!(words, sums(1, u64::from(tile % 3 == 1)), "tile {tile}");
    }
}

#[test]
fn changed_code_is_seen_after_a_fence_only() {
    // Without a fence, a hart may run the old instruction or the new one. This one has decoded the loop in the first round, and the way into
    // it in the second, with the first change; it keeps both, whatever the others' code is.
    let programs: Vec<Placed> = (0..4)
        .map(|tile| (tile, 0, counts(1, true, tile % 2 == 0)))
        .collect();
    for (tile, words) in as_alone(&programs).into_iter().enumerate() {
        let expected = match tile % 2 {
            0 => sums(1, 1),
            _ => vec![10, 21, 32, 43, 54],
        };
        assert_eq!(words, expected, "tile {tile}");
    }
}

#[test]
fn an_instruction_may_reach_into_the_next_page() {
    // The second instruction of the pair is in two pages; in some tiles it is another one.
    let value = |tile: u16| u32::from(tile / 4) + 1;
    let programs: Vec<Placed> = (0..16)
        .map(|tile| {
            let program = counts(value(tile), false, true);
            (tile, 0x1ffe - 4 - pair(&program), program)
        })
        .collect();
    for (tile, words) in as_alone(&programs).into_iter().enumerate() {
        assert_eq!(words, sums(value(tile as u16).into(), 0), "tile {tile}");
    }
}

#[test]
fn code_of_other_addresses_is_no_code_of_this_one() {
    // Blocks 16 KiB apart have the same place among the decoded ones.
    let programs: Vec<Placed> = (0..6)
        .map(|tile| {
            let offset = 0x4000 * u64::from(tile % 2);
            (tile, offset, counts(u32::from(tile) + 1, false, false))
        })
        .collect();
    for (tile, words) in as_alone(&programs).into_iter().enumerate() {
        assert_eq!(words, sums(tile as u64 + 1, 0), "tile {tile}");
    }
}
