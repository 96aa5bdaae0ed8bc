//! The small devices of a cluster: a core-local interruptor with registers for each hart, the lockdown registers of the second level,
//! console, exit device, host's word, and the interrupt controller.
//!
//! Why it exists: all harts use them, each access at its moment ([`crate::hart::Bus::device_horizon`]). What it deliberately does not
//! know: when an interrupt reaches its hart.

use super::capacity::{Operation, Outcome};
use super::controller::Controller;
use super::directory::{Fill, PORTS};
use super::messages::Port;
use crate::config::{ClusterConfig, PlatformConfig, TileConfig};
use crate::device::clint::ClintEffect;
use crate::device::{Clint, Htif, HtifEffect, Plic, Uart, exit_code};
use crate::tile::End;
use crate::types::Tick;
use bulkhead_abi::memory_map::{
    CAPACITY_BASE, CAPACITY_SIZE, CLINT_BASE, CLINT_MSIP, CLINT_MTIME, CLINT_MTIMECMP, CLINT_SIZE,
    EXIT_BASE, LOCKDOWN_BASE, LOCKDOWN_FIRST, LOCKDOWN_SIZE, PLIC_BASE, PLIC_SIZE, UART_BASE,
    UART_SIZE,
};
use std::collections::VecDeque;

const EXIT_SIZE: u64 = 0x1000;

/// See the module's documentation.
#[derive(Debug)]
pub(super) struct Devices {
    /// The interruptor's registers for the hart at each port.
    clints: Vec<Clint>,
    /// The number of the hart at each port.
    numbers: Vec<u16>,
    pub uart: Option<Uart>,
    exit: bool,
    /// Bit i: way i exists.
    ways: u64,
    /// The lockdown registers by port and kind of fill, as they were written last. Bit i: fills do not take way i.
    locked: [[u32; 2]; PORTS],
    /// If other parts interrupt this one.
    interrupts: Option<Interrupts>,
    /// The capacity controller, which replaces the lockdown registers.
    controller: Option<Controller>,
    pub htif: Htif,
    /// The earliest end of the run: when, by which hart, and how.
    pub end: Option<(Tick, Port, End)>,
}

/// The effect of a device write on a hart.
#[derive(Clone, Copy, Debug)]
pub(super) enum Effect {
    /// The level of its software interrupt.
    Software(bool),
    /// Its timer interrupt is due from this tick on.
    Timer(Tick),
    /// The level of its external interrupt: of supervisor mode, or of machine mode.
    External {
        /// Of supervisor mode.
        supervisor: bool,
        /// The level.
        level: bool,
    },
}

/// The interrupt controller with its lines to the harts.
#[derive(Debug)]
struct Interrupts {
    plic: Plic,
    /// Messages on the way from the cluster's border, each with the moment at which the controller has it.
    coming: VecDeque<(Tick, u32)>,
    /// The level that each context's line has, or will have when everything on the way has arrived.
    levels: Vec<bool>,
    /// For each port: no level arrives before this moment, so that levels arrive in the order in which they were made.
    until: Vec<Tick>,
}

impl Interrupts {
    fn new(ports: usize) -> Self {
        Self {
            plic: Plic::new(2 * ports),
            coming: VecDeque::new(),
            levels: vec![false; 2 * ports],
            until: vec![0; ports],
        }
    }

    /// Something has changed: `affect` gets every line that changes as a result. `at` says when a change reaches the hart at a port.
    fn lines(&mut self, at: &impl Fn(usize) -> Tick, affect: &mut impl FnMut(usize, Tick, Effect)) {
        for (context, before) in self.levels.iter_mut().enumerate() {
            let level = self.plic.level(context);
            if level == *before {
                continue;
            }
            *before = level;
            let port = context / 2;
            let when = at(port).max(self.until[port]);
            self.until[port] = when;
            let supervisor = context % 2 == 1;
            affect(port, when, Effect::External { supervisor, level });
        }
    }
}

/// A register of the lockdown registers that exists.
fn lockdown(offset: u64, bytes: u8, harts: usize) -> Option<(Port, Fill)> {
    let index = offset.checked_sub(LOCKDOWN_FIRST)? / 4;
    let what = match index % 2 {
        0 => Fill::Data,
        _ => Fill::Instructions,
    };
    let exists = bytes == 4 && offset.is_multiple_of(4) && index / 2 < harts as u64;
    exists.then_some(((index / 2) as Port, what))
}

/// Offset in a device's range.
fn within(physical: u64, base: u64, size: u64) -> Option<u64> {
    let offset = physical.wrapping_sub(base);
    (offset < size).then_some(offset)
}

