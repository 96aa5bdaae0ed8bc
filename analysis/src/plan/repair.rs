//! The smallest changes that make a failing system pass.
//!
//! Why it exists: "not schedulable" helps no one. What it deliberately does not know: how a verdict is reached; it changes one number of
//! the description, plans again, and finds the smallest change by bisection.
//!
//! A change is first searched with everything decided as in the failing plan, which is fast, and then judged on the original description,
//! where open choices are made again. Each reported change makes the system pass, and one unit less does not (both are planned again to
//! make sure).

use std::cell::Cell;
use std::collections::BTreeSet;

use bulkhead_model::tasks::{CostPoint, Policy, Share, Task, TaskSystem, Unbounded};
use bulkhead_model::units::{Rate, Size, Time};
use serde::Serialize;

use super::prepare::nanoseconds;
use super::{Constraint, Kind, NANOSECONDS_MAX, Plan, Unit, plan};

/// Tasks whose numbers are tried.
const TASKS: usize = 6;
/// The same for large systems.
const TASKS_OF_MANY: usize = 2;
/// From this number of tasks on, a system is large.
const MANY: usize = 64;
/// Periods are extended to at most this multiple of their length.
const PERIOD_FACTOR: u64 = 64;
/// Maximum processors added.
const MORE_PROCESSORS: u32 = 8;

/// Maximum periods that are tried individually because they fit those of level A.
const MULTIPLES: usize = 64;

/// Plans made for one search in total, so that a hopeless system does not take forever. A plan with open choices counts as three or ten,
/// and one of a large system counts more.
const EFFORT: u64 = 6000;

/// The effort that is left.
struct Effort {
    left: Cell<u64>,
    weight: u64,
}

impl Effort {
    fn of(system: &TaskSystem) -> Self {
        Self {
            left: Cell::new(EFFORT),
            weight: (1 + (system.tasks.len() as u64).pow(2) / 1024)
                * match system.policy {
                    // A plan takes milliseconds, because the windows of each job carry in jobs of all others.
                    Policy::GlobalFixedPriority => 3,
                    _ => 1,
                },
        }
    }

    /// Plans `system`; `None` if no effort is left.
    fn holds(&self, system: &TaskSystem, plans: u64) -> Option<bool> {
        let left = self.left.get().checked_sub(plans * self.weight)?;
        self.left.set(left);
        Some(plan(system).is_ok_and(|plan| plan.schedulable))
    }
}

/// The number of a description that a change is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Number {
    /// Cost of a task: every estimate above the new value is lowered to it.
    Cost,
    /// The cost assumed by one of the levels below a task's own (`TASK at level C`): every such estimate above the new value is lowered to
    /// it, and those of the other levels stay.
    Estimate,
    /// Costs of all tasks including their sections and memory phases, in millionths of the current values, rounded down.
    AllCosts,
    /// Period of a task; an implicit deadline moves with it.
    Period,
    /// Deadline of a task.
    Deadline,
    /// Tardiness that a task may have.
    Tardiness,
    /// Processors.
    Processors,
    /// Deadline of a channel.
    ChannelDeadline,
    /// Slots of a queue.
    QueueSlots,
    /// Deadline of a flow.
    FlowDeadline,
    /// Buffer of a device.
    Buffer,
    /// Bandwidth of the memory.
    Bandwidth,
    /// Ways of the last-level cache.
    Ways,
    /// Colours of the last-level cache.
    Colours,
    /// Banks of the memory.
    Banks,
    /// Memory accesses of all processors in a period.
    Accesses,
    /// Release jitter of a task.
    Jitter,
    /// Sections of a task: every one above the new value is shortened to it.
    Sections,
    /// Copy-in phase of a task.
    Load,
    /// Copy-out phase of a task.
    Unload,
    /// Slot of a processor at the DMA engine.
    Slot,
    /// An overhead of the kernel: `schedule`, `release` or `interrupt`.
    Overhead,
}

/// The text between a task and the level of an estimate.
const AT_LEVEL: &str = " at level ";

/// The task and the level of an estimate.
fn estimate(system: &TaskSystem, subject: &str) -> Option<(usize, char)> {
    let (name, level) = subject.rsplit_once(AT_LEVEL)?;
    Some((system.task(name)?, level.chars().next()?))
}

/// The overheads by name.
const OVERHEADS: [&str; 3] = ["schedule", "release", "interrupt"];

