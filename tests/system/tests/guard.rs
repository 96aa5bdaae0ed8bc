//! Guards at local memories: adversaries on other cores break things without them, and change nothing but time with them.

use bulkhead_experiments::audit::{Options, audit, time};
use bulkhead_report::audit::result::{AttackResult, DomainResult, Verdict};
use bulkhead_report::verdict::Judgement;
use bulkhead_runner::progress::Silent;
use bulkhead_runner::run;

/// The control loop of the catalog's system next to all attacks, its first task twice as often, so that two milliseconds suffice.
fn checked(variant: &str) -> DomainResult {
    let options = Options {
        overrides: vec!["task[sensor]@period=1ms".to_owned()],
        variant: Some(variant.to_owned()),
        domains: vec!["control".to_owned()],
        searches: 2,
        time: time("1200us").expect("a time"),
        ..Options::new("oneshot/guarded")
    };
    let mut result = match audit(&options, &Silent) {
        Ok(finished) => finished.result,
        Err(error) => panic!("{error}"),
    };
    result.domains.remove(0)
}

fn named<'a>(domain: &'a DomainResult, name: &str) -> &'a AttackResult {
    let mut all = domain.attacks.iter();
    all.find(|one| one.name == name)
        .expect("the library has it")
}

#[test]
fn without_guards_every_core_breaks_the_system_and_is_named() {
    let open = checked("open");
    assert_eq!(
        (open.ruling.verdict(), open.ruling.judgement()),
        (Verdict::Broken, Judgement::Failed)
    );
    assert_eq!(open.tiles, [0, 5, 10]);
    assert_eq!(open.attackers.len(), 13);
    assert!(open.attackers.contains(&"core 3 (source)".to_owned()));
    let harm = |name: &str, what: &str| {
        let attack = named(&open, name);
        assert!(
            attack.harm.iter().any(|one| one.contains(what)),
            "{name}: {:?}",
            attack.harm
        );
        let first = attack.first.as_ref().expect("a difference");
        assert!(open.tiles.contains(&first.tile), "{first:?}");
        assert_eq!(attack.refused, 0);
    };
    harm("writes to the code", "its code was written over");
    harm("writes to the table of tasks and ports", "stopped");
    harm(
        "writes to the state of port 0",
        "state of port 0 was written over",
    );
    harm("locks held for ever", "no item");
    harm("starts of harts", "jobs ended");
    // Before any port is open, it can be made another one.
    let early = named(&open, "writes anywhere from the start");
    assert!(!early.harm.is_empty(), "{early:?}");
    // An attack that writes nothing only delays.
    let reads = named(&open, "reads of all memories");
    assert!(reads.harm.is_empty() && reads.slowdown > 1000, "{reads:?}");
    assert!(
        open.account
            .iter()
            .any(|one| one.culprit.starts_with("core "))
    );
}

#[test]
fn with_guards_attacks_change_nothing_but_time() {
    let guarded = checked("guarded");
    for attack in &guarded.attacks {
        assert_eq!(attack.harm, [] as [&str; 0], "{}", attack.name);
        let touches = !attack.name.contains("across the mesh") && !attack.name.contains("external");
        assert_eq!(attack.refused > 0, touches, "{}", attack.name);
    }
    assert_ne!(
        guarded.ruling.verdict(),
        Verdict::Broken,
        "{:?}",
        guarded.reasons
    );
    for one in &guarded.requests {
        let bound = one.bound.as_ref().expect("a bound");
        assert!(one.attacked <= bound.ticks, "{one:?}");
    }
}

/// The rules are exactly the system's needs: they refuse nothing and change no tick. The writers of channels that release their
/// readers may ring, too: rings are part of the description.
fn without_a_refusal(overrides: &[&str]) {
    let overrides = overrides.iter().map(|text| (*text).to_owned());
    let options = run::Options {
        system: "oneshot/guarded".into(),
        overrides: overrides.chain(["@duration=30ms".to_owned()]).collect(),
        ..run::Options::default()
    };
    let result = run::run(&options, &Silent).expect("it runs").result;
    let [open, guarded] = &result.variants[..] else {
        panic!("two variants");
    };
    assert_eq!(
        (&open.incidents[..], &guarded.incidents[..]),
        (&[][..], &[][..])
    );
    assert_eq!(open.digest, guarded.digest);
}

#[test]
fn a_guard_that_refuses_nothing_changes_no_tick() {
    without_a_refusal(&[]);
    without_a_refusal(&[
        "channel[readings]@notify=true",
        "task[controller]@period=2ms",
        "channel[commands]@notify=true",
        "task[actuator]@period=2ms",
    ]);
}
