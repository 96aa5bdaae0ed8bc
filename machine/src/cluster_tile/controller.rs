//! The registers of a cluster's capacity controller (CBQRI 1.0).
//!
//! Why it exists: harts see registers; an operation travels to the second level, which performs it ([`super::capacity`]), and back. So
//! `BUSY` is 1 for as long as that takes. While it is, writes of the register, and of the mask for an allocation, change nothing. It
//! deliberately does not know: limits, counters, lines.

use super::capacity::{Control, Operation, Outcome};
use super::messages::Port;
use crate::config::CapacityConfig;
use crate::types::Tick;
use bulkhead_abi::cbqri::*;

/// One control register.
#[derive(Clone, Copy, Debug, Default)]
struct Register {
    /// The fields that software wrote last.
    written: u64,
    /// The status of the last operation that has ended.
    status: u64,
    /// An operation is under way.
    busy: bool,
    /// It ends at this tick, in this way.
    ends: Option<(Tick, Outcome)>,
}

/// See the module's documentation.
#[derive(Debug)]
pub(super) struct Controller {
    capabilities: u64,
    /// Bit i: the hart at port i reaches the registers.
    programmers: u8,
    /// Bit i: way i exists.
    ways: u64,
    mask: u64,
    counter: u64,
    registers: [Register; 2],
}

/// Fields of the control registers that software can write.
fn writable(control: Control) -> u64 {
    let identifier = ((1 << IDENTIFIER_BITS) - 1) << CONTROL_IDENTIFIER;
    let common = CONTROL_OPERATION | 7 << CONTROL_TYPE | identifier;
    match control {
        Control::Allocation => common,
        Control::Monitoring => common | 0xFF << MONITOR_EVENT | MONITOR_TYPE_VALID,
    }
}

impl Controller {
    /// Idle, with `ways` ways.
    pub fn new(config: &CapacityConfig, ways: u32) -> Self {
        let blocks = u64::from(ways) << CAPABILITIES_BLOCKS;
        Self {
            capabilities: CAPABILITIES_VERSION | blocks | CAPABILITIES_FLUSH,
            programmers: config.programmers,
            ways: u64::MAX >> (64 - ways),
            mask: 0,
            counter: 0,
            registers: [Register::default(); 2],
        }
    }

    /// The register of an access, and the first bit that it accesses. `None`: nothing answers.
    fn place(&self, port: Port, offset: u64, bytes: u8) -> Option<(u64, u32)> {
        let reaches = self.programmers >> port & 1 != 0;
        let fits = matches!(bytes, 4 | 8) && offset.is_multiple_of(bytes.into());
        (reaches && fits && offset < CC_END).then_some((offset & !7, (offset as u32 & 7) * 8))
    }

    /// Takes over the results of operations that have ended by now.
    fn settle(&mut self, now: Tick) {
        for register in &mut self.registers {
            let Some((_, outcome)) = register.ends.filter(|(at, _)| *at <= now) else {
                continue;
            };
            (register.busy, register.ends) = (false, None);
            register.status = outcome.status;
            if let Some(value) = outcome.value {
                match outcome.register {
                    Control::Monitoring => self.counter = value,
                    Control::Allocation => self.mask = value,
                }
            }
        }
    }

    /// A hart reads. `None`: nothing answers.
    pub fn read(&mut self, now: Tick, port: Port, offset: u64, bytes: u8) -> Option<u64> {
        let (register, shift) = self.place(port, offset, bytes)?;
        self.settle(now);
        let control = |control: Control| {
            let register = &self.registers[control as usize];
            let busy = if register.busy { CONTROL_BUSY } else { 0 };
            register.written | register.status << CONTROL_STATUS | busy
        };
        let value = match register {
            CC_CAPABILITIES => self.capabilities,
            CC_MON_CTL => control(Control::Monitoring),
            CC_MON_CTR_VAL => self.counter,
            CC_ALLOC_CTL => control(Control::Allocation),
            CC_BLOCK_MASK => self.mask,
            // There are no limits of single lines.
            _ => 0,
        };
        Some(match bytes {
            4 => value >> shift & 0xFFFF_FFFF,
            _ => value,
        })
    }

    /// A hart writes. Returns the operation that begins. `None`: nothing answers.
    pub fn write(
        &mut self,
        now: Tick,
        port: Port,
        (offset, bytes): (u64, u8),
        value: u64,
    ) -> Option<Option<Operation>> {
        let (register, shift) = self.place(port, offset, bytes)?;
        self.settle(now);
        let part = match bytes {
            4 => 0xFFFF_FFFF << shift,
            _ => u64::MAX,
        };
        let value = value << shift;
        let control = match register {
            CC_MON_CTL => Control::Monitoring,
            CC_ALLOC_CTL => Control::Allocation,
            CC_BLOCK_MASK => {
                if !self.registers[Control::Allocation as usize].busy {
                    self.mask = (self.mask & !part | value & part) & self.ways;
                }
                return Some(None);
            }
            _ => return Some(None),
        };
        let mask = self.mask;
        let register = &mut self.registers[control as usize];
        let fields = writable(control);
        // All fields that can be written are in the lower half.
        if register.busy || part & fields == 0 {
            return Some(None);
        }
        register.written = value & fields;
        register.busy = true;
        let written = register.written;
        Some(Some(Operation {
            register: control,
            code: written & CONTROL_OPERATION,
            at: written >> CONTROL_TYPE & 7,
            identifier: written >> CONTROL_IDENTIFIER & ((1 << IDENTIFIER_BITS) - 1),
            event: match control {
                Control::Monitoring => written >> MONITOR_EVENT & 0xFF,
                Control::Allocation => 0,
            },
            at_valid: written & MONITOR_TYPE_VALID != 0,
            mask,
        }))
    }

    /// The operation under way ends at `at`.
    pub fn end(&mut self, at: Tick, outcome: Outcome) {
        let register = &mut self.registers[outcome.register as usize];
        assert!(
            register.busy && register.ends.is_none(),
            "no operation is under way: {outcome:?}"
        );
        register.ends = Some((at, outcome));
    }
}
