//! The best bank for each I/O buffer in the systems of the study: [`super::buffers`] with the study's cost model.
//!
//! Why it exists: mc2-rts20 tries four patterns of placement (all buffers of levels A and B in banks of level C, all in their own, or only
//! those of long or short periods) and calls the choice buffer by buffer intractable. This module makes it for every generated system, so
//! the study can say what the paper could not: how much a scheme `O|best` or `C|best` would gain.
//!
//! Only buffers into which a device writes directly need a choice. If the kernel copies from its own buffers, those stay in banks of level
//! C, so the task's buffer costs nothing in the task's own bank and always goes there.

use super::buffers::{self, BufferModel, BufferPlan, Load, Place, Search};
use super::generate::Stream;
use super::inflation::{AVERAGE, Curves};
use super::judge::Judge;
use super::parameters::{DeviceReach, LevelCConflicts, ParameterError, StudyParameters};
use super::placement::share;
use super::schemes::Scheme;
use super::study::Study;
use super::task_system::Scenario;
use super::ways::{ProcessorTable, WayPlan};
use serde::{Deserialize, Serialize};
use std::ops::{Range, RangeInclusive};

/// Partial choices that a search examines for each processor before it gives up: enough for 16 buffers on one processor even if nothing
/// can be ruled out.
pub const LIMIT: u64 = 1 << 17;

/// The cost model of a judged system, in the form needed by the search.
struct Model<'a> {
    judge: &'a Judge,
    parameters: &'a StudyParameters,
    curves: &'a Curves,
    /// Tasks with a buffer to place, for each processor.
    tasks: Vec<Vec<usize>>,
    loads: Vec<Vec<Load>>,
    /// The load in banks of level C regardless of the choice.
    base: Load,
}

impl<'a> Model<'a> {
    /// For the system of `judge`, filled in with the placement "all own".
    fn new(judge: &'a Judge, parameters: &'a StudyParameters, curves: &'a Curves) -> Self {
        let processors = parameters.processors as usize;
        let (mut tasks, mut loads) = (vec![Vec::new(); processors], vec![Vec::new(); processors]);
        for (index, &p) in judge.processors().iter().enumerate() {
            if judge.system.tasks[index].io.is_some_and(|io| io.direct) {
                let cost = &judge.costs.tasks[index];
                tasks[usize::from(p)].push(index);
                loads[usize::from(p)].push([cost.rate, share(cost.copy[AVERAGE], cost.period)]);
            }
        }
        Self {
            judge,
            parameters,
            curves,
            tasks,
            loads,
            base: [
                judge.placement.level_c_devices,
                judge.placement.level_c_share,
            ],
        }
    }
}

impl BufferModel for Model<'_> {
    fn ways(&self) -> usize {
        self.parameters.ways as usize
    }

    fn minimum_level_c(&self) -> usize {
        self.parameters.minimum_level_c as usize
    }

    fn locked(&self) -> RangeInclusive<usize> {
        self.judge.problem.locked.clone()
    }

    fn processors(&self) -> usize {
        self.tasks.len()
    }

    fn loads(&self, processor: usize) -> &[Load] {
        &self.loads[processor]
    }

    fn demand(&self, processor: usize, places: &[Place], table: &mut ProcessorTable) {
        let chosen = |wanted: Place| {
            let tasks = self.tasks[processor].iter().zip(places);
            tasks.filter(move |(_, p)| **p == wanted).map(|(&t, _)| t)
        };
        let devices = chosen(Place::Own).map(|t| self.judge.costs.tasks[t].rate);
        let slow = |task: usize| chosen(Place::LevelC).any(|t| t == task);
        self.judge.demand(
            self.parameters,
            self.curves,
            processor,
            devices.sum(),
            [0; 2],
            &slow,
            table,
        );
    }

    fn level_c(&self, load: Load, total: &mut Vec<u64>, largest: &mut Vec<u64>) {
        // At any instant at most all other processors copy there, as in `Placement::place`.
        let most = (self.parameters.processors - 1) * super::inflation::FIXED;
        self.judge.level_c(
            self.parameters,
            self.curves,
            self.base[0].saturating_add(load[0]),
            self.base[1].saturating_add(load[1]).min(most),
            total,
            largest,
        );
    }
}

