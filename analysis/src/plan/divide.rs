//! Divides what processors share: ways, colours, banks, memory accesses, slots of the DMA engine.
//!
//! Why it exists: see the parent module. What it deliberately does not know: where tasks are placed, and with which priority.
//!
//! Ways: with MC2 exactly, by the method of the study ([`crate::mc2::ways`]); otherwise each processor gets the minimum with which it
//! meets its deadlines, found by bisection (more never hurts), and the rest is divided evenly. Memory accesses: the same. Slots: equal
//! lengths that hold the longest transfer in 1, 2 ... parts, the first with which deadlines are met.

use bulkhead_model::tasks::{Policy, Share, TaskSystem};
use bulkhead_model::units::Time;

use super::prepare::{self, nanoseconds, time};
use super::{Choice, PlanError, evaluate, levels, resources};
use crate::mc2::ways::{ONE, ProcessorTable, WayProblem};

/// Maximum ways that are divided exactly among levels.
const WAYS_MAX: u32 = 64;
/// Maximum parts of the longest transfer that are tried as slots.
const PARTS: u64 = 64;

/// The shares that were open, so that they can be searched once tasks have their places.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Open {
    ways: Vec<Option<u32>>,
    colours: Vec<Option<u32>>,
    banks: Vec<Option<u32>>,
    budgets: Vec<Option<u32>>,
    slots: Vec<Option<u32>>,
}

/// The share of a processor, or of level C; created if there is none.
fn share(system: &mut TaskSystem, core: Option<u32>) -> &mut Share {
    let position = system.shares.iter().position(|share| share.core == core);
    let position = position.unwrap_or_else(|| {
        system.shares.push(Share {
            core,
            ..Share::default()
        });
        system.shares.len() - 1
    });
    &mut system.shares[position]
}

/// The possible holders of a share: the processors, and level C.
fn holders(system: &TaskSystem, level_c: bool) -> Vec<Option<u32>> {
    let mut all: Vec<Option<u32>> = (0..system.processors).map(Some).collect();
    if level_c && system.policy == Policy::Mc2 {
        all.push(None);
    }
    all
}

/// Begins with even shares of everything that is open and used at all. Returns what was open.
pub fn even(system: &mut TaskSystem) -> Open {
    let mut open = Open::default();
    let all = holders(system, true);
    let cores = holders(system, false);
    let llc = system.llc.unwrap_or_default();
    if llc.ways > 0 && system.tasks.iter().any(|task| task.uses_ways()) {
        let lacking = lacking(system, &all, |s| s.ways.is_some());
        let given: u32 = given(system, |s| s.ways.map(u64::from)) as u32;
        let each = evenly(u64::from(llc.ways.saturating_sub(given)), lacking.len());
        for (&core, ways) in lacking.iter().zip(each) {
            share(system, core).ways = Some(ways as u32);
        }
        open.ways = lacking;
    }
    if llc.colours > 0 && system.tasks.iter().any(|task| task.working_set.0 > 0) {
        open.colours = lacking(system, &cores, |s| s.colours.is_some());
    }
    let banks = system.ram.map_or(0, |ram| ram.banks);
    if banks > 0 {
        let lacking = lacking(system, &all, |s| s.banks.is_some());
        let given = given(system, |s| s.banks.map(u64::from));
        let each = evenly(u64::from(banks).saturating_sub(given), lacking.len());
        for (&core, banks) in lacking.iter().zip(each) {
            share(system, core).banks = Some(banks as u32);
        }
        open.banks = lacking;
    }
    if let Some(guard) = system.memguard
        && system.tasks.iter().any(|task| task.accesses > 0)
    {
        let lacking = lacking(system, &cores, |s| s.budget.is_some());
        let given = given(system, |s| s.budget);
        // Without a figure for all, one processor may use the memory all the time.
        let access = nanoseconds(guard.access).max(1);
        let alone = (nanoseconds(guard.period) / access).clamp(1, 1 << 40);
        let each = match guard.accesses {
            Some(all) => evenly(all.saturating_sub(given), lacking.len()),
            None => vec![alone; lacking.len()],
        };
        for (&core, budget) in lacking.iter().zip(each) {
            share(system, core).budget = Some(budget.max(1));
        }
        open.budgets = lacking;
    }
    if let Some(overhead) = system.tdma
        && system.policy == Policy::ThreePhase
    {
        let lacking = lacking(system, &cores, |s| s.slot.is_some());
        let longest = longest_transfer(system);
        for &core in &lacking {
            share(system, core).slot = Some(Time(overhead.0 + longest.0));
        }
        open.slots = lacking;
    }
    open
}

