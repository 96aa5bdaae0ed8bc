//! Where cycles go: programs that lose time in one way only, with a closed form for every performance event.
//!
//! Why it exists: `events.rs` has the events of caches, and the interrupts; here, each of the others is counted. A program is run with a few and
//! with many repetitions. The difference is compared for all 33 events: those that a test does not name must not have happened. So each
//! test also shows that cycles are instructions, the latency of hits and the stalls, and nothing else. What it does not know: harts that execute
//! out of order.

use crate::common::*;
use bulkhead_abi::hpm::Event;
use bulkhead_abi::memory_map::{CLINT_BASE, MEMORY_BASE};
use bulkhead_machine::config::PlatformKind;
use bulkhead_machine::hart::HartConfig;
use bulkhead_machine::machine::{Machine, Outcome, RunLimit};
use std::collections::BTreeMap;

const DATA: u64 = MEMORY_BASE + 0x10_0000;
const RESULTS: u64 = MEMORY_BASE + 0x30_0000;
/// Page tables: a root, a middle and one of 512 pages, from the start of memory on.
const TABLES: u64 = 0x40_0000;
const LIMIT: RunLimit = RunLimit { ticks: 100_000_000 };
/// Registers that no measured program uses.
const BUFFER: u32 = 31;
const ROUND: u32 = 30;
const INHIBIT: u32 = 0x320;
const MSTATUS: u32 = 0x300;
const MIE: u32 = 0x304;
const MTVEC: u32 = 0x305;
const MEPC: u32 = 0x341;
const MIP: u32 = 0x344;
const SFENCE: u32 = 0x1200_0073;
/// Counters that a hart has.
const COUNTERS: usize = 29;

/// A tile with private caches, and a hart of a cluster.
const CHIPS: [bool; 2] = [false, true];

/// What a hart that runs `body` counts in its second round, in which instructions are in the caches and branches are learnt.
fn counted(
    cluster: bool,
    prepare: &dyn Fn(&mut Program),
    body: &dyn Fn(&mut Program),
) -> BTreeMap<u64, u64> {
    let mut all = BTreeMap::new();
    for events in Event::ALL.chunks(COUNTERS) {
        let mut p = Program::default();
        prepare(&mut p);
        p.li(BUFFER, RESULTS)
            .li(ROUND, 2)
            .li(T0, u64::MAX)
            .csr(1, INHIBIT, T0);
        let round = p.here();
        for (index, event) in (3..).zip(events) {
            p.li(T0, *event as u64).csr(1, 0x320 + index, T0);
            p.csr(1, 0xb00 + index, ZERO);
        }
        p.jump_to_line();
        p.csr(1, INHIBIT, ZERO);
        body(&mut p);
        p.li(T0, u64::MAX).csr(1, INHIBIT, T0);
        p.addi(ROUND, ROUND, -1);
        let ends = p.here();
        p.word(0).jump_far(round);
        let end = p.here();
        p.patch_branch(ends, 0, ROUND, ZERO, end);
        for index in 0..events.len() as u32 {
            // csrrs t0, counter, zero
            p.word((0xb03 + index) << 20 | 2 << 12 | T0 << 7 | 0x73);
            p.sd(T0, BUFFER, 8 * u64::from(index));
        }
        p.csr(1, MIE, ZERO).word(FENCE).word(WFI).spin();
        let config = match cluster {
            false => platform(PlatformKind::Bare, 1),
            true => crate::common::cluster(1),
        };
        let mut machine = Machine::new(&config).expect("valid");
        tables(&mut machine);
        start_hart(&mut machine, (0, 0), &p, 0);
        let end = machine.run(LIMIT, None);
        assert!(matches!(end, Outcome::Idle { .. }), "{end:?}");
        for (index, event) in events.iter().enumerate() {
            let mut word = [0; 8];
            let at = RESULTS + 8 * index as u64;
            machine.peek(0, at, &mut word).expect("memory");
            all.insert(*event as u64, u64::from_le_bytes(word));
        }
    }
    all
}

