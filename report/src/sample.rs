//! A small result for the tests of the report: two variants of one flow with made-up numbers, far from any
//! measurement.

use crate::book::Book;
use crate::distribution::distribution;
use crate::result::*;
use crate::verdict::{Promise, Verdict};

fn flow(latencies: &[u64]) -> FlowResult {
    FlowResult {
        name: "loop".to_owned(),
        from: "sensor".to_owned(),
        to: "actuator".to_owned(),
        through: vec!["controller".to_owned()],
        deadline: Some(1_600_000),
        misses: latencies.iter().filter(|&&l| l > 1_600_000).count() as u64,
        lost: 0,
        open: 0,
        doubled: 0,
        latency: distribution(latencies.iter().copied()),
        samples: latencies
            .iter()
            .enumerate()
            .map(|(index, &latency)| Sample {
                number: index as u64,
                begin: index as u64 * 4_000_000,
                latency,
            })
            .collect(),
        bound: None,
        unbounded: Some("its applications were not measured alone".to_owned()),
    }
}

/// The hog's and the controller's traffic on the link to the memory.
fn links(hog: u64) -> Vec<LinkResult> {
    let traffic = |application: &str, bytes| Traffic {
        application: application.to_owned(),
        bytes,
    };
    vec![LinkResult {
        from: LinkEnd::Router(0),
        to: LinkEnd::Tile(8),
        channel: 0,
        busy: 10_000 + hog,
        traffic: vec![traffic("hog", hog * 16), traffic("controller", 800)],
    }]
}

fn variant(name: &str, latencies: &[u64], hog: u64) -> VariantResult {
    let wait = |culprit: &str, ticks| Interference {
        victim: "controller".to_owned(),
        culprit: culprit.to_owned(),
        resource: "dram bank".to_owned(),
        ticks,
    };
    VariantResult {
        name: name.to_owned(),
        ticks: 40_000_000,
        end: End::Duration,
        instructions: 1_234_567,
        digest: "00".repeat(32),
        flows: vec![flow(latencies)],
        spans: Vec::new(),
        tasks: vec![TaskResult {
            application: "sensor".to_owned(),
            deadline: 1_600_000,
            allowed: 0,
            jobs: 4,
            misses: 0,
            open: 0,
            missing: 0,
            worst: Some(600),
            begin: Some(20),
        }],
        requests: vec![RequestResult {
            application: "controller".to_owned(),
            kind: "cache miss".to_owned(),
            to: "memory 8".to_owned(),
            count: 1000,
            worst: 900,
            bound: (hog > 0).then(|| Bound {
                ticks: 1200,
                method: "network calculus".to_owned(),
                covers: "one chunk".to_owned(),
            }),
            lumped: None,
            tokens: None,
            unbounded: None,
        }],
        interference: vec![wait("hog", hog), wait("refresh", 50), wait("sensor", 7)],
        tiles: vec![TileResult {
            tile: 2,
            applications: vec!["sensor".to_owned()],
            instructions: 5,
            counters: vec![Counter {
                name: "l1d.misses".to_owned(),
                value: 3,
            }],
        }],
        incidents: Vec::new(),
        checks: Vec::new(),
        links: links(hog),
        quotas: Vec::new(),
        clocks: Vec::new(),
    }
}

/// The result.
pub fn sample() -> RunResult {
    RunResult {
        schema: SCHEMA,
        system: "quickstart".to_owned(),
        platform: "tiled-gem5".to_owned(),
        ticks_per_second: 4_000_000_000,
        cycle_ticks: 2,
        placement: Default::default(),
        provenance: Provenance {
            version: "0.1.0".to_owned(),
            inputs: vec![Input {
                name: "quickstart.xml".to_owned(),
                sha256: "ab".repeat(32),
            }],
            overrides: vec!["hog/limit@noc=8MiB/s".to_owned()],
        },
        variants: vec![
            variant("alone", &[4000, 4000, 4100, 5000], 0),
            variant("unregulated", &[9000, 12_000, 1_700_000, 8000], 5_000),
        ],
        added: Vec::new(),
        verdict: Verdict::of(vec![
            Promise::judged("alone", "flow loop: 0 late of 4, 0 allowed", true),
            Promise::judged("unregulated", "flow loop: 1 late of 4, 0 allowed", false),
        ]),
        peer: None,
    }
}

#[test]
fn the_table_reads_well() {
    insta::assert_snapshot!(super::table::summary(&sample()));
}

#[test]
fn the_page_holds_everything_inside() {
    let page = super::page::report(&sample(), &[], &Book::default()).expect("draws");
    for text in [
        "quickstart",
        "unregulated",
        "controller",
        "end-to-end latency in us",
        "FAILED",
        "l1d.misses",
    ] {
        assert!(page.contains(text), "{text}");
    }
    // Nothing may be loaded: no scripts, links or images from elsewhere. The only address is SVG's own
    // namespace.
    let without_names = page.replace("http://www.w3.org/2000/svg", "");
    for text in [
        "http:", "https:", "src=", "href=", "<script", "@import", "url(",
    ] {
        assert!(!without_names.contains(text), "{text}");
    }
}

#[test]
fn a_result_survives_its_file() {
    let text = serde_json::to_string(&sample()).expect("writes");
    let back: RunResult = serde_json::from_str(&text).expect("reads");
    assert_eq!(back, sample());
}

/// The sample with a second chip, both with a network card.
pub fn two_chips() -> RunResult {
    let mut far = sample();
    far.system = "far".to_owned();
    far.verdict = Verdict::of(vec![Promise::judged("alone", "far and held", true)]);
    let counter = |name: &str, value| Counter {
        name: name.to_owned(),
        value,
    };
    let counts = [
        ("frames sent", 912),
        ("frames received", 900),
        ("frames dropped", 7),
        ("frames malformed", 0),
    ];
    let card = counts.map(|(name, value)| counter(name, value));
    far.variants[0].tiles[0].counters.extend(card);
    RunResult {
        peer: Some(Box::new(far)),
        ..sample()
    }
}

#[test]
fn the_other_chip_is_announced_and_its_frames_are_counted() {
    let page = super::page::report(&two_chips(), &[], &Book::default()).expect("draws");
    let parts = [
        "A cable joins this chip with another one, far on tiled-gem5",
        "<td>far/alone</td>",
        "Frames of network cards",
    ];
    for part in parts {
        assert!(page.contains(part), "{part}");
    }
    let text = super::table::summary(&two_chips());
    assert!(text.contains("Held: 2 promises"), "{text}");
    let frames = text.split("Frames of network cards:").nth(1);
    insta::assert_snapshot!(frames.unwrap_or_default(), @r"

    variant   tile   sent   received   dropped   malformed
    -------------------------------------------------------
    alone        2    912        900         7           0
    ");
    // Without a card, frames are not mentioned.
    assert!(!super::table::summary(&sample()).contains("Frames"));
}
