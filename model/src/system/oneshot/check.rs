//! Rules of systems of the one-shot RTOS.
//!
//! Why it exists and what it does not know: see the parent module. Rules for every task system are checked there.

use super::{CLOCK_RULES, HOSTED, OneShot, PORTS, RULES, SLOTS, TASKS, TICK};
use crate::error::{Diagnostic, Problem};
use crate::node::Node;
use crate::platform::{Platform, PlatformKind};
use crate::programs::Programs;
use crate::tasks::ChannelKind;
use crate::text::suggestion;
use crate::tree::Element;
use crate::units::Time;
use std::collections::BTreeMap;

/// The attributes that a task here may specify. Everything else concerns other kernels and would have no effect.
const TASK: &[&str] = &[
    "name",
    "program",
    "stack",
    "image",
    "domain",
    "core",
    "priority",
    "period",
    "deadline",
    "cost",
    "misses",
    "wait",
    "handlers",
    "handlers-apart",
    "arrivals",
];
/// The attributes that a channel here may specify.
const CHANNEL: &[&str] = &[
    "name", "from", "to", "size", "kind", "slots", "notify", "answers", "joins",
];
/// Elements that such a system has.
const ELEMENTS: &[&str] = &["platform", "task", "channel", "flow", "variant"];
/// Maximum bytes of an item: two leave half of the smallest memory for image and stack.
const ITEM: u64 = 8192;
/// Longest wait of a job in a parallel section: 32 bits can count it at up to 4 GHz.
const WAIT: Time = Time(1_000_000_000_000);
/// Bytes moved by one access.
const WORD: u64 = 8;

fn wrong(
    what: impl Into<String>,
    place: &crate::source::Span,
    help: impl Into<String>,
) -> Diagnostic {
    Diagnostic::new(Problem::Inconsistent(what.into()), place, help)
}

/// A system of the tiled OS has no separate tasks and channels.
pub(crate) fn tiled(root: &Node, errors: &mut Vec<Diagnostic>) {
    if root.gives("host") {
        errors.push(wrong(
            "a system of the tiled OS cannot have `host`",
            root.place("host"),
            "remove it: the kernel starts everything",
        ));
    }
    let foreign = |child: &&Node| matches!(child.rule.name, "task" | "channel");
    for child in root.children.iter().filter(foreign) {
        errors.push(wrong(
            format!(
                "a system of the tiled OS cannot contain <{}>",
                child.rule.name
            ),
            &child.span,
            "put a task into its <app>, or write paradigm=\"one-shot\" at the <system>",
        ));
    }
}

/// Elements and attributes of other paradigms.
pub(super) fn elements(element: &Element, root: &Node, errors: &mut Vec<Diagnostic>) {
    for child in &root.children {
        if !ELEMENTS.contains(&child.rule.name) {
            errors.push(wrong(
                format!(
                    "a system of the one-shot RTOS cannot contain <{}>",
                    child.rule.name
                ),
                &child.span,
                "remove it: such a system has tasks, channels and flows",
            ));
        }
    }
    let foreign = ["manager-tile", "manager-memory"];
    for attribute in &element.attributes {
        if foreign.contains(&&*attribute.name) {
            errors.push(wrong(
                format!(
                    "a system of the one-shot RTOS cannot have `{}`",
                    attribute.name
                ),
                &attribute.name_span,
                "remove it: such a system has no resource manager",
            ));
        }
    }
    for child in &element.children {
        let known = match &*child.name {
            "task" => TASK,
            "channel" => CHANNEL,
            _ => continue,
        };
        for attribute in &child.attributes {
            if !known.contains(&&*attribute.name) {
                errors.push(wrong(
                    format!(
                        "a <{}> of the one-shot RTOS cannot have `{}`",
                        child.name, attribute.name
                    ),
                    &attribute.name_span,
                    "remove it: neither the kernel nor its bounds use it",
                ));
            }
        }
        for inside in &child.children {
            errors.push(wrong(
                format!(
                    "a task of the one-shot RTOS cannot contain <{}>",
                    inside.name
                ),
                &inside.span,
                "remove it: neither the kernel nor its bounds use it",
            ));
        }
    }
}

