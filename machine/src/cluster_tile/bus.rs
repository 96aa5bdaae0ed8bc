//! A hart's view of its cluster.

use super::devices::Devices;
use super::first_level::Found;
use super::port::{FROM_DEVICE, Inbound, Side};
use super::second_level::SecondLevel;
use crate::fabric::Fabric;
use crate::hart::{
    Access, Bus, BusFault, CacheEvents, DeviceRead, DeviceWrite, LineBytes, Managed, Management,
    Place, QosIds, RemoteOperation, Timing,
};
use crate::noc::{Packet, past_caches};
use crate::observe::Marker;
use crate::types::{Tick, align};
use bulkhead_abi::marker::MarkerKind;
use bulkhead_abi::memory_map::MEMORY_BASE;

/// Maximum number of markers kept for each hart: a program may emit markers forever.
const MARKERS_MAX: usize = 1 << 20;

/// See the module's documentation.
pub(super) struct ClusterBus<'a> {
    pub side: &'a mut Side,
    pub second: &'a mut SecondLevel,
    pub devices: &'a mut Devices,
    pub fabric: &'a mut Fabric,
    /// Before this moment no other hart can access a device.
    pub devices_until: Tick,
}

impl ClusterBus<'_> {
    /// The answer to an access that did not hit.
    #[cold]
    #[inline(never)]
    fn pending(&mut self, now: Tick, token: u32) -> Timing {
        self.side.leave(now, self.second);
        Timing::Pending(token)
    }

    /// An access to the interrupt controller, if the address is there: reads, or writes the value.
    fn controller(
        &mut self,
        now: Tick,
        at: (u64, u8),
        write: Option<u64>,
    ) -> Option<Result<u64, BusFault>> {
        let side = &mut *self.side;
        let own = usize::from(side.port);
        let there = now + self.second.request_reach();
        let reaches = |port: usize| if port == own { now } else { there };
        let mut affect = |port: usize, at: Tick, effect| match port == own {
            true if at == now => side.signals.push((now, effect)),
            // An earlier change is on its way.
            true => {
                let at = align(at, side.cycle);
                side.inbox.push(at, FROM_DEVICE, Inbound::Device(effect));
            }
            false => side.affects(port, at, effect),
        };
        let answer = self.devices.controller(at, write, &reaches, &mut affect)?;
        Some(answer.ok_or(BusFault))
    }

    /// A store to the host's word.
    #[cold]
    fn stored_to_host(&mut self, now: Tick, place: Place, value: u64) {
        self.side.recall = true;
        if self.devices.stored_to_host(now, self.side.port, value) {
            self.write_place(place, 8, 0);
        }
    }
}

