//! What the memory of a platform costs: many runs of `memory/measure` on it, and one page of curves.
//!
//! Why it exists: the same questions are asked of every chip (latency by working set, outstanding misses, bandwidth, rivals, hops), and
//! each curve is drawn beside the values that follow from the platform's parameters. What it deliberately does not know: how a system is
//! booted, and how a curve is drawn.
//!
//! The varied parameters were fixed before the first run, for these reasons. Sizes: powers of two and the values halfway between them, from
//! 4 KiB, which is below any first level, to four times the last cache, so that random replacement keeps little of the set. The stride is a
//! line of the last cache, so each load has its own line. At least 4096 loads are measured, after as many to warm the caches, so that start
//! and end effects are below 1 %. Rivals copy twice the last cache, so they miss on every line.

pub mod closed;
mod colours;
mod coupled;
mod isolation;
mod mesh;
mod movers;
mod needs;
mod parts;
mod ports;
mod published;
mod rates;
mod rivals;
mod slowdown;
pub mod streams;
#[cfg(test)]
mod tests;

use bulkhead_abi::marker::MarkerKind;
use bulkhead_model::platform::{Platform, PlatformKind, Tile};
use bulkhead_model::{LoadOptions, load_platform, load_system_text};
use bulkhead_report::measure::{Curve, Figure, Measurement, Point, SCHEMA, Size};
use bulkhead_runner::bare::Bare;
use bulkhead_runner::error::Error;
use bulkhead_runner::image::BootImage;
use bulkhead_runner::paradigm::Paradigm;
use bulkhead_runner::parallel::in_parallel;
use bulkhead_runner::programs::{Library, Program};
use bulkhead_runner::progress::{Progress, Silent, Stage};
use bulkhead_runner::session::{Plan, execute};
use bulkhead_runner::{collect, place};
use closed::Costs;
use slowdown::Order;
use std::path::{Path, PathBuf};
use streams::Stream;

/// The program that measures.
const PROGRAM: &str = "memory/measure";
/// Minimum number of measured loads.
const LOADS: u64 = 4096;
/// Memory for the program, its stack and its device tree, besides the working set.
const ROOM: u64 = 64 << 10;
/// Maximum simulated time per point.
const LONGEST: &str = "20s";
/// Maximum chains of a chase.
const CHAINS: u64 = 8;

/// The measurement to make.
#[derive(Clone, Debug, Default)]
pub struct Options {
    /// Name or file of the platform.
    pub platform: PathBuf,
    /// Changes of the platform.
    pub overrides: Vec<String>,
    /// Only these figures; all if empty.
    pub figures: Vec<String>,
    /// Minimum measured loads per point; 0 means [`LOADS`].
    pub loads: u64,
    /// Larger sets (in bytes) are left out; 0: no limit.
    pub largest: u64,
}

/// One program of a point.
#[derive(Clone, Debug, Default, PartialEq)]
struct Part {
    /// [`PROGRAM`] if none is named.
    program: Option<&'static str>,
    /// The platform's first one, if none is named.
    tile: Option<u16>,
    hart: u32,
    /// The same.
    memory: Option<u16>,
    arguments: Vec<(&'static str, String)>,
    /// Bytes of its working set, including the gaps between its lines.
    bytes: u64,
    bank: Option<u64>,
    ways: Option<(u32, u32)>,
    /// The peripheral that it uses.
    attached: Option<String>,
}

impl Part {
    fn program(&self) -> &'static str {
        self.program.unwrap_or(PROGRAM)
    }
}

/// One run: the measured program first, then rivals.
#[derive(Clone, Debug, Default)]
struct Run {
    parts: Vec<Part>,
    /// What [`Unit::Relative`] compares with; the measured program first, too.
    against: Vec<Part>,
    /// Changes of the platform for this run, and for what it is compared with.
    settings: Vec<String>,
    /// How the ticks of the measured part become the value of the point.
    unit: Unit,
    x: f64,
    closed: Option<f64>,
}

