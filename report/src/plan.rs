//! Plans and verdicts as text.
//!
//! Why it exists: a reader understands one table at a glance: the task, its worst case, its limit, and the difference. What it
//! deliberately does not know: how bounds are computed; colours of a terminal.

use super::table::{Grid, plain, render};
use super::verdict::{Judgement, Outcome, Promise, Verdict};
use bulkhead_analysis::plan::repair::{Number, Repair, without_time};
use bulkhead_analysis::plan::system::complete::{Run, SystemPlan, SystemRepair};
use bulkhead_analysis::plan::{Constraint, Kind, Plan, Unit};
use bulkhead_model::system::priority_of_tile;
use bulkhead_model::tasks::{Policy, TaskSystem};
use bulkhead_model::units::{Rate, Size, Time, in_largest_unit};
use std::fmt::Write;

fn model_time(time_of: Time) -> String {
    in_largest_unit(time_of.nanoseconds())
}

/// A number with its unit.
pub fn value(number: u64, unit: Unit) -> String {
    match unit {
        Unit::Nanoseconds => in_largest_unit(number),
        Unit::Millionths => {
            let digits = format!("{}.{:04}", number / 10_000, number % 10_000);
            format!("{} %", digits.trim_end_matches('0').trim_end_matches('.'))
        }
        Unit::Count => number.to_string(),
        Unit::Bytes => Size(number).to_string(),
        Unit::BytesPerSecond => Rate(number).to_string(),
    }
}

/// The subject of a constraint, in words.
pub fn noun(kind: Kind) -> &'static str {
    match kind {
        Kind::Response => "response",
        Kind::Tardiness => "tardiness",
        Kind::Capacity => "capacity",
        Kind::Ways => "cache ways",
        Kind::Colours => "cache colours",
        Kind::Banks => "memory banks",
        Kind::Budget => "memory accesses",
        Kind::Bandwidth => "bandwidth",
        Kind::Channel => "channel latency",
        Kind::Queue => "queue length",
        Kind::Buffer => "buffer",
        Kind::Flow => "flow latency",
        Kind::Quota => "quota",
        Kind::Section => "processors of a resource",
    }
}

/// One sentence on why a constraint fails, and by how much.
pub fn failure(constraint: &Constraint) -> String {
    let what = noun(constraint.kind);
    let subject = &constraint.subject;
    let note = constraint
        .note
        .as_ref()
        .map_or(String::new(), |note| format!(" ({note})"));
    match (constraint.bound, constraint.limit, constraint.excess()) {
        (Some(bound), Some(limit), Some(excess)) => format!(
            "{what} of {subject}: {} where {} is allowed, {} too much{note}",
            value(bound, constraint.unit),
            value(limit, constraint.unit),
            value(excess, constraint.unit)
        ),
        (Some(bound), ..) => format!(
            "{what} of {subject}: {}{note}",
            value(bound, constraint.unit)
        ),
        (None, Some(limit), _) => format!(
            "{what} of {subject}: no bound within {}{note}",
            value(limit, constraint.unit)
        ),
        (None, None, _) => format!("{what} of {subject}: there is no bound{note}"),
    }
}

/// Whether anything is required: for a channel or flow without a deadline, only a number is shown.
fn is_asked(constraint: &Constraint) -> bool {
    constraint.limit.is_some() || !matches!(constraint.kind, Kind::Channel | Kind::Flow)
}

/// A constraint as a promise of a run; `variant` is empty if there is only one.
fn promise(variant: &str, constraint: &Constraint) -> Promise {
    if constraint.judgement == Judgement::NotJudged {
        let what = format!("{} of {}", noun(constraint.kind), constraint.subject);
        return Promise::not_judged(variant, what, constraint.note.clone().unwrap_or_default());
    }
    let number = |number: Option<u64>| number.map(|number| value(number, constraint.unit));
    let what = match (number(constraint.bound), number(constraint.limit)) {
        _ if constraint.fails() => failure(constraint),
        (Some(bound), Some(limit)) => {
            let what = noun(constraint.kind);
            format!("{what} of {}: {bound} of {limit}", constraint.subject)
        }
        _ => format!("{} of {}", noun(constraint.kind), constraint.subject),
    };
    Promise::judged(variant, what, constraint.holds())
}

/// The verdict on a task system.
pub fn verdict(plan: &Plan) -> Verdict {
    let all = plan.constraints.iter().filter(|one| is_asked(one));
    all.map(|constraint| promise("", constraint)).collect()
}

/// The verdict on the runs of a system with a chip.
pub fn system_verdict(runs: &[Run]) -> Verdict {
    let of = |run: &Run| -> Vec<Promise> {
        let judged = run.verdict.all().map(|constraint| {
            promise(&run.variant, constraint).if_expected(run.is_expected(constraint))
        });
        let unjudged = run.verdict.unjudged.iter();
        let unjudged =
            unjudged.map(|one| Promise::not_judged(&run.variant, &one.what, &one.because));
        judged.chain(unjudged).collect()
    };
    runs.iter().flat_map(of).collect()
}

