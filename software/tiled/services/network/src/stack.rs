//! Sockets, their owners, and requests that wait.
//!
//! Why it exists: see the crate. What it deliberately does not know: messages; a request has an item that comes back with its
//! answer.
//!
//! A client owns at most a fixed number of sockets, each with buffers of a fixed size. What the memory suffices for is divided at the start, and
//! each client has some sockets that no other gets. The remains of a closed connection have no owner, but are still somebody's: there are
//! at most [`ORPHANS`] of these, then the client with the most loses its oldest.

mod arrivals;
mod backlog;
#[cfg(test)]
mod tests_books;
#[cfg(test)]
mod tests_refusals;

use crate::card::Port;
use crate::protocol::{
    ACCEPT, ADDRESS, BIND, CLOSE, CONNECT, COUNTS, Counts, DATA, LISTEN, RECEIVE, RECEIVE_FROM,
    Reply, Request, SEND, SEND_TO,
};
use alloc::vec;
use alloc::vec::Vec;
use arrivals::Accounts;
use backlog::Pending;
use bulkhead_common::account::Terms;
use bulkhead_common::network::Card;
use bulkhead_common::payer::{Credit, PaidList, PaidQueue, Share};
use bulkhead_common::shares::{Seats, Shares};
use bulkhead_common::status::Status;
use bulkhead_common::waiting::{Client, Owner};
use core::cell::RefCell;
use smoltcp::iface::{Config, Interface, SocketHandle, SocketSet};
use smoltcp::socket::{tcp, udp};
use smoltcp::time::{Duration, Instant};
use smoltcp::wire::{
    ArpOperation, ArpPacket, ArpRepr, EthernetAddress, EthernetFrame, EthernetProtocol,
    EthernetRepr, IpAddress, IpCidr, IpEndpoint, Ipv4Address, Ipv4Cidr,
};

/// Sockets of all clients at most: as many as the card takes frames, so that each gets its turn (see `Stack::send`).
pub const SOCKETS: usize = 32;
/// Bytes of a socket beside its two buffers.
const OF_A_SOCKET: usize = 1024;
/// Closed connections that still have something to say.
const ORPHANS: usize = 16;
/// Nanoseconds that they get for it.
const LINGER: u64 = 60_000_000_000;
/// Nanoseconds to say that it is over.
const RESET: u64 = 1_000_000_000;
/// Nanoseconds after both sides have said all.
const TIME_WAIT: u64 = 10_000_000;
/// How long a connection is silent before it sends a keep-alive, whose answer brings the other side's window. An acknowledgement
/// with a closed window that arrives after the one that opened it closes it again for this side; if something must be repeated
/// then, the protocols find no room for it, and start no timer: without this, both sides would wait for each other forever.
const SILENCE: Duration = Duration::from_secs(1);
/// Datagrams that wait in a socket.
const DATAGRAMS: usize = 16;
/// Bytes that must be left when a socket gets its buffers: requests that wait, answers and lists need some, and cannot do without.
const SPARE: usize = 32 << 10;
/// Nanoseconds until a neighbour is asked again for its hardware address.
const ASK_AGAIN: u64 = 1_000_000_000;
/// First port that is given to sockets that want any (RFC 6335).
const ANY_PORT: u16 = 49152;

/// How a stack is set up.
#[derive(Clone, Copy, Debug)]
pub struct Options {
    /// Hardware address.
    pub mac: [u8; 6],
    /// Address and length of its network's prefix.
    pub address: ([u8; 4], u8),
    /// The gateway for frames to other networks.
    pub gateway: Option<[u8; 4]>,
    /// Sockets of a client at most.
    pub sockets: usize,
    /// The clients that there can be.
    pub seats: Seats,
    /// Bytes that a socket keeps of arriving data, and as many of leaving data.
    pub buffer: usize,
    /// Seed of initial sequence numbers.
    pub seed: u64,
    /// Most connections of a client that are being opened from outside, in addition to those at its listening sockets; 16 of all
    /// clients.
    pub backlog: usize,
    /// Nanoseconds until a connection that is being opened from outside is given up.
    pub handshake: u64,
    /// Time for frames that belong to no client, without those of the next account.
    pub strangers: Terms,
    /// Time for frames that open connections to clients that listen.
    pub openings: Terms,
    /// Time for frames that belong to a client, for each.
    pub arrivals: Terms,
    /// Nanoseconds since reset.
    pub clock: fn() -> u64,
}

