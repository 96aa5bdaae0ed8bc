//! The requests waiting at one memory channel, and the command that a policy chooses next.
//!
//! Why it exists: policies differ only in this choice. A channel examines the waiting requests and its banks, and names the earliest
//! command that its policy allows. What it deliberately does not know: requests as a whole, accounts, the ledger.
//!
//! **No request starves.** At most `cap` bursts pass the oldest segment. A burst of another segment counts if it goes to the oldest
//! segment's bank, or if only the data bus holds the oldest segment back. So hits cannot keep its row closed, and accesses in the current
//! direction cannot keep the bus from turning around. With a write queue, a drain ends after as many bursts as the queue holds if reads
//! wait. After each drain, reads go first for as many bursts as the drain moved, at most a full queue, even while writes wait for room.
//! Only bursts of the oldest read count: a drain may have closed its row, and other reads served while the row is reopened must not use up
//! its turn.

use super::bandwidth::Shares;
use super::banks::{Banks, Cause, Command, Constraint, Part};
pub use crate::config::dram::{ControllerConfig, Policy, Turns, WriteQueue};
use crate::types::{Owner, Tick};

impl ControllerConfig {
    /// Length of a slot of [`Policy::Slots`]: long enough that any burst in any bank can complete.
    pub fn slot(&self) -> Tick {
        let t = &self.timing;
        let bank =
            |write| t.row_active.max(t.activate + t.column_to_precharge(write)) + t.precharge;
        [
            bank(false),
            bank(true),
            t.write_then_read(),
            t.read_then_write(),
            t.column_gap(),
            t.activate_gap,
            t.four_activates.div_ceil(4 * t.cycle) * t.cycle,
        ]
        .into_iter()
        .fold(t.cycle, Tick::max)
    }
}

/// The part of a request in one row of one bank.
#[derive(Clone, Copy, Debug)]
pub(super) struct Segment {
    pub(super) request: u64,
    pub(super) index: u32,
    pub(super) bank: u32,
    pub(super) row: u64,
    /// Address of the first remaining burst.
    pub(super) address: u64,
    /// Remaining bursts.
    pub(super) bursts: u32,
    pub(super) ready: Tick,
    pub(super) owner: Owner,
    /// The requester whose turns its slots are.
    pub(super) requester: Owner,
    pub(super) write: bool,
    /// Whether it is in the write queue and acknowledged.
    pub(super) posted: bool,
    /// When the first command for the next burst was issued, and whether it had to close another row.
    pub(super) began: Option<(Tick, bool)>,
}

impl Segment {
    pub(super) fn cause(&self) -> Cause {
        Cause {
            owner: self.owner,
            request: self.request,
        }
    }
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Choice {
    /// A command for a segment of the active queue.
    Command {
        segment: usize,
        command: Command,
        /// It moves a burst that passes the oldest segment.
        passes: bool,
    },
    /// A slot for a segment.
    Slot {
        segment: usize,
    },
    Refresh,
}

/// The needs of the visible segments at a bank. Valid for one decision.
#[derive(Clone, Copy, Default, Debug)]
pub(super) struct Wish {
    decision: u64,
    /// The oldest segment.
    oldest: usize,
    /// The open row.
    open: Option<u64>,
    /// Segments that want the open row.
    wanted: u32,
    /// The oldest read and the oldest write among them.
    hits: [Option<usize>; 2],
}

#[derive(Clone, Debug)]
pub(super) struct Channel {
    pub(super) banks: Banks,
    /// Reads, and without a write queue also writes, in order of arrival.
    pub(super) queue: Vec<Segment>,
    /// Writes in order of arrival, the posted ones first.
    pub(super) writes: Vec<Segment>,
    /// Bursts of posted writes.
    pub(super) posted: u32,
    pub(super) draining: bool,
    /// Bursts moved by this drain.
    pub(super) drained: u32,
    /// Bursts of the oldest read that go before the next drain while reads wait: as many as the last drain moved, at most a full queue.
    pub(super) owed: u32,
    /// Bursts that passed the oldest segment of `queue`, and of `writes`.
    pub(super) passed: [u32; 2],
    pub(super) wishes: Vec<Wish>,
    /// The banks of the visible segments. Valid for one decision.
    pub(super) wishing: Vec<u32>,
    pub(super) decisions: u64,
    /// Slots: the requesters, the most recently served one last.
    pub(super) served: Vec<Owner>,
    /// Slots: the shares of the requesters, if a bandwidth controller limits them. Then a requester's activity is its RCID.
    pub(super) shares: Option<Box<Shares>>,
    /// Slots: the constraint that all requests wait for between two slots.
    pub(super) hold: Constraint,
    /// No decision is made before this.
    pub(super) floor: Tick,
    pub(super) next: Option<(Tick, Choice)>,
}

impl Channel {
    /// An idle channel.
    pub(super) fn new(config: &ControllerConfig) -> Self {
        let banks = config.map.banks;
        Self {
            banks: Banks::new(config.timing, banks),
            queue: Vec::new(),
            writes: Vec::new(),
            posted: 0,
            draining: false,
            drained: 0,
            owed: 0,
            passed: [0; 2],
            wishes: vec![Wish::default(); banks as usize],
            wishing: Vec::new(),
            decisions: 0,
            served: Vec::new(),
            shares: None,
            hold: Constraint::FREE,
            floor: 0,
            next: None,
        }
    }

