//! Task system rules that involve several values.
//!
//! Why it exists: questions that no analysis could answer are refused before the analysis, with a place in the file. What it
//! deliberately does not know: whether anything is schedulable; a task system that is not is still a valid description.

use std::collections::{BTreeMap, BTreeSet};

use super::{ChannelKind, Policy, TIME_MAX, TaskSystem};
use crate::error::{Diagnostic, Problem};
use crate::node::Node;
use crate::text::suggestion;
use crate::units::Time;

/// Where things are in the file: one element for each entry of the system's lists.
pub struct Places<'a> {
    /// The root.
    pub root: &'a Node,
    /// For each task.
    pub tasks: Vec<&'a Node>,
    /// For each channel.
    pub channels: Vec<&'a Node>,
    /// For each device.
    pub devices: Vec<&'a Node>,
    /// For each flow.
    pub flows: Vec<&'a Node>,
    /// For each table.
    pub tables: Vec<&'a Node>,
    /// For each share.
    pub shares: Vec<&'a Node>,
}

impl<'a> Places<'a> {
    /// The elements inside `root`.
    pub fn new(root: &'a Node) -> Self {
        let all = |name: &'static str| root.all(name).collect();
        Self {
            root,
            tasks: all("task"),
            channels: all("channel"),
            devices: all("device"),
            flows: all("flow"),
            tables: all("table"),
            shares: all("share"),
        }
    }
}

pub(super) fn wrong(
    node: &Node,
    attribute: &str,
    what: impl Into<String>,
    help: impl Into<String>,
) -> Diagnostic {
    Diagnostic::new(
        Problem::Inconsistent(what.into()),
        node.place(attribute),
        help,
    )
}

/// Attributes that only tasks of the one-shot RTOS have.
pub(crate) fn one_shot_only(element: &Node, errors: &mut Vec<Diagnostic>) {
    let given = [
        ("program", element.maybe_text("program").is_some()),
        ("stack", element.maybe_size("stack").is_some()),
        ("image", element.maybe_size("image").is_some()),
        ("domain", element.maybe_text("domain").is_some()),
        ("handlers", element.maybe_time("handlers").is_some()),
        (
            "handlers-apart",
            element.maybe_time("handlers-apart").is_some(),
        ),
        ("arrivals", element.maybe_text("arrivals").is_some()),
    ];
    for (attribute, _) in given.into_iter().filter(|(_, is_given)| *is_given) {
        errors.push(wrong(
            element,
            attribute,
            format!("this task cannot have `{attribute}`, because it is not part of an image"),
            "remove it: only tasks of a <system paradigm=\"one-shot\"> have one",
        ));
    }
}

/// Every task has a name, and names are unique.
pub fn names(places: &Places<'_>, errors: &mut Vec<Diagnostic>) {
    for node in &places.tasks {
        one_shot_only(node, errors);
        if node.maybe_text("name").is_none() {
            errors.push(Diagnostic::new(
                Problem::MissingAttribute {
                    attribute: "name".into(),
                    element: "task".into(),
                },
                &node.span,
                "add name=\"...\": reports and plans name tasks",
            ));
        }
    }
    for (kind, list) in [
        ("task", &places.tasks),
        ("channel", &places.channels),
        ("device", &places.devices),
        ("flow", &places.flows),
    ] {
        let mut seen = BTreeSet::new();
        for node in list {
            let Some(name) = node.maybe_text("name") else {
                continue;
            };
            if !seen.insert(name.clone()) {
                errors.push(Diagnostic::new(
                    Problem::Duplicate { kind, name },
                    node.place("name"),
                    "give one of them another name",
                ));
            }
        }
    }
}

