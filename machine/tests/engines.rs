//! DMA engines beside the tiles of a bare chip, and second ports of memories: closed forms, order, windows, and who waited for whom.

use crate::common::engines::{
    ALIAS, BEFORE, BURST, CYCLE, ENGINE, LOCAL, OPENS, OWN, PORT, SEEN, SOURCE, channel, chip,
    describe, memory_of, pattern, start_and_wait, started, there_and_back, times, transfer, trip,
};
use crate::common::parts::*;
use crate::common::*;
use bulkhead_abi::dma::*;
use bulkhead_abi::memory_map::{DMA_BASE, DMA_SIZE, MEMORY_BASE};
use bulkhead_machine::config::PlatformConfig;
use bulkhead_machine::ledger::Resource;
use bulkhead_machine::machine::{Machine, Outcome, RunLimit};
use bulkhead_machine::noc::Transaction;
use bulkhead_machine::types::{Owner, Tick, TileId};

const LIMIT: RunLimit = RunLimit { ticks: 20_000_000 };

#[test]
fn a_burst_costs_its_ways_and_its_memories() {
    for bytes in [8, 64, 128] {
        let words = contiguous(3, SOURCE, OWN + 0x1000, bytes as u32 / 8);
        let mut machine = machine(&chip(&[0]), &[((0, 0), started(&words))]);
        machine.load_tile(0, SOURCE, &pattern(bytes)).unwrap();
        idle(&mut machine);
        let reads = times(&machine, 0, Transaction::DmaRead);
        let writes = times(&machine, 0, Transaction::DmaWrite);
        assert_eq!((reads.len(), writes.len()), (1, 1), "{bytes}");
        let (begin, end) = reads[0];
        assert_eq!(end, there_and_back(begin, 0, bytes, bytes), "{bytes}");
        let written = end.next_multiple_of(CYCLE);
        assert_eq!(writes[0].0, written);
        assert_eq!(
            writes[0].1,
            there_and_back(written + OPENS, bytes, bytes, 0),
            "{bytes}"
        );
        assert_eq!(memory_of(&machine, LOCAL, 0x1000, bytes), pattern(bytes));
        let did = machine.engine(ENGINE).unwrap();
        assert_eq!(
            (did.reads, did.writes, did.waited, did.errors),
            (1, 1, 0, 0)
        );
    }
}

/// Reads begin one after the other at the pace of the engine's width, until as many are under way as it may have.
#[test]
fn a_long_transfer_has_the_pace_of_its_slowest_part() {
    let bytes = 64 * BURST;
    let words = contiguous(3, SOURCE, OWN, bytes as u32 / 8);
    let steady = |change: &dyn Fn(&mut PlatformConfig)| {
        let mut config = chip(&[0]);
        change(&mut config);
        let mut machine = machine(&config, &[((0, 0), started(&words))]);
        machine.load_tile(0, SOURCE, &pattern(bytes)).unwrap();
        idle(&mut machine);
        assert_eq!(memory_of(&machine, LOCAL, 0, bytes), pattern(bytes));
        let writes = times(&machine, 0, Transaction::DmaWrite);
        assert_eq!(writes.len(), 64);
        (writes[63].1 - writes[31].1) as f64 / 32.0
    };
    // Eight bursts in the time of one there and back, twice.
    let round = there_and_back(0, 0, BURST, BURST) + there_and_back(0, BURST, BURST, 0);
    let limited = steady(&|_| ());
    let closed = round as f64 / 8.0;
    assert!((limited / closed - 1.0).abs() < 0.03, "{limited} {closed}");
    // Enough of them: the link from the engine needs 9 cycles for 144 bytes, the memories 8 of 5 ticks for 128.
    let linked = steady(&|config| config.engines[0].dma.outstanding = 64);
    assert_eq!(linked, 40.0);
    // Two bytes a cycle: 64 cycles for 128 bytes.
    let narrow = steady(&|config| {
        config.engines[0].dma.outstanding = 64;
        config.engines[0].dma.width = 2;
    });
    let closed = 64.0 * CYCLE as f64;
    assert!((narrow / closed - 1.0).abs() < 0.01, "{narrow} {closed}");
}

