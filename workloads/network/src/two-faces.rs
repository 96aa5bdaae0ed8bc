//! A neighbour on the cable with two faces: it connects to a sink and talks to it normally, and between its own frames it sends
//! forged ones: segments that open connections from senders that do not exist, or meaningless frames.
//!
//! Gates: `interrupt` (receive; the card's). Arguments: `to` (10.0.0.1) and `mac` (the last byte of its hardware address; 6): the
//! victim; `port` (9); `runs` (60): connections; `pause` (none): between two forged frames; `forged` (openings): or `junk`. Each
//! connection is a span, from its first segment to the sink's answer.
#![no_std]
#![no_main]

use bulkhead_lib::abi::network::INTERRUPT_GATE;
use bulkhead_lib::common::account::Terms;
use bulkhead_lib::common::network::{CLOSE, CONNECT, RECEIVE, Request, SEND, address};
use bulkhead_lib::common::shares::Seats;
use bulkhead_lib::common::status::Status;
use bulkhead_lib::common::waiting::{Client, Owner};
use bulkhead_lib::gate::ReceiveGate;
use bulkhead_lib::{argument, marker, println, time};
use bulkhead_network::{Answer, Card, Options, Stack};
use bulkhead_network_card::NetworkCard;
use bulkhead_random::Random;

bulkhead_lib::main!(main);

/// Its own address; the forged senders are in the same network.
const OWN: [u8; 4] = [10, 0, 0, 2];
/// Nanoseconds until it tries a connection again.
const PATIENCE: u64 = 2_000_000;

struct Neighbour {
    stack: Stack<NetworkCard, ()>,
    interrupt: ReceiveGate,
    victim: [u8; 4],
    mac: u8,
    port: u16,
    pause: Option<u64>,
    junk: bool,
    next: u64,
    random: Random,
    forged: u64,
}

fn main() -> u64 {
    let Some(victim) = argument::text("to").or(Some("10.0.0.1")).and_then(address) else {
        println!("argument `to`: an address such as `10.0.0.1`");
        return 1;
    };
    let card = match NetworkCard::new() {
        Ok(card) => card,
        Err(error) => {
            println!("the network card: {error:?}");
            return 1;
        }
    };
    let options = Options {
        mac: card.mac(),
        address: (OWN, 24),
        gateway: None,
        sockets: 8,
        seats: Seats::ALL,
        buffer: 2048,
        seed: 5,
        backlog: 0,
        handshake: u64::MAX,
        strangers: Terms::NONE,
        openings: Terms::NONE,
        arrivals: Terms::NONE,
        clock: time::now,
    };
    let pause = argument::text("pause").filter(|text| *text != "none");
    let mut neighbour = Neighbour {
        stack: Stack::new(card, options, time::now()),
        interrupt: ReceiveGate::named(INTERRUPT_GATE),
        victim,
        mac: argument::value("mac", 6),
        port: argument::value("port", 9),
        pause: pause.map(|_| argument::time("pause", 0)),
        junk: argument::text("forged") == Some("junk"),
        next: time::now(),
        random: Random::new(88_172_645_463_325_252),
        forged: 0,
    };
    neighbour.stack.greet(victim);
    let (runs, mut tries) = (argument::value("runs", 60u64), 0);
    for run in 0..runs {
        marker::span_begin(run);
        loop {
            tries += 1;
            match neighbour.visit() {
                Ok(()) => break,
                Err(_) if tries < 100 * runs => {}
                Err(status) => {
                    println!("{status} after {run} connections in {tries} tries");
                    return 1;
                }
            }
        }
        marker::span_end(run);
        neighbour.wait(200_000);
    }
    println!(
        "{runs} connections in {tries} tries beside {} forged frames",
        neighbour.forged
    );
    0
}

impl Neighbour {
    /// Connects, sends an empty stream, takes the checksum, closes.
    fn visit(&mut self) -> Result<(), Status> {
        let until = time::now() + PATIENCE;
        let ask = |operation: u64, socket: u64| Request {
            operation,
            socket,
            until,
            length: 8,
            address: [0; 4],
            port: 0,
        };
        let connect = Request {
            address: self.victim,
            port: self.port,
            ..ask(CONNECT, 0)
        };
        let socket = self.call(connect, &[])?.reply.value;
        let talk = self
            .call(ask(SEND, socket), &[0; 8])
            .and_then(|_| self.call(ask(RECEIVE, socket), &[]));
        let _ = self.call(ask(CLOSE, socket), &[]);
        match talk?.data.len() {
            8 => Ok(()),
            _ => Err(Status::Closed),
        }
    }

