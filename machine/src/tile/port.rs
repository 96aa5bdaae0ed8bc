//! The port through which others reach a tile's tightly coupled memories.
//!
//! Why it exists: a request is handled as in local memories: it asks for a turn, is performed in it, and is answered. Where the hart shares
//! the port, turns are given in the order of the requests, so a request is performed when it arrives: later requests come later. Where the
//! port belongs to the network alone, a request is performed at its turn. What it deliberately does not know: what the hart does meanwhile,
//! and the requester.

use super::{FROM_PORT, Tile, TileEvent};
use crate::fabric::Fabric;
use crate::hart::LineBytes;
use crate::ledger::Resource;
use crate::noc::{Packet, PacketKind};
use crate::ports::LocalMemoryStatistics;
use crate::types::Tick;

impl Tile {
    /// The next moment at which the tile may answer a request from outside. A tile that has ended the run answers nobody.
    pub fn next_answer(&self) -> Tick {
        match self.local.tcm.is_asked() && self.local.end.is_none() {
            true => self.local.queue.next_time(),
            false => Tick::MAX,
        }
    }

    /// Statistics of its tightly coupled memories together; `None`: it has none.
    pub fn coupled_statistics(&self) -> Option<LocalMemoryStatistics> {
        self.local.tcm.statistics()
    }

    /// Others reach memories of the tile.
    pub fn is_reached(&self) -> bool {
        self.local.tcm.exists()
    }

    /// A request from outside has arrived: it asks for its turn.
    pub(super) fn ask_port(&mut self, now: Tick, mut packet: Box<Packet>, fabric: &mut Fabric) {
        let (offset, bytes, turns) = match &packet.kind {
            PacketKind::ReadRequest { address, bytes }
            | PacketKind::WriteRequest { address, bytes, .. } => (*address, *bytes, 1),
            PacketKind::Remote {
                address,
                bytes,
                register: false,
                operation,
            } => (*address, u32::from(*bytes), operation.turns()),
            other => panic!("a tightly coupled memory got {other:?}"),
        };
        let (tile, owner) = (self.local.id, packet.owner);
        let account = &mut packet.account;
        let before = account.waited;
        let wait = |bank, holder, ticks| {
            let resource = Resource::LocalMemory { tile, bank };
            fabric.ledger.wait(account, owner, holder, resource, ticks);
        };
        let tcm = &mut self.local.tcm;
        let (start, shared) = tcm.remote(now, offset, (bytes.into(), turns), owner, wait);
        // The time up to the clock's edge is no wait for another owner.
        let account = &mut packet.account;
        account.service += start - now - (account.waited - before);
        if start == now || shared {
            return self.serve_port(start, packet, fabric);
        }
        let turn = TileEvent::Turn(packet);
        self.local.queue.push(start, FROM_PORT, turn);
    }

    /// A request from outside is performed in its turn and answered.
    pub(super) fn serve_port(&mut self, turn: Tick, mut packet: Box<Packet>, fabric: &mut Fabric) {
        let owner = packet.owner;
        let tcm = &mut self.local.tcm;
        let start = tcm.place(0);
        let memory = &mut self.caches.data_bytes_mut()[start..];
        let (offset, answer) = match &mut packet.kind {
            PacketKind::Remote {
                address,
                bytes,
                operation,
                ..
            } => {
                let (address, bytes, operation) = (*address, *bytes, *operation);
                let all = &mut tcm.reservations;
                let value = all.perform(memory, owner, address, bytes, operation);
                let answer = PacketKind::RemoteAnswer {
                    value,
                    bytes: if operation.is_posted() { 0 } else { bytes },
                    refused: false,
                };
                (address, answer)
            }
            PacketKind::ReadRequest { address, bytes } => {
                let (from, bytes) = (*address as usize, *bytes);
                let answer = PacketKind::ReadResponse {
                    error: false,
                    data: Some(memory[from..from + bytes as usize].into()),
                    bytes,
                };
                (*address, answer)
            }
            PacketKind::WriteRequest {
                address,
                bytes,
                data: Some(data),
            } => {
                let to = *address as usize;
                memory[to..to + *bytes as usize].copy_from_slice(data);
                tcm.reservations.end(*address, (*bytes).into());
                (*address, PacketKind::WriteResponse { error: false })
            }
            other => panic!("a tightly coupled memory serves {other:?}"),
        };
        let done = tcm.latency(offset);
        tcm.answered();
        packet.account.service += done;
        packet.answer(answer);
        self.local.send(turn + done, *packet, fabric);
    }
}

impl super::Local {
    /// A store of the hart to its own memories.
    pub(super) fn store_tcm(&mut self, memory: &mut [u8], (offset, bytes): (u64, u8), value: u64) {
        let at = self.tcm.place(offset) as u64;
        self.tcm.reservations.end(offset, bytes.into());
        LineBytes::write(memory, at, bytes, value);
    }
}
