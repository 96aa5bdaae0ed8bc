//! Figures of the pipeline: instructions per cycle of small loops, loads side by side in each level, and streams with prefetchers on.
//!
//! Why it exists: published measurements of cores are rates of such loops, and a pipeline's parameters say what they should be. What it
//! deliberately does not know: see the parent module. What is varied was fixed before the first run; the page says with which published
//! figures it is compared, and when they agree.

use super::closed::Costs;
use super::parts::kinds;
use super::streams::Stream;
use super::{Chip, Draft, KIB, Part, Run, Unit, chase};
use bulkhead_model::platform::{Pipeline, Tile};
use bulkhead_report::measure::Figure;

/// The program that runs loops.
const KERNELS: &str = "memory/kernels";
/// Turns of a loop: its start and its end are below 1 %.
const TURNS: u64 = 2000;
/// Operations of a turn, and all of its instructions.
const OPERATIONS: u32 = 64;
pub(super) const INSTRUCTIONS: u32 = OPERATIONS + 2;
/// Chains side by side.
const SIDE_BY_SIDE: [u64; 4] = [1, 2, 4, 8];
/// The set of loads that hit the first level.
const FIRST: u64 = 4 << 10;

/// What a loop does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Work {
    /// Independent operations.
    Independent(Units),
    /// Each operation waits for the one before.
    Chain(Latency),
    /// Each operation jumps to the next one.
    Jumps,
    /// What no closed form says.
    Mixed,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Units {
    Integer,
    Multiplier,
    Float,
    Memory,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Latency {
    Add,
    Multiply,
    Divide,
    FloatAdd,
    FloatMultiply,
    FloatFma,
    FloatDivide,
}

impl Latency {
    fn of(self, pipeline: &Pipeline) -> u32 {
        match self {
            Self::Add => 1,
            Self::Multiply => pipeline.multiply,
            Self::Divide => pipeline.divide,
            Self::FloatAdd => pipeline.fp_add,
            Self::FloatMultiply => pipeline.fp_multiply,
            Self::FloatFma => pipeline.fp_fma,
            Self::FloatDivide => pipeline.fp_divide,
        }
    }
}

/// The loops, in the order of the figure.
const LOOPS: [(&str, Work); 14] = [
    ("add", Work::Independent(Units::Integer)),
    ("add-chain", Work::Chain(Latency::Add)),
    ("multiply", Work::Independent(Units::Multiplier)),
    ("multiply-chain", Work::Chain(Latency::Multiply)),
    ("divide-chain", Work::Chain(Latency::Divide)),
    ("float-add", Work::Independent(Units::Float)),
    ("float-add-chain", Work::Chain(Latency::FloatAdd)),
    ("float-multiply-chain", Work::Chain(Latency::FloatMultiply)),
    ("float-fma-chain", Work::Chain(Latency::FloatFma)),
    ("float-divide-chain", Work::Chain(Latency::FloatDivide)),
    ("load", Work::Independent(Units::Memory)),
    ("jump", Work::Jumps),
    ("branch", Work::Mixed),
    ("matrix", Work::Mixed),
];

/// The place of a loop in the figure, from 1.
pub(super) fn place(name: &str) -> Option<f64> {
    let at = LOOPS.iter().position(|one| one.0 == name)?;
    Some((at + 1) as f64)
}

impl Costs<'_> {
    /// Instructions per cycle of a loop: those of a turn, by the longest of what bounds it.
    fn rate(&self, work: Work) -> Option<f64> {
        let pipeline = &self.tile.pipeline;
        let (operations, jump) = (f64::from(OPERATIONS), f64::from(pipeline.jump_penalty));
        let all = f64::from(INSTRUCTIONS);
        let cycles = match (&pipeline.interval, work) {
            (_, Work::Mixed) => return None,
            // One instruction a cycle, and the branch at the end.
            (None, Work::Independent(_)) => all + jump,
            // The loop's own two instructions and its branch are issued while the last operation is under way.
            (None, Work::Chain(latency)) => {
                let latency = f64::from(latency.of(pipeline));
                let issue = (operations - 1.0) * latency + 3.0 + jump;
                issue.max(operations * latency)
            }
            (None, Work::Jumps) => all + (operations + 1.0) * jump,
            // A taken branch ends the instructions of a cycle.
            (Some(limits), _) => {
                let fetch = (all / f64::from(limits.width)).ceil() + jump;
                let bound = match work {
                    Work::Independent(Units::Integer) => all / f64::from(limits.alus),
                    Work::Independent(Units::Multiplier) => operations,
                    Work::Independent(Units::Float) => operations / f64::from(limits.float_units),
                    Work::Independent(Units::Memory) => operations / f64::from(limits.memory_ports),
                    Work::Chain(latency) => operations * f64::from(latency.of(pipeline)),
                    Work::Jumps | Work::Mixed => (operations + 1.0) * (1.0 + jump),
                };
                fetch.max(bound)
            }
        };
        Some(all / cycles)
    }

    /// Cycles a load of so many chains side by side, if each load of a chain takes `cost` cycles, so many misses can be under way, and the
    /// level serves a line in no less than so many cycles.
    fn side_by_side(&self, chains: u64, cost: f64, (most, least): (u32, f64)) -> f64 {
        let ports = match &self.tile.pipeline.interval {
            Some(limits) => limits.memory_ports.min(limits.width),
            None => 1,
        };
        let overlap = chains.min(u64::from(most)) as f64;
        (cost / overlap).max(1.0 / f64::from(ports)).max(least)
    }
}