/// An answer to a request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Answer {
    /// The head of the answer.
    pub reply: Reply,
    /// The data after it.
    pub data: PaidList<Credit, u8>,
}

impl Answer {
    fn of(value: u64, remote: Option<IpEndpoint>) -> Self {
        let (address, port) = match remote {
            Some(IpEndpoint {
                addr: IpAddress::Ipv4(address),
                port,
            }) => (address.octets(), port),
            None => ([0; 4], 0),
        };
        let reply = Reply {
            value,
            address,
            port,
            ..Reply::default()
        };
        Self {
            reply,
            data: PaidList::default(),
        }
    }

    fn with(mut self, data: Vec<u8>) -> Self {
        self.reply.length = data.len() as u16;
        self.data = PaidList::new(data);
        self
    }

    fn failed(status: Status) -> Self {
        let reply = Reply {
            status: status.code(),
            ..Reply::default()
        };
        Self {
            reply,
            data: PaidList::default(),
        }
    }
}

/// The result of an attempt.
enum Progress {
    Done(Answer),
    /// Not yet.
    Wait,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Udp,
    Tcp,
}

#[derive(Debug)]
struct Entry {
    /// The activity; or, if the socket was closed, the latest time at which it is dropped.
    owner: Result<u16, u64>,
    /// On whose account its memory is, as long as it has an owner.
    client: Client,
    kind: Kind,
    handle: SocketHandle,
    generation: u32,
    /// For listening.
    port: u16,
    /// Since when a connection to it is being opened, if it listens.
    half_open: Option<u64>,
    /// The neighbour that was asked for its hardware address on its behalf, and when.
    met: Option<([u8; 4], u64)>,
}

/// How many sockets memory suffices for.
#[derive(Clone, Copy, Debug)]
struct Room {
    /// Of clients.
    sockets: usize,
    /// Closed ones.
    orphans: usize,
    /// Connections that are being opened from outside.
    pending: usize,
}

impl Room {
    /// With this many bytes for each direction of each.
    fn new(buffer: usize) -> Self {
        let each = buffer.saturating_mul(2).saturating_add(OF_A_SOCKET);
        let fits = |count: &usize| {
            let bytes = count.saturating_mul(each).saturating_add(SPARE);
            Vec::<u8>::new().try_reserve_exact(bytes).is_ok()
        };
        let most = SOCKETS + ORPHANS + backlog::PENDING;
        let all = (0..=most).rev().find(fits).unwrap_or(0);
        let (orphans, pending) = (ORPHANS.min(all / 4), backlog::PENDING.min(all / 4));
        Self {
            sockets: SOCKETS.min(all - orphans - pending),
            orphans,
            pending,
        }
    }

    /// Divides half of the sockets among all possible clients, at least one for each if there are as many. The rest is for all.
    fn divide(&self, seats: Seats, most: usize) -> Shares<Client> {
        let (count, all) = (seats.count().max(1), self.sockets);
        let own = (all / 2 / count).max(usize::from(count <= all)).min(most);
        Shares::among(seats, own, all - own * count)
    }
}

struct Waiter<T> {
    owner: u16,
    request: Request,
    data: PaidList<Credit, u8>,
    item: T,
}

/// The protocols over a card. `T` is a request that must be answered.
pub struct Stack<C: Card, T> {
    port: Port<C>,
    interface: Interface,
    sockets: SocketSet<'static>,
    room: Room,
    shares: Shares<Client>,
    entries: PaidList<Share, Option<Entry>>,
    generation: u32,
    waiting: PaidList<Credit, Waiter<T>>,
    done: PaidQueue<Credit, (T, Answer)>,
    options: Options,
    next_port: u16,
    backlog: PaidList<Share, Pending>,
    accounts: Accounts,
    counts: Counts,
}

fn instant(now: u64) -> Instant {
    Instant::from_micros((now / 1000) as i64)
}

fn ipv4(address: [u8; 4]) -> IpAddress {
    IpAddress::Ipv4(Ipv4Address::from(address))
}

