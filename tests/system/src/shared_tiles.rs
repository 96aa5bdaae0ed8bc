//! Helpers for tests of shared tiles.
//!
//! Why it exists: the tests boot systems and check what applications saw. What it deliberately does not know: the insides
//! of TileMux.

use bulkhead_report::result::{RunResult, SpanResult, VariantResult};
use bulkhead_runner::progress::Silent;
use bulkhead_runner::run::{self, Options};
use bulkhead_runner::watch::Log;
use std::path::{Path, PathBuf};

/// A system of this folder.
pub fn system(name: &str) -> PathBuf {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("systems");
    folder.join(format!("{name}.xml"))
}

fn options(system: impl Into<PathBuf>, overrides: &[&str]) -> Options {
    Options {
        system: system.into(),
        overrides: overrides.iter().map(|text| (*text).to_owned()).collect(),
        ..Options::default()
    }
}

/// Runs a system with overrides, all variants.
///
/// # Panics
/// If it cannot be run: the test has failed.
pub fn boot(system: impl Into<PathBuf>, overrides: &[&str]) -> RunResult {
    match run::run(&options(system, overrides), &Silent) {
        Ok(finished) => finished.result,
        Err(error) => panic!("{error}"),
    }
}

/// As [`boot`], with the console of each variant.
///
/// # Panics
/// As for [`boot`].
pub fn boot_heard(system: impl Into<PathBuf>, overrides: &[&str]) -> (RunResult, Vec<String>) {
    match run::run(&options(system, overrides), &Silent) {
        Ok(finished) => (finished.result, finished.consoles),
        Err(error) => panic!("{error}"),
    }
}

/// As [`boot`], with the events of each variant's harts.
///
/// # Panics
/// As for [`boot`].
pub fn watch(system: impl Into<PathBuf>, overrides: &[&str]) -> (RunResult, Vec<Log>) {
    match run::watched(&options(system, overrides), &Silent) {
        Ok((finished, logs)) => (finished.result, logs),
        Err(error) => panic!("{error}"),
    }
}

/// Why a system is not run.
///
/// # Panics
/// If it is run.
pub fn refusal(system: impl Into<PathBuf>, overrides: &[&str]) -> String {
    match run::run(&options(system, overrides), &Silent) {
        Ok(_) => panic!("it was run"),
        Err(error) => error.to_string(),
    }
}

/// The variant with this name.
///
/// # Panics
/// If there is none.
pub fn variant<'a>(result: &'a RunResult, name: &str) -> &'a VariantResult {
    match result.variants.iter().find(|variant| variant.name == name) {
        Some(variant) => variant,
        None => panic!("no variant {name}"),
    }
}

/// What an application measured.
///
/// # Panics
/// If it measured nothing.
pub fn spans<'a>(variant: &'a VariantResult, application: &str) -> &'a SpanResult {
    let mut all = variant.spans.iter();
    match all.find(|span| span.application == application) {
        Some(span) => span,
        None => panic!("{application} measured nothing in {}", variant.name),
    }
}

/// Ticks from the start of an application's first span to the end of its last.
pub fn elapsed(variant: &VariantResult, application: &str) -> u64 {
    let samples = &spans(variant, application).samples;
    let begin = samples.iter().map(|s| s.begin).min().unwrap_or(0);
    let end = samples.iter().map(|s| s.begin + s.latency).max();
    end.unwrap_or(0) - begin
}