/// Ticks of the kernel in a second.
const TICKS_IN_A_SECOND: u64 = 1_000_000_000_000 / TICK.0;

pub(super) fn platform(platform: &Platform, root: &Node, errors: &mut Vec<Diagnostic>) {
    if platform.kind != PlatformKind::Mesh {
        errors.push(wrong(
            format!("the platform `{}` is not a mesh", platform.name),
            root.place("platform"),
            "the one-shot RTOS needs tiles with local memories, such as those of `epiphany3`",
        ));
    }
    let timebase = platform.timebase;
    if !timebase.0.is_multiple_of(TICKS_IN_A_SECOND) {
        let own = root.child("platform");
        let own = own.and_then(|platform| platform.child("timebase"));
        let place = own.map_or(root.place("platform"), |own| own.place("frequency"));
        errors.push(wrong(
            format!("a tick of {TICK} is not a whole number of counts of {timebase}"),
            place,
            "write a multiple of 1kHz as frequency of the platform's <timebase>: the kernel's timer counts it",
        ));
    }
}

/// Whether a text is a valid path of a task: Rust names joined by `::` after a folder; one task name after a C file; or Ada names joined by
/// dots after an Ada file, whose own name is that of its unit. It becomes part of a program.
fn is_path((folder, path): (&str, &str)) -> bool {
    let starts = |name: &str| name.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_');
    let goes_on = |name: &str| name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_');
    let is_name = |name: &str| starts(name) && goes_on(name);
    if let Some(file) = folder.strip_suffix(".adb") {
        let unit = file.rsplit('/').next().unwrap_or_default();
        return unit.split('-').chain(path.split('.')).all(is_name);
    }
    let is_one = !folder.ends_with(".c") || !path.contains("::");
    is_one && path.split("::").all(is_name)
}

/// The attributes that a task of a chip must specify in addition to those of every task.
pub(super) fn tasks(
    root: &Node,
    nodes: &[&Node],
    (programs, open): (Option<&dyn Programs>, bool),
    errors: &mut Vec<Diagnostic>,
) {
    if nodes.is_empty() {
        errors.push(Diagnostic::new(
            Problem::MissingElement {
                element: "task".into(),
                parent: "system".into(),
            },
            &root.span,
            "add a <task>",
        ));
    }
    for node in nodes {
        let given = [
            ("program", node.maybe_text("program").is_some()),
            ("core", open || node.maybe_integer("core").is_some()),
            ("priority", open || node.maybe_integer("priority").is_some()),
        ];
        for (attribute, _) in given.into_iter().filter(|(_, is_given)| !is_given) {
            let chosen = match attribute {
                "program" => "",
                _ => ", or let `bulkhead plan` choose one",
            };
            errors.push(Diagnostic::new(
                Problem::MissingAttribute {
                    attribute: attribute.into(),
                    element: "task".into(),
                },
                &node.span,
                format!("add {attribute}=\"...\": it is a part of its core's image{chosen}"),
            ));
        }
        if node.time("period").0 % TICK.0 != 0 {
            errors.push(wrong(
                format!(
                    "the period of {} is not a whole number of ticks",
                    node.time("period")
                ),
                node.place("period"),
                "write a multiple of 1ms: the kernel releases jobs at its ticks",
            ));
        }
        if node.time("period").0 / TICK.0 > u64::from(u32::MAX) {
            errors.push(wrong(
                format!("a period of {} has too many ticks", node.time("period")),
                node.place("period"),
                format!(
                    "write at most {}: its core's table has no more room",
                    Time(u64::from(u32::MAX) * TICK.0)
                ),
            ));
        }
        let Some(name) = node.maybe_text("program") else {
            continue;
        };
        let known = programs.map(|programs| (programs.contains(&name), programs.names()));
        let path = name.split_once("::");
        match (path.filter(|path| is_path(*path)), known) {
            (None, _) => errors.push(wrong(
                format!("`{name}` does not name the type of a task"),
                node.place("program"),
                "write FOLDER::module::Type, the folder of a Cargo package and the task's type in its library; FILE.c::NAME, a file and a task in it; or FILE.adb::Task",
            )),
            (Some(_), Some((false, names))) => {
                let names: Vec<&str> = names.iter().map(String::as_str).collect();
                let help = suggestion(&name, &names, "program");
                errors.push(Diagnostic::new(
                    Problem::Unknown {
                        kind: "program",
                        name,
                    },
                    node.place("program"),
                    help,
                ));
            }
            _ => {}
        }
    }
    for node in nodes {
        if node.maybe_time("wait").is_some_and(|wait| wait > WAIT) {
            errors.push(wrong(
                format!("a job cannot wait for {}", node.time("wait")),
                node.place("wait"),
                format!("write at most {WAIT}: its core's table has no more room"),
            ));
        }
    }
    for node in nodes {
        handlers(node, errors);
    }
    let mut counts: BTreeMap<u64, usize> = BTreeMap::new();
    for node in nodes {
        let Some(core) = node.maybe_integer("core") else {
            continue;
        };
        let count = counts.entry(core).or_default();
        *count += 1;
        if *count == TASKS + 1 {
            errors.push(wrong(
                format!("core {core} has more than {TASKS} tasks"),
                node.place("core"),
                "move tasks to other cores",
            ));
        }
    }
}

