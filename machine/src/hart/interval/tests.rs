//! Closed forms of the out-of-order pipeline, on a bus on which every data access takes a given
//! time.

use super::super::test_support::*;
use super::super::*;

const WIDTH: u64 = 4;

fn pipeline() -> HartConfig {
    HartConfig {
        interval: Some(IntervalConfig {
            width: WIDTH as u32,
            window: 64,
            load_queue: 32,
            store_queue: 32,
            alus: 4,
            memory_ports: 2,
            float_units: 2,
        }),
        jump_penalty: 0,
        ..HartConfig::default()
    }
}

fn drive(hart: &mut Hart, bus: &mut FlatBus) -> Stop {
    for _ in 0..1_000_000 {
        let horizon = bus.limit();
        match hart.run(bus, horizon) {
            Stop::Horizon | Stop::Device | Stop::Tokens | Stop::Pending(_) => {
                let Some(((at, _), event)) = bus.events.pop_first() else {
                    continue;
                };
                match event {
                    Event::Complete(token, physical) => {
                        hart.complete(token, at, bus.line(physical));
                    }
                    Event::Timer(level) => hart.set_interrupt(InterruptLine::Timer, level, at),
                }
            }
            other => return other,
        }
    }
    panic!("no end at {:#x}", hart.pc());
}

/// Runs a program to its end. Returns its cycles.
fn cycles(config: &HartConfig, far: Tick, build: impl FnOnce(&mut Assembler)) -> (u64, Hart) {
    let mut assembler = Assembler::default();
    build(&mut assembler);
    assembler.word(WFI);
    let mut hart = Hart::new(config, 0);
    hart.reset(BASE, 0);
    let mut bus = FlatBus::new(&assembler.bytes(), 0);
    bus.far = far;
    let stop = drive(&mut hart, &mut bus);
    assert_eq!(stop, Stop::WaitForInterrupt);
    (hart.time(), hart)
}

/// How many more cycles a longer program takes than a shorter one.
fn growth(config: &HartConfig, far: Tick, build: impl Fn(&mut Assembler, i32)) -> u64 {
    let of = |count| cycles(config, far, |a| build(a, count)).0;
    of(400) - of(200)
}

#[test]
fn independent_additions_take_the_width() {
    let config = pipeline();
    let took = growth(&config, 0, |a, count| {
        (0..count).for_each(|i| {
            a.addi(1 + i as u32 % 8, 0, 1);
        })
    });
    assert_eq!(took, 200 / WIDTH);
}

#[test]
fn dependent_operations_take_their_latencies() {
    let config = pipeline();
    let took = growth(&config, 0, |a, count| {
        (0..count).for_each(|_| {
            a.addi(1, 1, 1);
        })
    });
    assert_eq!(took, 200);
    let took = growth(&config, 0, |a, count| {
        (0..count).for_each(|_| {
            a.r(0x33, 0, 1, 1, 1, 1);
        })
    });
    assert_eq!(took, 200 * config.multiply as u64);
}

#[test]
fn a_division_does_not_block_independent_work() {
    let config = pipeline();
    let work = |a: &mut Assembler| {
        (0..8).for_each(|_| {
            a.addi(2, 2, 1);
        })
    };
    let took = growth(&config, 0, |a, count| {
        (0..count / 8).for_each(|_| {
            a.r(0x33, 4, 1, 1, 3, 3);
            (0..4).for_each(|_| work(a));
        })
    });
    // 25 divisions of 34 cycles in sequence, each accompanied by 32 dependent additions.
    assert_eq!(took, 25 * config.divide as u64);
}

/// Loads from different lines, each with `others` independent instructions.
fn misses(a: &mut Assembler, count: i32, others: i32) {
    a.li(2, BASE + 0x10000);
    for i in 0..count {
        a.ld(3 + i as u32 % 8, 2, 0).addi(2, 2, 64);
        (0..others).for_each(|_| {
            a.addi(20, 0, 1);
        });
    }
}

#[test]
fn the_window_bounds_how_many_misses_overlap() {
    for (others, overlap) in [(62, 1), (30, 2), (14, 4), (6, 8)] {
        let took = growth(&pipeline(), 1000, |a, count| misses(a, count, others));
        let each = took as f64 / 200.0;
        // Each group of this many misses takes one latency plus the time to fill the window.
        let (least, most) = (1000.0, 1000.0 + 64.0 / WIDTH as f64 + 10.0);
        let group = each * overlap as f64;
        assert!(group >= least && group <= most, "{others}: {group}");
    }
}

