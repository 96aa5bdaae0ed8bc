//! Time: ticks, and a more precise clock.
//!
//! Why it exists: activations are instants on the grid of ticks, measurements are not. What it deliberately does not know: how long a tick
//! is; the image says so.

/// Ticks since the timer of the chip was zero: the same number on all cores that share a timer. The paper's clock of 1 ms.
#[inline]
pub fn now() -> u64 {
    crate::kernel::now()
}

/// Cycles of this core since it started.
#[inline(always)]
pub fn cycles() -> u64 {
    bulkhead_hal::csr::cycle()
}
