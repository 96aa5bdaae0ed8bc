//! What the file service does with a request: handles, rights and who may change what while others have it open.
//!
//! Why it exists: a client must not harm another one's open file, and that is a decision, so it is tested on the host. What
//! it deliberately does not know: messages, and how access to blocks is granted.

use crate::{BLOCK, Extent, FileSystem, Kind, ROOT, Result, Status, Store};
use alloc::vec::Vec;
use bulkhead_common::file::{
    self, CREATE, Info, Listed, NAME, Opened, Piece, READ, TRUNCATE, WRITE,
};
use bulkhead_common::message::text;
use bulkhead_common::waiting::Client;

/// Files that a client can have open at once.
pub const HANDLES: usize = 16;

/// An open file.
#[derive(Clone, Copy, Debug)]
struct Handle {
    client: Client,
    number: u64,
    inode: u32,
    flags: u64,
}

/// A piece of a file that a client may access without the server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Grant {
    /// Where it lies in the store, in bytes.
    pub store: u64,
    /// Its first byte in the file.
    pub offset: u64,
    /// Bytes.
    pub length: u64,
    /// Whether it may be written.
    pub writable: bool,
}

/// A file system with its open files.
#[derive(Debug)]
pub struct Files<S> {
    /// The file system.
    pub system: FileSystem<S>,
    handles: Vec<Handle>,
    places: usize,
}

fn path(bytes: &[u8]) -> Result<&str> {
    if bytes.first() == Some(&0) {
        Ok("")
    } else {
        text(bytes)
    }
}

impl<S: Store> Files<S> {
    /// With room for so many open files.
    pub fn new(system: FileSystem<S>, places: usize) -> Self {
        Self {
            system,
            handles: Vec::with_capacity(places),
            places,
        }
    }

    fn find(&self, client: Client, number: u64, flag: u64) -> Result<Handle> {
        let mine = |h: &&Handle| h.client == client && h.number == number;
        let handle = *self
            .handles
            .iter()
            .find(mine)
            .ok_or(Status::InvalidHandle)?;
        if handle.flags & flag == flag {
            Ok(handle)
        } else {
            Err(Status::NoRights)
        }
    }

    fn is_open(&self, inode: u32, flag: u64) -> bool {
        self.handles
            .iter()
            .any(|h| h.inode == inode && h.flags & flag == flag)
    }

    /// Opens a file.
    ///
    /// # Errors
    /// [`Status::Busy`] if another handle writes it, or if it shall be emptied and is open; [`Status::TooMany`]; those of lookups.
    pub fn open(&mut self, client: Client, request: &file::Open) -> Result<Opened> {
        let file::Open { flags, path: bytes } = request;
        let (flags, name) = (*flags, path(bytes)?);
        let known = READ | WRITE | CREATE | TRUNCATE;
        let writes = flags & WRITE != 0;
        if flags & !known != 0 || flags & (READ | WRITE) == 0 || (flags & TRUNCATE != 0 && !writes)
        {
            return Err(Status::BadRequest);
        }
        let mine = self.handles.iter().filter(|h| h.client == client);
        let number = (0..HANDLES as u64).find(|n| mine.clone().all(|h| h.number != *n));
        let number = number.ok_or(Status::TooMany)?;
        if self.handles.len() == self.places {
            return Err(Status::TooMany);
        }
        let inode = match self.system.lookup(name) {
            Err(Status::NotFound) if flags & CREATE != 0 && writes => {
                self.system.create(name, Kind::File)?
            }
            other => other?,
        };
        let stat = self.system.stat(inode)?;
        if stat.kind == Kind::Folder {
            return Err(Status::IsAFolder);
        }
        if writes && self.is_open(inode, WRITE) || flags & TRUNCATE != 0 && self.is_open(inode, 0) {
            return Err(Status::Busy);
        }
        if flags & TRUNCATE != 0 {
            self.system.resize(inode, 0)?;
        }
        self.handles.push(Handle {
            client,
            number,
            inode,
            flags,
        });
        let size = if flags & TRUNCATE != 0 { 0 } else { stat.size };
        Ok(Opened {
            handle: number,
            size,
        })
    }

