//! Memory that others access past the caches of this tile.
//!
//! Why it exists: a data transfer unit sees the contents of its own tile's caches, but not of other tiles' caches. So an activity that has
//! given away a capability for memory that it also loads from and stores to must say when bytes must move between its caches and memory.
//! What it deliberately does not know: which activity accesses the memory, and how each tells the other that it is its turn.
//!
//! Gates alone do not need this: transfers, messages, pipes and sessions pass through the caches of both ends, and the kernel writes lines
//! back when memory changes its owner.

use bulkhead_hal::csr;

/// Writes the bytes of a value from the tile's caches back to memory and removes them from the caches. Call it after the last store and
/// before the message that tells another tile to read; also after the message that another tile has written, before the first load. In
/// between, nothing may store to these bytes or to other bytes of their first and last lines.
///
/// A later command of the unit waits for it; anything else that must follow it needs a fence. Without caches that hold the bytes of memory,
/// it does nothing.
pub fn write_back<T: ?Sized>(memory: &T) {
    let (line, bytes) = (u64::from(crate::environment().line), size_of_val(memory));
    if line == 0 || bytes == 0 {
        return;
    }
    let begin = core::ptr::from_ref(memory).addr() as u64;
    let end = begin + bytes as u64;
    (begin - begin % line..end)
        .step_by(line as usize)
        .for_each(csr::write_back);
}
