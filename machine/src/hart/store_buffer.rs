//! The store buffer: outstanding stores that missed the first level.
//!
//! Places become free in order: one is freed when the oldest store completes. [`super::load_store_queue`] says what a store
//! writes; this file says when.

use super::pending::Completion;
use crate::types::Tick;

/// Outstanding stores, oldest first.
#[derive(Clone)]
pub struct StoreBuffer {
    /// There are few, so a vector is quicker than a ring.
    entries: Vec<Completion>,
    size: usize,
}

impl StoreBuffer {
    /// An empty buffer with `size` places, at least one.
    pub fn new(size: u32) -> Self {
        Self {
            entries: Vec::new(),
            size: size.max(1) as usize,
        }
    }

    /// Whether no place is free unless a store has completed since.
    #[inline(always)]
    pub fn is_full(&self) -> bool {
        self.entries.len() >= self.size
    }

    /// Drops completed stores at `now`, from the front.
    pub fn retire(&mut self, now: Tick) {
        let complete = |entry: &Completion| matches!(entry, Completion::At(at) if *at <= now);
        match self.entries.iter().position(|entry| !complete(entry)) {
            None => self.entries.clear(),
            Some(complete) => drop(self.entries.drain(..complete)),
        }
    }

    /// The tick at which `places` places are free, or the token that must complete first.
    pub fn room(&self, places: usize) -> Result<Tick, u32> {
        let excess = (self.entries.len() + places.min(self.size)).saturating_sub(self.size);
        self.latest(excess)
    }

    /// The tick at which the buffer is empty, or the token that must complete first.
    pub fn drained(&self) -> Result<Tick, u32> {
        self.latest(self.entries.len())
    }

    fn latest(&self, count: usize) -> Result<Tick, u32> {
        self.entries
            .iter()
            .take(count)
            .try_fold(0, |latest: Tick, entry| match entry {
                Completion::At(at) => Ok(latest.max(*at)),
                Completion::Token(token) => Err(*token),
            })
    }

    /// Forgets all stores.
    pub fn clear(&mut self) {
        self.entries.clear();
    }

    /// Adds a store.
    pub fn push(&mut self, completion: Completion) {
        self.entries.push(completion);
    }

    /// Reports a completion.
    pub fn complete(&mut self, token: u32, at: Tick) {
        for entry in &mut self.entries {
            if *entry == Completion::Token(token) {
                *entry = Completion::At(at);
            }
        }
    }
}
