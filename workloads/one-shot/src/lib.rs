//! Tasks that descriptions name, and the common part of measuring programs.
//!
//! Why it exists: `one-shot::pipeline::Stage` in a description is a type of this library. What it deliberately does not know: on which cores
//! they run, and which ports they have.
#![no_std]

pub mod buffer;
pub mod hops;
pub mod hostile;
pub mod parallel;
pub mod pipeline;
pub mod queue;
pub mod several;
pub mod times;
pub mod trips;
pub mod watch;
