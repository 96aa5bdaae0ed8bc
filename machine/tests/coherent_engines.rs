//! Coherent DMA engines beside the tiles: what an access costs, whose bytes it gets and leaves, what it does to the lines of harts, and what
//! is refused.

use crate::common::engines::{
    CYCLE, ENGINE, LOCAL, OPENS, OWN, SEEN, SOURCE, channel, chip, describe, memory_of, pattern,
    served, start_and_wait, started, times, trip,
};
use crate::common::parts::*;
use crate::common::*;
use bulkhead_abi::dma::*;
use bulkhead_abi::memory_map::MEMORY_BASE;
use bulkhead_machine::config::PlatformConfig;
use bulkhead_machine::ledger::Resource;
use bulkhead_machine::machine::{Machine, RunLimit};
use bulkhead_machine::noc::Transaction;
use bulkhead_machine::types::{Owner, Tick, TileId};

/// Bytes of a line.
const LINE: u64 = 64;
/// Ticks of a look-up in a second level: 12 cycles of 2.
const LOOK_UP: Tick = 24;
/// Marker of a test: words that are not those that were stored.
const WRONG: u32 = 0x102;
/// Where transfers in the second memory go to.
const TO: u64 = OWN + 0x1000;

/// Tiles, memories and engine of [`chip`], without the second port. The clusters are coherent, and the engine, whose bursts are lines, is if
/// `coherent`.
fn coherent_chip(harts: &[u16], together: bool) -> PlatformConfig {
    let mut config = chip(harts);
    config.memories.pop();
    config.tiles = coherent(harts).tiles;
    config.engines[0].dma.burst = LINE as u32;
    config.engines[0].coherent = together;
    config
}

/// Stores a value to this many words from an address on.
fn store(p: &mut Program, value: i32, to: u64, words: u64) {
    p.li(S1, to).addi(T1, ZERO, value);
    for offset in 0..words {
        p.sd(T1, S1, 8 * offset);
    }
    p.word(FENCE);
}

/// When the last cluster has answered a home's question for an access with `out` bytes, with `given` bytes: the way to the home, the way to
/// the cluster, its look-up and `more`, and the way back.
fn answered(begin: Tick, out: u64, given: u64, more: Tick) -> Tick {
    let sent = begin + trip(out) + trip(0) + LOOK_UP + more;
    sent.next_multiple_of(CYCLE) + trip(given)
}

/// The end of an access that memory serves after that, and whose answer has this many bytes.
fn ended(at: Tick, bytes: u64, back: u64) -> Tick {
    served(at, bytes).next_multiple_of(CYCLE) + trip(back)
}

/// Ticks from a second level to the first level that has modified a line, and back.
fn ways(config: &PlatformConfig) -> Tick {
    let cluster = config.tiles[0].cluster.as_ref().expect("a cluster");
    2 * (cluster.up + cluster.down)
}

/// An access to a line that no cache has takes longer by the question. Those to several clusters leave one after the other, a cycle each.
#[test]
fn a_burst_asks_the_clusters_before_memory_serves_it() {
    for harts in [&[1][..], &[1, 1], &[1, 0, 2]] {
        for bytes in [8, 32, 64] {
            let words = contiguous(3, SOURCE, TO, bytes as u32 / 8);
            let config = coherent_chip(harts, true);
            let mut machine = machine(&config, &[((0, 0), started(&words))]);
            machine.load_tile(0, SOURCE, &pattern(bytes)).unwrap();
            idle(&mut machine);
            let reads = times(&machine, 0, Transaction::DmaRead);
            let writes = times(&machine, 0, Transaction::DmaWrite);
            assert_eq!((reads.len(), writes.len()), (1, 1), "{harts:?} {bytes}");
            let (begin, end) = reads[0];
            let behind = (config.coherent().len() as Tick - 1) * CYCLE;
            let asked = answered(begin, 0, 0, behind);
            assert_eq!(end, ended(asked, bytes, bytes), "{harts:?} {bytes}");
            let (begin, end) = writes[0];
            let asked = answered(begin, bytes, 0, behind);
            assert_eq!(end, ended(asked + OPENS, bytes, 0), "{harts:?} {bytes}");
            assert_eq!(memory_of(&machine, LOCAL, 0x1000, bytes), pattern(bytes));
            waits_are_booked(&machine);
        }
    }
}

