//! Pipes: a stream of bytes from one application to another.
//!
//! Why it exists: programs pass on data as they arrive, not in messages. What it deliberately does not know: servers. The
//! description gives the writer a send gate and the reader a receive gate, and no third program is involved.
//!
//! **In messages.** The unit carries pieces of up to 2016 bytes into the reader's buffer. The slots of the receive gate are the
//! pipe's capacity, the credits of the send gate limit how far the writer may be ahead. With one credit for each slot, the writer
//! never waits for space that is already free.
//!
//! **Through a region.** If both ends also have a memory gate named after the pipe (`<mgate name="NAME-region">`, the reader's with
//! `of="WRITER/NAME-region"`), the bytes are there: the writer transfers a piece of several pages into it and sends a message that
//! says where, the reader transfers it out and answers. Writing, reading and the messages of different pieces overlap, and one
//! message and one answer serve for a whole piece. The region is divided into one piece more than the writer has credits: when a
//! message could be sent, at most that many are unanswered, so the piece before all of those has been read.
//!
//! The end is a message that carries a mark instead of data. A writer that ends without it, because it failed or was killed, leaves a
//! reader that gets what was written and then [`Status::Closed`], so a part is never taken for the whole; a reader that ends leaves a
//! writer whose next piece, or the one that waits for a credit, fails with the same.

use crate::argument;
use crate::client::failed;
use crate::gate::{Aligned, Mark, MemoryGate, Message, MessageBuffer, ReceiveGate, SendGate};
use crate::pages::Pages;
use alloc::boxed::Box;
use alloc::format;
use bulkhead_abi::dtu::{DtuError, PAGE_SIZE};
use bulkhead_abi::message::HEADER_SIZE;
use bulkhead_common::pipe::{Pieces, Place};
use bulkhead_common::status::Status;
use zerocopy::{FromBytes, IntoBytes};

/// Result of an operation on a pipe.
pub type Result<T> = core::result::Result<T, Status>;

/// The memory gate of a pipe's region, if the description gives it.
fn region(name: &str) -> Option<MemoryGate> {
    MemoryGate::find(&format!("{name}-region"))
}

/// The buffer in which a piece is assembled, and how it travels.
#[derive(Debug)]
enum Outlet {
    Message(Box<MessageBuffer>),
    Region {
        gate: MemoryGate,
        buffer: Pages,
        pieces: Pieces,
    },
}

/// The writing end.
#[derive(Debug)]
pub struct Writer {
    gate: SendGate,
    outlet: Outlet,
    piece: usize,
    filled: usize,
    open: bool,
}

impl Writer {
    /// Opens the send gate of this name, and the region of this name if there is one.
    ///
    /// # Panics
    /// If the description does not give the gate, or gives a region with fewer pages than one for each credit and one more.
    pub fn named(name: &str) -> Self {
        let gate = SendGate::named(name);
        let (piece, outlet) = match region(name) {
            None => {
                let piece = usize::from(argument::message_size(name)).saturating_sub(HEADER_SIZE);
                (piece, Outlet::Message(Box::default()))
            }
            Some(region) => {
                let credits = argument::credits(name);
                let Some(pieces) = Pieces::new(region.size(), credits, PAGE_SIZE) else {
                    panic!(
                        "<mgate name=\"{name}-region\">: a page is needed for each of {credits} credits, and one more"
                    );
                };
                let outlet = Outlet::Region {
                    gate: region,
                    buffer: Pages::new((pieces.size() / PAGE_SIZE) as usize),
                    pieces,
                };
                (pieces.size() as usize, outlet)
            }
        };
        Self {
            gate,
            outlet,
            piece,
            filled: 0,
            open: true,
        }
    }

    /// Bytes of a piece, which travels at once.
    pub fn piece(&self) -> usize {
        self.piece
    }

    fn buffer(&mut self) -> &mut [u8] {
        match &mut self.outlet {
            Outlet::Message(buffer) => &mut buffer.0[..self.piece],
            Outlet::Region { buffer, .. } => &mut buffer.bytes_mut()[..self.piece],
        }
    }

