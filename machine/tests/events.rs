//! Performance events: exact counts in closed form, overflow interrupts at the exact event, filters by mode.

use crate::common::*;
use bulkhead_abi::hpm::{Event, NOT_MACHINE, NOT_USER, OVERFLOW, OVERFLOW_INTERRUPT};
use bulkhead_abi::memory_map::MEMORY_BASE;
use bulkhead_machine::config::PlatformKind;
use bulkhead_machine::hart::Hart;
use bulkhead_machine::machine::{Machine, Outcome, RunLimit};

const DATA: u64 = MEMORY_BASE + 0x10_0000;
const LINE: u64 = 64;
const LIMIT: RunLimit = RunLimit { ticks: 50_000_000 };
const S4: u32 = 20;
/// The first of the registers that hold the counters at the end.
const COUNTS: u32 = 21;
const MCAUSE: u32 = 0x342;
const MEPC: u32 = 0x341;

/// A chip whose hart has the caches of `common`, alone or in a cluster.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Chip {
    Tile,
    Cluster(u16),
}

impl Chip {
    fn machine(self) -> Machine {
        match self {
            Chip::Tile => bare_chip(1),
            Chip::Cluster(harts) => Machine::new(&cluster(harts)).expect("valid"),
        }
    }

    fn hart(self, machine: &Machine, port: usize) -> &Hart {
        match self {
            Chip::Tile => machine.hart(0),
            Chip::Cluster(_) => machine.cluster_hart(0, port),
        }
        .expect("a hart")
    }

    /// Runs a program on the first hart until nothing more happens.
    fn run(self, program: &Program) -> Machine {
        let mut machine = self.machine();
        program.start(&mut machine, 0);
        let end = machine.run(LIMIT, None);
        assert!(matches!(end, Outcome::Idle { .. }), "{end:?}");
        machine
    }
}

trait Counting {
    fn csrr(&mut self, rd: u32, csr: u32) -> &mut Self;
    fn select(&mut self, index: u32, event: u64) -> &mut Self;
    fn put(&mut self, index: u32, value: u64) -> &mut Self;
    fn lines(&mut self, count: u64, store: bool) -> &mut Self;
}

impl Counting for Program {
    fn csrr(&mut self, rd: u32, csr: u32) -> &mut Self {
        self.word(csr << 20 | 2 << 12 | rd << 7 | 0x73)
    }
    /// Counter `index` counts `event` from 0 on. Uses `T0`.
    fn select(&mut self, index: u32, event: u64) -> &mut Self {
        self.li(T0, event).csr(1, 0x320 + index, T0);
        self.put(index, 0)
    }
    fn put(&mut self, index: u32, value: u64) -> &mut Self {
        self.li(T0, value).csr(1, 0xb00 + index, T0)
    }
    /// Touches this many lines, each after its predecessor has arrived. `S1` is the number of lines requested. Uses `S0`, `T1`.
    fn lines(&mut self, count: u64, store: bool) -> &mut Self {
        self.li(S0, DATA).addi(S1, ZERO, 0).li(S2, count);
        self.jump_to_line();
        let again = self.here();
        self.addi(S1, S1, 1);
        match store {
            true => self.sd(S1, S0, 0).word(FENCE),
            false => self.ld(T1, S0, 0).add(T1, T1, T1),
        };
        self.addi(S0, S0, LINE as i32).branch(1, S1, S2, again)
    }
}

/// Counts events of a program that is in the instruction cache from its first round on. Returns the counts of the second round.
fn count(chip: Chip, events: &[Event], lines: u64, store: bool) -> Vec<u64> {
    let mut p = Program::default();
    p.li(S3, 2);
    let round = p.here();
    for (index, event) in (3..).zip(events) {
        p.select(index, *event as u64);
    }
    p.lines(lines, store)
        .addi(S3, S3, -1)
        .branch(1, S3, ZERO, round);
    p.word(FENCE);
    for index in 0..events.len() as u32 {
        p.csrr(COUNTS + index, 0xb03 + index);
    }
    p.word(WFI);
    let machine = chip.run(&p);
    let hart = chip.hart(&machine, 0);
    (0..events.len())
        .map(|index| hart.register(COUNTS as usize + index))
        .collect()
}

