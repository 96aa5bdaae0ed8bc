//! Chores of the repository: the whole test suite, the laws of the blueprint as code, size reports.
//!
//! Why it exists: everything that a developer must check before a change goes in is here, once, and `.ci/run`, the launcher and a
//! developer run the same steps. What it deliberately does not know: anything about the simulated machine.
#![forbid(unsafe_code)]

mod builds;
// The flags of a run, so that what is built here is not built again there.
#[path = "../../runner/src/chip_flags.rs"]
mod chip_flags;
mod features;
mod guided;
mod pictures;
mod sizes;
mod steps;
mod tidy;
mod tree;

use clap::{Parser, Subcommand};
use std::process::ExitCode;

/// Chores of the repository.
#[derive(Parser)]
#[command(name = "xtask")]
struct Arguments {
    #[command(subcommand)]
    task: Task,
}

#[derive(Subcommand)]
enum Task {
    /// Run the whole test suite and say what was skipped, and why.
    Test {
        /// Run only the steps whose name contains this text.
        only: Option<String>,
        /// The inner loop's subset, in under five minutes: laws, unit tests with few random cases, and a build of the chip's programs.
        #[arg(long, conflicts_with_all = ["fuzz", "only"])]
        quick: bool,
        /// Run the fuzzing tests only, for long: this many cases of each.
        #[arg(long, value_name = "CASES", num_args = 0..=1, default_missing_value = steps::FUZZ_CASES)]
        fuzz: Option<u32>,
        /// Run and audit all systems of the catalog, and compare their verdicts with those that were filed: about an hour.
        #[arg(long, conflicts_with_all = ["fuzz", "only", "quick"])]
        catalog: bool,
    },
    /// Check the laws of the repository (docs/laws.md).
    Tidy,
    /// Lines of code and share of `unsafe`, for each part; the trusted kernel and TileMux above all.
    Sizes,
    /// Check that all optimised programs ask the same features of the packages that they share.
    Features,
    /// Make the README's pictures anew from a run of the quickstart.
    Pictures,
    /// What continuous integration runs before the tests: tidy, formatting and lints (`./bulkhead lint`).
    Ci,
}

fn main() -> ExitCode {
    let root = match tree::repository_root() {
        Ok(root) => root,
        Err(error) => {
            eprintln!("xtask: {error}");
            return ExitCode::FAILURE;
        }
    };
    let good = match Arguments::parse().task {
        Task::Test {
            fuzz: Some(cases),
            only,
            ..
        } => steps::fuzz(&root, only.as_deref(), cases),
        Task::Test { quick: true, .. } => steps::quick(&root),
        Task::Test { catalog: true, .. } => steps::catalog(&root),
        Task::Test { only, .. } => steps::test(&root, only.as_deref()),
        Task::Tidy => tidy::run(&root),
        Task::Sizes => sizes::run(&root),
        Task::Features => features::run(&root),
        Task::Pictures => pictures::run(&root),
        Task::Ci => steps::ci(&root),
    };
    match good {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            eprintln!("xtask: {error}");
            ExitCode::FAILURE
        }
    }
}
