//! What commands do and refuse, one rule per test.

use super::latencies::channel;
use super::world::*;
use crate::dtu::WriteEffect;
use crate::types::Tick;
use bulkhead_abi::dtu::*;
use bulkhead_abi::memory_map::PMP_WINDOW_SIZE;
use bulkhead_abi::message::{FLAG_REPLY, HEADER_SIZE, Header};
use zerocopy::FromBytes;

const NO_REPLY: u32 = NO_ENDPOINT as u32;

fn send(world: &mut World, tile: u16, reply: u32, byte: u8, label: u64) -> DtuError {
    world.bytes(tile, 0x100, 1)[0] = byte;
    let command = Command::new(Opcode::Send, 8, reply);
    world.execute(tile, command, BASE + 0x100, 1, label).0
}

fn reply(world: &mut World, tile: u16, offset: u64) -> DtuError {
    let command = Command::new(Opcode::Reply, 8, offset as u32);
    world.execute(tile, command, BASE, 1, 0).0
}

fn acknowledge(world: &mut World, tile: u16, endpoint: u16, offset: u64) -> DtuError {
    let command = Command::new(Opcode::Acknowledge, endpoint, offset as u32);
    world.execute(tile, command, 0, 0, 0).0
}

fn credits(world: &World, tile: u16) -> u8 {
    match world.endpoint(tile, 8) {
        Endpoint::Send(send) => send.credits,
        other => panic!("{other:?}"),
    }
}

fn header(world: &mut World, tile: u16, offset: u64) -> Header {
    let bytes = world.bytes(tile, 0x4000 + offset, HEADER_SIZE as u64);
    Header::read_from_bytes(bytes).expect("size")
}

#[test]
fn message_and_reply_carry_what_the_hardware_knows() {
    let mut world = World::new(&config());
    channel(&mut world, 2, 256);
    assert_eq!(send(&mut world, 1, 9, 42, 0xfeed), DtuError::None);
    assert_eq!(credits(&world, 1), 1);
    let offset = world.fetch(2, 8).expect("message");
    let message = header(&mut world, 2, offset);
    let expected = Header {
        flags: 0,
        length: 1,
        sender_tile: 1,
        sender_endpoint: 8,
        reply_endpoint: 9,
        sender_activity: TILEMUX_ACTIVITY,
        shares: 0,
        reply_label: 0xfeed,
        label: 0x1234_5678_9abc_def0,
    };
    assert_eq!(message, expected);
    assert_eq!(world.bytes(2, 0x4000 + 32, 1), [42]);
    assert_eq!(reply(&mut world, 2, offset), DtuError::None);
    assert_eq!(credits(&world, 1), 2);
    let offset = world.fetch(1, 9).expect("reply");
    let answer = header(&mut world, 1, offset);
    assert_eq!(
        (answer.flags, answer.label, answer.sender_tile),
        (FLAG_REPLY, 0xfeed, 2)
    );
    assert_eq!(answer.reply_endpoint, NO_ENDPOINT);
}

#[test]
fn a_right_to_reply_works_once_and_only_for_its_message() {
    let mut world = World::new(&config());
    channel(&mut world, 4, 256);
    // Not fetched yet.
    send(&mut world, 1, 9, 1, 0);
    assert_eq!(reply(&mut world, 2, 0), DtuError::BadMessage);
    let offset = world.fetch(2, 8).expect("message");
    // Not a slot, not its start, not occupied.
    for wrong in [offset + 1, offset + 256, 1 << 20] {
        assert_eq!(reply(&mut world, 2, wrong), DtuError::BadMessage);
    }
    // The right is not an ordinary send endpoint.
    let direct = Command::new(Opcode::Send, 16, NO_REPLY);
    assert_eq!(
        world.execute(2, direct, BASE, 1, 0).0,
        DtuError::InvalidEndpoint
    );
    assert_eq!(reply(&mut world, 2, offset), DtuError::None);
    assert_eq!(reply(&mut world, 2, offset), DtuError::BadMessage);
    assert_eq!(world.endpoint(2, 16), Endpoint::Invalid);
    // A message without a reply endpoint gives no right, even in a slot that previously had one.
    send(&mut world, 1, NO_REPLY, 1, 0);
    let offset = world.fetch(2, 8).expect("message");
    assert_eq!(reply(&mut world, 2, offset), DtuError::NoReply);
    assert_eq!(acknowledge(&mut world, 2, 8, offset), DtuError::None);
    // Acknowledged first: the right is gone.
    send(&mut world, 1, 9, 1, 0);
    let offset = world.fetch(2, 8).expect("message");
    assert_eq!(acknowledge(&mut world, 2, 8, offset), DtuError::None);
    assert_eq!(reply(&mut world, 2, offset), DtuError::BadMessage);
}

