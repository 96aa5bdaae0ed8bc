//! Tightly coupled memories of tiles whose harts have caches, too.
//!
//! What it deliberately does not know: where they are among physical addresses ([`crate::tcm::TcmMap`]).

use super::{ConfigError, LocalMemoryConfig, PlatformConfig, PlatformKind, TileConfig};
use crate::types::LINE_MAX;
use bulkhead_abi::memory_map::{TCM_WINDOW, TCM_WINDOWS};

/// Maximum number of such memories of a tile: one for instructions and one for data.
pub const TCM_MAX: usize = 2;
/// A bank has at least a page, so no burst of a DMA engine is split between two banks.
const BANK: u64 = 0x1000;

impl LocalMemoryConfig {
    /// Checks banks and ports. A bank has at least `bank` bytes.
    pub(super) fn validate(&self, bank: u64) -> Result<(), String> {
        if self.cycle == 0 || self.latency == 0 {
            return Err("the clock and the latency must be at least 1".into());
        }
        let banks = u64::from(self.banks.max(1));
        let each = self.size / banks;
        if banks * each != self.size || !each.is_power_of_two() || each < bank {
            return Err(format!(
                "{} banks do not divide {} bytes into powers of two from {bank} on",
                self.banks, self.size
            ));
        }
        if !(1..=2).contains(&self.ports) {
            return Err("a bank has 1 or 2 ports".into());
        }
        if !self.width.is_power_of_two() || !(8..=64).contains(&self.width) {
            return Err("a port moves 8, 16, 32 or 64 bytes a cycle".into());
        }
        Ok(())
    }
}

impl PlatformConfig {
    /// Tightly coupled memories: only on tiles of bare chips that have one in-order hart and private caches.
    pub(super) fn validate_tcms(&self) -> Result<(), ConfigError> {
        let fail = |what: String| {
            Err(ConfigError {
                platform: self.name.clone(),
                what,
            })
        };
        let with: Vec<&TileConfig> = self.tiles.iter().filter(|t| !t.tcm.is_empty()).collect();
        if with.is_empty() {
            return Ok(());
        }
        if self.kind != PlatformKind::Bare {
            return fail("tightly coupled memories need a bare platform".into());
        }
        if with.len() as u64 > TCM_WINDOWS {
            return fail(format!(
                "at most {TCM_WINDOWS} tiles can have tightly coupled memories"
            ));
        }
        let bursts = self.engines.iter().map(|engine| engine.dma.burst.into());
        if bursts.max().unwrap_or(0) > BANK {
            return fail(format!(
                "beside tightly coupled memories, a burst has at most {BANK} bytes"
            ));
        }
        for tile in with {
            if let Err(what) = tile.validate_tcm() {
                return fail(format!("tile {}: tightly coupled memory: {what}", tile.id));
            }
        }
        Ok(())
    }
}

impl TileConfig {
    fn validate_tcm(&self) -> Result<(), String> {
        if self.cluster.is_some() || self.second_hart || self.network_card.is_some() {
            return Err("the tile has one hart, and no cluster and no network card".into());
        }
        if self.hart.interval.is_some() {
            return Err("the hart's pipeline is in order".into());
        }
        if self.tcm.len() > TCM_MAX {
            return Err(format!("a tile has at most {TCM_MAX}"));
        }
        let all: u64 = self.tcm.iter().map(|memory| memory.size).sum();
        if all > TCM_WINDOW {
            return Err(format!("{all} bytes do not fit a window of {TCM_WINDOW}"));
        }
        for memory in &self.tcm {
            memory.validate(BANK.max(LINE_MAX as u64))?;
            if memory.guard != 0 {
                return Err("it has no guard".into());
            }
        }
        Ok(())
    }
}
