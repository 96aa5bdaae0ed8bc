//! The interference ledger: which owner waited, for which other owner, at which resource, and for how long.
//!
//! Why it exists: a latency says how slow something was; the ledger says which owner caused it. Each interval in which a request
//! waited is booked as (victim, culprit, resource). What it deliberately does not know: how resources arbitrate. The component that
//! makes a request wait books the interval and adds it to the request's account in the same step, so for every request delay =
//! service + booked waits, exactly ([`Ledger::complete`] checks this).

mod account;
mod histogram;
mod processor;
mod requests;

pub use account::{Account, Transaction};
pub use histogram::Histogram;
pub use processor::{Processor, ProcessorTime};
pub use requests::{Party, RequestsTime, Unfetched};

use crate::types::{Owner, Tick, TileId};
use rustc_hash::FxHashMap;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

/// The resource at which a request waited.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Resource {
    /// A network link was sending another packet.
    Link(u16),
    /// The input buffer at the end of a network link was full; the culprit is the packet whose departure made room.
    InputBuffer(u16),
    /// A DRAM bank was working for another request.
    DramBank {
        /// The memory tile.
        memory: TileId,
        /// The bank.
        bank: u16,
    },
    /// The data bus of a DRAM was occupied.
    DramBus(TileId),
    /// The bank had another row open: precharge and activation, booked to the owner that opened that row.
    DramRow(TileId),
    /// The memory controller preferred another request, or its queue was full.
    DramQueue(TileId),
    /// The chips may not open this many rows within this short a time (tRRD, tFAW).
    DramActivates(TileId),
    /// The DRAM was refreshing; the culprit is the victim, because no other owner caused it.
    Refresh(TileId),
    /// The requester had used up its share of the memory's bandwidth; the culprit is the victim.
    Bandwidth(TileId),
    /// The token bucket was empty; the culprit is the victim.
    Bucket,
    /// Another activity of the tile had evicted the line from a cache: the cost of the miss.
    CacheSet(Level),
    /// All miss registers of a cache were taken.
    Mshr(Level),
    /// The port of a bank of a local memory was occupied.
    LocalMemory {
        /// The tile.
        tile: TileId,
        /// The bank.
        bank: u16,
    },
    /// The tile's DMA engine was beginning an access for another channel.
    DmaEngine(TileId),
    /// A bank of a cluster's second level was occupied.
    ClusterBank {
        /// The tile.
        tile: TileId,
        /// The bank.
        bank: u16,
    },
    /// The directory of a cluster was busy with the line for another hart, or had no free miss register.
    Directory(TileId),
    /// Another hart of the chip, or a coherent device, had taken the line from the hart's first level, or had made it shared: the cost of the
    /// miss.
    Coherence(TileId),
    /// A reservation of another hart of the cluster held the line.
    Reservation(TileId),
    /// The home agent of this memory was busy with the line for a hart of another coherent cluster, or of the same one.
    Home(TileId),
    /// The DTU was working on something else.
    DtuBusy,
    /// The network card's link was sending an earlier frame.
    Cable,
    /// The network card was storing an earlier frame, or its driver had given it no buffer.
    NetworkCard,
    /// The victim was ready, but the culprit (TileMux for its own work) had the hart.
    Processor,
    /// The victim was ready, but had used up its budget of processor time; the culprit is the victim.
    ProcessorBudget,
    /// The victim's request waited at a gate of this activity, which was working for the culprit.
    Service(Owner),
    /// The victim's request waited at a gate of this activity, which was working for its device; the culprit is that activity.
    DeviceService(Owner),
}

/// A cache of a tile.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Level {
    /// First level, instructions.
    L1i,
    /// First level, data.
    L1d,
    /// Second level.
    L2,
}

impl fmt::Display for Level {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Level::L1i => "L1I",
            Level::L1d => "L1D",
            Level::L2 => "L2",
        })
    }
}

