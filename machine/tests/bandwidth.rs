//! Bandwidth controllers of memories: shares of harts that want more than there is, who waits for what, and who reaches the registers.

use crate::common::*;
use bulkhead_abi::bandwidth::*;
use bulkhead_abi::cbqri::SRMCFG;
use bulkhead_abi::memory_map::{BANDWIDTH_BASE, MEMORY_BASE};
use bulkhead_machine::config::dram::BandwidthConfig;
use bulkhead_machine::config::{CapacityConfig, PlatformConfig};
use bulkhead_machine::ledger::{Level, Resource};
use bulkhead_machine::machine::{Machine, RunLimit};
use bulkhead_machine::types::Tick;

const BLOCKS: u16 = 64;
const MARK: u32 = 0x100;

/// A cluster of four harts, of which the first one programs; a memory of one channel with slots.
fn chip(limited: bool) -> PlatformConfig {
    with_slots(cluster(4), limited)
}

/// A chip of clusters, of each of which the first hart programs, with such a memory.
fn with_slots(mut config: PlatformConfig, limited: bool) -> PlatformConfig {
    other_controller(&mut config, 3);
    let dram = &mut config.memories[0].dram;
    let controller = &mut dram.controller;
    (controller.map.channels, controller.map.channel_interleave) = (1, None);
    dram.bandwidth = limited.then_some(BandwidthConfig {
        blocks: BLOCKS,
        rcids: 16,
        mcids: 8,
    });
    for tile in &mut config.tiles {
        tile.l2.as_mut().expect("a second level").mshrs = 32;
        tile.cluster.as_mut().expect("a cluster").capacity = Some(CapacityConfig {
            rcids: 16,
            mcids: 8,
            programmers: 1,
        });
    }
    config
}

/// Ticks of a slot, and of a window.
fn times(config: &PlatformConfig) -> (Tick, Tick) {
    let slot = config.memories[0].dram.controller.slot();
    (slot, slot * Tick::from(BLOCKS))
}

fn identify(p: &mut Program, rcid: u64, mcid: u64) {
    p.li(T0, rcid | mcid << 16).csr(1, SRMCFG as u32, T0);
}

/// Gives RCIDs their reserved blocks and weights, in this order.
fn shares(p: &mut Program, limits: &[(u64, u64, u64)]) {
    p.li(A0, BANDWIDTH_BASE);
    for &(rcid, reserved, weight) in limits {
        p.li(T0, reserved | weight << LIMIT_WEIGHT)
            .sd(T0, A0, BC_BW_ALLOC);
        p.li(T0, CONFIG_LIMIT | rcid << CONTROL_IDENTIFIER);
        p.sd(T0, A0, BC_ALLOC_CTL).word(FENCE);
    }
}

/// Loads `lines` lines of its own, four at once, each only once: all are misses.
fn stream(p: &mut Program, port: u64, lines: u64) {
    p.li(S0, MEMORY_BASE + 0x30_0000 * (1 + port))
        .li(S1, lines / 4);
    p.jump_to_line();
    let again = p.here();
    for (line, register) in [T0, T1, T2, S3].into_iter().enumerate() {
        p.ld(register, S0, 64 * line as u64);
    }
    p.addi(S0, S0, 256).addi(S1, S1, -1);
    p.branch(1, S1, ZERO, again);
}

fn start(config: &PlatformConfig, programs: &[Program]) -> Machine {
    let mut machine = Machine::new(config).expect("valid");
    for (port, program) in programs.iter().enumerate() {
        start_port(&mut machine, port, program, 0x1_0000 * port as u64);
    }
    machine
}

/// All harts stream with their number plus 1 as RCID; the first one sets limits before.
fn streams(limits: &[(u64, u64, u64)], harts: &[u64], lines: u64) -> Vec<Program> {
    let program = |port: u64| {
        let mut p = Program::default();
        if port == 0 {
            shares(&mut p, limits);
        }
        if harts.contains(&port) {
            identify(&mut p, port + 1, port);
            stream(&mut p, port, lines);
        }
        p.word(FENCE).word(WFI);
        p
    };
    (0..4).map(program).collect()
}

