//! Pipes: a stream of bytes from one application to another.
//!
//! Why it exists: programs hand on data as they come, not in messages. What it deliberately does not know: a server; the
//! description gives the writer a send gate and the reader a receive gate, and nobody else has a part in it.
//!
//! The unit carries pieces of up to 2016 bytes into the reader's buffer. The slots of the receive gate are the pipe's
//! capacity, the credits of the send gate how far the writer may be ahead; with one credit for each slot it never waits
//! for room in vain. The end is a message that carries a mark instead of data.

use crate::argument;
use crate::client::failed;
use crate::gate::{Message, MessageBuffer, ReceiveGate, SendGate};
use alloc::boxed::Box;
use bulkhead_abi::dtu::DtuError;
use bulkhead_abi::message::HEADER_SIZE;
use bulkhead_common::status::Status;

/// Result of an operation on a pipe.
pub type Result<T> = core::result::Result<T, Status>;

/// The writing end.
#[derive(Debug)]
pub struct Writer {
    gate: SendGate,
    buffer: Box<MessageBuffer>,
    piece: usize,
    filled: usize,
    open: bool,
}

impl Writer {
    /// Over the send gate of this name.
    ///
    /// # Panics
    /// If the description does not give it.
    pub fn named(name: &str) -> Self {
        let gate = SendGate::named(name);
        Self {
            piece: usize::from(argument::message_size(name)).saturating_sub(HEADER_SIZE),
            gate,
            buffer: Box::default(),
            filled: 0,
            open: true,
        }
    }

    /// Bytes that travel at once.
    pub fn piece(&self) -> usize {
        self.piece
    }

    /// Writes; what does not fill a piece waits for more, or for [`flush`](Self::flush).
    ///
    /// # Errors
    /// [`Status::Closed`] if the reader is gone.
    pub fn write(&mut self, mut data: &[u8]) -> Result<()> {
        while !data.is_empty() {
            let count = data.len().min(self.piece - self.filled);
            self.buffer.0[self.filled..self.filled + count].copy_from_slice(&data[..count]);
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
        Ok(&mut self.buffer.0[..self.piece])
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

    /// Sends what was written.
    ///
    /// # Errors
    /// [`Status::Closed`] if the reader is gone.
    pub fn flush(&mut self) -> Result<()> {
        if self.filled > 0 {
            self.transmit(self.filled, false)?;
            self.filled = 0;
        }
        Ok(())
    }

    fn transmit(&mut self, length: usize, end: bool) -> Result<()> {
        if !self.open {
            return Err(Status::Closed);
        }
        let data = &self.buffer.0[..length];
        let sent = self.gate.send_waiting_marked(data, end);
        sent.map_err(|error| {
            self.open = false;
            failed(error)
        })
    }

    /// Says that this was all. A writer that is dropped says so, too, but does not hear of failures.
    ///
    /// # Errors
    /// [`Status::Closed`] if the reader is gone.
    pub fn close(mut self) -> Result<()> {
        self.finish()
    }

    fn finish(&mut self) -> Result<()> {
        self.flush()?;
        self.transmit(1, true)?;
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

/// The reading end.
#[derive(Debug)]
pub struct Reader {
    gate: ReceiveGate,
    /// The piece that is being read, and how much of it was.
    current: Option<(Message, usize)>,
    ended: bool,
}

impl Reader {
    /// Over the receive gate of this name.
    ///
    /// # Panics
    /// If the description does not give it.
    pub fn named(name: &str) -> Self {
        Self {
            gate: ReceiveGate::named(name),
            current: None,
            ended: false,
        }
    }

    /// Waits for data; gives what lies together, nothing at the end. What was looked at is given up with
    /// [`consume`](Self::consume).
    ///
    /// # Errors
    /// [`Status::Transfer`] if the gate does not work.
    pub fn peek(&mut self) -> Result<&[u8]> {
        if self.current.is_none() && !self.ended {
            let message = self.gate.receive().map_err(failed)?;
            if message.is_marked() {
                self.ended = true;
                give_back(message);
            } else {
                self.current = Some((message, 0));
            }
        }
        Ok(match &self.current {
            Some((message, read)) => &message.payload()[*read..],
            None => &[],
        })
    }

    /// Gives up bytes that were looked at.
    pub fn consume(&mut self, count: usize) {
        if let Some((message, read)) = &mut self.current {
            *read += count;
            if *read >= message.payload().len()
                && let Some((message, _)) = self.current.take()
            {
                give_back(message);
            }
        }
    }

    /// Reads; gives how many bytes there were, 0 at the end. Waits only for the first ones.
    ///
    /// # Errors
    /// As for [`peek`](Self::peek).
    pub fn read(&mut self, buffer: &mut [u8]) -> Result<usize> {
        let data = self.peek()?;
        let count = data.len().min(buffer.len());
        buffer[..count].copy_from_slice(&data[..count]);
        self.consume(count);
        Ok(count)
    }
}

/// The place becomes free, and the writer gets his credit back. A writer that is gone needs none.
fn give_back(message: Message) {
    let _: core::result::Result<(), DtuError> = message.finish();
}
