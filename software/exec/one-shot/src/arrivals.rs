//! Sporadic and aperiodic activation: events release jobs, no closer together than a minimum.
//!
//! Why it exists: a bound for lower tasks holds only if events cannot release a task more often than its minimum inter-arrival time
//! permits, however fast they come. What it deliberately does not know: where events come from. Times are ticks.
//!
//! One event is kept while a job is in progress; later ones are lost, and their callers are told.

use crate::Task;

const NOBODY: Task = Task::MAX;

/// The effect of an event.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Arrival {
    /// It releases this task at this tick, now or later.
    Releases(Task, u64),
    /// It is kept until the task waits again.
    Kept,
    /// One is kept already; this one is lost.
    Lost,
}

/// The result of a task's wait for an event.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Awaiting {
    /// An event was kept: its job is released at this tick, now or later.
    Until(u64),
    /// It waits.
    Waits,
    /// Another task waits here already, so this one cannot.
    Taken,
}

/// Events for one task. A minimum of 0: aperiodic.
#[derive(Clone, Copy, Debug)]
pub struct Arrivals {
    minimum: u64,
    /// No release before this tick.
    next: u64,
    kept: bool,
    waits: Task,
}

impl Arrivals {
    /// Events whose jobs are released at least `minimum` ticks apart.
    pub const fn new(minimum: u64) -> Self {
        Self {
            minimum,
            next: 0,
            kept: false,
            waits: NOBODY,
        }
    }

    fn release(&mut self, now: u64) -> u64 {
        let at = now.max(self.next);
        self.next = at.saturating_add(self.minimum);
        at
    }

    /// An event arrives.
    pub fn arrive(&mut self, now: u64) -> Arrival {
        if self.waits != NOBODY {
            let task = core::mem::replace(&mut self.waits, NOBODY);
            return Arrival::Releases(task, self.release(now));
        }
        match core::mem::replace(&mut self.kept, true) {
            true => Arrival::Lost,
            false => Arrival::Kept,
        }
    }

    /// A task waits for the next event.
    pub fn wait(&mut self, task: Task, now: u64) -> Awaiting {
        if self.waits != NOBODY {
            return Awaiting::Taken;
        }
        if core::mem::take(&mut self.kept) {
            return Awaiting::Until(self.release(now));
        }
        self.waits = task;
        Awaiting::Waits
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_burst_is_spread_or_lost() {
        let mut events = Arrivals::new(10);
        assert_eq!(events.wait(2, 0), Awaiting::Waits);
        assert_eq!(events.wait(3, 0), Awaiting::Taken);
        assert_eq!(events.arrive(3), Arrival::Releases(2, 3));
        assert_eq!(
            [events.arrive(4), events.arrive(4)],
            [Arrival::Kept, Arrival::Lost]
        );
        assert_eq!(events.wait(2, 5), Awaiting::Until(13));
        // The job that is released at 13 is over at 14.
        assert_eq!(events.wait(2, 14), Awaiting::Waits);
        assert_eq!(events.arrive(15), Arrival::Releases(2, 23));
        assert_eq!(events.wait(2, 40), Awaiting::Waits);
        assert_eq!(events.arrive(50), Arrival::Releases(2, 50));
    }

    #[test]
    fn without_a_minimum_events_release_at_once() {
        let mut events = Arrivals::new(0);
        assert_eq!(events.wait(0, 7), Awaiting::Waits);
        assert_eq!(events.arrive(7), Arrival::Releases(0, 7));
        assert_eq!(events.arrive(7), Arrival::Kept);
        assert_eq!(events.wait(0, 7), Awaiting::Until(7));
    }

    proptest! {
        /// However events arrive, releases keep their distance, none is before its event, and each event releases a job or is reported
        /// lost.
        #[test]
        fn releases_keep_their_distance(minimum in 0u64..20, steps in proptest::collection::vec((0u64..8, any::<bool>()), 0..80)) {
            let mut events = Arrivals::new(minimum);
            let (mut now, mut arrived, mut lost) = (0, 0, 0);
            // Moments of events that were not reported lost and have released nothing yet.
            let mut open = Vec::new();
            let mut releases: Vec<u64> = Vec::new();
            let mut waits = false;
            for (pause, arrives) in steps {
                now += pause;
                let mut released = None;
                if arrives {
                    arrived += 1;
                    match events.arrive(now) {
                        Arrival::Releases(0, at) => {
                            prop_assert!(waits);
                            open.push(now);
                            released = Some(at);
                        }
                        Arrival::Kept => open.push(now),
                        Arrival::Lost => lost += 1,
                        other => prop_assert!(false, "{other:?}"),
                    }
                } else if !waits && releases.last().is_none_or(|at| *at <= now) {
                    match events.wait(0, now) {
                        Awaiting::Until(at) => released = Some(at),
                        Awaiting::Waits => waits = true,
                        Awaiting::Taken => prop_assert!(false),
                    }
                }
                if let Some(at) = released {
                    waits = false;
                    prop_assert!(at >= now && at >= open.remove(0));
                    prop_assert!(releases.last().is_none_or(|last| at >= last + minimum));
                    releases.push(at);
                }
                prop_assert!(open.len() <= 1);
                prop_assert_eq!(arrived, releases.len() + open.len() + lost);
            }
        }
    }
}
