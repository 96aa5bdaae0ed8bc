//! Experiments over many runs: papers reproduced, systems audited, studies.
//!
//! Why it exists: [`bulkhead_runner`] runs one system once; a question such as "does the paper's figure hold?" or "does anything
//! disturb this domain?" needs many such runs and one answer. What it deliberately does not know: how a system is booted (runner),
//! how bounds and schedulability are derived (analysis), the command line.
#![forbid(unsafe_code)]
#![warn(missing_docs)]

pub mod audit;
pub mod measure;
pub mod reproduce;
pub mod study;
