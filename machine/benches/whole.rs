//! The whole machine with every timing model on: one tile as in the catalogue's platform `single`, or eight tiles with data
//! transfer units, and the kernel's, which sleeps.

use bulkhead_abi::dtu::{
    Endpoint, MemoryEndpoint, SendEndpoint, TILEMUX_ACTIVITY, TLB_READ, TLB_WRITE,
};
use bulkhead_machine::config::dram::ControllerConfig;
use bulkhead_machine::config::*;
use bulkhead_machine::hart::HartConfig;
use bulkhead_machine::image::Image;
use bulkhead_machine::machine::{Machine, Outcome, RunLimit};
use std::path::Path;

const MEMORY: u16 = 100;
const MEMORY_BASE: u64 = 0x8000_0000;
const SHARE: u64 = 8 << 20;
/// Ticks a second: 1 GHz cores, 800 MHz memory.
const SECOND: u64 = 4_000_000_000;

fn cache(size: u64, ways: u32, latency: u64, mshrs: u32) -> CacheConfig {
    CacheConfig {
        size,
        ways,
        cycle: 4,
        latency,
        mshrs,
        ..CacheConfig::default()
    }
}

fn unit() -> DtuConfig {
    DtuConfig {
        cycle: 4,
        ..DtuConfig::default()
    }
}

/// The figures of `catalog/platforms/single.xml`; with units, and one more tile for a kernel, if `tiled`.
pub fn platform(tiles: u16, tiled: bool) -> PlatformConfig {
    let hart = HartConfig {
        ticks_per_cycle: 4,
        fp_divide: 27,
        fp_sqrt: 27,
        ..HartConfig::default()
    };
    let tile = |id| TileConfig {
        l1i: Some(cache(16 << 10, 4, 1, 2)),
        l1d: Some(cache(16 << 10, 4, 1, 2)),
        l2: Some(cache(512 << 10, 8, 12, 8)),
        dtu: tiled.then(unit),
        privileged: id == tiles,
        exit: true,
        uart: true,
        ..TileConfig::new(id, hart.clone())
    };
    let mut dram = ControllerConfig::ddr3(5);
    dram.timing.refresh = 208 * 5;
    dram.frontend = 16 * 5;
    PlatformConfig {
        name: "benchmark".into(),
        kind: if tiled {
            PlatformKind::Tiled
        } else {
            PlatformKind::Bare
        },
        ticks_per_second: SECOND,
        timebase_hz: 10_000_000,
        tiles: (0..tiles + u16::from(tiled)).map(tile).collect(),
        memories: vec![MemoryConfig {
            id: MEMORY,
            dram: dram.into(),
            size: 128 << 20,
            router: 0,
            second_port_of: Vec::new(),
            dropped: 0,
        }],
        cables: Vec::new(),
        network: NetworkConfig {
            cycle: 4,
            router: 1,
            interface: 1,
            ..NetworkConfig::default()
        },
        seed: 1,
        engines: Vec::new(),
        peripherals: Vec::new(),
        doorbells: None,
    }
}

fn load(machine: &mut Machine, tile: u16, program: &Path) {
    let bytes = std::fs::read(program).expect("the program is there");
    let image = Image::parse("kernel", &bytes).expect("an ELF file");
    for segment in &image.segments {
        machine
            .load_tile(tile, segment.address, &segment.data)
            .expect("it fits");
    }
    machine
        .start_hart(tile, image.entry, 0, 0)
        .expect("the tile is there");
}

pub fn instructions(machine: &Machine) -> u64 {
    machine
        .statistics()
        .harts
        .iter()
        .map(|hart| hart.counters.instructions)
        .sum()
}

/// Runs a program to its end on one tile. Returns the number of instructions.
pub fn run(program: &Path) -> u64 {
    run_on(&platform(1, false), program).0
}

/// Runs a program to its end on a chip without units. Returns the numbers of instructions and ticks.
pub fn run_on(config: &PlatformConfig, program: &Path) -> (u64, u64) {
    let mut machine = Machine::new(config).expect("a valid platform");
    load(&mut machine, 0, program);
    let outcome = machine.run(RunLimit { ticks: u64::MAX }, None);
    assert!(
        matches!(outcome, Outcome::Exit { code: 0, .. }),
        "{outcome:?}"
    );
    (instructions(&machine), machine.now())
}

/// Runs a program for this many milliseconds of the chip on this many tiles, each with its own memory in the same memory
/// tile. Each could call the kernel, whose tile sleeps, and no other: as tiles of a tiled system that compute. Returns the number of instructions of all tiles.
pub fn run_tiles(program: &Path, tiles: u16, milliseconds: u64) -> u64 {
    let mut machine = Machine::new(&platform(tiles, true)).expect("a valid platform");
    for tile in 0..tiles {
        let endpoint = MemoryEndpoint {
            activity: TILEMUX_ACTIVITY,
            target_tile: MEMORY,
            rights: (TLB_READ | TLB_WRITE) as u8,
            base: tile as u64 * SHARE,
            size: SHARE,
        };
        let call = SendEndpoint::new(TILEMUX_ACTIVITY, (tiles, 0), 0, 1, 512);
        let unit = machine.unit_mut(tile).expect("a unit");
        unit.set_endpoint(0, Endpoint::Memory(endpoint));
        unit.set_endpoint(8, Endpoint::Send(call));
        load(&mut machine, tile, program);
    }
    assert_eq!(MEMORY_BASE, bulkhead_abi::memory_map::MEMORY_BASE);
    let outcome = machine.run(
        RunLimit {
            ticks: SECOND / 1000 * milliseconds,
        },
        None,
    );
    assert_eq!(outcome, Outcome::Limit);
    instructions(&machine)
}
