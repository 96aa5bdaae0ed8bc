//! The guard at a local memory's port: what it admits, what a refused request costs and changes, and that no program can change its
//! rules.

use crate::common::*;
use bulkhead_abi::memory_map::{MEMORY_BASE, TILE_DOORBELL, TILE_REGISTERS, TILE_START};
use bulkhead_machine::config::PlatformConfig;
use bulkhead_machine::local_tile::GuardRule;
use bulkhead_machine::machine::{Machine, MachineError, Outcome, RunLimit};
use bulkhead_machine::types::Tick;

const LIMIT: RunLimit = RunLimit { ticks: 1_000_000 };
const BEFORE: u32 = 0x100;
const SEEN: u32 = 0x101;
/// The part of tile 1 that tile 0 may read and write, and the part that it may only read.
const OPEN: u64 = 0x2000;
const READ_ONLY: u64 = 0x2010;
const CLOSED: u64 = 0x2020;

fn guarded(entries: u32) -> PlatformConfig {
    let mut config = mesh(2, 2);
    for tile in &mut config.tiles {
        tile.local_memory.as_mut().expect("a memory").guard = entries;
    }
    config
}

fn rules() -> [GuardRule; 2] {
    let rule = |from, to, write| GuardRule {
        tile: 0,
        from,
        to,
        read: true,
        write,
    };
    [
        rule(OPEN, OPEN + 16, true),
        rule(READ_ONLY, READ_ONLY + 8, false),
    ]
}

/// A chip on which tile 1 is closed except for the rules, with known words in its memory.
fn chip() -> Machine {
    let mut machine = Machine::new(&guarded(4)).expect("valid");
    machine.set_guard(1, &rules()).expect("it has room");
    for (number, offset) in [OPEN, OPEN + 8, READ_ONLY, CLOSED].into_iter().enumerate() {
        let word = (number as u64 + 1) * 0x1111;
        machine
            .load_tile(1, MEMORY_BASE + offset, &word.to_le_bytes())
            .expect("memory");
    }
    machine
}

fn word(machine: &Machine, tile: u16, offset: u64) -> u64 {
    let mut word = [0; 8];
    machine
        .peek(tile, MEMORY_BASE + offset, &mut word)
        .expect("memory");
    u64::from_le_bytes(word)
}

fn finish(machine: &mut Machine) {
    let end = machine.run(LIMIT, None);
    assert!(matches!(end, Outcome::Idle { .. }), "{end:?}");
}

#[test]
fn what_is_refused_changes_nothing_and_is_told() {
    let mut machine = chip();
    let mut p = Program::default();
    let at = |offset| window(1, 0) + offset;
    p.addi(S1, ZERO, 77);
    // Loads: two that are allowed and one that is not.
    for (number, offset) in [OPEN, READ_ONLY, CLOSED].into_iter().enumerate() {
        p.li(S0, at(offset)).ld(S2 + number as u32, S0, 0);
    }
    // Stores: one that is allowed and two that are not, including one to code.
    for offset in [OPEN + 8, READ_ONLY, CLOSED, 0] {
        p.li(S0, at(offset)).sd(S1, S0, 0);
    }
    // An exchange where only loads are allowed looks like a taken lock; a reservation alone is a load, and the store fails.
    p.li(S0, at(READ_ONLY)).amo(1, 0, 21, S0, S1);
    p.amo(2, 0, 22, S0, ZERO).amo(3, 0, 23, S0, S1);
    // The doorbell, the start, and a register that answers to loads.
    p.li(S0, at(TILE_REGISTERS + TILE_DOORBELL)).sd(S1, S0, 0);
    p.li(S0, at(TILE_REGISTERS + TILE_START)).sd(S1, S0, 0);
    p.ld(24, S0, 0);
    p.word(FENCE);
    for register in [S2, S2 + 1, S2 + 2, 21, 22, 23, 24] {
        p.marker(register, SEEN);
    }
    p.word(WFI).start(&mut machine, 0);
    finish(&mut machine);
    let seen: Vec<u64> = machine
        .markers()
        .iter()
        .map(|marker| marker.value)
        .collect();
    let all = u64::MAX;
    assert_eq!(seen, [0x1111, 0x3333, all, all, 0x3333, 1, all]);
    let words = [OPEN, OPEN + 8, READ_ONLY, CLOSED, 0].map(|offset| word(&machine, 1, offset));
    assert_eq!(words, [0x1111, 77, 0x3333, 0x4444, 0]);
    // Its hart was not started, and its doorbell was not rung.
    let other = machine.hart(1).expect("a hart");
    assert_eq!(
        (other.is_halted(), other.statistics().instructions),
        (true, 0)
    );
    let refused = machine.refused();
    let [(1, told)] = refused[..] else {
        panic!("{refused:?}");
    };
    // One load, three stores, an exchange, a conditional store, and three accesses to registers.
    assert_eq!(
        (told.from, told.count, told.offset, told.write),
        (0, 9, CLOSED, false)
    );
}