/// An overhead by its number in [`OVERHEADS`].
fn overhead(system: &mut TaskSystem, index: usize) -> &mut Time {
    match index {
        0 => &mut system.overheads.schedule,
        1 => &mut system.overheads.release,
        _ => &mut system.overheads.interrupt,
    }
}

/// A change that makes the system pass.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Repair {
    /// Which number.
    pub number: Number,
    /// The subject; empty for the system itself.
    pub subject: String,
    /// Its value now.
    pub from: u64,
    /// The value nearest to the current one with which everything holds.
    pub to: u64,
    /// The unit of both.
    pub unit: Unit,
    /// Size of the change in millionths of the current value, rounded up.
    pub relative: u64,
    /// The deadline equals the period and moves with it; if the file gives it, both must be changed.
    pub with_deadline: bool,
    /// Processors, priorities and shares were chosen again, even where the description gives them.
    pub anew: bool,
}

/// A number that can be changed, with the value beyond which it is not changed.
#[derive(Clone, Debug)]
struct Knob {
    number: Number,
    /// Index in the list that `number` belongs to.
    index: usize,
    subject: String,
    from: u64,
    extreme: u64,
    unit: Unit,
}

/// The tasks that what the description states leaves no time for, by name. They miss whatever they promise, and no other number of a task is at fault.
pub fn without_time(system: &TaskSystem) -> Vec<&str> {
    let all = system.tasks.iter();
    all.filter(|task| matches!(task.unbounded, Some(Unbounded::Overloaded(_))))
        .map(|task| task.name.as_str())
        .collect()
}

/// Changes that repair `system`, whose plan is `failing`, the relatively smallest first. Empty if the system holds, or if no single change
/// within reason helps: beside tasks [`without_time`], none does.
pub fn repairs(system: &TaskSystem, failing: &Plan) -> Vec<Repair> {
    if failing.schedulable || !without_time(system).is_empty() {
        return Vec::new();
    }
    let effort = Effort::of(system);
    let mut all: Vec<Repair> = knobs(system, failing)
        .iter()
        .filter_map(|knob| search(system, &failing.system, knob, &effort))
        .collect();
    all.sort_by(|a, b| (a.relative, a.number, &a.subject).cmp(&(b.relative, b.number, &b.subject)));
    all
}

/// Tasks involved in a failure, the failing ones first, then by load.
fn suspects(system: &TaskSystem, failing: &Plan) -> Vec<usize> {
    let decided = &failing.system;
    let failed: Vec<&Constraint> = failing.constraints.iter().filter(|c| c.fails()).collect();
    let is_failing = |index: usize| {
        let name = &decided.tasks[index].name;
        failed
            .iter()
            .any(|c| matches!(c.kind, Kind::Response | Kind::Tardiness) && c.subject == *name)
    };
    let load = |index: usize| {
        let cost = super::whole_cost(decided, index).unwrap_or(u64::MAX);
        u128::from(cost) * 1_000_000 / u128::from(nanoseconds(decided.tasks[index].period).max(1))
    };
    let mut cores: Vec<Option<u32>> = Vec::new();
    for (index, task) in decided.tasks.iter().enumerate() {
        if is_failing(index) {
            cores.push(task.core);
        }
    }
    let mut all: Vec<usize> = (0..system.tasks.len())
        .filter(|&index| {
            let task = &decided.tasks[index];
            task.criticality < 'D' || decided.policy != Policy::Mc2
        })
        .collect();
    all.sort_by_key(|&index| {
        let near = cores.contains(&decided.tasks[index].core);
        (
            !is_failing(index),
            !near,
            std::cmp::Reverse(load(index)),
            index,
        )
    });
    all.truncate(if system.tasks.len() > MANY {
        TASKS_OF_MANY
    } else {
        TASKS
    });
    all
}

