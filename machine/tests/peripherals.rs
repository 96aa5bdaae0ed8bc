//! Peripherals beside the tiles: storage, camera, streaming accelerator. What they move, how fast, whom they belong to, and what they refuse.

use crate::common::interrupts::{MEI, SEEN, listen, wakes};
use crate::common::parts::*;
use crate::common::*;
use bulkhead_abi::memory_map::{DMA_BASE, MEMORY_BASE};
use bulkhead_abi::peripheral::*;
use bulkhead_abi::plic::source;
use bulkhead_machine::config::{Channels, PeripheralConfig, PeripheralKind, PlatformConfig};
use bulkhead_machine::ledger::{Ended, Resource};
use bulkhead_machine::machine::{Machine, Outcome, RunLimit};
use bulkhead_machine::noc::Transaction;
use bulkhead_machine::peripheral::content;
use bulkhead_machine::types::{Owner, Tick, TileId};

const DEVICE: TileId = 60;
const LIMIT: RunLimit = RunLimit { ticks: 40_000_000 };
const CYCLE: Tick = 4;
const BUFFER: u64 = MEMORY_BASE + 0x40_0000;
const WINDOW: u64 = 0x10_0000;
/// Ticks of a second.
const SECOND: u64 = 4_000_000_000;
/// 0.25 bytes per tick: a burst of 64 bytes in 256 ticks.
const RATE: u64 = SECOND / 4;
const BURST: u32 = 64;

fn storage() -> PeripheralKind {
    PeripheralKind::Storage {
        block: 512,
        size: 64 << 10,
        seed: 7,
    }
}

const PERIOD: Tick = 40_000;
const GAP: Tick = 4_000;

fn camera() -> PeripheralKind {
    PeripheralKind::Camera {
        period: PERIOD,
        lines: 4,
        packet: 256,
        gap: GAP,
        seed: 3,
    }
}

/// Tiles as in [`clusters`], with a peripheral that interrupts the first one.
fn chip(harts: &[u16], kind: PeripheralKind) -> PlatformConfig {
    let mut config = clusters(harts);
    config.network.channels = Channels::Split;
    config.peripherals.push(PeripheralConfig {
        id: DEVICE,
        router: 0,
        cycle: CYCLE,
        registers: 2,
        interrupts: Some(0),
        burst: BURST,
        outstanding: 4,
        startup: 10,
        rate: RATE,
        bucket: 256,
        queue: 4,
        kind,
        users: None,
        windows: vec![(BUFFER, WINDOW)],
        coherent: false,
    });
    config
}

/// The same, where the clusters and the peripheral are coherent.
fn coherent_chip(harts: &[u16], kind: PeripheralKind) -> PlatformConfig {
    let mut config = chip(harts, kind);
    config.tiles = coherent(harts).tiles;
    config.peripherals[0].coherent = true;
    config
}

/// Writes the arguments of a command and the command; `S0` is then the address of the registers.
fn command(p: &mut Program, opcode: u64, [source, destination, length]: [u64; 3]) {
    p.li(S0, DMA_BASE);
    for (register, value) in [
        (SOURCE, source),
        (DESTINATION, destination),
        (LENGTH, length),
    ] {
        p.li(T0, value).sd(T0, S0, register);
    }
    p.word(FENCE).li(T0, opcode).sd(T0, S0, COMMAND).word(FENCE);
}

fn register(machine: &Machine, offset: u64) -> u64 {
    machine.engine_register(DEVICE, offset).expect("a register")
}

fn memory_of(machine: &Machine, address: u64, bytes: u64) -> Vec<u8> {
    let offset = (address - MEMORY_BASE) as usize;
    machine.memory(MEMORY).unwrap()[offset..offset + bytes as usize].to_vec()
}

/// Accesses of the device: begin, and bytes of the answer or of the data.
fn begins(machine: &Machine, transaction: Transaction) -> Vec<Tick> {
    let all = machine.ledger().transactions().iter();
    let own = all.filter(|one: &&Ended| {
        one.owner == Owner::new(DEVICE, 1) && one.transaction == transaction
    });
    let mut begins: Vec<Tick> = own.map(|one| one.begin).collect();
    begins.sort_unstable();
    begins
}

