//! Helpers for tests of whole systems.
//!
//! Why it exists: every test here builds the chip's programs, boots the tiled OS and checks the result as a user would.
//! What it deliberately does not know: the insides of any part.

use bulkhead_machine::machine::Machine;
use bulkhead_report::result::{RunResult, VariantResult};
use bulkhead_runner::progress::Silent;
use bulkhead_runner::run::{self, Finished, Options, run, watched};
use bulkhead_runner::session::Strike;
use bulkhead_runner::watch::Log;
use std::path::{Path, PathBuf};

/// A system of this folder.
pub fn system(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("systems")
        .join(format!("{name}.xml"))
}

/// Runs a system with overrides, all variants.
///
/// # Panics
/// If it cannot be run: the test has failed.
pub fn finished(system: impl Into<PathBuf>, overrides: &[&str], traces: bool) -> Finished {
    match run(&options(system, overrides, traces), &Silent) {
        Ok(finished) => finished,
        Err(error) => panic!("{error}"),
    }
}

/// As [`finished`], with the events of each variant's harts.
///
/// # Panics
/// As for [`finished`].
pub fn observed(system: impl Into<PathBuf>, overrides: &[&str]) -> (Finished, Vec<Log>) {
    match watched(&options(system, overrides, false), &Silent) {
        Ok(all) => all,
        Err(error) => panic!("{error}"),
    }
}

/// Runs a system, in which something happens to the machine after this many nanoseconds.
///
/// # Panics
/// As for [`finished`].
pub fn struck(
    system: impl Into<PathBuf>,
    at: u64,
    deed: &(dyn Fn(&mut Machine) + Sync),
) -> Finished {
    match run::struck(&options(system, &[], false), Strike { at, deed }, &Silent) {
        Ok(finished) => finished,
        Err(error) => panic!("{error}"),
    }
}

fn options(system: impl Into<PathBuf>, overrides: &[&str], traces: bool) -> Options {
    Options {
        system: system.into(),
        overrides: overrides.iter().map(|&text| text.to_owned()).collect(),
        variants: Vec::new(),
        traces,
        ..Options::default()
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
