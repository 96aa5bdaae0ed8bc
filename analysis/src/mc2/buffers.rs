//! The best bank for every I/O buffer of levels A and B by itself, together with the ways of the cache.
//!
//! Why it exists: mc2-rts20, section 6.1, calls this choice intractable, because a binary variable for each buffer in the mixed-integer
//! program of the ways explodes, and tries four patterns instead. The choice has a structure that makes it tractable:
//! * What a buffer costs on a processor depends only on the choices of that processor: its task copies slower from a bank of level
//!   C, and in the processor's own bank the device disturbs all tasks of the processor.
//! * Level C meets all choices only in one sum: the rate at which devices write into its banks.
//!
//! So for each processor and number of ways only those choices matter that no other one beats in both, the rate that they direct
//! at level C and the share that they take from level C: a short list, found by branch and bound. Dynamic programming over the
//! processors joins the lists, and level C is looked at last. The answer is exact; if a limit on the work is hit, a bound on
//! what an exact answer could gain comes with it.
//!
//! It deliberately knows nothing of how costs come about: [`BufferModel`] says them.

use super::ways::{ONE, ProcessorTable, WayPlan};
use std::collections::BTreeMap;
use std::ops::RangeInclusive;

/// Where a buffer lies.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Place {
    /// In the bank of its task's processor.
    Own,
    /// In a bank of level C.
    LevelC,
    /// Not decided: its task has the least cost that it has in either place, and its device disturbs nobody.
    Open,
}

/// What the choice costs.
///
/// Contract: no entry of a table falls when an [`Place::Open`] becomes something else, or when the rate of
/// [`level_c`](Self::level_c) rises. Utilisations are in parts of [`ONE`], rounded up.
pub trait BufferModel {
    /// Ways of the cache.
    fn ways(&self) -> usize;
    /// Least number of ways of level C.
    fn minimum_level_c(&self) -> usize;
    /// Numbers of locked ways to choose from.
    fn locked(&self) -> RangeInclusive<usize>;
    /// Processors.
    fn processors(&self) -> usize;
    /// For each buffer of levels A and B on a processor: the rate at which devices write into it, in one unit for all.
    fn rates(&self, processor: usize) -> &[u64];
    /// What levels A and B of a processor demand with its buffers in `places`; tables as in [`ProcessorTable`].
    fn demand(&self, processor: usize, places: &[Place], table: &mut ProcessorTable);
    /// Level C when `rate` is written into its banks for levels A and B: total and what tardiness asks, as in
    /// [`WayProblem`](super::ways::WayProblem).
    fn level_c(&self, rate: u64, total: &mut Vec<u64>, largest: &mut Vec<u64>);
}

/// An answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BufferPlan {
    /// For each processor the places of its buffers, none of them open.
    pub places: Vec<Vec<Place>>,
    /// The ways.
    pub ways: WayPlan,
}

/// What the search found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Search {
    /// The best plan that was found: least utilisation of level C, then most slack.
    pub plan: Option<BufferPlan>,
    /// No plan has a smaller utilisation of level C; `None`: there is no plan. Equal to the plan's where the search was complete.
    pub least: Option<u64>,
    /// Partial choices that were looked at.
    pub nodes: u64,
    /// The limit was not hit: the answer is exact.
    pub complete: bool,
}

/// A choice on one processor for one number of ways that nothing beats.
#[derive(Clone, Copy, Debug)]
struct Choice {
    /// What it directs at level C.
    rate: u64,
    /// What it takes from level C.
    share: u64,
    /// Which leaf of the search.
    leaf: usize,
}

/// A choice on this and all later processors.
#[derive(Clone, Copy, Debug)]
struct Joined {
    rate: u64,
    share: u64,
    ways: usize,
    leaf: usize,
    /// In the list of the later processors with the remaining ways.
    next: usize,
}

/// Something that a smaller value of both makes superfluous.
trait Point {
    fn values(&self) -> (u64, u64);
}

impl Point for Choice {
    fn values(&self) -> (u64, u64) {
        (self.rate, self.share)
    }
}

impl Point for Joined {
    fn values(&self) -> (u64, u64) {
        (self.rate, self.share)
    }
}

/// Points of which none beats another, by rising rate (and so by falling share).
type Front<P> = Vec<P>;

