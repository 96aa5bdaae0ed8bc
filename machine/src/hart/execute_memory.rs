//! Loads, stores and atomics: address translation, the line, and the time that each takes.
//!
//! An operation may suspend only before it has any effect, so that it can be executed again. The order is translation, room for
//! the access, the line, and finally the access itself. If the line is absent, the access is performed when it arrives
//! (`load_store_queue.rs`).

use super::Stop;
use super::bus::{Access, Bus, Place, Timing};
use super::core::{Core, Exception, Exit, Purpose};
use super::isa::{Kind, Op, a};
use super::load_store_queue::{Action, LineBytes};
use super::mmu::{MemoryType, access_fault};
use super::pmp::Need;
use super::trap::cause;
use crate::types::Tick;

impl Core {
    pub(super) fn fault(need: Need, address: u64) -> Exit {
        Exit::Trap(Exception {
            cause: access_fault(need),
            value: address,
        })
    }

    /// Loads `BYTES` bytes, zero-extended. If the destination waits, the result is not the value yet.
    #[inline(always)]
    pub fn load<B: Bus, const BYTES: u64>(
        &mut self,
        bus: &mut B,
        op: &Op,
        address: u64,
    ) -> Result<u64, Exit> {
        match self.mmu.quick(Need::Read, address) {
            Some(physical) if address & (BYTES - 1) == 0 => {
                if B::COHERENT {
                    self.before_store(op.cycle as Tick * self.costs.cycle)?;
                }
                if let Some(place) = self.lines.load_place(physical) {
                    debug_assert!(bus.is_at(physical, place), "{physical:#x}: {place:#x}");
                    self.statistics.loads += 1;
                    return Ok(bus.read_place(place, BYTES as u8));
                }
                if self.lines.loads_before(physical) {
                    let place = self.lines.swap(physical);
                    debug_assert!(bus.is_at(physical, place), "{physical:#x}: {place:#x}");
                    self.statistics.loads += 1;
                    return Ok(bus.read_place(place, BYTES as u8));
                }
                let now = self.base + op.cycle as Tick * self.costs.cycle;
                if let Some((at, place)) = self.lines.coming(now, physical, false)
                    && !self.acquiring
                {
                    debug_assert!(bus.is_at(physical, place), "{physical:#x}: {place:#x}");
                    return Ok(self.load_coming::<B, BYTES>(bus, op, at, place));
                }
                let value = self.load_line::<B, BYTES>(bus, op, physical);
                value.ok_or(self.refused)
            }
            _ => self.load_slowly::<B, BYTES>(bus, op, address),
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
        let offset = op.cycle as Tick * self.costs.cycle;
        match self.mmu.quick(Need::Write, address) {
            Some(physical) if address & (BYTES - 1) == 0 => {
                if self.stores.is_full() {
                    self.wait_store_room(1, offset)?;
                }
                self.before_store(offset)?;
                if !B::EVERY_ACCESS
                    && let Some(place) = self.lines.store_place(physical)
                {
                    debug_assert!(bus.is_at(physical, place), "{physical:#x}: {place:#x}");
                    self.statistics.stores += 1;
                    bus.write_place(place, BYTES as u8, value);
                    return Ok(());
                }
                // With a bandwidth regulator, it may have to wait for tokens.
                if !B::EVERY_ACCESS && self.lines.stores_before(physical) && !bus.regulates() {
                    let place = self.lines.swap(physical);
                    debug_assert!(bus.is_at(physical, place), "{physical:#x}: {place:#x}");
                    self.statistics.stores += 1;
                    bus.write_place(place, BYTES as u8, value);
                    return Ok(());
                }
                if !B::EVERY_ACCESS
                    && let Some((at, place)) = self.lines.coming(self.base + offset, physical, true)
                    && !self.acquiring
                {
                    debug_assert!(bus.is_at(physical, place), "{physical:#x}: {place:#x}");
                    self.store_coming::<B, BYTES>(bus, at, place, value);
                    return Ok(());
                }
                match self.store_line::<B, BYTES>(bus, op, physical, value) {
                    true => Ok(()),
                    false => Err(self.refused),
                }
            }
            _ => self.store_slowly::<B, BYTES>(bus, op, address, value),
        }
    }

    /// A store does not become visible before its time: blocks may run beyond the horizon, but their stores may not.
    #[inline(always)]
    pub(super) fn before_store(&self, offset: Tick) -> Result<(), Exit> {
        if self.base + offset < self.horizon {
            Ok(())
        } else {
            Err(Exit::Suspend(Stop::Horizon))
        }
    }

    /// An aligned load whose line may be absent. `None`: it cannot be performed now; `refused` says why.
    #[inline(never)]
    fn load_line<B: Bus, const BYTES: u64>(
        &mut self,
        bus: &mut B,
        op: &Op,
        physical: u64,
    ) -> Option<u64> {
        let offset = op.cycle as Tick * self.costs.cycle;
        if self.acquiring && self.after_acquire(offset) {
            return None;
        }
        if (B::EVERY_ACCESS || B::COHERENT)
            && let Err(exit) = self.before_store(offset)
        {
            self.refused = exit;
            return None;
        }
        let (timing, place) = match self.known_line(bus, self.base + offset, physical, false) {
            Some(known) => known,
            None => {
                if bus.regulates() && self.refuses(bus, physical, Purpose::Load, offset) {
                    return None;
                }
                bus.instruction(self.pc.wrapping_add(op.offset.into()));
                self.ask(bus, self.base + offset, physical, Access::Load)
            }
        };
        self.statistics.loads += 1;
        if timing != Timing::Hit {
            self.note_load(bus, timing, op.load_destination());
            if let Timing::Pending(_) = timing {
                self.later(bus, physical, Action::Load(*op));
                return Some(0);
            }
        }
        Some(bus.read_place(place, BYTES as u8))
    }

    /// An aligned store whose line may be absent. False: it cannot be performed now; `refused` says why.
    #[inline(never)]
    fn store_line<B: Bus, const BYTES: u64>(
        &mut self,
        bus: &mut B,
        op: &Op,
        physical: u64,
        value: u64,
    ) -> bool {
        let offset = op.cycle as Tick * self.costs.cycle;
        if self.acquiring && self.after_acquire(offset) {
            return false;
        }
        let now = self.base + offset;
        if bus.regulates()
            && self.lines.timing(now, physical, true).is_none()
            && self.refuses(bus, physical, Purpose::Store, offset)
        {
            return false;
        }
        self.statistics.stores += 1;
        self.put_store(bus, op, physical, BYTES as u8, value);
        true
    }

    /// Whether an access must wait for tokens; if so, `refused` says until when.
    #[cold]
    fn refuses<B: Bus>(
        &mut self,
        bus: &mut B,
        physical: u64,
        purpose: Purpose,
        offset: Tick,
    ) -> bool {
        let admitted = self.admit(bus, physical, purpose, offset);
        admitted.map_err(|exit| self.refused = exit).is_err()
    }

    /// A store that waits for nothing else. Writes into the line, or leaves the data in the store buffer.
    #[inline(always)]
    fn put_store<B: Bus>(&mut self, bus: &mut B, op: &Op, physical: u64, bytes: u8, value: u64) {
        let now = self.base + op.cycle as Tick * self.costs.cycle;
        let timing = match self.known_line(bus, now, physical, true) {
            Some((timing, place)) => {
                // The line is dirty, though it may be on its way.
                bus.write_place(place, bytes, value);
                timing
            }
            None => self.ask_to_store(bus, op, physical, bytes, value),
        };
        self.note_store(bus, timing);
    }

    /// The same, if the line must be asked for.
    #[inline(never)]
    fn ask_to_store<B: Bus>(
        &mut self,
        bus: &mut B,
        op: &Op,
        physical: u64,
        bytes: u8,
        value: u64,
    ) -> Timing {
        let now = self.base + op.cycle as Tick * self.costs.cycle;
        bus.instruction(self.pc.wrapping_add(op.offset.into()));
        let (timing, place) = self.ask(bus, now, physical, Access::Store);
        match timing {
            Timing::Pending(_) => self.later(bus, physical, Action::Store(bytes, value)),
            _ => bus.store(now, physical, place, bytes, value),
        }
        timing
    }

    /// An operation with acquire semantics waits for its line, and no later access may pass it. Returns whether it is still
    /// waiting; `refused` says for what.
    #[cold]
    pub(super) fn after_acquire(&mut self, offset: Tick) -> bool {
        let waited = self.wait_loads(offset);
        self.acquiring = waited.map_err(|exit| self.refused = exit).is_err();
        self.acquiring
    }

    /// Asks for a line; if it is present, performs the earlier accesses that wait for it.
    #[inline(always)]
    pub(super) fn ask<B: Bus>(
        &mut self,
        bus: &mut B,
        now: Tick,
        physical: u64,
        access: Access,
    ) -> (Timing, Place) {
        self.settle(bus);
        let timing = bus.data(now, physical, access);
        if bus.fetched_ahead() {
            self.forget_ahead(bus);
        }
        let write = access == Access::Store;
        if let Timing::Pending(_) = timing {
            self.lines.note(physical, timing, 0, write, false);
            return (timing, 0);
        }
        let place = bus.place(physical, write);
        if !B::EVERY_ACCESS && bus.remembers(physical) {
            let in_turn = bus.lines_in_turn();
            self.lines.note(physical, timing, place, write, in_turn);
        }
        if !self.late.is_empty() {
            self.perform_there(bus, now, physical);
        }
        (timing, place)
    }

    /// Lines were fetched ahead: others may have left the data cache, and packets may be in transit. (For a fetch, none have left it yet.)
    #[cold]
    #[inline(never)]
    pub(super) fn forget_ahead<B: Bus>(&mut self, bus: &mut B) {
        self.settle(bus);
        self.lines.forget();
        self.ask_limit(bus);
    }

    /// Performs the accesses that wait for the line of `physical`, which is present.
    #[cold]
    pub fn perform_there<B: Bus>(&mut self, bus: &mut B, now: Tick, physical: u64) {
        let line = physical & self.line_mask;
        let name = bus.line_name(line);
        self.perform_line(name, &mut Found { bus, now, line });
    }

    /// Performs one access whose line is present.
    pub(super) fn perform_found<B: Bus>(
        &mut self,
        bus: &mut B,
        now: Tick,
        physical: u64,
        action: Action,
    ) {
        let line = physical & self.line_mask;
        let mut found = Found { bus, now, line };
        self.perform(physical - line, physical, action, &mut found);
    }

    /// Physical addresses of an access that may be misaligned: of its first byte and, if it reaches into the next page, of the
    /// first byte there.
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
        let memory_type = self.memory_type;
        let second = self.translate(
            bus,
            address.wrapping_add(in_page),
            bytes - in_page,
            need,
            offset,
        )?;
        self.memory_type = self.memory_type.max(memory_type);
        Ok((first, Some(second)))
    }

