//! The repository as data: its text files and its packages.
//!
//! Why it exists: a law is a function of this data, so its unit test needs no repository. What it deliberately does not know:
//! any law.

use serde_json::Value;
use std::path::{Path, PathBuf};
use std::process::Command;

/// A text file of the repository.
#[derive(Clone, Debug)]
pub struct File {
    /// Path below the root, with forward slashes.
    pub path: String,
    /// Contents.
    pub text: String,
}

impl File {
    #[cfg(test)]
    pub fn new(path: &str, text: &str) -> Self {
        Self {
            path: path.to_owned(),
            text: text.to_owned(),
        }
    }

    /// Extension of the name, without the dot.
    pub fn ending(&self) -> &str {
        self.path.rsplit_once('.').map_or("", |(_, ending)| ending)
    }
}

/// A Cargo package of the workspace.
#[derive(Clone, Debug)]
pub struct Package {
    /// Name.
    pub name: String,
    /// Folder below the root, with forward slashes.
    pub folder: String,
    /// Folders of the packages of this repository that it depends on in any way.
    pub uses: Vec<String>,
    /// The ones among them whose code becomes part of its own programs.
    pub links: Vec<String>,
    /// `package.metadata.bulkhead.host-tests`: its tests run on the host although it is made for the chip.
    pub host_tests: bool,
    /// `package.metadata.bulkhead.fuzz`: its random tests are operations of hostile clients, which also run for long.
    pub fuzz: bool,
    /// `package.metadata.bulkhead.guided`: tests that are steered by the code that they reach.
    pub guided: Vec<String>,
}

/// Everything that the laws examine.
#[derive(Clone, Debug, Default)]
pub struct Tree {
    /// Text files that are or would be under version control, sorted by path.
    pub files: Vec<File>,
    /// Members of the workspace, sorted by folder.
    pub packages: Vec<Package>,
}

/// Folder with the workspace: the nearest one upwards that holds `rust-toolchain.toml`.
pub fn repository_root() -> Result<PathBuf, String> {
    let here = std::env::current_dir().map_err(|error| format!("no current folder: {error}"))?;
    here.ancestors()
        .find(|folder| folder.join("rust-toolchain.toml").is_file())
        .map(Path::to_path_buf)
        .ok_or_else(|| "run this inside the repository".to_owned())
}

/// Reads the repository at `root`.
pub fn read(root: &Path) -> Result<Tree, String> {
    let listing = Command::new("git")
        .args([
            "ls-files",
            "--cached",
            "--others",
            "--exclude-standard",
            "-z",
        ])
        .current_dir(root)
        .output();
    let mut paths: Vec<String> = match listing {
        Ok(output) if output.status.success() => String::from_utf8_lossy(&output.stdout)
            .split('\0')
            .filter(|path| !path.is_empty())
            .map(str::to_owned)
            .collect(),
        // An unpacked archive has no version control.
        _ => walk(root, root)?,
    };
    paths.sort();
    paths.dedup();
    let files = paths
        .into_iter()
        .filter_map(|path| {
            let text = std::fs::read(root.join(&path)).ok()?;
            String::from_utf8(text).ok().map(|text| File { path, text })
        })
        .collect();
    Ok(Tree {
        files,
        packages: packages(root)?,
    })
}

fn walk(root: &Path, folder: &Path) -> Result<Vec<String>, String> {
    let mut found = Vec::new();
    let entries = std::fs::read_dir(folder).map_err(|error| format!("{error}"))?;
    for entry in entries.flatten() {
        let path = entry.path();
        let name = entry.file_name();
        let name = name.to_string_lossy();
        if path.is_dir() {
            if !matches!(&*name, "target" | ".git" | "out" | "node_modules") {
                found.extend(walk(root, &path)?);
            }
        } else if let Ok(below) = path.strip_prefix(root) {
            found.push(below.to_string_lossy().replace('\\', "/"));
        }
    }
    Ok(found)
}

/// Members of the workspace at `root`, as Cargo sees them.
pub fn packages(root: &Path) -> Result<Vec<Package>, String> {
    let output = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()))
        .args(["metadata", "--no-deps", "--format-version", "1"])
        .current_dir(root)
        .output()
        .map_err(|error| format!("cannot run cargo: {error}"))?;
    if !output.status.success() {
        return Err(String::from_utf8_lossy(&output.stderr).into_owned());
    }
    let metadata: Value = serde_json::from_slice(&output.stdout)
        .map_err(|error| format!("cargo metadata: {error}"))?;
    let root = metadata["workspace_root"].as_str().unwrap_or_default();
    let below = |path: &str| {
        path.strip_prefix(root)
            .unwrap_or(path)
            .trim_start_matches('/')
            .to_owned()
    };
    let mut packages: Vec<Package> = metadata["packages"]
        .as_array()
        .into_iter()
        .flatten()
        .map(|package| Package {
            name: package["name"].as_str().unwrap_or_default().to_owned(),
            folder: below(
                package["manifest_path"]
                    .as_str()
                    .unwrap_or_default()
                    .trim_end_matches("/Cargo.toml"),
            ),
            uses: dependencies(package)
                .map(|(folder, _)| below(folder))
                .collect(),
            links: dependencies(package)
                .filter(|(_, is_linked)| *is_linked)
                .map(|(folder, _)| below(folder))
                .collect(),
            host_tests: package["metadata"]["bulkhead"]["host-tests"]
                .as_bool()
                .unwrap_or(false),
            fuzz: package["metadata"]["bulkhead"]["fuzz"]
                .as_bool()
                .unwrap_or(false),
            guided: package["metadata"]["bulkhead"]["guided"]
                .as_array()
                .into_iter()
                .flatten()
                .filter_map(|target| target.as_str().map(str::to_owned))
                .collect(),
        })
        .collect();
    packages.sort_by(|a, b| a.folder.cmp(&b.folder));
    Ok(packages)
}

/// The packages of this repository that a package depends on, and whether it links them: not only for its build or its tests.
fn dependencies(package: &Value) -> impl Iterator<Item = (&str, bool)> {
    let all = package["dependencies"].as_array().into_iter().flatten();
    all.filter_map(|dependency| Some((dependency["path"].as_str()?, dependency["kind"].is_null())))
}
