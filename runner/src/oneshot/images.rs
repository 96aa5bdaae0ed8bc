//! Which images a described system needs, and how they are built from its tasks.
//!
//! Why it exists: the tasks of a core are types of the user's packages; a generated program joins them with the kernel. Cores with the same
//! tasks in the same order have the same image; what differs (periods and ports) is in the layout's table. Budgets and the tick are constants of an image,
//! but no instruction depends on them, so they are filled in after the build ([`super::fill`]): cores, platforms and systems that differ in nothing else share
//! what the compiler and the linker made. What it deliberately does not know: where images are placed.

use super::{fill, stack, symbols};
use crate::ada_programs;
use crate::error::Error;
use crate::one_stack::Declared;
use crate::place;
use crate::programs::{Library, Program, TaskPackage, is_ada, is_c};
use bulkhead_analysis::one_shot::Bounds;
use bulkhead_model::system::OneShot;
use bulkhead_model::system::oneshot::TICK;
use bulkhead_model::{System, input};
use sha2::{Digest, Sha256};
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;
use std::fs::File;
use std::sync::Mutex;

/// Bytes of the console ring of a core.
pub(super) const RING: u64 = 1024;

/// Timer counts in a tick of an image whose constants are not filled in; a tick has at least one.
const UNFILLED: u64 = 1;

/// Timer counts in a tick of a system's kernels.
pub(super) fn timer(system: &System) -> u64 {
    let timebase = u128::from(system.platform.timebase.0);
    let timer = timebase * u128::from(TICK.0) / 1_000_000_000_000;
    u64::try_from(timer).unwrap_or(u64::MAX).max(1)
}

/// What the kernel of an image has besides what all have: kernels that differ in this are different libraries.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Kernel {
    notifies: bool,
    clocks: bool,
}

/// Images of one package: they need the same libraries. Images without files in C and Ada stay in the package for later systems, which have some of them,
/// and others.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Group {
    kernel: Kernel,
    /// Folders of packages in Rust.
    folders: BTreeSet<String>,
    /// Some of its tasks are in C or Ada. Objects are arguments of the linker, which are the same for all builds of a package.
    has_objects: bool,
}

/// The image of a core: what is built, and the constants that are filled in afterwards.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Filled {
    recipe: Recipe,
    /// For each task, the most urgent first: cycles that a job may take. Nobody watches the task of a host core.
    budgets: Option<Vec<u64>>,
    /// Timer counts per tick.
    timer: u64,
}

/// What is built for an image.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Recipe {
    /// Programs of the tasks, the most urgent first.
    tasks: Vec<String>,
    /// Bytes. If no task states them: at least this many.
    stack: u64,
    /// A task of the description states the bytes.
    is_stated: bool,
    /// A task is released by messages or releases tasks on other cores.
    notifies: bool,
    /// Numbers of the tasks released by messages.
    told: Vec<usize>,
    /// Rings that the core accepts per tick.
    rings: u64,
    /// A task reads a channel, whose writers must get an error if the task stops.
    reads: bool,
    /// It synchronises its clock when it starts.
    synchronised: bool,
    /// It loads and starts the other cores, and has no tasks of the description.
    is_host: bool,
}

impl Filled {
    /// Of a core.
    pub fn of(system: &System, one_shot: &OneShot, bounds: &Bounds, core: u16) -> Self {
        let here = one_shot.on_core(core);
        let stack = here.iter().map(|&task| one_shot.programs[task].stack().0);
        let recipe = Recipe {
            stack: stack.max().unwrap_or(0),
            is_stated: here
                .iter()
                .any(|&task| one_shot.programs[task].stack.is_some()),
            tasks: here
                .iter()
                .map(|&task| one_shot.programs[task].name.clone())
                .collect(),
            notifies: one_shot.notifies(core),
            told: one_shot.told(core),
            rings: one_shot.rings(&system.platform, core),
            reads: here.iter().any(|&task| !one_shot.inputs(task).is_empty()),
            synchronised: one_shot.master(&system.platform).is_some(),
            is_host: false,
        };
        Self {
            recipe,
            budgets: Some(here.iter().map(|&task| bounds.jobs[task]).collect()),
            timer: timer(system),
        }
    }

