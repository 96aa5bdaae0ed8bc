//! The messages between clients and streaming units.
//!
//! Why it exists: an accelerator is driven by messages; its request, the pieces that it passes to the next unit of a pipeline,
//! and its answer have one layout. What it deliberately does not know: what a unit computes.
//!
//! A unit reads from `input` and writes to `output` (none: its results are dropped). Each is a memory gate, a pipe (a receive
//! gate to read from, a send gate to write to), or a file: then an argument of that name is its path, and the send gate
//! `files` leads to the file service. A unit passes every piece that it has written to memory to the send gate `next`, if it
//! has one. One without the receive gate `requests` works on one whole stream and ends. All fields are 64-bit words.

/// Name of the receive gate for requests.
pub const REQUESTS: &str = "requests";
/// Name of the send gate to the file service.
pub const FILES: &str = "files";
/// Name of the argument with the bytes of a row, for a unit without requests.
pub const WIDTH: &str = "width";
/// Name of the gate that a unit reads from, or of the argument with the path of a file.
pub const INPUT: &str = "input";
/// Name of the gate that a unit writes to, or of the argument with the path of a file.
pub const OUTPUT: &str = "output";
/// After the name of a pipe: the memory gate of its region, as in `lib::pipe`.
pub const REGION: &str = "-region";
/// Name of the send gate to the next unit of a pipeline.
pub const NEXT: &str = "next";
/// Most bytes of a piece: a page, which one command of the data transfer unit can move.
pub const PIECE: u64 = 4096;
/// Words of a request.
pub const REQUEST_WORDS: usize = 6;
/// Words of an answer.
pub const ANSWER_WORDS: usize = 3;

/// A request: process a piece of a stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct Request {
    /// Offset of the piece in `input`.
    pub input: u64,
    /// Offset of its results in `output`.
    pub output: u64,
    /// Bytes of the piece.
    pub bytes: u64,
    /// Bytes of a row; the meaning depends on the unit.
    pub width: u64,
    /// Bytes of the stream before this piece; 0 begins a stream.
    pub position: u64,
    /// Bytes of the whole stream.
    pub total: u64,
}

impl Request {
    /// A whole stream in one piece, from offset 0 to offset 0.
    pub const fn whole(bytes: u64, width: u64) -> Self {
        Self {
            input: 0,
            output: 0,
            bytes,
            width,
            position: 0,
            total: bytes,
        }
    }

    /// Everything from offset 0 to the end of the file, pipe or region.
    pub const fn until_end(width: u64) -> Self {
        Self::whole(u64::MAX, width)
    }

    /// The request as words.
    pub const fn encode(&self) -> [u64; REQUEST_WORDS] {
        [
            self.input,
            self.output,
            self.bytes,
            self.width,
            self.position,
            self.total,
        ]
    }

    /// Decodes a request; `None` if the words are not one.
    pub fn decode(words: &[u64]) -> Option<Self> {
        let &[input, output, bytes, width, position, total] = words else {
            return None;
        };
        Some(Self {
            input,
            output,
            bytes,
            width,
            position,
            total,
        })
    }

    /// Whether the piece ends its stream.
    pub const fn is_last(&self) -> bool {
        self.position.saturating_add(self.bytes) >= self.total
    }
}

/// An answer to a request, sent when the piece has passed the rest of the pipeline.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct Answer {
    /// 0; a code of [`crate::dtu::DtuError`]; [`BAD_REQUEST`] for an invalid request; [`CUT_OFF`]; [`KERNEL`] and more, [`SERVICE`]
    /// and more for a refusal.
    pub status: u64,
    /// Bytes that were processed.
    pub bytes: u64,
    /// Checksum of the stream so far, by the first unit of the pipeline that computes one; 0 without one.
    pub checksum: u64,
}

/// [`Answer::status`] of a request that is invalid for the unit.
pub const BAD_REQUEST: u64 = 256;
/// [`Answer::status`] if the writer of the pipe ended before the end of the stream.
pub const CUT_OFF: u64 = 257;
/// [`Answer::status`]: this plus the [`crate::syscall::SyscallError`] with which the kernel refused a system call of the unit.
pub const KERNEL: u64 = 512;
/// [`Answer::status`]: this plus the status with which the file service refused a request of the unit.
pub const SERVICE: u64 = 1024;

impl Answer {
    /// The answer as words.
    pub const fn encode(&self) -> [u64; ANSWER_WORDS] {
        [self.status, self.bytes, self.checksum]
    }

    /// Decodes an answer; `None` if the words are not one.
    pub fn decode(words: &[u64]) -> Option<Self> {
        let &[status, bytes, checksum] = words else {
            return None;
        };
        Some(Self {
            status,
            bytes,
            checksum,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_come_back() {
        let request = Request {
            input: 1,
            output: 2,
            bytes: 3,
            width: 4,
            position: 5,
            total: 8,
        };
        assert_eq!(Request::decode(&request.encode()), Some(request));
        assert_eq!(Request::decode(&[1, 2]), None);
        assert!(request.is_last() && Request::whole(64, 8).is_last());
        let answer = Answer {
            status: BAD_REQUEST,
            bytes: 7,
            checksum: 9,
        };
        assert_eq!(Answer::decode(&answer.encode()), Some(answer));
        assert_eq!(Answer::decode(&[]), None);
    }
}
