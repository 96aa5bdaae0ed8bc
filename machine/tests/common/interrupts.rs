//! Shared by the tests of interrupts.

use super::*;
use bulkhead_abi::dma::*;
use bulkhead_abi::memory_map::{DMA_BASE, DMA_SIZE, PLIC_BASE};
use bulkhead_abi::plic::{CLAIM, CONTEXT_SIZE, ENABLE, ENABLE_SIZE, THRESHOLD, context, source};
use bulkhead_machine::types::Tick;

pub const ENGINE: TileId = 50;
pub const SEEN: u32 = 0x101;
/// Ticks of a cycle of engines and network.
pub const CYCLE: Tick = 4;
pub const SOURCE: u64 = MEMORY_BASE + 0x40_0000;
pub const DESTINATION: u64 = MEMORY_BASE + 0x80_0000;

/// Bits of `mie`: machine and supervisor external interrupts.
pub const MEI: u64 = 1 << 11;
pub const SEI: u64 = 1 << 9;
pub const MIE: u32 = 0x304;
/// Tiles as in [`clusters`], with an engine of two channels for each of these tiles, which it interrupts.
pub fn interrupted_chip(harts: &[u16], interrupts: &[TileId]) -> PlatformConfig {
    let mut config = clusters(harts);
    config.network.channels = Channels::Split;
    for (number, tile) in (0..).zip(interrupts) {
        config.engines.push(EngineConfig {
            id: ENGINE + number,
            router: 0,
            dma: DmaConfig {
                cycle: CYCLE,
                channels: 2,
                outstanding: 8,
                startup: 3,
                burst: 128,
                width: 16,
            },
            registers: 2,
            interrupts: Some(*tile),
            coherent: false,
        });
    }
    config
}

pub fn channel(engine: u64, number: u64) -> u64 {
    DMA_BASE + DMA_SIZE * engine + FIRST_CHANNEL + CHANNEL_SIZE * number
}

/// The words of a transfer of this many bytes that interrupts at its end, at a place of its own.
pub fn transfer(place: u64, bytes: u32) -> [u64; 8] {
    let offset = 0x1_0000 * place;
    let mut words = contiguous(3, SOURCE + offset, DESTINATION + offset, bytes / 8);
    words[0] |= INTERRUPT_AT_END;
    words
}

/// Writes a descriptor to a channel's registers, whose address is then in `S0`.
pub fn describe(p: &mut Program, at: u64, words: &[u64; 8]) {
    p.li(S0, at);
    for (index, word) in words.iter().enumerate() {
        p.li(T0, *word).sd(T0, S0, 8 * index as u64);
    }
    p.word(FENCE);
}

/// Enables a source for a context of the own controller, with this priority; `S1` is then the context's claim register.
pub fn listen(p: &mut Program, context: u32, source: u32, priority: u64) {
    p.li(S1, PLIC_BASE + 4 * u64::from(source))
        .li(T0, priority)
        .sw(T0, S1, 0);
    let enable = ENABLE + ENABLE_SIZE * u64::from(context) + 4 * u64::from(source / 32);
    p.li(S1, PLIC_BASE + enable).lw(T0, S1, 0);
    p.li(T1, 1 << (source % 32)).or(T0, T0, T1).sw(T0, S1, 0);
    let claim = THRESHOLD + CONTEXT_SIZE * u64::from(context) + CLAIM;
    p.li(S1, PLIC_BASE + claim);
}

/// What wakes the hart.
pub fn wakes(p: &mut Program, bits: u64) {
    p.li(T0, bits).csr(1, MIE, T0);
}

/// Harts start transfers, wait for their interrupts and start again, `rounds` times, on channels that several of them may hear of.
/// With `all`, all harts of a tile hear of all channels of its engine.
pub fn rounds(harts: &[u16], rounds: i32, all: bool) -> Vec<((TileId, usize), Program)> {
    let mut programs = Vec::new();
    for (tile, harts) in harts.iter().enumerate() {
        for port in 0..usize::from(*harts).max(1) {
            let (engine, mut p) = (tile as u64, Program::default());
            let number = port as u64 % 2;
            for heard in 0..2 {
                if all || heard == number {
                    let from = source(engine as u32, heard as u32);
                    listen(&mut p, context(port as u32), from, 1 + heard);
                }
            }
            wakes(&mut p, MEI);
            if port < 2 {
                let place = programs.len() as u64;
                let words = transfer(place, 64 * (3 + 2 * place as u32));
                describe(&mut p, channel(engine, number), &words);
                p.addi(T0, ZERO, START as i32).sd(T0, S0, CONTROL);
            }
            p.addi(S2, ZERO, rounds).addi(S3, ZERO, 1);
            let wait = p.here();
            p.word(WFI).lw(T2, S1, 0);
            p.branch(0, T2, ZERO, wait).marker(T2, SEEN);
            // The channel of the source: it asks no more, and starts again.
            p.li(S0, channel(engine, 0)).addi(T0, T2, -1);
            p.andi(T0, T0, 1).slli(T0, T0, 7).add(S0, S0, T0);
            p.sd(S3, S0, INTERRUPT).word(FENCE).sw(T2, S1, 0);
            p.addi(S2, S2, -1);
            let end = p.here();
            p.word(0).sd(S3, S0, CONTROL).jump(wait);
            let last = p.here();
            p.patch_branch(end, 0, S2, ZERO, last);
            p.word(WFI).jump(last);
            programs.push(((tile as TileId, port), p));
        }
    }
    programs
}
