//! Where requests meet in one tick, their ports decide, and nothing else: chips whose tiles have other numbers, at the same places and ports, do
//! the same at the same ticks.

use crate::common::*;
use bulkhead_abi::dtu::{Command, Opcode, TLB_READ, TLB_WRITE};
use bulkhead_abi::memory_map::MEMORY_BASE;
use bulkhead_machine::config::{
    Channels, PlatformConfig, PlatformKind, Replacement, Topology, UnitPort,
};
use bulkhead_machine::hart::IntervalConfig;
use bulkhead_machine::machine::{Machine, Outcome, RunLimit};
use bulkhead_machine::types::{Tick, TileId};
use proptest::prelude::*;
use std::collections::BTreeMap;

const DATA: u64 = MEMORY_BASE + 0x8_0000;
const MARK: u32 = 0x100;
const ROUNDS: i32 = 12;

/// What happens at each place: the ticks of its markers, and what its hart counted.
type Happened = BTreeMap<usize, (Vec<Tick>, String)>;

/// Runs a chip whose tile at place `i` of the list has the number `numbers[i]`; `start` loads a program for place `i`.
fn happens(
    config: &PlatformConfig,
    numbers: &[TileId],
    memory: TileId,
    regrouped: bool,
    start: &dyn Fn(&mut Machine, usize, TileId),
) -> Happened {
    let mut config = config.clone();
    for (tile, number) in config.tiles.iter_mut().zip(numbers) {
        tile.id = *number;
    }
    config.memories[0].id = memory;
    if regrouped {
        // Tiles at one router keep their order, so every port stays.
        let crossbar = config.network.topology == Topology::Crossbar;
        config
            .tiles
            .sort_by_key(|tile| if crossbar { 0 } else { tile.router });
    }
    let mut machine = Machine::new(&config).expect("valid");
    for (place, number) in numbers.iter().enumerate() {
        start(&mut machine, place, *number);
    }
    let end = machine.run(RunLimit { ticks: 4_000_000 }, None);
    assert!(
        matches!(end, Outcome::Limit | Outcome::Idle { .. }),
        "{end:?}"
    );
    let markers = machine.markers();
    let mut all = Happened::new();
    for (place, number) in numbers.iter().enumerate() {
        let own = markers.iter().filter(|marker| marker.tile == *number);
        let counters = machine.hart(*number).expect("a tile").statistics();
        let ticks: Vec<Tick> = own.map(|marker| marker.tick).collect();
        assert_eq!(ticks.len(), ROUNDS as usize, "place {place}");
        all.insert(place, (ticks, format!("{counters:?}")));
    }
    all
}

/// A step of a program: what, where.
type Step = (u8, u64);

/// Loops over the steps, with a marker each time: loads, stores and flushes at `base` + an offset, and, with a unit, transfers.
fn program(steps: &[Step], base: u64, unit: bool) -> Program {
    let mut p = Program::default();
    p.unit().addi(S3, ZERO, ROUNDS);
    let again = p.here();
    for &(what, offset) in steps {
        p.li(S0, base + offset * 8);
        match what {
            0..3 => p.ld(T0, S0, 0),
            3 => p.sd(S0, S0, 0),
            4 if unit => p.command(Command::new(Opcode::Write, 8, 0), DATA, 512, offset & 0xFC0),
            5 if unit => p.command(Command::new(Opcode::Read, 8, 0), DATA, 64, offset & 0xFC0),
            4 => p.amo(0, 0, T0, S0, S0),
            _ => p.word(FENCE),
        };
    }
    // A branch does not reach as far.
    p.addi(S3, S3, -1).marker(ZERO, MARK);
    let ends = p.here();
    p.word(0).jump_far(again);
    let end = p.here();
    p.patch_branch(ends, 0, S3, ZERO, end);
    p.word(WFI).spin();
    p
}

fn shuffled(count: u16) -> impl Strategy<Value = Vec<TileId>> {
    Just((0..count).collect::<Vec<_>>()).prop_shuffle()
}

fn programs() -> impl Strategy<Value = Vec<Vec<Step>>> {
    prop::collection::vec(prop::collection::vec((0u8..7, 0u64..4096), 8..24), 2..7)
}

/// The pipeline of the hart at each place.
fn pipelines(places: usize) -> impl Strategy<Value = Vec<Option<IntervalConfig>>> {
    prop::collection::vec(
        (0..PIPELINES.len()).prop_map(|which| PIPELINES[which]),
        places,
    )
}