/// First levels have 256 lines and second levels 1024, both four ways and LRU: lines used in turn hit always or never.
#[test]
fn accesses_misses_refills_and_write_backs_have_closed_forms() {
    use Event::*;
    let events = [
        DataMiss,
        DataRefill,
        SecondAccess,
        SecondMiss,
        SecondRefill,
        DataWriteBack,
        SecondWriteBack,
        Misprediction,
    ];
    for chip in [Chip::Tile, Chip::Cluster(1)] {
        for (lines, first, second) in [(200, false, false), (512, true, false), (2048, true, true)]
        {
            for store in [false, true] {
                let found = count(chip, &events, lines, store);
                let of = |misses: bool| if misses { lines } else { 0 };
                let (l1, l2) = (of(first), of(second));
                let written = |misses: u64| if store { misses } else { 0 };
                let expected = [l1, l1, l1, l2, l2, written(l1), written(l2)];
                assert_eq!(found[..7], expected, "{chip:?}: {lines} lines, {store}");
            }
        }
    }
}

#[test]
fn instructions_by_kind_have_closed_forms() {
    use Event::*;
    for chip in [Chip::Tile, Chip::Cluster(2)] {
        let found = count(chip, &[Load, Store, Branch, Trap, Interrupt], 100, false);
        // The branch of a jump, those of the loop, and that of the rounds.
        assert_eq!(found, [100, 0, 102, 0, 0], "{chip:?}");
        let found = count(chip, &[Load, Store], 100, true);
        assert_eq!(found, [0, 100], "{chip:?}");
    }
}

/// The interrupt's handler, with the interrupt enabled. It records its cause, the interrupted address, the counter and the number of lines
/// requested, and ends.
fn interrupted(p: &mut Program) -> Label {
    let over = p.here();
    p.addi(ZERO, ZERO, 0).jump_to_line();
    let handler = p.here();
    p.csrr(COUNTS, MCAUSE).csrr(COUNTS + 1, MEPC);
    p.csrr(COUNTS + 2, 0xb03).csrr(COUNTS + 3, 0x323);
    p.csrr(COUNTS + 4, 0xda0)
        .addi(S4, S1, 0)
        .csr(1, 0x304, ZERO)
        .word(WFI);
    let main = p.here();
    p.patch_jump(over, main);
    p.li(T0, MEMORY_BASE + 4 * handler.index() as u64)
        .csr(1, 0x305, T0);
    p.li(T0, 1 << OVERFLOW_INTERRUPT).csr(1, 0x304, T0);
    p.addi(T0, ZERO, 8).csr(2, 0x300, T0);
    handler
}

/// Touches lines that no cache has, in two rounds. In the second, in which only data lines arrive, the first counter overflows with event
/// number `after`. Returns the branch of the loop.
fn overflows(p: &mut Program, event: Event, after: u64) -> Label {
    interrupted(p);
    p.select(3, event as u64).li(S3, 0).li(A1, 2);
    let round = p.here();
    p.csr(1, 0xb03, S3).li(S3, 0u64.wrapping_sub(after));
    p.lines(2048, false);
    let end = p.here();
    p.addi(A1, A1, -1).branch(1, A1, ZERO, round).word(WFI);
    end
}

/// Each event that a line causes comes once per line, so the interrupt comes at the line whose number is that of the event.
#[test]
fn an_interrupt_comes_at_the_exact_event() {
    use Event::*;
    for chip in [Chip::Tile, Chip::Cluster(1), Chip::Cluster(4)] {
        for event in [
            DataMiss,
            DataRefill,
            SecondAccess,
            SecondMiss,
            SecondRefill,
            Load,
        ] {
            for after in [1, 2, 17, 100] {
                let mut p = Program::default();
                let end = overflows(&mut p, event, after);
                let machine = chip.run(&p);
                let hart = chip.hart(&machine, 0);
                let [cause, at, counter, selected, overflows] =
                    [0, 1, 2, 3, 4].map(|index| hart.register(COUNTS as usize + index));
                let case = format!("{chip:?}: {event:?} after {after}");
                assert_eq!(cause, 1 << 63 | u64::from(OVERFLOW_INTERRUPT), "{case}");
                assert_eq!((hart.register(S4 as usize), counter), (after, 0), "{case}");
                assert_eq!(
                    (selected, overflows),
                    (OVERFLOW | event as u64, 8),
                    "{case}"
                );
                // After the load, or after the instruction that waited for it.
                let behind = |load: u64| MEMORY_BASE + 4 * (end.index() as u64 - load);
                assert!([4, 3, 2].map(behind)[1..].contains(&at), "{case}: {at:#x}");
            }
        }
    }
}

