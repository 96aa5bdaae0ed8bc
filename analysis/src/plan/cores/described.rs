//! Plans of descriptions of the one-shot RTOS: what is open is chosen, written into the description, and judged.
//!
//! Why it exists: a plan is useful only if `check` and `run` read it and agree. What it deliberately does not know: how cores are searched.

use super::{Placement, Wish, place};
use crate::plan::files::planned as judged;
use crate::plan::one_shot::bounds;
use crate::plan::system::complete::completed_by;
use crate::plan::{InputError, Plan};
use bulkhead_model::{LoadOptions, Root, load_system, root};
use std::path::Path;

/// A system of the one-shot RTOS with everything decided.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Placed {
    /// Its tasks with their bounds, and what was chosen.
    pub plan: Plan,
    /// The choices, as changes of the description.
    pub set: Vec<String>,
}

/// Completes and judges a system from a file or a name of the catalog, with the changes `given`; `None` if it is not a one-shot RTOS
/// system.
///
/// # Errors
/// Whatever is wrong with it; [`InputError::Input`] if limits of cores or of variants do not hold, which no bound of a plan shows.
pub fn planned(path: &Path, given: &[String], wish: &Wish) -> Result<Option<Placed>, InputError> {
    let options = |set: &[String], open: bool| LoadOptions {
        overrides: given.iter().chain(set).cloned().collect(),
        open,
        ..LoadOptions::default()
    };
    if root(path, &options(&[], true)) != Root::OneShot {
        return Ok(None);
    }
    let system = load_system(path, &options(&[], true))?;
    let placement = place(&system, wish)?;
    let Some(one_shot) = &system.one_shot else {
        return Ok(None);
    };
    let mut set = Vec::new();
    for (index, task) in one_shot.tasks.tasks.iter().enumerate() {
        if task.core.is_none() {
            set.push(format!(
                "task[{}]@core={}",
                task.name, placement.cores[index]
            ));
        }
        if let Some(priorities) = &placement.priorities {
            set.push(format!(
                "task[{}]@priority={}",
                task.name, priorities[index]
            ));
        }
    }
    let loaded = load_system(path, &options(&set, false));
    let complete = match loaded {
        Ok(complete) => complete,
        // The search knows the limits of cores; everything else was wrong before.
        Err(_) if !placement.broken.is_empty() => return Err(no_room(&placement)),
        Err(errors) => return Err(errors.into()),
    };
    let Some(tasks) = &complete.one_shot else {
        return Ok(None);
    };
    let bounds = bounds(tasks, &complete.platform);
    let mut plan = judged(&bounds.tasks)?;
    if plan.schedulable && !placement.broken.is_empty() {
        return Err(no_room(&placement));
    }
    plan.choices = placement.choices.into_iter().chain(plan.choices).collect();
    plan.notes.push(bounds.beside());
    Ok(Some(Placed { plan, set }))
}

/// The description with what a plan chose.
///
/// # Errors
/// If a change given by the caller cannot be written into it, such as a change of a platform in the catalog.
pub fn completed(path: &Path, given: &[String], placed: &Placed) -> Result<String, InputError> {
    completed_by(path, given, &placed.set)
}

fn no_room(placement: &Placement) -> InputError {
    const SHOWN: usize = 6;
    let mut shown = placement.broken.clone();
    let more = shown.len().saturating_sub(SHOWN);
    shown.truncate(SHOWN);
    let more = match more {
        0 => String::new(),
        more => format!(", and {more} more"),
    };
    let tried = match placement.is_best {
        true => "no placement of the tasks holds",
        false => "no placement of the tasks that was tried holds",
    };
    InputError::new(
        format!("{tried}; the best one breaks: {}{more}", shown.join("; ")),
        "allow more cores, or give tasks less load, smaller items or longer deadlines",
    )
}
