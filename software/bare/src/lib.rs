//! Programs without a kernel: how their harts start, what they know about themselves, and memory that they measure.
//!
//! Why it exists: such a program has its part of memory and its harts, and nothing else; the device tree that a boot ROM leaves says which. The
//! same program runs wherever it is placed. What it deliberately does not know: other programs on the chip, and what is measured.
//!
//! ```ignore
//! #![no_std]
//! #![no_main]
//! use bulkhead_bare::{Program, entry};
//!
//! entry!(main);
//! fn main(program: &Program) {
//!     // Every hart of the program gets here; what it returns from ends nothing: it waits.
//! }
//! ```
#![no_std]
#![warn(missing_docs)]

pub mod arch;
pub mod interrupts;
mod program;

pub use bulkhead_hal as hal;
pub use program::Program;