/// The bytes of a line that a hart has modified come with its cluster's answer, and leave for the engine without waiting for the chips.
#[test]
fn a_read_of_a_modified_line_gets_it_from_its_cluster() {
    let config = coherent_chip(&[1], true);
    let mut p = Program::default();
    store(&mut p, 77, SOURCE, 8);
    p.words_of(&started(&contiguous(3, SOURCE, TO, 8)));
    let mut machine = machine(&config, &[((0, 0), p)]);
    idle(&mut machine);
    let (begin, end) = times(&machine, 0, Transaction::DmaRead)[0];
    let asked = answered(begin, 0, LINE, ways(&config));
    assert_eq!(end, asked + trip(LINE));
    assert_eq!(word(&machine, 0, TO + 56), 77);
    // The chips write what the cluster gave, for the channel.
    assert_eq!(times(&machine, 0, Transaction::CacheWrite).len(), 1);
    waits_are_booked(&machine);
}

/// A whole line takes no bytes of the old one with it: the cluster drops them, and the chips write once. Before memory writes a part of a
/// line, it gets the line.
#[test]
fn a_whole_line_brings_no_old_bytes() {
    for (words, given) in [(8, 0), (7, 1), (1, 1)] {
        let config = coherent_chip(&[1], true);
        let mut p = Program::default();
        store(&mut p, 77, TO, 8);
        p.words_of(&started(&contiguous(3, SOURCE, TO, words)));
        let mut machine = machine(&config, &[((0, 0), p)]);
        machine.load_tile(0, SOURCE, &pattern(LINE)).unwrap();
        idle(&mut machine);
        let lines = times(&machine, 0, Transaction::CacheWrite);
        assert_eq!(lines.len(), given, "{words}");
        let (begin, end) = times(&machine, 0, Transaction::DmaWrite)[0];
        let bytes = 8 * u64::from(words);
        if given == 0 {
            let asked = answered(begin, bytes, 0, ways(&config));
            assert_eq!(end, ended(asked, bytes, 0));
        }
        let mut expected = pattern(LINE);
        for (at, byte) in expected.iter_mut().enumerate().skip(bytes as usize) {
            *byte = if at % 8 == 0 { 77 } else { 0 };
        }
        let mut there = [0; LINE as usize];
        machine.peek(0, TO, &mut there).unwrap();
        assert_eq!(there, *expected, "{words}");
        waits_are_booked(&machine);
    }
}

/// A program copies without any flush. The coherent engine reads what it has stored, and it reads what the engine has written; the other
/// engine reads what memory had before, and the program reads what it had stored itself.
#[test]
fn a_coherent_engine_needs_no_flushes() {
    for together in [true, false] {
        let config = coherent_chip(&[1, 1], together);
        let mut p = Program::default();
        store(&mut p, 7, SOURCE, 16);
        store(&mut p, 9, TO, 16);
        describe(&mut p, 1, &contiguous(3, SOURCE, TO, 16));
        start_and_wait(&mut p);
        p.word(FENCE).li(S1, TO).ld(T1, S1, 0).marker(T1, WRONG);
        p.ld(T1, S1, 120).marker(T1, WRONG).word(WFI);
        let mut machine = machine(&config, &[((1, 0), p)]);
        idle(&mut machine);
        let expected = if together { 7 } else { 9 };
        assert_eq!(marked(&machine, WRONG), [expected; 2], "{together}");
        let mut moved = vec![0; 128];
        if together {
            moved.chunks_mut(8).for_each(|word| word[0] = 7);
        }
        assert_eq!(memory_of(&machine, LOCAL, 0x1000, 128), moved);
    }
}

/// Descriptors that are still in a cache are read from there, and a flag is seen by a hart that has the flag's line.
#[test]
fn descriptors_and_flags_need_no_flushes() {
    let (chain, flag) = (MEMORY_BASE + 0x30_0000, MEMORY_BASE + 0x30_1000);
    for together in [true, false] {
        let mut first = contiguous(3, SOURCE, TO, 3);
        first[6] = chain + 64;
        let mut second = contiguous(2, SOURCE + 24, TO + 24, 2);
        second[0] |= 5 << 32;
        second[7] = flag;
        let mut p = Program::default();
        p.li(S1, chain);
        for (index, word) in first.iter().chain(&second).enumerate() {
            p.li(T0, *word).sd(T0, S1, 8 * index as u64);
        }
        store(&mut p, 7, SOURCE, 4);
        p.li(S2, flag).ld(T1, S2, 0).li(S0, channel(0));
        p.li(T0, chain).sd(T0, S0, NEXT).word(FENCE);
        p.addi(T0, ZERO, START_CHAIN as i32).sd(T0, S0, CONTROL);
        p.addi(S3, ZERO, 2000);
        let look = p.here();
        p.ld(T1, S2, 0).addi(S3, S3, -1).addi(T2, ZERO, 5);
        let seen = p.here();
        p.word(0).branch(1, S3, ZERO, look);
        let out = p.here();
        p.patch_branch(seen, 0, T1, T2, out);
        p.word(FENCE).marker(T1, SEEN);
        p.li(S1, TO).ld(T1, S1, 24).marker(T1, WRONG).word(WFI);
        let config = coherent_chip(&[1, 1], together);
        let mut machine = machine(&config, &[((0, 0), p)]);
        idle(&mut machine);
        let (seen, found) = if together { (5, 7) } else { (0, 0) };
        assert_eq!(marked(&machine, SEEN), [seen], "{together}");
        assert_eq!(marked(&machine, WRONG), [found], "{together}");
        let done = machine.engine_register(ENGINE, FIRST_CHANNEL + COMPLETED);
        assert_eq!(done, Some(if together { 2 } else { 1 }));
    }
}

