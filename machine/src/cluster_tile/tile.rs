//! A cluster as one tile: in which order its harts and its second level act.
//!
//! Why it exists: a hart runs ahead of the others only as far as no message can reach it. That is the earliest of: its own next event; the
//! next event of the second level and the way down; the next message for any other hart and both ways, up and down; and that other hart's
//! next instruction, both ways and the look-up. The second level acts up to the earliest moment of a hart and the way up, and up to the
//! moment at which memory may answer. A device is accessed when no other hart can access one before. An interrupt of another part reaches
//! its controller one way down after its packet; harts stop there until it has come. So every hart and the second level see everything in
//! the order of its moments, and those of one moment by port, whatever the lengths of windows and whichever hart the host visits first.
//! What it deliberately does not know: other tiles.

use super::devices::Devices;
use super::directory::PORTS;
use super::messages::Port;
use super::port::{FROM_DEVICE, FROM_SECOND_LEVEL, HartPort, Inbound};
use super::second_level::{SecondLevel, account};
use crate::beside::EngineMap;
use crate::cache::CacheStatistics;
use crate::config::{ClusterConfig, MemoryMap, PlatformConfig, TileConfig};
use crate::device::{Htif, Uart};
use crate::fabric::Fabric;
use crate::hart::Hart;
use crate::ledger::Level;
use crate::noc::Packet;
use crate::observe::Marker;
use crate::tcm::TcmMap;
use crate::tile::End;
use crate::types::{Owner, Tick, TileId, align, later};

/// See the module's documentation.
pub struct ClusterTile {
    pub(super) harts: Vec<HartPort>,
    pub(super) second: SecondLevel,
    devices: Devices,
    pub(super) line: u64,
    /// The host visits the harts in reverse order, which must change nothing.
    #[cfg(test)]
    pub(crate) backwards: bool,
}

/// Moments of harts, by port.
#[derive(Clone, Copy, Debug)]
struct Moments {
    all: [Tick; PORTS],
    harts: usize,
}

impl Moments {
    fn of(moments: impl Iterator<Item = Tick>) -> Self {
        let (mut all, mut harts) = ([Tick::MAX; PORTS], 0);
        for moment in moments {
            all[harts] = moment;
            harts += 1;
        }
        Self { all, harts }
    }

    fn but(&self, port: usize) -> impl Iterator<Item = (usize, Tick)> {
        let all = self.all[..self.harts].iter().copied().enumerate();
        all.filter(move |(other, _)| *other != port)
    }

    /// The earliest moment of all harts but that at `port`.
    #[inline]
    fn of_others(&self, port: usize) -> Tick {
        self.but(port)
            .fold(Tick::MAX, |least, (_, at)| least.min(at))
    }

    /// Before this moment, the hart at `port` comes before all others. At equal moments, the lowest port comes first.
    #[inline]
    fn before_others(&self, port: usize) -> Tick {
        let until = |(other, at): (usize, Tick)| later(at, u64::from(other > port));
        self.but(port).map(until).fold(Tick::MAX, Tick::min)
    }
}

impl ClusterTile {
    /// A cluster of a chip, with halted harts and empty caches. The configuration is valid. `None`: the tile has other parts.
    pub fn new(
        tile: &TileConfig,
        cluster: &ClusterConfig,
        platform: &PlatformConfig,
    ) -> Option<Self> {
        let harts = (0..cluster.harts.len() as Port)
            .map(|port| HartPort::new(tile, cluster, port))
            .collect::<Option<Vec<_>>>()?;
        Some(Self {
            harts,
            second: SecondLevel::new(
                tile,
                cluster,
                (
                    MemoryMap::new(platform),
                    EngineMap::new(platform),
                    TcmMap::new(platform),
                ),
            )?,
            devices: Devices::new(tile, cluster, platform),
            line: tile.hart.line.into(),
            #[cfg(test)]
            backwards: false,
        })
    }

    /// Number on the network.
    pub fn id(&self) -> TileId {
        self.second.tile
    }

    /// Its caches are coherent with those of other clusters.
    pub fn is_coherent(&self) -> bool {
        self.second.directory.coherent
    }

