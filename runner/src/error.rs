//! What can go wrong, and the exit code for it.
//!
//! What it deliberately does not know: how errors are printed.

use thiserror::Error;

pub use bulkhead_report::verdict::exit;

/// Anything that stops a command.
#[derive(Debug, Error)]
pub enum Error {
    /// The description is bad.
    #[error(transparent)]
    Description(#[from] bulkhead_model::Errors),
    /// Another invalid input, with cause and remedy.
    #[error("{cause}")]
    Input {
        /// The cause.
        cause: String,
        /// The remedy.
        remedy: String,
    },
    /// A file cannot be read or written.
    #[error("{path}: {source}")]
    File {
        /// The file.
        path: String,
        /// Why.
        source: std::io::Error,
    },
    /// A program does not build.
    #[error("{program} does not build:\n{output}")]
    Build {
        /// Program.
        program: String,
        /// The compiler's output.
        output: String,
    },
    /// The report cannot be drawn.
    #[error(transparent)]
    Report(#[from] bulkhead_report::Error),
    /// The machine refuses its configuration or image.
    #[error("{0}")]
    Machine(String),
}

impl From<bulkhead_machine::config::ConfigError> for Error {
    /// A chip that the machine refuses is a mistake in its description, although nothing tells its place.
    fn from(error: bulkhead_machine::config::ConfigError) -> Self {
        Self::input(
            error.to_string(),
            "change this in the platform; such rules need what only the machine computes, so they have no place in a file",
        )
    }
}

impl From<bulkhead_analysis::plan::InputError> for Error {
    fn from(error: bulkhead_analysis::plan::InputError) -> Self {
        use bulkhead_analysis::plan::InputError;
        match error {
            InputError::Description(errors) => Self::Description(errors),
            InputError::Input { cause, remedy } => Self::Input { cause, remedy },
        }
    }
}

impl Error {
    /// A bad input.
    pub fn input(cause: impl Into<String>, remedy: impl Into<String>) -> Self {
        Self::Input {
            cause: cause.into(),
            remedy: remedy.into(),
        }
    }

    /// A file that cannot be read or written.
    pub fn file(path: &std::path::Path, source: std::io::Error) -> Self {
        Self::File {
            path: path.display().to_string(),
            source,
        }
    }

    /// The remedy, if it is known.
    pub fn remedy(&self) -> Option<&str> {
        use std::io::ErrorKind as K;
        match self {
            Self::Input { remedy, .. } => Some(remedy),
            Self::File { source, .. } => match source.kind() {
                K::NotFound => Some("check the name"),
                K::PermissionDenied | K::ReadOnlyFilesystem => {
                    Some("check the rights of the file and its folder, or name another place")
                }
                K::StorageFull | K::QuotaExceeded => Some("make room, or name another place"),
                K::NotADirectory | K::AlreadyExists => {
                    Some("a file has the name of a folder that must be created; name another place")
                }
                K::IsADirectory => Some("name a file: this is a folder"),
                _ => None,
            },
            // A newcomer's first program often uses something that programs for the chip lack.
            Self::Build { output, .. } if output.contains("can't find crate for `std`") => Some(
                "programs of the chip have no standard library: begin the file with #![no_std] and #![no_main], and name its main \
                 function with bulkhead_lib::main!(main)",
            ),
            Self::Build { output, .. } if output.contains("profile `chip` is not defined") => {
                Some("copy [profile.chip] into Cargo.toml from a package that `bulkhead new` makes")
            }
            Self::Build { output, .. } if output.contains("dependency `bulkhead-lib`") => Some(
                "the path of bulkhead-lib in Cargo.toml is that of software/lib in the checkout; `bulkhead new` writes it",
            ),
            Self::Build { output, .. } if output.contains("undefined reference to") => Some(
                "there is no C library on the chip; bulkhead.h declares the functions that a program can call, such as bh_print",
            ),
            _ => None,
        }
    }

    /// Exit code for it.
    pub fn code(&self) -> u8 {
        match self {
            Self::Description(_) | Self::Input { .. } => exit::BAD_INPUT,
            _ => exit::FAILURE,
        }
    }
}
