//! How the file service handles requests: handles, rights, and changes to files that others have open.
//!
//! Why it exists: a client must not harm another one's open file, and that is a decision, so it is tested on the host. What
//! it deliberately does not know: messages, and how access to blocks is granted.

use crate::path::Path;
use crate::pieces::{Grant, Lending, Pieces};
use crate::{Account, BLOCK, Extent, FileSystem, Kind, Result, Status, Store};
use bulkhead_common::file::{
    self, CREATE, Info, Listed, NAME, Opened, PIECES, Piece, READ, TRUNCATE, WRITE,
};
use bulkhead_common::message::text;
use bulkhead_common::payer::{PaidList, Share};
use bulkhead_common::sessions::Sessions;
use bulkhead_common::shares::Shares;
use bulkhead_common::waiting::{Client, Owner};

/// Files that a client can have open at once.
pub const HANDLES: usize = 16;

/// An open file.
#[derive(Clone, Copy, Debug)]
struct Handle {
    owner: Owner,
    /// Unique for its activity.
    number: u64,
    inode: u32,
    flags: u64,
}

/// A file system with its open files.
#[derive(Clone, Debug)]
pub struct Files<S, L> {
    /// The file system.
    pub system: FileSystem<S>,
    sessions: Sessions,
    handles: PaidList<Share, Handle>,
    shares: Shares<Client>,
    pieces: Pieces<L>,
}

fn path(bytes: &[u8]) -> Result<Path<'_>> {
    match bytes.first() {
        Some(0) => Ok(Path::ROOT),
        _ => Path::parse(text(bytes)?),
    }
}

impl<S: Store, L: Lending> Files<S, L> {
    /// With places for open files and for pieces of them.
    pub fn new(
        system: FileSystem<S>,
        lending: L,
        handles: Shares<Client>,
        pieces: Shares<Client>,
    ) -> Self {
        Self {
            system,
            sessions: Sessions::new(),
            handles: PaidList::default(),
            shares: handles,
            pieces: Pieces::new(lending, pieces),
        }
    }

    /// An activity has opened a session: from now on files can be kept open for it.
    pub fn begin(&mut self, activity: u16) {
        self.sessions.opened(activity);
    }

    /// A session of an activity is over. With the last one everything ends that was kept for it.
    pub fn end(&mut self, activity: u16) {
        if !self.sessions.closed(activity) {
            return;
        }
        while let Some(Handle { owner, number, .. }) = self.known(activity, None) {
            if self.pieces.end_all((activity, number)).is_err() {
                self.pieces.orphan((activity, number));
            }
            // A store that fails shows it to who asks for something.
            let _ = self.drop_handle(owner, number);
        }
    }

    /// Forgets what only makes it quicker, for looking at the rest.
    #[cfg(test)]
    pub(crate) fn forget_hints(&mut self) {
        self.system.forget_hints();
        self.shares.sort();
        self.pieces.sort();
    }

    #[cfg(test)]
    pub(crate) fn access(&mut self) -> &mut L {
        self.pieces.lending()
    }

    /// Numbers of the pieces that are lent.
    #[cfg(test)]
    pub(crate) fn pieces_now(&self) -> alloc::collections::BTreeSet<u16> {
        self.pieces.numbers()
    }

