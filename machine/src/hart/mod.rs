//! One RV64GC hart: what an instruction does, and how long it takes.
//!
//! It exists so that unmodified RISC-V binaries run with cycle-level timing. It does not know what lies behind its [`Bus`]: caches,
//! networks, devices and other harts are the tile's business. It can be resumed at every point where it depends on others, and its results
//! do not depend on the horizons that drive it.

pub mod bus;
pub mod config;
pub mod counters;
pub mod fp;
pub mod statistics;

mod block;
mod core;
mod csr;
mod execute;
mod execute_cache;
mod execute_known;
mod execute_memory;
mod execute_remote;
mod execute_system;
mod fetch;
mod interval;
mod isa;
mod lines;
mod load_store_queue;
#[cfg(test)]
mod load_store_queue_tests;
mod mmu;
mod pending;
mod pmp;
mod predictor;
mod qos;
mod results;
mod shared_blocks;
mod store_buffer;
#[cfg(test)]
mod test_support;
#[cfg(test)]
mod tests;
mod trap;
mod user_trap;
#[cfg(test)]
mod window_tests;

pub use bus::{
    Access, Bus, BusFault, CacheEvents, DeviceRead, DeviceWrite, Managed, Management, Place,
    RemoteOperation, Timing,
};
pub use config::{HartConfig, IntervalConfig};
pub use isa::a::modify;
pub use isa::{Kind, Op, SINK, decode};
pub use load_store_queue::LineBytes;
pub use qos::{QosIds, QosRange};
pub use shared_blocks::SharedBlocks;
pub use statistics::HartStatistics;

pub use self::core::Privilege;
pub use user_trap::UserTrap;

use self::block::BlockCache;
use self::core::{Core, Exception, Exit, Mode, NO_LINE, Purpose, TokenWait};
use self::execute::{End, run_blocks};
use self::fetch::{FetchBuffer, Missing};
use self::interval::{Before, Window};
use self::pmp::Need;
use self::qos::Qos;
use self::shared_blocks::Sharing;
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

/// Why [`Hart::run`] returned.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Stop {
    /// The next block would start at or after the horizon.
    Horizon,
    /// The next operation is a device access at `Hart::time()`, which is not before the horizon. Run again when this hart is the earliest.
    Device,
    /// The hart needs the completion of this token.
    Pending(u32),
    /// An access of the next operation waits for tokens of a bandwidth regulator until `Hart::time()`, unless an interrupt is taken first.
    Tokens,
    /// In WFI: an interrupt wakes it.
    WaitForInterrupt,
    /// Put to sleep by a device write: `Hart::wake` or an enabled interrupt wakes it.
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

/// Where the hart continues.
#[derive(Clone, Copy)]
enum Resume {
    /// At the start of the next block, which has begun: horizon and interrupts are not checked again.
    Start,
    /// At the first operation of this block, once its instructions have arrived.
    Fetch(usize),
    /// At an operation of a block.
    Operation(Suspended),
}

/// An operation of a block.
#[derive(Clone, Copy)]
struct Suspended {
    block: usize,
    index: usize,
    /// Its [`Op::cycle`] and [`Op::offset`], because shared blocks are not at hand between runs.
    cycle: u16,
    offset: u8,
}

/// One hart. See the module's documentation.
#[derive(Clone)]
#[repr(C)] // What each visit of the host touches comes first.
pub struct Hart {
    resume: Option<Resume>,
    blocks: Box<BlockCache>,
    sharing: Sharing,
    /// The group's blocks are not those of its memory.
    leaves: bool,
    /// The state of an out-of-order pipeline.
    window: Option<Box<Window>>,
    core: Core,
    fetched: FetchBuffer,
    config: HartConfig,
    data_sets: u32,
    qos: Option<QosRange>,
    memory_types: bool,
}

impl Hart {
    /// A halted hart with this `mhartid`.
    pub fn new(config: &HartConfig, hart_id: u64) -> Self {
        Self {
            core: Core::new(config, hart_id, 1),
            blocks: Box::new(BlockCache::new(config)),
            sharing: Sharing::Undecided,
            leaves: false,
            fetched: FetchBuffer::new(config.line.into()),
            resume: None,
            config: config.clone(),
            data_sets: 1,
            qos: None,
            memory_types: false,
            window: Window::new(config),
        }
    }