impl<C: Card, T> Stack<C, T> {
    /// A stack without sockets.
    pub fn new(card: C, options: Options, now: u64) -> Self {
        let mut config = Config::new(EthernetAddress(options.mac).into());
        config.random_seed = options.seed;
        let mut port = Port {
            card: RefCell::new(card),
            next: None,
        };
        let mut interface = Interface::new(config, &mut port, instant(now));
        let (address, prefix) = options.address;
        interface.update_ip_addrs(|list| {
            // One of eight places.
            let _ = list.push(IpCidr::new(ipv4(address), prefix));
        });
        if let Some(gateway) = options.gateway {
            let routes = interface.routes_mut();
            let _ = routes.add_default_ipv4_route(Ipv4Address::from(gateway));
        }
        let sockets = Vec::with_capacity(SOCKETS + ORPHANS + backlog::PENDING);
        let room = Room::new(options.buffer);
        Self {
            port,
            interface,
            sockets: SocketSet::new(sockets),
            shares: room.divide(options.seats, options.sockets),
            room,
            entries: PaidList::default(),
            generation: 0,
            waiting: PaidList::default(),
            done: PaidQueue::default(),
            accounts: Accounts::new(&options, now),
            backlog: PaidList::default(),
            counts: Counts::default(),
            options,
            next_port: ANY_PORT,
        }
    }

    /// Asks a neighbour for its hardware address, which tells it this one's, too: then both know each other, whichever of the two
    /// starts last. Otherwise the first frames of an application would ask, and if the neighbour had not started yet, the protocols
    /// would wait a second before they ask again.
    pub fn greet(&mut self, neighbour: [u8; 4]) {
        let arp = ArpRepr::EthernetIpv4 {
            operation: ArpOperation::Request,
            source_hardware_addr: EthernetAddress(self.options.mac),
            source_protocol_addr: Ipv4Address::from(self.options.address.0),
            target_hardware_addr: EthernetAddress::BROADCAST,
            target_protocol_addr: Ipv4Address::from(neighbour),
        };
        let ethernet = EthernetRepr {
            src_addr: EthernetAddress(self.options.mac),
            dst_addr: EthernetAddress::BROADCAST,
            ethertype: EthernetProtocol::Arp,
        };
        let bytes = ethernet.buffer_len() + arp.buffer_len();
        self.card().send(bytes, &mut |buffer| {
            let mut frame = EthernetFrame::new_unchecked(buffer);
            ethernet.emit(&mut frame);
            arp.emit(&mut ArpPacket::new_unchecked(frame.payload_mut()));
        });
    }

    /// The card.
    pub fn card(&mut self) -> &mut C {
        self.port.card.get_mut()
    }

    /// Requests that wait.
    pub fn waiting(&self) -> usize {
        self.waiting.len()
    }

    /// Sockets that a client has.
    pub fn sockets_of(&self, owner: u16) -> usize {
        let entries = self.entries.iter().flatten();
        entries.filter(|e| e.owner == Ok(owner)).count()
    }

    /// Sockets on the account of a client.
    pub fn sockets_on(&self, client: Client) -> usize {
        let entries = self.entries.iter().flatten().filter(|e| e.owner.is_ok());
        entries.filter(|e| e.client == client).count()
    }

    /// Sockets of all, closed ones that linger among them.
    pub fn sockets(&self) -> usize {
        self.entries.iter().flatten().count()
    }

    /// Takes a request of a client; the answer comes from [`take`](Self::take), perhaps later.
    pub fn request(&mut self, whose: Owner, request: Request, data: &[u8], item: T, now: u64) {
        let mut request = request;
        let owner = whose.activity;
        let begun = match request.operation {
            BIND => self.bind(whose, &request),
            LISTEN => self.listen(whose, &request),
            CLOSE => self.close(owner, &request, now),
            ADDRESS => Ok(Progress::Done(self.address())),
            COUNTS => Ok(Progress::Done(
                Answer::of(0, None).with(self.counts.bytes().to_vec()),
            )),
            CONNECT => self.connect(whose, &mut request),
            SEND | SEND_TO if data.len() > DATA => Err(Status::BadRequest),
            _ => self.attempt(owner, &request, data),
        };
        if begun.is_ok() {
            self.meet(owner, &request, now);
        }
        match begun {
            Ok(Progress::Done(answer)) => self.done.push_back((item, answer)),
            Err(status) => self.done.push_back((item, Answer::failed(status))),
            Ok(Progress::Wait) => self.waiting.push(Waiter {
                owner,
                request,
                data: PaidList::new(data.to_vec()),
                item,
            }),
        }
    }