    #[cold]
    #[inline(never)]
    fn load_slowly<B: Bus, const BYTES: u64>(
        &mut self,
        bus: &mut B,
        op: &Op,
        address: u64,
    ) -> Result<u64, Exit> {
        self.settle(bus);
        let bytes = BYTES;
        let offset = op.cycle as Tick * self.costs.cycle;
        let (first, second) = self.translate_range(bus, address, bytes, Need::Read, offset)?;
        let device = bus.is_device(first) || second.is_some_and(|second| bus.is_device(second));
        if device || self.is_uncached() {
            if address & (bytes - 1) != 0 {
                return Err(Exit::Trap(Exception {
                    cause: cause::LOAD_MISALIGNED,
                    value: address,
                }));
            }
            if !device {
                Self::check_range(bus, address, (first, None), bytes, Need::Read)?;
            }
            if !device || bus.is_remote(first, false) {
                return self.remote_load(bus, op, first, address, bytes as u8);
            }
            return self.device_load(bus, first, address, bytes, offset);
        }
        let in_page = 0x1000 - (address & 0xfff);
        Self::check_range(bus, address, (first, second), bytes, Need::Read)?;
        if address & (bytes - 1) == 0 {
            let value = self.load_line::<B, BYTES>(bus, op, first);
            return value.ok_or(self.refused);
        }
        if self.acquiring && self.after_acquire(offset) {
            return Err(self.refused);
        }
        if B::EVERY_ACCESS || B::COHERENT {
            self.before_store(offset)?;
        }
        let (parts, crosses) = self.parts(first, second, in_page, bytes);
        let other = crosses.then_some(parts[1].0);
        self.admit_both(bus, first, other, Purpose::Load, offset)?;
        self.statistics.loads += 1;
        // The hart makes one access for each byte; only the first in a line can miss.
        self.base += (bytes - 1) * self.costs.cycle;
        let (mut value, mut missing) = (0, 0);
        for (physical, bytes, shift) in parts.into_iter().take(1 + crosses as usize) {
            let now = self.base + offset;
            let (timing, place) = self.ask(bus, now, physical, Access::Load);
            match timing {
                Timing::Pending(_) => {
                    missing += 1;
                    self.later(bus, physical, Action::Part(*op, bytes, shift));
                }
                _ => value |= bus.read_place(place, bytes) << shift,
            }
            self.note_load(bus, timing, op.masks().1);
        }
        if missing != 0 {
            self.split_load(op, value, missing);
        }
        Ok(value)
    }

