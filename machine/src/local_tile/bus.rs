//! A tile with a local memory, as its hart sees it.

use super::map::Target;
use super::{Parts, Signal};
use crate::device::clint::ClintEffect;
use crate::device::{HtifEffect, exit_code};
use crate::dma::is_register;
use crate::fabric::Fabric;
use crate::hart::{
    Access, Bus, BusFault, DeviceRead, DeviceWrite, InterruptLine, Place, RemoteOperation, Timing,
};
use crate::noc::{Packet, Transaction};
use crate::observe::Marker;
use crate::tile::End;
use crate::types::Tick;
use bulkhead_abi::dma::FIRST_CHANNEL;
use bulkhead_abi::marker::MarkerKind;
use bulkhead_abi::memory_map::{
    CLINT_BASE, CLINT_MSIP, CLINT_SIZE, EXIT_BASE, MEMORY_BASE, TILE_CORE, TILE_DOORBELL,
    TILE_REGISTERS, TILE_REGISTERS_SIZE, TILE_START, TILE_WINDOW_SHIFT, UART_BASE, UART_SIZE,
};

const EXIT_SIZE: u64 = 0x1000;
/// Maximum number of markers kept per tile, because a program may emit markers forever.
const MARKERS_MAX: usize = 1 << 20;

/// See the module's documentation.
pub(super) struct LocalBus<'a> {
    pub parts: &'a mut Parts,
    pub fabric: &'a mut Fabric,
}

/// Offset in a range.
fn within(physical: u64, base: u64, size: u64) -> Option<u64> {
    let offset = physical.wrapping_sub(base);
    (offset < size).then_some(offset)
}

impl Parts {
    /// The offset in the local memory of an address in the alias or in the tile's own window, if there is memory.
    #[inline]
    pub(super) fn own(&self, physical: u64) -> Option<u64> {
        let alias = within(physical, MEMORY_BASE, 1 << TILE_WINDOW_SHIFT);
        alias.or_else(|| within(physical, self.window, TILE_REGISTERS))
    }

    /// Reads a register in the tile's register page.
    pub(super) fn read_register(&self, offset: u64, bytes: u8) -> Option<u64> {
        let value = match offset & !7 {
            TILE_DOORBELL => self.clint.read(0, CLINT_MSIP, 8)?,
            TILE_START => self.started.into(),
            TILE_CORE => self.core,
            _ => return self.dma.as_ref()?.read(offset, bytes),
        };
        match (bytes, offset & 7) {
            (8, 0) => Some(value),
            (4, 0 | 4) => Some(value >> (8 * (offset & 4)) & 0xFFFF_FFFF),
            _ => None,
        }
    }

    /// Writes a register in the tile's register page. Returns the signal for the hart, if any; `None` if there is no such register.
    pub(super) fn write_register(
        &mut self,
        now: Tick,
        offset: u64,
        bytes: u8,
        value: u64,
    ) -> Option<Option<Signal>> {
        match (offset, bytes) {
            (TILE_DOORBELL, 4 | 8) => {
                self.clint.write(CLINT_MSIP, 4, value);
                let level = value & 1 != 0;
                Some(Some(Signal::Line(InterruptLine::Software, level)))
            }
            (TILE_START, 8) => Some(Some(Signal::Start(value))),
            (TILE_CORE, 4 | 8) => Some(None),
            _ => {
                let dma = self.dma.as_mut()?;
                dma.write(now, offset, bytes, value)?;
                let level = dma.interrupt();
                let changes = std::mem::replace(&mut self.dma_interrupt, level) != level;
                Some(changes.then_some(Signal::Line(InterruptLine::External, level)))
            }
        }
    }

    fn write_clint(&mut self, now: Tick, offset: u64, bytes: u8, value: u64) -> Option<()> {
        match self.clint.write(offset, bytes, value)? {
            ClintEffect::None => {}
            ClintEffect::Software(level) => {
                let signal = Signal::Line(InterruptLine::Software, level);
                self.signals.push(signal);
            }
            ClintEffect::Timer(deadline) => {
                let due = deadline <= now;
                self.signals.push(Signal::Line(InterruptLine::Timer, due));
                self.timer_at = if due { Tick::MAX } else { deadline };
            }
        }
        Some(())
    }

