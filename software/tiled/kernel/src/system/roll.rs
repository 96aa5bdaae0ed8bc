//! The table of activities: adds and removes them, and finds them by their place among the holders, their name, and their tile.
//!
//! Why it exists: a lookup that every call needs must not take longer if there are many activities. What it deliberately does not
//! know: what an activity has.

use super::System;
use crate::activity::{Activity, State, count};
use bulkhead_abi::syscall::SyscallError;
use bulkhead_capabilities::HolderId;

impl System {
    /// The number of the activity at a place among the holders.
    pub(super) fn number(&self, holder: HolderId) -> Option<u16> {
        self.activities.at(holder).map(|activity| activity.id)
    }

    /// Adds an activity.
    pub(super) fn enter(&mut self, activity: Activity) {
        let tile = &mut self.tiles[activity.tile];
        tile.budgets.extend(activity.cpu);
        tile.bucket_users[usize::from(activity.bucket)] += 1;
        self.activities.insert(activity);
    }

    /// Makes an activity that is being created known by its name and on its tile. Its creator creates no other activity before it
    /// has this one.
    pub(super) fn list(&mut self, id: u16) {
        if let Some(tile) = self.activities.list(id, true) {
            self.tiles[tile].activities.push(id);
        }
    }

    /// An activity that ends can no longer be found.
    pub(super) fn unlist(&mut self, id: u16) {
        if let Some(tile) = self.activities.list(id, false) {
            let here = &mut self.tiles[tile].activities;
            here.retain(|other| *other != id);
        }
    }

    /// Removes an activity.
    pub(super) fn leave(&mut self, id: u16) -> Option<Activity> {
        self.unlist(id);
        let activity = self.activities.remove(id)?;
        let tile = &mut self.tiles[activity.tile];
        let all = tile.sent.iter().chain(tile.asked.iter());
        let about = all.filter(|asked| asked.activity == id);
        about.for_each(|_| count(&mut self.mentions, id, true));
        tile.budgets.retain(|owner| Some(*owner) != activity.cpu);
        let bucket = usize::from(activity.bucket);
        tile.bucket_users[bucket] -= 1;
        if tile.bucket_users[bucket] == 0 {
            tile.claims[bucket] = None;
        }
        Some(activity)
    }

    /// The activity that a selector of a caller names.
    pub(super) fn named(&self, caller: HolderId, selector: u16) -> Result<u16, SyscallError> {
        let found = self.activities.at(self.space.activity(caller, selector)?);
        match found.ok_or(SyscallError::NoActivity)? {
            activity if activity.state() == State::Creating => Err(SyscallError::Busy),
            activity => Ok(activity.id),
        }
    }
}
