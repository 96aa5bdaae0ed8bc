//! The generator of task systems: Table 3 of mc2-rts20 and its text.
//!
//! Random numbers: each (seed, scenario, point on the horizontal axis, sample) has its own stream. Its generator is PCG XSL
//! RR 128/64 (LCG) (M. O'Neill, *PCG: a family of simple fast space-efficient statistically good algorithms*, 2014) as in
//! crate `rand_pcg`, whose 32 bytes of seed are SHA-256 over the text `bulkhead mc2 study 1` and the four numbers as
//! little-endian 64-bit words. Integers below n are the high half of the product of 64 random bits with n (the bias is below
//! 2^-30 for all n here). So any split of the work over threads or hosts sees the same systems.
//!
//! It deliberately does not know schemes or processors: all schemes judge the same systems.

use super::parameters::{Interval, MILLION, StudyParameters};
use super::task_system::{Io, Level, MessageBuffer, Scenario, StudyTask, TaskSystem};
use rand_pcg::Pcg64;
use rand_pcg::rand_core::{Rng, SeedableRng};
use sha2::{Digest, Sha256};

/// Curves of each kind: a task's curve is one of this many, evenly spaced over the parameter's interval.
pub const CURVES: u8 = 32;

const MS: u64 = 1_000_000;

/// `[low, high)` in millionths.
type Span = (u64, u64);

/// Category 1 in millionths of the system's utilisation, by level.
const CRITICALITY: [[Span; 3]; 3] = [
    [(350_000, 450_000), (350_000, 450_000), (100_000, 300_000)],
    [(100_000, 300_000), (100_000, 300_000), (500_000, 700_000)],
    [(280_000, 390_000), (280_000, 390_000), (280_000, 390_000)],
];

/// Category 2 in ms: the two periods of level A and of level B, the interval of level C.
const PERIODS: [([u64; 2], [u64; 2], Span); 3] = [
    ([12, 24], [24, 48], (12, 100)),
    ([20, 40], [40, 80], (20, 100)),
    ([48, 96], [96, 192], (50, 500)),
];

/// Category 3 in millionths, by level.
const UTILISATION: [[Span; 3]; 3] = [
    [(1_000, 30_000), (1_000, 50_000), (1_000, 100_000)],
    [(20_000, 100_000), (50_000, 200_000), (100_000, 400_000)],
    [(100_000, 200_000), (200_000, 400_000), (400_000, 600_000)],
];

/// Category 4 in millionths of the cost.
const RELOAD: [Span; 2] = [(10_000, 100_000), (250_000, 500_000)];

/// Category 5 in bytes.
const MESSAGES: [[u64; 2]; 2] = [[128, 256], [4_096, 8_192]];

/// Category 6 in bytes per second, both ends included.
const BANDWIDTH: [Interval; 3] = [
    Interval {
        low: 0,
        high: 20 * MILLION,
    },
    Interval {
        low: 40 * MILLION,
        high: 60 * MILLION,
    },
    Interval {
        low: 180 * MILLION,
        high: 200 * MILLION,
    },
];

/// Category 7 in millionths, both ends included.
const DIRECT: [Interval; 2] = [
    Interval {
        low: 0,
        high: 300_000,
    },
    Interval {
        low: 700_000,
        high: 1_000_000,
    },
];

/// One stream of random numbers.
#[derive(Clone, Debug)]
pub struct Stream(Pcg64);

impl Stream {
    /// The stream of a sample.
    pub fn new(seed: u64, scenario: usize, utilisation_index: u64, sample: u64) -> Self {
        let mut hash = Sha256::new();
        hash.update(b"bulkhead mc2 study 1");
        for word in [seed, scenario as u64, utilisation_index, sample] {
            hash.update(word.to_le_bytes());
        }
        Self(Pcg64::from_seed(hash.finalize().into()))
    }

    /// Uniform in `0..bound`; 0 for a bound of 0.
    pub fn below(&mut self, bound: u64) -> u64 {
        ((u128::from(self.0.next_u64()) * u128::from(bound)) >> 64) as u64
    }

    /// Uniform with both ends.
    pub fn within(&mut self, interval: Interval) -> u64 {
        interval.low + self.below(interval.high - interval.low + 1)
    }

    /// Uniform in `[low, high)`.
    fn span(&mut self, (low, high): Span) -> u64 {
        low + self.below(high - low)
    }

    /// True with this probability in millionths.
    fn chance(&mut self, millionths: u64) -> bool {
        self.below(MILLION) < millionths
    }
}

