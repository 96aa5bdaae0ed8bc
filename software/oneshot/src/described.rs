//! Tasks of a described system: their periods and ports are those of the description.
//!
//! Why it exists: the same task runs on several cores, each with neighbours of its own; so the differences are in a table that the loader
//! leaves in each core's memory, and not in the program. What it deliberately does not know: the table's origin, and the meaning of items.
//!
//! The functions here are for jobs: they ask for the task whose job runs. In an image without a table they trap, and the task stops.

use crate::kernel;
use crate::port::{self, Failure, RawPort};
use crate::task::{Done, Job, Task};
use crate::{arch, time};
use bulkhead_abi::one_shot::{marker, table};
use bulkhead_exec_one_shot::port as exec;
use bulkhead_hal::marker::custom;
use core::marker::PhantomData;
use zerocopy::{FromBytes, Immutable, IntoBytes};

/// A task that a description can name.
pub trait Described: Task {
    /// What its first job finds.
    const FIRST: Self;
}

/// A word of the running task.
pub(crate) fn word(word: usize) -> u64 {
    arch::table_word(usize::from(kernel::running()) * table::TASK_WORDS + word)
}

/// The period of the running task, in ticks. If messages release the task, the least distance between its releases.
#[cfg(not(feature = "notify"))]
pub fn period() -> u64 {
    u64::from(word(table::PERIOD) as u32)
}

/// The period of the running task, in ticks. If messages release the task, the least distance between its releases.
#[cfg(feature = "notify")]
pub fn period() -> u64 {
    crate::notify::period_of(kernel::running())
}

/// Periodic releases without drift: each is a period after the one before, however late its job began.
#[derive(Debug, Default)]
#[repr(transparent)]
pub struct Releases(u64);

impl Releases {
    /// The first release is the start of the core.
    pub const fn new() -> Self {
        Self(0)
    }

    /// Ends the job; the next one is released a period after this one, or at once if that moment has passed. In a task that messages
    /// release, the next message releases the next job, at least a period after the last release.
    pub fn next(&mut self, job: Job) -> Done {
        #[cfg(feature = "notify")]
        if crate::notify::wait() {
            return job.done();
        }
        if self.0 == 0 {
            self.0 = time::now();
        }
        self.0 += period();
        job.delay_until(self.0)
    }
}

/// A port of the table: its core, its index, the bytes of an item, where its data is, and the places of a queue.
pub(crate) struct Place {
    pub(crate) core: u16,
    pub(crate) index: u16,
    pub(crate) size: usize,
    pub(crate) data: u64,
    slots: u16,
    /// [`table::NOTIFY`].
    rings: u64,
}

impl Place {
    /// The port with this number among the task's.
    pub(crate) fn of(number: u64) -> Self {
        let at = word(table::PORTS) + number * table::PORT_WORDS as u64;
        let name = arch::table_word(at as usize + table::NAME);
        let data = arch::table_word(at as usize + table::DATA);
        Self {
            core: (name >> table::CORE_SHIFT) as u16,
            index: name as u16,
            size: (name >> table::SIZE_SHIFT) as u32 as usize,
            data: u64::from(data as u32),
            slots: (data >> table::SLOTS_SHIFT) as u16,
            rings: data & table::NOTIFY,
        }
    }

    /// What markers call it.
    pub(crate) fn marked(&self) -> u64 {
        u64::from(self.core) | u64::from(self.index) << 16
    }
}

/// Bit in a written port's name, removed for markers: its writer rings.
const RINGS: u64 = match cfg!(feature = "notify") {
    true => table::NOTIFY,
    false => 0,
};

/// The running task has no channel with this number. [`marker::OUTPUT`] is in the number of an output.
#[cold]
#[inline(never)]
pub(crate) fn no_channel(number: u64) -> Failure {
    custom::<{ marker::NO_CHANNEL }>(number);
    Failure::Size
}

/// The port with this name in markers is for items of another size than this one.
#[cold]
#[inline(never)]
pub(crate) fn wrong_size(name: u64, size: usize) -> Failure {
    let size = size.min(u32::MAX as usize) as u64;
    custom::<{ marker::WRONG_SIZE }>(name | size << marker::SIZE_SHIFT);
    Failure::Size
}

/// The running task has stopped: closes its ports, so tasks that write to them are told. For [`crate::Configuration::when_gone`].
pub fn close() {
    for number in 0..word(table::INPUTS) {
        // The core's own memory refuses nothing.
        if let Some(record) = port::record(arch::core_number(), Place::of(number).index.into())
            && exec::close(&mut arch::Chip, record, port::caller()).is_err()
        {
            return;
        }
    }
}

/// A channel that the task reads, whose items are bytes.
///
/// What [`Input`] and other languages are made of.
#[derive(Debug)]
pub struct RawInput {
    number: u64,
    open: Option<(RawPort, u64)>,
}

impl RawInput {
    /// The task's channel with this number. Its port is initialised when a job first asks.
    pub const fn new(number: u64) -> Self {
        Self { number, open: None }
    }

    /// Initialises its port for items of this many bytes, before a job first asks for one; returns whether it was not initialised before.
    ///
    /// # Errors
    /// As of [`RawInput::take`].
    pub fn open(&mut self, size: usize) -> Result<bool, Failure> {
        let is_new = self.open.is_none();
        let (port, name) = match self.open {
            Some(open) => open,
            None => self.initialise()?,
        };
        match port.size() == size {
            true => Ok(is_new),
            false => Err(wrong_size(name, size)),
        }
    }

