//! Data transfer units in whole machines: real programs on real timing.

use crate::common::*;
use bulkhead_abi::dtu::*;
use bulkhead_abi::marker::{MarkerKind, Since};
use bulkhead_abi::memory_map::{CLINT_BASE, CLINT_MTIMECMP, DTU_BASE, DTU_SIZE, MEMORY_BASE};
use bulkhead_machine::config::PlatformKind;
use bulkhead_machine::ledger::Resource;
use bulkhead_machine::machine::{Machine, Outcome, RunLimit};
use bulkhead_machine::noc::Transaction;
use bulkhead_machine::trace::{TraceOptions, Tracer, proto};
use bulkhead_machine::types::{Owner, TileId};
use prost::Message;
use sha2::{Digest as _, Sha256};

fn run(machine: &mut Machine, ticks: u64) {
    let outcome = machine.run(RunLimit { ticks }, None);
    assert!(
        matches!(outcome, Outcome::Limit | Outcome::Idle { .. }),
        "{outcome:?}"
    );
}

fn markers(machine: &Machine, tile: TileId, kind: u16) -> Vec<(u64, u64)> {
    let all = machine.markers();
    let wanted = all.iter().filter(|m| m.tile == tile && m.kind == kind);
    wanted.map(|m| (m.tick, m.value)).collect()
}

/// Reads pages by DMA forever, and touches a new line of its own memory after each.
fn transfers_and_misses() -> Program {
    let mut program = Program::default();
    program
        .user()
        .unit()
        .li(S0, MEMORY_BASE + 0x4_0000)
        .addi(S1, S0, 0);
    program.command(
        Command::new(Opcode::Read, 8, 0),
        MEMORY_BASE + 0x1_0000,
        4096,
        0,
    );
    let again = program.here();
    program.repeat(Command::new(Opcode::Read, 8, 0));
    program.ld(T0, S1, 0).addi(S1, S1, 64).marker(S1, 0x100);
    program.jump(again);
    program
}

#[test]
fn transfers_and_misses_together_keep_the_rate() {
    // 80 MB/s with a burst of 4096 bytes, in 500 us (2e6 ticks): at most 40000 + 4096 bytes. Both kinds of traffic use the same bucket.
    // At least nine tenths of it are used, because the tile always wants more.
    let (rate, limit, ticks) = (80_000_000, 4096, 2_000_000);
    let mut machine = chip(2);
    set(&mut machine, 1, 8, memory(4 << 20, 4096, TLB_READ));
    machine
        .unit_mut(1)
        .expect("tile")
        .set_bucket(0, 0, rate, limit, limit);
    transfers_and_misses().start(&mut machine, 1);
    run(&mut machine, ticks);
    let counters = &machine.statistics().memories[0].counters;
    let moved = counters.read_bytes + counters.written_bytes;
    let most = rate * ticks / 4_000_000_000 + limit;
    assert!(moved <= most, "{moved} bytes of at most {most}");
    assert!(moved >= most * 9 / 10, "{moved} bytes of at most {most}");
    // Without the bucket, far more traffic passes.
    let mut free = chip(2);
    set(&mut free, 1, 8, memory(4 << 20, 4096, TLB_READ));
    transfers_and_misses().start(&mut free, 1);
    run(&mut free, ticks);
    let counters = &free.statistics().memories[0].counters;
    assert!(counters.read_bytes > 10 * most);
    // Waits for tokens are charged to the tile itself, which waits nearly all the time. For both kinds, a request begins when its tokens
    // are available.
    let owner = Owner::new(1, TILEMUX_ACTIVITY);
    let ledger = machine.ledger();
    let bookings = ledger.bookings();
    let waits = bookings.iter().find(|b| b.resource == Resource::Bucket);
    let waits = waits.filter(|b| b.victim == owner && b.culprit == owner);
    let waited = waits.expect("booked").ticks;
    assert!(waited > ticks / 2, "{waited}");
    for transaction in [Transaction::CacheRead, Transaction::DmaRead] {
        let latency = ledger.latency(owner, transaction).expect("happened");
        let longest = latency.total.maximum();
        assert!(longest < ticks / 100, "{transaction:?} {longest}");
    }
}

