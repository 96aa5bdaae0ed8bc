//! The programs of the chip: which exist, where they come from, and how they are built.
//!
//! A program is named in a description as `folder/program` (the binary `program` of the package in `workloads/folder`), or by a path
//! relative to the description: a folder with a Cargo package, or a finished ELF file. Cargo decides what must be rebuilt; there is no
//! other cache. What this module deliberately does not know: what the programs do.

mod named;

use crate::cargo::Build;
pub use crate::cargo::{PROFILE, TARGET};
use crate::error::Error;
use crate::manifests::metadata;
use crate::place;
use crate::{ada_programs, c_programs};
use bulkhead_machine::image::Image;
use bulkhead_model::system::OneShot;
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

/// A program that is ready to be loaded.
#[derive(Clone, PartialEq, Eq)]
pub struct Program {
    /// Name in the description.
    pub name: String,
    /// The ELF file's contents.
    pub elf: Vec<u8>,
}

/// Programs of the checkout: name to package and binary.
#[derive(Clone, Debug, Default)]
pub struct Library {
    root: PathBuf,
    /// Folder of the description: paths are relative to it.
    base: PathBuf,
    known: BTreeMap<String, (String, String)>,
}

impl Library {
    /// Sources of programs next to the description, which come first among the suggested names.
    fn beside(&self) -> Vec<String> {
        let mut all = Vec::new();
        for folder in ["", "src", "src/bin"] {
            // A description without its own folder is in the current one.
            let place = Path::new(".").join(&self.base).join(folder);
            for entry in std::fs::read_dir(place).into_iter().flatten().flatten() {
                let path = Path::new(folder).join(entry.file_name());
                let is_program = match folder {
                    "" => path.extension().is_some_and(|ending| ending == "c"),
                    "src" => path.file_name().is_some_and(|name| name == "main.rs"),
                    _ => path.extension().is_some_and(|ending| ending == "rs"),
                };
                all.extend(path.to_str().filter(|_| is_program).map(str::to_owned));
            }
        }
        all.sort();
        all
    }
}

/// The target of a user's path.
enum Own {
    Elf(PathBuf),
    C(PathBuf),
    Package(PathBuf),
    /// One of a package's binaries: the package, and the binary's source.
    Binary(PathBuf, PathBuf),
}

impl Library {
    /// Asks Cargo for the programs of the checkout. `base` is the folder of the description.
    pub fn new(root: &Path, base: &Path) -> Result<Self, Error> {
        let metadata = metadata(root)?;
        Ok(Self {
            root: std::path::absolute(root).map_err(|error| Error::file(root, error))?,
            base: base.to_path_buf(),
            known: known(&metadata),
        })
    }

    /// The checkout.
    pub(crate) fn root(&self) -> &Path {
        &self.root
    }

    /// Folder of the description.
    pub(crate) fn base(&self) -> &Path {
        &self.base
    }

    fn own(&self, name: &str) -> Option<Own> {
        let path = self.base.join(name);
        let in_workloads = self.root.join("workloads").join(format!("{name}.c"));
        if path.is_file() && path.extension().is_some_and(|ending| ending == "c") {
            Some(Own::C(path))
        } else if name.starts_with("c/") && in_workloads.is_file() {
            Some(Own::C(in_workloads))
        } else if let Some(package) = package_of(&path) {
            Some(Own::Binary(package, path))
        } else if path.is_file() {
            Some(Own::Elf(path))
        } else {
            path.join("Cargo.toml")
                .is_file()
                .then_some(Own::Package(path))
        }
    }

    /// The named programs that are finished files and need no build.
    ///
    /// # Errors
    /// If a file cannot be read.
    pub fn finished(&self, names: &[String]) -> Result<Vec<Program>, Error> {
        let own = names.iter().filter(|name| !self.known.contains_key(*name));
        let files = own.filter_map(|name| match self.own(name) {
            Some(Own::Elf(path)) => Some((name.clone(), path)),
            _ => None,
        });
        files
            .map(|(name, path)| {
                let elf = place::read(&path)?;
                Ok(Program { name, elf })
            })
            .collect()
    }

