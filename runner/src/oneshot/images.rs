//! Which images a described system needs, and how they are built from its tasks.
//!
//! Why it exists: the tasks of a core are types of the user's packages; a generated program joins them with the kernel. Cores with the same
//! tasks in the same order have the same image; what differs (periods and ports) is in the layout's table. Budgets, the tick, and what the kernel must know of
//! tasks that messages release are constants of an image, but no instruction depends on them, so they are filled in after the build ([`super::fill`]): cores,
//! platforms and systems that differ in nothing else share what the compiler and the linker made. The size of the stack, and which tasks in C and Ada an image
//! has, are known to the linker alone ([`super::link`]), so images that differ in nothing else share what the compiler made. What it deliberately does not know:
//! where images are placed, and how they are compiled ([`super::package`]).

use super::package::{Group, Kernel, Packages, build_package};
use super::symbols::TASK;
use super::{fill, link, stack};
use crate::ada_programs;
use crate::error::Error;
use crate::one_stack::Declared;
use crate::programs::{Library, Program, is_ada, is_c};
use bulkhead_abi::one_shot::STACK;
use bulkhead_analysis::one_shot::Bounds;
use bulkhead_model::System;
use bulkhead_model::system::OneShot;
use bulkhead_model::system::oneshot::TICK;
use object::{Object as _, ObjectSymbol as _};
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;

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

/// The image of a core: what is built, and the constants that are filled in afterwards.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Filled {
    recipe: Recipe,
    /// For each task, the most urgent first: cycles that a job may take. Nobody watches the task of a host core.
    budgets: Option<Vec<u64>>,
    /// Timer counts per tick.
    timer: u64,
    /// What the kernel must know of tasks that messages release; the recipe says how many there are.
    told: Option<Told>,
}

/// Tasks of a core that messages release.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Told {
    /// Their numbers.
    pub(super) tasks: Vec<usize>,
    /// Rings that the core accepts per tick.
    pub(super) rings: u64,
}

/// What is built for an image.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Recipe {
    /// Programs of the tasks, the most urgent first.
    pub(super) tasks: Vec<String>,
    /// Bytes. If no task states them: at least this many.
    stack: u64,
    /// A task of the description states the bytes.
    is_stated: bool,
    /// A task is released by messages or releases tasks on other cores.
    notifies: bool,
    /// Number of tasks released by messages.
    told: usize,
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
        let told = Told {
            tasks: one_shot.told(core),
            rings: one_shot.rings(&system.platform, core),
        };
        Self {
            recipe: Recipe::of(system, one_shot, core),
            budgets: Some(here.iter().map(|&task| bounds.jobs[task]).collect()),
            timer: timer(system),
            told: Some(told).filter(|told| !told.tasks.is_empty()),
        }
    }

    /// Of the core that loads and starts the others.
    pub fn host(system: &System) -> Self {
        let recipe = Recipe {
            tasks: Vec::new(),
            stack: bulkhead_model::system::oneshot::STACK.0,
            is_stated: false,
            notifies: false,
            told: 0,
            reads: false,
            synchronised: false,
            is_host: true,
        };
        Self {
            recipe,
            budgets: None,
            timer: timer(system),
            told: None,
        }
    }

    /// The name of the image in messages and results.
    pub fn name(&self) -> String {
        let (mut name, tick) = (self.recipe.name(), self.timer);
        if let Some(Told { tasks, rings }) = &self.told {
            // Writing to a string cannot fail.
            let _ = write!(name, " of {tasks:?}, {rings} rings in a tick");
        }
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
        let (budgets, told) = (self.budgets.as_deref(), self.told.as_ref());
        let elf = fill::fill(&name, elf, self.timer, budgets, told)?;
        Ok(Program { name, elf })
    }
}

