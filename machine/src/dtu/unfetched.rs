//! Messages that wait to be fetched, and whose request their receiver serves meanwhile. Used only by the ledger.
//!
//! Why it exists: a service works for one client at a time, and only the unit knows which one without relying on software that could lie.
//! The unit wrote the sender into each message, and it sees which message the receiver fetches and gives back. Nothing here takes time, and
//! no software can read it. What it deliberately does not know: what a request asks for, and whether its sender waits for an answer.
//!
//! A receiver works for the sender of its most recently fetched request, from the fetch until it gives that request back; otherwise it
//! works for itself. An answer is not a request. Freeing a device's message only allows the next one, so a receiver works for its device
//! until it fetches a request or sleeps. A request waits from the moment it is stored until it is fetched or its endpoint is reconfigured;
//! each of these ticks is recorded exactly once. TileMux and the kernel have their own rules ([`crate::ledger::Processor`]) and are not
//! receivers here.

use crate::ledger::{Party, Unfetched};
use crate::types::{Owner, Tick, TileId};
use std::collections::BTreeMap;

/// An endpoint, and the offset of a message in its buffer.
pub(super) type Place = (u16, u64);

/// A message that was stored and not fetched.
#[derive(Clone, Copy, Debug)]
struct Waiting {
    place: Place,
    receiver: u16,
    sender: Party,
    arrived: Tick,
    /// Everything before this has been reported. The end of a run may lie slightly before a tile's next step.
    told: Tick,
    /// The culprit of the last interval, and its ticks.
    stretch: Option<(Party, Tick)>,
}

/// The work of a receiver.
#[derive(Clone, Copy, Debug)]
struct Work {
    place: Place,
    client: Party,
}

/// The requests at the gates of one tile.
#[derive(Clone, Debug, Default)]
pub(super) struct Requests {
    tile: TileId,
    waiting: Vec<Waiting>,
    /// By receiver.
    works: BTreeMap<u16, Work>,
    /// Ticks waited by messages that no longer wait.
    waited: Tick,
}

impl Requests {
    /// No messages.
    pub fn new(tile: TileId) -> Self {
        Self {
            tile,
            ..Self::default()
        }
    }

    /// A message for `receiver` was stored.
    pub fn stored(&mut self, now: Tick, place: Place, receiver: u16, sender: Party) {
        self.waiting.push(Waiting {
            place,
            receiver,
            sender,
            arrived: now,
            told: now,
            stretch: None,
        });
    }

    /// A message was fetched. Answers are not tracked here, so fetching one changes nothing.
    pub fn fetched(&mut self, now: Tick, place: Place, tell: &mut dyn FnMut(Unfetched)) {
        let Some(index) = self.waiting.iter().position(|one| one.place == place) else {
            return;
        };
        self.settle_for(now, self.waiting[index].receiver, tell);
        let message = self.waiting.remove(index);
        self.end(now, &message);
        debug_assert!(!self.waiting.iter().any(|one| one.place == place));
        let work = Work {
            place,
            client: message.sender,
        };
        self.works.insert(message.receiver, work);
    }

    /// A fetched message was answered or acknowledged.
    pub fn given_back(
        &mut self,
        now: Tick,
        receiver: u16,
        place: Place,
        tell: &mut dyn FnMut(Unfetched),
    ) {
        self.stop_work(now, receiver, tell, |work| {
            work.place == place && work.client != Party::Device
        });
    }

    /// A receiver sleeps: it has finished its device's work.
    pub fn sleeps(&mut self, now: Tick, receiver: u16, tell: &mut dyn FnMut(Unfetched)) {
        self.stop_work(now, receiver, tell, |work| work.client == Party::Device);
    }

    /// An endpoint was configured: its messages are gone.
    pub fn configured(&mut self, now: Tick, endpoint: u16, tell: &mut dyn FnMut(Unfetched)) {
        let mut gone: Vec<u16> = Vec::new();
        let waiting = self.waiting.iter().map(|one| (one.place.0, one.receiver));
        let works = self.works.iter().map(|(&who, work)| (work.place.0, who));
        for (at, receiver) in waiting.chain(works) {
            if at == endpoint && !gone.contains(&receiver) {
                gone.push(receiver);
            }
        }
        for receiver in gone {
            self.settle_for(now, receiver, tell);
        }
        self.drop_all(endpoint);
    }

    /// Forgets the messages at an endpoint; unreported waits are lost.
    pub fn drop_all(&mut self, endpoint: u16) {
        for at in (0..self.waiting.len()).rev() {
            if self.waiting[at].place.0 == endpoint {
                let message = self.waiting.remove(at);
                self.end(message.told, &message);
            }
        }
        self.works.retain(|_, work| work.place.0 != endpoint);
    }

    fn stop_work(
        &mut self,
        now: Tick,
        receiver: u16,
        tell: &mut dyn FnMut(Unfetched),
        is_over: impl Fn(&Work) -> bool,
    ) {
        if self.works.get(&receiver).is_some_and(is_over) {
            self.settle_for(now, receiver, tell);
            self.works.remove(&receiver);
        }
    }

    fn end(&mut self, now: Tick, message: &Waiting) {
        if message.sender != Party::Device {
            self.waited += now.max(message.told) - message.arrived;
        }
    }

    /// Reports all waits up to now.
    pub fn settle(&mut self, now: Tick, tell: &mut dyn FnMut(Unfetched)) {
        let receivers: Vec<u16> = self.waiting.iter().map(|one| one.receiver).collect();
        for receiver in receivers {
            self.settle_for(now, receiver, tell);
        }
    }

    fn settle_for(&mut self, now: Tick, receiver: u16, tell: &mut dyn FnMut(Unfetched)) {
        let server = Owner::new(self.tile, receiver);
        let work = self.works.get(&receiver);
        let culprit = work.map_or(Party::Activity(server), |work| work.client);
        for message in &mut self.waiting {
            // An interrupt that waits to be fetched delays no one; the network card accounts for waiting frames.
            let Party::Activity(victim) = message.sender else {
                continue;
            };
            if message.receiver != receiver || message.told >= now {
                continue;
            }
            let ticks = now - message.told;
            let last = message.stretch.filter(|(party, _)| *party == culprit);
            let so_far = last.map_or(0, |(_, ticks)| ticks);
            message.stretch = Some((culprit, so_far + ticks));
            message.told = now;
            tell(Unfetched {
                victim,
                culprit,
                server,
                so_far,
                ticks,
            });
        }
    }

    /// Ticks for which requests have waited until now. [`Self::settle`] was called for the same moment.
    pub fn waited(&self, now: Tick) -> Tick {
        let waiting = self.waiting.iter();
        let waiting = waiting.filter(|message| message.sender != Party::Device);
        let until_now = waiting.map(|one| now.max(one.told) - one.arrived);
        self.waited + until_now.sum::<Tick>()
    }

    /// Restarts the waits at this moment, up to which everything has been reported.
    pub fn forget(&mut self, now: Tick) {
        self.waited = 0;
        for message in &mut self.waiting {
            (message.arrived, message.told, message.stretch) = (now, now, None);
        }
    }
}
