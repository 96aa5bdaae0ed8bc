//! System calls: a message to the kernel and its reply.
//!
//! Why it exists: managers manage activities through this. What it deliberately does not know: which calls the kernel
//! allows to whom.

use crate::gate::{Aligned, SendGate};
use bulkhead_abi::dtu::DtuError;
use bulkhead_abi::syscall::{REPLY_WORDS, Syscall, SyscallError};
use bulkhead_hal::user;
use zerocopy::IntoBytes;

/// Results of a call: the words after the error code.
pub type Results = [u64; REPLY_WORDS - 1];

/// Makes a system call and waits for its reply.
///
/// # Errors
/// What the kernel says; [`SyscallError::Refused`] if the channel to the kernel is broken.
pub fn call(call: &Syscall) -> Result<Results, SyscallError> {
    let environment = user::environment();
    let gate = SendGate::new(
        environment.syscall_send,
        environment.syscall_reply,
        environment.syscall_buffer,
    );
    // The words come first in it, so none of them crosses a page.
    let words = Aligned(call.encode());
    let request = words.0.as_slice().as_bytes();
    let reply = loop {
        match gate.call(request) {
            Ok(reply) => break reply,
            // The kernel's slots are shared by all; one becomes free soon.
            Err(DtuError::NoSpace) => {}
            Err(_) => return Err(SyscallError::Refused),
        }
    };
    let mut words = reply.payload().chunks_exact(8).map(|bytes| {
        let mut word = [0; 8];
        word.copy_from_slice(bytes);
        u64::from_le_bytes(word)
    });
    match SyscallError::from_code(words.next().unwrap_or(u64::MAX)) {
        Some(SyscallError::None) => {
            let mut results = [0; REPLY_WORDS - 1];
            results.iter_mut().zip(words).for_each(|(r, w)| *r = w);
            Ok(results)
        }
        Some(error) => Err(error),
        None => Err(SyscallError::Refused),
    }
}
