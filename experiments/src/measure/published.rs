//! Values that papers published for chips that platforms stand for.
//!
//! Why it exists: a picture shows them beside what was measured. What it deliberately does not know: how they were measured there; the
//! book's page says that. The papers' points are data in `catalog/figures`; what measurements of other chips need to be converted first is here.

use super::ports;
use super::rates::{INSTRUCTIONS, place};
use bulkhead_report::measure::{Curve, Point};
use bulkhead_runner::error::Error;
use serde::Deserialize;

/// `catalog/figures/measure.json`.
#[derive(Deserialize)]
struct File {
    curves: Vec<Entry>,
}

/// A published curve.
#[derive(Deserialize)]
struct Entry {
    platforms: Vec<String>,
    figures: Vec<String>,
    name: String,
    source: String,
    points: Vec<(f64, f64)>,
}

/// The part of `catalog/figures/m2os.json` that is drawn.
#[derive(Deserialize)]
struct Tables {
    rows: Vec<Row>,
}

/// An operation on a port: its program and the number of its span.
#[derive(Deserialize)]
struct Row {
    id: String,
    average_ns: f64,
}

/// Cycles an operation of a chain takes: `lat_ops` in the performance guides of TI, nanoseconds by the clock. The page names the revisions.
const CHAINS_A9: [(&str, f64); 5] = [
    ("add-chain", 1.03),
    ("multiply-chain", 4.14),
    ("float-add-chain", 5.02),
    ("float-multiply-chain", 7.03),
    ("float-divide-chain", 25.07),
];
/// The Cortex-A53 at 800 MHz: 64 bits, and double precision. A multiplication takes 6.28 ns (which would look like a circle's constant).
const CHAINS_A53: [(&str, f64); 5] = [
    ("add-chain", 1.27 * 0.8),
    ("multiply-chain", 5.024),
    ("float-add-chain", 5.06 * 0.8),
    ("float-multiply-chain", 5.05 * 0.8),
    ("float-divide-chain", 27.81 * 0.8),
];

