//! System calls: a message to the kernel and its reply.
//!
//! Why it exists: managers manage activities through this. What it deliberately does not know: which calls the kernel
//! allows to whom.

use crate::gate::{Aligned, SendGate};
use bulkhead_abi::dtu::DtuError;
use bulkhead_abi::syscall::{SYSCALL_WORDS, Syscall, SyscallError};
use bulkhead_hal::user;
use zerocopy::IntoBytes;

/// Results of a call: the words after the error code.
pub type Results = [u64; SYSCALL_WORDS - 1];

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
    let words = call.encode();
    let mut request = Aligned([0u64; SYSCALL_WORDS]);
    let count = words.as_slice().len();
    request.0[..count].copy_from_slice(words.as_slice());
    let reply = loop {
        match gate.call(request.0[..count].as_bytes()) {
            Ok(reply) => break reply,
            // The kernel's slots are shared by all; one becomes free soon.
            Err(DtuError::NoSpace) => {}
            Err(_) => return Err(SyscallError::Refused),
        }
    };
    let mut results = [0; SYSCALL_WORDS];
    for (result, bytes) in results.iter_mut().zip(reply.payload().chunks_exact(8)) {
        let mut word = [0; 8];
        word.copy_from_slice(bytes);
        *result = u64::from_le_bytes(word);
    }
    match SyscallError::from_code(results[0]) {
        Some(SyscallError::None) => {
            let mut rest = [0; SYSCALL_WORDS - 1];
            rest.copy_from_slice(&results[1..]);
            Ok(rest)
        }
        Some(error) => Err(error),
        None => Err(SyscallError::Refused),
    }
}
