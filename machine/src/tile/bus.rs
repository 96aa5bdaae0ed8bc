//! The tile as its hart sees it.

use super::card::{self, with_card};
use super::{Below, End, Local, MARKERS_KEPT, MARKERS_MAX, Signal, TileEnv};
use crate::cache::Hierarchy;
use crate::cache::hierarchy::{self, Outcome, Reach};
use crate::device::clint::ClintEffect;
use crate::device::exit_code;
use crate::dtu::{Dtu, WriteEffect};
use crate::fabric::Fabric;
use crate::hart::{
    Access, Bus, BusFault, CacheEvents, DeviceRead, DeviceWrite, InterruptLine, LineBytes, Managed,
    Management, Place, RemoteOperation, Timing, UserTrap,
};
use crate::ledger::Resource;
use crate::noc::{Packet, past_caches};
use crate::observe::Marker;
use crate::timeline::Event;
use crate::types::{Owner, Tick};
use bulkhead_abi::marker::{Asker, MarkerKind, Since};
use bulkhead_abi::memory_map::{
    CLINT_BASE, CLINT_SIZE, DTU_BASE, DTU_SIZE, EXIT_BASE, MEMORY_BASE, UART_BASE, UART_SIZE,
};

const EXIT_SIZE: u64 = 0x1000;
/// Offset of the second hart's software interrupt register in the CLINT, as in SiFive's map.
const SECOND_SOFTWARE: u64 = bulkhead_abi::memory_map::CLINT_MSIP + 4;

/// The tile as its hart sees it. A place is an index into the bytes of the data cache, which the tightly coupled memories follow. `TCM`: the
/// tile has some.
pub(super) struct TileBus<'a, const TCM: bool> {
    pub unit: Option<&'a mut Dtu>,
    pub caches: &'a mut Hierarchy,
    pub local: &'a mut Local,
    pub fabric: &'a mut Fabric,
    /// The hart is the tile's second one.
    pub second: bool,
    /// The moment at which the other hart acts next; device registers are not accessed beyond it.
    pub other: Tick,
    /// The address of the last access that asked for its line, and the line's name.
    pub named: (u64, u64),
}

/// Nothing has a name yet.
pub(super) const UNNAMED: (u64, u64) = (u64::MAX, 0);

