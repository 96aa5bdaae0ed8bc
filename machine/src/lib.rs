//! The simulated chip: harts, caches, networks, memories and data transfer units, with exact and repeatable timing.
//!
//! Why it exists: the product measures which software delays which on a chip, so it needs a chip on which every wait can
//! be attributed and every run gives the same ticks. What it deliberately does not know: descriptions in XML, the
//! software that it runs, bounds, reports. It takes plain configuration ([`config`]), bytes to load and commands to run,
//! and returns statistics, a ledger of waits, markers and traces.
//!
//! Nothing here may depend on host time, host threads, hash order or addresses: the digest of a run is part of the tests.
#![warn(missing_docs)]

/// Tests inside the crate share programs with those outside.
#[cfg(test)]
extern crate self as bulkhead_machine;

pub mod accelerator;
pub mod beside;
pub mod cable;
pub mod cache;
pub mod cluster_tile;
pub mod config;
pub mod crash;
pub mod device;
pub mod dma;
pub mod doorbells;
pub mod dram;
pub mod dtu;
pub mod engine;
pub mod fabric;
pub mod hart;
pub mod home;
pub mod image;
pub mod ledger;
pub mod local_tile;
pub mod local_token;
pub mod machine;
pub mod noc;
pub mod observe;
pub mod peripheral;
mod ports;
mod reservations;
pub mod statistics;
pub mod tcm;
pub mod tile;
pub mod timeline;
pub mod trace;
pub mod types;
