//! Files and mounts: the client side of the file service.
//!
//! Why it exists: a program opens, reads and writes files as on other systems. What it deliberately does not know: how the service
//! stores them.
//!
//! A mount is a channel to a file service and a session with it. When the session ends, the service drops all that it keeps for the
//! client. Bytes go through memory endpoints to the file's extents, without involving the server, or in messages of 216 bytes.

use crate::client::{Client, failed};
use crate::gate::{MemoryGate, SendGate, is_in_one_page};
use crate::session::{self, Granted, PATIENCE, Session};
use alloc::string::String;
use alloc::vec::Vec;
use bulkhead_common::file::{self, FOLDER, INLINE, PIECES};
use bulkhead_common::status::Status;

pub use bulkhead_common::file::{CREATE, Info, READ, TRUNCATE, WRITE};

/// Result of an operation on files.
pub type Result<T> = core::result::Result<T, Status>;

/// Maximum requests for a piece while the service makes room for it: more than clients can leave pieces there.
const TRIES: usize = 1000;

/// A file service.
#[derive(Debug)]
pub struct Mount {
    client: Client,
    session: Session,
    /// Whether bytes are transferred without the server.
    direct: bool,
    /// Selectors for pieces that are transferred.
    places: Vec<u16>,
}

/// An open file with a position.
#[derive(Debug)]
pub struct File<'a> {
    mount: &'a mut Mount,
    handle: u64,
    size: u64,
    position: u64,
    /// The size that the server knows.
    committed: u64,
    /// Pieces of the file, at most [`PIECES`], the oldest first.
    held: Vec<Piece>,
    /// The piece that was used last.
    window: Window,
    /// The bytes that the window allows for the next transfer.
    ahead: Ahead,
}

/// The state for a transfer that continues where the last one ended.
#[derive(Clone, Copy, Debug)]
struct Ahead {
    /// Bytes from the position on that can be read without asking the server.
    readable: u64,
    /// The same for writing.
    writable: u64,
    /// The position in the memory behind the gate.
    offset: u64,
    gate: MemoryGate,
}

impl Ahead {
    const NONE: Self = Self {
        readable: 0,
        writable: 0,
        offset: 0,
        gate: MemoryGate::new(0, 0),
    };

    /// The state after a transfer of this many bytes.
    #[inline(always)]
    fn after(&self, length: u64) -> Self {
        Self {
            readable: self.readable.saturating_sub(length),
            writable: self.writable.saturating_sub(length),
            offset: self.offset + length,
            gate: self.gate,
        }
    }
}

/// A file that stays open without borrowing its mount, so that several can be open.
#[derive(Debug)]
pub struct Kept {
    handle: u64,
    size: u64,
    position: u64,
    committed: u64,
    held: Vec<Piece>,
}

/// A part of the file that can be transferred without the server.
#[derive(Debug)]
struct Piece {
    granted: Granted,
    writable: bool,
}

/// A range of a file and the memory that holds it.
#[derive(Clone, Copy, Debug)]
struct Window {
    start: u64,
    end: u64,
    gate: MemoryGate,
    writable: bool,
}

impl Window {
    /// Holds nothing.
    const NONE: Self = Self {
        start: 0,
        end: 0,
        gate: MemoryGate::new(0, 0),
        writable: false,
    };

    /// Whether a position is in the window and may be accessed in this way.
    #[inline(always)]
    fn holds(&self, position: u64, write: bool) -> bool {
        (position >= self.start) & (position < self.end) & (self.writable | !write)
    }

    /// How many of these bytes from a position on are in the window; 0 if the position is not.
    #[inline(always)]
    fn part(&self, position: u64, length: usize, write: bool) -> usize {
        match self.holds(position, write) {
            true => (self.end - position).min(length as u64) as usize,
            false => 0,
        }
    }
}

/// An entry of a folder.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entry {
    /// Its name.
    pub name: String,
    /// Its size, kind and extents.
    pub info: Info,
}

impl Entry {
    /// Whether it is a folder.
    pub fn is_folder(&self) -> bool {
        self.info.kind == FOLDER
    }
}

impl Mount {
    /// Connects over the gate of this name and opens a session with the service behind it. Bytes of files are transferred without
    /// the server. Waits up to 60 ms for a service that is still starting.
    ///
    /// # Errors
    /// The error of the service or the kernel.
    ///
    /// # Panics
    /// If the description does not give the gate.
    pub fn connect(name: &str) -> Result<Self> {
        Ok(Self::over(name, Session::open(name, 0, PATIENCE)?))
    }

    /// Like [`connect`](Self::connect), but does not wait: while the service is still starting, there is no mount.
    ///
    /// # Errors
    /// As for [`connect`](Self::connect).
    ///
    /// # Panics
    /// If the description does not give the gate.
    pub fn attempt(name: &str) -> Result<Option<Self>> {
        let session = Session::attempt(name, 0)?;
        Ok(session.map(|session| Self::over(name, session)))
    }