/// Lines that each hart has read between the windows `from` and `to`.
fn read(config: &PlatformConfig, programs: &[Program], from: Tick, to: Tick) -> [u64; 4] {
    let mut machine = start(config, programs);
    let mut at = |window: Tick| {
        machine.run(
            RunLimit {
                ticks: window * times(config).1,
            },
            None,
        );
        let caches = machine.statistics().caches;
        [0, 1, 2, 3].map(|port| {
            let own = caches.iter().filter(|c| c.level == Level::L2);
            let mut own = own.filter(|c| c.owner.activity == port);
            own.next().map_or(0, |c| c.counters.misses)
        })
    };
    let (before, after) = (at(from), at(to));
    std::array::from_fn(|port| after[port] - before[port])
}

/// Within a hundredth, and the requests that are on their way at both ends.
fn is_about(got: u64, expected: u64) -> bool {
    got.abs_diff(expected) <= expected / 100 + 8
}

const LINES: u64 = 40_000;
const FROM: Tick = 10;
const TO: Tick = 110;

/// Slots of a window that refreshes leave, in hundreds of windows.
fn slots(config: &PlatformConfig) -> u64 {
    let (slot, window) = times(config);
    let timing = config.memories[0].dram.controller.timing;
    let time = (TO - FROM) * window;
    let refreshes = time / timing.refresh_interval;
    // A refresh begins when the slot before it has ended.
    (time - refreshes * timing.refresh) / slot
}

#[test]
fn what_is_not_reserved_is_divided_by_weight() {
    let config = chip(true);
    let limits = [(0, 1, 1), (1, 1, 1), (2, 1, 2), (3, 1, 3), (4, 1, 6)];
    let got = read(&config, &streams(&limits, &[0, 1, 2, 3], LINES), FROM, TO);
    let windows = TO - FROM;
    let free = slots(&config) - 4 * windows;
    for (port, weight) in [1, 2, 3, 6].into_iter().enumerate() {
        let expected = windows + free * weight / 12;
        assert!(is_about(got[port], expected), "{port}: {got:?}, {expected}");
    }
    // Without limits, the harts have the same.
    let mut plain = chip(false);
    let controller = &mut plain.memories[0].dram.controller;
    controller.turns = bulkhead_machine::config::dram::Turns::Hart;
    let none = streams(&[], &[0, 1, 2, 3], LINES);
    let equal = read(&plain, &none, FROM, TO);
    for port in 0..4 {
        assert!(is_about(equal[port], slots(&plain) / 4), "{equal:?}");
    }
}

#[test]
fn a_reservation_is_had_beside_others_with_any_weights_and_is_hard_without_a_weight() {
    let config = chip(true);
    let windows = TO - FROM;
    for others in [&[1, 2, 3][..], &[]] {
        let limits = [(0, 1, 1), (1, 16, 0), (2, 1, 255), (3, 1, 255), (4, 1, 255)];
        let harts: Vec<u64> = [0].iter().chain(others).copied().collect();
        let got = read(&config, &streams(&limits, &harts, LINES), FROM, TO);
        assert!(got[0].abs_diff(16 * windows) <= 20, "{others:?}: {got:?}");
        for port in others {
            let rest = (slots(&config) - 16 * windows) / 3;
            assert!(is_about(got[*port as usize], rest), "{got:?}, {rest}");
        }
    }
    // With a weight, unused bandwidth is its own, too.
    let limits = [(0, 1, 1), (1, 16, 1)];
    let got = read(&config, &streams(&limits, &[0], LINES), FROM, TO);
    assert!(got[0] > 40 * windows, "{got:?}");
}

/// A hart that has used up its share waits for nobody else; everything is booked; windows change nothing.
#[test]
fn waits_for_a_share_are_its_owners_and_ticks_depend_on_no_window() {
    let config = chip(true);
    let limits = [(0, 1, 1), (1, 4, 0), (2, 8, 3), (3, 1, 2)];
    let build = || start(&config, &streams(&limits, &[0, 1, 2], 1200));
    let mut machine = build();
    machine.run(RunLimit { ticks: 20_000_000 }, None);
    waits_are_booked(&machine);
    let bookings = machine.ledger().bookings();
    let shares = bookings
        .iter()
        .filter(|b| matches!(b.resource, Resource::Bandwidth(_)));
    let mut hard = 0;
    for booking in shares {
        assert_eq!(booking.victim, booking.culprit);
        assert_eq!(
            (booking.victim.activity, booking.resource),
            (0, Resource::Bandwidth(MEMORY))
        );
        hard += booking.ticks;
    }
    assert!(hard > 0);
    pieces_change_nothing(build, 400_000);
}