/// Reports every rule that `system` breaks.
pub fn check(system: &TaskSystem, places: &Places<'_>, errors: &mut Vec<Diagnostic>) {
    times(places, errors);
    if !errors.is_empty() {
        return;
    }
    for (index, node) in places.tasks.iter().enumerate() {
        task(system, index, node, errors);
        costs(system, index, node, errors);
        coverage(system, node, errors);
    }
    priorities(system, places, errors);
    sections(system, places, errors);
    channels(system, places, errors);
    super::parallel::check(system, places, errors);
    devices(system, places, errors);
    super::flows::check(system, places, errors);
    shares(system, places, errors);
    tables(system, places, errors);
    if system.policy == Policy::ThreePhase && system.tdma.is_none() {
        errors.push(Diagnostic::new(
            Problem::MissingElement {
                element: "tdma".into(),
                parent: "task-system".into(),
            },
            &places.root.span,
            "add a <tdma overhead=\"...\"/>: three-phase tasks load and unload through one DMA engine",
        ));
    }
    if let (Some(llc), Some(node)) = (system.llc, places.root.child("llc"))
        && llc.colours > 0
        && llc.colour_size.0 == 0
    {
        errors.push(wrong(
            node,
            "colours",
            "the cache has colours, but no size of a colour",
            "add colour-size=\"...\": the bytes of cache behind one colour",
        ));
    }
}

/// Times beyond the range of the analyses.
fn times(places: &Places<'_>, errors: &mut Vec<Diagnostic>) {
    fn visit(node: &Node, errors: &mut Vec<Diagnostic>) {
        for attribute in node.rule.attributes {
            if node
                .as_time(attribute.name)
                .is_some_and(|time| time > TIME_MAX)
            {
                errors.push(Diagnostic::new(
                    Problem::OutOfRange {
                        element: node.rule.name.into(),
                        attribute: attribute.name.into(),
                        value: node
                            .as_time(attribute.name)
                            .map_or_else(String::new, |time| time.to_string()),
                    },
                    node.place(attribute.name),
                    format!("the longest time is {TIME_MAX} (52 days)"),
                ));
            }
        }
        node.children.iter().for_each(|child| visit(child, errors));
    }
    visit(places.root, errors);
}

fn task(system: &TaskSystem, index: usize, node: &Node, errors: &mut Vec<Diagnostic>) {
    let task = &system.tasks[index];
    if let Some(core) = task.core {
        core_exists(system, core, node, errors);
    }
    if let (Some(threshold), Some(priority)) = (task.threshold, task.priority)
        && threshold > priority
    {
        errors.push(wrong(
            node,
            "threshold",
            format!("threshold {threshold} is less urgent than the task's priority {priority}"),
            format!("write 1 to {priority}: a threshold cannot be less urgent than the priority"),
        ));
    }
    if task.threshold.is_some() && task.priority.is_none() {
        errors.push(wrong(
            node,
            "threshold",
            "the task has a threshold, but no priority",
            "give all tasks priorities, or leave thresholds to `bulkhead plan`",
        ));
    }
    if let Some(cpu) = task.quota
        && cpu.budget > cpu.period
    {
        errors.push(wrong(
            node.child("cpu").unwrap_or(node),
            "quota",
            format!(
                "a quota of {} is more than its period of {}",
                cpu.budget, cpu.period
            ),
            format!("write at most {}, or 100%", cpu.period),
        ));
    }
    let implicit = matches!(system.policy, Policy::GlobalEdfSoft | Policy::Mc2);
    let constrained = matches!(
        system.policy,
        Policy::GlobalFixedPriority | Policy::GlobalEdf | Policy::ThreePhase | Policy::Table
    );
    if implicit && task.deadline != task.period && task.criticality < 'D' {
        errors.push(wrong(
            node,
            "deadline",
            format!(
                "policy `{}` only covers deadlines that are equal to the period, not {} in a period of {}",
                system.policy.word(),
                task.deadline,
                task.period
            ),
            "leave the deadline out; `tardiness` says how late a job may be",
        ));
    } else if (constrained || system.mutex.is_some() || system.memguard.is_some())
        && task.deadline > task.period
    {
        errors.push(Diagnostic::new(
            Problem::DeadlineAfterPeriod {
                deadline: task.deadline.to_string(),
                period: task.period.to_string(),
            },
            node.place("deadline"),
            format!(
                "write at most {}: this policy has no bound for deadlines beyond periods",
                task.period
            ),
        ));
    }
}

