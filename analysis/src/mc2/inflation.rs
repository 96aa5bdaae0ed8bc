//! From a task's idle cost to its cost at each level: the effects of ways, buffers and devices.
//!
//! Source: mc2-rts20, section 6.1: an exponential decay over the ways, a negative exponential decay over the bandwidth of devices,
//! percentages of Figures 8 and 10 for accesses to buffers, and its section 5 for which tasks are affected. The sizes are in
//! [`super::parameters`].
//!
//! The form. With `d(w)` the decay over own ways and `f(r)` the growth over a rate of devices,
//! ```text
//! factor(w) = 1 + amplitude (d(w) - d(all)) + unmanaged + bus f(all devices)
//!               + (bank f(devices in the own bank) + cpu n) d(w)
//! ```
//! where n counts the processors that copy in the task's bank: row conflicts fade with the misses that ways avoid (Figures 12 and
//! 13 b), but bus interference does not. Costs of level B are `idle / 1.5 factor` plus accesses to buffers, the kernel and
//! preemptions; costs of level A are 1.5 times that; costs of level C are the averages of the same.
//!
//! Curves are tables in parts of [`FIXED`], rounded up, computed once with the portable `exp` of crate `libm`; from there on
//! everything is an integer. It deliberately does not know schemes: its caller says where buffers are.

use super::generate::CURVES;
use super::parameters::{
    Interval, MILLION, MOST_WAYS, MessageLimit, StudyParameters, UtilisationLevel,
};
use super::task_system::{Level, MessageBuffer, StudyTask, TaskSystem};

/// Factors are integers in parts of this.
pub const FIXED: u64 = 1 << 20;
/// Entries of a table over ways.
pub const WAYS: usize = MOST_WAYS as usize + 1;
/// Maximum bandwidth in the tables in MB/s; larger values count as this.
const MOST_MB: usize = 256;

/// Millionths in parts of [`FIXED`], rounded up.
pub fn fixed(millionths: u64) -> u64 {
    (millionths * FIXED).div_ceil(MILLION)
}

/// `value` times a factor in parts of [`FIXED`], rounded up.
pub fn scaled(value: u64, factor: u64) -> u64 {
    (value * factor).div_ceil(FIXED)
}

/// `value` times millionths, rounded up.
pub fn portion(value: u64, millionths: u64) -> u64 {
    (value * millionths).div_ceil(MILLION)
}

/// Tables of the curves.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Curves {
    ways: Vec<[u64; WAYS]>,
    devices: Vec<Vec<u64>>,
}

/// Value of curve `index` of all: evenly spaced, both ends taken.
fn spaced(interval: Interval, index: u8) -> f64 {
    let width = (interval.high - interval.low) as f64;
    interval.low as f64 + width * f64::from(index) / f64::from(CURVES - 1)
}

fn rounded_up(value: f64) -> u64 {
    (value * FIXED as f64).ceil() as u64
}

impl Curves {
    /// Computes all tables.
    pub fn new(parameters: &StudyParameters) -> Self {
        let mut ways = Vec::new();
        let mut devices = Vec::new();
        for index in 0..CURVES {
            ways.push(decay(1_000.0 / spaced(parameters.way_constant, index)));
            let step = libm::exp(-1.0 / spaced(parameters.dma_constant, index));
            let mut left = 1.0;
            let mut curve = Vec::with_capacity(MOST_MB + 1);
            for _ in 0..=MOST_MB {
                curve.push(rounded_up(1.0 - left));
                left *= step;
            }
            devices.push(curve);
        }
        Self { ways, devices }
    }

    /// The decay over ways.
    pub fn way(&self, curve: u8) -> &[u64; WAYS] {
        &self.ways[usize::from(curve % CURVES)]
    }

    /// The growth over a rate in bytes a second, which is rounded up to MB/s.
    pub fn device(&self, curve: u8, rate: u64) -> u64 {
        let megabytes = rate.div_ceil(MILLION).min(MOST_MB as u64) as usize;
        self.devices[usize::from(curve % CURVES)][megabytes]
    }
}

/// `exp (- rate w)` for every number of ways.
fn decay(rate: f64) -> [u64; WAYS] {
    let step = libm::exp(-rate);
    let mut value = 1.0;
    std::array::from_fn(|_| {
        let now = rounded_up(value);
        value *= step;
        now
    })
}

