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

/// The published curves of a figure of a platform.
pub(super) fn curves(platform: &str, figure: &str) -> Vec<Curve> {
    let (name, values) = match (platform, figure) {
        ("zcu102", "dma") => ("mpsoc-ecrts19, Table 2", &MPSOC_DMA),
        _ => return Vec::new(),
    };
    let points = values.iter().map(|&(x, y)| Point {
        x,
        y: y / x,
        closed: None,
    });
    vec![Curve {
        name: name.to_owned(),
        points: points.collect(),
    }]
}
