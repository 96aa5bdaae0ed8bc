//! Moves packets over links: queues, arbitration, occupancy.
//!
//! Why it exists: the network is where tiles meet, so each wait for a link must be attributed to the packet that held it.
//!
//! Rules. A link sends one packet at a time, `width` bytes a cycle, and is not interrupted: larger transfers are divided into
//! packets of at most one chunk, which is the unit of preemption. Heads that arrive at a busy link wait in a queue for each input
//! port; when the link becomes free, it takes the next non-empty port in round-robin order. An idle link takes the first head at
//! once; of heads that come in one tick, the one at the lowest port. A router forwards a head before the tail has arrived (virtual
//! cut-through: Kermani and Kleinrock, Computer Networks 3, 1979).
//!
//! Order of one tick. Events are sorted by kind, link and port ([`order`]): neither the numbers of tiles nor the earlier history of a
//! packet decide anything.
//!
//! Credits. A router has an input buffer for each incoming link, with room for a fixed number of packets. A link sends a packet only with a
//! credit, which is a free place there. The place is free when the packet's tail has left the router, and the credit takes the time of a
//! link to come back. While a link has no credit, packets wait before it, and themselves occupy buffers: this is back pressure. Each wait
//! for a credit is booked to the packet whose departure returned the credit. There is no cycle of waits: a buffer waits only for one
//! further along its route, routes in a mesh never turn from columns to rows, planes share no buffer, and a link to a tile needs no credit,
//! because tiles accept everything (units at the edge limit the packets under way). Without a limit (`credits: None`), queues are never
//! full.
//!
//! What it deliberately does not know: what packets mean, and what happens at their destination.

use super::packet::{Account, Packet, PacketKind, Transaction, Want};
use super::topology::{LinkShape, Node, Shape};
use crate::config::links::{PORT_BITS, PORTS_MAX};
use crate::config::{Channels, NetworkConfig};
use crate::engine::EventQueue;
use crate::ledger::{Ledger, Resource};
use crate::types::{Owner, Tick, TileId, align};
use std::collections::VecDeque;

/// Input ports of the link from a processing tile into the network: cache lines, DMA chunks, messages and the rest; on a mesh, the hart's
/// accesses, the memory's answers, and the DMA engine's accesses.
const INTERFACE_PORTS: usize = 3;

/// Numbers of the networks.
const READS: usize = 0;
const WRITES: usize = 1;
const ACKNOWLEDGEMENTS: usize = 2;
/// Maximum number of networks of a chip.
pub const PLANES_MAX: usize = 3;

/// Statistics of a link.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LinkStatistics {
    /// Packets sent.
    pub packets: u64,
    /// Bytes sent, headers included.
    pub bytes: u64,
    /// Ticks in which it was sending.
    pub busy: Tick,
    /// Packets that had to wait.
    pub delayed: u64,
    /// Ticks that packets waited.
    pub waited: Tick,
    /// Maximum number of packets that waited at the same time.
    pub queue: u64,
}

/// A link was busy: for traces.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LinkActivity {
    /// Number of the link.
    pub link: u16,
    /// The owner of the packet.
    pub owner: Owner,
    /// Start of the packet on the link.
    pub start: Tick,
    /// End of the packet on the link.
    pub end: Tick,
    /// Bytes.
    pub bytes: u32,
}

/// A packet that will have arrived completely at a tile.
#[derive(Debug)]
pub struct Delivery {
    /// When its last byte arrives; later than the event that caused this delivery.
    pub at: Tick,
    /// The tile, as position in the list of tiles.
    pub position: usize,
    /// The network that it came over. Of packets that arrive at a tile in one tick, that of the first network comes first.
    pub plane: u8,
    /// The packet.
    pub packet: Box<Packet>,
}

#[derive(Clone, Copy, Debug)]
enum Event {
    Head {
        link: u16,
        port: u16,
        flight: u32,
    },
    Free {
        link: u16,
    },
    /// A packet of this owner has left the input buffer at the end of a link.
    Credit {
        link: u16,
        owner: Owner,
    },
}

/// Kinds of events, in their order within a tick.
const HEAD_CLASS: u32 = 0;
/// Free events come after all heads of the same tick, so that round robin sees them all.
const FREE_CLASS: u32 = 1;
/// Credits come after that: a link that became free in the same tick has found out that it waits for one.
const CREDIT_CLASS: u32 = 2;