/// Generates the system of a stream into `system` (whose memory is reused).
///
/// `utilisation` in thousandths of a processor: the sum of costs over periods in an idle system, as level A estimates costs.
pub fn generate(
    parameters: &StudyParameters,
    scenario: Scenario,
    utilisation: u64,
    stream: &mut Stream,
    system: &mut TaskSystem,
) {
    let choice = scenario.0.map(usize::from);
    system.tasks.clear();
    system.buffers.clear();
    system.chains.clear();
    let shares = criticality(CRITICALITY[choice[0]], stream);
    let communicating = stream.within(parameters.communicating);
    let (a, b, c) = PERIODS[choice[1]];
    for (level, share) in [Level::A, Level::B, Level::C].into_iter().zip(shares) {
        let first = system.tasks.len();
        // Thousandths of a processor times millionths, in millionths.
        let mut left = utilisation * share / 1_000;
        while left > 0 {
            let one = stream
                .span(UTILISATION[choice[2]][level as usize])
                .min(left);
            left -= one;
            let period = match level {
                Level::A => a[stream.below(2) as usize] * MS,
                Level::B => b[stream.below(2) as usize] * MS,
                Level::C => stream.span((c.0 * MS, c.1 * MS)),
            };
            let task = task(parameters, level, period, one, RELOAD[choice[3]], stream);
            system.tasks.push(task);
        }
        // Tasks of a level differ only in what was drawn, so their order is free. Equal periods are adjacent.
        if level != Level::C {
            system.tasks[first..].sort_by_key(|t| t.period);
        }
        chains(
            parameters,
            level,
            first,
            communicating,
            MESSAGES[choice[4]],
            stream,
            system,
        );
    }
    bandwidth(
        parameters,
        BANDWIDTH[choice[5]],
        DIRECT[choice[6]],
        stream,
        &mut system.tasks,
    );
}

/// The levels' shares: drawn again until the third, which is what the other two leave, is in its interval.
fn criticality(spans: [Span; 3], stream: &mut Stream) -> [u64; 3] {
    loop {
        let (a, b) = (stream.span(spans[0]), stream.span(spans[1]));
        if let Some(c) = MILLION.checked_sub(a + b)
            && c >= spans[2].0
            && c <= spans[2].1
        {
            return [a, b, c];
        }
    }
}

fn task(
    parameters: &StudyParameters,
    level: Level,
    period: u64,
    utilisation: u64,
    reload: Span,
    stream: &mut Stream,
) -> StudyTask {
    StudyTask {
        level,
        period,
        idle: (period * utilisation).div_ceil(MILLION),
        average: stream.within(parameters.average_cost),
        way_amplitude: stream.within(parameters.way_amplitude),
        way_curve: stream.below(u64::from(CURVES)) as u8,
        unmanaged: stream.within(parameters.unmanaged),
        dma_bus: stream.within(parameters.dma_bus),
        dma_bank: stream.within(parameters.dma_bank),
        dma_curve: stream.below(u64::from(CURVES)) as u8,
        cpu_bank: stream.within(parameters.cpu_bank),
        reload: stream.span(reload),
        buffers: 0,
        message_share: stream.within(parameters.message_share),
        io_share: stream.within(parameters.io_share),
        io: None,
    }
}

/// Joins tasks of one level and period to chains: each sends a message to the next.
fn chains(
    parameters: &StudyParameters,
    level: Level,
    first: usize,
    communicating: u64,
    sizes: [u64; 2],
    stream: &mut Stream,
    system: &mut TaskSystem,
) {
    let banks = parameters.processors + parameters.level_c_banks;
    let mut at = first;
    while at < system.tasks.len() {
        if !stream.chance(communicating) {
            at += 1;
            continue;
        }
        let wanted = stream.within(parameters.chain) as usize;
        let period = system.tasks[at].period;
        let same = system.tasks[at..]
            .iter()
            // Periods of level C form a continuum: there, followers take the first task's period.
            .take_while(|t| level == Level::C || t.period == period)
            .take(wanted)
            .count();
        if same < 2 {
            at += 1;
            continue;
        }
        for follower in &mut system.tasks[at + 1..at + same] {
            if follower.period != period {
                follower.idle = (u128::from(follower.idle) * u128::from(period))
                    .div_ceil(u128::from(follower.period)) as u64;
                follower.period = period;
            }
        }
        for sender in at..at + same - 1 {
            system.tasks[sender].buffers += 1;
            system.tasks[sender + 1].buffers += 1;
            system.buffers.push(MessageBuffer {
                sender: sender as u32,
                receiver: sender as u32 + 1,
                bytes: sizes[stream.below(2) as usize],
                ce_send: stream.within(parameters.ce_send),
                ce_receive: stream.within(parameters.ce_receive),
                cl_send: stream.within(parameters.cl_send),
                cl_receive: stream.within(parameters.cl_receive),
                random_bank: stream.below(banks) as u8,
            });
        }
        if level != Level::C {
            system.chains.push((at as u32, same as u32));
        }
        at += same;
    }
}

