//! Sampling ports and queues between tasks of any cores, spinlocks, and doorbells.
//!
//! Why it exists: the policy's ports over the memory of the chip, typed. What it deliberately does not know: the protocol (it is in `exec`).
//!
//! Each core has [`PORTS`] records at one address of its memory, so a port is named by its core and its index. The owner, which reads,
//! gives the data a place in its own memory. Reading and writing never wait for the other side's task: a task that expects data polls, with
//! a delay in between to let others run.

use crate::arch::{self, Chip};
use bulkhead_abi::one_shot::port::{DATA_UNIT, HOLDER, LOCK};
use bulkhead_abi::one_shot::{PORT_SIZE, PORTS};
use bulkhead_exec_one_shot::notice;
use bulkhead_exec_one_shot::port;
use bulkhead_exec_one_shot::queue::{self, Any};
use core::convert::Infallible;
use core::marker::PhantomData;
use zerocopy::{FromBytes, Immutable, IntoBytes};

pub use crate::arch::{Data, ring_doorbell};

/// Why an operation did nothing.
pub type Failure = port::Failure<Infallible>;

/// Attempts to take a lock: its holder copies some words, so a longer wait means that the holder has stopped.
const PATIENCE: u32 = 2000;

/// Data that a record cannot name would only fail when its port is initialised. The linker script keeps an image below 32 KiB, so only this is left.
const _: () = assert!(align_of::<Data<u8>>() as u64 >= DATA_UNIT);

/// A port of either kind, for items of this many bytes.
#[derive(Clone, Copy, Debug)]
pub(crate) struct RawPort(Any);

impl RawPort {
    /// Initialises a port of this core with data at an address of this core that nothing else uses: a queue with this many places, or a
    /// sampling port (0).
    pub(crate) fn initialise(
        index: usize,
        data: u64,
        size: usize,
        slots: u16,
    ) -> Result<Option<Self>, Failure> {
        let core = arch::core_number();
        let Some(record) = record(core, index) else {
            return Ok(None);
        };
        let own = (data, size as u32);
        let port = match slots {
            0 => port::initialise(&mut Chip, record, caller(), own)?.map(Any::Sampling),
            slots => queue::initialise(&mut Chip, record, caller(), own, slots)?.map(Any::Queue),
        };
        Ok(port.map(Self))
    }

    /// A port of any core.
    pub(crate) fn get(core: u16, index: usize) -> Result<Option<Self>, Failure> {
        let Some(record) = record(core, index) else {
            return Ok(None);
        };
        Ok(queue::any(&mut Chip, record)?.map(Self))
    }

    pub(crate) fn size(&self) -> usize {
        let size = match &self.0 {
            Any::Sampling(port) => port.size(),
            Any::Queue(queue) => queue.size(),
        };
        size as usize
    }

    pub(crate) fn write(&self, item: &[u8]) -> Result<(), Failure> {
        match &self.0 {
            Any::Sampling(port) => port::write(&mut Chip, port, caller(), item),
            Any::Queue(queue) => queue::put(&mut Chip, queue, caller(), item),
        }
    }

    /// Rings the doorbell of the core that owns the port, once everything that this core has written has arrived.
    #[cfg(feature = "notify")]
    pub(crate) fn ring(&self) -> Result<(), Failure> {
        let record = match &self.0 {
            Any::Sampling(port) => port.record(),
            Any::Queue(queue) => queue.record(),
        };
        notice::ring(&mut Chip, arch::doorbell_of(record))
    }

    pub(crate) fn read(&self, item: &mut [u8]) -> Result<bool, Failure> {
        match &self.0 {
            Any::Sampling(port) => port::read(&mut Chip, port, caller(), item),
            Any::Queue(queue) => queue::take(&mut Chip, queue, caller(), item),
        }
    }

    pub(crate) fn has_news(&self) -> Result<bool, Failure> {
        match &self.0 {
            Any::Sampling(port) => port::has_news(&mut Chip, port),
            Any::Queue(queue) => Ok(queue::waiting(&mut Chip, queue)? > 0),
        }
    }
}

/// A port for items of one type: the numbers of its core and of its record.
#[derive(Debug)]
pub struct SamplingPort<T> {
    port: port::Port,
    item: PhantomData<fn(T) -> T>,
}

