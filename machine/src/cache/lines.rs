//! How lines move between the levels of a tile, and how they are seen from outside.
//!
//! Why it exists: a line's bytes go where the line goes, at the moment at which its tag does. It does not know what anything costs.

use super::super::{Evicted, HARTS, HeldLine};
use super::{Coming, First, Harts, Hierarchy, Lower, Outcome, PUSHED_OUT, Waiter};
use crate::ledger::{Level, Resource};
use crate::types::{LINE_MAX, Owner, Tick};
use bulkhead_abi::dtu::WRITE_BACKS;

impl First {
    /// Notes that the line, whose tag is already here, arrives from the second level at `at`.
    #[inline]
    pub(super) fn comes(&mut self, line: u64, at: Tick, owner: Owner) {
        self.fills.push(Coming { line, at, owner });
        self.fills_until = self.fills_until.max(at);
    }
}

impl Hierarchy {
    /// A hart's data access that the first level has not answered, if the second level does and nothing else has to be looked at: a register is
    /// free, nothing comes from memory, nobody fetches ahead, and there is room for what is pushed out. `None`: nothing has happened, and the
    /// path of misses is for all cases. (Most misses of a program that fits into the second level come here, so it is one piece.)
    #[inline(always)]
    pub(super) fn second_answers<L: Lower>(
        &mut self,
        now: Tick,
        address: u64,
        write: bool,
        owner: Owner,
        lower: &mut L,
    ) -> Option<Outcome> {
        let Some((second, latency)) = &mut self.second else {
            return None;
        };
        let data = &mut self.data;
        let ahead = self.second_ahead.is_some() || data.ahead.is_some();
        let room = PUSHED_OUT + self.buffer.under_way() <= WRITE_BACKS as usize;
        if ahead || self.busy > 0 || !room {
            return None;
        }
        data.forget_fills(now);
        if data.fills.len() >= data.mshrs {
            return None;
        }
        let line = data.cache.line_of(address);
        let place = second.find_for(address, owner)?;
        let (latency, ready) = (*latency, now + *latency);
        if let Some(culprit) = data.cache.culprit(line, owner) {
            let set = Resource::CacheSet(Level::L1d);
            lower.ledger().book(owner, culprit, set, latency);
        }
        let evicted = data.cache.put(address, write, owner, second.at(place));
        data.comes(line, ready, owner);
        // Each access has a number.
        let token = self.token();
        self.after_fill(
            ready,
            line,
            evicted,
            owner,
            Waiter::Data { token, write },
            lower,
        );
        Some(Outcome::Ready(ready))
    }

    /// Moves a line that the second level has found to the first level, which does not have it.
    #[inline(always)]
    pub(super) fn second_to_first<L: Lower>(
        &mut self,
        now: Tick,
        line: u64,
        owner: Owner,
        waiter: Waiter,
        lower: &mut L,
    ) {
        let Self {
            instructions,
            data,
            second,
            ..
        } = self;
        let (first, write) = match waiter {
            Waiter::Fetch { .. } => (instructions, false),
            Waiter::Data { write, .. } | Waiter::Unit { write, .. } => (data, write),
        };
        let bytes = second.as_ref().map_or(&[][..], |s| s.0.recent_line(line));
        let evicted = first.cache.fill_absent(line, write, owner, bytes);
        // A line that is pushed out leaves once the second level has been looked up, as a miss does: other code relies on that.
        let at = now + second.as_ref().map_or(0, |(_, latency)| *latency);
        self.after_fill(at, line, evicted, owner, waiter, lower);
    }

    /// Puts a line into the waiter's first-level cache, unless it is there. Its bytes come from the highest level that has them,
    /// otherwise from `came`.
    pub(super) fn fill_first<L: Lower>(
        &mut self,
        now: Tick,
        line: u64,
        owner: Owner,
        waiter: Waiter,
        came: &[u8],
        lower: &mut L,
    ) {
        let Self {
            instructions,
            data,
            second,
            ..
        } = self;
        // The bytes are compared only when they arrive.
        let there = cfg!(debug_assertions)
            && match waiter {
                Waiter::Fetch { .. } => instructions.cache.contains(line),
                _ => data.cache.contains(line),
            };
        let mut bytes = came;
        if let Some((cache, _)) = second {
            bytes = cache.line(line).unwrap_or(came);
        }
        let evicted = match waiter {
            Waiter::Fetch { .. } => {
                bytes = data.cache.line(line).unwrap_or(bytes);
                instructions.cache.fill(line, false, owner, bytes)
            }
            Waiter::Data { write, .. } | Waiter::Unit { write, .. } => {
                data.cache.fill(line, write, owner, bytes)
            }
        };
        if there {
            return;
        }
        self.after_fill(now, line, evicted, owner, waiter, lower);
    }

