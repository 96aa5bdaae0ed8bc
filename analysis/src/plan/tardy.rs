//! Tardiness of tasks served by all processors together, including the kernel's work.
//!
//! Why it exists: a late job lives longer and meets more releases, which may delay it further. What it deliberately does not know:
//! the levels of a mixed-criticality system, whose supplies are partial from the start.

use bulkhead_model::tasks::TaskSystem;
use num_traits::Signed;

use super::{PlanError, prepare};
use crate::schedulability::task::LIMIT;
use crate::schedulability::{Task, TaskError, handlers, mc2, tardiness};

/// Rounds in which tardiness may grow with what late jobs pay for.
const LATE_ROUNDS: usize = 50;

/// Bounds on tardiness. A late job lives longer, so it pays for more releases, which may delay it further: the bounds without this
/// effect are increased until they no longer grow. If they grow forever, all releases are taken from every processor instead.
pub fn bounds(system: &TaskSystem, order: &[usize]) -> Result<Option<Vec<u64>>, PlanError> {
    let wrong = |error: TaskError| PlanError::of(&error, system, order);
    let Some(alone) = prepare::alone(system, order).map_err(wrong)? else {
        return Ok(None);
    };
    let mut late = vec![0; order.len()];
    for _ in 0..LATE_ROUNDS {
        let lives: Vec<u64> = alone
            .iter()
            .zip(&late)
            .map(|(task, late): (_, &u64)| task.period.saturating_add(*late))
            .collect();
        let tasks = prepare::with_releases(system, order, &alone, &lives);
        if tasks.iter().any(|task| task.cost > LIMIT) {
            break;
        }
        let found = tardiness::bounds(&tasks, u64::from(system.processors)).map_err(wrong)?;
        match found {
            None => break,
            Some(found) if found.iter().zip(&late).all(|(new, old)| new <= old) => {
                return Ok(Some(found));
            }
            Some(found) => late = found,
        }
    }
    // Including the decision that a displaced job may have to wait for.
    let decision = prepare::nanoseconds(system.overheads.schedule);
    let release = prepare::nanoseconds(system.overheads.release);
    let arrivals = alone
        .iter()
        .map(|task| handlers::handler(release.saturating_add(decision), task.period));
    let releases: Vec<Task> = arrivals.filter(|h| h.cost > 0).collect();
    let supply = mc2::supply(&releases);
    if releases.is_empty() || supply.rate.is_negative() {
        return Ok(None);
    }
    let everywhere: Vec<Task> = (0..system.processors)
        .flat_map(|_| releases.clone())
        .collect();
    let supplies = vec![supply; system.processors as usize];
    tardiness::with_handlers(&alone, &supplies, &everywhere).map_err(wrong)
}
