//! A chip's shared resources, and what each kind of transaction does on it.
//!
//! Why it exists: routes, packet sizes and memory timing are in a platform's description; the analysis needs steps. It knows hardware only;
//! [`super::system`] knows who sends what.
//!
//! What it takes for granted, as `docs/decisions/0001-foundations.md` defines the chip: one packet at a time on a link, virtual
//! cut-through, XY routes; cache lines, DMA and messages enter through inputs of their own. [`super::memory`] knows what a memory access
//! takes.

use super::memory::MemoryTiming;
use super::scenario::{Arbitration, Pool, Resource, Step, Tandem, Ticks, TransactionClass};
use bulkhead_abi::dtu::{CHUNK_MAX, PRIVILEGED_CREDIT, WRITE_BACKS};
use bulkhead_abi::message::HEADER_SIZE;
use bulkhead_model::platform::{Dtu, Memory, Platform, Tile, Topology};
use std::collections::BTreeMap;
use thiserror::Error;

/// Inputs of the link from a processing tile into the network.
const CACHE: u16 = 0;
const DMA: u16 = 1;
const MESSAGE: u16 = 2;

/// Maximum lines that move because one is read: it evicts one from each level, and the line leaving the first may need a place in the
/// second.
const LINES_A_FILL: u64 = 3;

/// Why a chip cannot be analysed.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum ChipError {
    /// A tile that the platform does not have.
    #[error("the platform has no {kind} tile {id}")]
    NoTile {
        /// `processing` or `memory`.
        kind: &'static str,
        /// Its number.
        id: u16,
    },
    /// A tile without what the transaction needs.
    #[error("tile {tile} has no {part}")]
    NoPart {
        /// The tile.
        tile: u16,
        /// The part.
        part: &'static str,
    },
}

/// Which of the networks a packet uses.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Plane {
    Reads,
    Rest,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Node {
    Tile(u16),
    Router(u16),
}

/// Resources of a platform and steps over them.
#[derive(Clone, Debug)]
pub struct Chip<'a> {
    platform: &'a Platform,
    ticks_per_second: u64,
    resources: Vec<Resource>,
    links: BTreeMap<(Plane, Node, Node), usize>,
    memories: BTreeMap<u16, usize>,
    receivers: BTreeMap<u16, usize>,
    tandems: Vec<Tandem>,
    routers: BTreeMap<u16, u16>,
}

/// Steps that grow while a transaction is followed, and the least time that they take.
#[derive(Default)]
struct Trip {
    steps: Vec<Step>,
    least: Ticks,
}

impl<'a> Chip<'a> {
    /// Finds all resources.
    pub fn new(platform: &'a Platform) -> Self {
        let crossbar = platform.network.topology == Topology::Crossbar;
        let place = |router: u16| if crossbar { 0 } else { router };
        let routers: BTreeMap<u16, u16> = platform
            .tiles
            .iter()
            .map(|t| (t.id, place(t.router)))
            .chain(platform.memories.iter().map(|m| (m.id, place(m.router))))
            .collect();
        let mut chip = Self {
            platform,
            ticks_per_second: platform.ticks_per_second(),
            resources: Vec::new(),
            links: BTreeMap::new(),
            memories: BTreeMap::new(),
            receivers: BTreeMap::new(),
            tandems: Vec::new(),
            routers,
        };
        let planes: &[Plane] = if platform.network.split_channels {
            &[Plane::Reads, Plane::Rest]
        } else {
            &[Plane::Reads]
        };
        let tiles: Vec<u16> = chip.routers.keys().copied().collect();
        for &plane in planes {
            for &from in &tiles {
                for &to in &tiles {
                    for pair in chip.route(from, to).windows(2) {
                        chip.link(plane, pair[0], pair[1], planes.len() > 1);
                    }
                }
            }
        }
        for memory in &platform.memories {
            let index = chip.resources.len();
            let timing = MemoryTiming::new(&memory.dram, chip.cycle(memory.dram.clock.frequency.0));
            chip.resources.push(Resource {
                name: format!("memory {}", memory.id),
                arbitration: timing.arbitration(),
                outage: timing.refresh(),
                backlog: timing.backlog(),
            });
            chip.memories.insert(memory.id, index);
            // Its data bus is used in arrival order, and its answers leave through one input. Other controllers answer in another order, and
            // channels overtake each other.
            if timing.answers_in_order() {
                let out = chip.links.iter();
                let out = out.filter(|((_, from, _), _)| *from == Node::Tile(memory.id));
                let behind = out.map(|(_, &link)| link).collect();
                chip.tandems.push(Tandem {
                    first: index,
                    behind,
                });
            }
        }
        for tile in platform.tiles.iter().filter(|t| t.dtu.is_some()) {
            chip.receivers.insert(tile.id, chip.resources.len());
            chip.resources.push(Resource {
                name: format!("receive unit of tile {}", tile.id),
                arbitration: Arbitration::ArrivalOrder,
                outage: None,
                backlog: 0,
            });
        }
        chip
    }

