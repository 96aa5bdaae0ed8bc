//! Address translators: a memory whose window is larger than it is.
//!
//! What it deliberately does not know: which bits a cache uses, and what a program does with its names.

use super::{ConfigError, HOME_ALIGNMENT, MemoryConfig, PlatformConfig, PlatformKind};
use bulkhead_abi::translator::insert_bits;

impl MemoryConfig {
    /// Bytes of the window in which the memory is found.
    pub fn window(&self) -> u64 {
        self.size << self.dropped.count_ones()
    }

    /// The memory has this alignment among the names that caches use, so that names have the colours of addresses.
    pub fn alignment(&self) -> u64 {
        match self.dropped {
            0 => HOME_ALIGNMENT,
            dropped => 2 << dropped.ilog2(),
        }
    }

    /// Bytes that are contiguous under every name: up to the lowest bit that is dropped.
    pub fn contiguous(&self) -> u64 {
        match self.dropped {
            0 => u64::MAX,
            dropped => dropped & dropped.wrapping_neg(),
        }
    }

    /// Every name of the byte at an address behind the translator.
    pub fn names(&self, address: u64) -> impl Iterator<Item = u64> {
        let dropped = self.dropped;
        (0..1 << dropped.count_ones()).map(move |value| insert_bits(address, dropped, value))
    }
}

impl PlatformConfig {
    /// Translators drop bits above those in a page, and no access has bytes under two of them.
    pub(super) fn validate_translators(&self) -> Result<(), ConfigError> {
        for memory in self.memories.iter().filter(|one| one.dropped != 0) {
            let fail = |what: &str| {
                Err(ConfigError {
                    platform: self.name.clone(),
                    what: format!("memory tile {}: a translator {what}", memory.id),
                })
            };
            if self.kind != PlatformKind::Bare {
                return fail("needs a bare platform");
            }
            if !memory.second_port_of.is_empty() {
                return fail("is in front of a memory with bytes of its own");
            }
            let chunk = memory.contiguous();
            if chunk < HOME_ALIGNMENT {
                return fail("drops no bits within a page of 4 KiB");
            }
            let window = memory.size.checked_shl(memory.dropped.count_ones());
            let window = window.filter(|_| memory.dropped.count_ones() <= 8);
            if !memory.size.is_multiple_of(chunk) || window.is_none_or(|w| w <= memory.dropped) {
                return fail(
                    "drops at most 8 bits, all of them within its window, and the memory is a multiple of what they leave together",
                );
            }
            let mut bursts = self.engines.iter().map(|engine| engine.dma.burst);
            if bursts.any(|burst| u64::from(burst) > chunk) {
                return fail("drops no bits within a burst of a DMA engine");
            }
        }
        Ok(())
    }
}
