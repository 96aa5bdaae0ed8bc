//! Beyond the paper: parallel sections on 1 to 16 cores, their speed-up, their bounds, and results checked against a plain computation.
//!
//! Why it exists: the paper leaves parallel work on some cores to the future (section 6). What it deliberately does not know: how slices
//! travel; it writes descriptions, runs them, and recomputes the same numbers.
//!
//! Costs are stated before a run: measured on one core and rounded up ([`Work::costs`]). The waits are the shortest that the analysis finds
//! sufficient.

use bulkhead_analysis::plan::one_shot::bounds;
use bulkhead_analysis::plan::{Constraint, Kind, plan};
use bulkhead_model::load_system_text;
use bulkhead_report::distribution::distribution;
use bulkhead_report::result::Distribution;
use bulkhead_report::verdict::{Judgement, Promise};
use bulkhead_runner::error::Error;
use bulkhead_runner::progress::Progress;
use bulkhead_runner::run;
use serde::Serialize;
use std::fmt::Write;

/// How many cores share a workload.
pub const CORES: [usize; 5] = [1, 2, 4, 8, 16];
/// The task that owns the work, in the middle of the mesh. Its helpers follow by their distance, then by their number.
const ASKER: u16 = 5;
/// Columns of the mesh.
const COLUMNS: u16 = 4;
/// Numbers of 16 bits in a word.
const IN_WORD: usize = 4;

/// A workload that is shared.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Work {
    /// A FIR filter: 2048 samples of 16 bits, 32 coefficients.
    Filter,
    /// A product of two matrices of 48 x 48 numbers of 16 bits.
    Matrix,
}

const SAMPLES: usize = 2048;
const TAPS: usize = 32;
const SIZE: usize = 48;

impl Work {
    /// Both.
    pub const ALL: [Self; 2] = [Self::Filter, Self::Matrix];

    /// For tables.
    pub fn name(self) -> &'static str {
        match self {
            Self::Filter => "FIR filter, 2048 samples, 32 taps",
            Self::Matrix => "matrix product, 48 x 48",
        }
    }

    /// Its programs, without the number of cores.
    fn programs(self) -> [&'static str; 2] {
        match self {
            Self::Filter => ["filter::Filter", "filter::Part"],
            Self::Matrix => ["matrix::Matrix", "matrix::Rows"],
        }
    }

    /// Words of a slice, of a result, and of everything generated before a section, for this many cores.
    fn words(self, cores: usize) -> [usize; 3] {
        match self {
            Self::Filter => {
                let result = SAMPLES / cores / IN_WORD;
                [result + TAPS / IN_WORD, result, SAMPLES / IN_WORD]
            }
            Self::Matrix => {
                let whole = SIZE * SIZE / IN_WORD;
                [whole / cores + whole, whole / cores, 2 * whole]
            }
        }
    }

    /// Multiplications in all.
    fn steps(self) -> u64 {
        match self {
            Self::Filter => (SAMPLES * TAPS) as u64,
            Self::Matrix => (SIZE * SIZE * SIZE) as u64,
        }
    }

    /// Maximum time of a job without waiting, in microseconds: of the task and of a helper.
    fn costs(self, cores: usize) -> [u64; 2] {
        /// Cycles for a multiplication with its share of the loops. It takes 12 to 22.4, because the compiler makes another loop in each
        /// image. The value was 15, and then 20, until a product on one core took longer.
        const STEP: u64 = 25;
        /// Cycles for a word that is generated, copied or added to a digest.
        const WORD: u64 = 30;
        /// Other cycles of a job or an operation.
        const OTHER: u64 = 1000;
        /// Cycles of a microsecond.
        const CYCLES: u64 = 600;
        let [slice, result, new] = self.words(cores).map(|words| words as u64);
        let compute = self.steps() / cores as u64 * STEP;
        let helpers = cores as u64 - 1;
        let own = compute + 2 * WORD * new + helpers * (WORD * (slice + result) + OTHER);
        let help = compute + WORD * (slice + result);
        [own, help].map(|cycles| (cycles + OTHER).div_ceil(CYCLES))
    }

    /// Digests of the first blocks, from a plain computation.
    pub fn digests(self, blocks: usize) -> Vec<u64> {
        let mut random = 1;
        let mut history = vec![0; TAPS];
        let mut digests = Vec::new();
        for _ in 0..blocks {
            let mut numbers = |count: usize| -> Vec<i16> {
                let words = (0..count / IN_WORD).map(|_| draw(&mut random));
                let parts = words.flat_map(|word| [0, 16, 32, 48].map(|at| (word >> at) as i16));
                parts.collect()
            };
            let results: Vec<i16> = match self {
                Self::Filter => {
                    history.extend(numbers(SAMPLES));
                    let results = (TAPS..history.len())
                        .map(|at| filtered(&history, at))
                        .collect();
                    history.drain(..SAMPLES);
                    results
                }
                Self::Matrix => {
                    let (first, second) = (numbers(SIZE * SIZE), numbers(SIZE * SIZE));
                    (0..SIZE * SIZE)
                        .map(|at| product(&first, &second, at / SIZE, at % SIZE))
                        .collect()
                }
            };
            digests.push(digest(&results));
        }
        digests
    }
}