/// A store to a register, and a load of one, from a tile and from a cluster: there, the register, and back.
#[test]
fn registers_cost_the_way_there_and_back() {
    for (harts, tile, port, up) in [([0, 2], 0, 0, 0), ([0, 2], 1, 1, 1)] {
        let config = chip(&harts);
        let mut p = Program::default();
        p.li(S0, channel(0)).addi(S2, ZERO, 2).jump_to_line();
        let again = p.here();
        p.word(FENCE)
            .marker(ZERO, BEFORE)
            .ld(T0, S0, STATUS)
            .addi(T0, T0, 1);
        p.marker(ZERO, SEEN).addi(S2, S2, -1);
        p.branch(1, S2, ZERO, again).word(WFI);
        let mut machine = machine(&config, &[((tile, port), p)]);
        idle(&mut machine);
        let owner = Owner::new(tile, port as u16);
        let all = machine.ledger().transactions().iter();
        let loads: Vec<Tick> = all
            .filter(|one| one.owner == owner && one.transaction == Transaction::RemoteLoad)
            .map(|one| one.end - one.begin)
            .collect();
        // A tile's accesses leave when a miss would: 12 cycles of two ticks. A cluster's take the ways to its second level and back.
        let (cluster, l2) = (config.tiles[1].cluster.as_ref().unwrap(), 12 * 2);
        let ways = match up {
            0 => l2,
            _ => (cluster.up + cluster.down) * 2,
        };
        let least = trip(0) + 2 * CYCLE + trip(8) + ways;
        assert_eq!(loads.len(), 2);
        for load in loads {
            // Three clocks meet: at each of three borders, an access waits for an edge at most.
            assert!((least..least + 3 * CYCLE).contains(&load), "{load} {least}");
        }
    }
}

/// A hart that sees the end sees the data, in order and out of order.
#[test]
fn the_end_is_seen_after_the_data() {
    for (harts, tile) in [([2, 0], 0), ([2, 0], 1), ([0, 2], 0), ([0, 2], 1)] {
        for interval in PIPELINES {
            let mut config = chip(&harts);
            config.tiles[usize::from(tile)].hart.interval = interval;
            let bytes = 32 * BURST;
            let words = contiguous(3, SOURCE, OWN, bytes as u32 / 8);
            let mut p = Program::default();
            describe(&mut p, 0, &words);
            start_and_wait(&mut p);
            p.word(FENCE)
                .li(S1, OWN + bytes - 8)
                .ld(S2, S1, 0)
                .word(WFI);
            let mut machine = machine(&config, &[((tile, 0), p)]);
            machine.load_tile(tile, SOURCE, &pattern(bytes)).unwrap();
            idle(&mut machine);
            let hart = match harts[usize::from(tile)] {
                0 => machine.hart(tile).unwrap(),
                _ => machine.cluster_hart(tile, 0).unwrap(),
            };
            let last = pattern(bytes)[bytes as usize - 8..].try_into().unwrap();
            assert_eq!(hart.register(S2 as usize), u64::from_le_bytes(last));
            let markers = machine.markers();
            let seen = markers.iter().find(|m| u32::from(m.kind) == SEEN).unwrap();
            let writes = times(&machine, 0, Transaction::DmaWrite);
            assert!(seen.tick > writes.last().unwrap().1);
        }
    }
}

/// The engine sees memory and no caches: what is not flushed does not travel.
#[test]
fn what_is_not_flushed_is_not_moved() {
    for (flush, expected) in [(false, 0), (true, 7)] {
        let mut p = Program::default();
        p.li(S1, SOURCE).addi(T0, ZERO, 7).sd(T0, S1, 0);
        if flush {
            p.cbo(CBO_FLUSH, S1);
        }
        p.word(FENCE);
        describe(&mut p, 0, &contiguous(3, SOURCE, OWN, 1));
        start_and_wait(&mut p);
        p.word(WFI);
        let mut machine = machine(&chip(&[2]), &[((0, 0), p)]);
        idle(&mut machine);
        assert_eq!(memory_of(&machine, LOCAL, 0, 1), [expected]);
    }
}

/// Loads and stores all over memory, and two channels that copy again and again.
fn busy(harts: &[u16]) -> Vec<((TileId, usize), Program)> {
    busy_for(harts, None)
}