    fn over(name: &str, session: Session) -> Self {
        Self {
            client: Client::new(SendGate::named(name)),
            session,
            direct: true,
            places: Vec::new(),
        }
    }

    /// Like [`connect`](Self::connect), but bytes of files travel in messages.
    ///
    /// # Errors
    /// As for [`connect`](Self::connect).
    ///
    /// # Panics
    /// If the description does not give the gate.
    pub fn by_messages(name: &str) -> Result<Self> {
        let direct = false;
        Self::connect(name).map(|mount| Self { direct, ..mount })
    }

    /// Opens a file; `flags` is a combination of [`READ`], [`WRITE`], [`CREATE`], [`TRUNCATE`].
    ///
    /// # Errors
    /// The service's error.
    pub fn open(&mut self, path: &str, flags: u64) -> Result<File<'_>> {
        let path = file::path(path)?;
        let opened = self.client.call(&file::Open { flags, path })?;
        Ok(File {
            mount: self,
            handle: opened.handle,
            size: opened.size,
            position: 0,
            committed: opened.size,
            held: Vec::new(),
            window: Window::NONE,
            ahead: Ahead::NONE,
        })
    }

    /// Continues with a file that was kept. It must belong to this mount.
    pub fn resume(&mut self, kept: Kept) -> File<'_> {
        let Kept {
            handle,
            size,
            position,
            committed,
            held,
        } = kept;
        File {
            mount: self,
            handle,
            size,
            position,
            committed,
            held,
            window: Window::NONE,
            ahead: Ahead::NONE,
        }
    }

    /// Size, kind and extents of a file or folder.
    ///
    /// # Errors
    /// The service's error.
    pub fn stat(&mut self, path: &str) -> Result<Info> {
        let path = file::path(path)?;
        self.client.call(&file::Stat { path })
    }

    /// Makes a folder.
    ///
    /// # Errors
    /// The service's error.
    pub fn make_folder(&mut self, path: &str) -> Result<()> {
        let path = file::path(path)?;
        self.client.call(&file::MakeFolder { path }).map(|_| ())
    }

    /// Removes a file or an empty folder.
    ///
    /// # Errors
    /// The service's error.
    pub fn remove(&mut self, path: &str) -> Result<()> {
        let path = file::path(path)?;
        self.client.call(&file::Remove { path }).map(|_| ())
    }

    /// Calls `action` for each entry of a folder.
    ///
    /// # Errors
    /// The service's error.
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
    fn window(&self) -> Window {
        let [start, length] = self.granted.words;
        Window {
            start,
            end: start.saturating_add(length),
            gate: self.granted.gate,
            writable: self.writable,
        }
    }
}