impl<T> Clone for SamplingPort<T> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<T> Copy for SamplingPort<T> {}

pub(crate) fn caller() -> port::Caller {
    port::Caller {
        core: arch::core_number().into(),
        patience: PATIENCE,
    }
}

/// Address of a record, in the core's own map if it is the core's own; none if there is no such index.
pub(crate) fn record(core: u16, index: usize) -> Option<u64> {
    (index < PORTS).then(|| arch::port_records(core) + index as u64 * PORT_SIZE)
}

impl<T: FromBytes + IntoBytes + Immutable> SamplingPort<T> {
    /// Initialises a port of this core. `None`: there is no such index, or it is initialised already.
    ///
    /// # Errors
    /// [`Failure::Locked`].
    pub fn initialise(index: usize, data: &'static Data<T>) -> Result<Option<Self>, Failure> {
        let core = arch::core_number();
        let Some(record) = record(core, index) else {
            return Ok(None);
        };
        let own = (data.address(), size_of::<T>() as u32);
        let port = port::initialise(&mut Chip, record, caller(), own)?;
        Ok(port.map(Self::of))
    }

    /// A port of any core. None: there is no such index, it is not initialised yet, or it is a queue.
    ///
    /// # Errors
    /// [`Failure::Size`]: it is for items of another size.
    pub fn get(core: u16, index: usize) -> Result<Option<Self>, Failure> {
        let Some(record) = record(core, index) else {
            return Ok(None);
        };
        match port::get(&mut Chip, record)? {
            Some(port) if port.size() as usize != size_of::<T>() => Err(Failure::Size),
            port => Ok(port.map(Self::of)),
        }
    }

    fn of(port: port::Port) -> Self {
        let item = PhantomData;
        Self { port, item }
    }

    /// Writes an item, whether the last one was read or not.
    ///
    /// # Errors
    /// [`Failure::Locked`].
    #[inline]
    pub fn write(&self, item: &T) -> Result<(), Failure> {
        port::write(&mut Chip, &self.port, caller(), item.as_bytes())
    }

    /// Writes an item, and rings the doorbell of the core that owns the port once the item has arrived.
    ///
    /// # Errors
    /// [`Failure::Locked`]; then no doorbell is rung.
    pub fn write_and_ring(&self, item: &T) -> Result<(), Failure> {
        self.write(item)?;
        notice::ring(&mut Chip, arch::doorbell_of(self.port.record()))
    }

    /// Lowers the core's own doorbell, then returns whether there is an unread item. For a handler of the software interrupt, which sets a
    /// suspension object if so; with several ports, it asks the others by [`SamplingPort::has_news`] afterwards.
    ///
    /// # Errors
    /// None happens; the type is that of all operations.
    pub fn hear(&self) -> Result<bool, Failure> {
        // On the model, a store to the core's own doorbell takes effect at the end of a block of code: that of this function.
        arch::lower_doorbell();
        notice::hear_lowered(&mut Chip, &self.port)
    }

    /// Reads the item into `item`; returns whether it is new.
    ///
    /// # Errors
    /// [`Failure::NoData`] or [`Failure::Locked`].
    #[inline]
    pub fn read(&self, item: &mut T) -> Result<bool, Failure> {
        port::read(&mut Chip, &self.port, caller(), item.as_mut_bytes())
    }

    /// Whether there is an unread item. Takes no lock.
    ///
    /// # Errors
    /// None happens; the type is that of all operations.
    #[inline]
    pub fn has_news(&self) -> Result<bool, Failure> {
        port::has_news(&mut Chip, &self.port)
    }
}

/// The places of a queue. Each begins at a multiple of eight bytes, as [`Data`] does.
pub struct Places<T, const N: usize>(Data<[Data<T>; N]>);

impl<T, const N: usize> Default for Places<T, N> {
    fn default() -> Self {
        Self::new()
    }
}

impl<T, const N: usize> Places<T, N> {
    /// All are empty.
    pub const fn new() -> Self {
        Self(Data::new())
    }
}

/// A queue for items of one type: each is read once, in the order in which they were written.
#[derive(Debug)]
pub struct QueuingPort<T> {
    queue: queue::Queue,
    item: PhantomData<fn(T) -> T>,
}

