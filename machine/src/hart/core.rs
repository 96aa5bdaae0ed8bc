//! The state of a hart and the small operations on it that every other part uses.
//!
//! It is separate from the decoded blocks so that a block can be executed while the state changes.

use super::block::Verified;
use super::bus::{Bus, Timing};
use super::config::HartConfig;
use super::counters::Counters;
use super::csr::{Csrs, status};
use super::execute_remote::RemoteAccess;
use super::lines::KnownLines;
use super::load_store_queue::{Late, LineBytes, Split};
use super::mmu::{MemoryType, Mmu, Walk};
use super::pending::{Completion, PendingLoads};
use super::pmp::Pmp;
use super::predictor::{Outcome, Predictor};
use super::results::Results;
use super::statistics::HartStatistics;
use super::store_buffer::StoreBuffer;
use super::user_trap::UserTrap;
use super::{Stop, UnhandledTrap};
use crate::types::Tick;

/// No line: lines are multiples of at least 16.
pub const NO_LINE: u64 = 1;

/// Privilege modes with their encoding.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
#[repr(u8)]
pub enum Privilege {
    /// User.
    User = 0,
    /// Supervisor.
    Supervisor = 1,
    /// Machine.
    Machine = 3,
}

impl Privilege {
    /// From the two-bit encoding; the reserved value is user mode.
    pub const fn from_bits(bits: u64) -> Self {
        match bits & 3 {
            3 => Self::Machine,
            1 => Self::Supervisor,
            _ => Self::User,
        }
    }
}

/// A synchronous exception before it is taken.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Exception {
    /// Exception code.
    pub cause: u64,
    /// Value for `xtval`.
    pub value: u64,
}

/// Why an operation did not complete.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Exit {
    /// It raised an exception.
    Trap(Exception),
    /// It must be executed again when the hart continues.
    Suspend(Stop),
}

/// The purpose of an access that waits for tokens.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Purpose {
    /// An instruction fetch, or the return to user mode.
    Fetch,
    /// A load or an atomic operation.
    Load,
    /// A store.
    Store,
    /// A read of a page table.
    Walk,
}

/// An access that waits for tokens of a bandwidth regulator; no part of it has left the hart.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct TokenWait {
    /// When the wait began.
    pub since: Tick,
    /// When the hart will ask again.
    pub until: Tick,
    /// Offset of the operation, in ticks after the start of the block.
    pub offset: Tick,
    /// The purpose of the access.
    pub purpose: Purpose,
}

/// Whether the hart runs.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Mode {
    /// Not started or stopped.
    Halted,
    /// Executing.
    Running,
    /// In WFI.
    Waiting,
    /// Put to sleep by a device write.
    Sleeping,
    /// Ended by a trap without a handler.
    Dead(UnhandledTrap),
}

/// Costs in ticks.
#[derive(Clone)]
pub struct Costs {
    /// Ticks of one cycle.
    pub cycle: Tick,
    pub branch_penalty: Tick,
    pub jump_penalty: Tick,
    /// After a conditional branch, by its outcome.
    pub branches: [Tick; Outcome::COUNT],
    pub trap_entry: Tick,
    pub mmio: Tick,
    pub walk_hit: Tick,
    pub second_tlb: Tick,
}