fn core_exists(system: &TaskSystem, core: u32, node: &Node, errors: &mut Vec<Diagnostic>) {
    if core >= system.processors {
        errors.push(Diagnostic::new(
            Problem::Unknown {
                kind: "processor",
                name: core.to_string(),
            },
            node.place("core"),
            match system.processors {
                1 => "the only processor is 0".to_owned(),
                count => format!("processors are 0 to {}", count - 1),
            },
        ));
    }
}

/// Every task has a cost at its own level, points are unique, more ways never cost more, and a more critical level's
/// estimate is never lower.
fn costs(system: &TaskSystem, index: usize, node: &Node, errors: &mut Vec<Diagnostic>) {
    let task = &system.tasks[index];
    let most = if task.uses_ways() { u32::MAX } else { 0 };
    let level = task.criticality;
    // Nothing is required of a best-effort task.
    if task.cost_at(level, most).is_none() && !(system.policy == Policy::Mc2 && level > 'C') {
        errors.push(Diagnostic::new(
            Problem::MissingAttribute {
                attribute: "cost".into(),
                element: "task".into(),
            },
            &node.span,
            format!(
                "add cost=\"...\", or a <cost time=\"...\"/> for level {level}: the computing time of a job in the worst case"
            ),
        ));
        return;
    }
    let ways = system.llc.map_or(0, |llc| llc.ways);
    let mut seen = BTreeMap::new();
    for (point, element) in task.costs.iter().zip(node.all("cost")) {
        if seen.insert((point.level, point.ways), point.time).is_some() {
            errors.push(wrong(
                element,
                "time",
                "the task has two costs for the same level and number of ways",
                "keep one of them",
            ));
        }
        if let Some(needed) = point.ways.filter(|needed| *needed > ways) {
            errors.push(wrong(
                element,
                "ways",
                format!("the cost is for {needed} ways, but the cache has only {ways} to assign"),
                "write <llc ways=\"...\"/>, or remove this <cost>",
            ));
        }
    }
    for pair in seen.iter().collect::<Vec<_>>().windows(2) {
        let ((level, ways), time) = pair[0];
        let ((next_level, next_ways), next) = pair[1];
        if level == next_level && next > time {
            errors.push(wrong(
                node,
                "name",
                format!(
                    "`{}` takes {next} with {} ways and only {time} with {}",
                    task.name,
                    next_ways.unwrap_or(0),
                    ways.unwrap_or(0)
                ),
                "more ways must not cost more: a task can leave them unused",
            ));
        }
    }
    if system.policy == Policy::Mc2 {
        for (higher, lower) in [('A', 'B'), ('B', 'C')] {
            for ways in 0..=ways {
                if let (Some(h), Some(l)) = (task.cost_at(higher, ways), task.cost_at(lower, ways))
                    && h < l
                    && task.criticality <= higher
                {
                    errors.push(wrong(
                        node,
                        "name",
                        format!("level {higher} estimates {h} for `{}`, less than the {l} of level {lower}", task.name),
                        "a more critical level must estimate at least as much",
                    ));
                    return;
                }
            }
            // At levels that judge the task, all tasks need an estimate.
            let top = task.criticality;
            if top <= lower && task.cost_at(lower, most).is_none() {
                errors.push(wrong(
                    node,
                    "name",
                    format!("level {lower} has no estimate of the cost of `{}`", task.name),
                    format!("add <cost level=\"{lower}\" time=\"...\"/>: each level judges with its own estimates"),
                ));
            }
        }
    }
}

