//! Every figure of `measure`, at a small size: each has points in all of its curves, names of its axes and a picture, and closed forms hold where the page promises that.
//!
//! Why it exists: a figure may take minutes, so most were drawn by hand only. Here, most platforms have small caches. What it deliberately does not know: published
//! points, and what a curve must look like; tests of single figures are in `bare.rs` and `coherent.rs`.

use bulkhead_experiments::measure;
use bulkhead_runner::progress::Silent;
use std::collections::BTreeSet;
use std::fmt::Write;
use std::time::Instant;

/// Platform, changes that make its caches small, the measured loads (0: as many as `measure` takes), the largest set (0: any), and figures.
type Case = (
    &'static str,
    &'static [&'static str],
    u64,
    u64,
    &'static [&'static str],
);

/// Figures whose closed forms are compared are measured with all loads, where the page says that the forms hold: on few lines, what a program does before its loop counts. Of the others, few loads
/// are enough.
const ALL: [Case; 9] = [
    (
        "single",
        &["cache[l2]@size=64KiB", "cache[l1]@size=8KiB"],
        0,
        0,
        &["latency", "rows", "parallel", "ipc", "loads"],
    ),
    ("virt", &[], 0, 0, &["bandwidth", "streams", "rivals-cache"]),
    (
        "virt",
        &["cache[l2]@size=128KiB"],
        64,
        0,
        &["rivals-memory"],
    ),
    (
        "tx2",
        &["cache[a57-l2]@size=512KiB", "cache[denver2-l2]@size=512KiB"],
        0,
        384 << 10,
        &["tiles"],
    ),
    (
        "tx2",
        &["cache[a57-l2]@size=128KiB", "cache[denver2-l2]@size=128KiB"],
        64,
        64 << 10,
        &["beside-all", "slowdown", "slowdown-in-order"],
    ),
    (
        "imx6",
        &["cache[l2]@size=256KiB"],
        64,
        64 << 10,
        &["rivals-colours", "isolation"],
    ),
    ("zcu102-colours", &[], 64, 64 << 10, &["rivals-translator"]),
    (
        "zcu102",
        &["cache[a53-l2]@size=128KiB"],
        0,
        0,
        &["memories", "dma", "coupled"],
    ),
    ("epiphany3", &[], 0, 0, &["hops", "remote", "ports"]),
];

/// How far points may be from their closed forms: as far as the page says, or as `measure` itself tolerates (10 %). Figures without an entry promise nothing, or not at these sizes.
const CLOSED: [(&str, f64); 14] = [
    // Sets of 1 to 1.5 times a level.
    ("latency", 0.25),
    ("rows", 0.10),
    ("parallel", 0.10),
    ("bandwidth", 0.10),
    ("ipc", 0.015),
    ("loads", 0.10),
    ("streams", 0.10),
    ("rivals-cache", 0.10),
    ("tiles", 0.10),
    ("memories", 0.10),
    // Polls of the status, at 2 KiB.
    ("dma", 0.13),
    ("coupled", 0.05),
    ("hops", 0.05),
    // The form does not have the fetch of the loop.
    ("remote", 0.16),
];

#[test]
fn every_figure_has_points() {
    let mut seen = BTreeSet::new();
    let mut wide = String::new();
    for (platform, changes, loads, largest, figures) in ALL {
        let options = measure::Options {
            platform: platform.into(),
            overrides: changes.iter().map(|one| (*one).to_owned()).collect(),
            figures: figures.iter().map(|one| (*one).to_owned()).collect(),
            loads,
            largest,
        };
        let begin = Instant::now();
        let measured = measure::measure(&options, &Silent).expect("it can be measured");
        println!("{platform}: {:.1} s", begin.elapsed().as_secs_f64());
        let ids: BTreeSet<&str> = measured.figures.iter().map(|one| one.id.as_str()).collect();
        assert_eq!(ids, figures.iter().copied().collect(), "{platform}");
        assert_eq!(measured.figures.len(), figures.len(), "{platform}");
        for figure in &measured.figures {
            let id = format!("{} of {platform}", figure.id);
            for text in [&figure.title, &figure.about, &figure.x, &figure.y] {
                assert!(!text.is_empty(), "{id}");
            }
            assert!(!figure.curves.is_empty(), "{id}");
            let names: BTreeSet<&str> = figure.curves.iter().map(|one| one.name.as_str()).collect();
            assert_eq!(names.len(), figure.curves.len(), "{id}: {names:?}");
            let allowed = CLOSED.iter().find(|one| one.0 == figure.id);
            let (mut worst, mut known) = (0f64, 0);
            for curve in &figure.curves {
                assert!(!curve.name.is_empty() && !curve.points.is_empty(), "{id}");
                for point in &curve.points {
                    let is_there = point.x.is_finite() && point.y.is_finite() && point.y > 0.0;
                    assert!(is_there, "{id}, {}: {point:?}", curve.name);
                    let Some(closed) = point.closed else {
                        continue;
                    };
                    let off = point.y / closed - 1.0;
                    (worst, known) = (worst.max(off.abs()), known + 1);
                    if allowed.is_some_and(|(_, allowed)| off.abs() > *allowed) {
                        writeln!(
                            wide,
                            "{id}, {}: {} at {}, {closed} by the closed form",
                            curve.name, point.y, point.x
                        )
                        .expect("a string");
                    }
                }
                // What was measured has each case; what was published, some of them.
                if curve.source.is_none() && !figure.cases.is_empty() {
                    assert_eq!(curve.points.len(), figure.cases.len(), "{id}");
                }
            }
            println!(
                "{id}: {known} closed forms, at most {:.1} % off",
                100.0 * worst
            );
            assert!(allowed.is_none() || known > 0, "{id} has no closed form");
            let picture = figure.picture().expect("it can be drawn");
            assert!(picture.contains("<svg"), "{id}");
            seen.insert(figure.id.clone());
        }
        measured.page().expect("it has a page");
    }
    assert_eq!(seen.len(), 22, "{seen:?}");
    assert!(wide.is_empty(), "{wide}");
}
