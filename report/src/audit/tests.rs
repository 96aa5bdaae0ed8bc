//! The check's texts and pages on made-up results.

use super::result::{
    AttackResult, AuditResult, ChipResult, Clock, Difference, DomainResult, FlowAudit,
    RequestAudit, SCHEMA, Verdict,
};
use super::text;
use crate::book::Book;
use crate::result::{Bound, Interference, Provenance};

fn sample() -> AuditResult {
    let attack = |name: &str, slowdown, identical| AttackResult {
        name: name.to_owned(),
        plans: vec![format!("hog: {name}")],
        arguments: vec!["aaaa".to_owned()],
        identical,
        slowdown,
        of: "flow loop".to_owned(),
        took: Some([2000, 2 * slowdown]),
        waited: 300,
        harm: Vec::new(),
        first: None,
        refused: 0,
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
        added: Vec::new(),
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
            stopped: Vec::new(),
            gone: None,
            needs: Vec::new(),
            reasons: Vec::new(),
            notes: vec!["a note".to_owned()],
            attacks: vec![
                attack("compute", 1000, true),
                attack("memory writes", 1250, false),
            ],
            worst: Some(1),
            difference: Some(Difference {
                beside: "memory writes".to_owned(),
                tile: 2,
                event: 77,
                alone_at: Some(4_000_100),
                alone: "a cache line arrives from tile 8 (64 bytes)".to_owned(),
                attacked_at: Some(4_000_130),
                attacked: "a cache line arrives from tile 8 (64 bytes)".to_owned(),
            }),
            accounted: Some(1),
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
fn a_domain_beside_which_nobody_was_attacked_is_not_judged() {
    let mut result = sample();
    assert_eq!(result.verdict().code(false), 0);
    result.domains[0].held = false;
    assert_eq!(result.verdict().code(false), 3);
    result.domains[0].held = true;
    result.domains[0].attackers.clear();
    let said = text::summary(&result);
    assert!(said.contains("Nothing was judged, of 1 promise:"), "{said}");
    assert!(
        said.contains("protection from everybody, because no other domain can attack it"),
        "{said}"
    );
    assert!(said.contains("criticality A): not judged\n"), "{said}");
    // Nothing was compared, so nothing is alike.
    result.domains[0].verdict = Verdict::Identical;
    result.domains[0].attacks.clear();
    let said = text::summary(&result);
    assert!(!said.contains("identical"), "{said}");
    let page = super::page::page(&result, &Book::default());
    assert!(!page.contains("identical</span>"), "{page}");
}

/// Whoever is not there cannot be disturbed.
#[test]
fn a_domain_that_stopped_by_itself_is_not_held() {
    let mut result = sample();
    result.domains[0].stopped = vec!["sensor stopped: exit 3".to_owned()];
    // Started again, it is there, but has ended as it must not.
    assert_eq!(result.code(), 4);
    assert_eq!(result.verdict().counts().held, 1);
    result.domains[0].gone = Some("`sensor` was gone before the end: stopped: exit 3".to_owned());
    for verdict in [Verdict::Identical, Verdict::Bounded] {
        result.domains[0].verdict = verdict;
        let said = text::summary(&result);
        for part in [
            "Nothing was judged, of 1 promise:",
            "Happened:\n  domain control, while all others slept: sensor stopped: exit 3",
            "`sensor` was gone before the end",
            "): not judged",
        ] {
            assert!(said.contains(part), "{part} in {said}");
        }
        assert_eq!(result.code(), 4);
    }
    // Without the server that an adversary replaces it may stop.
    result.domains[0].needs = vec!["server".to_owned()];
    assert_eq!(result.code(), 0);
    assert_eq!(result.verdict().counts().not_judged, 1);
    // What failed has failed.
    result.domains[0].held = false;
    assert_eq!(result.code(), 3);
}

#[test]
fn the_page_says_the_same_and_loads_nothing() {
    let page = super::page::page(&sample(), &Book::default());
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
    let page = super::page::page(&two_chips(), &Book::default());
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