impl Devices {
    pub fn new(config: &TileConfig, cluster: &ClusterConfig, platform: &PlatformConfig) -> Self {
        let clint = |_: &u16| Clint::new(platform.ticks_per_second, platform.timebase_hz);
        let ways = config
            .l2
            .as_ref()
            .map_or(0, |l2| u64::MAX >> (64 - l2.ways));
        let count = config.l2.as_ref().map_or(0, |l2| l2.ways);
        let controller = cluster.capacity.as_ref();
        let mut locked = [[0; 2]; PORTS];
        for (port, fills) in cluster.fills.iter().enumerate().filter(|f| *f.1 != 0) {
            locked[port] = [(ways & !fills) as u32; 2];
        }
        Self {
            ways,
            locked,
            controller: controller.map(|config| Controller::new(config, count)),
            clints: cluster.harts.iter().map(clint).collect(),
            numbers: cluster.harts.clone(),
            interrupts: platform
                .is_interrupted(config.id)
                .then(|| Interrupts::new(cluster.harts.len())),
            uart: config.uart.then(Uart::new),
            exit: config.exit,
            htif: Htif::default(),
            end: None,
        }
    }

    /// A lockdown register that exists.
    fn lockdown(&self, offset: u64, bytes: u8) -> Option<(Port, Fill)> {
        let there = self.controller.is_none();
        there
            .then(|| lockdown(offset, bytes, self.numbers.len()))
            .flatten()
    }

    /// The value of `mtime`.
    pub fn time(&self, now: Tick) -> u64 {
        self.clints[0].time(now)
    }

    /// The port of the hart that a register of the interruptor belongs to, and the register's offset for a single hart.
    fn register(&self, offset: u64) -> Option<(usize, u64)> {
        let (base, size) = match offset {
            CLINT_MTIME.. => return Some((0, offset)),
            CLINT_MTIMECMP.. => (CLINT_MTIMECMP, 8),
            _ => (CLINT_MSIP, 4),
        };
        let (number, within) = ((offset - base) / size, (offset - base) % size);
        let port = self.numbers.iter().position(|n| u64::from(*n) == number)?;
        Some((port, base + within))
    }

    /// A message of another part comes to the interrupt controller at this moment, which is not before that of any earlier one.
    pub fn interrupt(&mut self, at: Tick, source: u32) {
        let interrupts = self.interrupts.as_mut();
        let interrupts =
            interrupts.expect("only a cluster with an interrupt controller is interrupted");
        interrupts.coming.push_back((at, source));
    }

    /// When the next message comes to the interrupt controller.
    #[inline]
    pub fn next_interrupt(&self) -> Tick {
        let next = self.interrupts.as_ref().and_then(|all| all.coming.front());
        next.map_or(Tick::MAX, |(at, _)| *at)
    }

    /// The next message has come.
    pub fn take_interrupt(&mut self, affect: &mut impl FnMut(usize, Tick, Effect)) {
        let interrupts = self.interrupts.as_mut().expect("a message was on its way");
        let (at, source) = interrupts
            .coming
            .pop_front()
            .expect("a message was on its way");
        interrupts.plic.message(source);
        interrupts.lines(&|_| at, affect);
    }

    /// An access to the interrupt controller: reads, or writes the value. `None`: the address is not there; `Some(None)`: nothing answers.
    /// `at` says when a change of a line reaches the hart at a port.
    pub fn controller(
        &mut self,
        (physical, bytes): (u64, u8),
        write: Option<u64>,
        at: &impl Fn(usize) -> Tick,
        affect: &mut impl FnMut(usize, Tick, Effect),
    ) -> Option<Option<u64>> {
        let offset = within(physical, PLIC_BASE, PLIC_SIZE)?;
        let interrupts = self.interrupts.as_mut()?;
        let value = match write {
            None => interrupts.plic.read(offset, bytes),
            Some(value) => interrupts.plic.write(offset, bytes, value).map(|()| 0),
        };
        interrupts.lines(at, affect);
        Some(value)
    }

    /// Reads a register. `None`: nothing answers. Registers of harts that do not exist are 0.
    pub fn read(&mut self, now: Tick, by: Port, (physical, bytes): (u64, u8)) -> Option<u64> {
        if let Some(offset) = within(physical, CLINT_BASE, CLINT_SIZE) {
            if bytes == 8 && offset < CLINT_MTIMECMP {
                // Two software interrupt registers.
                let low = self.read(now, by, (physical, 4))?;
                return Some(low | self.read(now, by, (physical + 4, 4))? << 32);
            }
            return match self.register(offset) {
                Some((port, offset)) => self.clints[port].read(now, offset, bytes),
                None => matches!(bytes, 4 | 8).then_some(0),
            };
        }
        if let Some(offset) = within(physical, UART_BASE, UART_SIZE) {
            let uart = self.uart.as_mut();
            return uart.map(|uart| u64::from(uart.read(offset)));
        }
        if let Some(offset) = within(physical, LOCKDOWN_BASE, LOCKDOWN_SIZE) {
            let (port, what) = self.lockdown(offset, bytes)?;
            return Some(self.locked[usize::from(port)][what as usize].into());
        }
        if let Some(offset) = within(physical, CAPACITY_BASE, CAPACITY_SIZE) {
            return self.controller.as_mut()?.read(now, by, offset, bytes);
        }
        let exit = within(physical, EXIT_BASE, EXIT_SIZE);
        exit.filter(|_| self.exit).map(|_| 0)
    }