/// What is booted once: parts, and changes of the platform.
type Job<'a> = (&'a [Part], &'a [String]);

impl Run {
    /// The run itself, and what it is compared with.
    fn jobs(&self) -> impl Iterator<Item = Job<'_>> {
        let all = [&self.parts, &self.against].into_iter();
        let all = all.filter(|parts| !parts.is_empty());
        all.map(|parts| (&parts[..], &self.settings[..]))
    }
}

#[derive(Clone, Copy, Debug, Default, PartialEq)]
enum Unit {
    /// Cycles of the hart per load or store.
    #[default]
    Cycles,
    /// Nanoseconds for each load.
    Nanoseconds,
    /// Microseconds for each transfer, divided by its size in KiB, which is the point's x.
    Transfer,
    /// Gigabytes in a second.
    Bandwidth,
    /// This share of the bytes, in gigabytes in a second.
    Share(f64),
    /// Instructions per cycle of a hart with this clock, in hertz.
    Instructions(u64),
    /// Time relative to that of [`Run::against`].
    Relative,
}

/// A figure whose points are still to be measured.
struct Draft {
    figure: Figure,
    curves: Vec<(String, Vec<Run>)>,
}

/// Measures a platform.
///
/// # Errors
/// If the platform does not exist or cannot run programs without a kernel, or a program failed.
pub fn measure(options: &Options, progress: &dyn Progress) -> Result<Measurement, Error> {
    let load = LoadOptions::with_changes(&options.overrides);
    let platform = load_platform(&options.platform, &load)?;
    let drafts = drafts(&platform, options);
    let ports = ports::Cores::of(&platform);
    let mut known: Vec<String> = drafts.iter().map(|one| one.figure.id.clone()).collect();
    known.extend(ports.as_ref().map(|_| ports::ID.to_owned()));
    if let Some(unknown) = options.figures.iter().find(|one| !known.contains(one)) {
        return Err(needs::missing(&platform.name, unknown, &known));
    }
    let wanted =
        |id: &str| options.figures.is_empty() || options.figures.iter().any(|one| one == id);
    let drafts: Vec<Draft> = drafts
        .into_iter()
        .filter(|one| wanted(&one.figure.id))
        .collect();
    let library = Library::new(&place::root()?, Path::new("."))?;
    let what = "building the program that measures";
    progress.stage(Stage::Work { what });
    let runs = drafts.iter().flat_map(|draft| &draft.curves);
    let runs: Vec<&Run> = runs.flat_map(|(_, runs)| runs).collect();
    let parts = runs
        .iter()
        .flat_map(|run| run.parts.iter().chain(&run.against));
    let programs = library.build(parts.map(Part::program));
    progress.stage(Stage::Done { name: what });
    let stand = Stand {
        platform: &platform,
        options,
        programs: programs?,
    };
    let what = "measuring";
    progress.stage(Stage::Work { what });
    let values = stand.values(&runs);
    progress.stage(Stage::Done { name: what });
    let mut values = values?.into_iter();
    let mut figures = Vec::new();
    for draft in drafts {
        let mut figure = draft.figure;
        for (name, runs) in draft.curves {
            let points = runs.iter().zip(values.by_ref()).map(|(run, y)| Point {
                x: run.x,
                y,
                closed: run.closed,
            });
            let points = points.collect();
            figure.curves.push(Curve {
                name,
                points,
                source: None,
            });
        }
        figures.push(figure);
    }
    if let Some(ports) = ports.filter(|_| wanted(ports::ID)) {
        figures.push(ports.figure(&platform, progress)?);
    }
    for figure in &mut figures {
        let published = published::curves(&platform.name, &figure.id)?;
        figure.curves.extend(published);
    }
    Ok(Measurement {
        schema: SCHEMA,
        platform: platform.name.clone(),
        frequency: stand.tile()?.pipeline.clock.frequency.0,
        figures,
    })
}