impl Recipe {
    /// Of a core.
    fn of(system: &System, one_shot: &OneShot, core: u16) -> Self {
        let here = one_shot.on_core(core);
        let stack = here.iter().map(|&task| one_shot.programs[task].stack().0);
        Self {
            stack: stack.max().unwrap_or(0),
            is_stated: here
                .iter()
                .any(|&task| one_shot.programs[task].stack.is_some()),
            tasks: here
                .iter()
                .map(|&task| one_shot.programs[task].name.clone())
                .collect(),
            notifies: one_shot.notifies(core),
            told: one_shot.told(core).len(),
            reads: here.iter().any(|&task| !one_shot.inputs(task).is_empty()),
            synchronised: one_shot.master(&system.platform).is_some(),
            is_host: false,
        }
    }

    /// Images that are built together with this one.
    fn group(&self) -> Group {
        let folder = |name: &'_ String| {
            let folder = name.split_once("::").map_or(&**name, |one| one.0);
            folder.to_owned()
        };
        let all: BTreeSet<String> = self.tasks.iter().map(folder).collect();
        Group {
            kernel: Kernel {
                notifies: self.notifies,
                clocks: self.synchronised,
            },
            has_c: all.iter().any(|one| is_c(one)),
            has_ada: all.iter().any(|one| is_ada(one)),
            folders: all
                .into_iter()
                .filter(|one| !is_c(one) && !is_ada(one))
                .collect(),
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
        name
    }

