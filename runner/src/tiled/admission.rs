//! Whether a system's shared tiles can keep the promises of their quotas. A system that cannot is not
//! run.
//!
//! What it deliberately does not know: the test (`bulkhead_analysis::admission`).

use crate::error::Error;
use bulkhead_analysis::admission::{self, Reservation, TileAdmission};
use bulkhead_analysis::plan::Judgement;
use bulkhead_model::System;

/// Judges the tiles with fixed priorities.
///
/// # Errors
/// [`Error::Machine`] if a tile cannot be judged.
pub fn judge(system: &System) -> Result<Vec<TileAdmission>, Error> {
    admission::tiles(system).map_err(|error| Error::Machine(error.to_string()))
}

/// Refuses a system that cannot keep its promises.
///
/// # Errors
/// [`Error::Input`] with the first application that may be late.
pub fn check(name: &str, system: &System) -> Result<(), Error> {
    for tile in judge(system)? {
        if let Some(late) = tile
            .reservations
            .iter()
            .find(|one| one.judgement() == Judgement::Failed)
        {
            return Err(refusal(name, tile.tile, late));
        }
    }
    Ok(())
}

fn refusal(name: &str, tile: u16, late: &Reservation) -> Error {
    let time = |nanoseconds: u64| format!("{} us", nanoseconds.div_ceil(1000));
    let who = format!("{name}: `{}` on tile {tile}", late.app);
    let (cause, remedy) = match (late.unpaid, late.response) {
        (Some(needed), _) => (
            format!(
                "{who} has a quota of {} in {}; its task needs {}",
                time(late.budget),
                time(late.period),
                time(needed)
            ),
            "raise the quota, or give it a period that is not longer than the task's".to_owned(),
        ),
        (None, Some(response)) => (
            format!(
                "{who} may need {} for its quota, later than its deadline of {}",
                time(response),
                time(late.deadline)
            ),
            "lower the quotas of applications with higher priority, raise its own priority, or move an application to another tile"
                .to_owned(),
        ),
        (None, None) => (
            format!("{who} and applications with higher priority need more time than the tile has, with switches and the kernel's requests included"),
            "lower quotas, or move an application to another tile".to_owned(),
        ),
    };
    Error::input(cause, remedy)
}