/// The state of a hart except its decoded blocks.
#[derive(Clone)]
#[repr(C)] // What most visits of the host touch comes first and together: a mesh has a thousand harts, and each visit is short.
pub struct Core {
    /// The tick at which the current block would have started if all delays so far had come before it. Between blocks: the current time.
    pub base: Tick,
    /// No block starts and no device is accessed at or after this tick.
    pub horizon: Tick,
    /// Start of the current block, or the next instruction between blocks.
    pub pc: u64,
    /// The last instruction line fetched.
    pub fetch_line: u64,
    pub line_mask: u64,
    /// The shared decoded blocks that the hart may use, if it shares blocks.
    pub verified: Option<Verified>,
    /// An access that waits for tokens.
    pub tokens: Option<TokenWait>,
    pub mode: Mode,
    pub epoch: u32,
    pub privilege: Privilege,
    /// Decoded blocks are stale.
    pub forget_blocks: bool,
    /// The hart has left machine mode and has not yet checked whether it may continue.
    pub resumes: bool,
    /// A load-reserved waits for its line.
    pub reserving: bool,
    /// An atomic operation with acquire semantics waits for its line: no later access may be performed before it.
    pub acquiring: bool,
    /// An atomic operation with release semantics that is under way: one with acquire semantics is not performed before it.
    pub releasing: Option<u32>,
    /// An atomic operation waits for the accesses before it.
    pub ordering: bool,
    pub hardware_ad: bool,
    /// Page-table entries can have memory types.
    pub memory_types: bool,
    /// Arrival of the latest interrupt.
    pub interrupt_arrival: Tick,
    pub costs: Costs,
    pub pending: PendingLoads,
    pub results: Results,
    /// Misses or results may be under way. Without it, no operation looks at either.
    pub under_way: bool,
    pub stores: StoreBuffer,
    pub mmu: Mmu,
    pub statistics: HartStatistics,
    /// Integer registers. Writes to `x0` go to register 32; with the rest, each byte is a number of one, so that no operation checks it.
    pub x: [u64; 256],
    pub csr: Csrs,
    pub counters: Counters,
    pub predictor: Predictor,
    /// FP registers.
    pub f: [u64; 32],
    pub pmp: Pmp,
    pub hart_id: u64,
    /// Physical address and value of the last load-reserved.
    pub reservation: Option<(u64, u64)>,
    /// Why the last access was refused.
    pub refused: Exit,
    /// Accesses waiting for their lines, in program order.
    pub late: Vec<Late>,
    /// Values of loads of an out-of-order pipeline whose lines have arrived, with their numbers ([`Action::Early`](super::load_store_queue::Action)).
    pub early: Vec<(u64, u64)>,
    /// Loads across two lines of which one part is still missing.
    pub splits: Vec<Split>,
    /// Accesses to memories behind a network, in program order.
    pub remote: Vec<RemoteAccess>,
    pub reset_time: Tick,
    /// Data lines that are known to hit.
    pub lines: KnownLines,
    pub load_limit: usize,
    /// Memory type of the page that was translated last.
    pub memory_type: MemoryType,
    /// A page-table walk that has not finished.
    pub walk: Option<Walk>,
    /// Tokens of the instruction lines that the next block needs.
    pub fetches: [Option<u32>; 2],
    /// When the most recent outstanding access completed.
    pub arrival: Tick,
    /// The first line of an access to two lines, if it was admitted while the second line waits; otherwise [`NO_LINE`].
    pub admitted: u64,
    /// The registers of the last program that trapped, kept in case software later reports that it crashed.
    pub user_trap: UserTrap,
}

impl Core {
    pub fn new(config: &HartConfig, hart_id: u64, data_sets: u32) -> Self {
        let line = config.line.clamp(16, 128).next_power_of_two() as u64;
        let cycle = config.ticks_per_cycle.max(1);
        let ticks = |cycles: u32| cycles as Tick * cycle;
        Self {
            x: [0; 256],
            f: [0; 32],
            pc: 0,
            privilege: Privilege::Machine,
            csr: Csrs::reset(),
            counters: Counters::default(),
            pmp: Pmp::default(),
            mmu: Mmu::new(config),
            predictor: Predictor::new(config),
            pending: PendingLoads::default(),
            results: Results::NONE,
            under_way: false,
            stores: StoreBuffer::new(config.store_buffer),
            costs: Costs {
                cycle,
                branch_penalty: ticks(config.branch_penalty),
                jump_penalty: ticks(config.jump_penalty),
                branches: Outcome::ALL.map(|outcome| match (outcome.wrong(), outcome.is_taken()) {
                    (1, _) => ticks(config.branch_penalty),
                    (_, true) => ticks(config.jump_penalty),
                    (_, false) => 0,
                }),
                trap_entry: ticks(config.trap_entry),
                mmio: ticks(config.mmio),
                walk_hit: ticks(config.load_to_use),
                second_tlb: ticks(config.l2_tlb_latency),
            },
            statistics: HartStatistics::default(),
            hart_id,
            reservation: None,
            reserving: false,
            acquiring: false,
            releasing: None,
            ordering: false,
            refused: Exit::Suspend(Stop::Horizon),
            late: Vec::new(),
            early: Vec::new(),
            splits: Vec::new(),
            remote: Vec::new(),
            base: 0,
            reset_time: 0,
            horizon: 0,
            mode: Mode::Halted,
            lines: KnownLines::new(line, data_sets as u64),
            fetch_line: NO_LINE,
            line_mask: !(line - 1),
            memory_types: false,
            memory_type: MemoryType::Pma,
            load_limit: config.load_buffer.clamp(1, 16) as usize,
            hardware_ad: config.hardware_ad,
            epoch: 0,
            forget_blocks: true,
            verified: None,
            walk: None,
            fetches: [None; 2],
            arrival: 0,
            interrupt_arrival: 0,
            tokens: None,
            admitted: NO_LINE,
            resumes: false,
            user_trap: UserTrap::NONE,
        }
    }

