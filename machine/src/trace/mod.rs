//! Traces of a run in Perfetto's own format, to be opened at ui.perfetto.dev or with its command-line tools.
//!
//! Why it exists: a table says that a request waited; a picture shows what else happened at that time. It turns reports of the
//! machine into tracks: what each hart does and for which activity, commands of its data transfer unit, messages as arrows between
//! tiles, levels of token buckets, work of links and DRAM banks, utilisation of links, frames of network cards as arrows over their
//! cables, and markers of the software. It cannot influence the machine, and the same run gives the same bytes.
//!
//! Timestamps are nanoseconds, rounded down; each event carries its exact tick as an argument. The file's size is bounded: events
//! without room are counted, and a track at the end of the file says so.

mod frames;
pub mod proto;
mod writer;

#[cfg(test)]
mod tests;

pub use writer::{Event, Flow, Track, Value, Weight, Writer};

use crate::config::PlatformConfig;
use crate::device::network::{Fate, Frame};
use crate::dram::BankActivity;
use crate::dtu::Observation;
use crate::noc::topology::Shape;
use crate::noc::{LinkActivity, Node};
use crate::observe::{HartState, Marker, Missing, Observer};
use crate::types::{Owner, Tick, TileId};
use bulkhead_abi::dtu::{DtuError, IDLE_ACTIVITY, Opcode, TILEMUX_ACTIVITY};
use bulkhead_abi::marker::{MarkerKind, Since};
use std::collections::{BTreeMap, BTreeSet};

/// The parts of a run to record.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TraceOptions {
    /// Maximum bytes of the file, not counting the descriptions of tracks and the ends of open slices.
    pub limit: usize,
    /// First tick to record.
    pub from: Tick,
    /// First tick after the recording.
    pub until: Tick,
    /// Nanoseconds over which the utilisation of a link is averaged.
    pub interval: u64,
    /// Period and length, in ticks, of the spans in which individual packets, banks and bucket levels are recorded, so that a long
    /// run has details throughout. `None`: always, until half of the bytes are used up.
    pub sample: Option<(Tick, Tick)>,
    /// Records only what the harts and units of these tiles do and cause; `None`: all tiles.
    pub tiles: Option<BTreeSet<TileId>>,
    /// The applications on each tile, for the headings of tracks.
    pub residents: BTreeMap<TileId, String>,
    /// Which of several chips this is.
    pub chip: Chip,
}

/// A chip among several connected by cables. Their traces, concatenated, form one file.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Chip {
    /// 0 or 1.
    pub number: u8,
    /// The parent track of all others; empty: none.
    pub heading: String,
    /// Name of the chip at the other end of the cable.
    pub peer: String,
}

impl Default for TraceOptions {
    fn default() -> Self {
        Self {
            limit: 16 << 20,
            from: 0,
            until: Tick::MAX,
            interval: 10_000,
            sample: None,
            tiles: None,
            residents: BTreeMap::new(),
            chip: Chip::default(),
        }
    }
}

impl TraceOptions {
    /// Whether the activity of a tile is recorded.
    fn shows(&self, tile: TileId) -> bool {
        let mut wanted = self.tiles.iter();
        wanted.all(|tiles| tiles.contains(&tile))
    }
}

/// Lanes for overlapping spans of one tile; further spans are recorded as instants.
const LANES: usize = 8;

/// Work that begins with one marker and ends with another.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Open {
    job: bool,
    value: u64,
}

#[derive(Debug)]
struct HartTrack {
    track: Track,
    state: HartState,
    activity: u16,
}

#[derive(Debug)]
struct TileTracks {
    group: Track,
    /// By port.
    harts: Vec<HartTrack>,
    commands: Track,
    messages: Track,
    markers: Track,
    card: Option<frames::CardTracks>,
    buckets: BTreeMap<u8, Track>,
    lanes: Vec<(Track, Option<Open>)>,
}

