//! Windows that move or close while their lines are in the caches: a dirty line goes to the memory that it comes from, and the kernel's
//! command makes it safe to give memory away.

use crate::common::*;
use bulkhead_abi::dtu::*;
use bulkhead_abi::memory_map::{MEMORY_BASE, PMP_WINDOW_SIZE};
use bulkhead_machine::config::PlatformKind;
use bulkhead_machine::machine::{Machine, Outcome, RunLimit};
use bulkhead_machine::types::Tick;

/// The tile's program is in window 1, its data in window 0, which later gets other memory.
const CODE: u64 = MEMORY_BASE + PMP_WINDOW_SIZE;
const CODE_MEMORY: u64 = 4 << 20;
const DATA: u64 = MEMORY_BASE;
const OLD: u64 = 5 << 20;
const NEW: u64 = 6 << 20;
/// Words after the program with which the test and the program tell each other their progress.
const GO: u64 = CODE + 0x1_0000;
/// What the program reads to evict all other lines from its caches.
const OTHERS: u64 = CODE + 0x2_0000;
const LINES: u64 = 64;
const SEEN: u32 = 0x100;

fn memory_at(base: u64) -> Endpoint {
    memory(base, SHARE, TLB_READ | TLB_WRITE)
}

/// A chip whose tile 1 runs a program in window 1.
fn chip_with(program: &Program) -> Machine {
    let mut machine = chip_of(&platform(PlatformKind::Tiled, 2));
    set(&mut machine, 1, 0, memory_at(OLD));
    set(&mut machine, 1, 1, memory_at(CODE_MEMORY));
    let loaded = machine.load_tile(1, CODE, &program.bytes());
    loaded.expect("memory");
    machine.start_hart(1, CODE, 0, 0).expect("tile");
    machine
}

fn run_until(machine: &mut Machine, ticks: Tick) {
    let end = machine.run(RunLimit { ticks }, None);
    assert!(
        matches!(end, Outcome::Limit | Outcome::Idle { .. }),
        "{end:?}"
    );
}

/// Lets the program continue with its next step.
fn go(machine: &mut Machine, step: u64) {
    let put = machine.load_tile(1, GO, &step.to_le_bytes());
    put.expect("memory");
    let now = machine.now();
    run_until(machine, now + 3_000_000);
}

/// The first word of each line of the page at an address of memory.
fn words(machine: &Machine, at: u64) -> Vec<u64> {
    let all = &machine.memory(MEMORY).expect("it exists")[at as usize..];
    let lines = all.chunks(64).take(LINES as usize);
    lines
        .map(|line| u64::from_le_bytes(*line.first_chunk().expect("64 bytes")))
        .collect()
}

fn wait_for(p: &mut Program, step: i32) {
    p.li(T1, GO).addi(T2, ZERO, step);
    let again = p.here();
    p.ld(T0, T1, 0).branch(1, T0, T2, again);
}

/// Reads enough to evict everything else from the caches.
fn push_out(p: &mut Program) {
    p.li(S0, OTHERS).li(S1, OTHERS + (128 << 10));
    let line = p.here();
    p.ld(T0, S0, 0).addi(S0, S0, 64).branch(1, S0, S1, line);
}

/// Writes a number into each line of a page and keeps the lines. Then, step by step, it evicts them and reads the page again.
fn hoarder() -> Program {
    let mut p = Program::default();
    p.li(S0, DATA).li(S1, DATA + 64 * LINES).li(T0, 77);
    let line = p.here();
    p.sd(T0, S0, 0).addi(S0, S0, 64).branch(1, S0, S1, line);
    wait_for(&mut p, 1);
    push_out(&mut p);
    wait_for(&mut p, 2);
    p.li(S0, DATA).li(S1, DATA + 64 * LINES);
    let look = p.here();
    p.ld(T0, S0, 0).word(FENCE).marker(T0, SEEN);
    p.addi(S0, S0, 64).branch(1, S0, S1, look);
    p.word(WFI).spin();
    p
}

fn seen(machine: &Machine) -> Vec<u64> {
    let markers = machine.markers();
    let seen = markers.iter().filter(|m| u32::from(m.kind) == SEEN);
    seen.map(|m| m.value).collect()
}

#[test]
fn a_dirty_line_goes_home_whatever_its_window_means() {
    for now in [memory_at(NEW), Endpoint::Invalid] {
        let mut machine = chip_with(&hoarder());
        run_until(&mut machine, 300_000);
        assert_eq!(words(&machine, OLD), [0; 64], "the lines are hoarded");
        set(&mut machine, 1, 0, now);
        go(&mut machine, 1);
        assert_eq!(words(&machine, OLD), [77; 64]);
        assert_eq!(words(&machine, NEW), [0; 64]);
        // It finds the lines again when the memory is mapped again.
        set(&mut machine, 1, 0, memory_at(OLD));
        go(&mut machine, 2);
        assert_eq!(seen(&machine), [77; 64]);
    }
}

#[test]
fn a_line_stays_in_the_caches_while_its_window_is_elsewhere() {
    let mut machine = chip_with(&hoarder());
    run_until(&mut machine, 300_000);
    set(&mut machine, 1, 0, memory_at(NEW));
    run_until(&mut machine, 310_000);
    set(&mut machine, 1, 0, memory_at(OLD));
    run_until(&mut machine, 310_100);
    // Memory does not have the lines: they are still in the caches.
    assert_eq!(words(&machine, OLD), [0; 64]);
    let mut there = [0; 8];
    machine
        .peek(1, DATA + 3 * 64, &mut there)
        .expect("it may read");
    assert_eq!(u64::from_le_bytes(there), 77);
}

