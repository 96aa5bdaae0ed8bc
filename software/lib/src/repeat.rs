//! Commands of the unit that are repeated: after a missing translation, after an abort, and, for calls, until the receiver has a slot.
//!
//! Why it exists: every operation on a gate repeats its command by one of two rules. What it deliberately does not know: gates.

use crate::time;
use bulkhead_abi::dtu::{DtuError, PAGE_SIZE};
use bulkhead_abi::tilemux::Ecall;
use bulkhead_user::user;

type Result = core::result::Result<(), DtuError>;

/// Decides whether to repeat a command: after a missing translation that TileMux could insert, or an abort by TileMux.
#[cold]
#[inline(never)]
pub fn repair(error: DtuError, address: u64, rights: u64) -> Result {
    match error {
        DtuError::TranslationFault => {
            match user::ecall(Ecall::Translate, address & !(PAGE_SIZE - 1), rights) {
                0 => Ok(()),
                _ => Err(error),
            }
        }
        DtuError::Aborted | DtuError::Busy => Ok(()),
        error => Err(error),
    }
}

/// Nanoseconds until a call looks again whether the receiver has a slot.
pub const PAUSE: u64 = 10_000;

/// Like [`repair`], and waits for a slot of the receiver. The slots belong to the gate, so they may still hold messages of the gate's
/// previous holder, such as an activity's predecessor. Only the receiver can free them, and no sender is notified when it does.
#[cold]
#[inline(never)]
pub fn repair_or_wait(error: DtuError, address: u64, rights: u64) -> Result {
    match error {
        DtuError::NoSpace => {
            time::sleep_until(time::now() + PAUSE);
            Ok(())
        }
        error => repair(error, address, rights),
    }
}

/// Runs a command until it ends for good.
#[inline(always)]
pub fn repeat(address: u64, rights: u64, command: impl FnMut() -> Result) -> Result {
    repeat_with(repair, address, rights, command)
}

#[inline(always)]
pub fn repeat_with(
    repair: fn(DtuError, u64, u64) -> Result,
    address: u64,
    rights: u64,
    mut command: impl FnMut() -> Result,
) -> Result {
    loop {
        match command() {
            Ok(()) => return Ok(()),
            Err(error) => repair(error, address, rights)?,
        }
    }
}
