//! DMA engines, and second ports of memories: data and rules.
//!
//! Why it exists: both are parts of the whole chip, not of a tile. What it deliberately does not know: what the rules are for; the machine
//! says that.

use super::{Clock, Memory, Platform, PlatformKind};
use crate::error::{Diagnostic, Problem};
use crate::node::Node;
use crate::units::Size;
use bulkhead_abi::memory_map::{DMA_BASE, DMA_ENGINES, DMA_SIZE};
use serde::Serialize;

/// A kind of DMA engine.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Dma {
    /// Name.
    pub name: String,
    /// Its clock.
    pub clock: Clock,
    /// Channels.
    pub channels: u32,
    /// Maximum outstanding accesses of a channel.
    pub outstanding: u32,
    /// From a start to the first access, in cycles of `clock`.
    pub startup: u32,
    /// Bytes of a burst; 0: each element is a separate access.
    #[serde(skip_serializing_if = "is_zero")]
    pub burst: u32,
    /// Bytes that each side moves in a cycle.
    #[serde(skip_serializing_if = "is_word")]
    pub width: u32,
}

fn is_zero(number: &u32) -> bool {
    *number == 0
}

fn is_word(bytes: &u32) -> bool {
    *bytes == 8
}

/// A DMA engine beside the tiles.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Engine {
    /// Number on the network.
    pub id: u16,
    /// Its kind.
    pub dma: Dma,
    /// From the arrival of an access to a register to its answer, in cycles of its clock.
    pub registers: u32,
    /// The tile that it interrupts.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub interrupts: Option<u16>,
    /// Router that it is attached to.
    pub router: u16,
    /// Its accesses are coherent with the caches of the coherent clusters.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub coherent: bool,
}

impl Platform {
    /// The bytes behind a memory: its own, or those of the memories whose second port it is, in their order. Each as a number and a size.
    pub fn behind(&self, memory: &Memory) -> Vec<(u16, u64)> {
        if memory.second_port_of.is_empty() {
            return vec![(memory.id, memory.size.0)];
        }
        let of = memory.second_port_of.iter();
        let of = of.filter_map(|id| self.memory(*id));
        of.map(|one| (one.id, one.size.0)).collect()
    }

    /// The first address of the registers of a DMA engine beside the tiles.
    pub fn engine_base(&self, id: u16) -> Option<u64> {
        let place = self.engines.iter().position(|engine| engine.id == id)?;
        Some(DMA_BASE + place as u64 * DMA_SIZE)
    }
}

/// Reports every rule broken by `platform`, read from `root`.
pub fn check(platform: &Platform, root: &Node, errors: &mut Vec<Diagnostic>) {
    let is_bare = platform.kind == PlatformKind::Bare;
    for node in root.all("dma") {
        let (burst, name) = (node.size("burst").0, node.text("name"));
        if burst != 0 && !burst.is_power_of_two() {
            let problem = Problem::Geometry {
                what: format!("dma `{name}`"),
                cause: format!("a burst of {burst} bytes is not a power of two"),
            };
            let help = "write a power of two, such as 128B, or remove it: each element is then a separate access";
            errors.push(Diagnostic::new(problem, node.place("burst"), help));
        }
        let used = root.all("engine").any(|engine| engine.text("dma") == name);
        if used && burst.max(8) > u64::from(platform.network.chunk) {
            errors.push(Diagnostic::new(
                Problem::Inconsistent(format!(
                    "dma `{name}`: a burst of {burst} bytes does not fit a chunk of the network of {}",
                    platform.network.chunk
                )),
                node.place("burst"),
                "use shorter bursts or larger chunks",
            ));
        }
        let of_tile = |tile: &&Node| tile.maybe_text("dma").is_some_and(|dma| dma == name);
        if let Some(tile) = root.all("tile").find(of_tile)
            && burst != 0
        {
            errors.push(Diagnostic::new(
                Problem::Inconsistent(format!(
                    "dma `{name}` of tile {} has bursts, but a mesh moves single elements",
                    tile.integer("id")
                )),
                node.place("burst"),
                "remove it",
            ));
        }
    }
    let mut count = 0;
    for node in root.all("engine") {
        count += 1;
        let id = node.integer("id");
        if !is_bare {
            errors.push(Diagnostic::new(
                Problem::Inconsistent(format!(
                    "engine {id} is beside the tiles, but the platform is not bare"
                )),
                node.place("id"),
                "write kind=\"bare\" at the platform; on a mesh, write dma=\"...\" at a <tile>",
            ));
        }
        if let Some(tile) = platform.engines.iter().find(|one| u64::from(one.id) == id)
            && let Some(tile) = tile.interrupts
            && !platform.tiles.iter().any(|one| one.id == tile)
        {
            errors.push(Diagnostic::new(
                Problem::Inconsistent(format!(
                    "engine {id} interrupts tile {tile}, which does not exist"
                )),
                node.place("interrupts"),
                "write the number of a <tile>, or remove it: software then polls the engine's registers",
            ));
        }
        if node.boolean("coherent") {
            coherent(root, node, errors);
        }
        if count == DMA_ENGINES + 1 {
            errors.push(Diagnostic::new(
                Problem::Inconsistent(format!("engine {id} is one of more than {DMA_ENGINES}")),
                node.place("id"),
                "remove it, or give another engine more channels",
            ));
        }
    }
    for node in root
        .all("memory")
        .filter(|node| node.gives("second-port-of"))
    {
        second_port(platform, node, is_bare, errors);
    }
}