/// The first two MiB of memory, one to one, in pages of 4 KiB for supervisor mode.
fn tables(machine: &mut Machine) {
    let table = |number: u64| MEMORY_BASE + TABLES + 0x1000 * number;
    let pointer = |number: u64| table(number) >> 12 << 10 | 1;
    let mut put = |at: u64, entry: u64| {
        machine
            .load_tile(0, at, &entry.to_le_bytes())
            .expect("memory");
    };
    put(table(0) + 8 * (MEMORY_BASE >> 30), pointer(1));
    put(table(1), pointer(2));
    for page in 0..512 {
        let entry = (MEMORY_BASE + 0x1000 * page) >> 12 << 10 | 0xCF;
        put(table(2) + 8 * page, entry);
    }
}

/// What `many` repetitions count more than `few`, compared for every event.
fn check(
    name: &str,
    cluster: bool,
    prepare: impl Fn(&mut Program),
    body: impl Fn(&mut Program, u64),
    (few, many): (u64, u64),
    expected: &[(Event, u64)],
) {
    let of = |times| counted(cluster, &prepare, &|p| body(p, times));
    let (few, many) = (of(few), of(many));
    let found: Vec<(Event, u64)> = Event::ALL
        .iter()
        .map(|event| {
            (
                *event,
                many[&(*event as u64)].wrapping_sub(few[&(*event as u64)]),
            )
        })
        .filter(|(_, count)| *count != 0)
        .collect();
    let mut wanted: Vec<(Event, u64)> = expected.iter().copied().filter(|one| one.1 != 0).collect();
    wanted.sort_by_key(|(event, _)| *event as u64);
    assert_eq!(found, wanted, "{name}, cluster: {cluster}");
}

fn nothing(_: &mut Program) {}

/// Cycles from a request of a first level until the second level's line is there.
fn second_level(cluster: bool) -> u64 {
    // The look-up, and the ways of a cluster up and down.
    if cluster { 12 + 2 + 2 } else { 12 }
}

fn costs() -> HartConfig {
    HartConfig::default()
}

#[test]
fn a_cycle_for_each_instruction() {
    use Event::*;
    for cluster in CHIPS {
        let body = |p: &mut Program, times| {
            for _ in 0..times {
                p.addi(A0, A0, 1);
            }
        };
        let expected = [(Instruction, 160), (Cycle, 160)];
        check("plain", cluster, nothing, body, (32, 192), &expected);
    }
}

#[test]
fn branches_jumps_and_returns() {
    use Event::*;
    let (wrong, right) = (
        u64::from(costs().branch_penalty),
        u64::from(costs().jump_penalty),
    );
    for cluster in CHIPS {
        // Indirect jumps to the next instruction: there is no prediction of targets.
        let indirect = |p: &mut Program, times| {
            for _ in 0..times {
                // auipc
                p.word(S0 << 7 | 0x17)
                    .addi(S0, S0, 12)
                    .word(S0 << 15 | 0x67);
            }
        };
        let n = 20u64;
        let expected = [
            (Instruction, 3 * n),
            (Misprediction, n),
            (StallBranch, n * wrong),
            (Cycle, n * (3 + wrong)),
        ];
        check(
            "indirect",
            cluster,
            nothing,
            indirect,
            (4, 4 + n),
            &expected,
        );
        // Calls of a function that returns at once: the return is predicted.
        let calls = |p: &mut Program, times: u64| {
            let over = p.here();
            p.word(0);
            // ret
            let function = p.here();
            p.word(0x8067);
            let on = p.here();
            p.patch_jump(over, on);
            for _ in 0..times {
                // jal ra
                let back = (function.index() as i64 - p.here().index() as i64) * 4;
                p.word(jal(1, back));
            }
        };
        let expected = [
            (Instruction, 2 * n),
            (StallBranch, 2 * n * right),
            (Cycle, 2 * n * (1 + right)),
        ];
        check("calls", cluster, nothing, calls, (4, 4 + n), &expected);
        // Rounds of a loop, whose branch is known to be taken, and is not at the end.
        let rounds = |p: &mut Program, times: u64| {
            p.addi(T2, ZERO, times as i32);
            let again = p.here();
            p.addi(T2, T2, -1).branch(1, T2, ZERO, again);
        };
        let expected = [
            (Instruction, 2 * n),
            (Branch, n),
            (StallBranch, n * right),
            (Cycle, n * (2 + right)),
        ];
        check("rounds", cluster, nothing, rounds, (4, 4 + n), &expected);
        let loops = |p: &mut Program, times: u64| (0..times).for_each(|_| rounds(p, 5));
        let m = 8;
        let expected = [
            (Instruction, m * 11),
            (Branch, m * 5),
            (Misprediction, m),
            (StallBranch, m * (4 * right + wrong)),
            (Cycle, m * (11 + 4 * right + wrong)),
        ];
        check("loops", cluster, nothing, loops, (2, 2 + m), &expected);
    }
}