    /// Sets the number of sets of the first-level data cache (a power of two), effective from the next reset. The hart then remembers the
    /// most recently used line of several sets and does not ask for their timing; without this call it remembers one line.
    pub fn set_data_sets(&mut self, sets: u32) {
        self.data_sets = sets;
    }

    /// Gives the hart the register `srmcfg`, effective from the next reset. A hart without it has no such register.
    pub fn set_qos(&mut self, range: QosRange) {
        self.qos = Some(range);
    }

    /// Lets page-table entries have memory types (Svpbmt), effective from the next reset: the bus can make accesses past the caches.
    pub fn set_memory_types(&mut self) {
        self.memory_types = true;
    }

    /// The identifiers that go with the hart's requests now.
    pub fn qos_ids(&self) -> QosIds {
        self.core.csr.qos.map(|qos| qos.ids).unwrap_or_default()
    }

    /// Resets the architectural and timing state and starts at `pc` in machine mode at the tick `at`. The statistics continue.
    pub fn reset(&mut self, pc: u64, at: Tick) {
        let statistics = self.core.statistics;
        let verified = self.core.verified.take();
        self.core = Core::new(&self.config, self.core.hart_id, self.data_sets);
        self.core.statistics = statistics;
        self.core.verified = verified;
        self.core.csr.qos = self.qos.map(Qos::new);
        self.core.memory_types = self.memory_types;
        self.core.pc = pc;
        self.core.base = at;
        self.core.reset_time = at;
        self.core.restart_counters();
        self.core.mode = Mode::Running;
        self.resume = None;
        if let Some(window) = &mut self.window {
            window.reset(at);
        }
    }

    /// Halts the hart and forgets what it waited for. Only [`Hart::reset`] starts it again.
    pub fn stop(&mut self) {
        self.core.base = self.time();
        self.core.stop();
        self.resume = None;
        if let Some(window) = &mut self.window {
            window.abandon(&mut self.core, 0);
        }
    }

    /// Whether the hart is not started, or was stopped.
    pub fn is_halted(&self) -> bool {
        self.core.mode == Mode::Halted
    }

    /// The next moment at which the hart acts. While it waits for an interrupt, a wake-up or a token: when it began to wait.
    pub fn time(&self) -> Tick {
        if let Some(wait) = &self.core.tokens {
            return wait.until;
        }
        match &self.resume {
            Some(Resume::Operation(place)) => {
                self.core.base + Tick::from(place.cycle) * self.core.costs.cycle
            }
            _ => self.core.base,
        }
    }

    /// Whether it executes instructions when it runs. In WFI, it does if what has arrived since makes a counter overflow.
    #[inline(always)]
    pub fn is_awake<B: Bus>(&mut self, bus: &B) -> bool {
        if self.core.mode == Mode::Waiting {
            self.core.overflow_wakes(bus);
        }
        self.core.mode == Mode::Running
    }

    /// Runs blocks that start before `horizon`.
    pub fn run<B: Bus>(&mut self, bus: &mut B, horizon: Tick) -> Stop {
        self.core.horizon = horizon;
        self.is_awake(bus);
        match self.core.mode {
            Mode::Running => {}
            Mode::Halted => return Stop::Halted,
            Mode::Waiting => return Stop::WaitForInterrupt,
            Mode::Sleeping => return Stop::Sleep,
            Mode::Dead(trap) => return Stop::Unhandled(trap),
        }
        self.core.check_epoch(bus);
        self.core.watch_counters();
        if self.window.is_some() {
            return self.run_out_of_order(bus);
        }
        if !self.end_token_wait(bus) {
            return Stop::Tokens;
        }
        // If the first operation waited, what it waited for has come then.
        let mut resumed = self.resume.is_some();
        loop {
            let (first, start) = match self.next_operation(bus) {
                Ok(next) => next,
                Err(stop) => return stop,
            };
            let (core, blocks) = (&mut self.core, &self.blocks);
            let (end, block) = match core.counters.is_watched() {
                false => run_blocks::<B, false>(core, bus, blocks, first, start),
                true => run_blocks::<B, true>(core, bus, blocks, first, start),
            };
            core.settle(bus);
            match end {
                End::Overflow(operation) => {
                    let op = self.leave_block(block, operation);
                    self.core.pc = self.core.pc.wrapping_add(op.offset as u64);
                    self.core.base += op.cycle as Tick * self.core.costs.cycle;
                }
                End::Fetching(tokens) => {
                    self.core.fetches = tokens;
                    self.core.ask_limit(bus);
                    self.resume = Some(Resume::Fetch(block));
                    continue;
                }
                End::Done if self.core.mode == Mode::Running => {}
                End::Done => return Stop::WaitForInterrupt,
                End::Suspended(operation, stop) => {
                    let op = self.blocks.operations(self.blocks.block(block))[operation];
                    self.resume = Some(Resume::Operation(Suspended {
                        block,
                        index: operation,
                        cycle: op.cycle,
                        offset: op.offset,
                    }));
                    return stop;
                }
                End::Trap(operation, exception) => {
                    let op = self.leave_block(block, operation);
                    let pc = self.core.pc.wrapping_add(op.offset as u64);
                    let offset = op.cycle as Tick * self.core.costs.cycle;
                    if resumed && (block, operation) == (first, start) {
                        self.core.delay_until(self.core.arrival, offset);
                    }
                    if let Some(stop) = self.core.take_exception(bus, exception, pc, offset) {
                        return stop;
                    }
                }
                End::Left if self.core.interrupt_wakes() => self.core.mode = Mode::Running,
                End::Left => return Stop::Sleep,
            }
            resumed = false;
        }
    }