    /// Builds the named programs, in the order of the names, each once.
    pub fn build<'a>(
        &self,
        names: impl IntoIterator<Item = &'a str>,
    ) -> Result<Vec<Program>, Error> {
        Ok(self.build_warned(names)?.0)
    }

    /// Like [`build`](Self::build). Returns what compilers say of programs next to the description, too.
    pub fn build_warned<'a>(
        &self,
        names: impl IntoIterator<Item = &'a str>,
    ) -> Result<(Vec<Program>, Vec<String>), Error> {
        let mut wanted: Vec<&str> = Vec::new();
        for name in names {
            if !wanted.contains(&name) {
                wanted.push(name);
            }
        }
        let ours: Vec<&(String, String)> = wanted
            .iter()
            .filter_map(|name| self.known.get(*name))
            .collect();
        let built = if ours.is_empty() {
            Vec::new()
        } else {
            let packages = ours.iter().map(|(package, _)| &**package).collect();
            self.of_workspace("the programs of the chip", packages)
                .binaries()?
        };
        let mut programs = Vec::new();
        let mut warnings: Vec<String> = Vec::new();
        let mut warned = |text: String| {
            if !text.trim().is_empty() {
                warnings.push(text);
            }
        };
        let mut users = self.build_users(&wanted, &mut warned)?;
        for name in wanted {
            let elf = match (self.known.get(name), self.own(name)) {
                (Some((package, binary)), _) => {
                    let mut found = built.iter();
                    let one = found.find(|one| (&one.package, &one.name) == (package, binary));
                    place::read(&one.ok_or_else(|| missing(name))?.executable)?
                }
                (None, Some(Own::Elf(path))) => {
                    is_program(name, &path)?;
                    place::read(&path)?
                }
                (None, Some(Own::C(source))) => {
                    let (path, text) = self.build_c(&source)?;
                    warned(text);
                    place::read(&path)?
                }
                (None, Some(Own::Package(_) | Own::Binary(..))) => {
                    users.remove(name).ok_or_else(|| missing(name))?
                }
                (None, None) => {
                    return Err(Error::input(
                        format!("there is no program `{name}`"),
                        "name one of `bulkhead programs`, or a path to an ELF file or a Cargo package relative to the description",
                    ));
                }
            };
            programs.push(Program {
                name: name.to_owned(),
                elf,
            });
        }
        Ok((programs, warnings))
    }
}

/// Whether a file that is neither a source nor a package is a program for the chip. A wrong file would fail on the chip, far from its
/// cause.
fn is_program(name: &str, path: &Path) -> Result<(), Error> {
    match Image::parse(name, &place::read(path)?) {
        Ok(_) => Ok(()),
        Err(error) => Err(Error::input(
            format!("{error}, so it is not a program"),
            "name a C file (.c), the source of one of a Cargo package's binaries (.rs), the package's folder, or a static RV64GC program in ELF format",
        )),
    }
}

/// A package whose library has tasks of the one-shot RTOS.
#[derive(Clone, Debug)]
pub struct TaskPackage {
    /// Its name.
    pub name: String,
    /// Where it is.
    pub folder: PathBuf,
}

/// Tasks of descriptions, and what is generated from them.
impl Library {
    /// The folder of `FOLDER::module::Type`, or the file of `FILE.c::NAME`: in the checkout's workloads, or next to the description.
    fn task_folder(&self, name: &str) -> Option<PathBuf> {
        task_place(&self.root, &self.base, name)
    }

    /// Compiles tasks in C. Returns the object file's contents. `copies`: how many tasks of an image may be the same; `notifies`: messages
    /// release some of them.
    ///
    /// # Errors
    /// If there is no such file or no compiler, or the compiler refuses.
    pub fn c_tasks(&self, file: &str, copies: usize, notifies: bool) -> Result<Vec<u8>, Error> {
        let path = self.task_file(file)?;
        let folder = self.generated().join("c");
        c_programs::object(&self.root, &path, &folder, copies, notifies)
    }

