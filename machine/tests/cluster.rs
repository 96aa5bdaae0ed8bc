//! Programs on a cluster: harts with private first levels that a directory keeps coherent.

use crate::common::*;
use bulkhead_abi::memory_map::{CLINT_BASE, EXIT_BASE, MEMORY_BASE, UART_BASE};
use bulkhead_machine::config::PlatformConfig;
use bulkhead_machine::dram::controller::Turns;
use bulkhead_machine::hart::IntervalConfig;
use bulkhead_machine::ledger::Resource;
use bulkhead_machine::machine::{Machine, Outcome, RunLimit};
use bulkhead_machine::noc::Transaction;
use bulkhead_machine::types::{Owner, Tick};

/// After the programs of eight harts.
const DATA: u64 = 0x20_0000;
const LIMIT: RunLimit = RunLimit { ticks: 20_000_000 };
const MTVEC: u32 = 0x305;
const MIE: u32 = 0x304;
const MSTATUS: u32 = 0x300;

fn data(line: u64) -> u64 {
    MEMORY_BASE + DATA + line * 64
}

fn word(machine: &Machine, address: u64) -> u64 {
    let mut word = [0; 8];
    machine.peek(0, address, &mut word).expect("memory");
    u64::from_le_bytes(word)
}

/// Starts a program on each hart, each at its own place.
fn machine(config: &PlatformConfig, programs: &[Program]) -> Machine {
    let mut machine = Machine::new(config).expect("valid");
    for (port, program) in programs.iter().enumerate() {
        start_port(&mut machine, port, program, 0x1_0000 * (port as u64 + 1));
    }
    machine
}

fn idle(machine: &mut Machine) -> Tick {
    match machine.run(LIMIT, None) {
        Outcome::Idle { at } => at,
        other => panic!("{other:?}"),
    }
}

/// How a hart adds one to a counter.
#[derive(Clone, Copy, Debug)]
enum Add {
    Amo,
    Reserved,
    Lock,
}

fn add(how: Add, rounds: i32) -> Program {
    let mut p = Program::default();
    p.li(S0, data(0)).li(S2, data(1)).addi(S1, ZERO, rounds);
    p.addi(T2, ZERO, 1);
    let again = p.here();
    match how {
        Add::Amo => {
            p.amo(0, 0, ZERO, S0, T2);
        }
        Add::Reserved => {
            p.lr(T0, S0).addi(T0, T0, 1).sc(T1, S0, T0);
            p.branch(1, T1, ZERO, again);
        }
        Add::Lock => {
            let taken = p.here();
            // Swap with acquire; store of zero with release.
            p.amo(1, 2, T0, S2, T2).branch(1, T0, ZERO, taken);
            p.ld(T0, S0, 0).addi(T0, T0, 1).sd(T0, S0, 0);
            p.amo(1, 1, ZERO, S2, ZERO);
        }
    }
    p.addi(S1, S1, -1).branch(1, S1, ZERO, again);
    p.word(WFI);
    p
}

#[test]
fn counters_of_many_harts_are_exact() {
    for pipeline in PIPELINES {
        for harts in 1..=8 {
            for how in [Add::Amo, Add::Reserved, Add::Lock] {
                let programs: Vec<_> = (0..harts).map(|_| add(how, 50)).collect();
                let mut machine = machine(&pipelined(cluster(harts), pipeline), &programs);
                idle(&mut machine);
                let expected = 50 * u64::from(harts);
                let found = word(&machine, data(0));
                assert_eq!(found, expected, "{how:?} of {harts}, {pipeline:?}");
            }
        }
    }
}

