//! Sampling ports: one record and one piece of data in the owner's memory, for tasks of any core.
//!
//! Why it exists: the protocol between cores that share nothing but memory (m2os-mc-ngres21, section 5). What it deliberately does not
//! know: where memory is and what an access costs; it reaches memory through [`Memory`], so the tests can try every order of accesses.
//!
//! States of a port: initial (not initialised), empty, new data, and locked, while a caller copies. A write overwrites; a read
//! leaves the data there and says whether it was new. The owner places the data in its own memory, because remote writes are cheap:
//! a write waits for one remote answer (that of the lock), everything else is posted. A record is initialised only once, so size
//! and place of its data are read once, by [`get`], and kept in the [`Port`]. They are one word of the record, so [`get`] waits for one answer. The data is
//! always in the record's own core: whatever is in a record, it leads to no other core's memory. (It begins in the lower half of the core's window, and no item is longer than the other half;
//! a queue whose places would not be in the window is refused, [`crate::queue::any`].)
//!
//! A caller that fails while it holds a lock keeps it forever. Every other caller tries a bounded number of times and then gets an
//! error.

use bulkhead_abi::memory_map::TILE_WINDOW_SHIFT;
use bulkhead_abi::one_shot::port::{
    CLOSED, DATA_SHIFT, DATA_UNIT, HOLDER, INITIALISED, LOCK, NEVER_WRITTEN, NEW_DATA, NEWS, STATE,
    WAS_READ,
};

/// Memory of all cores, by chip-global addresses.
pub trait Memory {
    /// Why an access is impossible.
    type Error;

    /// Loads 4 bytes.
    ///
    /// # Errors
    /// The access is impossible; likewise for all other operations.
    fn load(&mut self, address: u64) -> Result<u32, Self::Error>;
    /// Loads 8 bytes.
    fn load_double(&mut self, address: u64) -> Result<u64, Self::Error>;
    /// Stores 4 bytes.
    fn store(&mut self, address: u64, value: u32) -> Result<(), Self::Error>;
    /// Stores 8 bytes.
    fn store_double(&mut self, address: u64, value: u64) -> Result<(), Self::Error>;
    /// Exchanges 4 bytes atomically; later accesses come after it.
    fn swap(&mut self, address: u64, value: u32) -> Result<u32, Self::Error>;
    /// Later accesses come after all earlier ones.
    fn order(&mut self) -> Result<(), Self::Error>;
    /// Stores bytes, in any order and pieces.
    fn copy_to(&mut self, address: u64, bytes: &[u8]) -> Result<(), Self::Error>;
    /// Loads bytes, in any order and pieces.
    fn copy_from(&mut self, address: u64, bytes: &mut [u8]) -> Result<(), Self::Error>;
}

/// Why an operation did nothing.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Failure<E> {
    /// The memory refused an access.
    Memory(E),
    /// The lock was not free in any of the allowed attempts. `holder` is the core that took it last, if that is known.
    Locked {
        /// Number of the core.
        holder: u32,
    },
    /// The item is longer than the port's data, or the reader's buffer is shorter.
    Size,
    /// Nothing was written yet.
    NoData,
    /// Each place of the queue has an unread item.
    Full,
    /// The task that reads it has stopped for good.
    Closed,
}

impl<E> From<E> for Failure<E> {
    fn from(error: E) -> Self {
        Self::Memory(error)
    }
}

/// The caller of an operation: its core's number, and how many attempts it makes to lock.
#[derive(Clone, Copy, Debug)]
pub struct Caller {
    /// Number of the core.
    pub core: u32,
    /// Attempts; 0 never locks.
    pub patience: u32,
}

/// An initialised port.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Port {
    record: u64,
    data: u64,
    size: u32,
}

impl Port {
    pub(crate) fn new(record: u64, data: u64, size: u32) -> Self {
        Self { record, data, size }
    }

    /// Size of its data in bytes.
    pub fn size(&self) -> u32 {
        self.size
    }

    /// Address of its record.
    pub fn record(&self) -> u64 {
        self.record
    }

    /// Address of its data.
    pub fn data(&self) -> u64 {
        self.data
    }
}

/// Bytes from the start of a core's window, in the chip-global map or in the core's own.
const OFFSET: u64 = (1 << TILE_WINDOW_SHIFT) - 1;

/// Where the data is of which this word of a record tells. In the core's own map, if the record's address is in it.
#[inline]
pub(crate) fn data_of(record: u64, state: u64) -> u64 {
    (record & !OFFSET) + (state >> DATA_SHIFT) * DATA_UNIT
}

/// Whether so many bytes of data are in the window of its core.
pub(crate) fn is_inside(data: u64, bytes: u64) -> bool {
    (data & OFFSET) + bytes <= OFFSET + 1
}

/// Takes a spinlock.
///
/// # Errors
/// [`Failure::Locked`]; the core that takes the lock leaves its number at `holder`. [`Failure::Closed`].
#[inline]
pub fn lock<M: Memory>(
    memory: &mut M,
    address: u64,
    holder: u64,
    caller: Caller,
) -> Result<(), Failure<M::Error>> {
    for _ in 0..caller.patience {
        match memory.swap(address, 1)? {
            0 => {
                memory.store(holder, caller.core)?;
                return Ok(());
            }
            // Nobody unlocks it any more, so this is the only value that anybody still writes to the lock.
            CLOSED => {
                memory.store(address, CLOSED)?;
                return Err(Failure::Closed);
            }
            _ => {}
        }
    }
    let holder = memory.load(holder)?;
    Err(Failure::Locked { holder })
}

