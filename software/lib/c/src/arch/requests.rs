//! Typed messages: the number of an operation, a body, and an answer that begins with a status.
//!
//! Why it exists: programs in C and in Rust use the same layouts for requests. What it deliberately does not know: which operations
//! exist.

use super::{TABLES, bytes, bytes_mut, with};
use crate::tables::{BAD_ARGUMENT, status};
use bulkhead_lib::common::status::Status;
use bulkhead_lib::gate::Message;
use core::ffi::{c_int, c_void};

/// Bytes of an operation, and of a status.
const WORD: usize = 8;
/// Maximum bytes of a message.
const MESSAGE: usize = 2016;

/// A word followed by more bytes.
fn with_word<'b>(buffer: &'b mut [u8; MESSAGE], word: u64, rest: &[u8]) -> Result<&'b [u8], i32> {
    let length = WORD + rest.len();
    let target = buffer.get_mut(..length).ok_or(BAD_ARGUMENT)?;
    target[..WORD].copy_from_slice(&word.to_le_bytes());
    target[WORD..].copy_from_slice(rest);
    Ok(target)
}

functions! {
    fn bh_ask(gate: c_int, operation: u64, request: *const c_void, length: usize, reply: *mut c_void, size: usize) -> c_int {
        with(|tables| {
            // SAFETY: see the head of the parent module.
            let (request, reply) = unsafe { (bytes(request, length)?, bytes_mut(reply, size)?) };
            let mut buffer = [0; MESSAGE];
            let number = tables.call(gate, with_word(&mut buffer, operation, request)?)?;
            let answer = tables.take(number)?;
            match answer.word() {
                Some(0) => {}
                Some(code) => return Err(status(Status::from_code(code).unwrap_or(Status::BadReply))),
                None => return Err(status(Status::BadReply)),
            }
            let found = answer.rest().get(..reply.len());
            reply.copy_from_slice(found.ok_or(status(Status::BadReply))?);
            Ok(0)
        })
    }

    fn bh_operation(message: c_int) -> u64 {
        let tables = TABLES.0.borrow();
        let message = tables.message(message).ok();
        message.and_then(Message::word).unwrap_or(u64::MAX)
    }

    fn bh_body(message: c_int, target: *mut c_void, size: usize) -> c_int {
        with(|tables| {
            // SAFETY: see the head of the parent module.
            let target = unsafe { bytes_mut(target, size) }?;
            let message = tables.message(message)?;
            let body = message.word().and_then(|_| message.rest().get(..target.len()));
            target.copy_from_slice(body.ok_or(status(Status::BadRequest))?);
            Ok(0)
        })
    }

    fn bh_done(message: c_int, reply: *const c_void, length: usize) -> c_int {
        with(|tables| {
            // SAFETY: see the head of the parent module.
            let reply = unsafe { bytes(reply, length) }?;
            let mut buffer = [0; MESSAGE];
            tables.reply(message, with_word(&mut buffer, 0, reply)?)
        })
    }

    fn bh_fail(message: c_int, why: c_int) -> c_int {
        with(|tables| {
            let code = u64::try_from(why).ok().and_then(Status::from_code);
            tables.reply(message, &code.ok_or(BAD_ARGUMENT)?.code().to_le_bytes())
        })
    }
}
