//! Loads, stores and atomics: address translation, functional access, and what it does to time.
//!
//! An operation may suspend only before it has any effect, so that it can be executed again: first translation, then
//! room for the access, then the access itself.

use super::Stop;
use super::bus::{Access, Bus, Timing};
use super::core::{Core, Exception, Exit, Purpose};
use super::isa::{Op, a};
use super::mmu::access_fault;
use super::pmp::Need;
use super::trap::cause;
use crate::types::Tick;

/// An access waits for tokens ([`Core::admit`]).
const TOKENS: Exit = Exit::Suspend(Stop::Tokens);

impl Core {
    fn fault(need: Need, address: u64) -> Exit {
        Exit::Trap(Exception {
            cause: access_fault(need),
            value: address,
        })
    }

    /// Loads `BYTES` bytes, zero-extended.
    #[inline(always)]
    pub fn load<B: Bus, const BYTES: u64>(
        &mut self,
        bus: &mut B,
        op: &Op,
        address: u64,
    ) -> Result<u64, Exit> {
        match self.mmu.quick_place(Need::Read, address) {
            Some(quick) if address & (BYTES - 1) == 0 => {
                let physical = quick.physical;
                let Ok(value) = bus.read_place(quick.memory, quick.offset, BYTES as u8) else {
                    return Err(Self::fault(Need::Read, address));
                };
                if !self.lines.load_hits(physical) && !self.time_load(bus, op, physical) {
                    return Err(TOKENS);
                }
                self.statistics.loads += 1;
                Ok(value)
            }
            _ => self.load_slowly(bus, op, address, BYTES),
        }
    }

    /// Stores the low `BYTES` bytes of a value.
    #[inline(always)]
    pub fn store<B: Bus, const BYTES: u64>(
        &mut self,
        bus: &mut B,
        op: &Op,
        address: u64,
        value: u64,
    ) -> Result<(), Exit> {
        match self.mmu.quick_place(Need::Write, address) {
            Some(quick) if address & (BYTES - 1) == 0 => {
                let physical = quick.physical;
                if self.stores.is_full() {
                    self.wait_store_room(1, op.cycle as Tick * self.costs.cycle)?;
                }
                let hits = self.lines.store_hits(physical);
                if !hits && bus.regulates() && !self.admit_store(bus, op, physical) {
                    return Err(TOKENS);
                }
                if bus
                    .write_place(quick.memory, quick.offset, BYTES as u8, value)
                    .is_err()
                {
                    return Err(Self::fault(Need::Write, address));
                }
                self.statistics.stores += 1;
                if !hits {
                    self.time_store(bus, op, physical);
                }
                Ok(())
            }
            _ => self.store_slowly(bus, op, address, BYTES, value),
        }
    }

    /// Asks for the timing of a load and lets its destination wait if it is not a hit. False: it waits for tokens first.
    #[inline(never)]
    fn time_load<B: Bus>(&mut self, bus: &mut B, op: &Op, physical: u64) -> bool {
        let offset = op.cycle as Tick * self.costs.cycle;
        match self.lines.timing(self.base + offset, physical, false) {
            Some(Timing::Hit) => {}
            Some(timing) => self.note_load(bus, timing, op.masks().1),
            None => {
                if bus.regulates() && self.admit(bus, physical, Purpose::Load, offset).is_err() {
                    return false;
                }
                self.time_admitted(bus, op, physical, Access::Load);
            }
        }
        true
    }

    /// Asks for the timing of a load (or atomic access) that waits for no tokens.
    #[inline]
    fn time_admitted<B: Bus>(&mut self, bus: &mut B, op: &Op, physical: u64, access: Access) {
        let now = self.base + op.cycle as Tick * self.costs.cycle;
        let timing = bus.data(now, physical, access);
        self.lines.note(physical, timing, false);
        if timing != Timing::Hit {
            self.note_load(bus, timing, op.masks().1);
        }
    }