/// Gives tasks I/O buffers in random order until their bandwidth reaches the drawn level. The last buffer is cut to match it. If
/// every task has one and the level is not reached, another round adds to each task's buffer.
fn bandwidth(
    parameters: &StudyParameters,
    level: Interval,
    direct: Interval,
    stream: &mut Stream,
    tasks: &mut [StudyTask],
) {
    let banks = parameters.processors + parameters.level_c_banks;
    let mut left = stream.within(level);
    let direct = stream.within(direct);
    if tasks.is_empty() {
        return;
    }
    // A random order without allocation: Fisher and Yates on the indices, only as far as needed.
    let mut order: Vec<u32> = (0..tasks.len() as u32).collect();
    let mut next = 0;
    while left > 0 {
        let at = next % order.len();
        if next < order.len() {
            let other = at + stream.below((order.len() - at) as u64) as usize;
            order.swap(at, other);
        }
        next += 1;
        let task = &mut tasks[order[at] as usize];
        let size = parameters.io_sizes[stream.below(parameters.io_sizes.len() as u64) as usize];
        // At least one byte per second, so that this terminates.
        let rate = (size * 1_000_000_000 / task.period).max(1);
        let bytes = if rate > left {
            (left * task.period).div_ceil(1_000_000_000).min(size)
        } else {
            size
        };
        left = left.saturating_sub(rate);
        let is_direct = stream.chance(direct);
        let random_bank = stream.below(banks) as u8;
        let io = task.io.get_or_insert(Io {
            bytes: 0,
            direct: is_direct,
            random_bank,
        });
        io.bytes += bytes;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::mc2::task_system::SCENARIOS;

    fn system(scenario: usize, utilisation: u64, sample: u64) -> TaskSystem {
        let mut system = TaskSystem::default();
        let parameters = StudyParameters::default();
        let chosen = Scenario::from_index(scenario).expect("exists");
        let mut stream = Stream::new(parameters.seed, scenario, utilisation, sample);
        generate(&parameters, chosen, utilisation, &mut stream, &mut system);
        system
    }

    /// The generator's own published stream: PCG XSL RR 128/64 with state 42 and stream 54 (the reference's demonstration program).
    #[test]
    fn the_generator_is_the_published_one() {
        let mut pcg = Pcg64::new(42, 54);
        let first: Vec<u64> = (0..3).map(|_| pcg.next_u64()).collect();
        assert_eq!(
            first,
            [
                0x86b1_da1d_7206_2b68,
                0x1304_aa46_c985_3d39,
                0xa367_0e9e_0dd5_0358
            ]
        );
    }

    #[test]
    fn systems_keep_to_table_3() {
        for scenario in (0..SCENARIOS).step_by(7) {
            let chosen = Scenario::from_index(scenario)
                .expect("exists")
                .0
                .map(usize::from);
            for utilisation in [200, 2_600, 6_000] {
                let system = system(scenario, utilisation, 3);
                let mut sums = [0; 3];
                for task in &system.tasks {
                    let share = task.idle as f64 / task.period as f64;
                    sums[task.level as usize] += task.idle * MILLION / task.period;
                    let (_, most) = UTILISATION[chosen[2]][task.level as usize];
                    assert!(share <= most as f64 / 1e6 + 1e-6);
                    let (a, b, c) = PERIODS[chosen[1]];
                    let period = task.period / MS;
                    assert!(match task.level {
                        Level::A => a.contains(&period),
                        Level::B => b.contains(&period),
                        Level::C => (c.0..c.1).contains(&period),
                    });
                    assert!((RELOAD[chosen[3]].0..RELOAD[chosen[3]].1).contains(&task.reload));
                }
                let total: u64 = sums.iter().sum();
                assert!(total.abs_diff(utilisation * 1_000) < 300, "{total}");
                for (sum, span) in sums.iter().zip(CRITICALITY[chosen[0]]) {
                    let share = *sum as f64 / total as f64;
                    assert!(
                        share > span.0 as f64 / 1e6 - 0.001 && share < span.1 as f64 / 1e6 + 0.001
                    );
                }
                let rate: u64 = system
                    .tasks
                    .iter()
                    .filter_map(|t| t.io.map(|io| io.bytes * 1_000_000_000 / t.period))
                    .sum();
                let span = BANDWIDTH[chosen[5]];
                assert!(
                    rate + 20_000 >= span.low && rate <= span.high + 20_000,
                    "{rate} {span:?}"
                );
                for buffer in &system.buffers {
                    let (from, to) = (
                        &system.tasks[buffer.sender as usize],
                        &system.tasks[buffer.receiver as usize],
                    );
                    assert!(from.level == to.level && from.period == to.period);
                    assert!(MESSAGES[chosen[4]].contains(&buffer.bytes));
                }
            }
        }
    }

    #[test]
    fn streams_differ_and_repeat() {
        assert_eq!(system(5, 2_600, 0), system(5, 2_600, 0));
        assert_ne!(system(5, 2_600, 0), system(5, 2_600, 1));
        let first = |a, b, c, d| Stream::new(a, b, c, d).below(u64::MAX);
        let all = [
            first(1, 0, 0, 0),
            first(0, 1, 0, 0),
            first(0, 0, 1, 0),
            first(0, 0, 0, 1),
        ];
        for (i, x) in all.iter().enumerate() {
            assert!(all[i + 1..].iter().all(|y| x != y));
        }
    }
}
