//! Memory that others reach past the caches of this tile.
//!
//! Why it exists: a data transfer unit finds what its own tile's caches have, and nothing of what the caches of other tiles have. So an
//! activity that gave somebody a memory capability of memory that it also loads from and stores to must say when bytes are to move between
//! its caches and memory. What it deliberately does not know: who reaches the memory, and how one tells the other that it has its turn.
//!
//! Nobody needs it for gates alone: transfers, messages, pipes and sessions pass through the caches of both ends, and the kernel writes lines back
//! when memory changes its owner.

use bulkhead_hal::csr;

/// Memory gets what the tile's caches have of a value's bytes, and the caches keep nothing of them. Call it after the last store and before the
/// message that tells another tile to read; and after the message that tells that another tile has written, before the first load. Nobody
/// stores to the bytes, or to others of their first and last lines, in between.
///
/// A command of the unit that comes later in the program waits for it; what follows for other reasons must be behind a fence. Without caches
/// that hold the bytes of memory, it does nothing.
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
