//! Sockets: the client side of the network service.
//!
//! Why it exists: a program sends and receives as on other systems. What it deliberately does not know: protocols and cards.
//!
//! All sockets of a program use one channel to the service and a session with it; when the program ends, in whatever way, the
//! service closes them. Calls that wait have a time at which they give up (nanoseconds on the clock of
//! [`time::now`](crate::time::now), 0 for never). A program that waits for several things at once asks with
//! [`Network::receive_later`] and takes the answer from its own receive gate, with [`crate::select`].

use crate::client::failed;
use crate::gate::{Message, MessageBuffer, ReceiveGate, SendGate};
use crate::session::{PATIENCE, Session};
use alloc::boxed::Box;
use bulkhead_common::network::{
    ACCEPT, ADDRESS, BIND, CLOSE, CONNECT, COUNTS, DATA, LISTEN, RECEIVE, RECEIVE_FROM, Reply,
    Request, SEND, SEND_TO,
};
use bulkhead_common::status::Status;
use zerocopy::{FromBytes, IntoBytes};

pub use bulkhead_common::network::{Counts, DATA as DATA_MAX, address};

/// Result of an operation on sockets.
pub type Result<T> = core::result::Result<T, Status>;

/// Address and port of the other side.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Remote {
    /// IPv4 address.
    pub address: [u8; 4],
    /// Port.
    pub port: u16,
}

/// A UDP socket.
#[derive(Debug, PartialEq, Eq)]
pub struct Udp {
    handle: u64,
    /// Its own port.
    pub port: u16,
}

/// A TCP socket.
#[derive(Debug, PartialEq, Eq)]
pub struct Tcp {
    handle: u64,
}

/// A channel to a network service.
#[derive(Debug)]
pub struct Network {
    gate: SendGate,
    buffer: Box<MessageBuffer>,
    /// While it exists, the service keeps this program's sockets.
    _session: Session,
}

/// Bytes of a request before its data.
const HEAD: usize = size_of::<Request>();

impl Network {
    /// Connects over the gate of this name and opens a session with the service behind it. Waits up to 60 ms for a service that is
    /// still starting.
    ///
    /// # Errors
    /// The error of the service or the kernel.
    ///
    /// # Panics
    /// If the description does not give the gate.
    pub fn connect(name: &str) -> Result<Self> {
        Ok(Self {
            gate: SendGate::named(name),
            buffer: Box::new(MessageBuffer::new()),
            _session: Session::open(name, 0, PATIENCE)?,
        })
    }

    fn write(&mut self, request: Request, data: &[u8]) -> Result<&[u8]> {
        let end = HEAD + data.len();
        let bytes = self.buffer.0.get_mut(..end).filter(|_| data.len() <= DATA);
        let bytes = bytes.ok_or(Status::BadRequest)?;
        bytes[..HEAD].copy_from_slice(request.as_bytes());
        bytes[HEAD..].copy_from_slice(data);
        Ok(bytes)
    }

    fn call(&mut self, request: Request, data: &[u8], into: &mut [u8]) -> Result<Reply> {
        let gate = self.gate;
        let answer = gate.call(self.write(request, data)?).map_err(failed)?;
        received(&answer, into)
    }

    /// The address of this side, and its hardware address.
    ///
    /// # Errors
    /// The service's error.
    pub fn own(&mut self) -> Result<([u8; 4], [u8; 6])> {
        let mut mac = [0; 6];
        let reply = self.call(request(ADDRESS, 0), &[], &mut mac)?;
        Ok((reply.address, mac))
    }

    /// The service's work for frames that belong to no client.
    ///
    /// # Errors
    /// The service's error.
    pub fn counts(&mut self) -> Result<Counts> {
        let mut counts = Counts::default();
        self.call(request(COUNTS, 0), &[], counts.as_mut_bytes())?;
        Ok(counts)
    }

    /// Opens a UDP socket at a port; 0 means any.
    ///
    /// # Errors
    /// [`Status::Exists`] if the port is taken, [`Status::TooMany`] if this program has all its sockets.
    pub fn bind(&mut self, port: u16) -> Result<Udp> {
        let reply = self.call(
            Request {
                port,
                ..request(BIND, 0)
            },
            &[],
            &mut [],
        )?;
        Ok(Udp {
            handle: reply.value,
            port: reply.port,
        })
    }

    /// Sends a datagram of at most [`DATA_MAX`] bytes.
    ///
    /// # Errors
    /// The service's error.
    pub fn send_to(&mut self, socket: &Udp, to: Remote, data: &[u8]) -> Result<()> {
        let request = Request {
            address: to.address,
            port: to.port,
            ..request(SEND_TO, socket.handle)
        };
        self.call(request, data, &mut []).map(|_| ())
    }

    /// Receives a datagram. Returns its length and its sender; the bytes that fit are in the buffer.
    ///
    /// # Errors
    /// [`Status::Timeout`]; or the service's error.
    pub fn receive_from(
        &mut self,
        socket: &Udp,
        buffer: &mut [u8],
        until: u64,
    ) -> Result<(usize, Remote)> {
        let request = Request {
            until,
            ..request(RECEIVE_FROM, socket.handle)
        };
        let reply = self.call(request, &[], buffer)?;
        let (address, port) = (reply.address, reply.port);
        Ok((reply.value as usize, Remote { address, port }))
    }

