//! Phase three of the optimiser: how many ways of the last-level cache each of the six regions gets.
//!
//! Why it exists: mc2-rts20, section 6.1, solves this as a mixed-integer program for every task system of its study, which is
//! most of 80 CPU-days. The program has a shape that dynamic programming solves exactly in microseconds: once the number of
//! locked ways is fixed, the processors interact only through the sum of their ways and the sum of what they leave to level C.
//! `tests/optimiser` holds the mixed-integer program itself and proves both equal on random problems.
//!
//! It deliberately does not know tasks, schemes, costs or random numbers: it reads tables of utilisations, which are integers in
//! parts of [`ONE`]. Callers round up when they fill the tables, so a plan found here holds.
//!
//! The problem. Choose locked ways `l`, ways `w[p]` of each processor and ways `c` of level C (and of the operating system) with
//! `l + sum w + c <= ways`, `c >= minimum_level_c` and `l` in a given range, so that
//! * on each processor level A alone, with its own costs, needs at most the processor: `a[l][w] <= ONE`;
//! * levels A and B together, with the costs of level B, need at most the processor: `ab_b[l][w] <= ONE` (harmonic periods:
//!   rate-monotonic priorities reach a utilisation of one);
//! * with costs of level C they leave a share: `ab_c[l][w] <= ONE`; `R` is the sum of the shares of all processors;
//! * level C has bounded tardiness in what is left: `c_total[l][c] <= R`, and `c_largest[l][c] < R` or zero (which is the
//!   condition of [`crate::schedulability::tardiness::with_supply`], see [`WayProblem::c_largest`]).
//!
//! Among all such plans it takes the lowest utilisation of level C; then the most slack (`R - c_total`); then the smallest numbers in
//! the order locked, processors, level C. So ways without a benefit stay unused, and a problem has exactly one answer.
//!
//! Nothing is assumed about the tables. In particular they need not fall as the number of ways grows, although they do in the study.

use std::ops::RangeInclusive;

/// A utilisation of one processor: utilisations are integers in parts of this.
pub const ONE: u64 = 1 << 32;

/// More than any sum of shares; twice this still fits.
const FORBIDDEN: u64 = 1 << 62;

/// Maximum processors: the sum of their shares must stay far below [`FORBIDDEN`].
pub const MOST_PROCESSORS: usize = 1 << 16;

/// The demand of levels A and B of one processor.
///
/// Flat tables, entry `locked * (ways + 1) + own`: the demand when `locked` ways hold locked buffers and `own` ways belong to this
/// processor. An entry that does not exist counts as too much.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ProcessorTable {
    /// Level A with costs as level A estimates them.
    pub a: Vec<u64>,
    /// Levels A and B with costs as level B estimates them.
    pub ab_b: Vec<u64>,
    /// Levels A and B with costs as level C estimates them.
    pub ab_c: Vec<u64>,
}

/// One problem: see the module's description.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WayProblem {
    /// Ways of the cache.
    pub ways: usize,
    /// Demand of each processor.
    pub processors: Vec<ProcessorTable>,
    /// Utilisation of level C, entry `locked * (ways + 1) + ways of level C`.
    pub c_total: Vec<u64>,
    /// The requirement of tardiness on the processors' shares besides the sum, same entries: for `m` processors the sum of the `m - 1`
    /// largest utilisations and `m - 1` times the largest. Zero if nothing is required (no tasks).
    pub c_largest: Vec<u64>,
    /// Minimum number of ways of level C and the operating system.
    pub minimum_level_c: usize,
    /// Numbers of locked ways to choose from. Only these rows of the tables are read. `0..=0` if nothing is locked.
    pub locked: RangeInclusive<usize>,
}

