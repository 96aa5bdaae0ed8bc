//! What lies below a tile's caches: the windows of its data transfer unit, the token bucket, and the network.
//!
//! Why it exists: a line that no cache has leaves the tile here, checked and charged. It does not know what the caches do
//! with the answer. Nothing waits for tokens here: the hart has waited before it asked the caches (`TileBus::admit`), and
//! what nobody waits for is charged on credit.

use super::{Deferred, FROM_NETWORK, Local, TileEvent};
use crate::cache::Lower;
use crate::dtu::Dtu;
use crate::fabric::Fabric;
use crate::ledger::Ledger;
use crate::noc::{Account, Packet, PacketKind, Transaction};
use crate::types::{LINE_MAX, Line, Owner, Tick};

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

    /// Charges a line that leaves.
    fn pay(&mut self, at: Tick, owner: Owner) {
        let Some(unit) = &mut self.unit else {
            return;
        };
        unit.pay(at, owner, self.local.line);
        if let Some(observer) = &mut self.fabric.observer
            && let Some((bucket, bytes)) = unit.bucket_level(at, owner)
        {
            let level = crate::dtu::Observation::BucketLevel { bucket, bytes };
            observer.unit(at, self.local.id, &level);
        }
    }

    pub fn request_line(
        &mut self,
        at: Tick,
        address: u64,
        owner: Owner,
        tag: u32,
        account: Account,
    ) {
        let bytes = self.local.line;
        self.pay(at, owner);
        let (destination, address) = match self.local.window(address, 1, false) {
            Some((window, address)) => (window.tile, address),
            // The window was closed meanwhile; the line still has to come back to its miss register.
            None => (self.local.id, u64::MAX),
        };
        let mut packet = Packet::request(
            at,
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
            self.local.queue.push(at, FROM_NETWORK, refusal);
            return;
        }
        self.local.send(at, packet, self.fabric);
    }

    /// False: the line is lost, and not under way.
    pub fn write_line(
        &mut self,
        at: Tick,
        address: u64,
        owner: Owner,
        tag: u32,
        bytes: &[u8],
    ) -> bool {
        // A line whose window was closed meanwhile is lost, as on hardware.
        let Some((window, target)) = self.local.window(address, 1, true) else {
            return false;
        };
        let destination = window.tile;
        self.pay(at, owner);
        let mut packet = Packet::request(
            at,
            self.local.id,
            destination,
            owner,
            tag,
            Transaction::CacheWrite,
            PacketKind::WriteRequest {
                address: target,
                bytes: self.local.line,
                data: None,
            },
        );
        if !bytes.is_empty() {
            packet.line = Some(inline(bytes));
        }
        self.local.send(at, packet, self.fabric);
        true
    }
}

/// A line as a packet carries it.
fn inline(bytes: &[u8]) -> Line {
    let mut line = [0; LINE_MAX];
    line[..bytes.len()].copy_from_slice(bytes);
    line
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

    fn write_back(&mut self, at: Tick, address: u64, owner: Owner, tag: u32, bytes: &[u8]) -> bool {
        if self.local.window(address, 1, true).is_none() {
            return false;
        }
        if self.deferring() {
            assert!(
                bytes.is_empty(),
                "a unit pushes out the line at {address:#x}, which holds data"
            );
            self.local
                .deferred
                .push(Deferred::Write { at, address, owner });
            true
        } else {
            self.write_line(at, address, owner, tag, bytes)
        }
    }

    fn ledger(&mut self) -> &mut Ledger {
        &mut self.fabric.ledger
    }
}
