//! What all tiles share: the network, the memory tiles, the ledger.
//!
//! Why it exists: tiles run in sequence, each for a window of time. Everything through which they can disturb each other is in one place,
//! with one order of events. What it deliberately does not know: harts, caches, DTUs.

mod homes;

use crate::config::PlatformConfig;
use crate::dram::MemoryController;
use crate::engine::EventQueue;
use crate::hart::RemoteOperation;
use crate::home::Home;
use crate::ledger::Ledger;
use crate::noc::{Account, Delivery, Network, PLANES_MAX, Packet, PacketKind};
use crate::observe::Observer;
use crate::reservations::Reservations;
use crate::types::{LINE_MAX, Tick, TileId};
use bulkhead_abi::dtu::DtuError;
use bulkhead_abi::translator::{drop_bits, insert_bits};

/// A memory tile without its bytes.
#[derive(Debug)]
pub struct MemoryTile {
    /// Number on the network.
    pub id: TileId,
    /// The controller.
    pub dram: MemoryController,
    /// Reservations of harts on a mesh.
    reservations: Reservations,
}

/// Sources of a memory tile's requests besides the networks: the second accesses of its own atomic operations.
const OWN: u32 = PLANES_MAX as u32;

/// The order of requests that arrive in one tick: by memory tile, then by network, then the memory's own.
fn arrival_order(memory: u16, source: u32) -> u32 {
    u32::from(memory) * (OWN + 1) + source
}

/// The range of an access in a memory, if it is inside.
fn range(memory: &[u8], address: u64, bytes: u32) -> Option<std::ops::Range<usize>> {
    let end = address.checked_add(bytes as u64)?;
    (end <= memory.len() as u64).then_some(address as usize..end as usize)
}

/// The answer of a memory that has performed an operation.
fn remote_answer(value: u64, bytes: u8) -> PacketKind {
    PacketKind::RemoteAnswer {
        value,
        bytes,
        refused: false,
    }
}

/// Everything between the tiles.
pub struct Fabric {
    /// The network.
    pub network: Network,
    /// Memory tiles, in configuration order.
    pub memories: Vec<MemoryTile>,
    /// Their bytes; none for a second port ([`Fabric::bytes_at`]). The host allocates pages when they are touched.
    pub ram: Vec<Vec<u8>>,
    /// For each memory tile: the bits that the translator in front of it drops, and the number of bytes for which names are contiguous.
    translators: Vec<(u64, u64)>,
    /// For each memory tile that is a second port: the memories behind it, with their sizes.
    behind: Vec<Vec<(usize, u64)>>,
    /// For each memory tile: in which order coherent clusters get its lines. Empty without coherent clusters.
    homes: Vec<Home>,
    /// All waits.
    pub ledger: Ledger,
    /// Receives reports, if any are wanted.
    pub observer: Option<Box<dyn Observer>>,
    /// Requests that will have arrived at a memory tile.
    arrivals: EventQueue<(u16, Box<Packet>)>,
    processing: usize,
    /// The earliest decision of a memory controller.
    decision: Tick,
    /// The time of the last event.
    now: Tick,
    /// For each processing tile: its unanswered requests, and the requests in transit to it.
    busy: Vec<u32>,
}