impl<const TCM: bool> TileBus<'_, TCM> {
    fn owner(&self) -> Owner {
        self.local.owner
    }

    /// Address in the caches of the line at a tile-physical address.
    #[inline(always)]
    fn name(&self, physical: u64) -> u64 {
        self.local.name(physical)
    }

    /// The offset of an address in the tile's tightly coupled memories, if it is there.
    #[inline(always)]
    fn coupled(&self, physical: u64) -> Option<u64> {
        match TCM {
            true => self.local.tcm.own(physical),
            false => None,
        }
    }

    /// A fetch from a tightly coupled memory.
    #[cold]
    #[inline(never)]
    fn fetch_coupled(&mut self, now: Tick, offset: u64) -> Timing {
        let (owner, line) = (self.owner(), u64::from(self.local.line));
        let ledger = &mut self.fabric.ledger;
        let tcm = &mut self.local.tcm;
        match tcm.fetch(now, offset & !(line - 1), line, owner, ledger) {
            start if start == now => Timing::Hit,
            start => Timing::Ready(start),
        }
    }

    /// An access to a tightly coupled memory.
    #[inline(never)]
    fn data_coupled(&mut self, now: Tick, offset: u64, access: Access) -> Timing {
        let (owner, ledger) = (self.owner(), &mut self.fabric.ledger);
        let there = self.local.tcm.data(now, offset, access, owner, ledger);
        there.map_or(Timing::Hit, Timing::Ready)
    }

    #[cold]
    #[inline(never)]
    fn fetch_miss(&mut self, now: Tick, name: u64) -> Timing {
        let owner = self.owner();
        let mut lower = Below {
            unit: self.unit.as_deref_mut(),
            local: self.local,
            fabric: self.fabric,
        };
        let timing = timing(self.caches.fetch_miss(now, name, owner, &mut lower));
        self.note(timing)
    }

    /// The number of the hart in its tile.
    #[inline]
    fn hart(&self) -> usize {
        usize::from(self.second)
    }

    /// The other hart must ask again for the line at `line`, because this hart has used it or another line of its set.
    #[inline(always)]
    fn used(&mut self, line: u64) {
        if self.local.second_hart {
            self.local.used.data |= 1 << (line / u64::from(self.local.line) % 16);
        }
    }

    /// The other hart must ask again for every line.
    fn used_all(&mut self) {
        self.local.used.data = u16::MAX;
    }

    /// Remembers the waiters for a miss, if there can be two.
    #[inline(always)]
    fn note(&mut self, timing: Timing) -> Timing {
        if self.second
            && let Timing::Pending(token) = timing
        {
            self.local.second_tokens.push(token);
        }
        timing
    }

    /// An access to a line that the hart does not know.
    #[inline(never)]
    fn data_cached(&mut self, now: Tick, name: u64, write: bool) -> Timing {
        let owner = self.owner();
        let mut lower = Below {
            unit: self.unit.as_deref_mut(),
            local: self.local,
            fabric: self.fabric,
        };
        match self.caches.data_near(now, name, write, owner, &mut lower) {
            // Nothing waits for a miss, so there is nothing to remember.
            Some(outcome) => timing(outcome),
            None => self.data_miss(now, name, write),
        }
    }

    #[inline(never)]
    fn data_miss(&mut self, now: Tick, name: u64, write: bool) -> Timing {
        let owner = self.owner();
        let mut lower = Below {
            unit: self.unit.as_deref_mut(),
            local: self.local,
            fabric: self.fabric,
        };
        let timing = timing(self.caches.data_miss(now, name, write, owner, &mut lower));
        if self.caches.has_fetched_ahead() {
            self.used_all();
        }
        self.note(timing)
    }

    /// An access to the line of the host word. The answer makes every such access come here.
    #[cold]
    #[inline(never)]
    fn data_host(&mut self, now: Tick, physical: u64, write: bool) -> Timing {
        let name = self.name(physical);
        let timing = match self.caches.data_hit(now, name, write) {
            Some(outcome) => self.note(timing(outcome)),
            None => self.data_miss(now, name, write),
        };
        match timing {
            Timing::Hit => Timing::ReadyOnce(now),
            Timing::Ready(at) => Timing::ReadyOnce(at),
            timing => timing,
        }
    }

    /// Holds an access at the hart until the token bucket admits it.
    ///
    /// The hart's privilege decides, like a bus attribute (AxPROT of AXI, IHI 0022). An application's access waits until the bucket
    /// has the bytes of a line that leaves the tile. A first-level miss that hits in the second level may evict dirty lines, so it
    /// waits until nothing is owed. TileMux, which must get an application off the hart, may borrow as much as the kernel allows.
    #[cold]
    #[inline(never)]
    fn admit_regulated(
        &mut self,
        now: Tick,
        physical: u64,
        fetch: bool,
        user: bool,
    ) -> Result<(), Tick> {
        let reach = self.caches.reach(self.name(physical), fetch);
        let Some(unit) = self.unit.as_deref_mut() else {
            return Ok(());
        };
        let outcome = match (reach, user) {
            (Reach::First, _) => Ok(()),
            (Reach::Second, _) => unit.solvent(now, !user, 0),
            (Reach::Below, true) => unit.ask(now, self.local.line),
            (Reach::Below, false) => unit.solvent(now, true, self.local.line),
        };
        self.asked(now, outcome)
    }

    /// TileMux reports which activity has the hart, or which wants it.
    fn schedule(&mut self, now: Tick, kind: MarkerKind, value: u64) {
        let ledger = &mut self.fabric.ledger;
        if let (MarkerKind::MuxWorks, Some(unit)) = (kind, self.unit.as_deref_mut()) {
            self.local.processor.asked_by(unit.take_asker());
        }
        self.local.processor.hear(now, kind, value, ledger);
        if let (Some(observer), MarkerKind::MuxReady) = (&mut self.fabric.observer, kind) {
            let since = Since::unpack(value);
            observer.marker(&Marker {
                tick: now,
                tile: self.local.id,
                activity: since.activity,
                kind: kind as u16,
                value: since.moment,
                // The machine tells it, not a hint.
                pc: 0,
            });
        }
    }

    /// A store to the host word.
    #[cold]
    #[inline(never)]
    fn stored_to_host(&mut self, now: Tick, place: Place, value: u64) {
        if self.local.stored_to_host(now, value) {
            self.write_place(place, 8, 0);
        }
    }

    /// Notes since when the hart waits for tokens, and records the wait when it is over.
    fn asked(&mut self, now: Tick, outcome: Result<(), Tick>) -> Result<(), Tick> {
        let hart = usize::from(self.second);
        let mut before = self.local.asked[hart].take();
        if let Some((since, until)) = before
            && until < now
        {
            // The hart did not ask again when the wait was over: it no longer needed what it waited for.
            self.book_tokens(until - since);
            before = None;
        }
        let since = before.map_or(now, |(since, _)| since);
        match outcome {
            Ok(()) => {
                self.book_tokens(now - since);
            }
            Err(until) => self.local.asked[hart] = Some((since, until)),
        }
        outcome
    }

    fn book_tokens(&mut self, waited: Tick) {
        let owner = self.local.owner;
        let ledger = &mut self.fabric.ledger;
        ledger.book(owner, owner, Resource::Bucket, waited);
    }

    fn clint_read(&self, now: Tick, offset: u64, bytes: u8) -> Option<u64> {
        if self.local.second_hart && offset == SECOND_SOFTWARE && bytes == 4 {
            return Some(self.local.second_software.into());
        }
        self.local.clint.read(now, offset, bytes)
    }

    fn clint_write(&mut self, now: Tick, offset: u64, bytes: u8, value: u64) -> Option<()> {
        if self.local.second_hart && offset == SECOND_SOFTWARE && bytes == 4 {
            self.local.second_software = value & 1 != 0;
            let line = InterruptLine::Software;
            let signal = Signal::Second(line, self.local.second_software);
            self.local.signals.push(signal);
            return Some(());
        }
        match self.local.clint.write(offset, bytes, value)? {
            ClintEffect::None => {}
            ClintEffect::Software(level) => {
                let signal = Signal::Line(InterruptLine::Software, level);
                self.local.signals.push(signal);
            }
            ClintEffect::Timer(deadline) => {
                let due = deadline <= now;
                let signal = Signal::Line(InterruptLine::Timer, due);
                self.local.signals.push(signal);
                self.local.timer_at = if due { Tick::MAX } else { deadline };
            }
        }
        Some(())
    }
}

