//! Arriving frames: their owners, and the accounts that pay for their time.
//!
//! Why it exists: frames over the cable arrive unasked; without accounts, any sender of frames could take the service's time. A
//! frame for a socket or connection of a client is on that client's account. There is one account for openings of connections to
//! listening clients, and one for all other frames: requests for addresses, echo requests, and frames without meaning. When an
//! account is used up, its frames are dropped until its next period; a debt is paid from the periods after it. What it deliberately
//! does not know: requests; the server accounts for their time.
//!
//! Dropping takes time, too. It is counted, but on no account: on one it would keep good frames out for as long as a flood lasts,
//! and after it.

use super::{Kind, Options, Stack, tcp};
use alloc::collections::BTreeMap;
use bulkhead_common::account::{Account, Terms, Verdict};
use bulkhead_common::network::Card;
use bulkhead_common::payer::{Own, Paid};
use bulkhead_common::waiting::Client;
use smoltcp::time::Instant;
use smoltcp::wire::{
    EthernetFrame, EthernetProtocol, IpEndpoint, IpProtocol, Ipv4Address, Ipv4Packet, TcpPacket,
    UdpPacket,
};

/// Time for frames, of each client and of no client.
#[derive(Debug)]
pub(super) struct Accounts {
    strangers: Account,
    /// Also of no client, but a client listens for them.
    openings: Account,
    /// Of each channel that has had a session: a new session pays the debt of the one before.
    clients: Paid<Own, BTreeMap<(usize, u64), Account>>,
    terms: Terms,
}

impl Accounts {
    pub(super) fn new(options: &Options, now: u64) -> Self {
        Self {
            strangers: Account::new(options.strangers, now),
            openings: Account::new(options.openings, now),
            clients: Paid::default(),
            terms: options.arrivals,
        }
    }

    /// The account of a client, or of no client; `None` if there is no bound.
    fn of(&mut self, whose: &Whose, now: u64) -> Option<&mut Account> {
        match whose.owner {
            None if whose.opens.is_some() => Some(&mut self.openings),
            None => Some(&mut self.strangers),
            Some(_) if self.terms.budget == u64::MAX => None,
            Some(Client { priority, label }) => {
                let terms = self.terms;
                let entry = self.clients.entry((priority, label));
                Some(entry.or_insert_with(|| Account::new(terms, now)))
            }
        }
    }
}

/// The subject of a frame, as far as its headers show it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum About {
    /// A datagram to a port.
    Datagram(u16),
    /// A segment to a port, and its sender.
    Segment {
        port: u16,
        remote: IpEndpoint,
        /// It opens a connection.
        opens: bool,
    },
    /// Anything else.
    Other,
}

/// The subject of a frame. Checksums are not checked: a wrong one is found later, at the expense of the same account.
pub(super) fn about(frame: &[u8], own: [u8; 4]) -> About {
    let read = || {
        let ethernet = EthernetFrame::new_checked(frame).ok()?;
        if ethernet.ethertype() != EthernetProtocol::Ipv4 {
            return None;
        }
        let packet = Ipv4Packet::new_checked(ethernet.payload()).ok()?;
        if packet.dst_addr() != Ipv4Address::from(own) || packet.frag_offset() != 0 {
            return None;
        }
        match packet.next_header() {
            IpProtocol::Udp => {
                let datagram = UdpPacket::new_checked(packet.payload()).ok()?;
                Some(About::Datagram(datagram.dst_port()))
            }
            IpProtocol::Tcp => {
                let segment = TcpPacket::new_checked(packet.payload()).ok()?;
                Some(About::Segment {
                    port: segment.dst_port(),
                    remote: IpEndpoint::new(packet.src_addr().into(), segment.src_port()),
                    opens: segment.syn() && !segment.ack(),
                })
            }
            _ => None,
        }
    };
    read().unwrap_or(About::Other)
}

/// Whose a frame is.
struct Whose {
    /// The client, if the frame belongs to one.
    owner: Option<Client>,
    /// It opens a connection to a client that listens at this port.
    opens: Option<(u16, u16)>,
    /// It opens a connection that is being opened already.
    again: bool,
}