/// The programs' generator, written again.
fn draw(state: &mut u64) -> u64 {
    *state = state
        .wrapping_mul(6_364_136_223_846_793_005)
        .wrapping_add(1_442_695_040_888_963_407);
    *state
}

/// The filter's output for a sample: 32 coefficients in a triangle from 120 to 1920, in units of 2^-15.
fn filtered(samples: &[i16], at: usize) -> i16 {
    let coefficient = |tap: usize| 120 * (1 + tap.min(TAPS - 1 - tap) as i64);
    let sum: i64 = (0..TAPS)
        .map(|tap| coefficient(tap) * i64::from(samples[at - tap]))
        .sum();
    (sum >> 15) as i16
}

fn product(first: &[i16], second: &[i16], row: usize, column: usize) -> i16 {
    let one = |at: usize| i64::from(first[row * SIZE + at]) * i64::from(second[at * SIZE + column]);
    ((0..SIZE).map(one).sum::<i64>() >> 15) as i16
}

/// FNV-1a over words of four numbers.
fn digest(numbers: &[i16]) -> u64 {
    numbers
        .chunks(IN_WORD)
        .fold(0xCBF2_9CE4_8422_2325, |hash: u64, part| {
            let shifted = part.iter().zip([0, 16, 32, 48]);
            let word = shifted.fold(0, |word, (one, at)| word | u64::from(*one as u16) << at);
            (hash ^ word).wrapping_mul(0x0100_0000_01B3)
        })
}

/// The description of a workload on this many cores; the given waits of its task and of its helpers are in microseconds.
pub fn description(work: Work, cores: usize, [wait, helpers_wait]: [u64; 2]) -> String {
    let [task, helper] = work.programs();
    let [cost, help] = work.costs(cores);
    let [slice, result, _] = work.words(cores).map(|words| words * 8);
    let distance = |core: u16| {
        let of = |core: u16| (core / COLUMNS, core % COLUMNS);
        let ((row, column), (other_row, other_column)) = (of(core), of(ASKER));
        row.abs_diff(other_row) + column.abs_diff(other_column)
    };
    let mut others: Vec<u16> = (0..COLUMNS * COLUMNS)
        .filter(|core| *core != ASKER)
        .collect();
    others.sort_by_key(|&core| (distance(core), core));
    let mut text = format!(
        "<system name=\"parallel-{cores}\" paradigm=\"one-shot\" platform=\"epiphany3\" duration=\"{}ms\">\n",
        PERIOD * BLOCKS as u64 - 1
    );
    let waits = |microseconds: u64| match cores {
        1 => String::new(),
        _ => format!(" wait=\"{microseconds}us\""),
    };
    // Writing to a string cannot fail.
    let mut put = |name: &str, program: &str, core: u16, cost: u64, wait: String| {
        let _ = writeln!(
            text,
            "  <task name=\"{name}\" program=\"one-shot::parallel::{program}{cores}\" core=\"{core}\" priority=\"1\" period=\"{PERIOD}ms\" cost=\"{cost}us\"{wait}/>"
        );
    };
    put("task", task, ASKER, cost, waits(wait));
    for (number, core) in others.iter().take(cores - 1).enumerate() {
        put(
            &format!("helper-{}", number + 1),
            helper,
            *core,
            help,
            waits(helpers_wait),
        );
    }
    for number in 1..cores {
        let _ = writeln!(
            text,
            "  <channel name=\"slice-{number}\" from=\"task\" to=\"helper-{number}\" size=\"{slice}B\"/>\n  \
             <channel name=\"result-{number}\" from=\"helper-{number}\" to=\"task\" size=\"{result}B\" answers=\"slice-{number}\"/>"
        );
    }
    text.push_str("</system>\n");
    text
}