fn knobs(system: &TaskSystem, failing: &Plan) -> Vec<Knob> {
    let mut all = Vec::new();
    all.push(Knob {
        number: Number::AllCosts,
        index: 0,
        subject: String::new(),
        from: 1_000_000,
        extreme: 1,
        unit: Unit::Millionths,
    });
    let count = system.processors;
    if count < 1024 && system.policy != Policy::TimeSlice {
        all.push(Knob {
            number: Number::Processors,
            index: 0,
            subject: String::new(),
            from: count.into(),
            extreme: count.saturating_add(MORE_PROCESSORS).min(1024).into(),
            unit: Unit::Count,
        });
    }
    let failed = |kind: Kind, subject: &str| {
        failing
            .constraints
            .iter()
            .find(|c| c.fails() && c.kind == kind && c.subject == subject)
    };
    for index in suspects(system, failing) {
        let task = &system.tasks[index];
        let knob = |number, from: u64, extreme: u64| Knob {
            number,
            index,
            subject: task.name.clone(),
            from,
            extreme,
            unit: Unit::Nanoseconds,
        };
        if let Some(cost) = super::prepare::cost(&failing.system, index, task.criticality) {
            // Sections and phases are part of the cost.
            let sections = task.sections.iter().map(|s| s.length);
            let least = sections.chain([task.memory_phase]).max().unwrap_or(Time(0));
            all.push(knob(Number::Cost, cost, nanoseconds(least).max(1)));
        }
        all.extend(estimates(&failing.system, index));
        // Another period has another hyperperiod; a given table would no longer fit.
        let table = system.policy == Policy::Table
            || (system.policy == Policy::Mc2 && task.criticality == 'A');
        if !table {
            let period = nanoseconds(task.period);
            let extreme = period.saturating_mul(PERIOD_FACTOR).min(NANOSECONDS_MAX);
            all.push(knob(Number::Period, period, extreme));
        }
        all.extend(parts(task, &knob));
        let fails = failed(Kind::Response, &task.name);
        if fails.is_some() && system.policy != Policy::Mc2 {
            let beyond = matches!(
                system.policy,
                Policy::FixedPriority
                    | Policy::RateMonotonic
                    | Policy::Threshold
                    | Policy::NonPreemptive
                    | Policy::OneShot
                    | Policy::Edf
            ) && system.mutex.is_none()
                && system.memguard.is_none();
            let deadline = nanoseconds(task.deadline);
            let period = nanoseconds(task.period);
            let extreme = if beyond {
                period.saturating_mul(PERIOD_FACTOR).min(NANOSECONDS_MAX)
            } else {
                period
            };
            all.push(knob(Number::Deadline, deadline, extreme));
        }
        if let Some(bound) = failed(Kind::Tardiness, &task.name).and_then(|c| c.bound) {
            all.push(knob(Number::Tardiness, nanoseconds(task.tardiness), bound));
        }
    }
    for constraint in failing.constraints.iter().filter(|c| c.fails()) {
        all.extend(other_knob(system, constraint));
    }
    all.extend(kernel_and_slots(&failing.system));
    all.retain(|knob| knob.from != knob.extreme);
    all
}

/// Estimates of a task's cost by the levels below its own, if the description distinguishes levels.
fn estimates(decided: &TaskSystem, index: usize) -> Vec<Knob> {
    let task = &decided.tasks[index];
    if decided.policy != Policy::Mc2 || task.costs.iter().all(|point| point.level.is_none()) {
        return Vec::new();
    }
    let levels = ('A'..='C').filter(|&level| level > task.criticality);
    let knob = |level: char| {
        Some(Knob {
            number: Number::Estimate,
            index,
            subject: format!("{}{AT_LEVEL}{level}", task.name),
            from: super::prepare::cost(decided, index, level)?,
            extreme: 1,
            unit: Unit::Nanoseconds,
        })
    };
    levels.filter_map(knob).collect()
}

/// The parts of a task that may be shortened besides its cost.
fn parts(task: &Task, knob: &impl Fn(Number, u64, u64) -> Knob) -> Vec<Knob> {
    let longest = task.sections.iter().map(|s| s.length).max();
    let all = [
        (Number::Jitter, Some(task.jitter), 0),
        (Number::Sections, longest, 1),
        (Number::Load, Some(task.load), 0),
        (Number::Unload, Some(task.unload), 0),
    ];
    all.into_iter()
        .filter_map(|(number, now, least)| Some((number, nanoseconds(now?), least)))
        .filter(|&(_, now, least)| now > least)
        .map(|(number, now, least)| knob(number, now, least))
        .collect()
}