/// The same; it ends after so many copies, and forty times as many steps of the others, if a number is given.
fn busy_for(harts: &[u16], rounds: Option<u64>) -> Vec<((TileId, usize), Program)> {
    let forever = |p: &mut Program, again| {
        if rounds.is_some() {
            p.addi(A1, A1, -1).branch(1, A1, ZERO, again);
            p.word(WFI).spin();
        }
        p.jump(again);
    };
    let mut programs = Vec::new();
    for (tile, harts) in harts.iter().enumerate() {
        for port in 0..usize::from(*harts).max(1) {
            let seed = programs.len() as u64;
            let mut p = Program::default();
            if seed < 2 {
                let place = SOURCE + 0x1_0000 * seed;
                let words = contiguous(3, place, OWN + 0x1_0000 * seed + 8 * seed, 400);
                describe(&mut p, seed, &words);
                p.li(A1, rounds.unwrap_or(0));
                let again = p.here();
                start_and_wait(&mut p);
                forever(&mut p, again);
            } else {
                p.li(S0, SOURCE)
                    .li(S1, 64 * (2 * seed + 3))
                    .li(S2, 0x1_FFC0);
                p.addi(S3, ZERO, 0).li(A1, 40 * rounds.unwrap_or(0));
                let again = p.here();
                p.add(T0, S0, S3).ld(T1, T0, 0).sd(T2, T0, 8);
                p.add(S3, S3, S1).and(S3, S3, S2);
                forever(&mut p, again);
            }
            programs.push(((tile as TileId, port), p));
        }
    }
    programs
}

const CHIPS: [&[u16]; 4] = [&[0, 0, 0], &[2, 1], &[1, 0, 2], &[0, 3]];

#[test]
fn the_length_of_a_window_changes_nothing() {
    for harts in CHIPS {
        for which in [None, Some(0), Some(2)] {
            let mut config = chip(harts);
            if let Some(which) = which {
                other_controller(&mut config, which);
            }
            let until = 40_000;
            for pipeline in PIPELINES {
                let config = pipelined(config.clone(), pipeline);
                pieces_change_nothing(|| machine(&config, &busy(harts)), until);
                let mut whole = machine(&config, &busy(harts));
                whole.run(RunLimit { ticks: until }, None);
                assert!(whole.engine(ENGINE).unwrap().reads > 100);
            }
        }
    }
}

/// The number of an engine, and the order of engines in the configuration, change no tick; registers follow the order.
#[test]
fn the_numbers_of_engines_change_no_tick() {
    let run = |first: TileId, second: TileId| {
        let mut config = chip(&[2, 0]);
        config.engines.push(config.engines[0].clone());
        (config.engines[0].id, config.engines[1].id) = (first, second);
        let mut machine = machine(&config, &busy(&[2, 0]));
        machine.run(RunLimit { ticks: 40_000 }, None);
        let harts = machine.statistics().harts;
        (harts, machine.engine(first), machine.engine(second))
    };
    let expected = run(50, 51);
    assert!(expected.1.unwrap().reads > 100);
    assert_eq!(expected.2.unwrap().reads, 0);
    for (first, second) in [(51, 50), (7, 3000), (3000, 7)] {
        assert_eq!(run(first, second), expected, "{first} {second}");
    }
}

/// Two channels take turns, each burst for as long as its data need; the waits are booked to the other one.
#[test]
fn channels_wait_for_each_other_and_the_ledger_adds_up() {
    let mut config = chip(&[0]);
    config.engines[0].dma.width = 4;
    config.engines[0].dma.outstanding = 32;
    let mut p = Program::default();
    for number in 0..2u64 {
        let place = 0x1_0000 * number;
        describe(
            &mut p,
            number,
            &contiguous(3, SOURCE + place, OWN + place, 512),
        );
    }
    p.li(S0, channel(0))
        .li(S1, channel(1))
        .addi(T0, ZERO, START as i32);
    p.sd(T0, S0, CONTROL).sd(T0, S1, CONTROL).word(WFI);
    let mut machine = machine(&config, &[((0, 0), p)]);
    idle(&mut machine);
    let ledger = machine.ledger();
    let engine = |victim: u16, culprit: u16| {
        let bookings = ledger.bookings();
        let own = bookings.iter().filter(|one| {
            one.resource == Resource::DmaEngine(ENGINE)
                && one.victim == Owner::new(ENGINE, victim)
                && one.culprit == Owner::new(ENGINE, culprit)
        });
        own.map(|one| one.ticks).sum::<Tick>()
    };
    // 128 bytes at four a cycle: a turn of 32 cycles for each of 32 bursts where they are read, and as much at most where they are written.
    let turn = 32 * CYCLE;
    for (victim, culprit) in [(1, 2), (2, 1)] {
        let waited = engine(victim, culprit);
        assert!((30 * turn..=64 * turn).contains(&waited), "{waited}");
        assert_eq!(engine(victim, victim), 0);
    }
    assert_eq!(
        machine.engine(ENGINE).unwrap().waited,
        engine(1, 2) + engine(2, 1)
    );
    for (owner, booked) in ledger.totals() {
        let latencies = ledger.latencies();
        let own = latencies.iter().filter(|l| l.owner == owner);
        assert_eq!(own.map(|l| l.waited).sum::<Tick>(), booked, "{owner:?}");
    }
}

