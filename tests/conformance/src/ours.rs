//! Runs a batch on the machine's hart with a flat bus: the same addresses as QEMU's virt machine.
//!
//! Memory answers at once, or after random delays: the results must be the same.
//!
//! Only the hart is under test here, so the bus is this crate's own: memory, the core-local interruptor, the exit device.

use std::collections::BTreeSet;

use bulkhead_machine::hart::{
    Access, Bus, BusFault, DeviceRead, DeviceWrite, Hart, HartConfig, InterruptLine,
    IntervalConfig, Place, Stop, Timing,
};

use crate::layout::*;
use crate::random::Random;

/// Ticks in which `mtime` counts one up.
const TICKS_OF_TIMER: u64 = 10;

/// Ticks that a batch may take for each test; a program that needs more never ends.
const TICKS_PER_TEST: u64 = 20_000_000;

/// Why the hart gave no result.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// Some test hangs.
    #[error("the hart did not end within its ticks (pc {0:#x})")]
    Timeout(u64),
    /// It stopped for a reason that these programs never give.
    #[error("the hart stopped: {0}")]
    Stopped(String),
    /// The exit device got another value than "pass".
    #[error("the programs ended with {0:#x}")]
    Exit(u64),
}

struct Flat {
    memory: Vec<u8>,
    software: bool,
    compare: u64,
    exit: Option<u64>,
    changed: bool,
    /// If memory is slow: the state of the delays.
    delays: Option<Random>,
    /// Bytes of a line of the hart.
    line: u64,
    /// Outstanding accesses: when they complete, their tokens, and their addresses.
    under_way: BTreeSet<(u64, u32, u64)>,
    token: u32,
}

impl Flat {
    fn timing(&mut self, now: u64, physical: u64) -> Timing {
        let Some(random) = &mut self.delays else {
            return Timing::Hit;
        };
        match random.below(8) {
            0 | 1 => Timing::Ready(now + 4 + random.below(12)),
            2 => {
                self.token += 1;
                self.under_way
                    .insert((now + 20 + random.below(90), self.token, physical));
                Timing::Pending(self.token)
            }
            _ => Timing::Hit,
        }
    }

    /// The line of an address, for the hart.
    fn line(&mut self, physical: u64) -> Option<(u64, &mut [u8])> {
        let line = physical & !(self.line - 1);
        let range = self.range(line, self.line as u8).ok()?;
        Some((line, &mut self.memory[range]))
    }

    fn range(&self, physical: u64, bytes: u8) -> Result<std::ops::Range<usize>, BusFault> {
        let begin = physical.checked_sub(DRAM).ok_or(BusFault)?;
        if begin > DRAM_BYTES - u64::from(bytes) {
            return Err(BusFault);
        }
        Ok(begin as usize..begin as usize + usize::from(bytes))
    }
}

impl Bus for Flat {
    fn fetch(&mut self, now: u64, physical: u64) -> Timing {
        self.timing(now, physical)
    }

    fn data(&mut self, now: u64, physical: u64, _: Access) -> Timing {
        self.timing(now, physical)
    }

    fn read(&mut self, physical: u64, bytes: u8) -> Result<u64, BusFault> {
        let range = self.range(physical, bytes)?;
        let mut value = [0; 8];
        value[..usize::from(bytes)].copy_from_slice(&self.memory[range]);
        Ok(u64::from_le_bytes(value))
    }

    fn allows(&self, physical: u64, bytes: u64, _: bool) -> bool {
        physical >= DRAM && physical - DRAM <= DRAM_BYTES - bytes
    }

    fn place(&self, physical: u64, _: bool) -> Place {
        physical - DRAM
    }

    fn read_place(&mut self, place: Place, bytes: u8) -> u64 {
        self.read(DRAM + place, bytes).expect("a line of memory")
    }

    fn write_place(&mut self, place: Place, bytes: u8, value: u64) {
        let range = self.range(DRAM + place, bytes).expect("a line of memory");
        self.memory[range].copy_from_slice(&value.to_le_bytes()[..usize::from(bytes)]);
    }

    fn is_device(&self, physical: u64) -> bool {
        physical & !0xfff == EXIT || physical & !0xffff == CLINT_SOFTWARE
    }

    fn device_read(&mut self, now: u64, physical: u64, bytes: u8) -> Result<DeviceRead, BusFault> {
        let (value, base) = match physical & !7 {
            CLINT_SOFTWARE => (self.software.into(), CLINT_SOFTWARE),
            CLINT_COMPARE => (self.compare, CLINT_COMPARE),
            CLINT_TIME => (self.timer(now), CLINT_TIME),
            _ => return Err(BusFault),
        };
        let value = value >> (8 * (physical - base));
        let value = if bytes < 8 {
            value & ((1 << (8 * bytes)) - 1)
        } else {
            value
        };
        Ok(DeviceRead { value, extra: 0 })
    }

