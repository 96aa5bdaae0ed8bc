//! Tightly coupled memories: their addresses and rules.
//!
//! Why it exists: they are local memories of tiles that have caches, too. What it deliberately does not know: what the rules are for; the
//! machine says that. Banks and sizes of all local memories are in `mesh`.

use super::{PAGE, PipelineModel, Platform, PlatformKind, Tile};
use crate::error::{Diagnostic, Problem};
use crate::node::Node;
use crate::units::Size;
use bulkhead_abi::memory_map::{TCM_BASE, TCM_WINDOW, TCM_WINDOWS};

/// Maximum number of such memories of a tile.
const MOST: usize = 2;

impl Tile {
    /// Bytes of its tightly coupled memories together.
    pub fn tcm_bytes(&self) -> u64 {
        self.tcm.iter().map(|memory| memory.size.0).sum()
    }
}

impl Platform {
    /// The first address of a tile's tightly coupled memories, for all harts and engines of the chip; `None`: it has none.
    pub fn tcm_base(&self, id: u16) -> Option<u64> {
        let mut with = self.tiles.iter().filter(|tile| !tile.tcm.is_empty());
        let place = with.position(|tile| tile.id == id)?;
        Some(TCM_BASE + place as u64 * TCM_WINDOW)
    }
}

/// Reports every rule broken by `platform`, read from `root`.
pub fn check(platform: &Platform, root: &Node, errors: &mut Vec<Diagnostic>) {
    for node in root.all("tile").filter(|node| node.gives("tcm")) {
        let id = node.integer("id");
        let Some(tile) = platform.tiles.iter().find(|tile| u64::from(tile.id) == id) else {
            continue;
        };
        let wrong = broken(platform, tile, node);
        errors.extend(wrong.map(|(cause, help)| {
            let problem = Problem::Inconsistent(format!("tile {id}: {cause}"));
            Diagnostic::new(problem, node.place("tcm"), help)
        }));
    }
    let with = platform.tiles.iter().filter(|tile| !tile.tcm.is_empty());
    let all = with.count() as u64;
    if let Some(node) = root.all("tile").find(|node| node.gives("tcm"))
        && all > TCM_WINDOWS
    {
        errors.push(Diagnostic::new(
            Problem::Inconsistent(format!("{all} tiles have tightly coupled memories")),
            node.place("tcm"),
            format!("at most {TCM_WINDOWS} tiles can have tightly coupled memories"),
        ));
    }
}

/// The mistake in the memories of a tile, and its remedy.
fn broken(platform: &Platform, tile: &Tile, node: &Node) -> Option<(String, String)> {
    if platform.kind != PlatformKind::Bare {
        let cause = "it has tightly coupled memories, but the platform is not bare";
        let help = "remove it, or write kind=\"bare\" at the platform; on a mesh, write local-memory=\"...\"";
        return Some((cause.into(), help.into()));
    }
    if node.gives("cluster") || node.gives("network-card") {
        let cause = "tightly coupled memories belong to a tile with one hart and no network card";
        return Some((cause.into(), "remove it, or the cluster or card".into()));
    }
    if tile.pipeline.model == PipelineModel::Interval {
        let cause = "tightly coupled memories need an in-order hart";
        return Some((
            cause.into(),
            "name a pipeline with model=\"inorder\"".into(),
        ));
    }
    let (count, bytes) = (tile.tcm.len(), tile.tcm_bytes());
    if !(1..=MOST).contains(&count) {
        let cause = format!("it cannot have {count} tightly coupled memories");
        return Some((cause, format!("write one or {MOST} names")));
    }
    if bytes > TCM_WINDOW {
        let cause = format!(
            "it cannot have tightly coupled memories of {} in all",
            Size(bytes)
        );
        return Some((cause, format!("a tile has at most {}", Size(TCM_WINDOW))));
    }
    if let Some(memory) = tile.tcm.iter().find(|memory| memory.guard != 0) {
        let cause = format!("the tightly coupled memory `{}` has a guard", memory.name);
        return Some((
            cause,
            "remove guard=\"...\": every part of the chip reaches it".into(),
        ));
    }
    let narrow = |bank: u64| bank < PAGE;
    let bank = |memory: &super::LocalMemory| memory.size.0 / u64::from(memory.banks);
    if let Some(memory) = tile.tcm.iter().find(|memory| narrow(bank(memory))) {
        let cause = format!(
            "the tightly coupled memory `{}` has banks of {}",
            memory.name,
            Size(bank(memory))
        );
        return Some((
            cause,
            format!("give it fewer banks: one has at least {}", Size(PAGE)),
        ));
    }
    None
}
