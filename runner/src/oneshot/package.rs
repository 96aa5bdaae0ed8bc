//! Cargo packages of images: which images share one, what is in it, and how Cargo is kept from building an image twice.
//!
//! Why it exists: each package is one call of Cargo, and Cargo decides what must be built again, because only it knows all that goes into an image: the
//! user's sources, their dependencies, flags and the compiler. A process asks it once more only if something has changed ([`super::unchanged`]). So a package must not change when an image comes or goes, except by one entry of its manifest.
//! Cargo makes one object for each image, of the kernel and of all tasks in Rust; it is named by the digest of its source. Images that differ only in their
//! stack, or in their tasks in C and Ada, have the same source, and [`super::link`] makes them from the same object. What it deliberately does not know: what
//! images are for.

use super::images::Recipe;
use super::link::Parts;
use super::symbols;
use super::unchanged::Asked;
use crate::error::Error;
use crate::one_stack::Declared;
use crate::place;
use crate::programs::{Library, TaskPackage, is_c};
use bulkhead_model::input;
use sha2::{Digest, Sha256};
use std::collections::btree_map::Entry;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;
use std::fs::File;
use std::path::Path;
use std::time::SystemTime;

/// What the kernel of an image has besides what all have: kernels that differ in this are different libraries.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Kernel {
    pub(super) notifies: bool,
    pub(super) clocks: bool,
}

/// Images of one package: they need the same libraries. Images stay in the package for later systems, which have some of them, and others.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Group {
    pub(super) kernel: Kernel,
    /// Folders of packages in Rust.
    pub(super) folders: BTreeSet<String>,
    /// Some tasks of each image are in C.
    pub(super) has_c: bool,
    /// Some tasks of each image are in Ada.
    pub(super) has_ada: bool,
}

/// By folder of a description: the name of the crate in sources of images, and the package.
pub(super) type Packages = BTreeMap<String, (String, TaskPackage)>;

/// Builds what images are linked from. The images need the same build of the libraries.
pub(super) fn build_package(
    library: &Library,
    name: &str,
    recipes: &[Recipe],
    group: &Group,
) -> Result<Vec<Parts>, Error> {
    let mut packages = Packages::new();
    for folder in &group.folders {
        let krate = format!("tasks_{}", packages.len());
        let package = library.task_package(folder)?;
        packages.insert(folder.clone(), (krate, package));
    }
    let all = library.generated().join("one-shot");
    let sources = sources(library, recipes, group, &packages)?;
    let mark = mark(&packages, group);
    let folder = all.join(&mark);
    let of_sources = folder.join("src");
    // Descriptions in different folders can have the same contents, and then their images have the same name.
    std::fs::create_dir_all(&of_sources).map_err(|error| Error::file(&of_sources, error))?;
    let path = all.join(format!("{mark}.lock"));
    let lock = File::create(&path).map_err(|error| Error::file(&path, error))?;
    lock.lock().map_err(|error| Error::file(&path, error))?;
    let binary = |source: &Source| {
        let digest = short(Sha256::new_with_prefix(format!("{mark}\n{}", source.text)));
        format!("image-{digest}")
    };
    let binaries: Vec<String> = sources.iter().map(binary).collect();
    for (binary, source) in binaries.iter().zip(&sources) {
        changed(&of_sources.join(binary).with_extension("rs"), &source.text)?;
    }
    // Images of earlier systems stay: Cargo builds a package's binaries one by one, and those of this system are named below.
    let manifest = manifest(library, &mark, &sources_in(&of_sources)?, &packages, group);
    changed(&folder.join("Cargo.toml"), &manifest)?;
    changed(&folder.join("build.rs"), SCRIPT)?;
    let users = packages.values().map(|(_, package)| package);
    let what = format!("an image of {name}");
    let wanted: BTreeSet<&str> = binaries.iter().map(String::as_str).collect();
    let wanted: Vec<&str> = wanted.into_iter().collect();
    let asked = Asked {
        folder: &folder,
        root: library.root(),
        tasks: packages.values().map(|one| one.1.folder.clone()).collect(),
        names: &wanted,
    };
    let built = match asked.known() {
        Some(built) => built,
        None => {
            let since = SystemTime::now();
            let built = library.build_generated(&folder, &what, users, &wanted)?;
            asked.note(since, &built);
            built
        }
    };
    let mut parts = Vec::new();
    for ((binary, source), recipe) in binaries.iter().zip(sources).zip(recipes) {
        let Some((_, path)) = built.iter().find(|one| one.0 == *binary) else {
            return Err(Error::Machine(format!("{binary} was not built")));
        };
        parts.push(Parts {
            what: what.clone(),
            kernel: place::read(path)?,
            tasks: source.tasks,
            names: recipe.defined(),
        });
    }
    Ok(parts)
}

