//! Scheduling policies as pure data structures.
//!
//! Why it exists: a policy decides which activity runs next and until when; that is worth testing in isolation, on the host,
//! against properties. What it deliberately does not know: contexts, interrupts, clocks. Times are numbers in one unit.
#![cfg_attr(not(test), no_std)]
#![forbid(unsafe_code)]
#![warn(missing_docs)]

pub mod account;
pub mod tile;