#[derive(Debug)]
struct LinkTracks {
    packets: Track,
    utilisation: Track,
    /// Start of the interval being summed up, and the ticks for which the link was busy in it.
    interval: Tick,
    busy: Tick,
}

/// Records a run.
#[derive(Debug)]
pub struct Tracer {
    writer: Writer,
    options: TraceOptions,
    /// Ticks of an interval of utilisation.
    interval: Tick,
    tiles: BTreeMap<TileId, TileTracks>,
    links: Vec<LinkTracks>,
    banks: BTreeMap<(TileId, u16), Track>,
    activities: BTreeMap<Owner, String>,
    tiled: bool,
}

impl Tracer {
    /// A tracer for a platform. Tracks exist from the start, so they are in configuration order.
    pub fn new(config: &PlatformConfig, options: TraceOptions) -> Self {
        let chip = &options.chip;
        let mut writer = Writer::new(options.limit, config.ticks_per_second, chip.number.into());
        let root = (!chip.heading.is_empty()).then(|| writer.track(&chip.heading, None));
        let mut tiles = BTreeMap::new();
        for tile in config.tiles.iter().filter(|tile| options.shows(tile.id)) {
            let heading = match options.residents.get(&tile.id) {
                Some(residents) => format!("tile {}: {residents}", tile.id),
                None => format!("tile {}", tile.id),
            };
            let group = writer.track(&heading, root);
            let mut child = |name: &str| writer.track(name, Some(group));
            let hart = |track: Track, activity: u16| HartTrack {
                track,
                state: HartState::Halted,
                activity,
            };
            // A hart of a cluster has its port as its activity.
            let harts = match &tile.cluster {
                Some(cluster) => (0..cluster.harts.len() as u16)
                    .map(|port| hart(child(&format!("hart {port}")), port))
                    .collect(),
                None => vec![hart(child("hart"), TILEMUX_ACTIVITY)],
            };
            let tracks = TileTracks {
                group,
                harts,
                commands: child("DTU commands"),
                messages: child("messages"),
                markers: child("markers"),
                card: tile
                    .network_card
                    .is_some()
                    .then(|| frames::CardTracks::new(&mut child)),
                buckets: BTreeMap::new(),
                lanes: Vec::new(),
            };
            tiles.insert(tile.id, tracks);
        }
        let mut banks = BTreeMap::new();
        for memory in &config.memories {
            let group = writer.track(&format!("memory {}", memory.id), root);
            let map = memory.dram.controller.map;
            let all = map.banks * map.channels;
            for bank in 0..all.min(u16::MAX.into()) as u16 {
                let track = writer.track(&format!("bank {bank}"), Some(group));
                banks.insert((memory.id, bank), track);
            }
        }
        let mut places: Vec<(TileId, u16)> = Vec::new();
        places.extend(config.tiles.iter().map(|t| (t.id, t.router)));
        places.extend(config.beside());
        places.extend(config.memories.iter().map(|m| (m.id, m.router)));
        let shape = Shape::new(config.network.topology, &places);
        let network = writer.track("network", root);
        let links = shape.links.iter().map(|link| {
            let name = format!("{} to {}", node(link.from), node(link.to));
            LinkTracks {
                packets: writer.track(&name, Some(network)),
                utilisation: writer.counter(&format!("{name}, utilisation"), "%", network),
                interval: 0,
                busy: 0,
            }
        });
        let links = links.collect();
        let interval =
            u128::from(options.interval) * u128::from(config.ticks_per_second) / 1_000_000_000;
        Self {
            interval: u64::try_from(interval).unwrap_or(Tick::MAX).max(1),
            tiled: config.tiles.iter().any(|tile| tile.dtu.is_some()),
            writer,
            options,
            tiles,
            links,
            banks,
            activities: BTreeMap::new(),
        }
    }

    /// Gives an activity the name that its slices carry from now on.
    pub fn name_activity(&mut self, owner: Owner, name: &str) {
        self.activities.insert(owner, name.to_owned());
    }

    /// Number of events for which there was no room.
    pub fn dropped(&self) -> u64 {
        self.writer.dropped()
    }

