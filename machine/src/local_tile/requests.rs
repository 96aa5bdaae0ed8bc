//! Requests and answers: what a tile receives, and what its DMA engine sends.
//!
//! Why it exists: a request for the local memory takes the same path whether it came over the network or from the tile's own DMA engine: it
//! asks for a port, is performed in its turn, and is answered. What it deliberately does not know: what the hart does meanwhile.

use super::map::Target;
use super::{Event, FROM_PORT, Guard, LocalTile, Parts, Signal};
use crate::dma::{Data, Dma, Failure, Side};
use crate::fabric::Fabric;
use crate::hart::{InterruptLine, RemoteOperation};
use crate::ledger::Resource;
use crate::noc::{Packet, PacketKind, Transaction};
use crate::types::{Tick, TileId, align};
use bulkhead_abi::memory_map::{TILE_DOORBELL, TILE_REGISTERS, TILE_START};

impl LocalTile {
    /// A packet has arrived, or the tile's own DMA engine accesses the tile's own memory.
    pub(super) fn packet(&mut self, now: Tick, mut packet: Box<Packet>, fabric: &mut Fabric) {
        if self.refuses(now, &packet) {
            return self.refuse(now, packet, fabric);
        }
        let mut refused = false;
        let value = match &packet.kind {
            PacketKind::RemoteAnswer {
                value, refused: no, ..
            } => {
                refused = *no;
                *value
            }
            PacketKind::WriteResponse { error: false } => 0,
            PacketKind::ReadResponse {
                error: false,
                data: Some(data),
                ..
            } => {
                let mut value = [0; 8];
                value[..data.len()].copy_from_slice(data);
                u64::from_le_bytes(value)
            }
            PacketKind::Remote { register: true, .. } => return self.serve(now, packet, fabric),
            PacketKind::Remote {
                address, operation, ..
            } => {
                let (owner, tile) = (packet.owner, self.parts.owner.tile);
                let account = &mut packet.account;
                let before = account.waited;
                let wait = |bank, holder, ticks| {
                    let resource = Resource::LocalMemory { tile, bank };
                    fabric.ledger.wait(account, owner, holder, resource, ticks);
                };
                let memory = &mut self.parts.memory;
                let start = memory.remote(now, *address, *operation, owner, wait);
                // The time up to the clock edge is not a wait for another owner.
                let account = &mut packet.account;
                account.service += start - now - (account.waited - before);
                if start == now || self.parts.memory.is_shared() {
                    // At a shared port, a later request gets a later turn.
                    return self.serve(start, packet, fabric);
                }
                let turn = Event::Turn(packet);
                return self.parts.queue.push(start, FROM_PORT, turn);
            }
            other => panic!("a local memory got {other:?}"),
        };
        let account = &packet.account;
        fabric
            .ledger
            .complete(packet.owner, packet.transaction, account, now);
        if is_dma(&packet) {
            let value = if refused {
                Err(Failure::Refused)
            } else {
                Ok(Data::Word(value))
            };
            return self.parts.dma().answer(now, packet.tag, value);
        }
        // The hart takes it at the next edge of its clock.
        let edge = align(now, self.parts.cycle);
        self.hart.complete_remote(packet.tag, edge, value);
        self.runnable |= self.parts.started;
    }

    /// Whether there is a guard and it refuses this packet.
    #[inline]
    fn refuses(&mut self, now: Tick, packet: &Packet) -> bool {
        let Some(guard) = &mut self.parts.guard else {
            return false;
        };
        let PacketKind::Remote {
            address,
            bytes,
            register,
            operation,
        } = packet.kind
        else {
            return false;
        };
        // The tile's own DMA engine belongs to the tile, like its hart.
        if packet.source == self.parts.owner.tile {
            return false;
        }
        let window = if register { TILE_REGISTERS } else { 0 };
        !guard.admits(now, packet.source, (window + address, bytes), operation)
    }

    /// Answers a request that is not performed: at the memory's edge, after its latency, without a turn.
    fn refuse(&mut self, now: Tick, mut packet: Box<Packet>, fabric: &mut Fabric) {
        let PacketKind::Remote {
            bytes, operation, ..
        } = packet.kind
        else {
            panic!("a guard refuses {packet:?}");
        };
        let value = Guard::refusal(operation, bytes);
        let done = align(now, self.parts.memory.cycle()) + self.parts.memory.latency();
        packet.account.service += done - now;
        let bytes = if operation.is_posted() { 0 } else { bytes };
        packet.answer(PacketKind::RemoteAnswer {
            value,
            bytes,
            refused: true,
        });
        self.parts.send(done, *packet, fabric);
    }