fn beaten<P: Point>(front: &Front<P>, (rate, share): (u64, u64)) -> bool {
    // The last point with at most this rate has the least share among them.
    let after = front.partition_point(|p| p.values().0 <= rate);
    after > 0 && front[after - 1].values().1 <= share
}

fn insert<P: Point>(front: &mut Front<P>, point: P) {
    let (rate, share) = point.values();
    if beaten(front, (rate, share)) {
        return;
    }
    let from = front.partition_point(|p| p.values().0 < rate);
    let to = from + front[from..].partition_point(|p| p.values().1 >= share);
    front.splice(from..to, [point]);
}

/// Lists for each `locked * (ways + 1) + own`.
struct Lists {
    fronts: Vec<Front<Choice>>,
    /// Choices that were reached.
    leaves: Vec<Vec<Place>>,
}

/// The best places and ways. At most `limit` partial choices are looked at for each processor.
///
/// The answer depends only on the model: what is found first among equals stays.
pub fn best(model: &impl BufferModel, limit: u64) -> Search {
    let mut nodes = 0;
    let mut complete = true;
    let (mut reached, mut possible) = (Vec::new(), Vec::new());
    for processor in 0..model.processors() {
        let mut search = Processor::new(model, processor, limit);
        let mut places = vec![Place::Open; model.rates(processor).len()];
        search.descend(0, 0, &mut places);
        nodes += search.nodes;
        complete &= search.nodes <= limit;
        possible.push(Lists {
            fronts: search.possible,
            leaves: Vec::new(),
        });
        reached.push(Lists {
            fronts: search.reached,
            leaves: search.leaves,
        });
    }
    let plan = join(model, &reached);
    let least = if complete {
        plan.as_ref().map(|p| p.ways.objective)
    } else {
        join(model, &possible).map(|p| p.ways.objective)
    };
    Search {
        plan,
        least,
        nodes,
        complete,
    }
}

/// Branch and bound over the buffers of one processor.
struct Processor<'a, M> {
    model: &'a M,
    processor: usize,
    limit: u64,
    nodes: u64,
    table: ProcessorTable,
    /// Whether a number of ways can be given to this processor at all.
    wanted: Vec<bool>,
    reached: Vec<Front<Choice>>,
    /// The same with what given-up branches might hold.
    possible: Vec<Front<Choice>>,
    leaves: Vec<Vec<Place>>,
}

impl<'a, M: BufferModel> Processor<'a, M> {
    fn new(model: &'a M, processor: usize, limit: u64) -> Self {
        let stride = model.ways() + 1;
        let wanted: Vec<bool> = (0..stride * stride)
            .map(|at| {
                let (locked, own) = (at / stride, at % stride);
                model.locked().contains(&locked)
                    && locked + own + model.minimum_level_c() <= model.ways()
            })
            .collect();
        Self {
            model,
            processor,
            limit,
            nodes: 0,
            table: ProcessorTable::default(),
            reached: vec![Vec::new(); wanted.len()],
            possible: vec![Vec::new(); wanted.len()],
            wanted,
            leaves: Vec::new(),
        }
    }

    /// `rate`: what the decided buffers (those before `next`) direct at level C.
    fn descend(&mut self, next: usize, rate: u64, places: &mut Vec<Place>) {
        self.nodes += 1;
        let (leaf, given_up) = (next == places.len(), self.nodes > self.limit);
        let mut table = std::mem::take(&mut self.table);
        self.model.demand(self.processor, places, &mut table);
        let mut useful = false;
        for at in 0..self.wanted.len() {
            let value = |t: &[u64]| t.get(at).copied().unwrap_or(u64::MAX);
            let share = value(&table.ab_c);
            let fits = value(&table.a) <= ONE && value(&table.ab_b) <= ONE && share <= ONE;
            if !self.wanted[at] || !fits {
                continue;
            }
            let point = Choice {
                rate,
                share,
                leaf: self.leaves.len(),
            };
            if leaf || given_up {
                insert(&mut self.possible[at], point);
            }
            if !beaten(&self.reached[at], (rate, share)) {
                useful = true;
                if leaf {
                    insert(&mut self.reached[at], point);
                }
            }
        }
        self.table = table;
        if leaf && useful {
            self.leaves.push(places.clone());
        }
        if leaf || given_up || !useful {
            return;
        }
        for place in [Place::Own, Place::LevelC] {
            let more = if place == Place::LevelC {
                self.model.rates(self.processor)[next]
            } else {
                0
            };
            places[next] = place;
            self.descend(next + 1, rate.saturating_add(more), places);
        }
        places[next] = Place::Open;
    }
}

