//! Shared by the tests of chips with several parts.

use super::*;
use bulkhead_machine::machine::{Outcome, RunLimit};

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
