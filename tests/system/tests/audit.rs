//! The non-interference check finds every interference and nothing else.

use bulkhead_analysis::communication::Chip;
use bulkhead_experiments::audit::{Finished, Options, audit};
use bulkhead_report::audit::result::{AttackResult, DomainResult, Verdict};
use bulkhead_report::verdict::Judgement;
use bulkhead_runner::progress::Silent;
use bulkhead_runner::run;
use bulkhead_runner::tiled::catalogue::OWN;
use bulkhead_system_tests::whole::system;
use std::path::PathBuf;

fn checked(path: impl Into<PathBuf>, domain: &str, overrides: &[&str], searches: u32) -> Finished {
    checked_by(&[], path, domain, overrides, searches)
}

/// By these attacks only, if there are some. A test that looks for one finding needs no more; `./bulkhead test --catalog` tries all.
fn checked_by(
    attacks: &[&str],
    path: impl Into<PathBuf>,
    domain: &str,
    overrides: &[&str],
    searches: u32,
) -> Finished {
    let mut options = Options::new(path);
    options.attacks = attacks.iter().map(|&text| text.to_owned()).collect();
    options.domains = vec![domain.to_owned()];
    options.overrides = overrides.iter().map(|&text| text.to_owned()).collect();
    options.searches = searches;
    options.time = bulkhead_experiments::audit::time("4ms").expect("a time");
    match audit(&options, &Silent) {
        Ok(finished) => finished,
        Err(error) => panic!("{error}"),
    }
}

fn only(finished: &Finished) -> &DomainResult {
    assert_eq!(finished.result.domains.len(), 1);
    &finished.result.domains[0]
}

/// The quickstart's loop with a deadline that it keeps only if others' traffic is limited.
const TIGHT: &str = "flow[loop]@deadline=100us";

#[test]
fn limits_bound_what_the_quickstart_suffers_and_their_removal_is_found() {
    let good = checked("quickstart", "control", &[TIGHT], 6);
    let domain = only(&good);
    assert_eq!(
        domain.ruling.verdict(),
        Verdict::Bounded,
        "{:?}",
        domain.reasons
    );
    assert!(domain.owed && domain.ruling.judgement() == Judgement::Held);
    assert_eq!(good.code(), 0);
    let worst = &domain.attacks[domain.worst.expect("something is felt")];
    // Some requests wait for the hogs; whether the longest response does depends on its position.
    assert!(
        worst.waited > 0 && (1000..1100).contains(&worst.slowdown),
        "{worst:?}"
    );

    let bad = checked_by(
        &[OWN, "memory writes", "bandwidth/memory"],
        "quickstart",
        "control",
        &[TIGHT, "logger/*/limit@noc=none"],
        0,
    );
    let domain = only(&bad);
    assert_eq!(domain.ruling.verdict(), Verdict::Unbounded);
    assert!(
        domain.reasons[0].contains("does not keep the deadline"),
        "{:?}",
        domain.reasons
    );
    assert_eq!(bad.code(), 3);
    let worst = &domain.attacks[domain.worst.expect("felt")];
    assert!(worst.slowdown > 2500, "{worst:?}");
    // The hogs of the description attack, too. Their first action, and the one that hurts so much, is to write their memory once.
    for name in [OWN, "memory writes"] {
        let mut attacks = domain.attacks.iter();
        let attack = attacks.find(|attack| attack.name == name);
        let slowdown = attack.map_or(0, |attack| attack.slowdown);
        assert!((2500..=worst.slowdown).contains(&slowdown), "{attack:?}");
    }
    // The loop works once per millisecond, a quarter of the window: the first difference comes in its first job after the start of the
    // attack, and the ledger names the attackers.
    let first = domain.difference.as_ref().expect("explained");
    let at = first.attacked_at.or(first.alone_at).expect("a moment");
    assert!(
        at >= domain.start && at < domain.start + good.result.window / 4 + good.result.window / 10,
        "{first:?}"
    );
    assert!(
        domain.account[0].culprit.starts_with("hog"),
        "{:?}",
        domain.account
    );
    let waited: u64 = domain.account.iter().map(|line| line.ticks).sum();
    assert_eq!(waited, worst.waited);
}