/// A refused store is acknowledged, and a refused load answered, when an allowed one would be.
#[test]
fn a_refused_request_costs_the_network_what_another_one_costs() {
    let took = |offset: u64, store: bool| -> Tick {
        let mut machine = chip();
        let mut p = Program::default();
        p.li(S0, window(1, 0) + offset).jump_to_line();
        p.marker(ZERO, BEFORE);
        match store {
            true => p.sd(ZERO, S0, 0).word(FENCE),
            false => p.ld(T0, S0, 0).addi(T0, T0, 1),
        };
        p.marker(ZERO, SEEN).word(WFI).start(&mut machine, 0);
        finish(&mut machine);
        let markers = machine.markers();
        let bytes: Vec<_> = machine.carried().concat();
        assert!(!bytes.is_empty());
        markers[1].tick - markers[0].tick
    };
    for store in [true, false] {
        assert_eq!(took(OPEN, store), took(CLOSED, store));
    }
}

/// A refused flood takes no turn of the owner's hart; an allowed one does.
#[test]
fn what_is_refused_takes_no_turn_at_a_port() {
    let waited = |offset: u64| {
        let mut machine = chip();
        for tile in [0, 1] {
            let mut p = Program::default();
            let of = if tile == 0 { offset } else { OPEN };
            p.li(S0, window(1, 0) + of).addi(T2, ZERO, 100);
            let again = p.here();
            for _ in 0..4 {
                p.sd(S1, S0, 0);
            }
            p.addi(T2, T2, -1).branch(1, T2, ZERO, again);
            p.word(FENCE).word(WFI).start(&mut machine, tile);
        }
        finish(&mut machine);
        machine.local_memories()[1].1.own_waited
    };
    assert_eq!(waited(CLOSED), 0);
    assert!(waited(OPEN) > 0);
}

/// No register of the page changes the rules, from inside or outside; an address without a register traps. The tile's own hart is not
/// guarded.
#[test]
fn no_program_changes_the_rules() {
    for tile in [0, 1, 2] {
        let mut machine = chip();
        let handler = 0x1000;
        let mut h = Program::default();
        // Every trap skips its instruction: csrr t0, mepc; addi t0, t0, 4; csrw mepc, t0; mret
        h.word(0x3410_22f3).addi(T0, T0, 4).word(0x3412_9073).mret();
        machine
            .load_tile(tile, MEMORY_BASE + handler, &h.bytes())
            .expect("memory");
        let mut p = Program::default();
        p.li(T0, MEMORY_BASE + handler).csr(1, 0x305, T0);
        p.li(S0, window(1, 0) + TILE_REGISTERS).li(S1, u64::MAX);
        p.li(T2, 512);
        let again = p.here();
        // All but the start: starting the tile's own hart would restart it at an address without code.
        p.addi(T1, T2, -(512 - 1));
        let over = p.here();
        p.word(0);
        p.sd(S1, S0, 0);
        let here = p.here();
        p.patch_branch(over, 0, T1, ZERO, here);
        p.addi(S0, S0, 8)
            .addi(T2, T2, -1)
            .branch(1, T2, ZERO, again);
        p.word(FENCE);
        // Then a write that is refused to every tile but the owner.
        p.li(S0, window(1, 0) + CLOSED)
            .addi(S1, ZERO, 5)
            .sd(S1, S0, 0);
        p.word(FENCE).marker(ZERO, SEEN).word(WFI);
        p.start(&mut machine, tile);
        machine.run(LIMIT, None);
        let seen = machine
            .markers()
            .iter()
            .any(|m| m.tile == tile && u32::from(m.kind) == SEEN);
        assert!(seen, "the program on tile {tile} came to its end");
        let wanted = if tile == 1 { 5 } else { 0x4444 };
        assert_eq!(word(&machine, 1, CLOSED), wanted, "tile {tile}");
    }
}

#[test]
fn a_guard_has_room_for_its_rules_only() {
    let mut machine = Machine::new(&guarded(1)).expect("valid");
    let error = MachineError::NoRules(1, 2);
    assert_eq!(machine.set_guard(1, &rules()), Err(error));
    assert_eq!(machine.set_guard(1, &rules()[..1]), Ok(()));
    assert_eq!(machine.set_guard(99, &[]), Err(MachineError::NoTile(99)));
    let mut machine = Machine::new(&mesh(2, 2)).expect("valid");
    let error = MachineError::NoRules(1, 0);
    assert_eq!(machine.set_guard(1, &[]), Err(error), "it has no guard");
}
