//! What an image is charged with, and to whom.
//!
//! Why it exists: only counting reads the image. What it deliberately does not know: what an account is (see [`crate::accounts`]).

use crate::accounts::{Account, Accounts, Charge};
use crate::files::FileSystem;
use crate::layout::{Inode, ROOT};
use crate::{Result, Status, Store};
use bulkhead_common::shares::Shares;

impl<S: Store> FileSystem<S> {
    /// Gives every client its share of the blocks and of the inodes, and counts what they hold already.
    ///
    /// # Errors
    /// What the store says.
    pub fn limit(&mut self, blocks: Shares<Account>, inodes: Shares<Account>) -> Result<()> {
        self.accounts.blocks = blocks;
        self.accounts.inodes = inodes;
        self.accounts.is_stale = true;
        self.count()
    }

    /// Limits each client of a priority (below 8) to this many blocks, and files and folders.
    pub fn limit_each(&mut self, priority: usize, blocks: usize, inodes: usize) {
        if let Some(most) = self.accounts.most.get_mut(priority) {
            *most = (blocks, inodes);
        }
    }

    /// Blocks for files and folders, and how many files and folders there can be.
    pub fn room(&self) -> (usize, usize) {
        let layout = &self.layout;
        // One inode is never used, one is the root folder.
        let inodes = layout.inodes.saturating_sub(ROOT + 1);
        ((layout.blocks - layout.data) as usize, inodes as usize)
    }

    /// The payer of what is made from now on.
    pub fn charge_to(&mut self, payer: Account) {
        self.accounts.payer = payer;
    }

    /// Blocks and inodes on an account.
    pub fn held_by(&self, account: Account) -> (usize, usize) {
        let Accounts { blocks, inodes, .. } = &self.accounts;
        (blocks.of(account), inodes.of(account))
    }

    /// Before an operation: counts everything again if nobody knows what the last one did.
    #[inline(never)]
    pub(crate) fn count(&mut self) -> Result<()> {
        if !self.accounts.is_stale {
            return Ok(());
        }
        self.accounts.blocks.clear();
        self.accounts.inodes.clear();
        for inode in ROOT + 1..self.layout.inodes {
            let found = Charge::of(&self.inode(inode)?);
            self.accounts.changed(None, found);
        }
        self.accounts.is_stale = false;
        self.first_free = ROOT + 1;
        Ok(())
    }

    /// Whether counting everything again finds the same.
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

    /// There is room for `blocks` more of something.
    pub(crate) fn afford(&self, data: &Inode, blocks: u32) -> Result<()> {
        match self.accounts.room(data) >= blocks {
            true => Ok(()),
            false => Err(Status::NoSpace),
        }
    }
}
