//! Tasks without a bound because nothing bounds what handlers of timing events do on a core, or what the kernel takes there.
//!
//! Why it exists: a handler runs in the interrupt of a tick, for as long as it likes, and costs of the kernel are known for some cores only. Whatever is on its core may wait for it; so may whoever shares a port with
//! that core, because a lock is held meanwhile, and whoever shares one with those. What it deliberately does not know: how long anything takes.

use super::Interrupts;
use super::drift::Drift;
use crate::one_shot_kernel::unbounded;
use crate::one_shot_mesh::Mesh;
use bulkhead_model::platform::Platform;
use bulkhead_model::system::OneShot;
use bulkhead_model::system::oneshot::TICK;
use bulkhead_model::tasks::{Channel, Unbounded};
use std::collections::BTreeMap;

/// For each task, why nothing bounds it, if so. Only what handlers are stated to take is known to leave no time.
pub(super) fn lost(system: &OneShot, platform: &Platform) -> Vec<Option<Unbounded>> {
    let mesh = Mesh::new(platform);
    let mut cores: BTreeMap<u16, Unbounded> = BTreeMap::new();
    let master = system.master(platform);
    let no_time = master.and_then(|master| unbounded(platform, master));
    for core in system.cores() {
        let interrupts = Interrupts::of(system, platform, core);
        let tick = Drift::of(platform, core).shorten(mesh.cycles(TICK).max(1), 1);
        if interrupts.handled() > 0 && interrupts.fill(tick) {
            let why = format!(
                "on core {core}, handlers of timing events may take {} cycles in one tick of {tick}",
                interrupts.handled()
            );
            cores.insert(core, Unbounded::Overloaded(why));
        } else if let Some(why) = unbounded(platform, core) {
            cores.insert(core, Unbounded::Unknown(why));
        } else if system.unstated.contains(&core) && system.handlers(core).is_empty() {
            let why = format!(
                "core {core} sets timing events, and no task of it states how long their handlers take (handlers=\"...\")"
            );
            cores.insert(core, Unbounded::Unknown(why));
        }
    }
    let tasks = &system.tasks;
    if let Some(why) = no_time {
        // Both ends compare their clocks, and the time comes from a core whose messages nothing bounds. Two tasks of one core have one clock.
        let compare = |channel: &&Channel| channel.notify || channel.parallel.is_some();
        for channel in tasks.channels.iter().filter(compare) {
            let ends = [channel.from, channel.to].map(|task| system.core(task));
            for own in ends.into_iter().filter(|_| ends[0] != ends[1]) {
                let why = format!("core {own} compares its clock with others: {why}");
                cores.entry(own).or_insert(Unbounded::Unknown(why));
            }
        }
    }
    let mut before = 0;
    while before < cores.len() {
        before = cores.len();
        for channel in &tasks.channels {
            let ends = [channel.from, channel.to].map(|task| system.core(task));
            for (own, other) in [(ends[0], ends[1]), (ends[1], ends[0])] {
                if let (Some(known), None) = (cores.get(&other), cores.get(&own)) {
                    let why = match known.why().split_once(SHARES) {
                        Some((_, first)) => first,
                        None => known.why(),
                    };
                    let why = format!("core {own}{SHARES}{why}");
                    let shared = match known {
                        Unbounded::Overloaded(_) => Unbounded::Overloaded(why),
                        Unbounded::Unknown(_) => Unbounded::Unknown(why),
                    };
                    cores.insert(own, shared);
                }
            }
        }
    }
    let of_task = |task: usize| cores.get(&system.core(task)).cloned();
    (0..tasks.tasks.len()).map(of_task).collect()
}

/// What a core has to do with one that has no bound by itself.
const SHARES: &str = " shares ports, directly or over others, with a core without bounds: ";
