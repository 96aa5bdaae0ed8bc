//! Tightly coupled memories beside caches: closed forms, order, windows, and who waited for whom at their ports.

use crate::common::*;
use bulkhead_abi::dma::*;
use bulkhead_abi::memory_map::{DMA_BASE, EXIT_BASE, MEMORY_BASE, TCM_BASE, TCM_WINDOW};
use bulkhead_machine::config::{
    Channels, DmaConfig, EngineConfig, LocalMemoryConfig, PlatformConfig,
};
use bulkhead_machine::hart::IntervalConfig;
use bulkhead_machine::ledger::Resource;
use bulkhead_machine::local_tile::LocalMemoryStatistics;
use bulkhead_machine::machine::{Machine, Outcome, RunLimit};
use bulkhead_machine::noc::Transaction;
use bulkhead_machine::types::{Owner, Tick, TileId};

const ENGINE: TileId = 50;
const LIMIT: RunLimit = RunLimit { ticks: 20_000_000 };
const BEFORE: u32 = 0x100;
const SEEN: u32 = 0x101;
/// Bytes of each memory, and of each of its two banks.
const SIZE: u64 = 0x4000;
/// Ticks of a cycle of harts and memories, and of the network.
const CYCLE: Tick = 2;
const NETWORK: Tick = 4;
/// Cycles of a request from its turn to its answer.
const LATENCY: Tick = 3;

/// Code and data of a tile, by its place among those that have such memories.
const fn code(place: u64) -> u64 {
    TCM_BASE + place * TCM_WINDOW
}
const fn data(place: u64) -> u64 {
    code(place) + SIZE
}

fn memory(ports: u32) -> LocalMemoryConfig {
    LocalMemoryConfig {
        size: SIZE,
        cycle: CYCLE,
        banks: 2,
        ports,
        width: 8,
        latency: LATENCY,
        guard: 0,
    }
}

/// Tiles as in [`clusters`]; those with one hart have two memories. With an engine of two channels.
fn chip(harts: &[u16], ports: u32) -> PlatformConfig {
    let mut config = clusters(harts);
    config.network.channels = Channels::Split;
    for tile in config.tiles.iter_mut().filter(|t| t.cluster.is_none()) {
        tile.tcm = vec![memory(ports), memory(ports)];
    }
    config.engines.push(EngineConfig {
        id: ENGINE,
        interrupts: None,
        coherent: false,
        router: 0,
        dma: DmaConfig {
            cycle: NETWORK,
            channels: 2,
            outstanding: 8,
            startup: 3,
            burst: 128,
            width: 16,
        },
        registers: 2,
    });
    config
}

/// Where a program is loaded and started: tile, port, address.
type At = (TileId, usize, u64);

/// In memory, a place of its own for each of several programs.
fn shared(tile: TileId, port: usize, number: u64) -> At {
    (tile, port, MEMORY_BASE + 0x1_0000 * (number + 1))
}

fn machine(config: &PlatformConfig, programs: &[(At, Program)]) -> Machine {
    let mut machine = Machine::new(config).expect("valid");
    machine.keep_transactions();
    for ((tile, port, at), program) in programs {
        let bytes = program.bytes();
        machine.load_tile(*tile, *at, &bytes).expect("memory");
        let mut all = config.tiles.iter();
        let is_cluster = all.any(|one| one.id == *tile && one.cluster.is_some());
        let started = match is_cluster {
            true => machine.start_cluster_hart((*tile, *port), *at, *port as u64, 0),
            false => machine.start_hart(*tile, *at, 0, 0),
        };
        started.expect("a hart");
    }
    machine
}

fn idle(machine: &mut Machine) {
    let end = machine.run(LIMIT, None);
    assert!(matches!(end, Outcome::Idle { .. }), "{end:?}");
}

fn marked(machine: &Machine, tile: TileId, kind: u32) -> Vec<Tick> {
    let markers = machine.markers();
    let own = markers
        .iter()
        .filter(|m| (m.tile, u32::from(m.kind)) == (tile, kind));
    own.map(|marker| marker.tick).collect()
}

fn word(machine: &Machine, physical: u64) -> u64 {
    let mut word = [0; 8];
    machine.peek(0, physical, &mut word).expect("memory");
    u64::from_le_bytes(word)
}

