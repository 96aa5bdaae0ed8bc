//! How many instructions a second a whole machine simulates: one busy tile against eight, with every timing model on.
//!
//! Prints the ratio that the project promises (at least 0.6). Programs are assembled by hand: an arithmetic loop, a loop
//! over an array that fits the first-level cache, and one over an array that fits no cache.

use bulkhead_abi::dtu::{self, Endpoint, MemoryEndpoint};
use bulkhead_abi::memory_map::MEMORY_BASE;
use bulkhead_machine::config::*;
use bulkhead_machine::hart::HartConfig;
use bulkhead_machine::machine::{Machine, RunLimit};
use std::time::Instant;

fn cache(size: u64, latency: u64) -> CacheConfig {
    CacheConfig {
        size,
        ways: 8,
        line: 64,
        cycle: 2,
        latency,
        mshrs: 8,
        replacement: Replacement::Lru,
        way_mask: 0,
    }
}

fn platform(tiles: u16) -> PlatformConfig {
    let dtu = DtuConfig {
        cycle: 2,
        endpoints: 192,
        buckets: 4,
        tlb_entries: 32,
        tlb_latency: 3,
        block: 64,
        parallel: 4,
        refill: 1000,
        bucket_limit: 16384,
        read: 20,
        write: 14,
        send: 21,
        reply: 25,
        receive: 20,
        fetch: 8,
        acknowledge: 10,
        outstanding: 8,
    };
    PlatformConfig {
        name: "bench".into(),
        kind: PlatformKind::Tiled,
        ticks_per_second: 4_000_000_000,
        timebase_hz: 10_000_000,
        tiles: (0..tiles)
            .map(|id| TileConfig {
                id,
                hart: HartConfig {
                    ticks_per_cycle: 2,
                    ..HartConfig::default()
                },
                l1i: Some(cache(32 << 10, 2)),
                l1d: Some(cache(32 << 10, 2)),
                l2: Some(cache(512 << 10, 12)),
                dtu: Some(dtu.clone()),
                router: id % 4,
                privileged: id == 0,
                exit: true,
                uart: true,
            })
            .collect(),
        memories: vec![MemoryConfig {
            id: 100,
            dram: DramConfig {
                cycle: 5,
                banks: 8,
                row: 8192,
                bus: 8,
                burst: 64,
                cas: 11,
                activate: 11,
                precharge: 11,
                write_recovery: 12,
                refresh_interval: 6240,
                refresh: 128,
                frontend: 8,
            },
            size: 64 << 20,
            router: 0,
        }],
        network: NetworkConfig {
            topology: Topology::StarMesh {
                columns: 2,
                rows: 2,
            },
            cycle: 4,
            width: 16,
            link: 1,
            router: 2,
            interface: 4,
            header: 16,
            chunk: 512,
            channels: Channels::Shared,
        },
        seed: 1,
    }
}

/// A loop over an array of a power of two of bytes: load, eight arithmetic instructions, store, step of 8 bytes, wrap.
fn program(array: u32) -> Vec<u8> {
    let mut words = vec![
        // lui s0, 0x80010 (sign-extended: clear the upper half) ; s0 = array
        0x8001_0437,
        0x0204_1413, // slli s0, s0, 32
        0x0204_5413, // srli s0, s0, 32
        0x0000_0293, // addi t0, zero, 0 (offset)
        array << 12 >> 12 << 12 | 0x37 | 7 << 7,
    ];
    // lui t2, array >> 12 ; addi t2, t2, -8: the mask of the offset.
    words[4] = (array & 0xFFFF_F000) | 7 << 7 | 0x37;
    words.push(0xFF83_8393);
    let again = words.len();
    words.extend([
        0x0054_0333, // add t1, s0, t0
        0x0003_3503, // ld a0, 0(t1)
        0x0015_0593, // addi a1, a0, 1
        0x00B5_C633, // xor a2, a1, a1
        0x00B6_0633, // add a2, a2, a1
        0x0036_1693, // slli a3, a2, 3
        0x40A6_86B3, // sub a3, a3, a0
        0x00D6_6733, // or a4, a2, a3
        0x00E5_F7B3, // and a5, a1, a4
        0x00B3_3023, // sd a1, 0(t1)
        0x0082_8293, // addi t0, t0, 8
        0x0072_F2B3, // and t0, t0, t2
    ]);
    let offset = (again as i32 - words.len() as i32) * 4;
    let o = offset as u32;
    // jal zero, again
    words.push(
        (o >> 20 & 1) << 31
            | (o >> 1 & 0x3FF) << 21
            | (o >> 11 & 1) << 20
            | (o >> 12 & 0xFF) << 12
            | 0x6F,
    );
    words.iter().flat_map(|w| w.to_le_bytes()).collect()
}

/// Instructions and seconds of `tiles` tiles that run the program for `ticks`.
fn measure(tiles: u16, array: u32, ticks: u64) -> (u64, f64) {
    let mut machine = Machine::new(&platform(8)).expect("valid platform");
    for tile in 0..tiles {
        let endpoint = MemoryEndpoint {
            activity: dtu::TILEMUX_ACTIVITY,
            target_tile: 100,
            rights: 3,
            base: (tile as u64) << 22,
            size: 1 << 22,
        };
        let unit = machine.unit_mut(tile).expect("tile with a unit");
        unit.set_endpoint(0, Endpoint::Memory(endpoint));
        machine
            .load_tile(tile, MEMORY_BASE, &program(array))
            .expect("in memory");
        machine.start_hart(tile, MEMORY_BASE, 0, 0).expect("a tile");
    }
    let start = Instant::now();
    machine.run(RunLimit { ticks }, None);
    let seconds = start.elapsed().as_secs_f64();
    let instructions = machine
        .statistics()
        .harts
        .iter()
        .map(|h| h.counters.instructions)
        .sum();
    (instructions, seconds)
}

fn main() {
    for (name, array) in [
        ("16 KiB", 16 << 10),
        ("256 KiB", 256 << 10),
        ("2 MiB", 2 << 20),
    ] {
        let (one, one_seconds) = measure(1, array, 80_000_000);
        let (eight, eight_seconds) = measure(8, array, 10_000_000);
        let (single, total) = (
            one as f64 / one_seconds / 1e6,
            eight as f64 / eight_seconds / 1e6,
        );
        println!(
            "array of {name}: one tile {single:.1} million instructions/s, eight tiles {total:.1} in total, ratio {:.2}",
            total / single
        );
    }
}
