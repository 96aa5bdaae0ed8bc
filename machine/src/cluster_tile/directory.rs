//! The second level of a cluster: an inclusive cache with a directory of the first levels.
//!
//! Why it exists: it decides in which order the harts get a line. Each line has at most one transaction at a time; a request whose line is
//! busy waits, in the order of arrival. Evicted dirty lines and answers to probes never wait. It is a pure state machine: after each call,
//! its messages are in `out` and `below`. What it deliberately does not know: how long messages travel, and what memory is.
//!
//! A line here has an owner (one first level has it exclusive or modified), sharers, or nobody. First levels drop clean lines silently, so
//! owner and sharers may have no copy any more; they report this when they are probed. A request by the owner itself shows it, too.

mod ahead;
mod outside;
mod probed;
mod transaction;
mod waiting;

pub(super) use self::ahead::{Foreseeing, Presence};
use self::probed::Surrenders;
use self::transaction::{Blocker, Ended, Holders, Lacks, Memory, Transaction, Waiting};
use super::capacity::Capacity;
#[cfg(test)]
use super::messages::Coverage;
use super::messages::{Ask, Below, Down, Looked, Port, Reply, Request};
use crate::cache::{Cache, CacheStatistics};
use crate::config::CacheConfig;
use crate::hart::{Management, QosIds};
use crate::ledger::{Ledger, Level, Resource};
use crate::noc::{Account, Transaction::CacheRead};
use crate::types::{Line, Owner, Tick, TileId, inline};
use std::collections::VecDeque;

/// Maximum number of harts of a cluster.
pub const PORTS: usize = 8;

/// The purpose for which a line is fetched from memory. Each has its own ways.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fill {
    /// Loads, stores and walks.
    Data = 0,
    /// Instructions.
    Instructions = 1,
}

/// See the module's documentation.
#[derive(Clone, Debug)]
pub struct Directory {
    tile: TileId,
    cache: Cache,
    holders: Vec<Holders>,
    transactions: Vec<Transaction>,
    waiting: VecDeque<Waiting>,
    /// Lines on their way to memory, and the ports that caused this.
    writing: Vec<(u64, Port, Line)>,
    /// Instructions on their way to a port, which the directory does not track: at most one for each fetch under way.
    fetched: Vec<(Port, u64, Line)>,
    /// Lines that other clusters want.
    surrenders: Surrenders,
    /// Other clusters have the same lines, and memory's home agent asks this one for them.
    pub coherent: bool,
    /// The ways that fills may take, and the requester that filled each place. Hits are not limited.
    pub capacity: Capacity,
    /// Requests of the capacity controller that are done; the caller takes them.
    pub reclaimed: Vec<(Port, Account)>,
    /// What has ended, as far as requests may wait for it.
    ended: Vec<Ended>,
    /// Maximum number of lines that memory may be asked for at once; if the registers are divided, at once for one port.
    limit: usize,
    /// Each port has miss registers of its own.
    divided: bool,
    length: usize,
    /// Messages to ports; the caller takes them.
    pub out: Vec<(Port, Down)>,
    /// Messages to memory; the caller takes them.
    pub below: Vec<Below>,
    /// Transitions that have happened.
    #[cfg(test)]
    pub coverage: Coverage,
}

impl Directory {
    /// An empty cache.
    pub fn new(tile: TileId, config: &CacheConfig) -> Self {
        let cache = Cache::new(config, u64::from(tile));
        Self {
            tile,
            holders: vec![Holders::default(); cache.slots()],
            cache,
            transactions: Vec::new(),
            waiting: VecDeque::new(),
            writing: Vec::new(),
            fetched: Vec::new(),
            surrenders: Surrenders::default(),
            coherent: false,
            capacity: Capacity::by_port(),
            reclaimed: Vec::new(),
            ended: Vec::new(),
            limit: config.mshrs as usize,
            divided: false,
            length: config.line as usize,
            out: Vec::new(),
            below: Vec::new(),
            #[cfg(test)]
            coverage: Coverage::default(),
        }
    }

    /// Places for lines.
    pub fn slots(&self) -> usize {
        self.holders.len()
    }

