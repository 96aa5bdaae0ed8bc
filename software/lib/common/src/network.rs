//! The protocol of the network service.
//!
//! Why it exists: sockets live in the service, and data travels inside messages, at most one frame's worth in each. The owner of a
//! card uses it as a [`Card`]. What it deliberately does not know: how the service keeps sockets, what frames hold, and how a card
//! is driven.
//!
//! A message is a [`Request`] and up to [`DATA`] bytes; its answer a [`Reply`] and as many. The gates of the service need slots of
//! [`SLOT`] bytes. A request that cannot be answered yet, such as a receive, is answered when it can be, or with
//! [`Status::Timeout`](crate::status::Status::Timeout) when its time is over. Times are nanoseconds since reset.

use alloc::boxed::Box;
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout};

/// Maximum bytes of data in one message: the data of a UDP datagram in one Ethernet frame of 1500 bytes.
pub const DATA: usize = 1472;
/// Bytes of a slot for such a message with its header.
pub const SLOT: usize = 1536;

/// Operation: opens a UDP socket at [`Request::port`], 0 for any. Answer: its handle and port.
pub const BIND: u64 = 1;
/// Operation: sends the data as a datagram to an address and port.
pub const SEND_TO: u64 = 2;
/// Operation: receives a datagram; bytes that do not fit are dropped. Answer: its length, sender and data.
pub const RECEIVE_FROM: u64 = 3;
/// Operation: connects to an address and port. Answer: the handle of a TCP socket, and its own port.
pub const CONNECT: u64 = 4;
/// Operation: opens a TCP socket that waits for a connection at a port. Answer: its handle.
pub const LISTEN: u64 = 5;
/// Operation: waits for a connection; the socket then is that connection. Answer: the other side's address.
pub const ACCEPT: u64 = 6;
/// Operation: sends the data, or the first part of it. Answer: how many bytes were taken.
pub const SEND: u64 = 7;
/// Operation: receives at most [`Request::length`] bytes. Answer: how many, 0 at the end of the stream, and the data.
pub const RECEIVE: u64 = 8;
/// Operation: closes a socket; data that was sent is still delivered.
pub const CLOSE: u64 = 9;
/// Operation: the service's own address. Answer: the address, and its hardware address as data.
pub const ADDRESS: u64 = 10;
/// Operation: asks for the work done for frames that belong to no client. Answer: [`Counts`] as data.
pub const COUNTS: u64 = 11;

/// A received frame: a buffer of the card, where the frame begins in it, and its bytes.
pub type Received = (Box<[u8]>, usize, usize);

/// A network card.
pub trait Card {
    /// The oldest frame that has arrived; its buffer goes back by [`give_back`](Self::give_back).
    fn receive(&mut self) -> Option<Received>;
    /// Gives the card a buffer to receive into; a buffer that is too small or one too many is dropped.
    fn give_back(&mut self, buffer: Box<[u8]>);
    /// Whether a frame can be sent.
    fn can_send(&mut self) -> bool;
    /// Whether this many frames can be sent, or as many as there are places.
    fn has_room(&mut self, frames: usize) -> bool;
    /// Sends a frame of this many bytes, at most [`FRAME_MAX`](bulkhead_abi::network::FRAME_MAX), which `fill` writes. Returns
    /// false if that is not possible; then the frame is lost, as any frame may be.
    fn send(&mut self, bytes: usize, fill: &mut dyn FnMut(&mut [u8])) -> bool;
}

/// A request. Its first word is the operation, as in every message to a service.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, FromBytes, IntoBytes, Immutable, KnownLayout,
)]
#[repr(C)]
pub struct Request {
    /// The operation.
    pub operation: u64,
    /// Handle of the socket.
    pub socket: u64,
    /// When to give up, 0 for never.
    pub until: u64,
    /// Address of the other side.
    pub address: [u8; 4],
    /// Port.
    pub port: u16,
    /// Bytes of data after this, or wanted.
    pub length: u16,
}

/// An answer. Its first word is 0 or a status, as in every answer of a service.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, FromBytes, IntoBytes, Immutable, KnownLayout,
)]
#[repr(C)]
pub struct Reply {
    /// 0, or the code of a [`Status`](crate::status::Status).
    pub status: u64,
    /// A handle or a number of bytes.
    pub value: u64,
    /// Address of the other side.
    pub address: [u8; 4],
    /// Port.
    pub port: u16,
    /// Bytes of data after this.
    pub length: u16,
}

/// The work of a service for frames that belong to no client.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, FromBytes, IntoBytes, Immutable, KnownLayout,
)]
#[repr(C)]
pub struct Counts {
    /// Frames that the protocols saw.
    pub taken: u64,
    /// Nanoseconds for these.
    pub time: u64,
    /// Frames of any sender that were dropped because their account was empty, or asked for a connection that was being opened.
    pub dropped: u64,
    /// Nanoseconds for these.
    pub drop_time: u64,
    /// Connections that were being opened and made room for newer ones.
    pub recycled: u64,
    /// Connections that were being opened for too long.
    pub expired: u64,
}

impl Counts {
    /// The counts as the data of an answer.
    pub fn bytes(&self) -> &[u8] {
        self.as_bytes()
    }
}

/// An IPv4 address such as `10.0.0.1`.
pub fn address(text: &str) -> Option<[u8; 4]> {
    let mut parts = text.split('.');
    let mut address = [0; 4];
    for byte in &mut address {
        let part = parts.next()?;
        let digits = !part.is_empty() && part.bytes().all(|b| b.is_ascii_digit());
        *byte = part.parse().ok().filter(|_| digits && part.len() <= 3)?;
    }
    parts.next().is_none().then_some(address)
}

/// An address with the length of its network's prefix, such as `10.0.0.1/24`.
pub fn network(text: &str) -> Option<([u8; 4], u8)> {
    let (own, prefix) = text.split_once('/')?;
    let prefix: u8 = prefix.parse().ok()?;
    Some((address(own)?, prefix)).filter(|_| prefix <= 32)
}

#[cfg(test)]
mod tests {
    use super::*;
    use core::mem::{offset_of, size_of};

    #[test]
    fn layout() {
        assert_eq!((size_of::<Request>(), size_of::<Reply>()), (32, 24));
        assert_eq!(offset_of!(Request, address), 24);
        assert_eq!(offset_of!(Reply, length), 22);
        // With the header of 32 bytes.
        assert!(32 + size_of::<Request>() + DATA <= SLOT && SLOT.is_multiple_of(64));
    }

    #[test]
    fn addresses() {
        assert_eq!(address("10.0.0.255"), Some([10, 0, 0, 255]));
        for bad in [
            "",
            "1.2.3",
            "1.2.3.4.5",
            "1.2.3.256",
            "1.2.3.+4",
            "1..2.3",
            "0001.2.3.4",
        ] {
            assert_eq!(address(bad), None, "{bad}");
        }
        assert_eq!(network("192.168.7.1/24"), Some(([192, 168, 7, 1], 24)));
        assert_eq!(network("1.2.3.4/33"), None);
        assert_eq!(network("1.2.3.4"), None);
    }
}
