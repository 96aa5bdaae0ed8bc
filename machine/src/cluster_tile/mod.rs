//! A tile whose harts share data: private first levels, kept coherent by a directory at a shared second level (decision record 0006).
//!
//! Why it exists: chips whose cores share a last-level cache. The protocol ([`messages`], [`FirstLevel`], [`Directory`]) knows no
//! times; [`second_level`] and [`port`] give it times; [`tile`] lets harts and second level act, none of them before something that
//! could reach it. First-level hits are function calls; everything else is a message with a moment. What it deliberately does not
//! know: other tiles; all that leaves goes through the fabric.

mod ahead;
mod bus;
mod capacity;
mod controller;
mod devices;
mod directory;
mod first_level;
mod flush;
mod messages;
mod outside;
mod port;
#[cfg(test)]
mod protocol_tests;
mod queue;
mod second_level;
mod tile;
#[cfg(test)]
pub(crate) mod tile_tests;

pub use directory::Directory;
pub use first_level::FirstLevel;
pub use tile::ClusterTile;
