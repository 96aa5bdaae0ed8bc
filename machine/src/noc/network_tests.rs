use super::*;
use crate::config::Topology;
use proptest::prelude::*;

/// 4 ticks a cycle, 16 bytes a cycle, link 1, router 2, interface 4 cycles, header 16 bytes, chunks of 512.
pub(super) fn config(topology: Topology) -> NetworkConfig {
    NetworkConfig {
        topology,
        cycle: 4,
        ..NetworkConfig::default()
    }
}

pub(super) fn write(now: Tick, source: TileId, destination: TileId, bytes: u32) -> Packet {
    Packet::request(
        now,
        source,
        destination,
        Owner::new(source, 0),
        0,
        Transaction::DmaWrite,
        PacketKind::WriteRequest {
            address: 0,
            bytes,
            data: None,
        },
    )
}

/// Runs the network until it is empty. Returns (arrival, source) in order of arrival.
pub(super) fn run(network: &mut Network, ledger: &mut Ledger) -> Vec<(Tick, TileId)> {
    let mut arrivals = Vec::new();
    while network.next_time() != Tick::MAX {
        let now = network.next_time();
        if let Some(d) = network.step(ledger, None) {
            assert_eq!(d.packet.account.accounted(), d.at);
            assert!(d.at >= now + network.exit_lookahead());
            arrivals.push((d.at, d.packet.source));
        }
    }
    assert_eq!(network.under_way(), 0);
    arrivals.sort_unstable();
    arrivals
}

pub(super) fn tiles(n: u16) -> Vec<(TileId, u16, bool)> {
    (0..n).map(|t| (t, t, false)).collect()
}

#[test]
fn latency_of_h_hops() {
    // A line of 5 routers. From 0 to h: interface 4, injection link 1 + router 2, h mesh links with 1 + 2 each, then the
    // last link 1, serialisation of 64 + 16 bytes = 5 cycles, interface 4: 17 + 3 h cycles of 4 ticks.
    for h in 1..5u16 {
        let mut network = Network::new(
            &config(Topology::Mesh {
                columns: 5,
                rows: 1,
            }),
            &tiles(5),
        );
        network.inject(0, write(0, 0, h, 64)).unwrap();
        let arrivals = run(&mut network, &mut Ledger::new());
        assert_eq!(arrivals, [((17 + 3 * h as u64) * 4, 0)]);
    }
}

#[test]
fn links_know_whose_bytes_they_carried() {
    let mut network = Network::new(&config(Topology::Crossbar), &tiles(4));
    for (source, bytes) in [(1, 64), (0, 1024), (1, 64), (2, 64)] {
        network.inject(0, write(0, source, 3, bytes)).unwrap();
    }
    run(&mut network, &mut Ledger::new());
    // A header for each chunk of 512 bytes.
    let own = |tile: TileId, bytes| (Owner::new(tile, 0), bytes);
    let carried: Vec<_> = network.carried().map(<[_]>::to_vec).collect();
    let last: Vec<_> = carried.iter().filter(|link| link.len() == 3).collect();
    assert_eq!(last, [&[own(0, 1056), own(1, 160), own(2, 80)]]);
    // The sums are those of the statistics.
    for ((_, _, statistics), carried) in network.links().zip(&carried) {
        let sum: u64 = carried.iter().map(|one| one.1).sum();
        assert_eq!(sum, statistics.bytes);
    }
}

#[test]
fn injection_waits_for_the_clock_edge() {
    let mut network = Network::new(&config(Topology::Crossbar), &tiles(2));
    network.inject(5, write(5, 0, 1, 64)).unwrap();
    // Edge at 8, then 17 cycles.
    assert_eq!(run(&mut network, &mut Ledger::new()), [(8 + 17 * 4, 0)]);
}

#[test]
fn n_flows_share_a_link_in_turn() {
    // Four tiles send three packets of 64 bytes each to tile 4 at the same time. Heads reach the last link at cycle 7 (4 + 1 + 2);
    // each packet takes it for 5 cycles; so packet i (of 12) begins at 7 + 5 i and arrives 5 + 1 + 4 later. Round robin: 0 1 2 3 0
    // 1 2 3 ...
    let mut network = Network::new(&config(Topology::Crossbar), &tiles(5));
    let mut ledger = Ledger::new();
    for source in 0..4 {
        for _ in 0..3 {
            network.inject(0, write(0, source, 4, 64)).unwrap();
        }
    }
    let expected: Vec<_> = (0..12u64)
        .map(|i| ((17 + 5 * i) * 4, (i % 4) as u16))
        .collect();
    assert_eq!(run(&mut network, &mut ledger), expected);
    // Tile 3's first packet waited for one packet each of 0, 1, 2 at the shared link.
    let shared = Resource::Link(9);
    for culprit in 0..3 {
        let b = *ledger
            .bookings()
            .iter()
            .find(|b| b.victim.tile == 3 && b.culprit.tile == culprit && b.resource == shared)
            .unwrap();
        assert_eq!(b.longest, 20);
    }
}