    fn wanted(&self, at: Tick) -> bool {
        (self.options.from..self.options.until).contains(&at)
    }

    /// Whether individual packets, banks and bucket levels are recorded at this moment.
    fn wanted_in_detail(&self, at: Tick) -> bool {
        let sampled = self
            .options
            .sample
            .is_none_or(|(period, length)| at % period.max(1) < length);
        sampled && self.wanted(at)
    }

    /// The bits that distinguish this chip's flows from those of the other one.
    fn chip_flow(&self) -> u64 {
        u64::from(self.options.chip.number & 1) << CHIP_FLOWS
    }

    fn owner_name(&self, owner: Owner) -> String {
        if let Some(name) = self.activities.get(&owner) {
            return name.clone();
        }
        match owner.activity {
            _ if !self.tiled => "running".to_owned(),
            TILEMUX_ACTIVITY => "TileMux".to_owned(),
            IDLE_ACTIVITY => "idle".to_owned(),
            activity => format!("activity {activity}"),
        }
    }

    /// The owner of a packet or access: an activity with a name, or a tile.
    fn sender(&self, owner: Owner) -> String {
        let name = self.activities.get(&owner);
        name.map_or_else(|| format!("tile {}", owner.tile), Clone::clone)
    }

    fn hart_track(&mut self, (tile, port): (TileId, usize)) -> Option<&mut HartTrack> {
        self.tiles.get_mut(&tile)?.harts.get_mut(port)
    }

    /// Ends the current slice of a hart's track and begins one with the current state.
    fn show_hart(&mut self, at: Tick, tile: TileId, hart: (Track, HartState, u16)) {
        let (hart, state, activity) = hart;
        // This also happens outside the window: a slice that began in the window ends where the window ends.
        self.writer.end(hart, at.min(self.options.until));
        // A slice that begins before the window is shown from the start of the window.
        let from = at.max(self.options.from);
        if from >= self.options.until {
            return;
        }
        let owner = Owner::new(tile, activity);
        let name = match state {
            HartState::Running => self.owner_name(owner),
            HartState::Idle => format!("{} waits", self.owner_name(owner)),
            HartState::Halted => return,
        };
        self.writer
            .begin(Weight::Normal, hart, from, &Event::new(&name));
    }

    fn bucket(&mut self, at: Tick, tile: TileId, bucket: u8, bytes: i64) {
        let Some(tracks) = self.tiles.get_mut(&tile) else {
            return;
        };
        let (group, writer) = (tracks.group, &mut self.writer);
        let track = *tracks
            .buckets
            .entry(bucket)
            .or_insert_with(|| writer.bytes_counter(&format!("token bucket {bucket}"), group));
        writer.count(Weight::Detail, track, at, bytes);
    }

    /// Begins or ends a span in the first free lane of the tile.
    fn span(&mut self, marker: &Marker, open: Open, begin: bool) -> bool {
        let Some(tracks) = self.tiles.get_mut(&marker.tile) else {
            return false;
        };
        let wanted = if begin { None } else { Some(open) };
        let found = tracks.lanes.iter().position(|lane| lane.1 == wanted);
        if begin {
            let lane = match found {
                Some(lane) => lane,
                None if tracks.lanes.len() < LANES => {
                    let name = format!("spans {}", tracks.lanes.len() + 1);
                    let track = self.writer.track(&name, Some(tracks.group));
                    tracks.lanes.push((track, None));
                    tracks.lanes.len() - 1
                }
                None => return false,
            };
            let event = Event {
                name: if open.job { "job" } else { "span" },
                values: &[
                    ("value", Value::Number(open.value)),
                    ("activity", Value::Number(marker.activity.into())),
                ],
                flow: None,
            };
            let track = tracks.lanes[lane].0;
            if self
                .writer
                .begin(Weight::Normal, track, marker.tick, &event)
            {
                tracks.lanes[lane].1 = Some(open);
            }
            true
        } else if let Some(lane) = found {
            tracks.lanes[lane].1 = None;
            let end = marker.tick.min(self.options.until);
            self.writer.end(tracks.lanes[lane].0, end);
            true
        } else {
            false
        }
    }

