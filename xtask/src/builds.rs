//! Whether two builds of the simulator, with and without optimisation, give the same results.
//!
//! Why it exists: "the same input gives the same ticks on every build" needs both builds, and both are there after the tests; so this
//! step builds nothing that they did not need. What it deliberately does not know: what a result contains. It compares bytes.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;

/// The quickstart, shortened: all its variants run for 6 ms of simulated time with three samples each.
const RUN: &[&str] = &[
    "run",
    "quickstart",
    "--set",
    "@duration=6ms",
    "--set",
    "sensor/argument[samples]@value=3",
    "--json",
];

/// Cargo's folder for what it builds.
fn target(root: &Path) -> PathBuf {
    std::env::var_os("CARGO_TARGET_DIR").map_or_else(|| root.join("target"), PathBuf::from)
}

/// Everything that the command of one profile (`debug` or `release`) writes for [`RUN`]: its exit code, under this name, its
/// standard output, under an empty name, and each file, under its path inside of the output folder.
fn results(root: &Path, profile: &str) -> Result<BTreeMap<PathBuf, Vec<u8>>, String> {
    let folder = target(root).join("two-builds").join(profile);
    let program = target(root).join(profile).join("bulkhead");
    if folder.exists() {
        std::fs::remove_dir_all(&folder).map_err(|e| format!("{}: {e}", folder.display()))?;
    }
    // A relative path: the folder's name must not be a difference. Both run in folders of the same length.
    std::fs::create_dir_all(&folder).map_err(|e| format!("{}: {e}", folder.display()))?;
    let output = Command::new(&program)
        .args(RUN)
        .args(["--out", "out"])
        .current_dir(&folder)
        .env("BULKHEAD_ROOT", root)
        .output()
        .map_err(|e| format!("{}: {e}", program.display()))?;
    // The run ends before its programs do, so its code is not 0. A run that fails altogether writes no result.
    let code = format!("{}", output.status);
    let mut all = BTreeMap::from([
        (PathBuf::from("exit code"), code.into_bytes()),
        (PathBuf::new(), output.stdout),
    ]);
    let out = folder.join("out");
    if !out.join("result.json").is_file() {
        let text = String::from_utf8_lossy(&output.stderr);
        return Err(format!("{} {}: {text}", program.display(), RUN.join(" ")));
    }
    collect(&out, Path::new(""), &mut all)?;
    Ok(all)
}

fn collect(folder: &Path, name: &Path, all: &mut BTreeMap<PathBuf, Vec<u8>>) -> Result<(), String> {
    let said = |error| format!("{}: {error}", folder.display());
    for entry in std::fs::read_dir(folder).map_err(said)? {
        let entry = entry.map_err(said)?;
        let (path, name) = (entry.path(), name.join(entry.file_name()));
        if path.is_dir() {
            collect(&path, &name, all)?;
        } else {
            all.insert(name, std::fs::read(&path).map_err(said)?);
        }
    }
    Ok(())
}

/// The differences between two sets of files, in a line; nothing if they are equal.
fn difference(
    one: &BTreeMap<PathBuf, Vec<u8>>,
    other: &BTreeMap<PathBuf, Vec<u8>>,
) -> Option<String> {
    let names = one.keys().chain(other.keys());
    let mut names: Vec<_> = names
        .filter(|name| one.get(*name) != other.get(*name))
        .collect();
    names.sort();
    names.dedup();
    let shown = |name: &&PathBuf| match name.as_os_str().is_empty() {
        true => "standard output".to_owned(),
        false => name.display().to_string(),
    };
    (!names.is_empty()).then(|| names.iter().map(shown).collect::<Vec<_>>().join(", "))
}

/// Runs the quickstart with the commands of both profiles, which must have been built, and compares everything that they write.
///
/// # Errors
/// A command is missing or writes no result, or something differs: then the message names each file.
pub fn compare(root: &Path) -> Result<(), String> {
    let (dev, release) = (results(root, "debug")?, results(root, "release")?);
    match difference(&dev, &release) {
        None => Ok(()),
        Some(names) => Err(format!(
            "builds with and without optimisation give different results: {names}; see {}",
            target(root).join("two-builds").display()
        )),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn files(all: &[(&str, &str)]) -> BTreeMap<PathBuf, Vec<u8>> {
        let of = |&(name, text): &(&str, &str)| (PathBuf::from(name), text.as_bytes().to_vec());
        all.iter().map(of).collect()
    }

    #[test]
    fn differences_are_named() {
        let one = files(&[("", "a"), ("b", "1"), ("c", "2")]);
        assert_eq!(difference(&one, &one), None);
        let other = files(&[("", "a"), ("b", "3"), ("d", "2")]);
        assert_eq!(difference(&one, &other).as_deref(), Some("b, c, d"));
        let printed = files(&[("", "x"), ("b", "1"), ("c", "2")]);
        assert_eq!(
            difference(&one, &printed).as_deref(),
            Some("standard output")
        );
    }
}
