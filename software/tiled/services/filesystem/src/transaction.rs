//! Changed blocks on their way to the image: all of them or none.
//!
//! Why it exists: an operation changes several blocks, and a crash may come between any two writes. What it deliberately does not
//! know: the contents of the blocks.
//!
//! The changed part of each block goes to the log, then the log's head, whose checksum makes them valid; at that moment the
//! operation has happened. Then the parts go to their places, and the head becomes invalid. Parts begin and end at words.

use crate::layout::{BLOCK, LOG_BLOCKS, LogHead, checksum};
use crate::{Result, Status, Store};
use alloc::boxed::Box;
use bulkhead_common::payer::Fixed;
use core::ops::Range;
use zerocopy::{FromBytes, FromZeros, IntoBytes};

/// First block of the log: its head.
const LOG: u64 = 1;

/// Bytes of a block.
pub type Block = [u8; BLOCK];

/// A block of zeros. Stacks on the chip are small, so blocks on them are rare and never nested.
pub static ZEROS: Block = [0; BLOCK];

/// A block that the running operation changes.
#[derive(Clone, Debug)]
struct Changed {
    block: u32,
    /// The bytes of the part; the others mean nothing.
    data: Box<Block>,
    /// From the first changed byte to after the last.
    part: Range<usize>,
}

impl Changed {
    /// Extends the part to include another one.
    fn reach<S: Store>(&mut self, store: &mut S, other: &Range<usize>) -> Result<()> {
        let Range { start, end } = self.part;
        let at = place(self.block);
        if other.start < start {
            let before = &mut self.data[other.start..start];
            store.read(at + other.start as u64, before)?;
            self.part.start = other.start;
        }
        if other.end > end {
            store.read(at + end as u64, &mut self.data[end..other.end])?;
            self.part.end = other.end;
        }
        Ok(())
    }
}

/// A store with the changes of the running operation.
#[derive(Clone, Debug)]
pub struct Transactions<S> {
    store: S,
    /// Changed blocks; `used` of them are in use.
    changed: Fixed<Changed>,
    used: usize,
    sequence: u64,
    /// The store failed while the operation became valid, so whether it has happened is unknown.
    in_doubt: bool,
}

fn place(block: u32) -> u64 {
    u64::from(block) * BLOCK as u64
}

/// Where the log keeps its block with this index.
fn logged(index: usize) -> u64 {
    (LOG + 1 + index as u64) * BLOCK as u64
}

impl<S: Store> Transactions<S> {
    /// Over a store whose log is empty. Takes all memory that it will ever need.
    pub fn new(store: S) -> Self {
        let changed = (0..LOG_BLOCKS).map(|_| Changed {
            block: 0,
            data: Box::new([0; BLOCK]),
            part: 0..0,
        });
        Self {
            store,
            changed: changed.collect(),
            used: 0,
            sequence: 0,
            in_doubt: false,
        }
    }

    /// Opens a store after a possible crash: completes an operation that had happened.
    ///
    /// # Errors
    /// The store's error.
    pub fn recover(store: S, blocks: u32) -> Result<Self> {
        let mut this = Self::new(store);
        let mut head = LogHead::new_zeroed();
        this.store.read(LOG * BLOCK as u64, head.as_mut_bytes())?;
        let count = head.count as usize;
        if head.checksum == 0 || count == 0 || count > LOG_BLOCKS {
            return Ok(this);
        }
        for index in 0..count {
            let [first, length] = head.parts[index].map(usize::from);
            let changed = &mut this.changed[index];
            changed.part = first..first + length;
            changed.block = head.targets[index];
            let Some(part) = changed.data.get_mut(changed.part.clone()) else {
                return Ok(this);
            };
            this.store.read(logged(index) + first as u64, part)?;
        }
        let inside = head.targets[..count].iter().all(|&target| target < blocks);
        if inside && sum(&head, &this.changed[..count]) == head.checksum {
            this.used = count;
            this.sequence = head.sequence;
            this.apply()?;
        }
        Ok(this)
    }

    /// Bytes of a block as the running operation sees it.
    ///
    /// # Errors
    /// The store's error.
    pub fn read(&mut self, block: u32, offset: usize, buffer: &mut [u8]) -> Result<()> {
        self.resolve()?;
        let end = offset + buffer.len();
        let changed = self.changed[..self.used].iter().find(|c| c.block == block);
        let part = changed.map_or(0..0, |c| c.part.clone());
        if offset < part.start || end > part.end {
            self.store.read(place(block) + offset as u64, buffer)?;
        }
        let (start, end) = (part.start.max(offset), part.end.min(end));
        if let Some(Changed { data, .. }) = changed
            && start < end
        {
            buffer[start - offset..end - offset].copy_from_slice(&data[start..end]);
        }
        Ok(())
    }

    /// A value at an offset of a block.
    ///
    /// # Errors
    /// The store's error.
    pub fn load<T: FromBytes + IntoBytes>(&mut self, block: u32, offset: usize) -> Result<T> {
        let mut value = T::new_zeroed();
        self.read(block, offset, value.as_mut_bytes())?;
        Ok(value)
    }

