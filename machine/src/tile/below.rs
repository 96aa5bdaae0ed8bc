//! What is below a tile's caches: the windows of its data transfer unit, the token bucket, and the network.
//!
//! Why it exists: traffic for a line that no cache has leaves the tile here, checked and charged. It does not know what the caches do
//! with the answer. Nothing waits for tokens here: the hart has waited before asking the caches (`TileBus::admit`), and traffic with no
//! waiter is charged on credit.

use super::{FROM_INTERFACE, Local, TileEvent};
use crate::cache::Lower;
use crate::dtu::Dtu;
use crate::fabric::Fabric;
use crate::ledger::Ledger;
use crate::noc::{Account, Packet, PacketKind, Transaction};
use crate::types::{LINE_MAX, Line, Owner, Tick, TileId};

/// The level below the caches: windows, token bucket, network.
pub(super) struct Below<'a> {
    /// `None` while the unit itself is the caller, or on a bare platform.
    pub unit: Option<&'a mut Dtu>,
    pub local: &'a mut Local,
    pub fabric: &'a mut Fabric,
}

impl Below<'_> {
    /// Charges a departing line, and sends it or its request. If the unit itself is asking, this happens once it has acted.
    fn leave(&mut self, at: Tick, packet: Packet) {
        let Some(unit) = &mut self.unit else {
            if self.local.regulated {
                return self.local.deferred.push((at, packet));
            }
            return self.local.send(at, packet, self.fabric);
        };
        let owner = packet.owner;
        unit.pay(at, owner, self.local.line);
        if let Some(observer) = &mut self.fabric.observer
            && let Some((bucket, bytes)) = unit.bucket_level(at, owner)
        {
            let level = crate::dtu::Observation::BucketLevel { bucket, bytes };
            observer.unit(at, self.local.id, &level);
        }
        self.local.send(at, packet, self.fabric);
    }

    /// Sends what the caches were asked for while the unit acted.
    pub fn leave_deferred(&mut self) {
        for (at, packet) in std::mem::take(&mut self.local.deferred) {
            self.leave(at, packet);
        }
    }

    /// The memory tile of a line that may pass, and the address there. A line that is read must lie completely in a window, because all
    /// of it moves. A line that is written goes back to where it came from, whatever the windows mean by now.
    fn target(&self, line: u64, write: bool) -> Option<(TileId, u64)> {
        let passes = write || self.local.may_read(line);
        self.local.homes.place(line).filter(|_| passes)
    }

    fn request(
        &self,
        at: Tick,
        destination: TileId,
        owner: Owner,
        tag: u32,
        transaction: Transaction,
        kind: PacketKind,
    ) -> Packet {
        Packet::request(
            at,
            self.local.id,
            destination,
            owner,
            tag,
            transaction,
            kind,
        )
    }
}

/// A line in the form that a packet carries.
fn inline(bytes: &[u8]) -> Line {
    let mut line = [0; LINE_MAX];
    line[..bytes.len()].copy_from_slice(bytes);
    line
}

impl Lower for Below<'_> {
    fn fetches_ahead(&self) -> bool {
        !self.local.holds_back
    }

    fn read(&mut self, at: Tick, address: u64, owner: Owner, tag: u32, account: Account) {
        let bytes = self.local.line;
        let Some((tile, target)) = self.target(address, false) else {
            // A window was closed while the access waited for a miss register: it gets no line.
            let kind = PacketKind::ReadResponse {
                error: true,
                data: None,
                bytes,
            };
            let transaction = Transaction::CacheRead;
            let mut refusal = self.request(at, self.local.id, owner, tag, transaction, kind);
            refusal.account = account;
            let refusal = TileEvent::Packet(Box::new(refusal));
            return self.local.queue.push(at, FROM_INTERFACE, refusal);
        };
        let kind = PacketKind::ReadRequest {
            address: target,
            bytes,
        };
        let transaction = Transaction::CacheRead;
        let mut packet = self.request(at, tile, owner, tag, transaction, kind);
        packet.account = account;
        self.leave(at, packet);
    }

    fn write_back(&mut self, at: Tick, address: u64, owner: Owner, tag: u32, bytes: &[u8]) {
        let target = self.target(address, true);
        let (tile, target) =
            target.unwrap_or_else(|| panic!("a line from nowhere: {address:#x} of {owner:?}"));
        let kind = PacketKind::WriteRequest {
            address: target,
            bytes: self.local.line,
            data: None,
        };
        let transaction = Transaction::CacheWrite;
        let mut packet = self.request(at, tile, owner, tag, transaction, kind);
        packet.line = Some(inline(bytes));
        self.leave(at, packet);
    }

    fn ledger(&mut self) -> &mut Ledger {
        &mut self.fabric.ledger
    }
}