/// A coherent engine has caches to be coherent with, and accesses of at most a line.
fn coherent(root: &Node, engine: &Node, errors: &mut Vec<Diagnostic>) {
    let (id, kind) = (engine.integer("id"), engine.text("dma"));
    let Some(line) = super::cluster::coherent_line(root) else {
        errors.push(Diagnostic::new(
            Problem::Inconsistent(format!(
                "engine {id} is coherent with caches, but no tile has a coherent cluster"
            )),
            engine.place("coherent"),
            "write coherent=\"true\" at the <cluster> of a tile, or remove it: programs then flush lines (cbo.flush) around transfers",
        ));
        return;
    };
    let mut kinds = root.all("dma");
    if let Some(dma) = kinds.find(|dma| dma.text("name") == kind)
        && dma.size("burst").0 > line
    {
        errors.push(Diagnostic::new(
            Problem::Inconsistent(format!(
                "dma `{kind}` has bursts of {}, which are longer than a line ({}), and engine {id} is coherent",
                dma.size("burst"),
                Size(line)
            )),
            dma.place("burst"),
            format!(
                "write {}: an engine asks the caches for one line at a time",
                Size(line)
            ),
        ));
    }
}

fn second_port(platform: &Platform, node: &Node, is_bare: bool, errors: &mut Vec<Diagnostic>) {
    let id = node.integer("id");
    let mut wrong = |cause: String, attribute: &str, help: String| {
        let problem = Problem::Inconsistent(format!("memory {id}: {cause}"));
        errors.push(Diagnostic::new(problem, node.place(attribute), help));
    };
    if !is_bare {
        return wrong(
            "`second-port-of` is only for bare platforms".into(),
            "second-port-of",
            "remove it, or write kind=\"bare\" at the platform".into(),
        );
    }
    let own = |one: &&Memory| one.second_port_of.is_empty();
    let known: Vec<String> = platform
        .memories
        .iter()
        .filter(own)
        .map(|one| one.id.to_string())
        .collect();
    let mut named = Vec::new();
    for name in node.text("second-port-of").split_whitespace() {
        if named.contains(&name) {
            return wrong(
                format!("memory `{name}` is named twice"),
                "second-port-of",
                "name each memory once".into(),
            );
        }
        named.push(name);
        if !known.iter().any(|one| one == name) {
            return wrong(
                format!("there is no memory `{name}` with bytes of its own"),
                "second-port-of",
                match known.is_empty() {
                    true => "remove it: every memory of this chip is a second port".into(),
                    false => format!("such memories are {}", known.join(", ")),
                },
            );
        }
    }
    let Some(memory) = platform.memories.iter().find(|one| u64::from(one.id) == id) else {
        return;
    };
    let all: u64 = platform.behind(memory).iter().map(|(_, size)| size).sum();
    if all != memory.size.0 {
        wrong(
            format!(
                "a second port of {}, but the memories behind it have {}",
                memory.size,
                Size(all)
            ),
            "size",
            format!("write size=\"{}\"", Size(all)),
        );
    }
}