#[test]
fn only_recipients_that_do_not_run_interrupt() {
    let mut machine = chip(3);
    set(&mut machine, 0, 8, send(1, 8, UNLIMITED_CREDITS));
    set(&mut machine, 0, 9, send(1, 9, UNLIMITED_CREDITS));
    set(&mut machine, 1, 8, receive(5, 0x2_0000, 8, NO_ENDPOINT));
    set(&mut machine, 1, 9, receive(6, 0x3_0000, 8, NO_ENDPOINT));
    // Tile 0 sends five messages to the running activity, then one to the other, then five more.
    let mut sender = Program::default();
    sender.unit();
    for endpoint in [8, 8, 8, 8, 8, 9, 8, 8] {
        let command = Command::new(Opcode::Send, endpoint, NO_ENDPOINT.into());
        sender.command(command, MEMORY_BASE + 0x1_0000, 8, 0);
        sender.srli(T0, T0, 24).andi(T0, T0, 0xFF).marker(T0, 0x100);
    }
    sender.spin();
    // Tile 1: activity 5 is current, external interrupts are enabled, and it counts forever. The handler comes first.
    let mut receiver = Program::default();
    let skip = receiver.here();
    receiver.word(0x0000_0013); // the jump over the handler, below
    let handler = receiver.here();
    receiver
        .ld(T0, S0, CORE_REQUEST & 0xFFF)
        .marker(T0, 0x111)
        .sd(ZERO, S0, CORE_REQUEST & 0xFFF)
        .mret();
    let main = receiver.here();
    let _ = handler;
    receiver.unit().li(S0, DTU_BASE + PRIVILEGED_PAGE);
    receiver
        .li(T0, CurrentActivity::new(5, 0, 0).0)
        .sd(T0, S0, PRIVILEGED_ARGUMENT & 0xFFF);
    receiver.addi(T0, ZERO, PrivilegedOpcode::ExchangeActivity as i32);
    receiver.sd(T0, S0, PRIVILEGED_COMMAND & 0xFFF);
    receiver.li(T0, MEMORY_BASE + 4).csr(1, 0x305, T0); // mtvec
    receiver.li(T0, 1 << 11).csr(1, 0x304, T0); // mie.MEIE
    receiver.addi(T0, ZERO, 8).csr(2, 0x300, T0); // mstatus.MIE
    let count = receiver.here();
    receiver.addi(S1, S1, 1).jump(count);
    receiver.patch_jump(skip, main);
    receiver.start(&mut machine, 1);
    sender.start(&mut machine, 0);
    run(&mut machine, 400_000);
    let sent = markers(&machine, 0, 0x100);
    assert_eq!(sent.iter().map(|m| m.1).collect::<Vec<_>>(), [0; 8]);
    let interrupts = markers(&machine, 1, 0x111);
    assert_eq!(interrupts.len(), 1, "{interrupts:?}");
    assert_eq!(interrupts[0].1, CoreRequest::new(6, 9).0);
    // It came with the sixth message: after the fifth was acknowledged, and before the seventh.
    assert!(sent[4].0 < interrupts[0].0 && interrupts[0].0 < sent[6].0);
    let Endpoint::Receive(of_running) = machine.unit(1).expect("tile").endpoint(8) else {
        panic!("no receive endpoint");
    };
    assert_eq!(of_running.unread.count_ones(), 7);
}

