//! Parallel sections: a job hands slices of its work to tasks on other cores and waits for their results within itself.
//!
//! Why it exists: some work is longer than its deadline on one core, and a one-shot job cannot suspend itself in the middle. So it polls, in its own memory,
//! and gives up after the time that the description allows: whatever the others do, a job ends. What it deliberately does not know: what the work is.
//!
//! All tasks of a section have one period, and are released in the same ticks of the chip's timer ([`next`]), or of the clock that all follow if
//! cores have timers of their own. A section has a tag: what that clock showed when it began. Each core compares a tag with what its own clock showed at its
//! release, so both are multiples of the period or later, and an error of clocks makes no slice belong to another section. A helper takes a slice only if its section began after the helper's own release; the asker takes
//! only results with the section's tag. So no task takes a slice or result of an earlier job, and a helper that was late catches up with
//! its next job.
//!
//! Types enforce what bounds rely on: a job waits in at most one section, because what begins it takes the [`Job`] and gives back a [`Waited`], which only ends
//! it; and all slices are handed out before the first result is awaited.

pub mod raw;

use crate::arch::{self, Chip};
use crate::described::{Place, no_channel, period, word, wrong_size};
use crate::port::{Failure, caller, record};
use crate::task::{Done, Job};
use crate::time;
use bulkhead_abi::one_shot::{PORTS, marker, table};
use bulkhead_exec_one_shot::{port, tagged};
#[cfg(not(feature = "clocks"))]
use bulkhead_hal::csr;
use bulkhead_hal::marker::custom;
use core::marker::PhantomData;
use zerocopy::{FromBytes, Immutable, IntoBytes};

/// Why there is no slice, or no result.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Missing {
    /// The other side has not begun yet: it was not asked.
    NotAsked,
    /// It did not come in the time that the description allows.
    Late,
    /// Its port fails.
    Port(Failure),
}

impl From<Failure> for Missing {
    fn from(failure: Failure) -> Self {
        Self::Port(failure)
    }
}

/// Ends a job of a task in a section. The next one is released at the next multiple of the period, on all cores in the same tick.
pub fn next(job: Job) -> Done {
    let (now, period) = (time::now(), period().max(1));
    job.delay_until(now - now % period + period)
}

/// A job that has used its wait: it can only end. So no job waits in two sections, which its bound would not count.
#[derive(Debug)]
#[must_use = "a job must end"]
pub struct Waited(Job);

impl Waited {
    /// As [`next`].
    pub fn next(self) -> Done {
        next(self.0)
    }

    /// The task never runs again.
    pub fn end(self) -> Done {
        self.0.end()
    }
}

/// Counts of the timer for which the running task waits in its section.
fn patience() -> u64 {
    word(table::PERIOD) >> table::WAIT_SHIFT
}

/// The clock of all cores, in counts.
#[cfg(feature = "clocks")]
fn clock() -> u64 {
    crate::kernel::clock()
}

/// The clock of all cores, in counts.
#[cfg(not(feature = "clocks"))]
#[inline]
fn clock() -> u64 {
    csr::time()
}

/// When the running task was released, in counts of the timer, if its job began in its period.
fn released() -> u64 {
    let now = clock();
    now - now % (period() * arch::system().timer).max(1)
}

/// A port of a section, and its name in markers.
#[derive(Clone, Copy, Debug)]
struct Open {
    port: port::Port,
    name: u64,
}

impl Open {
    fn of(port: port::Port, place: &Place) -> Self {
        Self {
            port,
            name: place.marked(),
        }
    }

    /// The running task's input with this number, whose port is initialised now.
    fn input(number: u64) -> Result<Self, Failure> {
        if number >= word(table::INPUTS) {
            return Err(no_channel(number));
        }
        let place = Place::of(number);
        let core = arch::core_number();
        let record = record(core, place.index.into()).ok_or(Failure::Size)?;
        let own = (place.data, place.size as u32);
        let port = port::initialise(&mut Chip, record, caller(), own)?;
        Ok(Self::of(port.ok_or(Failure::Size)?, &place))
    }

