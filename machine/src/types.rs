//! The few types that all parts of the machine share, so that the parts need not know each other for them.

/// A moment or a span in ticks. One tick is the reciprocal of the least common multiple of all the platform's clocks, so
/// every clock edge is an integer.
pub type Tick = u64;

/// The moment one span after another moment. [`Tick::MAX`] means "never" as a moment and "endless" as a span, so nothing
/// comes after it.
///
/// # Panics
/// If the sum of other values overflows a tick, which would take a run of centuries.
#[inline(always)]
pub fn later(at: Tick, span: Tick) -> Tick {
    match at.checked_add(span) {
        Some(sum) => sum,
        None if at.max(span) == Tick::MAX => Tick::MAX,
        None => beyond(at, span),
    }
}

#[cold]
#[inline(never)]
fn beyond(at: Tick, span: Tick) -> ! {
    panic!("{span} ticks after {at} is no tick")
}

/// Number of a tile on the network: processing tiles and memory tiles share one numbering.
pub type TileId = u16;

/// The owner of a request: a tile and the activity on it (of the tiled OS; 0 if there are none).
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Owner {
    /// The tile where the request started.
    pub tile: TileId,
    /// The activity that was current there.
    pub activity: u16,
}

impl Owner {
    /// The owner for an activity of a tile.
    pub const fn new(tile: TileId, activity: u16) -> Self {
        Self { tile, activity }
    }
}

/// Maximum length of a cache line in bytes, so that a line fits in a packet.
pub const LINE_MAX: usize = 128;

/// A cache line outside a cache: in a packet or a buffer. Shorter lines use the first bytes.
pub type Line = [u8; LINE_MAX];

/// At most [`LINE_MAX`] bytes, in the form that messages and packets carry; zeros follow.
pub fn inline(bytes: &[u8]) -> Line {
    let mut line = [0; LINE_MAX];
    line[..bytes.len()].copy_from_slice(bytes);
    line
}

/// The bytes of an access to a tile's memory. They move when the line is present.
#[derive(Debug)]
pub enum Block<'a> {
    /// They come from memory.
    Read(&'a mut [u8]),
    /// They go there.
    Write(&'a [u8]),
}

impl Block<'_> {
    /// How many bytes.
    #[allow(clippy::len_without_is_empty)] // No access has none.
    pub fn len(&self) -> usize {
        match self {
            Block::Read(bytes) => bytes.len(),
            Block::Write(bytes) => bytes.len(),
        }
    }

    /// Whether memory changes.
    pub fn is_write(&self) -> bool {
        matches!(self, Block::Write(_))
    }
}

/// The next edge of a clock with `cycle` ticks per cycle, at or after `at`.
pub const fn align(at: Tick, cycle: Tick) -> Tick {
    let rest = at % cycle;
    if rest == 0 { at } else { at + (cycle - rest) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn aligns_to_the_next_edge() {
        // Clock of 5 ticks: edges at 0, 5, 10. 0 and 5 are edges; 6 waits 4 ticks.
        assert_eq!([align(0, 5), align(5, 5), align(6, 5)], [0, 5, 10]);
    }
}
