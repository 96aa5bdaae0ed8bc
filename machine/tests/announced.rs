//! A tile hands nothing to the network before the moment that it has announced, whatever comes from outside; otherwise the network or other
//! tiles would already be beyond that moment. The machine itself checks this (`Local::check_announced`, `Tile::deliver`); these tests take
//! it to where it could fail.

use crate::common::*;
use bulkhead_abi::dtu::*;
use bulkhead_abi::memory_map::{CLINT_BASE, CLINT_MTIME, CLINT_MTIMECMP, MEMORY_BASE};
use bulkhead_machine::config::{PlatformKind, PrefetcherConfig, PrefetcherKind, UnitPort};
use bulkhead_machine::machine::{Machine, Outcome, RunLimit};

/// Far enough from the program to be in other lines.
const DATA: u64 = MEMORY_BASE + 0x8_0000;
/// The address of the interrupt handler.
const HANDLER: u64 = 0x3_0000;
const PAGE: u64 = 4096;
const FENCE_I: u32 = 0x0000_100f;
/// Where a hart is diverted to: a line that has never been fetched.
const ELSEWHERE: u64 = MEMORY_BASE + 0x4_0000;
const SEEN: u32 = 0x100;

fn run_until(machine: &mut Machine, ticks: u64) {
    let end = machine.run(RunLimit { ticks }, None);
    assert!(
        matches!(end, Outcome::Limit | Outcome::Idle { .. }),
        "{end:?}"
    );
}

/// A hart that waits for a line is diverted. It used to continue when the line arrived, but at the time when it had begun to wait, so its
/// fetch entered the network in the past.
#[test]
fn a_hart_that_is_diverted_while_it_waits_goes_on_from_now() {
    let config = platform(PlatformKind::Tiled, 1);
    for at in (20_000..21_000).step_by(7) {
        let mut machine = chip_of(&config);
        let mut p = Program::default();
        // One miss after another.
        p.li(S0, DATA);
        let again = p.here();
        p.ld(T0, S0, 0).add(S0, S0, T0).addi(S0, S0, 64).jump(again);
        p.start(&mut machine, 0);
        let mut there = Program::default();
        there.marker(ZERO, SEEN).spin();
        machine
            .load_tile(0, ELSEWHERE, &there.bytes())
            .expect("memory");
        run_until(&mut machine, at);
        machine.divert_hart(0, ELSEWHERE).expect("tile");
        run_until(&mut machine, at + 20_000);
        let seen = machine.markers();
        // The fetch needs memory, and so does the outstanding access.
        assert_eq!(seen.len(), 1, "{at}");
        let after = seen[0].tick - at;
        assert!((200..2_000).contains(&after), "{at}: {after}");
    }
}

/// A hart waits before an operation, and may not perform it any more when it goes on. It used to take the trap at the time when it had begun to
/// wait, so the fetch of its handler entered the network in the past.
#[test]
fn a_trap_of_an_operation_that_waited_comes_after_the_wait() {
    let mut config = platform(PlatformKind::Tiled, 1);
    config.tiles[0].dtu.as_mut().expect("it has one").port = UnitPort::First;
    let mut traps = 0;
    for at in (20_000..21_000).step_by(7) {
        let mut machine = chip_of(&config);
        let mut p = Program::default();
        p.li(S0, DATA).li(T0, MEMORY_BASE + HANDLER);
        p.csr(1, 0x305, T0);
        // A line is zeroed behind a store to it that misses.
        let again = p.here();
        p.sd(S0, S0, 8).cbo(CBO_ZERO, S0).addi(S0, S0, 64);
        p.jump(again);
        p.start(&mut machine, 0);
        run_until(&mut machine, at);
        // Another part of memory, which it may only read. Its handler is not there, but its code is in the cache.
        set(&mut machine, 0, 0, memory(13 << 20, SHARE, TLB_READ));
        run_until(&mut machine, at + 1_000);
        traps += machine.statistics().harts[0].counters.traps;
    }
    assert!(traps > 0);
}

/// A prefetcher of either kind.
fn prefetcher(seed: u64) -> PrefetcherConfig {
    PrefetcherConfig {
        kind: match seed % 4 {
            0 => PrefetcherKind::Stream {
                streams: 8,
                stride: 8,
                training: 2,
                distance: 4,
            },
            _ => PrefetcherKind::Stride {
                entries: 64,
                ways: 4,
                bits: 3,
                initial: 4,
                threshold: 50,
            },
        },
        degree: 4,
        page: 4096,
    }
}

/// Numbers from a seed: Marsaglia's xorshift64 (13, 7, 17).
struct Random(u64);

