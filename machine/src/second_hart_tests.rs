//! Tiles with two harts: shared memory, interrupts, and how the second hart relieves the first.

use super::*;

const SECOND: u64 = MEMORY_BASE + 0x8000;

fn two_harts() -> Machine {
    let mut config = platform(PlatformKind::Tiled, 2, 1);
    config.tiles[0].second_hart = true;
    let mut machine = Machine::new(&config).unwrap();
    for tile in 0..2u16 {
        give_memory(&mut machine, tile, 100, tile as u64 * (1 << 20));
    }
    machine
}

/// Starts the second hart. Leaves the unit's privileged page in A0.
fn start_second(p: &mut Program) {
    p.li(A0, DTU_BASE + 0x1000)
        .li(T0, SECOND)
        .store(T0, A0, 0x10)
        .addi(T0, ZERO, 7)
        .store(T0, A0, 8);
}

fn amoadd(p: &mut Program, rs: u32, base: u32) {
    p.word(rs << 20 | base << 15 | 3 << 12 | 0x2f);
}

#[test]
fn both_harts_count_in_shared_memory() {
    const ROUNDS: u64 = 500;
    let mut machine = two_harts();
    let count = |p: &mut Program| {
        p.li(S0, MEMORY_BASE + 0x10000)
            .li(S1, ROUNDS)
            .addi(T2, ZERO, 1);
        let again = p.here();
        amoadd(p, T2, S0);
        // The same with load-reserved and store-conditional, in the next word.
        p.addi(T0, S0, 64);
        let retry = p.here();
        p.word(2 << 27 | T0 << 15 | 3 << 12 | T1 << 7 | 0x2f)
            .addi(T1, T1, 1)
            .word(3 << 27 | T1 << 20 | T0 << 15 | 3 << 12 | A1 << 7 | 0x2f)
            .branch(1, A1, ZERO, retry);
        p.addi(S1, S1, -1).branch(1, S1, ZERO, again);
    };
    let mut first = Program::default();
    start_second(&mut first);
    count(&mut first);
    // Waits until both are done.
    first.li(T1, 2 * ROUNDS);
    let wait = first.here();
    first.load(T0, S0, 64).branch(1, T0, T1, wait);
    first
        .marker(T0, 0x100)
        .load(T0, S0, 0)
        .marker(T0, 0x101)
        .exit(0);
    let mut second = Program::default();
    // mhartid
    second
        .word(0xF14 << 20 | 2 << 12 | T0 << 7 | 0x73)
        .marker(T0, 0x102);
    count(&mut second);
    second.wfi_forever();
    machine.load_tile(0, SECOND, &second.bytes()).unwrap();
    start(&mut machine, 0, &first);
    let outcome = machine.run(RunLimit { ticks: 10_000_000 }, None);
    assert!(
        matches!(outcome, Outcome::Exit { code: 0, .. }),
        "{outcome:?}"
    );
    let value = |kind| {
        let all = machine.markers();
        all.iter().find(|m| m.kind == kind).map(|m| m.value)
    };
    assert_eq!(value(0x100), Some(2 * ROUNDS));
    assert_eq!(value(0x101), Some(2 * ROUNDS));
    assert_eq!(value(0x102), Some(1));
    // One report per hart.
    assert_eq!(machine.statistics().harts.len(), 3);
}

/// A chip on which tile 1 sends `messages` to an activity of tile 0 that is not running. The first hart of tile 0 computes;
/// the second one, if it is started, acknowledges core requests.
fn storm_begins(messages: u64) -> Machine {
    let mut machine = two_harts();
    let receive = Endpoint::Receive(ReceiveEndpoint {
        activity: 9,
        reply_endpoints: dtu::NO_ENDPOINT,
        buffer: MEMORY_BASE + 0x20000,
        slot_size: 64,
        slots: 32,
        position: 0,
        occupied: 0,
        unread: 0,
    });
    machine.unit_mut(0).unwrap().set_endpoint(8, receive);
    let send = Endpoint::Send(SendEndpoint {
        activity: dtu::TILEMUX_ACTIVITY,
        target_tile: 0,
        target_endpoint: 8,
        label: 1,
        credits: 32,
        credits_max: 32,
        message_size: 64,
        credit_endpoint: dtu::NO_ENDPOINT,
        reply: false,
        shares: 0,
        epoch: 0,
    });
    machine.unit_mut(1).unwrap().set_endpoint(9, send);

    let mut first = Program::default();
    start_second(&mut first);
    // Activity 5 runs.
    first
        .addi(T0, ZERO, 5)
        .store(T0, A0, 0x10)
        .addi(T0, ZERO, 1)
        .store(T0, A0, 8);
    first.li(S0, 2000);
    let again = first.here();
    first
        .addi(S0, S0, -1)
        .marker(S0, 0x100)
        .branch(1, S0, ZERO, again);
    first.exit(0);
    let mut second = Program::default();
    second
        .li(A0, DTU_BASE + 0x1000)
        .li(T0, 1 << 11)
        // mie: external interrupts wake the hart; none is taken, because mstatus disables them.
        .word(0x304 << 20 | T0 << 15 | 2 << 12 | 0x73);
    let wait = second.here();
    second
        .word(0x1050_0073)
        .load(T0, A0, 0x20)
        .marker(T0, 0x200)
        .store(ZERO, A0, 0x20)
        .branch(0, ZERO, ZERO, wait);
    let mut sender = Program::default();
    if messages > 0 {
        let page = MEMORY_BASE + 0x21000;
        sender
            .li(A0, DTU_BASE)
            .li(T0, page)
            .store(T0, A0, 8)
            .addi(T0, ZERO, 8)
            .store(T0, A0, 0x10)
            .li(S0, messages);
        let again = sender.here();
        let command = Command::new(Opcode::Send, 9, dtu::NO_ENDPOINT.into());
        sender.li(T0, command.0).store(T0, A0, 0);
        let busy = sender.here();
        sender
            .load(T0, A0, 0)
            .word(0xFF << 20 | T0 << 15 | 7 << 12 | T1 << 7 | 0x13)
            .branch(1, T1, ZERO, busy)
            .addi(S0, S0, -1)
            .branch(1, S0, ZERO, again);
    }
    sender.wfi_forever();
    machine.load_tile(0, SECOND, &second.bytes()).unwrap();
    start(&mut machine, 0, &first);
    start(&mut machine, 1, &sender);
    machine
}