/// The order of an event within its tick: kind, link, port. Only parts of one packet, and packets of one tile for one port, are equal; they stay in the
/// order in which the tile sent them.
fn order(class: u32, link: u16, port: u16) -> u32 {
    debug_assert!(usize::from(port) < PORTS_MAX);
    class << (16 + PORT_BITS) | u32::from(link) << PORT_BITS | u32::from(port)
}

#[derive(Debug)]
struct Flight {
    owner: Owner,
    destination: u16,
    wire: u32,
    account: Account,
    /// The link whose buffer it is in.
    buffer: Option<u16>,
    /// `None` for a part of a packet that is not its last one.
    packet: Option<Box<Packet>>,
}

#[derive(Debug)]
struct Link {
    shape: LinkShape,
    /// Number of the first link of its network.
    plane: u16,
    /// Least cycles of a packet.
    interval: u64,
    /// Position of the tile at its end.
    tile: usize,
    /// Credits that it has; `None`: it needs none.
    credits: Option<u32>,
    queues: Vec<VecDeque<u32>>,
    waiting: Waiting,
    next_port: usize,
    busy_until: Tick,
    holder: Owner,
    statistics: LinkStatistics,
    carried: Carried,
}

/// How many packets wait for a link, by owner: whoever holds the link keeps all packets of one owner waiting for the same time, so they are booked together. It has one
/// entry for each owner that waits.
#[derive(Clone, Debug, Default)]
struct Waiting {
    /// In no order.
    packets: Vec<(Owner, u64)>,
    all: u64,
}

impl Waiting {
    fn add(&mut self, owner: Owner) {
        self.all += 1;
        match self.packets.iter_mut().find(|one| one.0 == owner) {
            Some(one) => one.1 += 1,
            None => self.packets.push((owner, 1)),
        }
    }

    fn remove(&mut self, owner: Owner) {
        self.all -= 1;
        let at = self.packets.iter().position(|one| one.0 == owner);
        let at = at.expect("who leaves a queue is in it");
        self.packets[at].1 -= 1;
        if self.packets[at].1 == 0 {
            self.packets.swap_remove(at);
        }
    }
}

/// Bytes by owner. It has one entry for each owner that sent something over the link, so the number of created activities bounds
/// it.
#[derive(Clone, Debug, Default)]
struct Carried {
    /// In the order of owners.
    bytes: Vec<(Owner, u64)>,
    last: usize,
}

impl Carried {
    fn add(&mut self, owner: Owner, bytes: u64) {
        // Packets of one owner come in runs: most find their entry at once.
        if let Some(entry) = self.bytes.get_mut(self.last)
            && entry.0 == owner
        {
            entry.1 += bytes;
            return;
        }
        match self.bytes.binary_search_by_key(&owner, |entry| entry.0) {
            Ok(at) => {
                self.bytes[at].1 += bytes;
                self.last = at;
            }
            Err(at) => {
                self.bytes.insert(at, (owner, bytes));
                self.last = at;
            }
        }
    }
}

/// All links and the packets on them.
#[derive(Debug)]
pub struct Network {
    config: NetworkConfig,
    shape: Shape,
    /// All links of the first plane, then those of the second one with split channels.
    links: Vec<Link>,
    planes: usize,
    flights: Vec<Option<Flight>>,
    free_flights: Vec<u32>,
    queue: EventQueue<Event>,
    positions: Vec<Option<u16>>,
    single_port: Vec<bool>,
}

impl Network {
    /// The network between `tiles` = (number, router, is a memory tile).
    pub fn new(config: &NetworkConfig, tiles: &[(TileId, u16, bool)]) -> Self {
        let places: Vec<(TileId, u16)> = tiles.iter().map(|t| (t.0, t.1)).collect();
        let shape = Shape::new(config.topology, &places);
        let planes = config.planes();
        let highest = tiles.iter().map(|t| t.0).max().unwrap_or(0) as usize;
        let mut positions = vec![None; highest + 1];
        for (i, t) in tiles.iter().enumerate() {
            positions[t.0 as usize] = Some(i as u16);
        }
        let mut links = Vec::new();
        for plane in 0..planes {
            let interval = match config.channels {
                Channels::Acknowledged { read_interval } if plane == READS => read_interval.max(1),
                _ => 1,
            };
            for link in &shape.links {
                let (ports, tile) = match (link.from, link.to) {
                    (Node::Tile(_), _) => (INTERFACE_PORTS, 0),
                    (Node::Router(r), Node::Tile(t)) => (
                        shape.ports[r as usize] as usize,
                        positions[t as usize].expect("a link leads to a tile that exists"),
                    ),
                    (Node::Router(r), _) => (shape.ports[r as usize] as usize, 0),
                };
                links.push(Link {
                    shape: *link,
                    plane: (plane * shape.links.len()) as u16,
                    interval,
                    tile: tile as usize,
                    credits: match link.to {
                        Node::Router(_) => config.credits,
                        Node::Tile(_) => None,
                    },
                    queues: vec![VecDeque::new(); ports],
                    waiting: Waiting::default(),
                    next_port: 0,
                    busy_until: 0,
                    holder: Owner::new(0, 0),
                    statistics: LinkStatistics::default(),
                    carried: Carried::default(),
                });
            }
        }
        Self {
            config: config.clone(),
            shape,
            links,
            planes,
            flights: Vec::new(),
            free_flights: Vec::new(),
            queue: EventQueue::new(),
            positions,
            single_port: tiles.iter().map(|t| t.2).collect(),
        }
    }