    /// Changes bytes of a block.
    ///
    /// # Errors
    /// The store's error; [`Status::TooMany`] if the operation changes too many blocks.
    pub fn change(&mut self, block: u32, offset: usize, data: &[u8]) -> Result<()> {
        let known = self.changed[..self.used]
            .iter()
            .position(|c| c.block == block);
        let end = offset + data.len();
        let part = offset / 8 * 8..end.next_multiple_of(8);
        let changed = match known {
            Some(index) => {
                let changed = &mut self.changed[index];
                changed.reach(&mut self.store, &part)?;
                changed
            }
            None => {
                let changed = self.changed.get_mut(self.used).ok_or(Status::TooMany)?;
                changed.block = block;
                changed.part = part.clone();
                // Only the words that are not changed completely, and those between them.
                if part != (offset..end) {
                    let at = place(block) + part.start as u64;
                    self.store.read(at, &mut changed.data[part])?;
                }
                self.used += 1;
                changed
            }
        };
        changed.data[offset..end].copy_from_slice(data);
        Ok(())
    }

    /// Writes a block at once, outside the operation: for blocks that nothing refers to yet.
    ///
    /// # Errors
    /// The store's error.
    pub fn write_unused(&mut self, block: u32, data: &Block) -> Result<()> {
        // Any change that the operation made to it is over.
        debug_assert!(self.changed[..self.used].iter().all(|c| c.block != block));
        self.store.write(place(block), data)
    }

    /// Makes the changes permanent.
    ///
    /// # Errors
    /// The store's error. Then the operation has not happened, or is in doubt: [`resolve`](Self::resolve) finds out.
    pub fn commit(&mut self) -> Result<()> {
        if self.used == 0 {
            return Ok(());
        }
        self.sequence += 1;
        let head = match self.log() {
            Ok(head) => head,
            Err(status) => {
                // An older head does not fit the log's present contents.
                self.abort();
                return Err(status);
            }
        };
        self.in_doubt = true;
        self.store.write(LOG * BLOCK as u64, head.as_bytes())?;
        self.apply()
    }

    /// Whether it is unknown if an operation has happened.
    pub fn is_in_doubt(&self) -> bool {
        self.in_doubt
    }

    /// Finds out whether the operation in doubt has happened; if so, completes it, otherwise forgets it.
    ///
    /// # Errors
    /// The store's error; then it is still in doubt.
    pub fn resolve(&mut self) -> Result<()> {
        if !self.in_doubt {
            return Ok(());
        }
        let mut head = LogHead::new_zeroed();
        self.store.read(LOG * BLOCK as u64, head.as_mut_bytes())?;
        // The checksum covers the whole head, so a partly written head is invalid.
        let known = head.sequence == self.sequence && head.count as usize == self.used;
        if known && head.checksum != 0 && sum(&head, &self.changed[..self.used]) == head.checksum {
            return self.apply();
        }
        // The remains of the head must not become valid.
        self.store.write(LOG * BLOCK as u64, &[0; 8])?;
        self.abort();
        self.in_doubt = false;
        Ok(())
    }

    /// Writes the changed parts to the log; returns the head that makes them valid.
    fn log(&mut self) -> Result<LogHead> {
        let mut head = LogHead::new_zeroed();
        head.sequence = self.sequence;
        head.count = self.used as u32;
        for (index, changed) in self.changed[..self.used].iter().enumerate() {
            let part = changed.part.clone();
            head.targets[index] = changed.block;
            // A block has fewer bytes than such a number can hold.
            head.parts[index] = [part.start as u16, part.len() as u16];
            let place = logged(index) + part.start as u64;
            self.store.write(place, &changed.data[part])?;
        }
        head.checksum = sum(&head, &self.changed[..self.used]);
        Ok(head)
    }

    fn apply(&mut self) -> Result<()> {
        for Changed { block, data, part } in &self.changed[..self.used] {
            let at = place(*block) + part.start as u64;
            self.store.write(at, &data[part.clone()])?;
        }
        self.store.write(LOG * BLOCK as u64, &[0; 8])?;
        self.used = 0;
        self.in_doubt = false;
        Ok(())
    }

    /// Forgets the changes.
    pub fn abort(&mut self) {
        self.used = 0;
    }

    /// Drops the remains of completed operations.
    #[cfg(test)]
    pub fn forget_hints(&mut self) {
        self.changed = self.changed[..self.used].iter().cloned().collect();
        self.sequence = 0;
    }

    #[cfg(test)]
    pub fn inner(&mut self) -> &mut S {
        &mut self.store
    }

    /// The store.
    pub fn into_store(self) -> S {
        self.store
    }
}

fn sum(head: &LogHead, blocks: &[Changed]) -> u64 {
    let start = checksum(0, &head.as_bytes()[8..]);
    let sum = blocks
        .iter()
        .fold(start, |before, c| checksum(before, &c.data[c.part.clone()]));
    // 0 means an empty log.
    sum.max(1)
}