    /// The next line of a set, from its way `from` on, that requests of this RCID have filled for this: its way and the line. `Err`: the
    /// set has no more; the value says whether it was the last set.
    pub fn filled_by(
        &self,
        (set, from): (usize, usize),
        rcid: u16,
        what: Fill,
    ) -> Result<(usize, u64), bool> {
        let ways = self.cache.ways();
        let own = |way: &usize| self.capacity.was_filled_by(set * ways + way, rcid, what);
        let Some(way) = (from..ways).find(own) else {
            return Err((set + 1) * ways >= self.slots());
        };
        let line = self.cache.line_at(set * ways + way);
        Ok((way, line.expect("somebody has filled the place")))
    }

    /// The effect of a request on its line, if it does not bring the line.
    fn manages(&self, ask: &Ask) -> Option<Option<Management>> {
        match ask.request {
            Request::Manage(what) => Some(Some(what)),
            Request::Reclaim(what) => {
                // Another request may have brought it again since the controller looked.
                let slot = self.cache.slot_of(ask.line);
                let own = |slot| self.capacity.was_filled_by(slot, ask.ids.rcid, what);
                Some(slot.is_some_and(own).then_some(Management::Flush))
            }
            Request::Read
            | Request::ReadAhead
            | Request::Write
            | Request::Fetch
            | Request::Ahead(_) => None,
        }
    }

    /// From now on, the miss registers are divided equally among this many ports: no request waits for a register of another port.
    pub fn divide_registers(&mut self, ports: usize) {
        self.divided = true;
        self.limit /= ports;
    }

    /// The owner in the ledger of what a port does.
    pub fn owner(&self, port: Port) -> Owner {
        Owner::new(self.tile, u16::from(port))
    }

    /// Counts for each hart.
    pub fn statistics(&self) -> Vec<(Owner, CacheStatistics)> {
        self.cache.statistics()
    }

    /// Whether nothing is under way.
    pub fn is_idle(&self) -> bool {
        let own = self.transactions.is_empty() && self.waiting.is_empty();
        own && self.writing.is_empty() && self.surrenders.is_empty()
    }