    /// The privilege mode in which loads and stores are checked (MPRV).
    pub fn data_privilege(&self) -> Privilege {
        if self.csr.mstatus & status::MPRV != 0 && self.privilege == Privilege::Machine {
            Privilege::from_bits(self.csr.mstatus >> 11)
        } else {
            self.privilege
        }
    }

    /// Must be called after a change of the mode or of a translation-relevant bit of `mstatus`.
    pub fn contexts_changed(&mut self) {
        let (sum, mxr) = (
            self.csr.mstatus & status::SUM != 0,
            self.csr.mstatus & status::MXR != 0,
        );
        self.mmu.set_contexts(
            self.privilege as u64,
            self.data_privilege() as u64,
            sum,
            mxr,
        );
    }

    /// Must be called after a change of `satp`.
    pub fn translation_changed(&mut self) {
        self.mmu.forget();
    }

    /// Forgets which lines are known to be in the first-level caches.
    pub fn forget_lines(&mut self) {
        self.lines.forget();
        self.fetch_line = NO_LINE;
    }

    /// Asks for a nearer horizon after an action that may have caused events.
    pub fn ask_limit<B: Bus>(&mut self, bus: &B) {
        self.horizon = self.horizon.min(bus.limit());
    }

    /// Drops what a new epoch of the bus invalidates.
    pub fn check_epoch<B: Bus>(&mut self, bus: &B) {
        let epoch = bus.epoch();
        if epoch != self.epoch {
            self.epoch = epoch;
            self.mmu.forget();
            self.forget_code();
        }
    }

    /// Decoded blocks may not be what is in memory. The next one is looked for, because its line is not known either.
    pub fn forget_code(&mut self) {
        self.forget_lines();
        self.forget_blocks = true;
    }

    /// A result for `registers` is under way.
    #[inline]
    pub fn push_pending(&mut self, registers: u64, completion: Completion) {
        self.pending.push(registers, completion);
        self.under_way = true;
    }

    /// Notes the timing of a load whose result goes to `registers`.
    #[inline(always)]
    pub fn note_load<B: Bus>(&mut self, bus: &B, timing: Timing, registers: u64) {
        if timing != Timing::Hit {
            self.statistics.data_misses += 1;
            let completion = self.completion(bus, timing);
            self.push_pending(registers, completion);
        }
    }

    /// Notes the timing of a store.
    #[inline]
    pub fn note_store<B: Bus>(&mut self, bus: &B, timing: Timing) {
        if timing != Timing::Hit {
            self.statistics.data_misses += 1;
            let completion = self.completion(bus, timing);
            self.stores.push(completion);
        }
    }

    /// Notes the timing of a cache-management operation, which occupies a place in the store buffer.
    pub fn note_management<B: Bus>(&mut self, bus: &B, timing: Timing) {
        if timing != Timing::Hit {
            let completion = self.completion(bus, timing);
            self.stores.push(completion);
        }
    }

    #[inline]
    fn completion<B: Bus>(&mut self, bus: &B, timing: Timing) -> Completion {
        match timing {
            // A hit is complete.
            Timing::Hit => Completion::At(0),
            Timing::Ready(at) => Completion::At(at),
            Timing::ReadyOnce(at) => {
                self.ask_limit(bus);
                Completion::At(at)
            }
            Timing::Pending(token) => {
                self.ask_limit(bus);
                Completion::Token(token)
            }
        }
    }

