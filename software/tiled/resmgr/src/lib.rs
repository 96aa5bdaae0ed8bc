//! What a resource manager reads from the description of the system, and the pieces in which it starts applications.
//!
//! Why it exists: reading and deciding are pure and tested on the host; the program carries the decisions out. What it deliberately
//! does not know: system calls.
#![cfg_attr(not(test), no_std)]
#![forbid(unsafe_code)]
#![warn(missing_docs)]

extern crate alloc;

pub mod description;
pub mod environment;
pub mod filling;
pub mod progress;
pub mod quantity;