/// In every stretch of time, at most the bucket and the rate. All accesses here have a burst.
fn keeps_its_rate(begins: &[Tick]) {
    for (i, from) in begins.iter().enumerate() {
        for (count, to) in (1u64..).zip(&begins[i..]) {
            let most = 256 * SECOND + (to - from) * RATE;
            assert!(count * u64::from(BURST) * SECOND <= most, "{from} {to}");
        }
    }
}

#[test]
fn a_storage_device_copies_blocks_in_and_out() {
    for harts in [[0], [1]] {
        let mut p = Program::default();
        listen(&mut p, 0, source(0, 0), 1);
        wakes(&mut p, MEI);
        command(&mut p, READ, [2, BUFFER + 8, 2048]);
        p.addi(T0, ZERO, AT_END as i32).sd(T0, S0, ENABLE);
        let wait = p.here();
        p.word(WFI).lw(T1, S1, 0).branch(0, T1, ZERO, wait);
        p.marker(T1, SEEN);
        // Back to other blocks, from memory.
        command(&mut p, WRITE, [BUFFER + 8, 100, 512]);
        p.word(WFI);
        let mut machine = machine(&chip(&harts, storage()), &[((0, 0), p)]);
        idle(&mut machine);
        let content = content::seeded(7, 64 << 10);
        assert_eq!(memory_of(&machine, BUFFER + 8, 2048), content[1024..3072]);
        assert_eq!(memory_of(&machine, BUFFER, 8), [0; 8]);
        let stored = machine.storage(DEVICE).unwrap();
        assert_eq!(stored[51_200..51_712], content[1024..1536]);
        assert_eq!(stored[..51_200], content[..51_200]);
        assert_eq!(
            [COMPLETED, REFUSED, QUEUED, CAUSE].map(|one| register(&machine, one)),
            [2, 0, 0, 0]
        );
        let markers = machine.markers();
        assert!(
            markers
                .iter()
                .any(|m| u32::from(m.kind) == SEEN && m.value == 1)
        );
    }
}

/// A long copy has the rate, not less and not more: after the bucket, a burst in 256 ticks.
#[test]
fn the_rate_is_kept_and_reached() {
    let mut p = Program::default();
    command(&mut p, READ, [0, BUFFER, 32 << 10]);
    command(&mut p, WRITE, [BUFFER, 64, 32 << 10]);
    p.word(WFI);
    let mut machine = machine(&chip(&[0], storage()), &[((0, 0), p)]);
    idle(&mut machine);
    for transaction in [Transaction::DmaWrite, Transaction::DmaRead] {
        let begins = begins(&machine, transaction);
        assert_eq!(begins.len(), 512);
        keeps_its_rate(&begins);
        let last = begins[511] - begins[0];
        // All but the four bursts of the bucket wait for 64 bytes each.
        let closed = 508 * u64::from(BURST) * SECOND / RATE;
        assert!(
            (closed - 1024..closed + 1024).contains(&last),
            "{last} {closed}"
        );
    }
}

#[test]
fn an_accelerator_reads_computes_and_writes() {
    let bytes = 8 << 10;
    // A tenth of its rate: a burst in 2560 ticks.
    let kind = PeripheralKind::Accelerator { compute: RATE / 10 };
    let mut p = Program::default();
    command(&mut p, PROCESS, [BUFFER, BUFFER + 0x8000, bytes]);
    p.word(WFI);
    let mut machine = machine(&chip(&[0], kind), &[((0, 0), p)]);
    let source: Vec<u8> = (0..bytes).map(|i| (i * 7 + i / 256) as u8).collect();
    machine.load_tile(0, BUFFER, &source).unwrap();
    idle(&mut machine);
    let complement: Vec<u8> = source.iter().map(|byte| !byte).collect();
    assert_eq!(memory_of(&machine, BUFFER + 0x8000, bytes), complement);
    let writes = begins(&machine, Transaction::DmaWrite);
    assert_eq!(writes.len(), 128);
    for pair in writes.windows(2) {
        assert_eq!(pair[1] - pair[0], 2560);
    }
}

