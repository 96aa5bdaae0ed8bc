//! Results of outstanding misses.
//!
//! [`super::load_store_queue`] says what a load does; this file says when.
//!
//! Entries retire only from the front. What a caller waits for depends only on completion times, never on when they become known;
//! this keeps a run independent of the horizons that drive the hart.

use crate::types::Tick;

/// A completion time, or the token with which it will be reported.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Completion {
    /// Done at this tick.
    At(Tick),
    /// Not yet known.
    Token(u32),
}

impl Completion {
    fn tell(&mut self, token: u32, at: Tick) {
        if *self == Self::Token(token) {
            *self = Self::At(at);
        }
    }
}

#[derive(Clone, Copy, Debug)]
struct Entry {
    registers: u64,
    completion: Completion,
}

/// Registers that wait for a miss: bits 0 to 31 integer, 32 to 63 FP.
#[derive(Clone, Default)]
pub struct PendingLoads {
    /// The oldest first. There are few, so a vector is quicker than a ring.
    entries: Vec<Entry>,
    registers: u64,
    /// When the oldest entry is complete; `Tick::MAX` if that is not known.
    oldest: Tick,
}

impl PendingLoads {
    /// Whether nothing is outstanding.
    #[inline(always)]
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// Whether `limit` loads are outstanding unless one has completed since.
    #[inline(always)]
    pub fn is_full(&self, limit: usize) -> bool {
        self.entries.len() >= limit
    }

    /// Whether an operation on `registers` at `now` is unaffected: nothing has completed, and none of its registers is waiting.
    #[inline(always)]
    pub fn unconcerned(&self, registers: u64, now: Tick) -> bool {
        self.registers & registers == 0 && now < self.oldest
    }

    fn update(&mut self) {
        self.registers = self
            .entries
            .iter()
            .fold(0, |all, entry| all | entry.registers);
        self.note_oldest();
    }

    #[inline]
    fn note_oldest(&mut self) {
        self.oldest = match self.entries.first() {
            Some(Entry {
                completion: Completion::At(at),
                ..
            }) => *at,
            _ => Tick::MAX,
        };
    }

    /// Adds a miss whose result goes to `registers` (none for `x0`).
    #[inline]
    pub fn push(&mut self, registers: u64, completion: Completion) {
        self.entries.push(Entry {
            registers,
            completion,
        });
        self.registers |= registers;
        self.note_oldest();
    }

    /// The tick at which all of `registers` have their values (0 if none waits), or the token that must complete first.
    #[inline]
    pub fn ready(&self, registers: u64) -> Result<Tick, u32> {
        if self.registers & registers == 0 {
            return Ok(0);
        }
        latest(
            self.entries
                .iter()
                .filter(|entry| entry.registers & registers != 0)
                .map(|entry| entry.completion),
        )
    }

    /// If a single miss is outstanding, and an operation on `registers` needs its result or it is complete `now`: forgets it, and returns when it
    /// is complete.
    #[inline(always)]
    pub fn take_single(&mut self, registers: u64, now: Tick) -> Option<Tick> {
        let single = self.entries.len() == 1;
        let done = self.registers & registers != 0 || self.oldest <= now;
        // Its moment is not known, or it is not needed.
        if !single || !done || self.oldest == Tick::MAX {
            return None;
        }
        self.entries.clear();
        self.registers = 0;
        Some(std::mem::replace(&mut self.oldest, Tick::MAX))
    }

    /// The tick at which everything is complete, or a token that must complete first.
    pub fn all(&self) -> Result<Tick, u32> {
        latest(self.entries.iter().map(|entry| entry.completion))
    }

    /// The tick at which fewer than `limit` loads are outstanding, or a token that must complete first.
    pub fn room(&self, limit: usize) -> Result<Tick, u32> {
        let excess = (self.entries.len() + 1).saturating_sub(limit);
        latest(
            self.entries
                .iter()
                .take(excess)
                .map(|entry| entry.completion),
        )
    }

    /// Drops entries from the front that are complete at `now`.
    #[inline]
    pub fn retire(&mut self, now: Tick) {
        if now >= self.oldest {
            self.retire_some(now);
        }
    }

    fn retire_some(&mut self, now: Tick) {
        let complete = |entry: &Entry| matches!(entry.completion, Completion::At(at) if at <= now);
        match self.entries.iter().position(|entry| !complete(entry)) {
            None => {
                self.entries.clear();
                (self.registers, self.oldest) = (0, Tick::MAX);
            }
            Some(complete) => {
                self.entries.drain(..complete);
                self.update();
            }
        }
    }

    /// Reports a completion.
    pub fn complete(&mut self, token: u32, at: Tick) {
        self.entries
            .iter_mut()
            .for_each(|entry| entry.completion.tell(token, at));
        self.update();
    }
}

fn latest(mut completions: impl Iterator<Item = Completion>) -> Result<Tick, u32> {
    completions.try_fold(0, |latest, completion| match completion {
        Completion::At(at) => Ok(latest.max(at)),
        Completion::Token(token) => Err(token),
    })
}
