//! Address translators in front of memories: names of bytes, colours in the shared second level, and what an access costs.

use crate::common::*;
use bulkhead_abi::dma::*;
use bulkhead_abi::memory_map::{DMA_BASE, MEMORY_BASE, PMP_WINDOW_SIZE};
use bulkhead_abi::translator::insert_bits;
use bulkhead_machine::config::{DmaConfig, EngineConfig, MemoryConfig, PlatformConfig};
use bulkhead_machine::ledger::Level;
use bulkhead_machine::machine::{Machine, Outcome, RunLimit};
use bulkhead_machine::types::{Owner, TileId};
use std::ops::Range;

/// The memory behind the translator, and its second port.
const LOCAL: TileId = MEMORY + 1;
const PORT: TileId = MEMORY + 2;
const ENGINE: TileId = 50;
const SIZE: u64 = 1 << 20;
/// The second level has 64 KiB in four ways, so bits 12 and 13 are its colours, and names are contiguous for 4 KiB.
const DROPPED: u64 = 0b11 << 12;
const CHUNK: u64 = 1 << 12;
const WINDOW: u64 = MEMORY_BASE + PMP_WINDOW_SIZE;
const SECOND: u64 = MEMORY_BASE + 2 * PMP_WINDOW_SIZE;
/// How often the first program walks over its set: for longer than the second one needs for all of its lines.
const ROUNDS: u8 = 250;
const LIMIT: RunLimit = RunLimit { ticks: 40_000_000 };

/// Tiles as in [`clusters`], with a memory of 1 MiB in the second window, its second port in the third, and an engine.
fn chip(harts: &[u16], dropped: u64) -> PlatformConfig {
    let mut config = clusters(harts);
    let first = config.memories[0].clone();
    config.memories.push(MemoryConfig {
        id: LOCAL,
        size: SIZE,
        dropped,
        ..first.clone()
    });
    config.memories.push(MemoryConfig {
        id: PORT,
        size: SIZE,
        second_port_of: vec![LOCAL],
        ..first
    });
    config.engines.push(EngineConfig {
        id: ENGINE,
        interrupts: None,
        coherent: false,
        router: 0,
        dma: DmaConfig {
            cycle: 4,
            burst: 128,
            ..DmaConfig::default()
        },
        registers: 2,
    });
    config
}

/// The address of a byte of the memory under a colour.
fn name(offset: u64, colour: u64) -> u64 {
    WINDOW + insert_bits(offset, DROPPED, colour)
}

fn machine(config: &PlatformConfig, programs: &[((TileId, usize, u64), Program)]) -> Machine {
    let mut machine = Machine::new(config).expect("valid");
    for ((tile, port, offset), program) in programs {
        start_hart(&mut machine, (*tile, *port), program, *offset);
    }
    machine
}

fn idle(machine: &mut Machine) {
    let end = machine.run(LIMIT, None);
    assert!(matches!(end, Outcome::Idle { .. }), "{end:?}");
}

fn byte(machine: &Machine, tile: TileId, address: u64) -> u8 {
    let mut byte = [0];
    machine.peek(tile, address, &mut byte).expect("memory");
    byte[0]
}

