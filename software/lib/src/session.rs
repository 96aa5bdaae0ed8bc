//! Sessions with services: capabilities that a server grants, in addition to the messages that a gate carries.
//!
//! Why it exists: a server can give its client access to memory, and take it back, without involving a third party. What it
//! deliberately does not know: services.
//!
//! An application with a send gate to a server may open a session with the service that this server offers; its manager places the
//! capability. Each side learns the identity of the other from the kernel, not from messages.

use crate::argument;
use crate::gate::{MemoryGate, ReceiveGate};
use crate::{syscall, time};
use bulkhead_abi::environment::{ENVIRONMENT_BASE, GateKind};
use bulkhead_abi::syscall::{
    SEL_FREE, SEL_KERNEL_MEMORY, SEL_MEMORY, SEL_OFFERED, SEL_SESSIONS, SERVICES_MAX, SYSCALL_SLOT,
    Syscall, SyscallError,
};
use bulkhead_common::status::Status;
use core::sync::atomic::{AtomicU16, AtomicU64, Ordering};

/// Result of an operation on sessions.
pub type Result<T> = core::result::Result<T, Status>;

/// The status for a client whose system call was refused.
#[cold]
pub fn refused(error: SyscallError) -> Status {
    match error {
        // A capability that is revoked in the middle of a call is gone as well.
        SyscallError::NoCapability | SyscallError::Gone | SyscallError::Revoked => Status::Closed,
        SyscallError::NoQuota | SyscallError::NoKernelMemory => Status::TooMany,
        SyscallError::NoEndpoint => Status::TooMany,
        SyscallError::Busy | SyscallError::WrongState => Status::Busy,
        SyscallError::Timeout => Status::Timeout,
        SyscallError::BadArgument | SyscallError::OutOfBounds => Status::BadRequest,
        _ => Status::NoRights,
    }
}

/// The same for a call on which a server decided: its own reason comes first.
#[cold]
fn declined((error, reason): (SyscallError, u64)) -> Status {
    let reason = Some(reason).filter(|_| error == SyscallError::Refused);
    reason
        .and_then(Status::from_code)
        .unwrap_or_else(|| refused(error))
}

/// Bytes of kernel memory that are left for this application and all that share its purse.
///
/// # Errors
/// The kernel's error.
pub fn kernel_memory() -> Result<u64> {
    let selector = SEL_KERNEL_MEMORY;
    let [_, left, ..] = syscall::call(&Syscall::Query { selector }).map_err(refused)?;
    Ok(left)
}

/// The next free selector.
static NEXT: AtomicU16 = AtomicU16::new(SEL_FREE);

/// A free selector. Selectors are not used again, except the last one if it was given back.
pub fn selector() -> Result<u16> {
    let next = NEXT.load(Ordering::Relaxed);
    if next >= SEL_SESSIONS {
        return Err(Status::TooMany);
    }
    NEXT.store(next + 1, Ordering::Relaxed);
    Ok(next)
}

/// Nothing is at a selector: it is free again if it was the last one.
fn give_back(selector: u16) {
    if NEXT.load(Ordering::Relaxed) == selector + 1 {
        NEXT.store(selector, Ordering::Relaxed);
    }
}

/// The capability for the memory behind a memory gate. Managers give it only to applications that receive messages.
pub fn memory(name: &str) -> Option<u16> {
    let entry = argument::gate(name, GateKind::Memory)?;
    u16::try_from(entry.buffer).ok().filter(|&s| s != 0)
}

/// A session with the service behind a send gate.
#[derive(Debug)]
pub struct Session {
    selector: u16,
}

/// Memory that a server has granted.
#[derive(Debug)]
pub struct Granted {
    selector: u16,
    /// Access to it.
    pub gate: MemoryGate,
    /// Two words from the server.
    pub words: [u64; 2],
}

/// Nanoseconds for which clients of the library wait for a service that is still starting. A manager waits 50 ms for a service before it
/// starts what needs it or says that there will be none; its other work comes on top.
pub const PATIENCE: u64 = 60_000_000;

impl Session {
    /// Opens a session with the service behind the send gate of this name. If the service is still starting, waits for at most this
    /// many nanoseconds.
    ///
    /// # Errors
    /// [`Status::NotFound`] if there is no such gate, [`Status::Closed`] if there is no service (at once if there will be none), or
    /// the server's error.
    pub fn open(gate: &str, argument: u64, patience: u64) -> Result<Self> {
        let end = time::now() + patience;
        loop {
            match Self::attempt(gate, argument)? {
                Some(session) => return Ok(session),
                None if time::now() < end => time::sleep_until(time::now() + 20_000),
                None => return Err(Status::Closed),
            }
        }
    }

