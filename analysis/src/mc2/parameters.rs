//! Every number of the study, each in one place: what mc2-rts20 states, and what it leaves to earlier work.
//!
//! Why it exists: the paper gives distributions (its Table 3), percentages (its section 5) and a procedure, but neither the
//! curves of its figures nor the ranges from which it samples. What it does not give is chosen here, once, on grounds of the
//! text or of the chip, never by looking at the ratios that the study computes; [`OPEN`] lists these choices with their
//! reasons and with the other values that a sensitivity run tries.
//!
//! Units: shares are integers in millionths ([`MILLION`]), times in nanoseconds, speeds in picoseconds a byte, so that a
//! parameter set has one exact text and one hash.

use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use std::fmt::Write;

/// Shares are integers in parts of this.
pub const MILLION: u64 = 1_000_000;

/// An interval from which a value is drawn uniformly; both ends belong to it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Interval {
    /// Least value.
    pub low: u64,
    /// Greatest value.
    pub high: u64,
}

const fn interval(low: u64, high: u64) -> Interval {
    Interval { low, high }
}

/// Of which level a generated utilisation is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum UtilisationLevel {
    /// All are costs as level A estimates them.
    A,
    /// Each is the cost that the task's own level estimates.
    Own,
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
    /// Systems are judged in batches of so many; after each batch the confidence is looked at.
    pub batch: u64,
    /// Most systems of one point; a multiple of `batch` is reached.
    pub most_samples: u64,
    /// Half width of the confidence interval at which sampling stops, in millionths (the paper: 0.05 at 95 %).
    pub half_width: u64,

    /// Processors (the paper: i.MX6 quad).
    pub processors: u64,
    /// Ways of the last-level cache.
    pub ways: u64,
    /// Bytes of one way: 1 MiB / 16.
    pub way_bytes: u64,
    /// Memory banks of level C and the operating system: eight, less one for each processor.
    pub level_c_banks: u64,
    /// Least ways of level C and the operating system.
    pub minimum_level_c: u64,

    /// Of which level the generated utilisations are.
    pub utilisation_level: UtilisationLevel,
    /// Cost at level A over cost at level B, in millionths: 1.5 (section 2).
    pub level_a_over_b: u64,
    /// Average cost over greatest observed cost.
    pub average_cost: Interval,
    /// What a task with no way at all takes longer, over its cost with all ways.
    pub way_amplitude: Interval,
    /// Thousandths of ways after which that has fallen to 1/e.
    pub way_constant: Interval,
    /// Interference through what nobody manages (buses, memory controller).
    pub unmanaged: Interval,
    /// Inflation through the memory bus under unlimited bandwidth of devices.
    pub dma_bus: Interval,
    /// Inflation through row conflicts under unlimited bandwidth of devices into the task's bank, with no ways.
    pub dma_bank: Interval,
    /// Bandwidth in MB/s at which 1 - 1/e of these is reached.
    pub dma_constant: Interval,
    /// Inflation through row conflicts when one other processor keeps copying in the task's bank, with no ways.
    pub cpu_bank: Interval,
    /// Interference that is met on average, over the greatest: 3 % over 6 % (Observation 3).
    pub average_interference: u64,

    /// Share of a job that passes messages at most.
    pub message_share: Interval,
    /// Share of a job that copies device data at most.
    pub io_share: Interval,
    /// Share of tasks that begin a chain of messages.
    pub communicating: Interval,
    /// Tasks of a chain.
    pub chain: Interval,
    /// Messages through each buffer and job.
    pub messages: u64,
    /// A system call that sends or receives an empty message.
    pub message_call: u64,
    /// Copying speed in picoseconds a byte: 2925.67 us for 640 x 480 pixels (section 5.2) of two bytes.
    pub copy_speed: u64,
    /// Concurrency elimination over selective bypass, sending (Figure 8).
    pub ce_send: Interval,
    /// The same, receiving.
    pub ce_receive: Interval,
    /// Locking over selective bypass, sending.
    pub cl_send: Interval,
    /// The same, receiving.
    pub cl_receive: Interval,
    /// Thousandths of the time constant of locking that a region as large as all locked buffers gives.
    pub locking_constants: u64,

    /// What a copy from a bank of level C takes longer, greatest (Observation 2).
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
    /// Ways that one preemption makes a task load again at most.
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
            utilisation_level: UtilisationLevel::A,
            level_a_over_b: 1_500_000,
            average_cost: interval(400_000, 900_000),
            way_amplitude: interval(100_000, 1_000_000),
            way_constant: interval(1_000, 4_000),
            unmanaged: interval(50_000, 1_000_000),
            dma_bus: interval(20_000, 120_000),
            dma_bank: interval(20_000, 120_000),
            dma_constant: interval(40, 120),
            cpu_bank: interval(20_000, 100_000),
            average_interference: 500_000,
            message_share: interval(200_000, 400_000),
            io_share: interval(400_000, 600_000),
            communicating: interval(250_000, 750_000),
            chain: interval(2, 4),
            messages: 1,
            message_call: 3_000,
            copy_speed: 4_762,
            ce_send: interval(92_000, 129_000),
            ce_receive: interval(292_000, 405_000),
            cl_send: interval(27_000, 54_000),
            cl_receive: interval(106_000, 159_000),
            locking_constants: 3_000,
            copy_inflation: 810_000,
            copy_inflation_average: 850_000,
            io_sizes: vec![38_400, 153_600, 409_600, 614_400],
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
        /// Which.
        name: &'static str,
        /// What it is.
        found: String,
        /// What it may be.
        range: &'static str,
    },
    /// A scenario, a point or a scheme that does not exist.
    #[error("{what} {found} does not exist; there are {count}, counted from 0")]
    Missing {
        /// What it should be.
        what: &'static str,
        /// What was asked for.
        found: u64,
        /// How many there are.
        count: u64,
    },
    /// A pattern that matches nothing.
    #[error("{0}")]
    Pattern(String),
}

