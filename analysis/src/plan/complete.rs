//! Fills in what a description leaves open, and judges the whole.
//!
//! Why it exists: choices depend on each other: a task's processor on its cost, its cost on its ways, the ways on the other
//! tasks there. What it deliberately does not know: the individual searches; these are in `assign` and `divide`.
//!
//! Given values never change. Shares begin even; then processors, priorities, and finally the shares that matter are
//! searched. Several ways of placing tasks are tried in a fixed order. The first one with which everything holds is taken,
//! or, if there is none, the one with the fewest failures. A complete system plans to itself.

use bulkhead_model::tasks::{Policy, Slot, Table, TaskSystem};

use super::prepare::time;
use super::{Choice, Constraint, Plan, PlanError, assign, divide, evaluate, levels, notes, tables};
use crate::schedulability::partitioning::{Fit, Order};
use crate::schedulability::table;

/// Maximum tasks without a processor for which every assignment is tried.
const EXACT_TASKS: usize = 12;
/// Tasks above which only three ways of placing are tried.
const MANY_TASKS: usize = 100;
/// Completes and judges a system.
///
/// # Errors
/// [`PlanError`] if something is beyond what the policy's test covers.
pub fn plan(system: &TaskSystem) -> Result<Plan, PlanError> {
    let homeless = assign::homeless(system).len();
    if homeless == 0 {
        return complete(system.clone(), None);
    }
    let mut best: Option<Plan> = None;
    let mut consider = |plan: Plan| {
        let failures = |plan: &Plan| plan.constraints.iter().filter(|c| c.fails()).count();
        let better = best
            .as_ref()
            .is_none_or(|best| failures(&plan) < failures(best));
        if better {
            best = Some(plan);
        }
    };
    let ways: &[(Fit, Order, &str)] = &[
        (
            Fit::Worst,
            Order::DecreasingUtilisation,
            "worst fit, decreasing utilisation",
        ),
        (
            Fit::First,
            Order::DecreasingUtilisation,
            "first fit, decreasing utilisation",
        ),
        (
            Fit::Best,
            Order::DecreasingUtilisation,
            "best fit, decreasing utilisation",
        ),
        (
            Fit::First,
            Order::Given,
            "first fit in the order of the file",
        ),
        (
            Fit::Worst,
            Order::Given,
            "worst fit in the order of the file",
        ),
    ];
    let count = match system.processors {
        // There is one way only.
        1 => 1,
        _ if system.tasks.len() > MANY_TASKS => 3,
        _ => ways.len(),
    };
    for &(fit, order, name) in &ways[..count] {
        let plan = complete(system.clone(), Some(Placing::Fit(fit, order, name)))?;
        if plan.schedulable {
            return Ok(plan);
        }
        consider(plan);
    }
    if homeless <= EXACT_TASKS && system.processors > 1 {
        let plan = complete(system.clone(), Some(Placing::Exact))?;
        if plan.schedulable {
            return Ok(plan);
        }
    }
    best.ok_or_else(|| PlanError::Other("there is nothing to plan".to_owned()))
}

