//! A DMA engine as a part of its own: at the network, beside tiles and memories.
//!
//! Why it exists: on a chip whose harts have caches, an engine is a device of the whole chip. Harts of all tiles read and write its
//! registers over the network, and its accesses go to the memories, and to those of tiles, as packets of its own. It does not see caches:
//! software flushes what it has stored, and what an engine has written. A channel that begins to ask for an interrupt sends a message to the
//! tile that the platform says. What it deliberately does not know: who programs it, and other parts.

use super::{Data, Dma, DmaStatistics, Failure, Side};
use crate::config::{MemoryMap, PlatformConfig};
use crate::engine::EventQueue;
use crate::fabric::Fabric;
use crate::hart::RemoteOperation;
use crate::noc::{Delivery, Packet, PacketKind, Transaction};
use crate::tcm::TcmMap;
use crate::types::{Tick, TileId, align};
use bulkhead_abi::memory_map::{DMA_BASE, DMA_SIZE};
use bulkhead_abi::plic::source;
use std::sync::Arc;

/// The register pages of the engines, as tiles find them.
#[derive(Clone, Debug)]
pub struct EngineMap {
    /// Of each engine: its number on the network, and its channels.
    engines: Arc<[(TileId, u32)]>,
}

impl EngineMap {
    /// The map of a platform.
    pub fn new(platform: &PlatformConfig) -> Self {
        let engines = platform.engines.iter();
        let engines = engines.map(|engine| (engine.id, engine.dma.channels));
        Self {
            engines: engines.collect(),
        }
    }

    fn page(&self, physical: u64) -> Option<(TileId, u32, u64)> {
        let offset = physical.wrapping_sub(DMA_BASE);
        let (id, channels) = self.engines.get((offset / DMA_SIZE) as usize)?;
        Some((*id, *channels, offset % DMA_SIZE))
    }

    /// Whether an address is in the page of an engine.
    #[inline]
    pub fn has(&self, physical: u64) -> bool {
        !self.engines.is_empty() && self.page(physical).is_some()
    }

    /// The engine of a register and the request for it; `None` if there is no such register, or the operation is not possible.
    pub fn request(
        &self,
        physical: u64,
        bytes: u8,
        operation: RemoteOperation,
    ) -> Option<(TileId, PacketKind, Transaction)> {
        let (id, channels, address) = self.page(physical)?;
        let transaction = match operation {
            RemoteOperation::Load => Transaction::RemoteLoad,
            RemoteOperation::Store(_) => Transaction::RemoteStore,
            _ => return None,
        };
        let kind = PacketKind::Remote {
            address,
            bytes,
            register: true,
            operation,
        };
        let exists = super::is_register(channels, address, bytes);
        exists.then_some((id, kind, transaction))
    }
}

/// See the module's documentation.
#[derive(Debug)]
pub struct DmaPart {
    id: TileId,
    dma: Dma,
    queue: EventQueue<Box<Packet>>,
    map: MemoryMap,
    tcms: TcmMap,
    cycle: Tick,
    /// Ticks from an access to a register to its answer.
    registers: Tick,
    /// Nothing that the engine has sent since the window of time began can come back before this tick.
    limit: Tick,
    /// Least time from a packet that leaves to one that it causes here.
    back: Tick,
    /// The tile that it interrupts, and the source of its first channel there.
    interrupts: Option<(TileId, u32)>,
}

impl DmaPart {
    /// The engine at a place in the configuration, at rest. `back`: the least time from a packet of one part to its arrival at another.
    pub fn new(place: u32, platform: &PlatformConfig, back: Tick) -> Self {
        let config = &platform.engines[place as usize];
        Self {
            id: config.id,
            dma: Dma::new(&config.dma, config.id),
            queue: EventQueue::new(),
            map: MemoryMap::new(platform),
            tcms: TcmMap::new(platform),
            cycle: config.dma.cycle,
            registers: config.registers * config.dma.cycle,
            limit: Tick::MAX,
            back,
            interrupts: config.interrupts.map(|tile| (tile, source(place, 0))),
        }
    }

    /// Number on the network.
    pub fn id(&self) -> TileId {
        self.id
    }

    /// What it did.
    pub fn statistics(&self) -> &DmaStatistics {
        self.dma.statistics()
    }

    /// A register as a tool sees it.
    pub fn register(&self, offset: u64) -> Option<u64> {
        self.dma.read(offset, 8)
    }

    /// The next moment at which something happens here. It hands no packet to the network before.
    pub fn next_time(&self) -> Tick {
        self.queue.next_time().min(self.dma.next_time())
    }

    /// Takes a packet that will have arrived.
    pub fn deliver(&mut self, delivery: Delivery) {
        let source = delivery.plane.into();
        self.queue.push(delivery.at, source, delivery.packet);
    }