/// Both begin with the same run of the flow alone, and judge the same flow.
#[test]
fn run_and_audit_give_a_flow_the_same_bound() {
    for (variant, unlimited) in [("regulated", None), ("unregulated", Some("none"))] {
        let short = "@duration=12ms".to_owned();
        let options = run::Options {
            system: "quickstart".into(),
            overrides: vec![short.clone()],
            variants: vec![variant.to_owned()],
            ..run::Options::default()
        };
        let ran = run::run(&options, &Silent).unwrap_or_else(|error| panic!("{error}"));
        let own = ran.result.variants[0].flows[0].bound.clone();
        let mut overrides = vec![short];
        overrides.extend(unlimited.map(|limit| format!("logger/*/limit@noc={limit}")));
        let options = Options {
            overrides,
            domains: vec!["control".to_owned()],
            attacks: vec![OWN.to_owned(), "bandwidth/memory".to_owned()],
            time: bulkhead_experiments::audit::time("3ms").expect("a time"),
            ..Options::new("quickstart")
        };
        let audited = audit(&options, &Silent).unwrap_or_else(|error| panic!("{error}"));
        let domain = only(&audited);
        assert_eq!(own, domain.flows[0].bound, "{variant}");
        let covers = own.expect("a bound").covers;
        assert!(covers.contains(" jobs in "), "{covers}");
        // The system's own programs attack first, then the library, then each fitting program of the catalog.
        let first = &domain.attacks[0];
        assert_eq!(first.name, OWN);
        assert_eq!(first.plans[0], "hog-1: its own program adversary/memcpy");
        let mut names = domain.attacks.iter().map(|attack| attack.name.as_str());
        assert!(names.any(|name| name == "bandwidth/memory"));
        // Without limits their effect is visible.
        assert!(first.waited > 0 && !first.identical, "{first:?}");
        // Programs are held back until the attack begins, so nothing differs before it.
        assert!(domain.difference.is_some(), "{domain:?}");
        let mut notes = domain.notes.iter();
        assert!(
            !notes.any(|note| note.contains("before the attack")),
            "{:?}",
            domain.notes
        );
    }
}

/// A system written in this file.
fn written(folder: &tempfile::TempDir, text: &str) -> PathBuf {
    let path = folder.path().join("system.xml");
    std::fs::write(&path, text).expect("it can be written");
    path
}

/// A task that ends before any attack cannot be disturbed, which is not protection.
#[test]
fn a_critical_task_that_crashes_by_itself_is_not_held() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = written(
        &folder,
        r#"<system name="crashed" platform="tiled-gem5" duration="20ms" manager-tile="1">
  <domain name="control" criticality="A">
    <app name="broken" tile="2" program="adversary/fault"><argument name="kind" value="panic"/></app>
  </domain>
  <domain name="others" criticality="E">
    <app name="hog" tile="3" program="adversary/memcpy" memory="4MiB" background="true"><limit noc="8MiB/s" burst="4KiB"/></app>
  </domain>
</system>"#,
    );
    let finished = checked(path, "control", &[], 0);
    let domain = only(&finished);
    assert_eq!(domain.stopped.len(), 1, "{domain:?}");
    let gone = domain.gone.as_deref().unwrap_or_default();
    assert!(
        gone.starts_with("`broken` did not run to the end: "),
        "{gone}"
    );
    let counts = finished.result.verdict().counts();
    assert_eq!((counts.held, counts.not_judged), (0, 1), "{counts:?}");
    assert_eq!(finished.code(), 4);
}

/// An empty message means that the loop is over, and anybody with a gate may send it: the controller ends without an error.
#[test]
fn a_critical_task_that_an_attack_ends_has_failed() {
    let folder = tempfile::tempdir().expect("a folder");
    let text = std::fs::read_to_string(system("loop")).expect("there");
    let outsider = r#"program="adversary/message" background="true"><sgate name="target" to="controller" credits="1"/>"#;
    let text = text.replace(
        r#"program="adversary/memcpy" memory="4MiB" background="true">"#,
        outsider,
    );
    let finished = checked_by(&[OWN], written(&folder, &text), "control", &[], 0);
    let domain = only(&finished);
    let judged = domain.ruling.judgement();
    assert_eq!(
        (domain.owed, judged),
        (true, Judgement::Failed),
        "{domain:?}"
    );
    let ended = "application controller: ended, but continues without an attack, beside ";
    assert!(
        domain
            .reasons
            .iter()
            .any(|reason| reason.starts_with(ended)),
        "{:?}",
        domain.reasons
    );
    assert_eq!(domain.gone, None);
    assert_eq!(finished.code(), 3);
}

