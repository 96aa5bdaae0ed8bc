//! Files and mounts: the clients' side of the file service.
//!
//! Why it exists: a program opens, reads and writes files like anywhere else. What it deliberately does not know: how the
//! service keeps them.
//!
//! A mount is a channel to a file service. Bytes go in messages of 216 bytes, or, over a session, through memory endpoints
//! onto the file's extents, where the server has no part in it.

use crate::client::{Client, failed};
use crate::gate::SendGate;
use crate::session::{self, Granted, Session};
use alloc::string::String;
use alloc::vec::Vec;
use bulkhead_common::file::{self, FOLDER, INLINE};
use bulkhead_common::status::Status;

pub use bulkhead_common::file::{CREATE, Info, READ, TRUNCATE, WRITE};

/// Result of an operation on files.
pub type Result<T> = core::result::Result<T, Status>;

/// A file service.
#[derive(Debug)]
pub struct Mount {
    client: Client,
    session: Option<Session>,
    /// Selectors for pieces that are transferred; each open file holds one piece at a time.
    places: Vec<u16>,
}

/// An open file with a position.
#[derive(Debug)]
pub struct File<'a> {
    mount: &'a mut Mount,
    handle: u64,
    size: u64,
    position: u64,
    /// What the server knows of the size.
    committed: u64,
    piece: Option<Piece>,
}

/// A file that stays open apart from its mount, so that several can.
#[derive(Debug)]
pub struct Kept {
    handle: u64,
    size: u64,
    position: u64,
    committed: u64,
    piece: Option<Piece>,
}

/// A part of the file that can be transferred without the server.
#[derive(Debug)]
struct Piece {
    granted: Granted,
    writable: bool,
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
            session: None,
            places: Vec::new(),
        }
    }

    /// Over the gate of this name and a session with the service behind it: the bytes of files are transferred without the
    /// server. Waits up to 10 ms for a service that is still starting.
    ///
    /// # Errors
    /// What the service or the kernel say.
    ///
    /// # Panics
    /// If the description does not give the gate.
    pub fn connect(name: &str) -> Result<Self> {
        let mut mount = Self::named(name);
        mount.session = Some(Session::open(name, 0, 10_000_000)?);
        Ok(mount)
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
            committed: opened.size,
            piece: None,
        })
    }

    /// Goes on with a file that was kept. It must be one of this mount.
    pub fn resume(&mut self, kept: Kept) -> File<'_> {
        let Kept {
            handle,
            size,
            position,
            committed,
            piece,
        } = kept;
        File {
            mount: self,
            handle,
            size,
            position,
            committed,
            piece,
        }
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

impl Piece {
    /// Whether a position is in it and may be used so.
    #[inline]
    fn holds(&self, position: u64, write: bool) -> bool {
        let [offset, length] = self.granted.words;
        position.wrapping_sub(offset) < length && (self.writable || !write)
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
        if self.mount.session.is_some() {
            let left = self.size.saturating_sub(self.position);
            let length = (buffer.len() as u64).min(left) as usize;
            while done < length {
                let (granted, offset, available) = self.granted(false)?;
                let part = (length - done).min(available);
                let target = &mut buffer[done..done + part];
                granted.gate.read(offset, target).map_err(failed)?;
                done += part;
                self.position += part as u64;
            }
            return Ok(done);
        }
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

    /// Writes from the position on. The bytes are kept when it returns, or, over a session, when [`commit`](Self::commit) does.
    ///
    /// # Errors
    /// What the service says; a part may have been written then.
    pub fn write(&mut self, data: &[u8]) -> Result<()> {
        if self.mount.session.is_some() {
            let mut done = 0;
            while done < data.len() {
                let (granted, offset, available) = self.granted(true)?;
                let part = (data.len() - done).min(available);
                let source = &data[done..done + part];
                granted.gate.write(offset, source).map_err(failed)?;
                done += part;
                self.position += part as u64;
                self.size = self.size.max(self.position);
            }
            return Ok(());
        }
        for part in data.chunks(INLINE) {
            let request = file::Write {
                handle: self.handle,
                offset: self.position,
                piece: file::Piece::new(part),
            };
            self.size = self.mount.client.call(&request)?;
            self.committed = self.size;
            self.position += part.len() as u64;
        }
        Ok(())
    }

    /// The piece that holds the position, the position in it, and how many bytes of it follow.
    #[inline]
    fn granted(&mut self, write: bool) -> Result<(&Granted, u64, usize)> {
        let position = self.position;
        let held = self.piece.as_ref();
        if !held.is_some_and(|piece| piece.holds(position, write)) {
            self.obtain(write)?;
        }
        let granted = &self.piece.as_ref().ok_or(Status::BadReply)?.granted;
        let [offset, length] = granted.words;
        let within = position - offset;
        Ok((granted, within, (length - within) as usize))
    }

    /// Gets the piece that holds the position.
    #[cold]
    fn obtain(&mut self, write: bool) -> Result<()> {
        self.give_back();
        let session = self.mount.session.as_ref().ok_or(Status::NoRights)?;
        let place = match self.mount.places.pop() {
            Some(place) => place,
            None => session::selector()?,
        };
        let arguments = [self.handle, self.position, write.into()];
        let granted = session.obtain(place, arguments);
        if granted.is_err() {
            self.mount.places.push(place);
        }
        let piece = Piece {
            granted: granted?,
            writable: write,
        };
        let right = piece.holds(self.position, write);
        self.piece = Some(piece);
        right.then_some(()).ok_or(Status::BadReply)
    }

    /// Says how long the file is; what was written is kept then.
    ///
    /// # Errors
    /// What the service says.
    pub fn commit(&mut self) -> Result<()> {
        if self.size != self.committed {
            let request = file::Commit {
                handle: self.handle,
                size: self.size,
            };
            self.committed = self.mount.client.call(&request)?;
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

    /// Leaves the file open: [`Mount::resume`] goes on with it.
    pub fn keep(self) -> Kept {
        let mut this = core::mem::ManuallyDrop::new(self);
        Kept {
            handle: this.handle,
            size: this.size,
            position: this.position,
            committed: this.committed,
            piece: this.piece.take(),
        }
    }

    /// Gives up the piece that is held.
    fn give_back(&mut self) {
        if let Some(piece) = self.piece.take() {
            self.mount.places.push(piece.granted.release());
        }
    }

    fn finish(&mut self) -> Result<()> {
        let committed = self.commit();
        self.give_back();
        let handle = self.handle;
        let closed = self.mount.client.call(&file::Close { handle });
        committed.and(closed.map(|_| ()))
    }
}

impl Drop for File<'_> {
    fn drop(&mut self) {
        let _ = self.finish();
    }
}