    /// The harts, by port.
    pub fn harts(&self) -> impl Iterator<Item = &Hart> {
        self.harts.iter().map(|port| &port.hart)
    }

    /// The harts, each with the ticks of its cycle, by port.
    pub fn clocked(&self) -> impl Iterator<Item = (&Hart, Tick)> {
        self.harts.iter().map(|port| (&port.hart, port.side.cycle))
    }

    /// The hart at a port.
    pub fn hart(&self, port: usize) -> Option<&Hart> {
        Some(&self.harts.get(port)?.hart)
    }

    /// The hart at a port, if it was started, abandons its current work or wait and continues at `pc`, not before `at`.
    pub fn divert(&mut self, port: usize, at: Tick, pc: u64) {
        self.harts[port].divert(at, pc);
    }

    /// The console.
    pub fn uart(&self) -> Option<&Uart> {
        self.devices.uart.as_ref()
    }

    /// The console, to feed it.
    pub fn uart_mut(&mut self) -> Option<&mut Uart> {
        self.devices.uart.as_mut()
    }

    /// Sets the address of the program's `tohost` word.
    pub fn set_tohost(&mut self, physical: u64) {
        self.devices.htif = Htif::new(physical);
        for hart in &mut self.harts {
            hart.set_tohost(physical);
        }
    }

    /// The software's markers, those of each hart in order of time. The activity is the port of the hart.
    pub fn markers(&self) -> impl Iterator<Item = &Marker> {
        self.harts.iter().flat_map(|hart| &hart.side.markers)
    }

    /// Number of markers that were not kept because there were too many.
    pub fn markers_lost(&self) -> u64 {
        self.harts.iter().map(|hart| hart.side.markers_lost).sum()
    }

    /// How the run ended, if it did.
    pub fn end(&self) -> Option<(Tick, End)> {
        self.devices.end.map(|(at, _, end)| (at, end))
    }

    /// The port of the hart that ended it.
    pub fn ended_by(&self) -> Option<usize> {
        self.devices.end.map(|(_, port, _)| usize::from(port))
    }

    /// Forgets how the run ended, so that the next run can continue.
    pub fn clear_end(&mut self) {
        self.devices.end = None;
    }

    /// Statistics of the caches, for each hart.
    pub fn statistics(&self) -> Vec<(Level, Owner, CacheStatistics)> {
        let mut all = Vec::new();
        for hart in &self.harts {
            let [instructions, data] = hart.side.first.statistics();
            all.push((Level::L1i, hart.side.owner, instructions));
            all.push((Level::L1d, hart.side.owner, data));
        }
        let second = self.second.directory.statistics();
        all.extend(
            second
                .into_iter()
                .map(|(of, counts)| (Level::L2, of, counts)),
        );
        all
    }

    /// How often each hart has reserved a line.
    pub fn reservations(&self) -> impl Iterator<Item = (Owner, u64)> {
        self.harts
            .iter()
            .map(|hart| (hart.side.owner, hart.side.reservations))
    }

    /// Starts the hart at a port at `pc` with `a0` and `a1`. False: there is none.
    pub fn start(&mut self, port: usize, at: Tick, pc: u64, a0: u64, a1: u64) -> bool {
        let hart = self.harts.get_mut(port);
        hart.map(|hart| hart.start(at, pc, a0, a1)).is_some()
    }

    /// Takes a packet that will have arrived at `at`.
    pub fn deliver(&mut self, at: Tick, packet: Box<Packet>) {
        self.second.deliver(at, packet);
    }

    /// The next moment at which something happens here. A hart that has ended the run does nothing more.
    pub fn next_time(&self) -> Tick {
        let ended = self.devices.end.map(|(_, port, _)| usize::from(port));
        let harts = self.harts.iter().enumerate();
        let acting = harts.filter(|(port, _)| Some(*port) != ended);
        let next = acting.map(|(_, hart)| hart.next_time()).min();
        let next = next.unwrap_or(Tick::MAX).min(self.second.next_time());
        next.min(self.devices.next_interrupt())
    }