/// What an image is made from.
struct Source {
    /// The source in Rust.
    text: String,
    /// The objects of its tasks in C and Ada.
    tasks: Vec<Vec<u8>>,
}

/// The sources of images.
fn sources(
    library: &Library,
    recipes: &[Recipe],
    group: &Group,
    packages: &Packages,
) -> Result<Vec<Source>, Error> {
    let objects = objects(library, recipes, group.kernel.notifies)?;
    for recipe in recipes {
        let files = recipe.c_files().into_iter();
        let files = files.filter_map(|key| Some((key.0, objects.get(&key)?.as_slice())));
        let tasks = recipe.tasks.iter().filter_map(|one| one.split_once("::"));
        let tasks: Vec<(&str, &str)> = tasks.filter(|one| is_c(one.0)).collect();
        symbols::check(&files.collect::<Vec<_>>(), &tasks)?;
    }
    let (in_ada, declared) = objects_in_ada(library, recipes)?;
    let mut sources = Vec::new();
    for recipe in recipes {
        let files = recipe.ada_tasks().0;
        let declared = declared.get(&files).cloned().unwrap_or_default();
        recipe.agrees(&declared)?;
        let of_c = recipe.c_files().into_iter();
        let linked = of_c.filter_map(|key| objects.get(&key));
        sources.push(Source {
            text: recipe.source(packages, &declared),
            tasks: linked.chain(in_ada.get(&files)).cloned().collect(),
        });
    }
    Ok(sources)
}

/// The package's manifest, with these binaries.
fn manifest(
    library: &Library,
    mark: &str,
    binaries: &BTreeSet<String>,
    packages: &Packages,
    group: &Group,
) -> String {
    // Cargo would take the build script of another package of this name for this one's.
    let mut manifest = format!(
        "# Made by Bulkhead from a description.\n[package]\nname = \"images-{mark}\"\nversion = \"0.0.0\"\nedition = \"2024\"\n\
         publish = false\nautobins = false\n\n[workspace]\n",
    );
    // Writing to a string cannot fail.
    for binary in binaries {
        let _ = write!(
            manifest,
            "\n[[bin]]\nname = \"{binary}\"\npath = \"src/{binary}.rs\"\ntest = false\n"
        );
    }
    let path = library.kernel_package("software/oneshot");
    let features = |all: &[(&str, bool)]| {
        let has: Vec<&str> = all.iter().filter(|one| one.1).map(|one| one.0).collect();
        match has.is_empty() {
            true => String::new(),
            false => format!(", features = {has:?}"),
        }
    };
    let Kernel { notifies, clocks } = group.kernel;
    let of_kernel = features(&[("notify", notifies), ("clocks", clocks)]);
    let _ = write!(
        manifest,
        "\n[dependencies]\nbulkhead-oneshot = {{ path = {path:?}{of_kernel} }}\n"
    );
    for (krate, package) in packages.values() {
        let _ = writeln!(
            manifest,
            "{krate} = {{ package = {:?}, path = {:?} }}",
            package.name, package.folder
        );
    }
    if group.has_c {
        let c = library.kernel_package("software/oneshot/c");
        let _ = writeln!(
            manifest,
            "bulkhead-oneshot-c = {{ path = {c:?}{} }}",
            features(&[("notify", notifies)])
        );
    }
    if group.has_ada {
        let ada = library.kernel_package("software/oneshot/ada");
        let _ = writeln!(manifest, "bulkhead-oneshot-ada = {{ path = {ada:?} }}");
    }
    manifest.push_str(
        "\n[profile.chip]\ninherits = \"release\"\npanic = \"abort\"\nopt-level = \"s\"\nlto = \"fat\"\ncodegen-units = 1\n\
         debug = \"line-tables-only\"\n",
    );
    manifest
}