    /// Position of a tile in the list of tiles, if it exists.
    pub fn position(&self, tile: TileId) -> Option<usize> {
        self.positions
            .get(tile as usize)
            .copied()
            .flatten()
            .map(|p| p as usize)
    }

    /// The place of a tile, by its position in the list of tiles: its router, and its port there.
    pub fn place(&self, position: usize) -> (u16, u16) {
        self.shape.place(position)
    }

    /// Least time from the injection of a packet ([`Network::inject`]) to its first event here.
    pub fn entry_lookahead(&self) -> Tick {
        self.config.interface * self.config.cycle
    }

    /// Least time from an event here to the delivery that it causes: a packet takes at least a cycle on the last link.
    pub fn exit_lookahead(&self) -> Tick {
        (1 + self.config.link + self.config.interface) * self.config.cycle
    }

    /// Least time from the first event of a packet here to its last one: an injection link and a router.
    pub fn turn_lookahead(&self) -> Tick {
        (self.config.link + self.config.router) * self.config.cycle
    }

    /// The time of the next event.
    pub fn next_time(&self) -> Tick {
        self.queue.next_time()
    }

    /// The packets under way, in no order.
    pub fn packets(&self) -> impl Iterator<Item = &Packet> {
        let flights = self.flights.iter().flatten();
        flights.filter_map(|flight| flight.packet.as_deref())
    }

    /// Number of packets (or parts) under way.
    pub fn under_way(&self) -> usize {
        self.flights.len() - self.free_flights.len()
    }

    /// Names and statistics of all links, by number.
    pub fn links(&self) -> impl Iterator<Item = (&LinkShape, usize, &LinkStatistics)> {
        let plane_size = self.shape.links.len();
        self.links
            .iter()
            .enumerate()
            .map(move |(i, l)| (&l.shape, i / plane_size, &l.statistics))
    }

    /// Bytes that each link carried by owner, headers included, by number of the link and in the order of owners.
    pub fn carried(&self) -> impl Iterator<Item = &[(Owner, u64)]> {
        self.links.iter().map(|link| &link.carried.bytes[..])
    }

    /// Number of networks (2 with split channels, 3 with acknowledgements apart).
    pub fn planes(&self) -> usize {
        self.planes
    }

    /// Takes a packet at `at`. The ticks from `at` to the clock's next edge, and the interface's latency, are service. Returns the time of
    /// its first event.
    ///
    /// # Errors
    /// The packet, if its source or destination does not exist.
    pub fn inject(
        &mut self,
        at: Tick,
        packet: impl Into<Box<Packet>>,
    ) -> Result<Tick, Box<Packet>> {
        let packet = packet.into();
        let (Some(source), Some(destination)) = (
            self.position(packet.source),
            self.position(packet.destination),
        ) else {
            return Err(packet);
        };
        let head = align(at, self.config.cycle) + self.entry_lookahead();
        let plane = (self.plane(&packet.kind) * self.shape.links.len()) as u16;
        let port = if self.single_port[source] {
            0
        } else {
            match packet.transaction {
                Transaction::CacheRead | Transaction::CacheWrite | Transaction::Probe => 0,
                // On a mesh, a DMA engine's own accesses have a port, and the memory's answers go with the others.
                Transaction::DmaRead | Transaction::DmaWrite => match self.config.channels {
                    Channels::Acknowledged { .. } if !packet.kind.is_response() => 2,
                    _ => 1,
                },
                Transaction::Message | Transaction::Register | Transaction::Interrupt => 2,
                // The hart's own accesses, and the memory's answers to other harts.
                Transaction::RemoteLoad | Transaction::RemoteStore | Transaction::RemoteAtomic => {
                    u16::from(packet.kind.is_response())
                }
            }
        };
        let link = self.shape.injection[source] + plane;
        let mut account = packet.account;
        account.service += head - at;
        let mut rest = packet.kind.payload_bytes();
        let owner = packet.owner;
        let mut packet = Some(packet);
        loop {
            let part = rest.min(self.config.chunk);
            rest -= part;
            let flight = self.allocate(Flight {
                owner,
                destination: destination as u16,
                wire: part + self.config.header,
                account,
                buffer: None,
                packet: if rest == 0 { packet.take() } else { None },
            });
            let order = order(HEAD_CLASS, link, port);
            self.queue
                .push(head, order, Event::Head { link, port, flight });
            if rest == 0 {
                return Ok(head);
            }
        }
    }