    fn device_write(
        &mut self,
        _: u64,
        physical: u64,
        bytes: u8,
        value: u64,
    ) -> Result<DeviceWrite, BusFault> {
        match (physical, bytes) {
            (CLINT_SOFTWARE, 4) => self.software = value & 1 != 0,
            (CLINT_COMPARE, 8) => self.compare = value,
            (EXIT, 4) => self.exit = Some(value),
            _ => return Err(BusFault),
        }
        self.changed = true;
        Ok(DeviceWrite {
            extra: 0,
            sleep: false,
        })
    }

    fn epoch(&self) -> u32 {
        0
    }

    fn timer(&self, now: u64) -> u64 {
        now / TICKS_OF_TIMER
    }

    fn limit(&self) -> u64 {
        let next = self.under_way.first().map_or(u64::MAX, |(at, ..)| *at);
        if self.changed { 0 } else { next }
    }

    fn marker(&mut self, _: u64, _: u64, _: u16, _: u64, _: bool) {}
}

/// Runs memory `image` from its first byte and returns the memory afterwards. `delays` seeds the delays of a slow memory;
/// the hart then has the smallest buffers.
///
/// # Errors
/// When the programs do not end as they should.
pub fn run(
    image: &[u8],
    tests: usize,
    delays: Option<u64>,
    interval: Option<IntervalConfig>,
) -> Result<Vec<u8>, Error> {
    let mut memory = image.to_vec();
    memory.resize(DRAM_BYTES as usize, 0);
    let mut bus = Flat {
        memory,
        software: false,
        compare: u64::MAX,
        exit: None,
        changed: false,
        delays: delays.map(Random::new),
        line: 64,
        under_way: BTreeSet::new(),
        token: 0,
    };
    let mut config = HartConfig {
        interval,
        ..HartConfig::default()
    };
    if delays.is_some() {
        // The smallest values allowed.
        config = HartConfig {
            line: 16,
            predictor_entries: 0,
            return_stack: 0,
            store_buffer: 1,
            load_buffer: 1,
            tlb_entries: 4,
            l2_tlb_entries: 0,
            ..config
        };
    }
    bus.line = config.line.into();
    let mut hart = Hart::new(&config, 0);
    hart.reset(DRAM, 0);
    let limit = TICKS_PER_TEST * (tests as u64 + 1);
    loop {
        let now = hart.time();
        if now > limit {
            return Err(Error::Timeout(hart.pc()));
        }
        bus.changed = false;
        hart.set_interrupt(InterruptLine::Software, bus.software, now);
        let due = bus.timer(now) >= bus.compare;
        hart.set_interrupt(InterruptLine::Timer, due, now);
        while let Some(&(at, token, physical)) = bus.under_way.first().filter(|next| next.0 <= now)
        {
            bus.under_way.pop_first();
            hart.complete(token, at, bus.line(physical));
        }
        // The end of its ticks is checked occasionally.
        let due_at = if due {
            u64::MAX
        } else {
            bus.compare.saturating_mul(TICKS_OF_TIMER)
        };
        let horizon = bus.limit().min(due_at).min(now + TICKS_PER_TEST);
        let stop = hart.run(&mut bus, horizon);
        if let Some(value) = bus.exit {
            // The programs' stores reach memory, although the programs did not wait for them.
            while let Some((at, token, physical)) = bus.under_way.pop_first() {
                hart.complete(token, at, bus.line(physical));
            }
            return if value == 0x5555 {
                Ok(bus.memory)
            } else {
                Err(Error::Exit(value))
            };
        }
        match stop {
            Stop::Horizon | Stop::Device | Stop::Tokens => {}
            Stop::Pending(_) => {
                // Out of order, the hart may continue with any of them.
                if let Some((at, token, physical)) = bus.under_way.pop_first() {
                    hart.complete(token, at, bus.line(physical));
                }
            }
            Stop::WaitForInterrupt if bus.compare < limit / TICKS_OF_TIMER => {
                // Nothing else can happen before the timer.
                let at = (bus.compare * TICKS_OF_TIMER).max(hart.time());
                hart.set_interrupt(InterruptLine::Timer, true, at);
            }
            other => return Err(Error::Stopped(format!("{other:?} at {:#x}", hart.pc()))),
        }
    }
}