impl<C: Card, T> Stack<C, T> {
    fn whose(&self, about: About) -> Whose {
        let nobody = Whose {
            owner: None,
            opens: None,
            again: false,
        };
        let mut entries = self.entries.iter().flatten();
        match about {
            About::Other => nobody,
            About::Datagram(port) => {
                let found = entries.find(|e| e.kind == Kind::Udp && e.port == port);
                let owner = found.filter(|entry| entry.owner.is_ok());
                let owner = owner.map(|entry| entry.client);
                Whose { owner, ..nobody }
            }
            About::Segment {
                port,
                remote,
                opens,
            } => {
                let is_connected = |handle| {
                    let socket = self.sockets.get::<tcp::Socket>(handle);
                    socket.remote_endpoint() == Some(remote) && socket.is_active()
                };
                let streams = self.entries.iter().flatten();
                let mut streams = streams.filter(|e| e.kind == Kind::Tcp && e.port == port);
                let mut pending = self.backlog.iter().filter(|p| p.port == port);
                if let Some(entry) = streams.clone().find(|e| is_connected(e.handle)) {
                    let is_owned = entry.owner.is_ok() && !opens;
                    return Whose {
                        owner: is_owned.then_some(entry.client),
                        again: opens,
                        ..nobody
                    };
                }
                if let Some(pending) = pending.find(|p| is_connected(p.handle)) {
                    return Whose {
                        owner: Some(pending.client).filter(|_| !opens),
                        again: opens,
                        ..nobody
                    };
                }
                let listens = streams.find_map(|e| {
                    let owner = e.owner.ok()?;
                    self.is_early(e.handle).then_some((owner, port))
                });
                let opens = listens.filter(|_| opens);
                Whose { opens, ..nobody }
            }
        }
    }

    /// Whether a socket listens, or a connection to it is being opened.
    pub(super) fn is_early(&self, handle: super::SocketHandle) -> bool {
        let state = self.sockets.get::<tcp::Socket>(handle).state();
        matches!(state, tcp::State::Listen | tcp::State::SynReceived)
    }

    /// Takes at most this many frames from the card. Returns whether there may be more.
    pub(super) fn take_frames(&mut self, time: Instant, frames: usize) -> bool {
        let clock = self.options.clock;
        for _ in 0..frames {
            // Every frame may want an answer.
            if !self.card().can_send() {
                return false;
            }
            let mut begin = clock();
            let Some(frame) = self.card().receive() else {
                return false;
            };
            let (buffer, start, bytes) = &frame;
            let seen = buffer.get(*start..start + bytes).unwrap_or_default();
            let whose = self.whose(about(seen, self.options.address.0));
            let account = self.accounts.of(&whose, begin);
            let has_time = account.is_none_or(|a| a.judge(begin, 0) == Verdict::Serve);
            // A connection that is already being opened is answered again automatically.
            if !has_time || whose.again {
                self.card().give_back(frame.0);
                self.counts.dropped += 1;
                self.counts.drop_time += clock() - begin;
                continue;
            }
            if let Some((owner, port)) = whose.opens {
                // Other pending frames are not on this account.
                let others = clock();
                self.send(time);
                begin += clock() - others;
                self.make_room(owner, port, begin);
            }
            self.port.next = Some(frame);
            let (interface, sockets) = (&mut self.interface, &mut self.sockets);
            interface.poll_ingress_single(time, &mut self.port, sockets);
            if let Some((owner, port)) = whose.opens {
                // Nothing else is pending, so this sends the answer to it.
                self.send(time);
                self.note_half_open(owner, port, begin);
            }
            let end = clock();
            if let Some(account) = self.accounts.of(&whose, end) {
                account.charge(end, end - begin, end - begin);
            }
            if whose.owner.is_none() {
                self.counts.taken += 1;
                self.counts.time += end - begin;
            }
        }
        true
    }
}