    /// State of a line.
    pub fn state(&self, line: u64) -> &'static str {
        if self.transactions.iter().any(|t| t.ask.line == line) {
            return "busy";
        }
        if self.is_victim(line) {
            return "recalled";
        }
        if self.surrenders.wanted_by(line).is_some() {
            return "wanted";
        }
        if self.writing.iter().any(|w| w.0 == line) {
            return "I, being written";
        }
        let Some(slot) = self.cache.slot_of(line) else {
            return "I";
        };
        match self.holders[slot] {
            Holders { owner: Some(_), .. } => "owned",
            Holders {
                sharers: 0,
                elsewhere,
                ..
            } => match elsewhere {
                true => "V, also elsewhere",
                false => "V",
            },
            Holders {
                elsewhere: true, ..
            } => "shared, also elsewhere",
            Holders { .. } => "shared",
        }
    }

    /// A port's right to a line, for the checks of tests: whether it is the owner, and whether it is a sharer.
    #[cfg(test)]
    pub fn right(&self, line: u64, port: Port) -> Option<(bool, bool)> {
        let holders = self.holders[self.cache.slot_of(line)?];
        Some((
            holders.owner == Some(port),
            holders.sharers >> port & 1 != 0,
        ))
    }

    /// Whether the line is here and no other cluster may have it, for the checks of tests; `None`: it is not here.
    #[cfg(test)]
    pub fn is_alone(&self, line: u64) -> Option<bool> {
        self.copy(line)?;
        Some(!self.holders[self.cache.slot_of(line)?].elsewhere)
    }

    #[cfg(test)]
    fn note(&mut self, line: u64, event: &'static str) {
        let state = self.state(line);
        self.coverage.note(state, event);
    }

    fn is_victim(&self, line: u64) -> bool {
        self.transactions.iter().any(|t| t.recalls(line))
    }

    /// The hart for which something is under way on a line, here or in another cluster.
    fn blocker(&self, line: u64) -> Option<Owner> {
        let about = self.transactions.iter().find(|t| t.is_about(line));
        let transaction = about.map(|t| t.ask.port);
        let writing = || self.writing.iter().find(|w| w.0 == line).map(|w| w.1);
        let port = transaction.or_else(writing);
        let own = port.map(|port| self.owner(port));
        own.or_else(|| self.surrenders.wanted_by(line))
    }

    /// A request, whose line has been looked up.
    pub fn ask(&mut self, now: Tick, ask: Ask, ledger: &mut Ledger) {
        #[cfg(test)]
        self.note(
            ask.line,
            match ask.request {
                Request::Read => "read",
                Request::ReadAhead => "read ahead",
                Request::Write => "write",
                Request::Fetch => "fetch",
                Request::Manage(Management::Invalidate) => "invalidate",
                Request::Manage(Management::Clean) => "clean",
                Request::Manage(Management::Flush) => "flush",
                Request::Reclaim(_) => "reclaim",
                Request::Ahead(_) => "ahead",
            },
        );
        let before = match self.waiting.is_empty() {
            true => None,
            false => self.waiting.iter().find(|w| w.ask.line == ask.line),
        };
        let blocker = before.map(|w| self.owner(w.ask.port));
        let started = match blocker {
            Some(owner) => Err((ask, Blocker::line(owner))),
            None => self.start(now, ask, ledger),
        };
        if let Err((ask, blocker)) = started {
            self.wait_or_drop(now, ask, blocker);
        }
        self.settle(now, ledger);
    }

    /// Whether a request needs a line alone, and the line is here but may be in other clusters, too.
    fn upgrades(&self, ask: &Ask, slot: usize) -> bool {
        ask.request == Request::Write && self.holders[slot].elsewhere
    }

    /// Begins a request.
    ///
    /// # Errors
    /// The request, and what it waits for.
    fn start(&mut self, now: Tick, ask: Ask, ledger: &mut Ledger) -> Result<(), (Ask, Blocker)> {
        if let Some(owner) = self.blocker(ask.line) {
            return Err((ask, Blocker::line(owner)));
        }
        let (line, port) = (ask.line, ask.port);
        let mut transaction = Transaction {
            ask,
            victim: None,
            probed: 0,
            held: (port, 0),
            memory: Memory::Nothing,
            looked: Looked::default(),
            culprit: None,
            brought: false,
        };
        let manages = self.manages(&transaction.ask);
        if manages.is_none() {
            let owner = self.owner(port);
            self.cache.set_owner(owner);
        }
        if let Some(blocker) = self.full(&transaction.ask) {
            return Err((transaction.ask, blocker));
        }
        if self.coherent
            && let Request::Manage(what) = transaction.ask.request
        {
            transaction.memory = Memory::Elsewhere;
            self.below.push(Below::Manage {
                line,
                port,
                what,
                ids: transaction.ask.ids,
                account: transaction.ask.account,
            });
        } else if let Some(slot) = self.cache.slot_of(line) {
            if let Some(owner) = self.spares(&transaction.ask, slot) {
                return Err((transaction.ask, Blocker::line(owner)));
            }
            let upgrades = self.upgrades(&transaction.ask, slot);
            let holders = &mut self.holders[slot];
            let own = 1u8 << port;
            let others = holders.owner.filter(|owner| *owner != port);
            let others = others.map_or(0, |owner| 1 << owner);
            let (probed, keep) = match (transaction.ask.request, manages) {
                (Request::Read | Request::ReadAhead, _) => (others, true),
                // The home may take the line before it grants it, so all give it up now.
                (Request::Write, _) if upgrades => (holders.all(), false),
                (Request::Write, _) => (others | holders.sharers & !own, false),
                (Request::Fetch, _) | (_, Some(Some(Management::Clean))) => {
                    (holders.owner.map_or(0, |owner| 1 << owner), true)
                }
                (_, Some(None)) => (0, true),
                _ => (holders.all(), false),
            };
            if transaction.ask.request.is_granted() && holders.owner == Some(port) {
                // It has dropped the line: a first level asks for nothing that it has.
                holders.owner = None;
            }
            if manages.is_none() {
                self.cache.access(line, false);
            }
            transaction.probed = probed;
            if upgrades {
                transaction.memory = Memory::Asked;
                self.below.push(Below::Read {
                    line,
                    port,
                    alone: true,
                    ids: transaction.ask.ids,
                    account: transaction.ask.account,
                });
            }
            self.probe(line, probed, keep, self.owner(port));
        } else if manages.is_none() {
            let ways = self.fillable(&transaction.ask);
            self.cache.set_way_mask(ways);
            let kept = self.kept_from(&transaction.ask);
            let (transactions, surrenders) = (&self.transactions, &self.surrenders);
            let busy = |line| {
                let wanted = || surrenders.wanted_by(line).is_some();
                let about = || transactions.iter().any(|t| t.is_about(line));
                kept.contains(&line) || about() || wanted()
            };
            let victim = self.cache.next_victim(line, busy);
            let Some((way, victim)) = victim else {
                if !kept.is_empty() {
                    // It is dropped, so it waits for nobody.
                    return Err((transaction.ask, Blocker::line(self.owner(port))));
                }
                let blocker = self.crowded(&transaction.ask);
                let blocker = blocker.expect("every line that it might replace is busy");
                return Err((transaction.ask, blocker));
            };
            // Nobody waits for a line that is fetched ahead, and it is not a miss.
            if !matches!(transaction.ask.request, Request::Ahead(_)) {
                let owner = self.owner(port);
                // Counts the miss.
                self.cache.access(line, false);
                let before = transaction.ask.account.service;
                let culprit = self.cache.culprit(line, owner);
                transaction.culprit = culprit.map(|culprit| (culprit, before));
            }
            transaction.memory = Memory::Asked;
            transaction.looked.missed = true;
            self.below.push(Below::Read {
                line,
                port,
                alone: transaction.ask.request == Request::Write,
                ids: transaction.ask.ids,
                account: transaction.ask.account,
            });
            let held = victim.map_or(0, |victim| {
                let slot = self.cache.slot_of(victim);
                self.holders[slot.expect("a victim is here")].all()
            });
            if held == 0 {
                let room = (transaction.ask.ids, transaction.ask.fill());
                transaction.looked.wrote_back = self.make_room(line, way, port, room);
            } else {
                let victim = victim.expect("nobody holds an empty place");
                #[cfg(test)]
                self.note(victim, "recall");
                transaction.victim = Some((victim, way));
                transaction.probed = held;
                self.probe(victim, held, false, self.owner(port));
            }
        }
        self.transactions.push(transaction);
        self.proceed(self.transactions.len() - 1, now, ledger);
        Ok(())
    }

    fn probe(&mut self, line: u64, ports: u8, keep: bool, by: Owner) {
        for port in (0..PORTS as Port).filter(|port| ports >> port & 1 != 0) {
            self.out.push((port, Down::Probe { line, keep, by }));
        }
    }

    /// Puts a line whose bytes are still to come into a way whose line no first level has. Returns whether that line goes to memory.
    fn make_room(
        &mut self,
        line: u64,
        way: usize,
        port: Port,
        (ids, what): (QosIds, Fill),
    ) -> bool {
        let owner = self.owner(port);
        let nothing = &[0; crate::types::LINE_MAX][..self.length];
        let evicted = self.cache.fill_way(line, way, owner, nothing);
        let evicted = evicted.filter(|evicted| evicted.dirty);
        if let Some(evicted) = evicted {
            let bytes = inline(self.cache.evicted());
            self.write(evicted.address, (port, ids), bytes);
        }
        let slot = self.cache.slot_of(line).expect("it was filled");
        self.holders[slot] = Holders::default();
        self.capacity.allocate(slot, ids, what);
        evicted.is_some()
    }

    fn write(&mut self, line: u64, (port, ids): (Port, QosIds), bytes: Line) {
        self.writing.push((line, port, bytes));
        self.below.push(Below::Write { line, port, ids });
    }

    /// A message that a first level sends without waiting.
    pub fn reply(&mut self, now: Tick, port: Port, reply: Reply, ledger: &mut Ledger) {
        match reply {
            Reply::Put { line } => {
                #[cfg(test)]
                self.note(line, "put");
                let slot = self.belongs(port, line);
                self.cache.mark_dirty(line);
                self.holders[slot].owner = None;
            }
            Reply::Answer {
                line,
                dirty,
                kept,
                held,
            } => {
                #[cfg(test)]
                self.note(
                    line,
                    match (dirty, kept) {
                        (true, true) => "answer: modified, kept",
                        (true, false) => "answer: modified, gone",
                        (false, true) => "answer: clean, kept",
                        (false, false) => "answer: gone",
                    },
                );
                if dirty {
                    self.belongs(port, line);
                    self.cache.mark_dirty(line);
                }
                let slot = self.cache.slot_of(line);
                let slot = slot.unwrap_or_else(|| panic!("{line:#x} is busy and not here"));
                let holders = &mut self.holders[slot];
                if holders.owner == Some(port) {
                    holders.owner = None;
                }
                holders.sharers = holders.sharers & !(1 << port) | u8::from(kept) << port;
                if self.surrenders.answered(port, line, held) {
                    return self.settle(now, ledger);
                }
                let waits = |t: &Transaction| {
                    t.probed >> port & 1 != 0
                        && t.victim.map_or(t.ask.line, |(victim, _)| victim) == line
                };
                let at = self.transactions.iter().position(waits);
                let at = at.unwrap_or_else(|| panic!("port {port} was not asked for {line:#x}"));
                let transaction = &mut self.transactions[at];
                transaction.probed &= !(1 << port);
                if held > transaction.held.1 {
                    transaction.held = (port, held);
                }
                self.proceed(at, now, ledger);
                self.settle(now, ledger);
            }
        }
    }

    /// The place of a line that this port has modified, as only its owner may.
    fn belongs(&self, port: Port, line: u64) -> usize {
        let slot = self.cache.slot_of(line);
        let holders = slot.map(|slot| self.holders[slot]);
        assert!(
            holders.is_some_and(|holders| holders.owner == Some(port)),
            "port {port} has written {line:#x}, which belongs to {holders:?}"
        );
        slot.expect("it belongs to somebody")
    }

    /// The bytes of a modified line leave its owner, before the message that reports this. Until the message comes, no request uses them
    /// here.
    pub fn leaves(&mut self, port: Port, line: u64, bytes: &[u8]) {
        let slot = self.belongs(port, line);
        self.cache.slot_mut(slot).copy_from_slice(bytes);
    }

    /// The bytes of a line that a grant gives to a port, when the grant arrives.
    pub fn granted(&self, line: u64) -> &[u8] {
        let there = self.cache.line(line);
        there.unwrap_or_else(|| panic!("{line:#x} was granted and is not here"))
    }

    /// The bytes of instructions that arrive at a port, as they were when they left.
    pub fn take_fetched(&mut self, port: Port, line: u64) -> Line {
        let mut fetched = self.fetched.iter();
        let at = fetched.position(|(to, of, _)| *to == port && *of == line);
        let at = at.unwrap_or_else(|| panic!("port {port} did not fetch {line:#x}"));
        self.fetched.swap_remove(at).2
    }

    /// The bytes of a line that memory has not acknowledged yet.
    pub fn written_bytes(&self, line: u64) -> Option<&Line> {
        let mut writing = self.writing.iter();
        writing.find(|w| w.0 == line).map(|w| &w.2)
    }

    /// Memory has sent a line, and no other cluster has it if `alone`. `account` continues that of the request.
    pub fn came(
        &mut self,
        now: Tick,
        line: u64,
        (bytes, alone): (&Line, bool),
        account: Account,
        ledger: &mut Ledger,
    ) {
        #[cfg(test)]
        self.note(line, "line from memory");
        let asked = |t: &Transaction| t.ask.line == line && matches!(t.memory, Memory::Asked);
        let at = self.transactions.iter().position(asked);
        let at = at.unwrap_or_else(|| panic!("nobody asked memory for {line:#x}"));
        let transaction = &mut self.transactions[at];
        transaction.memory = match transaction.probed {
            0 => Memory::Nothing,
            _ => Memory::Came(Box::new(*bytes), alone),
        };
        if transaction.probed == 0 {
            self.put_in(line, bytes, alone);
        }
        let transaction = &mut self.transactions[at];
        transaction.ask.account = account;
        transaction.brought = true;
        if let Some((culprit, before)) = transaction.culprit {
            // Without that port it would have been a hit: what memory and the way there cost is a wait because of it.
            let ask = &mut transaction.ask;
            let cost = ask.account.service - before;
            ask.account.service = before;
            let (victim, level) = (Owner::new(self.tile, ask.port.into()), Level::L2);
            let resource = Resource::CacheSet(level);
            ledger.wait(&mut ask.account, victim, culprit, resource, cost);
        }
        self.proceed(at, now, ledger);
        self.settle(now, ledger);
    }

    /// A line gets its bytes, and whether other clusters may have it.
    fn put_in(&mut self, line: u64, bytes: &Line, alone: bool) {
        let slot = self.cache.slot_of(line).expect("it has a place");
        let bytes = &bytes[..self.length];
        self.cache.slot_mut(slot).copy_from_slice(bytes);
        self.holders[slot].elsewhere = !alone;
    }

    /// Memory has acknowledged a line.
    pub fn written(&mut self, now: Tick, line: u64, ledger: &mut Ledger) {
        #[cfg(test)]
        self.note(line, "written");
        let at = self.writing.iter().position(|w| w.0 == line);
        let at = at.unwrap_or_else(|| panic!("nobody wrote {line:#x}"));
        let (_, port, _) = self.writing.remove(at);
        let waits = |t: &Transaction| t.ask.line == line && matches!(t.memory, Memory::Writing);
        match self.transactions.iter().position(waits) {
            Some(at) => {
                self.transactions[at].memory = Memory::Nothing;
                self.proceed(at, now, ledger);
            }
            None => {
                let owner = self.owner(port);
                self.ended.push(Ended {
                    owner,
                    slot: None,
                    register: false,
                });
            }
        }
        self.settle(now, ledger);
    }

    /// Continues a transaction as far as possible.
    fn proceed(&mut self, at: usize, now: Tick, ledger: &mut Ledger) {
        let transaction = &mut self.transactions[at];
        if transaction.probed != 0 {
            return;
        }
        let (line, port) = (transaction.ask.line, transaction.ask.port);
        if let Some((_, way)) = transaction.victim.take() {
            let room = (transaction.ask.ids, transaction.ask.fill());
            let wrote_back = self.make_room(line, way, port, room);
            self.transactions[at].looked.wrote_back = wrote_back;
        }
        let memory = &mut self.transactions[at].memory;
        match std::mem::replace(memory, Memory::Nothing) {
            Memory::Came(bytes, alone) => self.put_in(line, &bytes, alone),
            Memory::Nothing => {}
            waits => {
                *memory = waits;
                return;
            }
        }
        let request = self.transactions[at].ask.request;
        let slot = self.cache.slot_of(line);
        if let Some(Some(what)) = self.manages(&self.transactions[at].ask)
            && let Some(slot) = slot
        {
            if what != Management::Invalidate && self.cache.is_dirty(line) {
                let bytes = inline(self.cache.line(line).expect("it is here"));
                self.cache.mark_clean(line);
                self.transactions[at].memory = Memory::Writing;
                let ids = self.transactions[at].ask.ids;
                return self.write(line, (port, ids), bytes);
            }
            if what != Management::Clean {
                self.capacity.free(slot);
                self.cache.invalidate(line);
            }
        }
        let mut done = self.transactions.remove(at);
        let (holder, held) = done.held;
        let (victim, culprit) = (self.owner(port), self.owner(holder));
        let resource = Resource::Reservation(self.tile);
        // The time since the line came from memory, or since the request began: probes and their answers. A reservation that ended
        // before the line came has delayed nothing.
        let rest = now - done.ask.account.accounted();
        let held = held.min(rest);
        done.ask.account.service += rest - held;
        ledger.wait(&mut done.ask.account, victim, culprit, resource, held);
        match request {
            Request::Reclaim(_) => self.reclaimed.push((port, done.ask.account)),
            Request::Ahead(_) => ledger.complete(victim, CacheRead, &done.ask.account, now),
            _ => {
                let answer = self.answer(line, port, request, done.looked, done.ask.account);
                self.out.push((port, answer));
            }
        }
        self.ended.push(Ended {
            owner: victim,
            slot,
            register: done.brought,
        });
    }

    /// The answer to a request that need not wait any longer.
    fn answer(
        &mut self,
        line: u64,
        port: Port,
        request: Request,
        looked: Looked,
        account: Account,
    ) -> Down {
        if matches!(request, Request::Manage(_)) {
            return Down::Managed { line, account };
        }
        let slot = self.cache.slot_of(line).expect("it is here");
        let holders = &mut self.holders[slot];
        let own = 1u8 << port;
        let exclusive = match request {
            Request::Write => true,
            Request::Read | Request::ReadAhead => holders.all() & !own == 0 && !holders.elsewhere,
            _ => {
                let bytes = inline(self.cache.line(line).expect("it is here"));
                self.fetched.push((port, line, bytes));
                return Down::Instructions {
                    line,
                    looked,
                    account,
                };
            }
        };
        if exclusive {
            assert!(
                holders.all() & !own == 0 && !holders.elsewhere,
                "port {port} gets {line:#x} alone, which {holders:?} have"
            );
            *holders = Holders {
                owner: Some(port),
                ..Holders::default()
            };
        } else {
            holders.sharers |= own;
        }
        Down::Grant {
            line,
            exclusive,
            looked,
            account,
        }
    }
}

#[cfg(test)]
#[path = "directory/waits_tests.rs"]
mod waits_tests;