/// A machine-readable value: its own fields and its verdict.
///
/// # Errors
/// If it cannot be written as JSON.
pub fn with_verdict(
    value: &impl serde::Serialize,
    verdict: &Verdict,
) -> Result<serde_json::Value, crate::Error> {
    let mut value = serde_json::to_value(value).map_err(crate::Error::new)?;
    let kept = verdict.outcome();
    let verdict = serde_json::to_value(verdict).map_err(crate::Error::new)?;
    if let Some(fields) = value.as_object_mut() {
        // Neither true nor false if nothing was judged.
        if kept == Outcome::NothingJudged
            && let Some(word) = fields.get_mut("schedulable")
        {
            *word = serde_json::Value::Null;
        }
        fields.insert("verdict".to_owned(), verdict);
    }
    Ok(value)
}

fn or_dash(text: Option<String>) -> String {
    text.unwrap_or_else(|| "-".to_owned())
}

/// One line on a system.
pub fn heading(plan: &Plan) -> String {
    let system = &plan.system;
    let counted =
        |count: usize, what: &str| format!("{count} {what}{}", if count == 1 { "" } else { "s" });
    let verdict = verdict(plan);
    format!(
        "{}: {} on {}, {}: {}",
        system.name,
        counted(system.tasks.len(), "task"),
        counted(system.processors as usize, "processor"),
        system.policy.word(),
        match verdict.outcome() {
            Outcome::Held if verdict.counts().not_judged > 0 =>
                "schedulable as far as it was judged",
            Outcome::Held => "schedulable",
            Outcome::Failed => "not schedulable",
            Outcome::NothingJudged => "nothing was judged",
        }
    )
}

/// The tasks with their bounds.
pub fn tasks(plan: &Plan) -> String {
    task_grid(plan, |priority| priority).text()
}

/// The same as cells. `priority`: from a task's to the one that the description gives.
pub fn task_grid(plan: &Plan, priority: fn(u32) -> u32) -> Grid {
    let system = &plan.system;
    let levels = system.policy == Policy::Mc2;
    let mut headings = vec!["task"];
    if levels {
        headings.push("level");
    }
    if !system.policy.is_global() {
        headings.push("processor");
    }
    if system.policy.has_priorities() {
        headings.push("priority");
    }
    if system.policy == Policy::Threshold {
        headings.push("threshold");
    }
    headings.extend(["cost", "period", "deadline", "bound", "margin", "verdict"]);
    let judged = plan.constraints.iter().filter(|c| is_task(c));
    let rows = judged.filter_map(|constraint| {
        let index = system.task(&constraint.subject)?;
        Some((
            !constraint.fails(),
            row((system, index), constraint, levels, priority),
        ))
    });
    Grid {
        rows: rows.collect(),
        headings,
    }
}

fn is_task(constraint: &Constraint) -> bool {
    matches!(constraint.kind, Kind::Response | Kind::Tardiness)
}

fn row(
    (system, index): (&TaskSystem, usize),
    constraint: &Constraint,
    levels: bool,
    priority: fn(u32) -> u32,
) -> Vec<String> {
    let task = &system.tasks[index];
    let mut cells = vec![task.name.clone()];
    if levels {
        cells.push(task.criticality.to_string());
    }
    if !system.policy.is_global() {
        cells.push(or_dash(task.core.map(|core| core.to_string())));
    }
    if system.policy.has_priorities() {
        cells.push(or_dash(task.priority.map(|own| priority(own).to_string())));
    }
    if system.policy == Policy::Threshold {
        cells.push(or_dash(
            task.threshold.map(|threshold| threshold.to_string()),
        ));
    }
    let cost = bulkhead_analysis::plan::whole_cost(system, index);
    let late = constraint.kind == Kind::Tardiness;
    let bound = constraint.bound.map(|bound| {
        let text = value(bound, constraint.unit);
        if late { format!("+{text}") } else { text }
    });
    let margin = match (constraint.bound, constraint.limit) {
        (Some(bound), Some(limit)) if bound <= limit => Some(in_largest_unit(limit - bound)),
        (Some(bound), Some(limit)) => Some(format!("-{}", in_largest_unit(bound - limit))),
        _ => None,
    };
    cells.extend([
        or_dash(cost.map(in_largest_unit)),
        model_time(task.period),
        model_time(task.deadline),
        or_dash(bound),
        or_dash(margin),
        word(constraint).to_owned(),
    ]);
    cells
}