#[test]
fn refused_messages_cost_nothing() {
    let mut world = World::new(&config());
    channel(&mut world, 8, 256);
    for _ in 0..4 {
        assert_eq!(send(&mut world, 1, 9, 0, 0), DtuError::None);
    }
    assert_eq!(send(&mut world, 1, 9, 0, 0), DtuError::NoSpace);
    assert_eq!(credits(&world, 1), 4);
    world.set(2, 8, Endpoint::Invalid);
    assert_eq!(send(&mut world, 1, 9, 0, 0), DtuError::ReceiverGone);
    assert_eq!(credits(&world, 1), 4);
    // Slots smaller than the messages the sender may send.
    world.set(2, 8, receive_at(0x4000, 4, 64, NO_ENDPOINT));
    let command = Command::new(Opcode::Send, 8, 9);
    assert_eq!(world.execute(1, command, BASE, 33, 0).0, DtuError::BadSize);
    assert_eq!(world.execute(1, command, BASE, 32, 0).0, DtuError::None);
    assert_eq!(credits(&world, 1), 3);
    // A buffer outside the receiver's windows.
    world.set(2, 8, receive_at(SHARE, 4, 256, NO_ENDPOINT));
    assert_eq!(send(&mut world, 1, 9, 0, 0), DtuError::ReceiverGone);
    world.set(1, 8, send_to(2, 8, 0, 256));
    assert_eq!(send(&mut world, 1, 9, 0, 0), DtuError::NoCredits);
    for tile in [MEMORY_TILE, 7, 999] {
        world.set(1, 8, send_to(tile, 8, 1, 256));
        assert_eq!(send(&mut world, 1, 9, 0, 0), DtuError::TargetRefused);
        assert_eq!(credits(&world, 1), 1);
    }
    world.set(1, 8, send_to(2, 8, UNLIMITED_CREDITS, 256));
    world.set(2, 8, receive_at(0x4000, 4, 256, NO_ENDPOINT));
    assert_eq!(send(&mut world, 1, 9, 0, 0), DtuError::None);
    assert_eq!(credits(&world, 1), UNLIMITED_CREDITS);
}

#[test]
fn sizes_pages_and_owners_are_checked() {
    let mut world = World::new(&config());
    channel(&mut world, 4, 2048);
    let command = Command::new(Opcode::Send, 8, 9);
    for (address, size) in [
        (BASE, 0),
        (BASE, 2017),
        (BASE + 0xfff, 2),
        (BASE, u64::MAX),
        (u64::MAX, 1),
    ] {
        let error = world.execute(1, command, address, size, 0).0;
        let expected = if size == 1 {
            DtuError::TargetRefused
        } else {
            DtuError::BadSize
        };
        assert_eq!(error, expected, "{address:#x} {size}");
    }
    // Reply endpoints must be receive endpoints of the sender.
    for wrong in [8, 10, 999, 0x1_0009] {
        let command = Command::new(Opcode::Send, 8, wrong);
        assert_eq!(
            world.execute(1, command, BASE, 1, 0).0,
            DtuError::InvalidEndpoint
        );
    }
    for endpoint in [9, 10, 31, 32, 0xffff] {
        let command = Command::new(Opcode::Send, endpoint, NO_REPLY);
        assert_eq!(
            world.execute(1, command, BASE, 1, 0).0,
            DtuError::InvalidEndpoint
        );
        let command = Command::new(Opcode::Read, endpoint, 0);
        assert_eq!(
            world.execute(1, command, BASE, 1, 0).0,
            DtuError::InvalidEndpoint
        );
    }
    world.switch(1, 7, 0);
    world.map(1, 7, 0x1000_0000, 0, TLB_READ | TLB_WRITE);
    for command in [
        command,
        Command::new(Opcode::Read, 0, 0),
        Command::new(Opcode::Write, 0, 0),
        Command::new(Opcode::Fetch, 9, 0),
        Command::new(Opcode::Acknowledge, 9, 0),
        Command::new(Opcode::Reply, 9, 0),
        Command::new(Opcode::Sleep, 9, 0),
    ] {
        let error = world.execute(1, command, 0x1000_0000, 1, 0).0;
        assert_eq!(error, DtuError::ForeignEndpoint, "{command:?}");
    }
    let unknown = Command(0x77);
    world.write(1, COMMAND, unknown.0);
    assert_eq!(world.error(1), DtuError::UnknownCommand);
}

