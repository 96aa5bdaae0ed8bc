//! Accesses of the data transfer unit (and of a network card) to a tile's caches.
//!
//! Why it exists: they enter at the level that the platform states, write whole lines without reading them, and remove the lines
//! that they write from the hart's caches. They know nothing of commands.
//!
//! Their bytes are carried ([`Carried`]) until the line is there. They move at the moment at which the cache that they enter looks at the
//! line, so the order of accesses at that cache is the order of the bytes.

use super::super::HARTS;
use super::{Blocked, Carried, Hierarchy, Lower, Outcome, Waiter};
use crate::local_token::LocalToken;
use crate::types::{LINE_MAX, Line, Owner, Tick};

/// The old content of a line that is about to be written whole.
static BLANK: Line = [0; LINE_MAX];

impl Hierarchy {
    /// Prepares the access that follows ([`Hierarchy::unit_access`]): takes the bytes of a write, or room for the bytes of a read.
    pub fn carry(
        &mut self,
        token: LocalToken,
        address: u64,
        length: usize,
        written: Option<&[u8]>,
    ) {
        let mut bytes = BLANK;
        if let Some(written) = written {
            bytes[..length].copy_from_slice(written);
        }
        self.carried.push(Carried {
            token,
            address,
            length,
            write: written.is_some(),
            moved: false,
            bytes,
        });
    }

    /// Gives the bytes of an access that is done; none if the tile may no longer make it.
    pub fn take_carried(&mut self, token: LocalToken) -> Option<Carried> {
        let position = self.carried.iter().position(|c| c.token == token)?;
        let carried = self.carried.swap_remove(position);
        assert!(
            carried.moved,
            "the access to {:#x} is done, and its bytes have not moved",
            carried.address
        );
        Some(carried)
    }

    /// Cancels a waiting access. Its line may still come.
    pub fn forget(&mut self, token: LocalToken) {
        self.carried.retain(|carried| carried.token != token);
    }

    /// A write that was forgotten makes no line dirty.
    pub(super) fn unless_forgotten(&self, waiter: Waiter) -> Waiter {
        match waiter {
            Waiter::Unit { token, write } => Waiter::Unit {
                token,
                write: write && self.carried.iter().any(|c| c.token == token),
            },
            waiter => waiter,
        }
    }

