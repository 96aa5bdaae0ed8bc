//! Shared by the tests of DMA engines.

use super::*;
use bulkhead_abi::dma::{CHANNEL_SIZE, FIRST_CHANNEL, STATUS};
use bulkhead_abi::memory_map::TILE_REGISTERS;
use bulkhead_machine::machine::{Outcome, RunLimit};
use bulkhead_machine::types::Tick;

pub const BEFORE: u32 = 0x100;
pub const SEEN: u32 = 0x101;
pub const LIMIT: RunLimit = RunLimit { ticks: 1_000_000 };
/// Where programs keep data: in a different bank than their code.
pub const DATA: u64 = 0x2000;

/// [`mesh`] with a DMA engine of two channels in each tile, at the harts' clock.
pub fn with_dma(columns: u16, rows: u16) -> PlatformConfig {
    let mut config = mesh(columns, rows);
    for tile in &mut config.tiles {
        tile.dma = Some(DmaConfig {
            cycle: 2,
            ..DmaConfig::default()
        });
    }
    config
}

impl Program {
    /// Writes a descriptor to the registers of a channel of the tile's own engine; `S0` is then the address of the first channel's.
    /// Uses `T0`.
    pub fn describe(&mut self, channel: u64, words: &[u64; 8]) -> &mut Self {
        // csrr t0, mhartid: the tile's own window.
        self.li(S0, TILE_WINDOWS).word(0xf140_2073 | T0 << 7);
        self.slli(T0, T0, TILE_WINDOW_SHIFT).add(S0, S0, T0);
        self.li(T0, TILE_REGISTERS + FIRST_CHANNEL).add(S0, S0, T0);
        self.words_to(channel, words)
    }

    /// The same for the tile with this window.
    pub fn describe_at(&mut self, window: u64, channel: u64, words: &[u64; 8]) -> &mut Self {
        self.li(S0, window + TILE_REGISTERS + FIRST_CHANNEL);
        self.words_to(channel, words)
    }

    fn words_to(&mut self, channel: u64, words: &[u64; 8]) -> &mut Self {
        for (number, word) in words.iter().enumerate() {
            let place = CHANNEL_SIZE * channel + 8 * number as u64;
            self.li(T0, *word).sd(T0, S0, place);
        }
        self
    }
}

pub fn finish(machine: &mut Machine) {
    let end = machine.run(LIMIT, None);
    assert!(matches!(end, Outcome::Idle { .. }), "{end:?}");
}

pub fn marked(machine: &Machine, tile: TileId, kind: u32) -> Option<Tick> {
    let markers = machine.markers();
    let mut own = markers
        .iter()
        .filter(|m| m.tile == tile && u32::from(m.kind) == kind);
    own.next().map(|marker| marker.tick)
}

pub fn word(machine: &Machine, physical: u64) -> u64 {
    let mut word = [0; 8];
    machine.peek(0, physical, &mut word).expect("memory");
    u64::from_le_bytes(word)
}

pub fn load_words(machine: &mut Machine, tile: TileId, physical: u64, words: &[u64]) {
    let bytes: Vec<u8> = words.iter().flat_map(|w| w.to_le_bytes()).collect();
    machine.load_tile(tile, physical, &bytes).expect("memory");
}

/// A register of a channel, as a tool sees it.
pub fn register(machine: &Machine, tile: TileId, channel: u64, offset: u64) -> u64 {
    let place = FIRST_CHANNEL + CHANNEL_SIZE * channel + offset;
    machine.dma_register(tile, place).expect("a register")
}

/// State and cause of a channel.
pub fn status(machine: &Machine, tile: TileId, channel: u64) -> (u64, u64) {
    let status = register(machine, tile, channel, STATUS);
    (status & 0xFF, status >> 8)
}