    /// Counts a packet in the intervals that it touches, and writes the intervals that are over.
    fn utilise(&mut self, activity: &LinkActivity) {
        let interval = self.interval;
        let Some(link) = self.links.get_mut(usize::from(activity.link)) else {
            return;
        };
        let mut from = activity.start;
        while from < activity.end {
            let start = from / interval * interval;
            if start != link.interval {
                close_interval(&mut self.writer, &self.options, link, interval);
                if start > link.interval.saturating_add(interval) && link.busy != 0 {
                    // The link has been idle since.
                    let idle = link.interval.saturating_add(interval);
                    count_percent(&mut self.writer, &self.options, link.utilisation, idle, 0);
                }
                (link.interval, link.busy) = (start, 0);
            }
            let end = activity.end.min(start.saturating_add(interval));
            link.busy += end - from;
            from = end;
        }
    }
}

fn close_interval(writer: &mut Writer, options: &TraceOptions, link: &LinkTracks, interval: Tick) {
    if link.busy != 0 {
        let percent = u128::from(link.busy) * 100 / u128::from(interval);
        count_percent(
            writer,
            options,
            link.utilisation,
            link.interval,
            percent as i64,
        );
    }
}

/// The value applies from the start of its interval.
fn count_percent(writer: &mut Writer, options: &TraceOptions, track: Track, at: Tick, value: i64) {
    if (options.from..options.until).contains(&at) {
        writer.count(Weight::Detail, track, at, value);
    }
}

fn node(node: Node) -> String {
    match node {
        Node::Tile(tile) => format!("tile {tile}"),
        Node::Router(router) => format!("router {router}"),
    }
}

fn opcode_name(opcode: Opcode) -> &'static str {
    match opcode {
        Opcode::Idle => "idle",
        Opcode::Send => "send",
        Opcode::Reply => "reply",
        Opcode::Read => "read",
        Opcode::Write => "write",
        Opcode::Fetch => "fetch",
        Opcode::Acknowledge => "acknowledge",
        Opcode::Sleep => "sleep",
    }
}

fn error_name(error: DtuError) -> &'static str {
    match error {
        DtuError::None => "none",
        DtuError::InvalidEndpoint => "invalid endpoint",
        DtuError::ForeignEndpoint => "foreign endpoint",
        DtuError::TranslationFault => "translation fault",
        DtuError::BadSize => "bad size",
        DtuError::NoCredits => "no credits",
        DtuError::NoSpace => "no space",
        DtuError::ReceiverGone => "receiver gone",
        DtuError::OutOfBounds => "out of bounds",
        DtuError::NoPermission => "no permission",
        DtuError::BadMessage => "bad message",
        DtuError::NoReply => "no right to reply",
        DtuError::Aborted => "aborted",
        DtuError::UnknownCommand => "unknown command",
        DtuError::TargetRefused => "target refused",
        DtuError::Busy => "busy",
        DtuError::Woken => "woken",
    }
}

fn marker_name(kind: u16, value: u64) -> &'static str {
    match MarkerKind::from_code(kind) {
        Some(MarkerKind::FlowBegin) => "flow begins",
        Some(MarkerKind::FlowEnd) => "flow ends",
        Some(MarkerKind::SpanBegin) => "span begins",
        Some(MarkerKind::SpanEnd) => "span ends",
        Some(MarkerKind::JobDue) => "next job due",
        Some(MarkerKind::JobRelease) => "job begins",
        Some(MarkerKind::JobComplete) => "job complete",
        Some(MarkerKind::DeadlineMiss) => "deadline missed",
        Some(MarkerKind::MeasureBegin) => "measurement begins",
        Some(MarkerKind::MeasureEnd) => "measurement ends",
        Some(MarkerKind::ActivityFault) => "activity faulted",
        Some(MarkerKind::Check) => "check value",
        Some(MarkerKind::HeapRefused) => "heap refused bytes",
        Some(MarkerKind::ActivityBegins) => "activity begins",
        Some(MarkerKind::ActivityName) => "its name",
        Some(MarkerKind::MuxReady) if value == Since::NEVER => "activity waits",
        Some(MarkerKind::MuxReady) => "activity ready",
        // The hart's track already shows these.
        Some(
            MarkerKind::MuxEnters
            | MarkerKind::MuxInterrupts
            | MarkerKind::MuxLeaves
            | MarkerKind::MuxRuns
            | MarkerKind::MuxMember
            | MarkerKind::MuxBudget
            | MarkerKind::MuxWorks
            | MarkerKind::KernelAsks,
        ) => "TileMux",
        None => "marker",
    }
}

