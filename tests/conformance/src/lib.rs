//! Conformance of the machine's hart, by comparison with QEMU.
//!
//! The instruction set is too large to check against our own tables, so generated programs run on two independent
//! implementations, and everything that they leave behind is compared: registers, CSRs, the log of all traps, memory, page
//! tables. This crate does not know how the hart works or how long anything takes.

pub mod assembler;
pub mod check;
pub mod compare;
pub mod encode;
pub mod generate;
pub mod layout;
pub mod ours;
pub mod program;
pub mod qemu;
pub mod random;
mod runtime;
pub mod whole;