    /// Before a store that does not surely hit writes anything. False: it waits for tokens.
    #[cold]
    #[inline(never)]
    fn admit_store<B: Bus>(&mut self, bus: &mut B, op: &Op, physical: u64) -> bool {
        let offset = op.cycle as Tick * self.costs.cycle;
        let known = self.lines.timing(self.base + offset, physical, true);
        known.is_some() || self.admit(bus, physical, Purpose::Store, offset).is_ok()
    }

    /// Asks for the timing of a store and gives it a place in the store buffer if it is not a hit.
    #[inline(never)]
    fn time_store<B: Bus>(&mut self, bus: &mut B, op: &Op, physical: u64) {
        let now = self.base + op.cycle as Tick * self.costs.cycle;
        let timing = self.lines.timing(now, physical, true).unwrap_or_else(|| {
            let timing = bus.data(now, physical, Access::Store);
            self.lines.note(physical, timing, true);
            timing
        });
        if timing != Timing::Hit {
            self.note_store(bus, timing);
        }
    }

    /// Physical addresses of an access that may be misaligned: the second is that of the first byte in the next page, if
    /// the access reaches there.
    fn translate_range<B: Bus>(
        &mut self,
        bus: &mut B,
        address: u64,
        bytes: u64,
        need: Need,
        offset: Tick,
    ) -> Result<(u64, Option<u64>), Exit> {
        let in_page = 0x1000 - (address & 0xfff);
        if bytes <= in_page {
            return Ok((self.translate(bus, address, bytes, need, offset)?, None));
        }
        let first = self.translate(bus, address, in_page, need, offset)?;
        let second = self.translate(
            bus,
            address.wrapping_add(in_page),
            bytes - in_page,
            need,
            offset,
        )?;
        Ok((first, Some(second)))
    }

    #[cold]
    #[inline(never)]
    fn load_slowly<B: Bus>(
        &mut self,
        bus: &mut B,
        op: &Op,
        address: u64,
        bytes: u64,
    ) -> Result<u64, Exit> {
        let offset = op.cycle as Tick * self.costs.cycle;
        let (first, second) = self.translate_range(bus, address, bytes, Need::Read, offset)?;
        if bus.is_device(first) || second.is_some_and(|second| bus.is_device(second)) {
            if address & (bytes - 1) != 0 {
                return Err(Exit::Trap(Exception {
                    cause: cause::LOAD_MISALIGNED,
                    value: address,
                }));
            }
            return self.device_load(bus, first, address, bytes, offset);
        }
        if address & (bytes - 1) == 0 {
            let value = bus
                .read(first, bytes as u8)
                .map_err(|_| Self::fault(Need::Read, address))?;
            if !self.lines.load_hits(first) && !self.time_load(bus, op, first) {
                return Err(TOKENS);
            }
            self.statistics.loads += 1;
            return Ok(value);
        }
        let mut value = 0;
        let in_page = 0x1000 - (address & 0xfff);
        for i in 0..bytes {
            let physical = byte_address(first, second, in_page, i);
            let byte = bus
                .read(physical, 1)
                .map_err(|_| Self::fault(Need::Read, address.wrapping_add(i)))?;
            value |= byte << (8 * i);
        }
        let last = byte_address(first, second, in_page, bytes - 1);
        let crosses = last & self.line_mask != first & self.line_mask;
        self.admit_both(bus, first, crosses.then_some(last), Purpose::Load, offset)?;
        self.statistics.loads += 1;
        // One access for each byte, of which only those that begin a line can miss.
        self.base += (bytes - 1) * self.costs.cycle;
        self.time_admitted(bus, op, first, Access::Load);
        if crosses {
            self.time_admitted(bus, op, last, Access::Load);
        }
        Ok(value)
    }