fn counts(machine: &Machine, tile: TileId) -> LocalMemoryStatistics {
    let all = machine.local_memories();
    all.iter().find(|one| one.0 == tile).expect("memories").1
}

/// What a victim waited for a culprit at the memories of a tile.
fn waited(machine: &Machine, tile: TileId, victim: Owner, culprit: Owner) -> Tick {
    let bookings = machine.ledger().bookings();
    let own = bookings.iter().filter(|one| {
        matches!(one.resource, Resource::LocalMemory { tile: of, .. } if of == tile)
            && (one.victim, one.culprit) == (victim, culprit)
    });
    own.map(|one| one.ticks).sum()
}

/// Loads and uses words one after the other, stores them elsewhere, and does that again.
fn pass(from: u64) -> Program {
    let mut p = Program::default();
    p.li(S0, from).addi(S1, ZERO, 2);
    let again = p.here();
    p.marker(ZERO, BEFORE);
    for i in 0..40 {
        p.ld(T0, S0, 8 * i)
            .addi(T0, T0, 3)
            .sd(T0, S0, 0x200 + 8 * i);
    }
    p.marker(ZERO, SEEN).addi(S1, S1, -1);
    p.branch(1, S1, ZERO, again).word(WFI);
    p
}

/// Code and data in different memories never wait, and cost what hits cost; the caches are not used.
#[test]
fn an_access_costs_what_a_hit_costs_and_passes_no_cache() {
    let config = chip(&[0], 1);
    let times = |at: u64, from: u64| {
        let mut machine = machine(&config, &[((0, 0, at), pass(from))]);
        idle(&mut machine);
        let (before, after) = (marked(&machine, 0, BEFORE), marked(&machine, 0, SEEN));
        let passes: Vec<Tick> = before.iter().zip(&after).map(|(b, a)| a - b).collect();
        (passes, machine)
    };
    let (cached, _) = times(MEMORY_BASE, MEMORY_BASE + 0x10_0000);
    let (coupled, machine) = times(code(0), data(0));
    assert!(cached[0] > cached[1], "the first pass misses: {cached:?}");
    assert_eq!(coupled, [cached[1]; 2]);
    assert!(machine.statistics().caches.is_empty());
    let counted = counts(&machine, 0);
    assert!(counted.own > 160 && counted.own_waited == 0);
    assert_eq!(word(&machine, data(0) + 0x208), 3);
    // Data in the cache, and code in a memory, and the other way round.
    let (mixed, _) = times(code(0), MEMORY_BASE + 0x10_0000);
    assert_eq!(mixed[1], cached[1]);
    let (mixed, _) = times(MEMORY_BASE, data(0));
    assert_eq!(mixed[1], cached[1]);
}

/// A fetch of 64 bytes has a port of eight bytes for eight cycles; a load there waits for the rest of them, and is booked to the hart.
#[test]
fn code_and_data_in_one_bank_wait_for_each_other() {
    let run = |from: u64| {
        let mut p = Program::default();
        p.li(S0, from).jump_to_line();
        p.marker(ZERO, BEFORE).ld(T0, S0, 0).addi(T0, T0, 1);
        p.marker(ZERO, SEEN).word(WFI);
        let mut machine = machine(&chip(&[0], 1), &[((0, 0, code(0)), p)]);
        idle(&mut machine);
        let took = marked(&machine, 0, SEEN)[0] - marked(&machine, 0, BEFORE)[0];
        let own = Owner::new(0, 0);
        (took, waited(&machine, 0, own, own), counts(&machine, 0))
    };
    let (apart, booked, counted) = run(code(0) + SIZE / 2);
    // Waits of the fetches before are the same.
    let before = (booked, counted.own_waited);
    assert_eq!(before.0, before.1);
    let (together, booked, counted) = run(code(0) + 0x400);
    // The load is the second instruction of the line: one cycle of eight is over.
    assert_eq!(together - apart, 7 * CYCLE);
    assert_eq!(booked - before.0, 7 * CYCLE);
    assert_eq!(counted.own_waited, booked);
}

