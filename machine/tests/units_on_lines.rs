//! Data transfer units and the lines of the caches: when the bytes of a transfer become visible, and that no others move.

use crate::common::*;
use bulkhead_abi::dtu::*;
use bulkhead_abi::memory_map::MEMORY_BASE;
use bulkhead_machine::config::{PlatformConfig, PlatformKind, UnitPort};
use bulkhead_machine::dtu::DtuEvent;
use bulkhead_machine::machine::{Machine, Outcome, RunLimit};
use bulkhead_machine::noc::Transaction;
use bulkhead_machine::timeline::Event;
use bulkhead_machine::types::Tick;

/// Where the unit's data is in the tile's share.
const DATA: u64 = MEMORY_BASE + 0x4_0000;
/// The data to copy, in the memory tile after the shares of the tiles.
const FAR: u64 = 8 << 20;
const PAGE: u64 = 4096;
const CHUNK: u64 = 512;
const SEEN: u32 = 0x100;

fn config(port: UnitPort) -> PlatformConfig {
    let mut config = platform(PlatformKind::Tiled, 3);
    for unit in config.tiles.iter_mut().filter_map(|tile| tile.dtu.as_mut()) {
        unit.port = port;
    }
    config
}

/// What is copied.
fn page() -> Vec<u8> {
    (0..PAGE).map(|i| (i * 7 % 251) as u8 | 1).collect()
}

/// A chip with the page to copy, and a right for each tile to read and write it.
fn chip_with(port: UnitPort) -> Machine {
    let mut machine = chip_of(&config(port));
    machine
        .load_memory(MEMORY, FAR, &page())
        .expect("it exists");
    for tile in 0..3 {
        set(
            &mut machine,
            tile,
            8,
            memory(FAR, 2 * PAGE, TLB_READ | TLB_WRITE),
        );
    }
    machine
}

fn finish(machine: &mut Machine) {
    let limit = RunLimit { ticks: 2_000_000 };
    let outcome = machine.run(limit, None);
    assert!(
        matches!(outcome, Outcome::Limit | Outcome::Idle { .. }),
        "{outcome:?}"
    );
}

fn marked(machine: &Machine, kind: u32) -> Vec<(Tick, u64)> {
    let markers = machine.markers();
    let wanted = markers.iter().filter(|m| u32::from(m.kind) == kind);
    wanted.map(|m| (m.tick, m.value)).collect()
}

/// Reads a page by DMA and meanwhile polls the last word of each chunk until it arrives; the words are already in its caches if `before`.
fn poll(before: bool) -> Program {
    let mut p = Program::default();
    p.unit().li(S0, DATA).addi(S1, ZERO, 8).addi(S2, S0, 0);
    if before {
        let line = p.here();
        p.ld(T0, S2, 0).addi(S2, S2, 64).addi(S1, S1, 0);
        p.li(T1, DATA + PAGE).branch(1, S2, T1, line);
    }
    p.li(T0, DATA).sd(T0, A0, ADDRESS);
    p.li(T0, PAGE).sd(T0, A0, SIZE);
    p.sd(ZERO, A0, ARGUMENT);
    p.li(T0, Command::new(Opcode::Read, 8, 0).0)
        .sd(T0, A0, COMMAND);
    let chunk = p.here();
    p.addi(S0, S0, CHUNK as i32);
    let look = p.here();
    p.addi(T1, S0, -8).ld(T0, T1, 0).branch(0, T0, ZERO, look);
    p.marker(S1, SEEN)
        .addi(S1, S1, -1)
        .branch(1, S1, ZERO, chunk);
    p.word(WFI).spin();
    p
}

#[test]
fn no_byte_is_seen_before_it_arrived() {
    for port in [UnitPort::Second, UnitPort::First] {
        for before in [false, true] {
            let mut machine = chip_with(port);
            poll(before).start(&mut machine, 1);
            machine.watch(1, Some(0)).expect("tile");
            finish(&mut machine);
            let timeline = machine.timeline(1).expect("tile").expect("watched");
            let mut arrived = [Tick::MAX; 8];
            let mut last = 0;
            for (at, event) in &timeline.recorded {
                match event {
                    Event::Packet {
                        transaction: Transaction::DmaRead,
                        tag,
                        ..
                    } => {
                        arrived[(tag & 7) as usize] = *at;
                    }
                    Event::Unit(DtuEvent::Local(_)) => last = *at,
                    _ => {}
                }
            }
            let seen = marked(&machine, SEEN);
            assert_eq!(seen.len(), 8, "{port:?} {before}");
            for ((at, _), arrived) in seen.iter().zip(arrived) {
                assert!(*at > arrived, "seen at {at}, arrived at {arrived}");
            }
            // The unit's own latency is in between: eight blocks of 64 bytes, four at a time.
            let (seen, cycle) = (seen[7].0, 2);
            assert!(
                last > arrived[7] && seen > last - 40 * cycle && seen < last + 400,
                "{seen} {last}"
            );
        }
    }
}

