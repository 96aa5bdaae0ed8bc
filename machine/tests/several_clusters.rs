//! Several clusters in one chip, and tiles beside them: their caches know nothing of each other.

use crate::common::*;
use bulkhead_abi::memory_map::{EXIT_BASE, MEMORY_BASE, PMP_WINDOW_SIZE};
use bulkhead_machine::config::{
    CacheConfig, Channels, CoreConfig, MemoryConfig, PlatformConfig, Topology,
};
use bulkhead_machine::hart::{HartConfig, IntervalConfig};
use bulkhead_machine::machine::{Machine, Outcome, RunLimit};
use bulkhead_machine::statistics::HartReport;
use bulkhead_machine::types::{Tick, TileId};

const DATA: u64 = MEMORY_BASE + 0x20_0000;
const LIMIT: RunLimit = RunLimit { ticks: 20_000_000 };
const BEFORE: u32 = 0x100;
const SEEN: u32 = 0x101;

fn data(line: u64) -> u64 {
    DATA + line * 64
}

fn word(machine: &Machine, tile: TileId, address: u64) -> u64 {
    let mut word = [0; 8];
    machine.peek(tile, address, &mut word).expect("memory");
    u64::from_le_bytes(word)
}

/// Starts a program on each of these harts, each at a place of its own.
fn machine(config: &PlatformConfig, programs: &[((TileId, usize), Program)]) -> Machine {
    let mut machine = Machine::new(config).expect("valid");
    for (i, (hart, program)) in programs.iter().enumerate() {
        start_hart(&mut machine, *hart, program, 0x1_0000 * (i as u64 + 1));
    }
    machine
}

fn idle(machine: &mut Machine) -> Tick {
    match machine.run(LIMIT, None) {
        Outcome::Idle { at } => at,
        other => panic!("{other:?}"),
    }
}

fn marked(machine: &Machine, (tile, port): (TileId, usize), kind: u32) -> Option<Tick> {
    let markers = machine.markers();
    let mut own = markers
        .iter()
        .filter(|m| (m.tile, usize::from(m.activity), u32::from(m.kind)) == (tile, port, kind));
    own.next().map(|marker| marker.tick)
}

/// Adds one to a counter of its cluster, so often.
fn adder(counter: u64, rounds: i32) -> Program {
    let mut p = Program::default();
    p.li(S0, counter).addi(S1, ZERO, rounds).addi(T2, ZERO, 1);
    let again = p.here();
    p.amo(0, 0, ZERO, S0, T2).addi(S1, S1, -1);
    p.branch(1, S1, ZERO, again).word(WFI);
    p
}

/// Stores to the flag after this many rounds of a loop, and flushes it if `flush`.
fn writer(rounds: i32, flush: bool) -> Program {
    let mut p = Program::default();
    p.li(S0, data(0)).addi(S1, ZERO, 1).addi(T2, ZERO, rounds);
    let wait = p.here();
    p.addi(T2, T2, -1).branch(1, T2, ZERO, wait);
    p.marker(ZERO, BEFORE).sd(S1, S0, 0);
    if flush {
        p.cbo(CBO_FLUSH, S0);
    }
    p.spin();
    p
}

/// Looks at the flag until it is set, with a new line each time if `flush`.
fn reader(flush: bool) -> Program {
    let mut p = Program::default();
    p.li(S0, data(0));
    let look = p.here();
    if flush {
        p.cbo(CBO_FLUSH, S0);
    }
    p.ld(T0, S0, 0).branch(0, T0, ZERO, look);
    p.marker(T0, SEEN).spin();
    p
}

/// Adds one to a counter, so often, with a load-reserved and a store-conditional.
fn reserving_adder(counter: u64, rounds: i32) -> Program {
    let mut p = Program::default();
    p.li(S0, counter).addi(S1, ZERO, rounds);
    let again = p.here();
    p.lr(T0, S0).addi(T0, T0, 1).sc(T1, S0, T0);
    p.branch(1, T1, ZERO, again).addi(S1, S1, -1);
    p.branch(1, S1, ZERO, again).word(WFI);
    p
}