/// What a task states of the handlers of its timing events.
fn handlers(node: &Node, errors: &mut Vec<Diagnostic>) {
    let Some(apart) = node.maybe_time("handlers-apart") else {
        return;
    };
    if node.maybe_time("handlers").is_none() {
        errors.push(wrong(
            "`handlers-apart` without `handlers`",
            node.place("handlers-apart"),
            "write handlers=\"...\": the longest time of all handlers that are called at one tick",
        ));
    }
    if apart.0 % TICK.0 != 0 {
        errors.push(wrong(
            format!("handlers are not called {apart} apart"),
            node.place("handlers-apart"),
            "write a multiple of 1ms: the kernel calls handlers at its ticks",
        ));
    }
}

/// Reports every broken rule that involves several elements.
pub(super) fn check(system: &OneShot, root: &Node, errors: &mut Vec<Diagnostic>) {
    let tasks = &system.tasks;
    let channels = tasks.channels.iter().zip(root.all("channel"));
    for (channel, node) in channels.filter(|(channel, _)| channel.joins.is_none()) {
        if !(1..=ITEM).contains(&channel.size.0) {
            let what = match node.gives("size") {
                true => format!("an item of {} is not possible", channel.size),
                false => format!("the channel {} has no size", channel.name),
            };
            errors.push(wrong(
                what,
                node.place("size"),
                "write size=\"...\", 1B to 8KiB: the port at its owner has no more room",
            ));
        }
        if channel.parallel.is_some() && channel.size.0 % WORD != 0 {
            errors.push(wrong(
                format!("a slice or result of {} is not possible", channel.size),
                node.place("size"),
                format!("write a multiple of {WORD} bytes: it is moved word by word"),
            ));
        }
        if channel.kind == ChannelKind::Queue && channel.slots > SLOTS {
            errors.push(wrong(
                format!("a queue cannot have {} places", channel.slots),
                node.place("slots"),
                format!("write slots=\"...\", 1 to {SLOTS}"),
            ));
        }
    }
}

/// The core that loads the others has nothing else to do, and reaches their memories and the external one.
pub(super) fn host(
    system: &OneShot,
    platform: &Platform,
    (root, open): (&Node, bool),
    errors: &mut Vec<Diagnostic>,
) {
    let Some(host) = system.host else { return };
    let mut refuse = |what: String, help: &str| errors.push(wrong(what, root.place("host"), help));
    let Some(tile) = platform.tile(host) else {
        return refuse(
            format!("the platform {} has no tile {host}", platform.name),
            "write the number of a tile without tasks",
        );
    };
    let is_host = |node: &Node| node.maybe_integer("core") == Some(u64::from(host));
    if root.all("task").any(is_host) {
        refuse(
            format!("core {host} is the host, and has tasks"),
            "write another tile, or move its tasks to other cores",
        );
    } else if open {
        refuse(
            format!("core {host} is the host, and `plan` does not choose cores around a host"),
            "write core=\"...\" of each task, and use `check`",
        );
    }
    if !tile.uart {
        refuse(
            format!("the host core {host} has no console device"),
            "write uart=\"true\" of its tile, or another tile",
        );
    }
    if platform.memories.is_empty() {
        refuse(
            format!("the platform {} has no external memory", platform.name),
            "add a <memory>: the host copies the images from there",
        );
    }
    if system.cores().len() > HOSTED {
        refuse(
            format!("a host for {} cores", system.cores().len()),
            "a host starts 1024 cores at most",
        );
    }
    let guarded = system.cores().into_iter().find(|core| {
        let memory = platform
            .tile(*core)
            .and_then(|tile| tile.local_memory.as_ref());
        memory.is_some_and(|memory| memory.guard > 0)
    });
    if let Some(core) = guarded {
        refuse(
            format!("core {core} has a guard, which keeps the host core {host} out"),
            "remove host=\"...\", or guard=\"...\" of the platform's local memory",
        );
    }
}

