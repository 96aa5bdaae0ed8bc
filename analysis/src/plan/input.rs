//! Invalid input to planning or judging.
//!
//! What it deliberately does not know: exit codes and terminals.

use thiserror::Error;

/// A bad input, with cause and remedy.
#[derive(Debug, Error)]
pub enum InputError {
    /// The description is bad.
    #[error(transparent)]
    Description(#[from] bulkhead_model::Errors),
    /// Another bad input.
    #[error("{cause}")]
    Input {
        /// The cause.
        cause: String,
        /// The remedy.
        remedy: String,
    },
}

impl InputError {
    /// Invalid input other than a description.
    pub fn new(cause: impl Into<String>, remedy: impl Into<String>) -> Self {
        Self::Input {
            cause: cause.into(),
            remedy: remedy.into(),
        }
    }
}