/// Pokes its unit at random forever: any register with any value; command registers with plausible values, so that many commands actually
/// run; privileged registers.
fn hostile(seed: u64) -> Program {
    let mut program = Program::default();
    program
        .unit()
        .li(S0, seed)
        .li(S2, DTU_SIZE - 8)
        .li(S3, MEMORY_BASE);
    // A pending timer interrupt that is never taken keeps the sleep command from stopping the attack.
    program.li(T0, CLINT_BASE + CLINT_MTIMECMP).sd(ZERO, T0, 0);
    program.addi(T0, ZERO, 1 << 7).csr(2, 0x304, T0);
    let random = |program: &mut Program| {
        // Marsaglia's xorshift64: 13, 7, 17.
        program.slli(T0, S0, 13).xor(S0, S0, T0);
        program.srli(T0, S0, 7).xor(S0, S0, T0);
        program.slli(T0, S0, 17).xor(S0, S0, T0);
    };
    let again = program.here();
    // Anything anywhere.
    random(&mut program);
    program
        .and(T1, S0, S2)
        .srli(T1, T1, 3)
        .slli(T1, T1, 3)
        .add(T1, T1, A0);
    random(&mut program);
    program.sd(S0, T1, 0);
    // A plausible address, size and argument.
    random(&mut program);
    program
        .slli(T0, S0, 45)
        .srli(T0, T0, 45)
        .or(T0, T0, S3)
        .sd(T0, A0, ADDRESS);
    random(&mut program);
    program.andi(T0, S0, 0xFF).sd(T0, A0, SIZE);
    random(&mut program);
    program.andi(T0, S0, 0x7F8).sd(T0, A0, ARGUMENT);
    // A plausible command: opcode 0 to 7, endpoint 8 to 11, argument a slot's offset or a small number. (The random writes to any
    // register try the others.)
    random(&mut program);
    program
        .andi(T0, S0, 7)
        .srli(T1, S0, 20)
        .andi(T1, T1, 3)
        .addi(T1, T1, 8)
        .slli(T1, T1, 8)
        .or(T0, T0, T1);
    program
        .srli(T1, S0, 40)
        .andi(T1, T1, 0x309)
        .slli(T1, T1, 32)
        .or(T0, T0, T1);
    program.sd(T0, A0, COMMAND);
    // A privileged command with any argument; every second time, TileMux becomes current again.
    random(&mut program);
    program.addi(T2, ZERO, 1).slli(T2, T2, 12).add(T2, T2, A0);
    program.sd(S0, T2, PRIVILEGED_ARGUMENT & 0xFFF);
    program
        .srli(T0, S0, 9)
        .andi(T0, T0, 7)
        .sd(T0, T2, PRIVILEGED_COMMAND & 0xFFF);
    program
        .li(T0, TILEMUX_ACTIVITY.into())
        .sd(T0, T2, PRIVILEGED_ARGUMENT & 0xFFF);
    program
        .addi(T0, ZERO, 1)
        .sd(T0, T2, PRIVILEGED_COMMAND & 0xFFF);
    program.addi(A1, A1, 1).marker(A1, 0x100);
    program.jump(again);
    program
}

/// A tile's endpoints, without what changes when a right is used.
fn rights(machine: &Machine, tile: TileId) -> Vec<String> {
    let unit = machine.unit(tile).expect("tile");
    let mut rights = Vec::new();
    for index in 0..64 {
        let endpoint = match unit.endpoint(index) {
            Endpoint::Send(send) if send.reply => continue,
            Endpoint::Send(send) => {
                assert!(send.credits <= send.credits_max);
                Endpoint::Send(SendEndpoint { credits: 0, ..send })
            }
            Endpoint::Receive(receive) => Endpoint::Receive(ReceiveEndpoint {
                position: 0,
                occupied: 0,
                unread: 0,
                ..receive
            }),
            Endpoint::Invalid => continue,
            memory => memory,
        };
        rights.push(format!("{index} {endpoint:?}"));
    }
    rights
}

