//! Ssqosid and the capacity controller of a cluster: what a program reads and writes, and what its limits do, in closed form.

use crate::common::*;
use bulkhead_abi::cbqri::*;
use bulkhead_abi::memory_map::{CAPACITY_BASE, LOCKDOWN_BASE, LOCKDOWN_FIRST, MEMORY_BASE};
use bulkhead_machine::cache::CacheStatistics;
use bulkhead_machine::config::{CapacityConfig, PlatformConfig};
use bulkhead_machine::ledger::{Booking, Level, Resource};
use bulkhead_machine::machine::{Machine, Outcome, RunLimit};
use bulkhead_machine::statistics::CacheReport;
use bulkhead_machine::types::Tick;

/// Sets of the second level. Lines that are this many lines apart share a set, in the first level as well.
const SETS: u64 = 256;
const WAYS: u64 = 4;
/// Words that programs leave, in lines of a set of their own.
const RESULT: u64 = MEMORY_BASE + 0xF_0000 + 64 * 200;
const CSR: u32 = SRMCFG as u32;
const MTVEC: u32 = 0x305;
const LIMIT: RunLimit = RunLimit { ticks: 50_000_000 };

/// A chip with a capacity controller of 16 RCIDs and 8 MCIDs, whose first level has one way, so that lines of one set never stay there.
fn chip(harts: u16, fills: &[u64], programmers: u8) -> PlatformConfig {
    let mut config = cluster(harts);
    let tile = &mut config.tiles[0];
    let l1d = tile.l1d.as_mut().expect("a first level");
    (l1d.size, l1d.ways) = (4 << 10, 1);
    let l2 = tile.l2.as_mut().expect("a second level");
    (l2.size, l2.ways) = (SETS * WAYS * 64, WAYS as u32);
    let cluster = tile.cluster.as_mut().expect("a cluster");
    cluster.fills = fills.to_vec();
    cluster.capacity = Some(CapacityConfig {
        rcids: 16,
        mcids: 8,
        programmers,
    });
    config
}

/// The address of a line in a set without programs. Each hart has its own lines.
fn line(port: usize, set: u64, number: u64) -> u64 {
    MEMORY_BASE + 0x10_0000 * (1 + port as u64) + 64 * (180 + set + SETS * number)
}

/// Gives requests these identifiers. Uses `T0`.
fn identify(p: &mut Program, rcid: u64, mcid: u64) {
    p.li(T0, rcid | mcid << 16).csr(1, CSR, T0);
}

/// Writes a control register of the controller and waits for the end of the operation; `T0` is then the register. Uses `T1`.
fn operate(p: &mut Program, register: u64, value: u64) {
    p.li(A0, CAPACITY_BASE).li(T0, value).sd(T0, A0, register);
    let wait = p.here();
    p.ld(T0, A0, register).srli(T1, T0, 39).andi(T1, T1, 1);
    p.branch(1, T1, ZERO, wait);
}

/// `CONFIG_LIMIT`.
fn limit(p: &mut Program, rcid: u64, at: u64, mask: u64) {
    p.li(A0, CAPACITY_BASE)
        .li(T0, mask)
        .sd(T0, A0, CC_BLOCK_MASK);
    operate(
        p,
        CC_ALLOC_CTL,
        allocation::CONFIG_LIMIT | at << 5 | rcid << 8,
    );
}

/// Stores `T0` as result number `at`. Uses `T2`.
fn result(p: &mut Program, at: u64) {
    p.li(T2, RESULT + 8 * at).sd(T0, T2, 0);
}

/// Reads a counter into `T0`.
fn counter(p: &mut Program, mcid: u64) {
    operate(p, CC_MON_CTL, monitoring::READ_COUNTER | mcid << 8);
    p.ld(T0, A0, CC_MON_CTR_VAL);
}

