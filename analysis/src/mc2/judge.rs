//! One system under one scheme: from costs to the tables of phase three, and its verdict.
//!
//! Why it exists: this is the study's inner loop. What schemes share (costs, the two partitions, interrupts) is computed once per system;
//! what differs is a few sums. Memory is reused from system to system.
//!
//! The tests, with costs of [`super::inflation`]:
//! * level A on its processor by costs of level A, levels A and B by costs of level B: harmonic periods and synchronous starts, so
//!   a utilisation of one suffices (tables, and rate-monotonic priorities);
//! * level C by the condition of bounded tardiness in what is left ([`crate::schedulability::tardiness::with_supply`]).
//!
//! Overheads: each job pays for two scheduling decisions and a release; each job of levels A and B on processor 0 pays for all interrupts
//! that can come within its period (section 6.1), level C loses them from processor 0's capacity (processor-centric accounting,
//! Brandenburg et al. 2011); a job of level B loads its cache again for every release instant of a shorter period on its processor
//! (synchronous harmonic releases coincide), a job of level C once.

use super::generate::{self, Stream};
use super::inflation::{
    AVERAGE, Curves, FIXED, GREATEST, SystemCosts, WAYS, locking, portion, scaled,
};
use super::parameters::{DeviceReach, MILLION, PackingFailure, PlainMessages, StudyParameters};
use super::partition::{Packing, Weight};
use super::placement::{LEVEL_C, Placement, bank_of, long_periods};
use super::schemes::{Messages, Scheme};
use super::task_system::{Level, Scenario, TaskSystem};
use super::ways::{ONE, ProcessorTable, Scratch, WayPlan, WayProblem};

/// Demand of one processor over the longest period, in ns: by number of own ways, and additionally by number of locked ways.
#[derive(Clone, Copy, Debug)]
struct Demand {
    own: [u64; WAYS],
    locked: [u64; WAYS],
}

const NOTHING: Demand = Demand {
    own: [0; WAYS],
    locked: [0; WAYS],
};

/// Judges systems of one parameter set. Holds working memory: use one per thread.
#[derive(Clone, Debug)]
pub struct Judge {
    /// The system at hand.
    pub system: TaskSystem,
    /// Its costs.
    pub costs: SystemCosts,
    /// The plan of the last schedulable verdict.
    pub plan: WayPlan,
    /// The problem of the last verdict.
    pub problem: WayProblem,
    /// Where buffers were under it.
    pub placement: Placement,
    packings: [Packing; 3],
    /// No scheme can schedule the system, whatever the ways.
    hopeless: bool,
    /// The packing that [`Self::problem`] is for.
    packed: usize,
    halves: Vec<(u32, u32)>,
    weights: Vec<Weight>,
    long: Vec<bool>,
    order: Vec<u32>,
    /// Periods of levels A and B with all interrupts that can come within one.
    interrupts: Vec<(u64, u64)>,
    /// Share of processor 0 for interrupts on average, in parts of [`ONE`].
    interrupt_share: u64,
    /// Times for messages of each task: without and with locked ways.
    message_ends: Vec<[u64; 2]>,
    /// Tasks that are exposed to conflicts all the time because no technique confines those of their messages.
    exposed: Vec<bool>,
    /// Decay over locked ways.
    locked: [u64; WAYS],
    /// Shortest period of each processor, for each packing.
    shortest: [Vec<u64>; 3],
    scratch: Scratch,
}

/// Packings: every task by itself, whole chains together, halves of chains together.
const ALONE: usize = 0;
const WHOLE: usize = 1;
const HALVES: usize = 2;

const A: usize = 0;
const B: usize = 1;
const C: usize = 2;

impl Judge {
    /// For systems of these parameters, which must be valid.
    pub fn new(parameters: &StudyParameters) -> Self {
        Self {
            system: TaskSystem::default(),
            costs: SystemCosts::default(),
            plan: WayPlan::default(),
            problem: WayProblem::new(parameters.ways as usize, parameters.processors as usize),
            placement: Placement::default(),
            packings: Default::default(),
            packed: ALONE,
            hopeless: false,
            halves: Vec::new(),
            weights: Vec::new(),
            long: Vec::new(),
            order: Vec::new(),
            interrupts: Vec::new(),
            interrupt_share: 0,
            message_ends: Vec::new(),
            exposed: Vec::new(),
            locked: [FIXED; WAYS],
            shortest: Default::default(),
            scratch: Scratch::default(),
        }
    }

