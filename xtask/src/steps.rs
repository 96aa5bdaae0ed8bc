//! The steps of the test suite and of continuous integration, run in sequence, with one summary at the end.
//!
//! Why it exists: a failing step must not hide the next one, and a step that cannot run here must say so. What it deliberately does not
//! know: the contents of the tests.

use crate::builds;
use crate::chip_flags::{self, PROFILE, TARGET};
use crate::guided::{self, Guided};
use crate::tree::{self, Package};
use std::ffi::OsString;
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Instant;

enum Action {
    /// Cargo with these arguments.
    Cargo(Vec<String>),
    /// Cargo with these arguments, whose compiler warns of one of our own flags.
    Chip(Vec<String>),
    /// Rustup with these arguments: Miri of another toolchain.
    Miri(Vec<String>),
    /// Python with these arguments. Exit code 77: not possible here; the last line on standard error gives the reason.
    Python(Vec<String>),
    /// Cargo with each of these lists of arguments, to build the command in both profiles; then their results are compared.
    Builds([Vec<String>; 2]),
    /// A target that is steered by the code that it reaches.
    Guided(Guided),
    /// Not possible here, for this reason.
    Skip(String),
}

/// The outcome of a step.
enum Outcome {
    Passed,
    Failed,
    Skipped(String),
}

struct Step {
    name: String,
    action: Action,
    /// An environment variable to set.
    variable: Option<(&'static str, String)>,
}

/// Cargo, as it was called.
pub fn cargo() -> OsString {
    std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into())
}

fn works(program: &str, argument: &str) -> bool {
    can(program, &[argument])
}

fn can(program: &str, arguments: &[&str]) -> bool {
    Command::new(program)
        .args(arguments)
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status()
        .is_ok_and(|status| status.success())
}

fn step(name: &str, arguments: &[&str]) -> Step {
    Step {
        name: name.to_owned(),
        action: Action::Cargo(arguments.iter().map(|&a| a.to_owned()).collect()),
        variable: None,
    }
}

/// The extension module of the Python package: outside an interpreter it has nothing to link with.
fn for_python(package: &Package) -> bool {
    package.folder == "python"
}

/// Runs Python; shows its standard error at once.
fn run_python(root: &Path, arguments: &[String]) -> Outcome {
    let child = Command::new("python3")
        .args(arguments)
        .current_dir(root)
        .env("BULKHEAD_ROOT", root)
        .stderr(Stdio::piped())
        .spawn();
    let Ok(mut child) = child else {
        return Outcome::Skipped("python3 cannot be started".to_owned());
    };
    let mut last = String::new();
    if let Some(stderr) = child.stderr.take() {
        for line in BufReader::new(stderr).split(b'\n').map_while(Result::ok) {
            let line = String::from_utf8_lossy(&line).into_owned();
            eprintln!("{line}");
            last = line;
        }
    }
    match child.wait().ok().and_then(|status| status.code()) {
        Some(0) => Outcome::Passed,
        Some(77) => Outcome::Skipped(last),
        _ => Outcome::Failed,
    }
}

/// Made for the chip: does not build for the host as a whole.
fn for_the_chip(package: &Package) -> bool {
    package.folder.starts_with("software/") || package.folder.starts_with("workloads/")
}

/// Tests of whole systems, and others that need the optimised simulator.
fn is_test(package: &Package) -> bool {
    package.folder.starts_with("tests/") && !package.host_tests
}

/// `-p name` for each package that satisfies `wanted`.
fn select(packages: &[Package], wanted: impl Fn(&Package) -> bool) -> Vec<String> {
    packages
        .iter()
        .filter(|package| wanted(package))
        .flat_map(|package| ["-p".to_owned(), package.name.clone()])
        .collect()
}

/// A Cargo step over some packages; a skipped one where there are none.
fn over(name: &str, before: &[&str], packages: Vec<String>, after: &[&str]) -> Step {
    if packages.is_empty() {
        return Step {
            name: name.to_owned(),
            action: Action::Skip("no such package in this workspace".to_owned()),
            variable: None,
        };
    }
    let mut arguments: Vec<String> = before.iter().map(|&a| a.to_owned()).collect();
    arguments.extend(packages);
    arguments.extend(after.iter().map(|&a| a.to_owned()));
    Step {
        name: name.to_owned(),
        action: Action::Cargo(arguments),
        variable: None,
    }
}