/// Loads and stores, with a step and a start of its own, to more lines than a second level has; some of them are those of others.
fn traffic(seed: u64, private: bool) -> Program {
    traffic_of(seed, private, None)
}

/// The same; it ends after so many rounds if a number is given.
fn traffic_of(seed: u64, private: bool, rounds: Option<u64>) -> Program {
    let mut p = Program::default();
    let from = if private { 0x4000 * (seed + 1) } else { 0 };
    p.li(S0, data(0) + from * 64)
        .li(S1, 64 * (2 * seed + 3))
        .li(S2, 0x3_FFC0);
    p.addi(S3, ZERO, 0).addi(T2, ZERO, 0);
    if let Some(rounds) = rounds {
        p.li(A1, rounds);
    }
    let again = p.here();
    p.add(T0, S0, S3)
        .ld(T1, T0, 0)
        .add(T2, T2, T1)
        .sd(T2, T0, 8);
    p.add(S3, S3, S1).and(S3, S3, S2);
    if rounds.is_some() {
        p.addi(A1, A1, -1).branch(1, A1, ZERO, again);
        p.word(WFI).spin();
    }
    p.jump(again);
    p
}

#[test]
fn every_cluster_and_tile_has_its_harts() {
    PIPELINES.into_iter().for_each(harts_of_clusters_and_tiles);
}

fn harts_of_clusters_and_tiles(pipeline: Option<IntervalConfig>) {
    let config = pipelined(clusters(&[3, 0, 2]), pipeline);
    let counters = [data(0), data(1), data(2)];
    let harts: [(TileId, usize); 6] = [(0, 0), (2, 1), (0, 1), (1, 0), (0, 2), (2, 0)];
    let programs = harts.map(|(tile, port)| ((tile, port), adder(counters[usize::from(tile)], 50)));
    let mut machine = machine(&config, &programs);
    idle(&mut machine);
    let found = [0, 1, 2].map(|tile| word(&machine, tile, counters[usize::from(tile)]));
    assert_eq!(found, [150, 50, 100]);
    let statistics = machine.statistics();
    let reported: Vec<TileId> = statistics.harts.iter().map(|hart| hart.tile).collect();
    assert_eq!(reported, [0, 0, 0, 1, 2, 2]);
    assert!(
        statistics
            .harts
            .iter()
            .all(|hart| hart.counters.instructions >= 150)
    );
}

#[test]
fn what_is_not_flushed_is_not_seen_by_another_cluster() {
    let flushes = [(false, true), (true, false), (true, true)];
    for ((flush_write, flush_read), pipeline) in
        flushes.into_iter().flat_map(|f| PIPELINES.map(|p| (f, p)))
    {
        let programs = [
            ((0, 1), writer(1000, flush_write)),
            ((1, 0), reader(flush_read)),
            // A hart of the writer's own cluster sees the store in any case.
            ((0, 0), reader(false)),
        ];
        let mut machine = machine(&pipelined(clusters(&[2, 2]), pipeline), &programs);
        machine.run(RunLimit { ticks: 100_000 }, None);
        let seen = marked(&machine, (1, 0), SEEN).is_some();
        assert_eq!(seen, flush_write && flush_read);
        assert!(marked(&machine, (0, 0), SEEN).is_some());
    }
}

#[test]
fn nothing_is_seen_before_it_is_stored_and_third_parties_change_nothing() {
    PIPELINES
        .into_iter()
        .for_each(nothing_is_seen_early_between_clusters);
}