/// A byte has four names in the window and one at the second port. Caches keep them apart; memory and tools do not.
#[test]
fn a_byte_has_a_name_for_each_colour() {
    let offset = 5 * CHUNK + 0x40;
    for harts in [[2, 0], [0, 2]] {
        let mut p = Program::default();
        p.li(S0, name(offset, 1)).addi(S1, ZERO, 7).sd(S1, S0, 0);
        p.cbo(CBO_FLUSH, S0).word(FENCE);
        // Every other name finds it in memory; this hart's line under colour 2 is old after the next store.
        p.li(S2, name(offset, 2)).ld(T0, S2, 0);
        p.li(S3, SECOND + offset).ld(T1, S3, 0).add(T1, T1, T0);
        p.addi(S1, ZERO, 9).sd(S1, S0, 0).cbo(CBO_FLUSH, S0);
        p.word(FENCE).ld(T2, S2, 0).addi(T2, T2, 0).word(WFI);
        let mut machine = machine(&chip(&harts, DROPPED), &[((0, 0, 0x1000), p)]);
        idle(&mut machine);
        assert_eq!(machine.memory(LOCAL).unwrap()[offset as usize], 9);
        let hart = machine.hart(0).unwrap();
        assert_eq!([T1, T2].map(|r| hart.register(r as usize)), [14, 7]);
        for tile in [0, 1] {
            assert_eq!(byte(&machine, tile, name(offset, 3)), 9);
            assert_eq!(
                byte(&machine, tile, SECOND + offset),
                if tile == 0 { 7 } else { 9 }
            );
        }
        // Tools load into memory and into every copy, under all names, also across bits that are dropped.
        let (from, more) = (name(offset, 2), [3; CHUNK as usize]);
        machine.load_tile(0, from, &more).unwrap();
        for colour in 0..4 {
            assert_eq!(byte(&machine, 0, name(offset, colour)), 3);
        }
        assert_eq!(byte(&machine, 0, SECOND + offset), 3);
        // The window goes on with the next colour, which is the begin of the same bytes.
        assert_eq!(byte(&machine, 1, name(5 * CHUNK, 0)), 3);
        assert_eq!(byte(&machine, 1, name(6 * CHUNK, 0)), 0);
    }
}

/// An engine moves data under names of one colour, and contiguously by the second port.
#[test]
fn an_engine_uses_names_too() {
    let pattern: Vec<u8> = (0..2 * CHUNK).map(|i| (i * 7 + i / 256) as u8).collect();
    let mut p = Program::default();
    let mut next = name(0, 3);
    for part in 0..2 {
        p.li(S0, DMA_BASE + FIRST_CHANNEL);
        let words = contiguous(3, MEMORY_BASE + 0x40_0000 + part * CHUNK, next, 512);
        for (index, word) in words.iter().enumerate() {
            p.li(T0, *word).sd(T0, S0, 8 * index as u64);
        }
        p.word(FENCE)
            .addi(T0, ZERO, START as i32)
            .sd(T0, S0, CONTROL)
            .word(FENCE);
        let look = p.here();
        p.ld(T1, S0, STATUS).andi(T1, T1, 0xFF).addi(T2, ZERO, 1);
        p.branch(0, T1, T2, look);
        next = name(CHUNK, 3);
    }
    p.word(WFI);
    let mut machine = machine(&chip(&[0], DROPPED), &[((0, 0, 0x1000), p)]);
    machine
        .load_tile(0, MEMORY_BASE + 0x40_0000, &pattern)
        .unwrap();
    idle(&mut machine);
    assert_eq!(machine.memory(LOCAL).unwrap()[..pattern.len()], pattern);
    let mut found = vec![0; pattern.len()];
    machine.peek(0, SECOND, &mut found).unwrap();
    assert_eq!(found, pattern);
}

/// Adds one to a word of every line of these chunks of the memory, under a colour or contiguously, again and again.
fn walker(chunks: Range<u64>, colour: Option<u64>, rounds: u8) -> Program {
    let mut p = Program::default();
    p.addi(S1, ZERO, rounds.into()).li(S2, CHUNK);
    let again = p.here();
    for chunk in chunks {
        let offset = chunk * CHUNK;
        // Without colours, the second port has all bytes one behind the other.
        let from = colour.map_or(SECOND + offset, |colour| name(offset, colour));
        p.li(S0, from).add(S3, S0, S2);
        let line = p.here();
        p.ld(T0, S0, 0).addi(T0, T0, 1).sd(T0, S0, 0);
        p.addi(S0, S0, 64).branch(1, S0, S3, line);
    }
    p.addi(S1, S1, -1).branch(1, S1, ZERO, again).word(WFI);
    p
}