fn outcome(command: &mut Command, root: &Path) -> Outcome {
    let command = command.current_dir(root).env("BULKHEAD_ROOT", root);
    match command.status().is_ok_and(|status| status.success()) {
        true => Outcome::Passed,
        false => Outcome::Failed,
    }
}

/// All programs of the chip, built as a run builds them.
fn programs_of_the_chip(root: &Path, packages: &[Package]) -> Step {
    let home = chip_flags::cargo_home();
    let flags = chip_flags::flags(&[(&home, "cargo"), (root, ".")]);
    let build = ["build", "--quiet", "--profile", PROFILE];
    let flags = ["--target", TARGET, "--config", &flags];
    let mut step = over(
        "programs of the chip build",
        &[&build[..], &flags].concat(),
        select(packages, for_the_chip),
        &[],
    );
    if let Action::Cargo(arguments) = step.action {
        step.action = Action::Chip(arguments);
    }
    step
}

fn build_for_the_chip(root: &Path, arguments: &[String]) -> Outcome {
    let mut command = Command::new(cargo());
    command.args(arguments).current_dir(root);
    let Ok(output) = command.stdin(Stdio::null()).output() else {
        return Outcome::Failed;
    };
    let words = String::from_utf8_lossy(&output.stderr);
    eprint!("{}", chip_flags::without_note(&words));
    match output.status.success() {
        true => Outcome::Passed,
        false => Outcome::Failed,
    }
}

/// Builds the command in both profiles and compares what it writes.
fn compare_builds(root: &Path, builds: &[Vec<String>]) -> Outcome {
    for arguments in builds {
        let built = outcome(Command::new(cargo()).args(arguments), root);
        if matches!(built, Outcome::Failed) {
            return built;
        }
    }
    match builds::compare(root) {
        Ok(()) => Outcome::Passed,
        Err(error) => {
            eprintln!("xtask: {error}");
            Outcome::Failed
        }
    }
}

/// Runs a steered target, without anything from an earlier run.
fn run_guided(root: &Path, guided: &Guided) -> Outcome {
    let judged = guided.prepare().and_then(|()| {
        let mut command = Command::new(cargo());
        command.envs(guided.variables.iter().cloned());
        let done = outcome(command.args(&guided.arguments), root);
        guided.judge(matches!(done, Outcome::Passed))
    });
    match judged {
        Ok(()) => Outcome::Passed,
        Err(error) => {
            eprintln!("xtask: {error}");
            Outcome::Failed
        }
    }
}

fn run_steps(root: &Path, title: &str, steps: Vec<Step>) -> bool {
    let begin = Instant::now();
    let mut lines = Vec::new();
    let (mut failed, mut skipped) = (0usize, 0usize);
    let count = steps.len();
    for (index, step) in steps.into_iter().enumerate() {
        let start = Instant::now();
        let announce = |program: &str, arguments: &[String]| {
            eprintln!(
                "== {}/{count} {}: {program} {}",
                index + 1,
                step.name,
                arguments.join(" ")
            );
        };
        let outcome = match step.action {
            Action::Skip(reason) => Outcome::Skipped(reason),
            Action::Python(arguments) => {
                announce("python3", &arguments);
                run_python(root, &arguments)
            }
            Action::Cargo(arguments) => {
                announce("cargo", &arguments);
                let mut command = Command::new(cargo());
                command.envs(step.variable);
                outcome(command.args(&arguments), root)
            }
            Action::Chip(arguments) => {
                announce("cargo", &arguments);
                build_for_the_chip(root, &arguments)
            }
            Action::Guided(guided) => {
                announce("cargo", &guided.arguments);
                run_guided(root, &guided)
            }
            Action::Builds(builds) => {
                announce("cargo", &builds.concat());
                compare_builds(root, &builds)
            }
            Action::Miri(arguments) => {
                announce("rustup", &arguments);
                // The crate's storage lives forever, so every test leaves it behind.
                let mut command = Command::new("rustup");
                command.env("MIRIFLAGS", "-Zmiri-ignore-leaks");
                outcome(command.args(&arguments), root)
            }
        };
        let word = match outcome {
            Outcome::Skipped(reason) => {
                skipped += 1;
                lines.push(format!("  skipped  {:<28} {reason}", step.name));
                continue;
            }
            Outcome::Passed => "passed ",
            Outcome::Failed => {
                failed += 1;
                "FAILED "
            }
        };
        lines.push(format!(
            "  {word}  {:<28} {:.1} s",
            step.name,
            start.elapsed().as_secs_f64()
        ));
    }
    println!("\n{title}:");
    for line in lines {
        println!("{line}");
    }
    println!(
        "{title}: {} passed, {failed} failed, {skipped} skipped, {:.0} s",
        count - failed - skipped,
        begin.elapsed().as_secs_f64()
    );
    failed == 0
}

