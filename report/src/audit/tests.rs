//! The check's texts and pages on made-up results.

use super::result::{
    AttackResult, AuditResult, ChipResult, Clock, Difference, DomainResult, FlowAudit,
    RequestAudit, Ruling, SCHEMA, Verdict, gone,
};
use super::text;
use crate::book::Book;
use crate::result::{AddedRun, Bound, Interference, Provenance};
use crate::verdict::Judgement;

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
            ruling: Ruling::of(Verdict::Bounded, true, true, None),
            owed: true,
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

/// They have no plans, because nobody drew what they do.
#[test]
fn the_systems_own_programs_are_named_as_the_worst_attack() {
    let mut result = sample();
    result.domains[0].attacks[0].plans.clear();
    result.domains[0].worst = Some(0);
    let said = text::summary(&result);
    let told = "  that is: the system's own programs, as described; ";
    assert!(said.contains(told), "{said}");
}

#[test]
fn a_domain_beside_which_nobody_was_attacked_is_not_judged() {
    let mut result = sample();
    assert_eq!(result.verdict().code(false), 0);
    result.domains[0].ruling = Ruling::of(Verdict::Unbounded, true, true, None);
    assert_eq!(result.verdict().code(false), 3);
    // Nothing was compared, so nothing is identical.
    result.domains[0].ruling = Ruling::of(Verdict::Identical, true, false, None);
    result.domains[0].attackers.clear();
    result.domains[0].attacks.clear();
    result.domains[0].worst = None;
    let said = text::summary(&result);
    assert!(said.contains("Nothing was judged, of 1 promise:"), "{said}");
    assert!(
        said.contains("protection from everybody, because no other domain can attack it"),
        "{said}"
    );
    assert!(said.contains("criticality A): not judged\n"), "{said}");
    assert!(!said.contains("identical"), "{said}");
    let page = super::page::page(&result, &Book::default());
    assert!(!page.contains("identical</span>"), "{page}");
    let file = serde_json::to_value(&result).expect("serialises");
    let domain = &file["domains"][0];
    assert_eq!(domain["verdict"], "not-judged");
    assert_eq!(domain["judgement"], "not-judged");
    assert_eq!(domain["because"], "no other domain can attack it");
}

/// Table, page and file show one ruling, so a reader of the file knows what the others say.
#[test]
fn a_ruling_is_good_only_of_who_was_there_and_was_attacked() {
    let gone = || Some("`sensor` was gone".to_owned());
    let all = [
        // Compared, owed, attacked, gone: said, judged.
        (
            Verdict::Identical,
            true,
            true,
            None,
            Verdict::Identical,
            Judgement::Held,
        ),
        (
            Verdict::Bounded,
            true,
            true,
            None,
            Verdict::Bounded,
            Judgement::Held,
        ),
        (
            Verdict::Unbounded,
            false,
            true,
            None,
            Verdict::Unbounded,
            Judgement::Held,
        ),
        (
            Verdict::Unbounded,
            true,
            true,
            None,
            Verdict::Unbounded,
            Judgement::Failed,
        ),
        (
            Verdict::Broken,
            false,
            true,
            None,
            Verdict::Broken,
            Judgement::Failed,
        ),
        (
            Verdict::Identical,
            true,
            false,
            None,
            Verdict::NotJudged,
            Judgement::NotJudged,
        ),
        (
            Verdict::Bounded,
            true,
            true,
            gone(),
            Verdict::NotJudged,
            Judgement::NotJudged,
        ),
        (
            Verdict::Unbounded,
            false,
            true,
            gone(),
            Verdict::NotJudged,
            Judgement::NotJudged,
        ),
        (
            Verdict::Unbounded,
            true,
            true,
            gone(),
            Verdict::Unbounded,
            Judgement::Failed,
        ),
        (
            Verdict::Broken,
            false,
            true,
            gone(),
            Verdict::Broken,
            Judgement::Failed,
        ),
    ];
    for (compared, owed, attacked, gone, said, judged) in all {
        let ruling = Ruling::of(compared, owed, attacked, gone.clone());
        let case = format!("{compared:?}, {owed}, {attacked}, {gone:?}");
        assert_eq!(
            (ruling.verdict(), ruling.judgement()),
            (said, judged),
            "{case}"
        );
        let unjudged = judged == Judgement::NotJudged;
        assert_eq!(ruling.because().is_some(), unjudged, "{case}");
    }
}

/// An attack cannot disturb a domain that does not exist.
#[test]
fn a_domain_that_stopped_by_itself_is_not_held() {
    let mut result = sample();
    result.domains[0].stopped = vec!["sensor stopped: exit 3".to_owned()];
    // It was restarted and exists, but it ended when it must not.
    assert_eq!(result.code(), 4);
    assert_eq!(result.verdict().counts().held, 1);
    let why = "`sensor` did not run to the end: stopped: exit 3";
    result.domains[0].gone = Some(why.to_owned());
    for verdict in [Verdict::Identical, Verdict::Bounded] {
        result.domains[0].ruling = Ruling::of(verdict, true, true, gone(Some(why), &[]));
        let said = text::summary(&result);
        for part in [
            "Nothing was judged, of 1 promise:",
            "Happened:\n  domain control, while all others slept: sensor stopped: exit 3",
            "`sensor` did not run to the end",
            "): not judged",
        ] {
            assert!(said.contains(part), "{part} in {said}");
        }
        assert_eq!(result.code(), 4);
    }
    // Without the server, which an adversary replaces, it may stop.
    let needs = vec!["server".to_owned()];
    let gone = || gone(Some(why), &needs);
    result.domains[0].needs = needs.clone();
    result.domains[0].ruling = Ruling::of(Verdict::Identical, true, true, gone());
    assert_eq!(result.code(), 0);
    assert_eq!(result.verdict().counts().not_judged, 1);
    // A failure stays a failure.
    result.domains[0].ruling = Ruling::of(Verdict::Broken, true, true, gone());
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

/// The published schema names every field that a result can have, and no others.
#[test]
fn the_published_schema_is_that_of_the_result() {
    let schema = include_str!("../../../docs/schemas/audit.json");
    let mut full = two_chips();
    full.added.push(AddedRun {
        flow: "loop".to_owned(),
        about: "alone".to_owned(),
        worst: Some(3),
        digest: "d".to_owned(),
    });
    let domain = &mut full.domains[0];
    domain.gone = Some("gone".to_owned());
    domain.stopped.push("stopped".to_owned());
    domain.needs.push("server".to_owned());
    domain.ruling = Ruling::of(Verdict::Identical, true, true, domain.gone.clone());
    domain.attacks[0].took = None;
    domain.attacks[0].harm.push("harm".to_owned());
    domain.flows[0].unbounded = Some("why".to_owned());
    domain.requests[0].unbounded = Some("why".to_owned());
    for result in [sample(), full] {
        let (schema, file) = crate::schemas::fits(schema, &result);
        for (name, value) in [("surprise", 1.into()), ("verdict", "green".into())] {
            let mut other = file.clone();
            other["domains"][0][name] = value;
            assert!(!schema.is_valid(&other), "{name}");
        }
    }
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
    far.ruling = Ruling::of(Verdict::Unbounded, false, true, None);
    (far.criticality, far.owed) = ('B', false);
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
    // For one chip, none of it appears.
    let one = serde_json::to_string(&sample()).expect("serialises");
    assert!(!one.contains("chip"));
}
