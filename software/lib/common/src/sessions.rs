//! Which activities have a session with a service.
//!
//! Why it exists: what a service keeps for an activity must end with it, and only of those with a session does the kernel tell the
//! end. So nothing is kept for others, and everything goes with the last session. What it deliberately does not know: what is kept.
//!
//! An entry is made by the kernel's message, for which the activity has paid with a capability, so there are at most as many as
//! activities.

use crate::payer::{Holder, PaidList};
use alloc::vec::Vec;

/// Activities and how many sessions each has.
#[derive(Clone, Debug, Default)]
pub struct Sessions {
    all: PaidList<Holder, (u16, u32)>,
}

impl Sessions {
    /// None yet.
    pub const fn new() -> Self {
        Self {
            all: PaidList::new(Vec::new()),
        }
    }

    /// Whether an activity has one.
    pub fn has(&self, activity: u16) -> bool {
        self.all.iter().any(|(known, _)| *known == activity)
    }

    /// Activities that have one.
    pub fn count(&self) -> usize {
        self.all.len()
    }

    /// An activity opens one.
    pub fn opened(&mut self, activity: u16) {
        match self.all.iter_mut().find(|(known, _)| *known == activity) {
            Some((_, count)) => *count += 1,
            None => self.all.push((activity, 1)),
        }
    }

    /// One of an activity is over; true if it was the last one, and whatever is kept for the activity ends.
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
