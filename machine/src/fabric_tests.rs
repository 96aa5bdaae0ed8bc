use super::*;
use crate::config::dram::ControllerConfig;
use crate::config::*;
use crate::noc::{Account, Transaction, Want};
use crate::types::Owner;
use proptest::prelude::*;

/// Four banks with rows of 1 KiB, 5 ticks per cycle.
fn dram(refresh_interval: u64) -> DramConfig {
    let mut controller = ControllerConfig::ddr3(5);
    controller.map.banks = 4;
    controller.map.row = 1024;
    controller.map.bank_interleave = Some(1024);
    controller.timing.refresh_interval = 5 * refresh_interval;
    controller.timing.refresh = 500;
    controller.into()
}

fn platform(topology: Topology, channels: Channels, refresh_interval: u64) -> PlatformConfig {
    let tile = |id: TileId, router| TileConfig {
        router,
        ..TileConfig::new(id, crate::hart::HartConfig::default())
    };
    let memory = |id: TileId, router| MemoryConfig {
        id,
        dram: dram(refresh_interval),
        size: 65536,
        router,
        second_port_of: Vec::new(),
        dropped: 0,
    };
    PlatformConfig {
        name: "test".into(),
        kind: PlatformKind::Tiled,
        ticks_per_second: 4_000_000_000,
        timebase_hz: 1,
        tiles: (0..4).map(|t| tile(t, t % 4)).collect(),
        memories: vec![memory(8, 1), memory(9, 2)],
        cables: Vec::new(),
        network: NetworkConfig {
            topology,
            cycle: 4,
            channels,
            ..NetworkConfig::default()
        },
        seed: 0,
        engines: Vec::new(),
        peripherals: Vec::new(),
        doorbells: None,
    }
}

fn crossbar() -> Fabric {
    Fabric::new(&platform(Topology::Crossbar, Channels::Shared, 0))
}

fn request(
    now: Tick,
    source: TileId,
    memory: TileId,
    transaction: Transaction,
    kind: PacketKind,
) -> Packet {
    Packet::request(
        now,
        source,
        memory,
        Owner::new(source, 0),
        0,
        transaction,
        kind,
    )
}

fn run(fabric: &mut Fabric) -> Vec<Delivery> {
    let mut all = Vec::new();
    while fabric.next_time() != Tick::MAX {
        all.extend(fabric.step());
    }
    all
}

#[test]
fn data_is_written_and_read_at_the_memory() {
    let mut fabric = crossbar();
    let data: Box<[u8]> = (0..100u8).collect();
    let write = PacketKind::WriteRequest {
        address: 1000,
        bytes: 100,
        data: Some(data.clone()),
    };
    fabric
        .send(0, Box::new(request(0, 0, 8, Transaction::DmaWrite, write)))
        .unwrap();
    let read = PacketKind::ReadRequest {
        address: 1000,
        bytes: 100,
    };
    fabric
        .send(
            10_000,
            Box::new(request(10_000, 1, 8, Transaction::DmaRead, read)),
        )
        .unwrap();
    let answers = run(&mut fabric);
    assert_eq!(
        answers[0].packet.kind,
        PacketKind::WriteResponse { error: false }
    );
    assert_eq!(
        answers[1].packet.kind,
        PacketKind::ReadResponse {
            error: false,
            data: Some(data),
            bytes: 100
        }
    );
}

#[test]
fn latency_of_a_chunk() {
    let mut fabric = crossbar();
    let read = PacketKind::ReadRequest {
        address: 0,
        bytes: 512,
    };
    fabric
        .send(0, Box::new(request(0, 0, 8, Transaction::DmaRead, read)))
        .unwrap();
    // Request: 13 cycles of 4 = 52; edge at 55; frontend 8, activate 11, cas 11, 8 bursts of 4 = 62 cycles of 5: 365; edge
    // at 368; response: interface 4, link 1, router 2, link 1, (512 + 16) / 16 = 33, interface 4 = 45 cycles: 548.
    let answers = run(&mut fabric);
    assert_eq!(answers[0].at, 548);
}

