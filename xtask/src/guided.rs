//! Guided fuzzing, which is steered by the code that it reaches: finds, builds and runs the targets.
//!
//! Why it exists: the build must put counters into the code, and environment variables must tell the tool everything; nobody should have to
//! remember that. What it deliberately does not know: the targets' operations. Targets are tests of the packages that name them
//! (`package.metadata.bulkhead.guided`; see the crate in `fuzz`).

use crate::tree::Package;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Flags that put counters and the tables of their places into the code, and report comparisons to the tool. `cargo fuzz` passes the same ones
/// for a build without a sanitizer. All of them work with the pinned toolchain.
const FLAGS: &[&str] = &[
    "--cfg=fuzzing_libfuzzer",
    "-Cpasses=sancov-module",
    "-Cllvm-args=-sanitizer-coverage-level=4",
    "-Cllvm-args=-sanitizer-coverage-inline-8bit-counters",
    "-Cllvm-args=-sanitizer-coverage-pc-table",
    "-Cllvm-args=-sanitizer-coverage-trace-compares",
    "-Ccodegen-units=1",
];

/// The longest story or text in bytes: more steps than any target takes, and longer than most systems of the catalog.
const LONGEST: usize = 4096;

/// A target and its run.
pub struct Guided {
    /// Cargo's arguments.
    pub arguments: Vec<String>,
    /// The variables that the build and the test read.
    pub variables: Vec<(&'static str, String)>,
    /// The test writes this file when it begins, because a run without any test must not pass.
    pub begun: PathBuf,
    /// Where the tool leaves a story that fails.
    pub left: PathBuf,
}

/// The host's triple. Build scripts of dependencies must not have counters, and Cargo tells them apart only if a target is given.
pub fn host() -> Option<String> {
    let told = Command::new("rustc").arg("-vV").output().ok()?;
    let told = String::from_utf8(told.stdout).ok()?;
    let mut lines = told.lines();
    lines.find_map(|line| line.strip_prefix("host: ").map(str::to_owned))
}

/// The run of one target of a package: this many stories.
pub fn run(root: &Path, host: &str, package: &Package, target: &str, stories: u32) -> Guided {
    let name = target.replace('-', "_");
    let arguments = [
        "test",
        "--quiet",
        "--profile",
        "fuzz",
        "--target",
        host,
        "-p",
        &package.name,
        "--lib",
        "--",
        &format!("guided_{name}"),
        "--nocapture",
    ];
    // The test runs in its package's folder, and arguments are split at spaces, so no path may begin at the root.
    let up = "../".repeat(package.folder.split('/').count());
    let folder = format!("target/fuzz/{target}");
    let told = format!(
        "-seed=1 -runs={stories} -max_len={LONGEST} -len_control=0 -verbosity=0 -print_final_stats=1 -artifact_prefix={up}{folder}/ {up}{folder}/reached {up}fuzz/corpus/{target}"
    );
    let begun = root.join(&folder).join("begun");
    Guided {
        arguments: arguments.map(str::to_owned).to_vec(),
        variables: vec![
            // One character between them that is in no flag.
            ("CARGO_ENCODED_RUSTFLAGS", FLAGS.join("\x1f")),
            ("BULKHEAD_FUZZ_TARGET", target.to_owned()),
            ("BULKHEAD_FUZZ_BEGUN", begun.display().to_string()),
            (
                "BULKHEAD_FUZZ_FIRST",
                root.join(&folder).join("reached").display().to_string(),
            ),
            ("BOLERO_LIBFUZZER_ARGS", told),
        ],
        left: root.join(folder),
        begun,
    }
}

impl Guided {
    /// Removes what an earlier run has left, so that each run is the same.
    ///
    /// # Errors
    /// Those of the file system.
    pub fn prepare(&self) -> Result<(), String> {
        let failed = |error| format!("{}: {error}", self.left.display());
        if self.left.exists() {
            std::fs::remove_dir_all(&self.left).map_err(failed)?;
        }
        std::fs::create_dir_all(self.left.join("reached")).map_err(failed)
    }

    /// Whether the target was there, and what to do about a story that failed.
    pub fn judge(&self, passed: bool) -> Result<(), String> {
        let target = self.left.file_name().unwrap_or_default().to_string_lossy();
        if !self.begun.exists() {
            return Err(format!(
                "no test of the target `{target}` began; its package names it, so a test must be called guided_{target} and call bulkhead_fuzz"
            ));
        }
        match passed {
            true => Ok(()),
            false => Err(format!(
                "the story is in {}; copied to fuzz/corpus/{target}, every test replays it",
                self.left.display()
            )),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tree;

    #[test]
    fn every_target_has_a_test_and_stories() {
        let root = tree::repository_root().expect("a checkout");
        let tree = tree::read(&root).expect("readable");
        let mut count = 0;
        for package in &tree.packages {
            for target in &package.guided {
                let name = format!("fn guided_{}()", target.replace('-', "_"));
                let mut files = tree
                    .files
                    .iter()
                    .filter(|f| f.path.starts_with(&package.folder));
                assert!(
                    files.any(|file| file.text.contains(&name)),
                    "{name}: {}",
                    package.folder
                );
                let corpus = root.join("fuzz/corpus").join(target);
                assert!(
                    corpus.read_dir().is_ok_and(|all| all.count() > 0),
                    "{target}: no story"
                );
                count += 1;
            }
        }
        // The long runs leave out no test.
        let others = |file: &&tree::File| !file.path.starts_with("xtask/");
        let tests = tree.files.iter().filter(others);
        let tests: usize = tests
            .map(|file| file.text.matches("fn guided_").count())
            .sum();
        assert_eq!(tests, count);
    }

    #[test]
    fn a_run_without_its_test_fails() {
        let place = tempfile_free("guided");
        let guided = Guided {
            arguments: Vec::new(),
            variables: Vec::new(),
            begun: place.join("begun"),
            left: place.clone(),
        };
        guided.prepare().expect("a folder");
        assert!(
            guided
                .judge(true)
                .expect_err("no test")
                .contains("no test of the target")
        );
        std::fs::write(&guided.begun, "x").expect("written");
        assert_eq!(guided.judge(true), Ok(()));
        assert!(
            guided
                .judge(false)
                .expect_err("failed")
                .contains("replays it")
        );
        std::fs::remove_dir_all(place).expect("gone");
    }

    fn tempfile_free(name: &str) -> PathBuf {
        std::env::temp_dir().join(format!("bulkhead-{name}-{}", std::process::id()))
    }
}