/// The Python package: built into an environment of its own, checked and tested there, on a cluster of processes too.
fn python_step() -> Step {
    let action = if works("python3", "--version") {
        Action::Python(vec!["python/develop.py".to_owned(), "test".to_owned()])
    } else {
        Action::Skip("python3 is missing: apt-get install python3 python3-venv".to_owned())
    };
    Step {
        name: "python package".to_owned(),
        action,
        variable: None,
    }
}

/// The toolchain whose Miri is used: the launcher installs it. Only the workspace's manifest names it.
fn miri_toolchain(root: &Path) -> Option<String> {
    let manifest = std::fs::read_to_string(root.join("Cargo.toml")).ok()?;
    let mut lines = manifest.lines();
    let name = lines.find_map(|line| line.strip_prefix("miri = \"")?.strip_suffix('"'));
    name.map(str::to_owned)
}

/// Tests of a pure crate under Miri, which checks every memory access: those whose names contain one of these words. The random tests
/// would take hours there.
fn miri_step(root: &Path, name: &str, package: &str, tests: &[&str]) -> Step {
    let toolchain = miri_toolchain(root).unwrap_or_else(|| "nightly".to_owned());
    let miri = ["run", &toolchain, "cargo", "miri"];
    let action = if can("rustup", &[&miri[..], &["--version"]].concat()) {
        let package = ["test", "--quiet", "-p", package, "--lib", "--"];
        let arguments = [&miri[..], &package, tests].concat();
        Action::Miri(arguments.iter().map(|&a| a.to_owned()).collect())
    } else {
        Action::Skip(format!(
            "Miri is missing: rustup toolchain install {toolchain} --component miri --component rust-src"
        ))
    };
    Step {
        name: name.to_owned(),
        action,
        variable: None,
    }
}

/// The examples of the one-shot RTOS's policy.
const ONE_SHOT: &[&str] = &[
    "alarms::",
    "suspension::",
    "tasks::",
    "watch::",
    "a_burst",
    "a_caller",
    "one_caller",
    "a_line",
    "the_life",
    "waiting_for",
];