    /// The network that a packet takes.
    fn plane(&self, kind: &PacketKind) -> usize {
        let acknowledged = match self.config.channels {
            Channels::Shared => return READS,
            Channels::Split => false,
            Channels::Acknowledged { .. } => true,
        };
        match kind {
            PacketKind::Coherent { want, .. } if *want == Want::Put => WRITES,
            PacketKind::ReadRequest { .. } | PacketKind::Coherent { .. } => READS,
            // A question of a home follows the answer that it gave to that cluster before; an answer of a cluster, its written lines.
            PacketKind::Grant { .. } | PacketKind::Managed | PacketKind::Wanted { .. }
                if !acknowledged =>
            {
                READS
            }
            // Data travel as writes, whichever side asked for them.
            PacketKind::ReadResponse { .. } if !acknowledged => READS,
            PacketKind::Remote { operation, .. } if !operation.is_posted() => READS,
            PacketKind::WriteResponse { .. } if acknowledged => ACKNOWLEDGEMENTS,
            PacketKind::RemoteAnswer { bytes: 0, .. } if acknowledged => ACKNOWLEDGEMENTS,
            _ => WRITES,
        }
    }

    fn allocate(&mut self, flight: Flight) -> u32 {
        match self.free_flights.pop() {
            Some(i) => {
                self.flights[i as usize] = Some(flight);
                i
            }
            None => {
                self.flights.push(Some(flight));
                (self.flights.len() - 1) as u32
            }
        }
    }

    /// Processes the next event.
    pub fn step(
        &mut self,
        ledger: &mut Ledger,
        observe: Option<&mut dyn FnMut(LinkActivity)>,
    ) -> Option<Delivery> {
        let event = self.queue.pop();
        match event.expect("it is only asked while something is under way") {
            (now, Event::Head { link, port, flight }) => {
                let l = &mut self.links[link as usize];
                let is_idle = l.busy_until <= now;
                if is_idle && l.waiting.all == 0 && l.credits != Some(0) {
                    return self.grant(now, link, port, flight, observe);
                }
                if l.waiting.all == 0 && !is_idle {
                    // No packet waited, so no event for the moment when the link becomes free exists yet.
                    let order = order(FREE_CLASS, link, 0);
                    self.queue.push(l.busy_until, order, Event::Free { link });
                }
                l.queues[port as usize].push_back(flight);
                let owner = in_flight(&mut self.flights, flight).owner;
                l.waiting.add(owner);
                l.statistics.delayed += 1;
                l.statistics.queue = l.statistics.queue.max(l.waiting.all);
                // A link that waits for a credit carries nothing now; what follows books that wait.
                let wait = l.busy_until.saturating_sub(now);
                l.statistics.waited += wait;
                ledger.book(owner, l.holder, Resource::Link(link), wait);
                None
            }
            (now, Event::Free { link }) => self.next(now, link, ledger, observe),
            (now, Event::Credit { link, owner }) => {
                let l = &mut self.links[link as usize];
                if let Some(credits) = &mut l.credits {
                    *credits += 1;
                }
                if l.busy_until > now || l.waiting.all == 0 {
                    return None;
                }
                // Only the credit was missing. What arrived or found the link free has waited since then.
                for &waiting in l.queues.iter().flatten() {
                    let f = in_flight(&mut self.flights, waiting);
                    // What holds a link is booked until its end.
                    let wait = now - f.account.accounted().max(l.busy_until);
                    l.statistics.waited += wait;
                    ledger.book(f.owner, owner, Resource::InputBuffer(link), wait);
                }
                self.next(now, link, ledger, observe)
            }
        }
    }

