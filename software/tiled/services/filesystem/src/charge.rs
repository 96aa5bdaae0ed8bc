//! Charges the contents of an image to its clients.
//!
//! Why it exists: counting is the only part of accounting that reads the image. What it deliberately does not know: what an
//! account is (see [`crate::accounts`]).

use crate::accounts::{Account, Accounts, Charge};
use crate::files::FileSystem;
use crate::layout::{BLOCK, ENTRIES, FOLDER_BLOCKS, INODES, Inode, ROOT};
use crate::transaction::Block;
use crate::{Result, Status, Store};
use bulkhead_common::shares::Seats;
#[cfg(test)]
use bulkhead_common::shares::Shares;
use zerocopy::FromBytes;

impl<S: Store> FileSystem<S> {
    /// Divides the image among the possible clients: an eighth of its blocks and inodes goes to those with a seat, at least one of
    /// both to each; the rest is for all.
    ///
    /// # Errors
    /// [`Status::NoSpace`] if there is not one for each; or the store's error.
    pub fn divide(&mut self, seats: Seats) -> Result<()> {
        self.accounts.is_stale = true;
        self.count()?;
        let (blocks, inodes) = self.room();
        let (mut image_blocks, mut image_inodes) = (0, 0);
        self.each_inode(|_, data| {
            if data.kind != 0 && Account(data.account).is_image() {
                image_blocks += data.blocks() as usize;
                image_inodes += 1;
            }
        })?;
        // Nobody owns the files with which the image was made, or the blocks that the root folder needs for all possible names.
        let names = (self.layout.inodes as usize).div_ceil(ENTRIES);
        let root = self.inode(ROOT)?.blocks() as usize;
        let root = root.max(names.min(FOLDER_BLOCKS as usize));
        let blocks = blocks.saturating_sub(root + image_blocks);
        let inodes = inodes.saturating_sub(image_inodes);
        let shares = |all: usize| {
            let each = (all / 8 / seats.count().max(1)).max(1);
            let taken = each.saturating_mul(seats.count());
            let rest = all.checked_sub(taken).ok_or(Status::NoSpace)?;
            Ok((each, rest))
        };
        let (blocks, inodes) = (shares(blocks)?, shares(inodes)?);
        self.accounts.blocks.divide(seats, blocks.0, blocks.1);
        self.accounts.inodes.divide(seats, inodes.0, inodes.1);
        Ok(())
    }

    /// Gives every client its share of the blocks and inodes, and counts those that clients hold already.
    ///
    /// # Errors
    /// The store's error.
    #[cfg(test)]
    pub(crate) fn limit(&mut self, blocks: Shares<Account>, inodes: Shares<Account>) -> Result<()> {
        self.accounts.blocks = blocks;
        self.accounts.inodes = inodes;
        self.accounts.is_stale = true;
        self.count()
    }

    /// Limits each client of a priority (below 8) to this many blocks, and this many files and folders.
    pub fn limit_each(&mut self, priority: usize, blocks: usize, inodes: usize) {
        if let Some(most) = self.accounts.most.get_mut(priority) {
            *most = (blocks, inodes);
        }
    }

    /// Blocks for files and folders, and the possible number of files and folders.
    pub fn room(&self) -> (usize, usize) {
        let layout = &self.layout;
        // One inode is never used, one is the root folder.
        let inodes = layout.inodes.saturating_sub(ROOT + 1);
        ((layout.blocks - layout.data) as usize, inodes as usize)
    }

    /// Sets the payer of files that are made from now on.
    pub fn charge_to(&mut self, payer: Account) {
        self.accounts.payer = payer;
    }

    /// Blocks and inodes on an account.
    pub fn held_by(&self, account: Account) -> (usize, usize) {
        let Accounts { blocks, inodes, .. } = &self.accounts;
        (blocks.of(account), inodes.of(account))
    }

    /// Before an operation: counts everything again if the effect of the last one is unknown.
    #[inline(never)]
    pub(crate) fn count(&mut self) -> Result<()> {
        if !self.accounts.is_stale {
            return Ok(());
        }
        self.accounts.blocks.clear();
        self.accounts.inodes.clear();
        self.each_inode(|accounts, data| accounts.changed(None, Charge::of(data)))?;
        self.accounts.is_stale = false;
        self.first_free = ROOT + 1;
        Ok(())
    }

    /// All inodes after the root folder's, a block of them at a time.
    fn each_inode(&mut self, mut action: impl FnMut(&mut Accounts, &Inode)) -> Result<()> {
        let mut table: Block = [0; BLOCK];
        for block in self.layout.table..self.layout.data {
            self.store.read(block, 0, &mut table)?;
            let inodes = table.chunks_exact(size_of::<Inode>());
            for (inode, bytes) in (INODES * (block - self.layout.table)..).zip(inodes) {
                if inode > ROOT {
                    let data = Inode::read_from_bytes(bytes).map_err(|_| Status::Corrupt)?;
                    action(&mut self.accounts, &data);
                }
            }
        }
        Ok(())
    }

    /// Whether a new count finds the same.
    #[cfg(test)]
    pub(crate) fn count_anew(&mut self) -> bool {
        let sorted = |accounts: &mut Accounts| {
            accounts.blocks.sort();
            accounts.inodes.sort();
            (accounts.blocks.clone(), accounts.inodes.clone())
        };
        let is_settled = self.count().is_ok();
        let (known, first) = (sorted(&mut self.accounts), self.first_free);
        self.accounts.is_stale = true;
        let counted = self.count().is_ok();
        self.first_free = first;
        is_settled && counted && known == sorted(&mut self.accounts)
    }

    /// Checks that there is room for `blocks` more blocks of something.
    pub(crate) fn afford(&self, data: &Inode, blocks: u32) -> Result<()> {
        match self.accounts.room(data) >= blocks {
            true => Ok(()),
            false => Err(Status::NoSpace),
        }
    }
}
