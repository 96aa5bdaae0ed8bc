//! Accesses of the data transfer unit (and of a network card) to a tile's caches.
//!
//! Why it exists: they enter at the level that the platform states, write whole lines without reading them, and remove the lines
//! that they write from the hart's caches. They know nothing of commands.

use super::{Blocked, Hierarchy, Lower, Outcome, Waiter};
use crate::types::{Owner, Tick};

impl Hierarchy {
    /// An access of the DTU within a line. `Some`: the time at which it is done; otherwise the token comes back as
    /// [`Waiter::Unit`].
    #[allow(clippy::too_many_arguments)]
    pub fn unit_access<L: Lower>(
        &mut self,
        now: Tick,
        address: u64,
        bytes: u32,
        write: bool,
        owner: Owner,
        token: u32,
        lower: &mut L,
    ) -> Option<Tick> {
        // When units use lines, their data moves with each block (decision record 0003, step 4).
        assert!(
            !self.holds_data,
            "a unit asks for {address:#x} where lines hold data"
        );
        let line = self.data.cache.line_of(address);
        let waiter = Waiter::Unit { token, write };
        let whole = write && bytes == self.line && address == line;
        if self.unit_first {
            return self.unit_access_first(now, line, whole, owner, waiter, lower);
        }
        let ready = now + self.second.as_ref().map_or(0, |(_, latency)| *latency);
        // A line that enters the second level, from below or from the first level, may push out others.
        let there = self.second.as_ref().is_some_and(|(c, _)| c.contains(line));
        let comes = !there || write && self.data.cache.contains(line);
        if comes && !self.may_push_out() {
            self.block(ready, line, owner, waiter, whole);
            return None;
        }
        let access = Blocked {
            since: ready,
            line,
            owner,
            waiter,
            whole,
        };
        self.unit_second(ready, ready, &access, lower)
    }

    /// An access through the second level that looked up its line at `ready` and has waited since `since`. `Some`: the time at
    /// which it is done.
    pub(super) fn unit_second<L: Lower>(
        &mut self,
        since: Tick,
        ready: Tick,
        access: &Blocked,
        lower: &mut L,
    ) -> Option<Tick> {
        let &Blocked {
            line,
            owner,
            waiter,
            whole,
            ..
        } = access;
        let write = matches!(waiter, Waiter::Unit { write: true, .. });
        let mut present = self.data.cache.contains(line);
        if write {
            self.first_level_changed |= self.instructions.cache.invalidate(line).is_some();
            if let Some(dirty) = self.data.cache.invalidate(line) {
                self.first_level_changed = true;
                // The first level's newer bytes are merged; if it has none, memory still has the line.
                present = dirty;
                if dirty {
                    self.fill_second(ready, line, true, owner, &[], lower);
                }
            }
        }
        if let Some((cache, _)) = &mut self.second {
            cache.set_owner(owner);
            present |= cache.access(line, write);
        }
        if present {
            return Some(ready);
        }
        if whole {
            self.fill_second(ready, line, true, owner, &[], lower);
            return Some(ready);
        }
        if self.join(line, waiter) {
            return None;
        }
        let culprit = self
            .second
            .as_mut()
            .and_then(|(c, _)| c.culprit(line, owner));
        self.request(since, ready, line, owner, waiter, culprit, lower)
    }

    fn unit_access_first<L: Lower>(
        &mut self,
        now: Tick,
        line: u64,
        whole: bool,
        owner: Owner,
        waiter: Waiter,
        lower: &mut L,
    ) -> Option<Tick> {
        let (first, _, write) = self.first(waiter);
        let ready = now + first.latency;
        first.cache.set_owner(owner);
        let hit = first.hit(now, line, write);
        if write {
            self.instructions.cache.invalidate(line);
        }
        // A hit, too, changes which line of its set was used last: the hart must ask again.
        self.first_level_changed = true;
        match hit {
            Some(Outcome::Ready(at)) => return Some(ready.max(at)),
            Some(_) => return Some(ready),
            None => {}
        }
        if whole {
            if !self.may_push_out() {
                self.block(ready, line, owner, waiter, true);
                return None;
            }
            self.fill_first(now, line, owner, waiter, &[], lower);
            return Some(ready);
        }
        // The cache has looked up the line and asks the next level.
        match self.miss(ready, line, owner, waiter, lower) {
            Outcome::Ready(at) => Some(at),
            Outcome::Hit => Some(ready),
            Outcome::Pending(_) => None,
        }
    }
}