/// The best of all combinations of the processors' lists, and of level C.
fn join<M: BufferModel>(model: &M, lists: &[Lists]) -> Option<BufferPlan> {
    let (ways, count) = (model.ways(), lists.len());
    let stride = ways + 1;
    let all = count as u64 * ONE;
    let mut level_c: BTreeMap<u64, (Vec<u64>, Vec<u64>)> = BTreeMap::new();
    let mut best: Option<((u64, u64), BufferPlan)> = None;
    let most = ways.checked_sub(model.minimum_level_c())?;
    for locked in *model.locked().start()..=(*model.locked().end()).min(most) {
        let joined = add_up(lists, locked, stride, most - locked);
        for c in model.minimum_level_c()..=ways - locked {
            let left = ways - locked - c;
            // By rising rate: utilisations of level C only rise, so after one that is worse nothing better comes.
            for point in &joined[0][left] {
                let (total, largest) = level_c.entry(point.rate).or_insert_with(|| {
                    let mut tables = (Vec::new(), Vec::new());
                    model.level_c(point.rate, &mut tables.0, &mut tables.1);
                    tables
                });
                let at = locked * stride + c;
                let value = |t: &[u64]| t.get(at).copied().unwrap_or(u64::MAX);
                let (total, largest) = (value(total), value(largest));
                if best
                    .as_ref()
                    .is_some_and(|((objective, _), _)| total > *objective)
                {
                    break;
                }
                let rate = all - point.share;
                if total > rate || (largest > 0 && largest >= rate) {
                    continue;
                }
                // Least utilisation, then least share of levels A and B: with equal utilisations that is the most slack.
                let key = (total, point.share);
                if best.as_ref().is_none_or(|(b, _)| key < *b) {
                    let (places, processors) = read(lists, &joined, left, *point);
                    best = Some((
                        key,
                        BufferPlan {
                            places,
                            ways: WayPlan {
                                locked,
                                processors,
                                level_c: c,
                                objective: total,
                                slack: rate - total,
                            },
                        },
                    ));
                }
            }
        }
    }
    best.map(|(_, plan)| plan)
}

/// `[processor][n]`: what this and all later processors can choose with at most `n` ways.
fn add_up(lists: &[Lists], locked: usize, stride: usize, budget: usize) -> Vec<Vec<Front<Joined>>> {
    let nobody = Joined {
        rate: 0,
        share: 0,
        ways: 0,
        leaf: 0,
        next: 0,
    };
    let mut joined = vec![vec![vec![nobody]; budget + 1]];
    for list in lists.iter().rev() {
        let later = &joined[joined.len() - 1];
        let here: Vec<Front<Joined>> = (0..=budget)
            .map(|n| {
                let mut front = Vec::new();
                for ways in 0..=n {
                    for choice in &list.fronts[locked * stride + ways] {
                        for (next, other) in later[n - ways].iter().enumerate() {
                            let point = Joined {
                                rate: choice.rate.saturating_add(other.rate),
                                share: choice.share + other.share,
                                ways,
                                leaf: choice.leaf,
                                next,
                            };
                            insert(&mut front, point);
                        }
                    }
                }
                front
            })
            .collect();
        joined.push(here);
    }
    joined.reverse();
    joined
}

/// Places and ways of a joined choice.
fn read(
    lists: &[Lists],
    joined: &[Vec<Front<Joined>>],
    mut left: usize,
    mut point: Joined,
) -> (Vec<Vec<Place>>, Vec<usize>) {
    let (mut places, mut ways) = (Vec::new(), Vec::new());
    for (processor, list) in lists.iter().enumerate() {
        places.push(list.leaves.get(point.leaf).cloned().unwrap_or_default());
        ways.push(point.ways);
        left -= point.ways;
        point = joined[processor + 1][left][point.next];
    }
    (places, ways)
}

#[cfg(test)]
#[path = "buffers_tests.rs"]
mod tests;
