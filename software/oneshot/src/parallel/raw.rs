//! Parallel sections for languages without types that say when an operation is allowed.
//!
//! Why it exists: in C, slices and results are bytes, and nothing but a check keeps a job from a second section, or from handing out a slice after it has waited
//! for a result; bounds rely on both. What it deliberately does not know: the language. Everything else is in the parent module.

use super::{Missing, Open, clock, released, wrong_size};
use crate::kernel;
use crate::port::Failure;
use crate::task::{Done, Job};
use bulkhead_exec_one_shot::TASKS;
use core::sync::atomic::{AtomicU64, Ordering};

/// Bytes of a word; slices and results are aligned words.
const WORD: usize = 8;

impl Open {
    /// Whether an item consists of words.
    fn takes(&self, item: &[u8]) -> Result<(), Failure> {
        let are_words =
            item.len().is_multiple_of(WORD) && item.as_ptr().addr().is_multiple_of(WORD);
        are_words
            .then_some(())
            .ok_or_else(|| wrong_size(self.name, item.len()))
    }
}

/// One helper of a task.
#[derive(Debug)]
pub struct Helper {
    slices: Option<Open>,
    results: Option<Open>,
    numbers: (u64, u64),
    is_asked: bool,
}

impl Helper {
    /// The running task's output `slices` and its input `results`.
    pub const fn new(slices: u64, results: u64) -> Self {
        Self {
            slices: None,
            results: None,
            numbers: (slices, results),
            is_asked: false,
        }
    }
}

/// A section that has begun.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Section {
    tag: u64,
    is_first: bool,
    is_handed: bool,
}

/// Why an operation of a section fails.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Refused {
    /// As for typed sections.
    Missing(Missing),
    /// All slices must be handed out before the first result is awaited.
    Order,
    /// The job has used its wait, or the task's last one that did has not ended with [`next`].
    Again,
}

/// The tasks whose jobs have used their wait, and have not ended since with [`next`].
static WAITED: AtomicU64 = AtomicU64::new(0);

/// The running task among [`WAITED`].
fn mine() -> u64 {
    const { assert!(TASKS <= 64, "one bit for each task") };
    1 << kernel::running()
}

/// The running job uses its wait. Jobs do not preempt each other, and interrupts do not come here.
fn use_wait() -> Result<(), Refused> {
    let waited = WAITED.load(Ordering::Relaxed);
    if waited & mine() != 0 {
        return Err(Refused::Again);
    }
    WAITED.store(waited | mine(), Ordering::Relaxed);
    Ok(())
}

/// Ends the running job, as [`super::next`]; the task's next job may wait again. For when the job has returned: a job that went on could wait twice.
pub fn next(job: Job) -> Done {
    WAITED.store(WAITED.load(Ordering::Relaxed) & !mine(), Ordering::Relaxed);
    super::next(job)
}

impl From<Missing> for Refused {
    fn from(missing: Missing) -> Self {
        Self::Missing(missing)
    }
}

impl From<Failure> for Refused {
    fn from(failure: Failure) -> Self {
        Self::Missing(failure.into())
    }
}

impl Section {
    /// Begins the section of the running job with these helpers. The first one of a task only initialises its ports and asks no helper.
    ///
    /// # Errors
    /// [`Refused::Again`]; [`Failure::Size`]: the description has no such channels; [`Failure::Locked`].
    pub fn begin<'h>(helpers: impl Iterator<Item = &'h mut Helper>) -> Result<Self, Refused> {
        use_wait()?;
        let mut is_first = false;
        for helper in helpers {
            helper.is_asked = false;
            if helper.results.is_none() {
                helper.results = Some(Open::input(helper.numbers.1)?);
                is_first = true;
            }
        }
        Ok(Self {
            tag: clock(),
            is_first,
            is_handed: false,
        })
    }

    /// Hands a slice to a helper; returns whether it did: a helper takes none before it has begun.
    ///
    /// # Errors
    /// [`Refused`].
    pub fn hand(&self, helper: &mut Helper, slice: &[u8]) -> Result<bool, Refused> {
        if self.is_handed {
            return Err(Refused::Order);
        }
        if helper.slices.is_none() && !self.is_first {
            helper.slices = Open::output(helper.numbers.0)?;
        }
        let Some(open) = helper.slices else {
            return Ok(false);
        };
        open.takes(slice)?;
        open.put(self.tag, slice)?;
        helper.is_asked = true;
        Ok(true)
    }

    /// Waits for the result of a helper, until the task's `wait` after the section's start has passed. Without a result, `result` does not change.
    ///
    /// # Errors
    /// [`Refused`].
    pub fn collect(&mut self, helper: &mut Helper, result: &mut [u8]) -> Result<(), Refused> {
        self.is_handed = true;
        let asked = helper.results.filter(|_| helper.is_asked);
        let open = asked.ok_or(Missing::NotAsked)?;
        open.takes(result)?;
        // Each result is taken once.
        helper.is_asked = false;
        let tag = self.tag;
        open.wait(tag, |one| one == tag, result)?;
        Ok(())
    }
}

/// A helper's own side.
#[derive(Debug)]
pub struct Help {
    slices: Option<Open>,
    results: Option<Open>,
    numbers: (u64, u64),
    tag: Option<u64>,
}

impl Help {
    /// The task's input `slices` brings slices, its output `results` takes results.
    pub const fn new(slices: u64, results: u64) -> Self {
        Self {
            slices: None,
            results: None,
            numbers: (slices, results),
            tag: None,
        }
    }

    /// Waits for the slice of the running job, until the task's `wait` has passed. The first call only initialises the port.
    ///
    /// # Errors
    /// [`Refused`].
    pub fn slice(&mut self, slice: &mut [u8]) -> Result<(), Refused> {
        use_wait()?;
        self.tag = None;
        let Some(open) = self.slices else {
            self.slices = Some(Open::input(self.numbers.0)?);
            return Err(Missing::NotAsked.into());
        };
        open.takes(slice)?;
        let released = released();
        self.tag = Some(open.wait(clock(), |one| one >= released, slice)?);
        Ok(())
    }

    /// Gives the result of the slice that was taken; once.
    ///
    /// # Errors
    /// [`Missing::NotAsked`]: no slice waits for a result; or the port's.
    pub fn give(&mut self, result: &[u8]) -> Result<(), Missing> {
        let tag = self.tag.ok_or(Missing::NotAsked)?;
        if self.results.is_none() {
            self.results = Open::output(self.numbers.1)?;
        }
        // The task that hands out slices has already initialised the port of their results.
        let open = self.results.ok_or(Failure::NoData)?;
        open.takes(result)?;
        self.tag = None;
        open.put(tag, result)?;
        Ok(())
    }
}
