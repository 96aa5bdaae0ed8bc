//! Clocks and waiting.
//!
//! Why it exists: measuring and pacing. What it deliberately does not know: tasks.

use bulkhead_abi::dtu::{NO_ENDPOINT, NO_TIMEOUT};
use bulkhead_abi::tilemux::Ecall;
use bulkhead_hal::dtu;
use bulkhead_user::user;

pub use bulkhead_hal::csr::{cycle, time};

/// Nanoseconds since reset, from the DTU; the same on all tiles.
#[inline(always)]
pub fn now() -> u64 {
    dtu::time()
}

/// Measures a duration in cycles of the hart. A reading takes one cycle; a reading of the unit's clock takes as long as any device
/// access. Cycles are counted even while the unit lets the hart sleep.
#[derive(Clone, Copy, Debug)]
pub struct Stopwatch(u64);

impl From<u64> for Stopwatch {
    /// A stopwatch that started at this [`cycle`].
    #[inline(always)]
    fn from(cycle: u64) -> Self {
        Self(cycle)
    }
}

impl Stopwatch {
    /// Starts a stopwatch.
    #[inline(always)]
    pub fn start() -> Self {
        Self(cycle())
    }

    /// Nanoseconds since the start.
    #[inline(always)]
    pub fn nanoseconds(self, pace: Pace) -> u64 {
        let cycles = cycle().wrapping_sub(self.0);
        ((u128::from(cycles) * u128::from(pace.0)) >> 32) as u64
    }
}

/// Nanoseconds of a cycle of this tile's harts, in units of 2^-32. Keep it if you measure often, because computing it takes a
/// division.
#[derive(Clone, Copy, Debug)]
pub struct Pace(u64);

impl Pace {
    /// The pace of this tile.
    pub fn of_tile() -> Self {
        Self((1_000_000_000 << 32) / user::environment().frequency.max(1))
    }
}

/// Sleeps until the clock of [`now`] shows `moment` (nanoseconds); messages do not wake it.
pub fn sleep_until(moment: u64) {
    // Nothing arrives at this endpoint outside system calls.
    let quiet = user::environment().syscall_reply;
    while now() < moment {
        wait(quiet, moment);
    }
}

/// Sleeps until a message for `endpoint` is unread or the clock shows `moment` (0: no end). It may return earlier: the caller must
/// check again.
#[inline(always)]
pub(crate) fn wait(endpoint: u16, moment: u64) {
    if user::is_shared() {
        user::ecall(Ecall::Wait, endpoint.into(), moment);
        return;
    }
    // Alone on the tile: the hart sleeps without entering TileMux.
    let timeout = match moment {
        0 => NO_TIMEOUT,
        moment => match moment.checked_sub(now()) {
            None | Some(0) => return,
            Some(timeout) => timeout,
        },
    };
    dtu::sleep(endpoint, timeout);
}

/// Longest wait between two checks, in nanoseconds.
pub(crate) const NAP: u64 = 10_000_000;

/// Sleeps until a message for `endpoint` is unread, but at most [`NAP`]; for an activity that is alone on its tile.
#[inline(always)]
pub(crate) fn nap_alone(endpoint: u16) {
    dtu::sleep(endpoint, NAP);
}

/// The same through TileMux.
pub(crate) fn nap_shared(endpoint: u16) {
    user::ecall(Ecall::Wait, endpoint.into(), now() + NAP);
}

/// The same, whether or not the tile is shared.
#[inline(always)]
pub(crate) fn nap(endpoint: u16) {
    match user::is_shared() {
        true => nap_shared(endpoint),
        false => nap_alone(endpoint),
    }
}

/// Waits for a message on any endpoint of this activity.
pub fn wait_any() {
    wait(NO_ENDPOINT, 0);
}