    /// Compiles files of tasks in Ada. Returns the contents of one object file. `tasks`: those that must be in the files, with their files.
    ///
    /// # Errors
    /// If there is no such file or no GNAT, the compiler refuses, or a task needs its stack where it must not.
    pub fn ada_tasks(
        &self,
        files: &[&str],
        tasks: &[(&str, &str)],
    ) -> Result<ada_programs::Compiled, Error> {
        let paths: Result<Vec<PathBuf>, Error> =
            files.iter().map(|file| self.task_file(file)).collect();
        let folder = place::beside(&self.generated().join("ada"));
        ada_programs::object(&self.root, &paths?, tasks, &folder)
    }

    /// A file of tasks.
    fn task_file(&self, file: &str) -> Result<PathBuf, Error> {
        let path = self.task_folder(&format!("{file}::")).ok_or_else(|| {
            Error::input(
                format!("{file}: there is no such file"),
                "name a file with tasks, relative to the description",
            )
        })?;
        std::fs::canonicalize(&path).map_err(|error| Error::file(&path, error))
    }

    /// The package in such a folder.
    ///
    /// # Errors
    /// If there is none, or it has no library.
    pub fn task_package(&self, folder: &str) -> Result<TaskPackage, Error> {
        let none = |what: &str| {
            Error::input(
                format!("{folder}: {what}"),
                "name a folder with a Cargo package whose library has the task's type",
            )
        };
        let path = self.task_folder(&format!("{folder}::"));
        let path = path.ok_or_else(|| none("there is no package"))?;
        let path = std::fs::canonicalize(&path).map_err(|error| Error::file(&path, error))?;
        let metadata = metadata(&path)?;
        let manifest = path.join("Cargo.toml");
        let mut packages = metadata["packages"].as_array().into_iter().flatten();
        let package = packages
            .find(|package| package["manifest_path"].as_str().map(Path::new) == Some(&manifest))
            .ok_or_else(|| none("there is no package"))?;
        let mut targets = package["targets"].as_array().into_iter().flatten();
        let is_library = |target: &Value| {
            let kinds = target["kind"].as_array();
            kinds.is_some_and(|kinds| kinds.iter().any(|kind| kind == "lib"))
        };
        if !targets.any(is_library) {
            return Err(none("the package has no library"));
        }
        Ok(TaskPackage {
            name: package["name"].as_str().unwrap_or_default().to_owned(),
            folder: path,
        })
    }

    /// Where sources are made.
    pub fn generated(&self) -> PathBuf {
        self.root.join("target").join("generated")
    }

    /// A package of the checkout.
    pub fn kernel_package(&self, folder: &str) -> PathBuf {
        self.root.join(folder)
    }

    /// Builds a generated package with the checkout's versions of dependencies. Returns its binaries. `users`: packages that it consists
    /// of.
    ///
    /// # Errors
    /// If it does not build.
    pub fn build_generated<'a>(
        &self,
        folder: &Path,
        what: &str,
        users: impl Iterator<Item = &'a TaskPackage>,
        binaries: &[&str],
    ) -> Result<Vec<(String, PathBuf)>, Error> {
        let lock = folder.join("Cargo.lock");
        if !lock.is_file() {
            place::write(&lock, place::read(&self.root.join("Cargo.lock"))?)?;
        }
        let root = std::fs::canonicalize(&self.root);
        let root = root.map_err(|error| Error::file(&self.root, error))?;
        let users = users.filter(|user| !user.folder.starts_with(&root));
        let build = Build {
            root: &self.root,
            folder,
            what,
            packages: Vec::new(),
            names: vec![(&self.root, "."), (&root, ".")],
            outside: Some(self.generated().join("build")),
            user: None,
            tasks: users.map(|user| (&*user.folder, &*user.name)).collect(),
        };
        let (built, _) = build.named_binaries(binaries)?;
        let paths = built.into_iter().map(|one| (one.name, one.executable));
        Ok(paths.collect())
    }
}

