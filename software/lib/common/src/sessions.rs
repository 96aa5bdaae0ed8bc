//! Which activities have a session with a service.
//!
//! Why it exists: what a service keeps for an activity must end with the activity, and the kernel reports the end only of
//! activities with a session. So a service keeps nothing for others, and drops everything with the last session. What it
//! deliberately does not know: what the service keeps.
//!
//! A kernel message adds an entry, for which the activity has paid with a capability. So there are at most as many entries as
//! activities.

use crate::payer::{Holder, PaidList};
use alloc::vec::Vec;

/// Activities and how many sessions each has.
#[derive(Clone, Debug, Default)]
pub struct Sessions {
    all: PaidList<Holder, (u16, u32)>,
}

impl Sessions {
    /// No sessions yet.
    pub const fn new() -> Self {
        Self {
            all: PaidList::new(Vec::new()),
        }
    }

    /// Whether an activity has a session.
    pub fn has(&self, activity: u16) -> bool {
        self.all.iter().any(|(known, _)| *known == activity)
    }

    /// Number of activities that have a session.
    pub fn count(&self) -> usize {
        self.all.len()
    }

    /// An activity opens a session.
    pub fn opened(&mut self, activity: u16) {
        match self.all.iter_mut().find(|(known, _)| *known == activity) {
            Some((_, count)) => *count += 1,
            None => self.all.push((activity, 1)),
        }
    }

    /// A session of an activity is over. Returns true if it was the last one, so that the service drops what it keeps for the
    /// activity.
    #[must_use]
    pub fn closed(&mut self, activity: u16) -> bool {
        let Some(index) = self.all.iter().position(|(known, _)| *known == activity) else {
            return false;
        };
        self.all[index].1 -= 1;
        let is_last = self.all[index].1 == 0;
        if is_last {
            self.all.swap_remove(index);
        }
        is_last
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_one_ends_it() {
        let mut sessions = Sessions::new();
        assert!(!sessions.closed(3));
        sessions.opened(3);
        sessions.opened(4);
        sessions.opened(3);
        assert!(!sessions.closed(3));
        assert!(sessions.has(3) && sessions.has(4));
        assert!(sessions.closed(3));
        assert!(!sessions.has(3) && sessions.has(4));
        assert!(!sessions.closed(3));
        for activity in 0..1000 {
            sessions.opened(activity);
        }
        assert!((0..1000).all(|a| sessions.has(a)));
        assert_eq!(sessions.count(), 1000);
    }
}
