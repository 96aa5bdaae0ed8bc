//! Figures of a mesh: what a hart's accesses to the local memories of other tiles cost, by hops.
//!
//! Why it exists: on such a chip, memory is what other tiles have. What it deliberately does not know: see the parent module.
//!
//! Fixed before the first run: the first tile at each distance, and 4 KiB of its memory, which is half of what it has beside a program.

use super::closed::{Costs, hops};
use super::{Draft, Part, Run, Unit, chase};
use bulkhead_model::platform::{Platform, Tile, Topology};
use bulkhead_report::measure::Figure;

/// Bytes that are accessed.
const BYTES: u64 = 4096;

/// The figures, from the first tile.
pub(super) fn drafts(
    platform: &Platform,
    tile: &Tile,
    costs: &Costs<'_>,
    loads: u64,
) -> Vec<Draft> {
    let Topology::Mesh { columns, .. } = platform.network.topology else {
        return Vec::new();
    };
    // The first tile at each distance.
    let mut at: Vec<&Tile> = Vec::new();
    for other in &platform.tiles {
        let far = hops(columns, tile.router, other.router) as usize;
        if far == at.len() {
            at.push(other);
        }
    }
    let place = |part: &mut Part, far: usize, other: &Tile| {
        if far > 0 {
            let address = format!("{:x}", remote(columns, other));
            part.arguments.push(("remote", address));
        }
    };
    let curve = |name: &str, role: &'static str| {
        let runs = at.iter().enumerate().map(|(far, other)| {
            let mut part = chase(BYTES, 8, loads);
            part.arguments[0] = ("role", role.to_owned());
            place(&mut part, far, other);
            Run {
                parts: vec![part],
                unit: Unit::Cycles,
                x: far as f64,
                closed: match (role, far) {
                    ("chase", 0) => Some(costs.first_in_turn()),
                    (_, 0) => None,
                    ("chase", far) => costs.remote(far as u32),
                    // The store and the fence that waits for it take one cycle each to issue.
                    (_, far) => costs.remote(far as u32).map(|cost| cost + 2.0),
                },
                ..Run::default()
            }
        });
        (name.to_owned(), runs.collect::<Vec<Run>>())
    };
    let stream = |role: &'static str, is_write: bool| {
        let runs = at.iter().enumerate().map(|(far, other)| {
            let rounds = (loads * 8).div_ceil(BYTES).max(1);
            let mut part = Part {
                arguments: vec![
                    ("role", role.to_owned()),
                    ("bytes", BYTES.to_string()),
                    ("rounds", rounds.to_string()),
                ],
                bytes: BYTES,
                ..Part::default()
            };
            place(&mut part, far, other);
            let each = costs.independent(far as u32, is_write).filter(|_| far > 0);
            Run {
                parts: vec![part],
                unit: Unit::Bandwidth,
                x: far as f64,
                closed: each.map(|cycles| 8.0 * costs.hertz() / cycles / 1e9),
                ..Run::default()
            }
        });
        (role.to_owned(), runs.collect::<Vec<Run>>())
    };
    let hops = Figure {
        id: "hops".to_owned(),
        title: "Other tiles' memories, by hops".to_owned(),
        about: "A chain of loads of eight bytes in the local memory of another tile, and stores that each wait for their acknowledgement. 0 hops: the tile's own memory.".to_owned(),
        x: "hops".to_owned(),
        y: "cycles an access".to_owned(),
        ..Figure::default()
    };
    let remote = Figure {
        id: "remote".to_owned(),
        title: "Bandwidth of other tiles' memories, by hops".to_owned(),
        about: "Independent loads, and independent stores, of eight bytes in the local memory of another tile. 0 hops: the tile's own memory.".to_owned(),
        x: "hops".to_owned(),
        y: "GB/s".to_owned(),
        ..Figure::default()
    };
    vec![
        Draft {
            figure: hops,
            curves: vec![curve("load", "chase"), curve("store", "store")],
        },
        Draft {
            figure: remote,
            curves: vec![stream("read", false), stream("write", true)],
        },
    ]
}

/// Where a tile's free memory is in the global address space: the upper half of its local memory.
fn remote(columns: u16, tile: &Tile) -> u64 {
    use bulkhead_abi::memory_map::{CORE_BITS, TILE_WINDOW_SHIFT, TILE_WINDOWS};
    let (row, column) = (tile.router / columns, tile.router % columns);
    let core = u64::from(row) << CORE_BITS | u64::from(column);
    let half = tile
        .local_memory
        .as_ref()
        .map_or(0, |memory| memory.size.0 / 2);
    TILE_WINDOWS + (core << TILE_WINDOW_SHIFT) + half
}
