//! The quickstart shows what it is for: disturbance without regulation, none worth naming with it, bounds that hold.

use bulkhead_whole_system_tests::{finished, system, variant};

#[test]
fn regulation_protects_the_loop_and_every_promise_holds() {
    let finished = finished("quickstart", &[], false);
    let result = &finished.result;
    let worst = |name: &str| variant(result, name).flows[0].latency.max;
    let p50 = |name: &str| variant(result, name).flows[0].latency.p50;
    assert!(
        worst("unregulated") > 2 * worst("alone"),
        "the hogs are felt"
    );
    assert!(
        worst("regulated") * 100 <= worst("alone") * 110,
        "and with limits they are not"
    );
    assert!(p50("regulated") * 100 <= p50("alone") * 101);
    for name in ["alone", "regulated"] {
        let flow = &variant(result, name).flows[0];
        assert_eq!((flow.latency.count, flow.misses), (50, 0), "{name}");
    }
    assert!(variant(result, "regulated").flows[0].bound.is_some());
    // The hogs are named as those who caused the delays.
    let blame: u64 = variant(result, "unregulated")
        .interference
        .iter()
        .filter(|i| i.victim == "controller" && i.culprit.starts_with("hog"))
        .map(|i| i.ticks)
        .sum();
    assert!(blame > 0);
    // The control law decided the same in every variant: its data is its own.
    let decisions: Vec<u64> = result
        .variants
        .iter()
        .flat_map(|v| {
            v.checks
                .iter()
                .filter(|c| c.application == "controller")
                .map(|c| c.value)
        })
        .collect();
    assert_eq!(decisions.len(), 3);
    assert!(
        decisions.windows(2).all(|pair| pair[0] == pair[1]),
        "{decisions:?}"
    );
    assert!(result.held(), "{:?}", result.verdicts);
    assert_eq!(finished.code(), 0);
}

#[test]
fn a_flow_that_no_variant_runs_alone_is_measured_alone_in_a_run_of_its_own() {
    let finished = finished(system("loop"), &[], false);
    let result = &finished.result;
    let flow = &result.variants[0].flows[0];
    let [added] = result.added.as_slice() else {
        panic!("{:?}", result.added);
    };
    assert_eq!(added.flow, "loop");
    assert!(added.about.ends_with("asleep"), "{}", added.about);
    let (alone, bound) = (added.worst, flow.bound.as_ref().map(|bound| bound.ticks));
    let (alone, bound) = (alone.expect("samples"), bound.expect("a bound"));
    assert!(
        alone < bound && flow.latency.max <= bound,
        "{alone} {bound}"
    );
    // The hog has a bound, too, with the wait for its own bucket in it.
    let mut requests = result.variants[0].requests.iter();
    let hog = requests.find(|r| r.application == "hog" && r.kind == "cache miss");
    let hog = hog.expect("it reads");
    let bound = hog.bound.as_ref().expect("with a limit").ticks;
    // A hart waits for tokens before it asks, so what is observed of a request no longer has that wait in it.
    assert!(hog.worst < bound, "{} of {bound}", hog.worst);
    assert!(result.held(), "{:?}", result.verdicts);
}