impl Chip<'_> {
    /// Instructions per cycle of each loop on each kind of tile.
    pub(super) fn ipc(&self) -> Draft {
        let curve = |tile: &Tile| {
            let costs = Costs::new(self.platform, tile);
            let runs = LOOPS.iter().map(|&(name, work)| Run {
                parts: vec![Part {
                    program: Some(KERNELS),
                    tile: (tile.id != self.tile.id).then_some(tile.id),
                    arguments: vec![("kernel", name.to_owned()), ("turns", TURNS.to_string())],
                    bytes: FIRST,
                    ..Part::default()
                }],
                unit: Unit::Instructions(tile.pipeline.clock.frequency.0),
                x: place(name).unwrap_or_default(),
                closed: costs.rate(work),
                ..Run::default()
            });
            (tile.pipeline.name.clone(), runs.collect::<Vec<Run>>())
        };
        Draft {
            figure: Figure {
                id: "ipc".to_owned(),
                title: "Instructions per cycle of small loops".to_owned(),
                about: "64 operations in a turn, independent ones or a chain, and the two instructions of the loop. `branch`: by bits that no predictor knows. `matrix`: products of 16 rows and columns, as the compiler writes them.".to_owned(),
                x: "loop".to_owned(),
                y: "instructions per cycle".to_owned(),
                cases: LOOPS.iter().map(|one| one.0.to_owned()).collect(),
                ..Figure::default()
            },
            curves: kinds(self.platform).into_iter().map(curve).collect(),
        }
    }

    /// Chains of loads side by side in each level.
    pub(super) fn side_by_side(&self) -> Draft {
        let pipeline = &self.tile.pipeline;
        let misses = self.tile.l1d.as_ref().map_or(u32::MAX, |cache| cache.mshrs);
        let misses = misses.min(pipeline.load_buffer);
        let own = self.tile.l1d.as_ref().map_or(0, |cache| cache.size.0);
        let mut levels = vec![(
            "first level",
            FIRST,
            Some(self.costs.first()),
            (u32::MAX, 0.0),
        )];
        if self.tile.l2.is_some() {
            let bytes = (self.last / 8).max(2 * own);
            let cost = self.costs.chain(bytes, 1.0);
            levels.push(("second level", bytes, cost, (misses, 0.0)));
        }
        let beyond = self.beyond();
        let far = self.costs.chain(beyond, self.costs.rows(beyond));
        // If banks are blocks, all rows are in one bank.
        let row = self.costs.row_cycle().unwrap_or(0.0);
        levels.push(("memory", beyond, far, (self.costs.overlap(), row)));
        type Limits = (u32, f64);
        let curve = |(name, bytes, cost, most): (&str, u64, Option<f64>, Limits)| {
            let runs = SIDE_BY_SIDE.map(|chains| {
                let mut part = chase(bytes, self.stride, self.loads);
                part.arguments.push(("chains", chains.to_string()));
                Run {
                    parts: vec![part],
                    unit: Unit::Cycles,
                    x: chains as f64,
                    closed: cost.map(|cost| self.costs.side_by_side(chains, cost, most)),
                    ..Run::default()
                }
            });
            (format!("{name}, {} KiB", bytes as f64 / KIB), runs.to_vec())
        };
        Draft {
            figure: Figure {
                id: "loads".to_owned(),
                title: "Loads side by side in each level".to_owned(),
                about: "Chains in random order over a set that the level holds, one load of each in turn. The time of a load falls until the hart has no more ports, misses or banks.".to_owned(),
                x: "chains".to_owned(),
                y: "cycles a load".to_owned(),
                ..Figure::default()
            },
            curves: levels.into_iter().map(curve).collect(),
        }
    }

    /// Streams over a set that no cache holds, with prefetchers as they are, and with all of them on.
    pub(super) fn streams(&self) -> Draft {
        let bytes = self.beyond();
        let rounds = (self.loads * 8).div_ceil(bytes).max(1);
        let kinds = [
            ("read", Stream::Read),
            ("write", Stream::Write),
            ("copy", Stream::Copy),
        ];
        let curve = |name: &str, settings: &[String], closed: bool| {
            let runs = (1..).zip(kinds).map(|(number, (role, stream))| {
                // Bytes of a copy are counted once here.
                let share = match stream {
                    Stream::Copy => 0.5,
                    _ => 1.0,
                };
                Run {
                    parts: vec![Part {
                        arguments: vec![
                            ("role", role.to_owned()),
                            ("bytes", bytes.to_string()),
                            ("rounds", rounds.to_string()),
                        ],
                        bytes,
                        ..Part::default()
                    }],
                    settings: settings.to_vec(),
                    unit: Unit::Share(share),
                    x: f64::from(number),
                    closed: self
                        .costs
                        .stream(stream, bytes)
                        .filter(|_| closed)
                        .map(|rate| rate * share),
                    ..Run::default()
                }
            });
            (name.to_owned(), runs.collect::<Vec<Run>>())
        };
        let settings = self.prefetchers();
        let mut curves = vec![curve("prefetchers as in the file", &[], true)];
        if !settings.is_empty() {
            curves.push(curve("prefetchers on", &settings, false));
        }
        Draft {
            figure: Figure {
                id: "streams".to_owned(),
                title: "Streams beyond the caches".to_owned(),
                about: format!(
                    "Loads, stores and copies of eight bytes over {} KiB, lines in order. Each byte of a copy is counted once.",
                    bytes as f64 / KIB
                ),
                x: "stream".to_owned(),
                y: "GB/s".to_owned(),
                cases: kinds.map(|one| one.0.to_owned()).into(),
                ..Figure::default()
            },
            curves,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use bulkhead_model::{LoadOptions, load_platform};

    fn rate(platform: &str, tile: usize, name: &str) -> f64 {
        let chip = load_platform(platform, &LoadOptions::default()).expect("valid");
        let work = LOOPS.iter().find(|one| one.0 == name).expect("a loop").1;
        let costs = Costs::new(&chip, &chip.tiles[tile]);
        costs.rate(work).expect("a closed form")
    }

    /// By hand, from the parameters in the files.
    #[test]
    fn rates_are_those_of_the_page() {
        let near = |a: f64, b: f64| assert!((a - b).abs() < 1e-9, "{a} {b}");
        // In order: one instruction a cycle, and a cycle for the branch. A chain of additions of four cycles: the last one ends the turn.
        near(rate("zcu102", 0, "add"), 66.0 / 67.0);
        near(rate("zcu102", 0, "float-add-chain"), 66.0 / 256.0);
        near(rate("zcu102", 0, "jump"), 66.0 / 131.0);
        // Two wide, two integer units: 33 cycles and one for the branch.
        near(rate("imx6-ooo", 0, "add"), 66.0 / 34.0);
        near(rate("imx6-ooo", 0, "add-chain"), 66.0 / 64.0);
        near(rate("imx6-ooo", 0, "load"), 66.0 / 64.0);
        // Eight wide, six integer units, a multiplier of three cycles.
        near(rate("tiled-2ghz-ooo", 0, "add"), 6.0);
        near(rate("tiled-2ghz-ooo", 0, "multiply"), 66.0 / 64.0);
        near(rate("tiled-2ghz-ooo", 0, "multiply-chain"), 66.0 / 192.0);
        near(rate("tiled-2ghz-ooo", 0, "jump"), 66.0 / 65.0);
    }
}