#[test]
fn memory_endpoints_bound_what_is_moved() {
    let mut world = World::new(&config());
    world.set(1, 8, memory_at(MEMORY_TILE, 2 * SHARE + 8, 100, TLB_READ));
    world.bytes(2, 8, 100).fill(7);
    let read = Command::new(Opcode::Read, 8, 0);
    assert_eq!(
        world.execute(1, read, BASE + 0x20, 100, 0).0,
        DtuError::None
    );
    assert_eq!(
        world.bytes(1, 0x1f, 102)[..],
        [&[0][..], &[7; 100], &[0]].concat()[..]
    );
    for (offset, size) in [
        (0, 101),
        (100, 1),
        (1, 100),
        (u64::MAX, 1),
        (u64::MAX - 99, 100),
    ] {
        assert_eq!(
            world.execute(1, read, BASE, size, offset).0,
            DtuError::OutOfBounds
        );
    }
    let write = Command::new(Opcode::Write, 8, 0);
    assert_eq!(
        world.execute(1, write, BASE, 1, 0).0,
        DtuError::NoPermission
    );
    world.set(
        1,
        8,
        memory_at(MEMORY_TILE, u64::MAX - 10, u64::MAX, TLB_READ),
    );
    assert_eq!(world.execute(1, read, BASE, 16, 0).0, DtuError::OutOfBounds);
    // The memory itself refuses.
    world.set(
        1,
        8,
        memory_at(MEMORY_TILE, 1 << 40, 4096, TLB_READ | TLB_WRITE),
    );
    assert_eq!(
        world.execute(1, read, BASE, 4096, 0).0,
        DtuError::TargetRefused
    );
    assert_eq!(
        world.execute(1, write, BASE, 4096, 0).0,
        DtuError::TargetRefused
    );
    world.set(1, 8, memory_at(99, 0, 4096, TLB_READ));
    assert_eq!(
        world.execute(1, read, BASE, 8, 0).0,
        DtuError::TargetRefused
    );
    // A TLB entry cannot lead out of the windows.
    world.set(1, 8, memory_at(MEMORY_TILE, 0, 4096, TLB_READ | TLB_WRITE));
    world.map(1, TILEMUX_ACTIVITY, 0x1000_0000, 0, TLB_READ);
    let outside = [BASE + SHARE, BASE + PMP_WINDOW_SIZE, 0, DTU_REGISTERS];
    for address in outside {
        assert_eq!(
            world.execute(1, read, address, 8, 0).0,
            DtuError::TargetRefused
        );
        assert_eq!(
            world.execute(1, write, address, 8, 0).0,
            DtuError::TargetRefused
        );
    }
}

const DTU_REGISTERS: u64 = bulkhead_abi::memory_map::DTU_BASE;

