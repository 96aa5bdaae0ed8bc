//! Runs batches on both sides, finds mismatches and shrinks them.

use bulkhead_machine::hart::IntervalConfig;

use crate::compare::{self, Outcome};
use crate::generate::generate;
use crate::program::Category;
use crate::program::{self, Program};
use crate::{ours, qemu, whole};

/// Tests in one start of QEMU.
pub const BATCH: usize = 100;

/// A test on which the two sides disagree.
#[derive(Clone, Debug)]
pub struct Mismatch {
    /// The program, as far as it could be shrunk.
    pub program: Program,
    /// What differs, or which side gave no result.
    pub difference: String,
}

/// Runs programs on QEMU.
///
/// # Errors
/// When QEMU cannot be used.
pub fn on_qemu(programs: &[&Program]) -> Result<Vec<Outcome>, qemu::Error> {
    let (image, results) = program::image(programs);
    let memory = qemu::run(&image)?;
    Ok(programs
        .iter()
        .zip(results)
        .map(|(program, result)| compare::read(&memory, result, program))
        .collect())
}

/// The implementation of ours that runs the programs.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Side {
    /// The hart with a memory that answers at once.
    Hart,
    /// The hart with a memory that answers after random delays.
    SlowMemory,
    /// A whole machine.
    Machine,
    /// A hart that executes out of order, with a memory that answers after random delays.
    OutOfOrder,
    /// A whole machine whose hart executes out of order.
    MachineOutOfOrder,
}

/// An out-of-order pipeline with `width` instructions per cycle.
fn out_of_order(width: u32) -> IntervalConfig {
    IntervalConfig {
        width,
        window: 16 * width,
        load_queue: 4 * width,
        store_queue: 4 * width,
        alus: width,
        memory_ports: width.div_ceil(2),
        float_units: width.div_ceil(2),
    }
}

impl Side {
    const ALL: [Self; 5] = [
        Self::Hart,
        Self::SlowMemory,
        Self::Machine,
        Self::OutOfOrder,
        Self::MachineOutOfOrder,
    ];

    fn note(self) -> &'static str {
        match self {
            Self::Hart => "",
            Self::SlowMemory => " (only with a slow memory)",
            Self::Machine => " (only in a whole machine)",
            Self::OutOfOrder => " (only out of order)",
            Self::MachineOutOfOrder => " (only out of order in a whole machine)",
        }
    }

    fn run(self, programs: &[&Program]) -> Result<Vec<Outcome>, ours::Error> {
        let (image, results) = program::image(programs);
        let memory = match self {
            Self::Hart => ours::run(&image, programs.len(), None, None),
            Self::SlowMemory => ours::run(&image, programs.len(), Some(1), None),
            Self::Machine => whole::run(&image, programs.len(), None),
            Self::OutOfOrder => ours::run(&image, programs.len(), Some(2), Some(out_of_order(2))),
            Self::MachineOutOfOrder => whole::run(&image, programs.len(), Some(out_of_order(4))),
        }?;
        Ok(programs
            .iter()
            .zip(results)
            .map(|(program, result)| compare::read(&memory, result, program))
            .collect())
    }
}

/// Compares one batch; if a side gives no result at all, the program that causes it counts as a mismatch.
///
/// # Errors
/// When QEMU cannot be used.
pub fn batch(programs: &[&Program]) -> Result<Vec<Mismatch>, qemu::Error> {
    let expected = match on_qemu(programs) {
        Ok(outcomes) => outcomes,
        Err(error @ qemu::Error::Timeout) => return split(programs, &error.to_string()),
        Err(error) => return Err(error),
    };
    let mut mismatches: Vec<Mismatch> = Vec::new();
    for side in Side::ALL {
        let actual = match side.run(programs) {
            Ok(outcomes) => outcomes,
            Err(error) => return split(programs, &format!("{error}{}", side.note())),
        };
        for ((program, expected), actual) in programs.iter().zip(&expected).zip(&actual) {
            let known = |mismatch: &Mismatch| mismatch.program.name() == program.name();
            if let Some(difference) = compare::difference(program, expected, actual)
                && (side == Side::Hart || !mismatches.iter().any(known))
            {
                mismatches.push(Mismatch {
                    program: (*program).clone(),
                    difference: difference + side.note(),
                });
            }
        }
    }
    Ok(mismatches)
}

