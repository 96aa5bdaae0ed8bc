//! The output for users: results as data, tables, plots and pages.
//!
//! Why it exists: a result is only useful if a reader understands it at a glance. [`result`] and [`audit`] are the data that every
//! reader shares, so the table on the screen, the page, and the files for machines cannot disagree. What it deliberately does not
//! know: the machine, and how a run is made. A page is self-contained and loads nothing. Pages of one paper's experiments stay
//! with the experiments (`experiments/`), because nothing else uses them; their parts come from here.
#![forbid(unsafe_code)]
#![warn(missing_docs)]

pub mod audit;
pub mod book;
pub mod chip;
mod clocks;
pub mod crash;
pub mod distribution;
mod error;
pub mod format;
mod lanes;
pub mod measure;
pub mod page;
pub mod palette;
pub mod placement;
pub mod plan;
pub mod plan_page;
#[cfg(test)]
mod plan_tests;
pub mod plot;
pub mod result;
#[cfg(test)]
mod sample;
mod scale;
#[cfg(test)]
mod schemas;
pub mod table;
pub mod verdict;

pub use error::Error;
