//! Hostile tiles: whatever a hart writes into its unit, and whatever packets arrive, no rights change.

use super::world::*;
use crate::noc::packet::{Packet, PacketKind, Transaction};
use crate::types::Owner;
use bulkhead_abi::dtu::*;
use bulkhead_abi::memory_map::DTU_SIZE;
use bulkhead_abi::message::Header;
use proptest::prelude::*;

/// The tile whose machine mode is hostile.
const HOSTILE: u16 = 1;

/// A value that is meaningful more often than a random one.
fn value() -> impl Strategy<Value = u64> {
    prop_oneof![
        any::<u64>(),
        0u64..64,
        (0u8..10, 0u16..36, any::<u16>())
            .prop_map(|(op, ep, arg)| u64::from(op) | u64::from(ep) << 8 | u64::from(arg) << 32),
        (0u64..SHARE).prop_map(|offset| BASE + offset),
        (0u64..16, 0u64..4).prop_map(|(page, rights)| (BASE + page * 0x1000) | rights),
        Just(u64::from(TILEMUX_ACTIVITY)),
        (0u64..4).prop_map(|bucket| bucket << 32 | u64::from(TILEMUX_ACTIVITY)),
        Just(u64::MAX),
    ]
}

fn offset() -> impl Strategy<Value = u64> {
    prop_oneof![
        3 => (0u64..4).prop_map(|i| i * 8),
        2 => (0u64..6).prop_map(|i| PRIVILEGED_PAGE + i * 8),
        1 => (0u64..32).prop_map(|i| EXTERNAL_PAGE + i * 8),
        1 => (0u64..32 * 4).prop_map(|i| ENDPOINTS + i * 8),
        1 => (0u64..DTU_SIZE / 8).prop_map(|i| i * 8),
    ]
}

/// The rights that the kernel granted, without the state that changes with use.
fn rights(world: &World) -> Vec<String> {
    let mut rights = Vec::new();
    for tile in 0..TILES {
        for index in 0..config().endpoints {
            let endpoint = match world.endpoint(tile, index) {
                Endpoint::Send(send) if send.reply => continue,
                Endpoint::Send(mut send) => {
                    assert!(send.credits <= send.credits_max, "credits from nothing");
                    send.credits = 0;
                    Endpoint::Send(send)
                }
                Endpoint::Receive(mut receive) => {
                    (receive.position, receive.occupied, receive.unread) = (0, 0, 0);
                    Endpoint::Receive(receive)
                }
                Endpoint::Invalid => continue,
                memory => memory,
            };
            rights.push(format!("{tile} {index} {endpoint:?}"));
        }
    }
    rights
}

/// The registers that only the kernel may write, as the tile reads them.
fn external(world: &mut World, tile: u16) -> Vec<u64> {
    let mut registers = vec![
        world.read(tile, FEATURES),
        world.read(tile, EXTERNAL_ARGUMENT),
    ];
    for bucket in 0..BUCKET_COUNT as u64 {
        for field in [BUCKET_RATE, BUCKET_LIMIT] {
            registers.push(world.read(tile, BUCKETS + bucket * BUCKET_STRIDE + field));
        }
    }
    registers
}

