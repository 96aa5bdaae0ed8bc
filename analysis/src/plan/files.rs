//! Task systems from files, and the questions asked of them.
//!
//! Why it exists: `check` and `plan` accept a task system, a system with tasks, or a task set of another tool, and treat
//! them alike. What it deliberately does not know: schedulability (`bulkhead_analysis`) and the terminal.

use crate::one_shot_clocks::{ClockBound, clock_bounds};
use crate::plan::{InputError, PlanError, exchange};
use bulkhead_model::tasks::{self, Policy, TaskSystem};
use bulkhead_model::units::{self, Dimension, Time};
use bulkhead_model::{LoadOptions, Root, load_system, load_tasks, root, task_system_names};
use serde::Serialize;
use std::path::Path;

use crate::plan::repair::{Repair, repairs};
use crate::plan::{Plan, plan};

/// How to interpret a task set that has no description.
#[derive(Clone, Debug, Default)]
pub struct Meaning {
    /// Its policy; fixed priorities by default.
    pub policy: Option<String>,
    /// Its processors.
    pub processors: Option<u32>,
    /// The meaning of 1 in the file; `1us` by default.
    pub unit: Option<String>,
    /// Which task set of the file, from 0.
    pub set: Option<usize>,
}

/// The meaning of 1 in formats without units.
///
/// # Errors
/// [`InputError::Input`] if it is not a time.
pub fn unit(text: Option<&str>) -> Result<Time, InputError> {
    let text = text.unwrap_or("1us");
    // `us` alone is as clear as `1us`.
    let counted = if text.starts_with(|c: char| c.is_ascii_digit()) {
        text.to_owned()
    } else {
        format!("1{text}")
    };
    match units::parse(&counted, Dimension::Time) {
        Ok(time) if time > 0 && time.is_multiple_of(1000) => Ok(Time(time)),
        _ => Err(InputError::new(
            format!("`{text}` is not a unit of time"),
            "write ns, us, ms or s, or a multiple such as 10us",
        )),
    }
}

/// The assumptions of a one-shot system's bounds besides its costs; nothing for other files.
///
/// # Errors
/// Whatever is wrong with the file.
pub fn assumed(path: &Path, set: &[String]) -> Result<Option<String>, InputError> {
    let options = LoadOptions::with_changes(set);
    if root(path, &options) != Root::OneShot {
        return Ok(None);
    }
    let system = load_system(path, &options)?;
    let one_shot = system.one_shot.as_ref();
    Ok(one_shot.map(|tasks| super::one_shot::bounds(tasks, &system.platform).beside()))
}

/// How wrong the clocks of a one-shot system may be, if its cores have timers of their own; nothing for other files.
///
/// # Errors
/// Whatever is wrong with the file.
pub fn clocks(path: &Path, set: &[String]) -> Result<Vec<ClockBound>, InputError> {
    let options = LoadOptions::with_changes(set);
    if root(path, &options) != Root::OneShot {
        return Ok(Vec::new());
    }
    let system = load_system(path, &options)?;
    let one_shot = system.one_shot.as_ref();
    Ok(one_shot.map_or(Vec::new(), |tasks| clock_bounds(tasks, &system.platform)))
}

/// The task system in a file or in the catalog; `None` if the file is not a task system.
///
/// # Errors
/// Whatever is wrong with it.
pub fn load(
    path: &Path,
    set: &[String],
    meaning: &Meaning,
) -> Result<Option<TaskSystem>, InputError> {
    let options = LoadOptions::with_changes(set);
    let policy = match &meaning.policy {
        None => None,
        Some(word) => Some(Policy::of_word(word).ok_or_else(|| {
            let known: Vec<&str> = Policy::ALL.iter().map(|entry| entry.0).collect();
            InputError::new(
                format!("there is no policy `{word}`"),
                format!("known: {}", known.join(", ")),
            )
        })?),
    };
    match root(path, &options) {
        Root::System => {
            // An unknown name could be meant as either.
            let name = path.display().to_string();
            let systems = bulkhead_model::system_names(&options);
            if !systems.contains(&name) && !path.is_file() && !name.ends_with(".xml") {
                return Err(unknown(&name, &systems));
            }
            Ok(None)
        }
        Root::OneShot => {
            let system = load_system(path, &options)?;
            let one_shot = system.one_shot.as_ref();
            Ok(one_shot.map(|tasks| super::one_shot::bounds(tasks, &system.platform).tasks))
        }
        Root::Platform => Err(InputError::new(
            format!(
                "{} is a platform, and nothing runs on it yet",
                path.display()
            ),
            "name a system or a task system; `bulkhead check` shows a platform",
        )),
        Root::Tasks => {
            let mut options = options;
            // The options are overrides of the description, so every rule applies to them.
            if let Some(policy) = policy {
                options
                    .overrides
                    .push(format!("processors@policy={}", policy.word()));
            }
            if let Some(count) = meaning.processors {
                options.overrides.push(format!("processors@count={count}"));
            }
            Ok(Some(load_tasks(path, &options)?))
        }
        Root::Schedcat(name, text) => {
            if !set.is_empty() {
                return Err(InputError::new(
                    "--set changes descriptions, and this is a task set of another format",
                    "use `bulkhead plan FILE --export xml --out NEW.xml` first",
                ));
            }
            let count = meaning.processors;
            if count.is_some_and(|count| !(1..=1024).contains(&count)) {
                return Err(InputError::new(
                    "the number of processors is out of range",
                    "write 1 to 1024",
                ));
            }
            let unit = unit(meaning.unit.as_deref())?;
            let policy = policy.unwrap_or(Policy::FixedPriority);
            let system = exchange::from_schedcat(&name, &text, meaning.set, unit, policy, count)
                .map_err(|error| schedcat_error(&error))?;
            // The rules of descriptions report what the policy does not cover.
            let text = tasks::write(&system);
            let options = LoadOptions::default();
            let name = format!("{name} as a description");
            let read = bulkhead_model::load_tasks_text(&name, &text, &options);
            Ok(Some(read?))
        }
    }
}