/// The kernel's tile gives the command for the page at its step.
fn kernel() -> Program {
    let mut p = Program::default();
    let command = external_command(ExternalOpcode::WriteBack, 0, LINES as u16);
    p.unit().li(S0, MEMORY_BASE + 0x4_0000);
    p.li(T0, DATA).sd(T0, S0, 0).li(T0, command).sd(T0, S0, 8);
    p.command(
        Command::new(Opcode::Write, 10, 0),
        MEMORY_BASE + 0x4_0000,
        16,
        0,
    );
    p.srli(T0, T0, 24).andi(T0, T0, 0xFF).marker(T0, SEEN);
    p.word(WFI).spin();
    p
}

/// The kernel takes a page from a tile that keeps dirty lines of it, and gives it to an owner that writes it. With the command, no old
/// bytes get there, however late the tile evicts its lines; without it, they do.
#[test]
fn hoarded_lines_do_not_come_to_the_next_owner() {
    for commanded in [true, false] {
        let mut machine = chip_with(&hoarder());
        run_until(&mut machine, 300_000);
        if commanded {
            set(&mut machine, 1, 0, memory(OLD, SHARE, TLB_READ));
            let registers = MemoryEndpoint {
                activity: TILEMUX_ACTIVITY,
                target_tile: 1,
                rights: TLB_WRITE as u8,
                base: EXTERNAL_ARGUMENT,
                size: 16,
            };
            set(&mut machine, 0, 10, Endpoint::Memory(registers));
            kernel().start(&mut machine, 0);
            run_until(&mut machine, 600_000);
            assert_eq!(seen(&machine), [0], "the command succeeds");
            assert_eq!(words(&machine, OLD), [77; 64]);
        }
        set(&mut machine, 1, 0, Endpoint::Invalid);
        // The new owner's unit writes the memory, so no cache of the old owner notices: equivalent to a transfer by tile 0.
        set(&mut machine, 0, 11, memory_at(OLD));
        let mut owner = Program::default();
        owner.unit().li(S0, MEMORY_BASE + 0x8_0000).li(T0, 99);
        owner.li(S1, MEMORY_BASE + 0x8_0000 + 64 * LINES);
        let line = owner.here();
        owner.sd(T0, S0, 0).addi(S0, S0, 64).branch(1, S0, S1, line);
        let write = Command::new(Opcode::Write, 11, 0);
        owner.command(write, MEMORY_BASE + 0x8_0000, 64 * LINES, 0);
        owner.word(WFI).spin();
        owner.start_at(&mut machine, 0, 0x2_0000);
        let now = machine.now();
        run_until(&mut machine, now + 300_000);
        assert_eq!(words(&machine, OLD), [99; 64]);
        go(&mut machine, 1);
        let expected = if commanded { 99 } else { 77 };
        assert_eq!(words(&machine, OLD), [expected; 64], "{commanded}");
    }
}

/// Stores increasing numbers forever, into lines that miss and one that hits.
fn counter() -> Program {
    let mut p = Program::default();
    p.li(S2, DATA).li(S3, DATA + (256 << 10)).addi(T0, ZERO, 1);
    let round = p.here();
    p.addi(S0, S2, 64);
    let line = p.here();
    p.sd(T0, S0, 0).addi(T0, T0, 1);
    p.sd(T0, S2, 0).addi(T0, T0, 1).ld(T1, S0, 8);
    p.addi(S0, S0, 64).branch(1, S0, S3, line).jump(round);
    p
}

/// A window moves during all kinds of activity: what was stored before goes to the old memory or is lost; what is stored afterwards goes to
/// the new one.
#[test]
fn no_store_goes_to_the_memory_that_comes_after() {
    let range = |machine: &Machine, base: u64| {
        let all = &machine.memory(MEMORY).expect("it exists")[base as usize..][..256 << 10];
        let words = all.as_chunks().0.iter();
        let words = words.map(|word| u64::from_le_bytes(*word));
        let stored: Vec<u64> = words.filter(|word| *word != 0).collect();
        (stored.iter().min().copied(), stored.iter().max().copied())
    };
    for at in (100_000..104_000).step_by(61) {
        let mut machine = chip_with(&counter());
        run_until(&mut machine, at);
        set(&mut machine, 1, 0, memory_at(NEW));
        // By then all old lines have been evicted.
        run_until(&mut machine, at + 500_000);
        let (old, new) = (range(&machine, OLD), range(&machine, NEW));
        let (Some(last), Some(first)) = (old.1, new.0) else {
            panic!("{old:?} {new:?} at {at}");
        };
        assert!(last < first, "{old:?} {new:?} at {at}");
    }
}

/// Two windows onto one memory find the same lines.
#[test]
fn a_line_has_one_place_however_it_is_addressed() {
    let mut p = Program::default();
    p.li(S0, CODE + 0x8_0000).li(S1, DATA + 0x8_0000);
    p.ld(T0, S0, 0).ld(T0, S1, 0).word(FENCE);
    p.li(T0, 5).sd(T0, S0, 0).ld(T1, S1, 0).marker(T1, SEEN);
    p.li(T0, 6).sd(T0, S1, 0).ld(T1, S0, 0).marker(T1, SEEN);
    p.word(WFI).spin();
    let mut machine = chip_with(&p);
    set(&mut machine, 1, 0, memory_at(CODE_MEMORY));
    run_until(&mut machine, 100_000);
    assert_eq!(seen(&machine), [5, 6]);
}