/// The file must not contain what a policy's analysis ignores, or the bound would be silently wrong.
fn coverage(system: &TaskSystem, node: &Node, errors: &mut Vec<Diagnostic>) {
    use Policy as P;
    let policy = system.policy;
    let fixed = matches!(
        policy,
        P::FixedPriority | P::Threshold | P::NonPreemptive | P::RateMonotonic | P::OneShot
    );
    let own_cores = fixed || policy == P::Edf;
    let rules: [(&str, bool); 10] = [
        (
            "jitter",
            own_cores || matches!(policy, P::ThreePhase | P::TimeSlice),
        ),
        ("offset", policy != P::Mc2),
        ("blocking", fixed),
        ("core", !policy.is_global()),
        ("priority", policy.has_priorities()),
        ("threshold", policy == P::Threshold),
        ("load", policy == P::ThreePhase),
        ("unload", policy == P::ThreePhase),
        (
            "memory-phase",
            matches!(policy, P::FixedPriority | P::RateMonotonic),
        ),
        ("tardiness", matches!(policy, P::GlobalEdfSoft | P::Mc2)),
    ];
    let word = policy.word();
    for (attribute, covered) in rules {
        let given = match attribute {
            "core" | "priority" | "threshold" => node.maybe_integer(attribute).is_some(),
            _ => node.time(attribute) > Time(0),
        };
        if given && !covered {
            errors.push(wrong(
                node,
                attribute,
                format!("policy `{word}` does not cover `{attribute}`"),
                "remove it, or choose another policy",
            ));
        }
    }
    if let Some(section) = node.child("section")
        && !matches!(policy, P::FixedPriority | P::RateMonotonic)
    {
        errors.push(Diagnostic::new(
            Problem::Inconsistent(format!("policy `{word}` does not cover critical sections")),
            &section.span,
            "remove it, or use the policy `fixed-priority`",
        ));
    }
    if let Some(cpu) = node.child("cpu").filter(|_| policy != P::TimeSlice) {
        errors.push(Diagnostic::new(
            Problem::Inconsistent(format!("policy `{word}` has no quotas")),
            &cpu.span,
            "remove it, or use the policy `time-slice`",
        ));
    }
    if node.integer("accesses") > 0 && system.memguard.is_some() && !own_cores {
        errors.push(wrong(
            node,
            "accesses",
            format!("policy `{word}` does not cover <memguard>"),
            "remove the <memguard>, or choose a policy by processor",
        ));
    }
}

fn priorities(system: &TaskSystem, places: &Places<'_>, errors: &mut Vec<Diagnostic>) {
    if !system.policy.has_priorities() {
        return;
    }
    let given = system.tasks.iter().filter(|t| t.priority.is_some()).count();
    if given == 0 {
        return;
    }
    for (task, node) in system.tasks.iter().zip(&places.tasks) {
        if task.priority.is_none() {
            errors.push(Diagnostic::new(
                Problem::Inconsistent(format!(
                    "`{}` has no priority, but others have one ({given})",
                    task.name
                )),
                &node.span,
                "give all tasks priorities, or none: then `bulkhead plan` chooses them",
            ));
        }
    }
    let with = system
        .tasks
        .iter()
        .filter(|t| t.threshold.is_some())
        .count();
    if with > 0 && with < system.tasks.len() {
        for (task, node) in system.tasks.iter().zip(&places.tasks) {
            if task.threshold.is_none() {
                errors.push(Diagnostic::new(
                    Problem::Inconsistent(format!(
                        "`{}` has no threshold, but others have one ({with})",
                        task.name
                    )),
                    &node.span,
                    "give all tasks thresholds, or none: then `bulkhead plan` chooses them",
                ));
            }
        }
    }
    // Two tasks that share a processor, or may come to share one, need different priorities.
    let mut seen: BTreeMap<u32, Vec<usize>> = BTreeMap::new();
    for (index, task) in system.tasks.iter().enumerate() {
        let Some(priority) = task.priority else {
            continue;
        };
        let others = seen.entry(priority).or_default();
        let clash = others.iter().find(|&&other| {
            let other = system.tasks[other].core;
            other.is_none() || task.core.is_none() || other == task.core
        });
        if let Some(&other) = clash {
            errors.push(wrong(
                places.tasks[index],
                "priority",
                format!(
                    "`{}` and `{}` both have priority {priority}",
                    system.tasks[other].name, task.name
                ),
                "tasks that may share a processor need different priorities; 1 goes first",
            ));
        }
        others.push(index);
    }
}

