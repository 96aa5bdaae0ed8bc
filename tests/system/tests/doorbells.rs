//! Doorbells through descriptions: harts of clusters that are not coherent interrupt each other.

use bulkhead_report::result::VariantResult;
use bulkhead_runner::run::Finished;
use bulkhead_system_tests::whole::finished;

fn variant<'a>(finished: &'a Finished, name: &str) -> &'a VariantResult {
    let mut all = finished.result.variants.iter();
    let found = all.find(|one| one.name == name);
    found.unwrap_or_else(|| panic!("no variant {name}"))
}

/// Each finds what the other one has stored before it rang. A program that rings without a pause and that nobody hears takes turns on the way
/// with them, and interrupts nobody.
#[test]
fn harts_of_two_clusters_ring_each_other() {
    let run = finished("bare/doorbells", &[], false);
    assert_eq!(run.code(), 0, "{:?}", run.result.whole_verdict());
    let mut longest = Vec::new();
    for name in ["alone", "beside"] {
        let one = variant(&run, name);
        assert!(one.incidents.is_empty(), "{name}: {:?}", one.incidents);
        let [flow] = &one.flows[..] else {
            panic!("{name} has one flow");
        };
        assert_eq!(flow.latency.count, 100, "{name}");
        longest.push(flow.latency.max);
    }
    println!("longest round, alone and beside: {longest:?} ticks");
    assert!(longest[0] < longest[1], "{longest:?}");
}
