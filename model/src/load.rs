//! From a name or a file to a validated model.
//!
//! Why it exists: it performs the steps in the only correct order: read, include, override, find the platform, validate, and the same again
//! for each variant. What it deliberately does not know: the rules themselves.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::catalog;
use crate::error::{Diagnostic, Errors, Problem};
use crate::input;
use crate::overrides::{Override, apply_overrides};
use crate::platform::{self, Platform};
use crate::programs::Programs;
use crate::source::{Source, Span};
use crate::system::{self, Peer, System};
use crate::tasks::{self, TaskSystem};
use crate::text::suggestion;
use crate::tree::{self, Attribute, Element};

/// How to load. The default changes nothing, uses the built-in catalog, and does not check programs.
#[derive(Default, Clone)]
pub struct LoadOptions<'a> {
    /// Changes `PATH=VALUE` (see [`crate::overrides`]), applied in order, before those of a variant.
    pub overrides: Vec<String>,
    /// Known programs; `None`: program names are not checked.
    pub programs: Option<&'a dyn Programs>,
    /// Folders with `platforms/NAME.xml` and `systems/NAME.xml` that are searched before the built-in catalog.
    pub catalogs: Vec<PathBuf>,
    /// Tasks of the one-shot RTOS may lack a core, and all of them a priority, because the caller will choose them. What depends on cores
    /// is not checked then.
    pub open: bool,
}

impl LoadOptions<'_> {
    /// The default with these changes: what `--set` asks for.
    pub fn with_changes(changes: &[String]) -> Self {
        Self {
            overrides: changes.to_vec(),
            ..Self::default()
        }
    }
}

/// Loads a system and all its variants from a file or by a name of the catalog.
pub fn load_system(path: impl AsRef<Path>, options: &LoadOptions<'_>) -> Result<System, Errors> {
    let path = path.as_ref();
    let (source, folder) = find(path, "system", catalog::SYSTEMS, options)?;
    load(&source, folder.as_deref(), Some(path), options)
}

/// Loads a system from a text. `name` appears in messages; includes and platform files are not possible.
pub fn load_system_text(
    name: &str,
    text: &str,
    options: &LoadOptions<'_>,
) -> Result<System, Errors> {
    let source = Arc::new(Source {
        name: name.into(),
        text: text.into(),
    });
    load(&source, None, None, options)
}

/// The elements of a system's description with everything included and the options' changes applied, but without its platform if that is
/// another file, and without the changes of variants. For rewriting a description ([`crate::canonical::description`]). Only [`load_system`]
/// checks it.
///
/// # Errors
/// If it is not a description at all, or a change matches nothing in it.
pub fn description(path: impl AsRef<Path>, options: &LoadOptions<'_>) -> Result<Element, Errors> {
    let path = path.as_ref();
    let (source, folder) = find(path, "system", catalog::SYSTEMS, options)?;
    let mut tree = tree::parse(&source)?;
    expand(
        &mut tree,
        folder.as_deref(),
        &mut Includes::of(Some(same_file(path))),
    )?;
    apply_overrides(&mut tree, &parse_overrides(options)?)?;
    Ok(tree)
}

/// Loads a platform from a file or by a name of the catalog.
pub fn load_platform(
    path: impl AsRef<Path>,
    options: &LoadOptions<'_>,
) -> Result<Platform, Errors> {
    let (source, _) = find(path.as_ref(), "platform", catalog::PLATFORMS, options)?;
    load_platform_source(&source, options)
}

/// Loads a platform from a text. `name` appears in messages.
pub fn load_platform_text(
    name: &str,
    text: &str,
    options: &LoadOptions<'_>,
) -> Result<Platform, Errors> {
    let source = Arc::new(Source {
        name: name.into(),
        text: text.into(),
    });
    load_platform_source(&source, options)
}

fn load_platform_source(
    source: &Arc<Source>,
    options: &LoadOptions<'_>,
) -> Result<Platform, Errors> {
    let mut tree = tree::parse(source)?;
    apply_overrides(&mut tree, &parse_overrides(options)?)?;
    let mut errors = Vec::new();
    platform::read(&tree, &mut errors).ok_or_else(|| Errors::new(errors))
}

/// Every platform that can be named: those in the options' folders and the built-in ones.
pub fn platform_names(options: &LoadOptions<'_>) -> Vec<String> {
    names("platforms", catalog::PLATFORMS, options)
}