/// Instructions are counted one by one, even within a block.
#[test]
fn the_counter_of_instructions_interrupts_behind_each() {
    for chip in [Chip::Tile, Chip::Cluster(1)] {
        for after in 1..12 {
            let mut p = Program::default();
            interrupted(&mut p);
            p.select(3, Event::Instruction as u64)
                .li(T0, 0u64.wrapping_sub(after));
            p.jump_to_line().csr(1, 0xb03, T0);
            let from = p.here();
            (0..12).for_each(|_| {
                p.addi(A1, A1, 1);
            });
            p.word(WFI);
            let machine = chip.run(&p);
            let hart = chip.hart(&machine, 0);
            let at = MEMORY_BASE + 4 * (from.index() as u64 + after);
            assert_eq!(hart.register(COUNTS as usize + 1), at, "{chip:?}, {after}");
            assert_eq!(hart.register(A1 as usize), after);
        }
    }
}

/// Out of order, overflows are looked at once for each edge of the clock, at which as many instructions retire as the pipeline is wide.
#[test]
fn out_of_order_the_interrupt_comes_within_the_width_of_the_pipeline() {
    let width = u64::from(OUT_OF_ORDER.width);
    let mut late = 0;
    for config in [platform(PlatformKind::Bare, 1), cluster(1)] {
        let config = pipelined(config, Some(OUT_OF_ORDER));
        for after in 1..12 {
            let mut p = Program::default();
            interrupted(&mut p);
            p.select(3, Event::Instruction as u64)
                .li(T0, 0u64.wrapping_sub(after));
            p.jump_to_line().csr(1, 0xb03, T0);
            let from = p.here();
            // Two chains, so that two instructions retire at an edge.
            (0..8).for_each(|_| {
                p.addi(A1, A1, 1).addi(S2, S2, 1);
            });
            p.word(WFI);
            let mut machine = Machine::new(&config).expect("valid");
            start_hart(&mut machine, (0, 0), &p, 0);
            let end = machine.run(LIMIT, None);
            assert!(matches!(end, Outcome::Idle { .. }), "{end:?}");
            let hart = match config.tiles[0].cluster {
                None => machine.hart(0),
                Some(_) => machine.cluster_hart(0, 0),
            };
            let hart = hart.expect("a hart");
            let at = hart.register(COUNTS as usize + 1) - MEMORY_BASE;
            let done = at / 4 - from.index() as u64;
            assert!((after..after + width).contains(&done), "{after}: {done}");
            // What is behind the handler's address has not happened.
            let chains = hart.register(A1 as usize) + hart.register(S2 as usize);
            assert_eq!(chains, done, "{after}");
            late += done - after;
        }
    }
    assert!(late > 0, "it would be precise");
}

/// A line that arrives while the hart is in WFI wakes it.
#[test]
fn an_overflow_ends_wfi() {
    for chip in [Chip::Tile, Chip::Cluster(1)] {
        let mut p = Program::default();
        interrupted(&mut p);
        p.select(3, Event::DataRefill as u64)
            .put(3, u64::MAX)
            .li(S0, DATA);
        p.jump_to_line().ld(T1, S0, 0).word(WFI).spin();
        let machine = chip.run(&p);
        let hart = chip.hart(&machine, 0);
        let expected = MEMORY_BASE + p.bytes().len() as u64 - 4;
        assert_eq!(hart.register(COUNTS as usize + 1), expected, "{chip:?}");
    }
}