/// Has the controller at `A0` perform an operation on the counter of an MCID.
fn monitor(p: &mut Program, operation: u64, mcid: u64, event: u64) {
    p.li(
        T0,
        operation | mcid << CONTROL_IDENTIFIER | event << MONITOR_EVENT,
    );
    p.sd(T0, A0, BC_MON_CTL).word(FENCE);
}

/// Marks the counters of MCIDs 1 to 3.
fn mark_counters(p: &mut Program) {
    for mcid in 1..4 {
        monitor(p, READ_COUNTER, mcid, 0);
        // A marker does not wait for its value.
        p.ld(T0, A0, BC_MON_CTR_VAL)
            .addi(T0, T0, 0)
            .marker(T0, MARK);
    }
}

/// Counters count what the requests of their MCID move: lines read, and lines that their fills push out, whoever has stored to these.
#[test]
fn counters_tell_bytes_by_mcid() {
    let config = chip(true);
    let counted = |program: &Program| {
        let mut machine = Machine::new(&config).expect("valid");
        start_port(&mut machine, 0, program, 0);
        machine.run(RunLimit { ticks: 4_000_000 }, None);
        let counted: Vec<u64> = machine.markers().iter().map(|m| m.value).collect();
        assert_eq!(counted.len(), 3);
        counted
    };
    // The second level has 1024 lines, all of which MCID 1 stores to. 40 lines of MCID 3 take the places of as many.
    let after_stores = |event| {
        let mut p = Program::default();
        p.li(A0, BANDWIDTH_BASE);
        for mcid in 1..4 {
            monitor(&mut p, CONFIG_EVENT, mcid, event);
        }
        for (mcid, lines, stores) in [(1, 1024u64, true), (3, 40, false)] {
            p.jump_to_line();
            identify(&mut p, 0, mcid);
            p.li(S0, MEMORY_BASE + 0x30_0000 * mcid).li(S1, lines);
            let again = p.here();
            match stores {
                true => p.sd(S1, S0, 0),
                false => p.ld(T0, S0, 0),
            };
            p.word(FENCE).addi(S0, S0, 64).addi(S1, S1, -1);
            p.branch(1, S1, ZERO, again).word(FENCE);
        }
        identify(&mut p, 0, 0);
        mark_counters(&mut p);
        p.word(WFI);
        counted(&p)
    };
    let (written, read) = (after_stores(EVENT_WRITES), after_stores(EVENT_READS));
    println!("{written:?} {read:?}");
    let lines = |bytes: u64| bytes / 64;
    // Beside the data, lines of instructions come and push out one each, if it is modified.
    assert!((40..44).contains(&lines(read[2])), "{read:?}");
    assert!(
        (40..=lines(read[2])).contains(&lines(written[2])),
        "{written:?}"
    );
    // Nothing is written for MCID 2; for MCID 1, the lines whose places its own instructions have taken.
    assert_eq!((written[1], read[1]), (0, 0));
    assert!(
        lines(written[0]) <= lines(read[0]) - 1024,
        "{written:?} {read:?}"
    );
    // Without stores, no line is written.
    let mut p = Program::default();
    p.li(A0, BANDWIDTH_BASE);
    for (mcid, event) in [(1, EVENT_ALL), (2, EVENT_READS), (3, EVENT_WRITES)] {
        monitor(&mut p, CONFIG_EVENT, mcid, event);
    }
    p.jump_to_line();
    for mcid in 1..4 {
        identify(&mut p, 0, mcid);
        stream(&mut p, mcid, 40);
        p.word(FENCE);
    }
    identify(&mut p, 0, 0);
    mark_counters(&mut p);
    p.word(WFI);
    let counted = counted(&p);
    let [all, reads, writes] = counted[..] else {
        panic!("{counted:?}");
    };
    // Beside the data there are instructions.
    assert!((40 * 64..50 * 64).contains(&all), "{counted:?}");
    assert!(
        (40 * 64..50 * 64).contains(&reads) && writes == 0,
        "{counted:?}"
    );
}