    /// The next answer.
    pub fn take(&mut self) -> Option<(T, Answer)> {
        self.done.pop_front()
    }

    /// A client is gone: closes its sockets and informs their other ends. Its pending requests are not answered.
    pub fn forget(&mut self, owner: u16, now: u64) {
        self.waiting.retain(|waiter| waiter.owner != owner);
        for index in 0..self.entries.len() {
            if let Some(entry) = &self.entries[index]
                && entry.owner == Ok(owner)
            {
                if entry.kind == Kind::Tcp {
                    self.sockets.get_mut::<tcp::Socket>(entry.handle).abort();
                }
                self.orphan(index, now);
            }
        }
        self.drop_backlog(owner);
    }

    /// The work done for frames that belong to no client.
    pub fn counts(&self) -> Counts {
        self.counts
    }

    /// Takes at most `frames` frames from the card, sends pending frames, and answers the requests that can be answered. Returns
    /// whether there may be more frames.
    pub fn step(&mut self, now: u64, frames: usize) -> bool {
        let time = instant(now);
        self.interface.poll_maintenance(time);
        let more = self.take_frames(time, frames);
        self.send(time);
        self.promote();
        self.expire(now);
        self.reap(now);
        self.answer(now);
        // Answers may have made room, or caused frames to send.
        self.send(time);
        more
    }

    /// Sends a frame of each socket that has one. The protocols do that in the order of the sockets until the card is full, so there must be room
    /// for one of each: otherwise the first one, if it always has something to say, silences the others.
    fn send(&mut self, time: Instant) {
        let sockets = self.sockets.iter().count();
        if self.card().has_room(sockets) {
            let (interface, sockets) = (&mut self.interface, &mut self.sockets);
            interface.poll_egress(time, &mut self.port, sockets);
        }
    }

    /// Asks for the hardware address of the next one on the way to where a request sends, on behalf of its socket. The protocols ask, too, but
    /// only once a second for all sockets, so one that sends to addresses which nobody has would keep the others from asking.
    fn meet(&mut self, owner: u16, request: &Request, now: u64) {
        let kind = match request.operation {
            CONNECT => Kind::Tcp,
            SEND_TO => Kind::Udp,
            _ => return,
        };
        let (own, prefix) = self.options.address;
        let network = Ipv4Cidr::new(Ipv4Address::from(own), prefix);
        let to = Ipv4Address::from(request.address);
        let is_here = network.contains_addr(&to);
        let everybody = to.is_broadcast() || network.broadcast() == Some(to);
        let next = match self.options.gateway {
            _ if everybody || to.is_multicast() || to.is_unspecified() => return,
            _ if is_here => request.address,
            Some(gateway) => gateway,
            None => return,
        };
        let Ok(entry) = self.entry(owner, request.socket, kind) else {
            return;
        };
        let knows = |met: ([u8; 4], u64)| met.0 == next && now < met.1.saturating_add(ASK_AGAIN);
        if entry.met.is_some_and(knows) || !self.card().can_send() {
            return;
        }
        if let Some(entry) = &mut self.entries[(request.socket & 0xFF) as usize] {
            entry.met = Some((next, now));
        }
        self.greet(next);
    }

    /// When [`step`](Self::step) has something to do without a frame.
    pub fn next(&mut self, now: u64) -> Option<u64> {
        let polled = self.interface.poll_at(instant(now), &self.sockets);
        let polled = polled.map(|at| (at.total_micros().max(0) as u64).saturating_mul(1000));
        let until = self.waiting.iter().map(|w| w.request.until);
        let ends = self.entries.iter().flatten();
        let ends = ends.filter_map(|e| e.owner.err());
        let all = until.filter(|until| *until > 0).chain(ends).chain(polled);
        all.chain(self.next_expiry()).min()
    }

    fn entry(&self, owner: u16, socket: u64, kind: Kind) -> Result<&Entry, Status> {
        let entry = self.entries.get((socket & 0xFF) as usize);
        let entry = entry.and_then(Option::as_ref);
        let known = |e: &&Entry| {
            u64::from(e.generation) == socket >> 8 && e.owner == Ok(owner) && e.kind == kind
        };
        entry.filter(known).ok_or(Status::InvalidHandle)
    }