#[test]
fn interrupts_only_for_those_who_do_not_run() {
    let mut world = World::new(&config());
    channel(&mut world, 4, 256);
    send(&mut world, 1, 9, 0, 0);
    assert!(!world.chip.harts[2].interrupt, "the recipient runs");
    let old = world.switch(2, 5, 0);
    assert_eq!(
        (old.activity(), old.messages()),
        (TILEMUX_ACTIVITY, 1),
        "no wake-up is lost"
    );
    assert!(!world.chip.harts[2].interrupt);
    // Two endpoints of an activity that is not running, one of the running one.
    let receive = |activity, offset| match receive_at(offset, 4, 64, NO_ENDPOINT) {
        Endpoint::Receive(r) => Endpoint::Receive(ReceiveEndpoint { activity, ..r }),
        other => other,
    };
    world.set(2, 9, receive(6, 0x5000));
    world.set(2, 10, receive(6, 0x6000));
    world.set(2, 11, receive(5, 0x7000));
    for (endpoint, times) in [(11, 1), (10, 2), (9, 1)] {
        world.set(1, 8, send_to(2, endpoint, 4, 64));
        for _ in 0..times {
            send(&mut world, 1, NO_REPLY, 0, 0);
        }
    }
    assert_eq!(
        CurrentActivity(world.read(2, CURRENT_ACTIVITY)).messages(),
        1
    );
    assert!(world.chip.harts[2].interrupt);
    // The first core request is for endpoint 10, the next for endpoint 9. Two messages of one endpoint are one
    // request.
    let mut requests = Vec::new();
    loop {
        let request = CoreRequest(world.read(2, CORE_REQUEST));
        if !request.is_valid() {
            break;
        }
        assert!(world.chip.harts[2].interrupt);
        requests.push((request.activity(), request.endpoint()));
        world.write(2, CORE_REQUEST, 0);
    }
    // The second message for 10 came after the announcement of the first, so 10 is announced again.
    assert_eq!(requests, [(6, 10), (6, 9), (6, 10)]);
    assert!(!world.chip.harts[2].interrupt);
    // A message that has not been announced is no longer announced once its activity runs.
    send(&mut world, 1, NO_REPLY, 0, 0);
    send(&mut world, 1, NO_REPLY, 0, 0);
    world.switch(2, 6, 0);
    world.write(2, CORE_REQUEST, 0);
    assert_eq!(world.read(2, CORE_REQUEST), 0);
    assert_eq!(
        CurrentActivity(world.read(2, CURRENT_ACTIVITY)).messages(),
        5
    );
}

#[test]
fn sleep_checks_and_wakes() {
    let mut world = World::new(&config());
    channel(&mut world, 4, 256);
    world.set(2, 9, receive_at(0x6000, 4, 64, NO_ENDPOINT));
    let other = Command::new(Opcode::Sleep, 9, 0);
    // A message for another endpoint of the activity neither prevents nor ends this sleep.
    send(&mut world, 1, NO_REPLY, 0, 0);
    assert_eq!(world.command(2, other, 0, 0, 0), WriteEffect::Sleep);
    send(&mut world, 1, NO_REPLY, 0, 0);
    assert!(world.units[2].is_sleeping());
    // A message for an activity that is not running ends it by its interrupt.
    let Endpoint::Receive(receive) = receive_at(0x7000, 4, 64, NO_ENDPOINT) else {
        panic!()
    };
    let foreign = ReceiveEndpoint {
        activity: 3,
        ..receive
    };
    world.set(2, 10, Endpoint::Receive(foreign));
    world.set(1, 8, send_to(2, 10, 4, 64));
    send(&mut world, 1, NO_REPLY, 0, 0);
    assert_eq!(world.error(2), DtuError::Woken);
    assert_eq!(world.chip.harts[2].wakes, 1);
    // While the interrupt is pending, the hart does not fall asleep; a masked interrupt does not count.
    assert_eq!(world.command(2, other, 0, 0, 0), WriteEffect::None);
    assert_eq!(world.error(2), DtuError::Woken);
    world.chip.harts[2].interrupt_enabled = false;
    assert_eq!(world.command(2, other, 0, 0, 0), WriteEffect::Sleep);
    // A hart that comes back was woken by something else.
    assert_eq!(world.error(2), DtuError::Woken);
    // Revoking the endpoint also wakes the hart.
    world.set(0, 8, memory_at(2, 0, 0x1_0000, TLB_READ | TLB_WRITE));
    world.command(2, other, 0, 0, 0);
    kernel_write(
        &mut world,
        EXTERNAL_COMMAND,
        &[external_command(ExternalOpcode::InvalidateEndpoint, 9, 1)],
    );
    assert_eq!(world.error(2), DtuError::InvalidEndpoint);
}

