//! The decisions of TileMux: which activities live on this tile, which one runs, and what the others wait for.
//!
//! Why it exists: they are pure and tested on the host; the hardware is behind the trait [`mux::Machine`]. What it
//! deliberately does not know: registers, and everything beyond its tile.
#![cfg_attr(not(test), no_std)]
#![forbid(unsafe_code)]
#![warn(missing_docs)]

pub mod mux;

#[cfg(test)]
mod tests;