/// Every system that can be named.
pub fn system_names(options: &LoadOptions<'_>) -> Vec<String> {
    names("systems", catalog::SYSTEMS, options)
}

/// Every task system that can be named.
pub fn task_system_names(options: &LoadOptions<'_>) -> Vec<String> {
    names("tasks", catalog::TASKS, options)
}

/// The kind of a description, by its outermost element.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Root {
    /// `<system>`, or an unknown element, which loading as a system will report.
    System,
    /// `<system paradigm="one-shot">`: tasks, with a chip and programs.
    OneShot,
    /// `<task-system>`.
    Tasks,
    /// `<platform>`.
    Platform,
    /// `<taskset>` or `<testpoint>`, formats of SchedCAT: name and text.
    Schedcat(String, String),
}

/// Determines the outermost element of a file or of an entry of the catalog. Systems take precedence over task systems, and those over
/// platforms.
pub fn root(path: impl AsRef<Path>, options: &LoadOptions<'_>) -> Root {
    let path = path.as_ref();
    let found = find(path, "system", catalog::SYSTEMS, options)
        .or_else(|_| find(path, "task", catalog::TASKS, options))
        .or_else(|_| find(path, "platform", catalog::PLATFORMS, options));
    let Ok((source, _)) = found else {
        return Root::System;
    };
    match tree::parse(&source) {
        Ok(tree) if is_one_shot(&tree) => Root::OneShot,
        Ok(tree) if tree.name == "task-system" => Root::Tasks,
        Ok(tree) if tree.name == "platform" => Root::Platform,
        Ok(tree) if matches!(tree.name.as_str(), "taskset" | "testpoint") => {
            Root::Schedcat(source.name.clone(), source.text.clone())
        }
        _ => Root::System,
    }
}

fn is_one_shot(tree: &Element) -> bool {
    let paradigm = tree.attribute("paradigm");
    tree.name == "system" && paradigm.is_some_and(|word| word.value == "one-shot")
}

/// Loads a task system from a file or by a name of the catalog.
pub fn load_tasks(path: impl AsRef<Path>, options: &LoadOptions<'_>) -> Result<TaskSystem, Errors> {
    let (source, _) = find(path.as_ref(), "task", catalog::TASKS, options)?;
    load_tasks_source(&source, options)
}

/// Loads a task system from a text. `name` appears in messages.
pub fn load_tasks_text(
    name: &str,
    text: &str,
    options: &LoadOptions<'_>,
) -> Result<TaskSystem, Errors> {
    let source = Arc::new(Source {
        name: name.into(),
        text: text.into(),
    });
    load_tasks_source(&source, options)
}

fn load_tasks_source(
    source: &Arc<Source>,
    options: &LoadOptions<'_>,
) -> Result<TaskSystem, Errors> {
    let mut tree = tree::parse(source)?;
    apply_overrides(&mut tree, &parse_overrides(options)?)?;
    let mut errors = Vec::new();
    tasks::read(&tree, &mut errors).ok_or_else(|| Errors::new(errors))
}

fn names(
    kind: &str,
    table: &[(&'static str, &'static str)],
    options: &LoadOptions<'_>,
) -> Vec<String> {
    fn collect(folder: &Path, prefix: &str, found: &mut Vec<String>) {
        let Ok(entries) = std::fs::read_dir(folder) else {
            return;
        };
        for entry in entries.flatten() {
            let path = entry.path();
            let Some(stem) = path.file_stem().and_then(|stem| stem.to_str()) else {
                continue;
            };
            if path.is_dir() && prefix.is_empty() {
                collect(&path, &format!("{stem}/"), found);
            } else if path.extension().is_some_and(|extension| extension == "xml") {
                found.push(format!("{prefix}{stem}"));
            }
        }
    }
    let mut found: Vec<String> = table.iter().map(|entry| entry.0.to_owned()).collect();
    for folder in &options.catalogs {
        collect(&folder.join(kind), "", &mut found);
    }
    found.sort();
    found.dedup();
    found
}

fn parse_overrides(options: &LoadOptions<'_>) -> Result<Vec<Override>, Errors> {
    let (mut good, mut list) = (Vec::new(), Vec::new());
    for text in &options.overrides {
        match Override::parse(text) {
            Ok(change) => good.push(change),
            Err(error) => list.push(error),
        }
    }
    if list.is_empty() {
        Ok(good)
    } else {
        Err(Errors::new(list))
    }
}