fn lacking(
    system: &TaskSystem,
    holders: &[Option<u32>],
    has: impl Fn(&Share) -> bool,
) -> Vec<Option<u32>> {
    holders
        .iter()
        .copied()
        .filter(|&core| !system.share(core).is_some_and(&has))
        .collect()
}

fn given(system: &TaskSystem, part: impl Fn(&Share) -> Option<u64>) -> u64 {
    system
        .shares
        .iter()
        .filter_map(part)
        .fold(0, u64::saturating_add)
}

/// `total` in parts that differ by at most one, the larger ones first.
fn evenly(total: u64, parts: usize) -> Vec<u64> {
    let parts = parts as u64;
    (0..parts)
        .map(|part| total / parts.max(1) + u64::from(part < total % parts.max(1)))
        .collect()
}

fn longest_transfer(system: &TaskSystem) -> Time {
    let transfers = system.tasks.iter().map(|task| task.load.max(task.unload));
    transfers.max().unwrap_or(Time(0)).max(Time(1000))
}

/// Searches the shares that were open, now that tasks have their places.
pub fn divide(
    system: &mut TaskSystem,
    open: &Open,
    choices: &mut Vec<Choice>,
) -> Result<(), PlanError> {
    let mut say = |what, how: &str| {
        choices.push(Choice {
            what,
            how: how.to_owned(),
        });
    };
    if !open.ways.is_empty() {
        let how = ways(system, &open.ways)?;
        say("ways", how);
    }
    if !open.colours.is_empty() {
        for core in open.colours.iter().flatten() {
            let needed = resources::colours_needed(system, Some(*core)).unwrap_or(0);
            share(system, Some(*core)).colours =
                Some(u32::try_from(needed.min(4096)).unwrap_or(4096));
        }
        say("colours", "what the working sets of a processor need");
    }
    if !open.banks.is_empty() {
        say("banks", "evenly");
    }
    if !open.budgets.is_empty() {
        budgets(system, &open.budgets)?;
        say(
            "budgets",
            "the least that deadlines allow, and the rest evenly",
        );
    }
    if !open.slots.is_empty() {
        slots(system, &open.slots)?;
        let given = open.slots.first().map(|&core| share(system, core).slot);
        let slot = given.flatten().unwrap_or_default();
        let round = system.shares.iter().filter_map(|share| share.slot);
        let round = Time(round.fold(0u64, |sum, slot| sum.saturating_add(slot.0)));
        let cores: Vec<String> = open.slots.iter().flatten().map(u32::to_string).collect();
        say(
            "slots",
            &format!(
                "{slot} for each of processors {} in a round of {round}, the fewest parts that meet all deadlines",
                cores.join(", ")
            ),
        );
    }
    Ok(())
}

/// Number of failures of the whole system.
fn failures(system: &TaskSystem) -> Result<usize, PlanError> {
    Ok(evaluate::constraints(system)?
        .iter()
        .filter(|c| c.fails())
        .count())
}

