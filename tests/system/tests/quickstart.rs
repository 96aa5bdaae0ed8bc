//! The quickstart shows what it is for: disturbance without regulation, none worth naming with it, bounds that hold.

use bulkhead_whole_system_tests::{finished, variant};

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