/// Overheads of the kernel, and slots of the DMA engine, which may be too short for their processor or too long for the others.
fn kernel_and_slots(decided: &TaskSystem) -> Vec<Knob> {
    let mut copy = decided.clone();
    let mut all = Vec::new();
    for (index, name) in OVERHEADS.iter().enumerate() {
        let from = nanoseconds(*overhead(&mut copy, index));
        all.push(Knob {
            number: Number::Overhead,
            index,
            subject: (*name).to_owned(),
            from,
            extreme: 0,
            unit: Unit::Nanoseconds,
        });
    }
    let Some(each) = decided.tdma.map(nanoseconds) else {
        return all;
    };
    let transfers = decided.tasks.iter().flat_map(|t| [t.load, t.unload]);
    let longest = nanoseconds(transfers.max().unwrap_or(Time(0)));
    for share in &decided.shares {
        let (Some(core), Some(slot)) = (share.core, share.slot) else {
            continue;
        };
        let from = nanoseconds(slot);
        let shorter = (each + 1).min(from);
        let longer = each.saturating_add(longest).max(from);
        for extreme in [shorter, longer] {
            all.push(Knob {
                number: Number::Slot,
                index: core as usize,
                subject: format!("processor {core}"),
                from,
                extreme,
                unit: Unit::Nanoseconds,
            });
        }
    }
    all
}

/// The limit of a failing constraint that belongs to no task, as a number to be raised to its bound.
fn other_knob(system: &TaskSystem, constraint: &Constraint) -> Option<Knob> {
    let subject = &constraint.subject;
    let (number, index) = match constraint.kind {
        Kind::Channel => (
            Number::ChannelDeadline,
            system.channels.iter().position(|c| c.name == *subject)?,
        ),
        Kind::Queue => (
            Number::QueueSlots,
            system.channels.iter().position(|c| c.name == *subject)?,
        ),
        Kind::Flow => (
            Number::FlowDeadline,
            system.flows.iter().position(|f| f.name == *subject)?,
        ),
        Kind::Buffer => (
            Number::Buffer,
            system.devices.iter().position(|d| d.name == *subject)?,
        ),
        Kind::Bandwidth => (Number::Bandwidth, 0),
        Kind::Ways => (Number::Ways, 0),
        Kind::Colours if subject == "last-level cache" => (Number::Colours, 0),
        Kind::Banks => (Number::Banks, 0),
        Kind::Budget => (Number::Accesses, 0),
        _ => return None,
    };
    Some(Knob {
        number,
        index,
        subject: subject.clone(),
        from: constraint.limit?,
        extreme: constraint.bound?,
        unit: constraint.unit,
    })
}

/// `system` with another value of the number. The second result is true if given values are open again.
fn changed(system: &TaskSystem, knob: &Knob, value: u64) -> (TaskSystem, bool) {
    let mut system = system.clone();
    let mut anew = false;
    let time = super::prepare::time(value);
    let small = u32::try_from(value).unwrap_or(u32::MAX);
    let index = knob.index;
    match knob.number {
        Number::Cost => {
            let task = &mut system.tasks[index];
            task.cost = task.cost.map(|cost| cost.min(time));
            for point in &mut task.costs {
                point.time = point.time.min(time);
            }
        }
        Number::Estimate => {
            if let Some((index, level)) = estimate(&system, &knob.subject) {
                lower(&mut system.tasks[index], level, time);
            }
        }
        Number::AllCosts => {
            let scaled = |time: &mut Time| {
                let whole = u128::from(nanoseconds(*time)) * u128::from(value) / 1_000_000;
                // A time that is not zero stays nonzero.
                let least = u64::from(time.0 > 0);
                *time = super::prepare::time(u64::try_from(whole).unwrap_or(u64::MAX).max(least));
            };
            for task in &mut system.tasks {
                task.cost.iter_mut().for_each(scaled);
                task.costs
                    .iter_mut()
                    .for_each(|point| scaled(&mut point.time));
                task.sections
                    .iter_mut()
                    .for_each(|section| scaled(&mut section.length));
                scaled(&mut task.memory_phase);
            }
        }
        Number::Period => {
            let task = &mut system.tasks[index];
            if task.deadline == task.period {
                task.deadline = time;
            }
            task.period = time;
        }
        Number::Deadline => system.tasks[index].deadline = time,
        Number::Tardiness => system.tasks[index].tardiness = time,
        Number::Processors => {
            system.processors = small;
            anew = !system.policy.is_global() && system.tasks.iter().any(|t| t.core.is_some());
            if anew {
                for task in &mut system.tasks {
                    (task.core, task.priority, task.threshold) = (None, None, None);
                }
                system.shares.clear();
                system.tables.clear();
            }
        }
        Number::ChannelDeadline => system.channels[index].deadline = Some(time),
        Number::QueueSlots => system.channels[index].slots = small,
        Number::FlowDeadline => system.flows[index].deadline = Some(time),
        Number::Buffer => system.devices[index].buffer = Some(Size(value)),
        Number::Bandwidth => {
            if let Some(ram) = &mut system.ram {
                ram.bandwidth = Some(Rate(value));
            }
        }
        Number::Banks => {
            if let Some(ram) = &mut system.ram {
                ram.banks = small;
            }
        }
        Number::Ways => {
            if let Some(llc) = &mut system.llc {
                llc.ways = small;
            }
        }
        Number::Colours => {
            if let Some(llc) = &mut system.llc {
                llc.colours = small;
            }
        }
        Number::Accesses => {
            if let Some(guard) = &mut system.memguard {
                guard.accesses = Some(value);
            }
        }
        Number::Jitter => system.tasks[index].jitter = time,
        Number::Sections => {
            for section in &mut system.tasks[index].sections {
                section.length = section.length.min(time);
            }
        }
        Number::Load => system.tasks[index].load = time,
        Number::Unload => system.tasks[index].unload = time,
        Number::Slot => {
            let core = u32::try_from(index).ok();
            match system.shares.iter_mut().find(|share| share.core == core) {
                Some(share) => share.slot = Some(time),
                None => system.shares.push(Share {
                    core,
                    slot: Some(time),
                    ..Share::default()
                }),
            }
        }
        Number::Overhead => *overhead(&mut system, index) = time,
    }
    (system, anew)
}

