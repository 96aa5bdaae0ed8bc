//! Sockets of many clients over one network card.
//!
//! Why it exists: the owners of sockets, the waiting requests, and the remains of a client that is gone are decisions. Tests on the
//! host run them, against a second stack at the other end of a cable that loses frames at random. What it deliberately does not
//! know: gates, the card, time.
//!
//! ARP, IPv4, ICMP echo replies, UDP and TCP are those of the crate `smoltcp`. Times are nanoseconds.
#![no_std]
#![warn(missing_docs)]

extern crate alloc;
#[cfg(test)]
extern crate std;

pub mod card;
mod stack;
#[cfg(test)]
mod tests;
#[cfg(test)]
mod tests_fuzz;

pub use bulkhead_common::account::Terms;
pub use bulkhead_common::network as protocol;
pub use bulkhead_common::network::Card;
pub use bulkhead_common::status::Status;
pub use stack::{Answer, Options, Stack};