/// Sizes, misaligned accesses within and across lines and memories, atomic operations, cache management, prefetches.
#[test]
fn every_kind_of_access_finds_its_bytes() {
    let mut p = Program::default();
    let last = data(0) - 4;
    p.li(S0, data(0)).li(S1, last).li(S2, 0x0102_0304_0506_0708);
    // Across lines of 64 bytes, and from the first memory into the second one.
    p.sd(S2, S0, 0x3C).ld(T0, S0, 0x3C);
    p.sd(S2, S1, 0).ld(T1, S1, 0);
    p.addi(T2, ZERO, 5);
    // amoadd.d, then a reservation that holds, and one that the hart's own store ends.
    p.sd(T2, S0, 0x100).addi(A0, S0, 0x100);
    p.amo(0, 3, A1, A0, T2);
    p.lr(S3, A0).sc(A1, A0, S2);
    p.sd(A1, S0, 0x108);
    p.lr(S3, A0).sd(T2, S0, 0x100).sc(A1, A0, S2);
    p.sd(A1, S0, 0x110).sd(S3, S0, 0x118);
    // No cache has the bytes, so nothing is lost; zeros fill a line.
    p.cbo(CBO_INVAL, A0).cbo(CBO_CLEAN, A0).cbo(CBO_FLUSH, A0);
    p.addi(A1, S0, 0x180).sd(S2, A1, 0).sd(S2, A1, 0x38);
    p.cbo(CBO_ZERO, A1);
    // prefetch.r and prefetch.i of the line: no cache fetches it.
    p.word(1 << 20 | A0 << 15 | 6 << 12 | 0x13);
    p.word(A0 << 15 | 6 << 12 | 0x13);
    p.word(FENCE).word(WFI);
    let mut machine = machine(&chip(&[0], 1), &[((0, 0, code(0)), p)]);
    idle(&mut machine);
    let hart = machine.hart(0).unwrap();
    let value = 0x0102_0304_0506_0708;
    assert_eq!(
        [T0, T1, S3].map(|r| hart.register(r as usize)),
        [value, value, value]
    );
    let at = |offset| word(&machine, data(0) + offset);
    assert_eq!([at(0x3C), word(&machine, last)], [value; 2]);
    // The second store-conditional failed, as any store to the eight bytes ends a reservation of a memory.
    assert_eq!([at(0x108), at(0x110), at(0x100)], [0, 1, 5]);
    assert_eq!([at(0x180), at(0x1B8)], [0, 0]);
    assert!(machine.statistics().caches.is_empty());
}

/// Page tables in a memory: walks ask for its port, find the entries, and set the accessed and dirty bits.
#[test]
fn tables_may_be_there() {
    let mut config = chip(&[0], 1);
    config.tiles[0].hart.hardware_ad = true;
    let mut p = Program::default();
    // satp: Sv39 with the table at the start of the second memory; then loads in supervisor mode by MPRV and MPP.
    p.li(T0, 8 << 60 | data(0) >> 12).csr(1, 0x180, T0);
    p.li(T0, u64::MAX >> 10).csr(1, 0x3b0, T0);
    p.li(T0, 0x1f).csr(1, 0x3a0, T0);
    p.li(T0, 1 << 17 | 1 << 11).csr(2, 0x300, T0);
    p.li(S0, 0x4000_0000 | (data(0) + 0x1000) & 0x3FFF_FFFF)
        .ld(T1, S0, 0);
    p.addi(T2, ZERO, 9).sd(T2, S0, 8).word(WFI);
    let mut machine = machine(&config, &[((0, 0, code(0)), p)]);
    // A leaf of 1 GiB: virtual 0x4000_0000 is physical, readable and writable, not yet accessed.
    let entry = (TCM_BASE >> 12) << 10 | 0b111;
    let place = data(0) + 8;
    machine.load_tile(0, place, &entry.to_le_bytes()).unwrap();
    machine.load_tile(0, data(0) + 0x1000, &[7]).unwrap();
    idle(&mut machine);
    assert_eq!(machine.hart(0).unwrap().register(T1 as usize), 7);
    assert_eq!(word(&machine, data(0) + 0x1008), 9);
    assert_eq!(word(&machine, place), entry | 0xC0);
}