    /// A fetch finds its line in the data cache; returns the moment at which the line has arrived.
    pub(super) fn fetch_from_data(&mut self, now: Tick, line: u64, owner: Owner) -> Tick {
        let Self {
            instructions, data, ..
        } = self;
        let bytes = data.cache.line(line);
        let bytes =
            bytes.unwrap_or_else(|| panic!("the line at {line:#x} is not in the data cache"));
        instructions.cache.fill_absent(line, false, owner, bytes);
        let ready = now + self.second.as_ref().map_or(data.latency, |s| s.1);
        // It may be on its way to the data cache itself.
        let ready = data.arrives(now, line).map_or(ready, |at| at.max(ready));
        instructions.comes(line, ready, owner);
        ready
    }

    /// After a fill of the waiter's first-level cache.
    #[inline(always)]
    #[cfg_attr(not(debug_assertions), expect(unused_variables))]
    fn after_fill<L: Lower>(
        &mut self,
        now: Tick,
        line: u64,
        evicted: Option<Evicted>,
        owner: Owner,
        waiter: Waiter,
        lower: &mut L,
    ) {
        #[cfg(debug_assertions)]
        self.compare(line, evicted, waiter);
        if let Some(evicted) = evicted
            && evicted.dirty
        {
            self.write_down(now, evicted, owner, lower);
        }
    }

    /// A line must come back to the first level with the bytes with which it left the data cache.
    #[cfg(debug_assertions)]
    fn compare(&mut self, line: u64, evicted: Option<Evicted>, waiter: Waiter) {
        let Some(shadow) = &mut self.shadow else {
            return;
        };
        let here = match waiter {
            Waiter::Fetch { .. } if self.data.cache.contains(line) => return,
            Waiter::Fetch { .. } => self.instructions.cache.line(line),
            _ => {
                if let Some(evicted) = evicted {
                    shadow.insert(evicted.address, self.data.cache.evicted().to_vec());
                }
                self.data.cache.line(line)
            }
        };
        let here = here.expect("it was filled");
        if let Some(before) = shadow.get(&line) {
            assert!(
                before == here,
                "{waiter:?} gets the line at {line:#x} with {here:x?}; it left with {before:x?}"
            );
        }
    }

    /// From now on the line may come back with other bytes.
    #[cfg(debug_assertions)]
    pub(super) fn forget_shadow(&mut self, line: u64) {
        if let Some(shadow) = &mut self.shadow {
            shadow.remove(&line);
        }
    }

    /// A dirty line has left the data cache because of `owner`.
    fn write_down<L: Lower>(&mut self, now: Tick, evicted: Evicted, owner: Owner, lower: &mut L) {
        let Self {
            data,
            second,
            buffer,
            ..
        } = self;
        let bytes = data.cache.evicted();
        match second {
            Some((cache, _)) => {
                let victim = cache.take_written(evicted.address, evicted.owner, bytes);
                buffer.post_victim(now, victim, owner, cache, lower);
            }
            None => buffer.post(now, evicted.address, owner, bytes, lower),
        }
    }

    /// Puts a line into the second level, if there is one and it does not have it.
    pub(super) fn fill_second<L: Lower>(
        &mut self,
        now: Tick,
        line: u64,
        dirty: bool,
        owner: Owner,
        bytes: &[u8],
        lower: &mut L,
    ) {
        if let Some((cache, _)) = &mut self.second {
            let victim = cache.fill(line, dirty, owner, bytes);
            self.buffer.post_victim(now, victim, owner, cache, lower);
        }
    }

    /// Gives a hart the line that it waits for, at the moment when the line enters the data cache, or moves the bytes of the unit.
    pub(super) fn hand_over(&mut self, line: u64, waiter: Waiter, harts: &mut impl Harts) {
        match waiter {
            Waiter::Fetch { .. } => {}
            Waiter::Data { token, .. } => {
                let using = |held: &mut HeldLine<'_>| harts.take_line(token, held);
                self.data.cache.hold(line, using);
            }
            Waiter::Unit { token, .. } => self.move_bytes(line, token),
        }
    }

