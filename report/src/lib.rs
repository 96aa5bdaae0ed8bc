//! What a user sees: results as data, and as tables, plots, and pages.
//!
//! Why it exists: results are only worth what a reader understands at a glance. [`result`] and [`audit`] are the data that every
//! reader shares, so the table on the screen, the page, and the files for machines cannot disagree. What it deliberately does not
//! know: the machine, and how a run is made. A page holds everything inside itself and loads nothing. Pages of one paper's
//! experiments stay beside the experiments (`experiments/`), because nobody else reads them; their parts come from here.
#![forbid(unsafe_code)]
#![warn(missing_docs)]

pub mod audit;
pub mod book;
pub mod chip;
pub mod crash;
pub mod distribution;
mod error;
pub mod format;
mod lanes;
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
pub mod table;
pub mod verdict;

pub use error::Error;
