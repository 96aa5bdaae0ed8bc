//! What arrives at a tile from the network, and what was waiting for it.
//!
//! Why it exists: an arriving line passes through the caches to its waiters: harts, unit, card. It does not know what they do with it.

use super::{Below, Tile};
use crate::cache::{Done, HARTS, Harts, HeldLine, Waiter};
use crate::fabric::Fabric;
use crate::hart::{Hart, LineBytes};
use crate::ledger::Resource;
use crate::local_token::Part;
use crate::noc::{Packet, PacketKind, Transaction};
use crate::types::{Owner, Tick, align};

/// The harts of a tile, as its caches see them.
struct TileHarts<'a> {
    hart: &'a mut Hart,
    second: Option<&'a mut Hart>,
    /// The misses that the second hart waits for.
    second_tokens: &'a [u32],
}

impl Harts for TileHarts<'_> {
    fn take_line(&mut self, token: u32, line: &mut HeldLine<'_>) {
        let address = line.address;
        match &mut self.second {
            Some(second) if self.second_tokens.contains(&token) => {
                second.take_line(token, address, &mut HartLine { line, hart: 1 });
            }
            _ => {
                let mut line = HartLine { line, hart: 0 };
                self.hart.take_line(token, address, &mut line);
            }
        }
    }
}

/// A line as one of the harts uses it.
struct HartLine<'a, 'b> {
    line: &'a mut HeldLine<'b>,
    hart: usize,
}

impl LineBytes for HartLine<'_, '_> {
    fn read(&mut self, offset: u64, bytes: u8) -> u64 {
        self.line.bytes.read(offset, bytes)
    }

    fn write(&mut self, offset: u64, bytes: u8, value: u64) {
        self.line.bytes.write(offset, bytes, value);
        self.line.written = true;
        // Reservations of other harts end.
        let kept = self.line.reserved[self.hart];
        self.line.reserved = [false; HARTS];
        self.line.reserved[self.hart] = kept;
    }

    fn reserve(&mut self, _: u64) {
        self.line.reserved[self.hart] = true;
    }

    fn take_reservation(&mut self, _: u64) -> Option<bool> {
        Some(std::mem::take(&mut self.line.reserved[self.hart]))
    }
}

impl Tile {
    pub(super) fn packet(&mut self, now: Tick, mut packet: Box<Packet>, fabric: &mut Fabric) {
        match packet.transaction {
            Transaction::CacheRead => {
                let second_tokens = std::mem::take(&mut self.local.second_tokens);
                let mut lower = Below {
                    unit: self.unit.as_mut(),
                    local: &mut self.local,
                    fabric,
                };
                let bytes = match &packet.line {
                    Some(line) => &line[..lower.local.line as usize],
                    None => &[],
                };
                let mut harts = TileHarts {
                    hart: &mut self.hart,
                    second: self.second.as_mut().map(|second| &mut second.hart),
                    second_tokens: &second_tokens,
                };
                let (tag, done) = (packet.tag, &mut self.done);
                let arrived = self
                    .caches
                    .complete(now, tag, bytes, &mut lower, &mut harts, done);
                self.local.second_tokens = second_tokens;
                if let Some(culprit) = arrived.culprit {
                    // Without that owner there would have been no miss, so this service counts as a wait for it.
                    let service = std::mem::take(&mut packet.account.service);
                    fabric.ledger.wait(
                        &mut packet.account,
                        arrived.owner,
                        culprit,
                        Resource::CacheSet(arrived.level),
                        service,
                    );
                }
                fabric
                    .ledger
                    .complete(packet.owner, packet.transaction, &packet.account, now);
                self.after_caches();
                self.tell_done(fabric);
            }
            Transaction::CacheWrite => {
                fabric
                    .ledger
                    .complete(packet.owner, packet.transaction, &packet.account, now);
                self.written(now, packet.tag, packet.owner, fabric);
            }
            Transaction::Interrupt => {
                fabric
                    .ledger
                    .complete(packet.owner, packet.transaction, &packet.account, now);
                self.local.interrupted(&packet);
            }
            Transaction::RemoteLoad | Transaction::RemoteStore | Transaction::RemoteAtomic => {
                fabric
                    .ledger
                    .complete(packet.owner, packet.transaction, &packet.account, now);
                let PacketKind::RemoteAnswer { value, .. } = packet.kind else {
                    panic!(
                        "a register or another tile's memory answers with a value, not {packet:?}"
                    );
                };
                // The hart takes it at the next edge of its clock.
                let edge = align(now, self.local.cycle);
                self.hart.complete_remote(packet.tag, edge, value);
                self.runnable = true;
            }
            _ => {
                if packet.kind.is_response() {
                    fabric
                        .ledger
                        .complete(packet.owner, packet.transaction, &packet.account, now);
                }
                self.with_unit(fabric, |unit, env| unit.packet(env, *packet));
            }
        }
    }

