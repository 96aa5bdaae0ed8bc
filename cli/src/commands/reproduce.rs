//! `bulkhead reproduce`.

use super::Outcome;
use crate::arguments::Reproduce;

/// Runs the experiments.
pub fn reproduce(_options: &Reproduce) -> Outcome {
    Ok(1)
}