impl Bus for ClusterBus<'_> {
    const COHERENT: bool = true;

    fn fetch(&mut self, now: Tick, physical: u64) -> Timing {
        match self.side.first.fetch(now, physical) {
            Found::Hit => Timing::Hit,
            Found::Pending(token) => self.pending(now, token),
        }
    }

    #[inline(always)]
    fn data(&mut self, now: Tick, physical: u64, access: Access) -> Timing {
        debug_assert!(
            now >= self.side.now,
            "{access:?} of {physical:#x} at {now}, after an event at {}",
            self.side.now
        );
        self.side.access = now;
        let write = matches!(access, Access::Store | Access::Atomic);
        match self.side.first.data(now, physical, write) {
            Found::Hit => {
                if self.side.first.has_asked() {
                    self.side.fetched_ahead = true;
                    self.side.leave(now, self.second);
                }
                let line = self.side.first.line_of(physical);
                if line == self.side.wanted || line == self.side.host_line {
                    return Timing::ReadyOnce(now);
                }
                Timing::Hit
            }
            Found::Pending(token) => self.pending(now, token),
        }
    }

    fn read(&mut self, physical: u64, _: u8) -> Result<u64, BusFault> {
        panic!("{physical:#x} is read past the caches");
    }

    fn lines_hold_data(&self) -> bool {
        true
    }

    fn instruction_line(&mut self, line: u64, bytes: &mut [u8]) -> bool {
        let there = self.side.first.instruction_line(line);
        there.map(|there| bytes.copy_from_slice(there)).is_some()
    }

    #[inline]
    fn instruction(&mut self, pc: u64) {
        self.side.first.set_pc(pc);
    }

    #[inline]
    fn fetched_ahead(&mut self) -> bool {
        std::mem::take(&mut self.side.fetched_ahead)
    }

    fn empty_instruction_cache(&mut self) {
        self.side.first.empty_instruction_cache();
    }

    fn manage(&mut self, now: Tick, line: u64, what: Management) -> Managed {
        match self.side.first.manage(now, line, what) {
            Ok(token) => Managed::At(self.pending(now, token)),
            Err(token) => Managed::After(token),
        }
    }

    fn reserve(&mut self, physical: u64) {
        self.side.first.cache_mut().reserve(physical, 0);
        self.side.reserved_at = self.side.access;
    }

    fn take_reservation(&mut self, physical: u64) -> Option<bool> {
        let kept = self.side.first.cache_mut().take_reservation(physical, 0);
        self.side.release(self.side.access);
        Some(kept)
    }

    fn is_at(&self, physical: u64, place: Place) -> bool {
        self.side.first.cache().is_at(physical, place as usize)
    }

    fn allows(&self, physical: u64, bytes: u64, _: bool) -> bool {
        self.second.map.has(physical, bytes)
    }

    #[inline]
    fn lines_in_turn(&self) -> bool {
        self.side.first.lines_in_turn()
    }

    fn again(&mut self, _: u64, place: Place, times: u64) {
        self.side.first.again(place as usize, times);
    }

    #[inline]
    fn place(&self, physical: u64, _: bool) -> Place {
        self.side.first.cache().recent_place(physical) as Place
    }

    #[inline(always)]
    fn read_place(&mut self, place: Place, bytes: u8) -> u64 {
        self.side.first.cache_mut().bytes_mut().read(place, bytes)
    }

    #[inline(always)]
    fn write_place(&mut self, place: Place, bytes: u8, value: u64) {
        self.side
            .first
            .cache_mut()
            .bytes_mut()
            .write(place, bytes, value);
    }

    #[inline]
    fn store(&mut self, now: Tick, physical: u64, place: Place, bytes: u8, value: u64) {
        self.write_place(place, bytes, value);
        self.side.first.wrote(physical, place as usize);
        if self.devices.htif.is_at(physical) {
            self.stored_to_host(now, place, value);
        }
    }

    #[inline]
    fn is_device(&self, physical: u64) -> bool {
        physical < MEMORY_BASE
    }

    #[inline]
    fn is_remote(&self, physical: u64, atomic: bool) -> bool {
        let engines = &self.second.engines;
        !atomic && engines.has(physical) || self.second.tcms.find(physical, 1).is_some()
    }

    fn remote(
        &mut self,
        now: Tick,
        physical: u64,
        bytes: u8,
        operation: RemoteOperation,
    ) -> Result<u32, BusFault> {
        let owner = self.side.owner;
        let (engines, tcms) = (&self.second.engines, &self.second.tcms);
        // An address that is neither a register nor in a tile is in memory past the caches.
        let request = match engines.has(physical) {
            true => engines.request(owner, physical, bytes, operation),
            false => tcms
                .request(physical, bytes, operation)
                .or_else(|| past_caches(&self.second.map, physical, bytes, operation)),
        };
        let (to, kind, transaction) = request.ok_or(BusFault)?;
        self.fabric.ledger.reaches(owner, to);
        let token = self.side.first.token();
        let tile = owner.tile;
        let mut packet = Packet::request(now, tile, to, owner, token, transaction, kind);
        packet.ids = self.side.first.ids;
        self.second.pass(now, self.side.port, packet);
        // Nothing comes back before it has reached the second level and come down again.
        self.side.limit = self.side.limit.min(now + self.second.reply_reach());
        Ok(token)
    }

    fn identify(&mut self, ids: QosIds) {
        self.side.first.ids = ids;
    }

    #[inline]
    fn device_horizon(&self) -> Tick {
        self.devices_until
    }

    fn device_read(&mut self, now: Tick, physical: u64, bytes: u8) -> Result<DeviceRead, BusFault> {
        let at = (physical, bytes);
        let value = match self.controller(now, at, None) {
            Some(value) => value?,
            None => self.devices.read(now, self.side.port, at).ok_or(BusFault)?,
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
        if let Some(written) = self.controller(now, (physical, bytes), Some(value)) {
            return written.map(|_| DeviceWrite::default());
        }
        if let Some(begun) = self
            .devices
            .control(now, self.side.port, (physical, bytes), value)
        {
            if let Some(operation) = begun.ok_or(BusFault)? {
                self.second.operate(now, self.side.port, operation);
                // The end of the operation may be visible as early as that.
                self.side.limit = self.side.limit.min(now + self.second.reply_reach());
            }
            return Ok(DeviceWrite::default());
        }
        if let Some(lock) = self.devices.lock((physical, bytes), value) {
            let (port, what, ways) = lock.ok_or(BusFault)?;
            let from = self.side.port;
            self.second.write_fills(now, from, (port, what), ways);
            return Ok(DeviceWrite::default());
        }
        let side = &mut *self.side;
        let own = side.port;
        let there = now + self.second.request_reach();
        let mut affect = |port: usize, effect| match port == usize::from(own) {
            true => side.signals.push((now, effect)),
            false => side.affects(port, there, effect),
        };
        let at = (physical, bytes);
        let written = self.devices.write(now, own, at, value, &mut affect);
        written.ok_or(BusFault)?;
        self.side.recall |= self.devices.end.is_some();
        Ok(DeviceWrite::default())
    }

    fn epoch(&self) -> u32 {
        0
    }

    fn cache_events(&self) -> CacheEvents {
        self.side.events()
    }

    fn timer(&self, now: Tick) -> u64 {
        self.devices.time(now)
    }

    fn marker(&mut self, now: Tick, pc: u64, kind: u16, value: u64, machine_mode: bool) {
        let known = MarkerKind::from_code(kind);
        // Markers about other activities are ignored in user mode, and those of schedules always, because this tile has no
        // multiplexer.
        let privileged = known.is_some_and(MarkerKind::is_privileged);
        if privileged && !machine_mode || known.is_some_and(MarkerKind::is_schedule) {
            return;
        }
        let side = &mut *self.side;
        let marker = Marker {
            tick: now,
            tile: side.owner.tile,
            activity: side.owner.activity,
            kind,
            value,
            pc,
        };
        if side.markers.len() < MARKERS_MAX {
            side.markers.push(marker);
        } else {
            side.markers_lost += 1;
        }
        if let Some(observer) = &mut self.fabric.observer {
            observer.marker(&marker);
        }
    }

    #[inline]
    fn limit(&self) -> Tick {
        if self.side.signals.is_empty() && !self.side.recall {
            self.side.limit.min(self.side.next_event())
        } else {
            0
        }
    }
}
