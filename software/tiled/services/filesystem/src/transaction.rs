//! Changed blocks on their way to the image: all of them or none.
//!
//! Why it exists: an operation changes several blocks, and a crash may come between any two writes. What it deliberately
//! does not know: what is in the blocks.
//!
//! Blocks go to the log, then its head, whose sum makes them valid; from there on the operation has happened. Then they go to
//! their places, and the head is made invalid.

use crate::layout::{BLOCK, LOG_BLOCKS, LogHead, checksum};
use crate::{Result, Status, Store};
use alloc::boxed::Box;
use alloc::vec::Vec;
use zerocopy::{FromBytes, FromZeros, IntoBytes};

/// First block of the log: its head.
const LOG: u64 = 1;

/// Bytes of a block.
pub type Block = [u8; BLOCK];

/// A block of zeros. Stacks on the chip are small, so blocks on them are rare and never nested.
pub static ZEROS: Block = [0; BLOCK];

/// A store with the changes of the running operation.
#[derive(Debug)]
pub struct Transactions<S> {
    store: S,
    /// Changed blocks, `used` of them.
    changed: Vec<(u32, Box<Block>)>,
    used: usize,
    sequence: u64,
}

fn place(block: u32) -> u64 {
    u64::from(block) * BLOCK as u64
}

impl<S: Store> Transactions<S> {
    /// Over a store whose log is empty. All memory that it will ever need is taken now.
    pub fn new(store: S) -> Self {
        let changed = (0..LOG_BLOCKS).map(|_| (0, Box::new([0; BLOCK])));
        Self {
            store,
            changed: changed.collect(),
            used: 0,
            sequence: 0,
        }
    }

    /// Over a store that may have crashed: finishes what had happened.
    ///
    /// # Errors
    /// What the store says.
    pub fn recover(store: S, blocks: u32) -> Result<Self> {
        let mut this = Self::new(store);
        let mut head = LogHead::new_zeroed();
        this.store.read(LOG * BLOCK as u64, head.as_mut_bytes())?;
        let count = head.count as usize;
        if head.checksum == 0 || count == 0 || count > LOG_BLOCKS {
            return Ok(this);
        }
        for index in 0..count {
            let place = (LOG + 1 + index as u64) * BLOCK as u64;
            this.store.read(place, &mut this.changed[index].1[..])?;
            this.changed[index].0 = head.targets[index];
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
    /// What the store says.
    pub fn read(&mut self, block: u32, offset: usize, buffer: &mut [u8]) -> Result<()> {
        match self.changed[..self.used].iter().find(|c| c.0 == block) {
            Some((_, data)) => {
                buffer.copy_from_slice(&data[offset..offset + buffer.len()]);
                Ok(())
            }
            None => self.store.read(place(block) + offset as u64, buffer),
        }
    }

    /// A value at an offset of a block.
    ///
    /// # Errors
    /// What the store says.
    pub fn load<T: FromBytes + IntoBytes>(&mut self, block: u32, offset: usize) -> Result<T> {
        let mut value = T::new_zeroed();
        self.read(block, offset, value.as_mut_bytes())?;
        Ok(value)
    }

    /// Changes bytes of a block.
    ///
    /// # Errors
    /// What the store says; [`Status::TooMany`] if the operation changes too many blocks.
    pub fn change(&mut self, block: u32, offset: usize, data: &[u8]) -> Result<()> {
        let known = self.changed[..self.used].iter().position(|c| c.0 == block);
        let index = match known {
            Some(index) => index,
            None => {
                let index = self.used;
                let (number, buffer) = self.changed.get_mut(index).ok_or(Status::TooMany)?;
                *number = block;
                self.store.read(place(block), &mut buffer[..])?;
                self.used += 1;
                index
            }
        };
        self.changed[index].1[offset..offset + data.len()].copy_from_slice(data);
        Ok(())
    }

    /// Writes a block at once, outside of the operation: for blocks that nothing refers to yet.
    ///
    /// # Errors
    /// What the store says.
    pub fn write_unused(&mut self, block: u32, data: &Block) -> Result<()> {
        // Whatever the operation changed in it is over.
        debug_assert!(self.changed[..self.used].iter().all(|c| c.0 != block));
        self.store.write(place(block), data)
    }

    /// Makes the changes last.
    ///
    /// # Errors
    /// What the store says; then the operation may have happened or not.
    pub fn commit(&mut self) -> Result<()> {
        if self.used == 0 {
            return Ok(());
        }
        let mut head = LogHead::new_zeroed();
        self.sequence += 1;
        head.sequence = self.sequence;
        head.count = self.used as u32;
        for (index, (block, data)) in self.changed[..self.used].iter().enumerate() {
            head.targets[index] = *block;
            let place = (LOG + 1 + index as u64) * BLOCK as u64;
            self.store.write(place, &data[..])?;
        }
        head.checksum = sum(&head, &self.changed[..self.used]);
        self.store.write(LOG * BLOCK as u64, head.as_bytes())?;
        self.apply()
    }

    fn apply(&mut self) -> Result<()> {
        for (block, data) in &self.changed[..self.used] {
            self.store.write(place(*block), &data[..])?;
        }
        self.used = 0;
        self.store.write(LOG * BLOCK as u64, &[0; 8])
    }

    /// Forgets the changes.
    pub fn abort(&mut self) {
        self.used = 0;
    }

    /// The store.
    pub fn into_store(self) -> S {
        self.store
    }
}

fn sum(head: &LogHead, blocks: &[(u32, Box<Block>)]) -> u64 {
    let start = checksum(0, &head.as_bytes()[8..]);
    let sum = blocks
        .iter()
        .fold(start, |before, (_, data)| checksum(before, &data[..]));
    // 0 says that there is nothing.
    sum.max(1)
}
