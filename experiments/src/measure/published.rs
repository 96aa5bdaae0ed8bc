//! Values that papers published for chips that platforms stand for.
//!
//! Why it exists: a picture shows them beside what was measured. What it deliberately does not know: how they were measured there; the
//! book's page says that.

use super::rates::{INSTRUCTIONS, place};
use bulkhead_report::measure::{Curve, Point};

/// Averages of Table 2 of mpsoc-ecrts19: KiB, microseconds. The picture has microseconds for each KiB.
const MPSOC_DMA: [(f64, f64); 8] = [
    (2.0, 4.92),
    (4.0, 7.15),
    (8.0, 11.63),
    (9.1, 12.91),
    (16.0, 20.62),
    (22.0, 27.42),
    (32.0, 38.52),
    (1024.0, 1149.44),
];

/// Figure 2 of hercules-18 as its text says it (Section III-C): KiB, and how many times as long a load takes as alone.
const HERCULES: [(&str, &[(f64, f64)]); 3] = [
    (
        "hercules-18, below the first level",
        &[(4.0, 1.0), (16.0, 1.0)],
    ),
    ("above the second level: at least", &[(4096.0, 5.0)]),
    ("at most", &[(4096.0, 10.0)]),
];

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

/// The published curves of a figure of a platform.
pub(super) fn curves(platform: &str, figure: &str) -> Vec<Curve> {
    let curve = |name: &str, points: Vec<(f64, f64)>| {
        let points = points
            .into_iter()
            .map(|(x, y)| Point { x, y, closed: None });
        Curve {
            name: name.to_owned(),
            points: points.collect(),
        }
    };
    match (platform, figure) {
        ("zcu102", "dma") => {
            let points = MPSOC_DMA.map(|(x, y)| (x, y / x));
            vec![curve("mpsoc-ecrts19, Table 2", points.into())]
        }
        ("tx2", "slowdown") => HERCULES
            .map(|(name, points)| curve(name, points.into()))
            .into(),
        ("imx6" | "imx6-ooo", "ipc") => vec![curve("AM437x, Cortex-A9", chains(CHAINS_A9))],
        ("zcu102", "ipc") => vec![curve("AM65x, Cortex-A53", chains(CHAINS_A53))],
        ("imx6" | "imx6-ooo", "loads") => loads(LOADS_A9)
            .map(|(name, points)| curve(name, points))
            .into(),
        ("tx2", "loads") => loads(LOADS_A57)
            .map(|(name, points)| curve(name, points))
            .into(),
        ("imx6" | "imx6-ooo", "streams") => vec![curve("i.MX 6Quad", numbered(STREAMS_A9))],
        ("tx2", "streams") => vec![curve("Tegra X1", numbered(STREAMS_A57))],
        _ => Vec::new(),
    }
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
