//! Selectors and gates of a manager.
//!
//! Why it exists: every gate is a capability first and an endpoint of somebody then. What it deliberately does not know: the
//! description.

use crate::calls::{Failure, call};
use bulkhead_abi::syscall::{NO_SELECTOR, SEL_FREE, SEL_SHARED, Syscall, SyscallError};
use bulkhead_lib::{syscall, time};

/// Free selectors, given out in order.
pub struct Selectors(u16);

impl Selectors {
    /// All of them.
    pub const fn new() -> Self {
        Self(SEL_FREE)
    }

    /// The next one.
    pub fn next(&mut self) -> Result<u16, Failure> {
        if self.0 >= SEL_SHARED {
            return Err(Failure::Selectors);
        }
        self.0 += 1;
        Ok(self.0 - 1)
    }

    /// A receive gate.
    pub fn receive(&mut self, slots: u8, slot_size: u16) -> Result<u16, Failure> {
        let target = self.next()?;
        let request = Syscall::CreateReceive {
            target,
            slots,
            slot_size,
        };
        call("create a receive gate", &request)?;
        Ok(target)
    }

    /// A gate that sends to a receive gate.
    pub fn send(&mut self, source: u16, label: u64, credits: u8) -> Result<u16, Failure> {
        let target = self.next()?;
        let request = Syscall::CreateSend {
            source,
            target,
            label,
            credits,
        };
        call("create a send gate", &request)?;
        Ok(target)
    }

    /// A piece of memory.
    pub fn cut(&mut self, source: u16, size: u64) -> Result<u16, Failure> {
        let target = self.next()?;
        let request = Syscall::CutMemory {
            source,
            target,
            size,
        };
        call("give memory", &request)?;
        Ok(target)
    }
}

/// Time between two looks whether a receiver below another manager is there, in nanoseconds, and how many looks are taken.
const RETRY: u64 = 20_000;
const RETRIES: u32 = 10_000;

/// Makes a gate usable by an activity. A receiver that another manager has not made active yet is waited for.
pub fn activate(
    gate: u16,
    activity: u16,
    buffer: Option<(u16, u64)>,
    replies: bool,
) -> Result<u16, Failure> {
    let (memory, offset) = buffer.unwrap_or((NO_SELECTOR, 0));
    let request = Syscall::Activate {
        gate,
        activity,
        memory,
        offset,
        replies: replies.into(),
    };
    let mut retries = 0;
    loop {
        match syscall::call(&request) {
            Ok([endpoint, ..]) => return Ok(endpoint as u16),
            Err(SyscallError::WrongState) if buffer.is_none() && retries < RETRIES => {
                retries += 1;
                time::sleep_until(time::now() + RETRY);
            }
            Err(error) => return Err(Failure::Call("activate a gate", error)),
        }
    }
}
