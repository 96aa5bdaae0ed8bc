//! Cache management: lines are written to memory, removed or fetched ahead at the request of software.
//!
//! Why it exists: where caches are not coherent, nothing else makes a store visible to another tile or drops an old line. It does
//! not know which modes may do that.

use super::{Blocked, Hierarchy, Lower, Outcome, WRITE_BACKS, Waiter};
use crate::types::{LINE_MAX, Owner, Tick};

/// An operation on a line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Management {
    /// Removes the line; its contents are lost.
    Invalidate,
    /// Writes the line to memory if it is dirty.
    Clean,
    /// Writes the line to memory if it is dirty, and removes it.
    Flush,
}

impl Hierarchy {
    /// A hart that waits for [`Hierarchy::manage`].
    pub fn manager(&mut self) -> Waiter {
        let token = self.token();
        Waiter::Data {
            token,
            write: false,
        }
    }

    /// Performs an operation on the line at `line` in the data cache and the second level (and, for the unit, in the instruction cache). If the line must be written, the
    /// operation is complete when memory has acknowledged the line; the same holds for a line that left the caches earlier and is
    /// still on its way to memory.
    ///
    /// # Errors
    /// Nothing is done, because the line is on its way to the tile, or the write-back buffer has no room. The hart must ask again
    /// when this token comes back.
    pub fn manage<L: Lower>(
        &mut self,
        now: Tick,
        line: u64,
        what: Management,
        owner: Owner,
        waiter: Waiter,
        lower: &mut L,
    ) -> Result<Outcome, u32> {
        let token = waiter.token();
        if self.join(line, waiter) {
            return Err(token);
        }
        let first = self.data.cache.dirty_line(line);
        let second = self.second.as_ref();
        let dirty = first.or_else(|| second.and_then(|(cache, _)| cache.dirty_line(line)));
        let written = dirty
            .filter(|_| what != Management::Invalidate)
            .map(|from| {
                let mut bytes = [0; LINE_MAX];
                bytes[..from.len()].copy_from_slice(from);
                bytes
            });
        let waits = self.blocked.iter().any(|b| b.line == line);
        if waits || written.is_some() && !self.may_write() {
            let access = Blocked::new(now, line, owner, waiter, false);
            self.blocked.push_back(access);
            return Err(token);
        }
        let ready = now + self.second.as_ref().map_or(0, |(_, latency)| *latency);
        #[cfg(debug_assertions)]
        self.forget_shadow(line);
        let length = self.line as usize;
        if let Some(bytes) = &written {
            self.buffer
                .post(ready, line, owner, &bytes[..length], lower);
        }
        if what == Management::Clean {
            if let Some(bytes) = &written {
                self.data.cache.clean(line, &bytes[..length]);
                if let Some((cache, _)) = &mut self.second {
                    cache.clean(line, &bytes[..length]);
                }
            }
        } else {
            self.data.cache.invalidate(line);
            if let Waiter::Unit { .. } = waiter {
                self.instructions.cache.invalidate(line);
            }
            if let Some((cache, _)) = &mut self.second {
                cache.invalidate(line);
            }
            self.first_level_changed = true;
        }
        let waits = what != Management::Invalidate && self.buffer.wait(line, waiter);
        Ok(match waits {
            true => Outcome::Pending(token),
            false => Outcome::Ready(ready),
        })
    }

    /// Whether the write-back buffer has room for one line in addition to those that the misses under way can push out.
    fn may_write(&self) -> bool {
        super::PUSHED_OUT * self.busy + self.buffer.under_way() < WRITE_BACKS as usize
    }

    /// Fetches the line at `line` ahead, unless it is present or on its way, and only if no access has to wait because of that.
    pub fn prefetch<L: Lower>(
        &mut self,
        now: Tick,
        line: u64,
        fetch: bool,
        owner: Owner,
        lower: &mut L,
    ) {
        let token = self.token();
        let waiter = match fetch {
            true => Waiter::Fetch { token },
            false => Waiter::Data {
                token,
                write: false,
            },
        };
        let under_way = self.under_way(waiter);
        let (first, _, _) = self.first(waiter);
        let there = first.cache.contains(line);
        first.forget_fills(now);
        let free = first.fills.len() + under_way < first.mshrs;
        let coming = self.misses.iter().any(|m| m.busy && m.line == line);
        let register = self.misses.iter().any(|m| !m.busy);
        if !there && free && !coming && register && self.may_push_out() && self.blocked.is_empty() {
            self.miss(now, now, line, owner, waiter, lower);
        }
    }
}