fn nothing_is_seen_early_between_clusters(pipeline: Option<IntervalConfig>) {
    for harts in [[2, 2, 2], [2, 0, 2], [0, 2, 0]] {
        for rounds in 1000..1010 {
            for (writing, reading) in [(0, 1), (1, 0), (1, 2), (2, 0)] {
                let third: TileId = 3 - writing - reading;
                let times = |busy: bool, pieces: bool| {
                    // It spins in its own first level, or sleeps.
                    let mut other = Program::default();
                    other.word(if busy { 0x13 } else { WFI }).spin();
                    let programs = [
                        ((writing, 0), writer(rounds, true)),
                        ((reading, 0), reader(true)),
                        ((third, 0), other),
                    ];
                    let mut machine = machine(&pipelined(clusters(&harts), pipeline), &programs);
                    match pieces {
                        true => in_pieces(&mut machine, 30_000),
                        false => {
                            machine.run(RunLimit { ticks: 30_000 }, None);
                        }
                    }
                    let times = [((writing, 0), BEFORE), ((reading, 0), SEEN)];
                    times.map(|(hart, kind)| marked(&machine, hart, kind).expect("it came there"))
                };
                let [stored, seen] = times(false, false);
                assert!(seen > stored + 50, "{stored} {seen}");
                let case = format!("{harts:?} {third} {pipeline:?}");
                assert_eq!(times(true, false), [stored, seen], "{case}");
                if rounds % 5 == 0 {
                    assert_eq!(times(true, true), [stored, seen], "{case}");
                }
            }
        }
    }
}

fn all_busy(harts: &[u16], private: bool) -> Vec<((TileId, usize), Program)> {
    on_all(harts, |number| traffic(number, private))
}

fn all_ending(harts: &[u16], rounds: u64) -> Vec<((TileId, usize), Program)> {
    on_all(harts, |number| traffic_of(number, false, Some(rounds)))
}

fn on_all(harts: &[u16], of: impl Fn(u64) -> Program) -> Vec<((TileId, usize), Program)> {
    let mut programs = Vec::new();
    for (tile, harts) in harts.iter().enumerate() {
        for port in 0..usize::from(*harts).max(1) {
            let program = of(programs.len() as u64);
            programs.push(((tile as TileId, port), program));
        }
    }
    programs
}

const CHIPS: [&[u16]; 4] = [&[1, 1], &[2, 4], &[3, 0, 1], &[0, 4, 0, 2]];

#[test]
fn the_length_of_a_window_changes_nothing() {
    for (i, harts) in CHIPS.into_iter().enumerate() {
        for which in [None, Some(0), Some(2)] {
            for mut config in [clusters(harts), coherent(harts)] {
                if let Some(which) = which {
                    other_controller(&mut config, which);
                }
                match i {
                    0 | 2 => config.network.channels = Channels::Split,
                    3 => config.network.channels = Channels::Acknowledged { read_interval: 2 },
                    _ => {}
                }
                let until = 60_000;
                let programs = all_busy(harts, false);
                for pipeline in PIPELINES {
                    let config = pipelined(config.clone(), pipeline);
                    pieces_change_nothing(|| machine(&config, &programs), until);
                }
            }
        }
    }
}

/// Every wait is in the account of a request, and the other way round: to the tick, once nothing is under way.
#[test]
fn every_wait_is_booked() {
    let configs = CHIPS.map(|harts| [clusters(harts), coherent(harts)].map(|c| (harts, c)));
    for (harts, config) in configs.into_iter().flatten() {
        for pipeline in PIPELINES {
            let programs = all_ending(harts, 400);
            let mut machine = machine(&pipelined(config.clone(), pipeline), &programs);
            idle(&mut machine);
            assert!(!machine.ledger().totals().is_empty());
            waits_are_booked(&machine);
        }
    }
}

/// Clusters at routers of a mesh, which are called and listed in any way.
#[test]
fn the_numbers_and_the_order_of_clusters_change_no_tick() {
    PIPELINES
        .into_iter()
        .for_each(numbers_and_order_of_clusters);
}