#[test]
fn the_load_queue_bounds_how_many_misses_overlap() {
    let mut config = pipeline();
    config.interval.as_mut().unwrap().load_queue = 4;
    let took = growth(&config, 1000, |a, count| misses(a, count, 0));
    let group = took as f64 / 50.0;
    assert!((1000.0..1010.0).contains(&group), "{group}");
}

#[test]
fn a_use_of_a_miss_does_not_stop_the_misses_behind_it() {
    let took = growth(&pipeline(), 1000, |a, count| {
        a.li(2, BASE + 0x10000);
        for _ in 0..count / 5 * 4 {
            // The value, its use, and a branch on it.
            a.ld(3, 2, 0).addi(3, 3, 1).addi(2, 2, 64);
            let next = a.here() + 1;
            a.branch(0, 3, 0, next);
        }
    });
    // 64 entries hold 16 of 160 misses.
    let group = took as f64 / 10.0;
    assert!((1000.0..1030.0).contains(&group), "{group}");
}

#[test]
fn pointer_chases_overlap_nothing() {
    let (took, _) = cycles(&pipeline(), 1000, |a| {
        a.li(2, BASE + 0x10000);
        // Memory is zero: the address of the next load is the loaded value plus a constant.
        for _ in 0..20 {
            a.ld(3, 2, 0).add(2, 2, 3).addi(2, 2, 64);
        }
    });
    let each = took as f64 / 20.0;
    assert!((1000.0..1006.0).contains(&each), "{each}");
}

#[test]
fn mispredictions_cost_resolution_and_refill() {
    let base = HartConfig {
        predictor_entries: 4096,
        ..pipeline()
    };
    let slow = HartConfig {
        branch_penalty: base.branch_penalty + 10,
        ..base.clone()
    };
    // A division decides each branch. Each branch is taken but predicted not taken, because it is
    // new.
    let program = |a: &mut Assembler, count: i32| {
        a.addi(3, 0, 1);
        for _ in 0..count {
            let next = a.here() + 3;
            a.r(0x33, 4, 1, 3, 3, 3).branch(1, 3, 0, next).addi(3, 0, 9);
        }
    };
    let [took, slower] = [&base, &slow].map(|config| growth(config, 0, program));
    // The division waits for the refill: latency, branch, refill, dispatch to issue.
    let each = base.divide as u64 + 1 + base.branch_penalty as u64 + 1;
    assert_eq!((took, slower), (200 * each, 200 * (each + 10)));
}

/// A load at the head whose walk takes long and ends in a page fault: the handler's line is asked for after the walk, whatever the entry into a trap takes.
#[test]
fn a_handler_is_not_fetched_before_the_walk_that_traps_has_ended() {
    const ROOT: u64 = BASE + 0x8000;
    const HANDLER: u64 = BASE + 0x400;
    const FAR: Tick = 300;
    for trap_entry in [0, 1, 5] {
        let mut a = Assembler::default();
        a.open_protection().li(5, HANDLER).csrw(0x305, 5);
        // Loads as in supervisor mode; the table is empty.
        a.li(6, 8 << 60 | ROOT >> 12).csrw(0x180, 6);
        a.li(6, 1 << 17 | 1 << 11).csrw(0x300, 6);
        a.ld(7, 0, 0);
        let mut program = a.bytes();
        program.resize((HANDLER - BASE) as usize, 0);
        program.extend(WFI.to_le_bytes());
        let config = HartConfig {
            trap_entry,
            ..pipeline()
        };
        let mut hart = Hart::new(&config, 0);
        hart.reset(BASE, 0);
        let mut bus = FlatBus::new(&program, 0);
        bus.far = FAR;
        assert_eq!(drive(&mut hart, &mut bus), Stop::WaitForInterrupt);
        let (asked, walked, _) = bus.data_log[0];
        assert_eq!(walked, ROOT);
        let mut fetches = bus.fetch_log.iter();
        let handler = fetches.find(|(_, line)| *line >= HANDLER);
        let at = handler.expect("it is fetched").0;
        let entered = asked + FAR + Tick::from(trap_entry);
        assert!(
            (entered..entered + 4).contains(&at),
            "{trap_entry}: {at}, {entered}"
        );
    }
}