/// A chip on which tile 1 may send to tile 2, read a page of tile 3's memory, and receive.
fn granted() -> World {
    let mut world = World::new(&config());
    world.set(HOSTILE, 8, send_to(2, 8, 3, 256));
    world.set(HOSTILE, 9, receive_at(0x4000, 4, 256, 16));
    world.set(
        HOSTILE,
        10,
        memory_at(MEMORY_TILE, 3 * SHARE, 4096, TLB_READ),
    );
    world.set(2, 8, receive_at(0x4000, 4, 256, 16));
    world.set(2, 9, send_to(HOSTILE, 9, 3, 256));
    world.set(2, 10, receive_at(0x6000, 4, 256, NO_ENDPOINT));
    for bucket in 0..BUCKET_COUNT as u8 {
        world.units[usize::from(HOSTILE)].set_bucket(0, bucket, 100 << 20, 4096, 4096);
    }
    for tile in 0..TILES {
        world.bytes(tile, 0, SHARE).fill(tile as u8 + 1);
    }
    world
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 96, ..ProptestConfig::default() })]

    #[test]
    fn no_write_of_a_hart_gains_a_right(
        writes in prop::collection::vec((offset(), value(), 0u8..20), 1..200),
    ) {
        let mut world = granted();
        let before = rights(&world);
        let registers: Vec<_> = (0..TILES).map(|tile| external(&mut world, tile)).collect();
        // A legitimate message, so that there is something to reply to and to steal.
        world.execute(2, Command::new(Opcode::Send, 9, 10), BASE, 200, 1);
        for (offset, value, steps) in writes {
            world.write(HOSTILE, offset, value);
            for _ in 0..steps {
                world.step();
            }
        }
        world.drain(10_000);
        prop_assert_eq!(rights(&world), before);
        for tile in 0..TILES {
            prop_assert_eq!(external(&mut world, tile), &registers[usize::from(tile)][..]);
        }
        // Nothing outside the others' receive buffers changed.
        for tile in [0, 2, 3] {
            let share = world.bytes(tile, 0, SHARE).to_vec();
            for (at, &byte) in share.iter().enumerate() {
                let buffer = tile == 2 && ((0x4000..0x4400).contains(&at) || (0x6000..0x6400).contains(&at));
                prop_assert!(buffer || byte == tile as u8 + 1, "tile {} at {:#x}", tile, at);
            }
        }
        // No tile received a request that was not granted, and the bucket bits did not escape regulation.
        for (_, packet) in world.chip.sent.iter().filter(|(_, p)| p.source == HOSTILE) {
            prop_assert_eq!(packet.owner.tile == HOSTILE, !packet.kind.is_response());
            match packet.kind {
                PacketKind::ReadRequest { address, bytes } => {
                    let own = HOSTILE as u64 * SHARE..(HOSTILE as u64 + 1) * SHARE;
                    let granted = 3 * SHARE..3 * SHARE + 4096;
                    let end = address + u64::from(bytes) - 1;
                    prop_assert!(own.contains(&address) && own.contains(&end)
                        || granted.contains(&address) && granted.contains(&end));
                    prop_assert_eq!(packet.destination, MEMORY_TILE);
                }
                PacketKind::WriteRequest { address, .. } => {
                    prop_assert_eq!(address / SHARE, u64::from(HOSTILE));
                    prop_assert_eq!(packet.destination, MEMORY_TILE);
                }
                PacketKind::Message { header, endpoint, .. } => {
                    prop_assert_eq!(header.sender_tile, HOSTILE);
                    prop_assert_eq!(packet.destination, 2);
                    prop_assert!(endpoint == 8 || endpoint == 10);
                }
                _ => {}
            }
        }
    }

    /// Units do not send such packets. Even so, nothing panics, and only the kernel's registers can change.
    #[test]
    fn no_packet_breaks_a_unit(
        packets in prop::collection::vec((any_packet(), 0u8..10), 1..60),
    ) {
        let mut world = granted();
        for (packet, steps) in packets {
            world.deliver(packet);
            for _ in 0..steps {
                world.step();
            }
        }
        world.run();
        prop_assert_eq!(world.read(HOSTILE, FEATURES) & !FEATURE_PRIVILEGED, 0);
        prop_assert_eq!(world.endpoint(2, 9), granted().endpoint(2, 9));
    }
}

fn any_packet() -> impl Strategy<Value = Packet> {
    let address = || prop_oneof![0..DTU_SIZE, any::<u64>()];
    let header = (
        any::<u16>(),
        0u16..2100,
        0u16..4,
        0u16..40,
        0u16..40,
        any::<u64>(),
    )
        .prop_map(
            |(flags, length, sender_tile, sender_endpoint, reply_endpoint, label)| Header {
                flags,
                length,
                sender_tile,
                sender_endpoint,
                reply_endpoint,
                label,
                ..Header::default()
            },
        );
    let kind = prop_oneof![
        (address(), 0u32..600)
            .prop_map(|(address, bytes)| PacketKind::ReadRequest { address, bytes }),
        (
            address(),
            prop::option::of(prop::collection::vec(any::<u8>(), 0..40))
        )
            .prop_map(|(address, data)| PacketKind::WriteRequest {
                address: address & !7,
                bytes: data.as_ref().map_or(64, |d| d.len() as u32),
                data: data.map(Into::into),
            }),
        (0u16..36, header, 0u16..2100, 0usize..600, 0u16..40).prop_map(
            |(endpoint, header, offset, bytes, credit_endpoint)| PacketKind::Message {
                endpoint,
                header,
                offset: if bytes % 2 == 0 { 0 } else { offset },
                payload: vec![
                    0;
                    if bytes % 3 == 0 {
                        header.length.min(512).into()
                    } else {
                        bytes
                    }
                ]
                .into(),
                credit_endpoint,
                epoch: u64::from(offset),
            }
        ),
        any::<u8>().prop_map(|error| PacketKind::MessageResponse { error }),
        any::<bool>().prop_map(|error| PacketKind::WriteResponse { error }),
        (any::<bool>(), 0usize..600).prop_map(|(error, bytes)| PacketKind::ReadResponse {
            error,
            data: Some(vec![0; bytes].into()),
            bytes: bytes as u32,
        }),
    ];
    (0u16..4, any::<u32>(), kind).prop_map(|(source, tag, kind)| {
        // Register requests go only to tile 1, so that tile 2's rights remain comparable.
        let owner = Owner::new(source, 1);
        let transaction = Transaction::Message;
        let destination = match kind {
            PacketKind::ReadRequest { .. } | PacketKind::WriteRequest { .. } => HOSTILE,
            _ => 2,
        };
        let source = if source == destination { 0 } else { source };
        let owner = Owner {
            tile: source,
            ..owner
        };
        Packet::request(0, source, destination, owner, tag, transaction, kind)
    })
}
