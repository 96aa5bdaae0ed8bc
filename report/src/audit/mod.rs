//! The exact non-interference check's result: as data, as text, and as a page.
//!
//! What it deliberately does not know: how the check works (`experiments/src/audit`).

pub mod page;
pub mod result;
pub mod text;

#[cfg(test)]
mod tests;
