//! A DMA engine, a peripheral or the doorbells as a separate part of the network, beside tiles and memories.
//!
//! Why it exists: on a chip whose harts have caches, an engine is a device of the whole chip. Harts of all tiles read and write its
//! registers over the network, and its accesses travel as packets to the memories, including those of tiles. It does not see caches:
//! software flushes lines that it has stored, and lines that an engine has written. If the engine or the peripheral is coherent, the home
//! agents of the memories ask the coherent clusters for each line that it accesses, so software flushes nothing there. A channel that
//! begins to request an interrupt sends a message to the tile that the platform names. Doorbells move no bytes; a ring sends such a
//! message to the tile of the hart that is rung for. What it deliberately does not know: which program uses it, and other parts.
//!
//! An access of a coherent part lies in one line: bursts end at multiples of their length, which is at most a line; each element, word of a
//! descriptor and flag is aligned to its size.

use crate::config::{MemoryMap, PlatformConfig};
use crate::dma::{self, Access, Data, Dma, DmaStatistics, Failure, Side};
use crate::doorbells::{self, Doorbells};
use crate::engine::EventQueue;
use crate::fabric::Fabric;
use crate::hart::RemoteOperation;
use crate::ledger::Ledger;
use crate::noc::{Account, Delivery, Packet, PacketKind, Transaction, Want};
use crate::peripheral::{self, Peripheral};
use crate::tcm::TcmMap;
use crate::types::{Owner, Tick, TileId, align, inline};
use bulkhead_abi::bandwidth::BC_END;
use bulkhead_abi::memory_map::{BANDWIDTH_BASE, BANDWIDTH_SIZE, DMA_BASE, DMA_SIZE};
use bulkhead_abi::plic::source;
use std::sync::Arc;

/// The register pages of engines and peripherals, as tiles find them.
#[derive(Clone, Debug)]
pub struct EngineMap {
    /// In the order of the pages.
    pages: Arc<[Page]>,
    /// By memory: the page of its bandwidth controller, if it has one.
    bandwidth: Arc<[Option<Page>]>,
}

/// The part whose registers a page has.
#[derive(Clone, Debug)]
enum Kind {
    /// The registers of a DMA engine with this many channels.
    Engine(u32),
    Peripheral,
    /// The bells of this many harts. Those that a user may ring follow the users.
    Doorbells(usize, Arc<[u64]>),
    /// The registers of a memory's bandwidth controller.
    Bandwidth,
}

/// The page of a part beside the tiles, or of a memory.
#[derive(Clone, Debug)]
struct Page {
    /// Number on the network.
    id: TileId,
    kind: Kind,
    /// The harts that may use it; `None`: all.
    users: Option<Vec<Owner>>,
}

impl EngineMap {
    /// The map of a platform.
    pub fn new(platform: &PlatformConfig) -> Self {
        let engines = platform.engines.iter().map(|engine| Page {
            id: engine.id,
            kind: Kind::Engine(engine.dma.channels),
            users: None,
        });
        let peripherals = platform.peripherals.iter().map(|one| Page {
            id: one.id,
            kind: Kind::Peripheral,
            users: one.users.clone(),
        });
        let doorbells = platform.doorbells.iter().map(|one| {
            let users = one.users.iter().flatten();
            let (users, may): (Vec<Owner>, Vec<u64>) = users.copied().unzip();
            Page {
                id: one.id,
                kind: Kind::Doorbells(platform.bells().len(), may.into()),
                users: one.users.is_some().then_some(users),
            }
        });
        // The harts that program a cluster's capacity controller program these, too.
        let programmers = platform.clusters().flat_map(|(tile, cluster)| {
            let bits = cluster.capacity.as_ref().map_or(0, |one| one.programmers);
            let ports = (0..cluster.harts.len() as u16).filter(move |port| bits >> port & 1 != 0);
            ports.map(|port| Owner::new(tile.id, port))
        });
        let programmers: Vec<Owner> = programmers.collect();
        let bandwidth = platform.memories.iter().map(|memory| {
            memory.dram.bandwidth.map(|_| Page {
                id: memory.id,
                kind: Kind::Bandwidth,
                users: Some(programmers.clone()),
            })
        });
        let bandwidth: Arc<[Option<Page>]> = bandwidth.collect();
        Self {
            pages: engines.chain(peripherals).chain(doorbells).collect(),
            bandwidth: match bandwidth.iter().any(Option::is_some) {
                true => bandwidth,
                false => Arc::new([]),
            },
        }
    }