    /// A line has been written back to memory: its place in the write-back buffer is free.
    fn written(&mut self, now: Tick, tag: u32, owner: Owner, fabric: &mut Fabric) {
        let second_tokens = std::mem::take(&mut self.local.second_tokens);
        let mut lower = Below {
            unit: self.unit.as_mut(),
            local: &mut self.local,
            fabric,
        };
        let mut harts = TileHarts {
            hart: &mut self.hart,
            second: self.second.as_mut().map(|second| &mut second.hart),
            second_tokens: &second_tokens,
        };
        let done = &mut self.done;
        self.caches
            .written(now, tag, owner, &mut lower, &mut harts, done);
        self.local.second_tokens = second_tokens;
        if !self.done.is_empty() {
            self.after_caches();
            self.tell_done(fabric);
        }
    }

    /// Tells all waiters whose line has arrived.
    fn tell_done(&mut self, fabric: &mut Fabric) {
        let mut done = std::mem::take(&mut self.done);
        for Done { waiter, line, at } in done.drain(..) {
            match waiter {
                Waiter::Fetch { token } => self.complete(token, at, None, fabric),
                Waiter::Data { token, .. } => self.complete(token, at, Some(line), fabric),
                Waiter::Unit { token, .. } => {
                    let carried = self.caches.take_carried(token);
                    let bytes = carried.as_ref().map(|carried| carried.bytes());
                    match token.part() {
                        Part::Stream => self.local.accesses.arrived(token, at, bytes),
                        Part::Card => {
                            self.with_card(fabric, |card, ports| card.arrived(ports, token, bytes));
                        }
                        Part::Unit => {
                            self.with_unit(fabric, |unit, env| unit.local_done(env, token, bytes));
                        }
                    }
                }
            }
        }
        self.done = done;
    }

    /// An access of a hart is done. A data access brings its line.
    fn complete(&mut self, token: u32, at: Tick, line: Option<u64>, fabric: &mut Fabric) {
        let of_second = self.local.take_second(token);
        let (hart, runnable) = match &mut self.second {
            Some(second) if of_second => (&mut second.hart, &mut second.runnable),
            _ => (&mut self.hart, &mut self.runnable),
        };
        *runnable = true;
        // Accesses that waited for the line have been performed (`TileHarts`).
        hart.complete(token, at, None);
        let Some(line) = line else { return };
        let word = self.local.name(self.local.htif.word());
        if line / 64 == word / 64 {
            self.look_at_host(at, fabric);
        }
    }

    /// The line of the host word has arrived, possibly with a store to it.
    #[cold]
    fn look_at_host(&mut self, now: Tick, fabric: &mut Fabric) {
        let word = self.local.htif.word();
        let mut value = [0; 8];
        if !self.peek(word, &mut value, fabric) {
            return;
        }
        if self.local.stored_to_host(now, u64::from_le_bytes(value)) {
            self.poke(word, &[0; 8], fabric);
        }
        self.local.recall = false;
    }
}
