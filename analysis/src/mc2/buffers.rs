//! The best bank for each individual I/O buffer of levels A and B, together with the ways of the cache.
//!
//! Why it exists: mc2-rts20, section 6.1, calls this choice intractable, because a binary variable for each buffer in the mixed-integer
//! program of the ways explodes, and tries four patterns instead. The choice has a structure that makes it tractable:
//! * What a buffer costs on a processor depends only on the choices of that processor: its task copies slower from a bank of level
//!   C, and in the processor's own bank the device disturbs all tasks of the processor.
//! * All choices affect level C only through two sums: the rate at which devices write into its banks, and the time that processors
//!   spend copying there.
//!
//! So for each processor and number of ways, only undominated choices matter, compared by three values: the two loads on level C's banks
//! and the share of the processor that they take from level C. They are a short list, found by branch and bound. Dynamic programming over
//! the processors joins the lists, and level C is judged last. The answer is exact; if a limit on the work is hit, it comes with a bound
//! on what an exact answer could gain.
//!
//! It deliberately does not know how costs are computed: [`BufferModel`] provides them.

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
    /// Not decided: its task has the lower of its costs in the two places, and its device causes no interference.
    Open,
}

/// The load of buffers on the banks of level C: the rate at which devices write there, and the time that processors copy there, each in a
/// unit chosen by the model.
pub type Load = [u64; 2];

/// The costs of the choice.
///
/// Contract: no entry of a table falls when an [`Place::Open`] becomes something else, or when a part of the load of
/// [`level_c`](Self::level_c) rises. Utilisations are in parts of [`ONE`], rounded up.
pub trait BufferModel {
    /// Ways of the cache.
    fn ways(&self) -> usize;
    /// Minimum number of ways of level C.
    fn minimum_level_c(&self) -> usize;
    /// Numbers of locked ways to choose from.
    fn locked(&self) -> RangeInclusive<usize>;
    /// Processors.
    fn processors(&self) -> usize;
    /// For each buffer of levels A and B on a processor: its load on level C's banks if it is there.
    fn loads(&self, processor: usize) -> &[Load];
    /// The demand of levels A and B of a processor with its buffers in `places`; tables as in [`ProcessorTable`].
    fn demand(&self, processor: usize, places: &[Place], table: &mut ProcessorTable);
    /// Level C when buffers of levels A and B put `load` on its banks: total, and what tardiness requires, as in
    /// [`WayProblem`](super::ways::WayProblem).
    fn level_c(&self, load: Load, total: &mut Vec<u64>, largest: &mut Vec<u64>);
}

/// An answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BufferPlan {
    /// For each processor the places of its buffers, none of them open.
    pub places: Vec<Vec<Place>>,
    /// The ways.
    pub ways: WayPlan,
}

/// The result of the search.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Search {
    /// The best plan found: lowest utilisation of level C, then most slack.
    pub plan: Option<BufferPlan>,
    /// No plan has a lower utilisation of level C; `None`: there is no plan. Equal to the plan's if the search was complete.
    pub least: Option<u64>,
    /// Partial choices examined.
    pub nodes: u64,
    /// The limit was not hit: the answer is exact.
    pub complete: bool,
}

/// An undominated choice on one processor for one number of ways.
#[derive(Clone, Copy, Debug)]
struct Choice {
    /// Its load on level C's banks.
    load: Load,
    /// Its demand on level C.
    share: u64,
    /// Which leaf of the search.
    leaf: usize,
}

/// A choice on this and all later processors.
#[derive(Clone, Copy, Debug)]
struct Joined {
    load: Load,
    share: u64,
    ways: usize,
    leaf: usize,
    /// In the list of the later processors with the remaining ways.
    next: usize,
}

/// A point that is superfluous if another has smaller values throughout.
trait Point {
    fn values(&self) -> [u64; 3];
}

impl Point for Choice {
    fn values(&self) -> [u64; 3] {
        [self.load[0], self.load[1], self.share]
    }
}

impl Point for Joined {
    fn values(&self) -> [u64; 3] {
        [self.load[0], self.load[1], self.share]
    }
}

/// Points none of which dominates another.
type Front<P> = Vec<P>;

fn at_most(a: [u64; 3], b: [u64; 3]) -> bool {
    a.iter().zip(b).all(|(a, b)| *a <= b)
}

fn beaten<P: Point>(front: &Front<P>, values: [u64; 3]) -> bool {
    front.iter().any(|p| at_most(p.values(), values))
}

fn insert<P: Point>(front: &mut Front<P>, point: P) {
    let values = point.values();
    if !beaten(front, values) {
        front.retain(|p| !at_most(values, p.values()));
        front.push(point);
    }
}

fn plus(a: Load, b: Load) -> Load {
    [a[0].saturating_add(b[0]), a[1].saturating_add(b[1])]
}