/// The folder or file of a task's program, if it is there. `base`: the folder of the description.
fn task_place(root: &Path, base: &Path, name: &str) -> Option<PathBuf> {
    let (folder, _) = name.split_once("::")?;
    let ours = root.join("workloads").join(folder);
    let all = [ours, Path::new(".").join(base).join(folder)];
    all.into_iter().find(|path| match is_file(folder) {
        true => path.is_file(),
        false => path.join("Cargo.toml").is_file(),
    })
}

/// Sentences about tasks of a one-shot system whose programs are not there. An analysis needs none, but a run does. Only files and folders are looked
/// for; whether a file has the task is seen when it is built.
pub fn absent_tasks(root: &Path, base: &Path, tasks: &OneShot) -> Vec<String> {
    let is_absent = |name: &&str| task_place(root, base, name).is_none();
    let programs = tasks.programs.iter().map(|one| one.name.as_str());
    let absent: BTreeSet<&str> = programs.filter(is_absent).collect();
    let of = |program: &str| {
        let tasks = tasks.tasks.tasks.iter().zip(&tasks.programs);
        let tasks = tasks.filter(|(_, one)| one.name == program);
        let tasks: Vec<&str> = tasks.map(|(task, _)| task.name.as_str()).collect();
        tasks.join(", ")
    };
    let sentence = |program: &str| {
        let place = program.split_once("::").map_or(program, |one| one.0);
        format!(
            "`run` cannot build the program `{program}` of {}: there is no {place} next to the description or in workloads",
            of(program)
        )
    };
    absent.into_iter().map(sentence).collect()
}

/// Whether a task's name begins with a file rather than a folder.
fn is_file(folder: &str) -> bool {
    is_c(folder) || is_ada(folder)
}

/// Whether a task's name begins with an Ada file.
pub fn is_ada(folder: &str) -> bool {
    folder.ends_with(".adb")
}

/// Whether a task's name begins with a C file.
pub fn is_c(folder: &str) -> bool {
    folder.ends_with(".c")
}

/// The package that a source in Rust belongs to.
fn package_of(source: &Path) -> Option<PathBuf> {
    let is_source = source.is_file() && source.extension().is_some_and(|ending| ending == "rs");
    let mut above = source.ancestors().skip(1).filter(|_| is_source);
    let package = above.find(|folder| folder.join("Cargo.toml").is_file())?;
    Some(package.to_owned())
}

impl Library {
    /// Packages of the checkout.
    fn of_workspace<'a>(&'a self, what: &'a str, packages: Vec<&'a str>) -> Build<'a> {
        Build {
            root: &self.root,
            folder: &self.root,
            what,
            packages,
            names: vec![(&self.root, ".")],
            outside: None,
            user: None,
            tasks: Vec::new(),
        }
    }

    /// Compiles a C program and links it with the library. Returns the compiler's warnings, too.
    fn build_c(&self, source: &Path) -> Result<(PathBuf, String), Error> {
        let source = std::fs::canonicalize(source).map_err(|error| Error::file(source, error))?;
        let build = self.of_workspace("the library for C", vec!["bulkhead-c"]);
        let archive = build.library()?;
        let archive = archive.ok_or_else(|| missing("the library for C"))?;
        let folder = archive.parent().unwrap_or(&self.root).join("c");
        c_programs::build(&self.root, &source, &archive, &folder)
    }
}

fn missing(name: &str) -> Error {
    Error::Build {
        program: name.to_owned(),
        output: "cargo built it, but named no executable".to_owned(),
    }
}