    fn page(&self, physical: u64) -> Option<(&Page, u64)> {
        let offset = physical.wrapping_sub(DMA_BASE);
        if let Some(page) = self.pages.get((offset / DMA_SIZE) as usize) {
            return Some((page, offset % DMA_SIZE));
        }
        let offset = physical.wrapping_sub(BANDWIDTH_BASE);
        let page = self.bandwidth.get((offset / BANDWIDTH_SIZE) as usize)?;
        Some((page.as_ref()?, offset % BANDWIDTH_SIZE))
    }

    /// Whether an address is in the page of an engine.
    #[inline]
    pub fn has(&self, physical: u64) -> bool {
        let any = !self.pages.is_empty() || !self.bandwidth.is_empty();
        any && self.page(physical).is_some()
    }

    /// The part with a register and the request for it; `None` if there is no such register, the operation is not possible, or this hart
    /// may not use it.
    pub fn request(
        &self,
        owner: Owner,
        physical: u64,
        bytes: u8,
        operation: RemoteOperation,
    ) -> Option<(TileId, PacketKind, Transaction)> {
        let (page, address) = self.page(physical)?;
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
        let users = page.users.as_ref();
        let user = users.map(|users| users.iter().position(|user| *user == owner));
        let exists = match &page.kind {
            Kind::Engine(channels) => dma::is_register(*channels, address, bytes),
            Kind::Peripheral => peripheral::is_register(address, bytes),
            Kind::Doorbells(harts, may) => {
                let may = user.flatten().map_or(u64::MAX, |user| may[user]);
                doorbells::is_register(*harts, may, address, bytes)
            }
            Kind::Bandwidth => {
                matches!(bytes, 4 | 8) && address.is_multiple_of(bytes.into()) && address < BC_END
            }
        };
        let may = user.is_none_or(|user| user.is_some());
        (exists && may).then_some((page.id, kind, transaction))
    }
}

/// The part that moves the bytes.
#[derive(Debug)]
enum Mover {
    Dma(Dma),
    Peripheral(Box<Peripheral>),
    /// It moves none.
    Doorbells(Doorbells),
}

/// A part begins to ask for an interrupt.
struct Raised {
    /// The tile, if the access says it, and not the platform.
    tile: Option<TileId>,
    /// The channel; of doorbells, the port of the hart in its tile.
    channel: u16,
    /// In whose name.
    owner: Owner,
}

impl Mover {
    fn statistics(&self) -> Option<&DmaStatistics> {
        match self {
            Mover::Dma(dma) => Some(dma.statistics()),
            Mover::Peripheral(one) => Some(one.statistics()),
            Mover::Doorbells(_) => None,
        }
    }

    fn next_time(&self) -> Tick {
        match self {
            Mover::Dma(dma) => dma.next_time(),
            Mover::Peripheral(one) => one.next_time(),
            Mover::Doorbells(_) => Tick::MAX,
        }
    }

    fn take_raised(&mut self) -> Option<Raised> {
        let (channel, owner) = match self {
            Mover::Dma(dma) => dma.take_raised()?,
            Mover::Peripheral(one) => one.take_raised()?,
            Mover::Doorbells(bells) => {
                let (told, owner) = bells.take_raised()?;
                return Some(Raised {
                    tile: Some(told.tile),
                    channel: told.activity,
                    owner,
                });
            }
        };
        Some(Raised {
            tile: None,
            channel,
            owner,
        })
    }

    /// A hart accesses a register. `None`: there is none.
    fn access(
        &mut self,
        now: Tick,
        by: Owner,
        (offset, bytes): (u64, u8),
        operation: RemoteOperation,
    ) -> Option<u64> {
        match (self, operation) {
            (Mover::Doorbells(bells), _) => bells.access(by, (offset, bytes), operation),
            (mover, RemoteOperation::Load) => mover.read(offset, bytes),
            (mover, RemoteOperation::Store(value)) => {
                mover.write(now, offset, bytes, value).map(|()| 0)
            }
            _ => None,
        }
    }

