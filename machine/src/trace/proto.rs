//! The part of Perfetto's trace format that is used here, as messages with the public field numbers
//! (`protos/perfetto/trace/trace_packet.proto` and `track_event/*.proto` of the Perfetto project).
//!
//! Why it exists: the format is a stable interface, a dozen fields of it suffice, and no build step should need a protobuf
//! compiler. It knows nothing of the machine.

/// A file.
#[derive(Clone, PartialEq, prost::Message)]
pub struct Trace {
    /// Its records.
    #[prost(message, repeated, tag = "1")]
    pub packet: Vec<TracePacket>,
}

/// A record.
#[derive(Clone, PartialEq, prost::Message)]
pub struct TracePacket {
    /// Nanoseconds.
    #[prost(uint64, optional, tag = "8")]
    pub timestamp: Option<u64>,
    /// The writer. Interned names belong to one writer.
    #[prost(uint32, optional, tag = "10")]
    pub trusted_packet_sequence_id: Option<u32>,
    /// An event.
    #[prost(message, optional, tag = "11")]
    pub track_event: Option<TrackEvent>,
    /// Names used from here on.
    #[prost(message, optional, tag = "12")]
    pub interned_data: Option<InternedData>,
    /// 1: interned names start afresh; 2: they are used.
    #[prost(uint32, optional, tag = "13")]
    pub sequence_flags: Option<u32>,
    /// A track.
    #[prost(message, optional, tag = "60")]
    pub track_descriptor: Option<TrackDescriptor>,
    /// This is the writer's first record.
    #[prost(bool, optional, tag = "87")]
    pub first_packet_on_sequence: Option<bool>,
}

/// [`TracePacket::sequence_flags`]: interned names start afresh.
pub const SEQUENCE_CLEARED: u32 = 1;
/// [`TracePacket::sequence_flags`]: interned names are used.
pub const SEQUENCE_NEEDED: u32 = 2;

/// A line of the picture.
#[derive(Clone, PartialEq, prost::Message)]
pub struct TrackDescriptor {
    /// Number of the track.
    #[prost(uint64, optional, tag = "1")]
    pub uuid: Option<u64>,
    /// Its name.
    #[prost(string, optional, tag = "2")]
    pub name: Option<String>,
    /// The parent track.
    #[prost(uint64, optional, tag = "5")]
    pub parent_uuid: Option<u64>,
    /// Set if it is a counter.
    #[prost(message, optional, tag = "8")]
    pub counter: Option<CounterDescriptor>,
    /// Order of its child tracks: 3 is by rank.
    #[prost(int32, optional, tag = "11")]
    pub child_ordering: Option<i32>,
    /// Rank among its siblings.
    #[prost(int32, optional, tag = "12")]
    pub sibling_order_rank: Option<i32>,
}

/// [`TrackDescriptor::child_ordering`]: by rank.
pub const ORDER_EXPLICIT: i32 = 3;

/// The unit of a counter.
#[derive(Clone, PartialEq, prost::Message)]
pub struct CounterDescriptor {
    /// 3: bytes.
    #[prost(int32, optional, tag = "3")]
    pub unit: Option<i32>,
    /// Another unit.
    #[prost(string, optional, tag = "6")]
    pub unit_name: Option<String>,
}

/// [`CounterDescriptor::unit`]: bytes.
pub const UNIT_BYTES: i32 = 3;

/// Something that happens on a track.
#[derive(Clone, PartialEq, prost::Message)]
pub struct TrackEvent {
    /// Additional values.
    #[prost(message, repeated, tag = "4")]
    pub debug_annotations: Vec<DebugAnnotation>,
    /// One of the constants below.
    #[prost(int32, optional, tag = "9")]
    pub r#type: Option<i32>,
    /// Interned name.
    #[prost(uint64, optional, tag = "10")]
    pub name_iid: Option<u64>,
    /// The track.
    #[prost(uint64, optional, tag = "11")]
    pub track_uuid: Option<u64>,
    /// Value of a counter.
    #[prost(int64, optional, tag = "30")]
    pub counter_value: Option<i64>,
    /// Flows that pass here.
    #[prost(fixed64, repeated, packed = "false", tag = "47")]
    pub flow_ids: Vec<u64>,
    /// Flows that end here.
    #[prost(fixed64, repeated, packed = "false", tag = "48")]
    pub terminating_flow_ids: Vec<u64>,
}

/// [`TrackEvent::type`]: a slice begins.
pub const SLICE_BEGIN: i32 = 1;
/// [`TrackEvent::type`]: a slice ends.
pub const SLICE_END: i32 = 2;
/// [`TrackEvent::type`]: an event without length.
pub const INSTANT: i32 = 3;
/// [`TrackEvent::type`]: a value of a counter.
pub const COUNTER: i32 = 4;

/// A value with a name.
#[derive(Clone, PartialEq, prost::Message)]
pub struct DebugAnnotation {
    /// Interned name.
    #[prost(uint64, optional, tag = "1")]
    pub name_iid: Option<u64>,
    /// The value, if it is a number.
    #[prost(uint64, optional, tag = "3")]
    pub uint_value: Option<u64>,
    /// The value, if it is an interned text.
    #[prost(uint64, optional, tag = "17")]
    pub string_value_iid: Option<u64>,
}

/// Names and their numbers.
#[derive(Clone, PartialEq, prost::Message)]
pub struct InternedData {
    /// Names of events.
    #[prost(message, repeated, tag = "2")]
    pub event_names: Vec<Name>,
    /// Names of values.
    #[prost(message, repeated, tag = "3")]
    pub debug_annotation_names: Vec<Name>,
    /// Texts that are values.
    #[prost(message, repeated, tag = "29")]
    pub debug_annotation_string_values: Vec<Name>,
}

impl InternedData {
    /// Nothing new.
    pub fn is_empty(&self) -> bool {
        self.event_names.is_empty()
            && self.debug_annotation_names.is_empty()
            && self.debug_annotation_string_values.is_empty()
    }
}

/// A name and its number. (On the wire a string and bytes are the same.)
#[derive(Clone, PartialEq, prost::Message)]
pub struct Name {
    /// The number, from 1.
    #[prost(uint64, optional, tag = "1")]
    pub iid: Option<u64>,
    /// The name.
    #[prost(string, optional, tag = "2")]
    pub name: Option<String>,
}
