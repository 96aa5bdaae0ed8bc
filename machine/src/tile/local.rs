//! The parts of a tile that are not components: windows, sending packets, and the effects of the unit's actions.
//!
//! Why it exists: hart, unit, card and caches all leave the tile through here. It does not know which of them asks.

use super::{Below, End, FROM_INTERFACE, Local, TileEvent, Window};
use crate::cache::Hierarchy;
use crate::config::HOME_ALIGNMENT;
use crate::device::HtifEffect;
use crate::dtu::{Dtu, DtuEvent};
use crate::fabric::Fabric;
use crate::noc::{Packet, PacketKind};
use crate::timeline::Event;
use crate::types::Tick;
use bulkhead_abi::dtu::{Endpoint, TLB_READ, TLB_WRITE};
use bulkhead_abi::memory_map::{MEMORY_BASE, PMP_WINDOW_SIZE};

impl Local {
    /// The time of the next event.
    #[inline]
    pub(super) fn next_event(&self) -> Tick {
        let event = self.queue.next_time().min(self.timer_at);
        event.min(self.alarms.next_time())
    }

    /// Takes the next event: the first of the unit's alarms, or the first of the queue.
    pub(super) fn next(&mut self, alarm: bool) -> Option<(Tick, TileEvent)> {
        if let Some((at, alarm)) = alarm.then(|| self.alarms.pop()).flatten() {
            return Some((at, TileEvent::Unit(DtuEvent::Due(alarm))));
        }
        self.queue.pop()
    }

    /// The hart is reset or stopped, so it no longer waits for tokens.
    pub(super) fn forget_asked(&mut self) {
        self.asked = [None; 2];
    }

    #[inline]
    pub(super) fn saw(&mut self, at: Tick, event: Event) {
        if let Some(timeline) = &mut self.timeline {
            timeline.add(at, event);
        }
    }

    pub(super) fn finish(&mut self, at: Tick, end: End) {
        if self.end.is_none() {
            self.end = Some((at, end));
        }
    }

    /// The window of an access, if the access is allowed.
    #[inline]
    pub(super) fn window(&self, physical: u64, bytes: u64, write: bool) -> Option<(&Window, u64)> {
        let relative = physical.wrapping_sub(MEMORY_BASE);
        let window = self.windows.get((relative / PMP_WINDOW_SIZE) as usize)?;
        let offset = relative % PMP_WINDOW_SIZE;
        let size = if write {
            window.writable
        } else {
            window.readable
        };
        (offset + bytes <= size).then_some((window, window.base + offset))
    }

    /// A store to the host word is in its line. True: the word must be cleared.
    #[cold]
    pub(super) fn stored_to_host(&mut self, now: Tick, value: u64) -> bool {
        // The hart stops at the end of its block, because the run may be over.
        self.recall = true;
        match self.htif.effect(value) {
            HtifEffect::None => {}
            HtifEffect::Exit(code) => self.finish(now, End::Exit(code)),
            HtifEffect::Print(byte) => {
                if let Some(uart) = &mut self.uart {
                    uart.put(byte);
                }
                return true;
            }
        }
        false
    }

