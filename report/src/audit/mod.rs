//! The result of the exact non-interference check: as data, as text, and as a page.
//!
//! What it deliberately does not know: how the check works (`experiments/src/audit`).

pub mod page;
pub mod result;
pub mod text;

#[cfg(test)]
mod tests;