    /// Writes. Bytes that do not fill a piece wait for more, or for [`flush`](Self::flush).
    ///
    /// # Errors
    /// [`Status::Closed`] if the reader is gone.
    pub fn write(&mut self, mut data: &[u8]) -> Result<()> {
        while !data.is_empty() {
            if self.filled == 0
                && data.len() >= self.piece
                && matches!(self.outlet, Outlet::Region { .. })
            {
                // A whole piece is transferred from where it is.
                let (piece, rest) = data.split_at(self.piece);
                self.transmit(Some(piece), piece.len())?;
                data = rest;
                continue;
            }
            let (filled, count) = (self.filled, data.len().min(self.piece - self.filled));
            self.buffer()[filled..filled + count].copy_from_slice(&data[..count]);
            self.filled += count;
            data = &data[count..];
            if self.filled == self.piece {
                self.flush()?;
            }
        }
        Ok(())
    }

    /// The place for the next piece, to be filled without a copy, and then sent with [`send`](Self::send).
    ///
    /// # Errors
    /// [`Status::Closed`] if the reader is gone.
    pub fn space(&mut self) -> Result<&mut [u8]> {
        self.flush()?;
        Ok(self.buffer())
    }

    /// Sends the first bytes of [`space`](Self::space).
    ///
    /// # Errors
    /// [`Status::Closed`] if the reader is gone; [`Status::BadRequest`] for more bytes than there are.
    pub fn send(&mut self, length: usize) -> Result<()> {
        if length > self.piece {
            return Err(Status::BadRequest);
        }
        self.filled = length;
        self.flush()
    }

    /// Sends the bytes that were written and still wait.
    ///
    /// # Errors
    /// [`Status::Closed`] if the reader is gone.
    pub fn flush(&mut self) -> Result<()> {
        if self.filled > 0 {
            let length = core::mem::take(&mut self.filled);
            self.transmit(None, length)?;
        }
        Ok(())
    }

    /// Sends a piece that is elsewhere, or the first bytes of the buffer.
    fn transmit(&mut self, piece: Option<&[u8]>, length: usize) -> Result<()> {
        if !self.open {
            return Err(Status::Closed);
        }
        let sent = match &mut self.outlet {
            Outlet::Message(buffer) => {
                let data = piece.unwrap_or(&buffer.0[..length]);
                self.gate.send_waiting_marked(data, Mark::Plain)
            }
            Outlet::Region {
                gate,
                buffer,
                pieces,
            } => {
                let place = Aligned(pieces.take(length as u64));
                let data = piece.unwrap_or(&buffer.bytes()[..length]);
                let written = gate.write(place.0.offset, data);
                written.and_then(|()| {
                    let place = place.0.as_bytes();
                    self.gate.send_waiting_marked(place, Mark::Place)
                })
            }
        };
        self.sent(sent)
    }

    fn sent(&mut self, sent: core::result::Result<(), DtuError>) -> Result<()> {
        sent.map_err(|error| {
            self.open = false;
            failed(error)
        })
    }

    /// Ends the stream. A writer that is dropped ends it, too, but failures are not reported.
    ///
    /// # Errors
    /// [`Status::Closed`] if the reader is gone.
    pub fn close(mut self) -> Result<()> {
        self.finish()
    }

    fn finish(&mut self) -> Result<()> {
        self.flush()?;
        if !self.open {
            return Err(Status::Closed);
        }
        let sent = self.gate.send_waiting_marked(&Aligned([0u8]).0, Mark::End);
        self.sent(sent)?;
        self.open = false;
        Ok(())
    }
}

impl Drop for Writer {
    fn drop(&mut self) {
        if self.open {
            let _ = self.finish();
        }
    }
}

/// The piece that is being read.
#[derive(Debug)]
enum Piece {
    /// It is in the receive buffer.
    Message(Message),
    /// It is in the reader's own pages: this many bytes.
    Copied(usize),
}

/// The reading end.
#[derive(Debug)]
pub struct Reader {
    gate: ReceiveGate,
    region: Option<MemoryGate>,
    buffer: Pages,
    /// The piece that is being read, and how much of it has been read.
    current: Option<(Piece, usize)>,
    ended: bool,
}

/// The next message of the stream.
enum Next {
    End,
    Message(Message),
    /// In the region, until the message is answered.
    Place(MemoryGate, Place, Message),
}

