//! What the root resource manager reads from the description of the system.
//!
//! Why it exists: reading is pure and tested on the host; carrying it out is the program's business. What it deliberately
//! does not know: system calls.
#![cfg_attr(not(test), no_std)]
#![forbid(unsafe_code)]
#![warn(missing_docs)]

extern crate alloc;

pub mod description;
pub mod quantity;
