//! Whole chips with streaming units: results, pipelines, clients in turn, and a unit controlled by an attacker.

use super::*;
use crate::accelerator::{AcceleratorConfig, Operation, stream::Stream};
use bulkhead_abi::accelerator::{Answer, INPUT, NEXT, OUTPUT, Request};
use bulkhead_abi::environment::{
    ENVIRONMENT_BASE, ENVIRONMENT_MAGIC, Environment, GateEntry, GateKind,
};
use bulkhead_abi::words::Name;
use zerocopy::{FromZeros, IntoBytes};

const ACTIVITY: u16 = 5;
/// The layout of a unit's own memory: environment, receive buffer, buffer for replies, four pages of heap and one more.
const PAGES: [u64; 8] = [
    0x30000, 0x31000, 0x32000, 0x33000, 0x34000, 0x35000, 0x36000, 0x37000,
];
const HEAP: u64 = ENVIRONMENT_BASE + 0x3000;

fn unit(operation: Operation) -> AcceleratorConfig {
    AcceleratorConfig {
        operation,
        cycle: 2,
        nanosecond: 4,
        bytes_per_cycle: 4,
        startup: 20,
        switch: 300,
        row: 4096,
    }
}

/// Tile 0 and the given number of further clients have harts; then come the units. Tile `t` has megabyte `t` of the memory.
fn chip(clients: u16, units: &[Operation]) -> Machine {
    let tiles = clients + units.len() as u16;
    let mut config = platform(PlatformKind::Tiled, tiles, 1);
    for (i, operation) in units.iter().enumerate() {
        config.tiles[clients as usize + i].accelerator = Some(unit(*operation));
    }
    let mut machine = Machine::new(&config).unwrap();
    for tile in 0..tiles {
        give_memory(&mut machine, tile, 100, tile as u64 * (1 << 20));
    }
    machine
}

fn receive(activity: u16, buffer: u64, replies: u16) -> Endpoint {
    Endpoint::Receive(ReceiveEndpoint {
        activity,
        reply_endpoints: replies,
        buffer: MEMORY_BASE + buffer,
        slot_size: 128,
        slots: 4,
        position: 0,
        occupied: 0,
        unread: 0,
    })
}

fn send(activity: u16, tile: TileId, endpoint: u16) -> Endpoint {
    Endpoint::Send(SendEndpoint {
        activity,
        target_tile: tile,
        target_endpoint: endpoint,
        label: 1,
        credits: 2,
        credits_max: 2,
        message_size: 128,
        credit_endpoint: dtu::NO_ENDPOINT,
        reply: false,
        shares: 0,
        epoch: 0,
    })
}

fn region(activity: u16, base: u64, size: u64, rights: u64) -> Endpoint {
    Endpoint::Memory(MemoryEndpoint {
        activity,
        target_tile: 100,
        rights: rights as u8,
        base,
        size,
    })
}

/// A client of a unit: its regions in the memory tile, and the next unit.
struct Client {
    /// First endpoint, and number of the activity minus [`ACTIVITY`].
    number: u16,
    input: (u64, u64),
    output: Option<(u64, u64)>,
    next: Option<TileId>,
}

/// Sets a context up on a unit's tile. Its receive endpoint is `10 + 20 * number`.
fn adopt(machine: &mut Machine, tile: TileId, client: &Client) {
    adopt_in(machine, tile, client, 0);
}

/// The same with this token bucket.
fn adopt_in(machine: &mut Machine, tile: TileId, client: &Client, bucket: u8) {
    let activity = ACTIVITY + client.number;
    let first = 10 + 20 * client.number;
    let shift = u64::from(client.number) * 0x8000;
    let at = |page: usize| PAGES[page] + shift;
    let dtu = machine.unit_mut(tile).unwrap();
    dtu.set_endpoint(first, receive(activity, at(1), first + 10));
    dtu.set_endpoint(first + 1, receive(activity, at(2), dtu::NO_ENDPOINT));
    dtu.set_endpoint(
        first + 2,
        region(activity, client.input.0, client.input.1, dtu::TLB_READ),
    );
    let mut gates = vec![
        (
            GateKind::Receive,
            "requests",
            first,
            ENVIRONMENT_BASE + 0x1000,
        ),
        (GateKind::Memory, INPUT, first + 2, 0),
    ];
    if let Some((base, size)) = client.output {
        dtu.set_endpoint(first + 3, region(activity, base, size, dtu::TLB_WRITE));
        gates.push((GateKind::Memory, OUTPUT, first + 3, 0));
    }
    if let Some(next) = client.next {
        dtu.set_endpoint(first + 4, send(activity, next, 10));
        gates.push((GateKind::Send, NEXT, first + 4, 0));
    }
    let mut environment = Environment::new_zeroed();
    environment.magic = ENVIRONMENT_MAGIC;
    environment.activity = activity;
    environment.heap_start = HEAP;
    environment.heap_size = 0x5000;
    environment.syscall_reply = dtu::NO_ENDPOINT;
    environment.call_reply = first + 1;
    environment.call_buffer = ENVIRONMENT_BASE + 0x2000;
    environment.gates = gates.len() as u16;
    let mut page = environment.as_bytes().to_vec();
    for (kind, name, endpoint, buffer) in gates {
        let mut entry = GateEntry::new_zeroed();
        entry.kind = kind as u32;
        entry.endpoint = endpoint;
        entry.buffer = buffer;
        entry.name = Name::new(name).unwrap().0;
        page.extend_from_slice(entry.as_bytes());
    }
    machine.load_tile(tile, MEMORY_BASE + at(0), &page).unwrap();
    let mappings: Vec<(u64, u64, u64)> = (0..PAGES.len())
        .map(|i| (ENVIRONMENT_BASE + 0x1000 * i as u64, MEMORY_BASE + at(i), 1))
        .collect();
    assert!(machine.adopt(tile, activity, bucket, &mappings).unwrap());
}