/// A counter whose overflow bit is set requests no interrupt; writing a counter is not an overflow; software clears the pending bit.
#[test]
fn the_overflow_bit_disables_the_interrupt() {
    for chip in [Chip::Tile, Chip::Cluster(1)] {
        let mut p = Program::default();
        p.select(3, OVERFLOW | Event::Load as u64)
            .put(3, u64::MAX - 1);
        p.select(4, Event::Load as u64)
            .put(4, u64::MAX)
            .put(4, 0)
            .put(4, u64::MAX - 9);
        p.lines(5, false)
            .csrr(COUNTS, 0x344)
            .csrr(COUNTS + 1, 0xb03);
        p.lines(10, false)
            .csrr(COUNTS + 2, 0x344)
            .csrr(COUNTS + 3, 0xda0);
        p.li(T0, 1 << OVERFLOW_INTERRUPT)
            .csr(3, 0x344, T0)
            .csrr(COUNTS + 4, 0x344);
        p.lines(10, false)
            .csrr(COUNTS + 5, 0x344)
            .csrr(COUNTS + 6, 0xb04);
        p.word(WFI);
        let machine = chip.run(&p);
        let hart = chip.hart(&machine, 0);
        let found = [0, 1, 2, 3, 4, 5, 6].map(|index| hart.register(COUNTS as usize + index));
        // Counter 4 starts 10 loads before 0: the first 15 loads take it to 5, and the last 10 to 15.
        assert_eq!(
            found,
            [0, 3, 1 << OVERFLOW_INTERRUPT, 3 << 3, 0, 0, 15],
            "{chip:?}"
        );
    }
}

/// Each instruction counts for its mode: the instructions of user mode are those between MRET and ECALL; MRET counts for machine mode;
/// ECALL does not retire.
#[test]
fn counters_count_in_the_modes_that_they_are_for() {
    for chip in [Chip::Tile, Chip::Cluster(1)] {
        for user in [1, 7, 30] {
            let mut p = Program::default();
            let over = p.here();
            p.addi(ZERO, ZERO, 0).jump_to_line();
            let handler = p.here();
            p.csrr(COUNTS, 0xb03)
                .csrr(COUNTS + 1, 0xb04)
                .csrr(COUNTS + 2, 0xb05)
                .word(WFI);
            let main = p.here();
            p.patch_jump(over, main);
            p.li(T0, MEMORY_BASE + 4 * handler.index() as u64)
                .csr(1, 0x305, T0);
            p.select(3, NOT_MACHINE | Event::Instruction as u64);
            p.select(5, Event::Instruction as u64);
            p.select(4, NOT_USER | Event::Instruction as u64);
            let from = p.here().index() as u64;
            p.user();
            let machine_mode = p.here().index() as u64 - from;
            (0..user).for_each(|_| {
                p.addi(A1, A1, 1);
            });
            p.word(0x73);
            let machine = chip.run(&p);
            let hart = chip.hart(&machine, 0);
            let [users, machines, all] = [0, 1, 2].map(|i| hart.register(COUNTS as usize + i));
            // Machine mode: from after the write of the counter, plus the read of counter 3 in the handler.
            assert_eq!((users, machines), (user, machine_mode + 1), "{chip:?}");
            // Counter 5 began earlier by the instructions that set up counter 4, and is read one instruction later.
            let set_up = 2 * 17 + 2;
            assert_eq!(all, users + machines + set_up + 1, "{chip:?}");
        }
    }
}

/// Each hart counts what the second level did for it, and the time of an interrupt does not depend on windows.
#[test]
fn counts_of_harts_are_their_own_and_independent_of_windows() {
    let program = |after: u64| {
        let mut p = Program::default();
        overflows(&mut p, Event::SecondRefill, after);
        p
    };
    let run = |step: u64| {
        let mut machine = Machine::new(&cluster(3)).expect("valid");
        for (port, after) in [100u64, 30, 60].into_iter().enumerate() {
            // Programs at different places with their own data, so that no hart finds another's lines.
            let p = program(after);
            let base = 0x2_0000 * port as u64;
            let moved = shifted(&p, base);
            machine
                .load_tile(0, MEMORY_BASE + base, &moved)
                .expect("memory");
            let at = MEMORY_BASE + base;
            machine
                .start_cluster_hart((0, port), at, 0, 0)
                .expect("a hart");
        }
        let mut limit = step;
        while machine.run(RunLimit { ticks: limit }, None) == Outcome::Limit {
            limit += step;
        }
        let of = |port| {
            let hart = machine.cluster_hart(0, port).expect("a hart");
            (
                hart.register(S4 as usize),
                hart.register(COUNTS as usize + 2),
                hart.time(),
            )
        };
        [0, 1, 2].map(of)
    };
    let whole = run(LIMIT.ticks);
    for (port, lines) in [(0, 100), (1, 30), (2, 60)] {
        assert_eq!((whole[port].0, whole[port].1), (lines, 0), "hart {port}");
    }
    for step in [1, 7, 100, 1001] {
        assert_eq!(run(step), whole, "windows of {step} ticks");
    }
}

