//! Room for a message of any size.
//!
//! Why it exists: the unit reads a message from one page only, and an array of bytes alone may cross a page. What it deliberately does not
//! know: gates.

/// A message must be within one page; a buffer of this type does, because it is aligned to its size.
#[repr(C, align(2048))]
#[derive(Debug)]
pub struct MessageBuffer(pub [u8; 2048]);

impl MessageBuffer {
    /// A buffer of zeros.
    pub const fn new() -> Self {
        Self([0; 2048])
    }
}

impl Default for MessageBuffer {
    fn default() -> Self {
        Self::new()
    }
}