    /// The running task's output with this number, once its reader has initialised it.
    fn output(number: u64) -> Result<Option<Self>, Failure> {
        if number >= word(table::OUTPUTS) {
            return Err(no_channel(number | marker::OUTPUT));
        }
        let place = Place::of(word(table::INPUTS) + number);
        let record = record(place.core, place.index.into()).ok_or(Failure::Size)?;
        let port = port::get(&mut Chip, record)?;
        Ok(port.map(|port| Self::of(port, &place)))
    }

    fn put(&self, tag: u64, item: &[u8]) -> Result<(), Failure> {
        custom::<{ marker::PUT }>(self.name);
        let result = tagged::write(&mut Chip, &self.port, caller(), tag, item);
        custom::<{ marker::PUT_DONE }>(self.name);
        if result == Err(Failure::Size) {
            return Err(wrong_size(self.name, item.len()));
        }
        result
    }

    /// Waits for an item until this many counts of the timer after `begin` have passed. Items of other sections are dropped.
    fn wait(
        &self,
        begin: u64,
        wants: impl Fn(u64) -> bool,
        item: &mut [u8],
    ) -> Result<u64, Missing> {
        let patience = patience();
        loop {
            // In this order, an item that comes at the last moment is seen.
            let waited = clock() - begin;
            if port::has_news(&mut Chip, &self.port)? {
                custom::<{ marker::TAKE }>(self.name);
                let taken = tagged::take(&mut Chip, &self.port, caller(), &wants, item);
                if taken == Ok(None) {
                    custom::<{ marker::DROPPED }>(self.name);
                } else {
                    custom::<{ marker::TAKEN }>(self.name);
                }
                if taken == Err(Failure::Size) {
                    return Err(wrong_size(self.name, item.len()).into());
                }
                if let Some(tag) = taken? {
                    return Ok(tag);
                }
            }
            if waited > patience {
                custom::<{ marker::VAIN }>(self.name);
                return Err(Missing::Late);
            }
        }
    }
}

/// Slices and results: plain words, moved eight bytes at a time.
pub trait Words: FromBytes + IntoBytes + Immutable {}

impl<T: FromBytes + IntoBytes + Immutable> Words for T {}

/// The build refuses items of types that are not whole aligned words.
const fn is_words<T>() {
    assert!(
        align_of::<T>() >= 8 && size_of::<T>().is_multiple_of(8),
        "slices and results consist of aligned words of eight bytes, such as [u64; 4]"
    );
}

/// The helpers of a task: N of them, each with a channel for its slices and one for its results.
#[derive(Debug)]
pub struct Helpers<S, R, const N: usize> {
    slices: [Option<Open>; N],
    results: [Option<Open>; N],
    first: (u64, u64),
    items: PhantomData<fn(S) -> R>,
}

impl<S: Words, R: Words, const N: usize> Helpers<S, R, N> {
    /// The task's outputs from this number on bring slices, and its inputs from this number on results, both in the order of the helpers.
    pub const fn new(slices: u64, results: u64) -> Self {
        const { is_words::<S>() };
        const { is_words::<R>() };
        const { assert!(N <= PORTS, "a core owns fewer ports than helpers") };
        Self {
            slices: [None; N],
            results: [None; N],
            first: (slices, results),
            items: PhantomData,
        }
    }

    /// Begins the section of this job; the first one of a task only initialises its ports and asks no helper.
    ///
    /// # Errors
    /// [`Failure::Size`]: the description has no such channels; [`Failure::Locked`].
    #[inline]
    pub fn begin(&mut self, job: Job) -> (Waited, Result<Handing<'_, S, R, N>, Failure>) {
        (Waited(job), self.section())
    }

    fn section(&mut self) -> Result<Handing<'_, S, R, N>, Failure> {
        let mut is_first = false;
        for (number, result) in self.results.iter_mut().enumerate() {
            if result.is_none() {
                *result = Some(Open::input(self.first.1 + number as u64)?);
                is_first = true;
            }
        }
        Ok(Handing {
            helpers: self,
            tag: clock(),
            asked: 0,
            is_first,
        })
    }
}

/// A section whose slices are handed out.
#[derive(Debug)]
pub struct Handing<'a, S, R, const N: usize> {
    helpers: &'a mut Helpers<S, R, N>,
    tag: u64,
    asked: u32,
    is_first: bool,
}

