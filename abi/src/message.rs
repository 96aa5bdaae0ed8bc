//! The header that the DTU puts before every message in a receive buffer.

use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout};

/// Bytes of a header (gem5 model of the authors: 32).
pub const HEADER_SIZE: usize = 32;
/// Bit of [`Header::flags`]: the message is a reply.
pub const FLAG_REPLY: u16 = 1;

/// Label of the replies to messages that need none.
pub const ONE_WAY: u64 = u64::MAX;
/// The same, for a message that carries a mark: the end of a pipe.
pub const MARKED: u64 = u64::MAX - 1;
/// The same, for a message that gives the place of the data instead of the data.
pub const PLACED: u64 = u64::MAX - 2;

/// Written by hardware; the payload follows directly. Little endian, as the tiles are.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, FromBytes, IntoBytes, Immutable, KnownLayout,
)]
#[repr(C)]
pub struct Header {
    /// [`FLAG_REPLY`].
    pub flags: u16,
    /// Bytes of payload.
    pub length: u16,
    /// Tile of the sender.
    pub sender_tile: u16,
    /// Send endpoint of the sender, whose credit a reply returns.
    pub sender_endpoint: u16,
    /// Receive endpoint at the sender for a reply, or [`crate::dtu::NO_ENDPOINT`].
    pub reply_endpoint: u16,
    /// Activity that sent.
    pub sender_activity: u16,
    /// In a packet, the shares of the receiver's slots that the sender's gate has ([`crate::dtu::SendEndpoint::shares`]); zero in the
    /// receive buffer.
    pub shares: u32,
    /// Label that the reply will carry, chosen by the sender.
    pub reply_label: u64,
    /// Label of the send endpoint, chosen by the software that configured it (or, in a reply, the reply label).
    pub label: u64,
}
