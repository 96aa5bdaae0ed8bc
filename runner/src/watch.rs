//! What the harts of a run did and when messages arrived, for experiments on when a hart fell asleep.
//!
//! Why it exists: software cannot see when its own hart stops, and the measurement must not disturb it. What it deliberately does not
//! know: what follows from it.

use bulkhead_machine::device::network::{Fate, Frame};
use bulkhead_machine::dram::BankActivity;
use bulkhead_machine::dtu::Observation;
use bulkhead_machine::noc::LinkActivity;
use bulkhead_machine::observe::{HartState, Marker, Missing, Observer};
use bulkhead_machine::types::{Owner, Tick, TileId};
use std::sync::{Arc, Mutex, PoisonError};

/// Something that happened on a tile.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Event {
    /// The hart stopped to wait.
    Asleep,
    /// The hart executes again.
    Awake,
    /// A message was stored in this receive endpoint.
    Message(u16),
    /// The unit began to interrupt the hart.
    Interrupt,
}

/// The events on all tiles, in time order for each tile.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Log(pub Vec<(TileId, Tick, Event)>);

impl Log {
    /// Events of a tile.
    pub fn of(&self, tile: TileId) -> impl Iterator<Item = (Tick, Event)> + '_ {
        let own = self.0.iter().filter(move |(at, ..)| *at == tile);
        own.map(|(_, tick, event)| (*tick, *event))
    }

    /// When a tile's hart was awake: from each moment at which it began to execute until it stopped. It is awake at reset.
    pub fn awake(&self, tile: TileId) -> Vec<(Tick, Tick)> {
        let (mut all, mut since) = (Vec::new(), Some(0));
        for (tick, event) in self.of(tile) {
            match event {
                Event::Awake => since = since.or(Some(tick)),
                Event::Asleep => all.extend(since.take().map(|begin| (begin, tick))),
                Event::Message(_) | Event::Interrupt => {}
            }
        }
        all.extend(since.map(|begin| (begin, Tick::MAX)));
        all
    }

    /// Ticks between two moments in which a tile's hart was asleep.
    pub fn slept(&self, tile: TileId, from: Tick, to: Tick) -> Tick {
        let (mut all, mut since) = (0, None);
        for (tick, event) in self.of(tile) {
            match event {
                Event::Asleep => since = since.or(Some(tick)),
                Event::Awake => {
                    if let Some(begin) = since.take() {
                        all += tick.min(to).saturating_sub(begin.max(from));
                    }
                }
                Event::Message(_) | Event::Interrupt => {}
            }
        }
        all + since.map_or(0, |begin| to.saturating_sub(begin.max(from)))
    }
}

/// Writes a [`Log`]. The reader keeps the other end.
#[derive(Clone, Debug, Default)]
pub struct Watcher(Arc<Mutex<Log>>);

impl Watcher {
    /// The log so far.
    pub fn take(&self) -> Log {
        std::mem::take(&mut *self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }

    fn push(&self, tile: TileId, at: Tick, event: Event) {
        let mut log = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        log.0.push((tile, at, event));
    }
}

impl Observer for Watcher {
    fn unit(&mut self, at: Tick, tile: TileId, observation: &Observation) {
        match observation {
            Observation::MessageStored { endpoint, .. } => {
                self.push(tile, at, Event::Message(*endpoint));
            }
            Observation::Interrupt { level: true } => self.push(tile, at, Event::Interrupt),
            _ => {}
        }
    }

    fn link(&mut self, _: &LinkActivity) {}

    fn bank(&mut self, _: TileId, _: &BankActivity) {}

    /// Of a cluster, the log has the hart at the first port.
    fn hart(&mut self, at: Tick, (tile, port): (TileId, usize), state: HartState) {
        if port != 0 {
            return;
        }
        let event = match state {
            HartState::Running => Event::Awake,
            HartState::Idle | HartState::Halted => Event::Asleep,
        };
        self.push(tile, at, event);
    }

    fn activity(&mut self, _: Tick, _: Owner) {}

    fn marker(&mut self, _: &Marker) {}

    fn bytes(&self) -> Vec<u8> {
        Vec::new()
    }
}

/// Reports to another observer, if any, and to a watcher.
pub struct Both(pub Option<Box<dyn Observer>>, pub Watcher);

impl Both {
    fn each(&mut self, mut tell: impl FnMut(&mut dyn Observer)) {
        if let Some(other) = &mut self.0 {
            tell(other.as_mut());
        }
        tell(&mut self.1);
    }
}

impl Observer for Both {
    fn unit(&mut self, at: Tick, tile: TileId, observation: &Observation) {
        self.each(|one| one.unit(at, tile, observation));
    }

    fn link(&mut self, activity: &LinkActivity) {
        self.each(|one| one.link(activity));
    }

    fn bank(&mut self, memory: TileId, activity: &BankActivity) {
        self.each(|one| one.bank(memory, activity));
    }

    fn hart(&mut self, at: Tick, hart: (TileId, usize), state: HartState) {
        self.each(|one| one.hart(at, hart, state));
    }

    fn activity(&mut self, at: Tick, owner: Owner) {
        self.each(|one| one.activity(at, owner));
    }

    fn marker(&mut self, marker: &Marker) {
        self.each(|one| one.marker(marker));
    }

    fn frame(&mut self, at: Tick, tile: TileId, frame: &Frame, fate: Fate) {
        self.each(|one| one.frame(at, tile, frame, fate));
    }

    fn stopped(&mut self, at: Tick) {
        self.each(|one| one.stopped(at));
    }

    fn bytes(&self) -> Vec<u8> {
        self.0
            .as_ref()
            .map(|other| other.bytes())
            .unwrap_or_default()
    }

    fn missing(&self) -> Missing {
        let other = self.0.as_ref();
        other.map(|other| other.missing()).unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sleep_is_counted_inside_the_window() {
        let mut watcher = Watcher::default();
        for (at, state) in [
            (10, HartState::Idle),
            (30, HartState::Running),
            (50, HartState::Idle),
        ] {
            watcher.hart(at, (2, 0), state);
            watcher.hart(at, (3, 0), HartState::Idle);
            // Another hart of a cluster is not in the log.
            watcher.hart(at, (4, 1), state);
        }
        let log = watcher.take();
        assert_eq!(log.slept(2, 0, 60), 30);
        assert_eq!(log.slept(2, 20, 55), 15);
        assert_eq!(log.slept(2, 30, 50), 0);
        assert_eq!(log.slept(3, 0, 60), 50);
        assert_eq!(log.awake(2), [(0, 10), (30, 50)]);
        assert_eq!(log.awake(4), [(0, Tick::MAX)], "nothing was said of it");
        assert!(watcher.take().0.is_empty());
    }
}
