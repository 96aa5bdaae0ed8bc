//! Which task waits for which tick.
//!
//! Why it exists: `delay until` must cost one store, and a tick at which no task is due one comparison. What it deliberately does
//! not know: what happens to the tasks that are due.

use core::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// No tick.
pub const NEVER: u64 = u64::MAX;

/// One tick for each member, in a table provided by the caller. The words are atomic only so that a table can be a `static` without
/// `unsafe`; only one core uses it.
#[derive(Debug)]
pub struct Alarms<'a> {
    times: &'a [AtomicU64],
    /// A lower bound on all alarms.
    earliest: u64,
}

impl<'a> Alarms<'a> {
    /// No alarms, whatever the table contained. Members beyond the 64th have none.
    pub fn new(times: &'a [AtomicU64]) -> Self {
        for time in times {
            time.store(NEVER, Relaxed);
        }
        Self::over(times)
    }

    /// No alarms, over a table that contains only [`NEVER`].
    pub const fn over(times: &'a [AtomicU64]) -> Self {
        Self {
            times,
            earliest: NEVER,
        }
    }

    /// A member waits for one tick. [`NEVER`]: it waits for none. A member that does not exist is ignored.
    #[inline]
    pub fn set(&mut self, member: u8, at: u64) {
        if let Some(time) = self.times.get(usize::from(member)) {
            time.store(at, Relaxed);
            self.earliest = self.earliest.min(at);
        }
    }

    /// No member is due before this tick.
    #[inline]
    pub fn earliest(&self) -> u64 {
        self.earliest
    }

    /// The members whose tick has come, as a set; their alarms are cleared. Visits every member, but only if one may be due.
    #[inline]
    pub fn due(&mut self, now: u64) -> u64 {
        let mut due = 0;
        if now < self.earliest {
            return due;
        }
        let mut earliest = NEVER;
        let mut bit = 1u64;
        for time in self.times {
            let at = time.load(Relaxed);
            if at <= now && at != NEVER {
                time.store(NEVER, Relaxed);
                due |= bit;
            } else {
                earliest = earliest.min(at);
            }
            bit <<= 1;
        }
        self.earliest = earliest;
        due
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn table<const N: usize>() -> [AtomicU64; N] {
        [const { AtomicU64::new(5) }; N]
    }

    #[test]
    fn members_are_due_once_and_in_time() {
        let table = table::<3>();
        let mut alarms = Alarms::new(&table);
        assert_eq!((alarms.earliest(), alarms.due(100)), (NEVER, 0));
        alarms.set(2, 7);
        alarms.set(0, 9);
        alarms.set(0, 8);
        alarms.set(3, 1);
        assert_eq!((alarms.due(6), alarms.due(7)), (0, 0b100));
        assert_eq!((alarms.earliest(), alarms.due(8)), (8, 0b001));
        assert_eq!((alarms.earliest(), alarms.due(u64::MAX)), (NEVER, 0));
    }

    #[test]
    fn an_alarm_can_be_taken_back_and_forever_never_comes() {
        let table = table::<2>();
        let mut alarms = Alarms::new(&table);
        alarms.set(1, 3);
        alarms.set(1, NEVER);
        assert_eq!((alarms.due(3), alarms.due(NEVER)), (0, 0));
    }

    #[test]
    fn the_sixty_fourth_member_has_a_place() {
        let table = table::<64>();
        let mut alarms = Alarms::new(&table);
        alarms.set(63, 1);
        assert_eq!(alarms.due(1), 1 << 63);
    }
}
