//! One module for each sub-command.
//!
//! What they deliberately do not know: each other.

pub mod boot;
pub mod check;
pub mod list;
pub mod new;
pub mod reproduce;
pub mod run;

use bulkhead_runner::Error;
use serde::Serialize;

/// Exit code, or an error.
pub type Outcome = Result<u8, Error>;

/// Prints a value for machines.
pub fn print_json<T: Serialize>(value: &T) -> Result<(), Error> {
    let text = serde_json::to_string_pretty(value).map_err(|error| Error::Report(error.to_string()))?;
    println!("{text}");
    Ok(())
}
