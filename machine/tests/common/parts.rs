//! Shared by the tests of chips with several parts.

use super::*;
use bulkhead_machine::ledger::Ended;
use bulkhead_machine::machine::{Outcome, RunLimit};
use bulkhead_machine::noc::Transaction;
use bulkhead_machine::types::Tick;

/// A chip with a program on each of these harts, each at a place of its own. It keeps its transactions.
pub fn machine(config: &PlatformConfig, programs: &[((TileId, usize), Program)]) -> Machine {
    let mut machine = Machine::new(config).expect("valid");
    machine.keep_transactions();
    for (i, (hart, program)) in programs.iter().enumerate() {
        start_hart(&mut machine, *hart, program, 0x1_0000 * (i as u64 + 1));
    }
    machine
}

/// Runs until nothing can happen any more.
pub fn idle(machine: &mut Machine) {
    let limit = RunLimit { ticks: 40_000_000 };
    let end = machine.run(limit, None);
    assert!(matches!(end, Outcome::Idle { .. }), "{end:?}");
}

/// The word at an address, as the harts of a tile find it.
pub fn word(machine: &Machine, tile: TileId, address: u64) -> u64 {
    let mut word = [0; 8];
    machine.peek(tile, address, &mut word).expect("memory");
    u64::from_le_bytes(word)
}

/// The values of all markers of a kind.
pub fn marked(machine: &Machine, kind: u32) -> Vec<u64> {
    let markers = machine.markers().into_iter();
    let own = markers.filter(|m| u32::from(m.kind) == kind);
    own.map(|m| m.value).collect()
}

/// Begins and ends of all transactions of a kind, in order.
pub fn times(machine: &Machine, transaction: Transaction) -> Vec<(Tick, Tick)> {
    let all = machine.ledger().transactions().iter();
    let own = all.filter(|one: &&Ended| one.transaction == transaction);
    let mut times: Vec<_> = own.map(|one| (one.begin, one.end)).collect();
    times.sort_unstable();
    times
}

/// Markers of a kind at a hart: their ticks and values.
pub fn marks(machine: &Machine, (tile, port): (TileId, usize), kind: u32) -> Vec<(Tick, u64)> {
    let markers = machine.markers();
    let own = markers
        .iter()
        .filter(|m| (m.tile, usize::from(m.activity), u32::from(m.kind)) == (tile, port, kind));
    own.map(|marker| (marker.tick, marker.value)).collect()
}