impl fmt::Display for Resource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Resource::Link(link) => write!(f, "link {link}"),
            Resource::InputBuffer(link) => write!(f, "buffer behind link {link}"),
            Resource::DramBank { memory, bank } => write!(f, "memory {memory} bank {bank}"),
            Resource::DramBus(memory) => write!(f, "memory {memory} data bus"),
            Resource::DramRow(memory) => write!(f, "memory {memory} open row"),
            Resource::DramQueue(memory) => write!(f, "memory {memory} queue"),
            Resource::DramActivates(memory) => write!(f, "memory {memory} activations"),
            Resource::Refresh(memory) => write!(f, "memory {memory} refresh"),
            Resource::Bandwidth(memory) => write!(f, "bandwidth of memory {memory}"),
            Resource::Bucket => f.write_str("token bucket"),
            Resource::CacheSet(level) => write!(f, "{level} eviction"),
            Resource::Mshr(level) => write!(f, "{level} miss registers"),
            Resource::LocalMemory { tile, bank } => {
                write!(f, "local memory of tile {tile} bank {bank}")
            }
            Resource::DmaEngine(tile) => write!(f, "DMA engine of tile {tile}"),
            Resource::ClusterBank { tile, bank } => {
                write!(f, "second level of tile {tile} bank {bank}")
            }
            Resource::Directory(tile) => write!(f, "directory of tile {tile}"),
            Resource::Coherence(tile) => write!(f, "coherence in tile {tile}"),
            Resource::Reservation(tile) => write!(f, "reservation in tile {tile}"),
            Resource::Home(memory) => write!(f, "home agent of memory {memory}"),
            Resource::DtuBusy => f.write_str("DTU"),
            Resource::Cable => f.write_str("network cable"),
            Resource::NetworkCard => f.write_str("network card"),
            Resource::Processor => f.write_str("processor"),
            Resource::ProcessorBudget => f.write_str("processor budget"),
            Resource::Service(server) | Resource::DeviceService(server) => {
                write!(f, "service {} of tile {}", server.activity, server.tile)
            }
        }
    }
}

/// One entry of the ledger.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct Booking {
    /// The owner that waited.
    pub victim: Owner,
    /// The owner that held the resource.
    pub culprit: Owner,
    /// The resource.
    pub resource: Resource,
    /// Total ticks.
    pub ticks: Tick,
    /// Number of stretches.
    pub count: u64,
    /// The longest interval in ticks.
    pub longest: Tick,
}

/// Latencies of one kind of transaction of one owner.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Latency {
    /// The owner of the transactions.
    pub owner: Owner,
    /// Their kind.
    pub transaction: Transaction,
    /// Ticks from start to end.
    pub total: Histogram,
    /// Total ticks that they waited.
    pub waited: Tick,
    /// The most ticks to the end since one of them had a miss register of its tile, if it needs one.
    pub longest: Tick,
}

/// A transaction that ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ended {
    /// Its owner.
    pub owner: Owner,
    /// Its kind.
    pub transaction: Transaction,
    /// When it began.
    pub begin: Tick,
    /// When it ended.
    pub end: Tick,
}

/// When the requests of a hart's first level came to the second one, and the lines that it asked memory for, in order: the address of each line,
/// as a tile's caches know it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Asked {
    /// Lines that were read.
    pub reads: Vec<u64>,
    /// Lines that were written.
    pub writes: Vec<u64>,
    /// For each of these, how many lines had been read before it.
    pub behind: Vec<u64>,
    /// When requests came to their bank, up to [`Asked::MOST`] of them.
    pub came: Vec<Tick>,
    /// Their lines.
    pub came_for: Vec<u64>,
    /// Operations of cache management that came there.
    pub managed: u64,
    /// Number of lines that were not kept.
    pub unkept: u64,
}

impl Asked {
    /// Maximum number of lines kept for one owner, 16 bytes each at most.
    pub const MOST: usize = 1 << 20;
}

type Key = (Owner, Owner, Resource);

/// All bookings of a run.
#[derive(Clone, Debug, Default)]
pub struct Ledger {
    index: FxHashMap<Key, u32>,
    bookings: Vec<Booking>,
    latency_index: FxHashMap<(Owner, Transaction), u32>,
    latencies: Vec<Latency>,
    last: u32,
    /// Every transaction, if requested.
    ended: Option<Vec<Ended>>,
    /// The lines that harts of clusters requested from memory, for the harts whose requests are recorded.
    asked: BTreeMap<Owner, Asked>,
    /// The parts that harts of clusters accessed past their caches: memories, devices, engines, tiles.
    reached: BTreeSet<(Owner, TileId)>,
}

