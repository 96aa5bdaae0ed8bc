//! Which program runs under a name, and where in its sources a program counter is.
//!
//! Why it exists: incidents name applications and addresses; a reader wants functions, files and lines. What it deliberately does not
//! know: what happened.

use crate::paradigm::Paradigm;
use crate::programs::{Program, source};
use bulkhead_machine::image::{Location, Resolver};
use bulkhead_model::System;

/// The name in incidents of the first of [`Paradigm::programs`].
const KERNEL: &str = "kernel";

/// Sources of the compiler and of third-party packages, as [`source`] names them.
const OTHERS: [&str; 3] = ["/", "cargo/", "library/"];

/// The chip's own libraries and operating systems, as [`source`] names them in programs of the checkout and in those of users.
const OURS: [&str; 2] = ["software/", "bulkhead/software/"];

/// Whether a file is one of a program's own sources.
pub fn is_own(file: &str) -> bool {
    let mut others = OTHERS.iter().chain(&OURS);
    !others.any(|others| file.starts_with(others))
}

/// The program of an application, a manager or the kernel; `None` for activities that only their creator knows.
pub fn program_of<'p>(
    paradigm: &dyn Paradigm,
    system: &System,
    programs: &'p [Program],
    name: &str,
) -> Option<&'p Program> {
    let apps = system.apps.iter().map(|app| (&app.name, &*app.program));
    let managers = system.managers.iter();
    let managers = managers.map(|manager| (&manager.name, &*manager.program));
    let mut all = apps.chain(managers);
    let program = match all.find(|one| one.0 == name) {
        Some((_, program)) => program.to_owned(),
        None if name == KERNEL => (*paradigm.programs(system).first()?).to_owned(),
        None => paradigm.image_of(system, name)?,
    };
    programs.iter().find(|one| one.name == program)
}

/// Where in the source a program counter is. Of functions inlined into each other, the innermost that belongs neither to the compiler
/// nor to a third-party package; then the function that contains them.
pub fn place_of(program: &Program, pc: u64) -> String {
    let resolver = Resolver::new(&program.elf);
    let named = |mut place: Location| {
        place.file = place.file.map(|file| source(&file).to_owned());
        place
    };
    let place = named(resolver.resolve(pc));
    let frames: Vec<Location> = resolver.inlined(pc).into_iter().map(named).collect();
    let own = frames.iter().position(|frame| {
        let file = frame.file.as_deref();
        file.is_some_and(|file| !OTHERS.iter().any(|others| file.starts_with(others)))
    });
    match (own, &place.function) {
        // The last frame is the function itself.
        (Some(own), Some((outer, _))) if own + 1 < frames.len() => {
            format!("{}, inlined into {outer}", frames[own])
        }
        (Some(own), _) => Location {
            function: place.function,
            ..frames[own].clone()
        }
        .to_string(),
        _ => place.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_library_is_nobodys_own_source() {
        for file in ["src/main.rs", "main.c", "workloads/control/src/sensor.rs"] {
            assert!(is_own(file), "{file}");
        }
        for file in [
            "software/lib/src/gate.rs",
            "bulkhead/software/hal/user/src/heap.rs",
            "library/core/src/panicking.rs",
            "cargo/registry/src/index/heapless/src/vec.rs",
        ] {
            assert!(!is_own(file), "{file}");
        }
    }
}
