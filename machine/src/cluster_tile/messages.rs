//! The messages between the first levels of a cluster and its second level.
//!
//! Why it exists: the protocol is two state machines ([`super::FirstLevel`], [`super::Directory`]) that share nothing but these
//! messages. Messages do not know how long they travel. The protocol relies on three orders, which the machine's times give:
//! replies of a port arrive in the order in which they left; a request arrives after the replies that left its port before it;
//! and messages to a port about one line arrive in the order in which they left.
//!
//! Messages about a line do not carry its bytes, except for instructions. The second level has a place for every line of a first level, and
//! nobody else may use the bytes in that place while a message that moves them is under way. Bytes that leave a first level belong to the
//! line's owner, so another hart gets them only after a probe of the owner, and the answer to the probe follows the message. Bytes that are
//! granted change or move only after a probe of that port, which follows the grant. So bytes are copied once: into the second level when
//! they leave a first level, and out of it when they arrive there.

use super::directory::Fill;
use crate::hart::{Management, QosIds};
use crate::noc::Account;
use crate::types::{Line, Owner, Tick};

/// Number of a hart's port at the second level.
pub type Port = u8;

/// The kind of a first level's request.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Request {
    /// The line, to load from it (get shared).
    Read,
    /// The same, but the first level fetches the line ahead: the request is dropped where it would wait or take the line from another port.
    ReadAhead,
    /// The line, to write it: no other first level may have it (get exclusive, or upgrade).
    Write,
    /// The bytes of the line as they are at this moment, for the instruction cache, which the directory does not track.
    Fetch,
    /// A cache-management operation in all caches of the cluster.
    Manage(Management),
    /// The capacity controller wants the line to leave the cluster, if it is still a line that requests with these identifiers have filled
    /// for this purpose. There is no answer.
    Reclaim(Fill),
    /// The second level fetches the line ahead, for this purpose. There is no answer, and it never waits.
    Ahead(Fill),
}

impl Request {
    /// Its answer is a grant.
    pub fn is_granted(self) -> bool {
        matches!(self, Self::Read | Self::ReadAhead | Self::Write)
    }

    /// It brings a line for which nobody waits.
    pub fn is_ahead(self) -> bool {
        matches!(self, Self::ReadAhead | Self::Ahead(_))
    }
}

/// A request of a first level. It waits at the second level while its line is busy.
#[derive(Clone, Debug)]
pub struct Ask {
    /// The port that asks.
    pub port: Port,
    /// First address of the line.
    pub line: u64,
    /// The request.
    pub request: Request,
    /// The identifiers that the hart gave it.
    pub ids: QosIds,
    /// The account of its time.
    pub account: Account,
}

impl Ask {
    /// The purpose for which its line is brought.
    pub fn fill(&self) -> Fill {
        match self.request {
            Request::Fetch => Fill::Instructions,
            Request::Ahead(what) => what,
            _ => Fill::Data,
        }
    }
}

/// A message that a first level sends without waiting. The second level always takes it at once.
#[derive(Clone, Copy, Debug)]
pub enum Reply {
    /// A dirty line that was evicted. Clean lines leave silently.
    Put {
        /// First address.
        line: u64,
    },
    /// The answer to a probe.
    Answer {
        /// First address.
        line: u64,
        /// The line was dirty.
        dirty: bool,
        /// The line is still there, and shared.
        kept: bool,
        /// Ticks for which a reservation held the line.
        held: Tick,
    },
}

/// The second level's work for a request, for the event counts of the hart that made it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Looked {
    /// The line was not there, and came from memory.
    pub missed: bool,
    /// Its place was that of a modified line, which went to memory.
    pub wrote_back: bool,
    /// Lines that the second level has fetched ahead for this hart since its last answer to it.
    pub ahead: Foreseen,
}

/// Lines that the second level has fetched ahead for a hart.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Foreseen {
    /// Lines that were fetched.
    pub fetched: u16,
    /// Lines that a request has used for the first time.
    pub used: u16,
    /// Those of them that had not arrived yet.
    pub late: u16,
}

/// A message of the second level to a first level.
#[derive(Clone, Debug)]
pub enum Down {
    /// Another port wants the line: give it up, or keep it shared.
    Probe {
        /// First address.
        line: u64,
        /// It may stay as a shared line.
        keep: bool,
        /// The owner that wants it, or its place.
        by: Owner,
    },
    /// The line that was asked for with [`Request::Read`], [`Request::ReadAhead`] or [`Request::Write`].
    Grant {
        /// First address.
        line: u64,
        /// No other first level has it.
        exclusive: bool,
        /// The work of the second level.
        looked: Looked,
        /// The account of the request.
        account: Account,
    },
    /// The answer to [`Request::Fetch`]. [`super::Directory::take_fetched`] has the bytes of the moment at which it left.
    Instructions {
        /// First address.
        line: u64,
        /// The work of the second level.
        looked: Looked,
        /// The account of the request.
        account: Account,
    },
    /// Nothing was done for [`Request::ReadAhead`].
    Dropped {
        /// First address.
        line: u64,
        /// The account of the request.
        account: Account,
    },
    /// The operation is done.
    Managed {
        /// First address.
        line: u64,
        /// The account of the request.
        account: Account,
    },
}

impl Down {
    /// First address of the line that the message is about.
    pub fn line(&self) -> u64 {
        match self {
            Down::Probe { line, .. }
            | Down::Grant { line, .. }
            | Down::Instructions { line, .. }
            | Down::Dropped { line, .. }
            | Down::Managed { line, .. } => *line,
        }
    }
}

/// A message of the second level to memory.
#[derive(Clone, Debug)]
pub enum Below {
    /// Read a line.
    Read {
        /// First address.
        line: u64,
        /// The port that asked for it.
        port: Port,
        /// No other cluster may keep it.
        alone: bool,
        /// The identifiers of that request.
        ids: QosIds,
        /// The account of that request.
        account: Account,
    },
    /// Write a line; [`super::Directory::written_bytes`] has the bytes.
    Write {
        /// First address.
        line: u64,
        /// The port that causes it.
        port: Port,
        /// The identifiers of the request for which it leaves.
        ids: QosIds,
    },
    /// Let the other clusters perform a cache-management operation. Only a coherent cluster sends this and the next message.
    Manage {
        /// First address.
        line: u64,
        /// The port that asked for it.
        port: Port,
        /// The operation.
        what: Management,
        /// The identifiers of that request.
        ids: QosIds,
        /// The account of that request.
        account: Account,
    },
    /// The answer to the home, which wanted a line.
    Surrendered {
        /// First address.
        line: u64,
        /// The hart of another cluster that wanted it.
        owner: Owner,
        /// The line is still here, and shared.
        kept: bool,
        /// Its bytes, if memory has others.
        bytes: Option<Box<Line>>,
        /// The account of the question.
        account: Account,
    },
}

/// Which transitions of the protocol's tables have happened: state, event, how often. Only tests count.
#[cfg(test)]
#[derive(Clone, Debug, Default)]
pub struct Coverage(pub std::collections::BTreeMap<(&'static str, &'static str), u64>);

#[cfg(test)]
impl Coverage {
    pub fn note(&mut self, state: &'static str, event: &'static str) {
        *self.0.entry((state, event)).or_default() += 1;
    }
}
