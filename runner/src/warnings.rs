//! Arguments of descriptions that no source of their program mentions.
//!
//! Why it exists: a program takes a default for an argument that it does not find, so a misspelt name changes what it does and says nothing.
//! What it deliberately does not know: how programs are built, and what they do with arguments.

use crate::programs::{Library, Program};
use bulkhead_machine::image::Image;
use bulkhead_model::System;

/// Arguments whose names are neither in the sources of their programs, nor in those of the library, nor in constants of the programs, each
/// once. A program asks for an argument by its name, so these are probably misspelt. A program may put a number behind a name. Only programs
/// next to the description are examined.
pub fn unread(systems: &[&System], programs: &[Program], library: &Library) -> Vec<String> {
    let mut all: Vec<String> = Vec::new();
    let apps = systems.iter().flat_map(|system| &system.apps);
    for app in apps.filter(|app| !app.arguments.is_empty()) {
        let Some(texts) = library.sources(&app.program) else {
            continue;
        };
        let mut found = programs.iter().filter(|one| one.name == app.program);
        let Some(Ok(image)) = found.next().map(|one| Image::parse(&one.name, &one.elf)) else {
            continue;
        };
        for argument in &app.arguments {
            let stem = argument.name.trim_end_matches(|c: char| c.is_ascii_digit());
            let bytes = stem.as_bytes();
            let mut segments = image.segments.iter();
            let is_there = |data: &[u8]| data.windows(bytes.len()).any(|part| part == bytes);
            if stem.is_empty()
                || texts.iter().any(|text| text.contains(stem))
                || segments.any(|one| is_there(&one.data))
            {
                continue;
            }
            let text = format!(
                "warning: `{}` has the argument `{}`, but no source of its program {} has that name, so it cannot read the argument; check the spelling",
                app.name, argument.name, app.program
            );
            if !all.contains(&text) {
                all.push(text);
            }
        }
    }
    all
}
