//! Arguments of descriptions that their programs do not mention.
//!
//! Why it exists: a program takes a default for an argument that it does not find, so a misspelt name silently changes its behaviour. What
//! it deliberately does not know: how programs are built, and what they do with arguments.

use crate::programs::Program;
use bulkhead_machine::image::Image;
use bulkhead_model::System;

/// Arguments whose names are neither in constants of their programs nor in the programs' own sources, each once. A program asks for an
/// argument by its name, so these are probably misspelt. `sources`: the texts of a program's sources, if it is the user's own; others are not
/// examined.
pub fn unread(
    systems: &[&System],
    programs: &[Program],
    sources: impl Fn(&str) -> Option<Vec<String>>,
) -> Vec<String> {
    let mut all: Vec<String> = Vec::new();
    let apps = systems.iter().flat_map(|system| &system.apps);
    for app in apps.filter(|app| !app.arguments.is_empty()) {
        let Some(texts) = sources(&app.program) else {
            continue;
        };
        let mut found = programs.iter().filter(|one| one.name == app.program);
        let Some(Ok(image)) = found.next().map(|one| Image::parse(&one.name, &one.elf)) else {
            continue;
        };
        let mut places: Vec<&[u8]> = image.segments.iter().map(|one| &*one.data).collect();
        // A compiler may turn a comparison with a short text into one with a number.
        places.extend(texts.iter().map(String::as_bytes));
        for argument in &app.arguments {
            if mention(&places, &argument.name) {
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

/// Whether these places contain all words of an argument's name. Programs put some names together, such as `files-patience-0` of a service,
/// a word and a priority; so each word is looked for alone, and numbers are not.
fn mention(places: &[&[u8]], name: &str) -> bool {
    let words = name.split('-');
    let words = words.map(|word| word.trim_end_matches(|c: char| c.is_ascii_digit()));
    words.filter(|word| !word.is_empty()).all(|word| {
        let mut all = places.iter().flat_map(|data| data.windows(word.len()));
        all.any(|part| part == word.as_bytes())
    })
}

#[cfg(test)]
mod tests {
    use super::mention;

    #[test]
    fn names_that_a_program_puts_together_are_found() {
        let places: [&[u8]; 2] = [b"..files..patience..", b"quota-"];
        for name in ["patience", "files-patience-0", "quota-12", "quota", "7"] {
            assert!(mention(&places, name), "{name}");
        }
        for name in ["patiense", "files-patiense-0", "qouta-1"] {
            assert!(!mention(&places, name), "{name}");
        }
    }
}