fn numbers_and_order_of_clusters(pipeline: Option<IntervalConfig>) {
    let chip = |is_coherent: bool, order: [usize; 3], names: [TileId; 3]| {
        // With three coherent clusters, a home asks two at once.
        let (harts, mut config) = match is_coherent {
            true => ([2, 3, 2], coherent(&[2, 3, 2])),
            false => ([2, 3, 0], clusters(&[2, 3, 0])),
        };
        config.network.topology = Topology::Mesh {
            columns: 2,
            rows: 2,
        };
        for (router, tile) in config.tiles.iter_mut().enumerate() {
            (tile.router, tile.id) = (router as u16, names[router]);
        }
        config.memories[0].router = 3;
        config.tiles = order.map(|i| config.tiles[i].clone()).to_vec();
        config = pipelined(config, pipeline);
        let mut programs = all_busy(&harts, false);
        for ((tile, _), _) in &mut programs {
            *tile = names[usize::from(*tile)];
        }
        let mut machine = machine(&config, &programs);
        assert_eq!(
            machine.run(RunLimit { ticks: 100_000 }, None),
            Outcome::Limit
        );
        // By router and port: instructions, cycles of data misses.
        let statistics = machine.statistics();
        names.map(|name| {
            let own = statistics.harts.iter().filter(|hart| hart.tile == name);
            own.map(|hart| hart.counters).collect::<Vec<_>>()
        })
    };
    for coherent in [false, true] {
        let expected = chip(coherent, [0, 1, 2], [0, 1, 2]);
        for order in [[1, 0, 2], [2, 1, 0], [1, 2, 0]] {
            let found = chip(coherent, order, [0, 1, 2]);
            assert_eq!(found, expected, "{order:?} {pipeline:?}");
        }
        for names in [[1, 0, 2], [7, 3, 5], [5, 40, 6]] {
            let found = chip(coherent, [0, 1, 2], names);
            assert_eq!(found, expected, "{names:?} {pipeline:?}");
        }
    }
}

/// The program marks before and after a load, alone on its chip. What is between is one load and its use.
fn load_takes(
    config: &PlatformConfig,
    hart: (TileId, usize),
    prepare: impl Fn(&mut Program),
) -> Tick {
    let mut p = Program::default();
    p.li(S0, data(0)).jump_to_line();
    // The first round fetches the instructions.
    p.addi(S2, ZERO, 2);
    let again = p.here();
    prepare(&mut p);
    p.word(FENCE).marker(ZERO, BEFORE);
    p.ld(T0, S0, 0).addi(T0, T0, 1).marker(ZERO, SEEN);
    p.addi(S2, S2, -1).branch(1, S2, ZERO, again).word(WFI);
    let mut machine = machine(config, &[(hart, p)]);
    idle(&mut machine);
    let markers = machine.markers();
    let last = |kind| {
        let mut all = markers.iter().rev();
        all.find(|m| u32::from(m.kind) == kind)
            .expect("a marker")
            .tick
    };
    last(SEEN) - last(BEFORE)
}

/// A hit of either level, and a miss, cost on each cluster what they cost on a chip that has nothing else.
#[test]
fn accesses_cost_what_they_cost_alone() {
    let second = |p: &mut Program| {
        // Pushes the line out of the first level: five lines of its set (64 sets of four ways).
        p.ld(T0, S0, 0);
        for way in 1..=5 {
            p.li(T1, data(64 * way)).ld(T0, T1, 0);
        }
    };
    let memory = |p: &mut Program| {
        p.cbo(CBO_FLUSH, S0);
    };
    let costs = |config: &PlatformConfig, hart| {
        [
            load_takes(config, hart, |p| {
                p.ld(T0, S0, 0);
            }),
            load_takes(config, hart, second),
            load_takes(config, hart, memory),
        ]
    };
    let alone = costs(&cluster(2), (0, 0));
    // The marker, the load and the use take a cycle each; the ways (2 + 2 cycles) and the look-up (12).
    let load = Tick::from(HartConfig::default().load_to_use);
    assert_eq!(alone[0], 2 * (1 + load + 1));
    assert_eq!(alone[1] - alone[0], 2 * (2 + 12 + 2 - load));
    for hart in [(0, 1), (1, 0), (3, 2)] {
        assert_eq!(costs(&clusters(&[2, 4, 0, 3]), hart), alone, "{hart:?}");
    }
    let tile = costs(&clusters(&[0]), (0, 0));
    assert_eq!(costs(&clusters(&[2, 4, 0, 3]), (2, 0)), tile);
}