/// Most processors of a study: banks are counted in eight bits.
pub const MOST_PROCESSORS: u64 = 16;
/// Most ways.
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

    /// Says whether all values make sense together.
    ///
    /// # Errors
    /// [`ParameterError::Range`] names the first that does not.
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
        // A job must not lose more than itself to what its idle cost already holds.
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

/// A parameter that the paper leaves open.
#[derive(Clone, Copy, Debug)]
pub struct OpenParameter {
    /// Its field.
    pub name: &'static str,
    /// Its unit.
    pub unit: &'static str,
    /// Why it has its value.
    pub reason: &'static str,
    /// The low variant of a sensitivity run.
    pub low: fn(&mut StudyParameters),
    /// The high variant.
    pub high: fn(&mut StudyParameters),
    /// Its value as text.
    pub value: fn(&StudyParameters) -> String,
}

macro_rules! open {
    ($name:ident, $unit:literal, interval $low:expr, $high:expr, $reason:literal) => {
        OpenParameter {
            name: stringify!($name),
            unit: $unit,
            reason: $reason,
            low: |p| p.$name = interval($low.0, $low.1),
            high: |p| p.$name = interval($high.0, $high.1),
            value: |p| format!("{} to {}", p.$name.low, p.$name.high),
        }
    };
    ($name:ident, $unit:literal, number $low:expr, $high:expr, $reason:literal) => {
        OpenParameter {
            name: stringify!($name),
            unit: $unit,
            reason: $reason,
            low: |p| p.$name = $low,
            high: |p| p.$name = $high,
            value: |p| p.$name.to_string(),
        }
    };
}

