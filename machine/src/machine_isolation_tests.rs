//! What other tiles cannot change, and what the host cannot change.

use super::*;

#[test]
fn tiles_that_share_nothing_do_not_disturb_each_other() {
    // On a crossbar, tiles with their own memory tiles share no link.
    let alone = streams(4, &[0]);
    let with_others = streams(4, &[0, 1, 2, 3]);
    assert_eq!(timeline(&alone, 0), timeline(&with_others, 0));
    assert!(timeline(&alone, 0).len() > 1);
    let disturbed = streams(4, &[0, 0, 0, 0]);
    assert!(timeline(&disturbed, 0).last() != timeline(&alone, 0).last());
    let ledger = disturbed.ledger();
    let culprits = ledger.culprits_of(Owner::new(0, dtu::TILEMUX_ACTIVITY), false);
    assert!(culprits.iter().filter(|b| b.culprit.tile != 0).count() == 3);
    // Alone, only the tile itself and the refresh cause waits.
    assert!(
        alone
            .ledger()
            .bookings()
            .iter()
            .all(|b| b.victim == b.culprit)
    );
}

/// Endless streams with a given step, with or without stores.
fn walker(bytes: u64, step: i32, store: bool) -> Program {
    let mut p = Program::default();
    p.li(S0, MEMORY_BASE + 0x10000)
        .li(S1, MEMORY_BASE + 0x10000 + bytes);
    let pass = p.here();
    p.addi(T0, S0, 0);
    let again = p.here();
    p.load(T1, T0, 0).addi(T1, T1, 1);
    if store {
        p.store(T1, T0, 0);
    }
    p.marker(T1, 0x100).addi(T0, T0, step);
    p.branch(4, T0, S1, again);
    p.branch(0, ZERO, ZERO, pass);
    p
}

proptest::proptest! {
    #![proptest_config(proptest::prelude::ProptestConfig::with_cases(12))]
    /// Whatever adversaries do on their own routers and memories, the victim's timeline is the same to the tick.
    #[test]
    fn no_adversary_reaches_a_tile_that_shares_nothing(
        victim in (12u32..18, 1i32..30, proptest::prelude::any::<bool>()),
        adversaries in proptest::collection::vec((12u32..18, 1i32..30, proptest::prelude::any::<bool>(), 0u64..2000), 3),
    ) {
        let run = |others: bool| {
            let mut config = platform(PlatformKind::Tiled, 4, 4);
            config.network.topology = Topology::StarMesh { columns: 2, rows: 2 };
            for i in 0..4 {
                config.tiles[i].router = i as u16;
                config.memories[i].router = i as u16;
            }
            let mut machine = Machine::new(&config).unwrap();
            give_memory(&mut machine, 0, 100, 0);
            start(&mut machine, 0, &walker(1 << victim.0, victim.1 * 16, victim.2));
            if others {
                for (i, a) in adversaries.iter().enumerate() {
                    let tile = i as u16 + 1;
                    give_memory(&mut machine, tile, 100 + tile, 0);
                    let program = walker(1 << a.0, a.1 * 16, a.2);
                    machine.load_tile(tile, MEMORY_BASE, &program.bytes()).unwrap();
                    // They begin at different moments.
                    machine.run(RunLimit { ticks: machine.now() + a.3 }, None);
                    machine.start_hart(tile, MEMORY_BASE, 0, 0).unwrap();
                }
            }
            assert_eq!(machine.run(RunLimit { ticks: 200_000 }, None), Outcome::Limit);
            timeline(&machine, 0)
        };
        let (alone, with) = (run(false), run(true));
        proptest::prop_assert!(alone.len() > 100);
        proptest::prop_assert_eq!(alone, with);
    }
}