/// Two programs of different colours never evict each other in the shared second level: the first one misses there as often as alone. Under
/// one colour, and without colours, it misses more often.
#[test]
fn colours_keep_programs_apart_in_the_second_level() {
    // The first one has 12 KiB, three of the four ways of a colour; its code is in its colour, too. The second one has four times a colour.
    let misses = |first: Option<u64>, second: Option<Option<u64>>| {
        let mut programs = vec![((0, 0, 0x1_0000), walker(0..3, first, ROUNDS))];
        let rival = second.map(|colour| walker(4..20, colour, 8));
        programs.extend(rival.map(|program| ((0, 1, 0x1_0000 + CHUNK), program)));
        let mut machine = machine(&chip(&[2], DROPPED), &programs);
        idle(&mut machine);
        let offset = 2 * CHUNK + 64;
        let at = first.map_or(SECOND + offset, |colour| name(offset, colour));
        assert_eq!(byte(&machine, 0, at), ROUNDS);
        let caches = machine.statistics().caches;
        let mut own = caches
            .iter()
            .filter(|one| (one.level, one.owner) == (Level::L2, Owner::new(0, 0)));
        own.next().expect("the hart's").counters.misses
    };
    for (first, second) in [(0, 1), (2, 3)] {
        let alone = misses(Some(first), None);
        assert_eq!(misses(Some(first), Some(Some(second))), alone);
        // Three chunks of 64 lines, and the code.
        assert!((192..256).contains(&alone), "{alone}");
        let same = misses(Some(first), Some(Some(first)));
        assert!(same > alone, "{same} {alone}");
    }
    let (alone, beside) = (misses(None, None), misses(None, Some(None)));
    assert!(beside > alone, "{beside} {alone}");
}

/// The translator costs nothing: a program under colour 0 of the first chunk takes the ticks that it takes without one.
#[test]
fn a_translator_costs_nothing() {
    let mut p = Program::default();
    p.li(S0, WINDOW).addi(S1, ZERO, 3).li(S2, CHUNK);
    let again = p.here();
    p.add(S3, S0, S2);
    let line = p.here();
    p.ld(T0, S0, 0).addi(T0, T0, 1).sd(T0, S0, 0);
    p.cbo(CBO_FLUSH, S0)
        .addi(S0, S0, 64)
        .branch(1, S0, S3, line);
    p.li(S0, WINDOW).addi(S1, S1, -1);
    p.branch(1, S1, ZERO, again).word(WFI);
    for harts in [[1], [0]] {
        let run = |dropped: u64| {
            let mut machine = machine(&chip(&harts, dropped), &[((0, 0, 0x1000), clone(&p))]);
            idle(&mut machine);
            (machine.now(), machine.memory(LOCAL).unwrap()[0x40])
        };
        assert_eq!(run(DROPPED), run(0));
        assert_eq!(run(DROPPED).1, 3);
    }
}

fn clone(program: &Program) -> Program {
    let mut p = Program::default();
    p.words_of(program);
    p
}

#[test]
fn translators_that_cannot_be_are_refused() {
    type Change = fn(&mut PlatformConfig);
    let all: [(&str, Change); 6] = [
        ("within a page", |c| c.memories[1].dropped = 1 << 11),
        ("bytes of its own", |c| c.memories[2].dropped = DROPPED),
        ("within its window", |c| c.memories[1].dropped = 1 << 22),
        ("within its window", |c| c.memories[1].dropped = 0x1FF << 12),
        ("multiple of what", |c| {
            (c.memories[1].size, c.memories[2].size) = (0x9000, 0x9000);
            c.memories[1].dropped = 1 << 13;
        }),
        ("within a burst", |c| {
            c.network.chunk = 8192;
            c.engines[0].dma.burst = 8192;
        }),
    ];
    for (expected, change) in all {
        let mut config = chip(&[2], DROPPED);
        change(&mut config);
        let what = Machine::new(&config).err().expect("refused").what;
        assert!(what.contains(expected), "{expected}: {what}");
    }
}