    /// A place for a socket on a client's account, however many activities share that.
    fn place(&self, client: Client) -> Result<usize, Status> {
        if self.shares.of(client) >= self.options.sockets || !self.shares.has_room(client) {
            return Err(Status::TooMany);
        }
        let free = self.entries.iter().position(Option::is_none);
        Ok(free.unwrap_or(self.entries.len()))
    }

    /// The handle of a new socket.
    fn enter(
        &mut self,
        place: usize,
        owner: Owner,
        kind: Kind,
        handle: SocketHandle,
        port: u16,
    ) -> u64 {
        // There is room.
        self.shares.hold(owner.client, 1);
        self.generation = self.generation.wrapping_add(1);
        let generation = self.generation;
        if place == self.entries.len() {
            self.entries.push(None);
        }
        self.entries[place] = Some(Entry {
            owner: Ok(owner.activity),
            client: owner.client,
            kind,
            handle,
            generation,
            port,
            half_open: None,
            met: None,
        });
        u64::from(generation) << 8 | place as u64
    }

    /// A free port.
    fn any_port(&mut self) -> u16 {
        loop {
            let port = self.next_port;
            self.next_port = match port {
                u16::MAX => ANY_PORT,
                port => port + 1,
            };
            if self.entries.iter().flatten().all(|e| e.port != port) {
                return port;
            }
        }
    }

    fn is_taken(&self, kind: Kind, port: u16, but: Option<u16>) -> bool {
        // A socket without an owner no longer listens.
        let mut owned = self.entries.iter().flatten().filter(|e| e.owner.is_ok());
        owned.any(|e| e.kind == kind && e.port == port && (but.is_none() || e.owner.ok() != but))
    }

    fn bind(&mut self, owner: Owner, request: &Request) -> Result<Progress, Status> {
        let place = self.place(owner.client)?;
        if request.port != 0 && self.is_taken(Kind::Udp, request.port, None) {
            return Err(Status::Exists);
        }
        let buffer = || -> Result<_, Status> {
            let about = vec![udp::PacketMetadata::EMPTY; DATAGRAMS];
            Ok(udp::PacketBuffer::new(about, self.memory()?))
        };
        let mut socket = udp::Socket::new(buffer()?, buffer()?);
        let port = match request.port {
            0 => self.any_port(),
            port => port,
        };
        socket.bind(port).map_err(|_| Status::BadRequest)?;
        let handle = self.sockets.add(socket);
        let mut answer = Answer::of(self.enter(place, owner, Kind::Udp, handle, port), None);
        answer.reply.port = port;
        Ok(Progress::Done(answer))
    }

    /// A buffer of a socket: large, so that there may be no memory for it.
    fn memory(&self) -> Result<Vec<u8>, Status> {
        let (mut bytes, mut spare) = (Vec::new(), Vec::<u8>::new());
        let room = bytes.try_reserve_exact(self.options.buffer);
        let room = room.and_then(|()| spare.try_reserve_exact(SPARE));
        room.map_err(|_| Status::NoSpace)?;
        bytes.resize(self.options.buffer, 0);
        Ok(bytes)
    }