impl<T> Clone for QueuingPort<T> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<T> Copy for QueuingPort<T> {}

impl<T: FromBytes + IntoBytes + Immutable> QueuingPort<T> {
    /// Initialises a queue of this core, with these places. None: there is no such index, it is initialised already, or there are no places or too many.
    ///
    /// # Errors
    /// [`Failure::Locked`].
    pub fn initialise<const N: usize>(
        index: usize,
        places: &'static Places<T, N>,
    ) -> Result<Option<Self>, Failure> {
        let core = arch::core_number();
        let (Some(record), Ok(slots)) = (record(core, index), u16::try_from(N)) else {
            return Ok(None);
        };
        let own = (places.0.address(), size_of::<T>() as u32);
        let queue = queue::initialise(&mut Chip, record, caller(), own, slots)?;
        Ok(queue.map(Self::of))
    }

    /// A queue of any core. None: there is no such index, it is not initialised yet, or it is a sampling port.
    ///
    /// # Errors
    /// [`Failure::Size`]: it is for items of another size.
    pub fn get(core: u16, index: usize) -> Result<Option<Self>, Failure> {
        let Some(record) = record(core, index) else {
            return Ok(None);
        };
        match queue::get(&mut Chip, record)? {
            Some(queue) if queue.size() as usize != size_of::<T>() => Err(Failure::Size),
            queue => Ok(queue.map(Self::of)),
        }
    }

    fn of(queue: queue::Queue) -> Self {
        let item = PhantomData;
        Self { queue, item }
    }

    /// Puts an item after all others.
    ///
    /// # Errors
    /// [`Failure::Full`]: no place is free, and nothing was written; [`Failure::Locked`].
    #[inline]
    pub fn put(&self, item: &T) -> Result<(), Failure> {
        queue::put(&mut Chip, &self.queue, caller(), item.as_bytes())
    }

    /// Writes an item, and rings the doorbell of the core that owns the queue once the item has arrived.
    ///
    /// # Errors
    /// As of [`QueuingPort::put`]; then no doorbell is rung.
    pub fn put_and_ring(&self, item: &T) -> Result<(), Failure> {
        self.put(item)?;
        notice::ring(&mut Chip, arch::doorbell_of(self.queue.record()))
    }

    /// Lowers the core's own doorbell, then returns whether items wait. For a handler of the software interrupt, as [`SamplingPort::hear`].
    /// The reader takes all items before it waits, or checks again at its end: two rings may be one interrupt.
    ///
    /// # Errors
    /// None happens; the type is that of all operations.
    pub fn hear(&self) -> Result<bool, Failure> {
        arch::lower_doorbell();
        notice::hear_queue(&mut Chip, &self.queue)
    }

    /// Takes the oldest item; returns whether there was one.
    ///
    /// # Errors
    /// [`Failure::Locked`].
    #[inline]
    pub fn take(&self, item: &mut T) -> Result<bool, Failure> {
        queue::take(&mut Chip, &self.queue, caller(), item.as_mut_bytes())
    }

    /// How many items wait. Takes no lock.
    ///
    /// # Errors
    /// None happens; the type is that of all operations.
    #[inline]
    pub fn waiting(&self) -> Result<u32, Failure> {
        queue::waiting(&mut Chip, &self.queue)
    }
}

/// A spinlock between cores: the lock of a port record that is not used as a port.
#[derive(Clone, Copy, Debug)]
pub struct Spinlock {
    record: u64,
}

impl Spinlock {
    /// In this record of a core. `None`: there is no such index.
    pub fn at(core: u16, index: usize) -> Option<Self> {
        record(core, index).map(|record| Self { record })
    }

    /// Takes it.
    ///
    /// # Errors
    /// [`Failure::Locked`] after a bounded number of attempts.
    #[inline]
    pub fn lock(&self) -> Result<(), Failure> {
        port::lock(
            &mut Chip,
            self.record + LOCK,
            self.record + HOLDER,
            caller(),
        )
    }

    /// Gives it back. Earlier writes are visible to the next holder.
    ///
    /// # Errors
    /// None happens; the type is that of all operations.
    #[inline]
    pub fn unlock(&self) -> Result<(), Failure> {
        port::unlock(&mut Chip, self.record + LOCK)
    }
}