/// The remaining penalty of selective bypass when this many ways are locked for buffers of `bytes` in total.
pub fn locking(parameters: &StudyParameters, bytes: u64) -> [u64; WAYS] {
    if bytes == 0 {
        return [FIXED; WAYS];
    }
    let constants = parameters.locking_constants as f64 / 1_000.0;
    decay(constants * parameters.way_bytes as f64 / bytes as f64)
}

/// Index of the greatest observed values, on which levels A and B build.
pub const GREATEST: usize = 0;
/// Index of average values, on which level C builds.
pub const AVERAGE: usize = 1;

/// The part of a task's cost that no scheme changes. Pairs hold [`GREATEST`] and [`AVERAGE`] values; times in ns, factors in parts
/// of [`FIXED`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TaskCosts {
    /// Level.
    pub level: Level,
    /// Period.
    pub period: u64,
    /// Idle cost.
    pub idle: [u64; 2],
    /// `1 + unmanaged + bus f(all) - amplitude d(all ways)`.
    pub constant: [u64; 2],
    /// Inflation without ways.
    pub amplitude: u64,
    /// Maximum inflation by devices in the bank.
    pub bank: [u64; 2],
    /// Inflation by one processor in the bank.
    pub cpu: [u64; 2],
    /// Curve over ways.
    pub way_curve: u8,
    /// Curve over bandwidth.
    pub device_curve: u8,
    /// One copy of the I/O buffer, without interference; part of the idle cost.
    pub copy: [u64; 2],
    /// The task also copies from buffers that the kernel keeps in banks of level C.
    pub intermediate: bool,
    /// Bytes per second of its devices.
    pub rate: u64,
    /// Interrupts for each job's data.
    pub interrupts: u64,
    /// Scheduling and release of a job.
    pub kernel: [u64; 2],
    /// Loading the cache again after one preemption.
    pub reload: [u64; 2],
    /// Messages with concurrency elimination: part of the idle cost.
    pub messages: [u64; 2],
}

impl TaskCosts {
    fn new(
        parameters: &StudyParameters,
        curves: &Curves,
        task: &StudyTask,
        all_devices: u64,
    ) -> Self {
        let greatest = match (parameters.utilisation_level, task.level) {
            (UtilisationLevel::A, _) | (_, Level::A) => {
                (task.idle * MILLION).div_ceil(parameters.level_a_over_b)
            }
            (UtilisationLevel::Own, Level::B) => task.idle,
            (UtilisationLevel::Own, Level::C) => (task.idle * MILLION).div_ceil(task.average),
        };
        let idle = [greatest, portion(greatest, task.average)];
        let both = |value: u64| [value, portion(value, parameters.average_interference)];
        let by_cost = |value: u64| [value, portion(value, task.average)];
        let bus = scaled(
            fixed(task.dma_bus),
            curves.device(task.dma_curve, all_devices),
        );
        let amplitude = fixed(task.way_amplitude);
        // Rounded down because it is subtracted (the table is rounded up, by less than one).
        let left = curves.way(task.way_curve)[parameters.ways as usize].saturating_sub(1);
        let full = amplitude * left / FIXED;
        let constant = both(fixed(task.unmanaged) + bus).map(|c| FIXED + c - full.min(FIXED));
        let (mut copy, mut intermediate, mut rate, mut interrupts) = (0, false, 0, 0);
        if let Some(io) = task.io {
            intermediate = !io.direct;
            // Two copies if the kernel's buffers come first: both within the job's share.
            let share = portion(greatest, task.io_share) / if intermediate { 2 } else { 1 };
            copy = (io.bytes * parameters.copy_speed)
                .div_ceil(1_000)
                .min(share);
            rate = (io.bytes * 1_000_000_000).div_ceil(task.period);
            interrupts = io.bytes.div_ceil(if io.direct {
                parameters.direct_bytes
            } else {
                parameters.packet_bytes
            });
        }
        // A preemption evicts at most what the region holds.
        let region =
            (parameters.reload_ways * parameters.way_bytes * parameters.copy_speed) / 1_000;
        Self {
            level: task.level,
            period: task.period,
            idle,
            constant,
            amplitude,
            bank: both(fixed(task.dma_bank)),
            cpu: both(fixed(task.cpu_bank)),
            way_curve: task.way_curve,
            device_curve: task.dma_curve,
            copy: by_cost(copy),
            intermediate,
            rate,
            interrupts,
            kernel: both(2 * parameters.schedule + parameters.release),
            reload: by_cost(portion(greatest, task.reload).min(region)),
            messages: [0; 2],
        }
    }