    /// An idle link takes the next packet that waits for it, if it has a credit.
    fn next(
        &mut self,
        now: Tick,
        link: u16,
        ledger: &mut Ledger,
        observe: Option<&mut dyn FnMut(LinkActivity)>,
    ) -> Option<Delivery> {
        let l = &mut self.links[link as usize];
        if l.credits == Some(0) {
            return None;
        }
        let ports = l.queues.len();
        let port = (0..ports)
            .map(|i| (l.next_port + i) % ports)
            .find(|p| !l.queues[*p].is_empty());
        let port = port.expect("a link gets free for somebody who waits");
        let flight = l.queues[port].pop_front();
        let flight = flight.expect("the queue is not empty");
        let f = in_flight(&mut self.flights, flight);
        l.waiting.remove(f.owner);
        // All of this is booked.
        f.account.waited += now - f.account.accounted();
        let delivery = self.grant(now, link, port as u16, flight, observe);
        let l = &mut self.links[link as usize];
        if l.waiting.all > 0 {
            self.queue.push(
                l.busy_until,
                order(FREE_CLASS, link, 0),
                Event::Free { link },
            );
            let wait = l.busy_until - now;
            l.statistics.waited += wait * l.waiting.all;
            for &(victim, packets) in &l.waiting.packets {
                let of = (victim, l.holder, Resource::Link(link));
                ledger.book_each(of, wait, packets);
            }
        }
        delivery
    }

    fn grant(
        &mut self,
        now: Tick,
        link: u16,
        port: u16,
        flight: u32,
        observe: Option<&mut dyn FnMut(LinkActivity)>,
    ) -> Option<Delivery> {
        let cycle = self.config.cycle;
        let l = &mut self.links[link as usize];
        let f = in_flight(&mut self.flights, flight);
        let cycles = (f.wire as u64).div_ceil(self.config.width as u64).max(1);
        let ticks = cycles * cycle;
        let taken = cycles.max(l.interval) * cycle;
        l.busy_until = now + taken;
        l.holder = f.owner;
        l.next_port = port as usize + 1;
        if l.next_port >= l.queues.len() {
            l.next_port = 0;
        }
        // It takes a place in the next buffer, and leaves its own with its tail.
        let goes_to = l.credits.as_mut().map(|credits| {
            *credits = credits
                .checked_sub(1)
                .expect("a link sends with a credit only");
            link
        });
        if let Some(left) = std::mem::replace(&mut f.buffer, goes_to) {
            let back = now + taken + self.config.link * cycle;
            let credit = Event::Credit {
                link: left,
                owner: f.owner,
            };
            self.queue.push(back, order(CREDIT_CLASS, left, 0), credit);
        }
        l.statistics.packets += 1;
        l.statistics.bytes += f.wire as u64;
        l.statistics.busy += taken;
        l.carried.add(f.owner, f.wire as u64);
        if let Some(observe) = observe {
            observe(LinkActivity {
                link,
                owner: f.owner,
                start: now,
                end: now + taken,
                bytes: f.wire,
            });
        }
        match l.shape.to {
            Node::Router(router) => {
                let hop = (self.config.link + self.config.router) * cycle;
                f.account.service += hop;
                let next = self.shape.routes[router as usize][f.destination as usize] + l.plane;
                let port = l.shape.port;
                let head = Event::Head {
                    link: next,
                    port,
                    flight,
                };
                self.queue
                    .push(now + hop, order(HEAD_CLASS, next, port), head);
                None
            }
            Node::Tile(_) => {
                let last = ticks + (self.config.link + self.config.interface) * cycle;
                let (position, plane) = (l.tile, l.plane);
                let f = self.flights[flight as usize].take();
                let f = f.expect("a packet arrives once");
                self.free_flights.push(flight);
                // Only the last part of a packet delivers it.
                let mut packet = f.packet?;
                packet.account = f.account;
                packet.account.service += last;
                Some(Delivery {
                    at: now + last,
                    position,
                    plane: (usize::from(plane) / self.shape.links.len()) as u8,
                    packet,
                })
            }
        }
    }
}

/// The packet under way with this number.
fn in_flight(flights: &mut [Option<Flight>], flight: u32) -> &mut Flight {
    let flight = flights[flight as usize].as_mut();
    flight.expect("what waits for a link is under way")
}

#[cfg(test)]
#[path = "network_tests.rs"]
mod tests;

#[cfg(test)]
#[path = "credit_tests.rs"]
mod credit_tests;