fn split(programs: &[&Program], reason: &str) -> Result<Vec<Mismatch>, qemu::Error> {
    if let [program] = programs {
        return Ok(vec![Mismatch {
            program: (*program).clone(),
            difference: reason.to_owned(),
        }]);
    }
    let (left, right) = programs.split_at(programs.len() / 2);
    let mut mismatches = batch(left)?;
    mismatches.extend(batch(right)?);
    Ok(mismatches)
}

/// Removes chunks as long as the two sides still disagree; stops after `budget` starts of QEMU.
///
/// # Errors
/// When QEMU cannot be used.
pub fn shrink(mismatch: Mismatch, mut budget: usize) -> Result<Mismatch, qemu::Error> {
    let mut best = mismatch;
    let mut width = best.program.chunks.len().div_ceil(2).max(1);
    loop {
        // All candidates of one width run in one batch; the first that still disagrees is kept.
        let candidates: Vec<Program> = (0..best.program.chunks.len())
            .step_by(width)
            .filter_map(|begin| {
                let mut candidate = best.program.clone();
                let mut index = 0;
                candidate.chunks.retain(|chunk| {
                    let keep = chunk.fixed || !(begin..begin + width).contains(&index);
                    index += 1;
                    keep
                });
                (candidate.chunks.len() < best.program.chunks.len()).then_some(candidate)
            })
            .collect();
        let mut found = None;
        for group in groups(&candidates) {
            if budget == 0 {
                return Ok(best);
            }
            budget -= 1;
            let references: Vec<&Program> = group.iter().collect();
            if let Some(smaller) = batch(&references)?.into_iter().next() {
                found = Some(smaller);
                break;
            }
        }
        match found {
            Some(smaller) => best = smaller,
            None if width == 1 => return Ok(best),
            None => width = width.div_ceil(2),
        }
        width = width.min(best.program.chunks.len().max(1));
    }
}

/// Consecutive programs that can run in one start.
fn groups(programs: &[Program]) -> Vec<&[Program]> {
    let runs = programs.chunk_by(|left, right| !left.alone && !right.alone);
    runs.flat_map(|run| run.chunks(BATCH)).collect()
}

/// The programs of these categories and seeds.
#[must_use]
pub fn programs(categories: &[Category], seeds: std::ops::Range<u64>) -> Vec<Program> {
    let mut programs = Vec::new();
    for &category in categories {
        programs.extend(seeds.clone().map(|seed| generate(category, seed)));
    }
    programs
}

/// Compares all programs on up to `jobs` threads; mismatches are in the order of the programs.
///
/// # Errors
/// When QEMU cannot be used.
pub fn run(
    programs: &[Program],
    jobs: usize,
    progress: impl Fn(usize) + Sync,
) -> Result<Vec<Mismatch>, qemu::Error> {
    let batches = groups(programs);
    let next = std::sync::atomic::AtomicUsize::new(0);
    let results = std::sync::Mutex::new(Vec::new());
    std::thread::scope(|scope| {
        for _ in 0..jobs.clamp(1, batches.len().max(1)) {
            scope.spawn(|| {
                loop {
                    let index = next.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
                    let Some(programs) = batches.get(index) else {
                        return;
                    };
                    let references: Vec<&Program> = programs.iter().collect();
                    let result = batch(&references);
                    let mut results = results
                        .lock()
                        .unwrap_or_else(std::sync::PoisonError::into_inner);
                    results.push((index, result));
                    drop(results);
                    progress(programs.len());
                }
            });
        }
    });
    let mut results = results
        .into_inner()
        .unwrap_or_else(std::sync::PoisonError::into_inner);
    results.sort_by_key(|(index, _)| *index);
    let mut mismatches = Vec::new();
    for (_, result) in results {
        mismatches.extend(result?);
    }
    Ok(mismatches)
}