/// While a whole line replaces one that a hart has modified, tools see the one or the other, and never older bytes.
#[test]
fn tools_see_no_bytes_that_are_older_than_what_a_hart_has_written() {
    let config = coherent_chip(&[1], true);
    let mut p = Program::default();
    store(&mut p, 77, TO, 1);
    p.words_of(&started(&contiguous(3, SOURCE, TO, 8)));
    let mut machine = machine(&config, &[((0, 0), p)]);
    machine.load_tile(0, SOURCE, &pattern(LINE)).unwrap();
    let mut seen = vec![0];
    let mut ticks = 0;
    while seen.len() < 3 {
        ticks += 2;
        assert!(ticks < 100_000, "{seen:?}");
        machine.run(RunLimit { ticks }, None);
        let found = word(&machine, 0, TO);
        if Some(&found) != seen.last() {
            seen.push(found);
        }
    }
    let first = u64::from_le_bytes(pattern(8).try_into().unwrap());
    assert_eq!(seen, [0, 77, first]);
}

/// Numbers from a seed: Marsaglia's xorshift64 (13, 7, 17).
struct Random(u64);

impl Random {
    fn below(&mut self, bound: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 % bound
    }
}

/// A transfer between two regions, by offsets there.
struct Transfer {
    words: [u64; 8],
    /// Each word that is moved: its offset at the source, and at the destination.
    pairs: Vec<(u64, u64)>,
}

/// Bytes of the lines of a region in which harts count: in the first and in the last word of each. The engine moves the others.
const COUNTED: u64 = 4 * LINE;
/// Offset of as many lines of a region that the engine moves whole.
const WHOLE: u64 = 1024;

/// A random transfer from a region to another one. Whatever it is, it moves no word in which harts count.
fn random_transfer(random: &mut Random, from: u64, to: u64) -> Transfer {
    let offset = |line: u64, word: u64| LINE * line + 8 * word;
    let wide = 1 + random.below(6);
    // The first word of a line that is read, and the first that is written.
    let [a, b] = [1 + random.below(7 - wide), 1 + random.below(7 - wide)];
    let lines = 1 + random.below(4);
    let both = |stride: i32| u64::from(stride as u32) | u64::from(stride as u32) << 32;
    let row = |pair: &dyn Fn(u64, u64) -> (u64, u64), rows: u64, places: u64| {
        let all = (0..rows).flat_map(|j| (0..places).map(move |i| (j, i)));
        all.map(|(j, i)| pair(j, i)).collect()
    };
    let dense = |j, i| (offset(j, a + i), offset(j, b + i));
    let [source, destination] = [from + 8 * a, to + 8 * b];
    let (words, pairs) = match random.below(6) {
        // Rows within lines, by words and by halves of words.
        kind @ (0 | 1) => {
            let [log2, places] = [[3, wide], [2, 2 * wide]][kind as usize];
            let counts = places | lines << 32;
            let strides = [both(1 << log2), both(LINE as i32)];
            let one = [log2, source, destination, counts, strides[0], strides[1]];
            (one, row(&dense, lines, wide))
        }
        // A word of each line, again and again.
        2 => {
            let counts = lines | wide << 32;
            let strides = [both(LINE as i32), both(8)];
            let one = [3, source, destination, counts, strides[0], strides[1]];
            (one, row(&dense, lines, wide))
        }
        // Lines become columns: what is apart at the source is side by side at the destination.
        3 => {
            let wide = wide.min(3);
            let counts = 4 | wide << 32;
            let strides = [LINE | 8 << 32, 8 | LINE << 32];
            let pair = |j, i| (offset(i, 1 + j), offset(j, 2 + i));
            let [source, destination] = [from + 8, to + 16];
            let one = [3, source, destination, counts, strides[0], strides[1]];
            (one, row(&pair, wide, 4))
        }
        // Single bytes, the last one of each word first.
        4 => {
            let counts = 8 | wide << 32;
            let strides = [both(-1), both(8)];
            let [source, destination] = [source + 7, destination + 7];
            let one = [0, source, destination, counts, strides[0], strides[1]];
            (one, row(&dense, 1, wide))
        }
        _ => {
            let pair = |j, i| (WHOLE + offset(j, i), WHOLE + offset(j, i));
            let [source, destination] = [from + WHOLE, to + WHOLE];
            let counts = (8 * lines) | (1 << 32);
            let one = [3, source, destination, counts, both(8), 0];
            (one, row(&pair, lines, 8))
        }
    };
    let mut all = [0; 8];
    all[..6].copy_from_slice(&words);
    Transfer { words: all, pairs }
}