/// The package's build script. It is the same for all images, and says that it depends on nothing else: otherwise Cargo would run it again after any change in the
/// package, and build all images again. What is made is an object, whose unused parts are left out when images are linked from it.
const SCRIPT: &str = "//! Makes objects, from which images are linked.\nfn main() {\n    \
                      println!(\"cargo:rerun-if-changed=build.rs\");\n    \
                      println!(\"cargo:rustc-link-arg-bins=-r\");\n    \
                      println!(\"cargo:rustc-link-arg-bins=--no-gc-sections\");\n}\n";

/// The binaries whose sources are in a folder, in order.
fn sources_in(folder: &Path) -> Result<BTreeSet<String>, Error> {
    let failed = |error| Error::file(folder, error);
    let mut all = BTreeSet::new();
    for entry in std::fs::read_dir(folder).map_err(failed)? {
        let path = entry.map_err(failed)?.path();
        let name = path.file_stem().and_then(|name| name.to_str());
        let is_source = path.extension().is_some_and(|ending| ending == "rs");
        all.extend(name.filter(|_| is_source).map(str::to_owned));
    }
    Ok(all)
}

/// The C files of all images, compiled, by file and number of copies.
fn objects<'r>(
    library: &Library,
    recipes: &'r [Recipe],
    notifies: bool,
) -> Result<BTreeMap<(&'r str, usize), Vec<u8>>, Error> {
    let mut all = BTreeMap::new();
    for key in recipes.iter().flat_map(Recipe::c_files) {
        if let Entry::Vacant(place) = all.entry(key) {
            place.insert(library.c_tasks(key.0, key.1, notifies)?);
        }
    }
    Ok(all)
}

/// By the files in Ada of an image.
type InAda<'r, T> = BTreeMap<Vec<&'r str>, T>;

/// The Ada files of all images, compiled, by the files of an image: the elaboration order depends on all of them together.
fn objects_in_ada<'r>(
    library: &Library,
    recipes: &'r [Recipe],
) -> Result<(InAda<'r, Vec<u8>>, InAda<'r, Declared>), Error> {
    let mut tasks: BTreeMap<Vec<&str>, BTreeSet<(&str, &str)>> = BTreeMap::new();
    for recipe in recipes {
        let (files, of_core) = recipe.ada_tasks();
        for (number, (file, task)) in of_core.iter().enumerate() {
            if of_core[..number].contains(&(*file, *task)) {
                return Err(Error::input(
                    format!("{file}::{task} is on a core twice, but it is a single task"),
                    "declare it in a generic package, and name the task of each instance: FILE.adb::Instance.Task",
                ));
            }
        }
        if !files.is_empty() {
            tasks.entry(files).or_default().extend(of_core);
        }
    }
    let (mut all, mut declared) = (BTreeMap::new(), BTreeMap::new());
    for (files, tasks) in tasks {
        let tasks: Vec<_> = tasks.into_iter().collect();
        let compiled = library.ada_tasks(&files, &tasks)?;
        declared.insert(files.clone(), compiled.declared);
        all.insert(files, compiled.object);
    }
    Ok((all, declared))
}

/// A name for the package. The compiler mixes it into symbols, so it must not contain folders of the build machine: packages have the names that the
/// description gives them.
fn mark(packages: &Packages, group: &Group) -> String {
    let mut hash = Sha256::new();
    for (has, what) in [
        (group.kernel.notifies, "notify"),
        (group.kernel.clocks, "clocks"),
        (group.has_c, "in C"),
        (group.has_ada, "in Ada"),
    ] {
        if has {
            hash.update(what);
        }
    }
    for (folder, (krate, package)) in packages {
        for part in [krate, &package.name, folder] {
            hash.update(part);
        }
    }
    short(hash)
}

/// The beginning of a digest, as a part of names.
fn short(hash: Sha256) -> String {
    let digest = hash.finalize();
    digest
        .iter()
        .take(6)
        .map(|byte| format!("{byte:02x}"))
        .collect()
}

/// Writes a file if its contents change, because Cargo rebuilds whatever was written.
fn changed(path: &Path, text: &str) -> Result<(), Error> {
    match input::read_text(path) {
        Ok(there) if there == text => Ok(()),
        _ => {
            // A process that reads the file meanwhile finds it complete.
            let new = place::beside(path);
            place::write(&new, text)?;
            std::fs::rename(&new, path).map_err(|error| Error::file(path, error))
        }
    }
}