#[test]
fn the_check_is_deterministic() {
    let first = checked("quickstart", "control", &[], 5);
    let second = checked("quickstart", "control", &[], 5);
    assert_eq!(first.result, second.result);
    let (here, there) = (
        tempfile::tempdir().expect("a folder"),
        tempfile::tempdir().expect("a folder"),
    );
    first.write(here.path()).expect("writes");
    second.write(there.path()).expect("writes");
    for name in ["audit.html", "audit.json"] {
        let read = |folder: &std::path::Path| std::fs::read(folder.join(name)).expect("written");
        assert_eq!(read(here.path()), read(there.path()), "{name}");
    }
}

#[test]
fn who_shares_nothing_is_identical_to_the_cycle() {
    let finished = checked(system("audit"), "computing", &[], 8);
    let domain = only(&finished);
    assert_eq!(
        domain.ruling.verdict(),
        Verdict::Identical,
        "{:?}\n{:?}",
        domain.difference,
        domain.attacks
    );
    assert!(
        domain
            .attacks
            .iter()
            .all(|attack| attack.identical && attack.slowdown == 1000)
    );
    assert!(domain.account.is_empty() && domain.difference.is_none());
}

#[test]
fn a_channel_from_outside_is_an_opening() {
    let finished = checked_by(&[OWN, "adversary/"], system("audit"), "serving", &[], 0);
    let domain = only(&finished);
    assert_eq!(
        domain.ruling.verdict(),
        Verdict::Unbounded,
        "{:?}",
        domain.reasons
    );
    assert!(
        domain
            .reasons
            .iter()
            .any(|r| r.starts_with("guest may send to server")),
        "{:?}",
        domain.reasons
    );
    assert_eq!(finished.code(), 3);
    // The guest has the channel, so a program in its place has an effect. Which attack is the worst of all depends on some hundred cycles
    // of the start.
    let is_guests = |plan: &String| plan.starts_with("guest: the program ");
    let mut by_guest = domain.attacks.iter();
    assert!(
        by_guest.any(|attack| !attack.identical && attack.plans.iter().any(is_guests)),
        "{:?}",
        domain.attacks
    );
}

/// An application that may make children, endpoints, services and the like uses all of these against a critical caller of the kernel.
#[test]
fn what_rights_allow_delays_a_critical_call_by_two_pieces_of_work_at_most() {
    let finished = checked(system("audit-rights"), "calling", &[], 2);
    let domain = only(&finished);
    assert_ne!(
        domain.ruling.verdict(),
        Verdict::Broken,
        "{:?}",
        domain.reasons
    );
    // A call alone (at least), one piece of the kernel's work in progress and one that is resumed (`analysis::kernel`, at most 8000 cycles
    // each).
    let (alone, piece) = (500, 8000);
    for attack in &domain.attacks {
        println!("{}: {} of {}", attack.name, attack.slowdown, attack.of);
        assert!(attack.harm.is_empty(), "{attack:?}");
        if attack.of == "spans of caller" {
            let most = (alone + 2 * piece) * 1000 / alone;
            assert!(attack.slowdown <= most, "{attack:?}");
        }
    }
    let kind = |name: &str| domain.attacks.iter().find(|attack| attack.name == name);
    for name in [
        "children that are stopped while they run",
        "services that come and go",
        "revocations of 128 endpoints",
        "attack/heir",
    ] {
        let attack = kind(name).expect("in the library");
        assert!(!attack.identical, "{attack:?}");
    }
}

fn two_chips(domain: &str, searches: u32) -> Finished {
    two_chips_for("audit-two-chips", &[], domain, searches, "2ms")
}

fn two_chips_for(
    name: &str,
    attacks: &[&str],
    domain: &str,
    searches: u32,
    time: &str,
) -> Finished {
    let mut options = Options::new(system(name));
    options.attacks = attacks.iter().map(|&text| text.to_owned()).collect();
    options.domains = vec![domain.to_owned()];
    options.searches = searches;
    options.time = bulkhead_experiments::audit::time(time).expect("a time");
    match audit(&options, &Silent) {
        Ok(finished) => finished,
        Err(error) => panic!("{error}"),
    }
}

fn sends_frames(attack: &AttackResult) -> bool {
    attack.plans.iter().any(|plan| plan.contains("frames"))
}

/// A program in the place of the neighbour's network service, above all its own, drives the card as it likes.
fn drives_the_card(attack: &AttackResult) -> bool {
    let mut plans = attack.plans.iter();
    plans.any(|plan| plan.starts_with("far/network: ") && plan.contains("program "))
}