/// Tools read and load it under one address from everywhere; a program ends the run by a word there.
#[test]
fn tools_find_it() {
    let mut p = Program::default();
    p.li(S0, data(1)).addi(S1, ZERO, 5).sd(S1, S0, 0).spin();
    let mut machine = machine(&chip(&[2, 0, 0], 1), &[((2, 0, code(1)), p)]);
    machine.set_tohost(2, data(1)).unwrap();
    // HTIF: (exit code << 1) | 1.
    let end = machine.run(LIMIT, None);
    assert!(
        matches!(
            end,
            Outcome::Exit {
                tile: 2,
                code: 2,
                ..
            }
        ),
        "{end:?}"
    );
    for tile in [0, 1, 2] {
        machine.load_tile(tile, data(0) + 8, &[tile as u8]).unwrap();
        let mut byte = [0];
        machine.peek(tile, data(0) + 8, &mut byte).unwrap();
        assert_eq!(byte, [tile as u8]);
    }
    let beyond = code(1) + 2 * SIZE;
    assert!(machine.load_tile(2, beyond - 1, &[0; 2]).is_err());
    assert!(machine.peek(2, beyond, &mut [0]).is_err());
    assert!(machine.load_tile(2, code(2), &[0]).is_err());
}

/// A request from a tile and from a cluster: there, at the memory's edge its latency, and back; a store is acknowledged.
#[test]
fn an_access_from_outside_costs_the_way_there_and_back() {
    for (harts, tile) in [([0, 0, 2], 1), ([0, 0, 2], 2)] {
        let config = chip(&harts, 1);
        let mut p = Program::default();
        p.li(S0, data(0)).addi(S2, ZERO, 3).jump_to_line();
        let again = p.here();
        p.word(FENCE).ld(T0, S0, 0x40).addi(T0, T0, 1);
        p.sd(T0, S0, 0x40).word(FENCE).addi(S2, S2, -1);
        p.branch(1, S2, ZERO, again).word(WFI);
        let mut machine = machine(&config, &[(shared(tile, 0, 0), p)]);
        idle(&mut machine);
        assert_eq!(word(&machine, data(0) + 0x40), 3);
        let ways = match config.tiles[usize::from(tile)].cluster.as_ref() {
            // A tile's accesses leave when a miss would: 12 cycles of two ticks.
            None => 12 * CYCLE,
            Some(cluster) => (cluster.up + cluster.down) * CYCLE,
        };
        let trip = |payload: u64| (4 + 1 + 2 + (16 + payload).div_ceil(16) + 1 + 4) * NETWORK;
        let all = machine.ledger().transactions().iter();
        let own = all.filter(|one| one.owner == Owner::new(tile, 0));
        let mut seen = 0;
        for one in own {
            let least = match one.transaction {
                Transaction::RemoteLoad => trip(0) + trip(8),
                Transaction::RemoteStore => trip(8) + trip(0),
                _ => continue,
            } + LATENCY * CYCLE
                + ways;
            seen += 1;
            let took = one.end - one.begin;
            // Three clocks meet: at each of three borders, an access waits for an edge at most.
            assert!(
                (least..least + 3 * NETWORK).contains(&took),
                "{took} {least}"
            );
        }
        assert_eq!(seen, 6);
        assert_eq!(counts(&machine, 0).remote, 6);
    }
}

/// Stores of all parts are counted, whoever makes them: the own hart, another tile's and those of a cluster.
#[test]
fn atomic_operations_of_all_harts_add_up() {
    for ports in [1, 2] {
        for reserved in [false, true] {
            let adder = |rounds: i32| {
                let mut p = Program::default();
                p.li(S0, data(0) + 0x80).addi(S1, ZERO, rounds);
                p.addi(T2, ZERO, 1);
                let again = p.here();
                match reserved {
                    false => p.amo(0, 0, ZERO, S0, T2),
                    true => p
                        .lr(T0, S0)
                        .add(T0, T0, T2)
                        .sc(T1, S0, T0)
                        .branch(1, T1, ZERO, again),
                };
                p.addi(S1, S1, -1).branch(1, S1, ZERO, again).word(WFI);
                p
            };
            let programs = [
                ((0, 0, code(0)), adder(200)),
                (shared(1, 0, 1), adder(30)),
                (shared(2, 0, 2), adder(40)),
                (shared(2, 1, 3), adder(50)),
            ];
            let mut machine = machine(&chip(&[0, 0, 2], ports), &programs);
            idle(&mut machine);
            assert_eq!(word(&machine, data(0) + 0x80), 320, "{ports} {reserved}");
        }
    }
}