impl Random {
    fn below(&mut self, end: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 11) % end
    }
}

/// Bytes that the programs use, more than the second level holds.
const RANGE: u64 = 256 << 10;
/// The code of every program is here, followed by pieces in lines of their own.
const PIECES: u64 = 64;
/// The page in memory that every unit reads and writes.
const SHARED: u64 = 12 << 20;
/// Bytes per second of a bucket that holds back.
const SLOW: u64 = 200_000_000;

/// A loop of random steps: loads, stores and atomic operations with and without misses, cache management, commands of the unit with and
/// without waiting for them, messages, sleep, a timer that is due immediately or soon, waits for interrupts, and jumps to absent lines.
fn random_program(random: &mut Random, tile: u16, tiles: u16) -> Program {
    let mut p = Program::default();
    p.unit().li(S1, DATA).li(S2, RANGE - 8).addi(S0, S1, 0);
    p.li(S3, CLINT_BASE + CLINT_MTIMECMP);
    // Interrupts of the timer and of the unit end waits. A handler also takes them and rearms the timer.
    p.li(T0, MEMORY_BASE + HANDLER).csr(1, 0x305, T0);
    p.addi(T0, ZERO, 0x88).csr(2, 0x304, T0).csr(2, 0x300, T0);
    let again = p.here();
    for _ in 0..PIECES {
        match random.below(if tile == 0 { 16 } else { 14 }) {
            0..3 => {
                p.li(T1, random.below(RANGE)).add(S0, S0, T1);
                p.and(S0, S0, S2).add(S0, S0, S1);
            }
            3 => {
                p.ld(T0, S0, 0).add(T1, T0, T0);
            }
            4 => {
                p.sd(S0, S0, 0).sd(T0, S0, 64);
            }
            5 => {
                let what = [CBO_INVAL, CBO_CLEAN, CBO_FLUSH, CBO_ZERO];
                p.cbo(what[random.below(4) as usize], S0);
            }
            6 => {
                p.word(if random.below(2) == 0 { FENCE } else { FENCE_I });
            }
            7 => {
                p.amo(0, random.below(4) as u32, T0, S0, S0);
            }
            8 | 9 => {
                let opcode = match random.below(2) {
                    0 => Opcode::Read,
                    _ => Opcode::Write,
                };
                let size = 1 + random.below(PAGE);
                let address = DATA + random.below(16) * PAGE;
                let (command, offset) = (Command::new(opcode, 8, 0), PAGE * u64::from(tile));
                if random.below(2) == 0 {
                    p.command(command, address, size.min(PAGE), offset);
                } else {
                    p.li(T0, address).sd(T0, A0, ADDRESS);
                    p.li(T0, size).sd(T0, A0, SIZE);
                    p.li(T0, offset).sd(T0, A0, ARGUMENT);
                    p.li(T0, command.0).sd(T0, A0, COMMAND);
                }
            }
            10 => {
                let to = 16 + random.below(tiles.into()) as u16;
                let send = Command::new(Opcode::Send, to, NO_ENDPOINT.into());
                p.command(send, DATA, 1 + random.below(200), 0);
            }
            11 => {
                let fetch = Command::new(Opcode::Fetch, 9, 0);
                p.command(fetch, DATA + RANGE, 8, 0).ld(T2, A0, ARGUMENT);
                p.slli(T2, T2, 32)
                    .li(T0, Command::new(Opcode::Acknowledge, 9, 0).0);
                p.or(T0, T0, T2).sd(T0, A0, COMMAND);
            }
            12 => {
                // Due immediately, or after some of its 100 ns ticks.
                p.li(T0, CLINT_BASE + CLINT_MTIME).ld(T0, T0, 0);
                p.addi(T0, T0, random.below(4) as i32).sd(T0, S3, 0);
                if random.below(2) == 0 {
                    p.word(WFI);
                }
            }
            14 | 15 => {
                // Lines of a tile are written back, or its hart is restarted.
                let to = random.below(tiles.into()) as u16;
                let (argument, command) = match random.below(3) {
                    0 => (MEMORY_BASE, ExternalOpcode::StartHart),
                    _ => (DATA + random.below(RANGE), ExternalOpcode::WriteBack),
                };
                let lines = 1 + random.below(WRITE_BACK_LINES.into()) as u16;
                p.li(T0, DATA + RANGE + 64).li(T1, argument).sd(T1, T0, 0);
                p.li(T1, external_command(command, 0, lines)).sd(T1, T0, 8);
                let write = Command::new(Opcode::Write, 32 + to, 0);
                p.command(write, DATA + RANGE + 64, 16, 0);
            }
            _ => {
                p.command(
                    Command::new(Opcode::Sleep, NO_ENDPOINT, 0),
                    0,
                    0,
                    1 + random.below(3_000),
                );
            }
        }
        if random.below(3) == 0 {
            p.jump_to_line();
        }
    }
    p.jump_far(again);
    p
}