/// Why a reservation holds its line: without that, none of eight harts that loop over LR and SC ever succeeds. (Four do, because the
/// look-up of the next request takes longer than the code between LR and SC.)
#[test]
fn without_a_hold_no_conditional_store_of_many_harts_succeeds() {
    let mut config = cluster(8);
    config.tiles[0].cluster.as_mut().unwrap().hold = 1;
    let programs: Vec<_> = (0..8).map(|_| add(Add::Reserved, 50)).collect();
    let mut machine = machine(&config, &programs);
    let end = machine.run(RunLimit { ticks: 1_000_000 }, None);
    assert_eq!((end, word(&machine, data(0))), (Outcome::Limit, 0));
}

#[test]
fn a_message_comes_with_what_was_stored_before_it() {
    let rounds = 100;
    let mut writer = Program::default();
    writer.li(S0, data(0)).li(S2, data(5)).addi(S1, ZERO, 0);
    let again = writer.here();
    writer
        .addi(S1, S1, 1)
        .sd(S1, S0, 0)
        .word(FENCE)
        .sd(S1, S2, 0);
    let wait = writer.here();
    writer.ld(T0, S2, 64).branch(1, T0, S1, wait);
    writer
        .addi(T1, ZERO, rounds)
        .branch(1, S1, T1, again)
        .word(WFI);
    let mut reader = Program::default();
    reader
        .li(S0, data(0))
        .li(S2, data(5))
        .addi(S1, ZERO, 0)
        .addi(S3, ZERO, 0);
    let again = reader.here();
    reader.addi(S1, S1, 1);
    let wait = reader.here();
    reader.ld(T0, S2, 0).branch(1, T0, S1, wait).word(FENCE);
    reader.ld(T1, S0, 0).xor(T1, T1, S1).or(S3, S3, T1);
    reader.word(FENCE).sd(S1, S2, 64);
    reader
        .addi(T1, ZERO, rounds)
        .branch(1, S1, T1, again)
        .word(WFI);
    let programs = [writer, reader];
    for pipeline in PIPELINES {
        let mut machine = machine(&pipelined(cluster(2), pipeline), &programs);
        idle(&mut machine);
        let reader = machine.cluster_hart(0, 1).unwrap();
        assert_eq!((reader.register(9), reader.register(19)), (100, 0));
        waits_are_booked(&machine);
    }
}

#[test]
fn waits_of_contending_harts_are_booked_exactly() {
    for pipeline in PIPELINES {
        for harts in [2, 4, 8] {
            for how in [Add::Amo, Add::Reserved, Add::Lock] {
                let programs: Vec<_> = (0..harts).map(|_| add(how, 50)).collect();
                let mut machine = machine(&pipelined(cluster(harts), pipeline), &programs);
                idle(&mut machine);
                waits_are_booked(&machine);
            }
            let mut machine = machine(&pipelined(cluster(harts), pipeline), &contending(harts));
            idle(&mut machine);
            waits_are_booked(&machine);
        }
    }
}

/// A pseudo-random walk over this many lines, with loads, stores and atomic additions. Returns the program and the sum of the loaded
/// values.
fn walk(seed: u64, base: u64, lines: u64, rounds: u64) -> (Program, u64) {
    let mut p = Program::default();
    let (mut state, mut memory, mut sum) = (seed, vec![0u64; lines as usize], 0u64);
    p.li(S0, base).addi(S3, ZERO, 0);
    for _ in 0..rounds {
        state = state
            .wrapping_mul(6364136223846793005)
            .wrapping_add(1442695040888963407);
        let (line, what) = (state >> 33 & (lines - 1), state >> 60);
        p.li(T0, line * 64).add(T0, T0, S0);
        let word = &mut memory[line as usize];
        match what {
            0..8 => {
                p.ld(T1, T0, 0).add(S3, S3, T1);
                sum = sum.wrapping_add(*word);
            }
            8..14 => {
                let value = (state >> 20 & 0x7FF) as i32;
                p.addi(T1, ZERO, value).sd(T1, T0, 0);
                *word = value as u64;
            }
            _ => {
                p.addi(T1, ZERO, 3).amo(0, 0, T2, T0, T1).add(S3, S3, T2);
                sum = sum.wrapping_add(*word);
                *word += 3;
            }
        }
    }
    p.word(WFI);
    (p, sum)
}

