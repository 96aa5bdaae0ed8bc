//! What the directory knows of a line and of a request that is under way.
//!
//! Why it exists: these are the states of the protocol. What it deliberately does not know: what leads from one to another.

use super::super::messages::{Ask, Looked, Port};
use crate::types::{Line, Owner, Tick};

/// The holders of a line.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Holders {
    pub owner: Option<Port>,
    /// Bit i: port i.
    pub sharers: u8,
    /// Other clusters may have the line. Then nobody here owns it, and its bytes are those of memory.
    pub elsewhere: bool,
}

impl Holders {
    pub fn all(self) -> u8 {
        self.sharers | self.owner.map_or(0, |owner| 1 << owner)
    }
}

/// The event below for which a transaction waits.
#[derive(Clone, Debug)]
pub(super) enum Memory {
    Nothing,
    /// The line.
    Asked,
    /// The line has come, but has no place yet (rare, so it is boxed to keep transactions small); and whether no other cluster has it.
    Came(Box<Line>, bool),
    /// The acknowledgement of a line that a cache-management operation wrote.
    Writing,
    /// The other clusters perform a cache-management operation first. Nothing has changed here.
    Elsewhere,
}

#[derive(Clone, Debug)]
pub(super) struct Transaction {
    pub ask: Ask,
    /// The line whose place the new line gets once no first level has it, and its way.
    pub victim: Option<(u64, usize)>,
    /// Bit i: port i has been probed and has not answered.
    pub probed: u8,
    /// The port that held the line back longest with a reservation, and for how long.
    pub held: (Port, Tick),
    pub memory: Memory,
    pub looked: Looked,
    /// Another port's fill had evicted the line: that port, and the service of the request before memory was asked.
    pub culprit: Option<(Owner, Tick)>,
    /// It held a miss register until its line came.
    pub brought: bool,
}

/// What a request that waits lacks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Lacks {
    /// Its line, for which something else is under way.
    Line,
    /// A miss register.
    Register,
    /// A place in its set.
    Way,
}

/// Whom a request waits for: of a register or a place, the owner of the oldest request that has one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Blocker {
    pub owner: Owner,
    pub lacks: Lacks,
}

impl Blocker {
    pub fn line(owner: Owner) -> Self {
        let lacks = Lacks::Line;
        Self { owner, lacks }
    }
}

/// Something for which requests may wait has ended.
#[derive(Clone, Copy, Debug)]
pub(super) struct Ended {
    pub owner: Owner,
    /// The place of its line, which a fill may take now. `None`: it had none.
    pub slot: Option<usize>,
    /// It gives a miss register back.
    pub register: bool,
}

#[derive(Clone, Debug)]
pub(super) struct Waiting {
    pub ask: Ask,
    /// When its wait because of this hart began.
    pub since: Tick,
    pub blocker: Blocker,
}

impl Transaction {
    /// This line gives its place to the line of the request.
    pub fn recalls(&self, line: u64) -> bool {
        self.victim.is_some_and(|(victim, _)| victim == line)
    }

    pub fn is_about(&self, line: u64) -> bool {
        self.ask.line == line || self.recalls(line)
    }

    /// It takes a miss register.
    pub fn is_below(&self) -> bool {
        matches!(self.memory, Memory::Asked | Memory::Came(..))
    }
}