    fn stream(&self) -> Result<tcp::Socket<'static>, Status> {
        let buffer = || self.memory().map(tcp::SocketBuffer::new);
        let mut socket = tcp::Socket::new(buffer()?, buffer()?);
        // Small messages leave at once, and are acknowledged soon.
        socket.set_nagle_enabled(false);
        socket.set_ack_delay(Some(Duration::from_micros(200)));
        socket.set_keep_alive(Some(SILENCE));
        Ok(socket)
    }

    fn listen(&mut self, owner: Owner, request: &Request) -> Result<Progress, Status> {
        let place = self.place(owner.client)?;
        // Several connections at one port are fine, if they are one client's.
        if self.is_taken(Kind::Tcp, request.port, Some(owner.activity)) {
            return Err(Status::Exists);
        }
        let mut socket = self.stream()?;
        socket
            .listen(request.port)
            .map_err(|_| Status::BadRequest)?;
        let handle = self.sockets.add(socket);
        let id = self.enter(place, owner, Kind::Tcp, handle, request.port);
        // A connection may be waiting for it.
        self.promote_one(place);
        Ok(Progress::Done(Answer::of(id, None)))
    }

    fn connect(&mut self, owner: Owner, request: &mut Request) -> Result<Progress, Status> {
        let place = self.place(owner.client)?;
        let mut socket = self.stream()?;
        let remote = IpEndpoint::new(ipv4(request.address), request.port);
        if remote.port == 0 || remote.addr.is_unspecified() {
            return Err(Status::BadRequest);
        }
        let port = self.any_port();
        let context = self.interface.context();
        socket
            .connect(context, remote, port)
            .map_err(|_| Status::BadRequest)?;
        let handle = self.sockets.add(socket);
        request.socket = self.enter(place, owner, Kind::Tcp, handle, port);
        Ok(Progress::Wait)
    }

    fn close(&mut self, owner: u16, request: &Request, now: u64) -> Result<Progress, Status> {
        let entry = self.entry(owner, request.socket, Kind::Tcp);
        let entry = entry.or_else(|_| self.entry(owner, request.socket, Kind::Udp))?;
        if entry.kind == Kind::Tcp {
            let handle = entry.handle;
            self.sockets.get_mut::<tcp::Socket>(handle).close();
        }
        // Requests that still wait for it are answered as closed.
        self.orphan((request.socket & 0xFF) as usize, now);
        Ok(Progress::Done(Answer::of(0, None)))
    }

    fn address(&self) -> Answer {
        let own = IpEndpoint::new(ipv4(self.options.address.0), 0);
        Answer::of(0, Some(own)).with(self.options.mac.to_vec())
    }

    /// A socket loses its owner.
    fn orphan(&mut self, index: usize, now: u64) {
        let Some(Some(entry)) = self.entries.get_mut(index) else {
            return;
        };
        if entry.kind == Kind::Udp {
            return self.remove(index);
        }
        let client = entry.client;
        entry.owner = Err(now.saturating_add(LINGER));
        self.shares.give_back(client);
        let entries = self.entries.iter().enumerate();
        let orphans = entries.filter_map(|(i, e)| {
            let entry = e.as_ref()?;
            Some((entry.owner.err()?, i, entry.client))
        });
        if orphans.clone().count() <= self.room.orphans {
            return;
        }
        // The client with the most makes room; of several the one that closes now.
        let count = |of: Client| orphans.clone().filter(|o| o.2 == of).count();
        let most = orphans.clone().map(|o| o.2);
        let most = most.max_by_key(|of| (count(*of), *of == client));
        let oldest = orphans.filter(|o| Some(o.2) == most).min();
        if let Some((_, oldest, _)) = oldest {
            self.remove(oldest);
        }
    }

    fn remove(&mut self, index: usize) {
        if let Some(entry) = self.entries[index].take() {
            self.sockets.remove(entry.handle);
            if entry.owner.is_ok() {
                self.shares.give_back(entry.client);
            }
        }
    }

    /// Drops the remains of connections that have ended.
    fn reap(&mut self, now: u64) {
        for index in 0..self.entries.len() {
            let Some(entry) = &mut self.entries[index] else {
                continue;
            };
            let Err(end) = &mut entry.owner else { continue };
            let socket = self.sockets.get_mut::<tcp::Socket>(entry.handle);
            // A reset is sent once, then the socket forgets its peer.
            let silent = !socket.is_open() && socket.remote_endpoint().is_none();
            if socket.state() == tcp::State::TimeWait {
                *end = (*end).min(now.saturating_add(TIME_WAIT));
            }
            if *end <= now && socket.is_open() && socket.state() != tcp::State::TimeWait {
                // The other end is informed, once.
                socket.abort();
                *end = now.saturating_add(RESET);
            } else if silent || *end <= now {
                self.remove(index);
            }
        }
    }

    /// Tries the waiting requests in the order of their arrival.
    fn answer(&mut self, now: u64) {
        for waiter in core::mem::take(&mut self.waiting) {
            let attempt = self.attempt(waiter.owner, &waiter.request, &waiter.data);
            let until = waiter.request.until;
            let answer = match attempt {
                Ok(Progress::Done(answer)) => answer,
                Ok(Progress::Wait) if until == 0 || now < until => {
                    self.meet(waiter.owner, &waiter.request, now);
                    self.waiting.push(waiter);
                    continue;
                }
                Ok(Progress::Wait) => Answer::failed(Status::Timeout),
                Err(status) => Answer::failed(status),
            };
            // Its place may be another one's by now.
            let socket = waiter.request.socket;
            if waiter.request.operation == CONNECT
                && answer.reply.status != 0
                && self.entry(waiter.owner, socket, Kind::Tcp).is_ok()
            {
                self.remove((socket & 0xFF) as usize);
            }
            self.done.push_back((waiter.item, answer));
        }
    }

    fn attempt(&mut self, owner: u16, request: &Request, data: &[u8]) -> Result<Progress, Status> {
        let kind = match request.operation {
            SEND_TO | RECEIVE_FROM => Kind::Udp,
            CONNECT | ACCEPT | SEND | RECEIVE => Kind::Tcp,
            _ => return Err(Status::UnknownOperation),
        };
        let entry = self.entry(owner, request.socket, kind)?;
        if kind == Kind::Udp {
            let socket = self.sockets.get_mut::<udp::Socket>(entry.handle);
            return datagram(socket, request, data);
        }
        let socket = self.sockets.get_mut::<tcp::Socket>(entry.handle);
        stream(socket, request, data)
    }
}

