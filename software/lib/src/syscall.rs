//! System calls: a message to the kernel and its reply.
//!
//! Why it exists: managers manage activities through this. What it deliberately does not know: which activities may make which
//! calls.

use crate::gate::{Message, SendGate};
use bulkhead_abi::dtu::DtuError;
use bulkhead_abi::syscall::{
    ANY_ENDPOINT, NO_SELECTOR, REPLY_WORDS, SEL_ACTIVITY, Syscall, SyscallError,
};
use bulkhead_user::user;
use zerocopy::IntoBytes;

/// Results of a call: the words after the error code.
pub type Results = [u64; REPLY_WORDS - 1];

/// Makes a system call and waits for its reply.
///
/// # Errors
/// The kernel's error; [`SyscallError::Refused`] if the channel to the kernel is broken.
#[inline(always)]
pub fn call(call: &Syscall) -> Result<Results, SyscallError> {
    call.with_words(transact)
}

/// The same for a call on which a server decides.
///
/// # Errors
/// As for [`call`]; with [`SyscallError::Refused`] the word that the server gave as its reason, else 0.
#[cold]
pub fn ask(call: &Syscall) -> Result<Results, (SyscallError, u64)> {
    call.with_words(transact_asking)
}

/// The same for a call without results.
///
/// # Errors
/// As for [`call`].
#[inline(always)]
pub fn complete(call: &Syscall) -> Result<(), SyscallError> {
    call.with_words(transact_only)
}

/// Activates memory or a send gate for the caller, on any free endpoint. Returns the endpoint, and the bytes of the memory or the maximum
/// bytes of a message.
///
/// # Errors
/// See [`Syscall::Activate`].
pub fn activate(gate: u16) -> Result<(u16, u64), SyscallError> {
    place(gate, NO_SELECTOR, 0)
}

/// Lets a receive gate receive at `offset` in memory of the caller, with rights to reply. Returns its endpoint.
///
/// # Errors
/// See [`Syscall::Activate`].
pub fn receive(gate: u16, memory: u16, offset: u64) -> Result<u16, SyscallError> {
    place(gate, memory, offset).map(|(endpoint, _)| endpoint)
}

fn place(gate: u16, memory: u16, offset: u64) -> Result<(u16, u64), SyscallError> {
    let [endpoint, bytes, ..] = call(&Syscall::Activate {
        gate,
        activity: SEL_ACTIVITY,
        memory,
        offset,
        replies: (memory != NO_SELECTOR).into(),
        endpoint: ANY_ENDPOINT,
    })?;
    Ok((endpoint as u16, bytes))
}

#[inline(never)]
fn transact(request: &[u64]) -> Result<Results, SyscallError> {
    let reply = exchange(request)?;
    let (code, words) = reply.words().split_first().ok_or(SyscallError::Refused)?;
    if *code != 0 {
        return Err(failure(*code));
    }
    Ok(results(words))
}

#[inline(always)]
fn results(words: &[u64]) -> Results {
    let mut results = [0; REPLY_WORDS - 1];
    results.iter_mut().zip(words).for_each(|(r, w)| *r = *w);
    results
}

#[inline(never)]
fn transact_asking(request: &[u64]) -> Result<Results, (SyscallError, u64)> {
    let reply = exchange(request).map_err(|error| (error, 0))?;
    match reply.words().split_first() {
        Some((0, words)) => Ok(results(words)),
        Some((code, reason)) => Err((failure(*code), reason.first().copied().unwrap_or(0))),
        None => Err((SyscallError::Refused, 0)),
    }
}

#[inline(never)]
fn transact_only(request: &[u64]) -> Result<(), SyscallError> {
    let reply = exchange(request)?;
    // The load completes while the unit frees the slot.
    let start = reply.start();
    reply.acknowledge();
    match start.is_null() {
        true => Ok(()),
        false => Err(failure(start.word().unwrap_or(u64::MAX))),
    }
}

#[cold]
#[inline(never)]
fn failure(code: u64) -> SyscallError {
    SyscallError::from_code(code).unwrap_or(SyscallError::Refused)
}

/// Sends the words of a request, which are within one page, and waits for the reply.
#[inline(always)]
fn exchange(request: &[u64]) -> Result<Message, SyscallError> {
    let environment = user::environment();
    let gate = SendGate::new(
        environment.syscall_send,
        environment.syscall_reply,
        environment.syscall_buffer,
    );
    loop {
        match gate.call_once(request.as_bytes()) {
            Ok(reply) => return Ok(reply),
            // The kernel's slots are shared by all; one becomes free soon.
            Err(DtuError::NoSpace) => {}
            Err(_) => return Err(SyscallError::Refused),
        }
    }
}