    /// Copies a new item to `item`; returns whether there was one. Without one, takes no lock.
    ///
    /// # Errors
    /// [`Failure::Size`]: the description has no such channel, or items of another size than `item`; [`Failure::Locked`].
    pub fn take(&mut self, item: &mut [u8]) -> Result<bool, Failure> {
        let (port, name) = match self.open {
            Some(open) => open,
            None => self.initialise()?,
        };
        if port.size() != item.len() {
            return Err(wrong_size(name, item.len()));
        }
        if !port.has_news()? {
            return Ok(false);
        }
        custom::<{ marker::TAKE }>(name);
        let result = port.read(item);
        custom::<{ marker::TAKEN }>(name);
        result
    }

    fn initialise(&mut self) -> Result<(RawPort, u64), Failure> {
        if self.number >= word(table::INPUTS) {
            return Err(no_channel(self.number));
        }
        let place = Place::of(self.number);
        let port = RawPort::initialise(place.index.into(), place.data, place.size, place.slots)?;
        let open = (port.ok_or(Failure::Size)?, place.marked());
        self.open = Some(open);
        Ok(open)
    }
}

/// A channel that the task reads: the first one of the description is number 0.
#[derive(Debug)]
pub struct Input<T> {
    raw: RawInput,
    item: PhantomData<fn() -> T>,
}

impl<T: FromBytes + IntoBytes + Immutable> Input<T> {
    /// The task's channel with this number. Its port is initialised when a job first asks.
    pub const fn new(number: u64) -> Self {
        Self {
            raw: RawInput::new(number),
            item: PhantomData,
        }
    }

    /// A new item, if there is one; from a queue, the oldest one. Without one, takes no lock.
    ///
    /// # Errors
    /// [`Failure::Size`]: the description has no such channel, or other items; [`Failure::Locked`].
    pub fn take(&mut self) -> Result<Option<T>, Failure> {
        let mut item = T::new_zeroed();
        let is_new = self.raw.take(item.as_mut_bytes())?;
        Ok(is_new.then_some(item))
    }
}

/// A channel that the task writes, whose items are bytes.
///
/// What [`Output`] and other languages are made of.
#[derive(Debug)]
pub struct RawOutput {
    number: u64,
    open: Option<(RawPort, u64)>,
}

impl RawOutput {
    /// The task's channel with this number.
    pub const fn new(number: u64) -> Self {
        Self { number, open: None }
    }

    /// Whether the reader has initialised its port for items of this many bytes.
    ///
    /// # Errors
    /// [`Failure::Size`]: the description has no such channel, or other items.
    pub fn is_ready(&mut self, size: usize) -> Result<bool, Failure> {
        if self.open.is_none() {
            if self.number >= word(table::OUTPUTS) {
                return Err(no_channel(self.number | marker::OUTPUT));
            }
            let place = Place::of(word(table::INPUTS) + self.number);
            let port = RawPort::get(place.core, place.index.into())?;
            let rings = place.rings & RINGS;
            self.open = port.map(|port| (port, place.marked() | rings));
        }
        match &self.open {
            Some((port, rings)) if port.size() != size => Err(wrong_size(rings & !RINGS, size)),
            open => Ok(open.is_some()),
        }
    }

    /// Writes an item; returns whether it did: there is no reader until its core has initialised the port.
    ///
    /// # Errors
    /// As of [`RawOutput::is_ready`], [`Failure::Full`] of a queue without a place, [`Failure::Closed`] if its reader has stopped, and [`Failure::Locked`].
    pub fn put(&mut self, item: &[u8]) -> Result<bool, Failure> {
        self.is_ready(item.len())?;
        let Some((port, rings)) = self.open else {
            return Ok(false);
        };
        let name = rings & !RINGS;
        custom::<{ marker::PUT }>(name);
        let result = port.write(item);
        #[cfg(feature = "notify")]
        if rings != name && result.is_ok() {
            port.ring()?;
        }
        if result == Err(Failure::Full) {
            custom::<{ marker::FULL }>(name);
        }
        custom::<{ marker::PUT_DONE }>(name);
        result.map(|()| true)
    }
}

/// A channel that the task writes: the first one of the description is number 0.
#[derive(Debug)]
pub struct Output<T> {
    raw: RawOutput,
    item: PhantomData<fn(T)>,
}

impl<T: IntoBytes + Immutable> Output<T> {
    /// The task's channel with this number.
    pub const fn new(number: u64) -> Self {
        Self {
            raw: RawOutput::new(number),
            item: PhantomData,
        }
    }

    /// Whether the reader has initialised its port.
    ///
    /// # Errors
    /// [`Failure::Size`]: the description has no such channel, or other items.
    pub fn is_ready(&mut self) -> Result<bool, Failure> {
        self.raw.is_ready(size_of::<T>())
    }

    /// Writes an item: over the present one, or after those that wait in a queue. Returns whether it did: there is no reader until its core
    /// has initialised the port.
    ///
    /// # Errors
    /// As of [`Output::is_ready`], [`Failure::Full`] of a queue without a place, [`Failure::Closed`] if its reader has stopped, and [`Failure::Locked`].
    pub fn put(&mut self, item: &T) -> Result<bool, Failure> {
        self.raw.put(item.as_bytes())
    }
}
