//! Connections that are being opened from outside.
//!
//! Why it exists: a segment that opens a connection costs its sender nothing and may name any sender; each one that is answered must be
//! remembered until the other side confirms it or a time is over. So a client has some places for them besides its listening sockets, and
//! when all are taken, the oldest one makes room (RFC 4987, section 3.4): a real client confirms within a round trip, and only as many
//! forged segments in that time as there are places can keep it out. What it deliberately does not know: frames.

use super::{Entry, Kind, Stack, tcp};
use bulkhead_common::network::Card;
use bulkhead_common::waiting::Client;
use smoltcp::iface::{SocketHandle, SocketSet};
use smoltcp::socket::Socket;

/// Of all clients together at most.
pub(super) const PENDING: usize = 16;

/// A connection that no socket of its client has taken yet.
#[derive(Debug)]
pub(super) struct Pending {
    pub(super) owner: u16,
    /// On whose account its frames are.
    pub(super) client: Client,
    pub(super) handle: SocketHandle,
    pub(super) port: u16,
    since: u64,
}

/// Lets a socket listen at a port, whatever it did before. It becomes like a new one: it forgets what it waited for, such as the
/// hardware address of a sender that does not exist.
fn listens_again(
    sockets: &mut SocketSet<'static>,
    mut socket: tcp::Socket<'static>,
    port: u16,
) -> SocketHandle {
    socket.abort();
    // A socket listens at this port, so the port is valid.
    let _ = socket.listen(port);
    sockets.add(socket)
}

impl<C: Card, T> Stack<C, T> {
    /// Connections that wait for a socket of their client, or are being opened beside one.
    pub fn pending(&self) -> usize {
        self.backlog.len()
    }

    /// Makes sure that connections to a client are possible at a port where it listens.
    pub(super) fn make_room(&mut self, owner: u16, port: u16, now: u64) {
        let entries = self.entries.iter().flatten();
        let own = |e: &&Entry| e.kind == Kind::Tcp && e.port == port && e.owner == Ok(owner);
        let mut own = entries.filter(own);
        let client = own.clone().next().map(|e| e.client);
        let is_free = own.any(|e| self.sockets.get::<tcp::Socket>(e.handle).is_listening());
        let Some(client) = client.filter(|_| !is_free && self.options.backlog > 0) else {
            return;
        };
        let handle = match self.victim(owner) {
            None => {
                // Without memory no other sender can connect now.
                let Ok(socket) = self.stream() else { return };
                listens_again(&mut self.sockets, socket, port)
            }
            Some(victim) => {
                let mut all = self.backlog.iter();
                // They are in the order of their arrival.
                let oldest = all.position(|p| p.owner == victim && self.is_early(p.handle));
                let Some(oldest) = oldest else { return };
                self.counts.recycled += 1;
                let pending = self.backlog.remove(oldest);
                let Socket::Tcp(socket) = self.sockets.remove(pending.handle) else {
                    return;
                };
                listens_again(&mut self.sockets, socket, port)
            }
        };
        self.backlog.push(Pending {
            owner,
            client,
            handle,
            port,
            since: now,
        });
    }

    /// The client that makes room for another connection to this one, if one must: itself if it has all its places, otherwise the one with
    /// the most.
    fn victim(&self, owner: u16) -> Option<u16> {
        let places = |owner: u16| self.backlog.iter().filter(|p| p.owner == owner).count();
        if places(owner) >= self.options.backlog {
            return Some(owner);
        }
        if self.backlog.len() < self.room.pending {
            return None;
        }
        let owners = self.backlog.iter().map(|p| p.owner);
        owners.max_by_key(|owner| (places(*owner), u16::MAX - owner))
    }

    /// A segment that opens a connection was seen: it is being opened, or there was something wrong with the segment.
    pub(super) fn note_half_open(&mut self, owner: u16, port: u16, now: u64) {
        for entry in self.entries.iter_mut().flatten() {
            if entry.kind == Kind::Tcp && entry.port == port && entry.owner == Ok(owner) {
                let state = self.sockets.get::<tcp::Socket>(entry.handle).state();
                entry.half_open = match state {
                    tcp::State::SynReceived => entry.half_open.or(Some(now)),
                    _ => None,
                };
            }
        }
        let sockets = &self.sockets;
        let unused = self
            .backlog
            .iter()
            .position(|p| sockets.get::<tcp::Socket>(p.handle).is_listening());
        if let Some(unused) = unused {
            self.forget_pending(unused);
        }
    }

    fn forget_pending(&mut self, index: usize) {
        let pending = self.backlog.remove(index);
        self.sockets.remove(pending.handle);
    }

    /// A client is gone; peers that were connecting to it get no notice.
    pub(super) fn drop_backlog(&mut self, owner: u16) {
        while let Some(index) = self.backlog.iter().position(|p| p.owner == owner) {
            self.forget_pending(index);
        }
    }

    /// Connections that were confirmed go to sockets that wait for one.
    pub(super) fn promote(&mut self) {
        if self.backlog.is_empty() {
            return;
        }
        for index in 0..self.entries.len() {
            self.promote_one(index);
        }
    }

    /// A listening socket becomes the oldest connection of its client and port that was confirmed, if there is one.
    pub(super) fn promote_one(&mut self, index: usize) {
        let Some(entry) = &self.entries[index] else {
            return;
        };
        let (Ok(owner), Kind::Tcp, port) = (entry.owner, entry.kind, entry.port) else {
            return;
        };
        if !self.is_early(entry.handle) {
            return;
        }
        let ready = self.backlog.iter().position(|p| {
            let is_mine = p.owner == owner && p.port == port;
            is_mine && !self.is_early(p.handle)
        });
        let Some(ready) = ready else { return };
        let pending = self.backlog.remove(ready);
        if let Some(entry) = &mut self.entries[index] {
            let before = core::mem::replace(&mut entry.handle, pending.handle);
            entry.half_open = None;
            self.sockets.remove(before);
        }
    }

    /// Gives up openings that take too long; a listening socket listens again.
    pub(super) fn expire(&mut self, now: u64) {
        let patience = self.options.handshake;
        let is_late = |since: u64| since.saturating_add(patience) <= now;
        while let Some(index) = self.backlog.iter().position(|p| is_late(p.since)) {
            self.forget_pending(index);
            self.counts.expired += 1;
        }
        for entry in self.entries.iter_mut().flatten() {
            let Some(since) = entry.half_open else {
                continue;
            };
            let socket = self.sockets.get_mut::<tcp::Socket>(entry.handle);
            if socket.state() != tcp::State::SynReceived {
                entry.half_open = None;
            } else if is_late(since) {
                if let Socket::Tcp(socket) = self.sockets.remove(entry.handle) {
                    entry.handle = listens_again(&mut self.sockets, socket, entry.port);
                }
                entry.half_open = None;
                self.counts.expired += 1;
            }
        }
    }

    /// When the next connection has taken too long.
    pub(super) fn next_expiry(&self) -> Option<u64> {
        let entries = self.entries.iter().flatten();
        let entries = entries.filter_map(|entry| entry.half_open);
        let pending = self.backlog.iter().map(|pending| pending.since);
        let first = entries.chain(pending).min()?;
        Some(first.saturating_add(self.options.handshake))
    }
}