impl<'a, S: Words, R: Words, const N: usize> Handing<'a, S, R, N> {
    /// Hands a slice to a helper; returns whether it did: a helper takes none before it has begun.
    ///
    /// # Errors
    /// [`Failure::Size`]: there is no such helper, or its channel has other slices; [`Failure::Locked`].
    pub fn hand(&mut self, helper: usize, slice: &S) -> Result<bool, Failure> {
        let open = self.helpers.slices.get_mut(helper).ok_or(Failure::Size)?;
        if open.is_none() && !self.is_first {
            *open = Open::output(self.helpers.first.0 + helper as u64)?;
        }
        let Some(open) = open else {
            return Ok(false);
        };
        open.put(self.tag, slice.as_bytes())?;
        self.asked |= 1 << helper;
        Ok(true)
    }

    /// All slices are handed out; now the task does its own part, and then collects results.
    pub fn handed(self) -> Collecting<'a, S, R, N> {
        Collecting(self)
    }
}

/// A section whose results are collected.
#[derive(Debug)]
pub struct Collecting<'a, S, R, const N: usize>(Handing<'a, S, R, N>);

impl<S: Words, R: Words, const N: usize> Collecting<'_, S, R, N> {
    /// Waits for the result of a helper, until the task's `wait` after the section's start has passed. Without a result, `result` does not
    /// change.
    ///
    /// # Errors
    /// [`Missing`].
    pub fn collect(&mut self, helper: usize, result: &mut R) -> Result<(), Missing> {
        let section = &self.0;
        if helper >= N || (section.asked >> helper) & 1 == 0 {
            return Err(Missing::NotAsked);
        }
        let open = section.helpers.results[helper].ok_or(Missing::NotAsked)?;
        let tag = section.tag;
        open.wait(tag, |one| one == tag, result.as_mut_bytes())?;
        Ok(())
    }
}

/// A helper: it has a channel for slices and one for results.
#[derive(Debug)]
pub struct Help<S, R> {
    slices: Option<Open>,
    results: Option<Open>,
    numbers: (u64, u64),
    items: PhantomData<fn(S) -> R>,
}

impl<S: Words, R: Words> Help<S, R> {
    /// The task's input with this number brings slices, its output with this number takes results.
    pub const fn new(slices: u64, results: u64) -> Self {
        const { is_words::<S>() };
        const { is_words::<R>() };
        Self {
            slices: None,
            results: None,
            numbers: (slices, results),
            items: PhantomData,
        }
    }

    /// Waits for the slice of this job, until the task's `wait` has passed. The first call only initialises the port.
    ///
    /// # Errors
    /// [`Missing`].
    #[inline]
    pub fn slice(
        &mut self,
        job: Job,
        slice: &mut S,
    ) -> (Waited, Result<Answer<'_, S, R>, Missing>) {
        (Waited(job), self.awaited(slice))
    }

    fn awaited(&mut self, slice: &mut S) -> Result<Answer<'_, S, R>, Missing> {
        let Some(open) = self.slices else {
            self.slices = Some(Open::input(self.numbers.0)?);
            return Err(Missing::NotAsked);
        };
        let released = released();
        let tag = open.wait(clock(), |one| one >= released, slice.as_mut_bytes())?;
        Ok(Answer { help: self, tag })
    }
}

/// A slice that was taken and waits for its result.
#[derive(Debug)]
#[must_use = "somebody waits for the result"]
pub struct Answer<'a, S, R> {
    help: &'a mut Help<S, R>,
    tag: u64,
}

impl<S: Words, R: Words> Answer<'_, S, R> {
    /// Gives the result to the task that handed out the slice.
    ///
    /// # Errors
    /// [`Failure::Size`]: the channel has other results; [`Failure::Locked`].
    pub fn give(self, result: &R) -> Result<(), Failure> {
        if self.help.results.is_none() {
            self.help.results = Open::output(self.help.numbers.1)?;
        }
        // The task that hands out slices has already initialised the port of their results.
        let open = self.help.results.ok_or(Failure::NoData)?;
        open.put(self.tag, result.as_bytes())
    }
}