/// Programs by name, from Cargo's description of the workspace.
fn known(metadata: &Value) -> BTreeMap<String, (String, String)> {
    let root = metadata["workspace_root"].as_str().unwrap_or_default();
    let mut found = BTreeMap::new();
    for package in metadata["packages"].as_array().into_iter().flatten() {
        let manifest = package["manifest_path"].as_str().unwrap_or_default();
        let Some(folder) = manifest
            .strip_prefix(root)
            .and_then(|rest| rest.strip_suffix("/Cargo.toml"))
        else {
            continue;
        };
        let folder = folder.trim_start_matches('/');
        let prefix = if let Some(rest) = folder.strip_prefix("workloads/") {
            rest
        } else if folder.starts_with("software/tiled/") {
            "tiled"
        } else {
            continue;
        };
        let name = package["name"].as_str().unwrap_or_default();
        for target in package["targets"].as_array().into_iter().flatten() {
            let is_binary = target["kind"]
                .as_array()
                .is_some_and(|kinds| kinds.iter().any(|k| k == "bin"));
            if let (true, Some(binary)) = (is_binary, target["name"].as_str()) {
                found.insert(
                    format!("{prefix}/{binary}"),
                    (name.to_owned(), binary.to_owned()),
                );
            }
        }
    }
    found
}

/// A source file as users know it. The names that [`remap`] gives to folders are relative, so debug information puts each file behind the
/// folder of whatever package its code was inlined into: `bulkhead/software/lib/./src/main.rs` is the user's `src/main.rs`. Rust's own
/// library is below `library/`, without the number of the compiler's version.
pub fn source(file: &str) -> &str {
    if let Some((_, inside)) = file
        .strip_prefix("/rustc/")
        .and_then(|rest| rest.split_once('/'))
    {
        return inside;
    }
    const ROOTS: [&str; 3] = ["/./", "/bulkhead/software/", "/cargo/registry/"];
    let starts = ROOTS
        .iter()
        .filter_map(|root| Some((file.rfind(root)?, *root)));
    let last = starts.max_by_key(|(at, _)| *at);
    let file = match last {
        Some((at, "/./")) => &file[at + 3..],
        Some((at, _)) if !file.starts_with('/') => &file[at + 1..],
        _ => file,
    };
    file.strip_prefix("./").unwrap_or(file)
}

impl Library {
    /// The texts of the sources of a program next to the description. `None` for other programs.
    pub(crate) fn sources(&self, name: &str) -> Option<Vec<String>> {
        if self.known.contains_key(name) {
            return None;
        }
        let (folder, inside) = match self.own(name)? {
            Own::Elf(_) => return None,
            Own::C(source) => (source.parent()?.to_owned(), false),
            Own::Package(folder) | Own::Binary(folder, _) => (folder.join("src"), true),
        };
        Some(place::texts(&Path::new(".").join(folder), inside))
    }

    /// Builds the wanted programs that are users' packages or binaries of them, each package once. Returns them by name.
    fn build_users(
        &self,
        wanted: &[&str],
        warned: &mut dyn FnMut(String),
    ) -> Result<BTreeMap<String, Vec<u8>>, Error> {
        let mut packages: BTreeMap<PathBuf, Vec<(&str, Option<PathBuf>)>> = BTreeMap::new();
        for name in wanted
            .iter()
            .filter(|name| !self.known.contains_key(**name))
        {
            let (folder, source) = match self.own(name) {
                Some(Own::Package(folder)) => (folder, None),
                Some(Own::Binary(folder, source)) => (folder, Some(source)),
                _ => continue,
            };
            // A package next to the description has an empty name here.
            let folder = absolute(&Path::new(".").join(folder))?;
            packages.entry(folder).or_default().push((name, source));
        }
        let mut all = BTreeMap::new();
        for (folder, programs) in packages {
            let (built, text) = built_of(&folder, &programs, &self.root)?;
            all.extend(built);
            warned(text);
        }
        Ok(all)
    }
}

fn absolute(path: &Path) -> Result<PathBuf, Error> {
    std::fs::canonicalize(path).map_err(|error| Error::file(path, error))
}

