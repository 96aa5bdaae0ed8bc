//! From a `<system paradigm="one-shot">` to its tasks.
//!
//! Why it exists and what it does not know: see the parent module. Rules are in `check`.

use super::{Handlers, OneShot, Program, TICK, check};
use crate::error::Diagnostic;
use crate::node::Node;
use crate::platform::{Platform, PlatformKind};
use crate::programs::Programs;
use crate::system::System;
use crate::tasks;
use crate::tree::{Attribute, Element};
use std::collections::BTreeSet;

/// Reads and checks the system. `None` if something is wrong; then `errors` says what. If `open`, tasks may lack cores and priorities, and
/// what depends on cores is not checked.
pub(crate) fn read(
    element: &Element,
    node: &Node,
    platform: Platform,
    (programs, open): (Option<&dyn Programs>, bool),
    errors: &mut Vec<Diagnostic>,
) -> Option<System> {
    let before = errors.len();
    check::elements(element, node, errors);
    check::platform(&platform, node, errors);
    if errors.len() > before || platform.kind != PlatformKind::Mesh {
        return None;
    }
    let nodes: Vec<&Node> = node.all("task").collect();
    check::tasks(node, &nodes, (programs, open), errors);
    if nodes.is_empty() {
        return None;
    }
    let tasks = tasks::read(&as_task_system(element, &platform), errors)?;
    let one_shot = OneShot {
        programs: nodes.iter().map(|node| program(node)).collect(),
        tasks,
        host: node.maybe_integer("host").map(|tile| tile as u16),
        duration: node.time("duration"),
        unstated: BTreeSet::new(),
    };
    check::check(&one_shot, node, errors);
    check::host(&one_shot, &platform, (node, open), errors);
    if !open {
        check::ports(&one_shot, node, errors);
        check::domains(&one_shot, node, errors);
        check::guards(&one_shot, &platform, node, errors);
    }
    if errors.len() > before {
        return None;
    }
    Some(System {
        name: node.text("name"),
        about: node.maybe_text("about"),
        duration: node.time("duration"),
        // The tile that represents the chip.
        kernel_tile: platform.tiles.first().map_or(0, |tile| tile.id),
        platform,
        managers: Vec::new(),
        domains: Vec::new(),
        apps: Vec::new(),
        tilemux: Vec::new(),
        modules: Vec::new(),
        cables: Vec::new(),
        peer: None,
        flows: Vec::new(),
        one_shot: Some(one_shot),
        bare: None,
        variant: None,
        variant_about: None,
        misses_expected: false,
        variants: Vec::new(),
    })
}

fn program(node: &Node) -> Program {
    Program {
        name: node.maybe_text("program").unwrap_or_default(),
        stack: node.maybe_size("stack"),
        image: node.maybe_size("image"),
        domain: node.maybe_text("domain"),
        is_sporadic: node
            .maybe_text("arrivals")
            .is_some_and(|one| one == "sporadic"),
        handlers: node.maybe_time("handlers").map(|cost| Handlers {
            cost,
            apart: node.maybe_time("handlers-apart").unwrap_or(TICK),
        }),
    }
}

/// The same tasks, channels and flows as a task system whose processors are the tiles. Everything keeps its place in the file.
fn as_task_system(element: &Element, platform: &Platform) -> Element {
    let attribute = |name: &str, value: String| Attribute {
        name: name.to_owned(),
        value,
        name_span: element.span.clone(),
        value_span: element.span.clone(),
    };
    let tiles = platform.tiles.iter();
    let last = tiles.clone().map(|tile| tile.id).max().unwrap_or(0);
    let clock = tiles.map(|tile| tile.pipeline.clock.frequency.0).max();
    let processors = Element {
        name: "processors".to_owned(),
        span: element.span.clone(),
        attributes: vec![
            attribute("count", (u32::from(last) + 1).to_string()),
            attribute("policy", "one-shot".to_owned()),
            attribute("frequency", format!("{}Hz", clock.unwrap_or(1))),
        ],
        children: Vec::new(),
        text: None,
    };
    let parts = element.children.iter().cloned();
    let parts = parts.filter(|child| matches!(&*child.name, "task" | "channel" | "flow"));
    let parts = parts.map(|mut part| {
        // Attributes that only a system's task has.
        part.attributes
            .retain(|one| !super::OWN.contains(&&*one.name));
        part
    });
    let named = |one: &&Attribute| matches!(&*one.name, "name" | "about");
    Element {
        name: "task-system".to_owned(),
        span: element.span.clone(),
        attributes: element.attributes.iter().filter(named).cloned().collect(),
        children: std::iter::once(processors).chain(parts).collect(),
        text: None,
    }
}
