//! How deep managers may be nested.
//!
//! Why it exists: every activity is created by its manager, and the kernel follows creators only to a limited depth; without these
//! rules, the chip would refuse in the middle of a start. What it deliberately does not know: whether what is below a manager keeps
//! its limits; `tree` knows that.

use crate::error::{Diagnostic, Problem};
use crate::system::System;
use crate::system::check::Places;
use bulkhead_abi::syscall::LINEAGE_MAX;

/// Reports the first activity of a chain that the kernel would not create.
pub fn check(system: &System, places: &Places<'_>, errors: &mut Vec<Diagnostic>) {
    // The root manager is the first of every chain.
    let length = |manager: Option<usize>| {
        let above = |&manager: &usize| system.managers[manager].parent;
        std::iter::successors(manager, above).count() + 1
    };
    let managers = system.managers.iter().zip(&places.managers);
    let managers = managers.map(|(m, node)| (&m.name, length(m.parent), *node));
    let apps = system.apps.iter().zip(&places.apps).enumerate();
    let apps = apps.map(|(i, (app, node))| (&app.name, length(Some(system.manager_of(i))), *node));
    let first = LINEAGE_MAX + 1;
    for (name, length, node) in managers.chain(apps).filter(|one| one.1 == first) {
        let what = format!(
            "`{name}` is number {length} in a chain in which each creates the next, and the kernel allows {LINEAGE_MAX}"
        );
        let help = "nest managers less deeply; the root manager is the first of the chain";
        let error = Diagnostic::new(Problem::Inconsistent(what), node.place("name"), help);
        errors.push(error);
    }
}
