//! Every number of the study, each in one place: what mc2-rts20 states, and what it leaves to earlier work.
//!
//! Why it exists: the paper gives distributions (its Table 3), percentages (its section 5) and a procedure, but neither the curves
//! of its figures nor the ranges from which it samples. What it does not give is chosen here, once, based on the text or the chip,
//! never by looking at the ratios that the study computes; [`super::open_parameters`] lists these choices with the day on which
//! they were frozen, their reasons, the values that they had before, and the values that a sensitivity run tries.
//!
//! Units: shares are integers in millionths ([`MILLION`]), times in nanoseconds, speeds in picoseconds per byte, so a parameter set
//! has one exact text and one hash.

use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use std::fmt::Write;

/// Shares are integers in parts of this.
pub const MILLION: u64 = 1_000_000;

/// An interval from which a value is drawn uniformly; both ends are included.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Interval {
    /// Least value.
    pub low: u64,
    /// Greatest value.
    pub high: u64,
}

pub(super) const fn interval(low: u64, high: u64) -> Interval {
    Interval { low, high }
}

/// The level at which generated utilisations are stated.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum UtilisationLevel {
    /// All are costs as level A estimates them.
    A,
    /// Each is the cost that the task's own level estimates.
    Own,
}

/// The buffers that share the limit `message_share` of a job.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum MessageLimit {
    /// The job's buffers, however many there are, in equal parts.
    Job,
    /// Each buffer has half of it, as in the middle of a chain.
    Half,
}

/// The consequence if phase three finds no ways for a packing that keeps communicating tasks together.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum PackingFailure {
    /// The system is unschedulable.
    Final,
    /// Half chains, then single tasks are packed, and phase three tries again.
    Retry,
}

/// The set of which `LP` and `SP` take the half with the longest and the shortest periods.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum PeriodHalf {
    /// Of a level's tasks.
    Tasks,
    /// Of a level's tasks with I/O.
    IoTasks,
}

/// Which tasks are disturbed by devices that write into the banks of levels A and B.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum DeviceReach {
    /// The tasks of the processor whose bank it is.
    Bank,
    /// All tasks of levels A and B.
    System,
}

/// When copying for levels A and B in banks of level C disturbs level C.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum LevelCConflicts {
    /// While it happens: in proportion to its duration.
    Time,
    /// Always, as one copying processor would, as soon as one I/O buffer of levels A or B is there.
    Always,
}

/// Whether random banks take work from the banks of level C.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum RandomRelief {
    /// Work in another bank does not disturb level C.
    Counted,
    /// Level C is disturbed as if everything were in its banks.
    Ignored,
}

/// The cost of a message buffer to which no technique of section 4.2 is applied.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum PlainMessages {
    /// The cost of selective bypass: the access takes longer, and nothing else does.
    Access,
    /// The same, and the job is exposed to conflicts all the time, as if another processor copied in its bank.
    Job,
}

/// Which meaning the study takes where a sentence of the paper has several, or none.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Readings {
    /// The buffers that share the limit of a job's messages.
    pub message_limit: MessageLimit,
    /// The consequence if phase three fails.
    pub packing_failure: PackingFailure,
    /// The set that is halved by periods.
    pub period_half: PeriodHalf,
    /// The tasks that devices disturb.
    pub device_reach: DeviceReach,
    /// When level C is disturbed.
    pub level_c_conflicts: LevelCConflicts,
    /// Whether random banks relieve level C.
    pub random_relief: RandomRelief,
    /// The cost of messages without a technique.
    pub plain_messages: PlainMessages,
}

impl Default for Readings {
    fn default() -> Self {
        Self {
            message_limit: MessageLimit::Job,
            packing_failure: PackingFailure::Final,
            period_half: PeriodHalf::Tasks,
            device_reach: DeviceReach::Bank,
            level_c_conflicts: LevelCConflicts::Time,
            random_relief: RandomRelief::Counted,
            plain_messages: PlainMessages::Access,
        }
    }
}