    /// Of the core that loads and starts the others.
    pub fn host(system: &System) -> Self {
        let recipe = Recipe {
            tasks: Vec::new(),
            stack: bulkhead_model::system::oneshot::STACK.0,
            is_stated: false,
            notifies: false,
            told: Vec::new(),
            rings: 0,
            reads: false,
            synchronised: false,
            is_host: true,
        };
        Self {
            recipe,
            budgets: None,
            timer: timer(system),
        }
    }

    /// The name of the image in messages and results.
    pub fn name(&self) -> String {
        let (name, tick) = (self.recipe.name(), self.timer);
        match &self.budgets {
            None => format!("{name} (tick of {tick})"),
            Some(budgets) => format!("{name} within {budgets:?} cycles, tick of {tick}"),
        }
    }

    /// The image with its constants, if this was built for it.
    ///
    /// # Errors
    /// If it is not an image of this many tasks.
    fn fill(&self, elf: &[u8]) -> Result<Program, Error> {
        let name = self.name();
        let elf = fill::fill(&name, elf, self.timer, self.budgets.as_deref())?;
        Ok(Program { name, elf })
    }
}

impl Recipe {
    /// Images that are built together with this one.
    fn group(&self) -> Group {
        let mut folders = BTreeSet::new();
        let mut has_objects = false;
        for name in &self.tasks {
            let folder = name.split_once("::").map_or(&**name, |one| one.0);
            if is_c(folder) || is_ada(folder) {
                has_objects = true;
            } else {
                folders.insert(folder.to_owned());
            }
        }
        Group {
            kernel: Kernel {
                notifies: self.notifies,
                clocks: self.synchronised,
            },
            folders,
            has_objects,
        }
    }

    /// What it is in messages.
    fn name(&self) -> String {
        if self.is_host {
            return "image of the host core".to_owned();
        }
        let mut name = format!("image of {} (stack {})", self.tasks.join(", "), self.stack);
        if self.notifies {
            name.push_str(" with notification");
        }
        if self.reads {
            name.push_str(" with inputs");
        }
        if self.synchronised {
            name.push_str(" with a clock of its own");
        }
        if !self.told.is_empty() {
            // Writing to a string cannot fail.
            let _ = write!(name, " of {:?}, {} rings in a tick", self.told, self.rings);
        }
        name
    }

    /// The C files with its tasks, and the maximum number of these that are the same.
    fn c_files(&self) -> BTreeMap<&str, usize> {
        let mut files = BTreeMap::new();
        for name in &self.tasks {
            let file = name.split_once("::").map_or("", |one| one.0);
            let same = self.tasks.iter().filter(|one| *one == name).count();
            if is_c(file) {
                let most = files.entry(file).or_insert(1);
                *most = same.max(*most);
            }
        }
        files
    }

    /// The Ada files with its tasks, and the tasks in them, the most urgent first.
    fn ada_tasks(&self) -> (Vec<&str>, Vec<(&str, &str)>) {
        let split = self.tasks.iter().filter_map(|one| one.split_once("::"));
        let tasks: Vec<(&str, &str)> = split.filter(|one| is_ada(one.0)).collect();
        let mut files: Vec<&str> = tasks.iter().map(|one| one.0).collect();
        files.sort_unstable();
        files.dedup();
        (files, tasks)
    }

    /// Refuses priorities in sources that do not agree with the description's: a greater one is more urgent, and equals may have any order.
    fn agrees(&self, declared: &Declared) -> Result<(), Error> {
        let mut above: Option<(&str, &str, i64)> = None;
        for (file, task) in self.ada_tasks().1 {
            let body = ada_programs::body(file, task, "TKB");
            let Some(&priority) = declared.priorities.get(&body) else {
                continue;
            };
            if priority < 0 {
                continue;
            }
            if let Some((other_file, other, least)) = above
                && priority > least
            {
                return Err(Error::input(
                    format!(
                        "{file}::{task} has the priority {priority} in its source and {other_file}::{other} has {least}, but the description has {other} as \
                         the more urgent one of their core"
                    ),
                    "change the priorities in the description, where 1 is the most urgent, or those in the source, where a greater one is more urgent",
                ));
            }
            above = Some((file, task, priority));
        }
        Ok(())
    }

