//! Latency of tightly coupled memories: for their own hart, for another tile, and for a hart of the first tile.
//!
//! Why it exists and what it does not know: see the parent module. The set is in the upper half of the memories. The program of the own hart is
//! in the main memory, so its fetches need no port there. No part of the figure was changed after a result.

use super::closed::Costs;
use super::{Chip, Draft, KIB, Part, Run, Unit, chase, nanoseconds};
use bulkhead_model::platform::Tile;
use bulkhead_report::measure::Figure;

/// Bytes of the sets.
const SIZES: [u64; 4] = [4 << 10, 8 << 10, 16 << 10, 32 << 10];

impl Chip<'_> {
    /// Latency of the first tile's memories that has some.
    pub(super) fn coupled(&self) -> Option<Draft> {
        let tiles = &self.platform.tiles;
        let own = tiles.iter().find(|tile| !tile.tcm.is_empty())?;
        let half = own.tcm_bytes() / 2;
        let base = self.platform.tcm_base(own.id)? + half;
        let line = u64::from(own.l1d.as_ref()?.line);
        let curve = |name: String, tile: &Tile| {
            let costs = Costs::new(self.platform, tile);
            let cycles = match tile.id == own.id {
                true => Some(costs.first()),
                false => costs.coupled(own),
            };
            let sizes = SIZES.into_iter().filter(|bytes| *bytes < half);
            let runs = sizes.map(|bytes| {
                let mut part: Part = chase(bytes, line, self.loads);
                part.tile = Some(tile.id);
                part.arguments.push(("remote", format!("{base:x}")));
                Run {
                    parts: vec![part],
                    unit: Unit::Nanoseconds,
                    x: bytes as f64 / KIB,
                    closed: cycles.map(|cycles| nanoseconds(tile, cycles)),
                    ..Run::default()
                }
            });
            (name, runs.collect())
        };
        let mut curves = vec![curve(format!("its own hart (tile {})", own.id), own)];
        let alike = |tile: &&Tile| tile.id != own.id && tile.pipeline == own.pipeline;
        let other = tiles.iter().find(alike);
        let first = tiles.first().filter(|tile| tile.id != own.id);
        for tile in other.into_iter().chain(first) {
            let name = format!("tile {}, {}", tile.id, tile.pipeline.name);
            curves.push(curve(name, tile));
        }
        Some(Draft {
            figure: Figure {
                id: "coupled".to_owned(),
                title: "Tightly coupled memories".to_owned(),
                about: format!(
                    "One chain of loads in random order in the tightly coupled memories of tile {}, by harts of different tiles, one after the other.",
                    own.id
                ),
                x: "working set in KiB".to_owned(),
                y: "ns a load".to_owned(),
                log_x: true,
                ..Figure::default()
            },
            curves,
        })
    }
}