#[test]
fn one_hart_computes_what_it_computes_with_flat_memory() {
    // More lines than the first level has, and more than the second level.
    for (seed, lines) in [(1, 16), (2, 512), (3, 4096)] {
        let (program, sum) = walk(seed, data(0), lines, 1500);
        for (harts, pipeline) in [1, 4].into_iter().flat_map(|h| PIPELINES.map(|p| (h, p))) {
            let config = pipelined(cluster(harts), pipeline);
            let mut machine = machine(&config, std::slice::from_ref(&program));
            idle(&mut machine);
            let found = machine.cluster_hart(0, 0).unwrap().register(19);
            assert_eq!(found, sum, "{lines} lines, {pipeline:?}");
            waits_are_booked(&machine);
        }
    }
}

/// Programs for harts that share lines in every way.
fn contending(harts: u16) -> Vec<Program> {
    let program = |port: u16| {
        let mut p = Program::default();
        let how = [Add::Amo, Add::Reserved, Add::Lock][usize::from(port) % 3];
        // Lines shared with all harts, more than a first level holds.
        let (walk, _) = walk(u64::from(port) + 7, data(16), 512, 300);
        p.words_of(&walk);
        let end = p.here();
        p.words_of(&add(how, 30));
        // The first part does not wait for interrupts.
        let mut all = Program::default();
        for (at, word) in p.bytes().chunks(4).enumerate() {
            let word = u32::from_le_bytes(word.try_into().unwrap());
            let first = word == WFI && at < end.index();
            all.word(if first { FENCE } else { word });
        }
        all
    };
    (0..harts).map(program).collect()
}

#[test]
fn the_length_of_a_window_changes_nothing() {
    for pipeline in PIPELINES {
        for harts in [1, 2, 3, 8] {
            let config = pipelined(cluster(harts), pipeline);
            pieces_change_nothing(|| machine(&config, &contending(harts)), 100_000);
        }
    }
}

/// Blocks with many loads run up to the horizon and not beyond it: the values they load do not depend on it.
#[test]
fn the_length_of_a_window_changes_no_value() {
    let mut reader = Program::default();
    reader.li(S0, data(0)).addi(S3, ZERO, 0);
    let again = reader.here();
    for _ in 0..12 {
        reader.ld(T0, S0, 0).slli(T1, S3, 1).add(S3, T1, T0);
    }
    reader.jump(again);
    let mut writer = Program::default();
    writer.li(S0, data(0)).addi(S1, ZERO, 0);
    let again = writer.here();
    writer.addi(S1, S1, 1).sd(S1, S0, 0).addi(T2, ZERO, 17);
    let wait = writer.here();
    writer
        .addi(T2, T2, -1)
        .branch(1, T2, ZERO, wait)
        .jump(again);
    let programs = [reader, writer];
    for pipeline in PIPELINES {
        let found = |run: &dyn Fn(&mut Machine)| {
            let mut machine = machine(&pipelined(cluster(2), pipeline), &programs);
            run(&mut machine);
            let hart = machine.cluster_hart(0, 0).unwrap();
            (hart.register(19), hart.pc())
        };
        for until in [20_000, 20_011, 20_023] {
            let whole = found(&|machine| {
                machine.run(RunLimit { ticks: until }, None);
            });
            let pieces = found(&|machine| in_pieces(machine, until));
            assert_eq!(whole, pieces, "{until}, {pipeline:?}");
        }
    }
}