/// Flows of messages, of frames and of markers must not share numbers.
const MARKER_FLOWS: u64 = 1 << 63;
/// The bit that distinguishes flows of the second chip from those of the first one.
const CHIP_FLOWS: u32 = 61;

impl Observer for Tracer {
    fn unit(&mut self, at: Tick, tile: TileId, observation: &Observation) {
        let Some(tracks) = self.tiles.get(&tile) else {
            return;
        };
        let (commands, messages) = (tracks.commands, tracks.messages);
        let chip = self.chip_flow();
        let message_flow = |flow: u64| flow | chip;
        // An end outside the window belongs to a begin inside it, or to nothing.
        if !self.wanted(at) && !matches!(observation, Observation::CommandEnd { .. }) {
            return;
        }
        let writer = &mut self.writer;
        match *observation {
            Observation::CommandBegin {
                opcode,
                endpoint,
                owner,
            } => {
                let event = Event {
                    name: opcode_name(opcode),
                    values: &[
                        ("endpoint", Value::Number(endpoint.into())),
                        ("activity", Value::Number(owner.activity.into())),
                    ],
                    flow: None,
                };
                writer.begin(Weight::Normal, commands, at, &event);
            }
            Observation::CommandEnd { error, .. } => {
                if !matches!(error, DtuError::None | DtuError::Woken) && self.wanted(at) {
                    let event = Event::new(error_name(error));
                    self.writer.instant(Weight::Normal, commands, at, &event);
                }
                self.writer.end(commands, at.min(self.options.until));
            }
            Observation::MessageSent {
                flow,
                destination,
                bytes,
                reply,
            } => {
                let event = Event {
                    name: if reply { "reply sent" } else { "message sent" },
                    values: &[
                        ("destination", Value::Number(destination.into())),
                        ("bytes", Value::Number(bytes.into())),
                    ],
                    flow: Some(Flow::Through(message_flow(flow))),
                };
                writer.instant(Weight::Normal, messages, at, &event);
            }
            Observation::MessageStored {
                flow,
                owner,
                endpoint,
                activity,
                bytes,
            } => {
                let event = Event {
                    name: "message stored",
                    values: &[
                        ("sender", Value::Number(owner.tile.into())),
                        ("endpoint", Value::Number(endpoint.into())),
                        ("activity", Value::Number(activity.into())),
                        ("bytes", Value::Number(bytes.into())),
                    ],
                    flow: Some(Flow::End(message_flow(flow))),
                };
                writer.instant(Weight::Normal, messages, at, &event);
            }
            Observation::MessageRefused { flow, owner, error } => {
                let event = Event {
                    name: "message refused",
                    values: &[
                        ("sender", Value::Number(owner.tile.into())),
                        ("error", Value::Text(error_name(error))),
                    ],
                    flow: Some(Flow::End(message_flow(flow))),
                };
                writer.instant(Weight::Normal, messages, at, &event);
            }
            Observation::BucketLevel { bucket, bytes } => {
                if self.wanted_in_detail(at) {
                    self.bucket(at, tile, bucket, bytes);
                }
            }
            Observation::Interrupt { level: true } => {
                writer.instant(Weight::Normal, messages, at, &Event::new("interrupt"));
            }
            // The ledger has the waits; activities have their own report.
            Observation::Interrupt { level: false }
            | Observation::Wait { .. }
            | Observation::Unfetched(_)
            | Observation::ActivityChanged { .. } => {}
        }
    }