/// Every wait is in the account of a request, also beside harts, and the other way round: to the tick, once nothing is under way.
#[test]
fn every_wait_is_booked() {
    for (harts, pipeline) in CHIPS.into_iter().flat_map(|h| PIPELINES.map(|p| (h, p))) {
        let config = pipelined(chip(harts), pipeline);
        let mut machine = machine(&config, &busy_for(harts, Some(10)));
        idle(&mut machine);
        assert!(machine.engine(ENGINE).unwrap().reads > 200);
        assert!(!machine.ledger().totals().is_empty());
        waits_are_booked(&machine);
    }
}

#[test]
fn addresses_without_memory_and_bad_descriptors_end_a_transfer() {
    let hole = MEMORY_BASE + (16 << 20);
    let mut bad = contiguous(3, SOURCE, OWN, 1);
    bad[1] += 4;
    for (words, cause, address) in [
        (contiguous(3, hole, OWN, 4), Cause::ReadNothing, hole),
        (contiguous(3, SOURCE, hole, 4), Cause::WriteNothing, hole),
        // A burst does not cross the end of a memory, so what fits is moved before.
        (contiguous(3, hole - 256, OWN, 64), Cause::ReadNothing, hole),
        (bad, Cause::Descriptor, 0),
    ] {
        let mut machine = machine(&chip(&[1]), &[((0, 0), transfer(&words))]);
        idle(&mut machine);
        let register = |offset| {
            machine
                .engine_register(ENGINE, FIRST_CHANNEL + offset)
                .unwrap()
        };
        assert_eq!(register(STATUS), State::Error as u64 | (cause as u64) << 8);
        assert_eq!(register(ERROR_ADDRESS), address);
        assert_eq!(machine.engine(ENGINE).unwrap().errors, 1);
    }
}

/// A chain of descriptors in memory, with strides and a flag.
#[test]
fn descriptors_in_memory_follow_each_other() {
    let chain = MEMORY_BASE + 0x30_0000;
    let mut first = contiguous(3, SOURCE, OWN, 16);
    // Every other word of eight, which is no burst.
    first[3] = 4 | 1 << 32;
    first[4] = 16 | 8 << 32;
    first[6] = chain + 64;
    let mut second = contiguous(3, SOURCE + 0x1000, OWN + 0x1000, 64);
    second[0] |= 5 << 32;
    second[7] = OWN + 0x8000;
    let mut p = Program::default();
    p.li(S0, channel(1))
        .li(T0, chain)
        .sd(T0, S0, NEXT)
        .word(FENCE);
    p.addi(T0, ZERO, START_CHAIN as i32)
        .sd(T0, S0, CONTROL)
        .word(WFI);
    let mut machine = machine(&chip(&[0, 1]), &[((1, 0), p)]);
    let words: Vec<u8> = first
        .iter()
        .chain(&second)
        .flat_map(|w| w.to_le_bytes())
        .collect();
    machine.load_tile(0, chain, &words).unwrap();
    machine.load_tile(0, SOURCE, &pattern(0x2000)).unwrap();
    idle(&mut machine);
    let source = pattern(0x2000);
    let strided: Vec<u8> = (0..4)
        .flat_map(|i| source[16 * i..16 * i + 8].to_vec())
        .collect();
    assert_eq!(memory_of(&machine, LOCAL, 0, 32), strided);
    assert_eq!(
        memory_of(&machine, LOCAL, 0x1000, 512),
        source[0x1000..0x1200]
    );
    assert_eq!(memory_of(&machine, LOCAL, 0x8000, 8), 5u64.to_le_bytes());
    assert_eq!(
        machine.engine_register(ENGINE, FIRST_CHANNEL + CHANNEL_SIZE + COMPLETED),
        Some(2)
    );
}