/// A program that sends `request` to a unit's context and marks the words of the answer.
fn client(machine: &mut Machine, tile: TileId, unit: TileId, number: u16, request: &Request) {
    let dtu = machine.unit_mut(tile).unwrap();
    dtu.set_endpoint(8, receive(dtu::TILEMUX_ACTIVITY, 0x20000, dtu::NO_ENDPOINT));
    dtu.set_endpoint(9, send(dtu::TILEMUX_ACTIVITY, unit, 10 + 20 * number));
    let words: Vec<u8> = request
        .encode()
        .iter()
        .flat_map(|w| w.to_le_bytes())
        .collect();
    machine
        .load_tile(tile, MEMORY_BASE + 0x21000, &words)
        .unwrap();
    let mut p = Program::default();
    p.li(A0, DTU_BASE)
        .li(T0, MEMORY_BASE + 0x21000)
        .store(T0, A0, 8)
        .addi(T0, ZERO, words.len() as i32)
        .store(T0, A0, 0x10);
    let run = |p: &mut Program, command: Command| {
        p.li(T0, command.0).store(T0, A0, 0);
        let wait = p.here();
        p.load(T0, A0, 0)
            .word(0xFF << 20 | T0 << 15 | 7 << 12 | T1 << 7 | 0x13)
            .branch(1, T1, ZERO, wait);
    };
    run(&mut p, Command::new(Opcode::Send, 9, 8));
    p.marker(T0, 0x100);
    let again = p.here();
    run(&mut p, Command::new(Opcode::Fetch, 8, 0));
    p.load(S1, A0, 0x18)
        .addi(T2, ZERO, -1)
        .branch(0, S1, T2, again);
    p.li(S0, MEMORY_BASE + 0x20000 + 32).op(0, 0, S0, S0, S1);
    for word in 0..3 {
        p.load(T0, S0, 8 * word).marker(T0, 0x101 + word as u32);
    }
    p.wfi_forever();
    start(machine, tile, &p);
}

fn answer(machine: &Machine, tile: TileId) -> (Tick, Answer) {
    let all = machine.markers();
    let of = |kind| all.iter().find(|m| m.tile == tile && m.kind == kind);
    let words: Vec<u64> = (0x101..0x104)
        .map(|kind| {
            of(kind)
                .unwrap_or_else(|| panic!("tile {tile} got no answer: {all:?}"))
                .value
        })
        .collect();
    (of(0x101).unwrap().tick, Answer::decode(&words).unwrap())
}

fn picture(bytes: usize) -> Vec<u8> {
    let mut state = 7u32;
    let mut next = || {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        (state >> 24) as u8
    };
    (0..bytes).map(|_| next()).collect()
}

fn expected(operation: Operation, width: u64, data: &[u8]) -> (Vec<u8>, u64) {
    let mut stream = Stream::new(operation, width, 4096).unwrap();
    let mut out = Vec::new();
    stream.push(data, &mut out);
    stream.finish(&mut out);
    (out, stream.checksum().unwrap_or(0))
}

const IN: u64 = 0x80_0000;
const OUT: u64 = 0x90_0000;
const SECOND_OUT: u64 = 0xA0_0000;
const BYTES: u64 = 20 * 1000;