/// Stores to the flag of the first tile's memory after this many rounds of a loop.
fn writer(rounds: i32) -> Program {
    let mut p = Program::default();
    p.li(S0, data(0)).addi(S1, ZERO, 1).addi(T2, ZERO, rounds);
    let wait = p.here();
    p.addi(T2, T2, -1).branch(1, T2, ZERO, wait);
    p.sd(S1, S0, 0x400).word(FENCE).marker(ZERO, BEFORE);
    p.sd(S1, S0, 0).spin();
    p
}

/// Looks at the flag until it is set, and then at what was stored before.
fn reader() -> Program {
    let mut p = Program::default();
    p.li(S0, data(0));
    let look = p.here();
    p.ld(T0, S0, 0).branch(0, T0, ZERO, look);
    p.word(FENCE).ld(T1, S0, 0x400).addi(T1, T1, 0);
    p.marker(T1, SEEN).spin();
    p
}

#[test]
fn nothing_is_seen_before_it_is_stored_and_third_parties_change_nothing() {
    // Own hart, other tile, cluster: who writes and who reads.
    let at = |who: TileId| match who {
        0 => (0, 0, code(0)),
        other => shared(other, 0, other.into()),
    };
    for (writing, reading) in [(0, 1), (1, 0), (2, 0), (0, 2), (1, 2), (2, 1)] {
        let third = 3 - writing - reading;
        for rounds in 1000..1008 {
            let times = |busy: bool, pieces: bool| {
                let mut other = Program::default();
                other.word(if busy { 0x13 } else { WFI }).spin();
                let programs = [
                    (at(writing), writer(rounds)),
                    (at(reading), reader()),
                    (at(third), other),
                ];
                let mut machine = machine(&chip(&[0, 0, 2], 1), &programs);
                match pieces {
                    true => in_pieces(&mut machine, 30_000),
                    false => assert_eq!(
                        machine.run(RunLimit { ticks: 30_000 }, None),
                        Outcome::Limit
                    ),
                }
                let seen = machine.markers();
                let seen = seen.iter().find(|m| u32::from(m.kind) == SEEN);
                assert_eq!(seen.expect("it came there").value, 1, "old data");
                let store = marked(&machine, writing, BEFORE)[0];
                [store, marked(&machine, reading, SEEN)[0]]
            };
            let [stored, seen] = times(false, false);
            assert!(seen > stored, "{stored} {seen}");
            assert_eq!(times(true, false), [stored, seen], "{writing} {reading}");
            if rounds % 4 == 0 {
                assert_eq!(times(true, true), [stored, seen], "{writing} {reading}");
            }
        }
    }
}

/// No event ends a long block of divisions with a load behind them; yet no load that comes after another tile's store was performed returns
/// the old value.
#[test]
fn no_load_is_older_than_its_time() {
    for ports in [1, 2] {
        for rounds in 300..330 {
            let mut reader = Program::default();
            reader.li(S0, data(0)).li(T1, u64::MAX).addi(T2, ZERO, 1);
            let again = reader.here();
            // div t1, t1, t2: each waits for the one before.
            for _ in 0..10 {
                reader.word(1 << 25 | T2 << 20 | T1 << 15 | 4 << 12 | T1 << 7 | 0x33);
            }
            // The marker would end the block, so it is behind the load.
            reader.ld(T0, S0, 0).addi(T0, T0, 0).marker(T0, SEEN);
            reader.jump(again);
            let mut writer = Program::default();
            writer.li(S0, data(0)).addi(S1, ZERO, 1);
            writer.addi(T2, ZERO, rounds);
            let wait = writer.here();
            writer.addi(T2, T2, -1).branch(1, T2, ZERO, wait);
            writer.sd(S1, S0, 0).word(FENCE);
            writer.marker(ZERO, BEFORE).word(WFI);
            let programs = [((0, 0, code(0)), reader), (shared(1, 0, 1), writer)];
            let mut machine = machine(&chip(&[0, 0], ports), &programs);
            machine.run(RunLimit { ticks: 20_000 }, None);
            let stored = marked(&machine, 1, BEFORE)[0];
            let markers = machine.markers().into_iter();
            let loads = markers.filter(|m| m.tile == 0 && u32::from(m.kind) == SEEN);
            // From the load to the marker: the load's port, its use, and the marker itself.
            let old: Vec<Tick> = loads
                .filter(|m| m.tick > stored + 10 * CYCLE && m.value == 0)
                .map(|m| m.tick)
                .collect();
            assert!(old.is_empty(), "stored at {stored}, not seen at {old:?}");
        }
    }
}