    /// Nobody gets the line: accesses that wait for it read 0, and what they would have written is lost.
    pub(super) fn give_nothing(&mut self, line: u64, waiter: Waiter, harts: &mut impl Harts) {
        match waiter {
            Waiter::Fetch { .. } => {}
            Waiter::Data { token, .. } => {
                let mut lost = [0; LINE_MAX];
                let mut held = HeldLine {
                    address: line,
                    bytes: &mut lost[..self.line as usize],
                    written: false,
                    reserved: [false; HARTS],
                };
                harts.take_line(token, &mut held);
            }
            Waiter::Unit { token, .. } => self.forget(token),
        }
    }

    /// The bytes of an instruction line that is in the instruction cache.
    pub fn instruction_line(&self, line: u64) -> Option<&[u8]> {
        self.instructions.cache.line(line)
    }

    /// Takes every line out of the instruction cache.
    pub fn empty_instruction_cache(&mut self) {
        self.instructions.cache.invalidate_all();
    }

    /// Where the byte at an address is in [`Hierarchy::data_bytes`]. The last access must have found its line in the data cache.
    #[inline]
    pub fn data_place(&self, address: u64) -> usize {
        self.data.cache.recent_place(address)
    }

    /// Whether the byte at an address is at this place.
    pub fn is_at(&self, address: u64, place: usize) -> bool {
        self.data.cache.is_at(address, place)
    }

    /// Adds bytes behind those of the data cache ([`super::super::Cache::add_beside`]).
    pub fn add_beside(&mut self, bytes: usize) -> usize {
        self.data.cache.add_beside(bytes)
    }

    /// The bytes of the data cache.
    #[inline]
    pub fn data_bytes(&self) -> &[u8] {
        self.data.cache.bytes()
    }

    /// The bytes of the data cache, for a store to a line that is dirty or becomes dirty.
    #[inline]
    pub fn data_bytes_mut(&mut self) -> &mut [u8] {
        self.data.cache.bytes_mut()
    }

    /// A hart has used the line at `place` in the data cache again ([`Cache::again`](super::Cache::again)).
    pub fn again(&mut self, place: usize, times: u64) {
        self.data.cache.again(place, times);
    }

    /// Notes that a hart has written the line at `place` in the data cache.
    #[inline]
    pub fn wrote(&mut self, place: usize, hart: usize) {
        self.data.cache.wrote(place, hart);
    }

    /// A load-reserved of a hart reads the line that contains `address`, which is in the data cache.
    pub fn reserve(&mut self, address: u64, hart: usize) {
        self.data.cache.reserve(address, hart);
    }

    /// Ends a hart's reservation. Returns whether the reservation was for the line that contains `address` and that line has neither left
    /// the cache nor been written by another hart since.
    pub fn take_reservation(&mut self, address: u64, hart: usize) -> bool {
        self.data.cache.take_reservation(address, hart)
    }

    /// The line at `line` as the hart would find it above memory, for a look from outside.
    pub fn peek(&self, line: u64) -> Option<&[u8]> {
        let length = self.line as usize;
        let second = || self.second.as_ref().and_then(|(cache, _)| cache.line(line));
        let posted = || self.buffer.line(line).map(|bytes| &bytes[..length]);
        self.data.cache.line(line).or_else(second).or_else(posted)
    }

    /// Writes bytes into a line wherever the tile has it, for tools that load memory. Changes no state.
    pub fn poke(&mut self, line: u64, offset: usize, bytes: &[u8]) {
        #[cfg(debug_assertions)]
        self.forget_shadow(line);
        let second = self.second.as_mut();
        let there = [
            self.instructions.cache.line_mut(line),
            self.data.cache.line_mut(line),
            second.and_then(|(cache, _)| cache.line_mut(line)),
        ];
        let posted = self.buffer.lines_mut(line).map(|bytes| &mut bytes[..]);
        for all in there.into_iter().flatten().chain(posted) {
            all[offset..offset + bytes.len()].copy_from_slice(bytes);
        }
    }
}

#[cfg(test)]
#[path = "lines_tests.rs"]
mod tests;