/// The paper's one duration of a copy: picoseconds of Framecopy for 640 x 480 pixels, managed (section 5.2).
const FRAME: u64 = 2_925_670_000;

/// Bytes of a pixel of a USB camera (YUV 4:2:2).
const BYTES_A_PIXEL: u64 = 2;

/// Picoseconds a byte of that copy if a pixel has this many bytes, rounded up.
pub const fn copy_speed(bytes_a_pixel: u64) -> u64 {
    FRAME.div_ceil(640 * 480 * bytes_a_pixel)
}

/// Sizes of I/O buffers: three sizes of frames and the read of 400 KiB (section 5.3).
pub fn io_sizes(bytes_a_pixel: u64) -> Vec<u64> {
    let [small, middle, large] =
        [160 * 120, 320 * 240, 640 * 480].map(|pixels: u64| pixels * bytes_a_pixel);
    vec![small, middle, 409_600, large]
}

/// All parameters of a study. [`StudyParameters::default`] is the study of the book.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct StudyParameters {
    /// Seed of all streams of random numbers.
    pub seed: u64,
    /// Distance of two points on the horizontal axis, in thousandths of a processor.
    pub utilisation_step: u64,
    /// Points on the horizontal axis: `utilisation_step`, twice that, and so on.
    pub utilisation_points: u64,
    /// Systems are judged in batches of this many; after each batch the confidence is checked.
    pub batch: u64,
    /// Maximum systems of one point; a multiple of `batch` is reached.
    pub most_samples: u64,
    /// Half width of the confidence interval at which sampling stops, in millionths (the paper: 0.05 at 95 %).
    pub half_width: u64,

    /// Processors (the paper: i.MX6 quad).
    pub processors: u64,
    /// Ways of the last-level cache.
    pub ways: u64,
    /// Bytes of one way: 1 MiB / 16.
    pub way_bytes: u64,
    /// Memory banks of level C and the operating system: eight, minus one for each processor.
    pub level_c_banks: u64,
    /// Minimum ways of level C and the operating system.
    pub minimum_level_c: u64,

    /// Which meanings the study takes.
    pub readings: Readings,
    /// The level at which generated utilisations are stated.
    pub utilisation_level: UtilisationLevel,
    /// Cost at level A over cost at level B, in millionths: 1.5 (section 2).
    pub level_a_over_b: u64,
    /// Average cost over greatest observed cost.
    pub average_cost: Interval,
    /// The additional time of a task with no ways, relative to its cost with all ways.
    pub way_amplitude: Interval,
    /// Thousandths of ways after which that has fallen to 1/e.
    pub way_constant: Interval,
    /// Interference through unmanaged resources (buses, memory controller).
    pub unmanaged: Interval,
    /// Inflation through the memory bus under unlimited device bandwidth.
    pub dma_bus: Interval,
    /// Inflation through row conflicts under unlimited device bandwidth into the task's bank, with no ways.
    pub dma_bank: Interval,
    /// Bandwidth in MB/s at which 1 - 1/e of these is reached.
    pub dma_constant: Interval,
    /// Inflation through row conflicts when one other processor keeps copying in the task's bank, with no ways.
    pub cpu_bank: Interval,
    /// Average over maximum interference: 3 % over 6 % (Observation 3).
    pub average_interference: u64,

    /// Maximum share of a job that passes messages.
    pub message_share: Interval,
    /// Maximum share of a job that copies device data.
    pub io_share: Interval,
    /// Share of tasks that begin a chain of messages.
    pub communicating: Interval,
    /// Tasks of a chain.
    pub chain: Interval,
    /// Messages through each buffer and job.
    pub messages: u64,
    /// A system call that sends or receives an empty message.
    pub message_call: u64,
    /// Copying speed of device data in picoseconds per byte: 2925.67 us for 640 x 480 pixels (section 5.2) of two bytes.
    pub copy_speed: u64,
    /// The same for messages with concurrency elimination.
    pub message_speed: u64,
    /// Concurrency elimination over selective bypass, sending (Figure 8).
    pub ce_send: Interval,
    /// The same, receiving.
    pub ce_receive: Interval,
    /// Locking over selective bypass, sending.
    pub cl_send: Interval,
    /// The same, receiving.
    pub cl_receive: Interval,
    /// Thousandths of the time constant of locking given by a region as large as all locked buffers.
    pub locking_constants: u64,

    /// Maximum additional time of a copy from a bank of level C (Observation 2).
    pub copy_inflation: u64,
    /// The same, on average.
    pub copy_inflation_average: u64,
    /// Sizes of I/O buffers in bytes, equally likely.
    pub io_sizes: Vec<u64>,
    /// Bytes that a device without direct transfer delivers with one interrupt.
    pub packet_bytes: u64,
    /// Bytes that a device with direct transfer delivers with one interrupt: reads of 400 KB (section 5.3).
    pub direct_bytes: u64,
    /// One interrupt, greatest.
    pub interrupt: u64,
    /// One scheduling decision with its context switch, greatest.
    pub schedule: u64,
    /// One release, greatest.
    pub release: u64,
    /// Maximum ways that one preemption makes a task reload.
    pub reload_ways: u64,
}

