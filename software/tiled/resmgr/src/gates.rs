//! Selectors and gates of a manager.
//!
//! Why it exists: every gate is first a capability and then an endpoint of an activity. What it deliberately does not know: the
//! description.

use crate::calls::{Failure, call};
use bulkhead_abi::syscall::{ANY_ENDPOINT, NO_SELECTOR, SEL_FREE, SEL_SHARED, Syscall};

/// Free selectors, given out in order.
pub struct Selectors(u16);

impl Selectors {
    /// All selectors except the first `used`, which the manager above has used.
    pub const fn new(used: u16) -> Self {
        Self(SEL_FREE + used)
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

    /// Access to the first bytes of a memory.
    pub fn derive(&mut self, source: u16, size: u64, rights: u8) -> Result<u16, Failure> {
        let target = self.next()?;
        let request = Syscall::DeriveMemory {
            source,
            target,
            offset: 0,
            size,
            rights,
        };
        call("create a memory gate", &request)?;
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

/// Makes a gate or memory usable by an activity; a receive gate needs the memory and offset of its buffer.
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
        endpoint: ANY_ENDPOINT,
    };
    call("activate a gate", &request).map(|[endpoint, ..]| endpoint as u16)
}

/// Makes a send gate usable again on the endpoint that an activity knows.
pub fn activate_again(gate: u16, activity: u16, endpoint: u16) -> Result<(), Failure> {
    let request = Syscall::Activate {
        gate,
        activity,
        memory: NO_SELECTOR,
        offset: 0,
        replies: 0,
        endpoint,
    };
    call("connect a client again", &request).map(|_| ())
}