    #[cold]
    #[inline(never)]
    fn store_slowly<B: Bus>(
        &mut self,
        bus: &mut B,
        op: &Op,
        address: u64,
        bytes: u64,
        value: u64,
    ) -> Result<(), Exit> {
        let offset = op.cycle as Tick * self.costs.cycle;
        let (first, second) = self.translate_range(bus, address, bytes, Need::Write, offset)?;
        if bus.is_device(first) || second.is_some_and(|second| bus.is_device(second)) {
            if address & (bytes - 1) != 0 {
                return Err(Exit::Trap(Exception {
                    cause: cause::STORE_MISALIGNED,
                    value: address,
                }));
            }
            return self.device_store(bus, first, address, bytes, value, offset);
        }
        let aligned = address & (bytes - 1) == 0;
        self.wait_store_room(if aligned { 1 } else { 2 }, offset)?;
        if aligned {
            let regulated = bus.regulates() && !self.lines.store_hits(first);
            if regulated && !self.admit_store(bus, op, first) {
                return Err(TOKENS);
            }
            bus.write(first, bytes as u8, value)
                .map_err(|_| Self::fault(Need::Write, address))?;
            self.statistics.stores += 1;
            if !self.lines.store_hits(first) {
                self.time_store(bus, op, first);
            }
            return Ok(());
        }
        let in_page = 0x1000 - (address & 0xfff);
        let last = byte_address(first, second, in_page, bytes - 1);
        let crosses = last & self.line_mask != first & self.line_mask;
        self.admit_both(bus, first, crosses.then_some(last), Purpose::Store, offset)?;
        for i in 0..bytes {
            let physical = byte_address(first, second, in_page, i);
            bus.write(physical, 1, value >> (8 * i))
                .map_err(|_| Self::fault(Need::Write, address.wrapping_add(i)))?;
        }
        self.statistics.stores += 1;
        self.base += (bytes - 1) * self.costs.cycle;
        self.time_store(bus, op, first);
        if crosses {
            self.time_store(bus, op, last);
        }
        Ok(())
    }

    fn before_device(&self, offset: Tick) -> Result<Tick, Exit> {
        let now = self.base + offset;
        if now >= self.horizon {
            Err(Exit::Suspend(Stop::Device))
        } else {
            Ok(now)
        }
    }

    fn after_device<B: Bus>(&mut self, bus: &B, extra: Tick) {
        let cost = self.costs.mmio + extra;
        self.base += cost;
        self.statistics.stall_device += cost;
        self.statistics.device_accesses += 1;
        self.check_epoch(bus);
        self.ask_limit(bus);
    }

    fn device_load<B: Bus>(
        &mut self,
        bus: &mut B,
        physical: u64,
        address: u64,
        bytes: u64,
        offset: Tick,
    ) -> Result<u64, Exit> {
        let now = self.before_device(offset)?;
        let read = bus
            .device_read(now, physical, bytes as u8)
            .map_err(|_| Self::fault(Need::Read, address))?;
        self.statistics.loads += 1;
        self.after_device(bus, read.extra);
        let unused = 64 - 8 * bytes;
        Ok(read.value << unused >> unused)
    }

    fn device_store<B: Bus>(
        &mut self,
        bus: &mut B,
        physical: u64,
        address: u64,
        bytes: u64,
        value: u64,
        offset: Tick,
    ) -> Result<(), Exit> {
        let now = self.before_device(offset)?;
        let unused = 64 - 8 * bytes;
        let write = bus
            .device_write(now, physical, bytes as u8, value << unused >> unused)
            .map_err(|_| Self::fault(Need::Write, address))?;
        self.statistics.stores += 1;
        self.after_device(bus, write.extra);
        if write.sleep {
            self.mode = super::core::Mode::Sleeping;
        }
        Ok(())
    }