    fn link(&mut self, activity: &LinkActivity) {
        self.utilise(activity);
        if !self.wanted_in_detail(activity.start) || !self.options.shows(activity.owner.tile) {
            return;
        }
        let Some(link) = self.links.get(usize::from(activity.link)) else {
            return;
        };
        let track = link.packets;
        let name = self.sender(activity.owner);
        let event = Event {
            name: &name,
            values: &[
                ("activity", Value::Number(activity.owner.activity.into())),
                ("bytes", Value::Number(activity.bytes.into())),
            ],
            flow: None,
        };
        let end = activity.end.min(self.options.until);
        self.writer
            .slice(Weight::Detail, track, activity.start, end, &event);
    }

    fn bank(&mut self, memory: TileId, activity: &BankActivity) {
        if !self.wanted_in_detail(activity.start) || !self.options.shows(activity.owner.tile) {
            return;
        }
        let Some(&track) = self.banks.get(&(memory, activity.bank)) else {
            return;
        };
        let name = self.sender(activity.owner);
        let event = Event {
            name: &name,
            values: &[("activity", Value::Number(activity.owner.activity.into()))],
            flow: None,
        };
        let end = activity.end.min(self.options.until);
        self.writer
            .slice(Weight::Detail, track, activity.start, end, &event);
    }

    fn hart(&mut self, at: Tick, hart: (TileId, usize), state: HartState) {
        if let Some(shown) = self.hart_track(hart) {
            shown.state = state;
            let now = (shown.track, state, shown.activity);
            self.show_hart(at, hart.0, now);
        }
    }

    fn activity(&mut self, at: Tick, owner: Owner) {
        if let Some(shown) = self.hart_track((owner.tile, 0)) {
            shown.activity = owner.activity;
            let now = (shown.track, shown.state, owner.activity);
            self.show_hart(at, owner.tile, now);
        }
    }

    fn marker(&mut self, marker: &Marker) {
        let kind = MarkerKind::from_code(marker.kind);
        let open = Open {
            job: matches!(kind, Some(MarkerKind::JobRelease | MarkerKind::JobComplete)),
            value: marker.value,
        };
        let begins = matches!(kind, Some(MarkerKind::JobRelease | MarkerKind::SpanBegin));
        let ends = matches!(kind, Some(MarkerKind::JobComplete | MarkerKind::SpanEnd));
        if ends && self.span(marker, open, false) || !self.wanted(marker.tick) {
            return;
        }
        if begins && self.span(marker, open, true) {
            return;
        }
        let Some(tracks) = self.tiles.get(&marker.tile) else {
            return;
        };
        let number = (marker.value | MARKER_FLOWS) ^ self.chip_flow();
        let flow = match kind {
            Some(MarkerKind::FlowBegin) => Some(Flow::Through(number)),
            Some(MarkerKind::FlowEnd) => Some(Flow::End(number)),
            _ => None,
        };
        let event = Event {
            name: marker_name(marker.kind, marker.value),
            values: &[
                ("kind", Value::Number(marker.kind.into())),
                ("value", Value::Number(marker.value)),
                ("activity", Value::Number(marker.activity.into())),
            ],
            flow,
        };
        self.writer
            .instant(Weight::Normal, tracks.markers, marker.tick, &event);
    }

    fn frame(&mut self, at: Tick, tile: TileId, frame: &Frame, fate: Fate) {
        self.show_frame(at, tile, frame, fate);
    }

    fn stopped(&mut self, at: Tick) {
        self.writer.reach(at.min(self.options.until));
    }

    fn bytes(&self) -> Vec<u8> {
        self.writer.finish()
    }

    fn missing(&self) -> Missing {
        self.writer.missing()
    }
}