/// Reads a page, adds to each word, writes it elsewhere, and sends the beginning of it to tile 2.
fn work() -> Program {
    let mut p = Program::default();
    p.unit();
    p.command(Command::new(Opcode::Read, 8, 0), DATA, PAGE, 0);
    p.li(S0, DATA).li(S1, DATA + PAGE);
    let word = p.here();
    p.ld(T0, S0, 0).addi(T0, T0, 5).sd(T0, S0, 0);
    p.addi(S0, S0, 8).branch(1, S0, S1, word);
    p.command(Command::new(Opcode::Write, 8, 0), DATA, PAGE, PAGE);
    // Not at a line boundary.
    for offset in [0, 40, 1000] {
        let send = Command::new(Opcode::Send, 9, NO_ENDPOINT.into());
        p.command(send, DATA + offset, 200, 0);
        p.srli(T0, T0, 24).andi(T0, T0, 0xFF).marker(T0, SEEN);
    }
    p.word(WFI).spin();
    p
}

#[test]
fn a_unit_moves_what_it_is_told_to() {
    let run = |port| {
        let mut machine = chip_with(port);
        set(&mut machine, 1, 9, send(2, 9, 4));
        set(
            &mut machine,
            2,
            9,
            receive(TILEMUX_ACTIVITY, 0x2_0000, 4, NO_ENDPOINT),
        );
        work().start(&mut machine, 1);
        finish(&mut machine);
        assert_eq!(
            marked(&machine, SEEN)
                .iter()
                .map(|m| m.1)
                .collect::<Vec<_>>(),
            [0; 3]
        );
        let far = machine.memory(MEMORY).expect("it exists")[FAR as usize..][..2 * PAGE as usize]
            .to_vec();
        let mut data = vec![0; PAGE as usize];
        machine.peek(1, DATA, &mut data).expect("tile");
        let mut slots = vec![0; 4 * 256];
        machine
            .peek(2, MEMORY_BASE + 0x2_0000, &mut slots)
            .expect("tile");
        (far, data, slots)
    };
    let words = page();
    let words = words.chunks_exact(8);
    let word = |bytes: &[u8]| u64::from_le_bytes(*bytes.first_chunk().expect("8"));
    let changed: Vec<u8> = words.flat_map(|w| (word(w) + 5).to_le_bytes()).collect();
    for port in [UnitPort::Second, UnitPort::First] {
        let (far, data, slots) = run(port);
        assert!(far[..PAGE as usize] == page(), "{port:?}");
        assert!(far[PAGE as usize..] == changed, "{port:?}");
        assert!(data == changed, "{port:?}");
        for (slot, offset) in slots.chunks(256).zip([0, 40, 1000]) {
            assert_eq!(slot[32..232], changed[offset..offset + 200], "{port:?}");
        }
    }
}

/// Transfers data into and out of its memory forever, and writes its own lines.
fn busy() -> Program {
    let mut p = Program::default();
    p.unit().li(S0, DATA);
    let again = p.here();
    p.command(Command::new(Opcode::Read, 8, 0), DATA, PAGE, 0);
    p.sd(S0, S0, 0).sd(S0, S0, 64).addi(S0, S0, 128);
    p.command(Command::new(Opcode::Write, 8, 0), DATA, PAGE, PAGE);
    p.jump(again);
    p
}