/// Releases a spinlock; all accesses under it become visible before the release.
///
/// # Errors
/// The memory's.
#[inline]
pub fn unlock<M: Memory>(memory: &mut M, address: u64) -> Result<(), Failure<M::Error>> {
    memory.order()?;
    Ok(memory.store(address, 0)?)
}

/// The task that reads this port has stopped for good: tasks that write to it from now on are told. If a holder does not release the lock
/// in time, the port is closed all the same, and the answer is false: if that holder was only slow, it opens the port again, and writes go
/// where nobody reads.
///
/// # Errors
/// The memory's.
pub fn close<M: Memory>(
    memory: &mut M,
    record: u64,
    caller: Caller,
) -> Result<bool, Failure<M::Error>> {
    let is_free = match lock(memory, record + LOCK, record + HOLDER, caller) {
        Err(Failure::Memory(error)) => return Err(error.into()),
        Err(Failure::Locked { .. }) => false,
        Ok(()) | Err(_) => true,
    };
    memory.order()?;
    memory.store(record + LOCK, CLOSED)?;
    Ok(is_free)
}

/// Initialises the port with this record for data of this many bytes at an address, both in the memory of one core. Returns `None`
/// if it is initialised already.
///
/// # Errors
/// [`Failure::Size`] if a record cannot say where the data is: it is not a multiple of 8 bytes behind the start of the core's memory, or 512 KiB behind it;
/// [`Failure::Locked`], or the memory's.
pub fn initialise<M: Memory>(
    memory: &mut M,
    record: u64,
    caller: Caller,
    own: (u64, u32),
) -> Result<Option<Port>, Failure<M::Error>> {
    let is_new = initialise_record(memory, record, caller, own, INITIALISED)?;
    let (data, size) = own;
    Ok(is_new.then_some(Port { record, data, size }))
}

/// The same for a record of this kind: [`INITIALISED`], or the places of a queue where [`STATE`] has them. Returns whether it was not
/// initialised before.
#[inline(always)]
pub(crate) fn initialise_record<M: Memory>(
    memory: &mut M,
    record: u64,
    caller: Caller,
    (data, size): (u64, u32),
    kind: u64,
) -> Result<bool, Failure<M::Error>> {
    let state = kind | u64::from(size) | (((data & OFFSET) / DATA_UNIT) << DATA_SHIFT);
    if data_of(record, state) != data {
        return Err(Failure::Size);
    }
    lock(memory, record + LOCK, record + HOLDER, caller)?;
    let is_initialised = memory.load_double(record + STATE)? != 0;
    if !is_initialised {
        memory.store(record + NEWS, NEVER_WRITTEN)?;
        memory.order()?;
        memory.store_double(record + STATE, state)?;
    }
    unlock(memory, record + LOCK)?;
    Ok(!is_initialised)
}

/// The port with this record; none if it is not initialised, or a queue.
///
/// # Errors
/// The memory's.
pub fn get<M: Memory>(memory: &mut M, record: u64) -> Result<Option<Port>, Failure<M::Error>> {
    let state = memory.load_double(record + STATE)?;
    if state & INITIALISED == 0 {
        return Ok(None);
    }
    let data = data_of(record, state);
    let size = state as u32;
    Ok(Some(Port { record, data, size }))
}

/// Writes an item, whether or not the last one was read.
///
/// # Errors
/// [`Failure::Size`] if it is longer than the port's data, [`Failure::Locked`], or the memory's.
pub fn write<M: Memory>(
    memory: &mut M,
    port: &Port,
    caller: Caller,
    item: &[u8],
) -> Result<(), Failure<M::Error>> {
    if item.len() > port.size as usize {
        return Err(Failure::Size);
    }
    lock(memory, port.record + LOCK, port.record + HOLDER, caller)?;
    memory.copy_to(port.data, item)?;
    memory.store(port.record + NEWS, NEW_DATA)?;
    unlock(memory, port.record + LOCK)
}

/// Reads the data. Returns whether it was new. The rest of a larger buffer is unchanged.
///
/// # Errors
/// [`Failure::Size`] if the buffer is smaller than the data, [`Failure::NoData`], [`Failure::Locked`], or the memory's.
pub fn read<M: Memory>(
    memory: &mut M,
    port: &Port,
    caller: Caller,
    room: &mut [u8],
) -> Result<bool, Failure<M::Error>> {
    let Some(room) = room.get_mut(..port.size as usize) else {
        return Err(Failure::Size);
    };
    lock(memory, port.record + LOCK, port.record + HOLDER, caller)?;
    let news = memory.load(port.record + NEWS)?;
    if news != NEVER_WRITTEN {
        memory.copy_from(port.data, room)?;
        memory.store(port.record + NEWS, WAS_READ)?;
    }
    unlock(memory, port.record + LOCK)?;
    match news {
        NEVER_WRITTEN => Err(Failure::NoData),
        news => Ok(news == NEW_DATA),
    }
}

/// Whether there is data that has not been read. Takes no lock, so it suits polling.
///
/// # Errors
/// The memory's.
pub fn has_news<M: Memory>(memory: &mut M, port: &Port) -> Result<bool, Failure<M::Error>> {
    Ok(memory.load(port.record + NEWS)? == NEW_DATA)
}

#[cfg(test)]
mod tests;