    pub(super) fn synchronise(&mut self, unit: &Dtu, caches: &mut Hierarchy, fabric: &Fabric) {
        (self.rights, self.sleeping) = (unit.rights(), unit.is_sleeping());
        self.holds_back = unit.regulates() || self.asked.iter().any(Option::is_some);
        let owner = unit.current_owner();
        if owner != self.owner {
            self.owner = owner;
            caches.set_owner(owner);
        }
        if unit.epoch() == self.epoch {
            return;
        }
        self.epoch = unit.epoch();
        for (i, window) in self.windows.iter_mut().enumerate() {
            *window = Window::default();
            if let Endpoint::Memory(endpoint) = unit.endpoint(i as u16)
                && let Some(memory) = fabric
                    .memories
                    .iter()
                    .position(|m| m.id == endpoint.target_tile)
            {
                let size = endpoint
                    .size
                    .min((fabric.ram[memory].len() as u64).saturating_sub(endpoint.base))
                    .min(PMP_WINDOW_SIZE);
                let with = |right| {
                    if endpoint.rights as u64 & right != 0 {
                        size
                    } else {
                        0
                    }
                };
                *window = Window {
                    readable: with(TLB_READ),
                    writable: with(TLB_WRITE),
                    memory,
                    base: endpoint.base,
                    home: self.homes.of(memory, endpoint.base),
                };
                if endpoint.base % HOME_ALIGNMENT != 0 {
                    // A hart's knowledge of lines would not fit these windows.
                    *window = Window::default();
                }
            }
        }
        // Lines keep their homes. Data from memory that the tile may no longer read is not delivered.
        let windows = &self.windows;
        let length = u64::from(self.line);
        caches.refuse(|line| !readable(windows, line, length));
    }

    /// The address in the caches of the line that contains a tile-physical address.
    #[inline]
    pub(super) fn name(&self, physical: u64) -> u64 {
        self.homes.home(&self.windows, physical)
    }

    /// Whether the tile may read the whole line with this home.
    pub(super) fn may_read(&self, line: u64) -> bool {
        readable(&self.windows, line, self.line.into())
    }

    /// After the unit has acted: applies what it changed, and sends what it caused in the caches.
    pub(super) fn after_unit(
        &mut self,
        unit: &mut Dtu,
        caches: &mut Hierarchy,
        fabric: &mut Fabric,
    ) {
        self.synchronise(unit, caches, fabric);
        if self.deferred.is_empty() {
            return;
        }
        let mut lower = Below {
            unit: Some(unit),
            local: self,
            fabric,
        };
        lower.leave_deferred();
    }

    /// Panics if a packet leaves at `at` although the tile announced that none would leave so early: other tiles or the network may
    /// already be beyond that moment.
    fn check_announced(&self, at: Tick, packet: &Packet, fabric: &Fabric) {
        let announced = &self.announced;
        let least = match fabric.is_processing(packet.destination) {
            false => announced.packet,
            true => match packet.kind {
                PacketKind::Message { .. } => announced.message,
                _ => announced.command,
            },
        };
        assert!(
            at >= least,
            "tile {} said that nothing leaves before {least}, and at {at} it sends {packet:?}",
            self.id
        );
    }

    /// Sends a packet at `at`.
    pub(super) fn send(&mut self, at: Tick, packet: Packet, fabric: &mut Fabric) {
        self.check_announced(at, &packet, fabric);
        match fabric.send(at, Box::new(packet)) {
            Ok(head) => {
                let back = head + fabric.network.exit_lookahead();
                self.limit = self.limit.min(back);
            }
            Err(packet) => {
                // No tile there: the interface itself refuses, after the time in and out.
                let refusal = match packet.kind {
                    PacketKind::ReadRequest { bytes, .. } => PacketKind::ReadResponse {
                        error: true,
                        data: None,
                        bytes,
                    },
                    PacketKind::WriteRequest { .. } => PacketKind::WriteResponse { error: true },
                    PacketKind::Message { .. } => PacketKind::MessageResponse {
                        error: bulkhead_abi::dtu::DtuError::TargetRefused as u8,
                    },
                    _ => return,
                };
                let delay = 2 * fabric.network.entry_lookahead();
                let mut response = packet.response(refusal);
                response.account.service += delay;
                self.queue.push(
                    at + delay,
                    FROM_INTERFACE,
                    TileEvent::Packet(Box::new(response)),
                );
            }
        }
    }
}

/// Whether `length` bytes starting at a home can be read through a window.
fn readable(windows: &[Window], home: u64, length: u64) -> bool {
    let through = |window: &Window| {
        let offset = home.checked_sub(window.home);
        offset.is_some_and(|offset| offset + length <= window.readable)
    };
    windows.iter().any(through)
}