/// Loads this many lines of one set in turn, each after the previous one.
fn turns(port: usize, lines: u64, rounds: i32) -> Program {
    let mut p = Program::default();
    p.li(S2, 64 * SETS).addi(S1, ZERO, rounds);
    let again = p.here();
    p.li(S0, line(port, 0, 0));
    for _ in 0..lines {
        p.ld(T0, S0, 0).addi(T0, T0, 0).add(S0, S0, S2);
    }
    p.addi(S1, S1, -1).branch(1, S1, ZERO, again);
    p
}

/// Starts each program on its hart, ended by a wait.
fn machine_of(config: &PlatformConfig, programs: &[Program]) -> Machine {
    let mut machine = Machine::new(config).expect("valid");
    for (port, program) in programs.iter().enumerate() {
        let mut whole = Program::default();
        whole.words_of(program).word(WFI);
        start_port(&mut machine, port, &whole, 0x1_0000 * (port as u64 + 1));
    }
    machine
}

/// Runs each program on its hart, ended by a wait, and returns the machine.
fn run(config: &PlatformConfig, programs: &[Program]) -> (Machine, Tick) {
    let mut machine = machine_of(config, programs);
    match machine.run(LIMIT, None) {
        Outcome::Idle { at } => (machine, at),
        other => panic!("{other:?}"),
    }
}

fn words(machine: &Machine, count: u64) -> Vec<u64> {
    let word = |at| {
        let mut word = [0; 8];
        machine.peek(0, RESULT + 8 * at, &mut word).expect("memory");
        u64::from_le_bytes(word)
    };
    (0..count).map(word).collect()
}

/// What one program left behind.
fn left(config: &PlatformConfig, program: &Program, count: u64) -> Vec<u64> {
    words(&run(config, std::slice::from_ref(program)).0, count)
}

/// Misses of the second level that ten more rounds of a program cost.
fn misses(config: &PlatformConfig, program: impl Fn(i32) -> Program) -> u64 {
    let missed = |rounds| {
        let (machine, _) = run(config, &[program(rounds)]);
        second(&machine, 0).misses
    };
    missed(20) - missed(10)
}

fn second(machine: &Machine, port: u16) -> CacheStatistics {
    let all = machine.statistics().caches;
    let own = |c: &&CacheReport| c.level == Level::L2 && c.owner.activity == port;
    all.iter().find(own).expect("it asked").counters
}

/// `srmcfg` keeps as many low bits of both identifiers as there are, and 0 elsewhere; a hart with ways of its own has one legal RCID.
#[test]
fn the_register_takes_any_value_and_keeps_a_legal_one() {
    let mut p = Program::default();
    p.csr(2, CSR, ZERO)
        .word(CSR << 20 | 2 << 12 | T0 << 7 | 0x73);
    result(&mut p, 0);
    p.addi(T1, ZERO, -1).csr(1, CSR, T1);
    p.word(CSR << 20 | 2 << 12 | T0 << 7 | 0x73);
    result(&mut p, 1);
    assert_eq!(left(&chip(1, &[], 1), &p, 2), [0, 0x7_000F]);
    assert_eq!(left(&chip(1, &[0b11], 1), &p, 2), [1, 0x7_0001]);
}

/// Stores 1 as the result if control register `csr` traps in the mode that `status` gives (`mstatus.MPP`), 2 if it does not.
fn in_mode(csr: u32, status: u64) -> Program {
    let mut p = Program::default();
    let at = |p: &mut Program| {
        // auipc
        p.word(T0 << 7 | 0x17);
        p.here()
    };
    let trap = at(&mut p);
    let to_trap = p.here();
    p.addi(T0, T0, 0).csr(1, MTVEC, T0);
    p.li(T1, u64::MAX >> 10)
        .csr(1, 0x3b0, T1)
        .li(T1, 0x1f)
        .csr(1, 0x3a0, T1);
    p.li(T1, status).csr(1, 0x300, T1);
    p.word(T0 << 7 | 0x17)
        .addi(T0, T0, 16)
        .csr(1, 0x341, T0)
        .mret();
    p.word(csr << 20 | 2 << 12 | T1 << 7 | 0x73);
    p.addi(T0, ZERO, 2);
    result(&mut p, 0);
    p.spin();
    let handler = p.here();
    p.addi(T0, ZERO, 1);
    result(&mut p, 0);
    // The handler's address, relative to the first instruction.
    let distance = (handler.index() - trap.index() + 1) as i32 * 4;
    p.patch(to_trap, (distance as u32) << 20 | T0 << 15 | T0 << 7 | 0x13);
    p
}

