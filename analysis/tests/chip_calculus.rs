//! Other network calculus analyses of the chip's network, compared with the bounds in use.
//!
//! Why it exists: a method should be left out only for a reason that can be tested. What it deliberately does not know: how the bounds
//! in use are computed.
//!
//! PMOO takes the path of a transaction as one server and pays each rival's burst once, whatever the order of service. A rival's burst
//! is what its token bucket admits at one moment: its limit and its credit. So PMOO's bound is at least the time without others plus,
//! for each rival, as many of its transactions as that pays for, each at the server that it keeps busy longest. Everything else that
//! PMOO counts (refills, latencies of servers) is left out here, so this is less than PMOO's bound.

use bulkhead_analysis::communication::{
    NetworkScenario, SystemBounds, TransactionId, transaction_bound,
};
use bulkhead_model::{LoadOptions, System, load_system, system_names};
use std::collections::BTreeSet;

/// Less than PMOO's bound; `None` if a flow on the path has no arrival curve.
fn less_than_pmoo(scenario: &NetworkScenario, id: TransactionId) -> Option<u128> {
    let victim = &scenario.sources[id.source].classes[id.class];
    let way: BTreeSet<usize> = victim.steps.iter().filter_map(|s| s.resource).collect();
    let mut sum = victim.uncontended();
    for (index, source) in scenario.sources.iter().enumerate() {
        let mut most = 0u128;
        let classes = source.classes.iter().enumerate();
        let others = classes.filter(|&(number, class)| {
            // Chunks and packets of its own command are the victim's.
            class.outstanding > 0
                && !(index == id.source && (number == id.class || class.pool == victim.pool))
        });
        for (_, class) in others {
            let here = class.steps.iter().filter(|s| !s.elsewhere);
            let here = here.filter(|s| s.resource.is_some_and(|r| way.contains(&r)));
            let Some(longest) = here.map(|s| s.occupancy).max() else {
                continue;
            };
            let bucket = source.regulator?;
            let own = if index == id.source {
                victim.charge_most
            } else {
                0
            };
            let burst =
                (u128::from(bucket.limit) + u128::from(bucket.credit)).saturating_sub(own.into());
            let number = burst / u128::from(class.charge_most.max(1));
            most = most.max(number * u128::from(longest));
        }
        sum += most;
    }
    Some(sum)
}

/// All variants of all systems of the catalog, and the same with tight limits for all.
fn systems() -> Vec<System> {
    let mut all = Vec::new();
    for name in system_names(&LoadOptions::default()) {
        let system = load_system(&name, &LoadOptions::default());
        let system = system.unwrap_or_else(|error| panic!("{name}: {error}"));
        match system.variants.is_empty() {
            true => all.push(system),
            false => all.extend(system.variants),
        }
    }
    all
}

/// The order of service bounds each wait by what may be outstanding, and a bucket admits more at once than the slots of its tile hold.
#[test]
fn multiplexing_paid_once_is_never_less_than_the_bounds_that_are_used() {
    let (mut compared, mut nearest) = (0, u128::MAX);
    for mut system in systems() {
        let mut limits = system.apps.iter().filter_map(|app| app.limit);
        let Some(limit) = limits.next() else {
            continue;
        };
        // Nobody without an arrival curve.
        for app in &mut system.apps {
            app.limit = app.limit.or(Some(limit));
        }
        let Ok(bounds) = SystemBounds::new(&system, &[]) else {
            continue;
        };
        let scenario = bounds.scenario();
        // A write queue adds turns to the order of service, which the estimate below does not know: nothing is claimed there.
        if scenario.resources.iter().any(|one| one.backlog > 0) {
            continue;
        }
        for (source, one) in scenario.sources.iter().enumerate() {
            for class in 0..one.classes.len() {
                // Packets are bounded as parts of their messages.
                if one.classes[class].name.starts_with("packet") {
                    continue;
                }
                let id = TransactionId { source, class };
                let (Ok(used), Some(pmoo)) = (
                    transaction_bound(scenario, id),
                    less_than_pmoo(scenario, id),
                ) else {
                    continue;
                };
                compared += 1;
                nearest = nearest.min(100 * pmoo / u128::from(used.path.max(1)));
                assert!(
                    u128::from(used.path) <= pmoo,
                    "{} {}: {} of {}: {used:?}, PMOO {pmoo}",
                    system.name,
                    system.variant.as_deref().unwrap_or_default(),
                    one.classes[class].name,
                    one.name
                );
            }
        }
    }
    assert!(compared > 100, "{compared} compared");
    println!("{compared} transactions; PMOO is {nearest} % of the bound used, or more");
}