    /// The segments that the policy may serve now, oldest first.
    pub(super) fn active(&self, config: &ControllerConfig) -> &[Segment] {
        if self.draining {
            &self.writes[..self.first_unposted()]
        } else {
            let limit = match config.policy {
                Policy::Slots => usize::MAX,
                _ => config.queue as usize,
            };
            &self.queue[..self.queue.len().min(limit)]
        }
    }

    /// The place of the first write that is not posted.
    pub(super) fn first_unposted(&self) -> usize {
        self.writes.partition_point(|s| s.posted)
    }

    /// The writes that are not posted.
    pub(super) fn unposted(&self) -> &[Segment] {
        &self.writes[self.first_unposted()..]
    }

    pub(super) fn active_mut(&mut self) -> &mut Vec<Segment> {
        if self.draining {
            &mut self.writes
        } else {
            &mut self.queue
        }
    }

    /// Decides whether writes are drained from `now` on. Returns whether that changes.
    pub(super) fn turn(&mut self, limits: WriteQueue, now: Tick) -> bool {
        let reads = !self.queue.is_empty();
        let full = self.writes.last().is_some_and(|s| !s.posted);
        let high = full || self.posted >= limits.high;
        let above = full || self.posted > limits.low;
        let drain = if self.draining {
            above && !(reads && self.drained >= limits.size)
        } else if reads {
            high && self.owed == 0
        } else {
            above
        };
        let turns = drain != self.draining;
        if turns {
            self.draining = drain;
            self.floor = self.floor.max(now);
            self.owed = self.drained.min(limits.size);
            self.drained = 0;
        }
        turns
    }

    /// Counts a moved burst of a segment: against the limits of a drain or of reads, and against the cap if it `passes` the oldest segment.
    pub(super) fn count(&mut self, segment: usize, passes: bool) {
        self.passed[usize::from(self.draining)] += u32::from(passes);
        if self.draining {
            self.drained += 1;
        } else {
            // Reads beyond those that are owed are not counted.
            self.owed -= u32::from(segment == 0 && self.owed > 0);
        }
    }

    /// Removes a segment whose bursts have all been moved.
    pub(super) fn leave(&mut self, segment: usize) {
        self.active_mut().remove(segment);
        if segment == 0 {
            self.passed[usize::from(self.draining)] = 0;
        }
    }

