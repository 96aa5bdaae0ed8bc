//! The parts of the check that need no run.

use super::execute::Stand;
use super::result::{
    AttackResult, AuditResult, Difference, DomainResult, FlowAudit, RequestAudit, SCHEMA, Verdict,
};
use super::text;
use crate::result::{Bound, Interference, Provenance};
use bulkhead_model::{LoadOptions, load_system};

fn sample() -> AuditResult {
    let attack = |name: &str, slowdown, identical| AttackResult {
        name: name.to_owned(),
        plans: vec![format!("hog: {name}")],
        arguments: vec!["aaaa".to_owned()],
        identical,
        slowdown,
        of: "flow loop".to_owned(),
        waited: 300,
        harm: Vec::new(),
    };
    AuditResult {
        schema: SCHEMA,
        system: "sample".to_owned(),
        variant: None,
        platform: "tiled-gem5".to_owned(),
        ticks_per_second: 4_000_000_000,
        cycle_ticks: 2,
        window: 40_000_000,
        seed: 1,
        searches: 1,
        provenance: Provenance::default(),
        domains: vec![DomainResult {
            name: "control".to_owned(),
            criticality: 'A',
            applications: vec!["sensor".to_owned()],
            tiles: vec![2],
            attackers: vec!["hog".to_owned()],
            start: 4_000_000,
            verdict: Verdict::Bounded,
            owed: true,
            held: true,
            reasons: Vec::new(),
            notes: vec!["a note".to_owned()],
            attacks: vec![
                attack("compute", 1000, true),
                attack("memory writes", 1250, false),
            ],
            worst: Some(1),
            difference: Some(Difference {
                tile: 2,
                event: 77,
                alone_at: Some(4_000_100),
                alone: "a cache line arrives from tile 8 (64 bytes)".to_owned(),
                attacked_at: Some(4_000_130),
                attacked: "a cache line arrives from tile 8 (64 bytes)".to_owned(),
            }),
            account: vec![Interference {
                victim: "sensor".to_owned(),
                culprit: "hog".to_owned(),
                resource: "memory 8 banks".to_owned(),
                ticks: 300,
            }],
            waits_alone: 12,
            flows: vec![FlowAudit {
                name: "loop".to_owned(),
                deadline: Some(1_600_000),
                alone: 30_000,
                attacked: 37_500,
                bound: None,
                unbounded: None,
            }],
            requests: vec![RequestAudit {
                application: "sensor".to_owned(),
                kind: "cache miss".to_owned(),
                alone: 200,
                attacked: 500,
                bound: Some(Bound {
                    ticks: 1000,
                    method: "m".to_owned(),
                    covers: "c".to_owned(),
                }),
                unbounded: None,
            }],
        }],
    }
}

#[test]
fn the_summary_reads_well() {
    insta::assert_snapshot!(text::summary(&sample()));
}

#[test]
fn the_page_says_the_same_and_loads_nothing() {
    let page = super::page::page(&sample());
    for part in [
        "bounded disturbance",
        "1.250",
        "memory 8 banks",
        "event 77",
        "a note",
    ] {
        assert!(page.contains(part), "{part}");
    }
    for foreign in ["http://", "https://", "<script", "src="] {
        assert!(!page.contains(foreign), "{foreign}");
    }
}

#[test]
fn the_schema_is_read_back() {
    let text = serde_json::to_string(&sample()).expect("serialises");
    let back: AuditResult = serde_json::from_str(&text).expect("reads");
    assert_eq!(back, sample());
}

#[test]
fn adversaries_keep_what_the_others_had() {
    let system = load_system("quickstart", &LoadOptions::default()).expect("valid");
    let stand = Stand::new(&system, 0);
    assert_eq!(stand.attackers.len(), 3);
    for &index in &stand.attackers {
        let (before, after) = (&system.apps[index], &stand.system.apps[index]);
        assert_eq!(after.program, super::ADVERSARY);
        assert_eq!(
            (
                before.tile,
                before.memory,
                before.limit,
                &before.sgates,
                &before.mgates
            ),
            (
                after.tile,
                after.memory,
                after.limit,
                &after.sgates,
                &after.mgates
            )
        );
    }
    // The domain itself is as it was, its flow too.
    assert_eq!(stand.system.apps[0], system.apps[0]);
    assert_eq!(stand.system.flows.len(), 1);
    assert_eq!(stand.tiles(), [2, 3, 4]);
    // Hogs that run in the background are waited for when they are checked, or nothing would be.
    let hogs = Stand::new(&system, 1);
    assert!(hogs.system.flows.is_empty());
    assert!(hogs.system.apps.iter().any(|app| !app.background));
}