    /// The factor over the idle cost with `bank_devices` bytes a second going to the task's bank and `copying` processors' worth of
    /// copies there (parts of [`FIXED`]), as a constant and a part that decays over the ways.
    pub fn factor(
        &self,
        which: usize,
        curves: &Curves,
        bank_devices: u64,
        copying: u64,
    ) -> (u64, u64) {
        let bank = scaled(
            self.bank[which],
            curves.device(self.device_curve, bank_devices),
        );
        let cpu = scaled(self.cpu[which], copying);
        (self.constant[which], self.amplitude + bank + cpu)
    }

    /// Idle cost under a factor, rounded up.
    pub fn cost(&self, which: usize, (constant, decaying): (u64, u64), decay: u64) -> u64 {
        scaled(self.idle[which], constant + scaled(decaying, decay))
    }
}

/// One end of a message buffer: times in ns, [`GREATEST`] and [`AVERAGE`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Access {
    /// The task that sends or receives.
    pub task: u32,
    /// With concurrency elimination.
    pub eliminated: [u64; 2],
    /// With selective bypass, or in a bank of level C.
    pub bypassed: [u64; 2],
    /// With the whole buffer locked.
    pub locked: [u64; 2],
}

/// All costs of a system that no scheme changes.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SystemCosts {
    /// One for each task.
    pub tasks: Vec<TaskCosts>,
    /// For each message buffer: sending, receiving.
    pub accesses: Vec<[Access; 2]>,
    /// Bytes per second of all devices.
    pub devices: u64,
}

impl SystemCosts {
    /// Computes them (into reused memory).
    pub fn compute(&mut self, parameters: &StudyParameters, curves: &Curves, system: &TaskSystem) {
        self.devices = system
            .tasks
            .iter()
            .filter_map(|t| t.io.map(|io| (io.bytes * 1_000_000_000).div_ceil(t.period)))
            .sum();
        self.tasks.clear();
        self.tasks.extend(
            system
                .tasks
                .iter()
                .map(|t| TaskCosts::new(parameters, curves, t, self.devices)),
        );
        self.accesses.clear();
        for buffer in &system.buffers {
            let ends = ends(parameters, system, &self.tasks, buffer);
            for end in &ends {
                let messages = &mut self.tasks[end.task as usize].messages;
                for which in [GREATEST, AVERAGE] {
                    messages[which] += end.eliminated[which];
                }
            }
            self.accesses.push(ends);
        }
        // Rounding must not make messages longer than the job that contains them.
        for task in &mut self.tasks {
            for which in [GREATEST, AVERAGE] {
                task.messages[which] = task.messages[which].min(task.idle[which]);
            }
        }
    }
}

fn ends(
    parameters: &StudyParameters,
    system: &TaskSystem,
    costs: &[TaskCosts],
    buffer: &MessageBuffer,
) -> [Access; 2] {
    let end = |task: u32, ce: u64, cl: u64| {
        let one = &system.tasks[task as usize];
        let copy = parameters.messages
            * (parameters.message_call + (buffer.bytes * parameters.message_speed).div_ceil(1_000));
        let parts = match parameters.readings.message_limit {
            MessageLimit::Job => u64::from(one.buffers.max(1)),
            MessageLimit::Half => 2,
        };
        let share = portion(costs[task as usize].idle[GREATEST], one.message_share) / parts;
        let eliminated = copy.min(share);
        let bypassed = (eliminated * MILLION).div_ceil(ce);
        let locked = portion(bypassed, cl);
        let both = |value: u64| [value, portion(value, one.average)];
        Access {
            task,
            eliminated: both(eliminated),
            bypassed: both(bypassed),
            locked: both(locked.min(bypassed)),
        }
    };
    [
        end(buffer.sender, buffer.ce_send, buffer.cl_send),
        end(buffer.receiver, buffer.ce_receive, buffer.cl_receive),
    ]
}
