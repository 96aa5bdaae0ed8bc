//! Registers, assembly and page tables: what software needs to touch the hardware of a tile.
//!
//! Why it exists: `unsafe` is here (and in the kernels' `arch` modules) and nowhere else. Everything offered is as safe
//! as the hardware makes it. What it deliberately does not know: activities, messages' contents, policies.
//!
//! Modules that need the target are only there on RISC-V; the page tables are pure and tested on the host.
#![no_std]
#![warn(missing_docs)]

#[cfg(target_arch = "riscv64")]
mod bytes;
#[cfg(target_arch = "riscv64")]
pub mod csr;
#[cfg(target_arch = "riscv64")]
pub mod device;
#[cfg(target_arch = "riscv64")]
pub mod dtu;
pub mod heap;
#[cfg(target_arch = "riscv64")]
pub mod marker;
pub mod paging;
#[cfg(target_arch = "riscv64")]
pub mod trap;

pub use bulkhead_abi as abi;