    /// The stack that its image must have, if its own is too small.
    ///
    /// # Errors
    /// If a stated stack is too small, or the image needs a stack without bound and no task states one.
    fn larger_stack(&self, elf: &[u8]) -> Result<Option<u64>, Error> {
        let in_ada = self.tasks.iter().enumerate().filter_map(|(number, one)| {
            let (file, task) = one.split_once("::").filter(|one| is_ada(one.0))?;
            Some((number, ada_programs::body(file, task, "TKB")))
        });
        let in_ada: Vec<(usize, String)> = in_ada.collect();
        let needs = match stack::needs(&self.name(), elf, &in_ada) {
            // A stated stack is taken to suffice.
            Err(_) if self.is_stated => return Ok(None),
            needs => needs?,
        };
        let total = needs.total();
        if total <= self.stack {
            return Ok(None);
        }
        if !self.is_stated {
            return Ok(Some(total));
        }
        let jobs = needs.jobs.iter().zip(&self.tasks);
        let jobs = jobs.map(|(deepest, task)| (deepest.bytes, format!("a job of {task}"), deepest));
        let kernel = (needs.kernel.bytes, "the kernel".to_owned(), &needs.kernel);
        let mut parts: Vec<_> = jobs.chain([kernel]).collect();
        parts.sort_by_key(|part| std::cmp::Reverse(part.0));
        let way = parts
            .first()
            .map_or(String::new(), |part| part.2.way.join(" > "));
        let parts: Vec<String> = parts
            .iter()
            .map(|part| format!("{} {}", part.1, part.0))
            .collect();
        Err(Error::input(
            format!(
                "{}: its stack has {} bytes but needs {total}: {} for an interrupt, and the deepest of {}; the deepest path is {way}",
                self.name(),
                self.stack,
                needs.interrupts,
                parts.join(", ")
            ),
            format!("write stack=\"{total}B\", or none: the build makes it large enough then"),
        ))
    }

    /// The source of the image; `packages`: the crate of each folder; `declared`: what its files in Ada say of their tasks.
    fn source(
        &self,
        packages: &BTreeMap<String, (String, TaskPackage)>,
        declared: &Declared,
    ) -> String {
        let mut tasks = String::new();
        let (mut ada, mut first) = (String::new(), Vec::new());
        let in_ada = self.ada_tasks().1;
        if !in_ada.is_empty() {
            let bodies: Vec<String> = in_ada
                .iter()
                .map(|(file, task)| {
                    let body = ada_programs::body(file, task, "TKB");
                    let kept = declared
                        .kept
                        .get(&body)
                        .map_or(0, |bytes| bytes.div_ceil(8));
                    format!("{body} [{kept}]")
                })
                .collect();
            ada = format!(
                "bulkhead_oneshot_ada::tasks!(ADA: {});\n\n",
                bodies.join(" ")
            );
            first.push("bulkhead_oneshot_ada::arch::elaborate(&ADA)".to_owned());
        }
        if self.synchronised {
            first.insert(0, "bulkhead_oneshot::clock::synchronise()".to_owned());
        }
        let mut told = String::new();
        if !self.told.is_empty() {
            let readers: Vec<String> = self
                .told
                .iter()
                .map(|task| format!("bulkhead_oneshot::notify::Reader::new({task})"))
                .collect();
            told = format!(
                "static TOLD: [bulkhead_oneshot::notify::Reader; {}] = [{}];\n\n",
                readers.len(),
                readers.join(", ")
            );
            let begin = format!("bulkhead_oneshot::notify::begin(&TOLD, {})", self.rings);
            first.push(begin);
        }
        let first = match &first[..] {
            [] => String::new(),
            [one] => format!(".at_first(|| {one})"),
            all => format!(".at_first(|| {{ {} }})", all.join("; ")),
        };
        let gone = match self.reads {
            true => ".when_gone(bulkhead_oneshot::described::close)",
            false => "",
        };
        let mut configured = format!("{gone}{first}");
        if self.is_host {
            configured.push_str(".at_first(bulkhead_oneshot::host::start)");
            tasks.push_str(
                "        bulkhead_oneshot::host::Host: bulkhead_oneshot::host::Host::new(), priority 1;\n",
            );
        }
        if !self.told.is_empty() {
            configured.push_str(".on_software_interrupt(bulkhead_oneshot::notify::rung)");
        }
        let mut number_in_ada = 0..;
        for (urgency, name) in self.tasks.iter().rev().enumerate().rev() {
            let (folder, path) = name.split_once("::").unwrap_or((name, ""));
            let task = if is_c(folder) {
                let same = |one: &&String| *one == name;
                let copy = self.tasks[self.tasks.len() - urgency..].iter().filter(same);
                let copy = copy.count();
                format!(
                    "bulkhead_oneshot_c::CTask: bulkhead_oneshot_c::task!(bh_task_{path}, {copy})"
                )
            } else if is_ada(folder) {
                let number = number_in_ada.next().unwrap_or(0);
                format!(
                    "bulkhead_oneshot_ada::AdaTask: bulkhead_oneshot_ada::AdaTask::new(&ADA[{number}])"
                )
            } else {
                let krate = packages.get(folder).map_or("", |one| &one.0);
                let path = format!("{krate}::{path}");
                format!("{path}: <{path} as bulkhead_oneshot::Described>::FIRST")
            };
            // Writing to a string cannot fail.
            let _ = writeln!(tasks, "        {task}, priority {};", urgency + 1);
        }
        format!(
            "//! Made by Bulkhead from a description.\n#![no_std]\n#![no_main]\n\n{ada}{told}bulkhead_oneshot::system! {{\n    \
             bulkhead_oneshot::Configuration::new({UNFILLED}){configured};\n    stack {}; ring {RING};\n    tasks {{\n{tasks}    }}\n}}\n",
            self.stack
        )
    }
}

