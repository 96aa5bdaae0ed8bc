//! Whether an operation on a port may fail because nobody asks for its lock for ever.
//!
//! Why it exists: an operation that gives up moves no item, so whatever depends on the item has no bound. What it deliberately does not know: for how long others have
//! the lock; its callers say that.

use crate::one_shot_mesh::Mesh;
use crate::one_shot_rivals::{ATTEMPTS, patience};
use bulkhead_model::system::OneShot;

/// Why an operation on a port so many hops away may fail: its writer or its reader asks for less time than other cores may have the lock (`write`, `read`: that
/// time in cycles, as its caller counts it).
pub(super) fn fails(
    (system, mesh): (&OneShot, &Mesh<'_>),
    (channel, hops): (usize, u64),
    write: u64,
    read: u64,
) -> Option<String> {
    let tasks = &system.tasks;
    let one = &tasks.channels[channel];
    let own = |task: usize| {
        let tile = mesh.platform.tile(system.core(task));
        tile.map_or(0, |tile| patience(&tile.pipeline))
    };
    let writer = match hops {
        0 => own(one.from),
        hops => ATTEMPTS * mesh.shortest_round(hops),
    };
    let all = [(one.from, write, writer), (one.to, read, own(one.to))];
    let (task, wait, asks) = all.into_iter().find(|(_, wait, asks)| wait > asks)?;
    let name = &tasks.channels[tasks.port_of(channel)].name;
    let (port, remedy) = match tasks.sharing(channel).len() {
        1 => ("port", "Smaller items, or a writer"),
        _ => ("queue", "Fewer writers, smaller items, or writers"),
    };
    Some(format!(
        "other cores may have the lock of the {port} {name} for {wait} cycles, but `{}` asks for it for {asks} only: an operation may fail. {remedy} closer to the \
         reader would do",
        tasks.tasks[task].name
    ))
}
