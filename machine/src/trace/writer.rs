//! Writes a trace file record by record, within a bound of bytes.
//!
//! Why it exists: one place interns names, closes open slices, and enforces the bound. It does not know the machine: it has tracks,
//! slices, instants and counters.

use super::proto::*;
use crate::observe::Missing;
use prost::Message;
use std::collections::BTreeMap;

/// Number of a track.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Track(u64);

/// The importance of an event when bytes run short.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Weight {
    /// May use half of the bytes, because there are many (links, banks, bucket levels).
    Detail,
    /// May take all of them.
    Normal,
}

/// An additional value of an event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Value<'a> {
    /// A number.
    Number(u64),
    /// A text; there are few different ones.
    Text(&'a str),
}

/// How an event relates to a flow.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Flow {
    /// The flow starts here or passes through.
    Through(u64),
    /// It ends here.
    End(u64),
}

/// An event without its time.
#[derive(Clone, Copy, Debug)]
pub struct Event<'a> {
    /// Its name.
    pub name: &'a str,
    /// Additional values.
    pub values: &'a [(&'a str, Value<'a>)],
    /// Its flow.
    pub flow: Option<Flow>,
}

impl<'a> Event<'a> {
    /// An event with a name only.
    pub fn new(name: &'a str) -> Self {
        Self {
            name,
            values: &[],
            flow: None,
        }
    }
}

/// The writer.
#[derive(Clone, Debug)]
pub struct Writer {
    bytes: Vec<u8>,
    limit: usize,
    /// Bytes of details.
    details: usize,
    ticks_per_second: u64,
    /// Number of the writer among those of one file, from 1.
    sequence: u32,
    next_track: u64,
    /// Ranks assigned to the children of each track.
    ranks: BTreeMap<u64, i32>,
    names: BTreeMap<String, u64>,
    value_names: BTreeMap<String, u64>,
    texts: BTreeMap<String, u64>,
    /// Open slices, with their depth.
    open: BTreeMap<Track, u32>,
    /// Last moment of each track, because slices of a track must not overlap.
    last: BTreeMap<Track, u64>,
    /// The moment up to which there may have been events. What is still open ends then.
    latest: u64,
    dropped: u64,
    truncated_at: Option<u64>,
}

/// Root of all tracks.
const ROOT: u64 = 0;
/// Bytes reserved for the ends of open slices and the note about missing events.
const RESERVE: usize = 1024;

impl Writer {
    /// A writer of at most `limit` bytes, not counting the descriptions of tracks and the ends of open slices. The files of writers
    /// with different numbers, from 0, form one file when concatenated.
    pub fn new(limit: usize, ticks_per_second: u64, number: u32) -> Self {
        let mut writer = Self {
            bytes: Vec::new(),
            limit,
            details: 0,
            ticks_per_second: ticks_per_second.max(1),
            sequence: number.saturating_add(1),
            next_track: u64::from(number) << 32 | 1,
            ranks: BTreeMap::new(),
            names: BTreeMap::new(),
            value_names: BTreeMap::new(),
            texts: BTreeMap::new(),
            open: BTreeMap::new(),
            last: BTreeMap::new(),
            latest: 0,
            dropped: 0,
            truncated_at: None,
        };
        append(
            &mut writer.bytes,
            &TracePacket {
                timestamp: Some(0),
                trusted_packet_sequence_id: Some(writer.sequence),
                sequence_flags: Some(SEQUENCE_CLEARED),
                first_packet_on_sequence: Some(true),
                ..TracePacket::default()
            },
        );
        writer
    }

    /// Converts a tick to nanoseconds, rounded down. Rounding never changes the order of two moments.
    pub fn nanoseconds(&self, tick: u64) -> u64 {
        let scaled = u128::from(tick) * 1_000_000_000 / u128::from(self.ticks_per_second);
        u64::try_from(scaled).unwrap_or(u64::MAX)
    }

    /// Number of events for which there was no room.
    pub fn dropped(&self) -> u64 {
        self.dropped
    }

    fn describe(
        &mut self,
        name: &str,
        parent: Option<Track>,
        counter: Option<CounterDescriptor>,
    ) -> Track {
        let track = Track(self.next_track);
        self.next_track += 1;
        let rank = self.ranks.entry(parent.map_or(ROOT, |p| p.0)).or_insert(0);
        *rank += 1;
        let descriptor = TrackDescriptor {
            uuid: Some(track.0),
            name: Some(name.to_owned()),
            parent_uuid: parent.map(|p| p.0),
            child_ordering: counter.is_none().then_some(ORDER_EXPLICIT),
            sibling_order_rank: Some(*rank),
            counter,
        };
        let packet = TracePacket {
            timestamp: Some(0),
            trusted_packet_sequence_id: Some(self.sequence),
            track_descriptor: Some(descriptor),
            ..TracePacket::default()
        };
        append(&mut self.bytes, &packet);
        track
    }