impl Fabric {
    /// An idle fabric. Tiles have positions: processing tiles first, then DMA engines and memory tiles, in configuration order. An engine
    /// counts as a processing tile: packets arrive at it.
    pub fn new(config: &PlatformConfig) -> Self {
        let mut places: Vec<(TileId, u16, bool)> = Vec::new();
        places.extend(config.tiles.iter().map(|t| (t.id, t.router, false)));
        places.extend(config.beside().map(|(id, router)| (id, router, false)));
        places.extend(config.memories.iter().map(|m| (m.id, m.router, true)));
        let clusters: Vec<TileId> = config
            .tiles
            .iter()
            .filter(|tile| tile.cluster.is_some())
            .map(|tile| tile.id)
            .collect();
        let network = Network::new(&config.network, &places);
        let mut coherent = config.coherent();
        // The order of a home's questions is that of the ports of the network.
        coherent.sort_by_key(|id| network.position(*id).map(|at| network.place(at)));
        let homes = match coherent.is_empty() {
            true => Vec::new(),
            false => {
                let memories = config.memories.iter();
                let line = config.coherent_line();
                memories.map(|m| Home::new(m.id, &coherent, line)).collect()
            }
        };
        Self {
            network,
            memories: config
                .memories
                .iter()
                .map(|m| MemoryTile {
                    id: m.id,
                    dram: MemoryController::new(&m.dram, m.id, &clusters),
                    reservations: Reservations::default(),
                })
                .collect(),
            ram: config
                .memories
                .iter()
                .map(|m| match m.second_port_of.is_empty() {
                    true => vec![0; m.size as usize],
                    false => Vec::new(),
                })
                .collect(),
            translators: config
                .memories
                .iter()
                .map(|m| (m.dropped, m.contiguous()))
                .collect(),
            behind: (0..config.memories.len())
                .map(
                    |index| match config.memories[index].second_port_of.is_empty() {
                        true => Vec::new(),
                        false => config.behind(index),
                    },
                )
                .collect(),
            homes,
            ledger: Ledger::new(),
            observer: None,
            arrivals: EventQueue::new(),
            processing: config.tiles.len() + config.beside().count(),
            decision: Tick::MAX,
            now: 0,
            busy: vec![0; config.tiles.len() + config.beside().count()],
        }
    }

    /// The time of the next event.
    #[inline]
    pub fn next_time(&self) -> Tick {
        let packets = self.network.next_time().min(self.arrivals.next_time());
        packets.min(self.decision)
    }

    /// The address that the controller of a memory tile gets: its translator drops bits.
    #[inline]
    fn translated(&self, index: usize, address: u64) -> u64 {
        drop_bits(address, self.translators[index].0)
    }

    /// The number of bytes with contiguous names from an address on, in a memory that has bytes.
    pub fn contiguous(&self, index: usize, address: u64) -> u64 {
        let chunk = self.translators[index].1;
        chunk - address % chunk
    }

    /// The memory that has the bytes at an address of a memory tile's window, by index, and the address there.
    #[inline]
    pub fn bytes_at(&self, index: usize, address: u64) -> (usize, u64) {
        self.bytes_behind(index, self.translated(index, address))
    }

    /// The same for an address behind the translator. A second port has no bytes of its own.
    #[inline]
    fn bytes_behind(&self, index: usize, address: u64) -> (usize, u64) {
        let mut rest = address;
        for &(memory, size) in &self.behind[index] {
            if rest < size {
                return (memory, rest);
            }
            rest -= size;
        }
        (index, address)
    }

    /// Every name of the bytes at an address of a memory that has bytes: those in its window, and the addresses at second ports.
    pub fn names(&self, index: usize, address: u64) -> Vec<(usize, u64)> {
        let dropped = self.translators[index].0;
        let values = 0..1 << dropped.count_ones();
        let own = values.map(|value| (index, insert_bits(address, dropped, value)));
        let mut names: Vec<(usize, u64)> = own.collect();
        for (port, behind) in self.behind.iter().enumerate() {
            let mut from = 0;
            for &(memory, size) in behind {
                if memory == index {
                    names.push((port, from + address));
                }
                from += size;
            }
        }
        names
    }

    /// Whether a processing tile has this number.
    pub fn is_processing(&self, id: TileId) -> bool {
        self.processing(id).is_some()
    }

    /// The position of a processing tile.
    pub fn processing(&self, id: TileId) -> Option<usize> {
        let position = self.network.position(id);
        position.filter(|position| *position < self.processing)
    }

    /// Takes a packet from a processing tile. Returns the time of its first event.
    ///
    /// # Errors
    /// The packet, if its source or destination does not exist.
    pub fn send(&mut self, at: Tick, packet: Box<Packet>) -> Result<Tick, Box<Packet>> {
        let ends = [packet.source, packet.destination].map(|id| self.network.position(id));
        let request = !packet.kind.is_response();
        let answered = packet.kind.is_answered();
        let head = self.network.inject(at, packet)?;
        assert!(
            head >= self.now,
            "a packet enters the network at {head}, which has gone on to {}",
            self.now
        );
        if request {
            let [source, destination] = ends;
            let waiting = source.filter(|_| answered);
            for position in waiting.into_iter().chain(destination) {
                if let Some(busy) = self.busy.get_mut(position) {
                    *busy += 1;
                }
            }
        }
        Ok(head)
    }