/// Postpones the timer, and clears the unit's interrupt.
fn handler() -> Program {
    let mut p = Program::default();
    p.csr(1, 0x340, T0).addi(T0, ZERO, -1).sd(T0, S3, 0);
    // The scratch register restores it.
    p.word(0x340 << 20 | 2 << 12 | T0 << 7 | 0x73).mret();
    p
}

/// What the world does to a tile between two pieces of a run.
fn disturb(machine: &mut Machine, random: &mut Random, tiles: u16) {
    let tile = random.below(tiles.into()) as u16;
    let share = memory(u64::from(tile) * SHARE, SHARE, TLB_READ | TLB_WRITE);
    match random.below(6) {
        0 => machine.divert_hart(tile, MEMORY_BASE).expect("tile"),
        1 => machine.start_hart(tile, MEMORY_BASE, 0, 0).expect("tile"),
        2 => {
            // Its window is absent for a while, but no longer than the tile can run from the lines in its caches.
            set(machine, tile, 0, memory(13 << 20, SHARE, TLB_READ));
            let ticks = machine.now() + random.below(60);
            run_until(machine, ticks);
            set(machine, tile, 0, share);
            machine.start_hart(tile, MEMORY_BASE, 0, 0).expect("tile");
        }
        3 => {
            let unit = machine.unit_mut(tile).expect("tile");
            let rate = random.below(2) * SLOW;
            unit.set_bucket(0, 0, rate, 4096, 4096);
        }
        _ => {}
    }
}

/// Random tiles and a random world, on lines. Every packet that leaves too early, and every packet that reaches a tile already beyond its
/// time, causes a panic. In a debug build, what a tile would have announced is checked after every event and every block. In two of five chips, endpoints
/// lead to other tiles for messages only.
#[test]
fn nothing_leaves_before_it_was_announced() {
    for seed in 1..=24u64 {
        let mut random = Random(seed.wrapping_mul(0x9E37_79B9_7F4A_7C15));
        let tiles = 1 + (seed % 4) as u16;
        let mut config = platform(PlatformKind::Tiled, tiles);
        for (tile, unit) in config.tiles.iter_mut().enumerate() {
            if tile % 2 == 1 {
                let unit = unit.dtu.as_mut().expect("it has one");
                unit.port = UnitPort::First;
            }
            if seed % 2 == 0 {
                for cache in [&mut unit.l1d, &mut unit.l2].into_iter().flatten() {
                    cache.prefetcher = Some(prefetcher(seed));
                }
            }
        }
        if seed % 3 == 0 {
            other_controller(&mut config, (seed % 4) as usize);
        }
        let mut machine = chip_of(&config);
        for tile in 0..tiles {
            set(&mut machine, tile, 8, memory(SHARED, SHARE, 3));
            set(
                &mut machine,
                tile,
                9,
                receive(TILEMUX_ACTIVITY, 0xE_0000, 4, NO_ENDPOINT),
            );
            for to in 0..tiles {
                set(&mut machine, tile, 16 + to, send(to, 9, 2));
                let registers = MemoryEndpoint {
                    activity: TILEMUX_ACTIVITY,
                    target_tile: to,
                    rights: TLB_WRITE as u8,
                    base: EXTERNAL_ARGUMENT,
                    size: 16,
                };
                // Without them, tiles reach each other by messages only, and run further ahead.
                if seed % 5 > 1 {
                    set(&mut machine, tile, 32 + to, Endpoint::Memory(registers));
                }
            }
            let program = random_program(&mut random, tile, tiles);
            assert!(program.bytes().len() < HANDLER as usize);
            let at = MEMORY_BASE + HANDLER;
            let loaded = machine.load_tile(tile, at, &handler().bytes());
            loaded.expect("memory");
            program.start(&mut machine, tile);
        }
        for _ in 0..400 {
            let ticks = machine.now() + 1 + random.below(4_000);
            run_until(&mut machine, ticks);
            disturb(&mut machine, &mut random, tiles);
        }
        let instructions: u64 = machine
            .statistics()
            .harts
            .iter()
            .map(|hart| hart.counters.instructions)
            .sum();
        assert!(instructions > 20_000, "{seed}: {instructions}");
    }
}
