//! The caches of a cluster of harts, kept coherent: protocol only (decision record 0006). No tile uses it yet.
//!
//! Why it exists: harts of one tile share data without flushes. What it deliberately does not know: times, harts, networks.

mod directory;
mod first_level;
mod messages;
#[cfg(test)]
mod protocol_tests;
pub use directory::Directory;
pub use first_level::FirstLevel;
