//! Clocks and waiting.
//!
//! Why it exists: measuring and pacing. What it deliberately does not know: tasks.

use bulkhead_abi::dtu::{NO_ENDPOINT, NO_TIMEOUT};
use bulkhead_abi::tilemux::Ecall;
use bulkhead_hal::{dtu, user};

pub use bulkhead_hal::csr::{cycle, time};

/// Nanoseconds since reset, from the DTU; the same on all tiles.
#[inline(always)]
pub fn now() -> u64 {
    dtu::time()
}

/// Sleeps until the clock of [`now`] shows `moment` (nanoseconds); messages do not wake it.
pub fn sleep_until(moment: u64) {
    // Nothing comes to this endpoint outside of system calls.
    let quiet = user::environment().syscall_reply;
    while now() < moment {
        wait(quiet, moment);
    }
}

/// Sleeps until a message for `endpoint` is unread or the clock shows `moment` (0: no end). It may return earlier: the
/// caller looks whether what it waits for is there.
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

/// Longest wait without a look around, in nanoseconds.
pub(crate) const NAP: u64 = 10_000_000;

/// Sleeps until a message for `endpoint` is unread, but not for ever; for who is alone on the tile.
#[inline(always)]
pub(crate) fn nap_alone(endpoint: u16) {
    dtu::sleep(endpoint, NAP);
}

/// The same through TileMux.
pub(crate) fn nap_shared(endpoint: u16) {
    user::ecall(Ecall::Wait, endpoint.into(), now() + NAP);
}

/// The same for anybody.
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
