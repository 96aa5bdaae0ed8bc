//! The registers of a program in user mode at the moment when it trapped.
//!
//! Why it exists: machine-mode software reports a crash only after it has reused the registers. The copy lets the simulator show
//! the call chain. It changes no tick. What it deliberately does not know: what a trap means.

use super::UnhandledTrap;
use super::bus::Bus;
use super::core::Core;
use super::isa::Kind;
use super::load_store_queue::Action;
use super::trap::cause::USER_CALL;
use crate::types::Tick;
use bulkhead_abi::marker::{HEAP_EXHAUSTED, PANIC};

/// The last exception that went from user mode to machine mode.
#[derive(Clone, Debug)]
pub struct UserTrap {
    /// Cause, place and value.
    pub trap: UnhandledTrap,
    /// `satp` at that moment.
    pub translation: u64,
    /// Integer registers `x0` to `x31`, including the results of all loads that the program had begun.
    pub registers: [u64; 32],
    /// Registers whose loads were outstanding.
    waiting: u32,
}

impl UserTrap {
    /// No trap yet.
    pub const NONE: Self = Self {
        trap: UnhandledTrap {
            cause: 0,
            pc: 0,
            value: 0,
        },
        translation: 0,
        registers: [0; 32],
        waiting: 0,
    };
}

/// The bit of an integer register that an access writes once its line has arrived.
fn destination(action: &Action) -> u32 {
    match action {
        Action::Load(op)
        | Action::Part(op, ..)
        | Action::Reserve(op)
        | Action::Conditional(op, ..)
        | Action::Modify(op, _)
            if op.rd < 32 && !matches!(op.kind, Kind::Flw | Kind::Fld) =>
        {
            1 << op.rd
        }
        _ => 0,
    }
}

impl Core {
    /// Copies the registers of the program that traps now.
    pub fn remember_trap(&mut self, trap: UnhandledTrap) {
        let late = self.late.iter();
        let waiting = late.fold(0, |all, late| all | destination(&late.action));
        let registers = std::array::from_fn(|number| self.x[number]);
        self.user_trap = UserTrap {
            trap,
            translation: self.csr.satp,
            registers,
            waiting,
        };
    }

    /// An access was performed: the copy gets the loaded value if the program was waiting for it.
    pub fn complete_trap(&mut self, action: &Action) {
        if self.user_trap.waiting == 0 {
            return;
        }
        let bit = destination(action) & self.user_trap.waiting;
        // The other part of a load across two lines may be missing.
        let others = self.late.iter();
        let others = others.fold(0, |all, late| all | destination(&late.action));
        if bit & !others != 0 {
            let number = bit.trailing_zeros() as usize;
            self.user_trap.registers[number] = self.x[number];
            self.user_trap.waiting &= !bit;
        }
    }

    /// Software marked a crash with this cause. The tile is told only if that was the last trap: a program that its pager gave up
    /// on may have trapped long before other programs.
    #[cold]
    pub fn report_crash<B: Bus>(&mut self, bus: &mut B, now: Tick, cause: u64) {
        let last = self.user_trap.trap.cause;
        if last == cause || last == USER_CALL && matches!(cause, PANIC | HEAP_EXHAUSTED) {
            let stores: Vec<_> = self.waiting_stores().collect();
            bus.crashed(now, &self.user_trap, &stores);
        }
    }
}