fn word(constraint: &Constraint) -> &'static str {
    match constraint.judgement {
        Judgement::Failed => "FAILS",
        Judgement::NotJudged => "not judged",
        Judgement::Held if is_asked(constraint) => "holds",
        Judgement::Held => "-",
    }
}

/// Everything but the tasks; empty if there is nothing else.
pub fn others(plan: &Plan) -> String {
    let grid = grid(plan.constraints.iter().filter(|c| !is_task(c)));
    if grid.rows.is_empty() {
        return String::new();
    }
    grid.text()
}

/// Constraints of any kind as cells.
pub fn grid<'a>(constraints: impl Iterator<Item = &'a Constraint>) -> Grid {
    let mut rows = Vec::new();
    for constraint in constraints {
        let text = |number: Option<u64>| or_dash(number.map(|n| value(n, constraint.unit)));
        let cells = vec![
            noun(constraint.kind).to_owned(),
            constraint.subject.clone(),
            text(constraint.bound),
            text(constraint.limit),
            word(constraint).to_owned(),
        ];
        rows.push((!constraint.fails(), cells));
    }
    Grid {
        headings: vec!["constraint", "of", "bound", "limit", "verdict"],
        rows,
    }
}

/// The open parameters and the decisions about them; empty if nothing was open.
pub fn choices(plan: &Plan) -> String {
    let mut out = String::new();
    for choice in &plan.choices {
        let _ = writeln!(out, "  {}: {}", choice.what, choice.how);
    }
    out
}

/// The failures; empty if there are none. At most 12 lines; the rest are counted.
pub fn failures(plan: &Plan) -> String {
    const SHOWN: usize = 12;
    let failed = plan.failures();
    let mut out = String::new();
    for constraint in failed.iter().take(SHOWN) {
        let _ = writeln!(out, "  {}", failure(constraint));
    }
    if failed.len() > SHOWN {
        let _ = writeln!(out, "  and {} more", failed.len() - SHOWN);
    }
    out
}

/// The whole text.
pub fn summary(plan: &Plan) -> String {
    let mut out = heading(plan);
    out.push_str("\n\n");
    out.push_str(&tasks(plan));
    let others = others(plan);
    if !others.is_empty() {
        let _ = write!(out, "\n{others}");
    }
    let choices = choices(plan);
    if !choices.is_empty() {
        let _ = write!(out, "\nOpen in the description, and chosen:\n{choices}");
    }
    for note in &plan.notes {
        let _ = write!(out, "\nNote: {note}\n");
    }
    let failures = failures(plan);
    if !failures.is_empty() {
        let _ = write!(out, "\nWhat fails:\n{failures}");
    }
    let unjudged = verdict(plan).unjudged();
    if !unjudged.is_empty() {
        out.push_str("\nNot judged:\n");
        for line in unjudged {
            let _ = writeln!(out, "  {line}");
        }
    }
    out
}

/// Repairs of a system; empty if none is known.
pub fn repairs(repairs: &[Repair]) -> String {
    const SHOWN: usize = 8;
    let mut out = String::new();
    // More processors and less work for all tasks are large changes, but every reader wants to know them.
    let first = repairs.iter().take(SHOWN);
    let shown: Vec<&Repair> = first
        .chain(
            repairs
                .iter()
                .skip(SHOWN)
                .filter(|r| matches!(r.number, Number::Processors | Number::AllCosts)),
        )
        .collect();
    for repair in &shown {
        let what = match repair.number {
            Number::Cost | Number::Estimate => "cost of ",
            Number::AllCosts => "cost of every task",
            Number::Period => "period of ",
            Number::Deadline | Number::ChannelDeadline | Number::FlowDeadline => "deadline of ",
            Number::Tardiness => "tardiness allowed to ",
            Number::Processors => "processors",
            Number::QueueSlots => "slots of ",
            Number::Buffer => "buffer of ",
            Number::Bandwidth => "bandwidth of ",
            Number::Ways => "ways of ",
            Number::Colours => "colours of ",
            Number::Banks => "banks of ",
            Number::Accesses => "memory accesses of ",
            Number::Jitter => "jitter of ",
            Number::Sections => "sections of ",
            Number::Load => "load of ",
            Number::Unload => "unload of ",
            Number::Slot => "slot of ",
            Number::Overhead => "overhead ",
        };
        let direction = if repair.to < repair.from {
            "less"
        } else {
            "more"
        };
        // A percentage with two digits after the point, rounded up like the change.
        let hundredths = repair.relative.div_ceil(100);
        let share = format!("{}.{:02} % {direction}", hundredths / 100, hundredths % 100);
        let anew = if repair.anew {
            ", with tasks placed anew"
        } else {
            ""
        };
        let deadline = if repair.with_deadline {
            " (and its deadline, where the file gives it)"
        } else {
            ""
        };
        let _ = writeln!(
            out,
            "  {what}{}{deadline}: {} instead of {} ({share}){anew}",
            repair.subject,
            value(repair.to, repair.unit),
            value(repair.from, repair.unit),
        );
    }
    if repairs.len() > shown.len() {
        let _ = writeln!(out, "  and {} more", repairs.len() - shown.len());
    }
    out
}