/// How tasks get processors.
#[derive(Clone, Copy)]
enum Placing {
    Fit(Fit, Order, &'static str),
    Exact,
}

fn complete(mut system: TaskSystem, placing: Option<Placing>) -> Result<Plan, PlanError> {
    let mut choices = Vec::new();
    let open = divide::even(&mut system);
    let choose =
        system.policy.has_priorities() && system.tasks.iter().any(|t| t.priority.is_none());
    if let Some(placing) = placing {
        place(&mut system, placing, choose, &mut choices)?;
    }
    if choose {
        choices.push(Choice {
            what: "priorities",
            how: priorities(&mut system)?,
        });
    } else if system.policy == Policy::Threshold
        && system.tasks.iter().any(|t| t.threshold.is_none())
    {
        thresholds(&mut system)?;
        choices.push(thresholds_chosen());
    }
    if choose && system.policy == Policy::Threshold {
        thresholds(&mut system)?;
        choices.push(thresholds_chosen());
    }
    divide::divide(&mut system, &open, &mut choices)?;
    fill_tables(&mut system, &mut choices)?;
    system
        .shares
        .sort_by_key(|share| (share.core.is_none(), share.core));
    let constraints = evaluate::constraints(&system)?;
    Ok(Plan {
        schedulable: !constraints.iter().any(Constraint::fails),
        notes: notes::notes(&system),
        system,
        choices,
        constraints,
    })
}

fn thresholds_chosen() -> Choice {
    Choice {
        what: "thresholds",
        how: "from the lowest priority up, then as few preemptions as deadlines allow".to_owned(),
    }
}

fn place(
    system: &mut TaskSystem,
    placing: Placing,
    choose: bool,
    choices: &mut Vec<Choice>,
) -> Result<(), PlanError> {
    let how = match placing {
        Placing::Fit(fit, order, name) => {
            let left = assign::place(system, fit, order, choose)?;
            let names: Vec<&str> = left
                .iter()
                .map(|&i| system.tasks[i].name.as_str())
                .collect();
            if names.is_empty() {
                name.to_owned()
            } else {
                let shown = names[..names.len().min(8)].join(", ");
                let more = if names.len() > 8 {
                    format!(" and {} more", names.len() - 8)
                } else {
                    String::new()
                };
                format!("{name}; no processor has room for {shown}{more}: put on the emptiest one")
            }
        }
        Placing::Exact => {
            if !assign::place_exactly(system, choose)? {
                assign::place(system, Fit::Worst, Order::DecreasingUtilisation, choose)?;
            }
            "by trying every assignment".to_owned()
        }
    };
    if system.processors > 1 {
        choices.push(Choice {
            what: "processors",
            how,
        });
    }
    Ok(())
}

fn priorities(system: &mut TaskSystem) -> Result<String, PlanError> {
    if system.policy.is_global() {
        let how = assign::global_priorities(system, |system| {
            Ok(!evaluate::constraints(system)?.iter().any(Constraint::fails))
        })?;
        return Ok(how.to_owned());
    }
    let mut ways: Vec<&str> = Vec::new();
    for (core, members) in evaluate::members(system) {
        ways.push(assign::priorities(system, core, &members)?);
    }
    ways.sort_unstable();
    ways.dedup();
    Ok(ways.join("; "))
}

/// Thresholds, if they are open.
fn thresholds(system: &mut TaskSystem) -> Result<(), PlanError> {
    for (core, members) in evaluate::members(system) {
        if !assign::thresholds(system, core, &members)? {
            for &index in &members {
                system.tasks[index].threshold = system.tasks[index].priority;
            }
        }
    }
    Ok(())
}

/// Tables for processors without one, under policies that run from tables.
fn fill_tables(system: &mut TaskSystem, choices: &mut Vec<Choice>) -> Result<(), PlanError> {
    let mut built = Vec::new();
    let mut too_long = false;
    for (core, members) in evaluate::members(system) {
        if system.tables.iter().any(|table| table.core == core) {
            continue;
        }
        let (members, tasks) = match system.policy {
            Policy::Table => match evaluate::prepared(system, &members)? {
                Some(tasks) => (members, tasks),
                None => continue,
            },
            Policy::Mc2 => match levels::table_tasks(system, core) {
                Some(found) => found,
                None => continue,
            },
            _ => return Ok(()),
        };
        if members.is_empty() {
            continue;
        }
        let first = tables::first_arrivals(system, &members);
        match tables::build_table(system, core, &tasks, &first) {
            Ok(found) => built.push(Table {
                core,
                length: time(found.length),
                slots: found
                    .slots
                    .iter()
                    .map(|slot| Slot {
                        task: members[slot.task],
                        start: time(slot.start),
                        length: time(slot.length),
                    })
                    .collect(),
            }),
            Err(table::TableError::TooLong) => too_long = true,
            Err(_) => {}
        }
    }
    if system.policy == Policy::Table && too_long {
        return Err(PlanError::Other(tables::too_long()));
    }
    if !built.is_empty() {
        choices.push(Choice {
            what: "tables",
            how: "earliest deadline first over the hyperperiod".to_owned(),
        });
    }
    system.tables.extend(built);
    system.tables.sort_by_key(|table| table.core);
    Ok(())
}
