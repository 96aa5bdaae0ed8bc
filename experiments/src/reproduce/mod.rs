//! The papers' experiments, each paper's figures beside ours: one room for each paper.
//!
//! What it deliberately does not know: how anything could be brought closer to a figure.

pub mod m2os;
pub mod m3;
