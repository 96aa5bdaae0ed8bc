//! Tasks of a described system: their periods and ports are those of the description.
//!
//! Why it exists: the same task runs on several cores, each with neighbours of its own; so what differs is in a table that the loader leaves
//! in each core's memory, and not in the program. What it deliberately does not know: who made the table, and what items mean.
//!
//! The functions here are for jobs: they ask for the task whose job runs. In an image without a table they trap, and the task stops.

use crate::kernel;
use crate::port::{Failure, SamplingPort};
use crate::task::{Done, Job, Task};
use crate::{arch, time};
use bulkhead_abi::one_shot::{marker, table};
use bulkhead_hal::marker::custom;
use zerocopy::{FromBytes, Immutable, IntoBytes};

/// A task that a description can name.
pub trait Described: Task {
    /// What its first job finds.
    const FIRST: Self;
}

/// A word of the running task.
fn word(word: usize) -> u64 {
    arch::table_word(usize::from(kernel::running()) * table::TASK_WORDS + word)
}

/// The period of the task whose job runs, in ticks.
pub fn period() -> u64 {
    word(table::PERIOD)
}

/// Periodic releases without drift: each is a period after the one before, however late its job began.
#[derive(Debug, Default)]
pub struct Releases(u64);

impl Releases {
    /// The first release is the start of the core.
    pub const fn new() -> Self {
        Self(0)
    }

    /// Ends the job; the next one is released a period after this one. If that has passed, it follows at once.
    pub fn next(&mut self, job: Job) -> Done {
        if self.0 == 0 {
            self.0 = time::now();
        }
        self.0 += period();
        job.delay_until(self.0)
    }
}

/// A port of the table: its core, its index, the bytes of an item, and where its data is.
struct Place {
    core: u16,
    index: u16,
    size: usize,
    data: u64,
}

impl Place {
    /// The port with this number among the task's.
    fn of(number: u64) -> Self {
        let at = word(table::PORTS) + number * table::PORT_WORDS as u64;
        let name = arch::table_word(at as usize + table::NAME);
        Self {
            core: (name >> table::CORE_SHIFT) as u16,
            index: name as u16,
            size: (name >> table::SIZE_SHIFT) as u32 as usize,
            data: arch::table_word(at as usize + table::DATA),
        }
    }

    /// What markers call it.
    fn marked(&self) -> u64 {
        u64::from(self.core) | u64::from(self.index) << 16
    }
}

/// A channel that the task reads: the first one of the description is number 0.
#[derive(Debug)]
pub struct Input<T> {
    number: u64,
    open: Option<(SamplingPort<T>, u64)>,
}

impl<T: FromBytes + IntoBytes + Immutable> Input<T> {
    /// The task's channel with this number. Its port is initialised when a job first asks.
    pub const fn new(number: u64) -> Self {
        Self { number, open: None }
    }

    /// A new item, if there is one. Without one, no lock is taken.
    ///
    /// # Errors
    /// [`Failure::Size`]: the description has no such channel, or other items; [`Failure::Locked`].
    pub fn take(&mut self) -> Result<Option<T>, Failure> {
        let (port, name) = match self.open {
            Some(open) => open,
            None => self.initialise()?,
        };
        if !port.has_news()? {
            return Ok(None);
        }
        let mut item = T::new_zeroed();
        custom::<{ marker::TAKE }>(name);
        let result = port.read(&mut item);
        custom::<{ marker::TAKEN }>(name);
        Ok(result?.then_some(item))
    }

    fn initialise(&mut self) -> Result<(SamplingPort<T>, u64), Failure> {
        if self.number >= word(table::INPUTS) {
            return Err(Failure::Size);
        }
        let place = Place::of(self.number);
        if place.size != size_of::<T>() {
            return Err(Failure::Size);
        }
        let port = SamplingPort::initialise_at(place.index.into(), place.data)?;
        let open = (port.ok_or(Failure::Size)?, place.marked());
        self.open = Some(open);
        Ok(open)
    }
}

/// A channel that the task writes: the first one of the description is number 0.
#[derive(Debug)]
pub struct Output<T> {
    number: u64,
    open: Option<(SamplingPort<T>, u64)>,
}

impl<T: FromBytes + IntoBytes + Immutable> Output<T> {
    /// The task's channel with this number.
    pub const fn new(number: u64) -> Self {
        Self { number, open: None }
    }

    /// Whether the reader has initialised its port.
    ///
    /// # Errors
    /// [`Failure::Size`]: the description has no such channel, or other items.
    pub fn is_ready(&mut self) -> Result<bool, Failure> {
        if self.open.is_none() {
            if self.number >= word(table::OUTPUTS) {
                return Err(Failure::Size);
            }
            let place = Place::of(word(table::INPUTS) + self.number);
            let port = SamplingPort::get(place.core, place.index.into())?;
            self.open = port.map(|port| (port, place.marked()));
        }
        Ok(self.open.is_some())
    }

    /// Writes an item over the one that is there; whether it did: until the reader's core has initialised its port, nobody takes one.
    ///
    /// # Errors
    /// As of [`Output::is_ready`], and [`Failure::Locked`].
    pub fn put(&mut self, item: &T) -> Result<bool, Failure> {
        self.is_ready()?;
        let Some((port, name)) = self.open else {
            return Ok(false);
        };
        custom::<{ marker::PUT }>(name);
        let result = port.write(item);
        custom::<{ marker::PUT_DONE }>(name);
        result.map(|()| true)
    }
}
