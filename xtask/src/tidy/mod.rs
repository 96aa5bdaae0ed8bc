//! The laws of the blueprint (section 2) as code: one function per law, each with a small bad example as its
//! test.
//!
//! Why it exists: a law that nothing checks is only a wish. What it deliberately does not know: how to repair
//! anything; a violation names the file, the line and the law, and the law says what would be right.

mod circles;
mod documents;
mod inventory;
mod laws;
mod payers;
pub mod source;

use crate::tree::{self, Tree};
use std::fmt;
use std::path::Path;

/// A place where a law is broken.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Violation {
    /// File below the root.
    pub path: String,
    /// Line, counted from 1; 0 means the file as a whole.
    pub line: usize,
    /// The mistake and its remedy.
    pub message: String,
}

impl Violation {
    pub fn new(path: &str, line: usize, message: impl Into<String>) -> Self {
        Self {
            path: path.to_owned(),
            line,
            message: message.into(),
        }
    }
}

impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.line {
            0 => write!(f, "{}: {}", self.path, self.message),
            line => write!(f, "{}:{line}: {}", self.path, self.message),
        }
    }
}

/// A law: its name and its check.
type Law = (&'static str, fn(&Tree) -> Vec<Violation>);

const LAWS: &[Law] = &[
    ("dependencies", laws::dependencies),
    ("circles", circles::circles),
    ("lints", laws::lints),
    ("unsafe", laws::unsafe_places),
    ("safety comments", laws::safety_comments),
    ("file length", laws::file_length),
    ("module docs", laws::module_docs),
    ("test modules", laws::test_modules),
    ("unfinished work", laws::unfinished),
    ("determinism", laws::determinism),
    ("host input", laws::host_input),
    ("payers", payers::payers),
    ("inventory", inventory::inventory),
    ("machine paths", laws::machine_paths),
    ("registries", laws::registries),
    ("invalid descriptions", documents::invalid_descriptions),
    ("change log", documents::change_log),
    ("links", documents::links),
    ("book", documents::summary_lists_pages),
];

/// Checks every law and prints the violations; true if there are none.
pub fn run(root: &Path) -> Result<bool, String> {
    let tree = tree::read(root)?;
    let mut count = 0;
    for (name, law) in LAWS {
        for violation in law(&tree) {
            println!("{violation} [{name}]");
            count += 1;
        }
    }
    if count == 0 {
        println!(
            "tidy: {} laws hold over {} files and {} packages",
            LAWS.len(),
            tree.files.len(),
            tree.packages.len()
        );
    } else {
        println!("tidy: {count} violations");
    }
    Ok(count == 0)
}