/// A filled range has the word everywhere, and nothing beside it changes. Nothing is read, and only the rate of writes counts.
#[test]
fn an_accelerator_fills_memory() {
    let (bytes, word) = (8 << 10, 0x0123_4567_89AB_CDEF_u64);
    let mut p = Program::default();
    command(&mut p, FILL, [word, BUFFER + 24, bytes]);
    p.word(WFI);
    let kind = PeripheralKind::Accelerator { compute: RATE / 10 };
    let mut machine = machine(&chip(&[0], kind), &[((0, 0), p)]);
    idle(&mut machine);
    let filled = word.to_le_bytes().repeat(bytes as usize / 8);
    let expected = [vec![0; 24], filled, vec![0; 40]].concat();
    assert_eq!(memory_of(&machine, BUFFER, bytes + 64), expected);
    assert!(begins(&machine, Transaction::DmaRead).is_empty());
    // All bytes but those of a full bucket at the rate; the first and the last write are parts of a burst.
    let writes = begins(&machine, Transaction::DmaWrite);
    let (took, whole) = (writes[128] - writes[0], (bytes - 256) * SECOND / RATE);
    assert!(took.abs_diff(whole) <= 512, "{took} {whole}");
    keeps_its_rate(&writes[1..128]);
}

/// Packets come when the camera has them; those of a ring that is full are lost and counted, and software frees slots.
#[test]
fn a_camera_delivers_and_says_what_it_lost() {
    for slots in [3u64, 8] {
        let mut p = Program::default();
        listen(&mut p, 0, source(0, 0), 1);
        wakes(&mut p, MEI);
        p.li(S0, DMA_BASE)
            .addi(T0, ZERO, AT_END as i32)
            .sd(T0, S0, ENABLE);
        command(&mut p, START, [0, BUFFER, slots * 256]);
        // Until two frames have ended; nothing is freed before.
        p.addi(S2, ZERO, 2);
        let wait = p.here();
        p.word(WFI).lw(T1, S1, 0).branch(0, T1, ZERO, wait);
        p.addi(T0, ZERO, 1)
            .sd(T0, S0, INTERRUPT)
            .word(FENCE)
            .sw(T1, S1, 0);
        p.addi(S2, S2, -1).branch(1, S2, ZERO, wait);
        p.li(T0, STOP).sd(T0, S0, COMMAND).word(FENCE).word(WFI);
        let mut machine = machine(&chip(&[0], camera()), &[((0, 0), p)]);
        idle(&mut machine);
        let delivered = slots.min(8);
        assert_eq!(
            [COMPLETED, OVERFLOWS, FRAMES].map(|one| register(&machine, one)),
            [delivered, 8 - delivered, 2],
            "{slots}"
        );
        for packet in 0..delivered {
            let name = (packet as u32 / 4, packet as u32 % 4);
            let got = memory_of(&machine, BUFFER + 256 * packet, 256);
            assert_eq!(got, *content::packet(3, name, 0, 256), "{packet}");
        }
        let writes = begins(&machine, Transaction::DmaWrite);
        keeps_its_rate(&writes);
        if slots == 8 {
            // The first burst of each packet: after its moment, and the start-up.
            let firsts: Vec<Tick> = writes.iter().step_by(4).copied().collect();
            let distances: Vec<Tick> = firsts.windows(2).map(|pair| pair[1] - pair[0]).collect();
            let frame = PERIOD - 3 * GAP;
            assert_eq!(distances, [GAP, GAP, GAP, frame, GAP, GAP, GAP]);
        }
    }
}

/// A program that says all the time that it needs no packet any more frees those that were delivered, and no slot that is still written.
#[test]
fn a_slot_is_free_when_its_packet_was_delivered() {
    for harts in [[0], [1]] {
        // A packet needs 1024 ticks at the rate, and the next one comes after 400.
        let kind = PeripheralKind::Camera {
            period: PERIOD,
            lines: 4,
            packet: 256,
            gap: 400,
            seed: 3,
        };
        let mut p = Program::default();
        command(&mut p, START, [0, BUFFER, 256]);
        p.addi(T0, ZERO, -1);
        let again = p.here();
        p.sd(T0, S0, CONSUMED).word(FENCE).ld(T1, S0, FRAMES);
        p.branch(0, T1, ZERO, again);
        p.li(T0, STOP).sd(T0, S0, COMMAND).word(FENCE).word(WFI);
        let mut machine = machine(&chip(&harts, kind), &[((0, 0), p)]);
        idle(&mut machine);
        let [delivered, lost] = [COMPLETED, OVERFLOWS].map(|one| register(&machine, one));
        assert_eq!(delivered + lost, 4);
        assert!(lost > 0 && delivered > 1, "{delivered} {lost}");
    }
}