    /// Ticks a second.
    pub fn ticks_per_second(&self) -> u64 {
        self.ticks_per_second
    }

    /// Links, memories, receive units.
    pub fn resources(&self) -> &[Resource] {
        &self.resources
    }

    /// Memories that answer in order, each with the links out of its tile.
    pub fn tandems(&self) -> &[Tandem] {
        &self.tandems
    }

    /// A processing tile.
    ///
    /// # Errors
    /// If there is none with this number.
    pub fn tile(&self, id: u16) -> Result<&'a Tile, ChipError> {
        self.platform.tile(id).ok_or(ChipError::NoTile {
            kind: "processing",
            id,
        })
    }

    /// The data transfer unit of a tile.
    ///
    /// # Errors
    /// If there is no such tile or it has none.
    pub fn dtu(&self, tile: u16) -> Result<&'a Dtu, ChipError> {
        self.tile(tile)?.dtu.as_ref().ok_or(ChipError::NoPart {
            tile,
            part: "data transfer unit",
        })
    }

    /// Ticks of one cycle of a clock.
    pub fn cycle(&self, frequency: u64) -> Ticks {
        self.ticks_per_second / frequency.max(1)
    }

    /// Bytes of a line that the tile moves over the network, and how many it reads at once: what the first level's miss
    /// registers and the data transfer unit's local accesses ask for, within the second level's. A hart fetches the lines of one
    /// instruction at a time, two at most; a unit at the first level shares the registers of the data cache.
    fn line(&self, tile: &Tile) -> (u64, u32) {
        let first = || [&tile.l1i, &tile.l1d].into_iter().flatten();
        let fetches = tile
            .l1i
            .as_ref()
            .map_or(0, |c| c.mshrs.min(2 * tile.harts.max(1)));
        let data = tile.l1d.as_ref().map_or(0, |c| c.mshrs);
        let behind = tile
            .dtu
            .as_ref()
            .filter(|d| !d.first_level || tile.l2.is_none());
        let asked = fetches + data + behind.map_or(0, |d| d.parallel);
        match &tile.l2 {
            Some(l2) => (u64::from(l2.line), l2.mshrs.min(asked).max(1)),
            None => (
                first().map(|c| u64::from(c.line)).max().unwrap_or(64),
                asked.max(1),
            ),
        }
    }

    /// Lines that a chunk of a DMA transfer touches, wherever it lies.
    ///
    /// # Errors
    /// [`ChipError`] if the tile does not exist.
    pub fn lines_of_chunk(&self, tile: u16) -> Result<u32, ChipError> {
        let (line, _) = self.line(self.tile(tile)?);
        Ok(u32::try_from(CHUNK_MAX as u64 / line.max(1) + 1).unwrap_or(u32::MAX))
    }

    /// Maximum outstanding accesses of a hart of the tile: loads, stores, and the lines of an instruction.
    fn accesses(&self, tile: &Tile) -> u64 {
        u64::from(tile.pipeline.load_buffer) + u64::from(tile.pipeline.store_buffer) + 2
    }

    /// Bytes that may leave the tile on credit of an activity's token bucket: what the unit posts, `local` of its chunks with every
    /// block missing; what the accesses under way of its harts push out; and, if activities share the tile, what TileMux may borrow.
    ///
    /// Every line that is read pushes out two at most ([`Chip::line_write`]).
    ///
    /// # Errors
    /// [`ChipError`] if the tile does not exist.
    pub fn credit(&self, tile: u16, local: u32, shared: bool) -> Result<u64, ChipError> {
        let borrowed = if shared { PRIVILEGED_CREDIT.into() } else { 0 };
        Ok(borrowed + self.posted(tile, local)?)
    }

    /// Bytes that leave the tile because of what was paid for before. The lines that a hart's accesses read are paid themselves.
    fn posted(&self, tile: u16, local: u32) -> Result<u64, ChipError> {
        let found = self.tile(tile)?;
        let (line, _) = self.line(found);
        let unit = u64::from(local) * u64::from(self.lines_of_chunk(tile)?);
        let pushed = u64::from(found.harts) * self.accesses(found) * (LINES_A_FILL - 1);
        Ok(line * (LINES_A_FILL * unit + pushed))
    }

    /// Bytes by which posted traffic and `lines` lines of TileMux can exceed what TileMux may borrow; `local` as for [`Chip::credit`].
    ///
    /// # Errors
    /// [`ChipError`] if the tile does not exist.
    pub fn beyond_credit(&self, tile: u16, local: u32, lines: u64) -> Result<u64, ChipError> {
        let (line, _) = self.line(self.tile(tile)?);
        let owed = line * LINES_A_FILL * lines + self.posted(tile, local)?;
        Ok(owed.saturating_sub(PRIVILEGED_CREDIT.into()))
    }

    /// Ticks until a hart's outstanding accesses are done, one at a time, with memory to itself.
    ///
    /// # Errors
    /// [`ChipError`] if the tile or memory does not exist.
    pub fn drain(&self, tile: u16, memory: u16) -> Result<u128, ChipError> {
        let found = self.tile(tile)?;
        let cycle = self.cycle(found.pipeline.clock.frequency.0);
        let second = found.l2.as_ref().map_or(0, |l2| u64::from(l2.latency)) * cycle;
        let read = self.line_read(tile, memory)?.uncontended() + u128::from(second);
        Ok(read * u128::from(self.accesses(found)))
    }

    /// A cache line read by a miss: from the request at the network interface to the data there.
    ///
    /// # Errors
    /// [`ChipError`] if a tile does not exist.
    pub fn line_read(&self, tile: u16, memory: u16) -> Result<TransactionClass, ChipError> {
        let (line, slots) = self.line(self.tile(tile)?);
        self.memory_class("line read", tile, memory, line, false, CACHE, slots)
    }

    /// A cache line written back. The tile's write-back buffer bounds how many are outstanding.
    ///
    /// # Errors
    /// [`ChipError`] if a tile does not exist.
    pub fn line_write(&self, tile: u16, memory: u16) -> Result<TransactionClass, ChipError> {
        let (line, _) = self.line(self.tile(tile)?);
        self.memory_class(
            "line write-back",
            tile,
            memory,
            line,
            true,
            CACHE,
            WRITE_BACKS,
        )
    }

    /// One chunk of a DMA transfer of `bytes` (a chunk at most); `slots` of them at once.
    ///
    /// # Errors
    /// [`ChipError`] if a tile does not exist.
    pub fn dma(
        &self,
        tile: u16,
        memory: u16,
        bytes: u64,
        write: bool,
        slots: u32,
    ) -> Result<TransactionClass, ChipError> {
        let name = if write { "DMA write" } else { "DMA read" };
        let bytes = bytes.clamp(1, CHUNK_MAX as u64);
        self.memory_class(name, tile, memory, bytes, write, DMA, slots)
    }

    #[expect(
        clippy::too_many_arguments,
        reason = "a plain list of what a transfer is"
    )]
    fn memory_class(
        &self,
        name: &str,
        tile: u16,
        memory: u16,
        bytes: u64,
        write: bool,
        input: u16,
        slots: u32,
    ) -> Result<TransactionClass, ChipError> {
        let target = self.platform.memory(memory).ok_or(ChipError::NoTile {
            kind: "memory",
            id: memory,
        })?;
        let plane = if write { Plane::Rest } else { Plane::Reads };
        let (out, back) = if write { (bytes, 0) } else { (0, bytes) };
        let mut trip = Trip::default();
        self.packet(&mut trip, plane, tile, memory, out, input);
        self.access(&mut trip, target, (bytes, write, input == CACHE), tile);
        self.packet(&mut trip, plane, memory, tile, back, CACHE);
        let mut class = trip.class(name, bytes, slots);
        if input == CACHE {
            class.pool = Some(if write { Pool::WriteBacks } else { Pool::Reads });
        } else {
            class.pool = Some(Pool::Command);
            (class.charge, class.charge_most) = self.charged(tile, bytes)?;
        }
        Ok(class)
    }

    /// Minimum and maximum bytes that the unit charges for `bytes` of a chunk: whole blocks, and one more if the chunk does not begin with
    /// a block.
    fn charged(&self, tile: u16, bytes: u64) -> Result<(u64, u64), ChipError> {
        let unit = self.tile(tile)?.dtu.as_ref();
        let block = unit.map_or(1, |d| u64::from(d.block).max(1));
        let aligned = bytes.div_ceil(block) * block;
        Ok((aligned, aligned + block))
    }

    /// Classes of chunks and packets by size, because a small one takes fewer tokens: (least, most) bytes of each, the last one up to a
    /// whole chunk. Within a class, the largest has at most twice the blocks of the smallest.
    ///
    /// # Errors
    /// [`ChipError`] if the tile does not exist.
    pub fn sizes(&self, tile: u16, most: u64) -> Result<Vec<(u64, u64)>, ChipError> {
        let unit = self.tile(tile)?.dtu.as_ref();
        let block = unit.map_or(64, |d| u64::from(d.block).max(1));
        let most = most.clamp(1, CHUNK_MAX as u64);
        let (mut all, mut least, mut blocks) = (Vec::new(), 1, 1);
        while least <= most {
            let end = (blocks * block).min(most);
            all.push((least, end));
            (least, blocks) = (end + 1, 2 * blocks);
        }
        Ok(all)
    }

    /// Chunks of a DMA transfer of `least` to `most` bytes: each takes as long as the largest, and is as frequent and as cheap as the
    /// smallest.
    ///
    /// # Errors
    /// [`ChipError`] if a tile does not exist.
    pub fn chunks(
        &self,
        tile: u16,
        memory: u16,
        (least, most): (u64, u64),
        write: bool,
        slots: u32,
    ) -> Result<TransactionClass, ChipError> {
        let small = self.dma(tile, memory, least, write, slots)?;
        let mut class = self.dma(tile, memory, most, write, slots)?;
        class.charge = small.charge;
        class.least_round_trip = small.least_round_trip;
        Ok(class)
    }

    /// A message of `payload` bytes: from its first packet at the network interface to the acknowledgement there. All packets but the last
    /// are full; the receiver stores it when it is complete. That takes `store` ticks if the receive buffer is in the receiver's caches,
    /// and up to `missing` ticks, during which others wait, if it is not.
    ///
    /// Its packets follow each other. Each link and the receiver serve them in order, so none is later than if it had waited until the
    /// previous one had arrived: the packets in sequence are a bound. Others meet its packets ([`Chip::packets`]), so it has no slots
    /// itself.
    ///
    /// # Errors
    /// [`ChipError`] if a tile does not exist or has no data transfer unit.
    pub fn message(
        &self,
        from: u16,
        to: u16,
        payload: u64,
        (store, missing): (Ticks, Ticks),
    ) -> Result<TransactionClass, ChipError> {
        let wire = payload + HEADER_SIZE as u64;
        let mut trip = Trip::default();
        let mut left = wire;
        while left > 0 {
            let packet = left.min(CHUNK_MAX as u64);
            self.packet(&mut trip, Plane::Rest, from, to, packet, MESSAGE);
            left -= packet;
        }
        self.stored(&mut trip, from, to, (store, missing.max(store)))?;
        let mut class = trip.class("message", wire, 0);
        class.outstanding = 0;
        class.pool = Some(Pool::Command);
        (class.charge, class.charge_most) = self.charged(from, wire)?;
        Ok(class)
    }

    /// Packets of messages, of `least` to `most` bytes with their part of the header: each takes as long as the largest, and is as frequent
    /// and as cheap as the smallest. Up to `slots` of one message are outstanding. Each is taken to be a message to its receiver, which it
    /// keeps busy for up to `missing` ticks.
    ///
    /// # Errors
    /// [`ChipError`] if a tile does not exist or has no data transfer unit.
    pub fn packets(
        &self,
        from: u16,
        to: u16,
        (least, most): (u64, u64),
        missing: Ticks,
        slots: u32,
    ) -> Result<TransactionClass, ChipError> {
        let way = |bytes: u64, store: Ticks| {
            let mut trip = Trip::default();
            self.packet(&mut trip, Plane::Rest, from, to, bytes, MESSAGE);
            self.stored(&mut trip, from, to, (0, store))?;
            Ok::<_, ChipError>(trip)
        };
        let quickest = way(least, 0)?.least;
        let mut class = way(most, missing)?.class("packet of a message", most, slots);
        class.least_round_trip = quickest;
        class.pool = Some(Pool::Command);
        class.charge = self.charged(from, least)?.0;
        class.charge_most = self.charged(from, most)?.1;
        Ok(class)
    }

    /// Adds the receive unit's examination and storing of a message, and the acknowledgement: ticks until that is on its way, and ticks
    /// of the unit.
    fn stored(
        &self,
        trip: &mut Trip,
        from: u16,
        to: u16,
        (latency, busy): (Ticks, Ticks),
    ) -> Result<(), ChipError> {
        self.dtu(from)?;
        let dtu = self.dtu(to)?;
        let look = u64::from(dtu.receive) * self.cycle(dtu.clock.frequency.0);
        trip.steps.push(Step {
            resource: self.receivers.get(&to).copied(),
            input: 0,
            occupancy: look + busy,
            passed: 0,
            queued: 0,
            tail: 0,
            elsewhere: false,
            latency: look + latency,
        });
        trip.least += look + latency;
        self.packet(trip, Plane::Rest, to, from, 0, MESSAGE);
        Ok(())
    }

    /// Routers on the way, with the tiles at the ends.
    fn route(&self, from: u16, to: u16) -> Vec<Node> {
        let (Some(&start), Some(&end)) = (self.routers.get(&from), self.routers.get(&to)) else {
            return Vec::new();
        };
        let columns = match self.platform.network.topology {
            Topology::Crossbar => 1,
            Topology::StarMesh { columns, .. } | Topology::Mesh { columns, .. } => columns.max(1),
        };
        let mut nodes = vec![Node::Tile(from), Node::Router(start)];
        let mut here = start;
        while here != end {
            let (column, target) = (here % columns, end % columns);
            here = match column.cmp(&target) {
                std::cmp::Ordering::Less => here + 1,
                std::cmp::Ordering::Greater => here - 1,
                std::cmp::Ordering::Equal if here < end => here + columns,
                std::cmp::Ordering::Equal => here - columns,
            };
            nodes.push(Node::Router(here));
        }
        nodes.push(Node::Tile(to));
        nodes
    }

    fn link(&mut self, plane: Plane, from: Node, to: Node, split: bool) {
        let next = self.resources.len();
        if *self.links.entry((plane, from, to)).or_insert(next) == next {
            let suffix = match (split, plane) {
                (false, _) => "",
                (true, Plane::Reads) => " (reads)",
                (true, Plane::Rest) => " (writes)",
            };
            let name = |node| match node {
                Node::Tile(id) => format!("tile {id}"),
                Node::Router(id) => format!("router {id}"),
            };
            self.resources.push(Resource {
                name: format!("link {} -> {}{suffix}", name(from), name(to)),
                arbitration: Arbitration::RoundRobin,
                outage: None,
                backlog: 0,
            });
        }
    }

    /// Ticks for which a packet with `payload` bytes after its header has a link.
    pub(super) fn wire(&self, payload: u64) -> Ticks {
        let network = &self.platform.network;
        let wire = u64::from(network.header) + payload;
        let cycles = wire.div_ceil(u64::from(network.width).max(1)).max(1);
        cycles * self.cycle(network.clock.frequency.0)
    }

    /// Adds the path of one packet with `payload` bytes after its header. `input`: the first link's, at a processing tile.
    fn packet(&self, trip: &mut Trip, plane: Plane, from: u16, to: u16, payload: u64, input: u16) {
        let network = &self.platform.network;
        let plane = if network.split_channels {
            plane
        } else {
            Plane::Reads
        };
        let cycle = self.cycle(network.clock.frequency.0);
        let busy = self.wire(payload);
        let interface = u64::from(network.interface) * cycle;
        trip.fixed(interface + cycle - 1, interface);
        let nodes = self.route(from, to);
        for (hop, pair) in nodes.windows(2).enumerate() {
            let last = hop + 2 == nodes.len();
            let latency = if last {
                busy + u64::from(network.link) * cycle + interface
            } else {
                (u64::from(network.link) + u64::from(network.router)) * cycle
            };
            // Inputs of a router are distinguished by where they come from.
            let input = match (hop, pair[0]) {
                (0, _) if self.platform.memory(from).is_some() => 0,
                (0, _) => input,
                _ => match nodes[hop - 1] {
                    Node::Tile(id) => id,
                    Node::Router(id) => 0x8000 | id,
                },
            };
            trip.steps.push(Step {
                resource: self.links.get(&(plane, pair[0], pair[1])).copied(),
                input,
                occupancy: busy,
                passed: 0,
                queued: 0,
                tail: 0,
                elsewhere: false,
                latency,
            });
            trip.least += latency;
        }
    }

    /// Adds one access of a memory.
    fn access(&self, trip: &mut Trip, memory: &Memory, work: (u64, bool, bool), tile: u16) {
        let cycle = self.cycle(memory.dram.clock.frequency.0);
        let (bytes, write, line) = work;
        let access = MemoryTiming::new(&memory.dram, cycle).access(bytes, write, line, tile);
        trip.fixed(access.front, access.front_least);
        let resource = self.memories.get(&memory.id).copied();
        trip.steps.extend(
            access
                .steps
                .into_iter()
                .map(|step| Step { resource, ..step }),
        );
        trip.least += access.least;
    }
}

impl Trip {
    fn fixed(&mut self, most: Ticks, least: Ticks) {
        self.steps.push(Step::fixed(most));
        self.least += least;
    }

    fn class(self, name: &str, charge: u64, slots: u32) -> TransactionClass {
        TransactionClass {
            name: name.into(),
            charge,
            charge_most: charge,
            pool: None,
            outstanding: slots.max(1),
            least_round_trip: self.least,
            demand: None,
            steps: self.steps,
        }
    }
}
