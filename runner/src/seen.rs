//! What a run saw, in the machine's own types.
//!
//! Why it exists: experiments compare what runs saw and must not drive a machine, so they get the types of observations, and no
//! others, from here. What it deliberately does not know: what is compared.

pub use bulkhead_machine::ledger::{Ledger, Resource};
pub use bulkhead_machine::noc::Transaction;
pub use bulkhead_machine::timeline::{Event, STRIDE, Timeline};
pub use bulkhead_machine::types::Owner;
