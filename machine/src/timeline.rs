//! Everything that a tile sees, as a sequence of (tick, event): the timeline that the non-interference check compares.
//!
//! Why it exists: "undisturbed" means that everything on a tile happens in the same order at the same ticks. A tile's behaviour
//! depends only on its own state and on what reaches it, so its timeline consists of every arriving packet, every event of its unit
//! and its timer, every stop of its hart and every marker of its software. What it deliberately does not know: other tiles, and
//! which events matter.
//!
//! A timeline is kept as a streaming hash with a checkpoint every [`STRIDE`] events. Two timelines that differ have different
//! checkpoints; a second run then records the events of one stride in full.

use crate::device::network::CardEvent;
use crate::dtu::{Alarm, DtuEvent};
use crate::noc::{Packet, PacketKind, Transaction};
use crate::observe::HartState;
use crate::types::{Tick, TileId};
use std::fmt;

/// Events between two checkpoints.
pub const STRIDE: u64 = 1024;

/// An event that a tile saw.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Event {
    /// The timer reached its compare register.
    Timer,
    /// A moment that the tile's unit had asked for has come.
    Unit(DtuEvent),
    /// A packet arrived completely.
    Packet {
        /// Its sender.
        from: TileId,
        /// The kind of transaction that it belongs to.
        transaction: Transaction,
        /// Whether it answers a request of this tile.
        response: bool,
        /// Number of the request, chosen by the requester.
        tag: u32,
        /// Bytes after the packet's header.
        bytes: u32,
    },
    /// An event of the network card: a code (0 access, 1 link, 2 frame left, 3 frame arrived, 4 doorbell), and its bytes or number.
    Card(u8, u32),
    /// A hart continued after a stop, went to sleep, or was stopped.
    Hart(HartState),
    /// Software marked something.
    Marker {
        /// A code of `abi::marker::MarkerKind`, or an application's own.
        kind: u16,
        /// Its value.
        value: u64,
    },
}

impl Event {
    /// The event of a packet's arrival.
    pub fn of(packet: &Packet) -> Self {
        Self::Packet {
            from: packet.source,
            transaction: packet.transaction,
            response: packet.kind.is_response(),
            tag: packet.tag,
            bytes: match packet.kind {
                PacketKind::ReadRequest { bytes, .. } => bytes,
                _ => packet.kind.payload_bytes(),
            },
        }
    }

    /// The event of a network card.
    pub fn of_card(event: &CardEvent) -> Self {
        match event {
            CardEvent::Block(token) => Self::Card(0, token.number()),
            CardEvent::LinkFree(_) => Self::Card(1, 0),
            CardEvent::Sent(_, head) => Self::Card(2, (*head).into()),
            CardEvent::Frame(frame) => Self::Card(3, frame.len() as u32),
            CardEvent::Notified(_, queue) => Self::Card(4, *queue),
        }
    }

    fn words(self) -> [u64; 3] {
        match self {
            Event::Timer => [0, 0, 0],
            Event::Unit(event) => {
                let (kind, number) = match event {
                    DtuEvent::Command(n) => (0, n),
                    DtuEvent::Local(token) => (2, token.number()),
                    DtuEvent::Receive => (3, 0),
                    DtuEvent::Due(alarm) => (4, alarm as u32),
                };
                [1, kind, number.into()]
            }
            Event::Packet {
                from,
                transaction,
                response,
                tag,
                bytes,
            } => [
                2 | (from as u64) << 8,
                transaction as u64 | (response as u64) << 8 | (bytes as u64) << 32,
                tag.into(),
            ],
            Event::Hart(state) => [3, state as u64, 0],
            Event::Marker { kind, value } => [4, kind.into(), value],
            Event::Card(kind, number) => [5, kind.into(), number.into()],
        }
    }
}

impl fmt::Display for Event {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Event::Timer => f.write_str("the timer interrupt"),
            Event::Unit(event) => f.write_str(match event {
                DtuEvent::Command(_) => "a command of the unit starts",
                DtuEvent::Local(_) => "the unit's access to local memory is done",
                DtuEvent::Receive => "the unit has looked at a message",
                DtuEvent::Due(Alarm::Release) => "the token bucket lets a chunk pass",
                DtuEvent::Due(Alarm::Timer) => "the unit's timer expires",
                DtuEvent::Due(Alarm::Awaited) => "the unit looks again who may interrupt",
                DtuEvent::Due(Alarm::Sleep) => "a sleep times out",
            }),
            Event::Packet {
                from,
                transaction,
                response,
                bytes,
                ..
            } => {
                let what = match (transaction, response) {
                    (Transaction::CacheRead, _) => "a cache line",
                    (Transaction::CacheWrite, _) => "the acknowledgement of a write-back",
                    (Transaction::DmaRead, true) => "a chunk that was read",
                    (Transaction::DmaWrite, true) => "the acknowledgement of a written chunk",
                    (Transaction::Message, true) => "the acknowledgement of a message",
                    (Transaction::Message, false) => "a message",
                    (Transaction::RemoteLoad, _) => "a load across the network",
                    (Transaction::RemoteStore, _) => "a store across the network",
                    (Transaction::Interrupt, _) => "an interrupt of another part",
                    (Transaction::RemoteAtomic, _) => "an atomic operation across the network",
                    (Transaction::Register, true) => "the answer of another tile's unit",
                    _ => "an access to the unit's registers",
                };
                write!(f, "{what} arrives from tile {from} ({bytes} bytes)")
            }
            Event::Card(0, _) => f.write_str("the network card's access to memory is done"),
            Event::Card(1, _) => f.write_str("the network card's link is free"),
            Event::Card(2, _) => f.write_str("a frame has left"),
            Event::Card(4, _) => f.write_str("the network card hears of a queue"),
            Event::Card(_, bytes) => write!(f, "a frame arrives ({bytes} bytes)"),
            Event::Hart(HartState::Running) => f.write_str("the hart goes on"),
            Event::Hart(HartState::Idle) => f.write_str("the hart waits"),
            Event::Hart(HartState::Halted) => f.write_str("the hart stops"),
            Event::Marker { kind, value } => write!(f, "marker {kind} with value {value}"),
        }
    }
}