    /// Asks for a datagram; the answer comes to `answers` with `label`, and [`received`] reads it. The gate needs slots of
    /// [`SLOT`](bulkhead_common::network::SLOT) bytes.
    ///
    /// # Errors
    /// Does not wait for the answer, or for a slot of the service: [`Status::Busy`] if all credits are in use, or if a request of this
    /// activity's predecessor still takes the slot; or another error of the unit.
    pub fn receive_later(
        &mut self,
        socket: &Udp,
        until: u64,
        answers: &ReceiveGate,
        label: u64,
    ) -> Result<()> {
        let gate = self.gate;
        let request = Request {
            until,
            ..request(RECEIVE_FROM, socket.handle)
        };
        let message = self.write(request, &[])?;
        gate.send_with_reply(message, answers, label)
            .map_err(failed)
    }

    /// Opens a connection.
    ///
    /// # Errors
    /// [`Status::Closed`] if the other side refuses, [`Status::Timeout`] if it does not answer in time.
    pub fn connect_to(&mut self, to: Remote, until: u64) -> Result<Tcp> {
        let request = Request {
            until,
            address: to.address,
            port: to.port,
            ..request(CONNECT, 0)
        };
        let handle = self.call(request, &[], &mut [])?.value;
        Ok(Tcp { handle })
    }

    /// Opens a socket that waits for a connection. For more than one connection at a time, several may listen at one port.
    ///
    /// # Errors
    /// [`Status::Exists`] if another program listens there, [`Status::TooMany`] if this program has all its sockets.
    pub fn listen(&mut self, port: u16) -> Result<Tcp> {
        let request = Request {
            port,
            ..request(LISTEN, 0)
        };
        let handle = self.call(request, &[], &mut [])?.value;
        Ok(Tcp { handle })
    }

    /// Waits for a connection to a listening socket, which then is that connection.
    ///
    /// # Errors
    /// [`Status::Timeout`]; or the service's error.
    pub fn accept(&mut self, socket: &Tcp, until: u64) -> Result<Remote> {
        let request = Request {
            until,
            ..request(ACCEPT, socket.handle)
        };
        let reply = self.call(request, &[], &mut [])?;
        let (address, port) = (reply.address, reply.port);
        Ok(Remote { address, port })
    }

    /// Sends all of the data.
    ///
    /// # Errors
    /// [`Status::Closed`] if the connection is over; a part may have been sent then.
    pub fn send(&mut self, socket: &Tcp, data: &[u8], until: u64) -> Result<()> {
        let mut sent = 0;
        while sent < data.len() {
            let part = &data[sent..(sent + DATA).min(data.len())];
            let request = Request {
                until,
                ..request(SEND, socket.handle)
            };
            sent += self.call(request, part, &mut [])?.value as usize;
        }
        Ok(())
    }

    /// Receives the bytes that are there, at most as many as the buffer holds; 0 bytes at the end of the stream.
    ///
    /// # Errors
    /// [`Status::Timeout`]; [`Status::Closed`] if the connection broke.
    pub fn receive(&mut self, socket: &Tcp, buffer: &mut [u8], until: u64) -> Result<usize> {
        let request = Request {
            until,
            length: buffer.len().min(DATA) as u16,
            ..request(RECEIVE, socket.handle)
        };
        Ok(self.call(request, &[], buffer)?.value as usize)
    }

    /// Closes a connection; data that was sent is still delivered.
    ///
    /// # Errors
    /// The service's error.
    pub fn close(&mut self, socket: Tcp) -> Result<()> {
        let request = request(CLOSE, socket.handle);
        self.call(request, &[], &mut []).map(|_| ())
    }

    /// Closes a UDP socket.
    ///
    /// # Errors
    /// The service's error.
    pub fn unbind(&mut self, socket: Udp) -> Result<()> {
        let request = request(CLOSE, socket.handle);
        self.call(request, &[], &mut []).map(|_| ())
    }
}

fn request(operation: u64, socket: u64) -> Request {
    Request {
        operation,
        socket,
        ..Request::default()
    }
}

/// Reads an answer of the service: the data that fit go into the buffer.
///
/// # Errors
/// The service's error; [`Status::BadReply`] if it is not an answer.
pub fn received(answer: &Message, into: &mut [u8]) -> Result<Reply> {
    let status = answer.word().ok_or(Status::BadReply)?;
    if status != 0 {
        return Err(Status::from_code(status).unwrap_or(Status::BadReply));
    }
    let (reply, data) = Reply::read_from_prefix(answer.payload()).map_err(|_| Status::BadReply)?;
    let length = usize::from(reply.length).min(into.len());
    let data = data.get(..length).ok_or(Status::BadReply)?;
    into[..length].copy_from_slice(data);
    Ok(reply)
}