/// The earliest end counts, wherever it is, and the others have come as far, but not much further.
#[test]
fn the_earliest_end_of_the_run_counts() {
    let ends = |rounds: i32, code: u64| {
        let mut p = Program::default();
        p.li(S0, EXIT_BASE)
            .li(S1, code << 16 | 0x3333)
            .addi(T2, ZERO, rounds);
        let wait = p.here();
        p.addi(T2, T2, -1).branch(1, T2, ZERO, wait);
        // sw
        p.word(S1 << 20 | S0 << 15 | 2 << 12 | 0x23).spin();
        p
    };
    for harts in [[1, 1], [2, 0], [0, 2]] {
        let mut earliest = Vec::new();
        for (rounds, code) in [([400, 1000], 1), ([1000, 400], 2)] {
            let mut spinning = Program::default();
            spinning.spin();
            let mut programs = vec![((0, 0), ends(rounds[0], 1)), ((1, 0), ends(rounds[1], 2))];
            if harts[0] == 2 {
                programs.push(((0, 1), spinning));
            }
            let mut machine = machine(&clusters(&harts), &programs);
            let Outcome::Exit {
                at, code: found, ..
            } = machine.run(LIMIT, None)
            else {
                panic!("no end");
            };
            assert_eq!(found, code);
            earliest.push(at);
            let harts = machine.statistics().harts;
            let started = |hart: &&HartReport| hart.counters.instructions > 0;
            for hart in harts.iter().filter(started) {
                let cycles = hart.counters.instructions;
                assert!(cycles > 400, "{hart:?}");
                assert!(cycles < at / 2 + 300, "{hart:?} at {at}");
            }
        }
        let difference = earliest[0].abs_diff(earliest[1]);
        assert!(difference < 300, "{harts:?}: {earliest:?}");
    }
}

/// A hart of another kind: half the clock, first levels of a quarter.
fn slow() -> CoreConfig {
    let cache = CacheConfig {
        size: 4 << 10,
        cycle: 4,
        ..CacheConfig::default()
    };
    CoreConfig {
        hart: HartConfig {
            ticks_per_cycle: 4,
            hardware_ad: false,
            ..HartConfig::default()
        },
        l1i: cache.clone(),
        l1d: cache,
    }
}

/// Harts of different kinds in one cluster are coherent, and each has its own costs.
#[test]
fn harts_of_a_cluster_may_be_of_different_kinds() {
    let mut config = cluster(3);
    config.tiles[0].cluster.as_mut().unwrap().cores = vec![None, Some(slow())];
    let programs: Vec<_> = (0..3)
        .map(|port| ((0, port), adder(data(0), 100)))
        .collect();
    let mut counting = machine(&config, &programs);
    idle(&mut counting);
    assert_eq!(word(&counting, 0, data(0)), 300);
    let cycles: Vec<Tick> = counting
        .statistics()
        .harts
        .iter()
        .map(|h| h.cycle)
        .collect();
    assert_eq!(cycles, [2, 4, 2]);
    // A hit of the first level takes its own cycles; one of the second level ends at an edge of its clock.
    let hit = |port| {
        load_takes(&config, (0, port), |p| {
            p.ld(T0, S0, 0);
        })
    };
    let load = Tick::from(HartConfig::default().load_to_use);
    assert_eq!(
        [hit(0), hit(1), hit(2)],
        [2, 4, 2].map(|cycle| cycle * (1 + load + 1))
    );
    let programs = all_busy(&[3], false);
    for pipeline in PIPELINES {
        let config = pipelined(config.clone(), pipeline);
        pieces_change_nothing(|| machine(&config, &programs), 100_000);
    }
}