    /// Acts up to `horizon`, or to the moment at which something comes back that it has sent.
    pub fn run(&mut self, horizon: Tick, fabric: &mut Fabric) {
        self.limit = Tick::MAX;
        while self.next_time() < horizon.min(self.limit) {
            // In one tick, the engine comes last, so it sees what has arrived.
            match self.queue.next_time() <= self.dma.next_time() {
                true => self.packet(fabric),
                false => self.step(fabric),
            }
        }
    }

    fn send(&mut self, at: Tick, packet: Box<Packet>, fabric: &mut Fabric) {
        match fabric.send(at, packet) {
            Ok(_) => self.limit = self.limit.min(at + self.back),
            Err(packet) => panic!("the map leads to a part that does not exist: {packet:?}"),
        }
    }

    fn packet(&mut self, fabric: &mut Fabric) {
        let (now, mut packet) = self.queue.pop().expect("a packet has the earliest time");
        let data = match &mut packet.kind {
            PacketKind::Remote {
                address,
                bytes,
                register: true,
                operation,
            } => {
                let (address, bytes, operation) = (*address, *bytes, *operation);
                return self.register_access(now, packet, (address, bytes, operation), fabric);
            }
            PacketKind::ReadResponse {
                error: false,
                data: Some(data),
                ..
            } => Data::Burst(std::mem::take(data)),
            PacketKind::WriteResponse { error: false } => Data::Word(0),
            other => panic!("a DMA engine got {other:?}"),
        };
        let (owner, transaction) = (packet.owner, packet.transaction);
        fabric
            .ledger
            .complete(owner, transaction, &packet.account, now);
        self.dma.answer(now, packet.tag, Ok(data));
    }

    fn register_access(
        &mut self,
        now: Tick,
        mut packet: Box<Packet>,
        (address, bytes, operation): (u64, u8, RemoteOperation),
        fabric: &mut Fabric,
    ) {
        let value = match operation {
            RemoteOperation::Load => self.dma.read(address, bytes),
            RemoteOperation::Store(value) => {
                let written = self.dma.write(now, address, bytes, value);
                written.map(|()| 0)
            }
            _ => None,
        };
        let value = value.expect("the sender looked whether there is a register");
        let done = align(now, self.cycle) + self.registers;
        packet.account.service += done - now;
        packet.answer(PacketKind::RemoteAnswer {
            value,
            bytes: if operation.is_posted() { 0 } else { bytes },
            refused: false,
        });
        self.send(done, packet, fabric);
    }

    /// Sends a message for every channel that has begun to ask for an interrupt.
    fn interrupt(&mut self, now: Tick, fabric: &mut Fabric) {
        while let Some((channel, owner)) = self.dma.take_raised() {
            let Some((tile, first)) = self.interrupts else {
                continue;
            };
            let number = first as u16 + channel;
            let (transaction, kind) = (
                Transaction::Interrupt,
                PacketKind::Interrupt { source: number },
            );
            let tag = number.into();
            let packet = Packet::request(now, self.id, tile, owner, tag, transaction, kind);
            self.send(now, Box::new(packet), fabric);
        }
    }

    /// The memory tile, or the tile with tightly coupled memories, that has all bytes of a range, and the address there.
    fn place(&self, address: u64, bytes: u64) -> Option<(TileId, u64)> {
        let memory = self.map.find(address);
        let memory = memory.filter(|_| self.map.has(address, bytes));
        match memory {
            Some((memory, address)) => Some((self.map.id(memory), address)),
            None => self.tcms.find(address, bytes),
        }
    }

    /// A step of the engine: each side begins an access.
    fn step(&mut self, fabric: &mut Fabric) {
        let now = self.dma.next_time();
        self.dma.advance(now);
        self.interrupt(now, fabric);
        // The element read longest ago continues first.
        for side in [Side::Write, Side::Read] {
            let begun = self.dma.begin(side, now, &mut fabric.ledger);
            let Some((owner, tag, account, access)) = begun else {
                continue;
            };
            let (address, bytes) = (access.address, access.bytes);
            let Some((to, address)) = self.place(address, bytes.into()) else {
                self.dma.answer(now, tag, Err(Failure::Nothing));
                continue;
            };
            let (transaction, kind) = match access.data {
                None => {
                    let kind = PacketKind::ReadRequest { address, bytes };
                    (Transaction::DmaRead, kind)
                }
                Some(data) => {
                    let data = match data {
                        Data::Burst(data) => data,
                        Data::Word(value) => value.to_le_bytes()[..bytes as usize].into(),
                    };
                    let kind = PacketKind::WriteRequest {
                        address,
                        bytes,
                        data: Some(data),
                    };
                    (Transaction::DmaWrite, kind)
                }
            };
            let mut packet = Packet::request(now, self.id, to, owner, tag, transaction, kind);
            packet.account = account;
            self.send(now, Box::new(packet), fabric);
        }
        self.dma.end_step(now);
    }
}
