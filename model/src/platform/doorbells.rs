//! Doorbells of a bare platform: data and rules.
//!
//! Why it exists: harts of different tiles interrupt each other by them; they are a part of the whole chip. What it deliberately does not
//! know: which program rings whom, and registers.

use super::{Clock, Platform, PlatformKind, Tile};
use crate::error::{Diagnostic, Problem};
use crate::node::Node;
use bulkhead_abi::doorbell::HARTS;
use bulkhead_abi::memory_map::{DMA_BASE, DMA_ENGINES, DMA_SIZE};
use serde::Serialize;

/// The doorbells.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Doorbells {
    /// Number on the network.
    pub id: u16,
    /// Their clock.
    pub clock: Clock,
    /// From the arrival of an access to its effect and its answer, in cycles of the clock.
    pub registers: u32,
    /// Router that they are attached to.
    pub router: u16,
}

impl Platform {
    /// The place of the doorbells among the parts beside the tiles, if there are any: behind engines and peripherals.
    pub fn doorbells_place(&self) -> Option<u32> {
        let before = self.engines.len() + self.peripherals.len();
        self.doorbells.as_ref().map(|_| before as u32)
    }

    /// The first address of their registers.
    pub fn doorbells_base(&self) -> Option<u64> {
        let place = self.doorbells_place()?;
        Some(DMA_BASE + u64::from(place) * DMA_SIZE)
    }

    /// The number of the hart at a position of a tile, as doorbells count harts.
    pub fn bell(&self, tile: u16, hart: u16) -> u64 {
        let before = self.tiles.iter().take_while(|one| one.id != tile);
        let before: u64 = before.map(harts_of).sum();
        before + u64::from(hart)
    }
}

/// The harts of a tile of a bare platform.
fn harts_of(tile: &Tile) -> u64 {
    tile.cluster.as_ref().map_or(1, |one| one.harts.into())
}

/// Reads the element.
pub(super) fn read(node: &Node, clock: Clock) -> Doorbells {
    let number = |attribute: &str| node.integer(attribute) as u32;
    Doorbells {
        id: number("id") as u16,
        clock,
        registers: number("registers"),
        router: number("router") as u16,
    }
}

/// Reports every broken rule.
pub(super) fn check(platform: &Platform, root: &Node, errors: &mut Vec<Diagnostic>) {
    let Some(node) = root.child("doorbells") else {
        return;
    };
    let id = node.integer("id");
    let mut wrong = |cause: String, help: &str| {
        let problem = Problem::Inconsistent(format!("the doorbells {id} {cause}"));
        errors.push(Diagnostic::new(problem, node.place("id"), help));
    };
    if platform.kind != PlatformKind::Bare {
        return wrong(
            "are beside the tiles, but the platform is not bare".into(),
            "write kind=\"bare\" at the platform, or remove them: tiles of a mesh have a doorbell each, and programs of the tiled OS send messages",
        );
    }
    let harts: u64 = platform.tiles.iter().map(harts_of).sum();
    if harts > HARTS as u64 {
        wrong(
            format!("have a bit for each of {HARTS} harts, but the platform has {harts}"),
            "use fewer harts, or remove them",
        );
    }
    let pages = platform.engines.len() + platform.peripherals.len();
    if pages as u64 >= DMA_ENGINES {
        wrong(
            format!("have no page: {pages} engines and peripherals have all {DMA_ENGINES}"),
            "remove an engine or a peripheral, or the doorbells",
        );
    }
}
