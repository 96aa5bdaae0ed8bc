//! Errors in showing a result.
//!
//! What it deliberately does not know: exit codes.

/// A page or picture that cannot be made, and why.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the report cannot be drawn: {0}")]
pub struct Error(String);

impl Error {
    /// With this reason.
    pub fn new(reason: impl std::fmt::Display) -> Self {
        Self(reason.to_string())
    }
}