    /// Delays the block so that the operation at `offset` ticks does not issue before `at`. Returns the ticks lost.
    #[inline]
    pub fn delay_until(&mut self, at: Tick, offset: Tick) -> Tick {
        let lost = at.saturating_sub(self.base + offset);
        self.base += lost;
        lost
    }

    /// Waits until the registers have their values. `Err` if a completion time is not known yet.
    #[inline]
    pub fn wait_registers(&mut self, registers: u64, offset: Tick) -> Result<(), Exit> {
        let at = self
            .pending
            .ready(registers)
            .map_err(|token| Exit::Suspend(Stop::Pending(token)))?;
        self.statistics.stall_load += self.delay_until(at, offset);
        self.pending.retire(self.base + offset);
        Ok(())
    }

    /// Waits until another load may start.
    pub fn wait_load_room(&mut self, offset: Tick) -> Result<(), Exit> {
        let at = self
            .pending
            .room(self.load_limit)
            .map_err(|token| Exit::Suspend(Stop::Pending(token)))?;
        self.statistics.stall_load += self.delay_until(at, offset);
        self.pending.retire(self.base + offset);
        Ok(())
    }

    /// Waits until `places` more stores can be outstanding.
    #[cold]
    pub fn wait_store_room(&mut self, places: usize, offset: Tick) -> Result<(), Exit> {
        let at = self
            .stores
            .room(places)
            .map_err(|token| Exit::Suspend(Stop::Pending(token)))?;
        self.statistics.stall_store += self.delay_until(at, offset);
        self.stores.retire(self.base + offset);
        Ok(())
    }

    /// Waits until all loads and stores are complete.
    pub fn wait_all(&mut self, offset: Tick) -> Result<(), Exit> {
        let suspend = |token| Exit::Suspend(Stop::Pending(token));
        let (loads, stores) = (
            self.pending.all().map_err(suspend)?,
            self.stores.drained().map_err(suspend)?,
        );
        self.statistics.stall_load += self.delay_until(loads, offset);
        self.statistics.stall_store += self.delay_until(stores, offset);
        self.pending.retire(self.base + offset);
        self.stores.retire(self.base + offset);
        self.remote.clear();
        Ok(())
    }

    /// Waits until all loads and atomic operations are complete.
    pub fn wait_loads(&mut self, offset: Tick) -> Result<(), Exit> {
        let at = self
            .pending
            .all()
            .map_err(|token| Exit::Suspend(Stop::Pending(token)))?;
        self.statistics.stall_load += self.delay_until(at, offset);
        self.pending.retire(self.base + offset);
        Ok(())
    }

    /// Halts. Outstanding accesses are forgotten, and stores that waited for their lines are lost.
    pub fn stop(&mut self) {
        self.mode = Mode::Halted;
        self.pending = PendingLoads::default();
        self.stores.clear();
        self.late.clear();
        self.early.clear();
        self.splits.clear();
        self.remote.clear();
        (self.reserving, self.acquiring, self.ordering) = (false, false, false);
        self.releasing = None;
        self.walk = None;
        self.fetches = [None; 2];
        self.tokens = None;
        self.admitted = NO_LINE;
    }

    /// [`Core::admit`] for an access that may reach into a second line. Once the first line is admitted, the hart does not ask for it
    /// again.
    pub fn admit_both<B: Bus>(
        &mut self,
        bus: &mut B,
        first: u64,
        second: Option<u64>,
        purpose: Purpose,
        offset: Tick,
    ) -> Result<(), Exit> {
        let line = first & self.line_mask;
        if self.admitted != line {
            self.admit(bus, first, purpose, offset)?;
        }
        if let Some(second) = second {
            self.admitted = line;
            self.admit(bus, second, purpose, offset)?;
        }
        self.admitted = NO_LINE;
        Ok(())
    }

