//! What a user sees: the table on the screen and the report page.
//!
//! Why it exists: results are only worth what a reader understands at a glance. What it deliberately does not know: how
//! a run is made; it reads [`crate::result::RunResult`] alone. A page holds everything inside itself and loads nothing.

pub mod format;
pub mod page;
pub mod plan;
pub mod plot;
#[cfg(test)]
mod sample;
pub mod table;
