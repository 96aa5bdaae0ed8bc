//! `bulkhead new`.

use super::{Outcome, say};
use crate::arguments::{Language, Paradigm};
use bulkhead_runner::{new, place};
use std::path::Path;

/// Makes the application.
pub fn new(folder: &Path, language: Language, tiles: u8, paradigm: Option<Paradigm>) -> Outcome {
    let language = match language {
        Language::Rust => new::Language::Rust,
        Language::C => new::Language::C,
        Language::Ada => new::Language::Ada,
    };
    let kind = match (paradigm, tiles) {
        (Some(Paradigm::OneShot), _) => new::Kind::OneShot,
        (_, 2) => new::Kind::Two,
        _ => new::Kind::One,
    };
    for path in new::create(folder, &place::root()?, language, kind)? {
        say(&format!("made {}", path.display()));
    }
    // The way the command was called: by the launcher, or from a folder on the shell's path.
    let called = std::env::var("BULKHEAD_CALLED").unwrap_or_else(|_| "bulkhead".to_owned());
    say(&format!(
        "run it: {called} run {}",
        place::shell_word(folder)
    ));
    Ok(0)
}
