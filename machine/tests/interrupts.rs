//! Interrupts of DMA engines at the controllers of tiles and clusters: closed forms, order, windows, and no line that is lost or stuck.

use crate::common::interrupts::*;
use crate::common::parts::*;
use crate::common::*;
use bulkhead_abi::dma::*;
use bulkhead_abi::memory_map::PLIC_BASE;
use bulkhead_abi::plic::{CLAIM, CONTEXT_SIZE, ENABLE, ENABLE_SIZE, THRESHOLD, context, source};
use bulkhead_machine::config::PlatformConfig;
use bulkhead_machine::hart::IntervalConfig;
use bulkhead_machine::machine::{Machine, Outcome, RunLimit};
use bulkhead_machine::noc::Transaction;
use bulkhead_machine::types::{Tick, TileId};

const LIMIT: RunLimit = RunLimit { ticks: 20_000_000 };
const MSTATUS: u32 = 0x300;
const MTVEC: u32 = 0x305;
const MIP: u32 = 0x344;

/// The hart that asks waits, and another one is chosen: (chip, who programs, who hears).
type Case = (&'static [u16], (TileId, usize), (TileId, usize));
const CASES: [Case; 6] = [
    (&[0], (0, 0), (0, 0)),
    (&[1], (0, 0), (0, 0)),
    (&[3], (0, 0), (0, 2)),
    (&[0, 0], (0, 0), (1, 0)),
    (&[2, 2], (0, 1), (1, 1)),
    (&[2, 0], (1, 0), (0, 1)),
];

/// A hart waits for an interrupt of a chosen context, marks what it claims, and waits again. What follows is one line of code.
fn waits(p: &mut Program, port: usize, supervisor: bool, start: bool) {
    let context = context(port as u32) + u32::from(supervisor);
    listen(p, context, source(0, 1), 1);
    wakes(p, if supervisor { SEI } else { MEI });
    p.jump_to_line();
    if start {
        p.addi(T0, ZERO, START as i32).sd(T0, S0, CONTROL);
    }
    let wait = p.here();
    p.word(WFI)
        .csr(2, MIP, ZERO)
        .lw(T0, S1, 0)
        .marker(T0, SEEN)
        .sw(T0, S1, 0)
        .jump(wait);
}

/// Waits for some time and starts channel 1 of the first engine.
fn starts(bytes: u32) -> Program {
    let mut p = Program::default();
    describe(&mut p, channel(0, 1), &transfer(0, bytes));
    p.addi(S2, ZERO, 600);
    let wait = p.here();
    p.addi(S2, S2, -1).branch(1, S2, ZERO, wait);
    p.addi(T0, ZERO, START as i32).sd(T0, S0, CONTROL);
    p
}

fn case((harts, asks, hears): Case, supervisor: bool) -> Machine {
    let mut p = Program::default();
    let programs = match asks == hears {
        true => {
            describe(&mut p, channel(0, 1), &transfer(0, 1024));
            waits(&mut p, hears.1, supervisor, true);
            vec![(hears, p)]
        }
        false => {
            waits(&mut p, hears.1, supervisor, false);
            let mut starter = starts(1024);
            starter.word(WFI);
            vec![(asks, starter), (hears, p)]
        }
    };
    machine(&interrupted_chip(harts, &[hears.0]), &programs)
}

/// The message leaves when the last write is acknowledged, takes the way of a packet with four bytes, and wakes the hart.
#[test]
fn an_interrupt_costs_its_way() {
    for one in CASES {
        for supervisor in [false, true] {
            let (harts, _, hears) = one;
            let mut machine = case(one, supervisor);
            idle(&mut machine);
            let writes = times(&machine, Transaction::DmaWrite);
            let last = writes.iter().map(|(_, end)| *end).max().unwrap();
            let [(begin, end)] = times(&machine, Transaction::Interrupt)[..] else {
                panic!("one interrupt");
            };
            assert_eq!(begin, last.next_multiple_of(CYCLE), "{one:?}");
            // Interface, link, router, the packet on the link, interface; then the way down, or an edge of the tile's clock.
            let arrives = begin + (4 + 1 + 2 + 2 + 1 + 4) * CYCLE;
            let config = machine.config();
            let there = match &config.tiles[usize::from(hears.0)].cluster {
                Some(cluster) => arrives + 2 * cluster.down,
                None => arrives.next_multiple_of(2),
            };
            assert_eq!(end, there, "{one:?} {harts:?}");
            let seen = marks(&machine, hears, SEEN);
            let [(at, value), ..] = seen[..] else {
                panic!("it woke");
            };
            assert_eq!((seen.len(), value), (1, source(0, 1).into()), "{one:?}");
            // The claim is an access to a device, and a marker is no time; the hart looked at `mip` before.
            let mmio = Tick::from(config.tiles[0].hart.mmio) * 2;
            assert!((end + mmio..end + mmio + 40).contains(&at), "{end} {at}");
        }
    }
}

/// Without a bit in `mie`, without the enable bit, with priority 0 or at the threshold, the hart sleeps on.
#[test]
fn nothing_wakes_a_hart_that_does_not_listen() {
    type Change = fn(&mut Program);
    let changes: [Change; 4] = [
        |p| wakes(p, SEI),
        |p| {
            p.li(T1, PLIC_BASE + ENABLE).sw(ZERO, T1, 0);
        },
        |p| {
            let priority = 4 * u64::from(source(0, 1));
            p.li(T1, PLIC_BASE + priority).sw(ZERO, T1, 0);
        },
        |p| {
            p.li(T1, PLIC_BASE + THRESHOLD)
                .addi(T0, ZERO, 1)
                .sw(T0, T1, 0);
        },
    ];
    for harts in [0, 1] {
        for (number, change) in changes.iter().enumerate() {
            let mut p = starts(64);
            listen(&mut p, 0, source(0, 1), 1);
            wakes(&mut p, MEI);
            change(&mut p);
            // A line falls at the end of a block of instructions.
            p.jump_to_line().word(WFI).marker(ZERO, SEEN).word(WFI);
            let mut machine = machine(&interrupted_chip(&[harts], &[0]), &[((0, 0), p)]);
            idle(&mut machine);
            assert_eq!(times(&machine, Transaction::Interrupt).len(), 1);
            assert_eq!(marks(&machine, (0, 0), SEEN), [], "{harts} {number}");
        }
    }
}

/// An interrupt is a trap where the hart allows it: the handler finds the source, and the program goes on.
#[test]
fn a_handler_takes_it() {
    for harts in [0, 2] {
        let mut p = Program::default();
        describe(&mut p, channel(0, 0), &transfer(0, 4096));
        listen(&mut p, 0, source(0, 0), 3);
        wakes(&mut p, MEI);
        // auipc: the handler is 16 words further.
        p.word(T0 << 7 | 0x17)
            .addi(T0, T0, 64)
            .csr(1, MTVEC, T0)
            .addi(T0, ZERO, START as i32)
            .sd(T0, S0, CONTROL)
            .addi(S2, ZERO, 0)
            .addi(T0, ZERO, 8)
            .csr(2, MSTATUS, T0);
        let work = p.here();
        p.addi(S2, S2, 1).branch(0, S3, ZERO, work).word(WFI);
        while p.here().index() < work.index() + 8 {
            p.addi(ZERO, ZERO, 0);
        }
        p.lw(S3, S1, 0)
            .marker(S3, SEEN)
            .addi(T0, ZERO, 1)
            .sd(T0, S0, INTERRUPT)
            .word(FENCE)
            .sw(S3, S1, 0)
            .mret();
        let mut machine = machine(&interrupted_chip(&[harts], &[0]), &[((0, 0), p)]);
        idle(&mut machine);
        let seen = marks(&machine, (0, 0), SEEN);
        assert_eq!(seen.len(), 1);
        assert_eq!(seen[0].1, 1);
        let hart = match harts {
            0 => machine.hart(0).unwrap(),
            _ => machine.cluster_hart(0, 0).unwrap(),
        };
        assert!(hart.register(S2 as usize) > 100);
    }
}

const CHIPS: [&[u16]; 5] = [&[0, 0, 0], &[2, 1], &[1, 0, 2], &[4], &[0, 3]];

fn for_all(harts: &[u16]) -> PlatformConfig {
    let tiles: Vec<TileId> = (0..harts.len() as TileId).collect();
    interrupted_chip(harts, &tiles)
}

#[test]
fn the_length_of_a_window_changes_nothing() {
    for harts in CHIPS {
        for (all, pipeline) in [false, true]
            .into_iter()
            .flat_map(|a| PIPELINES.map(|p| (a, p)))
        {
            let config = pipelined(for_all(harts), pipeline);
            let until = 60_000;
            let mut whole = machine(&config, &rounds(harts, 1000, all));
            assert_eq!(whole.run(RunLimit { ticks: until }, None), Outcome::Limit);
            let mut pieces = machine(&config, &rounds(harts, 1000, all));
            in_pieces(&mut pieces, until);
            assert!(times(&whole, Transaction::Interrupt).len() > 20);
            assert_eq!(whole.statistics(), pieces.statistics());
            assert_eq!(whole.digest(), pieces.digest(), "{harts:?} {all}");
        }
    }
}

/// The numbers of tiles and engines change no tick, if their places remain.
#[test]
fn numbers_change_no_tick() {
    PIPELINES.into_iter().for_each(numbers_change_no_tick_with);
}

fn numbers_change_no_tick_with(pipeline: Option<IntervalConfig>) {
    let run = |numbers: [TileId; 4]| {
        let mut config = pipelined(interrupted_chip(&[2, 0], &[0, 1]), pipeline);
        let [first, second, one, two] = numbers;
        (config.tiles[0].id, config.tiles[1].id) = (first, second);
        (config.engines[0].id, config.engines[1].id) = (one, two);
        config.engines[0].interrupts = Some(first);
        config.engines[1].interrupts = Some(second);
        let programs = rounds(&[2, 0], 1000, true);
        let programs: Vec<_> = programs
            .into_iter()
            .map(|((tile, port), p)| (([first, second][usize::from(tile)], port), p))
            .collect();
        let mut machine = machine(&config, &programs);
        machine.run(RunLimit { ticks: 40_000 }, None);
        let ticks = |hart| marks(&machine, hart, SEEN);
        [(first, 0), (first, 1), (second, 0)].map(ticks)
    };
    let expected = run([0, 1, 50, 51]);
    assert!(expected.iter().flatten().count() > 20, "{expected:?}");
    for numbers in [[1, 0, 50, 51], [7, 3, 51, 50], [3000, 2, 1, 9]] {
        assert_eq!(run(numbers), expected, "{numbers:?}");
    }
}

/// Harts that share channels hear of every end, and go to sleep when there is nothing more.
#[test]
fn every_end_is_heard_of_and_no_line_stays_high() {
    for harts in CHIPS {
        for all in [false, true] {
            let mut machine = machine(&for_all(harts), &rounds(harts, 12, all));
            // A line that is lost lets a hart sleep too early; one that stays high wakes it for ever.
            idle(&mut machine);
            for (tile, harts) in harts.iter().enumerate() {
                let ports = usize::from(*harts).max(1);
                let tile = tile as TileId;
                let heard: Vec<usize> = (0..ports)
                    .map(|port| marks(&machine, (tile, port), SEEN).len())
                    .collect();
                let channels = ports.min(2);
                if !all {
                    assert!(heard.iter().sum::<usize>() >= 12 * channels, "{heard:?}");
                    continue;
                }
                // A hart that has had its rounds keeps a channel that it has claimed, so all channels rest only if that has happened to each.
                let rested = heard.iter().filter(|count| **count == 12).count();
                assert!(rested >= channels, "{heard:?}");
                assert!(heard.iter().all(|count| *count <= 12), "{heard:?}");
            }
        }
    }
}

#[test]
fn only_tiles_that_are_interrupted_have_a_controller() {
    for harts in [0, 1] {
        for (interrupts, answers) in [(true, true), (false, false)] {
            let mut config = interrupted_chip(&[harts], &[0]);
            config.engines[0].interrupts = interrupts.then_some(0);
            let mut p = Program::default();
            p.li(S0, PLIC_BASE + 4).lw(T0, S0, 0).word(WFI);
            let mut machine = machine(&config, &[((0, 0), p)]);
            let end = machine.run(LIMIT, None);
            let is_idle = matches!(end, Outcome::Idle { .. });
            assert_eq!(is_idle, answers, "{end:?}");
        }
    }
    let mut config = interrupted_chip(&[0], &[0]);
    config.engines[0].interrupts = Some(7);
    let refused = Machine::new(&config).err().expect("refused");
    assert!(refused.what.contains("interrupts tile 7"), "{refused:?}");
}

/// A hart lets another one hear of a source, and that one claims it before its line has risen: then the line rises and falls.
#[test]
fn a_claim_that_overtakes_its_line_leaves_it_low() {
    let mut overtaken = 0;
    for delay in 0..40 {
        let mut first = Program::default();
        describe(&mut first, channel(0, 1), &transfer(0, 64));
        listen(&mut first, context(0), source(0, 1), 1);
        first.addi(T0, ZERO, START as i32).sd(T0, S0, CONTROL);
        // It is pending long before.
        first.li(S1, PLIC_BASE + ENABLE + ENABLE_SIZE * u64::from(context(1)));
        first.addi(S2, ZERO, 1000 + delay);
        let wait = first.here();
        first.addi(S2, S2, -1).branch(1, S2, ZERO, wait);
        first.addi(T0, ZERO, 1 << source(0, 1)).sw(T0, S1, 0);
        first.word(WFI);
        let mut second = Program::default();
        second.li(
            S1,
            PLIC_BASE + THRESHOLD + CONTEXT_SIZE * u64::from(context(1)) + CLAIM,
        );
        wakes(&mut second, MEI);
        let look = second.here();
        second
            .lw(T1, S1, 0)
            .csr(2, MIP, ZERO)
            .branch(0, T1, ZERO, look);
        // csrr: was the line high?
        second.word(MIP << 20 | 2 << 12 | T2 << 7 | 0x73);
        second.marker(T2, SEEN).sw(T1, S1, 0);
        let sleep = second.here();
        second.word(WFI).lw(T1, S1, 0).jump(sleep);
        let programs = [((0, 0), first), ((0, 1), second)];
        let mut machine = machine(&interrupted_chip(&[2], &[0]), &programs);
        idle(&mut machine);
        let seen = marks(&machine, (0, 1), SEEN);
        assert_eq!(seen.len(), 1);
        overtaken += u32::from(seen[0].1 & MEI == 0);
    }
    assert!(overtaken > 0, "no claim was before its line");
}
