//! The payers of blocks and inodes.
//!
//! Why it exists: clients fill the image, so every inode names the account that pays for it and all of its blocks, and each client has
//! its share. What it deliberately does not know: operations.
//!
//! The client that creates a file or folder pays for it. A client that extends a file on another account, or on none, pays for all of it
//! from then on, so no client can fill another's share. The root folder and the files with which the image was made are on no account.

use crate::layout::Inode;
use bulkhead_common::shares::{PRIORITIES, Sharer, Shares};
use bulkhead_common::waiting::Client;

/// The payer of something in an image. The number stays in the image, so it must name the same client after every start.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Account(pub(crate) u64);

impl Account {
    /// No account: for the files with which an image was made.
    pub const IMAGE: Self = Self(0);

    /// The account of a client, whose priority is below 8.
    pub const fn of(client: Client) -> Self {
        Self(
            client
                .label
                .wrapping_mul(PRIORITIES as u64)
                .wrapping_add((client.priority % PRIORITIES) as u64 + 1),
        )
    }

    /// The priority of its client.
    fn priority(self) -> usize {
        (self.0.wrapping_sub(1) % PRIORITIES as u64) as usize
    }

    /// Whether no client pays.
    pub(crate) fn is_image(self) -> bool {
        self == Self::IMAGE
    }
}

impl Sharer for Account {
    fn seat(self) -> (usize, u64) {
        match self.is_image() {
            true => (PRIORITIES, 0),
            false => (self.priority(), (self.0 - 1) / PRIORITIES as u64),
        }
    }
}

/// A file or folder on an account. Inodes are large and stacks on the chip are small, so only this part of an inode is passed on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Charge {
    account: Account,
    blocks: u32,
}

impl Charge {
    /// The charge for an inode; `None` if it is free or on no account.
    pub(crate) fn of(data: &Inode) -> Option<Self> {
        let account = Account(data.account);
        (data.kind != 0 && !account.is_image()).then(|| Self {
            account,
            blocks: data.blocks(),
        })
    }
}

/// Each client's share of an image, and its holdings.
#[derive(Clone, Debug)]
pub struct Accounts {
    pub(crate) blocks: Shares<Account>,
    pub(crate) inodes: Shares<Account>,
    /// The most blocks and inodes of one client, by its priority.
    pub(crate) most: [(usize, usize); PRIORITIES],
    /// The payer of new files.
    pub(crate) payer: Account,
    /// Whether the last operation happened is unknown: everything must be counted again.
    pub(crate) is_stale: bool,
}

impl Accounts {
    /// No limits: every client may take everything.
    pub(crate) const fn unlimited() -> Self {
        Self {
            blocks: Shares::new(usize::MAX, 0),
            inodes: Shares::new(usize::MAX, 0),
            most: [(usize::MAX, usize::MAX); PRIORITIES],
            payer: Account::IMAGE,
            is_stale: false,
        }
    }

    /// Blocks that the payer can add to something that has some already.
    pub(crate) fn room(&self, data: &Inode) -> u32 {
        let Self { blocks, payer, .. } = self;
        let most = self.most[payer.priority()].0;
        let left = most.saturating_sub(blocks.of(*payer));
        let left = blocks.room(*payer).min(left);
        let room = match Account(data.account) {
            _ if payer.is_image() => usize::MAX,
            own if own == *payer => left,
            _ if !self.has_inode() => 0,
            _ => left.saturating_sub(data.blocks() as usize),
        };
        u32::try_from(room).unwrap_or(u32::MAX)
    }

    /// How many more files and folders the payer can have.
    pub(crate) fn inode_room(&self) -> usize {
        match self.payer {
            Account::IMAGE => usize::MAX,
            payer => {
                let most = self.most[payer.priority()].1;
                let left = most.saturating_sub(self.inodes.of(payer));
                self.inodes.room(payer).min(left)
            }
        }
    }

    /// Whether the payer can have one more file or folder.
    pub(crate) fn has_inode(&self) -> bool {
        self.inode_room() > 0
    }

    /// Puts something on the payer's account.
    pub(crate) fn take_over(&self, data: &mut Inode) {
        if !self.payer.is_image() {
            data.account = self.payer.0;
        }
    }

    /// A charge has changed.
    pub(crate) fn changed(&mut self, before: Option<Charge>, after: Option<Charge>) {
        // Usually it has only grown.
        if let (Some(before), Some(after)) = (before, after)
            && before.account == after.account
            && before.blocks <= after.blocks
        {
            let more = after.blocks - before.blocks;
            return self.blocks.hold(after.account, more as usize);
        }
        if let Some(Charge { account, blocks }) = before {
            self.blocks.give_back_all(account, blocks as usize);
            self.inodes.give_back_all(account, 1);
        }
        if let Some(Charge { account, blocks }) = after {
            self.blocks.hold(account, blocks as usize);
            self.inodes.hold(account, 1);
        }
    }
}
