//! Markers: observations that software makes for free.
//!
//! A marker is the HINT `slti x0, rs1, kind`: a no-op on any RISC-V chip, and recorded at no cost in ticks by the
//! machine, which reads the value of `rs1`, the time, the tile and the current activity.

use crate::dtu::codes;

/// Value of [`MarkerKind::ActivityFault`] after a panic.
pub const PANIC: u64 = 0x100;
/// Value of [`MarkerKind::ActivityFault`] after the heap was exhausted.
pub const HEAP_EXHAUSTED: u64 = 0x101;

codes! {
    /// What a marker says; the 12-bit immediate of the hint. Kinds from 0x100 are free for applications and are only
    /// recorded.
    MarkerKind: u16 {
        /// A flow of work (value: its number) begins here, for example when a sensor value is taken.
        FlowBegin = 1,
        /// The flow with this number ends here, on whatever tile.
        FlowEnd = 2,
        /// A measured span (value: its number) begins on this tile.
        SpanBegin = 3,
        /// The span ends on this tile.
        SpanEnd = 4,
        /// A job of a periodic task is released (value: job number).
        JobRelease = 5,
        /// The job is complete.
        JobComplete = 6,
        /// The activity missed a deadline by its own account (value: job number).
        DeadlineMiss = 7,
        /// Warm-up is over: from here on measurements count.
        MeasureBegin = 8,
        /// Measurements are over.
        MeasureEnd = 9,
        /// The activity stopped by a mistake of its own; emitted by TileMux while it is still the current activity. Value: the
        /// RISC-V cause of a fault, [`PANIC`] or [`HEAP_EXHAUSTED`].
        ActivityFault = 10,
        /// A 64-bit check value of the application (value: it), to be compared between runs.
        Check = 11,
        /// The kernel of the tiled OS creates an activity (value: [`Begins`]); the words of the name that its creator gave it follow.
        /// Means something on the kernel's tile only, where nobody else runs.
        ActivityBegins = 12,
        /// A word of the name of the activity that begins (value: 8 bytes, the first one lowest).
        ActivityName = 13,
    }
}

/// Who begins where, as one word: the value of [`MarkerKind::ActivityBegins`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Begins {
    /// Its number.
    pub activity: u16,
    /// The number of its creator.
    pub creator: u16,
    /// Its tile.
    pub tile: u16,
    /// Another activity of its creator has its name.
    pub is_namesake: bool,
}

impl Begins {
    /// As one word.
    pub const fn pack(self) -> u64 {
        self.activity as u64
            | (self.creator as u64) << 16
            | (self.tile as u64) << 32
            | (self.is_namesake as u64) << 48
    }

    /// From one word.
    pub const fn unpack(word: u64) -> Self {
        Self {
            activity: word as u16,
            creator: (word >> 16) as u16,
            tile: (word >> 32) as u16,
            is_namesake: word >> 48 & 1 != 0,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_begins_is_one_word() {
        for (activity, creator, tile, is_namesake) in [(1, 0, 2, false), (u16::MAX, 7, 255, true)] {
            let begins = Begins {
                activity,
                creator,
                tile,
                is_namesake,
            };
            assert_eq!(Begins::unpack(begins.pack()), begins);
        }
    }
}