/// The register is one of supervisor mode; without a controller there is none. (This machine has neither Smstateen nor the hypervisor
/// extension, whose rules for it would come before these.)
#[test]
fn user_mode_has_no_such_register_and_neither_has_a_cluster_without_a_controller() {
    let outcome = |config: &PlatformConfig, status| {
        let mut machine = Machine::new(config).expect("valid");
        start_port(&mut machine, 0, &in_mode(CSR, status), 0x1_0000);
        machine.run(RunLimit { ticks: 100_000 }, None);
        words(&machine, 1)[0]
    };
    let (user, supervisor, machine) = (0, 1 << 11, 3 << 11);
    let with = chip(1, &[], 1);
    assert_eq!(
        [user, supervisor, machine].map(|mode| outcome(&with, mode)),
        [1, 2, 2]
    );
    let mut without = with;
    without.tiles[0].cluster.as_mut().unwrap().capacity = None;
    assert_eq!(
        [user, supervisor, machine].map(|mode| outcome(&without, mode)),
        [1, 1, 1]
    );
}

/// Capabilities, and what each mistake says.
#[test]
fn operations_end_with_their_status() {
    let mut p = Program::default();
    p.li(A0, CAPACITY_BASE).ld(T0, A0, CC_CAPABILITIES);
    result(&mut p, 0);
    // The mask keeps four bits; there are no units.
    p.addi(T0, ZERO, -1)
        .sd(T0, A0, CC_BLOCK_MASK)
        .sd(T0, A0, CC_CUNITS)
        .ld(T0, A0, CC_BLOCK_MASK);
    result(&mut p, 1);
    p.ld(T0, A0, CC_CUNITS);
    result(&mut p, 2);
    use allocation::*;
    let tried = [
        // Any RCID has all ways before it is limited.
        (CC_ALLOC_CTL, READ_LIMIT | 9 << 8, SUCCESS),
        (CC_ALLOC_CTL, 0, INVALID_OPERATION),
        (CC_ALLOC_CTL, 4, INVALID_OPERATION),
        (CC_ALLOC_CTL, 31, INVALID_OPERATION),
        (CC_ALLOC_CTL, CONFIG_LIMIT | 16 << 8, INVALID_RCID),
        (CC_ALLOC_CTL, READ_LIMIT | 0xFFF << 8, INVALID_RCID),
        (CC_ALLOC_CTL, CONFIG_LIMIT | 2 << 5, INVALID_TYPE),
        (CC_ALLOC_CTL, READ_LIMIT | 7 << 5, INVALID_TYPE),
        (CC_ALLOC_CTL, FLUSH_RCID | 2 << 5, INVALID_TYPE),
        (CC_MON_CTL, 0, monitoring::INVALID_OPERATION),
        (CC_MON_CTL, 3, monitoring::INVALID_OPERATION),
        (
            CC_MON_CTL,
            monitoring::READ_COUNTER | 8 << 8,
            monitoring::INVALID_MCID,
        ),
        (
            CC_MON_CTL,
            monitoring::CONFIG_EVENT | 2 << 20,
            monitoring::INVALID_EVENT,
        ),
        (
            CC_MON_CTL,
            monitoring::CONFIG_EVENT | 1 << 20 | 1 << 28 | 3 << 5,
            monitoring::INVALID_TYPE,
        ),
        // Without ATV, AT means nothing.
        (
            CC_MON_CTL,
            monitoring::CONFIG_EVENT | 1 << 20 | 3 << 5,
            monitoring::SUCCESS,
        ),
    ];
    for (at, (register, value, _)) in (3..).zip(tried) {
        // Status and busy are not written.
        operate(&mut p, register, value | 0xFF << 32);
        result(&mut p, at);
    }
    // A mask of zero.
    p.sd(ZERO, A0, CC_BLOCK_MASK);
    operate(&mut p, CC_ALLOC_CTL, CONFIG_LIMIT);
    let last = 3 + tried.len() as u64;
    result(&mut p, last);
    let left = left(&chip(1, &[], 1), &p, last + 1);
    assert_eq!(left[..3], [0x10 | WAYS << 8 | 1 << 24, 0xF, 0]);
    for (word, (_, value, status)) in left[3..].iter().zip(tried) {
        assert_eq!(*word, value | status << 32, "{value:#x}");
    }
    assert_eq!(left[last as usize], CONFIG_LIMIT | INVALID_MASK << 32);
}

