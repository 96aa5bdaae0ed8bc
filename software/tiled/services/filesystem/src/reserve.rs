//! Free blocks that were filled with zeros ahead of time.
//!
//! Why it exists: a block must be zeroed before a client can read it, and a client that extends a file should not have to wait for
//! that. What it deliberately does not know: when there is time for that.
//!
//! The reserve is one run of free blocks, known only while the file system is mounted. Blocks are taken from its start, which keeps
//! the rest; blocks that were given back enter it only after they are zeroed again.

use crate::allocate;
use crate::layout::{Extent, Superblock};
use crate::transaction::{Transactions, ZEROS};
use crate::{Result, Store};

/// The most blocks of the reserve: this bounds the blocks that are zeroed in vain.
pub const RESERVE: u32 = 64;

/// The run.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Reserve {
    /// Free, and zeros.
    clean: Extent,
    /// Free blocks right after those, to zero next.
    ahead: Extent,
    /// There is nothing to add, until blocks are taken or given back.
    full: bool,
}

impl Reserve {
    /// The free blocks that hold zeros.
    pub fn clean(&self) -> Extent {
        self.clean
    }

    /// These blocks are used now.
    pub fn taken(&mut self, taken: Extent) {
        let (start, end) = (self.clean.start, self.clean.end());
        self.full = false;
        self.ahead = Extent::default();
        if taken.start <= start {
            self.clean.start = start.max(taken.end()).min(end);
            self.clean.length = end - self.clean.start;
        } else if taken.start < end {
            self.clean.length = taken.start - start;
        }
    }

    /// Some blocks are free now.
    pub fn given_back(&mut self) {
        self.full = false;
    }

    /// Does one step ahead of time: looks for free blocks (at most 4 block transfers) or fills one with zeros. Returns false if
    /// there is nothing to do.
    ///
    /// # Errors
    /// The store's error.
    pub fn prepare<S: Store>(
        &mut self,
        store: &mut Transactions<S>,
        layout: &Superblock,
    ) -> Result<bool> {
        if self.full || self.clean.length >= RESERVE {
            return Ok(false);
        }
        if self.ahead.length > 0 {
            // Nothing refers to it.
            store.write_unused(self.ahead.start, &ZEROS)?;
            self.clean.length += 1;
            self.ahead.start += 1;
            self.ahead.length -= 1;
            return Ok(true);
        }
        let near = (self.clean.length > 0).then(|| self.clean.end());
        match allocate::find(store, layout, near, RESERVE - self.clean.length) {
            Ok(found) if near.is_none_or(|near| near == found.start) => {
                if near.is_none() {
                    self.clean = Extent {
                        start: found.start,
                        length: 0,
                    };
                }
                self.ahead = found;
            }
            _ => self.full = true,
        }
        Ok(!self.full)
    }
}