/// What the paper leaves open, with reasons and with the variants of the sensitivity run.
pub const OPEN: &[OpenParameter] = &[
    OpenParameter {
        name: "utilisation_level",
        unit: "level",
        reason: "Section 6.1 says that period times utilisation is the idle cost under Level-A pessimism; footnote 14 says, informally, \
                 that each level's column models that level's costs. The sentence on the method counts; `Own` is the other reading.",
        low: |p| p.utilisation_level = UtilisationLevel::Own,
        high: |p| p.utilisation_level = UtilisationLevel::Own,
        value: |p| format!("{:?}", p.utilisation_level),
    },
    open!(
        average_cost,
        "millionths of the greatest cost",
        interval(300_000, 600_000),
        (700_000, 950_000),
        "Level C has average costs (section 2). Section 5.2 calls Matrix far more deterministic than the video programs: programs \
         between strongly varying and nearly constant."
    ),
    open!(
        way_amplitude,
        "millionths of the cost with all ways",
        interval(50_000, 500_000),
        (200_000, 2_000_000),
        "An LLC hit of the i.MX6 costs about 30 cycles, an access to memory about three times as much again: a program that spends \
         5 % to 50 % of its time on LLC hits takes 10 % to 100 % longer without the cache."
    ),
    open!(
        way_constant,
        "thousandths of ways",
        interval(500, 2_000),
        (2_000, 8_000),
        "Working sets of one way (64 KiB) to four (256 KiB, the paper's Synthetic) are cached in the main once they fit."
    ),
    open!(
        unmanaged,
        "millionths",
        interval(25_000, 500_000),
        (100_000, 2_000_000),
        "Figure 11 shows the gap between Idle and Managed without numbers. Arbiters serve the least recently served first (section \
         2), so each of three other processors can take the bus for as long as the task itself uses it: three times its share of \
         memory time, which is 2 % to 33 %."
    ),
    open!(
        dma_bus,
        "millionths",
        interval(10_000, 60_000),
        (40_000, 240_000),
        "Observation 4: the bus is the main cause. Devices move at most 200 MB/s, about a tenth of what the memory sustains."
    ),
    open!(
        dma_bank,
        "millionths",
        interval(10_000, 60_000),
        (40_000, 240_000),
        "A copying processor moves about 210 MB/s and inflates Matrix by 6 % through row conflicts (Observation 3); a device moves \
         as much. From hardly any accesses to twice as many as Matrix."
    ),
    open!(
        dma_constant,
        "MB/s",
        interval(20, 60),
        (80, 240),
        "The increase falls off within the 0 to 200 MB/s of the figures (section 6.1)."
    ),
    open!(
        cpu_bank,
        "millionths",
        interval(10_000, 50_000),
        (40_000, 200_000),
        "6 % for Matrix beside one copying processor (Observation 3); tasks touch memory less or more."
    ),
    open!(
        message_share,
        "millionths of the cost at level B",
        interval(25_000, 75_000),
        (400_000, 400_000),
        "Only a limit: a job's messages take what calls and bytes take, but never more than this share of its idle cost, which holds \
         them. Most jobs stay far below (section 6.2: a relatively small proportion)."
    ),
    open!(
        io_share,
        "millionths of the cost at level B",
        interval(50_000, 150_000),
        (600_000, 600_000),
        "Only a limit, as `message_share`: a job that copies also has to process what it copied. A tighter one would contradict Table \
         3: 180 to 200 MB/s copied at 210 MB/s (section 5.2) take most of a processor."
    ),
    open!(
        communicating,
        "millionths",
        interval(125_000, 375_000),
        (500_000, 1_000_000),
        "The paper does not say how many tasks exchange messages: a quarter to three quarters of the chances to begin a chain."
    ),
    open!(
        chain,
        "tasks",
        interval(2, 2),
        (2, 8),
        "Tasks that communicate share a period (section 6.1): short pipelines."
    ),
    open!(messages, "messages", number 2, 4,
        "The paper does not say how many messages a job sends; its measurements send 100 in a run (section 5.1). One is the least."),
    open!(message_call, "ns", number 1_500, 6_000,
        "A Linux system call with System V queue handling at 800 MHz takes a few thousand cycles."),
    open!(locking_constants, "thousandths", number 1_500, 6_000,
        "A region that holds all buffers keeps e^-3 = 5 % of the penalty; smaller regions lose exponentially (section 6.1)."),
    open!(interrupt, "ns", number 3_000, 12_000,
        "An interrupt entry with a short handler in Linux at 800 MHz."),
    open!(packet_bytes, "bytes", number 49_152, 196_608,
        "The Linux USB video driver asks for 32 packets of 3 KiB before an interrupt."),
    open!(schedule, "ns", number 2_500, 10_000,
        "LITMUS^RT on processors of this speed decides and switches within a few microseconds."),
    open!(release, "ns", number 2_500, 10_000,
        "As `schedule`."),
    open!(reload_ways, "ways", number 1, 6,
        "A preemption can cost at most what lay in the processor's region: 16 ways over five regions."),
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_variant_is_valid_and_differs() {
        let base = StudyParameters::default();
        base.validate().expect("the default is valid");
        for open in OPEN {
            for vary in [open.low, open.high] {
                let mut other = base.clone();
                vary(&mut other);
                other.validate().expect(open.name);
                assert_ne!(base.hash(), other.hash(), "{}", open.name);
            }
        }
    }

    #[test]
    fn copying_speed_is_the_papers() {
        // 2925.67 us for 640 x 480 pixels of two bytes, rounded up to picoseconds.
        let exact: f64 = 2_925.67e6 / (640.0 * 480.0 * 2.0);
        assert_eq!(StudyParameters::default().copy_speed, exact.ceil() as u64);
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
