//! Equal inputs give equal ticks: in repeated runs, with and without a trace, in other folders, in debug and release.

use bulkhead_system_tests::whole::finished;
use sha2::{Digest, Sha256};

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

/// Compares this build's digests with those of this test's last run with the same inputs, whatever build that was. The
/// test suite runs it in debug and in release.
#[test]
fn builds_are_equal() {
    let run = finished("quickstart", SHORT, true);
    let result = run.result;
    // Statistics, ledger, markers and the trace.
    let digests: String = result
        .variants
        .iter()
        .zip(&run.traces)
        .map(|(variant, trace)| {
            let trace = Sha256::digest(trace.as_deref().expect("a trace"));
            format!("{} {} {trace:x}\n", variant.name, variant.digest)
        })
        .collect();
    let inputs: String = result
        .provenance
        .inputs
        .iter()
        .map(|i| format!("{} {}\n", i.name, i.sha256))
        .collect();
    let folder = std::path::Path::new(env!("CARGO_TARGET_TMPDIR")).join("digests");
    std::fs::create_dir_all(&folder).expect("the target folder can be written");
    let (known_inputs, known) = (folder.join("inputs"), folder.join("outputs"));
    let version = format!("{inputs}{}", env!("CARGO_PKG_VERSION"));
    let same_inputs = std::fs::read_to_string(&known_inputs).is_ok_and(|text| text == version);
    if same_inputs && std::env::var_os("BULKHEAD_COMPARE_BUILDS").is_some() {
        let before = std::fs::read_to_string(&known).expect("written with the inputs");
        assert_eq!(
            before, digests,
            "another build of the simulator gave other ticks"
        );
    }
    std::fs::write(known_inputs, version).expect("writes");
    std::fs::write(known, digests).expect("writes");
}