/// The common part of all runs.
struct Stand<'a> {
    platform: &'a Platform,
    options: &'a Options,
    programs: Vec<Program>,
}

impl Stand<'_> {
    fn tile(&self) -> Result<&Tile, Error> {
        let first = self.platform.tiles.first();
        first.ok_or_else(|| Error::Machine("the platform has no tile".to_owned()))
    }

    /// The values of all points. What several points need runs once: the same program alone, for example.
    fn values(&self, runs: &[&Run]) -> Result<Vec<f64>, Error> {
        let mut jobs: Vec<Job<'_>> = Vec::new();
        for run in runs {
            for job in run.jobs() {
                if !jobs.contains(&job) {
                    jobs.push(job);
                }
            }
        }
        let spent = in_parallel(&jobs, |job| self.spent(*job));
        let spent = spent.into_iter().collect::<Result<Vec<Spent>, Error>>()?;
        let of = |wanted: Job<'_>| {
            let mut all = jobs.iter().zip(&spent);
            all.find(|(job, _)| **job == wanted).map(|(_, spent)| spent)
        };
        let value = |run: &&Run| {
            let mut all = run.jobs().filter_map(of);
            let missing = || Error::Machine("a point was not measured".to_owned());
            let own = all.next().ok_or_else(missing)?;
            self.value(run, own, all.next().unwrap_or(own))
        };
        runs.iter().map(value).collect()
    }

    /// The value of a point.
    fn value(&self, run: &Run, own: &Spent, against: &Spent) -> Result<f64, Error> {
        let &Spent {
            ticks,
            count,
            last,
            per_second,
        } = own;
        Ok(match run.unit {
            Unit::Cycles => {
                let hertz = self.tile()?.pipeline.clock.frequency.0 as f64;
                ticks * hertz / per_second / count
            }
            Unit::Nanoseconds => ticks * 1e9 / per_second / count,
            Unit::Transfer => ticks * 1e6 / per_second / count / run.x,
            Unit::Bandwidth => count * per_second / ticks / 1e9,
            Unit::Share(share) => share * count * per_second / ticks / 1e9,
            Unit::Instructions(hertz) => last * per_second / ticks / hertz as f64,
            Unit::Relative => ticks / against.ticks,
        })
    }

    /// What the first of some parts takes if exactly these run.
    fn spent(&self, (parts, settings): Job<'_>) -> Result<Spent, Error> {
        let text = describe(self.platform, &self.options.platform, parts);
        let changes = self.options.overrides.iter().chain(settings);
        let load = LoadOptions {
            overrides: changes.map(|one| format!("platform/{one}")).collect(),
            ..LoadOptions::default()
        };
        let system = load_system_text("point.xml", &text, &load)?;
        let image: BootImage = Bare.image(&system, &self.programs)?;
        let per_second = system.platform.ticks_per_second();
        let plan = Plan {
            ticks: collect::ticks(system.duration, per_second),
            trace: false,
            slice: None,
            transactions: false,
            looks: 1,
        };
        let seen = execute(&Bare, &system, &image, plan, "point", &Silent)?;
        let of = |kind: MarkerKind| {
            let mut all = seen.markers.iter();
            all.find(|one| one.kind == kind as u16)
        };
        let failed = || {
            Error::Machine(format!(
                "a point of {} did not end: {:?}\n{}\n{text}",
                self.platform.name, seen.outcome, seen.console
            ))
        };
        let begin = of(MarkerKind::MeasureBegin).ok_or_else(failed)?;
        let end = of(MarkerKind::MeasureEnd).ok_or_else(failed)?;
        Ok(Spent {
            ticks: (end.at - begin.at) as f64,
            count: begin.value.max(1) as f64,
            last: end.value as f64,
            per_second: per_second as f64,
        })
    }
}

/// What a measured program took.
struct Spent {
    ticks: f64,
    /// Loads, stores, bytes or transfers.
    count: f64,
    /// What the program counted: instructions.
    last: f64,
    /// Ticks of a second.
    per_second: f64,
}