/// A limit decides how many lines of a set a hart keeps, and reads back; a mistaken operation changes none.
#[test]
fn a_limit_is_the_ways_that_requests_fill() {
    let config = chip(1, &[], 1);
    for (mask, ways) in [(0b0001, 1), (0b1010, 2), (0b0111, 3), (0b1111, 4)] {
        let limited = |lines, rounds, at| {
            let mut p = Program::default();
            identify(&mut p, 3, 0);
            limit(&mut p, 3, at, mask);
            // Mistakes: a mask of zero, another operation, an RCID that does not exist, and another RCID.
            limit(&mut p, 3, at, 0);
            operate(&mut p, CC_ALLOC_CTL, 9 | 3 << 8);
            limit(&mut p, 3 + 16, at, 0b1000);
            limit(&mut p, 4, at, 0b1000);
            operate(
                &mut p,
                CC_ALLOC_CTL,
                allocation::READ_LIMIT | at << 5 | 3 << 8,
            );
            p.ld(T0, A0, CC_BLOCK_MASK);
            result(&mut p, 0);
            p.words_of(&turns(0, lines, rounds));
            p
        };
        for lines in 1..=WAYS {
            let more = misses(&config, |rounds| limited(lines, rounds, TYPE_DATA));
            let expected = if lines > ways { 10 * lines } else { 0 };
            assert_eq!(more, expected, "{mask:#b}, {lines} lines");
            // Instructions have a limit of their own.
            assert_eq!(
                misses(&config, |rounds| limited(lines, rounds, TYPE_CODE)),
                0
            );
        }
        assert_eq!(left(&config, &limited(1, 1, TYPE_DATA), 1), [mask]);
    }
}

/// `BUSY` is 1 until the operation has been at the second level and back, and a second write of the register changes nothing.
#[test]
fn an_operation_is_busy_until_it_has_been_there() {
    let mut p = Program::default();
    p.li(A0, CAPACITY_BASE)
        .addi(T0, ZERO, 0b0010)
        .sd(T0, A0, CC_BLOCK_MASK)
        .li(T0, allocation::CONFIG_LIMIT | 5 << 8)
        .li(T1, allocation::CONFIG_LIMIT | 6 << 8)
        .addi(S1, ZERO, 1);
    p.sd(T0, A0, CC_ALLOC_CTL)
        .sd(T1, A0, CC_ALLOC_CTL)
        .sd(S1, A0, CC_BLOCK_MASK)
        .ld(T0, A0, CC_ALLOC_CTL);
    result(&mut p, 0);
    p.ld(T0, A0, CC_BLOCK_MASK);
    result(&mut p, 1);
    operate(&mut p, CC_ALLOC_CTL, allocation::READ_LIMIT | 6 << 8);
    p.ld(T0, A0, CC_BLOCK_MASK);
    result(&mut p, 2);
    operate(&mut p, CC_ALLOC_CTL, allocation::READ_LIMIT | 5 << 8);
    p.ld(T0, A0, CC_BLOCK_MASK);
    result(&mut p, 3);
    // The way is long, so that four accesses to the device happen within it.
    let mut config = chip(1, &[], 1);
    let cluster = config.tiles[0].cluster.as_mut().unwrap();
    (cluster.up, cluster.down) = (200, 200);
    let left = left(&config, &p, 4);
    assert_eq!(left[0], allocation::CONFIG_LIMIT | 5 << 8 | 1 << 39);
    assert_eq!(left[1..], [0b0010, 0b1111, 0b0010]);
}

