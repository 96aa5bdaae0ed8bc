//! The second level of a cluster with its times: the ways to it, its banks, and the memory below it.
//!
//! Why it exists: the [`Directory`] knows no times. A reply takes effect when it arrives. A request waits for its bank, has the bank for a
//! while, and takes effect when its line has been looked up. At one moment, replies come first, then lines from memory, then requests, each
//! by port. What it deliberately does not know: what harts do, and what the network is.

use super::Directory;
use super::ahead::Ahead;
use super::capacity::{Capacity, Operation, Outcome, Step};
use super::directory::Fill;
use super::flush::Flush;
use super::messages::{Ask, Below, Down, Port, Reply, Request};
use super::queue::Queue;
use crate::beside::EngineMap;
use crate::config::{ClusterConfig, MemoryMap, TileConfig};
use crate::fabric::Fabric;
use crate::hart::QosIds;
use crate::ledger::{Ledger, Resource};
use crate::noc::{Packet, PacketKind, Transaction, Want};
use crate::tcm::TcmMap;
use crate::types::{Owner, Tick, TileId, align};
use std::collections::VecDeque;

/// An event that comes to the second level.
#[derive(Debug)]
pub(super) enum Arrival {
    Reply(Port, Reply),
    /// A hart's write to a lockdown register: the port and the kind of the fills, and the ways that they take from now on.
    Fills(Port, Fill, u64),
    /// A hart's operation of the capacity controller.
    Operation(Port, Operation),
    /// The capacity controller looks at the next set for lines that have to leave.
    Scan,
    /// A request is at its bank.
    Request(Ask),
    /// Its line has been looked up.
    Found(Ask),
    /// An answer of memory or of a DMA engine, an interrupt of another part, or a home that wants a line.
    Packet(Box<Packet>),
    /// A line that a home wants has been looked up.
    Wanted(Box<Packet>),
    /// An access of a hart to a register of a DMA engine passes by.
    Passes(Box<Packet>),
}

/// Sources of arrivals of one tick, in their order; each but memory has a number for each port.
const REPLIES: u32 = 0;
const MEMORY: u32 = 8;
const REQUESTS: u32 = 9;
const FOUND: u32 = 17;
const PASSING: u32 = 25;
const SCAN: u32 = 33;
const WANTED: u32 = 34;

/// A bank of the second level: its present and future users, each with the end of its use.
#[derive(Debug, Default)]
struct Bank {
    turns: VecDeque<(Owner, Tick)>,
}

impl Bank {
    /// A request has its turn as soon as those that came before it have had theirs. Returns the beginning of its turn, and books its wait.
    fn turn(&mut self, now: Tick, ask: &mut Ask, length: Tick, cycle: Tick, to: &mut Books<'_>) {
        while self.turns.front().is_some_and(|(_, until)| *until <= now) {
            self.turns.pop_front();
        }
        let owner = to.owner(ask.port);
        // The clock's edge is part of the service.
        let mut begin = align(now, cycle);
        ask.account.service += begin - now;
        if self.turns.is_empty() {
            return self.turns.push_back((owner, begin + length));
        }
        for (holder, until) in &self.turns {
            if *until > begin {
                let (account, waited) = (&mut ask.account, *until - begin);
                to.ledger.wait(account, owner, *holder, to.resource, waited);
                begin = *until;
            }
        }
        self.turns.push_back((owner, begin + length));
    }
}

/// Where a bank books waits.
struct Books<'a> {
    tile: TileId,
    resource: Resource,
    ledger: &'a mut Ledger,
}

impl Books<'_> {
    fn owner(&self, port: Port) -> Owner {
        Owner::new(self.tile, port.into())
    }
}

/// See the module's documentation.
#[derive(Debug)]
pub(super) struct SecondLevel {
    pub tile: TileId,
    pub directory: Directory,
    queue: Queue<Arrival>,
    banks: Vec<Bank>,
    /// From a first level to here, and back.
    pub up: Tick,
    pub down: Tick,
    lookup: Tick,
    occupancy: Tick,
    cycle: Tick,
    line: u32,
    pub map: MemoryMap,
    pub engines: EngineMap,
    /// Tightly coupled memories of tiles, which harts reach over the network.
    pub tcms: TcmMap,
    /// The flush of the capacity controller that is under way.
    pub(super) flush: Option<Flush>,
    /// Its prefetcher, if it has one.
    pub(super) ahead: Option<Box<Ahead>>,
    /// How an operation of the capacity controller has ended, now.
    pub ended: Option<Outcome>,
    /// Answers of engines and tiles, to go down now: port, token, value.
    pub answers: Vec<(Port, u32, u64)>,
    /// The sources of interrupts of other parts that have arrived, to go to the interrupt controller now.
    pub interrupts: Vec<u32>,
    /// Nothing that this tile has asked for since the window of time began can come back before this tick.
    pub limit: Tick,
}

