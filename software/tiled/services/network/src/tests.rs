//! Two stacks at the ends of a cable, and one alone against a hostile one.

mod cables;
mod clients;

use crate::protocol::*;
use crate::{Answer, Card, Options, Stack, Status, Terms};
use alloc::boxed::Box;
use alloc::vec;
use alloc::vec::Vec;
use bulkhead_abi::network::FRAME_MAX;
use bulkhead_common::network::Received;
use bulkhead_common::shares::Seats;
use bulkhead_common::waiting::{Client, Owner};
use core::cell::Cell;
use proptest::prelude::*;
use proptest::test_runner::TestCaseResult;
use smoltcp::phy::ChecksumCapabilities;
use smoltcp::wire::{
    IpProtocol, Ipv4Packet, Ipv4Repr, TcpControl, TcpPacket, TcpRepr, TcpSeqNumber,
};
use std::collections::VecDeque;

pub const HERE: [u8; 4] = [10, 0, 0, 1];
pub const THERE: [u8; 4] = [10, 0, 0, 2];

/// A card whose frames are in lists.
#[derive(Default)]
pub struct Wire {
    pub arrived: VecDeque<Vec<u8>>,
    pub left: VecDeque<Vec<u8>>,
    /// Buffers that have not come back.
    out: usize,
}

impl Wire {
    /// Buffers of frames that were taken and have not come back.
    pub fn out(&self) -> usize {
        self.out
    }
}

impl Card for Wire {
    fn receive(&mut self) -> Option<Received> {
        let frame = self.arrived.pop_front()?;
        let bytes = frame.len();
        self.out += 1;
        Some((frame.into(), 0, bytes))
    }
    fn give_back(&mut self, _: Box<[u8]>) {
        self.out -= 1;
    }
    fn can_send(&mut self) -> bool {
        self.has_room(1)
    }
    fn has_room(&mut self, frames: usize) -> bool {
        self.left.len() + frames.min(8) <= 8
    }
    fn send(&mut self, bytes: usize, fill: &mut dyn FnMut(&mut [u8])) -> bool {
        let mut frame = vec![0; bytes];
        fill(&mut frame);
        self.left.push_back(frame);
        true
    }
}

std::thread_local! {
    /// The time, and how much it advances with each reading.
    static CLOCK: Cell<(u64, u64)> = const { Cell::new((1_000_000, 0)) };
}

fn clock() -> u64 {
    let (now, step) = CLOCK.get();
    CLOCK.set((now + step, step));
    now
}

pub fn options(address: [u8; 4]) -> Options {
    Options {
        mac: [2, 0, 0, 0, 0, address[3]],
        address: (address, 24),
        gateway: None,
        sockets: 4,
        seats: Seats::new([16]),
        buffer: 4096,
        seed: address[3].into(),
        backlog: 4,
        handshake: 30_000_000_000,
        strangers: Terms::NONE,
        openings: Terms::NONE,
        arrivals: Terms::NONE,
        clock,
    }
}

fn stack(address: [u8; 4]) -> Stack<Wire, u32> {
    Stack::new(Wire::default(), options(address), 0)
}

/// An activity with a channel of its own.
pub fn owner(activity: u16) -> Owner {
    let client = Client {
        priority: 0,
        label: activity.into(),
    };
    Owner { client, activity }
}

/// Two stacks; a number for each frame decides its fate.
pub struct Pair {
    pub stacks: [Stack<Wire, u32>; 2],
    pub now: u64,
    random: bulkhead_random::Random,
    pub loss: u64,
    /// This percentage of frames comes late, by up to two milliseconds; the frames in transit, and when they arrive.
    late: u64,
    held: [Vec<(u64, Vec<u8>)>; 2],
    pub answers: [Vec<(u32, Answer)>; 2],
}

impl Pair {
    pub fn new(loss: u64) -> Self {
        Self {
            stacks: [stack(HERE), stack(THERE)],
            now: 1_000_000,
            random: bulkhead_random::Random::new(88172645463325252),
            loss,
            late: 0,
            held: [Vec::new(), Vec::new()],
            answers: [Vec::new(), Vec::new()],
        }
    }

    /// From now on each reading of the clock takes this many nanoseconds.
    pub fn slow(&self, step: u64) {
        CLOCK.set((self.now, step));
    }

    fn draw(&mut self) -> u64 {
        self.random.next() % 100
    }