/// The halves of a register can be written alone: the lower one begins an operation, the upper one does nothing.
#[test]
fn registers_have_halves() {
    let word = |p: &mut Program, offset: u64| {
        // sw T0, offset(A0)
        let o = offset as u32;
        p.word((o >> 5 & 0x7F) << 25 | T0 << 20 | A0 << 15 | 2 << 12 | (o & 31) << 7 | 0x23);
    };
    let mut p = Program::default();
    p.li(A0, CAPACITY_BASE).addi(T0, ZERO, 5);
    word(&mut p, CC_BLOCK_MASK);
    word(&mut p, CC_BLOCK_MASK + 4);
    word(&mut p, CC_ALLOC_CTL + 4);
    p.ld(T0, A0, CC_ALLOC_CTL);
    result(&mut p, 0);
    p.li(A0, CAPACITY_BASE)
        .li(T0, allocation::CONFIG_LIMIT | 2 << 8);
    word(&mut p, CC_ALLOC_CTL);
    operate(&mut p, CC_MON_CTL, monitoring::READ_COUNTER);
    operate(&mut p, CC_ALLOC_CTL, allocation::READ_LIMIT | 2 << 8);
    p.ld(T0, A0, CC_BLOCK_MASK);
    result(&mut p, 1);
    assert_eq!(left(&chip(1, &[], 1), &p, 2), [0, 5]);
}

/// A hart that the platform does not let program the controller gets an access fault; so does everybody behind the registers, and at the
/// lockdown registers, which such a cluster does not have.
#[test]
fn who_may_program_is_said_by_the_platform() {
    let ends = |config: &PlatformConfig, port: usize, address: u64| {
        let mut p = Program::default();
        p.li(A0, address).ld(T0, A0, 0).word(WFI);
        let mut machine = Machine::new(config).expect("valid");
        start_port(&mut machine, port, &p, 0x1_0000);
        matches!(machine.run(LIMIT, None), Outcome::Idle { .. })
    };
    let config = chip(2, &[], 0b10);
    assert!(!ends(&config, 0, CAPACITY_BASE));
    assert!(ends(&config, 1, CAPACITY_BASE));
    assert!(ends(&config, 1, CAPACITY_BASE + 40));
    assert!(!ends(&config, 1, CAPACITY_BASE + 48));
    assert!(!ends(&config, 1, LOCKDOWN_BASE + LOCKDOWN_FIRST));
    assert!(!ends(&cluster(1), 0, CAPACITY_BASE));
}

/// Loads, stores and flushes at random in 64 lines of four sets, which is four times what these sets hold; and tries to take another
/// hart's identifiers in each round.
fn hostile(port: usize, seed: u64, rounds: i32) -> Program {
    let mut p = Program::default();
    p.li(S3, seed | 1).addi(S1, ZERO, rounds);
    let again = p.here();
    // xorshift64 (Marsaglia, 2003).
    p.slli(T0, S3, 13)
        .xor(S3, S3, T0)
        .srli(T0, S3, 7)
        .xor(S3, S3, T0)
        .slli(T0, S3, 17)
        .xor(S3, S3, T0);
    p.srli(T1, S3, 20).csr(1, CSR, T1);
    p.andi(T1, S3, 3).slli(T1, T1, 6);
    p.srli(T2, S3, 8).andi(T2, T2, 15).slli(T2, T2, 14);
    p.li(S0, line(port, 0, 0)).add(S0, S0, T1).add(S0, S0, T2);
    p.ld(T0, S0, 0).sd(S3, S0, 8);
    p.srli(T1, S3, 30).andi(T1, T1, 7);
    let skip = p.here();
    p.word(0).cbo(CBO_FLUSH, S0);
    let after = p.here();
    p.patch_branch(skip, 1, T1, ZERO, after);
    p.addi(S1, S1, -1).branch(1, S1, ZERO, again);
    p
}

