//! Figure of operations on sampling ports of the one-shot RTOS, by hops.
//!
//! Why it exists: m2os-mc-ngres21 publishes what it costs to write to and to read from another core's port (Table 5), and not what a load or a store costs. What it
//! deliberately does not know: the kernel, and how its programs measure; `reproduce m2os` has all tables.
//!
//! Fixed before the first run: the programs and cores are those of `reproduce m2os`. On a mesh of at least 32 by 32 tiles they are those of its comparison of
//! 1024 cores, because more distances say more.

use crate::reproduce::m2os::{TARGETS, beyond};
use bulkhead_model::canonical;
use bulkhead_model::platform::{Platform, Tile, Topology};
use bulkhead_report::measure::{Curve, Figure, Point};
use bulkhead_runner::error::Error;
use bulkhead_runner::oneshot::measured::{Spans, spans};
use bulkhead_runner::progress::Progress;

/// Of the figure.
pub(super) const ID: &str = "ports";
/// Maximum cycles of the run.
const CYCLES: u64 = 2_000_000_000;
/// Numbers of operations in the programs' spans, and their names.
pub(super) const OPERATIONS: [(u64, &str); 2] = [(2, "write 8 bytes"), (3, "read 8 bytes")];

/// The program of the first core, and where the ports are.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Cores {
    program: &'static str,
    /// Numbers of tiles, and their hops.
    pub(super) others: Vec<(u16, u64)>,
}

impl Cores {
    /// The cores of a platform, if it has what the programs need. Their list of cores is by row and column, so it is right on every mesh that is large enough.
    pub(super) fn of(platform: &Platform) -> Option<Self> {
        let Topology::Mesh { columns, rows } = platform.network.topology else {
            return None;
        };
        // The number of a tile is that of its router.
        let in_order = |(router, tile): (u16, &Tile)| {
            tile.local_memory.is_some() && tile.router == router && tile.id == router
        };
        let all = platform.tiles.len() == usize::from(columns) * usize::from(rows);
        if !all || !(0u16..).zip(&platform.tiles).all(in_order) {
            return None;
        }
        let tile = |row: u16, column: u16| row * columns + column;
        let placed = |list: &[(u16, u64)], side: u16| {
            let place = |&(number, hops): &(u16, u64)| (tile(number / side, number % side), hops);
            list.iter().map(place).collect()
        };
        if columns.min(rows) >= 32 {
            return Some(Self {
                program: "one-shot/far-times",
                others: placed(&beyond::FAR, 32),
            });
        }
        let near: Vec<(u16, u64)> = TARGETS.into_iter().zip(1..).collect();
        (columns.min(rows) >= 4).then(|| Self {
            program: "one-shot/port-times",
            others: placed(&near, 4),
        })
    }

    /// Runs the program, and draws the means.
    pub(super) fn figure(
        &self,
        platform: &Platform,
        progress: &dyn Progress,
    ) -> Result<Figure, Error> {
        // With the changes of the command line.
        let file = tempfile::Builder::new().suffix(".xml").tempfile();
        let failed = |error| Error::file(&std::env::temp_dir(), error);
        let file = file.map_err(failed)?;
        std::fs::write(file.path(), canonical::platform(platform)).map_err(failed)?;
        let owners = self.others.iter().map(|one| (one.0, "one-shot/port-owner"));
        let placed: Vec<(u16, &str)> = [(0, self.program)].into_iter().chain(owners).collect();
        let name = file.path().to_string_lossy();
        let seen = spans(&name, &placed, CYCLES, progress)?;
        let hertz = platform.tiles.first();
        let hertz = hertz.map_or(1, |tile| tile.pipeline.clock.frequency.0);
        let curves = OPERATIONS.map(|(operation, name)| {
            let points = (1u64..).zip(&self.others).map(|(place, (_, hops))| {
                let cycles = mean(&seen, 10 * operation + place)?;
                Ok(Point {
                    x: *hops as f64,
                    y: cycles * 1e9 / hertz as f64,
                    closed: None,
                })
            });
            Ok(Curve {
                name: name.to_owned(),
                points: points.collect::<Result<_, Error>>()?,
                source: None,
            })
        });
        Ok(Figure {
            id: ID.to_owned(),
            title: "Operations on ports of other cores, by hops".to_owned(),
            about: "A task of the one-shot RTOS on the first core writes eight bytes to a sampling port of another core, and reads them there: the mean of a thousand operations each, with nothing else under way.".to_owned(),
            x: "hops".to_owned(),
            y: "ns an operation".to_owned(),
            curves: curves.into_iter().collect::<Result<_, Error>>()?,
            ..Figure::default()
        })
    }
}

/// The mean of all spans with a number.
fn mean(seen: &Spans, number: u64) -> Result<f64, Error> {
    match seen.get(&number) {
        Some(all) if !all.is_empty() => Ok(all.iter().sum::<u64>() as f64 / all.len() as f64),
        _ => Err(Error::Machine(format!(
            "no span {number} of a port was seen"
        ))),
    }
}
