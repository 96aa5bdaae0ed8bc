//! Doorbells: harts of different tiles interrupt each other. Closed form, order, who may ring, windows, numbers, and no ring that is lost.

use crate::common::doorbells::*;
use crate::common::interrupts::{CYCLE, SEEN, interrupted_chip, rounds};
use crate::common::parts::*;
use crate::common::*;
use bulkhead_abi::doorbell::bell;
use bulkhead_abi::memory_map::{DMA_BASE, MEMORY_BASE};
use bulkhead_machine::config::PlatformConfig;
use bulkhead_machine::hart::IntervalConfig;
use bulkhead_machine::machine::{Machine, Outcome, RunLimit};
use bulkhead_machine::noc::Transaction;
use bulkhead_machine::types::{Owner, Tick, TileId};

const LIMIT: RunLimit = RunLimit { ticks: 20_000_000 };
const DATA: u64 = MEMORY_BASE + 0x40_0000;
const RANG: u32 = 0x102;

/// Sleeps until its bell rings, marks who has rung, and sleeps again.
fn listener(port: usize, harts: u64) -> Program {
    let mut p = Program::default();
    hears(&mut p, port, harts);
    p.jump_to_line();
    let sleep = p.here();
    p.word(WFI).lw(T2, S1, 0).branch(0, T2, ZERO, sleep);
    takes(&mut p);
    p.marker(T0, SEEN).jump(sleep);
    p
}

fn waits(p: &mut Program, rounds: i32) {
    p.addi(S2, ZERO, rounds);
    let wait = p.here();
    p.addi(S2, S2, -1).branch(1, S2, ZERO, wait);
}

/// Rings a bell after some time.
fn ringer(delay: i32, number: usize) -> Program {
    let mut p = Program::default();
    p.li(S0, DMA_BASE).addi(T1, ZERO, 1);
    waits(&mut p, delay);
    p.marker(ZERO, RANG)
        .sw(T1, S0, bell(number as u64))
        .word(WFI);
    p
}