/// Reads a text file; the message of a failure names it.
fn read_file(path: &Path) -> Result<Arc<Source>, String> {
    let text = input::read_text(path).map_err(|error| error.to_string())?;
    Ok(Arc::new(Source {
        name: path.display().to_string(),
        text,
    }))
}

/// Whether a reference means a file rather than a name of the catalog.
fn is_file_reference(path: &Path) -> bool {
    path.extension().is_some_and(|extension| extension == "xml") || path.is_absolute()
}

type Found = (Arc<Source>, Option<PathBuf>);

/// Finds a description: the text, and the folder that its references are relative to.
fn find(
    path: &Path,
    kind: &'static str,
    table: &[(&'static str, &'static str)],
    options: &LoadOptions<'_>,
) -> Result<Found, Diagnostic> {
    let name = path.display().to_string();
    if !is_file_reference(path) {
        for folder in &options.catalogs {
            let file = folder.join(format!("{kind}s")).join(format!("{name}.xml"));
            if file.is_file() {
                return file_source(&file);
            }
        }
        if let Some((entry, text)) = catalog::find(table, &name) {
            let source = Source {
                name: format!("{entry}.xml"),
                text: text.into(),
            };
            return Ok((Arc::new(source), None));
        }
    }
    if is_file_reference(path) || path.is_file() {
        return file_source(path);
    }
    let known = names(&format!("{kind}s"), table, options);
    let known: Vec<&str> = known.iter().map(String::as_str).collect();
    let of_another_kind = [
        (catalog::SYSTEMS, "a system: `bulkhead run` runs it"),
        (
            catalog::TASKS,
            "a task system: `bulkhead check` and `bulkhead plan` read it",
        ),
        (
            catalog::PLATFORMS,
            "a platform: a system names it (<system platform=...>), and `bulkhead check` shows it",
        ),
    ];
    let other = of_another_kind
        .iter()
        .find(|(table, _)| catalog::find(table, &name).is_some());
    let help = match other {
        Some((_, what)) => format!("`{name}` is {what}"),
        None => {
            let help = suggestion(&name, &known, kind);
            format!("{help}; name a file with its ending .xml")
        }
    };
    Err(Diagnostic::without_place(
        Problem::Unknown { kind, name },
        help,
    ))
}

fn file_source(path: &Path) -> Result<Found, Diagnostic> {
    let source = read_file(path).map_err(|cause| {
        let problem = Problem::Unreadable {
            name: path.display().to_string(),
            cause,
        };
        Diagnostic::without_place(problem, "check the name of the file and its rights")
    })?;
    Ok((
        source,
        Some(path.parent().unwrap_or(Path::new("")).to_path_buf()),
    ))
}

/// Shared state of the loading steps.
struct Loader<'a> {
    folder: Option<&'a Path>,
    options: &'a LoadOptions<'a>,
}

fn load(
    source: &Arc<Source>,
    folder: Option<&Path>,
    path: Option<&Path>,
    options: &LoadOptions<'_>,
) -> Result<System, Errors> {
    let overrides = parse_overrides(options)?;
    let mut tree = tree::parse(source)?;
    expand(&mut tree, folder, &mut Includes::of(path.map(same_file)))?;
    let loader = Loader { folder, options };
    let mut system = loader.system(tree.clone(), &overrides)?;

    // Changes from the command line may also affect the variants themselves.
    let mut changed = tree.clone();
    let variant_only: Vec<Override> = overrides
        .iter()
        .filter(|change| apply_overrides(&mut tree.clone(), std::slice::from_ref(change)).is_ok())
        .cloned()
        .collect();
    apply_overrides(&mut changed, &variant_only)?;
    let mut list = Vec::new();
    for variant in changed
        .children
        .iter()
        .filter(|child| child.name == "variant")
    {
        match loader.variant(&tree, variant, &overrides) {
            Ok(run) => {
                if run.platform.clocks != system.platform.clocks
                    || run.platform.timebase != system.platform.timebase
                {
                    list.push(other_clocks(variant));
                }
                system.variants.push(run);
            }
            Err(errors) => list.extend(errors.list),
        }
    }
    if list.is_empty() {
        Ok(system)
    } else {
        Err(Errors::new(list))
    }
}

