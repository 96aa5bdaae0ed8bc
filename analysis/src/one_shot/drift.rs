//! Time of a core whose timer is not exact.
//!
//! Why it exists: the kernel counts periods with the core's own timer, so they take another time. What it deliberately does not know: what is counted.

use bulkhead_model::platform::Platform;

/// Parts of a drift.
const MILLION: u64 = 1_000_000;

/// The amount by which the timer of a core is faster than the timebase, in parts per million.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Drift(pub i32);

impl Drift {
    pub fn of(platform: &Platform, core: u16) -> Self {
        Self(platform.tile(core).map_or(0, |tile| tile.clock_drift))
    }

    /// The time that the core's timer takes for this many parts of time, rounded down to whole `unit`s.
    pub fn shorten(self, time: u64, unit: u64) -> u64 {
        if self.0 == 0 {
            return time;
        }
        let speed = MILLION.saturating_add_signed(self.0.into()).max(1);
        let real = u128::from(time) * u128::from(MILLION) / u128::from(speed);
        let real = u64::try_from(real).unwrap_or(u64::MAX);
        real - real % unit
    }
}