/// A tile ends the run while others wait for answers of it: they come as far as that moment, and the run is over.
#[test]
fn a_tile_that_ends_the_run_leaves_requests_unanswered() {
    for rounds in 300..330 {
        let mut p = Program::default();
        p.li(S0, EXIT_BASE).li(S1, 0x5555).addi(T2, ZERO, rounds);
        let wait = p.here();
        p.addi(T2, T2, -1).branch(1, T2, ZERO, wait);
        // sw s1, 0(s0)
        p.word(S1 << 20 | S0 << 15 | 2 << 12 | 0x23).spin();
        let asks = || {
            let mut p = Program::default();
            p.li(S0, data(0)).addi(T2, ZERO, 1);
            let again = p.here();
            p.ld(T0, S0, 0)
                .sd(T2, S0, 8)
                .amo(0, 0, T1, S0, T2)
                .jump(again);
            p
        };
        let programs = [
            ((0, 0, code(0)), p),
            (shared(1, 0, 1), asks()),
            (shared(2, 0, 2), asks()),
            (shared(2, 1, 3), asks()),
        ];
        let run = |pieces: bool| {
            let programs: Vec<(At, Program)> = programs
                .iter()
                .map(|(at, program)| {
                    let mut copy = Program::default();
                    copy.words_of(program);
                    (*at, copy)
                })
                .collect();
            let mut machine = machine(&chip(&[0, 0, 2], 1), &programs);
            let mut end = machine.run(
                if pieces {
                    RunLimit { ticks: 500 }
                } else {
                    LIMIT
                },
                None,
            );
            while end == Outcome::Limit {
                let ticks = machine.now() + 13;
                end = machine.run(RunLimit { ticks }, None);
            }
            end
        };
        let end = run(false);
        assert!(
            matches!(
                end,
                Outcome::Exit {
                    tile: 0,
                    code: 0,
                    ..
                }
            ),
            "{end:?}"
        );
        assert_eq!(run(true), end);
    }
}

/// Loads and stores all over memory and all memories of tiles, and channels that copy between these.
fn busy(harts: &[u16]) -> Vec<(At, Program)> {
    let mut programs = Vec::new();
    let places = harts.iter().filter(|one| **one == 0).count() as u64;
    let mut place = 0;
    for (tile, count) in harts.iter().enumerate() {
        for port in 0..usize::from(*count).max(1) {
            let seed = programs.len() as u64;
            let mut p = Program::default();
            if seed == 1 {
                let (from, to) = (data(0), code(places - 1) + 0x3000);
                p.li(S0, DMA_BASE + FIRST_CHANNEL);
                for (index, word) in contiguous(3, from, to + 8, 200).iter().enumerate() {
                    p.li(T0, *word).sd(T0, S0, 8 * index as u64);
                }
                let again = p.here();
                p.addi(T0, ZERO, START as i32)
                    .sd(T0, S0, CONTROL)
                    .word(FENCE);
                let look = p.here();
                p.ld(T1, S0, STATUS).andi(T1, T1, 0xFF).addi(T2, ZERO, 1);
                p.branch(0, T1, T2, look).jump(again);
            } else {
                let other = seed % places;
                p.li(S0, MEMORY_BASE + 0x40_0000)
                    .li(S1, 8 * (2 * seed + 3))
                    .li(S2, 0x1FF8)
                    .li(A1, data(other));
                p.addi(S3, ZERO, 0);
                let again = p.here();
                p.add(T0, S0, S3).ld(T1, T0, 0).sd(T1, T0, 8);
                p.add(T0, A1, S3).ld(T2, T0, 0).add(T2, T2, T1);
                p.sd(T2, T0, 0).amo(0, 0, T1, T0, T2);
                p.add(S3, S3, S1).and(S3, S3, S2).jump(again);
            }
            let at = match *count {
                0 => (tile as TileId, 0, code(place)),
                _ => shared(tile as TileId, port, seed),
            };
            programs.push((at, p));
        }
        place += u64::from(*count == 0);
    }
    programs
}