/// The images of systems, without duplicates.
fn images(systems: &[&System]) -> BTreeSet<Filled> {
    let mut all = BTreeSet::new();
    for system in systems {
        let Some(one_shot) = &system.one_shot else {
            continue;
        };
        let bounds = bulkhead_analysis::plan::one_shot::bounds(one_shot, &system.platform);
        let of_core = |core| Filled::of(system, one_shot, &bounds, core);
        all.extend(one_shot.cores().into_iter().map(of_core));
        all.extend(one_shot.host.map(|_| Filled::host(system)));
    }
    all
}

/// Builds images.
///
/// # Errors
/// If a program is missing or does not build.
pub fn build(library: &Library, systems: &[&System]) -> Result<Vec<Program>, Error> {
    // Two threads of this process would write the same files at the same time.
    static ONE: Mutex<()> = Mutex::new(());
    let _one = ONE.lock();
    let images = images(systems);
    let recipes: BTreeSet<&Recipe> = images.iter().map(|one| &one.recipe).collect();
    let mut groups: BTreeMap<Group, Vec<Recipe>> = BTreeMap::new();
    for recipe in recipes {
        let all = groups.entry(recipe.group()).or_default();
        all.push(recipe.clone());
    }
    let name = systems.first().map_or("system", |system| &system.name);
    let mut built: BTreeMap<Recipe, Vec<u8>> = BTreeMap::new();
    for (group, recipes) in groups {
        let first = build_package(library, name, &recipes, &group)?;
        let mut larger = BTreeMap::new();
        for (recipe, elf) in recipes.into_iter().zip(first) {
            if let Some(stack) = recipe.larger_stack(&elf)? {
                let with = Recipe {
                    stack,
                    ..recipe.clone()
                };
                larger.insert(recipe, with);
            } else {
                built.insert(recipe, elf);
            }
        }
        let with: BTreeSet<&Recipe> = larger.values().collect();
        let with: Vec<Recipe> = with.into_iter().cloned().collect();
        let again = build_package(library, name, &with, &group)?;
        let again: BTreeMap<Recipe, Vec<u8>> = with.into_iter().zip(again).collect();
        for (recipe, with) in larger {
            let elf = again.get(&with).cloned();
            built.extend(elf.map(|elf| (recipe, elf)));
        }
    }
    let filled = images.iter().map(|image| match built.get(&image.recipe) {
        Some(elf) => image.fill(elf),
        None => Err(Error::Machine(format!("{} was not built", image.name()))),
    });
    filled.collect()
}

