//! Home agents in front of the memories: their packets, and when memory answers.
//!
//! Why it exists: a [`Home`] knows no times. Bytes that a cluster gives up are in memory when their packet has arrived, and go at once to
//! the cluster that wanted them; writing them to the chips takes its time beside that. A line is busy until the answer leaves, so a later
//! question to the same cluster comes behind it: both take the same network. What it deliberately does not know: clusters.

use super::{Fabric, range};
use crate::home::Order;
use crate::noc::{Packet, PacketKind, Transaction, Want};
use crate::types::{LINE_MAX, Tick};

#[cfg(doc)]
use crate::home::Home;

impl Fabric {
    /// A packet of a coherent cluster or device has arrived at a memory, or the answer to one leaves.
    pub(super) fn serve_home(&mut self, now: Tick, index: usize, mut packet: Box<Packet>) {
        match &packet.kind {
            PacketKind::Coherent { .. } => self.homes[index].ask(packet),
            PacketKind::Surrendered { .. } => {
                self.store(index, &packet);
                self.homes[index].answered(now, &packet, &mut self.ledger);
            }
            PacketKind::Grant { .. }
            | PacketKind::Managed
            | PacketKind::ReadResponse { .. }
            | PacketKind::WriteResponse { .. } => {
                let (account, requester) = (packet.account, (packet.source, packet.tag));
                let answer = std::mem::replace(&mut packet.kind, PacketKind::Managed);
                self.respond(now, packet, account, answer);
                self.homes[index].left(now, requester, &mut self.ledger);
            }
            _ => panic!("a home agent has got {packet:?}"),
        }
        self.obey(now, index);
    }

    /// From now on, memory has what a cluster has given up.
    ///
    /// # Panics
    /// If the packet announces bytes that it does not have, or has a line and announces no bytes: bytes would be lost.
    fn store(&mut self, index: usize, packet: &Packet) {
        let PacketKind::Surrendered { address, bytes, .. } = packet.kind else {
            panic!("a memory stores what a cluster gives up, not {packet:?}");
        };
        let line = match (bytes, &packet.line) {
            (0, None) => return,
            (1.., Some(line)) => line,
            (_, None) => panic!("a cluster gives up {bytes} bytes, and no line: {packet:?}"),
            (0, Some(_)) => panic!("a cluster gives up {bytes} bytes, and a line: {packet:?}"),
        };
        self.memories[index].reservations.end(address, bytes.into());
        let address = self.translated(index, address);
        let (place, offset) = self.bytes_behind(index, address);
        let range = range(&self.ram[place], offset, bytes).expect("a line in this memory");
        self.ram[place][range].copy_from_slice(&line[..bytes as usize]);
    }

    /// Does what the home of a memory orders.
    fn obey(&mut self, now: Tick, index: usize) {
        let id = self.memories[index].id;
        for order in std::mem::take(&mut self.homes[index].orders) {
            match order {
                Order::Ask {
                    cluster,
                    tag,
                    surrender,
                    owner,
                } => {
                    let kind = PacketKind::Wanted { surrender };
                    let probe = Transaction::Probe;
                    let packet = Packet::request(now, id, cluster, owner, tag, probe, kind);
                    let position = self.network.position(cluster);
                    self.busy[position.expect("a cluster of this chip")] += 1;
                    let sent = self.network.inject(now, packet);
                    sent.unwrap_or_else(|packet| panic!("a question to nobody: {packet:?}"));
                }
                Order::Serve {
                    request,
                    alone,
                    given,
                } => self.serve_line(now, index, request, alone, given),
            }
        }
    }

    /// All clusters have given up a line as far as a request needs.
    fn serve_line(
        &mut self,
        now: Tick,
        index: usize,
        mut request: Box<Packet>,
        alone: bool,
        given: bool,
    ) {
        let PacketKind::Coherent {
            line: number,
            address,
            bytes,
            want,
        } = request.kind
        else {
            panic!("a home serves {request:?}");
        };
        let address = self.translated(index, address);
        let (place, offset) = self.bytes_behind(index, address);
        let range = range(&self.ram[place], offset, bytes).expect("a line in this memory");
        let account = request.account;
        let (read, write) = ((address, bytes, false), (address, bytes, true));
        match (want, given) {
            (Want::Manage(_), false) => {
                return self.served(index, now, request, account, PacketKind::Managed);
            }
            (Want::Manage(_), true) => {
                return self.access(now, index, write, request, PacketKind::Managed);
            }
            (Want::Put, _) => {
                let line = request.line.take().expect("a device brings what it writes");
                self.memories[index].reservations.end(address, bytes.into());
                self.ram[place][range].copy_from_slice(&line[..bytes as usize]);
                if given {
                    self.store_beside(now, index, number, &request);
                }
                let kind = PacketKind::WriteResponse { error: false };
                return self.access(now, index, write, request, kind);
            }
            (Want::Read | Want::Write | Want::Fetch, _) => {}
        }
        let there = &self.ram[place][range];
        let kind = match want {
            Want::Fetch => PacketKind::ReadResponse {
                error: false,
                data: Some(there.into()),
                bytes,
            },
            _ => {
                let line = request.line.insert([0; LINE_MAX]);
                line[..bytes as usize].copy_from_slice(there);
                PacketKind::Grant { alone, bytes }
            }
        };
        if !given {
            return self.access(now, index, read, request, kind);
        }
        self.store_beside(now, index, number, &request);
        self.served(index, now, request, account, kind);
    }

    /// A line that a cluster has given up goes to the chips, in parallel with the answer to the request. The request's owner pays, as for
    /// lines that its fills evict.
    fn store_beside(&mut self, now: Tick, index: usize, line: u32, request: &Packet) {
        let PacketKind::Coherent { address, .. } = request.kind else {
            panic!("a home serves {request:?}");
        };
        let bytes = self.homes[index].line;
        // A device's part of a line need not begin where the line does.
        let address = self.translated(index, address - address % u64::from(bytes));
        let (id, owner) = (self.memories[index].id, request.owner);
        let (kind, transaction) = (PacketKind::Stored, Transaction::CacheWrite);
        let mut packet = Packet::request(now, id, id, owner, line, transaction, kind);
        packet.ids = request.ids;
        let write = (address, bytes, true);
        self.access(now, index, write, Box::new(packet), PacketKind::Stored);
    }

    /// The bytes of a line that is on its way to a memory, from a coherent cluster or from a device that writes the whole line.
    pub fn given(&self, tag: u32) -> Option<&[u8]> {
        let coherent = |tile| self.homes.iter().any(|home| home.serves(tile));
        let gives = |packet: &&Packet| {
            let from_cluster = matches!(
                packet.kind,
                PacketKind::WriteRequest { .. } | PacketKind::Surrendered { .. }
            );
            from_cluster && packet.tag == tag && coherent(packet.source)
        };
        let arrived = self.arrivals.iter().map(|(_, packet)| &**packet);
        let mut all = self.network.packets().chain(arrived);
        let packet = all.find(|packet| packet.line.is_some() && gives(packet));
        let given = packet.and_then(|packet| packet.line.as_ref());
        let replaced = || self.homes.iter().find_map(|home| home.replaces(tag));
        given.or_else(replaced).map(|line| &line[..])
    }
}
