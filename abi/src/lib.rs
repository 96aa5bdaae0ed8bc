//! Facts that hardware and software share: register maps, commands, message headers, boot tables, markers.
//!
//! Why it exists: the machine model and the software that runs on it must agree on every offset and every code, and
//! neither may depend on the other. What it deliberately does not know: how anything behaves. There is no logic here
//! beyond packing and unpacking of fields, and no unsafe code. Every layout is pinned by a byte-offset test that is
//! written from the text of `docs/reference/dtu.md`, because a shared wrong offset would agree with itself.
#![no_std]
#![forbid(unsafe_code)]
#![warn(missing_docs)]

pub mod accelerator;
pub mod bandwidth;
pub mod bare;
pub mod boot;
mod calls;
pub mod cbqri;
pub mod dma;
pub mod doorbell;
pub mod dtu;
pub mod environment;
mod field;
pub mod file;
pub mod hpm;
pub mod marker;
pub mod memory_map;
pub mod message;
pub mod network;
pub mod news;
pub mod one_shot;
pub mod pager;
pub mod peripheral;
pub mod plic;
pub mod quota;
pub mod syscall;
pub mod tilemux;
pub mod time;
pub mod translator;
pub mod words;

#[cfg(test)]
mod layout_tests;
#[cfg(test)]
mod protocol_tests;
