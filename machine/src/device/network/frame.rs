//! A frame and its possible fates.
//!
//! Why it exists: a reader of a trace wants to follow a frame from the card that sent it to the card that stored or
//! dropped it, so a frame knows its origin. What it deliberately does not know: its contents; nothing that a card does
//! depends on an origin.

use crate::types::{Tick, TileId};
use std::ops::Deref;

/// A frame without preamble and check sequence.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Frame {
    bytes: Box<[u8]>,
    /// Tile of the card that sent it.
    pub tile: TileId,
    /// How many frames this card had sent before it.
    pub number: u64,
    /// It was sent on another chip.
    pub foreign: bool,
}

impl From<Vec<u8>> for Frame {
    fn from(bytes: Vec<u8>) -> Self {
        Self {
            bytes: bytes.into(),
            ..Self::default()
        }
    }
}

impl Deref for Frame {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        &self.bytes
    }
}

/// Why a card did not store a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DropReason {
    /// No driver listened.
    Deaf,
    /// Earlier frames waiting for the driver's buffers fill the card.
    Full,
    /// The driver's buffer is too small for it.
    SmallBuffer,
    /// While the frame waited, the card was reset, given away, or stopped because its driver broke the rules.
    Stopped,
}

/// The fate of a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fate {
    /// The link accepts it now; it has left at that moment.
    Sent {
        /// When its last byte has left.
        left: Tick,
    },
    /// The driver offered something that is not a frame (too short or too long); it is not sent.
    Malformed,
    /// The cable lost it.
    Lost,
    /// The cable delivers it twice.
    Doubled,
    /// It arrived completely.
    Arrived,
    /// It is in the driver's memory.
    Stored {
        /// When it had arrived.
        arrived: Tick,
        /// When there was a buffer for it and no earlier frame was being stored.
        from: Tick,
    },
    /// It will not be stored.
    Dropped(DropReason),
}