/// Tile 0 sends two chunks, each 33 cycles on the last link; tile 1 three packets of 5 cycles, whose heads are there at 9, 14 and 19. The first chunk has the link from 7 to
/// 40, then the links are in turn: a packet to 45, the other chunk to 78, the other packets.
#[test]
fn packets_of_one_owner_that_wait_together_are_booked_one_by_one() {
    let mut network = Network::new(&config(Topology::Crossbar), &tiles(3));
    network.inject(0, write(0, 0, 2, 1024)).unwrap();
    for _ in 0..3 {
        network.inject(8, write(8, 1, 2, 64)).unwrap();
    }
    let mut ledger = Ledger::new();
    run(&mut network, &mut ledger);
    let shared = Resource::Link(5);
    let of = |culprit: TileId| {
        let all = ledger.bookings();
        let found = all
            .iter()
            .find(|b| (b.victim.tile, b.culprit.tile) == (1, culprit) && b.resource == shared);
        let found = found.expect("it waited");
        (found.ticks / 4, found.count, found.longest / 4)
    };
    assert_eq!(of(0), (31 + 26 + 21 + 2 * 33, 5, 33));
    assert_eq!(of(1), (2 * 5 + 5, 3, 5));
}

#[test]
fn a_small_packet_waits_for_at_most_one_chunk() {
    // Tile 0 sends eight chunks of 512 bytes to tile 2, tile 1 a packet without payload, arriving in the middle of the
    // first chunk. Alone it needs 4 + 3 + 1 (serialisation) + 1 + 4 = 13 cycles; a chunk holds the link for 33 cycles.
    let mut network = Network::new(&config(Topology::Crossbar), &tiles(3));
    for _ in 0..8 {
        network.inject(0, write(0, 0, 2, 512)).unwrap();
    }
    network.inject(8, write(8, 1, 2, 0)).unwrap();
    let mut ledger = Ledger::new();
    let arrivals = run(&mut network, &mut ledger);
    let small = arrivals.iter().find(|a| a.1 == 1).unwrap().0;
    // The first chunk holds the last link from cycle 7 to 40; the small head arrives at 9 and starts at 40: 46 = 40 + 6.
    assert_eq!(small, 46 * 4);
    assert_eq!(
        ledger
            .bookings()
            .iter()
            .filter(|b| b.victim.tile == 1)
            .map(|b| b.ticks)
            .sum::<u64>(),
        31 * 4
    );
}

#[test]
fn a_long_message_travels_in_chunks() {
    // 2000 + 32 bytes of message: chunks of 512, 512, 512, 496 bytes with a header of 16 each: 33 + 33 + 33 + 32 cycles on
    // the first link; the last part starts there at 4 + 99 and needs 3 + 32 + 5 more cycles: 143.
    let mut network = Network::new(&config(Topology::Crossbar), &tiles(3));
    let message = Packet::request(
        0,
        0,
        2,
        Owner::new(0, 3),
        0,
        Transaction::Message,
        PacketKind::Message {
            endpoint: 0,
            header: Default::default(),
            offset: 0,
            payload: vec![0; 2000].into(),
            credit_endpoint: 0,
            epoch: 0,
        },
    );
    network.inject(0, message).unwrap();
    // Another tile's small packet arrives at the shared link at cycle 25 and goes between the first and the second part.
    network.inject(72, write(72, 1, 2, 0)).unwrap();
    let arrivals = run(&mut network, &mut Ledger::new());
    assert_eq!(arrivals, [(46 * 4, 1), (144 * 4, 0)]);
}

#[test]
fn split_channels_do_not_disturb_each_other() {
    let mut c = config(Topology::Crossbar);
    c.channels = Channels::Split;
    let mut network = Network::new(&c, &tiles(3));
    network.inject(0, write(0, 0, 2, 512)).unwrap();
    let read = Packet::request(
        0,
        1,
        2,
        Owner::new(1, 0),
        0,
        Transaction::CacheRead,
        PacketKind::ReadRequest {
            address: 0,
            bytes: 64,
        },
    );
    network.inject(0, read).unwrap();
    let mut ledger = Ledger::new();
    // Neither waits: 13 cycles for the read request, 12 + 33 for the chunk.
    assert_eq!(run(&mut network, &mut ledger), [(13 * 4, 1), (45 * 4, 0)]);
    assert!(ledger.bookings().is_empty());
}