/// The four patterns of the paper with these messages, the one with all buffers in their own banks first.
fn patterns(optimised: bool) -> [Scheme; 4] {
    if optimised {
        [Scheme::OAll, Scheme::OLong, Scheme::OShort, Scheme::OC]
    } else {
        [Scheme::CAll, Scheme::CLong, Scheme::CShort, Scheme::CC]
    }
}

/// How a system can be made schedulable by placing I/O buffers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Verdict {
    /// With all buffers of levels A and B in their own banks.
    Own,
    /// Not so, but with another of the paper's four patterns.
    Pattern,
    /// Only by a choice for each buffer.
    Separate,
    /// By no placement: proved.
    Impossible,
    /// No placement was found within the limit, and none was ruled out.
    Unknown,
}

impl Judge {
    /// The best place of each I/O buffer and the ways with it, for the system at hand: least utilisation of level C. Messages are
    /// `optimised` (schemes `O|...`) or in banks of level C (`C|...`).
    ///
    /// All packings of phase one are tried; the plan is the best of all, and [`Self::processors`] then gives its packing. The second value
    /// says for each task whether its buffer is in its processor's bank.
    pub fn best_placement(
        &mut self,
        parameters: &StudyParameters,
        curves: &Curves,
        optimised: bool,
        limit: u64,
    ) -> (Search, Vec<bool>) {
        let scheme = patterns(optimised)[0];
        let mut search_one = |packing: usize| {
            self.fill(parameters, curves, scheme, packing);
            let model = Model::new(self, parameters, curves);
            let search = buffers::best(&model, limit);
            let own = own_banks(&model, search.plan.as_ref());
            (search, own, packing)
        };
        let mut best = search_one(0);
        for packing in 1..Self::packings(parameters, scheme) {
            best = better(best, search_one(packing));
        }
        let (search, own, packing) = best;
        self.fill(parameters, curves, scheme, packing);
        (search, own)
    }

    /// Can any placement make the system at hand schedulable?
    pub fn somehow_schedulable(
        &mut self,
        parameters: &StudyParameters,
        curves: &Curves,
        optimised: bool,
        limit: u64,
    ) -> Verdict {
        let [all, others @ ..] = patterns(optimised);
        if self.judge(parameters, curves, all) {
            return Verdict::Own;
        }
        if others
            .into_iter()
            .any(|scheme| self.judge(parameters, curves, scheme))
        {
            return Verdict::Pattern;
        }
        let mut verdict = Verdict::Impossible;
        for packing in 0..Self::packings(parameters, all) {
            if self.is_repeated(parameters, all, packing) {
                continue;
            }
            self.fill(parameters, curves, all, packing);
            match self.separately(parameters, curves, limit) {
                Verdict::Separate => return Verdict::Separate,
                Verdict::Unknown => verdict = Verdict::Unknown,
                _ => {}
            }
        }
        verdict
    }

    /// Can individual choices for the buffers make the system schedulable with the packing that was filled in?
    fn separately(&mut self, parameters: &StudyParameters, curves: &Curves, limit: u64) -> Verdict {
        // A bound that no placement can beat: no interference and no remote copies.
        let mut tables = std::mem::take(&mut self.problem.processors);
        for (p, table) in tables.iter_mut().enumerate() {
            self.demand(parameters, curves, p, 0, [0; 2], &|_| false, table);
        }
        self.problem.processors = tables;
        if !self
            .problem
            .solve_into(&mut Default::default(), &mut WayPlan::default())
        {
            return Verdict::Impossible;
        }
        let model = Model::new(self, parameters, curves);
        let search = buffers::feasible(&model, limit);
        match (search.plan, search.complete, search.least) {
            (Some(_), ..) => Verdict::Separate,
            (None, false, Some(_)) => Verdict::Unknown,
            (None, ..) => Verdict::Impossible,
        }
    }
}