impl Reader {
    /// Opens the receive gate of this name, and the region of this name if there is one.
    ///
    /// # Panics
    /// If the description does not give the gate.
    pub fn named(name: &str) -> Self {
        Self {
            gate: ReceiveGate::named(name),
            region: region(name),
            buffer: Pages::new(0),
            current: None,
            ended: false,
        }
    }

    /// Waits for the next message.
    fn next(&mut self) -> Result<Next> {
        if self.ended {
            return Ok(Next::End);
        }
        let message = self.gate.receive_while_open().map_err(failed)?;
        let message = message.ok_or(Status::Closed)?;
        let place = match message.mark() {
            Mark::Plain => return Ok(Next::Message(message)),
            Mark::End => {
                self.ended = true;
                give_back(message);
                return Ok(Next::End);
            }
            Mark::Place => Place::read_from_prefix(message.payload()).ok(),
        };
        // The writer is not trusted to stay within the region.
        if let (Some(region), Some((place, _))) = (self.region, place)
            && place.is_within(region.size())
        {
            return Ok(Next::Place(region, place, message));
        }
        give_back(message);
        Err(Status::BadReply)
    }

    /// Waits for the next piece. A piece in the region that fits in `wanted` is transferred there, and its length returned; any other
    /// piece becomes the current one.
    fn take(&mut self, wanted: &mut [u8]) -> Result<usize> {
        match self.next()? {
            Next::End => Ok(0),
            Next::Message(message) => {
                self.current = Some((Piece::Message(message), 0));
                Ok(0)
            }
            Next::Place(region, place, message) => {
                let length = place.length as usize;
                let direct = length <= wanted.len();
                let target = match direct {
                    true => &mut wanted[..length],
                    false => match self.buffer.grow(length) {
                        Ok(()) => &mut self.buffer.bytes_mut()[..length],
                        Err(status) => {
                            give_back(message);
                            return Err(status);
                        }
                    },
                };
                let outcome = region.read(place.offset, target);
                give_back(message);
                outcome.map_err(failed)?;
                if direct {
                    return Ok(length);
                }
                self.current = Some((Piece::Copied(length), 0));
                Ok(0)
            }
        }
    }

    /// Waits for data. Returns the contiguous bytes, or none at the end of the stream. [`consume`](Self::consume) gives up bytes that
    /// were examined.
    ///
    /// # Errors
    /// [`Status::Closed`] if the writer ended before its end of the pipe, [`Status::Transfer`] if the gate does not work,
    /// [`Status::BadReply`] if the writer sends nonsense, or through a region that
    /// this end does not have, [`Status::NoSpace`] if it sends more at once than this end has memory for.
    pub fn peek(&mut self) -> Result<&[u8]> {
        if self.current.is_none() {
            self.take(&mut [])?;
        }
        Ok(match &self.current {
            Some((Piece::Message(message), read)) => &message.payload()[*read..],
            Some((Piece::Copied(length), read)) => &self.buffer.bytes()[*read..*length],
            None => &[],
        })
    }

    /// Gives up bytes that were examined.
    pub fn consume(&mut self, count: usize) {
        if let Some((piece, read)) = &mut self.current {
            *read += count;
            let length = match piece {
                Piece::Message(message) => message.payload().len(),
                Piece::Copied(length) => *length,
            };
            if *read >= length
                && let Some((Piece::Message(message), _)) = self.current.take()
            {
                give_back(message);
            }
        }
    }

    /// Reads. Returns the number of bytes, 0 at the end of the stream. Waits only for the first bytes.
    ///
    /// # Errors
    /// As for [`peek`](Self::peek).
    pub fn read(&mut self, buffer: &mut [u8]) -> Result<usize> {
        if self.current.is_none() {
            let length = self.take(buffer)?;
            if length > 0 {
                return Ok(length);
            }
        }
        let data = self.peek()?;
        let count = data.len().min(buffer.len());
        buffer[..count].copy_from_slice(&data[..count]);
        self.consume(count);
        Ok(count)
    }
}

/// Frees the place and gives the writer its credit back. A writer that has ended needs none.
fn give_back(message: Message) {
    let _: core::result::Result<(), DtuError> = message.finish();
}
