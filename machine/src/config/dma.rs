//! A DMA engine of a tile with a local memory.
//!
//! What it deliberately does not know: registers and descriptors ([`bulkhead_abi::dma`]).

use crate::types::Tick;
use bulkhead_abi::dma::CHANNELS_MAX;

/// A DMA engine.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DmaConfig {
    /// Ticks a cycle.
    pub cycle: Tick,
    /// Channels, 1 to 8.
    pub channels: u32,
    /// Elements of a channel under way at most, from the turn for the read to the acknowledgement of the write: 1 to 64.
    pub outstanding: u32,
    /// Cycles from a start, or from the last word of a descriptor, to the first access; at least 1.
    pub startup: u64,
}

/// Most elements of a channel under way.
const OUTSTANDING_MAX: u32 = 64;

impl DmaConfig {
    /// Checks what the machine relies on.
    pub(super) fn validate(&self) -> Result<(), String> {
        if self.cycle == 0 || self.startup == 0 {
            return Err("dma: cycle and startup must be at least 1".into());
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

/// Two channels with 32 elements under way, and one tick a cycle.
impl Default for DmaConfig {
    fn default() -> Self {
        Self {
            cycle: 1,
            channels: 2,
            outstanding: 32,
            startup: 4,
        }
    }
}
