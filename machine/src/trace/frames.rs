//! Frames of network cards: which ones left, which arrived, and their fate.
//!
//! Why it exists: a request over a cable passes through two drivers, two cards and the cable, and a picture shows where it is. Each
//! card has three tracks: what its link sends, what arrives, and what it stores. A frame keeps one number from the card that sends
//! it to the card that stores or drops it, even on another chip, so an arrow joins them. What it deliberately does not know: the
//! contents of a frame after its first three fields.

use super::{CHIP_FLOWS, Event, Flow, Tracer, Track, Value, Weight};
use crate::device::network::{DropReason, Fate, Frame};
use crate::types::{Tick, TileId};

/// Flows of frames have this bit; those of messages and markers do not, or have a higher one.
const FRAME_FLOWS: u64 = 1 << 62;
/// Position of the tile in a flow's number.
const TILE_SHIFT: u32 = 44;
/// Bytes of a frame's addresses and type.
const HEADER: usize = 14;

/// The tracks of a card.
#[derive(Clone, Copy, Debug)]
pub(super) struct CardTracks {
    sent: Track,
    arrived: Track,
    stored: Track,
}

impl CardTracks {
    pub(super) fn new(track: &mut impl FnMut(&str) -> Track) -> Self {
        Self {
            sent: track("frames sent"),
            arrived: track("frames arrived"),
            stored: track("frames stored"),
        }
    }
}

/// The common name of a frame's protocol (IEEE 802 protocol numbers).
fn protocol(frame: &[u8]) -> &'static str {
    match frame.get(12..HEADER) {
        Some([0x08, 0x00]) => "IPv4",
        Some([0x08, 0x06]) => "ARP",
        Some([0x86, 0xDD]) => "IPv6",
        Some([0x81, 0x00]) => "VLAN",
        _ => "frame",
    }
}

fn address(bytes: Option<&[u8]>) -> String {
    let bytes = bytes.unwrap_or_default().iter();
    let parts: Vec<String> = bytes.map(|byte| format!("{byte:02x}")).collect();
    parts.join(":")
}

fn reason(reason: DropReason) -> &'static str {
    match reason {
        DropReason::Deaf => "no driver listens",
        DropReason::Full => "no room: earlier frames wait for buffers",
        DropReason::SmallBuffer => "the driver's buffer is too small",
        DropReason::Stopped => "the card was stopped while it waited",
    }
}

impl Tracer {
    pub(super) fn show_frame(&mut self, at: Tick, tile: TileId, frame: &Frame, fate: Fate) {
        let Some(tracks) = self.tiles.get(&tile).and_then(|tile| tile.card) else {
            return;
        };
        let from = match fate {
            Fate::Stored { from, .. } => from,
            _ => at,
        };
        if !self.wanted(from) {
            return;
        }
        let chip = self.chip_flow() ^ u64::from(frame.foreign) << CHIP_FLOWS;
        let flow = FRAME_FLOWS | chip | u64::from(frame.tile) << TILE_SHIFT | frame.number;
        let [to, by] = [frame.get(..6), frame.get(6..12)].map(address);
        let kind = frame
            .get(12..HEADER)
            .map_or(0, |kind| u64::from(u16::from_be_bytes([kind[0], kind[1]])));
        let kind = format!("0x{kind:04x}");
        let mut values = vec![
            ("bytes", Value::Number(frame.len() as u64)),
            ("destination", Value::Text(&to)),
            ("source", Value::Text(&by)),
            ("EtherType", Value::Text(&kind)),
            ("number", Value::Number(frame.number)),
        ];
        let received = matches!(fate, Fate::Arrived | Fate::Stored { .. } | Fate::Dropped(_));
        if received {
            values.push(("sender", Value::Number(frame.tile.into())));
            if frame.foreign {
                values.push(("chip", Value::Text(&self.options.chip.peer)));
            }
        }
        let name = match fate {
            Fate::Malformed => "not a frame: not sent",
            Fate::Lost => "lost on the cable",
            Fate::Doubled => "doubled by the cable",
            Fate::Dropped(_) => "dropped",
            Fate::Sent { .. } | Fate::Arrived | Fate::Stored { .. } => protocol(frame),
        };
        match fate {
            Fate::Dropped(why) => values.push(("reason", Value::Text(reason(why)))),
            Fate::Stored { arrived, .. } => values.push(("arrived", Value::Number(arrived))),
            _ => {}
        }
        let flow = Some(Flow::Through(flow));
        let mut event = Event {
            name,
            values: &values,
            flow,
        };
        let (until, writer) = (self.options.until, &mut self.writer);
        match fate {
            Fate::Malformed => {
                event.values = &[];
                event.flow = None;
                writer.instant(Weight::Normal, tracks.sent, at, &event);
            }
            Fate::Lost | Fate::Doubled => {
                writer.instant(Weight::Normal, tracks.sent, at, &event);
            }
            Fate::Arrived | Fate::Dropped(_) => {
                writer.instant(Weight::Normal, tracks.arrived, at, &event);
            }
            Fate::Sent { left } => {
                writer.slice(Weight::Normal, tracks.sent, at, left.min(until), &event);
            }
            Fate::Stored { .. } => {
                writer.slice(Weight::Normal, tracks.stored, from, at.min(until), &event);
            }
        }
    }
}
