//! The network service: sockets of many clients over the network card of this tile.
//!
//! Why it exists: see `bulkhead-network`, which makes all decisions. What it deliberately does not know: its clients.
//!
//! Gates: `interrupt` (receive; the card's), `priority-0`, ... (receive, with slots of 1536 bytes). Arguments: those of `lib::server`;
//! `address` (such as `10.0.0.1/24`), `gateway` (none), `neighbours` (none): addresses to greet at the start, separated by blanks;
//! `sockets` (8): most sockets of a client (half of those that memory suffices for, at most 64, are divided among all possible clients, one
//! per slot of the gates); `buffer` (8192): bytes that a socket keeps for each direction; `backlog` (4): connections being opened from
//! outside, per client, in addition to its listening sockets; `handshake` (30s): when such a connection is given up; `openings` (100us):
//! time for frames that open connections to listening clients, `strangers` (100us): for all other frames that belong to no client, and
//! `arrivals` (none): for the frames of each client, in every `frame-period` (1ms). Clients need a session. It never ends.
//!
//! Between two requests the service takes at most [`FRAMES`] frames from the card, so a flood from the cable delays a request by no more
//! than that.
#![no_std]
#![no_main]

extern crate alloc;

use alloc::boxed::Box;
use alloc::vec::Vec;
use bulkhead_lib::abi::network::INTERRUPT_GATE;
use bulkhead_lib::common::network::{DATA, Reply, Request, network};
use bulkhead_lib::common::sessions::Sessions;
use bulkhead_lib::common::status::Status;
use bulkhead_lib::gate::{MessageBuffer, ReceiveGate};
use bulkhead_lib::server::{Client, Incoming, Server, Service};
use bulkhead_lib::zerocopy::{FromBytes, IntoBytes};
use bulkhead_lib::{argument, println, time};
use bulkhead_network::protocol::address;
use bulkhead_network::{Answer, Options, Stack, Terms};
use bulkhead_network_card::NetworkCard;

bulkhead_lib::main!(main);

/// Most frames taken from the card before the next request.
const FRAMES: usize = 4;
/// Longest time for a request with a frame's worth of data on any platform of the catalog, in nanoseconds.
const REQUEST: u64 = 60_000;

fn main() -> u64 {
    let Some(own) = argument::text("address").and_then(network) else {
        println!("argument `address`: an address such as `10.0.0.1/24` is needed");
        return 1;
    };
    let gateway = argument::text("gateway").map(|text| match address(text) {
        Some(gateway) => gateway,
        None => panic!("argument `gateway`: `{text}` is not an address such as `10.0.0.254`"),
    });
    let card = match NetworkCard::new() {
        Ok(card) => card,
        Err(error) => {
            println!("the network card: {error:?}");
            return 1;
        }
    };
    let mac = card.mac();
    let mut server = Server::from_environment();
    let options = Options {
        mac,
        address: own,
        gateway,
        sockets: argument::value("sockets", 8),
        seats: server.seats(),
        buffer: argument::value("buffer", 8192),
        seed: u64::from_le_bytes([mac[0], mac[1], mac[2], mac[3], mac[4], mac[5], 0, 1]),
        backlog: argument::value("backlog", 4),
        handshake: argument::time("handshake", 30_000_000_000),
        strangers: frames("strangers", 100_000),
        openings: frames("openings", 100_000),
        arrivals: frames("arrivals", u64::MAX),
        clock: time::now,
    };
    let mut service = NetworkService {
        stack: Stack::new(card, options, time::now()),
        interrupt: ReceiveGate::named(INTERRUPT_GATE),
        sessions: Sessions::new(),
        buffer: Box::new(MessageBuffer::new()),
    };
    for neighbour in argument::text("neighbours")
        .unwrap_or("")
        .split_whitespace()
    {
        match address(neighbour) {
            Some(neighbour) => service.stack.greet(neighbour),
            None => {
                panic!("argument `neighbours`: `{neighbour}` is not an address such as `10.0.0.2`")
            }
        }
    }
    server.run(&mut service)
}

/// Time for frames: an argument such as `200us`, or `none`, in each `frame-period`.
fn frames(name: &str, default: u64) -> Terms {
    let budget = match argument::text(name) {
        Some("none") => u64::MAX,
        _ => argument::time(name, default),
    };
    Terms {
        limit: u64::MAX,
        budget,
        period: argument::time("frame-period", 1_000_000).max(1),
    }
}

struct NetworkService {
    stack: Stack<NetworkCard, Incoming>,
    interrupt: ReceiveGate,
    sessions: Sessions,
    buffer: Box<MessageBuffer>,
}

impl NetworkService {
    fn answer(&mut self, request: Incoming, answer: &Answer) {
        let head = answer.reply.as_bytes();
        let end = head.len() + answer.data.len().min(DATA);
        let bytes = &mut self.buffer.0[..end];
        bytes[..head.len()].copy_from_slice(head);
        bytes[head.len()..].copy_from_slice(&answer.data[..end - head.len()]);
        request.reply(bytes);
    }

    fn answers(&mut self) {
        while let Some((request, answer)) = self.stack.take() {
            self.answer(request, &answer);
        }
    }
}

impl Service for NetworkService {
    fn estimate(&mut self, _: Client, _: u64, _: &[u8]) -> u64 {
        REQUEST
    }

    const SESSIONS: bool = true;

    fn opened(&mut self, activity: u16) {
        self.sessions.opened(activity);
    }

    fn gone(&mut self, activity: u16) {
        if self.sessions.closed(activity) {
            self.stack.forget(activity, time::now());
        }
    }

    fn serve(&mut self, request: Incoming) {
        let owner = request.owner();
        // The service keeps nothing for activities whose end it would not learn of.
        if !self.sessions.has(owner.activity) {
            return request.fail(Status::NoRights);
        }
        let bytes = request.bytes();
        let mut asked = Request {
            operation: request.operation(),
            ..Request::default()
        };
        let fields = asked.as_mut_bytes();
        let (head, data) = match bytes.split_at_checked(fields.len() - 8) {
            Some(parts) => parts,
            None => return request.fail(Status::BadRequest),
        };
        fields[8..].copy_from_slice(head);
        let Ok(asked) = Request::read_from_bytes(asked.as_bytes()) else {
            return request.fail(Status::BadRequest);
        };
        // The message stays in its slot until it is answered, so its data is still there.
        let data = Vec::from(data);
        self.stack
            .request(owner, asked, &data, request, time::now());
        self.answers();
    }

    fn alarm(&mut self) -> Option<u64> {
        let mut rung = false;
        while let Ok(Some(message)) = self.interrupt.fetch() {
            drop(message);
            rung = true;
        }
        if rung {
            // The slot is free again, and the card can interrupt for later frames.
            self.stack.card().acknowledge();
        }
        let now = time::now();
        let more = self.stack.step(now, FRAMES);
        self.answers();
        if more {
            return Some(now);
        }
        self.stack.next(now)
    }
}

const _: () = assert!(size_of::<Reply>() + DATA <= 2048);