/// The binaries of the package in a folder: names and sources.
fn binaries(metadata: &Value, folder: &Path) -> Vec<(String, PathBuf)> {
    let manifest = folder.join("Cargo.toml");
    let packages = metadata["packages"].as_array().into_iter().flatten();
    let own =
        packages.filter(|one| one["manifest_path"].as_str().map(Path::new) == Some(&manifest));
    let targets = own.flat_map(|package| package["targets"].as_array().into_iter().flatten());
    let is_binary = |target: &&Value| {
        let kinds = target["kind"].as_array();
        kinds.is_some_and(|kinds| kinds.iter().any(|kind| kind == "bin"))
    };
    let all = targets.filter(is_binary).filter_map(|target| {
        let (name, source) = (target["name"].as_str()?, target["src_path"].as_str()?);
        Some((name.to_owned(), PathBuf::from(source)))
    });
    all.collect()
}

/// The name of the binary with this source, or of the only binary of a package.
fn binary_of(
    all: &[(String, PathBuf)],
    name: &str,
    source: Option<&Path>,
) -> Result<String, Error> {
    if let Some(source) = source {
        let source = absolute(source)?;
        for (binary, path) in all {
            if absolute(path)? == source {
                return Ok(binary.clone());
            }
        }
        return Err(Error::input(
            format!("{name} is not the source of a binary of its package"),
            "name the file with the program's `main`, such as src/main.rs or src/bin/NAME.rs",
        ));
    }
    match all {
        [(binary, _)] => Ok(binary.clone()),
        [] => Err(Error::input(
            format!("the package {name} has no binary"),
            "add src/main.rs with the program's `main`",
        )),
        _ => Err(Error::input(
            format!("the package {name} has more than one binary"),
            "name the source of one of them, such as src/bin/NAME.rs, instead of the folder",
        )),
    }
}

/// The contents of programs by name, and the compiler's warnings.
type Users = (Vec<(String, Vec<u8>)>, String);

/// Builds some binaries of a user's package: of each program the binary with its source, or the only binary.
fn built_of(
    folder: &Path,
    programs: &[(&str, Option<PathBuf>)],
    root: &Path,
) -> Result<Users, Error> {
    let metadata = metadata(folder)?;
    let all = binaries(&metadata, folder);
    let wanted: Result<Vec<String>, Error> = programs
        .iter()
        .map(|(name, source)| binary_of(&all, name, source.as_deref()))
        .collect();
    let wanted = wanted?;
    let names: Vec<&str> = wanted.iter().map(String::as_str).collect();
    let what: Vec<&str> = programs.iter().map(|(name, _)| *name).collect();
    // All folders share one place, so that the library is built once.
    let target = root.join("target").join("apps");
    let build = Build {
        root,
        folder,
        what: &what.join(", "),
        packages: Vec::new(),
        names: vec![(root, "bulkhead")],
        outside: Some(target.clone()),
        user: Some(folder),
        tasks: Vec::new(),
    };
    let locked = lock(&target)?;
    let (built, warnings) = build.named_binaries(&names)?;
    let programs = programs.iter().zip(&wanted).map(|((name, _), binary)| {
        let mut found = built.iter();
        let one = found.find(|one| one.name == *binary);
        let one = one.ok_or_else(|| missing(name))?;
        Ok(((*name).to_owned(), place::read(&one.executable)?))
    });
    let programs: Result<Vec<(String, Vec<u8>)>, Error> = programs.collect();
    drop(locked);
    Ok((programs?, warnings))
}