    /// Moves the bytes of an access whose line is there now, unless it was forgotten.
    pub(super) fn move_bytes(&mut self, line: u64, token: LocalToken) {
        let Some(carried) = self.carried.iter_mut().find(|c| c.token == token) else {
            return;
        };
        carried.moved = true;
        if carried.write {
            self.first_level_changed |= self.instructions.cache.invalidate(line).is_some();
        }
        let offset = (carried.address - line) as usize;
        let part = offset..offset + carried.length;
        if !carried.write {
            let second = self.second.as_ref();
            let there = self.data.cache.line(line);
            let there = there.or_else(|| second.and_then(|(cache, _)| cache.line(line)));
            let there =
                there.unwrap_or_else(|| panic!("the line at {line:#x} is not here to be read"));
            carried.bytes_mut().copy_from_slice(&there[part]);
            return;
        }
        match &mut self.second {
            Some((cache, _)) if !self.unit_first => {
                let there = cache.line_mut(line);
                let there = there
                    .unwrap_or_else(|| panic!("the line at {line:#x} is not here to be written"));
                there[part].copy_from_slice(carried.bytes());
            }
            _ => self.data.cache.hold(line, |held| {
                held.bytes[part].copy_from_slice(carried.bytes());
                // Another writer has written the line.
                held.reserved = [false; HARTS];
            }),
        }
        #[cfg(debug_assertions)]
        self.forget_shadow(line);
    }

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
        token: LocalToken,
        lower: &mut L,
    ) -> Option<Tick> {
        let line = self.data.cache.line_of(address);
        let waiter = Waiter::Unit { token, write };
        let whole = write && bytes == self.line && address == line;
        let ready = match self.unit_first {
            true => self.unit_access_first(now, line, whole, owner, waiter, lower),
            false => self.unit_access_second(now, line, whole, owner, waiter, lower),
        };
        if ready.is_some() {
            self.move_bytes(line, token);
        }
        ready
    }

    fn unit_access_second<L: Lower>(
        &mut self,
        now: Tick,
        line: u64,
        whole: bool,
        owner: Owner,
        waiter: Waiter,
        lower: &mut L,
    ) -> Option<Tick> {
        let write = matches!(waiter, Waiter::Unit { write: true, .. });
        let ready = now + self.second.as_ref().map_or(0, |(_, latency)| *latency);
        // A line that enters the second level, from below or from the first level, may push out others.
        let there = self.second.as_ref().is_some_and(|(c, _)| c.contains(line));
        let comes = !there || write && self.data.cache.contains(line);
        let access = Blocked::new(ready, line, owner, waiter, whole);
        if comes && !self.may_push_out() {
            self.blocked.push_back(access);
            return None;
        }
        self.unit_second(ready, &access, lower)
    }

    /// An access through the second level that looks up its line at `ready`. `Some`: the time at which it is done.
    pub(super) fn unit_second<L: Lower>(
        &mut self,
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
        // Bytes from below must not be older than those that are written here.
        if self.join(line, waiter) {
            return None;
        }
        // If the line is written, the bytes that the first level had written are merged; without such bytes, memory still has the line.
        let mut present = match write {
            true => self.take_from_harts(ready, line, owner, lower),
            false => self.data.cache.contains(line),
        };
        if let Some((cache, _)) = &mut self.second {
            cache.set_owner(owner);
            present |= cache.access(line, write);
        }
        if present {
            return Some(ready);
        }
        if whole {
            let bytes = &BLANK[..self.line as usize];
            self.fill_second(ready, line, true, owner, bytes, lower);
            return Some(ready);
        }
        if let Some(&bytes) = self.buffer.line(line) {
            // It is on its way to memory: a read would overtake it.
            let bytes = &bytes[..self.line as usize];
            self.fill_second(ready, line, write, owner, bytes, lower);
            return Some(ready);
        }
        let culprit = self
            .second
            .as_mut()
            .and_then(|(c, _)| c.culprit(line, owner));
        self.request(ready, access, culprit, lower)
    }

    /// Takes a line out of the hart's caches; newer bytes there go to the second level. Returns whether there were any.
    fn take_from_harts<L: Lower>(
        &mut self,
        now: Tick,
        line: u64,
        owner: Owner,
        lower: &mut L,
    ) -> bool {
        self.first_level_changed |= self.instructions.cache.invalidate(line).is_some();
        let (mut bytes, mut length) = (BLANK, 0);
        if let Some(from) = self.data.cache.dirty_line(line) {
            length = from.len();
            bytes[..length].copy_from_slice(from);
        }
        let dirty = self.data.cache.invalidate(line);
        self.first_level_changed |= dirty.is_some();
        if dirty != Some(true) {
            return false;
        }
        if let Some((cache, _)) = &mut self.second {
            let victim = cache.take_written(line, owner, &bytes[..length]);
            self.buffer.post_victim(now, victim, owner, cache, lower);
        }
        true
    }

    /// A line that the unit asked for through the second level has come.
    pub(super) fn unit_has_line<L: Lower>(
        &mut self,
        now: Tick,
        line: u64,
        write: bool,
        owner: Owner,
        came: &[u8],
        lower: &mut L,
    ) {
        if write {
            // Another access may have waited for it, too.
            self.take_from_harts(now, line, owner, lower);
        }
        if !self.data.cache.contains(line) {
            self.fill_second(now, line, write, owner, came, lower);
        }
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
        first.uses(line);
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
        if whole && self.join(line, waiter) {
            return None;
        }
        if whole {
            if !self.may_push_out() {
                let access = Blocked::new(ready, line, owner, waiter, true);
                self.blocked.push_back(access);
                return None;
            }
            self.fill_whole_first(now, line, owner, waiter, lower);
            return Some(ready);
        }
        // The cache has looked up the line and asks the next level.
        match self.miss(now, ready, line, owner, waiter, lower) {
            Outcome::Ready(at) => Some(at),
            Outcome::Hit => Some(ready),
            Outcome::Pending(_) => None,
        }
    }

    /// A line that is about to be written whole needs no bytes.
    pub(super) fn fill_whole_first<L: Lower>(
        &mut self,
        now: Tick,
        line: u64,
        owner: Owner,
        waiter: Waiter,
        lower: &mut L,
    ) {
        #[cfg(debug_assertions)]
        self.forget_shadow(line);
        let bytes = &BLANK[..self.line as usize];
        self.fill_first(now, line, owner, waiter, bytes, lower);
    }
}