/// The whole test suite; `only` selects steps by a part of their name.
pub fn test(root: &Path, only: Option<&str>) -> Result<bool, String> {
    let packages = tree::packages(root)?;
    let host = |p: &Package| !for_the_chip(p) && !is_test(p) && !for_python(p);
    let mut steps = vec![
        over(
            "host crates",
            &["test", "--quiet", "--no-fail-fast"],
            select(&packages, host),
            &[],
        ),
        over(
            "pure crates of the chip",
            &["test", "--quiet", "--no-fail-fast", "--lib"],
            select(&packages, |p| for_the_chip(p) && p.host_tests),
            &[],
        ),
        programs_of_the_chip(root, &packages),
    ];
    for package in packages.iter().filter(|package| is_test(package)) {
        // Whole systems run for many simulated milliseconds: they need the optimised simulator.
        let arguments = [
            "test",
            "--quiet",
            "--no-fail-fast",
            "--release",
            "-p",
            &package.name,
        ];
        let name = match package.folder.rsplit('/').next() {
            Some("conformance") => "conformance",
            Some("system") => "whole systems",
            Some("optimiser") => "optimiser against HiGHS",
            _ => "further tests",
        };
        if name == "conformance" && !works("qemu-system-riscv64", "--version") {
            steps.push(Step {
                name: name.to_owned(),
                action: Action::Skip(
                    "qemu-system-riscv64 is missing: apt-get install qemu-system-misc".to_owned(),
                ),
                variable: None,
            });
        } else {
            steps.push(step(name, &arguments));
        }
    }
    // Everything is built by now, except the optimised command, which the Python package's tests need, too.
    let owned = |arguments: &[&str]| arguments.iter().map(|&a| a.to_owned()).collect();
    let before: Vec<String> = owned(&["test", "--quiet", "--no-run"]);
    steps.push(Step {
        name: "determinism, two builds".to_owned(),
        action: Action::Builds([
            [before, select(&packages, host)].concat(),
            owned(&["build", "--quiet", "--release", "-p", "bulkhead"]),
        ]),
        variable: None,
    });
    if !works("xmllint", "--version") {
        // With it, the tests of the host crates compare the schemas with the catalog.
        steps.push(Step {
            name: "schema accepts the catalog".to_owned(),
            action: Action::Skip("xmllint is missing: apt-get install libxml2-utils".to_owned()),
            variable: None,
        });
    }
    steps.push(miri_step(
        root,
        "capabilities under Miri",
        "bulkhead-capabilities",
        &["examples", "attacks"],
    ));
    steps.push(miri_step(
        root,
        "one-shot policy under Miri",
        "bulkhead-exec-one-shot",
        ONE_SHOT,
    ));
    steps.push(python_step());
    steps.push(step(
        "laws (tidy)",
        &["run", "--quiet", "-p", "xtask", "--", "tidy"],
    ));
    select_steps(&mut steps, only)?;
    let ahead = build_ahead(root, &steps);
    let passed = run_steps(root, "Test suite", steps);
    ahead
        .join()
        .map_err(|_| "the thread that builds ahead panicked".to_owned())?;
    Ok(passed)
}

/// Builds what the optimised steps need while the first steps run, because these have long stretches in which one compiler or one test keeps one processor busy. Cargo
/// has a lock for each profile, so a step waits for its build. Nothing is said of these builds: a step whose program is not there builds it, and shows the errors.
fn build_ahead(root: &Path, steps: &[Step]) -> std::thread::JoinHandle<()> {
    let release = |arguments: &&[String]| arguments.iter().any(|one| one == "--release");
    let needed = steps.iter().filter_map(|step| match &step.action {
        Action::Cargo(arguments) => Some(&arguments[..]),
        Action::Builds([_, release]) => Some(&release[..]),
        _ => None,
    });
    let builds: Vec<Command> = needed
        .filter(release)
        .map(|arguments| {
            let mut command = Command::new(cargo());
            command
                .args(arguments)
                .current_dir(root)
                .env("BULKHEAD_ROOT", root);
            if arguments.iter().any(|one| one == "test") {
                command.arg("--no-run");
            }
            command.stdout(Stdio::null()).stderr(Stdio::null());
            command
        })
        .collect();
    std::thread::spawn(move || {
        for mut build in builds {
            // Whether it succeeds, its step finds out.
            if build.status().is_err() {
                return;
            }
        }
    })
}

/// Keeps the steps whose names contain this text.
fn select_steps(steps: &mut Vec<Step>, only: Option<&str>) -> Result<(), String> {
    let Some(only) = only else { return Ok(()) };
    steps.retain(|step| step.name.contains(only));
    match steps.is_empty() {
        true => Err(format!("no step has a name with \"{only}\" in it")),
        false => Ok(()),
    }
}

/// Cases of each random test in the quick run.
const QUICK_CASES: &str = "16";

/// The steps that a developer runs after every change, in under five minutes on two cores: the laws, the unit tests with few random cases,
/// and whether the chip's programs build. Whole systems, conformance and Python are left to [`test`].
pub fn quick(root: &Path) -> Result<bool, String> {
    let packages = tree::packages(root)?;
    let units = ["test", "--quiet", "--no-fail-fast", "--lib"];
    let host = |p: &Package| {
        !for_the_chip(p) && !is_test(p) && !for_python(p) && !["cli", "xtask"].contains(&&*p.folder)
    };
    let mut steps = vec![
        step(
            "laws (tidy)",
            &["run", "--quiet", "-p", "xtask", "--", "tidy"],
        ),
        over("host crates", &units, select(&packages, host), &[]),
        over(
            "pure crates of the chip",
            &units,
            select(&packages, |p| for_the_chip(p) && p.host_tests),
            &[],
        ),
        programs_of_the_chip(root, &packages),
    ];
    for step in &mut steps {
        step.variable = Some(("PROPTEST_CASES", QUICK_CASES.to_owned()));
    }
    Ok(run_steps(root, "Quick tests", steps))
}

