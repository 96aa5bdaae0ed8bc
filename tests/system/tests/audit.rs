//! The non-interference check finds what is there and nothing else.

use bulkhead_runner::audit::result::{DomainResult, Verdict};
use bulkhead_runner::audit::{Finished, Options, audit};
use bulkhead_runner::progress::Silent;
use bulkhead_whole_system_tests::system;
use std::path::PathBuf;

fn checked(path: impl Into<PathBuf>, domain: &str, overrides: &[&str], searches: u32) -> Finished {
    let mut options = Options::new(path);
    options.domains = vec![domain.to_owned()];
    options.overrides = overrides.iter().map(|&text| text.to_owned()).collect();
    options.searches = searches;
    match audit(&options, &Silent) {
        Ok(finished) => finished,
        Err(error) => panic!("{error}"),
    }
}

fn only(finished: &Finished) -> &DomainResult {
    assert_eq!(finished.result.domains.len(), 1);
    &finished.result.domains[0]
}

/// The quickstart's loop with a deadline that it keeps only if the others' traffic is limited.
const TIGHT: &str = "flow[loop]@deadline=100us";

#[test]
fn limits_bound_what_the_quickstart_suffers_and_their_removal_is_found() {
    let good = checked("quickstart", "control", &[TIGHT], 6);
    let domain = only(&good);
    assert_eq!(domain.verdict, Verdict::Bounded, "{:?}", domain.reasons);
    assert!(domain.owed && domain.held);
    assert_eq!(good.code(), 0);
    let worst = &domain.attacks[domain.worst.expect("something is felt")];
    assert!((1001..1100).contains(&worst.slowdown), "{worst:?}");

    let bad = checked(
        "quickstart",
        "control",
        &[TIGHT, "logger/*/limit@noc=none"],
        6,
    );
    let domain = only(&bad);
    assert_eq!(domain.verdict, Verdict::Unbounded);
    assert!(
        domain.reasons[0].contains("does not keep the deadline"),
        "{:?}",
        domain.reasons
    );
    assert_eq!(bad.code(), 3);
    let worst = &domain.attacks[domain.worst.expect("felt")];
    assert!(worst.slowdown > 2500, "{worst:?}");
    // The first difference comes soon after the start of the attack, and the ledger names the attackers.
    let first = domain.difference.as_ref().expect("explained");
    let at = first.attacked_at.or(first.alone_at).expect("a moment");
    assert!(
        at >= domain.start && at < domain.start + good.result.window / 10,
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
        domain.verdict,
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
    let finished = checked(system("audit"), "serving", &[], 4);
    let domain = only(&finished);
    assert_eq!(domain.verdict, Verdict::Unbounded, "{:?}", domain.reasons);
    assert!(
        domain
            .reasons
            .iter()
            .any(|r| r.starts_with("guest may send to server")),
        "{:?}",
        domain.reasons
    );
    assert_eq!(finished.code(), 3);
    // Messages slow the client down more than anything else does.
    let worst = &domain.attacks[domain.worst.expect("felt")];
    assert!(
        worst.plans.iter().any(|plan| plan.contains("messages")),
        "{worst:?}"
    );
}