/// No event ends a block of many loads; yet no load after the store was performed returns the old value.
#[test]
fn no_load_is_older_than_its_time() {
    for (rounds, pipeline) in (300..330).flat_map(|r| PIPELINES.map(|p| (r, p))) {
        let mut reader = Program::default();
        reader.li(S0, data(0));
        let again = reader.here();
        for _ in 0..10 {
            reader.ld(T0, S0, 0).addi(T0, T0, 0).marker(T0, SEEN);
        }
        reader.jump(again);
        let mut writer = Program::default();
        writer
            .li(S0, data(0))
            .addi(S1, ZERO, 1)
            .addi(T2, ZERO, rounds);
        let wait = writer.here();
        writer.addi(T2, T2, -1).branch(1, T2, ZERO, wait);
        writer
            .sd(S1, S0, 0)
            .word(FENCE)
            .marker(ZERO, BEFORE)
            .word(WFI);
        let mut machine = machine(&pipelined(cluster(2), pipeline), &[reader, writer]);
        machine.run(RunLimit { ticks: 20_000 }, None);
        let markers = machine.markers();
        let stored = markers.iter().find(|m| u32::from(m.kind) == BEFORE);
        let stored = stored.expect("the store is performed").tick;
        let mut loads = markers.iter().filter(|m| u32::from(m.kind) == SEEN);
        // In order, a load, the instruction that uses it, and the marker take at most ten ticks. Out of order, what has its value retires later: all
        // that is in the window.
        let late = match pipeline {
            None => 10,
            Some(interval) => 10 + 2 * Tick::from(interval.window.div_ceil(interval.width)),
        };
        let old = loads.find(|m| m.tick > stored + late && m.value == 0);
        assert_eq!(old, None, "stored at {stored}, {pipeline:?}");
    }
}

#[test]
fn the_numbers_of_harts_change_no_tick() {
    for pipeline in PIPELINES {
        let run = |numbers: [u16; 4]| {
            let mut config = pipelined(cluster(4), pipeline);
            config.tiles[0].cluster.as_mut().unwrap().harts = numbers.into();
            let mut machine = machine(&config, &contending(4));
            let at = idle(&mut machine);
            (at, machine.digest())
        };
        let first = run([0, 1, 2, 3]);
        assert_eq!(first, run([3, 0, 2, 1]), "{pipeline:?}");
        assert_eq!(first, run([17, 4095, 5, 300]), "{pipeline:?}");
    }
}

const BEFORE: u32 = 0x100;
const SEEN: u32 = 0x101;

#[test]
fn nothing_is_seen_before_it_is_stored() {
    let times = |pipeline, rounds: i32, writing: usize, third: bool| -> [Tick; 2] {
        let mut writer = Program::default();
        writer
            .li(S0, data(0))
            .addi(S1, ZERO, 1)
            .addi(T2, ZERO, rounds);
        let wait = writer.here();
        writer.addi(T2, T2, -1).branch(1, T2, ZERO, wait);
        writer.marker(ZERO, BEFORE).sd(S1, S0, 0).spin();
        let mut reader = Program::default();
        reader.li(S0, data(0));
        let look = reader.here();
        reader.ld(T0, S0, 0).branch(0, T0, ZERO, look);
        reader.marker(T0, SEEN).spin();
        let mut other = Program::default();
        other.word(if third { 0x13 } else { WFI }).spin();
        let mut machine = Machine::new(&pipelined(cluster(3), pipeline)).unwrap();
        start_port(&mut machine, writing, &writer, 0x1_0000);
        start_port(&mut machine, 1 - writing, &reader, 0x2_0000);
        start_port(&mut machine, 2, &other, 0x3_0000);
        machine.run(RunLimit { ticks: 100_000 }, None);
        [BEFORE, SEEN].map(|kind| {
            let markers = machine.markers();
            let found = markers.iter().find(|m| u32::from(m.kind) == kind);
            found.expect("the programs come there").tick
        })
    };
    for pipeline in PIPELINES {
        for rounds in 1000..1030 {
            for writing in [0, 1] {
                let [stored, seen] = times(pipeline, rounds, writing, false);
                // Up, look-up and down for the store's line; the same and a probe for the load's.
                assert!(seen > stored + 2 * (2 + 12 + 2), "{stored} {seen}");
                let busy = times(pipeline, rounds, writing, true);
                assert_eq!(busy, [stored, seen], "{pipeline:?}");
            }
        }
    }
}