/// Memories that nobody uses change no tick, though windows are shorter and loads stop at their ends.
#[test]
fn what_nobody_uses_changes_no_tick() {
    let run = |coupled: bool| {
        let mut config = chip(&[0, 2, 0], 1);
        for tile in config.tiles.iter_mut().filter(|_| !coupled) {
            tile.tcm.clear();
        }
        let programs = [(0, 0), (1, 0), (1, 1), (2, 0)].map(|(tile, port)| {
            let seed = u64::from(tile) * 2 + port as u64;
            let mut p = Program::default();
            p.li(S0, MEMORY_BASE + 0x40_0000)
                .li(S1, 64 * (2 * seed + 3));
            p.li(S2, 0x1_FFC0).addi(S3, ZERO, 0);
            let again = p.here();
            p.add(T0, S0, S3).ld(T1, T0, 0).sd(T1, T0, 8);
            p.ld(T2, T0, 16).add(T1, T1, T2).sd(T1, T0, 24);
            p.add(S3, S3, S1).and(S3, S3, S2).jump(again);
            (shared(tile, port, seed), p)
        });
        let mut machine = machine(&config, &programs);
        machine.run(RunLimit { ticks: 100_000 }, None);
        (machine.statistics(), machine.ledger().bookings())
    };
    assert_eq!(run(true), run(false));
}

const CHIPS: [&[u16]; 4] = [&[0, 0], &[0, 2, 0], &[1, 0, 2], &[0, 3]];

#[test]
fn the_length_of_a_window_changes_nothing() {
    for harts in CHIPS {
        for (ports, which) in [(1, None), (2, None), (1, Some(2))] {
            let mut config = chip(harts, ports);
            if let Some(which) = which {
                other_controller(&mut config, which);
            }
            let until = 40_000;
            let mut whole = machine(&config, &busy(harts));
            assert_eq!(whole.run(RunLimit { ticks: until }, None), Outcome::Limit);
            let mut pieces = machine(&config, &busy(harts));
            in_pieces(&mut pieces, until);
            assert!(whole.engine(ENGINE).unwrap().reads > 20);
            let first = harts.iter().position(|one| *one == 0).unwrap();
            assert!(counts(&whole, first as TileId).remote > 20, "{harts:?}");
            assert_eq!(whole.statistics(), pieces.statistics());
            assert_eq!(whole.ledger().bookings(), pieces.ledger().bookings());
            assert_eq!(whole.digest(), pieces.digest(), "{harts:?} {ports}");
        }
    }
}

/// Every wait at a port is booked to the owner that had it; those of the hart, and those of requests, add up exactly.
#[test]
fn hart_and_requests_wait_for_each_other_and_the_ledger_adds_up() {
    for ports in [1, 2] {
        let mut machine = machine(&chip(&[0, 2, 0], ports), &busy(&[0, 2, 0]));
        machine.run(RunLimit { ticks: 400_000 }, None);
        for tile in [0, 2] {
            let counted = counts(&machine, tile);
            let own = Owner::new(tile, 0);
            let ledger = machine.ledger();
            let bookings = ledger.bookings();
            let here = bookings.iter().filter(
                |one| matches!(one.resource, Resource::LocalMemory { tile: of, .. } if of == tile),
            );
            let (mut hart, mut requests) = (0, 0);
            for one in here {
                match one.victim == own {
                    true => hart += one.ticks,
                    false => requests += one.ticks,
                }
                let apart = (one.victim == own) != (one.culprit == own);
                assert!(ports == 1 || !apart, "{one:?}");
            }
            assert_eq!(
                (hart, requests),
                (counted.own_waited, counted.remote_waited)
            );
            assert!(counted.remote > 100, "{tile} {counted:?}");
        }
        let first = counts(&machine, 0);
        assert!(first.remote_waited > 0, "{first:?}");
        let others = [Owner::new(1, 1), Owner::new(ENGINE, 1), Owner::new(2, 0)];
        let of = |victim, culprit| waited(&machine, 0, victim, culprit);
        let own = Owner::new(0, 0);
        let for_others: Tick = others.iter().map(|other| of(own, *other)).sum();
        let for_hart: Tick = others.iter().map(|other| of(*other, own)).sum();
        assert_eq!((for_others > 0, for_hart > 0), (ports == 1, ports == 1));
    }
}

