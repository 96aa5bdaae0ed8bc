//! What a file of assembly says of the tasks that it declares: priorities, and frames that are kept.
//!
//! Why it exists: only the compiler knows both, and the build compares the first with the description and makes room for the second. What it deliberately
//! does not know: which tasks an image runs.

use super::{BODY, Procedure, addresses::Effect, procedures};
use std::collections::BTreeMap;

/// Calls that declare a task: their first argument is its priority, their eighth one its body.
const CREATES: [&str; 2] = [
    "system__tasking__restricted__stages__create_restricted_task",
    "system__tasking__restricted__stages__create_restricted_task_sequential",
];
const PRIORITY: u64 = 1 << 10;
const BODY_OF: u64 = 1 << 17;

/// Of the bodies of tasks, by their names.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Declared {
    /// As the source says it, where that is a constant; -1: it says nothing.
    pub priorities: BTreeMap<String, i64>,
    /// Bytes of frames that must be kept.
    pub kept: BTreeMap<String, u64>,
}

/// Of a file of assembly.
pub fn declared(assembly: &str) -> Declared {
    let mut all = Declared::default();
    for (name, procedure) in procedures(assembly).procedures {
        procedure.declares(&mut all.priorities);
        if name.ends_with(BODY) && procedure.is_kept() {
            let deepest = procedure.depths().unwrap_or_default().into_iter().min();
            let bytes = u64::try_from(-deepest.unwrap_or(0)).unwrap_or(0);
            all.kept.insert(name, bytes);
        }
    }
    all
}

impl Procedure {
    /// The tasks that a procedure declares, whose priorities are constants. Constants are those of a straight way: a label ends it.
    fn declares(&self, priorities: &mut BTreeMap<String, i64>) {
        let mut numbers: BTreeMap<u64, i64> = BTreeMap::new();
        let mut names: BTreeMap<u64, String> = BTreeMap::new();
        for (at, it) in self.instructions.iter().enumerate() {
            if self.labels.values().any(|&label| label == at) {
                numbers.clear();
                names.clear();
            }
            if it
                .calls
                .as_deref()
                .is_some_and(|name| CREATES.contains(&name))
                && let (Some(body), Some(priority)) = (names.get(&BODY_OF), numbers.get(&PRIORITY))
            {
                priorities.insert(body.clone(), *priority);
            }
            let copied = match it.effect {
                Effect::Copy { from, more, .. } => {
                    let number = if from == 1 {
                        Some(0)
                    } else {
                        numbers.get(&from).copied()
                    };
                    number.map(|number| number + more)
                }
                _ => None,
            };
            numbers.retain(|one, _| one & it.writes == 0);
            names.retain(|one, _| one & it.writes == 0);
            match (&it.loaded, copied) {
                (Some(loaded), _) => match loaded.parse() {
                    Ok(number) => drop(numbers.insert(it.writes, number)),
                    Err(_) => drop(names.insert(it.writes, loaded.clone())),
                },
                (None, Some(number)) => drop(numbers.insert(it.writes, number)),
                (None, None) => {}
            }
        }
    }
}
