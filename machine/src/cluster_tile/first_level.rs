//! The first level of one hart: a data cache whose lines are invalid, shared, exclusive or modified, and an instruction cache.
//!
//! Why it exists: it answers whether the hart may use a line at once, and otherwise asks for it; and it gives up lines when others want
//! them. It is a pure state machine: after each call, its messages are in `out`. Bytes move to and from the line's place in the second
//! level ([`super::messages`] says why they can). What it deliberately does not know: times, other harts, what the hart does with a line.
//!
//! A line is in state M if the cache says that it is dirty; E if it is not, and `exclusive` says that no other first level has it;
//! otherwise S. For each line at most one request is under way. While one is, no access to the line hits, so the accesses of a
//! hart to one line are performed together, in program order, when it arrives. If a store comes while the line is on its way for
//! reading, the line is asked for again for writing before any access is performed.

mod ahead;

use self::ahead::Ahead;
use super::Directory;
#[cfg(test)]
use super::messages::Coverage;
use super::messages::{Ask, Port, Reply, Request};
use crate::cache::{Cache, CacheStatistics, HeldLine};
use crate::config::CacheConfig;
use crate::hart::{Management, QosIds};
use crate::noc::Account;
use crate::types::{Owner, Tick};

/// The answer to an access.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Found {
    /// The line is here with the right that the access needs.
    Hit,
    /// It is on its way; the token says for which access.
    Pending(u32),
}

/// An access that did not hit.
#[derive(Clone, Debug)]
struct Miss {
    line: u64,
    /// The kind of the access.
    kind: Kind,
    token: u32,
    since: Tick,
    /// The identifiers of the access that missed.
    ids: QosIds,
    /// The request that was sent; `None`: none yet.
    asked: Option<Request>,
    /// The owner without which the access would have hit, as far as the cache remembers.
    culprit: Option<Owner>,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Kind {
    Data {
        write: bool,
    },
    Fetch,
    Manage(Management),
    /// The prefetcher wants the line, and no access does yet.
    Ahead,
}

impl Kind {
    fn request(self) -> Request {
        match self {
            Kind::Data { write: false } => Request::Read,
            Kind::Data { write: true } => Request::Write,
            Kind::Fetch => Request::Fetch,
            Kind::Manage(what) => Request::Manage(what),
            Kind::Ahead => Request::ReadAhead,
        }
    }
}

/// Messages that a first level wants to send.
#[derive(Clone, Debug, Default)]
pub struct Outgoing {
    /// Requests, in order.
    pub asks: Vec<Ask>,
    /// Replies, in order. They leave before the requests.
    pub replies: Vec<Reply>,
}

/// See the module's documentation.
#[derive(Clone, Debug)]
pub struct FirstLevel {
    port: Port,
    owner: Owner,
    data: Cache,
    instructions: Cache,
    /// For each place of the data cache: no other first level has the line.
    exclusive: Vec<bool>,
    /// For each place of the data cache: the owner that made an exclusive line shared.
    shared_by: Vec<Option<Owner>>,
    misses: Vec<Miss>,
    /// Maximum number of data misses under way at once; the others wait here.
    limit: usize,
    length: usize,
    /// Logarithm of `length`.
    shift: u32,
    token: u32,
    /// The identifiers of the hart's accesses from now on.
    pub ids: QosIds,
    /// Modified lines that were evicted or taken by others.
    gone: u64,
    /// Its prefetcher, if it has one.
    ahead: Option<Box<Ahead>>,
    /// The instruction that makes the next accesses.
    pc: u64,
    /// Messages to be sent; the caller takes them.
    pub out: Outgoing,
    /// Transitions that have happened.
    #[cfg(test)]
    pub coverage: Coverage,
}

impl FirstLevel {
    /// Empty caches. Both have lines of one length.
    pub fn new(port: Port, owner: Owner, instructions: &CacheConfig, data: &CacheConfig) -> Self {
        let cache = |config: &CacheConfig, seed: u64| {
            let mut cache = Cache::new(config, seed);
            cache.set_owner(owner);
            cache
        };
        let seed = 2 * u64::from(port);
        let (instructions, lines) = (cache(instructions, seed), cache(data, seed + 1));
        Self {
            port,
            owner,
            exclusive: vec![false; lines.slots()],
            shared_by: vec![None; lines.slots()],
            data: lines,
            instructions,
            misses: Vec::new(),
            limit: data.mshrs as usize,
            length: data.line as usize,
            shift: data.line.trailing_zeros(),
            token: 0,
            ids: QosIds::default(),
            gone: 0,
            ahead: Ahead::of(data),
            pc: 0,
            out: Outgoing::default(),
            #[cfg(test)]
            coverage: Coverage::default(),
        }
    }

