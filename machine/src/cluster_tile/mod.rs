//! A processing tile with several harts.
mod directory;
mod first_level;
mod messages;
#[cfg(test)]
mod protocol_tests;
pub use directory::Directory;
pub use first_level::FirstLevel;