impl SecondLevel {
    /// `None`: the tile has no second level.
    pub fn new(
        config: &TileConfig,
        cluster: &ClusterConfig,
        (map, engines, tcms): (MemoryMap, EngineMap, TcmMap),
    ) -> Option<Self> {
        let l2 = config.l2.as_ref()?;
        let bank = || Bank {
            turns: VecDeque::with_capacity(64),
        };
        let mut directory = Directory::new(config.id, l2);
        if cluster.divided_registers {
            directory.divide_registers(cluster.harts.len());
        }
        directory.coherent = cluster.coherent;
        let all = u64::MAX >> (64 - l2.ways);
        directory.capacity = Capacity::new(cluster, all, directory.slots());
        Some(Self {
            tile: config.id,
            directory,
            queue: Queue::new(),
            banks: (0..cluster.banks).map(|_| bank()).collect(),
            up: config.second_level(cluster.up),
            down: config.second_level(cluster.down),
            lookup: config.second_level(l2.latency),
            occupancy: config.second_level(cluster.occupancy),
            cycle: l2.cycle,
            line: l2.line,
            map,
            engines,
            tcms,
            flush: None,
            ahead: Ahead::of(l2, cluster.harts.len()),
            ended: None,
            answers: Vec::new(),
            interrupts: Vec::new(),
            limit: Tick::MAX,
        })
    }

    /// Least time from a reply of a first level to a message that it causes at another one, or at its own.
    #[inline]
    pub fn reply_reach(&self) -> Tick {
        self.up + self.down
    }

    /// The same for a request, whose line is looked up before it has any effect; and for an access to a device.
    #[inline]
    pub fn request_reach(&self) -> Tick {
        self.up + self.lookup + self.down
    }

    /// The next moment at which something happens here.
    #[inline]
    pub fn next_time(&self) -> Tick {
        self.queue.next_time()
    }

    /// A first level sends a reply.
    pub fn reply(&mut self, now: Tick, port: Port, reply: Reply) {
        let component = REPLIES + u32::from(port);
        let arrival = Arrival::Reply(port, reply);
        self.queue.push(now + self.up, component, arrival);
    }

    /// The hart at `from` writes a lockdown register of the hart at `of`.
    pub fn write_fills(&mut self, now: Tick, from: Port, (of, what): (Port, Fill), ways: u64) {
        let component = REPLIES + u32::from(from);
        let arrival = Arrival::Fills(of, what, ways);
        self.queue.push(now + self.up, component, arrival);
    }

    /// The hart at `from` orders an operation of the capacity controller.
    pub fn operate(&mut self, now: Tick, from: Port, operation: Operation) {
        let component = REPLIES + u32::from(from);
        let arrival = Arrival::Operation(from, operation);
        self.queue.push(now + self.up, component, arrival);
    }

    /// A first level sends a request.
    pub fn request(&mut self, now: Tick, mut ask: Ask) {
        ask.account.service += self.up;
        let component = REQUESTS + u32::from(ask.port);
        self.queue
            .push(now + self.up, component, Arrival::Request(ask));
    }

    /// A hart's access to a DMA engine or a tile passes on its way to the network.
    pub fn pass(&mut self, now: Tick, port: Port, mut packet: Packet) {
        packet.account.service += self.up;
        let passes = Arrival::Passes(Box::new(packet));
        let component = PASSING + u32::from(port);
        self.queue.push(now + self.up, component, passes);
    }

    /// A packet for the tile will have arrived at `at`.
    pub fn deliver(&mut self, at: Tick, packet: Box<Packet>) {
        self.queue.push(at, MEMORY, Arrival::Packet(packet));
    }