/// Lowers the cost of a task assumed by `level`. A level without its own estimates gets copies of those that it uses.
fn lower(task: &mut Task, level: char, most: Time) {
    let named = |wanted: Option<char>| move |point: &&CostPoint| point.level == wanted;
    if !task.costs.iter().any(|point| point.level == Some(level)) {
        let for_all: Vec<CostPoint> = task.costs.iter().filter(named(None)).copied().collect();
        let whole = task.cost.filter(|_| for_all.is_empty());
        let whole = whole.map(|time| CostPoint {
            level: None,
            ways: None,
            time,
        });
        let copies = for_all.into_iter().chain(whole);
        task.costs.extend(copies.map(|point| CostPoint {
            level: Some(level),
            ..point
        }));
    }
    for point in task.costs.iter_mut().filter(|p| p.level == Some(level)) {
        point.time = point.time.min(most);
    }
}

/// The passing value between `from` (which fails) and `extreme` (which passes) that is nearest to `from`, as far as bisection can tell: its
/// neighbour towards `from` fails. `None`: the effort is used up.
fn nearest(from: u64, extreme: u64, passes: impl Fn(u64) -> Option<bool>) -> Option<u64> {
    let (mut bad, mut good) = (from, extreme);
    while bad.abs_diff(good) > 1 {
        let middle = bad.min(good) + bad.abs_diff(good) / 2;
        if passes(middle)? {
            good = middle;
        } else {
            bad = middle;
        }
    }
    Some(good)
}

/// Where a search stops on its way from `from` to the extreme: where priorities by period change, a longer period may make things worse.
fn stops(system: &TaskSystem, knob: &Knob) -> Vec<u64> {
    let level = |index: usize| system.tasks[index].criticality;
    let by_period = match system.policy {
        Policy::RateMonotonic => true,
        Policy::Mc2 => level(knob.index) == 'B',
        _ => false,
    };
    let mut all = Vec::new();
    if knob.number == Number::Period && by_period {
        let others = (0..system.tasks.len()).filter(|&other| {
            other != knob.index && (system.policy != Policy::Mc2 || level(other) == 'B')
        });
        let periods = others.map(|other| nanoseconds(system.tasks[other].period));
        all.extend(periods.flat_map(|period| [period.saturating_sub(1), period]));
        all.retain(|&stop| stop > knob.from && stop < knob.extreme);
        all.sort_unstable();
        all.dedup();
    }
    all.push(knob.extreme);
    all
}