impl Default for StudyParameters {
    fn default() -> Self {
        Self {
            seed: 2020,
            utilisation_step: 200,
            utilisation_points: 60,
            batch: 16,
            most_samples: 512,
            half_width: 50_000,
            processors: 4,
            ways: 16,
            way_bytes: 65_536,
            level_c_banks: 4,
            minimum_level_c: 1,
            readings: Readings::default(),
            utilisation_level: UtilisationLevel::A,
            level_a_over_b: 1_500_000,
            average_cost: interval(400_000, 900_000),
            way_amplitude: interval(100_000, 1_000_000),
            way_constant: interval(1_000, 4_000),
            unmanaged: interval(15_000, 150_000),
            dma_bus: interval(20_000, 120_000),
            dma_bank: interval(20_000, 120_000),
            dma_constant: interval(40, 120),
            cpu_bank: interval(20_000, 100_000),
            average_interference: 500_000,
            message_share: interval(50_000, 150_000),
            io_share: interval(50_000, 150_000),
            communicating: interval(250_000, 750_000),
            chain: interval(2, 4),
            messages: 1,
            message_call: 3_000,
            copy_speed: copy_speed(BYTES_A_PIXEL),
            message_speed: copy_speed(BYTES_A_PIXEL),
            ce_send: interval(92_000, 129_000),
            ce_receive: interval(292_000, 405_000),
            cl_send: interval(27_000, 54_000),
            cl_receive: interval(106_000, 159_000),
            locking_constants: 3_000,
            copy_inflation: 810_000,
            copy_inflation_average: 850_000,
            io_sizes: io_sizes(BYTES_A_PIXEL),
            packet_bytes: 98_304,
            direct_bytes: 409_600,
            interrupt: 6_000,
            schedule: 5_000,
            release: 5_000,
            reload_ways: 3,
        }
    }
}

/// Why a parameter set is refused.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ParameterError {
    /// A value outside its range.
    #[error("parameter `{name}` is {found}; it must be {range}")]
    Range {
        /// Its name.
        name: &'static str,
        /// Its value.
        found: String,
        /// The values that it may have.
        range: &'static str,
    },
    /// A scenario, a point or a scheme that does not exist.
    #[error("{what} {found} does not exist; there are {count}, counted from 0")]
    Missing {
        /// The kind of the thing.
        what: &'static str,
        /// The number that was asked for.
        found: u64,
        /// How many there are.
        count: u64,
    },
    /// A pattern that matches nothing.
    #[error("{0}")]
    Pattern(String),
}

