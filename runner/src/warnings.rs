//! What a builder says about a program that it built, and about arguments that a program cannot read.
//!
//! Why it exists: a warning is often the first hint at a mistake that shows on the chip only later. What it deliberately does not know: how
//! programs are built.

use crate::programs::Program;
use bulkhead_machine::image::Image;
use bulkhead_model::System;

/// Arguments of the descriptions whose names are in no constant of their programs, each once. A program asks for an argument by its name,
/// so it cannot ask for these: their names are probably misspelt.
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
        for argument in &app.arguments {
            let name = argument.name.as_bytes();
            let mut segments = image.segments.iter();
            if segments.any(|one| one.data.windows(name.len().max(1)).any(|part| part == name)) {
                continue;
            }
            let text = format!(
                "warning: `{}` has the argument `{}`, but its program {} does not contain that name, so it cannot read the argument; check the spelling",
                app.name, argument.name, app.program
            );
            if !all.contains(&text) {
                all.push(text);
            }
        }
    }
    all
}
