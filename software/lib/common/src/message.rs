//! Typed requests: a word with the operation or the status, then a body of fixed layout.
//!
//! Why it exists: client and service name types, not offsets; a message that does not fit its type never reaches the
//! service's code. What it deliberately does not know: how messages travel.
//!
//! Bodies are `repr(C)` without padding, little endian as the tiles are. Bytes after the body of a longer message are ignored, so a
//! newer client can talk to an older service.

use crate::status::Status;
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout};

/// Maximum bytes of a message's body.
pub const BODY_MAX: usize = 248;
/// Maximum bytes of a message: one word and the body.
pub const MESSAGE_MAX: usize = 8 + BODY_MAX;
/// Bytes of a receive slot that holds every message: the unit's header of 32 bytes comes on top, in steps of 64.
pub const SLOT: u16 = 320;

/// A plain layout for the body of a request or reply.
pub trait Body: FromBytes + IntoBytes + Immutable + KnownLayout {}
impl<T: FromBytes + IntoBytes + Immutable + KnownLayout> Body for T {}

/// A request of a protocol.
pub trait Request: Body {
    /// Number of the operation, unique in its protocol; 0 is [`Null`] everywhere.
    const OPERATION: u64;
    /// Body of the reply to success.
    type Reply: Body;
}

/// Declares the requests of a protocol: the name of each, its operation, its reply, its fields.
///
/// Each becomes a structure of fixed layout that is a [`Request`]; the compiler refuses padding between fields. Crates that use it
/// depend on `zerocopy`.
#[macro_export]
macro_rules! requests {
    ($($(#[$doc:meta])* $name:ident = $operation:tt -> $reply:ty { $($(#[$field_doc:meta])* $field:ident: $kind:ty,)* })+) => {$(
        $(#[$doc])*
        #[derive(
            Clone,
            Copy,
            Debug,
            PartialEq,
            Eq,
            ::zerocopy::FromBytes,
            ::zerocopy::IntoBytes,
            ::zerocopy::Immutable,
            ::zerocopy::KnownLayout,
        )]
        #[repr(C)]
        pub struct $name { $($(#[$field_doc])* pub $field: $kind,)* }

        impl $crate::message::Request for $name {
            const OPERATION: u64 = $operation;
            type Reply = $reply;
        }
    )+};
}

requests! {
    /// Does nothing; every server of the framework answers it. For measurements, and to find out whether the server is alive.
    Null = 0 -> Null {}
}

/// A message under construction. Aligned so that it never crosses a page.
#[derive(Clone, Copy, Debug)]
#[repr(C, align(256))]
pub struct Buffer {
    bytes: [u8; MESSAGE_MAX],
}

impl Buffer {
    /// An empty buffer.
    pub const fn new() -> Self {
        Self {
            bytes: [0; MESSAGE_MAX],
        }
    }

    /// Puts a word and a body into the buffer. Returns the message.
    #[inline(always)]
    fn put<T: Body>(&mut self, word: u64, body: &T) -> &[u8] {
        const { assert!(size_of::<T>() <= BODY_MAX) };
        self.bytes[..8].copy_from_slice(&word.to_le_bytes());
        self.bytes[8..8 + size_of::<T>()].copy_from_slice(body.as_bytes());
        &self.bytes[..8 + size_of::<T>()]
    }

    /// A request.
    #[inline(always)]
    pub fn request<R: Request>(&mut self, request: &R) -> &[u8] {
        self.put(R::OPERATION, request)
    }

    /// A reply to success.
    #[inline(always)]
    pub fn success<T: Body>(&mut self, reply: &T) -> &[u8] {
        self.put(0, reply)
    }

    /// A reply to failure.
    #[inline(always)]
    pub fn failure(&mut self, status: Status) -> &[u8] {
        self.put(status.code(), &Null {})
    }
}

impl Default for Buffer {
    fn default() -> Self {
        Self::new()
    }
}

/// The first word of a message, and the rest.
#[inline(always)]
pub fn split(payload: &[u8]) -> Option<(u64, &[u8])> {
    let (word, rest) = payload.split_first_chunk::<8>()?;
    Some((u64::from_le_bytes(*word), rest))
}

/// The body of a request, if the message is long enough.
///
/// # Errors
/// [`Status::BadRequest`] if it is not.
#[inline(always)]
pub fn body<T: Body>(rest: &[u8]) -> Result<T, Status> {
    if let Ok((body, _)) = T::read_from_prefix(rest) {
        Ok(body)
    } else {
        Err(Status::BadRequest)
    }
}

/// Reads a reply.
///
/// # Errors
/// The service's error; [`Status::BadReply`] if it is not a reply of this kind.
#[inline(always)]
pub fn reply<T: Body>(payload: &[u8]) -> Result<T, Status> {
    let (word, rest) = split(payload).ok_or(Status::BadReply)?;
    outcome(Some(word), rest)
}

/// Reads a reply whose first word, if there is one, was read already.
///
/// # Errors
/// As for [`reply`].
#[inline(always)]
pub fn outcome<T: Body>(word: Option<u64>, rest: &[u8]) -> Result<T, Status> {
    match word {
        Some(0) => body(rest).map_err(|_| Status::BadReply),
        word => Err(failure(word)),
    }
}

#[cold]
#[inline(never)]
fn failure(code: Option<u64>) -> Status {
    code.and_then(Status::from_code).unwrap_or(Status::BadReply)
}

/// Text of fixed size, ended by zeros.
///
/// # Errors
/// [`Status::BadRequest`] if it is not UTF-8 or empty.
pub fn text(bytes: &[u8]) -> Result<&str, Status> {
    let length = bytes.iter().position(|&b| b == 0).unwrap_or(bytes.len());
    match core::str::from_utf8(&bytes[..length]) {
        Ok("") | Err(_) => Err(Status::BadRequest),
        Ok(text) => Ok(text),
    }
}

/// The bytes of a text, padded with zeros.
///
/// # Errors
/// [`Status::BadRequest`] if it is too long, empty, or holds a zero.
pub fn padded<const N: usize>(text: &str) -> Result<[u8; N], Status> {
    let mut bytes = [0; N];
    if text.is_empty() || text.len() > N || text.bytes().any(|b| b == 0) {
        return Err(Status::BadRequest);
    }
    bytes[..text.len()].copy_from_slice(text.as_bytes());
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    requests! {
        /// Fields of three sizes.
        Pair = 7 -> u64 {
            /// At byte 0.
            first: u64,
            /// At byte 8.
            second: u32,
            /// At byte 12.
            third: [u8; 4],
        }
    }

    #[test]
    fn layout_of_a_request() {
        let mut buffer = Buffer::new();
        let pair = Pair {
            first: 0x0102_0304_0506_0708,
            second: 9,
            third: *b"abcd",
        };
        let bytes = buffer.request(&pair);
        assert_eq!(
            bytes,
            b"\x07\0\0\0\0\0\0\0\x08\x07\x06\x05\x04\x03\x02\x01\x09\0\0\0abcd"
        );
        assert_eq!(size_of::<Buffer>(), align_of::<Buffer>());
    }

    #[test]
    fn replies_tell_success_from_failure() {
        let mut buffer = Buffer::new();
        assert_eq!(reply::<u64>(buffer.success(&5u64)), Ok(5));
        assert_eq!(
            reply::<u64>(buffer.failure(Status::NoSpace)),
            Err(Status::NoSpace)
        );
        assert_eq!(reply::<u64>(&[0; 15]), Err(Status::BadReply));
        assert_eq!(reply::<u64>(&[]), Err(Status::BadReply));
        assert_eq!(reply::<u64>(&[0xff; 16]), Err(Status::BadReply));
    }

    proptest! {
        #[test]
        fn nothing_makes_reading_fail_otherwise(bytes in proptest::collection::vec(any::<u8>(), 0..300)) {
            let _ = reply::<Pair>(&bytes);
            if let Some((_, rest)) = split(&bytes) {
                prop_assert_eq!(body::<Pair>(rest).is_ok(), rest.len() >= 16);
            } else {
                prop_assert!(bytes.len() < 8);
            }
            let _ = text(&bytes);
        }

        #[test]
        fn texts_come_back(name in "[^\0]{1,12}") {
            match padded::<16>(&name) {
                Ok(bytes) => prop_assert_eq!(text(&bytes), Ok(name.as_str())),
                Err(_) => prop_assert!(name.len() > 16),
            }
        }
    }
}