    /// Takes the next arrival, and sends to memory what it causes. Messages for first levels are in `directory.out`, to leave now.
    pub fn step(&mut self, fabric: &mut Fabric) -> Tick {
        let (now, arrival) = self.queue.pop().expect("something arrives");
        let ledger = &mut fabric.ledger;
        match arrival {
            Arrival::Reply(port, reply) => self.directory.reply(now, port, reply, ledger),
            Arrival::Fills(port, what, ways) => self.directory.capacity.lock(port, what, ways),
            Arrival::Operation(from, operation) => self.perform(now, from, &operation),
            Arrival::Scan => self.scan(now, ledger),
            Arrival::Request(ask) => self.turn(now, ask, ledger),
            Arrival::Found(ask) => self.found(now, ask, ledger),
            Arrival::Packet(packet) => self.packet(now, packet, ledger),
            Arrival::Wanted(packet) => self.want(now, &packet, ledger),
            Arrival::Passes(packet) => self.send(now, packet, fabric),
        }
        self.reclaimed(now, &mut fabric.ledger);
        self.leave(now, fabric);
        self.tell_foreseen();
        now
    }

    fn perform(&mut self, now: Tick, from: Port, operation: &Operation) {
        match self.directory.capacity.perform(operation) {
            Step::Done(outcome) => self.ended = Some(outcome),
            Step::Flush { rcid, what } => {
                assert!(self.flush.is_none(), "one operation at a time");
                self.flush = Some(Flush::new(from, rcid, what, operation.register));
                self.look_at_next_set(now);
            }
        }
    }

    /// The capacity controller looks at a set in the next cycle.
    pub(super) fn look_at_next_set(&mut self, now: Tick) {
        self.queue.push(now + self.cycle, SCAN, Arrival::Scan);
    }

    /// A request waits for its bank and looks for its line.
    pub(super) fn turn(&mut self, now: Tick, mut ask: Ask, ledger: &mut Ledger) {
        let managed = matches!(ask.request, Request::Manage(_));
        let owner = Owner::new(self.tile, ask.port.into());
        ledger.comes(owner, now, (ask.line, managed));
        let number = ask.line / u64::from(self.line) % self.banks.len() as u64;
        let resource = Resource::ClusterBank {
            tile: self.tile,
            bank: number as u16,
        };
        let mut books = Books {
            tile: self.tile,
            resource,
            ledger,
        };
        let bank = &mut self.banks[number as usize];
        bank.turn(now, &mut ask, self.occupancy, self.cycle, &mut books);
        ask.account.service += self.lookup;
        let component = FOUND + u32::from(ask.port);
        let found = ask.account.accounted();
        self.queue.push(found, component, Arrival::Found(ask));
    }

    /// A home wants a line, which has been looked up.
    fn want(&mut self, now: Tick, packet: &Packet, ledger: &mut Ledger) {
        let PacketKind::Wanted { surrender } = packet.kind else {
            panic!("a home wants nothing with {packet:?}");
        };
        let line = u64::from(packet.tag) * u64::from(self.line);
        let question = (surrender, packet.owner, packet.account);
        self.directory.want(now, line, question, ledger);
    }

    fn packet(&mut self, now: Tick, mut packet: Box<Packet>, ledger: &mut Ledger) {
        let line = u64::from(packet.tag) * u64::from(self.line);
        match (&packet.kind, &packet.line) {
            (PacketKind::ReadResponse { error: false, .. }, Some(bytes)) => {
                let account = packet.account;
                self.directory
                    .came(now, line, (bytes, true), account, ledger);
            }
            (PacketKind::Grant { alone, .. }, Some(bytes)) => {
                let account = packet.account;
                self.directory
                    .came(now, line, (bytes, *alone), account, ledger);
            }
            (PacketKind::Managed, _) => {
                self.directory.managed(now, line, packet.account, ledger);
            }
            (PacketKind::Wanted { .. }, _) => {
                packet.account.service += self.lookup;
                let found = now + self.lookup;
                self.queue.push(found, WANTED, Arrival::Wanted(packet));
            }
            (PacketKind::WriteResponse { error: false }, _) => {
                ledger.complete(packet.owner, packet.transaction, &packet.account, now);
                self.directory.written(now, line, ledger);
            }
            (PacketKind::RemoteAnswer { value, .. }, _) => {
                let mut account = packet.account;
                account.service += self.down;
                ledger.complete(packet.owner, packet.transaction, &account, now + self.down);
                let port = packet.owner.activity as Port;
                self.answers.push((port, packet.tag, *value));
            }
            (PacketKind::Interrupt { source }, _) => {
                let mut account = packet.account;
                account.service += self.down;
                ledger.complete(packet.owner, packet.transaction, &account, now + self.down);
                self.interrupts.push((*source).into());
            }
            _ => panic!("memory refuses a line of the cluster: {packet:?}"),
        }
    }