/// Periods of a level-B task at which old jobs of level A cannot reach into its busy periods, so that they may pass where shorter and
/// longer ones do not: multiples of a period of level A, the shortest first.
fn multiples(system: &TaskSystem, knob: &Knob, end: u64) -> Vec<u64> {
    let of_b = knob.number == Number::Period && system.tasks[knob.index].criticality == 'B';
    if system.policy != Policy::Mc2 || !of_b {
        return Vec::new();
    }
    let above = system.tasks.iter().filter(|task| task.criticality == 'A');
    let each = above.flat_map(|task| {
        let period = nanoseconds(task.period).max(1);
        let first = knob.from / period + 1;
        (first..)
            .take(MULTIPLES)
            .map(move |n| n.saturating_mul(period))
    });
    let all: BTreeSet<u64> = each.filter(|&period| period < end).collect();
    all.into_iter().take(MULTIPLES).collect()
}

fn search(
    written: &TaskSystem,
    decided: &TaskSystem,
    knob: &Knob,
    effort: &Effort,
) -> Option<Repair> {
    let from = knob.from;
    let mut bad = from;
    let mut found = None;
    for stop in stops(written, knob) {
        found = within(written, decided, knob, (bad, stop), effort)?;
        if found.is_some() {
            break;
        }
        bad = stop;
    }
    for period in multiples(written, knob, found.unwrap_or(knob.extreme)) {
        if effort.holds(&changed(written, knob, period).0, plans(written))? {
            found = Some(period);
            break;
        }
    }
    found.map(|to| {
        let relative = u128::from(from.abs_diff(to)) * 1_000_000;
        Repair {
            number: knob.number,
            subject: knob.subject.clone(),
            from,
            to,
            unit: knob.unit,
            relative: u64::try_from(relative.div_ceil(u128::from(from.max(1)))).unwrap_or(u64::MAX),
            with_deadline: knob.number == Number::Period
                && written.tasks[knob.index].deadline == written.tasks[knob.index].period,
            anew: changed(written, knob, to).1,
        }
    })
}

/// How much a plan of the original description counts: every assignment is tried only for few tasks.
fn plans(written: &TaskSystem) -> u64 {
    if written.tasks.len() <= 12 { 10 } else { 3 }
}

/// The passing value nearest to `bad`, which fails, up to `end`. Inner `None`: `end` does not pass. Outer `None`: the effort is used up.
fn within(
    written: &TaskSystem,
    decided: &TaskSystem,
    knob: &Knob,
    (bad, end): (u64, u64),
    effort: &Effort,
) -> Option<Option<u64>> {
    let quickly = |value: u64| effort.holds(&changed(decided, knob, value).0, 1);
    let wholly = |value: u64| effort.holds(&changed(written, knob, value).0, plans(written));
    // More processors call for placements other than the chosen ones; for other changes those are a good start.
    let quick = knob.number != Number::Processors && quickly(end)?;
    let start = if quick {
        nearest(bad, end, quickly)?
    } else {
        end
    };
    if !wholly(start)? {
        return Some(None);
    }
    // Other choices may need less.
    let towards = if start > bad { start - 1 } else { start + 1 };
    let to = if towards != bad && wholly(towards)? {
        nearest(bad, towards, wholly)?
    } else {
        start
    };
    Some(Some(to))
}

/// `system` with a repair applied.
pub fn repaired(system: &TaskSystem, repair: &Repair, value: u64) -> Option<TaskSystem> {
    let named = |names: Vec<&String>| names.iter().position(|name| **name == repair.subject);
    let index = match repair.number {
        Number::Cost
        | Number::Period
        | Number::Deadline
        | Number::Tardiness
        | Number::Jitter
        | Number::Sections
        | Number::Load
        | Number::Unload => system.task(&repair.subject)?,
        Number::Estimate => estimate(system, &repair.subject)?.0,
        Number::Overhead => OVERHEADS.iter().position(|name| *name == repair.subject)?,
        Number::Slot => repair.subject.strip_prefix("processor ")?.parse().ok()?,
        Number::ChannelDeadline | Number::QueueSlots => {
            named(system.channels.iter().map(|c| &c.name).collect())?
        }
        Number::FlowDeadline => named(system.flows.iter().map(|f| &f.name).collect())?,
        Number::Buffer => named(system.devices.iter().map(|d| &d.name).collect())?,
        _ => 0,
    };
    let knob = Knob {
        number: repair.number,
        index,
        subject: repair.subject.clone(),
        from: repair.from,
        extreme: value,
        unit: repair.unit,
    };
    Some(changed(system, &knob, value).0)
}