#[test]
fn a_unit_computes_what_it_is_asked_to() {
    for operation in [Operation::Copy, Operation::Checksum, Operation::Edge] {
        let mut machine = chip(1, &[operation]);
        let data = picture(BYTES as usize);
        machine.load_memory(100, IN, &data).unwrap();
        adopt(
            &mut machine,
            1,
            &Client {
                number: 0,
                input: (IN, BYTES),
                output: Some((OUT, BYTES)),
                next: None,
            },
        );
        client(&mut machine, 0, 1, 0, &Request::whole(BYTES, 1000));
        machine.run(RunLimit { ticks: 4_000_000 }, None);
        let (at, answer) = answer(&machine, 0);
        let (result, checksum) = expected(operation, 1000, &data);
        assert_eq!(
            (answer.status, answer.bytes, answer.checksum),
            (0, BYTES, checksum)
        );
        let memory = machine.memory(100).unwrap();
        assert!(
            memory[OUT as usize..(OUT + BYTES) as usize] == result,
            "{operation:?}"
        );
        // Four rows of 1000 bytes fit in a page: 5 pieces of 20 + 1000 cycles of two ticks for rows. Without rows, 4 pieces of
        // 4096 bytes and one of 3616: 4 * (20 + 1024) + 20 + 904 cycles.
        let cycles = match operation {
            Operation::Edge => 5 * (20 + 4000 / 4),
            _ => 4 * (20 + 4096 / 4) + 20 + 3616 / 4,
        };
        assert_eq!(machine.accelerators(), [(1, 2 * cycles, BYTES)]);
        assert!(at > 2 * cycles);
    }
}

#[test]
fn a_bad_request_or_a_missing_right_is_answered() {
    let cases = [
        // Rows of zero bytes, a piece that is not whole rows, an empty piece in the middle, and more than the whole.
        (Request::whole(BYTES, 0), true),
        (Request::whole(BYTES, 333), true),
        (
            Request {
                position: 1000,
                ..Request::whole(1000, 1000)
            },
            true,
        ),
        (
            Request {
                total: 5,
                ..Request::whole(BYTES, 1000)
            },
            true,
        ),
        // Beyond the end of the input, of the output.
        (
            Request {
                input: 1,
                ..Request::whole(BYTES, 1000)
            },
            false,
        ),
        (
            Request {
                output: 1,
                ..Request::whole(BYTES, 1000)
            },
            false,
        ),
        (
            Request {
                output: u64::MAX,
                ..Request::whole(BYTES, 1000)
            },
            false,
        ),
    ];
    for (request, bad) in cases {
        let mut machine = chip(1, &[Operation::Edge]);
        let before = picture(0x4000);
        machine.load_memory(100, OUT + BYTES, &before).unwrap();
        let client_of = Client {
            number: 0,
            input: (IN, BYTES),
            output: Some((OUT, BYTES)),
            next: None,
        };
        adopt(&mut machine, 1, &client_of);
        client(&mut machine, 0, 1, 0, &request);
        machine.run(RunLimit { ticks: 4_000_000 }, None);
        let status = answer(&machine, 0).1.status;
        assert_eq!(
            status == bulkhead_abi::accelerator::BAD_REQUEST,
            bad,
            "{request:?}: {status}"
        );
        assert_ne!(status, 0, "{request:?}");
        let behind = (OUT + BYTES) as usize;
        assert!(machine.memory(100).unwrap()[behind..behind + 0x4000] == before);
    }
}

#[test]
fn a_pipeline_works_on_its_own() {
    let mut machine = chip(1, &[Operation::Edge, Operation::Checksum]);
    let bytes = 64 * 256;
    let data = picture(bytes);
    machine.load_memory(100, IN, &data).unwrap();
    let stage = |input, output, next| Client {
        number: 0,
        input: (input, bytes as u64),
        output: Some((output, bytes as u64)),
        next,
    };
    adopt(&mut machine, 1, &stage(IN, OUT, Some(2)));
    adopt(&mut machine, 2, &stage(OUT, SECOND_OUT, None));
    client(&mut machine, 0, 1, 0, &Request::whole(bytes as u64, 64));
    machine.run(RunLimit { ticks: 8_000_000 }, None);
    let (_, answer) = answer(&machine, 0);
    let (edges, _) = expected(Operation::Edge, 64, &data);
    let (_, checksum) = expected(Operation::Checksum, 64, &edges);
    assert_eq!((answer.status, answer.checksum), (0, checksum));
    let memory = machine.memory(100).unwrap();
    assert!(memory[SECOND_OUT as usize..SECOND_OUT as usize + bytes] == edges);
}