fn jal(rd: u32, by: i64) -> u32 {
    let o = by as u32;
    let low = (o >> 1 & 0x3FF) << 21 | (o >> 11 & 1) << 20;
    (o >> 20 & 1) << 31 | low | (o >> 12 & 0xFF) << 12 | rd << 7 | 0x6f
}

/// Twice as many lines of code as the first level has, one jump in each: every fetch of a line misses.
#[test]
fn fetches_that_miss() {
    use Event::*;
    let right = u64::from(costs().jump_penalty);
    for cluster in CHIPS {
        let body = |p: &mut Program, lines: u64| {
            for _ in 0..lines {
                let here = p.here().index();
                let next = (here + 1).next_multiple_of(16);
                p.word(jal(0, 4 * (next - here) as i64));
                while p.here().index() < next {
                    p.addi(ZERO, ZERO, 0);
                }
            }
        };
        let n = 64;
        let wait = second_level(cluster);
        let expected = [
            (FetchMiss, n),
            (FetchRefill, n),
            (SecondAccess, n),
            (Instruction, n),
            (StallFetch, n * wait),
            (StallBranch, n * right),
            (Cycle, n * (1 + wait + right)),
        ];
        check("fetches", cluster, nothing, body, (512, 512 + n), &expected);
    }
}

/// Twice as many lines of data as the first level has: loads whose values are used at once, and stores that a fence waits for.
#[test]
fn loads_and_stores_that_miss() {
    use Event::*;
    let hit = u64::from(costs().load_to_use);
    for cluster in CHIPS {
        let start = |p: &mut Program| _ = p.li(S0, DATA);
        let loads = |p: &mut Program, lines: u64| {
            start(p);
            for _ in 0..lines {
                p.ld(T1, S0, 0).add(T1, T1, T1).addi(S0, S0, 64);
                // A line of instructions ends in no load's shadow.
                p.addi(A0, A0, 1);
            }
        };
        let n = 64;
        let expected = [(Instruction, 4 * n), (Load, n), (Cycle, n * (4 + hit - 1))];
        check("hits", cluster, nothing, loads, (64, 64 + n), &expected);
        let wait = second_level(cluster);
        let expected = [
            (Instruction, 4 * n),
            (Load, n),
            (DataMiss, n),
            (DataRefill, n),
            (SecondAccess, n),
            (StallLoad, n * (wait - hit)),
            // The bubble between a load and its use is no stall.
            (Cycle, n * (4 + (hit - 1) + (wait - hit))),
        ];
        check("loads", cluster, nothing, loads, (512, 512 + n), &expected);
        let stores = |p: &mut Program, lines: u64| {
            start(p);
            for _ in 0..lines {
                p.sd(T1, S0, 0).word(FENCE).addi(S0, S0, 64);
            }
        };
        let expected = [
            (Instruction, 3 * n),
            (Store, n),
            (DataMiss, n),
            (DataRefill, n),
            (DataWriteBack, n),
            (SecondAccess, n),
            (StallStore, n * (wait - 1)),
            (Cycle, n * (3 + wait - 1)),
        ];
        check(
            "stores",
            cluster,
            nothing,
            stores,
            (512, 512 + n),
            &expected,
        );
    }
}

