//! Queuing ports: a record and a bounded queue of items in the owner's memory, for tasks of any core.
//!
//! Why it exists: a sampling port has only the last item; here each item is read once, in the order in which their writers held the lock
//! (m2os-mc-ngres21 leaves such ports to the future). What it deliberately does not know: where memory is and what an access costs, like
//! [`super::port`], whose records and locks it uses.
//!
//! No operation waits for the other side's task. A writer that finds no place is told and may try again, wait, or drop its item: the
//! writers decide what is lost. Several cores may write, and several may read. Places are consecutive, each at a multiple of 8 bytes.

use crate::port::{
    Caller, Failure, Memory, Port, data_of, initialise_record, is_inside, lock, unlock,
};
use bulkhead_abi::one_shot::port::{
    HOLDER, INITIALISED, LOCK, QUEUE, SLOTS_MAX, SLOTS_SHIFT, STATE, WAITING_SHIFT,
};

/// An initialised queue.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Queue {
    record: u64,
    data: u64,
    size: u32,
    slots: u32,
}

impl Queue {
    /// Address of its record.
    pub fn record(&self) -> u64 {
        self.record
    }

    /// Size of an item in bytes.
    pub fn size(&self) -> u32 {
        self.size
    }

    /// Number of places.
    pub fn slots(&self) -> u32 {
        self.slots
    }

    /// Address of the places.
    pub fn data(&self) -> u64 {
        self.data
    }

    fn place(&self, number: u32) -> u64 {
        self.data + u64::from(number) * stride(self.size)
    }

    /// From the record's word: the number of the oldest item's place, and how many items wait. A corrupted word names a place of the queue.
    fn positions(&self, word: u32) -> (u32, u32) {
        let first = word & ((1 << WAITING_SHIFT) - 1);
        let first = if first < self.slots { first } else { 0 };
        (first, word >> WAITING_SHIFT)
    }

    /// The place this many after another one.
    fn behind(&self, first: u32, count: u32) -> u32 {
        let place = first + count;
        if place < self.slots {
            place
        } else {
            place - self.slots
        }
    }
}

/// Bytes from one place to the next.
pub const fn stride(size: u32) -> u64 {
    (size as u64).next_multiple_of(8)
}

/// Initialises the queue with this record for `slots` items, each of `own.1` bytes, from the address `own.0` on, all in the memory of one core. Returns `None` if it is
/// initialised already, or if there would be no place or more than [`SLOTS_MAX`].
///
/// # Errors
/// As of [`crate::port::initialise`].
pub fn initialise<M: Memory>(
    memory: &mut M,
    record: u64,
    caller: Caller,
    own: (u64, u32),
    slots: u16,
) -> Result<Option<Queue>, Failure<M::Error>> {
    if slots == 0 || slots > SLOTS_MAX {
        return Ok(None);
    }
    if !is_inside(own.0, u64::from(slots) * stride(own.1)) {
        return Err(Failure::Size);
    }
    let kind = u64::from(slots) << SLOTS_SHIFT;
    let is_new = initialise_record(memory, record, caller, own, kind)?;
    let (data, size) = own;
    Ok(is_new.then_some(Queue {
        record,
        data,
        size,
        slots: slots.into(),
    }))
}

/// A port of either kind.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Any {
    /// The last item only.
    Sampling(Port),
    /// Each item once.
    Queue(Queue),
}

/// The port with this record, of either kind; none if it is not initialised.
///
/// # Errors
/// [`Failure::Size`] if the record names a queue that is not in its core's window; the memory's.
pub fn any<M: Memory>(memory: &mut M, record: u64) -> Result<Option<Any>, Failure<M::Error>> {
    let state = memory.load_double(record + STATE)?;
    let slots = (state >> SLOTS_SHIFT) as u32 & u32::from(SLOTS_MAX);
    let is_sampling = state & INITIALISED != 0;
    if !is_sampling && slots == 0 {
        return Ok(None);
    }
    let data = data_of(record, state);
    let size = state as u32;
    if is_sampling {
        return Ok(Some(Any::Sampling(Port::new(record, data, size))));
    }
    // Another core may have written to the record, and writers would follow it with rights that it does not have.
    if !is_inside(data, u64::from(slots) * stride(size)) {
        return Err(Failure::Size);
    }
    Ok(Some(Any::Queue(Queue {
        record,
        data,
        size,
        slots,
    })))
}

/// The queue with this record; none if it is not initialised, or a sampling port.
///
/// # Errors
/// The memory's.
pub fn get<M: Memory>(memory: &mut M, record: u64) -> Result<Option<Queue>, Failure<M::Error>> {
    match any(memory, record)? {
        Some(Any::Queue(queue)) => Ok(Some(queue)),
        _ => Ok(None),
    }
}

/// Adds an item after all others.
///
/// # Errors
/// [`Failure::Size`] if it has another size, [`Failure::Full`] if there is no place, [`Failure::Locked`], or the memory's.
pub fn put<M: Memory>(
    memory: &mut M,
    queue: &Queue,
    caller: Caller,
    item: &[u8],
) -> Result<(), Failure<M::Error>> {
    if item.len() != queue.size as usize {
        return Err(Failure::Size);
    }
    lock(memory, queue.record + LOCK, queue.record + HOLDER, caller)?;
    let (first, waiting) = queue.positions(memory.load(queue.record + QUEUE)?);
    let has_place = waiting < queue.slots;
    if has_place {
        memory.copy_to(queue.place(queue.behind(first, waiting)), item)?;
        let word = first | (waiting + 1) << WAITING_SHIFT;
        memory.store(queue.record + QUEUE, word)?;
    }
    unlock(memory, queue.record + LOCK)?;
    has_place.then_some(()).ok_or(Failure::Full)
}

/// Takes the oldest item. Returns whether there was one; if not, `room` is unchanged.
///
/// # Errors
/// [`Failure::Size`] if the buffer differs in size from the items, [`Failure::Locked`], or the memory's.
pub fn take<M: Memory>(
    memory: &mut M,
    queue: &Queue,
    caller: Caller,
    room: &mut [u8],
) -> Result<bool, Failure<M::Error>> {
    if room.len() != queue.size as usize {
        return Err(Failure::Size);
    }
    lock(memory, queue.record + LOCK, queue.record + HOLDER, caller)?;
    let (first, waiting) = queue.positions(memory.load(queue.record + QUEUE)?);
    if waiting > 0 {
        memory.copy_from(queue.place(first), room)?;
        let word = queue.behind(first, 1) | (waiting - 1) << WAITING_SHIFT;
        memory.store(queue.record + QUEUE, word)?;
    }
    unlock(memory, queue.record + LOCK)?;
    Ok(waiting > 0)
}

/// How many items wait. Takes no lock, so it suits polling.
///
/// # Errors
/// The memory's.
pub fn waiting<M: Memory>(memory: &mut M, queue: &Queue) -> Result<u32, Failure<M::Error>> {
    Ok(memory.load(queue.record + QUEUE)? >> WAITING_SHIFT)
}

#[cfg(test)]
mod tests;