/// Blocks of a run. In the first one no helper is asked, so its results are missing unless there is only one core.
const BLOCKS: usize = 6;
/// Milliseconds of a period.
const PERIOD: u64 = 10;

/// A work on some cores.
#[derive(Clone, Debug, Serialize)]
pub struct Section {
    /// The workload.
    pub what: String,
    /// Number of cores that share it.
    pub cores: usize,
    /// From the beginning of the section to its end, in cycles.
    pub section: Distribution,
    /// How many times as fast as on one core, by the longest sections.
    pub speed_up: f64,
    /// The longest response of the task that owns the work, in cycles, and its bound.
    pub response: [u64; 2],
    /// How long it may wait, and how long each helper may, in microseconds.
    pub waits: [u64; 2],
    /// Blocks whose results were compared with a plain computation, and how many were equal.
    pub compared: [usize; 2],
}

/// The constraints of a description; times are in nanoseconds.
fn constraints(text: &str) -> Result<Vec<Constraint>, Error> {
    let system = load_system_text("parallel.xml", text, &Default::default())?;
    let one_shot = system.one_shot.as_ref();
    let one_shot = one_shot.ok_or_else(|| Error::Machine("no one-shot tasks".to_owned()))?;
    let tasks = bounds(one_shot, &system.platform).tasks;
    let planned = plan(&tasks).map_err(|error| Error::Machine(error.to_string()))?;
    Ok(planned.constraints)
}

/// The description with the shortest sufficient waits, in whole steps of 10 us.
fn sufficient(work: Work, cores: usize) -> Result<(String, [u64; 2]), Error> {
    let mut waits = [10, 10];
    // A longer wait touches more ticks, whose interrupts make jobs longer; each iteration only adds.
    loop {
        let text = description(work, cores, waits);
        let mut least = [10, 10];
        for one in constraints(&text)? {
            let reader = usize::from(one.subject.starts_with("slice"));
            if one.kind == Kind::Channel {
                let bound = one.bound.ok_or_else(|| {
                    Error::Machine(format!("{} on {cores} cores: no bound", work.name()))
                })?;
                least[reader] = bound.div_ceil(10_000).saturating_mul(10).max(least[reader]);
            }
        }
        if least[0] <= waits[0] && least[1] <= waits[1] {
            return Ok((text, waits));
        }
        waits = [0, 1].map(|at| least[at].max(waits[at]));
    }
}

/// Runs both workloads on all numbers of cores.
///
/// # Errors
/// If a system cannot be run.
pub fn sections(progress: &dyn Progress) -> Result<(Vec<Section>, Vec<Promise>), Error> {
    let (mut all, mut promises) = (Vec::new(), Vec::new());
    for work in Work::ALL {
        let mut alone = 0;
        for cores in CORES {
            let (section, held) = one(work, cores, &mut alone, progress)?;
            all.push(section);
            promises.extend(held);
        }
    }
    Ok((all, promises))
}

