//! Pieces of files that clients access themselves, and the client that has each, until it is taken back.
//!
//! Why it exists: a block that a client can still reach must not become part of another file, whatever became of the handle. So each
//! piece is recorded with its inode, and forgotten only once it has really been taken back. What it deliberately does not know: how
//! access is given and taken.

use crate::{Result, Status};
use bulkhead_common::payer::{PaidList, Share};
use bulkhead_common::shares::Shares;
use bulkhead_common::waiting::{Client, Owner};

/// A piece of a file that a client may access without the server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Grant {
    /// Its place in the store, in bytes.
    pub store: u64,
    /// Its first byte in the file.
    pub offset: u64,
    /// Bytes.
    pub length: u64,
    /// Whether it may be written.
    pub writable: bool,
}

/// Gives access to pieces.
pub trait Lending {
    /// Gives access to a piece. Returns its number until it is taken back.
    ///
    /// # Errors
    /// The reason for a refusal; then no client has access.
    fn lend(&mut self, grant: &Grant) -> Result<u16>;

    /// Takes a piece back. After success, no client can use it any more.
    ///
    /// # Errors
    /// The reason why a client may still have access.
    fn take_back(&mut self, piece: u16) -> Result<()>;
}

#[derive(Clone, Copy, Debug)]
struct Lent {
    client: Client,
    /// The handle for which it was given. `None`: its activity no longer has a session, and the piece is taken back when there is time.
    handle: Option<(u16, u64)>,
    inode: u32,
    number: u16,
    /// It could not be taken back; the next attempt comes after a request was refused because of it.
    is_stuck: bool,
}

impl Lent {
    /// Whether it is to be taken back, and belongs to this inode, or to any.
    fn is_left(&self, inode: Option<u32>) -> bool {
        self.handle.is_none() && !self.is_stuck && inode.is_none_or(|inode| inode == self.inode)
    }
}

/// The pieces that are lent.
#[derive(Clone, Debug)]
pub(crate) struct Pieces<L> {
    lending: L,
    lent: PaidList<Share, Lent>,
    shares: Shares<Client>,
}

impl<L: Lending> Pieces<L> {
    pub fn new(lending: L, shares: Shares<Client>) -> Self {
        Self {
            lending,
            lent: PaidList::default(),
            shares,
        }
    }

    #[cfg(test)]
    pub fn lending(&mut self) -> &mut L {
        &mut self.lending
    }

    #[cfg(test)]
    pub fn forget_hints(&mut self) {
        self.shares.sort();
        self.try_again();
    }

    #[cfg(test)]
    pub fn has_stuck(&self) -> bool {
        self.lent.iter().any(|lent| lent.is_stuck)
    }

    #[cfg(test)]
    pub fn numbers(&self) -> alloc::collections::BTreeSet<u16> {
        self.lent.iter().map(|lent| lent.number).collect()
    }

    /// Whether a client can access blocks of a file.
    pub fn any_of(&self, inode: u32) -> bool {
        self.lent.iter().any(|lent| lent.inode == inode)
    }

    fn of(&self, handle: (u16, u64)) -> impl Iterator<Item = usize> + '_ {
        let all = self.lent.iter().enumerate();
        all.filter_map(move |(index, lent)| (lent.handle == Some(handle)).then_some(index))
    }

    /// Takes a piece back, if that works.
    fn end(&mut self, index: usize) -> Result<()> {
        self.lending.take_back(self.lent[index].number)?;
        let lent = self.lent.remove(index);
        self.shares.give_back(lent.client);
        Ok(())
    }

    /// Takes back all pieces of a handle, or as many as possible.
    ///
    /// # Errors
    /// Why one of them could not be taken back.
    pub fn end_all(&mut self, handle: (u16, u64)) -> Result<()> {
        loop {
            let first = self.of(handle).next();
            match first {
                Some(index) => self.end(index)?,
                None => return Ok(()),
            }
        }
    }

    /// The activity no longer has a session: its pieces are to be taken back, and stay on their client's account until then.
    pub fn leave(&mut self, activity: u16) {
        for lent in &mut self.lent {
            if lent.handle.is_some_and(|(of, _)| of == activity) {
                lent.handle = None;
            }
        }
    }

    /// The oldest piece that is to be taken back, of this inode or of any.
    pub fn left(&self, inode: Option<u32>) -> Option<usize> {
        self.lent.iter().position(|lent| lent.is_left(inode))
    }

    /// Takes back a leftover piece. Returns its inode, or `None` if that did not work.
    pub fn take_back(&mut self, index: usize) -> Option<u32> {
        let inode = self.lent[index].inode;
        let is_back = self.end(index).is_ok();
        if !is_back {
            self.lent[index].is_stuck = true;
        }
        is_back.then_some(inode)
    }

    /// Allows a new attempt at the pieces that could not be taken back. Returns whether there are any.
    pub fn try_again(&mut self) -> bool {
        let stuck = self.lent.iter_mut().filter(|lent| lent.is_stuck);
        stuck.map(|lent| lent.is_stuck = false).count() > 0
    }

    /// The leftover piece, if any, that must be taken back before a handle that may have at most `most` pieces can get another.
    pub fn in_the_way(&self, owner: Owner, number: u64, most: usize) -> Option<usize> {
        let to = owner.client;
        if self.shares.has_room(to) || self.of((owner.activity, number)).count() >= most {
            return None;
        }
        let makes_room =
            |lent: &Lent| lent.is_left(None) && self.shares.makes_room(lent.client, to);
        self.lent.iter().position(makes_room)
    }

    /// The piece, if any, that must make room for another piece of a handle that may have at most `most`.
    ///
    /// # Errors
    /// [`Status::TooMany`] if this client has no place left, and this handle has no piece that could make one.
    pub fn victim(&self, owner: Owner, number: u64, most: usize) -> Result<Option<usize>> {
        let mut mine = self.of((owner.activity, number));
        let oldest = mine.next();
        let count = usize::from(oldest.is_some()) + mine.count();
        match (count < most && self.shares.has_room(owner.client), oldest) {
            (true, _) => Ok(None),
            (false, Some(oldest)) => Ok(Some(oldest)),
            (false, None) => Err(Status::TooMany),
        }
    }

    /// Lends a piece in the victim's place, if there is a victim.
    ///
    /// # Errors
    /// The reason for a refusal.
    pub fn lend(
        &mut self,
        owner: Owner,
        (number, inode): (u64, u32),
        grant: &Grant,
        victim: Option<usize>,
    ) -> Result<u16> {
        if let Some(victim) = victim {
            self.end(victim)?;
        }
        if !self.shares.has_room(owner.client) {
            return Err(Status::TooMany);
        }
        let piece = self.lending.lend(grant)?;
        // There is room.
        self.shares.hold(owner.client, 1);
        self.lent.push(Lent {
            client: owner.client,
            handle: Some((owner.activity, number)),
            inode,
            number: piece,
            is_stuck: false,
        });
        Ok(piece)
    }
}