/// Waits until no other process builds in the folder. Packages of one name have one executable there, so it must be read before the next
/// build.
fn lock(folder: &Path) -> Result<std::fs::File, Error> {
    std::fs::create_dir_all(folder).map_err(|error| Error::file(folder, error))?;
    let path = folder.join("lock");
    let file = std::fs::File::create(&path).map_err(|error| Error::file(&path, error))?;
    file.lock().map_err(|error| Error::file(&path, error))?;
    Ok(file)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::loadable;
    use serde_json::json;

    #[test]
    fn programs_are_named_after_their_folder() {
        let metadata = json!({
            "workspace_root": "/w",
            "packages": [
                { "name": "bulkhead-control", "manifest_path": "/w/workloads/control/Cargo.toml",
                  "targets": [{ "kind": ["bin"], "name": "sensor" }, { "kind": ["lib"], "name": "control" }] },
                { "name": "bulkhead-kernel", "manifest_path": "/w/software/tiled/kernel/Cargo.toml",
                  "targets": [{ "kind": ["bin"], "name": "kernel" }] },
                { "name": "bulkhead", "manifest_path": "/w/cli/Cargo.toml", "targets": [{ "kind": ["bin"], "name": "bulkhead" }] },
            ],
        });
        let names: Vec<String> = known(&metadata).into_keys().collect();
        assert_eq!(names, ["control/sensor", "tiled/kernel"]);
    }

    #[test]
    fn a_file_that_is_no_program_is_refused() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("system.xml");
        place::write(&path, "<system/>").expect("written");
        let error = is_program("system.xml", &path).expect_err("it is text");
        assert_eq!(
            error.to_string(),
            "system.xml: not an ELF file, so it is not a program"
        );
        assert_eq!(error.code(), crate::error::exit::BAD_INPUT);
    }

    #[test]
    fn a_description_cannot_name_files_that_are_not_programs() {
        use bulkhead_model::Programs;
        let folder = tempfile::tempdir().expect("a folder");
        let write = |name: &str, text: &str| {
            place::write(&folder.path().join(name), text).expect("written");
        };
        write("system.xml", "<system/>");
        let odd = loadable::tests::elf(2, 0x1000_1001, &[(5, 0x1000_1000, 16)]);
        place::write(&folder.path().join("odd"), odd).expect("written");
        write("a.c", "int main(void) { return 0; }");
        let package =
            "[package]\nname = \"p\"\nversion = \"0.1.0\"\nedition = \"2024\"\n[workspace]\n";
        write("p/Cargo.toml", package);
        write("p/src/main.rs", "fn main() {}");
        write("p/src/part.rs", "");
        let library = Library {
            base: folder.path().to_path_buf(),
            ..Library::default()
        };
        let refused = |name: &str| library.refusal(name).map(|(what, _)| what);
        assert_eq!(
            refused("system.xml").as_deref(),
            Some("system.xml: not an ELF file, so it is not a program")
        );
        assert_eq!(
            refused("p/src/part.rs").as_deref(),
            Some("p/src/part.rs is not the source of a binary of its package")
        );
        for good in ["a.c", "p", "p/src/main.rs", "odd"] {
            assert_eq!(refused(good), None, "{good}");
        }
        // A program, but one that the chip's managers cannot load.
        let of_managers = library.application_refusal("odd").map(|(what, _)| what);
        assert_eq!(
            of_managers.as_deref(),
            Some("odd: its entry is at an odd address")
        );
        assert_eq!(library.application_refusal("a.c"), None);
    }

    #[test]
    fn a_file_has_its_own_folder_and_not_that_of_who_inlined_it() {
        for (told, meant) in [
            ("./src/main.rs", "src/main.rs"),
            ("bulkhead/software/lib/./src/main.rs", "src/main.rs"),
            (
                "./bulkhead/software/lib/src/gate.rs",
                "bulkhead/software/lib/src/gate.rs",
            ),
            (
                "bulkhead/software/lib/bulkhead/software/hal/src/probe.rs",
                "bulkhead/software/hal/src/probe.rs",
            ),
            (
                "bulkhead/software/lib/cargo/registry/src/index/heapless/src/vec.rs",
                "cargo/registry/src/index/heapless/src/vec.rs",
            ),
            ("./software/lib/src/task.rs", "software/lib/src/task.rs"),
            (
                "workloads/control/src/sensor.rs",
                "workloads/control/src/sensor.rs",
            ),
            (
                "/rustc/abc/library/core/src/ptr/mod.rs",
                "library/core/src/ptr/mod.rs",
            ),
        ] {
            assert_eq!(source(told), meant, "{told}");
        }
    }
}