#[test]
fn clients_take_turns_and_keep_their_streams() {
    let mut machine = chip(2, &[Operation::Edge]);
    let bytes = 128 * 128u64;
    let pictures = [
        picture(bytes as usize),
        picture(2 * bytes as usize)[bytes as usize..].to_vec(),
    ];
    for number in 0..2u64 {
        let data = &pictures[number as usize];
        machine.load_memory(100, IN + number * bytes, data).unwrap();
        adopt(
            &mut machine,
            2,
            &Client {
                number: number as u16,
                input: (IN + number * bytes, bytes),
                output: Some((OUT + number * bytes, bytes)),
                next: None,
            },
        );
        let tile = number as TileId;
        client(&mut machine, tile, 2, tile, &Request::whole(bytes, 128));
    }
    machine.run(RunLimit { ticks: 8_000_000 }, None);
    let (first, second) = (answer(&machine, 0), answer(&machine, 1));
    assert_eq!((first.1.status, second.1.status), (0, 0));
    for (number, picture) in pictures.iter().enumerate() {
        let at = OUT as usize + number * bytes as usize;
        let (result, _) = expected(Operation::Edge, 128, picture);
        assert!(
            machine.memory(100).unwrap()[at..at + bytes as usize] == result,
            "{number}"
        );
    }
    // They ended within one piece of each other: neither waited for the other's whole image.
    assert!(
        first.0.abs_diff(second.0) < 40_000,
        "{} {}",
        first.0,
        second.0
    );
}

#[test]
fn a_rogue_unit_stays_within_its_endpoints() {
    for seed in 0..3 {
        let mut config = platform(PlatformKind::Tiled, 3, 1);
        config.tiles[2].accelerator = Some(unit(Operation::Rogue));
        config.seed = seed;
        let mut machine = Machine::new(&config).unwrap();
        for tile in 0..3 {
            give_memory(&mut machine, tile, 100, tile as u64 * (1 << 20));
        }
        let secret = picture(1 << 16);
        for at in [0x18_0000, IN - (1 << 16), IN + BYTES, OUT + BYTES] {
            machine.load_memory(100, at, &secret).unwrap();
        }
        adopt(
            &mut machine,
            2,
            &Client {
                number: 0,
                input: (IN, BYTES),
                output: Some((OUT, BYTES)),
                next: None,
            },
        );
        let before: Vec<Endpoint> = (0..64)
            .map(|i| machine.unit(0).unwrap().endpoint(i))
            .collect();
        let own: Vec<Endpoint> = (0..4)
            .map(|i| machine.unit(2).unwrap().endpoint(i))
            .collect();
        // A neighbour computes meanwhile.
        let mut p = Program::default();
        p.li(S0, 20_000);
        let again = p.here();
        p.addi(S0, S0, -1).branch(1, S0, ZERO, again);
        p.marker(S0, 0x100).wfi_forever();
        start(&mut machine, 0, &p);
        machine.run(RunLimit { ticks: 3_000_000 }, None);
        let (_, _, streamed) = machine.accelerators()[0];
        assert_eq!(streamed, 0);
        let memory = machine.memory(100).unwrap();
        for at in [0x18_0000, IN - (1 << 16), IN + BYTES, OUT + BYTES] {
            assert!(
                memory[at as usize..at as usize + secret.len()] == secret,
                "{at:#x}"
            );
        }
        // Memory that it may only read is unchanged.
        assert!(
            memory[IN as usize..(IN + BYTES) as usize]
                .iter()
                .all(|byte| *byte == 0)
        );
        for (i, endpoint) in before.iter().enumerate() {
            assert_eq!(machine.unit(0).unwrap().endpoint(i as u16), *endpoint);
        }
        for (i, endpoint) in own.iter().enumerate() {
            assert_eq!(
                machine.unit(2).unwrap().endpoint(i as u16),
                *endpoint,
                "its own windows"
            );
        }
        assert!(
            machine.markers().iter().any(|m| m.kind == 0x100),
            "the neighbour goes on"
        );
    }
}

#[test]
fn windows_do_not_change_what_a_unit_does() {
    let ready = || {
        let mut machine = chip(1, &[Operation::Edge]);
        machine
            .load_memory(100, IN, &picture(BYTES as usize))
            .unwrap();
        let client_of = Client {
            number: 0,
            input: (IN, BYTES),
            output: Some((OUT, BYTES)),
            next: None,
        };
        adopt(&mut machine, 1, &client_of);
        client(&mut machine, 0, 1, 0, &Request::whole(BYTES, 1000));
        machine
    };
    let (mut whole, mut pieces) = (ready(), ready());
    whole.run(RunLimit { ticks: 1_000_000 }, None);
    super::isolation::in_pieces(&mut pieces, 1_000_000);
    assert_eq!(whole.digest(), pieces.digest());
}

#[path = "accelerator_timing_tests.rs"]
mod timing;
