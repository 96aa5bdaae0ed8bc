//! Shared by the tests of DMA engines beside the tiles: a chip with one, programs that use it, and what its accesses cost.

use super::*;
use bulkhead_abi::dma::{CHANNEL_SIZE, CONTROL, FIRST_CHANNEL, START, STATUS};
use bulkhead_abi::memory_map::{DMA_BASE, PMP_WINDOW_SIZE};
use bulkhead_machine::dram::banks::Timing;
use bulkhead_machine::ledger::Ended;
use bulkhead_machine::noc::Transaction;
use bulkhead_machine::types::Owner;

pub const ENGINE: TileId = 50;
/// The second memory, whose bytes have a second port.
pub const LOCAL: TileId = MEMORY + 1;
pub const PORT: TileId = MEMORY + 2;
pub const BEFORE: u32 = 0x100;
pub const SEEN: u32 = 0x101;
/// Ticks of a cycle of engine and network.
pub const CYCLE: Tick = 4;
pub const BURST: u64 = 128;

/// A memory without rows: 10 cycles in its controller, 2 for the first data, 4 for each 64 bytes.
pub fn block_memory() -> DramConfig {
    let cycle = 5;
    let mut controller = ControllerConfig::ddr3(cycle);
    controller.timing = Timing {
        cycle,
        burst: 4 * cycle,
        cas: 2 * cycle,
        write_cas: 2 * cycle,
        column: 4 * cycle,
        ..Timing::default()
    };
    controller.map.banks = 1;
    controller.map.row = 1 << 24;
    controller.map.bank_interleave = Some(1 << 24);
    controller.frontend = 10 * cycle;
    controller.into()
}

/// Tiles as in [`clusters`], an engine of two channels, a second memory of 1 MiB at the next window, and its second port at the one after.
pub fn chip(harts: &[u16]) -> PlatformConfig {
    let mut config = clusters(harts);
    config.memories[0].dram = block_memory();
    config.network.channels = Channels::Split;
    config.memories.push(MemoryConfig {
        id: LOCAL,
        dram: block_memory(),
        size: 1 << 20,
        router: 0,
        second_port_of: Vec::new(),
        dropped: 0,
    });
    config.memories.push(MemoryConfig {
        id: PORT,
        second_port_of: vec![LOCAL],
        ..config.memories[1].clone()
    });
    config.engines.push(EngineConfig {
        id: ENGINE,
        router: 0,
        dma: DmaConfig {
            cycle: CYCLE,
            channels: 2,
            outstanding: 8,
            startup: 3,
            burst: BURST as u32,
            width: 16,
        },
        registers: 2,
        interrupts: None,
        coherent: false,
    });
    config
}

pub const SOURCE: u64 = MEMORY_BASE + 0x40_0000;
pub const OWN: u64 = MEMORY_BASE + PMP_WINDOW_SIZE;
pub const ALIAS: u64 = MEMORY_BASE + 2 * PMP_WINDOW_SIZE;

/// The registers of a channel.
pub fn channel(number: u64) -> u64 {
    DMA_BASE + FIRST_CHANNEL + CHANNEL_SIZE * number
}

/// Writes a descriptor to a channel's registers and waits until it is there. `S0` is then their address.
pub fn describe(p: &mut Program, number: u64, words: &[u64; 8]) {
    p.li(S0, channel(number));
    for (index, word) in words.iter().enumerate() {
        p.li(T0, *word).sd(T0, S0, 8 * index as u64);
    }
    p.word(FENCE);
}

/// Starts the channel at `S0` and looks at it until it works no more. Reads overtake writes, so a fence is between.
pub fn start_and_wait(p: &mut Program) {
    p.addi(T0, ZERO, START as i32).marker(ZERO, BEFORE);
    p.sd(T0, S0, CONTROL).word(FENCE);
    let look = p.here();
    p.ld(T1, S0, STATUS).andi(T1, T1, 0xFF).addi(T2, ZERO, 1);
    p.branch(0, T1, T2, look).marker(T1, SEEN);
}

pub fn transfer(words: &[u64; 8]) -> Program {
    let mut p = Program::default();
    describe(&mut p, 0, words);
    start_and_wait(&mut p);
    p.word(WFI);
    p
}

/// Starts a transfer and looks at nothing, so that nothing else is on the network.
pub fn started(words: &[u64; 8]) -> Program {
    let mut p = Program::default();
    describe(&mut p, 0, words);
    p.addi(T0, ZERO, START as i32).jump_to_line();
    p.sd(T0, S0, CONTROL).word(WFI);
    p
}

pub fn pattern(bytes: u64) -> Vec<u8> {
    (0..bytes).map(|i| (i * 7 + i / 256) as u8).collect()
}

pub fn memory_of(machine: &Machine, id: TileId, offset: u64, bytes: u64) -> Vec<u8> {
    machine.memory(id).unwrap()[offset as usize..(offset + bytes) as usize].to_vec()
}

/// Begins and ends of the accesses of a channel, in the order of their begins.
pub fn times(machine: &Machine, number: u16, transaction: Transaction) -> Vec<(Tick, Tick)> {
    let all = machine.ledger().transactions().iter();
    let own = all.filter(|one: &&Ended| {
        one.owner == Owner::new(ENGINE, 1 + number) && one.transaction == transaction
    });
    let mut times: Vec<_> = own.map(|one| (one.begin, one.end)).collect();
    times.sort_unstable();
    times
}

/// Ticks of a packet with this many bytes after its header of 16: interface 4, link 1, router 2, link 1, interface 4.
pub const fn trip(payload: u64) -> Tick {
    (4 + 1 + 2 + (16 + payload).div_ceil(16) + 1 + 4) * CYCLE
}

/// The first access to a memory opens its row: a command.
pub const OPENS: Tick = 5;

/// Ticks of a memory for an access that meets no other: up to the clock's edge, controller, first data, the rest.
pub fn served(at: Tick, bytes: u64) -> Tick {
    at.next_multiple_of(5) + (10 + 2 + 4 * bytes.div_ceil(64)) * 5
}

pub fn there_and_back(begin: Tick, out: u64, bytes: u64, back: u64) -> Tick {
    let edge = |at: Tick| at.next_multiple_of(CYCLE);
    edge(served(begin + trip(out), bytes)) + trip(back)
}
