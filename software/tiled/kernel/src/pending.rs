//! Work in progress: the callers that wait for a reply, what they wait for, and the request that each TileMux has.
//!
//! Why it exists: activities and tiles keep these, and system calls make and end them, so all three name them. What it deliberately
//! does not know: what a call does, and when a wait ends.

use alloc::boxed::Box;
use bulkhead_abi::marker::Asker;
use bulkhead_abi::syscall::ServerRequest;
use bulkhead_abi::syscall::arguments::{Exchange, OpenSession};
use bulkhead_abi::tilemux::Request;
use bulkhead_capabilities::NodeId;

/// A caller that waits for a reply: the receive endpoint of a priority, and the message there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ticket {
    /// Number of the caller.
    pub caller: u16,
    /// How often the number had been used before the caller got it.
    pub generation: u32,
    /// Priority, below [`PRIORITIES`].
    pub level: usize,
    /// Offset of the message.
    pub offset: u32,
}

/// The label of a caller's messages: its number, and how often that number had been used before.
pub const fn caller_label(caller: u16, generation: u32) -> u64 {
    caller as u64 | (generation as u64) << 16
}

/// The sender of a message with this label, and the generation of its number.
pub const fn label_caller(label: u64) -> (u16, u32) {
    (label as u16, (label >> 16) as u32)
}

/// What an activity waits for.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Why {
    /// An event of an activity that it created.
    Event,
    /// A semaphore: its node.
    Semaphore(NodeId),
    /// The answer of a server: the node of its service.
    Server(NodeId, Question),
}

/// An activity that waits.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Waiting {
    pub(crate) ticket: Ticket,
    pub(crate) why: Why,
    /// The time limit, in nanoseconds since reset; `u64::MAX`: none.
    pub(crate) until: u64,
    /// Its neighbours in the queue; 0 means none.
    pub(crate) neighbours: (u16, u16),
}

impl Waiting {
    pub(crate) fn new(ticket: Ticket, why: Why, until: u64) -> Self {
        Self {
            ticket,
            why,
            until,
            neighbours: (0, 0),
        }
    }
}

/// The call about which a server is asked.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Purpose {
    Open(OpenSession),
    /// With the server's number of the session.
    Exchange(Exchange, u64),
}

impl Purpose {
    /// The server's view of the call.
    pub(crate) fn request(&self, activity: u16) -> ServerRequest {
        match *self {
            Purpose::Open(c) => ServerRequest::Open {
                argument: c.argument,
                activity,
            },
            Purpose::Exchange(c, ident) => ServerRequest::Exchange {
                ident,
                delegate: u8::from(c.delegate != 0),
                count: c.count,
                arguments: [c.argument0, c.argument1, c.argument2],
            },
        }
    }
}

/// A question to a server.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Question {
    pub(crate) number: u64,
    pub(crate) purpose: Purpose,
}

/// What to do when a TileMux has answered.
#[derive(Clone, Debug)]
pub(crate) enum Then {
    /// Nothing.
    Nothing,
    /// The caller waits for it.
    Reply(Ticket),
    /// The activity runs, and the caller gets its reply.
    Started(Ticket),
    /// The next request of a creation, or its end.
    Created(Box<Creating>),
    /// The activity has stopped.
    Stopped,
}

/// A creation in progress.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Creating {
    /// The caller that waits.
    pub(crate) ticket: Ticket,
    /// The remaining requests to TileMux, the last one first.
    pub(crate) rest: [Option<Request>; 2],
    /// Offset of the buffer for replies to its system calls.
    pub(crate) reply: u64,
    /// TileMux knows the activity.
    pub(crate) introduced: bool,
}

/// A request.
#[derive(Clone, Debug)]
pub(crate) struct Asked {
    pub(crate) number: u64,
    pub(crate) activity: u16,
    pub(crate) request: Request,
    pub(crate) then: Then,
    /// The activity that asked the kernel for it, if one did. TileMux works in the name of this activity, not of the subject of the
    /// request.
    pub(crate) asker: Option<Asker>,
    /// The priority of the activity that waits for it.
    pub(crate) level: usize,
}

impl Then {
    /// The activity that waits for it.
    pub(crate) fn ticket(&self) -> Option<&Ticket> {
        match self {
            Then::Reply(ticket) | Then::Started(ticket) => Some(ticket),
            Then::Created(creating) => Some(&creating.ticket),
            Then::Nothing | Then::Stopped => None,
        }
    }
}