#[test]
fn what_does_not_belong_to_the_program_is_refused_and_told() {
    let end = BUFFER + WINDOW;
    let none = 64 << 10;
    let (unit, last) = (PeripheralKind::Accelerator { compute: 1 }, end - 256);
    let all: [(PeripheralKind, u64, [u64; 3], Cause, u64); 16] = [
        (
            storage(),
            READ,
            [0, BUFFER - 512, 512],
            Cause::Memory,
            BUFFER - 512,
        ),
        (
            storage(),
            READ,
            [0, end - 256, 512],
            Cause::Memory,
            end - 256,
        ),
        (storage(), WRITE, [end, 0, 512], Cause::Memory, end),
        (
            storage(),
            WRITE,
            [u64::MAX - 7, 0, 512],
            Cause::Memory,
            u64::MAX - 7,
        ),
        (
            storage(),
            READ,
            [0, BUFFER + 4, 512],
            Cause::Memory,
            BUFFER + 4,
        ),
        (storage(), READ, [0, BUFFER, 500], Cause::Length, 500),
        (storage(), READ, [0, BUFFER, 0], Cause::Length, 0),
        (storage(), READ, [127, BUFFER, 1024], Cause::Block, 127),
        (
            storage(),
            READ,
            [u64::MAX, BUFFER, 512],
            Cause::Block,
            u64::MAX,
        ),
        (storage(), PROCESS, [0, BUFFER, 512], Cause::Opcode, PROCESS),
        (camera(), START, [0, last, 512], Cause::Memory, last),
        (camera(), START, [0, BUFFER, 300], Cause::Length, 300),
        (unit, PROCESS, [BUFFER, none, 64], Cause::Memory, none),
        (unit, FILL, [BUFFER, none, 64], Cause::Memory, none),
        (unit, FILL, [0, BUFFER, 60], Cause::Length, 60),
        (storage(), FILL, [0, BUFFER, 512], Cause::Opcode, FILL),
    ];
    for (kind, opcode, arguments, cause, culprit) in all {
        let mut p = Program::default();
        listen(&mut p, 0, source(0, 0), 1);
        wakes(&mut p, MEI);
        p.li(S0, DMA_BASE)
            .addi(T0, ZERO, AT_REFUSAL as i32)
            .sd(T0, S0, ENABLE);
        command(&mut p, opcode, arguments);
        let wait = p.here();
        p.word(WFI).lw(T1, S1, 0).branch(0, T1, ZERO, wait);
        p.marker(T1, SEEN).word(WFI);
        let mut machine = machine(&chip(&[0], kind), &[((0, 0), p)]);
        idle(&mut machine);
        assert_eq!(
            [REFUSED, CAUSE, CULPRIT, COMPLETED].map(|one| register(&machine, one)),
            [1, cause as u64, culprit, 0],
            "{arguments:x?}"
        );
        assert!(begins(&machine, Transaction::DmaWrite).is_empty());
        assert!(begins(&machine, Transaction::DmaRead).is_empty());
        assert!(machine.markers().iter().any(|m| u32::from(m.kind) == SEEN));
    }
}

#[test]
fn a_full_queue_refuses_and_forgets_nothing() {
    let mut p = Program::default();
    for number in 0..6 {
        command(&mut p, READ, [number, BUFFER + 0x1000 * number, 8192]);
    }
    p.word(WFI);
    let mut machine = machine(&chip(&[0], storage()), &[((0, 0), p)]);
    idle(&mut machine);
    let [completed, refused, cause] =
        [COMPLETED, REFUSED, CAUSE].map(|one| register(&machine, one));
    assert_eq!((completed + refused, cause), (6, Cause::Busy as u64));
    assert!(completed >= 4, "{completed}");
}

