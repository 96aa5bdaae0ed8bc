//! The protocol of the timer service, and its queue of alarms.
//!
//! Why it exists: which alarm is answered first is a decision. What it deliberately does not know: clocks.

use crate::payer::{Credit, Reserved};
use crate::requests;

requests! {
    /// Answers when the clock shows `moment`, with the clock's value at that time (nanoseconds since reset).
    Sleep = 1 -> u64 {
        /// The time, in nanoseconds since reset.
        moment: u64,
    }
    /// Starts the client's periodic timer: it rings at `first` and then every `period`.
    Start = 2 -> u64 {
        /// When it rings first, nanoseconds since reset.
        first: u64,
        /// Period in nanoseconds; not 0.
        period: u64,
    }
    /// Answers when the client's periodic timer rings, with how often it has rung since the last answer.
    Next = 3 -> u64 {}
}

/// A periodic timer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Periodic {
    next: u64,
    period: u64,
}

impl Periodic {
    /// Rings at `first` and then every `period`, which is not 0.
    pub fn new(first: u64, period: u64) -> Option<Self> {
        (period > 0).then_some(Self {
            next: first,
            period,
        })
    }

    /// When it rings next.
    pub fn next(&self) -> u64 {
        self.next
    }

    /// How often it has rung up to now; restarts the count.
    pub fn take(&mut self, now: u64) -> u64 {
        if now < self.next {
            return 0;
        }
        let count = ((now - self.next) / self.period).saturating_add(1);
        self.next = self.next.saturating_add(count.saturating_mul(self.period));
        count
    }
}

/// Alarms in the order in which they are answered: of those that are due, the highest priority first (0 is the highest), then
/// the earliest, then the one that was set first.
#[derive(Debug)]
pub struct Alarms<T> {
    entries: Reserved<Credit, (u64, usize, T)>,
}

impl<T> Alarms<T> {
    /// A queue with room for this many alarms.
    pub fn with_capacity(places: usize) -> Self {
        Self {
            entries: Reserved::with_room(places),
        }
    }

    /// Sets an alarm.
    ///
    /// # Errors
    /// The item, if there is no room.
    pub fn set(&mut self, moment: u64, priority: usize, item: T) -> Result<(), T> {
        let entry = (moment, priority, item);
        self.entries.push(entry).map_err(|(.., item)| item)
    }

    /// How many there are.
    pub fn count(&self) -> usize {
        self.entries.len()
    }

    /// The item with this index, in the order in which alarms were set.
    pub fn item(&self, index: usize) -> Option<&T> {
        self.entries.get(index).map(|(_, _, item)| item)
    }

    /// Removes the item with this index.
    pub fn remove(&mut self, index: usize) -> Option<T> {
        (index < self.entries.len()).then(|| self.entries.remove(index).2)
    }

    /// The time of the earliest alarm.
    pub fn next(&self) -> Option<u64> {
        self.entries.iter().map(|entry| entry.0).min()
    }

    /// Takes the most important item that is due.
    pub fn take(&mut self, now: u64) -> Option<T> {
        let due = self.entries.iter().enumerate().filter(|(_, e)| e.0 <= now);
        let (index, _) = due.min_by_key(|(index, e)| (e.1, e.0, *index))?;
        // Keeps the order of the others.
        Some(self.entries.remove(index).2)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::vec::Vec;

    #[test]
    fn a_periodic_timer_counts_what_was_missed() {
        let mut timer = Periodic::new(100, 10).expect("a period");
        assert_eq!(timer.take(99), 0);
        assert_eq!(timer.take(100), 1);
        assert_eq!(timer.take(105), 0);
        assert_eq!(timer.take(139), 3);
        assert_eq!(timer.next(), 140);
        assert_eq!(Periodic::new(5, 0), None);
        let mut late = Periodic::new(0, 1).expect("a period");
        assert_eq!(late.take(u64::MAX - 1), u64::MAX);
        assert_eq!(late.take(u64::MAX), 1);
        let mut all = Periodic::new(0, 1).expect("a period");
        assert_eq!(all.take(u64::MAX), u64::MAX);
    }

    proptest! {
        /// Against a list that is sorted again for every question.
        #[test]
        fn the_most_important_due_alarm_comes_first(steps in proptest::collection::vec((any::<bool>(), 0u64..40, 0usize..4), 1..100)) {
            let mut alarms = Alarms::with_capacity(8);
            let mut model: Vec<(usize, u64, usize)> = Vec::new();
            for (id, (set, time, priority)) in steps.into_iter().enumerate() {
                if set {
                    let done = alarms.set(time, priority, id).is_ok();
                    prop_assert_eq!(done, model.len() < 8);
                    if done {
                        model.push((priority, time, id));
                    }
                } else {
                    model.sort_unstable();
                    let first = model.iter().position(|e| e.1 <= time);
                    let expected = first.map(|index| model.remove(index).2);
                    prop_assert_eq!(alarms.take(time), expected);
                }
                prop_assert_eq!(alarms.next(), model.iter().map(|e| e.1).min());
            }
        }
    }
}
