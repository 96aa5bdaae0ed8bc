//! A peripheral beside the tiles of a bare chip: storage, camera, streaming accelerator.
//!
//! What it deliberately does not know: registers ([`bulkhead_abi::peripheral`]), and programs; it has the numbers of the harts that may
//! use it, and the ranges of memory that it may use.

use super::{ConfigError, MemoryMap, PlatformConfig, PlatformKind};
use crate::types::{Owner, Tick, TileId};
use bulkhead_abi::memory_map::DMA_ENGINES;
use bulkhead_abi::peripheral::PACKET_HEADER;

/// A peripheral.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PeripheralConfig {
    /// Number on the network.
    pub id: TileId,
    /// Router that it is attached to (ignored by a crossbar).
    pub router: u16,
    /// Ticks a cycle.
    pub cycle: Tick,
    /// Cycles from the arrival of an access to a register to its answer; at least 1.
    pub registers: u64,
    /// The tile that it interrupts; that tile has an interrupt controller.
    pub interrupts: Option<TileId>,
    /// Bytes of its longest access to memory: a power of two from 8 to a chunk of the network.
    pub burst: u32,
    /// Maximum number of accesses under way: 1 to 64.
    pub outstanding: u32,
    /// Cycles from the beginning of a command to its first access; at least 1.
    pub startup: u64,
    /// Maximum bytes per second that it reads from memory, and that it writes to memory.
    pub rate: u64,
    /// Bytes that it may read, or write, at once after a rest; at least a burst.
    pub bucket: u64,
    /// Maximum number of unfinished commands (for a camera, packets): 1 to 256.
    pub queue: u32,
    /// Its kind.
    pub kind: PeripheralKind,
    /// The harts that may use its registers; `None`: all.
    pub users: Option<Vec<Owner>>,
    /// The ranges of physical addresses that it may use, each a first address and bytes.
    pub windows: Vec<(u64, u64)>,
    /// Its accesses are coherent with the caches of the coherent clusters. At least one exists, and bursts are not longer than its lines.
    pub coherent: bool,
}

/// The kind of a peripheral.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PeripheralKind {
    /// It has blocks.
    Storage {
        /// Bytes of a block: a power of two, at least 8.
        block: u32,
        /// Bytes of its content: whole blocks, at most [`CONTENT_MAX`].
        size: u64,
        /// Seed of the content, before a tool loads another one.
        seed: u64,
    },
    /// It delivers frames.
    Camera {
        /// Ticks from the beginning of a frame to the beginning of the next one.
        period: Tick,
        /// Packets of a frame.
        lines: u32,
        /// Bytes of a packet: a multiple of eight, more than its header.
        packet: u32,
        /// Ticks from a packet to the next one.
        gap: Tick,
        /// Seed of the packets.
        seed: u64,
    },
    /// It reads, computes and writes.
    Accelerator {
        /// Bytes per second that it computes.
        compute: u64,
    },
}

/// Maximum bytes of a storage device: 64 MiB.
pub const CONTENT_MAX: u64 = 64 << 20;
/// Maximum bytes of a packet.
const PACKET_MAX: u32 = 64 << 10;

impl PeripheralConfig {
    fn validate(&self, chunk: u32) -> Result<(), String> {
        let at_least_1 = [self.cycle, self.registers, self.startup, self.rate];
        if at_least_1.contains(&0) {
            return Err("cycle, registers, startup and rate must be at least 1".into());
        }
        if !self.burst.is_power_of_two() || !(8..=chunk).contains(&self.burst) {
            return Err(format!(
                "a burst must be a power of two from 8 to a network chunk of {chunk}, not {}",
                self.burst
            ));
        }
        if self.bucket < self.burst.into() {
            return Err(format!(
                "its bucket of {} bytes is smaller than a burst of {}",
                self.bucket, self.burst
            ));
        }
        if !(1..=64).contains(&self.outstanding) || !(1..=256).contains(&self.queue) {
            return Err("1 to 64 accesses and 1 to 256 commands may be under way".into());
        }
        match self.kind {
            PeripheralKind::Storage { block, size, .. } => {
                let blocks = block.is_power_of_two() && block >= 8;
                if !blocks || size == 0 || !size.is_multiple_of(block.into()) || size > CONTENT_MAX
                {
                    return Err(format!(
                        "{size} bytes are not whole blocks of {block}, or more than {CONTENT_MAX}"
                    ));
                }
            }
            PeripheralKind::Camera {
                period,
                lines,
                packet,
                gap,
                ..
            } => {
                let valid = packet.is_multiple_of(8)
                    && (PACKET_HEADER + 8..=PACKET_MAX.into()).contains(&packet.into());
                if !valid || lines == 0 || gap == 0 {
                    return Err(format!(
                        "{lines} packets of {packet} bytes, {gap} ticks apart, are no frame"
                    ));
                }
                if gap.checked_mul(lines.into()).is_none_or(|all| all > period) {
                    return Err(format!(
                        "{lines} packets {gap} ticks apart do not fit a frame of {period} ticks"
                    ));
                }
            }
            PeripheralKind::Accelerator { compute: 0 } => {
                return Err("it must compute at least a byte per second".into());
            }
            PeripheralKind::Accelerator { .. } => {}
        }
        Ok(())
    }
}

impl PlatformConfig {
    /// Peripherals: on bare chips without a mesh, each in memory that exists.
    pub(super) fn validate_peripherals(&self) -> Result<(), ConfigError> {
        let fail = |what: String| {
            Err(ConfigError {
                platform: self.name.clone(),
                what,
            })
        };
        if self.peripherals.is_empty() {
            return Ok(());
        }
        if self.kind != PlatformKind::Bare {
            return fail("a peripheral needs a bare platform".into());
        }
        let pages = self.engines.len() + self.peripherals.len();
        if pages as u64 > DMA_ENGINES {
            return fail(format!(
                "at most {DMA_ENGINES} dma engines and peripherals are possible"
            ));
        }
        let map = MemoryMap::new(self);
        for one in &self.peripherals {
            let id = one.id;
            if let Err(what) = one.validate(self.network.chunk) {
                return fail(format!("peripheral {id}: {what}"));
            }
            let line = self.coherent_line();
            if one.coherent && one.burst > line {
                return fail(format!(
                    "peripheral {id}: coherent bursts are at most a line of the coherent clusters ({line} bytes; 0: there are none), not {}",
                    one.burst
                ));
            }
            if let Some(tile) = one.interrupts
                && !self.tiles.iter().any(|other| other.id == tile)
            {
                return fail(format!(
                    "peripheral {id} interrupts tile {tile}, which does not exist"
                ));
            }
            if let Some((base, bytes)) = one.windows.iter().find(|w| !map.has(w.0, w.1)) {
                return fail(format!(
                    "peripheral {id} has {bytes} bytes at {base:#x}, which are in no memory"
                ));
            }
        }
        Ok(())
    }
}
