//! Activities that wait for others: for a semaphore, for a server, for an event.
//!
//! Why it exists: an activity has one call under way at most, so each has its own place to wait in, which nobody can take. What it
//! deliberately does not know: how an answer reaches it.
//!
//! Activities that wait for the same thing form a line for each priority: the thing knows the first and the last, and each activity its
//! neighbours.

use super::{Question, Ticket};
use crate::activity::Activities;
use bulkhead_abi::syscall::PRIORITIES;
use bulkhead_capabilities::{Line, NodeId};

/// What an activity waits for.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Why {
    /// Something that happens to what he created.
    Event,
    /// A semaphore: its node.
    Semaphore(NodeId),
    /// The answer of a server: the node of its service.
    Server(NodeId, Question),
}

/// Somebody who waits.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Waiting {
    pub ticket: Ticket,
    pub why: Why,
    /// Until when, in nanoseconds since reset; `u64::MAX`: without end.
    pub until: u64,
    /// Who stands before and behind him; 0 is nobody.
    neighbours: (u16, u16),
}

impl Waiting {
    pub fn new(ticket: Ticket, why: Why, until: u64) -> Self {
        Self {
            ticket,
            why,
            until,
            neighbours: (0, 0),
        }
    }
}

impl Activities {
    fn waiting(&mut self, id: u16) -> Option<&mut Waiting> {
        self.get_mut(id)?.waits.as_mut()
    }

    /// Somebody who waits stands last in the line of his priority.
    pub(crate) fn line_up(&mut self, line: &mut Line, waiting: Waiting) {
        let (id, level) = (waiting.ticket.caller, waiting.ticket.level % PRIORITIES);
        let last = line.last[level];
        if let Some(activity) = self.get_mut(id) {
            activity.waits = Some(Waiting {
                neighbours: (last, 0),
                ..waiting
            });
        }
        match self.waiting(last) {
            Some(before) => before.neighbours.1 = id,
            None => line.first[level] = id,
        }
        line.last[level] = id;
    }

    /// Somebody leaves the line, wherever he stands, and waits no more.
    pub(crate) fn step_out(&mut self, line: &mut Line, id: u16) -> Option<Waiting> {
        let waiting = self.get_mut(id)?.waits.take()?;
        let (level, (before, behind)) = (waiting.ticket.level % PRIORITIES, waiting.neighbours);
        match self.waiting(before) {
            Some(other) => other.neighbours.1 = behind,
            None => line.first[level] = behind,
        }
        match self.waiting(behind) {
            Some(other) => other.neighbours.0 = before,
            None => line.last[level] = before,
        }
        Some(waiting)
    }
}

/// The first of the highest priority in a line.
pub(crate) fn first(line: &Line) -> Option<u16> {
    let all = line.first.iter().rev().copied();
    all.into_iter().find(|id| *id != 0)
}