#[test]
fn equal_runs_have_equal_digests() {
    let a = streams(2, &[0, 1, 0, 1]);
    let b = streams(2, &[0, 1, 0, 1]);
    let c = streams(2, &[0, 1, 1, 1]);
    assert_eq!(a.digest(), b.digest());
    assert_ne!(a.digest(), c.digest());
}

/// Runs to `end` in pieces of 1 to 300 ticks, so windows end anywhere.
pub(super) fn in_pieces(machine: &mut Machine, end: Tick) -> Outcome {
    let mut step = 1u64;
    loop {
        step = step * 75 % 65_537;
        let until = (machine.now() + step % 300 + 1).min(end);
        let outcome = machine.run(RunLimit { ticks: until }, None);
        if outcome != Outcome::Limit || until == end {
            return outcome;
        }
    }
}

/// The kernel's software writes the endpoints of its own unit, at any time.
#[test]
fn rights_of_a_privileged_unit_do_not_change() {
    let mut machine = Machine::new(&platform(PlatformKind::Tiled, 2, 1)).unwrap();
    for (tile, changes) in [(0, false), (1, true)] {
        let before = machine.unit(tile).unwrap().rights();
        give_memory(&mut machine, tile, 100, 0);
        let after = machine.unit(tile).unwrap().rights();
        assert_eq!(before != after, changes, "{tile}");
        assert_eq!(machine.unit(tile).unwrap().leads_to().is_some(), changes);
    }
}

/// Neither unit leads to the other tile. The second tile is in an endless loop, and the first one ends the run.
#[test]
fn a_tile_that_nobody_can_reach_does_not_run_on_after_the_end() {
    let mut config = platform(PlatformKind::Tiled, 2, 2);
    config
        .tiles
        .iter_mut()
        .for_each(|tile| tile.privileged = false);
    let mut machine = Machine::new(&config).unwrap();
    // Its misses end while the other one is in its loop.
    let mut endless = Program::default();
    endless.li(S0, MEMORY_BASE + 0x10000);
    for line in 0..8 {
        endless.load(T0, S0, 64 * line).addi(T0, T0, 1);
    }
    let forever = endless.here();
    endless.branch(0, ZERO, ZERO, forever);
    let mut ends = Program::default();
    ends.li(A0, 100_000);
    let again = ends.here();
    ends.addi(A0, A0, -1).branch(1, A0, ZERO, again);
    ends.exit(0);
    for (tile, program) in [(0, &ends), (1, &endless)] {
        give_memory(&mut machine, tile, 100 + tile, 0);
        start(&mut machine, tile, program);
    }
    let outcome = machine.run(LIMIT, None);
    let Outcome::Exit {
        at,
        tile: 0,
        code: 0,
    } = outcome
    else {
        panic!("{outcome:?}");
    };
    // A branch takes at least a cycle of two ticks.
    let least = 2 * machine.statistics().harts[1].counters.instructions;
    assert!(least < at + 4000, "{least} ticks of {at}");
}

#[test]
fn windows_do_not_change_a_run() {
    let whole = streams(2, &[0, 1, 0, 1]);
    let mut pieces = Machine::new(&platform(PlatformKind::Tiled, 4, 2)).unwrap();
    for tile in 0..4u16 {
        give_memory(&mut pieces, tile, 100 + tile % 2, tile as u64 * (1 << 20));
        start(&mut pieces, tile, &stream(0x14000));
    }
    assert_eq!(in_pieces(&mut pieces, 2_400_000), Outcome::Limit);
    assert_eq!(whole.digest(), pieces.digest());
}

#[test]
fn windows_do_not_change_messages() {
    let mut whole = messages();
    let outcome = whole.run(LIMIT, None);
    let mut pieces = messages();
    assert_eq!(in_pieces(&mut pieces, LIMIT.ticks), outcome);
    // The other tile may have continued for part of a window after the end, so markers and latencies are compared.
    assert_eq!(whole.markers(), pieces.markers());
    assert_eq!(whole.ledger().latencies(), pieces.ledger().latencies());
}