    /// Sends what the directory wants from memory.
    fn leave(&mut self, now: Tick, fabric: &mut Fabric) {
        if self.directory.below.is_empty() {
            return;
        }
        let mut all = std::mem::take(&mut self.directory.below);
        for below in all.drain(..) {
            let owner_of = |port: Port| Owner::new(self.tile, port.into());
            let (line, owner, ids, transaction) = match &below {
                Below::Read {
                    line, port, ids, ..
                }
                | Below::Manage {
                    line, port, ids, ..
                } => (*line, owner_of(*port), *ids, Transaction::CacheRead),
                Below::Write { line, port, ids } => {
                    (*line, owner_of(*port), *ids, Transaction::CacheWrite)
                }
                // What it causes is the memory's, in the name of the request for which the home asks.
                Below::Surrendered { line, owner, .. } => {
                    (*line, *owner, QosIds::default(), Transaction::Probe)
                }
            };
            let place = self.map.find(line);
            let (memory, address) =
                place.unwrap_or_else(|| panic!("line {line:#x} is in no memory"));
            let (memory, bytes) = (self.map.id(memory), self.line);
            let coherent = |want| PacketKind::Coherent {
                line: (line / u64::from(bytes)) as u32,
                address,
                bytes,
                want,
            };
            let (kind, account, data) = match below {
                Below::Read { account, alone, .. } => {
                    let kind = match (self.directory.coherent, alone) {
                        (false, _) => PacketKind::ReadRequest { address, bytes },
                        (true, false) => coherent(Want::Read),
                        (true, true) => coherent(Want::Write),
                    };
                    (kind, Some(account), None)
                }
                Below::Manage { account, what, .. } => {
                    (coherent(Want::Manage(what)), Some(account), None)
                }
                Below::Surrendered {
                    kept,
                    bytes: line,
                    account,
                    ..
                } => {
                    let bytes = if line.is_some() { bytes } else { 0 };
                    let kind = PacketKind::Surrendered {
                        address,
                        kept,
                        bytes,
                    };
                    (kind, Some(account), line.map(|line| *line))
                }
                Below::Write { line, .. } => {
                    let data = self.directory.written_bytes(line);
                    let data = *data.expect("it is on its way to memory");
                    let kind = PacketKind::WriteRequest {
                        address,
                        bytes,
                        data: None,
                    };
                    (kind, None, Some(data))
                }
            };
            if !matches!(kind, PacketKind::Surrendered { .. }) {
                let write = transaction == Transaction::CacheWrite;
                fabric.ledger.asks(owner, line, write);
            }
            let tag = (line / u64::from(self.line)) as u32;
            let mut packet = Packet::request(now, self.tile, memory, owner, tag, transaction, kind);
            packet.account = account.unwrap_or(packet.account);
            packet.line = data;
            packet.ids = ids;
            self.send(now, Box::new(packet), fabric);
        }
        self.directory.below = all;
    }

    fn send(&mut self, now: Tick, packet: Box<Packet>, fabric: &mut Fabric) {
        match fabric.send(now, packet) {
            Ok(head) => {
                let back = head + fabric.network.exit_lookahead();
                self.limit = self.limit.min(back);
            }
            Err(packet) => panic!("there is no such memory, engine or tile: {packet:?}"),
        }
    }

    /// The bytes of a line here or on its way to memory, if memory does not have the same.
    pub fn peek(&self, line: u64) -> Option<&[u8]> {
        self.directory.peek(line)
    }

    /// Writes bytes into every copy of a line, for tools that load memory.
    pub fn poke(&mut self, line: u64, offset: usize, bytes: &[u8]) {
        self.directory.poke(line, offset, bytes);
        let length = u64::from(self.line);
        self.queue.for_each_mut(|arrival| {
            if let Arrival::Packet(packet) = arrival
                && u64::from(packet.tag) * length == line
                && let Some(there) = &mut packet.line
            {
                there[offset..offset + bytes.len()].copy_from_slice(bytes);
            }
        });
    }
}

/// The account that a message for a first level continues.
pub(super) fn account(down: &mut Down) -> Option<&mut crate::noc::Account> {
    match down {
        Down::Probe { .. } => None,
        Down::Grant { account, .. }
        | Down::Instructions { account, .. }
        | Down::Dropped { account, .. }
        | Down::Managed { account, .. } => Some(account),
    }
}