/// A hart that sleeps until its software interrupt, marks it, and continues with what `after` does.
fn sleeper(trap: u64, after: impl Fn(&mut Program)) -> (Program, Program) {
    let mut p = Program::default();
    p.li(T0, trap)
        .csr(1, MTVEC, T0)
        .addi(T0, ZERO, 8)
        .csr(2, MIE, T0);
    p.csr(2, MSTATUS, T0).word(WFI).spin();
    let mut handler = Program::default();
    handler.marker(ZERO, SEEN);
    after(&mut handler);
    handler.csr(1, MIE, ZERO).word(WFI);
    (p, handler)
}

#[test]
fn an_interrupt_of_another_hart_takes_the_way_up_and_down() {
    PIPELINES.into_iter().for_each(interrupt_of_another_hart);
}

fn interrupt_of_another_hart(pipeline: Option<IntervalConfig>) {
    let mut config = pipelined(cluster(2), pipeline);
    config.tiles[0].cluster.as_mut().unwrap().harts = vec![5, 9];
    let mut sender = Program::default();
    sender.addi(T2, ZERO, 2000);
    let wait = sender.here();
    sender.addi(T2, T2, -1).branch(1, T2, ZERO, wait);
    // A store of eight bytes sets the interrupts of two harts; port 10 has no second one.
    sender.li(S0, CLINT_BASE + 4 * 8).li(S1, 1 << 32);
    sender.marker(ZERO, BEFORE).sd(S1, S0, 0).word(WFI);
    let trap = MEMORY_BASE + 0x4_0000;
    let (sleeper, handler) = sleeper(trap, |_| {});
    let mut machine = machine(&config, &[sender, sleeper]);
    machine.load_tile(0, trap, &handler.bytes()).unwrap();
    idle(&mut machine);
    let markers = machine.markers();
    let at = |kind| markers.iter().find(|m| u32::from(m.kind) == kind).unwrap();
    let (sent, taken) = (at(BEFORE), at(SEEN));
    assert_eq!((sent.activity, taken.activity), (0, 1));
    // Both directions take eight ticks; the handler comes from memory.
    assert!(taken.tick > sent.tick + 8, "{sent:?} {taken:?}");
}

/// All other harts sleep. Whoever wakes one of them waits in its own first level for what that one then stores, and has nothing else to do: it must see the
/// store as soon as it arrives, whatever the lengths of windows.
#[test]
fn whoever_wakes_a_hart_sees_what_it_stores() {
    const ROUNDS: u64 = 3;
    let counter = |port: u64| 8 * port;
    let mut waker = Program::default();
    waker
        .li(S0, CLINT_BASE)
        .li(S1, data(0))
        .addi(T2, ZERO, 2000);
    let wait = waker.here();
    waker.addi(T2, T2, -1).branch(1, T2, ZERO, wait);
    for port in (0..ROUNDS).flat_map(|_| [3, 1, 2]) {
        waker.addi(T2, ZERO, 1).ld(T0, S1, counter(port));
        waker.marker(ZERO, BEFORE).sw(T2, S0, 4 * port);
        let same = waker.here();
        waker.ld(T1, S1, counter(port)).branch(0, T0, T1, same);
        waker.marker(ZERO, SEEN);
    }
    waker.word(WFI);
    let sleeper = |port: u64| {
        let mut p = Program::default();
        p.li(S0, CLINT_BASE + 4 * port);
        p.li(S1, data(0)).addi(T0, ZERO, 8).csr(1, MIE, T0);
        let again = p.here();
        p.word(WFI).sw(ZERO, S0, 0).word(FENCE);
        p.ld(T0, S1, counter(port)).addi(T0, T0, 1);
        p.sd(T0, S1, counter(port)).jump(again);
        p
    };
    let programs = [waker, sleeper(1), sleeper(2), sleeper(3)];
    for pipeline in PIPELINES {
        let config = pipelined(cluster(4), pipeline);
        let seen = |piece: Tick| {
            let mut machine = machine(&config, &programs);
            let mut until = piece;
            while machine.run(RunLimit { ticks: until }, None) == Outcome::Limit {
                until += piece;
                assert!(until <= LIMIT.ticks, "it does not end");
            }
            let markers = machine.markers();
            let all = markers.iter().filter(|m| u32::from(m.kind) == SEEN);
            all.map(|m| m.tick).collect::<Vec<_>>()
        };
        let at_once = seen(LIMIT.ticks);
        assert_eq!(at_once.len() as u64, 3 * ROUNDS);
        // In so small pieces, no hart is far ahead of another.
        assert_eq!(at_once, seen(4));
    }
}