    /// A track for slices and instants, or a heading for others.
    pub fn track(&mut self, name: &str, parent: Option<Track>) -> Track {
        self.describe(name, parent, None)
    }

    /// A track for a counter of bytes.
    pub fn bytes_counter(&mut self, name: &str, parent: Track) -> Track {
        let counter = CounterDescriptor {
            unit: Some(UNIT_BYTES),
            unit_name: None,
        };
        self.describe(name, Some(parent), Some(counter))
    }

    /// A track for a counter of something else.
    pub fn counter(&mut self, name: &str, unit: &str, parent: Track) -> Track {
        let counter = CounterDescriptor {
            unit: None,
            unit_name: Some(unit.to_owned()),
        };
        self.describe(name, Some(parent), Some(counter))
    }

    /// Writes an event if there is room. If not, counts it as dropped and returns false.
    fn write(&mut self, weight: Weight, tick: u64, event: TrackEvent, new: InternedData) -> bool {
        let packet = TracePacket {
            timestamp: Some(self.nanoseconds(tick)),
            trusted_packet_sequence_id: Some(self.sequence),
            sequence_flags: Some(SEQUENCE_NEEDED),
            interned_data: (!new.is_empty()).then_some(new),
            track_event: Some(event),
            ..TracePacket::default()
        };
        let size = packet.encoded_len() + 8;
        let room = self.limit.saturating_sub(RESERVE);
        let fits = match weight {
            Weight::Detail => self.details + size <= room / 2,
            Weight::Normal => true,
        };
        if !fits || self.bytes.len() + size > room {
            self.dropped += 1;
            self.truncated_at.get_or_insert(tick);
            return false;
        }
        if weight == Weight::Detail {
            self.details += size;
        }
        append(&mut self.bytes, &packet);
        self.reach(tick);
        // Not earlier: a name that was not written must not count as known.
        if let Some(new) = packet.interned_data {
            let learn = |map: &mut BTreeMap<String, u64>, names: Vec<Name>| {
                for name in names {
                    map.insert(name.name.unwrap_or_default(), name.iid.unwrap_or_default());
                }
            };
            learn(&mut self.names, new.event_names);
            learn(&mut self.value_names, new.debug_annotation_names);
            learn(&mut self.texts, new.debug_annotation_string_values);
        }
        true
    }

    fn event(
        &self,
        kind: i32,
        track: Track,
        tick: u64,
        event: &Event<'_>,
    ) -> (TrackEvent, InternedData) {
        let mut new = InternedData::default();
        let name_iid = intern(&self.names, &mut new.event_names, event.name);
        let mut debug_annotations = vec![DebugAnnotation {
            name_iid: Some(intern(
                &self.value_names,
                &mut new.debug_annotation_names,
                "tick",
            )),
            uint_value: Some(tick),
            string_value_iid: None,
        }];
        for (name, value) in event.values {
            let name_iid = intern(&self.value_names, &mut new.debug_annotation_names, name);
            let (uint_value, string_value_iid) = match value {
                Value::Number(number) => (Some(*number), None),
                Value::Text(text) => {
                    let texts = &mut new.debug_annotation_string_values;
                    (None, Some(intern(&self.texts, texts, text)))
                }
            };
            debug_annotations.push(DebugAnnotation {
                name_iid: Some(name_iid),
                uint_value,
                string_value_iid,
            });
        }
        let mut record = TrackEvent {
            r#type: Some(kind),
            track_uuid: Some(track.0),
            name_iid: Some(name_iid),
            debug_annotations,
            ..TrackEvent::default()
        };
        match event.flow {
            Some(Flow::Through(flow)) => record.flow_ids.push(flow),
            Some(Flow::End(flow)) => record.terminating_flow_ids.push(flow),
            None => {}
        }
        (record, new)
    }

    /// Moments of a track never go back, so that slices nest.
    fn in_order(&mut self, track: Track, tick: u64) -> u64 {
        let last = self.last.entry(track).or_insert(tick);
        *last = tick.max(*last);
        *last
    }

    /// What is still open at the end has lasted at least until this moment.
    pub fn reach(&mut self, tick: u64) {
        self.latest = self.latest.max(tick);
    }

