//! Rules of a cluster of harts.
//!
//! Why it exists: a tile with a cluster has other parts than one with a single hart. What it deliberately does not know: what the rules
//! are for; the machine says that.

use super::{Platform, PlatformKind};
use crate::error::{Diagnostic, Problem};
use crate::node::Node;

/// Reports every rule broken by the clusters of `platform`, read from `root`.
pub fn check(platform: &Platform, root: &Node, errors: &mut Vec<Diagnostic>) {
    for node in root.all("cluster") {
        let banks = node.integer("banks");
        if !banks.is_power_of_two() {
            errors.push(Diagnostic::new(
                Problem::Inconsistent(format!("a second level of {banks} banks")),
                node.place("banks"),
                "write a power of two, such as 2",
            ));
        }
    }
    for node in root.all("cluster") {
        partitions(node, errors);
    }
    for node in root.all("tile") {
        if node.maybe_text("cluster").is_some() {
            tile(platform, root, node, errors);
        }
    }
}

/// Each hart has at most one partition.
fn partitions(cluster: &Node, errors: &mut Vec<Diagnostic>) {
    let mut seen = Vec::new();
    for node in cluster.all("partition") {
        let (hart, harts) = (node.integer("hart"), cluster.integer("harts"));
        let cause = if hart >= harts {
            format!("a partition of hart {hart} of {harts}")
        } else if seen.contains(&hart) {
            format!("two partitions of hart {hart}")
        } else {
            seen.push(hart);
            continue;
        };
        errors.push(Diagnostic::new(
            Problem::Inconsistent(cause),
            node.place("hart"),
            "write one <partition> for each hart that is limited; harts are numbered from 0",
        ));
    }
}

/// Partitions name ways that the second level has.
fn ways(root: &Node, tile: &Node, errors: &mut Vec<Diagnostic>) {
    let named = |element, attribute| {
        let name = tile.maybe_text(attribute)?;
        let mut all = root.all(element);
        all.find(|node| node.text("name") == name)
    };
    let (Some(cluster), Some(l2)) = (named("cluster", "cluster"), named("cache", "l2")) else {
        return;
    };
    for node in cluster.all("partition") {
        let (first, ways, there) = (
            node.integer("first"),
            node.integer("ways"),
            l2.integer("ways"),
        );
        if first + ways > there {
            let last = first + ways - 1;
            errors.push(Diagnostic::new(
                Problem::Inconsistent(format!(
                    "a partition of the ways {first} to {last} of cache `{}`, which has {there}",
                    l2.text("name")
                )),
                node.place("ways"),
                format!("ways are numbered from 0 to {}", there - 1),
            ));
        }
    }
}

fn tile(platform: &Platform, root: &Node, node: &Node, errors: &mut Vec<Diagnostic>) {
    ways(root, node, errors);
    let id = node.integer("id");
    let mut wrong = |cause: &str, attribute: &str, help: &str| {
        let cause = format!("tile {id} has a cluster, but {cause}");
        let place = node.place(attribute);
        errors.push(Diagnostic::new(Problem::Inconsistent(cause), place, help));
    };
    if platform.kind != PlatformKind::Bare {
        wrong(
            "the platform is not bare",
            "cluster",
            "remove cluster=\"...\", or write kind=\"bare\" at the platform",
        );
    }
    if platform.tiles.len() != 1 || platform.memories.len() != 1 {
        wrong(
            "the chip has another processing tile or not one memory tile",
            "cluster",
            "keep one <tile> and one <memory>",
        );
    }
    if node.maybe_text("l2").is_none() {
        wrong(
            "no second level for its harts",
            "cluster",
            "add l2=\"...\": the harts share it",
        );
    }
    if node.integer("harts") != 1 {
        wrong(
            "harts of its own, too",
            "harts",
            "remove harts=\"...\": the <cluster> says how many there are",
        );
    }
    if node.maybe_text("network-card").is_some() {
        wrong(
            "a network card, which only a tile with one hart can have",
            "network-card",
            "remove it",
        );
    }
    let pipeline = node.text("pipeline");
    let mut pipelines = root.all("pipeline");
    if let Some(pipeline) = pipelines.find(|other| other.text("name") == pipeline)
        && pipeline.boolean("hardware-ad")
    {
        errors.push(Diagnostic::new(
            Problem::Inconsistent(format!(
                "tile {id} has a cluster, but the page-table walker of its harts sets accessed and dirty bits"
            )),
            pipeline.place("hardware-ad"),
            "write hardware-ad=\"false\": a walker reads shared lines, and a trap sets the bits",
        ));
    }
}
