//! `bulkhead completions` and `bulkhead man`: what a shell and `man` need to know about the command
//! line.
//!
//! What it deliberately does not know: the commands; the command line describes itself.

use super::{Outcome, say};
use crate::arguments::Arguments;
use bulkhead_runner::Error;
use clap::CommandFactory;
use std::path::Path;

/// Prints the script for a shell.
pub fn completions(shell: clap_complete::Shell) -> Outcome {
    let mut script = Vec::new();
    clap_complete::generate(shell, &mut Arguments::command(), "bulkhead", &mut script);
    say(&String::from_utf8_lossy(&script));
    Ok(0)
}

/// Writes a page for each command.
pub fn manual(folder: &Path) -> Outcome {
    let failed = |error| Error::file(folder, error);
    std::fs::create_dir_all(folder).map_err(failed)?;
    clap_mangen::generate_to(Arguments::command(), folder).map_err(failed)?;
    say(&format!("manual pages in {}", folder.display()));
    Ok(0)
}
