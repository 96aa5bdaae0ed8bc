//! A memory controller: requests wait in a queue until a policy chooses their commands.
//!
//! Why it exists: a good part of the interference between tiles depends on whether a neighbour's row, bank, burst or write is in
//! the way, and whether the controller prefers the neighbour. A request is split into segments, each within one row of one bank.
//! Every command is a decision at a moment, and every decision records the waits that it causes. What it deliberately does not
//! know: networks, tiles, and the bytes stored.
//!
//! **Policies** ([`Policy`]). First come, first served: columns are accessed in the order of arrival, rows are opened ahead. First
//! ready: requests whose row is open go first, the oldest before the others, up to a cap for each bank (Rixner and others, ISCA
//! 2000; the cap after Kim and others, RTAS 2014). Slots: round robin over the requesters, with a fixed slot for each burst, after
//! which its row is closed (after Paolieri and others, ECRTS 2009); so the worst wait is a sum of slots.
//!
//! **Writes** with a write queue are acknowledged when the queue takes them; reads of queued data are answered from it. Reads go
//! first until the queue reaches its high mark, or until no read waits and the queue is above its low mark; then the queue is
//! drained to the low mark.
//!
//! **The ledger.** The account of a request follows its oldest burst. Between two commands, that burst waits for the constraint
//! that delays its next command longest: its own commands (service), another owner's command (charged to that owner), or a refresh.
//! From the moment at which only the policy holds it back, it waits for the owner that was chosen. If a row must be closed, both
//! precharge and activation are charged to the owner that opened it.

use super::bandwidth::{Bandwidth, Shares};
use super::banks::{Command, Constraint, Part};
use super::channel::{Channel, Choice, Segment, next_command, refresh};
pub use super::channel::{ControllerConfig, Policy, Turns, WriteQueue};
use super::{BankActivity, DramStatistics};
use crate::config::dram::{BandwidthConfig, InitialShare};
use crate::hart::{QosIds, RemoteOperation};
use crate::ledger::{Ledger, Resource};
use crate::noc::Account;
use crate::types::{Owner, Tick, TileId, align};
use rustc_hash::FxHashMap;
use std::collections::hash_map::Entry;

/// A request.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Request<T> {
    /// The requester's name for the request.
    pub token: T,
    /// First byte.
    pub address: u64,
    /// Bytes; 0 is served like 1.
    pub bytes: u32,
    /// Whether the request writes.
    pub write: bool,
    /// The owner that pays.
    pub owner: Owner,
    /// With slots, the requester whose turn it uses: one name for each tile, or for each hart of a cluster ([`Turns`]).
    pub requester: Owner,
}

/// A request that was served.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Served<T> {
    /// The requester's name for the request.
    pub token: T,
    /// When its last byte was moved, or when the write queue accepted it.
    pub at: Tick,
    /// Its account up to that moment.
    pub account: Account,
}

/// A request that has not been served.
#[derive(Clone, Copy, Debug)]
struct Waiting<T> {
    token: T,
    owner: Owner,
    account: Account,
    /// Segments that have remaining bursts or are not posted yet.
    segments: u32,
    /// The segment that the account follows: the first one with bursts left.
    oldest: u32,
    /// End of the last data so far.
    data: Tick,
    /// The constraint that delays that segment longest, as of the last command.
    blocked: Constraint,
    /// The resource at which it waits for that constraint.
    resource: Resource,
    /// The owner whose row had to be closed for this request.
    conflict: Option<Owner>,
}

/// A memory controller with its channels.
#[derive(Clone, Debug)]
pub struct Controller<T> {
    config: ControllerConfig,
    tile: TileId,
    slot: Tick,
    channels: Vec<Channel>,
    requests: FxHashMap<u64, Waiting<T>>,
    /// How often each burst is in a write queue, by its address.
    posted: FxHashMap<u64, u32>,
    arrived: u64,
    served: Vec<Served<T>>,
    statistics: DramStatistics,
    /// Limits the requesters, if there is one.
    bandwidth: Option<Box<Bandwidth>>,
}