    fn ask(&mut self, side: usize, activity: u16, request: Request, data: &[u8], item: u32) {
        let (now, owner) = (self.now, owner(activity));
        self.stacks[side].request(owner, request, data, item, now);
    }

    /// A tenth of a millisecond.
    pub fn tick(&mut self) {
        self.now += 100_000;
        CLOCK.set((self.now, CLOCK.get().1));
        for side in 0..2 {
            while self.stacks[side].step(self.now, 4) {}
            while let Some(answer) = self.stacks[side].take() {
                self.answers[side].push(answer);
            }
            let frames: Vec<Vec<u8>> = self.stacks[side].card().left.drain(..).collect();
            for frame in frames {
                let (fate, twice) = (self.draw(), self.draw());
                if fate < self.loss {
                    continue;
                }
                if self.late > 0 && self.draw() < self.late {
                    let delay = 1 + self.draw() % 20;
                    let arrives = self.now + delay * 100_000;
                    self.held[side].push((arrives, frame.clone()));
                    if twice >= self.loss {
                        continue;
                    }
                }
                let other = &mut self.stacks[1 - side].card().arrived;
                if twice < self.loss {
                    other.push_front(frame.clone());
                }
                other.push_back(frame);
            }
            let now = self.now;
            for (_, frame) in self.held[side].extract_if(.., |held| held.0 <= now) {
                self.stacks[1 - side].card().arrived.push_back(frame);
            }
        }
    }

    /// Runs until there is an answer to an item, for at most this many ticks.
    fn wait(&mut self, side: usize, item: u32, ticks: u32) -> Option<Answer> {
        for _ in 0..ticks {
            if let Some(i) = self.answers[side].iter().position(|a| a.0 == item) {
                return Some(self.answers[side].remove(i).1);
            }
            self.tick();
        }
        None
    }

    pub fn call(&mut self, side: usize, owner: u16, request: Request, data: &[u8]) -> Answer {
        self.ask(side, owner, request, data, 1000);
        self.wait(side, 1000, 1_000_000).expect("an answer")
    }
}

pub fn request(operation: u64, socket: u64) -> Request {
    Request {
        operation,
        socket,
        ..Request::default()
    }
}

fn to(operation: u64, socket: u64, address: [u8; 4], port: u16) -> Request {
    Request {
        address,
        port,
        ..request(operation, socket)
    }
}

fn status(answer: &Answer) -> Option<Status> {
    Status::from_code(answer.reply.status)
}

#[test]
fn a_datagram_comes_back() {
    let mut pair = Pair::new(0);
    let server = pair.call(1, 7, to(BIND, 0, HERE, 7), &[]).reply.value;
    let client = pair.call(0, 3, to(BIND, 0, HERE, 0), &[]).reply;
    pair.ask(1, 7, request(RECEIVE_FROM, server), &[], 1);
    let sent = pair.call(0, 3, to(SEND_TO, client.value, THERE, 7), b"hello");
    assert_eq!(sent.reply.value, 5);
    let got = pair.wait(1, 1, 100).expect("a datagram");
    assert_eq!((&got.data[..], got.reply.address), (&b"hello"[..], HERE));
    assert_eq!(got.reply.port, client.port);
    let back = to(SEND_TO, server, got.reply.address, got.reply.port);
    pair.call(1, 7, back, &got.data);
    let got = pair.call(0, 3, request(RECEIVE_FROM, client.value), &[]);
    assert_eq!((&got.data[..], got.reply.address), (&b"hello"[..], THERE));
}

fn connected(pair: &mut Pair) -> (u64, u64) {
    let listening = pair.call(1, 7, to(LISTEN, 0, HERE, 80), &[]).reply.value;
    pair.ask(1, 7, request(ACCEPT, listening), &[], 1);
    let client = pair.call(0, 3, to(CONNECT, 0, THERE, 80), &[]).reply;
    assert_eq!(client.status, 0);
    let accepted = pair.wait(1, 1, 100_000).expect("a connection");
    assert_eq!(
        (accepted.reply.address, accepted.reply.port),
        (HERE, client.port)
    );
    (client.value, listening)
}