#[test]
fn a_hostile_tile_harms_nobody() {
    let seeds = [0x9E37_79B9_7F4A_7C15, 0x0123_4567_89AB_CDEF, 42];
    for seed in seeds {
        let config = platform(PlatformKind::Tiled, 4);
        let mut machine = chip_of(&config);
        // Tile 2 is hostile. It may send to tile 1, receive, and read a page; all its buckets are limited.
        set(&mut machine, 2, 8, send(1, 8, 2));
        set(
            &mut machine,
            2,
            9,
            receive(TILEMUX_ACTIVITY, 0x8_0000, 4, 16),
        );
        set(&mut machine, 2, 10, memory(8 << 20, 4096, TLB_READ));
        let (rate, limit) = (400_000_000, 4096);
        for bucket in 0..BUCKET_COUNT as u8 {
            machine
                .unit_mut(2)
                .expect("tile")
                .set_bucket(0, bucket, rate, limit, limit);
        }
        set(
            &mut machine,
            1,
            8,
            receive(TILEMUX_ACTIVITY, 0x8_0000, 4, 16),
        );
        // Tile 1 answers every message, forever.
        let mut server = Program::default();
        server.unit();
        let again = server.here();
        server.command(
            Command::new(Opcode::Fetch, 8, 0),
            MEMORY_BASE + 0x1_0000,
            8,
            0,
        );
        server
            .ld(S1, A0, ARGUMENT)
            .addi(T1, ZERO, -1)
            .branch(0, S1, T1, again);
        server.addi(S2, S2, 1).marker(S2, 0x200);
        server
            .slli(S1, S1, 32)
            .li(T0, Command::new(Opcode::Reply, 8, 0).0)
            .or(T0, T0, S1);
        server.sd(T0, A0, COMMAND);
        let wait = server.here();
        server
            .ld(T0, A0, COMMAND)
            .andi(T1, T0, 0xFF)
            .branch(1, T1, ZERO, wait);
        server.jump(again);
        server.start(&mut machine, 1);
        hostile(seed).start(&mut machine, 2);
        // Tile 3 only computes; its timeline is known.
        let mut worker = Program::default();
        let count = worker.here();
        worker.addi(S1, S1, 1).marker(S1, 0x100).jump(count);
        worker.start(&mut machine, 3);
        let before: Vec<_> = (0..4).map(|tile| rights(&machine, tile)).collect();
        let memory = machine.memory(MEMORY).expect("memory").to_vec();
        run(&mut machine, 8_000_000);
        for tile in 0..4 {
            assert_eq!(
                rights(&machine, tile),
                before[usize::from(tile)],
                "tile {tile}"
            );
        }
        let pokes = markers(&machine, 2, 0x100).len();
        assert!(pokes > 5_000, "the attack stopped after {pokes} rounds");
        assert!(
            markers(&machine, 1, 0x200).len() > 2,
            "hardly a message came through"
        );
        // Memory: its own share, and the receive buffer of tile 1, to which it may send.
        let after = machine.memory(MEMORY).expect("memory");
        for (at, (old, new)) in memory.iter().zip(after).enumerate() {
            let at = at as u64;
            let own = at / SHARE == 2;
            let buffer = (SHARE + 0x8_0000..SHARE + 0x8_0400).contains(&at);
            assert!(own || buffer || old == new, "memory at {at:#x} changed");
        }
        // No choice of bucket bits escaped: bytes to and from memory stay under the envelope.
        let owners = machine.ledger();
        assert!(
            owners
                .bookings()
                .iter()
                .filter(|b| b.resource == Resource::Bucket)
                .all(|b| b.victim.tile == 2)
        );
        // The worker is not disturbed, to the tick, after its first pass through cold caches.
        let alone = {
            let mut machine = chip_of(&config);
            let mut worker = Program::default();
            let count = worker.here();
            worker.addi(S1, S1, 1).marker(S1, 0x100).jump(count);
            worker.start(&mut machine, 3);
            run(&mut machine, 1_000_000);
            spans(&machine)
        };
        let beside = spans(&machine);
        assert_eq!(alone[10..1000], beside[10..1000]);
    }
}

/// Ticks between the markers of tile 3.
fn spans(machine: &Machine) -> Vec<u64> {
    let markers = markers(machine, 3, 0x100);
    markers
        .windows(2)
        .map(|pair| pair[1].0 - pair[0].0)
        .collect()
}

#[test]
fn a_tile_may_send_to_itself() {
    let mut machine = chip(2);
    set(&mut machine, 1, 8, send(1, 9, 1));
    set(
        &mut machine,
        1,
        9,
        receive(TILEMUX_ACTIVITY, 0x2_0000, 4, 16),
    );
    let mut program = Program::default();
    program.unit();
    let message = Command::new(Opcode::Send, 8, NO_ENDPOINT.into());
    program.command(message, MEMORY_BASE + 0x1_0000, 8, 0);
    program
        .srli(T0, T0, 24)
        .andi(T0, T0, 0xFF)
        .marker(T0, 0x100);
    program.command(Command::new(Opcode::Fetch, 9, 0), 0, 0, 0);
    program.ld(T0, A0, ARGUMENT).marker(T0, 0x101).spin();
    program.start(&mut machine, 1);
    run(&mut machine, 400_000);
    let values = |kind| {
        markers(&machine, 1, kind)
            .iter()
            .map(|m| m.1)
            .collect::<Vec<_>>()
    };
    assert_eq!((values(0x100), values(0x101)), (vec![0], vec![0]));
}

/// See the end of the next test.
const GOLDEN: &str = "573740bab886f9e69b7faa0f31e2b1fb4bdf9d76297a32ec49ad3929bd98c7f8";

