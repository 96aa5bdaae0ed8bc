//! When loads take their values and stores write theirs: not before the line has arrived, and in program order within a
//! line.

use super::test_support::*;
use super::*;

/// Ticks until a line arrives.
const FAR: Tick = 50;
/// Data of the programs, at the start of a line; `x2` points there.
const DATA: u64 = BASE + 0x1000;
const LR: u32 = 2 << 2;
const SC: u32 = 3 << 2;
const SWAP: u32 = 1 << 2;
const ACQUIRE: u32 = 2;
const RELEASE: u32 = 1;

/// Runs a program in which every data access waits for its line. `other` acts on memory each time the clock has advanced.
fn run_far(
    build: impl FnOnce(&mut Assembler),
    words: &[(u64, u64)],
    mut other: impl FnMut(Tick, &mut FlatBus),
) -> (Hart, FlatBus) {
    let mut program = Assembler::default();
    program.r(0x37, 0, 0, 2, 0, 0).addi(0, 0, 0); // patched below: lui x2, DATA
    program.words[0] = DATA as u32 | 2 << 7 | 0x37;
    // `lui` extends the sign.
    program.words[1] = 0x0201_1113; // slli x2, x2, 32
    program.word(0x0201_5113); // srli x2, x2, 32
    build(&mut program);
    program.word(WFI);
    let (mut hart, mut bus) = start(&program);
    bus.far = FAR;
    for (address, value) in words {
        bus.set_word(*address, *value);
    }
    loop {
        let horizon = bus.limit();
        let stop = hart.run(&mut bus, horizon);
        let next = bus.events.pop_first();
        let Some(((at, _), Event::Complete(token, physical))) = next else {
            assert_eq!(stop, Stop::WaitForInterrupt);
            return (hart, bus);
        };
        other(at, &mut bus);
        hart.complete(token, at, bus.line(physical));
    }
}

#[test]
fn a_load_takes_its_value_when_the_line_comes() {
    let changed = |at: Tick, bus: &mut FlatBus| {
        assert!(at >= FAR);
        bus.set_word(DATA, 2);
    };
    let (hart, _) = run_far(
        |a| {
            a.ld(3, 2, 0).addi(4, 3, 1);
        },
        &[(DATA, 1)],
        changed,
    );
    assert_eq!((hart.register(3), hart.register(4)), (2, 3));
}

#[test]
fn a_store_is_seen_when_the_line_comes_and_not_before() {
    let mut seen = Vec::new();
    let (_, bus) = run_far(
        |a| {
            a.addi(3, 0, 7).sd(3, 2, 0).sd(3, 2, 64);
        },
        &[],
        |_, bus| seen.push([bus.word(DATA), bus.word(DATA + 64)]),
    );
    assert_eq!(seen, [[0, 0], [7, 0]]);
    assert_eq!(bus.word(DATA + 64), 7);
}

#[test]
fn accesses_to_one_line_keep_their_order() {
    let (hart, bus) = run_far(
        |a| {
            a.addi(3, 0, 7).ld(4, 2, 8).sd(3, 2, 8).ld(5, 2, 8);
            a.r(0x2f, 3, 0, 6, 2, 3); // amoadd of 7 to the first word
            a.ld(7, 2, 0).i(0x03, 0, 8, 2, 8); // lb
            a.s(0, 0, 2, 8).ld(9, 2, 8).word(FENCE);
        },
        &[(DATA, 100), (DATA + 8, 0x1_00ff)],
        |_, _| {},
    );
    let found = [4, 5, 6, 7, 8, 9].map(|r| hart.register(r));
    assert_eq!(found, [0x1_00ff, 7, 100, 107, 7, 0]);
    assert_eq!((bus.word(DATA), bus.word(DATA + 8)), (107, 0));
}

#[test]
fn a_load_across_lines_waits_for_both() {
    let (hart, bus) = run_far(
        |a| {
            a.ld(3, 2, 60).i(0x03, 2, 4, 2, 62); // lw: the sign is in the second line
            a.i(0x03, 1, 5, 2, 63).sd(3, 2, 124); // lh; and a store across lines
        },
        &[(DATA + 56, 0x1122_3344_5566_7788), (DATA + 64, 0xaabb_ccdd)],
        |_, _| {},
    );
    assert_eq!(hart.register(3), 0xaabb_ccdd_1122_3344);
    assert_eq!(hart.register(4), 0xffff_ffff_ccdd_1122);
    assert_eq!(hart.register(5), 0xffff_ffff_ffff_dd11);
    assert_eq!(bus.word(DATA + 124), 0xaabb_ccdd_1122_3344);
}

#[test]
fn a_reservation_begins_and_ends_when_the_lines_are_there() {
    // The store-conditional does not use the loaded value; another hart changes the word before the line arrives.
    let run = |change: bool| {
        let (hart, bus) = run_far(
            |a| {
                a.addi(3, 0, 7).r(0x2f, 3, LR, 4, 2, 0);
                a.r(0x2f, 3, SC, 5, 2, 3);
            },
            &[(DATA, 1)],
            |at, bus| {
                if change && at > 2 * FAR {
                    bus.set_word(DATA, 3);
                }
            },
        );
        (hart.register(4), hart.register(5), bus.word(DATA))
    };
    assert_eq!(run(false), (1, 0, 7));
    assert_eq!(run(true), (1, 1, 3));
}

#[test]
fn no_store_is_seen_before_its_time() {
    // The block begins before the horizon and reaches beyond it.
    let mut program = Assembler::default();
    program.r(0x17, 0, 0, 2, 0, 0).addi(3, 0, 7); // 0, 1
    program.sd(3, 2, 512).r(0x2f, 3, 0, 4, 2, 3); // 2; and an addition to the first word at 3
    program.sd(3, 2, 520).word(WFI); // 4
    let (mut hart, mut bus) = start(&program);
    let first = bus.word(BASE);
    let mut seen = Vec::new();
    for horizon in 1..=5 {
        assert_eq!(hart.run(&mut bus, horizon) == Stop::Horizon, horizon < 5);
        let words = [BASE + 512, BASE, BASE + 520].map(|at| bus.word(at));
        seen.push([words[0] == 7, words[1] == first + 7, words[2] == 7]);
        assert!(horizon == 5 || hart.time() == horizon.max(2));
    }
    let (no, yes) = (false, true);
    let expected = [
        [no, no, no],
        [no, no, no],
        [yes, no, no],
        [yes, yes, no],
        [yes, yes, yes],
    ];
    assert_eq!(seen, expected);
}

#[test]
fn nothing_passes_acquire_and_release() {
    let asked = |flags: u32| {
        let (_, bus) = run_far(
            |a| {
                a.sd(0, 2, 0).r(0x2f, 3, SWAP | flags, 4, 2, 0);
                a.ld(5, 2, 128).sd(0, 2, 192);
            },
            &[],
            |_, _| {},
        );
        let first = bus.data_log[0].0;
        bus.data_log
            .iter()
            .map(|entry| entry.0 - first)
            .collect::<Vec<_>>()
    };
    // Each line is requested in its cycle; a load after the swap needs one of the two places for loads.
    assert_eq!(asked(0), [0, 1, 2, 3]);
    // The swap waits for the store before it.
    assert_eq!(asked(RELEASE), [0, FAR, FAR + 1, FAR + 2]);
    // All later accesses wait for the swap.
    assert_eq!(asked(ACQUIRE), [0, 1, 1 + FAR, 2 + FAR]);
    assert_eq!(asked(ACQUIRE | RELEASE), [0, FAR, 2 * FAR, 2 * FAR + 1]);
}