    fn atomic_address<B: Bus>(
        &mut self,
        bus: &mut B,
        op: &Op,
        address: u64,
        need: Need,
    ) -> Result<u64, Exit> {
        let bytes = a::bytes(op) as u64;
        if address & (bytes - 1) != 0 {
            let cause = if need == Need::Read {
                cause::LOAD_MISALIGNED
            } else {
                cause::STORE_MISALIGNED
            };
            return Err(Exit::Trap(Exception {
                cause,
                value: address,
            }));
        }
        let physical = match self.mmu.quick(need, address) {
            Some(physical) => physical,
            None => self.translate(
                bus,
                address,
                bytes,
                need,
                op.cycle as Tick * self.costs.cycle,
            )?,
        };
        // Devices have no atomic accesses.
        if bus.is_device(physical) {
            Err(Self::fault(need, address))
        } else {
            Ok(physical)
        }
    }

    fn admit_atomic<B: Bus>(&mut self, bus: &mut B, op: &Op, physical: u64) -> Result<(), Exit> {
        if !bus.regulates() {
            return Ok(());
        }
        let offset = op.cycle as Tick * self.costs.cycle;
        self.admit(bus, physical, Purpose::Load, offset)
    }

    /// LR. Its reservation is the address and the value: a store-conditional succeeds if the value is still there.
    pub fn load_reserved<B: Bus>(
        &mut self,
        bus: &mut B,
        op: &Op,
        address: u64,
    ) -> Result<(), Exit> {
        let physical = self.atomic_address(bus, op, address, Need::Read)?;
        self.admit_atomic(bus, op, physical)?;
        let value = bus
            .read(physical, a::bytes(op))
            .map_err(|_| Self::fault(Need::Read, address))?;
        self.statistics.loads += 1;
        self.time_admitted(bus, op, physical, Access::Atomic);
        self.reservation = Some((physical, value));
        self.x[op.rd as usize & 63] = extend(op, value);
        Ok(())
    }

    /// SC.
    pub fn store_conditional<B: Bus>(
        &mut self,
        bus: &mut B,
        op: &Op,
        address: u64,
        value: u64,
    ) -> Result<(), Exit> {
        let physical = self.atomic_address(bus, op, address, Need::Write)?;
        let bytes = a::bytes(op);
        let now = bus
            .read(physical, bytes)
            .map_err(|_| Self::fault(Need::Write, address))?;
        let success = self.reservation == Some((physical, now));
        if success {
            self.admit_atomic(bus, op, physical)?;
            bus.write(physical, bytes, value)
                .map_err(|_| Self::fault(Need::Write, address))?;
            self.statistics.stores += 1;
            self.time_admitted(bus, op, physical, Access::Atomic);
        }
        self.reservation = None;
        self.x[op.rd as usize & 63] = !success as u64;
        Ok(())
    }

    /// An atomic read-modify-write.
    pub fn atomic<B: Bus>(
        &mut self,
        bus: &mut B,
        op: &Op,
        address: u64,
        operand: u64,
    ) -> Result<(), Exit> {
        let physical = self.atomic_address(bus, op, address, Need::Write)?;
        self.admit_atomic(bus, op, physical)?;
        let bytes = a::bytes(op);
        let fault = |_| Self::fault(Need::Write, address);
        let old = extend(op, bus.read(physical, bytes).map_err(fault)?);
        let new = a::combine(op, old, extend(op, operand));
        bus.write(physical, bytes, new).map_err(fault)?;
        self.statistics.loads += 1;
        self.statistics.stores += 1;
        self.time_admitted(bus, op, physical, Access::Atomic);
        self.x[op.rd as usize & 63] = old;
        Ok(())
    }
}

fn byte_address(first: u64, second: Option<u64>, in_page: u64, index: u64) -> u64 {
    match second {
        Some(second) if index >= in_page => second + (index - in_page),
        _ => first + index,
    }
}

/// A value of the operation's width as it stands in a register.
fn extend(op: &Op, value: u64) -> u64 {
    if a::bytes(op) == 4 {
        value as i32 as i64 as u64
    } else {
        value
    }
}