    /// A moment before which this tile hands no packet to the network.
    pub fn next_packet(&self) -> Tick {
        let harts = self.harts.iter().map(HartPort::next_time).min();
        let up = harts.unwrap_or(Tick::MAX);
        let up = up.min(self.devices.next_interrupt());
        let up = later(up, self.second.up);
        up.min(self.second.next_time())
    }

    /// Acts up to the moment at which a packet may arrive, and not at or after `limit`.
    pub fn run(&mut self, arrival: Tick, limit: Tick, fabric: &mut Fabric) {
        self.second.limit = Tick::MAX;
        while self.act_once(arrival, limit, fabric) {}
    }

    /// Lets the second level and then every hart act as far as they can. Returns whether one of them could.
    fn act_once(&mut self, arrival: Tick, limit: Tick, fabric: &mut Fabric) -> bool {
        let Self {
            harts,
            second,
            devices,
            ..
        } = self;
        let mut acted = false;
        let earliest = harts.iter().map(HartPort::next_time).min();
        let mut earliest = earliest.unwrap_or(Tick::MAX);
        earliest = earliest.min(devices.next_interrupt());
        loop {
            // Replies and requests of harts, and packets, that are still to come.
            let end = later(earliest, second.up);
            let end = end.min(arrival).min(second.limit).min(limit);
            if second.next_time() >= end {
                break;
            }
            acted = true;
            let now = second.step(fabric);
            let there = now + second.down;
            if let Some(outcome) = second.ended.take() {
                devices.end_operation(there, outcome);
            }
            for (port, mut down) in second.directory.out.drain(..) {
                let side = &mut harts[usize::from(port)].side;
                let there = align(there, side.cycle);
                if let Some(account) = account(&mut down) {
                    account.service += there - now;
                }
                side.inbox
                    .push(there, FROM_SECOND_LEVEL, Inbound::Down(down));
                earliest = earliest.min(there);
            }
            for source in second.interrupts.drain(..) {
                devices.interrupt(there, source);
                earliest = earliest.min(there);
            }
            for (port, token, value) in second.answers.drain(..) {
                let side = &mut harts[usize::from(port)].side;
                let there = align(there, side.cycle);
                let answer = Inbound::Answer(token, value);
                side.inbox.push(there, FROM_SECOND_LEVEL, answer);
                earliest = earliest.min(there);
            }
        }
        // At the moment of the end, others may end the run, too: then the lowest port does.
        let limit = devices.end.map_or(limit, |(at, ..)| limit.min(at + 1));
        // An interrupt reaches its controller before the accesses of its moment, and after all earlier ones.
        let interrupt = devices.next_interrupt();
        if interrupt < limit && harts.iter().all(|hart| hart.next_time() >= interrupt) {
            acted = true;
            devices.take_interrupt(&mut |port, at, effect| {
                let side = &mut harts[port].side;
                let at = align(at, side.cycle);
                side.inbox.push(at, FROM_DEVICE, Inbound::Device(effect));
            });
        }
        let limit = limit.min(devices.next_interrupt());
        let mut reach = Moments::of(harts.iter().map(|hart| hart.reaches(second)));
        let mut next = Moments::of(harts.iter().map(HartPort::next_time));
        for i in 0..harts.len() {
            #[cfg(test)]
            let i = if self.backwards {
                harts.len() - 1 - i
            } else {
                i
            };
            // Harts that have run in this round have advanced, and what they have sent is on its way to the second level.
            let below = arrival.min(second.limit).min(second.next_time());
            let below = later(below, second.down);
            let horizon = reach.of_others(i).min(below).min(limit);
            if next.all[i] >= horizon {
                continue;
            }
            let devices_until = next.before_others(i).min(below);
            acted |= harts[i].run(horizon, devices_until, second, devices, fabric);
            let effects = std::mem::take(&mut harts[i].side.others);
            for &(port, at, effect) in &effects {
                let side = &mut harts[port].side;
                let at = align(at, side.cycle);
                side.inbox.push(at, FROM_DEVICE, Inbound::Device(effect));
                reach.all[port] = harts[port].reaches(second);
                next.all[port] = harts[port].next_time();
            }
            reach.all[i] = harts[i].reaches(second);
            next.all[i] = harts[i].next_time();
        }
        acted
    }
}