/// An answer.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct WayPlan {
    /// Ways for locked buffers.
    pub locked: usize,
    /// Ways of each processor's levels A and B.
    pub processors: Vec<usize>,
    /// Ways of level C and the operating system.
    pub level_c: usize,
    /// Utilisation of level C, in parts of [`ONE`].
    pub objective: u64,
    /// The time that the processors leave to level C beyond that, in parts of [`ONE`].
    pub slack: u64,
}

/// Working memory of [`WayProblem::solve_into`]; keep one per thread.
#[derive(Clone, Debug, Default)]
pub struct Scratch {
    /// `processor * stride + own`: `ab_c`, or forbidden.
    shares: Vec<u64>,
    /// `processor * stride + n`: minimum sum of shares of this and all later processors with at most n ways.
    sums: Vec<u64>,
    /// Minimum ways that a processor needs, alone and together with all later ones.
    fewest: Vec<usize>,
}

impl WayProblem {
    /// A problem with tables of the right size, filled with zero: no demand.
    pub fn new(ways: usize, processors: usize) -> Self {
        let size = (ways + 1) * (ways + 1);
        let table = ProcessorTable {
            a: vec![0; size],
            ab_b: vec![0; size],
            ab_c: vec![0; size],
        };
        Self {
            ways,
            processors: vec![table; processors],
            c_total: vec![0; size],
            c_largest: vec![0; size],
            minimum_level_c: 0,
            locked: 0..=0,
        }
    }

    /// The table entry for the demand with `locked` locked ways and `own` own ones.
    pub fn index(&self, locked: usize, own: usize) -> usize {
        locked * (self.ways + 1) + own
    }

    /// The best plan, or `None` if there is none.
    pub fn solve(&self) -> Option<WayPlan> {
        let mut plan = WayPlan::default();
        self.solve_into(&mut Scratch::default(), &mut plan)
            .then_some(plan)
    }

    /// Writes the best plan into `plan`; false if there is none (`plan` is then meaningless). Allocates nothing if `scratch` and
    /// `plan` have been used for a problem of this size before.
    pub fn solve_into(&self, scratch: &mut Scratch, plan: &mut WayPlan) -> bool {
        let (stride, count) = (self.ways + 1, self.processors.len());
        let Some(most) = self.ways.checked_sub(self.minimum_level_c) else {
            return false;
        };
        if count > MOST_PROCESSORS {
            return false;
        }
        let all = count as u64 * ONE;
        scratch.shares.resize(count * stride, 0);
        scratch.sums.resize((count + 1) * stride, 0);
        scratch.sums[count * stride..(count + 1) * stride].fill(0);
        scratch.fewest.resize(count + 1, 0);
        scratch.fewest[count] = 0;
        let mut found = false;
        for locked in *self.locked.start()..=(*self.locked.end()).min(most) {
            let budget = most - locked;
            if !self.read_shares(locked, budget, scratch) {
                continue;
            }
            // No choice with this many locked ways beats the best one known.
            let cheapest = (self.minimum_level_c..=self.ways - locked - scratch.fewest[0])
                .map(|c| self.level_c(locked, c).0)
                .min();
            if cheapest.is_none_or(|u| u > all || (found && u > plan.objective)) {
                continue;
            }
            add_up(scratch, stride, count, budget);
            // Few ways of level C first: for equal utilisations that leaves the processors the largest choice.
            let mut best: Option<(u64, usize)> = None;
            for c in self.minimum_level_c..=self.ways - locked - scratch.fewest[0] {
                let rate = all.saturating_sub(scratch.sums[self.ways - locked - c]);
                let (total, largest) = self.level_c(locked, c);
                let bounded = total <= rate && (largest == 0 || largest < rate);
                if bounded && best.is_none_or(|(u, _)| total < u) {
                    best = Some((total, c));
                }
            }
            let Some((objective, level_c)) = best else {
                continue;
            };
            let slack = all - scratch.sums[self.ways - locked - level_c] - objective;
            if found && (objective, u64::MAX - slack) >= (plan.objective, u64::MAX - plan.slack) {
                continue;
            }
            found = true;
            plan.locked = locked;
            plan.level_c = level_c;
            plan.objective = objective;
            plan.slack = slack;
            read_plan(
                scratch,
                stride,
                count,
                self.ways - locked - level_c,
                &mut plan.processors,
            );
        }
        found
    }