    /// [`Hart::run`] of a running hart with an out-of-order pipeline.
    #[inline(never)]
    fn run_out_of_order<B: Bus>(&mut self, bus: &mut B) -> Stop {
        let Some(mut window) = self.window.take() else {
            return Stop::Horizon;
        };
        let stop = self.run_window(&mut window, bus);
        self.window = Some(window);
        stop
    }

    /// Leaves a block before an operation, which it returns.
    fn leave_block(&mut self, block: usize, operation: usize) -> Op {
        let block = self.blocks.block(block);
        let op = self.blocks.operations(block)[operation];
        self.core
            .leave_results(&self.blocks, block, operation, op.cycle);
        op
    }

    /// Continues after a wait for tokens, or withdraws the waiting access because of an interrupt. Returns false if it is too early for
    /// either.
    fn end_token_wait<B: Bus>(&mut self, bus: &mut B) -> bool {
        let Some(wait) = self.core.tokens else {
            return true;
        };
        if wait.until >= self.core.horizon {
            return false;
        }
        if self.core.interrupt_arrival <= wait.until && self.core.interrupt().is_some() {
            // The operation has had no effect yet; it starts its own block when the hart returns to it.
            let pc = self.pc();
            if let Some(Resume::Operation(place)) = self.resume {
                self.leave_block(place.block, place.index);
            }
            self.core.tokens = None;
            self.core.admitted = NO_LINE;
            bus.withdraw(wait.until);
            self.core.spend_tokens(wait, wait.until);
            self.core.base += wait.offset;
            self.core.pc = pc;
            self.core.walk = None;
            self.resume = None;
        } else {
            self.core.tokens = None;
            self.core.spend_tokens(wait, wait.until);
        }
        true
    }

    /// The block and operation with which the hart continues.
    fn next_operation<B: Bus>(&mut self, bus: &mut B) -> Result<(usize, usize), Stop> {
        loop {
            match self.resume.take() {
                Some(Resume::Operation(place)) => return Ok((place.block, place.index)),
                Some(Resume::Fetch(block)) => {
                    if let Some(token) = self.core.fetches.iter().flatten().next() {
                        self.resume = Some(Resume::Fetch(block));
                        return Err(Stop::Pending(*token));
                    }
                    return Ok((block, 0));
                }
                Some(Resume::Start) => {
                    if let Some(token) = self.core.fetches.iter().flatten().next() {
                        self.resume = Some(Resume::Start);
                        return Err(Stop::Pending(*token));
                    }
                }
                None => {
                    if self.core.base >= self.core.horizon {
                        return Err(Stop::Horizon);
                    }
                    if self.core.counters.is_watched() {
                        self.core.ask_caches(bus);
                        self.core.note_overflows(self.core.base);
                    }
                    if self.core.interrupt_wakes()
                        && self.core.interrupt_arrival <= self.core.base
                        && let Some(number) = self.core.interrupt()
                    {
                        match self.core.take_interrupt(bus, number) {
                            Some(stop) => return Err(stop),
                            None => continue,
                        }
                    }
                    if self.core.resumes {
                        self.core.may_resume(bus)?;
                    }
                }
            }
            match self.next_block(bus) {
                Ok(block) => return Ok((block, 0)),
                Err(Exit::Suspend(stop)) => {
                    self.resume.get_or_insert(Resume::Start);
                    return Err(stop);
                }
                Err(Exit::Trap(exception)) => {
                    let pc = self.core.pc;
                    if let Some(stop) = self.core.take_exception(bus, exception, pc, 0) {
                        return Err(stop);
                    }
                }
            }
        }
    }

