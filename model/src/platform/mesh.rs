//! Rules of a mesh of tiles with local memories.
//!
//! Why it exists: such a platform has other parts than one with caches, and every tile has the same kind. What it deliberately does not
//! know: what the rules are for; the machine says that.

use super::PAGE;
use super::{Clock, Platform, PlatformKind, Topology};
use crate::error::{Diagnostic, Problem};
use crate::node::Node;
use crate::units::Size;
use serde::Serialize;

/// Minimum bytes of a bank: the longest line that a hart can fetch.
const BANK_MIN: u64 = 128;

/// A local memory. The latency is in cycles of `clock`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct LocalMemory {
    /// Name.
    pub name: String,
    /// Its clock.
    pub clock: Clock,
    /// Bytes.
    pub size: Size,
    /// Banks of consecutive bytes.
    pub banks: u32,
    /// Ports per bank: 1 for both hart and network, or 2.
    pub ports: u32,
    /// Bytes that a port moves per cycle.
    pub width: u32,
    /// From the turn of a network request to its answer.
    pub latency: u32,
    /// Bytes of an instruction fetch.
    pub fetch: u32,
    /// Rules of the guard that checks requests of other tiles; 0: no guard.
    pub guard: u32,
}

/// Reports every rule broken by `platform`, read from `root`.
pub fn check(platform: &Platform, root: &Node, errors: &mut Vec<Diagnostic>) {
    let mesh = platform.kind == PlatformKind::Mesh;
    for node in root.all("tile") {
        tile(mesh, node, errors);
    }
    for node in root.all("local-memory") {
        local_memory(node, errors);
    }
    network(mesh, platform, root, errors);
    if mesh && let Some(second) = root.all("memory").nth(1) {
        errors.push(Diagnostic::new(
            Problem::Inconsistent("a mesh has at most one external memory".into()),
            &second.span,
            "remove this <memory>",
        ));
    }
}

fn tile(mesh: bool, node: &Node, errors: &mut Vec<Diagnostic>) {
    let id = node.integer("id");
    let mut wrong = |cause: String, attribute: &str, help: &str| {
        let place = node.place(attribute);
        errors.push(Diagnostic::new(Problem::Inconsistent(cause), place, help));
    };
    let has = |attribute: &str| node.maybe_text(attribute).is_some();
    if !mesh {
        if has("local-memory") {
            wrong(
                format!("tile {id} has a local memory, but the platform is not a mesh"),
                "local-memory",
                "remove local-memory=\"...\", or write kind=\"mesh\"",
            );
        }
        if has("dma") {
            wrong(
                format!("tile {id} has a DMA engine, but the platform is not a mesh"),
                "dma",
                "remove dma=\"...\", or write kind=\"mesh\"",
            );
        }
        for attribute in ["clock-offset", "clock-drift"] {
            if node.gives(attribute) {
                wrong(
                    format!("tile {id} has a clock of its own, but the platform is not a mesh"),
                    attribute,
                    "remove it, or write kind=\"mesh\"",
                );
            }
        }
        for cache in ["l1i", "l1d"] {
            if !has(cache) {
                errors.push(Diagnostic::new(
                    Problem::MissingAttribute {
                        attribute: cache.into(),
                        element: "tile".into(),
                    },
                    &node.span,
                    format!("add {cache}=\"...\": a tile without a local memory has caches"),
                ));
            }
        }
        return;
    }
    if !has("local-memory") {
        wrong(
            format!("tile {id} has no local memory, but the platform is a mesh"),
            "id",
            "add local-memory=\"...\", or write kind=\"bare\" and name its caches",
        );
    }
    for part in ["l1i", "l1d", "l2", "network-card"] {
        if has(part) {
            wrong(
                format!(
                    "tile {id} has {part}, but a tile of a mesh has only a hart and a local memory"
                ),
                part,
                "remove it",
            );
        }
    }
    if node.integer("harts") != 1 {
        wrong(
            format!("tile {id} has several harts, but a tile of a mesh has one"),
            "harts",
            "remove harts=\"...\"",
        );
    }
}

fn local_memory(node: &Node, errors: &mut Vec<Diagnostic>) {
    let (size, banks) = (node.size("size").0, node.integer("banks"));
    let mut wrong = |cause: String, attribute: &str, help: String| {
        let what = format!("local-memory `{}`", node.text("name"));
        let problem = Problem::Geometry { what, cause };
        errors.push(Diagnostic::new(problem, node.place(attribute), help));
    };
    if !size.is_multiple_of(PAGE) {
        let page = Size(PAGE);
        wrong(
            format!("{} is not a whole number of pages", Size(size)),
            "size",
            format!("write a multiple of {page}"),
        );
    } else if !size.is_multiple_of(banks)
        || !(size / banks).is_power_of_two()
        || size / banks < BANK_MIN
    {
        wrong(
            format!(
                "{} in {banks} banks: the size of a bank is not a power of two, or too small",
                Size(size)
            ),
            "banks",
            format!("the size of a bank must be a power of two, at least {BANK_MIN}B"),
        );
    }
}

fn network(mesh: bool, platform: &Platform, root: &Node, errors: &mut Vec<Diagnostic>) {
    let Some(node) = root.child("network") else {
        return;
    };
    let mut wrong = |cause: &str, attribute: &str, help: &str| {
        let problem = Problem::Inconsistent(cause.into());
        errors.push(Diagnostic::new(problem, node.place(attribute), help));
    };
    let acknowledged = platform.network.read_interval.is_some();
    if mesh && !matches!(platform.network.topology, Topology::Mesh { .. }) {
        wrong(
            "the platform is a mesh, but its network is not",
            "topology",
            "write topology=\"mesh\" with its columns and rows",
        );
    }
    if mesh && !acknowledged {
        wrong(
            "a mesh of local memories needs a network for acknowledgements",
            "channels",
            "write channels=\"acknowledged\"",
        );
    }
    if !mesh && acknowledged {
        wrong(
            "channels=\"acknowledged\" is only for a mesh of local memories",
            "channels",
            "write channels=\"shared\" or channels=\"split\", or kind=\"mesh\" for the platform",
        );
    }
    // On a mesh, the message above is the right one.
    if !mesh && !acknowledged && node.integer("read-interval") != 1 {
        wrong(
            "read-interval is only for channels=\"acknowledged\"",
            "read-interval",
            "remove read-interval=\"...\", or write channels=\"acknowledged\"",
        );
    }
}