/// A chip, who rings and who hears, as doorbells number harts.
type Case = (&'static [u16], usize, usize);
const CASES: [Case; 6] = [
    (&[0, 0], 0, 1),
    (&[2, 2], 1, 2),
    (&[2, 2], 0, 3),
    (&[0, 3], 0, 2),
    (&[3, 0], 1, 3),
    (&[3], 0, 2),
];

/// The ring is a write of four bytes to the doorbells, which takes the time of a register; the message is as long, and wakes the hart.
#[test]
fn a_ring_costs_two_ways() {
    for (harts, rings, hears) in CASES {
        let config = chip_with_bells(harts);
        let (from, to) = (hart(&config, rings), hart(&config, hears));
        let programs = [(from, ringer(400, hears)), (to, listener(to.1, 1 << rings))];
        let mut machine = machine(&config, &programs);
        idle(&mut machine);
        let rang = marks(&machine, from, RANG)[0].0;
        let stores = times(&machine, Transaction::RemoteStore);
        let ring = stores.iter().find(|(begin, _)| *begin >= rang);
        let begin = ring.expect("a ring").0;
        let clustered = |tile: TileId| config.tiles[usize::from(tile)].cluster.as_ref();
        // Interface, link, router, the packet on the link, interface.
        let way = (4 + 1 + 2 + 2 + 1 + 4) * CYCLE;
        let l2 = config.tiles[usize::from(from.0)]
            .l2
            .as_ref()
            .expect("a second level");
        // From a tile with one hart, it leaves no earlier than a miss.
        let leaves = begin + 2 * clustered(from.0).map_or(l2.latency, |one| one.up);
        let arrives = leaves.next_multiple_of(CYCLE) + way;
        let told = arrives + REGISTERS * CYCLE;
        let [(sent, end)] = times(&machine, Transaction::Interrupt)[..] else {
            panic!("one message");
        };
        assert_eq!(sent, told, "{harts:?} {rings} {hears}");
        // The acknowledgement leaves first, for a cycle.
        let back = told + CYCLE + way;
        let there = match clustered(to.0) {
            Some(cluster) => back + 2 * cluster.down,
            None => back.next_multiple_of(2),
        };
        assert_eq!(end, there, "{harts:?} {rings} {hears}");
        let seen = marks(&machine, to, SEEN);
        let [(at, who)] = seen[..] else {
            panic!("it woke once: {seen:?}");
        };
        assert_eq!(who, 1 << rings);
        assert!(at > end);
    }
}

/// What a hart has stored before a fence and a ring, the hart that is rung for finds: without flushes where their caches are coherent.
#[test]
fn nothing_is_seen_before_it_is_stored() {
    // (cbo) of a line: inval, flush.
    let (invalidate, flush) = (0u32, 2u32);
    let cbo = |what: u32| what << 20 | S3 << 15 | 2 << 12 | 0x0F;
    for (is_coherent, pipeline) in [false, true]
        .into_iter()
        .flat_map(|c| PIPELINES.map(|p| (c, p)))
    {
        let mut config = match is_coherent {
            true => coherent(&[2, 1]),
            false => clusters(&[2, 1]),
        };
        config = pipelined(with_doorbells(config), pipeline);
        for delay in 0..24 {
            let mut first = Program::default();
            first.li(S0, DMA_BASE).li(S3, DATA).addi(T1, ZERO, 1);
            waits(&mut first, 300 + delay);
            first.li(T2, 77).sd(T2, S3, 0);
            if !is_coherent {
                first.word(cbo(flush));
            }
            first.word(FENCE).sw(T1, S0, bell(2)).word(WFI);
            let mut second = Program::default();
            second.li(S3, DATA).ld(T1, S3, 0);
            hears(&mut second, 0, 0b001);
            second.jump_to_line();
            let sleep = second.here();
            second.word(WFI).lw(T2, S1, 0).branch(0, T2, ZERO, sleep);
            if !is_coherent {
                second.word(cbo(invalidate)).word(FENCE);
            }
            second.ld(T1, S3, 0).marker(T1, SEEN);
            takes(&mut second);
            second.jump(sleep);
            let mut machine = machine(&config, &[((0, 0), first), ((1, 0), second)]);
            idle(&mut machine);
            let seen: Vec<u64> = marks(&machine, (1, 0), SEEN)
                .iter()
                .map(|one| one.1)
                .collect();
            assert_eq!(seen, [77], "{is_coherent} {pipeline:?} {delay}");
        }
    }
}

/// Rings a bell without a pause.
fn hostile(number: u64) -> Program {
    let mut p = Program::default();
    p.li(S0, DMA_BASE).addi(T1, ZERO, 1);
    let again = p.here();
    p.sw(T1, S0, bell(number)).jump(again);
    p
}

/// A hart that nobody allowed rings without a pause: no message leaves, and the other one sleeps as long as before.
#[test]
fn who_is_not_heard_disturbs_nobody() {
    let config = chip_with_bells(&[2, 0]);
    for (heard, messages) in [(0, 0), (0b010, 0), (0b001, 1)] {
        // It hears, and never takes a ring.
        let mut p = Program::default();
        hears(&mut p, 0, heard);
        p.jump_to_line().word(WFI).marker(ZERO, SEEN);
        let sleep = p.here();
        p.word(WFI).jump(sleep);
        let programs = [((0, 0), hostile(2)), ((1, 0), p)];
        let mut machine = machine(&config, &programs);
        assert_eq!(
            machine.run(RunLimit { ticks: 100_000 }, None),
            Outcome::Limit
        );
        let stores = times(&machine, Transaction::RemoteStore).len();
        assert!(stores > 200, "{stores}");
        let told = times(&machine, Transaction::Interrupt).len();
        assert_eq!(told, messages, "{heard:b}");
        assert_eq!(marks(&machine, (1, 0), SEEN).len(), messages, "{heard:b}");
    }
}

/// Of a hart that takes each ring, a hostile one can have one message for each taking, and no more.
#[test]
fn a_hart_is_told_no_more_often_than_it_listens() {
    let config = chip_with_bells(&[2, 0]);
    let programs = [((0, 0), hostile(2)), ((1, 0), listener(0, 0b011))];
    let mut machine = machine(&config, &programs);
    assert_eq!(
        machine.run(RunLimit { ticks: 100_000 }, None),
        Outcome::Limit
    );
    let taken = marks(&machine, (1, 0), SEEN).len();
    let told = times(&machine, Transaction::Interrupt).len();
    assert!(taken > 20);
    assert!((taken..=taken + 2).contains(&told), "{told} {taken}");
}

/// Only harts to which the platform gives the doorbells reach them, and they ring only the bells that they may.
#[test]
fn the_platform_says_who_rings_whom() {
    // Hart 0 may ring 1, 1 may ring nobody, and 2 reaches nothing.
    let users = vec![(Owner::new(0, 0), 0b010), (Owner::new(0, 1), 0)];
    for (number, at, answers) in [
        (0, bell(1), true),
        (0, bell(0), false),
        (0, bell(2), false),
        (1, bell(1), false),
        (2, bell(1), false),
        (0, bell(3), false),
    ] {
        let mut config = chip_with_bells(&[2, 0]);
        config.doorbells.as_mut().unwrap().users = Some(users.clone());
        let mut p = Program::default();
        p.li(S0, DMA_BASE + at).sw(ZERO, S0, 0).word(WFI);
        let who = hart(&config, number);
        let mut machine = machine(&config, &[(who, p)]);
        let end = machine.run(LIMIT, None);
        let is_idle = matches!(end, Outcome::Idle { .. });
        assert_eq!(is_idle, answers, "{number} {at:#x}: {end:?}");
    }
}

const CHIPS: [&[u16]; 5] = [&[0, 0, 0], &[2, 1], &[1, 0, 2], &[4], &[0, 3]];

/// A ring that is lost would end the round early.
#[test]
fn no_ring_is_lost() {
    for harts in CHIPS {
        for pipeline in PIPELINES {
            let config = pipelined(chip_with_bells(harts), pipeline);
            let mut machine = machine(&config, &ring_round(&config, 12, false));
            idle(&mut machine);
            let count = config.bells().len();
            for number in 0..count {
                let seen = marks(&machine, hart(&config, number), SEEN);
                let heard: Vec<u64> = seen.iter().map(|one| one.1).collect();
                let before = 1 << ((number + count - 1) % count);
                // The first hart begins, so the second one has its last round first, and rings no more.
                assert_eq!(heard, [before; 12][..heard.len()], "{harts:?} {number}");
                assert_eq!(heard.len(), 11 + usize::from(number == 1), "{harts:?}");
            }
        }
    }
}

#[test]
fn the_length_of_a_window_changes_nothing() {
    for harts in CHIPS {
        for (all, pipeline) in [false, true]
            .into_iter()
            .flat_map(|a| PIPELINES.map(|p| (a, p)))
        {
            let config = pipelined(chip_with_bells(harts), pipeline);
            let until = 60_000;
            let mut whole = machine(&config, &ring_round(&config, 2000, all));
            assert_eq!(whole.run(RunLimit { ticks: until }, None), Outcome::Limit);
            let mut pieces = machine(&config, &ring_round(&config, 2000, all));
            in_pieces(&mut pieces, until);
            assert!(times(&whole, Transaction::Interrupt).len() > 20);
            assert_eq!(whole.statistics(), pieces.statistics());
            assert_eq!(whole.digest(), pieces.digest(), "{harts:?} {all}");
        }
    }
}

/// The numbers of tiles and doorbells change no tick, if their places remain.
#[test]
fn numbers_change_no_tick() {
    PIPELINES.into_iter().for_each(numbers_change_no_tick_with);
}

fn numbers_change_no_tick_with(pipeline: Option<IntervalConfig>) {
    let run = |numbers: [TileId; 3]| {
        let mut config = pipelined(chip_with_bells(&[2, 0]), pipeline);
        let [first, second, bells] = numbers;
        (config.tiles[0].id, config.tiles[1].id) = (first, second);
        config.doorbells.as_mut().unwrap().id = bells;
        let mut machine = machine(&config, &ring_round(&config, 2000, true));
        machine.run(RunLimit { ticks: 40_000 }, None);
        [0, 1, 2].map(|number| marks(&machine, hart(&config, number), SEEN))
    };
    let expected = run([0, 1, BELLS]);
    assert!(expected.iter().flatten().count() > 20, "{expected:?}");
    for numbers in [[1, 0, BELLS], [7, 3, 2], [3000, 2, 1]] {
        assert_eq!(run(numbers), expected, "{numbers:?}");
    }
}

/// A hart that listens to nobody, and uses nothing else of others, has the ticks that it has alone.
#[test]
fn rings_of_others_change_nothing_elsewhere() {
    let config = chip_with_bells(&[0, 0, 0]);
    let work = || {
        let mut p = Program::default();
        p.addi(S2, ZERO, 1000);
        let again = p.here();
        p.marker(S2, SEEN)
            .addi(S2, S2, -1)
            .branch(1, S2, ZERO, again);
        p.word(WFI);
        p
    };
    let run = |others: bool| {
        let mut programs = vec![((2, 0), work())];
        if others {
            let mut ringing = ring_round(&config, 2000, false);
            ringing.truncate(2);
            programs.extend(ringing);
        }
        let mut machine = machine(&config, &programs);
        machine.run(RunLimit { ticks: 30_000 }, None);
        // Its code comes from memory first, which others use, too.
        let seen = marks(&machine, (2, 0), SEEN);
        let all: Vec<Tick> = seen.iter().skip(100).map(|one| one.0).collect();
        all.windows(2).map(|pair| pair[1] - pair[0]).collect()
    };
    let alone: Vec<Tick> = run(false);
    assert_eq!(alone.len(), 899);
    assert_eq!(run(true), alone);
}

/// Doorbells that nobody uses change no tick of harts and engines.
#[test]
fn unused_doorbells_change_nothing() {
    let run = |doorbells: bool| {
        let mut config = interrupted_chip(&[2, 0, 3], &[0, 1, 2]);
        if doorbells {
            config = with_doorbells(config);
        }
        let mut machine = machine(&config, &rounds(&[2, 0, 3], 1000, true));
        machine.run(RunLimit { ticks: 400_000 }, None);
        machine.markers()
    };
    let without = run(false);
    assert!(without.len() > 50);
    assert_eq!(run(true), without);
}

#[test]
fn what_is_wrong_is_refused() {
    type Change = fn(&mut PlatformConfig);
    let changes: [(&str, Change); 3] = [
        ("cycle and registers", |c| {
            c.doorbells.as_mut().unwrap().registers = 0;
        }),
        ("used twice", |c| c.doorbells.as_mut().unwrap().id = 1),
        ("at most 64 harts", |c| {
            let tile = c.tiles[0].clone();
            for id in 200..265 {
                let mut tile = tile.clone();
                tile.id = id;
                c.tiles.push(tile);
            }
        }),
    ];
    for (what, change) in changes {
        let mut config = chip_with_bells(&[0, 2]);
        change(&mut config);
        let refused = Machine::new(&config).err().expect("refused");
        assert!(refused.what.contains(what), "{refused:?}");
    }
}
