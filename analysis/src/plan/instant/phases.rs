//! The picture of a processor with three phases: one engine that loads and unloads in slots, and non-preemptive executions.
//!
//! What it deliberately does not know: [`crate::schedulability::three_phase`], the bound.

use bulkhead_model::tasks::TaskSystem;

use super::stage::{Coming, Stage};
use super::{CriticalInstant, Part};
use crate::plan::prepare::nanoseconds;

/// The use of one half of the local memory.
#[derive(Clone, Copy, PartialEq, Eq)]
enum State {
    Loads,
    Loaded,
    Runs,
    Ran,
    Unloads,
}

struct Half {
    job: Coming,
    state: State,
    /// When its transfer ends.
    end: u64,
    /// The time that is left to run.
    left: u64,
}

/// The slots of a processor.
struct Slots {
    begin: u64,
    length: u64,
    round: u64,
    overhead: u64,
}

impl Slots {
    /// The parts of slots in which the engine moves this much, from the first slot that begins at `now` or later.
    fn moved(&self, now: u64, mut amount: u64) -> Vec<(u64, u64)> {
        let rounds = now.saturating_sub(self.begin).div_ceil(self.round);
        let mut slot = self.begin + rounds * self.round;
        let usable = self.length.saturating_sub(self.overhead).max(1);
        let mut parts = Vec::new();
        while amount > 0 {
            let start = slot + self.overhead;
            let part = amount.min(usable);
            parts.push((start, start + part));
            amount -= part;
            slot += self.round;
        }
        parts
    }
}

/// The picture.
///
/// # Errors
/// Why there is none.
pub fn picture(system: &TaskSystem, core: u32, tasks: &[usize]) -> Result<CriticalInstant, String> {
    let mut stage = Stage::new(system, tasks.to_vec(), |own| own)?;
    let slot = |core: u32| system.share(Some(core)).and_then(|share| share.slot);
    let all: Option<Vec<u64>> = (0..system.processors)
        .map(|c| slot(c).map(nanoseconds))
        .collect();
    let (Some(all), Some(overhead)) = (all, system.tdma) else {
        return Err("the engine has no slots".to_owned());
    };
    let own = usize::try_from(core).unwrap_or(usize::MAX);
    let slots = Slots {
        begin: all.iter().take(own).sum(),
        length: all.get(own).copied().unwrap_or(0),
        round: all.iter().sum::<u64>().max(1),
        overhead: nanoseconds(overhead),
    };
    let decisions = 2 * nanoseconds(system.overheads.schedule);
    let release = nanoseconds(system.overheads.release);
    let urgency = |job: &Coming| (system.tasks[tasks[job.task]].priority, job.number);
    let mut waiting: Vec<Coming> = Vec::new();
    let mut halves: Vec<Half> = Vec::new();
    // Remaining work of the kernel; it takes time from executions.
    let mut kernel = 0;
    let mut now = 0;
    while now < stage.length {
        for coming in stage.released(now) {
            waiting.push(coming);
            kernel += release;
        }
        let mut changed = false;
        for half in &mut halves {
            if half.state == State::Loads && half.end <= now {
                (half.state, changed) = (State::Loaded, true);
            }
        }
        let gone = |half: &Half| half.state == State::Unloads && half.end <= now;
        for half in halves.iter().filter(|half| gone(half)) {
            stage.done(half.job, now);
        }
        halves.retain(|half| !gone(half));
        let moves = |half: &Half| matches!(half.state, State::Loads | State::Unloads);
        if !halves.iter().any(moves) {
            let ran = halves.iter_mut().find(|half| half.state == State::Ran);
            let (half, amount, part) = if let Some(half) = ran {
                half.state = State::Unloads;
                let amount = system.tasks[tasks[half.job.task]].unload;
                (Some(half), amount, Part::Unloads)
            } else if halves.len() < 2 && !waiting.is_empty() {
                waiting.sort_by_key(urgency);
                let job = waiting.remove(0);
                halves.push(Half {
                    job,
                    state: State::Loads,
                    end: 0,
                    left: stage.costs[job.task].saturating_add(decisions),
                });
                let amount = system.tasks[tasks[job.task]].load;
                (halves.last_mut(), amount, Part::Loads)
            } else {
                (None, bulkhead_model::units::Time(0), Part::Loads)
            };
            if let Some(half) = half {
                half.end = now;
                for (start, end) in slots.moved(now, nanoseconds(amount)) {
                    stage.job(half.job, core, (start, end), part);
                    half.end = end;
                }
                changed = true;
            }
        }
        if !halves.iter().any(|half| half.state == State::Runs)
            && let Some(half) = halves.iter_mut().find(|half| half.state == State::Loaded)
        {
            (half.state, changed) = (State::Runs, true);
        }
        if changed {
            continue;
        }
        let moved = halves
            .iter()
            .filter(|half| moves(half))
            .map(|half| half.end)
            .min();
        let next = stage
            .next_release()
            .min(moved.unwrap_or(u64::MAX))
            .min(stage.length);
        if kernel > 0 {
            let run = kernel.min(next - now);
            stage.kernel(core, (now, now + run));
            kernel -= run;
            now += run;
            continue;
        }
        let Some(half) = halves.iter_mut().find(|half| half.state == State::Runs) else {
            now = next;
            continue;
        };
        let run = half.left.min(next - now);
        stage.job(half.job, core, (now, now + run), Part::Runs);
        half.left -= run;
        now += run;
        if half.left == 0 {
            half.state = State::Ran;
        }
    }
    Ok(stage.finish(vec![
        "The first round of slots begins with the picture; bounds count that a slot was just missed, and less important jobs that had begun.",
    ]))
}
