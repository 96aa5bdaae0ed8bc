//! The library's system calls, answered by the double's kernel.

use super::kernel;
use bulkhead_abi::syscall::{
    ANY_ENDPOINT, NO_SELECTOR, REPLY_WORDS, SEL_ACTIVITY, Syscall, SyscallError,
};

/// Results of a call: the words after the error code.
pub type Results = [u64; REPLY_WORDS - 1];

/// Makes a system call.
///
/// # Errors
/// The kernel's.
pub fn call(call: &Syscall) -> Result<Results, SyscallError> {
    kernel::call(call)
}

/// Activates memory or a send gate for the caller. Returns the endpoint, and the bytes of the memory.
///
/// # Errors
/// The kernel's.
pub fn activate(gate: u16) -> Result<(u16, u64), SyscallError> {
    let request = Syscall::Activate {
        gate,
        activity: SEL_ACTIVITY,
        memory: NO_SELECTOR,
        offset: 0,
        replies: 0,
        endpoint: ANY_ENDPOINT,
    };
    let [endpoint, bytes, ..] = call(&request)?;
    Ok((endpoint as u16, bytes))
}