/// Harts with ways of their own never evict each other's lines, whatever they write to `srmcfg`, and as many lines as a hart has ways stay
/// where they are beside three of these. Without limits, they do not.
#[test]
fn evictions_across_identifiers_never_happen() {
    let run_with = |fills: &[u64]| {
        let program = |port| match port {
            0 => turns(0, 1, 2000),
            _ => hostile(port, 0x9E37_79B9 * port as u64, 1500),
        };
        let programs: Vec<Program> = (0..4).map(program).collect();
        let (machine, _) = run(&chip(4, fills, 0), &programs);
        let by_others: u64 = (0..4)
            .map(|port| second(&machine, port).misses_by_others)
            .sum();
        let bookings = machine.ledger().bookings();
        let by_sets = |b: &&Booking| b.resource == Resource::CacheSet(Level::L2);
        let booked = bookings.iter().filter(by_sets).count();
        waits_are_booked(&machine);
        (by_others, booked)
    };
    assert_eq!(run_with(&[0b0001, 0b0010, 0b0100, 0b1000]), (0, 0));
    let (by_others, booked) = run_with(&[]);
    assert!(by_others > 100 && booked > 0, "{by_others} {booked}");
}

/// Occupancy counts the lines that requests with an MCID have allocated and that are still there.
#[test]
fn a_counter_counts_what_is_allocated_and_still_there() {
    let mut p = Program::default();
    let event = |p: &mut Program, mcid: u64, event: u64, rest: u64| {
        operate(
            p,
            CC_MON_CTL,
            monitoring::CONFIG_EVENT | mcid << 8 | event << 20 | rest,
        );
    };
    let load = |p: &mut Program, set: u64, lines: std::ops::Range<u64>| {
        for number in lines {
            p.li(S0, line(0, set, number)).ld(T0, S0, 0).addi(T0, T0, 0);
        }
    };
    // The line of the results is there before anything is counted.
    result(&mut p, 0);
    identify(&mut p, 0, 5);
    // Before the counter counts: two lines, which it will never count.
    load(&mut p, 0, 0..2);
    event(
        &mut p,
        5,
        EVENT_OCCUPANCY,
        MONITOR_TYPE_VALID | TYPE_DATA << 5,
    );
    event(
        &mut p,
        6,
        EVENT_OCCUPANCY,
        MONITOR_TYPE_VALID | TYPE_DATA << 5,
    );
    event(
        &mut p,
        7,
        EVENT_OCCUPANCY,
        MONITOR_TYPE_VALID | TYPE_CODE << 5,
    );
    counter(&mut p, 5);
    result(&mut p, 0);
    // Hits count nothing; three new lines do.
    load(&mut p, 0, 0..2);
    load(&mut p, 1, 0..3);
    counter(&mut p, 5);
    result(&mut p, 1);
    // The set has four ways: two of five more replace two of these.
    load(&mut p, 1, 3..6);
    counter(&mut p, 5);
    result(&mut p, 2);
    // Another MCID replaces two more, and a flush empties one; a line that was never counted goes, too.
    identify(&mut p, 0, 6);
    load(&mut p, 1, 6..8);
    p.li(T1, line(0, 1, 5)).cbo(CBO_FLUSH, T1).word(FENCE);
    p.li(T1, line(0, 0, 0)).cbo(CBO_FLUSH, T1).word(FENCE);
    identify(&mut p, 0, 0);
    counter(&mut p, 5);
    result(&mut p, 3);
    counter(&mut p, 6);
    result(&mut p, 4);
    // A counter that stops keeps its value.
    event(&mut p, 6, EVENT_NONE, 0);
    identify(&mut p, 0, 6);
    load(&mut p, 2, 0..2);
    identify(&mut p, 0, 0);
    counter(&mut p, 6);
    result(&mut p, 5);
    // Fetches by MCID 7: at least the line that is jumped to.
    identify(&mut p, 0, 7);
    p.jump_to_line();
    load(&mut p, 3, 0..1);
    identify(&mut p, 0, 0);
    p.jump_to_line();
    counter(&mut p, 7);
    result(&mut p, 6);
    let left = left(&chip(1, &[], 1), &p, 7);
    assert_eq!(left[..6], [0, 3, 4, 1, 2, 2]);
    // The code of one load: lines of 64 bytes, and no data.
    assert!((1..=3).contains(&left[6]), "{}", left[6]);
}

