//! Activities that wait for others: for a semaphore, for a server, for an event.
//!
//! Why it exists: an activity has at most one call outstanding, so each has its own place to wait in, which no other can take.
//! What it deliberately does not know: how an answer reaches it.
//!
//! Activities that wait for the same object form a queue for each priority: the object has the first and the last, and each
//! activity has its neighbours.

use crate::activity::Activities;
use crate::pending::Waiting;
use bulkhead_abi::syscall::PRIORITIES;
use bulkhead_capabilities::Line;

impl Activities {
    fn waiting(&mut self, id: u16) -> Option<&mut Waiting> {
        self.get_mut(id)?.waits.as_mut()
    }

    /// Adds an activity at the end of the queue of its priority.
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

    /// Removes an activity from the queue, wherever it is, and ends its wait.
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

/// The first activity of the highest priority in a queue.
pub(crate) fn first(line: &Line) -> Option<u16> {
    line.first.iter().rev().copied().find(|id| *id != 0)
}