    /// Generates a system, and computes what all schemes share.
    pub fn generate(
        &mut self,
        parameters: &StudyParameters,
        curves: &Curves,
        scenario: Scenario,
        utilisation: u64,
        stream: &mut Stream,
    ) {
        generate::generate(parameters, scenario, utilisation, stream, &mut self.system);
        self.prepare(parameters, curves);
    }

    /// Computes what all schemes share, for [`Self::system`].
    pub fn prepare(&mut self, parameters: &StudyParameters, curves: &Curves) {
        let processors = parameters.processors as usize;
        self.costs.compute(parameters, curves, &self.system);
        self.hopeless = self.hopeless(parameters);
        long_periods(
            &self.system,
            parameters.readings.period_half,
            &mut self.long,
            &mut self.order,
        );
        self.interrupts(parameters);
        let fair = (parameters.ways / (parameters.processors + 1)) as usize;
        let shortest = self.interrupts.iter().map(|i| i.0).min().unwrap_or(1);
        self.weights.clear();
        for task in self.costs.tasks.iter().take_while(|t| t.level != Level::C) {
            let factor = task.factor(GREATEST, curves, 0, 0);
            let decay = curves.way(task.way_curve)[fair];
            let preemptions = if task.level == Level::B {
                task.period / shortest - 1
            } else {
                0
            };
            let cost = task.cost(GREATEST, factor, decay)
                + task.kernel[GREATEST]
                + preemptions * task.reload[GREATEST]
                + u64::from(task.intermediate)
                    * portion(task.copy[GREATEST], parameters.copy_inflation);
            let b = share(cost, task.period);
            self.weights.push(Weight {
                a: if task.level == Level::A {
                    portion(b, parameters.level_a_over_b)
                } else {
                    0
                },
                b,
                interrupts: share(in_period(&self.interrupts, task.period), task.period),
            });
        }
        self.halves.clear();
        for &(first, count) in &self.system.chains {
            let half = count.div_ceil(2);
            self.halves
                .extend([(first, half), (first + half, count - half)]);
        }
        let groups = [&[][..], &self.system.chains, &self.halves];
        for (packing, groups) in self.packings.iter_mut().zip(groups) {
            packing.pack(processors, &self.weights, groups);
        }
        for (packing, shortest) in self.packings.iter().zip(&mut self.shortest) {
            shortest.clear();
            shortest.resize(processors, u64::MAX);
            for (&p, task) in packing.processor.iter().zip(&self.costs.tasks) {
                let shortest = &mut shortest[usize::from(p)];
                *shortest = task.period.min(*shortest);
            }
        }
    }

    /// Whether idle costs alone, even without any time for messages, need more than all processors at some level. Every cost of every
    /// scheme is above that, so this only saves time.
    fn hopeless(&self, parameters: &StudyParameters) -> bool {
        let all = parameters.processors * ONE;
        let (mut a, mut b, mut c) = (0u64, 0u64, 0u64);
        for task in &self.costs.tasks {
            // Rounded down: a lower bound.
            let least =
                |which: usize| (task.idle[which] - task.messages[which]) * ONE / task.period;
            c += least(AVERAGE);
            if task.level != Level::C {
                b += least(GREATEST);
            }
            if task.level == Level::A {
                a += least(GREATEST) / MILLION * parameters.level_a_over_b;
            }
        }
        a > all || b > all || c > all
    }

    fn interrupts(&mut self, parameters: &StudyParameters) {
        self.interrupts.clear();
        for task in self.costs.tasks.iter().take_while(|t| t.level != Level::C) {
            if !self
                .interrupts
                .iter()
                .any(|&(period, _)| period == task.period)
            {
                self.interrupts.push((task.period, 0));
            }
        }
        let average = portion(parameters.interrupt, parameters.average_interference);
        self.interrupt_share = 0;
        for task in self.costs.tasks.iter().filter(|t| t.interrupts > 0) {
            for (period, sum) in &mut self.interrupts {
                *sum += (period.div_ceil(task.period) + 1) * task.interrupts * parameters.interrupt;
            }
            self.interrupt_share += share(task.interrupts * average, task.period);
        }
    }

