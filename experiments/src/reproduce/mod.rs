//! The papers' experiments, with each paper's figures beside ours: one folder for each paper.
//!
//! What it deliberately does not know: how to bring a result closer to a figure.

pub mod m2os;
pub mod m3;
