//! Runs a batch on a whole machine: one tile with small caches, a network, a DRAM channel, and the tile's own devices.
//!
//! The hart's results must not depend on what is around it. The caches are much smaller than the programs, so lines come and go
//! all the time.

use bulkhead_machine::config::dram::ControllerConfig;
use bulkhead_machine::config::{
    CacheConfig, MemoryConfig, NetworkConfig, PlatformConfig, PlatformKind, Replacement, TileConfig,
};
use bulkhead_machine::hart::{HartConfig, IntervalConfig};
use bulkhead_machine::machine::{Machine, Outcome, RunLimit};

use crate::layout::*;
use crate::ours::Error;

const TILE: u16 = 0;
const MEMORY: u16 = 1;

/// Ticks that a batch may take for each test.
const TICKS_PER_TEST: u64 = 200_000_000;

fn cache(size: u64, latency: u64) -> CacheConfig {
    CacheConfig {
        size,
        ways: 2,
        line: 64,
        cycle: 1,
        latency,
        mshrs: 2,
        replacement: Replacement::Random,
        way_mask: 0,
        prefetcher: None,
    }
}

/// Four banks, two ticks per cycle; latencies of about half the cycles of DDR3-1600.
fn dram() -> ControllerConfig {
    let mut dram = ControllerConfig::ddr3(2);
    let timing = &mut dram.timing;
    (timing.cas, timing.activate, timing.precharge) = (10, 10, 10);
    (
        timing.write_recovery,
        timing.refresh_interval,
        timing.refresh,
    ) = (12, 6240, 120);
    (dram.map.banks, dram.map.row) = (4, 2048);
    dram.map.bank_interleave = Some(2048);
    dram.frontend = 8;
    dram
}

fn platform() -> PlatformConfig {
    PlatformConfig {
        name: "conformance".to_owned(),
        kind: PlatformKind::Bare,
        ticks_per_second: 1_000_000_000,
        timebase_hz: 10_000_000,
        tiles: vec![TileConfig {
            l1i: Some(cache(1024, 1)),
            l1d: Some(cache(512, 2)),
            l2: Some(cache(4096, 8)),
            exit: true,
            uart: true,
            ..TileConfig::new(TILE, HartConfig::default())
        }],
        memories: vec![MemoryConfig {
            id: MEMORY,
            dram: dram().into(),
            size: DRAM_BYTES,
            router: 0,
            second_port_of: Vec::new(),
            dropped: 0,
        }],
        cables: Vec::new(),
        network: NetworkConfig {
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

/// Runs memory `image` from its first byte and returns the memory afterwards.
///
/// # Errors
/// When the programs do not end as they should.
pub fn run(image: &[u8], tests: usize, interval: Option<IntervalConfig>) -> Result<Vec<u8>, Error> {
    let stopped = |what: &dyn std::fmt::Display| Error::Stopped(what.to_string());
    let mut platform = platform();
    platform.tiles[0].hart.interval = interval;
    let mut machine = Machine::new(&platform).map_err(|error| stopped(&error))?;
    machine
        .load_memory(MEMORY, 0, image)
        .map_err(|error| stopped(&error))?;
    machine
        .start_hart(TILE, DRAM, 0, 0)
        .map_err(|error| stopped(&error))?;
    let ticks = TICKS_PER_TEST * (tests as u64 + 1);
    match machine.run(RunLimit { ticks }, None) {
        Outcome::Exit { code: 0, .. } => {
            let mut memory = vec![0; DRAM_BYTES as usize];
            let seen = machine.peek(TILE, DRAM, &mut memory);
            seen.map(|()| memory).map_err(|error| stopped(&error))
        }
        Outcome::Limit => Err(Error::Timeout(
            machine.hart(TILE).map_or(0, |hart| hart.pc()),
        )),
        other => Err(Error::Stopped(format!(
            "{other:?} at {:#x}",
            machine.hart(TILE).map_or(0, |hart| hart.pc())
        ))),
    }
}
