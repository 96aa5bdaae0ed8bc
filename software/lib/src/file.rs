//! Files and mounts: the clients' side of the file service.
//!
//! Why it exists: a program opens, reads and writes files like anywhere else. What it deliberately does not know: how the
//! service keeps them.
//!
//! A mount is a channel to a file service. Bytes go in messages of 216 bytes, or, over a session, through memory endpoints
//! onto the file's extents, where the server has no part in it.

use crate::client::Client;
use crate::gate::SendGate;
use alloc::string::String;
use bulkhead_common::file::{self, FOLDER, INLINE, Piece};
use bulkhead_common::status::Status;

pub use bulkhead_common::file::{CREATE, Info, READ, TRUNCATE, WRITE};

/// Result of an operation on files.
pub type Result<T> = core::result::Result<T, Status>;

/// A file service.
#[derive(Debug)]
pub struct Mount {
    client: Client,
}

/// An open file with a position.
#[derive(Debug)]
pub struct File<'a> {
    mount: &'a mut Mount,
    handle: u64,
    size: u64,
    position: u64,
}

/// An entry of a folder.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entry {
    /// Its name.
    pub name: String,
    /// About it.
    pub info: Info,
}

impl Entry {
    /// Whether it is a folder.
    pub fn is_folder(&self) -> bool {
        self.info.kind == FOLDER
    }
}

impl Mount {
    /// Over a gate to a file service.
    pub fn new(gate: SendGate) -> Self {
        Self {
            client: Client::new(gate),
        }
    }

    /// Over the gate of this name.
    ///
    /// # Panics
    /// If the description does not give it.
    pub fn named(name: &str) -> Self {
        Self::new(SendGate::named(name))
    }

    /// Opens a file; `flags` of [`READ`], [`WRITE`], [`CREATE`], [`TRUNCATE`].
    ///
    /// # Errors
    /// What the service says.
    pub fn open(&mut self, path: &str, flags: u64) -> Result<File<'_>> {
        let path = file::path(path)?;
        let opened = self.client.call(&file::Open { flags, path })?;
        Ok(File {
            mount: self,
            handle: opened.handle,
            size: opened.size,
            position: 0,
        })
    }

    /// About a file or folder.
    ///
    /// # Errors
    /// What the service says.
    pub fn stat(&mut self, path: &str) -> Result<Info> {
        let path = file::path(path)?;
        self.client.call(&file::Stat { path })
    }

    /// Makes a folder.
    ///
    /// # Errors
    /// What the service says.
    pub fn make_folder(&mut self, path: &str) -> Result<()> {
        let path = file::path(path)?;
        self.client.call(&file::MakeFolder { path }).map(|_| ())
    }

    /// Removes a file or an empty folder.
    ///
    /// # Errors
    /// What the service says.
    pub fn remove(&mut self, path: &str) -> Result<()> {
        let path = file::path(path)?;
        self.client.call(&file::Remove { path }).map(|_| ())
    }

    /// Calls `action` for each entry of a folder.
    ///
    /// # Errors
    /// What the service says.
    pub fn list(&mut self, path: &str, mut action: impl FnMut(Entry)) -> Result<()> {
        let path = file::path(path)?;
        let mut position = 0;
        loop {
            let listed = match self.client.call(&file::List { position, path }) {
                Err(Status::NotFound) if position > 0 => return Ok(()),
                other => other?,
            };
            position = listed.next;
            action(Entry {
                name: bulkhead_common::message::text(&listed.name)?.into(),
                info: listed.info,
            });
        }
    }
}

impl File<'_> {
    /// Bytes.
    pub fn size(&self) -> u64 {
        self.size
    }

    /// Goes to a position.
    pub fn seek(&mut self, position: u64) {
        self.position = position;
    }

    /// Reads from the position on; gives how many bytes there were, 0 at the end.
    ///
    /// # Errors
    /// What the service says.
    pub fn read(&mut self, buffer: &mut [u8]) -> Result<usize> {
        let mut done = 0;
        while done < buffer.len() {
            let length = (buffer.len() - done).min(INLINE) as u64;
            let request = file::Read {
                handle: self.handle,
                offset: self.position,
                length,
            };
            let piece = self.mount.client.call(&request)?;
            let data = piece.data()?;
            let target = buffer.get_mut(done..done + data.len());
            target.ok_or(Status::BadReply)?.copy_from_slice(data);
            done += data.len();
            self.position += data.len() as u64;
            if (data.len() as u64) < length {
                break;
            }
        }
        Ok(done)
    }

    /// Writes from the position on. When it returns, the bytes are kept.
    ///
    /// # Errors
    /// What the service says; a part may have been written then.
    pub fn write(&mut self, data: &[u8]) -> Result<()> {
        for part in data.chunks(INLINE) {
            let request = file::Write {
                handle: self.handle,
                offset: self.position,
                piece: Piece::new(part),
            };
            self.size = self.mount.client.call(&request)?;
            self.position += part.len() as u64;
        }
        Ok(())
    }

    /// Closes the file. One that is dropped instead is closed, too, but nobody hears of failures.
    ///
    /// # Errors
    /// What the service says.
    pub fn close(self) -> Result<()> {
        let mut this = core::mem::ManuallyDrop::new(self);
        this.finish()
    }

    fn finish(&mut self) -> Result<()> {
        let handle = self.handle;
        self.mount.client.call(&file::Close { handle }).map(|_| ())
    }
}

impl Drop for File<'_> {
    fn drop(&mut self) {
        let _ = self.finish();
    }
}