/// Cases of each fuzzing test in the long run, by default.
pub const FUZZ_CASES: &str = "20000";

/// The long run of the tests that normally run for a few seconds: the random tests of all marked packages, optimised, with this many
/// cases each; then the guided targets, the coherence protocol, the memory model and the random systems. `only` selects steps as for [`test`].
pub fn fuzz(root: &Path, only: Option<&str>, cases: u32) -> Result<bool, String> {
    let packages = tree::packages(root)?;
    let fuzzed = select(&packages, |p| p.fuzz);
    let before = ["test", "--release", "--no-fail-fast", "--lib"];
    let mut long = over("fuzzing", &before, fuzzed, &[]);
    long.variable = Some(("PROPTEST_CASES", cases.to_string()));
    // Optimised, they make millions of accesses; in the test suite, some hundred thousand.
    let protocol = step(
        "coherence protocol",
        &[
            "test",
            "--release",
            "-p",
            "bulkhead-machine",
            "--lib",
            "protocol_tests::",
        ],
    );
    // A program runs 18 times.
    let mut model = step(
        "memory model",
        &[
            "test",
            "--release",
            "-p",
            "bulkhead-machine",
            "--test",
            "all",
            "rvwmo::",
        ],
    );
    model.variable = Some(("PROPTEST_CASES", cases.div_ceil(4).to_string()));
    // A pair of hostile programs on a chip takes as long as a hundred operations of a client.
    let mut pairs = step(
        "pairs of hostile programs",
        &[
            "test",
            "--release",
            "-p",
            "bulkhead-system-tests",
            "attacks::pairs",
            "--",
            "--nocapture",
        ],
    );
    pairs.variable = Some(("BULKHEAD_PAIRS", cases.div_ceil(100).to_string()));
    // A system of the one-shot RTOS needs about ten images of its own.
    let mut systems = step(
        "random one-shot systems",
        &[
            "test",
            "--release",
            "-p",
            "bulkhead-system-tests",
            "--",
            "one_shot_systems::systems",
            "one_shot_notify::systems",
            "one_shot_clocks::no_error",
            "--nocapture",
        ],
    );
    systems.variable = Some((
        "BULKHEAD_ONE_SHOT_SYSTEMS",
        cases.div_ceil(1000).to_string(),
    ));
    // An ordinary run tries some of them.
    let mut guards = step(
        "all attacks on guarded cores",
        &[
            "test",
            "--release",
            "-p",
            "bulkhead-system-tests",
            "--",
            "guard::with_guards",
            "guard::beside_floods",
        ],
    );
    guards.variable = Some(("BULKHEAD_ONE_SHOT_ATTACKS", "all".to_owned()));
    let mut steps = vec![long];
    steps.extend(guided_steps(root, &packages, cases));
    steps.extend([protocol, model, pairs, systems, guards]);
    select_steps(&mut steps, only)?;
    Ok(run_steps(root, "Fuzzing", steps))
}

/// A step for each target that is steered by the code that it reaches.
fn guided_steps(root: &Path, packages: &[Package], stories: u32) -> Vec<Step> {
    let skip = |reason: &str| {
        vec![Step {
            name: "guided fuzzing".to_owned(),
            action: Action::Skip(reason.to_owned()),
            variable: None,
        }]
    };
    if !works("c++", "--version") {
        return skip("a C++ compiler is missing: apt-get install g++");
    }
    let Some(host) = guided::host() else {
        return skip("rustc does not say for which host it builds");
    };
    let targets = packages
        .iter()
        .flat_map(|package| package.guided.iter().map(move |target| (package, target)));
    targets
        .map(|(package, target)| Step {
            name: format!("guided: {target}"),
            action: Action::Guided(guided::run(root, &host, package, target, stories)),
            variable: None,
        })
        .collect()
}