    /// Opens a session, unless the service is still starting; then there is none, and another attempt may succeed.
    ///
    /// # Errors
    /// As for [`open`](Self::open).
    pub fn attempt(gate: &str, argument: u64) -> Result<Option<Self>> {
        let entry = argument::gate(gate, GateKind::Send).ok_or(Status::NotFound)?;
        let service = u16::try_from(entry.rights).map_err(|_| Status::NotFound)?;
        if service == 0 {
            return Err(Status::NotFound);
        }
        let target = selector()?;
        let request = Syscall::OpenSession {
            service,
            target,
            argument,
        };
        let Err((error, reason)) = syscall::ask(&request) else {
            return Ok(Some(Self { selector: target }));
        };
        give_back(target);
        match error {
            // The service has not been offered yet, or its server has just ended and its remains are being removed.
            SyscallError::NoCapability | SyscallError::Gone | SyscallError::Revoked => Ok(None),
            // The capability is not a service: the manager's sign that there will be none.
            SyscallError::WrongKind => Err(Status::Closed),
            error => Err(declined((error, reason))),
        }
    }

    /// Asks the server for memory; the arguments are for the server. The selector of an earlier grant that has ended can be used
    /// again.
    ///
    /// # Errors
    /// The error of the kernel or the server.
    pub fn obtain(&self, target: u16, arguments: [u64; 3]) -> Result<Granted> {
        let [argument0, argument1, argument2] = arguments;
        let request = Syscall::Exchange {
            session: self.selector,
            delegate: 0,
            own: target,
            count: 1,
            argument0,
            argument1,
            argument2,
        };
        let [first, second, count, ..] = syscall::ask(&request).map_err(declined)?;
        if count != 1 {
            return Err(Status::BadReply);
        }
        let (endpoint, size) = match syscall::activate(target) {
            Ok(active) => active,
            Err(error) => {
                // A capability that cannot be given up stays until this activity ends.
                let _ = revoke(target);
                return Err(refused(error));
            }
        };
        Ok(Granted {
            selector: target,
            gate: MemoryGate::new(endpoint, size),
            words: [first, second],
        })
    }
}

impl Granted {
    /// Gives up the memory; returns its selector.
    pub fn release(self) -> u16 {
        // If the server has taken it away already, there is nothing to revoke.
        let _ = revoke(self.selector);
        self.selector
    }

    /// For memory that the server has taken back; returns its selector.
    pub fn over(self) -> u16 {
        self.selector
    }
}

/// Slots for the kernel's questions to a service.
const SLOTS: usize = 4;
/// Words of these slots.
const WORDS: usize = SLOTS * SYSCALL_SLOT as usize / 8;
/// The unit's buffer for these questions, for each service. For the compiler, these words change by themselves.
#[repr(C, align(64))]
struct Questions([AtomicU64; WORDS]);
static QUESTIONS: [Questions; SERVICES_MAX as usize] =
    [const { Questions([const { AtomicU64::new(0) }; WORDS]) }; SERVICES_MAX as usize];

/// Offers a service under this selector, [`SEL_OFFERED`] plus its number; the kernel's questions come to the gate.
///
/// # Errors
/// [`Status::BadRequest`] if it is not the selector of a service; or the kernel's error.
pub fn offer(service: u16) -> Result<ReceiveGate> {
    let number = service.checked_sub(SEL_OFFERED);
    let questions = number.and_then(|number| QUESTIONS.get(usize::from(number)));
    let questions = questions.ok_or(Status::BadRequest)?;
    let gate = selector()?;
    let call = |request: Syscall| syscall::call(&request).map_err(refused);
    call(Syscall::CreateReceive {
        target: gate,
        slots: SLOTS as u8,
        slot_size: SYSCALL_SLOT,
    })?;
    let buffer = questions.0[0].as_ptr() as u64;
    // Program and data are in the activity's memory as in its address space from the environment page on.
    let endpoint = syscall::receive(gate, SEL_MEMORY, buffer - ENVIRONMENT_BASE);
    let endpoint = endpoint.map_err(refused)?;
    call(Syscall::CreateService {
        gate,
        target: service,
    })?;
    Ok(ReceiveGate::new(endpoint, SLOTS as u8, buffer))
}

/// Derives a part of memory, to grant it.
///
/// # Errors
/// The kernel's error.
pub fn derive(source: u16, target: u16, offset: u64, size: u64, rights: u8) -> Result<()> {
    let request = Syscall::DeriveMemory {
        source,
        target,
        offset,
        size,
        rights,
    };
    syscall::complete(&request).map_err(refused)
}

/// Takes back a capability that was derived for another activity; after success, no activity can use it any more.
///
/// # Errors
/// The kernel's error. A capability that no longer exists was taken back already.
pub fn revoke(selector: u16) -> Result<()> {
    match syscall::complete(&Syscall::Revoke { selector, keep: 0 }) {
        Ok(()) | Err(SyscallError::NoCapability | SyscallError::Gone) => Ok(()),
        Err(error) => Err(refused(error)),
    }
}
