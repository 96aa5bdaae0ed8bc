//! A manager that starts nothing from its description. Over and over, it starts a child on the first tile that it can use, which stores to
//! each line of its memory, and stops the child; the kernel then has the tile write back all of these lines.
//!
//! Arguments: `life` (1.1ms): how long a child runs.
#![no_std]
#![no_main]

use bulkhead_lib::abi::syscall::{
    MAP_EXECUTE, MAP_PAGES_MAX, MAP_READ, MAP_WRITE, SEL_FREE, SEL_KERNEL_MEMORY, SEL_MEMORIES,
    SEL_TILES, Syscall, SyscallError,
};
use bulkhead_lib::abi::words::Name;
use bulkhead_lib::gate::MemoryGate;
use bulkhead_lib::{argument, println, syscall, time};

bulkhead_lib::main!(main);

/// The first of its own selectors, after those that it was given.
const WINDOW: u16 = SEL_FREE + 100;
const CHILD: u16 = WINDOW + 1;
const PAGE: u64 = 4096;
/// A child's memory begins with a page for its environment and replies, and one for its code.
const BEGIN: u64 = 0x1000_0000;
const DATA: u64 = 2 * PAGE;

/// `a0` runs from the start of the data to `a1` and starts again; `sd a0, 0(a0)` in each line.
fn code(bytes: u64) -> [u32; 6] {
    let lui = |register: u32, address: u64| address as u32 & 0xFFFF_F000 | register << 7 | 0x37;
    [
        lui(10, BEGIN + DATA),
        lui(11, BEGIN + DATA + bytes),
        0x00A5_3023,
        // addi a0, a0, 64
        0x0405_0513,
        // bne a0, a1, -8
        0xFEB5_1CE3,
        // j -20
        0xFEDF_F06F,
    ]
}

/// Starts a child in the memory, with as many lines to store to as one call maps.
fn start(tile: u16, pages: u64) -> Result<(), SyscallError> {
    syscall::call(&Syscall::CreateActivity {
        target: CHILD,
        tile: SEL_TILES + tile,
        purse: SEL_KERNEL_MEMORY,
        memory: WINDOW,
        reply: 2048,
        priority: 0,
        tile_priority: 0,
        name: Name::new("burning").unwrap_or_default(),
    })?;
    for (offset, pages, rights) in [
        (PAGE, 1, MAP_READ | MAP_EXECUTE),
        (DATA, pages, MAP_READ | MAP_WRITE),
    ] {
        syscall::call(&Syscall::Map {
            activity: CHILD,
            address: BEGIN + offset,
            offset,
            pages,
            rights,
        })?;
    }
    syscall::call(&Syscall::Start {
        activity: CHILD,
        entry: BEGIN + PAGE,
        stack: 16,
    })
    .map(|_| ())
}

/// Memory that a tile sees, and the first tile that exists.
fn show() -> Option<u16> {
    let mut places = (0..16).flat_map(|tile| (0..16).map(move |memory| (tile, memory)));
    let found = places.find(|(tile, memory)| {
        let cut = syscall::call(&Syscall::CutMemory {
            source: SEL_MEMORIES + memory,
            target: WINDOW,
            size: DATA + MAP_PAGES_MAX * PAGE,
        });
        let shown = [40, 0].iter().any(|tables| {
            let request = Syscall::ConfigureTile {
                tile: SEL_TILES + tile,
                memory: WINDOW,
                tables: *tables,
            };
            syscall::call(&request).is_ok()
        });
        if cut.is_ok() && !shown {
            let _ = syscall::call(&Syscall::Revoke {
                selector: WINDOW,
                keep: 0,
            });
        }
        cut.is_ok() && shown
    });
    found.map(|(tile, _)| tile)
}

fn main() -> u64 {
    let Some(tile) = show() else {
        println!("no tile");
        return 1;
    };
    let Ok((endpoint, size)) = syscall::activate(WINDOW) else {
        return 1;
    };
    let pages = MAP_PAGES_MAX;
    let words = code(pages * PAGE).map(u32::to_le_bytes);
    let gate = MemoryGate::new(endpoint, size);
    let life = argument::time("life", 1_100_000);
    let (mut rounds, mut refused) = (0u64, 0u64);
    loop {
        let written = gate.write(PAGE, words.as_flattened());
        refused += u64::from(written.is_err() || start(tile, pages).is_err());
        time::sleep_until(time::now() + life);
        let _ = syscall::call(&Syscall::Revoke {
            selector: CHILD,
            keep: 0,
        });
        // Its end costs kernel memory until the event is taken.
        let _ = syscall::call(&Syscall::WaitEvent { until: 1 });
        rounds += 1;
        println!("{rounds} children with {pages} dirty pages, {refused} refused");
    }
}