/// The whole text of a check: a plan and its repairs.
pub fn judged(plan: &Plan, found: &[Repair]) -> String {
    let mut out = summary(plan);
    if plan.schedulable {
        return out;
    }
    let text = repairs(found);
    let timeless = without_time(&plan.system);
    out.push_str(&if !timeless.is_empty() {
        beyond_repair(&timeless)
    } else if text.is_empty() {
        "\nNo single change within the search limits repairs it.\n".to_owned()
    } else {
        "\nSingle changes that repair it, smallest first:\n".to_owned()
    });
    out.push_str(&text);
    out
}

/// Why no number of a task repairs it, if something else leaves these no time.
fn beyond_repair(timeless: &[&str]) -> String {
    format!(
        "\nNo other number of a task repairs it, because something else leaves {} no time, as said above.\n",
        timeless.join(", ")
    )
}

/// One run of a system: tasks by tile, and flows. The verdict has what fails and what was not judged.
pub fn run(run: &Run) -> String {
    let mut out = String::new();
    let verdict = &run.verdict;
    for plan in &verdict.tasks {
        let _ = write!(
            out,
            "\nTasks of variant {}, tiles with {}, memory interference as included in their costs:\n{}",
            run.variant,
            plan.system.policy.word(),
            task_grid(plan, priority_of_tile).text()
        );
    }
    let mut table = plain(&["flow", "bound", "deadline", "verdict"]);
    let mut any = false;
    for constraint in verdict.constraints.iter().filter(|c| c.kind == Kind::Flow) {
        any = true;
        table.add_row(vec![
            constraint.subject.clone(),
            or_dash(constraint.bound.map(in_largest_unit)),
            or_dash(constraint.limit.map(in_largest_unit)),
            word(constraint).to_owned(),
        ]);
    }
    if any {
        let _ = write!(
            out,
            "\nFlows of variant {}, with jobs as described:\n{}",
            run.variant,
            render(&table)
        );
    }
    out
}

/// Repairs of a system.
pub fn system_repairs(repairs: &[SystemRepair]) -> String {
    const SHOWN: usize = 8;
    if repairs.is_empty() {
        return "\nNo single change within the search limits repairs it.\n".to_owned();
    }
    let mut out = String::from("\nSingle changes that repair it, smallest first:\n");
    for repair in repairs.iter().take(SHOWN) {
        let hundredths = repair.relative.div_ceil(100);
        let _ = writeln!(
            out,
            "  --set '{}' instead of {} ({}.{:02} %)",
            repair.set,
            repair.from,
            hundredths / 100,
            hundredths % 100
        );
    }
    if repairs.len() > SHOWN {
        let _ = writeln!(out, "  and {} more", repairs.len() - SHOWN);
    }
    out
}

/// The whole text of a system's plan.
pub fn system(plan: &SystemPlan) -> String {
    let mut out = format!("{}\n{}", plan.system, system_verdict(&plan.runs).head(&[]));
    for one in &plan.runs {
        out.push_str(&run(one));
        out.push_str(&quotas(one));
    }
    if !plan.choices.is_empty() {
        out.push_str("\nOpen in the description, and chosen:\n");
        for choice in &plan.choices {
            let _ = writeln!(out, "  {}: {}", choice.what, choice.how);
        }
    }
    let mut assumptions: Vec<&String> = plan
        .runs
        .iter()
        .flat_map(|run| &run.verdict.assumptions)
        .collect();
    assumptions.sort();
    assumptions.dedup();
    if !assumptions.is_empty() {
        out.push_str("\nBounds of flows assume:\n");
        for one in assumptions {
            let _ = writeln!(out, "  {one}");
        }
    }
    out
}

/// Quotas of tiles with fixed priorities.
fn quotas(run: &Run) -> String {
    let mut table = plain(&[
        "application",
        "its quota is delivered within",
        "deadline",
        "verdict",
    ]);
    let quotas = run.verdict.constraints.iter();
    let quotas: Vec<&Constraint> = quotas.filter(|c| c.kind == Kind::Quota).collect();
    for constraint in &quotas {
        table.add_row(vec![
            constraint.subject.clone(),
            or_dash(constraint.bound.map(in_largest_unit)),
            or_dash(constraint.limit.map(in_largest_unit)),
            word(constraint).to_owned(),
        ]);
    }
    if quotas.is_empty() {
        return String::new();
    }
    format!(
        "\nQuotas of variant {} on tiles with fixed priorities, switches included:\n{}",
        run.variant,
        render(&table)
    )
}