/// The better of two packings' answers, which says what is known of both.
fn better<T, U>(before: (Search, T, U), now: (Search, T, U)) -> (Search, T, U) {
    let key = |search: &Search| {
        search.plan.as_ref().map_or((u64::MAX, u64::MAX), |p| {
            (p.ways.objective, u64::MAX - p.ways.slack)
        })
    };
    let complete = before.0.complete && now.0.complete;
    let nodes = before.0.nodes + now.0.nodes;
    let least = match (before.0.least, now.0.least) {
        (Some(a), Some(b)) => Some(a.min(b)),
        (a, b) => a.or(b),
    };
    let mut best = if key(&now.0) < key(&before.0) {
        now
    } else {
        before
    };
    (best.0.complete, best.0.nodes, best.0.least) = (complete, nodes, least);
    best
}

fn own_banks(model: &Model<'_>, plan: Option<&BufferPlan>) -> Vec<bool> {
    let count = model.judge.processors().len();
    let mut own = vec![false; model.judge.system.tasks.len()];
    for (task, own) in own[..count].iter_mut().enumerate() {
        *own = model.judge.system.tasks[task].io.is_some();
    }
    for (tasks, places) in model.tasks.iter().zip(plan.map_or(&[][..], |p| &p.places)) {
        for (&task, place) in tasks.iter().zip(places) {
            own[task] = *place == Place::Own;
        }
    }
    own
}

/// How many systems of a cell each kind of placement makes schedulable; each count includes the previous one.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Gain {
    /// Systems that were judged.
    pub samples: u64,
    /// With all buffers of levels A and B in their own banks (`x|C+A/B-ALL`).
    pub own: u64,
    /// With the best of the four patterns for each system.
    pub pattern: u64,
    /// With the best place for each buffer (`x|best`).
    pub best: u64,
    /// The same plus what could not be decided within the limit.
    pub at_most: u64,
}

impl Gain {
    /// Adds what was counted elsewhere.
    pub fn add(&mut self, other: &Self) {
        self.samples += other.samples;
        self.own += other.own;
        self.pattern += other.pattern;
        self.best += other.best;
        self.at_most += other.at_most;
    }
}

/// The search decides processor by processor: a device or a copy may disturb only its own processor and, in proportion, level C.
fn separable(parameters: &StudyParameters) -> Result<(), ParameterError> {
    let readings = &parameters.readings;
    let wrong = |name, found: String, range| Err(ParameterError::Range { name, found, range });
    if readings.device_reach != DeviceReach::Bank {
        let found = format!("{:?}", readings.device_reach);
        return wrong("device_reach", found, "Bank for the best placement");
    }
    if readings.level_c_conflicts != LevelCConflicts::Time {
        let found = format!("{:?}", readings.level_c_conflicts);
        return wrong("level_c_conflicts", found, "Time for the best placement");
    }
    Ok(())
}

