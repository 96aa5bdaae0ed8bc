//! The lines that the kernel prints when an activity stops.
//!
//! Why it exists: people and the runner read them, so their form is fixed and tested. What it deliberately does not know:
//! source lines; the runner resolves program counters.

use bulkhead_abi::syscall::StopCause;
use core::fmt;

/// Name of a RISC-V exception (privileged architecture, table of `mcause` values).
pub const fn cause_name(cause: u64) -> &'static str {
    match cause {
        0 => "instruction address misaligned",
        1 => "instruction access fault",
        2 => "illegal instruction",
        3 => "breakpoint",
        4 => "load address misaligned",
        5 => "load access fault",
        6 => "store address misaligned",
        7 => "store access fault",
        8 => "unknown environment call",
        12 => "instruction page fault",
        13 => "load page fault",
        15 => "store page fault",
        _ => "unknown cause",
    }
}

/// `activity N (path) on tile T stopped: cause`.
#[derive(Clone, Copy, Debug)]
pub struct Stopped<P> {
    /// The activity.
    pub activity: u16,
    /// Its path.
    pub path: P,
    /// Its tile.
    pub tile: u16,
    /// The cause of the stop.
    pub cause: StopCause,
}

impl<P: fmt::Display> fmt::Display for Stopped<P> {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        let (activity, path, tile) = (self.activity, &self.path, self.tile);
        write!(f, "activity {activity} ({path}) on tile {tile} stopped: ")?;
        match self.cause {
            // Programs in C end with negative numbers, too.
            StopCause::Exit(code) => write!(f, "exit {}", code as i64),
            StopCause::Fault { cause, pc, value } => {
                write!(f, "{} at {pc:#x}, value {value:#x}", cause_name(cause))
            }
            StopCause::Panic => f.write_str("panic"),
            StopCause::OutOfMemory => f.write_str("heap exhausted"),
            StopCause::Killed => f.write_str("stopped by its manager"),
            StopCause::TileLost => f.write_str("its tile was lost"),
        }
    }
}