    fn call(&mut self, request: Request, data: &[u8]) -> Result<Answer, Status> {
        // It serves itself.
        let client = Client {
            priority: 0,
            label: 0,
        };
        let whose = Owner {
            client,
            activity: 1,
        };
        self.stack.request(whose, request, data, (), time::now());
        loop {
            self.step();
            if let Some(((), answer)) = self.stack.take() {
                return match Status::from_code(answer.reply.status) {
                    None => Ok(answer),
                    Some(status) => Err(status),
                };
            }
        }
    }

    fn wait(&mut self, nanoseconds: u64) {
        let end = time::now() + nanoseconds;
        while time::now() < end {
            self.step();
        }
    }

    fn step(&mut self) {
        while let Ok(Some(message)) = self.interrupt.fetch() {
            drop(message);
            self.stack.card().acknowledge();
        }
        self.stack.step(time::now(), 4);
        let Some(pause) = self.pause else { return };
        if time::now() >= self.next && self.stack.card().can_send() {
            self.next = self.next.max(time::now().saturating_sub(pause)) + pause;
            self.forge();
        }
    }

    fn draw(&mut self) -> u64 {
        self.random.next() >> 16
    }

    fn forge(&mut self) {
        self.forged += 1;
        let (victim, mac, port) = (self.victim, self.mac, self.port);
        let chance = self.draw();
        if self.junk {
            // An IP packet of a protocol that nobody uses, in the shortest frame.
            self.stack.card().send(60, &mut |frame| {
                headers(frame, mac, [10, 0, 0, 9], victim, 253);
                frame[34..].fill(chance as u8);
            });
            return;
        }
        let from = [10, 0, 0, 3 + (chance % 250) as u8];
        let source = 1024 + (chance >> 8) as u16 % 60_000;
        self.stack.card().send(60, &mut |frame| {
            headers(frame, mac, from, victim, 6);
            // The IP packet ends before the frame, which has at least 60 bytes.
            let tcp = &mut frame[34..54];
            tcp.fill(0);
            tcp[..2].copy_from_slice(&source.to_be_bytes());
            tcp[2..4].copy_from_slice(&port.to_be_bytes());
            tcp[4..8].copy_from_slice(&(chance as u32).to_be_bytes());
            // A header of five words; SYN; a window.
            tcp[12..16].copy_from_slice(&[0x50, 2, 4, 0]);
            let mut sum = sum(tcp) + sum_of([from, victim]) + 6 + 20;
            sum = (sum & 0xFFFF) + (sum >> 16);
            let sum = !((sum & 0xFFFF) + (sum >> 16)) as u16;
            tcp[16..18].copy_from_slice(&sum.to_be_bytes());
            frame[54..].fill(0);
        });
    }
}

/// The checksum of big-endian half words (RFC 1071).
fn sum(bytes: &[u8]) -> u32 {
    let halves = bytes.chunks(2);
    halves
        .map(|pair| u32::from(pair[0]) << 8 | u32::from(pair[1]))
        .sum()
}

fn sum_of(addresses: [[u8; 4]; 2]) -> u32 {
    addresses.iter().map(|address| sum(address)).sum()
}

/// Ethernet and IP header of a packet with 20 bytes of contents.
fn headers(frame: &mut [u8], mac: u8, from: [u8; 4], to: [u8; 4], protocol: u8) {
    frame[..6].copy_from_slice(&[2, 0, 0, 0, 0, mac]);
    frame[6..12].copy_from_slice(&[2, 0, 0, 0, 0, 0x66]);
    frame[12..14].copy_from_slice(&[8, 0]);
    let ip = &mut frame[14..34];
    ip.copy_from_slice(&[
        0x45, 0, 0, 40, 0, 0, 0, 0, 64, protocol, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0,
    ]);
    ip[12..16].copy_from_slice(&from);
    ip[16..20].copy_from_slice(&to);
    let sum = sum(ip);
    let sum = !((sum & 0xFFFF) + (sum >> 16)) as u16;
    ip[10..12].copy_from_slice(&sum.to_be_bytes());
}
