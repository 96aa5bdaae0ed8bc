//! How long activities lived, and what follows for work that they began but did not end.
//!
//! Why it exists: something in progress when a run ends may still complete in time, unless its program is gone: then it never completes.
//! This is the only rule for that, for jobs and for samples of flows, in `run`, `audit` and `reproduce`. What it deliberately does not
//! know: what reports how an activity ended, and what a deadline is worth.

use bulkhead_machine::types::Owner;
use std::collections::BTreeMap;

/// How an activity ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ending {
    /// It ended by itself, by an error, or because it was stopped while the system continued.
    Gone,
    /// The whole system was over and the activity was stopped for that reason, which cut its work off.
    Over,
}

/// When an activity ended, and how.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct End {
    /// In ticks.
    pub at: u64,
    /// How.
    pub how: Ending,
}

/// The verdict on something that did not end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unended {
    /// It never ends, or not in time.
    Late,
    /// It could still have ended in time: nothing is known.
    Open,
}

/// Ends of activities in a run. An activity that is not listed lived until the run ended.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Lives {
    /// End of the run in ticks.
    end: u64,
    /// Nothing more could happen: what was alive then waits forever.
    is_idle: bool,
    ended: BTreeMap<Owner, End>,
    /// For tiles whose later markers had no room: the time until which they were seen.
    seen: BTreeMap<u16, u64>,
    /// The most recent activity of each application.
    last: BTreeMap<String, Owner>,
}

impl Lives {
    /// Lives in a run that ended at `end`, in ticks; no activity has ended.
    pub fn until(end: u64) -> Self {
        Self {
            end,
            ..Self::default()
        }
    }

    /// The run ended because nothing more could happen.
    pub fn is_idle(&mut self) {
        self.is_idle = true;
    }

    /// An application has a new activity.
    pub fn begins(&mut self, application: &str, activity: Owner) {
        self.last.insert(application.to_owned(), activity);
    }

    /// An activity has ended.
    pub fn ends(&mut self, activity: Owner, end: End) {
        self.ended.insert(activity, end);
    }

    /// The markers of a tile had no room after `at`, in ticks: what its activities ended after that was not seen.
    pub fn seen_until(&mut self, tile: u16, at: u64) {
        self.seen.insert(tile, at);
    }

    /// When the run was over for an activity: when it ended, when the run ended, or when its tile was last seen.
    pub fn over(&self, activity: Owner) -> u64 {
        let ended = self.ended.get(&activity).map(|end| end.at);
        let seen = self.seen.get(&activity.tile).copied();
        let all = [ended, seen, Some(self.end)].into_iter().flatten();
        all.min().unwrap_or(self.end)
    }

    /// The same for the last activity of an application.
    pub fn over_for(&self, application: &str) -> u64 {
        let last = self.last.get(application);
        last.map_or(self.end, |activity| self.over(*activity))
    }

    /// The verdict on something that began at `begin`, had `within` ticks, and that only this activity could end.
    pub fn unended(&self, activity: Owner, begin: u64, within: u64) -> Unended {
        let never = match self.ended.get(&activity) {
            _ if self.seen.contains_key(&activity.tile) => false,
            Some(end) => end.how == Ending::Gone,
            None => self.is_idle,
        };
        match never || begin.saturating_add(within) < self.over(activity) {
            true => Unended::Late,
            false => Unended::Open,
        }
    }

    /// The same if an application could end it, through any of its activities.
    pub fn unended_for(&self, application: &str, begin: u64, within: u64) -> Unended {
        match self.last.get(application) {
            Some(activity) => self.unended(*activity, begin, within),
            None if self.is_idle || begin.saturating_add(within) < self.end => Unended::Late,
            None => Unended::Open,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// If an end's marker had no room, the end may have happened all the same.
    #[test]
    fn what_was_not_seen_is_late_only_if_it_was_late_before() {
        let [unseen, other] = [2, 3].map(|tile| Owner::new(tile, 1));
        let mut lives = Lives::until(1000);
        for activity in [unseen, other] {
            let (at, how) = (950, Ending::Gone);
            lives.ends(activity, End { at, how });
        }
        lives.seen_until(2, 400);
        assert_eq!((lives.over(unseen), lives.over(other)), (400, 950));
        use Unended::{Late, Open};
        for (activity, begin, expected) in [
            (unseen, 299, Late),
            (unseen, 300, Open),
            (unseen, 399, Open),
            (other, 940, Late),
        ] {
            assert_eq!(lives.unended(activity, begin, 100), expected, "{begin}");
        }
    }

    #[test]
    fn what_a_program_that_is_gone_began_never_ends() {
        let (gone, over, alive) = (Owner::new(2, 1), Owner::new(3, 1), Owner::new(4, 1));
        let mut lives = Lives::until(1000);
        for (name, activity) in [("gone", gone), ("over", over), ("alive", alive)] {
            lives.begins(name, activity);
        }
        let end = |at, how| End { at, how };
        lives.ends(gone, end(500, Ending::Gone));
        lives.ends(over, end(900, Ending::Over));
        use Unended::{Late, Open};
        for (name, activity, begin, expected) in [
            ("gone", gone, 499, Late),
            ("over", over, 799, Late),
            ("over", over, 800, Open),
            ("alive", alive, 899, Late),
            ("alive", alive, 900, Open),
        ] {
            assert_eq!(lives.unended(activity, begin, 100), expected, "{name}");
            assert_eq!(lives.unended_for(name, begin, 100), expected, "{name}");
        }
        // An activity that was restarted can still end it.
        lives.begins("gone", Owner::new(2, 7));
        assert_eq!(lives.unended_for("gone", 950, 100), Open);
        assert_eq!(lives.unended(gone, 950, 100), Late, "not by the first one");
        assert_eq!(lives.unended_for("never there", 950, 100), Open);
        assert_eq!(lives.unended_for("never there", 950, u64::MAX), Open);
        // Nothing more can happen.
        lives.is_idle();
        assert_eq!(lives.unended(alive, 950, 100), Late);
        assert_eq!(lives.unended_for("never there", 950, 100), Late);
        assert_eq!(lives.unended(over, 850, 100), Open, "it was cut off before");
    }
}
