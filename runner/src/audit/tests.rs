//! The parts of the check that need no run.

use super::execute::Stand;
use super::result::{
    AttackResult, AuditResult, ChipResult, Clock, Difference, DomainResult, FlowAudit,
    RequestAudit, SCHEMA, Verdict,
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
        chips: Vec::new(),
        domains: vec![DomainResult {
            name: "control".to_owned(),
            chip: None,
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
    let stand = Stand::new(&system, 0, 0);
    assert_eq!(stand.attackers.len(), 3);
    for place in &stand.attackers {
        let index = place.app;
        let (before, after) = (&system.apps[index], &stand.system().apps[index]);
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
    assert_eq!(stand.system().apps[0], system.apps[0]);
    assert_eq!(stand.system().flows.len(), 1);
    assert_eq!(stand.tiles(), [2, 3, 4]);
    // Hogs that run in the background are waited for when they are checked, or nothing would be.
    let hogs = Stand::new(&system, 0, 1);
    assert!(hogs.system().flows.is_empty());
    assert!(hogs.system().apps.iter().any(|app| !app.background));
}

/// The sample with a second chip, whose ticks are longer.
fn two_chips() -> AuditResult {
    let mut result = sample();
    let own = Clock {
        ticks_per_second: result.ticks_per_second,
        cycle_ticks: result.cycle_ticks,
    };
    let slow = Clock {
        ticks_per_second: 1_000_000_000,
        cycle_ticks: 10,
    };
    let chips = [("sample", "tiled-gem5", own), ("far", "tiled-fpga", slow)];
    result.chips = chips
        .map(|(name, platform, clock)| ChipResult {
            name: name.to_owned(),
            platform: platform.to_owned(),
            clock,
            window: clock.ticks_per_second / 100,
        })
        .into();
    result.domains[0].chip = Some("sample".to_owned());
    let mut far = result.domains[0].clone();
    far.name = "far/net".to_owned();
    far.chip = Some("far".to_owned());
    far.attackers = vec!["echo".to_owned(), "sample/hog".to_owned()];
    (far.verdict, far.criticality, far.held) = (Verdict::Unbounded, 'B', true);
    far.owed = false;
    far.account[0].culprit = "frames from sample".to_owned();
    far.account[0].resource = "network card".to_owned();
    result.domains.push(far);
    result
}

#[test]
fn the_summary_of_two_chips_says_which_domain_is_where() {
    insta::assert_snapshot!(text::summary(&two_chips()));
}

#[test]
fn the_page_of_two_chips_uses_each_chips_clock() {
    let page = super::page::page(&two_chips());
    for part in [
        "and far on tiled-fpga",
        "far/net (B, chip far)",
        "Domain far/net, chip far",
        // 30 000 ticks: of 250 ps in cycles of two, of 1 ns in cycles of ten.
        "cycles (7.50 us)",
        "cycles (30.00 us)",
    ] {
        assert!(page.contains(part), "{part}");
    }
    let text = serde_json::to_string(&two_chips()).expect("serialises");
    let back: AuditResult = serde_json::from_str(&text).expect("reads");
    assert_eq!(back, two_chips());
    // Of one chip nothing of it is there.
    let one = serde_json::to_string(&sample()).expect("serialises");
    assert!(!one.contains("chip"));
}

#[test]
fn adversaries_take_the_places_on_both_chips() {
    let system = load_system("network/two-chips", &LoadOptions::default()).expect("valid");
    let names = |stand: &Stand| -> Vec<String> {
        let attackers = stand.attackers.iter();
        attackers.map(|place| stand.name(*place)).collect()
    };
    // The first chip's network service: its clients, and everybody over there, the card's driver with it.
    let net = Stand::new(&system, 0, 0);
    assert_eq!(
        names(&net),
        ["ping", "source", "far/network", "far/echo", "far/sink"]
    );
    assert_eq!(net.cards(), [false, false, true, false, false]);
    assert_eq!(
        (net.label(), net.chip_name()),
        ("net".to_owned(), Some("two-chips"))
    );
    assert_eq!(net.neighbour(7), Some("far".to_owned()));
    assert_eq!(net.neighbour(2), None);
    let far = &net.whole.peer.as_ref().expect("a peer").system;
    let driver = &far.apps[0];
    assert_eq!(driver.program, crate::quiet::ADVERSARY_WITH_CARD);
    let known: Vec<_> = driver.arguments.iter().map(|a| a.name.as_str()).collect();
    assert_eq!(known, ["plan", "address", "neighbours"]);
    // Nobody over there ends, so the chip does not end, either.
    assert!(far.apps.iter().all(|app| !app.background));
    assert!(net.system().apps[1..].iter().all(|app| app.background));
    // The same from the other side.
    let servers = Stand::new(&system, 1, 1);
    assert_eq!(servers.label(), "far/servers");
    assert_eq!(servers.tiles(), [2, 3]);
    assert_eq!(
        names(&servers),
        [
            "two-chips/network",
            "two-chips/ping",
            "two-chips/source",
            "network"
        ]
    );
    assert_eq!(servers.system().name, "far");
    assert_eq!(servers.neighbour(7), Some("two-chips".to_owned()));
    let openings = super::compare::openings(&Stand::new(&system, 1, 0));
    let cable = "two-chips sends frames to the network card of network: ";
    assert!(
        openings.iter().any(|o| o.starts_with(cable)),
        "{openings:?}"
    );
    // Who has no card is not reached by frames.
    let openings = super::compare::openings(&servers);
    assert!(
        openings.iter().all(|o| !o.contains("frames")),
        "{openings:?}"
    );
}
