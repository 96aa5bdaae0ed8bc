//! Cache-management operations: they write lines to memory, invalidate them, fill them with zeros or fetch them ahead.
//!
//! Why it exists: where caches are not coherent, software uses these operations to move data between harts. An operation acts on its line
//! after all earlier accesses to that line (accesses to one line keep their order). It occupies a place in the store buffer until it is
//! complete, so a fence waits for it. It does not know which cache levels exist.

use super::Stop;
use super::bus::{Access, Bus, Managed, Management, Timing};
use super::core::{Core, Exception, Exit, Privilege, Purpose};
use super::isa::{Op, zicbo};
use super::load_store_queue::Action;
use super::mmu::access_fault;
use super::pmp::Need;
use super::trap::cause;
use crate::types::Tick;

/// Fields of the environment registers: what CBO.INVAL does, whether CBO.CLEAN and CBO.FLUSH may be executed, and whether CBO.ZERO
/// may.
mod environment {
    pub const INVALIDATE: u64 = 3 << 4;
    /// Value of the field: CBO.INVAL flushes.
    pub const INVALIDATE_FLUSHES: u64 = 1 << 4;
    pub const CLEAN_AND_FLUSH: u64 = 1 << 6;
    pub const ZERO: u64 = 1 << 7;
}

impl Core {
    /// The environment registers that apply in the current mode.
    fn environments(&self) -> impl Iterator<Item = u64> {
        let machine = (self.privilege != Privilege::Machine).then_some(self.csr.menvcfg);
        let supervisor = (self.privilege == Privilege::User).then_some(self.csr.senvcfg);
        machine.into_iter().chain(supervisor)
    }

    /// The effect of a management operation in the current mode; `None` if it may not be executed.
    fn management(&self, op: &Op) -> Option<Management> {
        use environment::*;
        let all = |bit: u64| self.environments().all(|register| register & bit != 0);
        match op.imm {
            zicbo::INVALIDATE => {
                let flushes = |register| register & INVALIDATE == INVALIDATE_FLUSHES;
                all(INVALIDATE).then(|| match self.environments().any(flushes) {
                    true => Management::Flush,
                    false => Management::Invalidate,
                })
            }
            zicbo::CLEAN => all(CLEAN_AND_FLUSH).then_some(Management::Clean),
            _ => all(CLEAN_AND_FLUSH).then_some(Management::Flush),
        }
    }

    /// Waits for tokens of a bandwidth regulator. A line that is filled with zeros is charged like a store. A line that is written back is
    /// charged when it leaves, as on an eviction, but stores that hit make it dirty again; so applications wait until they owe nothing.
    fn admit_block<B: Bus>(
        &mut self,
        bus: &mut B,
        line: u64,
        management: Option<Management>,
        offset: Tick,
    ) -> Result<(), Exit> {
        if management.is_none() {
            return self.admit(bus, line, Purpose::Store, offset);
        }
        if bus.regulates() && self.privilege != Privilege::Machine {
            let now = self.base + offset;
            let owed = bus.solvent(now);
            owed.map_err(|until| self.wait_for_tokens(now, until, offset, Purpose::Store))?;
        }
        Ok(())
    }

    /// CBO.INVAL, CBO.CLEAN, CBO.FLUSH and CBO.ZERO of the line that contains `address`.
    pub fn cache_block<B: Bus>(
        &mut self,
        bus: &mut B,
        op: &Op,
        bits: u64,
        address: u64,
    ) -> Result<(), Exit> {
        self.settle(bus);
        let illegal = Exit::Trap(Exception {
            cause: cause::ILLEGAL,
            value: bits,
        });
        let zero = op.imm == zicbo::ZERO;
        let management = match zero {
            true => {
                let allowed = |register: u64| register & environment::ZERO != 0;
                self.environments().all(allowed).then_some(None)
            }
            false => self.management(op).map(Some),
        };
        let management = management.ok_or(illegal)?;
        let offset = op.cycle as Tick * self.costs.cycle;
        let line = self.block_address(bus, address, zero, offset)?;
        if self.acquiring && self.after_acquire(offset) {
            return Err(self.refused);
        }
        let name = bus.line_name(line);
        let waits = self.late.iter().any(|late| late.line == name);
        if waits || self.ordering {
            self.ordering = true;
            self.wait_all(offset)?;
            self.ordering = false;
        }
        self.wait_store_room(1, offset)?;
        self.before_store(offset)?;
        self.admit_block(bus, line, management, offset)?;
        let now = self.base + offset;
        let Some(what) = management else {
            self.statistics.stores += 1;
            let (timing, _) = self.ask(bus, now, line, Access::Store);
            match timing {
                Timing::Pending(_) => self.later(bus, line, Action::Zero),
                _ => self.perform_found(bus, now, line, Action::Zero),
            }
            self.note_store(bus, timing);
            return Ok(());
        };
        match bus.manage(now, line, what) {
            Managed::At(timing) => {
                self.lines.forget();
                self.note_management(bus, timing);
                Ok(())
            }
            Managed::After(token) => {
                // The operation is repeated at that completion and no earlier.
                self.note_management(bus, Timing::Pending(token));
                self.ordering = true;
                Err(Exit::Suspend(Stop::Pending(token)))
            }
        }
    }

    /// Physical address of the line of a cache-block operation. It needs the right to read; zeroing needs the right to write. All faults
    /// are store faults with the address of the operation.
    fn block_address<B: Bus>(
        &mut self,
        bus: &mut B,
        address: u64,
        zero: bool,
        offset: Tick,
    ) -> Result<u64, Exit> {
        let need = if zero { Need::Write } else { Need::Read };
        let fault = |cause| {
            Exit::Trap(Exception {
                cause,
                value: address,
            })
        };
        let bytes = !self.line_mask + 1;
        let start = address & self.line_mask;
        let physical = match self.translate(bus, start, bytes, need, offset) {
            Ok(physical) => physical,
            Err(Exit::Trap(exception)) if exception.cause == cause::LOAD_PAGE => {
                return Err(fault(cause::STORE_PAGE));
            }
            Err(Exit::Trap(exception)) if exception.cause == cause::LOAD_ACCESS => {
                return Err(fault(cause::STORE_ACCESS));
            }
            Err(Exit::Trap(exception)) => return Err(fault(exception.cause)),
            Err(suspended) => return Err(suspended),
        };
        // Zeros are stored into a line of a cache.
        let uncached = zero && self.is_uncached();
        if uncached || bus.is_device(physical) || !bus.allows(physical, bytes, zero) {
            return Err(fault(access_fault(Need::Write)));
        }
        Ok(physical)
    }

    /// A prefetch hint. It has no effect if the page is not known, if it would have to wait for tokens, or if no miss register is free.
    #[cold]
    pub fn prefetch<B: Bus>(&mut self, bus: &mut B, op: &Op, base: u64) {
        self.settle(bus);
        let address = base.wrapping_add(zicbo::hint_offset(op));
        let fetch = zicbo::is_for_fetch(op);
        let need = if fetch { Need::Execute } else { Need::Read };
        if let Some(physical) = self.mmu.quick(need, address)
            && !bus.regulates()
        {
            let now = self.base + op.cycle as Tick * self.costs.cycle;
            bus.prefetch(now, physical & self.line_mask, fetch);
            // The prefetch may have evicted a line from a first-level cache.
            self.forget_lines();
            self.ask_limit(bus);
        }
    }
}