impl Study {
    /// Judges samples of a cell with every placement of I/O buffers; the samples are those of [`Self::run`].
    ///
    /// # Errors
    /// [`ParameterError::Missing`] if there is no such scenario or point; [`ParameterError::Range`] for readings under which a
    /// choice on one processor changes costs on another.
    pub fn gain(
        &self,
        judge: &mut Judge,
        scenario: usize,
        utilisation_index: u64,
        samples: Range<u64>,
        optimised: bool,
    ) -> Result<Gain, ParameterError> {
        let chosen = Scenario::from_index(scenario)?;
        let parameters = self.parameters();
        separable(parameters)?;
        // Refuses points that do not exist.
        self.run(judge, scenario, utilisation_index, 0..0, &[])?;
        let utilisation = parameters.utilisation(utilisation_index);
        let mut gain = Gain::default();
        for sample in samples {
            let mut stream = Stream::new(parameters.seed, scenario, utilisation_index, sample);
            judge.generate(parameters, self.curves(), chosen, utilisation, &mut stream);
            let verdict = judge.somehow_schedulable(parameters, self.curves(), optimised, LIMIT);
            gain.samples += 1;
            gain.own += u64::from(verdict == Verdict::Own);
            gain.pattern += u64::from(matches!(verdict, Verdict::Own | Verdict::Pattern));
            gain.best += u64::from(!matches!(verdict, Verdict::Impossible | Verdict::Unknown));
            gain.at_most += u64::from(verdict != Verdict::Impossible);
        }
        Ok(gain)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn study() -> Study {
        Study::new(StudyParameters::default()).expect("valid")
    }

    fn generate(study: &Study, judge: &mut Judge, scenario: usize, point: u64, sample: u64) {
        let parameters = study.parameters();
        let mut stream = Stream::new(parameters.seed, scenario, point, sample);
        let chosen = Scenario::from_index(scenario).expect("exists");
        let utilisation = parameters.utilisation(point);
        judge.generate(parameters, study.curves(), chosen, utilisation, &mut stream);
    }

    /// Every packing and placement, with a bank map of its own and the way optimiser.
    fn brute_force(judge: &mut Judge, study: &Study, optimised: bool) -> Option<(u64, u64)> {
        let scheme = patterns(optimised)[0];
        (0..Judge::packings(study.parameters(), scheme))
            .filter_map(|packing| brute_force_one(judge, study, scheme, packing))
            .min_by_key(|&(u, s)| (u, u64::MAX - s))
    }

    fn brute_force_one(
        judge: &mut Judge,
        study: &Study,
        scheme: Scheme,
        packing: usize,
    ) -> Option<(u64, u64)> {
        let (parameters, curves) = (study.parameters(), study.curves());
        judge.fill(parameters, curves, scheme, packing);
        let placed = judge.placement.clone();
        let processors = judge.processors().to_vec();
        let direct: Vec<usize> = (0..processors.len())
            .filter(|&t| judge.system.tasks[t].io.is_some_and(|io| io.direct))
            .collect();
        let mut best: Option<(u64, u64)> = None;
        for mask in 0..1u32 << direct.len() {
            let mut placement = placed.clone();
            let mut slow = vec![false; processors.len()];
            for (bit, &task) in direct.iter().enumerate() {
                if mask >> bit & 1 == 0 {
                    continue;
                }
                let cost = judge.costs.tasks[task];
                slow[task] = true;
                placement.bank_devices[usize::from(processors[task])] -= cost.rate;
                placement.level_c_devices += cost.rate;
                placement.level_c_share += share(cost.copy[AVERAGE], cost.period);
            }
            let mut problem = judge.problem.clone();
            for (p, table) in problem.processors.iter_mut().enumerate() {
                let devices = placement.bank_devices[p];
                judge.demand(parameters, curves, p, devices, [0; 2], &|t| slow[t], table);
            }
            judge.level_c(
                parameters,
                curves,
                placement.level_c_devices,
                placement.level_c_share,
                &mut problem.c_total,
                &mut problem.c_largest,
            );
            if let Some(plan) = problem.solve()
                && best.is_none_or(|(u, s)| {
                    (plan.objective, u64::MAX - plan.slack) < (u, u64::MAX - s)
                })
            {
                best = Some((plan.objective, plan.slack));
            }
        }
        best
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(150))]