/// A flush writes back and takes what one RCID has filled with data, and nothing else; the controller says when it is done.
#[test]
fn a_flush_takes_what_one_identifier_has_filled() {
    let program = |flush: bool| {
        let mut p = Program::default();
        for mcid in 1..=2 {
            operate(
                &mut p,
                CC_MON_CTL,
                monitoring::CONFIG_EVENT | mcid << 8 | 1 << 20,
            );
        }
        for (rcid, set) in [(1, 0), (2, 1)] {
            identify(&mut p, rcid, rcid);
            for number in 0..3 {
                p.li(S0, line(0, set, number))
                    .addi(T0, ZERO, 7)
                    .sd(T0, S0, 0);
            }
            p.word(FENCE);
        }
        identify(&mut p, 0, 0);
        p.jump_to_line();
        if flush {
            operate(&mut p, CC_ALLOC_CTL, allocation::FLUSH_RCID | 1 << 8);
        } else {
            p.addi(T0, ZERO, 0);
        }
        result(&mut p, 0);
        // Misses again where the flush was.
        for set in 0..2 {
            p.li(S0, line(0, set, 0)).ld(T0, S0, 0).addi(T0, T0, 0);
            result(&mut p, 1 + set);
        }
        p
    };
    let config = chip(1, &[], 1);
    let (machine, with) = run(&config, &[program(true)]);
    let status = allocation::FLUSH_RCID | 1 << 8 | allocation::SUCCESS << 32;
    assert_eq!(words(&machine, 3), [status, 7, 7]);
    let (other, without) = run(&config, &[program(false)]);
    // One line of the first RCID misses again, beside the code of the operation.
    let more = second(&machine, 0).misses - second(&other, 0).misses;
    assert!((1..=4).contains(&more), "{more}");
    // A set in each cycle of the second level.
    assert!(with - without >= SETS * 2, "{with} {without}");
}

/// A flush ends although the flushed RCID's hart goes on to fill; it leaves nobody's dirty line behind or loses one. Its order and its
/// times do not depend on windows.
#[test]
fn a_flush_beside_harts_that_go_on_ends() {
    let programs = || {
        let mut p = Program::default();
        for _ in 0..3 {
            operate(&mut p, CC_ALLOC_CTL, allocation::FLUSH_RCID | 2 << 8);
            result(&mut p, 0);
        }
        [p, hostile(1, 77, 800), hostile(2, 99, 800)]
    };
    let config = chip(3, &[0b0001, 0b0010, 0b1100], 1);
    let (machine, at) = run(&config, &programs());
    let status = allocation::FLUSH_RCID | 2 << 8 | allocation::SUCCESS << 32;
    assert_eq!(words(&machine, 1), [status]);
    for port in 0..3 {
        assert_eq!(second(&machine, port).misses_by_others, 0);
    }
    waits_are_booked(&machine);
    pieces_change_nothing(|| machine_of(&config, &programs()), at / 2);
}
