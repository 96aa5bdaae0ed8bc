//! The order in which tiles that share memory see each other's accesses.
//!
//! Chips without data transfer units: every tile has the whole memory, through caches that know nothing of other tiles' caches. A
//! store is visible once it has been flushed, and a load gets the new value if its line was flushed beforehand.

use crate::common::*;
use bulkhead_abi::memory_map::MEMORY_BASE;
use bulkhead_machine::config::{PlatformConfig, PlatformKind, Topology};
use bulkhead_machine::hart::IntervalConfig;
use bulkhead_machine::machine::{Machine, Outcome, RunLimit};
use bulkhead_machine::types::{Tick, TileId};

/// The flag, in a line of its own.
const FLAG: u64 = MEMORY_BASE + 0x8_0000;
const BEFORE: u32 = 0x100;
const SEEN: u32 = 0x101;
const LIMIT: RunLimit = RunLimit { ticks: 200_000 };
/// A flag is seen long before.
const SEEN_BY: RunLimit = RunLimit { ticks: 30_000 };

/// Stores 1 to the flag after this many rounds of a loop, and flushes it if `flush`.
fn writer(rounds: i32, flush: bool) -> Program {
    let mut p = Program::default();
    p.li(S0, FLAG).addi(S1, ZERO, 1).addi(T2, ZERO, rounds);
    let wait = p.here();
    p.addi(T2, T2, -1).branch(1, T2, ZERO, wait);
    p.marker(ZERO, BEFORE).sd(S1, S0, 0);
    if flush {
        p.cbo(CBO_FLUSH, S0);
    }
    p.spin();
    p
}

/// Reads the flag until it is set, fetching a new line each time if `flush`.
fn reader(flush: bool) -> Program {
    let mut p = Program::default();
    p.li(S0, FLAG);
    let look = p.here();
    if flush {
        p.cbo(CBO_FLUSH, S0);
    }
    p.ld(T0, S0, 0).branch(0, T0, ZERO, look);
    p.marker(T0, SEEN).spin();
    p
}

/// Uses only its own first-level caches, or sleeps.
fn third(busy: bool) -> Program {
    let mut p = Program::default();
    p.word(if busy { 0x13 } else { WFI }).spin();
    if busy {
        let start = p.here();
        p.jump(start);
    }
    p
}

fn marked(machine: &Machine, tile: TileId, kind: u32) -> Option<Tick> {
    let markers = machine.markers();
    let mut own = markers
        .iter()
        .filter(|m| m.tile == tile && u32::from(m.kind) == kind);
    own.next().map(|marker| marker.tick)
}

struct Flag {
    config: PlatformConfig,
    rounds: i32,
    writing: TileId,
    reading: TileId,
    third: TileId,
    busy: bool,
}

impl Flag {
    fn new(rounds: i32, writing: TileId, reading: TileId) -> Self {
        Self {
            config: platform(PlatformKind::Bare, 3),
            rounds,
            writing,
            reading,
            third: 3 - writing - reading,
            busy: false,
        }
    }

    fn with(mut self, pipeline: Option<IntervalConfig>) -> Self {
        self.config = pipelined(self.config, pipeline);
        self
    }

    /// When the flag was stored, and when it was seen. `run` runs the machine.
    fn times(&self, run: impl FnOnce(&mut Machine)) -> [Tick; 2] {
        let mut machine = Machine::new(&self.config).expect("valid");
        writer(self.rounds, true).start_at(&mut machine, self.writing, 0x1_0000);
        reader(true).start_at(&mut machine, self.reading, 0x2_0000);
        third(self.busy).start_at(&mut machine, self.third, 0x3_0000);
        run(&mut machine);
        let marker = |tile, kind| marked(&machine, tile, kind).expect("the program came there");
        [marker(self.writing, BEFORE), marker(self.reading, SEEN)]
    }
}

fn flag_in_pieces(machine: &mut Machine) {
    in_pieces(machine, SEEN_BY.ticks);
}

fn at_once(machine: &mut Machine) {
    machine.run(SEEN_BY, None);
}

#[test]
fn nothing_is_seen_before_it_is_stored() {
    for (rounds, pipeline) in (1000..1020).flat_map(|r| PIPELINES.map(|p| (r, p))) {
        for (writing, reading) in [(0, 1), (1, 0), (1, 2), (2, 0)] {
            let flag = Flag::new(rounds, writing, reading).with(pipeline);
            let [stored, seen] = flag.times(at_once);
            // There and back again: interface, link, router, link, interface and the memory, each at least once.
            assert!(seen > stored + 50, "{stored} {seen}");
            let busy = Flag { busy: true, ..flag };
            assert_eq!(busy.times(at_once), [stored, seen], "tile {}", busy.third);
        }
    }
}