/// The kernel takes a tile's memory away, or replaces it, whatever is in progress there: nothing from the old memory reaches the new one,
/// and the unit's command ends.
#[test]
fn a_window_that_closes_or_moves_takes_nothing_along() {
    const ELSEWHERE: u64 = 5 << 20;
    for port in [UnitPort::Second, UnitPort::First] {
        for at in (20_000..60_000).step_by(1_777) {
            for moved in [false, true] {
                let mut machine = chip_with(port);
                busy().start(&mut machine, 1);
                let outcome = machine.run(RunLimit { ticks: at }, None);
                assert_eq!(outcome, Outcome::Limit);
                let now = match moved {
                    true => memory(ELSEWHERE, SHARE, TLB_READ | TLB_WRITE),
                    false => Endpoint::Invalid,
                };
                set(&mut machine, 1, 0, now);
                // The hart can fetch nothing; what is in progress in the unit and the caches completes.
                machine.run(
                    RunLimit {
                        ticks: at + 100_000,
                    },
                    None,
                );
                machine.run(
                    RunLimit {
                        ticks: at + 200_000,
                    },
                    None,
                );
                let there = &machine.memory(MEMORY).expect("it exists")[ELSEWHERE as usize..];
                // Blocks of the transfer in progress may reach the new memory, which is the tile's own, but no line of the old memory.
                let program = busy().bytes();
                assert!(!there.windows(16).any(|w| w == &program[..16]));
                let data = (DATA - MEMORY_BASE) as usize;
                let mut other = there[..data]
                    .iter()
                    .chain(&there[data + PAGE as usize..SHARE as usize]);
                assert!(other.all(|byte| *byte == 0), "{port:?} at {at}");
            }
        }
    }
}

/// A window ends in the middle of a line whose rest belongs to another owner: nothing of it is read or written.
#[test]
fn a_line_that_is_not_all_in_the_window_does_not_move() {
    let mut machine = chip_with(UnitPort::Second);
    let end = DATA - MEMORY_BASE + 32;
    set(&mut machine, 1, 0, memory(SHARE, end, TLB_READ | TLB_WRITE));
    let theirs = SHARE + end;
    machine
        .load_memory(MEMORY, theirs, &[9; 32])
        .expect("it exists");
    let mut p = Program::default();
    p.li(S0, DATA).li(T0, 7).sd(T0, S0, -64i64 as u64);
    p.sd(T0, S0, 0).addi(S1, S0, -64).cbo(CBO_FLUSH, S1);
    p.word(FENCE)
        .ld(T1, S0, 8)
        .marker(T1, SEEN)
        .word(WFI)
        .spin();
    p.start(&mut machine, 1);
    finish(&mut machine);
    assert_eq!(marked(&machine, SEEN).len(), 1);
    let there = machine.memory(MEMORY).expect("it exists");
    let line = |at: u64| &there[at as usize..][..32];
    assert_eq!(line(theirs - 96)[0], 7);
    assert_eq!(
        (line(theirs - 32), line(theirs)),
        (&[0; 32][..], &[9; 32][..])
    );
}

/// Writes a number into each line of a page, repeatedly if `busy`.
fn hoarder(busy: bool) -> Program {
    let mut p = Program::default();
    let again = p.here();
    p.li(S0, DATA).li(S1, DATA + PAGE).li(T0, 77);
    let line = p.here();
    p.sd(T0, S0, 0).addi(S0, S0, 64).branch(1, S0, S1, line);
    if busy {
        p.jump(again);
    }
    p.spin();
    p
}

/// The kernel: gives the command for this many lines, unless the test omits it, and reads memory. It marks outcome and time of the
/// command, then the lines' contents in memory.
fn taker(lines: Option<u16>) -> Program {
    let mut p = Program::default();
    p.unit().li(S0, 5000);
    let wait = p.here();
    p.addi(S0, S0, -1).branch(1, S0, ZERO, wait);
    if let Some(lines) = lines {
        let command = external_command(ExternalOpcode::WriteBack, 0, lines);
        p.li(S0, DATA).li(T0, DATA).sd(T0, S0, 0);
        p.li(T0, command).sd(T0, S0, 8).marker(ZERO, OUTCOME);
        p.command(Command::new(Opcode::Write, 10, 0), DATA, 16, 0);
        p.srli(T0, T0, 24).andi(S2, T0, 0xFF).li(S0, DATA);
        let runs = p.here();
        let register = WRITING_BACK - EXTERNAL_ARGUMENT;
        p.command(Command::new(Opcode::Read, 10, 0), DATA, 8, register);
        p.ld(T0, S0, 0)
            .branch(1, T0, ZERO, runs)
            .marker(S2, OUTCOME);
    }
    p.command(Command::new(Opcode::Read, 11, 0), DATA, PAGE, 0);
    p.li(S0, DATA).li(S1, DATA + PAGE);
    let line = p.here();
    p.ld(T0, S0, 0).marker(T0, SEEN);
    p.addi(S0, S0, 64).branch(1, S0, S1, line).word(WFI).spin();
    p
}

const OUTCOME: u32 = 0x101;