    /// The next command and its moment.
    pub(super) fn choose(&mut self, config: &ControllerConfig) -> Option<(Tick, Choice)> {
        self.decisions += 1;
        let chosen = match config.policy {
            Policy::Slots => choose_slot(self, config),
            _ => {
                let chosen = choose(self, config);
                #[cfg(test)]
                assert_eq!(chosen, tests::choose_plainly(self, config), "{self:?}");
                chosen
            }
        };
        let due = self.banks.refresh_due();
        match chosen {
            Some((at, _)) if at >= due => Some((self.banks.refresh_at().until, Choice::Refresh)),
            other => other,
        }
    }
}

/// Refreshes a channel. Slots begin after the refresh; for other policies, the constraints delay the activations.
pub(super) fn refresh(channel: &mut Channel, config: &ControllerConfig, at: Tick) {
    let end = channel.banks.refresh(at);
    channel.floor = at + config.timing.cycle;
    if config.policy == Policy::Slots {
        channel.floor = end;
        channel.hold = Constraint {
            until: end,
            cause: None,
            part: Part::Refresh,
        };
    }
}

/// The next command that a segment needs.
pub(super) fn next_command(banks: &Banks, segment: &Segment, close: bool) -> Command {
    let Segment {
        bank, row, write, ..
    } = *segment;
    match banks.open(bank) {
        Some(open) if open.row == row => Command::Column { bank, write, close },
        Some(_) => Command::Precharge { bank },
        None => Command::Activate { bank, row },
    }
}

/// First come first served, or first ready: the command that can be issued first, columns before rows, and the oldest of those.
///
/// Segments become ready in the order of arrival. So among those that want the open row of a bank in one direction, none can be accessed
/// before the oldest one, and if that one may not pass, none may. Rows are closed and opened for the oldest segment of a bank. At most
/// three segments of each bank are therefore compared.
fn choose(channel: &mut Channel, config: &ControllerConfig) -> Option<(Tick, Choice)> {
    let decision = channel.decisions;
    let mut wishes = std::mem::take(&mut channel.wishes);
    let mut wishing = std::mem::take(&mut channel.wishing);
    wishing.clear();
    let active = channel.active(config);
    let banks = &channel.banks;
    for (k, segment) in active.iter().enumerate() {
        let wish = &mut wishes[segment.bank as usize];
        if wish.decision != decision {
            wishing.push(segment.bank);
            *wish = Wish {
                decision,
                oldest: k,
                open: banks.open(segment.bank).map(|open| open.row),
                wanted: 0,
                hits: [None; 2],
            };
        }
        if wish.open == Some(segment.row) {
            wish.wanted += 1;
            wish.hits[usize::from(segment.write)].get_or_insert(k);
        }
    }
    let cap = match config.policy {
        Policy::FirstReady { cap } => Some(cap),
        Policy::Fcfs | Policy::Slots => None,
    };
    let in_order = cap.is_none();
    let passed = channel.passed[usize::from(channel.draining)];
    let spent = cap.is_some_and(|cap| passed >= cap);
    // From here on, only the data bus holds the oldest segment back.
    let free = active.first().map(|first| {
        let command = next_command(banks, first, false);
        (first.bank, banks.bank_allows(command).max(first.ready))
    });
    let mut best: Option<((Tick, bool, usize), Choice)> = None;
    let mut offer = |at: Tick, segment: usize, command: Command, passes: bool| {
        let row = !matches!(command, Command::Column { .. });
        let key = (at, row, segment);
        if best.is_none_or(|(least, _)| key < least) {
            let choice = Choice::Command {
                segment,
                command,
                passes,
            };
            best = Some((key, choice));
        }
    };
    let at = |segment: &Segment, command: Command| {
        let until = banks.allows(command);
        until.max(segment.ready).max(channel.floor)
    };
    for &bank in &wishing {
        let wish = wishes[bank as usize];
        for k in wish.hits.into_iter().flatten() {
            if in_order && k > 0 {
                continue;
            }
            let segment = &active[k];
            let close = config.closed_page && segment.bursts == 1 && wish.wanted == 1;
            let write = segment.write;
            let command = Command::Column { bank, write, close };
            let at = at(segment, command);
            let passes = k > 0 && free.is_some_and(|(first, from)| bank == first || at >= from);
            if !(passes && spent) {
                offer(at, k, command, passes);
            }
        }
        let k = wish.oldest;
        let segment = &active[k];
        let row = segment.row;
        match wish.open {
            Some(open) if open == row => {}
            Some(_) => {
                if in_order || wish.wanted == 0 || (k == 0 && spent) {
                    let command = Command::Precharge { bank };
                    offer(at(segment, command), k, command, false);
                }
            }
            None => {
                let command = Command::Activate { bank, row };
                offer(at(segment, command), k, command, false);
            }
        }
    }
    channel.wishes = wishes;
    channel.wishing = wishing;
    best.map(|((at, ..), choice)| (at, choice))
}

/// Round robin: among the requesters present when the next slot begins, the least recently served one. With shares, among those whose
/// shares are equally far.
fn choose_slot(channel: &Channel, config: &ControllerConfig) -> Option<(Tick, Choice)> {
    let active = channel.active(config);
    let last = |requester| channel.served.iter().position(|&r| r == requester);
    if let Some(shares) = &channel.shares {
        let may = |s: &Segment| shares.may(s.requester.activity, s.ready.max(channel.floor));
        let at = active.iter().map(may).min()?;
        let ready = active.iter().enumerate().filter(|(_, s)| may(s) == at);
        let key = |k: usize| (last(active[k].requester), k);
        let first = ready.min_by(|(k, one), (l, other)| {
            let shares = shares.compare(at, one.requester.activity, other.requester.activity);
            shares.then_with(|| key(*k).cmp(&key(*l)))
        });
        return first.map(|(segment, _)| (at, Choice::Slot { segment }));
    }
    let at = active.iter().map(|s| s.ready.max(channel.floor)).min()?;
    let ready = active.iter().enumerate().filter(|(_, s)| s.ready <= at);
    let (segment, _) = ready.min_by_key(|(k, s)| (last(s.requester), *k))?;
    Some((at, Choice::Slot { segment }))
}

#[cfg(test)]
#[path = "channel_tests.rs"]
mod tests;