    /// [`Hart::next_block`] for the out-of-order pipeline; a separate function, so that `next_block` stays part of the in-order loop.
    #[inline(never)]
    fn next_block_apart<B: Bus>(&mut self, bus: &mut B) -> Result<usize, Exit> {
        self.next_block(bus)
    }

    /// Finds or decodes the block at the program counter and fetches its line.
    #[inline(always)]
    fn next_block<B: Bus>(&mut self, bus: &mut B) -> Result<usize, Exit> {
        if self.core.forget_blocks {
            match &mut self.core.verified {
                Some(verified) => verified.clear(),
                None => self.blocks.clear(),
            }
            self.fetched.clear();
            self.core.forget_blocks = false;
        }
        let physical = self.core.mmu.quick(Need::Execute, self.core.pc);
        let known = physical.and_then(|physical| {
            let block = self.blocks.find(physical);
            let block = block.filter(|block| self.core.may_use::<B>(*block));
            Some((block?, physical))
        });
        let (block, physical, second) = match known {
            Some((block, physical)) => (block, physical, None),
            None => self.find_block(bus)?,
        };
        let core = &mut self.core;
        let line = physical & core.line_mask;
        let straddles = self.blocks.block(block).straddles;
        if line != core.fetch_line || straddles {
            let next = second.unwrap_or(line + !core.line_mask + 1);
            if bus.regulates() {
                core.admit_both(bus, physical, straddles.then_some(next), Purpose::Fetch, 0)?;
            }
            let first = core.fetch(bus, physical);
            let second = if straddles {
                core.fetch(bus, next)
            } else {
                None
            };
            if let Some(token) = first.or(second) {
                core.fetches = [first, second];
                core.ask_limit(bus);
                self.resume = Some(Resume::Fetch(block));
                return Err(Exit::Suspend(Stop::Pending(token)));
            }
        }
        Ok(block)
    }

    /// The block at the program counter, decoded if necessary; its physical address; and the physical address of its second half if that is
    /// in another page.
    #[cold]
    #[inline(never)]
    fn find_block<B: Bus>(&mut self, bus: &mut B) -> Result<(usize, u64, Option<u64>), Exit> {
        let Some(physical) = self.core.mmu.quick(Need::Execute, self.core.pc) else {
            return self.unmapped_block(bus);
        };
        match self.block_at(bus, physical, false) {
            Ok(block) => Ok((block, physical, None)),
            Err(missing) => self.unusual_block(bus, physical, missing),
        }
    }

    /// The block at a physical address ([`BlockCache::get`]).
    #[inline(always)]
    fn block_at<B: Bus>(
        &mut self,
        bus: &mut B,
        physical: u64,
        single: bool,
    ) -> Result<usize, Missing> {
        let verified = &mut self.core.verified;
        self.blocks
            .get(bus, &mut self.fetched, (physical, single), verified)
    }

    /// The next block when its page is not in the quick table.
    #[cold]
    fn unmapped_block<B: Bus>(&mut self, bus: &mut B) -> Result<(usize, u64, Option<u64>), Exit> {
        let pc = self.core.pc;
        let physical = self.core.translate(bus, pc, 2, Need::Execute, 0)?;
        let single = !self.core.pmp.uniform_page(physical);
        if bus.is_device(physical) || self.core.is_uncached() {
            return Err(fetch_fault(pc));
        }
        match self.block_at(bus, physical, single) {
            Ok(block) if single && self.blocks.block(block).bytes == 4 => {
                self.core
                    .translate(bus, pc.wrapping_add(2), 2, Need::Execute, 0)?;
                Ok((block, physical, None))
            }
            Ok(block) => Ok((block, physical, None)),
            Err(missing) => self.unusual_block(bus, physical, missing),
        }
    }

