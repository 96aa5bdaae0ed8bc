//! A request of the example service (`service/example`): compute for some time.
//!
//! Why it exists: client and attackers make it. What it deliberately does not know: gates.

use bulkhead_lib::gate::MessageBuffer;

/// Number of the operation.
const WORK: u64 = 2;
/// Bytes of the request.
pub const BYTES: usize = 24;

/// A request that takes `time` nanoseconds and is announced with `estimate` nanoseconds.
pub fn request(time: u64, estimate: u64) -> MessageBuffer {
    let mut buffer = MessageBuffer::new();
    for (place, word) in buffer.0.chunks_exact_mut(8).zip([WORK, time, estimate]) {
        place.copy_from_slice(&word.to_le_bytes());
    }
    buffer
}