/// A program that was assembled for the start of memory, with its constants (handler and data) adjusted for its own place.
fn shifted(p: &Program, base: u64) -> Vec<u8> {
    let mut bytes = p.bytes();
    let (old, add) = (MEMORY_BASE >> 16 & 0xff, base >> 16);
    assert_eq!(old, 0, "the third byte of an address is free");
    // `li` adds the bytes of a constant one by one: the third last is 0 for the handler and 0x10 for the data.
    let mut at = 0;
    while at + 4 <= bytes.len() {
        let word =
            |bytes: &[u8], at: usize| u32::from_le_bytes(bytes[at..at + 4].try_into().unwrap());
        let first = word(&bytes, at);
        if first & 0xfff0_707f == 0x13
            && first >> 20 == 0
            && first >> 15 & 31 == 0
            && at + 17 * 4 <= bytes.len()
        {
            let immediate = |n: usize| word(&bytes, at + 4 * (2 + 2 * n)) >> 20;
            let value = (0..8).fold(0u64, |all, n| all << 8 | u64::from(immediate(n)));
            let is_li = word(&bytes, at + 4) & 0x707f == 0x1013;
            if is_li && value >> 24 == MEMORY_BASE >> 24 {
                let place = at + 4 * (2 + 2 * 5);
                let changed = word(&bytes, place) + ((add as u32) << 20);
                bytes[place..place + 4].copy_from_slice(&changed.to_le_bytes());
            }
        }
        at += 4;
    }
    bytes
}

/// Delegated to supervisor mode, which sees the overflow bits only of counters that it may read, and clears the pending bit itself.
#[test]
fn the_interrupt_can_be_delegated() {
    for chip in [Chip::Tile, Chip::Cluster(1)] {
        let mut p = Program::default();
        let over = p.here();
        p.addi(ZERO, ZERO, 0).jump_to_line();
        let handler = p.here();
        p.csrr(COUNTS, 0x142)
            .csrr(COUNTS + 1, 0xda0)
            .csrr(COUNTS + 2, 0x144)
            .li(T0, 1 << OVERFLOW_INTERRUPT)
            .csr(3, 0x144, T0)
            .csrr(COUNTS + 3, 0x144)
            .word(WFI);
        let main = p.here();
        p.patch_jump(over, main);
        p.li(T0, MEMORY_BASE + 4 * handler.index() as u64)
            .csr(1, 0x105, T0);
        p.li(T0, 1 << OVERFLOW_INTERRUPT)
            .csr(1, 0x303, T0)
            .csr(1, 0x304, T0);
        // Supervisor mode may read counter 3 but not 4. They overflow with the second load and with the first.
        p.li(T0, 1 << 3).csr(1, 0x306, T0);
        p.select(3, Event::Load as u64).put(3, u64::MAX - 1);
        p.select(4, Event::Load as u64).put(4, u64::MAX);
        p.li(T0, 0x800).csr(2, 0x300, T0);
        p.user();
        p.li(S0, DATA).ld(T1, S0, 0).ld(T1, S0, 0);
        p.addi(T0, ZERO, 2).csr(2, 0x100, T0);
        p.spin();
        let machine = chip.run(&p);
        let hart = chip.hart(&machine, 0);
        let found = [0, 1, 2, 3].map(|index| hart.register(COUNTS as usize + index));
        let bit = 1 << OVERFLOW_INTERRUPT;
        let cause = 1 << 63 | u64::from(OVERFLOW_INTERRUPT);
        assert_eq!(found, [cause, 1 << 3, bit, 0], "{chip:?}");
    }
}