    /// A block that cannot be decoded yet or not in the usual way: its line has not been fetched, its instruction spans two pages, or there
    /// is no instruction.
    #[cold]
    fn unusual_block<B: Bus>(
        &mut self,
        bus: &mut B,
        physical: u64,
        missing: Missing,
    ) -> Result<(usize, u64, Option<u64>), Exit> {
        match missing {
            Missing::Line(line) => return self.fetch_to_decode(bus, line),
            Missing::Elsewhere => return Err(self.leave_group()),
            Missing::Nothing => {}
        }
        let pc = self.core.pc;
        let low = match self.fetched.instruction(bus, physical) {
            Ok(low) => low,
            Err(Missing::Line(line)) => return self.fetch_to_decode(bus, line),
            Err(_) => return Err(fetch_fault(pc)),
        };
        let next = pc.wrapping_add(2);
        if low & 3 != 3 || physical & 0xfff != 0xffe {
            return Err(fetch_fault(next));
        }
        let second = self.core.translate(bus, next, 2, Need::Execute, 0)?;
        if bus.is_device(second) || self.core.is_uncached() {
            return Err(fetch_fault(next));
        }
        let high = match self.fetched.half(bus, second) {
            Ok(high) => high,
            Err(Missing::Line(line)) => return self.fetch_to_decode(bus, line),
            Err(_) => return Err(fetch_fault(next)),
        };
        self.fetched.clear();
        match self.blocks.across_pages(low | high << 16) {
            Some(block) => Ok((block, physical, Some(second))),
            None => Err(self.leave_group()),
        }
    }

    /// Fetches a line that the decoder needs, and decodes again.
    #[cold]
    fn fetch_to_decode<B: Bus>(
        &mut self,
        bus: &mut B,
        line: u64,
    ) -> Result<(usize, u64, Option<u64>), Exit> {
        self.core.admit(bus, line, Purpose::Fetch, 0)?;
        if let Some(token) = self.core.fetch(bus, line) {
            self.core.fetches = [Some(token), None];
            self.core.ask_limit(bus);
            return Err(Exit::Suspend(Stop::Pending(token)));
        }
        let there = self.fetched.take(bus, line);
        assert!(there, "the line at {line:#x} was fetched and is not there");
        self.find_block(bus)
    }

    /// Reports that the access of `token` completed at `at`, with the line: its physical address and its bytes, which the hart reads and
    /// writes now. (For an access that never gets a line, the tile passes a dummy line of zeros: reads give 0, and writes are lost.)
    pub fn complete(&mut self, token: u32, at: Tick, line: Option<(u64, &mut [u8])>) {
        let before = self.window.is_some().then(|| Before::new(&self.core));
        self.core.complete(token, at, line);
        self.completed(token, at, before);
    }

    /// Tells an out-of-order pipeline about a completion.
    #[inline]
    fn completed(&mut self, token: u32, at: Tick, before: Option<Before>) {
        if let (Some(window), Some(before)) = (&mut self.window, before) {
            window.complete(&mut self.core, token, at, before);
        }
    }

    /// The line with this name ([`Bus::line_name`]), which the access of `token` waits for, has arrived. The hart performs what waits for
    /// it; [`Hart::complete`] reports the time.
    pub fn take_line(&mut self, token: u32, name: u64, line: &mut impl LineBytes) {
        self.core.take_line(token, name, line);
    }

    /// The answer of a memory behind a network has arrived; the hart takes its value now. If the hart was reset in the meantime,
    /// the answer is ignored.
    pub fn complete_remote(&mut self, token: u32, at: Tick, value: u64) {
        let before = self.window.is_some().then(|| Before::new(&self.core));
        self.core.complete_remote(token, at, value);
        self.completed(token, at, before);
    }