/// The bytes that a coherent cluster gives up are written because of whoever wants the line: to read it (MCID 1) or to flush it (MCID 3),
/// not because of the hart that has stored them (MCID 2).
#[test]
fn lines_that_another_cluster_gives_count_for_whoever_wants_them() {
    let config = with_slots(coherent(&[1, 1]), true);
    const LINES: u64 = 40;
    let mut wants = Program::default();
    wants.li(A0, BANDWIDTH_BASE);
    for mcid in 1..4 {
        monitor(&mut wants, CONFIG_EVENT, mcid, EVENT_WRITES);
    }
    wants.li(T2, 8000);
    let waits = wants.here();
    wants.addi(T2, T2, -1).branch(1, T2, ZERO, waits);
    identify(&mut wants, 2, 1);
    stream(&mut wants, 1, LINES);
    wants.word(FENCE);
    // The register of the stream is at the next line.
    identify(&mut wants, 2, 3);
    wants.li(S1, LINES);
    let flush = wants.here();
    wants.cbo(CBO_FLUSH, S0).addi(S0, S0, 64).addi(S1, S1, -1);
    wants.branch(1, S1, ZERO, flush).word(FENCE);
    identify(&mut wants, 0, 0);
    mark_counters(&mut wants);
    wants.spin();
    let mut stores = Program::default();
    identify(&mut stores, 1, 2);
    stores.li(S0, MEMORY_BASE + 2 * 0x30_0000).li(S1, 2 * LINES);
    let store = stores.here();
    stores.sd(S1, S0, 0).addi(S0, S0, 64).addi(S1, S1, -1);
    stores.branch(1, S1, ZERO, store).spin();
    let build = || {
        let mut machine = Machine::new(&config).expect("valid");
        start_hart(&mut machine, (0, 0), &wants, 0);
        start_hart(&mut machine, (1, 0), &stores, 0x1_0000);
        machine
    };
    let mut machine = build();
    machine.run(RunLimit { ticks: 400_000 }, None);
    let counted: Vec<u64> = machine.markers().iter().map(|m| m.value).collect();
    assert_eq!(counted, [LINES * 64, 0, LINES * 64]);
    waits_are_booked(&machine);
    pieces_change_nothing(build, 150_000);
}

/// Only programmers of the cluster's capacity controller reach the registers; nobody reaches what is not there.
#[test]
fn others_do_not_reach_the_registers() {
    for (port, offset, reaches) in [
        (0, BC_CAPABILITIES, true),
        (1, BC_CAPABILITIES, false),
        (0, BC_END, false),
    ] {
        let mut p = Program::default();
        // auipc; the handler is behind the program.
        p.word(T0 << 7 | 0x17);
        let from = p.here();
        p.addi(T0, T0, 0).csr(1, 0x305, T0);
        p.li(A0, BANDWIDTH_BASE).ld(T1, A0, offset);
        p.addi(T1, T1, 0).marker(T1, MARK).word(WFI);
        p.jump_to_line();
        let handler = p.here();
        p.marker(ZERO, MARK + 1).word(WFI).spin();
        let distance = (handler.index() - from.index() + 1) as u32 * 4;
        p.patch(from, distance << 20 | T0 << 15 | T0 << 7 | 0x13);
        let mut machine = Machine::new(&chip(true)).expect("valid");
        start_port(&mut machine, port, &p, 0);
        machine.run(RunLimit { ticks: 100_000 }, None);
        let markers = machine.markers();
        let kinds: Vec<u32> = markers.iter().map(|m| m.kind.into()).collect();
        assert_eq!(kinds, [MARK + u32::from(!reaches)], "{port}, {offset}");
        if reaches {
            let blocks = markers[0].value >> CAPABILITIES_BLOCKS & 0xFFFF;
            assert_eq!(blocks, BLOCKS.into());
        }
    }
}

#[test]
fn what_cannot_be_is_refused() {
    let refused = |change: fn(&mut PlatformConfig)| {
        let mut config = chip(true);
        change(&mut config);
        let error = Machine::new(&config).err().expect("not valid");
        error.to_string()
    };
    let policy = refused(|config| other_controller(config, 1));
    assert!(policy.contains("needs a controller with slots"), "{policy}");
    let blocks = refused(|config| {
        let bandwidth = config.memories[0].dram.bandwidth.as_mut();
        bandwidth.expect("there").blocks = 3;
    });
    assert!(blocks.contains("leave no block"), "{blocks}");
    let identifiers = refused(|config| {
        let bandwidth = config.memories[0].dram.bandwidth.as_mut();
        bandwidth.expect("there").rcids = 8;
    });
    assert!(identifiers.contains("identifiers"), "{identifiers}");
}