    /// Whether a packet that exists already, or its answer, may arrive at a processing tile (position).
    #[inline]
    pub fn may_arrive(&self, position: usize) -> bool {
        self.busy[position] != 0
    }

    /// Processes the next event. Returns a packet that will arrive at a processing tile, if any.
    pub fn step(&mut self) -> Option<Delivery> {
        self.now = self.next_time();
        let packets = self.network.next_time().min(self.arrivals.next_time());
        if self.decision < packets {
            self.decide();
            return None;
        }
        if self.arrivals.next_time() < self.network.next_time() {
            let arrival = self.arrivals.pop();
            let (now, (memory, packet)) = arrival.expect("an arrival has the earliest time");
            self.serve(now, memory as usize, packet);
            return None;
        }
        let delivery = match &mut self.observer {
            None => self.network.step(&mut self.ledger, None),
            Some(observer) => self.network.step(
                &mut self.ledger,
                Some(&mut |activity| observer.link(&activity)),
            ),
        }?;
        if delivery.position < self.processing {
            let busy = &mut self.busy[delivery.position];
            *busy = busy
                .checked_sub(1)
                .unwrap_or_else(|| panic!("nobody asked for what arrives: {:?}", delivery.packet));
            return Some(delivery);
        }
        let memory = (delivery.position - self.processing) as u16;
        let order = arrival_order(memory, delivery.plane.into());
        self.arrivals
            .push(delivery.at, order, (memory, delivery.packet));
        None
    }

    /// A request has arrived at a memory tile.
    fn serve(&mut self, now: Tick, index: usize, mut packet: Box<Packet>) {
        if matches!(
            packet.kind,
            PacketKind::Coherent { .. }
                | PacketKind::Surrendered { .. }
                | PacketKind::Grant { .. }
                | PacketKind::Managed
                | PacketKind::ReadResponse { .. }
                | PacketKind::WriteResponse { .. }
        ) {
            return self.serve_home(now, index, packet);
        }
        let memory = &mut self.memories[index];
        let account = packet.account;
        let (address, bytes, write) = match &packet.kind {
            PacketKind::ReadRequest { address, bytes } => (*address, *bytes, false),
            PacketKind::WriteRequest { address, bytes, .. } => (*address, *bytes, true),
            &PacketKind::Remote {
                address,
                bytes,
                register: true,
                operation,
            } => {
                // The bandwidth controller: no access to the chips.
                let value = memory.dram.register(now, (address, bytes), operation);
                let kind = match operation {
                    RemoteOperation::Load => remote_answer(value, bytes),
                    _ => remote_answer(0, 0),
                };
                self.answers(index);
                return self.respond(now, packet, account, kind);
            }
            // A conditional store that fails needs no access to the chips.
            PacketKind::Remote {
                address,
                bytes,
                operation: RemoteOperation::Conditional(_),
                ..
            } if !memory.reservations.has(packet.owner, *address) => {
                let kind = remote_answer(1, *bytes);
                memory.reservations.take(packet.owner, *address);
                return self.respond(now, packet, account, kind);
            }
            PacketKind::Remote {
                address,
                bytes,
                operation,
                ..
            } => {
                let writes = matches!(operation, RemoteOperation::Conditional(_));
                (*address, u32::from(*bytes), writes)
            }
            PacketKind::AtomicWrite { address, bytes, .. } => (*address, (*bytes).into(), true),
            PacketKind::Message { .. } => {
                // There are no receive endpoints here. The refusal costs only its travel time.
                let kind = PacketKind::MessageResponse {
                    error: DtuError::ReceiverGone as u8,
                };
                return self.respond(now, packet, account, kind);
            }
            answer => panic!("a memory tile asks for nothing, and got {answer:?}"),
        };
        // The controller knows addresses behind the translator, and the bytes may be behind another controller.
        let address = self.translated(index, address);
        let (place, offset) = self.bytes_behind(index, address);
        let memory = &mut self.memories[index];
        let ram = &mut self.ram[place];
        let access = (address, bytes, write);
        let Some(range) = range(ram, offset, bytes) else {
            let (error, data) = (true, None);
            let kind = match write {
                true => PacketKind::WriteResponse { error },
                false => PacketKind::ReadResponse { error, data, bytes },
            };
            return self.served(index, now, packet, account, kind);
        };
        // Bytes change in order of arrival: an atomic operation happens now, and then its result goes to the chips.
        let kind = match packet.kind {
            PacketKind::Remote {
                address,
                bytes,
                operation,
                ..
            } => {
                let (all, owner) = (&mut memory.reservations, packet.owner);
                let value = all.perform(ram, owner, offset, bytes, operation);
                match operation {
                    RemoteOperation::Modify(..) => PacketKind::AtomicWrite {
                        address,
                        bytes,
                        value,
                    },
                    _ => remote_answer(value, bytes),
                }
            }
            PacketKind::AtomicWrite { value, bytes, .. } => remote_answer(value, bytes),
            PacketKind::WriteRequest { ref data, .. } => {
                memory.reservations.end(address, bytes.into());
                if let Some(data) = data {
                    // Panics if the packet's data does not match its description.
                    ram[range.clone()].copy_from_slice(data);
                }
                if let Some(line) = packet.line.take() {
                    ram[range].copy_from_slice(&line[..bytes as usize]);
                }
                PacketKind::WriteResponse { error: false }
            }
            _ => {
                let data = match packet.transaction {
                    crate::noc::Transaction::CacheRead => {
                        let line = packet.line.insert([0; LINE_MAX]);
                        line[..bytes as usize].copy_from_slice(&ram[range]);
                        None
                    }
                    _ => Some(ram[range].into()),
                };
                let error = false;
                PacketKind::ReadResponse { error, data, bytes }
            }
        };
        self.access(now, index, access, packet, kind);
    }