/// Accesses to registers of the interrupt controller, and instructions that wait for its timer.
#[test]
fn devices_and_sleep() {
    use Event::*;
    const TIME: u64 = CLINT_BASE + 0xbff8;
    const COMPARE: u64 = CLINT_BASE + 0x4000;
    let device = u64::from(costs().mmio);
    for cluster in CHIPS {
        let n = 20;
        let loads = |p: &mut Program, times: u64| {
            p.li(S0, TIME);
            // Other registers, so that none waits for the one before.
            for at in 0..times {
                p.ld([T0, T1, T2, A1][at as usize % 4], S0, 0);
            }
        };
        let expected = [
            (Instruction, n),
            (Load, n),
            (DeviceAccess, n),
            (StallDevice, n * device),
            (Cycle, n * (1 + device)),
        ];
        check("loads", cluster, nothing, loads, (4, 4 + n), &expected);
        // The timer's interrupt ends each wait, and is not taken.
        let prepare = |p: &mut Program| {
            p.li(T0, 0x80).csr(1, MIE, T0).csr(1, MSTATUS, ZERO);
            p.li(S0, TIME).li(S2, COMPARE);
        };
        let sleep = |p: &mut Program| {
            p.ld(T0, S0, 0).addi(T0, T0, 5).sd(T0, S2, 0);
            // The hart looks at interrupts at the start of a line: that of the round before has ended by then.
            p.jump_to_line().word(WFI);
        };
        // Counts from the end of a unit of time on.
        let sleeps = |p: &mut Program, times: u64| {
            p.li(T0, u64::MAX).csr(1, INHIBIT, T0);
            sleep(p);
            p.csr(1, INHIBIT, ZERO);
            (0..times).for_each(|_| sleep(p));
        };
        let n = 8;
        // Five units of 400 ticks are 1000 cycles of two.
        let bubble = u64::from(costs().load_to_use) - 1;
        let jump = u64::from(costs().jump_penalty);
        let awake = 5 + 2 * device + bubble + jump;
        let expected = [
            (Instruction, 5 * n),
            (Branch, n),
            (StallBranch, n * jump),
            (Load, n),
            (Store, n),
            (DeviceAccess, 2 * n),
            (StallDevice, 2 * n * device),
            (Sleep, n * (1000 - awake)),
            (Cycle, n * 1000),
        ];
        check("sleep", cluster, prepare, sleeps, (2, 2 + n), &expected);
    }
}

/// Puts a handler before the program, and lets traps go there.
fn handler(p: &mut Program, build: impl Fn(&mut Program)) {
    let over = p.here();
    p.word(0).jump_to_line();
    let handler = p.here();
    build(p);
    p.mret();
    let on = p.here();
    p.patch_jump(over, on);
    p.li(T0, MEMORY_BASE + 4 * handler.index() as u64)
        .csr(1, MTVEC, T0);
}

#[test]
fn traps_and_interrupts() {
    use Event::*;
    let entry = u64::from(costs().trap_entry);
    for cluster in CHIPS {
        let n = 20;
        // The handler returns behind the call, which does not retire.
        let calls = |p: &mut Program| {
            handler(p, |p| {
                p.word(MEPC << 20 | 2 << 12 | T1 << 7 | 0x73)
                    .addi(T1, T1, 4)
                    .csr(1, MEPC, T1);
            });
        };
        let call = |p: &mut Program, times: u64| (0..times).for_each(|_| _ = p.word(0x73));
        let expected = [
            (Instruction, 4 * n),
            (Trap, n),
            (StallTrap, 2 * n * entry),
            (Cycle, n * (4 + 2 * entry)),
        ];
        check("calls", cluster, calls, call, (4, 4 + n), &expected);
        // An interrupt that software requests, and its handler clears.
        let interrupts = |p: &mut Program| {
            handler(p, |p| _ = p.csr(3, MIP, S2));
            p.li(S2, 2)
                .csr(2, MIE, S2)
                .addi(T0, ZERO, 8)
                .csr(2, MSTATUS, T0);
        };
        let interrupt =
            |p: &mut Program, times: u64| (0..times).for_each(|_| _ = p.csr(2, MIP, S2));
        let expected = [
            (Instruction, 3 * n),
            (Trap, n),
            (Interrupt, n),
            (StallTrap, 2 * n * entry),
            (Cycle, n * (3 + 2 * entry)),
        ];
        check(
            "interrupts",
            cluster,
            interrupts,
            interrupt,
            (4, 4 + n),
            &expected,
        );
    }
}

