//! Bounds of memory accesses, transfers, messages and whole flows on a chip with a shared network.
//!
//! Why it exists: a tile's timing is its own except where its traffic meets that of others: at links, at memories, at a
//! receiver. This module bounds the waiting there, from who may send how much, and adds it to the time without others.
//! It deliberately knows transactions as sequences of [`Step`]s only; the conversion from a description lives apart.
//!
//! # Method
//! A resource is work conserving: a transaction waits only while the resource serves others. How long that can be is the
//! least of
//! 1. *order*: with service in order of arrival, everything that is ahead was under way, and a source has a bounded
//!    number of transactions under way; with round robin over inputs, what is ahead in the own input queue, and as many
//!    packets of each other input, plus one. This bound needs no regulation: it is what makes a best-effort network
//!    finite (D. Rahmati et al., *Computing accurate performance bounds for best effort networks-on-chip*, IEEE
//!    Transactions on Computers 62(3), 2013);
//! 2. *window*: in a window of length w others are served at most what was under way at its start, plus what their
//!    token buckets, their demand and their own round trips admit within w. The least w that covers its own
//!    interference is the horizontal deviation of network calculus with blind multiplexing (Le Boudec and Thiran, sections
//!    1.4 and 6.2.1; token buckets in front of a network on chip as in Boyer et al., ERTS 2018), with the staircase
//!    functions themselves in place of their concave hulls.
//!
//! A sequence of transactions (a transfer in chunks, a task's misses, a flow over tiles) has one window for all of them,
//! so the others' bursts are paid once, not once a transaction.

mod bound;
mod chip;
mod interference;
mod lumped;
mod scenario;
mod system;

pub use bound::{
    Bound, FlowBound, Method, ResourceWait, Stage, Work, flow_bound, transaction_bound,
};
pub use chip::{Chip, ChipError};
pub use scenario::{
    Arbitration, CommunicationError, Demand, NetworkScenario, Outage, Pool, Regulator, Resource,
    Source, Step, Ticks, TransactionClass, TransactionId,
};
pub(crate) use system::local_chunks;
pub use system::{Kind, Profile, SystemBounds, SystemError};