/// The kernel on tile 0 writes registers through its memory endpoint 8.
fn kernel_write(world: &mut World, offset: u64, words: &[u64]) -> DtuError {
    let bytes: Vec<u8> = words.iter().flat_map(|word| word.to_le_bytes()).collect();
    world
        .bytes(0, 0x200, bytes.len() as u64)
        .copy_from_slice(&bytes);
    let command = Command::new(Opcode::Write, 8, 0);
    world
        .execute(0, command, BASE + 0x200, bytes.len() as u64, offset)
        .0
}

#[test]
fn the_kernel_configures_other_tiles() {
    let mut world = World::new(&config());
    world.set(0, 8, memory_at(1, 0, 0x1_0000, TLB_READ | TLB_WRITE));
    let epoch = world.units[1].epoch();
    let window = memory_at(MEMORY_TILE, 0, 4096, TLB_READ);
    assert_eq!(
        kernel_write(&mut world, ENDPOINTS + 32, &window.pack()),
        DtuError::None
    );
    assert_eq!(world.endpoint(1, 1), window);
    assert_ne!(world.units[1].epoch(), epoch);
    let physical = BASE + PMP_WINDOW_SIZE;
    assert_eq!(
        world.units[1].translate_window(physical + 4095, false),
        Ok((MEMORY_TILE, 4095))
    );
    assert!(
        world.units[1]
            .translate_window(physical + 4096, false)
            .is_err()
    );
    assert!(world.units[1].translate_window(physical, true).is_err());
    // A window onto a processing tile is not memory.
    kernel_write(
        &mut world,
        ENDPOINTS + 32,
        &memory_at(2, 0, 4096, TLB_READ).pack(),
    );
    assert!(world.units[1].translate_window(physical, false).is_err());
    // All buckets at once, with the gaps between them.
    let buckets = [10, 20, 30, 0, 11, 21, 31, 0, 12, 22, 32, 0, 13, 23, 1 << 40];
    assert_eq!(kernel_write(&mut world, BUCKETS, &buckets), DtuError::None);
    assert_eq!(world.read(1, BUCKETS + BUCKET_STRIDE + BUCKET_LIMIT), 31);
    // The limit is bounded by the platform.
    assert_eq!(
        world.read(1, BUCKETS + 3 * BUCKET_STRIDE + BUCKET_LIMIT),
        16 << 10
    );
    assert_eq!(world.read(1, BUCKETS + BUCKET_AMOUNT), 20);
    kernel_write(&mut world, EXTERNAL_ARGUMENT, &[0x8000_1000]);
    kernel_write(
        &mut world,
        EXTERNAL_COMMAND,
        &[ExternalOpcode::StartHart as u64],
    );
    assert_eq!(world.chip.harts[1].started, Some(0x8000_1000));
    kernel_write(
        &mut world,
        EXTERNAL_COMMAND,
        &[ExternalOpcode::StopHart as u64],
    );
    assert!(world.chip.harts[1].stopped);
    // Read back through the network.
    let read = Command::new(Opcode::Read, 8, 0);
    assert_eq!(
        world.execute(0, read, BASE, 32, ENDPOINTS).0,
        DtuError::None
    );
    assert_eq!(
        world.bytes(0, 0, 32),
        share(1).pack().map(u64::to_le_bytes).concat()
    );
    // The first two pages, the end of the file and odd widths are closed.
    for offset in [
        COMMAND,
        PRIVILEGED_COMMAND,
        CURRENT_ACTIVITY,
        0x3000,
        ENDPOINTS + 32 * 32,
        ENDPOINTS + 4,
    ] {
        assert_eq!(
            kernel_write(&mut world, offset, &[1]),
            DtuError::TargetRefused,
            "{offset:#x}"
        );
    }
    for (offset, size) in [
        (COMMAND, 8),
        (CURRENT_ACTIVITY, 8),
        (ENDPOINTS, 4),
        (ENDPOINTS + 4, 8),
    ] {
        assert_eq!(
            world.execute(0, read, BASE, size, offset).0,
            DtuError::TargetRefused
        );
    }
}