fn storm(messages: u64) -> Machine {
    let mut machine = storm_begins(messages);
    let outcome = machine.run(RunLimit { ticks: 10_000_000 }, None);
    assert!(
        matches!(outcome, Outcome::Exit { code: 0, .. }),
        "{outcome:?}"
    );
    machine
}

#[test]
fn messages_for_others_interrupt_the_second_hart_and_leave_the_first_alone() {
    let (quiet, stormy) = (storm(0), storm(20));
    let of = |machine: &Machine, kind: u16| -> Vec<(Tick, u64)> {
        let all = machine.markers();
        all.iter()
            .filter(|m| m.kind == kind)
            .map(|m| (m.tick, m.value))
            .collect()
    };
    assert!(of(&quiet, 0x200).is_empty());
    let seen = of(&stormy, 0x200);
    // Several messages may arrive before one acknowledgement. Each announcement names an activity and an endpoint.
    assert!((1..=20).contains(&seen.len()), "{}", seen.len());
    assert!(
        seen.iter()
            .all(|(_, value)| value & 0xFFFF == 9 && value >> 16 & 0xFFFF == 8)
    );
    // The first hart computes to the tick as if nothing had arrived: a round takes as long as before. (At its start, when
    // code came from memory, it met the traffic of the other tile.)
    let rounds = |machine: &Machine| -> Vec<Tick> {
        let moments = of(machine, 0x100);
        moments
            .windows(2)
            .skip(2)
            .map(|w| w[1].0 - w[0].0)
            .collect()
    };
    assert!(rounds(&quiet) == rounds(&stormy));
    assert_eq!(rounds(&stormy).len(), 1997);
    let (first, last) = (of(&stormy, 0x100)[2].0, of(&stormy, 0x100)[1999].0);
    assert!(seen.iter().any(|(tick, _)| *tick > first && *tick < last));
    assert_eq!(stormy.hart(0).unwrap().statistics().traps, 0);
}

#[test]
fn software_interrupts_go_between_the_harts() {
    let mut machine = two_harts();
    const CLINT: u64 = bulkhead_abi::memory_map::CLINT_BASE;
    let wait_for_software = |p: &mut Program| {
        p.li(T0, 1 << 3)
            .word(0x304 << 20 | T0 << 15 | 2 << 12 | 0x73)
            .word(0x1050_0073);
    };
    let mut first = Program::default();
    start_second(&mut first);
    first
        .li(A0, CLINT)
        .addi(T0, ZERO, 1)
        .store_width(2, T0, A0, 4);
    wait_for_software(&mut first);
    first.marker(A0, 0x100).exit(0);
    let mut second = Program::default();
    second.li(A0, CLINT);
    wait_for_software(&mut second);
    second
        .marker(A0, 0x200)
        .store_width(2, ZERO, A0, 4)
        .addi(T0, ZERO, 1)
        .store_width(2, T0, A0, 0)
        .wfi_forever();
    machine.load_tile(0, SECOND, &second.bytes()).unwrap();
    start(&mut machine, 0, &first);
    let outcome = machine.run(RunLimit { ticks: 1_000_000 }, None);
    assert!(
        matches!(outcome, Outcome::Exit { code: 0, .. }),
        "{outcome:?}"
    );
    let markers = machine.markers();
    let kinds: Vec<u16> = markers.iter().map(|m| m.kind).collect();
    assert_eq!(kinds, [0x200, 0x100]);
}

#[test]
fn windows_do_not_change_a_tile_with_two_harts() {
    let whole = storm(20);
    let mut pieces = storm_begins(20);
    let outcome = super::isolation::in_pieces(&mut pieces, 10_000_000);
    assert!(
        matches!(outcome, Outcome::Exit { code: 0, .. }),
        "{outcome:?}"
    );
    assert_eq!(whole.markers(), pieces.markers());
}
