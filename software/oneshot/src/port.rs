//! Sampling ports between tasks of any cores, spinlocks, and doorbells.
//!
//! Why it exists: the policy's ports over the memory of the chip, typed. What it deliberately does not know: the protocol (it is in `exec`).
//!
//! Each core has [`PORTS`] records at one address of its memory, so a port is named by its core and its index. The owner, who reads,
//! gives the data a place in its own memory. Reading and writing never wait for the other side's task: whoever expects data polls, with a
//! delay between, so that others may run.

use crate::arch::{self, Chip};
use bulkhead_abi::one_shot::port::{HOLDER, LOCK};
use bulkhead_abi::one_shot::{PORT_SIZE, PORTS};
use bulkhead_exec_one_shot::port;
use core::convert::Infallible;
use core::marker::PhantomData;
use zerocopy::{FromBytes, Immutable, IntoBytes};

pub use crate::arch::{Data, ring_doorbell};

/// Why an operation did nothing.
pub type Failure = port::Failure<Infallible>;

/// Attempts to take a lock: whoever holds it copies some words, so he who waits for longer waits for somebody who stopped.
const PATIENCE: u32 = 1000;

/// A port for items of so many bytes.
#[derive(Clone, Copy, Debug)]
pub(crate) struct RawPort(port::Port);

impl RawPort {
    /// Initialises a port of this core, whose data lies at an address of this core that nobody else uses.
    pub(crate) fn initialise(
        index: usize,
        data: u64,
        size: usize,
    ) -> Result<Option<Self>, Failure> {
        let core = arch::core_number();
        let Some(record) = record(core, index) else {
            return Ok(None);
        };
        let own = (core, arch::global(data), size as u32);
        let port = port::initialise(&mut Chip, record, caller(), own)?;
        Ok(port.map(Self::of))
    }

    /// A port of any core.
    pub(crate) fn get(core: u16, index: usize) -> Result<Option<Self>, Failure> {
        let Some(record) = record(core, index) else {
            return Ok(None);
        };
        Ok(port::get(&mut Chip, record)?.map(Self::of))
    }

    fn of(port: port::Port) -> Self {
        // What is in the own memory is reached without the network.
        Self(port.moved(arch::local(port.data())))
    }

    #[inline]
    pub(crate) fn size(&self) -> usize {
        self.0.size() as usize
    }

    #[inline]
    pub(crate) fn write(&self, item: &[u8]) -> Result<(), Failure> {
        port::write(&mut Chip, &self.0, caller(), item)
    }

    #[inline]
    pub(crate) fn read(&self, item: &mut [u8]) -> Result<bool, Failure> {
        port::read(&mut Chip, &self.0, caller(), item)
    }

    #[inline]
    pub(crate) fn has_news(&self) -> Result<bool, Failure> {
        port::has_news(&mut Chip, &self.0)
    }
}

/// A port for items of one type: the numbers of its core and of its record.
#[derive(Debug)]
pub struct SamplingPort<T> {
    raw: RawPort,
    item: PhantomData<fn(T) -> T>,
}

impl<T> Clone for SamplingPort<T> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<T> Copy for SamplingPort<T> {}

fn caller() -> port::Caller {
    port::Caller {
        core: arch::core_number().into(),
        patience: PATIENCE,
    }
}

/// Chip-global address of a record; none if there is no such index.
fn record(core: u16, index: usize) -> Option<u64> {
    (index < PORTS).then(|| arch::port_records(core) + index as u64 * PORT_SIZE)
}

impl<T: FromBytes + IntoBytes + Immutable> SamplingPort<T> {
    /// Initialises a port of this core. None: there is no such index, or it is initialised already.
    ///
    /// # Errors
    /// [`Failure::Locked`].
    pub fn initialise(index: usize, data: &'static Data<T>) -> Result<Option<Self>, Failure> {
        let port = RawPort::initialise(index, data.address(), size_of::<T>())?;
        Ok(port.map(Self::of))
    }

    /// A port of any core. None: there is no such index, or it is not initialised yet.
    ///
    /// # Errors
    /// [`Failure::Size`]: it is for items of another size.
    pub fn get(core: u16, index: usize) -> Result<Option<Self>, Failure> {
        match RawPort::get(core, index)? {
            Some(port) if port.size() != size_of::<T>() => Err(Failure::Size),
            port => Ok(port.map(Self::of)),
        }
    }

    fn of(raw: RawPort) -> Self {
        let item = PhantomData;
        Self { raw, item }
    }

    /// Writes an item, whether the last one was read or not.
    ///
    /// # Errors
    /// [`Failure::Locked`].
    #[inline]
    pub fn write(&self, item: &T) -> Result<(), Failure> {
        self.raw.write(item.as_bytes())
    }

    /// Reads the item into `item`; whether it is new.
    ///
    /// # Errors
    /// [`Failure::NoData`] or [`Failure::Locked`].
    #[inline]
    pub fn read(&self, item: &mut T) -> Result<bool, Failure> {
        self.raw.read(item.as_mut_bytes())
    }

    /// Whether there is an item that nobody has read. Takes no lock.
    ///
    /// # Errors
    /// None happens; the type is that of all operations.
    #[inline]
    pub fn has_news(&self) -> Result<bool, Failure> {
        self.raw.has_news()
    }
}

/// A spinlock between cores: the lock of a port record that is no port.
#[derive(Clone, Copy, Debug)]
pub struct Spinlock {
    record: u64,
}

impl Spinlock {
    /// In this record of a core. None: there is no such index.
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

    /// Gives it back. What was done before is visible to whoever takes it next.
    ///
    /// # Errors
    /// None happens; the type is that of all operations.
    #[inline]
    pub fn unlock(&self) -> Result<(), Failure> {
        port::unlock(&mut Chip, self.record + LOCK)
    }
}
