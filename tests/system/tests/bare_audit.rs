//! The check of systems without a kernel: rivals in place of the other programs.

use bulkhead_experiments::audit::{Options, audit, time};
use bulkhead_report::audit::result::{DomainResult, Verdict};
use bulkhead_runner::progress::Silent;
use std::path::PathBuf;

fn checked(path: impl Into<PathBuf>, variant: Option<&str>, domain: &str) -> DomainResult {
    let mut options = Options::new(path);
    options.variant = variant.map(str::to_owned);
    options.domains = vec![domain.to_owned()];
    options.searches = 4;
    // With random replacement, which accesses hit would depend on their times.
    if variant.is_some() {
        let lru = ["l1", "l2"].map(|cache| format!("platform/cache[{cache}]@replacement=lru"));
        options.overrides.extend(lru);
    }
    options.time = time("10ms").expect("a time");
    let finished = audit(&options, &Silent);
    let mut finished = finished.unwrap_or_else(|error| panic!("{error}"));
    assert_eq!(finished.result.domains.len(), 1);
    finished.result.domains.remove(0)
}

/// Ways of its own bound what rivals do to the control program; without them nothing does, and the reason says what would.
#[test]
fn ways_of_its_own_bound_what_rivals_do() {
    let ways = checked("bare/partitions", Some("ways"), "control");
    println!("{:?} {:?}", ways.flows, ways.reasons);
    assert_eq!(
        ways.ruling.verdict(),
        Verdict::Bounded,
        "{:?}",
        ways.reasons
    );
    assert_eq!(ways.attackers, ["copy-1", "copy-2", "copy-3"]);
    assert!(ways.owed && ways.attacks.len() == 5 + 4);
    let flow = &ways.flows[0];
    let bound = flow.bound.as_ref().expect("a bound").ticks;
    assert!(
        flow.alone < flow.attacked && flow.attacked <= bound,
        "{flow:?}"
    );
    // The ledger names the rivals.
    assert!(ways.account.iter().any(|one| one.culprit == "copy-1"));
    let shared = checked("bare/partitions", Some("shared"), "control");
    assert_eq!(shared.ruling.verdict(), Verdict::Unbounded);
    assert!(shared.reasons.iter().any(|why| why.contains("`ways`")));
}

/// A core of a mesh that works in its own memory is the same to the tick beside any rival that keeps to its own; in one memory with others
/// it is not.
#[test]
fn cores_with_memories_of_their_own_are_identical() {
    let app = |name: &str, tile: u16| {
        format!(
            r#"<domain name="{name}"><app name="{name}" tile="{tile}" program="memory/measure"><argument name="bytes" value="4096"/><argument name="passes" value="3"/><argument name="stride" value="64"/></app></domain>"#
        )
    };
    let folder = tempfile::tempdir().expect("a folder can be made");
    let system = folder.path().join("system.xml");
    let text = format!(
        r#"<system name="s" paradigm="bare" platform="epiphany3" duration="20ms">{}{}<flow name="pass" from="own" to="own"/></system>"#,
        app("own", 0),
        app("other", 1)
    );
    std::fs::write(&system, text).expect("it can be written");
    let own = checked(&system, None, "own");
    println!("{:?}", own.attacks);
    assert_eq!(
        own.ruling.verdict(),
        Verdict::Identical,
        "{:?}",
        own.difference
    );
}

/// A rival that stops is no attack, and a check that rested on it would say too much.
#[test]
fn an_attack_that_did_not_take_place_is_refused() {
    let folder = tempfile::tempdir().expect("a folder can be made");
    let system = folder.path().join("system.xml");
    let text = r#"<system name="s" paradigm="bare" platform="imx6" duration="2ms">
        <domain name="own"><app name="own" harts="0" program="memory/measure" memory="256KiB"/></domain>
        <domain name="other"><app name="small" harts="1-3" program="memory/bursts" memory="25KiB"/></domain>
        <flow name="pass" from="own" to="own"/></system>"#;
    std::fs::write(&system, text).expect("it can be written");
    let mut options = Options::new(&system);
    options.domains = vec!["own".to_owned()];
    let refused = audit(&options, &Silent).expect_err("refused").to_string();
    assert!(refused.contains("in place of small"), "{refused}");
}