/// Chips may have several memories, each at addresses of its own; a cluster and a tile find them at the same ones.
#[test]
fn all_parts_find_all_memories() {
    let mut config = clusters(&[2, 0]);
    let first = config.memories[0].clone();
    config.memories.push(MemoryConfig {
        id: MEMORY + 1,
        size: 1 << 20,
        ..first
    });
    let other = MEMORY_BASE + PMP_WINDOW_SIZE;
    let store = |value: i32, at: u64| {
        let mut p = Program::default();
        p.li(S0, at).addi(S1, ZERO, value).sd(S1, S0, 0);
        p.cbo(CBO_FLUSH, S0).word(FENCE).ld(S2, S0, 0).word(WFI);
        p
    };
    let programs = [
        ((0, 0), store(11, other + 0x40)),
        ((1, 0), store(12, other + 0x80)),
        ((0, 1), store(13, data(0))),
    ];
    let mut machine = machine(&config, &programs);
    idle(&mut machine);
    let memory = machine.memory(MEMORY + 1).unwrap();
    assert_eq!([memory[0x40], memory[0x80]], [11, 12]);
    assert_eq!(
        machine.memory(MEMORY).unwrap()[(data(0) - MEMORY_BASE) as usize],
        13
    );
    assert_eq!(machine.cluster_hart(0, 0).unwrap().register(18), 11);
    assert_eq!(machine.hart(1).unwrap().register(18), 12);
    for tile in [0, 1] {
        let words = [0x40, 0x80].map(|at| word(&machine, tile, other + at));
        assert_eq!(words, [11, 12]);
        // Between the memories there is nothing.
        let between = MEMORY_BASE + (16 << 20);
        assert!(machine.peek(tile, between, &mut [0; 8]).is_err());
    }
    // Tools load into all copies.
    for (tile, value) in [(0, 7), (1, 8)] {
        machine.load_tile(tile, other + 0x40, &[value]).unwrap();
        let words = [0, 1].map(|tile| word(&machine, tile, other + 0x40));
        assert_eq!(words, [u64::from(value); 2]);
    }
}

#[test]
fn what_a_chip_with_clusters_cannot_have_is_refused() {
    let refused = |change: &dyn Fn(&mut PlatformConfig)| {
        let mut config = clusters(&[2, 2, 0]);
        change(&mut config);
        Machine::new(&config).err().expect("refused").what
    };
    let lines = refused(&|config| {
        let mut core = slow();
        core.l1d.line = 32;
        config.tiles[1].cluster.as_mut().unwrap().cores = vec![Some(core)];
    });
    assert!(
        lines.contains("tile 1") && lines.contains("32 bytes"),
        "{lines}"
    );
    let walker = refused(&|config| {
        let mut core = slow();
        core.hart.hardware_ad = true;
        config.tiles[1].cluster.as_mut().unwrap().cores = vec![None, Some(core)];
    });
    assert!(walker.contains("walker"), "{walker}");
    let many = refused(&|config| {
        config.tiles[0].cluster.as_mut().unwrap().cores = vec![None; 3];
    });
    assert!(many.contains("more cores than harts"), "{many}");
    let memories = refused(&|config| {
        let first = config.memories[0].clone();
        for id in 1..=4 {
            config.memories.push(MemoryConfig {
                id: MEMORY + id,
                ..first.clone()
            });
        }
    });
    assert!(memories.contains("windows"), "{memories}");
    let alone = refused(&|config| {
        config.tiles[1].cluster.as_mut().unwrap().coherent = true;
    });
    assert!(
        alone.contains("tile 1") && alone.contains("no other"),
        "{alone}"
    );
    let other = refused(&|config| {
        for (tile, line) in [(0, 64), (1, 32)] {
            let tile = &mut config.tiles[tile];
            tile.cluster.as_mut().unwrap().coherent = true;
            tile.hart.line = line;
            let caches = [&mut tile.l1i, &mut tile.l1d, &mut tile.l2];
            for cache in caches.into_iter().flatten() {
                cache.line = line;
            }
        }
    });
    assert!(other.contains("lines of one length"), "{other}");
    let names = refused(&|config| {
        for tile in &mut config.tiles[..2] {
            tile.cluster.as_mut().unwrap().coherent = true;
        }
        config.memories[0].dropped = 0x3000;
    });
    assert!(names.contains("two addresses"), "{names}");
}