#[test]
fn the_console_has_the_bytes_in_the_order_of_time() {
    // Each hart prints its letter repeatedly, at its own rate.
    let program = |port: u64| {
        let mut p = Program::default();
        p.li(S0, UART_BASE)
            .addi(S1, ZERO, 20)
            .addi(T1, ZERO, 97 + port as i32);
        let again = p.here();
        // sb
        p.marker(T1, BEFORE).word(T1 << 20 | S0 << 15 | 0x23);
        p.addi(T2, ZERO, 3 + 7 * port as i32);
        let wait = p.here();
        p.addi(T2, T2, -1).branch(1, T2, ZERO, wait);
        p.addi(S1, S1, -1).branch(1, S1, ZERO, again).word(WFI);
        p
    };
    let programs: Vec<_> = (0..4).map(program).collect();
    for pipeline in PIPELINES {
        console(machine(&pipelined(cluster(4), pipeline), &programs));
    }
}

fn console(mut machine: Machine) {
    idle(&mut machine);
    // A marker costs nothing: the store follows at the same moment.
    let markers = machine.markers();
    let expected: Vec<u8> = markers.iter().map(|m| m.value as u8).collect();
    let found = machine.console(0).unwrap();
    assert_eq!(expected.len(), 80);
    assert_eq!(
        String::from_utf8_lossy(found),
        String::from_utf8_lossy(&expected)
    );
}

#[test]
fn the_earliest_end_of_the_run_counts() {
    let cases = [([100, 400], 0), ([400, 100], 1)];
    for ((waits, code), pipeline) in cases.into_iter().flat_map(|c| PIPELINES.map(|p| (c, p))) {
        let program = |port: usize| {
            let mut p = Program::default();
            let value = (port as u64) << 16 | if port == 0 { 0x5555 } else { 0x3333 };
            p.li(S0, EXIT_BASE)
                .li(S1, value)
                .addi(T2, ZERO, waits[port]);
            let wait = p.here();
            p.addi(T2, T2, -1).branch(1, T2, ZERO, wait);
            // sw
            p.word(S1 << 20 | S0 << 15 | 2 << 12 | 0x23).spin();
            p
        };
        let config = pipelined(cluster(2), pipeline);
        let mut machine = machine(&config, &[program(0), program(1)]);
        let end = machine.run(LIMIT, None);
        assert!(
            matches!(end, Outcome::Exit { code: found, .. } if found == code),
            "{end:?}"
        );
    }
}