fn ways(system: &mut TaskSystem, open: &[Option<u32>]) -> Result<&'static str, PlanError> {
    if failures(system)? == 0 {
        return Ok("evenly");
    }
    let total = system.llc.unwrap_or_default().ways;
    let fixed = given(system, |share| {
        let ways = share.ways.map(u64::from);
        ways.filter(|_| !open.contains(&share.core))
    });
    let Some(left) = u64::from(total)
        .checked_sub(fixed)
        .and_then(|left| u32::try_from(left).ok())
    else {
        return Ok("evenly");
    };
    let begun: Vec<u32> = open
        .iter()
        .map(|&core| system.share(core).and_then(|s| s.ways).unwrap_or(0))
        .collect();
    if system.policy == Policy::Mc2 && total <= WAYS_MAX {
        if by_levels(system, open, total)? {
            return Ok("exactly, for the least utilisation of level C");
        }
        give(system, open, &begun);
        return Ok("evenly; no division holds");
    }
    // A processor's ways help only that processor, so the minimum for each is optimal.
    let mut least: Vec<u32> = Vec::new();
    for core in open {
        least.push(match core {
            Some(core) => least_ways(system, *core, left)?,
            None => 0,
        });
    }
    let needed = least.iter().fold(0u32, |sum, n| sum.saturating_add(*n));
    let Some(spare) = left.checked_sub(needed) else {
        // It fails in any case; an even division shows that as well as any.
        give(system, open, &begun);
        return Ok("evenly; the processors need more ways than there are");
    };
    let division: Vec<u32> = least
        .iter()
        .zip(evenly(spare.into(), least.len()))
        .map(|(least, more)| least + more as u32)
        .collect();
    give(system, open, &division);
    Ok("the least that deadlines allow, and the rest evenly")
}

fn give(system: &mut TaskSystem, open: &[Option<u32>], division: &[u32]) {
    for (&core, &ways) in open.iter().zip(division) {
        share(system, core).ways = Some(ways);
    }
}

/// The division with the lowest utilisation of level C ([`WayProblem`]); if a task's own tardiness limit needs it, one with more ways for
/// level C. `false`: none holds.
fn by_levels(system: &mut TaskSystem, open: &[Option<u32>], total: u32) -> Result<bool, PlanError> {
    let count = system.processors;
    let mut problem = WayProblem {
        ways: total as usize,
        processors: Vec::new(),
        c_total: Vec::new(),
        c_largest: Vec::new(),
        minimum_level_c: 0,
        locked: 0..=0,
    };
    let much = ONE + 1;
    for core in 0..count {
        let before = system.share(Some(core)).and_then(|s| s.ways);
        let is_open = open.contains(&Some(core));
        let least = if is_open {
            least_ways(system, core, total)?
        } else {
            before.unwrap_or(0)
        };
        let mut table = ProcessorTable::default();
        for own in 0..=total {
            let usable = own >= least && (is_open || own == least);
            share(system, Some(core)).ways = Some(own);
            let shares = levels::level_c_shares(system, core);
            table.a.push(if usable { 0 } else { much });
            table.ab_b.push(0);
            table.ab_c.push(shares.map_or(much, |shares| {
                shares.iter().fold(0u64, |sum, s| sum.saturating_add(*s))
            }));
        }
        share(system, Some(core)).ways = before;
        problem.processors.push(table);
    }
    let before = system.share(None).and_then(|s| s.ways);
    let others = u64::from(count) - 1;
    for own in 0..=total {
        let open = open.contains(&None);
        share(system, None).ways = Some(if open { own } else { before.unwrap_or(0) });
        let mut shares = levels::shares_of_level_c(system).unwrap_or(vec![u64::MAX >> 16]);
        shares.sort_unstable_by(|a, b| b.cmp(a));
        let sum = |list: &[u64]| list.iter().fold(0u64, |sum, s| sum.saturating_add(*s));
        let largest = shares.first().copied().unwrap_or(0).saturating_mul(others);
        let most = sum(&shares[..shares.len().min(others as usize)]);
        problem.c_total.push(sum(&shares));
        problem.c_largest.push(largest.saturating_add(most));
    }
    share(system, None).ways = before;
    if !open.contains(&None) {
        problem.minimum_level_c = before.unwrap_or(0) as usize;
    }
    while let Some(plan) = problem.solve() {
        for &holder in open {
            let ways = match holder {
                Some(core) => plan.processors[core as usize],
                None => plan.level_c,
            };
            share(system, holder).ways = Some(ways as u32);
        }
        if failures(system)? == 0 {
            return Ok(true);
        }
        problem.minimum_level_c = plan.level_c + 1;
    }
    Ok(false)
}