/// Maximum processors of a study: banks are counted in eight bits.
pub const MOST_PROCESSORS: u64 = 16;
/// Maximum ways.
pub const MOST_WAYS: u64 = 32;

impl StudyParameters {
    /// Points on the horizontal axis in thousandths of a processor.
    pub fn utilisation(&self, index: u64) -> u64 {
        (index + 1) * self.utilisation_step
    }

    /// SHA-256 over all parameters, in hexadecimal digits: results of different parameters are never mixed.
    pub fn hash(&self) -> String {
        // The derived text names every field with its integer: exact and the same on every host.
        let digest = Sha256::digest(format!("{self:?}").as_bytes());
        digest.iter().fold(String::new(), |mut text, byte| {
            // Writing to a string cannot fail.
            let _ = write!(text, "{byte:02x}");
            text
        })
    }

    /// Checks whether all values are consistent.
    ///
    /// # Errors
    /// [`ParameterError::Range`] names the first one that is not.
    pub fn validate(&self) -> Result<(), ParameterError> {
        let numbers = [
            (
                "utilisation_step",
                self.utilisation_step,
                1,
                1_000,
                "1 to 1000",
            ),
            (
                "utilisation_points",
                self.utilisation_points,
                1,
                200,
                "1 to 200",
            ),
            ("batch", self.batch, 1, 1 << 20, "1 to 2^20"),
            ("most_samples", self.most_samples, 1, 1 << 32, "1 to 2^32"),
            (
                "half_width",
                self.half_width,
                1_000,
                500_000,
                "0.001 to 0.5",
            ),
            ("processors", self.processors, 1, MOST_PROCESSORS, "1 to 16"),
            ("ways", self.ways, 1, MOST_WAYS, "1 to 32"),
            ("way_bytes", self.way_bytes, 64, 1 << 24, "64 to 2^24"),
            ("level_c_banks", self.level_c_banks, 1, 64, "1 to 64"),
            (
                "minimum_level_c",
                self.minimum_level_c,
                0,
                self.ways,
                "at most the ways",
            ),
            (
                "level_a_over_b",
                self.level_a_over_b,
                MILLION,
                4 * MILLION,
                "1 to 4",
            ),
            (
                "average_interference",
                self.average_interference,
                0,
                MILLION,
                "0 to 1",
            ),
            ("messages", self.messages, 1, 1_000, "1 to 1000"),
            (
                "message_call",
                self.message_call,
                0,
                MILLION,
                "at most 1 ms",
            ),
            (
                "copy_speed",
                self.copy_speed,
                1,
                MILLION,
                "1 ps to 1 us a byte",
            ),
            (
                "message_speed",
                self.message_speed,
                1,
                MILLION,
                "1 ps to 1 us a byte",
            ),
            (
                "locking_constants",
                self.locking_constants,
                1,
                100_000,
                "0.001 to 100",
            ),
            (
                "copy_inflation",
                self.copy_inflation,
                0,
                4 * MILLION,
                "0 to 4",
            ),
            (
                "copy_inflation_average",
                self.copy_inflation_average,
                0,
                4 * MILLION,
                "0 to 4",
            ),
            (
                "packet_bytes",
                self.packet_bytes,
                1_024,
                1 << 30,
                "1 KiB to 1 GiB",
            ),
            (
                "direct_bytes",
                self.direct_bytes,
                1_024,
                1 << 30,
                "1 KiB to 1 GiB",
            ),
            ("interrupt", self.interrupt, 0, MILLION, "at most 1 ms"),
            ("schedule", self.schedule, 0, MILLION, "at most 1 ms"),
            ("release", self.release, 0, MILLION, "at most 1 ms"),
            (
                "reload_ways",
                self.reload_ways,
                0,
                self.ways,
                "at most the ways",
            ),
        ];
        for (name, value, low, high, range) in numbers {
            if value < low || value > high {
                return Err(ParameterError::Range {
                    name,
                    found: value.to_string(),
                    range,
                });
            }
        }
        let intervals = [
            ("average_cost", self.average_cost, 1, MILLION, "in 0 to 1"),
            (
                "way_amplitude",
                self.way_amplitude,
                0,
                4 * MILLION,
                "in 0 to 4",
            ),
            (
                "way_constant",
                self.way_constant,
                100,
                64_000,
                "in 0.1 to 64 ways",
            ),
            ("unmanaged", self.unmanaged, 0, 4 * MILLION, "in 0 to 4"),
            ("dma_bus", self.dma_bus, 0, 4 * MILLION, "in 0 to 4"),
            ("dma_bank", self.dma_bank, 0, 4 * MILLION, "in 0 to 4"),
            (
                "dma_constant",
                self.dma_constant,
                1,
                10_000,
                "in 1 to 10000 MB/s",
            ),
            ("cpu_bank", self.cpu_bank, 0, 4 * MILLION, "in 0 to 4"),
            ("message_share", self.message_share, 0, MILLION, "in 0 to 1"),
            ("io_share", self.io_share, 0, MILLION, "in 0 to 1"),
            ("communicating", self.communicating, 0, MILLION, "in 0 to 1"),
            ("chain", self.chain, 2, 64, "in 2 to 64 tasks"),
            ("ce_send", self.ce_send, 10_000, MILLION, "in 0.01 to 1"),
            (
                "ce_receive",
                self.ce_receive,
                10_000,
                MILLION,
                "in 0.01 to 1",
            ),
            ("cl_send", self.cl_send, 0, MILLION, "in 0 to 1"),
            ("cl_receive", self.cl_receive, 0, MILLION, "in 0 to 1"),
        ];
        for (name, value, low, high, range) in intervals {
            if value.low > value.high || value.low < low || value.high > high {
                return Err(ParameterError::Range {
                    name,
                    found: format!("{} to {}", value.low, value.high),
                    range,
                });
            }
        }
        // A job must not lose more than itself to what its idle cost already contains.
        if self.message_share.high + self.io_share.high > MILLION {
            return Err(ParameterError::Range {
                name: "io_share",
                found: self.io_share.high.to_string(),
                range: "at most 1 together with message_share",
            });
        }
        if self.io_sizes.is_empty() || self.io_sizes.iter().any(|&s| s == 0 || s > 1 << 30) {
            return Err(ParameterError::Range {
                name: "io_sizes",
                found: format!("{:?}", self.io_sizes),
                range: "at least one size of 1 byte to 1 GiB",
            });
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn copying_speed_is_the_papers() {
        // 2925.67 us for 640 x 480 pixels of two bytes, rounded up to picoseconds.
        let exact: f64 = 2_925.67e6 / (640.0 * 480.0 * 2.0);
        let parameters = StudyParameters::default();
        assert_eq!(parameters.copy_speed, exact.ceil() as u64);
        assert_eq!(parameters.copy_speed, 4_762);
        assert_eq!(parameters.io_sizes, [38_400, 153_600, 409_600, 614_400]);
    }

    #[test]
    fn nonsense_is_refused() {
        let refuse = |change: fn(&mut StudyParameters)| {
            let mut parameters = StudyParameters::default();
            change(&mut parameters);
            parameters.validate().expect_err("refused").to_string()
        };
        insta::assert_snapshot!(refuse(|p| p.processors = 0), @"parameter `processors` is 0; it must be 1 to 16");
        insta::assert_snapshot!(refuse(|p| p.chain = interval(4, 2)), @"parameter `chain` is 4 to 2; it must be in 2 to 64 tasks");
        insta::assert_snapshot!(refuse(|p| p.io_sizes.clear()), @"parameter `io_sizes` is []; it must be at least one size of 1 byte to 1 GiB");
    }
}