/// Adds one to each counter of both regions, whose addresses are in `S1` and `S2`: by atomic additions or under reservations.
fn count(p: &mut Program, reserved: bool) {
    for region in [S1, S2] {
        for line in 0..COUNTED / LINE {
            for at in [LINE * line, LINE * line + 56] {
                p.addi(T1, region, at as i32).addi(T2, ZERO, 1);
                if reserved {
                    let retry = p.here();
                    p.lr(T0, T1).addi(T0, T0, 1).sc(T2, T1, T0);
                    p.branch(1, T2, ZERO, retry);
                } else {
                    p.amo(0, 0, ZERO, T1, T2);
                }
            }
        }
    }
}

/// Passes of the hart that orders transfers, and rounds of the others.
const PASSES: u64 = 6;
const ROUNDS: u64 = 24;

/// In each pass, stores new words to the source, lets the engine move them, and compares each word at the destination; then it counts.
fn orders(number: u64, transfer: &Transfer, [from, to]: [u64; 2]) -> Program {
    let mut p = Program::default();
    describe(&mut p, number, &transfer.words);
    p.li(S1, from).li(S2, to).addi(A1, ZERO, 0);
    p.addi(S3, ZERO, PASSES as i32);
    let pass = p.here();
    for (index, (at, _)) in (0..).zip(&transfer.pairs) {
        p.slli(T0, S3, 12).addi(T0, T0, index).sd(T0, S1, *at);
    }
    p.word(FENCE);
    start_and_wait(&mut p);
    p.word(FENCE);
    for (index, (_, at)) in (0..).zip(&transfer.pairs) {
        p.slli(T0, S3, 12).addi(T0, T0, index).ld(T1, S2, *at);
        p.xor(T0, T0, T1).or(A1, A1, T0);
    }
    count(&mut p, false);
    p.addi(S3, S3, -1).branch(1, S3, ZERO, pass);
    p.marker(A1, WRONG).word(WFI);
    p
}

/// Counts, and loads the lines that the engine writes whole.
fn counts(reserved: bool, [from, to]: [u64; 2]) -> Program {
    let mut p = Program::default();
    p.li(S1, from).li(S2, to);
    p.addi(S3, ZERO, ROUNDS as i32);
    let round = p.here();
    count(&mut p, reserved);
    for line in 0..COUNTED / LINE {
        p.ld(T0, S2, WHOLE + LINE * line);
    }
    p.addi(S3, S3, -1).branch(1, S3, ZERO, round).word(WFI);
    p
}

/// A chip, its programs with their harts, and both regions of a transfer.
type Story = (PlatformConfig, Vec<((TileId, usize), Program)>, [u64; 2]);

/// A random chip with an engine that works and harts that count in the same lines, the harts of the chip, and both regions.
fn random_story(seed: u64) -> Story {
    let mut random = Random(seed.wrapping_mul(0x9E37_79B9_7F4A_7C15));
    let chips: [&[u16]; 4] = [&[2, 2], &[1, 1, 1], &[3], &[2, 0, 1]];
    let harts = chips[(seed % 4) as usize];
    let mut config = coherent_chip(harts, true);
    let dma = &mut config.engines[0].dma;
    dma.burst = [0, 32, 64, 64][random.below(4) as usize];
    dma.outstanding = 1 + random.below(8) as u32;
    let to = [SOURCE + 0x1_0000, TO][random.below(2) as usize];
    let regions = [SOURCE, to];
    let transfer = random_transfer(&mut random, SOURCE, to);
    let mut programs = Vec::new();
    for (tile, count) in harts.iter().enumerate() {
        for port in 0..usize::from(*count) {
            let program = match programs.len() {
                0 => orders(random.below(2), &transfer, regions),
                _ => counts(random.below(2) == 0, regions),
            };
            programs.push(((tile as TileId, port), program));
        }
    }
    (config, programs, regions)
}

