//! Figures of chips with several tiles or memories: each tile alone, each memory, and one hart beside all others.
//!
//! Why it exists and what it does not know: see the parent module. Times are in nanoseconds, because tiles have different clocks. What is varied
//! was fixed before the first run: the chain for a memory is twice one way of the second level, and its hart fills that way only, so it misses
//! in a memory that is smaller than the second level, too. Rivals copy twice the last cache of their own tile, as elsewhere; for the cores of
//! hercules-18 that is the 4 MiB of its Figure 2.

use super::closed::Costs;
use super::rivals::copier;
use super::{Chip, Draft, KIB, Part, Run, Unit, chase, nanoseconds, sizes};
use bulkhead_model::platform::{Memory, Platform, Tile};
use bulkhead_report::measure::Figure;

/// The last cache of a tile: bytes and line.
fn last(tile: &Tile) -> Option<(u64, u64)> {
    let cache = tile.l2.as_ref().or(tile.l1d.as_ref())?;
    Some((cache.size.0, cache.line.into()))
}

fn harts(tile: &Tile) -> u32 {
    tile.cluster.as_ref().map_or(1, |cluster| cluster.harts)
}

/// The first tile of each kind.
pub(super) fn kinds(platform: &Platform) -> Vec<&Tile> {
    let tiles = &platform.tiles;
    let kind = |tile: &Tile| (tile.pipeline.name.clone(), tile.l2.clone());
    let new = |place: &usize| {
        let mut before = tiles[..*place].iter();
        before.all(|other| kind(other) != kind(&tiles[*place]))
    };
    (0..tiles.len())
        .filter(new)
        .map(|place| &tiles[place])
        .collect()
}

impl Chip<'_> {
    /// Latency by working set of each kind of tile.
    pub(super) fn tiles(&self) -> Option<Draft> {
        let tiles = &self.platform.tiles;
        if tiles.len() < 2 {
            return None;
        }
        let curves = kinds(self.platform).into_iter().filter_map(|tile| {
            let costs = Costs::new(self.platform, tile);
            let (bytes, stride) = last(tile)?;
            let run = |bytes: u64| {
                let mut part = chase(bytes, stride, self.loads);
                part.tile = Some(tile.id);
                let closed = costs.chain(bytes, costs.rows(bytes));
                Run {
                    parts: vec![part],
                    unit: Unit::Nanoseconds,
                    x: bytes as f64 / KIB,
                    closed: closed.map(|cycles| nanoseconds(tile, cycles)),
                    ..Run::default()
                }
            };
            let all = sizes(4 << 10, (4 * bytes).min(self.largest));
            let name = format!("tile {}, {}", tile.id, tile.pipeline.name);
            Some((name, all.into_iter().map(run).collect()))
        });
        Some(Draft {
            figure: Figure {
                id: "tiles".to_owned(),
                title: "Latency by working set on each kind of tile".to_owned(),
                about: "One chain of loads in random order, on a hart of one tile after the other; the other tiles do nothing.".to_owned(),
                x: "working set in KiB".to_owned(),
                y: "ns a load".to_owned(),
                log_x: true,
                ..Figure::default()
            },
            curves: curves.collect(),
        })
    }

    /// Latency of each memory, alone and beside one rival in the same memory.
    pub(super) fn memories(&self) -> Option<Draft> {
        let l2 = self.tile.l2.as_ref()?;
        if self.platform.memories.len() < 2 || harts(self.tile) < 2 {
            return None;
        }
        // Behind an address translator, a set of one colour is not contiguous.
        let all = self.platform.memories.iter();
        let all: Vec<&Memory> = all.filter(|memory| memory.dropped == 0).collect();
        let bytes = 2 * l2.size.0 / u64::from(l2.ways);
        let part = |memory: &Memory, hart: u32| {
            let mut part = chase(bytes, self.stride, self.loads);
            part.memory = Some(memory.id);
            (part.hart, part.ways) = (hart, Some((hart, 1)));
            part
        };
        let rival = |memory: &Memory| Part {
            arguments: copier(bytes).arguments,
            ..part(memory, 1)
        };
        let closed = |memory: &Memory| {
            let rows = bytes as f64 / (memory.dram.row.0 * u64::from(memory.dram.banks)) as f64;
            let open = 1.0 / rows.max(1.0);
            let of = |is_open| self.costs.memory_of(memory, is_open);
            let mixed = open * of(true)? + (1.0 - open) * of(false)?;
            let mixed = self.costs.refreshed_of(memory, mixed);
            Some(nanoseconds(self.tile, mixed))
        };
        let curve = |name: &str, rivals: bool| {
            let runs = (1u32..).zip(&all).map(|(x, &memory)| Run {
                parts: match rivals {
                    true => vec![part(memory, 0), rival(memory)],
                    false => vec![part(memory, 0)],
                },
                unit: Unit::Nanoseconds,
                x: x.into(),
                closed: closed(memory).filter(|_| !rivals),
                ..Run::default()
            });
            (name.to_owned(), runs.collect())
        };
        let names = all
            .iter()
            .map(|memory| format!("{} {}", memory.dram.name, memory.id));
        let names: Vec<String> = names.collect();
        Some(Draft {
            figure: Figure {
                id: "memories".to_owned(),
                title: "Each memory".to_owned(),
                about: format!(
                    "A chain that misses the second level, in one memory after the other ({}), alone and beside one rival that copies there.",
                    names.join(", ")
                ),
                x: "memory, in the order of the platform".to_owned(),
                y: "ns a load".to_owned(),
                ..Figure::default()
            },
            curves: vec![curve("alone", false), curve("beside one rival", true)],
        })
    }

    /// Latency by working set, alone and beside all other harts of the chip.
    pub(super) fn beside_all(&self) -> Option<Draft> {
        if self.platform.tiles.len() < 2 {
            return None;
        }
        let rivals = self.all_others();
        let most = (2 * self.last).min(self.largest);
        let all = (0..40).map(|power| (4u64 << 10) << power);
        let all: Vec<u64> = all.take_while(|bytes| *bytes <= most).collect();
        let curve = |name: &str, others: &[Part]| {
            let runs = all.iter().map(|&bytes| {
                let victim = chase(bytes, self.stride, self.loads);
                Run {
                    parts: std::iter::once(victim).chain(others.to_vec()).collect(),
                    unit: Unit::Nanoseconds,
                    x: bytes as f64 / KIB,
                    closed: None,
                    ..Run::default()
                }
            });
            (name.to_owned(), runs.collect())
        };
        Some(Draft {
            figure: Figure {
                id: "beside-all".to_owned(),
                title: "Latency by working set beside all other harts".to_owned(),
                about: format!(
                    "One chain of loads in random order, alone and beside the {} other harts of the chip, each of which copies twice the last cache of its tile.",
                    rivals.len()
                ),
                x: "working set in KiB".to_owned(),
                y: "ns a load".to_owned(),
                log_x: true,
                sizes: self.caches(),
                ..Figure::default()
            },
            curves: vec![curve("alone", &[]), curve("beside all others", &rivals)],
        })
    }

    /// All harts of the chip but the first one: each copies twice the last cache of its tile.
    pub(super) fn all_others(&self) -> Vec<Part> {
        let rivals = self.platform.tiles.iter().flat_map(|tile| {
            let first = u32::from(tile.id == self.tile.id);
            let bytes = last(tile).map_or(0, |(bytes, _)| 2 * bytes);
            let bytes = bytes.min(self.largest);
            (first..harts(tile)).map(move |hart| Part {
                tile: Some(tile.id),
                hart,
                ..copier(bytes)
            })
        });
        rivals.collect()
    }
}