/// Other harts fault at the registers; so a device does only what its program says. The ledger knows which hart of a cluster reached it.
#[test]
fn only_its_program_reaches_a_device() {
    for harts in [&[2][..], &[0, 0]] {
        for (user, fine) in [(0, true), (1, false)] {
            let mut config = chip(harts, storage());
            let (tile, port) = match harts.len() {
                1 => (0, user),
                _ => (user, 0),
            };
            config.peripherals[0].users = Some(vec![Owner::new(tile, port)]);
            let mut p = Program::default();
            p.li(S0, DMA_BASE)
                .ld(T0, S0, KIND)
                .addi(T0, T0, 0)
                .word(WFI);
            let mut machine = machine(&config, &[((0, 0), p)]);
            let end = machine.run(LIMIT, None);
            assert_eq!(matches!(end, Outcome::Idle { .. }), fine, "{end:?}");
            let reached: Vec<_> = machine.ledger().reached().collect();
            let in_cluster = harts.len() == 1 && fine;
            let expected = in_cluster.then_some((Owner::new(0, 0), DEVICE));
            assert_eq!(reached, Vec::from_iter(expected));
        }
    }
}

/// A program, and the hart that runs it.
type Placed = ((TileId, usize), Program);

/// The camera's clock, an accelerator, and harts that load and store beside them.
fn busy(harts: &[u16]) -> (PlatformConfig, Vec<Placed>) {
    let mut config = chip(harts, camera());
    let second = PeripheralConfig {
        id: DEVICE + 1,
        interrupts: Some(harts.len() as TileId - 1),
        kind: PeripheralKind::Accelerator { compute: RATE },
        ..config.peripherals[0].clone()
    };
    config.peripherals.push(second);
    let mut programs = Vec::new();
    for (tile, harts) in harts.iter().enumerate() {
        for port in 0..usize::from(*harts).max(1) {
            let mut p = Program::default();
            if programs.is_empty() {
                listen(&mut p, 0, source(0, 0), 1);
                wakes(&mut p, MEI);
                command(&mut p, START, [0, BUFFER, 1024]);
                p.addi(T0, ZERO, AT_PACKET as i32).sd(T0, S0, ENABLE);
                p.addi(S2, ZERO, 0);
                let wait = p.here();
                p.word(WFI).lw(T1, S1, 0).branch(0, T1, ZERO, wait);
                p.addi(T0, ZERO, 1).sd(T0, S0, INTERRUPT).addi(S2, S2, 1);
                p.sd(S2, S0, CONSUMED).word(FENCE).sw(T1, S1, 0).jump(wait);
            } else if programs.len() == 1 {
                let again = p.here();
                p.li(S0, DMA_BASE + 0x1000);
                for (register, value) in [
                    (SOURCE, BUFFER),
                    (DESTINATION, BUFFER + 0x1000),
                    (LENGTH, 1024),
                ] {
                    p.li(T0, value).sd(T0, S0, register);
                }
                p.word(FENCE)
                    .li(T0, PROCESS)
                    .sd(T0, S0, COMMAND)
                    .jump(again);
            } else {
                p.li(S0, BUFFER)
                    .li(S1, 64 * 7)
                    .li(S2, 0x1_FFC0)
                    .addi(S3, ZERO, 0);
                let again = p.here();
                p.add(T0, S0, S3).ld(T1, T0, 0).addi(T1, T1, 0);
                p.add(S3, S3, S1).and(S3, S3, S2).jump(again);
            }
            programs.push(((tile as TileId, port), p));
        }
    }
    (config, programs)
}

/// A busy chip runs in one piece and in windows of any length, with harts of every pipeline: both do the same, and devices keep their rates.
/// Returns the machine in order.
fn as_in_pieces(config: &PlatformConfig, programs: &[Placed]) -> Machine {
    let [first, ..] =
        PIPELINES.map(|one| one_as_in_pieces(&pipelined(config.clone(), one), programs));
    first
}

fn one_as_in_pieces(config: &PlatformConfig, programs: &[Placed]) -> Machine {
    let until = 300_000;
    let mut whole = machine(config, programs);
    assert_eq!(whole.run(RunLimit { ticks: until }, None), Outcome::Limit);
    let mut pieces = machine(config, programs);
    in_pieces(&mut pieces, until);
    assert!(register(&whole, COMPLETED) > 10);
    assert_eq!(whole.statistics(), pieces.statistics());
    assert_eq!(whole.digest(), pieces.digest());
    for transaction in [Transaction::DmaRead, Transaction::DmaWrite] {
        keeps_its_rate(&begins(&whole, transaction));
    }
    whole
}

