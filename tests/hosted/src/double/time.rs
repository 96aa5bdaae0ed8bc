//! The clock: it shows what the test says, and a program that sleeps moves it.

use std::cell::Cell;

thread_local! {
    static NOW: Cell<u64> = const { Cell::new(0) };
}

/// Nanoseconds since reset.
pub fn now() -> u64 {
    NOW.get()
}

/// Sets the clock.
pub fn set(now: u64) {
    NOW.set(now);
}

/// Sets the clock to this moment; nothing else happens until then.
pub fn sleep_until(moment: u64) {
    NOW.set(now().max(moment));
}
