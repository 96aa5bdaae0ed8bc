//! The decisions of the kernel of the tiled OS: what system calls do to tiles, activities and capabilities.
//!
//! Why it exists: the kernel is the only software that configures channels between tiles, so its decisions are pure
//! data structures that are tested on the host; effects go through the trait [`hardware::Hardware`]. What it deliberately
//! does not know: policy. Which applications exist and what they may do is the root resource manager's business.
#![cfg_attr(not(test), no_std)]
#![forbid(unsafe_code)]
#![warn(missing_docs)]

extern crate alloc;

pub mod activity;
pub mod books;
pub mod bounds;
pub mod console;
pub mod endpoints;
pub mod hardware;
pub mod load;
pub mod pending;
pub mod post;
pub mod report;
pub mod root;
pub mod system;
pub mod tile;

#[cfg(test)]
#[path = "tests/costs.rs"]
mod costs;
#[cfg(test)]
mod tests;