    fn of(&self, activity: u16) -> impl Iterator<Item = Handle> + '_ {
        let all = self.handles.iter().copied();
        all.filter(move |h| h.owner.activity == activity)
    }

    /// The open file of an activity with a number, or the first one.
    fn known(&self, activity: u16, number: Option<u64>) -> Option<Handle> {
        let mut mine = self.of(activity);
        mine.find(|h| number.is_none_or(|n| n == h.number))
    }

    fn position(&self, owner: Owner, number: u64) -> Result<usize> {
        let mine = |h: &Handle| h.owner == owner && h.number == number;
        let found = self.handles.iter().position(mine);
        found.ok_or(Status::InvalidHandle)
    }

    fn find(&self, owner: Owner, number: u64, flag: u64) -> Result<Handle> {
        let handle = self.handles[self.position(owner, number)?];
        match handle.flags & flag == flag {
            true => Ok(handle),
            false => Err(Status::NoRights),
        }
    }

    /// Whether a client has a file open with a flag.
    fn is_open(&self, inode: u32, flag: u64) -> bool {
        let mut all = self.handles.iter();
        all.any(|h| h.inode == inode && h.flags & flag == flag)
    }

    /// Whether blocks of a file can be given away: no client has it open or can access a piece of it.
    fn is_unused(&self, inode: u32) -> bool {
        !self.is_open(inode, 0) && !self.pieces.any_of(inode)
    }

    fn drop_handle(&mut self, owner: Owner, number: u64) -> Result<()> {
        let index = self.position(owner, number)?;
        let handle = self.handles.remove(index);
        self.shares.give_back(handle.owner.client);
        self.trim(handle.inode)
    }

    /// Gives back blocks after a file's end, once no client uses it.
    fn trim(&mut self, inode: u32) -> Result<()> {
        if !self.is_unused(inode) {
            return Ok(());
        }
        let stat = self.system.stat(inode)?;
        match u64::from(stat.blocks) > stat.size.div_ceil(BLOCK as u64) {
            true => self.system.resize(inode, stat.size),
            false => Ok(()),
        }
    }

    /// Takes back pieces that could not be taken back before.
    fn settle(&mut self) -> Result<()> {
        while let Some(inode) = self.pieces.settle() {
            self.trim(inode)?;
        }
        Ok(())
    }

    /// Opens a file.
    ///
    /// # Errors
    /// [`Status::Busy`] if another handle writes it, or if it would be emptied and is in use; [`Status::TooMany`];
    /// [`Status::NoRights`] without a session, because the end of the client would not be reported; and those of lookups.
    pub fn open(&mut self, owner: Owner, request: &file::Open) -> Result<Opened> {
        let file::Open { flags, path: bytes } = request;
        let (flags, path) = (*flags, path(bytes)?);
        let known = READ | WRITE | CREATE | TRUNCATE;
        let (writes, empties) = (flags & WRITE != 0, flags & TRUNCATE != 0);
        if flags & !known != 0 || flags & (READ | WRITE) == 0 || (empties && !writes) {
            return Err(Status::BadRequest);
        }
        if !self.sessions.has(owner.activity) {
            return Err(Status::NoRights);
        }
        if self.shares.of(owner.client) >= HANDLES || !self.shares.has_room(owner.client) {
            return Err(Status::TooMany);
        }
        self.system.charge_to(Account::of(owner.client));
        self.settle()?;
        let mut numbers = 0..;
        let number = numbers.find(|n| self.known(owner.activity, Some(*n)).is_none());
        let number = number.ok_or(Status::TooMany)?;
        let inode = match self.system.lookup(&path) {
            Err(Status::NotFound) if flags & CREATE != 0 && writes => {
                self.system.create(&path, Kind::File)?
            }
            other => other?,
        };
        let stat = self.system.stat(inode)?;
        if stat.kind == Kind::Folder {
            return Err(Status::IsAFolder);
        }
        if writes && self.is_open(inode, WRITE) || empties && !self.is_unused(inode) {
            return Err(Status::Busy);
        }
        if empties {
            self.system.resize(inode, 0)?;
        }
        // There is room.
        self.shares.hold(owner.client, 1);
        self.handles.push(Handle {
            owner,
            number,
            inode,
            flags,
        });
        let size = if empties { 0 } else { stat.size };
        Ok(Opened {
            handle: number,
            size,
        })
    }

    /// Closes a file: takes back the pieces that were granted for it, and gives back blocks after its end that were not committed.
    ///
    /// # Errors
    /// [`Status::InvalidHandle`]; or the reason why a piece cannot be taken back: then the file is still open.
    pub fn close(&mut self, owner: Owner, number: u64) -> Result<u64> {
        self.position(owner, number)?;
        self.pieces.end_all((owner.activity, number))?;
        self.drop_handle(owner, number)?;
        Ok(0)
    }

    fn info(&mut self, inode: u32) -> Result<Info> {
        let stat = self.system.stat(inode)?;
        Ok(Info {
            kind: stat.kind as u64,
            size: stat.size,
            extents: stat.extents.into(),
        })
    }

    /// About a file or folder.
    ///
    /// # Errors
    /// Those of lookups.
    pub fn stat(&mut self, request: &file::Stat) -> Result<Info> {
        let inode = self.system.lookup(&path(&request.path)?)?;
        self.info(inode)
    }

    /// An entry of a folder.
    ///
    /// # Errors
    /// [`Status::NotFound`] at the end; those of lookups.
    pub fn list(&mut self, request: &file::List) -> Result<Listed> {
        let folder = self.system.lookup(&path(&request.path)?)?;
        let position = u32::try_from(request.position).map_err(|_| Status::BadRequest)?;
        let entry = self
            .system
            .entry(folder, position)?
            .ok_or(Status::NotFound)?;
        let mut name = [0; NAME];
        name[..entry.name.len()].copy_from_slice(entry.name.as_bytes());
        let info = self.info(entry.inode)?;
        Ok(Listed {
            next: entry.next.into(),
            info,
            name,
        })
    }

    /// Makes a folder.
    ///
    /// # Errors
    /// Those of [`FileSystem::create`].
    pub fn make_folder(&mut self, owner: Owner, request: &file::MakeFolder) -> Result<u64> {
        self.system.charge_to(Account::of(owner.client));
        self.system
            .create(&path(&request.path)?, Kind::Folder)
            .map(|_| 0)
    }

    /// Removes a file or folder.
    ///
    /// # Errors
    /// [`Status::Busy`] if it is open, or a client can still access a piece of it; those of [`FileSystem::remove`].
    pub fn remove(&mut self, request: &file::Remove) -> Result<u64> {
        let path = path(&request.path)?;
        self.settle()?;
        let (handles, pieces) = (&self.handles, &self.pieces);
        let may = |inode| match handles.iter().any(|h| h.inode == inode) || pieces.any_of(inode) {
            true => Err(Status::Busy),
            false => Ok(()),
        };
        self.system.remove(&path, may).map(|()| 0)
    }

    /// Sets a file's size, which never shrinks this way: blocks that are granted to a client must not be given away.
    ///
    /// # Errors
    /// [`Status::NoRights`]; [`Status::BadRequest`] if it is smaller than before, or its blocks do not reach as far.
    pub fn commit(&mut self, owner: Owner, request: &file::Commit) -> Result<u64> {
        let handle = self.find(owner, request.handle, WRITE)?;
        if request.size < self.system.stat(handle.inode)?.size {
            return Err(Status::BadRequest);
        }
        self.system.set_size(handle.inode, request.size)?;
        Ok(request.size)
    }

    /// Reads a few bytes.
    ///
    /// # Errors
    /// [`Status::NoRights`], [`Status::BadRequest`].
    pub fn read(&mut self, owner: Owner, request: &file::Read) -> Result<Piece> {
        let handle = self.find(owner, request.handle, READ)?;
        let mut piece = Piece::new(&[]);
        let length = usize::try_from(request.length).map_err(|_| Status::BadRequest)?;
        let target = piece.bytes.get_mut(..length).ok_or(Status::BadRequest)?;
        piece.length = self.system.read(handle.inode, request.offset, target)? as u64;
        Ok(piece)
    }

    /// Writes a few bytes.
    ///
    /// # Errors
    /// [`Status::NoRights`], [`Status::BadRequest`], [`Status::NoSpace`].
    pub fn write(&mut self, owner: Owner, request: &file::Write) -> Result<u64> {
        let handle = self.find(owner, request.handle, WRITE)?;
        self.system.charge_to(Account::of(owner.client));
        let data = request.piece.data()?;
        let blocks = u64::from(self.system.stat(handle.inode)?.blocks);
        // One step of growth at most: a far offset is a large file, which is made step by step.
        let end = request
            .offset
            .checked_add(data.len() as u64)
            .ok_or(Status::BadRequest)?;
        if end > (blocks + u64::from(crate::GROW_MAX)) * BLOCK as u64 {
            return Err(Status::NoSpace);
        }
        self.system.write(handle.inode, request.offset, data)?;
        Ok(self.system.stat(handle.inode)?.size)
    }

    /// Gives an activity access to the piece of a file at an offset, in place of its oldest one if it has as many as it may; for
    /// writing, blocks are added at the end. Returns the piece's number and the grant.
    ///
    /// # Errors
    /// [`Status::NoRights`], [`Status::InvalidHandle`], [`Status::NotFound`] behind the end, [`Status::NoSpace`],
    /// [`Status::TooMany`].
    pub fn grant(
        &mut self,
        activity: u16,
        number: u64,
        offset: u64,
        write: bool,
    ) -> Result<(u16, Grant)> {
        let handle = self.known(activity, Some(number));
        let owner = handle.ok_or(Status::InvalidHandle)?.owner;
        let handle = self.find(owner, number, if write { WRITE } else { READ })?;
        self.system.charge_to(Account::of(owner.client));
        self.settle()?;
        let victim = self.pieces.victim(owner, number, PIECES)?;
        let grant = self.piece(handle.inode, offset, write)?;
        let place = (number, handle.inode);
        let piece = self.pieces.lend(owner, place, &grant, victim)?;
        Ok((piece, grant))
    }

    /// The piece of a file at an offset; for writing, blocks are added behind the end.
    fn piece(&mut self, inode: u32, offset: u64, write: bool) -> Result<Grant> {
        let index = u32::try_from(offset / BLOCK as u64).map_err(|_| Status::BadRequest)?;
        let mut data = self.system.inode(inode)?;
        let blocks = data.blocks();
        if write && index >= blocks {
            if index > blocks {
                return Err(Status::NotFound);
            }
            // Long files grow in long steps.
            let step = crate::GROW_MAX.max(blocks.saturating_mul(crate::GROWTH));
            let wanted = index.saturating_add(step);
            data = self.system.grow_file(inode, data, wanted)?;
        } else if !write && offset >= data.size {
            return Err(Status::NotFound);
        }
        let Extent { start, length } = data.find(index).ok_or(Status::NotFound)?;
        Ok(Grant {
            store: u64::from(start) * BLOCK as u64,
            offset: u64::from(index) * BLOCK as u64,
            length: u64::from(length) * BLOCK as u64,
            writable: write,
        })
    }
}