    /// Begins a slice. Returns false if there was no room; the slice is then not open.
    pub fn begin(&mut self, weight: Weight, track: Track, tick: u64, event: &Event<'_>) -> bool {
        let tick = self.in_order(track, tick);
        let (record, new) = self.event(SLICE_BEGIN, track, tick, event);
        let written = self.write(weight, tick, record, new);
        if written {
            *self.open.entry(track).or_default() += 1;
        }
        written
    }

    /// Ends the most recent open slice of the track, if any. Ends always have room, reserved by their begins.
    pub fn end(&mut self, track: Track, tick: u64) {
        let Some(depth) = self.open.get_mut(&track).filter(|depth| **depth != 0) else {
            return;
        };
        *depth -= 1;
        let tick = self.in_order(track, tick);
        let packet = self.end_packet(track, tick);
        append(&mut self.bytes, &packet);
    }

    fn end_packet(&self, track: Track, tick: u64) -> TracePacket {
        TracePacket {
            timestamp: Some(self.nanoseconds(tick)),
            trusted_packet_sequence_id: Some(self.sequence),
            sequence_flags: Some(SEQUENCE_NEEDED),
            track_event: Some(TrackEvent {
                r#type: Some(SLICE_END),
                track_uuid: Some(track.0),
                ..TrackEvent::default()
            }),
            ..TracePacket::default()
        }
    }

    /// A whole slice.
    pub fn slice(&mut self, weight: Weight, track: Track, from: u64, to: u64, event: &Event<'_>) {
        if self.begin(weight, track, from, event) {
            self.end(track, to);
        }
    }

    /// Writes an event without length.
    pub fn instant(&mut self, weight: Weight, track: Track, tick: u64, event: &Event<'_>) {
        let (record, new) = self.event(INSTANT, track, tick, event);
        self.write(weight, tick, record, new);
    }

    /// A new value of a counter.
    pub fn count(&mut self, weight: Weight, track: Track, tick: u64, value: i64) {
        let record = TrackEvent {
            r#type: Some(COUNTER),
            track_uuid: Some(track.0),
            counter_value: Some(value),
            ..TrackEvent::default()
        };
        self.write(weight, tick, record, InternedData::default());
    }

    /// The events for which there was no room.
    pub fn missing(&self) -> Missing {
        Missing {
            events: self.dropped,
            from: self.truncated_at,
        }
    }

    /// The file, with everything closed that is still open.
    pub fn finish(&self) -> Vec<u8> {
        let mut bytes = self.bytes.clone();
        for (&track, &depth) in &self.open {
            let last = self.last.values().copied().fold(self.latest, u64::max);
            for _ in 0..depth {
                append(&mut bytes, &self.end_packet(track, last));
            }
        }
        if let Some(tick) = self.truncated_at {
            let track = Track(self.next_track);
            let name = format!("incomplete: {} events had no room", self.dropped);
            let packet = TracePacket {
                timestamp: Some(self.nanoseconds(tick)),
                trusted_packet_sequence_id: Some(self.sequence),
                track_descriptor: Some(TrackDescriptor {
                    uuid: Some(track.0),
                    name: Some(name),
                    ..TrackDescriptor::default()
                }),
                ..TracePacket::default()
            };
            append(&mut bytes, &packet);
            let (event, new) = self.event(
                INSTANT,
                track,
                tick,
                &Event::new("first event that is missing"),
            );
            let packet = TracePacket {
                timestamp: Some(self.nanoseconds(tick)),
                trusted_packet_sequence_id: Some(self.sequence),
                sequence_flags: Some(SEQUENCE_NEEDED),
                interned_data: (!new.is_empty()).then_some(new),
                track_event: Some(event),
                ..TracePacket::default()
            };
            append(&mut bytes, &packet);
        }
        bytes
    }
}

/// Number of a name. Notes new names.
fn intern(known: &BTreeMap<String, u64>, new: &mut Vec<Name>, name: &str) -> u64 {
    if let Some(&iid) = known.get(name) {
        return iid;
    }
    if let Some(found) = new.iter().find(|n| n.name.as_deref() == Some(name)) {
        return found.iid.unwrap_or_default();
    }
    let iid = (known.len() + new.len() + 1) as u64;
    new.push(Name {
        iid: Some(iid),
        name: Some(name.to_owned()),
    });
    iid
}

/// Appends a record: field 1 of the file, length-delimited.
fn append(bytes: &mut Vec<u8>, packet: &TracePacket) {
    bytes.push(1 << 3 | 2);
    // A vector grows as needed, so encoding cannot fail.
    let mut record = packet.encode_length_delimited_to_vec();
    bytes.append(&mut record);
}