#[test]
fn unknown_destinations_come_back() {
    let mut network = Network::new(&config(Topology::Crossbar), &tiles(2));
    assert!(network.inject(0, write(0, 0, 7, 64)).is_err());
}

fn topology() -> impl Strategy<Value = Topology> {
    prop_oneof![
        Just(Topology::Crossbar),
        (1u16..4, 1u16..4).prop_map(|(columns, rows)| Topology::StarMesh { columns, rows }),
        (1u16..4, 1u16..4).prop_map(|(columns, rows)| Topology::Mesh { columns, rows }),
    ]
}

#[test]
fn of_two_heads_in_one_tick_the_lower_port_goes_first() {
    // Heads of two tiles come to the idle link to tile 2 at cycle 12. One of them has waited at its tile's link for a packet of 5 cycles to tile 3
    // (4 + 5 + 3), the other one's tile sent it at cycle 5 (5 + 4 + 3). Whichever it is, tile 0 is at the lower port: the first
    // packet arrives at 12 + 5 + 1 + 4, the second one 5 cycles later.
    for (waits, other) in [(0, 1), (1, 0)] {
        let mut network = Network::new(&config(Topology::Crossbar), &tiles(4));
        network.inject(0, write(0, waits, 3, 64)).unwrap();
        network.inject(0, write(0, waits, 2, 64)).unwrap();
        network.inject(20, write(20, other, 2, 64)).unwrap();
        let mut ledger = Ledger::new();
        let mut arrivals = run(&mut network, &mut ledger);
        arrivals.retain(|one| *one != (17 * 4, waits));
        assert_eq!(arrivals, [(22 * 4, 0), (27 * 4, 1)], "tile {waits} waits");
        // Tile 1 waits for 5 cycles of tile 0 there.
        let bookings = ledger.bookings();
        let shared = bookings.iter().filter(|b| b.victim != b.culprit);
        let shared: Vec<_> = shared.map(|b| (b.victim.tile, b.ticks)).collect();
        assert_eq!(shared, [(1, 5 * 4)]);
    }
}

#[test]
fn heads_come_before_a_credit_of_the_same_tick() {
    // The link from router 1 to router 2 has one place behind it, which comes back at cycle 23: tile 1's first packet takes it at cycle 7, leaves for
    // tile 2 from 10 to 15, and the place needs one cycle more: 16. Tile 1's second packet has waited for it since cycle 12. A head of tile 0 comes
    // to the same link in that very tick (9 + 4 + 3): after tile 1, which had the last turn, it is tile 0's, although it waited for nothing.
    let mut network = line_with_one_credit();
    network.inject(0, write(0, 1, 2, 64)).unwrap();
    network.inject(0, write(0, 1, 2, 64)).unwrap();
    // From router 0 a head needs 4 cycles to its link, 3 to router 0's link, 3 to router 1's: 6 + 10 = 16.
    network.inject(24, write(24, 0, 2, 64)).unwrap();
    let arrivals = run(&mut network, &mut Ledger::new());
    // Head at the link at 7; 3 to the last link; then 5 + 1 + 4. The others follow at 16 and, the place again 9 cycles later, at 25.
    let at = |cycle: u64| (cycle + 3 + 10) * 4;
    assert_eq!(arrivals, [(at(7), 1), (at(16), 0), (at(25), 1)]);
}

fn line_with_one_credit() -> Network {
    let config = NetworkConfig {
        credits: Some(1),
        ..config(Topology::Mesh {
            columns: 3,
            rows: 1,
        })
    };
    Network::new(&config, &tiles(3))
}

#[test]
fn chips_with_too_many_links_are_refused() {
    let mut shape = config(Topology::Mesh {
        columns: 64,
        rows: 64,
    });
    assert_eq!(shape.has_room(4096), Ok(()));
    shape.channels = Channels::Acknowledged { read_interval: 1 };
    // 2 * 2 * 63 * 64 links between routers.
    let links = 3 * (2 * 2 * 63 * 64 + 2 * 4096);
    let expected = format!("4096 tiles need {links} links, at most 65536 are possible");
    assert_eq!(shape.has_room(4096), Err(expected));
}

