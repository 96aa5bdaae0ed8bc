//! `bulkhead new`.

use super::{Outcome, say};
use bulkhead_runner::{new, place};
use std::path::Path;

/// Makes the application.
pub fn new(folder: &Path) -> Outcome {
    for path in new::create(folder, &place::root()?)? {
        say(&format!("made {}", path.display()));
    }
    println!(
        "run it: bulkhead run {}",
        folder.join("system.xml").display()
    );
    Ok(0)
}