#[test]
fn what_is_not_flushed_is_not_seen() {
    PIPELINES.into_iter().for_each(what_is_not_flushed);
}

fn what_is_not_flushed(pipeline: Option<IntervalConfig>) {
    let chip = || Machine::new(&pipelined(platform(PlatformKind::Bare, 2), pipeline)).unwrap();
    let mut machine = chip();
    writer(1000, false).start_at(&mut machine, 0, 0x1_0000);
    reader(true).start_at(&mut machine, 1, 0x2_0000);
    machine.run(LIMIT, None);
    assert_eq!(marked(&machine, 1, SEEN), None);
    // The reader keeps its old line.
    let mut machine = chip();
    writer(1000, true).start_at(&mut machine, 0, 0x1_0000);
    reader(false).start_at(&mut machine, 1, 0x2_0000);
    machine.run(LIMIT, None);
    assert_eq!(marked(&machine, 1, SEEN), None);
    let mut word = [0; 8];
    machine.peek(1, FLAG, &mut word).unwrap();
    assert_eq!(word, [0; 8]);
    machine.peek(0, FLAG, &mut word).unwrap();
    assert_eq!(u64::from_le_bytes(word), 1);
}

#[test]
fn the_length_of_a_window_changes_nothing() {
    for (rounds, pipeline) in (1000..1010).flat_map(|r| PIPELINES.map(|p| (r, p))) {
        let flag = Flag::new(rounds, 0, 1).with(pipeline);
        assert_eq!(
            flag.times(at_once),
            flag.times(flag_in_pieces),
            "{pipeline:?}"
        );
    }
}

/// A controller with a queue serves in its own order; the promises are the same.
#[test]
fn controllers_that_reorder_keep_the_order_of_memory() {
    for (which, pipeline) in (0..CONTROLLERS).flat_map(|c| PIPELINES.map(|p| (c, p))) {
        for rounds in 1000..1005 {
            for (writing, reading) in [(0, 1), (2, 0)] {
                let mut flag = Flag::new(rounds, writing, reading).with(pipeline);
                other_controller(&mut flag.config, which);
                let [stored, seen] = flag.times(at_once);
                assert!(seen > stored + 50, "{stored} {seen}");
                assert_eq!(flag.times(flag_in_pieces), [stored, seen]);
                let busy = Flag { busy: true, ..flag };
                assert_eq!(busy.times(at_once), [stored, seen], "tile {}", busy.third);
            }
        }
    }
}

#[test]
fn the_order_of_visits_and_the_numbers_of_tiles_change_nothing() {
    // A mesh: a router's ports are directions, whatever the tiles' numbers and their order in the list.
    let mesh = |order: [usize; 3]| {
        let mut config = platform(PlatformKind::Bare, 3);
        config.network.topology = Topology::Mesh {
            columns: 2,
            rows: 2,
        };
        for (router, tile) in config.tiles.iter_mut().enumerate() {
            tile.router = router as u16;
        }
        config.memories[0].router = 3;
        config.tiles = order.map(|i| config.tiles[i].clone()).to_vec();
        config
    };
    for (rounds, pipeline) in (1000..1010).flat_map(|r| PIPELINES.map(|p| (r, p))) {
        let mesh = |order| pipelined(mesh(order), pipeline);
        let mut flag = Flag::new(rounds, 0, 1);
        flag.config = mesh([0, 1, 2]);
        let expected = flag.times(at_once);
        for order in [[1, 0, 2], [2, 1, 0], [1, 2, 0]] {
            flag.config = mesh(order);
            assert_eq!(flag.times(at_once), expected, "{order:?}");
        }
        // The tiles at routers 0 and 1 swap numbers.
        let mut renamed = Flag::new(rounds, 1, 0);
        renamed.config = mesh([0, 1, 2]);
        renamed.config.tiles[0].router = 1;
        renamed.config.tiles[1].router = 0;
        assert_eq!(renamed.times(at_once), expected);
    }
}

/// Runs a program on one tile until it waits forever.
fn alone(build: impl FnOnce(&mut Program)) -> Machine {
    let mut machine = bare_chip(1);
    let mut p = Program::default();
    p.li(S0, FLAG).li(S1, 0x1234);
    build(&mut p);
    p.word(WFI);
    p.start(&mut machine, 0);
    assert!(matches!(machine.run(LIMIT, None), Outcome::Idle { .. }));
    machine
}

fn in_memory(machine: &Machine) -> u64 {
    let at = (FLAG - MEMORY_BASE) as usize;
    let bytes = &machine.memory(MEMORY).unwrap()[at..at + 8];
    u64::from_le_bytes(bytes.try_into().unwrap())
}

