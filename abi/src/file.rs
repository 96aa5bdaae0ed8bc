//! What all users of the file service's protocol must agree on: operations, flags, sizes.
//!
//! Why it exists: clients are not only programs; a streaming unit asks for its files itself. What it deliberately does not
//! know: the other requests, which only programs make, and how files are stored.
//!
//! A request is a word with the operation and a body of words and bytes; a reply a word with the status, 0 for success, and a body.
//! A client obtains the pieces of a file by [`crate::syscall::Syscall::Exchange`] over the session. The arguments are the handle,
//! the position, and whether the client will write; the two words of the answer are the piece's first byte in the file and its
//! length.

/// Opens a file: flags, path. Replies with handle and size.
pub const OPEN: u64 = 1;
/// Closes a file: handle.
pub const CLOSE: u64 = 2;
/// Sets the length of a file: handle, size.
pub const COMMIT: u64 = 7;

/// Bytes of a path, padded with zeros.
pub const PATH: usize = 224;

/// Flag of [`OPEN`]: the file is read.
pub const READ: u64 = 1;
/// Flag of [`OPEN`]: the file is written. At most one client at a time has a file open for writing.
pub const WRITE: u64 = 2;
/// Flag of [`OPEN`]: the file is created if it does not exist.
pub const CREATE: u64 = 4;
/// Flag of [`OPEN`]: the file is emptied.
pub const TRUNCATE: u64 = 8;
