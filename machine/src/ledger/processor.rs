//! Processor time: which activity had a tile's hart while others were ready, to the tick.
//!
//! Why it exists: an activity that is ready but not running waits for another, like a request at a link. TileMux emits markers in
//! machine mode that say which activities are ready, which one it chose, and when it takes and leaves the hart. Nothing changes
//! between two markers, so each interval is one booking for each activity that waits in it. What it deliberately does not know:
//! policies, priorities, and why TileMux decides as it does.
//!
//! At each moment the hart has one owner: the activity that was chosen, or TileMux while it works. An activity that is ready
//! - waits for itself (resource `processor budget`) until its budget lets it run, whichever activity runs meanwhile;
//! - otherwise waits for the owner of the hart (resource `processor`). TileMux's work for a call or a fault of the running activity
//!   counts as that activity's own, so only others wait for it; its work at an interrupt does not.
//!
//! So for every activity: time ready = time with the hart + booked waits, exactly.

use super::{Ledger, Resource};
use crate::types::{Owner, Tick, TileId};
use bulkhead_abi::dtu::{IDLE_ACTIVITY, TILEMUX_ACTIVITY};
use bulkhead_abi::marker::{MarkerKind, Since};
use std::collections::BTreeMap;

/// Maximum number of activities of a tile that are accounted for at a time. TileMux has far fewer; markers about more are ignored.
const MEMBERS: usize = 256;

/// How long an activity had its tile's hart and how long it waited for the hart, in ticks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ProcessorTime {
    /// The activity.
    pub owner: Owner,
    /// Ticks for which it ran in user mode.
    pub ran: Tick,
    /// Ticks for which it was ready without having the hart.
    pub waited: Tick,
}

#[derive(Clone, Copy, Debug)]
struct Member {
    id: u16,
    /// The tick from which it is ready.
    ready: Tick,
    /// The tick from which its budget lets it run.
    budget: Tick,
    /// Its last wait.
    stretch: Option<Stretch>,
    times: Times,
}

/// A wait for one owner and resource.
#[derive(Clone, Copy, Debug)]
struct Stretch {
    culprit: Owner,
    resource: Resource,
    length: Tick,
    end: Tick,
}

impl Member {
    /// Books its wait from one moment to another.
    fn wait(
        &mut self,
        victim: Owner,
        (culprit, resource): (Owner, Resource),
        (from, to): (Tick, Tick),
        ledger: &mut Ledger,
    ) {
        if from == to {
            return;
        }
        let mut length = to - from;
        match self.stretch {
            Some(last) if (last.culprit, last.resource, last.end) == (culprit, resource, from) => {
                ledger.lengthen(victim, culprit, resource, (last.length, length));
                length += last.length;
            }
            _ => ledger.book(victim, culprit, resource, length),
        }
        self.stretch = Some(Stretch {
            culprit,
            resource,
            length,
            end: to,
        });
    }
}

#[derive(Clone, Copy, Debug, Default)]
struct Times {
    ran: Tick,
    /// Ticks for which it was ready.
    wanted: Tick,
    /// Ticks for which it was ready and had the hart, or TileMux worked for it.
    had: Tick,
}

impl Times {
    fn add(&mut self, other: Self) {
        self.ran += other.ran;
        self.wanted += other.wanted;
        self.had += other.had;
    }
}

/// The hart of one tile.
#[derive(Clone, Debug)]
pub struct Processor {
    tile: TileId,
    ticks_per_second: u64,
    /// Everything before this has been booked.
    settled: Tick,
    /// The tick at which the hart was stopped or restarted: TileMux and its activities ended then.
    over: Option<Tick>,
    members: Vec<Member>,
    /// The most recently chosen activity.
    chosen: u16,
    /// TileMux has the hart.
    works: bool,
    /// TileMux has the hart because the chosen activity made a request.
    asked: bool,
    /// The activity on whose behalf the kernel asked for TileMux's next work.
    asker: Option<Owner>,
    /// The activity for which TileMux works at the kernel's request.
    client: Option<Owner>,
    /// Times of activities that no longer exist, by number.
    gone: BTreeMap<u16, Times>,
}

impl Processor {
    /// A hart without activities.
    pub const fn new(tile: TileId, ticks_per_second: u64) -> Self {
        Self {
            tile,
            ticks_per_second,
            settled: 0,
            over: None,
            members: Vec::new(),
            chosen: IDLE_ACTIVITY,
            works: true,
            asked: false,
            asker: None,
            client: None,
            gone: BTreeMap::new(),
        }
    }

    /// The unit names the activity for which the kernel requested TileMux's next work; `None`: there is none, so TileMux itself names the
    /// activity that it is for.
    pub fn asked_by(&mut self, asker: Option<Owner>) {
        self.asker = asker;
    }