impl<T: Copy + std::fmt::Debug> Controller<T> {
    /// An idle controller of memory tile `tile`.
    ///
    /// # Panics
    /// If [`ControllerConfig::check`] refuses the configuration. So does the description.
    pub fn new(config: ControllerConfig, tile: TileId) -> Self {
        if let Err(wrong) = config.check() {
            panic!("{wrong}: {config:?}");
        }
        let channel = Channel::new(&config);
        Self {
            slot: config.slot(),
            config,
            tile,
            channels: vec![channel; config.map.channels as usize],
            requests: FxHashMap::default(),
            posted: FxHashMap::default(),
            arrived: 0,
            served: Vec::new(),
            statistics: DramStatistics::default(),
            bandwidth: None,
        }
    }

    /// From now on, a bandwidth controller limits the requesters, whose activities are RCIDs. Nothing has arrived.
    ///
    /// # Panics
    /// If the policy has no slots, or refreshes leave none. The configuration is refused then.
    pub fn limit(&mut self, config: &BandwidthConfig, shares: &[InitialShare]) {
        assert!(self.config.policy == Policy::Slots, "shares are slots");
        let bandwidth = Bandwidth::new(config, &self.config, shares);
        let window = Tick::from(config.blocks) * self.slot;
        for channel in &mut self.channels {
            let shares = Shares::new(window, bandwidth.limits());
            channel.shares = Some(Box::new(shares));
        }
        self.bandwidth = Some(Box::new(bandwidth));
    }

    /// A request passes the bandwidth controller, if there is one.
    pub fn passes(&mut self, ids: QosIds, bytes: u32, write: bool) {
        if let Some(bandwidth) = &mut self.bandwidth {
            bandwidth.count(ids, bytes, write);
        }
    }

    /// A hart accesses a register of the bandwidth controller at `now`. Returns what a load reads, and 0 for a store.
    ///
    /// # Panics
    /// If there is no such controller.
    pub fn register(&mut self, now: Tick, at: (u64, u8), operation: RemoteOperation) -> u64 {
        let bandwidth = self.bandwidth.as_mut();
        let bandwidth = bandwidth.expect("only memories with such a controller have its page");
        let (value, changed) = bandwidth.access(at, operation);
        if let Some(rcid) = changed {
            let limit = bandwidth.limits()[usize::from(rcid)];
            for index in 0..self.channels.len() {
                let channel = &mut self.channels[index];
                if let Some(shares) = &mut channel.shares {
                    shares.set(rcid, limit);
                }
                // The request that was to be next may no longer have a slot.
                if channel.next.is_some() {
                    channel.floor = channel.floor.max(align(now, self.config.timing.cycle));
                    self.look(index, now);
                }
            }
        }
        value
    }

    /// Statistics so far.
    pub fn statistics(&self) -> DramStatistics {
        let refreshes = self.channels.iter().map(|c| c.banks.refreshes()).sum();
        DramStatistics {
            refreshes,
            ..self.statistics
        }
    }

    /// When the next decision is due; [`Tick::MAX`] if nothing waits for one.
    pub fn next_time(&self) -> Tick {
        let times = self.channels.iter().filter_map(|c| c.next);
        times.map(|next| next.0).min().unwrap_or(Tick::MAX)
    }