    fn read(&self, offset: u64, bytes: u8) -> Option<u64> {
        match self {
            Mover::Dma(dma) => dma.read(offset, bytes),
            Mover::Peripheral(one) => one.read(offset, bytes),
            // Each hart has registers of its own.
            Mover::Doorbells(_) => None,
        }
    }

    fn write(&mut self, now: Tick, offset: u64, bytes: u8, value: u64) -> Option<()> {
        match self {
            Mover::Dma(dma) => dma.write(now, offset, bytes, value),
            Mover::Peripheral(one) => one.write(now, offset, bytes, value),
            Mover::Doorbells(_) => None,
        }
    }

    fn advance(&mut self, now: Tick) {
        match self {
            Mover::Dma(dma) => dma.advance(now),
            Mover::Peripheral(one) => one.advance(now),
            Mover::Doorbells(_) => {}
        }
    }

    fn begin(
        &mut self,
        side: Side,
        now: Tick,
        ledger: &mut Ledger,
    ) -> Option<(Owner, u32, Account, Access)> {
        match self {
            Mover::Dma(dma) => dma.begin(side, now, ledger),
            Mover::Peripheral(one) => one.begin(side, now),
            Mover::Doorbells(_) => None,
        }
    }

    fn answer(&mut self, now: Tick, tag: u32, data: Result<Data, Failure>) {
        match (self, data) {
            (Mover::Dma(dma), data) => dma.answer(now, tag, data),
            (Mover::Peripheral(one), Ok(data)) => one.answer(now, tag, data),
            (Mover::Peripheral(one), Err(failure)) => {
                panic!("the windows of {one:?} are in no memory: {failure:?}")
            }
            (Mover::Doorbells(_), data) => {
                panic!("doorbells asked for nothing, and got {data:?} with tag {tag}")
            }
        }
    }

    fn end_step(&mut self, now: Tick) {
        match self {
            Mover::Dma(dma) => dma.end_step(now),
            Mover::Peripheral(one) => one.end_step(now),
            Mover::Doorbells(_) => {}
        }
    }
}

/// See the module's documentation.
#[derive(Debug)]
pub struct BesidePart {
    id: TileId,
    dma: Mover,
    queue: EventQueue<Box<Packet>>,
    map: MemoryMap,
    tcms: TcmMap,
    cycle: Tick,
    /// Ticks from an access to a register to its answer.
    registers: Tick,
    /// Nothing that the engine has sent since the window of time began can come back before this tick.
    limit: Tick,
    /// Least time from a packet that leaves here to the arrival of a packet that it causes.
    back: Tick,
    /// The tile that its channels interrupt.
    interrupts: Option<TileId>,
    /// The source of its first channel.
    source: u32,
    /// Bytes of a line of the coherent clusters, if its accesses to memory ask these.
    coherent: Option<u32>,
}

impl BesidePart {
    /// The part at a place among the parts beside the tiles, at rest. `back`: the least time from a packet of one part to its arrival at another.
    pub fn new(place: u32, platform: &PlatformConfig, back: Tick) -> Self {
        let engines = platform.engines.len();
        let index = place as usize;
        let (id, dma, cycle, registers, interrupts, coherent) = match platform.engines.get(index) {
            Some(one) => {
                let dma = Mover::Dma(Dma::new(&one.dma, one.id));
                let (cycle, coherent) = (one.dma.cycle, one.coherent);
                (one.id, dma, cycle, one.registers, one.interrupts, coherent)
            }
            None if index - engines == platform.peripherals.len() => {
                let one = platform.doorbells.as_ref();
                let one = one.unwrap_or_else(|| panic!("no part has place {place}"));
                let bells = Mover::Doorbells(Doorbells::new(platform.bells()));
                (one.id, bells, one.cycle, one.registers, None, false)
            }
            None => {
                let one = &platform.peripherals[index - engines];
                let owner = dma::owner(one.id, 0);
                let dma = Peripheral::new(one, owner, platform.ticks_per_second);
                let dma = Mover::Peripheral(Box::new(dma));
                let (registers, coherent) = (one.registers, one.coherent);
                (one.id, dma, one.cycle, registers, one.interrupts, coherent)
            }
        };
        Self {
            id,
            dma,
            queue: EventQueue::new(),
            map: MemoryMap::new(platform),
            tcms: TcmMap::new(platform),
            cycle,
            registers: registers * cycle,
            limit: Tick::MAX,
            back,
            interrupts,
            source: source(place, 0),
            coherent: coherent.then(|| platform.coherent_line()),
        }
    }

