//! One RV64GC hart: what an instruction does, and how long it takes.
//!
//! It exists so that unmodified RISC-V binaries run with cycle-level timing. It does not know what lies behind its
//! [`Bus`]: caches, networks, devices and other harts are the tile's business. It is resumable at every point where it
//! depends on others, and its results do not depend on the horizons with which it is driven.

pub mod bus;
pub mod config;
pub mod fp;
pub mod statistics;

pub use bus::{Access, Bus, BusFault, DeviceRead, DeviceWrite, Timing};
pub use config::HartConfig;
pub use statistics::HartStatistics;

use crate::types::Tick;

/// An interrupt input of the hart.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum InterruptLine {
    /// Machine software interrupt (MSIP).
    Software,
    /// Machine timer interrupt (MTIP).
    Timer,
    /// Machine external interrupt (MEIP).
    External,
    /// Supervisor external interrupt (the external part of SEIP).
    SupervisorExternal,
}

/// Why [`Hart::run`] came back.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Stop {
    /// The next block would start at or after the horizon.
    Horizon,
    /// The next operation is a device access at `Hart::time()`, not before the horizon: run again when the hart is the
    /// earliest.
    Device,
    /// The hart needs the completion of this token.
    Pending(u32),
    /// In WFI: an interrupt continues it.
    WaitForInterrupt,
    /// Asleep by a device write: `Hart::wake` or an enabled interrupt continues it.
    Sleep,
    /// Not started, or stopped by `Hart::stop`.
    Halted,
    /// A trap that no handler can take.
    Unhandled(UnhandledTrap),
}

/// A trap in machine mode whose handler cannot be fetched.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct UnhandledTrap {
    /// The value for `mcause`.
    pub cause: u64,
    /// Where it happened.
    pub pc: u64,
    /// The value for `mtval`.
    pub value: u64,
}

/// One hart. See the module's documentation.
pub struct Hart {
    time: Tick,
    statistics: HartStatistics,
    registers: [u64; 33],
    pc: u64,
}

impl Hart {
    /// A halted hart with this `mhartid`.
    pub fn new(config: &HartConfig, hart_id: u64) -> Self {
        let _ = (config, hart_id);
        Self {
            time: 0,
            statistics: HartStatistics::default(),
            registers: [0; 33],
            pc: 0,
        }
    }

    /// Resets the architectural and timing state and starts at `pc` in machine mode at the tick `at`.
    pub fn reset(&mut self, pc: u64, at: Tick) {
        self.pc = pc;
        self.time = at;
    }

    /// Halts the hart at a block boundary or at its stop; whatever it waited for is forgotten.
    pub fn stop(&mut self) {}

    /// Whether the hart is halted.
    pub fn is_halted(&self) -> bool {
        true
    }

    /// The next moment at which the hart acts. While it waits for an interrupt, a wake-up or a token: when it began to wait.
    pub fn time(&self) -> Tick {
        self.time
    }

    /// Runs blocks that start before `horizon`.
    pub fn run<B: Bus>(&mut self, bus: &mut B, horizon: Tick) -> Stop {
        let _ = (bus, horizon);
        Stop::Halted
    }

    /// Tells that the access of `token` completed at `at`.
    pub fn complete(&mut self, token: u32, at: Tick) {
        let _ = (token, at);
    }

    /// Sets an interrupt input at the tick `at`. Also continues a hart in WFI or asleep if the interrupt is enabled in `mie`.
    pub fn set_interrupt(&mut self, line: InterruptLine, level: bool, at: Tick) {
        let _ = (line, level, at);
    }

    /// Ends the sleep that a device write began; without effect on a hart that does not sleep.
    pub fn wake(&mut self, at: Tick) {
        let _ = at;
    }

    /// Forgets which lines are surely in the first-level caches. The tile calls it whenever a line may have left a first-level
    /// cache, or lost its dirty state, by anything but the hart's own accesses.
    pub fn forget_lines(&mut self) {}

    /// An integer register; `x0` is 0.
    pub fn register(&self, number: usize) -> u64 {
        self.registers[number & 31]
    }

    /// Sets an integer register; `x0` stays 0.
    pub fn set_register(&mut self, number: usize, value: u64) {
        if number & 31 != 0 {
            self.registers[number & 31] = value;
        }
    }

    /// The program counter of the next instruction.
    pub fn pc(&self) -> u64 {
        self.pc
    }

    /// What the hart counted since the reset.
    pub fn statistics(&self) -> &HartStatistics {
        &self.statistics
    }
}