/// Sends bytes through a connection, over a cable that loses and doubles this percentage of frames.
fn transfer(bytes: usize, loss: u64) {
    let mut pair = Pair::new(loss);
    let (client, server) = connected(&mut pair);
    let data: Vec<u8> = (0..bytes).map(|i| (i * 7 + i / 256) as u8).collect();
    let (mut sent, mut got) = (0, Vec::new());
    let (mut sending, mut receiving) = (false, false);
    for _ in 0..2_000_000 {
        if sent < bytes && !sending {
            let part = &data[sent..(sent + DATA).min(bytes)];
            pair.ask(0, 3, request(SEND, client), part, 2);
            sending = true;
        }
        if !receiving {
            let length = DATA as u16;
            let receive = Request {
                length,
                ..request(RECEIVE, server)
            };
            pair.ask(1, 7, receive, &[], 3);
            receiving = true;
        }
        pair.tick();
        for (item, answer) in core::mem::take(&mut pair.answers[0]) {
            assert_eq!((item, answer.reply.status), (2, 0));
            sent += answer.reply.value as usize;
            sending = false;
        }
        for (item, answer) in core::mem::take(&mut pair.answers[1]) {
            assert_eq!((item, answer.reply.status), (3, 0));
            got.extend_from_slice(&answer.data);
            receiving = false;
        }
        if got.len() >= bytes {
            break;
        }
    }
    assert!(got == data, "{} of {bytes} bytes", got.len());
    // The end of the stream.
    pair.call(0, 3, request(CLOSE, client), &[]);
    let end = match receiving {
        true => pair.wait(1, 3, 100_000).expect("the end"),
        false => pair.call(
            1,
            7,
            Request {
                length: 1,
                ..request(RECEIVE, server)
            },
            &[],
        ),
    };
    assert_eq!((end.reply.status, end.reply.value), (0, 0));
    pair.call(1, 7, request(CLOSE, server), &[]);
    // The remains of the connection do not block the port.
    let next = pair.call(1, 8, to(LISTEN, 0, HERE, 80), &[]).reply;
    assert_eq!(next.status, 0);
    pair.call(1, 8, request(CLOSE, next.value), &[]);
    for _ in 0..50_000 {
        pair.tick();
    }
    assert_eq!(pair.stacks.each_ref().map(Stack::sockets), [0, 0]);
}

#[test]
fn a_stream_arrives_as_it_was_sent() {
    transfer(100_000, 0);
}

#[test]
fn a_stream_arrives_over_a_bad_cable() {
    transfer(20_000, 10);
}

#[test]
fn an_echo_request_is_answered() {
    let mut stack = stack(HERE);
    // Who has 10.0.0.1? (RFC 826), so that the stack knows where to answer.
    let mut arp = vec![0xFF; 6];
    arp.extend([2, 0, 0, 0, 0, 2, 8, 6, 0, 1, 8, 0, 6, 4, 0, 1]);
    arp.extend([2, 0, 0, 0, 0, 2, 10, 0, 0, 2, 0, 0, 0, 0, 0, 0, 10, 0, 0, 1]);
    // An echo request (RFC 792) with four bytes; both checksums computed by hand after RFC 1071.
    let mut echo = vec![2, 0, 0, 0, 0, 1, 2, 0, 0, 0, 0, 2, 8, 0];
    let mut ip = vec![
        0x45, 0, 0, 32, 0, 0, 0, 0, 64, 1, 0, 0, 10, 0, 0, 2, 10, 0, 0, 1,
    ];
    let mut icmp = vec![8, 0, 0, 0, 0, 9, 0, 1, 1, 2, 3, 4];
    for part in [&mut ip, &mut icmp] {
        let place = if part[0] == 8 { 2 } else { 10 };
        let sum: u32 = part
            .chunks(2)
            .map(|pair| u32::from(pair[0]) << 8 | u32::from(pair[1]))
            .sum();
        let sum = !((sum & 0xFFFF) + (sum >> 16)) as u16;
        part[place..place + 2].copy_from_slice(&sum.to_be_bytes());
    }
    echo.extend(&ip);
    echo.extend(&icmp);
    stack.card().arrived.extend([arp, echo]);
    stack.step(1_000_000, 8);
    let left = &stack.card().left;
    assert_eq!(left.len(), 2);
    assert_eq!(left[1][34], 0);
    assert_eq!(&left[1][38..46], &[0, 9, 0, 1, 1, 2, 3, 4]);
    assert_eq!(stack.card().out, 0);
}

