//! How the file service handles requests: handles, rights, and changes to files that others have open.
//!
//! Why it exists: a client must not harm another client's open file; whether it may act is a decision, and the host tests decisions. What
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

/// Files that a client can have open at one time.
pub const HANDLES: usize = 16;

/// An open file.
#[derive(Clone, Copy, Debug)]
struct Handle {
    client: Client,
    /// The activity that has it open. `None`: that activity no longer has a session, and the file is closed when there is time.
    activity: Option<u16>,
    /// Unique within its activity.
    number: u64,
    inode: u32,
    flags: u64,
}

/// Why a request was not performed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Refusal {
    /// That is the answer.
    Status(Status),
    /// Leftovers of clients whose sessions are over are in the way, for this inode: call [`Files::clean`] for it, and ask again.
    Later(u32),
}

impl From<Status> for Refusal {
    fn from(status: Status) -> Self {
        Self::Status(status)
    }
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
    /// Nothing is left of clients whose sessions are over, except for what could not be taken back.
    is_clean: bool,
}

fn path(bytes: &[u8]) -> Result<Path<'_>> {
    match bytes.first() {
        Some(0) => Ok(Path::ROOT),
        _ => Path::parse(text(bytes)?),
    }
}

/// Checks that nobody has a file open with a flag. With no flag, checks that nobody can access a piece of it either; then its blocks can be
/// given away.
fn claim<L: Lending>(
    handles: &[Handle],
    pieces: &Pieces<L>,
    inode: u32,
    flag: u64,
) -> core::result::Result<(), Refusal> {
    let is_whole = flag == 0;
    let mut is_left = is_whole && pieces.left(Some(inode)).is_some();
    for handle in handles {
        if handle.inode == inode && handle.flags & flag == flag {
            match handle.activity {
                Some(_) => return Err(Status::Busy.into()),
                None => is_left = true,
            }
        }
    }
    match is_left {
        true => Err(Refusal::Later(inode)),
        false if is_whole && pieces.any_of(inode) => Err(Status::Busy.into()),
        false => Ok(()),
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
            is_clean: true,
        }
    }

    /// An activity has opened a session: from now on it can have files open.
    pub fn begin(&mut self, activity: u16) {
        self.sessions.opened(activity);
    }

    /// A session of an activity is over. With its last session, the activity loses access to everything that was kept for it;
    /// [`clean`](Self::clean) then takes back pieces and closes files one by one.
    pub fn end(&mut self, activity: u16) {
        if !self.sessions.closed(activity) {
            return;
        }
        for handle in &mut self.handles {
            if handle.activity == Some(activity) {
                handle.activity = None;
                self.is_clean = false;
            }
        }
        self.pieces.leave(activity);
    }

    /// Takes back one piece or closes one file left by clients whose sessions are over, for this inode or for any. Returns false if there
    /// is nothing to do.
    pub fn clean(&mut self, inode: Option<u32>) -> bool {
        if self.is_clean {
            return false;
        }
        if let Some(piece) = self.pieces.left(inode) {
            self.take_back(piece);
            return true;
        }
        // Only when all of its pieces are back, as far as possible, does nobody write to the file any more.
        let is_left = |h: &Handle| h.activity.is_none() && inode.is_none_or(|i| i == h.inode);
        match self.handles.iter().position(is_left) {
            Some(index) => {
                // Every client sees the failure of a store at its own requests.
                let _ = self.drop_handle(index);
                true
            }
            None => {
                self.is_clean = inode.is_none();
                false
            }
        }
    }

    fn take_back(&mut self, piece: usize) {
        if let Some(inode) = self.pieces.take_back(piece) {
            // Every client sees the failure of a store at its own requests.
            let _ = self.trim(inode);
        }
    }

    /// After a refusal because of something that could not be taken back, taking it back is tried again.
    fn refused(&mut self, why: Refusal) -> Refusal {
        if why == Refusal::Status(Status::Busy) {
            self.try_again();
        }
        why
    }

    fn try_again(&mut self) {
        self.is_clean &= !self.pieces.try_again();
    }

    /// Forgets everything that only saves time, to compare the rest.
    #[cfg(test)]
    pub(crate) fn forget_hints(&mut self) {
        self.system.forget_hints();
        self.shares.sort();
        self.pieces.forget_hints();
        self.is_clean = false;
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

    /// Whether there are pieces that could not be taken back.
    #[cfg(test)]
    pub(crate) fn has_stuck(&self) -> bool {
        self.pieces.has_stuck()
    }

    /// Inodes of the files that no activity has open any more.
    #[cfg(test)]
    pub(crate) fn left_now(&self) -> alloc::vec::Vec<u32> {
        let left = self.handles.iter().filter(|h| h.activity.is_none());
        left.map(|h| h.inode).collect()
    }

    /// The place of an open file of an activity.
    fn known(&self, activity: u16, number: u64) -> Option<usize> {
        let mine = |h: &Handle| h.activity == Some(activity) && h.number == number;
        self.handles.iter().position(mine)
    }

    fn position(&self, owner: Owner, number: u64) -> Result<usize> {
        let found = self.known(owner.activity, number);
        let found = found.filter(|index| self.handles[*index].client == owner.client);
        found.ok_or(Status::InvalidHandle)
    }

    fn find(&self, owner: Owner, number: u64, flag: u64) -> Result<Handle> {
        let handle = self.handles[self.position(owner, number)?];
        match handle.flags & flag == flag {
            true => Ok(handle),
            false => Err(Status::NoRights),
        }
    }

    /// Whether no client has a file open or can access a piece of it.
    fn is_unused(&self, inode: u32) -> bool {
        !self.handles.iter().any(|h| h.inode == inode) && !self.pieces.any_of(inode)
    }

    fn drop_handle(&mut self, index: usize) -> Result<()> {
        let handle = self.handles.remove(index);
        self.shares.give_back(handle.client);
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

    /// Checks that a client can have one more open file.
    fn has_place(&self, client: Client) -> core::result::Result<(), Refusal> {
        if self.shares.of(client) < HANDLES && self.shares.has_room(client) {
            return Ok(());
        }
        // The leftover places of its former activities come first.
        let mut left = self.handles.iter().filter(|h| h.activity.is_none());
        let own = left.clone().find(|h| h.client == client);
        match own.or_else(|| left.find(|h| self.shares.makes_room(h.client, client))) {
            Some(handle) => Err(Refusal::Later(handle.inode)),
            None => Err(Status::TooMany.into()),
        }
    }

    /// Why there is no space: blocks that ended clients did not commit come back when their files are closed.
    fn short_of(&self, status: Status) -> Refusal {
        let mut left = self.handles.iter().filter(|h| h.activity.is_none());
        match left.next() {
            Some(handle) if status == Status::NoSpace => Refusal::Later(handle.inode),
            _ => status.into(),
        }
    }

    /// Opens a file.
    ///
    /// # Errors
    /// [`Status::Busy`] if another handle writes it, or if it would be emptied and is in use; [`Status::TooMany`]; [`Status::NoRights`]
    /// without a session, because the end of the client would not be reported; and those of lookups. [`Refusal::Later`] if only leftovers
    /// of ended clients are in the way.
    pub fn open(
        &mut self,
        owner: Owner,
        request: &file::Open,
    ) -> core::result::Result<Opened, Refusal> {
        let file::Open { flags, path: bytes } = request;
        let (flags, path) = (*flags, path(bytes)?);
        let known = READ | WRITE | CREATE | TRUNCATE;
        let (writes, empties) = (flags & WRITE != 0, flags & TRUNCATE != 0);
        if flags & !known != 0 || flags & (READ | WRITE) == 0 || (empties && !writes) {
            return Err(Status::BadRequest.into());
        }
        if !self.sessions.has(owner.activity) {
            return Err(Status::NoRights.into());
        }
        self.has_place(owner.client)?;
        self.system.charge_to(Account::of(owner.client));
        let mut numbers = 0..;
        let number = numbers.find(|n| self.known(owner.activity, *n).is_none());
        let number = number.ok_or(Status::TooMany)?;
        let inode = match self.system.lookup(&path) {
            Err(Status::NotFound) if flags & CREATE != 0 && writes => {
                let made = self.system.create(&path, Kind::File);
                made.map_err(|status| self.short_of(status))?
            }
            other => other?,
        };
        let stat = self.system.stat(inode)?;
        if stat.kind == Kind::Folder {
            return Err(Status::IsAFolder.into());
        }
        if writes {
            let flag = if empties { 0 } else { WRITE };
            let claimed = claim(&self.handles, &self.pieces, inode, flag);
            claimed.map_err(|why| self.refused(why))?;
        }
        if empties {
            self.system.resize(inode, 0)?;
        }
        // There is room.
        self.shares.hold(owner.client, 1);
        self.handles.push(Handle {
            client: owner.client,
            activity: Some(owner.activity),
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
        let index = self.position(owner, number)?;
        self.pieces.end_all((owner.activity, number))?;
        self.drop_handle(index)?;
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

    /// Attributes of a file or folder.
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
    /// Those of [`FileSystem::create`]; [`Refusal::Later`] if leftovers of ended clients may make room.
    pub fn make_folder(
        &mut self,
        owner: Owner,
        request: &file::MakeFolder,
    ) -> core::result::Result<u64, Refusal> {
        self.system.charge_to(Account::of(owner.client));
        let made = self.system.create(&path(&request.path)?, Kind::Folder);
        made.map_err(|status| self.short_of(status)).map(|_| 0)
    }

    /// Removes a file or folder.
    ///
    /// # Errors
    /// [`Status::Busy`] if it is open, or a client can still access a piece of it; those of [`FileSystem::remove`]. [`Refusal::Later`] if
    /// only leftovers of ended clients are in the way.
    pub fn remove(&mut self, request: &file::Remove) -> core::result::Result<u64, Refusal> {
        let path = path(&request.path)?;
        let (handles, pieces, mut refusal) = (&self.handles, &self.pieces, None);
        let outcome = self.system.remove(&path, |inode| {
            claim(handles, pieces, inode, 0).map_err(|why| {
                refusal = Some(why);
                Status::Busy
            })
        });
        match refusal {
            Some(why) => Err(self.refused(why)),
            None => Ok(outcome.map(|()| 0)?),
        }
    }

    /// Sets a file's size. The file never shrinks this way, because blocks granted to a client must not be given away.
    ///
    /// # Errors
    /// [`Status::NoRights`]; [`Status::BadRequest`] if it is smaller than before, or its blocks do not reach that far.
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
    /// [`Status::NoRights`], [`Status::BadRequest`], [`Status::NoSpace`]; [`Refusal::Later`] if leftovers of ended clients may make room.
    pub fn write(
        &mut self,
        owner: Owner,
        request: &file::Write,
    ) -> core::result::Result<u64, Refusal> {
        let handle = self.find(owner, request.handle, WRITE)?;
        self.system.charge_to(Account::of(owner.client));
        let data = request.piece.data()?;
        let blocks = u64::from(self.system.stat(handle.inode)?.blocks);
        // At most one step of growth: a far offset means a large file, which grows step by step.
        let end = request
            .offset
            .checked_add(data.len() as u64)
            .ok_or(Status::BadRequest)?;
        if end > (blocks + u64::from(crate::GROW_MAX)) * BLOCK as u64 {
            return Err(Status::NoSpace.into());
        }
        let written = self.system.write(handle.inode, request.offset, data);
        written.map_err(|status| self.short_of(status))?;
        Ok(self.system.stat(handle.inode)?.size)
    }

    /// Gives an activity access to the piece of a file at an offset, in place of its oldest piece if it has as many as it may have; for
    /// writing, blocks are added at the end. Returns the piece's number and the grant.
    ///
    /// # Errors
    /// [`Status::NoRights`], [`Status::InvalidHandle`], [`Status::NotFound`] after the end, [`Status::NoSpace`], [`Status::TooMany`];
    /// [`Status::Busy`] if leftovers of ended clients may make room and one such piece was just taken back.
    pub fn grant(
        &mut self,
        activity: u16,
        number: u64,
        offset: u64,
        write: bool,
    ) -> Result<(u16, Grant)> {
        let known = self
            .known(activity, number)
            .map(|index| self.handles[index]);
        let Handle {
            client,
            inode,
            flags,
            ..
        } = known.ok_or(Status::InvalidHandle)?;
        if flags & (if write { WRITE } else { READ }) == 0 {
            return Err(Status::NoRights);
        }
        let owner = Owner { client, activity };
        self.system.charge_to(Account::of(client));
        if let Some(piece) = self.pieces.in_the_way(owner, number, PIECES) {
            self.take_back(piece);
        }
        let victim = self.pieces.victim(owner, number, PIECES);
        if victim == Err(Status::TooMany) {
            self.try_again();
        }
        let victim = victim?;
        let grant =
            self.piece(inode, offset, write)
                .map_err(|status| match self.short_of(status) {
                    Refusal::Status(status) => status,
                    Refusal::Later(left) => {
                        self.clean(Some(left));
                        Status::Busy
                    }
                })?;
        let piece = self.pieces.lend(owner, (number, inode), &grant, victim)?;
        Ok((piece, grant))
    }

    /// The piece of a file at an offset; for writing, blocks are added after the end.
    fn piece(&mut self, inode: u32, offset: u64, write: bool) -> Result<Grant> {
        let index = u32::try_from(offset / BLOCK as u64).map_err(|_| Status::BadRequest)?;
        let mut data = self.system.inode(inode)?;
        let blocks = data.blocks();
        if write && index >= blocks {
            if index > blocks {
                return Err(Status::NotFound);
            }
            // Long files grow by long steps.
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