#[test]
fn what_is_revoked_stops_even_under_way() {
    let mut world = World::new(&config());
    world.set(0, 8, memory_at(1, 0, 0x1_0000, TLB_READ | TLB_WRITE));
    world.set(
        1,
        8,
        memory_at(MEMORY_TILE, 2 * SHARE, 4096, TLB_READ | TLB_WRITE),
    );
    world.units[1].set_bucket(0, 0, 1 << 20, 512, 4096);
    world.bytes(1, 0, 2048).fill(1);
    // The first chunk leaves and the second waits for its tokens; then the kernel takes the endpoint away.
    world.command(1, Command::new(Opcode::Write, 8, 0), BASE, 2048, 0);
    world.run_until(1000);
    kernel_write(
        &mut world,
        EXTERNAL_COMMAND,
        &[external_command(ExternalOpcode::InvalidateEndpoint, 8, 1)],
    );
    world.run();
    assert_eq!(world.error(1), DtuError::InvalidEndpoint);
    assert_eq!(world.bytes(2, 0, 512), [1; 512]);
    assert_eq!(world.bytes(2, 512, 1536), [0; 1536]);
}

#[test]
fn abort_undoes_what_has_not_left() {
    let mut world = World::new(&config());
    channel(&mut world, 2, 2048);
    let abort = PrivilegedOpcode::AbortCommand as u64;
    let command = Command::new(Opcode::Send, 8, 9);
    // During the start-up, while local data is read, and with one chunk sent and the next waiting for tokens.
    for moment in [0, 42, 50, 1000] {
        world.units[1].set_bucket(world.chip.now, 0, 1 << 20, 512, 4096);
        let start: Tick = world.chip.now;
        world.command(1, command, BASE, 2016, 0);
        world.run_until(start + moment);
        world.write(1, PRIVILEGED_COMMAND, abort);
        assert_eq!(world.error(1), DtuError::Aborted);
        assert_eq!(credits(&world, 1), 2);
        world.run();
        assert_eq!(world.fetch(2, 8), None);
    }
    // Once everything has left, it cannot be undone.
    world.units[1].set_bucket(world.chip.now, 0, 0, 0, 0);
    let start = world.chip.now;
    world.command(1, command, BASE, 1, 0);
    world.run_until(start + 63);
    world.write(1, PRIVILEGED_COMMAND, abort);
    assert_eq!(Command(world.read(1, COMMAND)).opcode(), Opcode::Send as u8);
    world.run();
    assert_eq!(world.error(1), DtuError::None);
    assert!(world.fetch(2, 8).is_some());
    // An aborted read writes nothing more, and ends when its answers have arrived.
    world.set(1, 8, memory_at(MEMORY_TILE, 2 * SHARE, 4096, TLB_READ));
    world.bytes(1, 0x8000, 512).fill(9);
    world.command(1, Command::new(Opcode::Read, 8, 0), BASE + 0x8000, 512, 0);
    world.run_until(world.chip.now + 41);
    world.write(1, PRIVILEGED_COMMAND, abort);
    assert_ne!(Command(world.read(1, COMMAND)).opcode(), 0);
    world.run();
    assert_eq!(world.error(1), DtuError::Aborted);
    assert_eq!(world.bytes(1, 0x8000, 512), [9; 512]);
}

#[test]
fn one_command_at_a_time() {
    let mut world = World::new(&config());
    channel(&mut world, 2, 256);
    let command = Command::new(Opcode::Send, 8, 9);
    world.command(1, command, BASE, 1, 0);
    world.command(1, command, BASE, 1, 0);
    assert_eq!(world.error(1), DtuError::Busy);
    assert_eq!(Command(world.read(1, COMMAND)).opcode(), Opcode::Send as u8);
    world.run();
    assert_eq!(world.error(1), DtuError::None);
    assert_eq!(credits(&world, 1), 1);
    // TileMux restores an outcome.
    let saved = Command(u64::from(DtuError::NoCredits as u8) << 24).0;
    world.write(1, COMMAND, saved);
    assert_eq!(world.error(1), DtuError::NoCredits);
}