/// The description of a run of some parts.
fn describe(platform: &Platform, reference: &Path, parts: &[Part]) -> String {
    let mut text = format!(
        "<system name=\"point\" paradigm=\"bare\" platform=\"{}\" duration=\"{LONGEST}\"><domain name=\"d\">",
        reference.display()
    );
    for (index, part) in parts.iter().enumerate() {
        text.push_str(&format!(
            "<app name=\"p{index}\" harts=\"{}\" program=\"{}\"",
            part.hart,
            part.program()
        ));
        for (name, number) in [("tile", part.tile), ("memory-tile", part.memory)] {
            if let Some(number) = number {
                text.push_str(&format!(" {name}=\"{number}\""));
            }
        }
        if platform.kind != PlatformKind::Mesh {
            text.push_str(&format!(" memory=\"{}B\"", part.bytes + ROOM));
        }
        if let Some(bank) = part.bank {
            text.push_str(&format!(" bank=\"{bank}\""));
        }
        if let Some((first, ways)) = part.ways {
            text.push_str(&format!(" ways=\"{first}-{}\"", first + ways - 1));
        }
        text.push('>');
        for (name, value) in &part.arguments {
            text.push_str(&format!("<argument name=\"{name}\" value=\"{value}\"/>"));
        }
        if let Some(peripheral) = &part.attached {
            text.push_str(&format!("<attach peripheral=\"{peripheral}\"/>"));
        }
        text.push_str("</app>");
    }
    text.push_str("</domain></system>");
    text
}

/// A chase over `bytes`.
fn chase(bytes: u64, stride: u64, loads: u64) -> Part {
    let rounds = loads.div_ceil(bytes / stride).max(1);
    Part {
        arguments: vec![
            ("role", "chase".to_owned()),
            ("bytes", bytes.to_string()),
            ("stride", stride.to_string()),
            ("rounds", rounds.to_string()),
        ],
        bytes,
        ..Part::default()
    }
}

/// Powers of two and the values halfway between them, in bytes.
fn sizes(least: u64, most: u64) -> Vec<u64> {
    let powers = (0..40)
        .map(|power| least << power)
        .take_while(|size| *size <= most);
    let both = powers.flat_map(|size| [size, size + size / 2]);
    both.filter(|size| *size <= most).collect()
}

/// Every figure that makes sense for a platform.
fn drafts(platform: &Platform, options: &Options) -> Vec<Draft> {
    let Some(tile) = platform.tiles.first() else {
        return Vec::new();
    };
    let costs = Costs::new(platform, tile);
    let loads = if options.loads == 0 {
        LOADS
    } else {
        options.loads
    };
    if platform.kind == PlatformKind::Mesh {
        return mesh::drafts(platform, tile, &costs, loads);
    }
    let Some(last) = tile.l2.as_ref().or(tile.l1d.as_ref()) else {
        return Vec::new();
    };
    let chip = Chip {
        platform,
        tile,
        costs: &costs,
        stride: last.line.into(),
        last: last.size.0,
        loads,
        largest: match options.largest {
            0 => u64::MAX,
            bytes => bytes,
        },
    };
    let mut all = vec![
        chip.latency(),
        chip.rows(),
        chip.parallel(),
        chip.bandwidth(),
        chip.ipc(),
        chip.side_by_side(),
        chip.streams(),
    ];
    all.extend(chip.rivals_in_cache());
    all.extend(chip.rivals_in_memory());
    all.extend(chip.rivals_by_colour());
    all.extend(chip.rivals_by_translator());
    all.extend(chip.isolation());
    if platform.kind == PlatformKind::Bare {
        all.extend(chip.tiles());
        all.extend(chip.memories());
        all.extend(chip.beside_all());
        all.extend(chip.slowdown(Order::Random));
        all.extend(chip.slowdown(Order::Forward));
        all.extend(chip.dma());
        all.extend(chip.coupled());
    }
    all
}