    /// The parts of an access in each line it touches (first address, bytes, shift within the value in bits), and whether there
    /// are two.
    fn parts(
        &self,
        first: u64,
        second: Option<u64>,
        in_page: u64,
        bytes: u64,
    ) -> ([(u64, u8, u8); 2], bool) {
        let last = byte_address(first, second, in_page, bytes - 1);
        let crosses = last & self.line_mask != first & self.line_mask;
        let start = last & self.line_mask;
        let behind = if crosses { last - start + 1 } else { 0 };
        let before = bytes - behind;
        let parts = [
            (first, before as u8, 0),
            (start, behind as u8, 8 * before as u8),
        ];
        (parts, crosses)
    }

    /// Whether memory answers everywhere in a range that may reach into a second page.
    fn check_range<B: Bus>(
        bus: &B,
        address: u64,
        (first, second): (u64, Option<u64>),
        bytes: u64,
        need: Need,
    ) -> Result<(), Exit> {
        let write = need == Need::Write;
        let here = match second {
            Some(_) => 0x1000 - (address & 0xfff),
            None => bytes,
        };
        if !bus.allows(first, here, write) {
            return Err(Self::fault(need, address));
        }
        match second {
            Some(second) if !bus.allows(second, bytes - here, write) => {
                Err(Self::fault(need, address.wrapping_add(here)))
            }
            _ => Ok(()),
        }
    }