#[test]
fn fetch_serves_every_sender_in_turn() {
    let mut world = World::new(&config());
    channel(&mut world, 8, 256);
    world.set(3, 8, send_to(2, 8, 8, 256));
    // Tile 1 always has messages waiting; tile 3 sends one. At most three others are fetched before it.
    for byte in [1, 1, 1] {
        send(&mut world, 1, NO_REPLY, byte, 0);
    }
    send(&mut world, 3, NO_REPLY, 3, 0);
    let mut order = Vec::new();
    for _ in 0..6 {
        let offset = world.fetch(2, 8).expect("message");
        order.push(world.bytes(2, 0x4000 + offset + 32, 1)[0]);
        acknowledge(&mut world, 2, 8, offset);
        send(&mut world, 1, NO_REPLY, 1, 0);
    }
    assert_eq!(order, [1, 1, 1, 3, 1, 1]);
}

#[test]
fn messages_of_one_sender_keep_their_order() {
    let mut world = World::new(&config());
    channel(&mut world, 8, 256);
    let (mut next, mut expected) = (0u8, 0u8);
    // Two to three messages wait at any time, over many rounds of the four slots.
    for _ in 0..40 {
        while next - expected < 3 {
            world.set(1, 8, send_to(2, 8, 8, 256));
            assert_eq!(send(&mut world, 1, NO_REPLY, next, 0), DtuError::None);
            next += 1;
        }
        let offset = world.fetch(2, 8).expect("message");
        assert_eq!(world.bytes(2, 0x4000 + offset + 32, 1), [expected]);
        acknowledge(&mut world, 2, 8, offset);
        expected += 1;
    }
}

#[test]
fn the_bucket_is_the_one_of_the_activity_that_started() {
    let mut world = World::new(&config());
    world.set(
        1,
        8,
        memory_at(MEMORY_TILE, 2 * SHARE, 4096, TLB_READ | TLB_WRITE),
    );
    world.units[1].set_bucket(0, 3, 1 << 20, 512, 4096);
    world.switch(1, TILEMUX_ACTIVITY, 3);
    world.command(1, Command::new(Opcode::Read, 8, 0), BASE, 1024, 0);
    // Changing the bits afterwards does not help.
    world.switch(1, TILEMUX_ACTIVITY, 0);
    world.run();
    assert_eq!(world.chip.sent[1].0, 1_954_000);
}

#[test]
fn a_message_interrupts_once_for_who_awaits_it_and_nobody_more_urgent() {
    let mut world = World::new(&config());
    let receive = |activity, buffer| match receive_at(buffer, 4, 64, NO_ENDPOINT) {
        Endpoint::Receive(r) => Endpoint::Receive(ReceiveEndpoint { activity, ..r }),
        other => other,
    };
    for (endpoint, activity) in [(9, 6), (10, 6), (11, 7), (12, TILEMUX_ACTIVITY)] {
        world.set(2, endpoint, receive(activity, 0x400 * u64::from(endpoint)));
    }
    let become_current = |world: &mut World, activity, urgency| {
        let new = CurrentActivity::new(activity, 0, 0).with_urgency(urgency);
        world.write(2, PRIVILEGED_ARGUMENT, new.0);
        let opcode = PrivilegedOpcode::ExchangeActivity as u64;
        world.write(2, PRIVILEGED_COMMAND, opcode);
    };
    let message = |world: &mut World, endpoint| {
        world.set(1, 8, send_to(2, endpoint, 4, 64));
        send(world, 1, NO_REPLY, 0, 0);
    };
    let announced = |world: &mut World| {
        let request = CoreRequest(world.read(2, CORE_REQUEST));
        assert_eq!(world.chip.harts[2].interrupt, request.is_valid());
        request.is_valid().then(|| request.endpoint())
    };
    let awaits = |world: &mut World, index: u64, awaited: Awaited| {
        world.write(2, AWAITED + 8 * index, awaited.0);
        assert_eq!(world.read(2, AWAITED + 8 * index), awaited.0);
    };
    // 5 runs with urgency 3; 6 waits urgently for endpoint 9, 7 for anything and less urgently.
    awaits(&mut world, 0, Awaited::new(6, 9, 3));
    awaits(&mut world, 1, Awaited::new(7, NO_ENDPOINT, 2));
    become_current(&mut world, 5, 3);
    for endpoint in [10, 11, 12] {
        message(&mut world, endpoint);
        assert_eq!(announced(&mut world), None);
    }
    message(&mut world, 9);
    assert_eq!(announced(&mut world), Some(9));
    // If not acknowledged, it waits while something more urgent runs, and then comes back.
    become_current(&mut world, 5, 4);
    assert_eq!(announced(&mut world), None);
    become_current(&mut world, 5, 3);
    assert_eq!(announced(&mut world), Some(9));
    // Once each time it waits.
    world.write(2, CORE_REQUEST, 0);
    message(&mut world, 9);
    assert_eq!(announced(&mut world), None);
    awaits(&mut world, 0, Awaited::new(6, 9, 3));
    assert_eq!(announced(&mut world), Some(9));
    world.write(2, CORE_REQUEST, 0);
    // A less urgent activity is announced once it is no longer less urgent, but not if it is running.
    become_current(&mut world, 7, 0);
    assert_eq!(announced(&mut world), None);
    become_current(&mut world, 5, 2);
    message(&mut world, 11);
    assert_eq!(announced(&mut world), Some(11));
    world.write(2, CORE_REQUEST, 0);
    // TileMux gets no special treatment.
    become_current(&mut world, 5, 9);
    awaits(
        &mut world,
        16,
        Awaited::new(TILEMUX_ACTIVITY, NO_ENDPOINT, 9),
    );
    assert_eq!(announced(&mut world), Some(12));
}