/// A network service and its client, next to adversaries on both chips: one adversary has the card at the other end of the cable.
#[test]
fn a_flood_from_the_other_chip_is_found() {
    let finished = two_chips("control", 3);
    let domain = only(&finished);
    assert_eq!(domain.chip.as_deref(), Some("audit-two-chips"));
    assert_eq!(
        domain.attackers,
        ["spin", "far/network", "far/echo", "far/sink"]
    );
    assert_eq!(
        domain.ruling.verdict(),
        Verdict::Unbounded,
        "{:?}",
        domain.reasons
    );
    assert_eq!(finished.code(), 3);
    let cable = "there is no bound for what comes over a cable";
    assert!(
        domain.reasons.iter().any(|r| r.ends_with(cable)),
        "{:?}",
        domain.reasons
    );
    // What the neighbours do to their own chip has no effect here, but each kind of frame has. The neighbour on this chip reads the code of
    // its attack once, or fills its stack, which may make others wait.
    for attack in &domain.attacks {
        println!(
            "{}: {} of {} {:?} ({}), waited {}",
            attack.name, attack.slowdown, attack.of, attack.took, attack.identical, attack.waited
        );
        assert!(attack.harm.is_empty(), "{:?}", attack.harm);
        if sends_frames(attack) {
            assert!(!attack.identical, "{}", attack.name);
        } else if drives_the_card(attack) {
            // Whatever frames it sends, and whenever, costs the service the time to examine them. One such frame made a request of the
            // probe 1.842 times as long when caches began to hold data; other start times had shown at most 1.1 times.
        } else {
            // A program of the catalog in the place of the neighbour on this chip uses the same memory without a limit: only the bounds of
            // requests limit the effect (`bandwidth/memory`: 1.318 times).
            let beside = |plan: &String| plan.starts_with("spin: the program ");
            if attack.plans.iter().any(beside) {
                continue;
            }
            // A wait of some hundred ticks shows in the instructions of the same time.
            let waits = attack.of.starts_with("progress");
            let most = 1000 + u64::from(waits);
            // A span that met one of these waits is longer by at most all of them.
            let mut took = attack.took.iter();
            let explained = took.any(|[alone, beside]| *beside <= alone + attack.waited);
            assert!(
                attack.identical
                    || (attack.slowdown <= most || explained) && attack.waited < 20_000,
                "{attack:?}"
            );
        }
    }
    let worst = &domain.attacks[domain.worst.expect("something is felt")];
    // A flood is the worst attack, and adds more to a span of the client than everything that is no flood adds to anything. How much more
    // depends on the moment at which everything starts. At least, a request that comes while the service examines a frame waits until it
    // has read it: the card has written the frame to memory, so its first line comes from there.
    assert!(
        sends_frames(worst) && worst.of == "spans of probe",
        "{worst:?}"
    );
    let added = |attack: &AttackResult| {
        let [alone, attacked] = attack.took?;
        Some(attacked.saturating_sub(alone))
    };
    let others = domain.attacks.iter();
    let others = others.filter(|one| !sends_frames(one) && !drives_the_card(one));
    let others = others.filter_map(added).max().unwrap_or(0);
    let described = bulkhead_model::load_system(system("audit-two-chips"), &Default::default());
    let platform = described.expect("valid").platform;
    let (service, memory) = (7, platform.memories[0].id);
    let read = Chip::new(&platform).line_read(service, memory);
    let line = read.expect("both are there").uncontended();
    let by_flood = added(worst).expect("spans are measured");
    assert!(
        by_flood > others.max(u64::try_from(line).expect("short")),
        "{by_flood}, {others}, {line}: {worst:?}"
    );
    assert_eq!(domain.account[0].culprit, "frames from far");
    // The client waits at the service while the service examines frames: this is most of its waiting for others.
    let of_probe = domain.account.iter().find(|line| line.victim == "probe");
    let of_probe = of_probe.map(|line| (line.culprit.as_str(), line.resource.as_str()));
    assert_eq!(
        of_probe,
        Some(("frames from far", "service network")),
        "{:?}",
        domain.account
    );
    let first = domain.difference.as_ref().expect("explained");
    assert!(domain.tiles.contains(&first.tile), "{first:?}");
    // Requests are bounded all the same.
    for request in &domain.requests {
        let bound = request.bound.as_ref().map_or(u64::MAX, |bound| bound.ticks);
        assert!(request.attacked <= bound, "{request:?}");
    }
}