    /// Whether a lockdown register would be written; `Some(None)`: nothing answers there. Otherwise the port and the kind of the fills, and
    /// the ways that they may take from now on.
    pub fn lock(
        &mut self,
        (physical, bytes): (u64, u8),
        value: u64,
    ) -> Option<Option<(Port, Fill, u64)>> {
        let offset = within(physical, LOCKDOWN_BASE, LOCKDOWN_SIZE)?;
        Some(self.lockdown(offset, bytes).map(|(port, what)| {
            let register = &mut self.locked[usize::from(port)][what as usize];
            // The cache is inclusive, so each line needs a place: a value that locks every way changes nothing.
            if self.ways & !(value & 0xFFFF_FFFF) != 0 {
                *register = value as u32 & self.ways as u32;
            }
            (port, what, self.ways & !u64::from(*register))
        }))
    }

    /// Whether a register of the capacity controller would be written by the hart at `by`; `Some(None)`: nothing answers there. Otherwise
    /// the operation that begins.
    pub fn control(
        &mut self,
        now: Tick,
        by: Port,
        (physical, bytes): (u64, u8),
        value: u64,
    ) -> Option<Option<Option<Operation>>> {
        let offset = within(physical, CAPACITY_BASE, CAPACITY_SIZE)?;
        let controller = self.controller.as_mut();
        Some(controller.and_then(|controller| controller.write(now, by, (offset, bytes), value)))
    }

    /// An operation of the capacity controller ends at `at`.
    pub fn end_operation(&mut self, at: Tick, outcome: Outcome) {
        let controller = self.controller.as_mut();
        let controller = controller.expect("only a controller begins operations");
        controller.end(at, outcome);
    }

    /// Writes a register for the hart at `port`; `affect` gets the effects and the harts that they affect. `None`: nothing answers.
    pub fn write(
        &mut self,
        now: Tick,
        port: Port,
        (physical, bytes): (u64, u8),
        value: u64,
        affect: &mut impl FnMut(usize, Effect),
    ) -> Option<()> {
        if let Some(offset) = within(physical, CLINT_BASE, CLINT_SIZE) {
            if bytes == 8 && offset < CLINT_MTIMECMP {
                self.write(now, port, (physical, 4), value & 0xFFFF_FFFF, affect)?;
                return self.write(now, port, (physical + 4, 4), value >> 32, affect);
            }
            let Some((of, offset)) = self.register(offset) else {
                return matches!(bytes, 4 | 8).then_some(());
            };
            match self.clints[of].write(offset, bytes, value)? {
                ClintEffect::None => {}
                ClintEffect::Software(level) => affect(of, Effect::Software(level)),
                ClintEffect::Timer(deadline) => affect(of, Effect::Timer(deadline)),
            }
        } else if let Some(offset) = within(physical, UART_BASE, UART_SIZE) {
            self.uart.as_mut()?.write(offset, value as u8);
        } else {
            let offset = within(physical, EXIT_BASE, EXIT_SIZE).filter(|_| self.exit)?;
            if offset == 0
                && let Some(code) = exit_code(value as u32)
            {
                self.finish(now, port, End::Exit(code));
            }
        }
        Some(())
    }

    /// The host's word was written. True: it must be cleared.
    #[cold]
    pub fn stored_to_host(&mut self, now: Tick, port: Port, value: u64) -> bool {
        match self.htif.effect(value) {
            HtifEffect::None => false,
            HtifEffect::Exit(code) => {
                self.finish(now, port, End::Exit(code));
                false
            }
            HtifEffect::Print(byte) => {
                if let Some(uart) = &mut self.uart {
                    uart.put(byte);
                }
                true
            }
        }
    }

    /// The run ends. The earliest end counts; within one tick, that of the lowest port.
    pub fn finish(&mut self, at: Tick, port: Port, end: End) {
        let later = |(other, of, _): (Tick, Port, End)| (at, port) < (other, of);
        if self.end.is_none_or(later) {
            self.end = Some((at, port, end));
        }
    }
}
