//! The library for applications in C: the functions of `include/bulkhead.h`.
//!
//! Why it exists: C has no ownership, so gates and messages are numbers in C, and this library keeps the objects. What it
//! deliberately does not know: protocols. Everything that touches pointers of C is in `arch`.
#![no_std]
#![warn(missing_docs)]

extern crate alloc;

mod arch;
mod tables;