/// An engine moves data into a memory and out of it; what it brings is there before its end is seen.
#[test]
fn an_engine_moves_data_in_and_out() {
    let source = MEMORY_BASE + 0x40_0000;
    let pattern: Vec<u8> = (0..4096u64).map(|i| (i * 7 + i / 256) as u8).collect();
    for (from, to) in [(source, data(0)), (data(0), source), (data(0), code(1))] {
        let mut p = Program::default();
        p.li(S0, DMA_BASE + FIRST_CHANNEL);
        for (index, word) in contiguous(3, from, to, 512).iter().enumerate() {
            p.li(T0, *word).sd(T0, S0, 8 * index as u64);
        }
        p.word(FENCE).addi(T0, ZERO, START as i32);
        p.sd(T0, S0, CONTROL).word(FENCE);
        let look = p.here();
        p.ld(T1, S0, STATUS).andi(T1, T1, 0xFF).addi(T2, ZERO, 1);
        p.branch(0, T1, T2, look).word(FENCE).li(S1, to + 4088);
        p.ld(S2, S1, 0).word(WFI);
        let mut machine = machine(&chip(&[0, 0], 1), &[((0, 0, code(0)), p)]);
        machine.load_tile(0, from, &pattern).unwrap();
        idle(&mut machine);
        let mut found = vec![0; 4096];
        machine.peek(0, to, &mut found).unwrap();
        assert_eq!(found, pattern);
        let last = u64::from_le_bytes(pattern[4088..].try_into().unwrap());
        assert_eq!(machine.hart(0).unwrap().register(S2 as usize), last);
        // A word of eight bytes a cycle: a burst of 128 bytes has the port for 16.
        assert_eq!(machine.engine(ENGINE).unwrap().errors, 0);
    }
}

/// What is nowhere faults: behind the end of a tile's memories, in a window without a tile, and code in another tile's memory.
#[test]
fn what_is_nowhere_faults() {
    let try_load = |tile: TileId, address: u64| {
        let mut p = Program::default();
        p.li(S0, address).ld(T0, S0, 0).addi(T0, T0, 0).word(WFI);
        let mut machine = machine(&chip(&[0, 0, 1], 1), &[(shared(tile, 0, 0), p)]);
        matches!(machine.run(LIMIT, None), Outcome::Idle { .. })
    };
    for tile in [0, 1, 2] {
        assert!(try_load(tile, code(0)) && try_load(tile, code(1) + 2 * SIZE - 8));
        assert!(!try_load(tile, code(0) + 2 * SIZE) && !try_load(tile, code(2)));
    }
    let mut p = Program::default();
    // jalr to the other tile's memory.
    p.li(T0, code(1)).word(T0 << 15 | 0x67);
    let mut machine = machine(&chip(&[0, 0], 1), &[((0, 0, code(0)), p)]);
    let end = machine.run(LIMIT, None);
    assert!(matches!(end, Outcome::Unhandled { .. }), "{end:?}");
}

#[test]
fn memories_that_cannot_be_are_refused() {
    type Change = fn(&mut PlatformConfig);
    let all: [(&str, Change); 8] = [
        ("has at most 2", |c| {
            let one = c.tiles[0].tcm[0].clone();
            c.tiles[0].tcm.push(one);
        }),
        ("no cluster", |c| c.tiles[1].tcm = c.tiles[0].tcm.clone()),
        ("in order", |c| {
            c.tiles[0].hart.interval = Some(IntervalConfig {
                width: 2,
                window: 32,
                load_queue: 8,
                store_queue: 8,
                alus: 2,
                memory_ports: 1,
                float_units: 1,
            });
        }),
        ("powers of two from 4096", |c| c.tiles[0].tcm[0].banks = 8),
        ("1 or 2 ports", |c| c.tiles[0].tcm[1].ports = 3),
        ("no guard", |c| c.tiles[0].tcm[1].guard = 4),
        ("do not fit a window", |c| {
            c.tiles[0].tcm[1].size = 1 << 20;
        }),
        ("at most 4096 bytes", |c| {
            c.network.chunk = 8192;
            c.engines[0].dma.burst = 8192;
        }),
    ];
    for (expected, change) in all {
        let mut config = chip(&[0, 2], 1);
        change(&mut config);
        let what = Machine::new(&config).err().expect("refused").what;
        assert!(what.contains(expected), "{expected}: {what}");
    }
}