#[test]
fn nobody_has_more_than_his_sockets() {
    let mut pair = Pair::new(0);
    for _ in 0..4 {
        assert_eq!(pair.call(0, 3, to(BIND, 0, HERE, 0), &[]).reply.status, 0);
    }
    for operation in [BIND, LISTEN, CONNECT] {
        let fifth = pair.call(0, 3, to(operation, 0, THERE, 99), &[]);
        assert_eq!(status(&fifth), Some(Status::TooMany));
    }
    // Others are not affected; ports and handles are not shared.
    let other = pair.call(0, 4, to(BIND, 0, HERE, 53), &[]).reply.value;
    for (owner, operation, socket, expected) in [
        (3, CLOSE, other, Status::InvalidHandle),
        (3, RECEIVE_FROM, other, Status::InvalidHandle),
        (4, RECEIVE, other, Status::InvalidHandle),
        (4, RECEIVE_FROM, other ^ 0x100, Status::InvalidHandle),
        (4, 99, other, Status::UnknownOperation),
    ] {
        let refused = pair.call(0, owner, request(operation, socket), &[]);
        assert_eq!(status(&refused), Some(expected));
    }
    let taken = pair.call(0, 5, to(BIND, 0, HERE, 53), &[]);
    assert_eq!(status(&taken), Some(Status::Exists));
    let zero = pair.call(0, 5, to(LISTEN, 0, HERE, 0), &[]);
    assert_eq!(status(&zero), Some(Status::BadRequest));
    let large = pair.call(0, 4, to(SEND_TO, other, THERE, 1), &[0; DATA + 1]);
    assert_eq!(status(&large), Some(Status::BadRequest));
}

#[test]
fn a_client_that_is_gone_loses_only_its_own() {
    let mut pair = Pair::new(0);
    let (_, server) = connected(&mut pair);
    let stays = pair.call(0, 4, to(BIND, 0, HERE, 53), &[]).reply.value;
    pair.ask(0, 4, request(RECEIVE_FROM, stays), &[], 5);
    pair.ask(0, 3, request(RECEIVE_FROM, 77), &[], 6);
    let now = pair.now;
    pair.stacks[0].forget(3, now);
    assert_eq!(
        (pair.stacks[0].sockets_of(3), pair.stacks[0].sockets_of(4)),
        (0, 1)
    );
    // The other end of the connection receives a reset.
    let end = pair.call(
        1,
        7,
        Request {
            length: 9,
            ..request(RECEIVE, server)
        },
        &[],
    );
    assert_eq!(status(&end), Some(Status::Closed));
    assert_eq!(pair.stacks[0].waiting(), 1);
    let sender = pair.call(1, 8, to(BIND, 0, HERE, 0), &[]).reply.value;
    pair.call(1, 8, to(SEND_TO, sender, HERE, 53), b"x");
    assert_eq!(
        pair.wait(0, 5, 100).expect("still there").data.as_slice(),
        b"x"
    );
}

#[test]
fn neighbours_know_each_other_whoever_starts_last() {
    let mut pair = Pair::new(0);
    // The first one's greeting is lost; the other one greets.
    pair.stacks[0].greet(THERE);
    pair.stacks[0].card().left.clear();
    let socket = pair.call(0, 3, to(BIND, 0, HERE, 9), &[]).reply.value;
    pair.call(0, 3, to(SEND_TO, socket, THERE, 9), b"lost");
    pair.stacks[0].step(pair.now, 4);
    pair.stacks[0].card().left.clear();
    pair.stacks[1].greet(HERE);
    pair.tick();
    let other = pair.call(1, 4, to(BIND, 0, HERE, 9), &[]).reply.value;
    pair.call(0, 3, to(SEND_TO, socket, THERE, 9), b"here");
    pair.ask(1, 4, request(RECEIVE_FROM, other), &[], 7);
    // Long before the second after which the first would ask again.
    let got = pair.wait(1, 7, 50).expect("a datagram");
    assert!(got.data.as_slice() == b"lost" || got.data.as_slice() == b"here");
}