/// Lists for each `locked * (ways + 1) + own`.
struct Lists {
    fronts: Vec<Front<Choice>>,
    /// Choices that were reached.
    leaves: Vec<Vec<Place>>,
}

/// The best places and ways. At most `limit` partial choices are examined for each processor.
///
/// The answer depends only on the model: among equals, the first one found is kept.
pub fn best(model: &impl BufferModel, limit: u64) -> Search {
    search(model, limit, false)
}

/// Any places and ways that satisfy all constraints: faster than [`best`] if only that matters. [`Search::least`] is then meaningful only
/// as `None`: there is no plan.
pub fn feasible(model: &impl BufferModel, limit: u64) -> Search {
    search(model, limit, true)
}

fn search(model: &impl BufferModel, limit: u64, any: bool) -> Search {
    let mut nodes = 0;
    let mut complete = true;
    let (mut reached, mut possible) = (Vec::new(), Vec::new());
    for processor in 0..model.processors() {
        let mut search = Processor::new(model, processor, limit);
        let mut places = vec![Place::Open; model.loads(processor).len()];
        search.descend(0, [0; 2], &mut places);
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
    let plan = join(model, &reached, any);
    let least = if complete {
        plan.as_ref().map(|p| p.ways.objective)
    } else {
        join(model, &possible, any).map(|p| p.ways.objective)
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
    /// The same with what abandoned branches might contain.
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

    /// `load`: the load of the decided buffers (those before `next`) on level C's banks.
    fn descend(&mut self, next: usize, load: Load, places: &mut Vec<Place>) {
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
                load,
                share,
                leaf: self.leaves.len(),
            };
            if leaf || given_up {
                insert(&mut self.possible[at], point);
            }
            if !beaten(&self.reached[at], point.values()) {
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
                self.model.loads(self.processor)[next]
            } else {
                [0; 2]
            };
            places[next] = place;
            self.descend(next + 1, plus(load, more), places);
        }
        places[next] = Place::Open;
    }
}

/// The best of all combinations of the processors' lists and of level C; with `any`, the first one found.
fn join<M: BufferModel>(model: &M, lists: &[Lists], any: bool) -> Option<BufferPlan> {
    let (ways, count) = (model.ways(), lists.len());
    let stride = ways + 1;
    let all = count as u64 * ONE;
    let tables = |load: Load| {
        let mut tables = (Vec::new(), Vec::new());
        model.level_c(load, &mut tables.0, &mut tables.1);
        tables
    };
    // No load makes level C cheaper than none.
    let floor = tables([0; 2]);
    let mut level_c: BTreeMap<Load, (Vec<u64>, Vec<u64>)> = BTreeMap::new();
    let mut best: Option<((u64, u64), BufferPlan)> = None;
    let most = ways.checked_sub(model.minimum_level_c())?;
    for locked in *model.locked().start()..=(*model.locked().end()).min(most) {
        let joined = add_up(lists, locked, stride, most - locked);
        for c in (model.minimum_level_c()..=ways - locked).rev() {
            let left = ways - locked - c;
            let at = locked * stride + c;
            let value = |t: &[u64]| t.get(at).copied().unwrap_or(u64::MAX);
            let bounded = |(total, largest): (u64, u64), share: u64| {
                let rate = all - share;
                total <= rate && (largest == 0 || largest < rate)
            };
            let least = (value(&floor.0), value(&floor.1));
            if best.as_ref().is_some_and(|((u, _), _)| least.0 > *u) {
                continue;
            }
            for point in &joined[0][left] {
                if !bounded(least, point.share) {
                    continue;
                }
                let (total, largest) = level_c
                    .entry(point.load)
                    .or_insert_with(|| tables(point.load));
                let needs = (value(total), value(largest));
                if !bounded(needs, point.share) {
                    continue;
                }
                // Lowest utilisation, then lowest share of levels A and B: for equal utilisations that is the most slack.
                let key = (needs.0, point.share);
                if best.as_ref().is_none_or(|(b, _)| key < *b) {
                    let (places, processors) = read(lists, &joined, left, *point);
                    let ways = WayPlan {
                        locked,
                        processors,
                        level_c: c,
                        objective: needs.0,
                        slack: all - point.share - needs.0,
                    };
                    best = Some((key, BufferPlan { places, ways }));
                    if any {
                        return best.map(|(_, plan)| plan);
                    }
                }
            }
        }
    }
    best.map(|(_, plan)| plan)
}

/// `[processor][n]`: what this and all later processors can choose with at most `n` ways.
fn add_up(lists: &[Lists], locked: usize, stride: usize, budget: usize) -> Vec<Vec<Front<Joined>>> {
    let nobody = Joined {
        load: [0; 2],
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
                                load: plus(choice.load, other.load),
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