    /// Sets an interrupt input at the tick `at`. Also wakes a hart in WFI or asleep if the interrupt is enabled in `mie`.
    pub fn set_interrupt(&mut self, line: InterruptLine, level: bool, at: Tick) {
        let bit = match line {
            InterruptLine::Software => 3,
            InterruptLine::Timer => 7,
            InterruptLine::SupervisorExternal => 9,
            InterruptLine::External => 11,
        };
        let csr = &mut self.core.csr;
        csr.mip_lines = (csr.mip_lines & !(1 << bit)) | (level as u64) << bit;
        if level {
            self.core.interrupt_arrival = self.core.interrupt_arrival.max(at);
            if let Some(wait) = self.core.tokens
                && self.core.interrupt().is_some()
            {
                let until = wait.until.min(at.max(wait.since));
                self.core.tokens = Some(TokenWait { until, ..wait });
            }
            if matches!(self.core.mode, Mode::Waiting | Mode::Sleeping)
                && self.core.interrupt_wakes()
            {
                self.core.awake(at);
            } else if self.core.mode == Mode::Running
                && let Some(window) = &mut self.window
            {
                window.interrupted(&mut self.core, at);
            }
        }
    }

    /// Ends the sleep that a device write began; no effect on a hart that is not asleep.
    pub fn wake(&mut self, at: Tick) {
        if self.core.mode == Mode::Sleeping {
            self.core.awake(at);
        }
    }

    /// Whether an interrupt that is enabled in `mie` is pending, so that it would end WFI.
    pub fn interrupt_pending(&self) -> bool {
        self.core.interrupt_wakes()
    }

    /// Forgets which lines are known to be in the first-level caches. The tile calls this whenever anything but the hart's own accesses may
    /// have removed a line from a first-level cache or cleared its dirty state. [`Hart::complete`] does it itself.
    pub fn forget_lines(&mut self) {
        self.core.forget_lines();
    }

    /// Another hart has used the caches. Forgets data lines whose low four number bits select a set bit of `data`, and the instruction line
    /// if `instructions`.
    pub fn forget_some_lines(&mut self, data: u16, instructions: bool) {
        self.core.lines.forget_some(data);
        if instructions {
            self.core.fetch_line = NO_LINE;
        }
    }

    /// An integer register; `x0` is 0.
    pub fn register(&self, number: usize) -> u64 {
        self.core.x[number & 31]
    }

    /// Stores of the software that have not been performed, in program order: physical address, bytes and value.
    pub fn waiting_stores(&self) -> impl Iterator<Item = (u64, u8, u64)> {
        self.core.waiting_stores()
    }

    /// Sets an integer register; `x0` stays 0.
    pub fn set_register(&mut self, number: usize, value: u64) {
        if number & 31 != 0 {
            self.core.x[number & 31] = value;
        }
    }

    /// The raw bits of an FP register.
    pub fn float_register(&self, number: usize) -> u64 {
        self.core.f[number & 31]
    }

    /// Sets the raw bits of an FP register.
    pub fn set_float_register(&mut self, number: usize, value: u64) {
        self.core.f[number & 31] = value;
    }

    /// The program counter of the next instruction.
    pub fn pc(&self) -> u64 {
        if let Some(window) = &self.window {
            return window.pc(&self.core, &self.blocks);
        }
        match &self.resume {
            Some(Resume::Operation(place)) => self.core.pc.wrapping_add(place.offset.into()),
            _ => self.core.pc,
        }
    }

    /// Continues at `pc`, at the tick `at` or when the hart would have acted next, whichever is later. The current operation is abandoned
    /// with everything it waited for; accesses that it or earlier operations began still complete normally.
    pub fn divert(&mut self, pc: u64, at: Tick) {
        self.core.base = self.time().max(at);
        self.resume = None;
        self.core.walk = None;
        self.core.fetches = [None; 2];
        self.core.pc = pc;
        if let Some(window) = &mut self.window {
            window.abandon(&mut self.core, at);
        }
    }

    /// The current mode.
    pub fn privilege(&self) -> Privilege {
        self.core.privilege
    }

    /// A control and status register, without a check of privilege; `None` if it does not exist. `time` reads as 0.
    pub fn csr(&self, number: u16) -> Option<u64> {
        self.core.csr_read(number, self.time(), |_| 0).ok()
    }

    /// Writes a control and status register as software would. Returns whether it exists.
    pub fn set_csr(&mut self, number: u16, value: u64) -> bool {
        let now = self.time();
        self.core.csr_write(number, value, now).is_ok()
    }

    /// Statistics of the hart since it was created.
    pub fn statistics(&self) -> &HartStatistics {
        &self.core.statistics
    }
}

/// An instruction at this virtual address cannot be fetched.
fn fetch_fault(address: u64) -> Exit {
    Exit::Trap(Exception {
        cause: trap::cause::FETCH_ACCESS,
        value: address,
    })
}