/// When an answer leaves a home, the next request for the line begins there, and its questions leave at once. A cluster that only hits, while
/// nothing is on its way to it and all others wait, goes no further than such a question may come.
#[test]
fn a_question_behind_an_answer_comes_in_time() {
    let mut config = coherent(&[1, 1, 1]);
    // The way out of the network takes longer than the look-up in a second level, which hides a window that is too long by no more.
    config.network.interface = 20;
    for (delay, pipeline) in (0..60).flat_map(|d| PIPELINES.map(|p| (d, p))) {
        let config = pipelined(config.clone(), pipeline);
        let mut hits = Program::default();
        hits.li(S0, data(0)).addi(S2, ZERO, 0);
        let again = hits.here();
        hits.ld(T0, S0, 0).addi(S2, S2, 1).jump(again);
        // The one reads the line, which stays in the first cluster. The other one writes it, and its request waits for the first one's.
        let later = |rounds: i32, write: bool| {
            let mut p = Program::default();
            p.li(S0, data(0)).addi(T2, ZERO, rounds);
            let wait = p.here();
            p.addi(T2, T2, -1).branch(1, T2, ZERO, wait);
            match write {
                true => p.sd(S0, S0, 8),
                false => p.ld(T0, S0, 0),
            };
            p.word(WFI);
            p
        };
        let programs = || {
            [
                ((0, 0), later(300, false)),
                ((1, 0), later(300 + delay, true)),
                ((2, 0), {
                    let mut p = Program::default();
                    p.words_of(&hits);
                    p
                }),
            ]
        };
        pieces_change_nothing(|| machine(&config, &programs()), 8000);
    }
}

/// Clusters that are coherent with each other need no flushes; nothing is seen too early, and third parties change no tick.
#[test]
fn coherent_clusters_see_each_others_stores() {
    PIPELINES
        .into_iter()
        .for_each(stores_between_coherent_clusters);
}

fn stores_between_coherent_clusters(pipeline: Option<IntervalConfig>) {
    for (harts, pairs) in [
        ([2, 2, 2], [(0, 1), (1, 0), (1, 2), (2, 0)]),
        ([2, 0, 2], [(0, 2), (2, 0), (0, 2), (2, 0)]),
    ] {
        for rounds in 1000..1010 {
            for (writing, reading) in pairs {
                let third: TileId = 3 - writing - reading;
                let times = |busy: bool, pieces: bool| {
                    let mut other = Program::default();
                    other.word(if busy { 0x13 } else { WFI }).spin();
                    let programs = [
                        ((writing, 0), writer(rounds, false)),
                        ((reading, 1), reader(false)),
                        ((third, 0), other),
                    ];
                    let mut machine = machine(&pipelined(coherent(&harts), pipeline), &programs);
                    match pieces {
                        true => in_pieces(&mut machine, 30_000),
                        false => {
                            machine.run(RunLimit { ticks: 30_000 }, None);
                        }
                    }
                    let times = [((writing, 0), BEFORE), ((reading, 1), SEEN)];
                    times.map(|(hart, kind)| marked(&machine, hart, kind).expect("it came there"))
                };
                let [stored, seen] = times(false, false);
                assert!(
                    seen > stored + 50 && seen < stored + 1500,
                    "{stored} {seen}"
                );
                let case = format!("{harts:?} {third} {pipeline:?}");
                assert_eq!(times(true, false), [stored, seen], "{case}");
                if rounds % 5 == 0 {
                    assert_eq!(times(true, true), [stored, seen], "{case}");
                }
            }
        }
    }
}

/// Atomic operations and reservations of all clusters, at the same words. What tools see grows, and is the same for all.
#[test]
fn coherent_clusters_count_together() {
    PIPELINES.into_iter().for_each(count_of_coherent_clusters);
}