    /// Utilisation of level C, and what tardiness requires besides it.
    fn level_c(&self, locked: usize, ways: usize) -> (u64, u64) {
        let at = self.index(locked, ways);
        (
            self.c_total.get(at).copied().unwrap_or(u64::MAX),
            self.c_largest.get(at).copied().unwrap_or(u64::MAX),
        )
    }

    /// Fills the shares that each processor loses, and the minimum ways that processors need. False if `budget` is too small.
    fn read_shares(&self, locked: usize, budget: usize, scratch: &mut Scratch) -> bool {
        let stride = self.ways + 1;
        let mut later = 0;
        for (p, table) in self.processors.iter().enumerate().rev() {
            let Some(left) = budget.checked_sub(later) else {
                return false;
            };
            let from = locked * stride;
            let row = |values: &'_ [u64]| -> (usize, usize) {
                let start = from.min(values.len());
                (start, (from + left + 1).min(values.len()))
            };
            let (a, b, c) = (row(&table.a), row(&table.ab_b), row(&table.ab_c));
            let shares = &mut scratch.shares[p * stride..(p + 1) * stride];
            let mut known = 0;
            let mut fewest = None;
            for ((&a, &b), &c) in table.a[a.0..a.1]
                .iter()
                .zip(&table.ab_b[b.0..b.1])
                .zip(&table.ab_c[c.0..c.1])
            {
                let fits = a <= ONE && b <= ONE && c <= ONE;
                shares[known] = if fits { c } else { FORBIDDEN };
                if fits && fewest.is_none() {
                    fewest = Some(known);
                }
                known += 1;
            }
            shares[known..=left].fill(FORBIDDEN);
            let Some(fewest) = fewest else {
                return false;
            };
            later += fewest;
            scratch.fewest[p] = later;
        }
        true
    }
}

/// From the last processor to the first: the minimum sum of lost shares, for every number of ways.
fn add_up(scratch: &mut Scratch, stride: usize, count: usize, budget: usize) {
    for p in (0..count).rev() {
        let (own, later) = (
            scratch.fewest[p] - scratch.fewest[p + 1],
            scratch.fewest[p + 1],
        );
        let (here, after) = scratch.sums.split_at_mut((p + 1) * stride);
        let here = &mut here[p * stride..];
        let shares = &scratch.shares[p * stride..(p + 1) * stride];
        // Ways that earlier processors need are not available to this one and the later ones.
        let most = budget - (scratch.fewest[0] - scratch.fewest[p]);
        for n in scratch.fewest[p]..=most {
            // Ways own.. of this processor paired with n - own, ... down to `later` of the others.
            let mine = &shares[own..=n - later];
            let others = &after[later..=n - own];
            here[n] = mine
                .iter()
                .zip(others.iter().rev())
                .map(|(m, o)| m + o)
                .fold(FORBIDDEN, u64::min);
        }
    }
}

/// The lexicographically smallest of the plans that reach the minimum sum with `left` ways.
fn read_plan(
    scratch: &Scratch,
    stride: usize,
    count: usize,
    mut left: usize,
    plan: &mut Vec<usize>,
) {
    plan.clear();
    for p in 0..count {
        let goal = scratch.sums[p * stride + left];
        let own = scratch.fewest[p] - scratch.fewest[p + 1];
        let ways = (own..=left - scratch.fewest[p + 1])
            .find(|&w| {
                scratch.shares[p * stride + w] + scratch.sums[(p + 1) * stride + left - w] == goal
            })
            .unwrap_or(own);
        plan.push(ways);
        left -= ways;
    }
}

#[cfg(test)]
#[path = "ways_tests.rs"]
mod tests;