#[test]
fn a_register_with_a_delay_covers_nothing_before() {
    let mut world = World::new(&config());
    for (endpoint, activity) in [(9, 6), (10, 7)] {
        let Endpoint::Receive(r) = receive_at(0x400 * endpoint, 4, 64, NO_ENDPOINT) else {
            panic!("a receive endpoint")
        };
        let receive = Endpoint::Receive(ReceiveEndpoint { activity, ..r });
        world.set(2, endpoint as u16, receive);
    }
    let wait = |world: &mut World, index: u64, awaited: Awaited| {
        world.write(2, AWAITED + 8 * index, awaited.0);
        assert_eq!(world.read(2, AWAITED + 8 * index), awaited.0);
    };
    let message = |world: &mut World, endpoint| {
        world.set(1, 8, send_to(2, endpoint, 4, 64));
        send(world, 1, NO_REPLY, 0, 0);
    };
    let announced = |world: &mut World| {
        let request = CoreRequest(world.read(2, CORE_REQUEST));
        request.is_valid().then(|| request.endpoint())
    };
    world.switch(2, 5, 0);
    let begin = world.chip.now;
    // Two units of 256 ns at 4 ticks each. The register of the other activity has a longer delay, and had a shorter one before.
    for delay in [100_000, 300, 30_000] {
        wait(&mut world, 1, Awaited::new(7, 10, 0).after(delay));
    }
    wait(&mut world, 0, Awaited::new(6, 9, 0).after(257));
    // `send` runs the world until the message is there, which is before.
    message(&mut world, 10);
    message(&mut world, 9);
    assert!(world.chip.now < begin + 2048 && announced(&mut world).is_none());
    world.run_until(begin + 2048);
    assert_eq!(announced(&mut world), None);
    world.run_until(begin + 2049);
    assert_eq!(announced(&mut world), Some(9));
    world.write(2, CORE_REQUEST, 0);
    world.run_until(begin + 118 * 1024);
    assert_eq!(announced(&mut world), None);
    world.run_until(begin + 118 * 1024 + 1);
    assert_eq!(announced(&mut world), Some(10));
    world.write(2, CORE_REQUEST, 0);
    // Without a delay, at once; and what was written later counts.
    wait(&mut world, 0, Awaited::new(6, 9, 0).after(1_000_000));
    message(&mut world, 9);
    assert_eq!(announced(&mut world), None);
    wait(&mut world, 0, Awaited::new(6, 9, 0));
    assert_eq!(announced(&mut world), Some(9));
}