impl Ledger {
    /// An empty ledger.
    pub fn new() -> Self {
        Self::default()
    }

    /// Books an interval of `ticks` in which `victim` waited because `culprit` held `resource`. Ignores an interval of length 0.
    pub fn book(&mut self, victim: Owner, culprit: Owner, resource: Resource, ticks: Tick) {
        if ticks != 0 {
            self.book_each((victim, culprit, resource), ticks, 1);
        }
    }

    /// [`Ledger::book`] for this many requests of one victim that wait for the same time, of at least one tick.
    pub fn book_each(
        &mut self,
        (victim, culprit, resource): (Owner, Owner, Resource),
        ticks: Tick,
        requests: u64,
    ) {
        let at = self.find(victim, culprit, resource);
        let booking = &mut self.bookings[at];
        booking.ticks += ticks * requests;
        booking.count += requests;
        booking.longest = booking.longest.max(ticks);
    }

    /// [`Ledger::book`] for a component that books the same few triples again and again: `place` belongs to the component, says where the
    /// last booking was, and saves the hash.
    pub fn book_again(
        &mut self,
        place: &mut u32,
        (victim, culprit, resource): (Owner, Owner, Resource),
        ticks: Tick,
    ) {
        if ticks != 0 {
            self.last = *place;
            self.book(victim, culprit, resource, ticks);
            *place = self.last;
        }
    }

    /// Extends the last interval of this victim, culprit and resource, which was `so_far` long, by `ticks`. It remains one
    /// interval, so the result does not depend on how often the wait was observed.
    pub fn lengthen(
        &mut self,
        victim: Owner,
        culprit: Owner,
        resource: Resource,
        (so_far, ticks): (Tick, Tick),
    ) {
        let at = self.find(victim, culprit, resource);
        let booking = &mut self.bookings[at];
        booking.ticks += ticks;
        booking.longest = booking.longest.max(so_far + ticks);
    }

    /// Books an interval and adds it to the account of the request that waited.
    pub fn wait(
        &mut self,
        account: &mut Account,
        victim: Owner,
        culprit: Owner,
        resource: Resource,
        ticks: Tick,
    ) {
        account.waited += ticks;
        self.book(victim, culprit, resource, ticks);
    }

    fn find(&mut self, victim: Owner, culprit: Owner, resource: Resource) -> usize {
        // The same triple is often booked many times in a row (one stream behind another), so this saves the hash.
        if let Some(b) = self.bookings.get(self.last as usize)
            && b.victim == victim
            && b.culprit == culprit
            && b.resource == resource
        {
            return self.last as usize;
        }
        let next = self.bookings.len() as u32;
        let at = *self
            .index
            .entry((victim, culprit, resource))
            .or_insert(next);
        if at == next {
            self.bookings.push(Booking {
                victim,
                culprit,
                resource,
                ticks: 0,
                count: 0,
                longest: 0,
            });
        }
        self.last = at;
        at as usize
    }

    /// Ends a transaction at `now`: records its latency, and checks that every tick of it is accounted for.
    ///
    /// # Panics
    /// In debug builds, if `now - started` differs from service + waited, which is an error in the machine, not in its input.
    pub fn complete(
        &mut self,
        owner: Owner,
        transaction: Transaction,
        account: &Account,
        now: Tick,
    ) {
        debug_assert_eq!(
            account.accounted(),
            now,
            "{transaction:?} of {owner:?}: delay is not service + waits"
        );
        let next = self.latencies.len() as u32;
        let at = *self
            .latency_index
            .entry((owner, transaction))
            .or_insert(next);
        if at == next {
            self.latencies.push(Latency {
                owner,
                transaction,
                total: Histogram::new(),
                waited: 0,
                longest: 0,
            });
        }
        let latency = &mut self.latencies[at as usize];
        let length = now.checked_sub(account.started);
        let length = length.unwrap_or_else(|| {
            panic!("{transaction:?} of {owner:?} ends at {now}, before it began: {account:?}")
        });
        latency.total.record(length);
        latency.waited += account.waited;
        latency.longest = latency.longest.max(length - account.blocked);
        if let Some(ended) = &mut self.ended {
            ended.push(Ended {
                owner,
                transaction,
                begin: account.started,
                end: now,
            });
        }
    }