#[test]
fn the_length_of_a_window_changes_nothing() {
    for harts in [&[0, 0, 0][..], &[3], &[2, 1]] {
        let (config, programs) = busy(harts);
        let whole = as_in_pieces(&config, &programs);
        let ledger = whole.ledger();
        let bookings = ledger.bookings();
        let culprit = |device: TileId| {
            let own = bookings
                .iter()
                .filter(|one| one.culprit == Owner::new(device, 1) && one.victim.tile != device);
            own.filter(|one| one.resource != Resource::DmaEngine(device))
                .count()
        };
        assert!(
            culprit(DEVICE) + culprit(DEVICE + 1) > 0,
            "nobody waits for a device"
        );
    }
}

#[test]
fn peripherals_that_cannot_be_are_refused() {
    type Change = fn(&mut PeripheralConfig);
    let all: [(&str, Change); 10] = [
        ("coherent bursts", |c| c.coherent = true),
        ("used twice", |c| c.id = 0),
        ("a burst must be", |c| c.burst = 96),
        ("smaller than a burst", |c| c.bucket = 32),
        ("at least 1", |c| c.rate = 0),
        ("1 to 256 commands", |c| c.queue = 0),
        ("interrupts tile 9", |c| c.interrupts = Some(9)),
        ("in no memory", |c| c.windows.push((BUFFER, 1 << 30))),
        ("whole blocks", |c| {
            c.kind = PeripheralKind::Storage {
                block: 512,
                size: 600,
                seed: 0,
            }
        }),
        ("do not fit a frame", |c| {
            c.kind = PeripheralKind::Camera {
                period: 10,
                lines: 11,
                packet: 64,
                gap: 1,
                seed: 0,
            }
        }),
    ];
    for (expected, change) in all {
        let mut config = chip(&[0], storage());
        change(&mut config.peripherals[0]);
        let what = Machine::new(&config).err().expect("refused").what;
        assert!(what.contains(expected), "{expected}: {what}");
    }
}

/// Without a flush, a device gets what harts have stored, and harts see what it has written, only if it is coherent. Bytes of a line that it
/// does not write stay as a hart of another cluster has left them.
#[test]
fn a_coherent_device_needs_no_flushes() {
    for harts in [&[1u16][..], &[2, 1], &[1, 0, 1]] {
        let other = harts.len() as TileId - 1;
        for together in [true, false] {
            let mut config = match together {
                true => coherent_chip(harts, storage()),
                false => chip(harts, storage()),
            };
            config.peripherals[0].bucket = 64;
            let mut p = Program::default();
            // Dirty: the word before the blocks' destination, the first word there, and the source of the second command.
            p.li(S1, BUFFER).addi(T1, ZERO, 77);
            p.sd(T1, S1, 0).sd(T1, S1, 8).li(S1, BUFFER + 0x2000);
            p.sd(T1, S1, 0).sd(T1, S1, 504);
            command(&mut p, READ, [2, BUFFER + 8, 512]);
            command(&mut p, WRITE, [BUFFER + 0x2000, 100, 512]);
            let wait = p.here();
            p.ld(T1, S0, QUEUED).branch(1, T1, ZERO, wait);
            p.li(S1, BUFFER + 8)
                .ld(T1, S1, 0)
                .marker(T1, SEEN)
                .word(WFI);
            let mut machine = machine(&config, &[((0, 0), p)]);
            idle(&mut machine);
            let content = content::seeded(7, 64 << 10);
            let first = u64::from_le_bytes(content[1024..1032].try_into().unwrap());
            let expected = if together { first } else { 77 };
            assert_eq!(marked(&machine, SEEN), [expected], "{harts:?} {together}");
            assert_eq!(word(&machine, 0, BUFFER), 77);
            let stored = machine.storage(DEVICE).unwrap();
            let kept = if together { 77 } else { 0 };
            assert_eq!(stored[51_200..51_208], u64::to_le_bytes(kept));
            assert_eq!(stored[51_704..51_712], u64::to_le_bytes(kept));
            if together {
                let mut there = [0; 512];
                machine.peek(other, BUFFER + 8, &mut there).unwrap();
                assert_eq!(there, content[1024..1536], "{harts:?}");
            }
            waits_are_booked(&machine);
        }
    }
}

