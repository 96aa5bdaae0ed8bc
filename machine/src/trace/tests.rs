//! The file is decoded again and checked against the rules of the format, and its bytes against the public field numbers.

use super::proto::*;
use super::*;
use crate::config::dram::ControllerConfig;
use crate::config::*;
use proptest::prelude::*;
use prost::Message;
use std::collections::{BTreeMap, BTreeSet};

/// Two tiles with DTUs, one memory of two banks, a crossbar; 4 ticks per nanosecond.
fn platform() -> PlatformConfig {
    let tile = |id| TileConfig {
        dtu: Some(DtuConfig {
            cycle: 2,
            endpoints: 16,
            tlb_entries: 8,
            bucket_limit: 4096,
            ..DtuConfig::default()
        }),
        privileged: id == 0,
        ..TileConfig::new(id, crate::hart::HartConfig::default())
    };
    let mut dram = ControllerConfig::ddr3(5);
    dram.map.banks = 2;
    dram.timing.refresh_interval = 0;
    dram.frontend = 5;
    PlatformConfig {
        name: "trace".into(),
        kind: PlatformKind::Tiled,
        ticks_per_second: 4_000_000_000,
        timebase_hz: 10_000_000,
        tiles: vec![tile(0), tile(1)],
        memories: vec![MemoryConfig {
            id: 8,
            dram: dram.into(),
            size: 1 << 20,
            router: 0,
            second_port_of: Vec::new(),
            dropped: 0,
        }],
        cables: Vec::new(),
        network: NetworkConfig {
            cycle: 4,
            ..NetworkConfig::default()
        },
        seed: 0,
        engines: Vec::new(),
        peripherals: Vec::new(),
        doorbells: None,
    }
}

#[derive(Clone, Debug)]
enum Report {
    Unit(u16, Observation),
    Link(u16, Tick),
    Bank(u16, Tick),
    Hart(u16, HartState),
    Port(u16, usize, HartState),
    Activity(u16, u16),
    Marker(u16, u16, u64),
}

fn feed(tracer: &mut Tracer, at: Tick, report: &Report) {
    match report {
        Report::Unit(tile, observation) => tracer.unit(at, *tile, observation),
        Report::Link(link, length) => tracer.link(&LinkActivity {
            link: *link,
            owner: Owner::new(1, 2),
            start: at,
            end: at + length,
            bytes: 80,
        }),
        Report::Bank(bank, length) => {
            let activity = BankActivity {
                bank: *bank,
                owner: Owner::new(1, 2),
                start: at,
                end: at + length,
            };
            tracer.bank(8, &activity);
        }
        Report::Hart(tile, state) => tracer.hart(at, (*tile, 0), *state),
        Report::Port(tile, port, state) => tracer.hart(at, (*tile, *port), *state),
        Report::Activity(tile, activity) => tracer.activity(at, Owner::new(*tile, *activity)),
        Report::Marker(tile, kind, value) => tracer.marker(&Marker {
            tick: at,
            tile: *tile,
            activity: 3,
            kind: *kind,
            value: *value,
            pc: 0,
        }),
    }
}

