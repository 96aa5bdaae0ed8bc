//! Core-local interruptor: software interrupt and timer of one hart.
//!
//! Register map of the SiFive CLINT, as on QEMU's `virt` board. The timer counts at the platform's timebase, independent
//! of the hart's clock; `mtime` follows the tile's [`Clock`] and cannot be written.

use super::clock::{Clock, ClockConfig};
use crate::types::Tick;
use bulkhead_abi::memory_map::{CLINT_MSIP, CLINT_MTIME, CLINT_MTIMECMP};

/// The interruptor of a tile with one hart.
#[derive(Clone, Debug)]
pub struct Clint {
    clock: Clock,
    msip: bool,
    compare: u64,
}

/// The tile's work after a write.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ClintEffect {
    /// Nothing.
    None,
    /// Set the software interrupt line to this level.
    Software(bool),
    /// The compare register changed: the timer line is high from this tick on and low before ([`Tick::MAX`]: never
    /// high).
    Timer(Tick),
}

impl Clint {
    /// After reset: no interrupt, compare register at its maximum.
    pub fn new(ticks_per_second: u64, timebase_hz: u64) -> Self {
        Self::of(Clock::new(
            ticks_per_second,
            timebase_hz,
            ClockConfig::default(),
        ))
    }

    /// The same with a clock of the tile's own.
    pub fn of(clock: Clock) -> Self {
        Self {
            clock,
            msip: false,
            compare: u64::MAX,
        }
    }

    /// The timer's value at a tick.
    pub fn time(&self, now: Tick) -> u64 {
        self.clock.time(now)
    }

    /// The first tick at which the timer reaches the compare register.
    pub fn deadline(&self) -> Tick {
        self.clock.reaches(self.compare)
    }

    fn register(&self, now: Tick, offset: u64) -> Option<u64> {
        match offset & !7 {
            CLINT_MSIP => Some(self.msip as u64),
            CLINT_MTIMECMP => Some(self.compare),
            CLINT_MTIME => Some(self.time(now)),
            _ => None,
        }
    }

    /// Reads 4 or 8 aligned bytes; `None` for other widths. Registers that do not exist read as 0.
    pub fn read(&self, now: Tick, offset: u64, bytes: u8) -> Option<u64> {
        if !matches!(bytes, 4 | 8) || !offset.is_multiple_of(bytes as u64) {
            return None;
        }
        let value = self.register(now, offset).unwrap_or(0);
        Some(if bytes == 8 {
            value
        } else {
            value >> (8 * (offset & 4)) & 0xFFFF_FFFF
        })
    }

    /// Writes 4 or 8 aligned bytes; `None` for other widths. Writes to `mtime` and elsewhere are ignored.
    pub fn write(&mut self, offset: u64, bytes: u8, value: u64) -> Option<ClintEffect> {
        if !matches!(bytes, 4 | 8) || !offset.is_multiple_of(bytes as u64) {
            return None;
        }
        Some(match offset & !7 {
            CLINT_MSIP if offset & 4 == 0 => {
                self.msip = value & 1 != 0;
                ClintEffect::Software(self.msip)
            }
            CLINT_MTIMECMP => {
                let shift = 8 * (offset & 4);
                let mask = if bytes == 8 {
                    u64::MAX
                } else {
                    0xFFFF_FFFF << shift
                };
                self.compare = self.compare & !mask | value << shift & mask;
                ClintEffect::Timer(self.deadline())
            }
            _ => ClintEffect::None,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn timer_counts_at_the_timebase() {
        // 4 GHz ticks, 10 MHz timebase: 400 ticks per count.
        let mut clint = Clint::new(4_000_000_000, 10_000_000);
        assert_eq!(
            [clint.time(399), clint.time(400), clint.time(4_000_000_000)],
            [0, 1, 10_000_000]
        );
        assert_eq!(clint.deadline(), Tick::MAX);
        assert_eq!(
            clint.write(CLINT_MTIMECMP, 8, 5),
            Some(ClintEffect::Timer(2000))
        );
        // The upper half alone.
        assert_eq!(
            clint.write(CLINT_MTIMECMP + 4, 4, 1),
            Some(ClintEffect::Timer(400 * ((1 << 32) + 5)))
        );
        assert_eq!(clint.read(0, CLINT_MTIMECMP + 4, 4), Some(1));
        assert_eq!(clint.read(800, CLINT_MTIME, 8), Some(2));
    }

    #[test]
    fn timebase_that_does_not_divide_the_tick() {
        // 3 ticks per second, 2 counts per second: count 1 is reached at tick 2 (1.5 rounded up).
        let mut clint = Clint::new(3, 2);
        assert_eq!(
            clint.write(CLINT_MTIMECMP, 8, 1),
            Some(ClintEffect::Timer(2))
        );
        assert_eq!([clint.time(1), clint.time(2)], [0, 1]);
    }

    #[test]
    fn software_interrupt_and_odd_accesses() {
        let mut clint = Clint::new(1, 1);
        assert_eq!(
            clint.write(CLINT_MSIP, 4, 3),
            Some(ClintEffect::Software(true))
        );
        assert_eq!(clint.read(0, CLINT_MSIP, 4), Some(1));
        assert_eq!(clint.write(CLINT_MSIP, 2, 3), None);
        assert_eq!(clint.read(0, CLINT_MTIME + 2, 4), None);
        assert_eq!(clint.write(CLINT_MTIME, 8, 3), Some(ClintEffect::None));
        assert_eq!(clint.read(0, 0x8000, 8), Some(0));
    }
}
