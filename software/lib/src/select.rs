//! Waiting for several sources: the first message of any gate, or a time.
//!
//! Why it exists: an application has one thread of control and may have many gates. What it deliberately does not know: the
//! handling of the message; see [`crate::threads`] for loops that read like several programs.

use crate::gate::{Message, ReceiveGate, Result, drop_answers};
use crate::time;
use bulkhead_abi::dtu::NO_ENDPOINT;

/// The first event.
#[derive(Debug)]
pub enum Event {
    /// A message, and the index of its gate.
    Message(usize, Message),
    /// The time has come.
    Time,
}

/// Waits for a message of any of these gates, the first having the highest priority, or until the clock of [`time::now`] shows
/// `until` nanoseconds. Unread messages of other gates keep the hart from sleeping, so list all gates in use.
///
/// # Errors
/// The DTU's error for a gate.
pub fn wait(gates: &[ReceiveGate], until: Option<u64>) -> Result<Event> {
    loop {
        for (index, gate) in gates.iter().enumerate() {
            if let Some(message) = gate.fetch()? {
                return Ok(Event::Message(index, message));
            }
        }
        if until.is_some_and(|until| time::now() >= until) {
            return Ok(Event::Time);
        }
        drop_answers();
        time::wait(NO_ENDPOINT, until.unwrap_or(0));
    }
}