#[test]
fn a_trace_is_valid_repeatable_and_free() {
    let record = |trace: bool| {
        let mut machine = chip(2);
        set(&mut machine, 1, 8, memory(4 << 20, 4096, TLB_READ));
        machine
            .unit_mut(1)
            .expect("tile")
            .set_bucket(0, 0, 80_000_000, 4096, 4096);
        transfers_and_misses().start(&mut machine, 1);
        if trace {
            let options = TraceOptions {
                limit: 1 << 18,
                ..TraceOptions::default()
            };
            let tracer = Tracer::new(machine.config(), options);
            machine.set_observer(Some(Box::new(tracer)));
        }
        run(&mut machine, 400_000);
        let timeline = markers(&machine, 1, 0x100);
        let trace = machine.take_observer().map(|observer| observer.bytes());
        (timeline, machine.digest(), trace)
    };
    let (plain, digest, _) = record(false);
    let (traced, digest_traced, bytes) = record(true);
    assert_eq!(
        (plain, digest),
        (traced, digest_traced),
        "a trace changes nothing"
    );
    let bytes = bytes.expect("trace");
    assert_eq!(record(true).2.as_ref(), Some(&bytes));
    // The golden hash over statistics, ledger, markers and trace: the same on every host and build. The program is made instruction by
    // instruction above, so no compiler is involved. A change of the timing model changes it on purpose; the commit must then say which
    // rule changed.
    let golden = Sha256::new()
        .chain_update(digest)
        .chain_update(&bytes)
        .finalize();
    assert_eq!(format!("{golden:x}"), GOLDEN);
    let trace = proto::Trace::decode(&bytes[..]).expect("decodes");
    let tracks: Vec<_> = trace
        .packet
        .iter()
        .filter_map(|p| p.track_descriptor.clone()?.name)
        .collect();
    for name in [
        "tile 1",
        "hart",
        "DTU commands",
        "bank 0",
        "token bucket 0",
        "router 0 to tile 100",
    ] {
        assert!(
            tracks.iter().any(|track| track == name),
            "no track {name} in {tracks:?}"
        );
    }
    let depth = trace
        .packet
        .iter()
        .filter_map(|p| p.track_event.as_ref()?.r#type)
        .map(|kind| match kind {
            proto::SLICE_BEGIN => 1,
            proto::SLICE_END => -1,
            _ => 0,
        });
    assert_eq!(depth.sum::<i32>(), 0);
}

/// Emits all markers that TileMux and the kernel emit.
fn schedule(program: &mut Program) {
    let since = Since {
        activity: 7,
        moment: Since::NOW,
    };
    program.li(A1, since.pack());
    for kind in [
        MarkerKind::MuxMember,
        MarkerKind::MuxReady,
        MarkerKind::MuxBudget,
        MarkerKind::ActivityBegins,
        MarkerKind::ActivityName,
        MarkerKind::ActivityFault,
        MarkerKind::Check,
    ] {
        program.marker(A1, kind as u32);
    }
    program.li(A1, 9).marker(A1, MarkerKind::MuxRuns as u32);
    program.marker(ZERO, MarkerKind::MuxLeaves as u32).spin();
}

#[test]
fn only_machine_mode_is_believed_about_others() {
    let of = |user: bool| {
        let mut machine = chip(1);
        let mut program = Program::default();
        if user {
            program.user();
        }
        schedule(&mut program);
        program.start(&mut machine, 0);
        run(&mut machine, 100_000);
        machine
    };
    let kinds = |machine: &Machine| {
        let all = machine.markers();
        all.iter().map(|marker| marker.kind).collect::<Vec<_>>()
    };
    let waits = |machine: &Machine| {
        let all = machine.ledger().bookings().into_iter();
        let hart = all.filter(|b| b.resource == Resource::Processor);
        hart.map(|b| (b.victim.activity, b.culprit.activity))
            .collect::<Vec<_>>()
    };
    let (told, forged) = (of(false), of(true));
    use MarkerKind::{ActivityBegins, ActivityFault, ActivityName, Check};
    assert_eq!(
        kinds(&told),
        [ActivityBegins, ActivityName, ActivityFault, Check].map(|kind| kind as u16)
    );
    assert_eq!(waits(&told), [(7, 9), (7, TILEMUX_ACTIVITY)]);
    assert_eq!(told.processor_times().len(), 1);
    assert_eq!(kinds(&forged), [Check as u16]);
    assert!(waits(&forged).is_empty() && forged.processor_times().is_empty());
}