/// A core has a limited number of records.
pub(super) fn ports(system: &OneShot, root: &Node, errors: &mut Vec<Diagnostic>) {
    let mut ports: BTreeMap<u16, usize> = BTreeMap::new();
    let channels = system.tasks.channels.iter().zip(root.all("channel"));
    for (channel, node) in channels.filter(|(channel, _)| channel.joins.is_none()) {
        let owner = system.core(channel.to);
        let count = ports.entry(owner).or_default();
        *count += 1;
        if *count == PORTS + 1 {
            errors.push(wrong(
                format!("core {owner} owns more than {PORTS} ports"),
                node.place("to"),
                "move a reader to another core",
            ));
        }
    }
}

/// An image belongs to one domain, because nothing protects its tasks from each other.
pub(super) fn domains(system: &OneShot, root: &Node, errors: &mut Vec<Diagnostic>) {
    let mut of_core: BTreeMap<u16, &Option<String>> = BTreeMap::new();
    for (task, node) in root.all("task").enumerate() {
        let (core, domain) = (system.core(task), &system.programs[task].domain);
        let first = *of_core.entry(core).or_insert(domain);
        if first != domain {
            let name = |domain: &Option<String>| match domain {
                Some(name) => format!("the domain `{name}`"),
                None => "no domain".to_owned(),
            };
            errors.push(wrong(
                format!(
                    "core {core} has tasks of {} and of {}",
                    name(first),
                    name(domain)
                ),
                node.place("domain"),
                "move one of them to another core: nothing protects the tasks of a core from each other",
            ));
        }
    }
}

/// With too few rules, a guard would have to admit more than the description says, or less.
pub(super) fn guards(
    system: &OneShot,
    platform: &Platform,
    root: &Node,
    errors: &mut Vec<Diagnostic>,
) {
    let room = |core: u16| {
        let tile = platform.tile(core);
        let memory = tile.and_then(|tile| tile.local_memory.as_ref());
        memory.map_or(0, |memory| memory.guard as usize)
    };
    let mut needed: BTreeMap<u16, usize> = BTreeMap::new();
    for core in system.cores() {
        if system.follows(platform, core) {
            needed.insert(core, CLOCK_RULES);
        }
        if (1..CLOCK_RULES).contains(&room(core)) && needed.contains_key(&core) {
            errors.push(wrong(
                format!("the guard of core {core} has 1 rule, and the messages of its clock need {CLOCK_RULES}"),
                root.place("platform"),
                "write guard=\"...\" of the platform's local memory, or remove clock-offset and clock-drift of the tiles",
            ));
        }
    }
    let channels = system.tasks.channels.iter().zip(root.all("channel"));
    for (index, (channel, node)) in channels.enumerate() {
        let to = system.core(channel.to);
        let room = room(to);
        if room == 0 || !system.needs_rules(index) {
            continue;
        }
        let rules = needed.entry(to).or_default();
        let fitted = *rules <= room;
        *rules += RULES + usize::from(channel.notify);
        if fitted && *rules > room {
            errors.push(wrong(
                format!(
                    "the guard of core {to} has {room} rules, and its channels from other cores need more"
                ),
                node.place("to"),
                format!("a channel needs {RULES}, and one more with notification; a clock of its own needs {CLOCK_RULES}: move a task, or write guard=\"...\" of the platform's local memory"),
            ));
        }
    }
}