struct Chip<'a> {
    platform: &'a Platform,
    tile: &'a Tile,
    costs: &'a Costs<'a>,
    stride: u64,
    /// Bytes of the last cache.
    last: u64,
    loads: u64,
    largest: u64,
}

const KIB: f64 = 1024.0;

/// Nanoseconds of this many cycles of a tile's hart.
fn nanoseconds(tile: &Tile, cycles: f64) -> f64 {
    cycles * 1e9 / tile.pipeline.clock.frequency.0 as f64
}

impl Chip<'_> {
    /// A set that no cache can hold.
    fn beyond(&self) -> u64 {
        (4 * self.last).min(self.largest)
    }

    /// Vertical lines.
    fn caches(&self) -> Vec<Size> {
        let first = self
            .tile
            .l1d
            .as_ref()
            .map(|cache| ("first level", cache.size.0));
        let second = self
            .tile
            .l2
            .as_ref()
            .map(|cache| ("second level", cache.size.0));
        let all = first.into_iter().chain(second);
        let all = all.map(|(name, bytes)| Size {
            name: format!("{name}, {} KiB", bytes >> 10),
            x: bytes as f64 / KIB,
        });
        all.collect()
    }

    fn latency(&self) -> Draft {
        let run = |bytes: u64| Run {
            parts: vec![chase(bytes, self.stride, self.loads)],
            unit: Unit::Cycles,
            x: bytes as f64 / KIB,
            closed: self.costs.chain(bytes, self.costs.rows(bytes)),
            ..Run::default()
        };
        let sizes = sizes(4 << 10, self.beyond());
        Draft {
            figure: Figure {
                id: "latency".to_owned(),
                title: "Latency by working set".to_owned(),
                about: "One chain of loads over all lines of the set in random order: each load waits for the one before.".to_owned(),
                x: "working set in KiB".to_owned(),
                y: "cycles a load".to_owned(),
                log_x: true,
                sizes: self.caches(),
                ..Figure::default()
            },
            curves: vec![("random".to_owned(), sizes.into_iter().map(run).collect())],
        }
    }

    /// Open rows, and rows of one bank in turn.
    fn rows(&self) -> Draft {
        let with_refresh = |cost: Option<f64>| cost.map(|cost| self.costs.refreshed(cost));
        let mut open = chase(self.beyond(), self.stride, self.loads);
        open.arguments.push(("order", "forward".to_owned()));
        let (row, banks) = self.platform.memories.first().map_or((8192, 8), |memory| {
            let dram = &memory.dram;
            let banks = dram
                .bank_bytes(memory.size.0)
                .map_or(u64::from(dram.banks), |_| 1);
            (dram.row.0, banks)
        });
        // One line of each row of a bank, and in each set of the last cache eight times as many lines as it has ways.
        let period = row * banks;
        let last = self.tile.l2.as_ref().or(self.tile.l1d.as_ref());
        let (span, ways) = last.map_or((1, 1), |cache| {
            let span = cache.sets() * u64::from(cache.line);
            (span, u64::from(cache.ways))
        });
        // A controller keeps written lines in its write queue, up to a mark, until others come, and answers reads of them from there. The program writes
        // all lines first, so with 32 times as many the queue answers at most one load of 32.
        let kept = self.platform.memories.first().map_or(0, |memory| {
            let queue = memory.dram.controller.write_queue;
            queue.map_or(0, |queue| u64::from(queue.low))
        });
        let count = (8 * ways * (span / period).max(1)).max(32 * kept);
        let mut conflict = chase(count * self.stride, self.stride, self.loads);
        conflict.arguments.extend([
            ("order", "forward".to_owned()),
            ("period", period.to_string()),
            ("length", self.stride.to_string()),
        ]);
        conflict.bytes = (count + 1) * period;
        let run = |x: f64, part: Part, closed| Run {
            parts: vec![part],
            unit: Unit::Cycles,
            x,
            closed,
            ..Run::default()
        };
        Draft {
            figure: Figure {
                id: "rows".to_owned(),
                title: "Open and other rows".to_owned(),
                about: format!(
                    "Lines in the order of memory find their row open (1); lines {period} bytes apart are in other rows of one bank (2). Neither set fits a cache."
                ),
                x: "1: open row, 2: another row".to_owned(),
                y: "cycles a load".to_owned(),
                ..Figure::default()
            },
            curves: vec![(
                "in order".to_owned(),
                vec![
                    run(1.0, open, with_refresh(self.costs.memory(true))),
                    run(2.0, conflict, with_refresh(self.costs.memory(false))),
                ],
            )],
        }
    }

    fn parallel(&self) -> Draft {
        let bytes = self.beyond();
        let chains = |chains: u64, part: Part, closed| {
            let mut part = part;
            part.arguments.push(("chains", chains.to_string()));
            Run {
                parts: vec![part],
                unit: Unit::Cycles,
                x: chains as f64,
                closed,
                ..Run::default()
            }
        };
        let all = (1..=CHAINS).map(|n| {
            let one = self.costs.chain(bytes, self.costs.rows(bytes));
            let overlap = n.min(self.costs.overlap().into()) as f64;
            // If banks are blocks, all rows are in one bank.
            let least = self.costs.row_cycle().unwrap_or(0.0);
            let closed = one.map(|one| (one / overlap).max(least));
            chains(n, chase(bytes, self.stride, self.loads), closed)
        });
        let mut curves = vec![("all banks".to_owned(), all.collect())];
        let memory = self.platform.memories.first();
        // If banks are blocks, a range is in one bank anyway.
        if let Some(memory) =
            memory.filter(|memory| memory.dram.bank_bytes(memory.size.0).is_none())
        {
            let (row, banks) = (memory.dram.row.0, u64::from(memory.dram.banks));
            let one = (1..=CHAINS).map(|n| {
                let mut part = chase(bytes, self.stride, self.loads);
                part.arguments.extend([
                    ("period", (row * banks).to_string()),
                    ("length", row.to_string()),
                ]);
                part.bytes = (bytes / row + 1) * row * banks;
                chains(n, part, None)
            });
            curves.push(("one bank".to_owned(), one.collect()));
        }
        Draft {
            figure: Figure {
                id: "parallel".to_owned(),
                title: "Chains side by side".to_owned(),
                about: "Several chains over a set that no cache holds, one load of each in turn. The time of a load falls until the hart has no more misses under way, or the banks have no more time.".to_owned(),
                x: "chains".to_owned(),
                y: "cycles a load".to_owned(),
                ..Figure::default()
            },
            curves,
        }
    }

    fn bandwidth(&self) -> Draft {
        let sizes = sizes(4 << 10, self.beyond());
        let curve = |(role, stream): (&'static str, Stream)| {
            let runs = sizes.iter().map(|&bytes| {
                let rounds = (self.loads * 8).div_ceil(bytes).max(1);
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
                    unit: Unit::Bandwidth,
                    x: bytes as f64 / KIB,
                    closed: self.costs.stream(stream, bytes),
                    ..Run::default()
                }
            });
            (role.to_owned(), runs.collect::<Vec<Run>>())
        };
        Draft {
            figure: Figure {
                id: "bandwidth".to_owned(),
                title: "Bandwidth by working set".to_owned(),
                about: "Loads, stores and copies of eight bytes, lines in order. Bytes of a copy are those that are read and those that are written.".to_owned(),
                x: "working set in KiB".to_owned(),
                y: "GB/s".to_owned(),
                log_x: true,
                sizes: self.caches(),
                ..Figure::default()
            },
            curves: [
                ("read", Stream::Read),
                ("write", Stream::Write),
                ("copy", Stream::Copy),
            ]
            .map(curve)
            .into(),
        }
    }
}
