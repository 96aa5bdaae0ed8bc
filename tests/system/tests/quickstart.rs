//! The quickstart shows its purpose: disturbance without regulation, negligible disturbance with it, and bounds that hold.
//! And the README shows its output.
//!
//! `BLESS=1 cargo test --release -p bulkhead-system-tests quickstart::` writes the README's table and pictures anew.

use bulkhead_report::book::Book;
use bulkhead_report::result::RunResult;
use bulkhead_report::{page, table};
use bulkhead_system_tests::whole::{finished, system, variant};
use std::fs::{read_to_string, write};
use std::path::Path;

/// The README's table and pictures are those of this result.
fn the_readme_shows(result: &RunResult) {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let current = |file: &str, expected: String| {
        let file = root.join(file);
        if std::env::var_os("BLESS").is_some() {
            write(&file, expected).unwrap();
        } else if read_to_string(&file).unwrap() != expected {
            panic!("BLESS=1 writes {} anew", file.display());
        }
    };
    // The head and the first table, with the notes below it.
    let block = |text: &str, end: &str| {
        let start = text.find("quickstart on ").expect("the head is there");
        let table = text.find("End-to-end latency").expect("the table, too");
        let length = text[table..].find(end).expect("and ends");
        start..table + length
    };
    let printed = table::summary(result);
    let readme = read_to_string(root.join("README.md")).unwrap();
    let mut expected = readme.clone();
    expected.replace_range(block(&readme, "\n```"), &printed[block(&printed, "\n\n")]);
    current("README.md", expected);

    let report = page::report(result, &[], &Book::default()).unwrap();
    let plots: Vec<&str> = report.split("<svg ").skip(1).collect();
    let names = ["latency", "blame"];
    for (name, plot) in names.iter().zip([plots.first(), plots.last()]) {
        let (plot, _) = plot.unwrap().split_once("</svg>").expect("it ends");
        let size = plot.split('"').nth(1).expect("its size").split(' ');
        let size: Vec<&str> = size.collect();
        // As a file of its own, a picture needs a size.
        let (width, height) = (size[2], size[3]);
        let picture = format!("<svg width=\"{width}\" height=\"{height}\" {plot}</svg>\n");
        current(&format!("docs/pictures/quickstart-{name}.svg"), picture);
    }
}

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
    // The delays are attributed to the hogs.
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
    assert!(result.is_kept(), "{:?}", result.verdict);
    assert_eq!(finished.code(), 0);
    // The disturbance in the unregulated variant is expected, and never called held.
    let mut shown = result.verdict.promises().iter().filter(|one| one.expected);
    assert!(shown.all(|one| one.variant == "unregulated"));
    the_readme_shows(result);
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
    // The hog has a bound, too, and separately the wait for its own bucket, which is in neither.
    let mut requests = result.variants[0].requests.iter();
    let hog = requests.find(|r| r.application == "hog" && r.kind == "cache miss");
    let hog = hog.expect("it reads");
    let bound = hog.bound.as_ref().expect("with a limit").ticks;
    assert!(
        hog.worst < bound && hog.worst * 30 > bound,
        "{} of {bound}",
        hog.worst
    );
    // A line takes 16 refills of 8 MiB per second, each after 1000 cycles of 2 ticks.
    let tokens = hog.tokens.expect("with a limit");
    assert!(tokens >= 16 * 2000, "{tokens}");
    assert!(result.is_kept(), "{:?}", result.verdict);
}