fn sections(system: &TaskSystem, places: &Places<'_>, errors: &mut Vec<Diagnostic>) {
    let mut users: BTreeMap<&str, (usize, u32)> = BTreeMap::new();
    for (index, task) in system.tasks.iter().enumerate() {
        for (section, node) in task.sections.iter().zip(places.tasks[index].all("section")) {
            let cost = task.cost_at(task.criticality, 0).unwrap_or(TIME_MAX);
            if section.length > cost {
                errors.push(Diagnostic::new(
                    Problem::Inconsistent(format!(
                        "`{}` is held for {}, longer than the whole cost of `{}`, {cost}",
                        section.resource, section.length, task.name
                    )),
                    node.place("length"),
                    "the sections of a task are part of its cost",
                ));
            }
            let Some(core) = task.core else { continue };
            let (first, there) = *users
                .entry(section.resource.as_str())
                .or_insert((index, core));
            if there != core {
                errors.push(wrong(
                    node,
                    "resource",
                    format!(
                        "`{}` is held on processor {there} by `{}` and on processor {core} by `{}`",
                        section.resource, system.tasks[first].name, task.name
                    ),
                    "the priority ceiling protocol works on a single processor: place them together",
                ));
            }
        }
        if task.memory_phase > task.cost_at(task.criticality, 0).unwrap_or(TIME_MAX) {
            errors.push(wrong(
                places.tasks[index],
                "memory-phase",
                format!(
                    "the memory phase of `{}` is longer than its cost",
                    task.name
                ),
                "the memory phase is part of the cost: raise the cost, or shorten the phase",
            ));
        }
    }
}

fn channels(system: &TaskSystem, places: &Places<'_>, errors: &mut Vec<Diagnostic>) {
    for (channel, node) in system.channels.iter().zip(&places.channels) {
        if channel.from == channel.to {
            errors.push(wrong(
                node,
                "to",
                format!("channel `{}` leads back to its writer", channel.name),
                "name another task",
            ));
        }
        if channel.kind == ChannelKind::Sampling && node.integer("slots") > 1 {
            errors.push(wrong(
                node,
                "slots",
                "a sampling channel holds one message",
                "remove the slots, or write kind=\"queue\"",
            ));
        }
        if channel.notify {
            super::notify::check(system, channel, node, errors);
        }
        for end in [channel.from, channel.to] {
            if system.policy == Policy::Mc2 && system.tasks[end].criticality > 'C' {
                errors.push(wrong(
                    node,
                    "name",
                    format!(
                        "`{}` is at level D or E, which have no guarantees, so the channel has no bound",
                        system.tasks[end].name
                    ),
                    "give the task level A, B or C, or remove the channel",
                ));
            }
        }
    }
}

fn devices(system: &TaskSystem, places: &Places<'_>, errors: &mut Vec<Diagnostic>) {
    for (device, node) in system.devices.iter().zip(&places.devices) {
        let period = node.maybe_time("interrupt-period");
        let cost = node.maybe_time("interrupt-cost");
        if period.is_some() != cost.is_some() {
            let (has, lacks) = if period.is_some() {
                ("interrupt-period", "interrupt-cost")
            } else {
                ("interrupt-cost", "interrupt-period")
            };
            errors.push(wrong(
                node,
                has,
                format!("the device has `{has}`, but not `{lacks}`"),
                format!("add {lacks}=\"...\""),
            ));
        }
        let per_core = !system.policy.is_global()
            && !matches!(
                system.policy,
                Policy::Table | Policy::ThreePhase | Policy::TimeSlice
            );
        if period.is_some() && !per_core {
            errors.push(wrong(
                node,
                "interrupt-period",
                format!(
                    "policy `{}` does not cover interrupts",
                    system.policy.word()
                ),
                "remove them, or choose another policy",
            ));
        }
        if node.maybe_integer("core").is_some() {
            core_exists(system, device.core, node, errors);
        }
        if device.buffer.is_some() && (device.rate.is_none() || device.task.is_none()) {
            errors.push(wrong(
                node,
                "buffer",
                "the device has a buffer, but nothing fills or empties it",
                "add rate=\"...\" and task=\"...\"",
            ));
        }
    }
}