#[test]
fn time_is_kept() {
    let mut pair = Pair::new(100);
    let until = pair.now + 5_000_000;
    let socket = pair.call(0, 3, to(BIND, 0, HERE, 0), &[]).reply.value;
    let receive = Request {
        until,
        ..request(RECEIVE_FROM, socket)
    };
    let late = pair.call(0, 3, receive, &[]);
    assert_eq!(status(&late), Some(Status::Timeout));
    assert!(pair.now >= until && pair.now <= until + 200_000);
    // Nobody answers at the other end of a cut cable; the socket is given back.
    let until = pair.now + 5_000_000;
    let connect = Request {
        until,
        ..to(CONNECT, 0, THERE, 80)
    };
    let late = pair.call(0, 3, connect, &[]);
    assert_eq!(status(&late), Some(Status::Timeout));
    assert_eq!(pair.stacks[0].sockets_of(3), 1);
    // Nobody listens.
    let mut pair = Pair::new(0);
    let refused = pair.call(0, 3, to(CONNECT, 0, THERE, 80), &[]);
    assert_eq!(status(&refused), Some(Status::Closed));
    assert_eq!(pair.stacks[0].sockets(), 0);
}

/// A segment from anybody that opens a connection to a port of the second stack.
fn opening(from: [u8; 4], port: u16, to: u16) -> Vec<u8> {
    let tcp = TcpRepr {
        src_port: port,
        dst_port: to,
        control: TcpControl::Syn,
        seq_number: TcpSeqNumber(77),
        ack_number: None,
        window_len: 1000,
        window_scale: None,
        max_seg_size: Some(1460),
        sack_permitted: false,
        sack_ranges: [None, None, None],
        timestamp: None,
        payload: &[],
    };
    let ip = Ipv4Repr {
        src_addr: from.into(),
        dst_addr: THERE.into(),
        next_header: IpProtocol::Tcp,
        payload_len: tcp.buffer_len(),
        hop_limit: 64,
    };
    let mut frame = vec![2, 0, 0, 0, 0, 2, 2, 0, 0, 0, 0, 0x66, 8, 0];
    frame.resize(14 + ip.buffer_len() + tcp.buffer_len(), 0);
    assert!(frame.len() <= FRAME_MAX);
    let checksums = ChecksumCapabilities::default();
    ip.emit(&mut Ipv4Packet::new_unchecked(&mut frame[14..]), &checksums);
    tcp.emit(
        &mut TcpPacket::new_unchecked(&mut frame[34..]),
        &ip.src_addr.into(),
        &ip.dst_addr.into(),
        &checksums,
    );
    frame
}

impl Pair {
    /// Forged segments that open connections, before the next tick.
    pub fn forge(&mut self, count: u32, port: u16) {
        for _ in 0..count {
            let chance = self.draw() as u8 + self.draw() as u8;
            let from = [10, 0, chance, 3 + self.draw() as u8];
            let source = 1024 + (self.draw() * 100 + self.draw()) as u16;
            let frame = opening(from, source, port);
            self.stacks[1].card().arrived.push_back(frame);
        }
    }
}

#[test]
fn forged_openings_keep_nobody_out() {
    let mut pair = Pair::new(0);
    for round in 0..20 {
        let listening = pair.call(1, 7, to(LISTEN, 0, HERE, 80), &[]).reply.value;
        pair.ask(1, 7, request(ACCEPT, listening), &[], 1);
        // All places are taken, many times over.
        for _ in 0..30 {
            pair.forge(3, 80);
            pair.tick();
            assert!(pair.stacks[1].pending() <= 4);
        }
        // A round trip is two ticks, in which fewer arrive than there are places.
        let until = pair.now + 50_000_000;
        let connect = Request {
            until,
            ..to(CONNECT, 0, THERE, 80)
        };
        pair.ask(0, 3, connect, &[], 2);
        let mut answer = None;
        for _ in 0..400 {
            pair.forge(1, 80);
            pair.tick();
            answer = answer.or(pair.answers[0].pop());
            if !pair.answers[1].is_empty() {
                break;
            }
        }
        let (_, answer) = answer.unwrap_or_else(|| panic!("{round} {:?}", pair.answers));
        assert_eq!(status(&answer), None, "round {round}");
        let (_, accepted) = pair.answers[1].pop().expect("a connection");
        assert_eq!((accepted.reply.status, accepted.reply.address), (0, HERE));
        let sent = pair.call(0, 3, request(SEND, answer.reply.value), b"honest");
        assert_eq!(sent.reply.value, 6);
        let receive = Request {
            length: 9,
            ..request(RECEIVE, listening)
        };
        assert_eq!(pair.call(1, 7, receive, &[]).data.as_slice(), b"honest");
        pair.call(0, 3, request(CLOSE, answer.reply.value), &[]);
        pair.call(1, 7, request(CLOSE, listening), &[]);
        for _ in 0..200 {
            pair.tick();
        }
    }
    assert!(pair.stacks[1].counts().recycled > 1000);
    // Nothing is left of it when its time is over.
    let listening = pair.call(1, 7, to(LISTEN, 0, HERE, 80), &[]).reply.value;
    pair.forge(9, 80);
    for _ in 0..310_000 {
        pair.tick();
    }
    assert_eq!(pair.stacks[1].pending(), 0);
    assert!(pair.stacks[1].counts().expired >= 5);
    // The listening socket, too, is free again.
    pair.ask(1, 7, request(ACCEPT, listening), &[], 1);
    let client = pair.call(0, 3, to(CONNECT, 0, THERE, 80), &[]).reply;
    assert_eq!(client.status, 0);
    assert!(pair.wait(1, 1, 100).is_some());
}

