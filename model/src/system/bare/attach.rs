//! Peripherals of programs without a kernel.
//!
//! Why it exists and what it does not know: see the parent module. A peripheral has one program, because its windows are those of that
//! program's memory: another one could make it write there.

use super::Attached;
use super::check::wrong;
use crate::error::{Diagnostic, Problem};
use crate::node::Node;
use crate::platform::{PeripheralKind, Platform};
use crate::programs::{HostKind, Programs, check_host_file};

/// The peripherals of each application.
pub(super) fn attach(
    platform: &Platform,
    nodes: &[&Node],
    programs: Option<&dyn Programs>,
    errors: &mut Vec<Diagnostic>,
) -> Vec<Vec<Attached>> {
    let mut taken: Vec<(u16, String)> = Vec::new();
    let of = |app: &&Node| {
        let all = app.all("attach");
        let found = all.filter_map(|node| one(platform, (app, node), programs, &mut taken, errors));
        found.collect()
    };
    nodes.iter().map(of).collect()
}

fn one(
    platform: &Platform,
    (app, node): (&Node, &Node),
    programs: Option<&dyn Programs>,
    taken: &mut Vec<(u16, String)>,
    errors: &mut Vec<Diagnostic>,
) -> Option<Attached> {
    let name = node.text("peripheral");
    let mut all = platform.peripherals.iter();
    let Some(peripheral) = all.find(|one| one.name == name) else {
        let known: Vec<&str> = platform.peripherals.iter().map(|one| &*one.name).collect();
        errors.push(Diagnostic::new(
            Problem::Unknown {
                kind: "peripheral",
                name,
            },
            node.place("peripheral"),
            match known.is_empty() {
                true => "the platform has no <peripheral>".to_owned(),
                false => format!("the platform has {}", known.join(", ")),
            },
        ));
        return None;
    };
    if let Some((_, other)) = taken.iter().find(|(id, _)| *id == peripheral.id) {
        errors.push(wrong(
            format!("the peripheral `{name}` belongs to `{other}` already"),
            node.place("peripheral"),
            "remove one <attach>: a peripheral belongs to one program and reaches only its memory",
        ));
        return None;
    }
    let file = node.maybe_text("file");
    if file.is_some() && !matches!(peripheral.kind, PeripheralKind::Storage { .. }) {
        errors.push(wrong(
            format!("the peripheral `{name}` has no blocks for a file"),
            node.place("file"),
            "remove it: only kind=\"storage\" has contents",
        ));
        return None;
    }
    if let Some(file) = &file {
        check_host_file(programs, (node, "file"), (file, HostKind::File), errors);
    }
    taken.push((peripheral.id, app.text("name")));
    Some(Attached {
        peripheral: peripheral.id,
        file,
    })
}