    /// Counts of the instruction cache and of the data cache.
    pub fn statistics(&self) -> [CacheStatistics; 2] {
        [&self.instructions, &self.data].map(|cache| {
            let all = cache.statistics();
            all.first().map(|(_, counts)| *counts).unwrap_or_default()
        })
    }

    /// Lines that came into the instruction cache and into the data cache, and modified lines that left the latter.
    pub fn traffic(&self) -> (u64, u64, u64) {
        (self.instructions.fills(), self.data.fills(), self.gone)
    }

    /// State of a line, for tests and messages of panics.
    pub fn state(&self, line: u64) -> &'static str {
        match self.data.slot_of(line) {
            None => "I",
            Some(_) if self.data.is_dirty(line) => "M",
            Some(slot) if self.exclusive[slot] => "E",
            Some(_) => "S",
        }
    }

    /// State of a line with what is under way for it.
    #[cfg(test)]
    fn whole_state(&self, line: u64) -> &'static str {
        let miss = self.data_miss(line).map(|at| &self.misses[at]);
        match (self.state(line), miss.map(|m| (m.asked, m.kind))) {
            (state, None) => state,
            ("I", Some((Some(Request::ReadAhead), kind))) => ahead::state(kind),
            ("I", Some((Some(Request::Read), Kind::Data { write: false }))) => "I, asked to read",
            ("I", Some((Some(Request::Read), _))) => "I, asked to read, wants to write",
            ("I", Some((Some(_), _))) => "I, asked to write",
            ("I", Some((None, _))) => "I, waits to ask",
            ("S", Some((Some(Request::Read), Kind::Data { write: false }))) => "S, asked to read",
            ("S", Some((Some(Request::Read), _))) => "S, asked to read, wants to write",
            ("S", Some((Some(_), _))) => "S, asked to write",
            ("S", Some((None, _))) => "S, waits to ask",
            ("E", Some((None, _))) => "E, waits to ask",
            ("M", Some((None, _))) => "M, waits to ask",
            (state, Some(miss)) => panic!("{line:#x} is {state} with {miss:?}"),
        }
    }

    #[cfg(test)]
    fn note(&mut self, line: u64, event: &'static str) {
        let state = self.whole_state(line);
        self.coverage.note(state, event);
    }

    fn data_miss(&self, line: u64) -> Option<usize> {
        let wanted = |m: &Miss| m.line == line && matches!(m.kind, Kind::Data { .. } | Kind::Ahead);
        self.misses.iter().position(wanted)
    }

    /// Whether a request for this line is under way or waits, except for fetches.
    fn is_busy(&self, line: u64) -> bool {
        let busy = |m: &Miss| m.line == line && m.kind != Kind::Fetch;
        self.misses.iter().any(busy)
    }

    /// The number of an access that is answered later.
    pub fn token(&mut self) -> u32 {
        self.token = self.token.wrapping_add(1);
        self.token
    }

    /// The owner without which the access that waits for this line would have hit: it has taken the line since the hart had it, or its place
    /// in the second level, or it has made the line shared.
    pub fn culprit(&self, line: u64) -> Option<Owner> {
        self.misses[self.data_miss(line)?].culprit
    }

    /// The same of an access that has just missed.
    fn culprit_of_miss(&mut self, line: u64) -> Option<Owner> {
        match self.data.slot_of(line) {
            Some(slot) => self.shared_by[slot].filter(|by| *by != self.owner),
            None => self.data.culprit(line, self.owner),
        }
    }

    fn begin(&mut self, now: Tick, line: u64, kind: Kind) -> u32 {
        let culprit = match kind {
            Kind::Data { .. } => self.culprit_of_miss(line),
            Kind::Fetch | Kind::Manage(_) | Kind::Ahead => None,
        };
        let token = self.token();
        self.misses.push(Miss {
            line,
            kind,
            token,
            since: now,
            ids: self.ids,
            asked: None,
            culprit,
        });
        self.ask(now);
        token
    }

    /// Asks for what can be asked for: one request for each line, and as many as there are miss registers.
    fn ask(&mut self, now: Tick) {
        for at in 0..self.misses.len() {
            let miss = &self.misses[at];
            if miss.asked.is_some() {
                continue;
            }
            let data = |m: &&Miss| m.asked.is_some() && m.kind != Kind::Fetch;
            if miss.kind != Kind::Fetch {
                if self.misses.iter().filter(data).count() >= self.limit {
                    continue;
                }
                let line = miss.line;
                let before = self.misses[..at].iter();
                if before
                    .filter(|m| m.kind != Kind::Fetch)
                    .any(|m| m.line == line)
                {
                    continue;
                }
            }
            let miss = &mut self.misses[at];
            let request = miss.kind.request();
            miss.asked = Some(request);
            let mut account = Account::new(miss.since);
            // It waited for a register of its own hart: service of this hart, not interference.
            account.service = now - miss.since;
            self.out.asks.push(Ask {
                port: self.port,
                line: miss.line,
                request,
                ids: miss.ids,
                account,
            });
        }
    }

    /// An access of the hart to the data line that contains `address`.
    #[inline]
    pub fn data(&mut self, now: Tick, address: u64, write: bool) -> Found {
        let line = self.data.line_of(address);
        if !self.misses.is_empty() && self.is_busy(line) {
            return self.join(now, address, write);
        }
        #[cfg(test)]
        self.note(line, if write { "store" } else { "load" });
        if self.data.access(address, false)
            && (!write || self.exclusive[self.data.recent_place(line) >> self.shift])
        {
            if self.ahead.is_some() {
                self.used(now, address);
            }
            return Found::Hit;
        }
        let token = self.begin(now, line, Kind::Data { write });
        if self.ahead.is_some() {
            self.missed(now, address);
        }
        Found::Pending(token)
    }

    /// Whether the hart may use lines in turn without asking. If not, its accesses train a prefetcher.
    #[inline]
    pub fn lines_in_turn(&self) -> bool {
        self.ahead.is_none()
    }

    /// The hart has used the line at `place` again, for which nothing is under way ([`Cache::again`]).
    pub fn again(&mut self, place: usize, times: u64) {
        self.data.again(place, times);
    }

    /// An access to a line for which something is under way.
    #[cold]
    fn join(&mut self, now: Tick, address: u64, write: bool) -> Found {
        let line = self.data.line_of(address);
        #[cfg(test)]
        self.note(line, if write { "store" } else { "load" });
        let Some(at) = self.data_miss(line) else {
            return Found::Pending(self.begin(now, line, Kind::Data { write }));
        };
        let miss = &mut self.misses[at];
        let (token, ahead) = (miss.token, miss.kind == Kind::Ahead);
        if write || ahead {
            miss.kind = Kind::Data { write };
        }
        if ahead {
            // Counts the miss.
            self.data.access(address, false);
            self.foresee(now, address);
        }
        Found::Pending(token)
    }

    /// A fetch of the instruction line that contains `address`.
    pub fn fetch(&mut self, now: Tick, address: u64) -> Found {
        let line = self.data.line_of(address);
        let under_way = |m: &&Miss| m.line == line && m.kind == Kind::Fetch;
        if let Some(miss) = self.misses.iter().find(under_way) {
            return Found::Pending(miss.token);
        }
        match self.instructions.access(address, false) {
            true => Found::Hit,
            false => Found::Pending(self.begin(now, line, Kind::Fetch)),
        }
    }

    /// A cache-management operation. Returns its token; or, if a request for the line is under way, that request's.
    ///
    /// # Errors
    /// The operation must wait for this token, and nothing is done.
    pub fn manage(&mut self, now: Tick, line: u64, what: Management) -> Result<u32, u32> {
        let busy = |m: &&mut Miss| m.line == line && m.kind != Kind::Fetch;
        if let Some(miss) = self.misses.iter_mut().find(busy) {
            if miss.kind == Kind::Ahead {
                // From now on, the hart waits for the line.
                miss.kind = Kind::Data { write: false };
            }
            return Err(miss.token);
        }
        Ok(self.begin(now, line, Kind::Manage(what)))
    }

    /// A line arrives. Returns the token of the accesses that use it now ([`FirstLevel::hold`]); `None` if it is asked for again, or if no
    /// access has wanted it yet.
    pub fn grant(
        &mut self,
        now: Tick,
        line: u64,
        exclusive: bool,
        second: &mut Directory,
    ) -> Option<u32> {
        #[cfg(test)]
        self.note(
            line,
            if exclusive {
                "grant exclusive"
            } else {
                "grant shared"
            },
        );
        let at = self.data_miss(line);
        let at = at.unwrap_or_else(|| panic!("nobody asked for {line:#x}"));
        let bytes = second.granted(line);
        let slot = match self.data.slot_of(line) {
            Some(slot) => {
                debug_assert_eq!(
                    self.data.line(line),
                    Some(bytes),
                    "{line:#x} has other bytes"
                );
                slot
            }
            None => {
                let evicted = self.data.fill_absent(line, false, self.owner, bytes);
                if let Some(evicted) = evicted {
                    #[cfg(test)]
                    self.note_eviction(evicted);
                    if evicted.dirty {
                        let line = evicted.address;
                        self.gone += 1;
                        second.leaves(self.port, line, self.data.evicted());
                        self.out.replies.push(Reply::Put { line });
                    }
                }
                self.data.recent_place(line) >> self.shift
            }
        };
        self.exclusive[slot] = exclusive;
        self.shared_by[slot] = None;
        if self.misses[at].asked == Some(Request::ReadAhead) && self.came_ahead(at) {
            self.ask(now);
            return None;
        }
        let miss = &mut self.misses[at];
        if miss.kind == (Kind::Data { write: true }) && !exclusive {
            miss.asked = None;
            miss.culprit = None;
            miss.since = now;
            self.ask(now);
            return None;
        }
        let token = self.misses.remove(at).token;
        self.ask(now);
        Some(token)
    }

    #[cfg(test)]
    fn note_eviction(&mut self, evicted: crate::cache::Evicted) {
        let state = if evicted.dirty { "M" } else { "E or S" };
        self.coverage.note(state, "eviction");
    }

    /// Instructions arrive. Returns the token of the fetch.
    pub fn instructions(&mut self, now: Tick, line: u64, second: &mut Directory) -> u32 {
        let bytes = second.take_fetched(self.port, line);
        let bytes = &bytes[..self.length];
        self.instructions.fill(line, false, self.owner, bytes);
        self.end(now, line, |kind| kind == Kind::Fetch)
    }

    /// A cache-management operation is done. Returns its token.
    pub fn managed(&mut self, now: Tick, line: u64) -> u32 {
        self.end(now, line, |kind| matches!(kind, Kind::Manage(_)))
    }

    fn end(&mut self, now: Tick, line: u64, wanted: impl Fn(Kind) -> bool) -> u32 {
        let at = self
            .misses
            .iter()
            .position(|m| m.line == line && wanted(m.kind));
        let at = at.unwrap_or_else(|| panic!("nobody asked for {line:#x}"));
        let token = self.misses.remove(at).token;
        self.ask(now);
        token
    }

    /// Another port, or the second level itself, wants the line.
    pub fn probe(&mut self, line: u64, keep: bool, by: Owner, second: &mut Directory) -> Reply {
        #[cfg(test)]
        self.note(
            line,
            if keep {
                "probe for reading"
            } else {
                "probe for writing"
            },
        );
        let Some(slot) = self.data.slot_of(line) else {
            return Reply::Answer {
                line,
                dirty: false,
                kept: false,
                held: 0,
            };
        };
        let bytes = self.data.dirty_line(line);
        let dirty = bytes.is_some();
        if let Some(bytes) = bytes {
            self.gone += 1;
            second.leaves(self.port, line, bytes);
        }
        if std::mem::take(&mut self.exclusive[slot]) {
            self.shared_by[slot] = Some(by);
        }
        if !keep {
            self.data.give_up(line, by);
        } else if dirty {
            self.data.mark_clean(line);
        }
        Reply::Answer {
            line,
            dirty,
            kept: keep,
            held: 0,
        }
    }

    /// Lets the hart use a line that has arrived.
    ///
    /// # Panics
    /// If the hart writes a line that it does not have exclusively.
    pub fn hold(&mut self, line: u64, using: impl FnOnce(&mut HeldLine<'_>)) {
        self.data.hold(line, using);
        let slot = self.data.slot_of(line);
        assert!(
            !self.data.is_dirty(line) || slot.is_some_and(|slot| self.exclusive[slot]),
            "port {} has written {line:#x}, which others may have",
            self.port
        );
    }

    /// Whether the hart has a reservation for the line.
    pub fn is_reserved(&self, line: u64) -> bool {
        self.data.is_reserved(line)
    }

    /// First address of the line that contains `address`.
    #[inline]
    pub fn line_of(&self, address: u64) -> u64 {
        self.data.line_of(address)
    }

    /// The data cache, for the hart's accesses to lines that hit.
    #[inline]
    pub fn cache(&self) -> &Cache {
        &self.data
    }

    /// The same, to write.
    #[inline]
    pub fn cache_mut(&mut self) -> &mut Cache {
        &mut self.data
    }

    /// The hart has written a line that is at `place`.
    #[inline]
    pub fn wrote(&mut self, address: u64, place: usize) {
        assert!(
            self.exclusive[place >> self.shift],
            "port {} writes {address:#x}, which others may have",
            self.port
        );
        self.data.wrote(place, 0);
    }

    /// The bytes of an instruction line, if it is here.
    pub fn instruction_line(&self, line: u64) -> Option<&[u8]> {
        self.instructions.line(line)
    }

    /// Takes every line out of the instruction cache.
    pub fn empty_instruction_cache(&mut self) {
        self.instructions.invalidate_all();
    }

    /// The bytes of a modified line, for a look from outside.
    pub fn modified(&self, line: u64) -> Option<&[u8]> {
        self.data.dirty_line(line)
    }

    /// Writes bytes into the copies of a line, for tools that load memory.
    pub fn poke(&mut self, line: u64, offset: usize, bytes: &[u8]) {
        for cache in [&mut self.data, &mut self.instructions] {
            if let Some(there) = cache.line_mut(line) {
                there[offset..offset + bytes.len()].copy_from_slice(bytes);
            }
        }
    }
}