    /// Keeps every transaction from now on, 24 bytes for each.
    pub fn keep_transactions(&mut self) {
        self.ended.get_or_insert_default();
    }

    /// From now on, keeps the lines that a hart of a cluster asks memory for, up to [`Asked::MOST`] of them.
    pub fn keep_asked(&mut self, owner: Owner) {
        self.asked.entry(owner).or_default();
    }

    /// A cluster asks memory to read or write a line for this owner.
    pub fn asks(&mut self, owner: Owner, line: u64, write: bool) {
        let Some(asked) = self.asked.get_mut(&owner) else {
            return;
        };
        if asked.reads.len() + asked.writes.len() >= Asked::MOST {
            asked.unkept += 1;
        } else if write {
            asked.writes.push(line);
            asked.behind.push(asked.reads.len() as u64);
        } else {
            asked.reads.push(line);
        }
    }

    /// A request of this owner's first level for a line has come to its bank; `managed`: an operation of cache management.
    pub fn comes(&mut self, owner: Owner, now: Tick, (line, managed): (u64, bool)) {
        let Some(asked) = self.asked.get_mut(&owner) else {
            return;
        };
        asked.managed += u64::from(managed);
        if asked.came.len() < Asked::MOST {
            asked.came.push(now);
            asked.came_for.push(line);
        }
    }

    /// The lines that a hart of a cluster asked memory for, if they were kept.
    pub fn asked(&self, owner: Owner) -> Option<&Asked> {
        self.asked.get(&owner)
    }

    /// A hart of a cluster accesses a part of the chip past its caches: a memory or its registers, a device, an engine, a tile.
    pub fn reaches(&mut self, owner: Owner, part: TileId) {
        self.reached.insert((owner, part));
    }

    /// Who accessed which part past the caches of a cluster, in order.
    pub fn reached(&self) -> impl Iterator<Item = (Owner, TileId)> {
        self.reached.iter().copied()
    }

    /// The transactions that were kept, in the order in which they were recorded.
    pub fn transactions(&self) -> &[Ended] {
        self.ended.as_deref().unwrap_or_default()
    }

    /// Every booking, sorted by (victim, culprit, resource).
    pub fn bookings(&self) -> Vec<Booking> {
        let mut all = self.bookings.clone();
        all.sort_by_key(|b| (b.victim, b.culprit, b.resource));
        all
    }

    /// Ticks that each culprit cost `victim`, greatest first. With `by_resource`, resources are listed separately; otherwise the
    /// bookings of a culprit are added up under the resource where it cost most.
    pub fn culprits_of(&self, victim: Owner, by_resource: bool) -> Vec<Booking> {
        let mut mine: Vec<Booking> = self
            .bookings()
            .into_iter()
            .filter(|b| b.victim == victim)
            .collect();
        mine.sort_by(|a, b| {
            (b.ticks, a.culprit, a.resource).cmp(&(a.ticks, b.culprit, b.resource))
        });
        if !by_resource {
            let mut merged: Vec<Booking> = Vec::new();
            for b in mine {
                match merged.iter_mut().find(|m| m.culprit == b.culprit) {
                    Some(m) => {
                        m.ticks += b.ticks;
                        m.count += b.count;
                        m.longest = m.longest.max(b.longest);
                    }
                    None => merged.push(b),
                }
            }
            merged.sort_by(|a, b| (b.ticks, a.culprit).cmp(&(a.ticks, b.culprit)));
            return merged;
        }
        mine
    }