/// The contents of memory when the kernel reads it; the outcome of the command; how long it took.
fn taken(port: UnitPort, lines: Option<u16>, busy: bool) -> (Vec<u64>, Vec<u64>, Tick) {
    let mut machine = chip_with(port);
    hoarder(busy).start(&mut machine, 1);
    taker(lines).start(&mut machine, 0);
    let registers = MemoryEndpoint {
        activity: TILEMUX_ACTIVITY,
        target_tile: 1,
        rights: (TLB_READ | TLB_WRITE) as u8,
        base: EXTERNAL_ARGUMENT,
        size: WRITING_BACK + 8 - EXTERNAL_ARGUMENT,
    };
    set(&mut machine, 0, 10, Endpoint::Memory(registers));
    set(
        &mut machine,
        0,
        11,
        memory(SHARE + DATA - MEMORY_BASE, PAGE, TLB_READ),
    );
    finish(&mut machine);
    let of_kernel = |kind| {
        let markers = machine.markers();
        let own = markers
            .iter()
            .filter(|m| m.tile == 0 && u32::from(m.kind) == kind);
        own.map(|m| (m.tick, m.value)).collect::<Vec<_>>()
    };
    let outcome = of_kernel(OUTCOME);
    let took = outcome.iter().map(|m| m.0).max().unwrap_or(0)
        - outcome.iter().map(|m| m.0).min().unwrap_or(0);
    let values = |marks: Vec<(Tick, u64)>| marks.into_iter().map(|m| m.1).collect();
    (values(of_kernel(SEEN)), values(outcome), took)
}

/// How long the command takes for 64 dirty lines beside this many tiles that transfer pages without pause.
#[test]
fn the_command_beside_rivals_ends() {
    // A line waits for one chunk of each rival at its link and at the memory; a chunk is eight times as long as a line, and four lines are
    // outstanding.
    let alone = beside_rivals(0);
    for rivals in [0, 2, 6] {
        let took = beside_rivals(rivals);
        println!("64 lines beside {rivals} rivals: {took} ticks of 0.25 ns");
        assert!(took <= alone * (1 + 8 * u64::from(rivals)), "{took}");
    }
}

fn beside_rivals(rivals: u16) -> Tick {
    let mut machine = chip_of(&platform(PlatformKind::Tiled, 2 + rivals));
    for rival in 2..2 + rivals {
        set(
            &mut machine,
            rival,
            8,
            memory(FAR, 2 * PAGE, TLB_READ | TLB_WRITE),
        );
        busy().start(&mut machine, rival);
    }
    hoarder(true).start(&mut machine, 1);
    taker(Some(WRITE_BACK_LINES)).start(&mut machine, 0);
    let registers = MemoryEndpoint {
        activity: TILEMUX_ACTIVITY,
        target_tile: 1,
        rights: (TLB_READ | TLB_WRITE) as u8,
        base: EXTERNAL_ARGUMENT,
        size: WRITING_BACK + 8 - EXTERNAL_ARGUMENT,
    };
    set(&mut machine, 0, 10, Endpoint::Memory(registers));
    let page = memory(SHARE + DATA - MEMORY_BASE, PAGE, TLB_READ);
    set(&mut machine, 0, 11, page);
    finish(&mut machine);
    let ticks: Vec<Tick> = marked(&machine, OUTCOME).iter().map(|m| m.0).collect();
    assert_eq!(ticks.len(), 2, "the command ended");
    ticks[1] - ticks[0]
}

#[test]
fn memory_has_what_the_kernel_had_written_back() {
    let refused = DtuError::TargetRefused as u64;
    for port in [UnitPort::Second, UnitPort::First] {
        // Without the command, memory has nothing of what the tile wrote.
        assert_eq!(taken(port, None, false).0, [0; 64]);
        assert_eq!(
            taken(port, Some(WRITE_BACK_LINES + 1), false).1,
            [0, refused]
        );
        let (some, outcome, _) = taken(port, Some(40), false);
        assert_eq!((&some[..40], &some[40..]), (&[77; 40][..], &[0; 24][..]));
        assert_eq!(outcome, [0, 0]);
        for busy in [false, true] {
            let (all, outcome, took) = taken(port, Some(WRITE_BACK_LINES), busy);
            assert_eq!(
                (all, outcome),
                (vec![77; 64], vec![0, 0]),
                "{port:?} {busy}"
            );
            println!("64 lines: {took} ticks of 0.25 ns, {port:?} {busy}");
            assert!(took < 64 * 500, "{took}");
        }
    }
}