/// Accesses in machine mode with the tables, as for supervisor mode: loads of many pages, all in the first level.
#[test]
fn translations_of_data() {
    use Event::*;
    let second = u64::from(costs().l2_tlb_latency);
    // A walk reads three entries, all in the first level.
    let walk = 3 * u64::from(costs().load_to_use);
    for cluster in CHIPS {
        let prepare = |p: &mut Program| {
            p.translation(MEMORY_BASE + TABLES, false);
        };
        let body = |sweeps: u64, forget: bool| {
            move |p: &mut Program, pages: u64| {
                // A line of another set in each page.
                p.li(S1, 0x1000 + 64);
                p.as_supervisor();
                if forget {
                    p.word(SFENCE);
                }
                for _ in 0..sweeps {
                    p.li(S0, DATA);
                    for _ in 0..pages {
                        p.ld(T1, S0, 0).add(S0, S0, S1);
                    }
                }
                p.csr(1, MSTATUS, ZERO);
            }
        };
        // Each page is known neither to the first level nor to the second.
        let n = 8;
        let expected = [
            (Instruction, 2 * n),
            (Load, n),
            (DataTlbMiss, n),
            (Walk, n),
            (StallTranslation, n * (second + walk)),
            (Cycle, n * (2 + second + walk)),
        ];
        check(
            "walks",
            cluster,
            prepare,
            body(1, true),
            (8, 8 + n),
            &expected,
        );
        // Once known, all are in the first level.
        let expected = [(Instruction, 2 * n), (Load, n), (Cycle, 2 * n)];
        check(
            "known",
            cluster,
            prepare,
            body(1, false),
            (8, 8 + n),
            &expected,
        );
        // More pages than the first level has, and no more than the second: a page comes again after all others.
        let expected = [
            (Instruction, 2 * n),
            (Load, n),
            (DataTlbMiss, n),
            (StallTranslation, n * second),
            (Cycle, n * (2 + second)),
        ];
        check(
            "second level",
            cluster,
            prepare,
            body(1, false),
            (50, 50 + n),
            &expected,
        );
    }
}

/// The same for instructions: a jump in each page, in supervisor mode.
#[test]
fn translations_of_instructions() {
    use Event::*;
    let second = u64::from(costs().l2_tlb_latency);
    let walk = 3 * u64::from(costs().load_to_use);
    let right = u64::from(costs().jump_penalty);
    for cluster in CHIPS {
        // A call from supervisor mode returns behind it, in machine mode.
        let prepare = |p: &mut Program| {
            handler(p, |p| {
                p.word(MEPC << 20 | 2 << 12 | T1 << 7 | 0x73)
                    .addi(T1, T1, 4)
                    .csr(1, MEPC, T1);
                p.li(T1, 3 << 11).csr(2, MSTATUS, T1);
            });
            p.translation(MEMORY_BASE + TABLES, false);
        };
        let body = |p: &mut Program, pages: u64| {
            p.word(SFENCE).li(T0, 1 << 11).csr(1, MSTATUS, T0);
            // auipc
            p.word(T0 << 7 | 0x17)
                .addi(T0, T0, 16)
                .csr(1, MEPC, T0)
                .mret();
            for _ in 0..pages {
                // The next page, and a line of another set.
                p.word(jal(0, 0x1000 + 64));
                (1..(0x1000 + 64) / 4).for_each(|_| _ = p.word(0));
            }
            p.word(0x73);
        };
        let n = 6;
        let expected = [
            (Instruction, n),
            (FetchTlbMiss, n),
            (Walk, n),
            (StallTranslation, n * (second + walk)),
            (StallBranch, n * right),
            (Cycle, n * (1 + right + second + walk)),
        ];
        check("pages", cluster, prepare, body, (6, 6 + n), &expected);
    }
}