    /// An access to a memory's chips, and what its packet becomes when the controller has served it.
    fn access(
        &mut self,
        now: Tick,
        index: usize,
        access: (u64, u32, bool),
        packet: Box<Packet>,
        answer: PacketKind,
    ) {
        let memory = &mut self.memories[index];
        memory.dram.access(now, access, packet, answer);
        self.answers(index);
    }

    /// The earliest decision of the memory controllers.
    fn decide(&mut self) {
        let (index, memory) = self
            .memories
            .iter_mut()
            .enumerate()
            .find(|(_, memory)| memory.dram.next_time() == self.decision)
            .unwrap_or_else(|| panic!("no controller decides at {}", self.decision));
        let ledger = &mut self.ledger;
        match &mut self.observer {
            None => memory.dram.step(ledger, None),
            Some(observer) => {
                let id = memory.id;
                let mut report = |activity| observer.bank(id, &activity);
                memory.dram.step(ledger, Some(&mut report));
            }
        }
        self.answers(index);
    }

    /// Sends the answers of what a memory's controller has served.
    fn answers(&mut self, index: usize) {
        for (at, packet, account, kind) in self.memories[index].dram.answers() {
            self.served(index, at, packet, account, kind);
        }
        let times = self.memories.iter().map(|memory| memory.dram.next_time());
        self.decision = times.min().unwrap_or(Tick::MAX);
    }

    /// An access of a memory's chips has ended: the answer leaves, now or by way of the home; or the second access of an atomic operation
    /// arrives.
    fn served(
        &mut self,
        index: usize,
        at: Tick,
        mut packet: Box<Packet>,
        account: Account,
        kind: PacketKind,
    ) {
        match (&kind, &packet.kind) {
            (PacketKind::AtomicWrite { .. }, _) | (_, PacketKind::Coherent { .. }) => {}
            (PacketKind::Stored, _) => {
                let transaction = crate::noc::Transaction::CacheWrite;
                return self
                    .ledger
                    .complete(packet.owner, transaction, &account, at);
            }
            _ => return self.respond(at, packet, account, kind),
        }
        (packet.kind, packet.account) = (kind, account);
        let index = index as u16;
        self.arrivals
            .push(at, arrival_order(index, OWN), (index, packet));
    }

    fn respond(&mut self, at: Tick, mut packet: Box<Packet>, account: Account, kind: PacketKind) {
        packet.answer(kind);
        packet.account = account;
        // The requester exists: it sent a packet.
        if let Err(packet) = self.network.inject(at, packet) {
            panic!("an answer to nobody: {packet:?}");
        }
    }
}

#[cfg(test)]
#[path = "fabric_tests.rs"]
mod tests;