fn shares(system: &TaskSystem, places: &Places<'_>, errors: &mut Vec<Diagnostic>) {
    let mut seen = BTreeSet::new();
    for (share, node) in system.shares.iter().zip(&places.shares) {
        if let Some(core) = share.core {
            core_exists(system, core, node, errors);
        } else if system.policy != Policy::Mc2 {
            errors.push(Diagnostic::new(
                Problem::MissingAttribute {
                    attribute: "core".into(),
                    element: "share".into(),
                },
                &node.span,
                "add core=\"0\": only policy `mc2` has a share of level C",
            ));
        }
        if !seen.insert(share.core) {
            errors.push(wrong(
                node,
                "core",
                "the processor has two <share> elements",
                "merge them into one <share>",
            ));
        }
        let needs = [
            (
                "ways",
                system.llc.is_some_and(|l| l.ways > 0),
                "<llc ways=\"...\"/>",
            ),
            (
                "colours",
                system.llc.is_some_and(|l| l.colours > 0),
                "<llc colours=\"...\" colour-size=\"...\"/>",
            ),
            (
                "banks",
                system.ram.is_some_and(|r| r.banks > 0),
                "<ram banks=\"...\"/>",
            ),
            (
                "budget",
                system.memguard.is_some(),
                "<memguard period=\"...\" access=\"...\"/>",
            ),
            ("slot", system.tdma.is_some(), "<tdma/>"),
        ];
        for (attribute, there, element) in needs {
            let given = if attribute == "slot" {
                node.maybe_time(attribute).is_some()
            } else {
                node.maybe_integer(attribute).is_some_and(|n| n > 0)
            };
            if given && !there {
                errors.push(wrong(
                    node,
                    attribute,
                    format!("`{attribute}` needs {element}, which the system does not have"),
                    format!("add {element}, or leave it out"),
                ));
            }
        }
        if let (Some(slot), Some(overhead)) = (share.slot, system.tdma)
            && slot <= overhead
        {
            errors.push(wrong(
                node,
                "slot",
                format!("a slot of {slot} is not longer than its overhead of {overhead}"),
                format!("write more than {overhead}"),
            ));
        }
    }
}

fn tables(system: &TaskSystem, places: &Places<'_>, errors: &mut Vec<Diagnostic>) {
    let mut seen = BTreeSet::new();
    for (table, node) in system.tables.iter().zip(&places.tables) {
        core_exists(system, table.core, node, errors);
        if !matches!(system.policy, Policy::Table | Policy::Mc2) {
            errors.push(Diagnostic::new(
                Problem::Inconsistent(format!("policy `{}` has no tables", system.policy.word())),
                &node.span,
                "remove it, or use the policy `table`",
            ));
        }
        if !seen.insert(table.core) {
            errors.push(wrong(
                node,
                "core",
                format!("processor {} has two tables", table.core),
                "keep one of them",
            ));
        }
        let mut free = Time(0);
        for (slot, element) in table.slots.iter().zip(node.all("slot")) {
            let end = Time(slot.start.0.saturating_add(slot.length.0));
            if slot.start < free {
                errors.push(wrong(
                    element,
                    "start",
                    format!(
                        "the slot at {} begins before the previous slot ends at {free}",
                        slot.start
                    ),
                    "write slots in the order of time, without overlaps",
                ));
            } else if end > table.length {
                errors.push(wrong(
                    element,
                    "length",
                    format!(
                        "the slot ends at {end}, after the end of the table at {}",
                        table.length
                    ),
                    "shorten it, or write its rest at the start of the table",
                ));
            }
            free = free.max(end);
            let task = &system.tasks[slot.task];
            if task.core != Some(table.core) {
                let known: Vec<&str> = system
                    .tasks
                    .iter()
                    .filter(|t| t.core == Some(table.core))
                    .map(|t| t.name.as_str())
                    .collect();
                errors.push(wrong(
                    element,
                    "task",
                    format!("`{}` is not on processor {}", task.name, table.core),
                    suggestion(&task.name, &known, "task of the processor"),
                ));
            }
        }
        for (task, element) in system.tasks.iter().zip(&places.tasks) {
            let in_table = system.policy == Policy::Table || task.criticality == 'A';
            if task.core == Some(table.core)
                && in_table
                && !table.length.0.is_multiple_of(task.period.0)
            {
                errors.push(wrong(
                    node,
                    "length",
                    format!(
                        "a table of {} is not a multiple of the period {} of `{}`",
                        table.length, task.period, task.name
                    ),
                    format!(
                        "a table repeats, so its length must be a multiple of every period; see {}",
                        element.place("period").place()
                    ),
                ));
            }
        }
    }
}