impl Loader<'_> {
    /// Overrides, platform, validation.
    fn system(&self, mut tree: Element, overrides: &[Override]) -> Result<System, Errors> {
        let (platform_first, rest): (Vec<Override>, Vec<Override>) = overrides
            .iter()
            .cloned()
            .partition(|change| change.selects_platform(&tree));
        apply_overrides(&mut tree, &platform_first)?;
        let named = match tree.name == "system" {
            true => self.add_platform(&mut tree)?,
            false => None,
        };
        apply_overrides(&mut tree, &rest)?;
        let mut errors = Vec::new();
        let platform = tree
            .children
            .iter()
            .find(|child| child.name == "platform")
            .and_then(|element| platform::read(element, &mut errors));
        let Some(platform) = platform else {
            // Structural errors of the system itself are reported at once.
            if tree.name != "system" || errors.is_empty() {
                crate::node::read_root(&tree, "system", &mut errors);
            }
            return Err(Errors::new(errors));
        };
        let peer = self.peer(&tree)?;
        let platform = (platform, named.as_ref().unwrap_or(&tree.span));
        let how = (self.options.programs, self.options.open);
        let system = system::read(&tree, platform, how, peer, &mut errors);
        system.ok_or_else(|| Errors::new(errors))
    }

    /// The system on the other chip: a file, a name of the catalog, or the nested element. Changes do not affect it.
    fn peer(&self, tree: &Element) -> Result<Option<Peer>, Errors> {
        let Some(node) = tree.children.iter().find(|child| child.name == "peer") else {
            return Ok(None);
        };
        let inside = node.children.iter().find(|child| child.name == "system");
        let name = node
            .attribute("name")
            .map_or("peer", |a| &a.value)
            .to_owned();
        let system = match (node.attribute("system"), inside) {
            (Some(reference), None) => {
                let mut path = PathBuf::from(&reference.value);
                if is_file_reference(&path)
                    && let Some(folder) = self.folder
                {
                    path = folder.join(path);
                }
                let found = find(&path, "system", catalog::SYSTEMS, self.options);
                let (source, folder) = found.map_err(|error| Diagnostic {
                    span: Some(reference.value_span.clone()),
                    ..error
                })?;
                let mut other = tree::parse(&source)?;
                let mut chain = Includes::of(Some(same_file(&path)));
                expand(&mut other, folder.as_deref(), &mut chain)?;
                let loader = Loader {
                    folder: folder.as_deref(),
                    options: self.options,
                };
                loader.one_of_two(other)?
            }
            (None, Some(inside)) => self.one_of_two(inside.clone())?,
            _ => {
                return Err(Diagnostic::new(
                    Problem::Inconsistent("<peer> must give exactly one system".into()),
                    &node.span,
                    "write system=\"...\", or put one <system> inside",
                )
                .into());
            }
        };
        let system = Box::new(system);
        Ok(Some(Peer { name, system }))
    }

    fn one_of_two(&self, tree: Element) -> Result<System, Errors> {
        match tree.children.iter().find(|child| child.name == "peer") {
            Some(peer) => Err(system::nested(peer).into()),
            None => self.system(tree, &[]),
        }
    }

    /// Replaces the attribute `platform` by the platform's element. Returns the place of the attribute, if there was one.
    fn add_platform(&self, tree: &mut Element) -> Result<Option<Span>, Diagnostic> {
        let inside = tree.children.iter().find(|child| child.name == "platform");
        let attribute = tree.attribute("platform");
        let (reference, span) = match (attribute, inside) {
            (None, Some(_)) => return Ok(None),
            (Some(attribute), Some(_)) => {
                return Err(Diagnostic::new(
                    Problem::Inconsistent("the system names a platform and has one inside".into()),
                    &attribute.value_span,
                    "keep either platform=\"...\" or the <platform>",
                ));
            }
            (None, None) => {
                let known = platform_names(self.options);
                return Err(Diagnostic::new(
                    Problem::MissingAttribute {
                        attribute: "platform".into(),
                        element: "system".into(),
                    },
                    &tree.span,
                    format!("add platform=\"...\"; known: {}", known.join(", ")),
                ));
            }
            (Some(attribute), None) => (attribute.value.clone(), attribute.value_span.clone()),
        };
        let mut path = PathBuf::from(&reference);
        if is_file_reference(&path)
            && let Some(folder) = self.folder
        {
            path = folder.join(path);
        }
        let (source, _) =
            find(&path, "platform", catalog::PLATFORMS, self.options).map_err(|error| {
                Diagnostic {
                    span: Some(span.clone()),
                    ..error
                }
            })?;
        tree.attributes
            .retain(|attribute| attribute.name != "platform");
        tree.children.insert(0, tree::parse(&source)?);
        Ok(Some(span))
    }

    /// The system with the changes of one variant.
    fn variant(
        &self,
        base: &Element,
        variant: &Element,
        overrides: &[Override],
    ) -> Result<System, Errors> {
        let name = variant
            .attribute("name")
            .map_or("", |name| name.value.as_str());
        let in_variant = |errors: Errors| Errors {
            list: errors
                .list
                .into_iter()
                .map(|error| Diagnostic {
                    variant: Some(name.to_owned()),
                    ..error
                })
                .collect(),
        };
        let mut tree = base.clone();
        let mut changes = overrides.to_vec();
        for child in &variant.children {
            if child.name == "without" {
                remove(&mut tree, child)?;
            } else if let (Some(path), Some(value)) =
                (child.attribute("path"), child.attribute("value"))
            {
                changes.push(Override {
                    path: path.value.clone(),
                    path_span: path.value_span.clone(),
                    value: value.value.clone(),
                    value_span: value.value_span.clone(),
                });
            }
        }
        tree.children.retain(|child| child.name != "variant");
        // An override from the command line may concern something that this variant leaves out.
        let count = overrides.len();
        let mut kept = Vec::new();
        for (index, change) in changes.into_iter().enumerate() {
            let lost = index < count
                && apply_overrides(&mut tree.clone(), std::slice::from_ref(&change)).is_err()
                && apply_overrides(&mut base.clone(), std::slice::from_ref(&change)).is_ok();
            if !lost {
                kept.push(change);
            }
        }
        let mut system = self.system(tree, &kept).map_err(in_variant)?;
        system.variant = Some(name.to_owned());
        system.variant_about = variant.attribute("about").map(|about| about.value.clone());
        system.misses_expected = variant.attribute("misses").is_some();
        Ok(system)
    }
}