/// The events that a reader sees, as (track, nanoseconds, kind, name). First checks all rules of the format.
fn read(bytes: &[u8]) -> Vec<(String, u64, i32, String)> {
    let trace = Trace::decode(bytes).expect("decodes");
    let mut tracks = BTreeMap::new();
    let (mut names, mut values, mut texts) = (BTreeMap::new(), BTreeMap::new(), BTreeMap::new());
    let mut depth: BTreeMap<u64, i32> = BTreeMap::new();
    let mut last: BTreeMap<u64, u64> = BTreeMap::new();
    let mut events = Vec::new();
    assert_eq!(trace.packet[0].sequence_flags, Some(SEQUENCE_CLEARED));
    for packet in &trace.packet {
        assert_eq!(packet.trusted_packet_sequence_id, Some(1));
        if let Some(track) = &packet.track_descriptor {
            let name = track.name.clone().expect("named");
            if let Some(parent) = track.parent_uuid {
                assert!(tracks.contains_key(&parent), "a parent is described first");
            }
            assert!(tracks.insert(track.uuid.expect("number"), name).is_none());
        }
        if let Some(data) = &packet.interned_data {
            let learn = |map: &mut BTreeMap<u64, String>, new: &[Name]| {
                for name in new {
                    let text = name.name.clone().expect("name");
                    assert!(map.insert(name.iid.expect("number"), text).is_none());
                }
            };
            learn(&mut names, &data.event_names);
            learn(&mut values, &data.debug_annotation_names);
            learn(&mut texts, &data.debug_annotation_string_values);
        }
        let Some(event) = &packet.track_event else {
            continue;
        };
        let (track, at) = (
            event.track_uuid.expect("track"),
            packet.timestamp.expect("moment"),
        );
        let kind = event.r#type.expect("kind");
        let depth = depth.entry(track).or_default();
        if kind == SLICE_BEGIN || kind == SLICE_END {
            *depth += if kind == SLICE_BEGIN { 1 } else { -1 };
            assert!(*depth >= 0, "an end without a begin");
            let last = last.entry(track).or_default();
            assert!(*last <= at, "slices of a track overlap");
            *last = at;
        }
        for value in &event.debug_annotations {
            assert!(values.contains_key(&value.name_iid.expect("name")));
            if let Some(text) = value.string_value_iid {
                assert!(texts.contains_key(&text));
            }
        }
        let name = event
            .name_iid
            .map(|iid| names[&iid].clone())
            .unwrap_or_default();
        events.push((tracks[&track].clone(), at, kind, name));
    }
    assert!(
        depth.values().all(|&depth| depth == 0),
        "a slice stays open"
    );
    events
}

fn sample() -> Vec<(Tick, Report)> {
    let owner = Owner::new(0, 3);
    let flow = 1 << 32 | 7;
    vec![
        (0, Report::Hart(0, HartState::Running)),
        (40, Report::Activity(0, 3)),
        (100, Report::Marker(0, MarkerKind::FlowBegin as u16, 5)),
        (
            120,
            Report::Unit(
                0,
                Observation::CommandBegin {
                    opcode: Opcode::Send,
                    endpoint: 8,
                    owner,
                },
            ),
        ),
        (160, Report::Link(0, 20)),
        (
            160,
            Report::Unit(
                0,
                Observation::MessageSent {
                    flow,
                    destination: 1,
                    bytes: 33,
                    reply: false,
                },
            ),
        ),
        (200, Report::Bank(1, 90)),
        (
            220,
            Report::Unit(
                1,
                Observation::MessageStored {
                    flow,
                    owner,
                    endpoint: 9,
                    activity: 4,
                    bytes: 33,
                },
            ),
        ),
        (225, Report::Unit(1, Observation::Interrupt { level: true })),
        (
            230,
            Report::Unit(
                0,
                Observation::CommandEnd {
                    opcode: Opcode::Send,
                    error: DtuError::NoSpace,
                },
            ),
        ),
        (
            230,
            Report::Unit(
                0,
                Observation::BucketLevel {
                    bucket: 1,
                    bytes: -5,
                },
            ),
        ),
        (240, Report::Hart(0, HartState::Idle)),
        (250, Report::Marker(1, MarkerKind::SpanBegin as u16, 1)),
        (260, Report::Marker(1, MarkerKind::SpanBegin as u16, 2)),
        (270, Report::Marker(1, MarkerKind::SpanEnd as u16, 1)),
        (280, Report::Marker(1, MarkerKind::SpanEnd as u16, 2)),
        (290, Report::Marker(1, MarkerKind::FlowEnd as u16, 5)),
    ]
}

fn record(reports: &[(Tick, Report)], options: TraceOptions) -> Vec<u8> {
    let mut tracer = Tracer::new(&platform(), options);
    for (at, report) in reports {
        feed(&mut tracer, *at, report);
    }
    tracer.bytes()
}