fn one(
    work: Work,
    cores: usize,
    alone: &mut u64,
    progress: &dyn Progress,
) -> Result<(Section, [Promise; 2]), Error> {
    let (text, waits) = sufficient(work, cores)?;
    let options = run::Options {
        system: format!("parallel-{cores}.xml").into(),
        text: Some(text),
        ..run::Options::default()
    };
    let finished = run::run(&options, progress)?;
    let variant = &finished.result.variants[0];
    let missing = || Error::Machine(format!("{} on {cores} cores was not seen", work.name()));
    let cycles = |ticks: u64| finished.result.cycles(ticks);
    let spans = variant.spans.first().ok_or_else(missing)?;
    // In the first job no helper is asked.
    let asked = spans.samples.iter().filter(|sample| sample.number > 1);
    let section = distribution(asked.map(|sample| cycles(sample.latency)));
    if cores == 1 {
        *alone = section.max;
    }
    let mut responses = variant.requests.iter();
    let response = responses.find(|one| one.kind == "response" && one.application == "task");
    let response = response.ok_or_else(missing)?;
    let bound = response.bound.as_ref().ok_or_else(missing)?;
    let digests = work.digests(BLOCKS);
    let told = told(finished.consoles.first().map_or("", String::as_str));
    let equal = told
        .iter()
        .filter(|(block, digest)| digests.get(block.wrapping_sub(1)) == Some(digest));
    let compared = [told.len(), equal.count()];
    let failed = finished.result.verdict.promises().iter();
    let failed = failed
        .filter(|one| one.judgement != Judgement::Held)
        .count();
    let name = format!("{} on {cores} cores", work.name());
    let right = format!(
        "{name}: results of {} blocks equal those of a sequential computation",
        compared[0]
    );
    let bounded = format!("{name}: everything within its bound, and nothing went wrong");
    let promises = [
        Promise::judged(
            "",
            right,
            compared[0] + 1 >= BLOCKS && compared[0] == compared[1],
        ),
        Promise::judged("", bounded, failed == 0 && variant.incidents.is_empty()),
    ];
    let one = Section {
        what: work.name().to_owned(),
        cores,
        speed_up: *alone as f64 / section.max.max(1) as f64,
        section,
        response: [response.worst, bound.ticks].map(cycles),
        waits,
        compared,
    };
    Ok((one, promises))
}

/// The blocks that a console reports with their digests.
pub fn told(console: &str) -> Vec<(usize, u64)> {
    let lines: Vec<&str> = console.lines().collect();
    let pairs = lines.windows(2).filter_map(|pair| {
        let block = pair[0].split_once("block ")?.1.parse().ok()?;
        let digest = pair[1].split_once("digest ")?.1.parse().ok()?;
        Some((block, digest))
    });
    pairs.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A block of zeros except for one number: the filter answers with its coefficients, and a matrix with one row or column.
    #[test]
    fn the_plain_computation_is_that_of_the_definitions() {
        let mut samples = vec![0; TAPS + 64];
        samples[40] = i16::MAX;
        let answer: Vec<i16> = (40..72).map(|at| filtered(&samples, at)).collect();
        assert_eq!(
            (answer[0], answer[15], answer[16], answer[31]),
            (119, 1919, 1919, 119)
        );
        let mut first = vec![0; SIZE * SIZE];
        let mut second = first.clone();
        (first[5 * SIZE + 7], second[7 * SIZE + 9]) = (1 << 14, 1 << 10);
        assert_eq!(product(&first, &second, 5, 9), 1 << 9);
        assert_eq!(product(&first, &second, 9, 5), 0);
    }

    #[test]
    fn every_number_of_cores_has_a_description_whose_waits_suffice() {
        for work in Work::ALL {
            for cores in CORES {
                let (text, _) = sufficient(work, cores).expect("it has bounds");
                let all = constraints(&text).expect("it is planned");
                assert!(all.iter().all(|one| one.holds()), "{cores}: {all:?}");
            }
        }
    }
}