#[test]
fn bad_requests_are_refused() {
    let mut fabric = crossbar();
    let outside = PacketKind::ReadRequest {
        address: 65500,
        bytes: 64,
    };
    fabric
        .send(0, Box::new(request(0, 0, 8, Transaction::DmaRead, outside)))
        .unwrap();
    let outside = PacketKind::WriteRequest {
        address: u64::MAX,
        bytes: 64,
        data: None,
    };
    fabric
        .send(
            1000,
            Box::new(request(1000, 0, 8, Transaction::DmaWrite, outside)),
        )
        .unwrap();
    let message = PacketKind::Message {
        endpoint: 0,
        offset: 0,
        header: Default::default(),
        payload: Box::default(),
        credit_endpoint: 0,
        epoch: 0,
    };
    fabric
        .send(
            2000,
            Box::new(request(2000, 0, 9, Transaction::Message, message)),
        )
        .unwrap();
    let answers = run(&mut fabric);
    assert_eq!(
        answers[0].packet.kind,
        PacketKind::ReadResponse {
            error: true,
            data: None,
            bytes: 64
        }
    );
    assert_eq!(
        answers[1].packet.kind,
        PacketKind::WriteResponse { error: true }
    );
    assert_eq!(
        answers[2].packet.kind,
        PacketKind::MessageResponse {
            error: DtuError::ReceiverGone as u8
        }
    );
}

proptest! {
    /// Random requests of four tiles to two memories over every topology: each transaction's delay is service + waits to
    /// the tick, the sum of all waits equals the ledger, and a tile that is alone never waits for others.
    #[test]
    fn transactions_account_for_every_tick(
        shape in 0usize..3,
        split in any::<bool>(),
        refresh in prop_oneof![Just(0u64), Just(700)],
        traffic in prop::collection::vec((0u64..120, 0u16..4, any::<bool>(), 0u64..1000, 1u32..=512, any::<bool>()), 1..70),
        alone in any::<bool>(),
    ) {
        let topology = [
            Topology::Crossbar,
            Topology::StarMesh { columns: 2, rows: 2 },
            Topology::Mesh { columns: 2, rows: 2 },
        ][shape];
        let channels = if split { Channels::Split } else { Channels::Shared };
        let mut fabric = Fabric::new(&platform(topology, channels, refresh));
        let mut now = 0;
        for (tag, &(gap, source, second, place, bytes, write)) in traffic.iter().enumerate() {
            now += gap;
            let source = if alone { 2 } else { source };
            let address = place * 64;
            let (transaction, kind) = if write {
                (Transaction::DmaWrite, PacketKind::WriteRequest { address, bytes, data: None })
            } else {
                let transaction = match bytes as usize <= LINE_MAX {
                    true => Transaction::CacheRead,
                    false => Transaction::DmaRead,
                };
                (transaction, PacketKind::ReadRequest { address, bytes })
            };
            let mut packet = request(now, source, 8 + second as u16, transaction, kind);
            packet.tag = tag as u32;
            packet.account = Account::new(now);
            prop_assert!(fabric.send(now, Box::new(packet)).is_ok());
        }
        let answers = run(&mut fabric);
        prop_assert_eq!(answers.len(), traffic.len());
        let mut waited = 0;
        for answer in &answers {
            prop_assert_eq!(answer.packet.account.accounted(), answer.at);
            waited += answer.packet.account.waited;
        }
        let bookings = fabric.ledger.bookings();
        prop_assert_eq!(bookings.iter().map(|b| b.ticks).sum::<u64>(), waited);
        if alone {
            prop_assert!(bookings.iter().all(|b| b.culprit.tile == 2));
        }
    }
}

/// A fabric whose memory 8 has a home agent for the clusters of tiles 0 and 1.
fn with_homes(clusters: &[TileId]) -> Fabric {
    let mut fabric = crossbar();
    fabric.homes = [8, 9].map(|id| Home::new(id, clusters, 64)).into();
    fabric
}

/// A packet of tile 0 for memory 8.
fn of_cluster(kind: PacketKind) -> Box<Packet> {
    Box::new(request(0, 0, 8, Transaction::CacheRead, kind))
}

#[test]
#[should_panic(expected = "a home agent has got")]
fn a_home_takes_only_its_own_answers() {
    let mut fabric = with_homes(&[0]);
    let wants = PacketKind::Coherent {
        line: 0,
        address: 0,
        bytes: 64,
        want: Want::Read,
    };
    fabric.serve_home(0, 0, of_cluster(wants));
    let other = PacketKind::MessageResponse { error: 0 };
    fabric.serve_home(0, 0, of_cluster(other));
}

#[test]
#[should_panic(expected = "64 bytes, and no line")]
fn bytes_that_a_cluster_gives_up_must_be_there() {
    let surrendered = PacketKind::Surrendered {
        address: 0,
        kept: false,
        bytes: 64,
    };
    with_homes(&[0, 1]).serve_home(0, 0, of_cluster(surrendered));
}

#[test]
#[should_panic(expected = "0 bytes, and a line")]
fn no_line_is_lost_because_no_bytes_are_announced() {
    let surrendered = PacketKind::Surrendered {
        address: 0,
        kept: false,
        bytes: 0,
    };
    let mut packet = of_cluster(surrendered);
    packet.line = Some([1; LINE_MAX]);
    with_homes(&[0, 1]).serve_home(0, 0, packet);
}