#[test]
fn openings_for_one_client_take_nothing_of_another() {
    let mut pair = Pair::new(0);
    pair.call(1, 7, to(LISTEN, 0, HERE, 80), &[]);
    let quiet = pair.call(1, 8, to(LISTEN, 0, HERE, 81), &[]).reply.value;
    pair.ask(1, 8, request(ACCEPT, quiet), &[], 1);
    for _ in 0..100 {
        pair.forge(8, 80);
        pair.tick();
    }
    pair.ask(0, 3, to(CONNECT, 0, THERE, 81), &[], 2);
    for _ in 0..20 {
        pair.forge(8, 80);
        pair.tick();
    }
    assert_eq!(pair.answers[1].len(), 1, "it is connected");
    // Nobody listens there: a segment for it is refused, and nothing is kept.
    let before = pair.stacks[1].pending();
    pair.forge(8, 82);
    pair.tick();
    assert_eq!(pair.stacks[1].pending(), before);
    // When the client is gone, so is everything that was kept for it.
    let now = pair.now;
    pair.stacks[1].forget(7, now);
    assert_eq!(pair.stacks[1].pending(), 0);
}

#[test]
fn frames_of_nobody_have_their_own_time_and_not_more() {
    let terms = Terms {
        limit: u64::MAX,
        budget: 200_000,
        period: 1_000_000,
    };
    let mut pair = Pair::new(0);
    let limited = Options {
        strangers: terms,
        ..options(THERE)
    };
    CLOCK.set((0, 0));
    pair.stacks[1] = Stack::new(Wire::default(), limited, 0);
    let server = pair.call(1, 7, to(BIND, 0, HERE, 7), &[]).reply.value;
    let client = pair.call(0, 3, to(BIND, 0, HERE, 0), &[]).reply.value;
    pair.call(0, 3, to(SEND_TO, client, THERE, 7), b"first");
    pair.call(1, 7, request(RECEIVE_FROM, server), &[]);
    // Each reading of the clock takes 2 us, so each frame takes that long; a hundred arrive in each tick.
    let (begin, before) = (pair.now, pair.stacks[1].counts());
    CLOCK.set((pair.now, 2_000));
    for _ in 0..100 {
        for _ in 0..100 {
            let frame = vec![0x5A; 60];
            pair.stacks[1].card().arrived.push_back(frame);
        }
        // A client's datagram follows all of them, and gets through.
        pair.call(0, 3, to(SEND_TO, client, THERE, 7), b"again");
        let got = pair.call(1, 7, request(RECEIVE_FROM, server), &[]);
        assert_eq!(got.data.as_slice(), b"again");
    }
    let counts = pair.stacks[1].counts();
    let periods = (pair.now - begin).div_ceil(terms.period) + 1;
    let time = counts.time - before.time;
    assert!(
        time <= periods * terms.budget + 10_000,
        "{time} ns in {periods} periods"
    );
    assert!(time >= (periods - 2) * terms.budget, "{counts:?}");
    assert!(counts.dropped > 1000, "{counts:?}");
    // Frames for clients are not counted there.
    let words = pair.call(1, 7, request(COUNTS, 0), &[]).data;
    assert_eq!(words.len(), 48);
    assert_eq!(words[..8], counts.taken.to_le_bytes());
}

