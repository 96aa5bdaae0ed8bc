//! Which programs without a kernel may interrupt which others.
//!
//! Why it exists and what it does not know: see the parent module. The description says who may ring whom; the program that is rung for says
//! itself whom it hears, and when.

use super::check::wrong;
use crate::error::{Diagnostic, Problem};
use crate::node::Node;
use crate::platform::Platform;

/// For each application, those whose harts it may ring, by their places.
pub(super) fn rings(
    platform: &Platform,
    nodes: &[&Node],
    errors: &mut Vec<Diagnostic>,
) -> Vec<Vec<usize>> {
    let names: Vec<String> = nodes.iter().map(|app| app.text("name")).collect();
    let mut of = |app: &&Node| {
        let Some(text) = app.maybe_text("rings") else {
            return Vec::new();
        };
        if platform.doorbells.is_none() {
            errors.push(wrong(
                "the platform has no <doorbells>",
                app.place("rings"),
                "remove it, or add <doorbells> to a platform of your own: programs can poll a word of memory",
            ));
            return Vec::new();
        }
        let mut found = Vec::new();
        for name in text.split_whitespace() {
            match names.iter().position(|one| one == name) {
                Some(place) if found.contains(&place) => {}
                Some(place) => found.push(place),
                None => errors.push(Diagnostic::new(
                    Problem::Unknown {
                        kind: "application",
                        name: name.to_owned(),
                    },
                    app.place("rings"),
                    format!("write names of applications: {}", names.join(", ")),
                )),
            }
        }
        found
    };
    nodes.iter().map(&mut of).collect()
}