/// Harts of all clusters count in the words next to those that a device writes: no count and no byte is lost.
#[test]
fn a_device_and_harts_write_the_same_lines() {
    for harts in [&[2u16, 2][..], &[1, 1, 1], &[3]] {
        let kind = PeripheralKind::Camera {
            period: PERIOD,
            lines: 40,
            packet: 24,
            gap: 300,
            seed: 3,
        };
        let config = coherent_chip(harts, kind);
        let counters = [BUFFER, BUFFER + 0x58];
        let mut programs = Vec::new();
        for (tile, count) in harts.iter().enumerate() {
            for port in 0..usize::from(*count) {
                let mut p = Program::default();
                if programs.is_empty() {
                    command(&mut p, START, [0, BUFFER + 8, 72]);
                    p.addi(S2, ZERO, 400);
                    let again = p.here();
                    p.ld(T1, S0, COMPLETED).sd(T1, S0, CONSUMED);
                    for counter in counters {
                        p.li(S1, counter).addi(T2, ZERO, 1).amo(0, 0, ZERO, S1, T2);
                    }
                    p.addi(S2, S2, -1).branch(1, S2, ZERO, again);
                    p.li(T0, STOP).sd(T0, S0, COMMAND).word(FENCE).word(WFI);
                } else {
                    p.addi(S2, ZERO, 400);
                    let again = p.here();
                    for counter in counters {
                        p.li(S1, counter);
                        let retry = p.here();
                        p.lr(T0, S1).addi(T0, T0, 1).sc(T1, S1, T0);
                        p.branch(1, T1, ZERO, retry);
                    }
                    p.addi(S2, S2, -1).branch(1, S2, ZERO, again).word(WFI);
                }
                programs.push(((tile as TileId, port), p));
            }
        }
        let all = 400 * programs.len() as u64;
        let mut machine = machine(&config, &programs);
        idle(&mut machine);
        for counter in counters {
            assert_eq!(word(&machine, 0, counter), all, "{harts:?}");
        }
        let delivered = register(&machine, COMPLETED);
        assert!(delivered > 20, "{delivered}");
        for slot in 0..3 {
            let mut packet = [0; 24];
            let address = BUFFER + 8 + 24 * slot;
            machine.peek(0, address, &mut packet).unwrap();
            let [frame, line] =
                [0, 4].map(|at| u32::from_le_bytes(packet[at..at + 4].try_into().unwrap()));
            let whole = content::packet(3, (frame, line), 0, 24);
            assert_eq!(packet, *whole, "{harts:?} {slot}");
        }
        let bookings = machine.ledger().bookings();
        let device = Owner::new(DEVICE, 1);
        let waited = |victim: bool| {
            let home = |resource| matches!(resource, Resource::Home(_) | Resource::Directory(_));
            let mut all = bookings.iter().filter(|one| home(one.resource));
            all.any(|one| (if victim { one.victim } else { one.culprit }) == device)
        };
        assert!(waited(true) && waited(false), "{harts:?}: {bookings:?}");
        waits_are_booked(&machine);
    }
}

/// Windows of any length change nothing, with several numbers of harts, and devices keep their rates.
#[test]
fn coherent_devices_depend_on_no_window() {
    for harts in [&[3u16][..], &[2, 1], &[1, 1, 2]] {
        let (plain, programs) = busy(harts);
        let mut config = plain;
        config.tiles = coherent(harts).tiles;
        config.peripherals[0].coherent = true;
        config.peripherals[1].coherent = harts.len() != 2;
        as_in_pieces(&config, &programs);
    }
}