#[test]
fn datagrams_for_a_client_take_its_time_and_no_other_clients() {
    let mut pair = Pair::new(0);
    let limited = Options {
        arrivals: Terms {
            limit: u64::MAX,
            budget: 50_000,
            period: 1_000_000,
        },
        ..options(THERE)
    };
    CLOCK.set((0, 0));
    pair.stacks[1] = Stack::new(Wire::default(), limited, 0);
    for (owner, port) in [(7, 7), (8, 8)] {
        pair.call(1, owner, to(BIND, 0, HERE, port), &[]);
    }
    let client = pair.call(0, 3, to(BIND, 0, HERE, 0), &[]).reply.value;
    CLOCK.set((pair.now, 10_000));
    for _ in 0..10 {
        pair.call(0, 3, to(SEND_TO, client, THERE, 7), b"flood");
    }
    let dropped = pair.stacks[1].counts().dropped;
    assert!(dropped > 0);
    pair.call(0, 3, to(SEND_TO, client, THERE, 8), b"other");
    for _ in 0..3 {
        pair.tick();
    }
    assert_eq!(pair.stacks[1].counts().dropped, dropped, "not the other's");
}

/// Each case takes long, so there are fewer by default.
pub fn cases() -> ProptestConfig {
    match std::env::var_os("PROPTEST_CASES") {
        Some(_) => ProptestConfig::default(),
        None => ProptestConfig::with_cases(64),
    }
}

/// A frame that arrives or a request: its kind, numbers, and contents.
type Frame = (u8, [u8; 8], Vec<u8>);

fn frame() -> impl Strategy<Value = Frame> {
    let contents = proptest::collection::vec(any::<u8>(), 0..120);
    (0u8..6, any::<[u8; 8]>(), contents)
}

/// Frames of a hostile peer, random or nearly right, between requests of equally hostile clients.
fn down(steps: Vec<Frame>) -> TestCaseResult {
    let mut stack = stack(HERE);
    let mut now = 0;
    let mut handles = vec![0u64];
    for (what, [a, b, c, d, e, ..], bytes) in steps {
        now += u64::from(a) * 1_000_000;
        match what {
            0 => stack.card().arrived.push_back(bytes),
            1 | 2 => {
                // A correct Ethernet and IP header, followed by random contents.
                let mut frame = vec![2, 0, 0, 0, 0, 1, 2, 0, 0, 0, 0, 2, 8, 0];
                let protocol = [1, 6, 17][usize::from(b % 3)];
                let length = (20 + bytes.len()) as u16;
                let mut ip = vec![
                    0x45, 0, 0, 0, 0, 0, 0, 0, 64, protocol, 0, 0, 10, 0, 0, 2, 10, 0, 0, 1,
                ];
                ip[2..4].copy_from_slice(&length.to_be_bytes());
                let sum: u32 = ip
                    .chunks(2)
                    .map(|p| u32::from(p[0]) << 8 | u32::from(p[1]))
                    .sum();
                let sum = !((sum & 0xFFFF) + (sum >> 16)) as u16;
                ip[10..12].copy_from_slice(&sum.to_be_bytes());
                frame.extend(ip);
                frame.extend(bytes);
                stack.card().arrived.push_back(frame);
            }
            3 => stack.forget(u16::from(b % 4), now),
            _ => {
                let request = Request {
                    operation: u64::from(c % 13),
                    socket: handles[usize::from(d) % handles.len()],
                    until: u64::from(e) * 1_000_000,
                    address: [10, 0, 0, 2],
                    port: u16::from(d % 4) * 40,
                    length: u16::from_le_bytes([a, e]),
                };
                stack.request(owner(u16::from(b % 4)), request, &bytes, 0, now);
            }
        }
        stack.step(now, 3);
        stack.card().left.clear();
        while let Some((_, answer)) = stack.take() {
            prop_assert!(answer.data.len() <= DATA);
            handles.push(answer.reply.value);
        }
        prop_assert!(stack.sockets() <= 4 * 4 + 16);
        let _ = stack.next(now);
    }
    Ok(())
}

proptest! {
    #![proptest_config(cases())]

    #[test]
    fn nothing_brings_the_service_down(
        steps in proptest::collection::vec(frame(), 1..80),
    ) {
            down(steps)?;
        }
}

#[test]
fn guided_frames() {
    bulkhead_fuzz::target("frames", |bytes| down(bytes.story(&frame(), 80)));
}