    /// Closes a file, and gives back blocks behind its end that were granted and not committed.
    ///
    /// # Errors
    /// [`Status::InvalidHandle`].
    pub fn close(&mut self, client: Client, number: u64) -> Result<u64> {
        let handle = self.find(client, number, 0)?;
        self.handles
            .retain(|h| !(h.client == client && h.number == number));
        if handle.flags & WRITE != 0 && !self.is_open(handle.inode, 0) {
            let stat = self.system.stat(handle.inode)?;
            self.system.resize(handle.inode, stat.size)?;
        }
        Ok(0)
    }

    /// Closes all files of a client that is gone.
    pub fn forget(&mut self, client: Client) {
        while let Some(handle) = self.handles.iter().find(|h| h.client == client).copied() {
            if self.close(client, handle.number).is_err() {
                self.handles
                    .retain(|h| !(h.client == client && h.number == handle.number));
            }
        }
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
        let inode = self.system.lookup(path(&request.path)?)?;
        self.info(inode)
    }

    /// An entry of a folder.
    ///
    /// # Errors
    /// [`Status::NotFound`] at the end; those of lookups.
    pub fn list(&mut self, request: &file::List) -> Result<Listed> {
        let folder = match path(&request.path)? {
            "" => ROOT,
            name => self.system.lookup(name)?,
        };
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
    pub fn make_folder(&mut self, request: &file::MakeFolder) -> Result<u64> {
        self.system
            .create(path(&request.path)?, Kind::Folder)
            .map(|_| 0)
    }

    /// Removes a file or folder.
    ///
    /// # Errors
    /// [`Status::Busy`] if it is open; those of [`FileSystem::remove`].
    pub fn remove(&mut self, request: &file::Remove) -> Result<u64> {
        let name = path(&request.path)?;
        let inode = self.system.lookup(name)?;
        if self.is_open(inode, 0) {
            return Err(Status::Busy);
        }
        self.system.remove(name).map(|()| 0)
    }

    /// Sets a file's size, which never shrinks so: blocks that are granted to somebody must not be given away.
    ///
    /// # Errors
    /// [`Status::NoRights`]; [`Status::BadRequest`] if it is smaller than before, or its blocks do not reach as far.
    pub fn commit(&mut self, client: Client, request: &file::Commit) -> Result<u64> {
        let handle = self.find(client, request.handle, WRITE)?;
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
    pub fn read(&mut self, client: Client, request: &file::Read) -> Result<Piece> {
        let handle = self.find(client, request.handle, READ)?;
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
    pub fn write(&mut self, client: Client, request: &file::Write) -> Result<u64> {
        let handle = self.find(client, request.handle, WRITE)?;
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

    /// The piece of a file at an offset that a client may access itself; for writing, blocks are added behind the end.
    ///
    /// # Errors
    /// [`Status::NoRights`], [`Status::InvalidHandle`], [`Status::NotFound`] behind the end, [`Status::NoSpace`].
    pub fn grant(
        &mut self,
        client: Client,
        handle: u64,
        offset: u64,
        write: bool,
    ) -> Result<Grant> {
        let handle = self.find(client, handle, if write { WRITE } else { READ })?;
        let index = u32::try_from(offset / BLOCK as u64).map_err(|_| Status::BadRequest)?;
        let mut data = self.system.inode(handle.inode)?;
        let blocks = data.blocks();
        if write && index >= blocks {
            if index > blocks {
                return Err(Status::NotFound);
            }
            // Long files grow in long steps.
            let step = crate::GROW_MAX.max(blocks.saturating_mul(crate::GROWTH));
            let wanted = index.saturating_add(step);
            data = self.system.grow_file(handle.inode, data, wanted)?;
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tests::fresh;
    use bulkhead_common::file::path;

    fn client(label: u64) -> Client {
        Client { priority: 0, label }
    }

    fn open(files: &mut Files<impl Store>, who: u64, name: &str, flags: u64) -> Result<Opened> {
        let path = path(name).expect("short");
        files.open(client(who), &file::Open { flags, path })
    }

    fn remove(files: &mut Files<impl Store>, name: &str) -> Result<u64> {
        let path = path(name).expect("short");
        files.remove(&file::Remove { path })
    }

    #[test]
    fn handles_belong_to_their_client() {
        let mut files = Files::new(fresh(), 64);
        let opened = open(&mut files, 1, "a", WRITE | CREATE).expect("room");
        let handle = opened.handle;
        let commit = file::Commit { handle, size: 0 };
        assert_eq!(files.commit(client(2), &commit), Err(Status::InvalidHandle));
        assert_eq!(files.close(client(2), handle), Err(Status::InvalidHandle));
        assert_eq!(
            files.grant(client(2), handle, 0, true),
            Err(Status::InvalidHandle)
        );
        assert_eq!(
            files.grant(client(1), handle, 0, false),
            Err(Status::NoRights)
        );
        assert_eq!(files.commit(client(1), &commit), Ok(0));
        assert_eq!(files.close(client(1), handle), Ok(0));
        assert_eq!(files.close(client(1), handle), Err(Status::InvalidHandle));
    }

    #[test]
    fn what_is_open_is_neither_removed_nor_shortened_by_others() {
        let mut files = Files::new(fresh(), 64);
        let writer = open(&mut files, 1, "a", READ | WRITE | CREATE).expect("room");
        let piece = Piece::new(&[7; 200]);
        assert_eq!(
            files.write(
                client(1),
                &file::Write {
                    handle: writer.handle,
                    offset: 0,
                    piece
                }
            ),
            Ok(200)
        );
        let reader = open(&mut files, 2, "a", READ).expect("it is there");
        assert_eq!(reader.size, 200);
        assert_eq!(open(&mut files, 2, "a", WRITE), Err(Status::Busy));
        assert_eq!(
            open(&mut files, 1, "a", WRITE | TRUNCATE),
            Err(Status::Busy)
        );
        assert_eq!(remove(&mut files, "a"), Err(Status::Busy));
        let shorter = file::Commit {
            handle: writer.handle,
            size: 10,
        };
        assert_eq!(files.commit(client(1), &shorter), Err(Status::BadRequest));
        files.forget(client(2));
        files.forget(client(1));
        assert_eq!(remove(&mut files, "a"), Ok(0));
    }

    #[test]
    fn nobody_opens_without_end() {
        let mut files = Files::new(fresh(), 20);
        // To make a file is to write.
        assert_eq!(
            open(&mut files, 1, "a", READ | CREATE),
            Err(Status::NotFound)
        );
        let made = open(&mut files, 1, "a", WRITE | CREATE).expect("room");
        files.close(client(1), made.handle).expect("open");
        for _ in 0..HANDLES {
            assert!(open(&mut files, 1, "a", READ).is_ok());
        }
        assert_eq!(open(&mut files, 1, "a", READ), Err(Status::TooMany));
        for _ in 0..4 {
            assert!(open(&mut files, 2, "a", READ).is_ok());
        }
        assert_eq!(open(&mut files, 3, "a", READ), Err(Status::TooMany));
        files.forget(client(1));
        assert!(open(&mut files, 3, "a", READ).is_ok());
    }

    #[test]
    fn uncommitted_blocks_come_back() {
        let mut files = Files::new(fresh(), 4);
        let before = files.system.check();
        let opened = open(&mut files, 1, "a", WRITE | CREATE).expect("room");
        let grant = files
            .grant(client(1), opened.handle, 0, true)
            .expect("room");
        assert_eq!((grant.offset, grant.length), (0, 16 * BLOCK as u64));
        assert_eq!(
            files.grant(client(1), opened.handle, 17 * BLOCK as u64, true),
            Err(Status::NotFound)
        );
        let size = BLOCK as u64 + 1;
        assert_eq!(
            files.commit(
                client(1),
                &file::Commit {
                    handle: opened.handle,
                    size
                }
            ),
            Ok(size)
        );
        files.forget(client(1));
        let used = |summary: Result<crate::Summary>| summary.map(|s| s.used);
        // The file's two blocks, and the root folder's.
        assert_eq!(used(files.system.check()), used(before).map(|b| b + 3));
    }
}
