//! The clock: it shows what the test says, and a program that sleeps moves it.

use std::cell::Cell;

thread_local! {
    static NOW: Cell<u64> = const { Cell::new(0) };
}

/// Nanoseconds since reset.
pub fn now() -> u64 {
    NOW.get()
}

/// The clock shows this from now on.
pub fn set(now: u64) {
    NOW.set(now);
}

/// Nothing else happens until then.
pub fn sleep_until(moment: u64) {
    NOW.set(now().max(moment));
}