/// The minimum number of ways with which the tasks of a processor meet their deadlines; `most` if none suffices.
fn least_ways(system: &mut TaskSystem, core: u32, most: u32) -> Result<u32, PlanError> {
    let members = evaluate::members(system).remove(&core).unwrap_or_default();
    let members: Vec<usize> = members
        .into_iter()
        .filter(|&i| system.policy != Policy::Mc2 || system.tasks[i].criticality < 'C')
        .collect();
    if members.is_empty() {
        return Ok(0);
    }
    let before = system.share(Some(core)).and_then(|s| s.ways);
    let (mut low, mut high) = (0, most);
    while low < high {
        let middle = low + (high - low) / 2;
        share(system, Some(core)).ways = Some(middle);
        if evaluate::meets(system, core, &members)? {
            high = middle;
        } else {
            low = middle + 1;
        }
    }
    share(system, Some(core)).ways = before;
    Ok(low)
}

fn budgets(system: &mut TaskSystem, open: &[Option<u32>]) -> Result<(), PlanError> {
    let Some(all) = system.memguard.and_then(|guard| guard.accesses) else {
        return Ok(());
    };
    let fixed: u64 = system
        .shares
        .iter()
        .filter(|share| !open.contains(&share.core))
        .filter_map(|share| share.budget)
        .fold(0, u64::saturating_add);
    let room = all.saturating_sub(fixed);
    let mut least = Vec::new();
    for core in open.iter().flatten() {
        let members = evaluate::members(system).remove(core).unwrap_or_default();
        let (mut low, mut high) = (1, room.max(1));
        while low < high {
            let middle = low + (high - low) / 2;
            share(system, Some(*core)).budget = Some(middle);
            if evaluate::meets(system, *core, &members)? {
                high = middle;
            } else {
                low = middle + 1;
            }
        }
        least.push(low);
    }
    let needed: u64 = least.iter().fold(0, |sum, n| sum.saturating_add(*n));
    let division: Vec<u64> = match room.checked_sub(needed) {
        Some(spare) => least
            .iter()
            .zip(evenly(spare, least.len()))
            .map(|(least, more)| least + more)
            .collect(),
        // Not enough for all: an even division shows which fail.
        None => evenly(room, least.len())
            .into_iter()
            .map(|b| b.max(1))
            .collect(),
    };
    for (core, budget) in open.iter().zip(division) {
        share(system, *core).budget = Some(budget);
    }
    Ok(())
}

fn slots(system: &mut TaskSystem, open: &[Option<u32>]) -> Result<(), PlanError> {
    let overhead = nanoseconds(system.tdma.unwrap_or_default());
    let longest = nanoseconds(longest_transfer(system));
    let mut best: Option<(usize, u64)> = None;
    for parts in 1..=PARTS {
        let slot = overhead + longest.div_ceil(parts);
        for &core in open {
            share(system, core).slot = Some(time(slot));
        }
        let failed = failures(system)?;
        if best.is_none_or(|best| failed < best.0) {
            best = Some((failed, slot));
        }
        if failed == 0 || longest.div_ceil(parts) <= 1 {
            break;
        }
    }
    if let Some((_, slot)) = best {
        for &core in open {
            share(system, core).slot = Some(prepare::time(slot));
        }
    }
    Ok(())
}