fn count_of_coherent_clusters(pipeline: Option<IntervalConfig>) {
    for (harts, which) in [
        (&[1u16, 1][..], None),
        (&[2, 3], Some(0)),
        (&[2, 2, 2], Some(2)),
        (&[3, 0, 4], None),
    ] {
        for adds in [adder, reserving_adder] {
            let mut config = pipelined(coherent(harts), pipeline);
            if let Some(which) = which {
                other_controller(&mut config, which);
            }
            let tiles: Vec<TileId> = (0..harts.len() as TileId)
                .filter(|tile| harts[usize::from(*tile)] > 0)
                .collect();
            let mut programs = Vec::new();
            for tile in &tiles {
                for port in 0..usize::from(harts[usize::from(*tile)]) {
                    programs.push(((*tile, port), adds(data(0), 50)));
                }
            }
            let mut machine = machine(&config, &programs);
            let mut before = 0;
            loop {
                let ticks = machine.now() + 37;
                let end = machine.run(RunLimit { ticks }, None);
                let seen = tiles.iter().map(|tile| word(&machine, *tile, data(0)));
                let seen: Vec<u64> = seen.collect();
                assert!(seen.iter().all(|word| *word == seen[0]), "{seen:?}");
                assert!(seen[0] >= before, "{seen:?} after {before}");
                before = seen[0];
                if matches!(end, Outcome::Idle { .. }) {
                    break;
                }
                assert!(machine.now() < LIMIT.ticks, "no end: {seen:?}");
            }
            assert_eq!(before, 50 * programs.len() as u64, "{harts:?}");
            waits_are_booked(&machine);
        }
    }
}

/// A flush of one cluster writes the line that another one has modified, so that a tile that is coherent with nobody finds it.
#[test]
fn cache_management_reaches_all_coherent_clusters() {
    let flusher = || {
        let mut p = Program::default();
        p.li(S0, data(0)).addi(T2, ZERO, 2000);
        let wait = p.here();
        p.addi(T2, T2, -1).branch(1, T2, ZERO, wait);
        p.cbo(CBO_FLUSH, S0).word(FENCE).word(WFI);
        p
    };
    for (flushes, pipeline) in [false, true]
        .into_iter()
        .flat_map(|f| PIPELINES.map(|p| (f, p)))
    {
        let mut programs = vec![((0, 0), writer(500, false)), ((2, 0), reader(true))];
        if flushes {
            programs.push(((1, 1), flusher()));
        }
        let mut machine = machine(&pipelined(coherent(&[2, 2, 0]), pipeline), &programs);
        machine.run(RunLimit { ticks: 100_000 }, None);
        assert_eq!(marked(&machine, (2, 0), SEEN).is_some(), flushes);
    }
}

/// A cluster whose lines nobody else wants has the hits of its caches, and a miss costs the way to the other cluster and back more.
#[test]
fn a_miss_of_a_coherent_cluster_asks_the_others_first() {
    let second = |p: &mut Program| {
        p.ld(T0, S0, 0);
        for way in 1..=5 {
            p.li(T1, data(64 * way)).ld(T0, T1, 0);
        }
    };
    let memory = |p: &mut Program| {
        p.cbo(CBO_FLUSH, S0);
    };
    let costs = |config: &PlatformConfig| {
        let first = load_takes(config, (0, 0), |p| {
            p.ld(T0, S0, 0);
        });
        let second = load_takes(config, (0, 0), second);
        [first, second, load_takes(config, (0, 0), memory)]
    };
    let (apart, together) = (costs(&clusters(&[2, 2])), costs(&coherent(&[2, 2])));
    assert_eq!(together[..2], apart[..2]);
    // Two ways through the network without a line, and the look-up there (12 cycles of 2 ticks).
    let network = &clusters(&[2, 2]).network;
    let (cycle, hop) = (network.cycle, network.link + network.router);
    let wire = u64::from(network.header.div_ceil(network.width));
    let way = (2 * network.interface + hop + network.link + wire) * cycle;
    let more = together[2] - apart[2];
    // Clocks have other phases then.
    assert!(
        more.abs_diff(2 * way + 24) <= cycle,
        "{more}, two ways of {way} and the look-up"
    );
}
