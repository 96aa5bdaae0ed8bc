//! What a builder says about a program that it built, and about arguments that a program cannot read.
//!
//! Why it exists: a warning is often the first hint at a mistake that shows on the chip only later. What it deliberately does not know: how
//! programs are built.

use crate::programs::Program;
use bulkhead_machine::image::Image;
use bulkhead_model::System;

/// Arguments of the descriptions whose names are in no constant of their programs, each once. A program asks for an argument by its name,
/// so it hardly asks for these: their names are probably misspelt. A compiler may turn the comparison with a short text into one with a
/// number, so this is a warning and no error.
pub fn unread(systems: &[&System], programs: &[Program]) -> Vec<String> {
    let mut all: Vec<String> = Vec::new();
    let peers = systems.iter().filter_map(|system| system.peer.as_ref());
    let peers = peers.map(|peer| &*peer.system);
    let chips = systems.iter().copied().chain(peers);
    let apps = chips.flat_map(|system| &system.apps);
    for app in apps.filter(|app| !app.arguments.is_empty()) {
        let mut found = programs.iter().filter(|one| one.name == app.program);
        let Some(Ok(image)) = found.next().map(|one| Image::parse(&one.name, &one.elf)) else {
            continue;
        };
        let constants: Vec<&[u8]> = image.segments.iter().map(|one| &*one.data).collect();
        for argument in &app.arguments {
            if may_read(&constants, &argument.name) {
                continue;
            }
            let text = format!(
                "warning: `{}` has the argument `{}`, but its program {} does not contain that name, so it probably does not read the argument; check the spelling",
                app.name, argument.name, app.program
            );
            if !all.contains(&text) {
                all.push(text);
            }
        }
    }
    all
}

/// Whether a program with these constants contains all words of an argument's name. Programs put some names together, such as
/// `files-patience-0` of a service, a word and a priority; so each word is looked for alone, and numbers are not.
fn may_read(constants: &[&[u8]], name: &str) -> bool {
    let words = name.split('-');
    let words = words.map(|word| word.trim_end_matches(|c: char| c.is_ascii_digit()));
    words.filter(|word| !word.is_empty()).all(|word| {
        let mut all = constants.iter().flat_map(|data| data.windows(word.len()));
        all.any(|part| part == word.as_bytes())
    })
}

#[cfg(test)]
mod tests {
    use super::may_read;

    #[test]
    fn names_that_a_program_puts_together_are_found() {
        let constants: [&[u8]; 2] = [b"..files..patience..", b"quota-"];
        for name in ["patience", "files-patience-0", "quota-12", "quota", "7"] {
            assert!(may_read(&constants, name), "{name}");
        }
        for name in ["patiense", "files-patiense-0", "qouta-1"] {
            assert!(!may_read(&constants, name), "{name}");
        }
    }
}