    /// Called before an access that may miss the first level. Waits for tokens of a bandwidth regulator, if there is one. The operation has
    /// had no effect yet.
    #[inline(never)]
    pub fn admit<B: Bus>(
        &mut self,
        bus: &mut B,
        physical: u64,
        purpose: Purpose,
        offset: Tick,
    ) -> Result<(), Exit> {
        if !bus.regulates() {
            return Ok(());
        }
        let now = self.base + offset;
        let user = self.privilege != Privilege::Machine;
        let fetch = purpose == Purpose::Fetch;
        bus.admit(now, physical, fetch, user)
            .map_err(|until| self.wait_for_tokens(now, until, offset, purpose))
    }

    /// Stops at an operation until tokens may be available, or an interrupt can be taken. An interrupt that has come since the block began
    /// ends the wait at once.
    pub fn wait_for_tokens(
        &mut self,
        since: Tick,
        until: Tick,
        offset: Tick,
        purpose: Purpose,
    ) -> Exit {
        let until = match self.interrupt() {
            Some(_) => until.min(self.interrupt_arrival.max(since)),
            None => until,
        };
        self.tokens = Some(TokenWait {
            since,
            until,
            offset,
            purpose,
        });
        Exit::Suspend(Stop::Tokens)
    }

    /// At the start of a block after a return from machine mode: waits until borrowed tokens are repaid.
    #[cold]
    pub fn may_resume<B: Bus>(&mut self, bus: &mut B) -> Result<(), Stop> {
        if bus.regulates()
            && let Err(until) = bus.solvent(self.base)
        {
            self.wait_for_tokens(self.base, until, 0, Purpose::Fetch);
            return Err(Stop::Tokens);
        }
        self.resumes = false;
        Ok(())
    }

    /// Spends the time of a wait for tokens up to `at`.
    pub fn spend_tokens(&mut self, wait: TokenWait, at: Tick) {
        let lost = self.delay_until(at, wait.offset);
        *match wait.purpose {
            Purpose::Fetch => &mut self.statistics.stall_fetch,
            Purpose::Load => &mut self.statistics.stall_load,
            Purpose::Store => &mut self.statistics.stall_store,
            Purpose::Walk => &mut self.statistics.stall_translation,
        } += lost;
    }

    /// Ends WFI or sleep at `at`.
    pub fn awake(&mut self, at: Tick) {
        self.mode = Mode::Running;
        self.statistics.slept += self.delay_until(at, 0);
    }

    /// The line of an access has arrived: performs everything that waits for it.
    pub fn take_line<M: LineBytes + ?Sized>(&mut self, token: u32, name: u64, line: &mut M) {
        self.perform_line(name, line);
        self.walk_line(token, line);
    }

    /// Completes an access for the instructions that wait for it, and performs the accesses that wait for the arriving line (its address
    /// and all of its bytes).
    pub fn complete(&mut self, token: u32, at: Tick, line: Option<(u64, &mut [u8])>) {
        if let Some((address, bytes)) = line {
            self.take_line(token, address, bytes);
        }
        self.arrival = at;
        self.released(token);
        self.pending.complete(token, at);
        self.stores.complete(token, at);
        self.complete_walk(token, at);
        for index in 0..2 {
            if self.fetches[index] == Some(token) {
                self.fetches[index] = None;
                self.statistics.stall_fetch += self.delay_until(at, 0);
            }
        }
        self.forget_lines();
    }

    /// The access of a token is complete, also if it is the operation with release semantics.
    pub fn released(&mut self, token: u32) {
        if self.releasing == Some(token) {
            self.releasing = None;
        }
    }

    /// Fetches an instruction line at the start of a block. Returns a token if its arrival time is not known yet.
    #[inline]
    pub fn fetch<B: Bus>(&mut self, bus: &mut B, physical: u64) -> Option<u32> {
        let timing = bus.fetch(self.base, physical);
        if timing != Timing::Hit {
            self.statistics.fetch_misses += 1;
            if bus.fetched_ahead() {
                self.forget_ahead(bus);
            }
        }
        self.fetch_line = physical & self.line_mask;
        match timing {
            Timing::Hit => None,
            Timing::Ready(at) | Timing::ReadyOnce(at) => {
                self.statistics.stall_fetch += self.delay_until(at, 0);
                None
            }
            Timing::Pending(token) => Some(token),
        }
    }
}
