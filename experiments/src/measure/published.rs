//! Values that papers published for chips that platforms stand for.
//!
//! Why it exists: a picture shows them beside what was measured. What it deliberately does not know: how they were measured there; the
//! book's page says that.

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
        _ => Vec::new(),
    }
}