/// A second port has the bytes of its memory, and a way and a controller of its own.
#[test]
fn a_second_port_leads_to_the_same_bytes() {
    for harts in [[2, 0], [0, 2]] {
        let store = |value: i32, at: u64| {
            let mut p = Program::default();
            p.li(S0, at).addi(S1, ZERO, value).sd(S1, S0, 0);
            p.cbo(CBO_FLUSH, S0).word(FENCE).word(WFI);
            p
        };
        let programs = [
            ((0, 0), store(11, ALIAS + 0x40)),
            ((1, 0), store(12, OWN + 0x80)),
        ];
        let mut machine = machine(&chip(&harts), &programs);
        idle(&mut machine);
        let memory = machine.memory(LOCAL).unwrap();
        assert_eq!([memory[0x40], memory[0x80]], [11, 12]);
        assert!(machine.memory(PORT).unwrap().is_empty());
        for tile in [0, 1] {
            for base in [OWN, ALIAS] {
                let mut byte = [0];
                for (offset, value) in [(0x40, 11), (0x80, 12)] {
                    machine.peek(tile, base + offset, &mut byte).unwrap();
                    assert_eq!(byte, [value]);
                }
            }
        }
        // Tools load into every copy, under both names.
        machine.load_tile(0, ALIAS + 0x40, &[7]).unwrap();
        assert_eq!(machine.memory(LOCAL).unwrap()[0x40], 7);
        for (tile, base) in [(0, OWN), (1, ALIAS)] {
            let mut byte = [0];
            machine.peek(tile, base + 0x40, &mut byte).unwrap();
            assert_eq!(byte, [7]);
        }
    }
}

/// A hart that misses in a memory waits for an engine that writes there by the same port, and not for one that uses the other port.
#[test]
fn a_second_port_keeps_an_engine_out_of_the_way() {
    let loads = |to: Option<u64>| {
        let mut p = Program::default();
        p.li(S0, OWN).li(S1, 0x4_0000).addi(S2, ZERO, 500);
        p.marker(ZERO, BEFORE);
        let again = p.here();
        p.cbo(CBO_INVAL, S0)
            .word(FENCE)
            .ld(T0, S0, 0)
            .addi(T0, T0, 1);
        p.addi(S2, S2, -1)
            .branch(1, S2, ZERO, again)
            .marker(ZERO, SEEN)
            .word(WFI);
        let mut other = Program::default();
        if let Some(to) = to {
            describe(&mut other, 0, &contiguous(3, SOURCE, to, 8192));
            let again = other.here();
            start_and_wait(&mut other);
            other.jump(again);
        } else {
            other.word(WFI);
        }
        let mut machine = machine(&chip(&[1, 0]), &[((0, 0), p), ((1, 0), other)]);
        machine.run(RunLimit { ticks: 2_000_000 }, None);
        let markers = machine.markers();
        let of = |kind| {
            let mut own = markers
                .iter()
                .filter(|m| m.tile == 0 && u32::from(m.kind) == kind);
            own.next().expect("it came there").tick
        };
        of(SEEN) - of(BEFORE)
    };
    let alone = loads(None);
    assert_eq!(loads(Some(ALIAS + 0x4_0000)), alone);
    let beside = loads(Some(OWN + 0x4_0000));
    assert!(beside > alone + alone / 100, "{alone} {beside}");
}

#[test]
fn engines_and_second_ports_that_cannot_be_are_refused() {
    let refused = |change: &dyn Fn(&mut PlatformConfig)| {
        let mut config = chip(&[2, 0]);
        change(&mut config);
        Machine::new(&config).err().expect("refused").what
    };
    type Change = fn(&mut PlatformConfig);
    let all: [(&str, Change); 9] = [
        ("used twice", |c| c.engines[0].id = 1),
        ("power of two", |c| c.engines[0].dma.burst = 96),
        ("network chunk", |c| c.network.chunk = 64),
        ("registers", |c| c.engines[0].registers = 0),
        ("startup", |c| c.engines[0].dma.startup = 0),
        ("1 to 8 channels", |c| c.engines[0].dma.channels = 9),
        ("no memory 77", |c| c.memories[2].second_port_of = vec![77]),
        ("no memory 102", |c| {
            c.memories[2].second_port_of = vec![PORT]
        }),
        ("have 1048576", |c| c.memories[2].size = 2 << 20),
    ];
    for (expected, change) in all {
        let what = refused(&change);
        assert!(what.contains(expected), "{expected}: {what}");
    }
}

/// Registers that do not exist, and other lengths, fault in the hart, on a cluster and on a tile.
#[test]
fn only_registers_answer() {
    for harts in [[1], [0]] {
        for (address, is_register) in [
            (channel(1) + STATUS, true),
            (channel(2), false),
            (DMA_BASE, false),
            (DMA_BASE + DMA_SIZE + FIRST_CHANNEL, false),
        ] {
            let mut p = Program::default();
            p.li(S0, address).ld(T0, S0, 0).addi(T0, T0, 0).word(WFI);
            let mut machine = machine(&chip(&harts), &[((0, 0), p)]);
            let end = machine.run(LIMIT, None);
            let is_idle = matches!(end, Outcome::Idle { .. });
            assert_eq!(is_idle, is_register, "{address:#x}: {end:?}");
        }
    }
}