#[test]
fn tells_what_happened() {
    let bytes = record(&sample(), TraceOptions::default());
    let events = read(&bytes);
    let lines: Vec<_> = events
        .iter()
        .map(|(track, at, kind, name)| {
            let sign = ["-", "[", "]", ".", "#"][*kind as usize];
            format!("{at} {sign} {track}: {name}").trim_end().to_owned()
        })
        .collect();
    insta::assert_snapshot!(lines.join("\n"), @r"
    0 [ hart: TileMux
    10 ] hart:
    10 [ hart: activity 3
    25 . markers: flow begins
    30 [ DTU commands: send
    40 [ tile 0 to router 0: tile 1
    45 ] tile 0 to router 0:
    40 . messages: message sent
    50 [ bank 1: tile 1
    72 ] bank 1:
    55 . messages: message stored
    56 . messages: interrupt
    57 . DTU commands: no space
    57 ] DTU commands:
    57 # token bucket 1:
    60 ] hart:
    60 [ hart: activity 3 waits
    62 [ spans 1: span
    65 [ spans 2: span
    67 ] spans 1:
    70 ] spans 2:
    72 . markers: flow ends
    72 ] hart:
    ");
}

/// Each hart of a cluster has its track, by port, and the name that its port has as an activity.
#[test]
fn every_hart_of_a_cluster_has_a_track() {
    let mut config = platform();
    config.tiles.truncate(1);
    config.tiles[0].dtu = None;
    config.tiles[0].cluster = Some(ClusterConfig::of(2));
    let mut tracer = Tracer::new(&config, TraceOptions::default());
    tracer.name_activity(Owner::new(0, 1), "consumer");
    for (at, port, state) in [
        (0, 0, HartState::Running),
        (8, 1, HartState::Running),
        (40, 1, HartState::Idle),
        (60, 0, HartState::Halted),
        (80, 1, HartState::Running),
    ] {
        feed(&mut tracer, at, &Report::Port(0, port, state));
    }
    let events = read(&tracer.bytes());
    let shown = |(track, at, kind, name): &(String, u64, i32, String)| {
        let sign = ["-", "[", "]", ".", "#"][*kind as usize];
        format!("{at} {sign} {track}: {name}").trim_end().to_owned()
    };
    let lines: Vec<_> = events.iter().map(shown).collect();
    insta::assert_snapshot!(lines.join("\n"), @r"
    0 [ hart 0: running
    2 [ hart 1: consumer
    10 ] hart 1:
    10 [ hart 1: consumer waits
    15 ] hart 0:
    20 ] hart 1:
    20 [ hart 1: consumer
    20 ] hart 1:
    ");
}

#[test]
fn a_window_cuts_slices_at_its_ends() {
    let options = TraceOptions {
        from: 130,
        until: 235,
        ..TraceOptions::default()
    };
    let events = read(&record(&sample(), options));
    // 130 / 4 = 32, 235 / 4 = 58.
    assert!(
        events.iter().all(|e| (32..=58).contains(&e.1)),
        "{events:?}"
    );
    assert!(events.iter().any(|e| e.0 == "hart" && e.2 == SLICE_BEGIN));
    assert!(events.iter().all(|e| e.3 != "send"));
}

/// Perfetto's public numbers, written out by hand: key = field * 8 + wire type.
#[test]
fn only_wanted_tiles_are_shown_and_headings_name_who_is_there() {
    let of = |tile: TileId| TraceOptions {
        tiles: Some([tile].into()),
        residents: [(tile, "sensor".to_owned())].into(),
        ..TraceOptions::default()
    };
    let tracks = |bytes: &[u8]| -> Vec<String> { read(bytes).into_iter().map(|e| e.0).collect() };
    // Tile 0's hart sends a message; tile 1 receives it, and the packet and the access at the bank belong to tile 1.
    let (first, second) = (record(&sample(), of(0)), record(&sample(), of(1)));
    for (track, bytes, others) in [("hart", &first, &second), ("bank 1", &second, &first)] {
        assert!(tracks(bytes).iter().any(|found| found == track), "{track}");
        assert!(tracks(others).iter().all(|found| found != track), "{track}");
    }
    let heading = b"tile 1: sensor";
    assert!(second.windows(heading.len()).any(|part| part == heading));
}

#[test]
fn bytes_are_those_of_the_public_format() {
    let packet = TracePacket {
        timestamp: Some(5),
        trusted_packet_sequence_id: Some(1),
        sequence_flags: Some(2),
        track_event: Some(TrackEvent {
            r#type: Some(SLICE_BEGIN),
            name_iid: Some(3),
            track_uuid: Some(4),
            terminating_flow_ids: vec![6],
            ..TrackEvent::default()
        }),
        ..TracePacket::default()
    };
    let event = [
        9 << 3,
        1, // type, varint
        10 << 3,
        3, // name_iid
        11 << 3,
        4, // track_uuid
        // terminating_flow_ids = 48, fixed64 (wire type 1): 48 * 8 + 1 = 385 = 0x81 0x03
        0x81,
        0x03,
        6,
        0,
        0,
        0,
        0,
        0,
        0,
        0,
    ];
    let mut expected = vec![8 << 3, 5, 10 << 3, 1, 11 << 3 | 2, event.len() as u8];
    expected.extend(event);
    expected.extend([13 << 3, 2]);
    assert_eq!(packet.encode_to_vec(), expected);
    let track = TracePacket {
        track_descriptor: Some(TrackDescriptor {
            uuid: Some(1),
            name: Some("a".into()),
            parent_uuid: Some(2),
            counter: Some(CounterDescriptor {
                unit: Some(UNIT_BYTES),
                unit_name: Some("b".into()),
            }),
            child_ordering: Some(ORDER_EXPLICIT),
            sibling_order_rank: Some(9),
        }),
        interned_data: Some(InternedData {
            event_names: vec![Name {
                iid: Some(1),
                name: Some("x".into()),
            }],
            debug_annotation_names: vec![Name::default()],
            debug_annotation_string_values: vec![Name::default()],
        }),
        ..TracePacket::default()
    };
    let counter = [3 << 3, 3, 6 << 3 | 2, 1, b'b'];
    let mut descriptor = vec![
        1 << 3,
        1,
        2 << 3 | 2,
        1,
        b'a',
        5 << 3,
        2,
        8 << 3 | 2,
        counter.len() as u8,
    ];
    descriptor.extend(counter);
    descriptor.extend([11 << 3, 3, 12 << 3, 9]);
    // Fields above 15 take two bytes: 29 * 8 + 2 = 234 = 0xea 0x01, 60 * 8 + 2 = 482 = 0xe2 0x03.
    let names = [
        2 << 3 | 2,
        5,
        1 << 3,
        1,
        2 << 3 | 2,
        1,
        b'x',
        3 << 3 | 2,
        0,
        0xea,
        0x01,
        0,
    ];
    let mut expected = vec![12 << 3 | 2, names.len() as u8];
    expected.extend(names);
    expected.extend([0xe2, 0x03, descriptor.len() as u8]);
    expected.extend(descriptor);
    assert_eq!(track.encode_to_vec(), expected);
}

fn report() -> impl Strategy<Value = Report> {
    let owner = Owner::new(1, 2);
    prop_oneof![
        (0u16..3, 0u16..9).prop_map(move |(tile, endpoint)| {
            let opcode = Opcode::ALL[usize::from(endpoint) % Opcode::ALL.len()];
            Report::Unit(
                tile,
                Observation::CommandBegin {
                    opcode,
                    endpoint,
                    owner,
                },
            )
        }),
        (0u16..3, 0usize..17).prop_map(|(tile, error)| {
            let error = DtuError::ALL[error];
            Report::Unit(
                tile,
                Observation::CommandEnd {
                    opcode: Opcode::Send,
                    error,
                },
            )
        }),
        (0u16..3, 0u8..4, -9i64..9).prop_map(|(tile, bucket, bytes)| {
            Report::Unit(tile, Observation::BucketLevel { bucket, bytes })
        }),
        (0u16..9, 0u64..200_000).prop_map(|(link, length)| Report::Link(link, length)),
        (0u16..3, 0u64..300).prop_map(|(bank, length)| Report::Bank(bank, length)),
        (0u16..3, 0usize..3).prop_map(|(tile, state)| {
            let states = [HartState::Running, HartState::Idle, HartState::Halted];
            Report::Hart(tile, states[state])
        }),
        (0u16..3, 0u16..4).prop_map(|(tile, activity)| Report::Activity(tile, activity)),
        (0u16..3, 0u16..14, 0u64..12)
            .prop_map(|(tile, kind, value)| Report::Marker(tile, kind, value)),
    ]
}

proptest! {
    /// Any reports produce a file that obeys the rules, stays within its bound, and is reproducible.
    #[test]
    fn files_are_valid_bounded_and_repeatable(
        gaps in prop::collection::vec((0u64..400, report()), 0..300),
        limit in 2000usize..40_000,
        from in 0u64..5000,
        length in 0u64..60_000,
        sampled: bool,
    ) {
        let mut at = 0;
        let reports: Vec<_> = gaps.into_iter().map(|(gap, report)| { at += gap; (at, report) }).collect();
        let sample = sampled.then_some((1000, 300));
        let options = TraceOptions { limit, from, until: from + length, interval: 100, sample, ..TraceOptions::default() };
        let bytes = record(&reports, options.clone());
        let events = read(&bytes);
        // Descriptions of tracks (below 8 KiB here) and the ends of open slices may exceed the limit.
        prop_assert!(bytes.len() <= limit + 8192, "{} bytes", bytes.len());
        prop_assert_eq!(record(&reports, options.clone()), bytes);
        let inside = options.from / 4..=options.until / 4;
        // Only the note about missing events may be elsewhere.
        let outside: BTreeSet<_> = events.iter().filter(|e| !inside.contains(&e.1)).map(|e| &e.0).collect();
        prop_assert!(outside.iter().all(|track| track.starts_with("incomplete")), "{:?}", outside);
    }
}

#[test]
fn details_can_be_sampled() {
    let reports: Vec<_> = (0..40).map(|i| (i * 50, Report::Link(0, 20))).collect();
    let options = TraceOptions {
        sample: Some((1000, 100)),
        ..TraceOptions::default()
    };
    let events = read(&record(&reports, options));
    // Packets at 0, 50 and 1000, 1050 ticks; 4 ticks per nanosecond.
    let begins: Vec<_> = events
        .iter()
        .filter(|e| e.2 == SLICE_BEGIN)
        .map(|e| e.1)
        .collect();
    assert_eq!(begins, [0, 12, 250, 262]);
}

/// The number of a frame, its bytes, and whether it comes from another chip.
fn frame(number: u64, bytes: usize, foreign: bool) -> Frame {
    let mut data = vec![0; bytes];
    data[..6].fill(0xFF);
    data[6..14].copy_from_slice(&[2, 0, 0, 0, 0, 1, 0x08, 0x06]);
    let mut frame = Frame::from(data);
    (frame.tile, frame.number, frame.foreign) = (1, number, foreign);
    frame
}

/// The reports of two chips about three frames from the first one: one is stored, one is dropped, one is lost.
fn two_chips() -> Vec<u8> {
    let with_cards = || {
        let mut platform = platform();
        platform.tiles[1].network_card = Some(crate::device::network::NetworkCardConfig {
            rate: 125_000_000,
            mac: [2, 0, 0, 0, 0, 1],
            queue: 64,
            buffer: 4096,
            parallel: 4,
        });
        platform
    };
    let tracer = |number, heading: &str, peer: &str| {
        let chip = Chip {
            number,
            heading: heading.to_owned(),
            peer: peer.to_owned(),
        };
        let options = TraceOptions {
            chip,
            ..TraceOptions::default()
        };
        Tracer::new(&with_cards(), options)
    };
    let (mut here, mut there) = (tracer(0, "", "far"), tracer(1, "far", "near"));
    for number in 0..3 {
        let (at, sent) = (1000 * number, frame(number, 60, false));
        here.frame(at, 1, &sent, Fate::Sent { left: at + 960 });
    }
    here.frame(2960, 1, &frame(2, 60, false), Fate::Lost);
    here.frame(4000, 1, &Frame::default(), Fate::Malformed);
    let stored = Fate::Stored {
        arrived: 1000,
        from: 1200,
    };
    there.frame(1000, 1, &frame(0, 60, true), Fate::Arrived);
    there.frame(1600, 1, &frame(0, 60, true), stored);
    there.frame(2000, 1, &frame(1, 60, true), Fate::Arrived);
    let dropped = Fate::Dropped(crate::device::network::DropReason::Full);
    there.frame(2000, 1, &frame(1, 60, true), dropped);
    // A tile without a card has no tracks for one.
    there.frame(2000, 0, &frame(1, 60, true), dropped);
    [here.bytes(), there.bytes()].concat()
}

#[test]
fn frames_of_two_chips_are_one_file_with_arrows_between_them() {
    let trace = Trace::decode(&two_chips()[..]).expect("decodes");
    let mut tracks: BTreeMap<u64, String> = BTreeMap::new();
    let mut known: BTreeMap<(u32, u8, u64), String> = BTreeMap::new();
    let mut lines = Vec::new();
    for packet in &trace.packet {
        let sequence = packet.trusted_packet_sequence_id.expect("a writer");
        if let Some(track) = &packet.track_descriptor {
            let above = track
                .parent_uuid
                .map(|parent| tracks[&parent].clone() + "/");
            let name = above.unwrap_or_default() + track.name.as_deref().unwrap_or_default();
            let same = tracks.insert(track.uuid.expect("number"), name);
            assert_eq!(same, None, "two chips share a track");
        }
        if let Some(data) = &packet.interned_data {
            let tables = [
                &data.event_names,
                &data.debug_annotation_names,
                &data.debug_annotation_string_values,
            ];
            for (table, names) in tables.into_iter().enumerate() {
                for name in names {
                    let key = (sequence, table as u8, name.iid.expect("number"));
                    known.insert(key, name.name.clone().expect("name"));
                }
            }
        }
        let Some(event) = &packet.track_event else {
            continue;
        };
        let Some(name) = event.name_iid else { continue };
        let at = packet.timestamp.expect("a moment");
        let mut line = format!(
            "{at} {}: {}",
            tracks[&event.track_uuid.expect("track")],
            known[&(sequence, 0, name)]
        );
        for value in &event.debug_annotations {
            let key = &known[&(sequence, 1, value.name_iid.expect("name"))];
            let text = match (value.uint_value, value.string_value_iid) {
                (Some(number), _) => number.to_string(),
                (None, Some(iid)) => known[&(sequence, 2, iid)].clone(),
                (None, None) => String::new(),
            };
            line += &format!(" {key}={text}");
        }
        for flow in &event.flow_ids {
            line += &format!(" flow={flow:x}");
        }
        lines.push(line);
    }
    insta::assert_snapshot!(lines.join("\n"), @r"
    0 tile 1/frames sent: ARP tick=0 bytes=60 destination=ff:ff:ff:ff:ff:ff source=02:00:00:00:00:01 EtherType=0x0806 number=0 flow=4000100000000000
    250 tile 1/frames sent: ARP tick=1000 bytes=60 destination=ff:ff:ff:ff:ff:ff source=02:00:00:00:00:01 EtherType=0x0806 number=1 flow=4000100000000001
    500 tile 1/frames sent: ARP tick=2000 bytes=60 destination=ff:ff:ff:ff:ff:ff source=02:00:00:00:00:01 EtherType=0x0806 number=2 flow=4000100000000002
    740 tile 1/frames sent: lost on the cable tick=2960 bytes=60 destination=ff:ff:ff:ff:ff:ff source=02:00:00:00:00:01 EtherType=0x0806 number=2 flow=4000100000000002
    1000 tile 1/frames sent: not a frame: not sent tick=4000
    250 far/tile 1/frames arrived: ARP tick=1000 bytes=60 destination=ff:ff:ff:ff:ff:ff source=02:00:00:00:00:01 EtherType=0x0806 number=0 sender=1 chip=near flow=4000100000000000
    300 far/tile 1/frames stored: ARP tick=1200 bytes=60 destination=ff:ff:ff:ff:ff:ff source=02:00:00:00:00:01 EtherType=0x0806 number=0 sender=1 chip=near arrived=1000 flow=4000100000000000
    500 far/tile 1/frames arrived: ARP tick=2000 bytes=60 destination=ff:ff:ff:ff:ff:ff source=02:00:00:00:00:01 EtherType=0x0806 number=1 sender=1 chip=near flow=4000100000000001
    500 far/tile 1/frames arrived: dropped tick=2000 bytes=60 destination=ff:ff:ff:ff:ff:ff source=02:00:00:00:00:01 EtherType=0x0806 number=1 sender=1 chip=near reason=no room: earlier frames wait for buffers flow=4000100000000001
    ");
}
