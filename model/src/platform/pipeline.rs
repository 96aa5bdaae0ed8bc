//! Rules of pipelines: which attributes belong to which model, and where a model is allowed.
//!
//! What it deliberately does not know: what the attributes mean.

use super::{Platform, PlatformKind};
use crate::error::{Diagnostic, Problem};
use crate::node::Node;

/// Attributes of the model `interval`.
const BOUNDS: [&str; 6] = [
    "width",
    "window",
    "store-queue",
    "alus",
    "memory-ports",
    "float-units",
];

/// Reports every rule broken by the pipelines of `platform`, read from `root`.
pub fn check(platform: &Platform, root: &Node, errors: &mut Vec<Diagnostic>) {
    for node in root.all("pipeline") {
        let mut wrong = |cause: String, attribute: &str, help: &str| {
            errors.push(Diagnostic::new(
                Problem::Geometry {
                    what: format!("pipeline `{}`", node.text("name")),
                    cause,
                },
                node.place(attribute),
                help,
            ));
        };
        let interval = node.text("model") == "interval";
        let given = |attribute: &&&str| node.maybe_integer(attribute).is_some();
        if interval {
            let missing: Vec<&str> = BOUNDS.iter().filter(|one| !given(one)).copied().collect();
            if !missing.is_empty() {
                wrong(
                    format!("the model `interval` needs {}", missing.join(", ")),
                    "model",
                    "write them with their sources; see the reference of pipelines",
                );
            }
            if platform.kind == PlatformKind::Mesh {
                wrong(
                    "a chip of local memories needs in-order pipelines, because its analyses assume them".into(),
                    "model",
                    "write model=\"inorder\"",
                );
            }
            continue;
        }
        if let Some(one) = BOUNDS.iter().find(given) {
            wrong(
                format!("only the model `interval` has a {one}"),
                one,
                "remove it, or write model=\"interval\" with all of its attributes",
            );
        }
        if node.integer("load-buffer") > 16 {
            wrong(
                format!(
                    "an in-order pipeline cannot have {} loads under way",
                    node.integer("load-buffer")
                ),
                "load-buffer",
                "write 16 at most",
            );
        }
    }
}