    /// The C files with its tasks, and the maximum number of these that are the same.
    pub(super) fn c_files(&self) -> BTreeMap<&str, usize> {
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
    pub(super) fn ada_tasks(&self) -> (Vec<&str>, Vec<(&str, &str)>) {
        let split = self.tasks.iter().filter_map(|one| one.split_once("::"));
        let tasks: Vec<(&str, &str)> = split.filter(|one| is_ada(one.0)).collect();
        let mut files: Vec<&str> = tasks.iter().map(|one| one.0).collect();
        files.sort_unstable();
        files.dedup();
        (files, tasks)
    }

    /// Refuses priorities in sources that do not agree with the description's: a greater one is more urgent, and equals may have any order.
    pub(super) fn agrees(&self, declared: &Declared) -> Result<(), Error> {
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

    /// What compiled files define for its tasks: constants of C, and bodies of tasks in Ada. The source calls them [`link::TASK`] and a number, which is their
    /// place here.
    pub(super) fn defined(&self) -> Vec<String> {
        let mut all = Vec::new();
        let symbols = self.tasks.iter().filter_map(|task| symbol(task));
        for symbol in symbols {
            if !all.contains(&symbol) {
                all.push(symbol);
            }
        }
        all
    }

    /// The source of the image; `packages`: the crate of each folder; `declared`: what its files in Ada say of their tasks.
    pub(super) fn source(&self, packages: &Packages, declared: &Declared) -> String {
        let defined = self.defined();
        let linked = |task: &str| {
            let symbol = symbol(task);
            let number = defined.iter().position(|one| Some(one) == symbol.as_ref());
            format!("{}{}", link::TASK, number.unwrap_or(0))
        };
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
                    format!("{} [{kept}]", linked(&format!("{file}::{task}")))
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
        if self.told > 0 {
            told = format!("bulkhead_oneshot::told!({});\n\n", self.told);
            first.push("bulkhead_oneshot::notify::begin(&FILLED)".to_owned());
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
        if self.told > 0 {
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
                    "bulkhead_oneshot_c::CTask: bulkhead_oneshot_c::task!({}, {copy})",
                    linked(name)
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
             bulkhead_oneshot::Configuration::new({UNFILLED}){configured};\n    stack {STACK}; ring {RING};\n    tasks {{\n{tasks}    }}\n}}\n",
        )
    }
}

/// What a compiled file defines for a task in it.
fn symbol(task: &str) -> Option<String> {
    let (file, name) = task.split_once("::")?;
    if is_c(file) {
        Some(format!("{TASK}{name}"))
    } else {
        is_ada(file).then(|| ada_programs::body(file, name, "TKB"))
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
        let parts = build_package(library, name, &recipes, &group)?;
        for (recipe, parts) in recipes.into_iter().zip(parts) {
            let mut elf = link::image(library, &parts, recipe.stack)?;
            if let Some(stack) = recipe.larger_stack(&elf)? {
                elf = link::image(library, &parts, stack)?;
            }
            built.insert(recipe, elf);
        }
    }
    // Budgets may depend on what only the images say.
    let mut known: Vec<System> = systems.iter().map(|one| (*one).clone()).collect();
    for system in &mut known {
        learn_from(system, |recipe| built.get(recipe).map(Vec::as_slice))?;
    }
    let images = self::images(&known.iter().collect::<Vec<_>>());
    let filled = images.iter().map(|image| match built.get(&image.recipe) {
        Some(elf) => image.fill(elf),
        None => Err(Error::Machine(format!("{} was not built", image.name()))),
    });
    filled.collect()
}

/// A part of the name of the function with which tasks set timing events. It is in an image only if one of them does.
const SETS_EVENTS: &str = "11TimingEvent3set";

/// Whether a task of an image sets timing events.
fn sets_events(name: &str, elf: &[u8]) -> Result<bool, Error> {
    let file = object::File::parse(elf)
        .map_err(|error| Error::Machine(format!("{name}: it is no ELF file ({error})")))?;
    let mut symbols = file.symbols();
    Ok(symbols.any(|one| one.name().is_ok_and(|name| name.contains(SETS_EVENTS))))
}

/// Adds the cores whose images set timing events, while no task there states what handlers take.
///
/// # Errors
/// If an image is missing or cannot be read.
pub fn learn(system: &mut System, programs: &[Program]) -> Result<(), Error> {
    learn_from(system, |recipe| {
        let name = recipe.name();
        let of_recipe = |program: &&Program| {
            let rest = program.name.strip_prefix(&name);
            rest.is_some_and(|rest| rest.starts_with(" within ") || rest.starts_with(" of ["))
        };
        let found = programs.iter().find(of_recipe);
        found.map(|one| one.elf.as_slice())
    })
}

fn learn_from<'a>(
    system: &mut System,
    image: impl Fn(&Recipe) -> Option<&'a [u8]>,
) -> Result<(), Error> {
    let Some(one_shot) = &system.one_shot else {
        return Ok(());
    };
    let mut unstated = BTreeSet::new();
    for core in one_shot.cores() {
        let recipe = Recipe::of(system, one_shot, core);
        let elf = image(&recipe);
        let elf =
            elf.ok_or_else(|| Error::Machine(format!("the {} was not built", recipe.name())))?;
        if one_shot.handlers(core).is_empty() && sets_events(&recipe.name(), elf)? {
            unstated.insert(core);
        }
    }
    if let Some(one_shot) = &mut system.one_shot {
        one_shot.unstated = unstated;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The image of the only core of a system with this task.
    fn of(task: &str) -> Recipe {
        let text = format!(
            r#"<system name="s" paradigm="one-shot" platform="epiphany3" duration="10ms">
            <task name="other" program="other.c::other" core="0" priority="2" period="1ms" cost="1us"/>
            <task name="task" core="0" priority="1" period="1ms" cost="1us" {task}/></system>"#
        );
        let system = bulkhead_model::load_system_text("s", &text, &Default::default());
        let system = system.expect("valid");
        Recipe::of(&system, system.one_shot.as_ref().expect("it is one"), 0)
    }

    /// The compiler makes one object for images whose tasks have other names, or another stack.
    #[test]
    fn only_the_linker_knows_names_in_c_and_the_size_of_the_stack() {
        let source = |recipe: &Recipe| recipe.source(&Packages::new(), &Declared::default());
        let one = of(r#"program="first.c::one""#);
        let two = of(r#"program="second.c::two" stack="4KiB""#);
        assert_eq!(source(&one), source(&two));
        assert_ne!(one.stack, two.stack);
        assert_eq!(one.defined(), ["bh_task_one", "bh_task_other"]);
        assert_eq!(two.defined(), ["bh_task_two", "bh_task_other"]);
    }
}