    /// The requests served since the last call, in the order of the decisions.
    pub fn take_served(&mut self) -> std::vec::Drain<'_, Served<T>> {
        self.served.drain(..)
    }

    /// Takes a request that arrives at `now`, with its account up to then.
    pub fn push(&mut self, now: Tick, request: Request<T>, mut account: Account) {
        let Request {
            token,
            address,
            bytes,
            write,
            owner,
            requester,
        } = request;
        let cycle = self.config.timing.cycle;
        let ready = align(now, cycle) + self.config.frontend;
        account.service += ready - now;
        if write {
            self.statistics.writes += 1;
            self.statistics.written_bytes += u64::from(bytes);
        } else {
            self.statistics.reads += 1;
            self.statistics.read_bytes += u64::from(bytes);
        }
        let burst = self.config.burst_bytes;
        let first = address / burst * burst;
        let last = (address + u64::from(bytes.max(1)) - 1) / burst * burst;
        if !write && self.is_posted(first, last) {
            let at = ready;
            return self.served.push(Served { token, at, account });
        }
        self.arrived += 1;
        let number = self.arrived;
        let late = write && self.config.write_queue.is_some();
        let mut segments: Vec<(u32, Segment)> = Vec::new();
        for address in (first..=last).step_by(burst as usize) {
            let place = self.config.map.place(address);
            if let Some((channel, segment)) = segments.last_mut()
                && (*channel, segment.bank, segment.row) == (place.channel, place.bank, place.row)
            {
                segment.bursts += 1;
                continue;
            }
            let segment = Segment {
                request: number,
                index: segments.len() as u32,
                bank: place.bank,
                row: place.row,
                address,
                bursts: 1,
                ready,
                owner,
                requester,
                write,
                posted: false,
                began: None,
            };
            segments.push((place.channel, segment));
        }
        let waiting = Waiting {
            token,
            owner,
            account,
            segments: segments.len() as u32,
            oldest: 0,
            data: ready,
            blocked: Constraint::FREE,
            resource: Resource::DramQueue(self.tile),
            conflict: None,
        };
        self.requests.insert(number, waiting);
        for &(index, segment) in &segments {
            let channel = &mut self.channels[index as usize];
            let before = if late {
                &channel.writes
            } else {
                &channel.queue
            };
            assert!(
                before.last().is_none_or(|last| last.ready <= ready),
                "{segment:?} comes before one that arrived before it: {before:?}"
            );
            if channel.next.is_none() {
                // No decision was made meanwhile, so all due refreshes have happened.
                while channel.banks.refresh_due() <= ready {
                    let at = channel.banks.refresh_at().until;
                    refresh(channel, &self.config, at);
                }
            }
            if late {
                channel.writes.push(segment);
            } else {
                channel.queue.push(segment);
            }
        }
        segments.dedup_by_key(|s| s.0);
        for (index, _) in segments {
            self.post(index as usize, ready);
            // Earlier requests need not wait until the new one is ready.
            self.arrive(index as usize, number, late, ready - self.config.frontend);
        }
    }

    /// Whether each burst of `first..=last` is in a write queue.
    fn is_posted(&self, first: u64, last: u64) -> bool {
        let mut bursts = (first..=last).step_by(self.config.burst_bytes as usize);
        !self.posted.is_empty() && bursts.all(|address| self.posted.contains_key(&address))
    }

    /// Posts the writes that fit, no earlier than `now`.
    fn post(&mut self, index: usize, now: Tick) {
        let Some(limits) = self.config.write_queue else {
            return;
        };
        let channel = &mut self.channels[index];
        let mut partly = Vec::new();
        let first = channel.first_unposted();
        for segment in &mut channel.writes[first..] {
            // A write larger than the whole queue gets the queue to itself.
            if channel.posted > 0 && channel.posted + segment.bursts > limits.size {
                break;
            }
            channel.posted += segment.bursts;
            segment.posted = true;
            for burst in 0..u64::from(segment.bursts) {
                let address = segment.address + burst * self.config.burst_bytes;
                *self.posted.entry(address).or_default() += 1;
            }
            let number = segment.request;
            let waiting = waiting(&mut self.requests, segment);
            waiting.segments -= 1;
            waiting.data = waiting.data.max(now);
            if waiting.segments > 0 {
                partly.push(number);
            } else {
                let mut done = *waiting;
                self.requests.remove(&number);
                partly.retain(|&n| n != number);
                // If there was no room for it, its waits up to now have been recorded.
                done.account.service += done.data - done.account.accounted();
                self.served.push(Served {
                    token: done.token,
                    at: done.data,
                    account: done.account,
                });
            }
        }
        for number in partly {
            self.follow(number);
        }
    }

    /// Chooses a channel's next decision, no earlier than `now`.
    fn look(&mut self, index: usize, now: Tick) {
        let channel = &mut self.channels[index];
        if let Some(limits) = self.config.write_queue {
            channel.turn(limits, now);
        }
        channel.next = channel.choose(&self.config);
        self.block(index, 0);
    }

    /// Chooses a channel's next decision after request `number` arrived at `now`: a write for the write queue, if it is `late`. What may not
    /// be served now changes no choice, and no constraint of those that wait.
    fn arrive(&mut self, index: usize, number: u64, late: bool, now: Tick) {
        let channel = &mut self.channels[index];
        let turns = match self.config.write_queue {
            Some(limits) => channel.turn(limits, now),
            None => false,
        };
        if turns || late == channel.draining {
            channel.next = channel.choose(&self.config);
        }
        #[cfg(test)]
        {
            let again = channel.choose(&self.config);
            assert_eq!(channel.next, again, "{channel:?}");
        }
        let old = channel.queue.partition_point(|s| s.request < number);
        // With several channels, the account of an older request may have moved on to this one.
        let all = turns || self.channels.len() > 1;
        self.block(index, if all { 0 } else { old });
        #[cfg(test)]
        {
            let noted = self.blocked(index);
            self.block(index, 0);
            assert_eq!(noted, self.blocked(index));
        }
    }

    /// What delays each request waiting at a channel.
    #[cfg(test)]
    fn blocked(&self, index: usize) -> Vec<String> {
        let channel = &self.channels[index];
        let all = channel.queue.iter().chain(channel.unposted());
        let of = |segment: &Segment| {
            let one = &self.requests[&segment.request];
            format!("{}: {:?} {:?}", segment.request, one.blocked, one.resource)
        };
        all.map(of).collect()
    }

    /// Notes, for each request waiting at a channel from a place in its queue on, the constraint that delays it longest.
    fn block(&mut self, index: usize, from: usize) {
        let channel = &self.channels[index];
        let visible = channel.active(&self.config).len();
        let slots = self.config.policy == Policy::Slots;
        for (k, segment) in channel.queue.iter().enumerate().skip(from) {
            let waiting = waiting(&mut self.requests, segment);
            if waiting.oldest != segment.index {
                continue;
            }
            let outside = !channel.draining && k >= visible;
            let command = next_command(&channel.banks, segment, false);
            waiting.blocked = match (slots, outside) {
                (true, _) => channel.hold,
                (_, true) => Constraint::FREE,
                _ => channel.banks.constraint(command),
            };
            waiting.resource = match (command, waiting.blocked.part) {
                (Command::Precharge { bank: _ }, Part::Bank(_)) => Resource::DramRow(self.tile),
                (_, part) => resource(part, self.tile),
            };
        }
        for segment in channel.unposted() {
            waiting(&mut self.requests, segment).blocked = Constraint::FREE;
        }
    }

    /// Records the waits of all requests at a channel up to `at`, and whom the policy chose.
    fn settle(&mut self, index: usize, at: Tick, chosen: Chosen, ledger: &mut Ledger) {
        let channel = &self.channels[index];
        for segment in channel.queue.iter().chain(channel.unposted()) {
            let w = waiting(&mut self.requests, segment);
            if w.oldest != segment.index {
                continue;
            }
            if let Some(shares) = &channel.shares {
                // Until then it has used up its share.
                let from = w.account.accounted();
                let free = shares.may(segment.requester.activity, from).min(at);
                let (own, limit) = (w.owner, Resource::Bandwidth(self.tile));
                // A request that is still in the front end waits for nothing.
                let waited = free.max(from) - from;
                ledger.wait(&mut w.account, own, own, limit, waited);
            }
            let from = w.account.accounted();
            let held = w.blocked.until.min(at);
            let before = channel.banks.before_refresh();
            let from = match before.cause {
                Some(cause) if w.blocked.part == Part::Refresh && cause.owner != w.owner => {
                    let until = before.until.min(held).max(from);
                    let holder = resource(before.part, self.tile);
                    ledger.wait(&mut w.account, w.owner, cause.owner, holder, until - from);
                    until
                }
                _ => from,
            };
            if held > from {
                let ticks = held - from;
                let (culprit, resource) = match (w.blocked.cause, w.conflict) {
                    (Some(cause), Some(opener)) if cause.request == segment.request => {
                        (opener, Resource::DramRow(self.tile))
                    }
                    (Some(cause), None) if cause.request == segment.request => {
                        w.account.service += ticks;
                        continue_after(w, held, at, chosen, self.tile, ledger);
                        continue;
                    }
                    (Some(cause), _) => (cause.owner, w.resource),
                    (None, _) => (w.owner, Resource::Refresh(self.tile)),
                };
                ledger.wait(&mut w.account, w.owner, culprit, resource, ticks);
            }
            continue_after(w, held, at, chosen, self.tile, ledger);
        }
    }

    /// Makes the next decision.
    ///
    /// # Panics
    /// If no decision is due.
    pub fn step(&mut self, ledger: &mut Ledger, observe: Option<&mut dyn FnMut(BankActivity)>) {
        let next = |(index, c): (usize, &Channel)| c.next.map(|(at, choice)| (at, index, choice));
        let decisions = self.channels.iter().enumerate().filter_map(next);
        let (at, index, choice) = decisions
            .min_by_key(|&(at, index, _)| (at, index))
            .unwrap_or_else(|| panic!("no decision is left: {:?}", self.tile));
        let cycle = self.config.timing.cycle;
        match choice {
            Choice::Refresh => {
                let before = self.channels[index].banks.refresh_at();
                let part = resource(before.part, self.tile);
                let chosen = Chosen::Refresh(before.cause.map(|cause| (cause.owner, part)));
                self.settle(index, at, chosen, ledger);
                refresh(&mut self.channels[index], &self.config, at);
            }
            Choice::Slot { segment } => {
                let chosen = self.channels[index].queue[segment];
                self.settle(index, at, Chosen::Access(chosen.owner), ledger);
                let channel = &mut self.channels[index];
                channel.floor = at + self.slot;
                channel.hold = Constraint {
                    until: channel.floor,
                    cause: Some(chosen.cause()),
                    part: Part::Commands,
                };
                let requester = chosen.requester;
                channel.served.retain(|&r| r != requester);
                channel.served.push(requester);
                if let Some(shares) = &mut channel.shares {
                    shares.serve(requester.activity, at);
                }
                let (bank, row, write) = (chosen.bank, chosen.row, chosen.write);
                let open = Command::Activate { bank, row };
                channel.banks.issue(at, open, chosen.cause());
                channel.queue[segment].began = Some((at, false));
                let close = true;
                let access = Command::Column { bank, write, close };
                let column = at + self.config.timing.activate;
                self.column(index, segment, column, (access, false), observe);
            }
            Choice::Command {
                segment,
                command,
                passes,
            } => {
                let chosen = self.channels[index].active(&self.config)[segment];
                self.settle(index, at, Chosen::Access(chosen.owner), ledger);
                let channel = &mut self.channels[index];
                channel.floor = at + cycle;
                match command {
                    Command::Column { .. } => {
                        self.column(index, segment, at, (command, passes), observe);
                    }
                    Command::Activate { .. } => {
                        channel.banks.issue(at, command, chosen.cause());
                        channel.active_mut()[segment]
                            .began
                            .get_or_insert((at, false));
                    }
                    Command::Precharge { bank } => {
                        let open = channel.banks.open(bank);
                        channel.banks.issue(at, command, chosen.cause());
                        let segment = &mut channel.active_mut()[segment];
                        let began = segment.began.map_or(at, |(began, _)| began);
                        segment.began = Some((began, true));
                        if !segment.posted {
                            let w = waiting(&mut self.requests, segment);
                            if w.oldest == segment.index {
                                w.conflict = open.map(|open| open.by);
                            }
                        }
                    }
                }
            }
        }
        self.post(index, at);
        self.look(index, at);
    }

    /// Moves one burst of a segment. Returns the command, and whether it passes the oldest segment.
    fn column(
        &mut self,
        index: usize,
        at_segment: usize,
        at: Tick,
        (command, passes): (Command, bool),
        observe: Option<&mut dyn FnMut(BankActivity)>,
    ) {
        let burst = self.config.timing.burst;
        let channel = &mut self.channels[index];
        let banks = channel.banks.count();
        let cause = channel.active_mut()[at_segment].cause();
        let Some(end) = channel.banks.issue(at, command, cause) else {
            panic!("{command:?} moves no data");
        };
        let segment = &mut channel.active_mut()[at_segment];
        match segment.began {
            None => self.statistics.row_hits += 1,
            Some((_, false)) => self.statistics.row_misses += 1,
            Some((_, true)) => self.statistics.row_conflicts += 1,
        }
        self.statistics.bus_busy += burst;
        let start = segment.began.take().map_or(at, |(began, _)| began);
        if segment.posted
            && let Entry::Occupied(mut times) = self.posted.entry(segment.address)
        {
            *times.get_mut() -= 1;
            if *times.get() == 0 {
                times.remove();
            }
        }
        segment.address += self.config.burst_bytes;
        segment.bursts -= 1;
        let segment = *segment;
        if let Some(observe) = observe {
            observe(BankActivity {
                bank: (index as u32 * banks + segment.bank) as u16,
                owner: segment.owner,
                start,
                end,
            });
        }
        channel.count(at_segment, passes);
        if segment.bursts == 0 {
            channel.leave(at_segment);
        }
        if segment.posted {
            channel.posted -= 1;
            return;
        }
        let w = waiting(&mut self.requests, &segment);
        w.data = w.data.max(end);
        if w.oldest == segment.index {
            let until = at + burst;
            let Some(service) = until.checked_sub(w.account.accounted()) else {
                panic!("booked beyond {until}: {w:?}");
            };
            w.account.service += service;
            w.conflict = None;
        }
        if segment.bursts > 0 {
            return;
        }
        w.segments -= 1;
        if w.segments > 0 {
            return self.follow(segment.request);
        }
        let mut done = *w;
        self.requests.remove(&segment.request);
        done.account.service += done.data - done.account.accounted();
        self.served.push(Served {
            token: done.token,
            at: done.data,
            account: done.account,
        });
    }

    /// The account of a request follows its first segment with bursts left.
    fn follow(&mut self, number: u64) {
        let left = self.channels.iter().flat_map(|c| {
            let unposted = c.unposted();
            c.queue.iter().chain(unposted)
        });
        let oldest = left.filter(|s| s.request == number).map(|s| s.index).min();
        let (Some(oldest), Some(w)) = (oldest, self.requests.get_mut(&number)) else {
            panic!("request {number} has no segment left");
        };
        w.oldest = oldest;
    }
}