    /// Total ticks that each victim waited, sorted by victim.
    pub fn totals(&self) -> Vec<(Owner, Tick)> {
        let mut totals: Vec<(Owner, Tick)> = Vec::new();
        for b in self.bookings() {
            match totals.last_mut() {
                Some((owner, ticks)) if *owner == b.victim => *ticks += b.ticks,
                _ => totals.push((b.victim, b.ticks)),
            }
        }
        totals
    }

    /// Latencies, sorted by (owner, kind).
    pub fn latencies(&self) -> Vec<&Latency> {
        let mut all: Vec<&Latency> = self.latencies.iter().collect();
        all.sort_by_key(|l| (l.owner, l.transaction));
        all
    }

    /// The latencies of one kind of transaction of one owner.
    pub fn latency(&self, owner: Owner, transaction: Transaction) -> Option<&Latency> {
        self.latency_index
            .get(&(owner, transaction))
            .map(|&at| &self.latencies[at as usize])
    }

    /// Drops everything (the warm-up is over), but still keeps transactions if it did before.
    pub fn clear(&mut self) {
        let ended = self.ended.as_ref().map(|_| Vec::new());
        let asked = self.asked.keys();
        let asked = asked.map(|owner| (*owner, Asked::default())).collect();
        *self = Self {
            ended,
            asked,
            ..Self::default()
        };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const A: Owner = Owner::new(1, 7);
    const B: Owner = Owner::new(2, 0);

    #[test]
    fn adds_up_and_sorts() {
        let mut ledger = Ledger::new();
        ledger.book(B, A, Resource::Bucket, 5);
        ledger.book(A, B, Resource::Link(3), 10);
        ledger.book(A, B, Resource::Link(3), 30);
        ledger.book(A, B, Resource::Link(1), 60);
        ledger.book(A, A, Resource::Link(1), 70);
        ledger.book(A, A, Resource::Link(9), 0);
        assert_eq!(ledger.totals(), [(A, 170), (B, 5)]);
        let all = ledger.bookings();
        assert_eq!(all.len(), 4);
        assert_eq!(
            (all[2].resource, all[2].ticks, all[2].count, all[2].longest),
            (Resource::Link(3), 40, 2, 30)
        );
        // B cost A 100 ticks in total, A cost itself 70.
        let merged = ledger.culprits_of(A, false);
        assert_eq!(
            merged
                .iter()
                .map(|b| (b.culprit, b.ticks))
                .collect::<Vec<_>>(),
            [(B, 100), (A, 70)]
        );
        let apart = ledger.culprits_of(A, true);
        assert_eq!(
            apart.iter().map(|b| b.ticks).collect::<Vec<_>>(),
            [70, 60, 40]
        );
    }

    #[test]
    fn records_latencies() {
        let mut ledger = Ledger::new();
        let account = Account {
            started: 100,
            service: 20,
            waited: 3,
            blocked: 2,
        };
        ledger.complete(A, Transaction::CacheRead, &account, 123);
        let latency = ledger.latency(A, Transaction::CacheRead).unwrap();
        assert_eq!((latency.total.maximum(), latency.waited), (23, 3));
        assert_eq!(latency.longest, 21);
        assert!(ledger.latency(A, Transaction::Message).is_none());
        assert!(ledger.transactions().is_empty(), "nobody asked");
    }

    #[test]
    fn keeps_transactions_for_whoever_asks() {
        let mut ledger = Ledger::new();
        let account = |started| Account {
            started,
            service: 20,
            waited: 3,
            blocked: 0,
        };
        ledger.keep_transactions();
        ledger.complete(A, Transaction::CacheRead, &account(100), 123);
        ledger.clear();
        ledger.complete(B, Transaction::Message, &account(200), 223);
        let kept = Ended {
            owner: B,
            transaction: Transaction::Message,
            begin: 200,
            end: 223,
        };
        assert_eq!(ledger.transactions(), [kept]);
    }

    #[test]
    #[should_panic(expected = "delay is not service + waits")]
    #[cfg(debug_assertions)]
    fn a_lost_tick_is_noticed() {
        let account = Account {
            started: 100,
            service: 20,
            waited: 3,
            blocked: 0,
        };
        Ledger::new().complete(A, Transaction::CacheRead, &account, 124);
    }
}