    /// The host word was written. Returns true if it must be cleared.
    #[cold]
    fn stored_to_host(&mut self, now: Tick, value: u64) -> bool {
        self.recall = true;
        match self.htif.effect(value) {
            HtifEffect::None => false,
            HtifEffect::Exit(code) => {
                self.finish(now, End::Exit(code));
                false
            }
            HtifEffect::Print(byte) => {
                if let Some(uart) = &mut self.uart {
                    uart.put(byte);
                }
                true
            }
        }
    }
}

impl LocalBus<'_> {
    /// When an access gets its turn at a port.
    #[inline]
    fn turn(&mut self, now: Tick, offset: u64, bytes: u64) -> Tick {
        let (parts, ledger) = (&mut *self.parts, &mut self.fabric.ledger);
        parts.memory.own(now, offset, bytes, parts.owner, ledger)
    }
}

impl Bus for LocalBus<'_> {
    const EVERY_ACCESS: bool = true;
    const SHARES_BLOCKS: bool = true;

    fn fetch(&mut self, now: Tick, physical: u64) -> Timing {
        let Some(offset) = self.parts.own(physical) else {
            return Timing::Hit;
        };
        let line = self.parts.line;
        match self.turn(now, offset & !(line - 1), line) {
            start if start == now => Timing::Hit,
            start => Timing::Ready(start),
        }
    }

    #[inline]
    fn data(&mut self, now: Tick, physical: u64, access: Access) -> Timing {
        let offset = self.parts.own(physical);
        let offset = offset.expect("only the own memory has lines");
        // A read and a write in one step occupy the port twice.
        let bytes = match access {
            Access::Atomic => 2 * self.parts.width,
            Access::Load | Access::Store | Access::Walk => 1,
        };
        match self.turn(now, offset, bytes) {
            start if start == now => Timing::Hit,
            start => Timing::Ready(start + self.parts.hit),
        }
    }

    fn read(&mut self, physical: u64, bytes: u8) -> Result<u64, BusFault> {
        if !self.allows(physical, bytes.into(), false) {
            return Err(BusFault);
        }
        let place = self.place(physical, false);
        Ok(self.read_place(place, bytes))
    }

    fn allows(&self, physical: u64, bytes: u64, _: bool) -> bool {
        let size = self.parts.memory.bytes().len() as u64;
        let offset = self.parts.own(physical);
        offset.is_some_and(|offset| offset + bytes <= size)
    }

    #[inline]
    fn place(&self, physical: u64, _: bool) -> Place {
        let offset = self.parts.own(physical);
        offset.expect("only the own memory has lines")
    }

    #[inline]
    fn read_place(&mut self, place: Place, bytes: u8) -> u64 {
        self.parts.memory.read(place, bytes)
    }

    #[inline]
    fn write_place(&mut self, place: Place, bytes: u8, value: u64) {
        self.parts.memory.write(place, bytes, value);
    }

    #[inline]
    fn store(&mut self, now: Tick, physical: u64, place: Place, bytes: u8, value: u64) {
        self.write_place(place, bytes, value);
        if self.parts.htif.is_at(physical) && self.parts.stored_to_host(now, value) {
            self.write_place(place, 8, 0);
        }
    }

    fn reserve(&mut self, physical: u64) {
        let place = self.place(physical, false);
        self.parts.memory.reserve(self.parts.owner, place);
    }

    fn take_reservation(&mut self, physical: u64) -> Option<bool> {
        let place = self.place(physical, false);
        let owner = self.parts.owner;
        Some(self.parts.memory.take_reservation(owner, place))
    }

    #[inline]
    fn is_device(&self, physical: u64) -> bool {
        self.parts.own(physical).is_none()
    }

    fn is_remote(&self, physical: u64, atomic: bool) -> bool {
        if within(physical, self.parts.window, 1 << TILE_WINDOW_SHIFT).is_some() {
            return false;
        }
        match self.parts.map.find(physical, 1) {
            Some(Target::Memory(..) | Target::External(..)) => true,
            Some(Target::Register(..)) => !atomic,
            None => false,
        }
    }

    fn remote(
        &mut self,
        now: Tick,
        physical: u64,
        bytes: u8,
        operation: RemoteOperation,
    ) -> Result<u32, BusFault> {
        let request = self.parts.request(physical, bytes, operation);
        let (tile, kind) = request.ok_or(BusFault)?;
        let transaction = match operation {
            RemoteOperation::Load => Transaction::RemoteLoad,
            RemoteOperation::Store(_) => Transaction::RemoteStore,
            _ => Transaction::RemoteAtomic,
        };
        let parts = &mut *self.parts;
        parts.token = parts.token.wrapping_add(1);
        let (token, owner) = (parts.token, parts.owner);
        let packet = Packet::request(now, owner.tile, tile, owner, token, transaction, kind);
        parts.send(now, packet, self.fabric);
        Ok(token)
    }

    fn device_read(&mut self, now: Tick, physical: u64, bytes: u8) -> Result<DeviceRead, BusFault> {
        let parts = &mut *self.parts;
        parts.now = now;
        let value = if let Some(offset) = within(physical, CLINT_BASE, CLINT_SIZE) {
            parts.clint.read(now, offset, bytes)
        } else if let Some(offset) = within(physical, UART_BASE, UART_SIZE) {
            let uart = parts.uart.as_mut();
            uart.map(|uart| u64::from(uart.read(offset)))
        } else if let Some(offset) = parts.register(physical) {
            parts.read_register(offset, bytes)
        } else {
            let exit = within(physical, EXIT_BASE, EXIT_SIZE);
            exit.filter(|_| parts.exit).map(|_| 0)
        };
        let value = value.ok_or(BusFault)?;
        Ok(DeviceRead { value, extra: 0 })
    }

    fn device_write(
        &mut self,
        now: Tick,
        physical: u64,
        bytes: u8,
        value: u64,
    ) -> Result<DeviceWrite, BusFault> {
        let parts = &mut *self.parts;
        parts.now = now;
        if let Some(offset) = within(physical, CLINT_BASE, CLINT_SIZE) {
            parts
                .write_clint(now, offset, bytes, value)
                .ok_or(BusFault)?;
        } else if let Some(offset) = within(physical, UART_BASE, UART_SIZE) {
            let uart = parts.uart.as_mut().ok_or(BusFault)?;
            uart.write(offset, value as u8);
        } else if let Some(offset) = parts.register(physical) {
            let signal = parts.write_register(now, offset, bytes, value);
            let signal = signal.ok_or(BusFault)?;
            if offset == TILE_START {
                parts.note_start(parts.owner.tile, now);
            }
            parts.signals.extend(signal);
        } else if let Some(offset) = within(physical, EXIT_BASE, EXIT_SIZE)
            && parts.exit
        {
            if offset == 0
                && let Some(code) = exit_code(value as u32)
            {
                parts.finish(now, End::Exit(code));
                parts.recall = true;
            }
        } else {
            return Err(BusFault);
        }
        Ok(DeviceWrite::default())
    }

    fn epoch(&self) -> u32 {
        0
    }

    fn timer(&self, now: Tick) -> u64 {
        self.parts.clint.time(now)
    }

    fn marker(&mut self, now: Tick, pc: u64, kind: u16, value: u64, machine_mode: bool) {
        let known = MarkerKind::from_code(kind);
        // Markers about other activities are ignored in user mode. Schedule markers are always ignored, because this tile has no
        // multiplexer.
        let privileged = known.is_some_and(MarkerKind::is_privileged);
        if privileged && !machine_mode || known.is_some_and(MarkerKind::is_schedule) {
            return;
        }
        let parts = &mut *self.parts;
        let marker = Marker {
            tick: now,
            tile: parts.owner.tile,
            activity: parts.owner.activity,
            kind,
            value,
            pc,
        };
        if parts.markers.len() < MARKERS_MAX {
            parts.markers.push(marker);
        } else {
            parts.markers_lost += 1;
        }
        if let Some(observer) = &mut self.fabric.observer {
            observer.marker(&marker);
        }
    }

    #[inline]
    fn limit(&self) -> Tick {
        if self.parts.signals.is_empty() && !self.parts.recall {
            self.parts.limit.min(self.parts.next_event())
        } else {
            0
        }
    }
}

impl Parts {
    /// The offset in the tile's own register page.
    fn register(&self, physical: u64) -> Option<u64> {
        let page = self.window + TILE_REGISTERS;
        within(physical, page, TILE_REGISTERS_SIZE)
    }

    /// Whether another tile has a register for this access. Tiles differ only in the channels of their DMA engines.
    pub(super) fn is_register(
        &self,
        offset: u64,
        bytes: u8,
        operation: RemoteOperation,
        channels: u32,
    ) -> bool {
        if offset >= FIRST_CHANNEL {
            return is_register(channels, offset, bytes);
        }
        match operation {
            RemoteOperation::Store(_) => matches!(
                (offset, bytes),
                (TILE_DOORBELL | TILE_CORE, 4 | 8) | (TILE_START, 8)
            ),
            _ => self.read_register(offset, bytes).is_some(),
        }
    }
}
