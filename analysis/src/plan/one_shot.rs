//! Bounds of the one-shot RTOS, with the response times of this module's tests.
//!
//! Why it exists: where queues have several writers, bounds of operations need the responses of their tasks, and responses need those bounds. What it
//! deliberately does not know: how either is computed.

use super::Kind;
use super::evaluate;
use crate::one_shot::{self, Bounds};
use bulkhead_model::platform::Platform;
use bulkhead_model::system::OneShot;
use bulkhead_model::tasks::TaskSystem;

/// Computes them from a description: they hold whatever other cores do, where guards and lengths allow that.
pub fn bounds(system: &OneShot, platform: &Platform) -> Bounds {
    one_shot::bounds(system, platform, &responses)
}

/// The longest response of each task in nanoseconds, from its arrival, if it has one; `None` if the tasks cannot be judged.
fn responses(system: &TaskSystem) -> Option<Vec<Option<u64>>> {
    let constraints = evaluate::constraints(system).ok()?;
    let of_task = |name: &str| {
        let mut all = constraints.iter();
        let own = all.find(|one| one.kind == Kind::Response && one.subject == name);
        own.and_then(|one| one.bound)
    };
    Some(
        system
            .tasks
            .iter()
            .map(|task| of_task(&task.name))
            .collect(),
    )
}