#[test]
fn each_operation_does_what_it_says() {
    let value = |machine: &Machine| {
        let mut word = [0; 8];
        machine.peek(0, FLAG, &mut word).unwrap();
        (u64::from_le_bytes(word), in_memory(machine))
    };
    let with = |what: Option<u32>| {
        alone(|p| {
            p.sd(S1, S0, 0);
            if let Some(what) = what {
                p.cbo(what, S0);
            }
        })
    };
    assert_eq!(value(&with(None)), (0x1234, 0));
    assert_eq!(value(&with(Some(CBO_CLEAN))), (0x1234, 0x1234));
    assert_eq!(value(&with(Some(CBO_FLUSH))), (0x1234, 0x1234));
    // What was stored is lost.
    assert_eq!(value(&with(Some(CBO_INVAL))), (0, 0));
    assert_eq!(value(&with(Some(CBO_ZERO))), (0, 0));
    // A line that is clean stays, and one that was flushed is fetched again.
    let misses = |what: u32, address: u32| {
        let machine = alone(|p| {
            p.ld(T0, S0, 0).cbo(what, address).word(FENCE).ld(T1, S0, 8);
        });
        machine.statistics().harts[0].counters.data_misses
    };
    let clean = misses(CBO_CLEAN, S0);
    assert_eq!(misses(CBO_FLUSH, S0), clean + 1);
    assert_eq!(misses(CBO_INVAL, S0), clean + 1);
}

#[test]
fn a_flush_is_complete_when_memory_has_the_line() {
    let took = |flush: bool, fence: bool| {
        let machine = alone(|p| {
            p.sd(S1, S0, 0).word(FENCE).marker(ZERO, BEFORE);
            if flush {
                p.cbo(CBO_FLUSH, S0);
            }
            if fence {
                p.word(FENCE);
            }
            p.marker(ZERO, SEEN);
        });
        marked(&machine, 0, SEEN).unwrap() - marked(&machine, 0, BEFORE).unwrap()
    };
    assert!(took(true, false) < 10);
    assert!(took(false, true) < 10);
    // The second level alone takes 24 ticks.
    assert!(took(true, true) > 100, "{}", took(true, true));
}

#[test]
fn a_prefetch_brings_the_line_and_waits_for_nothing() {
    let run = |hint: u32| {
        let machine = alone(|p| {
            // The page must be known to the hart.
            p.ld(T0, S0, 0x400).word(FENCE).word(hint);
            for _ in 0..200 {
                p.addi(T1, T1, 1);
            }
            p.marker(ZERO, BEFORE).ld(T0, S0, 0);
            p.addi(T0, T0, 1).marker(ZERO, SEEN);
        });
        marked(&machine, 0, SEEN).unwrap() - marked(&machine, 0, BEFORE).unwrap()
    };
    // ORI x0, s0 with 1 or 3 in the low bits of the immediate.
    let (read, write) = (0x0014_6013, 0x0034_6013);
    let nothing = run(0x13);
    assert!(run(read) + 100 < nothing && run(write) + 100 < nothing);
}

#[test]
fn lower_modes_need_permission() {
    // From user mode, with this value in menvcfg and senvcfg: the trap's cause, 8 for the call after the operation.
    let cause = |environment: u64, what: u32| {
        let mut machine = bare_chip(1);
        let mut p = Program::default();
        p.li(S0, FLAG).li(S1, 0x1234);
        p.li(T0, environment).csr(1, 0x30a, T0).csr(1, 0x10a, T0);
        p.user().sd(S1, S0, 0).cbo(what, S0).word(0x73);
        let handler = 0x4000;
        let mut h = Program::default();
        h.csr(2, 0x342, A0).word(0x3420_2573).word(WFI).spin();
        let mut start = Program::default();
        start.li(T0, MEMORY_BASE + handler).csr(1, 0x305, T0);
        start.words_of(&p).start(&mut machine, 0);
        machine
            .load_tile(0, MEMORY_BASE + handler, &h.bytes())
            .unwrap();
        machine.run(LIMIT, None);
        let mut word = [0; 8];
        machine.peek(0, FLAG, &mut word).unwrap();
        (
            machine.hart(0).unwrap().register(10),
            u64::from_le_bytes(word),
        )
    };
    for what in [CBO_INVAL, CBO_CLEAN, CBO_FLUSH, CBO_ZERO] {
        assert_eq!(cause(0, what), (2, 0x1234), "{what}");
    }
    assert_eq!(cause(1 << 6, CBO_CLEAN).0, 8);
    assert_eq!(cause(1 << 6, CBO_FLUSH).0, 8);
    assert_eq!(cause(1 << 6, CBO_INVAL).0, 2);
    assert_eq!(cause(1 << 7, CBO_ZERO), (8, 0));
    // The operating system may turn an invalidation into a flush, so that no program recovers old bytes of others.
    assert_eq!(cause(1 << 4, CBO_INVAL), (8, 0x1234));
    assert_eq!(cause(3 << 4, CBO_INVAL), (8, 0));
}