#[inline(always)]
fn timing(outcome: Outcome) -> Timing {
    match outcome {
        Outcome::Hit => Timing::Hit,
        Outcome::Ready(at) => Timing::Ready(at),
        Outcome::Pending(token) => Timing::Pending(token),
    }
}

/// Offset within a device's range.
fn within(physical: u64, base: u64, size: u64) -> Option<u64> {
    let offset = physical.wrapping_sub(base);
    (offset < size).then_some(offset)
}

impl<const TCM: bool> Bus for TileBus<'_, TCM> {
    // Others read and write the memories at any moment.
    const COHERENT: bool = TCM;

    #[inline]
    fn regulates(&self) -> bool {
        self.local.holds_back
    }

    fn admit(&mut self, now: Tick, physical: u64, fetch: bool, user: bool) -> Result<(), Tick> {
        self.admit_regulated(now, physical, fetch, user)
    }

    fn solvent(&mut self, now: Tick) -> Result<(), Tick> {
        let unit = self.unit.as_deref_mut();
        let outcome = unit.map_or(Ok(()), |unit| unit.solvent(now, false, 0));
        self.asked(now, outcome)
    }

    fn withdraw(&mut self, now: Tick) {
        let _ = self.asked(now, Ok(()));
        if let Some(unit) = self.unit.as_deref_mut()
            && !self.second
        {
            unit.withdraw();
        }
    }

    #[inline]
    fn fetch(&mut self, now: Tick, physical: u64) -> Timing {
        if let Some(offset) = self.coupled(physical) {
            return self.fetch_coupled(now, offset);
        }
        let name = self.name(physical);
        match self.caches.fetch_hit(now, name) {
            Some(outcome) => self.note(timing(outcome)),
            None => {
                self.local.used.instructions = true;
                self.fetch_miss(now, name)
            }
        }
    }

    #[inline(always)]
    fn fetch_again(&mut self, physical: u64) -> bool {
        if self.coupled(physical).is_some() {
            return false;
        }
        let again = self.caches.fetch_again();
        debug_assert!(
            !again || self.caches.is_recent_for_fetch(self.name(physical)),
            "{physical:#x} is not the line used last in its set"
        );
        again
    }

    #[inline]
    fn fetch_recent(&mut self, now: Tick, physical: u64) -> bool {
        self.coupled(physical).is_none() && self.caches.fetch_recent(now, self.name(physical))
    }

    #[inline(always)]
    fn data(&mut self, now: Tick, physical: u64, access: Access) -> Timing {
        debug_assert!(
            now >= self.local.now,
            "{access:?} of {physical:#x} at {now}, after an event at {}",
            self.local.now
        );
        if let Some(offset) = self.coupled(physical) {
            return self.data_coupled(now, offset, access);
        }
        let write = matches!(access, Access::Store | Access::Atomic);
        self.used(physical);
        if self.local.htif.is_in_line(physical) {
            return self.data_host(now, physical, write);
        }
        let name = self.name(physical);
        self.named = (physical, name);
        self.data_cached(now, name, write)
    }

    fn read(&mut self, physical: u64, bytes: u8) -> Result<u64, BusFault> {
        panic!("{bytes} bytes at {physical:#x} are read past the caches");
    }

    fn allows(&self, physical: u64, bytes: u64, write: bool) -> bool {
        if let Some(offset) = self.coupled(physical) {
            return self.local.tcm.has(offset, bytes);
        }
        self.local.window(physical, bytes, write).is_some()
    }

    #[inline]
    fn remembers(&self, physical: u64) -> bool {
        self.coupled(physical).is_none()
    }

    #[inline]
    fn lines_in_turn(&self) -> bool {
        true
    }

    fn again(&mut self, physical: u64, place: Place, times: u64) {
        self.used(physical);
        self.caches.again(place as usize, times);
    }

    #[inline]
    fn place(&self, physical: u64, _: bool) -> Place {
        if let Some(offset) = self.coupled(physical) {
            return self.local.tcm.place(offset) as Place;
        }
        let name = match self.named {
            (same, name) if same == physical => name,
            _ => self.name(physical),
        };
        self.caches.data_place(name) as Place
    }

    #[inline]
    fn is_at(&self, physical: u64, place: Place) -> bool {
        if let Some(offset) = self.coupled(physical) {
            return self.local.tcm.place(offset) as Place == place;
        }
        self.caches.is_at(self.name(physical), place as usize)
    }

    #[inline(always)]
    fn read_place(&mut self, place: Place, bytes: u8) -> u64 {
        self.caches.data_bytes_mut().read(place, bytes)
    }

    #[inline(always)]
    fn write_place(&mut self, place: Place, bytes: u8, value: u64) {
        self.caches.data_bytes_mut().write(place, bytes, value);
    }

    #[inline(always)]
    fn store(&mut self, now: Tick, physical: u64, place: Place, bytes: u8, value: u64) {
        match self.coupled(physical) {
            Some(offset) => {
                let memory = self.caches.data_bytes_mut();
                self.local.store_tcm(memory, (offset, bytes), value);
            }
            None => {
                self.write_place(place, bytes, value);
                self.caches.wrote(place as usize, self.hart());
            }
        }
        if self.local.htif.is_at(physical) {
            self.stored_to_host(now, place, value);
        }
    }

    #[inline]
    fn is_remote(&self, physical: u64, atomic: bool) -> bool {
        if !atomic && self.local.engines.has(physical) {
            return true;
        }
        self.coupled(physical).is_none() && self.local.tcms.find(physical, 1).is_some()
    }

    fn remote(
        &mut self,
        now: Tick,
        physical: u64,
        bytes: u8,
        operation: RemoteOperation,
    ) -> Result<u32, BusFault> {
        let owner = self.owner();
        let (engines, tcms) = (&self.local.engines, &self.local.tcms);
        // An address that is neither a register nor in a tile is in memory past the caches.
        let request = match engines.has(physical) {
            true => engines.request(owner, physical, bytes, operation),
            false => tcms
                .request(physical, bytes, operation)
                .or_else(|| past_caches(&self.local.map, physical, bytes, operation)),
        };
        let (to, kind, transaction) = request.ok_or(BusFault)?;
        let (tile, token) = (self.local.id, self.caches.token());
        let mut packet = Packet::request(now, tile, to, owner, token, transaction, kind);
        // It leaves no earlier than a miss.
        let leaves = now + self.local.hart_lookahead;
        packet.account.service += leaves - now;
        self.local.send(leaves, packet, self.fabric);
        Ok(token)
    }

    #[inline]
    fn line_name(&self, line: u64) -> u64 {
        self.name(line)
    }

    fn reserve(&mut self, physical: u64) {
        if let Some(offset) = self.coupled(physical) {
            let owner = self.owner();
            return self.local.tcm.reservations.reserve(owner, offset);
        }
        // A store of the other hart must not bypass this function.
        self.used(physical);
        self.caches.reserve(self.name(physical), self.hart());
    }

    fn take_reservation(&mut self, physical: u64) -> Option<bool> {
        if let Some(offset) = self.coupled(physical) {
            let owner = self.owner();
            return Some(self.local.tcm.reservations.take(owner, offset));
        }
        let (name, hart) = (self.name(physical), self.hart());
        Some(self.caches.take_reservation(name, hart))
    }

    fn lines_hold_data(&self) -> bool {
        true
    }

    fn instruction_line(&mut self, line: u64, bytes: &mut [u8]) -> bool {
        if let Some(offset) = self.coupled(line) {
            let at = self.local.tcm.place(offset);
            bytes.copy_from_slice(&self.caches.data_bytes()[at..at + bytes.len()]);
            return true;
        }
        let there = self.caches.instruction_line(self.name(line));
        there.map(|there| bytes.copy_from_slice(there)).is_some()
    }

    fn manage(&mut self, now: Tick, line: u64, what: Management) -> Managed {
        if self.coupled(line).is_some() {
            // No cache has its bytes.
            return Managed::At(Timing::Hit);
        }
        let what = match what {
            Management::Invalidate => hierarchy::Management::Invalidate,
            Management::Clean => hierarchy::Management::Clean,
            Management::Flush => hierarchy::Management::Flush,
        };
        self.used_all();
        let owner = self.owner();
        let waiter = self.caches.manager();
        let name = self.name(line);
        let mut lower = Below {
            unit: self.unit.as_deref_mut(),
            local: self.local,
            fabric: self.fabric,
        };
        let managed = self
            .caches
            .manage(now, name, what, owner, waiter, &mut lower);
        match managed {
            Ok(outcome) => Managed::At(self.note(timing(outcome))),
            Err(token) => {
                self.note(Timing::Pending(token));
                Managed::After(token)
            }
        }
    }

    fn prefetch(&mut self, now: Tick, line: u64, fetch: bool) {
        let cached = self.coupled(line).is_none();
        if cached && self.allows(line, self.local.line.into(), false) {
            self.used_all();
            self.local.used.instructions = true;
            let (owner, name) = (self.owner(), self.name(line));
            let mut lower = Below {
                unit: self.unit.as_deref_mut(),
                local: self.local,
                fabric: self.fabric,
            };
            self.caches.prefetch(now, name, fetch, owner, &mut lower);
        }
    }

    #[inline]
    fn instruction(&mut self, pc: u64) {
        self.caches.set_pc(pc);
    }

    #[inline]
    fn fetched_ahead(&mut self) -> bool {
        self.caches.take_fetched_ahead()
    }

    fn empty_instruction_cache(&mut self) {
        self.caches.empty_instruction_cache();
    }

    #[inline]
    fn is_device(&self, physical: u64) -> bool {
        physical < MEMORY_BASE && self.coupled(physical).is_none()
    }

    fn device_read(&mut self, now: Tick, physical: u64, bytes: u8) -> Result<DeviceRead, BusFault> {
        self.local.now = now;
        let value = if let Some(offset) = within(physical, DTU_BASE, DTU_SIZE) {
            let unit = self.unit.as_deref_mut().ok_or(BusFault)?;
            let mut env = TileEnv {
                caches: self.caches,
                local: self.local,
                fabric: self.fabric,
            };
            let value = match self.second {
                false => unit.read_register(&mut env, offset, bytes),
                true => unit.read_register_second(&mut env, offset, bytes),
            };
            self.local.after_unit(unit, self.caches, self.fabric);
            value.map_err(|_| BusFault)?
        } else if let Some(offset) = within(physical, CLINT_BASE, CLINT_SIZE) {
            self.clint_read(now, offset, bytes).ok_or(BusFault)?
        } else if let Some(value) = self.local.controller((physical, bytes), None) {
            value.ok_or(BusFault)?
        } else if let Some(offset) = within(physical, UART_BASE, UART_SIZE) {
            let uart = self.local.uart.as_mut().ok_or(BusFault)?;
            uart.read(offset) as u64
        } else if let Some(offset) = card::register(physical) {
            let read = with_card(
                self.unit.as_deref_mut(),
                self.caches,
                self.local,
                self.fabric,
                |card, _| card.read(offset, bytes),
            );
            read.flatten().ok_or(BusFault)?
        } else if within(physical, EXIT_BASE, EXIT_SIZE).is_some() && self.local.exit {
            0
        } else {
            return Err(BusFault);
        };
        Ok(DeviceRead { value, extra: 0 })
    }

    fn device_write(
        &mut self,
        now: Tick,
        physical: u64,
        bytes: u8,
        value: u64,
    ) -> Result<DeviceWrite, BusFault> {
        self.local.now = now;
        // A register of the unit may move a window.
        self.named = UNNAMED;
        let mut sleep = false;
        if let Some(offset) = within(physical, DTU_BASE, DTU_SIZE) {
            let unit = self.unit.as_deref_mut().ok_or(BusFault)?;
            let mut env = TileEnv {
                caches: self.caches,
                local: self.local,
                fabric: self.fabric,
            };
            let effect = match self.second {
                false => unit.write_register(&mut env, offset, bytes, value),
                true => unit
                    .write_register_second(&mut env, offset, bytes, value)
                    .map(|()| WriteEffect::None),
            };
            self.local.after_unit(unit, self.caches, self.fabric);
            sleep = effect.map_err(|_| BusFault)? == WriteEffect::Sleep;
        } else if let Some(offset) = within(physical, CLINT_BASE, CLINT_SIZE) {
            self.clint_write(now, offset, bytes, value)
                .ok_or(BusFault)?;
        } else if let Some(written) = self.local.controller((physical, bytes), Some(value)) {
            written.ok_or(BusFault)?;
        } else if let Some(offset) = within(physical, UART_BASE, UART_SIZE) {
            let uart = self.local.uart.as_mut().ok_or(BusFault)?;
            uart.write(offset, value as u8);
        } else if let Some(offset) = card::register(physical) {
            let written = with_card(
                self.unit.as_deref_mut(),
                self.caches,
                self.local,
                self.fabric,
                |card, ports| card.write(ports, offset, bytes, value),
            );
            written.flatten().ok_or(BusFault)?;
        } else if let Some(offset) = within(physical, EXIT_BASE, EXIT_SIZE)
            && self.local.exit
        {
            if offset == 0
                && let Some(code) = exit_code(value as u32)
            {
                self.local.finish(now, End::Exit(code));
                self.local.recall = true;
            }
        } else {
            return Err(BusFault);
        }
        // A hart that is woken immediately must not continue before the unit knows.
        self.local.recall |= sleep;
        Ok(DeviceWrite { extra: 0, sleep })
    }

    #[inline]
    fn epoch(&self) -> u32 {
        self.local.epoch
    }

    fn cache_events(&self) -> CacheEvents {
        self.caches.events()
    }

    fn timer(&self, now: Tick) -> u64 {
        self.local.clint.time(now)
    }

    fn marker(&mut self, now: Tick, pc: u64, kind: u16, value: u64, machine_mode: bool) {
        let known = MarkerKind::from_code(kind);
        // A program that could lie about others is not believed: for such a program, the marker is a no-op, as on any other chip.
        if known.is_some_and(MarkerKind::is_privileged) && !machine_mode {
            return;
        }
        if let (Some(MarkerKind::KernelAsks), Some(unit)) = (known, self.unit.as_deref_mut()) {
            let asker = Asker::unpack(value);
            return unit.asks_for(asker.map(|by| Owner::new(by.tile, by.activity)));
        }
        if let Some(schedule) = known.filter(|kind| kind.is_schedule()) {
            return self.schedule(now, schedule, value);
        }
        let marker = Marker {
            tick: now,
            tile: self.local.id,
            activity: self.local.owner.activity,
            kind,
            value,
            pc,
        };
        self.local.saw(now, Event::Marker { kind, value });
        let room = match known {
            Some(_) => MARKERS_MAX,
            None => MARKERS_MAX - MARKERS_KEPT,
        };
        if self.local.markers.len() < room {
            self.local.markers.push(marker);
        } else {
            self.local.markers_lost += 1;
        }
        if let Some(observer) = &mut self.fabric.observer {
            observer.marker(&marker);
        }
    }

    fn crashed(&mut self, now: Tick, trap: &UserTrap, stores: &[(u64, u8, u64)]) {
        self.keep(now, trap, stores);
    }

    #[inline]
    fn limit(&self) -> Tick {
        if self.local.signals.is_empty() && !self.local.recall {
            let limit = self.local.limit.min(self.local.next_event());
            limit.min(self.other)
        } else {
            0
        }
    }
}