/// Loads of hart 3, one after the other, beside harts that have as many misses under way as they can: the ticks until it has made them.
fn victim_of_misses(rivals: usize, turns: Turns, (registers, divided): (u32, bool)) -> Tick {
    let mut config = cluster(4);
    other_controller(&mut config, 3);
    let dram = &mut config.memories[0].dram;
    let controller = &mut dram.controller;
    controller.timing.refresh_interval = 0;
    controller.map.channels = 1;
    controller.map.channel_interleave = None;
    controller.turns = turns;
    let tile = &mut config.tiles[0];
    tile.l2.as_mut().unwrap().mshrs = registers;
    tile.cluster.as_mut().unwrap().divided_registers = divided;
    let walk = |victim: bool| {
        let mut p = Program::default();
        // A part of memory for each hart, more than the second level holds.
        p.li(S0, MEMORY_BASE + 0x40_0000).slli(T1, A0, 20);
        p.add(S0, S0, T1)
            .li(S2, MEMORY_BASE + 0x40_0000 + (4 << 20))
            .li(S1, LOADS);
        let again = p.here();
        let (stride, each) = if victim { (64, 1) } else { (64, 8) };
        for at in 0..each {
            p.ld(28 + at % 4, S0, u64::from(at) * stride);
        }
        if victim {
            p.word(FENCE).addi(S1, S1, -1);
        }
        p.addi(S0, S0, (u64::from(each) * stride) as i32);
        p.branch(
            1,
            if victim { S1 } else { S0 },
            if victim { ZERO } else { S2 },
            again,
        );
        if victim {
            // sw: the exit device.
            p.li(T0, EXIT_BASE).li(T1, 0x5555);
            p.word(T1 << 20 | T0 << 15 | 2 << 12 | 0x23);
        }
        p.word(WFI);
        p
    };
    let mut machine = Machine::new(&config).expect("valid");
    for port in (4 - rivals - 1)..4 {
        start_port(
            &mut machine,
            port,
            &walk(port == 3),
            0x1_0000 * (port as u64 + 1),
        );
    }
    let Outcome::Exit { at, .. } = machine.run(LIMIT, None) else {
        panic!("the victim ends the run");
    };
    at
}

const LOADS: u64 = 200;

/// With turns by hart and miss registers of its own, a load that misses waits for one slot of each other hart, and for the others' requests at
/// its bank and on the link to memory, whatever these have under way. With turns by tile, or with registers for all, it waits for much more.
#[test]
fn turns_and_registers_of_its_own_keep_others_from_a_hart() {
    let mut config = cluster(1);
    other_controller(&mut config, 3);
    let slot = config.memories[0].dram.controller.slot();
    let alone = victim_of_misses(0, Turns::Hart, (16, true));
    let beside = |turns, registers| victim_of_misses(3, turns, registers) - alone;
    // With four registers each, rivals have several reads at memory.
    let (own, tile) = (
        beside(Turns::Hart, (16, true)),
        beside(Turns::Tile, (16, true)),
    );
    let (divided, shared) = (
        beside(Turns::Hart, (4, true)),
        beside(Turns::Hart, (4, false)),
    );
    println!(
        "slots of {slot}: {alone} alone, beside others {own} more, by tile {tile}; of four registers {divided}, shared {shared}"
    );
    for most in [own, divided] {
        // At the link, each of three rivals has at most four reads ahead.
        assert!(most <= LOADS * (3 * slot + 3 * 4 * 16), "{most}");
        assert!(most >= LOADS * slot, "{most}");
    }
    assert!(
        tile > 2 * own && shared > divided,
        "{tile} {own} {shared} {divided}"
    );
    assert_eq!(victim_of_misses(0, Turns::Tile, (4, false)), alone);
}

/// Hints of Zicbop do nothing on a hart of a cluster: a load after one takes as long, and misses as often, as without.
#[test]
fn hints_to_prefetch_do_nothing() {
    let run = |hint: u32, pipeline| {
        let mut p = Program::default();
        p.li(S0, data(0)).jump_to_line();
        p.word(hint).addi(S1, ZERO, 400);
        let wait = p.here();
        p.addi(S1, S1, -1).branch(1, S1, ZERO, wait);
        p.marker(ZERO, BEFORE).ld(T0, S0, 0).addi(T0, T0, 1);
        p.marker(T0, SEEN).word(WFI);
        let mut machine = machine(&pipelined(cluster(1), pipeline), &[p]);
        idle(&mut machine);
        let hart = *machine.cluster_hart(0, 0).unwrap().statistics();
        let markers = machine.markers();
        (markers[1].tick - markers[0].tick, hart.data_misses)
    };
    for pipeline in PIPELINES {
        // ORI x0, s0 with 1 or 3 in the low bits of the immediate.
        let [nothing, read, write] = [0x13, 0x0014_6013, 0x0034_6013].map(|one| run(one, pipeline));
        assert_eq!([read, write], [nothing; 2], "{pipeline:?}");
        assert!(nothing.0 > 100 && nothing.1 == 1, "{nothing:?}");
    }
}