    /// Number on the network.
    pub fn id(&self) -> TileId {
        self.id
    }

    /// Its statistics; doorbells have none.
    pub fn statistics(&self) -> Option<&DmaStatistics> {
        self.dma.statistics()
    }

    /// A register as a tool sees it.
    pub fn register(&self, offset: u64) -> Option<u64> {
        self.dma.read(offset, 8)
    }

    /// The content of a storage device; `None`: it is none.
    pub fn content(&self) -> Option<&[u8]> {
        match &self.dma {
            Mover::Dma(_) | Mover::Doorbells(_) => None,
            Mover::Peripheral(one) => Some(one.content()),
        }
    }

    /// Writes the first bytes of a storage device's content. False: it has fewer bytes, or is not a storage device.
    pub fn load(&mut self, bytes: &[u8]) -> bool {
        match &mut self.dma {
            Mover::Dma(_) | Mover::Doorbells(_) => false,
            Mover::Peripheral(one) => one.load(bytes),
        }
    }

    /// Whether it may interrupt a tile before a hart of that tile has accessed it again. The platform says that it can at all.
    pub fn may_interrupt(&self, tile: TileId) -> bool {
        match &self.dma {
            Mover::Dma(_) | Mover::Peripheral(_) => true,
            Mover::Doorbells(bells) => bells.may_tell(tile),
        }
    }

    /// The next moment at which something happens here. It hands no packet to the network before that.
    pub fn next_time(&self) -> Tick {
        self.queue.next_time().min(self.dma.next_time())
    }

    /// Takes a packet that will have arrived.
    pub fn deliver(&mut self, delivery: Delivery) {
        let source = delivery.plane.into();
        self.queue.push(delivery.at, source, delivery.packet);
    }

    /// Acts up to `horizon`, or up to the moment at which an answer to one of its packets comes back.
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
        let access = (address, bytes);
        let value = self.dma.access(now, packet.owner, access, operation);
        let value = value.expect("the sender looked whether there is a register");
        let done = align(now, self.cycle) + self.registers;
        // A refused command asks for an interrupt at once; a ring takes the time of its access.
        let told = match self.dma {
            Mover::Doorbells(_) => done,
            _ => now,
        };
        self.interrupt(told, fabric);
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
        while let Some(raised) = self.dma.take_raised() {
            let Some(tile) = raised.tile.or(self.interrupts) else {
                continue;
            };
            let (owner, number) = (raised.owner, self.source as u16 + raised.channel);
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
            let (physical, bytes) = (access.address, access.bytes);
            let Some((to, address)) = self.place(physical, bytes.into()) else {
                self.dma.answer(now, tag, Err(Failure::Nothing));
                continue;
            };
            let data = access.data.map(|data| match data {
                Data::Burst(data) => data,
                Data::Word(value) => value.to_le_bytes()[..bytes as usize].into(),
            });
            let transaction = match data {
                None => Transaction::DmaRead,
                Some(_) => Transaction::DmaWrite,
            };
            // Caches hold lines of memories, but not of tightly coupled ones.
            let line = self
                .coherent
                .filter(|_| self.map.has(physical, bytes.into()));
            let mut line_data = None;
            let kind = match (line, data) {
                (None, None) => PacketKind::ReadRequest { address, bytes },
                (None, data) => PacketKind::WriteRequest {
                    address,
                    bytes,
                    data,
                },
                (Some(length), data) => {
                    let within = physical % u64::from(length) + u64::from(bytes);
                    assert!(
                        within <= length.into(),
                        "an access of {bytes} bytes at {physical:#x} crosses a line"
                    );
                    line_data = data.as_deref().map(inline);
                    PacketKind::Coherent {
                        line: (physical / u64::from(length)) as u32,
                        address,
                        bytes,
                        want: match data {
                            None => Want::Fetch,
                            Some(_) => Want::Put,
                        },
                    }
                }
            };
            let mut packet = Packet::request(now, self.id, to, owner, tag, transaction, kind);
            packet.line = line_data;
            packet.account = account;
            self.send(now, Box::new(packet), fabric);
        }
        self.dma.end_step(now);
    }
}