impl File<'_> {
    /// Size in bytes.
    pub fn size(&self) -> u64 {
        self.size
    }

    /// Moves to a position.
    pub fn seek(&mut self, position: u64) {
        self.position = position;
        self.ahead = Ahead::NONE;
    }

    /// Reads from the position on. Returns the number of bytes read, 0 at the end of the file.
    ///
    /// # Errors
    /// The service's error.
    #[inline]
    pub fn read(&mut self, buffer: &mut [u8]) -> Result<usize> {
        // Usually the read continues in the current piece. A length of 0 wraps to the largest number, so it takes the other path.
        let length = buffer.len() as u64;
        if length.wrapping_sub(1) < self.ahead.readable && is_in_one_page(buffer) {
            let Self {
                ahead, position, ..
            } = self;
            let (now, gate) = (*ahead, ahead.gate);
            let read = gate.read_once(now.offset, buffer, || {
                *position += length;
                *ahead = now.after(length);
            });
            if read.is_ok() {
                return Ok(buffer.len());
            }
            self.position -= length;
            self.ahead = Ahead::NONE;
        }
        self.read_parts(buffer)
    }

    /// Computes what the window allows at the position.
    fn look_ahead(&mut self) {
        let Window {
            start, end, gate, ..
        } = self.window;
        let position = self.position;
        let until = |end: u64, write| match self.window.holds(position, write) {
            true => end.saturating_sub(position),
            false => 0,
        };
        self.ahead = Ahead {
            readable: until(end.min(self.size), false),
            writable: until(end, true),
            offset: position.wrapping_sub(start),
            gate,
        };
    }

    #[inline(never)]
    fn read_parts(&mut self, buffer: &mut [u8]) -> Result<usize> {
        let mut done = 0;
        if self.mount.direct {
            let left = self.size.saturating_sub(self.position);
            let length = (buffer.len() as u64).min(left) as usize;
            while done < length {
                let (part, offset) = self.part(length - done, false)?;
                let target = &mut buffer[done..done + part];
                self.window.gate.read(offset, target).map_err(failed)?;
                done += part;
                self.position += part as u64;
            }
            self.look_ahead();
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

    /// Writes from the position on. The bytes are durable when this returns or, over a session, when [`commit`](Self::commit)
    /// returns.
    ///
    /// # Errors
    /// The service's error; a part may have been written then.
    #[inline]
    pub fn write(&mut self, data: &[u8]) -> Result<()> {
        let length = data.len() as u64;
        if length.wrapping_sub(1) < self.ahead.writable && is_in_one_page(data) {
            let Self {
                ahead,
                position,
                size,
                ..
            } = self;
            let (now, gate, before) = (*ahead, ahead.gate, *size);
            let written = gate.write_once(now.offset, data, || {
                *position += length;
                *size = before.max(*position);
                *ahead = now.after(length);
            });
            if written.is_ok() {
                return Ok(());
            }
            self.size = before;
            self.position -= length;
            self.ahead = Ahead::NONE;
        }
        self.write_parts(data)
    }

    #[inline(never)]
    fn write_parts(&mut self, data: &[u8]) -> Result<()> {
        if self.mount.direct {
            let mut done = 0;
            while done < data.len() {
                let (part, offset) = self.part(data.len() - done, true)?;
                let source = &data[done..done + part];
                self.window.gate.write(offset, source).map_err(failed)?;
                done += part;
                self.position += part as u64;
                self.size = self.size.max(self.position);
            }
            self.look_ahead();
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

    /// How many of these bytes from the position on are in one piece, and the offset in it.
    #[inline]
    fn part(&mut self, length: usize, write: bool) -> Result<(usize, u64)> {
        let mut part = self.window.part(self.position, length, write);
        if part == 0 {
            // The window's piece may be given up below.
            (self.window, self.ahead) = (Window::NONE, Ahead::NONE);
            self.window = self.find(write)?;
            part = self.window.part(self.position, length, write);
        }
        // The server granted something other than the request.
        (part > 0).then_some(()).ok_or(Status::BadReply)?;
        Ok((part, self.position - self.window.start))
    }

    /// A piece that holds the position.
    #[cold]
    fn find(&mut self, write: bool) -> Result<Window> {
        let held = self.held.iter().map(Piece::window);
        let mut held = held.filter(|window| window.holds(self.position, write));
        match held.next() {
            Some(window) => Ok(window),
            None => self.obtain(write),
        }
    }

    /// Gets the piece that holds the position. If there are too many pieces, the service itself takes back the oldest.
    fn obtain(&mut self, write: bool) -> Result<Window> {
        let arguments = [self.handle, self.position, write.into()];
        let held = &mut self.held;
        let Mount {
            session, places, ..
        } = &mut *self.mount;
        let mut tries = 0;
        let granted = loop {
            let place = match places.pop() {
                Some(place) => place,
                None => session::selector()?,
            };
            match session.obtain(place, arguments) {
                Ok(granted) => break granted,
                // The service makes room by removing one piece left by ended clients.
                Err(Status::Busy) if tries < TRIES => {
                    places.push(place);
                    tries += 1;
                }
                Err(status) => {
                    places.push(place);
                    // It is unknown which of the other pieces still exist, and they may use up the application's allowance.
                    let was_empty = held.is_empty();
                    places.extend(held.drain(..).map(|piece| piece.granted.release()));
                    if status != Status::TooMany || was_empty {
                        return Err(status);
                    }
                }
            }
        };
        if held.len() == PIECES {
            places.push(held.remove(0).granted.over());
        }
        let piece = Piece {
            granted,
            writable: write,
        };
        let window = piece.window();
        held.push(piece);
        Ok(window)
    }

    /// Tells the service the file's length; the written bytes are durable afterwards.
    ///
    /// # Errors
    /// The service's error.
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

    /// Closes the file. A file that is dropped is closed, too, but failures are not reported.
    ///
    /// # Errors
    /// The service's error.
    pub fn close(self) -> Result<()> {
        let mut this = core::mem::ManuallyDrop::new(self);
        this.finish()
    }

    /// Leaves the file open: [`Mount::resume`] continues with it.
    pub fn keep(self) -> Kept {
        let mut this = core::mem::ManuallyDrop::new(self);
        Kept {
            handle: this.handle,
            size: this.size,
            position: this.position,
            committed: this.committed,
            held: core::mem::take(&mut this.held),
        }
    }

    fn finish(&mut self) -> Result<()> {
        let committed = self.commit();
        let handle = self.handle;
        let closed = self.mount.client.call(&file::Close { handle });
        // A service that closes a file takes back every piece of it that it granted.
        let held = core::mem::take(&mut self.held).into_iter();
        let places = held.map(|piece| match closed {
            Ok(_) => piece.granted.over(),
            Err(_) => piece.granted.release(),
        });
        self.mount.places.extend(places);
        committed.and(closed.map(|_| ()))
    }
}

impl Drop for File<'_> {
    fn drop(&mut self) {
        let _ = self.finish();
    }
}