/// All runs of a system count in the same ticks and cycles; otherwise a table would compare incomparable values.
fn other_clocks(variant: &Element) -> Diagnostic {
    Diagnostic::new(
        Problem::Inconsistent("the variant changes the platform's clocks".into()),
        &variant.span,
        "runs with different clocks cannot share a table: run the system again with an override, such as @platform=tiled-star",
    )
}

/// Executes a `<without>`: removes the element, and gates and flows that lead to its applications.
fn remove(tree: &mut Element, without: &Element) -> Result<(), Diagnostic> {
    let [attribute] = without.attributes.as_slice() else {
        return Err(Diagnostic::new(
            Problem::Inconsistent("<without> must name exactly one domain, manager or app".into()),
            &without.span,
            "write one of domain=\"...\", manager=\"...\" and app=\"...\"",
        ));
    };
    let (mut removed, mut known) = (Vec::new(), Vec::new());
    take(tree, attribute, &mut removed, &mut known);
    if removed.is_empty() {
        let kind = match attribute.name.as_str() {
            "domain" => "domain",
            "manager" => "manager",
            _ => "app",
        };
        let known: Vec<&str> = known.iter().map(String::as_str).collect();
        return Err(Diagnostic::new(
            Problem::Unknown {
                kind,
                name: attribute.value.clone(),
            },
            &attribute.value_span,
            suggestion(&attribute.value, &known, kind),
        ));
    }
    // A removed thing may have namesakes below other managers that stay.
    let (mut gone, mut left) = (Vec::new(), Vec::new());
    removed.iter().for_each(|element| apps(element, &mut gone));
    apps(tree, &mut left);
    gone.retain(|name| !left.contains(name));
    drop_references(tree, &gone);
    Ok(())
}

fn take(
    element: &mut Element,
    wanted: &Attribute,
    removed: &mut Vec<Element>,
    known: &mut Vec<String>,
) {
    let children = std::mem::take(&mut element.children);
    for mut child in children {
        if child.name == wanted.name {
            known.extend(child.identity().map(str::to_owned));
            if child.identity() == Some(wanted.value.as_str()) {
                removed.push(child);
                continue;
            }
        }
        take(&mut child, wanted, removed, known);
        element.children.push(child);
    }
}

fn apps(element: &Element, found: &mut Vec<String>) {
    if element.name == "app" {
        found.extend(element.identity().map(str::to_owned));
    }
    element.children.iter().for_each(|child| apps(child, found));
}