/// If no cache has the line, an access of a coherent device takes longer by the path to each cluster and back, and the look-up there. The
/// slowest cluster counts.
#[test]
fn an_access_of_a_coherent_device_asks_the_clusters_first() {
    let took = |config: &PlatformConfig, transaction| {
        let mut p = Program::default();
        command(&mut p, READ, [0, BUFFER, 512]);
        let wait = p.here();
        p.ld(T1, S0, QUEUED).branch(1, T1, ZERO, wait);
        command(&mut p, WRITE, [BUFFER, 64, 512]);
        p.word(WFI);
        let mut machine = machine(config, &[((0, 0), p)]);
        idle(&mut machine);
        let all = machine.ledger().transactions().iter();
        let own = all.filter(|one: &&Ended| {
            one.owner == Owner::new(DEVICE, 1) && one.transaction == transaction
        });
        let first = own.min_by_key(|one| one.begin).expect("it has accessed");
        first.end - first.begin
    };
    for transaction in [Transaction::DmaRead, Transaction::DmaWrite] {
        let apart = took(&chip(&[1], storage()), transaction);
        let together = took(&coherent_chip(&[1], storage()), transaction);
        let network = &chip(&[1], storage()).network;
        let (cycle, hop) = (network.cycle, network.link + network.router);
        let wire = u64::from(network.header.div_ceil(network.width));
        let way = (2 * network.interface + hop + network.link + wire) * cycle;
        // The look-up: 12 cycles of 2 ticks, as for a miss of a coherent cluster.
        let more = together - apart;
        assert!(
            more.abs_diff(2 * way + 24) <= cycle,
            "{transaction:?}: {more}, two ways of {way} and the look-up"
        );
    }
}

/// If a device writes a whole line that a hart has modified, the cluster drops its bytes: the write takes longer than that of a line that
/// nobody has by the way to the first level and back, and memory writes the line once. If the device writes a part, memory gets the line first.
#[test]
fn a_whole_line_replaces_what_a_hart_has_modified() {
    for (burst, line) in [(64, 0), (32, 64)] {
        let mut config = coherent_chip(&[1], storage());
        config.peripherals[0].burst = burst;
        let (wrote, took): (Vec<_>, Vec<_>) = [false, true]
            .map(|modified| {
                let mut p = Program::default();
                if modified {
                    p.li(S1, BUFFER)
                        .addi(T1, ZERO, 77)
                        .sd(T1, S1, 0)
                        .word(FENCE);
                }
                command(&mut p, READ, [0, BUFFER, 512]);
                p.word(WFI);
                let mut machine = machine(&config, &[((0, 0), p)]);
                idle(&mut machine);
                assert_eq!(
                    memory_of(&machine, BUFFER, 512),
                    content::seeded(7, 64 << 10)[..512]
                );
                waits_are_booked(&machine);
                let all = machine.ledger().transactions().iter();
                let own = all.filter(|one: &&Ended| {
                    let device = one.owner == Owner::new(DEVICE, 1);
                    device && one.transaction == Transaction::DmaWrite
                });
                let first = own.min_by_key(|one| one.begin).expect("it has written");
                (
                    begins(&machine, Transaction::CacheWrite).len(),
                    first.end - first.begin,
                )
            })
            .into_iter()
            .unzip();
        assert_eq!(
            wrote,
            [0, usize::from(line > 0)],
            "lines that a cluster has given"
        );
        let cluster = config.tiles[0].cluster.as_ref().expect("a cluster");
        // Ways in cycles of two ticks; the network's edges are CYCLE apart.
        let ways = 2 * (cluster.up + cluster.down);
        let more = took[1] - took[0];
        match line {
            0 => assert!(more.abs_diff(ways) <= CYCLE, "{more}, two ways of {ways}"),
            _ => assert!(more > ways + CYCLE, "{more}"),
        }
    }
}

/// While a whole line of a device replaces one that a hart has modified, tools see the one or the other, and never older bytes.
#[test]
fn tools_see_no_bytes_that_are_older_than_what_a_hart_has_written() {
    let config = coherent_chip(&[1], storage());
    let mut p = Program::default();
    p.li(S1, BUFFER).addi(T1, ZERO, 77).sd(T1, S1, 0);
    command(&mut p, READ, [0, BUFFER, 512]);
    p.word(WFI);
    let mut machine = machine(&config, &[((0, 0), p)]);
    let mut seen = vec![0];
    let mut ticks = 0;
    while seen.len() < 3 {
        ticks += 4;
        assert!(ticks < LIMIT.ticks, "{seen:?}");
        machine.run(RunLimit { ticks }, None);
        let found = word(&machine, 0, BUFFER);
        if Some(&found) != seen.last() {
            seen.push(found);
        }
    }
    let content = content::seeded(7, 64 << 10);
    let first = u64::from_le_bytes(content[..8].try_into().unwrap());
    assert_eq!(seen, [0, 77, first]);
}
