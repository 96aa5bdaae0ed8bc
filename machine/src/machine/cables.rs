//! The cables of a machine: frames from one tile's card to another's, or to another chip.
//!
//! Why it exists: frames bypass the network, and no window of time may be longer than the shortest cable. What it deliberately
//! does not know: what is on the other chip; the caller that steps both chips carries the frames, see
//! [`Machine::take_outgoing`].

use super::Machine;
use crate::cable::Direction;
use crate::config::PlatformConfig;
use crate::device::network::{CardCounters, Fate, Frame};
use crate::types::{Tick, TileId};

/// Maximum number of frames kept for other chips: far more than one window of time can produce.
const OUTGOING_MAX: usize = 1 << 16;

/// One end of a cable.
pub(super) struct End {
    /// The tile's position.
    tile: usize,
    id: TileId,
    /// Position of the tile at the other end, if it is on this chip.
    to: Option<usize>,
    direction: Direction,
}

/// All ends.
pub(super) struct Cables {
    pub(super) ends: Vec<End>,
    /// Delay of the shortest cable with both ends on this chip.
    pub(super) lookahead: Tick,
    outgoing: Vec<Outgoing>,
}

/// A frame on its way to another chip.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Outgoing {
    /// The tile whose card sent it.
    pub tile: TileId,
    /// When it arrives, in ticks of this chip.
    pub at: Tick,
    /// The frame.
    pub frame: Frame,
}

impl Cables {
    pub(super) fn new(config: &PlatformConfig) -> Self {
        let position = |id: TileId| config.tiles.iter().position(|t| t.id == id);
        let mut ends = Vec::new();
        let mut lookahead = Tick::MAX;
        for cable in &config.cables {
            let there = cable.to.and_then(position);
            let Some(here) = position(cable.from) else {
                continue;
            };
            ends.push(End {
                tile: here,
                id: cable.from,
                to: there,
                direction: Direction::new(cable, cable.number),
            });
            if let (Some(back), Some(id)) = (there, cable.to) {
                lookahead = lookahead.min(cable.delay);
                ends.push(End {
                    tile: back,
                    id,
                    to: Some(here),
                    direction: Direction::new(cable, cable.number ^ 1),
                });
            }
        }
        Self {
            ends,
            lookahead,
            outgoing: Vec::new(),
        }
    }
}

impl Machine {
    /// Takes departed frames to the other ends.
    pub(super) fn carry(&mut self) {
        for end in &mut self.cables.ends {
            for (left, frame) in self.tiles[end.tile].take_frames() {
                let origin = self.fabric.observer.is_some().then(|| frame.clone());
                let arrivals = end.direction.carry(left, frame);
                if let (Some(observer), Some(frame)) = (&mut self.fabric.observer, origin) {
                    match arrivals.len() {
                        0 => observer.frame(left, end.id, &frame, Fate::Lost),
                        1 => {}
                        _ => observer.frame(left, end.id, &frame, Fate::Doubled),
                    }
                }
                for (at, frame) in arrivals {
                    let Some(to) = end.to else {
                        let tile = end.id;
                        // If no other chip is being stepped, nothing takes the frames.
                        if self.cables.outgoing.len() < OUTGOING_MAX {
                            self.cables.outgoing.push(Outgoing { tile, at, frame });
                        }
                        continue;
                    };
                    self.tiles[to].deliver_frame(at, frame);
                    self.times[to].arrives(at);
                }
            }
        }
    }

    /// Frames for other chips since the last call, in the order in which they left each card.
    pub fn take_outgoing(&mut self) -> Vec<Outgoing> {
        std::mem::take(&mut self.cables.outgoing)
    }

    /// A frame of another chip arrives at a tile's card, no earlier than the moment up to which the machine has run. Without a
    /// card nothing happens.
    pub fn frame(&mut self, tile: TileId, at: Tick, mut frame: Frame) {
        frame.foreign = true;
        let found = self.tiles.iter_mut().find(|t| t.id() == tile);
        if let Some(tile) = found.filter(|t| t.card().is_some()) {
            tile.deliver_frame(at, frame);
        }
    }

    /// Nothing has happened up to this moment, and nothing will before it: sets the clock.
    pub fn advance(&mut self, to: Tick) {
        self.now = self.now.max(to);
    }

    /// When something happens next, not counting what other chips send later.
    pub fn next_time(&self) -> Tick {
        let tiles = self.tiles.iter().map(|t| t.next_time());
        let locals = self.mesh.tiles.iter().map(|t| t.next_time());
        let clusters = self.parts.clusters.iter().map(|t| t.next_time());
        tiles
            .chain(locals)
            .chain(clusters)
            .min()
            .unwrap_or(Tick::MAX)
            .min(self.fabric.next_time())
    }

    /// Counters of the network cards, by tile.
    pub fn network_cards(&self) -> Vec<(TileId, CardCounters)> {
        let cards = self.tiles.iter();
        let cards = cards.filter_map(|t| t.card().map(|card| (t.id(), card.counters)));
        let mut all: Vec<_> = cards.collect();
        all.sort_by_key(|(id, _)| *id);
        all
    }
}
