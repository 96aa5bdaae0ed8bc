//! Bounds of memory accesses, transfers, messages and whole flows on a chip with a shared network.
//!
//! Why it exists: a tile's timing is its own except where its traffic meets that of others: at links, at memories, at a receiver. This
//! module bounds the waiting there, from who may send how much, and adds it to the time without others. It deliberately knows transactions
//! as sequences of [`Step`]s only; the conversion from a description is elsewhere.
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
//!    functions themselves in place of their concave hulls. What was under way at the start is as much as slots allow; of commands of a
//!    unit, which leave when they take their tokens, it is also at most what the bucket let pass within the longest time that one
//!    stays (the order bound over its path). That is the bucket's arrival curve, delayed (Le Boudec and Thiran, section 1.4.3), as total
//!    flow analysis propagates it, and holds with circles, because the order bound needs no arrival curve.
//!
//! 3. *tandem*: a memory that answers in order and the link behind it are one server in order of arrival, so that nothing is paid at both
//!    ([`tandem`]; it is LUDB where LUDB holds). The other two are computed with it and without it, and the least counts.
//!
//! Elsewhere LUDB and TFA's deviations do not hold: links take their inputs in turn, and LUDB needs order of arrival. PMOO holds on each
//! transaction's way, but is never less here (`tests/chip_calculus.rs` compares): it begins with all that a bucket lets pass at once, the
//! order of service with what is under way.
//!
//! # One command at a time
//! A data transfer unit begins a command when the one before is over: when every chunk has been answered, or the last packet of a message
//! has been acknowledged ([`Pool::Command`]). It follows that
//! - for the bounded transaction: if it is part of a command, no part of another command of its tile is under way with it, so none
//!   delays it; other chunks of its own command do (one slot less than the unit has). What the command before left at a resource after
//!   its end is that resource's `tail`;
//! - for rivals: at one moment a tile has one class of the pool under way, the one that costs most; over a window without tokens, transactions
//!   of the classes follow each other in time, so the service is at most that of one class all the time, and what is under way
//!   at both ends;
//! - for a message of several packets: all take the same links in the same order, and each link serves an input in order. Let a packet be
//!   "next" at a link when it is there and the packet before it has left. Going backwards from the end, the last packet was always kept by
//!   a link's service of one of the packets, or by the wait of a "next" packet for others. Each pair of packet and link comes once, so the
//!   sum over all pairs of service and of one wait for others is a bound: packets bounded as if each left when the one before had arrived.
//!   The receiver is taken once, when the message is complete.
//!
//! The classes: to be bounded, a message has a class of its own with all its packets; to others, it is classes of packets by size. A small
//! packet or chunk takes fewer tokens; with one class for all sizes, each token would buy the longest service.
//!
//! # Measured work
//! Let a sequence take m alone. Beside others, its end is decided by a chain of computation and transactions in the order of the program.
//! Alone, the same chain took m at most. So its time beside others is at most m, plus the time by which each transaction's own service may
//! exceed its minimum (a row that is open alone, an edge of a clock), plus what each waits: for others, and for the sequence's own, which
//! are served once.
//!
//! A sequence of transactions (a transfer in chunks, a task's misses, a flow over tiles) has one window for all of them, so the others'
//! bursts are paid once, not once per transaction.

mod beside;
mod bound;
mod chip;
mod cluster;
mod interference;
mod lumped;
mod memory;
mod messages;
mod scenario;
mod shares;
mod system;
mod tandem;
mod turns;

pub use beside::Beside;
pub use bound::{
    Bound, FlowBound, Method, ResourceWait, Stage, Work, flow_bound, transaction_bound,
};
pub use chip::{Chip, ChipError};
pub use cluster::{ClusterBounds, ClusterError, ClusterJob};
pub use memory::{MemoryAccess, MemoryTiming};
pub use scenario::{
    Arbitration, CommunicationError, Demand, NetworkScenario, Outage, Pool, Regulator, Resource,
    Source, Step, Tandem, Ticks, TransactionClass, TransactionId,
};
pub use system::{Kind, Profile, SystemBounds, SystemError, out_of_order, sent_from_outside};
pub(crate) use system::{local_chunks, sends_to};