    /// Is the system schedulable under a scheme? [`Self::plan`] then holds the ways.
    ///
    /// With concurrency elimination whole chains stay together as far as processors have room. If phase three finds no ways for that,
    /// then, as [`PackingFailure`] says, either the system is unschedulable, or halves are packed and then single tasks: the first
    /// packing for which phase three finds ways counts.
    pub fn judge(&mut self, parameters: &StudyParameters, curves: &Curves, scheme: Scheme) -> bool {
        if self.hopeless {
            return false;
        }
        for packing in 0..Self::packings(parameters, scheme) {
            if self.is_repeated(parameters, scheme, packing) {
                continue;
            }
            self.fill(parameters, curves, scheme, packing);
            if self.problem.solve_into(&mut self.scratch, &mut self.plan) {
                return true;
            }
        }
        false
    }

    /// How many packings there are to try under a scheme.
    pub(super) fn packings(parameters: &StudyParameters, scheme: Scheme) -> usize {
        Self::order(parameters, scheme).len()
    }

    fn order(parameters: &StudyParameters, scheme: Scheme) -> &'static [usize] {
        match (scheme.messages(), parameters.readings.packing_failure) {
            (Messages::Optimised, PackingFailure::Final) => &[WHOLE],
            (Messages::Optimised, PackingFailure::Retry) => &[WHOLE, HALVES, ALONE],
            _ => &[ALONE],
        }
    }

    /// Whether this packing is the same as an earlier one.
    pub(super) fn is_repeated(
        &self,
        parameters: &StudyParameters,
        scheme: Scheme,
        packing: usize,
    ) -> bool {
        let order = Self::order(parameters, scheme);
        let processor = |p: &usize| &self.packings[*p].processor;
        order[..packing]
            .iter()
            .any(|p| processor(p) == processor(&order[packing]))
    }

    /// The processor of each task of levels A and B under the packing that was filled in last.
    pub fn processors(&self) -> &[u8] {
        &self.packings[self.packed].processor
    }

    /// Fills [`Self::placement`] and [`Self::problem`] for a scheme and one of its packings.
    pub(super) fn fill(
        &mut self,
        parameters: &StudyParameters,
        curves: &Curves,
        scheme: Scheme,
        packing: usize,
    ) {
        self.packed = Self::order(parameters, scheme)[packing];
        self.placement.place(
            scheme,
            &parameters.readings,
            parameters.processors as usize,
            &self.system,
            &self.costs,
            &self.packings[self.packed].processor,
            &self.long,
        );
        self.locked = self.messages(parameters, scheme);
        let mut tables = std::mem::take(&mut self.problem.processors);
        for (p, table) in tables.iter_mut().enumerate() {
            let devices = match parameters.readings.device_reach {
                DeviceReach::Bank => self.placement.bank_devices[p],
                DeviceReach::System => self.placement.bank_devices.iter().sum(),
            };
            let foreign = [
                self.placement.foreign[p] * FIXED,
                self.placement.foreign_share[p],
            ];
            let slow = |task: usize| usize::from(self.placement.io[task]) != p;
            self.demand(parameters, curves, p, devices, foreign, &slow, table);
        }
        self.problem.processors = tables;
        let mut total = std::mem::take(&mut self.problem.c_total);
        let mut largest = std::mem::take(&mut self.problem.c_largest);
        self.level_c(
            parameters,
            curves,
            self.placement.level_c_devices,
            self.placement.level_c_share,
            &mut total,
            &mut largest,
        );
        (self.problem.c_total, self.problem.c_largest) = (total, largest);
        self.problem.minimum_level_c = parameters.minimum_level_c as usize;
    }

    /// Fills [`Self::message_ends`]: for each task of levels A and B, the maximum time for messages that locking does not change; also
    /// marks how much locking can save. Returns the decay over locked ways.
    fn messages(&mut self, parameters: &StudyParameters, scheme: Scheme) -> [u64; WAYS] {
        let count = self.weights.len();
        let processors = parameters.processors as usize;
        let processor = &self.packings[self.packed].processor;
        self.message_ends.clear();
        self.message_ends.resize(count, [0; 2]);
        self.exposed.clear();
        self.exposed.resize(count, false);
        let plain = parameters.readings.plain_messages == PlainMessages::Job;
        let mut bytes = 0;
        for (buffer, ends) in self.system.buffers.iter().zip(&self.costs.accesses) {
            if buffer.sender as usize >= count {
                continue;
            }
            let from = processor[buffer.sender as usize];
            let together = from == processor[buffer.receiver as usize];
            let eliminated = together
                && match scheme.messages() {
                    Messages::Optimised => true,
                    Messages::Random => bank_of(buffer.random_bank, processors) == from,
                    Messages::LevelC => false,
                };
            let lockable = scheme.messages() == Messages::Optimised && !eliminated;
            if lockable {
                bytes += buffer.bytes;
            }
            for end in ends {
                let [fixed, saved] = &mut self.message_ends[end.task as usize];
                if eliminated {
                    *fixed += end.eliminated[GREATEST];
                } else if lockable {
                    *fixed += end.locked[GREATEST];
                    *saved += end.bypassed[GREATEST] - end.locked[GREATEST];
                } else {
                    *fixed += end.bypassed[GREATEST];
                    self.exposed[end.task as usize] |= plain;
                }
            }
        }
        let most = if bytes == 0 {
            0
        } else {
            // No task needs more than what holds all buffers, with the decay down to a thousandth.
            let useful =
                bytes.div_ceil(parameters.way_bytes) * 7_000 / parameters.locking_constants;
            (useful + 1).min(parameters.ways - parameters.minimum_level_c)
        };
        self.problem.locked = 0..=most as usize;
        locking(parameters, bytes)
    }

    /// Fills the table of processor `p` when devices move `devices` bytes a second in its bank, other processors access it (`foreign`:
    /// greatest and average, in parts of [`FIXED`]), and the tasks for which `slow` holds copy from a bank that is not their own.
    #[expect(
        clippy::too_many_arguments,
        reason = "one for each thing that differs between placements"
    )]
    pub(super) fn demand(
        &self,
        parameters: &StudyParameters,
        curves: &Curves,
        p: usize,
        devices: u64,
        foreign: [u64; 2],
        slow: &dyn Fn(usize) -> bool,
        table: &mut ProcessorTable,
    ) {
        let ways = parameters.ways as usize;
        let most_locked = *self.problem.locked.end();
        // Periods are harmonic: the longest is a multiple of each.
        let longest = self.interrupts.iter().map(|i| i.0).max().unwrap_or(1);
        let mut demand = [NOTHING; 3];
        for (index, task) in self.costs.tasks[..self.weights.len()].iter().enumerate() {
            if usize::from(self.packings[self.packed].processor[index]) != p {
                continue;
            }
            let jobs = longest / task.period;
            let copies = u64::from(slow(index)) + u64::from(task.intermediate);
            let [fixed, saved] = self.message_ends[index];
            let preemptions = if task.level == Level::B {
                task.period / self.shortest[self.packed][p] - 1
            } else {
                0
            };
            let interrupts = if p == 0 {
                in_period(&self.interrupts, task.period)
            } else {
                0
            };
            let decays = curves.way(task.way_curve);
            for (which, inflation) in [
                (GREATEST, parameters.copy_inflation),
                (AVERAGE, parameters.copy_inflation_average),
            ] {
                let conflicts = foreign[which] + u64::from(self.exposed[index]) * FIXED;
                let factor = task.factor(which, curves, devices, conflicts);
                let average = |greatest: u64| {
                    if which == GREATEST {
                        greatest
                    } else {
                        // The average is the same share of its maximum time as for the task's whole cost.
                        (greatest * task.idle[AVERAGE]).div_ceil(task.idle[GREATEST].max(1))
                    }
                };
                let extra = copies * portion(task.copy[which], inflation)
                    + task.kernel[which]
                    + preemptions * task.reload[which]
                    + average(fixed)
                    + if which == GREATEST { interrupts } else { 0 };
                let messages = task.messages[which];
                for (w, &decay) in decays[..=ways].iter().enumerate() {
                    // The idle cost contains messages with concurrency elimination; `extra` says what they cost instead.
                    let cost = task.cost(which, factor, decay) - messages + extra;
                    if which == AVERAGE {
                        demand[C].own[w] += jobs * cost;
                    } else {
                        demand[B].own[w] += jobs * cost;
                        if task.level == Level::A {
                            demand[A].own[w] += jobs * portion(cost, parameters.level_a_over_b);
                        }
                    }
                }
                if saved > 0 {
                    let saved = average(saved);
                    for (l, &left) in self.locked[..=most_locked].iter().enumerate() {
                        let cost = scaled(saved, left);
                        if which == AVERAGE {
                            demand[C].locked[l] += jobs * cost;
                        } else {
                            demand[B].locked[l] += jobs * cost;
                            if task.level == Level::A {
                                demand[A].locked[l] +=
                                    jobs * portion(cost, parameters.level_a_over_b);
                            }
                        }
                    }
                }
            }
        }
        let more = if p == 0 { self.interrupt_share } else { 0 };
        let size = (ways + 1) * (ways + 1);
        for entries in [&mut table.a, &mut table.ab_b, &mut table.ab_c] {
            entries.resize(size, 0);
        }
        for l in 0..=most_locked {
            for w in 0..=ways - l {
                let at = l * (ways + 1) + w;
                let of = |level: usize| {
                    let demand = &demand[level];
                    share((demand.own[w] + demand.locked[l]).min(longest * 8), longest)
                };
                table.a[at] = of(A);
                table.ab_b[at] = of(B);
                table.ab_c[at] = of(C) + more;
            }
        }
    }

    /// Fills the tables of level C when devices move `devices` bytes a second in its banks and processors spend `copying` (in parts of
    /// [`FIXED`]) copying there. Its needs do not depend on locked ways.
    pub(super) fn level_c(
        &self,
        parameters: &StudyParameters,
        curves: &Curves,
        devices: u64,
        copying: u64,
        c_total: &mut Vec<u64>,
        c_largest: &mut Vec<u64>,
    ) {
        let ways = parameters.ways as usize;
        let others = parameters.processors as usize - 1;
        let devices = devices / parameters.level_c_banks.max(1);
        c_total.resize((ways + 1) * (ways + 1), 0);
        c_largest.resize((ways + 1) * (ways + 1), 0);
        let mut total = [0u64; WAYS];
        let mut largest = [[0u64; 16]; WAYS];
        for task in &self.costs.tasks[self.weights.len()..] {
            let factor = task.factor(AVERAGE, curves, devices, copying);
            let table = curves.way(task.way_curve);
            let copies = 1 + u64::from(task.intermediate);
            let extra = portion(
                copies * task.copy[AVERAGE] + task.messages[AVERAGE],
                parameters.copy_inflation_average,
            ) + task.kernel[AVERAGE]
                + task.reload[AVERAGE];
            for w in 0..=ways {
                let one = share(task.cost(AVERAGE, factor, table[w]) + extra, task.period);
                total[w] += one;
                insert(&mut largest[w][..others.max(1)], one);
            }
        }
        for w in 0..=ways {
            // A task that needs more than a processor has no bound: no share is large enough for such a number.
            let highest = largest[w][0];
            let sum: u64 = largest[w][..others].iter().sum();
            let needed = if highest > ONE {
                u64::MAX / 4
            } else {
                sum + others as u64 * highest
            };
            for l in self.problem.locked.clone() {
                let at = l * (ways + 1) + w;
                c_total[at] = total[w];
                c_largest[at] = needed;
            }
        }
    }
}

/// Keeps the largest values in descending order.
fn insert(largest: &mut [u64], value: u64) {
    let mut value = value;
    for slot in largest {
        if value > *slot {
            std::mem::swap(slot, &mut value);
        }
    }
}

/// A share of a processor in parts of [`ONE`], rounded up. Times stay far below 2^31 ns times the longest relevant overload.
fn share(time: u64, period: u64) -> u64 {
    time.checked_mul(ONE).map_or_else(
        || {
            (u128::from(time) * u128::from(ONE))
                .div_ceil(u128::from(period))
                .min(u128::from(u64::MAX / 64)) as u64
        },
        |scaled| scaled.div_ceil(period),
    )
}

fn in_period(interrupts: &[(u64, u64)], period: u64) -> u64 {
    interrupts.iter().find(|i| i.0 == period).map_or(0, |i| i.1)
}

const _: () = assert!(MILLION < FIXED && (LEVEL_C as u64) > super::parameters::MOST_PROCESSORS);

#[cfg(test)]
#[path = "judge_tests.rs"]
mod tests;