/// Builds images that need the same build of the libraries: their files.
fn build_package(
    library: &Library,
    name: &str,
    recipes: &[Recipe],
    group: &Group,
) -> Result<Vec<Vec<u8>>, Error> {
    let Kernel { notifies, clocks } = group.kernel;
    if recipes.is_empty() {
        return Ok(Vec::new());
    }
    let mut packages: BTreeMap<String, (String, TaskPackage)> = BTreeMap::new();
    for folder in &group.folders {
        let krate = format!("tasks_{}", packages.len());
        let package = library.task_package(folder)?;
        packages.insert(folder.clone(), (krate, package));
    }
    let objects = objects(library, recipes, notifies)?;
    for recipe in recipes {
        let files = recipe.c_files().into_iter();
        let files = files.filter_map(|key| Some((key.0, objects.get(&key)?.1.as_slice())));
        let tasks = recipe.tasks.iter().filter_map(|one| one.split_once("::"));
        let tasks: Vec<(&str, &str)> = tasks.filter(|one| is_c(one.0)).collect();
        symbols::check(&files.collect::<Vec<_>>(), &tasks)?;
    }
    let (in_ada, declared) = objects_in_ada(library, recipes)?;
    let mut sources = Vec::new();
    for recipe in recipes {
        let declared = declared.get(&recipe.ada_tasks().0);
        let declared = declared.cloned().unwrap_or_default();
        recipe.agrees(&declared)?;
        sources.push(recipe.source(&packages, &declared));
    }
    let all_sources: &[String] = if group.has_objects { &sources } else { &[] };
    let mark = mark(all_sources, &packages, &objects, &in_ada, group.kernel);
    let binary = |source: &str| {
        format!(
            "image-{}",
            short(Sha256::new_with_prefix(format!("{mark}\n{source}")))
        )
    };
    let binaries: Vec<String> = sources.iter().map(|source| binary(source)).collect();
    let folder = library.generated().join("one-shot").join(&mark);
    let of_sources = folder.join("src");
    // Descriptions in different folders can have the same contents, and then their images have the same name.
    std::fs::create_dir_all(&of_sources).map_err(|error| Error::file(&of_sources, error))?;
    let path = folder.join("lock");
    let lock = File::create(&path).map_err(|error| Error::file(&path, error))?;
    lock.lock().map_err(|error| Error::file(&path, error))?;
    // Cargo would take the build script of another package of this name for this one's.
    let mut manifest = format!(
        "# Made by Bulkhead from a description.\n[package]\nname = \"images-{mark}\"\nversion = \"0.0.0\"\nedition = \"2024\"\n\
         publish = false\nautobins = false\n\n[workspace]\n",
    );
    for (binary, source) in binaries.iter().zip(&sources) {
        changed(&of_sources.join(binary).with_extension("rs"), source)?;
    }
    // Images of earlier systems stay: Cargo builds a package's binaries one by one, and those of this system are named below.
    for binary in sources_in(&of_sources)? {
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
    if !objects.is_empty() {
        let c = library.kernel_package("software/oneshot/c");
        let _ = writeln!(
            manifest,
            "bulkhead-oneshot-c = {{ path = {c:?}{} }}",
            features(&[("notify", notifies)])
        );
    }
    if !in_ada.is_empty() {
        let ada = library.kernel_package("software/oneshot/ada");
        let _ = writeln!(manifest, "bulkhead-oneshot-ada = {{ path = {ada:?} }}");
    }
    manifest.push_str(
        "\n[profile.chip]\ninherits = \"release\"\npanic = \"abort\"\nopt-level = \"s\"\nlto = \"fat\"\ncodegen-units = 1\n\
         debug = \"line-tables-only\"\n",
    );
    let mut script = String::from(
        "//! Links images of the one-shot RTOS; the loader says what does not fit.\nfn main() {\n    \
         println!(\"cargo:rustc-link-arg-bins=-Tbulkhead-oneshot.x\");\n    \
         println!(\"cargo:rustc-link-arg-bins=--defsym=bulkhead_described=1\");\n",
    );
    for (binary, recipe) in binaries.iter().zip(recipes) {
        let of_c = recipe.c_files().into_iter();
        let linked = of_c.filter_map(|key| objects.get(&key));
        for (name, bytes) in linked.chain(in_ada.get(&recipe.ada_tasks().0)) {
            let path = folder.join(name);
            place::write(&path, bytes)?;
            let argument = format!("cargo:rustc-link-arg-bin={binary}={}", path.display());
            let _ = writeln!(script, "    println!(\"{{}}\", {argument:?});");
        }
    }
    script.push_str("}\n");
    changed(&folder.join("Cargo.toml"), &manifest)?;
    changed(&folder.join("build.rs"), &script)?;
    let users = packages.values().map(|(_, package)| package);
    let what = format!("an image of {name}");
    let built = library.build_generated(&folder, &what, users, &binaries);
    let built = built.map_err(symbols::short)?;
    let mut images = Vec::new();
    for binary in &binaries {
        let Some((_, path)) = built.iter().find(|one| one.0 == *binary) else {
            return Err(Error::Machine(format!("{binary} was not built")));
        };
        images.push(place::read(path)?);
    }
    Ok(images)
}

/// The binaries whose sources are in a folder, in order.
fn sources_in(folder: &std::path::Path) -> Result<BTreeSet<String>, Error> {
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

/// An object file: its name in the folder of the images, and its bytes.
type Object = (String, Vec<u8>);

/// The C files of all images, compiled, by file and number of copies.
fn objects<'r>(
    library: &Library,
    recipes: &'r [Recipe],
    notifies: bool,
) -> Result<BTreeMap<(&'r str, usize), Object>, Error> {
    let mut all = BTreeMap::new();
    for key in recipes.iter().flat_map(Recipe::c_files) {
        if !all.contains_key(&key) {
            let name = format!("tasks_{}.o", all.len());
            all.insert(key, (name, library.c_tasks(key.0, key.1, notifies)?));
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
) -> Result<(InAda<'r, Object>, InAda<'r, Declared>), Error> {
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
        let name = format!("ada_{}.o", all.len());
        let tasks: Vec<_> = tasks.into_iter().collect();
        let compiled = library.ada_tasks(&files, &tasks)?;
        declared.insert(files.clone(), compiled.declared);
        all.insert(files, (name, compiled.object));
    }
    Ok((all, declared))
}

/// A name for what is built from these sources. The compiler mixes it into symbols, so it must not contain folders of the build machine:
/// packages have the names that the description gives them.
fn mark(
    sources: &[String],
    packages: &BTreeMap<String, (String, TaskPackage)>,
    objects: &BTreeMap<(&str, usize), Object>,
    in_ada: &BTreeMap<Vec<&str>, Object>,
    kernel: Kernel,
) -> String {
    let mut hash = Sha256::new();
    if kernel.notifies {
        hash.update("notify");
    }
    if kernel.clocks {
        hash.update("clocks");
    }
    for source in sources {
        hash.update(source);
    }
    for (folder, (krate, package)) in packages {
        for part in [krate, &package.name, folder] {
            hash.update(part);
        }
    }
    for ((file, _), (name, bytes)) in objects {
        hash.update(file);
        hash.update(name);
        hash.update(bytes);
    }
    for (files, (name, bytes)) in in_ada {
        hash.update(files.join(" "));
        hash.update(name);
        hash.update(bytes);
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
fn changed(path: &std::path::Path, text: &str) -> Result<(), Error> {
    match input::read_text(path) {
        Ok(there) if there == text => Ok(()),
        _ => {
            // A process that reads the file meanwhile finds it complete.
            let new = path.with_extension(format!("new-{}", std::process::id()));
            place::write(&new, text)?;
            std::fs::rename(&new, path).map_err(|error| Error::file(path, error))
        }
    }
}