proptest! {
    /// The numbers of tiles, and the order in which tiles at different routers are listed, decide nothing.
    #[test]
    fn numbers_of_tiles_decide_nothing(
        topology in topology(),
        split in any::<bool>(),
        credits in prop::option::of(1u32..4),
        places in prop::collection::vec(0u16..9, 2..8),
        numbers in Just((0u16..8).collect::<Vec<_>>()).prop_shuffle(),
        traffic in prop::collection::vec((0u64..40, 0usize..8, 0usize..8, 0u32..513), 1..80),
    ) {
        let routers = match topology {
            Topology::Crossbar => 1,
            Topology::StarMesh { columns, rows } | Topology::Mesh { columns, rows } => columns * rows,
        };
        let mut c = config(topology);
        c.channels = if split { Channels::Split } else { Channels::Shared };
        c.credits = credits;
        let run_with = |number: &dyn Fn(usize) -> u16, sorted: bool| {
            let mut tiles: Vec<_> = places.iter().enumerate().map(|(i, p)| (number(i), p % routers, false)).collect();
            if sorted {
                // Tiles of one router stay in their order, so each keeps its port.
                tiles.sort_by_key(|tile| tile.1);
            }
            let mut network = Network::new(&c, &tiles);
            let mut now = 0;
            for (tag, &(gap, source, destination, bytes)) in traffic.iter().enumerate() {
                now += gap;
                let ends = [source, destination].map(|end| number(end % places.len()));
                let mut packet = write(now, ends[0], ends[1], bytes);
                packet.tag = tag as u32;
                if split && bytes % 2 == 0 {
                    packet.kind = PacketKind::ReadRequest { address: 0, bytes };
                }
                network.inject(now, packet).unwrap();
            }
            let mut arrivals = Vec::new();
            let mut ledger = Ledger::new();
            while network.next_time() != Tick::MAX {
                arrivals.extend(network.step(&mut ledger, None).map(|d| (d.packet.tag, d.at)));
            }
            arrivals.sort_unstable();
            arrivals
        };
        let as_listed = run_with(&|i| i as u16, false);
        prop_assert_eq!(&as_listed, &run_with(&|i| numbers[i], false));
        prop_assert_eq!(&as_listed, &run_with(&|i| numbers[i], true));
    }

    /// On random traffic over random shapes every packet arrives, its delay is service + waits, the waits are the ledger's, and the
    /// service is the time that the packet would take alone.
    #[test]
    fn delay_is_service_and_booked_waits(
        topology in topology(),
        split in any::<bool>(),
        memory in any::<bool>(),
        credits in prop::option::of(1u32..4),
        places in prop::collection::vec(0u16..9, 2..8),
        traffic in prop::collection::vec((0u64..40, 0usize..8, 0usize..8, 0u32..1500), 1..60),
    ) {
        let routers = match topology {
            Topology::Crossbar => 1,
            Topology::StarMesh { columns, rows } | Topology::Mesh { columns, rows } => columns * rows,
        };
        let tiles: Vec<_> = places.iter().enumerate().map(|(i, p)| (i as u16, p % routers, memory && i == 0)).collect();
        let mut c = config(topology);
        c.channels = if split { Channels::Split } else { Channels::Shared };
        c.credits = credits;
        let mut network = Network::new(&c, &tiles);
        let mut ledger = Ledger::new();
        let mut now = 0;
        let mut sent = Vec::new();
        let mut waited = 0;
        for (i, &(gap, source, destination, bytes)) in traffic.iter().enumerate() {
            now += gap;
            let source = (source % tiles.len()) as u16;
            let destination = (destination % tiles.len()) as u16;
            let bytes = bytes % 513;
            let mut packet = write(now, source, destination, bytes);
            packet.tag = i as u32;
            let alone = {
                let hops = network.shape.path(source as usize, destination as usize).len() as u64;
                let edge = align(now, 4) - now;
                edge + 4 * (8 + hops + 2 * (hops - 1) + (bytes as u64 + 16).div_ceil(16))
            };
            sent.push((now, alone));
            network.inject(now, packet).unwrap();
        }
        let mut arrived = vec![false; sent.len()];
        while network.next_time() != Tick::MAX {
            if let Some(d) = network.step(&mut ledger, None) {
                let account = d.packet.account;
                let (start, alone) = sent[d.packet.tag as usize];
                prop_assert_eq!(account.started, start);
                prop_assert_eq!(account.service, alone);
                prop_assert_eq!(account.accounted(), d.at);
                waited += account.waited;
                arrived[d.packet.tag as usize] = true;
            }
        }
        prop_assert!(arrived.iter().all(|a| *a));
        prop_assert_eq!(ledger.totals().iter().map(|t| t.1).sum::<u64>(), waited);
    }
}