/// Frames do not reach a domain without a card, and nothing reaches a domain that shares nothing with the cards.
#[test]
fn frames_reach_only_who_has_a_card() {
    let finished = two_chips("aside", 2);
    let domain = only(&finished);
    assert_eq!(
        domain.ruling.verdict(),
        Verdict::Identical,
        "{:?}",
        domain.reasons
    );
    assert!(domain.attacks.iter().any(sends_frames));
}

#[test]
fn a_domain_of_the_other_chip_is_checked_there() {
    let finished = two_chips("far/net", 0);
    let domain = only(&finished);
    assert_eq!(
        (domain.name.as_str(), domain.chip.as_deref()),
        ("far/net", Some("far"))
    );
    assert_eq!(domain.applications, ["network"]);
    assert_eq!(
        domain.attackers[..3],
        ["echo", "sink", "audit-two-chips/network"]
    );
    let names = finished.result.chips.iter().map(|chip| chip.name.as_str());
    assert!(names.eq(["audit-two-chips", "far"]));
    assert_eq!(domain.account[0].culprit, "frames from audit-two-chips");
    // There are more critical domains on the first chip.
    assert!(!domain.owed && domain.ruling.judgement() == Judgement::Held);
    assert_ne!(
        domain.ruling.verdict(),
        Verdict::Broken,
        "{:?}",
        domain.reasons
    );
}

#[test]
fn a_domain_that_is_nowhere_is_refused_with_the_names_that_there_are() {
    let mut options = Options::new(system("audit-two-chips"));
    options.domains = vec!["servers".to_owned()];
    let error = audit(&options, &Silent).map(|_| ()).expect_err("unknown");
    let text = error.to_string();
    assert!(
        text.contains("the system has no domain `servers`"),
        "{text}"
    );
}

/// The attacks over a cable.
const CABLE: &[&str] = &[
    "small frames",
    "large frames",
    "requests for addresses",
    "small datagrams",
    "large datagrams",
    "openings of streams",
    "large echo requests",
    "frames and memory writes",
];

/// Two chips with different clocks. A slow neighbour needs longer to start its card than a short comparison takes: the result says that it
/// has not attacked yet.
#[test]
fn attacks_that_come_too_late_are_no_proof() {
    let early = two_chips_for("audit-slow-peer", CABLE, "control", 0, "1ms");
    let domain = only(&early);
    assert_eq!(domain.attacks.len(), 8, "{:?}", domain.attacks);
    let same = |attack: &AttackResult| attack.identical && attack.harm.is_empty();
    assert!(domain.attacks.iter().all(same), "{:?}", domain.attacks);
    // Nothing happened, and not all was tried.
    assert_eq!(domain.ruling.judgement(), Judgement::NotJudged);
    let because = domain.ruling.because().unwrap_or_default();
    assert!(
        because.ends_with(" attacks were tried, as selected"),
        "{because}"
    );
    assert_eq!(early.code(), 0);
    let note = "In 8 of 8 attacks over a cable no frame arrived in the time that was compared";
    assert!(
        domain.notes.iter().any(|n| n.starts_with(note)),
        "{:?}",
        domain.notes
    );
    let late = two_chips_for("audit-slow-peer", CABLE, "control", 0, "5ms");
    let domain = only(&late);
    assert_eq!(
        domain.ruling.verdict(),
        Verdict::Unbounded,
        "{:?}",
        domain.notes
    );
    assert!(
        domain
            .attacks
            .iter()
            .all(|a| !sends_frames(a) || !a.identical)
    );
    assert!(domain.notes.is_empty(), "{:?}", domain.notes);
    // The domain of the slow chip is measured with its own clock.
    let beside = [
        CABLE,
        &["memory writes", "memory copies", "bandwidth/memory"],
    ]
    .concat();
    let there = two_chips_for("audit-slow-peer", &beside, "slow/net", 0, "5ms");
    let domain = only(&there);
    let clock = there.result.clock(domain);
    assert_eq!(clock, there.result.chips[1].clock);
    assert_ne!(clock, there.result.chips[0].clock);
    assert_eq!(there.result.chips[1].window * 200, clock.ticks_per_second);
    // The worst attack is one that slows its progress, and frames add most to that; but nothing makes it wait as long as frames do.
    let waited = |frames: bool| {
        let attacks = domain.attacks.iter();
        attacks
            .filter(move |one| sends_frames(one) == frames)
            .map(|one| one.waited)
    };
    let (least, others) = (waited(true).min(), waited(false).max());
    assert!(
        least > others.map(|most| 100 * most),
        "{least:?}, {others:?}"
    );
}
