//! The picture of a processor with time slices: round robin, quotas, decisions before turns.
//!
//! What it deliberately does not know: [`crate::plan::slices`], the bound.

use std::collections::VecDeque;

use bulkhead_model::tasks::TaskSystem;

use super::stage::{Coming, Stage};
use super::{CriticalInstant, Part};
use crate::plan::prepare::nanoseconds;

/// A task of the processor.
struct Member {
    jobs: VecDeque<(Coming, u64)>,
    /// Budget, period, and how much of the current period's budget is used; periods begin with the
    /// picture.
    quota: Option<(u64, u64, u64)>,
}

impl Member {
    fn is_able(&self) -> bool {
        let quota = self.quota.is_none_or(|(budget, _, used)| used < budget);
        !self.jobs.is_empty() && quota
    }
}

/// The picture.
///
/// # Errors
/// Why there is none.
pub fn picture(system: &TaskSystem, core: u32, tasks: &[usize]) -> Result<CriticalInstant, String> {
    let mut stage = Stage::new(system, tasks.to_vec(), |own| own)?;
    let quota = |&task: &usize| {
        let quota = system.tasks[task].quota?;
        let (budget, period) = (nanoseconds(quota.budget), nanoseconds(quota.period).max(1));
        Some((budget.max(1), period, 0))
    };
    let member = |task| Member {
        jobs: VecDeque::new(),
        quota: quota(task),
    };
    let mut members: Vec<Member> = tasks.iter().map(member).collect();
    let slice = nanoseconds(system.slice).max(1);
    let decision = nanoseconds(system.overheads.schedule);
    let release = nanoseconds(system.overheads.release);
    let mut line: VecDeque<usize> = VecDeque::new();
    let mut turn: Option<(usize, u64)> = None;
    let mut window = 0;
    let mut now = 0;
    while now < stage.length {
        // The job that ran before this moment pays for what interrupts it.
        let mut kernel = 0;
        for coming in stage.released(now) {
            let cost = stage.costs[coming.task];
            members[coming.task].jobs.push_back((coming, cost));
            kernel += release;
        }
        for (_, period, used) in members
            .iter_mut()
            .filter_map(|member| member.quota.as_mut())
        {
            if now / *period > window / *period || now == 0 {
                *used = 0;
            }
        }
        window = now;
        if kernel > 0 {
            stage.kernel(core, (now, now + kernel));
            if let Some((who, left)) = &mut turn {
                *left = left.saturating_sub(kernel);
                if let Some((_, _, used)) = &mut members[*who].quota {
                    *used += kernel;
                }
            }
            now += kernel;
            continue;
        }
        let running = turn.map(|(who, _)| who);
        let waits = |who: &usize, line: &VecDeque<usize>| {
            members[*who].is_able() && !line.contains(who) && running != Some(*who)
        };
        let woken: Vec<usize> = (0..members.len()).filter(|who| waits(who, &line)).collect();
        line.extend(woken);
        line.retain(|&who| members[who].is_able());
        if let Some((who, left)) = turn {
            if !members[who].is_able() {
                turn = None;
            } else if left == 0 {
                turn = None;
                line.push_back(who);
            }
        }
        let next_window = members.iter().filter_map(|member| member.quota);
        let next_window = next_window
            .map(|(_, period, _)| (now / period + 1) * period)
            .min();
        let next = stage.next_release().min(next_window.unwrap_or(u64::MAX));
        let Some((who, left)) = &mut turn else {
            match line.pop_front() {
                Some(who) => {
                    turn = Some((who, slice));
                    stage.kernel(core, (now, now + decision));
                    now += decision;
                }
                None => now = next.min(stage.length),
            }
            continue;
        };
        let member = &mut members[*who];
        let Some((coming, work)) = member.jobs.front_mut() else {
            continue;
        };
        let budget = member
            .quota
            .map_or(u64::MAX, |(budget, _, used)| budget - used);
        let run = (*left).min(*work).min(budget).min(next - now);
        stage.job(*coming, core, (now, now + run), Part::Runs);
        now += run;
        *left -= run;
        *work -= run;
        if let Some((_, _, used)) = &mut member.quota {
            *used += run;
        }
        if *work == 0 {
            stage.done(*coming, now);
            member.jobs.pop_front();
            turn = None;
        }
    }
    let others = "Turns begin in the order of the file; bounds count that all others go first, and that a quota is used up at the worst moment.";
    let alone = tasks.len() < 2;
    Ok(stage.finish(if alone { Vec::new() } else { vec![others] }))
}