/// Harts of all clusters count in the words next to those that the engine reads and writes, by any elements with any gaps: each pass moves
/// what was stored for it, and no count is lost.
#[test]
fn an_engine_and_harts_work_in_the_same_lines() {
    let (mut victim, mut culprit) = (0, 0);
    for seed in 1..=48 {
        let (config, programs, regions) = random_story(seed);
        let mut machine = machine(&config, &programs);
        idle(&mut machine);
        assert_eq!(marked(&machine, WRONG), [0], "seed {seed}");
        let others = programs.len() as u64 - 1;
        for region in regions {
            for line in 0..COUNTED / LINE {
                for at in [0, 56] {
                    let found = word(&machine, 0, region + LINE * line + at);
                    assert_eq!(found, PASSES + ROUNDS * others, "seed {seed}");
                }
            }
        }
        let home = |one: &Resource| matches!(one, Resource::Home(_) | Resource::Directory(_));
        let bookings = machine.ledger().bookings();
        for one in bookings.iter().filter(|one| home(&one.resource)) {
            let engine = |owner: Owner| u64::from(owner.tile == ENGINE);
            victim += engine(one.victim);
            culprit += engine(one.culprit);
        }
        waits_are_booked(&machine);
    }
    assert!(victim > 20 && culprit > 20, "{victim} {culprit}");
}

#[test]
fn windows_of_any_length_change_nothing() {
    for seed in 1..=16 {
        let (config, programs, _) = random_story(seed);
        // All of them still work then.
        for pipeline in PIPELINES {
            let config = pipelined(config.clone(), pipeline);
            pieces_change_nothing(|| machine(&config, &programs), 16_000);
        }
    }
}

/// The number of an engine, and the order of engines in the configuration, change no tick.
#[test]
fn the_numbers_of_engines_change_no_tick() {
    let run = |seed, first: TileId, second: TileId| {
        let (mut config, programs, _) = random_story(seed);
        config.engines.push(config.engines[0].clone());
        (config.engines[0].id, config.engines[1].id) = (first, second);
        let mut machine = machine(&config, &programs);
        idle(&mut machine);
        let harts = machine.statistics().harts;
        (harts, machine.engine(first), machine.engine(second))
    };
    for seed in 1..=4 {
        let expected = run(seed, 50, 51);
        assert!(expected.1.unwrap().writes > 0);
        for (first, second) in [(51, 50), (7, 3000), (3000, 7)] {
            assert_eq!(run(seed, first, second), expected, "{first} {second}");
        }
    }
}

/// An engine that nobody starts changes no tick of coherent clusters, and no wait, whether it is coherent or not.
#[test]
fn an_engine_at_rest_changes_nothing() {
    let run = |engine: Option<bool>| {
        let mut config = coherent_chip(&[2, 1], engine == Some(true));
        if engine.is_none() {
            config.engines.clear();
        }
        let harts = [(0, 0), (0, 1), (1, 0)];
        let programs = harts.map(|hart| (hart, counts(hart.1 == 0, [SOURCE, TO])));
        let mut machine = machine(&config, &programs);
        idle(&mut machine);
        // Links have other numbers, because the engine is a further part.
        let bookings = machine.ledger().bookings().into_iter();
        let waits: Vec<_> = bookings
            .map(|one| (one.victim, one.culprit, one.ticks))
            .collect();
        (machine.now(), machine.statistics().harts, waits)
    };
    let without = run(None);
    assert!(!without.2.is_empty());
    assert_eq!(run(Some(false)), without);
    assert_eq!(run(Some(true)), without);
}

#[test]
fn coherent_engines_that_cannot_be_are_refused() {
    let refused = |change: &dyn Fn(&mut PlatformConfig)| {
        let mut config = coherent_chip(&[1, 1], true);
        change(&mut config);
        Machine::new(&config).err().expect("refused").what
    };
    type Change = fn(&mut PlatformConfig);
    let all: [(&str, Change); 4] = [
        ("(64 bytes", |c| c.engines[0].dma.burst = 128),
        ("(0 bytes", |c| c.tiles = clusters(&[1, 1]).tiles),
        ("two addresses", |c| c.memories[0].dropped = 1 << 14),
        ("no other cluster or device", |c| {
            c.tiles = coherent(&[1, 0]).tiles;
            c.engines[0].coherent = false;
        }),
    ];
    for (expected, change) in all {
        let what = refused(&change);
        assert!(what.contains(expected), "{expected}: {what}");
    }
}