    /// Performs a request in its turn and answers it.
    pub(super) fn serve(&mut self, turn: Tick, mut packet: Box<Packet>, fabric: &mut Fabric) {
        let PacketKind::Remote {
            address,
            bytes,
            register,
            operation,
        } = packet.kind
        else {
            panic!("a local memory serves {packet:?}");
        };
        let value = match (register, operation) {
            (false, _) => {
                let memory = &mut self.parts.memory;
                memory.perform(packet.owner, address, bytes, operation)
            }
            (true, RemoteOperation::Store(value)) => {
                if address == TILE_DOORBELL && value & 1 != 0 {
                    *self.parts.rings.entry(packet.owner.tile).or_default() += 1;
                }
                if address == TILE_START {
                    self.parts.note_start(packet.owner.tile, turn);
                }
                let signal = self.parts.write_register(turn, address, bytes, value);
                let signal = signal.expect("the sender looked whether there is a register");
                if let Some(signal) = signal {
                    self.signal(signal, turn);
                }
                0
            }
            (true, _) => {
                let value = self.parts.read_register(address, bytes);
                value.expect("the sender looked whether there is a register")
            }
        };
        let done = self.parts.memory.latency();
        packet.account.service += done;
        let bytes = if operation.is_posted() { 0 } else { bytes };
        packet.answer(PacketKind::RemoteAnswer {
            value,
            bytes,
            refused: false,
        });
        if packet.destination == self.id() {
            // The tile's own DMA engine asked.
            let answer = Event::Packet(packet);
            return self.parts.queue.push(turn + done, FROM_PORT, answer);
        }
        self.parts.send(turn + done, *packet, fabric);
    }

    /// A step of the DMA engine: each side begins an access, and the hart is told what has finished.
    pub(super) fn step_dma(&mut self, now: Tick, fabric: &mut Fabric) {
        self.parts.dma().advance(now);
        // The element read longest ago continues first.
        for side in [Side::Write, Side::Read] {
            let begun = self.parts.dma().begin(side, now, &mut fabric.ledger);
            let Some((owner, tag, account, access)) = begun else {
                continue;
            };
            let (transaction, operation) = match access.data {
                Some(data) => (Transaction::DmaWrite, RemoteOperation::Store(data.word())),
                None => (Transaction::DmaRead, RemoteOperation::Load),
            };
            // Without bursts an access is one element, which has at most eight bytes.
            let bytes = u8::try_from(access.bytes).expect("a mesh moves single elements");
            let request = self.parts.request(access.address, bytes, operation);
            let Some((tile, kind)) = request else {
                self.parts.dma().answer(now, tag, Err(Failure::Nothing));
                continue;
            };
            let own = self.id();
            let mut packet = Packet::request(now, own, tile, owner, tag, transaction, kind);
            packet.account = account;
            match tile == own {
                true => self.packet(now, Box::new(packet), fabric),
                false => self.parts.send(now, packet, fabric),
            }
        }
        let dma = self.parts.dma();
        dma.end_step(now);
        let level = dma.interrupt();
        if self.parts.dma_interrupt != level {
            self.parts.dma_interrupt = level;
            self.signal(Signal::Line(InterruptLine::External, level), now);
        }
    }
}

/// Whether a packet answers an access of the tile's own DMA engine.
fn is_dma(packet: &Packet) -> bool {
    matches!(
        packet.transaction,
        Transaction::DmaRead | Transaction::DmaWrite
    )
}

impl Parts {
    /// The DMA engine of a tile that has one.
    fn dma(&mut self) -> &mut Dma {
        let dma = self.dma.as_deref_mut();
        dma.expect("only a tile with a DMA engine has something of it to do")
    }

    /// The request for aligned bytes at an address as used by the tile's hart, and the tile that receives it; `None` if nothing answers
    /// there.
    pub(super) fn request(
        &self,
        physical: u64,
        bytes: u8,
        operation: RemoteOperation,
    ) -> Option<(TileId, PacketKind)> {
        let remote = |address, register| PacketKind::Remote {
            address,
            bytes,
            register,
            operation,
        };
        if let Some(offset) = self.own(physical) {
            let exists = self.memory.has(offset, bytes.into());
            return exists.then(|| (self.owner.tile, remote(offset, false)));
        }
        match self.map.find(physical, bytes.into())? {
            Target::Memory(tile, address) => Some((tile, remote(address, false))),
            // The tile's own registers are not a target: they are not across the network.
            Target::Register(tile, address, channels) => {
                let is_other = tile != self.owner.tile;
                let exists = is_other && self.is_register(address, bytes, operation, channels);
                exists.then(|| (tile, remote(address, true)))
            }
            Target::External(tile, address) => {
                let count = u32::from(bytes);
                let kind = match operation {
                    RemoteOperation::Store(value) => PacketKind::WriteRequest {
                        address,
                        bytes: count,
                        data: Some(value.to_le_bytes()[..bytes.into()].into()),
                    },
                    RemoteOperation::Load => PacketKind::ReadRequest {
                        address,
                        bytes: count,
                    },
                    // The memory's controller performs it.
                    _ => remote(address, false),
                };
                Some((tile, kind))
            }
        }
    }
}
