//! Cargo builds programs for the chip.
//!
//! Why it exists: a program must be the same, byte by byte, wherever its sources are. The order of its functions depends on their symbols,
//! and the contents of caches depend on the order, so one different letter in a symbol changes ticks. Neither folders nor settings of the
//! host's builds reach a program. What it deliberately does not know: which programs exist.

pub use crate::chip_flags::{PROFILE, TARGET};
use crate::chip_flags::{cargo_home, flags, without_note};
use crate::environment;
use crate::error::Error;
use serde_json::Value;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::OnceLock;

/// The program that links for the chip: the target's default.
const LINKER: &str = "rust-lld";
/// The checkout's wrapper that Cargo calls instead of the compiler; its own text says why.
const BY_NAME: &str = "runner/rustc-by-name";

/// Cargo itself.
pub fn cargo() -> Command {
    Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()))
}

/// The error that Cargo cannot be started.
pub fn no_cargo(error: &std::io::Error) -> Error {
    Error::Machine(format!(
        "cannot run cargo ({error}); the launcher ./bulkhead installs it"
    ))
}

/// The linker of programs for the chip, and the library that it needs.
#[derive(Clone, Debug)]
pub struct Linker {
    /// Its program.
    pub program: PathBuf,
    /// The compiler's own functions, which code of any language calls.
    pub builtins: PathBuf,
}

/// Those of the toolchain with which Cargo builds in `root`.
///
/// # Errors
/// If there is no compiler, or it has no library for the chip.
pub fn linker(root: &Path) -> Result<Linker, Error> {
    static KNOWN: OnceLock<Linker> = OnceLock::new();
    if let Some(known) = KNOWN.get() {
        return Ok(known.clone());
    }
    let found = find_linker(root)?;
    Ok(KNOWN.get_or_init(|| found).clone())
}

fn find_linker(root: &Path) -> Result<Linker, Error> {
    let mut command = Command::new("rustc");
    command.current_dir(root).args(["--target", TARGET]);
    command.args(["--print", "sysroot", "--print", "host-tuple"]);
    command.args(["--print", "target-libdir"]);
    environment::leave_out(&mut command);
    let failed = |what: &dyn std::fmt::Display| {
        Error::Machine(format!(
            "cannot ask rustc for its linker ({what}); the launcher ./bulkhead installs it"
        ))
    };
    let output = command.stdin(Stdio::null()).output();
    let output = output.map_err(|error| failed(&error))?;
    let said = String::from_utf8_lossy(&output.stdout);
    let [sysroot, host, library] = said.lines().collect::<Vec<_>>()[..] else {
        return Err(failed(&String::from_utf8_lossy(&output.stderr).trim()));
    };
    // As the compiler looks for it: among its own tools, and then where all programs are.
    let own = Path::new(sysroot)
        .join("lib/rustlib")
        .join(host)
        .join("bin");
    let own = own.join(LINKER);
    let entries = std::fs::read_dir(library);
    let entries = entries.map_err(|error| Error::file(Path::new(library), error))?;
    let mut paths = entries.filter_map(|entry| Some(entry.ok()?.path()));
    let builtins = paths.find(|path| {
        let name = path.file_name().and_then(|name| name.to_str());
        name.is_some_and(|name| {
            name.starts_with("libcompiler_builtins-") && name.ends_with(".rlib")
        })
    });
    Ok(Linker {
        program: match own.is_file() {
            true => own,
            false => PathBuf::from(LINKER),
        },
        builtins: builtins
            .ok_or_else(|| failed(&format!("no libcompiler_builtins in {library}")))?,
    })
}

/// A build for the chip.
pub struct Build<'a> {
    /// The checkout.
    pub root: &'a Path,
    /// Where Cargo runs: the workspace or the package.
    pub folder: &'a Path,
    /// Its name in errors.
    pub what: &'a str,
    /// The packages; all packages of the folder if empty.
    pub packages: Vec<&'a str>,
    /// Folders, and what programs call them. If several match, the last one counts. Cargo's own folder is known.
    pub names: Vec<(&'a Path, &'a str)>,
    /// Where results go if the packages are not in the checkout's workspace. Nothing else may be built there: Cargo does not notice that
    /// the compiler was called differently.
    pub outside: Option<PathBuf>,
    /// The folder of the user's package, which programs call `.`. All such folders can share what was built `outside`.
    pub user: Option<&'a Path>,
    /// Folders of packages of tasks, and what programs call them. They are not among `names`, because these are flags for all packages: the kernel would be
    /// built again whenever the next system has other folders.
    pub tasks: Vec<(&'a Path, &'a str)>,
}