/// The timeline of a tile. Comparing the timelines of two runs shows whether the tile saw the same.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Timeline {
    /// Events so far.
    pub events: u64,
    /// Two independent hashes: the probability that both miss a difference is only 2^-128.
    pub hash: [u64; 2],
    /// Moment of the last event.
    pub last: Tick,
    /// The hash after every [`STRIDE`] events.
    pub checkpoints: Vec<[u64; 2]>,
    /// Stride to record in full, if any.
    record: Option<u64>,
    /// The recorded events.
    pub recorded: Vec<(Tick, Event)>,
}

const MULTIPLIERS: [u64; 2] = [0x9E37_79B9_7F4A_7C15, 0xD6E8_FEB8_6659_FD93];

impl Timeline {
    /// An empty timeline that keeps the events of a stride (counted from 0), or none.
    pub fn new(record: Option<u64>) -> Self {
        Self {
            record,
            ..Self::default()
        }
    }

    /// Adds an event.
    #[inline]
    pub fn add(&mut self, tick: Tick, event: Event) {
        let [a, b, c] = event.words();
        for (hash, multiplier) in self.hash.iter_mut().zip(MULTIPLIERS) {
            for word in [tick, a, b, c] {
                let mixed = (*hash ^ word).wrapping_mul(multiplier);
                *hash = mixed ^ (mixed >> 29);
            }
        }
        if self.record == Some(self.events / STRIDE) {
            self.recorded.push((tick, event));
        }
        self.events += 1;
        self.last = tick;
        if self.events.is_multiple_of(STRIDE) {
            self.checkpoints.push(self.hash);
        }
    }

    /// The first stride in which two timelines differ; `None` if they are equal.
    pub fn first_difference(&self, other: &Self) -> Option<u64> {
        if self.events == other.events && self.hash == other.hash {
            return None;
        }
        // A hash that differs once differs from then on (except by chance), so the first one decides.
        let pairs = self.checkpoints.iter().zip(&other.checkpoints);
        let common = self.checkpoints.len().min(other.checkpoints.len());
        let at = pairs.take_while(|(a, b)| a == b).count();
        Some(at.min(common) as u64)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn marker(value: u64) -> Event {
        Event::Marker { kind: 1, value }
    }

    fn timeline(events: &[(Tick, Event)], record: Option<u64>) -> Timeline {
        let mut timeline = Timeline::new(record);
        for (tick, event) in events {
            timeline.add(*tick, *event);
        }
        timeline
    }

    proptest! {
        #[test]
        fn a_change_is_found_in_its_stride(length in 1usize..5000, at in 0usize..5000, kind in 0..3) {
            let events: Vec<_> = (0..length as u64).map(|i| (3 * i, marker(i))).collect();
            let mut changed = events.clone();
            let at = at % length;
            match kind {
                0 => changed[at].0 += 1,
                1 => changed[at].1 = marker(u64::MAX),
                _ => changed.truncate(at),
            }
            let (first, second) = (timeline(&events, None), timeline(&changed, None));
            prop_assert_eq!(first.first_difference(&first.clone()), None);
            let stride = first.first_difference(&second).expect("they differ");
            prop_assert_eq!(stride, at as u64 / STRIDE);
            // The recorded stride holds the first difference.
            let (a, b) = (timeline(&events, Some(stride)), timeline(&changed, Some(stride)));
            let same = a.recorded.iter().zip(&b.recorded).take_while(|(a, b)| a == b).count();
            prop_assert_eq!(stride as usize * STRIDE as usize + same, at);
        }
    }

    #[test]
    fn order_and_kind_matter() {
        let a = timeline(&[(1, Event::Timer), (1, marker(0))], None);
        let b = timeline(&[(1, marker(0)), (1, Event::Timer)], None);
        assert!(a.first_difference(&b).is_some());
        let c = timeline(&[(1, Event::Hart(HartState::Idle))], None);
        let d = timeline(&[(1, Event::Hart(HartState::Running))], None);
        assert!(c.first_difference(&d).is_some());
    }
}