fn drop_references(element: &mut Element, gone: &[String]) {
    let leads = |child: &Element, name: &str| {
        child.attribute(name).is_some_and(|attribute| {
            let name = attribute.value.rsplit('.').next().unwrap_or_default();
            gone.iter().any(|gone| gone == name)
        })
    };
    element.children.retain(|child| match child.name.as_str() {
        "sgate" | "session" => !leads(child, "to"),
        "flow" => !leads(child, "from") && !leads(child, "to"),
        _ => true,
    });
    element
        .children
        .iter_mut()
        .for_each(|child| drop_references(child, gone));
}

/// The path that identifies a file, however it was named.
fn same_file(path: &Path) -> PathBuf {
    std::fs::canonicalize(path).unwrap_or_else(|_| path.to_path_buf())
}

/// Maximum nesting of includes, and maximum total number.
const INCLUDES: (usize, usize) = (tree::DEPTH_LIMIT, 1000);

/// The open files, and how much has been included: a few small files that include each other twice would be an unbounded tree.
struct Includes {
    /// From the description to the file being read.
    open: Vec<PathBuf>,
    files: usize,
    elements: usize,
}

impl Includes {
    /// For a description, which may not be a file.
    fn of(description: Option<PathBuf>) -> Self {
        Self {
            open: description.into_iter().collect(),
            files: 0,
            elements: 0,
        }
    }

    /// Counts a file that was read. Returns why it is too much, if it is.
    fn count(&mut self, included: &Element) -> Result<(), String> {
        fn elements(element: &Element) -> usize {
            1 + element.children.iter().map(elements).sum::<usize>()
        }
        self.files += 1;
        self.elements += elements(included);
        let (deep, all) = INCLUDES;
        if self.open.len() > deep {
            return Err(format!("files include each other more than {deep} deep"));
        }
        if self.files > all {
            return Err(format!("more than {all} files are included"));
        }
        match self.elements > tree::ELEMENT_LIMIT as usize {
            true => Err(format!(
                "included files have more than {} elements",
                tree::ELEMENT_LIMIT
            )),
            false => Ok(()),
        }
    }
}

/// Replaces every `<include>` by the element of its file.
fn expand(
    element: &mut Element,
    folder: Option<&Path>,
    chain: &mut Includes,
) -> Result<(), Diagnostic> {
    for child in &mut element.children {
        if child.name != "include" {
            expand(child, folder, chain)?;
            continue;
        }
        let Some(file) = child.attribute("file") else {
            continue;
        };
        let span: Span = file.value_span.clone();
        let Some(folder) = folder else {
            return Err(Diagnostic::new(
                Problem::Unreadable {
                    name: file.value.clone(),
                    cause: "this description is not a file, so no path can be relative to it"
                        .into(),
                },
                &span,
                "put the included elements here",
            ));
        };
        let path = folder.join(&file.value);
        let identity = same_file(&path);
        if let Some(start) = chain.open.iter().position(|open| *open == identity) {
            let name = |path: &PathBuf| {
                path.file_name()
                    .map_or_else(String::new, |name| name.to_string_lossy().into_owned())
            };
            let mut names: Vec<String> = chain.open[start..].iter().map(name).collect();
            names.push(name(&identity));
            return Err(Diagnostic::new(
                Problem::Cycle {
                    chain: names.join(" includes "),
                },
                &span,
                "remove one of the includes, so that no subsystem contains itself",
            ));
        }
        let source = read_file(&path).map_err(|cause| {
            Diagnostic::new(
                Problem::Unreadable {
                    name: file.value.clone(),
                    cause,
                },
                &span,
                "the path is relative to the file that includes it",
            )
        })?;
        let mut included = tree::parse(&source)?;
        if !matches!(included.name.as_str(), "domain" | "manager") {
            // A system that includes itself is a cycle and is reported as such above; anything else has the wrong root.
            return Err(Diagnostic::new(
                Problem::UnknownElement {
                    element: included.name.clone(),
                    parent: "an included file".into(),
                },
                &included.span,
                "an included file holds one <domain> or one <manager>",
            ));
        }
        chain.count(&included).map_err(|cause| {
            let name = file.value.clone();
            let problem = Problem::Unreadable { name, cause };
            Diagnostic::new(problem, &span, "include fewer files, or smaller ones")
        })?;
        chain.open.push(identity);
        expand(&mut included, path.parent(), chain)?;
        chain.open.pop();
        if let Some(name) = child.attribute("as") {
            let mut renamed = name.clone();
            renamed.name = "name".into();
            included.attributes.retain(|known| known.name != "name");
            included.attributes.insert(0, renamed);
        }
        *child = included;
    }
    Ok(())
}