/// What a hart does to a line.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Touch {
    Load,
    Store,
    Flush,
}

/// Hart 0 touches a line twice; hart 1 touches a line in between. Returns the ticks that coherence cost hart 0 because of hart 1, and the
/// ticks of all its accesses below its first level.
fn in_between(
    pipeline: Option<IntervalConfig>,
    own: [Touch; 2],
    (other, line): (Touch, u64),
) -> (Tick, Tick) {
    let touch = |p: &mut Program, what| {
        match what {
            Touch::Load => p.ld(T0, S0, 0).addi(T0, T0, 1),
            Touch::Store => p.sd(T0, S0, 0),
            Touch::Flush => p.cbo(2, S0),
        };
        p.word(FENCE);
    };
    let pause = |p: &mut Program, rounds| {
        p.addi(S1, ZERO, rounds);
        let wait = p.here();
        p.addi(S1, S1, -1).branch(1, S1, ZERO, wait);
    };
    let [mut first, mut second] = [Program::default(), Program::default()];
    first.li(S0, data(0));
    touch(&mut first, own[0]);
    pause(&mut first, 1000);
    touch(&mut first, own[1]);
    first.word(WFI);
    second.li(S0, data(line));
    pause(&mut second, 500);
    touch(&mut second, other);
    second.word(WFI);
    let mut machine = machine(&pipelined(cluster(2), pipeline), &[first, second]);
    idle(&mut machine);
    waits_are_booked(&machine);
    let (victim, culprit) = (Owner::new(0, 0), Owner::new(0, 1));
    let ledger = machine.ledger();
    let coherence = ledger.bookings().into_iter().filter(|booking| {
        booking.resource == Resource::Coherence(0) && {
            assert_eq!((booking.victim, booking.culprit), (victim, culprit));
            true
        }
    });
    let read = ledger
        .latency(victim, Transaction::CacheRead)
        .expect("it missed");
    (
        coherence.map(|booking| booking.ticks).sum(),
        read.total.sum(),
    )
}

/// A line that another hart has taken or made shared costs a miss, and that hart has caused it.
#[test]
fn a_line_that_another_hart_took_is_missed_because_of_it() {
    use Touch::*;
    for pipeline in PIPELINES {
        // What hart 0 does, and what hart 1 does in between; whether it costs hart 0 a miss.
        let cases = [
            ([Load, Load], Store, true),
            ([Load, Load], Flush, true),
            ([Load, Store], Store, true),
            ([Store, Load], Store, true),
            ([Store, Load], Load, false),
            ([Store, Store], Load, true),
            ([Load, Store], Load, true),
            ([Load, Load], Load, false),
        ];
        for (own, other, costs) in cases {
            let (coherence, with) = in_between(pipeline, own, (other, 0));
            let (apart, without) = in_between(pipeline, own, (other, 1));
            assert_eq!(apart, 0, "{own:?} {other:?}");
            assert_eq!(coherence, with - without, "{own:?} {other:?} {pipeline:?}");
            assert_eq!(coherence > 0, costs, "{own:?} {other:?}");
        }
        // Its own flush is nobody's fault.
        let own = in_between(pipeline, [Flush, Load], (Load, 1));
        assert_eq!(own.0, 0);
    }
}