    #[cold]
    #[inline(never)]
    fn store_slowly<B: Bus, const BYTES: u64>(
        &mut self,
        bus: &mut B,
        op: &Op,
        address: u64,
        value: u64,
    ) -> Result<(), Exit> {
        self.settle(bus);
        let bytes = BYTES;
        let offset = op.cycle as Tick * self.costs.cycle;
        let (first, second) = self.translate_range(bus, address, bytes, Need::Write, offset)?;
        let device = bus.is_device(first) || second.is_some_and(|second| bus.is_device(second));
        if device || self.is_uncached() {
            if address & (bytes - 1) != 0 {
                return Err(Exit::Trap(Exception {
                    cause: cause::STORE_MISALIGNED,
                    value: address,
                }));
            }
            if !device {
                Self::check_range(bus, address, (first, None), bytes, Need::Write)?;
            }
            if !device || bus.is_remote(first, false) {
                let store = Action::Store(bytes as u8, value);
                return self.remote_store(bus, op, first, address, store);
            }
            return self.device_store(bus, first, address, bytes, value, offset);
        }
        Self::check_range(bus, address, (first, second), bytes, Need::Write)?;
        let aligned = address & (bytes - 1) == 0;
        self.wait_store_room(if aligned { 1 } else { 2 }, offset)?;
        self.before_store(offset)?;
        if aligned {
            return match self.store_line::<B, BYTES>(bus, op, first, value) {
                true => Ok(()),
                false => Err(self.refused),
            };
        }
        if self.acquiring && self.after_acquire(offset) {
            return Err(self.refused);
        }
        let in_page = 0x1000 - (address & 0xfff);
        let (parts, crosses) = self.parts(first, second, in_page, bytes);
        let other = crosses.then_some(parts[1].0);
        self.admit_both(bus, first, other, Purpose::Store, offset)?;
        self.statistics.stores += 1;
        self.base += (bytes - 1) * self.costs.cycle;
        for (physical, bytes, shift) in parts.into_iter().take(1 + crosses as usize) {
            self.put_store(bus, op, physical, bytes, value >> shift);
        }
        Ok(())
    }

