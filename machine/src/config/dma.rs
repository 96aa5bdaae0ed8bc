//! A DMA engine: of a tile with a local memory, or a separate part of the network.
//!
//! What it deliberately does not know: registers and descriptors ([`bulkhead_abi::dma`]).

use super::{ConfigError, PlatformConfig, PlatformKind};
use crate::types::{Tick, TileId};
use bulkhead_abi::dma::CHANNELS_MAX;
use bulkhead_abi::memory_map::DMA_ENGINES;

/// A DMA engine.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DmaConfig {
    /// Ticks a cycle.
    pub cycle: Tick,
    /// Channels, 1 to 8.
    pub channels: u32,
    /// Maximum number of a channel's accesses under way, from the turn for the read to the acknowledgement of the write: 1 to 64.
    pub outstanding: u32,
    /// Cycles from a start, or from the last word of a descriptor, to the first access; at least 1.
    pub startup: u64,
    /// Bytes of a burst, a power of two: adjacent elements travel together. 0: each element is a separate access.
    pub burst: u32,
    /// Bytes that each side moves per cycle.
    pub width: u32,
}

/// A DMA engine as a separate part: all harts of a bare chip reach its registers over the network.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EngineConfig {
    /// Number on the network.
    pub id: TileId,
    /// Router that it is attached to (ignored by a crossbar).
    pub router: u16,
    /// The engine.
    pub dma: DmaConfig,
    /// Cycles from the arrival of an access to a register to its answer; at least 1.
    pub registers: u64,
    /// The tile that it interrupts; that tile has an interrupt controller.
    pub interrupts: Option<TileId>,
    /// Its accesses are coherent with the caches of the coherent clusters. At least one exists, and bursts are not longer than its lines.
    pub coherent: bool,
}

/// Maximum number of a channel's accesses under way.
const OUTSTANDING_MAX: u32 = 64;

impl DmaConfig {
    /// Checks what the machine relies on.
    pub(super) fn validate(&self) -> Result<(), String> {
        if self.cycle == 0 || self.startup == 0 || self.width == 0 {
            return Err("dma: cycle, startup and width must be at least 1".into());
        }
        if !(1..=CHANNELS_MAX).contains(&self.channels) {
            return Err(format!("dma: 1 to {CHANNELS_MAX} channels are possible"));
        }
        if !(1..=OUTSTANDING_MAX).contains(&self.outstanding) {
            return Err(format!(
                "dma: 1 to {OUTSTANDING_MAX} elements may be under way"
            ));
        }
        Ok(())
    }
}

impl PlatformConfig {
    /// Whether a tile takes interrupts of other parts.
    pub fn is_interrupted(&self, tile: TileId) -> bool {
        self.interrupted_by(tile).next().is_some()
    }

    /// The parts beside the tiles that interrupt a tile, by their places among these parts.
    pub fn interrupted_by(&self, tile: TileId) -> impl Iterator<Item = usize> {
        let engines = self.engines.iter().map(|engine| engine.interrupts);
        let devices = engines.chain(self.peripherals.iter().map(|one| one.interrupts));
        let devices = devices.map(move |one| one == Some(tile));
        // Any hart may let others ring its bell.
        let all = devices.chain(self.doorbells.iter().map(|_| true));
        all.enumerate().filter(|(_, does)| *does).map(|one| one.0)
    }

    /// The parts beside the tiles that are no memories, in the order of their places on the network: number and router. Engines come first,
    /// then peripherals, then doorbells.
    pub fn beside(&self) -> impl Iterator<Item = (TileId, u16)> {
        let engines = self.engines.iter().map(|one| (one.id, one.router));
        let devices = engines.chain(self.peripherals.iter().map(|one| (one.id, one.router)));
        devices.chain(self.doorbells.iter().map(|one| (one.id, one.router)))
    }

    /// DMA engines that are parts of their own: on bare chips without a mesh, with bursts that a packet can carry.
    pub(super) fn validate_engines(&self) -> Result<(), ConfigError> {
        let fail = |what: String| {
            Err(ConfigError {
                platform: self.name.clone(),
                what,
            })
        };
        if self.engines.is_empty() {
            return Ok(());
        }
        if self.kind != PlatformKind::Bare {
            return fail("a dma engine beside the tiles needs a bare platform".into());
        }
        if self.engines.len() as u64 > DMA_ENGINES {
            return fail(format!("at most {DMA_ENGINES} dma engines are possible"));
        }
        for engine in &self.engines {
            let id = engine.id;
            if let Err(what) = engine.dma.validate() {
                return fail(format!("engine {id}: {what}"));
            }
            if engine.registers == 0 {
                return fail(format!("engine {id}: registers must be at least 1"));
            }
            if let Some(tile) = engine.interrupts
                && !self.tiles.iter().any(|one| one.id == tile)
            {
                return fail(format!(
                    "engine {id} interrupts tile {tile}, which does not exist"
                ));
            }
            let (burst, chunk) = (engine.dma.burst, self.network.chunk);
            if burst != 0 && !burst.is_power_of_two() {
                return fail(format!(
                    "engine {id}: a burst must be a power of two, not {burst}"
                ));
            }
            let line = self.coherent_line();
            if engine.coherent && burst.max(8) > line {
                return fail(format!(
                    "engine {id}: coherent bursts are at most a line of the coherent clusters ({line} bytes; 0: there are none), not {burst}"
                ));
            }
            if burst.max(8) > chunk {
                return fail(format!(
                    "engine {id}: a burst of {burst} bytes is larger than a network chunk of {chunk}"
                ));
            }
        }
        Ok(())
    }
}

/// Two channels with 32 elements under way, and one tick a cycle.
impl Default for DmaConfig {
    fn default() -> Self {
        Self {
            cycle: 1,
            channels: 2,
            outstanding: 32,
            startup: 4,
            burst: 0,
            width: 8,
        }
    }
}
