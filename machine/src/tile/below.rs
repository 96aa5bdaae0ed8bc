//! What lies below a tile's caches: the windows of its data transfer unit, the token bucket, and the network.
//!
//! Why it exists: a line that no cache has leaves the tile here, checked and charged. It does not know what the caches do
//! with the answer.

use super::{Deferred, FROM_NETWORK, Local, TileEvent};
use crate::cache::Lower;
use crate::dtu::Dtu;
use crate::fabric::Fabric;
use crate::ledger::{Ledger, Resource};
use crate::noc::{Account, Packet, PacketKind, Transaction};
use crate::types::{Owner, Tick};

/// What lies below the caches: windows, token bucket, network.
pub(super) struct Below<'a> {
    /// `None` while the unit itself is the caller, or on a bare platform.
    pub unit: Option<&'a mut Dtu>,
    pub local: &'a mut Local,
    pub fabric: &'a mut Fabric,
}

impl Below<'_> {
    fn deferring(&self) -> bool {
        self.unit.is_none() && self.local.regulated
    }

    /// The moment at which the token bucket lets a line pass; its wait is booked.
    fn charge(&mut self, at: Tick, owner: Owner, account: &mut Account) -> Tick {
        let bytes = self.local.line;
        let Some(unit) = &mut self.unit else {
            return at;
        };
        let leave = unit.charge(at, bytes).max(at);
        self.fabric
            .ledger
            .wait(account, owner, owner, Resource::Bucket, leave - at);
        if let Some(observer) = &mut self.fabric.observer
            && let Some((bucket, bytes)) = unit.bucket_level(at)
        {
            let level = crate::dtu::Observation::BucketLevel { bucket, bytes };
            observer.unit(at, self.local.id, &level);
        }
        leave
    }

    pub fn request_line(
        &mut self,
        at: Tick,
        address: u64,
        owner: Owner,
        tag: u32,
        mut account: Account,
    ) {
        let bytes = self.local.line;
        let leave = self.charge(at, owner, &mut account);
        let (destination, address) = match self.local.window(address, 1, false) {
            Some((window, address)) => (window.tile, address),
            // The window was closed meanwhile; the line still has to come back to its miss register.
            None => (self.local.id, u64::MAX),
        };
        let mut packet = Packet::request(
            leave,
            self.local.id,
            destination,
            owner,
            tag,
            Transaction::CacheRead,
            PacketKind::ReadRequest { address, bytes },
        );
        packet.account = account;
        if destination == self.local.id {
            let kind = PacketKind::ReadResponse {
                error: true,
                data: None,
                bytes,
            };
            let refusal = TileEvent::Packet(Box::new(packet.response(kind)));
            self.local.queue.push(leave, FROM_NETWORK, refusal);
            return;
        }
        self.local.send(leave, packet, self.fabric);
    }

    pub fn write_line(&mut self, at: Tick, address: u64, owner: Owner) {
        // A line whose window was closed meanwhile is lost, as on hardware.
        let Some((window, target)) = self.local.window(address, 1, true) else {
            return;
        };
        let destination = window.tile;
        let mut account = Account::new(at);
        let leave = self.charge(at, owner, &mut account);
        let mut packet = Packet::request(
            leave,
            self.local.id,
            destination,
            owner,
            0,
            Transaction::CacheWrite,
            PacketKind::WriteRequest {
                address: target,
                bytes: self.local.line,
                data: None,
            },
        );
        packet.account = account;
        self.local.send(leave, packet, self.fabric);
    }
}

impl Lower for Below<'_> {
    fn read(&mut self, at: Tick, address: u64, owner: Owner, tag: u32, account: Account) -> bool {
        if self.local.window(address, 1, false).is_none() {
            return false;
        }
        if self.deferring() {
            self.local.deferred.push(Deferred::Read {
                at,
                address,
                owner,
                tag,
                account,
            });
        } else {
            self.request_line(at, address, owner, tag, account);
        }
        true
    }

    fn write_back(&mut self, at: Tick, address: u64, owner: Owner) {
        if self.deferring() {
            self.local
                .deferred
                .push(Deferred::Write { at, address, owner });
        } else {
            self.write_line(at, address, owner);
        }
    }

    fn ledger(&mut self) -> &mut Ledger {
        &mut self.fabric.ledger
    }
}