fn datagram(
    socket: &mut udp::Socket<'static>,
    request: &Request,
    data: &[u8],
) -> Result<Progress, Status> {
    if request.operation == SEND_TO {
        let remote = IpEndpoint::new(ipv4(request.address), request.port);
        return match socket.send_slice(data, remote) {
            Ok(()) => Ok(Progress::Done(Answer::of(data.len() as u64, None))),
            Err(udp::SendError::Unaddressable) => Err(Status::BadRequest),
            // A datagram larger than the whole buffer would wait forever.
            Err(udp::SendError::BufferFull) if data.len() > socket.payload_send_capacity() => {
                Err(Status::NoSpace)
            }
            Err(udp::SendError::BufferFull) => Ok(Progress::Wait),
        };
    }
    match socket.recv() {
        Ok((payload, about)) => {
            let length = payload.len().min(DATA);
            let answer = Answer::of(payload.len() as u64, Some(about.endpoint));
            Ok(Progress::Done(answer.with(payload[..length].to_vec())))
        }
        Err(udp::RecvError::Exhausted) => Ok(Progress::Wait),
        Err(udp::RecvError::Truncated) => Err(Status::NoSpace),
    }
}

fn stream(
    socket: &mut tcp::Socket<'static>,
    request: &Request,
    data: &[u8],
) -> Result<Progress, Status> {
    let done = |value: usize| Ok(Progress::Done(Answer::of(value as u64, None)));
    let early = matches!(
        socket.state(),
        tcp::State::Listen | tcp::State::SynSent | tcp::State::SynReceived
    );
    match request.operation {
        CONNECT | ACCEPT => match socket.remote_endpoint() {
            _ if early => Ok(Progress::Wait),
            Some(remote) if socket.is_active() => {
                let mut answer = Answer::of(request.socket, Some(remote));
                if request.operation == CONNECT {
                    answer.reply.port = socket.local_endpoint().map_or(0, |own| own.port);
                }
                Ok(Progress::Done(answer))
            }
            _ => Err(Status::Closed),
        },
        SEND => match socket.send_slice(data) {
            Ok(0) if !data.is_empty() => Ok(Progress::Wait),
            Ok(taken) => done(taken),
            Err(_) if early => Ok(Progress::Wait),
            Err(tcp::SendError::InvalidState) => Err(Status::Closed),
        },
        _ => {
            let mut buffer = vec![0; usize::from(request.length).min(DATA)];
            match socket.recv_slice(&mut buffer) {
                Ok(0) if !buffer.is_empty() => Ok(Progress::Wait),
                Ok(length) => {
                    buffer.truncate(length);
                    let answer = Answer::of(length as u64, None);
                    Ok(Progress::Done(answer.with(buffer)))
                }
                Err(tcp::RecvError::Finished) => done(0),
                Err(tcp::RecvError::InvalidState) if early => Ok(Progress::Wait),
                Err(tcp::RecvError::InvalidState) => Err(Status::Closed),
            }
        }
    }
}