impl Build<'_> {
    /// Builds the binaries.
    ///
    /// # Errors
    /// If Cargo is missing or the build fails.
    pub fn binaries(&self) -> Result<Vec<Built>, Error> {
        Ok(executables(&self.run(&["--bins"])?.0))
    }

    /// Builds the binaries of these names. Returns the compiler's warnings, too.
    ///
    /// # Errors
    /// If Cargo is missing or the build fails.
    pub fn named_binaries(&self, names: &[&str]) -> Result<(Vec<Built>, String), Error> {
        let targets: Vec<&str> = names.iter().flat_map(|name| ["--bin", name]).collect();
        let (messages, warnings) = self.run(&targets)?;
        Ok((executables(&messages), warnings))
    }

    /// Builds the static library for C. Returns the archive, if there is one.
    ///
    /// # Errors
    /// If Cargo is missing or the build fails.
    pub fn library(&self) -> Result<Option<PathBuf>, Error> {
        Ok(archive(&self.run(&["--lib"])?.0))
    }

    /// Cargo's messages, and what it says to people.
    fn run(&self, targets: &[&str]) -> Result<(String, String), Error> {
        let home = cargo_home();
        let names: Vec<(&Path, &str)> = [(&*home, "cargo")]
            .into_iter()
            .chain(self.names.iter().copied())
            .collect();
        let mut command = cargo();
        command
            .current_dir(self.folder)
            .args(["build", "--quiet", "--profile", PROFILE, "--target", TARGET])
            .args(targets)
            .args(["--message-format", "json-render-diagnostics"])
            .args(["--config", &flags(&names)]);
        for package in &self.packages {
            command.args(["-p", package]);
        }
        environment::leave_out(&mut command);
        if let Some(target) = &self.outside {
            command.arg("--target-dir").arg(target);
            command.env("RUSTC_WRAPPER", self.root.join(BY_NAME));
            command.env("BULKHEAD_FOLDER", self.user.unwrap_or(Path::new("")));
            let tasks = self.tasks.iter();
            let tasks: Vec<String> = tasks
                .map(|(folder, name)| format!("{}={name}", folder.display()))
                .collect();
            command.env("BULKHEAD_FOLDERS", tasks.join("\n"));
        }
        let output = command
            .stdin(Stdio::null())
            .output()
            .map_err(|error| no_cargo(&error))?;
        let words = without_note(&String::from_utf8_lossy(&output.stderr));
        if !output.status.success() {
            return Err(Error::Build {
                program: self.what.to_owned(),
                output: words,
            });
        }
        Ok((String::from_utf8_lossy(&output.stdout).into_owned(), words))
    }
}

/// A binary that was built.
#[derive(Debug, PartialEq, Eq)]
pub struct Built {
    /// Its package.
    pub package: String,
    /// Its name.
    pub name: String,
    /// Its source, absolute.
    pub source: PathBuf,
    /// The ELF file.
    pub executable: PathBuf,
}

/// Reads Cargo's messages.
fn executables(messages: &str) -> Vec<Built> {
    messages
        .lines()
        .filter_map(|line| serde_json::from_str::<Value>(line).ok())
        .filter(|message| message["reason"] == "compiler-artifact")
        .filter_map(|message| {
            Some(Built {
                package: package_name(message["package_id"].as_str()?),
                name: message["target"]["name"].as_str()?.to_owned(),
                source: PathBuf::from(message["target"]["src_path"].as_str()?),
                executable: PathBuf::from(message["executable"].as_str()?),
            })
        })
        .collect()
}

/// Name in a package identifier: `path+file:///a/name#0.1.0` or `path+file:///a/folder#name@0.1.0`.
fn package_name(identifier: &str) -> String {
    let (path, version) = identifier.split_once('#').unwrap_or((identifier, ""));
    match version.split_once('@') {
        Some((name, _)) => name.to_owned(),
        None => path.rsplit('/').next().unwrap_or_default().to_owned(),
    }
}

/// The static library among Cargo's messages.
fn archive(messages: &str) -> Option<PathBuf> {
    let lines = messages
        .lines()
        .filter_map(|line| serde_json::from_str::<Value>(line).ok());
    lines
        .filter(|message| message["reason"] == "compiler-artifact")
        .flat_map(|message| message["filenames"].as_array().cloned().unwrap_or_default())
        .filter_map(|name| name.as_str().map(PathBuf::from))
        .find(|path| path.file_name().is_some_and(|name| name == "libbulkhead.a"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn executables_come_from_cargos_messages() {
        let line = json!({ "reason": "compiler-artifact", "package_id": "path+file:///w/workloads/control#bulkhead-control@0.1.0",
            "target": { "name": "sensor", "src_path": "/w/workloads/control/src/sensor.rs" }, "executable": "/w/target/sensor" });
        let other = json!({ "reason": "compiler-artifact", "package_id": "x", "target": { "name": "lib" }, "executable": null });
        let found = executables(&format!("{line}\nnot json\n{other}\n"));
        let sensor = Built {
            package: "bulkhead-control".to_owned(),
            name: "sensor".to_owned(),
            source: PathBuf::from("/w/workloads/control/src/sensor.rs"),
            executable: PathBuf::from("/w/target/sensor"),
        };
        assert_eq!(found, [sensor]);
    }

    #[test]
    fn the_library_for_c_is_found_among_the_messages() {
        let other =
            json!({ "reason": "compiler-artifact", "filenames": ["/w/target/libother.rlib"] });
        let line =
            json!({ "reason": "compiler-artifact", "filenames": ["/w/target/libbulkhead.a"] });
        let found = archive(&format!("{other}\n{line}\n"));
        assert_eq!(found, Some(PathBuf::from("/w/target/libbulkhead.a")));
        assert_eq!(archive(""), None);
    }

    #[test]
    fn both_forms_of_package_identifiers_are_read() {
        assert_eq!(package_name("path+file:///a/demo#0.1.0"), "demo");
        assert_eq!(package_name("path+file:///a/folder#demo@0.1.0"), "demo");
    }
}