fn topologies() -> impl Strategy<Value = Topology> {
    prop_oneof![
        Just(Topology::Crossbar),
        (1u16..4, 1u16..4).prop_map(|(columns, rows)| Topology::StarMesh { columns, rows }),
        (1u16..4, 1u16..4).prop_map(|(columns, rows)| Topology::Mesh { columns, rows }),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 36, ..ProptestConfig::default() })]

    /// Chips with caches, with and without units.
    #[test]
    fn numbers_of_tiles_change_no_tick(
        topology in topologies(),
        split in any::<bool>(),
        units in any::<bool>(),
        first in any::<bool>(),
        controller in 0usize..=CONTROLLERS,
        pipelines in pipelines(9),
        routers in prop::collection::vec(0u16..9, 7),
        programs in programs(),
        numbers in shuffled(9),
    ) {
        let kind = if units { PlatformKind::Tiled } else { PlatformKind::Bare };
        let mut config = platform(kind, programs.len() as u16);
        let count = match topology {
            Topology::Crossbar => 9,
            Topology::StarMesh { columns, rows } | Topology::Mesh { columns, rows } => columns * rows,
        };
        config.network.topology = topology;
        config.network.channels = if split { Channels::Split } else { Channels::Shared };
        for (tile, router) in config.tiles.iter_mut().zip(&routers) {
            tile.router = router % count;
            for cache in [&mut tile.l1i, &mut tile.l1d, &mut tile.l2].into_iter().flatten() {
                (cache.size, cache.replacement) = (cache.size / 16, Replacement::Random);
            }
            if let Some(unit) = &mut tile.dtu {
                unit.port = if first { UnitPort::First } else { UnitPort::Second };
            }
        }
        config.memories[0].router = routers[6] % count;
        for (tile, pipeline) in config.tiles.iter_mut().zip(&pipelines) {
            tile.hart.interval = *pipeline;
        }
        if controller < CONTROLLERS {
            other_controller(&mut config, controller);
        }
        let tiles = programs.len();
        let run = |numbers: &[TileId], memory_tile: TileId, regrouped| {
            happens(&config, numbers, memory_tile, regrouped, &|machine, place, number| {
                // Programs lie one behind the other, and their data are common or, behind units, their own.
                let base = if units { place as u64 * SHARE } else { 0 };
                if units {
                    for (endpoint, at) in [(0, base), (8, 12 << 20)] {
                        let mut gate = memory(at, SHARE, TLB_READ | TLB_WRITE);
                        if let bulkhead_abi::dtu::Endpoint::Memory(gate) = &mut gate {
                            gate.target_tile = memory_tile;
                        }
                        set(machine, number, endpoint, gate);
                    }
                }
                let offset = if units { 0 } else { 0x4000 * place as u64 };
                program(&programs[place], DATA, units).start_at(machine, number, offset);
            })
        };
        let as_listed: Vec<TileId> = (0..tiles as u16).collect();
        let expected = run(&as_listed, MEMORY, false);
        // The memory tile gets the number that is left.
        let (own, rest) = numbers.split_at(tiles);
        prop_assert_eq!(&expected, &run(own, rest[0], false));
        prop_assert_eq!(&expected, &run(own, rest[0], true));
    }

    /// Chips with local memories: remote loads, stores and atomic operations over networks of their own.
    #[test]
    fn numbers_of_tiles_change_no_tick_on_a_mesh(
        (columns, rows) in (2u16..4, 1u16..4),
        credits in prop::option::of(1u32..3),
        pipelines in pipelines(9),
        steps in prop::collection::vec(prop::collection::vec((0u8..5, 0u64..9), 4..16), 9),
        numbers in shuffled(10),
    ) {
        let mut config = mesh(columns, rows);
        config.network.credits = credits;
        for (tile, pipeline) in config.tiles.iter_mut().zip(&pipelines) {
            tile.hart.interval = *pipeline;
        }
        let tiles = config.tiles.len();
        let (own, rest) = numbers.split_at(tiles);
        let run = |numbers: &[TileId], memory_tile: TileId| {
            happens(&config, numbers, memory_tile, false, &|machine, place, number| {
                let mut p = Program::default();
                p.addi(S3, ZERO, ROUNDS);
                let again = p.here();
                for &(what, target) in &steps[place] {
                    let target = target % tiles as u64;
                    let at = window(target % u64::from(columns), target / u64::from(columns));
                    p.li(S0, at + 0x4000 + 8 * target);
                    match what {
                        0 | 1 => p.ld(T0, S0, 0),
                        2 | 3 => p.sd(S0, S0, 0),
                        _ => p.amo(0, 0, T0, S0, S0),
                    };
                }
                p.addi(S3, S3, -1).marker(ZERO, MARK).branch(1, S3, ZERO, again);
                p.word(WFI).spin();
                p.start(machine, number);
            })
        };
        let as_listed: Vec<TileId> = (0..tiles as u16).collect();
        prop_assert_eq!(run(&as_listed, 5000), run(own, rest[0]));
    }
}