/// The request that a segment belongs to.
fn waiting<'a, T: std::fmt::Debug>(
    requests: &'a mut FxHashMap<u64, Waiting<T>>,
    segment: &Segment,
) -> &'a mut Waiting<T> {
    match requests.get_mut(&segment.request) {
        Some(waiting) => waiting,
        None => panic!("{segment:?} of no request"),
    }
}

/// What the policy chose.
#[derive(Clone, Copy, Debug)]
enum Chosen {
    /// An access of this owner.
    Access(Owner),
    /// A refresh, which had to wait for this owner at this resource.
    Refresh(Option<(Owner, Resource)>),
}

/// A part of the memory as a resource.
fn resource(part: Part, tile: TileId) -> Resource {
    match part {
        Part::Bank(bank) => Resource::DramBank {
            memory: tile,
            bank: bank as u16,
        },
        Part::Bus => Resource::DramBus(tile),
        Part::Activates => Resource::DramActivates(tile),
        Part::Commands => Resource::DramQueue(tile),
        Part::Refresh => Resource::Refresh(tile),
    }
}

/// From `held` on, only the policy kept a request waiting: for the owner that was chosen at `at`, or for the refresh, which waited for another
/// owner.
fn continue_after<T>(
    w: &mut Waiting<T>,
    held: Tick,
    at: Tick,
    chosen: Chosen,
    tile: TileId,
    ledger: &mut Ledger,
) {
    let from = held.max(w.account.accounted());
    if at > from {
        let (culprit, resource) = match chosen {
            Chosen::Access(owner) => (owner, Resource::DramQueue(tile)),
            Chosen::Refresh(Some(other)) if other.0 != w.owner => other,
            Chosen::Refresh(_) => (w.owner, Resource::Refresh(tile)),
        };
        ledger.wait(&mut w.account, w.owner, culprit, resource, at - from);
    }
}

#[cfg(test)]
#[path = "controller_tests.rs"]
pub(super) mod tests;