        /// The search finds what trying everything finds, and no pattern of the paper is better.
        #[test]
        fn equals_brute_force_on_generated_systems(
            scenario in 0usize..648,
            point in 6u64..24,
            sample in 0u64..1000,
            optimised: bool,
        ) {
            let study = study();
            let mut judge = study.judge();
            generate(&study, &mut judge, scenario, point, sample);
            let (parameters, curves) = (study.parameters(), study.curves());
            let (search, own) = judge.best_placement(parameters, curves, optimised, u64::MAX);
            prop_assert!(search.complete);
            prop_assert_eq!(own.len(), judge.system.tasks.len());
            let found = search.plan.as_ref().map(|p| (p.ways.objective, p.ways.slack));
            for scheme in patterns(optimised) {
                if judge.judge(parameters, curves, scheme) {
                    prop_assert!(found.is_some_and(|f| f.0 <= judge.plan.objective), "{}", scheme.name());
                }
            }
            let verdict = judge.somehow_schedulable(parameters, curves, optimised, LIMIT);
            prop_assert_eq!(matches!(verdict, Verdict::Own | Verdict::Pattern | Verdict::Separate), found.is_some());
            let buffers = judge.system.tasks[..judge.processors().len()].iter().filter(|t| t.io.is_some_and(|io| io.direct)).count();
            if buffers <= 8 {
                prop_assert_eq!(found, brute_force(&mut judge, &study, optimised));
            }
        }

        /// The search's assumption: costs only rise when an open buffer is placed, or when level C's banks get more load.
        #[test]
        fn the_cost_model_keeps_the_contract(scenario in 0usize..648, point in 6u64..24, sample in 0u64..1000, choice in prop::collection::vec(0u8..3, 64)) {
            let study = study();
            let mut judge = study.judge();
            generate(&study, &mut judge, scenario, point, sample);
            judge.fill(study.parameters(), study.curves(), Scheme::OAll, 0);
            let model = Model::new(&judge, study.parameters(), study.curves());
            let (mut before, mut after) = (ProcessorTable::default(), ProcessorTable::default());
            for p in 0..4 {
                let mut places: Vec<Place> = choice.iter().cycle().take(model.loads(p).len())
                    .map(|c| [Place::Own, Place::LevelC, Place::Open][usize::from(*c)]).collect();
                model.demand(p, &places, &mut before);
                if let Some(open) = places.iter().position(|p| *p == Place::Open) {
                    for place in [Place::Own, Place::LevelC] {
                        places[open] = place;
                        model.demand(p, &places, &mut after);
                        for (b, a) in [(&before.a, &after.a), (&before.ab_b, &after.ab_b), (&before.ab_c, &after.ab_c)] {
                            prop_assert!(b.iter().zip(a).all(|(b, a)| b <= a));
                        }
                    }
                }
            }
            let tables = |load| {
                let mut tables = (Vec::new(), Vec::new());
                model.level_c(load, &mut tables.0, &mut tables.1);
                tables
            };
            let (few, many) = (tables([1_000_000, 1000]), tables([9_000_000, 90_000]));
            prop_assert!(few.0.iter().zip(&many.0).all(|(f, m)| f <= m));
            prop_assert!(few.1.iter().zip(&many.1).all(|(f, m)| f <= m));
        }
    }

    #[test]
    fn counts_contain_each_other() {
        let study = study();
        let mut judge = study.judge();
        let mut sum = Gain::default();
        for point in [10, 12, 14] {
            let gain = study
                .gain(&mut judge, 300, point, 0..16, true)
                .expect("exists");
            let all = study
                .run(&mut judge, 300, point, 0..16, &[Scheme::OAll])
                .expect("exists");
            assert_eq!(gain.own, all.schedulable[Scheme::OAll.index()]);
            sum.add(&gain);
        }
        assert_eq!(sum.samples, 48);
        assert!(sum.own <= sum.pattern && sum.pattern <= sum.best && sum.best <= sum.at_most);
        assert!(study.gain(&mut judge, 648, 0, 0..1, true).is_err());
        assert!(study.gain(&mut judge, 0, 60, 0..1, true).is_err());
    }
}