/// Runs and audits the whole catalog and compares the verdicts with the filed ones.
pub fn catalog(root: &Path) -> Result<bool, String> {
    let package = ["test", "--release", "-p", "bulkhead-system-tests"];
    let test = |name, only| {
        let ignored = [only, "--", "--ignored", "--nocapture"];
        step(name, &[&package[..], &ignored].concat())
    };
    let steps = vec![
        test("runs of the catalog", "catalog::runs"),
        test("audits of the catalog", "catalog::audits"),
    ];
    Ok(run_steps(root, "Verdicts of the catalog", steps))
}

/// Tidy, formatting and lints.
pub fn ci(root: &Path) -> Result<bool, String> {
    let packages = tree::packages(root)?;
    let mut steps = vec![step(
        "laws (tidy)",
        &["run", "--quiet", "-p", "xtask", "--", "tidy"],
    )];
    steps.push(step(
        "size of what is trusted",
        &["run", "--quiet", "-p", "xtask", "--", "sizes"],
    ));
    steps.push(step(
        "one set of features",
        &["run", "--quiet", "-p", "xtask", "--", "features"],
    ));
    if works("cargo-fmt", "--version") {
        steps.push(step("formatting", &["fmt", "--all", "--check"]));
    } else {
        steps.push(Step {
            name: "formatting".to_owned(),
            action: Action::Skip("rustfmt is missing: rustup component add rustfmt".to_owned()),
            variable: None,
        });
    }
    if works("cargo-clippy", "--version") {
        let strict = ["--", "-D", "warnings"];
        steps.push(over(
            "lints of the host crates",
            &["clippy", "--quiet", "--all-targets"],
            select(&packages, |p| !for_the_chip(p)),
            &strict,
        ));
        steps.push(over(
            "lints of the pure crates",
            &["clippy", "--quiet", "--lib"],
            select(&packages, |p| for_the_chip(p) && p.host_tests),
            &strict,
        ));
        steps.push(over(
            "lints of the chip's programs",
            &["clippy", "--quiet", "--profile", "chip", "--target", TARGET],
            select(&packages, for_the_chip),
            &strict,
        ));
        let notify = "bulkhead-oneshot-c/notify";
        steps.push(over(
            "lints of notification",
            &[
                "clippy",
                "--quiet",
                "--profile",
                "chip",
                "--target",
                TARGET,
                "--features",
                notify,
            ],
            select(&packages, |p| p.folder.starts_with("software/oneshot")),
            &strict,
        ));
    } else {
        steps.push(Step {
            name: "lints".to_owned(),
            action: Action::Skip("clippy is missing: rustup component add clippy".to_owned()),
            variable: None,
        });
    }
    Ok(run_steps(root, "Checks", steps))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn package(folder: &str) -> Package {
        Package {
            name: folder.replace('/', "-"),
            folder: folder.to_owned(),
            uses: Vec::new(),
            links: Vec::new(),
            host_tests: false,
            fuzz: false,
            guided: Vec::new(),
        }
    }

    #[test]
    fn selection_names_the_packages() {
        let packages = [package("abi"), package("software/hal")];
        assert_eq!(select(&packages, for_the_chip), ["-p", "software-hal"]);
    }

    #[test]
    fn the_manifest_names_a_dated_toolchain() {
        let root = tree::repository_root().expect("a checkout");
        let toolchain = miri_toolchain(&root).expect("there");
        let date = toolchain.strip_prefix("nightly-").expect("a nightly");
        assert_eq!(date.split('-').map(str::len).collect::<Vec<_>>(), [4, 2, 2]);
    }

    #[test]
    fn steps_are_selected_by_a_part_of_their_names() {
        let mut steps = vec![step("guided: files", &[]), step("fuzzing", &[])];
        assert!(select_steps(&mut steps, Some("nothing")).is_err());
        let mut steps = vec![step("guided: files", &[]), step("fuzzing", &[])];
        assert_eq!(select_steps(&mut steps, None), Ok(()));
        assert_eq!(select_steps(&mut steps, Some("guided")), Ok(()));
        assert_eq!(steps.len(), 1);
    }

    #[test]
    fn a_step_without_packages_is_skipped_with_a_reason() {
        let step = over("x", &["test"], Vec::new(), &[]);
        assert!(matches!(step.action, Action::Skip(reason) if !reason.is_empty()));
    }
}