    pub(super) fn before_device<B: Bus>(&self, bus: &B, offset: Tick) -> Result<Tick, Exit> {
        let now = self.base + offset;
        if now >= self.horizon || now >= bus.device_horizon() {
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
        let now = self.before_device(bus, offset)?;
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
        let now = self.before_device(bus, offset)?;
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
            Some(physical) => {
                self.memory_type = MemoryType::Pma;
                physical
            }
            None => self.translate(
                bus,
                address,
                bytes,
                need,
                op.cycle as Tick * self.costs.cycle,
            )?,
        };
        let modifies = !matches!(op.kind, Kind::Lr | Kind::Sc);
        if self.is_uncached() && modifies && !bus.is_device(physical) {
            if !bus.allows(physical, bytes, true) {
                return Err(Self::fault(need, address));
            }
            let offset = op.cycle as Tick * self.costs.cycle;
            self.wait_other_network(physical, false, offset)?;
            return Ok(physical);
        }
        if bus.is_remote(physical, true) {
            let offset = op.cycle as Tick * self.costs.cycle;
            self.wait_other_network(physical, false, offset)?;
            return Ok(physical);
        }
        // Devices have no atomic accesses, and memory that is not cached has no reservations.
        let uncached = self.is_uncached();
        if uncached || bus.is_device(physical) || !bus.allows(physical, bytes, need == Need::Write)
        {
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

    /// Performs an atomic operation, or defers it until its line arrives.
    fn put_atomic<B: Bus>(&mut self, bus: &mut B, op: &Op, physical: u64, action: Action) {
        if self.is_uncached() || bus.is_remote(physical, true) {
            return self.remote_atomic(bus, op, physical, action);
        }
        let now = self.base + op.cycle as Tick * self.costs.cycle;
        let (timing, _) = self.ask(bus, now, physical, Access::Atomic);
        match timing {
            Timing::Pending(token) => {
                if a::releases(op) {
                    self.releasing = Some(token);
                }
                if a::acquires(op) {
                    self.acquiring = true;
                    self.lines.forget();
                }
                self.later(bus, physical, action);
            }
            _ => self.perform_found(bus, now, physical, action),
        }
        self.note_load(bus, timing, op.masks().1);
    }

    /// Called before an atomic operation. An operation with release semantics, or with `drain`, waits for all earlier accesses, and so does
    /// one with acquire semantics after one with release semantics that is under way (rule 7 of the preserved program order: both are
    /// RCsc); a store-conditional waits for its load-reserved.
    fn order(&mut self, op: &Op, drain: bool) -> Result<(), Exit> {
        let offset = op.cycle as Tick * self.costs.cycle;
        if self.acquiring && self.after_acquire(offset) {
            return Err(self.refused);
        }
        let under_way = !self.late.is_empty() || !self.remote.is_empty();
        let pair = a::acquires(op) && self.releasing.is_some();
        let waits = (drain || a::releases(op) || pair) && under_way;
        if waits || self.reserving || self.ordering {
            self.ordering = true;
            self.wait_all(offset)?;
            self.ordering = false;
        }
        self.before_store(offset)
    }

    /// LR. The reservation consists of the address and, if lines hold data, the line for as long as it stays in the cache. If
    /// memory is flat, it consists of the address and the value: a store-conditional succeeds if memory still has that value.
    pub fn load_reserved<B: Bus>(
        &mut self,
        bus: &mut B,
        op: &Op,
        address: u64,
    ) -> Result<(), Exit> {
        let physical = self.atomic_address(bus, op, address, Need::Read)?;
        // A line that arrives later may evict the reserved one, so a loop of LR and SC could fail forever.
        self.order(op, bus.lines_hold_data())?;
        self.admit_atomic(bus, op, physical)?;
        self.statistics.loads += 1;
        self.reservation = None;
        self.reserving = true;
        self.put_atomic(bus, op, physical, Action::Reserve(*op));
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
        self.order(op, false)?;
        match self.reservation {
            Some((reserved, seen)) if reserved == physical => {
                self.admit_atomic(bus, op, physical)?;
                self.put_atomic(bus, op, physical, Action::Conditional(*op, seen, value));
            }
            _ => self.x[op.rd as usize & 63] = 1,
        }
        self.reservation = None;
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
        self.order(op, false)?;
        self.admit_atomic(bus, op, physical)?;
        self.statistics.loads += 1;
        self.statistics.stores += 1;
        self.put_atomic(bus, op, physical, Action::Modify(*op, operand));
        Ok(())
    }
}

/// The bytes of a line that the bus has found.
struct Found<'a, B> {
    bus: &'a mut B,
    now: Tick,
    line: u64,
}

impl<B: Bus> LineBytes for Found<'_, B> {
    fn read(&mut self, offset: u64, bytes: u8) -> u64 {
        let place = self.bus.place(self.line + offset, false);
        self.bus.read_place(place, bytes)
    }

    fn write(&mut self, offset: u64, bytes: u8, value: u64) {
        let physical = self.line + offset;
        let place = self.bus.place(physical, true);
        self.bus.store(self.now, physical, place, bytes, value);
    }

    fn reserve(&mut self, offset: u64) {
        self.bus.reserve(self.line + offset);
    }

    fn take_reservation(&mut self, offset: u64) -> Option<bool> {
        self.bus.take_reservation(self.line + offset)
    }
}

fn byte_address(first: u64, second: Option<u64>, in_page: u64, index: u64) -> u64 {
    match second {
        Some(second) if index >= in_page => second + (index - in_page),
        _ => first + index,
    }
}
