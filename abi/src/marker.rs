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
    /// The kind of a marker: the 12-bit immediate of the hint. Kinds from 0x100 are free for applications and are only recorded.
    MarkerKind: u16 {
        /// A flow of work (value: its number) begins here, for example when a sensor value is taken.
        FlowBegin = 1,
        /// The flow with this number ends here, on whatever tile.
        FlowEnd = 2,
        /// A measured span (value: its number) begins on this tile.
        SpanBegin = 3,
        /// The span ends on this tile.
        SpanEnd = 4,
        /// A job of a periodic task begins (value: job number). It is released then, unless [`Self::JobDue`] has stated an earlier moment.
        JobRelease = 5,
        /// The job is complete.
        JobComplete = 6,
        /// The activity missed a deadline by its own account (value: job number).
        DeadlineMiss = 7,
        /// Warm-up is over: from here on measurements count.
        MeasureBegin = 8,
        /// Measurements are over.
        MeasureEnd = 9,
        /// The activity stopped because of its own fault; emitted by TileMux while it is still the current activity. Value: the
        /// RISC-V cause of a fault, [`PANIC`] or [`HEAP_EXHAUSTED`].
        ActivityFault = 10,
        /// A 64-bit check value of the application (value: the check value), to compare runs.
        Check = 11,
        /// The kernel of the tiled OS creates an activity (value: [`Begins`]); the words of the name that its creator gave it
        /// follow. Has a meaning only on the kernel's tile, where nothing else runs.
        ActivityBegins = 12,
        /// A word of the name of the activity that begins (value: 8 bytes, the first one lowest).
        ActivityName = 13,
        /// TileMux takes the hart: the first instruction of a trap. No value.
        MuxEnters = 14,
        /// The trap that TileMux handles is an interrupt: the activity that ran did not ask for it (value: the cause).
        MuxInterrupts = 15,
        /// TileMux leaves the hart to the activity that it chose last: its last instruction before that activity's. No value.
        MuxLeaves = 16,
        /// TileMux chose which activity runs next (value: its number, [`crate::dtu::IDLE_ACTIVITY`] for none).
        MuxRuns = 17,
        /// An activity is on this tile from now on, not ready ([`Since`] with any moment), or no longer is ([`Since::NEVER`]).
        MuxMember = 18,
        /// An activity of this tile is ready from a moment on (value: [`Since`]).
        MuxReady = 19,
        /// The budget of an activity of this tile lets it run again from a moment on (value: [`Since`]).
        MuxBudget = 20,
        /// TileMux carries out a request of the kernel for an activity (value: its number), until it chooses which activity runs
        /// next. If an activity asked the kernel for that ([`Self::KernelAsks`]), TileMux works for this one instead.
        MuxWorks = 21,
        /// The kernel sends a request to a TileMux because an activity asked for that (value: [`Asker`]): its unit's next message is
        /// that request. Has a meaning only on the kernel's tile.
        KernelAsks = 22,
        /// The heap of the activity has no block of a size (value: bytes), and the program was told.
        HeapRefused = 23,
        /// The next job of the activity's periodic task is released at this moment, or was (value: nanoseconds since reset). The program sends
        /// this marker before it waits for that moment; its next [`Self::JobRelease`] says when it got the hart again.
        JobDue = 24,
    }
}

impl MarkerKind {
    /// Whether only software in machine mode may emit it, because it is about other activities.
    pub const fn is_privileged(self) -> bool {
        matches!(
            self,
            Self::ActivityFault | Self::ActivityBegins | Self::ActivityName | Self::KernelAsks
        ) || self.is_schedule()
    }

    /// Whether it shows which activity has the hart of a tile or wants it.
    pub const fn is_schedule(self) -> bool {
        self as u16 >= Self::MuxEnters as u16 && self as u16 <= Self::MuxWorks as u16
    }
}

/// An activity and a moment, as one word.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Since {
    /// Its number.
    pub activity: u16,
    /// Nanoseconds since reset, below 2^48 (78 hours); 0 is now.
    pub moment: u64,
}

impl Since {
    /// No moment: the event never comes.
    pub const NEVER: u64 = (1 << 48) - 1;
    /// The moment of the marker.
    pub const NOW: u64 = 0;

    /// Encodes it as one word.
    pub const fn pack(self) -> u64 {
        self.activity as u64 | self.moment << 16
    }

    /// Decodes it from one word.
    pub const fn unpack(word: u64) -> Self {
        Self {
            activity: word as u16,
            moment: word >> 16,
        }
    }
}

/// Which activity begins where, as one word: the value of [`MarkerKind::ActivityBegins`].
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
    /// Encodes it as one word.
    pub const fn pack(self) -> u64 {
        self.activity as u64
            | (self.creator as u64) << 16
            | (self.tile as u64) << 32
            | (self.is_namesake as u64) << 48
    }

    /// Decodes it from one word.
    pub const fn unpack(word: u64) -> Self {
        Self {
            activity: word as u16,
            creator: (word >> 16) as u16,
            tile: (word >> 32) as u16,
            is_namesake: word >> 48 & 1 != 0,
        }
    }
}

/// The activity that asked the kernel for something, as one word: the value of [`MarkerKind::KernelAsks`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Asker {
    /// Its number.
    pub activity: u16,
    /// Its tile.
    pub tile: u16,
}

impl Asker {
    /// Encodes it as one word, which is not 0: that means nobody.
    pub const fn pack(self) -> u64 {
        self.activity as u64 | (self.tile as u64) << 16 | 1 << 32
    }

    /// Decodes it from one word.
    pub const fn unpack(word: u64) -> Option<Self> {
        match word >> 32 {
            0 => None,
            _ => Some(Self {
                activity: word as u16,
                tile: (word >> 16) as u16,
            }),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_activity_and_a_moment_are_one_word() {
        for (activity, moment) in [(0, Since::NOW), (u16::MAX, Since::NEVER), (7, 1 << 47)] {
            let since = Since { activity, moment };
            assert_eq!(Since::unpack(since.pack()), since);
        }
    }

    #[test]
    fn what_is_about_others_takes_machine_mode() {
        assert!(MarkerKind::MuxRuns.is_privileged() && MarkerKind::MuxRuns.is_schedule());
        assert!(
            MarkerKind::ActivityBegins.is_privileged() && !MarkerKind::ActivityName.is_schedule()
        );
        assert!(MarkerKind::ActivityFault.is_privileged());
        assert!(MarkerKind::KernelAsks.is_privileged() && !MarkerKind::KernelAsks.is_schedule());
        assert!(MarkerKind::MuxWorks.is_schedule() && MarkerKind::MuxEnters.is_schedule());
        assert!(!MarkerKind::JobDue.is_privileged() && !MarkerKind::JobDue.is_schedule());
        assert!(!MarkerKind::JobRelease.is_privileged() && !MarkerKind::Check.is_schedule());
    }

    #[test]
    fn who_asked_is_one_word() {
        for (activity, tile) in [(0, 0), (7, 255), (u16::MAX, u16::MAX)] {
            let asker = Asker { activity, tile };
            assert_eq!(Asker::unpack(asker.pack()), Some(asker));
        }
        assert_eq!(Asker::unpack(0), None);
    }

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