    /// Processes a marker of TileMux. Markers of a second hart may arrive slightly late; they count from their arrival.
    pub fn hear(&mut self, now: Tick, kind: MarkerKind, value: u64, ledger: &mut Ledger) {
        self.settle(now, ledger);
        let now = self.settled;
        let since = Since::unpack(value);
        if matches!(kind, MarkerKind::MuxRuns | MarkerKind::MuxLeaves) {
            self.client = None;
        }
        match kind {
            MarkerKind::MuxWorks => {
                let own = Owner::new(self.tile, since.activity);
                self.client = Some(self.asker.take().unwrap_or(own));
            }
            MarkerKind::MuxEnters => (self.works, self.asked) = (true, true),
            MarkerKind::MuxInterrupts => self.asked = false,
            MarkerKind::MuxLeaves => self.works = false,
            MarkerKind::MuxRuns if self.chosen != since.activity => {
                (self.chosen, self.asked) = (since.activity, false);
            }
            MarkerKind::MuxMember => {
                self.remove(since.activity);
                if since.moment != Since::NEVER && self.members.len() < MEMBERS {
                    self.members.push(Member {
                        id: since.activity,
                        ready: Tick::MAX,
                        budget: 0,
                        stretch: None,
                        times: Times::default(),
                    });
                }
            }
            MarkerKind::MuxReady => {
                let moment = self.tick(since.moment, now);
                if let Some(member) = self.member(since.activity) {
                    member.ready = moment;
                }
            }
            MarkerKind::MuxBudget => {
                let moment = self.tick(since.moment, now);
                if let Some(member) = self.member(since.activity) {
                    member.budget = moment;
                }
            }
            _ => {}
        }
    }

    fn member(&mut self, id: u16) -> Option<&mut Member> {
        self.members.iter_mut().find(|member| member.id == id)
    }

    fn remove(&mut self, id: u16) {
        if let Some(index) = self.members.iter().position(|member| member.id == id) {
            let member = self.members.remove(index);
            self.gone.entry(id).or_default().add(member.times);
        }
    }

    /// The first tick at which the software's clock shows a moment.
    fn tick(&self, moment: u64, now: Tick) -> Tick {
        match moment {
            Since::NEVER => Tick::MAX,
            moment => {
                let ticks = u128::from(moment) * u128::from(self.ticks_per_second);
                let ticks = ticks.div_ceil(1_000_000_000).try_into();
                now.max(ticks.unwrap_or(Tick::MAX))
            }
        }
    }

    /// Notes that the hart was stopped or restarted.
    pub fn stop(&mut self, now: Tick) {
        self.over = Some(self.over.unwrap_or(now).min(now));
    }

    /// Books all waits up to now.
    pub fn settle(&mut self, now: Tick, ledger: &mut Ledger) {
        if let Some(over) = self.over.take_if(|over| *over <= now) {
            self.book(over, ledger);
            for id in self.members.iter().map(|m| m.id).collect::<Vec<_>>() {
                self.remove(id);
            }
            (self.chosen, self.works, self.asked) = (IDLE_ACTIVITY, true, false);
            (self.client, self.asker) = (None, None);
        }
        self.book(now, ledger);
    }

    fn book(&mut self, now: Tick, ledger: &mut Ledger) {
        if now <= self.settled {
            return;
        }
        let begin = self.settled;
        self.settled = now;
        // If no activity is chosen, TileMux has the hart until it notices that one is ready.
        let holder = match (self.client, self.chosen) {
            (Some(client), _) => client,
            (None, IDLE_ACTIVITY) => Owner::new(self.tile, TILEMUX_ACTIVITY),
            (None, _) if self.works => Owner::new(self.tile, TILEMUX_ACTIVITY),
            (None, chosen) => Owner::new(self.tile, chosen),
        };
        for member in &mut self.members {
            let is_chosen = member.id == self.chosen;
            if is_chosen && !self.works {
                member.times.ran += now - begin;
            }
            let ready = member.ready.max(begin);
            if ready >= now {
                continue;
            }
            member.times.wanted += now - ready;
            let own = Owner::new(self.tile, member.id);
            let works_for_it = match self.client {
                Some(client) => client == own,
                None => is_chosen && self.asked,
            };
            if is_chosen && !self.works || works_for_it {
                member.times.had += now - ready;
                continue;
            }
            let budget = member.budget.clamp(ready, now);
            let (limit, hart) = (Resource::ProcessorBudget, Resource::Processor);
            member.wait(own, (own, limit), (ready, budget), ledger);
            member.wait(own, (holder, hart), (budget, now), ledger);
        }
    }

    /// Forgets all times so far.
    pub fn forget(&mut self) {
        self.gone.clear();
        for member in &mut self.members {
            member.times = Times::default();
            member.stretch = None;
        }
    }

    /// Times of all activities that have been on this tile, by number.
    pub fn times(&self) -> impl Iterator<Item = ProcessorTime> + '_ {
        let mut all = self.gone.clone();
        for member in &self.members {
            all.entry(member.id).or_default().add(member.times);
        }
        all.into_iter().map(|(id, times)| ProcessorTime {
            owner: Owner::new(self.tile, id),
            ran: times.ran,
            waited: times.wanted - times.had,
        })
    }
}

#[cfg(test)]
#[path = "processor_tests.rs"]
mod tests;
