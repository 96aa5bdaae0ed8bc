//! What a program needs to access the hardware in user mode, or to try what it may not do.
//!
//! Why it exists: `unsafe` is here and in the surrounding crate, and what only such programs need is not part of the trusted
//! kernel and TileMux. What it deliberately does not know: gates, sessions, policies.
#![no_std]
#![warn(missing_docs)]

pub mod heap;
#[cfg(target_arch = "riscv64")]
pub mod probe;
#[cfg(target_arch = "riscv64")]
pub mod user;

pub use bulkhead_hal::{abi, paging};
#[cfg(target_arch = "riscv64")]
pub use bulkhead_hal::{csr, device, dtu, marker, trap};