/// Nanoseconds of one load of each of 1, 2, 4 and 8 chains (`ramlat` in `sbc-bench`), and how many nanoseconds a cycle has: the clock of the
/// measured chip in the first two levels, that of the platform in memory.
type Loads = [(&'static str, f64, [f64; 4]); 3];
const LOADS_A9: Loads = [
    (
        "i.MX 6Quad, 4 KiB",
        1.0 / 0.979,
        [4.076, 4.083, 4.334, 8.731],
    ),
    (
        "i.MX 6Quad, 128 KiB",
        1.0 / 0.979,
        [31.29, 31.51, 42.08, 83.89],
    ),
    ("i.MX 6Quad, 8 MiB", 1.0 / 0.8, [174.6, 177.7, 196.8, 381.7]),
];
const LOADS_A57: Loads = [
    ("Tegra X1, 4 KiB", 1.0 / 1.476, [2.710, 2.710, 2.710, 5.420]),
    (
        "Tegra X1, 256 KiB",
        1.0 / 1.476,
        [16.91, 15.39, 22.70, 45.68],
    ),
    ("Tegra X1, 16 MiB", 1.0 / 2.0, [143.5, 146.4, 148.3, 200.8]),
];

/// Gigabytes in a second of reads, writes and copies.
const STREAMS_A9: [f64; 3] = [0.7411, 0.3406, 0.3063];
const STREAMS_A57: [f64; 3] = [4.7479, 11.7583, 4.1828];

const TI_A9: &str = "lat_ops, Linux 09.03 Performance Guide of TI, AM437x-gpevm";
const TI_A53: &str = "lat_ops, RT-linux 11.02 Performance Guide of TI, AM65x";
const BENCH_A9: &str = "ThomasKaiser/sbc-bench, results/4132.txt, commit 0edf275";
const BENCH_A57: &str = "ThomasKaiser/sbc-bench, results/4rLX.txt, commit 5a56acb";
const STREAMS_OF_A57: &str = "ThomasKaiser/sbc-bench, results/4rLX.txt, commit 5a56acb (read), and results/3Ufc.txt, commit 5f295de (write, copy)";

/// A file of the catalog.
fn file<T: for<'a> Deserialize<'a>>(name: &str, text: &str) -> Result<T, Error> {
    let failed = |error| Error::Machine(format!("catalog/figures/{name}: {error}"));
    serde_json::from_str(text).map_err(failed)
}

fn curve(name: &str, source: &str, points: Vec<(f64, f64)>) -> Curve {
    let points = points.into_iter();
    let points = points.map(|(x, y)| Point { x, y, closed: None });
    Curve {
        name: name.to_owned(),
        points: points.collect(),
        source: Some(source.to_owned()),
    }
}

/// The published curves of a figure of a platform.
pub(super) fn curves(platform: &str, figure: &str) -> Result<Vec<Curve>, Error> {
    let papers: File = file(
        "measure.json",
        include_str!("../../../catalog/figures/measure.json"),
    )?;
    let is_meant = |one: &Entry| {
        one.platforms.iter().any(|name| name == platform)
            && one.figures.iter().any(|name| name == figure)
    };
    let papers = papers.curves.into_iter().filter(is_meant);
    let mut all: Vec<Curve> = papers
        .map(|one| curve(&one.name, &one.source, one.points))
        .collect();
    let loads =
        |of: Loads, source: &str| loads(of).map(|(name, points)| curve(name, source, points));
    match (platform, figure) {
        ("epiphany3", ports::ID) => all.extend(table_5()?),
        ("imx6" | "imx6-ooo", "ipc") => {
            all.push(curve("AM437x, Cortex-A9", TI_A9, chains(CHAINS_A9)))
        }
        ("zcu102", "ipc") => all.push(curve("AM65x, Cortex-A53", TI_A53, chains(CHAINS_A53))),
        ("imx6" | "imx6-ooo", "loads") => all.extend(loads(LOADS_A9, BENCH_A9)),
        ("tx2", "loads") => all.extend(loads(LOADS_A57, BENCH_A57)),
        ("imx6" | "imx6-ooo", "streams") => {
            all.push(curve("i.MX 6Quad", BENCH_A9, numbered(STREAMS_A9)));
        }
        ("tx2", "streams") => all.push(curve("Tegra X1", STREAMS_OF_A57, numbered(STREAMS_A57))),
        _ => {}
    }
    Ok(all)
}

/// Table 5 of m2os-mc-ngres21: operations on ports, one to six hops away.
fn table_5() -> Result<Vec<Curve>, Error> {
    let tables: Tables = file(
        "m2os.json",
        include_str!("../../../catalog/figures/m2os.json"),
    )?;
    let all = ports::OPERATIONS.map(|(operation, name)| {
        let points = (1..=6u64).filter_map(|hops| {
            let id = format!("ports/{}", 10 * operation + hops);
            let row = tables.rows.iter().find(|row| row.id == id)?;
            Some((hops as f64, row.average_ns))
        });
        curve(
            &format!("m2os-mc-ngres21, {name}"),
            "m2os-mc-ngres21, Table 5: averages of 1000 runs on Epiphany III at 600 MHz",
            points.collect(),
        )
    });
    Ok(all.into())
}

/// Instructions per cycle of loops whose operations take so many cycles.
fn chains(all: [(&str, f64); 5]) -> Vec<(f64, f64)> {
    let share = f64::from(INSTRUCTIONS) / f64::from(INSTRUCTIONS - 2);
    let point = |(name, cycles)| Some((place(name)?, share / cycles));
    all.into_iter().filter_map(point).collect()
}

/// Cycles a load by chains.
fn loads(all: Loads) -> [(&'static str, Vec<(f64, f64)>); 3] {
    all.map(|(name, cycle, times)| {
        let points = [1.0, 2.0, 4.0, 8.0].into_iter().zip(times);
        let points = points.map(|(chains, time)| (chains, time / cycle / chains));
        (name, points.collect())
    })
}

fn numbered(all: [f64; 3]) -> Vec<(f64, f64)> {
    [1.0, 2.0, 3.0].into_iter().zip(all).collect()
}
