//! Equal inputs give equal ticks: in repeated runs, with and without a trace, in other folders. That builds with and without optimisation are equal is a
//! step of the test suite (`xtask/src/builds.rs`).

use bulkhead_system_tests::whole::finished;

const SHORT: &[&str] = &["@duration=6ms", "sensor/argument[samples]@value=3"];

#[test]
fn runs_are_equal() {
    let first = finished("quickstart", SHORT, false);
    let second = finished("quickstart", SHORT, true);
    assert_eq!(first.result, second.result);
    assert_eq!(first.consoles, second.consoles);
    let third = finished("quickstart", SHORT, true);
    assert!(
        second
            .traces
            .iter()
            .all(|trace| trace.as_ref().is_some_and(|t| !t.is_empty()))
    );
    assert_eq!(second.traces, third.traces);

    let (here, there) = (tempfile::tempdir(), tempfile::tempdir());
    let (here, there) = (here.expect("a folder"), there.expect("a folder"));
    first.write(here.path()).expect("writes");
    second.write(there.path()).expect("writes");
    for name in ["result.json", "report.html", "alone.console.txt"] {
        let read = |folder: &std::path::Path| std::fs::read(folder.join(name)).expect("written");
        assert_eq!(read(here.path()), read(there.path()), "{name}");
    }
}