/// A name that is neither a file nor in the catalog.
fn unknown(name: &str, systems: &[String]) -> InputError {
    let tasks = names();
    let platforms = bulkhead_model::platform_names(&LoadOptions::default());
    let known: Vec<&str> = [systems, &tasks, &platforms]
        .into_iter()
        .flatten()
        .map(String::as_str)
        .collect();
    let near = bulkhead_model::closest(name, &known).map(|near| format!("did you mean `{near}`? "));
    InputError::new(
        format!("there is no system and no task system `{name}`"),
        format!(
            "{}systems: {}; task systems: {}; name a file with its ending .xml",
            near.unwrap_or_default(),
            systems.join(", "),
            tasks.join(", ")
        ),
    )
}

fn schedcat_error(error: &exchange::ExchangeError) -> InputError {
    use exchange::ExchangeError as E;
    match error {
        E::Schedcat(error) => InputError::new(
            format!("{}: {}", error.place, error.what),
            error.remedy.clone(),
        ),
        E::Empty => InputError::new(error.to_string(), "add <task period=\"...\" wcet=\"...\"/>"),
        E::Several(count) => InputError::new(
            error.to_string(),
            format!(
                "choose one with --task-set 0 to {}",
                count.saturating_sub(1)
            ),
        ),
        E::TooLong { .. } => InputError::new(error.to_string(), "choose a finer unit with --unit"),
        E::Processor { .. } => InputError::new(error.to_string(), "choose more with --processors"),
        E::NotWhole { .. } => InputError::new(error.to_string(), "choose a finer unit with --unit"),
        E::NoCost(_) => InputError::new(error.to_string(), "give it one"),
        E::Unbounded { .. } => InputError::new(
            error.to_string(),
            "only --export xml can write a system whose costs nobody knows",
        ),
    }
}

/// A format that a planned system can be written in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    /// Our description.
    Xml,
    /// SchedCAT's.
    Schedcat,
    /// Comma-separated values.
    Csv,
}

/// Writes a task system.
///
/// # Errors
/// [`InputError::Input`] if a time is no multiple of the unit.
pub fn export(system: &TaskSystem, format: Format, unit: Time) -> Result<String, InputError> {
    use crate::schedulability::schedcat;
    if format == Format::Xml {
        return Ok(tasks::write(system));
    }
    let entries = exchange::entries(system, unit).map_err(|error| schedcat_error(&error))?;
    Ok(match format {
        Format::Csv => schedcat::write_csv(&entries),
        _ => schedcat::write(&entries),
    })
}

/// Plans a system; if the analysis does not cover it, that is invalid input.
///
/// # Errors
/// [`InputError::Input`].
pub fn planned(system: &TaskSystem) -> Result<Plan, InputError> {
    plan(system).map_err(|error| plan_error(&error))
}

fn plan_error(error: &PlanError) -> InputError {
    let remedy = match error {
        PlanError::Task { .. } => "change the task, or choose another policy",
        PlanError::Other(_) => "choose other periods, or another policy",
    };
    InputError::new(error.to_string(), remedy)
}

/// A verdict with what would repair the system, for machines.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Judged {
    /// The plan.
    #[serde(flatten)]
    pub plan: Plan,
    /// Changes, each of which makes it pass.
    pub repairs: Vec<Repair>,
}

/// Judges a system and looks for repairs.
///
/// # Errors
/// As [`planned`].
pub fn judged(system: &TaskSystem) -> Result<Judged, InputError> {
    let plan = planned(system)?;
    let repairs = repairs(system, &plan);
    Ok(Judged { plan, repairs })
}

/// Task systems that can be named.
pub fn names() -> Vec<String> {
    task_system_names(&LoadOptions::default())
}
